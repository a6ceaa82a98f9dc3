// SPDX-License-Identifier: Apache-2.0
// Copyright The AnyACL Authors
//
// Attention as training calls it, and its gradients: aclnnFlashAttentionScore and its kin. One list of rules and one plan serve
// all of them; what they differ in is where arguments stand.
#include <fmt/format.h>

#include <array>
#include <cmath>
#include <string>
#include <utility>
#include <vector>

#include "core/codes.h"
#include "ops/attention/families.h"
#include "ops/pointwise/pass.h"
#include "ops/table.h"

namespace anyacl::attention {
namespace {

using namespace contract;

constexpr int kNone = -1;
constexpr DType F32 = DType::kF32;

// Where arguments stand.
struct Args {
  bool gradient = false;
  bool only_tnd = false;
  bool both_layouts = false;  // TND beside the others
  int query, key, value;
  int query_rope = kNone, key_rope = kNone;
  int dy = kNone;
  int pse, drop, mask;
  int most, sum, out;
  int prefix;
  int q_lengths = kNone, k_lengths = kNone, q_start = kNone, k_start = kNone;
  int scale, keep, pre, next, heads, layout, sparse;
  int pse_type = kNone, stats_layout = kNone, seed = kNone, out_dtype = kNone;
  int dq = kNone, dk = kNone, dv = kNone, dq_rope = kNone, dk_rope = kNone, dpse = kNone;
  bool plain_rope = false;  // numbers beside those of queries and keys only for BF16 with a mask, without anything added or dropped
};

constexpr Args kScoreV4 = {.both_layouts = true, .query = 0, .key = 1, .value = 2, .query_rope = 7, .key_rope = 8, .pse = 3, .drop = 4, .mask = 6,
                           .most = 31, .sum = 32, .out = 34, .prefix = 13, .q_lengths = 14, .k_lengths = 15, .q_start = 16, .k_start = 17,
                           .scale = 18, .keep = 19, .pre = 20, .next = 21, .heads = 22, .layout = 23, .sparse = 25, .pse_type = 27,
                           .stats_layout = 28, .seed = 29, .out_dtype = 26};
constexpr Args kGradV4 = {.gradient = true, .both_layouts = true, .query = 0, .key = 1, .value = 2, .query_rope = 13, .key_rope = 14, .dy = 3,
                          .pse = 4, .drop = 5, .mask = 7, .most = 8, .sum = 9, .out = 11, .prefix = 20, .q_lengths = 21, .k_lengths = 22,
                          .q_start = 23, .k_start = 24, .scale = 25, .keep = 26, .pre = 27, .next = 28, .heads = 29, .layout = 30, .sparse = 33,
                          .pse_type = 34, .stats_layout = 31, .seed = 35, .out_dtype = 37, .dq = 38, .dk = 39, .dv = 40, .dq_rope = 41,
                          .dk_rope = 42, .dpse = 43};

constexpr Args kScore = {.query = 0, .key = 1, .value = 2, .pse = 3, .drop = 4, .mask = 6, .most = 16, .sum = 17, .out = 19, .prefix = 7, .scale = 8,
                         .keep = 9, .pre = 10, .next = 11, .heads = 12, .layout = 13, .sparse = 15};
constexpr Args kScoreV2 = {.query = 0, .key = 1, .value = 2, .pse = 3, .drop = 4, .mask = 6, .most = 19, .sum = 20, .out = 22, .prefix = 7,
                           .q_start = 8, .k_start = 9, .scale = 10, .keep = 11, .pre = 12, .next = 13, .heads = 14, .layout = 15, .sparse = 17,
                           .pse_type = 18};
constexpr Args kGrad = {.gradient = true, .query = 0, .key = 1, .value = 2, .dy = 3, .pse = 4, .drop = 5, .mask = 7, .most = 8, .sum = 9, .out = 11,
                        .prefix = 12, .scale = 13, .keep = 14, .pre = 15, .next = 16, .heads = 17, .layout = 18, .sparse = 20, .dq = 21, .dk = 22,
                        .dv = 23, .dpse = 24};
constexpr Args kGradV2 = {.gradient = true, .query = 0, .key = 1, .value = 2, .dy = 3, .pse = 4, .drop = 5, .mask = 7, .most = 8, .sum = 9,
                          .out = 11, .prefix = 12, .q_start = 13, .k_start = 14, .scale = 15, .keep = 16, .pre = 17, .next = 18, .heads = 19,
                          .layout = 20, .sparse = 22, .pse_type = 23, .dq = 24, .dk = 25, .dv = 26, .dpse = 27};
constexpr Args kVarLen = {.only_tnd = true, .query = 0, .key = 1, .value = 2, .pse = 3, .drop = 4, .mask = 6, .most = 18, .sum = 19, .out = 21,
                          .prefix = 7, .q_lengths = 8, .k_lengths = 9, .scale = 10, .keep = 11, .pre = 12, .next = 13, .heads = 14, .layout = 15,
                          .sparse = 17};
constexpr Args kVarLenV2 = {.only_tnd = true, .query = 0, .key = 1, .value = 2, .pse = 3, .drop = 4, .mask = 6, .most = 21, .sum = 22, .out = 24,
                            .prefix = 7, .q_lengths = 8, .k_lengths = 9, .q_start = 10, .k_start = 11, .scale = 12, .keep = 13, .pre = 14,
                            .next = 15, .heads = 16, .layout = 17, .sparse = 19, .pse_type = 20};
constexpr Args kVarLenV3 = {.only_tnd = true, .query = 0, .key = 2, .value = 4, .query_rope = 1, .key_rope = 3, .pse = 5, .drop = 6, .mask = 8,
                            .most = 23, .sum = 24, .out = 26, .prefix = 9, .q_lengths = 10, .k_lengths = 11, .q_start = 12, .k_start = 13,
                            .scale = 14, .keep = 15, .pre = 16, .next = 17, .heads = 18, .layout = 19, .sparse = 21, .pse_type = 22,
                            .plain_rope = true};
constexpr Args kVarLenV4 = {.only_tnd = true, .query = 0, .key = 1, .value = 2, .pse = 3, .drop = 4, .mask = 6, .most = 19, .sum = 20, .out = 22,
                            .prefix = 7, .q_lengths = 8, .k_lengths = 9, .scale = 10, .keep = 11, .pre = 12, .next = 13, .heads = 14, .layout = 15,
                            .sparse = 17, .stats_layout = 18};
constexpr Args kUnpadding = {.gradient = true, .only_tnd = true, .query = 0, .key = 1, .value = 2, .dy = 3, .pse = 4, .drop = 5, .mask = 7, .most = 8,
                             .sum = 9, .out = 11, .prefix = 12, .q_lengths = 13, .k_lengths = 14, .scale = 15, .keep = 16, .pre = 17, .next = 18,
                             .heads = 19, .layout = 20, .sparse = 22, .dq = 23, .dk = 24, .dv = 25, .dpse = 26};
constexpr Args kUnpaddingV2 = {.gradient = true, .only_tnd = true, .query = 0, .key = 1, .value = 2, .dy = 3, .pse = 4, .drop = 5, .mask = 7,
                               .most = 8, .sum = 9, .out = 11, .prefix = 12, .q_lengths = 13, .k_lengths = 14, .q_start = 15, .k_start = 16,
                               .scale = 17, .keep = 18, .pre = 19, .next = 20, .heads = 21, .layout = 22, .sparse = 24, .pse_type = 25, .dq = 26,
                               .dk = 27, .dv = 28, .dpse = 29};
constexpr Args kUnpaddingV3 = {.gradient = true, .only_tnd = true, .query = 0, .key = 2, .value = 4, .query_rope = 1, .key_rope = 3, .dy = 5,
                               .pse = 6, .drop = 7, .mask = 9, .most = 10, .sum = 11, .out = 13, .prefix = 14, .q_lengths = 15, .k_lengths = 16,
                               .q_start = 17, .k_start = 18, .scale = 19, .keep = 20, .pre = 21, .next = 22, .heads = 23, .layout = 24,
                               .sparse = 26, .pse_type = 27, .dq = 28, .dk = 30, .dv = 32, .dq_rope = 29, .dk_rope = 31, .dpse = 33,
                               .plain_rope = true};
constexpr Args kUnpaddingV4 = {.gradient = true, .only_tnd = true, .query = 0, .key = 1, .value = 2, .dy = 3, .pse = 4, .drop = 5, .mask = 7,
                               .most = 8, .sum = 9, .out = 11, .prefix = 12, .q_lengths = 13, .k_lengths = 14, .scale = 15, .keep = 16, .pre = 17,
                               .next = 18, .heads = 19, .layout = 20, .sparse = 22, .stats_layout = 27, .dq = 23, .dk = 24, .dv = 25, .dpse = 26};

// A call is accepted when none of them has elements.
std::array<int, 3> ResultsOf(const Args& a) { return a.gradient ? std::array{a.dq, a.dk, a.dv} : std::array{a.most, a.sum, a.out}; }

bool Has(Values v, int arg) { return arg >= 0 && HasElements(v[arg]); }
const Layout& LayoutOf(const Args& a, Values v) { return *LayoutNamed(v[a.layout].text); }
bool IsTnd(const Args& a, Values v) { return LayoutOf(a, v).batch < 0; }
const Dims& DimsOf(Values v, int arg) { return v[arg].tensor->dims; }
int64_t PseType(const Args& a, Values v) { return a.pse_type < 0 ? 1 : v[a.pse_type].integer; }
bool HasSlopes(const Args& a, Values v) { return PseType(a, v) >= 2; }

// --- the sizes of a call ----------------------------------------------------------------------------------------------

struct Sizes {
  int64_t batch;  // sequences; TND: those that exist
  int64_t heads, k_heads;
  int64_t k_batch;
  int64_t q_tokens, k_tokens;  // of one sequence; TND: of all
  int64_t width, v_width, rope;
};

int64_t LastDim(const Dims& dims) { return dims[dims.rank() - 1]; }

// Of a tensor whose rank the layout has, and whose last axis can be divided.
int64_t HeadsOf(const Layout& layout, const Dims& dims, int64_t width) {
  if (layout.heads >= 0) return dims[layout.heads];
  return width == 0 ? 0 : LastDim(dims) / width;
}

// Trailing zeros are no sequences.
int64_t SequencesIn(const Args& a, Values v) {
  const auto &q = v[a.q_lengths].ints->values, &k = v[a.k_lengths].ints->values;
  int64_t count = static_cast<int64_t>(q.size());
  while (count > 0 && q[count - 1] == 0 && k[count - 1] == 0) --count;
  return count;
}

// Asks of the rules that come before it in each case: see Add...Rules.
Sizes SizesOf(const Args& a, Values v) {
  const Layout& layout = LayoutOf(a, v);
  const Dims &q = DimsOf(v, a.query), &k = DimsOf(v, a.key), &value = DimsOf(v, a.value);
  Sizes s{};
  s.heads = v[a.heads].integer;
  s.width = layout.heads >= 0 ? LastDim(q) : LastDim(q) / s.heads;
  s.k_heads = layout.heads < 0 && s.width == 0 ? s.heads : HeadsOf(layout, k, s.width);
  s.v_width = layout.heads >= 0 ? LastDim(value) : s.k_heads == 0 ? 0 : LastDim(value) / s.k_heads;
  s.q_tokens = q[layout.token];
  s.k_tokens = k[layout.token];
  s.batch = layout.batch < 0 ? SequencesIn(a, v) : q[layout.batch];
  s.k_batch = layout.batch < 0 ? s.batch : k[layout.batch];
  s.rope = a.query_rope >= 0 && Has(v, a.query_rope) ? LastDim(DimsOf(v, a.query_rope)) : 0;
  return s;
}

// Of TND: numbers for every position, or for every key.
int64_t FlatPse(const Args& a, Values v, bool rows) {
  int64_t count = 0, q = 0, k = 0;
  for (int64_t b = 0; b < SequencesIn(a, v); ++b) {
    const int64_t q_end = v[a.q_lengths].ints->values[b], k_end = v[a.k_lengths].ints->values[b];
    count += v[a.heads].integer * (rows ? q_end - q : 1) * (k_end - k);
    q = q_end;
    k = k_end;
  }
  return count;
}

int64_t Limited(int64_t x) { return std::clamp(x, -kFar, kFar); }
int64_t Tokens32(int64_t tokens) { return tokens >= INT32_MAX ? kFar : Limited(tokens); }  // 2147483647: no limit

bool IsLimitedBothWays(int64_t mode) { return mode == 0 || mode == 4; }

// What the mode says of one sequence; without a mask nothing.
void LimitSequence(const Args& a, Values v, int64_t mode, int64_t index, Sequence* s) {
  s->first = -kFar;
  s->last = kFar;
  s->prefix = 0;
  if (!Has(v, a.mask)) return;
  const int64_t shift = s->k_count - s->q_count, pre = Tokens32(v[a.pre].integer), next = Tokens32(v[a.next].integer);
  if (mode == 0) std::tie(s->first, s->last) = std::pair(-pre, next);
  if (mode == 2 || mode == 8) s->last = 0;
  if (mode == 3 || mode == 6 || mode == 7) s->last = shift;
  if (mode == 4) std::tie(s->first, s->last) = std::pair(Limited(shift - pre), Limited(shift + next));
  if (mode == 6) s->prefix = v[a.prefix].ints->values[index];
}

std::vector<Sequence> SequencesOf(const Args& a, Values v, const Sizes& size) {
  std::vector<Sequence> all;
  const bool tnd = IsTnd(a, v);
  const int64_t mode = v[a.sparse].integer;
  const bool same = a.stats_layout >= 0 && std::string_view(v[a.stats_layout].text) == "same_as_input";
  // Of TND, numbers to add lie sequence after sequence.
  const bool flat = Has(v, a.pse) && tnd && !HasSlopes(a, v), flat_rows = flat && Numel(DimsOf(v, a.pse)) == FlatPse(a, v, true);
  Sequence s{};
  for (int64_t b = 0; b < size.batch; ++b) {
    s.q_begin = s.q_begin + (tnd ? s.q_count : 0);
    s.k_begin = s.k_begin + (tnd ? s.k_count : 0);
    s.positions += size.heads * s.q_count * s.k_count;
    if (flat) s.pse += size.heads * (flat_rows ? s.q_count : 1) * s.k_count;
    s.q_count = tnd ? v[a.q_lengths].ints->values[b] - s.q_begin : size.q_tokens;
    s.k_count = tnd ? v[a.k_lengths].ints->values[b] - s.k_begin : size.k_tokens;
    s.stats = tnd && same ? s.q_begin * size.heads : size.heads * (tnd ? s.q_begin : b * size.q_tokens);
    s.stats_head = tnd && same ? 1 : s.q_count;
    LimitSequence(a, v, mode, b, &s);
    all.push_back(s);
  }
  // The last, or the first, sequence with queries is a band.
  const auto band = [&](Sequence& one) { return LimitSequence(a, v, 4, 0, &one); };
  const auto has_queries = [](const Sequence& one) { return one.q_count > 0; };
  if (mode == 7) {
    if (const auto found = std::find_if(all.rbegin(), all.rend(), has_queries); found != all.rend()) band(*found);
  } else if (mode == 8) {
    if (const auto found = std::find_if(all.begin(), all.end(), has_queries); found != all.end()) band(*found);
  }
  return all;
}

// --- rules ------------------------------------------------------------------------------------------------------------

using Check = std::string (*)(const Args& a, Values v, Product product);

std::string WrongLayout(const Args& a, Values v, Product) {
  const Layout* const layout = LayoutNamed(v[a.layout].text);
  if (a.only_tnd) return layout && layout->batch < 0 ? "" : fmt::format("must be TND, got {}", v[a.layout].text);
  if (!layout || (layout->batch < 0 && !a.both_layouts)) {
    return fmt::format("must be BSH, SBH, BSND, BNSD{}, got {}", a.both_layouts ? " or TND" : "", v[a.layout].text);
  }
  return "";
}

template <int Args::*kArg>
std::string WrongRank(const Args& a, Values v, Product) {
  const Layout& layout = LayoutOf(a, v);
  const Dims& dims = DimsOf(v, a.*kArg);
  return dims.rank() == layout.rank ? "" : fmt::format("must have {} dims as {}, got {}", layout.rank, layout.name, ToString(dims));
}

std::string WrongHeads(const Args& a, Values v, Product) {
  const Layout& layout = LayoutOf(a, v);
  const int64_t heads = v[a.heads].integer;
  if (heads <= 0) return fmt::format("must be positive, got {}", heads);
  const Dims& q = DimsOf(v, a.query);
  const bool fits = layout.heads >= 0 ? q[layout.heads] == heads : LastDim(q) % heads == 0;
  return fits ? "" : fmt::format("must be the number of heads of the queries, got {} for shape {}", heads, ToString(q));
}

std::string WrongKey(const Args& a, Values v, Product product) {
  const Layout& layout = LayoutOf(a, v);
  const Dims &q = DimsOf(v, a.query), &k = DimsOf(v, a.key);
  const int64_t heads = v[a.heads].integer, width = layout.heads >= 0 ? LastDim(q) : LastDim(q) / heads;
  const auto wrong = [&](const char* what) { return fmt::format("must have {}, got {} for queries of shape {}", what, ToString(k), ToString(q)); };
  if (layout.batch >= 0) {
    const bool repeated = k[layout.batch] == 1 && product == Product::kAscend950;
    if (k[layout.batch] != q[layout.batch] && !repeated) return wrong("the sequences of the queries");
  }
  if (layout.heads >= 0 ? LastDim(k) != width : width == 0 ? LastDim(k) != 0 : LastDim(k) % width != 0) return wrong("heads as wide as those of the queries");
  const int64_t k_heads = layout.heads < 0 && width == 0 ? heads : HeadsOf(layout, k, width);
  if (k_heads == 0 || heads % k_heads != 0) return wrong("heads of which each serves as many of the queries");
  return "";
}

std::string WrongValue(const Args& a, Values v, Product product) {
  const Layout& layout = LayoutOf(a, v);
  const Dims &k = DimsOf(v, a.key), &value = DimsOf(v, a.value);
  const auto wrong = [&](const char* what) { return fmt::format("must have {}, got {} for keys of shape {}", what, ToString(value), ToString(k)); };
  for (const int axis : {layout.batch, layout.heads, layout.token}) {
    if (axis >= 0 && k[axis] != value[axis]) return wrong("sequences, heads and tokens of the keys");
  }
  const int64_t heads = v[a.heads].integer;
  const int64_t width = layout.heads >= 0 ? LastDim(DimsOf(v, a.query)) : LastDim(DimsOf(v, a.query)) / heads;
  const int64_t k_heads = layout.heads < 0 && width == 0 ? heads : HeadsOf(layout, k, width);
  if (layout.heads < 0 && LastDim(value) % k_heads != 0) return wrong("the heads of the keys");
  const int64_t v_width = layout.heads >= 0 ? LastDim(value) : LastDim(value) / k_heads;
  const bool newest = product == Product::kAscend950;
  if (v_width > width && !newest) return wrong("heads that are no wider than theirs");
  return a.gradient && width == 0 && (v_width == 0 || !newest) ? wrong("heads with numbers") : "";
}

template <int Args::*kLengths>
std::string WrongLengths(const Args& a, Values v, Product) {
  if (!IsTnd(a, v)) return "";
  const Value &mine = v[a.*kLengths], &queries = v[a.q_lengths];
  if (!HasNumbers(mine)) return "must be given for TND, got nothing";
  const auto& ends = mine.ints->values;
  if (!HasNumbers(queries) || ends.size() != queries.ints->values.size()) return fmt::format("must have an entry for each sequence of the queries, got {}", ends.size());
  auto count = static_cast<int64_t>(ends.size());
  while (count > 0 && ends[count - 1] == 0) --count;
  const int64_t tokens = DimsOf(v, kLengths == &Args::q_lengths ? a.query : a.key)[0];
  int64_t before = 0;
  for (int64_t i = 0; i < count; before = ends[i++]) {
    if (ends[i] < before || ends[i] > tokens) {
      return fmt::format("must hold ends of sequences among {} tokens in order, got {} behind {} at {}", tokens, ends[i], before, i);
    }
  }
  return "";
}

// Behind the end of the other side's last sequence this side must not have one that ends before.
std::string WrongPairs(const Args& a, Values v, Product) {
  if (!IsTnd(a, v)) return "";
  const int64_t count = SequencesIn(a, v);
  for (const int arg : {a.q_lengths, a.k_lengths}) {
    const auto& ends = v[arg].ints->values;
    for (int64_t i = 1; i < count; ++i) {
      if (ends[i] < ends[i - 1]) return fmt::format("must end with zeros where the lengths of the keys do, got {} behind {} at {}", ends[i], ends[i - 1], i);
    }
  }
  return "";
}

std::string WrongKeep(const Args& a, Values v, Product) {
  return v[a.keep].real > 0 && v[a.keep].real <= 1 ? "" : fmt::format("must be in (0, 1], got {}", v[a.keep].real);
}

std::string WrongPseType(const Args& a, Values v, Product) {
  const int64_t type = PseType(a, v);
  return type >= 0 && type <= 3 && (type == 1 || Has(v, a.pse)) ? "" : fmt::format("must be 0 to 3, and 1 without numbers to add, got {}", type);
}

constexpr int64_t kPeriod = 1024;
bool IsRepeated(const Sizes& s, const Dims& pse) { return pse.rank() == 4 && pse[2] == kPeriod && s.q_tokens > kPeriod && s.q_tokens == s.k_tokens; }

std::string WrongPse(const Args& a, Values v, Product) {
  if (!Has(v, a.pse)) return "";
  const Tensor& pse = *v[a.pse].tensor;
  const Sizes s = SizesOf(a, v);
  if (HasSlopes(a, v)) {
    if (pse.dtype != F32) return fmt::format("must be FLOAT when it holds slopes, got {}", Name(pse.dtype));
    const bool fits = pse.dims == Dims{s.heads} || pse.dims == Dims{s.batch, s.heads};
    return fits ? "" : fmt::format("must hold slopes of {} heads, got {}", s.heads, ToString(pse.dims));
  }
  if (pse.dtype != v[a.query].tensor->dtype) return fmt::format("must be {} as the queries, got {}", Name(v[a.query].tensor->dtype), Name(pse.dtype));
  if (IsTnd(a, v)) {
    const int64_t count = pse.numel(), each = FlatPse(a, v, true), keys = FlatPse(a, v, false);
    return count == each || count == keys ? "" : fmt::format("must hold {} or {} numbers, got {}", each, keys, ToString(pse.dims));
  }
  const Dims& d = pse.dims;
  const bool fits = d.rank() == 4 && (d[0] == 1 || d[0] == s.batch) && d[1] == s.heads && (d[2] == 1 || d[2] == s.q_tokens || IsRepeated(s, d)) &&
                    d[3] == s.k_tokens;
  return fits ? "" : fmt::format("must have shape {} or 1 in place of the first or third of these, got {}",
                                 ToString({s.batch, s.heads, s.q_tokens, s.k_tokens}), ToString(d));
}

bool IsCompressed(int64_t mode) { return mode == 2 || mode == 3 || mode == 4 || mode >= 6; }

// The last two dims, when those in front are 1.
Dims Matrix(const Dims& dims) {
  const int rank = dims.rank();
  for (int i = 0; i + 2 < rank; ++i) {
    if (dims[i] != 1) return {};
  }
  return rank < 2 ? Dims() : Dims{dims[rank - 2], dims[rank - 1]};
}

// Of a sequence, by the ends of all.
int64_t MostTokens(const std::vector<int64_t>& ends, int64_t count) {
  int64_t most = 0;
  for (int64_t b = 0; b < count; ++b) most = std::max(most, ends[b] - (b > 0 ? ends[b - 1] : 0));
  return most;
}

bool IsMaskOfAll(const Args& a, Values v) { return Matrix(DimsOf(v, a.mask)) == Dims{DimsOf(v, a.query)[0], DimsOf(v, a.key)[0]}; }

std::string WrongMask(const Args& a, Values v, Product) {
  if (!Has(v, a.mask)) return "";
  const Dims& mask = DimsOf(v, a.mask);
  const Sizes s = SizesOf(a, v);
  const int64_t mode = v[a.sparse].integer;
  if (IsCompressed(mode)) {
    const Dims want = {mode == 6 ? 3072 : 2048, 2048};
    return Matrix(mask) == want ? "" : fmt::format("must have shape {} for sparseMode {}, got {}", ToString(want), mode, ToString(mask));
  }
  if (IsTnd(a, v)) {
    const int64_t most_q = MostTokens(v[a.q_lengths].ints->values, s.batch), most_k = MostTokens(v[a.k_lengths].ints->values, s.batch);
    const bool fits = IsMaskOfAll(a, v) || Matrix(mask) == Dims{most_q, most_k};
    return fits ? "" : fmt::format("must have shape [{}, {}] or [{}, {}], got {}", most_q, most_k, s.q_tokens, s.k_tokens, ToString(mask));
  }
  const Dims whole = {s.batch, s.heads, s.q_tokens, s.k_tokens};
  const Dims* const both[] = {&mask, &whole};
  Dims result;
  const bool fits = BroadcastDims(both, &result) && result == whole;
  return fits ? "" : fmt::format("must broadcast to {}, got {}", ToString(whole), ToString(mask));
}

std::string WrongDrop(const Args& a, Values v, Product) {
  if (!Has(v, a.drop)) return "";
  const Sizes s = SizesOf(a, v);
  const int64_t positions = IsTnd(a, v) ? FlatPse(a, v, true) : s.batch * s.heads * s.q_tokens * s.k_tokens;
  const int64_t got = v[a.drop].tensor->numel();
  return got >= (positions + 7) / 8 ? "" : fmt::format("must have a bit for each of {} positions, got {} bytes", positions, got);
}

std::string WrongMode(const Args& a, Values v, Product) {
  const int64_t mode = v[a.sparse].integer;
  const bool fits = IsTnd(a, v) ? mode >= 0 && mode <= 8 && mode != 5 : mode >= 0 && mode <= 6;
  return fits ? "" : fmt::format("must be 0 to {} with {}, got {}", IsTnd(a, v) ? "8 but 5" : "6", v[a.layout].text, mode);
}

std::string WrongBand(const Args& a, Values v, Product) {
  const int64_t mode = v[a.sparse].integer;
  if (!Has(v, a.mask) || !IsLimitedBothWays(mode)) return "";
  const Sizes s = SizesOf(a, v);
  int64_t pre = Tokens32(v[a.pre].integer), next = Tokens32(v[a.next].integer);
  const auto wrong = [&] { return fmt::format("and nextTokens must leave a band, got {} and {}", v[a.pre].integer, v[a.next].integer); };
  if (IsTnd(a, v)) return pre < 0 && next < 0 ? wrong() : "";
  const int64_t shift = mode == 4 ? s.k_tokens - s.q_tokens : 0;
  pre -= shift;
  next += shift;
  const bool fits = pre >= 0 ? next >= 0 || (pre >= -next && -next < s.q_tokens) : next >= -pre && next >= 0 && -pre < s.k_tokens;
  return fits ? "" : wrong();
}

std::string WrongPrefix(const Args& a, Values v, Product) {
  if (v[a.sparse].integer != 6 || !Has(v, a.mask)) return "";
  const Sizes s = SizesOf(a, v);
  const int64_t got = HasNumbers(v[a.prefix]) ? static_cast<int64_t>(v[a.prefix].ints->values.size()) : 0;
  const int64_t want = IsTnd(a, v) ? static_cast<int64_t>(v[a.q_lengths].ints->values.size()) : s.batch;
  if (got != want) return fmt::format("must have an entry for each of {} sequences, got {}", want, got);
  int64_t q = 0, k = 0;
  for (int64_t b = 0; b < s.batch; ++b) {
    int64_t q_count = s.q_tokens, k_count = s.k_tokens;
    if (IsTnd(a, v)) {
      const int64_t q_end = v[a.q_lengths].ints->values[b], k_end = v[a.k_lengths].ints->values[b];
      q_count = q_end - std::exchange(q, q_end);
      k_count = k_end - std::exchange(k, k_end);
    }
    const int64_t prefix = v[a.prefix].ints->values[b], least = std::max<int64_t>(k_count - q_count, 0);
    if (prefix < least || prefix > k_count) return fmt::format("must be in [{}, {}] for sequence {}, got {}", least, k_count, b, prefix);
  }
  return "";
}

// --- shapes of results, or of what the gradient takes ---

Dims OutDims(const Args& a, Values v) {
  const Sizes s = SizesOf(a, v);
  Dims dims = DimsOf(v, a.query);
  dims[dims.rank() - 1] = LayoutOf(a, v).heads >= 0 ? s.v_width : s.heads * s.v_width;
  return dims;
}
Dims StatsDims(const Args& a, Values v) {
  const Sizes s = SizesOf(a, v);
  if (IsTnd(a, v)) return {s.q_tokens, s.heads, kCopies};
  return {s.batch, s.heads, s.q_tokens, kCopies};
}
std::string ShapeProblem(const Dims& want, const Dims& got) {
  return got == want ? "" : fmt::format("must have shape {}, got {}", ToString(want), ToString(got));
}
template <int Args::*kArg>
std::string WrongOut(const Args& a, Values v, Product) {
  return ShapeProblem(OutDims(a, v), DimsOf(v, a.*kArg));
}
template <int Args::*kArg>
std::string WrongStats(const Args& a, Values v, Product) {
  return ShapeProblem(StatsDims(a, v), DimsOf(v, a.*kArg));
}
std::string WrongStatsLayout(const Args& a, Values v, Product) {
  const std::string_view text = v[a.stats_layout].text;
  return text.empty() || text == "same_as_input" ? "" : fmt::format("must be empty or same_as_input, got {}", text);
}

// Both or none, beside the queries and keys.
std::string WrongRopes(const Args& a, Values v, Product) {
  if (Has(v, a.query_rope) != Has(v, a.key_rope)) return "must be given with that of the keys, got one of them";
  return a.plain_rope && Has(v, a.query_rope) && !Has(v, a.mask) ? "must be given with a mask, got none" : "";
}
std::string WrongUseOfRope(const Args& a, Values v, Product) {
  if (!a.plain_rope || !Has(v, a.query_rope)) return "";
  const Tensor &rope = *v[a.query_rope].tensor, &query = *v[a.query].tensor;
  if (query.dtype != DType::kBF16) return fmt::format("must be absent but for BF16, got a tensor beside queries of {}", Name(query.dtype));
  if (Has(v, a.pse) || Has(v, a.drop) || v[a.keep].real != 1 || v[a.sparse].integer == 6) return "must be absent where something is added or dropped, and in sparseMode 6, got a tensor";
  return LastDim(rope.dims) > LastDim(query.dims) ? fmt::format("must have at most {} numbers, got {}", LastDim(query.dims), ToString(rope.dims)) : "";
}
std::string WrongQueryRope(const Args& a, Values v, Product) {
  if (!Has(v, a.query_rope)) return "";
  const Layout& layout = LayoutOf(a, v);
  if (layout.heads < 0) return fmt::format("must be absent with {}, got a tensor", layout.name);
  Dims want = DimsOf(v, a.query);
  const Dims& got = DimsOf(v, a.query_rope);
  want[want.rank() - 1] = got.rank() == want.rank() ? LastDim(got) : -1;
  if (!(got == want)) return fmt::format("must have the shape of the queries but for its last dim, got {}", ToString(got));
  return v[a.query_rope].tensor->dtype == v[a.query].tensor->dtype ? "" : fmt::format("must be {}, got {}", Name(v[a.query].tensor->dtype), Name(v[a.query_rope].tensor->dtype));
}
std::string WrongKeyRope(const Args& a, Values v, Product) {
  if (!Has(v, a.key_rope)) return "";
  Dims want = DimsOf(v, a.key);
  want[want.rank() - 1] = LastDim(DimsOf(v, a.query_rope));
  const Tensor& rope = *v[a.key_rope].tensor;
  if (!(rope.dims == want)) return ShapeProblem(want, rope.dims);
  return rope.dtype == v[a.query].tensor->dtype ? "" : fmt::format("must be {}, got {}", Name(v[a.query].tensor->dtype), Name(rope.dtype));
}
template <int Args::*kGrad, int Args::*kArg>
std::string WrongRopeGrad(const Args& a, Values v, Product) {
  if (!Has(v, a.*kArg)) return "";
  if (!Has(v, a.*kGrad)) return "must be given, got nothing";
  const Tensor &grad = *v[a.*kGrad].tensor, &of = *v[a.*kArg].tensor;
  if (grad.dtype != of.dtype) return fmt::format("must be {}, got {}", Name(of.dtype), Name(grad.dtype));
  return ShapeProblem(of.dims, grad.dims);
}
std::string WrongDpse(const Args& a, Values v, Product) {
  if (!Has(v, a.dpse) || !Has(v, a.pse) || HasSlopes(a, v)) return "";
  const Tensor &dpse = *v[a.dpse].tensor, &pse = *v[a.pse].tensor;
  if (dpse.dtype != pse.dtype) return fmt::format("must be {}, got {}", Name(pse.dtype), Name(dpse.dtype));
  return ShapeProblem(pse.dims, dpse.dims);
}

// --- plan -------------------------------------------------------------------------------------------------------------

class Builder {
 public:
  Builder(const Args& a, Values v, PlanBuilder& plan) : a_(a), v_(v), plan_(plan), layout_(LayoutOf(a, v)), s_(SizesOf(a, v)), all_(SequencesOf(a, v, s_)) {
    places_ = Place(&all_, SharesKeys());
  }

