// SPDX-License-Identifier: Apache-2.0
// Conversion of values to what a TypeSchema declares.
//
// A schema compiles to a tree of _TypeConverter nodes, immutable once built. A node takes a Python
// value (Convert) or a cell of an FFI container or field (ConvertCell) and gives an owned value, a
// mismatch with its message, or a Python exception. Cells that fit are copied without ever becoming
// Python objects.
#include <tvm/ffi/container/array.h>
#include <tvm/ffi/container/dict.h>
#include <tvm/ffi/container/list.h>
#include <tvm/ffi/container/map.h>
#include <tvm/ffi/dtype.h>
#include <tvm/ffi/function.h>
#include <tvm/ffi/string.h>

#include <cstring>
#include <string>
#include <utility>

#include "python/base/entry.h"
#include "python/base/python_api.h"
#include "python/call/function.h"
#include "python/convert/convert.h"
#include "python/convert/errors.h"
#include "python/data/device.h"
#include "python/data/dtype.h"
#include "python/schema/schema.h"
#include "python/wrap/object_lock.h"

namespace tether_py {

using ffi::TypeIndex;

namespace {

enum class Kind : uint8_t {
  kAny,
  kNone,
  kInt,
  kFloat,
  kBool,
  kStr,
  kBytes,
  kDevice,
  kDataType,
  kPointer,
  kTensor,
  kCallable,
  kArray,
  kList,
  kTuple,
  kMap,
  kDict,
  kOptional,
  kUnion,
  kObject,
};

constexpr const char* kKindNames[] = {
    "Any",    "None",     "int",   "float", "bool",  "str", "bytes", "Device",   "dtype", "pointer",
    "Tensor", "Callable", "Array", "List",  "tuple", "Map", "Dict",  "Optional", "Union", "object"};

struct Node {
  PyObject_HEAD Kind kind;
  int32_t target;    // kObject: the type index to reach
  PyObject* hint;    // what messages call the target
  PyObject* args;    // tuple of nodes; NULL for a tuple of any length
  PyObject* member;  // payload enums: callable from a payload, which args[0] checks, to the member
};

const Node* ArgOf(const Node* node, Py_ssize_t i) {
  return reinterpret_cast<Node*>(PyTuple_GET_ITEM(node->args, i));
}

Py_ssize_t NumArgs(const Node* node) {
  return node->args != nullptr ? PyTuple_GET_SIZE(node->args) : 0;
}

enum class Outcome : uint8_t {
  kDone,
  kMismatch,  // with a message
  kRaised,    // with a Python error set
};

struct Result {
  ffi::Any value;
  std::string message;
};

Outcome Convert(const Node* node, PyObject* value, Result* result);
Outcome ConvertPlain(const Node* node, PyObject* value, Result* result);
Outcome ConvertCell(const Node* node, const TVMFFIAny& cell, Result* result);

// ---- messages ----

std::string TextOf(PyObject* text) {
  Py_ssize_t size;
  const char* data = text != nullptr ? PyUnicode_AsUTF8AndSize(text, &size) : nullptr;
  if (data == nullptr) {
    PyErr_Clear();
    return "?";
  }
  return std::string(data, static_cast<size_t>(size));
}

std::string ReprOf(PyObject* value) { return TextOf(Ref::Steal(PyObject_Repr(value)).get()); }

std::string QualifiedName(PyObject* value) {
  PyObject* type = reinterpret_cast<PyObject*>(Py_TYPE(value));
  return TextOf(Ref::Steal(PyObject_GetAttrString(type, "__qualname__")).get());
}

// type(value).__name__
std::string TypeName(PyObject* value) {
  const char* name = Py_TYPE(value)->tp_name;
  const char* dot = std::strrchr(name, '.');
  return dot != nullptr ? dot + 1 : name;
}

std::string TypeKeyOf(int32_t type_index) {
  const TVMFFIByteArray& key = TVMFFIGetTypeInfo(type_index)->type_key;
  return std::string(key.data, key.size);
}

// An FFI object is called by the key of its class, or, when nobody registered that, by its own.
std::string DescribeWrapper(PyObject* value) {
  Ref info =
      Ref::Steal(PyObject_CallMethod(core_module, "_type_cls_to_type_info", "O", Py_TYPE(value)));
  if (info && info.get() != Py_None) {
    return TextOf(Ref::Steal(PyObject_GetAttrString(info.get(), "type_key")).get());
  }
  PyErr_Clear();
  CriticalSection section(value);
  TVMFFIObject* h = Engine::Use(AsWrapper(value));
  return h != nullptr ? TypeKeyOf(h->type_index) : QualifiedName(value);
}

std::string Describe(PyObject* value) {
  if (value == Py_None) return "None";
  if (PyBool_Check(value)) return "bool";
  if (PyLong_Check(value)) return "int";
  if (PyFloat_Check(value)) return "float";
  if (PyUnicode_Check(value)) return "str";
  if (PyBytes_Check(value) || PyByteArray_Check(value)) return "bytes";
  return IsWrapper(value) ? DescribeWrapper(value) : QualifiedName(value);
}

Outcome Mismatch(Result* result, std::string message) {
  result->message = std::move(message);
  return Outcome::kMismatch;
}

Outcome Unexpected(const Node* node, PyObject* value, Result* result) {
  return Mismatch(result, "expected " + TextOf(node->hint) + ", got " + Describe(value));
}

Outcome Prefixed(std::string prefix, Result* result) {
  result->message.insert(0, prefix);
  return Outcome::kMismatch;
}

// What may be reported as a mismatch: ordinary exceptions, neither interrupts nor a full stack.
bool IsOrdinaryError() {
  return PyErr_ExceptionMatches(PyExc_Exception) && !PyErr_ExceptionMatches(PyExc_RecursionError);
}

// Takes the pending exception away and returns its text.
std::string TakeErrorText() {
  PyObject *type, *value, *traceback;
  PyErr_Fetch(&type, &value, &traceback);
  PyErr_NormalizeException(&type, &value, &traceback);
  Ref held_type = Ref::Steal(type), exc = Ref::Steal(value), tb = Ref::Steal(traceback);
  return exc ? TextOf(Ref::Steal(PyObject_Str(exc.get())).get()) : "?";
}

// The pending exception as "expected X, got Y: why".
Outcome PackingFailed(const Node* node, PyObject* value, Result* result) {
  if (!IsOrdinaryError()) return Outcome::kRaised;
  std::string why = TakeErrorText();
  Unexpected(node, value, result);
  result->message += ": " + why;
  return Outcome::kMismatch;
}

// The pending exception as "int() failed for Y: why".
Outcome CallFailed(const char* what, PyObject* value, Result* result) {
  if (!IsOrdinaryError()) return Outcome::kRaised;
  std::string why = TakeErrorText();
  return Mismatch(result, std::string(what) + " failed for " + QualifiedName(value) + ": " + why);
}

// ---- values ----

Outcome Done(ffi::Any value, Result* result) {
  result->value = std::move(value);
  return Outcome::kDone;
}

Outcome Pack(const Node* node, PyObject* value, Result* result) {
  return ToOwnedAny(value, &result->value) ? Outcome::kDone : PackingFailed(node, value, result);
}

// Packs, and insists that one kind of value comes out.
Outcome PackAs(const Node* node, PyObject* value, int32_t type_index, Result* result) {
  Outcome outcome = Pack(node, value, result);
  if (outcome != Outcome::kDone || result->value.type_index() == type_index) return outcome;
  return Unexpected(node, value, result);
}

bool HasAttr(PyObject* value, const char* name) { return HasMethod(Py_TYPE(value), name); }

// 1 or 0, or -1 with an error set. A value cannot be of a class whose module nobody imported.
int IsInstanceOfLoaded(PyObject* value, const char* module, const char* name) {
  Ref module_name = Ref::Steal(PyUnicode_FromString(module));
  Ref loaded = module_name ? Ref::Steal(PyImport_GetModule(module_name.get())) : Ref();
  if (!loaded) return PyErr_Occurred() ? -1 : 0;
  Ref cls = Ref::Steal(PyObject_GetAttrString(loaded.get(), name));
  if (!cls) {
    PyErr_Clear();
    return 0;
  }
  return PyObject_IsInstance(value, cls.get());
}

Outcome ConvertNumber(const Node* node, PyObject* value, Result* result) {
  const char* call = node->kind == Kind::kInt ? "int()" : "float()";
  Ref number = Ref::Steal(node->kind == Kind::kInt ? PyNumber_Long(value) : PyNumber_Float(value));
  if (!number) return CallFailed(call, value, result);
  if (node->kind == Kind::kFloat) return Done(PyFloat_AS_DOUBLE(number.get()), result);
  int overflow = 0;
  long long converted = PyLong_AsLongLongAndOverflow(number.get(), &overflow);
  if (overflow == 0) return Done(static_cast<int64_t>(converted), result);
  Ref text = TextOfInt(number.get());
  if (!text) return Outcome::kRaised;
  return Mismatch(result, "integer " + TextOf(text.get()) +
                              " out of int64 range [-9223372036854775808, 9223372036854775807]");
}

// A number from the method by which a class offers one.
Outcome ConvertByMethod(const Node* node, PyObject* value, const char* method, Result* result) {
  if (!HasAttr(value, method)) return Unexpected(node, value, result);
  Ref number = Ref::Steal(PyObject_CallMethod(value, method, nullptr));
  if (number && node->kind == Kind::kInt) {
    number = Ref::Steal(PyNumber_Index(number.get()));
  } else if (number && !PyFloat_Check(number.get())) {
    double converted = PyFloat_AsDouble(number.get());
    bool failed = converted == -1.0 && PyErr_Occurred();
    number = failed ? Ref() : Ref::Steal(PyFloat_FromDouble(converted));
  }
  return number ? ConvertNumber(node, number.get(), result) : PackingFailed(node, value, result);
}

Outcome ConvertInt(const Node* node, PyObject* value, Result* result) {
  if (TVM_FFI_PREDICT_TRUE(PyLong_CheckExact(value))) {
    int overflow = 0;
    long long converted = PyLong_AsLongLongAndOverflow(value, &overflow);
    if (overflow == 0) return Done(static_cast<int64_t>(converted), result);
  }
  if (PyLong_Check(value)) return ConvertNumber(node, value, result);
  int is = IsInstanceOfLoaded(value, "numbers", "Integral");
  if (is < 0) return Outcome::kRaised;
  return is > 0 ? ConvertNumber(node, value, result)
                : ConvertByMethod(node, value, "__tvm_ffi_int__", result);
}

Outcome ConvertFloat(const Node* node, PyObject* value, Result* result) {
  if (PyFloat_Check(value)) return Done(PyFloat_AS_DOUBLE(value), result);
  if (PyLong_Check(value)) return ConvertNumber(node, value, result);
  int is = IsInstanceOfLoaded(value, "numbers", "Real");
  if (is < 0) return Outcome::kRaised;
  return is > 0 ? ConvertNumber(node, value, result)
                : ConvertByMethod(node, value, "__tvm_ffi_float__", result);
}

Outcome ConvertBool(const Node* node, PyObject* value, Result* result) {
  if (PyBool_Check(value)) return Done(value == Py_True, result);
  int is = PyLong_Check(value) ? 1 : IsInstanceOfLoaded(value, "numbers", "Integral");
  if (is == 0) is = IsInstanceOfLoaded(value, "numpy", "bool_");  // which is no number to Python
  if (is == 0) return Unexpected(node, value, result);
  int truth = is < 0 ? -1 : PyObject_IsTrue(value);
  if (is < 0) return Outcome::kRaised;
  return truth < 0 ? CallFailed("bool()", value, result) : Done(truth != 0, result);
}

Outcome ConvertText(const Node* node, PyObject* value, Result* result) {
  bool fits = node->kind == Kind::kStr ? PyUnicode_Check(value) != 0
                                       : PyBytes_Check(value) || PyByteArray_Check(value);
  if (!fits) return Unexpected(node, value, result);
  // A text that Python can hold and UTF-8 cannot is not a matter of types.
  return ToOwnedAny(value, &result->value) ? Outcome::kDone : Outcome::kRaised;
}

Outcome ConvertDevice(const Node* node, PyObject* value, Result* result) {
  if (!PyUnicode_Check(value)) {
    int is = IsInstanceOfLoaded(value, "tvm_ffi.core", "Device");
    if (is < 0) return Outcome::kRaised;
    if (is == 0 && (!HasAttr(value, "__dlpack_device__") || HasAttr(value, "__dlpack__"))) {
      return Unexpected(node, value, result);
    }
    return PackAs(node, value, TypeIndex::kTVMFFIDevice, result);
  }
  Ref device = Ref::Steal(PyObject_CallMethod(core_module, "_CLASS_DEVICE", "O", value));
  if (device) return PackAs(node, device.get(), TypeIndex::kTVMFFIDevice, result);
  if (!IsOrdinaryError()) return Outcome::kRaised;
  PyErr_Clear();
  return Mismatch(result, "expected Device, got invalid device string " + ReprOf(value));
}

// 1 or 0, or -1 with an error set: instances that packing turns into a dtype.
int IsDataType(PyObject* value) {
  if (HasAttr(value, "__dlpack_data_type__")) return 1;
  constexpr const char* kClasses[][2] = {{"tvm_ffi.core", "DataType"},
                                         {"tvm_ffi.core", "_CLASS_DTYPE"},
                                         {"numpy", "dtype"},
                                         {"torch", "dtype"}};
  for (auto& [module, name] : kClasses) {
    int is = IsInstanceOfLoaded(value, module, name);
    if (is != 0) return is;
  }
  return 0;
}

Outcome ConvertDataType(const Node* node, PyObject* value, Result* result) {
  int is = IsDataType(value);
  if (is < 0) return Outcome::kRaised;
  if (is > 0) return PackAs(node, value, TypeIndex::kTVMFFIDataType, result);
  if (!PyUnicode_Check(value)) return Unexpected(node, value, result);
  try {
    Py_ssize_t size;
    const char* data = PyUnicode_AsUTF8AndSize(value, &size);
    if (data == nullptr) return Outcome::kRaised;
    return Done(ffi::StringToDLDataType(ffi::String(data, static_cast<size_t>(size))), result);
  } catch (const ffi::Error&) {
    return Mismatch(result, "expected dtype, got invalid dtype string " + ReprOf(value));
  }
}

Outcome ConvertPointer(const Node* node, PyObject* value, Result* result) {
  if (value == Py_None) return Done(static_cast<void*>(nullptr), result);
  int is = HasAttr(value, "__tvm_ffi_opaque_ptr__") || HasAttr(value, "__cuda_stream__")
               ? 1
               : IsInstanceOfLoaded(value, "ctypes", "c_void_p");
  if (is < 0) return Outcome::kRaised;
  if (is == 0) return Unexpected(node, value, result);
  return PackAs(node, value, TypeIndex::kTVMFFIOpaquePtr, result);
}

bool UsesExchangeAPI(PyObject* value) {
  if (!HasAttr(value, "__dlpack_c_exchange_api__")) return false;
  const char* skip = std::getenv("TVM_FFI_SKIP_DLPACK_C_EXCHANGE_API");
  return skip == nullptr || std::strcmp(skip, "1") != 0;
}

Outcome ConvertTensor(const Node* node, PyObject* value, Result* result) {
  if (!IsWrapper(value) && !HasAttr(value, "__dlpack__") && !UsesExchangeAPI(value)) {
    return Unexpected(node, value, result);
  }
  return PackAs(node, value, TypeIndex::kTVMFFITensor, result);
}

// The object of a wrapper, held. Null with an error set.
ffi::ObjectRef HeldObject(PyObject* wrapper) {
  TVMFFIObject* h = HoldHandle(AsWrapper(wrapper));
  return ffi::ObjectRef(ffi::details::ObjectUnsafe::ObjectPtrFromOwned<ffi::Object>(h));
}

Outcome ConvertCallable(const Node* node, PyObject* value, Result* result) {
  if (!IsWrapper(value)) {
    if (!PyCallable_Check(value)) return Unexpected(node, value, result);
    return Done(MakeCallback(value), result);
  }
  ffi::ObjectRef object = HeldObject(value);
  if (!object.defined()) return Outcome::kRaised;
  if (object.type_index() != TypeIndex::kTVMFFIFunction) return Unexpected(node, value, result);
  return Done(std::move(object), result);
}

// ---- sequences ----

const TVMFFIAny& CellIn(const ffi::Any& value) {
  return *ffi::details::AnyUnsafe::TVMFFIAnyPtrFromAny(value);
}

// Whether a conversion gave back what it was given.
bool IsSameCell(const ffi::Any& before, const ffi::Any& after) {
  const TVMFFIAny &a = CellIn(before), &b = CellIn(after);
  return a.type_index == b.type_index && a.zero_padding == b.zero_padding && a.v_int64 == b.v_int64;
}

// The node of a container's part, or NULL when that part stays as it is.
const Node* PartNode(const Node* node, Py_ssize_t i) {
  const Node* part = ArgOf(node, i);
  return part->kind != Kind::kAny ? part : nullptr;
}

const Node* ElementNode(const Node* node, Py_ssize_t i) {
  return node->args != nullptr ? PartNode(node, node->kind == Kind::kTuple ? i : 0) : nullptr;
}

std::string ElementPrefix(Py_ssize_t i) { return "element [" + std::to_string(i) + "]: "; }

ffi::Any MakeSequence(const Node* node, ffi::Array<ffi::Any> elements) {
  if (node->kind != Kind::kList) return elements;
  return ffi::List<ffi::Any>(elements.begin(), elements.end());
}

bool LengthFits(const Node* node, Py_ssize_t size) {
  return node->kind != Kind::kTuple || node->args == nullptr || NumArgs(node) == size;
}

Outcome WrongLength(const Node* node, const std::string& type_name, Py_ssize_t size,
                    Result* result) {
  return Mismatch(result, "expected tuple of length " + std::to_string(NumArgs(node)) + ", got " +
                              type_name + " of length " + std::to_string(size));
}

// The parts of containers: a value of Python, or NULL node for one that stays as packing makes it.
Outcome ConvertPart(const Node* node, PyObject* value, Result* result) {
  if (node != nullptr) return Convert(node, value, result);
  return ToOwnedAny(value, &result->value) ? Outcome::kDone : Outcome::kRaised;
}

// The same for a value of the FFI.
Outcome ConvertPart(const Node* node, const ffi::Any& value, Result* result) {
  return node != nullptr ? ConvertCell(node, CellIn(value), result) : Done(value, result);
}

// A list or tuple of Python.
Outcome ConvertItems(const Node* node, PyObject* value, Result* result) {
  // A copy of the references: converting an element may run Python code that changes the list.
  Ref items = Ref::Steal(PySequence_Tuple(value));
  if (!items) return Outcome::kRaised;
  Py_ssize_t size = PyTuple_GET_SIZE(items.get());
  if (!LengthFits(node, size)) return WrongLength(node, TypeName(value), size, result);
  ffi::Array<ffi::Any> elements;
  elements.reserve(size);
  for (Py_ssize_t i = 0; i < size; ++i) {
    Outcome outcome = ConvertPart(ElementNode(node, i), PyTuple_GET_ITEM(items.get(), i), result);
    if (outcome == Outcome::kMismatch) return Prefixed(ElementPrefix(i), result);
    if (outcome != Outcome::kDone) return outcome;
    elements.push_back(std::move(result->value));
  }
  return Done(MakeSequence(node, std::move(elements)), result);
}

// An Array or List of the FFI; it comes back itself when its kind is right and no element changes.
Outcome ConvertSequence(const Node* node, const ffi::ObjectRef& object,
                        const std::string& type_name, Result* result) {
  // The elements as they are now: a List may change while Python code converts them.
  ffi::Array<ffi::Any> before(ffi::UnsafeInit{});
  {
    LookAtObject look(ffi::details::ObjectUnsafe::TVMFFIObjectPtrFromObjectRef(object));
    auto* seq = static_cast<const ffi::SeqBaseObj*>(object.get());
    before = ffi::Array<ffi::Any>(seq->begin(), seq->end());
  }
  auto size = static_cast<Py_ssize_t>(before.size());
  if (!LengthFits(node, size)) return WrongLength(node, type_name, size, result);
  ffi::Array<ffi::Any> elements;
  elements.reserve(size);
  bool changed = object.type_index() !=
                 (node->kind == Kind::kList ? TypeIndex::kTVMFFIList : TypeIndex::kTVMFFIArray);
  for (Py_ssize_t i = 0; i < size; ++i) {
    const Node* element = ElementNode(node, i);
    Outcome outcome = ConvertPart(element, before[i], result);
    if (outcome == Outcome::kMismatch) return Prefixed(ElementPrefix(i), result);
    if (outcome != Outcome::kDone) return outcome;
    changed = changed || (element != nullptr && !IsSameCell(before[i], result->value));
    elements.push_back(std::move(result->value));
  }
  return Done(changed ? MakeSequence(node, std::move(elements)) : ffi::Any(object), result);
}

bool IsSequenceIndex(int32_t index) {
  return index == TypeIndex::kTVMFFIArray || index == TypeIndex::kTVMFFIList;
}

Outcome ConvertToSequence(const Node* node, PyObject* value, Result* result) {
  if (PyList_Check(value) || PyTuple_Check(value)) return ConvertItems(node, value, result);
  if (!IsWrapper(value)) return Unexpected(node, value, result);
  ffi::ObjectRef object = HeldObject(value);
  if (!object.defined()) return Outcome::kRaised;
  if (!IsSequenceIndex(object.type_index())) return Unexpected(node, value, result);
  return ConvertSequence(node, object, TypeName(value), result);
}

// ---- maps ----

// Collects converted entries into a new container of the node's kind.
class Entries {
 public:
  explicit Entries(const Node* node) : node_(node) {}

