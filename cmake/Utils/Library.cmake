# SPDX-License-Identifier: Apache-2.0
#
# Functions for projects that build a library against tvm_ffi.

# tvm_ffi_add_prefix_map(<target> <path>): source paths in tracebacks are relative to <path>.
function(tvm_ffi_add_prefix_map target path)
  target_compile_options(
    ${target} PRIVATE $<$<COMPILE_LANG_AND_ID:C,GNU,Clang,AppleClang>:-ffile-prefix-map=${path}/=>
                      $<$<COMPILE_LANG_AND_ID:CXX,GNU,Clang,AppleClang>:-ffile-prefix-map=${path}/=>
  )
endfunction()

# tvm_ffi_add_apple_dsymutil(<target>): debug symbols beside the library, on Apple.
function(tvm_ffi_add_apple_dsymutil target)
  if(APPLE)
    add_custom_command(TARGET ${target} POST_BUILD COMMAND dsymutil $<TARGET_FILE:${target}>)
  endif()
endfunction()

# tvm_ffi_add_msvc_flags(<target>): what MSVC needs.
function(tvm_ffi_add_msvc_flags target)
  if(MSVC)
    target_compile_definitions(
      ${target} PUBLIC WIN32_LEAN_AND_MEAN _CRT_SECURE_NO_WARNINGS _SCL_SECURE_NO_WARNINGS
                       _ENABLE_EXTENDED_ALIGNED_STORAGE NOMINMAX
    )
    target_compile_options(${target} PRIVATE /Zi /bigobj)
  endif()
endfunction()

# tvm_ffi_hide_static_linked_lib_symbols(<target>): symbols of archives are not exported.
function(tvm_ffi_hide_static_linked_lib_symbols target)
  if(UNIX AND NOT APPLE)
    target_link_options(${target} PRIVATE -Wl,--exclude-libs,ALL)
  endif()
endfunction()

# tvm_ffi_add_target_from_obj(<name> <objects>): <name>_static, <name>_shared and <name>_testing.
function(tvm_ffi_add_target_from_obj name objects)
  add_library(${name}_static STATIC $<TARGET_OBJECTS:${objects}>)
  add_library(${name}::static ALIAS ${name}_static)
  add_library(${name}_shared SHARED $<TARGET_OBJECTS:${objects}>)
  add_library(${name}::shared ALIAS ${name}_shared)
  set_target_properties(${name}_shared PROPERTIES OUTPUT_NAME ${name})
  add_library(${name}_testing SHARED)
  set_target_properties(
    ${name}_static ${name}_shared ${name}_testing
    PROPERTIES ARCHIVE_OUTPUT_DIRECTORY ${CMAKE_BINARY_DIR}/lib
               LIBRARY_OUTPUT_DIRECTORY ${CMAKE_BINARY_DIR}/lib
               RUNTIME_OUTPUT_DIRECTORY ${CMAKE_BINARY_DIR}/lib
  )
endfunction()

# tvm_ffi_install(<target> [DESTINATION <dir>]): installs the debug symbols of a library, on Apple.
function(tvm_ffi_install target)
  cmake_parse_arguments(PARSE_ARGV 1 arg "" "DESTINATION" "")
  if(NOT arg_DESTINATION)
    set(arg_DESTINATION ".")
  endif()
  if(APPLE)
    install(
      DIRECTORY "$<TARGET_FILE:${target}>.dSYM"
      DESTINATION "${arg_DESTINATION}"
      OPTIONAL
    )
  endif()
endfunction()

