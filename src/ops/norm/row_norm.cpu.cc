// SPDX-License-Identifier: Apache-2.0
// Copyright The AnyACL Authors
//
// The walk of the engine of norms. Long rows are cut into chunks, so a few of them keep all threads busy; what a row gives depends
// on the row alone.
#include <algorithm>
#include <atomic>
#include <cmath>

#undef HWY_TARGET_INCLUDE
#define HWY_TARGET_INCLUDE "ops/norm/row_norm.cpu.cc"
#include "cpu/family_targets.h"
#include "hwy/foreach_target.h"
#include "hwy/highway.h"
//
#include "ops/norm/row_norm-inl.h"

#if HWY_ONCE
#include "cpu/kernels.h"
#include "cpu/parallel.h"

namespace anyacl::norm {

HWY_EXPORT(Functions);

namespace {

using cpu::CeilDiv;
using cpu::ParallelFor;

constexpr int64_t kColumns = 256;  // of one piece of a column sum; as row_norm-inl.h's block

const RowFunctions& FunctionsOf(bool wide) { return *ANYACL_FAMILY_DISPATCH(Functions)(wide); }

double At(const void* vector, bool wide, int64_t i) {
  return wide ? static_cast<const double*>(vector)[i] : static_cast<const float*>(vector)[i];
}
void Put(void* vector, bool wide, int64_t i, double value) {
  if (!vector) return;
  if (wide) static_cast<double*>(vector)[i] = value;
  else static_cast<float*>(vector)[i] = static_cast<float>(value);
}

// How rows are cut.
struct Cut {
  explicit Cut(const Rows& shape, int64_t size = kChunk)
      : count(shape.count()), chunk(std::max<int64_t>(size, 1)), chunks(CeilDiv(count, chunk)), pieces(shape.rows * chunks) {}

  int64_t End(int64_t c) const { return std::min(count, (c + 1) * chunk); }
  // Calls visit(row, chunk) for all chunks of all rows.
  template <class Visit>
  void Each(const Visit& visit) const {
    const int64_t together = std::max<int64_t>(1, cpu::kTask / std::min(count, chunk));
    ParallelFor(CeilDiv(pieces, together), [&](int64_t task) {
      for (int64_t i = task * together; i < std::min(pieces, (task + 1) * together); ++i) visit(i / chunks, i % chunks);
      hwy::FlushStream();
    });
  }