  // `key` and `value` are both PyObject* or both ffi::Any.
  template <typename T>
  Outcome Add(const T& key, const T& value, Result* result) {
    Outcome outcome = ConvertPart(PartNode(node_, 0), key, result);
    if (outcome == Outcome::kMismatch) return Prefixed("key " + KeyRepr(key) + ": ", result);
    if (outcome != Outcome::kDone) return outcome;
    ffi::Any converted_key = std::move(result->value);
    outcome = ConvertPart(PartNode(node_, 1), value, result);
    if (outcome == Outcome::kMismatch) {
      return Prefixed("value for key " + KeyRepr(key) + ": ", result);
    }
    if (outcome != Outcome::kDone) return outcome;
    if constexpr (std::is_same_v<T, ffi::Any>) {
      changed_ = changed_ || IsChanged(0, key, converted_key) || IsChanged(1, value, result->value);
    }
    if (node_->kind == Kind::kDict) {
      dict_.Set(std::move(converted_key), std::move(result->value));
    } else {
      map_.Set(std::move(converted_key), std::move(result->value));
    }
    return Outcome::kDone;
  }

  bool changed() const { return changed_; }
  bool IsUntyped() const { return PartNode(node_, 0) == nullptr && PartNode(node_, 1) == nullptr; }
  ffi::Any Take() {
    return node_->kind == Kind::kDict ? ffi::Any(std::move(dict_)) : ffi::Any(std::move(map_));
  }

