// SPDX-License-Identifier: Apache-2.0
//
// A client library as users write them, compiled once per release of the interface and once against
// our own headers. It registers functions named "skew.<release>.<what>" and the reflected classes
// "skew.<release>.Node" and "skew.<release>.Machine" while it is being loaded; old_client_driver.cc
// calls them from C++ and test_matrix.py from Python. One source serves all releases since 0.1.9.
//
//   SKEW_TAG   an identifier, unique per release    SKEW_NAME  the release as a string
//   SKEW_MODULE_DISAGREES  set for 0.1.13, whose module functions no other release can call
#include <tvm/ffi/extra/json.h>
#include <tvm/ffi/extra/module.h>
#if __has_include(<tvm/ffi/big_int.h>)  // since 0.1.14
#include <tvm/ffi/big_int.h>
#include <tvm/ffi/extra/structural_mutate.h>
#define SKEW_HAS_MUTATOR
#endif

#include <algorithm>
#include <atomic>
#include <random>
#include <stdexcept>
#include <string>
#include <thread>
#include <vector>

#include "skew_common.h"

namespace skew {
// Everything here carries the release in its mangled name: these classes differ between clients.
namespace SKEW_TAG {

using namespace tvm::ffi;  // NOLINT(google-build-using-namespace)
namespace refl = tvm::ffi::reflection;

constexpr const char* kPrefix = "skew." SKEW_NAME ".";

// A member that counts how many objects of this client live.
struct Tally {
  static inline std::atomic<int64_t> live{0};
  Tally() { ++live; }
  Tally(const Tally&) { ++live; }
  Tally& operator=(const Tally&) = default;
  ~Tally() { --live; }
};

class NodeObj : public Object {
 public:
  int64_t value = 0;
  double weight = 0.5;
  String name;
  Any payload;
  List<Any> children;
  Optional<ObjectRef> partner;
  NodeObj* borrowed = nullptr;  // owns nothing
  Tally tally;

  NodeObj() = default;
  NodeObj(int64_t value, String name) : value(value), name(std::move(name)) {}
  int64_t Total(int64_t bonus) const {
    return value + bonus + static_cast<int64_t>(children.size());
  }

  static constexpr bool _type_mutable = true;
  TVM_FFI_DECLARE_OBJECT_INFO_FINAL("skew." SKEW_NAME ".Node", NodeObj, Object);
};

// Virtual functions put a vtable pointer in front of the header.
class MachineObj : public Object {
 public:
  Tally tally;
  int64_t power = 0;
  Any part;

  MachineObj() = default;
  virtual ~MachineObj() = default;
  virtual String Describe() const { return "machine"; }

  static constexpr bool _type_mutable = true;
  TVM_FFI_DECLARE_OBJECT_INFO("skew." SKEW_NAME ".Machine", MachineObj, Object);
};

class EngineObj : public MachineObj {
 public:
  String Describe() const override { return "engine " SKEW_NAME; }
  TVM_FFI_DECLARE_OBJECT_INFO_FINAL("skew." SKEW_NAME ".Engine", EngineObj, MachineObj);
};

#ifndef SKEW_MODULE_DISAGREES
class ClientModuleObj : public ModuleObj {
 public:
  const char* kind() const final { return "skew_client"; }
  Optional<Function> GetFunction(const String& name) final {
    if (name != "triple") return std::nullopt;
    return Function::FromTyped([](int64_t x) { return 3 * x; });
  }
};
#endif

// A key of maps. Its hooks are raw pointers, in the form of the release: up to 0.1.14 they return
// the plain result, since then a value that owns the result or an error.
class KeyObj : public Object {
 public:
  int64_t value = 0;
  Tally tally;

