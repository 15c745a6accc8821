# SPDX-License-Identifier: Apache-2.0
#
# libbacktrace gives frames their file and line. Debian ships it inside gcc (header and archive in the
# compiler's own directories), others as a package.
if(COMMAND tvm_ffi_add_libbacktrace)
  return()
endif()

# tvm_ffi_find_libbacktrace(<variable>): 1 if a shared library can be linked with it, else 0.
function(tvm_ffi_find_libbacktrace variable)
  set(CMAKE_REQUIRED_LIBRARIES backtrace)
  set(CMAKE_REQUIRED_LINK_OPTIONS -shared)
  set(CMAKE_REQUIRED_FLAGS -fPIC)
  set(source
      "#include <backtrace.h>
       void* MakeState(void) { return backtrace_create_state(0, 1, 0, 0); }"
  )
  get_property(languages GLOBAL PROPERTY ENABLED_LANGUAGES)
  if("CXX" IN_LIST languages)
    include(CheckCXXSourceCompiles)
    check_cxx_source_compiles("${source}" tvm_ffi_LIBBACKTRACE_LINKS)
  else()
    include(CheckCSourceCompiles)
    check_c_source_compiles("${source}" tvm_ffi_LIBBACKTRACE_LINKS)
  endif()
  if(tvm_ffi_LIBBACKTRACE_LINKS)
    set(${variable} 1 PARENT_SCOPE)
  else()
    set(${variable} 0 PARENT_SCOPE)
  endif()
endfunction()

# tvm_ffi_add_libbacktrace(<target>): links it if it is there, and defines TVM_FFI_USE_LIBBACKTRACE as 1
# or 0 for the sources of the target.
function(tvm_ffi_add_libbacktrace target)
  tvm_ffi_find_libbacktrace(found)
  target_compile_definitions(${target} PRIVATE TVM_FFI_USE_LIBBACKTRACE=${found})
  if(found)
    target_link_libraries(${target} PRIVATE backtrace)
  endif()
endfunction()
