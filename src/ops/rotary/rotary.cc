// SPDX-License-Identifier: Apache-2.0
// Copyright The AnyACL Authors
//
// Rotary position embedding: pairs of the last axis are turned by angles that belong to their position.
#include "ops/rotary/rotary.h"

#include <fmt/format.h>

#include <string_view>

#include "core/codes.h"
#include "ops/dense.h"
#include "ops/operators.h"
#include "ops/table.h"

namespace anyacl {
namespace {

using namespace contract;
using rotary::Mode;

constexpr DType F32 = DType::kF32;

int64_t WidthOf(const Dims& dims) { return dims[dims.rank() - 1]; }

// x of rank 4 or 3 (then the first axis is missing), and how cos repeats along it.
rotary::Rows RowsOfTensors(const Dims& x, const Dims& cos, Mode mode) {
  rotary::Rows rows = {.dims = {1, 1, 1}, .steps = {}, .width = WidthOf(x), .mode = mode};
  const int missing = rotary::kOuterAxes + 1 - x.rank();
  int64_t step = 1;
  for (int i = x.rank() - 2; i >= 0; --i) {
    rows.dims[i + missing] = x[i];
    rows.steps[i + missing] = cos[i] == 1 ? 0 : step;
    step *= cos[i];
  }
  return rows;
}

// "" or what is wrong with the width of a rotated axis.
std::string WrongWidth(const Dims& x, Mode mode) {
  const int64_t unit = mode == Mode::kQuarter ? 4 : 2;
  if (WidthOf(x) % unit == 0) return "";
  return fmt::format("must have a last dim that is a multiple of {}, got {}", unit, ToString(x));
}

// ---- RotaryPositionEmbedding and its gradient ----

struct Forward {
  enum { kX, kCos, kSin, kMode, kOut };
};
struct Backward {
  enum { kDy, kCos, kSin, kX, kMode, kDx, kDcos, kDsin };
};

template <int kX, int kMode>
std::string HasWidth(Values v, Product) {
  return WrongWidth(v[kX].tensor->dims, static_cast<Mode>(v[kMode].integer));
}

constexpr char kFactorsFit[] = "must have the last dim of x, and its other dims or 1";
template <int kCos, int kX>
std::string FactorsFit(Values v, Product) {
  const Dims &cos = v[kCos].tensor->dims, &x = v[kX].tensor->dims;
  bool fits = cos.rank() == x.rank() && WidthOf(cos) == WidthOf(x);
  for (int i = 0; fits && i + 1 < x.rank(); ++i) fits = cos[i] == x[i] || cos[i] == 1;
  return fits ? "" : fmt::format("{}, got {} and {}", kFactorsFit, ToString(cos), ToString(x));
}

Status PlanRotation(PlanBuilder& plan, Dense& dense, const rotary::Rows& rows, int x, int cos, int sin, int out) {
  auto& params = plan.MakeParams<rotary::RotaryParams>();
  params.rows = rows;
  dense.Bind(x, params.x);
  dense.Bind(cos, params.cos);
  dense.Bind(sin, params.sin);
  dense.BindOut(out, params.y);
  return plan.ChooseKernel("rotary");
}

// x, cos and sin are the arguments 0 to 2.
Status PlanForward(Values v, PlanBuilder& plan, Mode mode, int out) {
  if (v[0].tensor->empty()) return {};
  Dense dense(plan, v, F32);
  for (const int arg : {0, 1, 2}) ANYACL_RETURN_IF_ERROR(dense.Read(arg));
  dense.Write(out);
  ANYACL_RETURN_IF_ERROR(PlanRotation(plan, dense, RowsOfTensors(v[0].tensor->dims, v[1].tensor->dims, mode), 0, 1, 2, out));
  return dense.Finish();
}

Operator MakeForward(const Entry& entry) {
  using A = Forward;
  Table table = TableOf(entry, "rotary", "Rotary position embedding of a tensor.");
  table.formulas = {"out_a = x_a * cos_a - x_b * sin_a, out_b = x_b * cos_b + x_a * sin_b for pairs (a, b) of the last axis",
                    "mode 0: (d, d + D/2); 1: (2d, 2d + 1); 2: (d, d + D/4) in each half; 3: (2d, 2d + 1) become (d, d + D/2)"};
  AddNullRules(&table);
  Add(&table, {Supported(kNewer), DTypes("x", RowsOf(types::kFloat3)), SameDType("cos", "x"), SameDType("sin", "x"), SameDType("out", "x"),
               OneOf("mode", {0, 1, 2, 3}).Code(code::kTiling), Rank("x", 4, 4).Code(code::kTiling),
               Custom("x", "must have an even last dim, in mode 2 a multiple of 4", HasWidth<A::kX, A::kMode>).Code(code::kTiling),
               SameShape("out", "x").Code(code::kTiling), Custom("cos", kFactorsFit, FactorsFit<A::kCos, A::kX>).Code(code::kTiling),
               SameShape("sin", "cos").Code(code::kTiling)});
  return {.contract = Contract(std::move(table)),
          .plan = [](Values v, PlanBuilder& plan) { return PlanForward(v, plan, static_cast<Mode>(v[A::kMode].integer), A::kOut); },
          .family = "rotary"};
}

Status PlanBackward(Values v, PlanBuilder& plan) {
  using A = Backward;
  const Dims &dy = v[A::kDy].tensor->dims, &cos = v[A::kCos].tensor->dims;
  const bool factors = v[A::kX].given() && !v[A::kX].tensor->empty();
  if (v[A::kDy].tensor->empty()) {
    for (const int arg : {A::kDcos, A::kDsin}) {
      if (v[A::kX].given()) ANYACL_RETURN_IF_ERROR(FillOutput(plan, arg, 0));
    }
    return {};
  }
  Dense dense(plan, v, F32);
  for (const int arg : {A::kDy, A::kCos, A::kSin}) ANYACL_RETURN_IF_ERROR(dense.Read(arg));
  dense.Write(A::kDx);
  if (factors) {
    ANYACL_RETURN_IF_ERROR(dense.Read(A::kX));
    dense.Write(A::kDcos);
    dense.Write(A::kDsin);
  }
  auto& params = plan.MakeParams<rotary::RotaryGradParams>();
  params.rows = RowsOfTensors(dy, cos, static_cast<Mode>(v[A::kMode].integer));
  dense.Bind(A::kDy, params.dy);
  dense.Bind(A::kX, params.x);
  dense.Bind(A::kCos, params.cos);
  dense.Bind(A::kSin, params.sin);
  dense.BindOut(A::kDx, params.dx);
  dense.BindOut(A::kDcos, params.dcos);
  dense.BindOut(A::kDsin, params.dsin);
  ANYACL_RETURN_IF_ERROR(plan.ChooseKernel("rotary_grad"));
  return dense.Finish();
}

Operator MakeBackward(const Entry& entry) {
  using A = Backward;
  Table table = TableOf(entry, "rotary_grad", "Gradients of rotary position embedding.",
                        {.optional = {"xOptional"}, .outputs = {"dxOut", "dcosOut", "dsinOut"}});
  table.formulas = {"dx_a = dy_a * cos_a + dy_b * sin_b, dx_b = dy_b * cos_b - dy_a * sin_a for the pairs of the forward",
                    "dcos_a = sum of dy_a * x_a, dcos_b = sum of dy_b * x_b, dsin_a = -sum of dy_a * x_b, dsin_b = sum of dy_b * x_a"};
  table.notes = {"Without x, or with an empty one, dcosOut and dsinOut are not written."};
  AddNullRules(&table);
  Add(&table, {Supported(kNewer), DTypes("dy", RowsOf(types::kFloat3))});
  for (const char* arg : {"cos", "sin", "xOptional", "dxOut", "dcosOut", "dsinOut"}) Add(&table, {SameDType(arg, "dy")});
  Add(&table, {OneOf("mode", {0, 1, 2, 3}).Code(code::kTiling), Rank("dy", 4, 4).Code(code::kTiling),
               Custom("dy", "must have an even last dim, in mode 2 a multiple of 4", HasWidth<A::kDy, A::kMode>).Code(code::kTiling),
               Custom("cos", kFactorsFit, FactorsFit<A::kCos, A::kDy>).Code(code::kTiling), SameShape("sin", "cos").Code(code::kTiling),
               Custom("xOptional", "must have the shape of dy or no elements",
                      [](Values v, Product) {
                        if (!v[A::kX].given() || v[A::kX].tensor->empty() || v[A::kX].tensor->dims == v[A::kDy].tensor->dims) return std::string();
                        return fmt::format("must have the shape {} of dy or no elements, got {}", ToString(v[A::kDy].tensor->dims),
                                           ToString(v[A::kX].tensor->dims));
                      }).Code(code::kTiling),
               SameShape("dxOut", "dy").Code(code::kTiling), SameShape("dcosOut", "cos").Code(code::kTiling),
               SameShape("dsinOut", "cos").Code(code::kTiling)});
  return {.contract = Contract(std::move(table)), .plan = PlanBackward, .family = "rotary"};
}

// ---- InterleaveRope ----

std::string InterleaveFactors(Values v, Product) {
  const Dims &cos = v[Forward::kCos].tensor->dims, &x = v[Forward::kX].tensor->dims;
  const bool fits = cos.rank() == 4 && cos[0] == x[0] && cos[1] == 1 && (cos[2] == x[2] || cos[2] == 1) && cos[3] == x[3];
  return fits ? "" : fmt::format("must be [B, 1, S or 1, D] for x [B, N, S, D], got {} and {}", ToString(cos), ToString(x));
}

Operator MakeInterleave(const Entry& entry) {
  using A = Forward;
  constexpr int kOut = A::kSin + 1;
  Table table = TableOf(entry, "rotary", "Rotary position embedding of neighbours, which it moves into two halves.");
  table.formulas = {"out_d = x_2d * cos_d - x_(2d+1) * sin_d, out_(d+D/2) = x_(2d+1) * cos_(d+D/2) + x_2d * sin_(d+D/2)"};
  AddNullRules(&table);
  const DTypeSet halves = {DType::kF16, DType::kBF16};
  Add(&table, {Supported(kNewer), DTypes("x", RowsOf(halves)), SameDType("cos", "x"), SameDType("sin", "x"), SameDType("out", "x"),
               Rank("x", 4, 4).Code(code::kTiling),
               Custom("x", "must have an even last dim", [](Values v, Product) { return WrongWidth(v[A::kX].tensor->dims, Mode::kInterleaveHalf); })
                   .Code(code::kTiling),
               Custom("cos", "must be [B, 1, S or 1, D] for x [B, N, S, D]", InterleaveFactors).Code(code::kTiling),
               SameShape("sin", "cos").Code(code::kTiling), SameShape("out", "x").Code(code::kTiling)});
  return {.contract = Contract(std::move(table)),
          .plan = [](Values v, PlanBuilder& plan) { return PlanForward(v, plan, Mode::kInterleaveHalf, kOut); },
          .family = "rotary"};
}

// ---- ApplyRotaryPosEmb ----

struct Apply {
  enum { kQuery, kKey, kCos, kSin, kLayout, kMode };
};
enum class Layout : int64_t { kBsnd = 1, kSbnd, kBnsd, kTnd };

int RankOf(Layout layout) { return layout == Layout::kTnd ? 3 : 4; }
int HeadAxis(Layout layout) { return layout == Layout::kBsnd || layout == Layout::kSbnd ? 2 : 1; }
Layout LayoutOf(Values v) { return static_cast<Layout>(v[Apply::kLayout].integer); }

Mode ApplyMode(Values v) {
  if (v.size() <= Apply::kMode) return Mode::kHalf;
  const std::string_view mode = v[Apply::kMode].text;
  return mode == "interleave" ? Mode::kInterleave : mode == "quarter" ? Mode::kQuarter : Mode::kHalf;
}

std::string WrongModeText(Values v, Product) {
  const std::string_view mode = v[Apply::kMode].text;
  if (mode == "half" || mode == "quarter" || mode == "interleave") return "";
  return fmt::format("must be \"half\", \"quarter\" or \"interleave\", got \"{}\"", mode.substr(0, 32));
}
std::string QueryFits(Values v, Product) {
  const Dims& query = v[Apply::kQuery].tensor->dims;
  const int rank = RankOf(LayoutOf(v));
  if (query.rank() != rank) return fmt::format("must have {} dims in this layout, got {}", rank, ToString(query));
  return WrongWidth(query, ApplyMode(v));
}
// Equal to query but along the axis of the heads.
template <int kArg, bool kSingleHead>
std::string FitsQuery(Values v, Product) {
  Dims wanted = v[Apply::kQuery].tensor->dims;
  const Dims& got = v[kArg].tensor->dims;
  const int axis = HeadAxis(LayoutOf(v));
  const Dims query = wanted;
  if (got.rank() == wanted.rank()) wanted[axis] = kSingleHead ? 1 : got[axis];
  return got == wanted ? "" : fmt::format("must have the dims of queryRef but along the axis {} of the heads, got {} and {}", axis,
                                          ToString(got), ToString(query));
}

Status PlanApply(Values v, PlanBuilder& plan) {
  using A = Apply;
  Dense dense(plan, v, F32);
  for (const int arg : {A::kQuery, A::kKey, A::kCos, A::kSin}) ANYACL_RETURN_IF_ERROR(dense.Read(arg));
  for (const int arg : {A::kQuery, A::kKey}) dense.Write(arg);
  for (const int arg : {A::kQuery, A::kKey}) {
    const rotary::Rows rows = RowsOfTensors(v[arg].tensor->dims, v[A::kCos].tensor->dims, ApplyMode(v));
    ANYACL_RETURN_IF_ERROR(PlanRotation(plan, dense, rows, arg, A::kCos, A::kSin, arg));
  }
  return dense.Finish();
}

Operator MakeApply(const Entry& entry) {
  using A = Apply;
  const bool v2 = entry.args.size() > A::kMode;
  Table table = TableOf(entry, "rotary", "Rotary position embedding of queries and keys, in place.", {.in_out = {"queryRef", "keyRef"}});
  table.formulas = {"y_a = x_a * cos_a - x_b * sin_a, y_b = x_b * cos_b + x_a * sin_b for pairs (a, b) of the last axis"};
  table.notes = {v2 ? "Layouts: 1 BSND, 2 SBND, 3 BNSD, 4 TND. Modes: half (d, d + D/2), interleave (2d, 2d + 1), quarter (d, d + D/4) in each half."
                    : "Layouts: 1 BSND, 2 SBND, 3 BNSD. Pairs are (d, d + D/2)."};
  AddNullRules(&table);
  Add(&table, {Supported(kNewer), DTypes("queryRef", RowsOf(types::kFloat3))});
  for (const char* arg : {"keyRef", "cos", "sin"}) Add(&table, {SameDType(arg, "queryRef")});
  Add(&table, {v2 ? OneOf("layout", {1, 2, 3, 4}) : OneOf("layout", {1, 2, 3})});
  if (v2) Add(&table, {Custom("rotaryMode", "must be \"half\", \"quarter\" or \"interleave\"", WrongModeText)});
  Add(&table, {Custom("queryRef", "must have the rank of the layout and a last dim that the mode can divide", QueryFits),
               NotEmpty("queryRef"), NotEmpty("keyRef"),
               Custom("keyRef", "must have the dims of queryRef but along the axis of the heads", FitsQuery<A::kKey, false>),
               Custom("cos", "must have the dims of queryRef but one head", FitsQuery<A::kCos, true>), SameShape("sin", "cos")});
  return {.contract = Contract(std::move(table)), .plan = PlanApply, .family = "rotary"};
}

// ---- RopeWithSinCosCache ----

struct Cached {
  enum { kPositions, kQuery, kKey, kCache, kSections, kHeadSize, kNeox, kQueryOut, kKeyOut };
};

bool HasSections(Values v) { return v[Cached::kPositions].tensor->rank() == 2; }

std::string PositionsFit(Values v, Product) {
  const Dims &positions = v[Cached::kPositions].tensor->dims, &query = v[Cached::kQuery].tensor->dims;
  if (positions == Dims{query[0]} || positions == Dims{3, query[0]}) return "";
  return fmt::format("must be [T] or [3, T] for T = {} rows of queryIn, got {}", query[0], ToString(positions));
}
std::string SectionsFit(Values v, Product) {
  if (!HasSections(v)) return "";
  const int64_t columns = v[Cached::kCache].tensor->dims[1] / 2;
  if (!v[Cached::kSections].given()) return "must be given with positions of 2 dims, got null";
  const std::vector<int64_t>& sections = v[Cached::kSections].ints->values;
  int64_t rest = columns;
  for (const int64_t s : sections) rest -= s < 0 || s > rest ? rest + 1 : s;
  if (sections.size() == 3 && rest == 0) return "";
  return fmt::format("must be 3 widths that are {} columns together, got [{}]", columns, fmt::join(sections, ", "));
}
template <int kArg>
std::string HasHeads(Values v, Product) {
  const int64_t size = v[Cached::kHeadSize].integer;
  const Dims& dims = v[kArg].tensor->dims;
  return dims[1] % size == 0 ? "" : fmt::format("must have rows of heads of {}, got {}", size, ToString(dims));
}
std::string CacheFits(Values v, Product) {
  const Dims& cache = v[Cached::kCache].tensor->dims;
  const int64_t size = v[Cached::kHeadSize].integer;
  if (cache[1] % 2 == 0 && cache[1] <= size) return "";
  return fmt::format("must have an even number of columns up to headSize = {}, got {}", size, ToString(cache));
}

Status PlanCached(Values v, PlanBuilder& plan) {
  using A = Cached;
  const Dims& cache = v[A::kCache].tensor->dims;
  Dense dense(plan, v, F32);
  ANYACL_RETURN_IF_ERROR(dense.Read(A::kPositions, DType::kI64));
  for (const int arg : {A::kQuery, A::kKey, A::kCache}) ANYACL_RETURN_IF_ERROR(dense.Read(arg));
  for (const int arg : {A::kQueryOut, A::kKeyOut}) dense.Write(arg);
  for (const auto& [in, out] : {std::pair<int, int>{A::kQuery, A::kQueryOut}, {A::kKey, A::kKeyOut}}) {
    const Dims& dims = v[in].tensor->dims;
    if (Numel(dims) == 0) continue;
    auto& params = plan.MakeParams<rotary::RotaryCacheParams>();
    params.tokens = dims[0];
    params.heads = dims[1] / v[A::kHeadSize].integer;
    params.head_size = v[A::kHeadSize].integer;
    params.rotated = cache[1];
    params.cache_rows = cache[0];
    params.halves = v[A::kNeox].flag;
    params.sections = HasSections(v) ? 3 : 1;
    for (int64_t i = 0, end = 0; HasSections(v) && i < 3; ++i) params.section_ends[i] = end += v[A::kSections].ints->values[i];
    dense.Bind(in, params.x);
    dense.Bind(A::kPositions, params.positions);
    dense.Bind(A::kCache, params.cache);
    dense.BindOut(out, params.y);
    ANYACL_RETURN_IF_ERROR(plan.ChooseKernel("rotary_cache"));
  }
  return dense.Finish();
}

Operator MakeCached(const Entry& entry) {
  using A = Cached;
  Table table = TableOf(entry, "rotary_cache", "Rotary position embedding of queries and keys by positions in a table of cosines and sines.",
                        {.optional = {"mropeSection"}});
  table.formulas = {"y_a = x_a * cos_d - x_b * sin_d, y_b = x_b * cos_d + x_a * sin_d for pairs d of the first R elements of every head"};
  table.notes = {"A row of cosSinCache holds R / 2 cosines, then R / 2 sines. Pairs are (d, d + R/2) with isNeoxStyle, else (2d, 2d + 1).",
                 "With positions [3, T] the columns of a section take the position of their row. mropeSection has a meaning only then.",
                 "A token with a position outside the table is copied."};
  AddNullRules(&table);
  const DTypeSet integers = {DType::kI32, DType::kI64};
  Add(&table, {Supported(kNewer), DTypes("positions", RowsOf(integers)), DTypes("queryIn", RowsOf(types::kFloat3))});
  for (const char* arg : {"keyIn", "cosSinCache", "queryOut", "keyOut"}) Add(&table, {SameDType(arg, "queryIn")});
  for (const char* arg : {"queryIn", "keyIn", "cosSinCache"}) Add(&table, {Rank(arg, 2, 2)});
  Add(&table, {Custom("positions", "must be [T] or [3, T] for T rows of queryIn", PositionsFit),
               Custom("keyIn", "must have the rows of queryIn",
                      [](Values v, Product) {
                        const Dims &q = v[A::kQuery].tensor->dims, &k = v[A::kKey].tensor->dims;
                        return q[0] == k[0] ? "" : fmt::format("must have the {} rows of queryIn, got {}", q[0], ToString(k));
                      }),
               SameShape("queryOut", "queryIn"), SameShape("keyOut", "keyIn"), Require("headSize", "headSize > 0"),
               Custom("queryIn", "must have rows of heads", HasHeads<A::kQuery>), Custom("keyIn", "must have rows of heads", HasHeads<A::kKey>),
               Custom("cosSinCache", "must have an even number of columns up to headSize", CacheFits),
               Custom("mropeSection", "must be 3 widths that are R / 2 together where positions have 2 dims", SectionsFit).EvenIfAbsent()});
  return {.contract = Contract(std::move(table)), .plan = PlanCached, .family = "rotary"};
}

}  // namespace

void DeclareRotary(Declarations& declarations) {
  declarations.Add("aclnnRotaryPositionEmbedding", MakeForward);
  declarations.Add("aclnnRotaryPositionEmbeddingGrad", MakeBackward);
  declarations.Add("aclnnApplyRotaryPosEmb", MakeApply);
  declarations.Add("aclnnApplyRotaryPosEmbV2", MakeApply);
  declarations.Add("aclnnInterleaveRope", MakeInterleave);
  declarations.Add("aclnnRopeWithSinCosCache", MakeCached);
}

}  // namespace anyacl
