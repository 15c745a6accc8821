// SPDX-License-Identifier: Apache-2.0
// String: a str that remembers the FFI string it came from, so that passing it back copies nothing.
//
// The FFI object gets a Python object of its own only when somebody asks for
// _tvm_ffi_cached_object.
//
// Shared state: TextObject::cached: used in the critical section of the text. HeldString asks only
// whether it is there, and either answer is right while it is being written.
#include <cstring>
#include <utility>

#include "python/base/entry.h"
#include "python/base/python_api.h"
#include "python/convert/convert.h"
#include "python/data/text.h"
#include "python/wrap/python_hooks.h"

namespace tether_py {

namespace {

struct TextObject {
  PyUnicodeObject base;
  TVMFFIObject* h;   // a strong reference; NULL for text made in Python
  PyObject* cached;  // what Python sees of h, or has put there; NULL until then
};

TextObject* AsText(PyObject* obj) { return reinterpret_cast<TextObject*>(obj); }

uint64_t WordAt(const char* data) {
  uint64_t word;
  std::memcpy(&word, data, sizeof(word));
  return word;
}

bool IsAscii(const char* data, size_t size) {
  constexpr uint64_t kHighBits = 0x8080808080808080u;
  uint64_t seen = 0;
  if (size >= sizeof(seen)) {
    const char* last = data + size - sizeof(seen);  // may overlap the word before it
    for (; data < last; data += sizeof(seen)) seen |= WordAt(data);
    seen |= WordAt(last);
  } else {
    for (; size > 0; ++data, --size) seen |= static_cast<unsigned char>(*data);
  }
  return (seen & kHighBits) == 0;
}

// Any text: CPython makes a str, and from that the instance of the subclass.
PyObject* MakeGeneral(const TVMFFIByteArray* bytes) {
  Ref text =
      Ref::Steal(PyUnicode_DecodeUTF8(bytes->data, static_cast<Py_ssize_t>(bytes->size), nullptr));
  Ref args = text ? Ref::Steal(PyTuple_Pack(1, text.get())) : Ref();
  return args ? PyUnicode_Type.tp_new(types.string, args.get(), nullptr) : nullptr;
}

void DeallocText(PyObject* self) {
  PyTypeObject* type = Py_TYPE(self);
  TextObject* text = AsText(self);
  if (text->h != nullptr) Engine::DropStrong(text->h);
  Py_XDECREF(text->cached);
  ForgetInlineText(self, sizeof(TextObject));
  PyUnicode_Type.tp_dealloc(self);
  Py_DECREF(type);
}

// Strings are values: the object behind one is not tied to the wrapper it gets here.
PyObject* WrapUntied(TVMFFIObject* h) {
  Wrapper* w = AllocateWrapper(reinterpret_cast<PyTypeObject*>(hooks.object_class));
  if (w == nullptr) return nullptr;
  Engine::AddStrong(h);
  Engine::Attach(w, h, nullptr);
  return AsObject(w);
}

PyObject* GetCached(PyObject* self, void*) {
  TextObject* text = AsText(self);
  CriticalSection section(self);
  if (text->h == nullptr && text->cached == nullptr) return Py_NewRef(Py_None);
  if (text->cached == nullptr) text->cached = WrapUntied(text->h);
  return Py_XNewRef(text->cached);
}

int SetCached(PyObject* self, PyObject* value, void*) {
  if (value == nullptr) {
    PyErr_SetString(PyExc_AttributeError, "_tvm_ffi_cached_object cannot be deleted");
    return -1;
  }
  Ref old;  // dropped last: that may run Python code
  CriticalSection section(self);
  old = Ref::Steal(std::exchange(AsText(self)->cached, Py_NewRef(value)));
  return 0;
}

PyGetSetDef text_getset[] = {
    {"_tvm_ffi_cached_object", Entry<GetCached>, Entry<SetCached>,
     "The FFI object this text came from, None if there is none.", nullptr},
    {nullptr, nullptr, nullptr, nullptr, nullptr}};

PyType_Slot text_slots[] = {
    {Py_tp_doc,
     const_cast<char*>(
         "A `str` that remembers the FFI string it came from, so passing it back copies nothing.\n"
         "\n"
         ">>> from tvm_ffi.core import String\n"
         ">>> String(\"hello\")[1:3], String(\"hello\") == \"hello\"\n"
         "('el', True)\n")},
    {Py_tp_dealloc, reinterpret_cast<void*>(DeallocText)},
    {Py_tp_getset, text_getset},
    {0, nullptr}};

PyType_Spec text_spec = {"tvm_ffi.core.String", sizeof(TextObject), 0,
                         Py_TPFLAGS_DEFAULT | Py_TPFLAGS_BASETYPE, text_slots};

PyObject* MakeStringType(PyObject*, PyObject* mixin) {
  Ref bases = Ref::Steal(PyTuple_Pack(2, &PyUnicode_Type, mixin));
  if (!bases) return nullptr;
  PyObject* type = PyType_FromSpecWithBases(&text_spec, bases.get());
  if (type == nullptr) return nullptr;
  types.string = reinterpret_cast<PyTypeObject*>(type);
  return Py_NewRef(type);
}

PyMethodDef text_functions[] = {{"_make_string_type", Entry<MakeStringType>, METH_O,
                                 "Make class String, once its mixin exists."},
                                {nullptr, nullptr, 0, nullptr}};

}  // namespace

PyObject* FromText(TVMFFIObject* h) {
  TVMFFIByteArray* bytes = TVMFFIBytesGetByteArrayPtr(h);
  PyObject* self;
  if (TVM_FFI_PREDICT_TRUE(IsAscii(bytes->data, bytes->size))) {
    self = NewInlineAsciiText(types.string, sizeof(TextObject), bytes->data, bytes->size);
  } else {
    self = MakeGeneral(bytes);
  }
  if (self == nullptr) {
    Engine::DropStrong(h);
    return nullptr;
  }
  AsText(self)->h = h;
  AsText(self)->cached = nullptr;
  return self;
}

bool IsText(PyObject* obj) { return PyObject_TypeCheck(obj, types.string); }

TVMFFIObject* HeldString(PyObject* obj) {
  // An object that Python stored there takes precedence; the caller reads it.
  return AsText(obj)->cached == nullptr ? AsText(obj)->h : nullptr;
}

int InitText(PyObject* module) { return PyModule_AddFunctions(module, text_functions); }

}  // namespace tether_py
