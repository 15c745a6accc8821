// SPDX-License-Identifier: Apache-2.0
// Conversion of a value to what a node declares: a Python value (Convert) or a cell of an FFI
// container or field (ConvertCell). Cells that fit are copied without becoming Python objects.
#ifndef TETHER_PYTHON_SCHEMA_CONVERT_VALUE_H_
#define TETHER_PYTHON_SCHEMA_CONVERT_VALUE_H_

#include "python/schema/result.h"

namespace tether_py::schema {

Outcome Convert(const Node* node, PyObject* value, Result* result);
Outcome ConvertCell(const Node* node, const TVMFFIAny& cell, Result* result);

// ---- by origin; `value` stands for itself ----

// convert_scalar.cc
Outcome ConvertInt(const Node* node, PyObject* value, Result* result);
Outcome ConvertFloat(const Node* node, PyObject* value, Result* result);
Outcome ConvertBool(const Node* node, PyObject* value, Result* result);
Outcome ConvertText(const Node* node, PyObject* value, Result* result);
Outcome ConvertDevice(const Node* node, PyObject* value, Result* result);
Outcome ConvertDataType(const Node* node, PyObject* value, Result* result);
Outcome ConvertPointer(const Node* node, PyObject* value, Result* result);

// convert_container.cc
Outcome ConvertToSequence(const Node* node, PyObject* value, Result* result);
Outcome ConvertToMap(const Node* node, PyObject* value, Result* result);
// An Array or List, a Map or Dict of the FFI. It comes back itself when it is of the right type and
// nothing in it changes.
Outcome ConvertSequence(const Node* node, const ffi::ObjectRef& object, std::string_view type_name,
                        Result* result);
Outcome ConvertMap(const Node* node, const ffi::ObjectRef& object, Result* result);
// Whether a cell fits without conversion, as far as a cheap check can tell: a value, or a sequence
// of values.
bool FitsAsIs(const Node* node, const TVMFFIAny& cell);
inline bool IsSequenceIndex(int32_t index) {
  return index == ffi::TypeIndex::kTVMFFIArray || index == ffi::TypeIndex::kTVMFFIList;
}
inline bool IsMapIndex(int32_t index) {
  return index == ffi::TypeIndex::kTVMFFIMap || index == ffi::TypeIndex::kTVMFFIDict;
}

// fits_exactly.cc
// Whether nothing would have to be converted: a number, text and the like of the very type, an FFI
// object of the type, an FFI container of the kind whose parts fit exactly. A list, tuple or dict
// of Python fits any kind, and so does what it has become on its way to C++.
bool FitsExactly(const Node* node, PyObject* value);
bool FitsExactly(const Node* node, const TVMFFIAny& cell);
// The same for a container that Python knows; false for others.
bool FitsUnchanged(const Node* node, const ffi::ObjectRef& container);

// convert_object.cc
Outcome ConvertTensor(const Node* node, PyObject* value, Result* result);
Outcome ConvertCallable(const Node* node, PyObject* value, Result* result);
Outcome ConvertObject(const Node* node, PyObject* value, Result* result);

// ---- shared by those ----

// Converts as an argument is converted.
inline Outcome Pack(const Node* node, PyObject* value, Result* result) {
  return ToOwnedAny(value, &result->value) ? Outcome::kDone : PackingFailed(node, value, result);
}
// The same; a result of another type is a mismatch.
Outcome PackAs(const Node* node, PyObject* value, int32_t type_index, Result* result);
// The object of a wrapper, held. Null with an error set.
ffi::ObjectRef HeldObject(PyObject* wrapper);
inline const TVMFFIAny& CellIn(const ffi::Any& value) {
  return *ffi::details::AnyUnsafe::TVMFFIAnyPtrFromAny(value);
}

}  // namespace tether_py::schema
#endif  // TETHER_PYTHON_SCHEMA_CONVERT_VALUE_H_
