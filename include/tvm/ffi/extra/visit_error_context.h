// SPDX-License-Identifier: Apache-2.0
//
// Where in a value did a visit fail? Each visit function on the way out of an error adds the node
// it was looking at; later the list of nodes is turned into access paths.
//
//   void Check(const Node& node) {
//     TVM_FFI_VISIT_BEGIN();
//     if (node->bad) TVM_FFI_VISIT_THROW(ValueError, node) << "bad node";
//     for (Node child : node->children) Check(child);
//     TVM_FFI_VISIT_END(node);
//   }
//   try { Check(root); } catch (const Error& err) {
//     auto context = VisitErrorContext::TryGetFromError(err);
//     VisitErrorContext::FindAccessPaths(root, context.value());   // [<root>.children[2]]
//   }
#ifndef TVM_FFI_EXTRA_VISIT_ERROR_CONTEXT_H_
#define TVM_FFI_EXTRA_VISIT_ERROR_CONTEXT_H_

#include <tvm/ffi/container/array.h>
#include <tvm/ffi/container/list.h>
#include <tvm/ffi/error.h>
#include <tvm/ffi/expected.h>
#include <tvm/ffi/extra/base.h>
#include <tvm/ffi/memory.h>
#include <tvm/ffi/object.h>
#include <tvm/ffi/optional.h>
#include <tvm/ffi/reflection/access_path.h>

#include <new>
#include <optional>
#include <utility>

namespace tvm {
namespace ffi {

/*! \brief The nodes a failed visit was in, kept as the extra context of its error. */
class VisitErrorContextObj : public Object {
 public:
  /*! \brief Innermost node first. */
  List<ObjectRef> reverse_visit_pattern;
  /*! \brief The extra context the error had before, if any. */
  Optional<ObjectRef> prev_error_context;

  VisitErrorContextObj() = default;

  static constexpr bool _type_mutable = true;
  TVM_FFI_DECLARE_OBJECT_INFO_FINAL("ffi.VisitErrorContext", VisitErrorContextObj, Object);
};

static_assert(sizeof(VisitErrorContextObj) == 40, "fixed by the ABI");

/*! \brief Reference to a VisitErrorContextObj, never null. */
class VisitErrorContext : public ObjectRef {
 public:
  explicit VisitErrorContext(ObjectPtr<VisitErrorContextObj> data) {
    data_ = std::move(data);
    TVM_FFI_ICHECK_NOTNULL(data_.get());
  }

  /*! \brief The context of an error, if it carries one. */
  static Optional<VisitErrorContext> TryGetFromError(const Error& error) {
    std::optional<ObjectRef> context = error.extra_context();
    if (!context.has_value()) return std::nullopt;
    return context->as<VisitErrorContext>();
  }

  /*!
   * \brief All places of a value that match the nodes of a context, outermost first.
   * \param allow_prefix_match Also report where only the outer part of the nodes could be found.
   */
  TVM_FFI_EXTRA_CXX_API static Array<reflection::AccessPath> FindAccessPaths(
      const ObjectRef& root, const VisitErrorContext& context, bool allow_prefix_match = false);

