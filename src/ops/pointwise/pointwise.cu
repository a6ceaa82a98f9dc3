// SPDX-License-Identifier: Apache-2.0
// Copyright The AnyACL Authors
//
// Element-wise passes on CUDA: which way a pass goes. The kernels are in group.cuh, the formulas are those of the CPU.
#include "cuda/kernels.h"
#include "ops/pointwise/group.cuh"

namespace anyacl::pointwise {
namespace {

constexpr unsigned kTypes[] = {
#define ANYACL_FORMULA(name, inputs, types) (types),
#include "ops/pointwise/formulas.inc"
#undef ANYACL_FORMULA
};

bool Fits(const Params& p) {
  for (int k = 0; k < p.inputs; ++k) {
    if (!(p.constants >> k & 1) && !HasStorage(p.in_types[k])) return false;
  }
  const bool cuts = p.cut_inputs || p.cut_result;
  return (kTypes[static_cast<int>(p.formula)] >> static_cast<int>(p.compute) & 1) != 0 && HasStorage(p.out_type) &&
         (!cuts || HasStorage(p.computed));
}

bool HasForm(DType dtype) {
  return dtype == DType::kF32 || dtype == DType::kF16 || dtype == DType::kBF16 || dtype == DType::kBool;
}

Form FormOf(DType dtype) {
  return dtype == DType::kF32    ? Form::kFloat
         : dtype == DType::kF16  ? Form::kHalf
         : dtype == DType::kBF16 ? Form::kBFloat16
                                 : Form::kTruth;
}

// Whether vectors along the last axis are whole in every row.
bool HasVectors(const Params& p, const int64_t* strides, bool may_repeat) {
  const int last = p.axes - 1;
  if (may_repeat && strides[last] == 0) return true;
  if (strides[last] != 1) return false;
  for (int axis = 0; axis < last; ++axis) {
    if (strides[axis] % kVector != 0) return false;
  }
  return last == 0 || p.dims[last] % kVector == 0;
}

bool FitsVectors(const Params& p) {
  if (!Fits(p) || p.compute != Compute::kFloat || p.cut_inputs || p.cut_result) return false;
  if (!HasForm(p.out_type) || !HasVectors(p, p.out_strides, /*may_repeat=*/false)) return false;
  for (int k = 0; k < p.inputs; ++k) {
    if (p.constants >> k & 1) continue;
    if (!HasForm(p.in_types[k]) || !HasVectors(p, p.in_strides[k], /*may_repeat=*/true)) return false;
  }
  return true;
}

Steps StepsOf(const Params& p, int64_t width) {
  Steps steps;
  for (int axis = 0; axis < p.axes; ++axis) {
    steps.Add(axis == p.axes - 1 ? cuda::CeilDiv<int64_t>(p.dims[axis], width) : p.dims[axis]);
  }
  return steps;
}

void Run(const Params& p, const VectorWalk* vectors, const Launch& launch) {
  const Steps steps = vectors ? Steps() : StepsOf(p, 1);
  const Way way{p, steps, vectors};
#define ANYACL_FORMULA_GROUP(Name, stem) \
  if (Launch##Name(way, launch)) return;
#include "ops/pointwise/groups.inc"
#undef ANYACL_FORMULA_GROUP
}

void RunElements(const Params& p, const Launch& launch) { Run(p, nullptr, launch); }

// Where the operands lie is not known before.
void RunVectors(const Params& p, const Launch& launch) {
  VectorWalk walk{};
  const auto aligned = [](const void* data, DType dtype) {
    return reinterpret_cast<uintptr_t>(data) % (kVector * SizeOf(dtype)) == 0;
  };
  bool all_aligned = aligned(p.out, p.out_type);
  walk.out = FormOf(p.out_type);
  for (int k = 0; k < p.inputs; ++k) {
    if (p.constants >> k & 1) continue;
    const bool repeats = p.in_strides[k][p.axes - 1] == 0;
    all_aligned = all_aligned && (repeats || aligned(p.in[k], p.in_types[k]));
    walk.in[k] = FormOf(p.in_types[k]);
    walk.repeats |= static_cast<uint8_t>(repeats << k);
  }
  walk.steps = StepsOf(p, kVector);
  if (!all_aligned || walk.steps.many) return RunElements(p, launch);
  Run(p, &walk, launch);
}

}  // namespace
}  // namespace anyacl::pointwise

namespace anyacl::cuda {

std::span<const Kernel> PointwiseKernels() {
  static constexpr Kernel kernels[] = {
      MakeKernel<pointwise::Params, pointwise::FitsVectors, pointwise::RunVectors>("vectors"),
      MakeKernel<pointwise::Params, pointwise::Fits, pointwise::RunElements>("simple"),
  };
  return kernels;
}

}  // namespace anyacl::cuda
