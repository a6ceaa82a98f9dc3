// SPDX-License-Identifier: Apache-2.0
// Copyright The AnyACL Authors
#include "ops/indexing/embedding.h"

#include <algorithm>
#include <cmath>
#include <limits>

#include "cpu/kernels.h"
#include "cpu/parallel.h"
#include "ops/pointwise/blocks.h"

namespace anyacl::indexing {
namespace {

using pointwise::Compute;

constexpr int64_t kColumns = 256;  // of a row, worked on at a time

template <class T>
constexpr Compute kComputeOf = std::is_same_v<T, double> ? Compute::kDouble : Compute::kFloat;

// Columns [begin, begin + width) of the bags.
template <class T>
class Bags {
 public:
  explicit Bags(const BagParams& p) : p_(p), load_(pointwise::LoadConversion(p.dtype, kComputeOf<T>)) {}

  void Take(int64_t bag, int64_t begin) const {
    const int64_t width = std::min(kColumns, p_.length - begin);
    T* const out = static_cast<T*>(p_.out) + bag * p_.length + begin;
    int64_t* const places = p_.places ? static_cast<int64_t*>(p_.places) + bag * p_.length + begin : nullptr;
    std::fill_n(out, width, T(0));
    if (places) std::fill_n(places, width, int64_t{-1});
    int64_t counted = 0;
    const int64_t end = End(bag);
    for (int64_t i = Offset(bag); i < end; ++i) {
      const int64_t row = Index(i);
      if (p_.padding >= 0 && row == p_.padding) continue;
      T buffer[kColumns];
      LoadRow(row, begin, width, buffer);
      if (p_.mode == BagMode::kMax) Largest(buffer, row, counted == 0, width, out, places);
      else AddRow(buffer, p_.scales ? static_cast<const T*>(p_.scales)[i] : T(1), width, out);
      ++counted;
    }
    if (p_.mode == BagMode::kMean && counted > 0) {
      for (int64_t j = 0; j < width; ++j) out[j] /= static_cast<T>(counted);
    }
    if (begin > 0) return;
    static_cast<int64_t*>(p_.sizes)[bag] = counted;
  }

  // Offsets that do not ascend share indices, so the bags take turns.
  void NameBags() const {
    int64_t* const bag_of = static_cast<int64_t*>(p_.bag_of);
    std::fill_n(bag_of, p_.count, int64_t{0});
    for (int64_t bag = 0; bag < p_.bags; ++bag) {
      for (int64_t i = Offset(bag); i < End(bag); ++i) bag_of[i] = bag;
    }
  }

 private:
  int64_t Index(int64_t i) const { return static_cast<const int64_t*>(p_.indices)[i]; }
  // Offsets come from the program: they are brought between the first index and the end.
  int64_t Offset(int64_t bag) const { return std::clamp<int64_t>(static_cast<const int64_t*>(p_.offsets)[bag], 0, p_.count); }
  int64_t End(int64_t bag) const { return bag + 1 < p_.bags || p_.last_offset ? Offset(bag + 1) : p_.count; }

  void LoadRow(int64_t row, int64_t begin, int64_t width, T* buffer) const {
    if (row < 0 || row >= p_.rows) return (void)std::fill_n(buffer, width, T(0));
    const auto* const table = static_cast<const unsigned char*>(p_.weight);
    load_(table + (row * p_.length + begin) * static_cast<int64_t>(SizeOf(p_.dtype)), 1, buffer, 1, width);
  }
  static void AddRow(const T* row, T scale, int64_t width, T* out) {
    for (int64_t j = 0; j < width; ++j) out[j] += scale * row[j];
  }
  static void Largest(const T* values, int64_t row, bool first, int64_t width, T* out, int64_t* places) {
    for (int64_t j = 0; j < width; ++j) {
      if (!first && !(values[j] > out[j])) continue;
      out[j] = values[j];
      if (places) places[j] = row;
    }
  }

