// SPDX-License-Identifier: Apache-2.0
// Copyright The AnyACL Authors
//
// The CUDA kernels of EluBackward and BatchNormElemtBackward against the double references, below the C border.
#include "cuda/kernel_testing.h"
#include "ops/activation/elu_backward.h"
#include "ops/norm/batch_norm_elemt_backward.h"

namespace anyacl::cuda {
namespace {

// ---- EluBackward ----

// Four roundings, and those of the exponent: as many as the argument of exp is large. A 16-bit result may use
// an exp that is off by 2^-16.
double EluError(double expected, double x, const EluBackwardParams& p) {
  const double argument = !p.is_result && x <= 0 ? std::abs(x * p.input_scale) : 0;
  const double exp_error = p.dtype == F32 || argument == 0 ? 0x1p-23 : 0x1p-16;
  if (expected == 0) return 0x1p-140;
  return std::abs(expected) * ((4 + argument) * 0x1p-24 + exp_error) + 0x1p-140;
}

void CheckElu(DType dtype, DType out, int64_t count, bool is_result, size_t shift, Data data,
              bool in_place) {
  SCOPED_TRACE(Name(dtype) + " to " + Name(out) + " count " + std::to_string(count) + " result " +
               std::to_string(is_result) + " shift " + std::to_string(shift));
  Input dy(dtype, count, shift), x(dtype, count, shift);
  dy.Fill(1, data);
  x.Fill(2, data, 0, 4);
  DeviceBytes dx(count * SizeOf(out), shift * SizeOf(out));
  EluBackwardParams p{dy.device(), x.device(), dx.data(), count, dtype,
                      out,         is_result,  1.25f,     0.75f, 1.5f};
  if (in_place) p.dx = const_cast<void*>(x.device());
  EluBackwardParams planned = p;
  planned.dy = planned.x = planned.dx = nullptr;
  const Kernel& kernel = FirstThatFits(EluBackwardKernels(), planned);
  RunKernel(kernel, p, planned);
  const Bytes got = in_place ? Bytes() : dx.Download();
  Bytes raw(count * SizeOf(out));
  Check(cudaMemcpy(raw.data(), p.dx, raw.size(), cudaMemcpyDeviceToHost));
  if (!in_place) {
    EXPECT_TRUE(x.Unchanged());
  }
  const bool is_complex = out == DType::kC64 || out == DType::kC128;
  const DType part = out == DType::kC64 ? F32 : out == DType::kC128 ? DType::kF64 : out;
  for (int64_t i = 0; i < count; ++i) {
    const double expected =
        reference::EluBackward<double>(dy[i], x[i], is_result, p.negcoef, p.scale, p.input_scale);
    const double value = Get(part, raw.data(), is_complex ? 2 * i : i);
    // exp becomes 0 in float and not in double.
    if (std::isinf(dy[i]) && !is_result && x[i] * p.input_scale < -86) continue;
    const DType coarse = SizeOf(dtype) < 4 ? dtype : part == DType::kF64 ? F32 : part;
    double error = EluError(expected, x[i], p);
    if (SizeOf(part) == 2 && part != coarse) {  // rounded twice
      const Precision second = PrecisionOf(part);
      if (std::abs(expected) * 1.01 >= second.most) continue;
      error += std::abs(expected) * second.rounding * 1.01 + second.step;
    }
    ASSERT_TRUE(Close(coarse, value, expected, error)) << i << " dy " << dy[i] << " x " << x[i];
    if (is_complex) {
      ASSERT_EQ(Get(part, raw.data(), 2 * i + 1), 0);
    }
  }
}

TEST(CudaEluBackward, ManyShapes) {
  for (const DType dtype : {F32, F16, BF16}) {
    for (const bool is_result : {false, true}) {
      for (const int64_t count : {1, 3, 7, 8, 9, 1000, 4097, 100000}) {
        for (const size_t shift : {0, 1, 3}) {
          CheckElu(dtype, dtype, count, is_result, shift, Data::kPlain, shift == 1);
        }
        CheckElu(dtype, dtype, count, is_result, 0, Data::kHostile, false);
        CheckElu(dtype, dtype, count, is_result, 0, Data::kTiny, false);
      }
    }
  }
}

TEST(CudaEluBackward, OtherOutputs) {
  for (const DType dtype : {F32, F16, BF16}) {
    for (const DType out : {F32, F16, BF16, DType::kF64, DType::kC64, DType::kC128}) {
      for (const bool is_result : {false, true})
        CheckElu(dtype, out, 1001, is_result, 1, Data::kPlain, false);
    }
  }
}

// ---- BatchNormElemtBackward ----

struct BatchNormShape {
  int64_t outer, c, inner;
};

struct BatchNormTypes {
  DType dy, x, dx, mean, invstd, weight, sum_dy, sum_dy_xmu, counter;
};

BatchNormTypes Same(DType t, DType p) { return {t, t, t, p, p, p, p, p, F32}; }

void CheckBatchNorm(const BatchNormShape& s, const BatchNormTypes& t, bool weight, int64_t counters,
                    size_t shift, Data data, Bytes* result = nullptr) {
  SCOPED_TRACE(std::to_string(s.outer) + "x" + std::to_string(s.c) + "x" + std::to_string(s.inner) +
               " " + Name(t.x) + " " + Name(t.mean) + " shift " + std::to_string(shift));
  const int64_t count = s.outer * s.c * s.inner;
  Input dy(t.dy, count, shift), x(t.x, count, shift);
  Input mean(t.mean, s.c), invstd(t.invstd, s.c), w(t.weight, s.c), sum_dy(t.sum_dy, s.c),
      sum_dy_xmu(t.sum_dy_xmu, s.c), counter(t.counter, counters);
  dy.Fill(1, data);
  x.Fill(2, data, 0.5);
  mean.Fill(3, Data::kPlain, 0.5, 0.25);
  invstd.Fill(4, Data::kPlain, 1, 0.25);
  w.Fill(5, Data::kPlain, 1, 0.5);
  sum_dy.Fill(6, Data::kPlain);
  sum_dy_xmu.Fill(7, Data::kPlain);
  counter.Fill(8, Data::kPlain, 10, 0);
  DeviceBytes dx(count * SizeOf(t.dx), shift * SizeOf(t.dx));
  const auto params = [&](bool on_host) {
    const auto at = [&](const Input& i) {
      return BatchNormElemtBackwardParams::Operand{on_host ? i.host() : i.device(), i.dtype()};
    };
    return BatchNormElemtBackwardParams{at(dy),
                                        at(x),
                                        at(mean),
                                        at(invstd),
                                        weight ? at(w) : BatchNormElemtBackwardParams::Operand{},
                                        at(sum_dy),
                                        at(sum_dy_xmu),
                                        at(counter),
                                        dx.data(),
                                        t.dx,
                                        nullptr,
                                        s.outer,
                                        s.c,
                                        s.inner,
                                        counters};
  };
  const BatchNormElemtBackwardParams p = params(false);
  BatchNormElemtBackwardParams planned = p;
  for (auto* o : {&planned.dy, &planned.x, &planned.mean, &planned.invstd, &planned.weight,
                  &planned.sum_dy, &planned.sum_dy_xmu, &planned.counter}) {
    o->data = nullptr;
  }
  planned.dx = nullptr;
  std::vector<double> expected(count);
  reference::BatchNormElemtBackward<double>(params(true), expected.data());
  for (const Kernel& kernel : BatchNormElemtBackwardKernels()) {
    if (!kernel.fits(&planned)) continue;
    SCOPED_TRACE(kernel.name);
    RunKernel(kernel, p, planned);
    const Bytes got = dx.Download();
    if (result && result->empty()) *result = got;
    double total = 0;
    for (int64_t i = 0; i < counters; ++i) total += counter[i];
    for (int64_t i = 0; i < count; ++i) {
      const int64_t c = i / s.inner % s.c;
      const double factor = std::abs(invstd[c] * (weight ? w[c] : 1));
      const double size = std::abs(dy[i]) + std::abs(sum_dy[c] / total) +
                          (std::abs(x[i]) + std::abs(mean[c])) * std::abs(sum_dy_xmu[c] / total) *
                              invstd[c] * invstd[c];
      ASSERT_TRUE(Close(t.dx, Get(t.dx, got.data(), i), expected[i],
                        size * factor * 8 * 0x1p-24 + 0x1p-140))
          << i;
    }
  }
}

const BatchNormShape kBatchNormShapes[] = {
    {1, 2, 4},   {3, 5, 1},    {2, 3, 7},    {4, 6, 8},   {2, 64, 49},  {5, 7, 9}, {1, 1, 1},
    {2, 300, 3}, {3, 17, 100}, {2, 2, 5000}, {33, 40, 1}, {1, 2000, 1}, {7, 3, 13}};

TEST(CudaBatchNormElemtBackward, ManyShapes) {
  for (const BatchNormShape& s : kBatchNormShapes) {
    for (const auto& t :
         {Same(F32, F32), Same(F16, F16), Same(F16, F32), Same(BF16, BF16), Same(BF16, F32)}) {
      Bytes first;
      for (const size_t shift : {0, 1, 3}) {
        Bytes bits;
        CheckBatchNorm(s, t, true, 1, shift, Data::kPlain, &bits);
        if (first.empty()) first = bits;
        EXPECT_EQ(bits, first);
      }
      CheckBatchNorm(s, t, false, 3, 0, Data::kHostile);
      CheckBatchNorm(s, t, true, 700, 0, Data::kTiny);
    }
  }
}

TEST(CudaBatchNormElemtBackward, MixedDTypes) {
  const DType types[] = {F32, F16, BF16};
  std::minstd_rand random(5);
  for (int round = 0; round < 60; ++round) {
    const auto any = [&] { return types[random() % 3]; };
    const BatchNormTypes t{
        any(), any(), any(), any(), any(), any(), any(), any(), random() % 2 ? DType::kI32 : F16};
    CheckBatchNorm(kBatchNormShapes[random() % std::size(kBatchNormShapes)], t, random() % 2,
                   1 + random() % 20, random() % 2, Data::kPlain);
  }
}

}  // namespace
}  // namespace anyacl::cuda
