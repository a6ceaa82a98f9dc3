// SPDX-License-Identifier: Apache-2.0
// Copyright The AnyACL Authors
//
// Keys with their places are sorted: together they are all different, so that any way of sorting gives the one stable order.
#include "ops/order/select.h"

#include <algorithm>
#include <limits>
#include <type_traits>
#include <utility>

#include "cpu/kernels.h"
#include "cpu/parallel.h"
#include "ops/order/keys.h"

namespace anyacl::order {
namespace {

using pointwise::Compute;

constexpr int64_t kRadixFrom = 512;              // elements; comparing is faster below
constexpr int64_t kScratch = int64_t{64} << 20;  // bytes for the rows that are worked on at a time
constexpr int64_t kMostTasks = 256;

// Key and place of an element. Those of FLOAT share one word.
struct Packed {
  uint64_t word;
  static Packed Of(uint64_t key, int64_t place) { return {key << 32 | static_cast<uint64_t>(place)}; }
  static uint64_t Inverted(uint64_t key) { return key ^ 0xffffffffu; }
  static constexpr int kKeyBytes = 4;
  uint64_t key() const { return word >> 32; }
  int64_t place() const { return static_cast<int64_t>(word & 0xffffffffu); }
  bool operator<(const Packed& other) const { return word < other.word; }
};
struct Wide {
  uint64_t word;
  int64_t at;
  static Wide Of(uint64_t key, int64_t place) { return {key, place}; }
  static uint64_t Inverted(uint64_t key) { return ~key; }
  static constexpr int kKeyBytes = 8;
  uint64_t key() const { return word; }
  int64_t place() const { return at; }
  bool operator<(const Wide& other) const { return word != other.word ? word < other.word : at < other.at; }
};

template <class T>
bool IsNan(T x) {
  if constexpr (std::is_floating_point_v<T>) return x != x;
  else return false;
}

// Sorts `count` entries that lie in the order of their places; `other` is as large. Byte by byte from the lowest one, which
// keeps the order of equal keys; bytes that all keys share are passed over.
template <class Entry>
Entry* SortByBytes(Entry* entries, Entry* other, int64_t count) {
  for (int byte = 0; byte < Entry::kKeyBytes; ++byte) {
    int64_t starts[257] = {};
    for (int64_t i = 0; i < count; ++i) ++starts[(entries[i].key() >> (8 * byte) & 255) + 1];
    if (*std::max_element(starts, starts + 257) == count) continue;
    for (int digit = 0; digit < 256; ++digit) starts[digit + 1] += starts[digit];
    for (int64_t i = 0; i < count; ++i) other[starts[entries[i].key() >> (8 * byte) & 255]++] = entries[i];
    std::swap(entries, other);
  }
  return entries;
}

template <class T, class Entry>
class Selector {
 public:
  explicit Selector(const SelectParams& p) : p_(p) {}

  int64_t BytesPerTask() const { return 2 * p_.length * static_cast<int64_t>(sizeof(Entry)); }

  // By shape alone.
  int64_t Tasks() const {
    const int64_t fits = std::max<int64_t>(1, kScratch / std::max<int64_t>(1, BytesPerTask()));
    const int64_t wanted = cpu::CeilDiv(p_.rows * p_.length, cpu::kTask / 4);
    return std::max<int64_t>(1, std::min({wanted, p_.rows, fits, kMostTasks}));
  }

  void Run() const {
    const int64_t tasks = Tasks();
    cpu::ParallelFor(tasks, [&](int64_t task) {
      Entry* const room = static_cast<Entry*>(p_.scratch) + task * 2 * p_.length;
      for (int64_t row = p_.rows * task / tasks; row < p_.rows * (task + 1) / tasks; ++row) RunRow(row, room);
    });
  }

 private:
  void RunRow(int64_t row, Entry* entries) const {
    const T* const x = static_cast<const T*>(p_.in) + row * p_.length;
    if (p_.length == 0) return WriteNothing(row);
    int64_t wanted = p_.count;
    if (p_.pick == Pick::kMedian || p_.pick == Pick::kNanMedian) {
      int64_t first_nan = -1, numbers = 0;
      for (int64_t i = 0; i < p_.length; ++i) {
        if (!IsNan(x[i])) ++numbers;
        else if (first_nan < 0) first_nan = i;
      }
      if (first_nan >= 0 && (p_.pick == Pick::kMedian || numbers == 0)) return Write(row, x, first_nan);
      wanted = (numbers - 1) / 2;
    }
    for (int64_t i = 0; i < p_.length; ++i) {
      const uint64_t key = KeyOf(x[i]);
      entries[i] = Entry::Of(p_.descending ? Entry::Inverted(key) : key, i);
    }
    if (p_.pick != Pick::kFirst) {
      std::nth_element(entries, entries + wanted, entries + p_.length);
      return Write(row, x, entries[wanted].place());
    }
    const Entry* const sorted = Sort(entries);
    for (int64_t i = 0; i < p_.count; ++i) {
      const int64_t place = sorted[i].place();
      if (p_.values) static_cast<T*>(p_.values)[row * p_.count + i] = x[place];
      if (p_.places) static_cast<int64_t*>(p_.places)[row * p_.count + i] = place;
    }
  }

  Entry* Sort(Entry* entries) const {
    const int64_t n = p_.length;
    if (n < kRadixFrom) {
      std::sort(entries, entries + n);
      return entries;
    }
    if (p_.count > n / 4) return SortByBytes(entries, entries + n, n);
    std::nth_element(entries, entries + p_.count - 1, entries + n);
    std::sort(entries, entries + p_.count);
    return entries;
  }

  void Write(int64_t row, const T* x, int64_t place) const {
    if (p_.values) static_cast<T*>(p_.values)[row] = x[place];
    if (p_.places) static_cast<int64_t*>(p_.places)[row] = place;
  }

  void WriteNothing(int64_t row) const {
    T value;
    if constexpr (std::is_floating_point_v<T>) value = std::numeric_limits<T>::quiet_NaN();
    else value = static_cast<T>(p_.of_nothing);
    if (p_.values) static_cast<T*>(p_.values)[row] = value;
  }

  const SelectParams& p_;
};

// Calls visit(a Selector) of the type that fits.
template <class Visit>
void WithSelector(const SelectParams& p, const Visit& visit) {
  switch (p.compute) {
    case Compute::kFloat:
      return p.length < int64_t{1} << 32 ? visit(Selector<float, Packed>(p)) : visit(Selector<float, Wide>(p));
    case Compute::kDouble:
      return visit(Selector<double, Wide>(p));
    case Compute::kInt:
      return visit(Selector<int64_t, Wide>(p));
    case Compute::kUnsigned:
      return visit(Selector<uint64_t, Wide>(p));
    default:
      return;
  }
}

bool Fits(const SelectParams& p) { return p.compute != Compute::kComplex && p.compute != Compute::kDoubleComplex; }

void Run(const SelectParams& p) {
  WithSelector(p, [](const auto& selector) { selector.Run(); });
}

int64_t ScratchBytes(const SelectParams& p) {
  int64_t bytes = 0;
  WithSelector(p, [&](const auto& selector) { bytes = selector.Tasks() * selector.BytesPerTask(); });
  return bytes;
}

}  // namespace
}  // namespace anyacl::order

namespace anyacl::cpu {

std::span<const Kernel> SelectKernels() {
  static constexpr Kernel kernels[] = {
      MakeKernel<order::SelectParams, order::Fits, order::Run, order::ScratchBytes>("keys")};
  return kernels;
}

}  // namespace anyacl::cpu
