// SPDX-License-Identifier: Apache-2.0
// Copyright The AnyACL Authors
//
// Which experts a token goes to.
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

constexpr DType F32 = DType::kF32;

int64_t Last(const Dims& dims) { return dims[dims.rank() - 1]; }

// The dims of x with another last one, or without it.
Dims WithLast(Dims dims, int64_t last) {
  dims[dims.rank() - 1] = last;
  return dims;
}
Dims Leading(Dims dims) {
  dims.resize(dims.rank() - 1);
  return dims;
}

// ---- MoeGatingTopKSoftmax ----

struct Top {
  enum { kX, kFinished, kCount };
};
struct First {
  enum { kX, kFinished, kCount, kY, kExpert, kPlace };
};
struct Second {
  enum { kX, kFinished, kCount, kRenorm, kFlag, kY, kExpert, kSoftmax };
};

std::string WrongCount(Values v, Product) {
  const int64_t k = v[Top::kCount].integer, experts = Last(v[Top::kX].tensor->dims);
  return k >= 1 && k <= experts ? "" : fmt::format("must be 1 to the {} experts, got {}", experts, k);
}
template <int kArg>
std::string HasLeadingDims(Values v, Product) {
  if (!v[kArg].given()) return "";
  const Dims wanted = Leading(v[Top::kX].tensor->dims), &got = v[kArg].tensor->dims;
  return got == wanted ? "" : fmt::format("must have the leading dims {} of x, got {}", ToString(wanted), ToString(got));
}
template <int kArg>
std::string HasChosen(Values v, Product) {
  const Dims wanted = WithLast(v[Top::kX].tensor->dims, v[Top::kCount].integer), &got = v[kArg].tensor->dims;
  return got == wanted ? "" : fmt::format("must have shape {}, got {}", ToString(wanted), ToString(got));
}
constexpr char kChosen[] = "must have the leading dims of x, then k";

// Scratch memory or outputs of a gating step, once its inputs are read.
struct Targets {
  int y, expert, place, scores;  // arguments; -1: none
};
GatingParams& BeginGating(PlanBuilder& plan, Dense& dense, const Dims& x, const Targets& to, const Operand& scores) {
  auto& params = plan.MakeParams<GatingParams>();
  params.experts = Last(x);
  params.rows = Numel(x) / params.experts;
  dense.Bind(Top::kX, params.x);
  dense.BindOut(to.y, params.y);
  if (to.scores >= 0) {
    dense.BindOut(to.scores, params.scores);
  } else {
    plan.Bind(scores, reinterpret_cast<void*&>(params.scores));
  }
  return params;
}

// INT32 outputs of a kernel.
struct Whole {
  int arg;
  Operand dense;
};
Whole WholeOutput(PlanBuilder& plan, int arg) { return {arg, pointwise::DenseOutput(plan, arg, 0, DType::kI32)}; }
Status Finish(PlanBuilder& plan, const Whole& whole) { return pointwise::FinishOutput(plan, whole.arg, 0, whole.dense); }

Status PlanTop(Values v, PlanBuilder& plan, const Targets& to, Gating gating) {
  const Dims& x = v[Top::kX].tensor->dims;
  Dense dense(plan, v, F32);
  ANYACL_RETURN_IF_ERROR(dense.Read(Top::kX));
  ANYACL_RETURN_IF_ERROR(dense.Read(Top::kFinished, DType::kBool));
  dense.Write(to.y);
  if (to.scores >= 0) dense.Write(to.scores);
  const Whole expert = WholeOutput(plan, to.expert);
  const Whole place = to.place >= 0 ? WholeOutput(plan, to.place) : Whole{};
  const Operand scores = to.scores >= 0 ? Operand() : plan.ScratchOperand("soft-max", F32, x);
  GatingParams& params = BeginGating(plan, dense, x, to, scores);
  params.gating = gating;
  params.k = v[Top::kCount].integer;
  dense.Bind(Top::kFinished, params.finished);
  plan.Bind(expert.dense, reinterpret_cast<void*&>(params.expert));
  if (to.place >= 0) plan.Bind(place.dense, reinterpret_cast<void*&>(params.place));
  ANYACL_RETURN_IF_ERROR(plan.ChooseKernel("moe_gating"));
  ANYACL_RETURN_IF_ERROR(dense.Finish());
  ANYACL_RETURN_IF_ERROR(Finish(plan, expert));
  return to.place >= 0 ? Finish(plan, place) : Status();
}

template <int kY, int kExpert>
void AddTopRules(Table* table) {
  Add(table, {Supported(kNewer), DTypes("x", RowsOf(types::kFloat3)), DTypes("finishedOptional", RowsOf(types::kBool)), SameDType("yOut", "x"),
              DTypes("expertIdxOut", RowsOf({DType::kI32})), Rank("x", 2, 3).Code(code::kTiling), NotEmpty("x").Code(code::kTiling),
              Custom("k", "must be 1 to the number of experts", WrongCount).Code(code::kTiling),
              Custom("finishedOptional", "must have the leading dims of x", HasLeadingDims<Top::kFinished>).Code(code::kTiling),
              Custom("yOut", kChosen, HasChosen<kY>).Code(code::kTiling), Custom("expertIdxOut", kChosen, HasChosen<kExpert>).Code(code::kTiling)});
  table->notes = {"The larger number comes first, of equal ones the lower expert; NaN comes before all.",
                  "A row that is finished gets the number of experts for every expert."};
}

