// SPDX-License-Identifier: Apache-2.0
//
// Writes object graphs in the binary form of graph_format.h.
//
// The walk goes depth first and writes an object when it leaves it. A reference back to an object
// that the walk is still in (an open one) makes that object declared, if it can be changed. An
// Array or a Map cannot: then what is between, and can be changed, is declared instead and put
// off until the walk is over; by then the Array or Map has been written.
#include <tvm/ffi/big_int.h>
#include <tvm/ffi/container/shape.h>
#include <tvm/ffi/container/tensor.h>
#include <tvm/ffi/device.h>
#include <tvm/ffi/dtype.h>
#include <tvm/ffi/enum.h>
#include <tvm/ffi/reflection/creator.h>
#include <tvm/ffi/reflection/registry.h>

#include <algorithm>
#include <cstddef>
#include <cstdint>
#include <deque>
#include <functional>
#include <initializer_list>
#include <iterator>
#include <memory>
#include <string>
#include <string_view>
#include <unordered_map>
#include <unordered_set>
#include <utility>
#include <vector>

#include "core/copy_tensor.h"
#include "graph_format.h"
#include "object_graph.h"

namespace tvm {
namespace ffi {
namespace tether {
namespace {

/*! \brief What the frontend has to do with an object. */
enum class Part : uint8_t {
  kNone,
  kNoted,   // keeps something at it that must travel with it
  kOutside  // pickles it itself
};

/*! \brief The part of an object; of all objects of a type, if the object is NULL. */
using PartFunction = Part (*)(TVMFFIObject* object, int32_t type_index);

/*! \brief Bytes in blocks: nothing is copied when more come. */
class Output {
 public:
  size_t size() const { return blocks_.size() * kBlockSize - static_cast<size_t>(end_ - at_); }
  void Byte(uint8_t value) {
    if (at_ == end_) AddBlock();
    *at_++ = static_cast<char>(value);
  }
  void Op(NodeOp op) { Byte(static_cast<uint8_t>(op)); }
  void Raw(const void* data, size_t size) {
    const auto* from = static_cast<const char*>(data);
    while (size > static_cast<size_t>(end_ - at_)) {
      auto part = static_cast<size_t>(end_ - at_);
      at_ = std::copy_n(from, part, at_);
      from += part;
      size -= part;
      AddBlock();
    }
    at_ = std::copy_n(from, size, at_);
  }
  void Number(uint64_t value) {
    for (; value >= 0x80; value >>= 7) Byte(static_cast<uint8_t>(value | 0x80));
    Byte(static_cast<uint8_t>(value));
  }
  void Signed(int64_t value) {
    Number((static_cast<uint64_t>(value) << 1) ^ static_cast<uint64_t>(value >> 63));
  }
  void Text(std::string_view text) {
    Number(text.size());
    Raw(text.data(), text.size());
  }
  void Text(const String& text) { Text(std::string_view(text.data(), text.size())); }
  void Text(const TVMFFIByteArray& text) { Text(std::string_view(text.data, text.size)); }
  void DType(DLDataType dtype) {
    Byte(dtype.code);
    Byte(dtype.bits);
    Byte(static_cast<uint8_t>(dtype.lanes));
    Byte(static_cast<uint8_t>(dtype.lanes >> 8));
  }
  /*! \brief Returns the end of what was copied. */
  char* CopyTo(char* out) const {
    size_t left = size();
    for (const auto& block : blocks_) {
      size_t part = std::min(left, kBlockSize);
      out = std::copy_n(block.get(), part, out);
      left -= part;
    }
    return out;
  }

 private:
  static constexpr size_t kBlockSize = 4096;
  void AddBlock() {
    blocks_.emplace_back(new char[kBlockSize]);  // not set to 0, as make_unique would do
    at_ = blocks_.back().get();
    end_ = at_ + kBlockSize;
  }

