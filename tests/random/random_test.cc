// SPDX-License-Identifier: Apache-2.0
// Copyright The AnyACL Authors
//
// The random numbers as a program sees them, through the C API: worked values of the generator, then moments, the test of
// Kolmogorov and Smirnov, and chi-square. Seeds are fixed, so a distribution that passes once passes always; the last test
// shows that each of the statistics fails on numbers that are not what they should be.
#include <gtest/gtest.h>

#include <algorithm>
#include <bit>
#include <cmath>
#include <functional>
#include <set>
#include <vector>

#include "acl/acl.h"
#include "aclnnop/aclnn_bernoulli.h"
#include "aclnnop/aclnn_dropout_gen_mask.h"
#include "aclnnop/aclnn_multinomial.h"
#include "aclnnop/aclnn_normal.h"
#include "aclnnop/aclnn_random.h"
#include "aclnnop/aclnn_randperm.h"
#include "aclnnop/aclnn_sim_thread_exponential.h"
#include "aclnnop/aclnn_uniform.h"
#include "harness/session.h"

namespace anyacl {
namespace {

using harness::Require;

constexpr int64_t kMany = 200000;

template <class T>
constexpr aclDataType kTypeOf = std::is_same_v<T, float> ? ACL_FLOAT : std::is_same_v<T, double> ? ACL_DOUBLE : std::is_same_v<T, int64_t> ? ACL_INT64 : ACL_UINT8;

// A dense tensor of one dim in device memory.
template <class T>
class Array {
 public:
  explicit Array(int64_t count) : count_(count) {
    Require(aclrtMalloc(&data_, static_cast<size_t>(count) * sizeof(T), ACL_MEM_MALLOC_HUGE_FIRST), "aclrtMalloc");
    tensor_ = aclCreateTensor(&count_, 1, kTypeOf<T>, nullptr, 0, ACL_FORMAT_ND, &count_, 1, data_);
  }
  explicit Array(const std::vector<T>& values) : Array(static_cast<int64_t>(values.size())) {
    Require(aclrtMemcpy(data_, values.size() * sizeof(T), values.data(), values.size() * sizeof(T), ACL_MEMCPY_HOST_TO_DEVICE), "aclrtMemcpy");
  }
  ~Array() {
    aclDestroyTensor(tensor_);
    aclrtFree(data_);
  }
  Array(const Array&) = delete;
  Array& operator=(const Array&) = delete;
  aclTensor* get() const { return tensor_; }
  std::vector<T> Read() const {
    std::vector<T> values(static_cast<size_t>(count_));
    Require(aclrtMemcpy(values.data(), values.size() * sizeof(T), data_, values.size() * sizeof(T), ACL_MEMCPY_DEVICE_TO_HOST), "aclrtMemcpy");
    return values;
  }

 private:
  int64_t count_;
  void* data_ = nullptr;
  aclTensor* tensor_ = nullptr;
};

using Phase1 = std::function<aclnnStatus(uint64_t*, aclOpExecutor**)>;
using Phase2 = aclnnStatus (*)(void*, uint64_t, aclOpExecutor*, aclrtStream);

class RandomTest : public testing::Test {
 protected:
  void Call(const Phase1& plan, Phase2 run) {
    uint64_t size = 0;
    aclOpExecutor* executor = nullptr;
    Require(plan(&size, &executor), "phase 1");
    void* workspace = nullptr;
    if (size > 0) Require(aclrtMalloc(&workspace, size, ACL_MEM_MALLOC_HUGE_FIRST), "aclrtMalloc");
    Require(run(workspace, size, executor, session_.stream()), "phase 2");
    Require(aclrtSynchronizeStream(session_.stream()), "aclrtSynchronizeStream");
    if (workspace) aclrtFree(workspace);
  }

