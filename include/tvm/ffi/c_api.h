/* SPDX-License-Identifier: Apache-2.0 */
/*
 * The C ABI of libtvm_ffi: every struct, constant and function a client of any language links to.
 * Valid C99 (with unnamed unions), C11 and C++17.
 *
 *   TVMFFIObjectHandle add;
 *   TVMFFIByteArray name = {"demo.add", 8};
 *   TVMFFIFunctionGetGlobal(&name, &add);
 *   TVMFFIAny args[2] = {{0}}, result = {0};
 *   args[0].type_index = args[1].type_index = kTVMFFIInt;
 *   args[0].v_int64 = 1;
 *   args[1].v_int64 = 2;
 *   if (TVMFFIFunctionCall(add, args, 2, &result) == 0) printf("%d\n", (int)result.v_int64);
 *   TVMFFIObjectDecRef(add);
 *
 * Conventions. Functions that return int give 0 for success, or -1 with the error in the calling
 * thread's slot (TVMFFIErrorMoveFromRaised). Arguments are borrowed; handles stored through an out
 * pointer are owned by the caller unless the function says otherwise. Layouts are compiled into
 * client binaries and never change; the static_asserts at the end pin them.
 */
#ifndef TVM_FFI_C_API_H_
#define TVM_FFI_C_API_H_

#include <dlpack/dlpack.h>
#include <stdint.h>

#ifdef _MSC_VER
#define TVM_FFI_WEAK __declspec(selectany)
#else
#define TVM_FFI_WEAK __attribute__((weak))
#endif

#if defined(__EMSCRIPTEN__)
#include <emscripten/emscripten.h>
#define TVM_FFI_DLL_EXPORT EMSCRIPTEN_KEEPALIVE
#define TVM_FFI_DLL_IMPORT_ EMSCRIPTEN_KEEPALIVE
#elif defined(_MSC_VER)
#define TVM_FFI_DLL_EXPORT __declspec(dllexport)
#define TVM_FFI_DLL_IMPORT_ __declspec(dllimport)
#else
#define TVM_FFI_DLL_EXPORT __attribute__((visibility("default")))
#define TVM_FFI_DLL_IMPORT_ __attribute__((visibility("default")))
#endif

#ifndef TVM_FFI_DLL
#ifdef TVM_FFI_EXPORTS
#define TVM_FFI_DLL TVM_FFI_DLL_EXPORT
#else
#define TVM_FFI_DLL TVM_FFI_DLL_IMPORT_
#endif
#endif

#if defined(__GNUC__) || defined(__clang__)
#define TVM_FFI_ATTRIBUTE_PURE __attribute__((__pure__))
#else
#define TVM_FFI_ATTRIBUTE_PURE
#endif

/* Unnamed unions are C11; before that GCC and Clang take them behind __extension__. */
#if !defined(__cplusplus) && defined(__GNUC__) && __STDC_VERSION__ < 201112L
#define TVM_FFI_UNNAMED_UNION_ __extension__ union
#else
#define TVM_FFI_UNNAMED_UNION_ union
#endif

#define TVM_FFI_VERSION_MAJOR 0
#define TVM_FFI_VERSION_MINOR 1
#define TVM_FFI_VERSION_PATCH 15

/* The release of this implementation; the numbers above say which interface it implements. */
#define TVM_FFI_TETHER_VERSION_MAJOR 0
#define TVM_FFI_TETHER_VERSION_MINOR 1
#define TVM_FFI_TETHER_VERSION_PATCH 0

/* Both versions in an ELF note (name "TVM-FFI", type 1) of everything compiled with this header, so
 * that a client can be asked what it was built with before it is loaded: `readelf -n client.so`. */
