// SPDX-License-Identifier: Apache-2.0
// Copyright The AnyACL Authors
//
// Indexing as x[i, :, j]: a list of index tensors and masks that goes along the dims of self, with holes in it.
#include "ops/indexing/families.h"
#include "ops/order/find.h"

namespace anyacl::indexing {

using namespace contract;
using namespace movement;

namespace {

constexpr int kSelf = 0, kIndices = 1;  // of both operators; the third argument has the result's elements

// What the entries say about a call.
struct Layout {
  struct Entry {
    int item;   // of the list
    int axis;   // of self, the first that it covers
    int covers;
  };
  std::vector<Entry> entries;  // no holes
  Dims self;                   // of one element where it has no dims
  Dims places;                 // what the entries broadcast to
  int at = 0;                  // axis of the result where those begin
  Dims result;
  std::string problem;         // why there is no result

  bool Covers(int axis) const {
    return std::any_of(entries.begin(), entries.end(), [axis](const Entry& e) { return axis >= e.axis && axis < e.axis + e.covers; });
  }
};

// The number of places of masks is known on the device only: the shape of the result, or of the values that go there, tells how
// many there may be. Values that are broadcast to all of them leave it open.
int64_t PlacesOf(const Tensor& mask, const Dims& data, int behind) {
  const int axis = data.rank() - 1 - behind;
  return axis >= 0 && data[axis] != 1 ? data[axis] : mask.numel();
}

void AppendTo(Dims* dims, const Dims& more) {
  for (const int64_t size : more) dims->push_back(size);
}

void FindPlaces(Values values, Layout* layout) {
  const auto& tensors = values[kIndices].tensors->tensors;
  const auto is_mask = [&](const Layout::Entry& e) { return tensors[e.item]->dtype == DType::kBool; };
  std::vector<Dims> shapes;
  for (const Layout::Entry& e : layout->entries) {
    if (!is_mask(e)) shapes.push_back(tensors[e.item]->dims);
  }
  const auto broadcast = [&] {
    std::vector<const Dims*> pointers;
    for (const Dims& dims : shapes) pointers.push_back(&dims);
    if (!BroadcastDims(pointers, &layout->places)) layout->problem = "must have entries that broadcast together";
  };
  broadcast();
  const auto mask = std::find_if(layout->entries.begin(), layout->entries.end(), is_mask);
  if (mask == layout->entries.end() || !layout->problem.empty()) return;
  int behind = 0;  // axes of the result behind the places
  for (int axis = layout->at; axis < layout->self.rank(); ++axis) behind += !layout->Covers(axis);
  const Dims& places = layout->places;
  const int64_t others = places.rank() > 0 ? places[places.rank() - 1] : 1;
  shapes.push_back({others != 1 ? others : PlacesOf(*tensors[mask->item], values[2].tensor->dims, behind)});
  broadcast();
}

Layout LayoutOf(Values values) {
  const auto& tensors = values[kIndices].tensors->tensors;
  Layout layout;
  layout.self = values[kSelf].tensor->dims;
  int axis = 0;
  for (size_t i = 0; i < tensors.size(); ++i) {
    const Tensor& entry = *tensors[i];
    const bool hole = entry.empty();
    const int covers = hole || entry.dtype != DType::kBool ? 1 : entry.rank();
    if (!hole && layout.self.rank() == 0) layout.self = {1};
    if (!hole) layout.entries.push_back({static_cast<int>(i), axis, covers});
    axis += covers;
  }
  if (axis > std::max(layout.self.rank(), 1)) {
    layout.problem = "must not cover more dims than self has, got " + std::to_string(axis) + " for " + ToString(layout.self);
    return layout;
  }
  for (const Layout::Entry& e : layout.entries) {
    const Tensor& mask = *tensors[e.item];
    for (int i = 0; mask.dtype == DType::kBool && i < e.covers; ++i) {
      if (mask.dims[i] == layout.self[e.axis + i]) continue;
      layout.problem = "must have masks of the dims they cover, got " + ToString(mask.dims) + " for " + ToString(layout.self);
      return layout;
    }
  }
  // Where all covered axes are neighbours the places stand in their stead, else in front.
  int first = 0, last = -1, covered = 0;
  for (int i = 0; i < layout.self.rank(); ++i) {
    if (!layout.Covers(i)) continue;
    if (covered++ == 0) first = i;
    last = i;
  }
  layout.at = last - first + 1 == covered ? first : 0;
  FindPlaces(values, &layout);
  for (int i = 0; i < layout.self.rank(); ++i) {
    if (i == layout.at) AppendTo(&layout.result, layout.places);
    if (!layout.Covers(i)) layout.result.push_back(layout.self[i]);
  }
  return layout;
}

// --- rules ---------------------------------------------------------------------------------------

std::string WrongEntryType(Values v, Product) {
  constexpr DTypeSet kTypes = types::kIndex | types::kBool;
  for (const Tensor* entry : v[kIndices].tensors->tensors) {
    if (!entry->empty() && !kTypes.Has(entry->dtype)) return "must have entries of INT32, INT64 or BOOL, got " + Name(entry->dtype);
  }
  return "";
}
std::string WrongIndexed(Values v, Product) {
  const Layout layout = LayoutOf(v);
  if (!layout.problem.empty()) return layout.problem;
  const Dims& out = v[2].tensor->dims;
  return out == layout.result ? "" : "must give out the shape " + ToString(layout.result) + ", got " + ToString(out);
}
std::string WrongPut(Values v, Product) {
  const Layout layout = LayoutOf(v);
  if (!layout.problem.empty() || layout.entries.empty()) return layout.problem;
  const Dims* const both[] = {&layout.result, &v[2].tensor->dims};
  Dims broadcast;
  return BroadcastDims(both, &broadcast) && broadcast == layout.result
             ? ""
             : "must lead to places that values broadcast to, got " + ToString(*both[1]) + " for " + ToString(layout.result);
}
bool PutsNothing(Values v) {
  for (const Tensor* entry : v[kIndices].tensors->tensors) {
    // An empty row of found indices is not the empty tensor that stands for a hole: it lies in a storage with elements.
    const bool is_hole = entry->dims == Dims{0} && Numel(entry->storage) == 0;
    const bool is_index = types::kIndex.Has(entry->dtype) || entry->dtype == DType::kBool;
    if (entry->empty() && is_index && !is_hole && CurrentProduct() == Product::kAscend950) return true;
  }
  return LayoutOf(v).entries.empty();
}

// --- plans ---------------------------------------------------------------------------------------

// The coordinates of the elements of a mask that are set, [axes, count]; outside of any axis where there are less, unless
// `repeats` and there is one.
Status CoordinatesOf(PlanBuilder& plan, int item, int64_t count, bool repeats, Operand* coordinates) {
  Operand mask;
  ANYACL_RETURN_IF_ERROR(DenseOf(plan, plan.TensorOperand(kIndices, item), &mask));
  *coordinates = plan.ScratchOperand("coordinates of a mask", DType::kI64, {mask.dims.rank(), count});
  auto& params = plan.MakeParams<order::NonzeroParams>();
  params.count = Numel(mask.dims);
  params.rank = mask.dims.rank();
  params.by_axis = true;
  params.fixed = count;
  params.repeats = repeats;
  for (int i = 0; i < params.rank; ++i) params.dims[i] = mask.dims[i];
  plan.Bind(mask, params.in);
  plan.Bind(*coordinates, params.out);
  return plan.ChooseKernel(params.scratch, "nonzero");
}

// table at the places that the entries name, and data, which has the shape of the result.
Status WalkPlaces(PlanBuilder& plan, const Layout& layout, Action action, Operand table, const Operand& data) {
  if (table.dims.rank() == 0 && layout.self.rank() == 1) table = AtLeast1d(table);
  Spec spec{action, table, data, {}, {}};
  std::vector<Operand> named;  // one per index, seen as of the shape of the places
  for (const Layout::Entry& e : layout.entries) {
    const Operand entry = plan.TensorOperand(kIndices, e.item);
    Operand index;
    if (entry.dtype == DType::kBool) {
      ANYACL_RETURN_IF_ERROR(CoordinatesOf(plan, e.item, layout.places[layout.places.rank() - 1], layout.entries.size() > 1, &index));
    } else {
      ANYACL_RETURN_IF_ERROR(Converted(plan, entry, entry.dtype == DType::kI32 ? DType::kI32 : DType::kI64, &index));
    }
    for (int i = 0; i < e.covers; ++i) {
      const Operand one = entry.dtype == DType::kBool ? WithoutAxis(Narrow(index, 0, i, 1), 0) : index;
      named.push_back(pointwise::BroadcastTo(one, layout.places));
      spec.indices.push_back({named.back(), layout.self[e.axis + i], table.strides[e.axis + i], true});
    }
  }
  for (int i = 0, to = 0; i < layout.self.rank(); ++i) {
    if (i == layout.at) to += layout.places.rank();
    if (layout.Covers(i)) continue;
    spec.axes.push_back({i < layout.at ? Axis::kLane : Axis::kRun, layout.self[i], table.strides[i], data.strides[to++]});
  }
  for (int j = 0; j < layout.places.rank(); ++j) {
    Axis axis{action == Action::kRead ? Axis::kLane : Axis::kSerial, layout.places[j], 0, data.strides[layout.at + j]};
    for (const Operand& index : named) axis.index.push_back(index.strides[j]);
    spec.axes.push_back(std::move(axis));
  }
  return AddWalk(plan, std::move(spec));
}

const char* const kEntries =
    "An entry without elements is a hole: it leaves its dim of self as it is, as do dims beyond the list. The other entries broadcast "
    "together; their shape stands in the place of the dims they cover if those are neighbours, else in front. A mask covers as many "
    "dims as it has. Negative indices count from the end.";

Operator MakeIndex(const Entry& entry) {
  Table table = TableOf(entry, "walk", "The elements of self at the places that a list of index tensors and masks names.");
  table.formulas = {"out[p, ...] = self[indices_0[p], indices_1[p], ...]"};
  table.notes = {kEntries, "Outside of self, and where a mask has less places than out, the result is 0."};
  constexpr DTypeSet kNewest = types::kBasic10 | types::kComplex | types::kComplex32;
  AddNullRules(&table, {"self", "out"});
  Add(&table, {SameDType("out", "self"), DTypes("self", RowsOf(kNewest, types::kBasic10)),
               Custom("indices", "must have entries of INT32, INT64 or BOOL, but for holes", WrongEntryType), PublicFormat("self"),
               PublicFormat("out"), PublicFormat("indices"), Rank("self", 0, 8), Rank("indices", 0, 8), Rank("out", 0, 8),
               AcceptIfEmpty({"self"}), AcceptIfEmpty({"out"}), Custom("indices", "must give out its shape", WrongIndexed)});
  return {.contract = Contract(std::move(table)),
          .plan = [](Values values, PlanBuilder& plan) -> Status {
            constexpr int kOut = 2;
            if (values[kSelf].tensor->empty() || values[kOut].tensor->empty()) return {};
            const Layout layout = LayoutOf(values);
            if (layout.entries.empty()) return CopyOut(plan, plan.TensorOperand(kSelf), kOut);
            const Operand out = ApartOutput(plan, kOut);
            ANYACL_RETURN_IF_ERROR(WalkPlaces(plan, layout, Action::kRead, plan.TensorOperand(kSelf), out));
            return pointwise::FinishOutput(plan, kOut, 0, out);
          },
          .family = "indexing"};
}

Operator MakeIndexPutImpl(const Entry& entry) {
  Table table = TableOf(entry, "walk", "Puts or adds values where a list of index tensors and masks says.", {.in_out = {"selfRef"}});
  table.formulas = {"selfRef[indices_0[p], indices_1[p], ...] = values[p, ...], or += values[p, ...]"};
  table.notes = {kEntries,
                 "Of several values for one place the last one wins, sums are in order and rounded once. What lies outside of selfRef writes "
                 "nothing. unsafe has no effect.",
                 "An index tensor of shape [0] is a hole only if its storage is empty too: a mask without places that became an empty row of "
                 "indices writes nothing."};
  AddNullRules(&table, {"selfRef", "values"});
  Add(&table, {Supported(kNewerAndTraining), DTypes("selfRef", RowsOf(types::kBasic10 | types::kComplex, types::kBasic10)),
               Custom("indices", "must have entries of INT32, INT64 or BOOL, but for holes", WrongEntryType), SameDType("values", "selfRef")});
  AddStorageRules(&table);
  AddRankRules(&table);
  Add(&table, {AcceptIfEmpty({"selfRef"}), AcceptIfEmpty({"values"}), Custom("indices", "must lead to places that values broadcast to", WrongPut)});
  return {.contract = Contract(std::move(table)),
          .plan = [](Values values, PlanBuilder& plan) -> Status {
            enum { kSelfRef, kIndicesArg, kValues, kAccumulate };
            const Tensor& self = *values[kSelfRef].tensor;
            if (self.empty() || values[kValues].tensor->empty() || PutsNothing(values)) return {};
            const Layout layout = LayoutOf(values);
            const Action action = values[kAccumulate].flag ? Action::kAdd : Action::kSet;
            const DType work = action == Action::kAdd ? AccumulatorOf(self.dtype) : self.dtype;
            Operand data, walked;
            ANYACL_RETURN_IF_ERROR(Converted(plan, plan.TensorOperand(kValues), work, &data));
            ANYACL_RETURN_IF_ERROR(BeginUpdate(plan, kSelfRef, kSelfRef, work, false, &walked));
            ANYACL_RETURN_IF_ERROR(WalkPlaces(plan, layout, action, walked, pointwise::BroadcastTo(data, layout.result)));
            return EndUpdate(plan, kSelfRef, walked);
          },
          .family = "indexing"};
}

}  // namespace

void DeclareAdvanced(Declarations& declarations) {
  declarations.Add("aclnnIndex", MakeIndex);
  declarations.Add("aclnnIndexPutImpl", MakeIndexPutImpl);
}

}  // namespace anyacl::indexing
