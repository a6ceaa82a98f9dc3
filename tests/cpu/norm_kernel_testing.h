// SPDX-License-Identifier: Apache-2.0
// Copyright The AnyACL Authors
//
// What the kernel tests of the normalisations share: guarded arrays of any dtype, data, a comparison.
#ifndef ANYACL_TESTS_CPU_NORM_KERNEL_TESTING_H_
#define ANYACL_TESTS_CPU_NORM_KERNEL_TESTING_H_

#include <gtest/gtest.h>

#include <cmath>
#include <cstring>
#include <limits>
#include <random>
#include <stdexcept>
#include <string>
#include <string_view>
#include <vector>

#include "core/dtype.h"
#include "core/scalar.h"
#include "runtime/backends.h"

namespace anyacl::cpu {

using Bytes = std::vector<unsigned char>;

inline const Kernel& KernelNamed(const char* op, std::string_view name) {
  for (const Kernel& kernel : CpuBackend().Kernels(op)) {
    if (kernel.name == name) return kernel;
  }
  throw std::runtime_error(std::string(name));
}

// `count` elements that start `shift` elements behind a 64-byte line, guard bytes on both sides.
class Array {
 public:
  Array(DType dtype, int64_t count, int shift = 0)
      : dtype_(dtype),
        count_(count),
        memory_(count * SizeOf(dtype) + 2 * kGuard + 64 + shift * SizeOf(dtype), 0x5a) {
    const uintptr_t start = reinterpret_cast<uintptr_t>(memory_.data());
    start_ = ((start + kGuard + 63) & ~uintptr_t{63}) - start + shift * SizeOf(dtype);
  }

  DType dtype() const { return dtype_; }
  int64_t count() const { return count_; }
  void* data() { return memory_.data() + start_; }
  const void* data() const { return memory_.data() + start_; }
  Bytes Contents() const {
    return Bytes(memory_.begin() + start_, memory_.begin() + start_ + count_ * SizeOf(dtype_));
  }

  bool GuardsIntact() const {
    for (size_t i = 0; i < memory_.size(); ++i) {
      const bool inside = i >= start_ && i < start_ + count_ * SizeOf(dtype_);
      if (!inside && memory_[i] != 0x5a) return false;
    }
    return true;
  }

  void Set(int64_t i, float value) {
    if (dtype_ == DType::kF32) static_cast<float*>(data())[i] = value;
    if (dtype_ == DType::kF16) static_cast<Half*>(data())[i] = Half(value);
    if (dtype_ == DType::kBF16) static_cast<BFloat16*>(data())[i] = BFloat16(value);
    if (dtype_ == DType::kI32) static_cast<int32_t*>(data())[i] = static_cast<int32_t>(value);
  }
  float At(int64_t i) const {
    if (dtype_ == DType::kF16) return static_cast<float>(static_cast<const Half*>(data())[i]);
    if (dtype_ == DType::kBF16) return static_cast<float>(static_cast<const BFloat16*>(data())[i]);
    return static_cast<const float*>(data())[i];
  }

 private:
  static constexpr size_t kGuard = 128;
  DType dtype_;
  int64_t count_;
  Bytes memory_;
  size_t start_;
};

enum class Fill {
  kOrdinary,  // -2 ... 2
  kOffset,    // 1e4 and a little: mean much larger than deviation
  kTiny,      // around the smallest numbers of each dtype
  kSpecial,   // ordinary with NaN, infinities and zeros in between
};

inline void FillArray(Array* array, int seed, Fill fill) {
  constexpr float kInf = std::numeric_limits<float>::infinity();
  constexpr float kSpecials[] = {0.0f,  -0.0f, kInf, -kInf, std::numeric_limits<float>::quiet_NaN(),
                                 1e-40f};
  std::minstd_rand random(seed);
  random.discard(3);
  for (int64_t i = 0; i < array->count(); ++i) {
    const uint32_t bits = static_cast<uint32_t>(random());
    float value = (static_cast<float>(bits) - 0x1p30f) * 0x1p-29f;
    if (fill == Fill::kOffset) value = 1e4f + 20 * value;
    if (fill == Fill::kTiny) value *= array->dtype() == DType::kF16 ? 1e-6f : 1e-39f;
    if (fill == Fill::kSpecial && bits / 8 % 97 == 0)
      value = kSpecials[bits % std::size(kSpecials)];
    array->Set(i, value);
  }
}

// Relative error of one rounding, smallest step, largest number.
struct Precision {
  double rounding, step, most;
};
inline Precision PrecisionOf(DType dtype) {
  if (dtype == DType::kF16) return {0x1p-11, 0x1p-24, 65504};
  if (dtype == DType::kBF16) return {0x1p-8, 0x1p-133, 3.38953e38};
  return {0x1p-24, 0x1p-149, 3.4028e38};
}

// `error` is what the arithmetic may be off by, before the result is rounded to its dtype.
inline ::testing::AssertionResult Close(DType dtype, float got, double expected, double error) {
  const Precision p = PrecisionOf(dtype);
  const double tolerance = error * 1.01 + (std::abs(expected) + error) * p.rounding + p.step / 2;
  bool close = std::abs(got - expected) <= tolerance;
  if (std::isnan(expected)) close = std::isnan(got);
  if (std::isinf(expected)) close = got == expected;
  if (std::isinf(got) && std::abs(expected) + tolerance > p.most)
    close = std::signbit(got) == std::signbit(expected);
  if (close) return ::testing::AssertionSuccess();
  return ::testing::AssertionFailure() << got << " is not " << expected << " within " << tolerance;
}

}  // namespace anyacl::cpu

#endif  // ANYACL_TESTS_CPU_NORM_KERNEL_TESTING_H_