 private:
  bool IsChanged(Py_ssize_t part, const ffi::Any& before, const ffi::Any& after) const {
    return PartNode(node_, part) != nullptr && !IsSameCell(before, after);
  }
  static std::string KeyRepr(PyObject* key) { return ReprOf(key); }
  static std::string KeyRepr(const ffi::Any& key) {
    Ref value = Ref::Steal(FromBorrowedAny(CellIn(key)));
    if (value) return ReprOf(value.get());
    PyErr_Clear();
    return "?";
  }

  const Node* node_;
  ffi::Map<ffi::Any, ffi::Any> map_;
  ffi::Dict<ffi::Any, ffi::Any> dict_;
  bool changed_ = false;
};

// A dict or another Mapping of Python.
Outcome ConvertMapping(const Node* node, PyObject* value, Result* result) {
  Ref items = Ref::Steal(PyMapping_Items(value));
  if (!items) return PackingFailed(node, value, result);
  Entries entries(node);
  for (Py_ssize_t i = 0; i < PyList_GET_SIZE(items.get()); ++i) {
    Ref pair = Ref::Steal(
        PySequence_Fast(PyList_GET_ITEM(items.get(), i), "items() must give pairs of key, value"));
    if (!pair) return PackingFailed(node, value, result);
    if (PySequence_Fast_GET_SIZE(pair.get()) != 2) return Unexpected(node, value, result);
    Outcome outcome = entries.Add(PySequence_Fast_GET_ITEM(pair.get(), 0),
                                  PySequence_Fast_GET_ITEM(pair.get(), 1), result);
    // Packing what no node looks at is packing the mapping itself.
    if (outcome == Outcome::kRaised && entries.IsUntyped()) {
      return PackingFailed(node, value, result);
    }
    if (outcome != Outcome::kDone) return outcome;
  }
  return Done(entries.Take(), result);
}

// A Map or Dict of the FFI; it comes back itself when its kind is right and no entry changes.
Outcome ConvertMap(const Node* node, const ffi::ObjectRef& object, Result* result) {
  // The entries as they are now: a Dict may change while Python code converts them.
  std::vector<std::pair<ffi::Any, ffi::Any>> before;
  {
    LookAtObject look(ffi::details::ObjectUnsafe::TVMFFIObjectPtrFromObjectRef(object));
    auto* map = static_cast<const ffi::MapBaseObj*>(object.get());
    before.reserve(map->size());
    for (auto it = map->begin(); it != map->end(); ++it) before.emplace_back(*it);
  }
  Entries entries(node);
  for (const auto& [key, value] : before) {
    Outcome outcome = entries.Add(key, value, result);
    if (outcome != Outcome::kDone) return outcome;
  }
  int32_t wanted = node->kind == Kind::kDict ? TypeIndex::kTVMFFIDict : TypeIndex::kTVMFFIMap;
  bool same = object.type_index() == wanted && !entries.changed();
  return Done(same ? ffi::Any(object) : entries.Take(), result);
}

bool IsMapIndex(int32_t index) {
  return index == TypeIndex::kTVMFFIMap || index == TypeIndex::kTVMFFIDict;
}

Outcome ConvertToMap(const Node* node, PyObject* value, Result* result) {
  if (PyDict_Check(value)) return ConvertMapping(node, value, result);
  if (!IsWrapper(value)) {
    int is = IsInstanceOfLoaded(value, "collections.abc", "Mapping");
    if (is < 0) return Outcome::kRaised;
    return is > 0 ? ConvertMapping(node, value, result) : Unexpected(node, value, result);
  }
  ffi::ObjectRef object = HeldObject(value);
  if (!object.defined()) return Outcome::kRaised;
  if (!IsMapIndex(object.type_index())) return Unexpected(node, value, result);
  return ConvertMap(node, object, result);
}

// ---- objects ----

bool Fits(const Node* node, int32_t type_index) {
  return type_index >= TypeIndex::kTVMFFIStaticObjectBegin &&
         (type_index == node->target ||
          ffi::details::RuntimeTypeIndexMatch(type_index, node->target));
}

// The hook by which a type accepts values that are not objects of it, or NULL.
const TVMFFIAny* ConvertHook(int32_t type_index) {
  constexpr const char kName[] = "__ffi_convert__";
  TVMFFIByteArray name{kName, sizeof(kName) - 1};
  const TVMFFITypeAttrColumn* column = TVMFFIGetTypeAttrColumn(&name);
  if (column == nullptr) return nullptr;
  int32_t i = type_index - column->begin_index;
  if (i < 0 || i >= column->size) return nullptr;
  const TVMFFIAny* hook = &column->data[i];
  return hook->type_index == TypeIndex::kTVMFFIFunction ? hook : nullptr;
}

std::string Indented(const std::string& text) {
  std::string result = "    ";
  for (char c : text) {
    result += c;
    if (c == '\n') result += "    ";
  }
  return result;
}

// Asks the type's own hook; what it says goes to the end of the message.
Outcome ConvertByHook(const Node* node, PyObject* value, const TVMFFIAny& hook, Result* result) {
  TVMFFIAny packed = CellIn(result->value);
  TVMFFIAny converted;
  tie::StoreNone(&converted);
  int code = TVMFFIFunctionCall(hook.v_obj, &packed, 1, &converted);
  if (code == 0) {
    result->value = ffi::details::AnyUnsafe::MoveTVMFFIAnyToAny(&converted);
    if (Fits(node, result->value.type_index())) return Outcome::kDone;
    return Unexpected(node, value, result);
  }
  RaiseFromCall(code);
  if (!IsOrdinaryError()) return Outcome::kRaised;
  std::string why = TakeErrorText();
  Unexpected(node, value, result);
  result->message += "\n  __ffi_convert__ failed:\n" + Indented(why);
  return Outcome::kMismatch;
}

// The member of an enum class that bears a payload. A mismatch without message: no such member.
Outcome ConvertPayload(const Node* node, PyObject* value, Result* result) {
  const Node* payload_node = ArgOf(node, 0);
  Outcome outcome = Convert(payload_node, value, result);
  // An integer beyond int64 is told so; any other value is just not a payload.
  bool is_range_error = payload_node->kind == Kind::kInt && PyLong_Check(value);
  if (outcome == Outcome::kMismatch && !is_range_error) result->message.clear();
  if (outcome != Outcome::kDone) return outcome;
  Ref payload = Ref::Steal(FromBorrowedAny(CellIn(result->value)));
  Ref member = payload ? Ref::Steal(PyObject_CallOneArg(node->member, payload.get())) : Ref();
  if (!member) return Outcome::kRaised;
  if (!IsWrapper(member.get())) return Outcome::kMismatch;
  ffi::ObjectRef object = HeldObject(member.get());
  if (!object.defined()) return Outcome::kRaised;
  return Done(std::move(object), result);
}

Outcome ConvertObject(const Node* node, PyObject* value, Result* result) {
  if (IsWrapper(value)) {
    ffi::ObjectRef object = HeldObject(value);
    if (!object.defined()) return Outcome::kRaised;
    if (Fits(node, object.type_index())) return Done(std::move(object), result);
  } else if (node->member != nullptr) {
    Outcome outcome = ConvertPayload(node, value, result);
    if (outcome != Outcome::kMismatch || !result->message.empty()) return outcome;
  }
  Outcome outcome = Pack(node, value, result);
  if (outcome != Outcome::kDone || Fits(node, result->value.type_index())) return outcome;
  const TVMFFIAny* hook = ConvertHook(node->target);
  return hook != nullptr ? ConvertByHook(node, value, *hook, result)
                         : Unexpected(node, value, result);
}

// ---- values that stand for others ----

bool IsBuiltin(PyTypeObject* type) {
  return type == &PyLong_Type || type == &PyUnicode_Type || type == &PyFloat_Type ||
         type == &PyBool_Type || type == &PyList_Type || type == &PyTuple_Type ||
         type == &PyDict_Type || type == &PyBytes_Type || type == Py_TYPE(Py_None);
}

// The node whose failure a value that cannot be unwrapped is reported as.
const Node* ReportingNode(const Node* node) {
  while (node->kind == Kind::kOptional) node = ArgOf(node, 0);
  return node;
}

Outcome UnwrapFailed(const Node* node, PyObject* value, Result* result) {
  node = ReportingNode(node);
  if (node->kind != Kind::kAny) return Unexpected(node, value, result);
  return Mismatch(result, "failed to convert Any from " + Describe(value));
}

// Calls a conversion method. A null reference: the outcome is in *outcome.
Ref CallProtocol(PyObject* value, const char* method, Outcome* outcome, Result* result) {
  Ref replacement = Ref::Steal(PyObject_CallMethod(value, method, nullptr));
  if (replacement) return replacement;
  *outcome = Outcome::kRaised;
  if (!IsOrdinaryError()) return replacement;
  PyErr_Clear();
  *outcome = Mismatch(result, std::string(method) + "() failed for " + Describe(value));
  return replacement;
}

// One step of unwrapping. kDone with *value unchanged: it stands for itself.
Outcome UnwrapOnce(const Node* node, Ref* value, Result* result) {
  PyObject* current = value->get();
  if (IsWrapper(current) || PyObject_TypeCheck(current, types.rvalue_ref)) return Outcome::kDone;
  int is = IsInstanceOfLoaded(current, "tvm_ffi.core", "PyNativeObject");
  if (is != 0) return is > 0 ? Outcome::kDone : Outcome::kRaised;
  Outcome outcome = Outcome::kDone;
  if (HasAttr(current, "__tvm_ffi_object__")) {
    Ref object = CallProtocol(current, "__tvm_ffi_object__", &outcome, result);
    if (object) *value = std::move(object);
    return outcome;
  }
  if (HasAttr(current, "__tvm_ffi_value__")) {
    Ref replacement = CallProtocol(current, "__tvm_ffi_value__", &outcome, result);
    if (outcome == Outcome::kRaised) return outcome;
    if (!replacement || replacement.get() == current) return UnwrapFailed(node, current, result);
    *value = std::move(replacement);
    return outcome;
  }
  is = IsInstanceOfLoaded(current, "tvm_ffi.core", "ObjectConvertible");
  if (is <= 0) return is == 0 ? Outcome::kDone : Outcome::kRaised;
  Ref object = CallProtocol(current, "asobject", &outcome, result);
  if (!object) return outcome;
  if (!IsWrapper(object.get())) {
    return Mismatch(result,
                    "asobject() returned " + Describe(object.get()) + " for " + Describe(current));
  }
  *value = std::move(object);
  return outcome;
}

constexpr const char kCycle[] = "infinite __tvm_ffi_value__ cycle detected";
// What a RecursionError means here.
constexpr const char kTooDeep[] = "the value contains itself or is nested too deeply";

Outcome Unwrap(const Node* node, Ref* value, Result* result) {
  constexpr int kMaxSteps = 64;
  for (int step = 0; step <= kMaxSteps; ++step) {
    if (IsBuiltin(Py_TYPE(value->get()))) return Outcome::kDone;
    PyObject* before = value->get();
    Outcome outcome = UnwrapOnce(node, value, result);
    if (outcome != Outcome::kDone || value->get() == before) return outcome;
  }
  return Mismatch(result, kCycle);
}

// ---- dispatch ----

// Whether a cell that needs no conversion for `node` can be told by its index alone.
bool IsNative(const Node* node, int32_t index) {
  switch (node->kind) {
    case Kind::kAny:
      return true;
    case Kind::kNone:
      return index == TypeIndex::kTVMFFINone;
    case Kind::kInt:
      return index == TypeIndex::kTVMFFIInt;
    case Kind::kFloat:
      return index == TypeIndex::kTVMFFIFloat;
    case Kind::kBool:
      return index == TypeIndex::kTVMFFIBool;
    case Kind::kStr:
      return index == TypeIndex::kTVMFFIStr || index == TypeIndex::kTVMFFISmallStr;
    case Kind::kBytes:
      return index == TypeIndex::kTVMFFIBytes || index == TypeIndex::kTVMFFISmallBytes;
    case Kind::kDevice:
      return index == TypeIndex::kTVMFFIDevice;
    case Kind::kDataType:
      return index == TypeIndex::kTVMFFIDataType;
    case Kind::kPointer:
      return index == TypeIndex::kTVMFFIOpaquePtr;
    case Kind::kTensor:
      return index == TypeIndex::kTVMFFITensor;
    case Kind::kCallable:
      return index == TypeIndex::kTVMFFIFunction;
    case Kind::kObject:
      return Fits(node, index);
    default:
      return false;
  }
}

// First alternative that accepts. `value` is what Convert or ConvertCell takes.
template <typename T>
Outcome FirstOf(const Node* node, const T& value, Outcome (*convert)(const Node*, T, Result*),
                Result* result) {
  for (Py_ssize_t i = 0; i < NumArgs(node); ++i) {
    Outcome outcome = convert(ArgOf(node, i), value, result);
    if (outcome != Outcome::kMismatch) return outcome;
  }
  return Outcome::kMismatch;
}

Outcome ConvertPlain(const Node* node, PyObject* value, Result* result) {
  switch (node->kind) {
    case Kind::kAny:
      return Pack(node, value, result);
    case Kind::kNone:
      return value == Py_None ? Done(nullptr, result) : Unexpected(node, value, result);
    case Kind::kInt:
      return ConvertInt(node, value, result);
    case Kind::kFloat:
      return ConvertFloat(node, value, result);
    case Kind::kBool:
      return ConvertBool(node, value, result);
    case Kind::kStr:
    case Kind::kBytes:
      return ConvertText(node, value, result);
    case Kind::kDevice:
      return ConvertDevice(node, value, result);
    case Kind::kDataType:
      return ConvertDataType(node, value, result);
    case Kind::kPointer:
      return ConvertPointer(node, value, result);
    case Kind::kTensor:
      return ConvertTensor(node, value, result);
    case Kind::kCallable:
      return ConvertCallable(node, value, result);
    case Kind::kArray:
    case Kind::kList:
    case Kind::kTuple:
      return ConvertToSequence(node, value, result);
    case Kind::kMap:
    case Kind::kDict:
      return ConvertToMap(node, value, result);
    case Kind::kOptional:
      return value == Py_None ? Done(nullptr, result) : ConvertPlain(ArgOf(node, 0), value, result);
    case Kind::kUnion: {
      Outcome outcome = FirstOf<PyObject*>(node, value, ConvertPlain, result);
      return outcome != Outcome::kMismatch ? outcome : Unexpected(node, value, result);
    }
    case Kind::kObject:
      return ConvertObject(node, value, result);
  }
  return Unexpected(node, value, result);
}

// Only containers nest.
class RecursionGuard {
 public:
  explicit RecursionGuard(const Node* node)
      : entered_(node->kind >= Kind::kArray),
        ok_(!entered_ || EnterRecursion(" while converting a value")) {}
  RecursionGuard(const RecursionGuard&) = delete;
  RecursionGuard& operator=(const RecursionGuard&) = delete;
  ~RecursionGuard() {
    if (entered_ && ok_) Py_LeaveRecursiveCall();
  }
  bool ok() const { return ok_; }

