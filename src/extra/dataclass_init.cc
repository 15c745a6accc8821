// SPDX-License-Identifier: Apache-2.0
//
// The generated constructor `__ffi_init__`. For
//
//   ObjectDef<PointObj>().def_rw("x", &PointObj::x)
//                        .def_rw("y", &PointObj::y, default_value(0))
//                        .def_rw("name", &PointObj::name, kw_only(true));
//
// it takes (x, y=0, *, name). A caller passes positional values, then, if there are keywords, the
// KWARGS sentinel followed by name, value, name, value...
#include <tvm/ffi/any.h>
#include <tvm/ffi/error.h>
#include <tvm/ffi/function.h>
#include <tvm/ffi/reflection/creator.h>
#include <tvm/ffi/reflection/registry.h>
#include <tvm/ffi/string.h>

#include <array>
#include <memory>
#include <string>
#include <string_view>
#include <unordered_map>
#include <utility>
#include <vector>

#include "core/field_kind.h"
#include "core/kept_value.h"
#include "core/type_table.h"
#include "dataclass_internal.h"

namespace tvm {
namespace ffi {
namespace tether {
namespace {

const Object* KwargsSentinel() {
  static const ObjectRef* sentinel =
      new ObjectRef(Function::GetGlobalRequired("ffi.GetKwargsObject")().cast<ObjectRef>());
  return sentinel->get();
}

std::string IndentLines(std::string_view text) {
  std::string result = "  ";
  for (char c : text) {
    result += c;
    if (c == '\n') result += "  ";
  }
  return result;
}

// Which argument each field got; null for none. On the stack for classes of ordinary size.
class Bindings {
 public:
  explicit Bindings(size_t count) {
    if (count > few_.size()) many_.resize(count);
  }
  const AnyView*& operator[](size_t field) { return many_.empty() ? few_[field] : many_[field]; }

 private:
  std::array<const AnyView*, 32> few_{};
  std::vector<const AnyView*> many_;
};

class InitPlan {
 public:
  InitPlan(const TVMFFITypeInfo* type, std::function<ObjectPtr<Object>()> create)
      : type_key_(ToView(type->type_key)), create_(std::move(create)) {
    std::vector<size_t> defaulted;
    reflection::ForEachFieldInfo(type, [&](const TVMFFIFieldInfo* info) {
      size_t index = fields_.size();
      fields_.push_back(*info);
      if (!IsParameter(*info)) return;
      // A subclass may register a name again; the keyword then means the subclass's field.
      keywords_[ToView(info->name)] = index;
      if (info->flags & kTVMFFIFieldFlagBitMaskKwOnly) return;
      (HasDefault(*info) ? defaulted : positional_).push_back(index);
    });
    positional_.insert(positional_.end(), defaulted.begin(), defaulted.end());
    while (in_order_ < positional_.size() && positional_[in_order_] == in_order_) ++in_order_;
  }

  ObjectRef operator()(PackedArgs args) const {
    int count = CountPositional(args);
    if (count == args.size() && static_cast<size_t>(count) <= in_order_) {
      ObjectPtr<Object> object = create_();
      for (int i = 0; i < count; ++i) SetField(fields_[i], object.get(), args[i]);
      for (size_t i = static_cast<size_t>(count); i < fields_.size(); ++i) {
        SetOther(fields_[i], object.get());
      }
      return ObjectRef(std::move(object));
    }
    Bindings bindings(fields_.size());
    Bind(args, count, &bindings);
    ObjectPtr<Object> object = create_();
    for (size_t i = 0; i < fields_.size(); ++i) {
      if (bindings[i] != nullptr) {
        SetField(fields_[i], object.get(), *bindings[i]);
      } else {
        SetOther(fields_[i], object.get());
      }
    }
    return ObjectRef(std::move(object));
  }

 private:
  // A field that no argument is for.
  void SetOther(const TVMFFIFieldInfo& field, Object* object) const {
    if (HasDefault(field)) {
      SetDefault(field, object);
    } else if (IsParameter(field)) {
      ThrowMissing(field);
    }
  }

  static bool HasDefault(const TVMFFIFieldInfo& field) {
    return (field.flags & kTVMFFIFieldFlagBitMaskHasDefault) != 0;
  }
  static bool IsParameter(const TVMFFIFieldInfo& field) {
    return (field.flags & kTVMFFIFieldFlagBitMaskInitOff) == 0;
  }

  // Position of the KWARGS sentinel, or the number of arguments.
  static int CountPositional(PackedArgs args) {
    for (int i = 0; i < args.size(); ++i) {
      if (args[i].type_index() < kTVMFFIStaticObjectBegin) continue;
      if (args[i].CopyToTVMFFIAny().v_obj == static_cast<const void*>(KwargsSentinel())) return i;
    }
    return args.size();
  }

  // `count` of them are positional.
  void Bind(PackedArgs args, int count, Bindings* bindings) const {
    if (static_cast<size_t>(count) > positional_.size()) {
      TVM_FFI_THROW(TypeError) << type_key_ << ".__ffi_init__() takes at most "
                               << positional_.size() << " positional argument(s), but " << count
                               << " were given";
    }
    for (int i = 0; i < count; ++i) {
      (*bindings)[positional_[static_cast<size_t>(i)]] = args.data() + i;
    }
    int first_keyword = count + 1;
    if (first_keyword < args.size() && (args.size() - first_keyword) % 2 != 0) {
      TVM_FFI_THROW(TypeError)
          << type_key_ << ".__ffi_init__() KWARGS requires an even number of key-value arguments";
    }
    for (int i = first_keyword; i + 1 < args.size(); i += 2) {
      BindKeyword(args[i].cast<String>(), args.data() + i + 1, bindings);
    }
  }

