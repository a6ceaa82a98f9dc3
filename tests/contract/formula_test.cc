// SPDX-License-Identifier: Apache-2.0
// Copyright The AnyACL Authors
//
// The formulas of the contract tables: what they mean, and that a mistake in one is found at load.
#include "contract/formula.h"

#include <gtest/gtest.h>

#include <cmath>
#include <cstdint>
#include <limits>
#include <string>
#include <vector>

namespace anyacl::contract {
namespace {

const std::vector<std::string> kNames = {"N", "C", "HxW", "group", "alpha_1"};

struct Numbers {
  std::vector<Number> values = {3, 12, 37, 4, 0.5};
  Number operator()(int variable) const { return values[variable]; }
};

Number Evaluate(const char* text, const Numbers& numbers = {}) {
  const Formula formula(text, kNames);
  EXPECT_EQ(formula.error(), "") << text;
  return formula.Evaluate(numbers);
}

bool Holds(const char* text, const Numbers& numbers = {}) {
  const Formula formula(text, kNames);
  EXPECT_EQ(formula.error(), "") << text;
  return formula.Holds(numbers);
}

std::string ErrorOf(const std::string& text) { return Formula(text, kNames).error(); }

TEST(Formula, Arithmetic) {
  struct {
    const char* text;
    Number value;
  } constexpr kCases[] = {
      {"7", 7},
      {"N", 3},
      {"N*C*HxW", 1332},
      {"N + C * 2", 27},
      {"(N + C) * 2", 30},
      {"N - C - 1", -10},    // from the left
      {"C / group / 2", 1},  // 12/4/2: from the left again
      {"C / (group / 2)", 6},
      {"HxW / group", 9},  // whole numbers
      {"HxW % group", 1},
      {"  N*  ( C+1 )  ", 39},
      {"((((N))))", 3},
      {"alpha_1 + 1", 1.5},
  };
  for (const auto& c : kCases) EXPECT_EQ(Evaluate(c.text), c.value) << c.text;
}

TEST(Formula, DivisionByZeroIsZeroAndNotATrap) {
  Numbers zero;
  zero.values[3] = 0;
  EXPECT_EQ(Evaluate("C / group", zero), 0);
  EXPECT_EQ(Evaluate("C % group", zero), 0);
}

TEST(Formula, ComparisonsOfNumbers) {
  struct {
    const char* text;
    bool holds;
  } constexpr kCases[] = {
      {"C % group == 0", true}, {"HxW % group == 0", false},
      {"N == 3", true},         {"N != 3", false},
      {"N != 4", true},         {"N <= 3", true},
      {"N <= 2", false},        {"N >= 3", true},
      {"N >= 4", false},        {"N < 3", false},
      {"N < 4", true},          {"N > 3", false},
      {"N > 2", true},          {"N*2 > N + 2", true},
      {"N - 3", false},         {"N", true},
  };
  for (const auto& c : kCases) EXPECT_EQ(Holds(c.text), c.holds) << c.text;
}

TEST(Formula, NanBreaksNothing) {
  Numbers numbers;
  numbers.values[4] = std::numeric_limits<Number>::quiet_NaN();
  for (const char* sign : {"==", "!=", "<=", ">=", "<", ">"}) {
    const std::string text = std::string("alpha_1 ") + sign + " 0";
    EXPECT_TRUE(Holds(text.c_str(), numbers)) << text;
  }
}

TEST(Formula, InfinityAndMinusZeroCompareAsNumbers) {
  Numbers numbers;
  numbers.values[4] = -0.0L;
  EXPECT_TRUE(Holds("alpha_1 >= 0", numbers));
  EXPECT_FALSE(Holds("alpha_1 > 0", numbers));
  numbers.values[4] = -std::numeric_limits<Number>::infinity();
  EXPECT_FALSE(Holds("alpha_1 >= 0", numbers));
  numbers.values[4] = std::numeric_limits<Number>::infinity();
  EXPECT_TRUE(Holds("alpha_1 >= 0", numbers));
}

// 2^32 * 2^32 is 0 in 64 bits: a wrapped product would equal an empty tensor's element count.
TEST(Formula, ProductsBeyond64BitsDoNotWrap) {
  Numbers numbers;
  numbers.values = {0x1p32L, 0x1p32L, 1, 1, 0};
  EXPECT_EQ(Evaluate("N*C*HxW", numbers), 0x1p64L);
  EXPECT_FALSE(Holds("N*C == 0", numbers));
  numbers.values = {static_cast<Number>(INT64_MAX), static_cast<Number>(INT64_MAX), 2, 1, 0};
  EXPECT_GT(Evaluate("N*C*HxW", numbers), static_cast<Number>(INT64_MAX));
}

TEST(Formula, EveryValueBelow63BitsIsExact) {
  Numbers numbers;
  numbers.values[0] = static_cast<Number>(INT64_MAX);
  numbers.values[1] = static_cast<Number>(INT64_MAX - 1);
  EXPECT_FALSE(Holds("N == C", numbers));
  EXPECT_TRUE(Holds("N - C == 1", numbers));
  EXPECT_TRUE(Holds("N == 9223372036854775807", numbers));
}

TEST(Formula, VariablesAreListedOnceInOrderOfAppearance) {
  const Formula formula("HxW * N + HxW > group", kNames);
  EXPECT_EQ(formula.variables(), (std::vector<int>{2, 0, 3}));
  EXPECT_EQ(formula.text(), "HxW * N + HxW > group");
}

TEST(Formula, MistakesAreNamed) {
  EXPECT_EQ(ErrorOf("N * D"), "unknown name 'D'");
  EXPECT_EQ(ErrorOf("n"), "unknown name 'n'");
  EXPECT_EQ(ErrorOf("(N * C"), "')' expected");
  EXPECT_EQ(ErrorOf("N C"), "unexpected 'C'");
  EXPECT_EQ(ErrorOf("N = 3"), "unexpected '= 3'");
  EXPECT_EQ(ErrorOf("N == 3 == 3"), "unexpected '== 3'");
  EXPECT_EQ(ErrorOf(""), "name or number expected at position 0");
  EXPECT_EQ(ErrorOf("N *"), "name or number expected at position 3");
  EXPECT_EQ(ErrorOf("N >="), "name or number expected at position 4");
  EXPECT_EQ(ErrorOf("-1"), "name or number expected at position 0");
}

TEST(Formula, NumbersThatAreNoneAreMistakes) {
  EXPECT_EQ(ErrorOf("N * 12abc"), "'12abc' is not a whole number below 2^63");
  EXPECT_EQ(ErrorOf("9223372036854775808"),
            "'9223372036854775808' is not a whole number below 2^63");
}

// Whole numbers take a short cut: it gives the same or gives up.
TEST(Formula, WholeNumbersAgreeWithTheLongWay) {
  const int64_t most = std::numeric_limits<int64_t>::max();
  const int64_t least = std::numeric_limits<int64_t>::min();
  const int64_t kEdges[] = {least, -7, -1, 0, 1, 2, 3, 1 << 20, most / 2, most};
  const char* const kTexts[] = {"N + C", "N - C", "N * C", "N / C", "N % C", "(N + 1) * C - 3"};
  int given_up = 0;
  for (const char* text : kTexts) {
    const Formula formula(text, kNames);
    for (const int64_t n : kEdges) {
      for (const int64_t c : kEdges) {
        int64_t whole = 0;
        if (!formula.EvaluateWhole([&](int v) { return v == 0 ? n : c; }, &whole)) {
          ++given_up;
          continue;
        }
        const Numbers numbers{{static_cast<Number>(n), static_cast<Number>(c)}};
        EXPECT_EQ(formula.Evaluate(numbers), static_cast<Number>(whole)) << text << n << " " << c;
      }
    }
  }
  EXPECT_GT(given_up, 0);
  EXPECT_LT(given_up, 300);
}

TEST(Formula, WholeNumbersCompareLikeTheLongWay) {
  for (const char* text : {"N == C", "N != C", "N <= C", "N >= C", "N < C", "N > C", "N - C"}) {
    const Formula formula(text, kNames);
    for (const int64_t n : {-1, 0, 5}) {
      bool holds = false;
      ASSERT_TRUE(formula.HoldsWhole([&](int v) { return v == 0 ? n : 0; }, &holds)) << text;
      const Numbers numbers{{static_cast<Number>(n), 0}};
      EXPECT_EQ(formula.Holds(numbers), holds) << text << n;
    }
  }
}

// Evaluation has a stack of fixed size; a formula that needs more is refused when it is parsed.
TEST(Formula, TooDeepIsAMistake) {
  const auto nested = [](int depth) {
    std::string text;
    for (int i = 1; i < depth; ++i) text += "1+(";
    text += "1";
    for (int i = 1; i < depth; ++i) text += ")";
    return text;
  };
  EXPECT_EQ(Evaluate(nested(16).c_str()), 16);
  EXPECT_EQ(ErrorOf(nested(17)), "nested too deeply");
  std::string flat = "1";
  for (int i = 1; i < 100; ++i) flat += "+1";
  EXPECT_EQ(Evaluate(flat.c_str()), 100);
}

}  // namespace
}  // namespace anyacl::contract
