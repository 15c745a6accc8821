// SPDX-License-Identifier: Apache-2.0
#include "python/base/entry.h"

#include <cxxabi.h>

#include <exception>
#include <new>

namespace tether_py {

void RaiseCaught() {
  try {
    throw;
  } catch (const std::bad_alloc&) {
    PyErr_NoMemory();
  } catch (const std::exception& error) {
    PyErr_SetString(PyExc_RuntimeError, error.what());
#ifdef __GLIBCXX__
  } catch (abi::__forced_unwind&) {  // a thread that ends itself is not an exception
    throw;
#endif
  } catch (...) {
    PyErr_SetString(PyExc_RuntimeError, "unknown C++ exception");
  }
}

}  // namespace tether_py
