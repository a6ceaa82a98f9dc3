// SPDX-License-Identifier: Apache-2.0
// Copyright The AnyACL Authors
#include "ops/indexing/walk.h"

#include <algorithm>
#include <cmath>
#include <complex>
#include <cstring>

#include "cpu/kernels.h"
#include "cpu/parallel.h"

namespace anyacl::indexing {
namespace {

// A position on some of the axes, counted up in row-major order.
class Walk {
 public:
  Walk(const WalkParams& p, int begin, int end) : p_(p), begin_(begin), end_(end) {}

  void Start(int64_t position) {
    data = table = 0;
    for (int k = 0; k < p_.indices; ++k) index[k] = 0;
    for (int axis = end_ - 1; axis >= begin_; --axis) {
      at_[axis] = position % p_.dims[axis];
      position /= p_.dims[axis];
      Move(axis, at_[axis]);
    }
  }
  void Next() {
    for (int axis = end_ - 1; axis >= begin_; --axis) {
      Move(axis, 1);
      if (++at_[axis] < p_.dims[axis]) return;
      Move(axis, -p_.dims[axis]);
      at_[axis] = 0;
    }
  }
  int64_t Count() const {
    int64_t count = 1;
    for (int axis = begin_; axis < end_; ++axis) count *= p_.dims[axis];
    return count;
  }

  int64_t data = 0;
  int64_t table = 0;
  int64_t index[kMaxIndices] = {};

 private:
  void Move(int axis, int64_t steps) {
    data += steps * p_.data_strides[axis];
    table += steps * p_.table_strides[axis];
    for (int k = 0; k < p_.indices; ++k) index[k] += steps * p_.index_strides[k][axis];
  }

