// SPDX-License-Identifier: Apache-2.0
//
// ToJSONGraph and FromJSONGraph. A document is a list of nodes that refer to each other by index;
// writing puts children first, reading accepts any order and decodes only what the root needs.
#include <tvm/ffi/container/shape.h>
#include <tvm/ffi/device.h>
#include <tvm/ffi/dtype.h>
#include <tvm/ffi/enum.h>
#include <tvm/ffi/extra/base64.h>
#include <tvm/ffi/extra/serialization.h>
#include <tvm/ffi/reflection/creator.h>
#include <tvm/ffi/reflection/registry.h>

#include <cstddef>
#include <cstdint>
#include <optional>
#include <string>
#include <unordered_map>
#include <utility>
#include <vector>

#include "graph_format.h"
#include "object_graph.h"

namespace tvm {
namespace ffi {
namespace tether {

AnyView DataToJsonHook(int32_t type_index) {
  static const reflection::TypeAttrColumn hooks(reflection::type_attr::kDataToJson);
  return hooks[type_index];
}

AnyView DataFromJsonHook(int32_t type_index) {
  static const reflection::TypeAttrColumn hooks(reflection::type_attr::kDataFromJson);
  return hooks[type_index];
}

namespace {

// Fields of these static types are written in place; all others refer to a node.
bool IsInlineField(const TVMFFIFieldInfo* field) {
  switch (field->field_static_type_index) {
    case kTVMFFINone:
    case kTVMFFIInt:
    case kTVMFFIBool:
    case kTVMFFIFloat:
    case kTVMFFIDataType:
      return true;
    default:
      return false;
  }
}

// ---- Types without a default constructor --------------------------------------------------------

// The parameters in the schema of a function; nullopt if it does not tell.
std::optional<json::Array> SchemaParams(const json::Value& schema) {
  auto object = schema.as<json::Object>();
  if (!object) return std::nullopt;
  if (auto named = object->Get("named_args")) {
    if (auto groups = named->as<json::Object>()) {
      if (auto params = groups->Get("params")) return params->as<json::Array>();
    }
    return std::nullopt;
  }
  // Headers up to 0.1.14 write one list, the result first.
  if (auto args = object->Get("args")) {
    auto list = args->as<json::Array>();
    if (list && !list->empty()) return json::Array(list->begin() + 1, list->end());
  }
  return std::nullopt;
}

// The schema in the metadata of a method or field; None if there is none.
json::Value SchemaOf(const TVMFFIByteArray& metadata) {
  if (metadata.size == 0) return nullptr;
  String error;
  json::Value parsed = json::Parse(String(metadata.data, metadata.size), &error);
  auto object = parsed.as<json::Object>();
  if (!error.empty() || !object) return nullptr;
  auto schema = object->Get("type_schema");
  if (!schema) return nullptr;
  auto text = schema->as<String>();
  return text ? json::Parse(*text, &error) : *schema;
}

}  // namespace

ConstructorPlan PlanConstructor(const TVMFFITypeInfo* type) {
  ConstructorPlan plan;
  const TVMFFIMethodInfo* init =
      FindRecord(type->methods, type->num_methods, reflection::type_attr::kInit.name);
  if (init == nullptr) return plan;
  auto params = SchemaParams(SchemaOf(init->metadata));
  if (!params) return plan;
  std::vector<json::Value> types;
  reflection::ForEachFieldInfo(
      type, [&](const TVMFFIFieldInfo* info) { types.push_back(SchemaOf(info->metadata)); });
  size_t next = 0;
  for (const json::Value& param : *params) {
    String wanted = json::Stringify(param);
    while (next < types.size() && json::Stringify(types[next]) != wanted) ++next;
    if (next == types.size()) return plan;
    plan.fields.push_back(next++);
  }
  plan.construct = AnyView::CopyFromTVMFFIAny(init->method).cast<Function>();
  return plan;
}

namespace {

class JsonGraphWriter : public GraphWalk<JsonGraphWriter> {
 public:
  json::Value Write(const Any& root, const Any& metadata) {
    Visit(root);
    Drain(0);
    json::Object document;
    document.Set("root_index", root_index_);
    document.Set("nodes", json::Array(nodes_.begin(), nodes_.end()));
    if (metadata != nullptr) document.Set("metadata", metadata);
    return document;
  }

