// SPDX-License-Identifier: Apache-2.0
// Copyright The AnyACL Authors
//
// Which tokens a language model may choose from, and which it chooses.
#include "ops/order/top_p.h"

#include <fmt/format.h>

#include "ops/dense.h"
#include "ops/operators.h"
#include "ops/pointwise/pass.h"
#include "ops/table.h"

namespace anyacl {
namespace {

using namespace contract;

constexpr DType F32 = DType::kF32, I32 = DType::kI32, I64 = DType::kI64;

// [rows], as the first dim of argument 0.
template <int kArg>
std::string WrongRows(Values v, Product) {
  if (!v[kArg].given()) return "";
  const Dims want = {v[0].tensor->dims[0]}, &got = v[kArg].tensor->dims;
  return got == want ? "" : fmt::format("must have shape {}, got {}", ToString(want), ToString(got));
}
template <int kArg>
Rule OfRows(const Entry& entry) {
  return Custom(entry.args[kArg].name, "must have one number for each row of logits", WrongRows<kArg>);
}

// ---- ApplyTopKTopP ----

struct Apply {
  enum { kLogits, kP, kK, kOut };
};

Status PlanApply(Values v, PlanBuilder& plan) {
  Dense dense(plan, v, F32);
  ANYACL_RETURN_IF_ERROR(dense.Read(Apply::kLogits));
  ANYACL_RETURN_IF_ERROR(dense.Read(Apply::kP));
  ANYACL_RETURN_IF_ERROR(dense.Read(Apply::kK, I64));
  dense.Write(Apply::kOut);
  const Dims& dims = v[Apply::kLogits].tensor->dims;
  const Operand order = plan.ScratchOperand("order", I64, dims);
  auto& p = plan.MakeParams<order::TopPParams>();
  p.rows = dims[0];
  p.count = dims[1];
  dense.Bind(Apply::kLogits, p.logits);
  dense.Bind(Apply::kP, p.p);
  dense.Bind(Apply::kK, p.k);
  dense.BindOut(Apply::kOut, p.out);
  plan.Bind(order, reinterpret_cast<void*&>(p.order));
  ANYACL_RETURN_IF_ERROR(plan.ChooseKernel("top_p"));
  return dense.Finish();
}

Operator MakeApply(const Entry& entry) {
  Table table = TableOf(entry, "top_p", "Leaves the likeliest logits of each row; others become -infinity.", {.optional = {"p", "k"}});
  table.formulas = {"k: of a row, what is smaller than the k-th largest goes; a k that is not between 0 and the length leaves all",
                    "p: of the smallest, as many go as have a probability of 1 - p together at most; the largest stays"};
  AddNullRules(&table);
  Add(&table, {OneGiven({"p", "k"}), Supported(kNewer), DTypes("logits", RowsOf(types::kFloat3)), SameDType("p", "logits"), DTypes("k", {{{I32}}}),
               SameDType("out", "logits")});
  for (const char* arg : {"logits", "p", "k", "out"}) Add(&table, {Formats(arg, {Format::kND})});
  Add(&table, {Rank("logits", 2, 2), SameShape("out", "logits"), OfRows<Apply::kP>(entry), OfRows<Apply::kK>(entry), AcceptIfEmpty({"out"})});
  return {.contract = Contract(std::move(table)), .plan = PlanApply, .family = "order"};
}

// ---- TopKTopPSample ----

struct Draw {
  enum { kLogits, kK, kP, kQ, kEpsilon, kNeedLogits, kGuess, kDrawn, kSelect };
};

Status PlanSample(Values v, PlanBuilder& plan) {
  const Dims& dims = v[Draw::kLogits].tensor->dims;
  if (v[Draw::kLogits].tensor->empty()) return {};
  Dense dense(plan, v, F32);
  ANYACL_RETURN_IF_ERROR(dense.Read(Draw::kLogits));
  ANYACL_RETURN_IF_ERROR(dense.Read(Draw::kK, I64));
  ANYACL_RETURN_IF_ERROR(dense.Read(Draw::kP));
  ANYACL_RETURN_IF_ERROR(dense.Read(Draw::kQ));
  if (v[Draw::kNeedLogits].flag) dense.Write(Draw::kSelect);
  const Operand drawn = pointwise::DenseOutput(plan, Draw::kDrawn, 0, I64);
  const Operand order = plan.ScratchOperand("order", I64, dims), probability = plan.ScratchOperand("probabilities", DType::kF64, dims);
  auto& p = plan.MakeParams<order::TopPSampleParams>();
  p.rows = dims[0];
  p.count = dims[1];
  p.epsilon = v[Draw::kEpsilon].real;
  dense.Bind(Draw::kLogits, p.logits);
  dense.Bind(Draw::kK, p.k);
  dense.Bind(Draw::kP, p.p);
  dense.Bind(Draw::kQ, p.q);
  dense.BindOut(Draw::kSelect, p.select);
  plan.Bind(drawn, reinterpret_cast<void*&>(p.drawn));
  plan.Bind(order, reinterpret_cast<void*&>(p.order));
  plan.Bind(probability, reinterpret_cast<void*&>(p.probability));
  ANYACL_RETURN_IF_ERROR(plan.ChooseKernel("top_p_sample"));
  ANYACL_RETURN_IF_ERROR(pointwise::FinishOutput(plan, Draw::kDrawn, 0, drawn));
  return dense.Finish();
}

Operator MakeSample(const Entry& entry) {
  Table table = TableOf(entry, "top_p_sample", "Draws one of the likeliest tokens of each row.",
                        {.in_out = {"logitsTopKPSelect"}, .optional = {"q"}, .outputs = {"logitsSelectIdx"}});
  table.formulas = {"kept: the topK largest (if topK is 1 to 1024 and no more than there are), of those up to the first one with which the "
                    "probabilities sum to more than topP (if that is between 0 and 1)",
                    "logitsSelectIdx: the first of the largest softmax(kept) / (|q| + eps); place j of q belongs to the j-th largest where something was left out"};
  table.notes = {"logitsTopKPSelect is written only when isNeedLogits is true: the logits that were kept, else -infinity."};
  table.result_pointers = ResultPointers::kAfterNullChecks;
  AddNullRules(&table);
  Add(&table, {Supported(kNewer), DTypes("logits", RowsOf({DType::kF16, DType::kBF16})), DTypes("topK", {{{I32}}}), SameDType("topP", "logits"),
               DTypes("q", {{{F32}}}), DTypes("logitsSelectIdx", {{{I64}}}), DTypes("logitsTopKPSelect", {{{F32}}}), Rank("logits", 2, 2),
               OfRows<Draw::kK>(entry), OfRows<Draw::kP>(entry), SameShape("q", "logits"), OfRows<Draw::kDrawn>(entry),
               SameShape("logitsTopKPSelect", "logits")});
  return {.contract = Contract(std::move(table)), .plan = PlanSample, .family = "order"};
}

}  // namespace

void DeclareTopP(Declarations& declarations) {
  declarations.Add("aclnnApplyTopKTopP", MakeApply);
  declarations.Add("aclnnTopKTopPSample", MakeSample);
}

}  // namespace anyacl