  const BagParams& p_;
  pointwise::RunConversion load_;
};

template <class T>
void RunBags(const BagParams& p) {
  const Bags<T> bags(p);
  if (p.bag_of) bags.NameBags();
  std::fill_n(static_cast<int64_t*>(p.sizes), p.sizes_length, int64_t{0});
  const int64_t pieces = std::max<int64_t>(1, cpu::CeilDiv(p.length, kColumns));  // a row without columns has a size too
  cpu::ParallelFor(p.bags * pieces, [&](int64_t task) { bags.Take(task / pieces, task % pieces * kColumns); });
}

void RunBag(const BagParams& p) { p.dtype == DType::kF64 ? RunBags<double>(p) : RunBags<float>(p); }

// ---- Norms of rows --------------------------------------------------------------------------------------------------

double NormOf(const double* x, int64_t count, double p) {
  constexpr double kInfinity = std::numeric_limits<double>::infinity();
  double sum = p == -kInfinity ? kInfinity : 0;
  for (int64_t j = 0; j < count; ++j) {
    const double m = std::fabs(x[j]);
    if (p == kInfinity) sum = std::isnan(sum) || sum > m ? sum : m;
    else if (p == -kInfinity) sum = std::isnan(sum) || sum < m ? sum : m;
    else if (p == 0) sum += m != 0;
    else sum += p == 1 ? m : p == 2 ? m * m : std::pow(m, p);
  }
  return sum;
}
// Parts of a row as one.
double Joined(double a, double b, double p) {
  if (!std::isinf(p)) return a + b;
  if (std::isnan(a) || std::isnan(b)) return std::numeric_limits<double>::quiet_NaN();
  return p > 0 ? std::max(a, b) : std::min(a, b);
}
double Rooted(double sum, double p) {
  if (std::isinf(p) || p == 0 || p == 1) return sum;
  return p == 2 ? std::sqrt(sum) : std::pow(sum, 1 / p);
}

class RowNorms {
 public:
  explicit RowNorms(const RowRenormParams& p)
      : p_(p),
        load_(pointwise::LoadConversion(p.dtype, Compute::kDouble)),
        store_(pointwise::StoreConversion(Compute::kDouble, p.dtype)) {}

  void Cut(int64_t row) const {
    double sum = 0;
    ForPieces(row, [&](unsigned char*, const double* x, int64_t width, bool first) {
      const double part = NormOf(x, width, p_.p);
      sum = first ? part : Joined(sum, part, p_.p);
    });
    const double norm = Rooted(sum, p_.p);
    if (!(norm > p_.limit)) return;
    const double factor = p_.limit / (norm + 1e-7);
    ForPieces(row, [&](unsigned char* at, double* x, int64_t width, bool) {
      for (int64_t j = 0; j < width; ++j) x[j] *= factor;
      store_(x, 1, at, 1, width);
    });
  }

 private:
  template <class Visit>
  void ForPieces(int64_t row, const Visit& visit) const {
    double buffer[kColumns];
    const auto size = static_cast<int64_t>(SizeOf(p_.dtype));
    for (int64_t begin = 0; begin < p_.length; begin += kColumns) {
      unsigned char* const at = static_cast<unsigned char*>(p_.table) + (row * p_.length + begin) * size;
      const int64_t width = std::min(kColumns, p_.length - begin);
      load_(at, 1, buffer, 1, width);
      visit(at, buffer, width, begin == 0);
    }
  }

  const RowRenormParams& p_;
  pointwise::RunConversion load_, store_;
};

// The rows that are named, once each; and a byte per row.
int64_t RowScratch(const RowRenormParams& p) { return std::min(p.rows, p.count) * static_cast<int64_t>(sizeof(int64_t)) + p.rows; }

void RunRowRenorm(const RowRenormParams& p) {
  int64_t* const named = static_cast<int64_t*>(p.scratch);
  auto* const seen = reinterpret_cast<unsigned char*>(named + std::min(p.rows, p.count));
  std::fill_n(seen, p.rows, static_cast<unsigned char>(0));
  int64_t count = 0;
  for (int64_t i = 0; i < p.count; ++i) {
    const int64_t row = static_cast<const int64_t*>(p.indices)[i];
    if (row < 0 || row >= p.rows || seen[row]) continue;
    seen[row] = 1;
    named[count++] = row;
  }
  const RowNorms norms(p);
  const int64_t per_task = std::max<int64_t>(1, cpu::kTask / std::max<int64_t>(1, p.length));
  cpu::ParallelFor(cpu::CeilDiv(count, per_task), [&](int64_t task) {
    for (int64_t i = task * per_task; i < std::min(count, (task + 1) * per_task); ++i) norms.Cut(named[i]);
  });
}

}  // namespace
}  // namespace anyacl::indexing

namespace anyacl::cpu {

std::span<const Kernel> BagKernels() {
  using indexing::BagParams;
  static constexpr Kernel kernels[] = {MakeKernel<BagParams, FitsAlways<BagParams>, indexing::RunBag>("rows")};
  return kernels;
}

std::span<const Kernel> RowRenormKernels() {
  using indexing::RowRenormParams;
  static constexpr Kernel kernels[] = {
      MakeKernel<RowRenormParams, FitsAlways<RowRenormParams>, indexing::RunRowRenorm, indexing::RowScratch>("rows")};
  return kernels;
}

}  // namespace anyacl::cpu
