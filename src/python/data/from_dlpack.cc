// SPDX-License-Identifier: Apache-2.0
// The function from_dlpack: which way a tensor of another library takes.
//
// Shared state: from_dlpack_keywords: set at import, constant afterwards.
#include "python/data/from_dlpack.h"

#include "python/base/entry.h"
#include "python/base/python_api.h"
#include "python/data/capsules.h"
#include "python/data/exchange_api.h"
#include "python/data/numpy.h"
#include "python/data/torch.h"
#include "python/data/torch_signs.h"
#include "python/wrap/wrapper.h"

namespace tether_py {

namespace {

// NULL with an error set.
TVMFFIObject* ImportAnything(PyObject* obj, const ImportOptions& options) {
  if (PyCapsule_CheckExact(obj)) {
    return ImportCapsule(obj, options, PyExc_TypeError,
                         "Expect from_dlpack to take either a compatible tensor or PyCapsule");
  }
  if (Py_TYPE(obj) == FindNumpyArrayType()) return ImportArray(obj, options);
  if (!CheckNoLazySigns(obj) || !PrepareTorch(obj)) return nullptr;
  PyObject* attribute = nullptr;
  if (GetOptionalAttr(obj, exchange_api_name, &attribute) != 0) {
    Ref owner = Ref::Steal(attribute);
    const DLPackExchangeAPI* api = owner ? ParseExchangeAPI(attribute) : nullptr;
    TVMFFIObject* h = api != nullptr ? ImportByAPI(obj, api, options) : nullptr;
    if (h != nullptr || !PyErr_ExceptionMatches(PyExc_BufferError)) return h;
  }
  PyErr_Clear();
  bool has_method = _PyType_Lookup(Py_TYPE(obj), dlpack_name) != nullptr;
  if (has_method || PyObject_HasAttr(obj, dlpack_name) != 0) return ImportFromMethod(obj, options);
  PyErr_Format(PyExc_TypeError,
               "Expect from_dlpack to take either a compatible tensor or PyCapsule, got %s",
               Py_TYPE(obj)->tp_name);
  return nullptr;
}

PyObject* from_dlpack_keywords[3];  // ext_tensor, require_alignment, require_contiguous

PyObject* FromDLPack(PyObject*, PyObject* const* args, Py_ssize_t nargs, PyObject* kwnames) {
  PyObject* given[3] = {nullptr, nullptr, Py_False};
  if (nargs > 1) {
    return PyErr_Format(PyExc_TypeError,
                        "from_dlpack() takes 1 positional argument but %zd were given", nargs);
  }
  if (nargs == 1) given[0] = args[0];
  if (!ReadKeywords("from_dlpack", args + nargs, kwnames, from_dlpack_keywords, 3,
                    static_cast<size_t>(nargs), given)) {
    return nullptr;
  }
  if (given[0] == nullptr) {
    return PyErr_Format(PyExc_TypeError, "from_dlpack() missing required argument 'ext_tensor'");
  }
  ImportOptions options;
  int contiguous = PyObject_IsTrue(given[2]);
  if (contiguous < 0) return nullptr;
  options.require_contiguous = contiguous != 0;
  if (given[1] != nullptr) {
    long long value;
    if (!IntegerInRange(given[1], 0, INT32_MAX, "require_alignment", &value)) return nullptr;
    options.require_alignment = static_cast<int32_t>(value);
  }
  TVMFFIObject* h = ImportAnything(given[0], options);
  return h != nullptr ? WrapOwned(h) : nullptr;
}

PyMethodDef dlpack_functions[] = {
    {"from_dlpack", EntryOfAnyKind<FromDLPack>(), METH_FASTCALL | METH_KEYWORDS,
     "from_dlpack($module, ext_tensor, *, require_alignment=0, require_contiguous=False)\n--\n\n"
     "Make a Tensor that shares the memory of another library's tensor or of a DLPack capsule.\n\n"
     ">>> import numpy, tvm_ffi\n"
     ">>> a = numpy.arange(3)\n"
     ">>> t = tvm_ffi.from_dlpack(a)\n"
     ">>> a[0] = 7\n"
     ">>> numpy.from_dlpack(t).tolist()\n"
     "[7, 1, 2]\n"},
    {nullptr, nullptr, 0, nullptr}};

}  // namespace

int InitFromDLPack(PyObject* module) {
  const char* const keywords[] = {"ext_tensor", "require_alignment", "require_contiguous"};
  for (size_t i = 0; i < 3; ++i) {
    from_dlpack_keywords[i] = PyUnicode_InternFromString(keywords[i]);
    if (from_dlpack_keywords[i] == nullptr) return -1;
  }
  return PyModule_AddFunctions(module, dlpack_functions);
}

}  // namespace tether_py
