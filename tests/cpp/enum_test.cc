// SPDX-License-Identifier: Apache-2.0
// enum.h and reflection/enum_def.h.
#include <gtest/gtest.h>
#include <tvm/ffi/enum.h>
#include <tvm/ffi/reflection/accessor.h>
#include <tvm/ffi/reflection/enum_def.h>

#include <limits>
#include <string>

namespace {

using namespace tvm::ffi;
namespace refl = tvm::ffi::reflection;

class ColorObj : public EnumObj {
 public:
  using EnumObj::EnumObj;
  TVM_FFI_DECLARE_OBJECT_INFO_FINAL("test_enum.Color", ColorObj, EnumObj);
};

class LevelObj : public IntEnumObj {
 public:
  using IntEnumObj::IntEnumObj;
  TVM_FFI_DECLARE_OBJECT_INFO_FINAL("test_enum.Level", LevelObj, IntEnumObj);
};

class Level : public IntEnum {
 public:
  TVM_FFI_DEFINE_OBJECT_REF_METHODS_NULLABLE(Level, IntEnum, LevelObj);
};

class OpObj : public StrEnumObj {
 public:
  using StrEnumObj::StrEnumObj;
  TVM_FFI_DECLARE_OBJECT_INFO_FINAL("test_enum.Op", OpObj, StrEnumObj);
};

class EmptyObj : public EnumObj {
 public:
  TVM_FFI_DECLARE_OBJECT_INFO_FINAL("test_enum.Empty", EmptyObj, EnumObj);
};

class BrokenObj : public EnumObj {
 public:
  TVM_FFI_DECLARE_OBJECT_INFO_FINAL("test_enum.Broken", BrokenObj, EnumObj);
};

// Without the constructor from both indices.
class BareEnumObj : public EnumObj {
 public:
  int64_t extra = 3;
  TVM_FFI_DECLARE_OBJECT_INFO_FINAL("test_enum.BareEnum", BareEnumObj, EnumObj);
};

// Entries are made before this file's dynamic initialisers run.
TVM_FFI_STATIC_INIT_BLOCK() {
  refl::ObjectDef<ColorObj>(refl::init(false));
  refl::EnumDef<ColorObj>("red").set_attr("rgb", 0xff0000).set_attr("warm", true);
  refl::EnumDef<ColorObj>("green").set_attr("rgb", 0x00ff00);
  refl::ObjectDef<LevelObj>(refl::init(false)).def_convert<Level>();
  refl::EnumDef<LevelObj>("low", std::numeric_limits<int64_t>::min());
  refl::EnumDef<LevelObj>("mid", -1).set_attr("note", "negative");
  refl::EnumDef<LevelObj>("high", std::numeric_limits<int64_t>::max());
  refl::EnumDef<OpObj>("add");
  refl::EnumDef<OpObj>("multiply and accumulate");
  refl::EnumDef<BareEnumObj>("only");
}

template <typename F>
Error Catch(F&& f) {
  try {
    f();
  } catch (const Error& error) {
    return error;
  }
  return Error("NoError", "nothing was thrown", "");
}

EnumState StateOf(int32_t type_index) {
  return refl::TypeAttrColumn(refl::type_attr::kEnumState)[type_index].cast<EnumState>();
}

TEST(Enum, LayoutIsFixed) {
  EXPECT_EQ(sizeof(EnumObj), 48u);
  EXPECT_EQ(sizeof(EnumStateObj), 48u);
  auto offset = [](const char* key, const char* field) {
    return refl::GetFieldInfo(key, field)->offset;
  };
  EXPECT_EQ(offset("ffi.Enum", "_int_index"), 24);
  EXPECT_EQ(offset("ffi.Enum", "_str_index"), 32);
  EXPECT_EQ(offset("ffi.IntEnum", "value"), 24);
  EXPECT_EQ(offset("ffi.StrEnum", "value"), 32);
  EXPECT_EQ(offset("ffi.EnumState", "entries"), 24);
  EXPECT_EQ(offset("ffi.EnumState", "indexes"), 32);
  EXPECT_EQ(offset("ffi.EnumState", "attrs"), 40);
}

TEST(Enum, EntriesAnswerToBothIndices) {
  Enum red = EnumObj::_GetByStrIndex<ColorObj>("red");
  EXPECT_EQ(red->_int_index, 0);
  EXPECT_EQ(red->_str_index, "red");
  EXPECT_TRUE(red.same_as(EnumObj::_GetByIntIndex<ColorObj>(0)));
  EXPECT_EQ(EnumObj::_GetByIntIndex<ColorObj>(1)->_str_index, "green");
  EXPECT_TRUE(red.same_as(EnumObj::_GetByStrIndex(ColorObj::RuntimeTypeIndex(), "red")));
  EXPECT_TRUE(red.same_as(EnumObj::_GetByIntIndex(ColorObj::RuntimeTypeIndex(), int64_t{0})));
  EXPECT_EQ(red.type_index(), ColorObj::RuntimeTypeIndex());
  EXPECT_EQ(red.GetTypeKey(), "test_enum.Color");
}

TEST(Enum, ADefaultConstructorIsEnough) {
  Enum only = EnumObj::_GetByIntIndex<BareEnumObj>(0);
  EXPECT_EQ(only->_str_index, "only");
  EXPECT_EQ(static_cast<const BareEnumObj*>(only.get())->extra, 3);
}

TEST(Enum, IntIndicesCoverTheWholeRange) {
  EXPECT_EQ(EnumObj::_GetByIntIndex<LevelObj>(std::numeric_limits<int64_t>::min())->_str_index,
            "low");
  EXPECT_EQ(EnumObj::_GetByIntIndex<LevelObj>(-1)->_str_index, "mid");
  EXPECT_EQ(EnumObj::_GetByIntIndex<LevelObj>(std::numeric_limits<int64_t>::max())->_str_index,
            "high");
  Level level = Any(EnumObj::_GetByStrIndex<LevelObj>("high")).cast<Level>();
  EXPECT_EQ(level->_int_index, std::numeric_limits<int64_t>::max());
}

TEST(Enum, AMissingIndexIsAValueErrorThatNamesTheEnum) {
  Error by_int = Catch([] { EnumObj::_GetByIntIndex<ColorObj>(2); });
  EXPECT_EQ(by_int.kind(), "ValueError");
  EXPECT_EQ(by_int.message(), "Enum `test_enum.Color` has no instance with index 2");
  Error by_str = Catch([] { EnumObj::_GetByStrIndex<ColorObj>("blue"); });
  EXPECT_EQ(by_str.kind(), "ValueError");
  EXPECT_EQ(by_str.message(), "Enum `test_enum.Color` has no instance with index blue");
  // A class without any entry, and a type that is no enum at all.
  EXPECT_EQ(Catch([] { EnumObj::_GetByIntIndex<EmptyObj>(0); }).message(),
            "Enum `test_enum.Empty` has no instance with index 0");
  EXPECT_EQ(Catch([] { EnumObj::_GetByStrIndex(kTVMFFIArray, "x"); }).message(),
            "Enum `ffi.Array` has no instance with index x");
}

TEST(Enum, StateKeepsOrderAndAttributes) {
  EnumState state = StateOf(ColorObj::RuntimeTypeIndex());
  ASSERT_EQ(state->entries.size(), 2u);
  Enum red = EnumObj::_GetByStrIndex<ColorObj>("red");
  Enum green = EnumObj::_GetByStrIndex<ColorObj>("green");
  EXPECT_TRUE(state->entries[0].same_as(red));
  EXPECT_TRUE(state->entries[1].same_as(green));
  EXPECT_EQ(state->indexes.size(), 4u);
  EXPECT_EQ(state->attrs["rgb"][red].cast<int>(), 0xff0000);
  EXPECT_EQ(state->attrs["rgb"][green].cast<int>(), 0x00ff00);
  EXPECT_EQ(state->attrs["warm"].size(), 1u);
  EXPECT_EQ(StateOf(LevelObj::RuntimeTypeIndex())->attrs["note"].size(), 1u);
}

TEST(Enum, OneAttributePerEnumClass) {
  for (const char* retired :
       {"__ffi_enum_entries__", "__ffi_enum_attrs__", "__ffi_enum_value_entries__"}) {
    TVMFFIByteArray name = refl::AsByteArray(retired);
    EXPECT_EQ(TVMFFIGetTypeAttrColumn(&name), nullptr) << retired;
  }
}

TEST(Enum, DuplicatesAreRefusedAndChangeNothing) {
  EnumState state = StateOf(LevelObj::RuntimeTypeIndex());
  size_t entries = state->entries.size(), indexes = state->indexes.size();
  Error same_int = Catch([] { refl::EnumDef<LevelObj>("other", -1); });
  EXPECT_EQ(same_int.kind(), "ValueError");
  EXPECT_EQ(same_int.message(), "Duplicate enum index for type `test_enum.Level`");
  EXPECT_EQ(Catch([] { refl::EnumDef<LevelObj>("mid", 5); }).kind(), "ValueError");
  EXPECT_EQ(Catch([] { refl::EnumDef<ColorObj>("red"); }).kind(), "ValueError");
  EXPECT_EQ(state->entries.size(), entries);
  EXPECT_EQ(state->indexes.size(), indexes);
}

TEST(Enum, AForeignObjectInTheColumnIsReported) {
  refl::TypeAttrDef<BrokenObj>().attr(refl::type_attr::kEnumState, 12);
  Error error = Catch([] { refl::EnumDef<BrokenObj>("x"); });
  EXPECT_EQ(error.kind(), "TypeError");
  EXPECT_EQ(error.message(), "Expected `ffi.EnumState` in enum state column, but got `int`");
  EXPECT_EQ(Catch([] { EnumObj::_GetByStrIndex<BrokenObj>("x"); }).kind(), "TypeError");
}

TEST(Enum, ValueIsAnAliasOfTheIndex) {
  Enum mid = EnumObj::_GetByIntIndex<LevelObj>(-1);
  EXPECT_EQ(refl::FieldGetter("ffi.IntEnum", "value")(mid).cast<int>(), -1);
  Enum add = EnumObj::_GetByStrIndex<OpObj>("add");
  EXPECT_EQ(refl::FieldGetter("ffi.StrEnum", "value")(add).cast<String>(), "add");
  const TVMFFIFieldInfo* value = refl::GetFieldInfo("ffi.IntEnum", "value");
  EXPECT_TRUE(value->flags & kTVMFFIFieldFlagBitMaskInitOff);
  EXPECT_TRUE(value->flags & kTVMFFIFieldFlagBitMaskSEqHashIgnore);
  EXPECT_FALSE(value->flags & kTVMFFIFieldFlagBitMaskWritable);
}

TEST(Enum, CoreTypesAreRegisteredAsTheInterfaceSays) {
  auto type = [](const char* key) { return TVMFFIGetTypeInfo(TypeKeyToIndex(key)); };
  for (const char* key : {"ffi.Enum", "ffi.IntEnum", "ffi.StrEnum"}) {
    EXPECT_EQ(type(key)->metadata->structural_eq_hash_kind, kTVMFFISEqHashKindUniqueInstance);
    EXPECT_EQ(type(key)->metadata->total_size, 48);
    EXPECT_EQ(refl::TypeAttrColumn("__ffi_init__")[type(key)->type_index], nullptr) << key;
    EXPECT_NE(refl::TypeAttrColumn("__ffi_new__")[type(key)->type_index], nullptr) << key;
  }
  EXPECT_EQ(type("ffi.EnumState")->num_methods, 1);
  EXPECT_NE(refl::TypeAttrColumn("__ffi_init__")[type("ffi.EnumState")->type_index], nullptr);
  for (const char* field : {"entries", "indexes", "attrs"}) {
    EXPECT_TRUE(refl::GetFieldInfo("ffi.EnumState", field)->flags & kTVMFFIFieldFlagBitMaskInitOff);
  }
  refl::TypeAttrColumn convert("__ffi_convert__");
  EXPECT_NE(convert[type("ffi.IntEnum")->type_index], nullptr);
  EXPECT_NE(convert[type("ffi.StrEnum")->type_index], nullptr);
  EXPECT_EQ(convert[type("ffi.Enum")->type_index], nullptr);
}

TEST(Enum, AStateSetThroughTheCApiIsUsed) {
  // What a frontend does for an enum class it defines itself.
  TVMFFIByteArray key = refl::AsByteArray("test_enum.Foreign");
  int32_t index = TVMFFITypeGetOrAllocIndex(&key, -1, 2, 0, 1, EnumObj::RuntimeTypeIndex());
  EnumState state = refl::GetMethod("ffi.EnumState", "__ffi_init__")().cast<EnumState>();
  auto object = make_object<EnumObj>(4, "four");
  details::ObjectUnsafe::GetHeader(object.get())->type_index = index;
  Enum entry(object);
  state->entries.push_back(entry);
  state->indexes.Set(4, entry);
  state->indexes.Set("four", entry);
  TVMFFIByteArray attr = refl::AsByteArray(refl::type_attr::kEnumState);
  Any owned(state);
  TVMFFIAny raw = AnyView(owned).CopyToTVMFFIAny();
  ASSERT_EQ(TVMFFITypeRegisterAttr(index, &attr, &raw), 0);
  EXPECT_TRUE(EnumObj::_GetByIntIndex(index, 4).same_as(entry));
  EXPECT_TRUE(EnumObj::_GetByStrIndex(index, "four").same_as(entry));
  EXPECT_EQ(Catch([&] { EnumObj::_GetByIntIndex(index, 5); }).message(),
            "Enum `test_enum.Foreign` has no instance with index 5");
}

}  // namespace
