// SPDX-License-Identifier: Apache-2.0
// Copyright The AnyACL Authors
#include "ops/gated/gated.h"

#include <algorithm>

#include "ops/pointwise/blocks.h"

#ifndef ANYACL_OPS_GATED_GATED_CPU_ONCE_
#define ANYACL_OPS_GATED_GATED_CPU_ONCE_
namespace anyacl::gated {

// Of numbers as they are stored into those of a block, and back.
struct Conversions {
  pointwise::RunConversion load;
  pointwise::RunConversion store;
};

}  // namespace anyacl::gated
#endif  // ANYACL_OPS_GATED_GATED_CPU_ONCE_

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

// Part of a row, where it lies or in arrays of kBlock numbers: whole vectors may be read and written.
template <class T>
struct Block {
  const T *a, *b, *g, *c;
  T* out[2];
};
template <class T>
struct Buffers {
  alignas(64) T a[kBlock], b[kBlock], g[kBlock], c[kBlock], out[2][kBlock];
};

template <class F, class T>
void Apply(const Params& p, int64_t count, const Block<T>& block) {
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
using Function = void (*)(const Params&, int64_t, const Block<T>&);

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
void RunRange(const Params& p, const Conversions& convert, int64_t valid, int64_t begin, int64_t end) {
  const Function<T> apply = FunctionOf<T>(p.formula);
  Buffers<T> buffers = {};
  Block<T> block = {buffers.a, buffers.b, buffers.g, buffers.c, {buffers.out[0], buffers.out[1]}};
  std::fill_n(buffers.c, kBlock, T(1));
  if (p.threshold) std::fill_n(buffers.c, kBlock, *static_cast<const T*>(p.threshold));
  const int64_t step = p.interleaved ? 2 : 1;
  const int64_t size = static_cast<int64_t>(SizeOf(p.stored));
  const auto as_it_lies = [&](int64_t by, int64_t count) {
    return by == 1 && size == sizeof(T) && count % static_cast<int64_t>(Lanes<T>::Count()) == 0;
  };
  const auto read = [&](const void* from, int64_t first, int64_t by, int64_t count, T* buffer) -> const T* {
    if (as_it_lies(by, count)) return static_cast<const T*>(from) + first;
    convert.load(static_cast<const unsigned char*>(from) + first * size, by, buffer, 1, count);
    return buffer;
  };
  const auto target = [&](void* to, int64_t first, int64_t by, int64_t count, T* buffer) {
    return as_it_lies(by, count) ? static_cast<T*>(to) + first : buffer;
  };
  const auto write = [&](const T* from, const T* buffer, int64_t count, void* to, int64_t first, int64_t by) {
    if (from == buffer) convert.store(from, 1, static_cast<unsigned char*>(to) + first * size, by, count);
  };
  for (int64_t at = begin; at < end;) {
    const int64_t row = at / p.half;
    const int64_t inside = at - row * p.half;
    const int64_t count = std::min({kBlock, end - at, p.half - inside});
    // Offsets of the first number of a and b.
    int64_t a = 2 * row * p.half + step * inside;
    int64_t b = a + (p.interleaved ? 1 : p.half);
    if (p.swapped) std::swap(a, b);
    void* const results[] = {p.out, p.gradient ? p.out : p.second};
    const int64_t firsts[] = {p.gradient ? a : at, p.gradient ? b : at};
    const int64_t by = p.gradient ? step : 1;
    for (int k = 0; k < 2; ++k) {
      block.out[k] = results[k] ? target(results[k], firsts[k], by, count, buffers.out[k]) : buffers.out[k];
    }
    if (row < valid) {
      block.a = read(p.x, a, step, count, buffers.a);
      block.b = read(p.x, b, step, count, buffers.b);
      if (p.gradient_in) block.g = read(p.gradient_in, at, 1, count, buffers.g);
      if (p.gelu) block.c = read(p.gelu, at, 1, count, buffers.c);
      if (p.weight) std::fill_n(buffers.c, count, static_cast<const T*>(p.weight)[row]);
      apply(p, count, block);
    } else {
      std::fill_n(block.out[0], count, T(0));
      std::fill_n(block.out[1], count, T(0));
    }
    for (int k = 0; k < 2; ++k) {
      if (results[k]) write(block.out[k], buffers.out[k], count, results[k], firsts[k], by);
    }
    at += count;
  }
}

void RangeOf(const Params& p, const Conversions& convert, int64_t valid, int64_t begin, int64_t end) {
  p.wide ? RunRange<double>(p, convert, valid, begin, end) : RunRange<float>(p, convert, valid, begin, end);
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
  const auto compute = p.wide ? pointwise::Compute::kDouble : pointwise::Compute::kFloat;
  const Conversions convert{pointwise::LoadConversion(p.stored, compute), pointwise::StoreConversion(compute, p.stored)};
  cpu::ParallelFor(cpu::CeilDiv(count, cpu::kTask), [&](int64_t task) {
    range_of(p, convert, valid, task * cpu::kTask, std::min(count, (task + 1) * cpu::kTask));
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
