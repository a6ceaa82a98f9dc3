// SPDX-License-Identifier: Apache-2.0
// Copyright The AnyACL Authors
//
// Rows of experts back to tokens, and gradients of the way there and back.
#include <fmt/format.h>

#include "core/codes.h"
#include "ops/dense.h"
#include "ops/moe/families.h"
#include "ops/moe/moe.h"
#include "ops/pointwise/pass.h"
#include "ops/table.h"

namespace anyacl::moe {
namespace {

using namespace contract;

constexpr DType F32 = DType::kF32, I32 = DType::kI32, I64 = DType::kI64;

int64_t Last(const Dims& dims) { return dims[dims.rank() - 1]; }

std::string Shaped(const Tensor& t, const Dims& wanted) {
  return t.dims == wanted ? "" : fmt::format("must have shape {}, got {}", ToString(wanted), ToString(t.dims));
}

template <int kArg>
std::string IsFalse(Values v, Product) {
  return v[kArg].flag ? "must be false, got true" : "";
}

// A combination of rows into tokens: the arguments, -1 where there are none.
struct Parts {
  int rows, index, scales, bias, expert, x1, x2, out;
};
Status PlanCombine(Values v, PlanBuilder& plan, const Parts& a, int64_t k, bool by_columns) {
  const Dims& out = v[a.out].tensor->dims;
  if (Numel(out) == 0) return {};
  Dense dense(plan, v, F32);
  const Operand rows = plan.TensorOperand(a.rows);
  ANYACL_RETURN_IF_ERROR(dense.Read(a.rows, rows.dtype));
  ANYACL_RETURN_IF_ERROR(dense.Read(a.index, I64));
  const auto given = [&](int arg) { return arg >= 0 && v[arg].given() && !v[arg].tensor->empty(); };
  for (const int arg : {a.scales, a.bias, a.x1, a.x2}) {
    if (given(arg)) ANYACL_RETURN_IF_ERROR(dense.Read(arg));
  }
  if (given(a.bias)) ANYACL_RETURN_IF_ERROR(dense.Read(a.expert, I64));
  dense.Write(a.out);
  auto& params = plan.MakeParams<CombineParams>();
  params.dtype = rows.dtype;
  params.width = Last(out);
  params.row_count = Numel(rows.dims) / params.width;
  params.tokens = out[0];
  params.k = k;
  params.by_columns = by_columns;
  params.experts = given(a.bias) ? v[a.bias].tensor->dims[0] : 0;
  dense.Bind(a.rows, params.rows);
  dense.Bind(a.index, params.index);
  dense.Bind(a.scales, params.scales);
  dense.Bind(a.bias, params.bias);
  if (given(a.bias)) dense.Bind(a.expert, params.expert);
  dense.Bind(a.x1, params.x1);
  dense.Bind(a.x2, params.x2);
  dense.BindOut(a.out, params.out);
  ANYACL_RETURN_IF_ERROR(plan.ChooseKernel("moe_combine"));
  return dense.Finish();
}

// ---- MoeFinalizeRouting ----

constexpr Parts kFinalize = {.rows = 0, .index = 5, .scales = 4, .bias = 3, .expert = 6, .x1 = 1, .x2 = 2, .out = 7};
constexpr Parts kFinalize2 = {.rows = 0, .index = 1, .scales = 5, .bias = 4, .expert = 6, .x1 = 2, .x2 = 3, .out = 8};
constexpr int kDropPad = 7;  // of V2

bool Given(Values v, int arg) { return v[arg].given() && !v[arg].tensor->empty(); }
int64_t ChosenOf(const Parts& a, Values v) { return v[a.scales].given() ? v[a.scales].tensor->dims[1] : 1; }

template <const Parts& A>
std::string WrongScales(Values v, Product) {
  if (!v[A.scales].given()) return "";
  const Dims &scales = v[A.scales].tensor->dims, &out = v[A.out].tensor->dims;
  return scales.rank() == 2 && scales[0] == out[0] ? "" : fmt::format("must be [{}, k], got {}", out[0], ToString(scales));
}
template <const Parts& A>
std::string WrongIndex(Values v, Product) {
  const int64_t places = v[A.out].tensor->dims[0] * ChosenOf(A, v);
  return Shaped(*v[A.index].tensor, {places});
}
template <const Parts& A>
std::string WrongRows(Values v, Product) {
  const Dims &rows = v[A.rows].tensor->dims, &out = v[A.out].tensor->dims;
  const int64_t mode = A.out == kFinalize2.out ? v[kDropPad].integer : 0;
  const bool padded = mode == 1 || mode == 3;
  const bool fits = rows.rank() == (padded ? 3 : 2) && Last(rows) == out[1] && (padded || rows[0] == v[A.index].tensor->dims[0]);
  if (fits) return "";
  return fmt::format("must be {} of {} columns, got {}", padded ? std::string("[experts, capacity, width]") : fmt::format("{} rows", v[A.index].tensor->dims[0]),
                     out[1], ToString(rows));
}
template <const Parts& A>
std::string WrongBias(Values v, Product) {
  if (!Given(v, A.bias)) return "";
  const Dims &bias = v[A.bias].tensor->dims, &out = v[A.out].tensor->dims;
  if (bias.rank() != 2 || bias[1] != out[1]) return fmt::format("must be [experts, {}], got {}", out[1], ToString(bias));
  return v[A.expert].given() ? "" : "needs the experts of the tokens, got null";
}
template <const Parts& A>
std::string WrongExperts(Values v, Product) {
  if (!v[A.expert].given()) return "";
  return Shaped(*v[A.expert].tensor, {v[A.out].tensor->dims[0], ChosenOf(A, v)});
}
template <const Parts& A, int kArg>
std::string WrongAdded(Values v, Product) {
  return Given(v, kArg) ? Shaped(*v[kArg].tensor, v[A.out].tensor->dims) : "";
}

template <const Parts& A>
Operator MakeFinalize(const Entry& entry, ArgRoles roles) {
  const auto name = [&](int arg) { return entry.args[arg].name; };
  Table table = TableOf(entry, "moe_combine", "Tokens from the rows of their experts.", roles);
  table.formulas = {"out[i] = x1[i] + x2[i] + sum over k of scales[i, k] * (row + bias[expertIdx[i, k]])",
                    "row = expandedX[expandedRowIdx[k * rows + i]], or 0 if that is -1"};
  if (A.out == kFinalize2.out) table.notes = {"dropPadMode 2 and 3 take expandedRowIdx[i * K + k]; 1 and 3 have rows [experts, capacity, width]. Without scales K is 1, its factor too."};
  AddNullRules(&table);
  Add(&table, {Supported(kNewer), DTypes(name(A.rows), RowsOf(types::kFloat3)), DTypes(name(A.index), RowsOf({I32})), DTypes(name(A.expert), RowsOf({I32})),
               DTypes(name(A.scales), RowsOf(types::kFloat3))});
  for (const int arg : {A.x1, A.x2, A.bias, A.out}) Add(&table, {SameDType(name(arg), name(A.rows))});
  if (A.out == kFinalize2.out) Add(&table, {OneOf(name(kDropPad), {0, 1, 2, 3}).Code(code::kTiling)});
  Add(&table, {Rank(name(A.out), 2, 2).Code(code::kTiling), Custom(name(A.scales), "must be [rows, k]", WrongScales<A>).Code(code::kTiling),
               Custom(name(A.index), "must have rows * k elements", WrongIndex<A>).Code(code::kTiling),
               Custom(name(A.rows), "must have a row per index, or [experts, capacity, width]", WrongRows<A>).Code(code::kTiling),
               Custom(name(A.x1), "must have the shape of out", WrongAdded<A, A.x1>).Code(code::kTiling),
               Custom(name(A.x2), "must have the shape of out", WrongAdded<A, A.x2>).Code(code::kTiling),
               Custom(name(A.bias), "must be [experts, width], with the experts of the tokens", WrongBias<A>).Code(code::kTiling),
               Custom(name(A.expert), "must be [rows, k]", WrongExperts<A>).Code(code::kTiling)});
  return {.contract = Contract(std::move(table)),
          .plan =
              [](Values v, PlanBuilder& plan) {
                const bool by_columns = A.out == kFinalize.out || v[kDropPad].integer < 2;
                return PlanCombine(v, plan, A, ChosenOf(A, v), by_columns);
              },
          .family = "moe"};
}

// ---- MoeTokenPermuteGrad, MoeTokenUnpermute ----

struct PermuteGrad {
  enum { kGrad, kIndex, kTop, kPadded, kOut };
};
struct Unpermute {
  enum { kRows, kIndex, kProbs, kPadded, kShape, kOut };
};

Operator MakePermuteGrad(const Entry& entry) {
  using A = PermuteGrad;
  Table table = TableOf(entry, "moe_combine", "Gradient of bringing tokens into the order of their experts.");
  table.formulas = {"out[t] = sum over c < numTopk of permutedOutputGrad[sortedIndices[t * numTopk + c]], of rows that there are"};
  AddNullRules(&table);
  Add(&table, {Supported(kNewer), DTypes("permutedOutputGrad", RowsOf(types::kFloat3)), SameDType("out", "permutedOutputGrad"),
               DTypes("sortedIndices", RowsOf({I32})),
               Custom("paddedMode", "must be false", IsFalse<A::kPadded>),
               Rank("permutedOutputGrad", 2, 2).Code(code::kTiling), Rank("sortedIndices", 1, 1).Code(code::kTiling), Rank("out", 2, 2).Code(code::kTiling),
               Require("numTopk", "numTopk >= 1").Code(code::kTiling),
               Custom("out", "must have a row for numTopk indices and the columns of the gradient",
                      [](Values v, Product) {
                        const Dims& out = v[A::kOut].tensor->dims;
                        const int64_t places = v[A::kIndex].tensor->dims[0], top = v[A::kTop].integer, width = v[A::kGrad].tensor->dims[1];
                        if (places % top == 0 && out == Dims{places / top, width}) return std::string();
                        return fmt::format("must be [{} indices / {}, {}], got {}", places, top, width, ToString(out));
                      }).Code(code::kTiling)});
  return {.contract = Contract(std::move(table)),
          .plan =
              [](Values v, PlanBuilder& plan) {
                const Parts parts = {.rows = A::kGrad, .index = A::kIndex, .scales = -1, .bias = -1, .expert = -1, .x1 = -1, .x2 = -1, .out = A::kOut};
                return PlanCombine(v, plan, parts, v[A::kTop].integer, false);
              },
          .family = "moe"};
}

// Of [T] indices with K = 1, or T * K of them.
std::string WrongTokens(const Dims& tokens, const Tensor& index, const contract::Value& probs, int64_t width) {
  const int64_t places = index.dims[0];
  const int64_t k = probs.given() ? probs.tensor->dims[1] : 1;
  if (probs.given() && (places != Numel(probs.tensor->dims) || k == 0)) return fmt::format("needs an index per entry of probs {}, got {}", ToString(probs.tensor->dims), places);
  const Dims wanted = {probs.given() ? probs.tensor->dims[0] : places, width};
  return tokens == wanted ? "" : fmt::format("must have shape {}, got {}", ToString(wanted), ToString(tokens));
}

Operator MakeUnpermute(const Entry& entry) {
  using A = Unpermute;
  Table table = TableOf(entry, "moe_combine", "Tokens from the rows of their experts, weighted by probabilities.",
                        {.optional = {"probsOptional", "restoreShapeOptional"}});
  table.formulas = {"out[t] = sum over c of probs[t, c] * permutedTokens[sortedIndices[t * K + c]], of rows that there are; without probs K = 1 and its factor is 1"};
  AddNullRules(&table);
  Add(&table, {Supported(kNewer), DTypes("permutedTokens", RowsOf(types::kFloat3)), SameDType("out", "permutedTokens"),
               DTypes("probsOptional", RowsOf(types::kFloat3)), DTypes("sortedIndices", RowsOf({I32})),
               Custom("paddedMode", "must be false", IsFalse<A::kPadded>),
               NotGiven("restoreShapeOptional").OrEmpty(), Rank("permutedTokens", 2, 2).Code(code::kTiling), Rank("sortedIndices", 1, 1).Code(code::kTiling),
               Rank("probsOptional", 2, 2).Code(code::kTiling), Rank("out", 2, 2).Code(code::kTiling),
               Custom("out", "must have a row per row of probs, or per index",
                      [](Values v, Product) {
                        return WrongTokens(v[A::kOut].tensor->dims, *v[A::kIndex].tensor, v[A::kProbs], v[A::kRows].tensor->dims[1]);
                      }).Code(code::kTiling)});
  return {.contract = Contract(std::move(table)),
          .plan =
              [](Values v, PlanBuilder& plan) {
                const Parts parts = {.rows = A::kRows, .index = A::kIndex, .scales = A::kProbs, .bias = -1, .expert = -1, .x1 = -1, .x2 = -1, .out = A::kOut};
                return PlanCombine(v, plan, parts, v[A::kProbs].given() ? v[A::kProbs].tensor->dims[1] : 1, false);
              },
          .family = "moe"};
}

// ---- MoeTokenUnpermuteGrad ----

struct UnpermuteGrad {
  enum { kRows, kGrad, kIndex, kProbs, kPadded, kShape, kRowsGrad, kProbsGrad };
};

Status PlanUnpermuteGrad(Values v, PlanBuilder& plan) {
  using A = UnpermuteGrad;
  const bool probs = v[A::kProbs].given();
  const Dims &rows = v[A::kRows].tensor->dims, &grad = v[A::kGrad].tensor->dims;
  if (Numel(rows) == 0 || Numel(grad) == 0) {
    ANYACL_RETURN_IF_ERROR(FillOutput(plan, A::kRowsGrad, 0));
    return probs ? FillOutput(plan, A::kProbsGrad, 0) : Status();
  }
  Dense dense(plan, v, F32);
  ANYACL_RETURN_IF_ERROR(dense.Read(A::kGrad));
  ANYACL_RETURN_IF_ERROR(dense.Read(A::kIndex, I64));
  if (probs) {
    ANYACL_RETURN_IF_ERROR(dense.Read(A::kRows));
    ANYACL_RETURN_IF_ERROR(dense.Read(A::kProbs));
    dense.Write(A::kProbsGrad);
  }
  dense.Write(A::kRowsGrad);
  auto& params = plan.MakeParams<CombineGradParams>();
  params.row_count = rows[0];
  params.width = rows[1];
  params.tokens = grad[0];
  params.k = probs ? v[A::kProbs].tensor->dims[1] : 1;
  dense.Bind(A::kGrad, params.grad);
  dense.Bind(A::kIndex, params.index);
  dense.Bind(A::kRows, params.rows);
  dense.Bind(A::kProbs, params.probs);
  dense.BindOut(A::kRowsGrad, params.rows_grad);
  dense.BindOut(A::kProbsGrad, params.probs_grad);
  ANYACL_RETURN_IF_ERROR(plan.ChooseKernel("moe_combine_grad"));
  return dense.Finish();
}

Operator MakeUnpermuteGrad(const Entry& entry) {
  using A = UnpermuteGrad;
  Table table = TableOf(entry, "moe_combine_grad", "Gradients of tokens from the rows of their experts.",
                        {.optional = {"probsOptional", "restoreShapeOptional", "probsGradOut"}});
  table.formulas = {"s = sortedIndices[t * K + c]: permutedTokensGradOut[s] = probs[t, c] * unpermutedTokensGrad[t]",
                    "probsGradOut[t, c] = sum over the row of permuteTokens[s] * unpermutedTokensGrad[t]"};
  table.notes = {"Rows that no index names get 0. Without probs probsGradOut is not written."};
  AddNullRules(&table);
  Add(&table, {Supported(kNewer), DTypes("permuteTokens", RowsOf(types::kFloat3)), SameDType("unpermutedTokensGrad", "permuteTokens"),
               SameDType("permutedTokensGradOut", "permuteTokens"), DTypes("probsOptional", RowsOf(types::kFloat3)), DTypes("sortedIndices", RowsOf({I32})),
               Custom("paddedMode", "must be false", IsFalse<A::kPadded>),
               NotGiven("restoreShapeOptional").OrEmpty(), Rank("permuteTokens", 2, 2).Code(code::kTiling), Rank("sortedIndices", 1, 1).Code(code::kTiling),
               Rank("probsOptional", 2, 2).Code(code::kTiling), Rank("unpermutedTokensGrad", 2, 2).Code(code::kTiling),
               Custom("unpermutedTokensGrad", "must have a row per row of probs, or per index",
                      [](Values v, Product) {
                        return WrongTokens(v[A::kGrad].tensor->dims, *v[A::kIndex].tensor, v[A::kProbs], v[A::kRows].tensor->dims[1]);
                      }).Code(code::kTiling),
               SameShape("permutedTokensGradOut", "permuteTokens").Code(code::kTiling),
               Custom("probsGradOut", "must be like probs, where they are given",
                      [](Values v, Product) {
                        if (!v[A::kProbs].given()) return std::string();
                        if (!v[A::kProbsGrad].given()) return std::string("must be given with probs, got null");
                        const Tensor &got = *v[A::kProbsGrad].tensor, &probs = *v[A::kProbs].tensor;
                        if (got.dtype == probs.dtype && got.dims == probs.dims) return std::string();
                        return fmt::format("must be {} {} as probs, got {} {}", Name(probs.dtype), ToString(probs.dims), Name(got.dtype), ToString(got.dims));
                      }).EvenIfAbsent().Code(code::kTiling)});
  return {.contract = Contract(std::move(table)), .plan = PlanUnpermuteGrad, .family = "moe"};
}

}  // namespace

void DeclareCombining(Declarations& declarations) {
  declarations.Add("aclnnMoeFinalizeRouting",
                   [](const Entry& e) { return MakeFinalize<kFinalize>(e, {.optional = {"x2Optional"}, .outputs = {"out"}}); });
  declarations.Add("aclnnMoeFinalizeRoutingV2", [](const Entry& e) {
    return MakeFinalize<kFinalize2>(e, {.optional = {"x1Optional", "x2Optional", "biasOptional", "scalesOptional", "expertIdxOptional"}, .outputs = {"out"}});
  });
  declarations.Add("aclnnMoeTokenPermuteGrad", MakePermuteGrad);
  declarations.Add("aclnnMoeTokenUnpermute", MakeUnpermute);
  declarations.Add("aclnnMoeTokenUnpermuteGrad", MakeUnpermuteGrad);
}

}  // namespace anyacl::moe
