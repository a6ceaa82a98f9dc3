// SPDX-License-Identifier: Apache-2.0
// Copyright The AnyACL Authors
#include "ops/reduction/add_reduce.h"

#include <algorithm>

#include "ops/pointwise/formulas.h"
#include "ops/pointwise/pass.h"

namespace anyacl::reduction {
namespace {

using pointwise::Compute;

constexpr int64_t kShortRow = 32;     // below it a row costs more than its elements
constexpr int64_t kNarrow = 16;       // fewer columns leave most of a block unused
constexpr int64_t kRowPiece = 32768;  // elements
constexpr int64_t kColumnPiece = 512;
constexpr int64_t kLongestPiece = 65536;

// Neighbours in the order of the axes whose strides allow it become one; there is always one.
int8_t MergeAxes(const Operand& in, uint64_t axes, bool reduced, Axis* merged) {
  int8_t count = 0;
  for (int i = 0; i < in.dims.rank(); ++i) {
    if (in.dims[i] == 1 || (axes >> i & 1) != (reduced ? 1u : 0u)) continue;
    if (count > 0 && merged[count - 1].stride == in.strides[i] * in.dims[i]) {
      merged[count - 1] = {merged[count - 1].size * in.dims[i], in.strides[i]};
    } else {
      merged[count++] = {in.dims[i], in.strides[i]};
    }
  }
  if (count == 0) merged[count++] = {1, 1};
  return count;
}

// How many kept elements lie side by side at the end of the shape.
int64_t KeptTail(const Dims& dims, uint64_t axes) {
  int64_t tail = 1;
  for (int i = dims.rank() - 1; i >= 0; --i) {
    if (dims[i] == 1) continue;
    if (axes >> i & 1) break;
    tail *= dims[i];
  }
  return tail;
}

// Whether the engine reads elements of `from` as if they had been converted to `to` before.
bool LoadsAs(DType from, DType to) {
  if (from == to) return true;
  return !IsComplex(from) && to == ResultType(Op::kSum, pointwise::ComputeOf(to));
}

}  // namespace

int64_t LengthOf(const Dims& dims, uint64_t axes) {
  int64_t length = 1;
  for (int i = 0; i < dims.rank(); ++i) {
    if (axes >> i & 1) length *= dims[i];
  }
  return length;
}

Status AddReduce(PlanBuilder& plan, const Fold& fold, const Operand& in, uint64_t axes, Compute compute,
                 const Operand* out, const Operand* places, const Operand* center) {
  const bool nothing = Numel(in.dims) == 0;
  const int64_t length = nothing ? 0 : LengthOf(in.dims, axes);
  const int64_t results = nothing ? Numel((out ? out : places)->dims) : Numel(in.dims) / length;
  if (results == 0) return {};
  auto& params = plan.MakeParams<ReduceParams>();
  params.results = results;
  params.length = length;
  params.kept_axes = MergeAxes(in, axes, false, params.kept);
  params.over_axes = MergeAxes(in, axes, true, params.over);
  params.divisor = fold.divisor;
  params.in_type = in.dtype;
  params.compute = compute;
  params.op = fold.op;
  params.finish = fold.finish;
  params.columns = KeptTail(in.dims, axes) >= kNarrow || length < kShortRow;
  params.piece = !params.columns     ? kRowPiece
                 : results >= 16384 ? kLongestPiece
                                    : std::max(kColumnPiece, kLongestPiece / std::min<int64_t>(results, 128));
  if (!nothing) plan.Bind(in, params.in);
  if (out) {
    params.out_type = out->dtype;
    plan.Bind(*out, params.out);
  }
  if (places) plan.Bind(*places, params.places);
  if (center) plan.Bind(*center, params.center);
  return plan.ChooseKernel(params.scratch, "reduce");
}

Status Converted(PlanBuilder& plan, const Operand& from, DType dtype, Operand* to) {
  *to = from;
  if (from.dtype == dtype) return {};
  *to = plan.ScratchOperand("converted input", dtype, from.dims);
  return pointwise::AddCopy(plan, from, *to);
}

Status AddReduceInto(PlanBuilder& plan, const Fold& fold, const Operand& in, uint64_t axes, DType dtype, int out_arg,
                     int places_arg) {
  Operand from = in;
  if (!LoadsAs(in.dtype, dtype)) ANYACL_RETURN_IF_ERROR(Converted(plan, in, dtype, &from));
  const Compute compute = pointwise::ComputeOf(dtype);
  const DType natural = ResultType(fold.op, compute);
  Operand out, places;
  if (out_arg >= 0) {
    out = plan.TensorOperand(out_arg);
    // BOOL and UINT8 hold the same bytes; a result in another dtype than `dtype` is still to be rounded to that.
    const bool as_is = natural == DType::kBool ? out.dtype == DType::kBool || out.dtype == DType::kU8
                                               : out.dtype == natural && dtype == natural;
    if (!as_is || !out.row_major() || plan.Overlaps(out, /*exact_too=*/true)) {
      out = plan.ScratchOperand("results", natural, out.dims);
    }
  }
  if (places_arg >= 0) places = pointwise::DenseOutput(plan, places_arg, 0, DType::kI64);
  ANYACL_RETURN_IF_ERROR(AddReduce(plan, fold, from, axes, compute, out_arg < 0 ? nullptr : &out,
                                   places_arg < 0 ? nullptr : &places));
  if (places_arg >= 0) ANYACL_RETURN_IF_ERROR(pointwise::FinishOutput(plan, places_arg, 0, places));
  if (out_arg < 0 || out.index >= 0) return {};
  const Operand to = plan.TensorOperand(out_arg);
  if (dtype == natural || dtype == to.dtype || natural == DType::kBool) return pointwise::AddCopy(plan, out, to);
  return pointwise::AddPass(plan, pointwise::Formula::kCopy, dtype, {&out, 1}, to);
}

}  // namespace anyacl::reduction
