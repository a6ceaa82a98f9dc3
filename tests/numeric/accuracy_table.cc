// SPDX-License-Identifier: Apache-2.0
// Copyright The AnyACL Authors
//
// Prints the table of docs/numerics.md: how far results are from the exact ones (the references in
// double), in units of the last place of their dtype. All rows of the cases that are dense, have 256
// elements and are not for the bench alone, random numbers, the kernels and the SIMD target that run by themselves.
//
// One unit is that of the exact element, or of the root mean square of its output where the element is
// smaller: a difference that is small by chance is not more exact than its terms.
//
// Exit status 1 when a result is further off than docs/numerics.md says.
#include <fmt/format.h>

#include <algorithm>
#include <cmath>
#include <cstring>
#include <map>
#include <string>
#include <utility>
#include <vector>

#include "cpu/targets.h"
#include "harness/call.h"
#include "harness/cases.h"
#include "harness/data.h"
#include "harness/session.h"
#include "ops/activation/elu_backward.h"
#include "ops/norm/batch_norm_elemt_backward.h"
#include "ops/norm/group_norm_backward.h"
#include "ops/norm/rms_norm_grad.h"
#include "operators_with_cases.h"

namespace anyacl {
namespace {

using harness::Call;
using Numbers = std::vector<double>;

// ---- exact results, one list per output ----

DType TypeOf(const Call& call, int arg) { return call.spec().args[arg].tensor.dtype; }
int64_t CountOf(const Call& call, int arg) { return call.spec().args[arg].tensor.numel(); }
const void* DataOf(const Call& call, int arg) {
  return call.spec().args[arg].null ? nullptr : call.address(arg);
}

std::vector<Numbers> ExactElu(const Call& call) {
  enum { kDy, kAlpha, kScale, kInputScale, kIsResult, kX };
  const auto scalar = [&](int arg) { return call.spec().args[arg].scalar.AsFloat(); };
  const double negcoef = static_cast<double>(scalar(kAlpha) * scalar(kScale));
  Numbers dx(call.Operand(kX).size());
  for (size_t i = 0; i < dx.size(); ++i) {
    dx[i] = reference::EluBackward<double>(call.Operand(kDy)[i], call.Operand(kX)[i],
                                           call.spec().args[kIsResult].flag, negcoef,
                                           scalar(kScale), scalar(kInputScale));
  }
  return {dx};
}

std::vector<Numbers> ExactGroupNorm(const Call& call) {
  enum { kDy, kX, kMean, kRstd, kGamma, kN, kC, kHxW, kGroup, kMask, kDx, kDgamma, kDbeta };
  GroupNormBackwardParams p{};
  p.dy = DataOf(call, kDy);
  p.x = DataOf(call, kX);
  p.mean = DataOf(call, kMean);
  p.rstd = DataOf(call, kRstd);
  p.gamma = DataOf(call, kGamma);
  p.n = call.spec().args[kN].integer;
  p.c = call.spec().args[kC].integer;
  p.hxw = call.spec().args[kHxW].integer;
  p.groups = call.spec().args[kGroup].integer;
  p.dtype = TypeOf(call, kDy);
  p.param_dtype = TypeOf(call, kMean);
  Numbers dx(CountOf(call, kDy)), dgamma(p.c), dbeta(p.c);
  reference::GroupNormBackward<double>(p, dx.data(), dgamma.data(), dbeta.data());
  std::vector<Numbers> results;
  if (!call.spec().args[kDx].null) results.push_back(dx);
  if (!call.spec().args[kDgamma].null) results.push_back(dgamma);
  if (!call.spec().args[kDbeta].null) results.push_back(dbeta);
  return results;
}

std::vector<Numbers> ExactBatchNormElemt(const Call& call) {
  enum { kDy, kX, kMean, kInvstd, kWeight, kSumDy, kSumDyXmu, kCounter };
  const auto operand = [&](int arg) {
    return BatchNormElemtBackwardParams::Operand{DataOf(call, arg), TypeOf(call, arg)};
  };
  BatchNormElemtBackwardParams p{};
  p.dy = operand(kDy);
  p.x = operand(kX);
  p.mean = operand(kMean);
  p.invstd = operand(kInvstd);
  p.weight = operand(kWeight);
  p.sum_dy = operand(kSumDy);
  p.sum_dy_xmu = operand(kSumDyXmu);
  p.counter = operand(kCounter);
  p.counter_count = CountOf(call, kCounter);
  p.outer = call.spec().args[kX].tensor.dims[0];
  p.c = call.spec().args[kX].tensor.dims[1];
  p.inner = CountOf(call, kX) / (p.outer * p.c);
  Numbers dx(CountOf(call, kX));
  reference::BatchNormElemtBackward<double>(p, dx.data());
  return {dx};
}

template <class T>
void ExactRmsNormOf(const RmsNormGradParams& p, Numbers* dx, Numbers* dgamma) {
  p.gamma_dtype == DType::kF32
      ? reference::RmsNormGrad<double, T, float>(p, dx->data(), dgamma->data())
      : reference::RmsNormGrad<double, T, T>(p, dx->data(), dgamma->data());
}

std::vector<Numbers> ExactRmsNorm(const Call& call) {
  enum { kDy, kX, kRstd, kGamma };
  RmsNormGradParams p{};
  p.dy = DataOf(call, kDy);
  p.x = DataOf(call, kX);
  p.rstd = DataOf(call, kRstd);
  p.gamma = DataOf(call, kGamma);
  p.rows = CountOf(call, kRstd);
  p.cols = CountOf(call, kGamma);
  p.gamma_dtype = TypeOf(call, kGamma);
  Numbers dx(CountOf(call, kX)), dgamma(p.cols);
  if (TypeOf(call, kDy) == DType::kF32) ExactRmsNormOf<float>(p, &dx, &dgamma);
  if (TypeOf(call, kDy) == DType::kF16) ExactRmsNormOf<Half>(p, &dx, &dgamma);
  if (TypeOf(call, kDy) == DType::kBF16) ExactRmsNormOf<BFloat16>(p, &dx, &dgamma);
  return {dx, dgamma};
}

struct Entry {
  const char* op;
  std::vector<Numbers> (*exact)(const Call& call);
};
constexpr Entry kEntries[] = {
    {"aclnnEluBackward", ExactElu},
    {"aclnnGroupNormBackward", ExactGroupNorm},
    {"aclnnBatchNormElemtBackward", ExactBatchNormElemt},
    {"aclnnRmsNormGrad", ExactRmsNorm},
};

// ---- errors ----

struct Format {
  int digits;       // of the significand
  double smallest;  // step of the subnormals
  double limit;     // units: the promise of docs/numerics.md
};
Format FormatOf(DType dtype) {
  if (dtype == DType::kF16) return {11, 0x1p-24, 0.51};
  if (dtype == DType::kBF16) return {8, 0x1p-133, 0.51};
  return {24, 0x1p-149, 64};
}

double UnitOf(const Format& format, double value) {
  int exponent;
  std::frexp(value, &exponent);
  return std::max(std::ldexp(1.0, exponent - format.digits), format.smallest);
}

struct Errors {
  double most = 0, sum = 0;
  int64_t count = 0;

