// SPDX-License-Identifier: Apache-2.0
// Copyright The AnyACL Authors
//
// The kernels of BatchNormElemtBackward below the C border: every SIMD target, mixture of dtypes, layout.
//
// The kernel has the operations of the float reference in their order, so its results are compared bit for
// bit with the float reference, rounded once (NaN with any NaN). That the float reference is right is shown
// against the double one: there each of the seven roundings may be off by 2^-24 of what it rounds.
#include <gtest/gtest.h>

#include <algorithm>
#include <cmath>
#include <cstring>
#include <memory>
#include <vector>

#include "cpu/for_each_target.h"
#include "cpu/norm_kernel_testing.h"
#include "cpu/parallel.h"
#include "cpu/stream_from.h"
#include "ops/norm/batch_norm_elemt_backward.h"

namespace anyacl::cpu {
namespace {

constexpr DType F32 = DType::kF32, F16 = DType::kF16, BF16 = DType::kBF16, I32 = DType::kI32;

struct Types {
  DType dy, x, vectors, counter, dx;
};
constexpr Types kSame[] = {
    {F32, F32, F32, F32, F32}, {F16, F16, F32, I32, F16}, {BF16, BF16, F32, F16, BF16}};
constexpr Types kMixed[] = {{F32, F16, BF16, I32, F32}, {F16, BF16, F16, F32, BF16},
                            {BF16, F32, F32, F16, F16}, {F16, F16, BF16, I32, F32},
                            {F32, F32, F16, F16, BF16}, {BF16, BF16, F32, F32, F16}};

struct Shape {
  int64_t outer, c, inner;
};

struct Call {
  Call(Types types, Shape shape, Fill fill, int shift = 0)
      : types(types),
        shape(shape),
        dy(types.dy, shape.outer * shape.c * shape.inner, shift),
        x(types.x, dy.count(), shift),
        mean(types.vectors, shape.c, shift),
        invstd(types.vectors, shape.c),
        weight(types.vectors, shape.c),
        sum_dy(types.vectors, shape.c),
        sum_dy_xmu(types.vectors, shape.c),
        counter(types.counter, 3),
        dx(types.dx, dy.count(), shift) {
    FillArray(&dy, 1, fill);
    FillArray(&x, 2, fill);
    FillArray(&mean, 3, fill);
    FillArray(&invstd, 4, Fill::kOrdinary);
    FillArray(&weight, 5, Fill::kOrdinary);
    FillArray(&sum_dy, 6, fill);
    FillArray(&sum_dy_xmu, 7, fill);
    for (int i = 0; i < 3; ++i) counter.Set(i, static_cast<float>(5 + 7 * i));
  }

  BatchNormElemtBackwardParams Params() {
    const auto operand = [](Array& array) {
      return BatchNormElemtBackwardParams::Operand{array.data(), array.dtype()};
    };
    BatchNormElemtBackwardParams p{};
    p.dy = operand(dy);
    p.x = operand(x);
    p.mean = operand(mean);
    p.invstd = operand(invstd);
    if (has_weight) p.weight = operand(weight);
    p.sum_dy = operand(sum_dy);
    p.sum_dy_xmu = operand(sum_dy_xmu);
    p.counter = operand(counter);
    p.counter_count = counters;
    p.dx = dx.data();
    p.dx_dtype = types.dx;
    p.outer = shape.outer;
    p.c = shape.c;
    p.inner = shape.inner;
    return p;
  }

  void Run(BatchNormElemtBackwardParams p, const char* name = "vector") {
    const Kernel& kernel = KernelNamed("batch_norm_elemt_backward", name);
    ASSERT_TRUE(kernel.fits(&p));
    const int64_t bytes = kernel.scratch_bytes ? kernel.scratch_bytes(&p) : 0;
    EXPECT_LE(bytes,
              std::max<int64_t>(4 << 20, dy.count() * static_cast<int64_t>(SizeOf(types.dy)) / 25));
    Array scratch(DType::kU8, bytes);
    p.scratch = scratch.data();
    kernel.run(&p, Launch{});
    EXPECT_TRUE(scratch.GuardsIntact());
    EXPECT_TRUE(dy.GuardsIntact() && x.GuardsIntact() && dx.GuardsIntact());
  }
  void Run(const char* name = "vector") { Run(Params(), name); }

