// SPDX-License-Identifier: Apache-2.0
// What this layer asks of the layers above it. module.cc, which knows all of them, fills it in,
// each member by its name.
#ifndef TETHER_PYTHON_WRAP_UPPER_LAYERS_H_
#define TETHER_PYTHON_WRAP_UPPER_LAYERS_H_

#include "python/wrap/class_records.h"
#include "python/wrap/wrapper.h"

namespace tether_py {

struct UpperLayers {
  // call/: a new wrapper of a function is ready to be called.
  void (*init_function)(FunctionWrapper* w);
  // call/: the method __init_handle_by_constructor__.
  PyObject* (*init_handle_by_constructor)(PyObject* self, PyObject* const* args, Py_ssize_t nargs);
  // call/: a callback that nobody has any more is kept for the next one; false if it is not.
  bool (*recycle_callback)(TVMFFIObject* function);
  // data/: the same for a tensor over the memory of a Python object.
  bool (*recycle_tensor)(TVMFFIObject* tensor);
  // call/, data/: what these two have kept is dropped.
  void (*drop_spares)();
  // call/: the Python callable inside a function of this frontend, borrowed, or NULL.
  PyObject* (*callable_of)(TVMFFIObject* function);
  // call/: the Python object that a function made from a symbol keeps, borrowed, or NULL.
  PyObject* (*kept_by)(TVMFFIObject* function);
  // data/: the Python object whose memory a tensor shows and keeps, borrowed, or NULL.
  PyObject* (*memory_owner_of)(TVMFFIObject* tensor);
  // data/: attributes of a new class of wrappers are looked up among its fields.
  void (*install_field_access)(PyTypeObject* cls, bool is_python_defined);
  // convert/: the exception that a raised error carries through C++, borrowed, or NULL.
  PyObject* (*exception_in)(TVMFFIObject* error);
  // convert/: at a collection, exceptions that C++ alone holds need no frames.
  void (*forget_unused_frames)();
  // kinds/: the first setter of every class (class_records.h), which finds the right one.
  Setter find_setter;
  // data/: fields forget a class that is dead or dying.
  void (*forget_class)(PyTypeObject* cls);

  // A member that is added does not compile until it is checked here too.
  constexpr bool IsComplete() const {
    auto [a, b, c, d, e, f, g, h, i, j, k, l, m] = *this;
    return a && b && c && d && e && f && g && h && i && j && k && l && m;
  }
};
extern const UpperLayers upper_layers;

}  // namespace tether_py
#endif  // TETHER_PYTHON_WRAP_UPPER_LAYERS_H_
