// SPDX-License-Identifier: Apache-2.0
//
// Reads object graphs in the binary form of graph_format.h, from bytes that may be wrong.
//
// One pass over the records: each makes an object from those before it. If anything is wrong, an
// error is raised and nothing of the chunk stays: objects that were filled, and may be in cycles,
// let go of their parts.
#include <tvm/ffi/big_int.h>
#include <tvm/ffi/container/shape.h>
#include <tvm/ffi/container/tensor.h>
#include <tvm/ffi/enum.h>
#include <tvm/ffi/reflection/creator.h>
#include <tvm/ffi/reflection/registry.h>

#include <cstddef>
#include <cstdint>
#include <cstring>
#include <optional>
#include <string>
#include <string_view>
#include <unordered_map>
#include <utility>
#include <vector>

#include "core/copy_tensor.h"
#include "graph_format.h"
#include "object_graph.h"

namespace tvm {
namespace ffi {
namespace tether {
namespace {

// Without a backtrace: where in the reader it was found says nothing, and takes long to find out.
[[noreturn]] TVM_FFI_COLD_CODE void ThrowInvalid(const std::string& what) {
  throw Error("ValueError", "Invalid binary object graph: " + what, "");
}

class Input {
 public:
  explicit Input(std::string_view bytes) : at_(bytes.data()), end_(bytes.data() + bytes.size()) {}

  size_t left() const { return static_cast<size_t>(end_ - at_); }
  uint8_t Byte() {
    if (at_ == end_) ThrowInvalid("it ends too early");
    return static_cast<uint8_t>(*at_++);
  }
  std::string_view Raw(uint64_t size) {
    if (size > left()) ThrowInvalid("it ends too early");
    std::string_view bytes(at_, static_cast<size_t>(size));
    at_ += size;
    return bytes;
  }
  uint64_t Number() {
    uint64_t value = 0;
    for (unsigned shift = 0; shift < 64; shift += 7) {
      uint8_t byte = Byte();
      uint64_t bits = byte & 0x7fu;
      if (shift == 63 && bits > 1) break;
      value |= bits << shift;
      if (byte < 0x80) return value;
    }
    ThrowInvalid("a number has more than 64 bits");
  }
  int64_t Signed() {
    uint64_t value = Number();
    return static_cast<int64_t>((value >> 1) ^ (~(value & 1) + 1));
  }
  // Of things that take `size` bytes each or more.
  size_t Count(size_t size = 1) {
    uint64_t count = Number();
    if (count > left() / size) ThrowInvalid("a count is larger than what follows");
    return static_cast<size_t>(count);
  }
  std::string_view Text() { return Raw(Number()); }
  DLDataType DType() {
    std::string_view bytes = Raw(4);
    auto byte = [&](size_t i) { return static_cast<uint8_t>(bytes[i]); };
    return {byte(0), byte(1), static_cast<uint16_t>(byte(2) | byte(3) << 8)};
  }

 private:
  const char* at_;
  const char* end_;
};

// How objects of a type are read. Records of fields are copied: the originals may move.
struct TypePlan {
  struct Field {
    TVMFFIFieldInfo info;
    size_t position;  // among all fields of the type
  };
  const TVMFFITypeInfo* info = nullptr;
  bool is_enum = false;
  std::vector<Field> fields;   // in the order in which they were written
  std::vector<Field> missing;  // were not written: they have a default
  size_t num_fields = 0;       // of the type here
  bool has_creator = false;
  Function create{nullptr};  // what makes an empty object, unless the type has a C function for it
  ConstructorPlan constructor;
  bool is_checked = false;  // that objects can be made from fields
};

/*! \brief What the chunks of one pickle share. */
class GraphReaderObj : public Object {
 public:
  Function load{nullptr};
  std::vector<Any> nodes;
  std::vector<TypePlan> types;
  std::vector<Any> in_cycles;  // objects that may be in one, until the frontend has seen them

  GraphReaderObj() = default;
  ~GraphReaderObj() { DropInOrder(&nodes); }

  TVM_FFI_DECLARE_OBJECT_INFO_FINAL("ffi.tether.GraphReader", GraphReaderObj, Object);
};

class GraphReader : public ObjectRef {
 public:
  explicit GraphReader(ObjectPtr<GraphReaderObj> data) : ObjectRef(std::move(data)) {}
  TVM_FFI_DEFINE_OBJECT_REF_METHODS_NOTNULLABLE(GraphReader, ObjectRef, GraphReaderObj);
};

class ChunkReader {
 public:
  ChunkReader(GraphReaderObj* shared, std::string_view bytes, Array<Tensor> buffers,
              Array<Any> outside)
      : shared_(shared),
        nodes_(shared->nodes),
        first_(shared->nodes.size()),
        first_type_(shared->types.size()),
        in_(bytes),
        buffers_(std::move(buffers)),
        outside_(std::move(outside)) {}

