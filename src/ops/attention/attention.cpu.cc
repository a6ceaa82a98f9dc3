// SPDX-License-Identifier: Apache-2.0
// Copyright The AnyACL Authors
//
// Tokens are packed once, as FLOAT, in the order in which the register tile of products (matmul/panel-inl.h) reads them. A task
// has one tile of tokens whose numbers stand side by side in vectors ("lanes"): queries in the forward pass and for dq, keys
// for dk and dv. It walks over the tiles of the other side ("rows"): a product gives scores [rows, lanes], the soft-max runs
// along the lanes, and what it leaves is an operand of the next product as it lies. Every sum has one order, whatever the
// number of threads.
#include "ops/attention/attention.h"

#include <algorithm>
#include <cmath>
#include <cstring>
#include <limits>
#include <tuple>
#include <utility>

#undef HWY_TARGET_INCLUDE
#define HWY_TARGET_INCLUDE "ops/attention/attention.cpu.cc"
#include "cpu/family_targets.h"
#include "hwy/foreach_target.h"
#include "hwy/highway.h"
//
#include "cpu/kernels.h"
#include "cpu/parallel.h"
#include "cpu/simd-inl.h"
#include "ops/matmul/panel-inl.h"
#include "ops/pointwise/blocks.h"
#include "ops/random/philox-inl.h"

