# SPDX-License-Identifier: Apache-2.0
# Copyright The AnyACL Authors
#
# Flags of every target of this project.

get_property(multi_config GLOBAL PROPERTY GENERATOR_IS_MULTI_CONFIG)
if(NOT multi_config AND NOT CMAKE_BUILD_TYPE)
  if(ANYACL_SANITIZE)
    set(CMAKE_BUILD_TYPE Sanitize CACHE STRING "" FORCE)  # asserts on
  else()
    set(CMAKE_BUILD_TYPE Release CACHE STRING "Release, RelWithDebInfo, Debug or Sanitize" FORCE)
  endif()
endif()

set(CMAKE_CXX_STANDARD 20)
set(CMAKE_CXX_STANDARD_REQUIRED ON)
set(CMAKE_CXX_EXTENSIONS OFF)
set(CMAKE_C_STANDARD 11)
set(CMAKE_POSITION_INDEPENDENT_CODE ON)
set(CMAKE_C_VISIBILITY_PRESET hidden)
set(CMAKE_CXX_VISIBILITY_PRESET hidden)
set(CMAKE_VISIBILITY_INLINES_HIDDEN ON)
set(CMAKE_EXPORT_COMPILE_COMMANDS ON)

# Line tables make a user's backtrace readable; asserts of ours are not what Release pays for.
set(release "-O2 -g1 -DNDEBUG -ffile-prefix-map=${PROJECT_SOURCE_DIR}/=")
set(CMAKE_C_FLAGS_RELEASE "${release}")
set(CMAKE_CXX_FLAGS_RELEASE "${release}")
set(CMAKE_C_FLAGS_SANITIZE "-O1 -g1")
set(CMAKE_CXX_FLAGS_SANITIZE "-O1 -g1")

set(host_options
  -Wall -Wextra
  -ffp-contract=off  # results are promised bit for bit: kernels fuse explicitly or not at all
  -fno-math-errno
  -fno-semantic-interposition)
if(ANYACL_WERROR)
  list(APPEND host_options -Werror)
endif()
add_compile_options("$<$<COMPILE_LANGUAGE:C,CXX>:${host_options}>")

if(ANYACL_SANITIZE STREQUAL "address")
  # A C program may pass any int where the headers declare an enum, and so do our tests.
  set(sanitize -fsanitize=address,undefined -fno-sanitize=enum -fno-sanitize-recover=all -fno-omit-frame-pointer)
elseif(ANYACL_SANITIZE STREQUAL "thread")
  set(sanitize -fsanitize=thread -fno-omit-frame-pointer)
elseif(ANYACL_SANITIZE)
  message(FATAL_ERROR "ANYACL_SANITIZE is '${ANYACL_SANITIZE}'; known are address and thread")
endif()
if(ANYACL_SANITIZE)
  # GCC warns about standard headers (std::regex) that it sees through its own instrumentation.
  add_compile_options(${sanitize} "$<$<CXX_COMPILER_ID:GNU>:-Wno-maybe-uninitialized>")
  add_link_options(${sanitize})
  add_compile_definitions(ANYACL_SANITIZE_${ANYACL_SANITIZE}=1)  # ..._address or ..._thread
endif()
# Every shape of code stays: plain, vectors, vectors with masks. SSE4 and SSSE3 are AVX2 with fewer lanes, for machines that are
# older than 2013, and took a tenth of the build. The fuzzer of the border has AVX2 alone; for threads plain code is enough.
if(CMAKE_SYSTEM_PROCESSOR MATCHES "x86_64|AMD64")
  if(ANYACL_FUZZ)
    add_compile_options(-march=x86-64-v3 -maes -mpclmul)
    add_compile_definitions(HWY_DISABLED_TARGETS=0x1900)  # HWY_SSE4 | HWY_SSSE3 | HWY_AVX3; no plain code below what is always there
  elseif(ANYACL_SANITIZE STREQUAL "thread")
    add_compile_definitions(HWY_DISABLED_TARGETS=0x1b00)  # and HWY_AVX2
  else()
    add_compile_definitions(HWY_DISABLED_TARGETS=0x1800)
  endif()
endif()
if(CMAKE_CROSSCOMPILING_EMULATOR)
  add_compile_definitions(ANYACL_EMULATED=1)
endif()
if(CMAKE_SYSTEM_PROCESSOR STREQUAL "aarch64")
  # Kernels keep vectors in arrays and structs, which the types of SVE do not allow: 64-bit ARM runs NEON.
  add_compile_definitions("HWY_DISABLED_TARGETS=(HWY_SVE|HWY_SVE2|HWY_SVE_256|HWY_SVE2_128)")
endif()
if(ANYACL_FUZZ)
  if(NOT CMAKE_CXX_COMPILER_ID MATCHES "Clang")
    message(FATAL_ERROR "ANYACL_FUZZ needs clang: configure with CXX=clang++ CC=clang")
  endif()
  add_compile_options(-fsanitize=fuzzer-no-link)
endif()

# A call passes through several rooms in half a microsecond: optimised across them it takes a tenth less. Objects carry
# plain code, too, which the tests link.
if(CMAKE_BUILD_TYPE STREQUAL "Release" AND CMAKE_CXX_COMPILER_ID STREQUAL "GNU")
  set(ANYACL_LINK_TIME_OPTIMISATION ON)
endif()

# For code whose time nobody waits for (tables, plans, oracles, the command): it compiles a quarter faster.
set(ANYACL_PLAIN_CODE "$<$<CONFIG:Release>:-O1>")

# anyacl_precompile(<target> <headers...>): a fifth of the time of most of our sources is that of the same headers. Off by
# default: a build without them also finds headers that a source forgot, and GCC 12 has false warnings with them.
option(ANYACL_PRECOMPILE "Precompile headers" OFF)
function(anyacl_precompile target)
  if(ANYACL_PRECOMPILE)
    target_precompile_headers(${target} PRIVATE ${ARGN})
  endif()
endfunction()