  // The number of the root.
  int64_t Read() {
    try {
      ReadHeader();
      size_t num_records = in_.Count();
      nodes_.reserve(first_ + num_records);
      for (size_t i = 0; i < num_records; ++i) ReadRecord();
      uint64_t distance = in_.Number();
      At(distance);
      if (in_.left() != 0) ThrowInvalid("something follows its end");
      if (next_buffer_ != buffers_.size()) ThrowInvalid("there are more buffers than tensors");
      if (next_outside_ != outside_.size())
        ThrowInvalid("it does not use all objects from outside");
      for (const auto& [number, declared] : declared_) {
        if (declared.end == 0) ThrowInvalid("an object is declared and never filled");
      }
      FindCycles();
      return static_cast<int64_t>(nodes_.size() - distance);
    } catch (...) {
      Undo();
      throw;
    }
  }

 private:
  struct Declared {
    const TypePlan* type;  // NULL for containers
    size_t end = 0;        // where it was filled: how many objects there were
  };

  // ---- types

  void ReadHeader() {
    if (in_.Raw(kGraphMagic.size()) != kGraphMagic) ThrowInvalid("it does not begin with TFG");
    uint8_t version = in_.Byte();
    if (version != kGraphVersion) {
      ThrowInvalid("its version is " + std::to_string(version) + ", and this library reads " +
                   std::to_string(kGraphVersion) + "; a newer release wrote it, or it is damaged");
    }
    size_t num_types = in_.Count(3);
    // Plans keep their addresses while objects are read.
    shared_->types.reserve(first_type_ + num_types);
    for (size_t i = 0; i < num_types; ++i) ReadType();
    if (in_.Number() != first_) ThrowInvalid("the part before this one is missing");
  }

  void Load(const char* what, std::string_view key, std::string_view note) {
    if (shared_->load == nullptr) return;
    shared_->load(what, String(key.data(), key.size()), String(note.data(), note.size()));
  }

  void ReadType() {
    std::string_view key = in_.Text();
    Load("class", key, in_.Text());
    TypePlan plan;
    plan.info = TVMFFIGetTypeInfo(IndexOfNamedType(key));
    int32_t type_index = plan.info->type_index;
    plan.is_enum = details::IsObjectInstance<EnumObj>(type_index);
    std::vector<TypePlan::Field> known;
    reflection::ForEachFieldInfo(plan.info, [&](const TVMFFIFieldInfo* field) {
      known.push_back({*field, known.size()});
    });
    plan.num_fields = known.size();
    size_t count = in_.Count();
    std::vector<bool> is_written(known.size(), false);
    for (size_t i = 0; i < count; ++i) {
      std::string_view name = in_.Text();
      size_t k = known.size();
      while (k > 0 && ToView(known[k - 1].info.name) != name) --k;
      if (k == 0) ThrowUnknownField(plan.info, name);
      if (is_written[k - 1]) ThrowInvalid("a field is named twice");
      is_written[k - 1] = true;
      plan.fields.push_back(known[k - 1]);
    }
    plan.has_creator = HasCreator(plan.info);
    bool has_native = plan.info->metadata != nullptr && plan.info->metadata->creator != nullptr;
    if (plan.has_creator && !has_native) plan.create = NewFunctionOf(plan.info).cast<Function>();
    if (!plan.has_creator && !plan.is_enum) plan.constructor = PlanConstructor(plan.info);
    for (size_t k = 0; k < known.size(); ++k) {
      if (!is_written[k]) plan.missing.push_back(known[k]);
    }
    shared_->types.push_back(std::move(plan));
  }

  TypePlan& Type(uint64_t number) const {
    if (number >= shared_->types.size()) ThrowInvalid("it has no such type");
    return shared_->types[static_cast<size_t>(number)];
  }

