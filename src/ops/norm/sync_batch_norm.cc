// SPDX-License-Identifier: Apache-2.0
// Copyright The AnyACL Authors
//
// The steps of a batch normalisation over several ranks, but for its last one (batch_norm_elemt_backward.cc).
#include <fmt/format.h>

#include <limits>

#include "core/codes.h"

#include "ops/dense.h"
#include "ops/norm/channel_statistics.h"
#include "ops/norm/channels.h"
#include "ops/norm/norm_rules.h"
#include "ops/norm/row_norm.h"
#include "ops/operators.h"
#include "ops/table.h"

namespace anyacl {
namespace {

using namespace contract;
using norm::Channels;
using norm::Float3Wide;

constexpr Products kTrained = Of({Product::kAscend950, Product::kA3, Product::kA2, Product::kTraining});
constexpr double kNaN = std::numeric_limits<double>::quiet_NaN();

constexpr DType F32 = DType::kF32, F16 = DType::kF16, BF16 = DType::kBF16, F64 = DType::kF64;

// ---- BatchNormStats ----

Operator MakeBatchNormStats(const Entry& entry) {
  Table table = TableOf(entry, "row_norm", "Mean and reciprocal standard deviation of each channel of one rank.");
  table.formulas = {"mean, var = of each channel over all other dims; invstd = 1 / sqrt(var + eps)"};
  table.notes = {"An input without elements gives mean 0 and invstd NaN."};
  table.sizes = {{"C", "input", 1}};
  Describe(&table, "input", "numbers; dim 1 is the channel");
  Describe(&table, "eps", "added to the variance");
  Describe(&table, "mean", "mean of each channel");
  Describe(&table, "invstd", "reciprocal standard deviation of each channel");
  AddNullRules(&table);
  const std::vector<TypeRow> statistics = {{{F32}}, {{F64}, kOnly950}};
  Add(&table, {Supported(kTrained), DTypes("input", {{{F32}}, {{F16}}, {{BF16}, kOnly950}, {{F64}, kOnly950}}),
               DTypes("mean", statistics), DTypes("invstd", statistics),
               DTypeRows({"input", "mean", "invstd"}, {{{F32, F32, F32}},
                                                       {{F16, F32, F32}},
                                                       {{BF16, F32, F32}, kOnly950},
                                                       {{F64, F64, F64}, kOnly950},
                                                       {{F64, F32, F32}, kOnly950}}),
               PublicFormat("input"), PublicFormat("mean"), PublicFormat("invstd"), Rank("input", 2, 8), Require("input", "C > 0"),
               ShapeIs("mean", "C"), ShapeIs("invstd", "C")});
  return {.contract = Contract(std::move(table)),
          .plan = [](Values values, PlanBuilder& plan) -> Status {
            enum { kInput, kEps, kMean, kInvstd };
            const Tensor& x = *values[kInput].tensor;
            if (x.empty()) {
              ANYACL_RETURN_IF_ERROR(FillOutput(plan, kMean, 0));
              return FillOutput(plan, kInvstd, kNaN);
            }
            const Channels channels(x, 1);
            const DType computed = norm::ComputeTypeOf(x.dtype);
            const Operand input = channels.View(plan.TensorOperand(kInput));
            const DType stored = StoredType(computed, {input});
            Dense dense(plan, values, computed);
            ANYACL_RETURN_IF_ERROR(dense.Read(kInput, input, stored));
            dense.Write(kMean);
            dense.Write(kInvstd);
            auto& params = plan.MakeParams<norm::RowNormParams>();
            params.shape = channels.shape();
            params.wide = computed == F64;
            params.stored = stored;
            params.eps = norm::Attribute(values[kEps].real, params.wide);
            dense.Bind(kInput, params.x);
            dense.BindOut(kMean, params.mean);
            dense.BindOut(kInvstd, params.rstd);
            ANYACL_RETURN_IF_ERROR(plan.ChooseKernel(params.scratch, "row_norm"));
            return dense.Finish();
          },
          .family = "norm"};
}

// ---- BatchNormElemt ----

Operator MakeBatchNormElemt(const Entry& entry) {
  Table table = TableOf(entry, "row_norm", "Normalises every channel with statistics that are given.",
                        {.optional = {"weight", "bias"}, .inputs = {"mean", "invstd"}});
  table.formulas = {"output = (input - mean) * invstd * weight + bias"};
  table.notes = {"eps has no effect: invstd contains it.", "Every tensor may have its own dtype."};
  table.sizes = {{"C", "input", 1}};
  Describe(&table, "input", "numbers; dim 1 is the channel");
  Describe(&table, "weight", "factor of each channel; null means ones");
  Describe(&table, "bias", "summand of each channel; null means zeros");
  Describe(&table, "mean", "mean of each channel");
  Describe(&table, "invstd", "reciprocal standard deviation of each channel");
  for (const char* arg : {"input", "mean", "invstd", "output"}) Add(&table, {NotNull(arg).Code(code::kInvalid)});
  Add(&table, {Supported(kTrained)});
  for (const char* arg : {"input", "weight", "bias", "mean", "invstd", "output"}) Add(&table, {DTypes(arg, Float3Wide())});
  Add(&table, {SameFormat({"input", "output"}), PublicFormat("input"), Rank("input", 2, 8), Rank("output", 2, 8),
               SameShape("output", "input"), Require("input", "C > 0"), ShapeIs("weight", "C"), ShapeIs("bias", "C"),
               ShapeIs("mean", "C"), ShapeIs("invstd", "C")});
  return {.contract = Contract(std::move(table)),
          .plan = [](Values values, PlanBuilder& plan) -> Status {
            enum { kInput, kWeight, kBias, kMean, kInvstd, kEps, kOutput };
            const Tensor& x = *values[kInput].tensor;
            if (x.empty()) return {};
            const Channels channels(x, 1);
            const DType computed = norm::ComputeTypeOf(x.dtype);
            const Operand input = channels.View(plan.TensorOperand(kInput)), output = channels.View(plan.TensorOperand(kOutput));
            const DType stored = StoredType(computed, {input, output});
            Dense dense(plan, values, computed);
            ANYACL_RETURN_IF_ERROR(dense.Read(kInput, input, stored));
            for (int arg : {kWeight, kBias, kMean, kInvstd}) ANYACL_RETURN_IF_ERROR(dense.Read(arg));
            dense.Write(kOutput, output, stored);
            auto& params = plan.MakeParams<norm::RowNormParams>();
            params.shape = channels.shape();
            params.wide = computed == F64;
            params.stored = stored;
            dense.Bind(kInput, params.x);
            dense.Bind(kWeight, params.gamma);
            dense.Bind(kBias, params.beta);
            dense.Bind(kMean, params.given_mean);
            dense.Bind(kInvstd, params.given_rstd);
            dense.BindOut(kOutput, params.y);
            ANYACL_RETURN_IF_ERROR(plan.ChooseKernel(params.scratch, "row_norm"));
            return dense.Finish();
          },
          .family = "norm"};
}

// ---- BatchNormGatherStatsWithCounts ----

Status PlanGatherStats(Values values, PlanBuilder& plan) {
  enum { kInput, kMean, kInvstd, kRunningMean, kRunningVar, kMomentum, kEps, kCounts, kMeanAll, kInvstdAll };
  const Tensor& mean = *values[kMean].tensor;
  if (mean.dims[1] == 0) return {};
  if (mean.dims[0] == 0) {
    ANYACL_RETURN_IF_ERROR(FillOutput(plan, kMeanAll, 0));
    return FillOutput(plan, kInvstdAll, kNaN);
  }
  DType computed = F32;
  for (int arg : {kInput, kMean, kInvstd, kRunningMean, kRunningVar, kCounts, kMeanAll, kInvstdAll}) {
    if (values[arg].given() && values[arg].tensor->dtype == F64) computed = F64;
  }
  Dense dense(plan, values, computed);
  for (int arg : {kMean, kInvstd, kCounts}) ANYACL_RETURN_IF_ERROR(dense.Read(arg));
  if (values[kRunningMean].given()) {
    for (int arg : {kRunningMean, kRunningVar}) {
      ANYACL_RETURN_IF_ERROR(dense.Read(arg));
      dense.Write(arg);
    }
  }
  dense.Write(kMeanAll);
  dense.Write(kInvstdAll);
  auto& params = plan.MakeParams<norm::ChannelStatisticsParams>();
  params.kind = norm::ChannelStatisticsParams::kRanks;
  params.wide = computed == F64;
  params.ranks = mean.dims[0];
  params.channels = mean.dims[1];
  params.momentum = norm::Attribute(values[kMomentum].real, params.wide);
  params.eps = norm::Attribute(values[kEps].real, params.wide);
  dense.Bind(kMean, params.first);
  dense.Bind(kInvstd, params.second);
  dense.Bind(kCounts, params.counts);
  dense.Bind(kRunningMean, params.running_mean);
  dense.Bind(kRunningVar, params.running_variance);
  dense.BindOut(kRunningMean, params.new_running_mean);
  dense.BindOut(kRunningVar, params.new_running_variance);
  dense.BindOut(kMeanAll, params.mean);
  dense.BindOut(kInvstdAll, params.rstd);
  ANYACL_RETURN_IF_ERROR(plan.ChooseKernel("channel_statistics"));
  return dense.Finish();
}

Operator MakeGatherStats(const Entry& entry) {
  Table table = TableOf(entry, "channel_statistics", "Joins the statistics of several ranks, weighted by their counts.",
                        {.in_out = {"runningMean", "runningVar"}, .optional = {"runningMean", "runningVar"}});
  table.formulas = {"n = sum of counts, meanAll = sum of mean[k] * counts[k] / n",
                    "var = sum of counts[k] * (1 / invstd[k]^2 - eps + (mean[k] - meanAll)^2) / n",
                    "invstdAll = 1 / sqrt(var + eps)",
                    "runningMean = (1 - momentum) * runningMean + momentum * meanAll",
                    "runningVar = (1 - momentum) * runningVar + momentum * var * n / (n - 1)"};
  table.notes = {"Running statistics are written only when runningMean is given.",
                 "Without ranks meanAll is 0, invstdAll NaN, and running statistics stay as they are."};
  table.sizes = {{"C", "input", 1}, {"K", "mean", 0}};
  Describe(&table, "input", "the input of this rank; only its dim 1 is looked at, the channels");
  Describe(&table, "mean", "mean of each rank and channel");
  Describe(&table, "invstd", "reciprocal standard deviation of each rank and channel");
  Describe(&table, "runningMean", "mean carried along");
  Describe(&table, "runningVar", "variance carried along");
  Describe(&table, "momentum", "weight of this batch in the running statistics");
  Describe(&table, "eps", "that invstd contains, and invstdAll will");
  Describe(&table, "counts", "numbers of a channel on each rank");
  AddNullRules(&table);
  Add(&table, {Supported(kTrained)});
  for (const char* arg : {"input", "mean", "invstd", "runningMean", "runningVar", "counts", "meanAll", "invstdAll"}) {
    Add(&table, {DTypes(arg, Float3Wide())});
  }
  for (const char* arg : {"input", "mean", "invstd", "counts"}) Add(&table, {PublicFormat(arg)});
  Add(&table, {Rank("input", 2, 8), ShapeIs("mean", "K,C"), ShapeIs("invstd", "K,C"), ShapeIs("runningMean", "C"),
               ShapeIs("runningVar", "C"), ShapeIs("counts", "K"), ShapeIs("meanAll", "C"), ShapeIs("invstdAll", "C")});
  return {.contract = Contract(std::move(table)), .plan = PlanGatherStats, .family = "norm"};
}

// ---- SyncBatchNormGatherStats ----

Status PlanSyncGatherStats(Values values, PlanBuilder& plan) {
  enum { kSum, kSquareSum, kCount, kMean, kVariance, kMomentum, kEps, kBatchMean, kBatchInvstd };
  const Tensor& sum = *values[kSum].tensor;
  if (sum.dims[1] == 0) return {};
  Dense dense(plan, values, F32);
  for (int arg : {kSum, kSquareSum, kMean, kVariance}) ANYACL_RETURN_IF_ERROR(dense.Read(arg));
  ANYACL_RETURN_IF_ERROR(dense.Read(kCount, DType::kI32));
  for (int arg : {kMean, kVariance, kBatchMean, kBatchInvstd}) dense.Write(arg);
  auto& params = plan.MakeParams<norm::ChannelStatisticsParams>();
  params.kind = norm::ChannelStatisticsParams::kSums;
  params.ranks = sum.dims[0];
  params.channels = sum.dims[1];
  params.momentum = values[kMomentum].real;
  params.eps = values[kEps].real;
  dense.Bind(kSum, params.first);
  dense.Bind(kSquareSum, params.second);
  dense.Bind(kCount, params.counts);
  dense.Bind(kMean, params.running_mean);
  dense.Bind(kVariance, params.running_variance);
  dense.BindOut(kMean, params.new_running_mean);
  dense.BindOut(kVariance, params.new_running_variance);
  dense.BindOut(kBatchMean, params.mean);
  dense.BindOut(kBatchInvstd, params.rstd);
  ANYACL_RETURN_IF_ERROR(plan.ChooseKernel("channel_statistics"));
  return dense.Finish();
}

Operator MakeSyncGatherStats(const Entry& entry) {
  const std::vector<TypeRow> two = {{{F32}}, {{F16}}, {{BF16}, kOnly950}};
  Table table = TableOf(entry, "channel_statistics", "Statistics of all ranks together, from their sums and sums of squares.",
                        {.in_out = {"mean", "variance"}});
  table.formulas = {"n = sum of sampleCount, batchMean = sum of totalSum / n",
                    "batchVar = max(0, sum of totalSquareSum / n - batchMean^2), batchInvstd = 1 / sqrt(batchVar + eps)",
                    "mean = (1 - momentum) * mean + momentum * batchMean",
                    "variance = (1 - momentum) * variance + momentum * batchVar * n / (n - 1)"};
  table.notes = {"The variance is a difference of two sums, as this interface has it: a mean far from 0 costs digits. It is "
                 "computed in DOUBLE."};
  table.sizes = {{"K", "totalSum", 0}, {"C", "totalSum", 1}};
  Describe(&table, "totalSum", "sum of each rank and channel");
  Describe(&table, "totalSquareSum", "sum of squares of each rank and channel");
  Describe(&table, "sampleCount", "numbers of a channel on each rank, cut to whole numbers");
  Describe(&table, "mean", "running mean");
  Describe(&table, "variance", "running variance");
  Describe(&table, "momentum", "weight of this batch in the running statistics");
  Describe(&table, "eps", "added to the variance");
  AddNullRules(&table);
  Add(&table, {Supported(kNewer), DTypes("totalSum", two), DTypes("totalSquareSum", two),
               DTypes("sampleCount", {{{F32}}, {{F16}}, {{DType::kI32}}, {{BF16}, kOnly950}}), DTypes("mean", two),
               DTypes("variance", two), DTypes("batchMean", two), DTypes("batchInvstd", two), SameDType("totalSquareSum", "totalSum"),
               SameDType("mean", "totalSum"), SameDType("variance", "totalSum"), SameDType("batchInvstd", "batchMean")});
  for (const char* arg : {"totalSum", "totalSquareSum", "sampleCount", "mean", "variance", "batchMean", "batchInvstd"}) {
    Add(&table, {PublicFormat(arg)});
  }
  Add(&table, {Rank("totalSum", 2, 2), SameShape("totalSquareSum", "totalSum"), ShapeIs("sampleCount", "K"), ShapeIs("mean", "C"),
               ShapeIs("variance", "C"), ShapeIs("batchMean", "C"), ShapeIs("batchInvstd", "C"), Require("totalSum", "K > 0")});
  return {.contract = Contract(std::move(table)), .plan = PlanSyncGatherStats, .family = "norm"};
}

// ---- BatchNormReduce ----

enum { kReduced, kSum, kSquareSum };

int ReducedAxis(const Tensor& x) { return x.format == Format::kNHWC ? 3 : 1; }

template <int kArg>
std::string ReducedVector(Values values, Product) {
  const Tensor& x = *values[kReduced].tensor;
  const int64_t channels = x.dims[ReducedAxis(x)];
  const Tensor& sum = *values[kArg].tensor;
  return sum.dims == Dims{channels} ? "" : fmt::format("must have shape [C] = [{}], got {}", channels, ToString(sum.dims));
}

Operator MakeBatchNormReduce(const Entry& entry) {
  Table table = TableOf(entry, "row_sums", "Sum and sum of squares of each channel.");
  table.formulas = {"sum = sum of x, squareSum = sum of x^2, over all dims but the channel"};
  table.notes = {"Sums grow in DOUBLE and are rounded once.", "The channel is dim 1 of a tensor tagged NCHW, dim 3 with NHWC.",
                 "When x, sum or squareSum is empty, both sums are cleared and nothing else is looked at."};
  Describe(&table, "x", "numbers to add up");
  AddNullRules(&table);
  const std::vector<TypeRow> single = {{{F32}}};
  Add(&table, {Supported(kNewer), AcceptIfEmpty({"x"}), AcceptIfEmpty({"sum"}), AcceptIfEmpty({"squareSum"}),
               DTypes("x", norm::Float3()), DTypes("sum", single), DTypes("squareSum", single),
               Formats("x", {Format::kNCHW, Format::kNHWC}), Rank("x", 4, 4),
               Custom("sum", "must have shape [C]", ReducedVector<kSum>), Custom("squareSum", "must have shape [C]", ReducedVector<kSquareSum>)});
  return {.contract = Contract(std::move(table)),
          .plan = [](Values values, PlanBuilder& plan) -> Status {
            const Tensor& x = *values[kReduced].tensor;
            if (x.empty() || values[kSum].tensor->empty() || values[kSquareSum].tensor->empty()) {
              ANYACL_RETURN_IF_ERROR(FillOutput(plan, kSum, 0));
              return FillOutput(plan, kSquareSum, 0);
            }
            const Channels channels(x, ReducedAxis(x));
            Dense dense(plan, values, F32);
            ANYACL_RETURN_IF_ERROR(dense.Read(kReduced, channels.View(plan.TensorOperand(kReduced))));
            dense.Write(kSum);
            dense.Write(kSquareSum);
            auto& params = plan.MakeParams<norm::RowSumsParams>();
            params.shape = channels.shape();
            dense.Bind(kReduced, params.x);
            dense.BindOut(kSum, params.sum);
            dense.BindOut(kSquareSum, params.second);
            ANYACL_RETURN_IF_ERROR(plan.ChooseKernel(params.scratch, "row_sums"));
            return dense.Finish();
          },
          .family = "norm"};
}

// ---- BatchNormReduceBackward ----

enum {
  kGradOut,
  kInput,
  kMean,
  kInvstd,
  kWeight,
  kInputG,
  kWeightG,
  kBiasG,
  kSumDy,
  kSumDyXmu,
  kGradWeight,
  kGradBias
};

template <int kArg>
std::string OnePerChannel(Values values, Product) {
  const Tensor& vector = *values[kArg].tensor;
  const int64_t channels = values[kInput].tensor->dims[1];
  if (vector.empty() || vector.numel() == channels) return "";
  return fmt::format("must have an element for each of {} channels, got {}", channels, ToString(vector.dims));
}

Status PlanReduceBackward(Values values, PlanBuilder& plan) {
  const auto wanted = [&](int arg) {
    return arg == kGradWeight ? values[kWeightG].flag : arg == kGradBias ? values[kBiasG].flag : values[kInputG].flag;
  };
  bool any = false, empty = false;
  for (int arg : {kSumDy, kSumDyXmu, kGradWeight, kGradBias}) any = any || wanted(arg);
  for (int arg : {kGradOut, kInput, kMean, kInvstd}) empty = empty || values[arg].tensor->empty();
  if (!any) return {};
  if (empty) {
    for (int arg : {kSumDy, kSumDyXmu, kGradWeight, kGradBias}) {
      if (wanted(arg)) ANYACL_RETURN_IF_ERROR(FillOutput(plan, arg, 0));
    }
    return {};
  }
  const Tensor& x = *values[kInput].tensor;
  const Channels channels(x, 1);
  const DType computed = norm::ComputeTypeOf(x.dtype);
  Dense dense(plan, values, computed);
  for (int arg : {kGradOut, kInput}) ANYACL_RETURN_IF_ERROR(dense.Read(arg, channels.View(plan.TensorOperand(arg))));
  for (int arg : {kMean, kInvstd}) ANYACL_RETURN_IF_ERROR(dense.Read(arg));
  for (int arg : {kSumDy, kSumDyXmu, kGradWeight, kGradBias}) {
    if (wanted(arg)) dense.Write(arg);
  }
  auto& params = plan.MakeParams<norm::RowSumsParams>();
  params.shape = channels.shape();
  params.wide = computed == F64;
  dense.Bind(kGradOut, params.dy);
  dense.Bind(kInput, params.x);
  dense.Bind(kMean, params.mean);
  dense.Bind(kInvstd, params.rstd);
  dense.BindOut(kSumDy, params.sum);
  dense.BindOut(kSumDyXmu, params.second);
  dense.BindOut(kGradWeight, params.scaled);
  dense.BindOut(kGradBias, params.sum_again);
  ANYACL_RETURN_IF_ERROR(plan.ChooseKernel(params.scratch, "row_sums"));
  return dense.Finish();
}

Operator MakeReduceBackward(const Entry& entry) {
  Table table = TableOf(entry, "row_sums", "The sums that the gradient of a synchronised batch normalisation needs of one rank.",
                        {.optional = {"weight", "sumDy", "sumDyXmu", "gradWeight", "gradBias"}});
  table.formulas = {"sumDy = sum of gradOut, sumDyXmu = sum of gradOut * (input - mean), over each channel",
                    "gradWeight = sumDyXmu * invstd, gradBias = sumDy"};
  table.notes = {"weight is checked and not used.",
                 "When gradOut, input, mean or invstd is empty, the results that are asked for are cleared."};
  table.sizes = {{"C", "input", 1}};
  Describe(&table, "gradOut", "gradient of the forward result");
  Describe(&table, "input", "forward input; dim 1 is the channel");
  Describe(&table, "mean", "mean of each channel");
  Describe(&table, "invstd", "reciprocal standard deviation of each channel");
  Describe(&table, "inputG", "sumDy and sumDyXmu are wanted");
  Describe(&table, "weightG", "gradWeight is wanted");
  Describe(&table, "biasG", "gradBias is wanted");
  AddNullRules(&table);
  const std::pair<const char*, const char*> results[] = {
      {"sumDy", "inputG"}, {"sumDyXmu", "inputG"}, {"gradWeight", "weightG"}, {"gradBias", "biasG"}};
  for (const auto& [arg, flag] : results) Add(&table, {NotNull(arg).If(flag)});
  Add(&table, {Supported(kTrained)});
  for (const char* arg : {"gradOut", "input", "mean", "invstd", "weight"}) Add(&table, {DTypes(arg, Float3Wide())});
  Add(&table, {SameDType("gradOut", "input")});
  for (const auto& [arg, flag] : results) Add(&table, {DTypes(arg, Float3Wide()).If(flag)});
  Add(&table, {SameFormat({"gradOut", "input"}), PublicFormat("gradOut"), PublicFormat("input"), Rank("gradOut", 2, 8),
               Rank("input", 2, 8), Require("input", "C > 0"), SameShape("gradOut", "input"),
               Custom("mean", "must have an element for each channel", OnePerChannel<kMean>),
               Custom("invstd", "must have an element for each channel", OnePerChannel<kInvstd>)});
  for (const auto& [arg, flag] : results) Add(&table, {ShapeIs(arg, "C").If(flag)});
  return {.contract = Contract(std::move(table)), .plan = PlanReduceBackward, .family = "norm"};
}

}  // namespace

void DeclareSyncBatchNorm(Declarations& declarations) {
  declarations.Add("aclnnBatchNormStats", MakeBatchNormStats);
  declarations.Add("aclnnBatchNormElemt", MakeBatchNormElemt);
  declarations.Add("aclnnBatchNormGatherStatsWithCounts", MakeGatherStats);
  declarations.Add("aclnnSyncBatchNormGatherStats", MakeSyncGatherStats);
  declarations.Add("aclnnBatchNormReduce", MakeBatchNormReduce);
  declarations.Add("aclnnBatchNormReduceBackward", MakeReduceBackward);
}

}  // namespace anyacl
