// SPDX-License-Identifier: Apache-2.0
// Copyright The AnyACL Authors
//
// Operators that fold axes of a tensor. What the arguments of one mean follows from their names in its header.
#include <fmt/format.h>

#include <algorithm>
#include <memory>
#include <string_view>

#include "ops/operators.h"
#include "ops/pointwise/pass.h"
#include "ops/reduction/add_reduce.h"
#include "ops/table.h"

namespace anyacl {
namespace {

using namespace contract;
using pointwise::AddCopy;
using reduction::AddReduce;
using reduction::AddReduceInto;
using reduction::Finish;
using reduction::Op;

constexpr DTypeSet kReal = types::kFloat3 | types::kDouble | types::kInt5;
constexpr DTypeSet kRealBool = kReal | types::kBool;
constexpr DTypeSet kAllNumbers = kRealBool | types::kComplex;
constexpr DTypeSet kWideUnsigned = {DType::kU16, DType::kU32, DType::kU64};

constexpr Products kNot200I =
    Of({Product::kAscend950, Product::kA3, Product::kA2, Product::kTraining, Product::kInference});
constexpr Products kNot200IInference = Of({Product::kAscend950, Product::kA3, Product::kA2, Product::kTraining});
constexpr Products kNot200ITraining = Of({Product::kAscend950, Product::kA3, Product::kA2, Product::kInference});

enum class Kind {
  kFold,      // one output
  kPlaces,    // where the extreme is, and perhaps what it is
  kMinMax,    // both extremes
  kVariance,  // and perhaps the mean
};

// What a maker knows, and then the plan.
struct Row {
  Kind kind = Kind::kFold;
  reduction::Fold fold = {Op::kSum};
  bool sample_root = false;          // kVariance: the standard deviation
  NoAxes no_axes = NoAxes::kAreAll;  // what an empty array stands for
  bool untouched = false;            // an empty tensor leaves the outputs alone
  // Arguments by index, -1 where there is none.
  int self = -1, axes = -1, axis = -1, keep = -1, noop = -1, dtype = -1, correction = -1, unbiased = -1;
  int out = -1, second = -1;
};

// The arguments of the header, by their names.
void FindArguments(const Entry& entry, Row* row) {
  for (int i = 0; i < static_cast<int>(entry.args.size()); ++i) {
    const std::string_view name = entry.args[i].name;
    switch (entry.args[i].kind) {
      case ArgKind::kInput:
        row->self = i;
        break;
      case ArgKind::kIntArray:
        row->axes = i;
        break;
      case ArgKind::kBool:
        (name.starts_with("keep") ? row->keep : name.starts_with("noop") ? row->noop : row->unbiased) = i;
        break;
      case ArgKind::kInt:
        (name == "dtype" ? row->dtype : name == "correction" ? row->correction : row->axis) = i;
        break;
      default:
        (row->out < 0 ? row->out : row->second) = i;
    }
  }
}

struct Declared {
  const char* summary;
  Row row;
  Products products = kNot200I;
  ShapeRule shape = ShapeRule::kLoose;
  bool optional_axes = false;
  bool needs_elements = false;  // along the axes it reduces
  std::vector<Rule> (*rules)(const Row& row, const Table& table) = nullptr;
};

Status PlanReduction(Values values, PlanBuilder& plan);

Operator MakeReduction(const Entry& entry, const Declared& declared) {
  auto row = std::make_shared<Row>(declared.row);
  FindArguments(entry, row.get());
  const auto name = [&](int arg) { return entry.args[arg].name; };
  ArgRoles roles;
  if (declared.optional_axes) roles.optional = {name(row->axes)};
  Table table = TableOf(entry, "reduce", declared.summary, roles);
  AddNullRules(&table);
  Add(&table, {Supported(declared.products)});
  Add(&table, declared.rules(*row, table));
  Add(&table, {Rank(name(row->self), 0, 8)});
  std::vector<const char*> how;
  if (row->axes >= 0) {
    Add(&table, {DimsOf(name(row->axes), name(row->self))});
    how.push_back(name(row->axes));
  }
  if (row->axis >= 0) {
    Add(&table, {Dim(name(row->axis), name(row->self))});
    how.push_back(name(row->axis));
  }
  if (declared.needs_elements) Add(&table, {ReducesElements(name(row->self), how)});
  if (row->keep >= 0) how.push_back(name(row->keep));
  if (row->noop >= 0) how.push_back(name(row->noop));
  for (const int out : {row->out, row->second}) {
    if (out < 0) continue;
    Add(&table, {Rank(name(out), 0, 8), Reduced(name(out), name(row->self), how, declared.shape, row->no_axes)});
  }
  return {.contract = Contract(std::move(table)), .plan = PlanReduction, .family = "reduction", .row = row};
}

// ---- Plans ----------------------------------------------------------------------------------------------------------

uint64_t AxesOf(const Row& row, Values values) {
  const int rank = values[row.self].tensor->rank();
  if (row.axis >= 0) return AxisBits({&values[row.axis].integer, 1}, rank);
  if (row.axes >= 0 && values[row.axes].given() && !values[row.axes].ints->values.empty()) {
    return AxisBits(values[row.axes].ints->values, rank);
  }
  return (uint64_t{1} << rank) - 1;
}

// No axes were named and that means none.
bool IsCopy(const Row& row, Values values) {
  if (row.axes < 0 || !values[row.axes].given() || !values[row.axes].ints->values.empty()) return false;
  return row.no_axes == NoAxes::kAreNone || (row.noop >= 0 && values[row.noop].flag);
}

DType NamedType(const Row& row, Values values) {
  const DType own = values[row.self].tensor->dtype;
  if (row.dtype < 0) return own;
  const auto named = static_cast<DType>(values[row.dtype].integer);
  return named == DType::kUndefined ? own : named;
}

// Contracts let one element have any rank.
Status CopyInto(PlanBuilder& plan, Operand from, int out) {
  const Operand to = plan.TensorOperand(out);
  if (Numel(from.dims) == 1) {
    from.dims = to.dims;
    from.strides = ContiguousStrides(to.dims);
  }
  return AddCopy(plan, from, to);
}

bool IsWhole(DType t) { return IsInteger(t) || t == DType::kBool; }

Status PlanFold(const Row& row, Values values, PlanBuilder& plan) {
  const Tensor& self = *values[row.self].tensor;
  reduction::Fold fold = row.fold;
  DType dtype = NamedType(row, values);
  Operand in = plan.TensorOperand(row.self);
  const uint64_t axes = AxesOf(row, values);
  if (dtype == DType::kBool && row.dtype >= 0) {  // sums and products of truth
    fold.op = fold.op == Op::kProduct ? Op::kAll : Op::kAny;
    dtype = self.dtype;
  }
  if (fold.op == Op::kLogSumExp) dtype = IsWhole(dtype) || dtype == DType::kF64 ? DType::kF64 : DType::kF32;
  if (fold.finish == Finish::kDivide) {
    fold.divisor = self.empty() ? 0 : static_cast<double>(reduction::LengthOf(self.dims, axes));
  }
  if (fold.finish == Finish::kLog && self.empty()) fold.finish = Finish::kNone;  // 0, not its logarithm
  if (!IsCopy(row, values) || self.empty()) return AddReduceInto(plan, fold, in, axes, dtype, row.out);
  return CopyInto(plan, in, row.out);
}

Status PlanMinMax(const Row& row, Values values, PlanBuilder& plan) {
  const Operand in = plan.TensorOperand(row.self);
  if (IsCopy(row, values)) {
    ANYACL_RETURN_IF_ERROR(CopyInto(plan, in, row.out));
    return CopyInto(plan, in, row.second);
  }
  const uint64_t axes = AxesOf(row, values);
  ANYACL_RETURN_IF_ERROR(AddReduceInto(plan, {Op::kMin}, in, axes, in.dtype, row.out));
  return AddReduceInto(plan, {Op::kMax}, in, axes, in.dtype, row.second);
}

Status PlanPlaces(const Row& row, Values values, PlanBuilder& plan) {
  const Operand in = plan.TensorOperand(row.self);
  const int out = row.second < 0 ? -1 : row.out;
  return AddReduceInto(plan, row.fold, in, AxesOf(row, values), in.dtype, out, row.second < 0 ? row.out : row.second);
}

// The mean first, in DOUBLE; then the squares of what is left without it.
Status PlanVariance(const Row& row, Values values, PlanBuilder& plan) {
  const Tensor& self = *values[row.self].tensor;
  const Operand in = plan.TensorOperand(row.self);
  const uint64_t axes = AxesOf(row, values);
  const double length = self.empty() ? 0 : static_cast<double>(reduction::LengthOf(self.dims, axes));
  const double correction = row.unbiased >= 0 ? (values[row.unbiased].flag ? 1 : 0)
                                              : static_cast<double>(values[row.correction].integer);
  const DType dtype = in.dtype == DType::kF64 ? DType::kF64 : DType::kF32;
  const pointwise::Compute compute = pointwise::ComputeOf(dtype);
  const Operand out = plan.TensorOperand(row.out);
  const Operand mean = plan.ScratchOperand("mean", DType::kF64, out.dims);
  ANYACL_RETURN_IF_ERROR(AddReduce(plan, {Op::kSum, Finish::kDivide, length}, in, axes, compute, &mean));
  const Operand natural = plan.ScratchOperand("variance", DType::kF64, out.dims);
  const reduction::Fold squares = {Op::kSquares, row.sample_root ? Finish::kDivideAndRoot : Finish::kDivide,
                                   length == 0 ? 0 : std::max(0.0, length - correction)};
  ANYACL_RETURN_IF_ERROR(AddReduce(plan, squares, in, axes, compute, &natural, nullptr, &mean));
  ANYACL_RETURN_IF_ERROR(AddCopy(plan, natural, out));
  if (row.second < 0) return {};
  if (self.empty()) return AddReduceInto(plan, {Op::kSum, Finish::kDivide, 0}, in, axes, dtype, row.second);
  return CopyInto(plan, mean, row.second);
}

Status PlanReduction(Values values, PlanBuilder& plan) {
  const Row& row = plan.op().As<Row>();
  const Tensor& self = *values[row.self].tensor;
  if (values[row.out].tensor->empty() || (row.untouched && self.empty())) return {};
  switch (row.kind) {
    case Kind::kFold:
      return PlanFold(row, values, plan);
    case Kind::kPlaces:
      return PlanPlaces(row, values, plan);
    case Kind::kMinMax:
      return PlanMinMax(row, values, plan);
    case Kind::kVariance:
      return PlanVariance(row, values, plan);
  }
  return {};
}

// ---- Rules beside those of shapes and axes --------------------------------------------------------------------------

const char* NameOf(const Table& table, int arg) { return table.args[arg].name; }

// Complex results of nothing are the newest product's.
std::string ComplexOfNothing(Values values, Product product) {
  // self is the first argument of all of them, out the last.
  const bool refused = product != Product::kAscend950 && values[0].tensor->empty() &&
                       IsComplex(values[values.size() - 1].tensor->dtype);
  return refused ? "must have elements when the result is complex, got an empty tensor" : "";
}

Rule SomethingComplex() {
  return Custom("self", "must have elements when the result is complex (but on Ascend 950)", ComplexOfNothing);
}

std::vector<Rule> SumRules(const Row&, const Table&) {
  return {DTypes("self", RowsOf(kAllNumbers | kWideUnsigned, kAllNumbers)), DTypeArg("dtype", RowsOf(kAllNumbers)),
          DTypes("out", RowsOf(kAllNumbers)), DTypeIs("out", "dtype"), SomethingComplex()};
}

std::vector<Rule> NansumRules(const Row&, const Table&) {
  constexpr DTypeSet kTypes = types::kFloat3 | types::kInt5Bool;
  constexpr DTypeSet kNewest = kTypes | types::kDouble;
  return {DTypes("self", RowsOf(kNewest, kTypes)), DTypeArg("dtype", RowsOf(kNewest, kTypes)),
          DTypes("out", RowsOf(kNewest, kTypes)), DTypeIs("out", "dtype"), ResultConverts("self", "out")};
}

std::vector<Rule> ProductRules(const Row&, const Table&) {
  return {DTypes("self", RowsOf(kAllNumbers)), DTypeArg("dtype", RowsOf(kAllNumbers)).OrUndefined(),
          DTypes("out", RowsOf(kAllNumbers)), DTypeIs("out", "dtype", "self"), SomethingComplex()};
}

constexpr DTypeSet kMeanTypes = kReal | types::kComplex;

std::string MeanConverts(Values values, Product) {
  const DType self = values[0].tensor->dtype;
  const auto dtype = static_cast<DType>(values[3].integer);
  const DType out = values[4].tensor->dtype;
  const bool truth = self == DType::kBool && IsInteger(dtype);
  if (truth || !ConvertsTo(self, dtype)) {
    return fmt::format("must be a dtype that self converts to, got self {} and dtype {}", Name(self), Name(dtype));
  }
  if (ConvertsTo(dtype, out)) return "";
  return fmt::format("must be a dtype that converts to that of out, got dtype {} and out {}", Name(dtype), Name(out));
}

std::vector<Rule> MeanRules(const Row&, const Table&) {
  return {DTypes("self", RowsOf(kMeanTypes | types::kBool, kMeanTypes)), DTypeArg("dtype", RowsOf(kMeanTypes)),
          DTypes("out", RowsOf(kMeanTypes)),
          Custom("dtype", "must be a dtype that self converts to (BOOL to no integer) and that converts to that of out",
                 MeanConverts),
          SomethingComplex()};
}

std::vector<Rule> MeanV2Rules(const Row&, const Table&) {
  return {DTypes("self", RowsOf(kMeanTypes)), DTypes("out", RowsOf(kMeanTypes)), SameDType("out", "self"), SomethingComplex()};
}

// Every output has self's dtype.
std::vector<Rule> SameTypeRules(const Row& row, const Table& table, DTypeSet newest, DTypeSet others) {
  std::vector<Rule> rules = {DTypes("self", RowsOf(newest, others))};
  for (const int out : {row.out, row.second}) {
    if (out >= 0) rules.push_back(SameDType(NameOf(table, out), "self"));
  }
  return rules;
}

std::vector<Rule> ExtremeRules(const Row& row, const Table& table) {
  return SameTypeRules(row, table, kRealBool, kRealBool);
}

std::string OneAxisOfNothing(Values values, Product) {
  const size_t axes = values[1].ints->values.size();
  return values[0].tensor->empty() && axes != 1 ? fmt::format("must name one axis of an empty tensor, got {}", axes) : "";
}

std::vector<Rule> AminmaxRules(const Row& row, const Table& table) {
  std::vector<Rule> rules = ExtremeRules(row, table);
  rules.push_back(Custom("dim", "must name one axis if self is empty", OneAxisOfNothing));
  return rules;
}

std::vector<Rule> WholeExtremeRules(const Row&, const Table&) {
  return {DTypes("self", RowsOf(kRealBool)), DTypes("out", RowsOf(kRealBool))};
}

std::vector<Rule> ExtremeDimRules(const Row&, const Table&) {
  constexpr DTypeSet kOld = {DType::kF32, DType::kF16, DType::kBF16, DType::kI64, DType::kBool};
  return {DTypes("self", RowsOf(kRealBool, kOld)), SameDType("out", "self"),
          DTypes("indices", RowsOf({DType::kI32, DType::kI64}))};
}

std::vector<Rule> ArgMaxRules(const Row&, const Table&) {
  constexpr DTypeSet kNewest = kReal | DTypeSet{DType::kU16};
  return {DTypes("self", RowsOf(kNewest, kReal)), DTypes("out", RowsOf({DType::kI32, DType::kI64}))};
}

std::vector<Rule> ArgMinRules(const Row&, const Table&) {
  return {DTypes("self", RowsOf(kReal)), DTypes("out", RowsOf({DType::kI32, DType::kI64})), PublicFormat("self"),
          PublicFormat("out")};
}

std::vector<Rule> TestRules(const Row&, const Table& table) {
  std::vector<Rule> rules = {DTypes("self", RowsOf(kAllNumbers | kWideUnsigned, kRealBool)),
                             DTypes("out", RowsOf({DType::kBool, DType::kU8}))};
  if (std::string_view(table.op) == "aclnnAll") rules.push_back(PublicFormat("self"));
  return rules;
}

std::vector<Rule> VarianceRules(const Row& row, const Table& table) {
  constexpr DTypeSet kNewest = types::kFloat3 | types::kDouble;
  std::vector<Rule> rules = {DTypes("self", RowsOf(kNewest, types::kFloat3)),
                             DTypes(NameOf(table, row.out), RowsOf(kNewest, types::kFloat3))};
  if (row.second < 0) return rules;
  rules.push_back(DTypes(NameOf(table, row.second), RowsOf(kNewest, types::kFloat3)));
  return rules;
}

std::vector<Rule> StdMeanRules(const Row& row, const Table& table) {
  return SameTypeRules(row, table, types::kFloat3 | types::kDouble, types::kFloat3);
}

// The newest product asks for a public format, but not of an empty tensor.
std::string PublicWhereNew(Values values, Product product) {
  const Tensor& self = *values[0].tensor;
  const bool refused = product == Product::kAscend950 && !self.empty() && IsPrivate(self.format);
  return refused ? fmt::format("must have a public format, got {}", Name(self.format)) : "";
}

std::vector<Rule> LogSumExpRules(const Row&, const Table&) {
  constexpr DTypeSet kOut = types::kFloat3 | types::kDouble;
  constexpr DTypeSet kSelf = types::kFloat3 | types::kInt5Bool;
  return {DTypes("self", RowsOf(kSelf | types::kDouble, kSelf)), DTypes("out", RowsOf(kOut, types::kFloat3)),
          ResultConverts("self", "out"),
          Custom("self", "must have a public format on Ascend 950, unless it is empty", PublicWhereNew)};
}

std::vector<Rule> LogSumRules(const Row&, const Table&) {
  constexpr DTypeSet kOld = {DType::kF32, DType::kF16};
  return {DTypes("data", RowsOf(types::kFloat3, kOld)), SameDType("reduce", "data")};
}

// ---- The operators --------------------------------------------------------------------------------------------------

Row FoldRow(Op op, Finish finish = Finish::kNone) { return {.kind = Kind::kFold, .fold = {op, finish}}; }
Row PlacesRow(Op op) { return {.kind = Kind::kPlaces, .fold = {op}, .untouched = true}; }
Row VarianceRow(bool root) { return {.kind = Kind::kVariance, .sample_root = root}; }
Row Untouched(Row row) {
  row.untouched = true;
  return row;
}
Row OnlyNamed(Row row) {
  row.no_axes = NoAxes::kAreNone;
  return row;
}

}  // namespace

void DeclareReduction(Declarations& declarations) {
  const auto add = [&](const char* op, Declared declared) {
    declarations.Add(op, [declared](const Entry& entry) { return MakeReduction(entry, declared); });
  };
  add("aclnnReduceSum", {.summary = "The sum over some axes, in the dtype that is asked for.",
                         .row = FoldRow(Op::kSum), .rules = SumRules});
  add("aclnnReduceNansum", {.summary = "The sum over some axes, NaN counting as 0.",
                            .row = FoldRow(Op::kSumOfNumbers), .products = kNewer, .rules = NansumRules});
  add("aclnnMean", {.summary = "The mean over some axes, in the dtype that is asked for.",
                    .row = FoldRow(Op::kSum, Finish::kDivide), .rules = MeanRules});
  add("aclnnMeanV2", {.summary = "The mean over some axes.", .row = FoldRow(Op::kSum, Finish::kDivide), .rules = MeanV2Rules});
  add("aclnnProd", {.summary = "The product of all elements.", .row = FoldRow(Op::kProduct), .rules = ProductRules});
  add("aclnnProdDim", {.summary = "The product over one axis.", .row = FoldRow(Op::kProduct), .rules = ProductRules});
  add("aclnnAmax", {.summary = "The largest element over some axes.", .row = FoldRow(Op::kMax),
                    .shape = ShapeRule::kStrict, .needs_elements = true, .rules = ExtremeRules});
  add("aclnnAmin", {.summary = "The smallest element over some axes.", .row = FoldRow(Op::kMin),
                    .shape = ShapeRule::kStrict, .needs_elements = true, .rules = ExtremeRules});
  add("aclnnMaxV2", {.summary = "The largest element over some axes; without axes a copy if asked for.",
                     .row = FoldRow(Op::kMax), .shape = ShapeRule::kStrict, .needs_elements = true, .rules = ExtremeRules});
  add("aclnnMax", {.summary = "The largest of all elements.", .row = Untouched(FoldRow(Op::kMax)), .rules = WholeExtremeRules});
  add("aclnnMin", {.summary = "The smallest of all elements.", .row = Untouched(FoldRow(Op::kMin)), .rules = WholeExtremeRules});
  add("aclnnAminmax", {.summary = "The smallest and the largest element over the named axes; a copy when none is named.",
                       .row = OnlyNamed({.kind = Kind::kMinMax}), .needs_elements = true, .rules = AminmaxRules});
  add("aclnnAminmaxAll", {.summary = "The smallest and the largest of all elements.",
                          .row = Untouched({.kind = Kind::kMinMax}), .products = kNot200IInference, .rules = ExtremeRules});
  add("aclnnAminmaxDim", {.summary = "The smallest and the largest element over one axis.", .row = {.kind = Kind::kMinMax},
                          .products = kNot200IInference, .needs_elements = true, .rules = ExtremeRules});
  add("aclnnMaxDim", {.summary = "The largest element over one axis, and where it is first.",
                      .row = PlacesRow(Op::kMax), .rules = ExtremeDimRules});
  add("aclnnMinDim", {.summary = "The smallest element over one axis, and where it is first.",
                      .row = PlacesRow(Op::kMin), .rules = ExtremeDimRules});
  add("aclnnArgMax", {.summary = "Where along an axis the largest element is first.",
                      .row = PlacesRow(Op::kMax), .rules = ArgMaxRules});
  add("aclnnArgMin", {.summary = "Where along an axis the smallest element is first.", .row = PlacesRow(Op::kMin),
                      .needs_elements = true, .rules = ArgMinRules});
  add("aclnnAll", {.summary = "Whether no element over some axes is 0.", .row = FoldRow(Op::kAll), .products = kAllProducts,
                   .shape = ShapeRule::kStrict, .rules = TestRules});
  add("aclnnAny", {.summary = "Whether some element over some axes is not 0.", .row = FoldRow(Op::kAny),
                   .products = kAllProducts, .rules = TestRules});
  add("aclnnVar", {.summary = "The variance over some axes, of a sample or of everything.", .row = VarianceRow(false),
                   .products = kNot200IInference, .shape = ShapeRule::kStrict, .optional_axes = true, .rules = VarianceRules});
  add("aclnnVarCorrection", {.summary = "The variance over some axes, divided by their elements less a correction.",
                             .row = VarianceRow(false), .shape = ShapeRule::kStrict, .optional_axes = true,
                             .rules = VarianceRules});
  add("aclnnVarMean", {.summary = "The variance over some axes and the mean.", .row = VarianceRow(false),
                       .products = kNot200IInference, .shape = ShapeRule::kStrict, .optional_axes = true,
                       .rules = VarianceRules});
  add("aclnnStd", {.summary = "The standard deviation over some axes.", .row = VarianceRow(true),
                   .shape = ShapeRule::kLooseForAll, .optional_axes = true, .rules = VarianceRules});
  add("aclnnStdMeanCorrection", {.summary = "The standard deviation over some axes and the mean.", .row = VarianceRow(true),
                                 .products = kNot200IInference, .shape = ShapeRule::kLooseForAll, .optional_axes = true,
                                 .rules = StdMeanRules});
  add("aclnnLogSumExp", {.summary = "The logarithm of the sum of exponentials over some axes.",
                         .row = FoldRow(Op::kLogSumExp), .shape = ShapeRule::kStrict, .rules = LogSumExpRules});
  add("aclnnReduceLogSum", {.summary = "The logarithm of the sum over some axes; without axes a copy if asked for.",
                            .row = FoldRow(Op::kSum, Finish::kLog), .products = kNot200ITraining, .rules = LogSumRules});
}

}  // namespace anyacl
