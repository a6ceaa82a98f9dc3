// SPDX-License-Identifier: Apache-2.0
// Copyright The AnyACL Authors
//
// Tensors whose elements come from numbers alone.
#include <cmath>
#include <limits>
#include <string>
#include <vector>

#include "ops/creation/series.h"
#include "ops/indexing/steps.h"
#include "ops/movement/common.h"

namespace anyacl {
namespace creation {
namespace {

using namespace contract;
using namespace movement;

constexpr DTypeSet kAll15 = types::kBasic10 | types::kUnsigned3 | types::kComplex;
constexpr DTypeSet kNewest = kAll15 | types::kComplex32;

bool IsComplexType(DType t) { return IsComplex(t) || t == DType::kC32; }

// --- one value -----------------------------------------------------------------------------------

template <int kValue>
Operator MakeConstant(const Entry& entry) {
  Table table = TableOf(entry, "pointwise", kValue == 0 ? "Sets all elements to 0." : "Sets all elements to 1.", {.outputs = {"selfRef"}});
  AddNullRules(&table);
  std::vector<TypeRow> rows =
      kValue == 0 ? RowsOf(kNewest, types::kBasic10 | types::kComplex | DTypeSet{DType::kU16}) : RowsOf(kNewest, types::kBasic10);
  for (TypeRow& row : rows) {
    if (kValue == 0 && row.types[0] == DType::kBF16) row.products = kAllProducts;
  }
  Add(&table, {Supported(kFive), DTypes("selfRef", rows)});
  AddStorageRules(&table);
  if (kValue != 0) AddRankRules(&table);
  return {.contract = Contract(std::move(table)),
          .plan = [](Values values, PlanBuilder& plan) -> Status {
            if (values[0].tensor->empty()) return {};
            return AddFill(plan, plan.TensorOperand(0), Scalar::OfInt(kValue));
          },
          .family = "creation"};
}

// Unsigned tensors take a scalar of their own dtype alone on products that follow the table of deductions.
std::string WrongFillValue(Values v, Product product) {
  const DType self = v[0].tensor->dtype, value = v[1].scalar->dtype;
  const bool is_wide = types::kUnsigned3.Has(self) || types::kUnsigned3.Has(value);
  if (product == Product::kAscend950 || !is_wide || self == value) return "";
  return "must have the dtype of selfRef, " + Name(self) + ", got " + Name(value);
}

Operator MakeFillScalar(const Entry& entry) {
  Table table = TableOf(entry, "pointwise", "Sets all elements to one number.", {.outputs = {"selfRef"}});
  table.notes = {"Of a complex value a real tensor takes the real part."};
  AddNullRules(&table);
  std::vector<TypeRow> rows = RowsOf(kNewest, types::kBasic10 | types::kComplex);
  for (TypeRow& row : rows) {
    if (types::kUnsigned3.Has(row.types[0])) row.products = kNewer;
  }
  Add(&table, {Supported(kFive), DTypes("selfRef", rows),
               Custom("value", "must have the dtype of an unsigned selfRef before the newest product", WrongFillValue)});
  AddStorageRules(&table);
  AddRankRules(&table);
  return {.contract = Contract(std::move(table)),
          .plan = [](Values values, PlanBuilder& plan) -> Status {
            if (values[0].tensor->empty()) return {};
            return AddFill(plan, plan.TensorOperand(0), *values[1].scalar);
          },
          .family = "creation"};
}

std::string NotOneElement(Values v, Product) {
  const Dims& dims = v[1].tensor->dims;
  return dims.rank() == 0 || dims == Dims{1} ? "" : "must have shape [] or [1], got " + ToString(dims);
}

Operator MakeFillTensor(const Entry& entry) {
  Table table = TableOf(entry, "pointwise", "Sets all elements to the one element of a tensor.", {.outputs = {"selfRef"}});
  AddNullRules(&table);
  Add(&table, {Supported(kFive), DTypes("selfRef", RowsOf(kNewest, types::kBasic10 | types::kComplex)), DTypes("value", EverywhereRows(kNewest))});
  AddStorageRules(&table);
  AddRankRules(&table);
  Add(&table, {Custom("value", "must have shape [] or [1]", NotOneElement)});
  return {.contract = Contract(std::move(table)),
          .plan = [](Values values, PlanBuilder& plan) -> Status {
            if (values[0].tensor->empty()) return {};
            Operand value = plan.TensorOperand(1);
            if (plan.Overlaps(value, /*exact_too=*/true)) {
              const Operand copy = plan.ScratchOperand("value", value.dtype, value.dims);
              ANYACL_RETURN_IF_ERROR(pointwise::AddCopy(plan, value, copy));
              value = copy;
            }
            return pointwise::AddCopy(plan, value, plan.TensorOperand(0));
          },
          .family = "creation"};
}

std::string WrongDiagonalShape(Values v, Product) {
  const Dims& dims = v[0].tensor->dims;
  for (int i = 1; dims.rank() > 2 && i < dims.rank(); ++i) {
    if (dims[i] != dims[0]) return "must have equal sizes on more than 2 axes, got " + ToString(dims);
  }
  return "";
}
// As PyTorch: down to minus the largest of an unsigned type.
std::string BeyondRange(Values v, Product) {
  const DType self = v[0].tensor->dtype;
  const Scalar& value = *v[1].scalar;
  if (self == DType::kBool || self == DType::kBF16 || IsComplexType(self)) return "";
  const double x = value.AsDouble();
  bool fits = true;
  if (IsInteger(self)) {
    const bool is_signed = self == DType::kI8 || self == DType::kI16 || self == DType::kI32 || self == DType::kI64;
    const double end = std::ldexp(1.0, static_cast<int>(8 * SizeOf(self)) - is_signed);
    fits = std::trunc(x) < end && std::trunc(x) >= (is_signed ? -end : 1 - end);
  } else if (std::isfinite(x) && self != DType::kF64) {
    fits = std::fabs(x) <= (self == DType::kF16 ? 65504.0 : static_cast<double>(std::numeric_limits<float>::max()));
  }
  return fits ? "" : "must be a number of " + Name(self) + ", got " + std::to_string(x);
}
std::string ComplexDiagonal(Values v, Product) {
  return IsComplexType(v[1].scalar->dtype) && !IsComplex(v[0].tensor->dtype) ? "must not be complex for a real selfRef, got " + Name(v[1].scalar->dtype) : "";
}

Operator MakeFillDiagonal(const Entry& entry) {
  enum { kSelf, kValue, kWrap };
  Table table = TableOf(entry, "pointwise", "Sets the main diagonal to one number.", {.in_out = {"selfRef"}});
  table.notes = {"With wrap the diagonal of a tall matrix goes on after a gap of one row."};
  AddNullRules(&table);
  Add(&table, {Supported(kNewerAndInference), DTypes("selfRef", RowsOf(kAll15, types::kBasic10))});
  AddStorageRules(&table);
  Add(&table, {Rank("selfRef", 2, 8), Custom("selfRef", "must have equal sizes on more than 2 axes", WrongDiagonalShape),
               Custom("fillValue", "must not be complex for a real selfRef", ComplexDiagonal),
               Custom("fillValue", "must be a number of selfRef's dtype", BeyondRange)});
  return {.contract = Contract(std::move(table)),
          .plan = [](Values values, PlanBuilder& plan) -> Status {
            if (values[kSelf].tensor->empty()) return {};
            const Operand self = plan.TensorOperand(kSelf);
            const Scalar& value = *values[kValue].scalar;
            const int64_t rows = self.dims[0], columns = self.dims[1];
            if (self.dims.rank() > 2) {
              Operand diagonal = self;
              diagonal.dims = {rows};
              diagonal.strides = {0};
              for (const int64_t stride : self.strides) diagonal.strides[0] += stride;
              return AddFill(plan, diagonal, value);
            }
            if (!values[kWrap].flag || rows <= columns) return AddFill(plan, DiagonalOf(self, 0), value);
            // Squares of columns + 1 rows, each with its diagonal, and what is left.
            const int64_t period = columns + 1, whole = rows / period;
            if (whole > 0) {
              const Operand squares = SplitAxis(Narrow(self, 0, 0, whole * period), 0, period);
              ANYACL_RETURN_IF_ERROR(AddFill(plan, DiagonalOf(squares, 0), value));
            }
            const int64_t rest = rows - whole * period;
            if (rest == 0) return {};
            return AddFill(plan, DiagonalOf(Narrow(self, 0, whole * period, rest), 0), value);
          },
          .family = "creation"};
}

std::string Negative(int64_t value) { return value >= 0 ? "" : "must not be negative, got " + std::to_string(value); }
Dims EyeDims(Values v) { return {v[0].integer, v[1].integer}; }

Operator MakeEye(const Entry& entry) {
  Table table = TableOf(entry, "pointwise", "A matrix with 1 on its diagonal and 0 elsewhere.");
  constexpr DTypeSet kOlder = types::kFloat3 | types::kInt5Bool;
  AddNullRules(&table);
  Add(&table, {Supported(kFive), DTypes("out", RowsOf(kOlder | types::kDouble | types::kComplex, kOlder))});
  AddStorageRules(&table);
  Add(&table, {Rank("out", 2, 2), Custom("n", "must not be negative", [](Values v, Product) { return Negative(v[0].integer); }),
               Custom("m", "must not be negative", [](Values v, Product) { return Negative(v[1].integer); }),
               ShapeOf<2, EyeDims>("out", "must have shape [n, m]")});
  return {.contract = Contract(std::move(table)),
          .plan = [](Values values, PlanBuilder& plan) -> Status {
            if (values[2].tensor->empty()) return {};
            const Operand out = plan.TensorOperand(2);
            ANYACL_RETURN_IF_ERROR(AddZeros(plan, out));
            return AddFill(plan, DiagonalOf(out, 0), Scalar::OfInt(1));
          },
          .family = "creation"};
}

// --- series --------------------------------------------------------------------------------------

// Written row-major, through scratch memory where out is a view.
Status AddSeries(PlanBuilder& plan, const SeriesParams& series, int out_arg) {
  const Operand out = plan.TensorOperand(out_arg);
  const Operand dense = out.row_major() ? out : plan.ScratchOperand("series", out.dtype, out.dims);
  SeriesParams& p = plan.MakeParams<SeriesParams>();
  p = series;
  p.count = Numel(out.dims);
  p.dtype = out.dtype;
  plan.Bind(dense, p.out);
  ANYACL_RETURN_IF_ERROR(plan.ChooseKernel("series"));
  return out.row_major() ? Status() : pointwise::AddCopy(plan, dense, out);
}

enum { kStart, kEnd, kStep, kArangeOut };

std::string WrongStep(Values v, Product) {
  const Scalar &start = *v[kStart].scalar, &end = *v[kEnd].scalar, &step = *v[kStep].scalar;
  const DType out = v[kArangeOut].tensor->dtype;
  bool is_zero, forwards, backwards;
  if (IsInteger(out)) {
    is_zero = step.AsInt() == 0;
    forwards = start.AsInt() <= end.AsInt();
    backwards = start.AsInt() >= end.AsInt();
  } else {
    is_zero = step.AsDouble() == 0 || std::isnan(step.AsDouble());
    forwards = start.AsDouble() <= end.AsDouble();
    backwards = start.AsDouble() >= end.AsDouble();
  }
  if (is_zero) return "must not be 0 or NaN, got " + std::to_string(step.AsDouble());
  const bool positive = IsInteger(out) ? step.AsInt() > 0 : step.AsDouble() > 0;
  return (positive ? forwards : backwards) ? ""
                                           : "must lead from start to end, got " + std::to_string(step.AsDouble()) + " from " +
                                                 std::to_string(start.AsDouble()) + " to " + std::to_string(end.AsDouble());
}

template <bool kClosed>
Operator MakeArange(const Entry& entry) {
  Table table = TableOf(entry, "series", kClosed ? "Numbers from start to end, both included, one step apart." : "Numbers from start up to end, one step apart.");
  table.formulas = {"out[i] = start + i * step"};
  table.notes = {"Floating numbers are computed in DOUBLE and rounded once; for whole ones start and step are cut off first.",
                 "The series goes on for as many elements as out has."};
  constexpr DTypeSet kOlder = types::kFloat3 | types::kDouble | types::kIndex;
  AddNullRules(&table);
  Add(&table, {Supported(kClosed ? kAllProducts : kFive), ScalarDTypes("start", EverywhereRows(types::kBasic10)),
               ScalarDTypes("end", EverywhereRows(types::kBasic10)), ScalarDTypes("step", EverywhereRows(types::kBasic10)),
               DTypes("out", RowsOf(kOlder | DTypeSet{DType::kI8, DType::kU8, DType::kI16}, kOlder))});
  AddStorageRules(&table);
  Add(&table, {Rank("out", kClosed ? 1 : 0, 8), Custom("step", "must not be 0, and lead from start to end", WrongStep)});
  return {.contract = Contract(std::move(table)),
          .plan = [](Values values, PlanBuilder& plan) -> Status {
            const Tensor& out = *values[kArangeOut].tensor;
            if (out.empty()) return {};
            const Scalar &start = *values[kStart].scalar, &step = *values[kStep].scalar;
            SeriesParams p{};
            p.kind = IsInteger(out.dtype) ? SeriesParams::kWholeSteps : SeriesParams::kSteps;
            p.whole = start.AsInt();
            p.whole_step = step.AsInt();
            p.start[0] = start.AsDouble();
            p.step[0] = step.AsDouble();
            return AddSeries(plan, p, kArangeOut);
          },
          .family = "creation"};
}

// The end of a series as out's dtype has it.
std::complex<double> EndIn(const Scalar& value, DType dtype) {
  if (IsComplexType(dtype)) {
    const std::complex<double> z = value.AsComplex();
    return dtype == DType::kC128 ? z : std::complex<double>(std::complex<float>(z));
  }
  if (IsInteger(dtype)) return static_cast<double>(value.AsInt());
  return Scalar::Of(dtype, value.AsDouble()).AsDouble();
}

SeriesParams LineBetween(const Scalar& start, const Scalar& end, DType dtype, int64_t steps) {
  SeriesParams p{};
  p.kind = SeriesParams::kBetween;
  const std::complex<double> a = EndIn(start, dtype), b = EndIn(end, dtype);
  const double last = static_cast<double>(steps - 1);
  p.start[0] = a.real();
  p.start[1] = a.imag();
  p.end[0] = steps == 1 ? a.real() : b.real();
  p.end[1] = steps == 1 ? a.imag() : b.imag();
  p.step[0] = steps == 1 ? 0 : (b.real() - a.real()) / last;
  p.step[1] = steps == 1 ? 0 : (b.imag() - a.imag()) / last;
  return p;
}

template <int kArg, int kOutArg>
std::string ComplexEnd(Values v, Product) {
  const DType end = v[kArg].scalar->dtype;
  return IsComplexType(end) && !IsComplex(v[kOutArg].tensor->dtype) ? "must be real for a real result, got " + Name(end) : "";
}
template <int kOutArg>
std::string WrongStepCount(Values v, Product) {
  return v[kOutArg].tensor->numel() == v[2].integer
             ? ""
             : "must have steps elements, " + std::to_string(v[2].integer) + ", got shape " + ToString(v[kOutArg].tensor->dims);
}

Operator MakeLinspace(const Entry& entry) {
  Table table = TableOf(entry, "series", "Numbers at equal distances from start to end.");
  table.formulas = {"out[i] = start + i * (end - start) / (steps - 1)"};
  table.notes = {"start and end are converted to the dtype of out first; the second half is counted from end, so that it is met exactly."};
  constexpr DTypeSet kOlder = types::kFloat3 | types::kDouble | types::kInt5;
  std::vector<TypeRow> rows = RowsOf(kOlder | types::kComplex, kOlder);
  for (TypeRow& row : rows) {
    const DType t = row.types[0];
    if (t == DType::kI16 || t == DType::kI64) row.products = kNewer;
  }
  AddNullRules(&table);
  Add(&table, {Supported(kFive), Custom("start", "must be real for a real result", ComplexEnd<0, 3>), Custom("end", "must be real for a real result", ComplexEnd<1, 3>),
               DTypes("out", rows)});
  AddStorageRules(&table);
  Add(&table, {Rank("out", 0, 8), Custom("steps", "must not be negative", [](Values v, Product) { return Negative(v[2].integer); }),
               Custom("out", "must have steps elements", WrongStepCount<3>)});
  return {.contract = Contract(std::move(table)),
          .plan = [](Values values, PlanBuilder& plan) -> Status {
            const Tensor& out = *values[3].tensor;
            if (out.empty()) return {};
            return AddSeries(plan, LineBetween(*values[0].scalar, *values[1].scalar, out.dtype, values[2].integer), 3);
          },
          .family = "creation"};
}

Operator MakeLogSpace(const Entry& entry) {
  Table table = TableOf(entry, "series", "Powers of base, their exponents at equal distances.", {.outputs = {"result"}});
  table.formulas = {"result[i] = base ** (start + i * (end - start) / (steps - 1))"};
  constexpr DTypeSet kOlder = types::kFloat3;
  AddNullRules(&table);
  Add(&table, {Supported(kNewer), DTypes("result", RowsOf(kOlder | types::kDouble | types::kInt5 | types::kComplex, kOlder)),
               Custom("start", "must be real for a real result", ComplexEnd<0, 4>), Custom("end", "must be real for a real result", ComplexEnd<1, 4>)});
  AddStorageRules(&table);
  Add(&table, {Rank("result", 0, 8), Custom("steps", "must not be negative", [](Values v, Product) { return Negative(v[2].integer); }),
               Custom("result", "must have steps elements", WrongStepCount<4>)});
  return {.contract = Contract(std::move(table)),
          .plan = [](Values values, PlanBuilder& plan) -> Status {
            const Tensor& out = *values[4].tensor;
            if (out.empty()) return {};
            SeriesParams p = LineBetween(*values[0].scalar, *values[1].scalar, out.dtype, values[2].integer);
            p.kind = SeriesParams::kPowers;
            p.base = values[3].real;
            return AddSeries(plan, p, 4);
          },
          .family = "creation"};
}

// --- one hot -------------------------------------------------------------------------------------

enum { kClasses, kNumClasses, kOn, kOff, kAxis, kHot };

int64_t ClassCount(Values v) { return static_cast<int32_t>(v[kNumClasses].integer); }
int HotAxis(Values v) { return v[kAxis].integer == -1 ? v[kClasses].tensor->rank() : static_cast<int>(v[kAxis].integer); }
std::string WrongClasses(Values v, Product) {
  const int64_t count = ClassCount(v);
  const bool fits = count > 0 || (count == 0 && !v[kClasses].tensor->empty());
  return fits ? "" : "must not be negative, and positive for an empty self, got " + std::to_string(count);
}
std::string WrongHotAxis(Values v, Product) {
  const int rank = v[kClasses].tensor->rank();
  return v[kAxis].integer >= -1 && v[kAxis].integer <= rank ? "" : "must be in [-1, " + std::to_string(rank) + "], got " + std::to_string(v[kAxis].integer);
}
Dims HotDims(Values v) {
  const Dims& self = v[kClasses].tensor->dims;
  Dims dims;
  for (int i = 0; i <= self.rank(); ++i) {
    if (i == HotAxis(v)) dims.push_back(ClassCount(v));
    if (i < self.rank()) dims.push_back(self[i]);
  }
  return dims;
}
template <int kArg>
std::string NoValue(Values v, Product) {
  return v[kArg].tensor->empty() ? "must have an element, got shape " + ToString(v[kArg].tensor->dims) : "";
}

Operator MakeOneHot(const Entry& entry) {
  Table table = TableOf(entry, "walk", "A new axis with onValue at the place that self names and offValue elsewhere.");
  table.formulas = {"out[..., c, ...] = c == self[...] ? onValue : offValue"};
  table.notes = {"Places outside of the axis turn nothing on."};
  constexpr DTypeSet kOlder = {DType::kF16, DType::kF32, DType::kI32, DType::kI64};
  AddNullRules(&table);
  Add(&table, {Supported(kFive), DTypes("self", RowsOf(types::kIndex | DTypeSet{DType::kU8}, types::kIndex)),
               DTypes("out", RowsOf(kOlder | DTypeSet{DType::kI8, DType::kU8}, kOlder)), SameDType("onValue", "out"), SameDType("offValue", "out")});
  AddStorageRules(&table);
  Add(&table, {Rank("self", 0, 7), Rank("onValue", 0, 8), Rank("offValue", 0, 8), Rank("out", 0, 8),
               Custom("numClasses", "must not be negative, and positive for an empty self", WrongClasses),
               Custom("axis", "must be -1 or an axis of out", WrongHotAxis), ShapeOf<kHot, HotDims>("out", "must have numClasses places on the new axis"),
               Custom("onValue", "must have an element", NoValue<kOn>), Custom("offValue", "must have an element", NoValue<kOff>)});
  return {.contract = Contract(std::move(table)),
          .plan = [](Values values, PlanBuilder& plan) -> Status {
            if (values[kHot].tensor->empty()) return {};
            const Operand out = ApartOutput(plan, kHot);
            const auto first_of = [&](int arg) {
              Operand one = plan.TensorOperand(arg);
              one.dims = one.strides = Dims();
              return one;
            };
            ANYACL_RETURN_IF_ERROR(pointwise::AddCopy(plan, first_of(kOff), out));
            Operand index;
            ANYACL_RETURN_IF_ERROR(indexing::IndexOperand(plan, kClasses, &index));
            const int axis = HotAxis(values);
            std::vector<indexing::Axis> axes;
            for (int i = 0; i < index.dims.rank(); ++i) {
              axes.push_back({indexing::Axis::kLane, index.dims[i], out.strides[i < axis ? i : i + 1], 0, {index.strides[i]}});
            }
            ANYACL_RETURN_IF_ERROR(indexing::AddWalk(plan, {indexing::Action::kSet, out, first_of(kOn), std::move(axes),
                                                            {{index, out.dims[axis], out.strides[axis], false}}}));
            return pointwise::FinishOutput(plan, kHot, 0, out);
          },
          .family = "creation"};
}

}  // namespace
}  // namespace creation

void DeclareCreation(Declarations& declarations) {
  using namespace creation;
  declarations.Add("aclnnArange", MakeArange<false>);
  declarations.Add("aclnnEye", MakeEye);
  declarations.Add("aclnnInplaceFillDiagonal", MakeFillDiagonal);
  declarations.Add("aclnnInplaceFillScalar", MakeFillScalar);
  declarations.Add("aclnnInplaceFillTensor", MakeFillTensor);
  declarations.Add("aclnnInplaceOne", MakeConstant<1>);
  declarations.Add("aclnnInplaceZero", MakeConstant<0>);
  declarations.Add("aclnnLinspace", MakeLinspace);
  declarations.Add("aclnnLogSpace", MakeLogSpace);
  declarations.Add("aclnnOneHot", MakeOneHot);
  declarations.Add("aclnnRange", MakeArange<true>);
}

}  // namespace anyacl
