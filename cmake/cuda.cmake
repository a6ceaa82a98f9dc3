# SPDX-License-Identifier: Apache-2.0
# Copyright The AnyACL Authors
#
# Whether the CUDA plug-in is built: when nvcc is found, unless ANYACL_CUDA says otherwise. Sets ANYACL_HAS_CUDA.

set(ANYACL_CUDA AUTO CACHE STRING "Build the CUDA plug-in: AUTO (when nvcc is found), ON or OFF")
set_property(CACHE ANYACL_CUDA PROPERTY STRINGS AUTO ON OFF)
set(ANYACL_CUDA_ARCHITECTURES "80-real;90-real;90-virtual" CACHE STRING
    "GPU architectures of the plug-in; the virtual one is compiled by the driver of newer GPUs")

set(ANYACL_HAS_CUDA OFF)
if(ANYACL_CUDA STREQUAL "OFF")
  message(STATUS "CUDA plug-in: left out (ANYACL_CUDA=OFF)")
  return()
elseif(ANYACL_SANITIZE)
  message(STATUS "CUDA plug-in: left out with sanitizers, which nvcc does not know")
  return()
endif()

find_program(ANYACL_NVCC nvcc HINTS $ENV{CUDACXX} $ENV{CUDA_PATH}/bin $ENV{CUDA_HOME}/bin /usr/local/cuda/bin)
if(NOT ANYACL_NVCC)
  if(ANYACL_CUDA STREQUAL "ON")
    message(FATAL_ERROR "CUDA plug-in: ANYACL_CUDA=ON, but there is no nvcc in PATH or /usr/local/cuda/bin")
  endif()
  message(STATUS "CUDA plug-in: left out, there is no nvcc in PATH or /usr/local/cuda/bin")
  return()
endif()

set(CMAKE_CUDA_COMPILER ${ANYACL_NVCC})
set(CMAKE_CUDA_HOST_COMPILER ${CMAKE_CXX_COMPILER})
set(CMAKE_CUDA_ARCHITECTURES ${ANYACL_CUDA_ARCHITECTURES})
set(CMAKE_CUDA_RUNTIME_LIBRARY Static)
set(CMAKE_CUDA_VISIBILITY_PRESET hidden)
enable_language(CUDA)
set(CMAKE_CUDA_FLAGS_RELEASE "-O3 -DNDEBUG")
if(NOT CMAKE_CUDA20_STANDARD_COMPILE_OPTION)  # CMake 3.25 does not know that nvcc can
  set(CMAKE_CUDA20_STANDARD_COMPILE_OPTION -std=c++20)
  set(CMAKE_CUDA20_EXTENSION_COMPILE_OPTION -std=c++20)
endif()
set(CMAKE_CUDA_STANDARD 20)
set(CMAKE_CUDA_STANDARD_REQUIRED ON)
set(ANYACL_HAS_CUDA ON)
message(STATUS "CUDA plug-in: ${ANYACL_NVCC} for ${ANYACL_CUDA_ARCHITECTURES}")
