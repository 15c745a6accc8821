# SPDX-License-Identifier: Apache-2.0
# distutils: language = c++
# cython: language_level=3, freethreading_compatible=True
"""The benchmark's library for Cython: the usual wrapper class around a std::shared_ptr."""

from cython.operator cimport dereference
from libc.stdint cimport int64_t
from libcpp cimport bool as cpp_bool
from libcpp.memory cimport make_shared, shared_ptr
from libcpp.string cimport string
from libcpp.unordered_map cimport unordered_map
from libcpp.utility cimport move
from libcpp.vector cimport vector


cdef extern from "shared_node.h" nogil:
    cdef cppclass CNode "Node":
        int64_t value
        shared_ptr[CNode] next
    ctypedef vector[shared_ptr[CNode]] CArray "Array"
    ctypedef unordered_map[string, shared_ptr[CNode]] CMap "Map"
    shared_ptr[CNode] MakeNode(int64_t)
    CArray MakeMany(int64_t)
    void Keep(const CArray&)
    cpp_bool DropOnThread(CNode&)
    shared_ptr[CNode] Identity(shared_ptr[CNode])
    int64_t Add(int64_t, int64_t)
    int64_t Fail(int64_t) except +
    cdef cppclass CCounter "Counter":
        CCounter(int64_t)
        int64_t value
        int64_t Get()
        int64_t Plus(int64_t)
    int64_t Twice "Counter::Twice"(int64_t)
    cdef cppclass CPair "Pair":
        CPair(int64_t, int64_t)
        int64_t a
        int64_t b
    string EchoStr(const string&)


cdef class Node:
    cdef shared_ptr[CNode] held

    def __cinit__(self, value=None):
        if value is not None:
            self.held = MakeNode(value)

    @property
    def value(self):
        return self.held.get().value

    @value.setter
    def value(self, int64_t value):
        self.held.get().value = value

    @property
    def next(self):
        return wrap(self.held.get().next)

    @next.setter
    def next(self, Node node):
        if node is None:
            self.held.get().next.reset()
        else:
            self.held.get().next = node.held


cdef class Counter:
    cdef shared_ptr[CCounter] held

    def __cinit__(self, int64_t value):
        self.held = make_shared[CCounter](value)

    @property
    def value(self):
        return self.held.get().value

    @value.setter
    def value(self, int64_t value):
        self.held.get().value = value

    def get(self):
        return self.held.get().Get()

    def plus(self, int64_t n):
        return self.held.get().Plus(n)

    @staticmethod
    def twice(int64_t n):
        return Twice(n)


cdef class Pair:
    cdef shared_ptr[CPair] held

    def __cinit__(self, int64_t a, int64_t b):
        self.held = make_shared[CPair](a, b)

    @property
    def a(self):
        return self.held.get().a

    @property
    def b(self):
        return self.held.get().b


def fail(int64_t n):
    return Fail(n)


cdef object wrap(shared_ptr[CNode] held):
    if not held:
        return None
    cdef Node node = Node.__new__(Node)
    node.held = move(held)
    return node


cdef class Box:
    """Holds any Python object."""

    cdef public object value


cdef class Array:
    cdef CArray nodes

    def __init__(self, nodes=()):
        for node in nodes:
            self.nodes.push_back((<Node?>node).held)

    def __len__(self):
        return self.nodes.size()

    def __getitem__(self, Py_ssize_t index):
        if index < 0 or index >= <Py_ssize_t>self.nodes.size():
            raise IndexError(index)
        return wrap(self.nodes[index])

    def __iter__(self):
        cdef size_t i
        for i in range(self.nodes.size()):
            yield wrap(self.nodes[i])


cdef class Map:
    cdef CMap nodes

    def __init__(self, nodes):
        for key, node in nodes.items():
            self.nodes[key.encode()] = (<Node?>node).held

    def __getitem__(self, str key):
        cdef unordered_map[string, shared_ptr[CNode]].iterator found = self.nodes.find(key.encode())
        if found == self.nodes.end():
            raise KeyError(key)
        return wrap(dereference(found).second)


def make_node(int64_t value):
    return wrap(MakeNode(value))


def make_many(int64_t n):
    cdef Array nodes = Array.__new__(Array)
    nodes.nodes = MakeMany(n)
    return nodes


def keep(Array nodes not None):
    Keep(nodes.nodes)


def drop_on_thread(Node holder not None):
    return DropOnThread(holder.held.get()[0])


def identity(Node node not None):
    return wrap(Identity(node.held))


def add(int64_t a, int64_t b):
    return Add(a, b)


def add_released(int64_t a, int64_t b):
    cdef int64_t result
    with nogil:
        result = Add(a, b)
    return result


def call(function, Node node not None):
    return function(wrap(node.held))


def echo_str(str text not None):
    return EchoStr(text.encode()).decode()
