// SPDX-License-Identifier: Apache-2.0
// Copyright The AnyACL Authors
//
// Tensors joined along an axis, and taken apart again.
#include <numeric>

#include "core/promotion.h"
#include "ops/movement/families.h"

namespace anyacl::movement {

using namespace contract;

namespace {

std::span<const Tensor* const> ListOf(Values values, int arg) { return values[arg].tensors->tensors; }

// --- cat and stack -------------------------------------------------------------------------------

// The documents' old rule: tensors of shape [0] count for nothing.
bool IsLeftOut(const Tensor& t) { return t.rank() == 1 && t.dims[0] == 0; }

// What the operands are computed in; where the table has no answer for an unsigned one, that of out.
DType JoinedType(Values v, int tensors, int out, bool leave_out, Product product) {
  DType result = DType::kUndefined;
  bool first = true;
  for (const Tensor* t : ListOf(v, tensors)) {
    if (leave_out && IsLeftOut(*t)) continue;
    const DType next = first ? t->dtype : Promote(result, t->dtype);
    if (!first && next == DType::kUndefined && product == Product::kAscend950) return v[out].tensor->dtype;
    result = next;
    first = false;
  }
  return result;
}

template <bool kLeaveOut>
std::string WrongJoin(Values v, Product product) {
  enum { kTensors, kDim, kOut };
  const bool none = std::ranges::all_of(ListOf(v, kTensors), [](const Tensor* t) { return kLeaveOut && IsLeftOut(*t); });
  if (none) return "";
  const DType joined = JoinedType(v, kTensors, kOut, kLeaveOut, product), out = v[kOut].tensor->dtype;
  if (joined == DType::kUndefined) return "must have dtypes that are computed together";
  if (kLeaveOut && joined == DType::kC128 && product != Product::kAscend950) return "must not be computed in COMPLEX128";
  const bool same = joined == out || (joined == DType::kC32 && (IsComplex(out) || out == DType::kC32)) ||
                    (joined == DType::kC64 && out == DType::kC32);
  if (!same && !ConvertsTo(joined, out)) return "must be computed in a dtype that out can take, got " + Name(joined) + " for " + Name(out);
  return "";
}

std::string WrongCatShapes(Values v, Product) {
  const Tensor* first = nullptr;
  for (const Tensor* t : ListOf(v, 0)) {
    if (IsLeftOut(*t)) continue;
    if (!first) first = t;
    const int rank = first->rank();
    if (rank == 0) return "must have dims, got []";
    if (v[1].integer < -rank || v[1].integer >= rank) {
      return "must have the axis dim, got " + std::to_string(v[1].integer) + " for " + ToString(first->dims);
    }
    const int dim = AxisOf(v[1].integer, rank);
    bool fits = t->rank() == rank;
    for (int i = 0; fits && i < rank; ++i) fits = i == dim || t->dims[i] == first->dims[i];
    if (!fits) return "must have the same shape but on the axis, got " + ToString(first->dims) + " and " + ToString(t->dims);
  }
  return "";
}
Dims CatDims(Values v) {
  Dims dims;
  int64_t length = 0;
  bool any = false;
  for (const Tensor* t : ListOf(v, 0)) {
    if (IsLeftOut(*t)) continue;
    any = true;
    dims = t->dims;
    length += dims[AxisOf(v[1].integer, dims.rank())];
  }
  if (!any) return v[2].tensor->dims;
  dims[AxisOf(v[1].integer, dims.rank())] = length;
  return dims;
}
std::string DifferentFormats(Values v, Product) {
  const Tensor* first = nullptr;
  for (const Tensor* t : ListOf(v, 0)) {
    if (IsLeftOut(*t)) continue;
    if (!first) first = t;
    if (IsPrivate(t->format)) return "must have a public format, got " + Name(t->format);
  }
  return first && IsPrivate(v[2].tensor->format) ? "must not be joined into a private format, got " + Name(v[2].tensor->format) : "";
}

// Each input becomes a piece of out.
Status PlanJoin(PlanBuilder& plan, Values values, int out_arg, const std::vector<Operand>& pieces, const Operand& out,
                const std::vector<Operand>& places) {
  (void)values;
  for (size_t i = 0; i < pieces.size(); ++i) ANYACL_RETURN_IF_ERROR(pointwise::AddCopy(plan, pieces[i], places[i]));
  return pointwise::FinishOutput(plan, out_arg, 0, out);
}

Operator MakeCat(const Entry& entry) {
  Table table = TableOf(entry, "copy", "Joins tensors along one of their axes.");
  table.notes = {"Tensors of shape [0] are left out. Each tensor is converted to the dtype of out at once."};
  constexpr DTypeSet kOlder = types::kBasic10 | DTypeSet{DType::kC64};
  constexpr DTypeSet kNewest = kOlder | types::kUnsigned3 | types::kComplex | types::kComplex32;
  AddNullRules(&table);
  Add(&table, {DTypes("tensors", RowsOf(kNewest, kOlder)), DTypes("out", RowsOf(kNewest, kOlder)),
               Custom("tensors", "must have dtypes that are computed together, and that out can take", WrongJoin<true>),
               Custom("tensors", "must have public formats", DifferentFormats)});
  AddRankRules(&table);
  Add(&table, {Custom("tensors", "must have the same shape but on the axis dim", WrongCatShapes),
               ShapeOf<2, CatDims>("out", "must have the length of all tensors together on the axis")});
  return {.contract = Contract(std::move(table)),
          .plan = [](Values values, PlanBuilder& plan) -> Status {
            enum { kTensors, kDim, kOut };
            const auto list = ListOf(values, kTensors);
            if (values[kOut].tensor->empty() || std::ranges::all_of(list, [](const Tensor* t) { return IsLeftOut(*t); })) return {};
            const Operand out = ApartOutput(plan, kOut);
            const int dim = AxisOf(values[kDim].integer, out.dims.rank());
            std::vector<Operand> pieces, places;
            int64_t at = 0;
            for (size_t i = 0; i < list.size(); ++i) {
              if (IsLeftOut(*list[i])) continue;
              const int64_t length = list[i]->dims[dim];
              pieces.push_back(plan.TensorOperand(kTensors, static_cast<int>(i)));
              places.push_back(Narrow(out, dim, at, length));
              at += length;
            }
            return PlanJoin(plan, values, kOut, pieces, out, places);
          },
          .family = "movement"};
}

std::string NoTensors(Values v, Product) { return ListOf(v, 0).empty() ? "must have an entry" : ""; }
std::string WrongStackShapes(Values v, Product) {
  const auto list = ListOf(v, 0);
  const int rank = list[0]->rank();
  if (v[1].integer < -(rank + 1) || v[1].integer > rank) {
    return "must leave room for the axis dim, got " + std::to_string(v[1].integer) + " for " + ToString(list[0]->dims);
  }
  for (const Tensor* t : list) {
    if (t->dims != list[0]->dims) return "must have the same shape, got " + ToString(list[0]->dims) + " and " + ToString(t->dims);
  }
  return "";
}
int StackAxis(Values v) {
  const int64_t dim = v[1].integer;
  return static_cast<int>(dim < 0 ? dim + ListOf(v, 0)[0]->rank() + 1 : dim);
}
Dims StackDims(Values v) {
  const auto list = ListOf(v, 0);
  Dims dims;
  for (int i = 0; i <= list[0]->rank(); ++i) {
    if (i == StackAxis(v)) dims.push_back(static_cast<int64_t>(list.size()));
    if (i < list[0]->rank()) dims.push_back(list[0]->dims[i]);
  }
  return dims;
}

Operator MakeStack(const Entry& entry) {
  Table table = TableOf(entry, "copy", "Joins tensors of one shape along a new axis.");
  table.formulas = {"out[..., i, ...] = tensors[i][...]"};
  constexpr DTypeSet kTypes = types::kBasic10 | types::kUnsigned3 | types::kComplex;
  Add(&table, {NotNull("tensors").Code(561103), NotNull("out").Code(561103), Supported(kFive),
               Custom("tensors", "must have an entry", NoTensors), DTypes("tensors", RowsOf(kTypes | types::kComplex32, kTypes)),
               DTypes("out", RowsOf(kTypes | types::kComplex32, kTypes)),
               Custom("tensors", "must have dtypes that are computed together, and that out can take", WrongJoin<false>)});
  AddStorageRules(&table);
  Add(&table, {Rank("tensors", 0, 7), Custom("tensors", "must have the same shape and leave room for the axis", WrongStackShapes),
               ShapeOf<2, StackDims>("out", "must have the shape of the tensors with their number on the new axis")});
  return {.contract = Contract(std::move(table)),
          .plan = [](Values values, PlanBuilder& plan) -> Status {
            enum { kTensors, kDim, kOut };
            const auto list = ListOf(values, kTensors);
            if (values[kOut].tensor->empty()) return {};
            const Operand out = ApartOutput(plan, kOut);
            const int dim = StackAxis(values);
            std::vector<Operand> pieces, places;
            for (int i = 0; i < static_cast<int>(list.size()); ++i) {
              pieces.push_back(plan.TensorOperand(kTensors, i));
              places.push_back(WithoutAxis(Narrow(out, dim, i, 1), dim));
            }
            return PlanJoin(plan, values, kOut, pieces, out, places);
          },
          .family = "movement"};
}

// --- chunks of tensors, side by side -------------------------------------------------------------

int64_t ChunkRows(const Tensor& t, int64_t chunks) { return t.dims[0] / chunks + (t.dims[0] % chunks != 0); }
int64_t RowLength(const Tensor& t) {
  int64_t length = 1;
  for (int i = 1; i < t.rank(); ++i) length *= t.dims[i];
  return length;
}
std::string NotFirstAxis(Values v, Product) { return v[1].integer == 0 ? "" : "must be 0, got " + std::to_string(v[1].integer); }
std::string WrongChunkTypes(Values v, Product) {
  const auto list = ListOf(v, 0);
  const DType out = v[3].tensor->dtype;
  for (const Tensor* t : list) {
    if (t->dtype != list[0]->dtype) return "must have one dtype, got " + Name(list[0]->dtype) + " and " + Name(t->dtype);
    if (t->dtype == DType::kF32 && out != DType::kF32) return "must go to FLOAT when they are FLOAT, got " + Name(out);
  }
  return "";
}
bool ChunksAreEmpty(Values v) {
  return std::ranges::all_of(ListOf(v, 0), [](const Tensor* t) { return t->empty(); });
}
Dims ChunkCatDims(Values v) {
  if (ListOf(v, 0).empty() || ChunksAreEmpty(v)) return v[3].tensor->dims;
  int64_t length = 0;
  for (const Tensor* t : ListOf(v, 0)) length += t->empty() ? 0 : ChunkRows(*t, v[2].integer) * RowLength(*t);
  return {v[2].integer, length};
}

Operator MakeChunkCat(const Entry& entry) {
  Table table = TableOf(entry, "copy", "Cuts every tensor into chunks of its first axis, padded with 0, and joins the chunks.");
  table.formulas = {"out[c] = the c-th chunks of all tensors, each flattened, one behind the other"};
  Add(&table, {NotNull("tensors"), NotNull("out"), Custom("dim", "must be 0", NotFirstAxis), Supported(kNewer),
               Custom("tensors", "must have one dtype, and FLOAT goes to FLOAT", WrongChunkTypes),
               DTypes("tensors", RowsOf(types::kFloat3)), DTypes("out", RowsOf(types::kFloat3)), PublicFormat("tensors"),
               PublicFormat("out"), Rank("tensors", 1, 8),
               Custom("numChunks", "must be at least 1",
                      [](Values v, Product) { return v[2].integer >= 1 ? std::string() : "must be at least 1, got " + std::to_string(v[2].integer); }),
               ShapeOf<3, ChunkCatDims>("out", "must have numChunks rows of all chunks together")});
  return {.contract = Contract(std::move(table)),
          .plan = [](Values values, PlanBuilder& plan) -> Status {
            enum { kTensors, kDim, kNumChunks, kOut };
            if (ListOf(values, kTensors).empty() || ChunksAreEmpty(values)) return {};
            const int64_t chunks = values[kNumChunks].integer;
            const Operand out = ApartOutput(plan, kOut);
            ANYACL_RETURN_IF_ERROR(AddZeros(plan, out));
            int64_t at = 0;
            int item = 0;
            for (const Tensor* t : ListOf(values, kTensors)) {
              const Operand from = plan.TensorOperand(kTensors, item++);
              if (t->empty()) continue;
              const int64_t rows = ChunkRows(*t, chunks), length = RowLength(*t);
              const int64_t full = t->dims[0] / rows, rest = t->dims[0] % rows;
              // [chunks, rows, the tensor's other dims] inside of out.
              Operand place = SplitAxis(Narrow(out, 1, at, rows * length), 1, length);
              for (int i = 1; i < t->rank(); ++i) {
                const int64_t inner = ContiguousStrides(t->dims)[i];
                place = SplitAxis(place, place.dims.rank() - 1, inner);
              }
              place = WithoutAxis(place, place.dims.rank() - 1);
              const Operand whole = Narrow(from, 0, 0, full * rows);
              ANYACL_RETURN_IF_ERROR(pointwise::AddCopy(plan, SplitAxis(whole, 0, rows), Narrow(place, 0, 0, full)));
              if (rest > 0) {
                const Operand last = WithoutAxis(Narrow(place, 0, full, 1), 0);
                ANYACL_RETURN_IF_ERROR(pointwise::AddCopy(plan, Narrow(from, 0, full * rows, rest), Narrow(last, 0, 0, rest)));
              }
              at += rows * length;
            }
            return pointwise::FinishOutput(plan, kOut, 0, out);
          },
          .family = "movement"};
}

// --- split ---------------------------------------------------------------------------------------

constexpr DTypeSet kSplit = types::kBasic10 | types::kComplex;

enum { kSelf, kSections, kDim, kOuts };

// How many outputs are written. A shape may ask for more of them than memory has room for.
uint64_t ChunkCount(Values v) {
  const Tensor& self = *v[kSelf].tensor;
  const uint64_t size = static_cast<uint64_t>(self.dims[AxisOf(v[kDim].integer, self.rank())]);
  const uint64_t section = static_cast<uint64_t>(v[kSections].integer);
  return size == 0 || section == 0 ? 1 : (size - 1) / section + 1;
}
// Their lengths on the axis.
std::vector<int64_t> ChunkLengths(Values v) {
  const Tensor& self = *v[kSelf].tensor;
  const int64_t size = self.dims[AxisOf(v[kDim].integer, self.rank())];
  const uint64_t section = static_cast<uint64_t>(v[kSections].integer);
  std::vector<int64_t> lengths;
  if (size == 0 || section == 0) return {0};
  for (int64_t at = 0; at < size; at += lengths.back()) {
    lengths.push_back(static_cast<int64_t>(std::min(section, static_cast<uint64_t>(size - at))));
  }
  return lengths;
}
std::string WrongCount(Values v, uint64_t wanted) {
  return "must have " + std::to_string(wanted) + " entries, got " + std::to_string(ListOf(v, kOuts).size());
}
std::string WrongPieces(Values v, const std::vector<int64_t>& lengths, bool more_allowed) {
  const Tensor& self = *v[kSelf].tensor;
  const auto outs = ListOf(v, kOuts);
  if (outs.size() < lengths.size() || (!more_allowed && outs.size() > lengths.size())) {
    return WrongCount(v, lengths.size());
  }
  for (size_t i = 0; i < lengths.size(); ++i) {
    Dims want = self.dims;
    want[AxisOf(v[kDim].integer, self.rank())] = lengths[i];
    if (outs[i]->dims != want) return "[" + std::to_string(i) + "] must have shape " + ToString(want) + ", got " + ToString(outs[i]->dims);
  }
  return "";
}
std::string WrongSections(Values v, Product) {
  const Tensor& self = *v[kSelf].tensor;
  const int64_t size = self.dims[AxisOf(v[kDim].integer, self.rank())];
  const bool nothing = v[kSections].integer == 0;
  if (size != 0 && nothing) return "must not be 0 for an axis of " + std::to_string(size);
  if (size == 0 && !nothing) return "must be 0 for an empty axis, got " + std::to_string(v[kSections].integer);
  return "";
}
std::string WrongChunks(Values v, Product) {
  if (v[kSelf].tensor->empty()) return "";
  if (ChunkCount(v) > ListOf(v, kOuts).size()) return WrongCount(v, ChunkCount(v));
  return WrongPieces(v, ChunkLengths(v), true);
}
std::string WrongSizes(Values v, Product) {
  const Tensor& self = *v[kSelf].tensor;
  const int64_t size = self.dims[AxisOf(v[kDim].integer, self.rank())];
  const std::vector<int64_t>& sizes = v[kSections].ints->values;
  int64_t sum = 0;
  for (const int64_t s : sizes) {
    if (s < 0 || __builtin_add_overflow(sum, s, &sum)) return "must not be negative, got " + std::to_string(s);
  }
  return sum == size ? "" : "must add up to " + std::to_string(size) + ", got " + std::to_string(sum);
}
std::string WrongParts(Values v, Product) {
  const std::vector<int64_t>& sizes = v[kSections].ints->values;
  if (ListOf(v, kOuts).size() != sizes.size()) {
    return "must have as many entries as splitSize, got " + std::to_string(ListOf(v, kOuts).size()) + " for " + std::to_string(sizes.size());
  }
  return v[kSelf].tensor->empty() ? "" : WrongPieces(v, sizes, false);
}
std::string DifferentOuts(Values v, Product) {
  for (const Tensor* t : ListOf(v, kOuts)) {
    if (t->dtype != ListOf(v, kOuts)[0]->dtype) return "must have one dtype, got " + Name(ListOf(v, kOuts)[0]->dtype) + " and " + Name(t->dtype);
  }
  return "";
}

Status PlanSplit(PlanBuilder& plan, Values values, const std::vector<int64_t>& lengths) {
  Operand self = plan.TensorOperand(kSelf);
  const int dim = AxisOf(values[kDim].integer, self.dims.rank());
  for (int i = 0; i < static_cast<int>(lengths.size()); ++i) {
    if (self.index < 0 || !plan.Overlaps(plan.TensorOperand(kOuts, i), /*exact_too=*/true)) continue;
    const Operand copy = plan.ScratchOperand("self", self.dtype, self.dims);  // an output lies in it
    ANYACL_RETURN_IF_ERROR(pointwise::AddCopy(plan, self, copy));
    self = copy;
  }
  int64_t at = 0;
  for (int i = 0; i < static_cast<int>(lengths.size()); ++i) {
    ANYACL_RETURN_IF_ERROR(pointwise::AddCopy(plan, Narrow(self, dim, at, lengths[i]), plan.TensorOperand(kOuts, i)));
    at += lengths[i];
  }
  return {};
}

template <bool kSizes>
Operator MakeSplit(const Entry& entry) {
  Table table = TableOf(entry, "copy", kSizes ? "Cuts a tensor into pieces of given lengths along an axis."
                                              : "Cuts a tensor into pieces of one length along an axis; the last one may be shorter.",
                        {.outputs = {"out"}});
  AddNullRules(&table);
  Add(&table, {Supported(kSizes ? kNewerAndTraining : kFive), DTypes("self", RowsOf(kSplit | types::kUnsigned3, kSplit)),
               DTypes("out", RowsOf(kSplit | types::kUnsigned3, kSplit))});
  if (!kSizes) {
    table.notes = {"splitSections is the length of a piece. Outputs beyond the last piece are left alone."};
    Add(&table, {Custom("out", "must have one dtype", DifferentOuts)});
  }
  AddStorageRules(&table);
  Add(&table, {Rank("self", 1, 8), Rank("out", 0, 8), Dim("dim", "self")});
  if (kSizes) Add(&table, {Custom("splitSize", "must add up to the axis", WrongSizes), Custom("out", "must have the pieces' shapes", WrongParts)});
  else Add(&table, {Custom("splitSections", "must be 0 for an empty axis alone", WrongSections), Custom("out", "must have the pieces' shapes", WrongChunks)});
  return {.contract = Contract(std::move(table)),
          .plan = [](Values values, PlanBuilder& plan) -> Status {
            if (values[kSelf].tensor->empty()) return {};  // its other axes may be longer than any list
            return PlanSplit(plan, values, kSizes ? values[kSections].ints->values : ChunkLengths(values));
          },
          .family = "movement"};
}

}  // namespace

void DeclareJoins(Declarations& declarations) {
  declarations.Add("aclnnCat", MakeCat);
  declarations.Add("aclnnChunkCat", MakeChunkCat);
  declarations.Add("aclnnSplitTensor", MakeSplit<false>);
  declarations.Add("aclnnSplitWithSize", MakeSplit<true>);
  declarations.Add("aclnnStack", MakeStack);
}

}  // namespace anyacl::movement
