// SPDX-License-Identifier: Apache-2.0
// Copyright The AnyACL Authors
//
// The kernels of GroupNormBackward below the C border: every SIMD target, dtype row, layout and
// mask against the double oracle; bits that may depend neither on threads nor on the batch nor on
// the mask.
#include <gtest/gtest.h>

#include <algorithm>
#include <cmath>
#include <cstring>
#include <limits>
#include <random>
#include <string>
#include <vector>

#include "cpu/for_each_target.h"
#include "cpu/parallel.h"
#include "cpu/stream_from.h"
#include "ops/norm/group_norm_backward.h"
#include "runtime/backends.h"

namespace anyacl::cpu {
namespace {

using Bytes = std::vector<unsigned char>;

struct TypeRow {
  DType dtype, param;
};
constexpr TypeRow kTypes[] = {{DType::kF32, DType::kF32},
                              {DType::kF16, DType::kF16},
                              {DType::kF16, DType::kF32},
                              {DType::kBF16, DType::kBF16},
                              {DType::kBF16, DType::kF32}};

// Bytes between guard bytes, `shift` bytes behind a 64-byte line.
class Guarded {
 public:
  explicit Guarded(size_t bytes = 0, size_t shift = 0)
      : bytes_(bytes), memory_(bytes + 2 * kGuard + 64 + shift, 0x5a) {
    const uintptr_t line =
        (reinterpret_cast<uintptr_t>(memory_.data()) + kGuard + 63) & ~uintptr_t{63};
    start_ = line - reinterpret_cast<uintptr_t>(memory_.data()) + shift;
  }
  void* data() { return memory_.data() + start_; }
  Bytes Contents() const {
    return Bytes(memory_.begin() + start_, memory_.begin() + start_ + bytes_);
  }
  bool Intact() const {
    const auto is_guard = [](unsigned char b) { return b == 0x5a; };
    return std::all_of(memory_.begin(), memory_.begin() + start_, is_guard) &&
           std::all_of(memory_.begin() + start_ + bytes_, memory_.end(), is_guard);
  }

 private:
  static constexpr size_t kGuard = 128;
  size_t bytes_;
  Bytes memory_;
  size_t start_;
};

void Write(DType dtype, void* data, int64_t i, double value) {
  if (dtype == DType::kF32) static_cast<float*>(data)[i] = static_cast<float>(value);
  if (dtype == DType::kF16) static_cast<Half*>(data)[i] = Half(value);
  if (dtype == DType::kBF16) static_cast<BFloat16*>(data)[i] = BFloat16(value);
}

double Read(DType dtype, const void* data, int64_t i) {
  if (dtype == DType::kF16) return static_cast<double>(static_cast<const Half*>(data)[i]);
  if (dtype == DType::kBF16) return static_cast<double>(static_cast<const BFloat16*>(data)[i]);
  return static_cast<const float*>(data)[i];
}

enum class Data { kPlain, kOffset, kTiny, kHostile, kBiased, kConstant };

struct Shape {
  int64_t n, c, hxw, groups;
  bool last = false;

  int64_t count() const { return n * c * hxw; }
  std::string Name() const {
    return std::to_string(n) + "x" + std::to_string(c) + "x" + std::to_string(hxw) + " G" +
           std::to_string(groups) + (last ? " last" : "");
  }
};

// One call with inputs of its own.
class Problem {
 public:
  Problem(const Shape& shape, TypeRow types, Data data = Data::kPlain, bool gamma = true,
          size_t shift = 0)
      : shape_(shape), types_(types), data_(data) {
    const size_t size = SizeOf(types.dtype), param = SizeOf(types.param);
    dy_ = Guarded(shape.count() * size, shift * size);
    x_ = Guarded(shape.count() * size, shift * size);
    mean_ = Guarded(shape.n * shape.groups * param, shift * param);
    rstd_ = Guarded(shape.n * shape.groups * param, shift * param);
    gamma_ = Guarded(shape.c * param, shift * param);
    p_.n = shape.n;
    p_.c = shape.c;
    p_.hxw = shape.hxw;
    p_.groups = shape.groups;
    p_.dtype = types.dtype;
    p_.param_dtype = types.param;
    p_.channels_last = shape.last;
    if (shape.count() > 0) {
      Fill();
      p_.dy = dy_.data();
      p_.x = x_.data();
      p_.mean = mean_.data();
      p_.rstd = rstd_.data();
      p_.gamma = gamma ? gamma_.data() : nullptr;
    }
  }

