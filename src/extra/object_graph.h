// SPDX-License-Identifier: Apache-2.0
//
// What the recursive operations share: how an object splits into children, a walk over the object
// graph that keeps its own stack, a map keyed by addresses, and the callback handed to user hooks.
//
// A walk is a class derived from GraphWalk. It looks at one value at a time; a value that is a leaf
// is handled at once, any other one is pushed and its children come next:
//
//   class CountNodes : public GraphWalk<CountNodes> {
//    public:
//     size_t Count(const Any& root) { Visit(root); Drain(0); return count_; }
//     void VisitChild(size_t i) { Visit(children_[i].value); }
//     void Leave(Frame&) { ++count_; }
//     void Abandon(const Frame&) {}
//    private:
//     void Visit(const Any& v) { if (v.type_index() >= kTVMFFIStaticObjectBegin) Push(v, 0); }
//     size_t count_ = 0;
//   };
#ifndef TETHER_EXTRA_OBJECT_GRAPH_H_
#define TETHER_EXTRA_OBJECT_GRAPH_H_

#include <tvm/ffi/any.h>
#include <tvm/ffi/container/array.h>
#include <tvm/ffi/container/dict.h>
#include <tvm/ffi/container/list.h>
#include <tvm/ffi/container/map.h>
#include <tvm/ffi/error.h>
#include <tvm/ffi/function.h>
#include <tvm/ffi/memory.h>
#include <tvm/ffi/reflection/accessor.h>

#include <algorithm>
#include <cstddef>
#include <cstdint>
#include <memory>
#include <optional>
#include <string>
#include <string_view>
#include <utility>
#include <vector>

#include "core/object_lock.h"
#include "core/stack_room.h"

