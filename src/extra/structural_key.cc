// SPDX-License-Identifier: Apache-2.0
//
// Registration of ffi.StructuralKey: fields, constructor, the two hooks that let Map and Dict find
// an entry by the structure of its key, and the one that keeps the hash right where keys are
// mapped.
#include <tvm/ffi/extra/structural_key.h>
#include <tvm/ffi/extra/structural_mutate.h>
#include <tvm/ffi/reflection/registry.h>

#include <utility>

#include "core/kept_value.h"

namespace tvm {
namespace ffi {
namespace tether {
namespace {

const StructuralKeyObj* RequireKey(const Any& value) {
  const auto* key = value.as<StructuralKeyObj>();
  TVM_FFI_ICHECK(key != nullptr) << "expected `ffi.StructuralKey`, got `" << value.GetTypeKey()
                                 << "`";
  return key;
}

int64_t HashKey(const Any& key) { return RequireKey(key)->hash_i64; }

bool EqualKey(const Any& lhs, const Any& rhs) {
  const StructuralKeyObj* left = RequireKey(lhs);
  const StructuralKeyObj* right = RequireKey(rhs);
  if (left == right) return true;
  return left->hash_i64 == right->hash_i64 && StructuralEqual::Equal(left->key, right->key);
}

// The hash is not mutated, but computed again: it belongs to the structure that the key has now.
Expected<UnchangedOr<Any>> MutateKey(StructuralMutatorObj* mutator, AnyView value) {
  const Any key = value.as<StructuralKeyObj>()->key;
  Expected<UnchangedOr<Any>> result = mutator->MutateExpected(key);
  if (result.is_err()) return result;
  UnchangedOr<Any> made = std::move(result).value();
  if (made.UnchangedOrSameAs(key)) return UnchangedOr<Any>(Unchanged{});
  return UnchangedOr<Any>(Any(StructuralKey(std::move(made).ValueUnchecked())));
}

}  // namespace
}  // namespace tether

TVM_FFI_STATIC_INIT_BLOCK() {
  namespace refl = reflection;
  refl::ObjectDef<StructuralKeyObj>()
      .def(refl::init<Any>())
      .def_ro("key", &StructuralKeyObj::key)
      .def_ro("hash_i64", &StructuralKeyObj::hash_i64);
  refl::TypeAttrDef<StructuralKeyObj>()
      // Functions, not raw pointers: releases differ in how they call pointers.
      .def(refl::type_attr::kAnyHash, tether::HashKey)
      .def(refl::type_attr::kAnyEqual, tether::EqualKey)
      .native_fn_attr<&tether::MutateKey>(refl::type_attr::kStructuralMutate);
  refl::GlobalDef()
      .def("ffi.StructuralKey", [](const AnyView& key) { return StructuralKey(tether::Kept(key)); })
      .def("ffi.StructuralKeyEqual", tether::EqualKey);
}

}  // namespace ffi
}  // namespace tvm
