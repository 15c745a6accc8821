// SPDX-License-Identifier: Apache-2.0
// A C++ library with a Python package around it: a class hierarchy, fields that are containers,
// callbacks, arrays in and out, and errors of its own kind. The folder is meant to be copied.
//
// Python may pass anything anywhere. The type of a parameter or field says what is accepted, and
// the runtime checks it, ranges of integers included; what it cannot know is checked here.
#include <tvm/ffi/tvm_ffi.h>

#include <cmath>
#include <string>

namespace zoo {

namespace ffi = tvm::ffi;
namespace refl = tvm::ffi::reflection;

// ---- animals ------------------------------------------------------------------------------------

class AnimalObj : public ffi::Object {
 public:
  ffi::String name;
  uint8_t legs;
  ffi::List<ffi::String> tags;

  AnimalObj(ffi::String name, uint8_t legs) : name(std::move(name)), legs(legs) {
    if (this->name.empty()) TVM_FFI_THROW(ValueError) << "an animal needs a name";
  }
  virtual ~AnimalObj() = default;
  virtual ffi::String Sound() const { return "..."; }

  ffi::String Describe() const {
    std::string text = std::string(name) + ": " + std::string(Sound());
    for (const ffi::String& tag : tags) text += " #" + std::string(tag);
    return text;
  }

  static constexpr bool _type_mutable = true;
  TVM_FFI_DECLARE_OBJECT_INFO("zoo.Animal", AnimalObj, ffi::Object);
};

class Animal : public ffi::ObjectRef {
 public:
  TVM_FFI_DEFINE_OBJECT_REF_METHODS_NOTNULLABLE(Animal, ffi::ObjectRef, AnimalObj);
};

class DogObj : public AnimalObj {
 public:
  bool trained;

  DogObj(ffi::String name, bool trained) : AnimalObj(std::move(name), 4), trained(trained) {}
  ffi::String Sound() const override { return trained ? "woof" : "WOOF"; }

  TVM_FFI_DECLARE_OBJECT_INFO_FINAL("zoo.Dog", DogObj, AnimalObj);
};

class BirdObj : public AnimalObj {
 public:
  double wingspan;

  BirdObj(ffi::String name, double wingspan) : AnimalObj(std::move(name), 2), wingspan(wingspan) {
    if (!(wingspan > 0)) TVM_FFI_THROW(ValueError) << "wingspan must be positive, got " << wingspan;
  }
  ffi::String Sound() const override { return "tweet"; }

  TVM_FFI_DECLARE_OBJECT_INFO_FINAL("zoo.Bird", BirdObj, AnimalObj);
};

// ---- an enclosure: containers, callbacks, an error of its own kind ------------------------------

class EnclosureObj : public ffi::Object {
 public:
  int32_t capacity;
  ffi::List<Animal> animals;
  ffi::Dict<ffi::String, double> food;  // in kilograms, by animal

  explicit EnclosureObj(int32_t capacity) : capacity(capacity) {
    if (capacity < 0) TVM_FFI_THROW(ValueError) << "capacity must not be negative";
  }

  void Add(const Animal& animal) {
    if (static_cast<int64_t>(animals.size()) >= capacity) {
      TVM_FFI_THROW(ZooFullError) << "no room for " << animal->name << ": the enclosure holds "
                                  << capacity;
    }
    animals.push_back(animal);
  }

  // The callback may change the list, so each step asks for the size again.
  ffi::Array<Animal> Select(const ffi::TypedFunction<bool(Animal)>& wanted) const {
    ffi::Array<Animal> selected;
    for (int64_t i = 0; i < static_cast<int64_t>(animals.size()); ++i) {
      Animal animal = animals[i];
      if (wanted(animal)) selected.push_back(animal);
    }
    return selected;
  }

  double Feed(const ffi::String& name, double kilograms) {
    double before = food.Get(name).value_or(0.0);
    food.Set(name, before + kilograms);
    return before + kilograms;
  }

