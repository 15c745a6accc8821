// SPDX-License-Identifier: Apache-2.0
//
// The C ABI, section by section, through its C functions only where that is what is promised.
#include <gtest/gtest.h>
#include <tvm/ffi/any.h>
#include <tvm/ffi/c_api.h>
#include <tvm/ffi/container/array.h>
#include <tvm/ffi/function.h>
#include <tvm/ffi/object.h>

#include <cstddef>
#include <cstdlib>
#include <cstring>
#include <regex>
#include <set>
#include <sstream>
#include <string>
#include <string_view>
#include <thread>
#include <utility>
#include <vector>

#include "core_objects.h"
#include "reflected_object.h"

// ---- layouts, as compiled into clients

static_assert(offsetof(TVMFFIObject, combined_ref_count) == 0);
static_assert(offsetof(TVMFFIObject, type_index) == 8);
static_assert(offsetof(TVMFFIObject, __padding) == 12);
static_assert(offsetof(TVMFFIObject, deleter) == 16 &&
              offsetof(TVMFFIObject, __ensure_align) == 16);
static_assert(sizeof(TVMFFIObject) == 24 && alignof(TVMFFIObject) == 8);
static_assert(offsetof(TVMFFIAny, type_index) == 0 && offsetof(TVMFFIAny, zero_padding) == 4);
static_assert(offsetof(TVMFFIAny, small_str_len) == 4 && offsetof(TVMFFIAny, v_int64) == 8);
static_assert(offsetof(TVMFFIAny, v_bytes) == 8 && offsetof(TVMFFIAny, v_obj) == 8);
static_assert(sizeof(TVMFFIAny) == 16 && alignof(TVMFFIAny) == 8);
static_assert(offsetof(TVMFFIByteArray, data) == 0 && offsetof(TVMFFIByteArray, size) == 8);
static_assert(offsetof(TVMFFIShapeCell, data) == 0 && offsetof(TVMFFIShapeCell, size) == 8);
static_assert(offsetof(TVMFFISeqCell, data) == 0 && offsetof(TVMFFISeqCell, size) == 8);
static_assert(offsetof(TVMFFISeqCell, capacity) == 16 &&
              offsetof(TVMFFISeqCell, data_deleter) == 24);
static_assert(offsetof(TVMFFIErrorCell, kind) == 0 && offsetof(TVMFFIErrorCell, message) == 16);
static_assert(offsetof(TVMFFIErrorCell, backtrace) == 32);
static_assert(offsetof(TVMFFIErrorCell, update_backtrace) == 48);
static_assert(offsetof(TVMFFIErrorCell, cause_chain) == 56);
static_assert(offsetof(TVMFFIErrorCell, extra_context) == 64 && sizeof(TVMFFIErrorCell) == 72);
static_assert(offsetof(TVMFFIFunctionCell, safe_call) == 0);
static_assert(offsetof(TVMFFIFunctionCell, cpp_call) == 8 && sizeof(TVMFFIFunctionCell) == 16);
static_assert(offsetof(TVMFFIOpaqueObjectCell, handle) == 0 && sizeof(TVMFFIOpaqueObjectCell) == 8);
static_assert(offsetof(TVMFFIVersion, minor) == 4 && sizeof(TVMFFIVersion) == 12);
static_assert(sizeof(TVMFFIObjectAllocHeader) == 8);
static_assert(offsetof(TVMFFICustomAllocator, allocate) == 0);
static_assert(offsetof(TVMFFICustomAllocator, context) == 8 && sizeof(TVMFFICustomAllocator) == 16);
static_assert(offsetof(TVMFFIFieldInfo, name) == 0 && offsetof(TVMFFIFieldInfo, doc) == 16);
static_assert(offsetof(TVMFFIFieldInfo, metadata) == 32 && offsetof(TVMFFIFieldInfo, flags) == 48);
static_assert(offsetof(TVMFFIFieldInfo, size) == 56 && offsetof(TVMFFIFieldInfo, alignment) == 64);
static_assert(offsetof(TVMFFIFieldInfo, offset) == 72 && offsetof(TVMFFIFieldInfo, getter) == 80);
static_assert(offsetof(TVMFFIFieldInfo, setter) == 88);
static_assert(offsetof(TVMFFIFieldInfo, default_value_or_factory) == 96);
static_assert(offsetof(TVMFFIFieldInfo, field_static_type_index) == 112);
static_assert(sizeof(TVMFFIFieldInfo) == 120);
static_assert(offsetof(TVMFFIMethodInfo, flags) == 48 && offsetof(TVMFFIMethodInfo, method) == 56);
static_assert(sizeof(TVMFFIMethodInfo) == 72);
static_assert(offsetof(TVMFFITypeMetadata, creator) == 16);
static_assert(offsetof(TVMFFITypeMetadata, total_size) == 24);
static_assert(offsetof(TVMFFITypeMetadata, structural_eq_hash_kind) == 28);
static_assert(sizeof(TVMFFITypeMetadata) == 32);
static_assert(offsetof(TVMFFITypeAttrColumn, size) == 8);
static_assert(offsetof(TVMFFITypeAttrColumn, begin_index) == 12 &&
              sizeof(TVMFFITypeAttrColumn) == 16);
static_assert(offsetof(TVMFFITypeInfo, type_depth) == 4 && offsetof(TVMFFITypeInfo, type_key) == 8);
static_assert(offsetof(TVMFFITypeInfo, type_ancestors) == 24);
static_assert(offsetof(TVMFFITypeInfo, type_key_hash) == 32);
static_assert(offsetof(TVMFFITypeInfo, num_fields) == 40 &&
              offsetof(TVMFFITypeInfo, num_methods) == 44);
static_assert(offsetof(TVMFFITypeInfo, fields) == 48 && offsetof(TVMFFITypeInfo, methods) == 56);
static_assert(offsetof(TVMFFITypeInfo, metadata) == 64 && sizeof(TVMFFITypeInfo) == 72);
static_assert(sizeof(DLPackVersion) == 8 && sizeof(DLDevice) == 8 && sizeof(DLDataType) == 4);
static_assert(offsetof(DLTensor, device) == 8 && offsetof(DLTensor, ndim) == 16);
static_assert(offsetof(DLTensor, dtype) == 20 && offsetof(DLTensor, shape) == 24);
static_assert(offsetof(DLTensor, strides) == 32 && offsetof(DLTensor, byte_offset) == 40);
static_assert(sizeof(DLTensor) == 48 && sizeof(DLManagedTensor) == 64);
static_assert(offsetof(DLManagedTensor, manager_ctx) == 48 &&
              offsetof(DLManagedTensor, deleter) == 56);
static_assert(offsetof(DLManagedTensorVersioned, manager_ctx) == 8);
static_assert(offsetof(DLManagedTensorVersioned, deleter) == 16);
static_assert(offsetof(DLManagedTensorVersioned, flags) == 24);
static_assert(offsetof(DLManagedTensorVersioned, dl_tensor) == 32);
static_assert(sizeof(DLManagedTensorVersioned) == 80);
static_assert(sizeof(TVMFFITypeIndex) == 4 && sizeof(TVMFFISEqHashKind) == 4);

// ---- constants

static_assert(kTVMFFIAny == -1 && kTVMFFINone == 0 && kTVMFFISmallBytes == 12);
static_assert(kTVMFFIStaticObjectBegin == 64 && kTVMFFIObject == 64 && kTVMFFIStr == 65);
static_assert(kTVMFFIOpaquePyObject == 74 && kTVMFFIList == 75 && kTVMFFIDict == 76);
static_assert(kTVMFFIVisitInterrupt == 77 && kTVMFFIStaticObjectEnd == 79);
static_assert(kTVMFFIDynObjectBegin == 128);
static_assert(kTVMFFIObjectDeleterFlagBitMaskStrong == 1 &&
              kTVMFFIObjectDeleterFlagBitMaskWeak == 2);