  TVM_FFI_DEFINE_OBJECT_REF_METHODS_NOTNULLABLE(VisitErrorContext, ObjectRef, VisitErrorContextObj);
};

namespace detail {

/*! \brief A context that begins at `node`. */
inline VisitErrorContext MakeVisitErrorContext(const ObjectRef& node) {
  ObjectPtr<VisitErrorContextObj> context = make_object<VisitErrorContextObj>();
  context->reverse_visit_pattern.push_back(node);
  return VisitErrorContext(std::move(context));
}

}  // namespace detail

namespace tether {

// The error that the runtime has ready belongs to all threads, and never dies.
inline bool IsReadyMade(const Error& error) {
  return ToView(error->kind) == "MemoryError" && ToView(error->message) == "out of memory";
}

inline void AddToVisitErrorContext(const Error& error, const ObjectRef& node) {
  using detail::ObjectUnsafe;
  if (Optional<VisitErrorContext> context = VisitErrorContext::TryGetFromError(error)) {
    context.value()->reverse_visit_pattern.push_back(node);
    return;
  }
  VisitErrorContext context = detail::MakeVisitErrorContext(node);
  TVMFFIErrorCell* cell = TVMFFIErrorGetCellPtr(ObjectUnsafe::TVMFFIObjectPtrFromObjectRef(error));
  if (std::optional<ObjectRef> previous = error.extra_context()) {
    context->prev_error_context = *std::move(previous);
  }
  TVMFFIObjectHandle old = cell->extra_context;
  cell->extra_context = ObjectUnsafe::MoveObjectRefToTVMFFIObjectPtr(std::move(context));
  ObjectUnsafe::DecRefObjectHandle(old);
}

}  // namespace tether

namespace detail {

/*! \brief Adds `node` as the next outer node to the error itself, which all its holders then see.
 * Where there is no memory for it, the error stays as it is. */
inline void UpdateVisitErrorContext(Error& error, const ObjectRef& node) noexcept {  // NOLINT(*)
  if (tether::IsReadyMade(error)) return;
  try {
    tether::AddToVisitErrorContext(error, node);
  } catch (const std::bad_alloc&) {
  }
}

/*! \brief The same for any value; what is not an object adds nothing. */
inline void UpdateVisitErrorContext(Error& error, AnyView node) {  // NOLINT(*)
  if (node.type_index() < TypeIndex::kTVMFFIStaticObjectBegin) return;
  UpdateVisitErrorContext(error, node.cast<ObjectRef>());
}

/*! \brief The same for an error in its raw form, which stays owned by the caller. */
inline void UpdateVisitErrorContext(const TVMFFIAny& raw_error, AnyView node) {
  Error error = ObjectUnsafe::ObjectRefFromObjectPtr<Error>(
      ObjectUnsafe::ObjectPtrFromUnowned<Object>(raw_error.v_obj));
  UpdateVisitErrorContext(error, node);
}

}  // namespace detail

/*! \brief Opens a region whose errors get `node` of the matching TVM_FFI_VISIT_END as context. */
#define TVM_FFI_VISIT_BEGIN() try {
/*! \brief Closes the region: errors are rethrown with the node added. */
#define TVM_FFI_VISIT_END(node)                                              \
  }                                                                          \
  catch (::tvm::ffi::Error & tvm_ffi_visit_error_) {                         \
    ::tvm::ffi::detail::UpdateVisitErrorContext(tvm_ffi_visit_error_, node); \
    throw;                                                                   \
  }
/*! \brief Closes the region: errors are returned as Unexpected with the node added. */
#define TVM_FFI_VISIT_END_RETURN_EXPECTED(node)                              \
  }                                                                          \
  catch (::tvm::ffi::Error & tvm_ffi_visit_error_) {                         \
    ::tvm::ffi::detail::UpdateVisitErrorContext(tvm_ffi_visit_error_, node); \
    return ::tvm::ffi::Unexpected(std::move(tvm_ffi_visit_error_));          \
  }
/*! \brief TVM_FFI_THROW whose error has a context that begins at `node`. */
#define TVM_FFI_VISIT_THROW(ErrorKind, node)                                                 \
  ::tvm::ffi::detail::ErrorBuilder(                                                          \
      #ErrorKind, TVMFFIBacktrace(__FILE__, __LINE__, TVM_FFI_FUNC_SIG, 0),                  \
      (TVM_FFI_ALWAYS_LOG_BEFORE_THROW != 0), std::nullopt,                                  \
      std::optional<::tvm::ffi::ObjectRef>(::tvm::ffi::detail::MakeVisitErrorContext(node))) \
      .stream()

}  // namespace ffi
}  // namespace tvm

#endif  // TVM_FFI_EXTRA_VISIT_ERROR_CONTEXT_H_
