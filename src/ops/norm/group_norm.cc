// SPDX-License-Identifier: Apache-2.0
// Copyright The AnyACL Authors
//
// GroupNorm and what is fused with it; InstanceNorm, whose groups are single channels.
#include <fmt/format.h>

#include <cstring>
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
using norm::Float3;
using norm::Float3Wide;

constexpr DType F32 = DType::kF32, F16 = DType::kF16, BF16 = DType::kBF16, F64 = DType::kF64;
constexpr double kNaN = std::numeric_limits<double>::quiet_NaN();

int64_t Inner(const Tensor& x) {
  Dims inner;
  for (int i = 2; i < x.rank(); ++i) inner.push_back(x.dims[i]);
  return Numel(inner);
}

norm::Rows GroupsOf(const Tensor& x, int64_t groups) { return norm::GroupRows(x.dims[0], x.dims[1], Inner(x), groups); }

// ---- GroupNorm ----

enum { kSelf, kGamma, kBeta, kN, kC, kHxW, kGroup, kEps, kOut, kMeanOut, kRstdOut };

std::string EpsPositive(double eps, Product product) {
  const bool fine = product == Product::kAscend950 ? eps == eps : eps > 0;
  return fine ? "" : fmt::format("must {}, got {}", product == Product::kAscend950 ? "not be NaN" : "be positive", eps);
}
std::string GroupNormEps(Values values, Product product) { return EpsPositive(values[kEps].real, product); }
std::string InnerIsHxW(Values values, Product) {
  const Tensor& self = *values[kSelf].tensor;
  if (Inner(self) == values[kHxW].integer) return "";
  return fmt::format("must be the product of the dims of self behind the first two, got {} and self {}", values[kHxW].integer,
                     ToString(self.dims));
}

Operator MakeGroupNorm(const Entry& entry) {
  Table table = TableOf(entry, "row_norm", "Group normalisation: groups of channels of each sample.", {.optional = {"gamma", "beta"}});
  table.formulas = {"mean, var = of each (n, group); rstd = 1 / sqrt(var + eps)",
                    "out = (self - mean) * rstd * gamma[c] + beta[c], over [N, C, HxW] in group groups"};
  table.notes = {"A self without elements gives mean 0 and rstd NaN.",
                 "A group of equal numbers with eps 0 has rstd infinite and out NaN."};
  table.sizes = {{"D0", "self", 0}, {"D1", "self", 1}};
  Describe(&table, "self", "numbers to normalise");
  Describe(&table, "gamma", "factor of each channel; null means ones");
  Describe(&table, "beta", "summand of each channel; null means zeros");
  Describe(&table, "N", "samples");
  Describe(&table, "C", "channels");
  Describe(&table, "HxW", "numbers of one channel of one sample");
  Describe(&table, "group", "number of groups");
  Describe(&table, "eps", "added to the variance");
  Describe(&table, "meanOut", "mean of each (n, group)");
  Describe(&table, "rstdOut", "reciprocal standard deviation of each (n, group)");
  AddNullRules(&table);
  Add(&table, {Supported(Of({Product::kAscend950, Product::kA3, Product::kA2, Product::kTraining, Product::kInference})),
               DTypes("self", Float3Wide()), norm::SameOrFloat("gamma", "self", kOnly950, false),
               norm::SameOrFloat("beta", "self", kOnly950, false), SameDType("out", "self"),
               norm::SameOrFloat("meanOut", "self", kOnly950, false), norm::SameOrFloat("rstdOut", "self", kOnly950, false),
               Require("group", "group > 0"), Require("C", "C % group == 0"),
               Custom("eps", "must be positive; on Ascend 950 only not NaN", GroupNormEps), Rank("self", 2, 8), SameShape("out", "self"),
               ShapeIs("meanOut", "N,group"), ShapeIs("rstdOut", "N,group"), Require("N", "D0 == N"), Require("C", "D1 == C"),
               Custom("HxW", "must be the product of the dims of self behind the first two", InnerIsHxW), NumelIs("self", "N*C*HxW"),
               ShapeIs("gamma", "C"), ShapeIs("beta", "C"), SameFormat({"self", "out"}),
               Formats("self", {Format::kND, Format::kNCHW, Format::kNCL, Format::kNCDHW, Format::kNC})});
  return {.contract = Contract(std::move(table)),
          .plan = [](Values values, PlanBuilder& plan) -> Status {
            const Tensor& x = *values[kSelf].tensor;
            if (x.empty()) {
              ANYACL_RETURN_IF_ERROR(FillOutput(plan, kMeanOut, 0));
              return FillOutput(plan, kRstdOut, kNaN);
            }
            const DType computed = norm::ComputeTypeOf(x.dtype);
            const Operand self = plan.TensorOperand(kSelf), out = plan.TensorOperand(kOut);
            const DType stored = StoredType(computed, {self, out});
            Dense dense(plan, values, computed);
            ANYACL_RETURN_IF_ERROR(dense.Read(kSelf, self, stored));
            for (int arg : {kGamma, kBeta}) ANYACL_RETURN_IF_ERROR(dense.Read(arg));
            dense.Write(kOut, out, stored);
            for (int arg : {kMeanOut, kRstdOut}) dense.Write(arg);
            auto& params = plan.MakeParams<norm::RowNormParams>();
            params.shape = GroupsOf(x, values[kGroup].integer);
            params.wide = computed == F64;
            params.stored = stored;
            params.eps = norm::Attribute(values[kEps].real, params.wide);
            dense.Bind(kSelf, params.x);
            dense.Bind(kGamma, params.gamma);
            dense.Bind(kBeta, params.beta);
            dense.BindOut(kOut, params.y);
            dense.BindOut(kMeanOut, params.mean);
            dense.BindOut(kRstdOut, params.rstd);
            ANYACL_RETURN_IF_ERROR(plan.ChooseKernel(params.scratch, "row_norm"));
            return dense.Finish();
          },
          .family = "norm"};
}

