// SPDX-License-Identifier: Apache-2.0
// Copyright The AnyACL Authors
//
// Rows of tokens in the order of their experts.
#include <fmt/format.h>

#include <algorithm>

#include "core/codes.h"
#include "ops/dense.h"
#include "ops/moe/families.h"
#include "ops/moe/moe.h"
#include "ops/order/add_select.h"
#include "ops/pointwise/pass.h"
#include "ops/table.h"

namespace anyacl {

void DeclareMoe(Declarations& declarations) {
  moe::DeclareGating(declarations);
  moe::DeclareRouting(declarations);
  moe::DeclareCombining(declarations);
}

}  // namespace anyacl

namespace anyacl::moe {
namespace {

using namespace contract;

constexpr DType I32 = DType::kI32, I64 = DType::kI64;

// A step that routes places by their ids, and one that takes the rows.
class Router {
 public:
  explicit Router(PlanBuilder& plan) : plan_(plan) {}

  // Sorts the places of `ids`, an integer argument, and begins the step.
  Status Begin(int ids, RouteParams facts) {
    ANYACL_RETURN_IF_ERROR(Flat(ids, &ids_));
    order_ = plan_.ScratchOperand("order", I64, ids_.dims);
    ANYACL_RETURN_IF_ERROR(order::AddSelect(plan_, {.count = Numel(ids_.dims), .pick = order::Pick::kFirst}, ids_, nullptr, &order_));
    facts_ = facts;
    facts_.places = Numel(ids_.dims);
    source_ = plan_.ScratchOperand("rows", I64, {facts.kept});
    return {};
  }
  Status RowIds(int arg) { return Flat(arg, &row_ids_); }

  // Outputs of the step.
  void Rank(int arg) { outputs_[0] = {arg, pointwise::DenseOutput(plan_, arg, 0, I32)}; }
  void SortedIds(int arg) { outputs_[1] = {arg, pointwise::DenseOutput(plan_, arg, 0, I32)}; }
  void Counts(int arg) { outputs_[2] = {arg, pointwise::DenseOutput(plan_, arg, 0, I32)}; }

  Status Run() {
    auto& params = plan_.MakeParams<RouteParams>();
    params = facts_;
    plan_.Bind(ids_, reinterpret_cast<const void*&>(params.ids));
    plan_.Bind(order_, reinterpret_cast<const void*&>(params.order));
    if (params.routing == Routing::kByRowIds) plan_.Bind(row_ids_, reinterpret_cast<const void*&>(params.row_ids));
    int32_t** const members[] = {&params.rank, &params.sorted_ids, &params.counts};
    for (int i = 0; i < 3; ++i) {
      if (outputs_[i].arg >= 0) plan_.Bind(outputs_[i].dense, reinterpret_cast<void*&>(*members[i]));
    }
    plan_.Bind(source_, reinterpret_cast<void*&>(params.source));
    ANYACL_RETURN_IF_ERROR(plan_.ChooseKernel("moe_route"));
    for (const Output& output : outputs_) {
      if (output.arg >= 0) ANYACL_RETURN_IF_ERROR(pointwise::FinishOutput(plan_, output.arg, 0, output.dense));
    }
    return {};
  }

  Status TakeRows(int x, int out) {
    const Operand tensor = plan_.TensorOperand(x);
    if (Numel(plan_.TensorOperand(out).dims) == 0) return {};
    Operand rows;
    ANYACL_RETURN_IF_ERROR(pointwise::DenseInput(plan_, x, 0, tensor.dtype, &rows));
    const Operand to = pointwise::DenseOutput(plan_, out, 0, tensor.dtype);
    auto& params = plan_.MakeParams<RowsParams>();
    params.rows = facts_.kept;
    params.row_bytes = tensor.dims[1] * static_cast<int64_t>(SizeOf(tensor.dtype));
    plan_.Bind(rows, params.x);
    plan_.Bind(source_, reinterpret_cast<const void*&>(params.source));
    plan_.Bind(to, params.out);
    ANYACL_RETURN_IF_ERROR(plan_.ChooseKernel("moe_rows"));
    return pointwise::FinishOutput(plan_, out, 0, to);
  }

 private:
  struct Output {
    int arg = -1;
    Operand dense = {};
  };
  Status Flat(int arg, Operand* flat) {
    ANYACL_RETURN_IF_ERROR(pointwise::DenseInput(plan_, arg, 0, I64, flat));
    flat->dims = {Numel(flat->dims)};
    flat->strides = {1};
    return {};
  }