Operator MakeTop(const Entry& entry) {
  using A = First;
  Table table = TableOf(entry, "moe_gating", "The k best experts of every token by soft-max.",
                        {.optional = {"finishedOptional"}, .outputs = {"yOut", "expertIdxOut", "rowIdxOut"}});
  table.formulas = {"yOut, expertIdxOut = the k largest of softmax(x); rowIdxOut[r, c] = c * rows + r"};
  AddNullRules(&table);
  AddTopRules<A::kY, A::kExpert>(&table);
  Add(&table, {DTypes("rowIdxOut", RowsOf({DType::kI32})), Custom("rowIdxOut", kChosen, HasChosen<A::kPlace>).Code(code::kTiling)});
  return {.contract = Contract(std::move(table)),
          .plan = [](Values v, PlanBuilder& plan) { return PlanTop(v, plan, {A::kY, A::kExpert, A::kPlace, -1}, Gating::kTopOfSoftmax); },
          .family = "moe"};
}

bool WantsSoftmax(Values v) { return v[Second::kRenorm].integer == 0 && v[Second::kFlag].flag; }

std::string WrongSoftmax(Values v, Product) {
  if (!WantsSoftmax(v)) return "";
  if (!v[Second::kSoftmax].given()) return "must be given when it is asked for with renorm 0, got null";
  const Tensor &got = *v[Second::kSoftmax].tensor, &x = *v[Top::kX].tensor;
  if (got.dtype == F32 && got.dims == x.dims) return "";
  return fmt::format("must be FLOAT in the shape {} of x, got {} {}", ToString(x.dims), Name(got.dtype), ToString(got.dims));
}

Operator MakeTop2(const Entry& entry) {
  using A = Second;
  Table table = TableOf(entry, "moe_gating", "The k best experts of every token by soft-max, of all or of the chosen.",
                        {.optional = {"finishedOptional", "softmaxResultOutOptional"}, .outputs = {"yOut", "expertIdxOut", "softmaxResultOutOptional"}});
  table.formulas = {"renorm 0: yOut, expertIdxOut = the k largest of softmax(x); softmaxResultOut = softmax(x)",
                    "renorm 1: yOut = softmax of the k largest of x"};
  AddNullRules(&table);
  AddTopRules<A::kY, A::kExpert>(&table);
  Add(&table, {OneOf("renorm", {0, 1}).Code(code::kTiling),
               Custom("softmaxResultOutOptional", "must be FLOAT in the shape of x when it is asked for with renorm 0", WrongSoftmax).EvenIfAbsent().Code(code::kTiling)});
  return {.contract = Contract(std::move(table)),
          .plan = [](Values v, PlanBuilder& plan) {
            const Gating gating = v[A::kRenorm].integer == 0 ? Gating::kTopOfSoftmax : Gating::kSoftmaxOfTop;
            return PlanTop(v, plan, {A::kY, A::kExpert, -1, WantsSoftmax(v) ? static_cast<int>(A::kSoftmax) : -1}, gating);
          },
          .family = "moe"};
}

// ---- MoeGatingTopK ----

struct Grouped {
  enum { kX, kBias, kCount, kBestGroups, kGroups, kSelect, kRenorm, kNorm, kOutFlag, kScale, kEps, kY, kExpert, kOut };
};

std::string WrongGroups(Values v, Product) {
  using A = Grouped;
  const int64_t experts = v[A::kX].tensor->dims[1], groups = v[A::kGroups].integer, best = v[A::kBestGroups].integer, k = v[A::kCount].integer;
  if (groups < 1 || experts % groups != 0) return fmt::format("must divide the {} experts, got {}", experts, groups);
  if (v[A::kSelect].integer == 1 && experts / groups < 2) return fmt::format("must leave 2 experts in a group for groupSelectMode 1, got {} for {}", groups, experts);
  if (best < 1 || best > groups) return fmt::format("must be at least kGroup, which is 1 or more, got {} and {}", groups, best);
  if (k < 1 || k > best * (experts / groups)) {
    return fmt::format("must leave k experts in kGroup groups, got k = {} of {} experts in {} of {} groups", k, experts, best, groups);
  }
  return "";
}
std::string WrongBias(Values v, Product) {
  if (!v[Grouped::kBias].given()) return "";
  const Dims wanted = {v[Grouped::kX].tensor->dims[1]}, &got = v[Grouped::kBias].tensor->dims;
  return got == wanted ? "" : fmt::format("must have shape {}, got {}", ToString(wanted), ToString(got));
}
std::string WrongNumbers(Values v, Product) {
  using A = Grouped;
  if (!v[A::kOutFlag].flag) return "";
  if (!v[A::kOut].given()) return "must be given with outFlag, got null";
  const Tensor &got = *v[A::kOut].tensor, &x = *v[A::kX].tensor;
  if (got.dtype == F32 && got.dims == x.dims) return "";
  return fmt::format("must be FLOAT in the shape {} of x, got {} {}", ToString(x.dims), Name(got.dtype), ToString(got.dims));
}