HWY_BEFORE_NAMESPACE();
namespace anyacl {
namespace attention {
namespace HWY_NAMESPACE {

namespace hn = hwy::HWY_NAMESPACE;
namespace gemm = anyacl::HWY_NAMESPACE::gemm;
using cpu::CeilDiv;
using cpu::HWY_NAMESPACE::Exp;
using gemm::D;
using gemm::kColumns;
using gemm::kLanes;
using gemm::kRows;
using gemm::V;
using pointwise::RunConversion;

constexpr float kInfinity = std::numeric_limits<float>::infinity();
constexpr int64_t kRun = 256;  // numbers of a token that are converted at a time
static_assert(kTile % kRows == 0 && kTile % kColumns == 0);

Sequence SequenceAt(const Problem& p, int64_t s) {
  if (p.table) return p.table[s];
  Sequence seq = p.alike;
  seq.q_place = s * Padded(seq.q_count);
  seq.k_place = p.shared_keys ? 0 : s * Padded(seq.k_count);
  seq.positions = s * p.heads * seq.q_count * seq.k_count;
  seq.stats = s * p.heads * seq.q_count;
  return seq;
}
int64_t QueryPlace(const Problem& p, const Sequence& seq, int64_t head) { return seq.q_place * p.heads + head * Padded(seq.q_count); }
int64_t KeyPlace(const Problem& p, const Sequence& seq, int64_t head) { return seq.k_place * p.k_heads + head * Padded(seq.k_count); }
int64_t Width(const Tokens* parts) { return parts[0].width + parts[1].width; }

// The most tokens of a sequence: tasks are counted by it.
struct Most {
  int64_t queries = 0, keys = 0;
};
Most MostTokens(const Problem& p) {
  Most most;
  for (int64_t s = 0; s < (p.table ? p.sequences : 1); ++s) {
    const Sequence seq = SequenceAt(p, s);
    most = {std::max(most.queries, seq.q_count), std::max(most.keys, seq.k_count)};
  }
  return most;
}

// visit(sequence, head, first token of a tile), in parallel.
template <class Visit>
void ForTiles(int64_t sequences, int64_t heads, int64_t most_tokens, const Visit& visit) {
  const int64_t tiles = CeilDiv(most_tokens, kTile);
  cpu::ParallelFor(sequences * heads * tiles, [&](int64_t task) { visit(task / tiles / heads, task / tiles % heads, task % tiles * kTile); });
}

// visit(task, tables), in parallel. Each set of tables has neighbouring tasks, one behind the other.
template <class Visit>
void ForTasks(int64_t tasks, int64_t sets, float* tables, int64_t tables_of_set, const Visit& visit) {
  sets = std::min(sets, tasks);
  cpu::ParallelFor(sets, [&](int64_t set) {
    for (int64_t task = tasks * set / sets; task < tasks * (set + 1) / sets; ++task) visit(task, tables + set * tables_of_set * kTable);
  });
}

// --- packing ----------------------------------------------------------------------------------------------------------

// The page of a token of keys, or -1.
int64_t PageOf(const Problem& p, int64_t s, int64_t token) {
  const int64_t page = p.pages[s * p.pages_of_sequence + token / p.page_tokens];
  return page >= 0 && page < p.page_count ? page : -1;
}

// Where a token begins, in elements; -1: nowhere.
int64_t TokenAt(const Problem& p, const Tokens& x, int64_t s, int64_t h, int64_t token) {
  if (!x.paged) return s * x.sequence + h * x.head + token * x.token;
  const int64_t page = PageOf(p, s, token);
  return page < 0 ? -1 : page * x.sequence + h * x.head + token % p.page_tokens * x.token;
}

// Numbers of one token, in up to two parts, visited run by run.
template <class Take>
void ReadToken(const Problem& p, const Tokens* parts, int count, int64_t s, int64_t h, int64_t token, const Take& take) {
  HWY_ALIGN float run[kRun];
  int64_t before = 0;
  for (int part = 0; part < count; ++part) {
    const Tokens& x = parts[part];
    const RunConversion load = pointwise::LoadConversion(x.dtype, pointwise::Compute::kFloat);
    const auto* const data = static_cast<const unsigned char*>(x.data);
    const auto size = static_cast<int64_t>(SizeOf(x.dtype));
    const int64_t base = TokenAt(p, x, s, h, token);
    if (base < 0) std::fill_n(run, kRun, 0.0f);
    for (int64_t e = 0; e < x.width; e += kRun) {
      const int64_t length = std::min(kRun, x.width - e);
      if (base >= 0) load(data + (base + e * x.element) * size, x.element, run, 1, length);
      take(before + e, run, length);
    }
    before += x.width;
  }
}

// A tile of tokens as panels of `width` of them: number e of token t is at (t / width * numbers + e) * width + t % width.
void PackTile(const Problem& p, const Tokens* parts, int count, int64_t s, int64_t h, int64_t first, int64_t tokens, int64_t numbers, int64_t width, float* to) {
  if (tokens % width != 0) std::fill(to + tokens / width * width * numbers, to + CeilDiv(tokens, width) * width * numbers, 0.0f);
  for (int64_t t = 0; t < tokens; ++t) {
    float* const column = to + t / width * width * numbers + t % width;
    ReadToken(p, parts, count, s, h, first + t, [&](int64_t e, const float* run, int64_t length) {
      for (int64_t i = 0; i < length; ++i) column[(e + i) * width] = run[i];
    });
  }
}

// The same as panels of numbers: number e of token t is at (e / kRows * tokens + t) * kRows + e % kRows.
void PackAcross(const Problem& p, const Tokens* parts, int count, int64_t s, int64_t h, int64_t first, int64_t tokens, int64_t numbers, float* to) {
  const int64_t whole = numbers / kRows;
  if (numbers % kRows != 0) std::fill(to + whole * kRows * tokens, to + (whole + 1) * kRows * tokens, 0.0f);
  for (int64_t t = 0; t < tokens; ++t) {
    ReadToken(p, parts, count, s, h, first + t, [&](int64_t e, const float* run, int64_t length) {
      for (int64_t i = 0; i < length; ++i) to[((e + i) / kRows * tokens + t) * kRows + (e + i) % kRows] = run[i];
    });
  }
}

enum class Form { kRows, kColumns, kAcross };

// All tokens of one side. `parts` of queries (by head of queries) or of keys.
void Pack(const Problem& p, const Most& most, bool keys, const Tokens* parts, int count, Form form, float* packed) {
  int64_t numbers = 0;
  for (int i = 0; i < count; ++i) numbers += parts[i].width;
  const int64_t sequences = keys && p.shared_keys ? 1 : p.sequences;
  ForTiles(sequences, keys ? p.k_heads : p.heads, keys ? most.keys : most.queries, [&](int64_t s, int64_t h, int64_t first) {
    const Sequence seq = SequenceAt(p, s);
    const int64_t tokens = std::min(kTile, (keys ? seq.k_count : seq.q_count) - first);
    if (tokens <= 0) return;
    const int64_t place = (keys ? KeyPlace(p, seq, h) : QueryPlace(p, seq, h)) + first, begin = (keys ? seq.k_begin : seq.q_begin) + first;
    if (form == Form::kAcross) return PackAcross(p, parts, count, s, h, begin, tokens, numbers, packed + place * PaddedWidth(numbers));
    PackTile(p, parts, count, s, h, begin, tokens, numbers, form == Form::kRows ? kRows : kColumns, packed + place * numbers);
  });
}

// Lanes of the result are tokens: number e of lane c of a panel is at e * kColumns + c.
void Unpack(const Tokens* parts, int count, int64_t s, int64_t h, int64_t first, int64_t lanes, const float* panel, const float* factors) {
  HWY_ALIGN float run[kRun];
  for (int64_t c = 0; c < lanes; ++c) {
    int64_t before = 0;
    for (int part = 0; part < count; ++part) {
      const Tokens& x = parts[part];
      const RunConversion store = pointwise::StoreConversion(pointwise::Compute::kFloat, x.dtype);
      auto* const data = static_cast<unsigned char*>(x.data);
      const int64_t base = s * x.sequence + h * x.head + (first + c) * x.token;
      for (int64_t e = 0; e < x.width; e += kRun) {
        const int64_t length = std::min(kRun, x.width - e);
        for (int64_t i = 0; i < length; ++i) run[i] = panel[(before + e + i) * kColumns + c] * factors[c];
        store(run, 1, data + (base + e * x.element) * static_cast<int64_t>(SizeOf(x.dtype)), x.element, length);
      }
      before += x.width;
    }
  }
}

// c [rows, kColumns] = or += a [rows, depth] in panels * b [depth, kColumns]
template <bool kFresh>
HWY_INLINE void Multiply(const float* a, int64_t rows, const float* b, int64_t depth, float* c) {
  for (int64_t r = 0; r < rows; r += kRows) gemm::Panel<kFresh>(a + r * depth, b, depth, c + r * kColumns, kColumns);
}

// --- what takes part, what is added, what is dropped --------------------------------------------------------------------

struct Span {
  int64_t begin, end;
};

// Queries [i0, i1) against keys [j0, j1) of one sequence and head.
struct Block {
  int64_t s, head, i0, i1, j0, j1;
};

class Extras {
 public:
  explicit Extras(const Problem& p) : p_(p) {
    if (p.pse_kind == Pse::kAdded || p.pse_kind == Pse::kScaled) load_ = pointwise::LoadConversion(p.pse_type, pointwise::Compute::kFloat);
  }

