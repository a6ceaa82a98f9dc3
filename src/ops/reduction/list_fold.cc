// SPDX-License-Identifier: Apache-2.0
// Copyright The AnyACL Authors
//
// The tensors of a list as one: their sum, their largest and smallest elements.
#include "ops/movement/common.h"
#include "ops/operators.h"
#include "ops/order/rows.h"
#include "ops/pointwise/formulas.h"
#include "ops/pointwise/pass.h"
#include "ops/table.h"

namespace anyacl {
namespace {

using namespace contract;
using pointwise::Formula;

enum { kTensors, kOut };

struct Row {
  const char* op;
  Formula formula;
  const char* summary;
  DTypeSet newest, older;
};
constexpr DTypeSet kSums = {DType::kF32, DType::kF16, DType::kI8, DType::kU8, DType::kI32};
constexpr DTypeSet kExtremes = types::kFloat3 | DTypeSet{DType::kI8, DType::kI32, DType::kI64};
constexpr Row kRows[] = {
    {"aclnnMaxN", Formula::kMaximum, "The largest of the elements of several tensors.", kExtremes | DTypeSet{DType::kU8}, kExtremes},
    {"aclnnMinN", Formula::kMinimum, "The smallest of the elements of several tensors.", kExtremes | DTypeSet{DType::kU8}, kExtremes},
    {"aclnnSum", Formula::kPlus, "The sum of several tensors.", kSums, kSums},
};

std::string WrongList(Values v, Product) {
  const auto& tensors = v[kTensors].tensors->tensors;
  if (tensors.empty()) return "must have tensors, got none";
  std::vector<const Dims*> shapes;
  for (const Tensor* tensor : tensors) shapes.push_back(&tensor->dims);
  const Dims& out = v[kOut].tensor->dims;
  Dims dims;
  return BroadcastDims(shapes, &dims) && dims == out ? "" : "must have shapes that broadcast to that of out, got " + ToString(out);
}

Status PlanFold(Formula formula, Values values, PlanBuilder& plan) {
  const auto& tensors = values[kTensors].tensors->tensors;
  if (values[kOut].tensor->empty()) return {};
  const Operand out = movement::ApartOutput(plan, kOut), first = pointwise::BroadcastTo(plan.TensorOperand(kTensors, 0), out.dims);
  const int count = static_cast<int>(tensors.size());
  const DType wide = order::NaturalType(out.dtype);
  if (count == 1) ANYACL_RETURN_IF_ERROR(pointwise::AddCopy(plan, first, out));
  Operand sum = first;
  // What is between two steps keeps all its digits.
  const Operand between = count > 2 ? plan.ScratchOperand("so far", wide, out.dims) : out;
  for (int i = 1; i < count; ++i) {
    const Operand to = i + 1 == count ? out : between;
    const Operand inputs[] = {sum, plan.TensorOperand(kTensors, i)};
    ANYACL_RETURN_IF_ERROR(pointwise::AddPass(plan, formula, wide, inputs, to));
    sum = to;
  }
  return pointwise::FinishOutput(plan, kOut, 0, out);
}

template <int kRow>
Operator MakeListFold(const Entry& entry) {
  constexpr const Row& row = kRows[kRow];
  Table table = TableOf(entry, "pointwise", row.summary);
  table.notes = {"They broadcast together, are taken from left to right, and the result is rounded once."};
  AddNullRules(&table);
  Add(&table, {Supported(Of({Product::kAscend950, Product::kA3, Product::kA2, Product::kTraining, Product::kInference})),
               DTypes("tensors", RowsOf(row.newest, row.older)), DTypes("out", RowsOf(row.newest, row.older)), SameDType("tensors", "out"),
               Rank("tensors", 0, 8), Rank("out", 0, 8), Custom("tensors", "must be some, of shapes that broadcast to that of out", WrongList)});
  return {.contract = Contract(std::move(table)),
          .plan = [](Values values, PlanBuilder& plan) { return PlanFold(kRows[kRow].formula, values, plan); },
          .family = "reduction"};
}

}  // namespace

void DeclareListFold(Declarations& declarations) {
  declarations.Add("aclnnMaxN", MakeListFold<0>);
  declarations.Add("aclnnMinN", MakeListFold<1>);
  declarations.Add("aclnnSum", MakeListFold<2>);
}

}  // namespace anyacl
