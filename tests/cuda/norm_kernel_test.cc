// SPDX-License-Identifier: Apache-2.0
// Copyright The AnyACL Authors
//
// The CUDA kernels of RmsNormGrad and GroupNormBackward below the C border: dtype rows, layouts, masks and
// hostile data against the double oracles; bits that may depend neither on the address nor on the batch, the
// mask or the run.
//
// Tolerance: sums of n products in float are off by about sqrt(n) roundings of the sum of magnitudes, where n
// counts the additions that follow one another; 2 sqrt(min(n, 1024)) + 8 are allowed.
#include "cuda/kernel_testing.h"
#include "ops/norm/group_norm_backward.h"
#include "ops/norm/rms_norm_grad.h"

namespace anyacl::cuda {
namespace {

struct TypeRow {
  DType dtype, param;
};
constexpr TypeRow kTypes[] = {{F32, F32}, {F16, F16}, {F16, F32}, {BF16, BF16}, {BF16, F32}};

double Sum(int64_t n) {
  return 0x1p-24 * (8 + 2 * std::sqrt(static_cast<double>(std::min<int64_t>(n, 1024))));
}

const unsigned char* Offset(const void* data, size_t bytes) {
  return static_cast<const unsigned char*>(data) + bytes;
}

// ---- RmsNormGrad ----

struct RmsCall {
  RmsCall(TypeRow types, int64_t rows, int64_t cols, Data data, size_t shift = 0)
      : types(types),
        rows(rows),
        cols(cols),
        shift(shift),
        dy(types.dtype, rows * cols, shift),
        x(types.dtype, rows * cols, shift),
        rstd(F32, rows, shift),
        gamma(types.param, cols, shift) {
    dy.Fill(1, data);
    x.Fill(2, data, data == Data::kOffset ? 16 : 0);
    rstd.Fill(3, Data::kPlain, 1, 0.5);
    gamma.Fill(4, Data::kPlain, 1, 1);
  }

  RmsNormGradParams Params(void* dx, void* dgamma) const {
    return {dy.device(), x.device(), rstd.device(), gamma.device(), dx,         dgamma,
            nullptr,     rows,       cols,          types.dtype,    types.param};
  }

  // dx and dgamma of rows [first, first + count).
  std::pair<Bytes, Bytes> Run(const Kernel* kernel, int64_t first, int64_t count) const {
    const size_t size = SizeOf(types.dtype);
    DeviceBytes dx(count * cols * size, shift * size), dgamma(cols * 4, shift * 4);
    RmsNormGradParams p = Params(dx.data(), dgamma.data());
    p.dy = Offset(p.dy, first * cols * size);
    p.x = Offset(p.x, first * cols * size);
    p.rstd = Offset(p.rstd, first * 4);
    p.rows = count;
    RmsNormGradParams planned{};
    planned.rows = count, planned.cols = cols, planned.dtype = types.dtype,
    planned.gamma_dtype = types.param;
    RunKernel(kernel ? *kernel : FirstThatFits(RmsNormGradKernels(), planned), p, planned);
    return {dx.Download(), dgamma.Download()};
  }
  std::pair<Bytes, Bytes> Run(const Kernel* kernel = nullptr) const { return Run(kernel, 0, rows); }

  std::string Text() const {
    return Name(types.dtype) + " " + Name(types.param) + " " + std::to_string(rows) + "x" +
           std::to_string(cols) + " shift " + std::to_string(shift);
  }

