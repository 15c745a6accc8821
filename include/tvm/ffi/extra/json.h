// SPDX-License-Identifier: Apache-2.0
//
// JSON to values and back. null, true, 1, 1.5, "x", [..], {..} are None, bool, int64_t, double,
// String, json::Array and json::Object; objects keep the order of their keys.
//
//   json::Value v = json::Parse(R"({"a": [1, 2.5, null]})");
//   json::Stringify(v);       // {"a":[1,2.5,null]}
//   json::Stringify(v, 2);    // the same on several lines, indented by 2
#ifndef TVM_FFI_EXTRA_JSON_H_
#define TVM_FFI_EXTRA_JSON_H_

#include <tvm/ffi/any.h>
#include <tvm/ffi/container/array.h>
#include <tvm/ffi/container/map.h>
#include <tvm/ffi/extra/base.h>
#include <tvm/ffi/optional.h>
#include <tvm/ffi/string.h>

namespace tvm {
namespace ffi {
namespace json {

/*! \brief Any of the values listed above. */
using Value = Any;
/*! \brief A JSON object; the keys are Strings. */
using Object = Map<Any, Any>;
/*! \brief A JSON array. */
using Array = ::tvm::ffi::Array<Any>;

/*!
 * \brief Reads one JSON text; NaN, Infinity and -Infinity are numbers, too.
 * \param error_msg If given, an error is stored here instead of thrown ("" on success).
 * \return The value; None after a stored error.
 *
 * Throws ValueError with line, column and offset: `Expecting value: line 1 column 4 (char 3)`.
 */
TVM_FFI_EXTRA_CXX_API Value Parse(const String& json_str, String* error_msg = nullptr);

/*!
 * \brief Writes a value as JSON text.
 * \param indent Columns per level; absent or 0 writes one line without spaces.
 *
 * Throws ValueError for a value JSON has no form for, and for a List that contains itself.
 */
TVM_FFI_EXTRA_CXX_API String Stringify(const Value& value,
                                       const Optional<int>& indent = std::nullopt);

}  // namespace json
}  // namespace ffi
}  // namespace tvm

#endif  // TVM_FFI_EXTRA_JSON_H_
