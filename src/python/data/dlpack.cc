// SPDX-License-Identifier: Apache-2.0
// Tensors of other libraries: by capsule, by exchange API, and, for numpy, by looking inside.
//
// Every import checks the geometry first and takes the memory over last, so what is refused still
// belongs to whoever offered it.
#include <tvm/ffi/container/tensor.h>
#include <tvm/ffi/extra/c_env_api.h>

#include <algorithm>
#include <cstdlib>
#include <cstring>
#include <memory>
#include <mutex>
#include <new>

#include "core/copy_tensor.h"
#include "python/base/entry.h"
#include "python/base/python_api.h"
#include "python/convert/convert.h"
#include "python/convert/errors.h"
#include "python/data/exchange.h"
#include "python/data/tensor.h"
#include "python/wrap/class_watch.h"
#include "python/wrap/release_queue.h"

namespace tether_py {

using ffi::TypeIndex;

namespace {

PyObject* dlpack_name = nullptr;        // "__dlpack__"
PyObject* exchange_api_name = nullptr;  // "__dlpack_c_exchange_api__"
PyObject* is_conj_name = nullptr;
PyObject* is_neg_name = nullptr;
PyObject* resolve_conj_name = nullptr;
PyObject* resolve_neg_name = nullptr;

struct ImportOptions {
  int32_t require_alignment = 0;
  bool require_contiguous = false;
};

// ---- checks

// Refuses what no tensor can be. False with an error set.
bool CheckGeometry(const DLTensor& t) {
  const ffi::tether::Defect defect = ffi::tether::FindDefect(t);
  if (TVM_FFI_PREDICT_TRUE(defect == ffi::tether::Defect::kNone)) return true;
  PyErr_SetString(PyExc_ValueError, ffi::tether::Describe(defect, t).c_str());
  return false;
}

bool CheckVersion(const DLPackVersion& version, const char* what) {
  if (TVM_FFI_PREDICT_TRUE(version.major == DLPACK_MAJOR_VERSION)) return true;
  PyErr_Format(PyExc_BufferError, "%s has DLPack version %u.%u; only %d.x is understood", what,
               version.major, version.minor, DLPACK_MAJOR_VERSION);
  return false;
}

// ---- managed tensors

// Takes `managed` over only when it succeeds. NULL with an error set.
TVMFFIObject* ImportManaged(DLManagedTensor* managed, const ImportOptions& options) {
  TVMFFIObjectHandle out = nullptr;
  if (!CheckGeometry(managed->dl_tensor)) return nullptr;
  int code =
      TVMFFITensorFromDLPack(managed, options.require_alignment, options.require_contiguous, &out);
  if (code != 0) RaiseFromCall(code);
  return static_cast<TVMFFIObject*>(out);
}

TVMFFIObject* ImportManaged(DLManagedTensorVersioned* managed, const ImportOptions& options) {
  TVMFFIObjectHandle out = nullptr;
  if (!CheckVersion(managed->version, "the tensor") || !CheckGeometry(managed->dl_tensor)) {
    return nullptr;
  }
  int code = TVMFFITensorFromDLPackVersioned(managed, options.require_alignment,
                                             options.require_contiguous, &out);
  if (code != 0) RaiseFromCall(code);
  return static_cast<TVMFFIObject*>(out);
}

// What a Python object exported in a capsule: its deleter may need Python, so it runs where Python
// does, and no C++ thread that drops the tensor waits for it. What comes through the exchange API
// of a framework is not wrapped.
template <typename TManaged>
struct FromCapsule {
  TManaged lent;
  TManaged* original;

  explicit FromCapsule(TManaged* managed) : lent(*managed), original(managed) {
    lent.manager_ctx = this;
    lent.deleter = [](TManaged* self) {
      ReleaseWith(self->manager_ctx, [](void* context) {
        auto* self = static_cast<FromCapsule*>(context);
        ErrorAside reason;
        self->original->deleter(self->original);
        delete self;
      });
    };
  }
};

template <typename TManaged>
TVMFFIObject* ConsumeCapsule(PyObject* capsule, const char* name, const char* used_name,
                             const ImportOptions& options) {
  auto* managed = static_cast<TManaged*>(PyCapsule_GetPointer(capsule, name));
  if (managed == nullptr) return nullptr;
  std::unique_ptr<FromCapsule<TManaged>> wrapped;
  if (managed->deleter != nullptr) {
    wrapped.reset(new (std::nothrow) FromCapsule<TManaged>(managed));
    if (wrapped == nullptr) {
      PyErr_NoMemory();
      return nullptr;
    }
  }
  TVMFFIObject* h = ImportManaged(wrapped != nullptr ? &wrapped->lent : managed, options);
  if (h == nullptr) return nullptr;
  (void)wrapped.release();
  // Another consumer must not find it, nor the capsule's destructor.
  PyCapsule_SetName(capsule, used_name);
  return h;
}

// Says why `obj` was not imported, after `expectation`.
void RaiseNoCapsule(PyObject* error, const char* expectation, PyObject* obj) {
  auto is = [obj](const char* name) { return PyCapsule_IsValid(obj, name) != 0; };
  if (!PyCapsule_CheckExact(obj)) {
    PyErr_Format(error, "%s, got %s", expectation, Py_TYPE(obj)->tp_name);
  } else if (is(kUsedCapsule) || is(kUsedVersionedCapsule)) {
    PyErr_Format(error, "%s: this capsule was consumed, which can be done only once", expectation);
  } else {
    const char* name = PyCapsule_GetName(obj);
    PyErr_Clear();
    PyErr_Format(error, "%s, got a capsule called '%.100s'", expectation,
                 name != nullptr ? name : "");
  }
}

// From a capsule of either kind, or NULL with an error set: `wrong_kind` for anything else.
TVMFFIObject* ImportCapsule(PyObject* capsule, const ImportOptions& options, PyObject* wrong_kind,
                            const char* expectation) {
  CriticalSection section(capsule);  // two threads must not consume one capsule
  if (PyCapsule_IsValid(capsule, kVersionedCapsule)) {
    return ConsumeCapsule<DLManagedTensorVersioned>(capsule, kVersionedCapsule,
                                                    kUsedVersionedCapsule, options);
  }
  if (PyCapsule_IsValid(capsule, kCapsule)) {
    return ConsumeCapsule<DLManagedTensor>(capsule, kCapsule, kUsedCapsule, options);
  }
  RaiseNoCapsule(wrong_kind, expectation, capsule);
  return nullptr;
}

TVMFFIObject* ImportFromMethod(PyObject* obj, const ImportOptions& options) {
  Ref capsule = Ref::Steal(PyObject_CallMethodNoArgs(obj, dlpack_name));
  if (!capsule) return nullptr;
  return ImportCapsule(capsule.get(), options, PyExc_ValueError,
                       "Expect __dlpack__() to return a dltensor capsule");
}

// ---- tensors over the memory of a Python object

// Shape and strides follow the object, as they may change in `owner`.
class PythonTensorObj : public ffi::TensorObj {
 public:
  PythonTensorObj(PyObject* owner, const DLTensor& prototype) : owner_(Py_NewRef(owner)) {
    *static_cast<DLTensor*>(this) = prototype;
    auto* extents = reinterpret_cast<int64_t*>(this + 1);
    std::copy(prototype.shape, prototype.shape + ndim, extents);
    std::copy(prototype.strides, prototype.strides + ndim, extents + ndim);
    shape = extents;
    strides = extents + ndim;
  }
  ~PythonTensorObj() { ReleaseFromAnyThread(owner_); }

