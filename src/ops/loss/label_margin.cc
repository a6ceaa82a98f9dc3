// SPDX-License-Identifier: Apache-2.0
// Copyright The AnyACL Authors
//
// The margin by which the scores of a row's labels should exceed all others.
#include "ops/loss/label_margin.h"

#include <fmt/format.h>

#include <limits>

#include "ops/dense.h"
#include "ops/loss/loss.h"
#include "ops/pointwise/pass.h"
#include "ops/reduction/add_reduce.h"
#include "ops/table.h"

namespace anyacl {
namespace {

using namespace contract;
using namespace loss;

enum { kSelf, kTarget, kReduction, kOut, kIsTarget };

int64_t ClassesOf(const Dims& self) { return self.rank() == 0 ? 1 : self[self.rank() - 1]; }
int64_t RowsOf(const Dims& self) { return self.rank() == 2 ? self[0] : 1; }

std::string CheckClasses(Values v, Product) {
  const Dims& self = v[kSelf].tensor->dims;
  return ClassesOf(self) > 0 ? "" : fmt::format("must have classes, got shape {}", ToString(self));
}

std::string CheckOut(Values v, Product) {
  const Dims &self = v[kSelf].tensor->dims, &out = v[kOut].tensor->dims;
  if (v[kReduction].integer == kNone && self.rank() == 2) {
    const Dims want = {self[0]};
    return out == want ? "" : fmt::format("must have shape {} for reduction 0, got {}", ToString(want), ToString(out));
  }
  return Numel(out) == 1 && out.rank() <= 1 ? "" : fmt::format("must have one element, got shape {}", ToString(out));
}

std::string CheckMarks(Values v, Product) {
  const Dims &target = v[kTarget].tensor->dims, &marks = v[kIsTarget].tensor->dims;
  const bool both_empty = Numel(target) == 0 && Numel(marks) == 0 && marks.rank() <= 2;
  return marks == target || both_empty ? "" : fmt::format("must have shape {}, got {}", ToString(target), ToString(marks));
}

Status Plan(Values v, PlanBuilder& plan) {
  const Tensor& self = *v[kSelf].tensor;
  const int64_t reduction = v[kReduction].integer;
  if (self.empty()) {
    if (reduction == kNone) return {};
    return FillOutput(plan, kOut, reduction == kMean ? std::numeric_limits<double>::quiet_NaN() : 0);
  }
  Dense dense(plan, v, self.dtype == DType::kF64 ? DType::kF64 : DType::kF32);
  ANYACL_RETURN_IF_ERROR(dense.Read(kSelf));
  ANYACL_RETURN_IF_ERROR(dense.Read(kTarget, DType::kI64));
  dense.Write(kIsTarget);
  const Operand to = plan.TensorOperand(kOut);
  const Operand rows = plan.ScratchOperand("loss of each row", DType::kF64, reduction == kNone ? to.dims : Dims{RowsOf(self.dims)});
  auto& params = plan.MakeParams<LabelMarginParams>();
  params.rows = RowsOf(self.dims);
  params.classes = ClassesOf(self.dims);
  params.wide = self.dtype == DType::kF64;
  dense.Bind(kSelf, params.x);
  dense.Bind(kTarget, params.target);
  dense.BindOut(kIsTarget, params.marks);
  plan.Bind(rows, params.out);
  ANYACL_RETURN_IF_ERROR(plan.ChooseKernel("label_margin"));
  ANYACL_RETURN_IF_ERROR(dense.Finish());
  if (reduction == kNone) return pointwise::AddCopy(plan, rows, to);
  reduction::Fold fold{.op = reduction::Op::kSum};
  if (reduction == kMean) fold = {reduction::Op::kSum, reduction::Finish::kDivide, static_cast<double>(params.rows)};
  return reduction::AddReduceInto(plan, fold, rows, 1, DType::kF64, kOut);
}

Operator MakeLabelMargin(const Entry& entry) {
  Table table = TableOf(entry, "label_margin", "How far the scores of rows' labels are from exceeding all others by 1, their mean or sum.");
  table.formulas = {"isTarget = 1 for the labels: those in target before the first -1; else 0",
                    "l = sum over labels j and classes i that are none of max(0, 1 - (self[j] - self[i])) / C", "out = l, its mean or its sum"};
  table.notes = {"reduction: 0 every row, 1 their mean, 2 their sum. Labels that are no class do not count. The mean of no rows is NaN."};
  constexpr Products kFour = Of({Product::kAscend950, Product::kA3, Product::kA2, Product::kTraining});
  AddNullRules(&table);
  Add(&table, {Supported(kFour), DTypes("self", contract::RowsOf(types::kFloat3 | types::kDouble, types::kFloat3)),
               DTypes("target", contract::RowsOf({DType::kI64, DType::kI32})), SameDType("out", "self"), SameDType("isTarget", "self"),
               OneOf("reduction", {kNone, kMean, kSum}), Rank("self", 0, 2), Custom("self", "must have classes", CheckClasses),
               SameShape("target", "self"), Custom("out", "must have an element per row, or one for a mean or sum", CheckOut),
               Custom("isTarget", "must have the shape of target", CheckMarks)});
  return {.contract = Contract(std::move(table)), .plan = Plan, .family = "loss"};
}

}  // namespace

void DeclareLabelMargin(Declarations& declarations) { declarations.Add("aclnnMultilabelMarginLoss", MakeLabelMargin); }

}  // namespace anyacl
