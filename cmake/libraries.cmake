# SPDX-License-Identifier: Apache-2.0
# Copyright The AnyACL Authors
#
# The libraries. All code is in libanyacl.so. Every name that programs link or open is a filter library over it
# (DT_FILTER): its own SONAME and list of names, no code. A program records the names it linked, as with the original,
# and whichever of them a process loads, there is one copy of the state. (Plain links would make every program record
# one name, and a copy that follows links would split the state.)

# --- which library offers the names of which headers ----------------------------------------------------------------
# "base" is what every program needs, whatever it links: those names are in both runtime libraries, as in the original.
set(base acl/acl_base.h acl/acl_base_rt.h acl/acl_base_mdl.h)
set(runtime acl/acl_rt.h acl/acl_rt_allocator.h)
set(model acl/acl_mdl.h)
set(operator acl/acl_op.h)
set(compiler acl/acl_op_compiler.h)
set(link_only acl/acl_link_only.h)
set(dump acl/acl_dump.h)
set(profile acl/acl_prof.h)
set(transfer acl/acl_tdt.h)
set(queue "")  # libraries without a function of ours: programs link them all the same
set(blas "")
set(collectives hccl/hccl.h hccl/hccl_comm.h hccl/hccl_types.h)
set(objects aclnn/acl_meta.h aclnn/aclnn_base.h)
file(GLOB operators RELATIVE ${PROJECT_SOURCE_DIR}/include CONFIGURE_DEPENDS include/aclnnop/*.h)

include(operator_packages)  # operators_math, operators_cv, operators_transformer
set(operators_nn ${operators})
foreach(package IN ITEMS math cv transformer)
  set(here "")
  foreach(header IN LISTS operators_${package})
    if(header IN_LIST operators)
      list(APPEND here ${header})
    endif()
  endforeach()
  set(operators_${package} ${here})
  if(here)
    list(REMOVE_ITEM operators_nn ${here})
  endif()
endforeach()

set(ANYACL_LIBRARY_TABLE
  # library            offers
  "ascendcl            base runtime model operator dump profile transfer queue"
  "acl_rt              base runtime"
  "acl_mdl             model"
  "acl_op_executor     operator"
  "acl_op_compiler     compiler"
  "acl_cblas           blas"
  "ge_runner           link_only"
  "graph"  # graphs are no part of it; torch_npu links both
  "acl_tdt_channel     transfer"
  "acl_tdt_queue       queue"
  "ascend_dump         dump"
  "msprofiler          profile"
  "nnopbase            objects"
  "opapi               operators"
  "opapi_nn            operators_nn"
  "opapi_math          operators_math"
  "opapi_cv            operators_cv"
  "opapi_transformer   operators_transformer"
  "opapi_oam"
  "opapi_ras"
  "opapi_legacy"
  "aclnn_ops_infer     operators"
  "aclnn_ops_train     operators"
  "aclnn_math          operators"
  "aclnn_sparse        operators"
  "aclnn_fft           operators"
  "aclnn_rand          operators"
  "cust_opapi          operators"
  "hccl                collectives"
  "hcomm               collectives")

# --- libanyacl.so, the one real file --------------------------------------------------------------------------------
file(GLOB_RECURSE public_headers CONFIGURE_DEPENDS include/acl/*.h include/aclnn/*.h include/aclnnop/*.h
     include/hccl/*.h)
get_property(rooms GLOBAL PROPERTY ANYACL_ROOMS)
get_property(room_libraries GLOBAL PROPERTY ANYACL_ROOM_LIBRARIES)
list(REMOVE_DUPLICATES room_libraries)
list(TRANSFORM rooms REPLACE "(.+)" "$<TARGET_OBJECTS:\\1>" OUTPUT_VARIABLE room_objects)

set(names_py ${PROJECT_SOURCE_DIR}/cmake/declared_names.py)
set(version_script ${PROJECT_BINARY_DIR}/names/libanyacl.map)
add_custom_command(
  OUTPUT ${version_script}
  COMMAND ${Python3_EXECUTABLE} ${names_py} script --out ${version_script} ${public_headers}
  DEPENDS ${names_py} ${public_headers}
  COMMENT "Listing the declared functions"
  VERBATIM)
add_custom_target(anyacl_names DEPENDS ${version_script})

add_library(anyacl SHARED ${room_objects})
add_dependencies(anyacl anyacl_names)
set_target_properties(anyacl PROPERTIES
  LINKER_LANGUAGE CXX
  LIBRARY_OUTPUT_DIRECTORY ${PROJECT_BINARY_DIR}/lib64
  BUILD_RPATH_USE_ORIGIN ON
  INSTALL_RPATH "$ORIGIN:$ORIGIN/anyacl"  # the second: what we bundle, out of the way of LD_LIBRARY_PATH
  LINK_DEPENDS ${version_script})
target_include_directories(anyacl INTERFACE ${PROJECT_SOURCE_DIR}/include)
target_link_libraries(anyacl PRIVATE ${room_libraries} Threads::Threads ${CMAKE_DL_LIBS})
target_link_options(anyacl PRIVATE
  LINKER:--version-script=${version_script}
  LINKER:-Bsymbolic
  LINKER:-z,relro,-z,now
  LINKER:-z,nodelete  # our threads outlive dlclose
  LINKER:--exclude-libs,ALL)
if(ANYACL_LINK_TIME_OPTIMISATION)
  target_link_options(anyacl PRIVATE -flto=auto)
endif()
if(NOT ANYACL_SANITIZE)
  target_link_options(anyacl PRIVATE LINKER:--no-undefined)  # sanitizer runtimes come with the program
endif()

# The same objects for tests and fuzzers, which reach inside.
add_library(anyacl_static STATIC ${room_objects})
set_target_properties(anyacl_static PROPERTIES LINKER_LANGUAGE CXX)
target_include_directories(anyacl_static PUBLIC ${PROJECT_SOURCE_DIR}/src ${PROJECT_SOURCE_DIR}/include)
target_link_libraries(anyacl_static PUBLIC ${room_libraries} Threads::Threads ${CMAKE_DL_LIBS})
if(ANYACL_LINK_TIME_OPTIMISATION)
  target_link_options(anyacl_static INTERFACE -fno-lto)  # thirty times the same work
endif()

# --- the filter libraries -------------------------------------------------------------------------------------------
# Stubs are made of the names that libanyacl.so really exports, so that a missing body is an error of the user's
# linker and never a stub that runs.
set(exports ${PROJECT_BINARY_DIR}/names/libanyacl.exports)
add_custom_command(
  OUTPUT ${exports}
  COMMAND ${Python3_EXECUTABLE} ${names_py} exports $<$<BOOL:${ANYACL_WERROR}>:--strict> --out ${exports}
          $<TARGET_FILE:anyacl> ${public_headers}
  DEPENDS ${names_py} anyacl ${public_headers}
  COMMENT "Comparing the functions of libanyacl.so with the declared ones"
  COMMAND_EXPAND_LISTS VERBATIM)

set(table "")
set(stubs "")
set(ANYACL_FILTERS "")
foreach(row IN LISTS ANYACL_LIBRARY_TABLE)
  separate_arguments(row)
  list(POP_FRONT row library)
  string(APPEND table "lib${library}.so")
  foreach(group IN LISTS row)
    foreach(header IN LISTS ${group})
      if(NOT EXISTS ${PROJECT_SOURCE_DIR}/include/${header})
        message(FATAL_ERROR "lib${library}.so offers include/${header}, which does not exist")
      endif()
      string(APPEND table " ${PROJECT_SOURCE_DIR}/include/${header}")
    endforeach()
  endforeach()
  string(APPEND table "\n")
  list(APPEND stubs ${PROJECT_BINARY_DIR}/names/lib${library}.so.c)
  list(APPEND ANYACL_FILTERS ${library})
endforeach()
set(ANYACL_NAMES_TABLE ${PROJECT_BINARY_DIR}/names/libraries.txt)
file(CONFIGURE OUTPUT ${ANYACL_NAMES_TABLE} CONTENT "${table}" @ONLY)
add_custom_command(
  OUTPUT ${stubs}
  COMMAND ${Python3_EXECUTABLE} ${names_py} stubs --exports ${exports} --out ${PROJECT_BINARY_DIR}/names
          ${ANYACL_NAMES_TABLE}
  DEPENDS ${names_py} ${exports} ${ANYACL_NAMES_TABLE} ${public_headers}
  COMMENT "Writing the names of the filter libraries"
  VERBATIM)
add_custom_target(anyacl_stubs DEPENDS ${stubs})

foreach(library IN LISTS ANYACL_FILTERS)
  add_library(${library} SHARED ${PROJECT_BINARY_DIR}/names/lib${library}.so.c)
  add_dependencies(${library} anyacl_stubs)
  set_target_properties(${library} PROPERTIES
    LIBRARY_OUTPUT_DIRECTORY ${PROJECT_BINARY_DIR}/lib64
    BUILD_RPATH "$ORIGIN"
    INSTALL_RPATH "$ORIGIN:$ORIGIN/..")  # the second: through lib64/stub
  target_include_directories(${library} INTERFACE ${PROJECT_SOURCE_DIR}/include)
  target_compile_options(${library} PRIVATE -g0 -fno-sanitize=all)
  target_link_options(${library} PRIVATE LINKER:-F,libanyacl.so -nostdlib -fno-sanitize=all)
endforeach()
