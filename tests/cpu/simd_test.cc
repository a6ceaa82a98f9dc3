// SPDX-License-Identifier: Apache-2.0
// Copyright The AnyACL Authors
//
// Conversions and exp of simd-inl.h, every SIMD target forced, against scalar code.
#include <gtest/gtest.h>

#include <algorithm>
#include <bit>
#include <cmath>
#include <cstdint>
#include <cstring>
#include <limits>
#include <memory>
#include <random>
#include <span>
#include <string>
#include <vector>

#include "core/scalar.h"
#include "cpu/for_each_target.h"

#ifndef ANYACL_TESTS_CPU_SIMD_TEST_WAY_
#define ANYACL_TESTS_CPU_SIMD_TEST_WAY_
enum class Way { kSingle, kPair, kStream };  // of moving elements; one type for all targets
#endif

#undef HWY_TARGET_INCLUDE
#define HWY_TARGET_INCLUDE "cpu/simd_test.cc"
#include "hwy/foreach_target.h"
#include "hwy/highway.h"
//
#include "cpu/simd-inl.h"

HWY_BEFORE_NAMESPACE();
namespace anyacl {
namespace cpu {
namespace HWY_NAMESPACE {

// Counts are multiples of any pair, outputs are aligned.
template <class From, class To>
void ConvertAs(const From* from, To* to, size_t count, Way way) {
  const size_t step = way == Way::kSingle ? hn::Lanes(F32()) : PairLanes();
  for (size_t i = 0; i < count; i += step) {
    if (way == Way::kSingle) {
      Store1(Load1(from + i), to + i);
    } else {
      VF a, b;
      Load2(from + i, a, b);
      way == Way::kPair ? Store2(a, b, to + i) : Stream2(a, b, to + i);
    }
  }
  EndStream();
}

void FloatOfHalves(const Half* from, float* to, size_t n) { ConvertAs(from, to, n, Way::kSingle); }
void FloatOfBFloats(const BFloat16* from, float* to, size_t n) {
  ConvertAs(from, to, n, Way::kSingle);
}
void HalfOfFloats(const float* from, Half* to, size_t n, Way way) { ConvertAs(from, to, n, way); }
void BFloatOfFloats(const float* from, BFloat16* to, size_t n) {
  ConvertAs(from, to, n, Way::kSingle);
}
// Pairs keep the order of a type only against the same type.
void BFloatOfBFloats(const BFloat16* from, BFloat16* to, size_t n, Way way) {
  ConvertAs(from, to, n, way);
}

// The pair forms of rounding. Pairs are even and odd elements, but for HWY_SCALAR.
void BFloatPairsOfFloats(const float* from, BFloat16* to, size_t count, Way way) {
  for (size_t i = 0; i < count; i += PairLanes()) {
    VF a, b;
#if HWY_TARGET == HWY_SCALAR
    Load2(from + i, a, b);
#else
    hn::LoadInterleaved2(F32(), from + i, a, b);
#endif
    way == Way::kPair ? Store2(a, b, to + i) : Stream2(a, b, to + i);
  }
  EndStream();
}

void ExpOf(const float* x, float* y, size_t count) {
  for (size_t i = 0; i < count; i += hn::Lanes(F32())) Store1(Exp(Load1(x + i)), y + i);
}

template <int degree>
void ShortExp2As(const float* x, float* y, size_t count) {
  const VF factor = hn::Set(F32(), 1.44269504f);
  for (size_t i = 0; i < count; i += hn::Lanes(F32())) {
    Store1(ShortExp2<degree>(Load1(x + i), factor), y + i);
  }
}
void ShortExp5(const float* x, float* y, size_t count) { ShortExp2As<5>(x, y, count); }
void ShortExp4(const float* x, float* y, size_t count) { ShortExp2As<4>(x, y, count); }

}  // namespace HWY_NAMESPACE
}  // namespace cpu
}  // namespace anyacl
HWY_AFTER_NAMESPACE();

