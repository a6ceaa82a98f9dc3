// SPDX-License-Identifier: Apache-2.0
// Copyright The AnyACL Authors
#include "ops/order/find.h"

#include <algorithm>
#include <complex>
#include <cstring>
#include <numeric>
#include <type_traits>
#include <utility>

#include "cpu/kernels.h"
#include "cpu/parallel.h"
#include "ops/order/keys.h"

namespace anyacl::order {
namespace {

using pointwise::Compute;

FoundShape& ShapeAt(void* shape) { return *static_cast<FoundShape*>(shape); }

// ---- What is not 0 --------------------------------------------------------------------------------------------------

int64_t Tasks(const NonzeroParams& p) { return cpu::CeilDiv(p.count, cpu::kTask); }

int64_t NonzeroScratch(const NonzeroParams& p) { return Tasks(p) * static_cast<int64_t>(sizeof(int64_t)); }

void WriteIndices(const NonzeroParams& p, int64_t index, int64_t found, int64_t total) {
  int64_t* const out = static_cast<int64_t*>(p.out);
  for (int axis = p.rank - 1; axis >= 0; --axis) {
    const int64_t at = index % p.dims[axis];
    index /= p.dims[axis];
    out[p.by_axis ? axis * total + found : found * p.rank + axis] = at;
  }
}

void RunNonzero(const NonzeroParams& p) {
  const unsigned char* const in = static_cast<const unsigned char*>(p.in);
  int64_t* const counts = static_cast<int64_t*>(p.scratch);
  const auto for_each = [&](int64_t task, const auto& visit) {
    for (int64_t i = task * cpu::kTask; i < std::min(p.count, (task + 1) * cpu::kTask); ++i) {
      if (in[i] != 0) visit(i);
    }
  };
  cpu::ParallelFor(Tasks(p), [&](int64_t task) {
    int64_t count = 0;
    for_each(task, [&](int64_t) { ++count; });
    counts[task] = count;
  });
  int64_t total = 0;
  for (int64_t task = 0; task < Tasks(p); ++task) total += std::exchange(counts[task], total);
  FoundShape& shape = ShapeAt(p.shape);
  if (total * p.rank > p.room) {
    shape = {-1, {total * p.rank}};
    return;
  }
  shape = p.by_axis ? FoundShape{2, {p.rank, total}} : FoundShape{2, {total, p.rank}};
  cpu::ParallelFor(Tasks(p), [&](int64_t task) {
    int64_t found = counts[task];
    for_each(task, [&](int64_t i) { WriteIndices(p, i, found++, total); });
  });
}

// ---- What is different ----------------------------------------------------------------------------------------------

template <class T>
class Different {
 public:
  explicit Different(const UniqueParams& p) : p_(p), keys_(static_cast<const T*>(p.keys)) {}

  void Run() const {
    int64_t* const order = static_cast<int64_t*>(p_.scratch);
    int64_t* const first = order + p_.slices;  // of each different slice
    Order(order);
    int64_t found = 0;
    for (int64_t j = 0; j < p_.slices; ++j) {
      if (j == 0 || !Equal(order[j - 1], order[j])) first[found++] = order[j];
    }
    const bool fits = WriteShapes(found);
    if (!fits) return;
    WriteValues(first, found);
    WriteGroups(order, first, found);
  }

 private:
  const T& At(int64_t slice, int64_t i) const {
    return keys_[(i / p_.inner * p_.slices + slice) * p_.inner + i % p_.inner];
  }

  bool Equal(int64_t a, int64_t b) const {
    for (int64_t i = 0; i < p_.outer * p_.inner; ++i) {
      if (!(At(a, i) == At(b, i))) return false;
    }
    return true;
  }

  bool Before(int64_t a, int64_t b) const {
    if constexpr (std::is_arithmetic_v<T>) {
      for (int64_t i = 0; i < p_.outer * p_.inner; ++i) {
        const uint64_t x = KeyOf(At(a, i)), y = KeyOf(At(b, i));
        if (x != y) return x < y;
      }
    }
    return a < b;
  }