  // One that is made from its fields.
  const TypePlan& ObjectType(uint64_t number) const {
    TypePlan& type = Type(number);
    if (type.is_checked) return type;
    int32_t type_index = type.info->type_index;
    if (type.is_enum || DataFromJsonHook(type_index) != nullptr ||
        type_index < kTVMFFIDynObjectBegin) {
      ThrowInvalid("type `" + std::string(ToView(type.info->type_key)) +
                   "` is not made from fields");
    }
    if (!type.has_creator && type.constructor.construct == nullptr) {
      ThrowNotCreatable(type.info, "unpickling (no native creator or __ffi_new__ type attr)");
    }
    for (const TypePlan::Field& field : type.missing) {
      if ((field.info.flags & kTVMFFIFieldFlagBitMaskHasDefault) == 0) {
        ThrowFieldNotSet(type.info, ToView(field.info.name));
      }
    }
    type.is_checked = true;
    return type;
  }

  // ---- values

  const Any& At(uint64_t distance) const {
    if (distance == 0 || distance > nodes_.size()) ThrowInvalid("it has no such object");
    return nodes_[nodes_.size() - static_cast<size_t>(distance)];
  }

  Any ReadValue() {
    Any made;
    return ReadView(&made);
  }

  // What is read, without a reference of its own: `made` or the table holds it.
  AnyView ReadView(Any* made) {
    uint8_t tag = in_.Byte();
    if (tag < ValueTag::kFirstRef) return int64_t{tag};
    if (tag < ValueTag::kFirstText) return At(tag - ValueTag::kFirstRef + 1u);
    if (tag < ValueTag::kNone) {
      std::string_view text = in_.Raw(tag - ValueTag::kFirstText);
      *made = String(text.data(), text.size());
      return *made;
    }
    switch (tag) {
      case ValueTag::kNone:
        return nullptr;
      case ValueTag::kTrue:
        return true;
      case ValueTag::kFalse:
        return false;
      case ValueTag::kInt:
        return in_.Signed();
      case ValueTag::kFloat: {
        double number;
        std::memcpy(&number, in_.Raw(sizeof(number)).data(), sizeof(number));
        return number;
      }
      case ValueTag::kDType:
        return in_.DType();
      case ValueTag::kDevice: {
        int64_t type = in_.Signed(), id = in_.Signed();
        if (type != static_cast<int32_t>(type) || id != static_cast<int32_t>(id)) {
          ThrowInvalid("a device has a number beyond 32 bits");
        }
        return DLDevice{static_cast<DLDeviceType>(type), static_cast<int32_t>(id)};
      }
      case ValueTag::kBytes: {
        std::string_view bytes = in_.Text();
        *made = Bytes(bytes.data(), bytes.size());
        return *made;
      }
      case ValueTag::kRef:
        return At(in_.Number());
      default:
        ThrowInvalid("it has an unknown value");
    }
  }

  // ---- records

  void ReadRecord() {
    auto op = static_cast<NodeOp>(in_.Byte());
    if (op >= NodeOp::kShortObject) {
      auto number = static_cast<uint64_t>(op) - static_cast<uint64_t>(NodeOp::kShortObject);
      return Add(MakeObject(ObjectType(number)));
    }
    switch (op) {
      case NodeOp::kString: {
        std::string_view text = in_.Text();
        return Add(String(text.data(), text.size()));
      }
      case NodeOp::kBytes: {
        std::string_view bytes = in_.Text();
        return Add(Bytes(bytes.data(), bytes.size()));
      }
      case NodeOp::kBigInt:
        return Add(ReadBigInt());
      case NodeOp::kShape: {
        std::vector<int64_t> extents(in_.Count());
        for (int64_t& extent : extents) extent = in_.Signed();
        return Add(Shape(extents.begin(), extents.end()));
      }
      case NodeOp::kTensor:
        return Add(ReadTensor());
      case NodeOp::kError: {
        std::string kind(in_.Text()), message(in_.Text()), backtrace(in_.Text());
        return Add(Any(Error(kind, message, backtrace)));
      }
      case NodeOp::kFunction: {
        std::string_view name = in_.Text();
        Load("function", name, in_.Text());
        return Add(Function::GetGlobalRequired(name));
      }
      case NodeOp::kEnum:
        return Add(ReadEnum());
      case NodeOp::kHook: {
        const TypePlan& type = Type(in_.Number());
        AnyView hook = DataFromJsonHook(type.info->type_index);
        if (hook == nullptr) ThrowInvalid("a type without hook is read by one");
        return Add(hook.cast<Function>()(ReadValue()));
      }
      case NodeOp::kArray: {
        auto count = static_cast<int64_t>(in_.Count());
        Array<Any> array(ObjectPtr<Object>(ArrayOps::Empty(count)));
        for (int64_t i = 0; i < count; ++i) array.push_back(ReadValue());
        return Add(std::move(array));
      }
      case NodeOp::kList: {
        List<Any> list;
        ReadItems(&list);
        return Add(std::move(list));
      }
      case NodeOp::kMap: {
        Map<Any, Any> map;
        ReadEntries(&map);
        return Add(std::move(map));
      }
      case NodeOp::kDict: {
        Dict<Any, Any> dict;
        ReadEntries(&dict);
        return Add(std::move(dict));
      }
      case NodeOp::kObject:
        return Add(MakeObject(ObjectType(in_.Number())));
      case NodeOp::kDeclaredList:
        return Declare(List<Any>(), nullptr);
      case NodeOp::kDeclaredDict:
        return Declare(Dict<Any, Any>(), nullptr);
      case NodeOp::kDeclaredObject: {
        const TypePlan& type = ObjectType(in_.Number());
        if (!type.has_creator) ThrowInvalid("a type without creator is declared");
        return Declare(Any(ObjectRef(MakeEmpty(type))), &type);
      }
      case NodeOp::kOutside:
        if (next_outside_ == outside_.size()) ThrowInvalid("an object from outside is missing");
        return Add(outside_[static_cast<int64_t>(next_outside_++)]);
      default:
        return Fill();
    }
  }

