// SPDX-License-Identifier: Apache-2.0
// The functions of functions.cu without an FFI: written by hand for CPython and torch, which no
// binding can beat, and through pybind11, as extensions of torch are.
#include <c10/cuda/CUDAStream.h>
#include <torch/extension.h>

// launch.cu
void LaunchAdd(const float* a, const float* b, float* out, cudaStream_t stream);

namespace {

// ---- by hand

bool CheckThreeTensors(PyObject* const* args, Py_ssize_t nargs) {
  if (nargs == 3 && THPVariable_Check(args[0]) && THPVariable_Check(args[1]) &&
      THPVariable_Check(args[2])) {
    return true;
  }
  PyErr_SetString(PyExc_TypeError, "expected three tensors");
  return false;
}

float* DataOf(PyObject* tensor) {
  return static_cast<float*>(THPVariable_Unpack(tensor).mutable_data_ptr());
}

PyObject* Nothing(PyObject*, PyObject* const* args, Py_ssize_t nargs) {
  if (!CheckThreeTensors(args, nargs)) return nullptr;
  for (Py_ssize_t i = 0; i < nargs; ++i) {
    float* volatile data = DataOf(args[i]);
    (void)data;
  }
  Py_RETURN_NONE;
}

PyObject* Launch(PyObject*, PyObject* const* args, Py_ssize_t nargs) {
  if (!CheckThreeTensors(args, nargs)) return nullptr;
  c10::DeviceIndex device = THPVariable_Unpack(args[2]).get_device();
  LaunchAdd(DataOf(args[0]), DataOf(args[1]), DataOf(args[2]),
            c10::cuda::getCurrentCUDAStream(device));
  Py_RETURN_NONE;
}

template <auto F>
PyCFunction AsCFunction() {
  return reinterpret_cast<PyCFunction>(reinterpret_cast<void (*)()>(F));
}

PyMethodDef by_hand[] = {{"nothing_by_hand", AsCFunction<Nothing>(), METH_FASTCALL, nullptr},
                         {"launch_by_hand", AsCFunction<Launch>(), METH_FASTCALL, nullptr},
                         {nullptr, nullptr, 0, nullptr}};

// ---- pybind11

void NothingOfTensors(const torch::Tensor&, const torch::Tensor&, const torch::Tensor&) {}

void LaunchOfTensors(const torch::Tensor& a, const torch::Tensor& b, const torch::Tensor& out) {
  LaunchAdd(a.data_ptr<float>(), b.data_ptr<float>(), out.data_ptr<float>(),
            c10::cuda::getCurrentCUDAStream(out.get_device()));
}

}  // namespace

PYBIND11_MODULE(TORCH_EXTENSION_NAME, m) {
  m.def("nothing_pybind11", NothingOfTensors);
  m.def("launch_pybind11", LaunchOfTensors);
  if (PyModule_AddFunctions(m.ptr(), by_hand) != 0) throw py::error_already_set();
}