  std::vector<std::unique_ptr<char[]>> blocks_;
  char* at_ = nullptr;
  char* end_ = nullptr;
};

enum class Form : uint8_t { kObject, kConstructed, kHook, kEnum };

struct TypeEntry {
  size_t number;
  size_t num_fields;
  Form form;
  Part part;  // of every object of the type
};

std::string_view ContentOf(const Any& string) {
  const auto* text = static_cast<const details::StringObj*>(ObjectOf(string));
  return {text->data, text->size};
}

/*!
 * \brief Remembers strings that were written not long ago, by content. A string that it forgot is
 * written again. Small, so that looking into it costs little.
 */
class RecentStrings {
 public:
  /*! \brief The number of a string of `kept`, or `number`, which the string then has. */
  size_t FindOrSet(std::string_view content, const std::deque<Any>& kept, size_t number) {
    if (++count_ > slots_.size() && slots_.size() < kMaxSlots) {
      slots_.assign(slots_.empty() ? 64 : 4 * slots_.size(), Slot{});
    }
    size_t hash = std::hash<std::string_view>()(content);
    Slot& slot = slots_[hash & (slots_.size() - 1)];
    if (slot.hash == hash && slot.number < kept.size() && ContentOf(kept[slot.number]) == content) {
      return slot.number;
    }
    slot = {hash, number};
    return number;
  }
  void Clear() { *this = RecentStrings(); }

 private:
  static constexpr size_t kMaxSlots = 4096;
  struct Slot {
    size_t hash = 0;
    size_t number = SIZE_MAX;
  };
  std::vector<Slot> slots_;
  size_t count_ = 0;
};

/*!
 * \brief What the writer knows of each object, by address: open addressing, no removal.
 *
 * Objects that were made one after the other are neighbours here, too: large graphs are mostly
 * walked in about that order, and the table is larger than the caches.
 */
class StateTable {
 public:
  /*! \brief Says that an object will be looked up soon. */
  void Prefetch(const Object* object) const {
    if (!slots_.empty()) __builtin_prefetch(&slots_[IndexOf(object)], 1);
  }

  /*! \brief 0 for a new object. Valid until the next call. */
  size_t& operator[](const Object* object) {
    if (2 * (size_ + 1) > slots_.size()) Grow();
    Slot* slot = Find(object);
    if (slot->object == nullptr) {
      slot->object = object;
      ++size_;
    }
    return slot->state;
  }

 private:
  struct Slot {
    const Object* object = nullptr;
    size_t state = 0;
  };

  size_t IndexOf(const Object* object) const {
    auto address = reinterpret_cast<uintptr_t>(object);
    uint64_t region = (address >> 16) * uint64_t{0x9e3779b97f4a7c15};
    return ((address >> 4) + static_cast<size_t>(region >> 20)) & (slots_.size() - 1);
  }

  Slot* Find(const Object* object) {
    size_t mask = slots_.size() - 1;
    size_t i = IndexOf(object);
    while (slots_[i].object != nullptr && slots_[i].object != object) i = (i + 1) & mask;
    return &slots_[i];
  }

  void Grow() {
    std::vector<Slot> old = std::move(slots_);
    slots_ = std::vector<Slot>(old.empty() ? 16 : 2 * old.size());
    for (const Slot& slot : old) {
      if (slot.object != nullptr) *Find(slot.object) = slot;
    }
  }

  std::vector<Slot> slots_;
  size_t size_ = 0;
};

/*! \brief What the chunks of one pickle share. */
class GraphWriterObj : public Object {
 public:
  PartFunction part_of = nullptr;
  Function describe{nullptr};

  std::deque<Any> kept;  // what has a number, so that addresses stay its own
  StateTable states;     // see ChunkWriter
  // Whether everything of `kept` has a state. At first, objects with a single reference have none:
  // the walk comes to them only once.
  bool has_all_states = MayChangeAnyTime();

  GraphWriterObj() = default;
  ~GraphWriterObj() { DropInOrder(&kept); }

  RecentStrings strings;
  std::unordered_map<int32_t, TypeEntry> types;
  std::unordered_map<const Object*, String> names_of_functions;  // filled on first use