  // Keys that some query of [i0, i1) may see.
  static Span Keys(const Sequence& seq, int64_t i0, int64_t i1) {
    const int64_t end = std::min(seq.k_count, std::max(seq.prefix, i1 + seq.last));
    const int64_t begin = seq.prefix > 0 ? 0 : std::max<int64_t>(i0 + seq.first, 0);
    return begin < end ? Span{begin, end} : Span{0, 0};  // a tile that begins behind the last key has none
  }
  static bool AllTakePart(const Sequence& seq, const Block& b) {
    return b.j1 <= seq.prefix || (b.i1 - 1 + seq.first <= b.j0 && b.j1 - 1 <= b.i0 + seq.last);
  }
  bool Adds(const Sequence& seq, const Block& b) const { return p_.pse_kind != Pse::kNone || p_.mask || p_.pages || !AllTakePart(seq, b); }
  bool Drops() const { return p_.drops; }

  // What is added to scaled scores, -inf where a position takes no part: [j][i] if queries are lanes, else [i][j].
  void Added(const Sequence& seq, const Block& b, bool queries_are_lanes, float* to) const {
    const int64_t count = b.j1 - b.j0;
    HWY_ALIGN float run[kTile];
    for (int64_t i = b.i0; i < b.i1; ++i) {
      std::fill_n(run, count, 0.0f);
      AddPse(seq, b, i, run);
      Mask(seq, b, i, run);
      LeaveOutPages(b, run);
      Limit(seq, b, i, run);
      Put(run, count, i - b.i0, queries_are_lanes, to);
    }
    if (queries_are_lanes) ClearLanes(b.i1 - b.i0, count, to);
  }

  // 1 where a position is kept, else 0.
  void Kept(const Sequence& seq, const Block& b, bool queries_are_lanes, float* to) const {
    const int64_t count = b.j1 - b.j0;
    HWY_ALIGN float run[kTile];
    for (int64_t i = b.i0; i < b.i1; ++i) {
      const int64_t first = seq.positions + (b.head * seq.q_count + i) * seq.k_count + b.j0;
      p_.keep_bits ? Bits(first, count, run) : Draws(first, count, run);
      Put(run, count, i - b.i0, queries_are_lanes, to);
    }
    if (queries_are_lanes) ClearLanes(b.i1 - b.i0, count, to);
  }

  // Where the numbers that are added to query i's scores begin, of key `j`; they are Step() apart.
  int64_t PseAt(const Sequence& seq, int64_t s, int64_t head, int64_t i, int64_t j) const {
    const int64_t* const strides = p_.pse_strides;
    if (p_.pse_flat) return seq.pse + ((p_.pse_flat_rows ? head * seq.q_count + i : head) * seq.k_count) + j;
    if (p_.count_from_first) std::tie(i, j) = std::pair(seq.q_begin + i, seq.k_begin + j);
    if (p_.pse_period == 0) return s * strides[0] + head * strides[1] + i * strides[2] + j * strides[3];
    const int64_t behind = seq.q_count - p_.pse_period;
    const int64_t row = i >= behind ? i - behind : i % p_.pse_period;
    const int64_t column = i >= behind ? j : p_.pse_width - (i - j) - (p_.pse_period - row);
    return s * strides[0] + head * strides[1] + row * strides[2] + column * strides[3];
  }
  int64_t PseStep() const { return p_.pse_flat ? 1 : p_.pse_strides[3]; }

 private:
  static void Put(const float* run, int64_t count, int64_t i, bool queries_are_lanes, float* to) {
    if (!queries_are_lanes) return (void)std::copy_n(run, count, to + i * kColumns);
    for (int64_t j = 0; j < count; ++j) to[j * kColumns + i] = run[j];
  }
  static void ClearLanes(int64_t lanes, int64_t rows, float* to) {
    for (int64_t r = 0; r < rows && lanes < kColumns; ++r) std::fill(to + r * kColumns + lanes, to + (r + 1) * kColumns, 0.0f);
  }

  void AddPse(const Sequence& seq, const Block& b, int64_t i, float* run) const {
    const int64_t count = b.j1 - b.j0;
    if (p_.pse_kind == Pse::kNone) return;
    if (p_.pse_kind == Pse::kDistance || p_.pse_kind == Pse::kRootOfDistance) {
      const float slope = static_cast<const float*>(p_.pse)[b.s * p_.pse_strides[0] + b.head * p_.pse_strides[1]];
      for (int64_t j = 0; j < count; ++j) {
        const auto distance = static_cast<float>(std::abs(b.j0 + j - i + p_.pse_shift));
        run[j] = -slope * (p_.pse_kind == Pse::kDistance ? distance : std::sqrt(distance));
      }
      return;
    }
    // Of repeated rows, columns outside the first one belong to keys behind the query.
    int64_t from = 0, to = count;
    if (p_.pse_period != 0 && i < seq.q_count - p_.pse_period) {
      const int64_t first = p_.pse_width - i - p_.pse_period + i % p_.pse_period + b.j0;
      from = std::clamp<int64_t>(-first, 0, count);
      to = std::clamp<int64_t>(p_.pse_width - first, from, count);
    }
    const auto* const data = static_cast<const unsigned char*>(p_.pse);
    load_(data + PseAt(seq, b.s, b.head, i, b.j0 + from) * static_cast<int64_t>(SizeOf(p_.pse_type)), PseStep(), run + from, 1, to - from);
    if (p_.pse_kind == Pse::kScaled) {
      for (int64_t j = 0; j < count; ++j) run[j] *= p_.scale;
    }
  }

