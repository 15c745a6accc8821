// SPDX-License-Identifier: Apache-2.0
// Integers of any size through the C ABI, and as keys, values and text of the runtime.
#include <tvm/ffi/big_int.h>
#include <tvm/ffi/c_api.h>
#include <tvm/ffi/function.h>
#include <tvm/ffi/reflection/registry.h>
#include <tvm/ffi/string.h>

#include <cstring>

using namespace tvm::ffi;

namespace {

BigInt FromWords(const TVMFFIByteArray& input) {
  if (input.size % sizeof(int64_t) != 0) {
    TVM_FFI_THROW(ValueError) << "BigInt content must contain whole 64-bit words";
  }
  if (input.size == 0) return BigInt();
  if (input.data == nullptr) {
    TVM_FFI_THROW(ValueError) << "byte array of size " << input.size << " has no data";
  }
  const size_t count = input.size / sizeof(int64_t);
  auto object = make_inplace_array_object<details::BigIntObj, int64_t>(count, count);
  std::memcpy(details::BigIntUnsafe::GetMutableData(object), input.data, input.size);
  return details::BigIntUnsafe::Normalize(std::move(object));
}

}  // namespace

int TVMFFIBigIntFromByteArray(const TVMFFIByteArray* input, TVMFFIAny* out) {
  TVM_FFI_SAFE_CALL_BEGIN();
  tether::StoreNone(out);
  TypeTraits<BigInt>::MoveToAny(FromWords(*input), out);
  TVM_FFI_SAFE_CALL_END();
}

TVMFFIByteArray TVMFFIBigIntGetContentByteArray(const TVMFFIAny* value) {
  BigInt::ArrayView words = details::BigIntUnsafe::GetArrayView(value);
  return {reinterpret_cast<const char*>(words.data()), words.size() * sizeof(int64_t)};
}

TVM_FFI_STATIC_INIT_BLOCK() {
  namespace refl = reflection;
  // NOLINTNEXTLINE(bugprone-unused-raii): the constructor registers the type
  refl::ObjectDef<details::BigIntObj>(refl::init(false));
  // Functions, not raw pointers: clients of every release can call these.
  refl::TypeAttrDef<details::BigIntObj>()
      .def(refl::type_attr::kAnyHash,
           [](const BigInt& value) { return static_cast<int64_t>(value.hash()); })
      .def(refl::type_attr::kAnyEqual,
           [](const BigInt& lhs, const BigInt& rhs) { return lhs == rhs; })
      .def(refl::type_attr::kEq,
           [](const BigInt& lhs, const BigInt& rhs, const Function&) { return lhs == rhs; })
      .def(refl::type_attr::kCompare,
           [](const BigInt& lhs, const BigInt& rhs, const Function&) {
             return lhs == rhs ? 0 : (lhs < rhs ? -1 : 1);
           })
      .def(refl::type_attr::kHash,
           [](const BigInt& value, const Function&) { return static_cast<int64_t>(value.hash()); })
      .def(refl::type_attr::kRepr,
           [](const BigInt& value, const Function&) { return String(value.ToString()); })
      .def("__data_to_json__", [](const BigInt& value) { return String(value.ToString()); })
      .def("__data_from_json__", [](AnyView data) {
        String text = data.as_or_throw<String>();
        std::optional<BigInt> value = BigInt::FromString(text.data(), text.size());
        if (!value) TVM_FFI_THROW(ValueError) << "Invalid decimal string for ffi.BigInt";
        return *value;
      });
}
