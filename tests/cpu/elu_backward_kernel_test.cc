// SPDX-License-Identifier: Apache-2.0
// Copyright The AnyACL Authors
//
// The kernels of EluBackward below the C border: every SIMD target, dtype row, tail length and
// alignment.
#include <gtest/gtest.h>

#include <algorithm>
#include <bit>
#include <cmath>
#include <cstdlib>
#include <cstring>
#include <limits>
#include <random>
#include <stdexcept>
#include <string>
#include <vector>

#include "cpu/for_each_target.h"
#include "cpu/parallel.h"
#include "cpu/stream_from.h"
#include "ops/activation/elu_backward.h"
#include "runtime/backends.h"

namespace anyacl::cpu {
namespace {

const Kernel& Named(const char* name) {
  for (const Kernel& kernel : CpuBackend().Kernels("elu_backward")) {
    if (std::string(kernel.name) == name) return kernel;
  }
  throw std::runtime_error(name);
}

void RunKernel(const char* name, const EluBackwardParams& params) {
  const Kernel& kernel = Named(name);
  ASSERT_TRUE(kernel.fits(&params));
  kernel.run(&params, Launch{});
}

using Bytes = std::vector<unsigned char>;
constexpr size_t kGuard = 128;

// `count` elements that start `shift` elements behind a 64-byte line, guard bytes on both sides.
class Guarded {
 public:
  Guarded(int64_t count, size_t element_size, int shift)
      : bytes_(count * element_size),
        memory_(bytes_ + 2 * kGuard + 64 + shift * element_size, 0x5a) {
    const uintptr_t line =
        (reinterpret_cast<uintptr_t>(memory_.data()) + kGuard + 63) & ~uintptr_t{63};
    start_ = line - reinterpret_cast<uintptr_t>(memory_.data()) + shift * element_size;
  }
  void* data() { return memory_.data() + start_; }
  Bytes Contents() const {
    return Bytes(memory_.begin() + start_, memory_.begin() + start_ + bytes_);
  }
  bool GuardsIntact() const {
    const auto intact = [](unsigned char byte) { return byte == 0x5a; };
    const auto start = memory_.begin() + static_cast<ptrdiff_t>(start_);
    return std::all_of(memory_.begin(), start, intact) &&
           std::all_of(start + static_cast<ptrdiff_t>(bytes_), memory_.end(), intact);
  }

