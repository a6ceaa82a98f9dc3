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

int64_t TasksOf(int64_t count) { return cpu::CeilDiv(count, cpu::kTask); }

// Scratch for Counted: what was found before each task.
int64_t CountScratch(int64_t count) { return TasksOf(count) * static_cast<int64_t>(sizeof(int64_t)); }

// The elements of a mask that are set, in order, by several threads.
class Counted {
 public:
  Counted(const void* mask, int64_t count, void* scratch)
      : mask_(static_cast<const unsigned char*>(mask)), count_(count), before_(static_cast<int64_t*>(scratch)) {
    cpu::ParallelFor(TasksOf(count), [&](int64_t task) {
      int64_t found = 0;
      ForTask(task, [&](int64_t) { ++found; });
      before_[task] = found;
    });
    for (int64_t task = 0; task < TasksOf(count); ++task) total_ += std::exchange(before_[task], total_);
  }
  int64_t total() const { return total_; }
  // visit(index in the mask, how many are set before it)
  template <class Visit>
  void ForEach(const Visit& visit) const {
    cpu::ParallelFor(TasksOf(count_), [&](int64_t task) {
      int64_t found = before_[task];
      ForTask(task, [&](int64_t i) { visit(i, found++); });
    });
  }

 private:
  template <class Visit>
  void ForTask(int64_t task, const Visit& visit) const {
    for (int64_t i = task * cpu::kTask; i < std::min(count_, (task + 1) * cpu::kTask); ++i) {
      if (mask_[i] != 0) visit(i);
    }
  }

  const unsigned char* mask_;
  int64_t count_;
  int64_t* before_;
  int64_t total_ = 0;
};

int64_t NonzeroScratch(const NonzeroParams& p) { return CountScratch(p.count); }

void WriteIndices(const NonzeroParams& p, int64_t index, int64_t found, int64_t total) {
  int64_t* const out = static_cast<int64_t*>(p.out);
  for (int axis = p.rank - 1; axis >= 0; --axis) {
    const int64_t at = index % p.dims[axis];
    index /= p.dims[axis];
    out[p.by_axis ? axis * total + found : found * p.rank + axis] = at;
  }
}

void RunFixed(const NonzeroParams& p, const Counted& counted) {
  for (int axis = 0; axis < p.rank; ++axis) {
    int64_t* const row = static_cast<int64_t*>(p.out) + axis * p.fixed;
    std::fill(row + std::min(counted.total(), p.fixed), row + p.fixed, kNowhere);
  }
  counted.ForEach([&](int64_t i, int64_t found) {
    if (found < p.fixed) WriteIndices(p, i, found, p.fixed);
  });
  for (int axis = 0; p.repeats && counted.total() == 1 && axis < p.rank; ++axis) {
    int64_t* const row = static_cast<int64_t*>(p.out) + axis * p.fixed;
    std::fill(row + 1, row + p.fixed, row[0]);
  }
}

void RunNonzero(const NonzeroParams& p) {
  const Counted counted(p.in, p.count, p.scratch);
  if (p.fixed > 0) return RunFixed(p, counted);
  const int64_t total = counted.total();
  FoundShape& shape = ShapeAt(p.shape);
  if (total * p.rank > p.room) {
    shape = {-1, {total * p.rank}};
    return;
  }
  shape = p.by_axis ? FoundShape{2, {p.rank, total}} : FoundShape{2, {total, p.rank}};
  counted.ForEach([&](int64_t i, int64_t found) { WriteIndices(p, i, found, total); });
}

int64_t MaskedScratch(const MaskedParams& p) { return CountScratch(p.count); }

template <int kSize>
void MoveMasked(const MaskedParams& p, const Counted& counted) {
  struct Element {
    unsigned char bytes[kSize];
  };
  Element *const wide = static_cast<Element*>(p.wide), *const narrow = static_cast<Element*>(p.narrow);
  counted.ForEach([&](int64_t i, int64_t found) {
    if (p.shape) narrow[found] = wide[i];
    else if (found < p.room) wide[i] = narrow[found];
  });
}

void RunMasked(const MaskedParams& p) {
  const Counted counted(p.mask, p.count, p.scratch);
  if (p.shape) {
    const bool fits = counted.total() <= p.room;
    ShapeAt(p.shape) = {fits ? 1 : -1, {counted.total()}};
    if (!fits) return;
  }
  switch (p.element) {
    case 1:
      return MoveMasked<1>(p, counted);
    case 2:
      return MoveMasked<2>(p, counted);
    case 4:
      return MoveMasked<4>(p, counted);
    case 8:
      return MoveMasked<8>(p, counted);
    default:
      return MoveMasked<16>(p, counted);
  }
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

std::span<const Kernel> MaskedKernels() {
  using order::MaskedParams;
  static constexpr Kernel kernels[] = {
      MakeKernel<MaskedParams, FitsAlways<MaskedParams>, order::RunMasked, order::MaskedScratch>("counted")};
  return kernels;
}

std::span<const Kernel> UniqueKernels() {
  using order::UniqueParams;
  static constexpr Kernel kernels[] = {
      MakeKernel<UniqueParams, FitsAlways<UniqueParams>, order::RunUnique, order::UniqueScratch>("groups")};
  return kernels;
}

}  // namespace anyacl::cpu