  void Add(DType dtype, const Numbers& got, const Numbers& exact) {
    const Format format = FormatOf(dtype);
    double squares = 0;
    for (double v : exact) squares += v * v;
    const double typical = std::sqrt(squares / static_cast<double>(exact.size()));
    for (size_t i = 0; i < exact.size(); ++i) {
      if (!std::isfinite(got[i]) || !std::isfinite(exact[i])) continue;  // FLOAT16 overflows early
      const double unit = UnitOf(format, std::max(std::fabs(exact[i]), typical));
      const double error = std::fabs(got[i] - exact[i]) / unit;
      most = std::max(most, error);
      sum += error;
      ++count;
    }
  }
};

// In a call of few elements, all may be small by chance.
bool Counts(const harness::Case& row) {
  return Numel(row.ParsedDims()) >= 256 && !row.Has("large") && !row.Has("empty") &&
         !row.Has("strided") && !row.Has("alias");
}

// False when an error is above its limit.
bool PrintOperator(const Operator& op, const Entry& entry, aclrtStream stream) {
  const harness::OperatorCases& cases = harness::CasesOf(op.contract.op());
  bool good = true;
  for (const harness::TypeChoice& types : cases.types) {
    if (!types.bench) continue;
    std::map<int, Errors> errors;
    std::map<int, DType> dtypes;
    for (const harness::Case& row : cases.cases) {
      if (!Counts(row)) continue;
      Call call(op, harness::MakeCall(op.contract, cases, row, types));
      harness::Require(call.Execute(stream), row.name);
      const std::vector<Numbers> exact = entry.exact(call);
      for (size_t i = 0; i < exact.size(); ++i) {
        const int arg = call.Outputs()[i];
        dtypes[arg] = TypeOf(call, arg);
        errors[arg].Add(dtypes[arg], call.Values(arg), exact[i]);
      }
    }
    for (const auto& [arg, e] : errors) {
      fmt::print("| {} | {} | {} | {} | {:.3f} | {:.3f} |\n", op.contract.op(), types.label,
                 op.contract.args()[arg].name, Name(dtypes[arg]), e.most,
                 e.sum / static_cast<double>(e.count));
      good = good && e.most <= FormatOf(dtypes[arg]).limit;
    }
  }
  return good;
}

int Main() {
  const harness::Session session;
  bool good = true;
  fmt::print(
      "| operator | call | output | dtype | max (ulp) | mean (ulp) |\n|---|---|---|---|---|---|\n");
  for (const Operator* op : OperatorsWithCases()) {
    const auto entry = std::find_if(std::begin(kEntries), std::end(kEntries), [&](const Entry& e) {
      return std::strcmp(e.op, op->contract.op()) == 0;
    });
    if (entry == std::end(kEntries)) {
      fmt::print(stderr, "{} has no exact results here\n", op->contract.op());
      return 1;
    }
    good = PrintOperator(*op, *entry, session.stream()) && good;
  }
  fmt::print("\nSIMD target: {}\n", cpu::ActiveTarget());
  return good ? 0 : 1;
}

}  // namespace
}  // namespace anyacl

int main() { return anyacl::Main(); }
