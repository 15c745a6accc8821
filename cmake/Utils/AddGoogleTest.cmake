# SPDX-License-Identifier: Apache-2.0
if(COMMAND tvm_ffi_add_gtest)
  return()
endif()

# tvm_ffi_add_gtest(<target>): links a GoogleTest program, and registers its tests with CTest. GoogleTest is
# the project's own (FetchContent) or an installed one. A macro, because CTest is switched on for the caller.
macro(tvm_ffi_add_gtest target)
  include(CTest)
  include(GoogleTest)
  if(TARGET gtest_main)
    target_link_libraries(${target} PRIVATE gtest_main)
  else()
    find_package(GTest REQUIRED)
    target_link_libraries(${target} PRIVATE GTest::gtest_main)
  endif()
  gtest_discover_tests(${target} DISCOVERY_MODE PRE_TEST)
endmacro()