// ---- GroupNormSilu ----

struct Silu {
  enum { kSelf, kGamma, kBeta, kGroup, kEps, kFirstOut };  // V2 has activateSilu in front of the outputs
};

// Of an output, counted from the last argument.
template <int kFromEnd>
std::string StatisticsDType(Values values, Product product) {
  const DType self = values[Silu::kSelf].tensor->dtype;
  const Value& gamma = values[Silu::kGamma].given() ? values[Silu::kGamma] : values[Silu::kBeta];
  const DType wanted = product == Product::kAscend950 && gamma.given() && gamma.tensor->dtype != self ? F32 : self;
  const DType got = values[values.size() - kFromEnd].tensor->dtype;
  return got == wanted ? "" : fmt::format("must be {} for a {} self, got {}", Name(wanted), Name(self), Name(got));
}
template <int kArg>
std::string SameAsSelfOrFloat(Values values, Product) {
  if (!values[kArg].given()) return "";
  const DType self = values[Silu::kSelf].tensor->dtype;
  const DType got = values[kArg].tensor->dtype;
  return got == self || got == F32 ? "" : fmt::format("must be {} or FLOAT, got {}", Name(self), Name(got));
}
std::string SiluEps(Values values, Product) {
  const double eps = values[Silu::kEps].real;
  return eps > 0 ? "" : fmt::format("must be positive, got {}", eps);
}
std::string SamplesAndChannels(Values values, Product product) {
  const Dims& dims = values[Silu::kSelf].tensor->dims;
  if (product == Product::kAscend950 || (dims[0] > 0 && dims[1] > 0)) return "";
  return fmt::format("must have samples and channels on {}, got {}", Name(product), ToString(dims));
}

