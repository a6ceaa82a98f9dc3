// SPDX-License-Identifier: Apache-2.0
// Copyright The AnyACL Authors
//
// Gated units: an axis is cut into halves, one of which opens and closes the other.
#include "ops/gated/gated.h"

#include <fmt/format.h>

#include <cstring>

#include "core/codes.h"
#include "ops/dense.h"
#include "ops/operators.h"
#include "ops/table.h"

namespace anyacl {
namespace {

using namespace contract;
using gated::Formula;
using gated::Params;

constexpr Products kProducts5 =
    Of({Product::kAscend950, Product::kA3, Product::kA2, Product::kInference, Product::kTraining});
constexpr Products kProducts4 = Of({Product::kAscend950, Product::kA3, Product::kA2, Product::kInference});
constexpr int32_t kShape = code::kTiling;

std::vector<TypeRow> Float3() { return RowsOf(types::kFloat3); }

// All tensors of one dtype of the three, as generated operators list it.
Rule OneDType(std::vector<const char*> args) {
  std::vector<TypeRow> rows;
  for (DType t : types::kFloat3.List()) {
    rows.push_back({std::vector<DType>(args.size(), t), t == DType::kBF16 ? kNewer : kAllProducts});
  }
  return DTypeRows(std::move(args), std::move(rows));
}

Rule Nd(const char* arg) {  // tags that are treated as ND
  return Formats(arg, {Format::kND, Format::kNCHW, Format::kNHWC, Format::kNCL, Format::kNCDHW});
}

// What a plan says of the unit it computes.
struct Unit {
  Formula formula;
  int x;
  int dim = -1;  // the axis; the last one without
  int out;
  int gradient_in = -1;
  int gelu = -1;
  int weight = -1;
  int threshold = -1;
  int groups = -1;
  int second = -1;
  bool gradient = false;
  bool swapped = false;
  bool interleaved = false;
  double scalars[3] = {};
};

Status PlanUnit(Values values, PlanBuilder& plan, const Unit& unit) {
  const Tensor& x = *values[unit.x].tensor;
  if (x.empty() || values[unit.out].tensor->empty()) return {};
  const int64_t dim = unit.dim < 0 ? -1 : values[unit.dim].integer;
  const int axis = static_cast<int>(dim < 0 ? dim + x.rank() : dim);
  DType computed = DType::kF32;
  for (int arg : {unit.x, unit.out}) {
    if (values[arg].tensor->dtype == DType::kF64) computed = DType::kF64;
  }
  const Operand both = plan.TensorOperand(unit.x), out = plan.TensorOperand(unit.out);
  const auto or_both = [&](int arg) { return arg >= 0 ? plan.TensorOperand(arg) : both; };
  const Operand gradient_in = or_both(unit.gradient_in), gelu = or_both(unit.gelu), second = or_both(unit.second);
  const DType stored = StoredType(computed, {both, gradient_in, gelu, out, second});
  Dense dense(plan, values, computed);
  ANYACL_RETURN_IF_ERROR(dense.Read(unit.x, both, stored));
  if (unit.gradient_in >= 0) ANYACL_RETURN_IF_ERROR(dense.Read(unit.gradient_in, gradient_in, stored));
  if (unit.gelu >= 0) ANYACL_RETURN_IF_ERROR(dense.Read(unit.gelu, gelu, stored));
  for (int arg : {unit.weight, unit.threshold}) {
    if (arg >= 0) ANYACL_RETURN_IF_ERROR(dense.Read(arg));
  }
  const bool grouped = unit.groups >= 0 && values[unit.groups].given();
  if (grouped) ANYACL_RETURN_IF_ERROR(dense.Read(unit.groups, DType::kI64));
  dense.Write(unit.out, out, stored);
  if (unit.second >= 0) dense.Write(unit.second, second, stored);
  auto& params = plan.MakeParams<Params>();
  params.formula = unit.formula;
  params.wide = computed == DType::kF64;
  params.stored = stored;
  params.interleaved = unit.interleaved;
  params.swapped = unit.swapped;
  params.gradient = unit.gradient;
  params.rows = 1;
  for (int i = 0; i < axis; ++i) params.rows *= x.dims[i];
  params.half = x.numel() / params.rows / 2;
  for (int i = 0; i < 3; ++i) params.scalars[i] = params.wide ? unit.scalars[i] : static_cast<float>(unit.scalars[i]);
  params.grouped = grouped;
  if (grouped) params.group_count = values[unit.groups].tensor->numel();
  dense.Bind(unit.x, params.x);
  dense.Bind(unit.gradient_in, params.gradient_in);
  dense.Bind(unit.gelu, params.gelu);
  dense.Bind(unit.weight, params.weight);
  dense.Bind(unit.threshold, params.threshold);
  dense.Bind(unit.groups, params.groups);
  dense.BindOut(unit.out, params.out);
  dense.BindOut(unit.second, params.second);
  ANYACL_RETURN_IF_ERROR(plan.ChooseKernel("gated"));
  return dense.Finish();
}

constexpr char kDimText[] = "the axis that is cut into two halves, A and B";

Operator Made(Table table, Status (*plan)(Values, PlanBuilder&)) {
  return {.contract = Contract(std::move(table)), .plan = plan, .family = "gated"};
}

// ---- Glu ----

Operator MakeGlu(const Entry& entry) {
  const auto types = RowsOf(types::kFloat3 | types::kDouble);
  Table table = TableOf(entry, "gated", "Gated linear unit: one half of an axis times the logistic function of the other.",
                        {.outputs = {"out"}});
  table.formulas = {"out = A * sigmoid(B)"};
  Describe(&table, "self", "both halves");
  Describe(&table, "dim", kDimText);
  AddNullRules(&table);
  Add(&table, {Supported(kProducts5), DTypes("self", types), DTypes("out", types), ResultConverts("self", "out"), Rank("self", 1, 8),
               Rank("out", 0, 8), Dim("dim", "self"), EvenAxis("self", "dim"), Halved("out", "self", "dim")});
  return Made(std::move(table), [](Values values, PlanBuilder& plan) {
    return PlanUnit(values, plan, {.formula = Formula::kGlu, .x = 0, .dim = 1, .out = 2});
  });
}

Operator MakeGluBackward(const Entry& entry) {
  Table table = TableOf(entry, "gated", "Gradient of the gated linear unit.", {.outputs = {"out"}});
  table.formulas = {"dA = gradOut * sigmoid(B), dB = gradOut * A * sigmoid(B) * (1 - sigmoid(B)); out = dA and dB along dim"};
  Describe(&table, "gradOut", "gradient of the forward result");
  Describe(&table, "self", "both halves");
  Describe(&table, "dim", kDimText);
  AddNullRules(&table, {"self"});
  Add(&table, {Supported(kProducts5), DTypes("self", RowsOf(types::kFloat3 | types::kDouble)), SameDType("gradOut", "self"),
               SameDType("out", "self"), Rank("self", 1, 8), Rank("out", 0, 8), Rank("gradOut", 0, 8), Dim("dim", "self"),
               EvenAxis("self", "dim"), Halved("gradOut", "self", "dim"), SameShape("out", "self")});
  return Made(std::move(table), [](Values values, PlanBuilder& plan) {
    return PlanUnit(values, plan,
                    {.formula = Formula::kGluBackward, .x = 1, .dim = 2, .out = 3, .gradient_in = 0, .gradient = true});
  });
}

// ---- GeGlu ----

template <int kArg>
std::string SameAsSelf(Values values, Product) {
  const Tensor& self = *values[0].tensor;
  const DType dtype = values[kArg].tensor->dtype;
  return self.empty() || dtype == self.dtype ? ""
                                             : fmt::format("must have the dtype of self, got {} and {}", Name(dtype), Name(self.dtype));
}

Operator MakeGeGlu(const Entry& entry) {
  const bool chooses = entry.args.size() == 6;  // V3 says which half is the gate
  Table table = TableOf(entry, "gated", chooses ? "One half of an axis times gelu of the other, either of the two."
                                                : "The first half of an axis times gelu of the second.");
  table.formulas = {"outGelu = gelu(B), out = A * gelu(B)"};
  if (chooses) table.formulas.push_back("activateLeft: outGelu = gelu(A), out = gelu(A) * B");
  Describe(&table, "self", "both halves");
  Describe(&table, "dim", kDimText);
  Describe(&table, "approximate", "gelu by the error function (0) or the hyperbolic tangent (1)");
  if (chooses) Describe(&table, "activateLeft", "gelu is applied to A");
  AddNullRules(&table);
  Add(&table, {Supported(kProducts4), DTypes("self", Float3()), DTypes("out", Float3()), DTypes("outGelu", Float3()),
               Custom("out", "must have the dtype of self", chooses ? SameAsSelf<4> : SameAsSelf<3>),
               Custom("outGelu", "must have the dtype of self", chooses ? SameAsSelf<5> : SameAsSelf<4>), Rank("self", 1, 8),
               Rank("out", 0, 8), Rank("outGelu", 0, 8), Dim("dim", "self"), EvenAxis("self", "dim"), Halved("out", "self", "dim"),
               Halved("outGelu", "self", "dim"), OneOf("approximate", {0, 1})});
  return Made(std::move(table), [](Values values, PlanBuilder& plan) {
    const int first = static_cast<int>(values.size()) - 2;
    return PlanUnit(values, plan,
                    {.formula = values[2].integer ? Formula::kGeGluTanh : Formula::kGeGluErf,
                     .x = 0,
                     .dim = 1,
                     .out = first,
                     .second = first + 1,
                     .swapped = first == 4 && values[3].flag});
  });
}

std::string OnlyTanh(Values values, Product product) {
  return product != Product::kInference || values[4].integer == 1 ? "" : fmt::format("must be 1 on {}, got {}", Name(product), values[4].integer);
}

Operator MakeGeGluBackward(const Entry& entry) {
  const bool chooses = entry.args.size() == 7;
  Table table = TableOf(entry, "gated", chooses ? "Gradient of the unit gated by gelu of either half."
                                                : "Gradient of the unit gated by gelu of the second half.");
  table.formulas = {"dA = gradOutput * gelu, dB = gradOutput * A * gelu'(B); gradInput = dA and dB along dim"};
  if (chooses) table.formulas.push_back("activateLeft: dA = gradOutput * B * gelu'(A), dB = gradOutput * gelu");
  Describe(&table, "gradOutput", "gradient of the forward result");
  Describe(&table, "self", "both halves");
  Describe(&table, "gelu", "outGelu of the forward call, used as it is");
  Describe(&table, "dim", kDimText);
  Describe(&table, "approximate", "gelu by the error function (0) or the hyperbolic tangent (1)");
  if (chooses) Describe(&table, "activateLeft", "gelu was applied to A");
  AddNullRules(&table);
  Add(&table, {Supported(kProducts4), DTypes("gradOutput", Float3()), SameDType("self", "gradOutput"), SameDType("gelu", "gradOutput"),
               SameDType("gradInput", "gradOutput"), SameShape("gelu", "gradOutput"), SameShape("gradInput", "self"),
               Rank("self", 1, 8), Dim("dim", "self"), EvenAxis("self", "dim"), Halved("gradOutput", "self", "dim"),
               OneOf("approximate", {0, 1}), Custom("approximate", "must be 1 on Atlas inference", OnlyTanh)});
  return Made(std::move(table), [](Values values, PlanBuilder& plan) {
    return PlanUnit(values, plan,
                    {.formula = values[4].integer ? Formula::kGeGluTanhBackward : Formula::kGeGluErfBackward,
                     .x = 1,
                     .dim = 3,
                     .out = static_cast<int>(values.size()) - 1,
                     .gradient_in = 0,
                     .gelu = 2,
                     .gradient = true,
                     .swapped = values.size() == 7 && values[5].flag});
  });
}

// ---- SwiGlu ----

Operator MakeSwiGlu(const Entry& entry) {
  Table table = TableOf(entry, "gated", "silu of the first half of an axis times the second.", {.outputs = {"out"}});
  table.formulas = {"out = A * sigmoid(A) * B"};
  table.result_pointers = ResultPointers::kAfterNullChecks;
  Describe(&table, "x", "both halves");
  Describe(&table, "dim", kDimText);
  AddNullRules(&table);
  Add(&table, {Supported(kProducts4), OneDType({"x", "out"}), Nd("x"), Nd("out"), AcceptIfEmpty({"out"}), Rank("x", 1, 8).Code(kShape),
               Dim("dim", "x"), EvenAxis("x", "dim").Code(kShape), Halved("out", "x", "dim").Code(kShape)});
  return Made(std::move(table), [](Values values, PlanBuilder& plan) {
    return PlanUnit(values, plan, {.formula = Formula::kSwiGlu, .x = 0, .dim = 1, .out = 2});
  });
}

Operator MakeSwiGluGrad(const Entry& entry) {
  Table table = TableOf(entry, "gated", "Gradient of the unit gated by silu.", {.outputs = {"out"}});
  table.formulas = {"s = sigmoid(A), dA = yGrad * B * s * (1 + A * (1 - s)), dB = yGrad * A * s; out = dA and dB along dim"};
  table.result_pointers = ResultPointers::kAfterNullChecks;
  Describe(&table, "yGrad", "gradient of the forward result");
  Describe(&table, "x", "both halves");
  Describe(&table, "dim", kDimText);
  AddNullRules(&table);
  Add(&table, {Supported(kProducts4), OneDType({"yGrad", "x", "out"}), Nd("yGrad"), Nd("x"), Nd("out"), AcceptIfEmpty({"out"}),
               Rank("x", 1, 8).Code(kShape), Dim("dim", "x"), EvenAxis("x", "dim").Code(kShape),
               Halved("yGrad", "x", "dim").Code(kShape), SameShape("out", "x").Code(kShape)});
  return Made(std::move(table), [](Values values, PlanBuilder& plan) {
    return PlanUnit(values, plan,
                    {.formula = Formula::kSwiGluBackward, .x = 1, .dim = 2, .out = 3, .gradient_in = 0, .gradient = true});
  });
}

// ---- ClippedSwiglu ----

template <int kArg>
std::string GroupCount(Values values, Product product) {
  if (!values[kArg].given()) return "";
  const int64_t count = values[kArg].tensor->numel();
  if (product != Product::kAscend950 || (count >= 1 && count <= 8192)) return "";
  return fmt::format("must have 1 to 8192 entries, got {}", count);
}
std::string LimitOnNewest(Values values, Product product) {
  return product != Product::kAscend950 || values[4].real > 0 ? "" : fmt::format("must be positive, got {}", values[4].real);
}

constexpr char kGroups[] = "numbers of rows; rows behind their sum give zeros; null means all rows count";

void DescribeClipped(Table* table) {
  Describe(table, "groupIndexOptional", kGroups);
  Describe(table, "dim", "from this axis on all dims together are cut into two halves");
  Describe(table, "alpha", "steepness of the gate");
  Describe(table, "limit", "A is at most this, B within its two signs");
  Describe(table, "bias", "added to B");
  Describe(table, "interleaved", "A and B take turns; else A is the first half");
}

Operator MakeClipped(const Entry& entry) {
  const bool has_mode = entry.args.size() == 9;
  Table table = TableOf(entry, "gated", has_mode ? "A unit gated by silu with clipped halves, in two forms."
                                                 : "A unit gated by silu with clipped halves.",
                        {.optional = {"groupIndexOptional"}, .outputs = {"out"}});
  table.formulas = {"a = min(A, limit), b = B within [-limit, limit], out = a * sigmoid(alpha * a) * (b + bias)"};
  if (has_mode) table.formulas.push_back("clampMode 1: out = min(A * sigmoid(A), limit) * b");
  table.result_pointers = ResultPointers::kAfterNullChecks;
  Describe(&table, "x", "both halves");
  DescribeClipped(&table);
  if (has_mode) Describe(&table, "clampMode", "which form");
  AddNullRules(&table);
  Add(&table, {Supported(has_mode ? kOnly950 : kNewer), OneDType({"x", "out"}), DTypes("groupIndexOptional", {{{DType::kI64}}}), Nd("x"),
               Nd("groupIndexOptional"), Nd("out"), AcceptIfEmpty({"out"}), Rank("x", 1, 8), Dim("dim", "x")});
  if (has_mode) Add(&table, {OneOf("clampMode", {0, 1})});
  Add(&table, {NotEmpty("x").Code(kShape), EvenAxis("x", "dim").Code(kShape), Halved("out", "x", "dim").Code(kShape),
               Rank("groupIndexOptional", 1, 1).Code(kShape),
               Custom("groupIndexOptional", "must have 1 to 8192 entries on Ascend 950", GroupCount<1>).Code(kShape),
               Custom("limit", "must be positive on Ascend 950", LimitOnNewest).Code(kShape)});
  return Made(std::move(table), [](Values values, PlanBuilder& plan) {
    return PlanUnit(values, plan,
                    {.formula = values.size() == 9 && values[7].integer == 1 ? Formula::kClippedSilu : Formula::kClipped,
                     .x = 0,
                     .dim = 2,
                     .out = static_cast<int>(values.size()) - 1,
                     .groups = 1,
                     .interleaved = values[6].flag,
                     .scalars = {values[3].real, values[4].real, values[5].real}});
  });
}

Operator MakeClippedGrad(const Entry& entry) {
  Table table = TableOf(entry, "gated", "Gradient of the unit gated by silu with clipped halves.",
                        {.optional = {"groupIndexOptional"}, .outputs = {"gradXOut"}});
  table.formulas = {"a = min(A, limit), b = B within [-limit, limit], s = sigmoid(alpha * a)",
                    "dA = gradY * (b + bias) * s * (1 + alpha * a * (1 - s)) where A <= limit, else 0",
                    "dB = gradY * a * s where B lies within, else 0"};
  table.result_pointers = ResultPointers::kAfterNullChecks;
  Describe(&table, "gradY", "gradient of the forward result");
  Describe(&table, "x", "both halves");
  DescribeClipped(&table);
  AddNullRules(&table);
  Add(&table, {Supported(kNewer), OneDType({"gradY", "x", "gradXOut"}), DTypes("groupIndexOptional", {{{DType::kI64}}}), Nd("gradY"),
               Nd("x"), Nd("groupIndexOptional"), Nd("gradXOut"), AcceptIfEmpty({"gradXOut"}), Rank("x", 1, 8).Code(kShape),
               Dim("dim", "x").Code(kShape), NotEmpty("x").Code(kShape), EvenAxis("x", "dim").Code(kShape),
               Halved("gradY", "x", "dim").Code(kShape), SameShape("gradXOut", "x").Code(kShape),
               Rank("groupIndexOptional", 1, 1).Code(kShape),
               Custom("groupIndexOptional", "must have 1 to 8192 entries on Ascend 950", GroupCount<2>).Code(kShape),
               Require("limit", "limit > 0").Code(kShape)});
  return Made(std::move(table), [](Values values, PlanBuilder& plan) {
    return PlanUnit(values, plan,
                    {.formula = Formula::kClippedBackward,
                     .x = 1,
                     .dim = 3,
                     .out = 8,
                     .gradient_in = 0,
                     .groups = 2,
                     .gradient = true,
                     .interleaved = values[7].flag,
                     .scalars = {values[4].real, values[5].real, values[6].real}});
  });
}

// ---- SwigluGroup ----

std::string OneWeightPerRow(Values values, Product) {
  if (!values[1].given()) return "";
  const Tensor& x = *values[0].tensor;
  const int64_t rows = x.numel() / x.dims[x.rank() - 1];
  const Tensor& weight = *values[1].tensor;
  return weight.numel() == rows ? "" : fmt::format("must have an element for each of {} rows, got shape {}", rows, ToString(weight.dims));
}
std::string OffOrPositive(Values values, Product) {
  const double limit = values[3].real;
  return limit == -1 || limit > 0 ? "" : fmt::format("must be -1 or positive, got {}", limit);
}
std::string SomeGroups(Values values, Product) {
  return !values[2].given() || !values[2].tensor->empty() ? "" : "must have entries, got none";
}

Operator MakeSwigluGroup(const Entry& entry) {
  Table table = TableOf(entry, "gated", "The unit gated by silu over the last axis, with clipping, a weight for each row and groups of rows.",
                        {.optional = {"weightOptional", "groupIndexOptional"}, .outputs = {"out"}});
  table.formulas = {"a = min(A, clampLimit), b = B within [-clampLimit, clampLimit]; out = a * sigmoid(a) * b * weight[row]"};
  table.result_pointers = ResultPointers::kAfterNullChecks;
  Describe(&table, "x", "both halves, A and B, of each row");
  Describe(&table, "weightOptional", "factor of each row; null means ones");
  Describe(&table, "groupIndexOptional", kGroups);
  Describe(&table, "clampLimit", "-1: nothing is clipped");
  AddNullRules(&table);
  Add(&table, {Supported(kOnly950), OneDType({"x", "out"}), DTypes("weightOptional", {{{DType::kF32}}}),
               DTypes("groupIndexOptional", {{{DType::kI64}}}), Nd("x"), Nd("weightOptional"), Nd("groupIndexOptional"), Nd("out"),
               AcceptIfEmpty({"out"}), Rank("x", 1, 8).Code(kShape), NotEmpty("x").Code(kShape), EvenAxis("x").Code(kShape),
               Custom("weightOptional", "must have an element for each row", OneWeightPerRow).Code(kShape),
               Rank("groupIndexOptional", 1, 1).Code(kShape), Custom("groupIndexOptional", "must have entries", SomeGroups).Code(kShape),
               Custom("clampLimit", "must be -1 or positive", OffOrPositive).Code(kShape), Halved("out", "x").Code(kShape)});
  return Made(std::move(table), [](Values values, PlanBuilder& plan) {
    return PlanUnit(values, plan,
                    {.formula = values[3].real == -1 ? Formula::kSwiGluGroup : Formula::kSwiGluGroupClipped,
                     .x = 0,
                     .out = 4,
                     .weight = 1,
                     .groups = 2,
                     .scalars = {values[3].real}});
  });
}

// ---- SituGlu ----

Operator MakeSituGlu(const Entry& entry) {
  const bool gradient = std::string_view(entry.op) == "aclnnSituGluGrad";
  Table table = TableOf(entry, "gated", gradient ? "Gradient of the unit gated by a bent tangent." : "A unit gated by a bent tangent.",
                        {.outputs = {"out"}});
  table.formulas = {"a = beta * tanh(gate / beta) * sigmoid(gate), gate and up are the two halves",
                    "u = linearBeta > 0 ? linearBeta * tanh(up / linearBeta) : up"};
  if (gradient) {
    table.formulas.push_back("d gate = gradY * u * sigmoid(gate) * (1 - t^2 + beta * t * sigmoid(-gate)), t = tanh(gate / beta)");
    table.formulas.push_back("d up = gradY * a * (linearBeta > 0 ? 1 - tanh(up / linearBeta)^2 : 1)");
    Describe(&table, "gradY", "gradient of the forward result");
  } else {
    table.formulas.push_back("out = a * u");
  }
  table.result_pointers = ResultPointers::kAfterNullChecks;
  Describe(&table, "x", "both halves");
  Describe(&table, "dim", "from this axis on all dims together are cut into two halves");
  Describe(&table, "beta", "bend of the gate");
  Describe(&table, "linearBeta", "bend of the other half; none when it is not positive");
  Describe(&table, "activateLeft", "the gate is the first half; else the second");
  AddNullRules(&table);
  Add(&table, {Supported(kNewer)});
  if (gradient) Add(&table, {OneDType({"gradY", "x", "out"}), Nd("gradY")});
  else Add(&table, {OneDType({"x", "out"})});
  Add(&table, {Nd("x"), Nd("out"), Rank("x", 1, 8), Dim("dim", "x"), EvenAxis("x", "dim")});
  if (gradient) Add(&table, {Halved("gradY", "x", "dim"), SameShape("out", "x")});
  else Add(&table, {Halved("out", "x", "dim")});
  return Made(std::move(table), [](Values values, PlanBuilder& plan) {
    const bool backward = values.size() == 7;
    const int x = backward ? 1 : 0;
    const double linear_beta = values[x + 3].real;
    const bool twice = linear_beta > 0;
    return PlanUnit(values, plan,
                    {.formula = backward ? (twice ? Formula::kSituTwiceBackward : Formula::kSituBackward)
                                         : (twice ? Formula::kSituTwice : Formula::kSitu),
                     .x = x,
                     .dim = x + 1,
                     .out = x + 5,
                     .gradient_in = backward ? 0 : -1,
                     .gradient = backward,
                     .swapped = !values[x + 4].flag,
                     .scalars = {values[x + 2].real, linear_beta}});
  });
}

// ---- GeluMul, FatreluMul ----

bool IsTanh(const Value& approximate) { return approximate.given() && std::strcmp(approximate.text, "tanh") == 0; }

std::string NoneOrTanh(Values values, Product) {
  if (!values[1].given() || IsTanh(values[1]) || std::strcmp(values[1].text, "none") == 0) return "";
  return fmt::format("must be \"none\" or \"tanh\", got \"{:.20}\"", values[1].text);
}

Operator MakeGeluMul(const Entry& entry) {
  Table table = TableOf(entry, "gated", "gelu of the first half of the last axis times the second.",
                        {.optional = {"approximateOptional"}, .outputs = {"out"}});
  table.formulas = {"out = gelu(A) * B"};
  table.result_pointers = ResultPointers::kAfterNullChecks;
  Describe(&table, "input", "both halves, A and B, of the last axis");
  Describe(&table, "approximateOptional", "gelu by the error function (\"none\", or null) or the hyperbolic tangent (\"tanh\")");
  AddNullRules(&table);
  Add(&table, {Supported(kNewer), OneDType({"input", "out"}), Nd("input"), Nd("out"), AcceptIfEmpty({"out"}),
               Custom("approximateOptional", "must be \"none\" or \"tanh\"", NoneOrTanh).Code(kShape), Rank("input", 2, 8).Code(kShape),
               NotEmpty("input").Code(kShape), EvenAxis("input").Code(kShape), Halved("out", "input").Code(kShape)});
  return Made(std::move(table), [](Values values, PlanBuilder& plan) {
    return PlanUnit(values, plan,
                    {.formula = IsTanh(values[1]) ? Formula::kGeGluTanh : Formula::kGeGluErf, .x = 0, .out = 2, .swapped = true});
  });
}

Operator MakeFatreluMul(const Entry& entry) {
  Table table = TableOf(entry, "gated", "The first half of the last axis, where it is above a threshold, times the second.",
                        {.outputs = {"out"}});
  table.formulas = {"out = (A > threshold ? A : 0) * B"};
  table.notes = {"The comparison is strict: A equal to the threshold gives 0."};
  table.result_pointers = ResultPointers::kAfterNullChecks;
  Describe(&table, "input", "both halves, A and B, of the last axis");
  Describe(&table, "threshold", "a single number");
  AddNullRules(&table);
  Add(&table, {Supported(kNewer), OneDType({"input", "threshold", "out"}), Nd("input"), Nd("threshold"), Nd("out"), AcceptIfEmpty({"out"}),
               Rank("input", 2, 8).Code(kShape), NotEmpty("input").Code(kShape), EvenAxis("input").Code(kShape),
               NumelIs("threshold", "1").Code(kShape), Halved("out", "input").Code(kShape)});
  return Made(std::move(table), [](Values values, PlanBuilder& plan) {
    return PlanUnit(values, plan, {.formula = Formula::kFatrelu, .x = 0, .out = 2, .threshold = 1});
  });
}

}  // namespace

void DeclareGated(Declarations& declarations) {
  declarations.Add("aclnnGlu", MakeGlu);
  declarations.Add("aclnnGluBackward", MakeGluBackward);
  for (const char* op : {"aclnnGeGlu", "aclnnGeGluV3"}) declarations.Add(op, MakeGeGlu);
  for (const char* op : {"aclnnGeGluBackward", "aclnnGeGluV3Backward"}) declarations.Add(op, MakeGeGluBackward);
  declarations.Add("aclnnSwiGlu", MakeSwiGlu);
  declarations.Add("aclnnSwiGluGrad", MakeSwiGluGrad);
  for (const char* op : {"aclnnClippedSwiglu", "aclnnClippedSwigluV2"}) declarations.Add(op, MakeClipped);
  declarations.Add("aclnnClippedSwigluGrad", MakeClippedGrad);
  declarations.Add("aclnnSwigluGroup", MakeSwigluGroup);
  for (const char* op : {"aclnnSituGlu", "aclnnSituGluGrad"}) declarations.Add(op, MakeSituGlu);
  declarations.Add("aclnnGeluMul", MakeGeluMul);
  declarations.Add("aclnnFatreluMul", MakeFatreluMul);
}

}  // namespace anyacl
