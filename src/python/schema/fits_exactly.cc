// SPDX-License-Identifier: Apache-2.0
// Conversion by schema: whether a value is already what a node declares. Unions ask this before
// they convert, so nothing is converted here, and a question that cannot be answered is answered
// with no.
#include <tvm/ffi/container/array.h>
#include <tvm/ffi/container/map.h>

#include <utility>
#include <vector>

#include "python/base/python_api.h"
#include "python/kinds/kinds.h"
#include "python/schema/convert_value.h"
#include "python/wrap/object_lock.h"

namespace tether_py::schema {

using ffi::TypeIndex;

namespace {

bool IsOf(PyObject* value, std::initializer_list<ValueKind> kinds) {
  int is = IsOfKind(value, kinds);
  if (is < 0) PassOver();
  return is > 0;
}

bool IsInt64(PyObject* value) {
  int overflow = 0;
  PyLong_AsLongLongAndOverflow(value, &overflow);
  return overflow == 0;
}

bool IsNumpyBool(PyObject* value) {
  int is = IsInstanceOfLoaded(value, "numpy", "bool_");
  if (is < 0) PassOver();
  return is > 0;
}

// The type index that the value has as an argument, or kTVMFFIAny where that is not simple.
int32_t IndexOf(PyObject* value) {
  if (value == Py_None) return TypeIndex::kTVMFFINone;
  if (PyBool_Check(value)) return TypeIndex::kTVMFFIBool;
  if (PyLong_Check(value)) return IsInt64(value) ? TypeIndex::kTVMFFIInt : TypeIndex::kTVMFFIAny;
  if (PyFloat_Check(value)) return TypeIndex::kTVMFFIFloat;
  if (PyUnicode_CheckExact(value)) return TypeIndex::kTVMFFIStr;
  if (PyBytes_Check(value) || PyByteArray_Check(value)) return TypeIndex::kTVMFFIBytes;
  if (IsOf(value, {ValueKind::kDataType})) return TypeIndex::kTVMFFIDataType;
  if (IsOf(value, {ValueKind::kDevice})) return TypeIndex::kTVMFFIDevice;
  if (PyUnicode_Check(value)) return TypeIndex::kTVMFFIStr;
  if (IsOf(value, {ValueKind::kVoidPointer})) return TypeIndex::kTVMFFIOpaquePtr;
  if (IsOf(value, {ValueKind::kDLPack, ValueKind::kExchangeTensor})) return TypeIndex::kTVMFFIAny;
  if (IsNumpyBool(value)) return TypeIndex::kTVMFFIBool;
  if (IsOf(value, {ValueKind::kIntegral})) return TypeIndex::kTVMFFIInt;
  if (IsOf(value, {ValueKind::kReal})) return TypeIndex::kTVMFFIFloat;
  return TypeIndex::kTVMFFIAny;
}

bool IsSequenceNode(const Node* node) {
  return node->origin == Origin::kArray || node->origin == Origin::kList ||
         node->origin == Origin::kTuple;
}
bool IsMapNode(const Node* node) {
  return node->origin == Origin::kMap || node->origin == Origin::kDict;
}

// The node of a sequence's element, or NULL where anything fits. Only for a length that fits.
const Node* ElementNode(const Node* node, Py_ssize_t i) {
  return node->args != nullptr ? PartNode(node, node->origin == Origin::kTuple ? i : 0) : nullptr;
}
bool LengthFits(const Node* node, Py_ssize_t size) {
  return node->origin != Origin::kTuple || node->args == nullptr || NumArgs(node) == size;
}

// ---- Python containers: they become FFI containers of any kind that is wanted ----

bool ItemsFit(const Node* node, PyObject* value) {
  Ref items = Ref::Steal(PySequence_Tuple(value));
  if (!items) return PassOver(), false;
  Py_ssize_t size = PyTuple_GET_SIZE(items.get());
  if (!LengthFits(node, size)) return false;
  for (Py_ssize_t i = 0; i < size; ++i) {
    const Node* element = ElementNode(node, i);
    if (element != nullptr && !FitsExactly(element, PyTuple_GET_ITEM(items.get(), i))) return false;
  }
  return true;
}

bool ItemsOfDictFit(const Node* node, PyObject* value) {
  Ref copy = Ref::Steal(PyDict_Copy(value));
  if (!copy) return PassOver(), false;
  const Node *key_node = PartNode(node, 0), *value_node = PartNode(node, 1);
  Py_ssize_t position = 0;
  PyObject *key, *item;
  while (PyDict_Next(copy.get(), &position, &key, &item) != 0) {
    if (key_node != nullptr && !FitsExactly(key_node, key)) return false;
    if (value_node != nullptr && !FitsExactly(value_node, item)) return false;
  }
  return true;
}

// ---- FFI containers ----

// A container without a wrapper has not been seen by Python. It may be a list, tuple or dict on its
// way to C++, so what kind of container it is says nothing.
bool IsUnseen(TVMFFIObject* h) {
  tie::TieSlot* slot = Engine::FindSlot(h);
  return slot == nullptr || (slot->word.load(std::memory_order_acquire) & ~tie::kWordTags) == 0;
}

// Copies, because other threads may change the container.
std::vector<ffi::Any> ElementsNow(TVMFFIObject* h) {
  LookAtObject look(h);
  auto* sequence = reinterpret_cast<const ffi::SeqBaseObj*>(h);
  return {sequence->begin(), sequence->end()};
}
std::vector<std::pair<ffi::Any, ffi::Any>> EntriesNow(TVMFFIObject* h) {
  LookAtObject look(h);
  auto* map = reinterpret_cast<const ffi::MapBaseObj*>(h);
  std::vector<std::pair<ffi::Any, ffi::Any>> entries;
  entries.reserve(map->size());
  for (auto it = map->begin(); it != map->end(); ++it) entries.emplace_back(*it);
  return entries;
}

bool CellFits(const Node* node, const TVMFFIAny& cell, bool unseen);

bool PartFits(const Node* node, const ffi::Any& part, bool unseen) {
  return node == nullptr || CellFits(node, CellIn(part), unseen);
}

bool SequenceFits(const Node* node, TVMFFIObject* h, bool unseen) {
  int32_t wanted = node->origin == Origin::kList ? TypeIndex::kTVMFFIList : TypeIndex::kTVMFFIArray;
  if (!unseen && h->type_index != wanted) return false;
  std::vector<ffi::Any> elements = ElementsNow(h);
  auto size = static_cast<Py_ssize_t>(elements.size());
  if (!LengthFits(node, size)) return false;
  for (Py_ssize_t i = 0; i < size; ++i) {
    if (!PartFits(ElementNode(node, i), elements[i], unseen)) return false;
  }
  return true;
}

bool MapFits(const Node* node, TVMFFIObject* h, bool unseen) {
  int32_t wanted = node->origin == Origin::kDict ? TypeIndex::kTVMFFIDict : TypeIndex::kTVMFFIMap;
  if (!unseen && h->type_index != wanted) return false;
  for (const auto& [key, value] : EntriesNow(h)) {
    if (!PartFits(PartNode(node, 0), key, unseen)) return false;
    if (!PartFits(PartNode(node, 1), value, unseen)) return false;
  }
  return true;
}

// `unseen`: so is everything that holds the cell.
bool CellFits(const Node* node, const TVMFFIAny& cell, bool unseen) {
  int32_t index = cell.type_index;
  if (IsNative(node, index)) return true;
  if (node->origin == Origin::kOptional && index == TypeIndex::kTVMFFINone) return true;
  if (node->origin == Origin::kOptional || node->origin == Origin::kUnion) {
    for (Py_ssize_t i = 0; i < NumArgs(node); ++i) {
      if (CellFits(ArgOf(node, i), cell, unseen)) return true;
    }
    return false;
  }
  bool is_sequence = IsSequenceNode(node) && IsSequenceIndex(index);
  if (!is_sequence && !(IsMapNode(node) && IsMapIndex(index))) return false;
  if (!EnterRecursion(" while comparing a value with a type")) return PassOver(), false;
  unseen = unseen && IsUnseen(cell.v_obj);
  bool fits =
      is_sequence ? SequenceFits(node, cell.v_obj, unseen) : MapFits(node, cell.v_obj, unseen);
  Py_LeaveRecursiveCall();
  return fits;
}

bool PlainContainerFits(const Node* node, PyObject* value) {
  if (!EnterRecursion(" while comparing a value with a type")) return PassOver(), false;
  bool fits = PyDict_Check(value) ? IsMapNode(node) && ItemsOfDictFit(node, value)
                                  : IsSequenceNode(node) && ItemsFit(node, value);
  Py_LeaveRecursiveCall();
  return fits;
}

bool WrapperFits(const Node* node, PyObject* value) {
  ffi::Any held = HeldObject(value);
  if (held == nullptr) return PassOver(), false;
  return CellFits(node, CellIn(held), /*unseen=*/false);
}

}  // namespace

bool FitsExactly(const Node* node, PyObject* value) {
  if (node->origin == Origin::kAny) return true;
  if (node->origin == Origin::kOptional || node->origin == Origin::kUnion) {
    if (node->origin == Origin::kOptional && value == Py_None) return true;
    for (Py_ssize_t i = 0; i < NumArgs(node); ++i) {
      if (FitsExactly(ArgOf(node, i), value)) return true;
    }
    return false;
  }
  if (PyList_Check(value) || PyTuple_Check(value) || PyDict_Check(value)) {
    return PlainContainerFits(node, value);
  }
  if (IsWrapper(value)) return WrapperFits(node, value);
  int32_t index = IndexOf(value);
  return index != TypeIndex::kTVMFFIAny && IsNative(node, index);
}

bool FitsExactly(const Node* node, const TVMFFIAny& cell) {
  return CellFits(node, cell, /*unseen=*/true);
}

bool FitsUnchanged(const Node* node, const ffi::ObjectRef& object) {
  TVMFFIObject* h = ffi::details::ObjectUnsafe::TVMFFIObjectPtrFromObjectRef(object);
  TVMFFIAny cell;
  tie::StoreObject(h, &cell);
  return !IsUnseen(h) && CellFits(node, cell, /*unseen=*/false);
}

}  // namespace tether_py::schema
