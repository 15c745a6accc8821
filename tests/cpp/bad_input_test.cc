// SPDX-License-Identifier: Apache-2.0
//
// A table of things callers get wrong. Each gives an error of the right kind that says what was
// wrong; nothing aborts, nothing leaks, and the next call works. The few C functions that have no
// way to report an error print it and end the process with status 255.
#include <gtest/gtest.h>
#include <tvm/ffi/extra/c_env_api.h>
#include <tvm/ffi/extra/json.h>
#include <tvm/ffi/extra/module.h>
#include <tvm/ffi/reflection/accessor.h>
#include <tvm/ffi/tvm_ffi.h>

#include <cstring>
#include <functional>
#include <memory>
#include <ostream>
#include <string>
#include <string_view>
#include <utility>
#include <vector>

#include "core_objects.h"
#include "reflected_object.h"

namespace {

using namespace tvm::ffi;
using namespace core_test;
using tether_test::CallGlobal;
using tether_test::Contains;

struct BadInput {
  const char* name;
  const char* kind;
  // The whole message; with a leading "~", a part of it.
  const char* message;
  std::function<void()> action;

  friend std::ostream& operator<<(std::ostream& os, const BadInput& bad) { return os << bad.name; }
};

// ---- helpers of the table

// Throws the error a C function reported.
void C(int code) { TVM_FFI_CHECK_SAFE_CALL(code); }

TVMFFIByteArray Text(std::string_view text) { return {text.data(), text.size()}; }

TVMFFIObjectHandle HandleOf(const ObjectRef& ref) {
  return details::ObjectUnsafe::RawObjectPtrFromObjectRef(ref);
}

void ParseJson(std::string_view text) {
  CallGlobal("ffi.json.Parse", String(text.data(), text.size()));
}

Function Typed() {
  return Function::FromTyped([](int, const String&) { return 1; }, "typed");
}

TVMFFIFieldInfo Field(const char* name) {
  TVMFFIFieldInfo info{};
  info.name = Text(name);
  return info;
}

int Register(int32_t type_index, const char* name) {
  TVMFFIByteArray bytes = Text(name);
  TVMFFIAny one = AnyView(1).CopyToTVMFFIAny();
  return TVMFFITypeRegisterAttr(type_index, &bytes, &one);
}

// A DLPack tensor of 2 x 3 floats; each case breaks one thing.
struct Packed {
  alignas(64) float data[8] = {};
  int64_t shape[2] = {2, 3};
  int64_t strides[2] = {3, 1};
  DLManagedTensor managed{};
  DLManagedTensorVersioned versioned{};

