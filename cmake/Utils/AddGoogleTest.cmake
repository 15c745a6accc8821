# SPDX-License-Identifier: Apache-2.0

# tvm_ffi_add_gtest(<target>): registers the tests of a GoogleTest program with CTest.
macro(tvm_ffi_add_gtest target)
  include(CTest)
  include(GoogleTest)
  target_link_libraries(${target} PRIVATE gtest_main)
  gtest_discover_tests(${target} DISCOVERY_MODE PRE_TEST)
endmacro()
