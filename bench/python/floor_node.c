/* SPDX-License-Identifier: Apache-2.0 */
/* The floor: what CPython itself charges. Plain C objects with slots, written by hand for the
 * shortest way through the interpreter; no C++ object, no conversion that could be left out. */
#define PY_SSIZE_T_CLEAN
#include <Python.h>
#include <stddef.h>
#include <structmember.h>

/* ---- Node: an int, an object, children ------------------------------------------------------- */

typedef struct {
  PyObject_HEAD long long value;
  PyObject* next;
  PyObject* children;
} Node;

static PyTypeObject NodeType;

static PyObject* NodeVectorcall(PyObject* type, PyObject* const* args, size_t nargsf,
                                PyObject* kwnames) {
  if (PyVectorcall_NARGS(nargsf) != 1 || kwnames != NULL) {
    PyErr_SetString(PyExc_TypeError, "Node(value)");
    return NULL;
  }
  long long value = PyLong_AsLongLong(args[0]);
  if (value == -1 && PyErr_Occurred()) return NULL;
  Node* self = PyObject_GC_New(Node, (PyTypeObject*)type);
  if (self == NULL) return NULL;
  self->value = value;
  self->next = Py_NewRef(Py_None);
  self->children = NULL;
  PyObject_GC_Track(self);
  return (PyObject*)self;
}

static int NodeTraverse(PyObject* self, visitproc visit, void* arg) {
  Py_VISIT(((Node*)self)->next);
  Py_VISIT(((Node*)self)->children);
  return 0;
}

static int NodeClear(PyObject* self) {
  Py_CLEAR(((Node*)self)->next);
  Py_CLEAR(((Node*)self)->children);
  return 0;
}

static void NodeDealloc(PyObject* self) {
  PyObject_GC_UnTrack(self);
  NodeClear(self);
  PyObject_GC_Del(self);
}

static PyMemberDef node_members[] = {{"value", T_LONGLONG, offsetof(Node, value), 0, NULL},
                                     {"next", T_OBJECT_EX, offsetof(Node, next), 0, NULL},
                                     {"children", T_OBJECT_EX, offsetof(Node, children), 0, NULL},
                                     {NULL, 0, 0, 0, NULL}};

static PyTypeObject NodeType = {
    PyVarObject_HEAD_INIT(NULL, 0).tp_name = "bench_floor.Node",
    .tp_basicsize = sizeof(Node),
    .tp_flags = Py_TPFLAGS_DEFAULT | Py_TPFLAGS_HAVE_GC,
    .tp_dealloc = NodeDealloc,
    .tp_traverse = NodeTraverse,
    .tp_clear = NodeClear,
    .tp_members = node_members,
    .tp_vectorcall = NodeVectorcall,
};

/* ---- Counter: an int with methods; Pair: two ints ---------------------------------------------
 */

typedef struct {
  PyObject_HEAD long long a;
  long long b;
} Ints;

static PyObject* CounterVectorcall(PyObject* type, PyObject* const* args, size_t nargsf,
                                   PyObject* kwnames) {
  if (PyVectorcall_NARGS(nargsf) != 1 || kwnames != NULL) {
    PyErr_SetString(PyExc_TypeError, "Counter(value)");
    return NULL;
  }
  long long value = PyLong_AsLongLong(args[0]);
  if (value == -1 && PyErr_Occurred()) return NULL;
  Ints* self = PyObject_New(Ints, (PyTypeObject*)type);
  if (self != NULL) self->a = value;
  return (PyObject*)self;
}

static PyObject* PairVectorcall(PyObject* type, PyObject* const* args, size_t nargsf,
                                PyObject* kwnames) {
  Py_ssize_t nargs = PyVectorcall_NARGS(nargsf);
  Py_ssize_t given = kwnames != NULL ? PyTuple_GET_SIZE(kwnames) : 0;
  long long values[2];
  int seen = 0;
  for (Py_ssize_t i = 0; i < nargs + given && i < 2; ++i) {
    int place = (int)i;
    if (i >= nargs) {
      PyObject* name = PyTuple_GET_ITEM(kwnames, i - nargs);
      place = PyUnicode_CompareWithASCIIString(name, "b") == 0;
    }
    values[place] = PyLong_AsLongLong(args[i]);
    if (values[place] == -1 && PyErr_Occurred()) return NULL;
    seen |= 1 << place;
  }
  if (seen != 3 || nargs + given != 2) {
    PyErr_SetString(PyExc_TypeError, "Pair(a, b)");
    return NULL;
  }
  Ints* self = PyObject_New(Ints, (PyTypeObject*)type);
  if (self == NULL) return NULL;
  self->a = values[0];
  self->b = values[1];
  return (PyObject*)self;
}

static PyObject* CounterGet(PyObject* self, PyObject* none) {
  (void)none;
  return PyLong_FromLongLong(((Ints*)self)->a);
}

static PyObject* CounterPlus(PyObject* self, PyObject* n) {
  long long value = PyLong_AsLongLong(n);
  if (value == -1 && PyErr_Occurred()) return NULL;
  return PyLong_FromLongLong(((Ints*)self)->a + value);
}