  TVM_FFI_DECLARE_OBJECT_INFO_FINAL("ffi.tether.GraphWriter", GraphWriterObj, Object);
};

class GraphWriter : public ObjectRef {
 public:
  explicit GraphWriter(ObjectPtr<GraphWriterObj> data) : ObjectRef(std::move(data)) {}
  TVM_FFI_DEFINE_OBJECT_REF_METHODS_NOTNULLABLE(GraphWriter, ObjectRef, GraphWriterObj);
};

struct WriterFrame {
  size_t number = SIZE_MAX;  // of the frame's object, if it was declared
  bool is_single = false;    // the object has a single reference, and no state
  bool is_noted = false;
  bool is_declared() const { return number != SIZE_MAX; }
};

class ChunkWriter : public GraphWalk<ChunkWriter, WriterFrame> {
 public:
  explicit ChunkWriter(GraphWriterObj* shared)
      : shared_(shared), first_(shared->kept.size()), first_type_(shared->types.size()) {}

  // [number, chunk, buffers, [number, object, ...] of noted ones, objects from outside]; the chunk
  // is None if an earlier one has the object. The number is None if objects have to be pickled by
  // the frontend first, those of the last entry: then nothing is written.
  //
  // `outside` are those that it has pickled. The root is written here, whatever the frontend says.
  Array<Any> Write(const ObjectRef& root, const Array<Any>& outside) {
    for (const Any& object : outside) {
      if (object.type_index() >= kTVMFFIStaticObjectBegin) is_outside_.insert(ObjectOf(object));
    }
    // User code ran since the last chunk, and may lead elsewhere to what had a single reference.
    if (first_ != 0) SetAllStates();
    size_t state = shared_->states[root.get()];
    if (state != 0) return {static_cast<int64_t>(state - 1), nullptr, buffers_, noted_, outside_};
    try {
      children_.push_back({root, nullptr});
      VisitChild(0);
      Drain(0);
      for (size_t i = 0; i < put_off_.size(); ++i) {
        size_t number = shared_->states[ObjectOf(put_off_[i])] - 1;
        WriterFrame frame;
        frame.number = number;
        Push(put_off_[i], 0, frame);
        Drain(0);
      }
      if (!missing_.empty()) {
        Undo();
        return {nullptr, nullptr, Array<Any>(), Array<Any>(), missing_};
      }
      size_t number = NumberIn(children_[0].value);
      records_.Number(next() - number);
      Output head;
      head.Raw(kGraphMagic.data(), kGraphMagic.size());
      head.Byte(kGraphVersion);
      head.Number(shared_->types.size() - first_type_);
      Output middle;
      middle.Number(first_);
      middle.Number(num_records_);
      Tensor chunk = Join({&head, &types_, &middle, &records_});
      return {static_cast<int64_t>(number), chunk, buffers_, noted_, outside_};
    } catch (...) {
      Undo();
      throw;
    }
  }

  // Afterwards the child is a value that is written in place, or stands for a number.
  void VisitChild(size_t index) {
    Any& value = children_[index].value;
    switch (value.type_index()) {
      case kTVMFFINone:
      case kTVMFFIBool:
      case kTVMFFIInt:
      case kTVMFFIFloat:
      case kTVMFFIDataType:
      case kTVMFFIDevice:
      case kTVMFFISmallStr:
      case kTVMFFISmallBytes:
        return;
      case kTVMFFIStr:
        value = StandIn(NumberOfString(std::move(value)));
        return;
      default:
        break;
    }
    if (value.type_index() < kTVMFFIStaticObjectBegin) {
      TVM_FFI_THROW(RuntimeError) << "Cannot serialize type `" << TypeKeyOf(value.type_index())
                                  << "`";
    }
    Prefetch(index + kAhead);
    if (HasSingleReference(ObjectOf(value))) return Enter(index, nullptr);
    size_t& state = shared_->states[ObjectOf(value)];
    if (state == 0) {
      Enter(index, &state);
    } else if (!IsOpen(state)) {
      value = StandIn(state - 1);
    } else {
      ReachBack(index, FrameOf(state));
    }
  }