  void VisitChild(size_t index) {
    Child& child = children_[index];
    if (child.field == nullptr || !IsInlineField(child.field)) {
      Visit(std::move(child.value));
    } else if (child.field->field_static_type_index == kTVMFFIDataType) {
      child.value = DLDataTypeToString(child.value.cast<DLDataType>());
    }
  }

  // By now every child has been replaced by what stands for it in the document.
  void Leave(Frame& frame) {
    open_[ObjectOf(frame.node)] = false;
    if (frame.kind != NodeKind::kFields) {
      json::Array indices;
      indices.reserve(static_cast<int64_t>(frame.last - frame.first));
      for (size_t i = frame.first; i < frame.last; ++i) {
        indices.push_back(children_[i].value);
      }
      AddNode(std::move(frame.node), std::move(indices));
      return;
    }
    json::Object fields;
    for (size_t i = frame.first; i < frame.last; ++i) {
      fields.Set(String(children_[i].field->name), children_[i].value);
    }
    AddNode(std::move(frame.node), std::move(fields));
  }

  void Abandon(const Frame&) {}

 private:
  void Visit(Any value) {
    if (auto it = index_of_.find(value); it != index_of_.end()) {
      Deliver(it->second);
      return;
    }
    int32_t type_index = value.type_index();
    switch (type_index) {
      case kTVMFFINone:
      case kTVMFFIBool:
      case kTVMFFIInt:
      case kTVMFFIFloat:
      case kTVMFFISmallStr:
      case kTVMFFIStr:
        AddNode(value, value);
        return;
      case kTVMFFIDataType:
        AddNode(value, DLDataTypeToString(value.cast<DLDataType>()));
        return;
      case kTVMFFIDevice: {
        auto device = value.cast<DLDevice>();
        AddNode(value, json::Array{static_cast<int64_t>(device.device_type), device.device_id});
        return;
      }
      case kTVMFFISmallBytes:
      case kTVMFFIBytes:
        AddNode(value, Base64Encode(value.cast<Bytes>()));
        return;
      case kTVMFFIShape: {
        auto shape = value.cast<Shape>();
        AddNode(value, json::Array(shape.begin(), shape.end()));
        return;
      }
      case kTVMFFIArray:
      case kTVMFFIList:
      case kTVMFFIMap:
      case kTVMFFIDict:
        Open(std::move(value));
        return;
      default:
        if (type_index < kTVMFFIStaticObjectBegin) {
          TVM_FFI_THROW(RuntimeError) << "Cannot serialize type `" << TypeKeyOf(type_index) << "`";
        }
        VisitObject(std::move(value));
    }
  }

  void VisitObject(Any value) {
    if (const auto* entry = value.as<EnumObj>()) {
      bool by_int = value.as<IntEnumObj>() != nullptr;
      AddNode(value, by_int ? Any(entry->_int_index) : Any(entry->_str_index));
      return;
    }
    AnyView hook = DataToJsonHook(value.type_index());
    if (hook != nullptr) {
      AddNode(value, hook.cast<Function>()(value));
      return;
    }
    if (!CanBeMade(value.type_index())) {
      TVM_FFI_THROW(TypeError) << "Type `" << value.GetTypeKey()
                               << "` does not support ToJSONGraph (no native creator or "
                                  "__ffi_new__ type attr)";
    }
    Open(std::move(value));
  }

  bool CanBeMade(int32_t type_index) {
    const TVMFFITypeInfo* type = TVMFFIGetTypeInfo(type_index);
    if (HasCreator(type)) return true;
    auto [it, is_new] = can_construct_.try_emplace(type_index, false);
    if (is_new) it->second = PlanConstructor(type).construct != nullptr;
    return it->second;
  }

  void Open(Any value) {
    bool& is_open = open_[ObjectOf(value)];
    if (is_open) ThrowCycle(ObjectOf(value));
    is_open = true;
    Push(std::move(value), 0);
  }

