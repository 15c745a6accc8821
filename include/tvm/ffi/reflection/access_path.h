// SPDX-License-Identifier: Apache-2.0
// Where a value sits inside a structure: a chain of attribute, index and key steps.
//
//   AccessPath path = AccessPath::Root()->Attr("layers")->ArrayItem(3)->MapItem("name");
//   // prints as <root>.layers[3]["name"]
//
// A path is an immutable linked list from the leaf up, so extending one shares the prefix.
#ifndef TVM_FFI_REFLECTION_ACCESS_PATH_H_
#define TVM_FFI_REFLECTION_ACCESS_PATH_H_

#include <tvm/ffi/any.h>
#include <tvm/ffi/c_api.h>
#include <tvm/ffi/cast.h>
#include <tvm/ffi/container/array.h>
#include <tvm/ffi/container/tuple.h>
#include <tvm/ffi/error.h>
#include <tvm/ffi/optional.h>
#include <tvm/ffi/reflection/registry.h>
#include <tvm/ffi/string.h>

#include <utility>
#include <vector>

namespace tvm {
namespace ffi {
namespace reflection {

// Kind of a step; the Missing kinds name something that the other side has.
enum class AccessKind : int32_t {
  kAttr = 0,
  kArrayItem = 1,
  kMapItem = 2,
  kAttrMissing = 3,
  kArrayItemMissing = 4,
  kMapItemMissing = 5,
};

class AccessStep;
class AccessPath;

// One step: its kind and the attribute name, index or key.
class AccessStepObj : public Object {
 public:
  AccessKind kind;
  Any key;

  AccessStepObj() : kind(AccessKind::kAttr) {}
  AccessStepObj(AccessKind kind, Any key) : kind(kind), key(std::move(key)) {}

  inline bool StepEqual(const AccessStep& other) const;

  static constexpr TVMFFISEqHashKind _type_s_eq_hash_kind = kTVMFFISEqHashKindConstTreeNode;
  TVM_FFI_DECLARE_OBJECT_INFO_FINAL("ffi.reflection.AccessStep", AccessStepObj, Object);
};

class AccessStep : public ObjectRef {
 public:
  AccessStep(AccessKind kind, Any key) { data_ = make_object<AccessStepObj>(kind, std::move(key)); }

  static AccessStep Attr(String field_name) {
    return AccessStep(AccessKind::kAttr, Any(std::move(field_name)));
  }
  static AccessStep AttrMissing(String field_name) {
    return AccessStep(AccessKind::kAttrMissing, Any(std::move(field_name)));
  }
  static AccessStep ArrayItem(int64_t index) { return AccessStep(AccessKind::kArrayItem, index); }
  static AccessStep ArrayItemMissing(int64_t index) {
    return AccessStep(AccessKind::kArrayItemMissing, index);
  }
  static AccessStep MapItem(Any key) { return AccessStep(AccessKind::kMapItem, std::move(key)); }
  static AccessStep MapItemMissing(Any key = nullptr) {
    return AccessStep(AccessKind::kMapItemMissing, std::move(key));
  }

  TVM_FFI_DEFINE_OBJECT_REF_METHODS_NOTNULLABLE(AccessStep, ObjectRef, AccessStepObj);
};

inline bool AccessStepObj::StepEqual(const AccessStep& other) const {
  return kind == other->kind && AnyEqual()(key, other->key);
}

// A path: its last step and the path before it. The root has neither.
class AccessPathObj : public Object {
 public:
  // An AccessPath, typed as its base because the class is still incomplete here.
  Optional<ObjectRef> parent;
  Optional<AccessStep> step;
  int32_t depth;

  AccessPathObj() : depth(0) {}
  AccessPathObj(Optional<ObjectRef> parent, Optional<AccessStep> step, int32_t depth)
      : parent(std::move(parent)), step(std::move(step)), depth(depth) {}

  inline Optional<AccessPath> GetParent() const;
  inline AccessPath Extend(AccessStep step) const;
  inline AccessPath Attr(String field_name) const;
  inline AccessPath AttrMissing(String field_name) const;
  inline AccessPath ArrayItem(int64_t index) const;
  inline AccessPath ArrayItemMissing(int64_t index) const;
  inline AccessPath MapItem(Any key) const;
  inline AccessPath MapItemMissing(Any key) const;
  // The steps, first one first.
  inline Array<AccessStep> ToSteps() const;
  inline bool PathEqual(const AccessPath& other) const;
  // Whether `other` begins with this path; a path is a prefix of itself.
  inline bool IsPrefixOf(const AccessPath& other) const;

