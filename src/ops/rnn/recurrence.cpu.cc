// SPDX-License-Identifier: Apache-2.0
// Copyright The AnyACL Authors
//
// Every step is one product for all rows, whose weights are packed at the first step, and a loop over rows.
#include "ops/rnn/recurrence.h"

#include <algorithm>
#include <cmath>

#include "cpu/kernels.h"
#include "cpu/parallel.h"

namespace anyacl::rnn {
namespace {

float Sigmoid(float x) { return 1 / (1 + std::exp(-x)); }

// One row at one step; `before` is the step in front of it, or -1.
struct Place {
  int64_t step, row, before;
};

class Recurrence {
 public:
  explicit Recurrence(const RecurrenceParams& p) : p_(p), product_(p.product), n_(p.hidden), gates_(GatesOf(p.cell) * p.hidden) {}

  void Run() {
    for (int64_t s = 0; s < p_.steps; ++s) p_.gradient ? StepBack(p_.steps - 1 - s) : StepForward(s);
  }

 private:
  // Time runs backwards in the reverse direction.
  int64_t TimeOf(int64_t s) const { return p_.reverse ? p_.steps - 1 - s : s; }
  bool IsActive(int64_t t, int64_t row) const { return !p_.active || row < p_.active[t]; }
  int64_t At(int64_t t, int64_t row, int64_t width) const { return (t * p_.batch + row) * width; }
  float* Y(int64_t t, int64_t row) const { return p_.y + At(t, row, p_.y_step); }

  void Multiply() {
    if (product_.m == 0) return;
    cpu::Gemm(product_);
    product_.columns_packed = true;
  }

  template <class Visit>
  void ForRows(const Visit& visit) const {
    const int64_t rows = std::max<int64_t>(cpu::kTask / 8 / n_, 1);
    cpu::ParallelFor(cpu::CeilDiv(p_.batch, rows), [&](int64_t task) {
      for (int64_t row = task * rows; row < std::min(p_.batch, (task + 1) * rows); ++row) visit(row);
    });
  }

  // --- forward ---

  void StepForward(int64_t s) {
    const int64_t t = TimeOf(s);
    Multiply();
    ForRows([&](int64_t row) {
      if (!IsActive(t, row)) return LeaveOut(t, row);
      p_.cell == Cell::kLstm ? Lstm(t, row) : Gru(t, row);
    });
  }

  void LeaveOut(int64_t t, int64_t row) const {
    std::fill_n(p_.gates + At(t, row, gates_), gates_, 0.0f);
    std::fill_n(p_.cells + At(t, row, n_), n_, 0.0f);
    if (p_.tanh_cells) std::fill_n(p_.tanh_cells + At(t, row, n_), n_, 0.0f);
    std::fill_n(Y(t, row), n_, 0.0f);
  }

  float InputPart(const float* gates, int64_t i) const { return gates[i] + (p_.input_bias ? p_.input_bias[i] : 0); }
  float HiddenPart(int64_t row, int64_t i) const {
    return p_.hidden_gates[row * gates_ + i] + (p_.hidden_bias ? p_.hidden_bias[i] : 0);
  }

  void Lstm(int64_t t, int64_t row) const {
    float* const gates = p_.gates + At(t, row, gates_);
    float *const cells = p_.cells + At(t, row, n_), *const tanh_cells = p_.tanh_cells + At(t, row, n_), *const y = Y(t, row);
    float *const h = p_.h + row * n_, *const c = p_.c + row * n_;
    for (int64_t k = 0; k < gates_; ++k) {
      const float x = InputPart(gates, k) + HiddenPart(row, k);
      gates[k] = k / n_ == 2 ? std::tanh(x) : Sigmoid(x);
    }
    for (int64_t k = 0; k < n_; ++k) {
      c[k] = cells[k] = gates[n_ + k] * c[k] + gates[k] * gates[2 * n_ + k];
      tanh_cells[k] = std::tanh(c[k]);
      h[k] = y[k] = gates[3 * n_ + k] * tanh_cells[k];
    }
  }

  void Gru(int64_t t, int64_t row) const {
    float* const gates = p_.gates + At(t, row, gates_);
    float *const cells = p_.cells + At(t, row, n_), *const h = p_.h + row * n_, *const y = Y(t, row);
    for (int64_t k = 0; k < 2 * n_; ++k) gates[k] = Sigmoid(InputPart(gates, k) + HiddenPart(row, k));
    for (int64_t k = 0; k < n_; ++k) {
      cells[k] = HiddenPart(row, 2 * n_ + k);
      const float r = gates[k], z = gates[n_ + k], n = std::tanh(InputPart(gates, 2 * n_ + k) + r * cells[k]);
      gates[2 * n_ + k] = n;
      h[k] = y[k] = (1 - z) * n + z * h[k];
    }
  }

