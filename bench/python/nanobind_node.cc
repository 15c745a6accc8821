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

#include <cstdint>
#include <string>
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
  nb::bind_vector<Array, nb::rv_policy::automatic_reference>(m, "Array");
  nb::bind_map<Map, nb::rv_policy::automatic_reference>(m, "Map");
  m.def("make_node", [](int64_t value) { return nb::ref<Node>(new Node(value)); });
  m.def("identity", [](nb::ref<Node> node) { return node; });
  m.def("add", [](int64_t a, int64_t b) { return a + b; });
  m.def(
      "add_released", [](int64_t a, int64_t b) { return a + b; },
      nb::call_guard<nb::gil_scoped_release>());
  m.def("call", [](const nb::callable& f, nb::ref<Node> node) { return f(node); });
  m.def("echo_str", [](const std::string& text) { return text; });
}
