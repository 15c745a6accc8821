/* SPDX-License-Identifier: Apache-2.0
 *
 * A C library as an old client would be: it knows the C ABI, allocates objects by itself and holds
 * references on threads that Python has never heard of.
 *
 *   page_new(child)  an object at the very start of a page, the page before it unmapped: reading
 * one byte in front of the object ends the process hold(object)     C++ takes a strong reference;
 * release_* gives all of them back
 *
 * Functions taking (self, args, num_args, result) follow the safe-call convention and are wrapped
 * with Function.__from_extern_c__; the others are called with ctypes.
 */
#define _DEFAULT_SOURCE
#include <pthread.h>
#include <stdlib.h>
#include <string.h>
#include <sys/mman.h>
#include <unistd.h>

#include <tvm/ffi/c_api.h>

#define EXPORT __attribute__((visibility("default")))

/* ---- objects at the start of a page -----------------------------------------------------------
 */

typedef struct {
  TVMFFIObject header;
  TVMFFIAny child;
} PageObject;

static int64_t pages_made, pages_destroyed, pages_freed;

static void release_any(TVMFFIAny* any) {
  if (any->type_index >= kTVMFFIStaticObjectBegin) TVMFFIObjectDecRef(any->v_obj);
  any->type_index = kTVMFFINone;
}

static void delete_page_object(void* self, int flags) {
  PageObject* object = (PageObject*)self;
  if (flags & kTVMFFIObjectDeleterFlagBitMaskStrong) {
    release_any(&object->child);
    __atomic_add_fetch(&pages_destroyed, 1, __ATOMIC_RELAXED);
  }
  if (flags & kTVMFFIObjectDeleterFlagBitMaskWeak) {
    long page = sysconf(_SC_PAGESIZE);
    munmap((char*)self - page, 2 * (size_t)page);
    __atomic_add_fetch(&pages_freed, 1, __ATOMIC_RELAXED);
  }
}

static int32_t type_index_of(const char* key) {
  TVMFFIByteArray name = {key, strlen(key)};
  return TVMFFITypeGetOrAllocIndex(&name, -1, 1, 0, 1, kTVMFFIObject);
}

static void init_header(TVMFFIObject* header, const char* key, void (*deleter)(void*, int)) {
  header->combined_ref_count = ((uint64_t)1 << 32) | 1;
  header->type_index = type_index_of(key);
  header->__padding = 0;
  header->deleter = deleter;
}

static int give(TVMFFIObject* object, TVMFFIAny* result) {
  result->type_index = object->type_index;
  result->zero_padding = 0;
  result->v_obj = object;
  return 0;
}

EXPORT int page_new(void* self, const TVMFFIAny* args, int32_t num_args, TVMFFIAny* result) {
  (void)self;
  long page = sysconf(_SC_PAGESIZE);
  char* block = (char*)mmap(NULL, 2 * (size_t)page, PROT_NONE, MAP_PRIVATE | MAP_ANONYMOUS, -1, 0);
  if (block == MAP_FAILED || mprotect(block + page, (size_t)page, PROT_READ | PROT_WRITE) != 0) {
    TVMFFIErrorSetRaisedFromCStr("MemoryError", "cannot map two pages");
    return -1;
  }
  PageObject* object = (PageObject*)(block + page);
  init_header(&object->header, "tests.python.PageObject", delete_page_object);
  object->child.type_index = kTVMFFINone;
  if (num_args > 0 && TVMFFIAnyViewToOwnedAny(&args[0], &object->child) != 0) return -1;
  __atomic_add_fetch(&pages_made, 1, __ATOMIC_RELAXED);
  return give(&object->header, result);
}

EXPORT int page_child(void* self, const TVMFFIAny* args, int32_t num_args, TVMFFIAny* result) {
  (void)self;
  if (num_args != 1 || args[0].type_index != type_index_of("tests.python.PageObject")) {
    TVMFFIErrorSetRaisedFromCStr("TypeError", "page_child expects a PageObject");
    return -1;
  }
  return TVMFFIAnyViewToOwnedAny(&((PageObject*)args[0].v_obj)->child, result);
}