  Status Forward() {
    const Operand most = pointwise::DenseOutput(plan_, a_.most, 0, F32), sum = pointwise::DenseOutput(plan_, a_.sum, 0, F32);
    const Operand out = Result(a_.out);
    if (all_.empty() || all_.back().q_begin + all_.back().q_count < (IsTnd() ? s_.q_tokens : 0) || HasNoWidth()) {
      for (const Operand* operand : {&most, &sum, &out}) ANYACL_RETURN_IF_ERROR(AddZeros(plan_, *operand));
    }
    if (!all_.empty() && !HasNoWidth()) ANYACL_RETURN_IF_ERROR(AddForward(most, sum, out));
    ANYACL_RETURN_IF_ERROR(pointwise::FinishOutput(plan_, a_.most, 0, most));
    ANYACL_RETURN_IF_ERROR(pointwise::FinishOutput(plan_, a_.sum, 0, sum));
    return Finish();
  }

  Status Gradient() {
    const bool rope = s_.rope > 0;
    const Operand dq = Result(a_.dq), dk = Result(a_.dk), dv = Result(a_.dv);
    const Operand dq_rope = rope ? Result(a_.dq_rope) : Operand(), dk_rope = rope ? Result(a_.dk_rope) : Operand();
    const bool all_queries = !all_.empty() && (!IsTnd() || all_.back().q_begin + all_.back().q_count == s_.q_tokens);
    const bool all_keys = !all_.empty() && (!IsTnd() || all_.back().k_begin + all_.back().k_count == s_.k_tokens);
    if (!all_queries) ANYACL_RETURN_IF_ERROR(AddZeros(plan_, dq));
    if (!all_queries && rope) ANYACL_RETURN_IF_ERROR(AddZeros(plan_, dq_rope));
    if (!all_keys) ANYACL_RETURN_IF_ERROR(AddZeros(plan_, dk));
    if (!all_keys) ANYACL_RETURN_IF_ERROR(AddZeros(plan_, dv));
    if (!all_keys && rope) ANYACL_RETURN_IF_ERROR(AddZeros(plan_, dk_rope));
    if (all_.empty()) return Finish();
    Operand most, sum, dpse;
    ANYACL_RETURN_IF_ERROR(pointwise::DenseInput(plan_, a_.most, 0, F32, &most));
    ANYACL_RETURN_IF_ERROR(pointwise::DenseInput(plan_, a_.sum, 0, F32, &sum));
    ANYACL_RETURN_IF_ERROR(Prepare());
    if (WantsDpse()) {
      dpse = plan_.ScratchOperand("gradient of pse", F32, pse_.dims);
      ANYACL_RETURN_IF_ERROR(AddZeros(plan_, dpse));
    }
    auto& p = plan_.MakeParams<BackwardParams>();
    Describe(&p.problem);
    Inputs(p.q, p.k, &p.v);
    Queries(plan_.TensorOperand(a_.dy), &p.dy);
    Queries(plan_.TensorOperand(a_.out), &p.out);
    Queries(dq, &p.dq[0]);
    Keys(dk, &p.dk[0]);
    Keys(dv, &p.dv);
    if (rope) {
      Queries(dq_rope, &p.dq[1]);
      Keys(dk_rope, &p.dk[1]);
    }
    p.stats_token = StatsToken();
    Bind(most, p.most);
    Bind(sum, p.sum);
    if (WantsDpse()) Bind(dpse, p.dpse);
    const int64_t queries = places_.queries * s_.heads, keys = places_.keys * s_.k_heads, width = s_.width + s_.rope;
    const int64_t across = PaddedWidth(width), v_across = PaddedWidth(s_.v_width);
    Scratch("statistics", 3 * queries, p.stats);
    Scratch("packed queries", queries * width, p.packed_q);
    Scratch("packed keys", keys * width, p.packed_k);
    Scratch("packed values", keys * s_.v_width, p.packed_v);
    Scratch("packed gradients", queries * s_.v_width, p.packed_dy);
    const Operand packed = Floats("packed across", std::max(keys * across, queries * (across + v_across)));
    Bind(packed, p.across_k);
    Bind(packed, p.across_q);
    Bind(Behind(packed, queries * across), p.across_dy);
    const Operand sums = Floats("sums", std::max(queries * across, keys * (across + v_across)));
    Bind(sums, p.dq_sums);
    Bind(sums, p.dk_sums);
    Bind(Behind(sums, keys * across), p.dv_sums);
    p.sets = SetsOf(all_, s_.heads, true);
    Scratch("tables", p.sets * kBackwardTables * kTable, p.tables);
    ANYACL_RETURN_IF_ERROR(plan_.ChooseKernel("attention_grad"));
    if (WantsDpse()) results_.push_back({dpse, plan_.TensorOperand(a_.dpse)});
    return Finish();
  }

