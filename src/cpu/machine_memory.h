// SPDX-License-Identifier: Apache-2.0
// Copyright The AnyACL Authors
#ifndef ANYACL_CPU_MACHINE_MEMORY_H_
#define ANYACL_CPU_MACHINE_MEMORY_H_

#include <cstddef>

namespace anyacl::cpu {

struct MachineMemory {
  size_t total = 0;      // of the machine, or of the control group when that allows less
  size_t available = 0;  // what this process could touch now without swapping
  size_t resident = 0;   // what this process has touched
};

// A handful of small files under /proc and /sys: tens of microseconds.
MachineMemory ReadMachineMemory();

// Only the total; read once.
size_t MachineTotal();

}  // namespace anyacl::cpu

#endif  // ANYACL_CPU_MACHINE_MEMORY_H_