  const WalkParams& p_;
  const int begin_, end_;
  int64_t at_[kMaxAxes];
};

// Adds where the indices at these positions lead; false when one of them is outside.
bool Locate(const WalkParams& p, const int64_t* first, const int64_t* second, int64_t* offset) {
  for (int k = 0; k < p.indices; ++k) {
    const int64_t at = first[k] + second[k];
    int64_t value = p.wide >> k & 1 ? static_cast<const int64_t*>(p.index[k])[at] : static_cast<const int32_t*>(p.index[k])[at];
    if (value < 0 && (p.wraps >> k & 1)) value += p.size[k];
    if (value < 0 || value >= p.size[k]) return false;
    *offset += value * p.step[k];
  }
  return true;
}

template <int kSize>
struct Element {
  unsigned char bytes[kSize];
};

// What is done with `count` elements.
using Run = void (*)(const WalkParams& p, int64_t table, int64_t table_step, int64_t data, int64_t data_step, int64_t count);

template <class T>
void Move(const T* from, int64_t from_step, T* to, int64_t to_step, int64_t count) {
  if (from_step == 1 && to_step == 1) {
    std::memcpy(static_cast<void*>(to), from, static_cast<size_t>(count) * sizeof(T));
    return;
  }
  for (int64_t i = 0; i < count; ++i) to[i * to_step] = from[i * from_step];
}

template <class T>
void ReadRun(const WalkParams& p, int64_t table, int64_t table_step, int64_t data, int64_t data_step, int64_t count) {
  Move(static_cast<const T*>(p.table) + table, table_step, static_cast<T*>(p.data) + data, data_step, count);
}

template <class T>
void SetRun(const WalkParams& p, int64_t table, int64_t table_step, int64_t data, int64_t data_step, int64_t count) {
  Move(static_cast<const T*>(p.data) + data, data_step, static_cast<T*>(p.table) + table, table_step, count);
}

template <class T>
void ZeroRun(const WalkParams& p, int64_t, int64_t, int64_t data, int64_t data_step, int64_t count) {
  for (int64_t i = 0; i < count; ++i) static_cast<T*>(p.data)[data + i * data_step] = T{};
}

template <class T>
constexpr bool kOrdered = !std::is_same_v<T, std::complex<float>> && !std::is_same_v<T, std::complex<double>>;

template <class T, Action kAction>
T Combined(T old, T value) {
  if constexpr (kAction == Action::kAdd) {
    return old + value;
  } else if constexpr (kAction == Action::kMul) {
    return old * value;
  } else if constexpr (kOrdered<T> && kAction == Action::kMax) {
    return old != old || !(value > old || value != value) ? old : value;  // NaN stays
  } else if constexpr (kOrdered<T> && kAction == Action::kMin) {
    return old != old || !(value < old || value != value) ? old : value;
  } else if constexpr (std::is_same_v<T, int64_t>) {
    return value == 0 ? old : value == -1 ? -old : old / value;
  } else {
    return old / value;
  }
}

template <class T, Action kAction>
void CombineRun(const WalkParams& p, int64_t table, int64_t table_step, int64_t data, int64_t data_step, int64_t count) {
  T* const to = static_cast<T*>(p.table);
  const T* const from = static_cast<const T*>(p.data);
  if (kAction == Action::kAdd && p.scale) {
    const T scale = *static_cast<const T*>(p.scale);
    for (int64_t i = 0; i < count; ++i) to[table + i * table_step] += scale * from[data + i * data_step];
    return;
  }
  if (!p.hits) {
    for (int64_t i = 0; i < count; ++i) {
      T& target = to[table + i * table_step];
      target = Combined<T, kAction>(target, from[data + i * data_step]);
    }
    return;
  }
  int64_t* const hits = static_cast<int64_t*>(p.hits);
  for (int64_t i = 0; i < count; ++i) {
    const int64_t at = table + i * table_step;
    const T value = from[data + i * data_step];
    to[at] = hits[at] == 0 && p.keeps_first ? value : Combined<T, kAction>(to[at], value);
    ++hits[at];
  }
}

template <class T>
Run CombineOf(Action action) {
  switch (action) {
    case Action::kAdd:
      return CombineRun<T, Action::kAdd>;
    case Action::kMul:
      return CombineRun<T, Action::kMul>;
    case Action::kMax:
      return CombineRun<T, Action::kMax>;
    case Action::kMin:
      return CombineRun<T, Action::kMin>;
    default:
      return CombineRun<T, Action::kDiv>;
  }
}

template <class T>
Run MoveOf(Action action, bool inside) {
  return action == Action::kSet ? SetRun<T> : inside ? ReadRun<T> : ZeroRun<T>;
}

// What is done where the indices are valid (`inside`), or with data that is read from outside.
Run RunOf(const WalkParams& p, bool inside) {
  if (p.action != Action::kRead && p.action != Action::kSet) {
    switch (p.dtype) {
      case DType::kF32:
        return CombineOf<float>(p.action);
      case DType::kF64:
        return CombineOf<double>(p.action);
      case DType::kI64:
        return CombineOf<int64_t>(p.action);
      case DType::kC64:
        return CombineOf<std::complex<float>>(p.action);
      case DType::kC128:
        return CombineOf<std::complex<double>>(p.action);
      default:
        return nullptr;
    }
  }
  switch (p.element_size) {
    case 1:
      return MoveOf<Element<1>>(p.action, inside);
    case 2:
      return MoveOf<Element<2>>(p.action, inside);
    case 4:
      return MoveOf<Element<4>>(p.action, inside);
    case 8:
      return MoveOf<Element<8>>(p.action, inside);
    case 16:
      return MoveOf<Element<16>>(p.action, inside);
    default:
      return nullptr;
  }
}

bool Fits(const WalkParams& p) { return RunOf(p, true) != nullptr; }

// Elements [begin, end) of the run axes.
void ForRuns(const WalkParams& p, Run run, int64_t table, int64_t data, int64_t begin, int64_t end) {
  const int last = p.lanes + p.serial + p.runs - 1;
  if (p.runs == 0) return run(p, table, 1, data, 1, 1);
  const int64_t inner = p.dims[last];
  Walk rows(p, p.lanes + p.serial, last);
  rows.Start(begin / inner);
  int64_t column = begin % inner;
  for (int64_t done = begin; done < end; column = 0, rows.Next()) {
    const int64_t count = std::min(inner - column, end - done);
    run(p, table + rows.table + column * p.table_strides[last], p.table_strides[last],
        data + rows.data + column * p.data_strides[last], p.data_strides[last], count);
    done += count;
  }
}

void RunWalk(const WalkParams& p) {
  const Run inside = RunOf(p, true);
  const Run outside = p.action == Action::kRead ? RunOf(p, false) : nullptr;
  const int64_t lanes = Walk(p, 0, p.lanes).Count();
  const int64_t serial = Walk(p, p.lanes, p.lanes + p.serial).Count();
  const int64_t run = Walk(p, p.lanes + p.serial, p.lanes + p.serial + p.runs).Count();
  if (lanes == 0 || serial == 0 || run == 0) return;
  // Long runs are cut into pieces, short ones are taken several lanes at a time.
  const int64_t piece = std::clamp<int64_t>(cpu::kTask / serial, std::min<int64_t>(run, 64), run);
  const int64_t pieces = cpu::CeilDiv(run, piece);
  const int64_t per_task = pieces > 1 ? 1 : std::max<int64_t>(1, cpu::kTask / (serial * run));
  cpu::ParallelFor(cpu::CeilDiv(lanes, per_task) * pieces, [&](int64_t task) {
    const int64_t first = task / pieces * per_task, last = std::min(lanes, first + per_task);
    const int64_t begin = task % pieces * piece, end = std::min(run, begin + piece);
    Walk lane(p, 0, p.lanes), step(p, p.lanes, p.lanes + p.serial);
    lane.Start(first);
    for (int64_t i = first; i < last; ++i, lane.Next()) {
      step.Start(0);
      for (int64_t j = 0; j < serial; ++j, step.Next()) {
        int64_t table = lane.table + step.table;
        const int64_t data = lane.data + step.data;
        if (Locate(p, lane.index, step.index, &table)) {
          ForRuns(p, inside, table, data, begin, end);
        } else if (outside) {
          ForRuns(p, outside, 0, data, begin, end);
        }
      }
    }
  });
}

// Sums wrap in their dtype before they are divided, as PyTorch's do.
int64_t MeanOf(const MeanParams& p, int64_t sum, int64_t count) {
  const int unused = 64 - p.bits;
  const uint64_t high = static_cast<uint64_t>(sum) << unused;
  const int64_t cut = p.is_signed ? static_cast<int64_t>(high) >> unused : static_cast<int64_t>(high >> unused);
  return cut / count - (cut % count < 0);
}

template <class T>
void MeanRange(const MeanParams& p, int64_t begin, int64_t end) {
  T* const table = static_cast<T*>(p.table);
  const int64_t* const hits = static_cast<const int64_t*>(p.hits);
  for (int64_t i = begin; i < end; ++i) {
    if (hits[i] == 0) continue;
    const int64_t count = hits[i] + p.included;
    if constexpr (std::is_same_v<T, int64_t>) table[i] = p.bits == 0 ? table[i] / count : MeanOf(p, table[i], count);
    else if constexpr (kOrdered<T>) table[i] /= static_cast<T>(count);
    else table[i] /= static_cast<typename T::value_type>(count);
  }
}

using Mean = void (*)(const MeanParams& p, int64_t begin, int64_t end);
Mean MeanFor(DType dtype) {
  switch (dtype) {
    case DType::kF32:
      return MeanRange<float>;
    case DType::kF64:
      return MeanRange<double>;
    case DType::kI64:
      return MeanRange<int64_t>;
    case DType::kC64:
      return MeanRange<std::complex<float>>;
    case DType::kC128:
      return MeanRange<std::complex<double>>;
    default:
      return nullptr;
  }
}

bool FitsMean(const MeanParams& p) { return MeanFor(p.dtype) != nullptr; }

void RunMean(const MeanParams& p) {
  const Mean mean = MeanFor(p.dtype);
  cpu::ParallelFor(cpu::CeilDiv(p.count, cpu::kTask), [&](int64_t task) {
    mean(p, task * cpu::kTask, std::min(p.count, (task + 1) * cpu::kTask));
  });
}

}  // namespace
}  // namespace anyacl::indexing

namespace anyacl::cpu {

std::span<const Kernel> WalkKernels() {
  static constexpr Kernel kernels[] = {MakeKernel<indexing::WalkParams, indexing::Fits, indexing::RunWalk>("walk")};
  return kernels;
}

std::span<const Kernel> MeanKernels() {
  static constexpr Kernel kernels[] = {
      MakeKernel<indexing::MeanParams, indexing::FitsMean, indexing::RunMean>("mean_of_hits")};
  return kernels;
}

}  // namespace anyacl::cpu
