// SPDX-License-Identifier: Apache-2.0
// Copyright The AnyACL Authors
//
// Elements written, added or otherwise combined at positions that a tensor names.
#include "ops/indexing/families.h"

namespace anyacl::indexing {

using namespace contract;
using namespace movement;

namespace {

const Dims& DimsOfArg(Values values, int arg) { return values[arg].tensor->dims; }
Dims OneIfScalar(const Dims& dims) { return dims.rank() == 0 ? Dims{1} : dims; }

// `reduce` of the scatter entries.
enum Reduce { kNone, kAddUp, kMultiply, kLargest, kSmallest, kMean };

Action ActionOf(int64_t reduce) {
  switch (reduce) {
    case kAddUp:
    case kMean:
      return Action::kAdd;
    case kMultiply:
      return Action::kMul;
    case kLargest:
      return Action::kMax;
    case kSmallest:
      return Action::kMin;
    default:
      return Action::kSet;
  }
}

// What the walk works in: moved bits keep their dtype, sums have their own.
DType WorkType(Action action, DType dtype) { return action == Action::kSet ? dtype : AccumulatorOf(dtype); }

// A tensor with one element, or a view of one, for every position of `dims`.
Operand Everywhere(const Operand& one, const Dims& dims) {
  Operand result = one;
  result.dims = dims;
  result.strides = Dims();
  for (int i = 0; i < dims.rank(); ++i) result.strides.push_back(0);
  return result;
}

Status ScalarOperand(PlanBuilder& plan, const Scalar& value, DType dtype, Operand* operand) {
  *operand = plan.ScratchOperand("value", dtype, {1});
  return AddFill(plan, *operand, value);
}

// --- scatter: one place per element of index -----------------------------------------------------

// Where the arguments of an entry stand; -1: it has none.
struct ScatterRow {
  const char* op;
  bool in_place;
  bool is_value;  // src is a scalar
  int reduce;     // argument
  int include;
  int fixed;      // the reduction where there is no argument
};
constexpr ScatterRow kScatters[] = {
    {"aclnnInplaceScatter", true, false, 4, -1, 0},         {"aclnnInplaceScatterReduce", true, false, 4, 5, 0},
    {"aclnnInplaceScatterValue", true, true, 4, -1, 0},     {"aclnnScatter", false, false, 4, -1, 0},
    {"aclnnScatterAdd", false, false, -1, -1, kAddUp},      {"aclnnScatterReduce", false, false, 4, 5, 0},
    {"aclnnScatterValue", false, true, 4, -1, 0},
};

enum { kSelf, kDim, kIndex, kSrc };

bool NothingToScatter(Values v) { return v[kIndex].tensor->empty(); }

std::string WrongScatterIndex(Values v, Product) {
  const DType t = v[kIndex].tensor->dtype;
  return NothingToScatter(v) || types::kIndex.Has(t) ? "" : "must be INT32 or INT64 unless it is empty, got " + Name(t);
}
template <bool kValue, int kOut>
std::string WrongScatterShapes(Values v, Product product) {
  if (NothingToScatter(v)) return "";
  const bool strict = product != Product::kAscend950;
  const auto dims_of = [&](int arg) { return strict ? DimsOfArg(v, arg) : OneIfScalar(DimsOfArg(v, arg)); };
  const Dims self = dims_of(kSelf), index = dims_of(kIndex);
  const Dims src = kValue ? index : dims_of(kSrc);
  const std::string got =
      ", got " + ToString(index) + " for " + ToString(self) + (kValue ? "" : " and " + ToString(src));
  if (index.rank() != self.rank() || src.rank() != self.rank()) return "must have as many dims as self and src" + got;
  if (DimsOfArg(v, kOut) != DimsOfArg(v, kSelf)) return "needs an out of the shape of self" + got;
  const int rank = self.rank(), axes = std::max(rank, 1);
  if (v[kDim].integer < -axes || v[kDim].integer >= axes) return "";  // the next rule
  const int dim = AxisOf(v[kDim].integer, rank);
  for (int i = 0; i < rank; ++i) {
    if (index[i] > src[i]) return "must fit into src" + got;
    if (i != dim && index[i] > self[i]) return "must fit into self on every other axis" + got;
  }
  return "";
}
template <int kOut>
std::string WrongScatterOut(Values v, Product) {
  return DimsOfArg(v, kOut) == DimsOfArg(v, kSelf)
             ? ""
             : "must have shape " + ToString(DimsOfArg(v, kSelf)) + ", got " + ToString(DimsOfArg(v, kOut));
}
std::string WrongComplexValue(Values v, Product) {
  const DType value = v[kSrc].scalar->dtype;
  return (IsComplex(value) || value == DType::kC32) && !IsComplex(v[kSelf].tensor->dtype)
             ? "must not be complex for a real self, got " + Name(value)
             : "";
}
std::string OlderReduction(Values v, Product product) {
  if (product == Product::kAscend950) return "";
  return v[kSelf].given() && v[kSelf].tensor->dtype == DType::kF32 && v[4].integer == kAddUp && v[5].flag
             ? ""
             : "must be 1, on FLOAT and with includeSelf, on this product, got " + std::to_string(v[4].integer);
}
std::string UnorderedComplex(Values v, Product) {
  const bool ordered = v[4].integer == kLargest || v[4].integer == kSmallest;
  return ordered && IsComplex(v[kSelf].tensor->dtype) ? "must not be max or min of complex numbers, got " + std::to_string(v[4].integer)
                                                      : "";
}

Status PlanScatter(const ScatterRow& row, Values values, PlanBuilder& plan) {
  const int out_arg = row.in_place ? kSelf : static_cast<int>(values.size()) - 1;
  const Tensor& self = *values[kSelf].tensor;
  const int64_t reduce = row.reduce < 0 ? row.fixed : values[row.reduce].integer;
  const bool included = row.include < 0 || values[row.include].flag;
  Action action = ActionOf(reduce);
  const bool mean = reduce == kMean;
  if (self.empty()) return {};
  if (NothingToScatter(values)) return row.in_place ? Status() : CopyOut(plan, plan.TensorOperand(kSelf), out_arg);
  const bool counts = action != Action::kSet && (mean || !included);
  const DType work = WorkType(action, self.dtype);
  Operand table, index, src, hits;
  ANYACL_RETURN_IF_ERROR(IndexOperand(plan, kIndex, &index));
  index = AtLeast1d(index);
  if (row.is_value) {
    ANYACL_RETURN_IF_ERROR(ScalarOperand(plan, *values[kSrc].scalar, self.dtype, &src));
    ANYACL_RETURN_IF_ERROR(Converted(plan, src, work, &src));
    src = Everywhere(src, index.dims);
  } else {
    ANYACL_RETURN_IF_ERROR(Converted(plan, AtLeast1d(plan.TensorOperand(kSrc)), work, &src));
  }
  ANYACL_RETURN_IF_ERROR(BeginUpdate(plan, kSelf, out_arg, work, counts, &table));
  if (counts) {
    hits = plan.ScratchOperand("hits", DType::kI64, self.dims);
    ANYACL_RETURN_IF_ERROR(AddZeros(plan, hits));
  }
  const Operand walked = AtLeast1d(table);
  const int dim = AxisOf(values[kDim].integer, self.rank());
  ANYACL_RETURN_IF_ERROR(AddWalk(plan, {action, walked, src, AxesEach(dim, walked, src, index, true),
                                        {{index, walked.dims[dim], walked.strides[dim], true}}, nullptr, counts ? &hits : nullptr, !included}));
  if (mean) ANYACL_RETURN_IF_ERROR(AddMean(plan, table, hits, self.dtype, included));
  return EndUpdate(plan, out_arg, table);
}

template <int kRow>
Operator MakeScatter(const Entry& entry) {
  constexpr ScatterRow row = kScatters[kRow];
  constexpr int kOut = row.in_place ? kSelf : row.include >= 0 ? 6 : row.reduce >= 0 ? 5 : 4;
  const char* const self = row.in_place ? "selfRef" : "self";
  const char* const out = row.in_place ? "selfRef" : "out";
  Table table = TableOf(entry, "walk", "self with elements of src combined into the places that index names on one axis.",
                        {.in_out = row.in_place ? std::vector<const char*>{"selfRef"} : std::vector<const char*>{}});
  table.formulas = {"out = self, then out[index[i, j], j] = reduce(out[index[i, j], j], src[i, j]) for dim 0"};
  table.notes = {"Elements are taken in row-major order of index: the last one wins, sums have one order and are rounded once.",
                 "Negative indices count from the end; what lies outside of self writes nothing.",
                 "reduce: 0 none, 1 add, 2 multiply, 3 max, 4 min, 5 mean."};
  constexpr DTypeSet kTypes = types::kBasic10 | types::kComplex;
  if (row.include >= 0) {
    Add(&table, {Custom("reduce", "must be 1, on FLOAT and with includeSelf, before the newest product", OlderReduction),
                 OneOf("reduce", {0, 1, 2, 3, 4, 5})});
  }
  AddNullRules(&table);
  Add(&table, {Supported(kNewer)});
  if (row.is_value) Add(&table, {Custom("value", "must not be complex for a real self", WrongComplexValue)});
  Add(&table, {DTypes(self, RowsOf(kTypes))});
  if (!row.is_value) Add(&table, {SameDType("src", self)});
  if (!row.in_place) Add(&table, {SameDType("out", self)});
  Add(&table, {Custom("index", "must be INT32 or INT64 unless it is empty", WrongScatterIndex)});
  if (row.reduce >= 0) Add(&table, {Custom("reduce", "must not be max or min of complex numbers", UnorderedComplex)});
  AddStorageRules(&table);
  if (!row.in_place) Add(&table, {Custom(out, "must have the shape of self", WrongScatterOut<kOut>)});
  Add(&table, {Custom("index", "must fit into self and src", WrongScatterShapes<row.is_value, kOut>)});
  Add(&table, {Rank(self, 0, 8), Rank("index", 0, 8), Dim("dim", self)});
  return {.contract = Contract(std::move(table)),
          .plan = [](Values values, PlanBuilder& plan) { return PlanScatter(kScatters[kRow], values, plan); },
          .family = "indexing"};
}

// --- along one axis ------------------------------------------------------------------------------

struct AlongArgs {
  int self, dim, index, source, out;
};

// Source counts as [1] where it has no dims; so does self.
Status PlanAlong(PlanBuilder& plan, Values values, const AlongArgs& args, Action action, const Operand* scale = nullptr) {
  const Tensor& self = *values[args.self].tensor;
  Operand index, table, source = AtLeast1d(plan.TensorOperand(args.source));
  ANYACL_RETURN_IF_ERROR(IndexOperand(plan, args.index, &index));
  index = AtLeast1d(index);
  const DType work = WorkType(action, self.dtype);
  ANYACL_RETURN_IF_ERROR(Converted(plan, source, work, &source));
  ANYACL_RETURN_IF_ERROR(BeginUpdate(plan, args.self, args.out, work, false, &table));
  const Operand walked = AtLeast1d(table);
  const int dim = AxisOf(values[args.dim].integer, self.rank());
  while (source.dims.rank() < walked.dims.rank()) source = WithAxis(source, source.dims.rank());
  ANYACL_RETURN_IF_ERROR(AddWalk(plan, {action, walked, source, AxesAlong(dim, walked, source, index, true),
                                        {{index, walked.dims[dim], walked.strides[dim], false}}, scale}));
  return EndUpdate(plan, args.out, table);
}

// Sizes of source but on the axis are those of self, there it is the number of indices.
template <int kSelfArg, int kDimArg, int kIndexArg, int kSourceArg>
std::string WrongSource(Values v, Product) {
  const Dims &self = DimsOfArg(v, kSelfArg), &source = DimsOfArg(v, kSourceArg);
  const int64_t count = Numel(DimsOfArg(v, kIndexArg));
  const std::string got = ", got " + ToString(source) + " for " + ToString(self) + " and " + std::to_string(count) + " indices";
  const Dims a = OneIfScalar(self), b = OneIfScalar(source);
  const int dim = AxisOf(v[kDimArg].integer, self.rank());
  if (self.rank() > 0 && source.rank() > 0 && a.rank() != b.rank()) return "must have as many dims as self" + got;
  if (source.rank() == 0) return count == 1 ? "" : "must have a dim for several indices" + got;
  if (dim >= b.rank() || b[dim] != count) return "must have one slice per index" + got;
  for (int i = 0; i < std::min(a.rank(), b.rank()); ++i) {
    if (i != dim && a[i] != b[i]) return "must have the sizes of self on every other axis" + got;
  }
  return "";
}

enum { kAddSelf, kAddDim, kAddIndex, kAddSource, kAddAlpha };

std::string WrongMode(Values v, Product product) {
  constexpr DTypeSet kTypes = types::kFloat3 | DTypeSet{DType::kI32, DType::kI16};
  (void)product;
  if (v[5].integer != 0) return "";
  const Tensor& self = *v[kAddSelf].tensor;
  const bool fits = (v[kAddDim].integer == 0 || v[kAddDim].integer == -2) && self.rank() == 2 && kTypes.Has(self.dtype);
  return fits ? "" : "must not be 0 but for the rows of a matrix of FLOAT, FLOAT16, BF16, INT32 or INT16, got shape " + ToString(self.dims);
}

// out = self, out[index[i]] += alpha * source[i]
Status PlanIndexAdd(Values values, PlanBuilder& plan, const Scalar& alpha, int out) {
  const Tensor& self = *values[kAddSelf].tensor;
  if (self.empty()) return {};
  if (values[kAddIndex].tensor->empty() || values[kAddSource].tensor->empty()) return CopyOut(plan, plan.TensorOperand(kAddSelf), out);
  const AlongArgs args = {kAddSelf, kAddDim, kAddIndex, kAddSource, out};
  if (alpha.AsComplex() == std::complex<double>(1)) return PlanAlong(plan, values, args, Action::kAdd);
  Operand scale;
  ANYACL_RETURN_IF_ERROR(ScalarOperand(plan, alpha, self.dtype, &scale));
  ANYACL_RETURN_IF_ERROR(Converted(plan, scale, AccumulatorOf(self.dtype), &scale));
  return PlanAlong(plan, values, args, Action::kAdd, &scale);
}

template <bool kSecond>
Operator MakeIndexAdd(const Entry& entry) {
  constexpr int kOut = kSecond ? 6 : 5;
  Table table = TableOf(entry, "walk", "self with slices of source, times alpha, added where index says.");
  table.formulas = {"out = self, then out[..., index[i], ...] += alpha * source[..., i, ...]"};
  table.notes = {"Each element is summed in the order of index and rounded once; what lies outside of self adds nothing."};
  if (kSecond) table.notes.push_back("mode 0 leaves alpha out while ACL_OPT_DETERMINISTIC is 0.");
  AddNullRules(&table);
  Add(&table, {Supported(kNewer), DTypes("self", RowsOf(types::kBasic10 | types::kComplex, types::kBasic10)),
               DTypes("index", RowsOf(types::kIndex)), SameDType("source", "self"), SameDType("out", "self")});
  if (kSecond) {
    table.deduce = {.from = {"self"}};
    Add(&table, {ScalarFits("alpha")});
  }
  AddStorageRules(&table);
  AddRankRules(&table);
  Add(&table, {Dim("dim", "self"), Rank("index", 0, 1),
               Custom("source", "must have one slice of self per index",
                      WrongSource<kAddSelf, kAddDim, kAddIndex, kAddSource>),
               SameShape("out", "self")});
  if (kSecond) Add(&table, {Custom("mode", "must not be 0 but for the rows of a matrix", WrongMode)});
  return {.contract = Contract(std::move(table)),
          .plan = [](Values values, PlanBuilder& plan) -> Status {
            const bool plain = kSecond && values[5].integer == 0 && !plan.Deterministic();
            return PlanIndexAdd(values, plan, plain ? Scalar::OfInt(1) : *values[kAddAlpha].scalar, kOut);
          },
          .family = "indexing"};
}

template <bool kInPlace>
Operator MakeIndexCopy(const Entry& entry) {
  enum { kSelfRef, kDimArg, kIndexArg, kSource, kOutRef };
  Table table = TableOf(entry, "walk", "self with slices of source in the places that index names.",
                        {.in_out = kInPlace ? std::vector<const char*>{"selfRef"} : std::vector<const char*>{},
                         .inputs = kInPlace ? std::vector<const char*>{} : std::vector<const char*>{"selfRef"}});
  table.formulas = {"out = self, then out[..., index[i], ...] = source[..., i, ...]"};
  table.notes = {"Of several sources for one place the last one wins; what lies outside of self writes nothing."};
  AddNullRules(&table);
  constexpr DTypeSet kTypes = types::kBasic10 | types::kComplex;
  Add(&table, {Supported(kNewer), DTypes("selfRef", RowsOf(kTypes | DTypeSet{DType::kU32, DType::kU64}, kTypes)),
               DTypes("index", RowsOf(types::kIndex)), SameDType("source", "selfRef")});
  if (!kInPlace) Add(&table, {SameDType("outRef", "selfRef")});
  AddStorageRules(&table);
  AddRankRules(&table);
  Add(&table, {Rank("index", 0, 1)});
  if (!kInPlace) Add(&table, {SameShape("outRef", "selfRef")});
  Add(&table, {Dim("dim", "selfRef"), Custom("source", "must have one slice of self per index", WrongSource<0, 1, 2, 3>)});
  return {.contract = Contract(std::move(table)),
          .plan = [](Values values, PlanBuilder& plan) -> Status {
            constexpr int out = kInPlace ? kSelfRef : kOutRef;
            if (values[kSelfRef].tensor->empty()) return {};
            if (values[kIndexArg].tensor->empty() || values[kSource].tensor->empty()) {
              return kInPlace ? Status() : CopyOut(plan, plan.TensorOperand(kSelfRef), out);
            }
            return PlanAlong(plan, values, {kSelfRef, kDimArg, kIndexArg, kSource, out}, Action::kSet);
          },
          .family = "indexing"};
}

// --- fill ----------------------------------------------------------------------------------------

std::string ComplexFill(Values v, Product product) {
  const DType value = v[3].scalar->dtype;
  const bool is_complex = IsComplex(value) || value == DType::kC32;
  if (!is_complex) return "";
  if (product == Product::kAscend950 && IsComplex(v[0].tensor->dtype)) return "";
  return "must not be complex for a real self, got " + Name(value);
}
std::string OutsideOfSelf(Values v, Product) {
  const Dims& self = v[0].tensor->dims;
  const int64_t size = OneIfScalar(self)[AxisOf(v[1].integer, self.rank())];
  for (const int64_t i : v[2].ints->values) {
    if (i < -size || i >= size) return "must name places on the axis of " + ToString(self) + ", got " + std::to_string(i);
  }
  return "";
}

Status FillSlices(PlanBuilder& plan, Values values, int out) {
  const Tensor& self = *values[0].tensor;
  Operand index, value, table;
  ANYACL_RETURN_IF_ERROR(IndexOperand(plan, 2, &index));
  index = AtLeast1d(index);
  ANYACL_RETURN_IF_ERROR(ScalarOperand(plan, *values[3].scalar, self.dtype, &value));
  ANYACL_RETURN_IF_ERROR(BeginUpdate(plan, 0, out, self.dtype, false, &table));
  const Operand walked = AtLeast1d(table);
  const int dim = AxisOf(values[1].integer, self.rank());
  Dims dims = walked.dims;
  dims[dim] = Numel(index.dims);
  const Operand everywhere = Everywhere(value, dims);
  ANYACL_RETURN_IF_ERROR(AddWalk(plan, {Action::kSet, walked, everywhere, AxesAlong(dim, walked, everywhere, index, true),
                                        {{index, walked.dims[dim], walked.strides[dim], true}}}));
  return EndUpdate(plan, out, table);
}

template <bool kInPlace, bool kHostIndex>
Operator MakeIndexFill(const Entry& entry) {
  const char* const self = kInPlace ? "selfRef" : "self";
  Table table = TableOf(entry, "walk", "self with one value in the slices that index names.",
                        {.in_out = kInPlace ? std::vector<const char*>{"selfRef"} : std::vector<const char*>{}});
  table.formulas = {"out = self, then out[..., index[i], ...] = value"};
  table.notes = {kHostIndex ? "Negative indices count from the end."
                            : "Negative indices count from the end; what lies outside of self writes nothing."};
  constexpr DTypeSet kOlder = {DType::kF16, DType::kF32, DType::kBF16, DType::kI32, DType::kI64, DType::kBool};
  AddNullRules(&table);
  Add(&table, {Supported(kNewer), DTypes(self, RowsOf(types::kBasic10 | types::kComplex, kOlder))});
  if (!kInPlace) Add(&table, {SameDType("out", self)});
  if (!kHostIndex) Add(&table, {DTypes("index", RowsOf(types::kIndex))});
  Add(&table, {Custom("value", "must not be complex for a real self", ComplexFill)});
  AddStorageRules(&table);
  Add(&table, {AcceptIfEmpty({self})});
  if (!kInPlace) Add(&table, {SameShape("out", self)});
  Add(&table, {Rank(self, 0, 8), Dim("dim", self)});
  if (kHostIndex) Add(&table, {Custom("index", "must name places on the axis", OutsideOfSelf)});
  else Add(&table, {Rank("index", 0, 1)});
  return {.contract = Contract(std::move(table)),
          .plan = [](Values values, PlanBuilder& plan) -> Status {
            constexpr int out = kInPlace ? 0 : 4;
            const Tensor& self = *values[0].tensor;
            if (self.empty()) return {};
            const bool nothing = kHostIndex ? values[2].ints->values.empty() : values[2].tensor->empty();
            if (!kHostIndex && !nothing) return FillSlices(plan, values, out);
            Operand table;
            ANYACL_RETURN_IF_ERROR(BeginUpdate(plan, 0, out, self.dtype, false, &table));
            if (kHostIndex && !nothing) {
              Operand walked = AtLeast1d(table);
              const int dim = AxisOf(values[1].integer, self.rank());
              for (const int64_t i : values[2].ints->values) {
                const int64_t at = i < 0 ? i + walked.dims[dim] : i;
                ANYACL_RETURN_IF_ERROR(AddFill(plan, Narrow(walked, dim, at, 1), *values[3].scalar));
              }
            }
            return EndUpdate(plan, out, table);
          },
          .family = "indexing"};
}

// --- flat ----------------------------------------------------------------------------------------

std::string WrongPutCount(Values v, Product) {
  const int64_t index = v[1].tensor->numel(), source = v[2].tensor->numel();
  return index == source ? "" : "must have as many elements as index, got " + std::to_string(source) + " for " + std::to_string(index);
}
std::string PutIntoNothing(Values v, Product) {
  return v[0].tensor->empty() ? "must have elements when index has, got " + ToString(v[0].tensor->dims) : "";
}
std::string OlderPut(Values v, Product product) {
  return product != Product::kAscend950 && v[3].flag && v[0].tensor->dtype == DType::kBF16 ? "must not be BF16 with accumulate, got BF16" : "";
}

Operator MakeInplacePut(const Entry& entry) {
  enum { kSelfRef, kIndexArg, kSource, kAccumulate };
  Table table = TableOf(entry, "walk", "Puts or adds elements of source into self, counted in row-major order, where index says.",
                        {.in_out = {"selfRef"}});
  table.formulas = {"flat(selfRef)[index[i]] = source[i], or += source[i]"};
  table.notes = {"Negative indices count from the end; of several sources for one place the last one wins."};
  AddNullRules(&table);
  Add(&table, {Supported(kFive), DTypes("selfRef", RowsOf(types::kBasic10 | types::kComplex)), DTypes("index", RowsOf(types::kIndex)),
               SameDType("source", "selfRef"), Custom("selfRef", "must not be BF16 with accumulate before the newest product", OlderPut)});
  AddStorageRules(&table);
  AddRankRules(&table);
  Add(&table, {Custom("source", "must have as many elements as index", WrongPutCount), AcceptIfEmpty({"index"}),
               Custom("selfRef", "must have elements when index has", PutIntoNothing)});
  return {.contract = Contract(std::move(table)),
          .plan = [](Values values, PlanBuilder& plan) -> Status {
            if (values[kIndexArg].tensor->empty()) return {};
            const Action action = values[kAccumulate].flag ? Action::kAdd : Action::kSet;
            const DType work = WorkType(action, values[kSelfRef].tensor->dtype);
            Operand index, source, table;
            ANYACL_RETURN_IF_ERROR(IndexOperand(plan, kIndexArg, &index));
            ANYACL_RETURN_IF_ERROR(DenseOf(plan, index, &index));
            ANYACL_RETURN_IF_ERROR(Converted(plan, plan.TensorOperand(kSource), work, &source));
            ANYACL_RETURN_IF_ERROR(DenseOf(plan, source, &source));
            ANYACL_RETURN_IF_ERROR(BeginUpdate(plan, kSelfRef, kSelfRef, work, true, &table));
            std::vector<Axis> axes = {{Axis::kSerial, Numel(index.dims), 0, 1, {1}}};
            ANYACL_RETURN_IF_ERROR(AddWalk(plan, {action, table, source, std::move(axes), {{index, Numel(table.dims), 1, true}}}));
            return EndUpdate(plan, kSelfRef, table);
          },
          .family = "indexing"};
}

// --- tuples --------------------------------------------------------------------------------------

template <int kTable, int kIndices, int kUpdates>
std::string WrongUpdates(Values v, Product) {
  const Dims &data = DimsOfArg(v, kTable), &indices = DimsOfArg(v, kIndices), &updates = DimsOfArg(v, kUpdates);
  const int64_t k = indices[indices.rank() - 1];
  if (k < 1 || k > data.rank()) return "must match rows of indices that name 1 to all dims, got indices " + ToString(indices);
  Dims want;
  for (int i = 0; i + 1 < indices.rank(); ++i) want.push_back(indices[i]);
  for (int i = static_cast<int>(k); i < data.rank(); ++i) want.push_back(data[i]);
  return want == updates ? "" : "must have shape " + ToString(want) + ", got " + ToString(updates);
}

Status PlanTuples(PlanBuilder& plan, Values values, int self, int out, Action action) {
  const DType work = WorkType(action, values[self].tensor->dtype);
  Operand indices, updates, table;
  ANYACL_RETURN_IF_ERROR(IndexOperand(plan, 1, &indices));
  ANYACL_RETURN_IF_ERROR(Converted(plan, plan.TensorOperand(2), work, &updates));
  ANYACL_RETURN_IF_ERROR(BeginUpdate(plan, self, out, work, false, &table));
  ANYACL_RETURN_IF_ERROR(AddWalk(plan, TupleSpec(action, table, updates, indices, false)));
  return EndUpdate(plan, out, table);
}

Operator MakeScatterNd(const Entry& entry) {
  enum { kData, kIndices, kUpdates, kOut };
  Table table = TableOf(entry, "walk", "data with updates at the coordinates that rows of indices name.");
  table.formulas = {"out = data, then out[indices[i, 0], indices[i, 1], ...] = updates[i, ...]"};
  table.notes = {"Of several updates for one place the last one wins; what lies outside of data writes nothing."};
  AddNullRules(&table);
  Add(&table, {Supported(kNewer), DTypes("data", RowsOf({DType::kF16, DType::kF32, DType::kBF16, DType::kBool})),
               DTypes("indices", RowsOf(types::kIndex)), SameDType("updates", "data"), SameDType("out", "data")});
  AddStorageRules(&table);
  Add(&table, {Rank("data", 1, 8), Rank("indices", 1, 8), Rank("updates", 0, 8), SameShape("out", "data"),
               Custom("updates", "must have the shape of indices without its last dim, then the dims of data not named",
                      WrongUpdates<kData, kIndices, kUpdates>)});
  return {.contract = Contract(std::move(table)),
          .plan = [](Values values, PlanBuilder& plan) -> Status {
            if (values[kData].tensor->empty()) return {};
            if (values[kUpdates].tensor->empty()) return CopyOut(plan, plan.TensorOperand(kData), kOut);
            return PlanTuples(plan, values, kData, kOut, Action::kSet);
          },
          .family = "indexing"};
}

Operator MakeScatterNdUpdate(const Entry& entry) {
  enum { kVar, kIndices, kUpdates };
  Table table = TableOf(entry, "walk", "Writes updates at the coordinates that rows of indices name.", {.in_out = {"varRef"}});
  table.formulas = {"varRef[indices[i, 0], indices[i, 1], ...] = updates[i, ...]"};
  table.notes = {"Of several updates for one place the last one wins; what lies outside of varRef writes nothing."};
  constexpr DTypeSet kOlder = types::kFloat3 | DTypeSet{DType::kBool, DType::kI8, DType::kI64, DType::kI16, DType::kI32};
  AddNullRules(&table);
  Add(&table, {Supported(kNewer), DTypes("varRef", RowsOf(kOlder | types::kFloat8 | DTypeSet{DType::kU8}, kOlder)),
               DTypes("indices", RowsOf(types::kIndex)), SameDType("updates", "varRef")});
  AddStorageRules(&table);
  Add(&table, {AcceptIfEmpty({"varRef"}), AcceptIfEmpty({"indices"}), AcceptIfEmpty({"updates"}), Rank("varRef", 1, 8),
               Rank("indices", 1, 8), Rank("updates", 0, 8),
               Custom("updates", "must have the shape of indices without its last dim, then the dims of varRef not named",
                      WrongUpdates<kVar, kIndices, kUpdates>)});
  return {.contract = Contract(std::move(table)),
          .plan = [](Values values, PlanBuilder& plan) -> Status {
            for (int i = 0; i < 3; ++i) {
              if (values[i].tensor->empty()) return {};
            }
            return PlanTuples(plan, values, kVar, kVar, Action::kSet);
          },
          .family = "indexing"};
}

// updates of [indices shape, varRef's dims but the first].
bool MatchesRows(Values v) {
  const Dims &var = DimsOfArg(v, 0), &indices = DimsOfArg(v, 1), &updates = DimsOfArg(v, 2);
  Dims want = indices;
  for (int i = 1; i < var.rank(); ++i) want.push_back(var[i]);
  return var.rank() > 0 && want == updates;
}
std::string WrongRowUpdates(Values v, Product) {
  return MatchesRows(v) ? ""
                        : "must have the shape of indices and the dims of varRef but the first, got " + ToString(DimsOfArg(v, 2)) + " for " +
                              ToString(DimsOfArg(v, 1)) + " and " + ToString(DimsOfArg(v, 0));
}
std::string WrongTfUpdates(Values v, Product product) {
  const bool no_rows = DimsOfArg(v, 0)[0] == 0 && !v[1].tensor->empty();
  if (no_rows) return "must be empty for an empty varRef, got " + ToString(DimsOfArg(v, 2));
  return WrongUpdates<0, 1, 2>(v, product).empty() ? "" : WrongRowUpdates(v, product);
}

// The k-th slice of varRef combined with a slice of updates.
Status PlanRows(PlanBuilder& plan, Values values, Action action) {
  const DType work = WorkType(action, values[0].tensor->dtype);
  Operand indices, updates, table;
  ANYACL_RETURN_IF_ERROR(IndexOperand(plan, 1, &indices));
  ANYACL_RETURN_IF_ERROR(Converted(plan, plan.TensorOperand(2), work, &updates));
  ANYACL_RETURN_IF_ERROR(BeginUpdate(plan, 0, 0, work, false, &table));
  const Operand tuples = WithAxis(indices, indices.dims.rank());
  ANYACL_RETURN_IF_ERROR(AddWalk(plan, TupleSpec(action, table, updates, tuples, false)));
  return EndUpdate(plan, 0, table);
}

Operator MakeTfScatterAdd(const Entry& entry) {
  Table table = TableOf(entry, "walk", "Adds updates to the slices that indices name, by coordinates or by rows.", {.in_out = {"varRef"}});
  table.formulas = {"varRef[indices[i, 0], ...] += updates[i, ...], or varRef[indices[i]] += updates[i]"};
  table.notes = {"Each element is summed in the order of indices and rounded once; what lies outside of varRef adds nothing."};
  AddNullRules(&table);
  Add(&table, {Supported(kNewer), DTypes("varRef", RowsOf(types::kFloat3 | DTypeSet{DType::kI32, DType::kI8, DType::kU8})),
               DTypes("indices", RowsOf(types::kIndex)), SameDType("updates", "varRef")});
  AddStorageRules(&table);
  Add(&table, {Rank("varRef", 1, 8), Rank("indices", 1, 8), Rank("updates", 0, 8),
               Custom("updates", "must have the shape that indices and varRef give", WrongTfUpdates)});
  return {.contract = Contract(std::move(table)),
          .plan = [](Values values, PlanBuilder& plan) -> Status {
            for (int i = 0; i < 3; ++i) {
              if (values[i].tensor->empty()) return {};
            }
            const bool tuples = WrongUpdates<0, 1, 2>(values, CurrentProduct()).empty();
            return tuples ? PlanTuples(plan, values, 0, 0, Action::kAdd) : PlanRows(plan, values, Action::kAdd);
          },
          .family = "indexing"};
}

template <Action kAction>
Operator MakeScatterRows(const Entry& entry) {
  Table table = TableOf(entry, "walk", "Combines updates with the slices of varRef that indices name, in their order.",
                        {.in_out = {"varRef"}});
  table.formulas = {"varRef[indices[i]] = varRef[indices[i]] op updates[i]"};
  table.notes = {"What lies outside of varRef changes nothing; neither does division of integers by 0. useLocking has no effect."};
  table.result_pointers = ResultPointers::kAfterNullChecks;
  AddNullRules(&table);
  Add(&table, {Supported(kOnly950), DTypes("varRef", RowsOf({DType::kF16, DType::kF32, DType::kI32, DType::kI8, DType::kU8})),
               DTypes("indices", RowsOf(types::kIndex)), SameDType("updates", "varRef")});
  AddStorageRules(&table);
  AddRankRules(&table);
  Add(&table, {Custom("updates", "must have the shape of indices and the dims of varRef but the first", WrongRowUpdates).Code(561002)});
  return {.contract = Contract(std::move(table)),
          .plan = [](Values values, PlanBuilder& plan) -> Status {
            for (int i = 0; i < 3; ++i) {
              if (values[i].tensor->empty()) return {};
            }
            return PlanRows(plan, values, kAction);
          },
          .family = "indexing"};
}

template <int... kRows>
void DeclareScatters(Declarations& declarations, std::integer_sequence<int, kRows...>) {
  (declarations.Add(kScatters[kRows].op, MakeScatter<kRows>), ...);
}

}  // namespace

void DeclareWrites(Declarations& declarations) {
  DeclareScatters(declarations, std::make_integer_sequence<int, static_cast<int>(std::size(kScatters))>());
  declarations.Add("aclnnIndexAdd", MakeIndexAdd<false>);
  declarations.Add("aclnnIndexAddV2", MakeIndexAdd<true>);
  declarations.Add("aclnnIndexCopy", MakeIndexCopy<false>);
  declarations.Add("aclnnIndexFill", MakeIndexFill<false, false>);
  declarations.Add("aclnnIndexFillTensor", MakeIndexFill<false, true>);
  declarations.Add("aclnnInplaceIndexCopy", MakeIndexCopy<true>);
  declarations.Add("aclnnInplaceIndexFill", MakeIndexFill<true, false>);
  declarations.Add("aclnnInplaceIndexFillTensor", MakeIndexFill<true, true>);
  declarations.Add("aclnnInplacePut", MakeInplacePut);
  declarations.Add("aclnnScatterDiv", MakeScatterRows<Action::kDiv>);
  declarations.Add("aclnnScatterMax", MakeScatterRows<Action::kMax>);
  declarations.Add("aclnnScatterMin", MakeScatterRows<Action::kMin>);
  declarations.Add("aclnnScatterMul", MakeScatterRows<Action::kMul>);
  declarations.Add("aclnnScatterNd", MakeScatterNd);
  declarations.Add("aclnnScatterNdUpdate", MakeScatterNdUpdate);
  declarations.Add("aclnnTfScatterAdd", MakeTfScatterAdd);
}

}  // namespace anyacl::indexing
