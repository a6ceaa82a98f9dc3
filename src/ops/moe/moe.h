// SPDX-License-Identifier: Apache-2.0
// Copyright The AnyACL Authors
//
// Mixtures of experts: which experts a token goes to, rows of tokens in the order of their experts, and back. Arrays are dense;
// where no dtype is told, FLOAT.
#ifndef ANYACL_OPS_MOE_MOE_H_
#define ANYACL_OPS_MOE_MOE_H_

#include <cstdint>

#include "core/dtype.h"

namespace anyacl::moe {

// The k best experts of every row. The better number comes first, NaN before all, of equal ones the lower expert.
enum class Gating : int32_t {
  kTopOfSoftmax,  // y: of the soft-max of all
  kSoftmaxOfTop,  // y: soft-max of the chosen
  kGrouped,       // of the best groups of experts
};

struct GatingParams {
  Gating gating;
  int64_t rows;
  int64_t experts;
  int64_t k;
  const float* x;
  const uint8_t* finished;  // [rows], may be null: rows whose experts all are number `experts`
  float* scores;            // [rows, experts]: soft-max or sigmoid, or x itself
  float* y;                 // [rows, k]
  int32_t* expert;          // [rows, k]
  int32_t* place;           // [rows, k], may be null: numbered column by column
  // kGrouped
  const float* bias;        // [experts], may be null: is added to the scores to choose by
  float* chosen_by;         // [rows, experts]
  float* group_scores;      // [rows, groups]
  int64_t groups;
  int64_t best_groups;
  bool sum_of_two;          // a group counts as its two best together, else as its best
  bool sigmoid;             // and results are divided by their sum
  float scale;
  float epsilon;
};

// What follows from the stable order of tokens by experts. Places count tokens row by row: place f is column f % k of row f / k.
enum class Routing : int32_t {
  kByRowIds,   // rows are named by row_ids
  kByPlaces,
  kCapacity,   // every expert has room for `capacity` rows
};

struct RouteParams {
  Routing routing = Routing::kByPlaces;
  int64_t places = 0;
  int64_t k = 0;
  int64_t rows = 0;
  int64_t kept = 0;             // rows of the result
  int64_t experts = 0;          // of counts, or of capacities
  int64_t capacity = 0;
  const int64_t* ids = nullptr;       // [places]
  const int64_t* order = nullptr;     // [places]: places by experts
  const int64_t* row_ids = nullptr;   // [places]
  int32_t* rank = nullptr;            // [places]: where each place (or row id) comes in the order, or in the result; -1: dropped
  int32_t* sorted_ids = nullptr;      // [places], may be null
  int32_t* counts = nullptr;          // [experts], may be null
  bool cumulative = false;
  int64_t* source = nullptr;          // [kept]: rows of x, -1: zeros
};

// out[i] = x[source[i]]
struct RowsParams {
  const void* x;
  const int64_t* source;
  void* out;
  int64_t rows;
  int64_t row_bytes;
};

// out[t] = x1[t] + x2[t] + sum over c of scales[t, c] * (rows[index] + bias[expert[t, c]]); all but rows and index may be null.
struct CombineParams {
  const void* rows;
  DType dtype;              // of rows
  int64_t row_count;
  const int64_t* index;     // rows outside count as zeros
  bool by_columns;          // index [k, tokens], else [tokens, k]
  const float* scales;
  const float* bias;        // [experts, width]
  const int64_t* expert;
  int64_t experts;
  const float* x1;
  const float* x2;
  float* out;
  int64_t tokens;
  int64_t k;
  int64_t width;
};

// Gradients of out[t] = sum over c of probs[t, c] * rows[index[t, c]].
struct CombineGradParams {
  const float* grad;        // [tokens, width]
  const float* rows;        // [row_count, width], null without probs
  const int64_t* index;
  const float* probs;       // null: ones
  float* rows_grad;
  float* probs_grad;
  int64_t row_count;
  int64_t tokens;
  int64_t k;
  int64_t width;
};

}  // namespace anyacl::moe

#endif  // ANYACL_OPS_MOE_MOE_H_
