// SPDX-License-Identifier: Apache-2.0
// Copyright The AnyACL Authors
//
// The same elements with other axes, repeated, on or of a diagonal.
#include "ops/movement/families.h"

namespace anyacl::movement {

using namespace contract;

namespace {

constexpr DTypeSet kAll15 = types::kBasic10 | types::kUnsigned3 | types::kComplex;

const Dims& DimsOfArg(Values v, int arg) { return v[arg].tensor->dims; }
const std::vector<int64_t>& IntsOf(Values v, int arg) { return v[arg].ints->values; }

// A view of self, written to out.
template <Operand (*kView)(const Operand& self, Values values), int kOutArg>
Status PlanView(Values values, PlanBuilder& plan) {
  if (values[kOutArg].tensor->empty()) return {};
  return CopyOut(plan, kView(plan.TensorOperand(0), values), kOutArg);
}

// --- permute, expand, repeat, flatten ------------------------------------------------------------

std::string WrongPermutation(Values v, Product) {
  const int rank = DimsOfArg(v, 0).rank();
  const std::vector<int64_t>& dims = IntsOf(v, 1);
  return static_cast<int>(dims.size()) == rank ? "" : "must have one entry per axis of " + ToString(DimsOfArg(v, 0));
}
Dims PermuteDims(Values v) {
  Dims dims;
  for (const int64_t axis : IntsOf(v, 1)) dims.push_back(DimsOfArg(v, 0)[AxisOf(axis, DimsOfArg(v, 0).rank())]);
  return dims;
}
Operand PermuteView(const Operand& self, Values v) {
  std::vector<int> axes;
  for (const int64_t axis : IntsOf(v, 1)) axes.push_back(AxisOf(axis, self.dims.rank()));
  return Permuted(self, axes);
}

Operator MakePermute(const Entry& entry) {
  Table table = TableOf(entry, "copy", "The axes of a tensor in another order.");
  table.formulas = {"axis i of out is axis dims[i] of self"};
  AddNullRules(&table);
  Add(&table, {Supported(kNewerAndTraining), DTypes("self", RowsOf(kAll15 | types::kFloat8)), SameDType("out", "self")});
  AddStorageRules(&table);
  Add(&table, {Custom("dims", "must have one entry per axis of self", WrongPermutation), Rank("self", 0, 8), DimsOf("dims", "self"),
               ShapeOf<2, PermuteDims>("out", "must have the sizes of the axes in their order")});
  return {.contract = Contract(std::move(table)), .plan = PlanView<PermuteView, 2>, .family = "movement"};
}

Dims ExpandDims(Values v) {
  const Dims& self = DimsOfArg(v, 0);
  const std::vector<int64_t>& size = IntsOf(v, 1);
  const int missing = static_cast<int>(size.size()) - self.rank();
  Dims dims;
  for (int i = 0; i < static_cast<int>(size.size()); ++i) {
    dims.push_back(size[static_cast<size_t>(i)] == -1 && i >= missing ? self[i - missing] : size[static_cast<size_t>(i)]);
  }
  return dims;
}
std::string WrongSize(Values v, Product) {
  const Dims& self = DimsOfArg(v, 0);
  const std::vector<int64_t>& size = IntsOf(v, 1);
  const int missing = static_cast<int>(size.size()) - self.rank();
  if (missing < 0 || size.size() > 8) return "must have as many entries as self has dims or more, up to 8, got " + std::to_string(size.size());
  const Dims dims = ExpandDims(v);
  for (int i = 0; i < dims.rank(); ++i) {
    const bool fits = dims[i] >= 0 && (i < missing || self[i - missing] == 1 || self[i - missing] == dims[i]);
    if (!fits) return "must be a shape that " + ToString(self) + " broadcasts to, got " + ToString(dims);
  }
  return "";
}
Operand ExpandView(const Operand& self, Values v) { return pointwise::BroadcastTo(self, ExpandDims(v)); }

Operator MakeExpand(const Entry& entry) {
  Table table = TableOf(entry, "copy", "A tensor broadcast to a larger shape.");
  table.notes = {"-1 keeps the size of an axis."};
  AddNullRules(&table);
  Add(&table, {Supported(kFive), SameDType("out", "self"), DTypes("self", RowsOf(kAll15, types::kSmall8))});
  AddStorageRules(&table);
  Add(&table, {Rank("self", 0, 8), Custom("size", "must be a shape that self broadcasts to", WrongSize),
               ShapeOf<2, ExpandDims>("out", "must have the shape size")});
  return {.contract = Contract(std::move(table)), .plan = PlanView<ExpandView, 2>, .family = "movement"};
}

std::string WrongRepeats(Values v, Product) {
  const std::vector<int64_t>& repeats = IntsOf(v, 1);
  if (static_cast<int>(repeats.size()) < DimsOfArg(v, 0).rank() || repeats.size() > 8) {
    return "must have as many entries as self has dims or more, up to 8, got " + std::to_string(repeats.size());
  }
  for (const int64_t times : repeats) {
    if (times < 0) return "must not be negative, got " + std::to_string(times);
  }
  return "";
}
Dims RepeatDims(Values v) {
  const Dims& self = DimsOfArg(v, 0);
  const std::vector<int64_t>& repeats = IntsOf(v, 1);
  const int missing = static_cast<int>(repeats.size()) - self.rank();
  Dims dims;
  for (int i = 0; i < static_cast<int>(repeats.size()); ++i) {
    int64_t size = repeats[static_cast<size_t>(i)];
    if (i >= missing && __builtin_mul_overflow(size, self[i - missing], &size)) size = -1;
    dims.push_back(size);
  }
  return dims;
}
std::string WrongRepeatOut(Values v, Product) {
  const Dims want = RepeatDims(v), &got = DimsOfArg(v, 2);
  const bool nothing = v[0].tensor->empty() || v[2].tensor->empty() || Numel(want) == 0;
  return nothing || want == got ? "" : "must have shape " + ToString(want) + ", got " + ToString(got);
}

Operator MakeRepeat(const Entry& entry) {
  Table table = TableOf(entry, "copy", "A tensor laid out several times along each axis.");
  table.formulas = {"out[i, j] = self[i mod n, j mod m]"};
  constexpr DTypeSet kNewest = kAll15 | types::kComplex32 | types::kFloat8;
  std::vector<TypeRow> rows = RowsOf(kNewest, kAll15);
  for (TypeRow& row : rows) {
    if (row.types[0] == DType::kU16) row.products = kNewerAndInference;
  }
  AddNullRules(&table);
  Add(&table, {Supported(kFive), DTypes("self", rows), SameDType("out", "self")});
  AddStorageRules(&table);
  Add(&table, {Rank("self", 0, 8), Custom("repeats", "must be numbers of repetitions, one per axis or more", WrongRepeats),
               Custom("out", "must have the shape of self times repeats", WrongRepeatOut)});
  return {.contract = Contract(std::move(table)),
          .plan = [](Values values, PlanBuilder& plan) -> Status {
            enum { kSelf, kRepeats, kOut };
            if (values[kOut].tensor->empty() || values[kSelf].tensor->empty() || Numel(RepeatDims(values)) == 0) return {};
            Operand self = plan.TensorOperand(kSelf);
            const Operand out = ApartOutput(plan, kOut);
            const int missing = out.dims.rank() - self.dims.rank();
            // out as [times, size] on each axis.
            Operand place = out;
            for (int i = out.dims.rank() - 1; i >= 0; --i) place = SplitAxis(place, i, i < missing ? 1 : self.dims[i - missing]);
            for (int i = 0; i < missing; ++i) self = WithAxis(self, 0);
            for (int i = out.dims.rank() - 1; i >= 0; --i) self = WithAxis(self, i);
            ANYACL_RETURN_IF_ERROR(pointwise::AddCopy(plan, self, place));
            return pointwise::FinishOutput(plan, kOut, 0, out);
          },
          .family = "movement"};
}

std::string WrongFlattenAxis(Values v, Product) {
  const int axes = std::max(DimsOfArg(v, 0).rank(), 1);
  const int64_t axis = v[1].integer;
  return axis >= -axes && axis < axes ? "" : "must be an axis of self, got " + std::to_string(axis);
}
Dims FlattenDims(Values v) {
  const Dims& self = DimsOfArg(v, 0);
  const int axis = AxisOf(v[1].integer, self.rank());
  Dims dims = {1, 1};
  for (int i = 0; i < self.rank(); ++i) dims[i < axis ? 0 : 1] *= self[i];
  return dims;
}

Operator MakeFlatten(const Entry& entry) {
  Table table = TableOf(entry, "copy", "A tensor as a matrix: axes before `axis` are its rows, the rest its columns.");
  AddNullRules(&table);
  constexpr DTypeSet kOlder = types::kSmall8 | types::kUnsigned3 | DTypeSet{DType::kI16};
  Add(&table, {SameDType("out", "self"), DTypes("self", RowsOf(kAll15, kOlder))});
  AddStorageRules(&table);
  Add(&table, {Rank("self", 0, 8), Custom("axis", "must be an axis of self", WrongFlattenAxis),
               ShapeOf<2, FlattenDims>("out", "must be the matrix of rows before the axis and columns from it on")});
  return {.contract = Contract(std::move(table)),
          .plan = [](Values values, PlanBuilder& plan) -> Status {
            enum { kSelf, kAxis, kOut };
            if (values[kOut].tensor->empty()) return {};
            const Operand self = plan.TensorOperand(kSelf);
            const Operand out = ApartOutput(plan, kOut);
            // out with the axes of self.
            Operand place = out;
            const int axis = AxisOf(values[kAxis].integer, self.dims.rank());
            int64_t inner = 1;
            for (int i = self.dims.rank() - 1; i >= axis; --i) {
              place = SplitAxis(place, 1, self.dims[i]);
              inner *= self.dims[i];
            }
            place = WithoutAxis(place, 1);
            for (int i = axis - 1; i >= 0; --i) place = SplitAxis(place, 0, self.dims[i]);
            place = WithoutAxis(place, 0);
            ANYACL_RETURN_IF_ERROR(pointwise::AddCopy(plan, self, place));
            return pointwise::FinishOutput(plan, kOut, 0, out);
          },
          .family = "movement"};
}

// --- channel shuffle, confusion transpose --------------------------------------------------------

std::string WrongGroups(Values v, Product) {
  const Dims& self = DimsOfArg(v, 0);
  if (v[1].integer <= 0) return "must be positive, got " + std::to_string(v[1].integer);
  return self.rank() < 2 || self[1] % v[1].integer == 0 ? "" : "must divide the channels of " + ToString(self) + ", got " + std::to_string(v[1].integer);
}

Operator MakeChannelShuffle(const Entry& entry) {
  Table table = TableOf(entry, "copy", "The channels of several groups, taken in turn.");
  table.formulas = {"out[n, i * groups + g, ...] = self[n, g * (C / groups) + i, ...]"};
  AddNullRules(&table);
  Add(&table, {Supported(kNewerAndTraining), SameDType("out", "self"), DTypes("self", RowsOf(types::kBasic10 | types::kComplex))});
  AddStorageRules(&table);
  Add(&table, {Custom("groups", "must be positive and divide the channels", WrongGroups), SameShape("out", "self"), Rank("self", 3, 7)});
  return {.contract = Contract(std::move(table)),
          .plan = [](Values values, PlanBuilder& plan) -> Status {
            enum { kSelf, kGroups, kOut };
            if (values[kOut].tensor->empty()) return {};
            const Operand self = plan.TensorOperand(kSelf);
            const Operand out = ApartOutput(plan, kOut);
            const int64_t groups = values[kGroups].integer;
            const Operand from = SplitAxis(self, 1, self.dims[1] / groups);
            std::vector<int> axes = {0, 2, 1};
            for (int i = 3; i < from.dims.rank(); ++i) axes.push_back(i);
            ANYACL_RETURN_IF_ERROR(pointwise::AddCopy(plan, Permuted(from, axes), SplitAxis(out, 1, groups)));
            return pointwise::FinishOutput(plan, kOut, 0, out);
          },
          .family = "movement"};
}

enum { kX, kPerm, kShape, kFirst, kResult };

std::string WrongPerm(Values v, Product) {
  const size_t want = v[kFirst].flag ? static_cast<size_t>(DimsOfArg(v, kX).rank()) : IntsOf(v, kShape).size();
  std::vector<bool> seen(want);
  bool fits = IntsOf(v, kPerm).size() == want;
  for (const int64_t axis : IntsOf(v, kPerm)) {
    fits = fits && axis >= 0 && axis < static_cast<int64_t>(want) && !seen[static_cast<size_t>(axis)];
    if (fits) seen[static_cast<size_t>(axis)] = true;
  }
  return fits ? "" : "must be an order of " + std::to_string(want) + " axes";
}
Dims ShapeArg(Values v) {
  Dims dims;
  for (const int64_t size : IntsOf(v, kShape)) dims.push_back(size);
  return dims;
}
std::string WrongShapeArg(Values v, Product) {
  const Dims dims = ShapeArg(v);
  return IntsOf(v, kShape).size() <= 8 && Numel(dims) == Numel(DimsOfArg(v, kX))
             ? ""
             : "must have as many elements as x, got " + ToString(dims) + " for " + ToString(DimsOfArg(v, kX));
}
Dims ConfusedDims(Values v) {
  const Dims shape = ShapeArg(v);
  if (v[kFirst].flag) return shape;
  Dims dims;
  for (const int64_t axis : IntsOf(v, kPerm)) dims.push_back(shape[static_cast<int>(axis)]);
  return dims;
}

Operator MakeConfusionTranspose(const Entry& entry) {
  Table table = TableOf(entry, "copy", "A tensor permuted and then reshaped, or the other way round.");
  table.formulas = {"out = transposeFirst ? reshape(permute(x, perm), shape) : permute(reshape(x, shape), perm)"};
  constexpr DTypeSet kTypes =
      types::kFloat3 | types::kUnsigned3 | DTypeSet{DType::kI8, DType::kI16, DType::kI32, DType::kI64, DType::kU8};
  AddNullRules(&table);
  Add(&table, {Supported(kOnly950), DTypes("x", RowsOf(kTypes)), SameDType("out", "x"), AcceptIfEmpty({"x"}),
               Rank("x", 0, 8).Code(561103), Custom("perm", "must be an order of the axes", WrongPerm).Code(561103),
               Custom("shape", "must have as many elements as x", WrongShapeArg).Code(561103),
               ShapeOf<kResult, ConfusedDims>("out", "must have the shape that shape and perm give").Code(561103)});
  return {.contract = Contract(std::move(table)),
          .plan = [](Values values, PlanBuilder& plan) -> Status {
            if (values[kX].tensor->empty()) return {};
            Operand x = plan.TensorOperand(kX);
            std::vector<int> axes;
            for (const int64_t axis : IntsOf(values, kPerm)) axes.push_back(static_cast<int>(axis));
            if (values[kFirst].flag) {
              x = Permuted(x, axes);
              ANYACL_RETURN_IF_ERROR(DenseOf(plan, x, &x));
              return CopyOut(plan, Reshaped(x, ShapeArg(values)), kResult);
            }
            ANYACL_RETURN_IF_ERROR(DenseOf(plan, x, &x));
            return CopyOut(plan, Permuted(Reshaped(x, ShapeArg(values)), axes), kResult);
          },
          .family = "movement"};
}

// --- triangles and diagonals ---------------------------------------------------------------------

template <bool kLower, bool kInPlace>
Operator MakeTriangle(const Entry& entry) {
  const char* const self = kInPlace ? "selfRef" : "self";
  Table table = TableOf(entry, "triangle", kLower ? "The lower triangle of matrices; 0 above." : "The upper triangle of matrices; 0 below.",
                        {.in_out = kInPlace ? std::vector<const char*>{"selfRef"} : std::vector<const char*>{}});
  table.formulas = {kLower ? "out[i, j] = self[i, j] where j - i <= diagonal, else 0" : "out[i, j] = self[i, j] where j - i >= diagonal, else 0"};
  constexpr DTypeSet kOlder = types::kBasic10 | types::kUnsigned3;
  AddNullRules(&table);
  Add(&table, {Supported(kLower ? Of({Product::kAscend950, Product::kA3, Product::kA2, Product::kTraining}) : kFive),
               DTypes(self, RowsOf(kOlder | types::kComplex | types::kComplex32, kOlder))});
  if (!kInPlace) Add(&table, {SameDType("out", "self")});
  if (kLower) AddStorageRules(&table);
  else for (const char* arg : {self, "out"}) if (!kInPlace || arg == self) Add(&table, {PublicFormat(arg)});
  if (!kLower) Add(&table, {AcceptIfEmpty({self})});
  Add(&table, {Rank(self, 2, 8)});
  if (!kInPlace) Add(&table, {SameShape("out", "self")});
  return {.contract = Contract(std::move(table)),
          .plan = [](Values values, PlanBuilder& plan) -> Status {
            constexpr int kOut = kInPlace ? 0 : 2;
            if (values[0].tensor->empty()) return {};
            const Operand from = plan.TensorOperand(0);
            Operand out = plan.TensorOperand(kOut);
            if (plan.OverlapsAllBut(out, 0)) out = plan.ScratchOperand("out", out.dtype, out.dims);
            auto& p = plan.MakeParams<TriangleParams>();
            p.diagonal = values[1].integer;
            p.lower = kLower;
            p.element_size = static_cast<int32_t>(SizeOf(out.dtype));
            plan.Bind(from, p.in);
            plan.Bind(out, p.out);
            ANYACL_RETURN_IF_ERROR(plan.ChooseKernel("triangle"));
            return pointwise::FinishOutput(plan, kOut, 0, out);
          },
          .family = "movement"};
}

int64_t Magnitude(int64_t value) { return value < 0 ? -std::max(value, -INT64_MAX) : value; }

// A square matrix with n elements on a diagonal.
Dims DiagonalMatrixDims(int64_t n, int64_t diagonal) {
  int64_t side;
  if (__builtin_add_overflow(n, Magnitude(diagonal), &side)) side = -1;
  return {side, side};
}
std::string WrongDiagonal(Values v, Product) {
  const Dims& self = DimsOfArg(v, 0);
  const int64_t d = v[1].integer;
  if (v[0].tensor->empty() || self.rank() != 2 || (d <= self[1] && d >= -self[0])) return "";
  return "must cross the matrix " + ToString(self) + ", got " + std::to_string(d);
}
std::string WrongDiagOut(Values v, Product) {
  const Dims& self = DimsOfArg(v, 0);
  if (v[0].tensor->empty()) return "";
  Dims want;
  if (self.rank() < 2) want = DiagonalMatrixDims(Numel(self), v[1].integer);
  else want = {std::max<int64_t>(0, std::min(self[0] + std::min<int64_t>(v[1].integer, 0), self[1] - std::max<int64_t>(v[1].integer, 0)))};
  return want == DimsOfArg(v, 2) ? "" : "must have shape " + ToString(want) + ", got " + ToString(DimsOfArg(v, 2));
}

// out = 0 but for `from` on its diagonal.
Status PlanDiagonalMatrix(PlanBuilder& plan, const Operand& from, int64_t diagonal, int out_arg) {
  const Operand out = ApartOutput(plan, out_arg);
  ANYACL_RETURN_IF_ERROR(AddZeros(plan, out));
  ANYACL_RETURN_IF_ERROR(pointwise::AddCopy(plan, from, DiagonalOf(out, diagonal)));
  return pointwise::FinishOutput(plan, out_arg, 0, out);
}

std::string ComplexOut(Values v, Product) {
  const bool fills = v[0].tensor->empty() && v[1].integer != 0;
  return fills && IsComplex(v[2].tensor->dtype) ? "must not be complex for an empty self off the main diagonal" : "";
}

Operator MakeDiag(const Entry& entry) {
  Table table = TableOf(entry, "copy", "A matrix with a vector on one of its diagonals, or the diagonal of a matrix.");
  table.notes = {"An empty self leaves out alone for the main diagonal, else fills it with 0."};
  AddNullRules(&table);
  Add(&table, {Supported(kFive), DTypes("self", RowsOf(types::kBasic10 | DTypeSet{DType::kC64})), SameDType("out", "self")});
  AddStorageRules(&table);
  Add(&table, {Rank("self", 0, 2), Custom("out", "must not be complex for an empty self off the main diagonal", ComplexOut),
               Custom("diagonal", "must cross the matrix", WrongDiagonal),
               Custom("out", "must have the shape of the matrix or the diagonal", WrongDiagOut)});
  return {.contract = Contract(std::move(table)),
          .plan = [](Values values, PlanBuilder& plan) -> Status {
            enum { kSelf, kDiagonal, kOut };
            const Tensor& self = *values[kSelf].tensor;
            const int64_t diagonal = values[kDiagonal].integer;
            if (values[kOut].tensor->empty()) return {};
            if (self.empty()) return diagonal == 0 ? Status() : AddZeros(plan, plan.TensorOperand(kOut));
            const Operand from = plan.TensorOperand(kSelf);
            if (self.rank() < 2) return PlanDiagonalMatrix(plan, AtLeast1d(from), diagonal, kOut);
            return CopyOut(plan, DiagonalOf(from, diagonal), kOut);
          },
          .family = "movement"};
}

Dims DiagFlatDims(Values v) { return DiagonalMatrixDims(v[0].tensor->numel(), v[1].integer); }

Operator MakeDiagFlat(const Entry& entry) {
  Table table = TableOf(entry, "copy", "A matrix with all elements of a tensor on one of its diagonals.");
  constexpr DTypeSet kTypes = types::kBasic10 | DTypeSet{DType::kC64};
  AddNullRules(&table);
  Add(&table, {Supported(Of({Product::kAscend950, Product::kA3, Product::kA2, Product::kInference, Product::kTraining})),
               DTypes("self", RowsOf(kTypes)), DTypes("out", RowsOf(kTypes))});
  AddStorageRules(&table);
  AddRankRules(&table);
  Add(&table, {ShapeOf<2, DiagFlatDims>("out", "must be square, with room for all elements on the diagonal")});
  return {.contract = Contract(std::move(table)),
          .plan = [](Values values, PlanBuilder& plan) -> Status {
            enum { kSelf, kDiagonal, kOut };
            if (values[kOut].tensor->empty()) return {};
            if (values[kSelf].tensor->empty()) return AddZeros(plan, plan.TensorOperand(kOut));
            Operand self = plan.TensorOperand(kSelf);
            ANYACL_RETURN_IF_ERROR(DenseOf(plan, self, &self));
            return PlanDiagonalMatrix(plan, Reshaped(self, {Numel(self.dims)}), values[kDiagonal].integer, kOut);
          },
          .family = "movement"};
}

// --- repeat interleave by one number -------------------------------------------------------------

template <int kRepeats, int kOutputSize, int kDim>
std::string WrongOutputSize(Values v, Product) {
  const Dims& self = DimsOfArg(v, 0);
  int64_t size = kDim < 0 ? Numel(self) : self[AxisOf(v[kDim < 0 ? 0 : kDim].integer, self.rank())];
  if (v[0].tensor->empty()) return "";
  if (__builtin_mul_overflow(size, v[kRepeats].integer, &size)) size = -1;
  return size == v[kOutputSize].integer
             ? ""
             : "must be " + std::to_string(size) + ", got " + std::to_string(v[kOutputSize].integer);
}

template <bool kWithDim>
Dims InterleavedDims(Values v) {
  if (!kWithDim) return {v[2].integer};
  Dims dims = DimsOfArg(v, 0);
  dims[AxisOf(v[2].integer, dims.rank())] = v[3].integer;
  return dims;
}
template <bool kWithDim>
std::string WrongInterleaved(Values v, Product) {
  constexpr int kOutArg = kWithDim ? 4 : 3;
  if (v[0].tensor->empty() || v[kOutArg].tensor->empty()) return "";
  const Dims want = InterleavedDims<kWithDim>(v);
  return want == DimsOfArg(v, kOutArg) ? "" : "must have shape " + ToString(want) + ", got " + ToString(DimsOfArg(v, kOutArg));
}

template <bool kWithDim>
Operator MakeRepeatInterleaveInt(const Entry& entry) {
  Table table = TableOf(entry, "copy", "Every element, or every slice of an axis, several times in a row.");
  table.formulas = {kWithDim ? "out[..., i, ...] = self[..., i / repeats, ...]" : "out[i] = flat(self)[i / repeats]"};
  constexpr DTypeSet kOlder = types::kSmall8 | DTypeSet{DType::kI16};
  AddNullRules(&table);
  Add(&table, {Supported(kNewer), DTypes("self", RowsOf(kAll15, kOlder)), SameDType("out", "self")});
  AddStorageRules(&table);
  Add(&table, {Custom("repeats", "must not be negative",
                      [](Values v, Product) { return v[1].integer >= 0 ? std::string() : "must not be negative, got " + std::to_string(v[1].integer); }),
               Rank("self", kWithDim ? 1 : 0, 8), Rank("out", 0, 8)});
  if constexpr (kWithDim) Add(&table, {Dim("dim", "self"), Custom("outputSize", "must be the length of the axis times repeats", WrongOutputSize<1, 3, 2>)});
  else Add(&table, {Custom("outputSize", "must be the number of elements times repeats", WrongOutputSize<1, 2, -1>)});
  Add(&table, {Custom("out", "must have outputSize elements in place of the axis, or of all", WrongInterleaved<kWithDim>)});
  return {.contract = Contract(std::move(table)),
          .plan = [](Values values, PlanBuilder& plan) -> Status {
            constexpr int kOutArg = kWithDim ? 4 : 3;
            const Tensor& tensor = *values[0].tensor;
            const int64_t repeats = values[1].integer;
            if (tensor.empty() || values[kOutArg].tensor->empty()) return {};
            const Operand self = plan.TensorOperand(0);
            const Operand out = ApartOutput(plan, kOutArg);
            Operand place = out;
            if constexpr (kWithDim) {
              const int dim = AxisOf(values[2].integer, tensor.rank());
              place = SplitAxis(out, dim, repeats);
              ANYACL_RETURN_IF_ERROR(pointwise::AddCopy(plan, WithAxis(self, dim + 1), place));
            } else {  // [the axes of self, repeats]
              place = SplitAxis(place, 0, repeats);
              for (int i = tensor.rank() - 1; i >= 0; --i) place = SplitAxis(place, 0, tensor.dims[i]);
              place = WithoutAxis(place, 0);
              ANYACL_RETURN_IF_ERROR(pointwise::AddCopy(plan, WithAxis(self, tensor.rank()), place));
            }
            return pointwise::FinishOutput(plan, kOutArg, 0, out);
          },
          .family = "movement"};
}

}  // namespace

void DeclareLayouts(Declarations& declarations) {
  declarations.Add("aclnnChannelShuffle", MakeChannelShuffle);
  declarations.Add("aclnnConfusionTranspose", MakeConfusionTranspose);
  declarations.Add("aclnnDiag", MakeDiag);
  declarations.Add("aclnnDiagFlat", MakeDiagFlat);
  declarations.Add("aclnnExpand", MakeExpand);
  declarations.Add("aclnnFlatten", MakeFlatten);
  declarations.Add("aclnnInplaceTril", MakeTriangle<true, true>);
  declarations.Add("aclnnInplaceTriu", MakeTriangle<false, true>);
  declarations.Add("aclnnPermute", MakePermute);
  declarations.Add("aclnnRepeat", MakeRepeat);
  declarations.Add("aclnnRepeatInterleaveInt", MakeRepeatInterleaveInt<false>);
  declarations.Add("aclnnRepeatInterleaveIntWithDim", MakeRepeatInterleaveInt<true>);
  declarations.Add("aclnnTril", MakeTriangle<true, false>);
  declarations.Add("aclnnTriu", MakeTriangle<false, false>);
}

}  // namespace anyacl::movement
