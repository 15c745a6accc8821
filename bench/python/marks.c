/* SPDX-License-Identifier: Apache-2.0 */
/* Lets a benchmark cut callgrind's counts into named parts. Does nothing outside valgrind. */
#include <Python.h>
#include <valgrind/callgrind.h>

static PyObject* Zero(PyObject* module, PyObject* args) {
  (void)module, (void)args;
  CALLGRIND_ZERO_STATS;
  Py_RETURN_NONE;
}

static PyObject* Dump(PyObject* module, PyObject* name) {
  (void)module;
  const char* text = PyUnicode_AsUTF8(name);
  if (text == NULL) return NULL;
  CALLGRIND_DUMP_STATS_AT(text);
  Py_RETURN_NONE;
}

static PyMethodDef functions[] = {{"zero", Zero, METH_NOARGS, "Forget what was counted."},
                                  {"dump", Dump, METH_O, "Write the counts, under a name."},
                                  {NULL, NULL, 0, NULL}};

static struct PyModuleDef definition = {
    PyModuleDef_HEAD_INIT, "bench_marks", NULL, -1, functions, NULL, NULL, NULL, NULL};

PyMODINIT_FUNC PyInit_bench_marks(void) { return PyModule_Create(&definition); }
