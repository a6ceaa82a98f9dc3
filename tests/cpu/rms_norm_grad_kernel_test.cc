// SPDX-License-Identifier: Apache-2.0
// Copyright The AnyACL Authors
//
// The kernels of RmsNormGrad below the C border: every SIMD target, dtype row, way through the rows.
//
// Tolerance (Check). Sums of n products in float, a few in a row, are off by about sqrt(n) roundings of the
// sum of magnitudes: 2 sqrt(n) + 8 of them are allowed, where n is at most a chunk of 4096 columns for m and
// the number of rows for dgamma. dx then has four more roundings of its two terms, and its own.
#include <gtest/gtest.h>

#include <algorithm>
#include <cmath>
#include <cstring>
#include <vector>

#include "cpu/for_each_target.h"
#include "cpu/norm_kernel_testing.h"
#include "cpu/parallel.h"
#include "cpu/stream_from.h"
#include "ops/norm/rms_norm_grad.h"

namespace anyacl::cpu {
namespace {

constexpr DType F32 = DType::kF32, F16 = DType::kF16, BF16 = DType::kBF16;

struct Types {
  DType dtype, gamma;
};
constexpr Types kTypes[] = {{F32, F32}, {F16, F16}, {F16, F32}, {BF16, BF16}, {BF16, F32}};

// One call with its arrays.
struct Call {
  Call(Types types, int64_t rows, int64_t cols, Fill fill, int shift = 0)
      : types(types),
        rows(rows),
        cols(cols),
        dy(types.dtype, rows * cols, shift),
        x(types.dtype, rows * cols, shift),
        rstd(F32, rows),
        gamma(types.gamma, cols, shift),
        dx(types.dtype, rows * cols, shift),
        dgamma(F32, cols, shift) {
    FillArray(&dy, 1, fill);
    FillArray(&x, 2, fill);
    FillArray(&gamma, 3, fill == Fill::kSpecial ? Fill::kOrdinary : fill);
    for (int64_t i = 0; i < rows; ++i) {
      const float scale = fill == Fill::kOffset ? 1e-4f : fill == Fill::kTiny ? 1e6f : 1.0f;
      rstd.Set(i, scale * (0.5f + 0.25f * static_cast<float>(i % 5)));
    }
  }

  RmsNormGradParams Params() {
    RmsNormGradParams p{};
    p.dy = dy.data();
    p.x = x.data();
    p.rstd = rstd.data();
    p.gamma = gamma.data();
    p.dx = dx.data();
    p.dgamma = dgamma.data();
    p.rows = rows;
    p.cols = cols;
    p.dtype = types.dtype;
    p.gamma_dtype = types.gamma;
    return p;
  }

  void Run(const char* name = "vector") {
    const Kernel& kernel = KernelNamed("rms_norm_grad", name);
    RmsNormGradParams p = Params();
    ASSERT_TRUE(kernel.fits(&p));
    const int64_t bytes = kernel.scratch_bytes ? kernel.scratch_bytes(&p) : 0;
    const int64_t inputs = 2 * rows * cols * static_cast<int64_t>(SizeOf(types.dtype));
    EXPECT_LE(bytes, std::max<int64_t>(4 << 20, inputs / 50));
    Array scratch(DType::kU8, bytes);
    p.scratch = scratch.data();
    kernel.run(&p, Launch{});
    EXPECT_TRUE(scratch.GuardsIntact());
    EXPECT_TRUE(dx.GuardsIntact() && dgamma.GuardsIntact());
  }

  std::string Text() const {
    return Name(types.dtype) + " " + Name(types.gamma) + " " + std::to_string(rows) + "x" +
           std::to_string(cols);
  }

