// SPDX-License-Identifier: Apache-2.0
// Copyright The AnyACL Authors
#ifndef ANYACL_CORE_TENSOR_H_
#define ANYACL_CORE_TENSOR_H_

#include <cstdint>
#include <initializer_list>
#include <span>
#include <string>

#include "core/dtype.h"

namespace anyacl {

inline constexpr int kMaxRank = 25;  // what a tensor object can hold; operators allow less

// A short list of 64-bit numbers with inline storage: dims or strides.
class Dims {
 public:
  Dims() = default;
  Dims(std::initializer_list<int64_t> values) : Dims(std::span(values.begin(), values.size())) {}
  explicit Dims(std::span<const int64_t> values) {
    for (int64_t v : values) push_back(v);
  }

  int rank() const { return rank_; }
  int64_t operator[](int i) const { return values_[i]; }
  int64_t& operator[](int i) { return values_[i]; }
  const int64_t* begin() const { return values_; }
  const int64_t* end() const { return values_ + rank_; }
  void push_back(int64_t v) {
    if (rank_ < kMaxRank) values_[rank_++] = v;
  }
  void resize(int rank) {
    while (rank_ < rank && rank_ < kMaxRank) values_[rank_++] = 0;
    rank_ = rank < kMaxRank ? rank : kMaxRank;
  }

  bool operator==(const Dims& other) const {
    if (rank_ != other.rank_) return false;
    for (int i = 0; i < rank_; ++i) {
      if (values_[i] != other.values_[i]) return false;
    }
    return true;
  }

 private:
  int rank_ = 0;
  int64_t values_[kMaxRank];  // only the first rank_ are ever read
};

// "[2, 3, 4]"; "[]" for a 0-dim tensor.
std::string ToString(const Dims& dims);

// Product of the dims; kOverflow when it does not fit into 63 bits or a dim is negative.
inline constexpr int64_t kOverflow = -1;
inline int64_t Numel(const Dims& dims) {
  int64_t product = 1;
  bool overflow = false;
  for (int64_t d : dims) {
    if (d < 0) return kOverflow;
    if (d == 0) return 0;
    overflow |= __builtin_mul_overflow(product, d, &product);
  }
  return overflow ? kOverflow : product;
}

// Row-major strides of a shape.
Dims ContiguousStrides(const Dims& dims);

inline constexpr uint64_t kHashFactor = 0x9e3779b97f4a7c15;  // odd, with ones and zeros everywhere

// What an aclTensor describes. Strides and offset count elements.
struct Tensor {
  DType dtype = DType::kUndefined;
  Format format = Format::kND;
  Dims dims;
  Dims strides;
  int64_t offset = 0;
  Dims storage;
  void* data = nullptr;
  // How often the tensor itself, not an executor, was given another address.
  uint32_t repointed = 0;
  // Of tensors that have a handle, so that calls find their plans again; set by Identify.
  uint64_t hash = 0;    // of dims, strides and dtype
  uint64_t number = 0;  // equal numbers, equal in all but the address

  void Identify();
  int rank() const { return dims.rank(); }
  int64_t numel() const { return Numel(dims); }
  bool empty() const { return numel() == 0; }
};

// True when the elements lie one behind the other in row-major order. Axes of size 1 do not matter;
// tensors with at most one element always are.
bool IsContiguous(const Tensor& t);

// First and one-past-last element, relative to data, that the view can touch. False on overflow.
struct Extent {
  int64_t begin = 0;
  int64_t end = 0;
};
bool GetExtent(const Tensor& t, Extent* extent);

}  // namespace anyacl

#endif  // ANYACL_CORE_TENSOR_H_
