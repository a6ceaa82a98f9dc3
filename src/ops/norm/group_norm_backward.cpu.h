// SPDX-License-Identifier: Apache-2.0
// Copyright The AnyACL Authors
//
// How the kernels of GroupNormBackward on the CPU cut up a call, the same for every SIMD target.
#ifndef ANYACL_OPS_NORM_GROUP_NORM_BACKWARD_CPU_H_
#define ANYACL_OPS_NORM_GROUP_NORM_BACKWARD_CPU_H_

#include <algorithm>
#include <cmath>
#include <cstdint>
#include <cstring>
#include <limits>

#include "cpu/kernels.h"
#include "cpu/parallel.h"
#include "ops/norm/group_norm_backward.h"

namespace anyacl::cpu {
namespace {

using Params = GroupNormBackwardParams;

inline constexpr int64_t kChunk = 4096;     // elements of a channel that are summed in float
inline constexpr int64_t kPiece = 1 << 16;  // elements of a group that one thread takes at a time
inline constexpr int64_t kChunkRows = 256;  // rows of channels-last memory, likewise
inline constexpr int64_t kPad = 64;         // lanes of the widest vector there is

// How a call is cut up and where its sums lie.
struct Work {
  int64_t channels;  // of a group
  int64_t size;      // elements of a group
  int64_t block;     // samples that share one row of sums
  int64_t blocks;
  int64_t width;        // floats in a row of sums, once for db and once for ds
  float* sums;          // [blocks][2][width]; null: neither dgamma nor dbeta is wanted
  float* partial;       // sums of chunks, where all threads share a group
  bool stream;          // dx bypasses the caches
  bool beside;          // where threads share groups: one is summed while dx of another is written

  float* Db(int64_t b) const { return sums + b * 2 * width; }
  float* Ds(int64_t b) const { return Db(b) + width; }

  // flat: gamma of every position of a sample.
  float* gamma;

  // channels_last: `rows` rows of memory are taken as one of `row` elements, so that it fills some
  // vectors.
  int64_t rows;
  int64_t row;
  int64_t chunks;          // of a sample
  unsigned char* samples;  // memory for the sample in work, per block
};

struct Sums {
  double db = 0;
  double ds = 0;
};

// c1 and c2 of a group.
struct Means {
  float c1;
  float c2;
};

template <class T>
T LoadAny(const void* data, int64_t i) {
  T value;
  std::memcpy(&value, static_cast<const T*>(data) + i, sizeof(T));
  return value;
}

inline float Parameter(const Params& p, const void* data, int64_t i) {
  if (p.param_dtype == DType::kF32) return LoadAny<float>(data, i);
  if (p.param_dtype == DType::kF16) return static_cast<float>(LoadAny<Half>(data, i));
  return static_cast<float>(LoadAny<BFloat16>(data, i));
}

inline float Gamma(const Params& p, int64_t c) { return p.gamma ? Parameter(p, p.gamma, c) : 1.0f; }

template <class T>
void StoreAny(T value, void* data, int64_t i) {
  std::memcpy(static_cast<T*>(data) + i, &value, sizeof(T));
}

inline void SetParameter(const Params& p, void* data, int64_t c, double value) {
  if (!data) return;
  if (p.param_dtype == DType::kF32) return StoreAny(static_cast<float>(value), data, c);
  if (p.param_dtype == DType::kF16) return StoreAny(Half(value), data, c);
  StoreAny(BFloat16(value), data, c);
}

// The sums of one channel of one sample: into those of its block and of its group.
inline void AddChannel(const Params& p, const Work& w, int64_t n, int64_t c, Sums channel,
                       Sums* group) {
  const float gamma = Gamma(p, c);
  group->db += gamma * channel.db;
  group->ds += gamma * channel.ds;
  if (!w.sums) return;
  float& db = w.Db(n / w.block)[c];
  float& ds = w.Ds(n / w.block)[c];
  const bool first = n % w.block == 0;
  db = static_cast<float>(first ? channel.db : db + channel.db);
  ds = static_cast<float>(first ? channel.ds : ds + channel.ds);
}

inline Means MeansOf(const Work& w, const Sums& group) {
  const double size = static_cast<double>(w.size);
  return {static_cast<float>(group.db / size), static_cast<float>(group.ds / size)};
}

// The part of a group that one thread takes when all threads share it: channels [channel, channel +
// count), of each the elements [begin, end).
struct Piece {
  int64_t channel, count, begin, end;
};

inline int64_t PiecesOfGroup(const Params& p, const Work& w) {
  if (p.hxw >= kPiece) return w.channels * CeilDiv(p.hxw, kPiece);
  return CeilDiv(w.channels, kPiece / p.hxw);
}

inline Piece PieceOfGroup(const Params& p, const Work& w, int64_t i) {
  if (p.hxw >= kPiece) {
    const int64_t per_channel = CeilDiv(p.hxw, kPiece);
    const int64_t begin = i % per_channel * kPiece;
    return {i / per_channel, 1, begin, std::min(begin + kPiece, p.hxw)};
  }
  const int64_t count = kPiece / p.hxw;
  return {i * count, std::min(count, w.channels - i * count), 0, p.hxw};
}

// The memory channels_last needs for the sample in work. Rows are padded: whole vectors may be
// read.
struct SampleMemory {
  static int64_t Stride(const Work& w) { return (w.row + kPad + 15) / 16 * 16; }
  static int64_t Bytes(const Work& w) {
    return Stride(w) * static_cast<int64_t>(2 * sizeof(double) + 7 * sizeof(float));
  }
  SampleMemory(const Work& w, int64_t block) {
    const int64_t stride = Stride(w);
    total = reinterpret_cast<double*>(w.samples + block * Bytes(w));
    chunk = reinterpret_cast<float*>(total + 2 * stride);
    mean = chunk + 2 * stride;
    rstd = mean + stride;
    gamma = rstd + stride;
    c1 = gamma + stride;
    c2 = c1 + stride;
  }
  double* total;  // db, then ds one stride behind it, as in chunk
  float* chunk;
  float *mean, *rstd, *gamma, *c1, *c2;  // of every position of a row
};

}  // namespace
}  // namespace anyacl::cpu

#endif  // ANYACL_OPS_NORM_GROUP_NORM_BACKWARD_CPU_H_