 private:
  size_t bytes_;
  Bytes memory_;
  size_t start_;
};

void Write(DType dtype, void* data, int64_t i, float value) {
  if (dtype == DType::kF32) static_cast<float*>(data)[i] = value;
  if (dtype == DType::kF16) static_cast<Half*>(data)[i] = Half(value);
  if (dtype == DType::kBF16) static_cast<BFloat16*>(data)[i] = BFloat16(value);
}

float Read(DType dtype, const void* data, int64_t i) {
  if (dtype == DType::kF16) return static_cast<float>(static_cast<const Half*>(data)[i]);
  if (dtype == DType::kBF16) return static_cast<float>(static_cast<const BFloat16*>(data)[i]);
  return static_cast<const float*>(data)[i];
}

constexpr float kSpecials[] = {0.0f,
                               -0.0f,
                               std::numeric_limits<float>::infinity(),
                               -std::numeric_limits<float>::infinity(),
                               std::numeric_limits<float>::quiet_NaN(),
                               1e-40f,
                               -1e-40f,
                               6e-8f,
                               -100.0f,
                               65504.0f};

void FillRandom(DType dtype, void* data, int64_t count, int seed, bool specials) {
  std::minstd_rand random(seed);
  for (int64_t i = 0; i < count; ++i) {
    const int32_t bits = static_cast<int32_t>(random());
    const bool special = specials && bits % 8 == 0;
    const float ordinary = static_cast<float>(bits - 0x40000000) * 0x1p-27f;  // -8 ... 8
    Write(dtype, data, i, special ? kSpecials[random() % std::size(kSpecials)] : ordinary);
  }
}

EluBackwardParams Params(DType dtype, DType out, bool is_result, int64_t count) {
  EluBackwardParams p{};
  p.count = count;
  p.dtype = dtype;
  p.out_dtype = out;
  p.is_result = is_result;
  p.negcoef = 1.67326324f * 1.05070099f;
  p.scale = 1.05070099f;
  p.input_scale = 0.75f;
  return p;
}

constexpr DType kIn[] = {DType::kF32, DType::kF16, DType::kBF16};
constexpr DType kOut[] = {DType::kF32, DType::kF16, DType::kBF16,
                          DType::kF64, DType::kC64, DType::kC128};

// Same class of number and, from exp, at most one step of the storage type (four of float) apart.
void ExpectClose(const EluBackwardParams& p, const void* got, const void* expected) {
  for (int64_t i = 0; i < p.count; ++i) {
    const float a = Read(p.dtype, got, i);
    const float b = Read(p.dtype, expected, i);
    if (std::isnan(a) || std::isnan(b)) {
      ASSERT_EQ(std::isnan(a), std::isnan(b)) << i;
      continue;
    }
    if (std::isinf(a) || std::isinf(b)) {
      ASSERT_EQ(a, b) << i;
      continue;
    }
    const float epsilon = p.dtype == DType::kF32   ? 0x1p-21f
                          : p.dtype == DType::kF16 ? 0x1p-10f
                                                   : 0x1p-7f;
    const float floor = p.dtype == DType::kF16 ? 0x1p-24f : 0x1p-133f;
    ASSERT_LE(std::abs(a - b), std::abs(b) * epsilon + floor) << i << ": " << a << " not " << b;
  }
}

bool SameBits(DType dtype, const Bytes& a, const Bytes& b) {
  const int64_t count = static_cast<int64_t>(a.size() / SizeOf(dtype));
  if (a.size() != b.size()) return false;
  for (int64_t i = 0; i < count; ++i) {
    const float fa = Read(dtype, a.data(), i);
    const float fb = Read(dtype, b.data(), i);
    const bool both_nan = std::isnan(fa) && std::isnan(fb);  // payloads are nobody's promise
    if (!both_nan && std::memcmp(&fa, &fb, sizeof(fa)) != 0) return false;
  }
  return true;
}

// vector against reference for one call, on every target; from the result, where no exp is
// involved, bit for bit.
void ExpectLikeReference(EluBackwardParams p, int shift, bool specials) {
  const size_t size = SizeOf(p.dtype);
  Guarded dy(p.count, size, shift), x(p.count, size, shift), expected(p.count, size, 0);
  FillRandom(p.dtype, dy.data(), p.count, 1, specials);
  FillRandom(p.dtype, x.data(), p.count, 2, specials);
  p.dy = dy.data();
  p.x = x.data();
  p.dx = expected.data();
  RunKernel("reference", p);
  ForEachTarget([&] {
    Guarded dx(p.count, size, shift);
    p.dx = dx.data();
    TargetRecorder recorder;
    RunKernel("vector", p);
    EXPECT_EQ(recorder.last(), ActiveTarget());
    EXPECT_TRUE(dy.GuardsIntact() && x.GuardsIntact() && dx.GuardsIntact());
    if (p.is_result) {
      EXPECT_TRUE(SameBits(p.dtype, dx.Contents(), expected.Contents()));
    } else {
      ExpectClose(p, dx.data(), expected.data());
    }
  });
}

TEST(EluBackwardKernel, EveryTailAndAlignment) {
  for (const DType dtype : kIn) {
    for (const bool is_result : {true, false}) {
      for (int64_t count = 1; count <= 140; ++count) {
        SCOPED_TRACE(Name(dtype) + " " + std::to_string(count) +
                     (is_result ? " result" : " input"));
        ExpectLikeReference(Params(dtype, dtype, is_result, count), static_cast<int>(count % 5),
                            true);
      }
    }
  }
}

// Negative scales make exp grow, small and large ones reach its ends.
TEST(EluBackwardKernel, InputScales) {
  for (const DType dtype : kIn) {
    for (const float input_scale : {1.0f, -1.0f, 0.0f, 30.0f, -30.0f, 1e-6f, 1e20f, -1e20f}) {
      SCOPED_TRACE(Name(dtype) + " " + std::to_string(input_scale));
      EluBackwardParams p = Params(dtype, dtype, false, 1000);
      p.input_scale = input_scale;
      ExpectLikeReference(p, 0, true);
    }
  }
}

// Where the kernel takes a shorter way, and just beside it.
TEST(EluBackwardKernel, UnitInputScale) {
  for (const DType dtype : kIn) {
    for (const bool is_result : {false, true}) {
      for (const float negcoef : {1.0f, 1.75f}) {
        SCOPED_TRACE(Name(dtype) + (is_result ? " result " : " ") + std::to_string(negcoef));
        EluBackwardParams p = Params(dtype, dtype, is_result, 10000);
        p.input_scale = 1;
        p.negcoef = negcoef;
        ExpectLikeReference(p, 0, true);
      }
    }
  }
}

// Where the short exp has no range the vector kernel says so, and the next one takes the call.
TEST(EluBackwardKernel, DeclinesExtremeInputScales) {
  for (const float input_scale :
       {std::numeric_limits<float>::infinity(), -1e35f, 1e-35f, std::nanf("")}) {
    EluBackwardParams p = Params(DType::kBF16, DType::kBF16, false, 1);
    p.input_scale = input_scale;
    EXPECT_FALSE(Named("vector").fits(&p));
    EXPECT_TRUE(Named("reference").fits(&p));
    p.is_result = true;
    EXPECT_TRUE(Named("vector").fits(&p));
    p.is_result = false;
    p.dtype = DType::kF32;
    EXPECT_TRUE(Named("vector").fits(&p));
  }
}

// Large enough for several tasks and for streaming stores, with starts on and off a line.
TEST(EluBackwardKernel, LargeArrays) {
  const StreamFrom from(1 << 20);
  for (const DType dtype : kIn) {
    const int64_t count = (1 << 20) / static_cast<int64_t>(3 * SizeOf(dtype)) + 12345;
    for (const int shift : {0, 3}) {
      SCOPED_TRACE(Name(dtype) + " shift " + std::to_string(shift));
      ExpectLikeReference(Params(dtype, dtype, shift == 0, count), shift, false);
    }
  }
}

TEST(EluBackwardKernel, UnalignedElements) {
  const int64_t count = 3 << 20;
  std::vector<float> values(count), expected(count);
  FillRandom(DType::kF32, values.data(), count, 1, false);
  EluBackwardParams p = Params(DType::kF32, DType::kF32, true, count);
  p.dy = p.x = values.data();
  p.dx = expected.data();
  RunKernel("reference", p);
  Bytes shifted(count * 4 + 1), dx(count * 4 + 1);
  std::memcpy(shifted.data() + 1, values.data(), count * 4);
  p.dy = p.x = shifted.data() + 1;
  p.dx = dx.data() + 1;
  ForEachTarget([&] {
    std::fill(dx.begin(), dx.end(), 0);
    RunKernel("vector", p);
    EXPECT_EQ(std::memcmp(dx.data() + 1, expected.data(), count * 4), 0);
  });
}

// Results of another dtype are those of dy's own dtype, converted.
TEST(EluBackwardKernel, EveryDtypeRow) {
  ForEachTarget([] {
    for (const DType dtype : kIn) {
      for (const DType out : kOut) {
        for (const int64_t count : {1, 37, 511, 512, 513, 40000}) {
          SCOPED_TRACE(Name(dtype) + " to " + Name(out) + " " + std::to_string(count));
          Guarded dy(count, SizeOf(dtype), 1), x(count, SizeOf(dtype), 0);
          Guarded dx(count, SizeOf(out), 1), expected(count, SizeOf(out), 0);
          FillRandom(dtype, dy.data(), count, 3, false);
          FillRandom(dtype, x.data(), count, 4, false);
          EluBackwardParams p = Params(dtype, out, true, count);
          p.dy = dy.data();
          p.x = x.data();
          p.dx = dx.data();
          RunKernel("vector", p);
          p.dx = expected.data();
          RunKernel("reference", p);
          EXPECT_TRUE(dx.GuardsIntact());
          EXPECT_EQ(dx.Contents(), expected.Contents());
        }
      }
    }
  });
}

void ExpectSameInPlace(DType dtype, int64_t count) {
  Guarded dy(count, SizeOf(dtype), 1), x(count, SizeOf(dtype), 1), apart(count, SizeOf(dtype), 1);
  FillRandom(dtype, dy.data(), count, 5, false);
  FillRandom(dtype, x.data(), count, 6, false);
  const Bytes before[] = {dy.Contents(), x.Contents()};
  EluBackwardParams p = Params(dtype, dtype, false, count);
  p.dy = dy.data();
  p.x = x.data();
  ForEachTarget([&] {
    p.dx = apart.data();
    RunKernel("vector", p);
    for (Guarded* target : {&dy, &x}) {
      p.dx = target->data();
      RunKernel("vector", p);
      EXPECT_TRUE(target->GuardsIntact());
      EXPECT_TRUE(target->Contents() == apart.Contents());
      std::memcpy(target->data(), before[target == &x].data(), before[0].size());
    }
  });
}

TEST(EluBackwardKernel, InPlace) {
  const StreamFrom from(1 << 20);
  for (const DType dtype : kIn) {
    const int64_t streamed = (1 << 20) / static_cast<int64_t>(3 * SizeOf(dtype)) + 77;
    for (const int64_t count : {int64_t{7}, int64_t{100}, int64_t{70001}, streamed}) {
      SCOPED_TRACE(Name(dtype) + " " + std::to_string(count));
      ExpectSameInPlace(dtype, count);
    }
  }
}

TEST(EluBackwardKernel, BitsDoNotDependOnThreads) {
  const int64_t count = 300001;
  for (const DType dtype : kIn) {
    Guarded dy(count, SizeOf(dtype), 0), x(count, SizeOf(dtype), 0);
    FillRandom(dtype, dy.data(), count, 7, true);
    FillRandom(dtype, x.data(), count, 8, true);
    Bytes first;
    for (const int threads : {1, 2, 3, 16}) {
      SetMaxThreads(threads);
      Guarded dx(count, SizeOf(dtype), 0);
      EluBackwardParams p = Params(dtype, dtype, false, count);
      p.dy = dy.data();
      p.x = x.data();
      p.dx = dx.data();
      RunKernel("vector", p);
      if (first.empty()) first = dx.Contents();
      EXPECT_EQ(dx.Contents(), first) << threads;
    }
    SetMaxThreads(0);
  }
}

// Selecting between two computed branches: nothing of the other one shows.
TEST(EluBackwardKernel, NothingLeaksFromTheOtherBranch) {
  constexpr float kInf = std::numeric_limits<float>::infinity();
  constexpr float kNan = std::numeric_limits<float>::quiet_NaN();
  struct Row {
    float g, x;
    bool is_result;
    float input_scale, expected;
  };
  const Row rows[] = {
      {1, kNan, false, 1, 2},      {1, kNan, true, 1, 2},   {1, kInf, false, 1, 2},
      {1, kInf, true, 1, 2},       {1, -kInf, false, 1, 0}, {1, 200, false, 1, 2},
      {1, -200, false, -1, -kInf}, {0, 5, false, kNan, 0},  {kInf, -kInf, false, 1, kNan},
      {1, -kInf, true, 1, -kInf},  {1, -0.0f, true, 1, 6},  {1, 0.0f, false, 1, 6},
  };
  ForEachTarget([&] {
    for (const Row& row : rows) {
      for (const DType dtype : kIn) {
        alignas(4) unsigned char g[4], x[4], dx[4];
        Write(dtype, g, 0, row.g);
        Write(dtype, x, 0, row.x);
        EluBackwardParams p = Params(dtype, dtype, row.is_result, 1);
        p.negcoef = 6;
        p.scale = 2;
        p.input_scale = row.input_scale;
        p.dy = g;
        p.x = x;
        p.dx = dx;
        RunKernel(Named("vector").fits(&p) ? "vector" : "reference", p);
        const float got = Read(dtype, dx, 0);
        EXPECT_TRUE(got == row.expected || (std::isnan(got) && std::isnan(row.expected)))
            << Name(dtype) << " g " << row.g << " x " << row.x << " gives " << got;
      }
    }
  });
}

TEST(EluBackwardKernel, WorkedExample) {
  const float values[] = {-2, -1, 0, 1};
  float dx[4];
  EluBackwardParams p = Params(DType::kF32, DType::kF32, true, 4);
  p.negcoef = p.scale = p.input_scale = 1;
  p.dy = p.x = values;
  p.dx = dx;
  for (const char* kernel : {"vector", "reference"}) {
    p.is_result = true;
    RunKernel(kernel, p);
    const float from_result[] = {2, 0, 0, 1};
    for (int i = 0; i < 4; ++i) EXPECT_EQ(dx[i], from_result[i]);
    p.is_result = false;
    RunKernel(kernel, p);
    const float from_input[] = {-0.270670566f, -0.367879441f, 0, 1};
    for (int i = 0; i < 4; ++i) EXPECT_FLOAT_EQ(dx[i], from_input[i]);
  }
}

TEST(Targets, UnknownNameChangesNothing) {
  const std::string before = ActiveTarget();
  EXPECT_FALSE(ForceTarget("NO_SUCH_TARGET"));
  EXPECT_EQ(ActiveTarget(), before);
}

TEST(Targets, TheBestUnlessTheEnvironmentAsksForAnother) {
  const char* const set = std::getenv("ANYACL_SIMD");
  const std::string before = set ? set : "";
  const std::vector<std::string> usable = UsableTargets();
  setenv("ANYACL_SIMD", usable.back().c_str(), 1);
  ForceTarget("");
  EXPECT_EQ(ActiveTarget(), usable.back());
  unsetenv("ANYACL_SIMD");
  ForceTarget("");
  EXPECT_EQ(ActiveTarget(), usable.front());
  if (set) setenv("ANYACL_SIMD", before.c_str(), 1);
  ForceTarget("");
}

TEST(Targets, UnknownOperatorHasNoKernels) {
  EXPECT_TRUE(CpuBackend().Kernels("no_such_operator").empty());
}

}  // namespace
}  // namespace anyacl::cpu
