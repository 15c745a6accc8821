# SPDX-License-Identifier: Apache-2.0
#
# libbacktrace gives frames their file and line. Debian ships it inside gcc (header and archive in the
# compiler's own directories), others as a package; without it the library falls back to symbol names.
# Sets TETHER_HAVE_LIBBACKTRACE to 1 or 0.
include(CheckCXXSourceCompiles)

set(CMAKE_REQUIRED_LIBRARIES backtrace)
set(CMAKE_REQUIRED_LINK_OPTIONS -shared)
set(CMAKE_REQUIRED_FLAGS -fPIC)
check_cxx_source_compiles(
  "#include <backtrace.h>
   void* MakeState() { return backtrace_create_state(nullptr, 1, nullptr, nullptr); }"
  TETHER_LIBBACKTRACE_LINKS
)
unset(CMAKE_REQUIRED_LIBRARIES)
unset(CMAKE_REQUIRED_LINK_OPTIONS)
unset(CMAKE_REQUIRED_FLAGS)

if(TETHER_LIBBACKTRACE_LINKS)
  set(TETHER_HAVE_LIBBACKTRACE 1)
else()
  set(TETHER_HAVE_LIBBACKTRACE 0)
  message(STATUS "libbacktrace not found: backtraces will name functions without file and line")
endif()
