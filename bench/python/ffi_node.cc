// SPDX-License-Identifier: Apache-2.0
// The benchmark's library for the TVM FFI interface: compiled once against our headers and once
// against those of the reference release.
#include <tvm/ffi/big_int.h>
#include <tvm/ffi/tvm_ffi.h>

#include <chrono>
#include <future>
#include <memory>
#include <thread>
#include <utility>
#include <vector>

namespace {

namespace ffi = tvm::ffi;
namespace refl = tvm::ffi::reflection;

class NodeObj : public ffi::Object {
 public:
  int64_t value = 0;
  ffi::ObjectRef next;
  // None until there are some: an empty Array would be a second allocation, which no other peer
  // has.
  ffi::Optional<ffi::Array<ffi::Any>> children;

  NodeObj() = default;
  explicit NodeObj(int64_t value) : value(value) {}

  static constexpr bool _type_mutable = true;
  static constexpr TVMFFISEqHashKind _type_s_eq_hash_kind = kTVMFFISEqHashKindTreeNode;
  TVM_FFI_DECLARE_OBJECT_INFO_FINAL("bench.Node", NodeObj, ffi::Object);
};

class Node : public ffi::ObjectRef {
 public:
  explicit Node(int64_t value) { data_ = ffi::make_object<NodeObj>(value); }
  TVM_FFI_DEFINE_OBJECT_REF_METHODS_NULLABLE(Node, ffi::ObjectRef, NodeObj);
};

// Has methods, which Node has not: the two kinds of class are measured apart.
class CounterObj : public ffi::Object {
 public:
  int64_t value = 0;

  CounterObj() = default;
  explicit CounterObj(int64_t value) : value(value) {}
  int64_t Get() const { return value; }
  int64_t Plus(int64_t n) const { return value + n; }
  static int64_t Twice(int64_t n) { return 2 * n; }

  static constexpr bool _type_mutable = true;
  TVM_FFI_DECLARE_OBJECT_INFO_FINAL("bench.Counter", CounterObj, ffi::Object);
};

// Its constructor takes its fields, by position or by name.
class PairObj : public ffi::Object {
 public:
  int64_t a = 0;
  int64_t b = 0;

  static constexpr bool _type_mutable = true;
  TVM_FFI_DECLARE_OBJECT_INFO_FINAL("bench.Pair", PairObj, ffi::Object);
};

// Holds any value, a Python callback too.
class BoxObj : public ffi::Object {
 public:
  ffi::Any value;

  static constexpr bool _type_mutable = true;
  TVM_FFI_DECLARE_OBJECT_INFO_FINAL("bench.Box", BoxObj, ffi::Object);
};

ffi::Array<ffi::Any> MakeMany(int64_t n) {
  ffi::Array<ffi::Any> nodes;
  nodes.reserve(n);
  for (int64_t i = 0; i < n; ++i) nodes.push_back(Node(i));
  return nodes;
}

// Kept by C++ until the process ends, and not even destroyed then.
void Keep(ffi::ObjectRef object) {
  static auto* kept = new std::vector<ffi::ObjectRef>;
  kept->push_back(std::move(object));
}

// Whether another thread can drop what `holder` holds while this one keeps the interpreter locked.
bool DropOnThread(const Node& holder) {
  auto done = std::make_shared<std::promise<void>>();
  std::thread([done, next = std::move(holder->next)]() mutable {
    next = ffi::ObjectRef();
    done->set_value();
  }).detach();
  return done->get_future().wait_for(std::chrono::milliseconds(300)) == std::future_status::ready;
}

TVM_FFI_STATIC_INIT_BLOCK() {
  refl::ObjectDef<BoxObj>().def(refl::init<>()).def_rw("value", &BoxObj::value);
  refl::ObjectDef<NodeObj>()
      .def(refl::init<int64_t>())
      .def_rw("value", &NodeObj::value)
      .def_rw("next", &NodeObj::next)
      .def_rw("children", &NodeObj::children);
  refl::Metadata keeps_gil{{"release_gil", false}};
  refl::ObjectDef<CounterObj>()
      .def(refl::init<int64_t>())
      .def_rw("value", &CounterObj::value)
      .def("get", &CounterObj::Get, keeps_gil)
      .def("plus", &CounterObj::Plus, keeps_gil)
      .def_static("twice", &CounterObj::Twice, keeps_gil);
  refl::ObjectDef<PairObj>().def_rw("a", &PairObj::a).def_rw("b", &PairObj::b);
  refl::GlobalDef()
      .def("bench.fail",
           [](int64_t n) {
             if (n != 0) TVM_FFI_THROW(ValueError) << "as asked";
             return n;
           })
      .def("bench.make_many", MakeMany)
      .def("bench.keep", Keep)
      .def("bench.drop_on_thread", DropOnThread)
      .def("bench.make_node", [](int64_t value) { return Node(value); })
      .def("bench.identity", [](Node node) { return node; })
      .def("bench.add", [](int64_t a, int64_t b) { return a + b; })
      .def("bench.add_released", [](int64_t a, int64_t b) { return a + b; })
      .def("bench.call", [](const ffi::Function& f, const Node& node) { return f(node); })
      .def("bench.echo_str", [](ffi::String text) { return text; })
      .def("bench.add_to_int", [](int64_t i, ffi::Any) { return i + 1; })
      .def("bench.take", [](const ffi::Any&) {})
      .def("bench.big_sums",
           [](const ffi::BigInt& a, const ffi::BigInt& b, int64_t rounds) {
             for (int64_t i = 0; i < rounds; ++i) ffi::BigInt sum = a + b;
           })
      .def("bench.big_products", [](const ffi::BigInt& a, const ffi::BigInt& b, int64_t rounds) {
        for (int64_t i = 0; i < rounds; ++i) ffi::BigInt product = a * b;
      });
}

}  // namespace
