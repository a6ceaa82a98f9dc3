// SPDX-License-Identifier: Apache-2.0
// Copyright The AnyACL Authors
#include "ops/loss/ctc.h"

#include <cmath>
#include <limits>

#include "cpu/kernels.h"
#include "cpu/parallel.h"

namespace anyacl::loss {
namespace {

template <class T>
constexpr T kNever = -std::numeric_limits<T>::infinity();  // ln 0

// ln(e^a + e^b + ...)
template <class T>
T LogSum(T a, T b) {
  const T most = std::max(a, b), from = most == kNever<T> ? T(0) : most;
  return from + std::log(std::exp(a - from) + std::exp(b - from));
}
template <class T>
T LogSum(T a, T b, T c) {
  const T most = std::max({a, b, c}), from = most == kNever<T> ? T(0) : most;
  return from + std::log(std::exp(a - from) + std::exp(b - from) + std::exp(c - from));
}

template <class T>
class Sample {
 public:
  Sample(const Ctc& p, int64_t place)
      : steps(p.lengths[place][0]), labels(p.lengths[place][1]), index(p.first + place), classes_(p.classes), blank_(p.blank), step_(p.samples * p.classes) {
    x_ = static_cast<const T*>(p.x) + index * p.classes;
    int64_t first = p.first_target + place * p.target_stride;
    for (int64_t i = 0; p.target_stride == 0 && i < place; ++i) first += p.lengths[i][1];
    targets_ = labels > 0 ? static_cast<const int64_t*>(p.targets) + first : nullptr;
  }

  int64_t states() const { return 2 * labels + 1; }
  int64_t LabelOf(int64_t state) const { return state % 2 ? targets_[state / 2] : blank_; }
  bool IsClass(int64_t label) const { return label >= 0 && label < classes_; }
  T X(int64_t t, int64_t c) const { return x_[t * step_ + c]; }
  // A label that is no class has probability 0.
  T Of(int64_t t, int64_t state) const {
    const int64_t label = LabelOf(state);
    return IsClass(label) ? X(t, label) : kNever<T>;
  }
  // Whether a way may go from state - 2 to this one.
  bool Skips(int64_t state) const { return state % 2 && state >= 3 && targets_[state / 2] != blank_ && targets_[state / 2] != targets_[state / 2 - 1]; }

  // Rows of `width` numbers, one for each time; returns nll.
  T Alpha(T* alpha, int64_t width) const {
    if (steps == 0) return labels == 0 ? T(0) : -kNever<T>;
    std::fill_n(alpha, states(), kNever<T>);
    for (int64_t s = 0; s < std::min<int64_t>(2, states()); ++s) alpha[s] = Of(0, s);
    for (int64_t t = 1; t < steps; ++t) {
      const T* const before = alpha + (t - 1) * width;
      for (int64_t s = 0; s < states(); ++s) {
        alpha[t * width + s] = Of(t, s) + LogSum(before[s], s >= 1 ? before[s - 1] : kNever<T>, Skips(s) ? before[s - 2] : kNever<T>);
      }
    }
    const T* const last = alpha + (steps - 1) * width + 2 * labels;
    return -(labels > 0 ? LogSum(last[0], last[-1]) : last[0]);
  }

  // beta at time t, from that of the time behind it; at the last time from none.
  void Beta(int64_t t, const T* behind, T* beta) const {
    for (int64_t s = 0; s < states(); ++s) {
      const int64_t left = 2 * labels - s;  // states behind this one
      if (t == steps - 1) beta[s] = left <= 1 ? Of(t, s) : kNever<T>;
      else beta[s] = Of(t, s) + LogSum(behind[s], left >= 1 ? behind[s + 1] : kNever<T>, left >= 2 && Skips(s + 2) ? behind[s + 2] : kNever<T>);
    }
  }

  const int64_t steps, labels, index;

