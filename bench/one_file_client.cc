// SPDX-License-Identifier: Apache-2.0
//
// A typical small extension, used to compare compile time and size: one reflected class, a few
// global functions over containers, strings and tensors, one exported symbol.
#include <tvm/ffi/tvm_ffi.h>

#include <utility>

namespace {

namespace ffi = tvm::ffi;
namespace refl = tvm::ffi::reflection;

class CounterObj : public ffi::Object {
 public:
  int64_t value = 0;
  ffi::String name;
  ffi::Array<ffi::Any> log;

  CounterObj() = default;
  CounterObj(int64_t value, ffi::String name) : value(value), name(std::move(name)) {}
  int64_t Add(int64_t amount) {
    log.push_back(amount);
    return value += amount;
  }

  static constexpr bool _type_mutable = true;
  TVM_FFI_DECLARE_OBJECT_INFO_FINAL("bench.Counter", CounterObj, ffi::Object);
};

class Counter : public ffi::ObjectRef {
 public:
  Counter(int64_t value, ffi::String name) {
    data_ = ffi::make_object<CounterObj>(value, std::move(name));
  }
  TVM_FFI_DEFINE_OBJECT_REF_METHODS_NULLABLE(Counter, ffi::ObjectRef, CounterObj);
};

ffi::Map<ffi::String, int64_t> CountWords(const ffi::Array<ffi::String>& words) {
  ffi::Map<ffi::String, int64_t> counts;
  for (const ffi::String& word : words) counts.Set(word, counts.Get(word).value_or(0) + 1);
  return counts;
}

double Sum(const ffi::TensorView& tensor) {
  if (tensor.dtype().code != kDLFloat || tensor.dtype().bits != 32) {
    TVM_FFI_THROW(TypeError) << "Expected float32, got " << tensor.dtype();
  }
  double sum = 0;
  for (int64_t i = 0; i < tensor.numel(); ++i) {
    sum += static_cast<const float*>(tensor.data_ptr())[i];
  }
  return sum;
}

TVM_FFI_STATIC_INIT_BLOCK() {
  refl::ObjectDef<CounterObj>()
      .def(refl::init<int64_t, ffi::String>())
      .def_rw("value", &CounterObj::value)
      .def_ro("name", &CounterObj::name)
      .def_ro("log", &CounterObj::log)
      .def("add", &CounterObj::Add);
  refl::GlobalDef()
      .def("bench.make_counter",
           [](int64_t value, ffi::String name) { return Counter(value, name); })
      .def("bench.count_words", CountWords)
      .def("bench.sum", Sum)
      .def("bench.apply", [](ffi::Function f, ffi::Any arg) { return f(arg); });
}

int64_t AddOne(int64_t x) { return x + 1; }

}  // namespace

TVM_FFI_DLL_EXPORT_TYPED_FUNC(add_one, AddOne)
