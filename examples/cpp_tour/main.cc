// SPDX-License-Identifier: Apache-2.0
//
// A tour of the C++ side in one file: classes with reflection, objects and their counts, functions
// found by name, containers, errors that keep their traceback, tensors. It prints what it does;
// every line of output is checked against what it should be, and the program fails if one is not.
#include <tvm/ffi/container/dict.h>
#include <tvm/ffi/tvm_ffi.h>

#include <cstdlib>
#include <iostream>
#include <sstream>
#include <string>
#include <utility>

namespace ffi = tvm::ffi;
namespace refl = tvm::ffi::reflection;

// 1. A class. The object holds the data; the reference class is what code passes around.
class AnimalObj : public ffi::Object {
 public:
  ffi::String name;
  int64_t legs = 4;

  AnimalObj() = default;
  AnimalObj(ffi::String name, int64_t legs) : name(std::move(name)), legs(legs) {}
  ffi::String Describe() const { return name + " has " + std::to_string(legs) + " legs"; }

  static constexpr bool _type_mutable = true;
  TVM_FFI_DECLARE_OBJECT_INFO("tour.Animal", AnimalObj, ffi::Object);
};

class Animal : public ffi::ObjectRef {
 public:
  Animal(ffi::String name, int64_t legs) {
    data_ = ffi::make_object<AnimalObj>(std::move(name), legs);
  }
  TVM_FFI_DEFINE_OBJECT_REF_METHODS_NULLABLE(Animal, ffi::ObjectRef, AnimalObj);
};

class BirdObj : public AnimalObj {
 public:
  double wingspan = 0;

  BirdObj() = default;
  BirdObj(ffi::String name, double wingspan) : AnimalObj(std::move(name), 2), wingspan(wingspan) {}
  TVM_FFI_DECLARE_OBJECT_INFO_FINAL("tour.Bird", BirdObj, AnimalObj);
};

class Bird : public Animal {
 public:
  Bird(ffi::String name, double wingspan)
      : Animal(ffi::make_object<BirdObj>(std::move(name), wingspan)) {}
  TVM_FFI_DEFINE_OBJECT_REF_METHODS_NULLABLE(Bird, Animal, BirdObj);
};

int64_t CountLegs(const ffi::Array<Animal>& animals) {
  int64_t legs = 0;
  for (const Animal& animal : animals) legs += animal->legs;
  return legs;
}

// 2. What other languages and libraries can reach by name, registered while the program is loaded.
TVM_FFI_STATIC_INIT_BLOCK() {
  refl::ObjectDef<AnimalObj>()
      .def(refl::init<ffi::String, int64_t>())
      .def_ro("name", &AnimalObj::name, "what it is called")
      .def_rw("legs", &AnimalObj::legs)
      .def("describe", &AnimalObj::Describe);
  refl::ObjectDef<BirdObj>()
      .def(refl::init<ffi::String, double>())
      .def_rw("wingspan", &BirdObj::wingspan);
  refl::GlobalDef().def("tour.count_legs", CountLegs).def("tour.divide", [](int64_t a, int64_t b) {
    if (b == 0) TVM_FFI_THROW(ZeroDivisionError) << "cannot divide " << a << " by zero";
    return a / b;
  });
}

