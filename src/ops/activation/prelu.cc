// SPDX-License-Identifier: Apache-2.0
// Copyright The AnyACL Authors
//
// Relu with a slope for negative numbers, one for all or one per channel, and its gradients.
#include <fmt/format.h>

#include "ops/dense.h"
#include "ops/operators.h"
#include "ops/pointwise/formulas.h"
#include "ops/pointwise/pass.h"
#include "ops/reduction/add_reduce.h"
#include "ops/table.h"

namespace anyacl {
namespace {

using namespace contract;
using pointwise::AddPass;
using pointwise::Formula;

constexpr DTypeSet kNewest = types::kFloat3 | types::kDouble;

Rule Floats(const char* name) { return DTypes(name, RowsOf(kNewest, types::kFloat3)); }

int64_t ChannelsOf(const Dims& self) { return self.rank() <= 1 ? 1 : self[1]; }

template <int kSelf, int kWeight>
std::string CheckWeight(Values v, Product) {
  const int64_t channels = ChannelsOf(v[kSelf].tensor->dims), count = v[kWeight].tensor->numel();
  return count == 1 || count == channels ? "" : fmt::format("must have 1 element or {}, one per channel, got {}", channels, count);
}

std::string CheckGradWeight(Values v, Product) {
  enum { kGradOutput, kSelf, kWeight, kGradInput, kGradWeight };
  const Dims &weight = v[kWeight].tensor->dims, &got = v[kGradWeight].tensor->dims, channels = {Numel(weight)};
  if (got == weight || (Numel(weight) != 1 && got == channels)) return "";
  return fmt::format("must have shape {} or one element per channel, got {}", ToString(weight), ToString(got));
}

// The slopes as a tensor that broadcasts to self: their order counts, not their shape.
Status SlopesOperand(PlanBuilder& plan, int arg, const Dims& self, Operand* slopes) {
  *slopes = plan.TensorOperand(arg);
  const int64_t count = Numel(slopes->dims);
  int64_t stride = 1;
  int long_axes = 0;
  for (int i = 0; i < slopes->dims.rank(); ++i) {
    if (slopes->dims[i] == 1) continue;
    stride = slopes->strides[i];
    ++long_axes;
  }
  if (long_axes > 1) {
    const Operand tensor = *slopes;
    *slopes = plan.ScratchOperand("slopes", tensor.dtype, tensor.dims);
    ANYACL_RETURN_IF_ERROR(pointwise::AddCopy(plan, tensor, *slopes));
    stride = 1;
  }
  slopes->dims = slopes->strides = Dims();
  for (int i = 1; i < self.rank() && count > 1; ++i) {
    slopes->dims.push_back(i == 1 ? count : 1);
    slopes->strides.push_back(i == 1 ? stride : 0);
  }
  return {};
}

Status PlanPrelu(Values v, PlanBuilder& plan) {
  enum { kSelf, kWeight, kOut };
  if (v[kSelf].tensor->empty() || v[kWeight].tensor->empty()) return {};
  plan.RequireApart(kOut);
  Operand operands[] = {plan.TensorOperand(kSelf), {}};
  ANYACL_RETURN_IF_ERROR(SlopesOperand(plan, kWeight, operands[0].dims, &operands[1]));
  return AddPass(plan, Formula::kPrelu, plan.op().contract.Deduced(v), operands, plan.TensorOperand(kOut), {}, {.cut_result = true});
}

Operator MakePrelu(const Entry& entry) {
  Table table = TableOf(entry, "pointwise", "Negative numbers are multiplied by a slope, that of their channel if there is one for each.");
  table.formulas = {"out = self > 0 ? self : self * weight[channel]"};
  table.deduce.from = {"self", "weight"};
  Describe(&table, "weight", "one slope, or one per channel; channels are axis 1 of self");
  AddNullRules(&table);
  Add(&table, {Supported(Of({Product::kAscend950, Product::kA3, Product::kA2, Product::kInference, Product::kTraining})), Floats("self"),
               Floats("weight"), Floats("out"), Rank("self", 0, 8), Rank("weight", 0, 8), Rank("out", 0, 8), SameShape("out", "self"),
               Custom("weight", "must have 1 element, or one per channel", CheckWeight<0, 1>)});
  return {.contract = Contract(std::move(table)), .plan = PlanPrelu, .family = "activation"};
}

Status PlanBackward(Values v, PlanBuilder& plan) {
  enum { kGradOutput, kSelf, kWeight, kGradInput, kGradWeight };
  const Tensor &self = *v[kSelf].tensor, &weight = *v[kWeight].tensor;
  const bool no_sum = v[kGradWeight].tensor->empty();
  if (self.empty() || weight.empty()) return no_sum ? Status() : FillOutput(plan, kGradWeight, 0);
  plan.RequireApart(kGradInput);
  const DType computed = self.dtype == DType::kF64 ? DType::kF64 : DType::kF32;
  const Operand terms = plan.ScratchOperand("terms of the slopes", computed, self.dims);
  Operand operands[] = {plan.TensorOperand(kGradOutput), plan.TensorOperand(kSelf), {}};
  ANYACL_RETURN_IF_ERROR(AddPass(plan, Formula::kPreluWeightTerm, computed, {operands, 2}, terms));
  ANYACL_RETURN_IF_ERROR(SlopesOperand(plan, kWeight, self.dims, &operands[2]));
  ANYACL_RETURN_IF_ERROR(AddPass(plan, Formula::kPreluBackward, computed, operands, plan.TensorOperand(kGradInput)));
  uint64_t axes = (uint64_t{1} << self.rank()) - 1;
  if (weight.numel() > 1) axes &= ~uint64_t{2};
  return reduction::AddReduceInto(plan, {.op = reduction::Op::kSum}, terms, axes, computed, kGradWeight);
}

Operator MakePreluBackward(const Entry& entry) {
  Table table = TableOf(entry, "pointwise", "Gradients of prelu for its input and its slopes.");
  table.formulas = {"gradInput = self > 0 ? gradOutput : gradOutput * weight[channel]",
                    "gradWeight[channel] = sum of (self > 0 ? 0 : gradOutput * self) over the channel, or over everything for one slope"};
  table.notes = {"gradWeight has the shape of weight, or one axis with an element per channel. Of empty tensors it is 0."};
  AddNullRules(&table);
  Add(&table, {Supported(Of({Product::kAscend950, Product::kA3, Product::kA2, Product::kTraining})), Floats("self")});
  for (const char* arg : {"gradOutput", "weight", "gradInput", "gradWeight"}) Add(&table, {SameDType(arg, "self")});
  for (const char* arg : {"gradOutput", "self", "weight", "gradInput", "gradWeight"}) Add(&table, {Rank(arg, 0, 8)});
  Add(&table, {SameShape("gradInput", "self"), Custom("weight", "must have 1 element, or one per channel", CheckWeight<1, 2>),
               Custom("gradWeight", "must have the shape of weight, or one element per channel", CheckGradWeight),
               Broadcast("self", {"self", "gradOutput"})});
  return {.contract = Contract(std::move(table)), .plan = PlanBackward, .family = "activation"};
}

}  // namespace

void DeclarePrelu(Declarations& declarations) {
  declarations.Add("aclnnPrelu", MakePrelu);
  declarations.Add("aclnnPreluBackward", MakePreluBackward);
}

}  // namespace anyacl
