// SPDX-License-Identifier: Apache-2.0
// Copyright The AnyACL Authors
//
// LayerNorm of a sum, and its gradients: AddLayerNorm, DeepNorm.
#include <fmt/format.h>

#include <limits>

#include "core/codes.h"
#include "ops/dense.h"
#include "ops/norm/norm_rules.h"
#include "ops/norm/row_norm.h"
#include "ops/operators.h"
#include "ops/table.h"

namespace anyacl {
namespace {

using namespace contract;

constexpr DType F32 = DType::kF32, F16 = DType::kF16, BF16 = DType::kBF16;
constexpr Products kProductsOfBoth = Of({Product::kAscend950, Product::kA3, Product::kA2, Product::kInference});
constexpr int32_t kShape = code::kTiling;

// Where the arguments of a forward operator are, and of a gradient; -1: there is no such argument.
struct Forward {
  norm::Sum sum;
  int gamma, beta, epsilon, y, mean, rstd;
};
struct Backward {
  norm::Sum sum;
  int dy, gamma, mean, rstd, dsum, dx, dx_alpha, dgamma, dbeta;
};

Status PlanForward(Values values, PlanBuilder& plan, const Forward& at) {
  const Tensor& x = *values[at.sum.x].tensor;
  const int64_t count = values[at.gamma].tensor->numel();
  if (values[at.mean].tensor->empty()) return {};
  if (count == 0) {
    ANYACL_RETURN_IF_ERROR(FillOutput(plan, at.mean, 0));
    return FillOutput(plan, at.rstd, std::numeric_limits<double>::quiet_NaN());
  }
  Dense dense(plan, values, F32);
  for (int arg : {at.gamma, at.beta}) ANYACL_RETURN_IF_ERROR(dense.Read(arg));
  for (int arg : {at.y, at.mean, at.rstd}) dense.Write(arg);
  ANYACL_RETURN_IF_ERROR(norm::ReadSum(plan, dense, values, at.sum));
  auto& params = plan.MakeParams<norm::RowNormParams>();
  params.shape = norm::DenseRows(x.numel() / count, count);
  params.eps = norm::Attribute(values[at.epsilon].real, false);
  dense.Bind(at.sum.x, params.x);
  dense.Bind(at.gamma, params.gamma);
  dense.Bind(at.beta, params.beta);
  dense.BindOut(at.y, params.y);
  dense.BindOut(at.mean, params.mean);
  dense.BindOut(at.rstd, params.rstd);
  ANYACL_RETURN_IF_ERROR(plan.ChooseKernel(params.scratch, "row_norm"));
  return dense.Finish();
}

Status PlanBackward(Values values, PlanBuilder& plan, const Backward& at) {
  const Tensor& x = *values[at.sum.x].tensor;
  const int64_t count = values[at.gamma].tensor->numel();
  if (values[at.dgamma].tensor->empty()) return {};
  if (x.empty()) {
    ANYACL_RETURN_IF_ERROR(FillOutput(plan, at.dgamma, 0));
    return FillOutput(plan, at.dbeta, 0);
  }
  Dense dense(plan, values, F32);
  for (int arg : {at.dy, at.gamma, at.mean, at.rstd}) ANYACL_RETURN_IF_ERROR(dense.Read(arg));
  if (at.dsum >= 0) ANYACL_RETURN_IF_ERROR(dense.Read(at.dsum));
  for (int arg : {at.dx, at.dgamma, at.dbeta}) dense.Write(arg);
  if (at.dx_alpha >= 0) dense.Write(at.dx_alpha);
  ANYACL_RETURN_IF_ERROR(norm::ReadSum(plan, dense, values, at.sum));
  auto& params = plan.MakeParams<norm::RowNormBackwardParams>();
  params.shape = norm::DenseRows(x.numel() / count, count);
  params.alpha = at.sum.alpha;
  dense.Bind(at.dy, params.dy);
  dense.Bind(at.sum.x, params.x);
  dense.Bind(at.mean, params.mean);
  dense.Bind(at.rstd, params.rstd);
  dense.Bind(at.gamma, params.gamma);
  dense.Bind(at.dsum, params.dsum);
  dense.BindOut(at.dx, params.dx);
  dense.BindOut(at.dx_alpha, params.dx_alpha);
  dense.BindOut(at.dgamma, params.dgamma);
  dense.BindOut(at.dbeta, params.dbeta);
  ANYACL_RETURN_IF_ERROR(plan.ChooseKernel(params.scratch, "row_norm_backward"));
  return dense.Finish();
}

void DescribeForward(Table* table) {
  Describe(table, "gamma", "factor of each position in a row; its dims are the trailing dims that make a row");
  Describe(table, "beta", "summand of each position in a row");
  Describe(table, "epsilon", "added to the variance");
  Describe(table, "yOut", "the normalised rows");
  Describe(table, "meanOut", "mean of each row");
  Describe(table, "rstdOut", "reciprocal standard deviation of each row");
}
void DescribeBackward(Table* table) {
  Describe(table, "dy", "gradient of the forward result");
  Describe(table, "gamma", "factor of each position in a row; its dims are the trailing dims that make a row");
  Describe(table, "mean", "mean of each row");
  Describe(table, "rstd", "reciprocal standard deviation of each row");
  Describe(table, "dgammaOut", "gradient of gamma");
  Describe(table, "dbetaOut", "gradient of beta");
}

// ---- AddLayerNorm ----

struct Added {
  enum { kX1, kX2, kGamma, kBeta, kBias, kEpsilon, kAdditional, kY, kMean, kRstd, kX };
};

std::string BiasShape(Values values, Product) {
  if (!values[Added::kBias].given()) return "";
  const Dims& bias = values[Added::kBias].tensor->dims;
  const Dims& gamma = values[Added::kGamma].tensor->dims;
  const Dims& x = values[Added::kX1].tensor->dims;
  if (bias == gamma || bias == x) return "";
  return fmt::format("must have the shape of gamma or of x1, got {}, gamma {} and x1 {}", ToString(bias), ToString(gamma), ToString(x));
}

Operator MakeAddLayerNorm(const Entry& entry) {
  const std::vector<const char*> outputs = {"yOut", "meanOut", "rstdOut", "xOut"};
  Table table = TableOf(entry, "row_norm", "Layer normalisation of a sum.", {.optional = {"biasOptional"}, .outputs = outputs});
  table.formulas = {"x = x1 + x2 + bias; mean, var = of each row of x; rstd = 1 / sqrt(var + epsilon)",
                    "yOut = (x - mean) * rstd * gamma + beta, xOut = x"};
  table.notes = {"xOut is written only when additionalOutput is true. yOut is made of the sum before xOut rounds it.",
                 "When all outputs are empty the call succeeds without further checks."};
  table.result_pointers = ResultPointers::kAfterNullChecks;
  DescribeForward(&table);
  Describe(&table, "x1", "one summand");
  Describe(&table, "x2", "the other one");
  Describe(&table, "biasOptional", "a third one, of the shape of gamma or of x1");
  Describe(&table, "additionalOutput", "xOut is wanted");
  Describe(&table, "xOut", "the sum");
  AddNullRules(&table);
  const auto row = [](DType x1, DType x2, DType coefficients, DType out, Products products) {
    return TypeRow{{x1, x2, coefficients, coefficients, out, out, F32, F32, out}, products};
  };
  const std::vector<const char*> tensors = {"x1", "x2", "gamma", "beta", "biasOptional", "yOut", "meanOut", "rstdOut", "xOut"};
  Add(&table, {Supported(kProductsOfBoth),
               DTypeRows(tensors, {row(F32, F32, F32, F32, kAllProducts), row(F16, F16, F16, F16, kAllProducts),
                                   row(BF16, BF16, BF16, BF16, kNewer), row(F32, F16, F32, F32, kNewer), row(F32, BF16, F32, F32, kNewer),
                                   row(F16, F32, F32, F32, kNewer), row(BF16, F32, F32, F32, kNewer), row(F16, F16, F32, F16, kNewer),
                                   row(BF16, BF16, F32, BF16, kNewer)})});
  for (const char* arg : tensors) Add(&table, {norm::Nd(arg)});
  Add(&table, {AcceptIfEmpty(outputs), Rank("x1", 1, 8).Code(kShape), Rank("gamma", 1, 8).Code(kShape)});
  for (const char* arg : {"x2", "yOut", "xOut"}) Add(&table, {SameShape(arg, "x1").Code(kShape)});
  constexpr auto kMeanRows = norm::RowStatistics<Added::kMean, Added::kX1, Added::kGamma, /*kStrict=*/true>;
  Add(&table, {SameShape("beta", "gamma").Code(kShape), SameShape("rstdOut", "meanOut").Code(kShape), Tail("gamma", "x1").Code(kShape),
               Custom("meanOut", norm::kNamesRows, kMeanRows).Code(kShape), NotEmpty("x1").Code(kShape), NotEmpty("gamma").Code(kShape),
               Custom("biasOptional", "must have the shape of gamma or of x1", BiasShape).Code(kShape)});
  return {.contract = Contract(std::move(table)),
          .plan = [](Values values, PlanBuilder& plan) -> Status {
            using A = Added;
            const norm::Sum sum = {A::kX1, A::kX2, 1, A::kBias, values[A::kAdditional].flag ? A::kX : -1};
            return PlanForward(values, plan, {sum, A::kGamma, A::kBeta, A::kEpsilon, A::kY, A::kMean, A::kRstd});
          },
          .family = "norm"};
}

struct AddedGrad {
  enum { kDy, kX1, kX2, kRstd, kMean, kGamma, kDsum, kDx, kDgamma, kDbeta };
};

template <int kArg>
std::string LikeGamma(Values values, Product) {
  const Tensor& gamma = *values[AddedGrad::kGamma].tensor;
  const Tensor& tensor = *values[kArg].tensor;
  if (tensor.rank() == gamma.rank() && tensor.numel() == gamma.numel()) return "";
  return fmt::format("must have the rank and the number of elements of gamma {}, got {}", ToString(gamma.dims), ToString(tensor.dims));
}

Operator MakeAddLayerNormGrad(const Entry& entry) {
  const std::vector<const char*> outputs = {"dxOut", "dgammaOut", "dbetaOut"};
  Table table = TableOf(entry, "row_norm_backward", "Gradients of the layer normalisation of a sum.",
                        {.optional = {"dsumOptional"}, .outputs = outputs});
  table.formulas = {"u = (x1 + x2 - mean) * rstd, p = dy * gamma", "dxOut = rstd * (p - avg(p) - u * avg(p * u)) + dsum, avg over the row",
                    "dgammaOut = sum over the rows of dy * u, dbetaOut = sum over the rows of dy"};
  table.notes = {"mean and rstd are taken as given; rstd comes first.",
                 "When all outputs are empty the call succeeds without further checks."};
  table.result_pointers = ResultPointers::kAfterNullChecks;
  DescribeBackward(&table);
  Describe(&table, "x1", "one forward summand");
  Describe(&table, "x2", "the other one");
  Describe(&table, "dsumOptional", "gradient that reaches the sum on other ways; null means zeros");
  Describe(&table, "dxOut", "gradient of the sum, and so of x1 and of x2");
  AddNullRules(&table);
  const std::vector<const char*> tensors = {"dy", "x1", "x2", "rstd", "mean", "gamma", "dsumOptional", "dxOut", "dgammaOut", "dbetaOut"};
  std::vector<TypeRow> rows;
  for (DType t : {F32, F16, BF16}) rows.push_back({{t, t, t, F32, F32, t, t, t, F32, F32}, t == BF16 ? kNewer : kAllProducts});
  Add(&table, {Supported(kProductsOfBoth), DTypeRows(tensors, rows)});
  for (const char* arg : tensors) Add(&table, {norm::Nd(arg)});
  constexpr auto kMeanRows = norm::RowStatistics<AddedGrad::kMean, AddedGrad::kDy, AddedGrad::kGamma, /*kStrict=*/true>;
  static constexpr char kLikeGamma[] = "must have the rank and the number of elements of gamma";
  Add(&table, {AcceptIfEmpty(outputs), Rank("dy", 1, 8).Code(kShape), Rank("gamma", 1, 8).Code(kShape)});
  for (const char* arg : {"x1", "x2", "dxOut", "dsumOptional"}) Add(&table, {SameShape(arg, "dy").Code(kShape)});
  Add(&table, {SameShape("rstd", "mean").Code(kShape), Tail("gamma", "dy").Code(kShape),
               Custom("mean", norm::kNamesRows, kMeanRows).Code(kShape), NotEmpty("dy").Code(kShape), NotEmpty("gamma").Code(kShape),
               Custom("dgammaOut", kLikeGamma, LikeGamma<AddedGrad::kDgamma>).Code(kShape),
               Custom("dbetaOut", kLikeGamma, LikeGamma<AddedGrad::kDbeta>).Code(kShape)});
  return {.contract = Contract(std::move(table)),
          .plan = [](Values values, PlanBuilder& plan) -> Status {
            using A = AddedGrad;
            return PlanBackward(values, plan, {{A::kX1, A::kX2}, A::kDy, A::kGamma, A::kMean, A::kRstd, A::kDsum, A::kDx, -1, A::kDgamma, A::kDbeta});
          },
          .family = "norm"};
}

// ---- DeepNorm ----

struct Deep {
  enum { kX, kGx, kBeta, kGamma, kAlpha, kEpsilon, kMean, kRstd, kY };
};
struct DeepGrad {
  enum { kDy, kX, kGx, kGamma, kMean, kRstd, kAlpha, kDx, kDgx, kDbeta, kDgamma };
};

template <int kX, int kGamma>
std::string FewerDims(Values values, Product) {
  const Dims& x = values[kX].tensor->dims;
  const Dims& gamma = values[kGamma].tensor->dims;
  return gamma.rank() < x.rank() ? "" : fmt::format("must have fewer dims than x, got {} and x {}", ToString(gamma), ToString(x));
}

// Shapes of both; a mistake in them is 161002, as documented.
void AddDeepShapes(Table* table, const std::vector<const char*>& alike, const std::vector<const char*>& statistics,
                   const std::vector<const char*>& coefficients, CustomCheck fewer_dims) {
  Add(table, {Rank("x", 2, 8), Rank("gamma", 1, 7), Custom("gamma", "must have fewer dims than x", fewer_dims)});
  for (const char* arg : alike) Add(table, {SameShape(arg, "x")});
  for (const char* arg : coefficients) Add(table, {SameShape(arg, "gamma")});
  Add(table, {Tail("gamma", "x")});
  for (const char* arg : statistics) Add(table, {KeepDims(arg, "x", "gamma")});
}

Operator MakeDeepNorm(const Entry& entry) {
  const std::vector<const char*> outputs = {"meanOut", "rstdOut", "yOut"};
  Table table = TableOf(entry, "row_norm", "Layer normalisation of a weighted sum.", {.outputs = outputs});
  table.formulas = {"z = alpha * x + gx; mean, var = of each row of z; rstd = 1 / sqrt(var + epsilon)",
                    "yOut = (z - mean) * rstd * gamma + beta"};
  table.notes = {"beta comes before gamma.", "A row without elements has mean 0 and rstd NaN."};
  table.result_pointers = ResultPointers::kAfterNullChecks;
  DescribeForward(&table);
  Describe(&table, "x", "the weighted summand");
  Describe(&table, "gx", "the other one");
  Describe(&table, "alpha", "weight of x");
  AddNullRules(&table);
  const std::vector<const char*> tensors = {"x", "gx", "beta", "gamma", "meanOut", "rstdOut", "yOut"};
  std::vector<TypeRow> rows;
  for (DType t : {F32, F16, BF16}) rows.push_back({{t, t, t, t, F32, F32, t}, t == BF16 ? kNewer : kAllProducts});
  Add(&table, {Supported(kProductsOfBoth), DTypeRows(tensors, rows)});
  for (const char* arg : tensors) Add(&table, {norm::Nd(arg)});
  Add(&table, {AcceptIfEmpty(outputs)});
  AddDeepShapes(&table, {"gx", "yOut"}, {"meanOut", "rstdOut"}, {"beta"}, FewerDims<Deep::kX, Deep::kGamma>);
  return {.contract = Contract(std::move(table)),
          .plan = [](Values values, PlanBuilder& plan) -> Status {
            using D = Deep;
            const norm::Sum sum = {D::kGx, D::kX, norm::Attribute(values[D::kAlpha].real, false)};
            return PlanForward(values, plan, {sum, D::kGamma, D::kBeta, D::kEpsilon, D::kY, D::kMean, D::kRstd});
          },
          .family = "norm"};
}

Operator MakeDeepNormGrad(const Entry& entry) {
  const std::vector<const char*> outputs = {"dxOut", "dgxOut", "dbetaOut", "dgammaOut"};
  Table table = TableOf(entry, "row_norm_backward", "Gradients of the layer normalisation of a weighted sum.", {.outputs = outputs});
  table.formulas = {"u = (alpha * x + gx - mean) * rstd, p = dy * gamma",
                    "dgxOut = rstd * (p - avg(p) - u * avg(p * u)), avg over the row; dxOut = alpha * dgxOut",
                    "dbetaOut = sum over the rows of dy, dgammaOut = sum over the rows of dy * u"};
  table.notes = {"mean and rstd are taken as given.", "Without rows dbetaOut and dgammaOut are cleared."};
  table.result_pointers = ResultPointers::kAfterNullChecks;
  DescribeBackward(&table);
  Describe(&table, "x", "the weighted forward summand");
  Describe(&table, "gx", "the other one");
  Describe(&table, "alpha", "weight of x");
  Describe(&table, "dxOut", "gradient of x");
  Describe(&table, "dgxOut", "gradient of gx");
  AddNullRules(&table);
  const std::vector<const char*> tensors = {"dy", "x", "gx", "gamma", "mean", "rstd", "dxOut", "dgxOut", "dbetaOut", "dgammaOut"};
  std::vector<TypeRow> rows;
  for (DType t : {F32, F16, BF16}) rows.push_back({{t, t, t, t, F32, F32, t, t, F32, F32}, t == BF16 ? kNewer : kAllProducts});
  Add(&table, {Supported(kProductsOfBoth), DTypeRows(tensors, rows)});
  for (const char* arg : tensors) Add(&table, {norm::Nd(arg)});
  Add(&table, {AcceptIfEmpty(outputs)});
  AddDeepShapes(&table, {"dy", "gx", "dxOut", "dgxOut"}, {"mean", "rstd"}, {"dbetaOut", "dgammaOut"}, FewerDims<DeepGrad::kX, DeepGrad::kGamma>);
  return {.contract = Contract(std::move(table)),
          .plan = [](Values values, PlanBuilder& plan) -> Status {
            using D = DeepGrad;
            const norm::Sum sum = {D::kGx, D::kX, norm::Attribute(values[D::kAlpha].real, false)};
            return PlanBackward(values, plan, {sum, D::kDy, D::kGamma, D::kMean, D::kRstd, -1, D::kDgx, D::kDx, D::kDgamma, D::kDbeta});
          },
          .family = "norm"};
}

}  // namespace

void DeclareAddLayerNorm(Declarations& declarations) {
  declarations.Add("aclnnAddLayerNorm", MakeAddLayerNorm);
  declarations.Add("aclnnAddLayerNormGrad", MakeAddLayerNormGrad);
  declarations.Add("aclnnDeepNorm", MakeDeepNorm);
  declarations.Add("aclnnDeepNormGrad", MakeDeepNormGrad);
}

}  // namespace anyacl