  void Leave(Frame& frame) {
    const Object* object = ObjectOf(frame.node);
    bool is_declared = frame.data.is_declared();
    int32_t type_index = object->type_index();
    size_t count = frame.last - frame.first;
    if (is_declared) {
      Begin(NodeOp::kFill);
      records_.Number(next() - frame.data.number);
    }
    switch (type_index) {
      case kTVMFFIArray:
      case kTVMFFIList:
        if (!is_declared) Begin(type_index == kTVMFFIArray ? NodeOp::kArray : NodeOp::kList);
        records_.Number(count);
        break;
      case kTVMFFIMap:
      case kTVMFFIDict:
        if (!is_declared) Begin(type_index == kTVMFFIMap ? NodeOp::kMap : NodeOp::kDict);
        records_.Number(count / 2);
        break;
      default:
        if (!is_declared) BeginObject(TypeOf(type_index));
    }
    for (size_t i = frame.first; i < frame.last; ++i) WriteValue(children_[i].value, &records_);
    children_.resize(frame.first);  // none of them is an object any more
    Deliver(is_declared ? frame.data.number : Assign(std::move(frame.node), frame.data));
  }

  void Abandon(const Frame&) {}

 private:
  // The state of an object: 0 unknown; kOpen | position of its frame; else its number plus one.
  // An object that is declared has a number, also while the walk is in it.
  static constexpr size_t kOpen = size_t{1} << 63;
  static bool IsOpen(size_t state) { return (state & kOpen) != 0; }
  static size_t FrameOf(size_t state) { return state & ~kOpen; }

  // Large graphs do not fit into the caches: what comes soon is asked for early.
  static constexpr size_t kAhead = 8;
  void Prefetch(size_t index) const {
    if (index >= children_.size()) return;
    const Any& value = children_[index].value;
    if (value.type_index() < kTVMFFIStaticObjectBegin) return;
    __builtin_prefetch(ObjectOf(value), 1);
    shared_->states.Prefetch(ObjectOf(value));
  }

  // A number in the place of a child. No value is written as this type: it is a plain pointer.
  static Any StandIn(size_t number) { return Any(reinterpret_cast<void*>(number)); }
  static size_t NumberIn(const Any& value) { return reinterpret_cast<size_t>(value.cast<void*>()); }

  // Bytes that a frontend can use in place.
  static Tensor Join(std::initializer_list<const Output*> parts) {
    struct Memory {
      void AllocData(DLTensor* t) { t->data = new char[static_cast<size_t>(t->shape[0])]; }
      void FreeData(DLTensor* t) { delete[] static_cast<char*>(t->data); }
    };
    size_t size = 0;
    for (const Output* part : parts) size += part->size();
    Tensor joined = Tensor::FromNDAlloc(Memory(), {static_cast<int64_t>(size)},
                                        DLDataType{kDLUInt, 8, 1}, DLDevice{kDLCPU, 0});
    auto* at = static_cast<char*>(joined.data_ptr());
    for (const Output* part : parts) at = part->CopyTo(at);
    return joined;
  }

  // Apart from the one that the walk holds.
  bool HasSingleReference(const Object* object) const {
    return !shared_->has_all_states && object->use_count() <= 2;
  }

  // From here on objects may be met again, although they had a single reference.
  void SetAllStates() {
    if (shared_->has_all_states) return;
    shared_->has_all_states = true;
    for (size_t i = 0; i < next(); ++i) {
      const Any& node = shared_->kept[i];
      if (node.type_index() != kTVMFFIStr) shared_->states[ObjectOf(node)] = i + 1;
    }
    for (size_t i = 0; i < frames_.size(); ++i) {
      if (!std::exchange(frames_[i].data.is_single, false)) continue;
      shared_->states[ObjectOf(frames_[i].node)] = kOpen | i;
    }
  }

  size_t next() const { return shared_->kept.size(); }

  void Begin(NodeOp op) {
    records_.Op(op);
    ++num_records_;
  }

  void BeginObject(const TypeEntry& type) {
    constexpr auto kShort = static_cast<size_t>(NodeOp::kShortObject);
    if (type.form == Form::kHook) {
      Begin(NodeOp::kHook);
      records_.Number(type.number);
    } else if (kShort + type.number <= 0xff) {
      Begin(static_cast<NodeOp>(kShort + type.number));
    } else {
      Begin(NodeOp::kObject);
      records_.Number(type.number);
    }
  }

