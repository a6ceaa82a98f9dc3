// SPDX-License-Identifier: Apache-2.0
// Copyright The AnyACL Authors
//
// A list of plain values that needs no heap while it is short: calls have a few arguments, lists may have hundreds.
#ifndef ANYACL_CORE_INLINE_VECTOR_H_
#define ANYACL_CORE_INLINE_VECTOR_H_

#include <cstddef>
#include <cstring>
#include <memory>
#include <span>
#include <type_traits>

namespace anyacl {

template <class T, size_t kInline>
class InlineVector {
  static_assert(std::is_trivially_copyable_v<T> && std::is_trivially_destructible_v<T>);

 public:
  InlineVector() {}  // the inline part stays as it is: clearing it would show in short calls
  InlineVector(const InlineVector&) = delete;
  InlineVector& operator=(const InlineVector&) = delete;

  size_t size() const { return size_; }
  bool empty() const { return size_ == 0; }
  T* data() { return data_; }
  const T* data() const { return data_; }
  T* begin() { return data(); }
  T* end() { return data() + size_; }
  const T* begin() const { return data(); }
  const T* end() const { return data() + size_; }
  T& operator[](size_t i) { return data()[i]; }
  const T& operator[](size_t i) const { return data()[i]; }
  operator std::span<const T>() const { return {data(), size_}; }  // NOLINT: it is one

  void push_back(const T& value) {
    const T copy = value;  // it may be an element of ours
    if (size_ == capacity_) [[unlikely]]
      reserve(size_ + 1);
    data_[size_++] = copy;
  }
  // New elements are as the memory was.
  void resize(size_t size) {
    reserve(size);
    size_ = size;
  }
  void reserve(size_t size) {
    if (size <= capacity_) return;
    const size_t capacity = size < 2 * capacity_ ? 2 * capacity_ : size;
    std::unique_ptr<T[]> grown(new T[capacity]);
    std::memcpy(static_cast<void*>(grown.get()), data(), size_ * sizeof(T));
    heap_ = std::move(grown);
    data_ = heap_.get();
    capacity_ = capacity;
  }

 private:
  T* data_ = reinterpret_cast<T*>(inline_);
  size_t size_ = 0;
  size_t capacity_ = kInline;
  std::unique_ptr<T[]> heap_;
  alignas(T) unsigned char inline_[kInline * sizeof(T)];
};

}  // namespace anyacl

#endif  // ANYACL_CORE_INLINE_VECTOR_H_