  std::string Text() const {
    return Name(types.dy) + " " + Name(types.x) + " " + Name(types.vectors) + " to " +
           Name(types.dx) + " " + std::to_string(shape.outer) + "x" + std::to_string(shape.c) +
           "x" + std::to_string(shape.inner);
  }

  Types types;
  Shape shape;
  Array dy, x, mean, invstd, weight, sum_dy, sum_dy_xmu, counter, dx;
  bool has_weight = true;
  int64_t counters = 3;
};

void CheckBits(Call& call, Array& got) {
  SCOPED_TRACE(call.Text());
  std::vector<float> expected(call.dy.count());
  reference::BatchNormElemtBackward<float>(call.Params(), expected.data());
  Array rounded(call.types.dx, 1);
  for (int64_t i = 0; i < call.dy.count(); ++i) {
    rounded.Set(0, expected[i]);
    const float a = got.At(i), b = rounded.At(0);
    ASSERT_TRUE(std::memcmp(&a, &b, sizeof(a)) == 0 || (std::isnan(a) && std::isnan(b)))
        << i << ": " << a << " is not " << b;
  }
}
void CheckBits(Call& call) { CheckBits(call, call.dx); }

constexpr Shape kShapes[] = {{1, 1, 1},     {1, 2, 4},    {3, 1, 7},   {2, 3, 1},     {5, 17, 1},
                             {1000, 17, 1}, {1001, 3, 7}, {3, 17, 49}, {2, 64, 1},    {700, 64, 1},
                             {2, 2048, 1},  {3, 2048, 7}, {2, 3, 255}, {2, 3, 256},   {2, 17, 1000},
                             {1, 3, 40001}, {129, 1, 8},  {65, 5, 13}, {1, 1000, 49}, {2, 1025, 1},
                             {5, 151, 48},  {8, 67, 64},  {5, 71, 95}, {4, 43, 255}};

TEST(BatchNormElemtBackwardKernel, ManyShapes) {
  ForEachTarget([] {
    TargetRecorder recorder;
    for (const Types types : kSame) {
      for (const Shape shape : kShapes) {
        Call call(types, shape, Fill::kOrdinary, static_cast<int>(shape.inner % 4));
        call.Run();
        CheckBits(call);
      }
    }
    EXPECT_EQ(recorder.last(), ActiveTarget());
  });
}

TEST(BatchNormElemtBackwardKernel, MixturesOfTypes) {
  ForEachTarget([] {
    for (const Types types : kMixed) {
      for (const Shape shape : kShapes) {
        Call call(types, shape, Fill::kOrdinary, 1);
        call.has_weight = shape.c % 2 == 0;
        call.Run();
        CheckBits(call);
      }
    }
  });
}

TEST(BatchNormElemtBackwardKernel, EveryMixture) {
  constexpr DType kAll[] = {F32, F16, BF16};
  for (const DType dy : kAll) {
    for (const DType x : kAll) {
      for (const DType dx : kAll) {
        for (const Shape shape : {Shape{3, 5, 11}, Shape{2, 3, 300}}) {
          Call call({dy, x, F32, F32, dx}, shape, Fill::kOrdinary);
          call.Run();
          CheckBits(call);
        }
      }
    }
  }
}

// Past the size from which dx is streamed, on whole and broken lines.
TEST(BatchNormElemtBackwardKernel, Streamed) {
  const StreamFrom from(1 << 20);
  for (const Types types : kSame) {
    const int64_t elements = (1 << 20) / static_cast<int64_t>(3 * SizeOf(types.dx)) + 1;
    for (const Shape shape : {Shape{1, 17, 3136}, Shape{1, 3, 1021}, Shape{1, 64, 1},
                              Shape{1, 128, 7}, Shape{1, 5, 7}}) {
      for (const int shift : {0, 1}) {
        Call call(types, {elements / (shape.c * shape.inner) + 1, shape.c, shape.inner},
                  Fill::kOrdinary, shift);
        call.Run();
        CheckBits(call);
      }
    }
  }
}

TEST(BatchNormElemtBackwardKernel, HostileData) {
  ForEachTarget([] {
    for (const Fill fill : {Fill::kOffset, Fill::kTiny, Fill::kSpecial}) {
      for (const Types types : {kSame[0], kSame[1], kSame[2], kMixed[0], kMixed[2]}) {
        for (const Shape shape : {Shape{5, 17, 49}, Shape{41, 17, 49}, Shape{2, 3, 1000}}) {
          Call call(types, shape, fill);
          call.Run();
          CheckBits(call);
        }
      }
    }
  });
}

// dx in BF16 about as small as the terms of its channel allow, which are larger by a few last bits than dy and x are.
// Kernels may conclude from the terms that none is subnormal: `size`, a power of two, goes through where they would.
TEST(BatchNormElemtBackwardKernel, SmallestResults) {
  const auto check = [](float mean, bool exact_mean, float mean_dy, float slope, float factor) {
    constexpr Shape kShape = {3, 240, 49};
    constexpr float kAround[] = {1, 0, 0x1p-30f, 0x1p-10f, 0.5f, 0.9921875f, 1.0078125f, 1.5f};
    Call call({BF16, BF16, F32, F32, BF16}, kShape, Fill::kOrdinary);
    call.counters = 1;
    call.counter.Set(0, 1);
    for (int64_t c = 0; c < kShape.c; ++c) {
      const float more = 1 + static_cast<float>(c) * 0x1p-23f;
      call.mean.Set(c, exact_mean ? mean : mean * more);
      call.sum_dy.Set(c, mean_dy * more);
      call.sum_dy_xmu.Set(c, slope * more);
      call.invstd.Set(c, 1);
      call.weight.Set(c, factor);
    }
    for (int64_t i = 0; i < call.dy.count(); ++i) {
      call.dy.Set(i, mean_dy * kAround[i % 8]);
      call.x.Set(i, mean * kAround[i / 8 % 8]);
    }
    call.Run();
    CheckBits(call);
  };
  ForEachTarget([&] {
    for (int size = -120; size <= -60; ++size) {
      // x is mean: dx is dy - mean_dy, a last bit of mean_dy, times factor.
      check(1, true, 0x1p-60f, 1, std::ldexp(0x1p60f, size));
      // dy - mean_dy and (x - mean) * slope are last bits and differ in a last bit of theirs.
      check(0x1p-20f, false, 0x1p-40f, 0x1p-20f, std::ldexp(0x1p40f, size));
    }
    check(0, true, 0, 0, 1);
  });
}

TEST(BatchNormElemtBackwardKernel, NothingToDivideBy) {
  ForEachTarget([] {
    for (const Types types : kSame) {
      Call call(types, {2, 3, 5}, Fill::kOrdinary);
      call.counters = 0;
      call.sum_dy.Set(1, 0);
      BatchNormElemtBackwardParams p = call.Params();
      p.counter.data = nullptr;
      call.Run(p);
      CheckBits(call);
      EXPECT_FALSE(std::isfinite(call.dx.At(0)));
    }
  });
}

// dx in place of dy or x, also of another dtype of the same size.
TEST(BatchNormElemtBackwardKernel, InPlace) {
  constexpr Types kOther = {BF16, F16, F32, I32, F16};
  ForEachTarget([&] {
    for (const Types types : {kSame[0], kSame[1], kSame[2], kOther}) {
      for (const Shape shape : {Shape{100, 3, 7}, Shape{3, 17, 49}, Shape{41, 17, 49},
                                Shape{2, 3, 1021}, Shape{1, 5, 1}}) {
        for (const bool over_dy : {true, false}) {
          Call call(types, shape, Fill::kOrdinary, 1);
          call.Run();
          Array& target = over_dy ? call.dy : call.x;
          BatchNormElemtBackwardParams p = call.Params();
          p.dx = target.data();
          call.Run(p);
          EXPECT_EQ(target.Contents(), call.dx.Contents()) << call.Text();
        }
      }
    }
  });
}

TEST(BatchNormElemtBackwardKernel, UnalignedElements) {
  ForEachTarget([] {
    for (const Shape shape : {Shape{7, 5, 11}, Shape{2, 3, 500}}) {
      Call call(kSame[0], shape, Fill::kOrdinary);
      call.Run();
      const size_t bytes = call.dy.count() * 4;
      Bytes dy(bytes + 1), x(bytes + 1), dx(bytes + 1), mean(shape.c * 4 + 1);
      std::memcpy(dy.data() + 1, call.dy.data(), bytes);
      std::memcpy(x.data() + 1, call.x.data(), bytes);
      std::memcpy(mean.data() + 1, call.mean.data(), shape.c * 4);
      BatchNormElemtBackwardParams p = call.Params();
      p.dy.data = dy.data() + 1;
      p.x.data = x.data() + 1;
      p.mean.data = mean.data() + 1;
      p.dx = dx.data() + 1;
      call.Run(p);
      EXPECT_EQ(std::memcmp(dx.data() + 1, call.dx.data(), bytes), 0);
    }
  });
}

TEST(BatchNormElemtBackwardKernel, BitsDoNotDependOnThreads) {
  for (const Types types : {kSame[0], kSame[1], kSame[2], kMixed[1]}) {
    for (const Shape shape : {Shape{9, 17, 1000}, Shape{8, 2048, 7}, Shape{3000, 64, 1}}) {
      Bytes first;
      for (const int threads : {1, 2, 3, 16}) {
        SetMaxThreads(threads);
        Call call(types, shape, Fill::kOrdinary);
        call.Run();
        if (first.empty()) first = call.dx.Contents();
        EXPECT_EQ(call.dx.Contents(), first) << call.Text() << " threads " << threads;
      }
      SetMaxThreads(0);
    }
  }
}

// The float reference, and the kernel called so, against the double oracle.
TEST(BatchNormElemtBackwardKernel, Reference) {
  for (const Fill fill : {Fill::kOrdinary, Fill::kOffset}) {
    for (const Types types : {kSame[0], kSame[1], kSame[2], kMixed[0]}) {
      Call call(types, {3, 5, 7}, fill);
      std::vector<float> single(call.dy.count());
      std::vector<double> expected(call.dy.count());
      reference::BatchNormElemtBackward<float>(call.Params(), single.data());
      reference::BatchNormElemtBackward<double>(call.Params(), expected.data());
      call.Run("reference");
      for (int64_t i = 0; i < call.dy.count(); ++i) {
        const int64_t c = i / 7 % 5;
        const double count = 5 + 12 + 19, invstd = call.invstd.At(c);
        const double size = std::abs(call.dy.At(i)) + std::abs(call.sum_dy.At(c) / count) +
                            (std::abs(call.x.At(i)) + std::abs(call.mean.At(c))) *
                                std::abs(call.sum_dy_xmu.At(c) / count * invstd * invstd);
        EXPECT_TRUE(Close(F32, single[i], expected[i],
                          7 * 0x1p-24 * size * std::abs(invstd * call.weight.At(c))));
        EXPECT_TRUE(Close(types.dx, call.dx.At(i), expected[i], 0));
      }
    }
  }
}

TEST(BatchNormElemtBackwardKernel, WorkedExample) {
  for (const char* name : {"vector", "reference"}) {
    Call call(kSame[0], {1, 2, 4}, Fill::kOrdinary);
    for (int i = 0; i < 8; ++i) {
      call.dy.Set(i, static_cast<float>(i));
      call.x.Set(i, static_cast<float>(i));
    }
    for (int c = 0; c < 2; ++c) {
      call.mean.Set(c, 0);
      call.invstd.Set(c, 1);
      call.weight.Set(c, 1);
      call.sum_dy.Set(c, 0);
      call.sum_dy_xmu.Set(c, 1);
      call.counter.Set(c, 5);
    }
    call.counters = 2;
    call.Run(name);
    for (int i = 0; i < 8; ++i) EXPECT_FLOAT_EQ(call.dx.At(i), 0.9f * static_cast<float>(i));
  }
}

}  // namespace
}  // namespace anyacl::cpu