  size_t Assign(Any node, const WriterFrame& frame) {
    size_t number = next();
    if (!frame.is_single) shared_->states[ObjectOf(node)] = number + 1;
    if (frame.is_noted) {
      noted_.push_back(static_cast<int64_t>(number));
      noted_.push_back(node);
    }
    shared_->kept.push_back(std::move(node));
    return number;
  }

  // Puts the number of an object where the object was.
  void Deliver(size_t number) {
    if (!frames_.empty()) {
      children_[frames_.back().next - 1].value = StandIn(number);
    } else if (!is_root_done_) {
      children_[0].value = StandIn(number);
    }
    is_root_done_ |= frames_.empty();
  }

  Part PartOf(const Any& value) {
    if (shared_->part_of == nullptr) return Part::kNone;
    int32_t type_index = value.type_index();
    Part part = shared_->part_of(details::ObjectUnsafe::GetHeader(ObjectOf(value)), type_index);
    if (type_index < kTVMFFIDynObjectBegin) return part;
    return std::max(part, TypeOf(type_index).part);
  }

  // `state` is that of the object, and valid until another object is looked up. NULL: it has none.
  void Enter(size_t index, size_t* state) {
    Any value = std::move(children_[index].value);  // the number of the object takes its place
    WriterFrame frame;
    frame.is_single = state == nullptr;
    switch (value.type_index()) {
      // What arrives is an object of that process, which has a frontend's part already.
      case kTVMFFIBytes:
      case kTVMFFIBigInt:
      case kTVMFFIShape:
      case kTVMFFIError:
      case kTVMFFIFunction:
        WriteLeaf(value);
        children_[index].value = StandIn(Assign(std::move(value), frame));
        return;
      default:
        break;
    }
    if (value.type_index() >= kTVMFFIDynObjectBegin) {
      const TypeEntry& type = TypeOf(value.type_index());
      if (type.form == Form::kEnum) {
        WriteEnum(value, type);
        children_[index].value = StandIn(Assign(std::move(value), frame));
        return;
      }
    }
    Part part = PartOf(value);
    frame.is_noted = part != Part::kNone;
    if (part == Part::kOutside && index != 0) {
      frame.is_noted = false;
      WriteOutside(value);
      children_[index].value = StandIn(Assign(std::move(value), frame));
      return;
    }
    switch (value.type_index()) {
      case kTVMFFITensor:
        WriteLeaf(value);
        children_[index].value = StandIn(Assign(std::move(value), frame));
        return;
      case kTVMFFIArray:
      case kTVMFFIList:
      case kTVMFFIMap:
      case kTVMFFIDict:
        return Open(std::move(value), state, frame);
      default:
        if (TypeOf(value.type_index()).form != Form::kHook) {
          return Open(std::move(value), state, frame);
        }
        SetAllStates();  // the hook may give out anything
        frame.is_single = false;
        OpenHook(std::move(value), frame);
    }
  }

  void WriteOutside(const Any& value) {
    if (is_outside_.count(ObjectOf(value)) == 0) {
      missing_.push_back(value);
      return;
    }
    Begin(NodeOp::kOutside);
    outside_.push_back(value);
  }

  void Open(Any value, size_t* state, const WriterFrame& frame) {
    if (state != nullptr) *state = kOpen | frames_.size();
    Push(std::move(value), 0, frame);
  }

  // What the hook returns is the only part.
  void OpenHook(Any value, const WriterFrame& frame) {
    Any data = DataToJsonHook(value.type_index()).cast<Function>()(value);
    shared_->states[ObjectOf(value)] = kOpen | frames_.size();
    size_t first = children_.size();
    children_.push_back({std::move(data), nullptr});
    frames_.push_back(Frame{std::move(value), NodeKind::kFields, first, first, first + 1, frame});
  }