  void Mask(const Sequence& seq, const Block& b, int64_t i, float* run) const {
    if (!p_.mask) return;
    const int64_t* const strides = p_.mask_strides;
    const int64_t di = p_.count_from_first ? seq.q_begin : 0, dj = p_.count_from_first ? seq.k_begin : 0;
    const auto* const at = static_cast<const unsigned char*>(p_.mask) + b.s * strides[0] + b.head * strides[1] + (i + di) * strides[2] +
                           (b.j0 + dj) * strides[3];
    for (int64_t j = 0; j < b.j1 - b.j0; ++j) run[j] = at[j * strides[3]] != 0 ? -kInfinity : run[j];
  }

  void LeaveOutPages(const Block& b, float* run) const {
    if (!p_.pages) return;
    for (int64_t j = b.j0; j < b.j1; ++j) {
      if (PageOf(p_, b.s, j) < 0) run[j - b.j0] = -kInfinity;
    }
  }

  static void Limit(const Sequence& seq, const Block& b, int64_t i, float* run) {
    const int64_t begin = i + seq.first, end = i + seq.last;
    for (int64_t j = std::max(b.j0, seq.prefix); j < b.j1; ++j) {
      if (j < begin || j > end) run[j - b.j0] = -kInfinity;
    }
  }

  void Bits(int64_t first, int64_t count, float* run) const {
    const auto* const bits = static_cast<const unsigned char*>(p_.keep_bits);
    for (int64_t j = 0; j < count; ++j) run[j] = static_cast<float>(bits[(first + j) / 8] >> ((first + j) % 8) & 1);
  }
  void Draws(int64_t first, int64_t count, float* run) const {
    namespace philox = random::HWY_NAMESPACE;
    uint32_t words[kTile + 3 + philox::kSpareWords];
    const uint32_t* const word = philox::WordsFrom(p_.keep_key, static_cast<uint64_t>(first), count, words);
    for (int64_t j = 0; j < count; ++j) run[j] = philox::OpenUniform(word[j]) < p_.keep ? 1.0f : 0.0f;
  }

  const Problem& p_;
  RunConversion load_ = nullptr;
};

// s = scale * x (+ added), -inf where that says so.
HWY_INLINE V Score(V x, V scale, const float* added) {
  const D d;
  if (!added) return hn::Mul(x, scale);
  const V add = hn::LoadU(d, added), out = hn::Set(d, -kInfinity);
  return hn::IfThenElse(hn::Eq(add, out), out, hn::MulAdd(x, scale, add));
}

// --- forward ----------------------------------------------------------------------------------------------------------

class Forward {
 public:
  explicit Forward(const ForwardParams& params) : f_(params), p_(params.problem), extras_(p_), most_(MostTokens(p_)) {}

  void Run() {
    Pack(p_, most_, false, f_.q, 2, Form::kColumns, f_.packed_q);
    Pack(p_, most_, true, f_.k, 2, Form::kRows, f_.packed_k);
    Pack(p_, most_, true, &f_.v, 1, Form::kAcross, f_.packed_v);
    const int64_t tiles = CeilDiv(most_.queries, kTile);
    ForTasks(p_.sequences * p_.heads * tiles, f_.sets, f_.tables, kForwardTables, [&](int64_t task, float* tables) {
      Tile(task / tiles / p_.heads, task / tiles % p_.heads, task % tiles * kTile, tables);
    });
  }

 private:
  // Of the queries of a tile.
  struct State {
    HWY_ALIGN float most[kTile];
    HWY_ALIGN float sum[kTile];
  };

  void Tile(int64_t s, int64_t h, int64_t i0, float* tables) const {
    const Sequence seq = SequenceAt(p_, s);
    const int64_t i1 = std::min(i0 + kTile, seq.q_count);
    if (i0 >= i1) return;
    State state;
    std::fill_n(state.most, kTile, -kInfinity);
    std::fill_n(state.sum, kTile, 0.0f);
    const int64_t across = PaddedWidth(f_.v.width), place = QueryPlace(p_, seq, h) + i0;
    float* const sums = f_.sums + place * across;
    const int64_t panels = CeilDiv(i1 - i0, kColumns);
    std::fill_n(sums, panels * kColumns * across, 0.0f);
    const Span keys = Extras::Keys(seq, i0, i1);
    for (int64_t j0 = keys.begin / kTile * kTile; j0 < keys.end; j0 += kTile) {
      const int64_t j1 = std::min(j0 + kTile, seq.k_count);
      for (int64_t i = i0; i < i1; i += kColumns) Step(seq, {s, h, i, std::min(i + kColumns, i1), j0, j1}, i - i0, tables, sums + (i - i0) * across, &state);
    }
    Finish(s, h, seq, i0, i1, sums, &state);
  }

