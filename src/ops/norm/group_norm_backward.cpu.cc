// SPDX-License-Identifier: Apache-2.0
// Copyright The AnyACL Authors
//
// GroupNormBackward on the CPU. Every kernel sums a group first and then computes its dx from a
// second read that should still be in a cache:
//
//   flat           short channels: vectors run across the channels of a group, or across groups
//   planes         long channels: vectors run along a channel
//   channels_last  vectors run across the channels of a row
//
// Determinism. Elements are summed in float over pieces whose borders depend on C, HxW and group
// alone, and the pieces are added in double, in order: neither the number of threads nor the batch
// around a sample changes a bit of its sums or of its dx. dgamma and dbeta add the samples of a
// block in float and the blocks in double, in order; the blocks depend on the shape.
#include "ops/norm/group_norm_backward.h"

#include "cpu/cores.h"
#include "ops/norm/group_norm_backward.cpu.h"

#undef HWY_TARGET_INCLUDE
#define HWY_TARGET_INCLUDE "ops/norm/group_norm_backward.cpu.cc"
#include "hwy/foreach_target.h"
#include "hwy/highway.h"
//
#include "ops/norm/group_norm_backward_channels_last.cpu-inl.h"
#include "ops/norm/group_norm_backward_flat.cpu-inl.h"
#include "ops/norm/group_norm_backward_planes.cpu-inl.h"

#if HWY_ONCE
namespace anyacl::cpu {
namespace {

HWY_EXPORT(FlatRange);
HWY_EXPORT(PlaneRange);
HWY_EXPORT(SharedPlanes);
HWY_EXPORT(LastBlock);
HWY_EXPORT(SharedLast);

constexpr int64_t kFlatTask = 8 * 1024;  // elements: those of flat take longer than those of kTask
constexpr int64_t kStackBytes = 16 * 1024;

// Short pieces would break too many lines.
constexpr int64_t kStreamPiece = 1024;

// What a thread should find again in its own cache the second time: larger groups are shared by all
// threads.
constexpr int64_t kGroupBytes = 1 << 20;
constexpr int64_t kFewGroups = 16;

int64_t ElementSize(const Params& p) { return static_cast<int64_t>(SizeOf(p.dtype)); }
int64_t InputBytes(const Params& p) { return 2 * ElementSize(p) * p.n * p.c * p.hxw; }
bool IsEmpty(const Params& p) { return p.n == 0 || p.hxw == 0; }
bool IsRowMajor(const Params& p) { return !p.channels_last || p.c == 1 || p.hxw == 1; }

bool Streams(const Params& p, int64_t piece_elements) {
  return InputBytes(p) / 2 * 3 >= stream_bytes && piece_elements * ElementSize(p) >= kStreamPiece;
}

// ---- Which kernel for which shape. N has no say: a sample gives the same bits in any batch. ----

constexpr int64_t kShortChannel = 32;             // from here on a channel fills its vectors
constexpr int64_t kMostPositions = 300 * 1000;    // flat: tables of C*HxW floats stay in 4 MiB
constexpr int64_t kMostChannels = 1 << 18;        // planes: sums of [C] and of chunks stay in 4 MiB
constexpr int64_t kMostLastChannels = 32 * 1024;  // channels_last: the same

bool FitsFlat(const Params& p) {
  return !IsEmpty(p) && IsRowMajor(p) && p.hxw < kShortChannel && p.c <= kMostPositions / p.hxw;
}
bool FitsPlanes(const Params& p) { return !IsEmpty(p) && IsRowMajor(p) && p.c <= kMostChannels; }
bool FitsLast(const Params& p) { return !IsEmpty(p) && !IsRowMajor(p) && p.c <= kMostLastChannels; }

// ---- Scratch memory, cut from the front ----

class Memory {
 public:
  explicit Memory(void* base) : base_(static_cast<unsigned char*>(base)) {}
  template <class T>
  T* Take(int64_t count) {
    unsigned char* const taken = base_ ? base_ + bytes_ : nullptr;
    bytes_ += (count * static_cast<int64_t>(sizeof(T)) + 63) / 64 * 64;
    return reinterpret_cast<T*>(taken);
  }
  int64_t bytes() const { return bytes_; }