  bool CanBeDeclared(const Any& node) {
    switch (node.type_index()) {
      case kTVMFFIList:
      case kTVMFFIDict:
        return true;
      case kTVMFFIArray:
      case kTVMFFIMap:
        return false;
      default:
        return TypeOf(node.type_index()).form == Form::kObject;
    }
  }

  // Its number.
  size_t Declare(const Frame& frame) {
    const Any& node = frame.node;
    switch (node.type_index()) {
      case kTVMFFIList:
        Begin(NodeOp::kDeclaredList);
        break;
      case kTVMFFIDict:
        Begin(NodeOp::kDeclaredDict);
        break;
      default:
        Begin(NodeOp::kDeclaredObject);
        records_.Number(TypeOf(node.type_index()).number);
    }
    return Assign(node, frame.data);
  }

  // The child is the object of an open frame.
  void ReachBack(size_t index, size_t position) {
    if (CanBeDeclared(frames_[position].node)) {
      frames_[position].data.number = Declare(frames_[position]);
      children_[index].value = StandIn(frames_[position].data.number);
      return;
    }
    size_t i = frames_.size() - 1;
    while (i > position && !CanBeDeclared(frames_[i].node)) --i;
    if (i == position) {
      TVM_FFI_THROW(ValueError) << "Cycle detected during serialization: an object of type `"
                                << frames_[position].node.GetTypeKey()
                                << "` contains itself, and nothing in the cycle can be made first "
                                   "and filled later";
    }
    SetAllStates();  // parts of what is put off are met again
    Any node = frames_[i].node;
    for (size_t k = i; k < frames_.size(); ++k) {
      size_t& state = shared_->states[ObjectOf(frames_[k].node)];
      if (IsOpen(state)) state = 0;
    }
    size_t state = shared_->states[ObjectOf(node)];
    size_t number = state != 0 ? state - 1 : Declare(frames_[i]);
    put_off_.push_back(std::move(node));
    size_t first = frames_[i].first;
    while (frames_.size() > i) frames_.pop_back();
    DropChildren(first);
    Deliver(number);
  }

  size_t NumberOfString(Any value) {
    size_t number = shared_->strings.FindOrSet(ContentOf(value), shared_->kept, next());
    if (number == next()) {
      Begin(NodeOp::kString);
      records_.Text(ContentOf(value));
      shared_->kept.push_back(std::move(value));
    }
    return number;
  }

  void WriteLeaf(const Any& value) {
    switch (value.type_index()) {
      case kTVMFFIBytes: {
        const auto* bytes = static_cast<const details::BytesObj*>(ObjectOf(value));
        Begin(NodeOp::kBytes);
        records_.Text(std::string_view(bytes->data, bytes->size));
        return;
      }
      case kTVMFFIBigInt: {
        const auto* number = static_cast<const details::BigIntObj*>(ObjectOf(value));
        Begin(NodeOp::kBigInt);
        records_.Number(number->size());
        records_.Raw(number->data(), number->size() * sizeof(int64_t));
        return;
      }
      case kTVMFFIShape: {
        auto shape = value.cast<Shape>();
        Begin(NodeOp::kShape);
        records_.Number(shape.size());
        for (int64_t extent : shape) records_.Signed(extent);
        return;
      }
      case kTVMFFITensor:
        WriteTensor(value.cast<Tensor>(), *value.as<TensorObj>());
        return;
      case kTVMFFIError: {
        const auto* error = value.as<ErrorObj>();
        Begin(NodeOp::kError);
        records_.Text(error->kind);
        records_.Text(error->message);
        records_.Text(error->backtrace);
        return;
      }
      default:
        WriteFunction(value);
    }
  }