 private:
  const int64_t classes_, blank_, step_;
  const T* x_;
  const int64_t* targets_;
};

template <class T>
void Forward(const CtcParams& p) {
  cpu::ParallelFor(p.ctc.count, [&](int64_t place) {
    const Sample<T> sample(p.ctc, place);
    T* const alpha = static_cast<T*>(p.alpha) + sample.index * p.ctc.steps * p.width;
    std::fill_n(alpha, p.ctc.steps * p.width, kNever<T>);
    const T nll = sample.Alpha(alpha, p.width);
    static_cast<T*>(p.nll)[sample.index] = p.ctc.zero_infinity && nll == -kNever<T> ? T(0) : nll;
  });
}

void RunForward(const CtcParams& p) { p.ctc.wide ? Forward<double>(p) : Forward<float>(p); }

// Where the numbers of a task lie.
template <class T>
struct Room {
  Room(const CtcBackwardParams& p, int64_t task)
      : alpha(static_cast<T*>(p.scratch) + task * CtcTaskNumbers(p.ctc.steps, p.most_states, p.ctc.classes)),
        beta(alpha + p.ctc.steps * p.most_states),
        behind(beta + p.most_states),
        found(behind + p.most_states) {}
  T* alpha;
  T* beta;
  T* behind;
  T* found;  // per class, ln of the sum over its states
};

template <class T>
void BackwardOf(const CtcBackwardParams& p, const Sample<T>& sample, Room<T> room) {
  const Ctc& ctc = p.ctc;
  T* const out = static_cast<T*>(p.out) + sample.index * ctc.classes;
  const int64_t step = ctc.samples * ctc.classes;
  const T nll = static_cast<const T*>(p.nll)[sample.index], g = static_cast<const T*>(p.gradient)[sample.index];
  const bool infinite = sample.Alpha(room.alpha, p.most_states) == -kNever<T> || nll == -kNever<T>;
  for (int64_t t = ctc.steps - 1; t >= 0; --t) {
    T* const row = out + t * step;
    if (t >= sample.steps || infinite) {
      std::fill_n(row, ctc.classes, t >= sample.steps || ctc.zero_infinity ? T(0) : std::numeric_limits<T>::quiet_NaN());
      continue;
    }
    sample.Beta(t, room.behind, room.beta);
    std::fill_n(room.found, ctc.classes, kNever<T>);
    for (int64_t s = 0; s < sample.states(); ++s) {
      const int64_t label = sample.LabelOf(s);
      if (sample.IsClass(label)) room.found[label] = LogSum(room.found[label], room.alpha[t * p.most_states + s] + room.beta[s]);
    }
    for (int64_t c = 0; c < ctc.classes; ++c) {
      const T x = sample.X(t, c);
      row[c] = g * (std::exp(x) - std::exp(room.found[c] + nll - x));
    }
    std::swap(room.beta, room.behind);
  }
}

template <class T>
void Backward(const CtcBackwardParams& p) {
  const int64_t tasks = CtcTasks(CtcTaskNumbers(p.ctc.steps, p.most_states, p.ctc.classes), p.ctc.count);
  cpu::ParallelFor(tasks, [&](int64_t task) {
    for (int64_t place = p.ctc.count * task / tasks; place < p.ctc.count * (task + 1) / tasks; ++place) {
      BackwardOf(p, Sample<T>(p.ctc, place), Room<T>(p, task));
    }
  });
}

void RunBackward(const CtcBackwardParams& p) { p.ctc.wide ? Backward<double>(p) : Backward<float>(p); }

}  // namespace
}  // namespace anyacl::loss

namespace anyacl::cpu {

std::span<const Kernel> CtcKernels() {
  static constexpr Kernel kernels[] = {MakeKernel<loss::CtcParams, FitsAlways, loss::RunForward>("samples")};
  return kernels;
}

std::span<const Kernel> CtcBackwardKernels() {
  static constexpr Kernel kernels[] = {MakeKernel<loss::CtcBackwardParams, FitsAlways, loss::RunBackward>("samples")};
  return kernels;
}

}  // namespace anyacl::cpu
