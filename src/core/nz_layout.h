// SPDX-License-Identifier: Apache-2.0
// Copyright The AnyACL Authors
//
// FRACTAL_NZ: a matrix [R, C] lies as [ceil(C / C0), ceil(R / 16), 16, C0] with C0 = 32 bytes of elements, padded with zeros;
// batches follow each other.
#ifndef ANYACL_CORE_NZ_LAYOUT_H_
#define ANYACL_CORE_NZ_LAYOUT_H_

#include "core/dtype.h"
#include "core/tensor.h"

namespace anyacl {

inline constexpr int64_t kNzRows = 16;
// For dtypes with a size.
inline int64_t NzColumns(DType dtype) { return 32 / static_cast<int64_t>(SizeOf(dtype)); }

inline int64_t NzBlocks(int64_t size, int64_t block) { return size / block + (size % block != 0); }

// The storage of the image of a dense matrix or a batch of them.
inline Dims NzStorage(const Dims& matrices, DType dtype) {
  Dims storage;
  const int rank = matrices.rank();
  for (int i = 0; i + 2 < rank; ++i) storage.push_back(matrices[i]);
  const int64_t columns = NzColumns(dtype);
  storage.push_back(NzBlocks(matrices[rank - 1], columns));
  storage.push_back(NzBlocks(matrices[rank - 2], kNzRows));
  storage.push_back(kNzRows);
  storage.push_back(columns);
  return storage;
}

}  // namespace anyacl

#endif  // ANYACL_CORE_NZ_LAYOUT_H_