 private:
  unsigned char* base_;  // null: only the bytes count
  int64_t bytes_ = 0;
};

Work NewWork(const Params& p) {
  Work w{};
  w.channels = p.c / p.groups;
  w.size = w.channels * p.hxw;
  return w;
}

// Samples per block such that the blocks need no more than `bytes`.
void SetBlocks(const Params& p, int64_t least_block, int64_t bytes_of_block, int64_t bytes,
               Work* w) {
  const int64_t most_blocks = std::max<int64_t>(bytes / bytes_of_block, 1);
  w->block = std::clamp<int64_t>(std::max(least_block, CeilDiv(p.n, most_blocks)), 1, p.n);
  w->blocks = CeilDiv(p.n, w->block);
}

// Booked in any case: a plan has no addresses yet, so it cannot know which outputs are wanted.
void TakeSums(const Params& p, Memory* memory, Work* w) {
  float* const sums = memory->Take<float>(w->blocks * 2 * w->width);
  w->sums = p.dgamma || p.dbeta ? sums : nullptr;
}

// Small needs are met from the stack: a call without a workspace is a cheaper call.
template <Work (*cut)(const Params&, Memory*)>
int64_t ScratchBytes(const Params& p) {
  Memory memory(nullptr);
  cut(p, &memory);
  return memory.bytes() <= kStackBytes ? 0 : memory.bytes();
}

template <Work (*cut)(const Params&, Memory*), void (*run)(const Params&, const Work&)>
void WithScratch(const Params& p) {
  alignas(64) unsigned char stack[kStackBytes];
  Memory memory(p.scratch ? p.scratch : stack);  // null when ScratchBytes asked for none
  run(p, cut(p, &memory));
}

// ---- dgamma and dbeta from the sums of blocks, a channel being `places` of them ----

void FinishChannels(const Params& p, const Work& w, int64_t places, int64_t begin, int64_t end) {
  for (int64_t c = begin; c < end; ++c) {
    Sums total;
    for (int64_t b = 0; b < w.blocks; ++b) {
      const float* const db = w.Db(b) + c * places;
      const float* const ds = w.Ds(b) + c * places;
      for (int64_t i = 0; i < places; ++i) {
        total.db += db[i];
        total.ds += ds[i];
      }
    }
    SetParameter(p, p.dbeta, c, total.db);
    SetParameter(p, p.dgamma, c, total.ds);
  }
}

void FinishParameters(const Params& p, const Work& w, int64_t places) {
  if (!w.sums) return;
  const int64_t channels = std::max<int64_t>(kTask / (w.blocks * places), 64);
  ParallelFor(CeilDiv(p.c, channels), [&](int64_t i) {
    FinishChannels(p, w, places, i * channels, std::min((i + 1) * channels, p.c));
  });
}

// Calls range(first, last) over [blocks, groups], in tasks of at least so many elements.
template <class Range>
void ForGroups(const Params& p, const Work& w, int64_t elements, Range&& range) {
  const int64_t all = w.blocks * p.groups;
  int64_t groups = CeilDiv(elements, w.block * w.size);
  // Neighbours by one thread, which reads the next while it writes: as many as leave enough tasks.
  if (w.stream) groups = std::max(groups, std::clamp<int64_t>(all / 16, 1, 16));
  if (groups > p.groups) groups = groups / p.groups * p.groups;
  ParallelFor(CeilDiv(all, groups),
              [&](int64_t i) { range(i * groups, std::min((i + 1) * groups, all)); });
}

// ---- flat ----

Work CutFlat(const Params& p, Memory* memory) {
  Work w = NewWork(p);
  w.width = p.c * p.hxw + kPad;
  w.stream = Streams(p, w.size);
  w.gamma = memory->Take<float>(w.width);
  const int64_t row_bytes = w.width * static_cast<int64_t>(sizeof(float));
  const int64_t bytes = std::max(kScratchBytes, InputBytes(p) / 50) - row_bytes;
  SetBlocks(p, std::clamp<int64_t>(kFlatTask / w.size, 8, 256), 2 * row_bytes, bytes, &w);
  TakeSums(p, memory, &w);
  return w;
}

// gamma of every position, and of those that vectors reach behind the last.
void SpreadGamma(const Params& p, const Work& w) {
  const int64_t sample = p.c * p.hxw;
  for (int64_t c = 0; c < p.c; ++c) std::fill_n(w.gamma + c * p.hxw, p.hxw, Gamma(p, c));
  for (int64_t i = sample; i < w.width; ++i) w.gamma[i] = w.gamma[i - sample];
}

// Positions behind a sample are those of the next one.
void FoldPositions(const Params& p, const Work& w) {
  const int64_t sample = p.c * p.hxw;
  for (int64_t b = 0; b < w.blocks && w.sums; ++b) {
    for (int64_t i = w.width - 1; i >= sample; --i) {
      w.Db(b)[i - sample] += w.Db(b)[i];
      w.Ds(b)[i - sample] += w.Ds(b)[i];
    }
  }
}

void RunFlat(const Params& p, const Work& w) {
  const auto range = HWY_DYNAMIC_DISPATCH(FlatRange);
  SpreadGamma(p, w);
  ForGroups(p, w, kFlatTask, [&](int64_t first, int64_t last) { range(p, w, first, last); });
  FoldPositions(p, w);
  FinishParameters(p, w, p.hxw);
}

// ---- planes ----

bool SharesGroups(const Params& p, const Work& w) {
  const bool few = p.n * p.groups < kFewGroups && w.size >= 2 * kPiece;
  return few || w.size * 2 * ElementSize(p) > kGroupBytes;
}

Work CutPlanes(const Params& p, Memory* memory) {
  Work w = NewWork(p);
  w.width = p.c;
  w.stream = Streams(p, p.hxw);
  const int64_t row_bytes = p.c * static_cast<int64_t>(2 * sizeof(float));
  SetBlocks(p, 1, row_bytes, std::max(kScratchBytes / 2, InputBytes(p) / 100), &w);
  TakeSums(p, memory, &w);
  if (!SharesGroups(p, w)) return w;
  w.partial = memory->Take<float>(2 * w.channels * CeilDiv(p.hxw, kChunk));
  // Two groups must stay in the last cache, with room for others. Those that do not are better written at once and
  // backwards, which finds their end there. So are all groups on a Zen 4: 1x512x512x512 in BF16 takes 1.41 times the
  // floor so and 1.28 beside, but 1.45 and 1.68 where its cores have a way to the memory, and a last cache, each.
  w.beside = !is_zen && 2 * w.size * ElementSize(p) <= LastCacheBytes() / 4;
  return w;
}

void RunPlanes(const Params& p, const Work& w) {
  if (w.partial) {
    HWY_DYNAMIC_DISPATCH(SharedPlanes)(p, w);
  } else {
    const auto range = HWY_DYNAMIC_DISPATCH(PlaneRange);
    ForGroups(p, w, kTask, [&](int64_t first, int64_t last) { range(p, w, first, last); });
  }
  FinishParameters(p, w, 1);
}

// ---- channels_last ----

bool SharesSamples(const Params& p) {
  const int64_t size = p.c * p.hxw;
  const bool few = p.n < kFewGroups && size >= 2 * kPiece;
  return few || size * 2 * ElementSize(p) > kGroupBytes;
}

Work CutLast(const Params& p, Memory* memory) {
  constexpr int64_t kRow = 128;  // elements that a row has at least
  constexpr int64_t kBlocks = 64;
  Work w = NewWork(p);
  w.width = p.c;
  w.rows = std::min(CeilDiv(kRow, p.c), p.hxw);
  w.row = w.rows * p.c;
  w.chunks = CeilDiv(p.hxw / w.rows, kChunkRows);
  // Rows that end inside a line would share it with the next one.
  w.stream = Streams(p, w.row) && w.row * ElementSize(p) % 64 == 0;
  const bool shared = SharesSamples(p);
  const int64_t sample_bytes = SampleMemory::Bytes(w);
  const int64_t row_bytes = p.c * static_cast<int64_t>(2 * sizeof(float));
  const int64_t bytes_of_block = row_bytes + (shared ? 0 : sample_bytes);
  SetBlocks(p, CeilDiv(p.n, kBlocks), bytes_of_block, kScratchBytes / 2, &w);
  TakeSums(p, memory, &w);
  w.samples = memory->Take<unsigned char>(sample_bytes * (shared ? 1 : w.blocks));
  if (shared) w.partial = memory->Take<float>(2 * SampleMemory::Stride(w) * w.chunks);
  return w;
}

void RunLast(const Params& p, const Work& w) {
  if (w.partial) {
    const auto sample = HWY_DYNAMIC_DISPATCH(SharedLast);
    for (int64_t n = 0; n < p.n; ++n) sample(p, w, n);
  } else {
    const auto block = HWY_DYNAMIC_DISPATCH(LastBlock);
    ParallelFor(w.blocks, [&](int64_t b) { block(p, w, b); });
  }
  FinishParameters(p, w, 1);
}

template <bool (*fits)(const Params&), Work (*cut)(const Params&, Memory*),
          void (*run)(const Params&, const Work&)>
constexpr Kernel MakeScratchKernel(const char* name) {
  return MakeKernel<Params, fits, WithScratch<cut, run>, ScratchBytes<cut>>(name);
}

constexpr Kernel kKernels[] = {
    MakeScratchKernel<FitsFlat, CutFlat, RunFlat>("flat"),
    MakeScratchKernel<FitsPlanes, CutPlanes, RunPlanes>("planes"),
    MakeScratchKernel<FitsLast, CutLast, RunLast>("channels_last"),
    MakeKernel<Params, FitsAlways<Params>, reference::GroupNormBackward<double>>("reference"),
};

}  // namespace

std::span<const Kernel> GroupNormBackwardKernels() { return kKernels; }

}  // namespace anyacl::cpu
#endif  // HWY_ONCE