Status PlanSilu(Values values, PlanBuilder& plan) {
  const int out = static_cast<int>(values.size()) - 3;
  const Tensor& x = *values[Silu::kSelf].tensor;
  if (x.empty()) {
    const bool newest = CurrentProduct() == Product::kAscend950;
    ANYACL_RETURN_IF_ERROR(FillOutput(plan, out + 1, newest ? kNaN : 0));
    return FillOutput(plan, out + 2, kNaN);
  }
  const Operand self = plan.TensorOperand(Silu::kSelf), result = plan.TensorOperand(out);
  const DType stored = StoredType(F32, {self, result});
  Dense dense(plan, values, F32);
  ANYACL_RETURN_IF_ERROR(dense.Read(Silu::kSelf, self, stored));
  for (int arg : {Silu::kGamma, Silu::kBeta}) ANYACL_RETURN_IF_ERROR(dense.Read(arg));
  dense.Write(out, result, stored);
  for (int arg : {out + 1, out + 2}) dense.Write(arg);
  auto& params = plan.MakeParams<norm::RowNormParams>();
  params.shape = GroupsOf(x, values[Silu::kGroup].integer);
  params.stored = stored;
  params.eps = norm::Attribute(values[Silu::kEps].real, false);
  params.swish = out == Silu::kFirstOut || values[out - 1].flag;
  dense.Bind(Silu::kSelf, params.x);
  dense.Bind(Silu::kGamma, params.gamma);
  dense.Bind(Silu::kBeta, params.beta);
  dense.BindOut(out, params.y);
  dense.BindOut(out + 1, params.mean);
  dense.BindOut(out + 2, params.rstd);
  ANYACL_RETURN_IF_ERROR(plan.ChooseKernel(params.scratch, "row_norm"));
  return dense.Finish();
}

Operator MakeGroupNormSilu(const Entry& entry) {
  const bool chooses = entry.args.size() == 9;
  Table table = TableOf(entry, "row_norm", chooses ? "Group normalisation, with silu behind it or not." : "Group normalisation and silu.",
                        {.optional = {"gamma", "beta"}});
  table.formulas = {"z = (self - mean) * rstd * gamma[c] + beta[c], out = z / (1 + exp(-z))"};
  table.notes = {"A self without elements gives NaN for mean (0 before Ascend 950) and rstd."};
  table.sizes = {{"N", "self", 0}, {"C", "self", 1}};
  Describe(&table, "self", "numbers to normalise");
  Describe(&table, "gamma", "factor of each channel; null means ones");
  Describe(&table, "beta", "summand of each channel; null means zeros");
  Describe(&table, "group", "number of groups");
  Describe(&table, "eps", "added to the variance");
  if (chooses) Describe(&table, "activateSilu", "silu is applied");
  AddNullRules(&table);
  Add(&table, {Supported(Of({Product::kAscend950, Product::kA3, Product::kA2, Product::kInference})), DTypes("self", Float3()),
               DTypes("gamma", Float3()), DTypes("beta", Float3()), SameDType("beta", "gamma"),
               Custom("gamma", "must have the dtype of self or FLOAT", SameAsSelfOrFloat<Silu::kGamma>),
               Custom("beta", "must have the dtype of self or FLOAT", SameAsSelfOrFloat<Silu::kBeta>),
               SameDType("out", "self"),
               Custom("meanOut", "must have the dtype of self, or FLOAT beside a FLOAT gamma on Ascend 950", StatisticsDType<2>),
               Custom("rstdOut", "must have the dtype of self, or FLOAT beside a FLOAT gamma on Ascend 950", StatisticsDType<1>),
               Rank("self", 2, 8), SameShape("out", "self"), ShapeIs("meanOut", "N,group"), ShapeIs("rstdOut", "N,group"),
               ShapeIs("gamma", "C"), ShapeIs("beta", "C"), Require("group", "group > 0"),
               Custom("self", "must have samples and channels before Ascend 950", SamplesAndChannels),
               Custom("eps", "must be positive", SiluEps), Require("self", "C % group == 0")});
  return {.contract = Contract(std::move(table)), .plan = PlanSilu, .family = "norm"};
}

