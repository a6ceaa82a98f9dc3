// SPDX-License-Identifier: Apache-2.0
// Copyright The AnyACL Authors
//
// Counting and searching.
#include "ops/order/search.h"

#include <fmt/format.h>

#include <algorithm>
#include <cmath>
#include <cstring>

#include "core/promotion.h"
#include "core/scalar.h"
#include "ops/operators.h"
#include "ops/order/count.h"
#include "ops/order/rows.h"
#include "ops/pointwise/pass.h"
#include "ops/table.h"

namespace anyacl {
namespace {

using namespace contract;
using order::NaturalType;
using order::RowsInput;
using pointwise::ComputeOf;
using pointwise::DenseInput;
using pointwise::DenseOutput;
using pointwise::FinishOutput;

constexpr DTypeSet kHalfless = {DType::kF32, DType::kF16};
constexpr DTypeSet kInt5 = types::kInt5;
constexpr DTypeSet kBFloat = {DType::kBF16};

constexpr Products kNot200I =
    Of({Product::kAscend950, Product::kA3, Product::kA2, Product::kTraining, Product::kInference});
constexpr Products kNot200IInference = Of({Product::kAscend950, Product::kA3, Product::kA2, Product::kTraining});

// A scalar as an element of a floating dtype.
double RealAs(const Scalar& scalar, DType dtype) {
  const double value = scalar.AsDouble();
  switch (dtype) {
    case DType::kF16:
      return static_cast<double>(Half(value));
    case DType::kBF16:
      return static_cast<double>(BFloat16(value));
    case DType::kF32:
      return static_cast<float>(value);
    default:
      return value;
  }
}

// ... and of a whole one.
int64_t WholeAs(int64_t value, DType dtype) {
  switch (dtype) {
    case DType::kI8:
      return static_cast<int8_t>(value);
    case DType::kU8:
      return static_cast<uint8_t>(value);
    case DType::kI16:
      return static_cast<int16_t>(value);
    case DType::kI32:
      return static_cast<int32_t>(value);
    default:
      return value;
  }
}

// ---- Counting -------------------------------------------------------------------------------------------------------

std::string LongEnough(Values values, Product) {
  const Tensor& out = *values[3].tensor;
  const int64_t least = values[2].integer;
  if (out.rank() != 1 || out.dims[0] >= least) return "";
  return fmt::format("must have at least minlength elements, got {} and {}", out.dims[0], least);
}

Operator MakeBincount(const Entry& entry) {
  Table table = TableOf(entry, "count", "How often each whole number occurs, or the sum of the weights of each.",
                        {.in_out = {}, .optional = {"weights"}});
  table.formulas = {"out_v = sum over self_i = v of weights_i (1 without weights)"};
  table.notes = {"Numbers that are negative or beyond the result are not counted. The result does not depend on threads."};
  constexpr DTypeSet kWeights = kHalfless | types::kDouble | types::kInt5Bool;
  AddNullRules(&table);
  Add(&table, {Supported(kNot200I), DTypes("self", RowsOf(kInt5)), DTypes("weights", RowsOf(kWeights | kBFloat, kWeights)),
               DTypes("out", RowsOf({DType::kF32, DType::kF64, DType::kI32, DType::kI64})), PublicFormat("self"),
               PublicFormat("out"), SameFormat({"weights", "self"}), Rank("self", 1, 1), Rank("out", 1, 1),
               SameShape("weights", "self"), Custom("out", "must have at least minlength elements", LongEnough)});
  return {.contract = Contract(std::move(table)),
          .plan = [](Values values, PlanBuilder& plan) -> Status {
            enum { kSelf, kWeightsArg, kLeast, kOut };
            const Tensor& self = *values[kSelf].tensor;
            const bool weighted = values[kWeightsArg].given() && !self.empty();
            if (values[kOut].tensor->empty() || (self.empty() && values[kLeast].integer <= 0)) return {};
            Operand in, weights;
            ANYACL_RETURN_IF_ERROR(RowsInput(plan, plan.TensorOperand(kSelf), DType::kI64, &in));
            if (weighted) ANYACL_RETURN_IF_ERROR(DenseInput(plan, kWeightsArg, 0, DType::kF64, &weights));
            const Operand out = DenseOutput(plan, kOut, 0, weighted ? DType::kF64 : DType::kI64);
            auto& params = plan.MakeParams<order::CountParams>();
            params.count = self.numel();
            params.bins = Numel(out.dims);
            params.compute = pointwise::Compute::kInt;
            if (!self.empty()) plan.Bind(in, params.in);
            if (weighted) plan.Bind(weights, params.weights);
            plan.Bind(out, params.out);
            ANYACL_RETURN_IF_ERROR(plan.ChooseKernel("count"));
            return FinishOutput(plan, kOut, 0, out);
          },
          .family = "order"};
}

std::string GoodEdges(Values values, Product) {
  const DType self = values[0].tensor->dtype;
  const Scalar &low = *values[2].scalar, &high = *values[3].scalar;
  const double a = low.AsDouble(), b = high.AsDouble();
  const bool wrong = std::isnan(a) || std::isnan(b) || (a != b && (std::isinf(a) || std::isinf(b))) ||
                     (IsInteger(self) ? static_cast<int32_t>(low.AsInt()) > static_cast<int32_t>(high.AsInt()) : a > b);
  return wrong ? fmt::format("must be a finite number that is not above max, got {} and {}", a, b) : "";
}

Operator MakeHistc(const Entry& entry) {
  Table table = TableOf(entry, "count", "How many elements fall into each of some bins of one width.");
  table.formulas = {"out_b = number of x with floor((x - min) * bins / (max - min)) = b"};
  table.notes = {"With min = max the edges are the smallest and the largest element, and one below and above when those are "
                 "equal.",
                 "The upper edge belongs to the last bin. Elements beyond the edges and NaN are not counted."};
  constexpr DTypeSet kTypes = kHalfless | kInt5;
  constexpr DTypeSet kNewest = kTypes | kBFloat | types::kDouble;
  AddNullRules(&table);
  Add(&table, {Supported(kNot200I), DTypes("self", RowsOf(kNewest, kTypes)), DTypes("out", RowsOf(kNewest, kTypes)),
               ResultConverts("out", "self"), Rank("self", 0, 8), Require("bins", "bins > 0"), ShapeIs("out", "bins"),
               ScalarConverts("min", DType::kF32), ScalarConverts("max", DType::kF32),
               Custom("min", "must be a finite number that is not above max", GoodEdges)});
  return {.contract = Contract(std::move(table)),
          .plan = [](Values values, PlanBuilder& plan) -> Status {
            enum { kSelf, kBins, kMin, kMax, kOut };
            const Tensor& self = *values[kSelf].tensor;
            const Scalar &low = *values[kMin].scalar, &high = *values[kMax].scalar;
            Operand in;
            ANYACL_RETURN_IF_ERROR(RowsInput(plan, plan.TensorOperand(kSelf), self.dtype, &in));
            const Operand out = DenseOutput(plan, kOut, 0, DType::kI64);
            auto& params = plan.MakeParams<order::CountParams>();
            params.count = self.numel();
            params.bins = values[kBins].integer;
            params.compute = ComputeOf(self.dtype);
            params.between = true;
            if (IsInteger(self.dtype)) {
              params.whole_low = WholeAs(low.AsInt(), self.dtype);
              params.whole_high = WholeAs(high.AsInt(), self.dtype);
              params.from_data = params.whole_low == params.whole_high;
            } else {
              params.low = RealAs(low, self.dtype);
              params.high = RealAs(high, self.dtype);
              params.from_data = params.low == params.high;
            }
            if (!self.empty()) plan.Bind(in, params.in);
            plan.Bind(out, params.out);
            ANYACL_RETURN_IF_ERROR(plan.ChooseKernel("count"));
            return FinishOutput(plan, kOut, 0, out);
          },
          .family = "order"};
}

// ---- Searching ------------------------------------------------------------------------------------------------------

template <int kFlag, int kOut>
std::string WidthAsAsked(Values values, Product) {
  const DType want = values[kFlag].flag ? DType::kI32 : DType::kI64;
  const DType got = values[kOut].tensor->dtype;
  return got == want ? "" : fmt::format("must be {} because of outInt32, got {}", Name(want), Name(got));
}

// `numbers` null: the one in `scalar`. `out_arg` takes the places.
Status AddSearch(PlanBuilder& plan, DType computed, const Operand& sequence, const Operand* numbers, const Scalar* scalar,
                 int sorter_arg, bool right, int out_arg) {
  const int64_t length = sequence.dims[sequence.dims.rank() - 1];
  Operand rows, in, sorter;
  ANYACL_RETURN_IF_ERROR(RowsInput(plan, sequence, computed, &rows));
  if (numbers) ANYACL_RETURN_IF_ERROR(RowsInput(plan, *numbers, computed, &in));
  if (sorter_arg >= 0 && length > 0) ANYACL_RETURN_IF_ERROR(DenseInput(plan, sorter_arg, 0, DType::kI64, &sorter));
  const Operand out = DenseOutput(plan, out_arg, 0, DType::kI64);
  auto& params = plan.MakeParams<order::SearchParams>();
  int64_t sequences = 1;
  for (int i = 0; i + 1 < sequence.dims.rank(); ++i) sequences *= sequence.dims[i];
  params.rows = sequences;
  params.length = length;
  params.count = numbers ? Numel(numbers->dims) / sequences : 1;
  params.compute = ComputeOf(computed);
  params.right = right;
  if (length > 0) plan.Bind(rows, params.sequence);
  if (sorter_arg >= 0 && length > 0) plan.Bind(sorter, params.sorter);
  if (numbers) {
    plan.Bind(in, params.in);
  } else if (ComputeOf(computed) == pointwise::Compute::kFloat) {
    const auto value = static_cast<float>(RealAs(*scalar, computed));
    std::memcpy(params.number, &value, sizeof(value));
  } else if (ComputeOf(computed) == pointwise::Compute::kDouble) {
    const double value = scalar->AsDouble();
    std::memcpy(params.number, &value, sizeof(value));
  } else {
    const int64_t value = WholeAs(scalar->AsInt(), computed);
    std::memcpy(params.number, &value, sizeof(value));
  }
  plan.Bind(out, params.out);
  ANYACL_RETURN_IF_ERROR(plan.ChooseKernel("search"));
  return FinishOutput(plan, out_arg, 0, out);
}

constexpr DTypeSet kSearched = kHalfless | types::kDouble | kInt5;

std::string SequenceFits(Values values, Product) {
  const Tensor &sequence = *values[0].tensor, &self = *values[1].tensor;
  if (sequence.rank() == 1) return "";
  bool fits = sequence.rank() > 1 && sequence.rank() == self.rank();
  for (int i = 0; fits && i + 1 < self.rank(); ++i) fits = sequence.dims[i] == self.dims[i];
  if (fits) return "";
  return fmt::format("must have one dim, or those of self but the last, got {} and {}", ToString(sequence.dims),
                     ToString(self.dims));
}

Operator MakeSearchSorted(const Entry& entry) {
  Table table = TableOf(entry, "search", "Where each number would be inserted into a sorted sequence.",
                        {.in_out = {}, .optional = {"sorter"}});
  table.formulas = {"out_i = first j with sequence_j >= self_i (right: > self_i), else the length"};
  table.deduce = {.from = {"sortedSequence", "self"}, .zero_dim = kAllProducts};
  AddNullRules(&table);
  Add(&table, {Supported(kNot200IInference), DTypes("sortedSequence", RowsOf(kSearched | kBFloat, kSearched)),
               DTypes("self", RowsOf(kSearched | kBFloat, kSearched)), Deduces(RowsOf(kSearched | kBFloat, kSearched)),
               DTypes("out", RowsOf({DType::kI32, DType::kI64})),
               Custom("out", "must be INT32 with outInt32, else INT64", WidthAsAsked<2, 5>),
               DTypes("sorter", RowsOf({DType::kI64})), Rank("sortedSequence", 1, 8), Rank("self", 0, 8),
               Custom("sortedSequence", "must have one dim, or those of self but the last", SequenceFits),
               SameShape("sorter", "sortedSequence"), SameShape("out", "self")});
  return {.contract = Contract(std::move(table)),
          .plan = [](Values values, PlanBuilder& plan) -> Status {
            enum { kSequence, kSelf, kShort, kRight, kSorter, kOut };
            if (values[kSelf].tensor->empty()) return {};
            const Operand numbers = plan.TensorOperand(kSelf);
            return AddSearch(plan, plan.op().contract.Deduced(values), plan.TensorOperand(kSequence), &numbers, nullptr,
                             values[kSorter].given() ? kSorter : -1, values[kRight].flag, kOut);
          },
          .family = "order"};
}

Operator MakeSearchSorteds(const Entry& entry) {
  Table table = TableOf(entry, "search", "Where a number would be inserted into a sorted sequence.",
                        {.in_out = {}, .optional = {"sorter"}});
  table.formulas = {"out = first j with sequence_j >= self (right: > self), else the length"};
  table.deduce = {.from = {"sortedSequence", "self"}};
  AddNullRules(&table);
  Add(&table, {Supported(Of({Product::kAscend950, Product::kA3, Product::kA2, Product::kTraining})),
               DTypes("sortedSequence", RowsOf(kSearched | kBFloat, kSearched)),
               Deduces(RowsOf(kSearched | kBFloat, kSearched)), DTypes("out", RowsOf({DType::kI32, DType::kI64})),
               Custom("out", "must be INT32 with outInt32, else INT64", WidthAsAsked<2, 5>),
               DTypes("sorter", RowsOf({DType::kI64})), Rank("sortedSequence", 1, 1),
               SameShape("sorter", "sortedSequence"), NumelIs("out", "1")});
  return {.contract = Contract(std::move(table)),
          .plan = [](Values values, PlanBuilder& plan) -> Status {
            enum { kSequence, kSelf, kShort, kRight, kSorter, kOut };
            return AddSearch(plan, plan.op().contract.Deduced(values), plan.TensorOperand(kSequence), nullptr,
                             values[kSelf].scalar, values[kSorter].given() ? kSorter : -1, values[kRight].flag, kOut);
          },
          .family = "order"};
}

Operator MakeBucketize(const Entry& entry) {
  Table table = TableOf(entry, "search", "Between which boundaries each number lies.");
  table.formulas = {"out_i = first j with self_i <= boundaries_j (right: <), else their number"};
  table.deduce = {.from = {"boundaries", "self"}, .zero_dim = kAllProducts};
  constexpr DTypeSet kTypes = kSearched | kBFloat;
  AddNullRules(&table);
  Add(&table, {Supported(kOnly950).Code(561000), DTypes("self", RowsOf(kTypes)), DTypes("boundaries", RowsOf(kTypes)),
               Deduces(RowsOf(kTypes)), DTypes("out", RowsOf({DType::kI32, DType::kI64})),
               Custom("out", "must be INT32 with outInt32, else INT64", WidthAsAsked<2, 4>), Rank("self", 0, 8),
               Rank("boundaries", 1, 1), SameShape("out", "self")});
  return {.contract = Contract(std::move(table)),
          .plan = [](Values values, PlanBuilder& plan) -> Status {
            enum { kSelf, kBoundaries, kShort, kRight, kOut };
            if (values[kSelf].tensor->empty()) return {};
            const Operand numbers = plan.TensorOperand(kSelf);
            return AddSearch(plan, plan.op().contract.Deduced(values), plan.TensorOperand(kBoundaries), &numbers, nullptr,
                             -1, values[kRight].flag, kOut);
          },
          .family = "order"};
}

}  // namespace

void DeclareSearch(Declarations& declarations) {
  declarations.Add("aclnnBincount", MakeBincount);
  declarations.Add("aclnnHistc", MakeHistc);
  declarations.Add("aclnnSearchSorted", MakeSearchSorted);
  declarations.Add("aclnnSearchSorteds", MakeSearchSorteds);
  declarations.Add("aclnnBucketize", MakeBucketize);
}

}  // namespace anyacl
