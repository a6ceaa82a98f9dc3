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

VectorOperand OperandOf(const Params& p, const int64_t* strides, DType dtype) {
  VectorOperand operand{};
  const int64_t size = static_cast<int64_t>(SizeOf(dtype));
  const int last = p.axes - 1;
  for (int axis = 0; axis < last; ++axis) operand.bytes[axis] = strides[axis] * size;
  operand.repeats = strides[last] == 0;
  operand.last_bytes = operand.repeats ? 0 : static_cast<uint32_t>(kVector * size);
  operand.form = FormOf(dtype);
  return operand;
}

// Where the operands lie is not known before.
void RunVectors(const Params& p, const Launch& launch) {
  VectorWalk walk{};
  walk.steps = StepsOf(p, kVector);
  walk.out = OperandOf(p, p.out_strides, p.out_type);
  const auto aligned = [](const void* data, const VectorOperand& operand) {
    return operand.repeats || reinterpret_cast<uintptr_t>(data) % operand.last_bytes == 0;
  };
  bool vectors = !walk.steps.many && aligned(p.out, walk.out);
  for (int k = 0; k < p.inputs; ++k) {
    if (p.constants >> k & 1) continue;
    walk.in[k] = OperandOf(p, p.in_strides[k], p.in_types[k]);
    vectors = vectors && aligned(p.in[k], walk.in[k]);
  }
  if (!vectors) return RunElements(p, launch);
  walk.whole = static_cast<uint32_t>(p.count / kVector);  // only the only axis may end within a vector
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
