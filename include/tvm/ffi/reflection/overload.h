// SPDX-License-Identifier: Apache-2.0
// ObjectDef whose methods may be overloaded.
//
//   refl::OverloadObjectDef<PointObj>()
//       .def(refl::init<int64_t>())
//       .def(refl::init<int64_t, int64_t>())
//       .def("scale", refl::overload_cast<int64_t>(&PointObj::Scale))
//       .def("scale", refl::overload_cast<double>(&PointObj::Scale));
//
// All registrations of a name share one function that tries them in order and calls the first one
// that accepts the arguments, implicit conversions included: register the narrower overload first.
#ifndef TVM_FFI_REFLECTION_OVERLOAD_H_
#define TVM_FFI_REFLECTION_OVERLOAD_H_

#include <tvm/ffi/any.h>
#include <tvm/ffi/c_api.h>
#include <tvm/ffi/container/map.h>
#include <tvm/ffi/container/variant.h>
#include <tvm/ffi/function.h>
#include <tvm/ffi/function_detail.h>
#include <tvm/ffi/optional.h>
#include <tvm/ffi/reflection/registry.h>
#include <tvm/ffi/string.h>
#include <tvm/ffi/type_traits.h>

#include <iterator>
#include <memory>
#include <optional>
#include <string>
#include <tuple>
#include <type_traits>
#include <unordered_map>
#include <utility>
#include <vector>

namespace tvm {
namespace ffi {
namespace tether {

// Result of trying an overload; zero and above is the first argument that does not fit.
inline constexpr int32_t kMatched = -1;
inline constexpr int32_t kWrongCount = -2;

// How to name the type of one parameter, and a value that does not fit it.
struct ParamText {
  std::string (*expected)();
  std::string (*actual)(const TVMFFIAny* value);
};

template <typename T>
constexpr ParamText ParamTextOf() {
  using Type = std::remove_const_t<std::remove_reference_t<T>>;
  if constexpr (std::is_same_v<Type, Any> || std::is_same_v<Type, AnyView>) {
    return {&detail::Type2Str<Type>::v, nullptr};
  } else {
    return {&detail::Type2Str<Type>::v, &TypeTraits<Type>::GetMismatchTypeInfo};
  }
}

// One overload with its types erased.
class Overload {
 public:
  virtual ~Overload() = default;
  // Calls the function if the arguments fit it.
  virtual int32_t TryCall(const AnyView* args, int32_t num_args, Any* result) const = 0;
  // What TryCall would return, without calling.
  virtual int32_t Match(const AnyView* args, int32_t num_args) const = 0;
  virtual std::string Signature() const = 0;
  virtual int32_t NumParams() const = 0;
  virtual const ParamText* Params() const = 0;
};

template <typename F, typename ArgTuple>
class OverloadOf;

template <typename F, typename... Args>
class OverloadOf<F, std::tuple<Args...>> final : public Overload {
 public:
  explicit OverloadOf(F func) : func_(std::move(func)) {}

  int32_t TryCall(const AnyView* args, int32_t num_args, Any* result) const final {
    Slots slots;
    int32_t code = Load(kIndices, args, num_args, &slots);
    if (code == kMatched) Invoke(kIndices, &slots, result);
    return code;
  }
  int32_t Match(const AnyView* args, int32_t num_args) const final {
    Slots slots;
    return Load(kIndices, args, num_args, &slots);
  }
  std::string Signature() const final { return detail::FunctionInfo<F>::Sig(); }
  int32_t NumParams() const final { return static_cast<int32_t>(sizeof...(Args)); }
  const ParamText* Params() const final {
    static constexpr ParamText kParams[sizeof...(Args) + 1] = {ParamTextOf<Args>()..., {}};
    return kParams;
  }

 private:
  using Slots = std::tuple<std::optional<std::remove_const_t<std::remove_reference_t<Args>>>...>;
  static constexpr std::index_sequence_for<Args...> kIndices{};

  template <typename T>
  static bool LoadOne(AnyView value, std::optional<T>* slot) {
    if constexpr (std::is_same_v<T, Any> || std::is_same_v<T, AnyView>) {
      slot->emplace(value);
    } else {
      *slot = value.template try_cast<T>();
    }
    return slot->has_value();
  }

  template <size_t... I>
  static int32_t Load(std::index_sequence<I...>, [[maybe_unused]] const AnyView* args,
                      int32_t num_args, [[maybe_unused]] Slots* slots) {
    if (num_args != static_cast<int32_t>(sizeof...(I))) return kWrongCount;
    int32_t at = 0;
    bool fits = ((at = static_cast<int32_t>(I), LoadOne(args[I], &std::get<I>(*slots))) && ...);
    return fits ? kMatched : at;
  }

  template <size_t... I>
  void Invoke(std::index_sequence<I...>, [[maybe_unused]] Slots* slots, Any* result) const {
    using R = typename detail::FunctionInfo<F>::RetType;
    if constexpr (std::is_void_v<R>) {
      func_(*std::move(std::get<I>(*slots))...);
    } else {
      *result = R(func_(*std::move(std::get<I>(*slots))...));
    }
  }

  F func_;
};

// The packed function behind an overloaded name.
class OverloadSet {
 public:
  explicit OverloadSet(std::string name) : name_(std::move(name)) {}

  template <typename F>
  void Add(F func) {
    using Typed = OverloadOf<F, typename detail::FunctionInfo<F>::ArgType>;
    overloads_.push_back(std::make_unique<Typed>(std::move(func)));
  }

  void operator()(const AnyView* args, int32_t num_args, Any* result) const {
    for (int32_t i = 0; i < num_args; ++i) {
      if (args[i].type_index() == kTVMFFIObjectRValueRef) return CallOwned(args, num_args, result);
    }
    Call(args, num_args, result);
  }

