# SPDX-License-Identifier: Apache-2.0
if(COMMAND tvm_ffi_detect_target_triple)
  return()
endif()

# tvm_ffi_detect_target_triple(<variable>): what the compiler makes code for, as it says itself, such as
# x86_64-linux-gnu. A compiler that does not say: processor and system as CMake knows them.
function(tvm_ffi_detect_target_triple variable)
  foreach(language CXX C)
    set(triple "${CMAKE_${language}_COMPILER_TARGET}")
    if(NOT triple AND CMAKE_${language}_COMPILER_ID MATCHES "GNU|Clang")
      execute_process(
        COMMAND "${CMAKE_${language}_COMPILER}" -dumpmachine
        OUTPUT_VARIABLE triple
        OUTPUT_STRIP_TRAILING_WHITESPACE ERROR_QUIET
      )
    endif()
    if(triple)
      set(${variable} "${triple}" PARENT_SCOPE)
      return()
    endif()
  endforeach()
  string(TOLOWER "${CMAKE_SYSTEM_PROCESSOR}-${CMAKE_SYSTEM_NAME}" triple)
  set(${variable} "${triple}" PARENT_SCOPE)
endfunction()