  void Step(const Sequence& seq, const Block& b, int64_t lane, float* tables, float* sums, State* state) const {
    float *const scores = tables, *const added = tables + kTable;
    const int64_t width = Width(f_.q), rows = b.j1 - b.j0, k_place = KeyPlace(p_, seq, b.head / (p_.heads / p_.k_heads)) + b.j0;
    Multiply<true>(f_.packed_k + k_place * width, rows, f_.packed_q + (QueryPlace(p_, seq, b.head) + b.i0) * width, width, scores);
    const bool adds = extras_.Adds(seq, b);
    if (adds) extras_.Added(seq, b, true, added);
    Soften(scores, adds ? added : nullptr, rows, state->most + lane, state->sum + lane, sums);
    if (extras_.Drops()) {
      extras_.Kept(seq, b, true, added);
      for (int64_t i = 0; i < rows * kColumns; ++i) scores[i] *= added[i];
    }
    const int64_t across = PaddedWidth(f_.v.width);
    Multiply<false>(f_.packed_v + k_place * across, f_.v.width, scores, rows, sums);
  }

  // Scores become exp(s - most); what was summed up before is brought to the new `most`.
  void Soften(float* scores, const float* added, int64_t rows, float* most, float* sum, float* sums) const {
    const D d;
    const V scale = hn::Set(d, p_.scale), nothing = hn::Set(d, -kInfinity);
    for (int64_t c = 0; c < kColumns; c += kLanes) {
      const V before = hn::LoadU(d, most + c);
      V now = before;
      for (int64_t r = 0; r < rows; ++r) {
        float* const at = scores + r * kColumns + c;
        const V s = Score(hn::LoadU(d, at), scale, added ? added + r * kColumns + c : nullptr);
        hn::StoreU(s, d, at);
        now = hn::Max(now, s);
      }
      const V shift = hn::IfThenElse(hn::Eq(now, nothing), hn::Zero(d), now);
      V total = hn::Zero(d);
      for (int64_t r = 0; r < rows; ++r) {
        float* const at = scores + r * kColumns + c;
        const V e = Exp(hn::Sub(hn::LoadU(d, at), shift));
        hn::StoreU(e, d, at);
        total = hn::Add(total, e);
      }
      hn::StoreU(now, d, most + c);
      if (hn::AllTrue(d, hn::Eq(before, now))) {
        hn::StoreU(hn::Add(hn::LoadU(d, sum + c), total), d, sum + c);
        continue;
      }
      const V factor = Exp(hn::Sub(before, shift));
      hn::StoreU(hn::MulAdd(hn::LoadU(d, sum + c), factor, total), d, sum + c);
      for (int64_t e = 0; e < f_.v.width; ++e) {
        float* const at = sums + e * kColumns + c;
        hn::StoreU(hn::Mul(hn::LoadU(d, at), factor), d, at);
      }
    }
  }

  void Finish(int64_t s, int64_t h, const Sequence& seq, int64_t i0, int64_t i1, const float* sums, State* state) const {
    HWY_ALIGN float factors[kTile];
    for (int64_t i = i0; i < i1; ++i) {
      float most = state->most[i - i0], sum = state->sum[i - i0];
      factors[i - i0] = p_.keep_scale / sum;
      if (most == -kInfinity && sum == 0) {
        factors[i - i0] = 0;
        most = seq.k_count == 0 ? 0 : -kNothing;
        sum = seq.k_count == 0 ? 0 : kNothing;
      }
      const int64_t row = seq.stats + h * seq.stats_head + i * f_.stats_token;
      if (f_.most) std::fill_n(f_.most + row * kCopies, kCopies, most);
      if (f_.sum) std::fill_n(f_.sum + row * kCopies, kCopies, sum);
      if (f_.log_sum) f_.log_sum[row] = factors[i - i0] == 0 ? kInfinity : most + std::log(sum);
    }
    const int64_t across = PaddedWidth(f_.v.width);
    for (int64_t i = i0; i < i1; i += kColumns) {
      Unpack(&f_.out, 1, s, h, seq.q_begin + i, std::min(kColumns, i1 - i), sums + (i - i0) * across, factors + (i - i0));
    }
  }

  const ForwardParams& f_;
  const Problem& p_;
  Extras extras_;
  Most most_;
};

// --- gradient ---------------------------------------------------------------------------------------------------------

// Two passes: queries as lanes for dq, keys as lanes for dk and dv. Both make P anew; nothing is added by two tasks.
class Backward {
 public:
  explicit Backward(const BackwardParams& params) : b_(params), p_(params.problem), extras_(p_), most_(MostTokens(p_)) {}

