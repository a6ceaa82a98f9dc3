// SPDX-License-Identifier: Apache-2.0
// Copyright The AnyACL Authors
//
// BatchNorm and its gradient.
#include <fmt/format.h>

#include <limits>

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
using norm::Float3Beside;
using norm::Float3Wide;
using norm::SameOrFloat;

// Only the newest product looks at a tag, and only where the document gives the tag a meaning.
int ChannelAxis(const Tensor& input, Product product) {
  const bool last = (input.rank() == 4 && input.format == Format::kNHWC) || (input.rank() == 5 && input.format == Format::kNDHWC);
  return product == Product::kAscend950 && last ? input.rank() - 1 : 1;
}

std::string WrongTag(const Tensor& t, Product product) {
  if (t.rank() != 5 || t.format == Format::kNCDHW || (product == Product::kAscend950 && t.format == Format::kNDHWC)) return "";
  return fmt::format("must have format NCDHW{} with 5 dims, got {}", product == Product::kAscend950 ? " or NDHWC" : "",
                     Name(t.format));
}

std::string WrongLength(const Tensor& input, const Tensor& vector, Product product) {
  const int64_t channels = input.dims[ChannelAxis(input, product)];
  if (vector.dims == Dims{channels}) return "";
  return fmt::format("must have shape [C] = [{}], got {}", channels, ToString(vector.dims));
}

constexpr char kVector[] = "must have shape [C]";

// ---- forward ----

enum { kInput, kWeight, kBias, kRunningMean, kRunningVar, kTraining, kMomentum, kEps, kOutput, kSaveMean, kSaveInvstd };

std::string InputTag(Values values, Product product) { return WrongTag(*values[kInput].tensor, product); }

template <int kArg>
std::string Vector(Values values, Product product) {
  return values[kArg].given() ? WrongLength(*values[kInput].tensor, *values[kArg].tensor, product) : "";
}

Status PlanBatchNorm(Values values, PlanBuilder& plan) {
  const Tensor& x = *values[kInput].tensor;
  if (x.empty()) {
    if (values[kSaveMean].given()) ANYACL_RETURN_IF_ERROR(FillOutput(plan, kSaveMean, 0));
    if (values[kSaveInvstd].given()) {
      ANYACL_RETURN_IF_ERROR(FillOutput(plan, kSaveInvstd, std::numeric_limits<double>::quiet_NaN()));
    }
    return {};
  }
  const bool newest = CurrentProduct() == Product::kAscend950;
  const bool training = values[kTraining].flag;
  const Channels channels(x, ChannelAxis(x, CurrentProduct()));
  const DType computed = norm::ComputeTypeOf(x.dtype);
  const bool wide = computed == DType::kF64;
  const Operand input = channels.View(plan.TensorOperand(kInput)), output = channels.View(plan.TensorOperand(kOutput));
  const DType stored = StoredType(computed, {input, output});
  Dense dense(plan, values, computed);
  ANYACL_RETURN_IF_ERROR(dense.Read(kInput, input, stored));
  for (int arg : {kWeight, kBias, kRunningMean, kRunningVar}) ANYACL_RETURN_IF_ERROR(dense.Read(arg));
  dense.Write(kOutput, output, stored);
  Operand moments;
  const bool updates = training && (values[kRunningMean].given() || values[kRunningVar].given());
  if (training) {
    dense.Write(kSaveMean);
    dense.Write(kSaveInvstd);
    if (updates) {
      dense.Write(kRunningMean);
      dense.Write(kRunningVar);
      moments = plan.ScratchOperand("moments", DType::kF64, {channels.channels(), 2});
    }
  } else {
    for (int arg : {kRunningMean, kRunningVar}) {
      if (dense.Reads(arg)) continue;
      Operand constant;
      ANYACL_RETURN_IF_ERROR(norm::Constant(plan, computed, {channels.channels()}, arg == kRunningVar, &constant));
      dense.Use(arg, constant);
    }
  }
  auto& params = plan.MakeParams<norm::RowNormParams>();
  params.shape = channels.shape();
  params.wide = wide;
  params.stored = stored;
  params.eps = norm::Attribute(values[kEps].real, wide);
  dense.Bind(kInput, params.x);
  dense.Bind(kWeight, params.gamma);
  dense.Bind(kBias, params.beta);
  dense.BindOut(kOutput, params.y);
  if (training) {
    params.zero_for_zero = true;
    dense.BindOut(kSaveMean, params.mean);
    dense.BindOut(kSaveInvstd, newest ? params.rstd : params.variance);
    if (updates) plan.Bind(moments, params.moments);
  } else {
    params.given_variance = true;
    dense.Bind(kRunningMean, params.given_mean);
    dense.Bind(kRunningVar, params.given_rstd);
  }
  ANYACL_RETURN_IF_ERROR(plan.ChooseKernel(params.scratch, "row_norm"));
  if (updates) {
    auto& update = plan.MakeParams<norm::ChannelStatisticsParams>();
    update.kind = norm::ChannelStatisticsParams::kMoments;
    update.wide = wide;
    update.one_is_none = newest;
    update.channels = channels.channels();
    update.count = channels.count();
    update.momentum = norm::Attribute(values[kMomentum].real, wide);
    plan.Bind(moments, update.first);
    dense.Bind(kRunningMean, update.running_mean);
    dense.Bind(kRunningVar, update.running_variance);
    dense.BindOut(kRunningMean, update.new_running_mean);
    dense.BindOut(kRunningVar, update.new_running_variance);
    ANYACL_RETURN_IF_ERROR(plan.ChooseKernel("channel_statistics"));
  }
  return dense.Finish();
}