 private:
  bool IsTnd() const { return layout_.batch < 0; }
  bool SharesKeys() const { return s_.k_batch == 1 && s_.batch > 1 && !IsTnd(); }
  bool HasNoWidth() const { return s_.width == 0 && s_.v_width == 0; }
  bool WantsDpse() const { return Has(v_, a_.dpse) && Has(v_, a_.pse) && !HasSlopes(a_, v_); }
  bool NeedsTable() const { return IsTnd() || (v_[a_.sparse].integer == 6 && Has(v_, a_.mask)); }
  int64_t StatsToken() const {
    return IsTnd() && a_.stats_layout >= 0 && std::string_view(v_[a_.stats_layout].text) == "same_as_input" ? s_.heads : 1;
  }

  Operand Floats(const char* name, int64_t count) { return plan_.ScratchOperand(name, F32, {std::max<int64_t>(count, 1)}); }
  void Scratch(const char* name, int64_t count, float*& member) { Bind(Floats(name, count), member); }
  static Operand Behind(Operand operand, int64_t floats) {
    operand.offset += floats * static_cast<int64_t>(sizeof(float));
    return operand;
  }
  void Bind(const Operand& operand, float*& member) { plan_.Bind(operand, reinterpret_cast<void*&>(member)); }
  void Bind(const Operand& operand, const float*& member) { plan_.Bind(operand, reinterpret_cast<const void*&>(member)); }

