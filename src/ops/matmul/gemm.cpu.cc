// SPDX-License-Identifier: Apache-2.0
// Copyright The AnyACL Authors
//
// Both operands are packed once into panels that the inner kernel reads front to back: a panel of A holds a few rows, one of
// B a few vectors of columns, chunk of k by chunk of k. A task computes one tile of C over all chunks, so every element has
// one order of sums whatever the number of threads.
#include <algorithm>
#include <cstdlib>
#include <cstring>

#undef HWY_TARGET_INCLUDE
#define HWY_TARGET_INCLUDE "ops/matmul/gemm.cpu.cc"
#include "cpu/family_targets.h"
#include "hwy/foreach_target.h"
#include "hwy/highway.h"
//
#include "cpu/kernels.h"
#include "cpu/parallel.h"
#include "ops/matmul/gemm.h"
#include "ops/matmul/panel-inl.h"
#include "ops/pointwise/blocks.h"

HWY_BEFORE_NAMESPACE();
namespace anyacl {
namespace HWY_NAMESPACE {
namespace gemm {

using pointwise::RunConversion;

// A panel that sticks out of C goes through a whole one.
void EdgePanel(const float* a, const float* b, int64_t depth, float* c, int64_t row_step, int64_t rows, int64_t columns) {
  HWY_ALIGN float whole[kRows * kColumns] = {};
  for (int64_t r = 0; r < rows; ++r) std::memcpy(whole + r * kColumns, c + r * row_step, columns * sizeof(float));
  Panel(a, b, depth, whole, kColumns);
  for (int64_t r = 0; r < rows; ++r) std::memcpy(c + r * row_step, whole + r * kColumns, columns * sizeof(float));
}

// A place in one group of an operand's axes, counted up row-major. Last axes of size 1 are no axes: runs go along longer ones.
class Counter {
 public:
  Counter(const GemmOperand& operand, int first, int axes, int64_t index) : dims_(operand.dims + first), strides_(operand.strides + first), inner_(axes - 1) {
    while (inner_ >= 0 && dims_[inner_] == 1) --inner_;
    for (int axis = inner_; axis >= 0; --axis) {
      at_[axis] = index % dims_[axis];
      index /= dims_[axis];
      offset_ += at_[axis] * strides_[axis];
    }
  }
  int64_t offset() const { return offset_; }
  // How many steps of the innermost axis are left, and how far apart they are.
  int64_t Run() const { return inner_ < 0 ? 1 : dims_[inner_] - at_[inner_]; }
  int64_t Step() const { return inner_ < 0 ? 0 : strides_[inner_]; }
  // How many steps there are from the beginning.
  int64_t Length() const { return inner_ < 0 ? 1 : dims_[inner_]; }
  // At most Run().
  void Advance(int64_t count) {
    int axis = inner_;
    if (axis < 0) return;
    at_[axis] += count;
    offset_ += count * strides_[axis];
    while (at_[axis] == dims_[axis] && axis > 0) {
      offset_ -= dims_[axis] * strides_[axis];
      at_[axis--] = 0;
      ++at_[axis];
      offset_ += strides_[axis];
    }
  }