#if defined(__ELF__) && defined(__GNUC__) && !defined(__CUDA_ARCH__)
#define TVM_FFI_NOTE_TEXT_(x) #x
#define TVM_FFI_NOTE_WORD_(x) "\t.4byte " TVM_FFI_NOTE_TEXT_(x) "\n"
__asm__(
    "\t.pushsection .note.tvm_ffi,\"a\",%note\n\t.balign 4\n"
    "\t.4byte 8\n\t.4byte 24\n\t.4byte 1\n\t.asciz \"TVM-FFI\"\n" TVM_FFI_NOTE_WORD_(
        TVM_FFI_VERSION_MAJOR) TVM_FFI_NOTE_WORD_(TVM_FFI_VERSION_MINOR)
        TVM_FFI_NOTE_WORD_(TVM_FFI_VERSION_PATCH) TVM_FFI_NOTE_WORD_(TVM_FFI_TETHER_VERSION_MAJOR)
            TVM_FFI_NOTE_WORD_(TVM_FFI_TETHER_VERSION_MINOR)
                TVM_FFI_NOTE_WORD_(TVM_FFI_TETHER_VERSION_PATCH) "\t.popsection\n");
#undef TVM_FFI_NOTE_WORD_
#undef TVM_FFI_NOTE_TEXT_
#endif

