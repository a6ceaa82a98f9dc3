// SPDX-License-Identifier: Apache-2.0
// Copyright The AnyACL Authors
//
// Elements read at positions that a tensor names: one axis, one place per element, tuples, the flat view.
#include "ops/indexing/families.h"

namespace anyacl::indexing {

using namespace contract;
using namespace movement;

namespace {

constexpr DTypeSet kAll15 = types::kBasic10 | types::kUnsigned3 | types::kComplex;

const Dims& DimsOfArg(Values values, int arg) { return values[arg].tensor->dims; }

// self[:dim] + index shape + self[dim+1:], batch dims of the index left out; a 0-dim self stays one.
Dims SelectedDims(const Dims& self, int64_t dim_arg, const Dims& index, int batch = 0) {
  if (self.rank() == 0) return {};
  const int dim = AxisOf(dim_arg, self.rank());
  Dims dims;
  for (int i = 0; i < dim; ++i) dims.push_back(self[i]);
  for (int i = batch; i < index.rank(); ++i) dims.push_back(index[i]);
  for (int i = dim + 1; i < self.rank(); ++i) dims.push_back(self[i]);
  return dims;
}
Dims OneIfScalar(const Dims& dims) { return dims.rank() == 0 ? Dims{1} : dims; }

// self read at index on one axis, for all shapes of index; out is [before, index, after].
Status PlanSelect(PlanBuilder& plan, int self_arg, int64_t dim_arg, int index_arg, int64_t batch, bool wraps, int out_arg) {
  Operand self = plan.TensorOperand(self_arg), out = ApartOutput(plan, out_arg), index;
  if (Numel(out.dims) == 0) return {};
  ANYACL_RETURN_IF_ERROR(IndexOperand(plan, index_arg, &index));
  const int dim = AxisOf(dim_arg, self.dims.rank());
  self = AtLeast1d(self);
  if (plan.TensorOf(self_arg).rank() == 0) {  // one element, named once
    index = Narrow(Reshaped(index, {Numel(index.dims)}), 0, 0, 1);
    out = AtLeast1d(out);
  } else if (out.dims.rank() == self.dims.rank()) {
    index = AtLeast1d(index);
  }
  const int places = index.dims.rank() - static_cast<int>(batch);
  std::vector<Axis> axes;
  for (int i = 0; i < self.dims.rank(); ++i) {
    if (i == dim) {
      for (int j = 0; j < places; ++j) {
        const int from = static_cast<int>(batch) + j;
        axes.push_back({Axis::kLane, index.dims[from], 0, out.strides[dim + j], {index.strides[from]}});
      }
      continue;
    }
    const int at = i < dim ? i : i - 1 + places;
    Axis axis{i < dim ? Axis::kLane : Axis::kRun, self.dims[i], self.strides[i], out.strides[at]};
    if (i < batch) axis.index = {index.strides[i]};
    axes.push_back(axis);
  }
  ANYACL_RETURN_IF_ERROR(AddWalk(
      plan, {Action::kRead, self, out, std::move(axes), {{index, self.dims[dim], self.strides[dim], wraps}}}));
  return pointwise::FinishOutput(plan, out_arg, 0, out);
}

// --- one axis ------------------------------------------------------------------------------------

Dims IndexSelectDims(Values v) { return SelectedDims(DimsOfArg(v, 0), v[1].integer, OneIfScalar(DimsOfArg(v, 2))); }

Operator MakeIndexSelect(const Entry& entry) {
  Table table = TableOf(entry, "walk", "The slices of self that index names along one axis; outside of it they are 0.");
  table.formulas = {"out[..., i, ...] = self[..., index[i], ...]"};
  AddNullRules(&table);
  Add(&table, {Supported(kFive), DTypes("self", RowsOf(kAll15)), SameDType("out", "self"), DTypes("index", RowsOf(types::kIndex)),
               PublicFormat("self"), PublicFormat("index"), PublicFormat("out")});
  AddRankRules(&table);
  Add(&table, {Dim("dim", "self"), Rank("index", 0, 1), AcceptIfEmpty({"self"}), AcceptIfEmpty({"index"}),
               ShapeOf<3, IndexSelectDims>("out", "must have the shape of self with the length of index on the axis")});
  return {.contract = Contract(std::move(table)),
          .plan = [](Values values, PlanBuilder& plan) -> Status {
            enum { kSelf, kDim, kIndex, kOut };
            if (values[kSelf].tensor->empty() || values[kIndex].tensor->empty()) return {};
            return PlanSelect(plan, kSelf, values[kDim].integer, kIndex, 0, false, kOut);
          },
          .family = "indexing"};
}

Dims GatherV2Dims(Values v) { return SelectedDims(DimsOfArg(v, 0), v[1].integer, OneIfScalar(DimsOfArg(v, 2))); }

Operator MakeGatherV2(const Entry& entry) {
  Table table = TableOf(entry, "walk", "The slices of self that index names along one axis; negative ones count from the end.");
  table.formulas = {"out[..., i, j, ...] = self[..., index[i, j], ...]"};
  AddNullRules(&table);
  Add(&table, {Supported(kFive), SameDType("out", "self"),
               DTypes("self", RowsOf(types::kBasic10 | types::kComplex | DTypeSet{DType::kU16}, types::kBasic10 | types::kComplex)),
               DTypes("index", RowsOf(types::kIndex))});
  AddStorageRules(&table);
  AddRankRules(&table);
  Add(&table, {Dim("dim", "self"),
               ShapeOf<3, GatherV2Dims>("out", "must have the shape of self with that of index in place of the axis")});
  return {.contract = Contract(std::move(table)),
          .plan = [](Values values, PlanBuilder& plan) -> Status {
            enum { kSelf, kDim, kIndex, kOut };
            return PlanSelect(plan, kSelf, values[kDim].integer, kIndex, 0, true, kOut);
          },
          .family = "indexing"};
}

Dims GatherV3Dims(Values v) {
  return SelectedDims(DimsOfArg(v, 0), v[1].integer, DimsOfArg(v, 2), static_cast<int>(v[3].integer));
}
std::string WrongBatch(Values v, Product product) {
  const Dims &self = DimsOfArg(v, 0), &index = DimsOfArg(v, 2);
  const int64_t batch = v[3].integer, dim = AxisOf(v[1].integer, self.rank());
  if (product != Product::kAscend950) {
    return batch == 0 && dim == 0 && v[4].integer == 1
               ? ""
               : "must be 0 with dim 0 and mode 1 on this product, got " + std::to_string(batch) + " with dim " + std::to_string(dim) +
                     " and mode " + std::to_string(v[4].integer);
  }
  bool fits = batch >= 0 && batch <= dim && batch <= index.rank() && batch < std::max(self.rank(), 1);
  for (int i = 0; fits && i < batch; ++i) fits = self[i] == index[i];
  return fits ? ""
              : "must count leading dims that self and index share, at most dim, got " + std::to_string(batch) + " for shapes " +
                    ToString(self) + " and " + ToString(index);
}

Operator MakeGatherV3(const Entry& entry) {
  Table table = TableOf(entry, "walk", "The slices of self that index names along one axis, each batch its own; outside of it they are 0.");
  table.formulas = {"out[b, ..., i, ...] = self[b, ..., index[b, i], ...]"};
  AddNullRules(&table);
  Add(&table, {Supported(kNewer), SameDType("out", "self"), DTypes("self", RowsOf(types::kBasic10 | types::kComplex)),
               DTypes("index", RowsOf(types::kIndex))});
  AddStorageRules(&table);
  AddRankRules(&table);
  Add(&table, {Dim("dim", "self"), Custom("batchDims", "must count leading dims that self and index share", WrongBatch),
               ShapeOf<5, GatherV3Dims>("out", "must have the shape of self with that of index in place of the axis")});
  return {.contract = Contract(std::move(table)),
          .plan = [](Values values, PlanBuilder& plan) -> Status {
            enum { kSelf, kDim, kIndex, kBatchDims, kMode, kOut };
            return PlanSelect(plan, kSelf, values[kDim].integer, kIndex, values[kBatchDims].integer, false, kOut);
          },
          .family = "indexing"};
}

std::string WrongEmbedding(Values v, Product) {
  const Dims &weight = DimsOfArg(v, 0), &indices = DimsOfArg(v, 1), &out = DimsOfArg(v, 2);
  if (weight.rank() != 2) return "";
  Dims want = indices;
  want.push_back(weight[1]);
  return want == out ? "" : "must have shape " + ToString(want) + ", got " + ToString(out);
}

Operator MakeEmbedding(const Entry& entry) {
  Table table = TableOf(entry, "walk", "The rows of weight that indices name; outside of it they are 0.", {.outputs = {"out"}});
  table.formulas = {"out[..., :] = weight[indices[...], :]"};
  AddNullRules(&table);
  Add(&table, {DTypes("weight", EverywhereRows(types::kBasic10 | types::kComplex)), SameDType("out", "weight"),
               DTypes("indices", RowsOf(types::kIndex))});
  AddStorageRules(&table);
  AddRankRules(&table);
  Add(&table, {Rank("weight", 2, 2), Custom("out", "must have the shape of indices and the row length of weight", WrongEmbedding)});
  return {.contract = Contract(std::move(table)),
          .plan = [](Values, PlanBuilder& plan) -> Status {
            enum { kWeight, kIndices, kOut };
            return PlanSelect(plan, kWeight, 0, kIndices, 0, false, kOut);
          },
          .family = "indexing"};
}

// --- one place per element -----------------------------------------------------------------------

std::string WrongGatherIndex(Values v, Product) {
  const Dims self = OneIfScalar(DimsOfArg(v, 0)), index = OneIfScalar(DimsOfArg(v, 2));
  if (Numel(index) == 0) return "";
  const int dim = AxisOf(v[1].integer, self.rank());
  for (int i = 0; i < self.rank(); ++i) {
    if (i == dim ? self[i] == 0 : index[i] > self[i]) {
      return "must fit into self on every other axis, got " + ToString(index) + " for " + ToString(self);
    }
  }
  return "";
}
std::string WrongGatherRank(Values v, Product) {
  const Dims &self = DimsOfArg(v, 0), &index = DimsOfArg(v, 2);
  return Numel(index) == 0 || OneIfScalar(self).rank() == OneIfScalar(index).rank()
             ? ""
             : "must have as many dims as self, got " + ToString(index) + " for " + ToString(self);
}
std::string WrongIndexType(Values v, Product) {
  const Tensor& index = *v[2].tensor;
  return index.empty() || types::kIndex.Has(index.dtype) ? "" : "must be INT32 or INT64 unless it is empty, got " + Name(index.dtype);
}

Operator MakeGather(const Entry& entry) {
  Table table = TableOf(entry, "walk", "For every element the place on one axis of self that index names there.");
  table.formulas = {"out[i, j, k] = self[i, index[i, j, k], k] for dim 1"};
  table.notes = {"Negative indices count from the end; outside of self the result is 0."};
  AddNullRules(&table);
  Add(&table, {Supported(kNewer), DTypes("self", RowsOf(kAll15, types::kBasic10 | types::kUnsigned3)),
               Custom("index", "must be INT32 or INT64 unless it is empty", WrongIndexType), SameDType("out", "self")});
  AddStorageRules(&table);
  Add(&table, {Custom("index", "must have as many dims as self unless it is empty", WrongGatherRank)});
  AddRankRules(&table);
  Add(&table, {SameShape("out", "index"), Dim("dim", "self"), Custom("index", "must fit into self", WrongGatherIndex)});
  return {.contract = Contract(std::move(table)),
          .plan = [](Values values, PlanBuilder& plan) -> Status {
            enum { kSelf, kDim, kIndex, kOut };
            if (values[kIndex].tensor->empty()) return {};
            const Operand self = AtLeast1d(plan.TensorOperand(kSelf)), out = ApartOutput(plan, kOut);
            Operand index;
            ANYACL_RETURN_IF_ERROR(IndexOperand(plan, kIndex, &index));
            index = AtLeast1d(index);
            const int dim = AxisOf(values[kDim].integer, self.dims.rank());
            ANYACL_RETURN_IF_ERROR(AddWalk(plan, {Action::kRead, self, out, AxesEach(dim, self, AtLeast1d(out), index, false),
                                                  {{index, self.dims[dim], self.strides[dim], true}}}));
            return pointwise::FinishOutput(plan, kOut, 0, out);
          },
          .family = "indexing"};
}

std::string TakenFromNothing(Values v, Product) {
  return v[0].tensor->empty() && !v[1].tensor->empty() ? "must have elements when index has, got " + ToString(DimsOfArg(v, 0)) : "";
}

Operator MakeTake(const Entry& entry) {
  Table table = TableOf(entry, "walk", "The elements of self, counted in row-major order, that index names.");
  table.formulas = {"out[i] = flat(self)[index[i]]"};
  table.notes = {"Negative indices count from the end; outside of self the result is 0."};
  AddNullRules(&table);
  Add(&table, {Supported(kNewerAndTraining), DTypes("self", RowsOf(kAll15)), SameDType("out", "self"),
               DTypes("index", RowsOf(types::kIndex)), Rank("self", 0, 8), Rank("index", 0, 8), SameShape("out", "index"),
               Custom("self", "must have elements when index has", TakenFromNothing), PublicFormat("self"), PublicFormat("index"),
               PublicFormat("out")});
  return {.contract = Contract(std::move(table)),
          .plan = [](Values values, PlanBuilder& plan) -> Status {
            enum { kSelf, kIndex, kOut };
            if (values[kIndex].tensor->empty()) return {};
            const Operand out = ApartOutput(plan, kOut);
            Operand self, index;
            ANYACL_RETURN_IF_ERROR(DenseOf(plan, plan.TensorOperand(kSelf), &self));
            ANYACL_RETURN_IF_ERROR(IndexOperand(plan, kIndex, &index));
            std::vector<Axis> axes;
            for (int i = 0; i < index.dims.rank(); ++i) {
              axes.push_back({Axis::kLane, index.dims[i], 0, out.strides[i], {index.strides[i]}});
            }
            ANYACL_RETURN_IF_ERROR(
                AddWalk(plan, {Action::kRead, self, out, std::move(axes), {{index, Numel(self.dims), 1, true}}}));
            return pointwise::FinishOutput(plan, kOut, 0, out);
          },
          .family = "indexing"};
}

// --- tuples --------------------------------------------------------------------------------------

std::string WrongTuple(Values v, Product) {
  const Dims &self = DimsOfArg(v, 0), &indices = DimsOfArg(v, 1);
  const int64_t k = indices[indices.rank() - 1];
  return k >= 1 && k <= self.rank() ? ""
                                    : "must have 1 to " + std::to_string(self.rank()) + " numbers in its last dim, got " + ToString(indices);
}
Dims GatherNdDims(Values v) {
  const Dims &self = DimsOfArg(v, 0), &indices = DimsOfArg(v, 1);
  Dims dims;
  for (int i = 0; i + 1 < indices.rank(); ++i) dims.push_back(indices[i]);
  for (int i = static_cast<int>(indices[indices.rank() - 1]); i < self.rank(); ++i) dims.push_back(self[i]);
  return dims;
}

Operator MakeGatherNd(const Entry& entry) {
  Table table = TableOf(entry, "walk", "The slices of self at the coordinates that rows of indices name; outside of it they are 0.");
  table.formulas = {"out[i, ...] = self[indices[i, 0], indices[i, 1], ...]"};
  AddNullRules(&table);
  Add(&table, {Supported(kNewer), SameDType("out", "self"), DTypes("self", RowsOf(types::kBasic10 | types::kUnsigned3, types::kSmall8)),
               DTypes("indices", RowsOf(types::kIndex))});
  AddStorageRules(&table);
  Add(&table, {Rank("self", 1, 8), Rank("indices", 1, 8), Rank("out", 0, 8),
               Custom("indices", "must name at most as many coordinates as self has dims", WrongTuple),
               ShapeOf<3, GatherNdDims>("out", "must have the shape of indices without its last dim, then the dims of self not named")});
  return {.contract = Contract(std::move(table)),
          .plan = [](Values values, PlanBuilder& plan) -> Status {
            enum { kSelf, kIndices, kNegative, kOut };
            const Operand out = ApartOutput(plan, kOut);
            if (Numel(out.dims) == 0) return {};
            Operand indices;
            ANYACL_RETURN_IF_ERROR(IndexOperand(plan, kIndices, &indices));
            ANYACL_RETURN_IF_ERROR(
                AddWalk(plan, TupleSpec(Action::kRead, plan.TensorOperand(kSelf), out, indices, values[kNegative].flag)));
            return pointwise::FinishOutput(plan, kOut, 0, out);
          },
          .family = "indexing"};
}

}  // namespace

void DeclareReads(Declarations& declarations) {
  declarations.Add("aclnnEmbedding", MakeEmbedding);
  declarations.Add("aclnnGather", MakeGather);
  declarations.Add("aclnnGatherNd", MakeGatherNd);
  declarations.Add("aclnnGatherV2", MakeGatherV2);
  declarations.Add("aclnnGatherV3", MakeGatherV3);
  declarations.Add("aclnnIndexSelect", MakeIndexSelect);
  declarations.Add("aclnnTake", MakeTake);
}

}  // namespace anyacl::indexing