Operator MakeBatchNorm(const Entry& entry) {
  Table table = TableOf(entry, "row_norm", "Batch normalisation: every channel over all samples, or with running statistics.",
                        {.in_out = {"runningMean", "runningVar"},
                         .optional = {"weight", "bias", "runningMean", "runningVar", "saveMean", "saveInvstd"}});
  table.formulas = {"training: mean, var = of each channel; saveMean = mean, saveInvstd = 1 / sqrt(var + eps)",
                    "          runningMean = (1 - momentum) * runningMean + momentum * mean",
                    "          runningVar = (1 - momentum) * runningVar + momentum * var * n / (n - 1)",
                    "else:     mean = runningMean, var = runningVar",
                    "output = (input - mean) / sqrt(var + eps) * weight + bias"};
  table.notes = {"saveInvstd is the reciprocal standard deviation on Ascend 950, the variance on the other products.",
                 "The channel is dim 1; on Ascend 950 the last dim of a tensor tagged NHWC (4 dims) or NDHWC (5 dims).",
                 "In training, a channel of equal numbers with eps 0 gives saveInvstd 0 and output bias.",
                 "An empty input clears saveMean and sets saveInvstd to NaN; nothing else is looked at."};
  Describe(&table, "input", "numbers to normalise");
  Describe(&table, "weight", "factor of each channel; null means ones");
  Describe(&table, "bias", "summand of each channel; null means zeros");
  Describe(&table, "runningMean", "mean carried along; null means zeros, and is not written");
  Describe(&table, "runningVar", "variance carried along; null means ones, and is not written");
  Describe(&table, "training", "normalise with the statistics of this batch, and carry them along");
  Describe(&table, "momentum", "weight of this batch in the running statistics");
  Describe(&table, "eps", "added to the variance");
  Describe(&table, "saveMean", "mean of each channel; only in training");
  Describe(&table, "saveInvstd", "reciprocal standard deviation of each channel; only in training");
  Add(&table, {NotNull("input"), NotNull("output"), NotNull("saveMean").If("training"), NotNull("saveInvstd").If("training"),
               Supported(Of({Product::kAscend950, Product::kA3, Product::kA2, Product::kInference, Product::kTraining})),
               AcceptIfEmpty({"input"}), DTypes("input", Float3Wide()), DTypes("output", Float3Wide()), SameDType("output", "input")});
  for (const char* arg : {"saveMean", "saveInvstd"}) {
    Add(&table, {DTypes(arg, Float3Wide()).If("training"), Float3Beside(arg, "input").If("training")});
  }
  for (const char* arg : {"weight", "bias", "runningMean", "runningVar"}) {
    Add(&table, {DTypes(arg, Float3Wide()), Float3Beside(arg, "input")});
  }
  Add(&table, {SameFormat({"input", "output"}), Custom("input", "must have format NCDHW (Ascend 950: or NDHWC) with 5 dims", InputTag),
               PublicFormat("input"), Rank("input", 2, 8), SameShape("output", "input"), Custom("weight", kVector, Vector<kWeight>),
               Custom("bias", kVector, Vector<kBias>), Custom("runningMean", kVector, Vector<kRunningMean>),
               Custom("runningVar", kVector, Vector<kRunningVar>), Custom("saveMean", kVector, Vector<kSaveMean>).If("training"),
               Custom("saveInvstd", kVector, Vector<kSaveInvstd>).If("training")});
  return {.contract = Contract(std::move(table)), .plan = PlanBatchNorm, .family = "norm"};
}

// ---- gradient ----