namespace tvm {
namespace ffi {
namespace tether {

/*! \brief Objects on the path from the root; far beyond any real data, far below what memory holds.
 */
inline constexpr size_t kMaxGraphDepth = size_t{1} << 20;
/*! \brief Hooks that ask about parts recurse on the native stack, and may use this much of it. */
inline constexpr uintptr_t kMaxHookStack = 2 * 1024 * 1024;
inline constexpr const char* kHooksUsedUpStack =
    "type attribute hooks are nested too deeply (the stack of this thread is nearly used up)";

enum class NodeKind : uint8_t { kSequence, kMapping, kFields };

inline NodeKind KindOfNode(int32_t type_index) {
  switch (type_index) {
    case kTVMFFIArray:
    case kTVMFFIList:
      return NodeKind::kSequence;
    case kTVMFFIMap:
    case kTVMFFIDict:
      return NodeKind::kMapping;
    default:
      return NodeKind::kFields;
  }
}

inline const Object* ObjectOf(const Any& value) {
  return details::AnyUnsafe::ObjectPtrFromAnyAfterCheck(value);
}

inline std::string_view TypeKeyOf(int32_t type_index) {
  return ToView(TVMFFIGetTypeInfo(type_index)->type_key);
}

/*! \brief The index of a type that data names; data may know types that this process does not. */
inline int32_t IndexOfNamedType(std::string_view key) {
  TVMFFIByteArray bytes{key.data(), key.size()};
  constexpr int32_t kQueryOnly = -2;
  int32_t index = TVMFFITypeGetOrAllocIndex(&bytes, -1, 0, 0, 0, kQueryOnly);
  if (index < 0) {
    TVM_FFI_THROW(InternalError) << "Cannot find type `" << key << "`: nothing in this process "
                                 << "has registered it; load the module or library that does";
  }
  return index;
}

/*! \brief A setter knows what was wrong with the value; say which field of which type it was for.
 */
[[noreturn]] inline void RethrowWithField(std::string_view field, int32_t type_index,
                                          const Error& error) {
  if (error.kind() == EnvErrorAlreadySet().kind()) throw error;
  std::string message = "Field `" + std::string(field) + "` of type `" +
                        std::string(TypeKeyOf(type_index)) + "`: " + error.message();
  throw Error(error.kind(), std::move(message), error.backtrace(), error, std::nullopt);
}

/*! \brief Part of an object: an element, a key, a value, or a field (then `field` is set). */
struct Child {
  Any value;
  const TVMFFIFieldInfo* field;
};

/*! \brief Reserves space for `count` more, growing by at least half so that many small requests
 * stay cheap. */
inline void MakeRoom(size_t count, std::vector<Child>* out) {
  size_t needed = out->size() + count;
  if (needed > out->capacity())
    out->reserve(std::max(needed, out->capacity() + out->capacity() / 2));
}

/*! \brief The value of a field, also while other threads change it. */
inline Any ReadField(const TVMFFIFieldInfo* field, const Object* object) {
  ObjectLock lock(object);
  return reflection::FieldGetter(field)(object);
}

/*!
 * \brief Appends the children of an object: elements; key, value, key, value...; or the reflected
 * fields without any of `skip_flags`, ancestors first.
 *
 * Because they are copied, user hooks may change a List or a Dict during the walk, and so, under
 * the object's lock, may other threads.
 */
inline void AppendChildren(const Object* node, int64_t skip_flags, std::vector<Child>* out) {
  ObjectLock lock(node);
  switch (KindOfNode(node->type_index())) {
    case NodeKind::kSequence: {
      // Both sequences have the layout of SeqBaseObj, both mappings that of MapBaseObj.
      const auto* seq = static_cast<const SeqBaseObj*>(node);
      MakeRoom(seq->size(), out);
      for (const Any& item : *seq) out->push_back({item, nullptr});
      return;
    }
    case NodeKind::kMapping: {
      const auto* map = static_cast<const MapBaseObj*>(node);
      MakeRoom(2 * map->size(), out);
      for (const auto& [key, value] : *map) {
        out->push_back({key, nullptr});
        out->push_back({value, nullptr});
      }
      return;
    }
    case NodeKind::kFields:
      reflection::ForEachFieldInfo(TVMFFIGetTypeInfo(node->type_index()),
                                   [&](const TVMFFIFieldInfo* field) {
                                     if (field->flags & skip_flags) return;
                                     out->push_back({reflection::FieldGetter(field)(node), field});
                                   });
      return;
  }
}

/*!
 * \brief The entries of a map, to be walked while each key is looked up in another: the map itself,
 * or a copy of a Dict that the hooks of its keys might change meanwhile.
 */
inline ObjectPtr<Object> EntriesForLookups(const MapBaseObj& map) {
  if (map.type_index() == kTVMFFIDict) {
    for (const auto& entry : map) {
      int32_t type_index = entry.first.type_index();
      if (type_index > kTVMFFIBytes) return MapOps::Copy(&map);
    }
  }
  return details::ObjectUnsafe::ObjectPtrFromUnowned<Object>(const_cast<MapBaseObj*>(&map));
}

/*!
 * \brief Map keyed by addresses, or by pairs of them: open addressing, no removal.
 *
 * A fresh value is `Value{}`; references are valid until the next call of operator[].
 */
template <typename Key, typename Value>
class AddressMap {
 public:
  Value& operator[](Key key) {
    if (2 * (size_ + 1) > slots_.size()) Grow();
    Slot& slot = slots_[Probe(key)];
    if (slot.key == Key{}) {
      slot.key = key;
      ++size_;
    }
    return slot.value;
  }

  /*! \brief The value of a key, or null. */
  Value* Find(Key key) {
    if (slots_.empty()) return nullptr;
    Slot& slot = slots_[Probe(key)];
    return slot.key == Key{} ? nullptr : &slot.value;
  }

 private:
  struct Slot {
    Key key{};
    Value value{};
  };

  static uint64_t Mix(const void* address) {
    return reinterpret_cast<uintptr_t>(address) * uint64_t{0x9e3779b97f4a7c15};
  }
  static uint64_t Mix(const std::pair<const Object*, const Object*>& pair) {
    uint64_t first = Mix(static_cast<const void*>(pair.first));
    return (first ^ (first >> 29) ^ reinterpret_cast<uintptr_t>(pair.second)) *
           uint64_t{0x9e3779b97f4a7c15};
  }

  size_t Probe(const Key& key) const {
    size_t mask = slots_.size() - 1;
    size_t index = static_cast<size_t>(Mix(key) >> 20) & mask;
    while (!(slots_[index].key == Key{}) && !(slots_[index].key == key)) index = (index + 1) & mask;
    return index;
  }

  void Grow() {
    std::vector<Slot> old = std::move(slots_);
    slots_ = std::vector<Slot>(old.empty() ? 16 : 2 * old.size());
    for (Slot& slot : old) {
      if (!(slot.key == Key{})) slots_[Probe(slot.key)] = std::move(slot);
    }
  }