  int64_t count;
  int64_t chunk;
  int64_t chunks;  // of a row
  int64_t pieces;  // of all
};

// Calls visit(i) for every i below count, several per task.
template <class Visit>
void EachOf(int64_t count, int64_t together, const Visit& visit) {
  ParallelFor(CeilDiv(count, together), [&](int64_t task) {
    for (int64_t i = task * together; i < std::min(count, (task + 1) * together); ++i) visit(i);
    hwy::FlushStream();
  });
}

// first(row, chunk) for all chunks, between(row), then second(row, chunk) for all of them.
template <class First, class Between, class Second>
void TwoPasses(const Cut& cut, const Rows& shape, const First& first, const Between& between, const Second& second) {
  if (GoesByRows(shape)) {
    EachOf(shape.rows, std::max<int64_t>(1, cpu::kTask / cut.count), [&](int64_t row) {
      for (int64_t c = 0; c < cut.chunks; ++c) first(row, c);
      between(row);
      for (int64_t c = 0; c < cut.chunks; ++c) second(row, c);
    });
    return;
  }
  cut.Each(first);
  for (int64_t row = 0; row < shape.rows; ++row) between(row);
  cut.Each(second);
}

Pair Sum(const Pair* pairs, int64_t count) {
  Pair total = {0, 0};
  for (int64_t i = 0; i < count; ++i) {
    total.a += pairs[i].a;
    total.b += pairs[i].b;
  }
  return total;
}

// ---- forward ----

bool CutsRows(const RowNormParams& p) { return p.shape.count() > kChunk && !p.given_mean; }

int64_t Scratch(const RowNormParams& p) {
  if (!CutsRows(p)) return 0;
  return (Cut(p.shape).pieces + p.shape.rows) * static_cast<int64_t>(sizeof(Pair));
}

// Mean and squared distances of a row from those of its chunks.
Pair Joined(const RowNormParams& p, const Cut& cut, const Pair* chunks) {
  if (cut.chunks == 1) return chunks[0];
  if (!p.centred) return {0, Sum(chunks, cut.chunks).b};
  const auto size = [&](int64_t c) { return static_cast<double>(cut.End(c) - c * cut.chunk); };
  const double n = static_cast<double>(cut.count);
  double sum = 0;
  for (int64_t c = 0; c < cut.chunks; ++c) sum += size(c) * (chunks[c].a - chunks[0].a);
  double mean = chunks[0].a + sum / n;
  if (!std::isfinite(mean)) {
    sum = 0;
    for (int64_t c = 0; c < cut.chunks; ++c) sum += size(c) * chunks[c].a;
    mean = sum / n;
  }
  double squares = 0;
  for (int64_t c = 0; c < cut.chunks; ++c) {
    const double away = chunks[c].a - mean;
    squares += chunks[c].b + size(c) * away * away;
  }
  return {mean, squares};
}

// Writes what was asked for of a row's statistics; returns mean and reciprocal deviation.
Pair Finish(const RowNormParams& p, int64_t row, Pair moments) {
  const double variance = moments.b / static_cast<double>(p.shape.count());
  const double rstd = p.zero_for_zero && variance + p.eps == 0 ? 0 : 1 / std::sqrt(variance + p.eps);
  Put(p.mean, p.wide, row, moments.a);
  Put(p.rstd, p.wide, row, rstd);
  Put(p.variance, p.wide, row, variance);
  if (p.moments) static_cast<Pair*>(p.moments)[row] = {moments.a, variance};
  return {moments.a, rstd};
}

Pair Given(const RowNormParams& p, int64_t row) {
  const double given = At(p.given_rstd, p.wide, row);
  return {At(p.given_mean, p.wide, row), p.given_variance ? 1 / std::sqrt(given + p.eps) : given};
}

void Run(const RowNormParams& p) {
  const RowFunctions& f = FunctionsOf(p.wide);
  const Cut cut(p.shape);
  if (p.given_mean) {
    cut.Each([&](int64_t row, int64_t c) { f.normalise(p, row, c * cut.chunk, cut.End(c), Given(p, row)); });
    return;
  }
  if (!CutsRows(p)) {
    cut.Each([&](int64_t row, int64_t) {
      Pair moments;
      f.moments(p, row, 0, cut.count, &moments);
      const Pair statistics = Finish(p, row, moments);
      if (p.y) f.normalise(p, row, 0, cut.count, statistics);
    });
    return;
  }
  Pair* const chunks = static_cast<Pair*>(p.scratch);
  Pair* const statistics = chunks + cut.pieces;
  TwoPasses(
      cut, p.shape,
      [&](int64_t row, int64_t c) { f.moments(p, row, c * cut.chunk, cut.End(c), &chunks[row * cut.chunks + c]); },
      [&](int64_t row) { statistics[row] = Finish(p, row, Joined(p, cut, chunks + row * cut.chunks)); },
      [&](int64_t row, int64_t c) {
        if (p.y) f.normalise(p, row, c * cut.chunk, cut.End(c), statistics[row]);
      });
}

// ---- backward ----

// The rows of a column sum that one task adds up.
struct ColumnCut {
  explicit ColumnCut(const Rows& shape) {
    constexpr int64_t kTogether = 4;  // rows that are added up in FLOAT
    const int64_t most = std::clamp<int64_t>((int64_t{1} << 18) / std::max<int64_t>(1, shape.count()), 1, 64);
    rows = CeilDiv(shape.rows, std::clamp<int64_t>(CeilDiv(shape.rows * shape.count(), cpu::kTask), 1, most));
    rows = CeilDiv(rows, kTogether) * kTogether;
    blocks = CeilDiv(shape.rows, rows);
    pieces = CeilDiv(shape.count(), kColumns);
  }
  int64_t blocks;
  int64_t rows;    // of a block
  int64_t pieces;  // of a row
};

bool Fuses(const RowNormBackwardParams& p) { return p.shape.along == Along::kRow && p.shape.count() <= kChunk; }
// Where gamma is the same for a segment, so are the sums that its gradient is made of.
Cut CutOf(const RowNormBackwardParams& p) {
  return Cut(p.shape, p.shape.along == Along::kSegment ? p.shape.length : kChunk);
}

int64_t Scratch(const RowNormBackwardParams& p) {
  int64_t bytes = 0;
  if (!Fuses(p)) bytes += (CutOf(p).pieces + p.shape.rows) * static_cast<int64_t>(sizeof(Pair));
  if (p.shape.along == Along::kRow) {
    bytes += ColumnCut(p.shape).blocks * p.shape.count() * static_cast<int64_t>(sizeof(Pair));
  }
  return bytes;
}

// Adds up what blocks of rows have left. False where some sum is not trusted.
bool AddBlocks(const RowNormBackwardParams& p, const ColumnCut& cut, const double* scratch) {
  const int64_t count = p.shape.count();
  std::atomic<bool> trusted = true;
  ParallelFor(cut.pieces, [&](int64_t piece) {
    const int64_t first = piece * kColumns, size = std::min(kColumns, count - first);
    double sums[kColumns] = {}, products[kColumns] = {};
    for (int64_t block = 0; block < cut.blocks; ++block) {
      const double* const more = scratch + 2 * block * count + first;
      for (int64_t i = 0; i < size; ++i) sums[i] += more[i];
      for (int64_t i = 0; i < size; ++i) products[i] += more[count + i];
    }
    for (int64_t i = 0; i < size; ++i) {
      Put(p.dbeta, p.wide, first + i, sums[i]);
      Put(p.dgamma, p.wide, first + i, products[i]);
      if (!IsTrusted(sums[i]) || !IsTrusted(products[i])) trusted.store(false, std::memory_order_relaxed);
    }
  });
  return trusted.load();
}

void SumColumns(const RowNormBackwardParams& p, const RowFunctions& f, double* scratch) {
  const int64_t count = p.shape.count();
  const ColumnCut cut(p.shape);
  const auto size = [&](int64_t piece) { return std::min(kColumns, count - piece * kColumns); };
  ParallelFor(cut.blocks * cut.pieces, [&](int64_t task) {
    const int64_t block = task / cut.pieces;
    const int64_t piece = task % cut.pieces;
    double* const sums = scratch + 2 * block * count + piece * kColumns;
    f.column_sums(p, block * cut.rows, std::min(p.shape.rows, (block + 1) * cut.rows), piece * kColumns, size(piece),
                  /*of_scale=*/false, sums, sums + count);
  });
  AddBlocks(p, cut, scratch);
}

// All gradients of a block of rows while they are in a cache.
void RunRows(const RowNormBackwardParams& p, const RowFunctions& f, double* scratch) {
  const int64_t count = p.shape.count();
  const ColumnCut cut(p.shape);
  const bool wants_coefficients = p.dgamma || p.dbeta;
  ParallelFor(cut.blocks, [&](int64_t block) {
    double* const sums = wants_coefficients ? scratch + 2 * block * count : nullptr;
    if (sums) std::fill_n(sums, 2 * count, 0.0);
    f.row_gradients(p, block * cut.rows, std::min(p.shape.rows, (block + 1) * cut.rows), sums, sums ? sums + count : nullptr);
    hwy::FlushStream();
  });
  if (wants_coefficients && !AddBlocks(p, cut, scratch)) SumColumns(p, f, scratch);
}

// Gradients of scale and shift: one sum for every row of them.
void SumScales(const RowNormBackwardParams& p, const RowFunctions& f) {
  const int64_t count = p.shape.count();
  const int64_t pieces = CeilDiv(count, kColumns);
  ParallelFor(p.shape.rows / p.scale_rows * pieces, [&](int64_t task) {
    const int64_t group = task / pieces;
    const int64_t first = task % pieces * kColumns;
    const int64_t size = std::min(kColumns, count - first);
    double sums[kColumns], products[kColumns];
    f.column_sums(p, group * p.scale_rows, (group + 1) * p.scale_rows, first, size, /*of_scale=*/true, sums, products);
    for (int64_t i = 0; i < size; ++i) {
      Put(p.dshift, p.wide, group * count + first + i, sums[i]);
      Put(p.dscale, p.wide, group * count + first + i, products[i]);
    }
  });
}

// Averages of d * gamma and d * gamma * u over a row, from sums over its chunks.
Pair Averages(const RowNormBackwardParams& p, const Cut& cut, int64_t row, const Pair* chunks) {
  Pair total = {0, 0};
  for (int64_t c = 0; c < cut.chunks; ++c) {
    double gamma = 1;
    if (p.gamma && p.shape.along == Along::kSegment) gamma = At(p.gamma, p.wide, row % p.shape.period * p.shape.segments + c);
    total.a += gamma * chunks[c].a;
    total.b += gamma * chunks[c].b;
  }
  double factor = 1 / static_cast<double>(cut.count);
  if (p.gamma && p.shape.along == Along::kNone) factor *= At(p.gamma, p.wide, row);
  return {total.a * factor, total.b * factor};
}

void PutCoefficients(const RowNormBackwardParams& p, const Cut& cut, const Pair* chunks) {
  if (p.shape.along == Along::kNone) {
    for (int64_t row = 0; row < p.shape.rows; ++row) {
      const Pair sum = Sum(chunks + row * cut.chunks, cut.chunks);
      Put(p.dbeta, p.wide, row, sum.a);
      Put(p.dgamma, p.wide, row, sum.b);
    }
    return;
  }
  EachOf(p.shape.coefficients(), 64, [&](int64_t i) {
    Pair sum = {0, 0};
    for (int64_t row = i / p.shape.segments; row < p.shape.rows; row += p.shape.period) {
      const Pair& one = chunks[row * cut.chunks + i % p.shape.segments];
      sum.a += one.a;
      sum.b += one.b;
    }
    Put(p.dbeta, p.wide, i, sum.a);
    Put(p.dgamma, p.wide, i, sum.b);
  });
}

void RunBackward(const RowNormBackwardParams& p) {
  const RowFunctions& f = FunctionsOf(p.wide);
  const bool wants_input = p.dx || p.dx_alpha;
  const bool wants_coefficients = p.dgamma || p.dbeta;
  const Cut cut = CutOf(p);
  Pair* chunks = static_cast<Pair*>(p.scratch);
  if (Fuses(p) && TakesLines(p)) return RunRows(p, f, static_cast<double*>(p.scratch));
  if (Fuses(p)) {
    if (wants_input) {
      cut.Each([&](int64_t row, int64_t) {
        Pair sums = {0, 0};
        if (!p.constants) f.gradient_sums(p, row, 0, cut.count, &sums);
        const double n = static_cast<double>(cut.count);
        f.input_gradient(p, row, 0, cut.count, {sums.a / n, sums.b / n});
      });
    }
  } else {
    Pair* const averages = chunks + cut.pieces;
    TwoPasses(
        cut, p.shape,
        [&](int64_t row, int64_t c) { f.gradient_sums(p, row, c * cut.chunk, cut.End(c), &chunks[row * cut.chunks + c]); },
        [&](int64_t row) { averages[row] = Averages(p, cut, row, chunks + row * cut.chunks); },
        [&](int64_t row, int64_t c) {
          if (wants_input) f.input_gradient(p, row, c * cut.chunk, cut.End(c), averages[row]);
        });
    if (wants_coefficients && p.shape.along != Along::kRow) PutCoefficients(p, cut, chunks);
    chunks = averages + p.shape.rows;
  }
  if (wants_coefficients && p.shape.along == Along::kRow) SumColumns(p, f, reinterpret_cast<double*>(chunks));
  if (p.dscale || p.dshift) SumScales(p, f);
}

// ---- sums ----

int64_t Scratch(const RowSumsParams& p) { return Cut(p.shape).pieces * static_cast<int64_t>(sizeof(Pair)); }

void RunSums(const RowSumsParams& p) {
  const RowFunctions& f = FunctionsOf(p.wide);
  const Cut cut(p.shape);
  Pair* const chunks = static_cast<Pair*>(p.scratch);
  cut.Each([&](int64_t row, int64_t c) {
    f.plain_sums(p, row, c * cut.chunk, cut.End(c), &chunks[row * cut.chunks + c]);
  });
  for (int64_t row = 0; row < p.shape.rows; ++row) {
    const Pair sum = Sum(chunks + row * cut.chunks, cut.chunks);
    Put(p.sum, p.wide, row, sum.a);
    Put(p.second, p.wide, row, sum.b);
    Put(p.sum_again, p.wide, row, sum.a);
    if (p.scaled) Put(p.scaled, p.wide, row, sum.b * At(p.rstd, p.wide, row));
  }
}

}  // namespace
}  // namespace anyacl::norm

namespace anyacl::cpu {

std::span<const Kernel> RowNormKernels() {
  static constexpr Kernel kernels[] = {MakeKernel<norm::RowNormParams, FitsAlways, norm::Run, norm::Scratch>("rows")};
  return kernels;
}

std::span<const Kernel> RowNormBackwardKernels() {
  static constexpr Kernel kernels[] = {
      MakeKernel<norm::RowNormBackwardParams, FitsAlways, norm::RunBackward, norm::Scratch>("rows")};
  return kernels;
}

std::span<const Kernel> RowSumsKernels() {
  static constexpr Kernel kernels[] = {MakeKernel<norm::RowSumsParams, FitsAlways, norm::RunSums, norm::Scratch>("rows")};
  return kernels;
}

}  // namespace anyacl::cpu
#endif  // HWY_ONCE