  static constexpr TVMFFISEqHashKind _type_s_eq_hash_kind = kTVMFFISEqHashKindConstTreeNode;
  TVM_FFI_DECLARE_OBJECT_INFO_FINAL("ffi.reflection.AccessPath", AccessPathObj, Object);

 private:
  const AccessPathObj* ParentPtr() const { return static_cast<const AccessPathObj*>(parent.get()); }
  static inline bool StepsEqual(const AccessPathObj* lhs, const AccessPathObj* rhs);
};

class AccessPath : public ObjectRef {
 public:
  static AccessPath Root() {
    return AccessPath(make_object<AccessPathObj>(std::nullopt, std::nullopt, 0));
  }

  template <typename Iter>
  static AccessPath FromSteps(Iter begin, Iter end) {
    AccessPath path = Root();
    for (Iter it = begin; it != end; ++it) path = path->Extend(*it);
    return path;
  }
  static AccessPath FromSteps(const Array<AccessStep>& steps) {
    return FromSteps(steps.begin(), steps.end());
  }

  TVM_FFI_DEFINE_OBJECT_REF_METHODS_NOTNULLABLE(AccessPath, ObjectRef, AccessPathObj);

 private:
  friend class AccessPathObj;
  explicit AccessPath(ObjectPtr<AccessPathObj> ptr) : ObjectRef(std::move(ptr)) {}
};

// The same place in two structures.
using AccessPathPair = Tuple<AccessPath, AccessPath>;

inline Optional<AccessPath> AccessPathObj::GetParent() const {
  if (!parent.has_value()) return std::nullopt;
  return GetRef<AccessPath>(ParentPtr());
}

inline AccessPath AccessPathObj::Extend(AccessStep step) const {
  return AccessPath(
      make_object<AccessPathObj>(GetRef<ObjectRef>(this), std::move(step), depth + 1));
}

inline AccessPath AccessPathObj::Attr(String field_name) const {
  return Extend(AccessStep::Attr(std::move(field_name)));
}

inline AccessPath AccessPathObj::AttrMissing(String field_name) const {
  return Extend(AccessStep::AttrMissing(std::move(field_name)));
}

inline AccessPath AccessPathObj::ArrayItem(int64_t index) const {
  return Extend(AccessStep::ArrayItem(index));
}

inline AccessPath AccessPathObj::ArrayItemMissing(int64_t index) const {
  return Extend(AccessStep::ArrayItemMissing(index));
}

inline AccessPath AccessPathObj::MapItem(Any key) const {
  return Extend(AccessStep::MapItem(std::move(key)));
}

inline AccessPath AccessPathObj::MapItemMissing(Any key) const {
  return Extend(AccessStep::MapItemMissing(std::move(key)));
}

inline Array<AccessStep> AccessPathObj::ToSteps() const {
  std::vector<AccessStep> steps;
  for (const AccessPathObj* path = this; path->step.has_value(); path = path->ParentPtr()) {
    steps.push_back(*path->step);
    if (!path->parent.has_value()) break;
  }
  return Array<AccessStep>(steps.rbegin(), steps.rend());
}

inline bool AccessPathObj::StepsEqual(const AccessPathObj* lhs, const AccessPathObj* rhs) {
  // Equal depths: both walks end together, at the latest at the root.
  while (lhs != rhs) {
    if (lhs == nullptr || rhs == nullptr) return false;
    if (lhs->step.has_value() != rhs->step.has_value()) return false;
    if (lhs->step.has_value() && !(*lhs->step)->StepEqual(*rhs->step)) return false;
    lhs = lhs->ParentPtr();
    rhs = rhs->ParentPtr();
  }
  return true;
}

inline bool AccessPathObj::PathEqual(const AccessPath& other) const {
  return depth == other->depth && StepsEqual(this, other.get());
}

inline bool AccessPathObj::IsPrefixOf(const AccessPath& other) const {
  const AccessPathObj* path = other.get();
  while (path != nullptr && path->depth > depth) path = path->ParentPtr();
  return path != nullptr && path->depth == depth && StepsEqual(this, path);
}

static_assert(sizeof(void*) != 8 || (sizeof(AccessStepObj) == 48 && sizeof(AccessPathObj) == 48),
              "layouts are inlined in clients");

}  // namespace reflection
}  // namespace ffi
}  // namespace tvm
#endif  // TVM_FFI_REFLECTION_ACCESS_PATH_H_