  // Names the container that made the cycle possible, if there is one.
  [[noreturn]] void ThrowCycle(const Object* node) const {
    std::string culprit = "an object of type `" + std::string(TypeKeyOf(node->type_index())) + "`";
    for (auto frame = frames_.rbegin(); frame != frames_.rend(); ++frame) {
      int32_t type_index = frame->node.type_index();
      if (type_index == kTVMFFIList) culprit = "a List";
      if (type_index == kTVMFFIDict) culprit = "a Dict";
      if (ObjectOf(frame->node) == node) break;
    }
    TVM_FFI_THROW(ValueError) << "Cycle detected during serialization: " << culprit
                              << " contains itself";
    TVM_FFI_UNREACHABLE();
  }

  void AddNode(Any value, Any data) {
    json::Object node;
    int32_t type_index = value.type_index();
    if (type_index == kTVMFFISmallStr) type_index = kTVMFFIStr;
    if (type_index == kTVMFFISmallBytes) type_index = kTVMFFIBytes;
    node.Set("type", String(TVMFFIGetTypeInfo(type_index)->type_key));
    if (type_index != kTVMFFINone) node.Set("data", data);
    auto index = static_cast<int64_t>(nodes_.size());
    nodes_.emplace_back(std::move(node));
    index_of_.emplace(std::move(value), index);
    Deliver(index);
  }

  // Puts the index of a node where the value was.
  void Deliver(int64_t index) {
    if (frames_.empty()) {
      root_index_ = index;
    } else {
      children_[frames_.back().next - 1].value = index;
    }
  }

  int64_t root_index_ = 0;
  std::vector<Any> nodes_;
  std::unordered_map<Any, int64_t, AnyHash, AnyEqual> index_of_;
  AddressMap<const Object*, bool> open_;
  std::unordered_map<int32_t, bool> can_construct_;  // by type index
};

class JsonGraphReader {
 public:
  explicit JsonGraphReader(const json::Value& document) {
    auto object = document.as<json::Object>();
    if (!object) TVM_FFI_THROW(ValueError) << "Invalid JSON Object Graph, expected an object";
    auto root = object->Get("root_index");
    if (!root || root->type_index() != kTVMFFIInt) {
      TVM_FFI_THROW(ValueError) << "Invalid JSON Object Graph, expected `root_index` integer field";
    }
    auto nodes = object->Get("nodes");
    if (!nodes || nodes->type_index() != kTVMFFIArray) {
      TVM_FFI_THROW(ValueError) << "Invalid JSON Object Graph, expected `nodes` array field";
    }
    root_index_ = root->cast<int64_t>();
    nodes_ = nodes->cast<json::Array>();
    decoded_.resize(nodes_.size());
  }

  Any Read() {
    Begin(root_index_);
    while (!pending_.empty()) {
      Pending& top = pending_.back();
      if (top.next < top.parts.size()) {
        int64_t part = top.parts[top.next++];
        if (part == kNoPart) continue;
        // Finished ones are skipped here, so that only open ones are reported as a cycle.
        if (decoded_[static_cast<size_t>(part)].state != State::kDone) Begin(part);
        continue;
      }
      Pending done = std::move(top);
      pending_.pop_back();
      Finish(done.index, Build(done));
    }
    return decoded_[static_cast<size_t>(root_index_)].value;
  }

 private:
  enum class State : uint8_t { kUntouched, kOpen, kDone };

  struct Decoded {
    State state = State::kUntouched;
    Any value;
  };

  struct FieldPlan {
    const TVMFFIFieldInfo* info;
    String name;
  };

  // How objects of a type are read; made once per document.
  struct TypePlan {
    const TVMFFITypeInfo* info = nullptr;
    std::vector<FieldPlan> fields;
    ConstructorPlan constructor;  // of a type without a creator
  };

  static constexpr int64_t kNoPart = -1;

  // A node that waits for its parts.
  struct Pending {
    int64_t index;
    int32_t type_index;
    const TypePlan* plan;        // of an object; null for containers
    json::Object fields;         // of an object; undefined for containers
    std::vector<int64_t> parts;  // nodes it is made of; of an object, one for each field or kNoPart
    size_t next;
  };