// ---- GroupNormSwish ----

constexpr int32_t kShape = code::kTiling;

Operator MakeGroupNormSwish(const Entry& entry) {
  Table table = TableOf(entry, "row_norm", "Group normalisation and swish.",
                        {.optional = {"dataFormatOptional"}, .outputs = {"yOut", "meanOut", "rstdOut"}});
  table.formulas = {"z = (x - mean) * rstd * gamma[c] + beta[c], yOut = activateSwish ? z / (1 + exp(-swishScale * z)) : z"};
  table.sizes = {{"N", "x", 0}, {"C", "x", 1}};
  table.result_pointers = ResultPointers::kAfterNullChecks;
  Describe(&table, "x", "numbers to normalise");
  Describe(&table, "gamma", "factor of each channel");
  Describe(&table, "beta", "summand of each channel");
  Describe(&table, "numGroups", "number of groups");
  Describe(&table, "dataFormatOptional", "accepted and not looked at");
  Describe(&table, "eps", "added to the variance");
  AddNullRules(&table);
  Add(&table, {Supported(kNewer),
               DTypeRows({"x", "gamma", "beta", "yOut", "meanOut", "rstdOut"}, {{{F16, F16, F16, F16, F16, F16}},
                                                                                {{F32, F32, F32, F32, F32, F32}},
                                                                                {{BF16, BF16, BF16, BF16, BF16, BF16}, kNewer},
                                                                                {{F16, F32, F32, F16, F32, F32}},
                                                                                {{BF16, F32, F32, BF16, F32, F32}, kNewer}})});
  for (const char* arg : {"x", "gamma", "beta", "yOut", "meanOut", "rstdOut"}) Add(&table, {norm::Nd(arg)});
  Add(&table, {AcceptIfEmpty({"yOut", "meanOut", "rstdOut"}), Rank("x", 2, 8).Code(kShape), NotEmpty("x").Code(kShape),
               SameShape("yOut", "x").Code(kShape), ShapeIs("gamma", "C").Code(kShape), ShapeIs("beta", "C").Code(kShape),
               Require("numGroups", "numGroups > 0").Code(kShape), Require("x", "C % numGroups == 0").Code(kShape),
               ShapeIs("meanOut", "N,numGroups").Code(kShape), ShapeIs("rstdOut", "N,numGroups").Code(kShape)});
  return {.contract = Contract(std::move(table)),
          .plan = [](Values values, PlanBuilder& plan) -> Status {
            enum { kX, kWeight, kBias, kGroups, kFormat, kEpsilon, kActivate, kScale, kY, kMean, kRstd };
            const Tensor& x = *values[kX].tensor;
            if (x.empty() || values[kY].tensor->empty()) return {};
            const Operand input = plan.TensorOperand(kX), out = plan.TensorOperand(kY);
            const DType stored = StoredType(F32, {input, out});
            Dense dense(plan, values, F32);
            ANYACL_RETURN_IF_ERROR(dense.Read(kX, input, stored));
            for (int arg : {kWeight, kBias}) ANYACL_RETURN_IF_ERROR(dense.Read(arg));
            dense.Write(kY, out, stored);
            for (int arg : {kMean, kRstd}) dense.Write(arg);
            auto& params = plan.MakeParams<norm::RowNormParams>();
            params.shape = GroupsOf(x, values[kGroups].integer);
            params.stored = stored;
            params.eps = norm::Attribute(values[kEpsilon].real, false);
            params.swish = values[kActivate].flag;
            params.swish_scale = norm::Attribute(values[kScale].real, false);
            dense.Bind(kX, params.x);
            dense.Bind(kWeight, params.gamma);
            dense.Bind(kBias, params.beta);
            dense.BindOut(kY, params.y);
            dense.BindOut(kMean, params.mean);
            dense.BindOut(kRstd, params.rstd);
            ANYACL_RETURN_IF_ERROR(plan.ChooseKernel(params.scratch, "row_norm"));
            return dense.Finish();
          },
          .family = "norm"};
}