static PyObject* CounterTwice(PyObject* none, PyObject* n) {
  (void)none;
  long long value = PyLong_AsLongLong(n);
  if (value == -1 && PyErr_Occurred()) return NULL;
  return PyLong_FromLongLong(2 * value);
}

static PyMethodDef counter_methods[] = {{"get", CounterGet, METH_NOARGS, NULL},
                                        {"plus", CounterPlus, METH_O, NULL},
                                        {"twice", CounterTwice, METH_O | METH_STATIC, NULL},
                                        {NULL, NULL, 0, NULL}};
static PyMemberDef counter_members[] = {{"value", T_LONGLONG, offsetof(Ints, a), 0, NULL},
                                        {NULL, 0, 0, 0, NULL}};
static PyMemberDef pair_members[] = {{"a", T_LONGLONG, offsetof(Ints, a), 0, NULL},
                                     {"b", T_LONGLONG, offsetof(Ints, b), 0, NULL},
                                     {NULL, 0, 0, 0, NULL}};

static PyTypeObject CounterType = {
    PyVarObject_HEAD_INIT(NULL, 0).tp_name = "bench_floor.Counter",
    .tp_basicsize = sizeof(Ints),
    .tp_flags = Py_TPFLAGS_DEFAULT,
    .tp_methods = counter_methods,
    .tp_members = counter_members,
    .tp_vectorcall = CounterVectorcall,
};
static PyTypeObject PairType = {
    PyVarObject_HEAD_INIT(NULL, 0).tp_name = "bench_floor.Pair",
    .tp_basicsize = sizeof(Ints),
    .tp_flags = Py_TPFLAGS_DEFAULT,
    .tp_members = pair_members,
    .tp_vectorcall = PairVectorcall,
};

static PyObject* Fail(PyObject* module, PyObject* n) {
  (void)module;
  long long value = PyLong_AsLongLong(n);
  if (value != 0) {
    if (!PyErr_Occurred()) PyErr_SetString(PyExc_ValueError, "as asked");
    return NULL;
  }
  return PyLong_FromLongLong(value);
}

/* ---- Array and Map -----------------------------------------------------------------------------
 */

typedef struct {
  PyObject_HEAD PyObject* items; /* a tuple, or a dict for Map */
} Container;

typedef struct {
  PyObject_HEAD PyObject* items;
  Py_ssize_t at;
} ArrayIter;

static void ContainerDealloc(PyObject* self) {
  Py_XDECREF(((Container*)self)->items);
  Py_TYPE(self)->tp_free(self);
}

static Py_ssize_t ArrayLength(PyObject* self) {
  return PyTuple_GET_SIZE(((Container*)self)->items);
}

static PyObject* ArraySubscript(PyObject* self, PyObject* key) {
  Py_ssize_t i = PyLong_AsSsize_t(key);
  if (i == -1 && PyErr_Occurred()) return NULL;
  if (i < 0 || i >= ArrayLength(self)) {
    PyErr_SetString(PyExc_IndexError, "index out of range");
    return NULL;
  }
  return Py_NewRef(PyTuple_GET_ITEM(((Container*)self)->items, i));
}

static PyMappingMethods array_mapping = {.mp_length = ArrayLength, .mp_subscript = ArraySubscript};

static PyObject* ArrayIterNext(PyObject* self) {
  ArrayIter* it = (ArrayIter*)self;
  if (it->at >= PyTuple_GET_SIZE(it->items)) return NULL;
  return Py_NewRef(PyTuple_GET_ITEM(it->items, it->at++));
}

static PyTypeObject ArrayIterType = {
    PyVarObject_HEAD_INIT(NULL, 0).tp_name = "bench_floor.ArrayIter",
    .tp_basicsize = sizeof(ArrayIter),
    .tp_flags = Py_TPFLAGS_DEFAULT,
    .tp_dealloc = ContainerDealloc,
    .tp_iter = PyObject_SelfIter,
    .tp_iternext = ArrayIterNext,
};

static PyObject* ArrayIterate(PyObject* self) {
  ArrayIter* it = PyObject_New(ArrayIter, &ArrayIterType);
  if (it == NULL) return NULL;
  it->items = Py_NewRef(((Container*)self)->items);
  it->at = 0;
  return (PyObject*)it;
}

static PyTypeObject ArrayType = {
    PyVarObject_HEAD_INIT(NULL, 0).tp_name = "bench_floor.Array",
    .tp_basicsize = sizeof(Container),
    .tp_flags = Py_TPFLAGS_DEFAULT,
    .tp_dealloc = ContainerDealloc,
    .tp_as_mapping = &array_mapping,
    .tp_iter = ArrayIterate,
};

static PyObject* MapSubscript(PyObject* self, PyObject* key) {
  PyObject* value = PyDict_GetItemWithError(((Container*)self)->items, key);
  if (value != NULL) return Py_NewRef(value);
  if (!PyErr_Occurred()) PyErr_SetObject(PyExc_KeyError, key);
  return NULL;
}