  TypeRow types;
  int64_t rows, cols;
  size_t shift;
  Input dy, x, rstd, gamma;
};

void CheckRms(const RmsCall& call, const Kernel* kernel = nullptr) {
  SCOPED_TRACE(call.Text() + (kernel ? kernel->name : ""));
  const auto [dx, dgamma] = call.Run(kernel);
  const int64_t cols = call.cols;
  std::vector<double> sums(cols), sizes(cols);
  for (int64_t i = 0; i < call.rows; ++i) {
    const double rstd = call.rstd[i];
    double sum = 0, size = 0;
    for (int64_t j = 0; j < cols; ++j) {
      const double t = call.dy[i * cols + j] * call.gamma[j] * (call.x[i * cols + j] * rstd);
      sum += t;
      size += std::abs(t);
    }
    const double m = sum / static_cast<double>(cols);
    const double m_error = size / static_cast<double>(cols) * Sum(cols) + 0x1p-148;
    for (int64_t j = 0; j < cols; ++j) {
      const double g = call.dy[i * cols + j], u = call.x[i * cols + j] * rstd,
                   gamma = call.gamma[j];
      const double error = (5 * 0x1p-24 * (std::abs(g * gamma) + std::abs(u * m)) +
                            std::abs(u) * m_error + (std::abs(m) + 2) * 0x1p-149) *
                           std::abs(rstd);
      sums[j] += g * u;
      sizes[j] += std::abs(g * u) + (1 + std::abs(g)) * 0x1p-149;
      ASSERT_TRUE(Close(call.types.dtype, Get(call.types.dtype, dx.data(), i * cols + j),
                        (g * gamma - u * m) * rstd, error))
          << "row " << i << " column " << j;
    }
  }
  for (int64_t j = 0; j < cols; ++j) {
    ASSERT_TRUE(Close(F32, Get(F32, dgamma.data(), j), sums[j],
                      sizes[j] * Sum(call.rows) + 0x1p-149 * static_cast<double>(call.rows)))
        << "dgamma " << j;
  }
}

TEST(CudaRmsNormGrad, ManyShapes) {
  for (const TypeRow types : kTypes) {
    for (const int64_t cols : {1,   2,   3,   7,   8,    16,   17,   33,   64,   127,
                               128, 129, 500, 512, 1000, 1024, 1030, 2048, 4096, 4097}) {
      for (const int64_t rows : {1, 2, 3, 70})
        CheckRms(RmsCall(types, rows, cols, Data::kPlain, cols % 3));
    }
  }
}

TEST(CudaRmsNormGrad, LargeShapes) {
  for (const TypeRow types : {kTypes[0], kTypes[1], kTypes[4]}) {
    CheckRms(RmsCall(types, 5, 8192, Data::kPlain));
    CheckRms(RmsCall(types, 300, 5000, Data::kPlain));
    CheckRms(RmsCall(types, 33, 8200, Data::kPlain));
    CheckRms(RmsCall(types, 20, 20001, Data::kPlain));
    CheckRms(RmsCall(types, 40, 65536, Data::kPlain));
    CheckRms(RmsCall(types, 8, 131072, Data::kPlain));
    CheckRms(RmsCall(types, 11, 70001, Data::kPlain, 1));
    CheckRms(RmsCall(types, 3, 300000, Data::kPlain));  // more blocks than are resident
    CheckRms(RmsCall(types, 20000, 24, Data::kPlain));
  }
}

TEST(CudaRmsNormGrad, HostileData) {
  for (const TypeRow types : kTypes) {
    for (const Data data : {Data::kOffset, Data::kTiny, Data::kHostile}) {
      for (const int64_t cols : {5, 100, 700, 3000, 10000}) CheckRms(RmsCall(types, 9, cols, data));
      CheckRms(RmsCall(types, 9, 66000, data));
    }
  }
}

TEST(CudaRmsNormGrad, EveryKernelThatFits) {
  for (const Kernel& kernel : RmsNormGradKernels()) {
    for (const TypeRow types : kTypes) {
      for (const int64_t cols : {1, 40, 1000, 5001})
        CheckRms(RmsCall(types, 19, cols, Data::kPlain), &kernel);
    }
  }
}

TEST(CudaRmsNormGrad, BitsDependOnNothingElse) {
  for (const TypeRow types : {kTypes[0], kTypes[2], kTypes[3]}) {
    for (const int64_t cols : {3, 64, 136, 512, 1000, 3001, 4096, 8192, 16384, 65536, 131072}) {
      const int64_t rows = cols > 8192 ? 19 : 200;
      const RmsCall call(types, rows, cols, Data::kHostile);
      SCOPED_TRACE(call.Text());
      const auto all = call.Run();
      EXPECT_EQ(call.Run(), all) << "second run";
      const RmsCall moved(types, rows, cols, Data::kHostile, 3);
      EXPECT_EQ(moved.Run(), all) << "other address";
      const size_t row = cols * SizeOf(types.dtype);
      for (const auto& [first, count] :
           {std::pair<int64_t, int64_t>{0, 1}, {rows - 1, 1}, {rows / 2, rows / 2}}) {
        const Bytes part = call.Run(nullptr, first, count).first;
        EXPECT_EQ(std::memcmp(part.data(), all.first.data() + first * row, part.size()), 0)
            << first;
      }
    }
  }
}

TEST(CudaRmsNormGrad, NoRowsGiveNaN) {
  for (const int64_t cols : {1, 1000, 70000}) {
    DeviceBytes dgamma(cols * 4);
    RmsNormGradParams p{};
    p.cols = cols;
    RmsNormGradParams planned = p;
    p.dgamma = dgamma.data();
    RunKernel(FirstThatFits(RmsNormGradKernels(), planned), p, planned);
    const Bytes got = dgamma.Download();
    for (int64_t j = 0; j < cols; ++j) ASSERT_TRUE(std::isnan(Get(F32, got.data(), j)));
  }
}

// ---- GroupNormBackward ----

struct Shape {
  int64_t n, c, hxw, groups;
  bool last = false;
  int64_t count() const { return n * c * hxw; }
  std::string Text() const {
    return std::to_string(n) + "x" + std::to_string(c) + "x" + std::to_string(hxw) + " G" +
           std::to_string(groups) + (last ? " last" : "");
  }
};

struct Result {
  Bytes dx, dgamma, dbeta;
  bool operator==(const Result&) const = default;
};

struct GroupCall {
  GroupCall(const Shape& s, TypeRow t, Data data = Data::kPlain, bool gamma_given = true,
            size_t shift = 0)
      : s(s),
        t(t),
        gamma_given(gamma_given),
        shift(shift),
        dy(t.dtype, s.count(), shift),
        x(t.dtype, s.count(), shift),
        mean(t.param, s.n * s.groups, shift),
        rstd(t.param, s.n * s.groups, shift),
        gamma(t.param, s.c, shift) {
    const double offset = data != Data::kOffset ? 0.25
                          : t.dtype == F32      ? 1e4
                          : t.dtype == F16      ? 100
                                                : 16;
    dy.Fill(1, data, 0.125);
    x.Fill(2, data, offset);
    mean.Fill(3, Data::kPlain, offset, 0.5);
    rstd.Fill(4, Data::kPlain, 0.75, 0.25);
    gamma.Fill(5, Data::kPlain, 1, 0.5);
  }