  // --- gradients ---

  void StepBack(int64_t s) {
    const int64_t t = TimeOf(s);
    ForRows([&](int64_t row) {
      // A row of the reverse direction begins where its sequence ends, with the first state.
      const int64_t before = s > 0 && IsActive(TimeOf(s - 1), row) ? TimeOf(s - 1) : -1;
      BackRow({t, row, before});
    });
    product_.a.data = p_.hidden_gate_grads + At(t, 0, gates_);
    Multiply();
    if (product_.m == 0) return;
    ForRows([&](int64_t row) {
      if (!IsActive(t, row)) return;
      for (int64_t k = 0; k < n_; ++k) p_.dh[row * n_ + k] += p_.h_grads[row * n_ + k];
    });
  }

  void BackRow(const Place& at) const {
    const bool active = IsActive(at.step, at.row);
    if (!active) {
      std::fill_n(p_.gate_grads + At(at.step, at.row, gates_), gates_, 0.0f);
      std::fill_n(p_.hidden_gate_grads + At(at.step, at.row, gates_), gates_, 0.0f);
    }
    if (p_.h_before) {
      const float* const h = StateBefore(at);
      float* const to = p_.h_before + At(at.step, at.row, n_);
      for (int64_t k = 0; k < n_; ++k) to[k] = active ? h[k] : 0;
    }
    if (active) p_.cell == Cell::kLstm ? BackLstm(at) : BackGru(at);
  }

  const float* StateBefore(const Place& at) const { return at.before >= 0 ? Y(at.before, at.row) : p_.h + at.row * n_; }
  float Dy(const Place& at, int64_t k) const { return p_.dy ? p_.dy[At(at.step, at.row, p_.dy_step) + k] : 0; }

  void BackLstm(const Place& at) const {
    const float* const gates = p_.gates + At(at.step, at.row, gates_);
    const float* const tanh_cells = p_.tanh_cells + At(at.step, at.row, n_);
    const float* const c = at.before >= 0 ? p_.cells + At(at.before, at.row, n_) : p_.c + at.row * n_;
    float *const grads = p_.gate_grads + At(at.step, at.row, gates_), *const dh = p_.dh + at.row * n_, *const dc = p_.dc + at.row * n_;
    for (int64_t k = 0; k < n_; ++k) {
      const float i = gates[k], f = gates[n_ + k], g = gates[2 * n_ + k], o = gates[3 * n_ + k], tc = tanh_cells[k];
      const float dy = Dy(at, k) + dh[k], d = dc[k] + dy * o * (1 - tc * tc);
      grads[k] = d * g * i * (1 - i);
      grads[n_ + k] = d * c[k] * f * (1 - f);
      grads[2 * n_ + k] = d * i * (1 - g * g);
      grads[3 * n_ + k] = dy * tc * o * (1 - o);
      dc[k] = d * f;
      dh[k] = 0;
    }
  }

  void BackGru(const Place& at) const {
    const float *const gates = p_.gates + At(at.step, at.row, gates_), *const cells = p_.cells + At(at.step, at.row, n_);
    const float* const h = StateBefore(at);
    float *const grads = p_.gate_grads + At(at.step, at.row, gates_), *const hidden = p_.hidden_gate_grads + At(at.step, at.row, gates_);
    float* const dh = p_.dh + at.row * n_;
    for (int64_t k = 0; k < n_; ++k) {
      const float r = gates[k], z = gates[n_ + k], n = gates[2 * n_ + k];
      const float d = Dy(at, k) + dh[k], dn = d * (1 - z) * (1 - n * n);
      grads[k] = hidden[k] = dn * cells[k] * r * (1 - r);
      grads[n_ + k] = hidden[n_ + k] = d * (h[k] - n) * z * (1 - z);
      grads[2 * n_ + k] = dn;
      hidden[2 * n_ + k] = dn * r;
      dh[k] = d * z;
    }
  }

  const RecurrenceParams& p_;
  GemmParams product_;
  int64_t n_, gates_;
};

void Run(const RecurrenceParams& p) { Recurrence(p).Run(); }

}  // namespace
}  // namespace anyacl::rnn

namespace anyacl::cpu {

std::span<const Kernel> RecurrenceKernels() {
  static constexpr Kernel kernels[] = {MakeKernel<rnn::RecurrenceParams, FitsAlways<rnn::RecurrenceParams>, rnn::Run>("steps")};
  return kernels;
}

}  // namespace anyacl::cpu
