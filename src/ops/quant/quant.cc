// SPDX-License-Identifier: Apache-2.0
// Copyright The AnyACL Authors
//
// Numbers to and from INT8, by scales that are given or that the numbers decide.
#include <fmt/format.h>

#include <string_view>

#include "core/codes.h"
#include "ops/dense.h"
#include "ops/operators.h"
#include "ops/pointwise/formulas.h"
#include "ops/pointwise/pass.h"
#include "ops/reduction/add_reduce.h"
#include "ops/table.h"

namespace anyacl {
namespace {

using namespace contract;
using pointwise::AddPass;
using pointwise::ConstantOperand;
using pointwise::Formula;
using pointwise::ScalarUse;

constexpr DType F32 = DType::kF32;

enum { kX, kScale, kOffset };

bool HasElements(const Value& v) { return v.given() && !v.tensor->empty(); }
ScalarUse Number(double value) { return {Scalar::Of(DType::kF64, value)}; }

// out = formula(a, b), or formula(a, number), in FLOAT.
Status Combine(PlanBuilder& plan, Formula formula, const Operand& a, const Operand& b, const Operand& out) {
  const Operand inputs[] = {a, b};
  const ScalarUse alpha[] = {Number(1)};  // of sums
  return AddPass(plan, formula, F32, inputs, out, alpha);
}
Status Combine(PlanBuilder& plan, Formula formula, const Operand& a, double number, const Operand& out) {
  const Operand inputs[] = {a, ConstantOperand(0)};
  const ScalarUse scalar[] = {Number(number)};
  return AddPass(plan, formula, F32, inputs, out, scalar);
}

// out = what INT8 holds of the rounded numbers; `mode` as the formula RoundOff numbers them. The numbers are overwritten.
constexpr int kToEven = 1;
Status AddRounded(PlanBuilder& plan, const Operand& numbers, int mode, const Operand& out) {
  ANYACL_RETURN_IF_ERROR(Combine(plan, Formula::kRoundOff, numbers, mode, numbers));
  const Operand inputs[] = {numbers, ConstantOperand(0), ConstantOperand(1)};
  const ScalarUse limits[] = {Number(-128), Number(127)};
  return AddPass(plan, Formula::kClamp, F32, inputs, out, limits);
}

// ---- AscendQuant ----

// Where the versions have their other arguments.
struct Places {
  int root, mode, type, axis, y;
};
constexpr Places kV1 = {3, 4, 5, -1, 6}, kV3 = {3, 4, 5, 6, 7};

constexpr std::string_view kModes[] = {"round", "floor", "ceil", "", "trunc"};  // as the formula RoundOff numbers them, from 1 on
int ModeOf(std::string_view text) {
  for (size_t i = 0; i < std::size(kModes); ++i) {
    if (!text.empty() && kModes[i] == text) return static_cast<int>(i) + 1;
  }
  return 0;
}

// Of x that the scales follow.
int AxisOf(const Places& p, Values v) {
  const int rank = v[kX].tensor->rank();
  if (p.axis < 0) return rank - 1;
  const int64_t axis = v[p.axis].integer;
  return static_cast<int>(axis < 0 ? axis + rank : axis);
}

template <const Places& P>
std::string WrongMode(Values v, Product) {
  return ModeOf(v[P.mode].text) > 0 ? "" : fmt::format("must be round, ceil, floor or trunc, got {}", v[P.mode].text);
}
template <const Places& P>
std::string WrongAxis(Values v, Product) {
  const int axis = AxisOf(P, v), rank = v[kX].tensor->rank();
  return axis >= 0 && (axis == rank - 1 || axis == rank - 2) ? "" : fmt::format("must be one of the last two dims of x, got {} for {}", v[P.axis].integer, ToString(v[kX].tensor->dims));
}
// [1], [n], or as many dims as x has, 1 but for the axis.
template <const Places& P>
std::string WrongScale(Values v, Product) {
  const Dims &x = v[kX].tensor->dims, &scale = v[kScale].tensor->dims;
  const int axis = AxisOf(P, v);
  Dims whole = x;
  for (int i = 0; i < x.rank(); ++i) whole[i] = i == axis ? x[i] : 1;
  const bool fits = scale == Dims{1} || scale == Dims{x[axis]} || scale == whole;
  return fits ? "" : fmt::format("must have 1 element or {}, along one axis, got {}", x[axis], ToString(scale));
}
std::string WrongScaleType(Values v, Product) {
  const DType x = v[kX].tensor->dtype, scale = v[kScale].tensor->dtype;
  return scale == x || x == F32 ? "" : fmt::format("must be {} as x, got {}", Name(x), Name(scale));
}
// Results that take less than a byte, or four of them.
template <int kType>
std::string NotPacked(Values v, Product) {
  constexpr int64_t kI32 = 3, kI4 = 29;
  const int64_t type = v[kType].integer;
  return type == kI32 || type == kI4 ? fmt::format("must be 2, got {}, which is not supported", type) : "";
}

// Along an axis that is not the last one.
Operand Along(Operand operand, int behind) {
  for (int i = 0; i < behind && operand.dims.rank() == 1; ++i) {
    operand.dims.push_back(1);
    operand.strides.push_back(0);
  }
  return operand;
}

template <const Places& P>
Status PlanQuant(Values v, PlanBuilder& plan) {
  if (v[kX].tensor->empty()) return {};
  plan.RequireApart(P.y);
  const int behind = v[kX].tensor->rank() - 1 - AxisOf(P, v);
  const Operand t = plan.ScratchOperand("scaled", F32, v[kX].tensor->dims), scale = Along(plan.TensorOperand(kScale), behind);
  ANYACL_RETURN_IF_ERROR(Combine(plan, Formula::kMul, plan.TensorOperand(kX), scale, t));
  if (v[P.root].flag) ANYACL_RETURN_IF_ERROR(Combine(plan, Formula::kMul, t, scale, t));
  if (HasElements(v[kOffset])) ANYACL_RETURN_IF_ERROR(Combine(plan, Formula::kAdd, t, Along(plan.TensorOperand(kOffset), behind), t));
  return AddRounded(plan, t, ModeOf(v[P.mode].text), plan.TensorOperand(P.y));
}

template <const Places& P>
Operator MakeQuant(const Entry& entry) {
  const auto name = [&](int arg) { return entry.args[arg].name; };
  Table table = TableOf(entry, "pointwise", "Numbers to INT8 by given scales.", {.optional = {"offset"}, .outputs = {"y"}});
  table.formulas = {"y = min(max(round(x * scale + offset), -128), 127), with scale * scale when sqrtMode is true"};
  AddNullRules(&table);
  Add(&table, {Supported(kNewer), Custom("dstType", "must be 2: results of 4 bits are not supported", NotPacked<P.type>).Code(code::kNoKernel),
               OneOf("dstType", {2}), DTypes("x", RowsOf(types::kFloat3)), DTypes("scale", RowsOf(types::kFloat3)),
               Custom("scale", "must have the dtype of x, or any where that is FLOAT", WrongScaleType), SameDType("offset", "scale"),
               DTypes("y", {{{DType::kI8}}}), Custom(name(P.mode), "must be round, ceil, floor or trunc", WrongMode<P>),
               Rank("x", P.axis < 0 ? 1 : 2, 8)});
  if constexpr (P.axis >= 0) Add(&table, {Custom(name(P.axis), "must be one of the last two dims of x", WrongAxis<P>)});
  Add(&table, {Custom("scale", "must have 1 element, or one for each along an axis of x", WrongScale<P>), SameShape("offset", "scale"), SameShape("y", "x")});
  return {.contract = Contract(std::move(table)), .plan = PlanQuant<P>, .family = "quant"};
}

// ---- AscendAntiQuant ----

struct Anti {
  enum { kType = 3, kRoot, kY };
};

// Aligned at the last axis, with one of the last two of x at most.
std::string WrongAntiScale(Values v, Product) {
  const Dims &x = v[kX].tensor->dims, &scale = v[kScale].tensor->dims;
  int along = 0;
  bool fits = scale.rank() <= x.rank();
  for (int back = 1; back <= scale.rank() && fits; ++back) {
    const int64_t size = scale[scale.rank() - back];
    if (size == 1) continue;
    fits = back <= 2 && ++along == 1 && size == x[x.rank() - back];
  }
  return fits ? "" : fmt::format("must have 1 element, or one for each along one of the last two dims of x, got {} for {}", ToString(scale), ToString(x));
}

Status PlanAntiQuant(Values v, PlanBuilder& plan) {
  if (v[kX].tensor->empty()) return {};
  plan.RequireApart(Anti::kY);
  const Operand t = plan.ScratchOperand("numbers", F32, v[kX].tensor->dims), scale = plan.TensorOperand(kScale), x = plan.TensorOperand(kX);
  const bool has_offset = HasElements(v[kOffset]), root = v[Anti::kRoot].flag;
  if (has_offset) ANYACL_RETURN_IF_ERROR(Combine(plan, Formula::kAdd, x, plan.TensorOperand(kOffset), t));
  if (root) ANYACL_RETURN_IF_ERROR(Combine(plan, Formula::kMul, has_offset ? t : x, scale, t));
  return Combine(plan, Formula::kMul, has_offset || root ? t : x, scale, plan.TensorOperand(Anti::kY));
}

Operator MakeAntiQuant(const Entry& entry) {
  Table table = TableOf(entry, "pointwise", "INT8 to numbers by given scales.", {.optional = {"offset"}, .outputs = {"y"}});
  table.formulas = {"y = (x + offset) * scale, with scale * scale when sqrtMode is true"};
  AddNullRules(&table);
  Add(&table, {Supported(kNewer), DTypes("x", {{{DType::kI8}}}), DTypes("scale", RowsOf({F32, DType::kBF16})), SameDType("offset", "scale"),
               DTypeArg("dstType", RowsOf({DType::kF16, DType::kBF16})), DTypeIs("y", "dstType"), Rank("x", 1, 8),
               Custom("scale", "must have 1 element, or one for each along one of the last two dims of x", WrongAntiScale), SameShape("offset", "scale"),
               SameShape("y", "x")});
  return {.contract = Contract(std::move(table)), .plan = PlanAntiQuant, .family = "quant"};
}

// ---- DynamicQuant ----

struct DynamicPlaces {
  int group, type, symmetric, mode, y, scale, offset;
};
constexpr DynamicPlaces kD1 = {-1, -1, -1, -1, 2, 3, -1}, kD2 = {2, 3, -1, -1, 4, 5, 6}, kD3 = {2, 3, 4, 5, 6, 7, 8}, kD4 = {2, 3, 4, 5, 7, 8, 9};
constexpr int kSmooth = 1;

Dims Leading(Dims dims) {
  dims.resize(dims.rank() - 1);
  return dims;
}

template <const DynamicPlaces& P>
std::string NotNarrow(Values v, Product) {
  const DType t = v[P.y].tensor->dtype;
  const bool other = t != DType::kI8 && !types::kFloat3.Has(t) && t != DType::kF64 && t != DType::kBool && (SizeOf(t) <= 1 || t == DType::kI32);
  return other ? fmt::format("must be INT8, got {}, which is not supported", Name(t)) : "";
}
std::string WrongSmooth(Values v, Product) {
  if (!HasElements(v[kSmooth])) return "";
  const Dims &x = v[kX].tensor->dims, &got = v[kSmooth].tensor->dims, want = {x[x.rank() - 1]};
  return got == want ? "" : fmt::format("must have shape {}, got {}", ToString(want), ToString(got));
}
template <const DynamicPlaces& P>
std::string WrongRows(Values v, Product) {
  const Dims want = Leading(v[kX].tensor->dims), &got = v[P.scale].tensor->dims;
  return got == want ? "" : fmt::format("must have shape {}, got {}", ToString(want), ToString(got));
}
template <const DynamicPlaces& P>
std::string NotSymmetric(Values v, Product) {
  return v[P.symmetric].flag ? "" : "must be true, got false, which is not supported";
}
template <const DynamicPlaces& P>
std::string NotPerToken(Values v, Product) {
  return std::string_view(v[P.mode].text) == "pertoken" ? "" : fmt::format("must be pertoken, got {}, which is not supported", v[P.mode].text);
}

template <const DynamicPlaces& P>
Status PlanDynamic(Values v, PlanBuilder& plan) {
  if (v[kX].tensor->empty()) return v[P.scale].tensor->empty() ? Status() : FillOutput(plan, P.scale, 0);
  plan.RequireApart(P.y);
  const Dims& dims = v[kX].tensor->dims;
  const Operand t = plan.ScratchOperand("smoothed", F32, dims), size = plan.ScratchOperand("sizes", F32, dims);
  const Operand most = plan.ScratchOperand("largest", F32, Leading(dims)), scale = plan.ScratchOperand("scales", F32, Leading(dims));
  const Operand x = plan.TensorOperand(kX);
  ANYACL_RETURN_IF_ERROR(HasElements(v[kSmooth]) ? Combine(plan, Formula::kMul, x, plan.TensorOperand(kSmooth), t) : pointwise::AddCopy(plan, x, t));
  ANYACL_RETURN_IF_ERROR(AddPass(plan, Formula::kAbs, F32, {&t, 1}, size));
  ANYACL_RETURN_IF_ERROR(reduction::AddReduce(plan, {.op = reduction::Op::kMax}, size, uint64_t{1} << (dims.rank() - 1), pointwise::Compute::kFloat, &most));
  ANYACL_RETURN_IF_ERROR(Combine(plan, Formula::kDiv, most, 127, scale));
  // Rows of zeros are divided by 1.
  const Operand zero = plan.ScratchOperand("rows of zeros", DType::kBool, scale.dims);
  ANYACL_RETURN_IF_ERROR(Combine(plan, Formula::kEqual, scale, 0, zero));
  Operand divisor = most;
  const Operand chosen[] = {zero, ConstantOperand(0), scale};
  const ScalarUse one[] = {Number(1)};
  ANYACL_RETURN_IF_ERROR(AddPass(plan, Formula::kWhere, F32, chosen, divisor, one));
  divisor.dims.push_back(1);
  divisor.strides.push_back(0);
  ANYACL_RETURN_IF_ERROR(Combine(plan, Formula::kDiv, t, divisor, t));
  ANYACL_RETURN_IF_ERROR(AddRounded(plan, t, kToEven, plan.TensorOperand(P.y)));
  return pointwise::AddCopy(plan, scale, plan.TensorOperand(P.scale));
}

template <const DynamicPlaces& P>
Operator MakeDynamic(const Entry& entry) {
  const auto name = [&](int arg) { return entry.args[arg].name; };
  ArgRoles roles{.optional = {name(kSmooth)}, .outputs = {name(P.y), name(P.scale)}};
  for (const int arg : {P.group, P.offset}) {
    if (arg >= 0) roles.optional.push_back(name(arg));
  }
  Table table = TableOf(entry, "pointwise", "Rows to INT8, each by the scale that its largest number gives.", roles);
  table.formulas = {"t = x * smooth, scale = max |t| / 127 of a row", "y = round(t / scale), 0 in a row of zeros"};
  AddNullRules(&table);
  for (const int arg : {P.group, P.offset}) {
    if (arg >= 0) Add(&table, {NotGiven(name(arg)).OrEmpty().Code(code::kNoKernel)});
  }
  Add(&table, {Supported(kNewer)});
  if constexpr (P.type >= 0) Add(&table, {OneOf(name(P.type), {2}).Code(code::kNoKernel)});
  if constexpr (P.symmetric >= 0) {
    Add(&table, {Custom(name(P.symmetric), "must be true", NotSymmetric<P>).Code(code::kNoKernel),
                 Custom(name(P.mode), "must be pertoken", NotPerToken<P>).Code(code::kNoKernel)});
  }
  Add(&table, {Custom(name(P.y), "must be INT8: other quantised results are not supported", NotNarrow<P>).Code(code::kNoKernel),
               DTypes("x", RowsOf({DType::kF16, DType::kBF16})), SameDType(name(kSmooth), "x"), DTypes(name(P.y), {{{DType::kI8}}}),
               DTypes(name(P.scale), {{{F32}}}), Rank("x", 2, 8), Custom(name(kSmooth), "must have one number for each of a row", WrongSmooth),
               SameShape(name(P.y), "x"), Custom(name(P.scale), "must have one number for each row", WrongRows<P>)});
  return {.contract = Contract(std::move(table)), .plan = PlanDynamic<P>, .family = "quant"};
}

}  // namespace

void DeclareQuant(Declarations& declarations) {
  declarations.Add("aclnnAscendQuant", MakeQuant<kV1>);
  declarations.Add("aclnnAscendQuantV3", MakeQuant<kV3>);
  declarations.Add("aclnnAscendAntiQuant", MakeAntiQuant);
  declarations.Add("aclnnDynamicQuant", MakeDynamic<kD1>);
  declarations.Add("aclnnDynamicQuantV2", MakeDynamic<kD2>);
  declarations.Add("aclnnDynamicQuantV3", MakeDynamic<kD3>);
  declarations.Add("aclnnDynamicQuantV4", MakeDynamic<kD4>);
}

}  // namespace anyacl