  void Run() {
    Pack(p_, most_, true, b_.k, 2, Form::kAcross, b_.across_k);
    PackBoth(Form::kColumns, Form::kRows);
    ForTiles(p_.sequences, p_.heads, most_.queries, [&](int64_t s, int64_t h, int64_t first) { Statistics(s, h, first); });
    const int64_t tiles = CeilDiv(most_.queries, kTile);
    InTables(p_.sequences * p_.heads * tiles, [&](int64_t task, float* tables) {
      QueryTile(task / tiles / p_.heads, task / tiles % p_.heads, task % tiles * kTile, tables);
    });
    PackBoth(Form::kRows, Form::kColumns);
    Pack(p_, most_, false, b_.q, 2, Form::kAcross, b_.across_q);
    Pack(p_, most_, false, &b_.dy, 1, Form::kAcross, b_.across_dy);
    KeyTiles();
  }

 private:
  template <class Visit>
  void InTables(int64_t tasks, const Visit& visit) const {
    ForTasks(tasks, b_.sets, b_.tables, kBackwardTables, visit);
  }

  void PackBoth(Form queries, Form keys) const {
    Pack(p_, most_, false, b_.q, 2, queries, b_.packed_q);
    Pack(p_, most_, false, &b_.dy, 1, queries, b_.packed_dy);
    Pack(p_, most_, true, b_.k, 2, keys, b_.packed_k);
    Pack(p_, most_, true, &b_.v, 1, keys, b_.packed_v);
  }

  // M, 1 / Z and the sum of dy * out, each for a panel of queries after the other.
  struct Stats {
    float* most;
    float* inverse;
    float* delta;
  };
  Stats StatsAt(int64_t place) const { return {b_.stats + place, b_.stats + Places() + place, b_.stats + 2 * Places() + place}; }
  int64_t Places() const {
    const Sequence last = SequenceAt(p_, p_.sequences - 1);
    return (last.q_place + Padded(last.q_count)) * p_.heads;
  }
  void Statistics(int64_t s, int64_t h, int64_t i0) const {
    const Sequence seq = SequenceAt(p_, s);
    const int64_t i1 = std::min(i0 + kTile, seq.q_count), place = QueryPlace(p_, seq, h);
    const Stats stats = StatsAt(place);
    for (int64_t i = i0; i < std::min(i0 + kTile, Padded(seq.q_count)); ++i) stats.most[i] = stats.inverse[i] = stats.delta[i] = 0;
    for (int64_t i = i0; i < i1; ++i) {
      const int64_t row = (seq.stats + h * seq.stats_head + i * b_.stats_token) * kCopies;
      stats.most[i] = b_.most[row];
      stats.inverse[i] = 1 / b_.sum[row];
      double sum = 0;
      HWY_ALIGN float other[kRun];
      const RunConversion load = pointwise::LoadConversion(b_.out.dtype, pointwise::Compute::kFloat);
      const auto* const out = static_cast<const unsigned char*>(b_.out.data);
      const int64_t base = s * b_.out.sequence + h * b_.out.head + (seq.q_begin + i) * b_.out.token;
      ReadToken(p_, &b_.dy, 1, s, h, seq.q_begin + i, [&](int64_t e, const float* run, int64_t length) {
        load(out + (base + e * b_.out.element) * static_cast<int64_t>(SizeOf(b_.out.dtype)), b_.out.element, other, 1, length);
        for (int64_t k = 0; k < length; ++k) sum += static_cast<double>(run[k]) * static_cast<double>(other[k]);
      });
      stats.delta[i] = static_cast<float>(sum);
    }
  }

  int64_t Group() const { return p_.heads / p_.k_heads; }

  // Scores and the gradients of P of one block, [rows, lanes].
  struct Scores {
    explicit Scores(float* tables) : s(tables), dp(tables + kTable), added(tables + 2 * kTable), kept(tables + 3 * kTable) {}
    float* s;
    float* dp;
    float* added;
    float* kept;
    bool adds;
    bool drops;
  };
  void Prepare(const Sequence& seq, const Block& b, bool queries_are_lanes, Scores* x) const {
    const int64_t width = Width(b_.q), k_place = KeyPlace(p_, seq, b.head / Group()) + b.j0, q_place = QueryPlace(p_, seq, b.head) + b.i0;
    const float *const q = b_.packed_q + q_place * width, *const k = b_.packed_k + k_place * width;
    const float *const dy = b_.packed_dy + q_place * b_.v.width, *const v = b_.packed_v + k_place * b_.v.width;
    const int64_t rows = queries_are_lanes ? b.j1 - b.j0 : b.i1 - b.i0;
    Multiply<true>(queries_are_lanes ? k : q, rows, queries_are_lanes ? q : k, width, x->s);
    Multiply<true>(queries_are_lanes ? v : dy, rows, queries_are_lanes ? dy : v, b_.v.width, x->dp);
    x->adds = extras_.Adds(seq, b);
    x->drops = extras_.Drops();
    if (x->adds) extras_.Added(seq, b, queries_are_lanes, x->added);
    if (x->drops) extras_.Kept(seq, b, queries_are_lanes, x->kept);
  }

