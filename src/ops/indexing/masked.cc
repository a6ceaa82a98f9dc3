// SPDX-License-Identifier: Apache-2.0
// Copyright The AnyACL Authors
//
// Elements picked out by a mask, one behind the other, and put back.
#include "ops/indexing/families.h"
#include "ops/order/find.h"

namespace anyacl::indexing {

using namespace contract;
using namespace movement;

namespace {

// A mask for all elements of `dims`: dense, BOOL.
Status MaskFor(PlanBuilder& plan, int arg, const Dims& dims, bool copies, Operand* mask) {
  *mask = pointwise::BroadcastTo(plan.TensorOperand(arg), dims);
  if (mask->dtype == DType::kBool && mask->row_major() && !copies) return {};
  const Operand dense = plan.ScratchOperand("mask of all elements", DType::kBool, dims);
  ANYACL_RETURN_IF_ERROR(pointwise::AddCopy(plan, *mask, dense));
  *mask = dense;
  return {};
}

bool BroadcastOf(Values v, Dims* dims) {
  const Dims* const both[] = {&v[0].tensor->dims, &v[1].tensor->dims};
  return BroadcastDims(both, dims);
}
std::string WrongMask(Values v, Product) {
  Dims dims;
  return BroadcastOf(v, &dims) ? ""
                               : "must have a shape that broadcasts with self, got " + ToString(v[1].tensor->dims) + " and " +
                                     ToString(v[0].tensor->dims);
}
std::string WrongRoom(Values v, Product) {
  Dims dims;
  if (!BroadcastOf(v, &dims)) return "";  // the rule before
  const Dims& out = v[2].tensor->dims;
  const int64_t count = Numel(dims);
  return out == Dims{count} ? "" : "must have shape [" + std::to_string(count) + "], got " + ToString(out);
}

Operator MakeMaskedSelect(const Entry& entry) {
  enum { kSelf, kMask, kOut };
  Table table = TableOf(entry, "masked", "The elements of self where the mask is set, in row-major order.");
  table.notes = {"self and mask broadcast together. out has room for all their elements; phase 2 waits for the result, which lies at the front "
                 "of out, and gives out its shape, which aclGetViewShape reads."};
  constexpr DTypeSet kTypes = types::kBasic10 | types::kUnsigned3 | types::kComplex;
  AddNullRules(&table);
  Add(&table, {Supported(kFive), DTypes("self", RowsOf(kTypes, types::kBasic10)), DTypes("mask", RowsOf(types::kMask)),
               DTypes("out", RowsOf(kTypes, types::kBasic10))});
  AddStorageRules(&table);
  AddRankRules(&table);
  Add(&table, {Custom("mask", "must broadcast with self", WrongMask),
               Custom("out", "must have one dim, of as many elements as self and mask have together", WrongRoom)});
  return {.contract = Contract(std::move(table)),
          .plan = [](Values values, PlanBuilder& plan) -> Status {
            Dims dims;
            BroadcastOf(values, &dims);
            if (Numel(dims) == 0) return {};
            const Operand out = plan.TensorOperand(kOut);
            const bool apart = !plan.Overlaps(out, /*exact_too=*/true);
            Operand mask, self = pointwise::BroadcastTo(plan.TensorOperand(kSelf), dims);
            ANYACL_RETURN_IF_ERROR(MaskFor(plan, kMask, dims, !apart, &mask));
            if (self.dtype != out.dtype || !self.row_major() || !apart) {
              const Operand dense = plan.ScratchOperand("elements in the order of the mask", out.dtype, dims);
              ANYACL_RETURN_IF_ERROR(pointwise::AddCopy(plan, self, dense));
              self = dense;
            }
            auto& params = plan.MakeParams<order::MaskedParams>();
            params.count = Numel(dims);
            params.element = static_cast<int32_t>(SizeOf(out.dtype));
            plan.Bind(mask, params.mask);
            plan.Bind(self, params.wide);
            params.room = plan.BindFound(kOut, params.narrow, params.shape);
            return plan.ChooseKernel(params.scratch, "masked");
          },
          .family = "indexing"};
}

Operator MakeInplaceMaskedScatter(const Entry& entry) {
  enum { kSelfRef, kMask, kSource };
  Table table = TableOf(entry, "masked", "Puts the elements of source, one after the other, where the mask is set.", {.in_out = {"selfRef"}});
  table.notes = {"Both are gone through in row-major order, the mask broadcast to selfRef. Where source has run out of elements selfRef stays."};
  AddNullRules(&table);
  Add(&table, {Supported(kNewer), DTypes("selfRef", RowsOf(types::kBasic10 | types::kComplex, types::kBasic10)),
               DTypes("mask", RowsOf(types::kMask)), SameDType("source", "selfRef")});
  AddStorageRules(&table);
  AddRankRules(&table);
  Add(&table, {Broadcast("selfRef", {"selfRef", "mask"})});
  return {.contract = Contract(std::move(table)),
          .plan = [](Values values, PlanBuilder& plan) -> Status {
            const Tensor& self = *values[kSelfRef].tensor;
            if (self.empty() || values[kSource].tensor->empty()) return {};
            Operand mask, source, table;
            ANYACL_RETURN_IF_ERROR(MaskFor(plan, kMask, self.dims, false, &mask));
            ANYACL_RETURN_IF_ERROR(DenseOf(plan, plan.TensorOperand(kSource), &source));
            ANYACL_RETURN_IF_ERROR(BeginUpdate(plan, kSelfRef, kSelfRef, self.dtype, true, &table));
            auto& params = plan.MakeParams<order::MaskedParams>();
            params.count = self.numel();
            params.room = Numel(source.dims);
            params.element = static_cast<int32_t>(SizeOf(self.dtype));
            plan.Bind(mask, params.mask);
            plan.Bind(table, params.wide);
            plan.Bind(source, params.narrow);
            ANYACL_RETURN_IF_ERROR(plan.ChooseKernel(params.scratch, "masked"));
            return EndUpdate(plan, kSelfRef, table);
          },
          .family = "indexing"};
}

}  // namespace

void DeclareMasked(Declarations& declarations) {
  declarations.Add("aclnnInplaceMaskedScatter", MakeInplaceMaskedScatter);
  declarations.Add("aclnnMaskedSelect", MakeMaskedSelect);
}

}  // namespace anyacl::indexing
