// SPDX-License-Identifier: Apache-2.0
// Arguments of calls, what they keep alive, and the list of calls in flight.
#ifndef TETHER_PYTHON_WRAP_ARGUMENTS_H_
#define TETHER_PYTHON_WRAP_ARGUMENTS_H_

#include <tvm/ffi/extra/c_env_api.h>

#include <memory>
#include <vector>

#include "python/wrap/wrapper.h"

namespace tether_py {

// What the arguments of a call say about where it works: the framework whose tensors came in, and
// the stream that is current for the first device that is not the CPU, or the one that an argument
// names itself (__tvm_ffi_env_stream__).
struct CallContext {
  const DLPackExchangeAPI* api;
  int32_t device_type;  // -1: none
  int32_t device_id;
  void* stream;

  void SetStream(DLDevice device, void* current) {
    device_type = device.device_type;
    device_id = device.device_id;
    stream = current;
  }
  void FillGapsFrom(const CallContext& other) {
    if (api == nullptr) api = other.api;
    if (device_type == -1) {
      device_type = other.device_type;
      device_id = other.device_id;
      stream = other.stream;
    }
  }
};

// Arguments of one call as borrowed values, and what must live until it returns. Every instance is
// of one of the two classes below: Conversion or CallArguments.
class Arguments {
 public:
  Arguments() = default;
  Arguments(const Arguments&) = delete;
  Arguments& operator=(const Arguments&) = delete;

  // False with an error set.
  bool Reserve(Py_ssize_t n) { return TVM_FFI_PREDICT_TRUE(n <= kInline) || ReserveMore(n); }
  // All in convert/convert.h. AddAllAfterSelf: AddSelf has added the first one.
  bool Add(PyObject* arg);
  bool AddAll(PyObject* const* args, Py_ssize_t n);
  bool AddAllAfterSelf(PyObject* const* args, Py_ssize_t n);
  // The first one, the ActiveObject of a plain wrapper.
  void AddSelf(TVMFFIObject* self);
  void AddInt(int64_t value) {
    TVMFFIAny* out = &inline_[size_++];  // there is room for it: it comes right after AddSelf
    out->type_index = ffi::TypeIndex::kTVMFFIInt;
    out->zero_padding = 0;
    out->v_int64 = value;
  }
  void AddPointer(void* pointer) {
    TVMFFIAny* out = &data_[size_++];
    out->type_index = ffi::TypeIndex::kTVMFFIOpaquePtr;
    out->zero_padding = 0;
    out->v_ptr = pointer;
  }
  TVMFFIAny* data() { return data_; }
  int32_t size() const { return size_; }

  // NULL when no argument was a tensor or held one, which is nearly always.
  CallContext* context() { return HoldsSomething() ? context_ : nullptr; }
  CallContext* MutableContext() {
    SayThatThereIsSomething();
    if (context_ == nullptr) {
      context_storage_ = CallContext{nullptr, -1, 0, nullptr};
      context_ = &context_storage_;
    }
    return context_;
  }

  // For conversions: keep a value or a Python object until the call is over. These throw bad_alloc,
  // and have then let go of what they were given.
  void Keep(TVMFFIObject* owned) {
    if (TVM_FFI_PREDICT_FALSE(num_kept_ != 0)) return KeepMore(owned);
    rest_ = nullptr;
    context_ = nullptr;
    kept_[0] = owned;
    num_kept_ = 1;
  }
  void Keep(const TVMFFIAny& owned) {
    if (owned.type_index >= ffi::TypeIndex::kTVMFFIStaticObjectBegin) Keep(owned.v_obj);
  }
  void Keep(Ref obj);
  void Hold(TVMFFIObject* h) {
    Engine::AddStrong(h);
    Keep(h);
  }
  // No argument is borrowed any more.
  void ForgetArguments() { size_ = 0; }
  // What is kept, if that is one object and nothing else; otherwise NULL.
  TVMFFIObject* OnlyKept() const { return num_kept_ == 1 && rest_ == nullptr ? kept_[0] : nullptr; }
  // The caller has taken that over, and the call is over: one store for all three.
  void ForgetOnlyKept() {
    size_ = 0;
    num_kept_ = 0;
    is_detached_ = 0;
  }
  // A slot the callee may take `w`'s object from; what it leaves goes back to `w`. NULL with an
  // error set. Throws bad_alloc.
  TVMFFIObject** MoveOut(Wrapper* w);