namespace {

// Prints a line and compares the value with what the tour promises.
template <typename T>
void Show(const std::string& what, const T& value, const std::string& expected) {
  std::ostringstream text;
  text << std::boolalpha << value;
  std::cout << "   " << what << " -> " << text.str() << "\n";
  if (text.str() == expected) return;
  std::cerr << "   expected " << expected << "\n";
  std::exit(1);
}

void Heading(const char* text) { std::cout << "\n" << text << "\n"; }

void TourObjects() {
  Heading("Objects are counted references");
  Animal cat("cat", 4);
  Show("cat->Describe()", cat->Describe(), "cat has 4 legs");
  Show("cat.use_count()", cat.use_count(), "1");
  {
    ffi::Any any = cat;
    Show("after storing it in an Any", cat.use_count(), "2");
    Show("any.GetTypeKey()", any.GetTypeKey(), "tour.Animal");
  }
  Show("after the Any is gone", cat.use_count(), "1");
  Animal bird = Bird("owl", 1.1);
  Show("a Bird passed as an Animal is still a Bird", bird.as<BirdObj>() != nullptr, "true");
  Show("its wingspan", bird.as<BirdObj>()->wingspan, "1.1");
  Show("the cat is a Bird", cat.as<BirdObj>() != nullptr, "false");
}

void TourReflection() {
  Heading("Fields and methods by name, without knowing the class");
  ffi::Any made = refl::GetMethod("tour.Animal", "__ffi_init__")("spider", 8);
  Show("describe", refl::GetMethod("tour.Animal", "describe")(made).cast<ffi::String>(),
       "spider has 8 legs");
  ffi::ObjectRef spider = made.cast<ffi::ObjectRef>();
  refl::FieldSetter("tour.Animal", "legs")(spider, 7);
  Show("legs, after losing one", refl::FieldGetter("tour.Animal", "legs")(spider).cast<int>(), "7");
  const TVMFFITypeInfo* info = TVMFFIGetTypeInfo(spider->type_index());
  for (int32_t i = 0; i < info->num_fields; ++i) {
    const TVMFFIFieldInfo& field = info->fields[i];
    std::cout << "   field " << field.name.data << " at byte " << field.offset << "\n";
  }
}

void TourFunctions() {
  Heading("Functions take and return anything");
  ffi::Function count_legs = ffi::Function::GetGlobalRequired("tour.count_legs");
  ffi::Array<Animal> zoo = {Animal("cat", 4), Bird("owl", 1.1), Animal("spider", 8)};
  Show("tour.count_legs(zoo)", count_legs(zoo).cast<int>(), "14");
  int64_t calls = 0;
  ffi::Function twice = ffi::Function::FromTyped([&calls](const ffi::Function& f, ffi::Any arg) {
    calls += 2;
    return f(f(arg));
  });
  ffi::Function add_ten = ffi::Function::FromTyped([](int64_t x) { return x + 10; });
  Show("twice(add_ten, 1)", twice(add_ten, 1).cast<int>(), "21");
  Show("calls seen by the closure", calls, "2");
}

void TourContainers() {
  Heading("Array and Map are values, List and Dict are shared");
  ffi::Array<int> array = {1, 2, 3};
  ffi::Array<int> copy = array;
  copy.push_back(4);
  Show("array after changing its copy", array.size(), "3");
  ffi::List<int> list = {1, 2, 3};
  ffi::List<int> alias = list;
  alias.push_back(4);
  Show("list after changing its alias", list.size(), "4");
  ffi::Map<ffi::String, ffi::Any> config = {{"depth", 3}, {"name", "tour"}};
  config.Set("scale", 0.5);
  std::string keys;
  for (const auto& [key, value] : config) keys += std::string(key) + " ";
  Show("keys in order of insertion", keys, "depth name scale ");
  ffi::Dict<ffi::Any, ffi::Any> mixed;
  mixed.Set(1, "int key");
  mixed.Set("1", "string key");
  Show("dict[1]", mixed[1].cast<ffi::String>(), "int key");
}

void TourErrors() {
  Heading("Errors carry their kind, message and traceback through every call");
  ffi::Function divide = ffi::Function::GetGlobalRequired("tour.divide");
  Show("tour.divide(9, 3)", divide(9, 3).cast<int>(), "3");
  try {
    divide(1, 0);
  } catch (const ffi::Error& error) {
    Show("kind", error.kind(), "ZeroDivisionError");
    Show("message", error.message(), "cannot divide 1 by zero");
    std::cout << error.FullMessage();
    if (error.backtrace().find("main.cc") == std::string::npos) std::exit(1);
  }
  try {
    divide("one", 1);
  } catch (const ffi::Error& error) {
    Show("wrong type", error.message(),
         "Mismatched type on argument #0 when calling: `tour.divide(0: int, 1: int) -> int`. "
         "Expected `int` but got `const char*`");
  }
}

struct HeapAlloc {
  void AllocData(DLTensor* tensor) { tensor->data = std::malloc(ffi::GetDataSize(*tensor)); }
  void FreeData(DLTensor* tensor) { std::free(tensor->data); }
};

void TourTensors() {
  Heading("Tensors are exchanged through DLPack without copying");
  ffi::Tensor tensor = ffi::Tensor::FromNDAlloc(HeapAlloc(), ffi::Shape({2, 3}),
                                                DLDataType{kDLFloat, 32, 1}, DLDevice{kDLCPU, 0});
  Show("shape", ffi::Shape(tensor.shape()), "[2, 3]");
  Show("dtype", tensor.dtype(), "float32");
  ffi::Tensor imported = ffi::Tensor::FromDLPack(tensor.ToDLPack());
  Show("the import sees the same memory", imported.data_ptr() == tensor.data_ptr(), "true");
}

}  // namespace

int main() {
  TVMFFIVersion version;
  TVMFFIGetVersion(&version);
  std::cout << "Tether, speaking interface version " << version.major << "." << version.minor << "."
            << version.patch << "\n";
  TourObjects();
  TourReflection();
  TourFunctions();
  TourContainers();
  TourErrors();
  TourTensors();
  std::cout << "\nThe tour ends here; every value was as promised.\n";
  return 0;
}