  template <class T>
  std::vector<T> Uniform(int64_t count, double from, double to, uint64_t seed, uint64_t offset) {
    Array<T> out(count);
    Call([&](auto* s, auto** e) { return aclnnInplaceUniformGetWorkspaceSize(out.get(), from, to, seed, offset, s, e); }, aclnnInplaceUniform);
    return out.Read();
  }
  template <class T>
  std::vector<T> Normal(int64_t count, int64_t seed, int64_t offset) {
    Array<T> out(count);
    Call([&](auto* s, auto** e) { return aclnnInplaceNormalGetWorkspaceSize(out.get(), 0, 1, seed, offset, s, e); }, aclnnInplaceNormal);
    return out.Read();
  }
  std::vector<int64_t> Whole(int64_t count, int64_t from, int64_t to, int64_t seed, int64_t offset) {
    Array<int64_t> out(count);
    Call([&](auto* s, auto** e) { return aclnnInplaceRandomGetWorkspaceSize(out.get(), from, to, seed, offset, s, e); }, aclnnInplaceRandom);
    return out.Read();
  }
  std::vector<int64_t> Permutation(int64_t n, int64_t seed) {
    Array<int64_t> out(n);
    Call([&](auto* s, auto** e) { return aclnnRandpermGetWorkspaceSize(n, seed, 0, out.get(), s, e); }, aclnnRandperm);
    return out.Read();
  }
  std::vector<int64_t> Draw(const std::vector<float>& weights, int64_t samples, bool replacement, int64_t seed) {
    Array<float> self(weights);
    Array<int64_t> out(samples);
    Call([&](auto* s, auto** e) { return aclnnMultinomialGetWorkspaceSize(self.get(), samples, replacement, seed, 0, out.get(), s, e); }, aclnnMultinomial);
    return out.Read();
  }

