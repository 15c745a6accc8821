// SPDX-License-Identifier: Apache-2.0
//
// ReprPrint and the stream operators built on it.
#include <gtest/gtest.h>
#include <tvm/ffi/container/array.h>
#include <tvm/ffi/container/dict.h>
#include <tvm/ffi/container/list.h>
#include <tvm/ffi/container/map.h>
#include <tvm/ffi/container/shape.h>
#include <tvm/ffi/container/tensor.h>
#include <tvm/ffi/container/variant.h>
#include <tvm/ffi/dtype.h>
#include <tvm/ffi/extra/dataclass.h>
#include <tvm/ffi/memory.h>
#include <tvm/ffi/reflection/registry.h>

#include <cstdio>
#include <cstdlib>
#include <limits>
#include <sstream>
#include <string>

#include "reflected_object.h"

namespace {

using namespace tether_test;
namespace refl = tvm::ffi::reflection;

std::string Repr(const Any& value) { return ReprPrint(value); }

template <typename T>
std::string Streamed(const T& value) {
  std::ostringstream os;
  os << value;
  return os.str();
}

std::string Address(const Any& value) {
  char buffer[32];
  std::snprintf(buffer, sizeof(buffer), "@0x%llx",
                static_cast<unsigned long long>(reinterpret_cast<uintptr_t>(value.as<Object>())));
  return buffer;
}

struct WithAddresses {
  WithAddresses() { setenv("TVM_FFI_REPR_WITH_ADDR", "1", 1); }
  ~WithAddresses() { unsetenv("TVM_FFI_REPR_WITH_ADDR"); }
};

struct HostAlloc {
  void AllocData(DLTensor* tensor) { tensor->data = std::malloc(GetDataSize(*tensor) + 1); }
  void FreeData(DLTensor* tensor) { std::free(tensor->data); }
};

Tensor MakeTensor(Shape shape, DLDataType dtype) {
  return Tensor::FromNDAlloc(HostAlloc(), shape, dtype, DLDevice{kDLCPU, 0});
}

TEST(Repr, PlainValues) {
  EXPECT_EQ(Repr(nullptr), "None");
  EXPECT_EQ(Repr(true), "True");
  EXPECT_EQ(Repr(false), "False");
  EXPECT_EQ(Repr(42), "42");
  EXPECT_EQ(Repr(std::numeric_limits<int64_t>::min()), "-9223372036854775808");
  EXPECT_EQ(Repr(DLDataType{kDLFloat, 32, 4}), "float32x4");
  EXPECT_EQ(Repr(static_cast<void*>(nullptr)), "void*");
}

TEST(Repr, FloatsHaveSixDigits) {
  EXPECT_EQ(Repr(3.14), "3.14");
  EXPECT_EQ(Repr(0.0), "0");
  EXPECT_EQ(Repr(3.0), "3");
  EXPECT_EQ(Repr(1e10), "1e+10");
  EXPECT_EQ(Repr(1.23456789), "1.23457");
  EXPECT_EQ(Repr(std::numeric_limits<double>::infinity()), "inf");
  EXPECT_EQ(Repr(-std::numeric_limits<double>::infinity()), "-inf");
  EXPECT_EQ(Repr(std::numeric_limits<double>::quiet_NaN()), "nan");
  EXPECT_EQ(Repr(-std::numeric_limits<double>::quiet_NaN()), "nan");
}

TEST(Repr, Devices) {
  auto name = [](int type, int id) { return Repr(DLDevice{static_cast<DLDeviceType>(type), id}); };
  EXPECT_EQ(name(kDLCPU, 0), "cpu:0");
  EXPECT_EQ(name(kDLCUDA, 3), "cuda:3");
  EXPECT_EQ(name(kDLCUDAHost, 0), "cuda_host:0");
  EXPECT_EQ(name(kDLOpenCL, 0), "opencl:0");
  EXPECT_EQ(name(kDLVulkan, 0), "vulkan:0");
  EXPECT_EQ(name(kDLMetal, 0), "metal:0");
  EXPECT_EQ(name(kDLVPI, 0), "vpi:0");
  EXPECT_EQ(name(kDLROCM, 0), "rocm:0");
  EXPECT_EQ(name(kDLROCMHost, 0), "rocm_host:0");
  EXPECT_EQ(name(kDLExtDev, 0), "ext_dev:0");
  EXPECT_EQ(name(kDLCUDAManaged, 0), "cuda_managed:0");
  EXPECT_EQ(name(kDLOneAPI, 0), "oneapi:0");
  EXPECT_EQ(name(kDLWebGPU, 0), "webgpu:0");
  EXPECT_EQ(name(kDLHexagon, 0), "hexagon:0");
  EXPECT_EQ(name(kDLMAIA, 0), "maia:0");
  EXPECT_EQ(name(kDLTrn, 0), "trn:0");
  EXPECT_EQ(name(99, 1), "unknown:1");
}

TEST(Repr, StringsAreQuotedAndEscaped) {
  EXPECT_EQ(Repr(String("hello")), "\"hello\"");
  EXPECT_EQ(Repr(String("a \"long\" one\n\t\\")), R"("a \"long\" one\n\t\\")");
  EXPECT_EQ(Repr(String(std::string("\0\x7f", 2))), R"("\x00\x7f")");
  EXPECT_EQ(Repr(String("\xc3\xa9")), R"("\u00e9")");
}

TEST(Repr, Bytes) {
  EXPECT_EQ(Repr(Bytes("ab", 2)), "b\"ab\"");
  EXPECT_EQ(Repr(Bytes("a\"\\\n\xff and more", 14)), R"(b"a\x22\x5c\x0a\xff and more")");
}

TEST(Repr, Containers) {
  EXPECT_EQ(Repr(Array<Any>{}), "()");
  EXPECT_EQ(Repr(Array<Any>{1}), "(1,)");
  EXPECT_EQ(Repr(Array<Any>{1, String("a")}), "(1, \"a\")");
  EXPECT_EQ(Repr(List<Any>{}), "[]");
  EXPECT_EQ(Repr(List<Any>{1, 2.5}), "[1, 2.5]");
  EXPECT_EQ(Repr(Map<Any, Any>{}), "{}");
  EXPECT_EQ(Repr(Map<Any, Any>{{1, Array<Any>{10, 20}}}), "{1: (10, 20)}");
  EXPECT_EQ(Repr(Dict<Any, Any>{{String("k"), 1}, {String("l"), nullptr}}),
            "{\"k\": 1, \"l\": None}");
  EXPECT_EQ(Repr(MakeNestedArrays(4, 1)), "((((1,),),),)");
  EXPECT_EQ(Repr(Map<Any, Any>{{String("nested"), Array<Any>{List<Any>{1, 2}}}}),
            "{\"nested\": ([1, 2],)}");
}

TEST(Repr, TensorsAndShapes) {
  EXPECT_EQ(Repr(MakeTensor({3, 4}, DLDataType{kDLFloat, 32, 1})), "float32[3, 4]@cpu:0");
  EXPECT_EQ(Repr(MakeTensor({}, DLDataType{kDLInt, 8, 1})), "int8[]@cpu:0");
  EXPECT_EQ(Repr(Shape({5, 6})), "Shape(5, 6)");
  EXPECT_EQ(Repr(Shape()), "Shape()");
}

TEST(Repr, DTypesWithoutANameKeepTheRestReadable) {
  const DLDataType complex64{kDLComplex, 64, 1};
  EXPECT_EQ(Repr(MakeTensor({2}, complex64)), "<dtype code 5, bits 64>[2]@cpu:0");
  EXPECT_EQ(Repr(Array<Any>{1, MakeTensor({2}, complex64), complex64}),
            "(1, <dtype code 5, bits 64>[2]@cpu:0, <dtype code 5, bits 64>)");
  EXPECT_EQ(Repr(DLDataType{100, 8, 4}), "<dtype code 100, bits 8, lanes 4>");
  EXPECT_THROW(DLDataTypeToString(complex64), Error);
}

TEST(Repr, Sentinels) {
  EXPECT_EQ(Repr(CallGlobal("ffi.GetInvalidObject")), "<MISSING>");
  EXPECT_EQ(Repr(CallGlobal("ffi.GetKwargsObject")), "<KWARGS>");
}

TEST(Repr, ObjectsShowTheirFields) {
  EXPECT_EQ(Repr(MakePair(10, 20)), "testing.TestIntPair(a=10, b=20)");
  Any derived = Construct("testing.TestObjectDerived", Map<Any, Any>{},
                          Array<Any>{MakePair(10, 20)}, 1, 2.5, "hi");
  EXPECT_EQ(Repr(derived),
            "testing.TestObjectDerived(v_i64=1, v_f64=2.5, v_str=\"hi\", v_map={}, "
            "v_array=(testing.TestIntPair(a=10, b=20),))");
}

TEST(Repr, HiddenFieldsAreLeftOut) {
  EXPECT_EQ(Repr(Construct("testing.TestCxxClassBase", 1, 2)), "testing.TestCxxClassBase");
  EXPECT_EQ(Repr(Construct("testing.TestCxxClassDerivedDerived", 1, 2, 3.0, true, 4.0, "test")),
            "testing.TestCxxClassDerivedDerived(v_f64=3, v_f32=4, v_str=\"test\", v_bool=True)");
}

TEST(Repr, ObjectsWithoutFieldsShowTheirKey) {
  EXPECT_EQ(Repr(Function::GetGlobalRequired("testing.nop")), "ffi.Function");
}

TEST(Repr, EnumMembers) {
  EXPECT_EQ(Repr(CallGlobal("testing.enum_variant_get", "Alpha")), "testing.TestEnumVariant.Alpha");
}

class ParentObj : public Object {
 public:
  int64_t x = 1;
  static constexpr bool _type_mutable = true;
  TVM_FFI_DECLARE_OBJECT_INFO("test.repr.Parent", ParentObj, Object);
};

class ChildObj : public ParentObj {
 public:
  int64_t y = 2;
  TVM_FFI_DECLARE_OBJECT_INFO("test.repr.Child", ChildObj, ParentObj);
};

TEST(Repr, FieldRegisteredAgainByASubclassShowsOnce) {
  EXPECT_EQ(Repr(CallGlobal("testing.make_unregistered_object")),
            "testing.TestUnregisteredObject(v1=41, v2=42)");
  refl::ObjectDef<ParentObj>().def_rw("x", &ParentObj::x);
  refl::ObjectDef<ChildObj>().def_rw("x", &ChildObj::x).def_rw("y", &ChildObj::y);
  EXPECT_EQ(Repr(ObjectRef(make_object<ChildObj>())), "test.repr.Child(x=1, y=2)");
}

TEST(Repr, SharedObjectsPrintInFullEachTime) {
  Any pair = MakePair(1, 2);
  EXPECT_EQ(Repr(List<Any>{pair, pair}),
            "[testing.TestIntPair(a=1, b=2), testing.TestIntPair(a=1, b=2)]");
}

TEST(Repr, CyclesPrintAsDots) {
  List<Any> list{1};
  list.push_back(list);
  EXPECT_EQ(Repr(list), "[1, ...]");
  list.clear();
  Any outer = MakeEdges();
  Any inner = MakeEdges(outer);
  SetField(outer, "v_any", inner);
  EXPECT_EQ(Repr(outer),
            "testing.TestDeepCopyEdges(v_any=testing.TestDeepCopyEdges(v_any=..., v_obj=None), "
            "v_obj=None)");
  SetField(outer, "v_any", nullptr);
}

TEST(Repr, AddressesOnRequest) {
  WithAddresses scope;
  Any pair = MakePair(1, 2);
  EXPECT_EQ(Repr(pair), "testing.TestIntPair" + Address(pair) + "(a=1, b=2)");
  Any array = Array<Any>{1, 2, 3};
  EXPECT_EQ(Repr(array), "(1, 2, 3)" + Address(array));
  Any list = List<Any>{10};
  EXPECT_EQ(Repr(list), "[10]" + Address(list));
  Any map = Map<Any, Any>{{String("a"), 1}};
  EXPECT_EQ(Repr(map), "{\"a\": 1}" + Address(map));
  Any dict = Dict<Any, Any>{};
  EXPECT_EQ(Repr(dict), "{}" + Address(dict));
  Any tensor = MakeTensor({2}, DLDataType{kDLInt, 8, 1});
  EXPECT_EQ(Repr(tensor), "int8[2]@cpu:0" + Address(tensor));
  Any member = CallGlobal("testing.enum_variant_get", "Beta");
  EXPECT_EQ(Repr(member), "testing.TestEnumVariant.Beta" + Address(member));
  Any hidden = Construct("testing.TestCxxClassBase", 1, 2);
  EXPECT_EQ(Repr(hidden), "testing.TestCxxClassBase" + Address(hidden));
  EXPECT_EQ(Repr(Shape({1})), "Shape(1)");
  EXPECT_EQ(Repr(String("a string on the heap")), "\"a string on the heap\"");
}

TEST(Repr, AddressesInCycles) {
  WithAddresses scope;
  List<Any> list;
  list.push_back(list);
  std::string address = Address(list);
  EXPECT_EQ(Repr(list), "[..." + address + "]" + address);
  list.clear();
}

// A class that prints itself, with a switch for misbehaviour.
class HookedObj : public Object {
 public:
  Any part;
  int64_t mode = 0;
  static constexpr bool _type_mutable = true;
  TVM_FFI_DECLARE_OBJECT_INFO_FINAL("test.repr.Hooked", HookedObj, Object);
};

Function g_kept_callback(nullptr);

TVM_FFI_STATIC_INIT_BLOCK() {
  refl::ObjectDef<HookedObj>()
      .def_rw("part", &HookedObj::part)
      .def_rw("mode", &HookedObj::mode, refl::default_value(0));
  refl::TypeAttrDef<HookedObj>().def(
      refl::type_attr::kRepr, [](const HookedObj* self, Function fn_repr) -> Any {
        switch (self->mode) {
          case 1:
            return 5;  // not a string
          case 2:
            TVM_FFI_THROW(ValueError) << "no text";
            break;
          case 3:
            g_kept_callback = fn_repr;
            return String("kept");
          case 4:  // asks twice, and does not mind a failure
            try {
              fn_repr(self->part);
            } catch (const Error&) {
            }
            return String("survived");
          default:
            break;
        }
        return String("<" + std::string(fn_repr(self->part).cast<String>()) + ">");
      });
}

Any MakeHooked(Any part, int mode = 0) { return Construct("test.repr.Hooked", part, mode); }

TEST(ReprHook, ResultIsPrintedVerbatim) {
  EXPECT_EQ(Repr(MakeHooked(1)), "<1>");
  EXPECT_EQ(Repr(Array<Any>{MakeHooked(MakePair(1, 2))}), "(<testing.TestIntPair(a=1, b=2)>,)");
  WithAddresses scope;
  EXPECT_EQ(Repr(MakeHooked(1)), "<1>");
}

TEST(ReprHook, SharesCyclesAndFinishedText) {
  Any hooked = MakeHooked(nullptr);
  List<Any> list{hooked};
  SetField(hooked, "part", list);
  EXPECT_EQ(Repr(list), "[<...>]");
  EXPECT_EQ(Repr(hooked), "<[...]>");
  list.clear();
  Any pair = MakePair(1, 2);
  EXPECT_EQ(Repr(Array<Any>{MakeHooked(pair), pair}),
            "(<testing.TestIntPair(a=1, b=2)>, testing.TestIntPair(a=1, b=2))");
  Any twice = MakeHooked(pair);
  EXPECT_EQ(Repr(Array<Any>{twice, MakeHooked(twice)}),
            "(<testing.TestIntPair(a=1, b=2)>, <<testing.TestIntPair(a=1, b=2)>>)");
}

TEST(ReprHook, BadHooks) {
  EXPECT_EQ(ErrorText([] { Repr(MakeHooked(1, 1)); }),
            "TypeError: Cannot convert from type `int` to `str`");
  EXPECT_EQ(ErrorText([] { Repr(List<Any>{MakeHooked(1, 2)}); }), "ValueError: no text");
  EXPECT_EQ(Repr(MakeHooked(1, 3)), "kept");
  EXPECT_EQ(ErrorText([] { g_kept_callback(1); }),
            "RuntimeError: the callback of a hook was called after its walk had ended");
  g_kept_callback = Function(nullptr);
}

TEST(ReprHook, FailureOfAPartCanBeCaught) {
  Any failing = MakeHooked(1, 2);
  Any list = List<Any>{failing};
  EXPECT_EQ(Repr(Array<Any>{MakeHooked(list, 4), 1}), "(survived, 1)");
  // What failed is not mistaken for something in progress.
  EXPECT_EQ(ErrorText([&] { Repr(Array<Any>{MakeHooked(list, 4), list}); }), "ValueError: no text");
}

TEST(ReprHook, NestingHasALimit) {
  Any chain = 0;
  for (int i = 0; i < 100; ++i) chain = MakeHooked(chain);
  EXPECT_EQ(Repr(chain).size(), 2 * 100 + 1U);
  for (int i = 0; i < kDeep; ++i) chain = MakeHooked(chain);
  EXPECT_TRUE(Contains(ErrorText([&] { Repr(chain); }),
                       "ValueError: type attribute hooks are nested too deeply"));
}

TEST(Repr, DeepChains) {
  std::string text = Repr(MakeNestedArrays(kDeep, 7));
  EXPECT_EQ(text.size(), 3 * static_cast<size_t>(kDeep) + 1);
  EXPECT_EQ(text[kDeep], '7');
  Any chain = MakeChain(kDeep);
  text = Repr(chain);
  EXPECT_EQ(text.substr(text.size() - 26), ", v_obj=None), v_obj=None)");
}

TEST(Repr, DepthLimit) {
  Any nested = MakeNestedArrays((1 << 20) + 1);
  EXPECT_EQ(ErrorText([&] { Repr(nested); }),
            "ValueError: ObjectGraphDFS: maximum stack depth (1048576) exceeded");
}

TEST(Repr, GlobalFunction) {
  EXPECT_EQ(CallGlobal("ffi.ReprPrint", Array<Any>{1}).cast<String>(), "(1,)");
  EXPECT_EQ(CallGlobal("ffi.ReprPrint", "raw").cast<String>(), "\"raw\"");
}

// ---- Streams
// --------------------------------------------------------------------------------------------

TEST(ReprStream, Any) {
  EXPECT_EQ(Streamed(Any(42)), "42");
  EXPECT_EQ(Streamed(Any(3.14)), "3.14");
  EXPECT_EQ(Streamed(Any(true)), "True");
  EXPECT_EQ(Streamed(Any()), "None");
  EXPECT_EQ(Streamed(Any(String("hello"))), "\"hello\"");
}

TEST(ReprStream, ReferencesPrintTheirRuntimeType) {
  ObjectRef pair = MakePair(1, 2).cast<ObjectRef>();
  EXPECT_EQ(Streamed(pair), "testing.TestIntPair(a=1, b=2)");
  EXPECT_EQ(Streamed(ObjectRef()), "None");
  EXPECT_EQ(Streamed(Array<int>{1, 2}), "(1, 2)");
  EXPECT_EQ(Streamed(Function::GetGlobalRequired("testing.nop")), "ffi.Function");
}

TEST(ReprStream, TypesWithTheirOwnOperatorKeepIt) {
  EXPECT_EQ(Streamed(Shape({1, 2, 3})), "[1, 2, 3]");
  EXPECT_EQ(Streamed(String("raw text")), "raw text");
}

TEST(ReprStream, VariantAndOptional) {
  EXPECT_EQ(Streamed(Variant<int, String>(5)), "5");
  EXPECT_EQ(Streamed(Variant<int, String>(String("s"))), "\"s\"");
  EXPECT_EQ(Streamed(Optional<int>(5)), "5");
  EXPECT_EQ(Streamed(Optional<int>()), "None");
  EXPECT_EQ(Streamed(Optional<String>(String("s"))), "\"s\"");
  EXPECT_EQ(Streamed(Optional<ObjectRef>(MakePair(1, 2).cast<ObjectRef>())),
            "testing.TestIntPair(a=1, b=2)");
  EXPECT_EQ(Streamed(Optional<Array<int>>()), "None");
}

}  // namespace
