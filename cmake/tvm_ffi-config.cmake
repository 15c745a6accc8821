# SPDX-License-Identifier: Apache-2.0
#
# find_package(tvm_ffi CONFIG) with tvm_ffi_ROOT set to this folder of a source tree. The library is the
# one of the Python package, or of the build folder in tvm_ffi_BUILD_DIR.
set(tvm_ffi_STATIC_LINK_NAMES "")
include("${CMAKE_CURRENT_LIST_DIR}/Utils/Package.cmake")