  size_t CheckIndex(int64_t index) const {
    if (index < 0 || static_cast<uint64_t>(index) >= nodes_.size()) {
      TVM_FFI_THROW(ValueError) << "Invalid JSON Object Graph: invalid node index " << index;
    }
    return static_cast<size_t>(index);
  }

  void Finish(int64_t index, Any value) {
    decoded_[static_cast<size_t>(index)] = {State::kDone, std::move(value)};
  }

  // Decodes a node, or puts it on the stack if it has parts.
  void Begin(int64_t index) {
    Decoded& slot = decoded_[CheckIndex(index)];
    if (slot.state == State::kOpen) {
      TVM_FFI_THROW(ValueError) << "Invalid JSON Object Graph: node " << index
                                << " contains itself";
    }
    slot.state = State::kOpen;
    json::Object node;
    int32_t type_index = 0;
    try {
      node = nodes_[index].cast<json::Object>();
      type_index = TypeIndexOf(Part(index, node, "type").cast<String>());
    } catch (const Error& error) {
      if (error.kind() == "KeyError") throw;
      throw Error(
          error.kind(),
          "Invalid JSON Object Graph: node " + std::to_string(index) + ": " + error.message(),
          error.backtrace());
    }
    switch (type_index) {
      case kTVMFFINone:
        Finish(index, nullptr);
        return;
      case kTVMFFIBool:
        Finish(index, DataOf(index, node).cast<bool>());
        return;
      case kTVMFFIInt:
        Finish(index, DataOf(index, node).cast<int64_t>());
        return;
      case kTVMFFIFloat:
        Finish(index, DataOf(index, node).cast<double>());
        return;
      case kTVMFFIDataType:
        Finish(index, StringToDLDataType(DataOf(index, node).cast<String>()));
        return;
      case kTVMFFIDevice:
        Finish(index, ReadDevice(DataOf(index, node).cast<Array<int64_t>>()));
        return;
      case kTVMFFIStr:
        Finish(index, DataOf(index, node).cast<String>());
        return;
      case kTVMFFIBytes:
        Finish(index, Base64Decode(DataOf(index, node).cast<String>()));
        return;
      case kTVMFFIShape:
        Finish(index, Shape(DataOf(index, node).cast<Array<int64_t>>()));
        return;
      case kTVMFFIArray:
      case kTVMFFIList:
      case kTVMFFIMap:
      case kTVMFFIDict:
        BeginContainer(index, type_index, DataOf(index, node).cast<json::Array>());
        return;
      default:
        BeginObject(index, type_index, node);
    }
  }

  static int32_t TypeIndexOf(const String& type_key) {
    return IndexOfNamedType(std::string_view(type_key.data(), type_key.size()));
  }

  static Any Part(int64_t index, const json::Object& node, const char* key) {
    auto part = node.Get(key);
    if (!part) {
      TVM_FFI_THROW(KeyError) << "Invalid JSON Object Graph: node " << index << " has no key `"
                              << key << "`";
    }
    return *part;
  }
  static Any DataOf(int64_t index, const json::Object& node) { return Part(index, node, "data"); }

  static DLDevice ReadDevice(const Array<int64_t>& data) {
    if (data.size() != 2) {
      TVM_FFI_THROW(ValueError) << "Invalid JSON Object Graph: Device data must be an array of "
                                   "[device_type, device_id], got "
                                << data.size() << " element(s)";
    }
    for (int64_t number : data) {
      if (number != static_cast<int32_t>(number)) {
        TVM_FFI_THROW(ValueError) << "Invalid JSON Object Graph: Device data out of range: "
                                  << number;
      }
    }
    return TVMFFIDLDeviceFromIntPair(static_cast<int32_t>(data[0]), static_cast<int32_t>(data[1]));
  }