static_assert(kTVMFFIObjectDeleterFlagBitMaskBoth == 3);
static_assert(kTVMFFIFieldFlagBitMaskWritable == 1 && kTVMFFIFieldFlagBitMaskHasDefault == 2);
static_assert(kTVMFFIFieldFlagBitMaskIsStaticMethod == 4 &&
              kTVMFFIFieldFlagBitMaskSEqHashIgnore == 8);
static_assert(kTVMFFIFieldFlagBitMaskSEqHashDefRecursive == 16);
static_assert(kTVMFFIFieldFlagBitMaskDefaultFromFactory == 32 &&
              kTVMFFIFieldFlagBitMaskReprOff == 64);
static_assert(kTVMFFIFieldFlagBitMaskCompareOff == 128 && kTVMFFIFieldFlagBitMaskHashOff == 256);
static_assert(kTVMFFIFieldFlagBitMaskInitOff == 512 && kTVMFFIFieldFlagBitMaskKwOnly == 1024);
static_assert(kTVMFFIFieldFlagBitSetterIsFunctionObj == 2048);
static_assert(kTVMFFIFieldFlagBitMaskSEqHashDefNonRecursive == 4096);
static_assert(kTVMFFISEqHashKindUniqueInstance == 5 && kTVMFFISEqHashKindConstTreeNode == 4);
static_assert(kTVMFFIDefRegionKindRecursive == 1 && kTVMFFIDefRegionKindNonRecursive == 2);
static_assert(kTVMFFIBacktraceUpdateModeReplace == 0 && kTVMFFIBacktraceUpdateModeAppend == 1);

extern "C" const TVMFFIByteArray* PyObjectLikeBoundaryForTests(int cross_ffi_boundary);