  void BindKeyword(const String& key, const AnyView* value, Bindings* bindings) const {
    auto it = keywords_.find(std::string_view(key.data(), key.size()));
    if (it == keywords_.end()) {
      TVM_FFI_THROW(TypeError) << type_key_
                               << ".__ffi_init__() got an unexpected keyword argument '" << key
                               << "'";
    }
    const AnyView*& binding = (*bindings)[it->second];
    if (binding != nullptr) {
      TVM_FFI_THROW(TypeError) << type_key_ << ".__ffi_init__() got multiple values for argument '"
                               << key << "'";
    }
    binding = value;
  }

  [[noreturn]] void ThrowMissing(const TVMFFIFieldInfo& field) const {
    bool kw_only = (field.flags & kTVMFFIFieldFlagBitMaskKwOnly) != 0;
    TVM_FFI_THROW(TypeError) << type_key_ << ".__ffi_init__() missing required "
                             << (kw_only ? "keyword-only argument: '" : "argument: '")
                             << ToView(field.name) << "'";
  }

  void SetField(const TVMFFIFieldInfo& field, Object* object, const AnyView& value,
                const char* role = "field") const {
    TVMFFIAny raw = value.CopyToTVMFFIAny();
    if (!FitsField(field, raw)) {
      TVM_FFI_THROW(OverflowError)
          << type_key_ << ".__ffi_init__() " << role << " '" << ToView(field.name)
          << "': Integer value " << OutOfFieldText(field, raw);
    }
    if (WouldKeepLent(field, raw)) ThrowCannotKeepLent();
    if (reflection::CallFieldSetter(&field, FieldAddress(object, &field), &raw) != 0) {
      ThrowSetterError(field, role, details::MoveFromSafeCallRaised());
    }
  }

  void SetDefault(const TVMFFIFieldInfo& field, Object* object) const {
    AnyView stored = AnyView::CopyFromTVMFFIAny(field.default_value_or_factory);
    if ((field.flags & kTVMFFIFieldFlagBitMaskDefaultFromFactory) == 0) {
      SetField(field, object, stored, "default for field");
      return;
    }
    Any made = stored.cast<Function>()();
    SetField(field, object, made, "default for field");
  }

  // The setter knows what was wrong with the value; say which field of which class it was for.
  [[noreturn]] void ThrowSetterError(const TVMFFIFieldInfo& field, const char* role,
                                     const Error& error) const {
    if (error.kind() == EnvErrorAlreadySet().kind()) throw error;
    std::string message = std::string(type_key_) + ".__ffi_init__() " + role + " '" +
                          std::string(ToView(field.name)) + "':\n" + IndentLines(error.message());
    throw Error(error.kind(), message, error.backtrace(), error, std::nullopt);
  }

  std::string_view type_key_;
  std::function<ObjectPtr<Object>()> create_;
  std::vector<TVMFFIFieldInfo> fields_;
  // Fields in the order of positional arguments, required ones first.
  std::vector<size_t> positional_;
  size_t in_order_ = 0;  // so many of them are simply the first fields
  std::unordered_map<std::string_view, size_t> keywords_;
};

void RegisterInit(int32_t type_index) {
  const TVMFFITypeInfo* type = RequireTypeInfo(type_index);
  RegisterAttr(type_index, reflection::type_attr::kInit,
               MakeInitFunction(type, [type] { return CreateEmptyObject(type); }));
}

}  // namespace

Function MakeInitFunction(const TVMFFITypeInfo* type, std::function<ObjectPtr<Object>()> create) {
  auto plan = std::make_shared<const InitPlan>(type, std::move(create));
  return Function::FromPacked([plan](PackedArgs args, Any* result) { *result = (*plan)(args); });
}

namespace {

// (type_key or type_index, name, value, name, value...)
Any MakeObjectFromPackedArgs(PackedArgs args) {
  TVM_FFI_ICHECK_EQ(args.size() % 2, 1) << "expected a type followed by name, value pairs";
  const TVMFFITypeInfo* type = args[0].type_index() == kTVMFFIInt
                                   ? RequireTypeInfo(args[0].cast<int32_t>())
                                   : TypeInfoOfKey(std::string(args[0].cast<String>()));
  Map<String, Any> fields;
  for (int i = 1; i < args.size(); i += 2) fields.Set(args[i].cast<String>(), args[i + 1]);
  return reflection::ObjectCreator(type)(fields);
}

}  // namespace
}  // namespace tether

TVM_FFI_STATIC_INIT_BLOCK() {
  reflection::EnsureTypeAttrColumn(reflection::type_attr::kInit);
  reflection::EnsureTypeAttrColumn(reflection::type_attr::kNew);
  reflection::GlobalDef()
      .def("ffi._RegisterFFIInit", tether::RegisterInit)
      .def_packed("ffi.MakeObjectFromPackedArgs", [](PackedArgs args, Any* result) {
        *result = tether::MakeObjectFromPackedArgs(args);
      });
}

}  // namespace ffi
}  // namespace tvm
