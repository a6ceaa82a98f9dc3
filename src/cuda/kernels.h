// SPDX-License-Identifier: Apache-2.0
// Copyright The AnyACL Authors
//
// What <op>.cu gives to the backend: its kernels, best first, "simple" last.
#ifndef ANYACL_CUDA_KERNELS_H_
#define ANYACL_CUDA_KERNELS_H_

#include <cstdint>
#include <span>

#include "runtime/backend.h"

namespace anyacl::cuda {

// How many of Launch::counters there are.
inline constexpr int kLaunchCounters = 1024;

// A Kernel from typed functions, so that kernels see their own Params and not void*. `run` launches on
// static_cast<cudaStream_t>(launch.native_stream) and neither allocates nor waits: the stream may be
// captured into a graph. launch.device is the CUDA ordinal, and current. A launch that fails is found by
// the stream; kernels need not look.
template <class Params, bool (*fits)(const Params&), void (*run)(const Params&, const Launch&)>
constexpr Kernel MakeKernel(const char* name, int64_t (*scratch_bytes)(const void*) = nullptr) {
  return {name, [](const void* params) { return fits(*static_cast<const Params*>(params)); },
          [](const void* params, const Launch& launch) {
            run(*static_cast<const Params*>(params), launch);
          },
          scratch_bytes};
}

}  // namespace anyacl::cuda

#endif  // ANYACL_CUDA_KERNELS_H_
