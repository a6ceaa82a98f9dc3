// SPDX-License-Identifier: Apache-2.0
// Copyright The AnyACL Authors
//
// Activations and their gradients as rows of the pointwise engine; EluBackward, whose kernel was tuned by itself, apart.
#include <cmath>
#include <cstring>

#include "core/codes.h"
#include "core/promotion.h"
#include "ops/pointwise/formulas.h"
#include "ops/pointwise/tables.h"

namespace anyacl {

Operator MakeEluBackward(const Entry& entry);
void DeclarePrelu(Declarations& declarations);
void DeclareRRelu(Declarations& declarations);

namespace pointwise {
namespace {

using namespace contract;
using types::kFloat3;
using types::kInt5Bool;

constexpr Products kNoInference = Of({Product::kAscend950, Product::kA3, Product::kA2, Product::kTraining});
constexpr Products kFive = Of({Product::kAscend950, Product::kA3, Product::kA2, Product::kTraining, Product::kInference});
constexpr Types kUsual = {kFloats, kFloat3};  // DOUBLE on the newest product
constexpr DTypeSet kWords = {DType::kI8, DType::kU8, DType::kI32, DType::kI64};
constexpr DTypeSet kI16 = {DType::kI16};

void Add(Declarations* d, Row row) {
  row.family = "activation";
  row.round_result = true;
  Declare(d, std::move(row));
}

// --- rules about values --------------------------------------------------------------------------

template <int kArg>
std::string CheckNotNegative(Values values, Product) {
  const double value = values[kArg].scalar->AsDouble();
  return value < 0 ? "must not be negative, got " + std::to_string(value) : "";
}

// The threshold is compared as FLOAT (DOUBLE beside DOUBLE); one that FLOAT can hardly tell from 0 is 0.
double ThresholdOf(Values values) {
  const Scalar& given = *values[2].scalar;
  const double value = values[1].tensor->dtype == DType::kF64 ? given.AsDouble() : given.AsFloat();
  return std::fabs(value) < 0x1p-23 ? 0 : value;
}

std::string CheckZeroThreshold(Values values, Product) {
  const double threshold = ThresholdOf(values);
  if (values[0].tensor->dtype != DType::kI64 || threshold == 0) return "";
  return "must not be INT64 with a threshold other than 0, got " + std::to_string(threshold);
}

std::string CheckAlpha(Values values, Product) {
  const float alpha = values[1].scalar->AsFloat();
  return alpha == 0 || std::isnan(alpha) ? "must not be 0 or NaN, got " + std::to_string(alpha) : "";
}

std::string CheckSelfIsResult(Values values, Product) {
  const double slope = values[2].scalar->AsDouble();
  return values[3].flag && slope < 0 ? "must not be negative when selfIsResult is true, got " + std::to_string(slope) : "";
}

// The result has exactly the dtype that the first two tensors are computed in.
template <int kResult>
std::string CheckPromoted(Values values, Product) {
  const DType want = Promote(values[0].tensor->dtype, values[1].tensor->dtype), got = values[kResult].tensor->dtype;
  return want == got ? "" : "must be " + Name(want) + ", got " + Name(got);
}

template <int kResult>
Rule IsPromoted(const Form& form) {
  return Custom(form.out, "must have the dtype that the two tensors are computed in", CheckPromoted<kResult>);
}

std::string CheckApproximate(Values values, Product) {
  const std::string text = values[2].text;
  return text == "none" || text == "tanh" ? "" : "must be none or tanh, got " + text;
}

// --- plans ---------------------------------------------------------------------------------------

Status RunGeluV2(PassCall& call) {
  if (call.Arg("approximate").integer == 1) call.formula = Formula::kGeluTanh;
  return call.Run();
}

Status RunGeluBackwardV2(PassCall& call) {
  if (std::strcmp(call.Arg("approximate").text, "tanh") == 0) call.formula = Formula::kGeluTanhBackward;
  return call.Run();
}

Status RunHardshrink(PassCall& call) {
  const double lambda = call.scalars[0].value.AsDouble();
  if (lambda < 0) call.SetScalar(0, Scalar::OfInt(0));
  return call.Run();
}

// An absent beta is 1.
Status RunSwish(PassCall& call) {
  const Value& beta = call.Arg("betaOptional");
  call.SetScalar(0, beta.given() ? *beta.scalar : Scalar::OfInt(1));
  return call.Run();
}

// Integers wrap before their sign is looked at.
Status RunAddRelu(PassCall& call) {
  if (IsInteger(call.computed)) {
    call.SetScalar(1, Scalar::OfInt(64 - static_cast<int64_t>(8 * SizeOf(call.computed))), DType::kI64);
    call.SetScalar(2, Scalar::OfInt(call.computed != DType::kU8), DType::kI64);
  }
  return call.Run();
}

// Whole numbers are up to a threshold where they are up to its floor.
Status RunThresholdBackward(PassCall& call) {
  const double threshold = ThresholdOf(call.values);
  if (!IsInteger(call.computed)) {
    call.SetScalar(0, Scalar::Of(DType::kF64, threshold));
  } else {
    const bool compares = threshold >= -0x1p62;  // not NaN, either
    const int64_t whole = compares ? static_cast<int64_t>(std::floor(std::fmin(threshold, 0x1p62))) : INT64_MIN;
    call.SetScalar(0, Scalar::OfInt(whole), DType::kI64);
  }
  return call.Run();
}

Status RunSeluBackward(PassCall& call) {
  if (IsInteger(call.values[0].tensor->dtype)) call.formula = Formula::kSeluBackwardRounded;
  return call.Run();
}

// Equal dtypes are kept, others meet in FLOAT; DOUBLE stays where both have it.
Status RunSoftplusBackward(PassCall& call) {
  const DType g = call.values[0].tensor->dtype, x = call.values[1].tensor->dtype;
  call.computed = g == x && IsFloating(g) ? g : DType::kF32;
  return call.Run();
}

// --- rows ----------------------------------------------------------------------------------------

void DeclareForward(Declarations* d) {
  using enum Result;
  Add(d, {.name = "Relu", .formula = Formula::kRelu, .summary = "Negative numbers become 0.", .texts = {"out = max(self, 0)"},
          .types = {kFloats | kWords | kI16, kFloat3 | kWords}, .result = kSame, .products = kNoInference});
  Add(d, {.name = "LeakyRelu", .formula = Formula::kLeakyRelu, .summary = "Negative numbers are multiplied by a slope.",
          .texts = {"out = self > 0 ? self : self * negativeSlope"}, .types = kFloats, .scalars = {"negativeSlope"},
          .real_scalars = true, .keep_scalars = true, .products = kNoInference});
  Add(d, {.name = "AddRelu", .formula = Formula::kAddRelu, .summary = "The positive part of a sum.",
          .texts = {"out = max(self + alpha * other, 0)"}, .types = kFloat3 | kWords | kI16, .scalars = {"alpha"},
          .products = kNoInference, .plan = RunAddRelu});
  Add(d, {.name = "Elu", .formula = Formula::kElu, .summary = "Exponential linear unit.",
          .texts = {"out = scale * (self > 0 ? self : alpha * (e^(inputScale * self) - 1))"}, .types = kFloats,
          .scalars = {"alpha", "scale", "inputScale"}, .real_scalars = true, .keep_scalars = true, .products = kFive});
  Add(d, {.name = "Selu", .formula = Formula::kSelu, .summary = "Scaled exponential linear unit with the usual constants.",
          .texts = {"out = 1.0507 * (self > 0 ? self : 1.6733 * (e^self - 1))"},
          .types = kFloat3 | DTypeSet{DType::kI32, DType::kI8}, .whole = DType::kF32, .result = kSame, .any_rank = true,
          .any_in_place = true, .products = kNoInference});
  Add(d, {.name = "Celu", .formula = Formula::kCelu, .summary = "Continuous exponential linear unit.",
          .texts = {"out = max(self, 0) + min(alpha * (e^(self / alpha) - 1), 0)"}, .types = kUsual, .scalars = {"alpha"},
          .real_scalars = true, .keep_scalars = true, .products = kNoInference, .rules = [](const Form&) -> std::vector<Rule> {
            return {Custom("alpha", "must not be 0 or NaN", CheckAlpha)};
          }});
  Add(d, {.name = "Gelu", .formula = Formula::kGeluTanh, .summary = "Gaussian error linear unit by its tanh form.",
          .texts = {"out = self / 2 * (1 + tanh(sqrt(2 / pi) * (self + 0.044715 * self^3)))"}, .types = kFloat3,
          .result = kSame, .formats = Formats::kPublic, .products = kFive});
  Add(d, {.name = "GeluV2", .formula = Formula::kGeluErf,
          .summary = "Gaussian error linear unit: by its tanh form when approximate is 1, else exactly.",
          .texts = {"y = x / 2 * (1 + erf(x / sqrt(2)))"}, .types = kUsual, .result = kSame, .products = kFive, .plan = RunGeluV2});
  Add(d, {.name = "FastGelu", .formula = Formula::kFastGelu, .summary = "Gaussian error linear unit by a sigmoid.",
          .texts = {"out = self / (1 + e^(-1.702 self))"}, .types = kFloat3, .result = kSame, .formats = Formats::kSame,
          .products = kNewer});
  Add(d, {.name = "Silu", .formula = Formula::kSilu, .summary = "A number times its sigmoid.", .texts = {"out = self / (1 + e^-self)"},
          .types = {kFloats | types::kComplex, kFloat3}, .result = kSame, .any_rank = true, .products = kFive});
  Add(d, {.name = "Swish", .formula = Formula::kSwish, .summary = "A number times the sigmoid of its multiple; beta is 1 when absent.",
          .texts = {"out = self / (1 + e^(-beta self))"}, .types = kFloat3, .scalars = {"betaOptional"},
          .optional = {"betaOptional"}, .result = kSame, .real_scalars = true, .keep_scalars = true, .products = kFive,
          .plan = RunSwish});
  Add(d, {.name = "Sigmoid", .formula = Formula::kSigmoid, .summary = "Logistic function; integers are taken in the dtype of the result.",
          .texts = {"out = 1 / (1 + e^-self)"}, .types = kNumbers, .whole_as_result = true, .result = kListed,
          .results = kFloats | types::kComplex, .products = kFive});
  Add(d, {.name = "LogSigmoid", .formula = Formula::kLogSigmoid, .summary = "Logarithm of the logistic function.",
          .texts = {"out = min(self, 0) - ln(1 + e^-|self|)"}, .types = kUsual, .result = kSame, .any_rank = true,
          .products = kNoInference});
  Add(d, {.name = "LogSigmoidForward", .formula = Formula::kLogSigmoid,
          .summary = "Logarithm of the logistic function; buffer is not used and may be null.",
          .texts = {"out = min(self, 0) - ln(1 + e^-|self|)"}, .types = kUsual, .optional = {"buffer"}, .result = kSame,
          .any_rank = true, .written = "out", .ignored = {"buffer"}, .products = kFive});
  Add(d, {.name = "Hardsigmoid", .formula = Formula::kHardsigmoid, .summary = "Logistic function as three straight lines.",
          .texts = {"out = min(max(self / 6 + 1 / 2, 0), 1)"}, .types = {kFloats | DTypeSet{DType::kI32}, kFloat3 | DTypeSet{DType::kI32}},
          .whole = DType::kF32, .result = kSame, .formats = Formats::kSame, .any_in_place = true, .products = kNoInference});
  Add(d, {.name = "Hardswish", .formula = Formula::kHardswish, .summary = "A number times its hard sigmoid.",
          .texts = {"out = self * min(max(self + 3, 0), 6) / 6"}, .types = kUsual, .result = kListed, .results = kUsual,
          .any_rank = true, .products = kNoInference});
  Add(d, {.name = "Hardshrink", .formula = Formula::kHardshrink, .summary = "Numbers near 0 become 0.",
          .texts = {"out = |self| <= lambd ? 0 : self"}, .types = kUsual, .scalars = {"lambd"}, .result = kListed,
          .results = kUsual, .real_scalars = true, .keep_scalars = true, .products = kFive, .plan = RunHardshrink});
  Add(d, {.name = "Softshrink", .formula = Formula::kSoftshrink, .summary = "Numbers move towards 0.",
          .texts = {"out = self > lambd ? self - lambd : self < -lambd ? self + lambd : 0"}, .types = kUsual, .scalars = {"lambd"},
          .result = kListed, .results = kUsual, .real_scalars = true, .keep_scalars = true, .products = kFive,
          .rules = [](const Form&) -> std::vector<Rule> {
            return {Custom("lambd", "must not be negative", CheckNotNegative<1>)};
          }});
  Add(d, {.name = "Shrink", .formula = Formula::kShrink, .summary = "Numbers move towards 0 by a bias, those near it become 0.",
          .texts = {"out = self > lambd ? self - bias : self < -lambd ? self + bias : 0"},
          .types = DTypeSet{DType::kF32, DType::kF16}, .scalars = {"lambd", "bias"}, .result = kListed,
          .results = DTypeSet{DType::kF32, DType::kF16}, .formats = Formats::kSame, .any_rank = true, .real_scalars = true,
          .keep_scalars = true, .products = Of({Product::kAscend950, Product::kA3, Product::kA2, Product::kInference}),
          .rules = [](const Form&) -> std::vector<Rule> {
            return {Custom("lambd", "must not be negative", CheckNotNegative<1>)};
          }});
  Add(d, {.name = "Softplus", .formula = Formula::kSoftplus, .summary = "A smooth positive part; the number itself beyond the threshold.",
          .texts = {"out = beta self > threshold ? self : ln(1 + e^(beta self)) / beta"}, .types = kUsual,
          .scalars = {"beta", "threshold"}, .real_scalars = true, .keep_scalars = true, .products = kFive});
  Add(d, {.name = "Mish", .formula = Formula::kMish, .summary = "A number times the hyperbolic tangent of its softplus.",
          .texts = {"out = self * tanh(ln(1 + e^self))"}, .types = kUsual, .result = kSame, .products = kNoInference});
  Add(d, {.name = "Erfinv", .formula = Formula::kErfinv, .summary = "Inverse of the error function.", .texts = {"erf(out) = self"},
          .types = {kReals, kFloat3 | kInt5Bool}, .whole = DType::kF32, .products = kNoInference});
  Add(d, {.name = "Threshold", .formula = Formula::kThreshold, .summary = "Numbers up to a threshold are replaced by a value.",
          .texts = {"out = self <= threshold ? value : self"}, .types = {kFloats | kWords | kI16, kFloat3 | kWords | kI16},
          .scalars = {"threshold", "value"}, .null_order = {"self", "out", "threshold", "value"}, .real_scalars = true,
          .products = kNoInference});
  Add(d, {.name = "Heaviside", .formula = Formula::kHeaviside, .summary = "0 for negative numbers, 1 for positive ones, a value at 0.",
          .texts = {"out = input < 0 ? 0 : input == 0 ? values : 1"}, .types = kFloat3, .equal_types = true, .result = kSame,
          .products = kNewer});
  Add(d, {.name = "SquaredRelu", .formula = Formula::kSquaredRelu, .summary = "Square of the positive part.",
          .texts = {"out = max(input, 0)^2"}, .types = kFloat3, .result = kSame, .min_rank = 1, .shape_code = code::kTiling,
          .products = kNewer});
}

void DeclareBackward(Declarations* d) {
  using enum Result;
  Add(d, {.name = "LeakyReluBackward", .formula = Formula::kLeakyReluBackward, .summary = "Gradient of leaky relu.",
          .texts = {"out = self > 0 ? gradOutput : gradOutput * negativeSlope"}, .types = kFloats, .scalars = {"negativeSlope"},
          .real_scalars = true, .keep_scalars = true, .products = kFive, .rules = [](const Form&) -> std::vector<Rule> {
            return {Custom("negativeSlope", "must not be negative when selfIsResult is true", CheckSelfIsResult)};
          }});
  Add(d, {.name = "ThresholdBackward", .formula = Formula::kThresholdBackward,
          .summary = "Gradient of threshold with the value 0, and so of relu.", .texts = {"out = self <= threshold ? 0 : gradOutput"},
          .types = {kFloats | kWords, kFloat3 | DTypeSet{DType::kI8, DType::kU8, DType::kI32}}, .scalars = {"threshold"},
          .null_order = {"threshold", "out", "gradOutput", "self"}, .equal_types = true, .result = kSame, .real_scalars = true,
          .keep_scalars = true, .products = kFive, .rules = [](const Form&) -> std::vector<Rule> {
            return {Custom("gradOutput", "must not be INT64 with a threshold other than 0", CheckZeroThreshold)};
          },
          .plan = RunThresholdBackward});
  Add(d, {.name = "SigmoidBackward", .formula = Formula::kSigmoidBackward,
          .summary = "Gradient of the logistic function, from its result.",
          .texts = {"gradInput = gradOutput * conj((1 - output) * output)"}, .types = {kFloats | types::kComplex}, .result = kListed,
          .results = {kFloats | types::kComplex}, .products = kFive});
  const DTypeSet selu = kFloat3 | DTypeSet{DType::kI32, DType::kI8};
  Add(d, {.name = "SeluBackward", .formula = Formula::kSeluBackward, .summary = "Gradient of selu, from its result.",
          .texts = {"gradInput = gradOutput * (result > 0 ? 1.0507 : result + 1.7581)"}, .types = selu, .whole = DType::kF32,
          .equal_types = true, .result = kSame, .any_rank = true, .same_shape = true, .products = kFive, .plan = RunSeluBackward});
  Add(d, {.name = "GeluBackward", .formula = Formula::kGeluTanhBackward, .summary = "Gradient of the tanh form of gelu.",
          .types = kFloat3 | kInt5Bool, .computed = kFloat3, .products = kFive});
  Add(d, {.name = "GeluBackwardV2", .formula = Formula::kGeluErfBackward,
          .summary = "Gradient of gelu: of its tanh form, or of the exact one.", .types = kUsual, .result = kAny, .results = kUsual,
          .any_rank = true, .products = kFive,
          .rules = [](const Form& form) -> std::vector<Rule> {
            return {IsPromoted<3>(form), Custom("approximate", "must be none or tanh", CheckApproximate)};
          },
          .plan = RunGeluBackwardV2});
  Add(d, {.name = "FastGeluBackward", .formula = Formula::kFastGeluBackward, .summary = "Gradient of fast gelu.", .types = kFloat3,
          .equal_types = true, .result = kSame, .formats = Formats::kSame, .same_shape = true, .products = kNewer});
  Add(d, {.name = "SiluBackward", .formula = Formula::kSiluBackward, .summary = "Gradient of silu.",
          .texts = {"gradInput = gradOutput * sigma * (1 + self * (1 - sigma)), sigma = 1 / (1 + e^-self)"}, .types = kUsual,
          .result = kAny, .results = kUsual, .products = kNoInference,
          .rules = [](const Form& form) -> std::vector<Rule> { return {IsPromoted<2>(form)}; }});
  Add(d, {.name = "SwishBackward", .formula = Formula::kSwishBackward, .summary = "Gradient of swish; beta is 1 when absent.",
          .types = kFloat3, .scalars = {"betaOptional"}, .optional = {"betaOptional"}, .equal_types = true, .result = kSame,
          .same_shape = true, .real_scalars = true, .keep_scalars = true, .products = kFive, .plan = RunSwish});
  Add(d, {.name = "LogSigmoidBackward", .formula = Formula::kLogSigmoidBackward,
          .summary = "Gradient of the logarithm of the logistic function; buffer is not used.",
          .texts = {"gradInput = gradOutput / (1 + e^self)"}, .types = kUsual, .equal_types = true, .result = kSame,
          .any_rank = true, .same_shape = true, .ignored = {"buffer"}, .products = kFive});
  Add(d, {.name = "HardsigmoidBackward", .formula = Formula::kHardsigmoidBackward, .summary = "Gradient of hard sigmoid.",
          .texts = {"out = -3 < self < 3 ? gradOutput / 6 : 0"}, .types = kUsual, .same_shape = true, .products = kFive});
  Add(d, {.name = "HardswishBackward", .formula = Formula::kHardswishBackward, .summary = "Gradient of hard swish.",
          .texts = {"out = gradOutput * (self < -3 ? 0 : self <= 3 ? self / 3 + 1 / 2 : 1)"}, .types = kUsual, .equal_types = true,
          .result = kSame, .same_shape = true, .products = kNoInference});
  Add(d, {.name = "HardswishBackwardV2", .formula = Formula::kHardswishBackwardV2, .summary = "Gradient of hard swish.",
          .texts = {"out = gradOutput * (self <= -3 ? 0 : self < 3 ? self / 3 + 1 / 2 : 1)"}, .types = kUsual,
          .equal_types = true, .result = kSame, .same_shape = true, .products = kNoInference});
  Add(d, {.name = "HardtanhBackward", .formula = Formula::kHardtanhBackward, .summary = "Gradient of hardtanh.",
          .texts = {"out = min < self < max ? gradOutput : 0"}, .types = kUsual, .scalars = {"min", "max"},
          .null_order = {"self", "gradOutput", "out", "min", "max"}, .equal_types = true, .result = kSame, .same_shape = true,
          .real_scalars = true, .keep_scalars = true});
  Add(d, {.name = "HardshrinkBackward", .formula = Formula::kHardshrinkBackward, .summary = "Gradient of hard shrinkage.",
          .texts = {"gradInput = -lambd <= self <= lambd ? 0 : gradOutput"}, .types = kUsual, .scalars = {"lambd"},
          .result = kListed, .results = kUsual, .empty = Empty::kAllButShape, .real_scalars = true, .keep_scalars = true,
          .products = kNoInference});
  Add(d, {.name = "SoftshrinkBackward", .formula = Formula::kSoftshrinkBackward, .summary = "Gradient of soft shrinkage.",
          .texts = {"gradInput = |self| > lambda ? gradOutput : 0"}, .types = kUsual, .scalars = {"lambda"}, .result = kAny,
          .results = kUsual, .real_scalars = true, .keep_scalars = true, .products = kFive,
          .rules = [](const Form& form) -> std::vector<Rule> {
            return {IsPromoted<3>(form), Custom("lambda", "must not be negative", CheckNotNegative<2>)};
          }});
  Add(d, {.name = "SoftplusBackward", .formula = Formula::kSoftplusBackward, .summary = "Gradient of softplus.",
          .texts = {"gradInput = beta self > threshold ? gradOutput : gradOutput / (1 + e^(-beta self))"}, .types = kReals,
          .own = {kFloats, kReals}, .scalars = {"beta", "threshold"},
          .null_order = {"gradOutput", "self", "gradInput", "beta", "threshold"}, .result = kAny, .results = kFloats,
          .same_shape = true, .real_scalars = true, .keep_scalars = true, .products = kNoInference, .plan = RunSoftplusBackward});
  Add(d, {.name = "MishBackward", .formula = Formula::kMishBackward, .summary = "Gradient of mish.", .types = kUsual,
          .result = kListed, .results = kUsual, .products = kFive});
}

}  // namespace
}  // namespace pointwise

void DeclareActivation(Declarations& declarations) {
  declarations.Add("aclnnEluBackward", MakeEluBackward);
  DeclarePrelu(declarations);
  DeclareRRelu(declarations);
  pointwise::DeclareForward(&declarations);
  pointwise::DeclareBackward(&declarations);
}

}  // namespace anyacl