 private:
  void Call(const AnyView* args, int32_t num_args, Any* result) const {
    for (const auto& overload : overloads_) {
      if (overload->TryCall(args, num_args, result) == kMatched) return;
    }
    ThrowNoMatch(args, num_args);
  }

  // Moves rvalue arguments out of their slots once, not once per overload tried.
  void CallOwned(const AnyView* args, int32_t num_args, Any* result) const {
    if (overloads_.size() == 1) return Call(args, num_args, result);
    std::vector<Any> owned(args, args + num_args);
    std::vector<AnyView> views(owned.begin(), owned.end());
    Call(views.data(), num_args, result);
  }

  [[noreturn]] TVM_FFI_COLD_CODE void ThrowNoMatch(const AnyView* args, int32_t num_args) const {
    std::ostringstream os;
    if (overloads_.size() == 1) {
      const Overload& only = *overloads_[0];
      Explain(os, only, name_ + only.Signature(), args, num_args);
      if (num_args != only.NumParams()) os << " but got " << num_args << " arguments";
      TVM_FFI_THROW(TypeError) << os.str();
    }
    os << "No matching overload found when calling: `" << name_ << "` with " << num_args
       << " arguments:";
    for (size_t i = 0; i < overloads_.size(); ++i) {
      const Overload& overload = *overloads_[i];
      os << "\nOverload #" << i << ": ";
      Explain(os, overload, name_ + " " + overload.Signature(), args, num_args);
      if (num_args != overload.NumParams()) os << " arguments";
    }
    TVM_FFI_THROW(TypeError) << os.str();
  }

  static void Explain(std::ostream& os, const Overload& overload, const std::string& call,
                      const AnyView* args, int32_t num_args) {
    int32_t at = overload.Match(args, num_args);
    if (at == kWrongCount) {
      os << "Mismatched number of arguments when calling: `" << call << "`. Expected "
         << overload.NumParams();
      return;
    }
    TVMFFIAny raw = args[at].CopyToTVMFFIAny();
    const ParamText& param = overload.Params()[at];
    os << "Mismatched type on argument #" << at << " when calling: `" << call << "`. Expected `"
       << param.expected() << "` but got `" << param.actual(&raw) << "`";
  }

  std::string name_;
  std::vector<std::unique_ptr<Overload>> overloads_;
};

}  // namespace tether

namespace reflection {

// ObjectDef in which registering a name again adds an overload.
template <typename Class>
class OverloadObjectDef : private ObjectDef<Class> {
 public:
  using ObjectDef<Class>::ObjectDef;

  template <typename T, typename BaseClass, typename... Extra>
  OverloadObjectDef& def_ro(const char* name, T BaseClass::*field_ptr, Extra&&... extra) {
    ObjectDef<Class>::def_ro(name, field_ptr, extra...);
    return *this;
  }

  template <typename T, typename BaseClass, typename... Extra>
  OverloadObjectDef& def_rw(const char* name, T BaseClass::*field_ptr, Extra&&... extra) {
    ObjectDef<Class>::def_rw(name, field_ptr, extra...);
    return *this;
  }

  template <typename Func, typename... Extra>
  OverloadObjectDef& def(const char* name, Func&& func, Extra&&... extra) {
    AddOverload(name, 0, tether::ToCallable(std::forward<Func>(func)), extra...);
    return *this;
  }

  template <typename Func, typename... Extra>
  OverloadObjectDef& def_static(const char* name, Func&& func, Extra&&... extra) {
    AddOverload(name, kTVMFFIFieldFlagBitMaskIsStaticMethod,
                tether::ToCallable(std::forward<Func>(func)), extra...);
    return *this;
  }

  template <typename... Args, typename... Extra>
  OverloadObjectDef& def(init<Args...>, Extra&&... extra) {
    this->generate_init_ = false;
    bool is_first = overloads_.count(type_attr::kInit.name) == 0;
    const Function& dispatcher =
        AddOverload(type_attr::kInit, kTVMFFIFieldFlagBitMaskIsStaticMethod,
                    &ObjectDef<Class>::template ConstructFrom<Args...>, extra...);
    if (is_first) tether::RegisterAttr(this->type_index_, type_attr::kInit, dispatcher);
    return *this;
  }

  template <typename T>
  OverloadObjectDef& def_type_attr(const char* name, T&& value) {
    ObjectDef<Class>::def_type_attr(name, std::forward<T>(value));
    return *this;
  }

  template <typename TSelf>
  OverloadObjectDef& def_convert() {
    ObjectDef<Class>::template def_convert<TSelf>();
    return *this;
  }

 private:
  struct Dispatcher {
    Function function;
    tether::OverloadSet* overloads;  // lives inside `function`
  };

  template <typename F, typename... Extra>
  const Function& AddOverload(const char* name, int64_t flags, F func, const Extra&... extra) {
    Dispatcher& dispatcher = overloads_[name];
    if (dispatcher.overloads == nullptr) {
      std::tie(dispatcher.function, dispatcher.overloads) =
          Function::FromPackedInplace<tether::OverloadSet>(
              tether::QualifiedName(Class::_type_key, name));
    }
    dispatcher.overloads->Add(std::move(func));
    tether::RegisterMethod(this->type_index_, name, flags, dispatcher.function,
                           &ffi::detail::FunctionInfo<F>::TypeSchema, extra...);
    return dispatcher.function;
  }

  std::unordered_map<std::string, Dispatcher> overloads_;
};

}  // namespace reflection
}  // namespace ffi
}  // namespace tvm
#endif  // TVM_FFI_REFLECTION_OVERLOAD_H_
