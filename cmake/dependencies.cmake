# SPDX-License-Identifier: Apache-2.0
# Copyright The AnyACL Authors
#
# Third-party code, all of it from the distribution. Highway and LAPACK are linked, statically; the rest is headers.

find_package(Threads REQUIRED)
find_package(hwy 1.0.3 REQUIRED CONFIG)
find_package(fmt 9 REQUIRED CONFIG)
# Reference LAPACK and BLAS, for their functions alone: no name of theirs leaves libanyacl.so (docs/decisions/0010).
find_library(ANYACL_LAPACK_LIBRARY NAMES liblapack_pic.a liblapack.a PATH_SUFFIXES lapack REQUIRED)
find_library(ANYACL_BLAS_LIBRARY NAMES libblas_pic.a libblas.a PATH_SUFFIXES blas REQUIRED)
add_library(anyacl_blas STATIC IMPORTED)
set_target_properties(anyacl_blas PROPERTIES IMPORTED_LOCATION ${ANYACL_BLAS_LIBRARY})
add_library(anyacl_lapack STATIC IMPORTED)
set_target_properties(anyacl_lapack PROPERTIES IMPORTED_LOCATION ${ANYACL_LAPACK_LIBRARY} INTERFACE_LINK_LIBRARIES anyacl_blas)
find_package(nlohmann_json 3.11 REQUIRED CONFIG)
if(ANYACL_TOOLS)
  find_package(CLI11 2.1 REQUIRED CONFIG)
endif()
if(ANYACL_TESTS)
  find_package(GTest 1.12 REQUIRED CONFIG)
endif()
find_package(Python3 3.10 REQUIRED COMPONENTS Interpreter)
