// SPDX-License-Identifier: Apache-2.0
// Copyright The AnyACL Authors
//
// Stretches of an axis overwritten from where a tensor says: what caches of attention are kept with.
#include "ops/creation/series.h"
#include "ops/indexing/families.h"
#include "ops/pointwise/formulas.h"

namespace anyacl::indexing {

using namespace contract;
using namespace movement;
using pointwise::AddPass;
using pointwise::ConstantOperand;
using pointwise::Formula;
using pointwise::ScalarUse;

namespace {

const Dims& DimsOfArg(Values values, int arg) { return values[arg].tensor->dims; }
std::string Got(const Dims& a, const Dims& b) { return ", got " + ToString(a) + " for " + ToString(b); }

constexpr DType kI64 = DType::kI64;

// One place outside of any axis.
constexpr int64_t kNowhere = INT64_MIN;

// 0, 1, ..., count - 1
Status AddCount(PlanBuilder& plan, int64_t count, Operand* numbers) {
  *numbers = plan.ScratchOperand("numbers", kI64, {count});
  auto& p = plan.MakeParams<creation::SeriesParams>();
  p.kind = creation::SeriesParams::kWholeSteps;
  p.whole_step = 1;
  p.count = count;
  p.dtype = kI64;
  plan.Bind(*numbers, p.out);
  return plan.ChooseKernel("series");
}

// Places starts[i] + j for j < count, as [starts, count].
Status AddStretches(PlanBuilder& plan, const Operand& starts, const Operand& numbers, Operand* places) {
  *places = plan.ScratchOperand("places", kI64, {starts.dims[0], numbers.dims[0]});
  const Operand inputs[] = {WithAxis(starts, 1), numbers};
  return AddPass(plan, Formula::kPlus, kI64, inputs, *places);
}

// Places where `keep` is 0 become nowhere.
Status KeepWhere(PlanBuilder& plan, const Operand& keep, const Operand& places) {
  const ScalarUse nowhere[] = {{Scalar::OfInt(kNowhere)}};
  const Operand inputs[] = {keep, places, ConstantOperand(0)};
  return AddPass(plan, Formula::kWhere, kI64, inputs, places, nowhere);
}

Operand Column(const Operand& indices, int64_t k) { return WithoutAxis(Narrow(indices, 1, k, 1), 1); }

// --- one tensor ----------------------------------------------------------------------------------

enum { kData, kIndices, kUpdates, kAxis };

std::string WrongAxis(Values v, Product) {
  const int rank = DimsOfArg(v, kData).rank();
  const int64_t axis = v[kAxis].integer;
  return axis > -rank && axis < rank && axis != 0 ? ""
                                                  : "must be an axis of data, but not the first, got " + std::to_string(axis) + " for " +
                                                        ToString(DimsOfArg(v, kData));
}
std::string WrongUpdateRows(Values v, Product) {
  const Dims &data = DimsOfArg(v, kData), &indices = DimsOfArg(v, kIndices), &updates = DimsOfArg(v, kUpdates);
  if (indices.rank() == 2 && indices[1] != 2) return "must go with pairs of indices" + Got(indices, updates);
  const int64_t rows = indices.rank() == 0 ? 1 : indices[0];
  return updates[0] == rows && rows <= data[0] ? "" : "must have one row for each index, at most those of data" + Got(updates, indices);
}
std::string WrongUpdateDims(Values v, Product) {
  const Dims &data = DimsOfArg(v, kData), &updates = DimsOfArg(v, kUpdates);
  const int axis = AxisOf(v[kAxis].integer, data.rank());
  for (int i = 1; i < data.rank(); ++i) {
    if (i != axis && updates[i] != data[i]) return "must have the sizes of data but on the first axis and the named one" + Got(updates, data);
  }
  return "";
}

Operator MakeInplaceScatterUpdate(const Entry& entry) {
  Table table = TableOf(entry, "walk", "Overwrites a stretch of an axis in each slice of data, from where indices says.", {.in_out = {"data"}});
  table.formulas = {"data[i, ..., indices[i] + j, ...] = updates[i, ..., j, ...]",
                    "data[indices[i, 0], ..., indices[i, 1] + j, ...] = updates[i, ..., j, ...]"};
  table.notes = {"What lies outside of data writes nothing; of several updates for one place the last one wins."};
  constexpr DTypeSet kOlder = types::kFloat3 | DTypeSet{DType::kI8, DType::kI32};
  AddNullRules(&table);
  Add(&table, {Supported(kNewerAndTraining), DTypes("data", RowsOf(kOlder | DTypeSet{DType::kU8} | types::kFloat8, kOlder)),
               DTypes("indices", RowsOf(types::kIndex)), SameDType("updates", "data")});
  AddStorageRules(&table);
  AddRankRules(&table);
  Add(&table, {NotEmpty("data"), NotEmpty("indices"), NotEmpty("updates"), Rank("data", 1, 8), Rank("indices", 0, 2),
               Custom("updates", "must have as many dims as data",
                      [](Values v, Product) {
                        const Dims &data = DimsOfArg(v, kData), &updates = DimsOfArg(v, kUpdates);
                        return data.rank() == updates.rank() ? std::string() : "must have as many dims as data" + Got(updates, data);
                      }),
               Custom("axis", "must be an axis of data, but not the first", WrongAxis),
               Custom("updates", "must have one row for each index, at most those of data", WrongUpdateRows),
               Custom("updates", "must have the sizes of data but on the first axis and the named one", WrongUpdateDims)});
  return {.contract = Contract(std::move(table)),
          .plan = [](Values values, PlanBuilder& plan) -> Status {
            const Operand updates = plan.TensorOperand(kUpdates);
            const int rank = updates.dims.rank(), axis = AxisOf(values[kAxis].integer, rank);
            Operand indices, numbers, places, data;
            ANYACL_RETURN_IF_ERROR(IndexOperand(plan, kIndices, &indices));
            const bool pairs = indices.dims.rank() == 2;
            ANYACL_RETURN_IF_ERROR(AddCount(plan, updates.dims[axis], &numbers));
            ANYACL_RETURN_IF_ERROR(AddStretches(plan, pairs ? Column(indices, 1) : AtLeast1d(indices), numbers, &places));
            ANYACL_RETURN_IF_ERROR(BeginUpdate(plan, kData, kData, updates.dtype, false, &data));
            Spec spec{Action::kSet, data, updates, {}, {{places, data.dims[axis], data.strides[axis], false}}};
            if (pairs) spec.indices.push_back({Column(indices, 0), data.dims[0], data.strides[0], false});
            // Without a batch of its own each index has one slice of data.
            const Axis::Kind named = pairs ? Axis::kSerial : Axis::kLane;
            std::vector<int64_t> rows = {places.strides[0]};
            if (pairs) rows.push_back(indices.strides[0]);
            spec.axes.push_back({named, updates.dims[0], pairs ? 0 : data.strides[0], updates.strides[0], rows});
            for (int i = 1; i < rank; ++i) {
              if (i == axis) spec.axes.push_back({named, updates.dims[i], 0, updates.strides[i], {places.strides[1]}});
              else spec.axes.push_back({Axis::kRun, updates.dims[i], data.strides[i], updates.strides[i]});
            }
            ANYACL_RETURN_IF_ERROR(AddWalk(plan, std::move(spec)));
            return EndUpdate(plan, kData, data);
          },
          .family = "indexing"};
}

// --- a list --------------------------------------------------------------------------------------

namespace list {

enum { kVars, kIndice, kUpdates, kMask, kReduce, kAxis };

std::string WrongReduce(Values v, Product) {
  return !v[kReduce].given() || std::string(v[kReduce].text) == "update" ? "" : "must be \"update\", got \"" + std::string(v[kReduce].text) + "\"";
}
std::string WrongAxis(Values v, Product) {
  const int rank = DimsOfArg(v, kUpdates).rank();
  const int64_t axis = v[kAxis].integer < 0 ? v[kAxis].integer + rank : v[kAxis].integer;
  return axis > 0 && axis < rank ? "" : "must be an axis of updates, but not the first, got " + std::to_string(v[kAxis].integer) + " for " +
                                           ToString(DimsOfArg(v, kUpdates));
}
std::string WrongShapes(Values v, Product) {
  const auto& vars = v[kVars].tensors->tensors;
  const Dims &updates = DimsOfArg(v, kUpdates), &indice = DimsOfArg(v, kIndice);
  const int64_t count = static_cast<int64_t>(vars.size());
  const int axis = AxisOf(v[kAxis].integer, updates.rank());
  const std::string got = ", got " + ToString(updates) + " and indice " + ToString(indice) + " for " + std::to_string(count) + " tensors";
  if (count == 0 || updates[0] != count) return "must have one slice per tensor of the list" + got;
  if (!(indice == Dims{count}) && !(indice == Dims{count, 2})) return "must go with one place, or one place and one length, per tensor" + got;
  if (v[kMask].given() && !(DimsOfArg(v, kMask) == Dims{count})) return "must go with one element of the mask per tensor" + got;
  for (const Tensor* var : vars) {
    if (!(var->dims == vars[0]->dims)) return "must go with tensors of one shape" + got;
  }
  const Dims& var = vars[0]->dims;
  if (var.rank() + 1 != updates.rank()) return "must have one dim more than the tensors of the list, " + ToString(var) + got;
  for (int i = 0; i < var.rank(); ++i) {
    const bool fits = i + 1 == axis ? updates[i + 1] <= var[i] : updates[i + 1] == var[i];
    if (!fits) return "must have the sizes of " + ToString(var) + ", or less on the axis" + got;
  }
  return "";
}

// Where each element along the axis goes, per tensor of the list: [tensors, size].
Status AddPlaces(PlanBuilder& plan, Values values, int64_t size, Operand* places) {
  Operand indice, numbers;
  ANYACL_RETURN_IF_ERROR(IndexOperand(plan, kIndice, &indice));
  ANYACL_RETURN_IF_ERROR(AddCount(plan, size, &numbers));
  const bool pairs = indice.dims.rank() == 2;
  ANYACL_RETURN_IF_ERROR(AddStretches(plan, pairs ? Column(indice, 0) : indice, numbers, places));
  if (pairs) {
    const Operand within = plan.ScratchOperand("within the length", kI64, places->dims);
    const Operand inputs[] = {numbers, WithAxis(Column(indice, 1), 1)};
    ANYACL_RETURN_IF_ERROR(AddPass(plan, Formula::kLess, kI64, inputs, within));
    ANYACL_RETURN_IF_ERROR(KeepWhere(plan, within, *places));
  }
  return values[kMask].given() ? KeepWhere(plan, WithAxis(plan.TensorOperand(kMask), 1), *places) : Status();
}

Status Plan(Values values, PlanBuilder& plan) {
  const Operand updates = plan.TensorOperand(kUpdates);
  if (Numel(updates.dims) == 0) return {};
  const int axis = AxisOf(values[kAxis].integer, updates.dims.rank());
  const int count = static_cast<int>(updates.dims[0]);
  Operand places;
  for (int b = 0; b < count; ++b) plan.RequireApart(kVars, b);
  ANYACL_RETURN_IF_ERROR(AddPlaces(plan, values, updates.dims[axis], &places));
  for (int b = 0; b < count; ++b) {
    const Operand var = plan.TensorOperand(kVars, b), update = WithoutAxis(Narrow(updates, 0, b, 1), 0);
    const Operand index = WithoutAxis(Narrow(places, 0, b, 1), 0);
    ANYACL_RETURN_IF_ERROR(AddWalk(plan, {Action::kSet, var, update, AxesAlong(axis - 1, var, update, index, true),
                                          {{index, var.dims[axis - 1], var.strides[axis - 1], false}}}));
  }
  return {};
}

}  // namespace list

Operator MakeScatterList(const Entry& entry) {
  Table table = TableOf(entry, "walk", "Overwrites a stretch of an axis in each tensor of a list, from where indice says.",
                        {.in_out = {"varRef"}, .optional = {"maskOptional", "reduceOptional"}});
  table.formulas = {"varRef[b][..., indice[b] + j, ...] = updates[b, ..., j, ...] where mask[b] is not 0"};
  table.notes = {"indice [n, 2] holds places and lengths: of each slice only so many elements are written. What lies outside of a tensor writes "
                 "nothing."};
  table.result_pointers = ResultPointers::kAfterNullChecks;
  constexpr DTypeSet kTypes = types::kFloat3 | DTypeSet{DType::kI8, DType::kI16, DType::kI32, DType::kU8, DType::kU16, DType::kU32};
  AddNullRules(&table);
  Add(&table, {Supported(kNewer), DTypes("varRef", RowsOf(kTypes)), DTypes("indice", RowsOf(types::kIndex)), DTypes("updates", RowsOf(kTypes)),
               SameDType("varRef", "updates"), DTypes("maskOptional", RowsOf({DType::kU8})),
               Custom("reduceOptional", "must be \"update\" or null", list::WrongReduce)});
  AddStorageRules(&table);
  Add(&table, {Rank("varRef", 1, 7).Code(561002), Rank("updates", 2, 8).Code(561002), Rank("indice", 1, 2).Code(561002),
               Custom("axis", "must be an axis of updates, but not the first", list::WrongAxis).Code(561002),
               Custom("updates", "must have one slice per tensor of the list, of its sizes or less on the axis", list::WrongShapes).Code(561002)});
  return {.contract = Contract(std::move(table)), .plan = list::Plan, .family = "indexing"};
}

}  // namespace

void DeclareStretches(Declarations& declarations) {
  declarations.Add("aclnnInplaceScatterUpdate", MakeInplaceScatterUpdate);
  declarations.Add("aclnnScatterList", MakeScatterList);
}

}  // namespace anyacl::indexing