  // Where a result is written: in scratch memory if others of the call lie where it belongs.
  Operand Result(int arg) {
    const Operand tensor = plan_.TensorOperand(arg);
    if (!plan_.Overlaps(tensor, /*exact_too=*/true)) return tensor;
    const Operand scratch = plan_.ScratchOperand("result", tensor.dtype, tensor.dims);
    results_.push_back({scratch, tensor});
    return scratch;
  }
  Status Finish() {
    for (const auto& [from, to] : results_) ANYACL_RETURN_IF_ERROR(pointwise::AddCopy(plan_, from, to));
    return {};
  }

  void Queries(const Operand& operand, Tokens* tokens) { BindTokens(plan_, layout_, operand, s_.heads, s_.batch, tokens); }
  void Keys(const Operand& operand, Tokens* tokens) { BindTokens(plan_, layout_, operand, s_.k_heads, s_.batch, tokens); }
  void Inputs(Tokens* q, Tokens* k, Tokens* v) {
    Queries(plan_.TensorOperand(a_.query), &q[0]);
    Keys(plan_.TensorOperand(a_.key), &k[0]);
    Keys(plan_.TensorOperand(a_.value), v);
    q[1].dtype = k[1].dtype = q[0].dtype;
    if (s_.rope == 0) return;
    Queries(plan_.TensorOperand(a_.query_rope), &q[1]);
    Keys(plan_.TensorOperand(a_.key_rope), &k[1]);
  }

