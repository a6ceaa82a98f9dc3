// SPDX-License-Identifier: Apache-2.0
// Copyright The AnyACL Authors
//
// Attention, tile by tile with a streaming soft-max, and its gradient: no matrix of scores is ever whole, memory is linear in the
// number of tokens.
//
//   s = scale * (q_i . k_j) + pse, or scale * (q_i . k_j + pse)
//   M_i = max_j s, Z_i = sum_j exp(s - M_i), P = exp(s - M_i) / Z_i over the positions that take part
//   out_i = sum_j keep * P * v_j
#ifndef ANYACL_OPS_ATTENTION_ATTENTION_H_
#define ANYACL_OPS_ATTENTION_ATTENTION_H_

#include <algorithm>
#include <cstdint>

#include "core/dtype.h"
#include "ops/matmul/gemm.h"
#include "ops/random/random.h"

namespace anyacl::attention {

inline constexpr int64_t kCopies = 8;       // of M and of Z, one behind the other
inline constexpr float kNothing = 3.4028235e38f;  // -M and Z of a row where no position takes part

// Tokens that are worked on together: whole panels of every SIMD target.
inline constexpr int64_t kTile = 96;
static_assert(kTile % kMostPanelRows == 0 && kTile % kMostPanelColumns == 0);
constexpr int64_t RoundUp(int64_t x, int64_t to) { return (x + to - 1) / to * to; }
// Room for the tokens of a sequence, in packed arrays.
constexpr int64_t Padded(int64_t tokens) {
  const int64_t rest = tokens % kTile;
  return tokens - rest + std::max(RoundUp(rest, kMostPanelRows), RoundUp(rest, kMostPanelColumns));
}
// Tables of a tile in work are too long for the stacks of small threads: they lie in scratch memory. Tiles that follow each
// other share a set of tables; as many as there are sets are in work at the same time.
inline constexpr int64_t kTable = kTile * kMostPanelColumns;
inline constexpr int64_t kForwardTables = 2, kBackwardTables = 4;
inline constexpr int64_t kMostSets = 256;
// Room for the numbers of a token that lie across.
constexpr int64_t PaddedWidth(int64_t width) { return RoundUp(width, kMostPanelRows); }

// Tokens as they lie: number `e` of a token is at data + sequence * s + head * h + token * t + element * e, in elements.
struct Tokens {
  void* data;
  int64_t sequence;
  int64_t head;
  int64_t token;
  int64_t element;
  int64_t width;
  DType dtype;
  bool paged;  // tokens are where Problem::pages says: `sequence` is from page to page, `token` inside a page
};

// One sequence of queries and its keys.
struct Sequence {
  int64_t q_begin;    // tokens
  int64_t q_count;
  int64_t k_begin;
  int64_t k_count;
  int64_t q_place;    // of the packed tokens, times the number of heads
  int64_t k_place;
  int64_t first;      // position (i, j) takes part if i + first <= j <= i + last, or j < prefix
  int64_t last;
  int64_t prefix;
  int64_t positions;  // of sequences in front, for bits of dropout
  int64_t pse;        // numbers of sequences in front
  int64_t stats;      // rows of M and Z in front ...
  int64_t stats_head; // ... and from head to head
};

// Sequences are handed to kernels in memory: a call may have any number of them.
inline constexpr int kSequencesAtOnce = 16;
struct SequencesParams {
  Sequence* to;
  int64_t count;
  Sequence values[kSequencesAtOnce];
};

// Left padding that device memory tells of: sequences end so many tokens before the last one, and begin accordingly. What
// would begin before the first token is empty.
struct PaddingParams {
  Sequence* table;
  int64_t count;
  const int64_t* queries;  // null: none
  const int64_t* keys;
  int64_t q_tokens;
  int64_t k_tokens;
};

enum class Pse : uint8_t { kNone, kAdded, kScaled, kDistance, kRootOfDistance };

struct Problem {
  const Sequence* table;  // null: all are like `alike`
  Sequence alike;
  int64_t sequences;
  int64_t heads;          // of queries
  int64_t k_heads;
  bool shared_keys;       // one sequence of keys for all
  float scale;

  // Numbers that are added to scores, of any strides; distances times slopes (FLOAT [sequences or 1, heads]).
  const void* pse;
  int64_t pse_strides[4];  // sequence, head, query, key
  int64_t pse_shift;       // of distances
  int64_t pse_width;       // columns, where the last rows stand for all (pse_period)
  int64_t pse_period;      // rows that are repeated, each 1 further; 0: all are there
  DType pse_type;
  Pse pse_kind;
  bool pse_flat;           // sequences one behind the other, of one row each ...
  bool pse_flat_rows;      // ... or of one per query

  // Positions that take no part.
  const void* mask;
  int64_t mask_strides[4];
  bool count_from_first;   // masks and pse count queries and keys from the first token, not from where a sequence begins

  // Keys in pages: token t of sequence s is in page pages[s * pages_of_sequence + t / page_tokens]. It takes no part if
  // there is no such page.
  const int32_t* pages;
  int64_t pages_of_sequence;
  int64_t page_tokens;
  int64_t page_count;

  const void* keep_bits;   // one per position
  random::Key keep_key;    // where there are none
  float keep;              // their probability
  float keep_scale;
  bool drops;
};

struct ForwardParams {
  Problem problem;
  Tokens q[2];             // heads of queries; the second part may have width 0
  Tokens k[2];
  Tokens v;
  Tokens out;
  float* most;             // [rows, kCopies]; null: not wanted
  float* sum;
  float* log_sum;          // [rows], M + ln Z, infinity where no position takes part; null: not wanted
  int64_t stats_token;     // rows from token to token
  float* packed_q;
  float* packed_k;
  float* packed_v;
  float* sums;
  float* tables;           // [sets, kForwardTables, kTable]
  int64_t sets;
};

struct BackwardParams {
  Problem problem;
  Tokens q[2];
  Tokens k[2];
  Tokens v;
  Tokens dy;
  Tokens out;
  Tokens dq[2];
  Tokens dk[2];
  Tokens dv;
  const float* most;
  const float* sum;
  int64_t stats_token;
  float* dpse;             // [pse], zeros before; null: not wanted
  float* stats;            // three numbers for each packed token
  float* packed_q;         // written anew between the two passes; those across and the sums share their memory
  float* packed_k;
  float* packed_v;
  float* packed_dy;
  float* across_q;
  float* across_k;
  float* across_dy;
  float* dq_sums;
  float* dk_sums;
  float* dv_sums;
  float* tables;           // [sets, kBackwardTables, kTable]
  int64_t sets;
};

}  // namespace anyacl::attention

#endif  // ANYACL_OPS_ATTENTION_ATTENTION_H_