static PyMappingMethods map_mapping = {.mp_subscript = MapSubscript};

static PyTypeObject MapType = {
    PyVarObject_HEAD_INIT(NULL, 0).tp_name = "bench_floor.Map",
    .tp_basicsize = sizeof(Container),
    .tp_flags = Py_TPFLAGS_DEFAULT,
    .tp_dealloc = ContainerDealloc,
    .tp_as_mapping = &map_mapping,
};

static PyObject* MakeContainer(PyTypeObject* type, PyObject* items) {
  if (items == NULL) return NULL;
  Container* self = PyObject_New(Container, type);
  if (self == NULL) {
    Py_DECREF(items);
    return NULL;
  }
  self->items = items;
  return (PyObject*)self;
}

/* ---- functions ---------------------------------------------------------------------------------
 */

static PyObject* MakeArray(PyObject* module, PyObject* nodes) {
  (void)module;
  return MakeContainer(&ArrayType, PySequence_Tuple(nodes));
}

static PyObject* MakeMap(PyObject* module, PyObject* nodes) {
  (void)module;
  return MakeContainer(&MapType, PyDict_Copy(nodes));
}

static PyObject* MakeNode(PyObject* module, PyObject* value) {
  (void)module;
  return NodeVectorcall((PyObject*)&NodeType, &value, 1, NULL);
}

static PyObject* Identity(PyObject* module, PyObject* arg) {
  (void)module;
  if (!Py_IS_TYPE(arg, &NodeType)) {
    PyErr_SetString(PyExc_TypeError, "expected a Node");
    return NULL;
  }
  return Py_NewRef(arg);
}

static int TwoInts(PyObject* const* args, Py_ssize_t nargs, long long* a, long long* b) {
  if (nargs != 2) {
    PyErr_SetString(PyExc_TypeError, "expected two ints");
    return -1;
  }
  *a = PyLong_AsLongLong(args[0]);
  if (*a == -1 && PyErr_Occurred()) return -1;
  *b = PyLong_AsLongLong(args[1]);
  return *b == -1 && PyErr_Occurred() ? -1 : 0;
}

static PyObject* Add(PyObject* module, PyObject* const* args, Py_ssize_t nargs) {
  (void)module;
  long long a, b;
  if (TwoInts(args, nargs, &a, &b) < 0) return NULL;
  return PyLong_FromLongLong(a + b);
}

static PyObject* AddReleased(PyObject* module, PyObject* const* args, Py_ssize_t nargs) {
  (void)module;
  long long a, b, sum;
  if (TwoInts(args, nargs, &a, &b) < 0) return NULL;
  Py_BEGIN_ALLOW_THREADS;
  sum = a + b;
  Py_END_ALLOW_THREADS;
  return PyLong_FromLongLong(sum);
}

static PyObject* Call(PyObject* module, PyObject* const* args, Py_ssize_t nargs) {
  (void)module;
  if (nargs != 2) {
    PyErr_SetString(PyExc_TypeError, "expected a callable and its argument");
    return NULL;
  }
  return PyObject_CallOneArg(args[0], args[1]);
}

static PyObject* EchoStr(PyObject* module, PyObject* text) {
  (void)module;
  Py_ssize_t size;
  const char* data = PyUnicode_AsUTF8AndSize(text, &size);
  return data != NULL ? PyUnicode_DecodeUTF8(data, size, NULL) : NULL;
}

static PyMethodDef functions[] = {
    {"make_array", MakeArray, METH_O, NULL},
    {"make_map", MakeMap, METH_O, NULL},
    {"make_node", MakeNode, METH_O, NULL},
    {"identity", Identity, METH_O, NULL},
    {"add", (PyCFunction)(void (*)(void))Add, METH_FASTCALL, NULL},
    {"add_released", (PyCFunction)(void (*)(void))AddReleased, METH_FASTCALL, NULL},
    {"call", (PyCFunction)(void (*)(void))Call, METH_FASTCALL, NULL},
    {"echo_str", EchoStr, METH_O, NULL},
    {"fail", Fail, METH_O, NULL},
    {NULL, NULL, 0, NULL}};

static struct PyModuleDef definition = {
    PyModuleDef_HEAD_INIT, "bench_floor", NULL, -1, functions, NULL, NULL, NULL, NULL};

PyMODINIT_FUNC PyInit_bench_floor(void) {
  PyObject* module = PyModule_Create(&definition);
  if (module == NULL) return NULL;
#ifdef Py_GIL_DISABLED
  PyUnstable_Module_SetGIL(module, Py_MOD_GIL_NOT_USED);
#endif
  if (PyModule_AddType(module, &NodeType) < 0 || PyModule_AddType(module, &CounterType) < 0 ||
      PyModule_AddType(module, &PairType) < 0 || PyType_Ready(&ArrayType) < 0 ||
      PyType_Ready(&ArrayIterType) < 0 || PyType_Ready(&MapType) < 0) {
    Py_DECREF(module);
    return NULL;
  }
  return module;
}