namespace {

using namespace tvm::ffi;
using namespace core_test;
using tether_test::Contains;

TVMFFIByteArray Bytearray(std::string_view text) { return {text.data(), text.size()}; }
std::string Text(const TVMFFIByteArray& bytes) { return std::string(bytes.data, bytes.size); }

// "Kind: message" of the raised error, which is taken out of the slot.
std::string Raised() {
  TVMFFIObjectHandle handle = nullptr;
  TVMFFIErrorMoveFromRaised(&handle);
  if (handle == nullptr) return "nothing raised";
  TVMFFIErrorCell* cell = TVMFFIErrorGetCellPtr(handle);
  std::string text = Text(cell->kind) + ": " + Text(cell->message);
  TVMFFIObjectDecRef(handle);
  return text;
}

int32_t NewType(const char* key, int32_t parent = kTVMFFIObject, int32_t depth = 1,
                int32_t child_slots = 0, int32_t can_overflow = 1) {
  TVMFFIByteArray bytes = Bytearray(key);
  return TVMFFITypeGetOrAllocIndex(&bytes, -1, depth, child_slots, can_overflow, parent);
}

int32_t QueryType(const char* key) {
  TVMFFIByteArray bytes = Bytearray(key);
  return TVMFFITypeGetOrAllocIndex(&bytes, -1, 0, 0, 0, -2);
}

uint64_t CountOf(TVMFFIObjectHandle handle) {
  return static_cast<TVMFFIObject*>(handle)->combined_ref_count;
}

// ---- version and objects

TEST(CVersion, EqualsTheHeader) {
  TVMFFIVersion version{9, 9, 9};
  TVMFFIGetVersion(&version);
  EXPECT_EQ(version.major, static_cast<uint32_t>(TVM_FFI_VERSION_MAJOR));
  EXPECT_EQ(version.minor, static_cast<uint32_t>(TVM_FFI_VERSION_MINOR));
  EXPECT_EQ(version.patch, static_cast<uint32_t>(TVM_FFI_VERSION_PATCH));
  EXPECT_EQ(version.major, 0u);
  EXPECT_EQ(version.minor, 1u);
  EXPECT_EQ(version.patch, 15u);
}

TEST(CObject, IncRefAndDecRefCount) {
  Box box(1);
  TVMFFIObjectHandle handle = details::ObjectUnsafe::RawObjectPtrFromObjectRef(box);
  EXPECT_EQ(TVMFFIObjectIncRef(handle), 0);
  EXPECT_EQ(box.use_count(), 2);
  EXPECT_EQ(TVMFFIObjectDecRef(handle), 0);
  EXPECT_EQ(box.use_count(), 1);
  EXPECT_EQ(TVMFFIObjectDecRef(nullptr), 0);
}

TEST(CObject, OpaqueObjectRunsItsDeleterOnce) {
  int deleted = 0;
  TVMFFIObjectHandle opaque = nullptr;
  ASSERT_EQ(TVMFFIObjectCreateOpaque(
                &deleted, kTVMFFIOpaquePyObject, [](void* p) { ++*static_cast<int*>(p); }, &opaque),
            0);
  EXPECT_EQ(TVMFFIObjectGetTypeIndex(opaque), kTVMFFIOpaquePyObject);
  EXPECT_EQ(TVMFFIOpaqueObjectGetCellPtr(opaque)->handle, &deleted);
  EXPECT_EQ(CountOf(opaque), details::kCombinedRefCountBothOne);
  TVMFFIObjectIncRef(opaque);
  TVMFFIObjectDecRef(opaque);
  EXPECT_EQ(deleted, 0);
  TVMFFIObjectDecRef(opaque);
  EXPECT_EQ(deleted, 1);
}

TEST(CObject, OpaqueObjectOfAnotherTypeIsRefused) {
  int deleted = 0;
  TVMFFIObjectHandle opaque = nullptr;
  EXPECT_EQ(TVMFFIObjectCreateOpaque(
                &deleted, kTVMFFIObject, [](void* p) { ++*static_cast<int*>(p); }, &opaque),
            -1);
  EXPECT_EQ(Raised(), "RuntimeError: Only kTVMFFIOpaquePyObject is supported for now");
  EXPECT_EQ(deleted, 0);
  EXPECT_EQ(opaque, nullptr);
}

TEST(CObject, DeleterMayBeNull) {
  TVMFFIObjectHandle opaque = nullptr;
  ASSERT_EQ(TVMFFIObjectCreateOpaque(nullptr, kTVMFFIOpaquePyObject, nullptr, &opaque), 0);
  TVMFFIObjectDecRef(opaque);
}

// ---- type table

TEST(CTypeTable, BuiltinTypesAreThere) {
  struct Builtin {
    int32_t index;
    const char* key;
    int32_t depth;
  };
  for (const Builtin& b : std::vector<Builtin>{{0, "None", 0},
                                               {1, "int", 0},
                                               {2, "bool", 0},
                                               {3, "float", 0},
                                               {4, "void*", 0},
                                               {5, "DataType", 0},
                                               {6, "Device", 0},
                                               {7, "DLTensor*", 0},
                                               {8, "const char*", 0},
                                               {9, "TVMFFIByteArray*", 0},
                                               {10, "ObjectRValueRef", 0},
                                               {11, "ffi.SmallStr", 0},
                                               {12, "ffi.SmallBytes", 0},
                                               {64, "ffi.Object", 0},
                                               {65, "ffi.String", 1},
                                               {66, "ffi.Bytes", 1},
                                               {67, "ffi.Error", 1},
                                               {68, "ffi.Function", 1},
                                               {69, "ffi.Shape", 1},
                                               {70, "ffi.Tensor", 1},
                                               {71, "ffi.Array", 1},
                                               {72, "ffi.Map", 1},
                                               {73, "ffi.Module", 1},
                                               {74, "ffi.OpaquePyObject", 1},
                                               {75, "ffi.List", 1},
                                               {76, "ffi.Dict", 1}}) {
    const TVMFFITypeInfo* info = TVMFFIGetTypeInfo(b.index);
    EXPECT_EQ(info->type_index, b.index);
    EXPECT_EQ(Text(info->type_key), b.key);
    EXPECT_EQ(info->type_key.data[info->type_key.size], '\0');
    EXPECT_EQ(info->type_depth, b.depth) << b.key;
    EXPECT_EQ(info->type_key_hash, std::hash<std::string_view>()(b.key)) << b.key;
    EXPECT_EQ(QueryType(b.key), b.index);
    if (b.depth == 1) {
      EXPECT_EQ(info->type_ancestors[0]->type_index, 64);
    }
  }
}

#if defined(__GLIBCXX__) && defined(__x86_64__)
TEST(CTypeTable, KeyHashesAreTheKnownOnes) {
  EXPECT_EQ(TVMFFIGetTypeInfo(0)->type_key_hash, 0xfb6ac968ce0ca5aaULL);
  EXPECT_EQ(TVMFFIGetTypeInfo(1)->type_key_hash, 0xaed305094b3d4a9fULL);
  EXPECT_EQ(TVMFFIGetTypeInfo(64)->type_key_hash, 0x33a211b274fa0106ULL);
  EXPECT_EQ(TVMFFIGetTypeInfo(65)->type_key_hash, 0x9cffcd16e9064976ULL);
  EXPECT_EQ(TVMFFIGetTypeInfo(68)->type_key_hash, 0xb3b21b94552cae3dULL);
}
#endif

TEST(CTypeTable, RootHasItsMetadata) {
  const TVMFFITypeInfo* root = TVMFFIGetTypeInfo(kTVMFFIObject);
  ASSERT_NE(root->metadata, nullptr);
  EXPECT_EQ(root->metadata->total_size, 24);
  EXPECT_EQ(root->metadata->creator, nullptr);
  EXPECT_EQ(root->metadata->structural_eq_hash_kind, kTVMFFISEqHashKindUnsupported);
  EXPECT_EQ(root->metadata->doc.size, 0u);
}

TEST(CTypeTable, KnownKeyReturnsItsIndexWhateverElseIsAsked) {
  int32_t index = NewType("core_test.c.known");
  EXPECT_GE(index, kTVMFFIDynObjectBegin);
  TVMFFIByteArray key = Bytearray("core_test.c.known");
  EXPECT_EQ(TVMFFITypeGetOrAllocIndex(&key, 99, 7, 3, 0, -1), index);
  EXPECT_EQ(TVMFFITypeGetOrAllocIndex(&key, -1, 1, 0, 1, kTVMFFIObject), index);
  EXPECT_EQ(TVMFFIGetTypeInfo(index), TVMFFIGetTypeInfo(index)) << "records never move";
}

TEST(CTypeTable, QueryDoesNotRegister) {
  EXPECT_EQ(QueryType("core_test.c.query"), -2);
  TVMFFIByteArray key = Bytearray("core_test.c.query");
  int32_t out = 12345;
  EXPECT_EQ(TVMFFITypeKeyToIndex(&key, &out), -1);
  EXPECT_EQ(out, 12345) << "a failed lookup leaves the output";
  EXPECT_TRUE(Contains(Raised(), "Cannot find type `core_test.c.query`"));
  int32_t index = NewType("core_test.c.query");
  EXPECT_EQ(QueryType("core_test.c.query"), index);
  EXPECT_EQ(TVMFFITypeKeyToIndex(&key, &out), 0);
  EXPECT_EQ(out, index);
}

TEST(CTypeTable, ReservedSlotsAreContiguousAndNest) {
  int32_t parent = NewType("core_test.c.parent", kTVMFFIObject, 1, 4);
  int32_t other = NewType("core_test.c.other");
  EXPECT_GT(other, parent + 4) << "nobody else gets an index inside the range";
  int32_t first = NewType("core_test.c.first", parent, 2, 1);
  EXPECT_EQ(first, parent + 1);
  int32_t second = NewType("core_test.c.second", parent, 2);
  EXPECT_EQ(second, parent + 3) << "after first and its own slot";
  int32_t grandchild = NewType("core_test.c.grandchild", first, 3);
  EXPECT_EQ(grandchild, first + 1);
  int32_t third = NewType("core_test.c.third", parent, 2);
  EXPECT_EQ(third, parent + 4);
  int32_t overflow = NewType("core_test.c.overflow", parent, 2);
  EXPECT_GT(overflow, other);
  const TVMFFITypeInfo* info = TVMFFIGetTypeInfo(grandchild);
  ASSERT_EQ(info->type_depth, 3);
  EXPECT_EQ(info->type_ancestors[0]->type_index, kTVMFFIObject);
  EXPECT_EQ(info->type_ancestors[1]->type_index, parent);
  EXPECT_EQ(info->type_ancestors[2]->type_index, first);
}

TEST(CTypeTable, KeysAreCopied) {
  char buffer[] = "core_test.c.copied";
  TVMFFIByteArray key = Bytearray(buffer);
  int32_t index = TVMFFITypeGetOrAllocIndex(&key, -1, 1, 0, 1, kTVMFFIObject);
  std::memset(buffer, 'x', sizeof(buffer) - 1);
  EXPECT_EQ(Text(TVMFFIGetTypeInfo(index)->type_key), "core_test.c.copied");
}

TEST(CTypeTable, RegisteredKeysAreListedInIndexOrder) {
  NewType("core_test.c.listed");
  auto keys = tether_test::CallGlobal("ffi.GetRegisteredTypeKeys").cast<Array<String>>();
  std::vector<int32_t> indices;
  std::set<std::string> names;
  for (const String& key : keys) {
    indices.push_back(QueryType(key.c_str()));
    names.insert(key);
  }
  EXPECT_TRUE(std::is_sorted(indices.begin(), indices.end()));
  EXPECT_EQ(names.count("None") + names.count("ffi.Dict") + names.count("core_test.c.listed"), 3u);
  EXPECT_EQ(names.size(), keys.size());
}

TEST(CTypeTable, TypesOfTheRuntimeAreRegistered) {
  struct Known {
    const char* key;
    int32_t total_size;
    int32_t kind;
  };
  for (const Known& k : std::vector<Known>{{"ffi.Module", 48, 0},
                                           {"ffi.VisitInterrupt", 40, 0},
                                           {"ffi.EnumState", 48, 0},
                                           {"ffi.Enum", 48, 5},
                                           {"ffi.IntEnum", 48, 5},
                                           {"ffi.StrEnum", 48, 5},
                                           {"ffi.reflection.AccessStep", 48, 4},
                                           {"ffi.reflection.AccessPath", 48, 4},
                                           {"ffi.StructuralVisitor", 40, 0},
                                           {"ffi.VisitErrorContext", 40, 0},
                                           {"ffi.StructuralKey", 48, 0}}) {
    int32_t index = QueryType(k.key);
    ASSERT_GE(index, 0) << k.key;
    const TVMFFITypeMetadata* metadata = TVMFFIGetTypeInfo(index)->metadata;
    ASSERT_NE(metadata, nullptr) << k.key;
    EXPECT_EQ(metadata->total_size, k.total_size) << k.key;
    EXPECT_EQ(metadata->structural_eq_hash_kind, k.kind) << k.key;
  }
}

// ---- reflection records

int GetNothing(void*, TVMFFIAny* result) {
  *result = TVMFFIAny{};
  return 0;
}
int SetNothing(void*, const TVMFFIAny*) { return 0; }

TVMFFIFieldInfo FieldNamed(std::string_view name) {
  TVMFFIFieldInfo info{};
  info.name = Bytearray(name);
  info.flags = kTVMFFIFieldFlagBitMaskWritable;
  info.size = 8;
  info.alignment = 8;
  info.offset = 24;
  info.getter = GetNothing;
  info.setter = reinterpret_cast<void*>(&SetNothing);
  info.field_static_type_index = kTVMFFIInt;
  return info;
}

TEST(CReflection, FieldsAreCopiedInOrder) {
  int32_t type = NewType("core_test.c.fields");
  std::string name = "alpha", doc = "what it is", metadata = "{}";
  TVMFFIFieldInfo field = FieldNamed(name);
  field.doc = Bytearray(doc);
  field.metadata = Bytearray(metadata);
  ASSERT_EQ(TVMFFITypeRegisterField(type, &field), 0);
  name.assign("XXXXX");
  doc.assign("overwritten");
  for (int i = 0; i < 20; ++i) {
    std::string more = "field" + std::to_string(i);
    TVMFFIFieldInfo another = FieldNamed(more);
    another.offset = 32 + 8 * i;
    ASSERT_EQ(TVMFFITypeRegisterField(type, &another), 0);
  }
  const TVMFFITypeInfo* info = TVMFFIGetTypeInfo(type);
  ASSERT_EQ(info->num_fields, 21);
  const TVMFFIFieldInfo& first = info->fields[0];
  EXPECT_EQ(Text(first.name), "alpha");
  EXPECT_EQ(first.name.data[5], '\0');
  EXPECT_EQ(Text(first.doc), "what it is");
  EXPECT_EQ(Text(first.metadata), "{}");
  EXPECT_EQ(first.offset, 24);
  EXPECT_EQ(first.size, 8);
  EXPECT_EQ(first.alignment, 8);
  EXPECT_EQ(first.getter, GetNothing);
  EXPECT_EQ(first.setter, reinterpret_cast<void*>(&SetNothing));
  EXPECT_EQ(first.field_static_type_index, kTVMFFIInt);
  EXPECT_EQ(first.default_value_or_factory.type_index, kTVMFFINone);
  EXPECT_EQ(Text(info->fields[20].name), "field19");
  EXPECT_EQ(info->fields[20].offset, 32 + 8 * 19);
  EXPECT_EQ(info->fields[1].doc.data, nullptr) << "an empty text is {NULL, 0}";
}

TEST(CReflection, DefaultValueIsOwnedForEver) {
  int32_t type = NewType("core_test.c.defaults");
  Box box(5);
  TVMFFIFieldInfo field = FieldNamed("boxed");
  field.flags |= kTVMFFIFieldFlagBitMaskHasDefault;
  field.default_value_or_factory = AnyView(box).CopyToTVMFFIAny();
  ASSERT_EQ(TVMFFITypeRegisterField(type, &field), 0);
  EXPECT_EQ(box.use_count(), 2);
  std::string text = "a borrowed default text";
  TVMFFIFieldInfo raw = FieldNamed("text");
  raw.flags |= kTVMFFIFieldFlagBitMaskHasDefault;
  raw.default_value_or_factory = AnyView(text.c_str()).CopyToTVMFFIAny();
  ASSERT_EQ(TVMFFITypeRegisterField(type, &raw), 0);
  text.assign("overwritten overwritten");
  const TVMFFITypeInfo* info = TVMFFIGetTypeInfo(type);
  EXPECT_EQ(AnyView::CopyFromTVMFFIAny(info->fields[0].default_value_or_factory).cast<Box>()->value,
            5);
  EXPECT_EQ(info->fields[1].default_value_or_factory.type_index, kTVMFFIStr);
  EXPECT_EQ(AnyView::CopyFromTVMFFIAny(info->fields[1].default_value_or_factory).cast<String>(),
            "a borrowed default text");
}

TEST(CReflection, DefaultWithoutTheFlagIsIgnored) {
  int32_t type = NewType("core_test.c.nodefault");
  TVMFFIFieldInfo field = FieldNamed("x");
  field.default_value_or_factory = AnyView(3).CopyToTVMFFIAny();
  ASSERT_EQ(TVMFFITypeRegisterField(type, &field), 0);
  EXPECT_EQ(TVMFFIGetTypeInfo(type)->fields[0].default_value_or_factory.type_index, kTVMFFINone);
}

TEST(CReflection, FunctionSetterIsRetained) {
  int32_t type = NewType("core_test.c.setter");
  Function setter = Function::FromTyped([](void*, AnyView) {});
  TVMFFIFieldInfo field = FieldNamed("x");
  field.flags |= kTVMFFIFieldFlagBitSetterIsFunctionObj;
  field.setter = details::ObjectUnsafe::RawObjectPtrFromObjectRef(setter);
  ASSERT_EQ(TVMFFITypeRegisterField(type, &field), 0);
  EXPECT_EQ(setter.use_count(), 2);
}

TEST(CReflection, DuplicateFieldIsRefused) {
  int32_t type = NewType("core_test.c.duplicate");
  TVMFFIFieldInfo field = FieldNamed("x");
  ASSERT_EQ(TVMFFITypeRegisterField(type, &field), 0);
  EXPECT_EQ(TVMFFITypeRegisterField(type, &field), -1);
  EXPECT_TRUE(Contains(Raised(), "Duplicate field name \"x\" in type \"core_test.c.duplicate\""));
  EXPECT_EQ(TVMFFIGetTypeInfo(type)->num_fields, 1);
}

TEST(CReflection, FieldOfAnAncestorWarns) {
  int32_t parent = NewType("core_test.c.ancestor", kTVMFFIObject, 1, 2);
  int32_t child = NewType("core_test.c.descendant", parent, 2);
  TVMFFIFieldInfo field = FieldNamed("x");
  ASSERT_EQ(TVMFFITypeRegisterField(parent, &field), 0);
  testing::internal::CaptureStderr();
  EXPECT_EQ(TVMFFITypeRegisterField(child, &field), 0);
  EXPECT_EQ(
      testing::internal::GetCapturedStderr(),
      "[WARNING] Field \"x\" in type \"core_test.c.descendant\" duplicates an ancestor field in "
      "\"core_test.c.ancestor\". Child types should not re-register inherited fields.\n");
}

TEST(CReflection, MethodsAreRetainedAndMayRepeat) {
  int32_t type = NewType("core_test.c.methods");
  Function method = Function::FromTyped([](AnyView self) { return 1; });
  TVMFFIMethodInfo info{};
  info.name = Bytearray("m");
  info.flags = kTVMFFIFieldFlagBitMaskIsStaticMethod;
  info.method = AnyView(method).CopyToTVMFFIAny();
  ASSERT_EQ(TVMFFITypeRegisterMethod(type, &info), 0);
  ASSERT_EQ(TVMFFITypeRegisterMethod(type, &info), 0);
  EXPECT_EQ(method.use_count(), 3);
  const TVMFFITypeInfo* record = TVMFFIGetTypeInfo(type);
  ASSERT_EQ(record->num_methods, 2);
  EXPECT_EQ(Text(record->methods[1].name), "m");
  EXPECT_EQ(record->methods[1].flags, kTVMFFIFieldFlagBitMaskIsStaticMethod);
  EXPECT_EQ(record->methods[1].method.type_index, kTVMFFIFunction);
}

TEST(CReflection, MetadataIsRegisteredOnce) {
  int32_t type = NewType("core_test.c.metadata");
  EXPECT_EQ(TVMFFIGetTypeInfo(type)->metadata, nullptr);
  TVMFFITypeMetadata metadata{};
  metadata.doc = Bytearray("doc");
  metadata.total_size = 32;
  metadata.structural_eq_hash_kind = kTVMFFISEqHashKindTreeNode;
  ASSERT_EQ(TVMFFITypeRegisterMetadata(type, &metadata), 0);
  const TVMFFITypeMetadata* stored = TVMFFIGetTypeInfo(type)->metadata;
  ASSERT_NE(stored, nullptr);
  EXPECT_EQ(Text(stored->doc), "doc");
  EXPECT_EQ(stored->total_size, 32);
  testing::internal::CaptureStderr();
  EXPECT_EQ(TVMFFITypeRegisterMetadata(type, &metadata), -1);
  std::string log = testing::internal::GetCapturedStderr();
  std::string expected =
      "RuntimeError: Overriding core_test.c.metadata, possible causes:\n"
      "- two ObjectDef<T>() calls for the same T \n"
      "- when we forget to assign _type_key to ObjectRef<Y> that inherits from T\n"
      "- another type with the same key is already registered\n"
      "Cross check the reflection registration.";
  EXPECT_EQ(Raised(), expected);
  EXPECT_TRUE(Contains(log, expected)) << log;
}

// ---- attribute columns

const TVMFFITypeAttrColumn* Column(const char* name) {
  TVMFFIByteArray bytes = Bytearray(name);
  return TVMFFIGetTypeAttrColumn(&bytes);
}
int RegisterAttr(int32_t type, const char* name, const AnyView& value) {
  TVMFFIByteArray bytes = Bytearray(name);
  TVMFFIAny raw = value.CopyToTVMFFIAny();
  return TVMFFITypeRegisterAttr(type, &bytes, &raw);
}

TEST(CAttribute, UnknownColumnIsNull) { EXPECT_EQ(Column("core_test_no_such_column"), nullptr); }

TEST(CAttribute, NoneTypeOnlyMakesTheColumn) {
  ASSERT_EQ(RegisterAttr(kTVMFFINone, "core_test_empty", 5), 0);
  const TVMFFITypeAttrColumn* column = Column("core_test_empty");
  ASSERT_NE(column, nullptr);
  EXPECT_EQ(column->size, 0);
  EXPECT_EQ(column->begin_index, 0);
}

TEST(CAttribute, ColumnHoldsValuesOfAnyKind) {
  const char* name = "core_test_kinds";
  Box box(1);
  ASSERT_EQ(RegisterAttr(kTVMFFIInt, name, 42), 0);
  ASSERT_EQ(RegisterAttr(kTVMFFIStr, name, "a borrowed text becomes owned"), 0);
  ASSERT_EQ(RegisterAttr(kTVMFFIArray, name, box), 0);
  const TVMFFITypeAttrColumn* column = Column(name);
  EXPECT_EQ(column->begin_index, 0);
  EXPECT_EQ(column->size, kTVMFFIArray + 1);
  EXPECT_EQ(column->data[kTVMFFIInt].v_int64, 42);
  EXPECT_EQ(column->data[kTVMFFIStr].type_index, kTVMFFIStr);
  EXPECT_EQ(column->data[kTVMFFIArray].v_obj,
            details::ObjectUnsafe::TVMFFIObjectPtrFromObjectRef(box));
  EXPECT_EQ(column->data[kTVMFFIFloat].type_index, kTVMFFINone);
  EXPECT_EQ(box.use_count(), 2);
}

TEST(CAttribute, AddressIsStableWhileTheColumnGrows) {
  const char* name = "core_test_grows";
  ASSERT_EQ(RegisterAttr(1, name, 1), 0);
  const TVMFFITypeAttrColumn* column = Column(name);
  const TVMFFIAny* old_data = column->data;
  for (int32_t type = 2; type < 600; ++type) ASSERT_EQ(RegisterAttr(type, name, type), 0);
  EXPECT_EQ(Column(name), column);
  EXPECT_EQ(column->size, 600);
  for (int32_t type = 1; type < 600; ++type) EXPECT_EQ(column->data[type].v_int64, type);
  EXPECT_EQ(old_data[1].v_int64, 1) << "retired arrays stay readable";
}

TEST(CAttribute, SecondValueIsRefused) {
  const char* name = "core_test_once";
  ASSERT_EQ(RegisterAttr(7, name, 1), 0);
  EXPECT_EQ(RegisterAttr(7, name, 2), -1);
  EXPECT_EQ(
      Raised(),
      "RuntimeError: TypeAttr `core_test_once` is already registered for type index 7. To update "
      "the stored value, register a mutable container (e.g., Dict/List) once and mutate it in "
      "place on subsequent calls.");
  EXPECT_EQ(Column(name)->data[7].v_int64, 1);
}

TEST(CAttribute, ColumnsOfTheRuntimeExist) {
  for (const char* name :
       {"__ffi_new__", "__ffi_init__", "__ffi_convert__", "__ffi_shallow_copy__", "__ffi_repr__",
        "__ffi_hash__", "__ffi_eq__", "__ffi_compare__", "__any_hash__", "__any_equal__",
        "__s_hash__", "__s_equal__", "__s_visit__", "__data_to_json__", "__data_from_json__",
        "__ffi_enum__"}) {
    EXPECT_NE(Column(name), nullptr) << name;
  }
  auto has = [](const char* name, int32_t type) {
    const TVMFFITypeAttrColumn* column = Column(name);
    return type < column->size && column->data[type].type_index != kTVMFFINone;
  };
  for (int32_t type = 64; type <= 72; ++type) EXPECT_TRUE(has("__ffi_convert__", type)) << type;
  EXPECT_TRUE(has("__s_visit__", kTVMFFIArray) && has("__s_visit__", kTVMFFIDict));
  EXPECT_TRUE(has("__any_hash__", QueryType("ffi.StructuralKey")));
  EXPECT_TRUE(has("__ffi_init__", QueryType("ffi.EnumState")));
  EXPECT_TRUE(has("__ffi_repr__", QueryType("ffi.reflection.AccessPath")));
}

// ---- functions

int ReturnHandle(void* handle, const TVMFFIAny*, int32_t num_args, TVMFFIAny* result) {
  result->type_index = kTVMFFIOpaquePtr;
  result->v_ptr = handle;
  return num_args == 99 ? 7 : 0;
}

TEST(CFunction, WithoutContextTheHandleIsTheFunction) {
  TVMFFIObjectHandle f = nullptr;
  ASSERT_EQ(TVMFFIFunctionCreate(nullptr, ReturnHandle, nullptr, &f), 0);
  EXPECT_EQ(TVMFFIObjectGetTypeIndex(f), kTVMFFIFunction);
  EXPECT_EQ(TVMFFIFunctionGetCellPtr(f)->safe_call, &ReturnHandle);
  EXPECT_EQ(TVMFFIFunctionGetCellPtr(f)->cpp_call, nullptr);
  TVMFFIAny result{};
  ASSERT_EQ(TVMFFIFunctionCall(f, nullptr, 0, &result), 0);
  EXPECT_EQ(result.v_ptr, f);
  TVMFFIObjectDecRef(f);
}

TEST(CFunction, WithContextTheHandleIsTheContext) {
  int deleted = 0;
  TVMFFIObjectHandle f = nullptr;
  ASSERT_EQ(TVMFFIFunctionCreate(
                &deleted, ReturnHandle, [](void* self) { ++*static_cast<int*>(self); }, &f),
            0);
  EXPECT_EQ(TVMFFIFunctionGetCellPtr(f)->cpp_call, nullptr);
  TVMFFIAny result{};
  ASSERT_EQ(TVMFFIFunctionCall(f, nullptr, 0, &result), 0);
  EXPECT_EQ(result.v_ptr, &deleted);
  TVMFFIAny args[1] = {};
  EXPECT_EQ(TVMFFIFunctionCall(f, args, 99, &result), 7) << "codes of callbacks are passed through";
  TVMFFIObjectDecRef(f);
  EXPECT_EQ(deleted, 1);
}

TEST(CFunction, ContextWithoutDeleterIsNotDeleted) {
  int context = 0;
  TVMFFIObjectHandle f = nullptr;
  ASSERT_EQ(TVMFFIFunctionCreate(&context, ReturnHandle, nullptr, &f), 0);
  TVMFFIAny result{};
  ASSERT_EQ(TVMFFIFunctionCall(f, nullptr, 0, &result), 0);
  EXPECT_EQ(result.v_ptr, &context);
  TVMFFIObjectDecRef(f);
}

TEST(CFunction, GlobalTableCopiesNamesAndRetainsFunctions) {
  TVMFFIObjectHandle f = nullptr;
  ASSERT_EQ(TVMFFIFunctionCreate(nullptr, ReturnHandle, nullptr, &f), 0);
  char buffer[] = "core_test.c.global";
  TVMFFIByteArray name = Bytearray(buffer);
  ASSERT_EQ(TVMFFIFunctionSetGlobal(&name, f, 0), 0);
  EXPECT_EQ(CountOf(f), 0x100000002ULL);
  std::memset(buffer, 'x', sizeof(buffer) - 1);
  name = Bytearray("core_test.c.global");
  TVMFFIObjectHandle found = nullptr;
  ASSERT_EQ(TVMFFIFunctionGetGlobal(&name, &found), 0);
  EXPECT_EQ(found, f);
  EXPECT_EQ(CountOf(f), 0x100000003ULL);
  EXPECT_EQ(TVMFFIFunctionSetGlobal(&name, f, 0), -1);
  EXPECT_EQ(Raised(), "RuntimeError: Global Function `core_test.c.global` is already registered");
  EXPECT_EQ(TVMFFIFunctionSetGlobal(&name, f, 1), 0);
  TVMFFIObjectDecRef(found);
  Function::RemoveGlobal("core_test.c.global");
  EXPECT_EQ(CountOf(f), 0x100000001ULL);
  TVMFFIObjectDecRef(f);
}

TEST(CFunction, AbsentGlobalIsNullNotAnError) {
  TVMFFIByteArray name = Bytearray("core_test.c.absent");
  TVMFFIObjectHandle found = &name;
  EXPECT_EQ(TVMFFIFunctionGetGlobal(&name, &found), 0);
  EXPECT_EQ(found, nullptr);
}

TEST(CFunction, MethodInfoBringsItsMetadata) {
  Function f = Function::FromTyped([] { return 1; });
  TVMFFIMethodInfo info{};
  info.name = Bytearray("core_test.c.method_info");
  info.doc = Bytearray("doc");
  info.metadata = Bytearray("{\"a\":1}");
  info.method = AnyView(f).CopyToTVMFFIAny();
  ASSERT_EQ(TVMFFIFunctionSetGlobalFromMethodInfo(&info, 0), 0);
  EXPECT_EQ(tether_test::CallGlobal("ffi.GetGlobalFuncMetadata", "core_test.c.method_info")
                .cast<String>(),
            "{\"a\":1}");
  testing::internal::CaptureStderr();
  EXPECT_EQ(TVMFFIFunctionSetGlobalFromMethodInfo(&info, 0), -1);
  std::string log = testing::internal::GetCapturedStderr();
  std::string expected =
      "RuntimeError: Global Function `core_test.c.method_info` is already registered, possible "
      "causes:\n- Two GlobalDef().def registrations for the same function \nPlease remove the "
      "duplicate registration.";
  EXPECT_EQ(Raised(), expected);
  EXPECT_TRUE(Contains(log, expected)) << log;
  EXPECT_EQ(TVMFFIFunctionSetGlobalFromMethodInfo(&info, 1), 0);
  info.method = AnyView(1).CopyToTVMFFIAny();
  EXPECT_EQ(TVMFFIFunctionSetGlobalFromMethodInfo(&info, 1), -1);
  EXPECT_EQ(Raised(), "TypeError: Cannot convert from type `int` to `ffi.Function`");
  Function::RemoveGlobal("core_test.c.method_info");
}

TEST(CFunction, ViewsBecomeOwnedValues) {
  auto owned = [](const AnyView& view) {
    TVMFFIAny raw = view.CopyToTVMFFIAny(), out{};
    EXPECT_EQ(TVMFFIAnyViewToOwnedAny(&raw, &out), 0);
    return details::AnyUnsafe::MoveTVMFFIAnyToAny(&out);
  };
  Box box(1);
  EXPECT_EQ(owned(1).cast<int>(), 1);
  Any any = owned(box);
  EXPECT_EQ(box.use_count(), 2);
  EXPECT_EQ(owned("text").type_index(), kTVMFFISmallStr);
  EXPECT_EQ(owned("a longer text").type_index(), kTVMFFIStr);
  TVMFFIByteArray bytes = Bytearray("bytes");
  EXPECT_EQ(owned(&bytes).type_index(), kTVMFFISmallBytes);
  EXPECT_EQ(owned(nullptr).type_index(), kTVMFFINone);

  TVMFFIObject* slot = details::ObjectUnsafe::MoveObjectRefToTVMFFIObjectPtr(Box(2));
  TVMFFIAny rvalue{}, out{};
  rvalue.type_index = kTVMFFIObjectRValueRef;
  rvalue.v_ptr = &slot;
  ASSERT_EQ(TVMFFIAnyViewToOwnedAny(&rvalue, &out), 0);
  EXPECT_EQ(slot, nullptr);
  EXPECT_EQ(CountOf(out.v_obj), details::kCombinedRefCountBothOne);
  TVMFFIObjectDecRef(out.v_obj);
  EXPECT_EQ(TVMFFIAnyViewToOwnedAny(&rvalue, &out), -1);
  EXPECT_TRUE(Contains(Raised(), "RValueRef already moved"));
}

// ---- errors

TEST(CError, SlotHoldsTheLatestError) {
  TVMFFIErrorSetRaised(nullptr);
  TVMFFIObjectHandle taken = &taken;
  TVMFFIErrorMoveFromRaised(&taken);
  EXPECT_EQ(taken, nullptr) << "nothing raised";
  TVMFFIErrorSetRaisedFromCStr("ValueError", "first");
  TVMFFIErrorSetRaisedFromCStr("KeyError", "second");
  EXPECT_EQ(Raised(), "KeyError: second");
  EXPECT_EQ(Raised(), "nothing raised") << "taking empties the slot";
}

TEST(CError, SetRaisedRetains) {
  Error error("ValueError", "m", "");
  TVMFFIErrorSetRaised(details::ObjectUnsafe::RawObjectPtrFromObjectRef(error));
  EXPECT_EQ(error.use_count(), 2);
  TVMFFIErrorSetRaised(details::ObjectUnsafe::RawObjectPtrFromObjectRef(error));
  EXPECT_EQ(error.use_count(), 2);
  TVMFFIObjectHandle taken = nullptr;
  TVMFFIErrorMoveFromRaised(&taken);
  EXPECT_EQ(taken, details::ObjectUnsafe::RawObjectPtrFromObjectRef(error));
  EXPECT_EQ(error.use_count(), 2);
  TVMFFIErrorSetRaised(taken);
  TVMFFIErrorSetRaised(nullptr);
  EXPECT_EQ(error.use_count(), 2) << "NULL releases the slot";
  TVMFFIObjectDecRef(taken);
}

TEST(CError, PartsAreConcatenatedAndNullPartsSkipped) {
  const char* parts[] = {"one ", nullptr, "two", "", nullptr, " three"};
  TVMFFIErrorSetRaisedFromCStrParts("ValueError", parts, 6);
  EXPECT_EQ(Raised(), "ValueError: one two three");
  TVMFFIErrorSetRaisedFromCStrParts("ValueError", parts, 0);
  EXPECT_EQ(Raised(), "ValueError: ");
  TVMFFIErrorSetRaisedFromCStrParts("ValueError", parts, 1);
  Error error = details::MoveFromSafeCallRaised();
  EXPECT_EQ(error.message(), "one ");
}

TEST(CError, SlotBelongsToTheThread) {
  TVMFFIErrorSetRaisedFromCStr("ValueError", "of the main thread");
  std::string seen;
  std::thread other([&] {
    seen = Raised();
    TVMFFIErrorSetRaisedFromCStr("KeyError", "left behind at thread exit");
  });
  other.join();
  EXPECT_EQ(seen, "nothing raised");
  EXPECT_EQ(Raised(), "ValueError: of the main thread");
}

TEST(CError, ErrorLeftBehindDisturbsNothing) {
  TVMFFIErrorSetRaisedFromCStr("ValueError", "left behind");
  Function f = Function::FromTyped([](int x) { return x; });
  EXPECT_EQ(f(1).cast<int>(), 1);
  EXPECT_EQ(f.CallExpected<int>(2).value(), 2);
  EXPECT_EQ(Raised(), "ValueError: left behind");
}

TEST(CError, CreateCopiesItsTexts) {
  std::string kind = "ValueError", message = "message", backtrace = "bt\n";
  TVMFFIByteArray k = Bytearray(kind), m = Bytearray(message), b = Bytearray(backtrace);
  TVMFFIObjectHandle handle = nullptr;
  ASSERT_EQ(TVMFFIErrorCreate(&k, &m, &b, &handle), 0);
  kind.assign("XXXXXXXXXX");
  message.assign("YYYYYYY");
  TVMFFIErrorCell* cell = TVMFFIErrorGetCellPtr(handle);
  EXPECT_EQ(Text(cell->kind), "ValueError");
  EXPECT_STREQ(cell->message.data, "message");
  EXPECT_EQ(cell->cause_chain, nullptr);
  EXPECT_EQ(cell->extra_context, nullptr);
  ASSERT_NE(cell->update_backtrace, nullptr);
  TVMFFIByteArray more = Bytearray("more\n");
  cell->update_backtrace(handle, &more, kTVMFFIBacktraceUpdateModeAppend);
  EXPECT_EQ(Text(cell->backtrace), "bt\nmore\n");
  cell->update_backtrace(handle, &more, kTVMFFIBacktraceUpdateModeReplace);
  EXPECT_STREQ(cell->backtrace.data, "more\n");
  EXPECT_EQ(TVMFFIObjectGetTypeIndex(handle), kTVMFFIError);
  TVMFFIObjectDecRef(handle);
}

TEST(CError, CauseAndContextAreRetained) {
  Error cause("KeyError", "cause", "");
  Box context(1);
  TVMFFIByteArray empty = Bytearray("");
  TVMFFIObjectHandle handle = nullptr;
  ASSERT_EQ(TVMFFIErrorCreateWithCauseAndExtraContext(
                &empty, &empty, &empty, details::ObjectUnsafe::RawObjectPtrFromObjectRef(cause),
                details::ObjectUnsafe::RawObjectPtrFromObjectRef(context), &handle),
            0);
  EXPECT_EQ(cause.use_count(), 2);
  EXPECT_EQ(context.use_count(), 2);
  TVMFFIObjectDecRef(handle);
  EXPECT_EQ(cause.use_count(), 1);
  EXPECT_EQ(context.use_count(), 1);
}

// ---- backtraces

struct ScopedLimit {
  explicit ScopedLimit(const char* value) { setenv("TVM_TRACEBACK_LIMIT", value, 1); }
  ~ScopedLimit() { unsetenv("TVM_TRACEBACK_LIMIT"); }
};

std::vector<std::string> Lines(const TVMFFIByteArray* bytes) {
  std::vector<std::string> lines;
  std::istringstream is(Text(*bytes));
  for (std::string line; std::getline(is, line);) lines.push_back(line);
  return lines;
}

TEST(CBacktrace, EveryLineHasTheFormFrontendsParse) {
  std::regex form("  File \"[^\"]*\", line [0-9]+, in .+");
  std::vector<std::string> lines = Lines(TVMFFIBacktrace("file.cc", 12, "some_function(int)", 0));
  ASSERT_FALSE(lines.empty());
  EXPECT_EQ(lines[0], "  File \"file.cc\", line 12, in some_function(int)");
  for (const std::string& line : lines) EXPECT_TRUE(std::regex_match(line, form)) << line;
}

TEST(CBacktrace, ExplicitFrameNeedsFileAndFunction) {
  for (const std::string& line : Lines(TVMFFIBacktrace("file.cc", 12, nullptr, 0))) {
    EXPECT_FALSE(Contains(line, "file.cc")) << line;
  }
  for (const std::string& line : Lines(TVMFFIBacktrace(nullptr, 12, "some_function", 0))) {
    EXPECT_FALSE(Contains(line, "some_function")) << line;
  }
}

TEST(CBacktrace, MachineryIsLeftOut) {
  std::string text = Text(*TVMFFIBacktrace(nullptr, 0, nullptr, 1));
  for (const char* hidden :
       {"TVMFFIBacktrace", "tvm::ffi::tether::", "tvm::ffi::details::", "__libc_"}) {
    EXPECT_FALSE(Contains(text, hidden)) << text;
  }
  // A throw site inside the machinery is not worth a line either.
  text = Text(*TVMFFIBacktrace("x/include/tvm/ffi/any.h", 1, "site", 0));
  EXPECT_FALSE(Contains(text, "any.h")) << text;
}

TEST(CBacktrace, LimitIsReadAtEachCall) {
  {
    ScopedLimit limit("1");
    EXPECT_EQ(Lines(TVMFFIBacktrace("f.cc", 1, "g", 1)).size(), 1u);
  }
  {
    ScopedLimit limit("0");
    EXPECT_TRUE(Lines(TVMFFIBacktrace("f.cc", 1, "g", 1)).empty());
  }
  for (const char* bad : {"", "many", "-3", "1x", "99999999999999999999"}) {
    ScopedLimit limit(bad);
    EXPECT_FALSE(Lines(TVMFFIBacktrace("f.cc", 1, "g", 1)).empty()) << "falls back: " << bad;
  }
}

TEST(CBacktrace, DeepStacksStopAtTheDefaultLimit) {
  struct Deep {
    static __attribute__((noinline)) size_t Recurse(int depth) {
      if (depth == 0) return Lines(TVMFFIBacktrace("f.cc", 1, "g", 1)).size();
      size_t lines = Recurse(depth - 1);
      asm volatile("");  // no tail call
      return lines;
    }
  };
  EXPECT_EQ(Deep::Recurse(1000), 512u);
  // Only a whole decimal number that is an int is a limit.
  for (const char* bad : {"", "-1", "7x", " 7", "+7", "0x7", "2147483648"}) {
    ScopedLimit limit(bad);
    EXPECT_EQ(Deep::Recurse(1000), 512u) << bad;
  }
  ScopedLimit limit("2147483647");
  EXPECT_GT(Deep::Recurse(1000), 900u);
}

TEST(CBacktrace, TextBelongsToTheThread) {
  const TVMFFIByteArray* mine = TVMFFIBacktrace("mine.cc", 1, "mine", 0);
  const TVMFFIByteArray* theirs = nullptr;
  std::thread other([&] { theirs = TVMFFIBacktrace("theirs.cc", 1, "theirs", 0); });
  other.join();
  EXPECT_NE(mine, theirs);
  EXPECT_TRUE(Contains(Text(*mine), "mine.cc"));
}

__attribute__((noinline)) const TVMFFIByteArray* CallerBeyondTheBoundary(int cross) {
  const TVMFFIByteArray* text = PyObjectLikeBoundaryForTests(cross);
  asm volatile("");
  return text;
}

TEST(CBacktrace, StopsWhereTheOtherLanguageBegins) {
  std::string crossing = Text(*CallerBeyondTheBoundary(1));
  if (!Contains(crossing, "PyObjectLikeBoundaryForTests")) {
    GTEST_SKIP() << "no symbolizer for the test program itself";
  }
  EXPECT_TRUE(Contains(crossing, "CallerBeyondTheBoundary")) << crossing;
  EXPECT_TRUE(Contains(crossing, "InsideTheBoundary")) << crossing;
  std::string stopping = Text(*CallerBeyondTheBoundary(0));
  EXPECT_TRUE(Contains(stopping, "InsideTheBoundary")) << stopping;
  EXPECT_FALSE(Contains(stopping, "PyObjectLikeBoundaryForTests")) << stopping;
  EXPECT_FALSE(Contains(stopping, "CallerBeyondTheBoundary")) << stopping;
}

TEST(CBacktrace, RaisedErrorsCarryOne) {
  TVMFFIErrorSetRaisedFromCStr("ValueError", "m");
  Error error = details::MoveFromSafeCallRaised();
  EXPECT_FALSE(Contains(error.backtrace(), "TVMFFIErrorSetRaisedFromCStr")) << error.backtrace();
}

// ---- strings

TEST(CString, LengthDecidesTheForm) {
  std::string text = "abcdefghij";
  for (size_t size = 0; size <= text.size(); ++size) {
    TVMFFIByteArray input{text.data(), size};
    TVMFFIAny str{}, bytes{};
    str.type_index = bytes.type_index = 12345;  // overwritten without being released
    ASSERT_EQ(TVMFFIStringFromByteArray(&input, &str), 0);
    ASSERT_EQ(TVMFFIBytesFromByteArray(&input, &bytes), 0);
    EXPECT_EQ(str.type_index, size <= 7 ? kTVMFFISmallStr : kTVMFFIStr);
    EXPECT_EQ(bytes.type_index, size <= 7 ? kTVMFFISmallBytes : kTVMFFIBytes);
    for (TVMFFIAny* any : {&str, &bytes}) {
      TVMFFIByteArray content = size <= 7 ? TVMFFISmallBytesGetContentByteArray(any)
                                          : *TVMFFIBytesGetByteArrayPtr(any->v_obj);
      EXPECT_EQ(Text(content), text.substr(0, size));
      EXPECT_EQ(content.data[size], '\0');
      if (size > 7) TVMFFIObjectDecRef(any->v_obj);
    }
  }
}

TEST(CString, NullDataIsFineForNoBytes) {
  TVMFFIByteArray none{nullptr, 0};
  TVMFFIAny out;
  ASSERT_EQ(TVMFFIStringFromByteArray(&none, &out), 0);
  EXPECT_EQ(out.type_index, kTVMFFISmallStr);
  EXPECT_EQ(out.small_str_len, 0u);
  TVMFFIByteArray broken{nullptr, 5};
  EXPECT_EQ(TVMFFIStringFromByteArray(&broken, &out), -1);
  EXPECT_EQ(Raised(), "ValueError: byte array of size 5 has no data");
  EXPECT_EQ(out.type_index, kTVMFFINone);
}

// ---- handles made once

TEST(CInitOnce, RunsOnceAndCanBeUndone) {
  static int inits = 0;
  static int deinits = 0;
  static int object = 0;
  auto init = [](void** result) {
    ++inits;
    *result = &object;
    return 0;
  };
  auto deinit = [](void*) {
    ++deinits;
    return 0;
  };
  void* handle = nullptr;
  EXPECT_EQ(TVMFFIHandleInitOnce(&handle, init), 0);
  EXPECT_EQ(handle, &object);
  EXPECT_EQ(TVMFFIHandleInitOnce(&handle, init), 0);
  EXPECT_EQ(inits, 1);
  EXPECT_EQ(TVMFFIHandleDeinitOnce(&handle, deinit), 0);
  EXPECT_EQ(handle, nullptr);
  EXPECT_EQ(TVMFFIHandleDeinitOnce(&handle, deinit), 0);
  EXPECT_EQ(deinits, 1);
  EXPECT_EQ(TVMFFIHandleInitOnce(&handle, init), 0);
  EXPECT_EQ(inits, 2);
}

TEST(CInitOnce, FailureLeavesTheHandleNull) {
  void* handle = nullptr;
  auto fails = [](void** result) {
    TVMFFIErrorSetRaisedFromCStr("ValueError", "no init");
    *result = result;
    return 5;
  };
  EXPECT_EQ(TVMFFIHandleInitOnce(&handle, fails), 5) << "the callback's code is passed on";
  EXPECT_EQ(handle, nullptr);
  EXPECT_EQ(Raised(), "ValueError: no init");
  EXPECT_EQ(TVMFFIHandleInitOnce(&handle, [](void**) { return 0; }), -1);
  EXPECT_EQ(Raised(), "RuntimeError: init_func must return a non-NULL handle");
  EXPECT_EQ(handle, nullptr);
}

TEST(CInitOnce, FailingDeinitStillClearsTheHandle) {
  void* handle = &handle;
  EXPECT_EQ(TVMFFIHandleDeinitOnce(&handle, [](void*) { return 9; }), 9);
  EXPECT_EQ(handle, nullptr);
}

TEST(CInitOnce, InitialisersMayNest) {
  static void* inner = nullptr;
  static int object = 0;
  void* outer = nullptr;
  auto init_outer = [](void** result) {
    int code = TVMFFIHandleInitOnce(&inner, [](void** r) {
      *r = &object;
      return 0;
    });
    *result = inner;
    return code;
  };
  EXPECT_EQ(TVMFFIHandleInitOnce(&outer, init_outer), 0);
  EXPECT_EQ(outer, &object);
}

}  // namespace

namespace {

__attribute__((noinline)) const TVMFFIByteArray* InsideTheBoundary(int cross) {
  const TVMFFIByteArray* text = TVMFFIBacktrace(nullptr, 0, nullptr, cross);
  asm volatile("");
  return text;
}

}  // namespace

extern "C" __attribute__((noinline)) const TVMFFIByteArray* PyObjectLikeBoundaryForTests(
    int cross) {
  const TVMFFIByteArray* text = InsideTheBoundary(cross);
  asm volatile("");
  return text;
}