  // Steps in front of the kernel's.
  Status Prepare() {
    if (NeedsTable()) ANYACL_RETURN_IF_ERROR(AddSequences(plan_, all_, &table_));
    if (Has(v_, a_.drop)) ANYACL_RETURN_IF_ERROR(pointwise::DenseInput(plan_, a_.drop, 0, DType::kU8, &drop_));
    if (!Has(v_, a_.pse)) return {};
    const bool dense = IsTnd() || WantsDpse() || HasSlopes(a_, v_);
    if (dense) return pointwise::DenseInput(plan_, a_.pse, 0, v_[a_.pse].tensor->dtype, &pse_);
    pse_ = plan_.TensorOperand(a_.pse);
    return {};
  }

  void Describe(Problem* p) {
    p->sequences = s_.batch;
    p->heads = s_.heads;
    p->k_heads = s_.k_heads;
    p->shared_keys = SharesKeys();
    p->alike = all_[0];
    p->scale = static_cast<float>(v_[a_.scale].real);
    if (NeedsTable()) plan_.Bind(table_, reinterpret_cast<const void*&>(p->table));
    DescribePse(p);
    DescribeMask(p);
    DescribeDrop(p);
  }

  int64_t Start(int arg) const { return arg >= 0 && HasNumbers(v_[arg]) ? v_[arg].ints->values[0] : 0; }

