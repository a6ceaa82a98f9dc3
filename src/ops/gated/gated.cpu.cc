// SPDX-License-Identifier: Apache-2.0
// Copyright The AnyACL Authors
#include "ops/gated/gated.h"

#include <algorithm>

#undef HWY_TARGET_INCLUDE
#define HWY_TARGET_INCLUDE "ops/gated/gated.cpu.cc"
#include "cpu/family_targets.h"
#include "hwy/foreach_target.h"
#include "hwy/highway.h"
//
#include "ops/gated/formulas-inl.h"

HWY_BEFORE_NAMESPACE();
namespace anyacl {
namespace gated {
namespace HWY_NAMESPACE {

constexpr int64_t kBlock = 256;

// Part of a row; every array is kBlock long, so whole vectors may be read and written.
template <class T>
struct Block {
  alignas(64) T a[kBlock], b[kBlock], g[kBlock], c[kBlock], out[2][kBlock];
};

template <class F, class T>
void Apply(const Params& p, int64_t count, Block<T>& block) {
  using V = Lanes<T>;
  V s[3];
  for (int i = 0; i < 3; ++i) s[i] = V(static_cast<T>(p.scalars[i]));
  const int64_t step = static_cast<int64_t>(V::Count());
  for (int64_t i = 0; i < count; i += step) {
    V out[2] = {V(T(0)), V(T(0))};
    F::Of(V::Load(block.a + i), V::Load(block.b + i), V::Load(block.g + i), V::Load(block.c + i), s, out);
    out[0].Store(block.out[0] + i);
    out[1].Store(block.out[1] + i);
  }
}

template <class T>
using Function = void (*)(const Params&, int64_t, Block<T>&);

template <class T>
Function<T> FunctionOf(Formula formula) {
  static constexpr Function<T> functions[kFormulas] = {
      Apply<Glu, T>,
      Apply<GluBackward, T>,
      Apply<GeGlu<GeluErf>, T>,
      Apply<GeGlu<GeluTanh>, T>,
      Apply<GeGluBackward<GeluErf>, T>,
      Apply<GeGluBackward<GeluTanh>, T>,
      Apply<SwiGlu, T>,
      Apply<SwiGluBackward, T>,
      Apply<Clipped, T>,
      Apply<ClippedSilu, T>,
      Apply<ClippedBackward, T>,
      Apply<SwiGluGroup, T>,
      Apply<SwiGluGroupClipped, T>,
      Apply<Situ<false>, T>,
      Apply<Situ<true>, T>,
      Apply<SituBackward<false>, T>,
      Apply<SituBackward<true>, T>,
      Apply<Fatrelu, T>,
  };
  return functions[static_cast<int>(formula)];
}

// Numbers [begin, end) of all halves; those of rows from `valid` on become 0.
template <class T>
void RunRange(const Params& p, int64_t valid, int64_t begin, int64_t end) {
  const Function<T> apply = FunctionOf<T>(p.formula);
  Block<T> block = {};
  std::fill_n(block.c, kBlock, T(1));
  if (p.threshold) std::fill_n(block.c, kBlock, *static_cast<const T*>(p.threshold));
  const int64_t step = p.interleaved ? 2 : 1;
  for (int64_t at = begin; at < end;) {
    const int64_t row = at / p.half;
    const int64_t inside = at - row * p.half;
    const int64_t count = std::min({kBlock, end - at, p.half - inside});
    // Offsets of the first number of a and b.
    int64_t a = 2 * row * p.half + step * inside;
    int64_t b = a + (p.interleaved ? 1 : p.half);
    if (p.swapped) std::swap(a, b);
    if (row < valid) {
      const T* const x = static_cast<const T*>(p.x);
      for (int64_t i = 0; i < count; ++i) block.a[i] = x[a + step * i];
      for (int64_t i = 0; i < count; ++i) block.b[i] = x[b + step * i];
      if (p.gradient_in) std::copy_n(static_cast<const T*>(p.gradient_in) + at, count, block.g);
      if (p.gelu) std::copy_n(static_cast<const T*>(p.gelu) + at, count, block.c);
      if (p.weight) std::fill_n(block.c, count, static_cast<const T*>(p.weight)[row]);
      apply(p, count, block);
    } else {
      std::fill_n(block.out[0], count, T(0));
      std::fill_n(block.out[1], count, T(0));
    }
    T* const out = static_cast<T*>(p.out);
    if (p.gradient) {
      for (int64_t i = 0; i < count; ++i) out[a + step * i] = block.out[0][i];
      for (int64_t i = 0; i < count; ++i) out[b + step * i] = block.out[1][i];
    } else {
      std::copy_n(block.out[0], count, out + at);
      if (p.second) std::copy_n(block.out[1], count, static_cast<T*>(p.second) + at);
    }
    at += count;
  }
}

void RangeOf(const Params& p, int64_t valid, int64_t begin, int64_t end) {
  p.wide ? RunRange<double>(p, valid, begin, end) : RunRange<float>(p, valid, begin, end);
}

}  // namespace HWY_NAMESPACE
}  // namespace gated
}  // namespace anyacl
HWY_AFTER_NAMESPACE();

#if HWY_ONCE
#include "cpu/kernels.h"
#include "cpu/parallel.h"

namespace anyacl::gated {

HWY_EXPORT(RangeOf);

namespace {

int64_t ValidRows(const Params& p) {
  if (!p.grouped) return p.rows;
  // What is beyond 64 bits is beyond the rows, too.
  double sum = 0;
  for (int64_t i = 0; i < p.group_count; ++i) sum += static_cast<double>(static_cast<const int64_t*>(p.groups)[i]);
  return sum >= static_cast<double>(p.rows) ? p.rows : sum < 0 ? 0 : static_cast<int64_t>(sum);
}

void Run(const Params& p) {
  const auto range_of = ANYACL_FAMILY_DISPATCH(RangeOf);
  const int64_t valid = ValidRows(p);
  const int64_t count = p.rows * p.half;
  cpu::ParallelFor(cpu::CeilDiv(count, cpu::kTask), [&](int64_t task) {
    range_of(p, valid, task * cpu::kTask, std::min(count, (task + 1) * cpu::kTask));
  });
}

}  // namespace
}  // namespace anyacl::gated

namespace anyacl::cpu {

std::span<const Kernel> GatedKernels() {
  static constexpr Kernel kernels[] = {MakeKernel<gated::Params, FitsAlways, gated::Run>("halves")};
  return kernels;
}

}  // namespace anyacl::cpu
#endif  // HWY_ONCE