  static constexpr bool _type_mutable = true;
  TVM_FFI_DECLARE_OBJECT_INFO_FINAL("zoo.Enclosure", EnclosureObj, ffi::Object);
};

// ---- arrays in and out --------------------------------------------------------------------------

struct HostAlloc {
  void AllocData(DLTensor* tensor) { tensor->data = ::operator new(ffi::GetDataSize(*tensor)); }
  void FreeData(DLTensor* tensor) { ::operator delete(tensor->data); }
};

void CheckWeights(const ffi::TensorView& weights) {
  DLDataType dtype = weights.dtype();
  if (dtype.code != kDLFloat || dtype.bits != 64 || dtype.lanes != 1) {
    TVM_FFI_THROW(TypeError) << "weights must be float64, got " << dtype;
  }
  if (weights.ndim() != 1 || !weights.IsContiguous()) {
    TVM_FFI_THROW(ValueError) << "weights must be a contiguous vector, got " << weights.ndim()
                              << " dimensions";
  }
  if (weights.device().device_type != kDLCPU) {
    TVM_FFI_THROW(ValueError) << "weights must be in the memory of the CPU";
  }
}

double Mean(const ffi::TensorView& weights) {
  CheckWeights(weights);
  if (weights.numel() == 0) TVM_FFI_THROW(ValueError) << "the mean of no weights is not defined";
  const auto* data = static_cast<const double*>(weights.data_ptr());
  double sum = 0;
  for (int64_t i = 0; i < weights.numel(); ++i) sum += data[i];
  return sum / static_cast<double>(weights.numel());
}

// A new array.
ffi::Tensor Grow(const ffi::TensorView& weights, double factor) {
  CheckWeights(weights);
  ffi::Tensor grown =
      ffi::Tensor::FromNDAlloc(HostAlloc(), weights.shape(), weights.dtype(), weights.device());
  const auto* from = static_cast<const double*>(weights.data_ptr());
  auto* to = static_cast<double*>(grown.data_ptr());
  for (int64_t i = 0; i < weights.numel(); ++i) to[i] = from[i] * factor;
  return grown;
}

TVM_FFI_STATIC_INIT_BLOCK() {
  refl::ObjectDef<AnimalObj>()
      .def(refl::init<ffi::String, uint8_t>(), refl::arg("name"), refl::arg("legs"),
           "An animal without a voice.")
      .def_rw("name", &AnimalObj::name, "What it is called.")
      .def_rw("legs", &AnimalObj::legs, "How many legs it has.")
      .def_rw("tags", &AnimalObj::tags, "Words about it.")
      .def("sound", &AnimalObj::Sound, "The sound it makes.")
      .def("describe", &AnimalObj::Describe, "Name, sound and tags in one line.");
  refl::ObjectDef<DogObj>()
      .def(refl::init<ffi::String, bool>(), refl::arg("name"), refl::arg("trained"),
           "A dog, trained or not.")
      .def_rw("trained", &DogObj::trained, "Whether it barks softly.");
  refl::ObjectDef<BirdObj>()
      .def(refl::init<ffi::String, double>(), refl::arg("name"), refl::arg("wingspan"), "A bird.")
      .def_ro("wingspan", &BirdObj::wingspan, "In metres.");
  refl::ObjectDef<EnclosureObj>()
      .def(refl::init<int32_t>(), refl::arg("capacity"), "An empty enclosure.")
      .def_ro("capacity", &EnclosureObj::capacity, "How many animals it holds.")
      .def_ro("animals", &EnclosureObj::animals, "The animals in it.")
      .def_ro("food", &EnclosureObj::food, "Kilograms of food, by name.")
      .def("add", &EnclosureObj::Add, refl::arg("animal"),
           "Add an animal; ZooFullError if there is no room.")
      .def("select", &EnclosureObj::Select, refl::arg("wanted"),
           "The animals for which the callback returns True.")
      .def("feed", &EnclosureObj::Feed, refl::arg("name"), refl::arg("kilograms"),
           "Add food for a name; returns how much it has now.");
  refl::GlobalDef()
      .def("zoo.mean", Mean, refl::arg("weights"), "The mean of a vector of float64.")
      .def("zoo.grow", Grow, refl::arg("weights"), refl::arg("factor"),
           "A new vector, each weight times a factor.");
}

}  // namespace zoo