  void Add(Any value) { nodes_.push_back(std::move(value)); }

  void Declare(Any value, const TypePlan* type) {
    declared_.emplace(nodes_.size(), Declared{type});
    Add(std::move(value));
  }

  void Fill() {
    uint64_t distance = in_.Number();
    Any node = At(distance);
    auto it = declared_.find(nodes_.size() - static_cast<size_t>(distance));
    if (it == declared_.end() || it->second.end != 0) {
      ThrowInvalid("an object is filled that was not declared");
    }
    it->second.end = nodes_.size();
    if (it->second.type != nullptr) {
      SetFields(*it->second.type, ObjectOf(node));
    } else if (auto list = node.as<List<Any>>()) {
      ReadItems(&*list);
    } else {
      auto dict = node.cast<Dict<Any, Any>>();
      ReadEntries(&dict);
    }
  }

  void ReadItems(List<Any>* list) {
    size_t count = in_.Count();
    list->reserve(static_cast<int64_t>(count));
    for (size_t i = 0; i < count; ++i) list->push_back(ReadValue());
  }

  template <typename Mapping>
  void ReadEntries(Mapping* map) {
    size_t count = in_.Count(2);
    for (size_t i = 0; i < count; ++i) {
      Any key = ReadValue();
      map->Set(std::move(key), ReadValue());
    }
  }

  Any ReadBigInt() {
    size_t size = in_.Count(sizeof(int64_t));
    if (size == 0) ThrowInvalid("a number has no words");
    auto number = make_inplace_array_object<details::BigIntObj, int64_t>(size, size);
    std::string_view words = in_.Raw(size * sizeof(int64_t));
    std::memcpy(details::BigIntUnsafe::GetMutableData(number), words.data(), words.size());
    return details::BigIntUnsafe::Normalize(std::move(number));
  }

  Any ReadEnum() {
    const TypePlan& type = Type(in_.Number());
    if (!type.is_enum) ThrowInvalid("a type that is not an enum is read as one");
    int32_t type_index = type.info->type_index;
    Any index = ReadValue();
    if (details::IsObjectInstance<IntEnumObj>(type_index)) {
      return EnumObj::_GetByIntIndex(type_index, index.cast<int64_t>());
    }
    return EnumObj::_GetByStrIndex(type_index, index.cast<String>());
  }

