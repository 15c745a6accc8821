# SPDX-License-Identifier: Apache-2.0
if(COMMAND tvm_ffi_add_cxx_warning)
  return()
endif()

# tvm_ffi_add_cxx_warning(<target>): warnings are errors.
function(tvm_ffi_add_cxx_warning target)
  if(NOT MSVC)
    target_compile_options(${target} PRIVATE -Werror -Wall -Wextra -Wpedantic -Wno-unused-parameter)
  endif()
endfunction()
