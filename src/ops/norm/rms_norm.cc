// SPDX-License-Identifier: Apache-2.0
// Copyright The AnyACL Authors
//
// RmsNorm, alone and behind a sum. Sums and products are FLOAT; every output is rounded once.
#include <fmt/format.h>

#include <memory>

#include "core/codes.h"
#include "ops/dense.h"
#include "ops/norm/norm_rules.h"
#include "ops/norm/row_norm.h"
#include "ops/operators.h"
#include "ops/pointwise/pass.h"
#include "ops/table.h"

namespace anyacl {
namespace {

using namespace contract;
using norm::Float3;

constexpr DType F32 = DType::kF32, F16 = DType::kF16, BF16 = DType::kBF16;
constexpr Products kWithInference = Of({Product::kAscend950, Product::kA3, Product::kA2, Product::kInference});
constexpr int32_t kShape = code::kTiling;

// Where the arguments are; -1: there is no such argument.
struct RmsNorm {
  const char* op;
  int x1, x2, gamma, epsilon, y, y_rounded, rstd, x;
  double gamma_bias = 0;
};
constexpr RmsNorm kRmsNorm = {"aclnnRmsNorm", 0, -1, 1, 2, 3, -1, 4, -1};
constexpr RmsNorm kGemma = {"aclnnGemmaRmsNorm", 0, -1, 1, 2, 3, -1, 4, -1, 1};
constexpr RmsNorm kAdd = {"aclnnAddRmsNorm", 0, 1, 2, 3, 4, -1, 5, 6};
constexpr RmsNorm kInplaceAdd = {"aclnnInplaceAddRmsNorm", 0, 1, 2, 3, 0, -1, 4, 1};
constexpr RmsNorm kCast = {"aclnnAddRmsNormCast", 0, 1, 2, 3, 4, 5, 6, 7};

// Statistics of which there is room for more than one per row: the first ones are written.
Operand OnePerRow(Operand rstd, int64_t rows) {
  if (Numel(rstd.dims) == rows) return rstd;
  rstd.dims = {rows};
  rstd.strides = {1};
  rstd.bytes = rows * static_cast<int64_t>(SizeOf(rstd.dtype));
  return rstd;
}

Status PlanRmsNorm(Values values, PlanBuilder& plan) {
  const RmsNorm& at = plan.op().As<RmsNorm>();
  const Tensor& x = *values[at.x1].tensor;
  const Tensor& gamma = *values[at.gamma].tensor;
  if (values[at.y].tensor->empty() || gamma.empty()) return {};
  const bool sums = at.x2 >= 0;
  const Operand y = plan.TensorOperand(at.y), first = sums ? Operand() : plan.TensorOperand(at.x1);
  const DType stored = sums ? F32 : StoredType(F32, {first, y});
  Dense dense(plan, values, F32);
  ANYACL_RETURN_IF_ERROR(dense.Read(at.gamma));
  dense.Write(at.y, y, stored);
  const int64_t count = gamma.numel(), rows = x.numel() / count;
  if (values[at.rstd].given()) dense.Write(at.rstd, OnePerRow(plan.TensorOperand(at.rstd), rows));
  ANYACL_RETURN_IF_ERROR(sums ? norm::ReadSum(plan, dense, values, {.x = at.x1, .y = at.x2, .out = at.x})
                              : dense.Read(at.x1, first, stored));
  auto& params = plan.MakeParams<norm::RowNormParams>();
  params.shape = norm::DenseRows(rows, count);
  params.stored = stored;
  params.centred = false;
  params.eps = norm::Attribute(values[at.epsilon].real, false);
  params.gamma_bias = at.gamma_bias;
  dense.Bind(at.x1, params.x);
  dense.Bind(at.gamma, params.gamma);
  dense.BindOut(at.y, params.y);
  dense.BindOut(at.rstd, params.rstd);
  ANYACL_RETURN_IF_ERROR(plan.ChooseKernel(params.scratch, "row_norm"));
  if (at.y_rounded >= 0) {
    ANYACL_RETURN_IF_ERROR(pointwise::AddCopy(plan, dense.Written(at.y), plan.TensorOperand(at.y_rounded)));
  }
  return dense.Finish();
}

// ---- rules ----

template <int kArg>
std::string NotNegative(Values values, Product) {
  return values[kArg].real < 0 ? fmt::format("must not be negative, got {}", values[kArg].real) : "";
}
constexpr char kNotNegative[] = "must not be negative";

// An element for each row, or (as the original has it) any shape of ones and of x's dims with room for them.
std::string RstdHasRoom(Values values, Product product) {
  const Tensor& x = *values[kRmsNorm.x1].tensor;
  const Tensor& gamma = *values[kRmsNorm.gamma].tensor;
  const Tensor& rstd = *values[kRmsNorm.rstd].tensor;
  bool fits = rstd.rank() == x.rank() && rstd.numel() >= norm::RowsOf(x, gamma) && IsContiguous(rstd);
  for (int i = 0; fits && i < x.rank(); ++i) fits = rstd.dims[i] == 1 || rstd.dims[i] == x.dims[i];
  return fits ? "" : norm::NamesRows(rstd, x, gamma, /*strict=*/false, product);
}

// Rules of generated entries for what has the shape of x, for gamma and for epsilon.
template <int kEpsilon>
void AddShapes(Table* table, const char* x, std::vector<const char*> alike) {
  Add(table, {Rank(x, 1, 8).Code(kShape), Rank("gamma", 1, 8).Code(kShape)});
  for (const char* arg : alike) Add(table, {SameShape(arg, x).Code(kShape)});
  Add(table, {Tail("gamma", x).Code(kShape), NotEmpty(x).Code(kShape), NotEmpty("gamma").Code(kShape),
              Custom("epsilon", kNotNegative, NotNegative<kEpsilon>).Code(kShape)});
}

void DescribeCommon(Table* table, const RmsNorm& at) {
  Describe(table, "gamma", "factor of each position in a row; its dims are the trailing dims that make a row");
  Describe(table, "epsilon", "added to the mean square");
  if (at.x2 >= 0) {
    Describe(table, table->args[at.x1].name, "one summand");
    Describe(table, table->args[at.x2].name, "the other one");
  } else {
    Describe(table, "x", "numbers to normalise");
  }
  Describe(table, table->args[at.y].name, "the normalised rows");
  Describe(table, table->args[at.rstd].name, "reciprocal root mean square of each row");
}

Operator Finished(Table table, const RmsNorm& at) {
  return {.contract = Contract(std::move(table)),
          .plan = PlanRmsNorm,
          .family = "norm",
          .row = std::shared_ptr<const RmsNorm>(std::shared_ptr<void>(), &at)};
}

// ---- RmsNorm, GemmaRmsNorm ----

Operator MakeRmsNorm(const Entry& entry, const RmsNorm& at) {
  const bool gemma = at.gamma_bias != 0;
  Table table = TableOf(entry, "row_norm",
                        gemma ? "Root mean square normalisation whose factors are 1 + gamma." : "Root mean square normalisation.",
                        {.outputs = {"yOut", "rstdOut"}});
  table.formulas = {"rstdOut = 1 / sqrt(avg(x^2) + epsilon), avg over the row",
                    gemma ? "yOut = x * rstdOut * (1 + gamma)" : "yOut = x * rstdOut * gamma"};
  table.notes = {"When yOut and rstdOut are both empty the call succeeds without further checks."};
  table.result_pointers = ResultPointers::kAfterNullChecks;
  DescribeCommon(&table, at);
  AddNullRules(&table);
  const Products products = gemma ? kNewer : kWithInference;
  const Products mixed = gemma ? kOnly950 : kNewer;
  Add(&table, {Supported(products), DTypeRows({"x", "gamma", "yOut", "rstdOut"}, {{{F32, F32, F32, F32}},
                                                                                  {{F16, F16, F16, F32}},
                                                                                  {{BF16, BF16, BF16, F32}, kNewer},
                                                                                  {{F16, F32, F16, F32}, mixed},
                                                                                  {{BF16, F32, BF16, F32}, mixed}})});
  for (const char* arg : {"x", "gamma", "yOut", "rstdOut"}) Add(&table, {norm::Nd(arg)});
  Add(&table, {AcceptIfEmpty({"yOut", "rstdOut"})});
  AddShapes<kRmsNorm.epsilon>(&table, "x", {"yOut"});
  if (gemma) {
    Add(&table, {Custom("rstdOut", norm::kNamesRows, norm::RowStatistics<kGemma.rstd, kGemma.x1, kGemma.gamma>).Code(kShape)});
  } else {
    table.notes.push_back("A row-major rstdOut of x's rank whose dims are 1 or those of x may have more elements than there are rows; "
                          "the first ones are written.");
    Add(&table, {Custom("rstdOut", norm::kNamesRows, RstdHasRoom).Code(kShape)});
  }
  return Finished(std::move(table), at);
}

// ---- AddRmsNorm ----

bool Full(Values values) { return values[kAdd.rstd].given(); }

std::string XBesideRstd(Values values, Product) {
  return values[kAdd.x].given() ? "" : "must be null where xOut is, got a tensor";
}
std::string HalfWithoutRstd(Values values, Product) {
  return Full(values) || values[kAdd.x1].tensor->dtype != F32 ? "" : "must be FLOAT16 or BF16 where rstdOut is null, got FLOAT";
}
std::string GammaOfSum(Values values, Product) {
  const Dims& x = values[kAdd.x1].tensor->dims;
  const Dims& gamma = values[kAdd.gamma].tensor->dims;
  if (!Full(values)) {
    const Dims wanted = {1, x[x.rank() - 1]};
    return gamma == wanted ? "" : fmt::format("must have shape {} where rstdOut is null, got {}", ToString(wanted), ToString(gamma));
  }
  bool fits = gamma.rank() <= x.rank();
  for (int i = 0; fits && i < gamma.rank(); ++i) fits = gamma[i] == x[x.rank() - gamma.rank() + i];
  return fits ? "" : fmt::format("must equal the trailing dims of x1, got {} and x1 {}", ToString(gamma), ToString(x));
}

Operator MakeAddRmsNorm(const Entry& entry, const RmsNorm& at) {
  Table table = TableOf(entry, "row_norm", "Root mean square normalisation of a sum.",
                        {.optional = {"rstdOut", "xOut"}});
  table.formulas = {"x = x1 + x2, rstdOut = 1 / sqrt(avg(x^2) + epsilon), avg over the row", "yOut = x * rstdOut * gamma, xOut = x"};
  table.notes = {"Without rstdOut (and perhaps without xOut) the tensors are FLOAT16 or BF16 and gamma is [1, last dim of x1].",
                 "yOut is made of the sum before xOut rounds it.", "When x1 or gamma is empty the call succeeds and writes nothing."};
  DescribeCommon(&table, at);
  Describe(&table, "xOut", "the sum");
  AddNullRules(&table);
  Add(&table, {Custom("rstdOut", "must be null where xOut is", XBesideRstd).Code(code::kNull), Supported(kWithInference)});
  for (const char* arg : {"x1", "x2", "gamma"}) Add(&table, {DTypes(arg, Float3())});
  for (const char* arg : {"x2", "gamma", "yOut", "xOut"}) Add(&table, {SameDType(arg, "x1")});
  Add(&table, {DTypes("rstdOut", {{{F32}}}), Custom("x1", "must be FLOAT16 or BF16 where rstdOut is null", HalfWithoutRstd),
               Rank("x1", 1, 8), Rank("x2", 1, 8), Rank("gamma", 1, 8)});
  for (const char* arg : {"x2", "yOut", "xOut"}) Add(&table, {SameShape(arg, "x1")});
  Add(&table, {Custom("gamma", "must equal the trailing dims of x1; without rstdOut it is [1, last dim of x1]", GammaOfSum),
               KeepDims("rstdOut", "x1", "gamma"), AcceptIfEmpty({"x1"}), AcceptIfEmpty({"gamma"}),
               Custom("epsilon", kNotNegative, NotNegative<kAdd.epsilon>)});
  return Finished(std::move(table), at);
}

// ---- InplaceAddRmsNorm, AddRmsNormCast ----

Operator MakeInplaceAddRmsNorm(const Entry& entry, const RmsNorm& at) {
  Table table = TableOf(entry, "row_norm", "Root mean square normalisation of a sum, written over the summands.",
                        {.in_out = {"x1Ref", "x2Ref"}, .outputs = {"rstdOut"}});
  table.formulas = {"x = x1Ref + x2Ref, rstdOut = 1 / sqrt(avg(x^2) + epsilon), avg over the row",
                    "x1Ref = x * rstdOut * gamma, x2Ref = x"};
  table.notes = {"rstdOut is the reciprocal of the root mean square.",
                 "When x1Ref, x2Ref and rstdOut are all empty the call succeeds without further checks."};
  table.result_pointers = ResultPointers::kAfterNullChecks;
  DescribeCommon(&table, at);
  Describe(&table, "x1Ref", "one summand; afterwards the normalised rows");
  Describe(&table, "x2Ref", "the other one; afterwards the sum");
  AddNullRules(&table);
  const std::vector<const char*> tensors = {"x1Ref", "x2Ref", "gamma", "rstdOut"};
  Add(&table, {Supported(kWithInference),
               DTypeRows(tensors, {{{F32, F32, F32, F32}}, {{F16, F16, F16, F32}}, {{BF16, BF16, BF16, F32}, kNewer}})});
  for (const char* arg : tensors) Add(&table, {norm::Nd(arg)});
  Add(&table, {AcceptIfEmpty({"x1Ref", "x2Ref", "rstdOut"})});
  AddShapes<kInplaceAdd.epsilon>(&table, "x1Ref", {"x2Ref"});
  Add(&table, {KeepDims("rstdOut", "x1Ref", "gamma").Code(kShape)});
  return Finished(std::move(table), at);
}

Operator MakeAddRmsNormCast(const Entry& entry, const RmsNorm& at) {
  Table table = TableOf(entry, "row_norm", "Root mean square normalisation of a sum, in FLOAT and rounded.",
                        {.outputs = {"y1Out", "y2Out", "rstdOut", "xOut"}});
  table.formulas = {"x = x1 + x2, rstdOut = 1 / sqrt(avg(x^2) + epsilon), avg over the row",
                    "y1Out = x * rstdOut * gamma, y2Out = y1Out rounded, xOut = x"};
  table.notes = {"When all outputs are empty the call succeeds without further checks."};
  table.result_pointers = ResultPointers::kAfterNullChecks;
  DescribeCommon(&table, at);
  Describe(&table, "y2Out", "the same in the dtype of x1");
  Describe(&table, "xOut", "the sum");
  AddNullRules(&table);
  const std::vector<const char*> tensors = {"x1", "x2", "gamma", "y1Out", "y2Out", "rstdOut", "xOut"};
  Add(&table, {Supported(kNewer),
               DTypeRows(tensors, {{{F16, F16, F16, F32, F16, F32, F16}}, {{BF16, BF16, BF16, F32, BF16, F32, BF16}, kNewer}})});
  for (const char* arg : tensors) Add(&table, {norm::Nd(arg)});
  Add(&table, {AcceptIfEmpty({"y1Out", "y2Out", "rstdOut", "xOut"})});
  AddShapes<kCast.epsilon>(&table, "x1", {"x2", "y1Out", "y2Out", "xOut"});
  Add(&table, {KeepDims("rstdOut", "x1", "gamma").Code(kShape)});
  return Finished(std::move(table), at);
}

}  // namespace

void DeclareRmsNorm(Declarations& declarations) {
  const auto declare = [&](const RmsNorm& at, Operator (*make)(const Entry&, const RmsNorm&)) {
    declarations.Add(at.op, [&at, make](const Entry& entry) { return make(entry, at); });
  };
  declare(kRmsNorm, MakeRmsNorm);
  declare(kGemma, MakeRmsNorm);
  declare(kAdd, MakeAddRmsNorm);
  declare(kInplaceAdd, MakeInplaceAddRmsNorm);
  declare(kCast, MakeAddRmsNormCast);
}

}  // namespace anyacl
