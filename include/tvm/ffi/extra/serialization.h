// SPDX-License-Identifier: Apache-2.0
//
// Object graphs as JSON. Every distinct value becomes one node, so that shared parts stay shared.
//
//   json::Value doc = ToJSONGraph(Array<Any>{pair, pair});
//   // {"root_index": 1, "nodes": [{"type": "demo.Pair", "data": {"a": 1, "b": 2}},
//   //                             {"type": "ffi.Array", "data": [0, 0]}]}
//   Array<Any> back = FromJSONGraph(doc).cast<Array<Any>>();   // back[0] is back[1]
//
// A class is written by its reflected fields, or by `__data_to_json__` and `__data_from_json__`.
#ifndef TVM_FFI_EXTRA_SERIALIZATION_H_
#define TVM_FFI_EXTRA_SERIALIZATION_H_

#include <tvm/ffi/extra/base.h>
#include <tvm/ffi/extra/json.h>

namespace tvm {
namespace ffi {

/*!
 * \brief The graph of a value as a JSON document.
 * \param metadata Stored under "metadata" as it is, unless None.
 *
 * Throws TypeError for an object that could not be created again, ValueError for a cyclic value.
 */
TVM_FFI_EXTRA_CXX_API json::Value ToJSONGraph(const Any& value, const Any& metadata = Any(nullptr));

/*! \brief The value of a document. Throws ValueError, TypeError or KeyError if it is malformed. */
TVM_FFI_EXTRA_CXX_API Any FromJSONGraph(const json::Value& value);

}  // namespace ffi
}  // namespace tvm

#endif  // TVM_FFI_EXTRA_SERIALIZATION_H_