Status PlanGrouped(Values v, PlanBuilder& plan) {
  using A = Grouped;
  const Dims& x = v[A::kX].tensor->dims;
  const int64_t groups = v[A::kGroups].integer;
  const Targets to = {A::kY, A::kExpert, -1, v[A::kOutFlag].flag ? static_cast<int>(A::kOut) : -1};
  Dense dense(plan, v, F32);
  ANYACL_RETURN_IF_ERROR(dense.Read(A::kX));
  ANYACL_RETURN_IF_ERROR(dense.Read(A::kBias));
  dense.Write(A::kY);
  if (to.scores >= 0) dense.Write(to.scores);
  const Whole expert = WholeOutput(plan, A::kExpert);
  const Operand scores = to.scores >= 0 ? Operand() : plan.ScratchOperand("scores", F32, x);
  const Operand by = plan.ScratchOperand("choice", F32, x), group_scores = plan.ScratchOperand("groups", F32, {x[0], groups});
  GatingParams& params = BeginGating(plan, dense, x, to, scores);
  params.gating = Gating::kGrouped;
  params.k = v[A::kCount].integer;
  params.groups = groups;
  params.best_groups = v[A::kBestGroups].integer;
  params.sum_of_two = v[A::kSelect].integer == 1;
  params.sigmoid = v[A::kNorm].integer == 1;
  params.scale = static_cast<float>(v[A::kScale].real);
  params.epsilon = static_cast<float>(v[A::kEps].real);
  dense.Bind(A::kBias, params.bias);
  plan.Bind(by, reinterpret_cast<void*&>(params.chosen_by));
  plan.Bind(group_scores, reinterpret_cast<void*&>(params.group_scores));
  plan.Bind(expert.dense, reinterpret_cast<void*&>(params.expert));
  ANYACL_RETURN_IF_ERROR(plan.ChooseKernel("moe_gating"));
  ANYACL_RETURN_IF_ERROR(dense.Finish());
  return Finish(plan, expert);
}

Operator MakeGrouped(const Entry& entry) {
  Table table = TableOf(entry, "moe_gating", "The k best experts of every token, among those of the best groups.",
                        {.optional = {"biasOptional", "outOut"}, .outputs = {"yOut", "expertIdxOut", "outOut"}});
  table.formulas = {"n = softmax(x) (normType 0) or sigmoid(x) (1); c = n + bias",
                    "a group of experts counts as its largest c (groupSelectMode 0) or its two largest together (1)",
                    "expertIdxOut = the k largest c in the kGroup best groups; y = n of them, in normType 1 divided by sum(y) + eps; yOut = routedScalingFactor * y"};
  table.notes = {"The larger number comes first, of equal ones the lower expert or group; NaN comes before all.", "bias only chooses: yOut is of numbers without it."};
  AddNullRules(&table);
  Add(&table, {Supported(kNewer), DTypes("x", RowsOf(types::kFloat3)), SameDType("biasOptional", "x"), SameDType("yOut", "x"),
               DTypes("expertIdxOut", RowsOf({DType::kI32}))});
  Add(&table, {Rank("x", 2, 2).Code(code::kTiling), NotEmpty("x").Code(code::kTiling), OneOf("groupSelectMode", {0, 1}).Code(code::kTiling),
               OneOf("renorm", {0}).Code(code::kTiling), OneOf("normType", {0, 1}).Code(code::kTiling),
               Custom("groupCount", "must divide the experts into groups of which kGroup hold k", WrongGroups).Code(code::kTiling),
               Custom("biasOptional", "must have an element per expert", WrongBias).Code(code::kTiling),
               Custom("yOut", kChosen, HasChosen<Grouped::kY>).Code(code::kTiling), Custom("expertIdxOut", kChosen, HasChosen<Grouped::kExpert>).Code(code::kTiling),
               Custom("outOut", "must be FLOAT in the shape of x with outFlag", WrongNumbers).EvenIfAbsent().Code(code::kTiling)});
  return {.contract = Contract(std::move(table)), .plan = PlanGrouped, .family = "moe"};
}

}  // namespace

void DeclareGating(Declarations& declarations) {
  declarations.Add("aclnnMoeGatingTopKSoftmax", MakeTop);
  declarations.Add("aclnnMoeGatingTopKSoftmaxV2", MakeTop2);
  declarations.Add("aclnnMoeGatingTopK", MakeGrouped);
}

}  // namespace anyacl::moe