  PyObject* owner() const { return owner_; }

 private:
  PyObject* owner_;  // the memory is valid for as long as it lives
};

// What all objects of that class have in common, once there is one.
std::atomic<decltype(TVMFFIObject::deleter)> python_tensor_deleter{nullptr};

// NULL with an error set.
TVMFFIObject* TensorOver(PyObject* owner, const DLTensor& prototype) {
  TVMFFIObject* h = nullptr;
  Ref done = Ref::Steal(Guarded([&]() -> PyObject* {
    auto tensor = ffi::make_inplace_array_object<PythonTensorObj, int64_t>(
        static_cast<size_t>(prototype.ndim) * 2, owner, prototype);
    h = ffi::details::ObjectUnsafe::MoveObjectPtrToTVMFFIObjectPtr(std::move(tensor));
    python_tensor_deleter.store(h->deleter, std::memory_order_relaxed);
    return Py_NewRef(Py_None);
  }));
  return h;
}

// ---- numpy
//
// ndarray.__dlpack__ costs more than the rest of a call. The fields of an array have been at the
// same place in every release of numpy, and what DLPack calls an element type is learned from numpy
// itself: the first array of a type goes through __dlpack__.

struct ArrayFields {
  PyObject_HEAD char* data;
  int ndim;
  Py_ssize_t* shape;
  Py_ssize_t* strides;  // in bytes
  PyObject* base;
  PyObject* descr;
  int flags;
};
constexpr int kWriteable = 0x400;
constexpr int kMaxArrayDims = 64;
static_assert(sizeof(Py_ssize_t) == sizeof(int64_t), "shapes are copied as they are");

const ArrayFields* FieldsOf(PyObject* array) { return reinterpret_cast<const ArrayFields*>(array); }

// Element types seen so far. Entries are only ever added.
class ElementTypes {
 public:
  bool Find(PyObject* descr, DLDataType* out) const {
    for (size_t i = Start(descr), n = 0; n < kProbes; ++n, ++i) {
      const Entry* entry = entries_[i % kEntries].load(std::memory_order_acquire);
      if (entry == nullptr) return false;
      if (entry->descr != descr) continue;
      *out = entry->dtype;
      return true;
    }
    return false;
  }
  void Add(PyObject* descr, DLDataType dtype) {
    auto* made = new (std::nothrow) Entry{descr, dtype};
    if (made == nullptr) return;
    for (size_t i = Start(descr), n = 0; n < kProbes; ++n, ++i) {
      Entry* none = nullptr;
      if (entries_[i % kEntries].compare_exchange_strong(none, made)) {
        Py_INCREF(descr);
        return;
      }
    }
    delete made;
  }

