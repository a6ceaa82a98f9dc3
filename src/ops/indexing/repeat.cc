// SPDX-License-Identifier: Apache-2.0
// Copyright The AnyACL Authors
//
// Elements repeated as often as a tensor says: a step makes the places they come from, the rest is indexing.
#include "ops/indexing/repeat.h"

#include "ops/indexing/families.h"

namespace anyacl::indexing {

using namespace contract;
using namespace movement;

namespace {

const Dims& DimsOfArg(Values values, int arg) { return values[arg].tensor->dims; }

// The item of each place: counts[i] places for item i.
Status AddRepeat(PlanBuilder& plan, int counts_arg, int64_t items, int64_t rest, const Operand& out) {
  Operand counts;
  ANYACL_RETURN_IF_ERROR(Converted(plan, plan.TensorOperand(counts_arg), DType::kI64, &counts));
  ANYACL_RETURN_IF_ERROR(DenseOf(plan, counts, &counts));
  auto& params = plan.MakeParams<RepeatParams>();
  params.items = items;
  params.size = Numel(out.dims);
  params.rest = rest;
  params.one_count = Numel(counts.dims) == 1;
  plan.Bind(counts, params.counts);
  plan.Bind(out, params.out);
  return plan.ChooseKernel("repeat");
}

// --- rules ---------------------------------------------------------------------------------------

enum { kSelf, kRepeats };

// What is repeated: the places on the axis `kDim` (an argument; -1: all elements).
template <int kDim>
int64_t ItemsOf(Values v) {
  const Tensor& self = *v[kSelf].tensor;
  if (kDim < 0) return self.numel();
  return self.dims[AxisOf(v[kDim < 0 ? 0 : kDim].integer, self.rank())];
}
template <int kDim>
std::string WrongCounts(Values v, Product) {
  const Tensor& repeats = *v[kRepeats].tensor;
  const int64_t items = ItemsOf<kDim>(v), counts = repeats.numel();
  const bool nothing = v[kSelf].tensor->empty() && repeats.empty();
  return nothing || counts == 1 || (counts == items && counts > 0)
             ? ""
             : "must have one element, or one for each of the " + std::to_string(items) + " items, got " + ToString(repeats.dims);
}
// out with outputSize places on the axis, or in all.
template <int kDim, int kOut>
Dims RepeatedDims(Values v) {
  const int64_t size = v[kOut - 1].integer;
  if (kDim < 0) return {size};
  Dims dims = DimsOfArg(v, kSelf);
  dims[AxisOf(v[kDim < 0 ? 0 : kDim].integer, dims.rank())] = size;
  return dims;
}

template <bool kWithDim>
Operator MakeRepeatInterleave(const Entry& entry) {
  constexpr int kDim = kWithDim ? 2 : -1, kOut = kWithDim ? 4 : 3;
  Table table = TableOf(entry, "walk", "Every element, or every slice of an axis, as often in a row as repeats says.");
  table.formulas = {kWithDim ? "out[..., k, ...] = self[..., i, ...] for repeats[i] places k" : "out[k] = flat(self)[i] for repeats[i] places k"};
  table.notes = {"outputSize is the sum of repeats: what goes beyond it is dropped, what is missing is 0. Counts below 0 are none."};
  constexpr DTypeSet kTypes = types::kBasic10 | types::kUnsigned3 | types::kComplex;
  AddNullRules(&table);
  Add(&table, {Supported(kNewer), DTypes("self", RowsOf(kTypes, types::kSmall8 | DTypeSet{DType::kI16})),
               DTypes("repeats", RowsOf(types::kIndex)), SameDType("out", "self")});
  AddStorageRules(&table);
  Add(&table, {Rank("repeats", 0, 1), Rank("self", kWithDim ? 1 : 0, 8), Rank("out", 0, 8)});
  if (kWithDim) Add(&table, {Dim("dim", "self")});
  Add(&table, {Custom("repeats", "must have one element, or one for each item", WrongCounts<kDim>),
               ShapeOf<kOut, RepeatedDims<kDim, kOut>>("out", "must have outputSize places on the axis, or in all")});
  return {.contract = Contract(std::move(table)),
          .plan = [](Values values, PlanBuilder& plan) -> Status {
            const Operand out = ApartOutput(plan, kOut);
            if (values[kSelf].tensor->empty() || Numel(out.dims) == 0) return {};
            Operand self = plan.TensorOperand(kSelf);
            if (!kWithDim) {
              ANYACL_RETURN_IF_ERROR(DenseOf(plan, self, &self));
              self = Reshaped(self, {Numel(self.dims)});
            }
            const int dim = kWithDim ? AxisOf(values[kWithDim ? kDim : 0].integer, self.dims.rank()) : 0;
            const Operand index = plan.ScratchOperand("places", DType::kI64, {out.dims[dim]});
            ANYACL_RETURN_IF_ERROR(AddRepeat(plan, kRepeats, self.dims[dim], -1, index));
            ANYACL_RETURN_IF_ERROR(AddWalk(plan, {Action::kRead, self, out, AxesAlong(dim, self, out, index, false),
                                                  {{index, self.dims[dim], self.strides[dim], false}}}));
            return pointwise::FinishOutput(plan, kOut, 0, out);
          },
          .family = "indexing"};
}

Dims PlacesDims(Values v) { return {v[1].integer}; }

Operator MakeRepeatInterleaveTensor(const Entry& entry) {
  enum { kCounts, kSize, kOut };
  Table table = TableOf(entry, "repeat", "The number of every element of repeats, as often in a row as it says.");
  table.formulas = {"out[k] = i for repeats[i] places k"};
  table.notes = {"outputSize is the sum of repeats: what goes beyond it is dropped, what is missing is 0. Counts below 0 are none."};
  AddNullRules(&table);
  Add(&table, {Supported(kNewer), DTypes("repeats", RowsOf(types::kIndex)), SameDType("out", "repeats")});
  AddStorageRules(&table);
  Add(&table, {Rank("repeats", 0, 8), Rank("out", 0, 8),
               Custom("repeats", "must have one dim, or no elements",
                      [](Values v, Product) {
                        const Tensor& repeats = *v[0].tensor;
                        return repeats.rank() == 1 || repeats.empty() ? std::string() : "must have one dim, got " + ToString(repeats.dims);
                      }),
               AcceptIfEmpty({"repeats"}), AcceptIfEmpty({"out"}), ShapeOf<kOut, PlacesDims>("out", "must have outputSize elements")});
  return {.contract = Contract(std::move(table)),
          .plan = [](Values values, PlanBuilder& plan) -> Status {
            if (values[kCounts].tensor->empty() || values[kOut].tensor->empty()) return {};
            const Operand out = pointwise::DenseOutput(plan, kOut, 0, DType::kI64);
            // One number is a count of its own here, of item 0.
            ANYACL_RETURN_IF_ERROR(AddRepeat(plan, kCounts, values[kCounts].tensor->numel(), 0, out));
            return pointwise::FinishOutput(plan, kOut, 0, out);
          },
          .family = "indexing"};
}

// --- gradient ------------------------------------------------------------------------------------

enum { kGrad, kCounts, kAxis, kGradOut };

// The items on the axis: one per count, or as many as out has room for.
int64_t ItemsOfGrad(Values v) {
  const Tensor& repeats = *v[kCounts].tensor;
  if (repeats.numel() != 1) return repeats.numel();
  const Dims& grad = DimsOfArg(v, kGrad);
  int64_t others = 1;
  const int axis = AxisOf(v[kAxis].integer, grad.rank());
  for (int i = 0; i < grad.rank(); ++i) others *= i == axis ? 1 : grad[i];
  return others == 0 ? 0 : v[kGradOut].tensor->numel() / others;
}
std::string WrongGradSize(Values v, Product) {
  const Dims& grad = DimsOfArg(v, kGrad);
  int64_t want = ItemsOfGrad(v);
  const int axis = AxisOf(v[kAxis].integer, grad.rank());
  for (int i = 0; i < grad.rank(); ++i) want *= i == axis ? 1 : grad[i];
  const int64_t got = v[kGradOut].tensor->numel();
  return want == got ? "" : "must have " + std::to_string(want) + " elements for yGrad " + ToString(grad) + ", got " + ToString(DimsOfArg(v, kGradOut));
}

Operator MakeRepeatInterleaveGrad(const Entry& entry) {
  Table table = TableOf(entry, "walk", "The gradient of RepeatInterleaveWithDim: sums of the places that repeat one slice.",
                        {.outputs = {"out"}});
  table.formulas = {"out[..., i, ...] = sum of yGrad[..., k, ...] over the repeats[i] places k"};
  table.notes = {"Sums are in order and rounded once."};
  table.result_pointers = ResultPointers::kAfterNullChecks;
  AddNullRules(&table);
  Add(&table, {Supported(kOnly950), DTypes("yGrad", RowsOf(types::kFloat3 | types::kDouble)), DTypes("repeats", RowsOf(types::kIndex)),
               SameDType("out", "yGrad")});
  AddStorageRules(&table);
  Add(&table, {Rank("yGrad", 1, 8).Code(561002), Rank("repeats", 0, 1).Code(561002), NotEmpty("repeats").Code(561002), Dim("axis", "yGrad").Code(561002),
               Custom("out", "must have the elements of yGrad with one place per item on the axis", WrongGradSize).Code(561002)});
  return {.contract = Contract(std::move(table)),
          .plan = [](Values values, PlanBuilder& plan) -> Status {
            const Operand out = plan.TensorOperand(kGradOut);
            if (Numel(out.dims) == 0) return {};
            Operand grad = plan.TensorOperand(kGrad);
            const DType work = AccumulatorOf(grad.dtype);
            const int axis = AxisOf(values[kAxis].integer, grad.dims.rank());
            Dims dims = grad.dims;
            dims[axis] = ItemsOfGrad(values);
            const Operand sums = plan.ScratchOperand("sums", work, dims);
            ANYACL_RETURN_IF_ERROR(AddZeros(plan, sums));
            if (Numel(grad.dims) > 0) {
              ANYACL_RETURN_IF_ERROR(Converted(plan, grad, work, &grad));
              const Operand index = plan.ScratchOperand("places", DType::kI64, {grad.dims[axis]});
              ANYACL_RETURN_IF_ERROR(AddRepeat(plan, kCounts, dims[axis], -1, index));
              ANYACL_RETURN_IF_ERROR(AddWalk(plan, {Action::kAdd, sums, grad, AxesAlong(axis, sums, grad, index, true),
                                                    {{index, dims[axis], sums.strides[axis], false}}}));
            }
            return pointwise::AddCopy(plan, Reshaped(sums, out.dims), out);
          },
          .family = "indexing"};
}

}  // namespace

void DeclareRepeats(Declarations& declarations) {
  declarations.Add("aclnnRepeatInterleave", MakeRepeatInterleave<false>);
  declarations.Add("aclnnRepeatInterleaveGrad", MakeRepeatInterleaveGrad);
  declarations.Add("aclnnRepeatInterleaveTensor", MakeRepeatInterleaveTensor);
  declarations.Add("aclnnRepeatInterleaveWithDim", MakeRepeatInterleave<true>);
}

}  // namespace anyacl::indexing