  GroupNormBackwardParams Params(bool on_host) const {
    GroupNormBackwardParams p{};
    const auto at = [&](const Input& i) { return on_host ? i.host() : i.device(); };
    if (s.count() > 0) {
      p.dy = at(dy), p.x = at(x), p.mean = at(mean), p.rstd = at(rstd);
      p.gamma = gamma_given ? at(gamma) : nullptr;
    }
    p.n = s.n, p.c = s.c, p.hxw = s.hxw, p.groups = s.groups;
    p.dtype = t.dtype, p.param_dtype = t.param, p.channels_last = s.last;
    return p;
  }

  Result Run(const Kernel* kernel = nullptr, const std::string& mask = "111", int64_t first = 0,
             int64_t count = -1) const {
    if (count < 0) count = s.n;
    GroupNormBackwardParams p = Params(false);
    const size_t size = SizeOf(t.dtype), param = SizeOf(t.param), sample = s.c * s.hxw * size;
    DeviceBytes dx(count * sample, shift * size), dgamma(s.c * param, shift * param),
        dbeta(s.c * param, shift * param);
    p.n = count;
    if (s.count() > 0) {
      p.dy = Offset(p.dy, first * sample);
      p.x = Offset(p.x, first * sample);
      p.mean = Offset(p.mean, first * s.groups * param);
      p.rstd = Offset(p.rstd, first * s.groups * param);
    }
    p.dx = mask[0] == '1' && s.count() > 0 ? dx.data() : nullptr;
    p.dgamma = mask[1] == '1' ? dgamma.data() : nullptr;
    p.dbeta = mask[2] == '1' ? dbeta.data() : nullptr;
    GroupNormBackwardParams planned = p;
    planned.dy = planned.x = planned.mean = planned.rstd = planned.gamma = nullptr;
    planned.dx = planned.dgamma = planned.dbeta = nullptr;
    RunKernel(kernel ? *kernel : FirstThatFits(GroupNormBackwardKernels(), planned), p, planned);
    return {dx.Download(), dgamma.Download(), dbeta.Download()};
  }

  std::string Text() const { return s.Text() + " " + Name(t.dtype) + " " + Name(t.param); }