  explicit KeyObj(int64_t value) : value(value) {}
  TVM_FFI_DECLARE_OBJECT_INFO_FINAL("skew." SKEW_NAME ".Key", KeyObj, Object);
};

int64_t ValueOfKey(const Any& key) { return key.as<KeyObj>()->value; }

// The number in the headers of 0.1.15 is 16; ours have both forms.
#if TVM_FFI_VERSION_PATCH >= 16 || defined(TVM_FFI_TETHER_VERSION_MAJOR)
template <typename T>
TVMFFIAny OwnedCell(T value) noexcept {
  return details::AnyUnsafe::MoveAnyToTVMFFIAny(Any(std::move(value)));
}
TVMFFIAny HashKey(const Any& key) noexcept {
  if (ValueOfKey(key) < 0) return OwnedCell(Error("ValueError", "a bad key of " SKEW_NAME, ""));
  return OwnedCell(ValueOfKey(key));
}
TVMFFIAny EqualKey(const Any& a, const Any& b) noexcept {
  return OwnedCell(ValueOfKey(a) == ValueOfKey(b));
}
#else
int64_t HashKey(const Any& key) {
  if (ValueOfKey(key) < 0) TVM_FFI_THROW(ValueError) << "a bad key of " SKEW_NAME;
  return ValueOfKey(key);
}
bool EqualKey(const Any& a, const Any& b) { return ValueOfKey(a) == ValueOfKey(b); }
#endif

template <typename T>
void RegisterHook(const char* name, void* hook) {
  TVMFFIByteArray key{name, std::char_traits<char>::length(name)};
  AnyView value(hook);
  TVMFFIAny raw = value.CopyToTVMFFIAny();
  if (TVMFFITypeRegisterAttr(T::_GetOrAllocRuntimeTypeIndex(), &key, &raw) != 0) {
    throw details::MoveFromSafeCallRaised();
  }
}

void RegisterKeys() {
  RegisterHook<KeyObj>("__any_hash__", reinterpret_cast<void*>(&HashKey));
  RegisterHook<KeyObj>("__any_equal__", reinterpret_cast<void*>(&EqualKey));
  std::string p = kPrefix;
  refl::GlobalDef()
      .def((p + "make_key").c_str(),
           [](int64_t value) { return ObjectRef(make_object<KeyObj>(value)); })
      .def((p + "map_of_keys").c_str(),
           [](const Array<Any>& keys) {
             Map<Any, Any> map;
             for (size_t i = 0; i < keys.size(); ++i) map.Set(keys[i], static_cast<int64_t>(i));
             return map;
           })
      .def((p + "key_count").c_str(),
           [](const Map<Any, Any>& map, const Any& key) {
             return static_cast<int64_t>(map.count(key));
           })
      .def((p + "keys_in_order").c_str(), [](const Map<Any, Any>& map) {
        Array<Any> keys;
        for (const auto& entry : map) keys.push_back(entry.first);
        return keys;
      });
}

#ifdef SKEW_HAS_MUTATOR
// Its parts are known only to its hook.
class PairObj : public Object {
 public:
  Any first, second;
  Tally tally;

