# SPDX-License-Identifier: Apache-2.0
# Copyright The AnyACL Authors
#
# Toolchain file: 64-bit ARM on Debian's cross compiler and :arm64 packages; programs run under qemu-user. "max" has
# every extension that qemu knows, so that all SIMD targets of the build can be tested.
set(CMAKE_SYSTEM_NAME Linux)
set(CMAKE_SYSTEM_PROCESSOR aarch64)
set(CMAKE_C_COMPILER aarch64-linux-gnu-gcc)
set(CMAKE_CXX_COMPILER aarch64-linux-gnu-g++)
set(CMAKE_LIBRARY_ARCHITECTURE aarch64-linux-gnu)
set(CMAKE_CROSSCOMPILING_EMULATOR qemu-aarch64 -cpu max)
