// SPDX-License-Identifier: Apache-2.0
// Copyright The AnyACL Authors
//
// Running results along an axis, and elements in their order: sorted, the first few, one of them.
#include <fmt/format.h>

#include <algorithm>
#include <limits>
#include <memory>
#include <string_view>

#include "ops/operators.h"
#include "ops/order/add_select.h"
#include "ops/order/rows.h"
#include "ops/order/scan.h"
#include "ops/order/select.h"
#include "ops/pointwise/pass.h"
#include "ops/table.h"

namespace anyacl {
namespace {

using namespace contract;
using order::AddSelect;
using order::FinishRows;
using order::NaturalType;
using order::Pick;
using order::RowsInput;
using order::RowsOutput;
using order::Scan;
using order::WithAxisLast;
using pointwise::ComputeOf;

constexpr DTypeSet kReal = types::kFloat3 | types::kDouble | types::kInt5;
constexpr DTypeSet kRealBool = kReal | types::kBool;
constexpr DTypeSet kWideUnsigned = {DType::kU16, DType::kU32, DType::kU64};
constexpr DTypeSet kSmall = types::kFloat3 | types::kInt5;  // without DOUBLE and BOOL
constexpr DTypeSet kPlaces = {DType::kI32, DType::kI64};

constexpr Products kNot200I =
    Of({Product::kAscend950, Product::kA3, Product::kA2, Product::kTraining, Product::kInference});
constexpr Products kNot200IInference = Of({Product::kAscend950, Product::kA3, Product::kA2, Product::kTraining});

const char* NameOf(const Entry& entry, int arg) { return entry.args[arg].name; }

int64_t SizeAlong(const Tensor& t, int64_t axis) {
  if (t.rank() == 0) return 1;
  return t.dims[static_cast<int>(axis < 0 ? axis + t.rank() : axis)];
}

bool IsAxisOf(int64_t axis, const Tensor& t) {
  const int64_t axes = std::max(t.rank(), 1);
  return axis >= -axes && axis < axes;
}

// ---- Scans ----------------------------------------------------------------------------------------------------------

Status PlanScan(PlanBuilder& plan, order::ScanParams facts, int self, int64_t axis, DType dtype, int out, int places = -1) {
  const Operand from = WithAxisLast(plan.TensorOperand(self), axis);
  const Operand to = WithAxisLast(plan.TensorOperand(out), axis);
  if (Numel(from.dims) == 0) return {};
  Operand in;
  ANYACL_RETURN_IF_ERROR(RowsInput(plan, from, dtype, &in));
  const Operand result = RowsOutput(plan, to, NaturalType(dtype));
  Operand place_target, place_rows;
  if (places >= 0) {
    place_target = WithAxisLast(plan.TensorOperand(places), axis);
    place_rows = RowsOutput(plan, place_target, DType::kI64);
  }
  auto& params = plan.MakeParams<order::ScanParams>();
  params = facts;
  params.length = from.dims[from.dims.rank() - 1];
  params.rows = Numel(from.dims) / params.length;
  params.compute = ComputeOf(dtype);
  plan.Bind(in, params.in);
  plan.Bind(result, params.out);
  if (places >= 0) plan.Bind(place_rows, params.places);
  ANYACL_RETURN_IF_ERROR(plan.ChooseKernel("scan"));
  if (places >= 0) ANYACL_RETURN_IF_ERROR(FinishRows(plan, place_rows, place_target));
  return FinishRows(plan, result, to);
}

// BOOL counts as a number where its running result is one.
constexpr DTypeSet kSummed = kReal | types::kComplex;

std::string ConvertsBefore950(Values values, Product product) {
  const DType self = values[0].tensor->dtype;
  const DType out = values[values.size() - 1].tensor->dtype;
  if (product == Product::kAscend950 || ConvertsTo(self, out)) return "";
  return fmt::format("must have a dtype that converts to that of the result, got {} and {}", Name(self), Name(out));
}

Operator MakeCumsum(const Entry& entry) {
  Table table = TableOf(entry, "scan", "The running sum along an axis, in the dtype that is asked for.");
  table.formulas = {"out_i = self_0 + ... + self_i"};
  AddNullRules(&table);
  Add(&table, {DTypes("self", RowsOf(kSummed | types::kBool)), DTypeArg("dtype", RowsOf(kSummed)),
               DTypes("out", RowsOf(kSummed)), DTypeIs("out", "dtype"),
               Custom("self", "must have a dtype that converts to that of out (but on Ascend 950)", ConvertsBefore950),
               Rank("self", 0, 8), Dim("dim", "self"), SameShape("out", "self")});
  return {.contract = Contract(std::move(table)),
          .plan = [](Values values, PlanBuilder& plan) {
            enum { kSelf, kDim, kType, kOut };
            return PlanScan(plan, {.op = Scan::kSum}, kSelf, values[kDim].integer, values[kOut].tensor->dtype, kOut);
          },
          .family = "order"};
}

Operator MakeCumsumV2(const Entry& entry) {
  Table table = TableOf(entry, "scan", "The running sum along an axis, with or without the element itself, from either end.");
  AddNullRules(&table);
  Add(&table, {DTypes("self", RowsOf(kSummed)), SameDType("out", "self"), Rank("self", 0, 8), Dim("dim", "self"),
               SameShape("out", "self")});
  return {.contract = Contract(std::move(table)),
          .plan = [](Values values, PlanBuilder& plan) {
            enum { kSelf, kDim, kExclusive, kReverse, kOut };
            return PlanScan(plan,
                            {.op = Scan::kSum, .exclusive = values[kExclusive].flag, .reverse = values[kReverse].flag},
                            kSelf, values[kDim].integer, values[kOut].tensor->dtype, kOut);
          },
          .family = "order"};
}

// The axis is a scalar here.
std::string ScalarAxis(Values values, Product) {
  const Tensor& t = *values[0].tensor;
  const int64_t axis = values[1].scalar->AsInt();
  return IsAxisOf(axis, t) ? "" : fmt::format("must be an axis of input, got {} for shape {}", axis, ToString(t.dims));
}

Operator MakeCumprod(const Entry& entry) {
  constexpr DTypeSet kTypes = types::kFloat3 | types::kDouble | types::kInt8;
  constexpr DTypeSet kNewestOut = kTypes | types::kComplex;
  const bool in_place = entry.args.size() == 2;
  ArgRoles roles;
  if (in_place) roles.in_out = {"input"};
  Table table = TableOf(entry, "scan", in_place ? "The running product along an axis, written over its input."
                                                : "The running product along an axis, in the dtype that is asked for.",
                        roles);
  table.formulas = {in_place ? "input_i = input_0 * ... * input_i" : "out_i = input_0 * ... * input_i"};
  AddNullRules(&table);
  Add(&table, {Supported(kNewer), DTypes("input", RowsOf(in_place ? kNewestOut : kNewestOut | types::kBool, kTypes)),
               ScalarDTypes("dim", RowsOf(kPlaces)), Rank("input", 0, 8),
               Custom("dim", "must be an axis of input", ScalarAxis)});
  if (!in_place) {
    Add(&table, {DTypes("out", RowsOf(kNewestOut, kTypes)), DTypeArg("dtype", RowsOf(kNewestOut, kTypes)).OrUndefined(),
                 DTypeIs("out", "dtype", "input"), SameShape("out", "input")});
  }
  return {.contract = Contract(std::move(table)),
          .plan = [](Values values, PlanBuilder& plan) {
            const int out = values.size() == 2 ? 0 : 3;
            return PlanScan(plan, {.op = Scan::kProduct}, 0, values[1].scalar->AsInt(), values[out].tensor->dtype, out);
          },
          .family = "order"};
}

template <Scan kOp>
Operator MakeRunningExtreme(const Entry& entry) {
  constexpr bool kLargest = kOp == Scan::kMax;
  Table table = TableOf(entry, "scan", kLargest ? "The largest element so far along an axis, and the latest place of it."
                                                : "The smallest element so far along an axis, and the latest place of it.");
  AddNullRules(&table);
  Add(&table, {Supported(kLargest ? kNot200IInference : kAllProducts), DTypes("self", RowsOf(kRealBool)),
               DTypes("valuesOut", RowsOf(kRealBool)), DTypes("indicesOut", RowsOf(kPlaces))});
  if (!kLargest) Add(&table, {ResultConverts("self", "valuesOut")});
  Add(&table, {Rank("self", 0, 8), Dim("dim", "self"), SameShape("valuesOut", "self"), SameShape("indicesOut", "self")});
  return {.contract = Contract(std::move(table)),
          .plan = [](Values values, PlanBuilder& plan) {
            enum { kSelf, kDim, kValues, kIndices };
            return PlanScan(plan, {.op = kOp}, kSelf, values[kDim].integer, values[kSelf].tensor->dtype, kValues, kIndices);
          },
          .family = "order"};
}

// ---- Order ----------------------------------------------------------------------------------------------------------

// BF16 along an axis of one element: older products have no kernel for it.
template <int kSelf, int kDim>
std::string OneBFloat(Values values, Product product) {
  const Tensor& self = *values[kSelf].tensor;
  if (product == Product::kAscend950 || self.dtype != DType::kBF16) return "";
  int64_t axis = -1;
  if constexpr (kDim >= 0) axis = values[kDim].integer;
  if (!IsAxisOf(axis, self) || SizeAlong(self, axis) != 1) return "";
  return fmt::format("must have more than one element along the axis when it is BF16, got shape {}", ToString(self.dims));
}

template <int kSelf, int kDim>
Rule NoSingleBFloat() {
  return Custom("self", "must have more than one element along the axis when it is BF16 (but on Ascend 950)",
                OneBFloat<kSelf, kDim>);
}

constexpr DTypeSet kSorted = kSmall | types::kBool;

Operator MakeSort(const Entry& entry) {
  Table table = TableOf(entry, "select", "The elements in their order along an axis, and where they were.");
  table.notes = {"The sort is always stable: equal elements keep their order, also in descending order. NaN is greater than "
                 "every number."};
  constexpr DTypeSet kNewest = kSorted | types::kDouble | kWideUnsigned;
  AddNullRules(&table);
  Add(&table, {Supported(kNot200I), DTypes("self", RowsOf(kNewest, kSorted)),
               DTypes("valuesOut", RowsOf(kNewest, kSorted | types::kDouble)), DTypes("indicesOut", RowsOf({DType::kI64})),
               Dim("dim", "self"), SameShape("valuesOut", "self"), SameShape("indicesOut", "self")});
  return {.contract = Contract(std::move(table)),
          .plan = [](Values values, PlanBuilder& plan) -> Status {
            enum { kSelf, kStable, kDim, kDescending, kValues, kIndices };
            if (values[kSelf].tensor->empty()) return {};
            const int64_t axis = values[kDim].integer;
            const Operand out = WithAxisLast(plan.TensorOperand(kValues), axis);
            const Operand places = WithAxisLast(plan.TensorOperand(kIndices), axis);
            return AddSelect(plan,
                             {.count = SizeAlong(*values[kSelf].tensor, axis),
                              .pick = Pick::kFirst,
                              .descending = values[kDescending].flag},
                             WithAxisLast(plan.TensorOperand(kSelf), axis), &out, &places);
          },
          .family = "order"};
}

Operator MakeArgsort(const Entry& entry) {
  Table table = TableOf(entry, "select", "Where the elements in their order along an axis are.");
  table.notes = {"The sort is always stable. NaN is greater than every number."};
  AddNullRules(&table);
  Add(&table, {Supported(kNot200I), DTypes("self", RowsOf(kRealBool | kWideUnsigned, kSmall)),
               DTypes("out", RowsOf({DType::kI64})), PublicFormat("self"), Rank("self", 0, 8), Dim("dim", "self"),
               SameShape("out", "self"), NoSingleBFloat<0, 1>()});
  return {.contract = Contract(std::move(table)),
          .plan = [](Values values, PlanBuilder& plan) -> Status {
            enum { kSelf, kDim, kDescending, kOut };
            if (values[kSelf].tensor->empty()) return {};
            const int64_t axis = values[kDim].integer;
            const Operand places = WithAxisLast(plan.TensorOperand(kOut), axis);
            return AddSelect(plan,
                             {.count = SizeAlong(*values[kSelf].tensor, axis),
                              .pick = Pick::kFirst,
                              .descending = values[kDescending].flag},
                             WithAxisLast(plan.TensorOperand(kSelf), axis), nullptr, &places);
          },
          .family = "order"};
}

// self with k in place of one size; of one element any rank.
bool HasTopkShape(const Tensor& out, const Tensor& self, int64_t k, int64_t axis) {
  Dims want = self.dims;
  if (self.rank() > 0) want[static_cast<int>(axis < 0 ? axis + self.rank() : axis)] = k;
  return out.dims == want || (Numel(want) == 1 && out.numel() == 1);
}

std::string TopkCount(Values values, Product) {
  const Tensor& self = *values[0].tensor;
  const int64_t k = values[1].integer, axis = values[2].integer;
  if (!IsAxisOf(axis, self)) return "";  // another rule says so
  const int64_t size = SizeAlong(self, axis);
  return k >= 0 && k <= size ? "" : fmt::format("must be 0 to the size of the axis, {}, got {}", size, k);
}

template <int kOut>
std::string TopkShape(Values values, Product) {
  const Tensor& self = *values[0].tensor;
  const Tensor& out = *values[kOut].tensor;
  if (self.empty() || out.empty() || HasTopkShape(out, self, values[1].integer, values[2].integer)) return "";
  return fmt::format("must have the shape of self with k = {} along axis {}, got {} and {}", values[1].integer,
                     values[2].integer, ToString(out.dims), ToString(self.dims));
}

// The operand with its axis last; one element may have any rank.
Operand PickedTarget(PlanBuilder& plan, int arg, int64_t axis) {
  Operand operand = plan.TensorOperand(arg);
  if (Numel(operand.dims) == 1) operand.dims = operand.strides = Dims();
  return WithAxisLast(operand, axis);
}

Operator MakeTopk(const Entry& entry) {
  Table table = TableOf(entry, "select", "The k largest or smallest elements along an axis in their order, and where they were.");
  table.notes = {"The result is always sorted; of equal elements the first ones are taken, in their order."};
  AddNullRules(&table);
  Add(&table, {Supported(kNot200I), DTypes("self", RowsOf(kReal | kWideUnsigned, kReal)), SameDType("valuesOut", "self"),
               DTypes("indicesOut", RowsOf({DType::kI64})), Rank("self", 0, 8), Rank("valuesOut", 0, 8),
               Rank("indicesOut", 0, 8), Dim("dim", "self"),
               Custom("k", "must be 0 to the size of the axis", TopkCount),
               Custom("valuesOut", "must have the shape of self with k along the axis", TopkShape<5>),
               Custom("indicesOut", "must have the shape of self with k along the axis", TopkShape<6>)});
  return {.contract = Contract(std::move(table)),
          .plan = [](Values values, PlanBuilder& plan) -> Status {
            enum { kSelf, kCount, kDim, kLargest, kSortedFlag, kValues, kIndices };
            for (const int arg : {+kSelf, +kValues, +kIndices}) {
              if (values[arg].tensor->empty()) return {};
            }
            const int64_t axis = values[kDim].integer;
            const Operand out = PickedTarget(plan, kValues, axis);
            const Operand places = PickedTarget(plan, kIndices, axis);
            return AddSelect(
                plan, {.count = values[kCount].integer, .pick = Pick::kFirst, .descending = values[kLargest].flag},
                WithAxisLast(plan.TensorOperand(kSelf), axis), &out, &places);
          },
          .family = "order"};
}

// One element of each row: `values` and `places` hold them in the order of the rows.
Status PlanOne(PlanBuilder& plan, order::SelectParams facts, Operand from, int values, int places = -1) {
  const Operand out = plan.TensorOperand(values);
  if (Numel(out.dims) == 0) return {};
  if (places < 0) return AddSelect(plan, facts, from, &out, nullptr);
  const Operand place = plan.TensorOperand(places);
  return AddSelect(plan, facts, from, &out, &place);
}

std::string KthCount(Values values, Product) {
  const Tensor& self = *values[0].tensor;
  const int64_t k = values[1].integer, axis = values[2].integer;
  if (!IsAxisOf(axis, self)) return "";  // another rule says so
  const int64_t size = SizeAlong(self, axis);
  return k >= 1 && k <= size ? "" : fmt::format("must be 1 to the size of the axis, {}, got {}", size, k);
}

Operator MakeKthvalue(const Entry& entry) {
  Table table = TableOf(entry, "select", "The k-th smallest element along an axis, and where it was.");
  table.notes = {"The order is that of the stable sort."};
  AddNullRules(&table);
  Add(&table, {Supported(kNot200I), DTypes("self", RowsOf(kReal | kWideUnsigned, kSmall)), SameDType("valuesOut", "self"),
               DTypes("indicesOut", RowsOf({DType::kI64})), Rank("self", 0, 8), Rank("valuesOut", 0, 8),
               Rank("indicesOut", 0, 8), Dim("dim", "self"), Custom("k", "must be 1 to the size of the axis", KthCount),
               Reduced("valuesOut", "self", {"dim", "keepdim"}, ShapeRule::kLoose),
               Reduced("indicesOut", "self", {"dim", "keepdim"}, ShapeRule::kLoose)});
  return {.contract = Contract(std::move(table)),
          .plan = [](Values values, PlanBuilder& plan) -> Status {
            enum { kSelf, kCount, kDim, kKeep, kValues, kIndices };
            if (values[kSelf].tensor->empty()) return {};
            return PlanOne(plan, {.count = values[kCount].integer - 1, .pick = Pick::kOne},
                           WithAxisLast(plan.TensorOperand(kSelf), values[kDim].integer), kValues, kIndices);
          },
          .family = "order"};
}

int64_t SmallestOf(DType dtype) {
  if (dtype == DType::kI32) return std::numeric_limits<int32_t>::min();
  return dtype == DType::kI64 ? std::numeric_limits<int64_t>::min() : 0;
}

template <Pick kPick>
Operator MakeMedian(const Entry& entry) {
  const char* const out = NameOf(entry, 1);
  Table table = TableOf(entry, "select", kPick == Pick::kMedian ? "The lower median of all elements; NaN if one is."
                                                                : "The lower median of all elements that are no NaN.");
  AddNullRules(&table);
  Add(&table, {Supported(kPick == Pick::kMedian ? kNot200I : kNot200IInference),
               DTypes("self", RowsOf(kSmall | types::kDouble, kSmall)), SameDType(out, "self"), Rank("self", 0, 8),
               Rank(out, 0, 8), NoSingleBFloat<0, -1>(), AcceptIfEmpty({out}), NumelIs(out, "1")});
  return {.contract = Contract(std::move(table)),
          .plan = [](Values, PlanBuilder& plan) -> Status {
            enum { kSelf, kOut };
            Operand all = plan.TensorOperand(kSelf);
            if (!all.row_major() && Numel(all.dims) > 0) {
              const Operand dense = plan.ScratchOperand("dense input", all.dtype, all.dims);
              ANYACL_RETURN_IF_ERROR(pointwise::AddCopy(plan, all, dense));
              all = dense;
            }
            all.dims = {Numel(all.dims)};
            all.strides = {1};
            return PlanOne(plan, {.of_nothing = SmallestOf(all.dtype), .pick = kPick}, all, kOut);
          },
          .family = "order"};
}

template <Pick kPick>
Operator MakeMedianDim(const Entry& entry) {
  constexpr bool kPlain = kPick == Pick::kMedian;
  Table table = TableOf(entry, "select",
                        kPlain ? "The lower median along an axis and where it is; the first NaN if there is one."
                               : "The lower median of what is no NaN along an axis, and where it is.");
  AddNullRules(&table);
  Add(&table, {Supported(kPlain ? kNot200I : kNot200IInference), DTypes("self", RowsOf(kSmall | types::kDouble, kSmall)),
               SameDType("valuesOut", "self"), DTypes("indicesOut", RowsOf({DType::kI64})), Rank("self", 0, 8),
               Rank("valuesOut", 0, 8), Rank("indicesOut", 0, 8), Dim("dim", "self"), NoSingleBFloat<0, 1>(),
               Reduced("valuesOut", "self", {"dim", "keepDim"}, ShapeRule::kLoose),
               Reduced("indicesOut", "self", {"dim", "keepDim"}, ShapeRule::kLoose)});
  if (!kPlain) Add(&table, {ReducesElements("self", {"dim"})});
  return {.contract = Contract(std::move(table)),
          .plan = [](Values values, PlanBuilder& plan) -> Status {
            enum { kSelf, kDim, kKeep, kValues, kIndices };
            if (values[kSelf].tensor->empty()) return {};
            return PlanOne(plan, {.pick = kPick}, WithAxisLast(plan.TensorOperand(kSelf), values[kDim].integer), kValues,
                           kIndices);
          },
          .family = "order"};
}

}  // namespace

void DeclareOrder(Declarations& declarations) {
  declarations.Add("aclnnCumsum", MakeCumsum);
  declarations.Add("aclnnCumsumV2", MakeCumsumV2);
  declarations.Add("aclnnCumprod", MakeCumprod);
  declarations.Add("aclnnInplaceCumprod", MakeCumprod);
  declarations.Add("aclnnCummax", MakeRunningExtreme<Scan::kMax>);
  declarations.Add("aclnnCummin", MakeRunningExtreme<Scan::kMin>);
  declarations.Add("aclnnSort", MakeSort);
  declarations.Add("aclnnArgsort", MakeArgsort);
  declarations.Add("aclnnTopk", MakeTopk);
  declarations.Add("aclnnKthvalue", MakeKthvalue);
  declarations.Add("aclnnMedian", MakeMedian<Pick::kMedian>);
  declarations.Add("aclnnNanMedian", MakeMedian<Pick::kNanMedian>);
  declarations.Add("aclnnMedianDim", MakeMedianDim<Pick::kMedian>);
  declarations.Add("aclnnNanMedianDim", MakeMedianDim<Pick::kNanMedian>);
}

}  // namespace anyacl
