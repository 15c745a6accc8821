# SPDX-License-Identifier: Apache-2.0
#
# Functions that compile CUDA sources to binaries and put these into libraries.
include("${CMAKE_CURRENT_LIST_DIR}/ObjectCopyUtil.cmake")
if(NOT DEFINED CMAKE_CUDA_RUNTIME_LIBRARY)
  set(CMAKE_CUDA_RUNTIME_LIBRARY Shared)
endif()

function(_tvm_ffi_add_gpu_binary target format)
  cmake_parse_arguments(PARSE_ARGV 2 arg "" "CUDA" "")
  if(NOT arg_CUDA)
    message(FATAL_ERROR "add_tvm_ffi_${format}(${target}): CUDA <file> is missing.")
  endif()
  add_library(${target} OBJECT ${arg_CUDA})
  target_compile_options(${target} PRIVATE $<$<COMPILE_LANGUAGE:CUDA>:--${format}>)
  tvm_ffi_add_object_copy(${target}_bin ${target} ${target}.${format})
endfunction()

# add_tvm_ffi_cubin(<target> CUDA <file>): makes <target>.cubin with the target <target>_bin.
function(add_tvm_ffi_cubin target)
  _tvm_ffi_add_gpu_binary(${target} cubin ${ARGN})
endfunction()

# add_tvm_ffi_fatbin(<target> CUDA <file>): makes <target>.fatbin with the target <target>_bin.
function(add_tvm_ffi_fatbin target)
  _tvm_ffi_add_gpu_binary(${target} fatbin ${ARGN})
endfunction()

# tvm_ffi_embed_bin_into(<target> SYMBOL <name> BIN <file>): the only object of the target gets the
# bytes of the file, which its source names with TVM_FFI_EMBED_CUBIN(<name>).
#
# The object is changed in place, and make does not compile it again for the next link. So what it was
# before is kept beside it.
function(tvm_ffi_embed_bin_into target)
  cmake_parse_arguments(PARSE_ARGV 1 arg "" "SYMBOL;BIN" "")
  if(NOT arg_SYMBOL OR NOT arg_BIN)
    message(FATAL_ERROR "tvm_ffi_embed_bin_into(${target}): SYMBOL <name> and BIN <file> are needed.")
  endif()
  get_target_property(sources ${target} SOURCES)
  list(FILTER sources INCLUDE REGEX "^[^$]*\\.([cC]|cc|cpp|cxx|cu|CPP|c\\+\\+|m|mm|S|s)$")
  list(LENGTH sources count)
  if(count GREATER 1)
    message(FATAL_ERROR "tvm_ffi_embed_bin_into(${target}): the target may have one source, and has "
                        "${count}: ${sources}. Put the source that uses the binary into a target of "
                        "its own."
    )
  endif()
  if(NOT Python_EXECUTABLE AND Python3_EXECUTABLE)
    set(Python_EXECUTABLE "${Python3_EXECUTABLE}")
  elseif(NOT Python_EXECUTABLE)
    find_package(Python COMPONENTS Interpreter REQUIRED)
  endif()
  add_custom_command(
    TARGET ${target}
    PRE_LINK
    COMMAND "${Python_EXECUTABLE}" -m tvm_ffi.utils.embed_cubin --output-obj $<TARGET_OBJECTS:${target}>
            --input-obj $<TARGET_OBJECTS:${target}> --keep-input
            $<TARGET_OBJECTS:${target}>.before_${arg_SYMBOL} --cubin "${arg_BIN}" --name ${arg_SYMBOL}
    COMMENT "Embedding ${arg_BIN}"
    VERBATIM
  )
  set_property(TARGET ${target} APPEND PROPERTY LINK_DEPENDS "${arg_BIN}")
endfunction()
