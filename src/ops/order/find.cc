// SPDX-License-Identifier: Apache-2.0
// Copyright The AnyACL Authors
//
// Results of a size that the data decide. Phase 2 waits for them and gives the output its shape.
#include "ops/order/find.h"

#include <fmt/format.h>

#include "ops/operators.h"
#include "ops/order/add_select.h"
#include "ops/order/rows.h"
#include "ops/pointwise/pass.h"
#include "ops/table.h"

namespace anyacl {
namespace {

using namespace contract;
using order::RowsInput;
using pointwise::DenseInput;
using pointwise::DenseOutput;
using pointwise::FinishOutput;

constexpr DTypeSet kWideUnsigned = {DType::kU16, DType::kU32, DType::kU64};
constexpr DTypeSet kUnique = types::kFloat3 | types::kDouble | types::kInt8 | types::kBool;
constexpr DTypeSet kI64 = {DType::kI64};
constexpr const char* kRoom =
    "The output is made as large as the result can be. The result lies one behind the other from its first element on; phase "
    "2 waits for it and gives the tensor its shape, which aclGetViewShape reads.";

// ---- Nonzero --------------------------------------------------------------------------------------------------------

template <bool kByAxis>
Operator MakeNonzero(const Entry& entry) {
  Table table = TableOf(entry, "nonzero", kByAxis ? "The indices of the elements that are not 0, one row per axis."
                                                  : "The indices of the elements that are not 0, one row per element.");
  table.notes = {kRoom};
  constexpr DTypeSet kOld = types::kFloat3 | types::kDouble | types::kInt5Bool;
  constexpr DTypeSet kNewest = kOld | kWideUnsigned | types::kComplex;
  AddNullRules(&table);
  Add(&table, {Supported(Of({Product::kAscend950, Product::kA3, Product::kA2, Product::kTraining, Product::kInference})),
               DTypes("self", RowsOf(kNewest, kByAxis ? kOld | kWideUnsigned : kOld)), DTypes("out", RowsOf(kI64)),
               Rank("self", 0, 8), Rank("out", 0, 8)});
  return {.contract = Contract(std::move(table)),
          .plan = [](Values values, PlanBuilder& plan) -> Status {
            enum { kSelf, kOut };
            const Tensor& self = *values[kSelf].tensor;
            Operand in;
            ANYACL_RETURN_IF_ERROR(DenseInput(plan, kSelf, 0, DType::kBool, &in));
            auto& params = plan.MakeParams<order::NonzeroParams>();
            params.count = self.numel();
            params.rank = self.rank();
            params.by_axis = kByAxis;
            for (int i = 0; i < self.rank(); ++i) params.dims[i] = self.dims[i];
            if (!self.empty()) plan.Bind(in, params.in);
            params.room = plan.BindFound(kOut, params.out, params.shape);
            return plan.ChooseKernel(params.scratch, "nonzero");
          },
          .family = "order"};
}

// ---- Unique ---------------------------------------------------------------------------------------------------------

struct UniqueArgs {
  int self, values, inverse, counts;
  bool wants_inverse, wants_counts, sorted;
  int64_t axis;  // kFlat: of all elements
};
constexpr int64_t kFlat = 1000;

Status PlanUnique(Values values, PlanBuilder& plan, const UniqueArgs& args) {
  const Tensor& self = *values[args.self].tensor;
  const bool flat = args.axis == kFlat || self.rank() == 0;
  if (self.empty() && !flat) return {};
  order::UniqueParams facts = {};
  facts.outer = facts.inner = 1;
  facts.slices = self.numel();
  facts.rank = 1;
  if (!flat) {
    facts.rank = self.rank();
    facts.axis = static_cast<int32_t>(args.axis < 0 ? args.axis + self.rank() : args.axis);
    facts.slices = self.dims[facts.axis];
    for (int i = 0; i < self.rank(); ++i) {
      facts.dims[i] = self.dims[i];
      if (i != facts.axis) (i < facts.axis ? facts.outer : facts.inner) *= self.dims[i];
    }
  }
  facts.element = static_cast<int32_t>(SizeOf(self.dtype));
  facts.compute = pointwise::ComputeOf(self.dtype);
  facts.sorted = args.sorted;
  Operand in, keys, inverse, places;
  ANYACL_RETURN_IF_ERROR(DenseInput(plan, args.self, 0, self.dtype, &in));
  ANYACL_RETURN_IF_ERROR(RowsInput(plan, in, self.dtype, &keys));
  if (args.wants_inverse) inverse = DenseOutput(plan, args.inverse, 0, DType::kI64);
  const bool as_rows = args.sorted && facts.outer * facts.inner == 1 && facts.slices > 0;
  if (as_rows) {
    Operand row = keys;
    row.dims = {facts.slices};
    row.strides = {1};
    places = plan.ScratchOperand("order", DType::kI64, row.dims);
    ANYACL_RETURN_IF_ERROR(order::AddSelect(plan, {.count = facts.slices, .pick = order::Pick::kFirst}, row, nullptr, &places));
  }
  auto& params = plan.MakeParams<order::UniqueParams>();
  params = facts;
  if (!self.empty()) {
    plan.Bind(in, params.in);
    plan.Bind(keys, params.keys);
  }
  if (as_rows) plan.Bind(places, params.order);
  if (args.wants_inverse && !self.empty()) plan.Bind(inverse, params.inverse);
  params.value_room = plan.BindFound(args.values, params.values, params.value_shape);
  if (args.wants_counts) {
    params.count_type = values[args.counts].tensor->dtype;
    params.count_room = plan.BindFound(args.counts, params.counts, params.count_shape);
  }
  ANYACL_RETURN_IF_ERROR(plan.ChooseKernel(params.scratch, "unique"));
  return args.wants_inverse ? FinishOutput(plan, args.inverse, 0, inverse) : Status();
}

const char* const kNans = "NaN is different from itself, and greater than every number; -0 and 0 are alike, the first stays.";

Operator MakeUnique(const Entry& entry) {
  const bool counts = entry.args.size() == 7;  // Unique2
  Table table = TableOf(entry, "unique", counts ? "The different elements in ascending order, which of them each element is, and "
                                                  "how often each occurs."
                                                : "The different elements in ascending order, and which of them each element is.");
  table.notes = {kNans, kRoom};
  AddNullRules(&table);
  Add(&table, {Supported(kNewer), DTypes("self", RowsOf(kUnique)), SameDType("valueOut", "self"),
               DTypes("inverseOut", RowsOf(kI64)), Rank("self", 0, 8),
               SameShape("inverseOut", "self").If("returnInverse")});
  if (counts) {
    Add(&table, {DTypes("countsOut", RowsOf(kI64)), SameShape("inverseOut", "self").If("returnCounts"),
                 SameShape("countsOut", "valueOut").If("returnCounts")});
  }
  return {.contract = Contract(std::move(table)),
          .plan = [](Values values, PlanBuilder& plan) -> Status {
            const bool counts = values.size() == 7;
            return PlanUnique(values, plan,
                              {.self = 0,
                               .values = counts ? 4 : 3,
                               .inverse = counts ? 5 : 4,
                               .counts = 6,
                               .wants_inverse = values[2].flag,
                               .wants_counts = counts && values[3].flag,
                               .sorted = true,
                               .axis = kFlat});
          },
          .family = "order"};
}

int64_t SlicesAlong(const Tensor& self, int64_t axis) {
  if (axis == kFlat || self.rank() == 0) return self.numel();
  if (axis < -self.rank() || axis >= self.rank()) return -1;
  return self.dims[static_cast<int>(axis < 0 ? axis + self.rank() : axis)];
}

template <int kFlag, int kAxis, int kInverse>
std::string InversePerSlice(Values values, Product) {
  const int64_t slices = SlicesAlong(*values[0].tensor, values[kAxis].integer);
  const Tensor& inverse = *values[kInverse].tensor;
  if (!values[kFlag].flag || slices < 0 || inverse.numel() == slices) return "";
  return fmt::format("must have one element for each of the {} slices, got {}", slices, ToString(inverse.dims));
}

Operator MakeUniqueDim(const Entry& entry) {
  Table table = TableOf(entry, "unique", "The different slices along an axis in lexicographic order, which of them each slice is, "
                                         "and how often each occurs.");
  table.notes = {kNans, kRoom};
  AddNullRules(&table);
  Add(&table, {Supported(kNewer), DTypes("self", RowsOf(kUnique)), SameDType("valueOut", "self"),
               DTypes("inverseOut", RowsOf(kI64)), DTypes("countsOut", RowsOf(kI64)), Rank("self", 0, 8), Dim("dim", "self"),
               Custom("inverseOut", "must have one element for each slice when returnInverse is true", InversePerSlice<2, 3, 5>)});
  return {.contract = Contract(std::move(table)),
          .plan = [](Values values, PlanBuilder& plan) -> Status {
            return PlanUnique(values, plan,
                              {.self = 0, .values = 4, .inverse = 5, .counts = 6, .wants_inverse = values[2].flag,
                               .wants_counts = true, .sorted = true, .axis = values[3].integer});
          },
          .family = "order"};
}

std::string AxisOrFlat(Values values, Product) {
  const Tensor& self = *values[0].tensor;
  const int64_t axis = values[3].integer;
  const bool fits = axis == kFlat || (self.rank() == 0 && (axis == 0 || axis == -1)) || SlicesAlong(self, axis) >= 0;
  return fits ? "" : fmt::format("must be an axis of self, or 1000 for all elements, got {} for shape {}", axis, ToString(self.dims));
}

Operator MakeUniqueConsecutive(const Entry& entry) {
  Table table = TableOf(entry, "unique", "Runs of equal elements, or of equal slices along an axis, each as one; which of them each "
                                         "was in, and how long each is.");
  table.notes = {"NaN is different from itself.", kRoom};
  AddNullRules(&table);
  Add(&table, {Supported(kNewer), DTypes("self", RowsOf(kUnique | types::kComplex)), SameDType("valueOut", "self"),
               DTypes("inverseOut", RowsOf({DType::kI32, DType::kI64})), SameDType("countsOut", "inverseOut"),
               Rank("self", 0, 8), Custom("dim", "must be an axis of self, or 1000 for all elements", AxisOrFlat),
               Custom("inverseOut", "must have one element for each slice when returnInverse is true", InversePerSlice<1, 3, 5>)});
  return {.contract = Contract(std::move(table)),
          .plan = [](Values values, PlanBuilder& plan) -> Status {
            return PlanUnique(values, plan,
                              {.self = 0, .values = 4, .inverse = 5, .counts = 6, .wants_inverse = values[1].flag,
                               .wants_counts = values[2].flag, .sorted = false, .axis = values[3].integer});
          },
          .family = "order"};
}

}  // namespace

void DeclareFind(Declarations& declarations) {
  declarations.Add("aclnnNonzero", MakeNonzero<false>);
  declarations.Add("aclnnNonzeroV2", MakeNonzero<true>);
  declarations.Add("aclnnUnique", MakeUnique);
  declarations.Add("aclnnUnique2", MakeUnique);
  declarations.Add("aclnnUniqueDim", MakeUniqueDim);
  declarations.Add("aclnnUniqueConsecutive", MakeUniqueConsecutive);
}

}  // namespace anyacl