std::string PositiveSizes(Values values, Product) {
  const Tensor& x = *values[3].tensor;
  const int64_t groups = values[6].integer;
  return !x.empty() && groups > 0 && x.dims[1] % groups == 0
             ? ""
             : fmt::format("must divide the channels of an x with elements, got {} and x {}", groups, ToString(x.dims));
}

Operator MakeGroupNormSwishGrad(const Entry& entry) {
  Table table = TableOf(entry, "row_norm_backward", "Gradients of group normalisation and swish: input, gamma and beta.",
                        {.optional = {"dataFormatOptional"}, .outputs = {"dxOut", "dgammaOut", "dbetaOut"}});
  table.formulas = {"u = (x - mean) * rstd, z = u * gamma[c] + beta[c], s = 1 / (1 + exp(-swishScale * z))",
                    "d = dy * s * (1 + swishScale * z * (1 - s)), dbetaOut = sum of d, dgammaOut = sum of d * u",
                    "dxOut = rstd * (d*gamma - avg(d*gamma) - u * avg(d*gamma*u)), avg over the (n, group)"};
  table.notes = {"The gradient is the mathematical one; some published formulas lack the division in avg.",
                 "dgammaOut and dbetaOut are written only when they are asked for."};
  table.sizes = {{"N", "x", 0}, {"C", "x", 1}};
  table.result_pointers = ResultPointers::kAfterNullChecks;
  Describe(&table, "dy", "gradient of the forward result");
  Describe(&table, "mean", "mean of each (n, group)");
  Describe(&table, "rstd", "reciprocal standard deviation of each (n, group)");
  Describe(&table, "x", "forward input");
  Describe(&table, "gamma", "factor of each channel");
  Describe(&table, "beta", "summand of each channel");
  Describe(&table, "numGroups", "number of groups");
  Describe(&table, "dataFormatOptional", "accepted and not looked at");
  AddNullRules(&table);
  const std::vector<const char*> tensors = {"dy", "mean", "rstd", "x", "gamma", "beta", "dxOut", "dgammaOut", "dbetaOut"};
  std::vector<TypeRow> rows;
  for (DType t : types::kFloat3.List()) rows.push_back({std::vector<DType>(tensors.size(), t), t == BF16 ? kNewer : kAllProducts});
  Add(&table, {Supported(kNewer), DTypeRows(tensors, rows)});
  for (const char* arg : tensors) Add(&table, {norm::Nd(arg)});
  Add(&table, {AcceptIfEmpty({"dxOut", "dgammaOut", "dbetaOut"}), Rank("x", 2, 8).Code(kShape), SameShape("dy", "x").Code(kShape),
               SameShape("dxOut", "x").Code(kShape), Custom("numGroups", "must divide the channels of an x with elements", PositiveSizes).Code(kShape),
               ShapeIs("mean", "N,numGroups").Code(kShape), ShapeIs("rstd", "N,numGroups").Code(kShape), ShapeIs("gamma", "C").Code(kShape),
               ShapeIs("beta", "C").Code(kShape), ShapeIs("dgammaOut", "C").If("dgammaIsRequire").Code(kShape),
               ShapeIs("dbetaOut", "C").If("dbetaIsRequire").Code(kShape)});
  return {.contract = Contract(std::move(table)),
          .plan = [](Values values, PlanBuilder& plan) -> Status {
            enum { kDy, kMean, kRstd, kX, kWeight, kBias, kGroups, kFormat, kScale, kWantsGamma, kWantsBeta, kDx, kDgamma, kDbeta };
            const Tensor& x = *values[kX].tensor;
            if (x.empty() || values[kDx].tensor->empty()) return {};
            const Operand dy = plan.TensorOperand(kDy), input = plan.TensorOperand(kX), dx = plan.TensorOperand(kDx);
            const DType stored = StoredType(F32, {dy, input, dx});
            Dense dense(plan, values, F32);
            ANYACL_RETURN_IF_ERROR(dense.Read(kDy, dy, stored));
            ANYACL_RETURN_IF_ERROR(dense.Read(kX, input, stored));
            for (int arg : {kMean, kRstd, kWeight, kBias}) ANYACL_RETURN_IF_ERROR(dense.Read(arg));
            dense.Write(kDx, dx, stored);
            if (values[kWantsGamma].flag) dense.Write(kDgamma);
            if (values[kWantsBeta].flag) dense.Write(kDbeta);
            auto& params = plan.MakeParams<norm::RowNormBackwardParams>();
            params.shape = GroupsOf(x, values[kGroups].integer);
            params.stored = stored;
            params.swish = true;
            params.swish_scale = norm::Attribute(values[kScale].real, false);
            dense.Bind(kDy, params.dy);
            dense.Bind(kX, params.x);
            dense.Bind(kMean, params.mean);
            dense.Bind(kRstd, params.rstd);
            dense.Bind(kWeight, params.gamma);
            dense.Bind(kBias, params.beta);
            dense.BindOut(kDx, params.dx);
            dense.BindOut(kDgamma, params.dgamma);
            dense.BindOut(kDbeta, params.dbeta);
            ANYACL_RETURN_IF_ERROR(plan.ChooseKernel(params.scratch, "row_norm_backward"));
            return dense.Finish();
          },
          .family = "norm"};
}