// The fast form has `version` behind the mask; results follow it.
struct BackwardArgs {
  enum { kGradOut, kX, kGamma, kMean, kVar, kSavedMean, kSavedInvstd, kInTraining, kEpsilon, kMask, kVersionOrGradInput };
};
constexpr int GradInputOf(size_t args) { return args == 14 ? BackwardArgs::kMask + 2 : BackwardArgs::kMask + 1; }

template <int kArg>
std::string BackwardVector(Values values, Product product) {
  if (!values[kArg].given()) return "";
  const Tensor& vector = *values[kArg].tensor;
  const bool saved = kArg == BackwardArgs::kSavedMean || kArg == BackwardArgs::kSavedInvstd;
  if (saved && product == Product::kAscend950 && !values[BackwardArgs::kInTraining].flag && vector.dims == Dims{0}) return "";
  return WrongLength(*values[BackwardArgs::kX].tensor, vector, product);
}
template <int kResult>
std::string ResultVector(Values values, Product product) {
  const Value& value = values[GradInputOf(values.size()) + kResult];
  return value.given() ? WrongLength(*values[BackwardArgs::kX].tensor, *value.tensor, product) : "";
}
std::string BackwardTag(Values values, Product product) { return WrongTag(*values[BackwardArgs::kX].tensor, product); }

Status PlanBatchNormBackward(Values values, PlanBuilder& plan) {
  using A = BackwardArgs;
  const Tensor& x = *values[A::kX].tensor;
  const int results = GradInputOf(values.size());
  const bool empty = x.empty() || values[A::kGradOut].tensor->empty();
  // An empty call is accepted before the mask is looked at.
  const bool masked = values[A::kMask].given() && values[A::kMask].bools->values.size() == 3;
  const auto wanted = [&](int i) {
    return masked && values[A::kMask].bools->values[i] && values[results + i].given();
  };
  if (empty) {
    for (int i : {1, 2}) {
      if (wanted(i)) ANYACL_RETURN_IF_ERROR(FillOutput(plan, results + i, 0));
    }
    return {};
  }
  if (!wanted(0) && !wanted(1) && !wanted(2)) return {};
  const bool fast = values.size() == 14;
  const Channels channels(x, fast ? 1 : ChannelAxis(x, CurrentProduct()));
  const bool training = values[A::kInTraining].flag;
  const DType computed = norm::ComputeTypeOf(x.dtype);
  const int mean = training ? A::kSavedMean : A::kMean;
  const int deviation = training ? A::kSavedInvstd : A::kVar;
  const auto view = [&](int arg) { return channels.View(plan.TensorOperand(arg)); };
  const Operand dy = view(A::kGradOut), input = view(A::kX), dx = wanted(0) ? view(results) : input;
  const DType stored = StoredType(computed, {dy, input, dx});
  Dense dense(plan, values, computed);
  ANYACL_RETURN_IF_ERROR(dense.Read(A::kGradOut, dy, stored));
  ANYACL_RETURN_IF_ERROR(dense.Read(A::kX, input, stored));
  for (int arg : {int{A::kGamma}, mean, deviation}) ANYACL_RETURN_IF_ERROR(dense.Read(arg));
  for (int arg : {mean, deviation}) {
    if (dense.Reads(arg)) continue;
    Operand constant;
    ANYACL_RETURN_IF_ERROR(norm::Constant(plan, computed, {channels.channels()}, arg == deviation, &constant));
    dense.Use(arg, constant);
  }
  if (wanted(0)) dense.Write(results, dx, stored);
  for (int i : {1, 2}) {
    if (wanted(i)) dense.Write(results + i);
  }
  auto& params = plan.MakeParams<norm::RowNormBackwardParams>();
  params.shape = channels.shape();
  params.wide = computed == DType::kF64;
  params.stored = stored;
  params.constants = !training;
  params.rstd_is_variance = !training || CurrentProduct() != Product::kAscend950;
  params.eps = norm::Attribute(values[A::kEpsilon].real, params.wide);
  dense.Bind(A::kGradOut, params.dy);
  dense.Bind(A::kX, params.x);
  dense.Bind(A::kGamma, params.gamma);
  dense.Bind(mean, params.mean);
  dense.Bind(deviation, params.rstd);
  dense.BindOut(results, params.dx);
  dense.BindOut(results + 1, params.dgamma);
  dense.BindOut(results + 2, params.dbeta);
  ANYACL_RETURN_IF_ERROR(plan.ChooseKernel(params.scratch, "row_norm_backward"));
  return dense.Finish();
}

