# SPDX-License-Identifier: Apache-2.0
if(COMMAND tvm_ffi_add_object_copy)
  return()
endif()

# tvm_ffi_add_object_copy(<target> <objects> <file>): <target> copies the only object of the object
# library <objects> to <file>; a relative path is in the binary directory.
function(tvm_ffi_add_object_copy target objects file)
  get_filename_component(file "${file}" ABSOLUTE BASE_DIR "${CMAKE_CURRENT_BINARY_DIR}")
  add_custom_target(
    ${target}
    COMMAND ${CMAKE_COMMAND} -E copy_if_different $<TARGET_OBJECTS:${objects}> "${file}"
    BYPRODUCTS "${file}"
    DEPENDS ${objects}
    COMMAND_EXPAND_LISTS VERBATIM
  )
endfunction()