/* The enum macros would be taken for statements. */
/* clang-format off */
#ifdef __cplusplus
#define TVM_FFI_ENUM_BEGIN_(Name) enum Name : int32_t {
#define TVM_FFI_ENUM_END_(Name) }
extern "C" {
#else
#define TVM_FFI_ENUM_BEGIN_(Name) typedef enum {
#define TVM_FFI_ENUM_END_(Name) } Name
#endif

/* ---- Values --------------------------------------------------------------------------------- */

/* What a TVMFFIAny holds and what an object is: one number space. At or above
 * kTVMFFIStaticObjectBegin the payload is a counted object. */
TVM_FFI_ENUM_BEGIN_(TVMFFITypeIndex)
  kTVMFFIAny = -1, /* only as the static type of a field */
  kTVMFFINone = 0,
  kTVMFFIInt = 1,
  kTVMFFIBool = 2,
  kTVMFFIFloat = 3,
  kTVMFFIOpaquePtr = 4,
  kTVMFFIDataType = 5,
  kTVMFFIDevice = 6,
  kTVMFFIDLTensorPtr = 7,      /* borrowed DLTensor* */
  kTVMFFIRawStr = 8,           /* borrowed NUL-terminated string; views only */
  kTVMFFIByteArrayPtr = 9,     /* borrowed TVMFFIByteArray*; views only */
  kTVMFFIObjectRValueRef = 10, /* address of an object pointer to move from; views only */
  kTVMFFISmallStr = 11,        /* up to 7 bytes inside the value */
  kTVMFFISmallBytes = 12,
  kTVMFFIUnchanged = 13, /* no payload: a mutation leaves the value as it is */
  kTVMFFIStaticObjectBegin = 64,
  kTVMFFIObject = 64,
  kTVMFFIStr = 65,
  kTVMFFIBytes = 66,
  kTVMFFIError = 67,
  kTVMFFIFunction = 68,
  kTVMFFIShape = 69,
  kTVMFFITensor = 70,
  kTVMFFIArray = 71,
  kTVMFFIMap = 72,
  kTVMFFIModule = 73,
  kTVMFFIOpaquePyObject = 74,
  kTVMFFIList = 75,
  kTVMFFIDict = 76,
  kTVMFFIVisitInterrupt = 77,
  kTVMFFIBigInt = 78,          /* an integer outside int64; see TVMFFIBigIntFromByteArray */
  kTVMFFIStaticObjectEnd = 79, /* moves as static types are added */
  kTVMFFIDynObjectBegin = 128
TVM_FFI_ENUM_END_(TVMFFITypeIndex);

typedef void* TVMFFIObjectHandle;

/* Header of every heap object. */
typedef struct {
  uint64_t combined_ref_count; /* strong count in the low half, weak count in the high half */
  int32_t type_index;
  /* 0: nothing is known of the block. kTVMFFIObjectAllocHeaderMark: a TVMFFIObjectAllocHeader ends
   * where this object begins. Top bit set: number of an adopted tie slot. */
  uint32_t __padding;
#ifndef TVM_FFI_DOXYGEN_MODE
  TVM_FFI_UNNAMED_UNION_ {
#endif
    void (*deleter)(void* self, int flags); /* NULL: storage is not released */
#ifndef TVM_FFI_DOXYGEN_MODE
    int64_t __ensure_align;
  };
#endif
} TVMFFIObject;

TVM_FFI_ENUM_BEGIN_(TVMFFIObjectDeleterFlagBitMask)
  kTVMFFIObjectDeleterFlagBitMaskStrong = 1 << 0, /* run the destructor */
  kTVMFFIObjectDeleterFlagBitMaskWeak = 1 << 1,   /* release the storage */
  kTVMFFIObjectDeleterFlagBitMaskBoth = (1 << 0) | (1 << 1)
TVM_FFI_ENUM_END_(TVMFFIObjectDeleterFlagBitMask);

/* One value, owned or borrowed by context. zero_padding and unused payload bytes are always 0. */
typedef struct {
  int32_t type_index;
#ifndef TVM_FFI_DOXYGEN_MODE
  TVM_FFI_UNNAMED_UNION_ {
#endif
    uint32_t zero_padding;
    uint32_t small_str_len;
#ifndef TVM_FFI_DOXYGEN_MODE
  };
  TVM_FFI_UNNAMED_UNION_ {
#endif
    int64_t v_int64;
    double v_float64;
    void* v_ptr;
    const char* v_c_str;
    TVMFFIObject* v_obj;
    DLDataType v_dtype;
    DLDevice v_device;
    char v_bytes[8];
    uint64_t v_uint64;
#ifndef TVM_FFI_DOXYGEN_MODE
  };
#endif
} TVMFFIAny;

/* ---- Cells: the fields that follow the 24-byte header of the built-in objects --------------- */

typedef struct {
  const char* data;
  size_t size;
} TVMFFIByteArray;

typedef struct {
  const int64_t* data;
  size_t size;
} TVMFFIShapeCell;

#ifdef __cplusplus
struct TVMFFISeqCell {
#else
typedef struct {
#endif
  void* data; /* array of TVMFFIAny */
  int64_t size;
  int64_t capacity;
  void (*data_deleter)(void* data); /* NULL: elements live inside the object's own block */
#ifdef __cplusplus
};
#else
} TVMFFISeqCell;
#endif

TVM_FFI_ENUM_BEGIN_(TVMFFIBacktraceUpdateMode)
  kTVMFFIBacktraceUpdateModeReplace = 0,
  kTVMFFIBacktraceUpdateModeAppend = 1
TVM_FFI_ENUM_END_(TVMFFIBacktraceUpdateMode);

typedef struct {
  TVMFFIByteArray kind;
  TVMFFIByteArray message;
  TVMFFIByteArray backtrace; /* most recent call first */
  void (*update_backtrace)(TVMFFIObjectHandle self, const TVMFFIByteArray* backtrace,
                           int32_t update_mode);
  TVMFFIObjectHandle cause_chain;   /* owned, may be NULL */
  TVMFFIObjectHandle extra_context; /* owned, may be NULL */
} TVMFFIErrorCell;

/* `result` holds a non-object value on entry; the callee stores an owned value or leaves it. */
typedef int (*TVMFFISafeCallType)(void* handle, const TVMFFIAny* args, int32_t num_args,
                                  TVMFFIAny* result);

typedef struct {
  TVMFFISafeCallType safe_call;
  void* cpp_call; /* NULL, or a C++ entry that throws instead of returning a code */
} TVMFFIFunctionCell;

typedef struct {
  void* handle;
} TVMFFIOpaqueObjectCell;

/* ---- Versions ------------------------------------------------------------------------------- */

typedef struct {
  uint32_t major;
  uint32_t minor;
  uint32_t patch;
} TVMFFIVersion;

/* The interface level of the loaded runtime. */
TVM_FFI_DLL void TVMFFIGetVersion(TVMFFIVersion* out_version);

/* ---- Objects and their storage -------------------------------------------------------------- */

/* Ends exactly where the object's body begins. */
typedef struct {
  void (*delete_space)(void* body); /* NULL: the producer's deleter releases the block itself */
} TVMFFIObjectAllocHeader;

/* Value of TVMFFIObject::__padding that says "an alloc header precedes me". */
enum { kTVMFFIObjectAllocHeaderMark = 0x54494544 };

typedef struct {
  /* Returns `size` bytes aligned to `alignment` (at most that of max_align_t), preceded by a valid
   * TVMFFIObjectAllocHeader. type_index is a hint. Called from any thread, at any time. */
  void* (*allocate)(size_t size, size_t alignment, int32_t type_index, void* context);
  void* context;
} TVMFFICustomAllocator;

/* The allocator new objects come from. Never NULL, one relaxed load, valid during static
 * initialisation of any library. */
TVM_FFI_DLL TVMFFICustomAllocator* TVMFFIGetCustomAllocator(void);
/* Referenced, not copied: the struct must live to the end of the process. NULL restores the built-in. */
TVM_FFI_DLL int TVMFFISetCustomAllocator(TVMFFICustomAllocator* allocator);

TVM_FFI_DLL int TVMFFIObjectIncRef(TVMFFIObjectHandle obj);
/* NULL is accepted. */
TVM_FFI_DLL int TVMFFIObjectDecRef(TVMFFIObjectHandle obj);
/* An object whose destructor calls deleter(handle). type_index must be kTVMFFIOpaquePyObject. */
TVM_FFI_DLL int TVMFFIObjectCreateOpaque(void* handle, int32_t type_index,
                                         void (*deleter)(void* handle), TVMFFIObjectHandle* out);

/* ---- Strings -------------------------------------------------------------------------------- */

TVM_FFI_DLL int TVMFFIStringFromByteArray(const TVMFFIByteArray* input, TVMFFIAny* out);
TVM_FFI_DLL int TVMFFIBytesFromByteArray(const TVMFFIByteArray* input, TVMFFIAny* out);

/* ---- Integers of any size ------------------------------------------------------------------- */

/* `input`: whole 64-bit words in native byte order, least significant first, together a two's
 * complement number; empty means 0. `out`: an Int if the number fits int64, else a BigInt. */
TVM_FFI_DLL int TVMFFIBigIntFromByteArray(const TVMFFIByteArray* input, TVMFFIAny* out);
/* The words of an Int, inside `value` itself, or of a BigInt. */
TVM_FFI_DLL TVMFFIByteArray TVMFFIBigIntGetContentByteArray(const TVMFFIAny* value);

/* ---- Element types -------------------------------------------------------------------------- */

TVM_FFI_DLL int TVMFFIDataTypeFromString(const TVMFFIByteArray* str, DLDataType* out);
TVM_FFI_DLL int TVMFFIDataTypeToString(const DLDataType* dtype, TVMFFIAny* out);

/* ---- Functions ------------------------------------------------------------------------------ */

/* Without self and deleter the cell's safe_call is the given pointer and receives the function object
 * as its handle; otherwise it receives self, and deleter(self) runs when the function dies. */
TVM_FFI_DLL int TVMFFIFunctionCreate(void* self, TVMFFISafeCallType safe_call,
                                     void (*deleter)(void* self), TVMFFIObjectHandle* out);
TVM_FFI_DLL int TVMFFIFunctionCall(TVMFFIObjectHandle func, TVMFFIAny* args, int32_t num_args,
                                   TVMFFIAny* result);
TVM_FFI_DLL int TVMFFIFunctionSetGlobal(const TVMFFIByteArray* name, TVMFFIObjectHandle f,
                                        int allow_override);
/* *out is NULL, with return code 0, when there is no such function. */
TVM_FFI_DLL int TVMFFIFunctionGetGlobal(const TVMFFIByteArray* name, TVMFFIObjectHandle* out);
/* Turns a borrowed value into an owned one: strings are copied, rvalue references emptied. */
TVM_FFI_DLL int TVMFFIAnyViewToOwnedAny(const TVMFFIAny* any_view, TVMFFIAny* out);

/* ---- Errors --------------------------------------------------------------------------------- */

TVM_FFI_DLL void TVMFFIErrorMoveFromRaised(TVMFFIObjectHandle* result);
TVM_FFI_DLL void TVMFFIErrorSetRaised(TVMFFIObjectHandle error);
TVM_FFI_DLL void TVMFFIErrorSetRaisedFromCStr(const char* kind, const char* message);
/* The message is the concatenation of the parts; NULL parts are skipped. */
TVM_FFI_DLL void TVMFFIErrorSetRaisedFromCStrParts(const char* kind, const char** message_parts,
                                                   int32_t num_parts);
TVM_FFI_DLL int TVMFFIErrorCreate(const TVMFFIByteArray* kind, const TVMFFIByteArray* message,
                                  const TVMFFIByteArray* backtrace, TVMFFIObjectHandle* out);
TVM_FFI_DLL int TVMFFIErrorCreateWithCauseAndExtraContext(
    const TVMFFIByteArray* kind, const TVMFFIByteArray* message, const TVMFFIByteArray* backtrace,
    TVMFFIObjectHandle cause_chain, TVMFFIObjectHandle extra_context, TVMFFIObjectHandle* out);
/* Text of the current stack, most recent call first, valid until the thread's next call. */
TVM_FFI_DLL const TVMFFIByteArray* TVMFFIBacktrace(const char* filename, int lineno,
                                                   const char* func, int cross_ffi_boundary);

/* ---- Tensors -------------------------------------------------------------------------------- */

/* Both take over `from`, on success only. */
TVM_FFI_DLL int TVMFFITensorFromDLPack(DLManagedTensor* from, int32_t require_alignment,
                                       int32_t require_contiguous, TVMFFIObjectHandle* out);
TVM_FFI_DLL int TVMFFITensorFromDLPackVersioned(DLManagedTensorVersioned* from,
                                                int32_t require_alignment,
                                                int32_t require_contiguous,
                                                TVMFFIObjectHandle* out);
TVM_FFI_DLL int TVMFFITensorToDLPack(TVMFFIObjectHandle from, DLManagedTensor** out);
TVM_FFI_DLL int TVMFFITensorToDLPackVersioned(TVMFFIObjectHandle from,
                                              DLManagedTensorVersioned** out);
/* A tensor with the geometry of `prototype` that keeps `source` alive. */
TVM_FFI_DLL int TVMFFITensorCreateUnsafeView(TVMFFIObjectHandle source, const DLTensor* prototype,
                                             TVMFFIObjectHandle* out);

/* ---- Handles made once per process ---------------------------------------------------------- */

TVM_FFI_DLL int TVMFFIHandleInitOnce(void** handle_addr, int (*init_func)(void** result));
TVM_FFI_DLL int TVMFFIHandleDeinitOnce(void** handle_addr, int (*deinit_func)(void* handle));

/* ---- Types and reflection ------------------------------------------------------------------- */

TVM_FFI_ENUM_BEGIN_(TVMFFIFieldFlagBitMask)
  kTVMFFIFieldFlagBitMaskWritable = 1 << 0,
  kTVMFFIFieldFlagBitMaskHasDefault = 1 << 1,
  kTVMFFIFieldFlagBitMaskIsStaticMethod = 1 << 2,
  kTVMFFIFieldFlagBitMaskSEqHashIgnore = 1 << 3,
  /* Defines variables, and so does all below it. */
  kTVMFFIFieldFlagBitMaskSEqHashDefPattern = 1 << 4,
  kTVMFFIFieldFlagBitMaskSEqHashDefRecursive = 1 << 4, /* its name up to 0.1.13 */
  kTVMFFIFieldFlagBitMaskDefaultFromFactory = 1 << 5,
  kTVMFFIFieldFlagBitMaskReprOff = 1 << 6,
  kTVMFFIFieldFlagBitMaskCompareOff = 1 << 7,
  kTVMFFIFieldFlagBitMaskHashOff = 1 << 8,
  kTVMFFIFieldFlagBitMaskInitOff = 1 << 9,
  kTVMFFIFieldFlagBitMaskKwOnly = 1 << 10,
  /* `setter` is a function object called with (OpaquePtr to the field, value). */
  kTVMFFIFieldFlagBitSetterIsFunctionObj = 1 << 11,
  /* Defines variables; what is inside a variable uses them. */
  kTVMFFIFieldFlagBitMaskSEqHashDefSimple = 1 << 12,
  kTVMFFIFieldFlagBitMaskSEqHashDefNonRecursive = 1 << 12, /* its name up to 0.1.13 */
  /* The bytes at the field are exactly the representation of field_static_type_index, so a frontend
   * may read them without a call: bool, integer of `size` bytes (see PlainUnsigned), float of `size`
   * bytes, pointer, DLDataType, DLDevice; from kTVMFFIObject on one object pointer, NULL for None;
   * for kTVMFFIAny one TVMFFIAny cell. */
  kTVMFFIFieldFlagBitMaskPlainUnsigned = 1 << 29,
  kTVMFFIFieldFlagBitMaskPlain = 1 << 30
TVM_FFI_ENUM_END_(TVMFFIFieldFlagBitMask);

TVM_FFI_ENUM_BEGIN_(TVMFFISEqHashKind)
  kTVMFFISEqHashKindUnsupported = 0,
  kTVMFFISEqHashKindTreeNode = 1,
  kTVMFFISEqHashKindFreeVar = 2,
  kTVMFFISEqHashKindDAGNode = 3,
  kTVMFFISEqHashKindConstTreeNode = 4,
  kTVMFFISEqHashKindUniqueInstance = 5
TVM_FFI_ENUM_END_(TVMFFISEqHashKind);

TVM_FFI_ENUM_BEGIN_(TVMFFIDefRegionKind)
  kTVMFFIDefRegionKindNone = 0,
  kTVMFFIDefRegionKindPattern = 1,
  kTVMFFIDefRegionKindSimple = 2,
  kTVMFFIDefRegionKindRecursive = 1,   /* the names up to 0.1.13 */
  kTVMFFIDefRegionKindNonRecursive = 2
TVM_FFI_ENUM_END_(TVMFFIDefRegionKind);

typedef int (*TVMFFIFieldGetter)(void* field, TVMFFIAny* result);
typedef int (*TVMFFIFieldSetter)(void* field, const TVMFFIAny* value);
typedef int (*TVMFFIObjectCreator)(TVMFFIObjectHandle* result);

typedef struct {
  TVMFFIByteArray name;
  TVMFFIByteArray doc;
  TVMFFIByteArray metadata; /* JSON object text */
  int64_t flags;
  int64_t size;
  int64_t alignment;
  int64_t offset; /* from the address of the object header */
  TVMFFIFieldGetter getter;
  void* setter; /* TVMFFIFieldSetter, or a function object by flag */
  TVMFFIAny default_value_or_factory;
  int32_t field_static_type_index;
} TVMFFIFieldInfo;

typedef struct {
  TVMFFIByteArray name;
  TVMFFIByteArray doc;
  TVMFFIByteArray metadata;
  int64_t flags;
  TVMFFIAny method;
} TVMFFIMethodInfo;

typedef struct {
  TVMFFIByteArray doc;
  TVMFFIObjectCreator creator; /* NULL when the type has none */
  int32_t total_size;          /* sizeof the class, 0 when unknown */
  TVMFFISEqHashKind structural_eq_hash_kind;
} TVMFFITypeMetadata;

/* One attribute for all types: the entry of type t is data[t - begin_index], None outside. The struct's
 * address is stable, its members change as attributes are registered. */
typedef struct {
  const TVMFFIAny* data;
  int32_t size;
  int32_t begin_index;
} TVMFFITypeAttrColumn;

#ifdef __cplusplus
struct TVMFFITypeInfo {
#else
typedef struct TVMFFITypeInfo {
#endif
  int32_t type_index;
  int32_t type_depth; /* 0 for the root */
  TVMFFIByteArray type_key;
  const struct TVMFFITypeInfo** type_ancestors; /* type_depth entries, root first */
  uint64_t type_key_hash;
  int32_t num_fields;
  int32_t num_methods;
  const TVMFFIFieldInfo* fields;
  const TVMFFIMethodInfo* methods;
  const TVMFFITypeMetadata* metadata; /* NULL until registered */
#ifdef __cplusplus
};
#else
} TVMFFITypeInfo;
#endif

/* Index of type_key, registering it when new. parent_type_index -1: a root; -2: only look the key up
 * (-2 when unknown). */
TVM_FFI_DLL int32_t TVMFFITypeGetOrAllocIndex(const TVMFFIByteArray* type_key,
                                              int32_t static_type_index, int32_t type_depth,
                                              int32_t num_child_slots,
                                              int32_t child_slots_can_overflow,
                                              int32_t parent_type_index);
TVM_FFI_DLL const TVMFFITypeInfo* TVMFFIGetTypeInfo(int32_t type_index) TVM_FFI_ATTRIBUTE_PURE;
TVM_FFI_DLL int TVMFFITypeKeyToIndex(const TVMFFIByteArray* type_key, int32_t* out_tindex);
TVM_FFI_DLL int TVMFFITypeRegisterField(int32_t type_index, const TVMFFIFieldInfo* info);
TVM_FFI_DLL int TVMFFITypeRegisterMethod(int32_t type_index, const TVMFFIMethodInfo* info);
TVM_FFI_DLL int TVMFFITypeRegisterMetadata(int32_t type_index, const TVMFFITypeMetadata* metadata);
/* type_index 0 only creates the column. */
TVM_FFI_DLL int TVMFFITypeRegisterAttr(int32_t type_index, const TVMFFIByteArray* attr_name,
                                       const TVMFFIAny* attr_value);
/* NULL when no such column exists. */
TVM_FFI_DLL const TVMFFITypeAttrColumn* TVMFFIGetTypeAttrColumn(const TVMFFIByteArray* attr_name);
TVM_FFI_DLL int TVMFFIFunctionSetGlobalFromMethodInfo(const TVMFFIMethodInfo* method_info,
                                                      int allow_override);

/* clang-format on */
#ifdef __cplusplus
}  // extern "C"

