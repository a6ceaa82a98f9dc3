// SPDX-License-Identifier: Apache-2.0
// Copyright The AnyACL Authors
#include "ops/random/common.h"

namespace anyacl::random {

void AddSeedRules(Table* table) {
  for (const char* arg : {"seedTensor", "offsetTensor"}) {
    Add(table, {DTypes(arg, {{{DType::kI64}}, {{DType::kU64}}}), Rank(arg, 0, 1), NumelIs(arg, "1")});
  }
}

void SetSource(PlanBuilder& plan, Values values, int arg, bool from_tensors, Source* source) {
  if (!from_tensors) {
    source->seed = static_cast<uint64_t>(values[arg].integer);
    source->offset = static_cast<uint64_t>(values[arg + 1].integer);
    return;
  }
  source->offset = static_cast<uint64_t>(values[arg + 2].integer);
  plan.Bind(plan.TensorOperand(arg), source->seed_at);
  plan.Bind(plan.TensorOperand(arg + 1), source->offset_at);
}

Status NumbersFor(PlanBuilder& plan, int arg, const Dims& dims, bool wide, Operand* numbers) {
  Operand from = plan.TensorOperand(arg);
  if (Numel(from.dims) == 1) from.dims = from.strides = Dims();
  from = pointwise::BroadcastTo(from, dims);
  const DType dtype = wide ? DType::kF64 : DType::kF32;
  if (from.dtype == dtype && from.row_major()) {
    *numbers = from;
    return {};
  }
  *numbers = plan.ScratchOperand("numbers", dtype, dims);
  return pointwise::AddCopy(plan, from, *numbers);
}

Status AddDraw(PlanBuilder& plan, Values values, const RandomParams& facts, int seed, bool from_tensors, int out) {
  const Tensor& t = *values[out].tensor;
  if (t.empty()) return {};
  const bool whole_complex = facts.draw == Draw::kWhole && IsComplex(t.dtype);
  const Operand target = whole_complex ? plan.ScratchOperand("numbers", DType::kI64, t.dims) : pointwise::DenseOutput(plan, out, 0, t.dtype);
  auto& p = plan.MakeParams<RandomParams>();
  p = facts;
  p.dtype = target.dtype;
  p.count = Numel(t.dims);
  if (IsComplex(target.dtype)) {  // its parts one after the other
    p.dtype = target.dtype == DType::kC64 ? DType::kF32 : DType::kF64;
    p.count *= 2;
  }
  p.wide = p.dtype == DType::kF64;
  SetSource(plan, values, seed, from_tensors, &p.source);
  plan.Bind(target, p.out);
  ANYACL_RETURN_IF_ERROR(plan.ChooseKernel("random"));
  return pointwise::FinishOutput(plan, out, 0, target);
}

}  // namespace anyacl::random
