// SPDX-License-Identifier: Apache-2.0
// Copyright The AnyACL Authors
//
// Channels-last memory: vectors run across the channels of a row.
#if defined(ANYACL_OPS_NORM_GROUP_NORM_BACKWARD_CHANNELS_LAST_CPU_INL_H_) == \
    defined(HWY_TARGET_TOGGLE)
#ifdef ANYACL_OPS_NORM_GROUP_NORM_BACKWARD_CHANNELS_LAST_CPU_INL_H_
#undef ANYACL_OPS_NORM_GROUP_NORM_BACKWARD_CHANNELS_LAST_CPU_INL_H_
#else
#define ANYACL_OPS_NORM_GROUP_NORM_BACKWARD_CHANNELS_LAST_CPU_INL_H_
#endif

#include "ops/norm/group_norm_backward_terms.cpu-inl.h"

HWY_BEFORE_NAMESPACE();
namespace anyacl {
namespace cpu {
namespace HWY_NAMESPACE {
namespace {

// Adds `rows` rows of `width` elements to the sums of their positions.
template <int rows, class T>
HWY_INLINE void AddRows(const T* dy, const T* x, int64_t stride, int64_t width,
                        const SampleMemory& s, float* db, float* ds) {
  const int64_t lanes = LaneCount();
  int64_t i = 0;
  for (; i + lanes <= width; i += lanes) {
    const VF mean = Load1(s.mean + i);
    const VF rstd = Load1(s.rstd + i);
    VF g = Load1(dy + i);
    VF product = hn::Mul(g, Normal(Load1(x + i), mean, rstd));
    if constexpr (rows == 2) {
      const VF g1 = Load1(dy + stride + i);
      product = hn::MulAdd(g1, Normal(Load1(x + stride + i), mean, rstd), product);
      g = hn::Add(g, g1);
    }
    Store1(hn::Add(Load1(db + i), g), db + i);
    Store1(hn::Add(Load1(ds + i), product), ds + i);
  }
  if (i == width) return;
  const auto mask = LastMask(width, width - i);
  const int64_t at = LastAt(width);
  for (int row = 0; row < rows; ++row) {
    const VF g = LoadLast(dy + row * stride, width);
    const VF product = hn::Mul(
        g, Normal(LoadLast(x + row * stride, width), Load1(s.mean + at), Load1(s.rstd + at)));
    Store1(hn::Add(Load1(db + at), hn::IfThenElseZero(mask, g)), db + at);
    Store1(hn::Add(Load1(ds + at), hn::IfThenElseZero(mask, product)), ds + at);
  }
}

// One sample of a channels-last call: whole rows of w.row elements and what is left behind the last
// one.
template <class T>
struct LastSample {
  LastSample(const Params& params, const Work& work, int64_t sample)
      : p(params), w(work), n(sample) {
    const int64_t start = n * p.hxw * p.c;
    dy = In<T>(p.dy) + start;
    x = In<T>(p.x) + start;
    dx = p.dx ? static_cast<T*>(p.dx) + start : nullptr;
    whole_rows = p.hxw / w.rows;
    rest = p.hxw % w.rows * p.c;
  }

  bool IsLast(int64_t chunk) const { return chunk == w.chunks - 1; }
  int64_t Begin(int64_t chunk) const { return chunk * kChunkRows; }
  int64_t End(int64_t chunk) const { return std::min(Begin(chunk) + kChunkRows, whole_rows); }

  void SumChunk(int64_t chunk, const SampleMemory& s, float* db, float* ds) const {
    std::memset(db, 0, w.row * sizeof(float));
    std::memset(ds, 0, w.row * sizeof(float));
    int64_t i = Begin(chunk);
    for (; i + 2 <= End(chunk); i += 2)
      AddRows<2>(dy + i * w.row, x + i * w.row, w.row, w.row, s, db, ds);
    if (i < End(chunk)) AddRows<1>(dy + i * w.row, x + i * w.row, 0, w.row, s, db, ds);
    const int64_t end = whole_rows * w.row;
    if (IsLast(chunk) && rest > 0) AddRows<1>(dy + end, x + end, 0, rest, s, db, ds);
  }

  void WriteDx(int64_t chunk, const SampleMemory& s) const {
    const RowCoefficients f{s.mean, s.rstd, s.gamma, s.c1, s.c2};
    const int64_t end = whole_rows * w.row;
    if (IsLast(chunk) && rest > 0) PlainGradients(dy + end, x + end, dx + end, rest, f);
    for (int64_t i = End(chunk) - 1; i >= Begin(chunk); --i) {
      Gradients(dy + i * w.row, x + i * w.row, dx + i * w.row, w.row, f, w.stream);
    }
  }

