// SPDX-License-Identifier: Apache-2.0
// Copyright The AnyACL Authors
//
// What the tests of the CUDA kernels share: arrays on both sides with guard bytes, data, a comparison.
#ifndef ANYACL_TESTS_CUDA_KERNEL_TESTING_H_
#define ANYACL_TESTS_CUDA_KERNEL_TESTING_H_

#include <cuda_runtime_api.h>
#include <gtest/gtest.h>

#include <algorithm>
#include <cmath>
#include <cstring>
#include <limits>
#include <random>
#include <span>
#include <string>
#include <vector>

#include "core/dtype.h"
#include "core/scalar.h"
#include "cuda/kernels.h"

namespace anyacl::cuda {

using Bytes = std::vector<unsigned char>;
constexpr DType F32 = DType::kF32, F16 = DType::kF16, BF16 = DType::kBF16;

inline void Check(cudaError_t error) { ASSERT_EQ(error, cudaSuccess) << cudaGetErrorString(error); }

// Device memory between guard bytes, `shift` bytes off its alignment.
class DeviceBytes {
 public:
  explicit DeviceBytes(size_t bytes, size_t shift = 0, int fill = kGuardByte)
      : bytes_(bytes), front_(kGuard + shift) {
    Check(cudaMalloc(&memory_, bytes_ + front_ + kGuard));
    Check(cudaMemset(memory_, kGuardByte, bytes_ + front_ + kGuard));
    if (fill != kGuardByte && bytes > 0) Check(cudaMemset(data(), fill, bytes));
  }
  ~DeviceBytes() { cudaFree(memory_); }
  DeviceBytes(const DeviceBytes&) = delete;

  void* data() const { return static_cast<unsigned char*>(memory_) + front_; }
  void Upload(const void* from) { Check(cudaMemcpy(data(), from, bytes_, cudaMemcpyHostToDevice)); }
  // The contents; fails the test when a guard byte has changed.
  Bytes Download() const {
    Bytes all(bytes_ + front_ + kGuard);
    Check(cudaMemcpy(all.data(), memory_, all.size(), cudaMemcpyDeviceToHost));
    const auto is_guard = [](unsigned char b) { return b == kGuardByte; };
    EXPECT_TRUE(std::all_of(all.begin(), all.begin() + front_, is_guard)) << "written in front";
    EXPECT_TRUE(std::all_of(all.end() - kGuard, all.end(), is_guard)) << "written behind";
    return Bytes(all.begin() + front_, all.begin() + front_ + bytes_);
  }

 private:
  static constexpr size_t kGuard = 256;
  static constexpr int kGuardByte = 0x5a;
  size_t bytes_, front_;
  void* memory_ = nullptr;
};

inline void Set(DType dtype, void* data, int64_t i, double value) {
  switch (dtype) {
    case DType::kF16:
      static_cast<Half*>(data)[i] = Half(value);
      return;
    case DType::kBF16:
      static_cast<BFloat16*>(data)[i] = BFloat16(value);
      return;
    case DType::kI32:
      static_cast<int32_t*>(data)[i] = static_cast<int32_t>(value);
      return;
    default:
      static_cast<float*>(data)[i] = static_cast<float>(value);
      return;
  }
}
inline double Get(DType dtype, const void* data, int64_t i) {
  switch (dtype) {
    case DType::kF16:
      return static_cast<double>(static_cast<const Half*>(data)[i]);
    case DType::kBF16:
      return static_cast<double>(static_cast<const BFloat16*>(data)[i]);
    case DType::kI32:
      return static_cast<const int32_t*>(data)[i];
    case DType::kF64:
      return static_cast<const double*>(data)[i];
    default:
      return static_cast<const float*>(data)[i];
  }
}

enum class Data { kPlain, kOffset, kTiny, kHostile };

// An input on both sides.
class Input {
 public:
  Input(DType dtype, int64_t count, size_t shift = 0)
      : dtype_(dtype),
        count_(count),
        host_(count * SizeOf(dtype)),
        device_(count * SizeOf(dtype), shift * SizeOf(dtype)) {}

  void Fill(unsigned seed, Data data, double centre = 0, double spread = 2) {
    static constexpr double kInf = std::numeric_limits<double>::infinity();
    static constexpr double kSpecials[] = {0.0,   -0.0,   kInf, -kInf, NAN,
                                           1e-40, -1e-40, 6e-8, 100,   -100};
    std::minstd_rand random(seed);
    random.discard(3);
    for (int64_t i = 0; i < count_; ++i) {
      double value = (static_cast<double>(random()) / 2147483646.0 - 0.5) * 2 * spread;
      if (data == Data::kTiny) value *= std::pow(10.0, -30 - static_cast<int>(random() % 12));
      if (data == Data::kHostile && random() % 97 == 0)
        value = kSpecials[random() % std::size(kSpecials)];
      Set(dtype_, host_.data(), i, value + centre);
    }
    device_.Upload(host_.data());
  }

  DType dtype() const { return dtype_; }
  int64_t count() const { return count_; }
  const void* host() const { return host_.data(); }
  const void* device() const { return device_.data(); }
  double operator[](int64_t i) const { return Get(dtype_, host_.data(), i); }
  bool Unchanged() const { return device_.Download() == host_; }

 private:
  DType dtype_;
  int64_t count_;
  Bytes host_;
  DeviceBytes device_;
};

// Runs a kernel as a plan does: scratch is asked for before there are addresses and filled with NaNs.
template <class Params>
void RunKernel(const Kernel& kernel, Params p, const Params& planned) {
  ASSERT_TRUE(kernel.fits(&planned)) << kernel.name;
  const int64_t bytes = kernel.scratch_bytes ? kernel.scratch_bytes(&planned) : 0;
  DeviceBytes scratch(static_cast<size_t>(bytes), 0, 0xff);
  if constexpr (requires { p.scratch; }) p.scratch = scratch.data();
  kernel.run(&p, Launch{nullptr, 0});
  Check(cudaGetLastError());
  Check(cudaDeviceSynchronize());
  scratch.Download();
}

template <class Params>
const Kernel& FirstThatFits(std::span<const Kernel> kernels, const Params& planned) {
  for (const Kernel& kernel : kernels) {
    if (kernel.fits(&planned)) return kernel;
  }
  throw std::runtime_error("no kernel fits");
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
inline ::testing::AssertionResult Close(DType dtype, double got, double expected, double error) {
  const Precision p = PrecisionOf(dtype);
  const double tolerance = error * 1.01 + (std::abs(expected) + error) * p.rounding + p.step;
  bool close = std::abs(got - expected) <= tolerance;
  if (std::isnan(expected)) close = std::isnan(got);
  if (std::isinf(expected)) close = got == expected;
  // Overflow of the dtype.
  if (std::isfinite(expected) && std::abs(expected) + tolerance >= p.most && std::isinf(got)) {
    close = (got > 0) == (expected > 0);
  }
  if (close) return ::testing::AssertionSuccess();
  return ::testing::AssertionFailure() << got << " not " << expected << " +- " << tolerance;
}

}  // namespace anyacl::cuda

#endif  // ANYACL_TESTS_CUDA_KERNEL_TESTING_H_
