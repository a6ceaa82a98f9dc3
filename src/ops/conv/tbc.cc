// SPDX-License-Identifier: Apache-2.0
// Copyright The AnyACL Authors
//
// Convolution over time of tensors that lie time first, [T, B, C], with weights [K, Cin, Cout]: views of what the family computes.
#include <fmt/format.h>

#include "ops/conv/correlate.h"
#include "ops/conv/families.h"
#include "ops/dense.h"
#include "ops/pointwise/formulas.h"
#include "ops/pointwise/pass.h"
#include "ops/table.h"

namespace anyacl::conv {
namespace {

using namespace contract;

// Where the arguments stand; the gradient's first one is that of the output.
struct Places {
  int x, weight, bias, pad, cube, y;
};
constexpr Places kForward = {0, 1, 2, 3, 5, 4}, kBackward = {1, 2, 3, 4, 5, 0};
enum { kGradInput = 6, kGradWeight, kGradBias };

const Dims& DimsOf(Values v, int arg) { return v[arg].tensor->dims; }

// The axes of a tensor of rank 3 in another order.
Operand InOrder(Operand x, int a, int b, int c) {
  const Dims dims = x.dims, strides = x.strides;
  x.dims = {dims[a], dims[b], dims[c]};
  x.strides = {strides[a], strides[b], strides[c]};
  return x;
}
Operand Image(PlanBuilder& plan, int arg) { return InOrder(plan.TensorOperand(arg), 1, 2, 0); }    // [B, C, T]
Operand Weights(PlanBuilder& plan, int arg) { return InOrder(plan.TensorOperand(arg), 2, 1, 0); }  // [Cout, Cin, K]

Geometry GeometryOf(const Places& p, Values v) {
  const Dims &x = DimsOf(v, p.x), &w = DimsOf(v, p.weight);
  Geometry g;
  g.axes = 1;
  g.n = x[1];
  g.in_channels = w[1];
  g.out_channels = w[2];
  g.in[0] = x[0];
  g.kernel[0] = w[0];
  g.out[0] = DimsOf(v, p.y)[0];
  g.stride[0] = g.dilation[0] = 1;
  g.before[0] = g.after[0] = v[p.pad].integer;
  return g;
}

// ---- rules ----

constexpr int64_t kMost = int64_t{1} << 40;  // beyond it sums would wrap

template <const Places& P>
std::string WrongPad(Values v, Product) {
  return v[P.pad].integer >= 0 && v[P.pad].integer <= kMost ? "" : fmt::format("must not be negative, got {}", v[P.pad].integer);
}
template <const Places& P>
std::string WrongWeight(Values v, Product) {
  const Dims &x = DimsOf(v, P.x), &w = DimsOf(v, P.weight);
  const int64_t tokens = x[0] + 2 * v[P.pad].integer;
  const bool fits = w[0] >= 1 && w[0] <= tokens && w[1] == x[2];
  return fits ? "" : fmt::format("must have 1 to {} taps and {} input channels, got {}", tokens, x[2], ToString(w));
}
template <const Places& P>
std::string WrongBias(Values v, Product) {
  const Dims want = {DimsOf(v, P.weight)[2]}, &got = DimsOf(v, P.bias);
  return got == want ? "" : fmt::format("must have shape {}, got {}", ToString(want), ToString(got));
}
template <const Places& P>
std::string WrongOutput(Values v, Product) {
  const Dims &x = DimsOf(v, P.x), &w = DimsOf(v, P.weight), &got = DimsOf(v, P.y);
  const Dims want = {x[0] + 2 * v[P.pad].integer - w[0] + 1, x[1], w[2]};
  return got == want ? "" : fmt::format("must have shape {}, got {}", ToString(want), ToString(got));
}
template <const Places& P, int kMostType>
std::string WrongCube(Values v, Product) {
  const int64_t type = v[P.cube].integer;
  return type >= 0 && type <= kMostType ? "" : fmt::format("must be 0 to {}, got {}", kMostType, type);
}

// Of both entries.
template <const Places& P>
void AddShapeRules(const Entry& entry, Table* table) {
  const auto name = [&](int arg) { return entry.args[arg].name; };
  Add(table, {Rank(name(P.x), 3, 3), Rank(name(P.weight), 3, 3), Rank(name(P.y), 3, 3), Rank(name(P.bias), 1, 1)});
  for (const int arg : {P.x, P.weight, P.y}) Add(table, {Formats(name(arg), {Format::kND, Format::kNCL})});
  Add(table, {Formats(name(P.bias), {Format::kND}), Custom(name(P.pad), "must not be negative", WrongPad<P>),
              Custom(name(P.weight), "must have no more taps than there are tokens with padding, and the channels of the input", WrongWeight<P>),
              Custom(name(P.bias), "must have one element per output channel", WrongBias<P>),
              Custom(name(P.y), "must have the shape of the convolution", WrongOutput<P>)});
}

// ---- forward ----

Status PlanTbc(Values v, PlanBuilder& plan) {
  const Places& p = kForward;
  const Operand out = Image(plan, p.y), bias = plan.TensorOperand(p.bias);
  if (v[p.y].tensor->empty()) return {};
  plan.RequireApart(p.y);
  Operand of_channels = bias;
  of_channels.dims = {bias.dims[0], 1};
  of_channels.strides = {bias.strides[0], 0};
  if (v[p.x].tensor->empty() || v[p.weight].tensor->empty()) return pointwise::AddCopy(plan, of_channels, out);
  Operand result;
  ANYACL_RETURN_IF_ERROR(Correlate(plan, GeometryOf(p, v), Image(plan, p.x), Weights(plan, p.weight), &result));
  const Operand inputs[] = {result, of_channels};
  const pointwise::ScalarUse alpha[] = {{Scalar::OfFloat(1)}};
  return pointwise::AddPass(plan, pointwise::Formula::kAdd, DType::kF32, inputs, out, alpha);
}

Operator MakeTbc(const Entry& entry) {
  Table table = TableOf(entry, "gemm", "Convolution over time of tensors [T, B, C].");
  table.formulas = {"out[t, b, o] = bias[o] + sum over k, c of self[t + k - pad, b, c] * weight[k, c, o]"};
  table.notes = {"Computed in FLOAT whatever cubeMathType says, rounded once."};
  AddNullRules(&table);
  Add(&table, {Supported(kNewer), DTypes("self", RowsOf(types::kFloat3)), SameDType("weight", "self"), DTypes("bias", RowsOf(types::kFloat3)),
               SameDType("out", "self")});
  AddShapeRules<kForward>(entry, &table);
  Add(&table, {Custom("cubeMathType", "must be 0 to 4", WrongCube<kForward, 4>)});
  return {.contract = Contract(std::move(table)), .plan = PlanTbc, .family = "conv"};
}

// ---- gradients ----

Status PlanTbcBackward(Values v, PlanBuilder& plan) {
  const Places& p = kBackward;
  const Geometry g = GeometryOf(p, v);
  const Operand dy = Image(plan, p.y), x = Image(plan, p.x), w = Weights(plan, p.weight);
  Operand dx, dw, db;
  const bool nothing = v[p.x].tensor->empty() || v[p.weight].tensor->empty();
  if (!nothing) {
    ANYACL_RETURN_IF_ERROR(InputGradient(plan, g, dy, w, &dx));
    ANYACL_RETURN_IF_ERROR(WeightGradient(plan, g, dy, x, &dw));
  }
  ANYACL_RETURN_IF_ERROR(ChannelSums(plan, dy, &db));
  if (!nothing) {
    ANYACL_RETURN_IF_ERROR(pointwise::AddCopy(plan, dx, Image(plan, kGradInput)));
    ANYACL_RETURN_IF_ERROR(pointwise::AddCopy(plan, dw, Weights(plan, kGradWeight)));
  } else if (!v[kGradWeight].tensor->empty()) {
    ANYACL_RETURN_IF_ERROR(FillOutput(plan, kGradWeight, 0));
  }
  return pointwise::AddCopy(plan, db, plan.TensorOperand(kGradBias));
}

Operator MakeTbcBackward(const Entry& entry) {
  Table table = TableOf(entry, "gemm", "Gradients of a convolution over time of tensors [T, B, C]; self is the gradient of its output.");
  table.notes = {"Computed in FLOAT whatever cubeMathType says, rounded once."};
  Describe(&table, "self", "gradient of the convolution's output");
  AddNullRules(&table);
  Add(&table, {Supported(Of({Product::kAscend950, Product::kA3, Product::kA2, Product::kTraining}))});
  for (const char* arg : {"self", "input", "weight", "bias"}) Add(&table, {DTypes(arg, RowsOf(types::kFloat3))});
  Add(&table, {SameDType("gradInput", "input"), SameDType("gradWeight", "weight"), SameDType("gradBias", "bias"), NotEmpty("self")});
  AddShapeRules<kBackward>(entry, &table);
  Add(&table, {SameShape("gradInput", "input"), SameShape("gradWeight", "weight"), SameShape("gradBias", "bias"),
               Formats("gradBias", {Format::kND}), Formats("gradInput", {Format::kND, Format::kNCL}), Formats("gradWeight", {Format::kND, Format::kNCL}),
               Custom("cubeMathType", "must be 0 to 3", WrongCube<kBackward, 3>)});
  return {.contract = Contract(std::move(table)), .plan = PlanTbcBackward, .family = "conv"};
}

}  // namespace

void DeclareTbc(Declarations& declarations) {
  declarations.Add("aclnnConvTbc", MakeTbc);
  declarations.Add("aclnnConvTbcBackward", MakeTbcBackward);
}

}  // namespace anyacl::conv