 private:
  const int64_t* dims_;
  const int64_t* strides_;
  int inner_;
  int64_t at_[kMaxGemmAxes];
  int64_t offset_ = 0;
};

// Lines [first, first + lines) of an operand (rows of a, columns of b) become panels of `width` lines: element (line, k) of the
// chunk that begins at k0 is at to + k0 * padded + panel * depth * width + (k - k0) * width + line in panel.
struct Packing {
  const GemmOperand* operand;
  int64_t element;  // bytes
  int64_t k;
  RunConversion load;
};
Packing PackingOf(const GemmOperand& x, int64_t k) {
  return {&x, static_cast<int64_t>(SizeOf(x.dtype)), k, pointwise::LoadConversion(x.dtype, pointwise::Compute::kFloat)};
}

// `count` numbers that lie `step` elements apart, the first `from` elements behind the data. Runs of windows are short.
HWY_INLINE void LoadRun(const Packing& p, int64_t from, int64_t step, int64_t count, float* HWY_RESTRICT to) {
  const auto* const data = static_cast<const unsigned char*>(p.operand->data) + from * p.element;
  if (p.operand->dtype != DType::kF32) return p.load(data, step, to, 1, count);
  const auto* const HWY_RESTRICT numbers = reinterpret_cast<const float*>(data);
  if (step == 1) {
    for (int64_t i = 0; i < count; ++i) to[i] = numbers[i];
  } else {
    for (int64_t i = 0; i < count; ++i) to[i] = numbers[i * step];
  }
}

// The next `count` places of a counter as runs along its innermost axis; returns how many.
struct PlacesRun {
  int64_t offset;
  int64_t count;
};
int64_t RunsOf(Counter& at, int64_t count, PlacesRun* runs) {
  int64_t number = 0;
  for (int64_t done = 0; done < count;) {
    const int64_t run = std::min(at.Run(), count - done);
    runs[number++] = {at.offset(), run};
    at.Advance(run);
    done += run;
  }
  return number;
}

// Along what lies closer together; where both do, along the longer.
bool PacksAlong(const Counter& lines, const Counter& k) {
  const int64_t line_step = std::abs(lines.Step()), k_step = std::abs(k.Step());
  return line_step < k_step || (line_step == k_step && lines.Length() >= k.Length());
}

void PackPanel(const Packing& p, int64_t batch, int64_t first, int64_t all_lines, int64_t panel, int64_t width, float* packed) {
  const GemmOperand& x = *p.operand;
  const int line_axis = x.batch_axes, k_axis = x.batch_axes + x.line_axes;
  const int64_t base = Counter(x, 0, x.batch_axes, batch).offset();
  const int64_t lines = std::min(width, all_lines - panel * width);
  const int64_t padded = (all_lines + width - 1) / width * width;
  const Counter first_line(x, line_axis, x.line_axes, first + panel * width);
  const bool along_lines = PacksAlong(first_line, Counter(x, k_axis, x.k_axes, 0));
  PlacesRun line_runs[kMostPanelColumns], k_runs[kChunk];
  int64_t line_run_count = 0;
  if (along_lines) {
    Counter line_at = first_line;
    line_run_count = RunsOf(line_at, lines, line_runs);
  }
  HWY_ALIGN float numbers[kChunk];
  for (int64_t k0 = 0; k0 < p.k; k0 += kChunk) {
    const int64_t depth = std::min(kChunk, p.k - k0);
    float* const to = packed + k0 * padded + panel * depth * width;
    if (lines < width) std::fill(to, to + depth * width, 0.0f);
    Counter k_at(x, k_axis, x.k_axes, k0);
    if (along_lines) {
      for (int64_t k = 0; k < depth; ++k, k_at.Advance(1)) {
        float* line = to + k * width;
        for (int64_t i = 0; i < line_run_count; ++i) {
          LoadRun(p, base + k_at.offset() + line_runs[i].offset, first_line.Step(), line_runs[i].count, line);
          line += line_runs[i].count;
        }
      }
    } else {
      const int64_t k_run_count = RunsOf(k_at, depth, k_runs);
      Counter line_at = first_line;
      for (int64_t line = 0; line < lines; ++line, line_at.Advance(1)) {
        float* at = numbers;
        for (int64_t i = 0; i < k_run_count; ++i) {
          LoadRun(p, base + line_at.offset() + k_runs[i].offset, k_at.Step(), k_runs[i].count, at);
          at += k_runs[i].count;
        }
        for (int64_t k = 0; k < depth; ++k) to[k * width + line] = numbers[k];
      }
    }
  }
}

// c[m0.., n0..] of one batch; `b` holds the columns of this tile alone.
void ComputeTile(const GemmParams& p, const float* a, const float* b, float* c, int64_t m0, int64_t n0) {
  const int64_t m1 = std::min(p.m, m0 + kTileRows), n1 = std::min(p.n, n0 + kTileColumns);
  const int64_t a_lines = cpu::CeilDiv(p.m, kRows) * kRows, b_lines = cpu::CeilDiv(n1 - n0, kColumns) * kColumns;
  for (int64_t m = m0; m < m1; ++m) std::fill(c + m * p.n + n0, c + m * p.n + n1, 0.0f);
  for (int64_t k0 = 0; k0 < p.k; k0 += kChunk) {
    const int64_t depth = std::min(kChunk, p.k - k0);
    for (int64_t n = n0; n < n1; n += kColumns) {
      const float* const b_panel = b + k0 * b_lines + (n - n0) * depth;
      for (int64_t m = m0; m < m1; m += kRows) {
        const float* const a_panel = a + k0 * a_lines + m * depth;
        float* const at = c + m * p.n + n;
        const int64_t rows = std::min<int64_t>(kRows, m1 - m), columns = std::min(kColumns, n1 - n);
        if (rows == kRows && columns == kColumns) {
          Panel(a_panel, b_panel, depth, at, p.n);
        } else {
          EdgePanel(a_panel, b_panel, depth, at, p.n, rows, columns);
        }
      }
    }
  }
}

void PackRows(const GemmParams& p) {
  const Packing packing = PackingOf(p.a, p.k);
  const int64_t panels = cpu::CeilDiv(p.m, kRows), size = PackedRows(p.m, p.k);
  // A batch of its own for every packed matrix: that of the first batch that uses it.
  int64_t steps[kMaxGemmAxes];
  int64_t step = 1;
  for (int axis = p.a.batch_axes - 1; axis >= 0; --axis) {
    steps[axis] = step;
    step *= p.a.dims[axis];
  }
  cpu::ParallelFor(PackedBatches(p.a) * panels, [&](int64_t task) {
    int64_t rest = task / panels, batch = 0;
    for (int axis = p.a.batch_axes - 1; axis >= 0; --axis) {
      if (p.a.strides[axis] == 0) continue;
      batch += rest % p.a.dims[axis] * steps[axis];
      rest /= p.a.dims[axis];
    }
    PackPanel(packing, batch, 0, p.m, task % panels, kRows, p.packed_a + task / panels * size);
  });
}

void Run(const GemmParams& p) {
  PackRows(p);
  const Packing columns = PackingOf(p.b, p.k);
  const int64_t tiles_n = TilesOf(p.n), tiles_m = cpu::CeilDiv(p.m, kTileRows), panels = kTileColumns / kColumns;
  const int64_t a_size = PackedRows(p.m, p.k), tile_size = PackedTile(p.n, p.k);
  for (int64_t begin = 0; begin < p.batch * tiles_n; begin += p.wave) {
    const int64_t tiles = std::min(p.wave, p.batch * tiles_n - begin);
    cpu::ParallelFor(p.columns_packed ? 0 : tiles * panels, [&](int64_t task) {
      const int64_t tile = begin + task / panels, n0 = tile % tiles_n * kTileColumns;
      const int64_t lines = std::min(kTileColumns, p.n - n0);
      if (task % panels * kColumns >= lines) return;
      PackPanel(columns, tile / tiles_n, n0, lines, task % panels, kColumns, p.packed_b + task / panels * tile_size);
    });
    cpu::ParallelFor(tiles * tiles_m, [&](int64_t task) {
      const int64_t tile = begin + task / tiles_m, batch = tile / tiles_n;
      ComputeTile(p, p.packed_a + PackedBatch(p.a, batch) * a_size, p.packed_b + task / tiles_m * tile_size,
                  p.c + batch * p.m * p.n, task % tiles_m * kTileRows, tile % tiles_n * kTileColumns);
    });
  }
}

}  // namespace gemm

void RunGemm(const GemmParams& p) { gemm::Run(p); }

}  // namespace HWY_NAMESPACE
}  // namespace anyacl
HWY_AFTER_NAMESPACE();

#if HWY_ONCE
namespace anyacl::cpu {

HWY_EXPORT(RunGemm);
void Gemm(const GemmParams& p) { ANYACL_FAMILY_DISPATCH(RunGemm)(p); }

std::span<const Kernel> GemmKernels() {
  static constexpr Kernel kernels[] = {MakeKernel<GemmParams, FitsAlways<GemmParams>, Gemm>("panels")};
  return kernels;
}

}  // namespace anyacl::cpu
#endif  // HWY_ONCE
