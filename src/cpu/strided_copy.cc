// SPDX-License-Identifier: Apache-2.0
// Copyright The AnyACL Authors
//
// The axes are first merged and, unless the order matters, sorted so that writes walk through
// memory. What is left is one of two forms: runs along the last axis, or, where reads walk through
// memory along another axis than writes do, square tiles over these two.
#include "cpu/strided_copy.h"

#include <algorithm>
#include <cstdlib>
#include <cstring>

#include "core/strided_layout.h"
#include "cpu/parallel.h"

namespace anyacl::cpu {
namespace {

constexpr int64_t kTaskBytes = 256 * 1024;
// Elements per side of a tile, of which a copy stands on the stack: small threads have room for it.
template <class T>
constexpr int64_t kTile = sizeof(T) <= 4 ? 64 : sizeof(T) == 8 ? 32 : 16;
constexpr int64_t kTileTaskBytes = 64 * 1024;  // tiles take their time

using Axis = StridedAxis;
using Layout = StridedLayout;

struct Offsets {
  int64_t from = 0;
  int64_t to = 0;
};

// Position of the index-th step over the axes [0, rank), row-major.
Offsets OffsetsAt(const Layout& layout, int rank, int64_t index) {
  Offsets at;
  for (int i = rank - 1; i >= 0; --i) {
    const Axis& axis = layout.axes[i];
    const int64_t coordinate = index % axis.size;
    index /= axis.size;
    at.from += coordinate * axis.from;
    at.to += coordinate * axis.to;
  }
  return at;
}

template <class T>
void CopyRun(const T* from, T* to, int64_t count, const Axis& axis) {
  if (axis.from == 1 && axis.to == 1) {
    std::memcpy(static_cast<void*>(to), from, count * sizeof(T));
  } else if (axis.to == 1) {
    for (int64_t i = 0; i < count; ++i) to[i] = from[i * axis.from];
  } else {
    for (int64_t i = 0; i < count; ++i) to[i * axis.to] = from[i * axis.from];
  }
}

// Elements [begin, end) in row-major order, one run of the last axis after the other. Coordinates
// are counted up instead of divided out: rows may be short.
template <class T>
void CopyRuns(const Layout& layout, const T* from, T* to, int64_t begin, int64_t end) {
  const int outer = layout.rank - 1;
  const Axis& inner = layout.axes[outer];
  int64_t coordinates[kMaxRank + 1];
  int64_t rest = begin / inner.size;
  for (int i = outer - 1; i >= 0; --i) {
    coordinates[i] = rest % layout.axes[i].size;
    rest /= layout.axes[i].size;
  }
  Offsets row = OffsetsAt(layout, outer, begin / inner.size);
  int64_t column = begin % inner.size;
  for (int64_t done = begin; done < end;) {
    const int64_t run = std::min(inner.size - column, end - done);
    CopyRun(from + row.from + column * inner.from, to + row.to + column * inner.to, run, inner);
    done += run;
    column = 0;
    for (int i = outer - 1; i >= 0; --i) {
      const Axis& axis = layout.axes[i];
      row.from += axis.from;
      row.to += axis.to;
      if (++coordinates[i] < axis.size) break;
      row.from -= axis.from * axis.size;
      row.to -= axis.to * axis.size;
      coordinates[i] = 0;
    }
  }
}

// One tile, turned on the stack: read line by line and written run by run, so that neither side needs more lines of a cache at a
// time than a power of two as a stride leaves it.
template <class T>
void CopyTile(const T* from, T* to, const Axis& rows, const Axis& columns) {
  constexpr int64_t kLine = kTile<T> + 8;  // lines apart from each other in the cache, too
  T tile[kTile<T> * kLine];
  for (int64_t c = 0; c < columns.size; ++c) {
    const T* const line = from + c * columns.from;
    for (int64_t r = 0; r < rows.size; ++r) tile[r * kLine + c] = line[r * rows.from];
  }
  for (int64_t r = 0; r < rows.size; ++r) {
    CopyRun(tile + r * kLine, to + r * rows.to, columns.size, {columns.size, 1, columns.to});
  }
}

// The tiles [begin, end); the last two axes of the layout are cut into tiles.
template <class T>
void CopyTiles(const Layout& layout, const T* from, T* to, int64_t begin, int64_t end) {
  const Axis& rows = layout.axes[layout.rank - 2];
  const Axis& columns = layout.axes[layout.rank - 1];
  const int64_t across = (columns.size + kTile<T> - 1) / kTile<T>;
  const int64_t down = (rows.size + kTile<T> - 1) / kTile<T>;
  for (int64_t tile = begin; tile < end; ++tile) {
    const int64_t row = tile / across % down * kTile<T>;
    const int64_t column = tile % across * kTile<T>;
    const Offsets at = OffsetsAt(layout, layout.rank - 2, tile / (across * down));
    const Axis tile_rows = {std::min(kTile<T>, rows.size - row), rows.from, rows.to};
    const Axis tile_columns = {std::min(kTile<T>, columns.size - column), columns.from, columns.to};
    CopyTile(from + at.from + row * rows.from + column * columns.from,
             to + at.to + row * rows.to + column * columns.to, tile_rows, tile_columns);
  }
}

// Brings the axis along which reads are closest behind all others but the last. True when reads and
// writes walk along different axes and both are long enough for tiles.
bool IsTransposed(Layout& layout) {
  if (layout.rank < 2) return false;
  Axis* const last = &layout.axes[layout.rank - 1];
  Axis* const closest = std::min_element(layout.axes, last + 1, [](const Axis& a, const Axis& b) {
    return std::abs(a.from) < std::abs(b.from);
  });
  if (closest == last || closest->size < 4 || last->size < 4) return false;
  std::rotate(closest, closest + 1, last);
  return true;
}

// Cuts `units` into tasks of `per_task` by size alone.
template <class Body>
void ForRanges(int64_t units, int64_t per_task, Body&& body) {
  ParallelFor((units + per_task - 1) / per_task,
              [&](int64_t task) { body(task * per_task, std::min(units, (task + 1) * per_task)); });
}

template <class T>
void CopyAs(const StridedCopy& copy, Layout& layout) {
  const T* const from = static_cast<const T*>(copy.from);
  T* const to = static_cast<T*>(copy.to);
  if (!copy.serial && IsTransposed(layout)) {
    const Axis& rows = layout.axes[layout.rank - 2];
    const Axis& columns = layout.axes[layout.rank - 1];
    const int64_t tiles = layout.count / (rows.size * columns.size) * ((rows.size + kTile<T> - 1) / kTile<T>) *
                          ((columns.size + kTile<T> - 1) / kTile<T>);
    const int64_t tile_bytes = kTile<T> * kTile<T> * static_cast<int64_t>(sizeof(T));
    return ForRanges(tiles, kTileTaskBytes / tile_bytes,
                     [&](int64_t begin, int64_t end) { CopyTiles(layout, from, to, begin, end); });
  }
  const int64_t per_task = copy.serial ? layout.count : kTaskBytes / static_cast<int64_t>(sizeof(T));
  ForRanges(layout.count, per_task, [&](int64_t begin, int64_t end) { CopyRuns(layout, from, to, begin, end); });
}

// Elements of other sizes become an inner axis of bytes.
Layout InBytes(const Layout& layout, int64_t element_size) {
  Layout bytes = layout;
  for (Axis* axis = bytes.axes; axis != bytes.axes + bytes.rank; ++axis) {
    axis->from *= element_size;
    axis->to *= element_size;
  }
  bytes.axes[bytes.rank++] = {element_size, 1, 1};
  bytes.count *= element_size;
  return bytes;
}

// Bytes, so that addresses need no alignment.
template <int size>
struct Element {
  unsigned char bytes[size];
};

}  // namespace

void CopyStrided(const StridedCopy& copy) {
  Layout layout = Simplify(copy.dims, copy.from_strides, copy.to_strides, copy.serial);
  if (layout.count == 0) return;
  switch (copy.element_size) {
    case 1:
      return CopyAs<Element<1>>(copy, layout);
    case 2:
      return CopyAs<Element<2>>(copy, layout);
    case 4:
      return CopyAs<Element<4>>(copy, layout);
    case 8:
      return CopyAs<Element<8>>(copy, layout);
    case 16:
      return CopyAs<Element<16>>(copy, layout);
    default:
      break;
  }
  Layout bytes = InBytes(layout, copy.element_size);
  CopyAs<Element<1>>(copy, bytes);
}

}  // namespace anyacl::cpu
