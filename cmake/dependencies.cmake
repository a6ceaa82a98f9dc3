# SPDX-License-Identifier: Apache-2.0
# Copyright The AnyACL Authors
#
# Third-party code, all of it from the distribution. Highway is the only one that is linked; the rest is headers.

find_package(Threads REQUIRED)
find_package(hwy 1.0.3 REQUIRED CONFIG)
find_package(fmt 9 REQUIRED CONFIG)
find_package(nlohmann_json 3.11 REQUIRED CONFIG)
if(ANYACL_TOOLS)
  find_package(CLI11 2.1 REQUIRED CONFIG)
endif()
if(ANYACL_TESTS)
  find_package(GTest 1.12 REQUIRED CONFIG)
endif()
find_package(Python3 3.10 REQUIRED COMPONENTS Interpreter)