  PlanBuilder& plan_;
  RouteParams facts_ = {};
  Operand ids_, order_, row_ids_, source_;
  Output outputs_[3];
};

int64_t ColumnsOf(const Dims& ids) { return ids.rank() == 2 ? ids[1] : 1; }

template <int kArg>
std::string HasShape(Values v, const Dims& wanted) {
  const Dims& got = v[kArg].tensor->dims;
  return got == wanted ? "" : fmt::format("must have shape {}, got {}", ToString(wanted), ToString(got));
}

// ---- MoeInitRouting ----

struct Init {
  enum { kX, kRow, kExpert, kActive, kExpandedX, kExpandedRow, kExpandedExpert };
};

int64_t KeptRows(Values v) {
  const Dims& ids = v[Init::kExpert].tensor->dims;
  return std::min(v[Init::kActive].integer, ids[0]) * ids[1];
}
template <int kArg>
std::string IsFlat(Values v, Product) {
  return HasShape<kArg>(v, {v[Init::kExpert].tensor->numel()});
}

Status PlanInit(Values v, PlanBuilder& plan) {
  using A = Init;
  const Dims& ids = v[A::kExpert].tensor->dims;
  if (Numel(ids) == 0) return {};
  Router router(plan);
  ANYACL_RETURN_IF_ERROR(router.Begin(A::kExpert, {.routing = Routing::kByRowIds, .k = ids[1], .rows = ids[0], .kept = KeptRows(v)}));
  ANYACL_RETURN_IF_ERROR(router.RowIds(A::kRow));
  router.Rank(A::kExpandedRow);
  router.SortedIds(A::kExpandedExpert);
  ANYACL_RETURN_IF_ERROR(router.Run());
  return router.TakeRows(A::kX, A::kExpandedX);
}

Operator MakeInit(const Entry& entry) {
  using A = Init;
  Table table = TableOf(entry, "moe_route", "Rows of tokens in the order of their experts.", {.outputs = {"expandedXOut", "expandedRowIdxOut", "expandedExpertIdxOut"}});
  table.formulas = {"order = stable sort of expertIdx, row by row; expandedExpertIdxOut[i] = expertIdx[order[i]]",
                    "r = rowIdx[order[i]]: expandedRowIdxOut[r] = i, expandedXOut[i] = x[r mod rows]"};
  AddNullRules(&table);
  Add(&table, {Supported(kNewer), DTypes("x", RowsOf(types::kFloat3)), SameDType("expandedXOut", "x")});
  for (const char* arg : {"rowIdx", "expertIdx", "expandedRowIdxOut", "expandedExpertIdxOut"}) Add(&table, {DTypes(arg, RowsOf({I32}))});
  Add(&table, {Rank("x", 2, 2).Code(code::kTiling), Rank("expertIdx", 2, 2).Code(code::kTiling), SameShape("rowIdx", "expertIdx").Code(code::kTiling),
               Custom("expertIdx", "must have the rows of x",
                      [](Values v, Product) -> std::string {
                        const Dims &x = v[A::kX].tensor->dims, &ids = v[A::kExpert].tensor->dims;
                        return x[0] == ids[0] ? "" : fmt::format("must have the {} rows of x, got {}", x[0], ToString(ids));
                      }).Code(code::kTiling),
               Require("activeNum", "activeNum >= 0").Code(code::kTiling),
               Custom("expandedXOut", "must have shape [min(activeNum, rows) * k, width]",
                      [](Values v, Product) { return HasShape<A::kExpandedX>(v, {KeptRows(v), v[A::kX].tensor->dims[1]}); }).Code(code::kTiling),
               Custom("expandedRowIdxOut", "must have as many elements as expertIdx", IsFlat<A::kExpandedRow>).Code(code::kTiling),
               Custom("expandedExpertIdxOut", "must have as many elements as expertIdx", IsFlat<A::kExpandedExpert>).Code(code::kTiling)});
  return {.contract = Contract(std::move(table)), .plan = PlanInit, .family = "moe"};
}

// ---- MoeInitRoutingV2 ----

struct Init2 {
  enum { kX, kExpert, kActive, kCapacity, kExperts, kMode, kCountFlag, kBeforeFlag, kExpandedX, kExpandedRow, kCounts, kBefore };
};

int64_t Places2(Values v) { return v[Init2::kExpert].tensor->numel(); }
bool IsPadded(Values v) { return v[Init2::kMode].integer == 1; }
bool WantsCounts(Values v) { return !IsPadded(v) && v[Init2::kCountFlag].integer > 0; }
bool WantsBefore(Values v) { return IsPadded(v) && v[Init2::kBeforeFlag].flag; }
int64_t Kept2(Values v) {
  const int64_t active = v[Init2::kActive].integer, places = Places2(v);
  if (IsPadded(v)) return v[Init2::kExperts].integer * v[Init2::kCapacity].integer;
  return active > 0 ? std::min(places, active) : places;
}

std::string WrongModes(Values v, Product) {
  using A = Init2;
  const int64_t rows = v[A::kX].tensor->dims[0], experts = v[A::kExperts].integer, capacity = v[A::kCapacity].integer;
  if (v[A::kActive].integer < 0 || capacity < 0 || experts < 0) {
    return fmt::format("must not be negative, as expertCapacity and expertNum, got {}, {} and {}", v[A::kActive].integer, capacity, experts);
  }
  if (IsPadded(v) && (experts == 0 || capacity == 0 || capacity > rows)) {
    return fmt::format("needs expertNum and, up to {} rows, expertCapacity above 0 for dropPadMode 1, got {} and {}", rows, experts, capacity);
  }
  int64_t all = 0;
  if (IsPadded(v) && (__builtin_mul_overflow(experts, capacity, &all) || all > INT32_MAX)) {
    return fmt::format("needs expertNum * expertCapacity below 2^31, got {} and {}", experts, capacity);
  }
  return WantsCounts(v) && experts == 0 ? "needs expertNum above 0 for counts of experts, got 0" : "";
}
std::string WrongExpanded(Values v, Product) {
  using A = Init2;
  const int64_t width = v[A::kX].tensor->dims[1];
  return HasShape<A::kExpandedX>(v, IsPadded(v) ? Dims{v[A::kExperts].integer, v[A::kCapacity].integer, width} : Dims{Kept2(v), width});
}
template <int kArg, bool (*kWanted)(Values)>
std::string WrongCounts(Values v, Product) {
  if (!kWanted(v)) return "";
  if (!v[kArg].given()) return "must be given when it is asked for, got null";
  if (v[kArg].tensor->dtype != I32) return "must be INT32, got " + Name(v[kArg].tensor->dtype);
  return HasShape<kArg>(v, {v[Init2::kExperts].integer});
}

Status PlanInit2(Values v, PlanBuilder& plan) {
  using A = Init2;
  const Dims& ids = v[A::kExpert].tensor->dims;
  if (Numel(ids) == 0) {
    for (const auto& [wanted, arg] : {std::pair<bool, int>{WantsCounts(v), A::kCounts}, {WantsBefore(v), A::kBefore}, {IsPadded(v), A::kExpandedX}}) {
      if (wanted) ANYACL_RETURN_IF_ERROR(FillOutput(plan, arg, 0));
    }
    return {};
  }
  Router router(plan);
  RouteParams facts = {.routing = IsPadded(v) ? Routing::kCapacity : Routing::kByPlaces, .k = ids[1], .rows = ids[0], .kept = Kept2(v)};
  facts.experts = v[A::kExperts].integer;
  facts.capacity = v[A::kCapacity].integer;
  facts.cumulative = WantsCounts(v) && v[A::kCountFlag].integer == 1;
  ANYACL_RETURN_IF_ERROR(router.Begin(A::kExpert, facts));
  router.Rank(A::kExpandedRow);
  if (WantsCounts(v)) router.Counts(A::kCounts);
  if (WantsBefore(v)) router.Counts(A::kBefore);
  ANYACL_RETURN_IF_ERROR(router.Run());
  return router.TakeRows(A::kX, A::kExpandedX);
}

Operator MakeInit2(const Entry& entry) {
  using A = Init2;
  Table table = TableOf(entry, "moe_route", "Rows of tokens in the order of their experts, or in rooms of one size for every expert.",
                        {.optional = {"expertTokensCountOrCumsumOutOptional", "expertTokensBeforeCapacityOutOptional"},
                         .outputs = {"expandedXOut", "expandedRowIdxOut", "expertTokensCountOrCumsumOutOptional", "expertTokensBeforeCapacityOutOptional"}});
  table.formulas = {"p = place in the stable order by experts of place f, the column f % K of row f / K",
                    "dropPadMode 0: expandedRowIdxOut[f] = p, expandedXOut[p] = x[f / K] for p < activeNum (0: all)",
                    "dropPadMode 1: the c-th place of expert e goes to (e, c) if c < expertCapacity, else expandedRowIdxOut[f] = -1; rooms that stay empty hold 0"};
  table.notes = {"Counts are of dropPadMode 0 (1: sums up to each expert, 2: of each), counts before dropping of dropPadMode 1.",
                 "Experts outside [0, expertNum) are sorted like others and not counted."};
  AddNullRules(&table);
  Add(&table, {Supported(kNewer), DTypes("x", RowsOf(types::kFloat3)), SameDType("expandedXOut", "x"), DTypes("expertIdx", RowsOf({I32})),
               DTypes("expandedRowIdxOut", RowsOf({I32})), Rank("x", 2, 2).Code(code::kTiling), Rank("expertIdx", 2, 2).Code(code::kTiling),
               Custom("expertIdx", "must have the rows of x",
                      [](Values v, Product) -> std::string {
                        const Dims &x = v[A::kX].tensor->dims, &ids = v[A::kExpert].tensor->dims;
                        return x[0] == ids[0] ? "" : fmt::format("must have the {} rows of x, got {}", x[0], ToString(ids));
                      }).Code(code::kTiling),
               OneOf("dropPadModeOptional", {0, 1}).Code(code::kTiling), OneOf("expertTokensCountOrCumsumFlagOptional", {0, 1, 2}).Code(code::kTiling),
               Custom("activeNumOptional", "must not be negative; expertNum and expertCapacity must fit dropPadMode", WrongModes).Code(code::kTiling),
               Custom("expandedXOut", "must have a row per place that is kept, or [expertNum, expertCapacity, width]", WrongExpanded).Code(code::kTiling),
               Custom("expandedRowIdxOut", "must have as many elements as expertIdx",
                      [](Values v, Product) { return HasShape<A::kExpandedRow>(v, {Places2(v)}); }).Code(code::kTiling),
               Custom("expertTokensCountOrCumsumOutOptional", "must be INT32 [expertNum] when it is asked for", WrongCounts<A::kCounts, WantsCounts>)
                   .EvenIfAbsent()
                   .Code(code::kTiling),
               Custom("expertTokensBeforeCapacityOutOptional", "must be INT32 [expertNum] when it is asked for", WrongCounts<A::kBefore, WantsBefore>)
                   .EvenIfAbsent()
                   .Code(code::kTiling)});
  return {.contract = Contract(std::move(table)), .plan = PlanInit2, .family = "moe"};
}

// ---- MoeTokenPermute ----

struct Permute {
  enum { kTokens, kIds, kNumber, kPadded, kOut, kSorted };
};

int64_t KeptTokens(Values v) {
  const int64_t places = v[Permute::kIds].tensor->numel(), number = v[Permute::kNumber].integer;
  return number > 0 ? std::min(number, places) : std::max<int64_t>(0, number < -places ? 0 : places + number);
}

Status PlanPermute(Values v, PlanBuilder& plan) {
  using A = Permute;
  const Dims& ids = v[A::kIds].tensor->dims;
  if (Numel(ids) == 0) return {};
  Router router(plan);
  ANYACL_RETURN_IF_ERROR(router.Begin(A::kIds, {.routing = Routing::kByPlaces, .k = ColumnsOf(ids), .rows = ids[0], .kept = KeptTokens(v)}));
  router.Rank(A::kSorted);
  ANYACL_RETURN_IF_ERROR(router.Run());
  return router.TakeRows(A::kTokens, A::kOut);
}

Operator MakePermute(const Entry& entry) {
  using A = Permute;
  Table table = TableOf(entry, "moe_route", "Tokens in the order of their experts.", {.outputs = {"permuteTokensOut", "sortedIndicesOut"}});
  table.formulas = {"sortedIndicesOut[f] = place of f in the stable order of indices; permuteTokensOut[sortedIndicesOut[f]] = tokens[f / K], as far as it has room"};
  table.notes = {"numOutTokens above 0 are kept, or all but so many when it is not."};
  AddNullRules(&table);
  const DTypeSet integers = {I32, I64};
  Add(&table, {Supported(kNewer), DTypes("tokens", RowsOf(types::kFloat3)), DTypes("indices", RowsOf(integers)), SameDType("permuteTokensOut", "tokens"),
               DTypes("sortedIndicesOut", RowsOf({I32})),
               Custom("paddedMode", "must be false", [](Values v, Product) -> std::string { return v[A::kPadded].flag ? "must be false, got true" : ""; }),
               Rank("tokens", 2, 2).Code(code::kTiling), Rank("indices", 1, 2).Code(code::kTiling),
               Custom("indices", "must have the rows of tokens",
                      [](Values v, Product) -> std::string {
                        const Dims &x = v[A::kTokens].tensor->dims, &ids = v[A::kIds].tensor->dims;
                        return x[0] == ids[0] ? "" : fmt::format("must have the {} rows of tokens, got {}", x[0], ToString(ids));
                      }).Code(code::kTiling),
               Custom("permuteTokensOut", "must have a row per token that is kept",
                      [](Values v, Product) { return HasShape<A::kOut>(v, {KeptTokens(v), v[A::kTokens].tensor->dims[1]}); }).Code(code::kTiling),
               Custom("sortedIndicesOut", "must have as many elements as indices",
                      [](Values v, Product) { return HasShape<A::kSorted>(v, {v[A::kIds].tensor->numel()}); }).Code(code::kTiling)});
  return {.contract = Contract(std::move(table)), .plan = PlanPermute, .family = "moe"};
}

}  // namespace

void DeclareRouting(Declarations& declarations) {
  declarations.Add("aclnnMoeInitRouting", MakeInit);
  declarations.Add("aclnnMoeInitRoutingV2", MakeInit2);
  declarations.Add("aclnnMoeTokenPermute", MakePermute);
}

}  // namespace anyacl::moe