# tvm_ffi_configure_target(<target> [LINK_SHARED ON|OFF] [LINK_HEADER ON|OFF] [DEBUG_SYMBOL ON|OFF]
#   [MSVC_FLAGS ON|OFF] [STUB_INIT ON|OFF] [STUB_DIR <dir>] [STUB_PKG <pkg>] [STUB_PREFIX <prefix>]
#   [STUB_TARGET python|rust])
#
# Links a library against tvm_ffi and, with STUB_DIR, keeps the stubs in that folder up to date. With
# STUB_INIT, stubs of what is in no file yet are added.
function(tvm_ffi_configure_target)
  set(where "tvm_ffi_configure_target")
  set(target "${ARGV0}")
  if("${target}" STREQUAL "")
    message(FATAL_ERROR "${where}: missing target name.")
  endif()
  if(NOT TARGET ${target})
    message(FATAL_ERROR "${where}: '${target}' is not an existing CMake target.")
  endif()
  set(names LINK_SHARED LINK_HEADER DEBUG_SYMBOL MSVC_FLAGS STUB_INIT STUB_DIR STUB_PKG STUB_PREFIX
            STUB_TARGET
  )
  cmake_parse_arguments(PARSE_ARGV 1 arg "" "${names}" "")
  if(arg_UNPARSED_ARGUMENTS)
    message(FATAL_ERROR "${where}(${target}): unknown arguments: ${arg_UNPARSED_ARGUMENTS}")
  endif()
  foreach(name LINK_SHARED LINK_HEADER DEBUG_SYMBOL MSVC_FLAGS)
    if(NOT DEFINED arg_${name})
      set(arg_${name} ON)
    endif()
  endforeach()
  if(arg_KEYWORDS_MISSING_VALUES)
    message(FATAL_ERROR "${where}(${target}): no value for: ${arg_KEYWORDS_MISSING_VALUES}")
  endif()
  if(arg_STUB_TARGET AND NOT arg_STUB_TARGET MATCHES "^(python|rust)$")
    message(FATAL_ERROR "${where}(${target}): STUB_TARGET is python or rust, not '${arg_STUB_TARGET}'.")
  endif()
  if(arg_STUB_INIT AND NOT arg_STUB_DIR)
    message(FATAL_ERROR "${where}(${target}): STUB_INIT is ON, but STUB_DIR is not set.")
  endif()
  foreach(name STUB_PKG STUB_PREFIX STUB_TARGET)
    if(DEFINED arg_${name} AND NOT arg_STUB_DIR)
      message(FATAL_ERROR "${where}(${target}): ${name} is set, but STUB_DIR is not.")
    endif()
  endforeach()
  foreach(name STUB_PKG STUB_PREFIX)
    if(DEFINED arg_${name} AND NOT arg_STUB_INIT)
      message(FATAL_ERROR "${where}(${target}): ${name} is set, but STUB_INIT is not ON.")
    endif()
  endforeach()

  foreach(kind header shared)
    string(TOUPPER "LINK_${kind}" option)
    if(arg_${option})
      if(NOT TARGET tvm_ffi::${kind})
        message(FATAL_ERROR "${where}(${target}): there is no target tvm_ffi::${kind}.")
      endif()
      target_link_libraries(${target} PRIVATE tvm_ffi::${kind})
    endif()
  endforeach()
  tvm_ffi_add_prefix_map(${target} "${CMAKE_CURRENT_SOURCE_DIR}")
  if(arg_DEBUG_SYMBOL)
    tvm_ffi_add_apple_dsymutil(${target})
  endif()
  if(arg_MSVC_FLAGS)
    tvm_ffi_add_msvc_flags(${target})
  endif()
  if(NOT arg_STUB_DIR)
    return()
  endif()

  get_filename_component(stub_dir "${arg_STUB_DIR}" ABSOLUTE BASE_DIR "${CMAKE_CURRENT_SOURCE_DIR}")
  set(options "${stub_dir}" --dlls $<TARGET_FILE:${target}>)
  if(arg_STUB_TARGET)
    list(APPEND options --target ${arg_STUB_TARGET})
  endif()
  if(arg_STUB_INIT)
    if(NOT arg_STUB_PKG)
      set(arg_STUB_PKG "${SKBUILD_PROJECT_NAME}")
    endif()
    if(NOT arg_STUB_PKG)
      set(arg_STUB_PKG "${target}")
    endif()
    if(NOT arg_STUB_PREFIX)
      set(arg_STUB_PREFIX "${arg_STUB_PKG}.")
    endif()
    list(APPEND options --init-lib ${target} --init-pypkg ${arg_STUB_PKG} --init-prefix
         ${arg_STUB_PREFIX}
    )
  endif()
  if(NOT Python3_EXECUTABLE AND Python_EXECUTABLE)
    set(Python3_EXECUTABLE "${Python_EXECUTABLE}") # the interpreter that has this package
  elseif(NOT Python3_EXECUTABLE)
    find_package(Python3 COMPONENTS Interpreter REQUIRED)
  endif()
  add_custom_command(
    TARGET ${target}
    POST_BUILD
    COMMAND "${Python3_EXECUTABLE}" -m tvm_ffi.stub.cli ${options}
    COMMENT "Updating the stubs in ${stub_dir}"
    VERBATIM
  )
endfunction()
