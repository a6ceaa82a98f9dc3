// SPDX-License-Identifier: Apache-2.0
// Copyright The AnyACL Authors
#include "cpu/backend.h"

#include <cstring>

#include "cpu/kernels.h"
#include "cpu/strided_copy.h"
#include "cpu/targets.h"
#include "runtime/backends.h"

namespace anyacl {
namespace cpu {
namespace {

struct OperatorKernels {
  const char* stem;
  std::span<const Kernel> (*kernels)();
};
constexpr OperatorKernels kOperators[] = {
#define ANYACL_OPERATOR(name, stem, family) {#stem, name##Kernels},
#include "ops/op_list.inc"
#undef ANYACL_OPERATOR
};

}  // namespace

CpuBackend::CpuBackend() { InitTargets(); }

std::span<const Kernel> CpuBackend::Kernels(const char* operator_stem) const {
  for (const OperatorKernels& row : kOperators) {
    if (std::strcmp(row.stem, operator_stem) == 0) return row.kernels();
  }
  return {};
}

void CpuBackend::Copy(const StridedCopy& copy, const Launch&) const { CopyStrided(copy); }

}  // namespace cpu

const Backend& CpuBackend() {
  static const auto* const backend = new cpu::CpuBackend;
  return *backend;
}

}  // namespace anyacl
