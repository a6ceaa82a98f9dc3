// SPDX-License-Identifier: Apache-2.0
// Copyright The AnyACL Authors
#include "cpu/backend.h"

#include <sched.h>
#include <unistd.h>

#include <algorithm>
#include <cstring>
#include <fstream>
#include <string>
#include <thread>

#include "core/once.h"
#include "cpu/cores.h"
#include "cpu/kernels.h"
#include "cpu/strided_copy.h"
#include "cpu/targets.h"
#include "runtime/backends.h"

namespace anyacl {
namespace cpu {

#define ANYACL_KERNELS(name, stem, folder) std::span<const Kernel> name##Kernels();
#include "ops/kernel_list.inc"
#undef ANYACL_KERNELS

namespace {

struct NamedKernels {
  const char* stem;
  std::span<const Kernel> (*kernels)();
};
constexpr NamedKernels kKernels[] = {
#define ANYACL_KERNELS(name, stem, folder) {#stem, name##Kernels},
#include "ops/kernel_list.inc"
#undef ANYACL_KERNELS
};

int64_t CoresPerDevice() {
  cpu_set_t cpus;
  CPU_ZERO(&cpus);
  if (sched_getaffinity(0, sizeof(cpus), &cpus) == 0) return std::max(1, CPU_COUNT(&cpus));
  return std::max(1u, std::thread::hardware_concurrency());
}

int64_t SharedCacheBytes() {
  constexpr int64_t kUnknown = int64_t{32} << 20;
  const int64_t bytes = LastCacheBytes();
  return bytes > 0 ? bytes : kUnknown;
}

std::string ModelName() {
  std::ifstream file("/proc/cpuinfo");
  for (std::string line; std::getline(file, line);) {
    const size_t colon = line.find(": ");
    if (line.starts_with("model name") && colon != std::string::npos) return line.substr(colon + 2);
  }
  return "CPU";
}

}  // namespace

CpuBackend::CpuBackend() { InitTargets(); }

std::span<const Kernel> CpuBackend::Kernels(const char* stem) const {
  for (const NamedKernels& row : kKernels) {
    if (std::strcmp(row.stem, stem) == 0) return row.kernels();
  }
  return {};
}

// A CPU has no cube and vector cores of its own: each of its cores stands for one of both.
DeviceFacts CpuBackend::Facts(int) const {
  return {ModelName(), CoresPerDevice(), SharedCacheBytes(),
          static_cast<int64_t>(sysconf(_SC_PHYS_PAGES)) * sysconf(_SC_PAGESIZE)};
}

void CpuBackend::Copy(const StridedCopy& copy, const Launch&) const { CopyStrided(copy); }

}  // namespace cpu

const Backend& CpuBackend() {
  return TheOne<cpu::CpuBackend>();
}

}  // namespace anyacl
