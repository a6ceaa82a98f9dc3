// SPDX-License-Identifier: Apache-2.0
// Copyright The AnyACL Authors
#include "ops/movement/remap.h"

#include <algorithm>
#include <complex>
#include <cstring>

#include "cpu/kernels.h"
#include "cpu/parallel.h"

namespace anyacl::movement {
namespace {

template <int kSize>
struct Element {
  unsigned char bytes[kSize];
};

// Places [begin, end) of the last axis.
template <class T>
void RemapRow(const RemapParams& p, const T* in, T* out, int64_t begin, int64_t end) {
  const int axis = p.out.rank - 1;
  const int64_t size = p.in.dims[axis], before = p.before[axis];
  const int64_t from = p.in.strides[axis], to = p.out.strides[axis];
  const Mapping mapping = p.mapping[axis];
  const auto one_by_one = [&](int64_t first, int64_t last) {
    for (int64_t j = first; j < last; ++j) out[j * to] = in[SourceOf(mapping, j, before, size) * from];
  };
  if (mapping == Mapping::kReverse || from != 1 || to != 1) return one_by_one(begin, end);
  // Between the borders every mapping moves a run.
  const int64_t first = std::clamp(before, begin, end), last = std::clamp(before + size, first, end);
  one_by_one(begin, first);
  std::memcpy(static_cast<void*>(out + first), in + first - before, static_cast<size_t>(last - first) * sizeof(T));
  one_by_one(last, end);
}

template <class T>
void RunRemapOf(const RemapParams& p) {
  const int last = p.out.rank - 1;
  const int64_t inner = p.out.dims[last];
  const int64_t count = p.out.numel();
  cpu::ParallelFor(cpu::CeilDiv(count, cpu::kTask), [&](int64_t task) {
    const int64_t end = std::min(count, (task + 1) * cpu::kTask);
    for (int64_t at = task * cpu::kTask; at < end;) {
      const int64_t column = at % inner, run = std::min(inner - column, end - at);
      int64_t row = at / inner, from = 0, to = 0;
      for (int axis = last - 1; axis >= 0; --axis) {
        const int64_t j = row % p.out.dims[axis];
        row /= p.out.dims[axis];
        from += SourceOf(p.mapping[axis], j, p.before[axis], p.in.dims[axis]) * p.in.strides[axis];
        to += j * p.out.strides[axis];
      }
      RemapRow(p, static_cast<const T*>(p.in.data) + from, static_cast<T*>(p.out.data) + to, column, column + run);
      at += run;
    }
  });
}

using RemapFunction = void (*)(const RemapParams& p);
RemapFunction RemapFor(const RemapParams& p) {
  switch (p.element_size) {
    case 1:
      return RunRemapOf<Element<1>>;
    case 2:
      return RunRemapOf<Element<2>>;
    case 4:
      return RunRemapOf<Element<4>>;
    case 8:
      return RunRemapOf<Element<8>>;
    case 16:
      return RunRemapOf<Element<16>>;
    default:
      return nullptr;
  }
}
bool FitsRemap(const RemapParams& p) { return RemapFor(p) != nullptr && p.out.rank > 0; }
void RunRemap(const RemapParams& p) { RemapFor(p)(p); }

// Planes are independent; within one, sums have the order of the gradient.
template <class Body>
void ForPlanes(int64_t planes, int64_t work, const Body& body) {
  const int64_t per_task = std::max<int64_t>(1, cpu::kTask / std::max<int64_t>(1, work));
  cpu::ParallelFor(cpu::CeilDiv(planes, per_task), [&](int64_t task) {
    const int64_t end = std::min(planes, (task + 1) * per_task);
    for (int64_t plane = task * per_task; plane < end; ++plane) body(plane);
  });
}

template <class T>
void RunPadBackOf(const PadBackParams& p) {
  const int64_t *g = p.grad_dims, *s = p.sum_dims;
  ForPlanes(p.planes, g[0] * g[1] * g[2], [&](int64_t plane) {
    const T* grad = static_cast<const T*>(p.grad) + plane * g[0] * g[1] * g[2];
    T* const sum = static_cast<T*>(p.sum) + plane * s[0] * s[1] * s[2];
    std::fill_n(sum, s[0] * s[1] * s[2], T(0));
    for (int64_t a = 0; a < g[0]; ++a) {
      const int64_t i = SourceOf(p.mapping, a, p.before[0], s[0]);
      for (int64_t b = 0; b < g[1]; ++b) {
        T* const row = sum + (i * s[1] + SourceOf(p.mapping, b, p.before[1], s[1])) * s[2];
        for (int64_t c = 0; c < g[2]; ++c) row[SourceOf(p.mapping, c, p.before[2], s[2])] += *grad++;
      }
    }
  });
}

template <class T>
void RunFoldOf(const FoldParams& p) {
  const int64_t area = p.size[0] * p.size[1], length = p.blocks[0] * p.blocks[1];
  ForPlanes(p.planes, p.kernel[0] * p.kernel[1] * length, [&](int64_t plane) {
    const T* column = static_cast<const T*>(p.columns) + plane * p.kernel[0] * p.kernel[1] * length;
    T* const sum = static_cast<T*>(p.sum) + plane * area;
    std::fill_n(sum, area, T(0));
    for (int64_t ky = 0; ky < p.kernel[0]; ++ky) {
      for (int64_t kx = 0; kx < p.kernel[1]; ++kx) {
        for (int64_t by = 0; by < p.blocks[0]; ++by) {
          const int64_t y = by * p.stride[0] + ky * p.dilation[0] - p.padding[0];
          for (int64_t bx = 0; bx < p.blocks[1]; ++bx, ++column) {
            const int64_t x = bx * p.stride[1] + kx * p.dilation[1] - p.padding[1];
            if (y >= 0 && y < p.size[0] && x >= 0 && x < p.size[1]) sum[y * p.size[1] + x] += *column;
          }
        }
      }
    }
  });
}

// The function of a sum's dtype, or null.
#define ANYACL_BY_SUM(Function, dtype)                                                                     \
  (dtype == DType::kF32   ? Function<float>                                                                \
   : dtype == DType::kF64 ? Function<double>                                                               \
   : dtype == DType::kC64 ? Function<std::complex<float>>                                                  \
   : dtype == DType::kC128 ? Function<std::complex<double>> : nullptr)

bool FitsPadBack(const PadBackParams& p) { return ANYACL_BY_SUM(RunPadBackOf, p.dtype) != nullptr; }
void RunPadBack(const PadBackParams& p) { ANYACL_BY_SUM(RunPadBackOf, p.dtype)(p); }
bool FitsFold(const FoldParams& p) { return ANYACL_BY_SUM(RunFoldOf, p.dtype) != nullptr; }
void RunFold(const FoldParams& p) { ANYACL_BY_SUM(RunFoldOf, p.dtype)(p); }
#undef ANYACL_BY_SUM

template <class T>
void TriangleRow(const TriangleParams& p, int64_t row) {
  const int rank = p.out.rank, last = rank - 1;
  const int64_t columns = p.out.dims[last];
  int64_t from = 0, to = 0, rest = row;
  for (int axis = last - 1; axis >= 0; --axis) {
    const int64_t at = rest % p.out.dims[axis];
    rest /= p.out.dims[axis];
    from += at * p.in.strides[axis];
    to += at * p.out.strides[axis];
  }
  // Columns up to row + diagonal belong to the lower part; the sum may be beyond 64 bits.
  const int64_t line = row % p.out.dims[last - 1];
  const int64_t reach = p.lower ? p.diagonal : p.diagonal - (p.diagonal > INT64_MIN);
  int64_t split;
  if (__builtin_add_overflow(line, reach, &split)) split = columns;
  else split = split >= columns ? columns : split + 1;
  if (!p.lower && p.diagonal == INT64_MIN) split = 0;
  split = std::max<int64_t>(split, 0);
  const T* const in = static_cast<const T*>(p.in.data) + from;
  T* const out = static_cast<T*>(p.out.data) + to;
  const int64_t in_step = p.in.strides[last], out_step = p.out.strides[last];
  const int64_t begin = p.lower ? 0 : split, end = p.lower ? split : columns;
  for (int64_t i = 0; i < begin; ++i) out[i * out_step] = T{};
  for (int64_t i = begin; i < end; ++i) out[i * out_step] = in[i * in_step];
  for (int64_t i = end; i < columns; ++i) out[i * out_step] = T{};
}

using TriangleFunction = void (*)(const TriangleParams& p, int64_t row);
TriangleFunction TriangleFor(const TriangleParams& p) {
  switch (p.element_size) {
    case 1:
      return TriangleRow<Element<1>>;
    case 2:
      return TriangleRow<Element<2>>;
    case 4:
      return TriangleRow<Element<4>>;
    case 8:
      return TriangleRow<Element<8>>;
    case 16:
      return TriangleRow<Element<16>>;
    default:
      return nullptr;
  }
}
bool FitsTriangle(const TriangleParams& p) { return TriangleFor(p) != nullptr; }
void RunTriangle(const TriangleParams& p) {
  const TriangleFunction row_of = TriangleFor(p);
  const int64_t columns = p.out.dims[p.out.rank - 1];
  ForPlanes(p.out.numel() / columns, columns, [&](int64_t row) { row_of(p, row); });
}

}  // namespace
}  // namespace anyacl::movement

namespace anyacl::cpu {

std::span<const Kernel> RemapKernels() {
  static constexpr Kernel kernels[] = {
      MakeKernel<movement::RemapParams, movement::FitsRemap, movement::RunRemap>("remap")};
  return kernels;
}
std::span<const Kernel> PadBackKernels() {
  static constexpr Kernel kernels[] = {
      MakeKernel<movement::PadBackParams, movement::FitsPadBack, movement::RunPadBack>("pad_back")};
  return kernels;
}
std::span<const Kernel> FoldKernels() {
  static constexpr Kernel kernels[] = {MakeKernel<movement::FoldParams, movement::FitsFold, movement::RunFold>("fold")};
  return kernels;
}
std::span<const Kernel> TriangleKernels() {
  static constexpr Kernel kernels[] = {
      MakeKernel<movement::TriangleParams, movement::FitsTriangle, movement::RunTriangle>("triangle")};
  return kernels;
}

}  // namespace anyacl::cpu
