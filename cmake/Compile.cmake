# SPDX-License-Identifier: Apache-2.0
#
# Compile options shared by every target of the tree. Sanitizers are set for the whole build, because
# mixing instrumented and plain code hides exactly the errors they are there to find.
set(CMAKE_CXX_STANDARD 17)
set(CMAKE_CXX_STANDARD_REQUIRED ON)
set(CMAKE_CXX_EXTENSIONS OFF)

# -O0 for the address sanitizer: a third of the compile time of -O1 there, and assertions stay on.
if(TETHER_SANITIZE STREQUAL "address")
  set(sanitize_flags -fsanitize=address,undefined -fno-sanitize-recover=undefined)
  add_compile_options(-O0)
elseif(TETHER_SANITIZE STREQUAL "thread")
  set(sanitize_flags -fsanitize=thread)
  add_compile_options(-O1)
elseif(TETHER_SANITIZE)
  message(FATAL_ERROR "TETHER_SANITIZE is '${TETHER_SANITIZE}'; expected address, thread or empty")
endif()
if(TETHER_SANITIZE)
  add_compile_options(${sanitize_flags} -g1 -fno-omit-frame-pointer)
  add_link_options(${sanitize_flags})
endif()

function(tether_compile_options target)
  target_compile_options(${target} PRIVATE -Wall -Wextra -Wpedantic -Wno-unused-parameter)
  # g++ 12 with -fipa-modref and scalar replacement drops a store when an Any is moved into an
  # argument: repr of an Array then read a null pointer. Other releases were not tried.
  if(CMAKE_CXX_COMPILER_ID STREQUAL "GNU"
     AND CMAKE_CXX_COMPILER_VERSION VERSION_GREATER_EQUAL 11
     AND CMAKE_CXX_COMPILER_VERSION VERSION_LESS 13
  )
    target_compile_options(${target} PRIVATE -fno-ipa-modref)
  endif()
  if(TETHER_WERROR)
    target_compile_options(${target} PRIVATE -Werror)
  endif()
endfunction()

# tether_precompile_headers(target headers...). ccache needs -fpch-preprocess to cache what uses them (and
# CCACHE_SLOPPINESS, scripts/common.sh).
function(tether_precompile_headers target)
  target_precompile_headers(${target} PRIVATE ${ARGN})
  target_compile_options(${target} PRIVATE $<$<CXX_COMPILER_ID:GNU>:-fpch-preprocess>)
endfunction()
