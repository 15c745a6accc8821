// SPDX-License-Identifier: Apache-2.0
// Conversion by schema: sequences and maps.
#include <tvm/ffi/container/array.h>
#include <tvm/ffi/container/dict.h>
#include <tvm/ffi/container/list.h>
#include <tvm/ffi/container/map.h>

#include <vector>

#include "python/base/python_api.h"
#include "python/kinds/kinds.h"
#include "python/schema/convert_value.h"
#include "python/wrap/object_lock.h"

namespace tether_py::schema {

using ffi::TypeIndex;

namespace {

// Whether a conversion gave back what it was given.
bool IsSameCell(const ffi::Any& before, const ffi::Any& after) {
  const TVMFFIAny &a = CellIn(before), &b = CellIn(after);
  return a.type_index == b.type_index && a.zero_padding == b.zero_padding && a.v_int64 == b.v_int64;
}

const Node* ElementNode(const Node* node, Py_ssize_t i) {
  return node->args != nullptr ? PartNode(node, node->origin == Origin::kTuple ? i : 0) : nullptr;
}

Outcome InElement(Py_ssize_t i, Result* result) {
  return Prefixed(result, {"element [", NumberText(i), "]: "});
}

ffi::Any MakeSequence(const Node* node, ffi::Array<ffi::Any> elements) {
  if (node->origin != Origin::kList) return elements;
  return ffi::List<ffi::Any>(elements.begin(), elements.end());
}

bool LengthFits(const Node* node, Py_ssize_t size) {
  return node->origin != Origin::kTuple || node->args == nullptr || NumArgs(node) == size;
}

Outcome WrongLength(const Node* node, std::string_view type_name, Py_ssize_t size, Result* result) {
  return Mismatch(result, {"expected tuple of length ", NumberText(NumArgs(node)), ", got ",
                           type_name, " of length ", NumberText(size)});
}

// A part of a Python container. NULL node: it is converted as an argument would be.
Outcome ConvertPart(const Node* node, PyObject* value, Result* result) {
  if (node != nullptr) return Convert(node, value, result);
  return ToOwnedAny(value, &result->value) ? Outcome::kDone : Outcome::kRaised;
}

// A part of an FFI container. NULL node: it stays as it is.
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
    if (outcome == Outcome::kMismatch) return InElement(i, result);
    if (outcome != Outcome::kDone) return outcome;
    elements.push_back(result->value);
  }
  return Done(MakeSequence(node, std::move(elements)), result);
}

// Whether a sequence is of the node's kind and all its elements fit without conversion.
bool IsNativeSequence(const Node* node, TVMFFIObject* h) {
  if (node->origin == Origin::kTuple) return false;
  bool is_list = h->type_index == TypeIndex::kTVMFFIList;
  if (is_list != (node->origin == Origin::kList)) return false;
  const Node* element = ElementNode(node, 0);
  if (element == nullptr) return true;
  LookAtObject look(h);
  for (const ffi::Any& item : *reinterpret_cast<const ffi::SeqBaseObj*>(h)) {
    if (!IsNative(element, item.type_index())) return false;
  }
  return true;
}

}  // namespace

bool FitsAsIs(const Node* node, const TVMFFIAny& cell) {
  if (node->origin == Origin::kOptional) {
    if (cell.type_index == TypeIndex::kTVMFFINone) return true;
    node = ArgOf(node, 0);
  }
  if (IsNative(node, cell.type_index)) return true;
  return IsSequenceIndex(cell.type_index) && node->origin >= Origin::kArray &&
         node->origin <= Origin::kTuple && IsNativeSequence(node, cell.v_obj);
}