  // dS in place of dP and keep * P in place of s, for one vector; M, 1 / Z and delta of its queries.
  HWY_INLINE void Differentiate(Scores* x, int64_t at, V most, V inverse, V delta) const {
    const D d;
    const V s = Score(hn::LoadU(d, x->s + at), hn::Set(d, p_.scale), x->adds ? x->added + at : nullptr);
    V p = hn::Mul(Exp(hn::Sub(s, most)), inverse);
    V dp = hn::LoadU(d, x->dp + at), kept = p;
    if (x->drops) {
      const V keep = hn::Mul(hn::LoadU(d, x->kept + at), hn::Set(d, p_.keep_scale));
      dp = hn::Mul(dp, keep);
      kept = hn::Mul(p, keep);
    }
    const auto out = hn::Eq(s, hn::Set(d, -kInfinity));
    hn::StoreU(hn::IfThenElse(out, hn::Zero(d), kept), d, x->s + at);
    hn::StoreU(hn::IfThenElse(out, hn::Zero(d), hn::Mul(p, hn::Sub(dp, delta))), d, x->dp + at);
  }

  void QueryTile(int64_t s, int64_t h, int64_t i0, float* tables) const {
    const Sequence seq = SequenceAt(p_, s);
    const int64_t i1 = std::min(i0 + kTile, seq.q_count);
    if (i0 >= i1) return;
    const D d;
    const int64_t width = Width(b_.q), across = PaddedWidth(width), place = QueryPlace(p_, seq, h) + i0;
    float* const sums = b_.dq_sums + place * across;
    std::fill_n(sums, CeilDiv(i1 - i0, kColumns) * kColumns * across, 0.0f);
    const Span keys = Extras::Keys(seq, i0, i1);
    Scores x(tables);
    for (int64_t j0 = keys.begin / kTile * kTile; j0 < keys.end; j0 += kTile) {
      const int64_t j1 = std::min(j0 + kTile, seq.k_count), k_place = KeyPlace(p_, seq, h / Group()) + j0;
      for (int64_t i = i0; i < i1; i += kColumns) {
        Prepare(seq, {s, h, i, std::min(i + kColumns, i1), j0, j1}, true, &x);
        const Stats stats = StatsAt(place + i - i0);
        for (int64_t c = 0; c < kColumns; c += kLanes) {
          const V most = hn::LoadU(d, stats.most + c), inverse = hn::LoadU(d, stats.inverse + c), delta = hn::LoadU(d, stats.delta + c);
          for (int64_t r = 0; r < j1 - j0; ++r) Differentiate(&x, r * kColumns + c, most, inverse, delta);
        }
        Multiply<false>(b_.across_k + k_place * across, width, x.dp, j1 - j0, sums + (i - i0) * across);
      }
    }
    HWY_ALIGN float factors[kTile];
    std::fill_n(factors, kTile, p_.scale);
    for (int64_t i = i0; i < i1; i += kColumns) Unpack(b_.dq, 2, s, h, seq.q_begin + i, std::min(kColumns, i1 - i), sums + (i - i0) * across, factors);
  }

  // Tasks own what they add to: the gradient of numbers that several sequences or rows share belongs to one head.
  void KeyTiles() const {
    const bool by_head = b_.dpse && !p_.pse_flat && (p_.pse_period != 0 || (p_.pse_strides[0] == 0 && p_.sequences > 1));
    const int64_t sequences = p_.shared_keys ? 1 : p_.sequences;
    if (!by_head) {
      const int64_t tiles = CeilDiv(most_.keys, kTile);
      InTables(sequences * p_.k_heads * tiles, [&](int64_t task, float* tables) {
        KeyTile(task / tiles / p_.k_heads, task / tiles % p_.k_heads, task % tiles * kTile, tables);
      });
      return;
    }
    InTables(p_.k_heads, [&](int64_t h, float* tables) {
      for (int64_t s = 0; s < sequences; ++s) {
        for (int64_t first = 0; first < most_.keys; first += kTile) KeyTile(s, h, first, tables);
      }
    });
  }

  void KeyTile(int64_t ks, int64_t kh, int64_t j0, float* tables) const {
    const Sequence keys = SequenceAt(p_, ks);
    const int64_t j1 = std::min(j0 + kTile, keys.k_count);
    if (j0 >= j1) return;
    const int64_t across = PaddedWidth(Width(b_.q)), v_across = PaddedWidth(b_.v.width), place = KeyPlace(p_, keys, kh) + j0;
    float *const dk = b_.dk_sums + place * across, *const dv = b_.dv_sums + place * v_across;
    const int64_t lanes = CeilDiv(j1 - j0, kColumns) * kColumns;
    std::fill_n(dk, lanes * across, 0.0f);
    std::fill_n(dv, lanes * v_across, 0.0f);
    for (int64_t s = ks; s < (p_.shared_keys ? p_.sequences : ks + 1); ++s) {
      const Sequence seq = SequenceAt(p_, s);
      for (int64_t h = kh * Group(); h < (kh + 1) * Group(); ++h) {
        for (int64_t i0 = 0; i0 < seq.q_count; i0 += kTile) AddQueries(seq, s, h, i0, j0, j1, tables, dk, dv);
      }
    }
    HWY_ALIGN float factors[kTile], ones[kTile];
    std::fill_n(factors, kTile, p_.scale);
    std::fill_n(ones, kTile, 1.0f);
    for (int64_t j = j0; j < j1; j += kColumns) {
      Unpack(b_.dk, 2, ks, kh, keys.k_begin + j, std::min(kColumns, j1 - j), dk + (j - j0) * across, factors);
      Unpack(&b_.dv, 1, ks, kh, keys.k_begin + j, std::min(kColumns, j1 - j), dv + (j - j0) * v_across, ones);
    }
  }