  Any ReadTensor() {
    uint8_t flags = in_.Byte();
    if (flags > 1) ThrowInvalid("a tensor has unknown flags");
    DLDataType dtype = in_.DType();
    std::vector<int64_t> extents(in_.Count());
    for (int64_t& extent : extents) {
      uint64_t value = in_.Number();
      if (value > INT64_MAX) ThrowInvalid("a tensor has an impossible shape");
      extent = static_cast<int64_t>(value);
    }
    if (next_buffer_ == buffers_.size()) ThrowInvalid("the memory of a tensor is missing");
    Tensor memory = buffers_[static_cast<int64_t>(next_buffer_++)];
    const DLTensor& given = *AnyView(memory).as<TensorObj>();
    DLTensor prototype = given;
    prototype.shape = extents.data();
    prototype.ndim = static_cast<int32_t>(extents.size());
    prototype.dtype = dtype;
    prototype.strides = nullptr;
    if (extents.size() > static_cast<size_t>(kMaxTensorDims)) {
      ThrowInvalid("a tensor has an impossible shape");
    }
    if (Defect defect = FindDefect(prototype); defect != Defect::kNone) {
      ThrowInvalid(Describe(defect, prototype));
    }
    if (GetDataSize(prototype) != GetDataSize(given) || !IsContiguous(given)) {
      ThrowInvalid("the memory of a tensor does not have its size");
    }
    std::vector<int64_t> strides(extents.size() + 1);  // not empty: its address must not be NULL
    details::FillStridesFromShape(ShapeView(extents.data(), extents.size()), strides.data());
    prototype.strides = strides.data();
    TVMFFIObjectHandle made = nullptr;
    TVM_FFI_CHECK_SAFE_CALL(TVMFFITensorCreateUnsafeView(
        details::ObjectUnsafe::TVMFFIObjectPtrFromObjectRef(memory), &prototype, &made));
    Tensor tensor(
        details::ObjectUnsafe::ObjectPtrFromOwned<TensorObj>(static_cast<TVMFFIObject*>(made)));
    bool is_read_only = flags != 0 || IsReadOnly(memory);
    if (!IsAligned(prototype)) {
      tensor = CopyTensor(prototype);
    } else if (IsReadOnly(tensor)) {
      return tensor;
    }
    return is_read_only ? AsReadOnly(tensor) : tensor;
  }

  // Elements at addresses that processors like; at most what malloc gives.
  static bool IsAligned(const DLTensor& t) {
    size_t size = GetDataSize(1, DLDataType{t.dtype.code, t.dtype.bits, 1});
    size_t alignment = 1;
    while (alignment < 16 && size % (2 * alignment) == 0) alignment *= 2;
    return (reinterpret_cast<uintptr_t>(t.data) + t.byte_offset) % alignment == 0;
  }

  static bool IsReadOnly(const Tensor& tensor) {
    DLManagedTensorVersioned* managed = tensor.ToDLPackVersioned();
    bool is_read_only = (managed->flags & DLPACK_FLAG_BITMASK_READ_ONLY) != 0;
    managed->deleter(managed);
    return is_read_only;
  }

  static Tensor AsReadOnly(const Tensor& tensor) {
    DLManagedTensorVersioned* managed = tensor.ToDLPackVersioned();
    managed->flags |= DLPACK_FLAG_BITMASK_READ_ONLY;
    return Tensor::FromDLPackVersioned(managed);
  }

  // ---- objects with fields

  Any MakeObject(const TypePlan& type) {
    if (!type.has_creator) return Construct(type);
    ObjectPtr<Object> object = MakeEmpty(type);
    SetFields(type, object.get());
    return Any(ObjectRef(std::move(object)));
  }

  static ObjectPtr<Object> MakeEmpty(const TypePlan& type) {
    if (type.create == nullptr) return CreateEmptyObject(type.info);
    auto made = type.create().cast<ObjectRef>();
    return details::ObjectUnsafe::ObjectPtrFromObjectRef<Object>(std::move(made));
  }

  void SetFields(const TypePlan& type, const Object* object) {
    const TypePlan::Field* current = nullptr;
    try {
      for (const TypePlan::Field& field : type.fields) {
        Any made;
        AnyView value = ReadView(&made);
        current = &field;
        reflection::FieldSetter (&field.info)(object, value);
        current = nullptr;
      }
      SetMissing(type, object);
    } catch (const Error& error) {
      if (current == nullptr) throw;
      RethrowWithField(ToView(current->info.name), type.info->type_index, error);
    }
  }

  static void SetMissing(const TypePlan& type, const Object* object) {
    for (const TypePlan::Field& field : type.missing) {
      reflection::SetFieldToDefault(&field.info, FieldAddress(object, &field.info));
    }
  }

  Any Construct(const TypePlan& type) {
    std::vector<Any> values;
    values.reserve(type.fields.size());
    std::vector<const Any*> by_position(type.num_fields, nullptr);
    for (const TypePlan::Field& field : type.fields) {
      values.push_back(ReadValue());
      by_position[field.position] = &values.back();
    }
    std::vector<AnyView> arguments;
    for (size_t i : type.constructor.fields) {
      if (by_position[i] == nullptr) ThrowInvalid("an argument of a constructor is missing");
      arguments.emplace_back(*by_position[i]);
    }
    Any made;
    type.constructor.construct.CallPacked(arguments.data(), static_cast<int32_t>(arguments.size()),
                                          &made);
    if (made.type_index() != type.info->type_index) {
      ThrowInvalid("a constructor made something else");
    }
    for (size_t i = 0; i < values.size(); ++i) {
      try {
        reflection::FieldSetter (&type.fields[i].info)(ObjectOf(made), values[i]);
      } catch (const Error& error) {
        RethrowWithField(ToView(type.fields[i].info.name), type.info->type_index, error);
      }
    }
    SetMissing(type, ObjectOf(made));
    return made;
  }