  const GroupNormBackwardParams& params() const { return p_; }
  const Shape& shape() const { return shape_; }
  Data data() const { return data_; }
  bool InputsIntact() const {
    return dy_.Intact() && x_.Intact() && mean_.Intact() && rstd_.Intact() && gamma_.Intact();
  }

 private:
  // Small integers that repeat have equal sums by accident; these do not.
  double Uniform() { return (static_cast<double>(random_()) / 2147483646.0 - 0.5) * 4; }
  double Element() {
    if (data_ == Data::kConstant) return 0.7;
    if (data_ == Data::kBiased) return 3 + 0.01 * Uniform();
    static constexpr double kInf = std::numeric_limits<double>::infinity();
    static constexpr double kSpecials[] = {0.0,   -0.0,   kInf, -kInf, NAN,
                                           1e-40, -1e-40, 6e-8, 100,   -100};
    if (data_ == Data::kTiny)
      return Uniform() * std::pow(10.0, -30 - static_cast<int>(random_() % 12));
    if (data_ == Data::kHostile && random_() % 97 == 0)
      return kSpecials[random_() % std::size(kSpecials)];
    return Uniform();
  }
  // |mean| is 1e4 times the deviation, where the dtype can tell them apart.
  double Offset() const {
    if (data_ != Data::kOffset) return 0.25;
    return types_.dtype == DType::kF32 ? 1e4 : types_.dtype == DType::kF16 ? 100 : 16;
  }
  void Fill() {
    for (int64_t i = 0; i < shape_.count(); ++i) {
      const bool tiny = data_ == Data::kTiny;  // 0.125 would swallow it
      Write(types_.dtype, dy_.data(), i, Element() + (tiny ? 0 : 0.125));
      Write(types_.dtype, x_.data(), i, (tiny ? Uniform() : Element()) + Offset());
    }
    for (int64_t i = 0; i < shape_.n * shape_.groups; ++i) {
      Write(types_.param, mean_.data(), i, Offset() + 0.25 * Uniform());
      Write(types_.param, rstd_.data(), i, 0.75 + 0.125 * Uniform());
    }
    for (int64_t c = 0; c < shape_.c; ++c)
      Write(types_.param, gamma_.data(), c, 1 + 0.25 * Uniform());
  }

  Shape shape_;
  TypeRow types_;
  Data data_;
  std::minstd_rand random_{7};
  Guarded dy_, x_, mean_, rstd_, gamma_;
  GroupNormBackwardParams p_{};
};

// The outputs of one run; mask as in the call.
struct Result {
  Bytes dx, dgamma, dbeta;
  bool operator==(const Result&) const = default;
};

const Kernel& FirstThatFits(const GroupNormBackwardParams& p) {
  for (const Kernel& kernel : CpuBackend().Kernels("group_norm_backward")) {
    if (kernel.fits(&p)) return kernel;
  }
  throw std::runtime_error("no kernel");
}

const Kernel& Named(const std::string& name) {
  for (const Kernel& kernel : CpuBackend().Kernels("group_norm_backward")) {
    if (kernel.name == name) return kernel;
  }
  throw std::runtime_error(name);
}

// As a plan asks: before there are any addresses.
int64_t ScratchOf(const Kernel& kernel, GroupNormBackwardParams p) {
  p.dy = p.x = p.mean = p.rstd = p.gamma = nullptr;
  p.dx = p.dgamma = p.dbeta = p.scratch = nullptr;
  return kernel.scratch_bytes ? kernel.scratch_bytes(&p) : 0;
}

Result RunOn(const Problem& problem, const Kernel& kernel, const std::string& mask = "111",
             size_t shift = 0) {
  GroupNormBackwardParams p = problem.params();
  const size_t size = SizeOf(p.dtype), param = SizeOf(p.param_dtype);
  Guarded dx(problem.shape().count() * size, shift * size);
  Guarded dgamma(p.c * param, shift * param), dbeta(p.c * param, shift * param);
  p.dx = mask[0] == '1' && problem.shape().count() > 0 ? dx.data() : nullptr;
  p.dgamma = mask[1] == '1' ? dgamma.data() : nullptr;
  p.dbeta = mask[2] == '1' ? dbeta.data() : nullptr;
  const int64_t bytes = ScratchOf(kernel, p);
  Guarded scratch(bytes);
  p.scratch = bytes > 0 ? scratch.data() : nullptr;
  EXPECT_TRUE(kernel.fits(&p));
  kernel.run(&p, Launch{});
  EXPECT_TRUE(dx.Intact() && dgamma.Intact() && dbeta.Intact() && scratch.Intact() &&
              problem.InputsIntact());
  return {dx.Contents(), dgamma.Contents(), dbeta.Contents()};
}

Result RunOn(const Problem& problem, const std::string& mask = "111", size_t shift = 0) {
  return RunOn(problem, FirstThatFits(problem.params()), mask, shift);
}

// ---- Tolerance ----
//
// L terms t are added up in float by chains of d additions (Depth), the chains in double. With u = 2^-24
// an addition is off by at most u times the partial sum it makes, which is the drift k*mean(t) and a
// random walk. Over all chains that is
//
//   of the walk     u * sqrt(d/6) * sqrt(sum t^2), as the errors are independent; 2 sqrt(d) with tails
//   of the drift    u * d/2 * |sum t| at worst, when all errors have one direction: equal terms. Terms with
//                   noise in their last bits have independent errors: u * d / (3 sqrt(L)) * |sum t|, which
//                   sqrt(d) covers
//
// and each term brings three roundings of its own (12 with tails, in the sum of squares; 8 for the drift).
// dx is rstd * (gamma*dy - c1 - xhat*c2), where c1 and c2 are such sums divided by M, with four roundings
// of its terms. All results are rounded once more, to their dtype.

constexpr double kUnit = 0x1p-24;
constexpr double kChunk = 4096;      // elements that a chain may be a part of
constexpr double kAccumulators = 2;  // chains that run side by side, at least; each has all lanes
constexpr double kBlock = 256;       // samples that are added up in float

double LanesOf(const std::string& target) {
  if (target == "SCALAR") return 1;
  return target.rfind("AVX3", 0) == 0 ? 16 : target == "AVX2" ? 8 : 4;
}

// Additions in a row on the active target, of the sums of a group and of those over all samples.
struct Depth {
  explicit Depth(const GroupNormBackwardParams& p) {
    const double size = static_cast<double>(p.c / p.groups * p.hxw);
    const double lanes = kAccumulators * LanesOf(ActiveTarget());
    group = std::ceil(std::min(size, kChunk) / lanes) + 4;
    // A chain of channels-last rows is one position of 256 rows, taken in pairs.
    if (p.channels_last) group = std::max(group, std::min(static_cast<double>(p.hxw), 128.0) + 4);
    samples = group + std::min(static_cast<double>(p.n), kBlock);
  }
  double group, samples;
};

struct SumError {
  double drift = 0;    // sum of |sum t| over planes
  double squares = 0;  // sum of t^2

