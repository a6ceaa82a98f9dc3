// SPDX-License-Identifier: Apache-2.0
// Copyright The AnyACL Authors
//
// Functions of one number.
#include "ops/pointwise/formulas.h"
#include "ops/pointwise/tables.h"

namespace anyacl::pointwise {
namespace {

using namespace contract;
using types::kBool;
using types::kComplex;
using types::kDouble;
using types::kFloat3;
using types::kInt5;
using types::kInt5Bool;
using types::kInt8;

constexpr DTypeSet kAnalytic = kFloats | kComplex;
constexpr DTypeSet kI64 = {DType::kI64};

// Integers are computed in FLOAT; INT64, whose digits a square root halves, in double.
Status RunSqrt(PassCall& call) {
  if (call.values[0].tensor->dtype == DType::kI64) call.computed = DType::kF64;
  return call.Run();
}

void DeclareElementary(Declarations* d) {
  const Types all = kNumbers;
  const Types real = kReals;
  const Types widened = {kNumbers, kReals};                     // complex numbers on the newest product
  const Types some = {kNumbers, kFloat3 | kInt5Bool};           // no DOUBLE on the others
  const Types exp = {kNumbers, kAnalytic | kBool | kI64};
  const Types erf = {kReals, kFloats | kBool | kI64};
  const Types analytic = kAnalytic;
  const Types floats = kFloats;
  const Types none;
  using enum Result;
  const struct {
    const char* name;
    Formula formula;
    const char* text;
    Types types;
    Result result;
    Types results;
    Formats formats = Formats::kAny;
  } kRows[] = {
      {"Acos", Formula::kAcos, "acos", widened, kListed, {kAnalytic, kFloats}},
      {"Asin", Formula::kAsin, "asin", widened, kListed, {kAnalytic, kFloats}},
      {"Atan", Formula::kAtan, "atan", widened, kListed, {kAnalytic, kFloats}},
      {"Acosh", Formula::kAcosh, "acosh", all, kConverts, analytic, Formats::kPublic},
      {"Asinh", Formula::kAsinh, "asinh", all, kListed, analytic, Formats::kPublic},
      {"Atanh", Formula::kAtanh, "atanh", all, kListed, analytic},
      {"Cos", Formula::kCos, "cos", all, kListed, analytic},
      {"Sin", Formula::kSin, "sin", all, kListed, analytic},
      {"Cosh", Formula::kCosh, "cosh", all, kListed, analytic, Formats::kPublic},
      {"Tan", Formula::kTan, "tan", all, kConverts, none},
      {"Tanh", Formula::kTanh, "tanh", some, kConverts, {kAnalytic, kFloat3}, Formats::kSameAndPublic},
      {"Exp", Formula::kExp, "e^", exp, kConverts, none},
      {"Exp2", Formula::kExp2, "2^", widened, kConverts, none},
      {"Expm1", Formula::kExpm1, "e^x - 1, x = ", {kNumbers, kFloat3 | kBool | kI64}, kConverts, none},
      {"Erf", Formula::kErf, "erf", erf, kConverts, none},
      {"Erfc", Formula::kErfc, "1 - erf", erf, kConverts, none},
      {"Log", Formula::kLog, "ln", all, kConverts, analytic},
      {"Log2", Formula::kLog2, "log2", all, kConverts, analytic},
      {"Reciprocal", Formula::kReciprocal, "1 / ", all, kListed, analytic, Formats::kSame},
      {"Sinc", Formula::kSinc, "sin(pi x) / (pi x), 1 at 0; x = ", real, kListed, floats},
  };
  for (const auto& row : kRows) {
    Declare(d, {.name = row.name, .formula = row.formula, .summary = "A function of every element; integers are taken as FLOAT.",
                .texts = {std::string("out = ") + row.text + "(self)"}, .types = row.types, .whole = DType::kF32,
                .result = row.result, .results = row.results, .formats = row.formats});
  }
  const struct {
    const char* name;
    Formula formula;
    const char* text;
    Types types;
    Types results;
  } kInResultType[] = {
      {"Sinh", Formula::kSinh, "sinh", all, analytic},
      {"Log1p", Formula::kLog1p, "ln(1 + x), x = ", widened, {kAnalytic, kFloats}},
      {"Rsqrt", Formula::kRsqrt, "1 / sqrt", all, analytic},
  };
  for (const auto& row : kInResultType) {
    Declare(d, {.name = row.name, .formula = row.formula,
                .summary = "A function of every element; integers are taken in the dtype of the result.",
                .texts = {std::string("out = ") + row.text + "(self)"}, .types = row.types, .whole_as_result = true,
                .result = kListed, .results = row.results});
  }
  Declare(d, {.name = "Sqrt", .formula = Formula::kSqrt, .summary = "Square root of every element.", .texts = {"out = sqrt(self)"},
              .types = all, .whole = DType::kF32, .plan = RunSqrt});
  std::vector<TypeRow> log10;
  for (DType t : kNumbers.List()) {
    const bool whole = IsInteger(t) || t == DType::kBool;
    log10.push_back({{t, whole ? DType::kF32 : t}, t == DType::kBF16 ? kNewer : kAllProducts});
  }
  Declare(d, {.name = "Log10", .formula = Formula::kLog10, .summary = "Decimal logarithm of every element.",
              .texts = {"out = log10(self)"}, .types = all, .whole = DType::kF32, .result = kPairs, .pairs = log10});
  const Types gamma = DTypeSet{DType::kF32, DType::kF16, DType::kF64};
  Declare(d, {.name = "Digamma", .formula = Formula::kDigamma, .summary = "Logarithmic derivative of the gamma function.",
              .texts = {"out = psi(self)"}, .types = gamma, .result = kSame, .formats = Formats::kSame});
  Declare(d, {.name = "Lgamma", .formula = Formula::kLgamma, .summary = "Logarithm of the absolute value of the gamma function.",
              .texts = {"out = ln |gamma(self)|"}, .types = gamma, .result = kSame, .formats = Formats::kSame});
  Declare(d, {.name = "TanhBackward", .formula = Formula::kTanhBackward, .summary = "Gradient of tanh, from its result.",
              .texts = {"gradInput = gradOutput * conj(1 - output^2)"}, .types = {kAnalytic, kFloats}, .equal_types = true,
              .result = kSame});
}

}  // namespace

void DeclareFunctions(Declarations* declarations) { DeclareElementary(declarations); }

}  // namespace anyacl::pointwise