  PairObj(Any first, Any second) : first(std::move(first)), second(std::move(second)) {}
  TVM_FFI_DECLARE_OBJECT_INFO_FINAL("skew." SKEW_NAME ".Pair", PairObj, Object);
};

TVMFFIAny MutatePair(StructuralMutatorObj* mutator, AnyView value) noexcept {
  const PairObj* pair = value.as<PairObj>();
  Any parts[] = {pair->first, pair->second};
  bool is_changed = false;
  for (Any& part : parts) {
    Expected<UnchangedOr<Any>> result = mutator->MutateExpected(part);
    if (result.is_err()) return details::AnyUnsafe::MoveAnyToTVMFFIAny(Any(result.error()));
    UnchangedOr<Any> made = std::move(result).value();
    if (made.UnchangedOrSameAs(part)) continue;
    part = std::move(made).ValueUnchecked();
    is_changed = true;
  }
  if (!is_changed) return Unchanged().CopyToTVMFFIAny();
  Any made = ObjectRef(make_object<PairObj>(std::move(parts[0]), std::move(parts[1])));
  return details::AnyUnsafe::MoveAnyToTVMFFIAny(std::move(made));
}

void RegisterMutation() {
  RegisterHook<PairObj>("__s_mutate__", reinterpret_cast<void*>(&MutatePair));
  std::string p = kPrefix;
  refl::GlobalDef()
      .def((p + "make_pair").c_str(),
           [](Any first, Any second) {
             return ObjectRef(make_object<PairObj>(std::move(first), std::move(second)));
           })
      .def((p + "pair_first").c_str(),
           [](const ObjectRef& pair) { return pair.as<PairObj>()->first; })
      .def((p + "pair_second").c_str(),
           [](const ObjectRef& pair) { return pair.as<PairObj>()->second; })
      .def((p + "add_to_ints").c_str(),
           [](Any root, int64_t by) {
             return StructuralMap<WalkOrder::kPostOrder>(std::move(root), [by](int64_t i) {
               if (i < 0) TVM_FFI_THROW(ValueError) << "a bad number for " SKEW_NAME;
               return i + by;
             });
           })
      .def((p + "power_of_two").c_str(), [](int64_t bits) { return BigInt(1) << BigInt(bits); })
      .def((p + "big_sum").c_str(), [](BigInt a, BigInt b) { return a + b; })
      .def((p + "big_product").c_str(), [](BigInt a, BigInt b) { return a * b; });
}
#endif

// References the client keeps for itself; released by drop, on a worker thread, or at process exit.
Any& Held() {
  static Any held;
  return held;
}

// Things that worker threads will drop.
std::vector<Any>& Pool() {
  static std::vector<Any> pool;
  return pool;
}

// On threads that have never seen an interpreter.
void DropPoolOnThreads(int64_t threads, int64_t seed) {
  std::vector<Any> pool = std::move(Pool());
  Pool().clear();
  std::shuffle(pool.begin(), pool.end(), std::mt19937(static_cast<uint32_t>(seed)));
  std::vector<std::thread> workers;
  for (int64_t t = 0; t < threads; ++t) {
    workers.emplace_back([&pool, t, threads]() {
      for (size_t i = t; i < pool.size(); i += threads) pool[i].reset();
    });
  }
  for (std::thread& worker : workers) worker.join();
}

Any CallOnThread(const Function& f, const Any& arg) {
  Any result;
  std::string failure;
  std::thread([&]() {
    try {
      result = f(arg);
    } catch (const Error& error) {
      failure = std::string(error.kind()) + ": " + std::string(error.message());
    }
  }).join();
  if (!failure.empty()) TVM_FFI_THROW(RuntimeError) << "on a thread: " << failure;
  return result;
}

WeakObjectPtr<PointObj>& Watched() {
  static WeakObjectPtr<PointObj> watched;
  return watched;
}

// Made while the library is being loaded, before the driver runs a line of its own.
Array<Any>& MadeAtLoad() {
  static Array<Any> made = {1, 2.5, "short", String("a string that needs the heap"),
                            Map<String, Any>({{"key", 7}})};
  return made;
}

// A variable, not made in the block below: there, since 0.1.13, classes do not know their type
// index.
Any node_made_at_load(ObjectRef(make_object<NodeObj>(1, "made at load")));

String Describe(const Function& f) {
  try {
    f();
  } catch (const Error& error) {
    return String(std::string(error.kind()) + ": " + std::string(error.message()));
  } catch (const std::exception& error) {
    return String(std::string("std: ") + error.what());
  }
  return "nothing thrown";
}

// Through the C ABI, as code generators call: a code comes back, the error waits in the thread
// slot.
Any CallThroughC(const Function& f, int64_t arg) {
  AnyView view(arg);
  TVMFFIAny args[1] = {view.CopyToTVMFFIAny()};
  TVMFFIAny result;
  result.type_index = kTVMFFINone;
  result.zero_padding = 0;
  result.v_int64 = 0;
  TVMFFIObjectHandle handle = const_cast<Object*>(static_cast<const Object*>(f.get()));
  if (TVMFFIFunctionCall(handle, args, 1, &result) == 0) {
    return details::AnyUnsafe::MoveTVMFFIAnyToAny(&result);
  }
  return details::MoveFromSafeCallRaised();
}

void RegisterObjects() {
  std::string p = kPrefix;
  refl::GlobalDef()
      .def((p + "make_point").c_str(),
           [](int64_t x, String label, Any extra) { return Point(x, label, extra); })
      .def((p + "make_point3").c_str(), [](int64_t x, int64_t z) { return Point3(x, z); })
      .def((p + "make_shifted").c_str(), [](int64_t value) { return Shifted(value); })
      .def((p + "make_node").c_str(),
           [](int64_t value, String name) {
             return ObjectRef(make_object<NodeObj>(value, std::move(name)));
           })
      .def((p + "make_engine").c_str(),
           [](int64_t power, Any part) {
             ObjectPtr<EngineObj> engine = make_object<EngineObj>();
             engine->power = power;
             engine->part = std::move(part);
             return ObjectRef(engine);
           })
      .def((p + "live").c_str(), []() { return Tally::live.load(); })
      .def((p + "point_x").c_str(), [](const Point& point) { return point->x; })
      .def((p + "point_label").c_str(), [](const Point& point) { return point->label; })
      .def((p + "point_extra").c_str(), [](const Point& point) { return point->extra; })
      .def((p + "point_write").c_str(),
           [](const Point& point, int64_t x, String label, Any extra) {
             point->x = x;
             point->label = label;
             point->extra = extra;
           })
      .def((p + "point_copy").c_str(),
           [](const Point& point) { return Point(make_object<PointObj>(*point.get())); })
      .def((p + "shifted_value").c_str(),
           [](const Shifted& shifted) { return shifted->value + shifted->word; })
      .def((p + "is_point").c_str(),
           [](const ObjectRef& ref) { return ref.as<PointObj>() != nullptr; })
      .def((p + "point_type_index").c_str(), []() { return PointObj::RuntimeTypeIndex(); })
      .def((p + "use_count").c_str(), [](const ObjectRef& ref) { return ref.use_count(); });
}

void RegisterOwnership() {
  std::string p = kPrefix;
  refl::GlobalDef()
      .def((p + "hold").c_str(), [](Any value) { Held() = std::move(value); })
      .def((p + "held").c_str(), []() { return Held(); })
      .def((p + "drop").c_str(), []() { Held().reset(); })
      .def((p + "drop_on_thread").c_str(), []() { std::thread([]() { Held().reset(); }).join(); })
      .def((p + "share_between_threads").c_str(),
           [](ObjectRef ref, int64_t threads, int64_t rounds) {
             std::vector<std::thread> workers;
             for (int64_t i = 0; i < threads; ++i) {
               workers.emplace_back([ref, rounds]() {
                 for (int64_t round = 0; round < rounds; ++round) Any copy(ref);
               });
             }
             ref = ObjectRef();
             for (std::thread& worker : workers) worker.join();
           })
      .def((p + "watch").c_str(),
           [](const Point& point) {
             Watched() = details::ObjectUnsafe::ObjectPtrFromObjectRef<PointObj>(point);
           })
      .def((p + "watched_alive").c_str(), []() { return !Watched().expired(); })
      .def((p + "watched").c_str(), []() { return Point(Watched().lock()); })
      .def((p + "unwatch").c_str(), []() { Watched().reset(); })
      .def((p + "made_at_load").c_str(), []() { return MadeAtLoad(); })
      .def((p + "node_made_at_load").c_str(), []() { return node_made_at_load; })
      .def((p + "pool_add").c_str(), [](Any value) { Pool().push_back(std::move(value)); })
      .def((p + "pool_take").c_str(),
           [](int64_t i) {
             Any taken = std::move(Pool().at(i));
             std::swap(Pool().at(i), Pool().back());
             Pool().pop_back();
             return taken;
           })
      .def((p + "pool_get").c_str(), [](int64_t i) { return Pool().at(i); })
      .def((p + "pool_fill").c_str(),
           [](int64_t count) {
             for (int64_t i = 0; i < count; ++i) {
               Pool().emplace_back(ObjectRef(make_object<NodeObj>(i, "pooled")));
             }
           })
      .def((p + "pool_drop_on_threads").c_str(), DropPoolOnThreads);
}

void RegisterStrings() {
  std::string p = kPrefix;
  refl::GlobalDef()
      .def((p + "make_string").c_str(),
           [](int64_t size) { return String(std::string(size, 's').c_str()); })
      .def((p + "make_moved_string").c_str(),
           [](int64_t size) { return String(std::string(size, 's')); })
      .def((p + "make_bytes").c_str(),
           [](int64_t size) {
             std::string raw(size, '\0');
             return Bytes(raw.data(), raw.size());
           })
      .def((p + "concat").c_str(), [](const String& a, const String& b) { return a + b; })
      .def((p + "string_size").c_str(),
           [](const String& text) { return static_cast<int64_t>(text.size()); })
      .def((p + "bytes_size").c_str(),
           [](const Bytes& raw) { return static_cast<int64_t>(raw.size()); })
      .def((p + "any_hash").c_str(),
           [](Any value) { return static_cast<int64_t>(AnyHash()(value)); })
      .def((p + "stringify").c_str(),
           [](Any value, int64_t indent) {
             return json::Stringify(value, static_cast<int>(indent));
           })
      .def((p + "stringify_on_one_line").c_str(), [](Any value) { return json::Stringify(value); })
      .def((p + "any_equal").c_str(), [](Any a, Any b) { return AnyEqual()(a, b); });
}

void RegisterSequences() {
  std::string p = kPrefix;
  refl::GlobalDef()
      .def((p + "make_array").c_str(),
           [](int64_t size) {
             Array<Any> array;
             for (int64_t i = 0; i < size; ++i) array.push_back(i);
             return array;
           })
      .def((p + "make_list").c_str(),
           [](int64_t size) {
             List<Any> list;
             for (int64_t i = 0; i < size; ++i) list.push_back(i);
             return list;
           })
      .def((p + "array_sum").c_str(),
           [](const Array<int64_t>& array) {
             int64_t sum = 0;
             for (int64_t x : array) sum += x;
             return sum;
           })
      .def((p + "list_sum").c_str(),
           [](const List<int64_t>& list) {
             int64_t sum = 0;
             for (int64_t x : list) sum += x;
             return sum;
           })
      .def((p + "array_push").c_str(),
           [](Array<Any> array, Any value) {
             array.push_back(value);
             return array;
           })
      .def((p + "array_take_and_push").c_str(),
           [](RValueRef<Array<Any>> moved, Any value, int64_t times) {
             Array<Any> array = *std::move(moved);
             for (int64_t i = 0; i < times; ++i) array.push_back(value);
             return array;
           })
      .def((p + "list_push").c_str(), [](List<Any> list, Any value) { list.push_back(value); })
      .def((p + "list_set").c_str(),
           [](List<Any> list, int64_t i, Any value) { list.Set(i, value); })
      .def((p + "list_insert").c_str(),
           [](List<Any> list, int64_t i, Any value) { list.insert(list.begin() + i, value); })
      .def((p + "list_erase").c_str(),
           [](List<Any> list, int64_t i) { list.erase(list.begin() + i); })
      .def((p + "list_clear").c_str(), [](List<Any> list) { list.clear(); })
      .def((p + "make_shape").c_str(),
           [](int64_t a, int64_t b) {
             return Shape({a, b});
           })
      .def((p + "make_moved_shape").c_str(),
           [](int64_t a, int64_t b) {
             return Shape(std::vector<int64_t>{a, b});
           })
      .def((p + "shape_product").c_str(), [](const Shape& shape) { return shape.Product(); });
}

void RegisterMaps() {
  std::string p = kPrefix;
  refl::GlobalDef()
      .def((p + "make_map").c_str(),
           [](int64_t size) {
             Map<Any, Any> map;
             for (int64_t i = 0; i < size; ++i) map.Set(i, i * i);
             return map;
           })
      .def((p + "make_dict").c_str(),
           [](int64_t size) {
             Dict<Any, Any> dict;
             for (int64_t i = 0; i < size; ++i) dict.Set(i, i * i);
             return dict;
           })
      .def((p + "map_get").c_str(), [](const Map<Any, Any>& map, Any key) { return map.at(key); })
      .def((p + "dict_get").c_str(),
           [](const Dict<Any, Any>& dict, Any key) { return dict.at(key); })
      .def((p + "map_set").c_str(),
           [](Map<Any, Any> map, Any key, Any value) {
             map.Set(key, value);
             return map;
           })
      .def((p + "map_take_and_fill").c_str(),
           [](RValueRef<Map<Any, Any>> moved, int64_t begin, int64_t end) {
             Map<Any, Any> map = *std::move(moved);
             for (int64_t i = begin; i < end; ++i) map.Set(i, i * i);
             return map;
           })
      .def((p + "map_erase").c_str(),
           [](Map<Any, Any> map, Any key) {
             map.erase(key);
             return map;
           })
      .def((p + "dict_set").c_str(),
           [](Dict<Any, Any> dict, Any key, Any value) { dict.Set(key, value); })
      .def((p + "dict_erase").c_str(), [](Dict<Any, Any> dict, Any key) { dict.erase(key); })
      .def((p + "dict_clear").c_str(), [](Dict<Any, Any> dict) { dict.clear(); })
      .def((p + "map_items").c_str(),
           [](const Map<Any, Any>& map) {
             Array<Any> flat;
             for (const auto& item : map) {
               flat.push_back(item.first);
               flat.push_back(item.second);
             }
             return flat;
           })
      .def((p + "dict_items").c_str(), [](const Dict<Any, Any>& dict) {
        Array<Any> flat;
        for (const auto& item : dict) {
          flat.push_back(item.first);
          flat.push_back(item.second);
        }
        return flat;
      });
}

void RegisterFunctionsAndErrors() {
  std::string p = kPrefix;
  refl::GlobalDef()
      .def((p + "make_adder").c_str(),
           [](int64_t step) { return Function::FromPacked(Adder{step}); })
      .def((p + "apply").c_str(), [](const Function& f, Any arg) { return f(arg); })
      .def((p + "apply_on_thread").c_str(), CallOnThread)
      .def((p + "apply_typed").c_str(),
           [](TypedFunction<int64_t(int64_t)> f, int64_t arg) { return f(arg); })
      .def((p + "apply_through_c").c_str(), CallThroughC)
      .def((p + "echo").c_str(), [](Any value) { return value; })
      .def((p + "describe").c_str(), Describe)
      .def((p + "throw_error").c_str(),
           [](const String& message) { TVM_FFI_THROW(ValueError) << message; })
      .def((p + "throw_std").c_str(),
           [](const String& message) { throw std::runtime_error(message.c_str()); })
      .def((p + "make_error").c_str(),
           [](const String& message) { return Error("IndexError", message, "  File \"x\"\n"); })
      .def((p + "error_text").c_str(),
           [](const Error& error) {
             return String(std::string(error.kind()) + ": " + std::string(error.message()));
           })
      .def((p + "append_backtrace").c_str(),
           [](Error error, const String& line) {
             TVMFFIByteArray text{line.data(), line.size()};
             error.UpdateBacktrace(&text, kTVMFFIBacktraceUpdateModeAppend);
           })
      .def((p + "wrap_error").c_str(), [](const Function& f) {
        try {
          f();
        } catch (const Error& inner) {
          throw Error("RuntimeError", "wrapped", "", inner, std::nullopt);
        }
      });
}

void RegisterTensors() {
  std::string p = kPrefix;
  refl::GlobalDef()
      .def((p + "make_ramp").c_str(), MakeRamp)
      .def((p + "ramp_sum").c_str(),
           [](const Tensor& tensor) {
             double sum = 0;
             for (int64_t i = 0; i < tensor.numel(); ++i) {
               sum += static_cast<const float*>(tensor.data_ptr())[i];
             }
             return sum;
           })
      .def((p + "view_length").c_str(), [](DLTensor* view) { return view->shape[0]; })
      .def((p + "export_dlpack").c_str(),
           [](const Tensor& tensor) { return static_cast<void*>(tensor.ToDLPack()); })
      .def((p + "import_dlpack").c_str(),
           [](void* managed) { return Tensor::FromDLPack(static_cast<DLManagedTensor*>(managed)); })
      .def((p + "export_dlpack_versioned").c_str(),
           [](const Tensor& tensor) { return static_cast<void*>(tensor.ToDLPackVersioned()); })
      .def((p + "import_dlpack_versioned").c_str(), [](void* managed) {
        return Tensor::FromDLPackVersioned(static_cast<DLManagedTensorVersioned*>(managed));
      });
}

#ifndef SKEW_MODULE_DISAGREES
void RegisterModules() {
  std::string p = kPrefix;
  refl::GlobalDef()
      .def((p + "make_module").c_str(), []() { return Module(make_object<ClientModuleObj>()); })
      .def((p + "module_call").c_str(), [](const Module& module, const String& name, int64_t arg) {
        Optional<Function> f = module->GetFunction(name, true);
        return f.has_value() ? f.value()(arg) : Any(nullptr);
      });
}
#endif

TVM_FFI_STATIC_INIT_BLOCK() {
  refl::ObjectDef<NodeObj>()
      .def(refl::init<int64_t, String>())
      .def_rw("value", &NodeObj::value, "the number")
      .def_rw("weight", &NodeObj::weight)
      .def_ro("name", &NodeObj::name)
      .def_rw("payload", &NodeObj::payload)
      .def_ro("children", &NodeObj::children)
      .def_rw("partner", &NodeObj::partner)
      .def_rw("borrowed", &NodeObj::borrowed)
      .def("total", &NodeObj::Total);
  refl::ObjectDef<MachineObj>()
      .def_rw("power", &MachineObj::power)
      .def_rw("part", &MachineObj::part)
      .def("describe", [](const MachineObj* self) { return self->Describe(); });
  refl::ObjectDef<EngineObj>();
  RegisterObjects();
  RegisterOwnership();
  RegisterKeys();
#ifdef SKEW_HAS_MUTATOR
  RegisterMutation();
#endif
  RegisterStrings();
  RegisterSequences();
  RegisterMaps();
  RegisterFunctionsAndErrors();
  RegisterTensors();
#ifndef SKEW_MODULE_DISAGREES
  RegisterModules();
#endif
  MadeAtLoad();
}

}  // namespace SKEW_TAG
}  // namespace skew

namespace {
int64_t ExportedAdd(int64_t a, int64_t b) {
  if (b < 0) TVM_FFI_THROW(ValueError) << "b is negative: " << b;
  return a + b;
}
}  // namespace

TVM_FFI_DLL_EXPORT_TYPED_FUNC(skew_add, ExportedAdd)
