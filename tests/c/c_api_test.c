// SPDX-License-Identifier: Apache-2.0
//
// The C ABI from C: includes c_api.h and c_env_api.h alone, and uses them as hand-written C
// extensions and code generators do. Built as C99 and as C11; exits with the number of failed
// checks.
#include <stddef.h>
#include <stdio.h>
#include <string.h>
#include <tvm/ffi/c_api.h>
#include <tvm/ffi/extra/c_env_api.h>

static int failures = 0;

#define CHECK(condition)                                              \
  do {                                                                \
    if (!(condition)) {                                               \
      fprintf(stderr, "%s:%d: %s\n", __FILE__, __LINE__, #condition); \
      ++failures;                                                     \
    }                                                                 \
  } while (0)

static TVMFFIByteArray Bytes(const char* text) {
  TVMFFIByteArray bytes;
  bytes.data = text;
  bytes.size = strlen(text);
  return bytes;
}

static TVMFFIAny None(void) {
  TVMFFIAny none = {0};
  return none;
}

static TVMFFIAny Int(int64_t value) {
  TVMFFIAny any = {.type_index = kTVMFFIInt, .v_int64 = value};
  return any;
}

static const TVMFFIErrorCell* ErrorCell(TVMFFIObjectHandle error) {
  return (const TVMFFIErrorCell*)((const char*)error + sizeof(TVMFFIObject));
}

static int SameText(TVMFFIByteArray bytes, const char* text) {
  return bytes.size == strlen(text) && memcmp(bytes.data, text, bytes.size) == 0;
}

// Takes the raised error and compares it; 1 when both kind and message agree.
static int Raised(const char* kind, const char* message) {
  TVMFFIObjectHandle error = NULL;
  int same;
  TVMFFIErrorMoveFromRaised(&error);
  if (error == NULL) return 0;
  same = SameText(ErrorCell(error)->kind, kind) && SameText(ErrorCell(error)->message, message);
  TVMFFIObjectDecRef(error);
  return same;
}

static int Add(void* self, const TVMFFIAny* args, int32_t num_args, TVMFFIAny* result) {
  (void)self;
  if (num_args != 2 || args[0].type_index != kTVMFFIInt || args[1].type_index != kTVMFFIInt) {
    const char* parts[3] = {"add expects ", NULL, "two ints"};
    TVMFFIErrorSetRaisedFromCStrParts("TypeError", parts, 3);
    return -1;
  }
  *result = Int(args[0].v_int64 + args[1].v_int64);
  return 0;
}

static int CountedCall(void* self, const TVMFFIAny* args, int32_t num_args, TVMFFIAny* result) {
  (void)args;
  (void)num_args;
  *result = Int(++*(int*)self);
  return 0;
}

static int released = 0;
static void Release(void* self) {
  (void)self;
  ++released;
}

// The layouts that compiled clients rely on, as the C compiler sees them.
static void TestLayout(void) {
  CHECK(sizeof(TVMFFIObject) == 24);
  CHECK(offsetof(TVMFFIObject, type_index) == 8);
  CHECK(offsetof(TVMFFIObject, __padding) == 12);
  CHECK(offsetof(TVMFFIObject, deleter) == 16);
  CHECK(sizeof(TVMFFIAny) == 16);
  CHECK(offsetof(TVMFFIAny, v_int64) == 8);
  CHECK(sizeof(TVMFFIErrorCell) == 72);
  CHECK(sizeof(TVMFFIFunctionCell) == 16);
  CHECK(sizeof(TVMFFISeqCell) == 32);
  CHECK(sizeof(TVMFFIFieldInfo) == 120);
  CHECK(sizeof(TVMFFIMethodInfo) == 72);
  CHECK(sizeof(TVMFFITypeMetadata) == 32);
  CHECK(sizeof(TVMFFITypeInfo) == 72);
  CHECK(sizeof(TVMFFITypeAttrColumn) == 16);
  CHECK(sizeof(TVMFFIObjectAllocHeader) == 8);
  CHECK(sizeof(TVMFFICustomAllocator) == 16);
  CHECK(sizeof(DLTensor) == 48);
  CHECK(sizeof(DLManagedTensorVersioned) == 80);
}

static void TestVersion(void) {
  TVMFFIVersion version;
  TVMFFIGetVersion(&version);
  CHECK(version.major == TVM_FFI_VERSION_MAJOR);
  CHECK(version.minor == TVM_FFI_VERSION_MINOR);
  CHECK(version.patch == TVM_FFI_VERSION_PATCH);
}

static void TestFunctions(void) {
  TVMFFIObjectHandle add = NULL;
  TVMFFIObjectHandle found = NULL;
  TVMFFIByteArray name = Bytes("c_test.add");
  TVMFFIByteArray unknown = Bytes("c_test.unknown");
  TVMFFIAny args[2];
  TVMFFIAny result = None();
  CHECK(TVMFFIFunctionCreate(NULL, Add, NULL, &add) == 0);
  CHECK(TVMFFIFunctionSetGlobal(&name, add, 0) == 0);
  CHECK(TVMFFIFunctionSetGlobal(&name, add, 0) == -1);
  CHECK(Raised("RuntimeError", "Global Function `c_test.add` is already registered"));
  CHECK(TVMFFIFunctionSetGlobal(&name, add, 1) == 0);
  CHECK(TVMFFIFunctionGetGlobal(&unknown, &found) == 0 && found == NULL);
  CHECK(TVMFFIFunctionGetGlobal(&name, &found) == 0 && found == add);
  args[0] = Int(40);
  args[1] = Int(2);
  CHECK(TVMFFIFunctionCall(found, args, 2, &result) == 0);
  CHECK(result.type_index == kTVMFFIInt && result.v_int64 == 42);
  CHECK(TVMFFIFunctionCall(found, args, 1, &result) == -1);
  CHECK(Raised("TypeError", "add expects two ints"));
  TVMFFIObjectDecRef(found);
  TVMFFIObjectDecRef(add);
}

static void TestFunctionWithState(void) {
  TVMFFIObjectHandle function = NULL;
  TVMFFIAny result = None();
  int calls = 0;
  released = 0;
  CHECK(TVMFFIFunctionCreate(&calls, CountedCall, Release, &function) == 0);
  CHECK(TVMFFIFunctionCall(function, NULL, 0, &result) == 0 && result.v_int64 == 1);
  CHECK(TVMFFIObjectIncRef(function) == 0);
  CHECK(TVMFFIObjectDecRef(function) == 0 && released == 0);
  CHECK(TVMFFIObjectDecRef(function) == 0 && released == 1 && calls == 1);
  CHECK(TVMFFIObjectDecRef(NULL) == 0);
}

static void TestStringsAndViews(void) {
  TVMFFIByteArray small = Bytes("seven77");
  TVMFFIByteArray large = Bytes("eight888");
  TVMFFIAny view = {.type_index = kTVMFFIRawStr, .v_c_str = "raw"};
  TVMFFIAny out;
  const TVMFFIByteArray* cell;
  CHECK(TVMFFIStringFromByteArray(&small, &out) == 0);
  CHECK(out.type_index == kTVMFFISmallStr && out.small_str_len == 7);
  CHECK(memcmp(out.v_bytes, "seven77", 8) == 0);
  CHECK(TVMFFIStringFromByteArray(&large, &out) == 0 && out.type_index == kTVMFFIStr);
  cell = (const TVMFFIByteArray*)((const char*)out.v_obj + sizeof(TVMFFIObject));
  CHECK(cell->size == 8 && strcmp(cell->data, "eight888") == 0);
  TVMFFIObjectDecRef(out.v_obj);
  CHECK(TVMFFIBytesFromByteArray(&small, &out) == 0 && out.type_index == kTVMFFISmallBytes);
  out = None();
  CHECK(TVMFFIAnyViewToOwnedAny(&view, &out) == 0);
  CHECK(out.type_index == kTVMFFISmallStr && strcmp(out.v_bytes, "raw") == 0);
}

static void TestErrors(void) {
  TVMFFIByteArray kind = Bytes("KeyError");
  TVMFFIByteArray message = Bytes("no such key");
  TVMFFIByteArray backtrace = Bytes("");
  TVMFFIObjectHandle error = NULL;
  TVMFFIObjectHandle taken = NULL;
  CHECK(TVMFFIErrorCreate(&kind, &message, &backtrace, &error) == 0);
  TVMFFIErrorSetRaised(error);
  TVMFFIErrorMoveFromRaised(&taken);
  CHECK(taken == error);
  TVMFFIObjectDecRef(taken);
  TVMFFIObjectDecRef(error);
  TVMFFIErrorMoveFromRaised(&taken);
  CHECK(taken == NULL);
  TVMFFIErrorSetRaisedFromCStr("ValueError", "from C");
  CHECK(Raised("ValueError", "from C"));
}

static void TestTypes(void) {
  TVMFFIByteArray key = Bytes("c_test.Shape");
  TVMFFIByteArray unknown = Bytes("c_test.Unknown");
  int32_t untouched = 12345;
  int32_t index;
  const TVMFFITypeInfo* info;
  CHECK(TVMFFITypeGetOrAllocIndex(&unknown, -1, 0, 0, 0, -2) == -2);
  index = TVMFFITypeGetOrAllocIndex(&key, -1, 1, 0, 1, kTVMFFIObject);
  CHECK(index >= kTVMFFIDynObjectBegin);
  CHECK(TVMFFITypeGetOrAllocIndex(&key, -1, 1, 0, 1, kTVMFFIObject) == index);
  info = TVMFFIGetTypeInfo(index);
  CHECK(info->type_index == index && info->type_depth == 1);
  CHECK(info->type_ancestors[0]->type_index == kTVMFFIObject);
  CHECK(SameText(info->type_key, "c_test.Shape"));
  CHECK(TVMFFITypeKeyToIndex(&unknown, &untouched) == -1 && untouched == 12345);
  TVMFFIErrorSetRaised(NULL);
}

static void TestDataTypes(void) {
  TVMFFIByteArray text = Bytes("float16x4");
  TVMFFIByteArray bad = Bytes("float16y");
  DLDataType dtype;
  TVMFFIAny out;
  CHECK(TVMFFIDataTypeFromString(&text, &dtype) == 0);
  CHECK(dtype.code == kDLFloat && dtype.bits == 16 && dtype.lanes == 4);
  CHECK(TVMFFIDataTypeToString(&dtype, &out) == 0);
  CHECK(out.type_index == kTVMFFIStr || out.type_index == kTVMFFISmallStr);
  if (out.type_index >= kTVMFFIStaticObjectBegin) TVMFFIObjectDecRef(out.v_obj);
  CHECK(TVMFFIDataTypeFromString(&bad, &dtype) == -1);
  CHECK(Raised("ValueError", "unknown dtype `float16y`"));
}

static void TestOpaqueObject(void) {
  TVMFFIObjectHandle object = NULL;
  int token = 0;
  released = 0;
  CHECK(TVMFFIObjectCreateOpaque(&token, kTVMFFIOpaquePyObject, Release, &object) == 0);
  CHECK(((TVMFFIObject*)object)->type_index == kTVMFFIOpaquePyObject);
  CHECK(((TVMFFIOpaqueObjectCell*)((char*)object + sizeof(TVMFFIObject)))->handle == &token);
  CHECK(TVMFFIObjectDecRef(object) == 0 && released == 1);
  CHECK(TVMFFIObjectCreateOpaque(&token, kTVMFFIStr, Release, &object) == -1);
  CHECK(Raised("RuntimeError", "Only kTVMFFIOpaquePyObject is supported for now"));
}

static void TestAllocator(void) {
  TVMFFICustomAllocator* allocator = TVMFFIGetCustomAllocator();
  TVMFFIObjectAllocHeader* header;
  char* body;
  CHECK(allocator != NULL);
  body = (char*)allocator->allocate(24, 8, kTVMFFIObject, allocator->context);
  CHECK(body != NULL && (uintptr_t)body % 16 == 0);
  header = (TVMFFIObjectAllocHeader*)(body - sizeof(TVMFFIObjectAllocHeader));
  header->delete_space(body);
  CHECK(TVMFFISetCustomAllocator(NULL) == 0 && TVMFFIGetCustomAllocator() == allocator);
}

static int MakeHandle(void** result) {
  static int value;
  *result = &value;
  return 0;
}

static int ForgetHandle(void* handle) {
  (void)handle;
  return 0;
}

static void TestEnvironment(void) {
  void* handle = NULL;
  int stream;
  TVMFFIStreamHandle before = &stream;
  CHECK(TVMFFIHandleInitOnce(&handle, MakeHandle) == 0 && handle != NULL);
  CHECK(TVMFFIHandleDeinitOnce(&handle, ForgetHandle) == 0 && handle == NULL);
  CHECK(TVMFFIEnvSetStream(kDLCUDA, 1, &stream, &before) == 0 && before == NULL);
  CHECK(TVMFFIEnvGetStream(kDLCUDA, 1) == &stream);
  CHECK(TVMFFIEnvSetStream(kDLCUDA, 1, NULL, NULL) == 0);
  CHECK(TVMFFIEnvCheckSignals() == 0);
}

int main(void) {
  TestLayout();
  TestVersion();
  TestFunctions();
  TestFunctionWithState();
  TestStringsAndViews();
  TestErrors();
  TestTypes();
  TestDataTypes();
  TestOpaqueObject();
  TestAllocator();
  TestEnvironment();
  if (failures == 0) printf("all checks passed\n");
  return failures;
}