// ---- InstanceNorm ----

struct Instance {
  enum { kX, kGamma, kBeta, kFormat, kEps, kY, kMean, kVariance };
};

bool StartsWith(const char* text, const char* word) { return std::strncmp(text, word, std::strlen(word)) == 0; }

std::string KnownFormat(Values values, Product) {
  const char* const text = values[Instance::kFormat].text;
  if (StartsWith(text, "NCHW") || StartsWith(text, "NHWC")) return "";
  return fmt::format("must begin with NCHW or NHWC, got \"{:.20}\"", text);
}
int InstanceAxis(Values values) { return StartsWith(values[Instance::kFormat].text, "NHWC") ? 3 : 1; }

// The original has it on one product, and answers like this on the others; the newest takes what any of them takes.
std::string InferenceOrNewest(Values, Product product) {
  return product == Product::kInference || product == Product::kAscend950 ? "" : fmt::format("is not available on {}", Name(product));
}
template <int kArg>
std::string InstanceVector(Values values, Product) {
  const int64_t channels = values[Instance::kX].tensor->dims[InstanceAxis(values)];
  const Dims& dims = values[kArg].tensor->dims;
  return dims == Dims{channels} ? "" : fmt::format("must have shape [C] = [{}], got {}", channels, ToString(dims));
}
template <int kArg>
std::string InstanceStatistics(Values values, Product) {
  Dims wanted = {values[Instance::kX].tensor->dims[0], 1, 1, 1};
  wanted[InstanceAxis(values)] = values[Instance::kX].tensor->dims[InstanceAxis(values)];
  const Dims& dims = values[kArg].tensor->dims;
  return dims == wanted ? "" : fmt::format("must have shape {}, got {}", ToString(wanted), ToString(dims));
}

