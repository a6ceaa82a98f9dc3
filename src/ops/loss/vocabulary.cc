// SPDX-License-Identifier: Apache-2.0
// Copyright The AnyACL Authors
//
// Steps of a cross entropy whose vocabulary is spread over several devices.
#include "ops/loss/vocabulary.h"

#include <fmt/format.h>

#include "core/codes.h"
#include "ops/dense.h"
#include "ops/loss/loss.h"
#include "ops/pointwise/formulas.h"
#include "ops/pointwise/pass.h"
#include "ops/table.h"

namespace anyacl {
namespace {

using namespace contract;
using namespace loss;
using pointwise::AddPass;
using pointwise::DenseInput;
using pointwise::DenseOutput;
using pointwise::FinishOutput;
using pointwise::Formula;

// ---- sums, and the targets that are here ----------------------------------------------------------------------------

enum { kLogits, kTarget, kMost, kStart, kEnd, kPredicted, kSum, kExp, kOffset, kMask };

Dims RowsOf(const Dims& logits) {
  Dims rows;
  for (int i = 0; i + 1 < logits.rank(); ++i) rows.push_back(logits[i]);
  return rows;
}

template <int kArg>
std::string CheckPerRow(Values v, Product) {
  const Dims want = RowsOf(v[kLogits].tensor->dims), &got = v[kArg].tensor->dims;
  return got == want ? "" : fmt::format("must have shape {}, got {}", ToString(want), ToString(got));
}

std::string CheckRange(Values v, Product) {
  const Dims& logits = v[kLogits].tensor->dims;
  const int64_t start = v[kStart].integer, end = v[kEnd].integer, count = logits[logits.rank() - 1];
  if (start >= 0 && end >= start && end - start == count) return "";
  return fmt::format("must be 0 or more and end {} before vocabEndIndex, got {} and {}", count, start, end);
}

Status PlanSums(Values v, PlanBuilder& plan) {
  const Tensor& logits = *v[kLogits].tensor;
  const Dims rows = RowsOf(logits.dims);
  if (Numel(rows) == 0) return {};
  const bool has_words = !logits.empty();
  Operand x, most, target;
  if (has_words) ANYACL_RETURN_IF_ERROR(DenseInput(plan, kLogits, 0, DType::kF32, &x));
  ANYACL_RETURN_IF_ERROR(DenseInput(plan, kMost, 0, DType::kF32, &most));
  ANYACL_RETURN_IF_ERROR(DenseInput(plan, kTarget, 0, DType::kI32, &target));
  Operand results[kMask + 1];
  for (int arg = kPredicted; arg <= kMask; ++arg) {
    if (arg != kExp || has_words) results[arg] = DenseOutput(plan, arg, 0, arg >= kOffset ? DType::kI32 : DType::kF32);
  }
  auto& params = plan.MakeParams<VocabularyParams>();
  params.rows = Numel(rows);
  params.count = logits.dims[logits.rank() - 1];
  params.start = v[kStart].integer;
  if (has_words) plan.Bind(x, params.x);
  if (has_words) plan.Bind(results[kExp], params.exp);
  plan.Bind(most, params.most);
  plan.Bind(target, params.target);
  plan.Bind(results[kPredicted], params.predicted);
  plan.Bind(results[kSum], params.sum);
  plan.Bind(results[kOffset], params.offset);
  plan.Bind(results[kMask], params.mask);
  ANYACL_RETURN_IF_ERROR(plan.ChooseKernel("vocabulary"));
  for (int arg = kPredicted; arg <= kMask; ++arg) {
    if (arg != kExp || has_words) ANYACL_RETURN_IF_ERROR(FinishOutput(plan, arg, 0, results[arg]));
  }
  return {};
}

Operator MakeSums(const Entry& entry) {
  const std::vector<const char*> outputs = {"predictedLogitsOut", "sumExpLogitsOut", "expLogitsOut", "targetOffsetOut", "targetMaskOut"};
  Table table = TableOf(entry, "vocabulary", "What one part of a vocabulary adds to a cross entropy.", {.outputs = outputs});
  table.formulas = {"expLogitsOut = e^(vocabParallelLogits - globalLogitsMax), sumExpLogitsOut = its sum over the words",
                    "targetMaskOut = target in [vocabStartIndex, vocabEndIndex) ? 0 : 1", "targetOffsetOut = targetMaskOut ? 0 : target - vocabStartIndex",
                    "predictedLogitsOut = targetMaskOut ? 0 : vocabParallelLogits[targetOffsetOut] - globalLogitsMax"};
  AddNullRules(&table);
  Add(&table, {Supported(kOnly950), DTypes("vocabParallelLogits", contract::RowsOf({DType::kF32, DType::kBF16})), DTypes("target", contract::RowsOf({DType::kI32})),
               SameDType("globalLogitsMax", "vocabParallelLogits")});
  for (const char* arg : {"predictedLogitsOut", "sumExpLogitsOut", "expLogitsOut"}) Add(&table, {DTypes(arg, contract::RowsOf({DType::kF32}))});
  for (const char* arg : {"targetOffsetOut", "targetMaskOut"}) Add(&table, {DTypes(arg, contract::RowsOf({DType::kI32}))});
  const char* const kPerRow = "must have one element per row of words";
  Add(&table, {Rank("vocabParallelLogits", 2, 3), Custom("target", kPerRow, CheckPerRow<kTarget>), Custom("globalLogitsMax", kPerRow, CheckPerRow<kMost>),
               Custom("vocabStartIndex", "must be 0 or more, and as many words before vocabEndIndex as there are", CheckRange),
               Custom("predictedLogitsOut", kPerRow, CheckPerRow<kPredicted>), Custom("sumExpLogitsOut", kPerRow, CheckPerRow<kSum>),
               SameShape("expLogitsOut", "vocabParallelLogits"), Custom("targetOffsetOut", kPerRow, CheckPerRow<kOffset>),
               Custom("targetMaskOut", kPerRow, CheckPerRow<kMask>)});
  return {.contract = Contract(std::move(table)), .plan = PlanSums, .family = "loss"};
}

// ---- the loss -------------------------------------------------------------------------------------------------------

enum { kGlobalMost, kGlobalSum, kGlobalPredicted, kSmoothing, kInput, kWeight, kWords, kLoss, kSoftMax };

std::string CheckSoftMaxGiven(Values v, Product) {
  return v[kWords].given() && !v[kSoftMax].given() ? "must not be null where vocabParallelLogitsOptional is given" : "";
}
std::string CheckSmoothing(Values v, Product) { return v[kSmoothing].real == 0 ? "" : fmt::format("must be 0, got {}", v[kSmoothing].real); }

Status PlanLoss(Values v, PlanBuilder& plan) {
  const int64_t rows = v[kLoss].tensor->numel();
  if (rows == 0) return {};
  plan.RequireApart(kLoss);
  const Operand sum = plan.TensorOperand(kGlobalSum), logarithm = plan.ScratchOperand("ln", DType::kF32, sum.dims);
  const Operand of_sum[] = {sum}, of_loss[] = {logarithm, plan.TensorOperand(kGlobalPredicted)};
  const Operand loss = DenseOutput(plan, kLoss, 0, DType::kF32);
  ANYACL_RETURN_IF_ERROR(AddPass(plan, Formula::kLog, DType::kF32, of_sum, logarithm));
  const pointwise::ScalarUse one[] = {{Scalar::OfInt(1)}};
  ANYACL_RETURN_IF_ERROR(AddPass(plan, Formula::kSub, DType::kF32, of_loss, loss, one));
  if (v[kWords].given() && !v[kWords].tensor->empty()) {
    Dense dense(plan, v, DType::kF32);
    for (const int arg : {kGlobalMost, kGlobalSum, kWords}) ANYACL_RETURN_IF_ERROR(dense.Read(arg));
    dense.Write(kSoftMax);
    auto& params = plan.MakeParams<VocabularyParams>();
    params.rows = rows;
    params.count = v[kWords].tensor->dims[1];
    dense.Bind(kWords, params.x);
    dense.Bind(kGlobalMost, params.most);
    dense.Bind(kGlobalSum, params.total);
    dense.BindOut(kSoftMax, params.exp);
    ANYACL_RETURN_IF_ERROR(plan.ChooseKernel("vocabulary"));
    ANYACL_RETURN_IF_ERROR(dense.Finish());
  }
  return FinishOutput(plan, kLoss, 0, loss);
}

Operator MakeFusedLoss(const Entry& entry) {
  const std::vector<const char*> optional = {"inputOptional", "weightOptional", "vocabParallelLogitsOptional", "softMaxOutOptional"};
  Table table = TableOf(entry, "vocabulary", "Cross entropy from what all parts of a vocabulary have found together.", {.optional = optional});
  table.formulas = {"lossOut = ln(sumExpLogits) - predictedLogits", "softMaxOutOptional = e^(vocabParallelLogitsOptional - logitsMax) / sumExpLogits"};
  table.notes = {"inputOptional and weightOptional have no effect. Without vocabParallelLogitsOptional softMaxOutOptional is not touched."};
  table.sizes = {{"N", "logitsMax", 0}};
  AddNullRules(&table);
  Add(&table, {Custom("softMaxOutOptional", "must not be null where vocabParallelLogitsOptional is given", CheckSoftMaxGiven).EvenIfAbsent().Code(code::kNull),
               Supported(kNewer)});
  for (const char* arg : {"logitsMax", "sumExpLogits", "predictedLogits", "lossOut", "softMaxOutOptional"}) {
    Add(&table, {DTypes(arg, contract::RowsOf({DType::kF32}))});
  }
  Add(&table, {DTypes("vocabParallelLogitsOptional", contract::RowsOf(types::kFloat3)), Rank("logitsMax", 1, 1), ShapeIs("sumExpLogits", "N"),
               ShapeIs("predictedLogits", "N"), ShapeIs("lossOut", "N"), Rank("vocabParallelLogitsOptional", 2, 2),
               Custom("vocabParallelLogitsOptional", "must have a row for each element of logitsMax",
                      [](Values v, Product) -> std::string {
                        if (!v[kWords].given() || v[kWords].tensor->dims[0] == v[kGlobalMost].tensor->dims[0]) return "";
                        return fmt::format("must have {} rows, got shape {}", v[kGlobalMost].tensor->dims[0], ToString(v[kWords].tensor->dims));
                      }),
               SameShape("softMaxOutOptional", "vocabParallelLogitsOptional"), Custom("labelSmoothing", "must be 0", CheckSmoothing)});
  return {.contract = Contract(std::move(table)), .plan = PlanLoss, .family = "loss"};
}

}  // namespace

void DeclareVocabularyLosses(Declarations& declarations) {
  declarations.Add("aclnnCrossEntropySumExpAndIndexLogit", MakeSums);
  declarations.Add("aclnnFusedCrossEntropyLossWithMaxSum", MakeFusedLoss);
}

}  // namespace anyacl
