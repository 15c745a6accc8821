// SPDX-License-Identifier: Apache-2.0
//
// Shorthands for tests that handle objects by type key and field name only, the way a frontend
// does.
//
//   Any pair = Construct("testing.TestIntPair", 1, 2);
//   EXPECT_EQ(GetField(pair, "a").cast<int>(), 1);
//   EXPECT_EQ(ErrorText([] { Construct("testing.TestIntPair"); }), "TypeError: ...");
#ifndef TETHER_TESTS_REFLECTED_OBJECT_H_
#define TETHER_TESTS_REFLECTED_OBJECT_H_

#include <gtest/gtest.h>
#include <tvm/ffi/any.h>
#include <tvm/ffi/container/array.h>
#include <tvm/ffi/error.h>
#include <tvm/ffi/function.h>
#include <tvm/ffi/reflection/accessor.h>

#include <string>
#include <string_view>
#include <utility>

namespace tether_test {

using namespace tvm::ffi;  // NOLINT: only test sources include this

/*! \brief "Kind: message" of the error a call raises. */
template <typename F>
std::string ErrorText(F&& call) {
  try {
    call();
  } catch (const Error& error) {
    return error.kind() + ": " + error.message();
  }
  return "no error";
}

inline bool Contains(const std::string& text, const std::string& part) {
  return text.find(part) != std::string::npos;
}

/*! \brief Calls a global function. */
template <typename... Args>
Any CallGlobal(const char* name, Args&&... args) {
  return Function::GetGlobalRequired(name)(std::forward<Args>(args)...);
}

/*! \brief An attribute of exactly this type; None if it has none. */
inline Any TypeAttr(const char* type_key, const char* attr) {
  return reflection::TypeAttrColumn(attr)[TypeKeyToIndex(type_key)];
}

/*! \brief Calls the constructor of a type. */
template <typename... Args>
Any Construct(const char* type_key, Args&&... args) {
  return TypeAttr(type_key, "__ffi_init__").cast<Function>()(std::forward<Args>(args)...);
}

/*! \brief The sentinel between positional and keyword arguments. */
inline ObjectRef Kwargs() { return CallGlobal("ffi.GetKwargsObject").cast<ObjectRef>(); }

/*! \brief A field of an object or of one of its ancestors, or null. */
inline const TVMFFIFieldInfo* FindField(const Any& object, std::string_view name) {
  const TVMFFIFieldInfo* found = nullptr;
  reflection::ForEachFieldInfo(TVMFFIGetTypeInfo(object.type_index()),
                               [&](const TVMFFIFieldInfo* field) {
                                 std::string_view candidate(field->name.data, field->name.size);
                                 if (candidate == name) found = field;
                               });
  return found;
}

inline Any GetField(const Any& object, const char* name) {
  const TVMFFIFieldInfo* field = FindField(object, name);
  EXPECT_NE(field, nullptr) << name;
  return reflection::FieldGetter(field)(object.cast<ObjectRef>());
}

inline void SetField(const Any& object, const char* name, AnyView value) {
  const TVMFFIFieldInfo* field = FindField(object, name);
  ASSERT_NE(field, nullptr) << name;
  reflection::FieldSetter set(field);
  set(object.cast<ObjectRef>(), value);
}

inline int64_t GetInt(const Any& object, const char* name) {
  return GetField(object, name).cast<int64_t>();
}

/*! \brief An object with two freely usable fields, `v_any` and `v_obj`. */
inline Any MakeEdges(AnyView v_any = AnyView(), AnyView v_obj = AnyView()) {
  return Construct("testing.TestDeepCopyEdges", v_any, v_obj);
}

inline Any MakePair(int64_t a, int64_t b) { return Construct("testing.TestIntPair", a, b); }

/*! \brief Long enough to overflow any stack that is used for recursion. */
inline constexpr int kDeep = 100000;

/*! \brief A chain of objects linked by `v_any`, ending in `end`. */
inline Any MakeChain(int length, Any end = Any()) {
  for (int i = 0; i < length; ++i) end = MakeEdges(end);
  return end;
}

/*! \brief ((((end,),),),) */
inline Any MakeNestedArrays(int depth, Any end = Any()) {
  for (int i = 0; i < depth; ++i) end = Array<Any>{end};
  return end;
}

}  // namespace tether_test

#endif  // TETHER_TESTS_REFLECTED_OBJECT_H_
