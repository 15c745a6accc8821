// SPDX-License-Identifier: Apache-2.0
// The benchmark's library for pybind11, objects held by std::shared_ptr.
#include <pybind11/pybind11.h>
#include <pybind11/stl_bind.h>

#include "shared_node.h"

namespace py = pybind11;

PYBIND11_MAKE_OPAQUE(Array)
PYBIND11_MAKE_OPAQUE(Map)

// Holds any Python object.
struct Box {
  py::object value = py::none();
};

PYBIND11_MODULE(bench_pybind11, m, py::mod_gil_not_used()) {
  py::class_<Node, std::shared_ptr<Node>>(m, "Node")
      .def(py::init<int64_t>())
      .def_readwrite("value", &Node::value)
      .def_readwrite("next", &Node::next);
  py::class_<Counter, std::shared_ptr<Counter>>(m, "Counter")
      .def(py::init<int64_t>())
      .def_readwrite("value", &Counter::value)
      .def("get", &Counter::Get)
      .def("plus", &Counter::Plus)
      .def_static("twice", &Counter::Twice);
  py::class_<Pair, std::shared_ptr<Pair>>(m, "Pair")
      .def(py::init<int64_t, int64_t>(), py::arg("a"), py::arg("b"))
      .def_readwrite("a", &Pair::a)
      .def_readwrite("b", &Pair::b);
  m.def("fail", &Fail);
  py::class_<Box, std::shared_ptr<Box>>(m, "Box")
      .def(py::init<>())
      .def_readwrite("value", &Box::value);
  py::bind_vector<Array>(m, "Array");
  py::bind_map<Map>(m, "Map");
  m.def("make_node", &MakeNode);
  m.def("make_many", &MakeMany);
  m.def("keep", &Keep);
  m.def("drop_on_thread", &DropOnThread);
  m.def("identity", &Identity);
  m.def("add", &Add);
  m.def("add_released", &Add, py::call_guard<py::gil_scoped_release>());
  m.def("call", [](const py::function& f, const std::shared_ptr<Node>& node) { return f(node); });
  m.def("echo_str", &EchoStr);
}
