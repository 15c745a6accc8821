// SPDX-License-Identifier: Apache-2.0
// Lazy signs of torch: where the bits are, and tensors without them.
//
// Shared state:
//   the interned names   set at import, constant afterwards.
//   sign_bits            lock-free; set once. Threads that race find the same.
#include "python/data/torch_signs.h"

#include <algorithm>
#include <atomic>
#include <cstring>
#include <new>

#include "python/base/python_api.h"
#include "python/data/torch.h"

namespace tether_py {

namespace {

PyObject* is_conj_name = nullptr;
PyObject* is_neg_name = nullptr;
PyObject* resolve_conj_name = nullptr;
PyObject* resolve_neg_name = nullptr;

// 1 or 0, or -1 with an error set.
int Ask(PyObject* obj, PyObject* method) {
  Ref answer = Ref::Steal(PyObject_CallMethodNoArgs(obj, method));
  if (!answer) return -1;
  return answer.get() == Py_False ? 0 : PyObject_IsTrue(answer.get());
}

// ---- where the bits of the signs are
//
// To ask is_conj() and is_neg() costs more than the rest of an argument. torch keeps both bits in
// one word of its own tensor, to which the Python object points. Where these are is found by
// experiment, on tensors of the torch that is loaded: the two words must tell every sample right.

struct SignBits {
  PyTypeObject* base;  // the class that all tensors of torch have; NULL where the search failed
  size_t impl_at;      // in the Python object: the pointer to torch's own tensor
  size_t word_at;      // in that
  uint64_t mask;
};
std::atomic<const SignBits*> sign_bits{nullptr};

template <typename T>
T WordAt(const void* base, size_t offset) {
  T value;
  std::memcpy(&value, static_cast<const char*>(base) + offset, sizeof(T));
  return value;
}

// The address of torch's C++ tensor, from `_cdata`. NULL without an error if there is none, or
// where the part that is searched crosses into the next page.
constexpr size_t kSearched = 256;
const void* ImplOf(PyObject* tensor) {
  Ref address = Ref::Steal(PyObject_GetAttrString(tensor, "_cdata"));
  void* impl = address && PyLong_Check(address.get()) ? PyLong_AsVoidPtr(address.get()) : nullptr;
  PassOver();
  bool fits = reinterpret_cast<uintptr_t>(impl) % 4096 + kSearched <= 4096;
  return fits ? impl : nullptr;
}

bool IsOneBit(uint64_t word) { return word != 0 && (word & (word - 1)) == 0; }

// False, perhaps with an error set, if these samples do not show it. They are added to `tried`: the
// next ones lie elsewhere.
bool FindSignBits(PyObject* torch, PyObject* tried, SignBits* out) {
  // What each stands for: 1 negated, 2 conjugated.
  const char* const code =
      "def samples(torch):\n"
      "    real, complex_ = torch.zeros(3), torch.zeros(3, dtype=torch.complex64)\n"
      "    negated = torch._neg_view(real), torch._neg_view(complex_)\n"
      "    plain = real, complex_, real[1:], torch.nn.Parameter(real), torch.ones(2, 2).int()\n"
      "    return plain, negated, (complex_.conj(),), (torch._neg_view(complex_.conj()),)\n";
  Ref names = Ref::Steal(PyDict_New());
  if (!names || PyDict_SetItemString(names.get(), "__builtins__", PyEval_GetBuiltins()) < 0) {
    return false;
  }
  Ref done = Ref::Steal(PyRun_String(code, Py_file_input, names.get(), names.get()));
  PyObject* samples = done ? PyDict_GetItemString(names.get(), "samples") : nullptr;
  Ref groups = samples != nullptr ? Ref::Steal(PyObject_CallOneArg(samples, torch)) : Ref();
  if (!groups || PyList_Append(tried, groups.get()) < 0) return false;
  struct Sample {
    PyObject* tensor;
    const void* impl;
    int signs;
  };
  Sample found[16];
  size_t count = 0;
  for (int signs = 0; signs < 4; ++signs) {
    PyObject* group = PyTuple_GET_ITEM(groups.get(), signs);
    for (Py_ssize_t i = 0; i < PyTuple_GET_SIZE(group); ++i) {
      PyObject* tensor = PyTuple_GET_ITEM(group, i);
      found[count++] = {tensor, ImplOf(tensor), signs};
      if (found[count - 1].impl == nullptr) return false;
    }
  }
  auto all = [&](auto&& holds) { return std::all_of(found, found + count, holds); };
  size_t impl_at = sizeof(PyObject);
  auto points_there = [&](const Sample& s) {
    return WordAt<const void*>(s.tensor, impl_at) == s.impl;
  };
  const auto size = static_cast<size_t>(Py_TYPE(found[0].tensor)->tp_basicsize);
  while (impl_at + sizeof(void*) <= size && !all(points_there)) impl_at += sizeof(void*);
  if (impl_at + sizeof(void*) > size) return false;

  // By the order of the samples: the first two are plain, real and complex, the next but three are
  // their negations, then comes the conjugate.
  constexpr size_t kReal = 0, kComplex = 1, kNegated = 5, kConjugate = 7;
  int num_places = 0;
  for (size_t at = sizeof(void*); at + sizeof(uint64_t) <= kSearched; at += sizeof(uint64_t)) {
    auto word = [&](size_t i) { return WordAt<uint64_t>(found[i].impl, at); };
    uint64_t neg = word(kNegated) ^ word(kReal), conj = word(kConjugate) ^ word(kComplex);
    if (!IsOneBit(neg) || !IsOneBit(conj) || neg == conj) continue;
    bool tells_all = all([&](const Sample& s) {
      uint64_t expected = ((s.signs & 1) != 0 ? neg : 0) | ((s.signs & 2) != 0 ? conj : 0);
      return (WordAt<uint64_t>(s.impl, at) & (neg | conj)) == expected;
    });
    if (!tells_all) continue;
    *out = {out->base, impl_at, at, neg | conj};
    ++num_places;
  }
  return num_places == 1;
}

bool Covers(const SignBits& known, PyTypeObject* type) {
  return known.base != nullptr && PyType_IsSubtype(type, known.base) != 0;
}

// NULL if torch is not there yet, or memory is short.
const SignBits* LearnSignBits() {
  Ref torch = LoadedModule("torch");
  Ref base = torch ? TorchFunction({"_C", "TensorBase"}) : Ref();
  SignBits* found = base ? new (std::nothrow) SignBits{} : nullptr;
  PassOver();
  if (found == nullptr) return nullptr;
  if (PyType_Check(base.get())) found->base = reinterpret_cast<PyTypeObject*>(base.get());
  constexpr int kTries = 16;  // a sample may cross a page
  bool learned = false;
  Ref tried = Ref::Steal(PyList_New(0));
  for (int i = 0; i < kTries && found->base != nullptr && tried && !learned; ++i) {
    learned = FindSignBits(torch.get(), tried.get(), found);
    PassOver();
  }
  if (learned) {
    (void)base.release();  // kept as long as the process
  } else {
    found->base = nullptr;
  }
  const SignBits* none = nullptr;
  if (!sign_bits.compare_exchange_strong(none, found)) delete found;
  return sign_bits.load();
}

}  // namespace

bool HasLazySigns(PyTypeObject* type) {
  auto has = [type](PyObject* name) { return _PyType_Lookup(type, name) != nullptr; };
  return has(is_neg_name) && has(is_conj_name) && has(resolve_neg_name) && has(resolve_conj_name);
}

bool KnowsSignBits(PyTypeObject* type) {
  const SignBits* known = sign_bits.load(std::memory_order_acquire);
  if (known == nullptr) known = LearnSignBits();
  return known != nullptr && Covers(*known, type);
}

bool MayHaveSigns(PyObject* tensor) {
  const SignBits* known = sign_bits.load(std::memory_order_acquire);
  const void* impl = WordAt<const void*>(tensor, known->impl_at);
  return impl == nullptr || (WordAt<uint64_t>(impl, known->word_at) & known->mask) != 0;
}

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

bool CheckNoLazySigns(PyObject* obj) {
  const SignBits* known = sign_bits.load(std::memory_order_acquire);
  bool is_covered = known != nullptr && Covers(*known, Py_TYPE(obj));
  if (is_covered && !MayHaveSigns(obj)) return true;
  if (!HasLazySigns(Py_TYPE(obj))) return true;
  if (known == nullptr) KnowsSignBits(Py_TYPE(obj));  // the next one need not be asked
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

int InitTorchSigns() {
  is_conj_name = PyUnicode_InternFromString("is_conj");
  is_neg_name = PyUnicode_InternFromString("is_neg");
  resolve_conj_name = PyUnicode_InternFromString("resolve_conj");
  resolve_neg_name = PyUnicode_InternFromString("resolve_neg");
  bool done = is_conj_name != nullptr && is_neg_name != nullptr && resolve_conj_name != nullptr &&
              resolve_neg_name != nullptr;
  return done ? 0 : -1;
}

}  // namespace tether_py