  void BeginContainer(int64_t index, int32_t type_index, const json::Array& data) {
    if (KindOfNode(type_index) == NodeKind::kMapping && data.size() % 2 != 0) {
      TVM_FFI_THROW(ValueError) << "Invalid JSON Object Graph: Map/Dict data must contain an even "
                                   "number of [key, value] entries, got "
                                << data.size();
    }
    Pending pending{index, type_index, nullptr, json::Object(UnsafeInit{}), {}, 0};
    pending.parts.reserve(data.size());
    for (const Any& part : data) pending.parts.push_back(CheckedPart(part));
    pending_.push_back(std::move(pending));
  }

  int64_t CheckedPart(const Any& part) const {
    auto index = part.cast<int64_t>();
    CheckIndex(index);
    return index;
  }

  void BeginObject(int64_t index, int32_t type_index, const json::Object& node) {
    if (details::IsObjectInstance<EnumObj>(type_index) && type_index >= kTVMFFIStaticObjectBegin) {
      Finish(index, ReadEnum(type_index, DataOf(index, node)));
      return;
    }
    AnyView hook = DataFromJsonHook(type_index);
    if (hook != nullptr) {
      Finish(index, hook.cast<Function>()(DataOf(index, node)));
      return;
    }
    const TypePlan& plan = PlanOf(type_index);
    Pending pending{index, type_index, &plan, DataOf(index, node).cast<json::Object>(), {}, 0};
    pending.parts.reserve(plan.fields.size());
    for (const FieldPlan& field : plan.fields) {
      auto part = IsInlineField(field.info) ? std::nullopt : pending.fields.Get(field.name);
      pending.parts.push_back(kNoPart);
      if (!part) continue;
      WithFieldInError(plan, field, [&] { pending.parts.back() = CheckedPart(*part); });
    }
    pending_.push_back(std::move(pending));
  }

  const TypePlan& PlanOf(int32_t type_index) {
    TypePlan& plan = plans_[type_index];
    if (plan.info != nullptr) return plan;
    const TVMFFITypeInfo* info = TVMFFIGetTypeInfo(type_index);
    if (!HasCreator(info)) {
      plan.constructor = PlanConstructor(info);
      if (plan.constructor.construct == nullptr) {
        ThrowNotCreatable(info, "FromJSONGraph (no native creator or __ffi_new__ type attr)");
      }
    }
    reflection::ForEachFieldInfo(info, [&](const TVMFFIFieldInfo* field) {
      plan.fields.push_back({field, String(field->name)});
    });
    plan.info = info;
    return plan;
  }

  static Enum ReadEnum(int32_t type_index, const Any& data) {
    if (details::IsObjectInstance<IntEnumObj>(type_index)) {
      return EnumObj::_GetByIntIndex(type_index, data.cast<int64_t>());
    }
    return EnumObj::_GetByStrIndex(type_index, data.cast<String>());
  }

  const Any& Part(int64_t index) const { return decoded_[static_cast<size_t>(index)].value; }

  Any Build(const Pending& node) const {
    switch (node.type_index) {
      case kTVMFFIArray:
        return BuildSequence<Array<Any>>(node.parts);
      case kTVMFFIList:
        return BuildSequence<List<Any>>(node.parts);
      case kTVMFFIMap:
        return BuildMap<Map<Any, Any>>(node.parts);
      case kTVMFFIDict:
        return BuildMap<Dict<Any, Any>>(node.parts);
      default:
        return BuildObject(node);
    }
  }

  template <typename Sequence>
  Any BuildSequence(const std::vector<int64_t>& parts) const {
    Sequence sequence;
    sequence.reserve(static_cast<int64_t>(parts.size()));
    for (int64_t part : parts) sequence.push_back(Part(part));
    return sequence;
  }

  template <typename Mapping>
  Any BuildMap(const std::vector<int64_t>& parts) const {
    Mapping map;
    for (size_t i = 0; i < parts.size(); i += 2) map.Set(Part(parts[i]), Part(parts[i + 1]));
    return map;
  }

  std::optional<Any> FieldValue(const Pending& node, size_t i) const {
    const FieldPlan& field = node.plan->fields[i];
    if (IsInlineField(field.info)) return node.fields.Get(field.name);
    if (node.parts[i] != kNoPart) return Part(node.parts[i]);
    return std::nullopt;
  }

