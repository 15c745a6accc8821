// SPDX-License-Identifier: Apache-2.0
// The benchmark's library for nanobind, with its intrusive reference counting: there, too, an
// object that goes back to Python finds the Python object it already has.
#include <nanobind/nanobind.h>
// The conversions of intrusive references exist only after the above.
#include <nanobind/intrusive/counter.h>
#include <nanobind/intrusive/ref.h>
#include <nanobind/stl/bind_map.h>
#include <nanobind/stl/bind_vector.h>
#include <nanobind/stl/string.h>
#include <nanobind/intrusive/counter.inl>

#include <chrono>
#include <cstdint>
#include <future>
#include <memory>
#include <string>
#include <thread>
#include <unordered_map>
#include <vector>

namespace nb = nanobind;

class Node : public nb::intrusive_base {
 public:
  explicit Node(int64_t value) : value(value) {}
  int64_t value;
  nb::ref<Node> next;
  std::vector<nb::ref<Node>> children;
};

using Array = std::vector<nb::ref<Node>>;
using Map = std::unordered_map<std::string, nb::ref<Node>>;
NB_MAKE_OPAQUE(Array)
NB_MAKE_OPAQUE(Map)

// Has methods, which Node has not.
class Counter : public nb::intrusive_base {
 public:
  explicit Counter(int64_t value) : value(value) {}
  int64_t value;
  int64_t Get() const { return value; }
  int64_t Plus(int64_t n) const { return value + n; }
  static int64_t Twice(int64_t n) { return 2 * n; }
};

class Pair : public nb::intrusive_base {
 public:
  Pair(int64_t a, int64_t b) : a(a), b(b) {}
  int64_t a;
  int64_t b;
};

static int64_t Fail(int64_t n) {
  if (n != 0) throw nb::value_error("as asked");
  return n;
}

// Holds any Python object.
class Box : public nb::intrusive_base {
 public:
  nb::object value;
};

static Array* MakeMany(int64_t n) {
  auto* nodes = new Array;
  nodes->reserve(n);
  for (int64_t i = 0; i < n; ++i) nodes->push_back(nb::ref<Node>(new Node(i)));
  return nodes;
}

// Whether another thread can drop what `holder` holds while this one keeps the interpreter locked.
static bool DropOnThread(Node& holder) {
  auto done = std::make_shared<std::promise<void>>();
  std::thread([done, next = std::move(holder.next)]() mutable {
    next.reset();
    done->set_value();
  }).detach();
  return done->get_future().wait_for(std::chrono::milliseconds(300)) == std::future_status::ready;
}

NB_MODULE(bench_nanobind, m) {
  nb::intrusive_init(
      [](PyObject* o) noexcept {
        nb::gil_scoped_acquire gil;
        Py_INCREF(o);
      },
      [](PyObject* o) noexcept {
        nb::gil_scoped_acquire gil;
        Py_DECREF(o);
      });
  nb::class_<nb::intrusive_base>(
      m, "IntrusiveBase",
      nb::intrusive_ptr<nb::intrusive_base>(
          [](nb::intrusive_base* o, PyObject* po) noexcept { o->set_self_py(po); }));
  nb::class_<Node, nb::intrusive_base>(m, "Node")
      .def(nb::init<int64_t>())
      .def_rw("value", &Node::value)
      .def_rw("next", &Node::next, nb::arg().none());
  nb::class_<Counter, nb::intrusive_base>(m, "Counter")
      .def(nb::init<int64_t>())
      .def_rw("value", &Counter::value)
      .def("get", &Counter::Get)
      .def("plus", &Counter::Plus)
      .def_static("twice", &Counter::Twice);
  nb::class_<Pair, nb::intrusive_base>(m, "Pair")
      .def(nb::init<int64_t, int64_t>(), nb::arg("a"), nb::arg("b"))
      .def_rw("a", &Pair::a)
      .def_rw("b", &Pair::b);
  m.def("fail", &Fail);
  nb::class_<Box, nb::intrusive_base>(m, "Box")
      .def(nb::init<>())
      .def_rw("value", &Box::value, nb::arg().none());
  nb::bind_vector<Array, nb::rv_policy::automatic_reference>(m, "Array");
  nb::bind_map<Map, nb::rv_policy::automatic_reference>(m, "Map");
  m.def("make_many", &MakeMany);
  m.def("keep", [](const Array& nodes) { new Array(nodes); });
  m.def("drop_on_thread", &DropOnThread);
  m.def("make_node", [](int64_t value) { return nb::ref<Node>(new Node(value)); });
  m.def("identity", [](nb::ref<Node> node) { return node; });
  m.def("add", [](int64_t a, int64_t b) { return a + b; });
  m.def(
      "add_released", [](int64_t a, int64_t b) { return a + b; },
      nb::call_guard<nb::gil_scoped_release>());
  m.def("call", [](const nb::callable& f, nb::ref<Node> node) { return f(node); });
  m.def("echo_str", [](const std::string& text) { return text; });
}