  void AddQueries(const Sequence& seq, int64_t s, int64_t h, int64_t i0, int64_t j0, int64_t j1, float* tables, float* dk, float* dv) const {
    const int64_t i1 = std::min(i0 + kTile, seq.q_count);
    const Span keys = Extras::Keys(seq, i0, i1);
    if (keys.begin >= j1 || keys.end <= j0) return;
    const D d;
    const int64_t width = Width(b_.q), across = PaddedWidth(width), v_across = PaddedWidth(b_.v.width), place = QueryPlace(p_, seq, h) + i0;
    const Stats stats = StatsAt(place);
    Scores x(tables);
    for (int64_t j = j0; j < j1; j += kColumns) {
      const Block block = {s, h, i0, i1, j, std::min(j + kColumns, j1)};
      Prepare(seq, block, false, &x);
      for (int64_t r = 0; r < i1 - i0; ++r) {
        const V most = hn::Set(d, stats.most[r]), inverse = hn::Set(d, stats.inverse[r]), delta = hn::Set(d, stats.delta[r]);
        for (int64_t c = 0; c < kColumns; c += kLanes) Differentiate(&x, r * kColumns + c, most, inverse, delta);
      }
      if (b_.dpse) AddPseGradient(seq, block, x.dp);
      Multiply<false>(b_.across_dy + place * v_across, b_.v.width, x.s, i1 - i0, dv + (j - j0) * v_across);
      Multiply<false>(b_.across_q + place * across, width, x.dp, i1 - i0, dk + (j - j0) * across);
    }
  }

  // dpse has the strides of pse, which is dense here but for repeated axes.
  void AddPseGradient(const Sequence& seq, const Block& b, const float* ds) const {
    const float factor = p_.pse_kind == Pse::kScaled ? p_.scale : 1;
    for (int64_t i = b.i0; i < b.i1; ++i) {
      for (int64_t j = b.j0; j < b.j1; ++j) {
        const int64_t at = p_.pse_period != 0 && i < seq.q_count - p_.pse_period ? Repeated(i, j) : 0;
        if (at < 0 || at >= std::max<int64_t>(p_.pse_width, 1)) continue;
        b_.dpse[extras_.PseAt(seq, b.s, b.head, i, j)] += factor * ds[(i - b.i0) * kColumns + j - b.j0];
      }
    }
  }
  int64_t Repeated(int64_t i, int64_t j) const { return p_.pse_width - (i - j) - (p_.pse_period - i % p_.pse_period); }

  const BackwardParams& b_;
  const Problem& p_;
  Extras extras_;
  Most most_;
};

void RunForward(const ForwardParams& p) { Forward(p).Run(); }
void RunBackward(const BackwardParams& p) { Backward(p).Run(); }

}  // namespace HWY_NAMESPACE
}  // namespace attention
}  // namespace anyacl
HWY_AFTER_NAMESPACE();

#if HWY_ONCE
namespace anyacl {
namespace attention {
namespace {

HWY_EXPORT(RunForward);
HWY_EXPORT(RunBackward);

void Attention(const ForwardParams& p) { ANYACL_FAMILY_DISPATCH(RunForward)(p); }
void AttentionGrad(const BackwardParams& p) { ANYACL_FAMILY_DISPATCH(RunBackward)(p); }
void Write(const SequencesParams& p) { std::copy_n(p.values, p.count, p.to); }

void Pad(const int64_t* padding, int64_t tokens, int64_t* begin, int64_t* count) {
  *begin = tokens - std::clamp<int64_t>(*padding, 0, tokens) - *count;
  if (*begin >= 0) return;
  *begin = 0;
  *count = 0;
}
void PadAll(const PaddingParams& p) {
  for (Sequence* s = p.table; s != p.table + p.count; ++s) {
    if (p.keys) Pad(p.keys, p.k_tokens, &s->k_begin, &s->k_count);
    if (!p.queries) continue;
    Pad(p.queries, p.q_tokens, &s->q_begin, &s->q_count);
    s->stats += s->q_begin;
  }
}

}  // namespace
}  // namespace attention

namespace cpu {

using attention::BackwardParams;
using attention::ForwardParams;
using attention::PaddingParams;
using attention::SequencesParams;

std::span<const Kernel> AttentionKernels() {
  static constexpr Kernel kernels[] = {MakeKernel<ForwardParams, FitsAlways<ForwardParams>, attention::Attention>("tiles")};
  return kernels;
}
std::span<const Kernel> AttentionGradKernels() {
  static constexpr Kernel kernels[] = {MakeKernel<BackwardParams, FitsAlways<BackwardParams>, attention::AttentionGrad>("tiles")};
  return kernels;
}
std::span<const Kernel> AttentionPaddingKernels() {
  static constexpr Kernel kernels[] = {MakeKernel<PaddingParams, FitsAlways<PaddingParams>, attention::PadAll>("shift")};
  return kernels;
}
std::span<const Kernel> AttentionSequencesKernels() {
  static constexpr Kernel kernels[] = {MakeKernel<SequencesParams, FitsAlways<SequencesParams>, attention::Write>("copy")};
  return kernels;
}

}  // namespace cpu
}  // namespace anyacl
#endif  // HWY_ONCE