  void DescribePse(Problem* p) {
    if (!Has(v_, a_.pse)) return;
    static constexpr Pse kKinds[] = {Pse::kAdded, Pse::kScaled, Pse::kDistance, Pse::kRootOfDistance};
    p->pse_kind = kKinds[PseType(a_, v_)];
    p->pse_type = pse_.dtype;
    plan_.Bind(pse_, p->pse);
    const Dims& dims = pse_.dims;
    if (HasSlopes(a_, v_)) {
      p->pse_strides[0] = dims.rank() == 2 ? dims[1] : 0;
      p->pse_strides[1] = 1;
      p->pse_shift = Limited(Start(a_.k_start)) - Limited(Start(a_.q_start));
      return;
    }
    if (IsTnd()) {
      p->pse_flat = true;
      p->pse_flat_rows = Numel(dims) == FlatPse(a_, v_, true);
      return;
    }
    for (int axis = 0; axis < 4; ++axis) p->pse_strides[axis] = dims[axis] == 1 ? 0 : pse_.strides[axis];
    if (IsRepeated(s_, dims)) {
      p->pse_period = kPeriod;
      p->pse_width = dims[3];
    }
  }

  void DescribeMask(Problem* p) {
    if (!Has(v_, a_.mask) || IsCompressed(v_[a_.sparse].integer)) return;
    const Operand mask = plan_.TensorOperand(a_.mask);
    plan_.Bind(mask, p->mask);
    const int missing = 4 - mask.dims.rank();
    for (int axis = std::max(missing, 0); axis < 4; ++axis) {
      p->mask_strides[axis] = mask.dims[axis - missing] == 1 ? 0 : mask.strides[axis - missing];
    }
    p->count_from_first = IsTnd() && IsMaskOfAll(a_, v_);
  }

