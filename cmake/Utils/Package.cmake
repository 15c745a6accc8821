# SPDX-License-Identifier: Apache-2.0
#
# What tvm_ffi-config.cmake defines. In an install tree or wheel everything is beside it. In a source
# tree the library is elsewhere: in tvm_ffi_BUILD_DIR if that is set, else where the Python package
# says.
get_filename_component(tvm_ffi_PREFIX "${CMAKE_CURRENT_LIST_DIR}/../../../.." ABSOLUTE)
if(EXISTS "${tvm_ffi_PREFIX}/include/tvm/ffi/c_api.h")
  set(tvm_ffi_LIB_DIR "${tvm_ffi_PREFIX}/lib")
else()
  get_filename_component(tvm_ffi_PREFIX "${CMAKE_CURRENT_LIST_DIR}/../.." ABSOLUTE)
  set(tvm_ffi_LIB_DIR "${tvm_ffi_BUILD_DIR}/lib")
  if(NOT tvm_ffi_BUILD_DIR)
    find_package(Python COMPONENTS Interpreter QUIET)
    execute_process(
      COMMAND "${Python_EXECUTABLE}" -m tvm_ffi.config --libdir
      OUTPUT_VARIABLE tvm_ffi_LIB_DIR
      OUTPUT_STRIP_TRAILING_WHITESPACE ERROR_QUIET
    )
  endif()
endif()
set(tvm_ffi_INCLUDE_DIR "${tvm_ffi_PREFIX}/include")
set(tvm_ffi_DLPACK_INCLUDE_DIR "${tvm_ffi_PREFIX}/include")
set(tvm_ffi_LIB_FILES "${tvm_ffi_LIB_DIR}/libtvm_ffi.so")

if(NOT EXISTS "${tvm_ffi_LIB_FILES}")
  set(tvm_ffi_FOUND FALSE)
  set(tvm_ffi_NOT_FOUND_MESSAGE
      "libtvm_ffi.so is missing from '${tvm_ffi_LIB_DIR}'. In a source tree set tvm_ffi_BUILD_DIR to a build folder."
  )
  return()
endif()

if(NOT TARGET tvm_ffi::header)
  add_library(tvm_ffi::header INTERFACE IMPORTED)
  set_target_properties(
    tvm_ffi::header PROPERTIES INTERFACE_INCLUDE_DIRECTORIES "${tvm_ffi_INCLUDE_DIR}"
                               INTERFACE_COMPILE_FEATURES cxx_std_17
  )
endif()

if(NOT TARGET tvm_ffi::shared)
  add_library(tvm_ffi::shared SHARED IMPORTED)
  set_target_properties(
    tvm_ffi::shared PROPERTIES IMPORTED_LOCATION "${tvm_ffi_LIB_FILES}"
                               INTERFACE_LINK_LIBRARIES tvm_ffi::header
  )
endif()

set(tvm_ffi_STATIC_FILE "${tvm_ffi_LIB_DIR}/libtvm_ffi_static.a")
if(tvm_ffi_STATIC_LINK_NAMES AND EXISTS "${tvm_ffi_STATIC_FILE}" AND NOT TARGET tvm_ffi::static)
  add_library(tvm_ffi::static STATIC IMPORTED)
  set_target_properties(
    tvm_ffi::static PROPERTIES IMPORTED_LOCATION "${tvm_ffi_STATIC_FILE}"
                               INTERFACE_LINK_LIBRARIES "tvm_ffi::header;${tvm_ffi_STATIC_LINK_NAMES}"
  )
endif()

foreach(file Library EmbedCubin ObjectCopyUtil DetectTargetTriple AddLibbacktrace AddGoogleTest CxxWarning
             Sanitizer
)
  include("${CMAKE_CURRENT_LIST_DIR}/${file}.cmake")
endforeach()