Outcome ConvertSequence(const Node* node, const ffi::ObjectRef& object, std::string_view type_name,
                        Result* result) {
  TVMFFIObject* h = ffi::details::ObjectUnsafe::TVMFFIObjectPtrFromObjectRef(object);
  if (IsNativeSequence(node, h) || FitsUnchanged(node, object)) return Done(object, result);
  // The elements as they are now: a List may change while Python code converts them.
  ffi::Array<ffi::Any> before(ffi::UnsafeInit{});
  {
    LookAtObject look(h);
    auto* seq = static_cast<const ffi::SeqBaseObj*>(object.get());
    before = ffi::Array<ffi::Any>(seq->begin(), seq->end());
  }
  auto size = static_cast<Py_ssize_t>(before.size());
  if (!LengthFits(node, size)) return WrongLength(node, type_name, size, result);
  ffi::Array<ffi::Any> elements;
  elements.reserve(size);
  bool changed = object.type_index() !=
                 (node->origin == Origin::kList ? TypeIndex::kTVMFFIList : TypeIndex::kTVMFFIArray);
  for (Py_ssize_t i = 0; i < size; ++i) {
    const Node* element = ElementNode(node, i);
    Outcome outcome = ConvertPart(element, before[i], result);
    if (outcome == Outcome::kMismatch) return InElement(i, result);
    if (outcome != Outcome::kDone) return outcome;
    changed = changed || (element != nullptr && !IsSameCell(before[i], result->value));
    elements.push_back(result->value);
  }
  return Done(changed ? MakeSequence(node, std::move(elements)) : ffi::Any(object), result);
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

namespace {

// Collects converted entries into a new container of the node's kind.
class Entries {
 public:
  explicit Entries(const Node* node) : node_(node) {}

  // `key` and `value` are both PyObject* or both ffi::Any.
  template <typename T>
  Outcome Add(const T& key, const T& value, Result* result) {
    Outcome outcome = ConvertPart(PartNode(node_, 0), key, result);
    if (outcome == Outcome::kMismatch) return Prefixed(result, {"key ", KeyRepr(key), ": "});
    if (outcome != Outcome::kDone) return outcome;
    ffi::Any converted_key = std::move(result->value);
    outcome = ConvertPart(PartNode(node_, 1), value, result);
    if (outcome == Outcome::kMismatch) {
      return Prefixed(result, {"value for key ", KeyRepr(key), ": "});
    }
    if (outcome != Outcome::kDone) return outcome;
    if constexpr (std::is_same_v<T, ffi::Any>) {
      changed_ = changed_ || IsChanged(0, key, converted_key) || IsChanged(1, value, result->value);
    }
    if (node_->origin == Origin::kDict) {
      dict_.Set(converted_key, result->value);
    } else {
      map_.Set(converted_key, result->value);
    }
    return Outcome::kDone;
  }

  bool changed() const { return changed_; }
  bool IsUntyped() const { return PartNode(node_, 0) == nullptr && PartNode(node_, 1) == nullptr; }
  ffi::Any Take() {
    return node_->origin == Origin::kDict ? ffi::Any(std::move(dict_)) : ffi::Any(std::move(map_));
  }

 private:
  bool IsChanged(Py_ssize_t part, const ffi::Any& before, const ffi::Any& after) const {
    return PartNode(node_, part) != nullptr && !IsSameCell(before, after);
  }
  static std::string KeyRepr(PyObject* key) { return ReprOf(key); }
  static std::string KeyRepr(const ffi::Any& key) {
    Ref value = Ref::Steal(FromBorrowedAny(CellIn(key)));
    if (value) return ReprOf(value.get());
    PassOver();
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
    // Where no node looks at the entries, a failure is one of packing the mapping itself.
    if (outcome == Outcome::kRaised && entries.IsUntyped()) {
      return PackingFailed(node, value, result);
    }
    if (outcome != Outcome::kDone) return outcome;
  }
  return Done(entries.Take(), result);
}

}  // namespace

Outcome ConvertMap(const Node* node, const ffi::ObjectRef& object, Result* result) {
  if (FitsUnchanged(node, object)) return Done(object, result);
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
  int32_t wanted = node->origin == Origin::kDict ? TypeIndex::kTVMFFIDict : TypeIndex::kTVMFFIMap;
  bool same = object.type_index() == wanted && !entries.changed();
  return Done(same ? ffi::Any(object) : entries.Take(), result);
}

Outcome ConvertToMap(const Node* node, PyObject* value, Result* result) {
  if (PyDict_Check(value)) return ConvertMapping(node, value, result);
  if (!IsWrapper(value)) {
    int is = IsOfKind(value, {ValueKind::kMapping});
    if (is < 0) return Outcome::kRaised;
    return is > 0 ? ConvertMapping(node, value, result) : Unexpected(node, value, result);
  }
  ffi::ObjectRef object = HeldObject(value);
  if (!object.defined()) return Outcome::kRaised;
  if (!IsMapIndex(object.type_index())) return Unexpected(node, value, result);
  return ConvertMap(node, object, result);
}

}  // namespace tether_py::schema