  void Order(int64_t* order) const {
    if (p_.order) {
      std::copy_n(static_cast<const int64_t*>(p_.order), p_.slices, order);
      return;
    }
    std::iota(order, order + p_.slices, int64_t{0});
    if (p_.sorted) std::sort(order, order + p_.slices, [this](int64_t a, int64_t b) { return Before(a, b); });
  }

  bool WriteShapes(int64_t found) const {
    FoundShape& shape = ShapeAt(p_.value_shape);
    const int64_t elements = found * p_.outer * p_.inner;
    const bool values_fit = elements <= p_.value_room;
    shape = {values_fit ? p_.rank : -1, {values_fit ? p_.dims[0] : elements}};
    if (values_fit) {
      std::copy_n(p_.dims, p_.rank, shape.dims);
      shape.dims[p_.axis] = found;
    }
    if (!p_.count_shape) return values_fit;
    const bool counts_fit = found <= p_.count_room;
    ShapeAt(p_.count_shape) = {counts_fit ? 1 : -1, {found}};
    return values_fit && counts_fit;
  }

  void WriteValues(const int64_t* first, int64_t found) const {
    const unsigned char* const in = static_cast<const unsigned char*>(p_.in);
    unsigned char* const out = static_cast<unsigned char*>(p_.values);
    const int64_t bytes = p_.inner * p_.element;
    for (int64_t o = 0; o < p_.outer; ++o) {
      for (int64_t j = 0; j < found; ++j) {
        std::memcpy(out + (o * found + j) * bytes, in + (o * p_.slices + first[j]) * bytes, static_cast<size_t>(bytes));
      }
    }
  }

  // The slices that are alike follow each other in the order, the first of them first.
  void WriteGroups(const int64_t* order, const int64_t* first, int64_t found) const {
    int64_t j = 0;
    for (int64_t group = 0; group < found; ++group) {
      const int64_t begin = j++;
      while (j < p_.slices && (group + 1 == found || order[j] != first[group + 1])) ++j;
      for (int64_t k = begin; p_.inverse && k < j; ++k) static_cast<int64_t*>(p_.inverse)[order[k]] = group;
      if (!p_.counts) continue;
      if (p_.count_type == DType::kI32) static_cast<int32_t*>(p_.counts)[group] = static_cast<int32_t>(j - begin);
      else static_cast<int64_t*>(p_.counts)[group] = j - begin;
    }
  }

  const UniqueParams& p_;
  const T* keys_;
};

int64_t UniqueScratch(const UniqueParams& p) { return 2 * p.slices * static_cast<int64_t>(sizeof(int64_t)); }

void RunUnique(const UniqueParams& p) {
  switch (p.compute) {
    case Compute::kFloat:
      return Different<float>(p).Run();
    case Compute::kDouble:
      return Different<double>(p).Run();
    case Compute::kInt:
      return Different<int64_t>(p).Run();
    case Compute::kUnsigned:
      return Different<uint64_t>(p).Run();
    case Compute::kComplex:
      return Different<std::complex<float>>(p).Run();
    case Compute::kDoubleComplex:
      return Different<std::complex<double>>(p).Run();
  }
}

}  // namespace
}  // namespace anyacl::order

namespace anyacl::cpu {

std::span<const Kernel> NonzeroKernels() {
  using order::NonzeroParams;
  static constexpr Kernel kernels[] = {
      MakeKernel<NonzeroParams, FitsAlways<NonzeroParams>, order::RunNonzero, order::NonzeroScratch>("counted")};
  return kernels;
}

std::span<const Kernel> UniqueKernels() {
  using order::UniqueParams;
  static constexpr Kernel kernels[] = {
      MakeKernel<UniqueParams, FitsAlways<UniqueParams>, order::RunUnique, order::UniqueScratch>("groups")};
  return kernels;
}

}  // namespace anyacl::cpu
