// SPDX-License-Identifier: Apache-2.0
//
// VisitErrorContext::FindAccessPaths: searches a value for the chain of nodes an error went
// through.
#include <tvm/ffi/extra/visit_error_context.h>
#include <tvm/ffi/reflection/registry.h>

#include <utility>
#include <vector>

#include "object_graph.h"

namespace tvm {
namespace ffi {
namespace tether {
namespace {

using reflection::AccessPath;

// Outermost node first, without nulls and without repetitions. Read as raw values: the list is
// shared with other languages, which may have put anything into it.
std::vector<const Object*> NormalizedPattern(const ListObj& reverse_pattern) {
  std::vector<const Object*> pattern;
  for (size_t i = reverse_pattern.size(); i-- > 0;) {
    const auto* node = reverse_pattern.begin()[i].as<Object>();
    if (node != nullptr && (pattern.empty() || pattern.back() != node)) pattern.push_back(node);
  }
  return pattern;
}

struct SearchFrame {
  AccessPath path;
  size_t matched;   // how many pattern nodes are on the way to here
  size_t recorded;  // how many paths had been found before
};

class PathSearch : public GraphWalk<PathSearch, SearchFrame> {
 public:
  PathSearch(std::vector<const Object*> pattern, bool allow_prefix_match)
      : pattern_(std::move(pattern)), allow_prefix_match_(allow_prefix_match) {}

  Array<AccessPath> Run(const ObjectRef& root) {
    // A container has no place in a pattern, so nothing can be said about it as a root either.
    if (!pattern_.empty() && root.defined() && KindOfNode(root.type_index()) == NodeKind::kFields) {
      Visit(Any(root), AccessPath::Root(), 0);
      Drain(0);
    }
    return Array<AccessPath>(found_.begin(), found_.end());
  }

  void VisitChild(size_t index) {
    const Frame& parent = frames_.back();
    const Child& child = children_[index];
    if (child.value.type_index() < kTVMFFIStaticObjectBegin) return;
    size_t position = index - parent.first;
    const AccessPath& path = parent.data.path;
    switch (parent.kind) {
      case NodeKind::kSequence:
        Visit(child.value, path->ArrayItem(static_cast<int64_t>(position)), parent.data.matched);
        return;
      case NodeKind::kMapping: {
        if (position % 2 == 0 || children_[index - 1].value == nullptr) return;
        Visit(child.value, path->MapItem(children_[index - 1].value), parent.data.matched);
        return;
      }
      case NodeKind::kFields:
        Visit(child.value, path->Attr(String(child.field->name)), parent.data.matched);
        return;
    }
  }

  void Leave(Frame& frame) {
    on_path_[ObjectOf(frame.node)] = false;
    const SearchFrame& data = frame.data;
    bool dead_end = data.matched > 0 && found_.size() == data.recorded;
    if (allow_prefix_match_ && frame.kind == NodeKind::kFields && dead_end &&
        data.path->depth > 0) {
      found_.push_back(data.path);
    }
  }

  void Abandon(const Frame&) {}

 private:
  void Visit(Any value, AccessPath path, size_t matched) {
    const Object* node = ObjectOf(value);
    if (KindOfNode(node->type_index()) == NodeKind::kFields) {
      if (TVMFFIGetTypeInfo(node->type_index())->metadata == nullptr) return;
      if (node == pattern_[matched] && ++matched == pattern_.size()) {
        found_.push_back(std::move(path));
        return;
      }
    }
    if (on_path_[node]) return;
    size_t num_children = children_.size();
    try {
      Push(std::move(value), 0, {std::move(path), matched, found_.size()});
    } catch (const Error&) {
      // A field that cannot be read hides what is below; the error being explained matters more.
      DropChildren(num_children);
      return;
    }
    on_path_[node] = true;
  }

  std::vector<const Object*> pattern_;
  bool allow_prefix_match_;
  AddressMap<const Object*, bool> on_path_;
  std::vector<AccessPath> found_;
};

}  // namespace
}  // namespace tether

Array<reflection::AccessPath> VisitErrorContext::FindAccessPaths(const ObjectRef& root,
                                                                 const VisitErrorContext& context,
                                                                 bool allow_prefix_match) {
  const ListObj& pattern = *context->reverse_visit_pattern.GetListObj();
  return tether::PathSearch(tether::NormalizedPattern(pattern), allow_prefix_match).Run(root);
}

TVM_FFI_STATIC_INIT_BLOCK() {
  namespace refl = reflection;
  refl::ObjectDef<VisitErrorContextObj>(refl::init(false))
      .def_ro("reverse_visit_pattern", &VisitErrorContextObj::reverse_visit_pattern)
      .def_ro("prev_error_context", &VisitErrorContextObj::prev_error_context);
  refl::GlobalDef().def("ffi.VisitErrorContext.FindAccessPaths",
                        VisitErrorContext::FindAccessPaths);
}

}  // namespace ffi
}  // namespace tvm