  ObjectPtr<Object> MakeObject(const Pending& node) const {
    const ConstructorPlan& constructor = node.plan->constructor;
    if (constructor.construct == nullptr) return CreateEmptyObject(node.plan->info);
    std::vector<Any> values;
    for (size_t i : constructor.fields) {
      const FieldPlan& field = node.plan->fields[i];
      std::optional<Any> value = FieldValue(node, i);
      if (!value) ThrowFieldNotSet(node.plan->info, ToView(field.info->name));
      WithFieldInError(*node.plan, field, [&] {
        values.push_back(IsInlineField(field.info) ? ReadInline(field.info, *value)
                                                   : *std::move(value));
      });
    }
    std::vector<AnyView> views(values.begin(), values.end());
    Any made;
    constructor.construct.CallPacked(views.data(), static_cast<int32_t>(views.size()), &made);
    return details::ObjectUnsafe::ObjectPtrFromObjectRef<Object>(made.cast<ObjectRef>());
  }

  Any BuildObject(const Pending& node) const {
    ObjectPtr<Object> object = MakeObject(node);
    for (size_t i = 0; i < node.plan->fields.size(); ++i) {
      const FieldPlan& field = node.plan->fields[i];
      bool is_inline = IsInlineField(field.info);
      std::optional<Any> value = FieldValue(node, i);
      if (!value && (field.info->flags & kTVMFFIFieldFlagBitMaskHasDefault) == 0) {
        ThrowFieldNotSet(node.plan->info, ToView(field.info->name));
      }
      WithFieldInError(*node.plan, field, [&] {
        if (value) {
          if (is_inline) value = ReadInline(field.info, *value);
          reflection::FieldSetter setter(field.info);
          setter(object.get(), *value);
        } else {
          reflection::SetFieldToDefault(field.info, FieldAddress(object.get(), field.info));
        }
      });
    }
    return ObjectRef(std::move(object));
  }

  static Any ReadInline(const TVMFFIFieldInfo* field, const Any& data) {
    switch (field->field_static_type_index) {
      case kTVMFFIBool:
        return data.cast<bool>();
      case kTVMFFIInt:
        return data.cast<int64_t>();
      case kTVMFFIFloat:
        return data.cast<double>();
      case kTVMFFIDataType:
        return StringToDLDataType(data.cast<String>());
      default:
        return data.cast<std::nullptr_t>();
    }
  }

  // Runs body; its errors are thrown again with the place in front of the message.
  template <typename Body>
  static void WithFieldInError(const TypePlan& plan, const FieldPlan& field, Body&& body) {
    try {
      body();
    } catch (const Error& error) {
      std::string_view name(field.name.data(), field.name.size());
      RethrowWithField(name, plan.info->type_index, error);
    }
  }

  int64_t root_index_ = 0;
  json::Array nodes_;
  std::vector<Decoded> decoded_;
  std::vector<Pending> pending_;
  std::unordered_map<int32_t, TypePlan> plans_;
};

}  // namespace
}  // namespace tether

json::Value ToJSONGraph(const Any& value, const Any& metadata) {
  return tether::JsonGraphWriter().Write(value, metadata);
}

Any FromJSONGraph(const json::Value& value) { return tether::JsonGraphReader(value).Read(); }

TVM_FFI_STATIC_INIT_BLOCK() {
  namespace refl = reflection;
  refl::EnsureTypeAttrColumn(refl::type_attr::kDataToJson);
  refl::EnsureTypeAttrColumn(refl::type_attr::kDataFromJson);
  refl::GlobalDef()
      .def("ffi.ToJSONGraph", ToJSONGraph)
      .def("ffi.ToJSONGraphString",
           [](const Any& value, const Any& metadata) {
             return json::Stringify(ToJSONGraph(value, metadata));
           })
      .def("ffi.FromJSONGraph", FromJSONGraph)
      .def("ffi.FromJSONGraphString",
           [](const String& text) { return FromJSONGraph(json::Parse(text)); });
}

}  // namespace ffi
}  // namespace tvm