  std::vector<Slot> slots_;
  size_t size_ = 0;
};

/*! \brief Default for walks that need nothing of their own in a frame. */
struct NoFrameData {};

/*!
 * \brief Depth-first walk with an explicit stack.
 *
 * Derived supplies VisitChild(index into children_), called for each child in order and free to
 * Push; Leave(frame), called when all children of a frame are done and free to move from it;
 * Abandon(frame), called instead when an error cuts the walk short.
 */
template <typename Derived, typename FrameData = NoFrameData>
class GraphWalk {
 public:
  struct Frame {
    Any node;
    NodeKind kind;
    size_t
        first;  // children_[first, last) are this node's children, children_[next] the one to come
    size_t next;
    size_t last;
    FrameData data;
  };

 protected:
  void Push(Any node, int64_t skip_flags, FrameData data = {}) {
    if (frames_.size() >= kMaxGraphDepth) {
      TVM_FFI_THROW(ValueError) << "ObjectGraphDFS: maximum stack depth (" << kMaxGraphDepth
                                << ") exceeded";
    }
    const Object* object = ObjectOf(node);
    size_t first = children_.size();
    AppendChildren(object, skip_flags, &children_);
    frames_.push_back(Frame{std::move(node), KindOfNode(object->type_index()), first, first,
                            children_.size(), std::move(data)});
  }

  /*! \brief Works until the stack is back at `floor` frames. */
  void Drain(size_t floor) {
    while (frames_.size() > floor) {
      Frame& top = frames_.back();
      if (top.next < top.last) {
        derived()->VisitChild(top.next++);
        continue;
      }
      Frame done = std::move(top);
      frames_.pop_back();
      derived()->Leave(done);
      DropChildren(done.first);
    }
  }

  /*! \brief Runs a walk inside a walk, for a hook that called back; undone as a whole when it
   * throws. */
  template <typename Body>
  void Nested(Body&& body) {
    size_t floor = frames_.size();
    size_t first = children_.size();
    try {
      body();
      Drain(floor);
    } catch (...) {
      for (; frames_.size() > floor; frames_.pop_back()) derived()->Abandon(frames_.back());
      DropChildren(first);
      throw;
    }
  }

  // One by one: dropping a child may run user code, and that may call this walk again.
  void DropChildren(size_t first) {
    while (children_.size() > first) {
      Child gone = std::move(children_.back());
      children_.pop_back();
    }
  }

  std::vector<Child> children_;
  std::vector<Frame> frames_;

 private:
  Derived* derived() { return static_cast<Derived*>(this); }
};

/*!
 * \brief The function a walk passes to user hooks (`fn_repr`, `fn_hash`, ...).
 *
 * Made on first use. A hook may keep it; once the walk is over, calling it is an error.
 */
template <typename Walk>
class HookCallback {
 public:
  explicit HookCallback(Walk* walk) : walk_(std::make_shared<Walk*>(walk)) {}
  ~HookCallback() { *walk_ = nullptr; }
  HookCallback(const HookCallback&) = delete;
  HookCallback& operator=(const HookCallback&) = delete;

  /*! \brief Calls hook(args..., callback), where callback(x...) runs Method of the walk. */
  template <auto Method, typename... Args>
  Any Call(const Function& hook, Args&&... args) {
    if (function_ == nullptr) function_ = Wrap(Method);
    if (depth_ == 0) stack_begin_ = StackAddress();
    if (stack_begin_ - StackAddress() > kMaxHookStack) {
      TVM_FFI_THROW(ValueError) << "type attribute hooks are nested too deeply (they use more than "
                                << kMaxHookStack / 1024 << " KB of stack)";
    }
    if (IsStackLow()) TVM_FFI_THROW(ValueError) << kHooksUsedUpStack;
    ++depth_;
    struct Restore {
      int* depth;
      ~Restore() { --*depth; }
    } restore{&depth_};
    return hook(std::forward<Args>(args)..., function_);
  }

 private:
  template <typename R, typename... Args>
  Function Wrap(R (Walk::*method)(Args...)) {
    return Function::FromTyped([walk = walk_, method](Args... args) -> R {
      if (*walk == nullptr) {
        TVM_FFI_THROW(RuntimeError) << "the callback of a hook was called after its walk had ended";
      }
      return ((*walk)->*method)(args...);
    });
  }

  std::shared_ptr<Walk*> walk_;
  Function function_{nullptr};
  int depth_ = 0;
  uintptr_t stack_begin_ = 0;
};

}  // namespace tether
}  // namespace ffi
}  // namespace tvm

#endif  // TETHER_EXTRA_OBJECT_GRAPH_H_
