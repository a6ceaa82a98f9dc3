// SPDX-License-Identifier: Apache-2.0
// Copyright The AnyACL Authors
#ifndef ANYACL_CPU_CORES_H_
#define ANYACL_CPU_CORES_H_

#include <cstdint>
#include <string>

namespace anyacl::cpu {

// Cores this process may use: its affinity, limited by the quota of its control group (v2 cpu.max
// or v1 cpu.cfs_quota_us, own group and all above it, rounded up). At least 1.
int UsableCores();

// The quota alone; 0 when there is none. `root` stands for "/" in tests.
int CgroupCores(const std::string& root);

// Bytes of the last cache of one core, its neighbours' share included; 0 where nobody says. (The C library adds up all
// last caches of the machine, on some processors of AMD even those that this core cannot use.)
int64_t LastCacheBytes();
int64_t LastCacheBytes(const std::string& root);

}  // namespace anyacl::cpu

#endif  // ANYACL_CPU_CORES_H_