 protected:
  ~Arguments() = default;
  struct Moved {
    TVMFFIObject* object;
    Ref wrapper;
  };
  // What only a few calls need.
  struct Rest {
    TVMFFIAny* data = nullptr;  // of more arguments than there is room for in here
    std::vector<TVMFFIObject*> values;
    std::vector<Ref> objects;
    std::vector<std::unique_ptr<Moved>> moved;
    ~Rest();
  };
  bool HoldsSomething() const { return num_kept_ != 0; }
  void SayThatThereIsSomething() {
    if (num_kept_ == 0) Keep(static_cast<TVMFFIObject*>(nullptr));
  }
  Rest* MutableRest() {
    SayThatThereIsSomething();
    if (rest_ == nullptr) rest_ = new Rest();
    return rest_;
  }
  template <Py_ssize_t kFirst>
  bool AddFrom(PyObject* const* args, Py_ssize_t n);
  bool ReserveMore(Py_ssize_t n);
  void KeepMore(TVMFFIObject* owned);
  void LetGo();
  void LetGoOfAll();
  void LetGoOfRest();

  // Small, because nested lists have one of these on the stack for every level.
  static constexpr int32_t kInline = 8;
  static constexpr int32_t kInlineKept = 4;
  TVMFFIAny inline_[kInline];
  TVMFFIAny* data_ = inline_;
  int32_t size_ = 0;
  int16_t num_kept_ = 0;
  int16_t is_detached_ = 0;  // of a call that has let go of the GIL
  // These two have a value only while something is kept: most calls keep nothing.
  Rest* rest_;
  CallContext* context_;
  TVMFFIObject* kept_[kInlineKept];
  CallContext context_storage_;
};

// Of a conversion outside of a call, whose result is owned before any other Python code may run.
class Conversion final : public Arguments {
 public:
  ~Conversion() {
    if (TVM_FFI_PREDICT_FALSE(HoldsSomething())) LetGo();
  }
};

// Of a call; see "where user code may run" (wrapper.h). The list of calls is in here, on the stacks
// of their threads: within a thread they end in reverse order; calls of other threads may end at
// any time. In GIL builds only.
class CallArguments final : public Arguments {
 public:
  CallArguments() {
    if (kFreeThreaded) return;
    outer_ = innermost_;
    innermost_ = this;
  }
  ~CallArguments() {
    if (TVM_FFI_PREDICT_FALSE(HoldsSomething())) LetGo();
    if (kFreeThreaded) return;
    if (TVM_FFI_PREDICT_TRUE(innermost_ == this)) {
      innermost_ = outer_;
    } else {
      LeaveFromWithin();
    }
  }
  // To let go at once, where the call has succeeded (LetGoAfterSuccess in call/callback.h).
  using Arguments::HoldsSomething, Arguments::LetGoOfAll;

  // While the call has released the GIL. Its thread is known only then.
  void BeginDetached() {
    if (kFreeThreaded) return CountDetached(1);
    thread_.store(nullptr, std::memory_order_relaxed);
    is_detached_ = 1;
  }
  void SetThread(PyThreadState* thread) { thread_.store(thread, std::memory_order_relaxed); }
  void EndDetached() {
    if (kFreeThreaded) return CountDetached(-1);
    is_detached_ = 0;
  }
  // Whether another thread is in a call that has released the GIL. Those of this one wait for the
  // callback that runs here.
  static bool IsAnyElsewhere();
  // Whether a call has h as an argument.
  static bool IsAnyBorrowing(TVMFFIObject* h);
  // For each object of the calls in progress: is_held if the call has a reference of its own, and
  // otherwise as an argument. None in a free-threaded build, where the calls are not known.
  using VisitObject = void (*)(void* context, TVMFFIObject* h, bool is_held);
  static void ForEachObject(VisitObject visit, void* context);
  // Gives those calls a reference.
  static void HoldForAll(TVMFFIObject* h);
  static void ForgetOtherThreads();

 private:
  template <typename F>
  static CallArguments* Find(F&& f);
  bool Borrows(TVMFFIObject* h) const;
  void LeaveFromWithin();

  static inline CallArguments* innermost_ = nullptr;
  // Free-threaded builds: how many there are, and how many of them are this thread's.
  static inline SharedCount num_detached_;
  static inline thread_local int64_t num_own_detached_ = 0;
  static void CountDetached(int64_t n) {
    num_own_detached_ += n;
    num_detached_.Add(n);
  }
  CallArguments* outer_;
  std::atomic<PyThreadState*> thread_;
};

}  // namespace tether_py
#endif  // TETHER_PYTHON_WRAP_ARGUMENTS_H_