  double At(double depth, bool equal_terms) const {
    const double one_way = equal_terms ? depth / 2 : std::sqrt(depth);
    return kUnit * ((one_way + 8) * drift + (2 * std::sqrt(depth) + 12) * std::sqrt(squares));
  }
};

double EpsOf(DType dtype) {
  return dtype == DType::kF32 ? 0x1p-24 : dtype == DType::kF16 ? 0x1p-11 : 0x1p-8;
}
// Half of the smallest step: what a result loses to underflow when it is stored, and a product before.
double HalfStepOf(DType dtype) {
  return dtype == DType::kF32 ? 0x1p-150 : dtype == DType::kF16 ? 0x1p-25 : 0x1p-134;
}
constexpr double kHalfStep = 0x1p-150;

struct Expected {
  std::vector<double> dx, dgamma, dbeta;
  std::vector<SumError> c1, c2;  // of every group, as sums
  std::vector<SumError> dgamma_error, dbeta_error;
  bool equal_terms = false;
};

// Calls body(group, channel, element, gamma, dy, xhat) for all elements, plane by plane.
template <class Body, class EndOfPlane>
void ForElements(const GroupNormBackwardParams& p, Body&& body, EndOfPlane&& end_of_plane) {
  const int64_t channels = p.c / p.groups;
  for (int64_t plane = 0; plane < p.n * p.c; ++plane) {
    const int64_t n = plane / p.c, c = plane % p.c, group = n * p.groups + c / channels;
    const double mean = Read(p.param_dtype, p.mean, group);
    const double rstd = Read(p.param_dtype, p.rstd, group);
    const double gamma = p.gamma ? Read(p.param_dtype, p.gamma, c) : 1;
    for (int64_t s = 0; s < p.hxw; ++s) {
      const int64_t i = p.channels_last ? (n * p.hxw + s) * p.c + c : plane * p.hxw + s;
      const double dy = Read(p.dtype, p.dy, i);
      body(group, c, i, gamma, dy, (Read(p.dtype, p.x, i) - mean) * rstd);
    }
    end_of_plane(group, c, gamma);
  }
}

Expected Oracle(const Problem& problem) {
  const GroupNormBackwardParams& p = problem.params();
  Expected e;
  e.equal_terms = problem.data() == Data::kConstant;
  e.dx.resize(problem.shape().count());
  e.dgamma.resize(p.c);
  e.dbeta.resize(p.c);
  e.c1.resize(p.n * p.groups);
  e.c2.resize(p.n * p.groups);
  e.dgamma_error.resize(p.c);
  e.dbeta_error.resize(p.c);
  reference::GroupNormBackward<double>(p, e.dx.data(), e.dgamma.data(), e.dbeta.data());
  double db = 0, ds = 0;
  ForElements(
      p,
      [&](int64_t group, int64_t c, int64_t, double gamma, double dy, double xhat) {
        db += dy;
        ds += dy * xhat;
        e.dbeta_error[c].squares += dy * dy;
        e.dgamma_error[c].squares += dy * dy * xhat * xhat;
        e.c1[group].squares += gamma * gamma * dy * dy;
        e.c2[group].squares += gamma * gamma * dy * dy * xhat * xhat;
      },
      [&](int64_t group, int64_t c, double gamma) {
        e.dbeta_error[c].drift += std::abs(db);
        e.dgamma_error[c].drift += std::abs(ds);
        e.c1[group].drift += std::abs(gamma * db);
        e.c2[group].drift += std::abs(gamma * ds);
        db = ds = 0;
      });
  return e;
}

std::vector<double> DxErrors(const Problem& problem, const Expected& e) {
  const GroupNormBackwardParams& p = problem.params();
  const double size = static_cast<double>(p.c / p.groups * p.hxw), depth = Depth(p).group;
  std::vector<double> errors(problem.shape().count());
  ForElements(
      p,
      [&](int64_t group, int64_t, int64_t i, double gamma, double dy, double xhat) {
        const SumError &c1 = e.c1[group], &c2 = e.c2[group];
        const double terms =
            std::abs(gamma * dy) + c1.drift / size + std::abs(xhat) * c2.drift / size;
        const double sums =
            c1.At(depth, e.equal_terms) + std::abs(xhat) * c2.At(depth, e.equal_terms);
        const double lost =
            kHalfStep * (5 + 2 * std::abs(xhat));  // by products, also those of the sums
        errors[i] = std::abs(Read(p.param_dtype, p.rstd, group)) *
                        (4 * kUnit * terms + sums / size + lost) +
                    kHalfStep;
      },
      [](int64_t, int64_t, double) {});
  return errors;
}

std::vector<double> SumErrors(const Problem& problem, const Expected& e,
                              const std::vector<SumError>& sums) {
  const GroupNormBackwardParams& p = problem.params();
  const double depth = Depth(p).samples;
  const double lost = kHalfStep * static_cast<double>(p.n * p.hxw);  // one product per term
  std::vector<double> errors;
  for (const SumError& sum : sums) errors.push_back(sum.At(depth, e.equal_terms) + lost);
  return errors;
}

// Same class of number, and near where it is a number. Values that overflow the dtype may be either
// side.
void ExpectNear(const char* what, DType dtype, const Bytes& got,
                const std::vector<double>& expected, const std::vector<double>& errors) {
  const int64_t count = static_cast<int64_t>(got.size() / SizeOf(dtype));
  ASSERT_EQ(count, static_cast<int64_t>(expected.size())) << what;
  for (int64_t i = 0; i < count; ++i) {
    const double a = Read(dtype, got.data(), i);
    const double b = expected[i];
    if (!std::isfinite(b) || !std::isfinite(a)) {
      ASSERT_EQ(std::isnan(a), std::isnan(b)) << what << " " << i << ": " << a << " not " << b;
      if (!std::isnan(a)) {
        ASSERT_EQ(a, b) << what << " " << i;
      }
      continue;
    }
    const double tolerance = errors[i] + EpsOf(dtype) * std::abs(b) * 1.01 + HalfStepOf(dtype);
    ASSERT_LE(std::abs(a - b), tolerance) << what << " " << i << ": " << a << " not " << b;
  }
}

void ExpectLikeOracle(const Problem& problem, const Kernel& kernel, const Expected& e,
                      size_t shift = 0) {
  SCOPED_TRACE(kernel.name);
  const Result r = RunOn(problem, kernel, "111", shift);
  const GroupNormBackwardParams& p = problem.params();
  ExpectNear("dx", p.dtype, r.dx, e.dx, DxErrors(problem, e));
  ExpectNear("dgamma", p.param_dtype, r.dgamma, e.dgamma, SumErrors(problem, e, e.dgamma_error));
  ExpectNear("dbeta", p.param_dtype, r.dbeta, e.dbeta, SumErrors(problem, e, e.dbeta_error));
}

// ---- Shapes ----

// Around the sizes where kernels change their ways: a vector, a short channel, a chunk.
std::vector<Shape> SmallShapes() {
  std::vector<Shape> shapes;
  for (const bool last : {false, true}) {
    for (const int64_t hxw : {1, 2, 3, 7, 16, 31, 32, 49, 100}) {
      for (const auto& [c, groups] : {std::pair{1, 1},
                                      {2, 1},
                                      {3, 3},
                                      {4, 2},
                                      {5, 1},
                                      {7, 7},
                                      {12, 4},
                                      {13, 1},
                                      {15, 3},
                                      {24, 8},
                                      {33, 11},
                                      {40, 2},
                                      {64, 32}}) {
        for (const int64_t n : {1, 2, 5}) shapes.push_back({n, c, hxw, groups, last});
      }
    }
  }
  return shapes;
}

std::vector<Shape> LongShapes() {
  std::vector<Shape> shapes;
  for (const bool last : {false, true}) {
    for (const int64_t hxw : {1000, 4096, 4097, 9001}) {
      for (const auto& [c, groups] : {std::pair{1, 1}, {3, 1}, {6, 2}, {35, 5}}) {
        shapes.push_back({2, c, hxw, groups, last});
      }
    }
  }
  shapes.push_back({1, 4, 140000, 2, false});  // groups shared by all threads, channels in pieces
  shapes.push_back({1, 64, 3000, 1, false});   // the same, several channels per piece
  shapes.push_back({1, 130, 3000, 5, true});   // samples shared by all threads
  shapes.push_back({1, 4, 70001, 2, true});
  shapes.push_back({300, 32, 1, 8, false});             // many blocks of short groups
  shapes.push_back({600, 3, 1, 1, false});              // vectors across samples
  for (const int64_t c : {4, 8, 12, 16, 24, 48, 64}) {  // one to four vectors of 4, 8 or 16 lanes
    shapes.push_back({70, c, 1, c / 4, false});
    shapes.push_back({70, c / 2, 2, c / 2, false});
  }
  shapes.push_back({2, 70000, 1, 17500, false});  // tasks inside a row of short groups
  shapes.push_back({20, 2048, 9, 32, false});
  shapes.push_back({70, 37, 11, 37, true});  // more samples than blocks
  return shapes;
}

TEST(GroupNormBackwardKernel, EverySmallShape) {
  for (const Shape& shape : SmallShapes()) {
    SCOPED_TRACE(shape.Name());
    const TypeRow types = kTypes[(shape.c + shape.hxw + shape.n) % std::size(kTypes)];
    const Problem problem(shape, types, Data::kPlain, shape.n != 2, shape.n % 4);
    const Expected e = Oracle(problem);
    ForEachTarget([&] {
      TargetRecorder recorder;
      ExpectLikeOracle(problem, FirstThatFits(problem.params()), e, shape.hxw % 3);
      EXPECT_EQ(recorder.last(), ActiveTarget());
    });
    if (::testing::Test::HasFatalFailure()) return;
  }
}

TEST(GroupNormBackwardKernel, LongShapes) {
  for (const Shape& shape : LongShapes()) {
    for (const TypeRow types : {kTypes[0], kTypes[2], kTypes[3]}) {
      SCOPED_TRACE(shape.Name() + " " + Name(types.dtype));
      const Problem problem(shape, types);
      const Expected e = Oracle(problem);
      ForEachTarget([&] { ExpectLikeOracle(problem, FirstThatFits(problem.params()), e, 1); });
      if (::testing::Test::HasFatalFailure()) return;
    }
  }
}

// Kernels that are chosen for other shapes are right here, too.
TEST(GroupNormBackwardKernel, EveryKernelThatFits) {
  for (const Shape& shape :
       {Shape{3, 12, 1, 4}, Shape{2, 10, 5, 2}, Shape{2, 6, 31, 3}, Shape{2, 6, 40, 3, true}}) {
    for (const TypeRow types : kTypes) {
      SCOPED_TRACE(shape.Name());
      const Problem problem(shape, types);
      const Expected e = Oracle(problem);
      for (const Kernel& kernel : CpuBackend().Kernels("group_norm_backward")) {
        if (kernel.fits(&problem.params())) ExpectLikeOracle(problem, kernel, e);
      }
    }
  }
}

TEST(GroupNormBackwardKernel, EveryDtypeRow) {
  const Shape shapes[] = {
      {3, 12, 1, 4}, {2, 6, 20, 2}, {2, 6, 500, 2}, {2, 6, 300, 2, true}, {2, 20, 12, 4, true}};
  for (const Shape& shape : shapes) {
    for (const TypeRow types : kTypes) {
      for (const bool gamma : {true, false}) {
        SCOPED_TRACE(shape.Name() + " " + Name(types.dtype) + " " + Name(types.param));
        const Problem problem(shape, types, Data::kPlain, gamma);
        const Expected e = Oracle(problem);
        ForEachTarget([&] { ExpectLikeOracle(problem, FirstThatFits(problem.params()), e); });
      }
    }
  }
}

TEST(GroupNormBackwardKernel, HostileData) {
  const Shape shapes[] = {{9, 12, 1, 4},   {5, 6, 20, 2},        {3, 6, 500, 3},
                          {2, 4, 5000, 4}, {3, 6, 300, 3, true}, {4, 20, 12, 4, true}};
  for (const Shape& shape : shapes) {
    for (const Data data : {Data::kOffset, Data::kTiny, Data::kHostile}) {
      for (const TypeRow types : kTypes) {
        SCOPED_TRACE(shape.Name() + " " + Name(types.dtype) + " data " +
                     std::to_string(static_cast<int>(data)));
        const Problem problem(shape, types, data);
        const Expected e = Oracle(problem);
        ForEachTarget([&] { ExpectLikeOracle(problem, FirstThatFits(problem.params()), e); });
      }
    }
  }
}

// Partial sums that only grow: what a long chain of float additions does worst.
TEST(GroupNormBackwardKernel, BiasedAndConstantData) {
  const Shape shapes[] = {{300, 12, 1, 4},        {40, 40, 20, 2},       {2, 6, 500, 3},
                          {2, 4, 70001, 2},       {1, 2, 1000003, 1},    {3, 6, 300, 3, true},
                          {2, 4, 70001, 4, true}, {500, 20, 12, 4, true}};
  for (const Shape& shape : shapes) {
    for (const Data data : {Data::kBiased, Data::kConstant}) {
      SCOPED_TRACE(shape.Name() + " data " + std::to_string(static_cast<int>(data)));
      const Problem problem(shape, kTypes[0], data);
      const Expected e = Oracle(problem);
      ForEachTarget([&] { ExpectLikeOracle(problem, FirstThatFits(problem.params()), e); });
    }
  }
}

// Large enough for stores around the caches; dx on and off a line.
TEST(GroupNormBackwardKernel, StreamedResults) {
  const StreamFrom from(1 << 20);
  const Shape shapes[] = {{2, 64, 1000, 8},
                          {2, 64, 1024, 8},
                          {2, 64, 1024, 8, true},
                          {24, 256, 16, 2},
                          {1, 16, 40000, 1}};
  for (const Shape& shape : shapes) {
    for (const TypeRow types : {kTypes[0], kTypes[1], kTypes[3]}) {
      Shape s = shape;
      if (types.dtype != DType::kF32) s.n *= 2;
      SCOPED_TRACE(s.Name() + " " + Name(types.dtype));
      const Problem problem(s, types);
      const Result first = RunOn(problem, "111", 0);
      EXPECT_EQ(RunOn(problem, "111", 3), first);
      const Expected e = Oracle(problem);
      ExpectNear("dx", types.dtype, first.dx, e.dx, DxErrors(problem, e));
      ExpectNear("dgamma", types.param, first.dgamma, e.dgamma,
                 SumErrors(problem, e, e.dgamma_error));
    }
  }
}

TEST(GroupNormBackwardKernel, EmptyBatchClearsParameters) {
  for (const Shape& shape : {Shape{0, 6, 4, 2}, Shape{3, 6, 0, 2}, Shape{0, 6, 0, 3, true}}) {
    for (const TypeRow types : kTypes) {
      const Problem problem(shape, types);
      const Result r = RunOn(problem);
      EXPECT_EQ(r.dgamma, Bytes(6 * SizeOf(types.param), 0));
      EXPECT_EQ(r.dbeta, r.dgamma);
    }
  }
}

// ---- Bits ----

const Shape kBitShapes[] = {{5, 12, 1, 4},         {300, 32, 1, 8},         {6, 6, 20, 2},
                            {20, 512, 9, 32},      {3, 6, 500, 3},          {40, 64, 196, 8},
                            {2, 4, 140000, 2},     {1, 70, 3000, 1},        {3, 6, 300, 3, true},
                            {70, 20, 12, 4, true}, {3, 130, 3000, 5, true}, {2, 3, 70001, 1, true}};

TEST(GroupNormBackwardKernel, BitsDoNotDependOnThreads) {
  for (const Shape& shape : kBitShapes) {
    for (const TypeRow types : {kTypes[0], kTypes[2], kTypes[3]}) {
      SCOPED_TRACE(shape.Name());
      const Problem problem(shape, types, Data::kHostile);
      SetMaxThreads(1);
      const Result first = RunOn(problem);
      for (const int threads : {2, 3, 16}) {
        SetMaxThreads(threads);
        EXPECT_EQ(RunOn(problem), first) << threads;
      }
      SetMaxThreads(0);
    }
  }
}

// Several threads have groups of the same samples, and sums beside each other.
TEST(GroupNormBackwardKernel, ThreadsInsideASampleOfShortGroups) {
  for (const Shape& shape : {Shape{256, 64, 1, 64}, Shape{200, 64, 1, 64}, Shape{1024, 64, 1, 32},
                             Shape{1024, 48, 1, 24}}) {
    SCOPED_TRACE(shape.Name());
    const Problem problem(shape, kTypes[0]);
    SetMaxThreads(1);
    const Result first = RunOn(problem);
    SetMaxThreads(4);
    for (int i = 0; i < 100; ++i) ASSERT_EQ(RunOn(problem), first);
    SetMaxThreads(0);
  }
}

TEST(GroupNormBackwardKernel, BitsDoNotDependOnMask) {
  for (const Shape& shape : kBitShapes) {
    for (const TypeRow types : {kTypes[0], kTypes[3]}) {
      SCOPED_TRACE(shape.Name());
      const Problem problem(shape, types);
      const Result all = RunOn(problem);
      for (const std::string mask : {"000", "100", "010", "001", "110", "101", "011"}) {
        const Result some = RunOn(problem, mask);
        const auto untouched = [](const Bytes& bytes) { return Bytes(bytes.size(), 0x5a); };
        EXPECT_EQ(some.dx, mask[0] == '1' ? all.dx : untouched(all.dx)) << mask;
        EXPECT_EQ(some.dgamma, mask[1] == '1' ? all.dgamma : untouched(all.dgamma)) << mask;
        EXPECT_EQ(some.dbeta, mask[2] == '1' ? all.dbeta : untouched(all.dbeta)) << mask;
      }
    }
  }
}

// One sample alone has the dx it has in a batch, and so have the first half and any number of
// samples.
TEST(GroupNormBackwardKernel, BitsDoNotDependOnBatch) {
  for (const Shape& shape : kBitShapes) {
    for (const TypeRow types : kTypes) {
      SCOPED_TRACE(shape.Name());
      const Problem problem(shape, types);
      const Result batch = RunOn(problem);
      const size_t size = SizeOf(types.dtype), param = SizeOf(types.param);
      const size_t sample = shape.c * shape.hxw * size;
      const auto at = [](const void* data, size_t bytes) {
        return static_cast<const unsigned char*>(data) + bytes;
      };
      for (const auto& [first, count] : {std::pair<int64_t, int64_t>{0, 1},
                                         {shape.n - 1, 1},
                                         {shape.n / 2, (shape.n + 1) / 2}}) {
        GroupNormBackwardParams p = problem.params();
        p.n = count;
        p.dy = at(p.dy, first * sample);
        p.x = at(p.x, first * sample);
        p.mean = at(p.mean, first * shape.groups * param);
        p.rstd = at(p.rstd, first * shape.groups * param);
        Guarded dx(count * sample), dgamma(shape.c * param);
        p.dx = dx.data();
        p.dgamma = dgamma.data();
        const Kernel& kernel = FirstThatFits(p);
        Guarded scratch(ScratchOf(kernel, p));
        p.scratch = ScratchOf(kernel, p) > 0 ? scratch.data() : nullptr;
        kernel.run(&p, Launch{});
        EXPECT_TRUE(dx.Intact() && scratch.Intact());
        EXPECT_EQ(std::memcmp(dx.data(), batch.dx.data() + first * sample, count * sample), 0)
            << first;
      }
    }
  }
}

TEST(GroupNormBackwardKernel, UnalignedElements) {
  for (const Shape& shape : kBitShapes) {
    const TypeRow types = kTypes[0];
    const Problem problem(shape, types);
    const Result expected = RunOn(problem);
    GroupNormBackwardParams p = problem.params();
    const auto moved = [](const void*& data, int64_t bytes) {
      Bytes copy(bytes + 1);
      std::memcpy(copy.data() + 1, data, bytes);
      data = copy.data() + 1;
      return copy;
    };
    const Bytes dy = moved(p.dy, shape.count() * 4), x = moved(p.x, shape.count() * 4);
    const Bytes mean = moved(p.mean, shape.n * shape.groups * 4),
                rstd = moved(p.rstd, shape.n * shape.groups * 4);
    const Bytes gamma = moved(p.gamma, shape.c * 4);
    Bytes dx(shape.count() * 4 + 1), dgamma(shape.c * 4 + 1);
    p.dx = dx.data() + 1;
    p.dgamma = dgamma.data() + 1;
    const Kernel& kernel = FirstThatFits(p);
    Guarded scratch(ScratchOf(kernel, p));
    p.scratch = ScratchOf(kernel, p) > 0 ? scratch.data() : nullptr;
    kernel.run(&p, Launch{});
    EXPECT_EQ(std::memcmp(dx.data() + 1, expected.dx.data(), expected.dx.size()), 0)
        << shape.Name();
    EXPECT_EQ(std::memcmp(dgamma.data() + 1, expected.dgamma.data(), expected.dgamma.size()), 0)
        << shape.Name();
  }
}

// ---- Choice and cost ----

TEST(GroupNormBackwardKernel, ShapeChoosesTheKernel) {
  const auto choice = [](const Shape& shape) {
    GroupNormBackwardParams p{};
    p.n = shape.n;
    p.c = shape.c;
    p.hxw = shape.hxw;
    p.groups = shape.groups;
    p.channels_last = shape.last;
    return std::string(FirstThatFits(p).name);
  };
  EXPECT_EQ(choice({1024, 32, 1, 8}), "flat");
  EXPECT_EQ(choice({1024, 32, 1, 8, true}), "flat");  // the same memory
  EXPECT_EQ(choice({2, 3, 4, 1}), "flat");
  EXPECT_EQ(choice({8, 320, 4096, 32}), "planes");
  EXPECT_EQ(choice({8, 1, 4096, 1, true}), "planes");
  EXPECT_EQ(choice({8, 320, 4096, 32, true}), "channels_last");
  EXPECT_EQ(choice({0, 320, 4096, 32}), "reference");
  EXPECT_EQ(choice({1, 1000000, 1, 1}), "reference");
  EXPECT_EQ(choice({1, 200000, 9, 1}), "planes");
}

TEST(GroupNormBackwardKernel, ScratchIsSmall) {
  for (const int64_t n : {1, 7, 64, 1000, 100000}) {
    for (const int64_t hxw : {1, 2, 25, 31, 32, 49, 128, 3136, 262144}) {
      for (const int64_t c : {1, 32, 320, 2048, 60000, 240000}) {
        for (const int64_t groups : {int64_t{1}, c}) {
          for (const bool last : {false, true}) {
            for (const DType dtype : {DType::kF32, DType::kBF16}) {
              if (n * hxw * c > (int64_t{1} << 38)) continue;
              GroupNormBackwardParams p{};
              p.n = n;
              p.c = c;
              p.hxw = hxw;
              p.groups = groups;
              p.dtype = p.param_dtype = dtype;
              p.channels_last = last;
              const int64_t inputs = 2 * n * c * hxw * static_cast<int64_t>(SizeOf(dtype));
              EXPECT_LE(ScratchOf(FirstThatFits(p), p), std::max<int64_t>(4 << 20, inputs / 50))
                  << Shape{n, c, hxw, groups, last}.Name() << " " << FirstThatFits(p).name;
            }
          }
        }
      }
    }
  }
}

TEST(GroupNormBackwardKernel, WorkedExample) {
  std::vector<float> x(24), dx(24);
  for (int i = 0; i < 24; ++i) x[i] = static_cast<float>(i + 1);
  const float mean[] = {6.5f, 18.5f}, rstd[] = {0.2896827f, 0.2896827f}, gamma[] = {1, 1, 1};
  const float expected_gamma[] = {-75.8968638f, 2.89682686f, 155.849285f},
              expected_beta[] = {68, 100, 132};
  for (const char* name : {"flat", "planes", "reference"}) {
    float dgamma[3], dbeta[3];
    GroupNormBackwardParams p{x.data(), x.data(),    mean,        rstd, gamma, dx.data(),
                              dgamma,   dbeta,       nullptr,     2,    3,     4,
                              1,        DType::kF32, DType::kF32, false};
    Named(name).run(&p, Launch{});
    for (int c = 0; c < 3; ++c) {
      EXPECT_FLOAT_EQ(dgamma[c], expected_gamma[c]) << name;
      EXPECT_EQ(dbeta[c], expected_beta[c]) << name;
    }
    for (const float v : dx) EXPECT_NEAR(v, 0, 5e-6) << name;
  }
}

}  // namespace
}  // namespace anyacl::cpu