  Shape s;
  TypeRow t;
  bool gamma_given;
  size_t shift;
  Input dy, x, mean, rstd, gamma;
};

void CheckGroup(const GroupCall& call, const Kernel* kernel = nullptr) {
  SCOPED_TRACE(call.Text() + " " + (kernel ? kernel->name : ""));
  const Result r = call.Run(kernel);
  const Shape& s = call.s;
  const int64_t channels = s.c / s.groups;
  const double size = static_cast<double>(channels * s.hxw);
  std::vector<double> dgamma(s.c), dbeta(s.c), dgamma_size(s.c), dbeta_size(s.c);
  for (int64_t n = 0; n < s.n; ++n) {
    for (int64_t g = 0; g < s.groups; ++g) {
      const double mean = call.mean[n * s.groups + g], rstd = call.rstd[n * s.groups + g];
      double c1 = 0, c2 = 0, size1 = 0, size2 = 0;
      const auto each = [&](auto&& body) {
        for (int64_t c = g * channels; c < (g + 1) * channels; ++c) {
          const double gamma = call.gamma_given ? call.gamma[c] : 1;
          for (int64_t k = 0; k < s.hxw; ++k) {
            const int64_t i = s.last ? (n * s.hxw + k) * s.c + c : (n * s.c + c) * s.hxw + k;
            body(c, i, gamma, call.dy[i], (call.x[i] - mean) * rstd);
          }
        }
      };
      each([&](int64_t c, int64_t, double gamma, double dy, double xhat) {
        dbeta[c] += dy;
        dgamma[c] += dy * xhat;
        dbeta_size[c] += std::abs(dy);
        dgamma_size[c] += std::abs(dy * xhat) + (1 + std::abs(dy)) * 0x1p-149;
        c1 += gamma * dy;
        c2 += gamma * dy * xhat;
        size1 += std::abs(gamma * dy);
        size2 += std::abs(gamma * dy * xhat);
      });
      c1 /= size, c2 /= size, size1 /= size, size2 /= size;
      const double sum = Sum(channels * s.hxw);
      each([&](int64_t, int64_t i, double gamma, double dy, double xhat) {
        if (::testing::Test::HasFatalFailure()) return;
        const double error =
            std::abs(rstd) *
            (6 * 0x1p-24 * (std::abs(gamma * dy) + std::abs(c1) + std::abs(xhat * c2)) +
             sum * (size1 + std::abs(xhat) * size2) + 0x1p-146);
        ASSERT_TRUE(Close(call.t.dtype, Get(call.t.dtype, r.dx.data(), i),
                          rstd * (gamma * dy - c1 - xhat * c2), error))
            << "dx " << i;
      });
      if (::testing::Test::HasFatalFailure()) return;
    }
  }
  for (int64_t c = 0; c < s.c; ++c) {
    ASSERT_TRUE(Close(call.t.param, Get(call.t.param, r.dgamma.data(), c), dgamma[c],
                      dgamma_size[c] * Sum(s.n * s.hxw) + 0x1p-146))
        << "dgamma " << c;
    ASSERT_TRUE(Close(call.t.param, Get(call.t.param, r.dbeta.data(), c), dbeta[c],
                      dbeta_size[c] * Sum(s.n * s.hxw) + 0x1p-146))
        << "dbeta " << c;
  }
}

const std::pair<int, int> kChannels[] = {{1, 1},  {2, 1},  {3, 3},   {4, 2},  {12, 4},  {13, 1},
                                         {15, 3}, {24, 8}, {33, 11}, {40, 2}, {64, 32}, {600, 300}};

TEST(CudaGroupNormBackward, ManyShapes) {
  for (const bool last : {false, true}) {
    for (const int64_t hxw : {1, 2, 3, 7, 16, 49, 100}) {
      for (const auto& [c, groups] : kChannels) {
        for (const int64_t n : {1, 5}) {
          const TypeRow types = kTypes[(c + hxw + n) % std::size(kTypes)];
          CheckGroup(
              GroupCall({n, c, hxw, groups, last}, types, Data::kPlain, c % 5 != 0, hxw % 2));
        }
      }
    }
  }
}

TEST(CudaGroupNormBackward, LongShapes) {
  for (const TypeRow types : kTypes) {
    for (const int64_t hxw : {1000, 4096, 4097, 9001}) {
      for (const auto& [c, groups] : {std::pair{1, 1}, {3, 1}, {6, 2}, {35, 5}}) {
        CheckGroup(GroupCall({2, c, hxw, groups, false}, types));
      }
    }
    CheckGroup(GroupCall({2, 6, 4097, 2, true}, types));
    CheckGroup(GroupCall({40, 64, 196, 8}, types));
    CheckGroup(GroupCall({3, 320, 1024, 8}, types));
    CheckGroup(GroupCall({2, 300, 3, 1}, types));
    CheckGroup(GroupCall({500, 32, 1, 8}, types));
    CheckGroup(GroupCall({3000, 16, 3, 4}, types));
    CheckGroup(GroupCall({4, 2000, 1, 1}, types));
    CheckGroup(GroupCall({2, 4, 300000, 2}, types));  // a grid per group
    CheckGroup(GroupCall({3, 3, 400001, 3}, types));
  }
  CheckGroup(GroupCall({1, 2, 6000000, 1}, kTypes[0]));  // more than the grid can hold
}

TEST(CudaGroupNormBackward, HostileData) {
  const Shape shapes[] = {{9, 12, 1, 4},        {5, 6, 20, 2},     {3, 6, 500, 3},
                          {2, 4, 5000, 4},      {2, 10, 333, 1},   {3, 6, 300, 3, true},
                          {4, 20, 12, 4, true}, {2, 2, 200001, 1}, {1, 700, 5, 1}};
  for (const Shape& shape : shapes) {
    for (const Data data : {Data::kOffset, Data::kTiny, Data::kHostile}) {
      for (const TypeRow types : kTypes) CheckGroup(GroupCall(shape, types, data));
    }
  }
}

TEST(CudaGroupNormBackward, EveryKernelThatFits) {
  for (const Shape& shape :
       {Shape{5, 12, 20, 4}, {3, 6, 170, 3}, {2, 6, 5, 1}, {2, 2, 520, 1}, {2, 3, 8196, 1}}) {
    for (const Kernel& kernel : GroupNormBackwardKernels()) {
      for (const TypeRow types : kTypes) {
        const GroupCall call(shape, types);
        const GroupNormBackwardParams p = call.Params(true);
        if (kernel.fits(&p)) CheckGroup(call, &kernel);
      }
    }
  }
}

TEST(CudaGroupNormBackward, EmptyBatchClearsParameters) {
  for (const Shape& shape : {Shape{0, 6, 4, 2}, Shape{3, 6, 0, 2}, Shape{0, 6, 0, 3, true}}) {
    for (const TypeRow types : kTypes) {
      const Result r = GroupCall(shape, types).Run();
      EXPECT_EQ(r.dgamma, Bytes(6 * SizeOf(types.param), 0));
      EXPECT_EQ(r.dbeta, r.dgamma);
    }
  }
}

TEST(CudaGroupNormBackward, BitsDependOnNothingElse) {
  const Shape shapes[] = {{5, 12, 1, 4},     {300, 32, 1, 8},  {6, 6, 20, 2},
                          {20, 512, 9, 32},  {3, 6, 500, 3},   {40, 64, 196, 8},
                          {2, 4, 140000, 2}, {3, 70, 3000, 1}, {3, 6, 300, 3, true},
                          {6, 4, 200000, 1}, {400, 8, 16, 1},  {5, 3000, 1, 1},
                          {9, 80, 1024, 4},  {1100, 64, 4, 32}};
  for (const Shape& shape : shapes) {
    for (const TypeRow types : {kTypes[0], kTypes[2], kTypes[3]}) {
      const GroupCall call(shape, types, Data::kHostile);
      SCOPED_TRACE(call.Text());
      const Result all = call.Run();
      EXPECT_EQ(call.Run(), all) << "second run";
      EXPECT_EQ(GroupCall(shape, types, Data::kHostile, true, 3).Run(), all) << "other address";
      for (const std::string mask : {"100", "010", "001", "011"}) {
        const Result some = call.Run(nullptr, mask);
        const auto untouched = [](const Bytes& bytes) { return Bytes(bytes.size(), 0x5a); };
        EXPECT_EQ(some.dx, mask[0] == '1' ? all.dx : untouched(all.dx)) << mask;
        EXPECT_EQ(some.dgamma, mask[1] == '1' ? all.dgamma : untouched(all.dgamma)) << mask;
        EXPECT_EQ(some.dbeta, mask[2] == '1' ? all.dbeta : untouched(all.dbeta)) << mask;
      }
      const size_t sample = shape.c * shape.hxw * SizeOf(types.dtype);
      for (const auto& [first, count] : {std::pair<int64_t, int64_t>{0, 1},
                                         {shape.n - 1, 1},
                                         {shape.n / 2, (shape.n + 1) / 2}}) {
        const Bytes part = call.Run(nullptr, "111", first, count).dx;
        EXPECT_EQ(std::memcmp(part.data(), all.dx.data() + first * sample, part.size()), 0)
            << first;
      }
    }
  }
}

}  // namespace
}  // namespace anyacl::cuda