Operator MakeBatchNormBackward(const Entry& entry) {
  const bool fast = std::string_view(entry.op) == "aclnnFastBatchNormBackward";
  const Products products = fast ? Of({Product::kAscend950, Product::kA2})
                                 : Of({Product::kAscend950, Product::kA3, Product::kA2, Product::kTraining});
  Table table = TableOf(entry, "row_norm_backward",
                        fast ? "Gradients of batch normalisation; the channel is always dim 1."
                             : "Gradients of batch normalisation: input, weight and bias.",
                        {.optional = {"weight", "runningMean", "runningVar", "saveMean", "saveInvstd", "gradInput", "gradWeight",
                                      "gradBias"}});
  table.formulas = {"training: s = saveInvstd, u = (input - saveMean) * s",
                    "          gradInput = weight * s * (gradOut - avg(gradOut) - u * avg(gradOut * u))",
                    "else:     s = 1 / sqrt(runningVar + eps), u = (input - runningMean) * s; gradInput = gradOut * weight * s",
                    "gradWeight = sum of gradOut * u, gradBias = sum of gradOut, over each channel"};
  table.notes = {"On the products before Ascend 950 saveInvstd is the variance, as their forward gives it.",
                 "An empty input clears the gradWeight and gradBias that are asked for; nothing else is looked at."};
  Describe(&table, "gradOut", "gradient of the forward result");
  Describe(&table, "input", "forward input");
  Describe(&table, "weight", "factor of each channel; null means ones");
  Describe(&table, "runningMean", "mean that was used without training; null means zeros");
  Describe(&table, "runningVar", "variance that was used without training; null means ones");
  Describe(&table, "saveMean", "mean of each channel; null means zeros");
  Describe(&table, "saveInvstd", "reciprocal standard deviation of each channel; null means ones");
  Describe(&table, "outputMask", "which of gradInput, gradWeight, gradBias are wanted");
  if (fast) Describe(&table, "version", "of the algorithm in the original; not looked at");
  Add(&table, {NotNull("gradOut"), NotNull("input"), Supported(products), AcceptIfEmpty({"gradOut"}), AcceptIfEmpty({"input"}),
               NotNull("outputMask"), Length("outputMask", 3), NotNull("gradInput").If("outputMask", 0),
               NotNull("gradWeight").If("outputMask", 1), NotNull("gradBias").If("outputMask", 2), DTypes("gradOut", Float3Wide()),
               DTypes("input", Float3Wide()), SameDType("gradOut", "input")});
  Add(&table, {DTypes("gradInput", Float3Wide()).If("outputMask", 0), DTypes("gradWeight", Float3Wide()).If("outputMask", 1),
               DTypes("gradBias", Float3Wide()).If("outputMask", 2)});
  for (const char* arg : {"weight", "runningMean", "runningVar", "saveMean", "saveInvstd"}) {
    Add(&table, {DTypes(arg, Float3Wide()), norm::SameOrFloatOnNewest(arg, "gradOut")});
  }
  Add(&table, {norm::SameOnNewest("runningMean", "runningVar"), norm::SameOnNewest("saveMean", "saveInvstd"),
               norm::SameOnNewest("gradInput", "gradOut"), norm::SameOrFloatOnNewest("gradWeight", "weight"),
               norm::SameOrFloatOnNewest("gradBias", "weight"), norm::SameOnNewest("gradWeight", "gradBias")});
  Add(&table, {SameFormat({"gradOut", "input"}), SameFormat({"gradInput", "input"}).If("outputMask", 0),
               Custom("input", "must have format NCDHW (Ascend 950: or NDHWC) with 5 dims", BackwardTag), PublicFormat("input"),
               Rank("input", 2, 8), SameShape("gradOut", "input"), SameShape("gradInput", "input").If("outputMask", 0),
               Custom("weight", kVector, BackwardVector<BackwardArgs::kGamma>),
               Custom("runningMean", kVector, BackwardVector<BackwardArgs::kMean>),
               Custom("runningVar", kVector, BackwardVector<BackwardArgs::kVar>),
               Custom("saveMean", kVector, BackwardVector<BackwardArgs::kSavedMean>),
               Custom("saveInvstd", kVector, BackwardVector<BackwardArgs::kSavedInvstd>),
               Custom("gradWeight", kVector, ResultVector<1>).If("outputMask", 1),
               Custom("gradBias", kVector, ResultVector<2>).If("outputMask", 2)});
  return {.contract = Contract(std::move(table)), .plan = PlanBatchNormBackward, .family = "norm"};
}

}  // namespace

void DeclareBatchNorm(Declarations& declarations) {
  declarations.Add("aclnnBatchNorm", MakeBatchNorm);
  declarations.Add("aclnnBatchNormBackward", MakeBatchNormBackward);
  declarations.Add("aclnnFastBatchNormBackward", MakeBatchNormBackward);
}

}  // namespace anyacl