 private:
  bool entered_;
  bool ok_;
};

Outcome Convert(const Node* node, PyObject* value, Result* result) {
  RecursionGuard guard(node);
  if (!guard.ok()) return Outcome::kRaised;
  if (TVM_FFI_PREDICT_TRUE(IsBuiltin(Py_TYPE(value)))) return ConvertPlain(node, value, result);
  Ref unwrapped = Ref::Borrow(value);
  Outcome outcome = Unwrap(node, &unwrapped, result);
  return outcome == Outcome::kDone ? ConvertPlain(node, unwrapped.get(), result) : outcome;
}

// Objects that Python sees as themselves, not through the value they hold.
ffi::ObjectRef ObjectInCell(const TVMFFIAny& cell) {
  return ffi::ObjectRef(ffi::details::ObjectUnsafe::ObjectPtrFromUnowned<ffi::Object>(cell.v_obj));
}

Outcome ConvertCellInPlace(const Node* node, const TVMFFIAny& cell, Result* result) {
  int32_t index = cell.type_index;
  if (IsNative(node, index)) return Done(ffi::AnyView::CopyFromTVMFFIAny(cell), result);
  switch (node->kind) {
    case Kind::kArray:
    case Kind::kList:
    case Kind::kTuple:
      if (!IsSequenceIndex(index)) break;
      return ConvertSequence(node, ObjectInCell(cell),
                             index == TypeIndex::kTVMFFIList ? "List" : "Array", result);
    case Kind::kMap:
    case Kind::kDict:
      if (IsMapIndex(index)) return ConvertMap(node, ObjectInCell(cell), result);
      break;
    case Kind::kOptional:
      if (index == TypeIndex::kTVMFFINone) return Done(nullptr, result);
      return ConvertCell(ArgOf(node, 0), cell, result);
    case Kind::kUnion:
      // What is inside an opaque object is unwrapped once, before the alternatives see it.
      if (index == TypeIndex::kTVMFFIOpaquePyObject) break;
      if (Outcome outcome = FirstOf<const TVMFFIAny&>(node, cell, ConvertCell, result);
          outcome != Outcome::kMismatch) {
        return outcome;
      }
      break;
    default:
      break;
  }
  Ref value = Ref::Steal(FromBorrowedAny(cell));
  return value ? Convert(node, value.get(), result) : Outcome::kRaised;
}

Outcome ConvertCell(const Node* node, const TVMFFIAny& cell, Result* result) {
  RecursionGuard guard(node);
  return guard.ok() ? ConvertCellInPlace(node, cell, result) : Outcome::kRaised;
}

// ---- entry points ----

// Runs a conversion; C++ exceptions become Python ones.
template <typename F>
Outcome Run(const F& convert) {
  Outcome outcome = Outcome::kRaised;
  Ref done = Ref::Steal(Guarded([&]() -> PyObject* {
    outcome = convert();
    return outcome != Outcome::kRaised ? Py_NewRef(Py_None) : nullptr;
  }));
  if (!done) outcome = Outcome::kRaised;
  return outcome;
}

struct AnyHolder {
  PyObject_HEAD ffi::Any value;
};

PyTypeObject* any_type = nullptr;

PyObject* MakeHolder(ffi::Any value) {
  auto* holder = reinterpret_cast<AnyHolder*>(any_type->tp_alloc(any_type, 0));
  if (holder == nullptr) return nullptr;
  new (&holder->value) ffi::Any(std::move(value));
  return reinterpret_cast<PyObject*>(holder);
}

PyObject* RaiseConvertError(const std::string& message) {
  Ref cls = Ref::Steal(PyObject_GetAttrString(core_module, "_ConvertError"));
  if (!cls) return nullptr;
  Ref text = Ref::Steal(PyUnicode_DecodeUTF8(
      message.data(), static_cast<Py_ssize_t>(message.size()), "backslashreplace"));
  if (text) PyErr_SetObject(cls.get(), text.get());
  return nullptr;
}

PyObject* ConvertMethod(PyObject* self, PyObject* value) {
  Result result;
  Outcome outcome = Run([&] { return Convert(reinterpret_cast<Node*>(self), value, &result); });
  if (outcome == Outcome::kRaised) return nullptr;
  if (outcome == Outcome::kMismatch) return RaiseConvertError(result.message);
  return MakeHolder(std::move(result.value));
}

// ---- _TypeConverter ----

int FindKind(const char* name) {
  for (size_t i = 0; i < std::size(kKindNames); ++i) {
    if (std::strcmp(kKindNames[i], name) == 0) return static_cast<int>(i);
  }
  PyErr_Format(PyExc_ValueError, "no kind of converter is called %s", name);
  return -1;
}

// How many arguments a kind takes at least; what is not a container takes none.
Py_ssize_t MinArgs(Kind kind, bool has_member) {
  switch (kind) {
    case Kind::kArray:
    case Kind::kList:
    case Kind::kOptional:
      return 1;
    case Kind::kMap:
    case Kind::kDict:
      return 2;
    case Kind::kObject:
      return has_member ? 1 : 0;
    default:
      return 0;
  }
}

bool CheckArgs(Kind kind, PyObject* args, PyObject* member) {
  if (args == Py_None && kind == Kind::kTuple) return true;
  if (!PyTuple_Check(args) || PyTuple_GET_SIZE(args) < MinArgs(kind, member != Py_None)) {
    PyErr_SetString(PyExc_TypeError, "_TypeConverter: args must be a tuple of converters");
    return false;
  }
  for (Py_ssize_t i = 0; i < PyTuple_GET_SIZE(args); ++i) {
    if (Py_TYPE(PyTuple_GET_ITEM(args, i)) != types.converter) {
      PyErr_Format(PyExc_TypeError, "_TypeConverter: args[%zd] is no converter", i);
      return false;
    }
  }
  return true;
}

PyObject* NewNode(PyTypeObject* type, PyObject* py_args, PyObject* kwargs) {
  static const char* names[] = {"kind", "hint", "target", "args", "member", nullptr};
  const char* kind_name;
  int target;
  PyObject *hint, *args, *member = Py_None;
  if (!PyArg_ParseTupleAndKeywords(py_args, kwargs, "sUiO|O", const_cast<char**>(names), &kind_name,
                                   &hint, &target, &args, &member)) {
    return nullptr;
  }
  int kind = FindKind(kind_name);
  if (kind < 0 || !CheckArgs(static_cast<Kind>(kind), args, member)) return nullptr;
  auto* node = reinterpret_cast<Node*>(type->tp_alloc(type, 0));
  if (node == nullptr) return nullptr;
  node->kind = static_cast<Kind>(kind);
  node->target = target;
  node->hint = Py_NewRef(hint);
  node->args = args != Py_None ? Py_NewRef(args) : nullptr;
  node->member = member != Py_None ? Py_NewRef(member) : nullptr;
  return reinterpret_cast<PyObject*>(node);
}

int TraverseNode(PyObject* self, visitproc visit, void* arg) {
  auto* node = reinterpret_cast<Node*>(self);
  Py_VISIT(Py_TYPE(self));
  Py_VISIT(node->args);
  Py_VISIT(node->member);
  return 0;
}

void DeallocNode(PyObject* self) {
  PyTypeObject* type = Py_TYPE(self);
  auto* node = reinterpret_cast<Node*>(self);
  PyObject_GC_UnTrack(self);
  Py_CLEAR(node->hint);
  Py_CLEAR(node->args);
  Py_CLEAR(node->member);
  type->tp_free(self);
  Py_DECREF(type);
}

PyMethodDef node_methods[] = {{"convert", Entry<ConvertMethod>, METH_O,
                               "Convert a value, giving a CAny; raises _ConvertError."},
                              {nullptr, nullptr, 0, nullptr}};
PyType_Slot node_slots[] = {{Py_tp_doc, const_cast<char*>("A TypeSchema, compiled.")},
                            {Py_tp_new, Slot<NewNode>()},
                            {Py_tp_traverse, reinterpret_cast<void*>(TraverseNode)},
                            {Py_tp_dealloc, reinterpret_cast<void*>(DeallocNode)},
                            {Py_tp_methods, node_methods},
                            {0, nullptr}};
PyType_Spec node_spec = {"tvm_ffi.core._TypeConverter", sizeof(Node), 0,
                         Py_TPFLAGS_DEFAULT | Py_TPFLAGS_HAVE_GC, node_slots};

// ---- CAny ----

PyObject* NewHolder(PyTypeObject*, PyObject* args, PyObject* kwargs) {
  static const char* names[] = {"value", nullptr};
  PyObject* value = Py_None;
  if (!PyArg_ParseTupleAndKeywords(args, kwargs, "|O", const_cast<char**>(names), &value)) {
    return nullptr;
  }
  ffi::Any converted;
  if (!ToOwnedAny(value, &converted)) return nullptr;
  return MakeHolder(std::move(converted));
}

void DeallocHolder(PyObject* self) {
  PyTypeObject* type = Py_TYPE(self);
  reinterpret_cast<AnyHolder*>(self)->value.~Any();
  type->tp_free(self);
  Py_DECREF(type);
}

const TVMFFIAny& HeldCell(PyObject* self) {
  return CellIn(reinterpret_cast<AnyHolder*>(self)->value);
}

PyObject* HolderTypeIndex(PyObject* self, void*) {
  return PyLong_FromLong(HeldCell(self).type_index);
}

PyObject* HolderRepr(PyObject* self) {
  const TVMFFIAny& cell = HeldCell(self);
  switch (cell.type_index) {
    case TypeIndex::kTVMFFINone:
      return PyUnicode_FromString("CAny(None)");
    case TypeIndex::kTVMFFIInt:
      return PyUnicode_FromFormat("CAny(int=%lld)", static_cast<long long>(cell.v_int64));
    case TypeIndex::kTVMFFIBool:
      return PyUnicode_FromString(cell.v_int64 != 0 ? "CAny(bool=True)" : "CAny(bool=False)");
    case TypeIndex::kTVMFFIFloat: {
      Ref number = Ref::Steal(PyFloat_FromDouble(cell.v_float64));
      return number ? PyUnicode_FromFormat("CAny(float=%R)", number.get()) : nullptr;
    }
    default:
      return PyUnicode_FromFormat(cell.type_index >= TypeIndex::kTVMFFIStaticObjectBegin
                                      ? "CAny(object, type_index=%d)"
                                      : "CAny(type_index=%d)",
                                  cell.type_index);
  }
}

PyGetSetDef any_getset[] = {
    {"type_index", Entry<HolderTypeIndex>, nullptr, "Type index of the value.", nullptr},
    {nullptr, nullptr, nullptr, nullptr, nullptr}};
PyType_Slot any_slots[] = {{Py_tp_doc, const_cast<char*>("One value as the FFI holds it.")},
                           {Py_tp_new, Slot<NewHolder>()},
                           {Py_tp_dealloc, reinterpret_cast<void*>(DeallocHolder)},
                           {Py_tp_repr, Slot<HolderRepr>()},
                           {Py_tp_getset, any_getset},
                           {0, nullptr}};
PyType_Spec any_spec = {"tvm_ffi.core.CAny", sizeof(AnyHolder), 0, Py_TPFLAGS_DEFAULT, any_slots};

// Text up to seven bytes has no FFI object to remember; it still comes back as String or Bytes.
PyObject* ToPyClassValue(PyObject*, PyObject* holder) {
  if (!PyObject_TypeCheck(holder, any_type)) {
    return PyErr_Format(PyExc_TypeError, "expected tvm_ffi.core.CAny, got %s",
                        Py_TYPE(holder)->tp_name);
  }
  const TVMFFIAny& cell = HeldCell(holder);
  Ref value = Ref::Steal(FromBorrowedAny(cell));
  if (!value) return nullptr;
  bool small_str = cell.type_index == TypeIndex::kTVMFFISmallStr;
  if (!small_str && cell.type_index != TypeIndex::kTVMFFISmallBytes) return value.release();
  return PyObject_CallMethod(core_module, small_str ? "String" : "Bytes", "O", value.get());
}

PyMethodDef converter_functions[] = {
    {"_to_py_class_value", Entry<ToPyClassValue>, METH_O, "The Python value of a CAny."},
    {nullptr, nullptr, 0, nullptr}};

}  // namespace

int ConvertForField(void* converter, const TVMFFIAny* in, TVMFFIAny* out) {
  auto* node = static_cast<Node*>(converter);
  // Most values are what the field declares, and copying those needs no Python.
  if (IsNative(node, in->type_index)) return TVMFFIAnyViewToOwnedAny(in, out);
  UnwindStop stop;
  GILGuard gil;
  if (!gil) {
    TVMFFIErrorSetRaisedFromCStr("RuntimeError",
                                 "a field was set while the interpreter shuts down");
    return -1;
  }
  Result result;
  Outcome outcome = Run([&] { return ConvertCell(node, *in, &result); });
  if (outcome == Outcome::kDone) {
    *out = ffi::details::AnyUnsafe::MoveAnyToTVMFFIAny(std::move(result.value));
    return 0;
  }
  if (outcome == Outcome::kRaised && !PyErr_ExceptionMatches(PyExc_RecursionError)) {
    RaiseToCaller();
    return -1;
  }
  PyErr_Clear();
  TVMFFIErrorSetRaisedFromCStr("TypeError",
                               outcome == Outcome::kMismatch ? result.message.c_str() : kTooDeep);
  return -1;
}

bool KeepsValuesOf(PyObject* converter, int32_t type_index) {
  return IsNative(reinterpret_cast<Node*>(converter), type_index);
}

int InitTypeConverter(PyObject* module) {
  types.converter = AddType(module, &node_spec, nullptr);
  any_type = AddType(module, &any_spec, nullptr);
  if (types.converter == nullptr || any_type == nullptr) return -1;
  return PyModule_AddFunctions(module, converter_functions);
}

}  // namespace tether_py