  void SpreadStatistics(const SampleMemory& s) const {
    for (int64_t g = 0; g < p.groups; ++g) {
      std::fill_n(s.mean + g * w.channels, w.channels, Parameter(p, p.mean, n * p.groups + g));
      std::fill_n(s.rstd + g * w.channels, w.channels, Parameter(p, p.rstd, n * p.groups + g));
    }
    Repeat(s.mean);
    Repeat(s.rstd);
  }

  // From the sums of positions to those of channels, blocks and groups, and to coefficients.
  void Finish(const SampleMemory& s) const {
    for (int64_t g = 0; g < p.groups; ++g) {
      Sums group;
      for (int64_t c = g * w.channels; c < (g + 1) * w.channels; ++c) {
        Sums channel;
        for (int64_t i = c; i < w.row; i += p.c) {
          channel.db += s.total[i];
          channel.ds += s.total[i + SampleMemory::Stride(w)];
        }
        AddChannel(p, w, n, c, channel, &group);
        s.gamma[c] = Gamma(p, c);
      }
      const Means means = MeansOf(w, group);
      std::fill_n(s.c1 + g * w.channels, w.channels, means.c1);
      std::fill_n(s.c2 + g * w.channels, w.channels, means.c2);
    }
    for (float* const values : {s.gamma, s.c1, s.c2}) Repeat(values);
  }

  // The first row, of p.c elements, once for each of w.rows.
  void Repeat(float* values) const {
    for (int64_t i = p.c; i < w.row; i += p.c) std::memcpy(values + i, values, p.c * sizeof(float));
  }

  // Adds the sums of one chunk, which follow each other in memory as those of s.total do.
  void AddChunk(const float* chunk, const SampleMemory& s) const {
    using F64 = hn::ScalableTag<double>;
    const F64 d;
    const hn::Rebind<float, F64> half;
    const int64_t step = static_cast<int64_t>(hn::Lanes(d));
    for (int64_t i = 0; i < 2 * SampleMemory::Stride(w); i += step) {
      const auto sum =
          hn::Add(hn::LoadU(d, s.total + i), hn::PromoteTo(d, hn::LoadU(half, chunk + i)));
      hn::StoreU(sum, d, s.total + i);
    }
  }

  void ClearTotal(const SampleMemory& s) const {
    std::memset(s.total, 0, 2 * SampleMemory::Stride(w) * sizeof(double));
  }

  const Params& p;
  const Work& w;
  int64_t n;
  const T* dy;
  const T* x;
  T* dx;
  int64_t whole_rows;
  int64_t rest;  // elements
};

template <class T>
void LastBlockOf(const Params& p, const Work& w, int64_t b) {
  const SampleMemory s(w, b);
  float* const ds = s.chunk + SampleMemory::Stride(w);
  std::memset(s.chunk, 0,
              2 * SampleMemory::Stride(w) * sizeof(float));  // its padding is added, too
  for (int64_t n = b * w.block; n < std::min((b + 1) * w.block, p.n); ++n) {
    const LastSample<T> sample(p, w, n);
    sample.SpreadStatistics(s);
    sample.ClearTotal(s);
    for (int64_t k = 0; k < w.chunks; ++k) {
      sample.SumChunk(k, s, s.chunk, ds);
      sample.AddChunk(s.chunk, s);
    }
    sample.Finish(s);
    for (int64_t k = w.chunks - 1; p.dx && k >= 0; --k) sample.WriteDx(k, s);
  }
  if (w.stream) EndStream();
}

// All samples of a block.
void LastBlock(const Params& p, const Work& w, int64_t b) {
  NoteTarget();
  WithType(p.dtype, [&]<class T>(T*) HWY_ATTR { LastBlockOf<T>(p, w, b); });
}

template <class T>
void SharedLastOf(const Params& p, const Work& w, int64_t n) {
  const SampleMemory s(w, 0);
  const int64_t stride = SampleMemory::Stride(w);
  const LastSample<T> sample(p, w, n);
  sample.SpreadStatistics(s);
  sample.ClearTotal(s);
  ParallelFor(w.chunks, [&](int64_t k) {
    float* const db = w.partial + k * 2 * stride;
    std::memset(db, 0, 2 * stride * sizeof(float));
    sample.SumChunk(k, s, db, db + stride);
  });
  for (int64_t k = 0; k < w.chunks; ++k) sample.AddChunk(w.partial + k * 2 * stride, s);
  sample.Finish(s);
  if (!p.dx) return;
  const auto write = [&](int64_t k) {
    sample.WriteDx(k, s);
    if (w.stream) EndStream();
  };
  ParallelFor(w.chunks, write, Order::kBackwards);
}

// One sample by all threads.
void SharedLast(const Params& p, const Work& w, int64_t n) {
  NoteTarget();
  WithType(p.dtype, [&]<class T>(T*) HWY_ATTR { SharedLastOf<T>(p, w, n); });
}

}  // namespace
}  // namespace HWY_NAMESPACE
}  // namespace cpu
}  // namespace anyacl
HWY_AFTER_NAMESPACE();

#endif  // per-target include guard
