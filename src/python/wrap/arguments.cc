// SPDX-License-Identifier: Apache-2.0
// Arguments of calls, and what they keep alive.
#include "python/wrap/arguments.h"

#include <algorithm>

#include "core/stack_room.h"
#include "python/base/python_api.h"
#include "python/wrap/upper_layers.h"

namespace tether_py {

using ffi::TypeIndex;

namespace {

// Keeps an object that nobody else has for the next call. False if it is to be dropped.
bool Recycle(TVMFFIObject* h) {
  if (kFreeThreaded) return false;
  if (h->type_index == TypeIndex::kTVMFFIFunction) return upper_layers.recycle_callback(h);
  return h->type_index == TypeIndex::kTVMFFITensor && upper_layers.recycle_tensor(h);
}

}  // namespace

void Arguments::LetGo() {
  if (TVM_FFI_PREDICT_TRUE(PyErr_Occurred() == nullptr)) return LetGoOfAll();
  ErrorAside failure_of_the_call;
  LetGoOfAll();
}

void Arguments::LetGoOfAll() {
  size_ = 0;  // what dies may run code that moves an argument; nothing is added here any more
  while (num_kept_ != 0) {
    TVMFFIObject* h = kept_[--num_kept_];
    if (h != nullptr && !Recycle(h)) Engine::DropStrong(h);
  }
  if (TVM_FFI_PREDICT_FALSE(rest_ != nullptr)) LetGoOfRest();
}

void Arguments::LetGoOfRest() {
  delete rest_;
  rest_ = nullptr;
}

Arguments::Rest::~Rest() {
  for (TVMFFIObject* value : values) Engine::DropStrong(value);
  for (std::unique_ptr<Moved>& it : moved) {
    if (it->object == nullptr) continue;
    Wrapper* w = AsWrapper(it->wrapper.get());
    CriticalSection section(AsObject(w));
    if (w->handle.load(std::memory_order_relaxed) == tie::kEmpty) {
      Engine::Attach(w, it->object, Engine::FindSlot(it->object));
    } else {
      Engine::DropStrong(it->object);  // the wrapper was given another object meanwhile
    }
  }
  PyMem_Free(data);
}

bool Arguments::ReserveMore(Py_ssize_t n) {
  if (n > INT32_MAX) {
    PyErr_SetString(PyExc_OverflowError, "too many arguments");
    return false;
  }
  Rest* rest = MutableRest();
  auto* data = static_cast<TVMFFIAny*>(PyMem_Malloc(static_cast<size_t>(n) * sizeof(TVMFFIAny)));
  if (data == nullptr) {
    PyErr_NoMemory();
    return false;
  }
  std::copy(data_, data_ + size_, data);
  data_ = rest->data = data;
  return true;
}

void Arguments::KeepMore(TVMFFIObject* owned) {
  if (num_kept_ != kInlineKept) {
    kept_[num_kept_++] = owned;
    return;
  }
  try {
    MutableRest()->values.push_back(owned);
  } catch (const std::bad_alloc&) {
    Engine::DropStrong(owned);
    throw;
  }
}

void Arguments::Keep(Ref obj) { MutableRest()->objects.push_back(std::move(obj)); }

TVMFFIObject** Arguments::MoveOut(Wrapper* w) {
  // The place first: what is taken out has to go somewhere.
  std::vector<std::unique_ptr<Moved>>& moved = MutableRest()->moved;
  moved.push_back(std::make_unique<Moved>(Moved{nullptr, Ref::Borrow(AsObject(w))}));
  TVMFFIObject** place = &moved.back()->object;
  {
    CriticalSection section(AsObject(w));
    *place = TakeHandle(w);
  }
  if (*place == nullptr) {
    SetNoHandleError(w);
    return nullptr;
  }
  return place;
}

// ---- calls in progress ----

// Whether the list may be read. While the interpreter shuts down it has calls of threads that
// CPython has ended.
static bool IsReadable() { return kEndedThreadsStop || !IsFinalizing(); }

// The first call for which f(call) is true, or NULL. Only if the list is readable.
template <typename F>
CallArguments* CallArguments::Find(F&& f) {
  CallArguments* call = innermost_;
  while (call != nullptr && !f(call)) call = call->outer_;
  return call;
}

bool CallArguments::Borrows(TVMFFIObject* h) const {
  for (int32_t i = 0; i < size_; ++i) {
    const TVMFFIAny& arg = data_[i];
    if (arg.type_index >= TypeIndex::kTVMFFIStaticObjectBegin && arg.v_obj == h) return true;
  }
  return false;
}

void CallArguments::ForEachObject(VisitObject visit, void* context) {
  if (!IsReadable()) return;
  Find([visit, context](CallArguments* call) {
    for (int32_t i = 0; i < call->num_kept_; ++i) {
      if (call->kept_[i] != nullptr) visit(context, call->kept_[i], true);
    }
    if (call->HoldsSomething() && call->rest_ != nullptr) {
      for (TVMFFIObject* value : call->rest_->values) visit(context, value, true);
    }
    for (int32_t i = 0; i < call->size_; ++i) {
      const TVMFFIAny& arg = call->data_[i];
      if (arg.type_index >= TypeIndex::kTVMFFIStaticObjectBegin) visit(context, arg.v_obj, false);
    }
    return false;
  });
}

void CallArguments::LeaveFromWithin() {
  if (!IsReadable()) return;
  CallArguments* inner = Find([this](CallArguments* call) { return call->outer_ == this; });
  if (inner != nullptr) inner->outer_ = outer_;
}

void CallArguments::HoldForAll(TVMFFIObject* h) {
  if (!IsReadable()) return;
  Find([h](CallArguments* call) {
    if (call->Borrows(h)) call->Hold(h);
    return false;
  });
}

bool CallArguments::IsAnyBorrowing(TVMFFIObject* h) {
  return !IsReadable() || Find([h](CallArguments* call) { return call->Borrows(h); }) != nullptr;
}

bool CallArguments::IsAnyElsewhere() {
  if (kFreeThreaded) return num_detached_.Get() != num_own_detached_;
  PyThreadState* here = PyThreadState_Get();
  return !IsReadable() ||
         Find([here](CallArguments* call) {
           return call->is_detached_ != 0 && call->thread_.load(std::memory_order_relaxed) != here;
         }) != nullptr;
}

// In the child of a fork: the calls of threads that do not exist there are still on the list, and
// their stacks will be used for something else.
void CallArguments::ForgetOtherThreads() {
  if (kFreeThreaded) return num_detached_.Add(num_own_detached_ - num_detached_.Get());
  ffi::tether::StackBounds stack = ffi::tether::FindStackBounds();
  CallArguments** link = &innermost_;
  while (CallArguments* call = *link) {
    bool is_mine = reinterpret_cast<uintptr_t>(call) - stack.lowest < stack.size;
    if (is_mine) {
      link = &call->outer_;
    } else {
      *link = call->outer_;
    }
  }
}

}  // namespace tether_py