  void WriteTensor(const Tensor& tensor, const DLTensor& view) {
    if (tensor.device().device_type != kDLCPU) {
      TVM_FFI_THROW(TypeError) << "a tensor on "
                               << "device " << static_cast<int>(tensor.device().device_type) << ":"
                               << tensor.device().device_id
                               << " cannot be pickled: copy it to the CPU first, for example with "
                                  "torch.from_dlpack(x).cpu()";
    }
    Tensor memory = tensor;
    if (!IsContiguous(view)) memory = CopyTensor(view);
    DLManagedTensorVersioned* managed = tensor.ToDLPackVersioned();
    bool is_read_only = (managed->flags & DLPACK_FLAG_BITMASK_READ_ONLY) != 0;
    managed->deleter(managed);
    Begin(NodeOp::kTensor);
    records_.Byte(is_read_only ? 1 : 0);
    records_.DType(tensor.dtype());
    records_.Number(static_cast<uint64_t>(tensor.ndim()));
    for (int64_t extent : tensor.shape()) records_.Number(static_cast<uint64_t>(extent));
    buffers_.push_back(memory);
  }

  void WriteFunction(const Any& function) {
    auto& names = shared_->names_of_functions;
    if (names.empty()) {
      for (const String& name : Function::ListGlobalNames()) {
        if (auto known = Function::GetGlobal(name)) names.emplace(known->get(), name);
      }
    }
    auto it = names.find(ObjectOf(function));
    if (it == names.end()) {
      TVM_FFI_THROW(TypeError)
          << "Type `ffi.Function` cannot be pickled unless it is a global function, which travels "
             "by its name; tvm_ffi.register_global_func gives it one";
    }
    Begin(NodeOp::kFunction);
    records_.Text(it->second);
    records_.Text(NoteOn("function", {it->second.data(), it->second.size()}));
  }

  void WriteEnum(const Any& value, const TypeEntry& type) {
    const auto* entry = value.as<EnumObj>();
    bool by_int = value.as<IntEnumObj>() != nullptr;
    Any index = by_int ? Any(entry->_int_index) : Any(entry->_str_index);
    if (index.type_index() == kTVMFFIStr) index = StandIn(NumberOfString(std::move(index)));
    Begin(NodeOp::kEnum);
    records_.Number(type.number);
    WriteValue(index, &records_);
  }

  void WriteValue(const Any& value, Output* out) {
    switch (value.type_index()) {
      case kTVMFFINone:
        return out->Byte(ValueTag::kNone);
      case kTVMFFIBool:
        return out->Byte(value.cast<bool>() ? ValueTag::kTrue : ValueTag::kFalse);
      case kTVMFFIInt: {
        auto number = value.cast<int64_t>();
        if (number >= 0 && number < ValueTag::kFirstRef) {
          return out->Byte(static_cast<uint8_t>(number));
        }
        out->Byte(ValueTag::kInt);
        return out->Signed(number);
      }
      case kTVMFFIFloat: {
        auto number = value.cast<double>();
        out->Byte(ValueTag::kFloat);
        return out->Raw(&number, sizeof(number));
      }
      case kTVMFFIDataType:
        out->Byte(ValueTag::kDType);
        return out->DType(value.cast<DLDataType>());
      case kTVMFFIDevice: {
        auto device = value.cast<DLDevice>();
        out->Byte(ValueTag::kDevice);
        out->Signed(device.device_type);
        return out->Signed(device.device_id);
      }
      case kTVMFFISmallStr: {
        auto text = value.cast<String>();
        out->Byte(static_cast<uint8_t>(ValueTag::kFirstText + text.size()));
        return out->Raw(text.data(), text.size());
      }
      case kTVMFFISmallBytes: {
        auto bytes = value.cast<Bytes>();
        out->Byte(ValueTag::kBytes);
        return out->Text(std::string_view(bytes.data(), bytes.size()));
      }
      default: {
        size_t distance = next() - NumberIn(value);
        if (distance <= ValueTag::kFirstText - ValueTag::kFirstRef) {
          return out->Byte(static_cast<uint8_t>(ValueTag::kFirstRef + distance - 1));
        }
        out->Byte(ValueTag::kRef);
        return out->Number(distance);
      }
    }
  }

  String NoteOn(const char* what, std::string_view key) {
    if (shared_->describe == nullptr) return "";
    return shared_->describe(what, String(key.data(), key.size())).cast<String>();
  }

