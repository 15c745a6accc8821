# SPDX-License-Identifier: Apache-2.0
if(COMMAND add_sanitizer_address) # a name that projects have for their own
  return()
endif()

# add_sanitizer_address(<target>): with the address sanitizer.
function(add_sanitizer_address target)
  if(NOT MSVC)
    target_compile_options(${target} PRIVATE -fsanitize=address -fno-omit-frame-pointer -g)
    target_link_options(${target} PRIVATE -fsanitize=address)
  endif()
endfunction()
