// SPDX-License-Identifier: Apache-2.0
// Copyright The AnyACL Authors
//
// The part of a recurrent layer that goes step by step, in one direction: LSTM and GRU cells, forwards and their gradients. What
// the inputs add to the gates is a product over all steps at once, made before; gradients of weights are made from what this leaves.
#ifndef ANYACL_OPS_RNN_RECURRENCE_H_
#define ANYACL_OPS_RNN_RECURRENCE_H_

#include <cstdint>

#include "ops/matmul/gemm.h"

namespace anyacl::rnn {

enum class Cell : int32_t { kLstm, kGru };
constexpr int64_t GatesOf(Cell cell) { return cell == Cell::kLstm ? 4 : 3; }

// Dense FLOAT arrays of [steps, batch, width], or [batch, width]. G stands for the gates: i, f, g, o or r, z, n. Products of
// states and weights are made by `product`; with m = 0 there are none, and `hidden_gates` holds what the state adds.
struct RecurrenceParams {
  GemmParams product;  // forward: hidden_gates = h @ weights; gradient: h_grads = (gradients of hidden gates) @ weights
  Cell cell;
  bool gradient;
  bool reverse;               // the last step comes first
  int64_t steps;
  int64_t batch;
  int64_t hidden;
  const int64_t* active;      // [steps], may be null: how many rows take part; the others keep their state and give 0
  int64_t y_step;             // from row to row of y ...
  int64_t dy_step;            // ... and of dy
  const float* input_bias;    // [G], may be null
  const float* hidden_bias;   // [G], may be null
  float* gates;               // [steps, batch, G]; forward: what the inputs add before, activated gates after
  float* hidden_gates;        // [batch, G]
  float* h;                   // [batch, hidden]: first state before, last state after; of gradients the first state
  float* c;                   // LSTM, the same
  float* y;                   // h of all steps; of gradients an input
  float* cells;               // [steps, batch, hidden]; LSTM: c, GRU: what the state adds to n
  float* tanh_cells;          // LSTM
  // Gradients.
  const float* dy;            // may be null
  float* dh;                  // [batch, hidden]: of the last state before, of the first one after
  float* dc;
  float* gate_grads;          // [steps, batch, G]
  float* hidden_gate_grads;   // the same; LSTM: gate_grads itself
  float* h_before;            // [steps, batch, hidden]: the state that each step starts from, may be null
  float* h_grads;             // [batch, hidden]
};

}  // namespace anyacl::rnn

#endif  // ANYACL_OPS_RNN_RECURRENCE_H_