  void DescribeDrop(Problem* p) {
    const double keep = v_[a_.keep].real;
    p->keep_scale = static_cast<float>(1 / keep);
    if (Has(v_, a_.drop)) {
      p->drops = true;
      plan_.Bind(drop_, p->keep_bits);
    } else if (a_.seed >= 0 && keep < 1) {
      p->drops = true;
      p->keep = static_cast<float>(1 - (1 - keep));  // as DropoutGenMask makes it of the probability of a zero
      p->keep_key = {static_cast<uint64_t>(v_[a_.seed].integer), static_cast<uint64_t>(v_[a_.seed + 1].integer)};
    }
  }

  Status AddForward(const Operand& most, const Operand& sum, const Operand& out) {
    ANYACL_RETURN_IF_ERROR(Prepare());
    auto& p = plan_.MakeParams<ForwardParams>();
    Describe(&p.problem);
    Inputs(p.q, p.k, &p.v);
    Queries(out, &p.out);
    p.stats_token = StatsToken();
    Bind(most, p.most);
    Bind(sum, p.sum);
    const int64_t queries = places_.queries * s_.heads, keys = places_.keys * s_.k_heads, across = PaddedWidth(s_.v_width);
    Scratch("packed queries", queries * (s_.width + s_.rope), p.packed_q);
    Scratch("packed keys", keys * (s_.width + s_.rope), p.packed_k);
    Scratch("packed values", keys * across, p.packed_v);
    Scratch("sums", queries * across, p.sums);
    p.sets = SetsOf(all_, s_.heads, false);
    Scratch("tables", p.sets * kForwardTables * kTable, p.tables);
    return plan_.ChooseKernel("attention");
  }

