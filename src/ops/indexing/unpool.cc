// SPDX-License-Identifier: Apache-2.0
// Copyright The AnyACL Authors
//
// MaxUnpool: elements put back to the places in a plane that a max pool took them from, and the gradient.
#include "ops/indexing/families.h"

namespace anyacl::indexing {

using namespace contract;
using namespace movement;

namespace {

constexpr DTypeSet kPooled = types::kFloat3 | types::kDouble | types::kInt5;
constexpr DTypeSet kPooledOlder = types::kDouble | types::kInt5 | DTypeSet{DType::kF32, DType::kF16};

// Where the arguments of an entry stand.
struct Row {
  const char* op;
  int axes;      // of a plane
  int large;     // the unpooled tensor
  int small;     // the pooled one
  int described; // of the pooled shape, in the gradients; else -1
  int indices;
  int size;
  bool steps;    // stride and padding follow
};
constexpr Row kRows[] = {
    {"aclnnMaxUnpool2d", 2, 3, 0, -1, 1, 2, false},
    {"aclnnMaxUnpool3d", 3, 5, 0, -1, 1, 2, true},
    {"aclnnMaxUnpool2dBackward", 2, 0, 4, 1, 2, 3, false},
    {"aclnnMaxUnpool3dBackward", 3, 0, 6, 1, 2, 3, true},
};

const Dims& DimsOfArg(Values values, int arg) { return values[arg].tensor->dims; }
std::string Show(const std::vector<int64_t>& numbers) {
  Dims dims;
  for (const int64_t n : numbers) dims.push_back(n);
  return ToString(dims);
}

// All dims but the first have elements.
template <int kRow>
std::string WrongPooled(Values v, Product) {
  const Dims& self = DimsOfArg(v, kRows[kRow].described >= 0 ? kRows[kRow].described : kRows[kRow].small);
  for (int i = 1; i < self.rank(); ++i) {
    if (self[i] <= 0) return "must have elements on every axis but the first, got " + ToString(self);
  }
  return "";
}
template <int kRow>
std::string WrongSize(Values v, Product) {
  constexpr Row row = kRows[kRow];
  const Dims& self = DimsOfArg(v, row.described >= 0 ? row.described : row.small);
  const std::vector<int64_t>& size = v[row.size].ints->values;
  if (size.size() != static_cast<size_t>(row.axes)) return "must have " + std::to_string(row.axes) + " entries, got " + Show(size);
  Dims plane, pooled;
  for (int i = 0; i < row.axes; ++i) {
    if (size[static_cast<size_t>(i)] <= 0) return "must have positive entries, got " + Show(size);
    plane.push_back(size[static_cast<size_t>(i)]);
    pooled.push_back(self[self.rank() - row.axes + i]);
  }
  const int64_t room = Numel(plane);
  return room != kOverflow && room >= Numel(pooled) ? "" : "must give a plane of at least as many elements as that of self, got " + Show(size) + " for " + ToString(self);
}
template <int kRow>
std::string WrongSteps(Values v, Product) {
  const std::vector<int64_t>&stride = v[kRows[kRow].size + 1].ints->values, &padding = v[kRows[kRow].size + 2].ints->values;
  if (stride.size() != 3 || padding.size() != 3) return "must have 3 entries, as padding, got " + Show(stride) + " and " + Show(padding);
  for (const int64_t one : stride) {
    if (one <= 0) return "must have positive entries, got " + Show(stride);
  }
  return "";
}
// The leading dims of self, then outputSize.
template <int kRow>
Dims LargeDims(Values v) {
  constexpr Row row = kRows[kRow];
  const Dims& self = DimsOfArg(v, row.described >= 0 ? row.described : row.small);
  Dims dims;
  for (int i = 0; i + row.axes < self.rank(); ++i) dims.push_back(self[i]);
  for (const int64_t size : v[row.size].ints->values) dims.push_back(size);
  return dims;
}
template <int kRow>
std::string NotDense(Values v, Product) {
  constexpr Row row = kRows[kRow];
  const Tensor& out = *v[row.described >= 0 ? row.small : row.large].tensor;
  return IsContiguous(out) ? "" : "must be contiguous, got strides " + ToString(out.strides);
}

// A tensor as [planes, elements of a plane].
Status Planes(PlanBuilder& plan, Operand operand, int axes, Operand* planes) {
  ANYACL_RETURN_IF_ERROR(DenseOf(plan, operand, planes));
  int64_t plane = 1;
  for (int i = 0; i < axes; ++i) plane *= operand.dims[operand.dims.rank() - 1 - i];
  *planes = Reshaped(*planes, {Numel(operand.dims) / plane, plane});
  return {};
}

Status PlanUnpool(const Row& row, PlanBuilder& plan) {
  const bool forward = row.described < 0;
  const int from_arg = forward ? row.small : row.large, out_arg = forward ? row.large : row.small;
  const Operand from = plan.TensorOperand(from_arg);
  if (Numel(plan.TensorOperand(out_arg).dims) == 0 || Numel(from.dims) == 0) return {};
  const Operand out = pointwise::DenseOutput(plan, out_arg, 0, from.dtype);
  Operand large, small, index;
  ANYACL_RETURN_IF_ERROR(IndexOperand(plan, row.indices, &index));
  ANYACL_RETURN_IF_ERROR(Planes(plan, index, row.axes, &index));
  ANYACL_RETURN_IF_ERROR(Planes(plan, forward ? out : from, row.axes, &large));
  ANYACL_RETURN_IF_ERROR(Planes(plan, forward ? from : out, row.axes, &small));
  if (forward) ANYACL_RETURN_IF_ERROR(AddZeros(plan, out));
  ANYACL_RETURN_IF_ERROR(AddWalk(plan, {forward ? Action::kSet : Action::kRead, large, small, AxesEach(1, large, small, index, forward),
                                        {{index, large.dims[1], 1, false}}}));
  return pointwise::FinishOutput(plan, out_arg, 0, out);
}

template <int kRow>
Operator MakeMaxUnpool(const Entry& entry) {
  constexpr Row row = kRows[kRow];
  constexpr bool kForward = row.described < 0;
  Table table = TableOf(entry, "walk", kForward ? "Puts elements to places in planes of zeros." : "The elements of gradOutput at the places that indices names.");
  table.formulas = {kForward ? "out[n, c, indices[n, c, i]] = self[n, c, i], planes counted as one axis" : "out[n, c, i] = gradOutput[n, c, indices[n, c, i]]"};
  table.notes = {kForward ? "Of several elements for one place the last one wins; what lies outside of a plane writes nothing."
                          : "Outside of a plane the result is 0."};
  const char* const out = table.args[kForward ? row.large : row.small].name;
  const char* const self = table.args[kForward ? row.small : row.described].name;
  AddNullRules(&table);
  if (row.steps) Add(&table, {Custom(out, "must be contiguous", NotDense<kRow>)});
  Add(&table, {Supported(kForward ? kNewer : kNewerAndTraining)});
  constexpr DTypeSet kBackward2d = types::kInt5Bool | DTypeSet{DType::kF32, DType::kF16};
  const bool flat_gradient = !kForward && row.axes == 2;
  Add(&table, {DTypes(self, kForward ? RowsOf(kPooled, kPooledOlder) : RowsOf(flat_gradient ? kBackward2d : kPooledOlder))});
  if (!kForward) Add(&table, {SameDType("gradOutput", self)});
  Add(&table, {flat_gradient ? ResultConverts("gradOutput", out) : SameDType(out, self)});
  Add(&table, {DTypes("indices", RowsOf(!kForward && row.axes == 3 ? DTypeSet{DType::kI64} : types::kIndex))});
  AddStorageRules(&table);
  Add(&table, {Rank(self, row.axes + 1, row.axes + 2), SameShape("indices", self), Custom(self, "must have elements on every axis but the first", WrongPooled<kRow>),
               Custom("outputSize", "must give a plane of at least as many elements as that of self", WrongSize<kRow>)});
  if (row.steps) Add(&table, {Custom("stride", "must have 3 positive entries, and padding 3", WrongSteps<kRow>)});
  Add(&table, {ShapeOf<row.large, LargeDims<kRow>>(table.args[row.large].name, "must have the leading dims of self, then outputSize")});
  if (!kForward) Add(&table, {SameShape(out, self)});
  return {.contract = Contract(std::move(table)),
          .plan = [](Values, PlanBuilder& plan) { return PlanUnpool(kRows[kRow], plan); },
          .family = "indexing"};
}

template <int... kIndices>
void Declare(Declarations& declarations, std::integer_sequence<int, kIndices...>) {
  (declarations.Add(kRows[kIndices].op, MakeMaxUnpool<kIndices>), ...);
}

}  // namespace

void DeclareUnpools(Declarations& declarations) {
  Declare(declarations, std::make_integer_sequence<int, static_cast<int>(std::size(kRows))>());
}

}  // namespace anyacl::indexing
