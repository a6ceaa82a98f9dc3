# SPDX-License-Identifier: Apache-2.0
# Copyright The AnyACL Authors
#
# anyacl_room(<name> SOURCES <files...> [DEPENDS <rooms...>] [LIBRARIES <targets...>])
#
# One folder of src/ as the object library anyacl_<name>. DEPENDS names the rooms it may use: their usage requirements
# come along, their objects do not (every room ends up in libanyacl once). Code includes "core/status.h", "acl/acl.h".
#
# fmt::fmt-header-only among the LIBRARIES stands for fmt's headers; its body is compiled once, in anyacl_fmt. Whoever
# takes $<TARGET_OBJECTS:anyacl_<room>> takes those of anyacl_fmt too.
add_library(anyacl_fmt OBJECT cmake/fmt.cc)
set_property(GLOBAL APPEND PROPERTY ANYACL_ROOMS anyacl_fmt)
if(fmt_VERSION VERSION_LESS 10)
  get_target_property(fmt_include fmt::fmt-header-only INTERFACE_INCLUDE_DIRECTORIES)
  target_include_directories(anyacl_fmt SYSTEM PUBLIC ${fmt_include})
else()  # cmake/fmt.cc is written against 9; headers alone are merely slower to compile
  target_link_libraries(anyacl_fmt PUBLIC fmt::fmt-header-only)
endif()

# The rooms that a call of an operator passes through; the others gain nothing by being optimised across.
set(ANYACL_CALL_PATH core plan abi runtime cpu)

function(anyacl_room name)
  cmake_parse_arguments(PARSE_ARGV 1 arg "" "" "SOURCES;DEPENDS;LIBRARIES")
  if(arg_UNPARSED_ARGUMENTS)
    message(FATAL_ERROR "anyacl_room(${name}): unknown arguments ${arg_UNPARSED_ARGUMENTS}")
  endif()
  list(REMOVE_ITEM arg_LIBRARIES "" fmt::fmt-header-only)
  set(target anyacl_${name})
  add_library(${target} OBJECT ${arg_SOURCES})
  target_include_directories(${target} PUBLIC ${PROJECT_SOURCE_DIR}/src ${PROJECT_SOURCE_DIR}/include)
  target_link_libraries(${target} PUBLIC anyacl_fmt)
  foreach(room IN LISTS arg_DEPENDS)
    target_link_libraries(${target} PUBLIC anyacl_${room})
  endforeach()
  target_link_libraries(${target} PUBLIC ${arg_LIBRARIES})
  target_compile_definitions(${target} PRIVATE FUNC_VISIBILITY)  # the headers then export what they declare
  if(ANYACL_LINK_TIME_OPTIMISATION AND name IN_LIST ANYACL_CALL_PATH)
    target_compile_options(${target} PRIVATE -flto -ffat-lto-objects)
  endif()
  set_property(GLOBAL APPEND PROPERTY ANYACL_ROOMS ${target})
  set_property(GLOBAL APPEND PROPERTY ANYACL_ROOM_LIBRARIES ${arg_LIBRARIES})
endfunction()
