// SPDX-License-Identifier: Apache-2.0
// Any -> Python.
#include "python/base/python_api.h"
#include "python/convert/convert.h"
#include "python/data/device.h"
#include "python/data/dtype.h"
#include "python/data/shape.h"
#include "python/data/tensor.h"
#include "python/data/text.h"
#include "python/wrap/notes.h"
#include "python/wrap/python_hooks.h"

namespace tether_py {

using ffi::TypeIndex;

namespace {

// A bytes subclass instance that remembers the FFI object it came from. Takes over `h`.
PyObject* FromBytes(TVMFFIObject* h) {
  Wrapper* w = AllocateWrapper(reinterpret_cast<PyTypeObject*>(hooks.object_class));
  if (w == nullptr) {
    Engine::DropStrong(h);
    return nullptr;
  }
  // Byte strings are values: their objects are not tied.
  Engine::Attach(w, h, nullptr);
  Ref cached = Ref::Steal(AsObject(w));
  TVMFFIByteArray* bytes = TVMFFIBytesGetByteArrayPtr(h);
  Ref data =
      Ref::Steal(PyBytes_FromStringAndSize(bytes->data, static_cast<Py_ssize_t>(bytes->size)));
  Ref args = data ? Ref::Steal(PyTuple_Pack(1, data.get())) : Ref();
  if (!args) return nullptr;
  Ref result = Ref::Steal(
      PyBytes_Type.tp_new(reinterpret_cast<PyTypeObject*>(hooks.bytes_class), args.get(), nullptr));
  if (!result || PyObject_SetAttrString(result.get(), "_tvm_ffi_cached_object", cached.get()) < 0)
    return nullptr;
  return result.release();
}

// An integer outside int64: a plain int, which keeps nothing of the object.
PyObject* FromBigInt(const TVMFFIAny& value) {
  TVMFFIByteArray words = TVMFFIBigIntGetContentByteArray(&value);
  return IntFromWords(words.data, words.size);
}

PyObject* FromPointer(void* ptr) {
  PyObject* c_void_p = CVoidP();
  if (c_void_p == nullptr) return nullptr;
  if (ptr == nullptr) return PyObject_CallFunction(c_void_p, "O", Py_None);
  Ref address = Ref::Steal(PyLong_FromVoidPtr(ptr));
  return address ? PyObject_CallOneArg(c_void_p, address.get()) : nullptr;
}

// Everything that is not an object. `value` is not consumed.
PyObject* FromPod(const TVMFFIAny& value) {
  switch (value.type_index) {
    case TypeIndex::kTVMFFINone:
      Py_RETURN_NONE;
    case TypeIndex::kTVMFFIBool:
      return PyBool_FromLong(value.v_int64 != 0);
    case TypeIndex::kTVMFFIInt:
      return IntFromInt64(value.v_int64);
    case TypeIndex::kTVMFFIFloat:
      return PyFloat_FromDouble(value.v_float64);
    case TypeIndex::kTVMFFISmallStr:
      return PyUnicode_DecodeUTF8(value.v_bytes, value.small_str_len, nullptr);
    case TypeIndex::kTVMFFISmallBytes:
      return PyBytes_FromStringAndSize(value.v_bytes, value.small_str_len);
    case TypeIndex::kTVMFFIOpaquePtr:
      return FromPointer(value.v_ptr);
    case TypeIndex::kTVMFFIDataType:
      return FromDataType(value.v_dtype);
    case TypeIndex::kTVMFFIDevice:
      return FromDevice(value.v_device);
    case TypeIndex::kTVMFFIDLTensorPtr:
      return RefuseLent();
    case TypeIndex::kTVMFFIRawStr:
      return PyErr_Format(PyExc_ValueError, "Return value cannot be RawStr");
    case TypeIndex::kTVMFFIByteArrayPtr:
      return PyErr_Format(PyExc_ValueError, "Return value cannot be ByteArrayPtr");
    case TypeIndex::kTVMFFIObjectRValueRef:
      return PyErr_Format(PyExc_ValueError, "Return value cannot be ObjectRValueRef");
    default:
      return PyErr_Format(PyExc_ValueError, "Unhandled type index %d", value.type_index);
  }
}

PyObject* FromOpaque(TVMFFIObject* h) {
  return Py_NewRef(static_cast<PyObject*>(TVMFFIOpaqueObjectGetCellPtr(h)->handle));
}

// A container from a call with framework tensors gives its tensors as tensors of that framework.
TVM_FFI_NO_INLINE PyObject* Tag(PyObject* obj, const DLPackExchangeAPI* api) {
  if (obj == nullptr || !PyObject_TypeCheck(obj, types.container)) return obj;
  if (Notes::Set(obj, api)) return obj;
  Py_DECREF(obj);
  return nullptr;
}
PyObject* Tagged(PyObject* obj, const DLPackExchangeAPI* api) {
  return TVM_FFI_PREDICT_TRUE(api == nullptr) ? obj : Tag(obj, api);
}

}  // namespace

PyObject* FromOwnedAnySlow(const TVMFFIAny& value, const DLPackExchangeAPI* api) {
  if (value.type_index < TypeIndex::kTVMFFIStaticObjectBegin) return FromPod(value);
  TVMFFIObject* h = value.v_obj;
  switch (h->type_index) {
    case TypeIndex::kTVMFFIStr:
      return FromText(h);
    case TypeIndex::kTVMFFIBytes:
      return FromBytes(h);
    case TypeIndex::kTVMFFIOpaquePyObject: {
      PyObject* obj = FromOpaque(h);
      Engine::DropStrong(h);
      return obj;
    }
    case TypeIndex::kTVMFFIBigInt: {
      PyObject* number = FromBigInt(value);
      Engine::DropStrong(h);
      return number;
    }
    case TypeIndex::kTVMFFIShape:
      return FromShape(h);
    case TypeIndex::kTVMFFITensor:
      return FromTensor(h, api);
    default:
      return Tagged(WrapOwned(h), api);
  }
}

PyObject* FromArgumentSlow(const TVMFFIAny& value, const DLPackExchangeAPI* api) {
  if (value.type_index == TypeIndex::kTVMFFIDLTensorPtr) {
    return FromTensorView(static_cast<DLTensor*>(value.v_ptr));
  }
  return FromBorrowedAnySlow(value, api);
}

PyObject* FromBorrowedAnySlow(const TVMFFIAny& value, const DLPackExchangeAPI* api) {
  if (value.type_index < TypeIndex::kTVMFFIStaticObjectBegin) {
    switch (value.type_index) {
      case TypeIndex::kTVMFFIRawStr:
        return PyUnicode_FromString(value.v_c_str);
      case TypeIndex::kTVMFFIByteArrayPtr: {
        auto* bytes = static_cast<TVMFFIByteArray*>(value.v_ptr);
        return PyBytes_FromStringAndSize(bytes->data, static_cast<Py_ssize_t>(bytes->size));
      }
      case TypeIndex::kTVMFFIObjectRValueRef: {
        auto** slot = static_cast<TVMFFIObject**>(value.v_ptr);
        TVMFFIAny moved;
        if (*slot == nullptr) return PyErr_Format(PyExc_ValueError, "RValueRef already moved");
        tie::StoreObject(*slot, &moved);
        *slot = nullptr;
        return FromOwnedAny(moved, api);
      }
      default:
        return FromPod(value);
    }
  }
  TVMFFIObject* h = value.v_obj;
  switch (h->type_index) {
    case TypeIndex::kTVMFFIStr:
      Engine::AddStrong(h);
      return FromText(h);
    case TypeIndex::kTVMFFIBytes:
      Engine::AddStrong(h);
      return FromBytes(h);
    case TypeIndex::kTVMFFIOpaquePyObject:
      return FromOpaque(h);
    case TypeIndex::kTVMFFIBigInt:
      return FromBigInt(value);
    case TypeIndex::kTVMFFIShape:
      Engine::AddStrong(h);
      return FromShape(h);
    case TypeIndex::kTVMFFITensor:
      if (api == nullptr) return WrapBorrowed(h);
      Engine::AddStrong(h);
      return FromTensor(h, api);
    default:
      return Tagged(WrapBorrowed(h), api);
  }
}

}  // namespace tether_py