  // ---- cycles

  // A cycle goes through an object that was declared, and lies between its record and where it was
  // filled.
  void FindCycles() {
    if (declared_.empty()) return;
    std::vector<int32_t> changes(nodes_.size() + 1, 0);
    for (const auto& [number, declared] : declared_) {
      ++changes[number];
      --changes[declared.end];
    }
    int64_t depth = 0;
    for (size_t i = first_; i < nodes_.size(); ++i) {
      depth += changes[i];
      bool is_reflected = nodes_[i].type_index() >= kTVMFFIDynObjectBegin;
      if (depth > 0 && is_reflected) shared_->in_cycles.push_back(nodes_[i]);
    }
  }

  void Undo() noexcept {
    for (const auto& [number, declared] : declared_) {
      if (declared.end == 0 || number >= nodes_.size()) continue;
      try {
        Empty(nodes_[number], declared.type);
      } catch (...) {
        // A setter that refuses what the field of a new object has: it keeps what it has.
      }
    }
    nodes_.resize(first_);
    shared_->types.resize(first_type_);
  }

  static void Empty(const Any& node, const TypePlan* type) {
    if (auto list = node.as<List<Any>>()) {
      list->clear();
    } else if (auto dict = node.as<Dict<Any, Any>>()) {
      dict->clear();
    } else if (type != nullptr) {
      ObjectPtr<Object> fresh = CreateEmptyObject(type->info);
      for (const TypePlan::Field& field : type->fields) {
        Any value = reflection::FieldGetter(&field.info)(fresh);
        reflection::FieldSetter (&field.info)(ObjectOf(node), value);
      }
    }
  }

  GraphReaderObj* shared_;
  std::vector<Any>& nodes_;
  size_t first_;
  size_t first_type_;
  Input in_;
  Array<Tensor> buffers_;
  size_t next_buffer_ = 0;
  Array<Any> outside_;
  size_t next_outside_ = 0;
  std::unordered_map<size_t, Declared> declared_;  // by number
};

// A tensor, because that lends its memory: Bytes would be a copy.
std::string_view BytesOf(const Tensor& tensor) {
  DLDataType dtype = tensor.dtype();
  if (tensor.device().device_type != kDLCPU || dtype.bits != 8 || dtype.lanes != 1 ||
      !tensor.IsContiguous()) {
    ThrowInvalid("it is not made of bytes");
  }
  return {static_cast<const char*>(tensor.data_ptr()), static_cast<size_t>(tensor.numel())};
}

}  // namespace

TVM_FFI_STATIC_INIT_BLOCK() {
  reflection::GlobalDef()
      .def("ffi.tether.GraphReader",
           [](Function load) {
             auto reader = make_object<GraphReaderObj>();
             reader->load = std::move(load);
             return GraphReader(std::move(reader));
           })
      .def("ffi.tether.GraphRead",
           [](const GraphReader& reader, const Tensor& chunk, const Array<Tensor>& buffers,
              const Array<Any>& outside) {
             auto* shared = const_cast<GraphReaderObj*>(reader.get());
             return ChunkReader(shared, BytesOf(chunk), buffers, outside).Read();
           })
      .def("ffi.tether.GraphReaderAt",
           [](const GraphReader& reader, int64_t number) {
             if (number < 0 || static_cast<size_t>(number) >= reader->nodes.size()) {
               ThrowInvalid("it has no such object");
             }
             return reader->nodes[static_cast<size_t>(number)];
           })
      // Calls `see` with every object that may be in a cycle: what has a wrapper can be collected.
      .def("ffi.tether.GraphReaderShowCycles", [](const GraphReader& reader, const Function& see) {
        std::vector<Any> found = std::move(const_cast<GraphReaderObj*>(reader.get())->in_cycles);
        const_cast<GraphReaderObj*>(reader.get())->in_cycles.clear();
        for (const Any& object : found) see(object);
      });
}

}  // namespace tether
}  // namespace ffi
}  // namespace tvm