  const Args& a_;
  Values v_;
  PlanBuilder& plan_;
  const Layout& layout_;
  Sizes s_;
  std::vector<Sequence> all_;
  Places places_;
  Operand table_, drop_, pse_;
  std::vector<std::pair<Operand, Operand>> results_;
};

template <const Args& kArgs>
Status PlanScore(Values v, PlanBuilder& plan) {
  // Results without elements are accepted before the rules that the builder relies on.
  const auto [first, second, third] = ResultsOf(kArgs);
  if (!Has(v, first) && !Has(v, second) && !Has(v, third)) return {};
  Builder builder(kArgs, v, plan);
  return kArgs.gradient ? builder.Gradient() : builder.Forward();
}

// --- tables -----------------------------------------------------------------------------------------------------------

template <const Args& kArgs, Check kCheck>
Rule RuleOf(const Entry& entry, int arg, const char* text) {
  return Custom(entry.args[arg].name, text, [](Values v, Product product) { return kCheck(kArgs, v, product); }).EvenIfAbsent();
}

template <const Args& kArgs>
void AddShapeRules(const Entry& entry, Table* table) {
  const auto& a = kArgs;
  Add(table, {RuleOf<kArgs, WrongRank<&Args::query>>(entry, a.query, "must have as many dims as the layout"),
              RuleOf<kArgs, WrongRank<&Args::key>>(entry, a.key, "must have as many dims as the layout"),
              RuleOf<kArgs, WrongRank<&Args::value>>(entry, a.value, "must have as many dims as the layout"),
              RuleOf<kArgs, WrongHeads>(entry, a.heads, "must be the number of heads of the queries"),
              RuleOf<kArgs, WrongKey>(entry, a.key, "must have sequences and widths of the queries, and heads that divide theirs"),
              RuleOf<kArgs, WrongValue>(entry, a.value, "must have sequences, heads and tokens of the keys")});
  if constexpr (kArgs.q_lengths >= 0) {
    Add(table, {RuleOf<kArgs, WrongLengths<&Args::q_lengths>>(entry, a.q_lengths, "must hold the ends of the sequences, for TND"),
                RuleOf<kArgs, WrongLengths<&Args::k_lengths>>(entry, a.k_lengths, "must hold the ends of as many sequences, for TND"),
                RuleOf<kArgs, WrongPairs>(entry, a.q_lengths, "must end with zeros only where the lengths of the keys do")});
  }
  if constexpr (kArgs.query_rope >= 0) {
    Add(table, {RuleOf<kArgs, WrongRopes>(entry, a.query_rope, "must be given with that of the keys, and in FlashAttentionVarLenScoreV3 with a mask")
                    .Code(161001),
                RuleOf<kArgs, WrongQueryRope>(entry, a.query_rope, "must have the shape of the queries but for its last dim"),
                RuleOf<kArgs, WrongKeyRope>(entry, a.key_rope, "must have the shape of the keys but for its last dim")});
    if constexpr (kArgs.plain_rope) Add(table, {RuleOf<kArgs, WrongUseOfRope>(entry, a.query_rope, "must be absent but for BF16, where nothing is added or dropped")});
  }
  Add(table, {RuleOf<kArgs, WrongKeep>(entry, a.keep, "must be in (0, 1]")});
  if constexpr (kArgs.pse_type >= 0) Add(table, {RuleOf<kArgs, WrongPseType>(entry, a.pse_type, "must be 0 to 3, and 1 without numbers to add")});
  Add(table, {RuleOf<kArgs, WrongPse>(entry, a.pse, "must have a number for each position, or slopes"),
              RuleOf<kArgs, WrongMode>(entry, a.sparse, "must be 0 to 6, with TND 0 to 8 but 5"),
              RuleOf<kArgs, WrongMask>(entry, a.mask, "must broadcast to the positions, or be 2048 x 2048 where sparseMode says it all"),
              RuleOf<kArgs, WrongDrop>(entry, a.drop, "must have a bit for each position"),
              RuleOf<kArgs, WrongBand>(entry, a.pre, "and nextTokens must leave a band"),
              RuleOf<kArgs, WrongPrefix>(entry, a.prefix, "must have an entry for each sequence, for sparseMode 6")});
}

template <const Args& kArgs>
void AddResultRules(const Entry& entry, Table* table) {
  const auto& a = kArgs;
  const auto name = [&](int arg) { return entry.args[arg].name; };
  if constexpr (kArgs.stats_layout >= 0) Add(table, {RuleOf<kArgs, WrongStatsLayout>(entry, a.stats_layout, "must be empty or same_as_input")});
  constexpr const char* kStats = "must have 8 numbers for each query and head";
  Add(table, {RuleOf<kArgs, WrongStats<&Args::most>>(entry, a.most, kStats), RuleOf<kArgs, WrongStats<&Args::sum>>(entry, a.sum, kStats),
              RuleOf<kArgs, WrongOut<&Args::out>>(entry, a.out, "must have the shape of the queries with heads as wide as the values")});
  if constexpr (kArgs.gradient) {
    Add(table, {SameShape(name(a.dy), name(a.out)), SameShape(name(a.dq), name(a.query)), SameShape(name(a.dk), name(a.key)),
                SameShape(name(a.dv), name(a.value)), RuleOf<kArgs, WrongDpse>(entry, a.dpse, "must have dtype and shape of what it is the gradient of")});
    if constexpr (kArgs.dq_rope >= 0) {
      Add(table, {RuleOf<kArgs, WrongRopeGrad<&Args::dq_rope, &Args::query_rope>>(entry, a.dq_rope, "must have dtype and shape of queryRope"),
                  RuleOf<kArgs, WrongRopeGrad<&Args::dk_rope, &Args::key_rope>>(entry, a.dk_rope, "must have dtype and shape of keyRope")});
    }
  }
}

ArgRoles RolesOf(const Args& a, const Entry& entry) {
  ArgRoles roles;
  std::vector<int> required = {a.query, a.key, a.value, a.most, a.sum, a.out, a.layout};
  if (a.stats_layout >= 0) required.push_back(a.stats_layout);
  if (a.gradient) required.insert(required.end(), {a.dy, a.dq, a.dk, a.dv});
  for (size_t i = 0; i < entry.args.size(); ++i) {
    const auto arg = static_cast<int>(i);
    const std::string_view name = entry.args[i].name;
    const bool handle = IsTensor(entry.args[i].kind) || entry.args[i].kind == ArgKind::kIntArray || entry.args[i].kind == ArgKind::kString;
    if (handle && std::find(required.begin(), required.end(), arg) == required.end()) roles.optional.push_back(entry.args[i].name);
    // What is never written counts as an input.
    if (name.ends_with("Out") && name != "softmaxOutOut" && name != "dsinkOut") roles.outputs.push_back(entry.args[i].name);
  }
  return roles;
}

template <const Args& kArgs>
Operator MakeScore(const Entry& entry) {
  const auto& a = kArgs;
  const auto name = [&](int arg) { return entry.args[arg].name; };
  Table table = TableOf(entry, "attention", a.gradient ? "Gradients of attention, tile by tile." : "Attention, tile by tile with a streaming soft-max.",
                        RolesOf(a, entry));
  table.formulas = {"s = scaleValue * (q . k) + what is added, over the positions that take part", "M = max s, Z = sum of exp(s - M), P = exp(s - M) / Z"};
  if (a.gradient) {
    table.formulas.insert(table.formulas.end(), {"dP = (dy . v) * keep / keepProb, dS = P * (dP - dy . out)", "dv = sum of keep / keepProb * P * dy",
                                                 "dq = scaleValue * sum of dS * k, dk = scaleValue * sum of dS * q"});
  } else {
    table.formulas.push_back("out = sum of keep / keepProb * P * v");
  }
  table.notes = {"Masks say 1 where a position takes no part. A query for which none is left gives 0, M = -3.4028235e38 and Z = 3.4028235e38.",
                 "Masks of 2048 x 2048, which go with sparseMode, are not read. Without a mask every position takes part.",
                 "Every sum is in FLOAT, in an order that the shapes decide; memory is linear in the number of tokens."};
  AddNullRules(&table);
  for (const Entry::Arg& arg : entry.args) {
    const std::string_view text = arg.name;
    if (text.starts_with("dScale") || text == "sinkOptional") Add(&table, {NotGiven(arg.name).OrEmpty().Code(561003)});
  }
  Add(&table, {Supported(kNewer)});
  const auto [first, second, third] = ResultsOf(kArgs);
  Add(&table, {AcceptIfEmpty({name(first), name(second), name(third)})});
  Add(&table, {RuleOf<kArgs, WrongLayout>(entry, a.layout, "must name a layout"), DTypes(name(a.query), RowsOf(types::kFloat3)),
               SameDType(name(a.key), name(a.query)), SameDType(name(a.value), name(a.query)),
               DTypes(name(a.mask), {{{DType::kBool}}, {{DType::kU8}}}), DTypes(name(a.drop), {{{DType::kU8}}})});
  if constexpr (kArgs.out_dtype >= 0) Add(&table, {OneOf(name(a.out_dtype), {0}).Code(561003)});
  AddShapeRules<kArgs>(entry, &table);
  Add(&table, {DTypes(name(a.most), {{{F32}}}), DTypes(name(a.sum), {{{F32}}}), SameDType(name(a.out), name(a.query))});
  if constexpr (kArgs.gradient) {
    for (const int arg : {a.dy, a.dq, a.dk, a.dv}) Add(&table, {SameDType(name(arg), name(a.query))});
  }
  AddResultRules<kArgs>(entry, &table);
  return {.contract = Contract(std::move(table)), .plan = PlanScore<kArgs>, .family = "attention"};
}

}  // namespace

void DeclareScores(Declarations& declarations) {
  declarations.Add("aclnnFlashAttentionScore", MakeScore<kScore>);
  declarations.Add("aclnnFlashAttentionScoreV2", MakeScore<kScoreV2>);
  declarations.Add("aclnnFlashAttentionScoreV4", MakeScore<kScoreV4>);
  declarations.Add("aclnnFlashAttentionVarLenScore", MakeScore<kVarLen>);
  declarations.Add("aclnnFlashAttentionVarLenScoreV2", MakeScore<kVarLenV2>);
  declarations.Add("aclnnFlashAttentionVarLenScoreV3", MakeScore<kVarLenV3>);
  declarations.Add("aclnnFlashAttentionVarLenScoreV4", MakeScore<kVarLenV4>);
  declarations.Add("aclnnFlashAttentionScoreGrad", MakeScore<kGrad>);
  declarations.Add("aclnnFlashAttentionScoreGradV2", MakeScore<kGradV2>);
  declarations.Add("aclnnFlashAttentionScoreGradV4", MakeScore<kGradV4>);
  declarations.Add("aclnnFlashAttentionUnpaddingScoreGrad", MakeScore<kUnpadding>);
  declarations.Add("aclnnFlashAttentionUnpaddingScoreGradV2", MakeScore<kUnpaddingV2>);
  declarations.Add("aclnnFlashAttentionUnpaddingScoreGradV3", MakeScore<kUnpaddingV3>);
  declarations.Add("aclnnFlashAttentionUnpaddingScoreGradV4", MakeScore<kUnpaddingV4>);
}

}  // namespace anyacl::attention