Operator MakeInstanceNorm(const Entry& entry) {
  Table table = TableOf(entry, "row_norm", "Normalises each channel of each sample; gives the variance and not its root.");
  table.formulas = {"mean, variance = of each (n, c) over H and W; y = (x - mean) / sqrt(variance + eps) * gamma + beta"};
  table.notes = {"When any tensor is empty the call succeeds and does nothing."};
  Describe(&table, "x", "numbers to normalise");
  Describe(&table, "gamma", "factor of each channel");
  Describe(&table, "beta", "summand of each channel");
  Describe(&table, "dataFormat", "\"NCHW\" or \"NHWC\"");
  Describe(&table, "eps", "added to the variance");
  AddNullRules(&table);
  const std::vector<TypeRow> two = {{{F32}}, {{F16}}};
  Add(&table, {Custom("dataFormat", "must begin with NCHW or NHWC", KnownFormat), DTypes("x", two), SameDType("gamma", "x"),
               SameDType("beta", "x"), SameDType("y", "x"), SameDType("mean", "x"), SameDType("variance", "x"), Rank("x", 0, 8),
               Custom("x", "is for Atlas inference (and Ascend 950)", InferenceOrNewest), Rank("x", 4, 4), Rank("gamma", 1, 1),
               Rank("beta", 1, 1)});
  for (const char* arg : {"x", "gamma", "beta", "y", "mean", "variance"}) Add(&table, {AcceptIfEmpty({arg})});
  constexpr const char* kVector = "must have shape [C]";
  constexpr const char* kStatistics = "must have shape [N, C, 1, 1] or [N, 1, 1, C]";
  Add(&table, {Custom("gamma", kVector, InstanceVector<Instance::kGamma>), Custom("beta", kVector, InstanceVector<Instance::kBeta>),
               SameShape("y", "x"), Custom("mean", kStatistics, InstanceStatistics<Instance::kMean>),
               Custom("variance", kStatistics, InstanceStatistics<Instance::kVariance>)});
  return {.contract = Contract(std::move(table)),
          .plan = [](Values values, PlanBuilder& plan) -> Status {
            using I = Instance;
            for (int arg : {I::kX, I::kGamma, I::kBeta, I::kY, I::kMean, I::kVariance}) {
              if (values[arg].tensor->empty()) return {};
            }
            const Tensor& x = *values[I::kX].tensor;
            // Channels behind the samples.
            const auto view = [&](int arg) {
              Operand operand = plan.TensorOperand(arg);
              if (InstanceAxis(values) == 1) return operand;
              operand = AxisFirst(operand, 3);
              std::swap(operand.dims[0], operand.dims[1]);
              std::swap(operand.strides[0], operand.strides[1]);
              return operand;
            };
            Dense dense(plan, values, F32);
            ANYACL_RETURN_IF_ERROR(dense.Read(I::kX, view(I::kX)));
            for (int arg : {I::kGamma, I::kBeta}) ANYACL_RETURN_IF_ERROR(dense.Read(arg));
            dense.Write(I::kY, view(I::kY));
            dense.Write(I::kMean);
            dense.Write(I::kVariance);
            auto& params = plan.MakeParams<norm::RowNormParams>();
            const int64_t channels = x.dims[InstanceAxis(values)];
            params.shape = norm::GroupRows(x.dims[0], channels, x.numel() / x.dims[0] / channels, channels);
            params.eps = norm::Attribute(values[I::kEps].real, false);
            dense.Bind(I::kX, params.x);
            dense.Bind(I::kGamma, params.gamma);
            dense.Bind(I::kBeta, params.beta);
            dense.BindOut(I::kY, params.y);
            dense.BindOut(I::kMean, params.mean);
            dense.BindOut(I::kVariance, params.variance);
            ANYACL_RETURN_IF_ERROR(plan.ChooseKernel(params.scratch, "row_norm"));
            return dense.Finish();
          },
          .family = "norm"};
}

}  // namespace

void DeclareGroupNorm(Declarations& declarations) {
  declarations.Add("aclnnGroupNorm", MakeGroupNorm);
  for (const char* op : {"aclnnGroupNormSilu", "aclnnGroupNormSiluV2"}) declarations.Add(op, MakeGroupNormSilu);
  declarations.Add("aclnnGroupNormSwish", MakeGroupNormSwish);
  declarations.Add("aclnnGroupNormSwishGrad", MakeGroupNormSwishGrad);
  declarations.Add("aclnnInstanceNorm", MakeInstanceNorm);
}

}  // namespace anyacl
