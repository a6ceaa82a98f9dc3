// SPDX-License-Identifier: Apache-2.0
// Copyright The AnyACL Authors
//
// Strided views to dense buffers and back. The axes come merged, the last one written closest together. Three forms:
// a plain copy when one dense axis is left; square tiles through shared memory where reads walk along another axis than
// writes do, so that both are coalesced; one thread per element for the rest.
#include <algorithm>
#include <cstdint>
#include <type_traits>

#include "core/strided_layout.h"
#include "cuda/transfers.h"

namespace anyacl::cuda {
namespace {

constexpr int kThreads = 256;
constexpr int kTile = 32;
constexpr int kTileRows = 8;  // rows of threads; each does kTile / kTileRows rows of a tile
constexpr int kSerialThreads = 1024;
constexpr int64_t kMaxBlocks = (int64_t{1} << 31) - 1;

template <class Index>
struct Offsets {
  Index from = 0;
  Index to = 0;
};

// Position of the index-th step over the axes [0, rank), row-major.
template <class Index>
__device__ Offsets<Index> OffsetsAt(const StridedLayout& layout, int rank, Index index) {
  Offsets<Index> at;
  for (int i = rank - 1; i >= 0; --i) {
    const Index size = static_cast<Index>(layout.axes[i].size);
    const Index next = index / size;
    const Index coordinate = index - next * size;
    index = next;
    at.from += coordinate * static_cast<Index>(layout.axes[i].from);
    at.to += coordinate * static_cast<Index>(layout.axes[i].to);
  }
  return at;
}

template <class T, class Index>
__global__ void CopyElements(const __grid_constant__ StridedLayout layout, const T* from, T* to) {
  const int64_t i = static_cast<int64_t>(blockIdx.x) * kThreads + threadIdx.x;
  if (i >= layout.count) return;
  const Offsets<Index> at = OffsetsAt(layout, layout.rank, static_cast<Index>(i));
  to[at.to] = from[at.from];
}

// The two axes that tiles lie over: `column` is written densely, `row` is read densely. The others are counted by
// blockIdx.y and z.
struct TileAxes {
  StridedAxis row;
  StridedAxis column;
  int64_t row_tiles;
};

template <class T>
__global__ void CopyTiles(const __grid_constant__ StridedLayout outer,
                          const __grid_constant__ TileAxes tiles, const T* from, T* to) {
  __shared__ T tile[kTile][kTile + 1];  // one more, so that columns lie in different banks
  const int64_t row0 = (blockIdx.x % tiles.row_tiles) * kTile;
  const int64_t column0 = (blockIdx.x / tiles.row_tiles) * kTile;
  for (int64_t o = blockIdx.y; o < outer.count; o += gridDim.y) {
    const Offsets<int64_t> at = OffsetsAt(outer, outer.rank, o);
    for (int i = threadIdx.y; i < kTile; i += kTileRows) {
      const int64_t row = row0 + threadIdx.x;
      const int64_t column = column0 + i;
      if (row < tiles.row.size && column < tiles.column.size) {
        tile[i][threadIdx.x] = from[at.from + row * tiles.row.from + column * tiles.column.from];
      }
    }
    __syncthreads();
    for (int i = threadIdx.y; i < kTile; i += kTileRows) {
      const int64_t row = row0 + i;
      const int64_t column = column0 + threadIdx.x;
      if (row < tiles.row.size && column < tiles.column.size) {
        to[at.to + row * tiles.row.to + column * tiles.column.to] = tile[threadIdx.x][i];
      }
    }
    __syncthreads();
  }
}

// One block, run after run in row-major order: where runs overlap, the later one wins, as in a loop. Only along the last
// axis are elements written together; if that one stands still, its last element is what remains.
template <class T>
__global__ void CopyInOrder(const __grid_constant__ StridedLayout layout, const T* from, T* to) {
  const StridedAxis inner = layout.axes[layout.rank - 1];
  const int64_t first = inner.to == 0 ? inner.size - 1 : 0;
  const int64_t runs = layout.count / inner.size;
  for (int64_t run = 0; run < runs; ++run) {
    const Offsets<int64_t> at = OffsetsAt(layout, layout.rank - 1, run);
    for (int64_t i = first + threadIdx.x; i < inner.size; i += kSerialThreads) {
      to[at.to + i * inner.to] = from[at.from + i * inner.from];
    }
    __syncthreads();
  }
}

// The outermost axis whose neighbours are read next to each other, when the last axis is not such a one.
int FindReadAxis(const StridedLayout& layout) {
  const StridedAxis& last = layout.axes[layout.rank - 1];
  if (last.from == 1 || last.to != 1 || last.size < kTile / 2) return -1;
  for (int i = 0; i < layout.rank - 1; ++i) {
    if (layout.axes[i].from == 1 && layout.axes[i].size >= kTile / 2) return i;
  }
  return -1;
}

bool FitsInt32(const StridedLayout& layout) {
  int64_t from = 0;
  int64_t to = 0;
  for (int i = 0; i < layout.rank; ++i) {
    from += (layout.axes[i].size - 1) * layout.axes[i].from;
    to += (layout.axes[i].size - 1) * layout.axes[i].to;
  }
  return std::max({from, to, layout.count}) < (int64_t{1} << 31);
}

template <class T>
bool LaunchTiles(const StridedLayout& layout, int read_axis, const T* from, T* to,
                 cudaStream_t stream) {
  TileAxes tiles{layout.axes[read_axis], layout.axes[layout.rank - 1], 0};
  tiles.row_tiles = (tiles.row.size + kTile - 1) / kTile;
  const int64_t blocks = tiles.row_tiles * ((tiles.column.size + kTile - 1) / kTile);
  if (blocks > kMaxBlocks) return false;
  StridedLayout outer;
  for (int i = 0; i < layout.rank - 1; ++i) {
    if (i == read_axis) continue;
    outer.axes[outer.rank++] = layout.axes[i];
    outer.count *= layout.axes[i].size;
  }
  const dim3 grid(static_cast<unsigned>(blocks),
                  static_cast<unsigned>(std::min<int64_t>(outer.count, 65535)));
  CopyTiles<T><<<grid, dim3(kTile, kTileRows), 0, stream>>>(outer, tiles, from, to);
  return true;
}

template <class T>
void Launch(const StridedLayout& layout, const StridedCopy& copy, cudaStream_t stream) {
  const T* const from = static_cast<const T*>(copy.from);
  T* const to = static_cast<T*>(copy.to);
  if (copy.serial) {
    CopyInOrder<T><<<1, kSerialThreads, 0, stream>>>(layout, from, to);
    return;
  }
  const StridedAxis& only = layout.axes[0];
  if (layout.rank == 1 && (only.size == 1 || (only.from == 1 && only.to == 1))) {
    cudaMemcpyAsync(to, from, only.size * sizeof(T), cudaMemcpyDeviceToDevice, stream);
    return;
  }
  const int read_axis = FindReadAxis(layout);
  if (read_axis >= 0 && LaunchTiles(layout, read_axis, from, to, stream)) return;
  const unsigned blocks = static_cast<unsigned>((layout.count + kThreads - 1) / kThreads);
  if (FitsInt32(layout)) {
    CopyElements<T, uint32_t><<<blocks, kThreads, 0, stream>>>(layout, from, to);
  } else {
    CopyElements<T, int64_t><<<blocks, kThreads, 0, stream>>>(layout, from, to);
  }
}

}  // namespace

// Pairs of neighbours become one element of twice the size, as long as they lie together everywhere. Returns the size.
static int Widen(StridedLayout& layout, const StridedCopy& copy) {
  int size = copy.element_size;
  const auto address = reinterpret_cast<uintptr_t>(copy.from) | reinterpret_cast<uintptr_t>(copy.to);
  StridedAxis& last = layout.axes[layout.rank - 1];
  const auto halves = [&] {
    for (int i = 0; i < layout.rank - 1; ++i) {
      if ((layout.axes[i].from | layout.axes[i].to) % 2 != 0) return false;
    }
    return last.from == 1 && last.to == 1 && last.size % 2 == 0 && address % (2 * size) == 0;
  };
  for (; size < 16 && halves(); size *= 2) {
    for (int i = 0; i < layout.rank - 1; ++i) {
      layout.axes[i].from /= 2;
      layout.axes[i].to /= 2;
    }
    last.size /= 2;
    layout.count /= 2;
  }
  return size;
}

void CopyStrided(const StridedCopy& copy, cudaStream_t stream) {
  StridedLayout layout = Simplify(copy.dims, copy.from_strides, copy.to_strides, copy.serial);
  if (layout.count == 0) return;
  switch (copy.serial ? copy.element_size : Widen(layout, copy)) {
    case 1:
      return Launch<uint8_t>(layout, copy, stream);
    case 2:
      return Launch<uint16_t>(layout, copy, stream);
    case 4:
      return Launch<uint32_t>(layout, copy, stream);
    case 8:
      return Launch<uint64_t>(layout, copy, stream);
    default:
      return Launch<ulonglong2>(layout, copy, stream);
  }
}

}  // namespace anyacl::cuda
