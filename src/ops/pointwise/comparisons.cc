// SPDX-License-Identifier: Apache-2.0
// Copyright The AnyACL Authors
//
// Comparisons, logic and predicates.
#include <bit>

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

constexpr DTypeSet kTruths = kFloats | kInt8 | kBool | kComplex;
constexpr DTypeSet kU16 = {DType::kU16};
constexpr DTypeSet kU64 = {DType::kU64};

void DeclareComparisonRows(Declarations* d) {
  const Types equality = {kNumbers | kU64, kNumbers};
  const Types order = kFloats | kInt8 | kBool;
  const Types less_equal = {kReals | kU16 | kU64, kReals | kU16};
  const struct {
    const char* tensor;
    const char* scalar;
    Formula formula;
    const char* text;
    Types types;
    Empty empty = Empty::kAll;
  } kRows[] = {
      {"EqTensor", "EqScalar", Formula::kEqual, "out = self == other", equality},
      {"NeTensor", "NeScalar", Formula::kNotEqual, "out = self != other", equality, Empty::kNulls},
      {"GtTensor", "GtScalar", Formula::kGreater, "out = self > other", order},
      {"GeTensor", "GeScalar", Formula::kGreaterEqual, "out = self >= other", order},
      {"LtTensor", "LtScalar", Formula::kLess, "out = self < other", order},
      {"LeTensor", "LeScalar", Formula::kLessEqual, "out = self <= other", less_equal, Empty::kNulls},
  };
  for (const auto& row : kRows) {
    Declare(d, {.name = row.tensor, .formula = row.formula, .summary = "Compares two tensors; 1 or 0 in the dtype of the result.",
                .texts = {row.text}, .types = row.types, .zero_dim = true, .result = Result::kAny, .results = kTruths,
                .empty = row.empty});
    Declare(d, {.name = row.scalar, .formula = row.formula,
                .summary = "Compares a tensor with a number; 1 or 0 in the dtype of the result.", .texts = {row.text},
                .types = row.types, .result = Result::kAny, .results = kTruths});
  }
}

void DeclareLogic(Declarations* d) {
  Declare(d, {.name = "LogicalAnd", .formula = Formula::kBitwiseAnd, .summary = "1 where both tensors are not 0.",
              .texts = {"out = self != 0 and other != 0"}, .types = kNumbers, .as = DType::kBool, .result = Result::kAny,
              .results = kTruths});
  Declare(d, {.name = "LogicalOr", .formula = Formula::kBitwiseOr, .summary = "1 where either tensor is not 0.",
              .texts = {"out = self != 0 or other != 0"}, .types = kNumbers, .as = DType::kBool, .result = Result::kAny,
              .results = kTruths});
  Declare(d, {.name = "LogicalXor", .formula = Formula::kBitwiseXor, .summary = "1 where one of two tensors is not 0.",
              .texts = {"out = (self != 0) != (other != 0)"}, .types = kNumbers, .as = DType::kBool, .result = Result::kAny,
              .results = kNumbers});
  Declare(d, {.name = "LogicalNot", .formula = Formula::kLogicalNot, .summary = "1 where a tensor is 0.",
              .texts = {"out = self == 0"}, .types = {kNumbers, kReals}, .as = DType::kBool, .result = Result::kAny,
              .results = kReals, .any_rank = true});
  Declare(d, {.name = "BitwiseNot", .formula = Formula::kBitwiseNot, .summary = "All bits turned; BOOL is negated.",
              .texts = {"out = ~self"}, .types = {kInt8 | kBool, kInt5Bool}, .result = Result::kSame, .formats = Formats::kPublic,
              .plan = [](PassCall& call) {
                if (call.computed == DType::kBool) call.formula = Formula::kLogicalNot;
                return call.Run();
              }});
}

void DeclarePredicates(Declarations* d) {
  const Types result = kBool;
  Declare(d, {.name = "IsFinite", .formula = Formula::kIsFinite, .summary = "Whether numbers are finite.",
              .types = {kNumbers, kReals}, .result = Result::kAny, .results = result});
  const Types infinite = {kReals, kFloat3 | kInt5Bool};
  Declare(d, {.name = "IsPosInf", .formula = Formula::kIsPosInf, .summary = "Whether numbers are +infinity.", .types = infinite,
              .result = Result::kAny, .results = result,
              .products = Of({Product::kAscend950, Product::kA3, Product::kA2, Product::kInference, Product::k200I})});
  Declare(d, {.name = "IsNegInf", .formula = Formula::kIsNegInf, .summary = "Whether numbers are -infinity.", .types = infinite,
              .result = Result::kAny, .results = result,
              .products = Of({Product::kAscend950, Product::kA3, Product::kA2, Product::kInference, Product::k200I})});
  Declare(d, {.name = "IsInf", .formula = Formula::kIsInf, .summary = "Whether numbers are infinite.", .types = kFloat3,
              .result = Result::kAny, .results = result,
              .products = Of({Product::kAscend950, Product::kA3, Product::kA2, Product::kInference, Product::k200I})});
  Declare(d, {.name = "Signbit", .formula = Formula::kSignbit, .summary = "Whether the sign bit is set, of -0 and NaN too.",
              .types = kFloats | kInt8 | kBool, .result = Result::kAny, .results = kFloats | kInt8 | kBool});
}

Status RunIsClose(PassCall& call) {
  const bool whole = IsInteger(call.computed) || call.computed == DType::kBool;
  const double tolerances[] = {call.Arg("rtol").real, call.Arg("atol").real};
  for (int i = 0; i < 2; ++i) {
    const float single = static_cast<float>(tolerances[i]);
    if (whole) call.SetScalar(i, Scalar::OfInt(std::bit_cast<int32_t>(single)), DType::kI64);
    else call.SetScalar(i, Scalar::Of(DType::kF64, tolerances[i]));
  }
  call.SetScalar(2, Scalar::OfInt(call.Arg("equalNan").flag), DType::kI64);
  return call.Run();
}

void DeclareCloseness(Declarations* d) {
  Declare(d, {.name = "IsClose", .formula = Formula::kIsClose, .summary = "Whether numbers are equal up to tolerances.",
              .texts = {"out = |self - other| <= atol + rtol * |other|"}, .types = {kNumbers, kReals}, .equal_types = true,
              .result = Result::kAny, .results = kBool, .plan = RunIsClose});
  Declare(d, {.name = "IsInTensorScalar", .formula = Formula::kEqual, .summary = "Which elements equal a number.",
              .types = kFloats | kInt5, .scalar_types = kFloats | kInt5, .result = Result::kAny, .results = kBool,
              .plan = [](PassCall& call) {
                if (call.Arg("invert").flag) call.formula = Formula::kNotEqual;
                return call.Run();
              }});
}

}  // namespace

void DeclareComparisons(Declarations* declarations) {
  DeclareComparisonRows(declarations);
  DeclareLogic(declarations);
  DeclarePredicates(declarations);
  DeclareCloseness(declarations);
}

}  // namespace anyacl::pointwise
