// SPDX-License-Identifier: Apache-2.0
// Copyright The AnyACL Authors
//
// The likeliest tokens of rows of logits: the k largest, and of those the ones that make up the probability p together. Arrays are
// dense; FLOAT where nothing is said.
#ifndef ANYACL_OPS_ORDER_TOP_P_H_
#define ANYACL_OPS_ORDER_TOP_P_H_

#include <cstdint>

namespace anyacl::order {

// Others become -infinity. Counted from the smallest on, what has at most 1 - p together goes; the largest always stays.
struct TopPParams {
  const float* logits;  // [rows, count]
  const float* p;       // [rows]; null: all stay
  const int64_t* k;     // [rows]; null, or not 1 to count - 1: all stay. Equals of the k-th stay too
  float* out;
  int64_t* order;       // [rows, count]
  int64_t rows;
  int64_t count;
};

// Draws one of them. Counted from the largest on, what follows the first sum above p goes.
struct TopPSampleParams {
  const float* logits;
  const float* p;
  const int64_t* k;
  const float* q;       // [rows, count] divisors of probabilities; null: the likeliest is drawn
  int64_t* drawn;       // [rows]
  float* select;        // the logits that stay, else -infinity; null: not wanted
  int64_t* order;
  double* probability;  // [rows, count]
  int64_t rows;
  int64_t count;
  double epsilon;
};

}  // namespace anyacl::order

#endif  // ANYACL_OPS_ORDER_TOP_P_H_