inline int32_t TVMFFIObjectGetTypeIndex(TVMFFIObjectHandle obj) {
  return static_cast<TVMFFIObject*>(obj)->type_index;
}

inline TVMFFIByteArray TVMFFISmallBytesGetContentByteArray(const TVMFFIAny* value) {
  return TVMFFIByteArray{value->v_bytes, value->small_str_len};
}

inline DLDevice TVMFFIDLDeviceFromIntPair(int32_t device_type, int32_t device_id) {
  return DLDevice{static_cast<DLDeviceType>(device_type), device_id};
}

#define TVM_FFI_CELL_ACCESSOR_(Name, Cell)                                          \
  inline Cell* Name(TVMFFIObjectHandle obj) {                                       \
    return reinterpret_cast<Cell*>(static_cast<char*>(obj) + sizeof(TVMFFIObject)); \
  }
TVM_FFI_CELL_ACCESSOR_(TVMFFIBytesGetByteArrayPtr, TVMFFIByteArray)
TVM_FFI_CELL_ACCESSOR_(TVMFFIErrorGetCellPtr, TVMFFIErrorCell)
TVM_FFI_CELL_ACCESSOR_(TVMFFIFunctionGetCellPtr, TVMFFIFunctionCell)
TVM_FFI_CELL_ACCESSOR_(TVMFFIOpaqueObjectGetCellPtr, TVMFFIOpaqueObjectCell)
TVM_FFI_CELL_ACCESSOR_(TVMFFIShapeGetCellPtr, TVMFFIShapeCell)
TVM_FFI_CELL_ACCESSOR_(TVMFFITensorGetDLTensorPtr, DLTensor)
#undef TVM_FFI_CELL_ACCESSOR_

static_assert(sizeof(TVMFFIAny) == 16 && alignof(TVMFFIAny) == 8, "inlined in clients");
static_assert(sizeof(TVMFFIObject) == 24 && alignof(TVMFFIObject) == 8, "inlined in clients");
static_assert(sizeof(void*) != 8 ||
                  (sizeof(TVMFFIByteArray) == 16 && sizeof(TVMFFISeqCell) == 32 &&
                   sizeof(TVMFFIErrorCell) == 72 && sizeof(TVMFFIFunctionCell) == 16),
              "cells are inlined in clients");
static_assert(sizeof(void*) != 8 ||
                  (sizeof(TVMFFIFieldInfo) == 120 && sizeof(TVMFFIMethodInfo) == 72 &&
                   sizeof(TVMFFITypeMetadata) == 32 && sizeof(TVMFFITypeAttrColumn) == 16 &&
                   sizeof(TVMFFITypeInfo) == 72),
              "reflection records are inlined in clients");
#endif /* __cplusplus */

#undef TVM_FFI_ENUM_BEGIN_
#undef TVM_FFI_ENUM_END_
#undef TVM_FFI_UNNAMED_UNION_

#endif /* TVM_FFI_C_API_H_ */