  harness::Session session_;
};

// --- statistics: how far from what is expected, in units that a good generator exceeds once in ten thousand times -----------

// The largest distance of the two distribution functions, times the root of n; 2.23 has the probability 1e-4.
template <class T>
double KolmogorovSmirnov(std::vector<T> values, const std::function<double(double)>& distribution) {
  std::sort(values.begin(), values.end());
  const double n = static_cast<double>(values.size());
  double most = 0;
  for (size_t i = 0; i < values.size(); ++i) {
    const double f = distribution(static_cast<double>(values[i]));
    most = std::max({most, f - static_cast<double>(i) / n, static_cast<double>(i + 1) / n - f});
  }
  return most * std::sqrt(n) / 2.23;
}

// Counts against equal or given probabilities: the normal approximation of Wilson and Hilferty; 3.72 has the probability 1e-4. Too
// even counts are as suspicious as uneven ones.
double ChiSquare(const std::vector<int64_t>& counts, std::vector<double> probabilities = {}) {
  if (probabilities.empty()) probabilities.assign(counts.size(), 1.0 / static_cast<double>(counts.size()));
  int64_t all = 0;
  for (int64_t c : counts) all += c;
  double sum = 0;
  for (size_t i = 0; i < counts.size(); ++i) {
    const double want = probabilities[i] * static_cast<double>(all);
    sum += (static_cast<double>(counts[i]) - want) * (static_cast<double>(counts[i]) - want) / want;
  }
  const double k = static_cast<double>(counts.size()) - 1;
  const double z = (std::cbrt(sum / k) - (1 - 2 / (9 * k))) / std::sqrt(2 / (9 * k));
  return std::fabs(z) / 3.72;
}

// Mean and variance, with the fourth central moment of the distribution.
template <class T>
double Moments(const std::vector<T>& values, double mean, double variance, double fourth) {
  const double n = static_cast<double>(values.size());
  double sum = 0, squares = 0;
  for (T v : values) {
    sum += static_cast<double>(v) - mean;
    squares += (static_cast<double>(v) - mean) * (static_cast<double>(v) - mean);
  }
  const double z1 = sum / std::sqrt(n * variance), z2 = (squares - n * variance) / std::sqrt(n * (fourth - variance * variance));
  return std::max(std::fabs(z1), std::fabs(z2)) / 3.9;
}

// Of neighbours, `lag` apart.
template <class T>
double Correlation(const std::vector<T>& values, double mean, double variance, size_t lag) {
  double sum = 0;
  for (size_t i = 0; i + lag < values.size(); ++i) sum += (static_cast<double>(values[i]) - mean) * (static_cast<double>(values[i + lag]) - mean);
  return std::fabs(sum) / (variance * std::sqrt(static_cast<double>(values.size() - lag))) / 3.9;
}

std::vector<int64_t> Histogram(const std::vector<int64_t>& values, int64_t cells) {
  std::vector<int64_t> counts(static_cast<size_t>(cells));
  for (int64_t v : values) ++counts[static_cast<size_t>(v)];
  return counts;
}

double UniformLaw(double x) { return std::clamp(x, 0.0, 1.0); }
double NormalLaw(double x) { return 0.5 * std::erfc(-x * std::sqrt(0.5)); }
double ExponentialLaw(double x) { return -std::expm1(-x); }

// --- the generator ----------------------------------------------------------------------------------

TEST_F(RandomTest, WorkedValues) {
  // Words of seed 42, offset 8: low halves of 64-bit keys and what the maps make of them.
  const std::vector<float> u = Uniform<float>(2, 0, 1, 42, 8);
  EXPECT_EQ(u[0], 0.67660666f);
  EXPECT_EQ(u[1], 0.034766197f);
  const std::vector<float> n = Normal<float>(2, 42, 8);
  EXPECT_EQ(n[0], 0.19155568f);
  EXPECT_EQ(n[1], 0.86292338f);
  const std::vector<int64_t> words = Whole(2, 0, int64_t{1} << 62, 42, 8);
  EXPECT_EQ(static_cast<uint64_t>(words[0]), 0x1384733884d69b0cu);
  EXPECT_EQ(static_cast<uint64_t>(words[1]), 0x3122e8e2b6304e11u);  // without the two highest bits
  const int64_t count = 16;
  aclIntArray* const shape = aclCreateIntArray(&count, 1);
  Array<uint8_t> mask(16);
  Call([&](auto* s, auto** e) { return aclnnDropoutGenMaskGetWorkspaceSize(shape, 0.5, 42, 8, mask.get(), s, e); }, aclnnDropoutGenMask);
  aclDestroyIntArray(shape);
  EXPECT_EQ(mask.Read()[0], 0x2a);
  EXPECT_EQ(mask.Read()[1], 0x2d);
}

// A published word of Philox4x32-10.
TEST_F(RandomTest, PublishedWord) {
  EXPECT_EQ(static_cast<uint64_t>(Whole(1, 0, INT64_MAX, 0, 0)[0]), 0xe169c58d6627e8d5u % INT64_MAX);
}

TEST_F(RandomTest, StreamsDiffer) {
  std::set<uint64_t> seen;
  for (uint64_t seed : {0, 1, 2}) {
    for (uint64_t offset : {0, 1, 4, 8}) {
      for (double x : Uniform<double>(1000, 0, 1, seed, offset)) seen.insert(std::bit_cast<uint64_t>(x));
    }
  }
  EXPECT_GT(seen.size(), 12000u - 2);
  EXPECT_EQ(Uniform<float>(1000, 0, 1, 5, 4), Uniform<float>(1000, 0, 1, 5, 4));
}

TEST_F(RandomTest, APrefixDoesNotDependOnTheLength) {
  const std::vector<float> all = Normal<float>(100001, 3, 0), some = Normal<float>(1001, 3, 0);
  EXPECT_TRUE(std::equal(some.begin(), some.end(), all.begin()));
}

// --- distributions ----------------------------------------------------------------------------------

TEST_F(RandomTest, UniformNumbers) {
  for (uint64_t seed : {1, 2, 3}) {
    const std::vector<float> x = Uniform<float>(kMany, 0, 1, seed, 4 * seed);
    EXPECT_LT(KolmogorovSmirnov(x, UniformLaw), 1);
    EXPECT_LT(Moments(x, 0.5, 1.0 / 12, 1.0 / 80), 1);
    for (size_t lag : {1, 2, 3, 4, 8, 256}) EXPECT_LT(Correlation(x, 0.5, 1.0 / 12, lag), 1) << lag;
    const std::vector<double> y = Uniform<double>(kMany, 0, 1, seed, 4 * seed);
    EXPECT_LT(KolmogorovSmirnov(y, UniformLaw), 1);
    EXPECT_LT(Moments(y, 0.5, 1.0 / 12, 1.0 / 80), 1);
  }
}

TEST_F(RandomTest, NormalNumbers) {
  for (int64_t seed : {1, 2, 3}) {
    const std::vector<float> x = Normal<float>(kMany, seed, 0);
    EXPECT_LT(KolmogorovSmirnov(x, NormalLaw), 1);
    EXPECT_LT(Moments(x, 0, 1, 3), 1);
    for (size_t lag : {1, 2, 3, 4}) EXPECT_LT(Correlation(x, 0, 1, lag), 1) << lag;
    const std::vector<double> y = Normal<double>(kMany, seed, 0);
    EXPECT_LT(KolmogorovSmirnov(y, NormalLaw), 1);
    EXPECT_LT(Moments(y, 0, 1, 3), 1);
  }
}

TEST_F(RandomTest, ExponentialNumbers) {
  Array<float> out(kMany);
  Call([&](auto* s, auto** e) { return aclnnSimThreadExponentialGetWorkspaceSize(out.get(), kMany, 1, 7, 0, s, e); }, aclnnSimThreadExponential);
  const std::vector<float> x = out.Read();
  EXPECT_LT(KolmogorovSmirnov(x, ExponentialLaw), 1);
  EXPECT_LT(Moments(x, 1, 1, 9), 1);
  EXPECT_GT(*std::min_element(x.begin(), x.end()), 0);
}

TEST_F(RandomTest, WholeNumbers) {
  for (int64_t range : {2, 7, 100, 1000}) EXPECT_LT(ChiSquare(Histogram(Whole(kMany, 0, range, 9, 0), range)), 1) << range;
  // Beyond 28 bits: the remainders of what is drawn, and which part of the range it lies in.
  const int64_t range = int64_t{3} << 40;
  std::vector<int64_t> rest = Whole(kMany, 0, range, 9, 0), part = rest;
  for (int64_t& x : rest) x %= 97;
  for (int64_t& x : part) x /= range / 96;
  EXPECT_LT(ChiSquare(Histogram(rest, 97)), 1);
  EXPECT_LT(ChiSquare(Histogram(part, 96)), 1);
}

TEST_F(RandomTest, Bernoulli) {
  for (double p : {0.1, 0.5, 0.999}) {
    Array<int64_t> out(kMany);
    aclScalar* const prob = aclCreateScalar(&p, ACL_DOUBLE);
    Call([&](auto* s, auto** e) { return aclnnInplaceBernoulliGetWorkspaceSize(out.get(), prob, 3, 0, s, e); }, aclnnInplaceBernoulli);
    aclDestroyScalar(prob);
    const std::vector<int64_t> counts = Histogram(out.Read(), 2);
    EXPECT_LT(std::fabs(static_cast<double>(counts[1]) - p * kMany) / std::sqrt(p * (1 - p) * kMany), 3.9) << p;
  }
}

TEST_F(RandomTest, MasksOfDropout) {
  const int64_t count = kMany;
  aclIntArray* const shape = aclCreateIntArray(&count, 1);
  for (double p : {0.1, 0.5, 0.75}) {
    Array<uint8_t> mask((count + 127) / 128 * 16);
    Call([&](auto* s, auto** e) { return aclnnDropoutGenMaskGetWorkspaceSize(shape, p, 1, 0, mask.get(), s, e); }, aclnnDropoutGenMask);
    std::vector<int64_t> kept(8);
    const std::vector<uint8_t> bytes = mask.Read();
    for (int64_t i = 0; i < count; ++i) kept[static_cast<size_t>(i % 8)] += bytes[static_cast<size_t>(i / 8)] >> (i % 8) & 1;
    EXPECT_LT(ChiSquare(kept), 1);
    int64_t all = 0;
    for (int64_t k : kept) all += k;
    EXPECT_LT(std::fabs(static_cast<double>(all) - (1 - p) * count) / std::sqrt(p * (1 - p) * count), 3.9);
  }
  aclDestroyIntArray(shape);
}

TEST_F(RandomTest, Permutations) {
  // All orders of five, as often as each other.
  std::vector<int64_t> counts(120);
  for (int64_t seed = 0; seed < 6000; ++seed) {
    const std::vector<int64_t> order = Permutation(5, seed);
    int64_t number = 0;
    for (size_t i = 0; i < 5; ++i) {
      int64_t smaller = 0;
      for (size_t j = i + 1; j < 5; ++j) smaller += order[j] < order[i];
      number = number * static_cast<int64_t>(5 - i) + smaller;
    }
    ++counts[static_cast<size_t>(number)];
  }
  EXPECT_LT(ChiSquare(counts), 1);
  std::vector<int64_t> large = Permutation(100000, 1);
  std::sort(large.begin(), large.end());
  for (int64_t i = 0; i < 100000; ++i) ASSERT_EQ(large[static_cast<size_t>(i)], i);
}

TEST_F(RandomTest, Draws) {
  const std::vector<float> weights = {1, 0, 2, 3, 4};
  const std::vector<int64_t> drawn = Histogram(Draw(weights, kMany, /*replacement=*/true, 5), 5);
  EXPECT_EQ(drawn[1], 0);
  EXPECT_LT(ChiSquare({drawn[0], drawn[2], drawn[3], drawn[4]}, {0.1, 0.2, 0.3, 0.4}), 1);
  // Without replacement: the first by the weights, the second by those of the others.
  std::vector<int64_t> first(5), pairs(25);
  for (int64_t seed = 0; seed < 6000; ++seed) {
    const std::vector<int64_t> two = Draw(weights, 2, /*replacement=*/false, seed);
    ++first[static_cast<size_t>(two[0])];
    ++pairs[static_cast<size_t>(two[0] * 5 + two[1])];
  }
  EXPECT_LT(ChiSquare({first[0], first[2], first[3], first[4]}, {0.1, 0.2, 0.3, 0.4}), 1);
  std::vector<int64_t> counts;
  std::vector<double> probabilities;
  for (size_t a = 0; a < 5; ++a) {
    for (size_t b = 0; b < 5; ++b) {
      if (a == b || weights[a] == 0 || weights[b] == 0) continue;
      counts.push_back(pairs[a * 5 + b]);
      probabilities.push_back(static_cast<double>(weights[a]) / 10 * static_cast<double>(weights[b] / (10 - weights[a])));
    }
  }
  EXPECT_LT(ChiSquare(counts, probabilities), 1);
}

// --- the statistics themselves ------------------------------------------------------------------------

TEST_F(RandomTest, TheStatisticsFindWhatIsWrong) {
  const std::vector<float> good = Uniform<float>(kMany, 0, 1, 1, 0);
  std::vector<float> coarse = good, shifted = good, repeated = good;
  for (float& x : coarse) x = std::floor(x * 64) / 64;
  for (float& x : shifted) x = x * 0.99f + 0.01f;
  for (size_t i = 1; i < repeated.size(); i += 16) repeated[i] = repeated[i - 1];
  EXPECT_GT(KolmogorovSmirnov(coarse, UniformLaw), 1);
  EXPECT_GT(KolmogorovSmirnov(shifted, UniformLaw), 1);
  EXPECT_GT(Moments(shifted, 0.5, 1.0 / 12, 1.0 / 80), 1);
  EXPECT_GT(Correlation(repeated, 0.5, 1.0 / 12, 1), 1);
  EXPECT_GT(KolmogorovSmirnov(good, NormalLaw), 1);
  // A float scaled to a range, as generators without 64-bit words do it, and counts that are too even.
  std::vector<int64_t> biased(kMany), counts(100, kMany / 100);
  for (size_t i = 0; i < biased.size(); ++i) biased[i] = static_cast<int64_t>(good[i] * 128) % 97;
  EXPECT_GT(ChiSquare(Histogram(biased, 97)), 1);
  EXPECT_GT(ChiSquare(counts), 1);
}

}  // namespace
}  // namespace anyacl