EXPORT int64_t page_count(int which) {
  int64_t* counts[] = {&pages_made, &pages_destroyed, &pages_freed};
  return __atomic_load_n(counts[which], __ATOMIC_RELAXED);
}

/* ---- an object in static memory, whose deleter is NULL ------------------------------------------
 */

static TVMFFIObject eternal;

EXPORT int eternal_get(void* self, const TVMFFIAny* args, int32_t num_args, TVMFFIAny* result) {
  (void)self, (void)args, (void)num_args;
  if (eternal.combined_ref_count == 0) {
    init_header(&eternal, "tests.python.Eternal", NULL);
  }
  TVMFFIObjectIncRef(&eternal);
  return give(&eternal, result);
}

/* ---- references held by C -----------------------------------------------------------------------
 */

enum { kMaxHeld = 1 << 16 };
static TVMFFIObjectHandle held[kMaxHeld];
static int num_held;
static pthread_mutex_t held_lock = PTHREAD_MUTEX_INITIALIZER;

EXPORT int hold(void* self, const TVMFFIAny* args, int32_t num_args, TVMFFIAny* result) {
  (void)self, (void)result;
  for (int32_t i = 0; i < num_args; ++i) {
    if (args[i].type_index < kTVMFFIStaticObjectBegin) continue;
    TVMFFIObjectIncRef(args[i].v_obj);
    pthread_mutex_lock(&held_lock);
    if (num_held < kMaxHeld) held[num_held++] = args[i].v_obj;
    pthread_mutex_unlock(&held_lock);
  }
  return 0;
}

/* The object held last, still held. */
EXPORT int held_last(void* self, const TVMFFIAny* args, int32_t num_args, TVMFFIAny* result) {
  (void)self, (void)args, (void)num_args;
  if (num_held == 0) return 0;
  TVMFFIObject* object = (TVMFFIObject*)held[num_held - 1];
  TVMFFIObjectIncRef(object);
  return give(object, result);
}

EXPORT int release_all(void) {
  int released = 0;
  for (;;) {
    pthread_mutex_lock(&held_lock);
    TVMFFIObjectHandle object = num_held > 0 ? held[--num_held] : NULL;
    if (object != NULL)
      held[num_held] = NULL; /* why() would take it for a reference to a later object */
    pthread_mutex_unlock(&held_lock);
    if (object == NULL) return released;
    TVMFFIObjectDecRef(object);
    ++released;
  }
}

static void* release_on_thread(void* released) {
  *(int*)released = release_all();
  return NULL;
}

/* Called with the interpreter lock held, this waits for a thread that must not need it. */
EXPORT int release_all_in_thread(void) {
  pthread_t thread;
  int released = -1;
  if (pthread_create(&thread, NULL, release_on_thread, &released) != 0) return -1;
  pthread_join(thread, NULL);
  return released;
}

static int churn_stop;
static pthread_t churn_thread;

static void* churn(void* unused) {
  (void)unused;
  while (!__atomic_load_n(&churn_stop, __ATOMIC_ACQUIRE)) {
    if (release_all() == 0) usleep(50);
  }
  return NULL;
}

/* A thread that gives back whatever is held, as soon as it is held. */
EXPORT int start_releasing(void) {
  __atomic_store_n(&churn_stop, 0, __ATOMIC_RELEASE);
  return pthread_create(&churn_thread, NULL, churn, NULL);
}

EXPORT int stop_releasing(void) {
  __atomic_store_n(&churn_stop, 1, __ATOMIC_RELEASE);
  return pthread_join(churn_thread, NULL);
}

/* ---- after the interpreter
 * ------------------------------------------------------------------------ */

static void release_at_exit(void) {
  int released = release_all_in_thread();
  static const char text[] = "released after the interpreter\n";
  if (released > 0 && write(1, text, sizeof(text) - 1) < 0) _exit(9);
}

/* Registered by the C library, so it runs after the interpreter has been finalised. */
EXPORT int release_after_finalisation(void) { return atexit(release_at_exit); }