 private:
  static constexpr size_t kEntries = 128;
  static constexpr size_t kProbes = 8;
  struct Entry {
    PyObject* descr;
    DLDataType dtype;
  };
  static size_t Start(PyObject* descr) { return reinterpret_cast<uintptr_t>(descr) >> 4; }
  std::atomic<Entry*> entries_[kEntries] = {};
};

ElementTypes element_types;

TVMFFIObject* ImportArraySlow(PyObject* array, const ImportOptions& options) {
  TVMFFIObject* h = ImportFromMethod(array, options);
  if (h == nullptr) return nullptr;
  DLDataType dtype = TVMFFITensorGetDLTensorPtr(h)->dtype;
  bool whole_bytes = dtype.bits % 8 == 0 && dtype.bits != 0 && dtype.lanes == 1;
  if (whole_bytes) element_types.Add(FieldsOf(array)->descr, dtype);
  return h;
}

// Anything unusual goes the long way, where numpy says what is wrong with it.
TVMFFIObject* ImportArray(PyObject* array, const ImportOptions& options) {
  const ArrayFields* a = FieldsOf(array);
  DLDataType dtype;
  if (!element_types.Find(a->descr, &dtype) || (a->flags & kWriteable) == 0 ||
      a->ndim > kMaxArrayDims) {
    return ImportArraySlow(array, options);
  }
  int64_t strides[kMaxArrayDims];
  // Sizes are powers of two, but for complex and extended types a division is all right too.
  const Py_ssize_t itemsize = dtype.bits / 8;
  for (int i = 0; i < a->ndim; ++i) {
    if (a->strides[i] % itemsize != 0) return ImportArraySlow(array, options);
    strides[i] = a->strides[i] / itemsize;
  }
  DLTensor prototype{};
  prototype.data = a->data;
  prototype.device = DLDevice{kDLCPU, 0};
  prototype.ndim = a->ndim;
  prototype.dtype = dtype;
  prototype.shape = reinterpret_cast<int64_t*>(a->shape);
  prototype.strides = strides;
  if (options.require_alignment == 0 && !options.require_contiguous) {
    return TensorOver(array, prototype);
  }
  Ref fits = Ref::Steal(Guarded([&]() -> PyObject* {
    ffi::tether::CheckImport(prototype, static_cast<size_t>(options.require_alignment),
                             options.require_contiguous);
    return Py_NewRef(Py_None);
  }));
  return fits ? TensorOver(array, prototype) : nullptr;
}

// Whether an array looks as ArrayFields says, tried on one with a gap and an offset.
bool KnowsArrayLayout(PyObject* numpy) {
  Ref probe = Ref::Steal(PyObject_CallMethod(numpy, "zeros", "((iii)s)", 3, 5, 7, "int16"));
  Ref index =
      Ref::Steal(Py_BuildValue("(NN)", PySlice_New(nullptr, nullptr, nullptr), PyLong_FromLong(2)));
  Ref view = probe && index ? Ref::Steal(PyObject_GetItem(probe.get(), index.get())) : Ref();
  if (!view) return false;
  Ref interface = Ref::Steal(PyObject_GetAttrString(view.get(), "__array_interface__"));
  Ref descr = Ref::Steal(PyObject_GetAttrString(view.get(), "dtype"));
  Ref flags = Ref::Steal(PyObject_GetAttrString(view.get(), "flags"));
  Ref bits = flags ? Ref::Steal(PyObject_GetAttrString(flags.get(), "num")) : Ref();
  if (!interface || !descr || !bits || !PyDict_Check(interface.get())) return false;
  PyObject* data = PyDict_GetItemString(interface.get(), "data");
  if (data == nullptr || !PyTuple_Check(data)) return false;
  const ArrayFields* a = FieldsOf(view.get());
  return PyLong_AsVoidPtr(PyTuple_GET_ITEM(data, 0)) == a->data && a->ndim == 2 &&
         a->shape[0] == 3 && a->shape[1] == 7 && a->strides[0] == 70 && a->strides[1] == 2 &&
         a->base == probe.get() && a->descr == descr.get() &&
         PyLong_AsLong(bits.get()) == a->flags && (a->flags & kWriteable) != 0;
}

// numpy's ndarray if it is loaded and its arrays can be looked into, decided once.
PyTypeObject* FindNumpyArrayType() {
  static std::atomic<PyTypeObject*> found{nullptr};
  static std::atomic<bool> refused{false};
  PyTypeObject* type = found.load();
  if (type != nullptr || refused.load()) return type;
  Ref numpy = LoadedModule("numpy");
  if (!numpy) return nullptr;
  Ref cls = Ref::Steal(PyObject_GetAttrString(numpy.get(), "ndarray"));
  if (!cls || !PyType_Check(cls.get())) {
    PyErr_Clear();  // still being imported
    return nullptr;
  }
  if (!KnowsArrayLayout(numpy.get())) {
    PyErr_Clear();
    refused.store(true);
    return nullptr;
  }
  type = reinterpret_cast<PyTypeObject*>(cls.release());
  found.store(type);
  return type;
}

// ---- exchange API

// APIs by class, which is borrowed. Entries are only ever added; that of a dead class waits for the
// next one.
struct KnownAPI {
  std::atomic<PyTypeObject*> type;
  const DLPackExchangeAPI* api;
  KnownAPI* next;
};
std::atomic<KnownAPI*> known_apis{nullptr};
ShortLock known_apis_lock;  // for changes

const DLPackExchangeAPI* FindKnownAPI(PyTypeObject* type) {
  for (KnownAPI* known = known_apis.load(std::memory_order_acquire); known != nullptr;
       known = known->next) {
    if (known->type.load(std::memory_order_acquire) == type) return known->api;
  }
  return nullptr;
}

void RememberAPI(PyTypeObject* type, const DLPackExchangeAPI* api) {
  if (!WatchClass(type)) return;
  std::lock_guard<ShortLock> guard(known_apis_lock);
  KnownAPI* place = nullptr;
  for (KnownAPI* known = known_apis.load(); known != nullptr; known = known->next) {
    if (known->type.load() == type) return;
    if (known->type.load() == nullptr) place = known;
  }
  if (place == nullptr) {
    known_apis.store(new KnownAPI{{type}, api, known_apis.load()}, std::memory_order_release);
    return;
  }
  place->api = api;  // nobody reads it while there is no class
  place->type.store(type, std::memory_order_release);
}

// From the attribute: a capsule, or an address as older producers have it.
const DLPackExchangeAPI* ParseExchangeAPI(PyObject* attribute) {
  const void* address = nullptr;
  if (PyCapsule_IsValid(attribute, "dlpack_exchange_api")) {
    address = PyCapsule_GetPointer(attribute, "dlpack_exchange_api");
  } else if (PyLong_Check(attribute)) {
    address = PyLong_AsVoidPtr(attribute);
    PyErr_Clear();
    // Nothing is in the first page, and the structure begins with a pointer's alignment.
    auto number = reinterpret_cast<uintptr_t>(address);
    if (number < 4096 || number % alignof(DLPackExchangeAPI) != 0) {
      PyErr_Format(PyExc_ValueError,
                   "Expect a dlpack_exchange_api field: a capsule or an address, got %R",
                   attribute);
      return nullptr;
    }
  }
  const auto* api = static_cast<const DLPackExchangeAPI*>(address);
  if (api == nullptr) {
    PyErr_SetString(PyExc_ValueError, "Expect a dlpack_exchange_api field");
    return nullptr;
  }
  if (!CheckVersion(api->header.version, "the exchange API")) return nullptr;
  if (api->managed_tensor_from_py_object_no_sync == nullptr) {
    PyErr_SetString(PyExc_ValueError, "the exchange API cannot export tensors");
    return nullptr;
  }
  return api;
}

void DeleteManaged(DLManagedTensorVersioned* managed) {
  ErrorAside reason;
  if (managed->deleter != nullptr) managed->deleter(managed);
}

TVMFFIObject* ImportByAPI(PyObject* obj, const DLPackExchangeAPI* api,
                          const ImportOptions& options) {
  DLManagedTensorVersioned* managed = nullptr;
  if (api->managed_tensor_from_py_object_no_sync(obj, &managed) != 0 || managed == nullptr) {
    if (!PyErr_Occurred()) {
      PyErr_Format(PyExc_BufferError, "%s could not be exported", Py_TYPE(obj)->tp_name);
    }
    return nullptr;
  }
  TVMFFIObject* h = ImportManaged(managed, options);
  if (h == nullptr) DeleteManaged(managed);
  return h;
}

bool IsSameTensor(const DLTensor& a, const DLTensor& b) {
  auto address = [](const DLTensor& t) { return static_cast<char*>(t.data) + t.byte_offset; };
  size_t bytes = static_cast<size_t>(b.ndim) * sizeof(int64_t);
  return address(a) == address(b) && a.ndim == b.ndim &&
         a.device.device_type == b.device.device_type && a.device.device_id == b.device.device_id &&
         std::memcmp(&a.dtype, &b.dtype, sizeof(DLDataType)) == 0 &&
         std::memcmp(a.shape, b.shape, bytes) == 0 && a.strides != nullptr &&
         std::memcmp(a.strides, b.strides, bytes) == 0;
}

// The stream of the first device that is not the CPU is the call's.
void RecordStream(const DLPackExchangeAPI* api, DLDevice device, CallContext* context) {
  if (device.device_type == kDLCPU || context->device_type != -1) return;
  void* stream = nullptr;
  if (api->current_work_stream == nullptr ||
      api->current_work_stream(device.device_type, device.device_id, &stream) != 0) {
    PyErr_Clear();
    return;
  }
  context->SetStream(device, stream);
}

bool StoreTensor(TVMFFIObject* h, TVMFFIAny* out, Arguments* args) {
  if (h == nullptr) return false;
  tie::StoreObject(h, out);
  args->Keep(*out);
  return true;
}

// A tensor that keeps `obj` itself alive, which spares the framework a managed tensor: that would
// keep the same tensor, and costs as much as the rest of the call.
TVMFFIObject* ImportViewByAPI(PyObject* obj, const DLPackExchangeAPI* api) {
  DLTensor view{};
  if (api->dltensor_from_py_object_no_sync(obj, &view) != 0) {
    if (!PyErr_Occurred()) {
      PyErr_Format(PyExc_BufferError, "%s could not be exported", Py_TYPE(obj)->tp_name);
    }
    return nullptr;
  }
  if (!CheckGeometry(view)) return nullptr;
  if (view.strides == nullptr && view.ndim != 0) return ImportByAPI(obj, api, ImportOptions());
  return TensorOver(obj, view);
}

// ---- lazy signs
//
// torch negates and conjugates by setting a bit; the memory still has the values from before, and
// neither the exchange API nor the method for old capsules says so.

// Whether tensors of this class may have such a bit.
bool HasLazySigns(PyTypeObject* type) {
  return HasMethod(type, "is_neg") && HasMethod(type, "is_conj") &&
         HasMethod(type, "resolve_neg") && HasMethod(type, "resolve_conj");
}

// 1 or 0, or -1 with an error set.
int Ask(PyObject* obj, PyObject* method) {
  Ref answer = Ref::Steal(PyObject_CallMethodNoArgs(obj, method));
  if (!answer) return -1;
  return answer.get() == Py_False ? 0 : PyObject_IsTrue(answer.get());
}

// `obj`, or a copy of it whose memory has the values that it stands for. NULL with an error set.
Ref ResolveSigns(PyObject* obj) {
  Ref tensor = Ref::Borrow(obj);
  const struct {
    PyObject *ask, *resolve;
  } signs[] = {{is_conj_name, resolve_conj_name}, {is_neg_name, resolve_neg_name}};
  for (const auto& sign : signs) {
    int is = Ask(tensor.get(), sign.ask);
    if (is < 0) return Ref();
    if (is == 0) continue;
    tensor = Ref::Steal(PyObject_CallMethodNoArgs(tensor.get(), sign.resolve));
    if (!tensor) return Ref();
    if (!PyObject_TypeCheck(tensor.get(), Py_TYPE(obj))) {
      PyErr_Format(PyExc_TypeError, "%U() of %s returned %s", sign.resolve, Py_TYPE(obj)->tp_name,
                   Py_TYPE(tensor.get())->tp_name);
      return Ref();
    }
  }
  return tensor;
}

// For those who want the memory itself and no copy. False with an error set.
bool CheckNoLazySigns(PyObject* obj) {
  if (!HasLazySigns(Py_TYPE(obj))) return true;
  int conj = Ask(obj, is_conj_name);
  int neg = conj == 0 ? Ask(obj, is_neg_name) : 0;
  if (conj > 0 || neg > 0) {
    const char* what = conj > 0 ? "conj" : "neg";
    PyErr_Format(PyExc_BufferError,
                 "a tensor with the %s bit set cannot share its memory, which has other values; "
                 "use tensor.resolve_%s()",
                 what, what);
  }
  return conj == 0 && neg == 0;
}

bool SetByAPI(PyObject* obj, const DLPackExchangeAPI* api, TVMFFIAny* out, Arguments* args) {
  TVMFFIObject* h = api->dltensor_from_py_object_no_sync != nullptr
                        ? ImportViewByAPI(obj, api)
                        : ImportByAPI(obj, api, ImportOptions());
  if (h == nullptr) return false;
  CallContext* context = args->MutableContext();
  context->api = api;
  RecordStream(api, TVMFFITensorGetDLTensorPtr(h)->device, context);
  return StoreTensor(h, out, args);
}

// A class that could not be remembered is asked each time. NULL with an error set.
const DLPackExchangeAPI* ClassAPI(PyObject* obj) {
  const DLPackExchangeAPI* api = FindKnownAPI(Py_TYPE(obj));
  return api != nullptr ? api : ExchangeAPIOf(reinterpret_cast<PyObject*>(Py_TYPE(obj)));
}

bool SetByExchangeAPI(PyObject* obj, TVMFFIAny* out, Arguments* args) {
  const DLPackExchangeAPI* api = ClassAPI(obj);
  return api != nullptr && SetByAPI(obj, api, out, args);
}

bool SetWithLazySigns(PyObject* obj, TVMFFIAny* out, Arguments* args) {
  Ref tensor = ResolveSigns(obj);
  return tensor && SetByExchangeAPI(tensor.get(), out, args);
}

bool SetNumpyArray(PyObject* obj, TVMFFIAny* out, Arguments* args) {
  return StoreTensor(ImportArray(obj, ImportOptions()), out, args);
}

bool SetByDLPack(PyObject* obj, TVMFFIAny* out, Arguments* args) {
  TVMFFIObject* h = ImportFromMethod(obj, ImportOptions());
  if (!StoreTensor(h, out, args)) return false;
  DLDevice device = TVMFFITensorGetDLTensorPtr(h)->device;
  if (device.device_type == kDLCPU || !HasMethod(Py_TYPE(obj), "__tvm_ffi_env_stream__")) {
    return true;
  }
  Ref stream = Ref::Steal(PyObject_CallMethod(obj, "__tvm_ffi_env_stream__", nullptr));
  if (!stream) return false;
  void* address = PyLong_Check(stream.get()) ? PyLong_AsVoidPtr(stream.get()) : nullptr;
  if (!PyLong_Check(stream.get())) {
    PyErr_Format(PyExc_TypeError, "__tvm_ffi_env_stream__() of %s must return an int, got %s",
                 Py_TYPE(obj)->tp_name, Py_TYPE(stream.get())->tp_name);
  }
  if (PyErr_Occurred()) return false;
  args->MutableContext()->SetStream(device, address);
  return true;
}

// ---- torch without an exchange API

// The function `path` of torch, such as "utils.dlpack.to_dlpack". NULL with an error set.
Ref TorchFunction(std::initializer_list<const char*> path) {
  Ref found = Ref::Steal(PyImport_ImportModule("torch"));
  for (const char* name : path) {
    if (!found) break;
    found = Ref::Steal(PyObject_GetAttrString(found.get(), name));
  }
  return found;
}

// Older releases of torch take only unversioned capsules.
struct LegacyManaged {
  DLManagedTensor managed;
  DLManagedTensorVersioned* source;
};

int TorchFromManaged(DLManagedTensorVersioned* tensor, void** out) {
  auto* legacy = new (std::nothrow) LegacyManaged{{tensor->dl_tensor, nullptr, nullptr}, tensor};
  if (legacy == nullptr) {
    if (tensor->deleter != nullptr) tensor->deleter(tensor);
    PyErr_NoMemory();
    return -1;
  }
  legacy->managed.manager_ctx = legacy;
  legacy->managed.deleter = [](DLManagedTensor* self) {
    // Torch calls this on any thread, and without the GIL.
    auto* owner = static_cast<LegacyManaged*>(self->manager_ctx);
    if (owner->source->deleter != nullptr) owner->source->deleter(owner->source);
    delete owner;
  };
  Ref capsule = Ref::Steal(PyCapsule_New(&legacy->managed, kCapsule, DropCapsule));
  if (!capsule) {
    legacy->managed.deleter(&legacy->managed);
    return -1;
  }
  Ref from_dlpack = TorchFunction({"utils", "dlpack", "from_dlpack"});
  *out = from_dlpack ? PyObject_CallOneArg(from_dlpack.get(), capsule.get()) : nullptr;
  return *out != nullptr ? 0 : -1;
}

int TorchStream(DLDeviceType, int32_t device_id, void** out) {
  Ref current = TorchFunction({"_C", "_cuda_getCurrentRawStream"});
  Ref stream = current ? Ref::Steal(PyObject_CallFunction(current.get(), "i", device_id)) : Ref();
  if (!stream) return -1;
  *out = PyLong_AsVoidPtr(stream.get());
  return PyErr_Occurred() ? -1 : 0;
}

int TorchToManaged(void*, DLManagedTensorVersioned**) {
  PyErr_SetString(PyExc_BufferError, "torch tensors are exported by to_dlpack here");
  return -1;
}

const DLPackExchangeAPI torch_api = {{{DLPACK_MAJOR_VERSION, DLPACK_MINOR_VERSION}, nullptr},
                                     nullptr,
                                     TorchToManaged,
                                     TorchFromManaged,
                                     nullptr,
                                     TorchStream};

bool SetTorchTensor(PyObject* obj, TVMFFIAny* out, Arguments* args) {
  Ref to_dlpack = TorchFunction({"utils", "dlpack", "to_dlpack"});
  // A torch that is too old for the methods has no such bits either.
  Ref tensor = HasLazySigns(Py_TYPE(obj)) ? ResolveSigns(obj) : Ref::Borrow(obj);
  if (!to_dlpack || !tensor) return false;
  Ref capsule = Ref::Steal(PyObject_CallOneArg(to_dlpack.get(), tensor.get()));
  if (!capsule) return false;
  TVMFFIObject* h = ImportCapsule(capsule.get(), ImportOptions(), PyExc_BufferError,
                                  "Expect torch.utils.dlpack.to_dlpack to return a capsule");
  if (!StoreTensor(h, out, args)) return false;
  CallContext* context = args->MutableContext();
  context->api = &torch_api;
  DLDevice device = TVMFFITensorGetDLTensorPtr(h)->device;
  if (device.device_type == kDLCUDA || device.device_type == kDLROCM) {
    RecordStream(&torch_api, device, context);
  }
  return true;
}

// ---- the exchange API of Tensor

int OwnAllocate(DLTensor* prototype, DLManagedTensorVersioned** out, void* error_ctx,
                void (*set_error)(void*, const char*, const char*)) {
  if (prototype->device.device_type != kDLCPU) {
    set_error(error_ctx, "RuntimeError", "tvm_ffi.Tensor can only be allocated on the CPU");
    return -1;
  }
  try {
    ffi::ShapeView shape(prototype->shape, static_cast<size_t>(prototype->ndim));
    ffi::Tensor tensor = ffi::Tensor::FromNDAlloc(ffi::tether::HostMemory(), shape,
                                                  prototype->dtype, prototype->device);
    *out = tensor.ToDLPackVersioned();
    return 0;
  } catch (const std::exception& error) {
    set_error(error_ctx, "MemoryError", error.what());
    return -1;
  }
}

struct TestWrapper {
  PyObject_HEAD PyObject* tensor;
};
PyTypeObject* test_wrapper_type = nullptr;

// The Tensor that `obj` is or wraps. Borrowed; NULL with an error set.
PyObject* TensorIn(PyObject* obj) {
  if (PyObject_TypeCheck(obj, types.tensor)) return obj;
  if (PyObject_TypeCheck(obj, test_wrapper_type)) {
    return reinterpret_cast<TestWrapper*>(obj)->tensor;
  }
  PyErr_Format(PyExc_TypeError, "expected a tvm_ffi.Tensor, got %s", Py_TYPE(obj)->tp_name);
  return nullptr;
}

int OwnToManaged(void* obj, DLManagedTensorVersioned** out) {
  PyObject* tensor = TensorIn(static_cast<PyObject*>(obj));
  if (tensor == nullptr) return -1;
  TensorUse t(tensor);
  if (!CanBeExported(t)) return -1;
  if (int code = TVMFFITensorToDLPackVersioned(t.object(), out)) {
    RaiseFromCall(code);
    return -1;
  }
  return 0;
}

int OwnFromManaged(DLManagedTensorVersioned* managed, void** out) {
  TVMFFIObject* h = ImportManaged(managed, ImportOptions());
  if (h == nullptr) {
    DeleteManaged(managed);
    return -1;
  }
  *out = WrapOwned(h);
  return *out != nullptr ? 0 : -1;
}

int OwnToDLTensor(void* obj, DLTensor* out) {
  PyObject* tensor = TensorIn(static_cast<PyObject*>(obj));
  if (tensor == nullptr) return -1;
  // A DLTensor cannot say that it is read-only, just as an unversioned capsule.
  DLManagedTensorVersioned* managed = nullptr;
  if (OwnToManaged(tensor, &managed) < 0) return -1;
  const bool read_only = (managed->flags & DLPACK_FLAG_BITMASK_READ_ONLY) != 0;
  DeleteManaged(managed);
  if (read_only) {
    PyErr_SetString(PyExc_BufferError, "a read-only tensor cannot be lent as a DLTensor");
    return -1;
  }
  TensorUse t(tensor);
  if (!t) return -1;
  *out = *t;
  return 0;
}

int OwnStream(DLDeviceType type, int32_t id, void** out) {
  *out = type != kDLCPU ? TVMFFIEnvGetStream(type, id) : nullptr;
  return 0;
}

constexpr DLPackExchangeAPIHeader kOwnHeader = {{DLPACK_MAJOR_VERSION, DLPACK_MINOR_VERSION},
                                                nullptr};
const DLPackExchangeAPI own_api = {kOwnHeader,     OwnAllocate,   OwnToManaged,
                                   OwnFromManaged, OwnToDLTensor, OwnStream};
// As sparse as the interface allows.
const DLPackExchangeAPI test_api = {kOwnHeader,     nullptr, OwnToManaged,
                                    OwnFromManaged, nullptr, OwnStream};

// ---- a foreign tensor class for tests

int InitTestWrapper(PyObject* self, PyObject* args, PyObject* kwargs) {
  static const char* names[] = {"tensor", nullptr};
  PyObject* tensor;
  if (!PyArg_ParseTupleAndKeywords(args, kwargs, "O!:DLTensorTestWrapper",
                                   const_cast<char**>(names), types.tensor, &tensor)) {
    return -1;
  }
  Py_XSETREF(reinterpret_cast<TestWrapper*>(self)->tensor, Py_NewRef(tensor));
  return 0;
}

PyObject* NewTestWrapper(PyTypeObject* cls, PyObject* args, PyObject* kwargs) {
  PyObject* self = cls->tp_alloc(cls, 0);
  if (self == nullptr || InitTestWrapper(self, args, kwargs) == 0) return self;
  Py_DECREF(self);
  return nullptr;
}

void DeallocTestWrapper(PyObject* self) {
  PyTypeObject* type = Py_TYPE(self);
  Py_XDECREF(reinterpret_cast<TestWrapper*>(self)->tensor);
  type->tp_free(self);
  Py_DECREF(type);
}

PyObject* TestWrapperStream(PyObject* self, PyObject*) {
  TensorUse t(reinterpret_cast<TestWrapper*>(self)->tensor);
  if (!t) return nullptr;
  return PyLong_FromVoidPtr(TVMFFIEnvGetStream(t->device.device_type, t->device.device_id));
}

PyObject* TestWrapperDevice(PyObject* self, PyObject*) {
  return PyObject_CallMethod(reinterpret_cast<TestWrapper*>(self)->tensor, "__dlpack_device__",
                             nullptr);
}

PyObject* TestWrapperDLPack(PyObject* self, PyObject* args, PyObject* kwargs) {
  Ref method = Ref::Steal(
      PyObject_GetAttrString(reinterpret_cast<TestWrapper*>(self)->tensor, "__dlpack__"));
  return method ? PyObject_Call(method.get(), args, kwargs) : nullptr;
}

PyMethodDef test_wrapper_methods[] = {
    {"__tvm_ffi_env_stream__", Entry<TestWrapperStream>, METH_NOARGS, nullptr},
    {"__dlpack_device__", Entry<TestWrapperDevice>, METH_NOARGS, nullptr},
    {"__dlpack__", EntryOfAnyKind<TestWrapperDLPack>(), METH_VARARGS | METH_KEYWORDS, nullptr},
    {nullptr, nullptr, 0, nullptr}};

PyMemberDef test_wrapper_members[] = {
    {"tensor", T_OBJECT_EX, offsetof(TestWrapper, tensor), READONLY, "The tensor inside."},
    {nullptr, 0, 0, 0, nullptr}};

PyType_Slot test_wrapper_slots[] = {
    {Py_tp_doc, const_cast<char*>("Stands for the tensor class of another framework in tests.")},
    {Py_tp_new, Slot<NewTestWrapper>()},
    {Py_tp_init, Slot<InitTestWrapper>()},
    {Py_tp_dealloc, reinterpret_cast<void*>(DeallocTestWrapper)},
    {Py_tp_methods, test_wrapper_methods},
    {Py_tp_members, test_wrapper_members},
    {0, nullptr}};

PyType_Spec test_wrapper_spec = {"tvm_ffi.core.DLTensorTestWrapper", sizeof(TestWrapper), 0,
                                 Py_TPFLAGS_DEFAULT | Py_TPFLAGS_BASETYPE, test_wrapper_slots};

int AddExchangeAPI(PyTypeObject* type, const DLPackExchangeAPI* api) {
  Ref capsule = Ref::Steal(
      PyCapsule_New(const_cast<DLPackExchangeAPI*>(api), "dlpack_exchange_api", nullptr));
  if (!capsule) return -1;
  return PyObject_SetAttr(reinterpret_cast<PyObject*>(type), exchange_api_name, capsule.get());
}

// ---- from_dlpack

// NULL with an error set.
TVMFFIObject* ImportAnything(PyObject* obj, const ImportOptions& options) {
  if (PyCapsule_CheckExact(obj)) {
    return ImportCapsule(obj, options, PyExc_TypeError,
                         "Expect from_dlpack to take either a compatible tensor or PyCapsule");
  }
  if (Py_TYPE(obj) == FindNumpyArrayType()) return ImportArray(obj, options);
  if (!CheckNoLazySigns(obj)) return nullptr;
  Ref attribute = Ref::Steal(PyObject_GetAttr(obj, exchange_api_name));
  if (attribute) {
    const DLPackExchangeAPI* api = ParseExchangeAPI(attribute.get());
    TVMFFIObject* h = api != nullptr ? ImportByAPI(obj, api, options) : nullptr;
    if (h != nullptr || !PyErr_ExceptionMatches(PyExc_BufferError)) return h;
  }
  PyErr_Clear();
  int has_method = PyObject_HasAttr(obj, dlpack_name);
  if (has_method != 0) return ImportFromMethod(obj, options);
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
  if (!ReadKeywords("from_dlpack", args + nargs, kwnames, from_dlpack_keywords, 3, given)) {
    return nullptr;
  }
  if (nargs == 1) given[0] = args[0];
  if (given[0] == nullptr) {
    return PyErr_Format(PyExc_TypeError, "from_dlpack() misses its argument 'ext_tensor'");
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

bool SkipsExchangeAPI() {
  const char* setting = std::getenv("TVM_FFI_SKIP_DLPACK_C_EXCHANGE_API");
  return setting != nullptr && std::strcmp(setting, "1") == 0;
}

}  // namespace

void ForgetExchangeAPI(PyTypeObject* cls) {
  std::lock_guard<ShortLock> guard(known_apis_lock);
  for (KnownAPI* known = known_apis.load(); known != nullptr; known = known->next) {
    if (known->type.load() == cls) known->type.store(nullptr);
  }
}

const DLPackExchangeAPI* ExchangeAPIOf(PyObject* cls) {
  Ref attribute = Ref::Steal(PyObject_GetAttr(cls, exchange_api_name));
  return attribute ? ParseExchangeAPI(attribute.get()) : nullptr;
}

PyObject* MemoryOwnerOf(TVMFFIObject* tensor) {
  if (tensor->deleter == nullptr || tensor->deleter != python_tensor_deleter.load()) return nullptr;
  return ffi::details::ObjectUnsafe::RawObjectPtrFromUnowned<PythonTensorObj>(tensor)->owner();
}

DLManagedTensorVersioned* ExportTo(const DLPackExchangeAPI* api, TVMFFIObject* h) {
  DLManagedTensorVersioned* managed = nullptr;
  PyObject* owner = MemoryOwnerOf(h);
  if (owner != nullptr && FindKnownAPI(Py_TYPE(owner)) == api) {
    int code = api->managed_tensor_from_py_object_no_sync(owner, &managed);
    if (code == 0 && IsSameTensor(managed->dl_tensor, *TVMFFITensorGetDLTensorPtr(h))) {
      return managed;
    }
    if (code == 0) DeleteManaged(managed);  // changed in place since
    PyErr_Clear();
  }
  if (int code = TVMFFITensorToDLPackVersioned(h, &managed)) {
    RaiseFromCall(code);
    return nullptr;
  }
  // Not every framework has read-only tensors, and torch takes the flag without a word.
  if (TVM_FFI_PREDICT_FALSE((managed->flags & DLPACK_FLAG_BITMASK_READ_ONLY) != 0)) {
    DeleteManaged(managed);
    PyErr_SetString(PyExc_BufferError, "a read-only tensor stays a tvm_ffi.Tensor");
    return nullptr;
  }
  return managed;
}

bool IsOwnExchangeAPI(const DLPackExchangeAPI* api) { return api == &own_api || api == &test_api; }

int ResolveExchangeAPI(PyObject* obj, Setter* out) {
  PyTypeObject* type = Py_TYPE(obj);
  if (SkipsExchangeAPI() || !HasMethod(type, "__dlpack_c_exchange_api__")) return 0;
  if (FindKnownAPI(type) == nullptr) {
    const DLPackExchangeAPI* api = ExchangeAPIOf(reinterpret_cast<PyObject*>(type));
    if (api == nullptr) return -1;
    RememberAPI(type, api);
  }
  *out = HasLazySigns(type) ? SetWithLazySigns : SetByExchangeAPI;
  return 0;
}

int ResolveTorchTensor(PyObject* obj, Setter* out) {
  int is = IsInstanceOfLoaded(obj, "torch", "Tensor");
  if (is <= 0) return is;
  // An extension may bring what this torch lacks.
  Ref module = Ref::Steal(PyImport_ImportModule("tvm_ffi._optional_torch_c_dlpack"));
  Ref done = module
                 ? Ref::Steal(PyObject_CallMethod(module.get(), "_prepare_loaded_torch", nullptr))
                 : Ref();
  if (!done || ResolveExchangeAPI(obj, out) < 0) return -1;
  if (*out == nullptr) *out = SetTorchTensor;
  return 0;
}

int ResolveDLPack(PyObject* obj, Setter* out) {
  if (!HasMethod(Py_TYPE(obj), "__dlpack__")) return 0;
  *out = Py_TYPE(obj) == FindNumpyArrayType() ? SetNumpyArray : SetByDLPack;
  return 0;
}

bool SetTaggedContainer(PyObject* obj, const DLPackExchangeAPI* tag, TVMFFIAny* out,
                        Arguments* args) {
  if (!StoreWrapper(obj, out, args)) return false;
  CallContext* context = args->MutableContext();
  if (context->api == nullptr) context->api = tag;
  if (context->device_type != -1 || tag->current_work_stream == nullptr) return true;
  Ref done = Ref::Steal(Guarded([&]() -> PyObject* {
    static const auto find = ffi::Function::GetGlobalRequired("ffi.ContainerFindFirstNonCPUDevice");
    ffi::Any found = find(ffi::AnyView::CopyFromTVMFFIAny(*out));
    if (auto device = found.as<DLDevice>()) RecordStream(tag, *device, context);
    return Py_NewRef(Py_None);
  }));
  return static_cast<bool>(done);
}

int InitDLPack(PyObject* module) {
  dlpack_name = PyUnicode_InternFromString("__dlpack__");
  exchange_api_name = PyUnicode_InternFromString("__dlpack_c_exchange_api__");
  if (dlpack_name == nullptr || exchange_api_name == nullptr) return -1;
  is_conj_name = PyUnicode_InternFromString("is_conj");
  is_neg_name = PyUnicode_InternFromString("is_neg");
  resolve_conj_name = PyUnicode_InternFromString("resolve_conj");
  resolve_neg_name = PyUnicode_InternFromString("resolve_neg");
  if (is_conj_name == nullptr || is_neg_name == nullptr || resolve_conj_name == nullptr ||
      resolve_neg_name == nullptr) {
    return -1;
  }
  const char* const keywords[] = {"ext_tensor", "require_alignment", "require_contiguous"};
  for (size_t i = 0; i < 3; ++i) {
    from_dlpack_keywords[i] = PyUnicode_InternFromString(keywords[i]);
    if (from_dlpack_keywords[i] == nullptr) return -1;
  }
  test_wrapper_type = AddType(module, &test_wrapper_spec, nullptr);
  if (test_wrapper_type == nullptr || AddExchangeAPI(test_wrapper_type, &test_api) < 0) return -1;
  if (AddExchangeAPI(types.tensor, &own_api) < 0) return -1;
  Ref version = Ref::Steal(Py_BuildValue("(ii)", DLPACK_MAJOR_VERSION, DLPACK_MINOR_VERSION));
  if (!version || PyModule_AddObjectRef(module, "__dlpack_version__", version.get()) < 0) return -1;
  return PyModule_AddFunctions(module, dlpack_functions);
}

}  // namespace tether_py
