// SPDX-License-Identifier: Apache-2.0
//
// The binary form of an object graph: what a pickle of an object contains.
//
// A pickle may hold several objects that share parts. Each object is one chunk, and the chunks of
// one pickle are written by one GraphWriter and read, in the same order, by one GraphReader. A
// chunk refers to objects and types of the chunks before it.
//
//   chunk    "TFG" version | types | number of the first object | number of records | records |
//   root types    count, then for each: key | note | count of fields, names record   NodeOp, then
//   what the op needs. All but kFill make the object with the next number. value    see ValueTag
//
// Numbers are LEB128, signed ones zigzag. An object comes after its parts, so that what makes it
// sees them complete. In a cycle that cannot be: an object that can be changed is declared when a
// part of it first refers to it, and filled when its parts are there. The fields of a type are
// written in the order that its entry gives, and found by name. A note says where the type comes
// from; the frontend writes and reads it.
//
// Nothing here recurses. A reader takes memory in proportion to the input: a count is never larger
// than the number of bytes that are left.
#ifndef TETHER_EXTRA_GRAPH_FORMAT_H_
#define TETHER_EXTRA_GRAPH_FORMAT_H_

#include <tvm/ffi/function.h>

#include <cstddef>
#include <cstdint>
#include <string>
#include <string_view>
#include <vector>

namespace tvm {
namespace ffi {
namespace tether {

inline constexpr std::string_view kGraphMagic = "TFG";
inline constexpr uint8_t kGraphVersion = 1;

enum class NodeOp : uint8_t {
  kString,          // size, bytes
  kBytes,           // size, bytes
  kBigInt,          // count, words of 8 bytes
  kShape,           // count, signed numbers
  kTensor,          // read-only flag, dtype, count, extents; its memory is the next of the buffers
  kError,           // kind, message, backtrace: each size, bytes
  kFunction,        // name, note: each size, bytes
  kEnum,            // type, value: the number or the name of the member
  kHook,            // type, value: what `__data_to_json__` returned
  kArray,           // count, values
  kList,            // count, values
  kMap,             // count of entries, key, value, ...
  kDict,            // count of entries, key, value, ...
  kObject,          // type, a value for each field
  kDeclaredList,    //
  kDeclaredDict,    //
  kDeclaredObject,  // type
  kFill,            // distance of a declared object, then as for kList, kDict or kObject
  kOutside,         // the next of the objects that the frontend pickled itself
  kShortObject,     // this op and those above it: kObject of the type (op - kShortObject)
};

// The first byte of a value. Below kFirstRef it is an integer from 0 on; from kFirstRef to
// kFirstText - 1 the object that was made 1, 2, ... records ago; from kFirstText to kNone - 1 a
// string of 0, 1, ... 7 bytes.
enum ValueTag : uint8_t {
  kFirstRef = 0x80,
  kFirstText = 0xc0,
  kNone = 0xc8,
  kTrue,
  kFalse,
  kInt,     // signed number
  kFloat,   // 8 bytes
  kDType,   // code, bits, two bytes of lanes
  kDevice,  // two signed numbers
  kBytes,   // size, bytes, at most 7
  kRef,     // distance, a number
  kEndOfTags,
};

// Drops the references of a large table, which do not fit into the caches.
template <typename Table>
void DropInOrder(Table* table) {
  constexpr size_t kAhead = 16;
  size_t size = table->size();
  for (size_t i = 0; i < size; ++i) {
    if (i + kAhead < size) {
      const TVMFFIAny* next = details::AnyUnsafe::TVMFFIAnyPtrFromAny((*table)[i + kAhead]);
      if (next->type_index >= kTVMFFIStaticObjectBegin) __builtin_prefetch(next->v_obj, 1);
    }
    (*table)[i].reset();
  }
}

// Types that have no default constructor are made by the registered one, from those fields whose
// types are its parameters, in order. All fields are set afterwards, so that what the constructor
// makes of its arguments does not matter. `construct` is undefined if there is no such constructor.
struct ConstructorPlan {
  Function construct{nullptr};
  std::vector<size_t> fields;  // numbers of the fields that it takes
};
ConstructorPlan PlanConstructor(const TVMFFITypeInfo* type);

// The hooks by which a class is written as JSON, or None.
AnyView DataToJsonHook(int32_t type_index);
AnyView DataFromJsonHook(int32_t type_index);

}  // namespace tether
}  // namespace ffi
}  // namespace tvm
#endif  // TETHER_EXTRA_GRAPH_FORMAT_H_