#if HWY_ONCE
namespace anyacl::cpu {
namespace {

HWY_EXPORT(FloatOfHalves);
HWY_EXPORT(FloatOfBFloats);
HWY_EXPORT(HalfOfFloats);
HWY_EXPORT(BFloatOfFloats);
HWY_EXPORT(BFloatOfBFloats);
HWY_EXPORT(BFloatPairsOfFloats);
HWY_EXPORT(ExpOf);
HWY_EXPORT(ShortExp5);
HWY_EXPORT(ShortExp4);

constexpr size_t kAll16 = 65536;

template <class T>
struct alignas(64) Array {
  T values[kAll16];
  T* data() { return values; }
  T& operator[](size_t i) { return values[i]; }
};

template <class T>
std::unique_ptr<Array<T>> AllBits() {
  auto all = std::make_unique<Array<T>>();
  for (size_t i = 0; i < kAll16; ++i) (*all)[i].bits = static_cast<uint16_t>(i);
  return all;
}

// Equal bits, or both NaN of the same sign: hardware quietens a signalling NaN, scalar code need
// not.
template <class T>
bool Same(T a, T b) {
  const float fa = static_cast<float>(a);
  const float fb = static_cast<float>(b);
  if (std::isnan(fa) || std::isnan(fb)) {
    return std::isnan(fa) && std::isnan(fb) && std::signbit(fa) == std::signbit(fb);
  }
  return std::memcmp(&a, &b, sizeof(T)) == 0;
}

float FloatOfBits(uint32_t bits) { return std::bit_cast<float>(bits); }

TEST(Simd, WidensEveryHalf) {
  const auto from = AllBits<Half>();
  const auto to = std::make_unique<Array<float>>();
  ForEachTarget([&] {
    HWY_DYNAMIC_DISPATCH(FloatOfHalves)(from->data(), to->data(), kAll16);
    for (size_t i = 0; i < kAll16; ++i) {
      ASSERT_TRUE(Same((*to)[i], static_cast<float>((*from)[i]))) << std::hex << i;
    }
  });
}

TEST(Simd, WidensEveryBFloat16) {
  const auto from = AllBits<BFloat16>();
  const auto to = std::make_unique<Array<float>>();
  ForEachTarget([&] {
    HWY_DYNAMIC_DISPATCH(FloatOfBFloats)(from->data(), to->data(), kAll16);
    for (size_t i = 0; i < kAll16; ++i) {
      ASSERT_EQ(std::bit_cast<uint32_t>((*to)[i]), i << 16) << std::hex << i;
    }
  });
}

// Every 16-bit number, and between it and the next the tie and its neighbours: `tails` replace the
// low bits.
template <class T, class Convert>
void RoundsLikeScalar(std::span<const uint32_t> tails, int dropped_bits, Convert&& convert) {
  const auto from = std::make_unique<Array<float>>();
  const auto to = std::make_unique<Array<T>>();
  for (const uint32_t tail : tails) {
    for (size_t i = 0; i < kAll16; ++i) {
      T value;
      value.bits = static_cast<uint16_t>(i);
      const uint32_t bits = std::bit_cast<uint32_t>(static_cast<float>(value));
      (*from)[i] = FloatOfBits((bits >> dropped_bits << dropped_bits) | tail);
    }
    convert(from->data(), to->data());
    for (size_t i = 0; i < kAll16; ++i) {
      const T expected(static_cast<float>((*from)[i]));
      ASSERT_TRUE(Same((*to)[i], expected))
          << (*from)[i] << " gives " << std::hex << (*to)[i].bits << " not " << expected.bits;
    }
  }
}

TEST(Simd, RoundsToBFloat16) {
  const uint32_t tails[] = {0, 1, 0x7fff, 0x8000, 0x8001, 0xffff};
  ForEachTarget([&] {
    RoundsLikeScalar<BFloat16>(tails, 16, [](const float* from, BFloat16* to) {
      HWY_DYNAMIC_DISPATCH(BFloatOfFloats)(from, to, kAll16);
    });
  });
}

TEST(Simd, RoundsToHalf) {
  const uint32_t tails[] = {0, 1, 0xfff, 0x1000, 0x1001, 0x1fff};
  for (const Way way : {Way::kSingle, Way::kPair, Way::kStream}) {
    ForEachTarget([&] {
      RoundsLikeScalar<Half>(tails, 13, [&](const float* from, Half* to) {
        HWY_DYNAMIC_DISPATCH(HalfOfFloats)(from, to, kAll16, way);
      });
    });
  }
}

// Random bits reach what lies outside half's range: overflow, subnormal results with far ties, NaN
// payloads.
TEST(Simd, RoundsRandomFloatsToHalf) {
  const auto from = std::make_unique<Array<float>>();
  const auto to = std::make_unique<Array<Half>>();
  std::mt19937 random(1);
  for (int round = 0; round < 16; ++round) {
    for (size_t i = 0; i < kAll16; ++i) {
      const uint32_t bits = static_cast<uint32_t>(random());
      const uint32_t exponent = 100 + bits % 46;  // 2^-27 ... 2^18
      (*from)[i] = FloatOfBits(round % 2 ? bits : (bits & 0x807fffffu) | exponent << 23);
    }
    ForEachTarget([&] {
      HWY_DYNAMIC_DISPATCH(HalfOfFloats)(from->data(), to->data(), kAll16, Way::kSingle);
      for (size_t i = 0; i < kAll16; ++i) {
        ASSERT_TRUE(Same((*to)[i], Half((*from)[i]))) << (*from)[i];
      }
    });
  }
}

TEST(Simd, BFloat16PairsKeepBits) {
  const auto from = AllBits<BFloat16>();
  const auto to = std::make_unique<Array<BFloat16>>();
  for (const Way way : {Way::kPair, Way::kStream}) {
    ForEachTarget([&] {
      HWY_DYNAMIC_DISPATCH(BFloatOfBFloats)(from->data(), to->data(), kAll16, way);
      for (size_t i = 0; i < kAll16; ++i) ASSERT_TRUE(Same((*to)[i], (*from)[i])) << std::hex << i;
    });
  }
}

// With the machine's own rounding, where it has one, and without.
TEST(Simd, BFloat16PairsRound) {
  const uint32_t tails[] = {0, 1, 0x7fff, 0x8000, 0x8001, 0xffff};
  const bool native = has_bfloat16_rounding;
  for (const bool use_native : {false, native}) {
    has_bfloat16_rounding = use_native;
    for (const Way way : {Way::kPair, Way::kStream}) {
      ForEachTarget([&] {
        RoundsLikeScalar<BFloat16>(tails, 16, [&](const float* from, BFloat16* to) {
          HWY_DYNAMIC_DISPATCH(BFloatPairsOfFloats)(from, to, kAll16, way);
        });
      });
    }
  }
  has_bfloat16_rounding = native;
}

// ---- exp ----

// Distance in units of the last place of a float of the size of `exact`; subnormal steps do not
// shrink.
double UlpError(float got, double exact) {
  if (static_cast<float>(exact) == got) return 0;  // also infinity
  const int exponent = std::max(std::ilogb(exact), -126);
  return std::abs(static_cast<double>(got) - exact) / std::ldexp(1.0, exponent - 23);
}

std::vector<float> ExpArguments() {
  std::vector<float> x;
  for (const float most : {90.0f, 110.0f}) {
    const uint32_t sign = most > 100 ? 0x80000000u : 0;
    for (uint32_t bits = 0; bits <= std::bit_cast<uint32_t>(most); bits += 1009) {
      x.push_back(FloatOfBits(bits | sign));
    }
  }
  for (uint32_t i = 0; i < kAll16; ++i) {
    Half half;
    BFloat16 bfloat;
    half.bits = bfloat.bits = static_cast<uint16_t>(i);
    for (const float value : {static_cast<float>(half), static_cast<float>(bfloat)}) {
      if (!std::isnan(value)) x.push_back(value);
    }
  }
  for (int around = -2000; around <= 2000; ++around) {  // where overflow, subnormals and zero begin
    for (const float edge : {88.7228394f, -87.3365479f, -103.278931f, -103.972084f}) {
      x.push_back(FloatOfBits(std::bit_cast<uint32_t>(edge) + around));
    }
  }
  x.resize((x.size() + 63) / 64 * 64);
  return x;
}

class ExpTest : public testing::Test {
 protected:
  static void SetUpTestSuite() {
    x = new std::vector<float>(ExpArguments());
    exact = new std::vector<double>;
    for (const float value : *x) exact->push_back(std::exp(static_cast<double>(value)));
  }
  static void TearDownTestSuite() {
    delete x;
    delete exact;
  }
  // Largest error in ulp over the arguments whose magnitude is at most `most`.
  template <class Function>
  static double Worst(float most, Function&& function) {
    std::vector<float> y(x->size());
    function(x->data(), y.data(), x->size());
    double worst = 0;
    for (size_t i = 0; i < y.size(); ++i) {
      if (std::abs((*x)[i]) <= most) worst = std::max(worst, UlpError(y[i], (*exact)[i]));
    }
    return worst;
  }
  static std::vector<float>* x;
  static std::vector<double>* exact;
};
std::vector<float>* ExpTest::x = nullptr;
std::vector<double>* ExpTest::exact = nullptr;

TEST_F(ExpTest, Accuracy) {
  ForEachTarget([] {
    const double worst = Worst(std::numeric_limits<float>::infinity(), HWY_DYNAMIC_DISPATCH(ExpOf));
    EXPECT_LE(worst, 1.2);  // 0.86 where multiply-add is fused
    RecordProperty(ActiveTarget(), std::to_string(worst));
  });
}

// 2^-7 and 2^-9 of a step of half and bfloat16 near 1; everywhere a small part of one.
TEST_F(ExpTest, ShortAccuracy) {
  ForEachTarget([] {
    const double half_near = Worst(1.0f, HWY_DYNAMIC_DISPATCH(ShortExp5));
    const double half_far = Worst(104.0f, HWY_DYNAMIC_DISPATCH(ShortExp5));
    const double bfloat_near = Worst(1.0f, HWY_DYNAMIC_DISPATCH(ShortExp4));
    const double bfloat_far = Worst(104.0f, HWY_DYNAMIC_DISPATCH(ShortExp4));
    RecordProperty(ActiveTarget(), std::to_string(half_near) + " " + std::to_string(half_far) +
                                       " " + std::to_string(bfloat_near) + " " +
                                       std::to_string(bfloat_far));
    EXPECT_LE(half_near, 4.0);
    EXPECT_LE(half_far, 256.0);
    EXPECT_LE(bfloat_near, 64.0);
    EXPECT_LE(bfloat_far, 256.0);
  });
}

TEST_F(ExpTest, Specials) {
  constexpr float kInf = std::numeric_limits<float>::infinity();
  constexpr float kMax = std::numeric_limits<float>::max();
  const float x[64] = {kInf, -kInf, kMax,  -kMax,         200,           -200,
                       1000, 0,     -0.0f, std::nanf(""), -std::nanf("")};
  const float expected[] = {kInf, 0, kInf, 0, kInf, 0, kInf, 1, 1};
  float y[64];
  ForEachTarget([&] {
    HWY_DYNAMIC_DISPATCH(ExpOf)(x, y, 64);
    for (int i = 0; i < 9; ++i) EXPECT_EQ(y[i], expected[i]) << x[i];
    EXPECT_TRUE(std::isnan(y[9]) && std::isnan(y[10]));
  });
}

TEST_F(ExpTest, ShortSpecials) {
  const float x[64] = {104, -104, 0, -0.0f,
                       std::nanf("")};  // the ends of the range, in powers of two 150
  const float expected[] = {std::numeric_limits<float>::infinity(), 0, 1, 1};
  float y[64];
  ForEachTarget([&] {
    for (const auto function : {HWY_DYNAMIC_DISPATCH(ShortExp5), HWY_DYNAMIC_DISPATCH(ShortExp4)}) {
      function(x, y, 64);
      for (int i = 0; i < 4; ++i) EXPECT_EQ(y[i], expected[i]) << x[i];
      EXPECT_TRUE(std::isnan(y[4]));
    }
  });
}

}  // namespace
}  // namespace anyacl::cpu
#endif  // HWY_ONCE