  const TypeEntry& TypeOf(int32_t type_index) {
    if (last_type_ != nullptr && last_type_index_ == type_index) return *last_type_;
    auto it = shared_->types.find(type_index);
    if (it == shared_->types.end()) it = AddType(type_index);
    last_type_index_ = type_index;
    last_type_ = &it->second;  // entries of the map stay where they are
    return it->second;
  }

  std::unordered_map<int32_t, TypeEntry>::iterator AddType(int32_t type_index) {
    const TVMFFITypeInfo* info = TVMFFIGetTypeInfo(type_index);
    TypeEntry entry{shared_->types.size(), 0, Form::kObject, Part::kNone};
    if (shared_->part_of != nullptr) entry.part = shared_->part_of(nullptr, type_index);
    if (details::IsObjectInstance<EnumObj>(type_index)) {
      entry.form = Form::kEnum;
    } else if (DataToJsonHook(type_index) != nullptr) {
      entry.form = Form::kHook;
    } else if (entry.part == Part::kOutside) {
      // How it is made is for the frontend to say.
    } else if (!HasCreator(info)) {
      entry.form = Form::kConstructed;
      if (PlanConstructor(info).construct == nullptr) {
        // The hint is for the author of a class; those of the interface stay as they are.
        TVM_FFI_THROW(TypeError) << "Type `" << ToView(info->type_key)
                                 << "` cannot be pickled (no native creator or __ffi_new__ type "
                                    "attr)"
                                 << (type_index < kTVMFFIDynObjectBegin
                                         ? ""
                                         : ": give it a default constructor, in Rust "
                                           "#[derive(Default)] on its struct");
      }
    }
    String note = NoteOn("class", ToView(info->type_key));
    std::vector<std::string_view> names;
    if (entry.form == Form::kObject || entry.form == Form::kConstructed) {
      reflection::ForEachFieldInfo(
          info, [&](const TVMFFIFieldInfo* field) { names.push_back(ToView(field->name)); });
    }
    types_.Text(ToView(info->type_key));
    types_.Text(note);
    types_.Number(names.size());
    for (std::string_view name : names) types_.Text(name);
    entry.num_fields = names.size();
    return shared_->types.emplace(type_index, entry).first;
  }

  // After an error nothing of this chunk has been written.
  void Undo() {
    for (const Frame& frame : frames_) {
      size_t& state = shared_->states[ObjectOf(frame.node)];
      if (IsOpen(state)) state = 0;
    }
    auto& kept = shared_->kept;
    for (size_t i = first_; i < kept.size(); ++i) {
      if (kept[i].type_index() != kTVMFFIStr) shared_->states[ObjectOf(kept[i])] = 0;
    }
    kept.resize(first_);
    shared_->strings.Clear();
    for (auto it = shared_->types.begin(); it != shared_->types.end();) {
      it = it->second.number >= first_type_ ? shared_->types.erase(it) : std::next(it);
    }
  }

  GraphWriterObj* shared_;
  size_t first_;
  size_t first_type_;
  size_t num_records_ = 0;
  Output types_;
  Output records_;
  Array<Any> buffers_;
  Array<Any> noted_;
  std::unordered_set<const Object*> is_outside_;
  Array<Any> outside_;  // the objects of kOutside, in order
  Array<Any> missing_;  // objects that the frontend has to pickle first
  std::vector<Any> put_off_;
  bool is_root_done_ = false;
  const TypeEntry* last_type_ = nullptr;
  int32_t last_type_index_ = 0;
};

}  // namespace

TVM_FFI_STATIC_INIT_BLOCK() {
  reflection::GlobalDef()
      .def("ffi.tether.GraphWriter",
           [](int64_t part_of, Function describe) {
             auto writer = make_object<GraphWriterObj>();
             writer->part_of = reinterpret_cast<PartFunction>(part_of);
             writer->describe = std::move(describe);
             return GraphWriter(std::move(writer));
           })
      .def("ffi.tether.GraphWrite",
           [](const GraphWriter& writer, const ObjectRef& value, const Array<Any>& outside) {
             return ChunkWriter(const_cast<GraphWriterObj*>(writer.get())).Write(value, outside);
           });
}

}  // namespace tether
}  // namespace ffi
}  // namespace tvm