  Types types;
  int64_t rows, cols;
  Array dy, x, rstd, gamma, dx, dgamma;
};

double Sum(int64_t n) { return 0x1p-24 * (8 + 2 * std::sqrt(static_cast<double>(n))); }

// Every output against the double oracle.
void Check(Call& call) {
  SCOPED_TRACE(call.Text());
  const int64_t cols = call.cols;
  constexpr double kStep = 0x1p-149;  // of float: what any product may lose
  std::vector<double> dgamma(cols), dgamma_size(cols);
  for (int64_t i = 0; i < call.rows; ++i) {
    const double rstd = call.rstd.At(i);
    double sum = 0, size = 0;
    for (int64_t j = 0; j < cols; ++j) {
      const double t = static_cast<double>(call.dy.At(i * cols + j)) * call.gamma.At(j) *
                       (call.x.At(i * cols + j) * rstd);
      sum += t;
      size += std::abs(t);
    }
    const double m = sum / static_cast<double>(cols);
    const double m_error =
        size / static_cast<double>(cols) * Sum(std::min<int64_t>(cols, 4096)) + 2 * kStep;
    for (int64_t j = 0; j < cols; ++j) {
      const double g = call.dy.At(i * cols + j), u = call.x.At(i * cols + j) * rstd,
                   gamma = call.gamma.At(j);
      const double error = (4 * 0x1p-24 * (std::abs(g * gamma) + std::abs(u * m)) +
                            std::abs(u) * m_error + (std::abs(m) + 2) * kStep) *
                           std::abs(rstd);
      dgamma[j] += g * u;
      dgamma_size[j] += std::abs(g * u) + (1 + std::abs(g)) * kStep;
      ASSERT_TRUE(
          Close(call.types.dtype, call.dx.At(i * cols + j), (g * gamma - u * m) * rstd, error))
          << "row " << i << " column " << j;
    }
  }
  for (int64_t j = 0; j < cols; ++j) {
    ASSERT_TRUE(Close(F32, call.dgamma.At(j), dgamma[j],
                      dgamma_size[j] * Sum(call.rows) + kStep * static_cast<double>(call.rows)))
        << "dgamma " << j;
  }
}

TEST(RmsNormGradKernel, ManyShapes) {
  ForEachTarget([] {
    TargetRecorder recorder;
    for (const Types types : kTypes) {
      for (const int64_t cols : {1, 2, 3, 7, 8, 15, 16, 17, 31, 33, 63, 127, 128, 1000, 4097}) {
        for (const int64_t rows : {1, 2, 3, 17}) {
          Call call(types, rows, cols, Fill::kOrdinary, static_cast<int>(cols % 3));
          call.Run();
          Check(call);
        }
      }
    }
    EXPECT_EQ(recorder.last(), ActiveTarget());
  });
}

// All ways through the rows: small, blocks (with rows that stay in the registers of one target or another, of an even
// and of an odd number), columns.
TEST(RmsNormGradKernel, LargeShapes) {
  struct Shape {
    int64_t rows, cols;
  };
  ForEachTarget([] {
    for (const Types types : kTypes) {
      for (const Shape shape : {Shape{1000, 40}, Shape{5001, 3}, Shape{33, 4097}, Shape{1, 70000},
                                Shape{3, 70000}, Shape{17, 8200}, Shape{301, 128}, Shape{342, 96},
                                Shape{519, 64}, Shape{1026, 32}, Shape{2051, 16}, Shape{4098, 8}}) {
        Call call(types, shape.rows, shape.cols, Fill::kOrdinary, 1);
        call.Run();
        Check(call);
      }
    }
  });
}

// Past the size from which dx is streamed, by blocks and by columns, in several groups.
TEST(RmsNormGradKernel, Streamed) {
  const StreamFrom from(1 << 20);
  for (const Types types : kTypes) {
    for (const int64_t cols : {128, 1024, 8224, 150016}) {
      const int64_t elements = (1 << 20) / static_cast<int64_t>(3 * SizeOf(types.dtype)) + cols;
      Call call(types, (elements + cols - 1) / cols, cols, Fill::kOrdinary);
      call.Run();
      Check(call);
    }
  }
}

TEST(RmsNormGradKernel, HostileData) {
  ForEachTarget([] {
    for (const Fill fill : {Fill::kOffset, Fill::kTiny, Fill::kSpecial}) {
      for (const Types types : kTypes) {
        for (const int64_t cols : {13, 515, 9000}) {
          Call call(types, 41, cols, fill);
          call.Run();
          Check(call);
        }
        Call in_registers(types, 273, 128, fill);
        in_registers.Run();
        Check(in_registers);
      }
    }
  });
}

// Long sums: a million columns, a hundred thousand rows, all of one sign.
TEST(RmsNormGradKernel, LongSums) {
  for (const Types types : kTypes) {
    Call wide(types, 1, 1000003, Fill::kOffset);
    wide.Run();
    Check(wide);
    Call tall(types, 100003, 5, Fill::kOffset);
    tall.Run();
    Check(tall);
  }
}

// Zeros that fill a last vector up are no elements: times an infinite rstd they would be NaN.
TEST(RmsNormGradKernel, InfiniteRstd) {
  static constexpr float kInf = std::numeric_limits<float>::infinity();
  ForEachTarget([] {
    for (const int64_t cols : {1, 3, 5, 17, 2049, 4097}) {
      Call call({F32, F32}, 2, cols, Fill::kOrdinary);
      for (Array* array : {&call.dy, &call.x, &call.gamma, &call.rstd}) {
        const float value = array == &call.rstd ? kInf : 1.0f;
        for (int64_t i = 0; i < array->count(); ++i) array->Set(i, value);
      }
      call.Run();
      for (int64_t i = 0; i < 2 * cols; ++i) ASSERT_EQ(call.dx.At(i), -kInf) << cols;
      for (int64_t j = 0; j < cols; ++j) ASSERT_EQ(call.dgamma.At(j), kInf) << cols;
    }
  });
}

TEST(RmsNormGradKernel, NoRowsGiveNan) {
  for (const char* name : {"vector", "reference"}) {
    Call call({F32, F32}, 0, 5, Fill::kOrdinary);
    call.Run(name);
    for (int64_t j = 0; j < 5; ++j) EXPECT_TRUE(std::isnan(call.dgamma.At(j)));
  }
}

TEST(RmsNormGradKernel, Reference) {
  for (const Types types : kTypes) {
    Call call(types, 5, 37, Fill::kOrdinary);
    call.Run("reference");
    Check(call);
  }
}

TEST(RmsNormGradKernel, BitsDoNotDependOnThreads) {
  struct Shape {
    int64_t rows, cols;
  };
  for (const Types types : kTypes) {
    for (const Shape shape :
         {Shape{700, 1000}, Shape{9, 20000}, Shape{40, 70001}, Shape{20000, 3}}) {
      Bytes dx, dgamma;
      for (const int threads : {1, 2, 3, 16}) {
        SetMaxThreads(threads);
        Call call(types, shape.rows, shape.cols, Fill::kOrdinary);
        call.Run();
        if (dx.empty()) dx = call.dx.Contents();
        if (dgamma.empty()) dgamma = call.dgamma.Contents();
        EXPECT_EQ(call.dx.Contents(), dx) << call.Text() << " threads " << threads;
        EXPECT_EQ(call.dgamma.Contents(), dgamma) << call.Text() << " threads " << threads;
      }
      SetMaxThreads(0);
    }
  }
}

// The rows of a large call again in small ones: dx has the same bits.
TEST(RmsNormGradKernel, BitsDoNotDependOnTheBatch) {
  struct Shape {
    int64_t rows, cols;
  };
  ForEachTarget([] {
    for (const Types types : kTypes) {
      for (const Shape shape : {Shape{600, 127}, Shape{601, 128}, Shape{1030, 48}, Shape{530, 8195},
                                Shape{7, 33000}, Shape{5, 140001}}) {
        Call whole(types, shape.rows, shape.cols, Fill::kOrdinary);
        whole.Run();
        const size_t row = shape.cols * SizeOf(types.dtype);
        for (const int64_t rows : {1, 2, 5}) {
          const int64_t first = shape.rows - rows;
          Call part(types, rows, shape.cols, Fill::kOrdinary);
          std::memcpy(part.dy.data(), static_cast<unsigned char*>(whole.dy.data()) + first * row,
                      rows * row);
          std::memcpy(part.x.data(), static_cast<unsigned char*>(whole.x.data()) + first * row,
                      rows * row);
          for (int64_t i = 0; i < rows; ++i) part.rstd.Set(i, whole.rstd.At(first + i));
          part.Run();
          EXPECT_EQ(
              std::memcmp(part.dx.data(),
                          static_cast<unsigned char*>(whole.dx.data()) + first * row, rows * row),
              0)
              << whole.Text() << ", the last " << rows;
        }
      }
    }
  });
}

TEST(RmsNormGradKernel, UnalignedElements) {
  ForEachTarget([] {
    const int64_t rows = 3, cols = 131;
    Call plain({F32, F32}, rows, cols, Fill::kOrdinary);
    plain.Run();
    RmsNormGradParams p = plain.Params();
    const auto moved = [](const Array& array) {
      Bytes bytes(array.count() * 4 + 1);
      std::memcpy(bytes.data() + 1, array.data(), bytes.size() - 1);
      return bytes;
    };
    Bytes dy = moved(plain.dy), x = moved(plain.x), rstd = moved(plain.rstd),
          gamma = moved(plain.gamma);
    Bytes dx(rows * cols * 4 + 1), dgamma(cols * 4 + 1);
    p.dy = dy.data() + 1;
    p.x = x.data() + 1;
    p.rstd = rstd.data() + 1;
    p.gamma = gamma.data() + 1;
    p.dx = dx.data() + 1;
    p.dgamma = dgamma.data() + 1;
    KernelNamed("rms_norm_grad", "vector").run(&p, Launch{});
    EXPECT_EQ(std::memcmp(dx.data() + 1, plain.dx.data(), dx.size() - 1), 0);
    EXPECT_EQ(std::memcmp(dgamma.data() + 1, plain.dgamma.data(), dgamma.size() - 1), 0);
  });
}

TEST(RmsNormGradKernel, WorkedExample) {
  constexpr float kDgamma[] = {579,  652,  731,  816,  907,  1004, 1107, 1216,
                               1331, 1452, 1579, 1712, 1851, 1996, 2147, 2304};
  constexpr float kFirst[] = {-1155, -2308, -3459, -4608};
  constexpr float kSecond[] = {-860030, -910584, -961134, -1011680};
  for (const char* name : {"vector", "reference"}) {
    Call call({F32, F32}, 2, 16, Fill::kOrdinary);
    for (int i = 0; i < 32; ++i) {
      call.dy.Set(i, static_cast<float>(i + 1));
      call.x.Set(i, static_cast<float>(i + 1));
      call.gamma.Set(i % 16, static_cast<float>(i % 16 + 1));
    }
    call.rstd.Set(0, 1);
    call.rstd.Set(1, 2);
    call.Run(name);
    for (int j = 0; j < 16; ++j) EXPECT_EQ(call.dgamma.At(j), kDgamma[j]);
    for (int j = 0; j < 4; ++j) EXPECT_EQ(call.dx.At(j), kFirst[j]);
    for (int j = 0; j < 4; ++j) EXPECT_EQ(call.dx.At(16 + j), kSecond[j]);
  }
}

}  // namespace
}  // namespace anyacl::cpu