  Packed() {
    DLTensor t{};
    t.data = data;
    t.device = {kDLCPU, 0};
    t.ndim = 2;
    t.dtype = {kDLFloat, 32, 1};
    t.shape = shape;
    t.strides = strides;
    managed.dl_tensor = t;
    versioned.dl_tensor = t;
    versioned.version = {DLPACK_MAJOR_VERSION, DLPACK_MINOR_VERSION};
    managed.deleter = [](DLManagedTensor*) {
      ADD_FAILURE() << "a failed import takes nothing over";
    };
    versioned.deleter = [](DLManagedTensorVersioned*) {
      ADD_FAILURE() << "a failed import takes nothing over";
    };
  }
};

template <typename Break>
std::function<void()> Import(Break break_it, int32_t alignment = 0, int32_t contiguous = 0) {
  return [=] {
    Packed packed;
    break_it(&packed.managed.dl_tensor);
    TVMFFIObjectHandle out = nullptr;
    C(TVMFFITensorFromDLPack(&packed.managed, alignment, contiguous, &out));
  };
}

template <typename Break>
std::function<void()> ImportVersioned(Break break_it, int32_t alignment = 0,
                                      int32_t contiguous = 0) {
  return [=] {
    Packed packed;
    break_it(&packed.versioned);
    TVMFFIObjectHandle out = nullptr;
    C(TVMFFITensorFromDLPackVersioned(&packed.versioned, alignment, contiguous, &out));
  };
}

void ParseDType(std::string_view text) {
  TVMFFIByteArray bytes = Text(text);
  DLDataType out;
  C(TVMFFIDataTypeFromString(&bytes, &out));
}

std::string Graph(const char* nodes, const char* root = "0") {
  return std::string("{\"root_index\":") + root + ",\"nodes\":" + nodes + "}";
}
void ReadGraph(const std::string& text) { CallGlobal("ffi.FromJSONGraphString", String(text)); }

// ---- the table

std::vector<BadInput> Calls() {
  return {
      {"TooFewArguments", "TypeError",
       "Mismatched number of arguments when calling: `typed(0: int, 1: str) -> int`. Expected 2 "
       "but got "
       "1 arguments",
       [] { Typed()(1); }},
      {"TooManyArguments", "TypeError",
       "Mismatched number of arguments when calling: `typed(0: int, 1: str) -> int`. Expected 2 "
       "but got "
       "3 arguments",
       [] { Typed()(1, "a", 2); }},
      {"WrongArgumentType", "TypeError",
       "Mismatched type on argument #1 when calling: `typed(0: int, 1: str) -> int`. Expected "
       "`str` but "
       "got `int`",
       [] { Typed()(1, 2); }},
      {"NoneForAnInteger", "TypeError",
       "Mismatched type on argument #0 when calling: `typed(0: int, 1: str) -> int`. Expected "
       "`int` but "
       "got `None`",
       [] { Typed()(nullptr, "a"); }},
      {"ObjectForAnInteger", "TypeError",
       "Mismatched type on argument #0 when calling: `typed(0: int, 1: str) -> int`. Expected "
       "`int` but "
       "got `core_test.Box`",
       [] { Typed()(Box(1), "a"); }},
      {"NullCStringArgument", "InternalError", "Check not null: src ",
       [] { Typed()(1, static_cast<const char*>(nullptr)); }},
      {"HugeUnsignedArgument", "OverflowError",
       "Integer value 18446744073709551615 is too large to fit in int64_t. Consider explicitly "
       "casting "
       "to int64_t first if this is intentional.",
       [] { Typed()(~uint64_t{0}, "a"); }},
      {"RValueRefToPlainParameter", "TypeError",
       "~Expected `core_test.Box` but got `ObjectRValueRef`",
       [] { Function::FromTyped([](Box) {})(RValueRef(Box(1))); }},
      {"RValueRefUsedTwice", "InternalError", "~RValueRef already moved",
       [] {
         RValueRef<Box> ref(Box(1));
         Function::FromTyped([](Any, Any) {})(ref, ref);
       }},
      {"WrongResultType", "TypeError", "Cannot convert from type `int` to `str`",
       [] { Function::FromTyped([] { return 1; })().cast<String>(); }},
      {"TypedFunctionResult", "TypeError",
       "Mismatched type of the result when calling back: `() -> int`. Expected `int` but got "
       "`ffi.SmallStr`",
       [] { TypedFunction<int()>(Function::FromTyped([] { return String("s"); }))(); }},
      {"CalleeThrows", "KeyError", "missing",
       [] { Function::FromTyped([] { TVM_FFI_THROW(KeyError) << "missing"; })(); }},
      {"CalleeThrowsForeignException", "InternalError", "foreign",
       [] {
         throw Function::FromTyped([] { throw std::runtime_error("foreign"); })
             .CallExpected<void>()
             .error();
       }},
      {"CallOfNull", "TypeError", "a null ffi.Function (None) cannot be called",
       [] { Function()(1); }},
      {"CallOfNullTyped", "TypeError", "a null ffi.Function (None) cannot be called",
       [] { TypedFunction<int()>()(); }},
      {"CallOfNullAsExpected", "TypeError", "a null ffi.Function (None) cannot be called",
       [] { throw Function().CallExpected<void>().error(); }},
      {"MethodOfNone", "TypeError", "a method of `testing.TestIntPair` was called on None",
       [] { CallGlobal("testing.TestIntPairSum", nullptr); }},
      {"ResultCellHoldsAnObject", "InternalError", "~Check failed: result->type_index < ",
       [] {
         Box box(1);
         TVMFFIAny result = AnyView(box).CopyToTVMFFIAny();
         C(TVMFFIFunctionCall(HandleOf(Typed()), nullptr, 0, &result));
       }},
      {"CallbackFailsWithoutAnError", "EnvErrorAlreadySet", "",
       [] {
         TVMFFIErrorSetRaised(nullptr);
         Function::FromExternC(
             nullptr, [](void*, const TVMFFIAny*, int32_t, TVMFFIAny*) { return -2; }, nullptr)();
       }},
      {"UnknownGlobalFunction", "ValueError", "Function core_test.unknown not found",
       [] { Function::GetGlobalRequired("core_test.unknown"); }},
      {"EmptyGlobalName", "ValueError", "Function  not found",
       [] { Function::GetGlobalRequired(""); }},
      {"DuplicateGlobalFunction", "RuntimeError",
       "Global Function `ffi.String` is already registered",
       [] { Function::SetGlobal("ffi.String", Typed()); }},
      {"NullGlobalFunction", "ValueError", "Check not null: f ",
       [] { Function::SetGlobal("core_test.null", Function(nullptr)); }},
      {"GlobalFromMethodInfoWithoutFunction", "TypeError",
       "Cannot convert from type `int` to `ffi.Function`",
       [] {
         TVMFFIMethodInfo info{};
         info.name = Text("core_test.not_a_function");
         info.method = AnyView(1).CopyToTVMFFIAny();
         C(TVMFFIFunctionSetGlobalFromMethodInfo(&info, 0));
       }},
      {"GlobalFromMethodInfoWithNone", "TypeError",
       "Cannot convert from type `None` to `ffi.Function`",
       [] {
         TVMFFIMethodInfo info{};
         info.name = Text("core_test.none");
         C(TVMFFIFunctionSetGlobalFromMethodInfo(&info, 0));
       }},
      {"FunctionWithoutEntry", "ValueError", "Check not null: safe_call ",
       [] {
         TVMFFIObjectHandle out = nullptr;
         C(TVMFFIFunctionCreate(nullptr, nullptr, nullptr, &out));
       }},
      {"ExternCWithoutEntry", "ValueError", "Check not null: safe_call ",
       [] { CallGlobal("ffi.FunctionFromExternC", nullptr, nullptr, nullptr); }},
      {"GlobalNamesOutOfRange", "IndexError", "~no such global function name",
       [] { CallGlobal("ffi.FunctionListGlobalNamesFunctor").cast<Function>()(1 << 30); }},
      {"MetadataOfUnknownFunction", "RuntimeError",
       "Global Function is not found: core_test.unknown",
       [] { CallGlobal("ffi.GetGlobalFuncMetadata", "core_test.unknown"); }},
      {"StringFunctionTakesText", "TypeError", "~Expected `str` but got `int`",
       [] { CallGlobal("ffi.String", 1); }},
  };
}

std::vector<BadInput> Conversions() {
  return {
      {"FloatAsInt", "TypeError", "Cannot convert from type `float` to `int`",
       [] { Any(1.5).cast<int>(); }},
      {"StringAsInt", "TypeError", "Cannot convert from type `ffi.SmallStr` to `int`",
       [] { Any("1").cast<int>(); }},
      {"StringAsFloat", "TypeError", "Cannot convert from type `ffi.SmallStr` to `float`",
       [] { Any("1").cast<double>(); }},
      {"FloatAsBool", "TypeError", "Cannot convert from type `float` to `bool`",
       [] { Any(1.0).cast<bool>(); }},
      {"IntAsPointer", "TypeError", "Cannot convert from type `int` to `void*`",
       [] { Any(1).cast<void*>(); }},
      {"BytesAsString", "TypeError", "Cannot convert from type `ffi.SmallBytes` to `str`",
       [] { Any(Bytes("a", 1)).cast<String>(); }},
      {"NoneAsReference", "TypeError", "Cannot convert from type `None` to `core_test.Box`",
       [] { Any().cast<SolidBox>(); }},
      {"WrongReference", "TypeError",
       "Cannot convert from type `core_test.Int` to `core_test.Float`",
       [] { Any(Int(1)).cast<Float>(); }},
      {"WrongArc", "TypeError", "Cannot convert from type `core_test.Int` to `core_test.Box`",
       [] { Any(Int(1)).cast<Arc<BoxObj>>(); }},
      {"StrictReadOfAnotherType", "TypeError", "Cannot treat type `int` as type `float`",
       [] { Any(1).as_or_throw<double>(); }},
      {"StrictReferenceOfNull", "TypeError", "Cannot treat type `None` as type `core_test.Box`",
       [] { ObjectRef().as_or_throw<SolidBox>(); }},
      {"GetRefOfNull", "InternalError", "~Check not null",
       [] { GetRef<SolidBox>(static_cast<const BoxObj*>(nullptr)); }},
      {"BorrowedTensorInAny", "RuntimeError",
       "DLTensor* cannot be held in Any as it does not retain ownership, use Tensor instead",
       [] {
         DLTensor tensor{};
         Any any = &tensor;
       }},
      {"EmptyOptional", "RuntimeError", "Back optional access", [] { Optional<String>().value(); }},
      {"ErrorOfASuccess", "RuntimeError", "Bad expected access: contains value, not error",
       [] { Expected<int>(1).error(); }},
      {"ValueOfAFailure", "ValueError", "inside",
       [] { Expected<int>(Error("ValueError", "inside", "")).value(); }},
      {"WrongVariantAlternative", "TypeError", "Cannot convert from type `int` to `str`",
       [] { Variant<int, String>(1).get<String>(); }},
      {"ValueOutsideTheVariant", "TypeError",
       "Cannot convert from type `None` to `Variant<int, str>`",
       [] { Any().cast<Variant<int, String>>(); }},
      {"ArrayWithWrongElement", "TypeError",
       "Cannot convert from type `Array[index 1: ffi.SmallStr]` to `Array<int>`",
       [] {
         Any(Array<Any>{1, "x"}).cast<Array<int>>();
       }},
      {"TupleOfWrongSize", "TypeError",
       "Cannot convert from type `Array[size=1]` to `Tuple<int, int>`",
       [] { Any(Array<Any>{1}).cast<Tuple<int, int>>(); }},
      {"UnknownDevice", "TypeError", "Cannot convert from type `const char*` to `Device`",
       [] { AnyView("gpu:0").cast<DLDevice>(); }},
      {"UnknownEnumIndex", "ValueError", "Enum `ffi.Enum` has no instance with index 99",
       [] { EnumObj::_GetByIntIndex<EnumObj>(99); }},
  };
}

std::vector<BadInput> Types() {
  return {
      {"UnknownTypeKey", "InternalError", "~Cannot find type `core_test.nothing`",
       [] { TypeKeyToIndex("core_test.nothing"); }},
      {"EmptyTypeKey", "InternalError", "~Cannot find type ``", [] { TypeKeyToIndex(""); }},
      {"FieldOfUnknownType", "InternalError", "~Cannot find type info for type_index=1000000",
       [] {
         TVMFFIFieldInfo info = Field("x");
         C(TVMFFITypeRegisterField(1000000, &info));
       }},
      {"FieldOfNegativeType", "InternalError", "~Cannot find type info for type_index=-5",
       [] {
         TVMFFIFieldInfo info = Field("x");
         C(TVMFFITypeRegisterField(-5, &info));
       }},
      {"FieldOfUnusedStaticIndex", "InternalError", "~Cannot find type info for type_index=100",
       [] {
         TVMFFIFieldInfo info = Field("x");
         C(TVMFFITypeRegisterField(100, &info));
       }},
      {"FieldOfHugeType", "InternalError", "~Cannot find type info for type_index=2147483647",
       [] {
         TVMFFIFieldInfo info = Field("x");
         C(TVMFFITypeRegisterField(INT32_MAX, &info));
       }},
      {"DuplicateField", "InternalError",
       "~Duplicate field name \"twice\" in type \"core_test.Counter\"",
       [] {
         TVMFFIFieldInfo info = Field("twice");
         TVMFFITypeRegisterField(CounterObj::RuntimeTypeIndex(), &info);
         C(TVMFFITypeRegisterField(CounterObj::RuntimeTypeIndex(), &info));
       }},
      {"MethodOfUnknownType", "InternalError", "~Cannot find type info for type_index=1000000",
       [] {
         TVMFFIMethodInfo info{};
         C(TVMFFITypeRegisterMethod(1000000, &info));
       }},
      {"MetadataOfUnknownType", "InternalError", "~Cannot find type info for type_index=-1",
       [] {
         TVMFFITypeMetadata metadata{};
         C(TVMFFITypeRegisterMetadata(-1, &metadata));
       }},
      {"SecondMetadata", "RuntimeError", "~Overriding ffi.Object, possible causes:",
       [] {
         TVMFFITypeMetadata metadata{};
         C(TVMFFITypeRegisterMetadata(kTVMFFIObject, &metadata));
       }},
      {"AttributeOfNegativeType", "ValueError",
       "Cannot register attribute `core_test_bad` for invalid type index -1",
       [] { C(Register(-1, "core_test_bad")); }},
      {"AttributeOfImpossibleType", "ValueError",
       "Cannot register attribute `core_test_bad` for invalid type index 2147483647",
       [] { C(Register(INT32_MAX, "core_test_bad")); }},
      {"SecondAttribute", "RuntimeError",
       "~TypeAttr `core_test_bad` is already registered for type index 3.",
       [] {
         Register(3, "core_test_bad");
         C(Register(3, "core_test_bad"));
       }},
      {"UnknownAttributeColumn", "RuntimeError", "Cannot find type attribute core_test_no_column",
       [] { reflection::TypeAttrColumn("core_test_no_column"); }},
      {"UnknownField", "RuntimeError", "~Cannot find field",
       [] { reflection::FieldGetter("core_test.Box", "nothing"); }},
      {"UnknownMethod", "RuntimeError", "~Cannot find method nothing in core_test.Box",
       [] { reflection::GetMethod("core_test.Box", "nothing"); }},
      {"FieldOfUnknownTypeKey", "InternalError", "~Cannot find type `core_test.nothing`",
       [] { reflection::FieldGetter("core_test.nothing", "x"); }},
      {"OpaqueObjectOfAnotherType", "RuntimeError",
       "Only kTVMFFIOpaquePyObject is supported for now",
       [] {
         TVMFFIObjectHandle out = nullptr;
         C(TVMFFIObjectCreateOpaque(nullptr, kTVMFFIStr, nullptr, &out));
       }},
      {"AllocatorWithoutAllocate", "ValueError", "~Check not null",
       [] {
         static TVMFFICustomAllocator hollow{nullptr, nullptr};
         C(TVMFFISetCustomAllocator(&hollow));
       }},
      {"AlignmentBeyondTheMaximum", "ValueError",
       "objects cannot be aligned more strictly than max_align_t",
       [] {
         TVMFFICustomAllocator* allocator = TVMFFIGetCustomAllocator();
         if (allocator->allocate(64, 64, 64, allocator->context) == nullptr) C(-1);
       }},
      {"BytesWithoutData", "ValueError", "byte array of size 3 has no data",
       [] {
         TVMFFIByteArray broken{nullptr, 3};
         TVMFFIAny out;
         C(TVMFFIStringFromByteArray(&broken, &out));
       }},
      {"InitOnceWithoutResult", "RuntimeError", "init_func must return a non-NULL handle",
       [] {
         void* handle = nullptr;
         C(TVMFFIHandleInitOnce(&handle, [](void**) { return 0; }));
       }},
      {"PromotionOfAnEmptySlot", "InternalError", "~RValueRef already moved",
       [] {
         TVMFFIObject* slot = nullptr;
         TVMFFIAny view{}, out{};
         view.type_index = kTVMFFIObjectRValueRef;
         view.v_ptr = &slot;
         C(TVMFFIAnyViewToOwnedAny(&view, &out));
       }},
  };
}

std::vector<BadInput> DataTypes() {
  std::vector<BadInput> cases = {
      {"DTypeUnknown", "ValueError", "unknown dtype `complex64`", [] { ParseDType("complex64"); }},
      {"DTypeUpperCase", "ValueError", "unknown dtype `Float32`", [] { ParseDType("Float32"); }},
      {"DTypeBlank", "ValueError", "unknown dtype ` `", [] { ParseDType(" "); }},
      {"DTypeTrailingText", "ValueError", "unknown dtype `int32abc`",
       [] { ParseDType("int32abc"); }},
      {"DTypeEmbeddedNul", "ValueError", "~unknown dtype `int32",
       [] { ParseDType(std::string_view("int32\0x2", 8)); }},
      {"DTypeBits", "ValueError", "Bits value 257 is out of range for uint8_t in dtype 'int257'",
       [] { ParseDType("int257"); }},
      {"DTypeNoLanes", "ValueError",
       "Invalid lanes specification in dtype 'int8x'. Lanes must be a positive integer.",
       [] { ParseDType("int8x"); }},
      {"DTypeZeroLanes", "ValueError",
       "Invalid lanes specification in dtype 'int8x0'. Lanes must be a positive integer.",
       [] { ParseDType("int8x0"); }},
      {"DTypeLanes", "ValueError",
       "Lanes value 65536 is out of range for uint16_t in dtype 'int8x65536'",
       [] { ParseDType("int8x65536"); }},
      {"DTypeHugeNumber", "ValueError",
       "Integer value in dtype string '4294967296' is out of range for uint32_t",
       [] { ParseDType("int4294967296"); }},
      {"DTypeFloat8", "ValueError", "unknown float8 type `float8_e1m6`",
       [] { ParseDType("float8_e1m6"); }},
      {"DTypeFloat6", "ValueError", "unknown float6 type `float6_e9`",
       [] { ParseDType("float6_e9"); }},
      {"DTypeFloat4", "ValueError", "unknown float4 type `float4_e9`",
       [] { ParseDType("float4_e9"); }},
      {"DTypeScalableFloat8", "ValueError", "~float8_e4m3xvscalex2",
       [] { ParseDType("float8_e4m3xvscalex2"); }},
      {"DTypeCustomWithoutBracket", "ValueError",
       "expected opening brace after 'custom' type incustom8", [] { ParseDType("custom8"); }},
      {"DTypeCustomUnclosed", "ValueError", "expected closing brace after 'custom' type incustom[x",
       [] { ParseDType("custom[x"); }},
      {"DTypeCustomUnregistered", "ValueError", "Function dtype.get_custom_type_code not found",
       [] { ParseDType("custom[x]8"); }},
      {"DTypeCodeUnknown", "ValueError", "DLDataType contains unknown type_code=5",
       [] {
         DLDataTypeToString(DLDataType{kDLComplex, 64, 1});
       }},
      {"DTypeCodeBeforeCustom", "ValueError", "DLDataType contains unknown type_code=128",
       [] {
         DLDataTypeToString(DLDataType{128, 8, 1});
       }},
      {"DTypeFromNumber", "TypeError", "Cannot convert from type `int` to `DataType`",
       [] { Any(32).cast<DLDataType>(); }},
      {"DTypeFromBadText", "ValueError", "unknown dtype `flaot32`",
       [] { AnyView("flaot32").cast<DLDataType>(); }},
  };
  return cases;
}

std::vector<BadInput> Tensors() {
  auto nothing = [](auto*) {};
  return {
      {"DLPackNull", "InternalError", "Check not null: from ",
       [] {
         TVMFFIObjectHandle out = nullptr;
         C(TVMFFITensorFromDLPack(nullptr, 0, 0, &out));
       }},
      {"DLPackVersionedNull", "InternalError", "Check not null: from ",
       [] {
         TVMFFIObjectHandle out = nullptr;
         C(TVMFFITensorFromDLPackVersioned(nullptr, 0, 0, &out));
       }},
      {"DLPackMisaligned", "RuntimeError", "FromDLPack: Data is not aligned to 64 bytes.",
       Import([](DLTensor* t) { t->data = static_cast<char*>(t->data) + 4; }, 64)},
      {"DLPackMisalignedByOffset", "RuntimeError", "FromDLPack: Data is not aligned to 64 bytes.",
       Import([](DLTensor* t) { t->byte_offset = 4; }, 64)},
      {"DLPackNotContiguous", "RuntimeError", "FromDLPack: Tensor is not contiguous.",
       Import([](DLTensor* t) { std::swap(t->strides[0], t->strides[1]); }, 0, 1)},
      {"DLPackVersionedMisaligned", "RuntimeError", "FromDLPack: Data is not aligned to 64 bytes.",
       ImportVersioned([](DLManagedTensorVersioned* v) { v->dl_tensor.byte_offset = 4; }, 64)},
      {"DLPackVersionedNotContiguous", "RuntimeError", "FromDLPack: Tensor is not contiguous.",
       ImportVersioned([](DLManagedTensorVersioned* v) { v->dl_tensor.strides[0] = 4; }, 0, 1)},
      {"DLPackPaddedSubBytes", "RuntimeError", "Subbyte type padded is not yet supported",
       ImportVersioned([](DLManagedTensorVersioned* v) {
         v->flags = DLPACK_FLAG_BITMASK_IS_SUBBYTE_TYPE_PADDED;
       })},
      {"DLPackNegativeDimensions", "ValueError", "~-1 dimensions",
       Import([](DLTensor* t) { t->ndim = -1; })},
      {"DLPackWithoutShape", "ValueError", "~shape", Import([](DLTensor* t) {
         t->shape = nullptr;
         t->strides = nullptr;
       })},
      {"DLPackVersionedWithoutShape", "ValueError", "~shape",
       ImportVersioned([](DLManagedTensorVersioned* v) { v->dl_tensor.shape = nullptr; })},
      {"DLPackWithoutMemory", "ValueError", "~shape (2, 3) has no memory",
       Import([](DLTensor* t) { t->data = nullptr; })},
      {"DLPackVersionedWithoutMemory", "ValueError", "~shape (2, 3) has no memory",
       ImportVersioned([](DLManagedTensorVersioned* v) { v->dl_tensor.data = nullptr; })},
      {"DLPackNegativeExtent", "ValueError", "~extent 1",
       Import([](DLTensor* t) { t->shape[1] = -3; })},
      {"DLPackTooLarge", "ValueError", "~overflows 64 bits",
       Import([](DLTensor* t) { t->shape[0] = INT64_MAX; })},
      {"DLPackStridesTooLarge", "ValueError", "~overflows 64 bits",
       Import([](DLTensor* t) { t->strides[0] = INT64_MIN; })},
      {"DLPackOffsetTooLarge", "ValueError", "~byte offset",
       Import([](DLTensor* t) { t->byte_offset = UINT64_MAX; })},
      {"DLPackWithoutBits", "ValueError", "~0 bits",
       Import([](DLTensor* t) { t->dtype.bits = 0; })},
      {"DLPackWithoutLanes", "ValueError", "~0 lanes",
       Import([](DLTensor* t) { t->dtype.lanes = 0; })},
      {"DLPackTooManyDimensions", "ValueError", "~2147483647 dimensions",
       Import([](DLTensor* t) { t->ndim = INT32_MAX; })},
      {"DLPackNegativeAlignment", "ValueError", "~alignment", Import(nothing, -8)},
      {"ExportOfNull", "InternalError", "~Check not null",
       [] {
         DLManagedTensor* out = nullptr;
         C(TVMFFITensorToDLPack(nullptr, &out));
       }},
      {"ExportOfAnotherObject", "TypeError", "Expected `ffi.Tensor` but got `core_test.Box`",
       [] {
         Box box(1);
         DLManagedTensor* out = nullptr;
         C(TVMFFITensorToDLPack(HandleOf(box), &out));
       }},
      {"ExportVersionedOfAnotherObject", "TypeError",
       "Expected `ffi.Tensor` but got `core_test.Box`",
       [] {
         Box box(1);
         DLManagedTensorVersioned* out = nullptr;
         C(TVMFFITensorToDLPackVersioned(HandleOf(box), &out));
       }},
      {"ViewWithoutStrides", "InternalError", "Check not null: prototype.strides ",
       [] {
         Box box(1);
         Packed packed;
         packed.managed.dl_tensor.strides = nullptr;
         TVMFFIObjectHandle out = nullptr;
         C(TVMFFITensorCreateUnsafeView(HandleOf(box), &packed.managed.dl_tensor, &out));
       }},
      {"ViewOfNull", "InternalError", "~Check not null",
       [] {
         Packed packed;
         TVMFFIObjectHandle out = nullptr;
         C(TVMFFITensorCreateUnsafeView(nullptr, &packed.managed.dl_tensor, &out));
       }},
      {"ViewWithNegativeDimensions", "ValueError", "~dimensions",
       [] {
         Box box(1);
         Packed packed;
         packed.managed.dl_tensor.ndim = -2;
         TVMFFIObjectHandle out = nullptr;
         C(TVMFFITensorCreateUnsafeView(HandleOf(box), &packed.managed.dl_tensor, &out));
       }},
      {"ShapeOfText", "ValueError", "Expect shape to take list of int arguments",
       [] { CallGlobal("ffi.Shape", 1, "x"); }},
      {"ShapeIndex", "IndexError", "indexing 5 on a Shape of size 2",
       [] {
         Shape({1, 2}).at(5);
       }},
      {"TensorAllocWithoutAllocator", "RuntimeError",
       "TVMFFIEnvTensorAlloc: allocator is nullptr, likely because "
       "TVMFFIEnvSetDLPackManagedTensorAllocator has not been called.",
       [] {
         Packed packed;
         TVMFFIObjectHandle out = nullptr;
         DLPackManagedTensorAllocator old = nullptr;
         TVMFFIEnvSetDLPackManagedTensorAllocator(nullptr, 1, &old);
         C(TVMFFIEnvTensorAlloc(&packed.managed.dl_tensor, &out));
       }},
      {"TensorAllocatorFails", "MemoryError", "out of device memory",
       [] {
         Packed packed;
         TVMFFIObjectHandle out = nullptr;
         DLPackManagedTensorAllocator old = nullptr;
         auto fails = [](DLTensor*, DLManagedTensorVersioned**, void* context,
                         void (*set_error)(void*, const char*, const char*)) {
           set_error(context, "MemoryError", "out of device memory");
           return -1;
         };
         TVMFFIEnvSetDLPackManagedTensorAllocator(fails, 0, &old);
         int code = TVMFFIEnvTensorAlloc(&packed.managed.dl_tensor, &out);
         TVMFFIEnvSetDLPackManagedTensorAllocator(old, 0, nullptr);
         C(code);
       }},
      {"TensorAllocatorReturnsNothing", "RuntimeError",
       "~TVMFFIEnvTensorAlloc: failed to allocate a tensor from the allocator",
       [] {
         Packed packed;
         TVMFFIObjectHandle out = nullptr;
         DLPackManagedTensorAllocator old = nullptr;
         auto nothing_made = [](DLTensor*, DLManagedTensorVersioned**, void*,
                                void (*)(void*, const char*, const char*)) { return 0; };
         TVMFFIEnvSetDLPackManagedTensorAllocator(nothing_made, 0, &old);
         int code = TVMFFIEnvTensorAlloc(&packed.managed.dl_tensor, &out);
         TVMFFIEnvSetDLPackManagedTensorAllocator(old, 0, nullptr);
         C(code);
       }},
      {"StreamOfNegativeDevice", "ValueError", "TVMFFIEnvSetStream: invalid device (-1, 0)",
       [] { C(TVMFFIEnvSetStream(-1, 0, nullptr, nullptr)); }},
      {"UnknownInterpreterEntry", "ValueError", "Unknown env API PyNothing",
       [] { C(TVMFFIEnvRegisterCAPI("PyNothing", nullptr)); }},
  };
}

std::vector<BadInput> Containers() {
  return {
      {"ArrayIndex", "IndexError", "Index 3 out of bounds 2",
       [] {
         Array<int>({1, 2})[3];
       }},
      {"ArrayNegativeIndex", "IndexError", "Index -1 out of bounds 2",
       [] {
         Array<int>({1, 2})[-1];
       }},
      {"NullArray", "InternalError", "Check not null: data_.get() ",
       [] { Array<int>(ObjectPtr<ArrayObj>(nullptr))[0]; }},
      {"ArrayFunctionIndex", "IndexError", "Index 5 out of bounds 1",
       [] { CallGlobal("ffi.ArrayGetItem", Array<int>{1}, 5); }},
      {"ArrayFunctionOfList", "TypeError",
       "Mismatched type on argument #0 when calling: `ffi.ArrayGetItem(0: ffi.Array, 1: int) -> "
       "Any`. "
       "Expected `ffi.Array` but got `ffi.List`",
       [] { CallGlobal("ffi.ArrayGetItem", List<int>{1}, 0); }},
      {"PopOfEmpty", "IndexError", "pop_back on empty sequence", [] { Array<int>().pop_back(); }},
      {"FrontOfEmpty", "IndexError", "front() on empty sequence", [] { List<int>().front(); }},
      {"ListInsertBeyondTheEnd", "IndexError", "Index 3 out of bounds [0, 1]",
       [] { CallGlobal("ffi.ListInsert", List<int>{1}, 3, 5); }},
      {"ListEraseRange", "IndexError", "Erase range [1, 9) out of bounds 2",
       [] {
         CallGlobal("ffi.ListEraseRange", List<int>{1, 2}, 1, 9);
       }},
      {"MapKey", "KeyError", "key is not in Map",
       [] {
         Map<String, int>({{"a", 1}}).at("b");
       }},
      {"DictKey", "KeyError", "key is not in Map",
       [] { CallGlobal("ffi.DictGetItem", Dict<Any, Any>(), 1); }},
      {"MapWithOddArguments", "InternalError",
       "Check failed: args.size() % 2 == 0 (1 vs. 0) : ", [] { CallGlobal("ffi.Map", 1); }},
  };
}

std::vector<BadInput> Documents() {
  return {
      {"JsonEmpty", "ValueError", "Expecting value: line 1 column 1 (char 0)",
       [] { ParseJson(""); }},
      {"JsonBlank", "ValueError", "Expecting value: line 2 column 3 (char 4)",
       [] { ParseJson(" \n  "); }},
      {"JsonBareWord", "ValueError", "Expecting value: line 1 column 1 (char 0)",
       [] { ParseJson("undefined"); }},
      {"JsonTruncatedLiteral", "ValueError", "Expecting value: line 1 column 1 (char 0)",
       [] { ParseJson("tru"); }},
      {"JsonBadNumber", "ValueError", "Expecting value: line 1 column 1 (char 0)",
       [] { ParseJson("1.2.3"); }},
      {"JsonHugeNumber", "ValueError", "Expecting value: line 1 column 1 (char 0)",
       [] { ParseJson("1e999"); }},
      {"JsonTrailingComma", "ValueError", "Expecting value: line 1 column 4 (char 3)",
       [] { ParseJson("[1,]"); }},
      {"JsonUnclosedArray", "ValueError", "Expecting ',' delimiter: line 1 column 3 (char 2)",
       [] { ParseJson("[1"); }},
      {"JsonUnclosedObject", "ValueError", "Expecting ',' delimiter: line 3 column 4 (char 10)",
       [] { ParseJson("{\"a\":\n\n[1]"); }},
      {"JsonUnquotedKey", "ValueError",
       "Expecting property name enclosed in double quotes: line 1 column 2 (char 1)",
       [] { ParseJson("{a:1}"); }},
      {"JsonMissingColon", "ValueError", "Expecting ':' delimiter: line 1 column 6 (char 5)",
       [] { ParseJson("{\"a\" 1}"); }},
      {"JsonUnterminatedString", "ValueError",
       "Unterminated string starting at: line 1 column 1 (char 0)", [] { ParseJson("\"abc"); }},
      {"JsonControlCharacter", "ValueError",
       "Invalid control character at: line 1 column 3 (char 2)", [] { ParseJson("\"a\nb\""); }},
      {"JsonBadEscape", "ValueError", "Invalid \\escape: line 1 column 3 (char 2)",
       [] { ParseJson("\"\\q\""); }},
      {"JsonBadUnicode", "ValueError", "Invalid \\uXXXX escape: line 1 column 3 (char 2)",
       [] { ParseJson("\"\\u12x4\""); }},
      {"JsonLoneSurrogate", "ValueError",
       "Invalid surrogate pair of \\uXXXX escapes: line 1 column 3 (char 2)",
       [] { ParseJson("\"\\udc00\""); }},
      {"JsonExtraData", "ValueError", "Extra data: line 1 column 3 (char 2)",
       [] { ParseJson("1 2"); }},
      {"JsonOfANumber", "TypeError", "~Expected `str` but got `int`",
       [] { CallGlobal("ffi.json.Parse", 1); }},
      {"JsonOfAnObject", "ValueError", "Unsupported type: `core_test.Box`",
       [] { CallGlobal("ffi.json.Stringify", Box(1), nullptr); }},
      {"JsonKeyThatIsNoString", "ValueError", "Expect key to be string, got `int`",
       [] {
         CallGlobal("ffi.json.Stringify", Map<Any, Any>({{1, 2}}), nullptr);
       }},
      {"JsonOfItself", "ValueError", "Cycle detected: List contains itself",
       [] {
         List<Any> list;
         list.push_back(list);
         try {
           CallGlobal("ffi.json.Stringify", list, nullptr);
         } catch (const Error&) {
           list.clear();  // no cycle is left behind
           throw;
         }
       }},
      {"GraphThatIsNoObject", "ValueError", "~expected an object", [] { ReadGraph("[1]"); }},
      {"GraphWithoutRoot", "ValueError", "~`root_index`", [] { ReadGraph("{\"nodes\":[]}"); }},
      {"GraphWithoutNodes", "ValueError", "~`nodes`", [] { ReadGraph("{\"root_index\":0}"); }},
      {"GraphRootOutOfRange", "ValueError", "Invalid JSON Object Graph: invalid node index 5",
       [] { ReadGraph(Graph("[{\"type\":\"None\"}]", "5")); }},
      {"GraphNegativeRoot", "ValueError", "Invalid JSON Object Graph: invalid node index -1",
       [] { ReadGraph(Graph("[{\"type\":\"None\"}]", "-1")); }},
      {"GraphUnknownType", "InternalError", "~Cannot find type `core_test.nothing`",
       [] { ReadGraph(Graph("[{\"type\":\"core_test.nothing\"}]")); }},
      {"GraphChildOutOfRange", "ValueError", "Invalid JSON Object Graph: invalid node index 7",
       [] { ReadGraph(Graph("[{\"type\":\"ffi.Array\",\"data\":[7]}]")); }},
      {"GraphMalformedText", "ValueError", "~Expecting", [] { ReadGraph("{"); }},
      {"ModuleWithoutExtension", "RuntimeError", "Failed to get file format from no_extension",
       [] { CallGlobal("ffi.ModuleLoadFromFile", "no_extension"); }},
      {"ModuleOfUnknownFormat", "RuntimeError",
       "~Loader for `.core_test_format` files is not registered",
       [] { CallGlobal("ffi.ModuleLoadFromFile", "a.core_test_format"); }},
      {"ModuleThatDoesNotExist", "InternalError",
       "~Failed to load dynamic shared library ./core_test_missing.so",
       [] { CallGlobal("ffi.ModuleLoadFromFile", "./core_test_missing.so"); }},
      {"ModuleFunctionOfAnotherObject", "TypeError",
       "~Expected `ffi.Module` but got `core_test.Box`",
       [] { CallGlobal("ffi.ModuleGetFunction", Box(1), "f", false); }},
  };
}

class BadInputTest : public testing::TestWithParam<BadInput> {};

TEST_P(BadInputTest, GivesAClearError) {
  const BadInput& bad = GetParam();
  int alive = BoxObj::alive;
  testing::internal::CaptureStderr();  // some errors are logged as well
  std::string kind, message;
  bool raised = false;
  try {
    bad.action();
  } catch (const Error& error) {
    raised = true;
    kind = error.kind();
    message = error.message();
  }
  testing::internal::GetCapturedStderr();
  ASSERT_TRUE(raised) << "no error";
  EXPECT_EQ(kind, bad.kind) << message;
  if (bad.message[0] == '~') {
    EXPECT_TRUE(Contains(message, bad.message + 1)) << message;
  } else {
    EXPECT_EQ(message, bad.message);
  }
  EXPECT_EQ(BoxObj::alive, alive) << "nothing is kept";
  EXPECT_EQ(Typed()(1, "ok").cast<int>(), 1) << "the next call works";
}

std::string CaseName(const testing::TestParamInfo<BadInput>& info) { return info.param.name; }

INSTANTIATE_TEST_SUITE_P(Calls, BadInputTest, testing::ValuesIn(Calls()), CaseName);
INSTANTIATE_TEST_SUITE_P(Conversions, BadInputTest, testing::ValuesIn(Conversions()), CaseName);
INSTANTIATE_TEST_SUITE_P(Types, BadInputTest, testing::ValuesIn(Types()), CaseName);
INSTANTIATE_TEST_SUITE_P(DataTypes, BadInputTest, testing::ValuesIn(DataTypes()), CaseName);
INSTANTIATE_TEST_SUITE_P(Tensors, BadInputTest, testing::ValuesIn(Tensors()), CaseName);
INSTANTIATE_TEST_SUITE_P(Containers, BadInputTest, testing::ValuesIn(Containers()), CaseName);
INSTANTIATE_TEST_SUITE_P(Documents, BadInputTest, testing::ValuesIn(Documents()), CaseName);

TEST(BadInputTable, HasAtLeastAHundredEntries) {
  EXPECT_GE(Calls().size() + Conversions().size() + Types().size() + DataTypes().size() +
                Tensors().size() + Containers().size() + Documents().size(),
            100u);
}

// ---- functions that can only report by leaving

int32_t Alloc(const char* key, int32_t static_index, int32_t depth, int32_t slots, int32_t parent) {
  TVMFFIByteArray bytes = Text(key);
  return TVMFFITypeGetOrAllocIndex(&bytes, static_index, depth, slots, 1, parent);
}

TEST(BadInputDeathTest, UnknownTypeIndexIsPrinted) {
  for (int32_t index : {-1, 63, 127, 1000000, INT32_MAX, INT32_MIN}) {
    EXPECT_EXIT(
        {
          volatile int32_t found = TVMFFIGetTypeInfo(index)->type_index;
          (void)found;
        },
        testing::ExitedWithCode(255),
        "Exception caught during TVMFFIGetTypeInfo:\n.*Cannot find type info for type_index=" +
            std::to_string(index));
  }
}

TEST(BadInputDeathTest, BadTypeRegistrationIsPrinted) {
  const char* prefix = "Exception caught during TVMFFITypeGetOrAllocIndex:\n.*";
  auto exits = testing::ExitedWithCode(255);
  EXPECT_EXIT(
      Alloc("core_test.d1", 65, 1, 0, 64), exits,
      std::string(prefix) + "Conflicting static index 65 between ffi.String and core_test.d1");
  EXPECT_EXIT(Alloc("core_test.d2", -1, 2, 0, kTVMFFIStr), exits,
              std::string(prefix) + "Reach maximum number of sub-classes for ffi.String");
  EXPECT_EXIT(Alloc("core_test.d3", -1, 1, 0, 1000000), exits,
              std::string(prefix) + "Cannot find type info for type_index=1000000");
  EXPECT_EXIT(Alloc("core_test.d4", -1, 0, 0, -1), exits, prefix);
  EXPECT_EXIT(Alloc("core_test.d5", -1, 5, 0, 64), exits, prefix);
  EXPECT_EXIT(Alloc("core_test.d6", -1, 1, -3, 64), exits, prefix);
  EXPECT_EXIT(Alloc("core_test.d7", 100000000, 1, 0, 64), exits, prefix);
  EXPECT_EXIT(Alloc("core_test.d8", -1, 1, INT32_MAX, 64), exits, prefix);
}

}  // namespace
