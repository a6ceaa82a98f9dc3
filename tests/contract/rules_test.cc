// SPDX-License-Identifier: Apache-2.0
// Copyright The AnyACL Authors
//
// Every word of the table language on a toy operator: when it refuses, with which code and
// sentence.
#include <gtest/gtest.h>

#include <functional>
#include <limits>
#include <string>
#include <vector>

#include "contract/contract.h"
#include "contract/violations.h"
#include "core/codes.h"

namespace anyacl::contract {
namespace {

enum { kX, kW, kY, kScalar, kGroup, kEps, kFlag, kMask, kAxes };

Contract Toy(std::vector<Rule> rules) {
  return Contract({.op = "aclnnToy",
                   .stem = "toy",
                   .summary = "",
                   .formulas = {},
                   .args = {Input("x", ""),
                            Input("w", "").Optional(),
                            Output("y", ""),
                            ScalarArg("s", ""),
                            Int("group", ""),
                            Real("eps", ""),
                            Bool("flag", ""),
                            Mask("mask", ""),
                            {"axes", ArgKind::kIntArray}},
                   .sizes = {{"N", "x", 0}, {"C", "x", 1}},
                   .rules = std::move(rules)});
}

Tensor TensorOf(Dims dims, DType dtype = DType::kF32) {
  Tensor t;
  t.dtype = dtype;
  t.dims = t.storage = dims;
  t.strides = ContiguousStrides(dims);
  return t;
}

// x [3, 12], w [12], y [3, 12], s 0.5, group 4, eps 1e-5, flag on, mask {1, 0, 1}, axes {0, 1}
CallSpec Valid() {
  CallSpec call;
  call.args.resize(9);
  call.args[kX].tensor = TensorOf({3, 12});
  call.args[kW].tensor = TensorOf({12});
  call.args[kY].tensor = TensorOf({3, 12});
  call.args[kScalar].scalar = Scalar::OfFloat(0.5f);
  call.args[kGroup].integer = 4;
  call.args[kEps].real = 1e-5;
  call.args[kFlag].flag = true;
  call.args[kMask].bools.values = {1, 0, 1};
  call.args[kAxes].ints.values = {0, 1};
  return call;
}

using Change = std::function<void(CallSpec&)>;

CallSpec With(const Change& change) {
  CallSpec call = Valid();
  change(call);
  return call;
}

void ExpectFine(
    const Rule& rule, const Change& change = [](CallSpec&) {},
    Product product = Product::kAscend950) {
  const Contract contract = Toy({rule});
  const CallSpec call = With(change);
  int broken = 99;
  const Status status = contract.Check(call.Bind(contract), product, &broken);
  EXPECT_EQ(status.code(), 0) << status.message();
  EXPECT_EQ(broken, -1);
}

void ExpectBroken(const Rule& rule, const Change& change, int32_t code, const std::string& sentence,
                  Product product = Product::kAscend950) {
  const Contract contract = Toy({NotNull("x"), rule});  // a rule before it that holds
  const CallSpec call = With(change);
  int broken = 99;
  const Status status = contract.Check(call.Bind(contract), product, &broken);
  EXPECT_EQ(status.code(), code);
  EXPECT_EQ(status.message(), "aclnnToy: " + sentence);
  EXPECT_EQ(broken, 1);
}

TEST(Rules, NotNull) {
  ExpectFine(NotNull("w"));
  ExpectBroken(
      NotNull("w"), [](CallSpec& c) { c.args[kW].null = true; }, 161001, "w must not be null");
  ExpectBroken(
      NotNull("s"), [](CallSpec& c) { c.args[kScalar].null = true; }, 161001, "s must not be null");
  ExpectBroken(
      NotNull("mask"), [](CallSpec& c) { c.args[kMask].null = true; }, 161001,
      "mask must not be null");
}

TEST(Rules, Supported) {
  ExpectFine(Supported(kNewer));
  ExpectBroken(
      Supported(kNewer), [](CallSpec&) {}, 561003,
      std::string("not available on ") + Name(Product::kTraining), Product::kTraining);
}

TEST(Rules, DTypes) {
  const Rule rule = DTypes("x", {{{DType::kF32}}, {{DType::kF16}}, {{DType::kBF16}, kNewer}});
  const auto bf16 = [](CallSpec& c) { c.args[kX].tensor.dtype = DType::kBF16; };
  ExpectFine(rule);
  ExpectFine(rule, bf16);
  ExpectBroken(
      rule, [](CallSpec& c) { c.args[kX].tensor.dtype = DType::kI32; }, 161002,
      std::string("x must be FLOAT, FLOAT16 or BF16 on ") + Name(Product::kAscend950) +
          ", got INT32");
  ExpectBroken(
      rule, bf16, 161002,
      std::string("x must be FLOAT or FLOAT16 on ") + Name(Product::kInference) + ", got BF16",
      Product::kInference);
  ExpectBroken(
      rule, [](CallSpec& c) { c.args[kX].tensor.dtype = static_cast<DType>(99); }, 161002,
      std::string("x must be FLOAT, FLOAT16 or BF16 on ") + Name(Product::kAscend950) +
          ", got dtype 99");
}

TEST(Rules, DTypeRowsMatchWholeRows) {
  const Rule rule = DTypeRows({"x", "w"}, {{{DType::kF32, DType::kF32}},
                                           {{DType::kF16, DType::kF16}},
                                           {{DType::kF16, DType::kF32}, kOnly950}});
  const auto mixed = [](CallSpec& c) { c.args[kX].tensor.dtype = DType::kF16; };
  ExpectFine(rule, mixed);
  ExpectFine(rule, [](CallSpec& c) { c.args[kW].null = true; });  // an absent optional fits any row
  ExpectBroken(rule, mixed, 161002,
               std::string("dtypes of (x, w) must be (FLOAT, FLOAT) or (FLOAT16, FLOAT16) on ") +
                   Name(Product::kA2) + ", got (FLOAT16, FLOAT)",
               Product::kA2);
}

TEST(Rules, SameDType) {
  const Rule rule = SameDType("w", "x");
  ExpectFine(rule);
  ExpectFine(rule, [](CallSpec& c) { c.args[kW].null = true; });
  ExpectBroken(
      rule, [](CallSpec& c) { c.args[kW].tensor.dtype = DType::kF16; }, 161002,
      "w must have the dtype of x, got w FLOAT16 and x FLOAT");
}

TEST(Rules, ResultConverts) {
  const Rule rule = ResultConverts("x", "y");
  ExpectFine(rule, [](CallSpec& c) { c.args[kY].tensor.dtype = DType::kC128; });
  ExpectBroken(
      rule, [](CallSpec& c) { c.args[kY].tensor.dtype = DType::kI64; }, 161002,
      "y must have a dtype that x converts to, got y INT64 and x FLOAT");
}

TEST(Rules, ScalarConverts) {
  const Rule rule = ScalarConverts("s", DType::kF32);
  for (DType t : {DType::kF64, DType::kF16, DType::kBF16, DType::kI8, DType::kU64, DType::kBool}) {
    ExpectFine(rule, [t](CallSpec& c) { c.args[kScalar].scalar = Scalar::Of(t, 1); });
  }
  ExpectBroken(
      rule, [](CallSpec& c) { c.args[kScalar].scalar = Scalar::Of(DType::kC64, 1); }, 161002,
      "s must convert to FLOAT, got COMPLEX64");
}

TEST(Rules, Formats) {
  const auto nz = [](CallSpec& c) { c.args[kX].tensor.format = Format::kFractalNZ; };
  const auto nhwc = [](CallSpec& c) { c.args[kX].tensor.format = Format::kNHWC; };
  ExpectFine(PublicFormat("x"), nhwc);
  ExpectBroken(PublicFormat("x"), nz, 161002,
               "x must have a public format, got " + Name(Format::kFractalNZ));
  ExpectFine(Formats("x", {Format::kND, Format::kNCHW}));
  ExpectBroken(Formats("x", {Format::kND, Format::kNCHW}), nhwc, 161002,
               "x must have format ND or NCHW, got NHWC");
}

TEST(Rules, Rank) {
  ExpectFine(Rank("x", 2, 8));
  ExpectFine(Rank("x", 0, 2));
  ExpectBroken(
      Rank("x", 0, 1), [](CallSpec&) {}, 161002,
      "x must have at most 1 dims, got shape [3, 12] with 2");
  ExpectBroken(
      Rank("x", 3, 8), [](CallSpec&) {}, 161002,
      "x must have 3 to 8 dims, got shape [3, 12] with 2");
}

TEST(Rules, SameShape) {
  ExpectFine(SameShape("y", "x"));
  ExpectBroken(
      SameShape("y", "x"),
      [](CallSpec& c) {
        c.args[kY].tensor = TensorOf({12, 3});
      },
      161002, "y must have the shape of x, got y [12, 3] and x [3, 12]");
  // 36 elements, but another rank: shapes compare by every dim.
  ExpectBroken(
      SameShape("y", "x"),
      [](CallSpec& c) {
        c.args[kY].tensor = TensorOf({1, 3, 12});
      },
      161002, "y must have the shape of x, got y [1, 3, 12] and x [3, 12]");
}

TEST(Rules, SameShapeWithAFormulaForTheAbsentOne) {
  const Rule rule = SameShape("x", "w", "N,12");
  const auto absent = [](CallSpec& c) { c.args[kW].null = true; };
  ExpectFine(rule, absent);
  ExpectBroken(
      rule,
      [&](CallSpec& c) {
        absent(c);
        c.args[kX].tensor = TensorOf({3, 11});
      },
      161002, "x must have the shape of w, or [N,12] when that is null, so [3, 12], got [3, 11]");
}

TEST(Rules, ShapeIs) {
  ExpectFine(ShapeIs("w", "C"));
  ExpectFine(ShapeIs("y", "N,C"));
  ExpectBroken(
      ShapeIs("y", "N,C"),
      [](CallSpec& c) {
        c.args[kY].tensor = TensorOf({3, 13});
      },
      161002, "y must have shape [N,C] = [3, 12], got [3, 13]");
  ExpectBroken(
      ShapeIs("w", "C"),
      [](CallSpec& c) {
        c.args[kW].tensor = TensorOf({12, 1});
      },
      161002, "w must have shape [C] = [12], got [12, 1]");
}

TEST(Rules, NumelIs) {
  ExpectFine(NumelIs("y", "N*C"));
  ExpectBroken(
      NumelIs("y", "N*C"), [](CallSpec& c) { c.args[kY].tensor = TensorOf({35}); }, 161002,
      "y must have N*C = 36 elements, got shape [35] with 35");
}

// 2^32 * 2^32 elements are 0 in 64 bits; an empty y must not pass for them.
TEST(Rules, NumelIsSurvivesOverflow) {
  const int64_t huge = int64_t{1} << 32;
  const auto change = [huge](CallSpec& c) {
    c.args[kX].tensor = TensorOf({huge, huge});
    c.args[kY].tensor = TensorOf({0});
  };
  const Contract contract = Toy({NumelIs("y", "N*C")});
  const CallSpec call = With(change);
  EXPECT_EQ(contract.Check(call.Bind(contract), Product::kAscend950).code(), 161002);
  ExpectBroken(
      NumelIs("y", "1"),
      [huge](CallSpec& c) {
        c.args[kY].tensor = TensorOf({huge, huge});
      },
      161002, "y must have 1 = 1 elements, got shape [4294967296, 4294967296] with too many");
}

TEST(Rules, Length) {
  ExpectFine(Length("mask", 3));
  ExpectFine(Length("axes", 2));
  ExpectBroken(
      Length("mask", 2), [](CallSpec&) {}, 161002, "mask must have 2 entries, got 3");
  ExpectBroken(
      Length("axes", 3), [](CallSpec&) {}, 161002, "axes must have 3 entries, got 2");
}

TEST(Rules, Require) {
  ExpectFine(Require("group", "C % group == 0"));
  ExpectBroken(
      Require("group", "C % group == 0"), [](CallSpec& c) { c.args[kGroup].integer = 5; }, 161002,
      "requires C % group == 0, got C=12 (dim 1 of x) group=5");
  ExpectBroken(
      Require("eps", "eps > 0"), [](CallSpec& c) { c.args[kEps].real = -0.25; }, 161002,
      "requires eps > 0, got eps=-0.25");
  ExpectBroken(
      Require("s", "s >= 0"), [](CallSpec& c) { c.args[kScalar].scalar = Scalar::OfFloat(-2); },
      161002, "requires s >= 0, got s=-2");
  ExpectFine(Require("s", "s >= 0"), [](CallSpec& c) {
    c.args[kScalar].scalar = Scalar::OfFloat(std::numeric_limits<float>::quiet_NaN());
  });
}

TEST(Rules, CustomNamesItsArgument) {
  const CustomCheck check = [](Values values, Product) -> std::string {
    if (values[kGroup].integer > 0) return "";
    return "must be positive, got " + std::to_string(values[kGroup].integer);
  };
  const Rule rule = Custom("group", "must be positive", check);
  ExpectFine(rule);
  ExpectBroken(
      rule, [](CallSpec& c) { c.args[kGroup].integer = -7; }, 161002,
      "group must be positive, got -7");
}

TEST(Rules, CustomIsAskedOfWhatIsAbsentWhereItSaysSo) {
  const CustomCheck check = [](Values values, Product) -> std::string {
    return values[kW].given() ? "" : "must be given with flag, got null";
  };
  const auto absent = [](CallSpec& c) { c.args[kW].null = true; };
  ExpectFine(Custom("w", "must be given with flag", check), absent);
  ExpectFine(Custom("w", "must be given with flag", check).EvenIfAbsent());
  ExpectBroken(Custom("w", "must be given with flag", check).EvenIfAbsent(), absent, 161002, "w must be given with flag, got null");
}

TEST(Rules, CodeReplacesTheDefault) {
  ExpectBroken(
      Rank("x", 0, 1).Code(code::kTiling), [](CallSpec&) {}, 561002,
      "x must have at most 1 dims, got shape [3, 12] with 2");
}

TEST(Rules, IfAFlag) {
  const Rule rule = Require("s", "s >= 0").If("flag");
  const auto negative = [](CallSpec& c) { c.args[kScalar].scalar = Scalar::OfFloat(-1); };
  ExpectBroken(rule, negative, 161002, "requires s >= 0 when flag is true, got s=-1");
  ExpectFine(rule, [&](CallSpec& c) {
    negative(c);
    c.args[kFlag].flag = false;
  });
}

TEST(Rules, IfAMaskBit) {
  const auto broken_y = [](CallSpec& c) { c.args[kY].tensor = TensorOf({1}); };
  ExpectBroken(SameShape("y", "x").If("mask", 2), broken_y, 161002,
               "y must have the shape of x when mask[2] is true, got y [1] and x [3, 12]");
  ExpectFine(SameShape("y", "x").If("mask", 1), broken_y);
  ExpectFine(SameShape("y", "x").If("mask", 3), broken_y);  // beyond its end
  ExpectFine(SameShape("y", "x").If("mask", 2), [&](CallSpec& c) {
    broken_y(c);
    c.args[kMask].null = true;
  });
}

TEST(Rules, AMaskByteOtherThanOneIsTrue) {
  ExpectBroken(
      Rank("y", 0, 1).If("mask", 1), [](CallSpec& c) { c.args[kMask].bools.values[1] = 2; }, 161002,
      "y must have at most 1 dims when mask[1] is true, got shape [3, 12] with 2");
}

TEST(Rules, TheShapeOfATensorThatIsAbsent) {
  ExpectFine(SameShape("y", "w"), [](CallSpec& c) { c.args[kW].null = true; });
}

TEST(Rules, TrailingDims) {
  ExpectFine(Tail("w", "x"), [](CallSpec&) {});
  ExpectBroken(Tail("w", "x"), [](CallSpec& c) { c.args[kW].tensor = TensorOf({3}); }, 161002,
               "w must be the trailing dims of x, got [3] and x [3, 12]");
  ExpectBroken(Tail("w", "x"), [](CallSpec& c) { c.args[kW].tensor = TensorOf({1, 3, 12}); }, 161002,
               "w must be the trailing dims of x, got [1, 3, 12] and x [3, 12]");
  ExpectFine(Tail("axes", "x"), [](CallSpec& c) { c.args[kAxes].ints.values = {3, 12}; });
  ExpectBroken(Tail("axes", "x"), [](CallSpec&) {}, 161002, "axes must be the trailing dims of x, got [0, 1] and x [3, 12]");
  ExpectFine(KeepDims("y", "x", "w"), [](CallSpec& c) { c.args[kY].tensor = TensorOf({3, 1}); });
  ExpectFine(KeepDims("y", "x", "axes"), [](CallSpec& c) { c.args[kY].tensor = TensorOf({1, 1}); });
  ExpectFine(KeepDimsOrEmpty("y", "x", "w"), [](CallSpec& c) { c.args[kY].tensor = TensorOf({0}); });
  ExpectFine(ShapeOf("y", "axes"), [](CallSpec& c) { c.args[kAxes].ints.values = {3, 12}; });
  ExpectBroken(ShapeOf("y", "axes"), [](CallSpec&) {}, 161002, "y must have the shape axes = [0, 1], got [3, 12]");
  ExpectBroken(KeepDims("y", "x", "w"), [](CallSpec&) {}, 161002,
               "y must have the shape of x with 1 for each axis of w, got [3, 12] and x [3, 12]");
}

TEST(Rules, DimsOfZeroAndHalves) {
  ExpectFine(NotEmpty("x"), [](CallSpec&) {});
  ExpectBroken(NotEmpty("x"), [](CallSpec& c) { c.args[kX].tensor = TensorOf({3, 0}); }, 161002,
               "x must have no dim of 0, got shape [3, 0]");
  const auto last = [](CallSpec& c) { c.args[kGroup].integer = -1; };
  ExpectFine(EvenAxis("x", "group"), last);
  ExpectBroken(EvenAxis("x", "group"), [](CallSpec& c) { c.args[kGroup].integer = 0; }, 161002,
               "x must have an even size along group, got shape [3, 12] and group 0");
  ExpectFine(Halved("y", "x", "group"), [&](CallSpec& c) {
    last(c);
    c.args[kY].tensor = TensorOf({3, 6});
  });
  ExpectBroken(Halved("y", "x", "group"), last, 161002,
               "y must have the shape of x with half the size along group = [3, 6], got [3, 12]");
  ExpectFine(EvenAxis("x"));
  ExpectBroken(EvenAxis("x"), [](CallSpec& c) { c.args[kX].tensor = TensorOf({3, 5}); }, 161002,
               "x must have an even last dim, got shape [3, 5]");
  ExpectBroken(Halved("y", "x"), [](CallSpec&) {}, 161002,
               "y must have the shape of x with half the last dim = [3, 6], got [3, 12]");
}

TEST(Rules, AcceptIfEmptyEndsTheChecks) {
  const Contract contract = Toy({AcceptIfEmpty({"x", "y"}), Rank("x", 0, 1)});
  const CallSpec full = Valid();
  EXPECT_EQ(contract.Check(full.Bind(contract), Product::kAscend950).code(), 161002);
  const CallSpec one = With([](CallSpec& c) { c.args[kX].tensor = TensorOf({0, 12}); });
  EXPECT_EQ(contract.Check(one.Bind(contract), Product::kAscend950).code(), 161002);
  const CallSpec both = With([](CallSpec& c) {
    c.args[kX].tensor = TensorOf({0, 12});
    c.args[kY].tensor = TensorOf({0, 12});
  });
  EXPECT_EQ(contract.Check(both.Bind(contract), Product::kAscend950).code(), 0);
}

TEST(Rules, TheFirstBrokenRuleAnswers) {
  const Contract contract =
      Toy({SameShape("y", "x"), Rank("x", 0, 1), Require("group", "group == 1")});
  const CallSpec call = Valid();
  int broken = -1;
  const Status status = contract.Check(call.Bind(contract), Product::kAscend950, &broken);
  EXPECT_EQ(broken, 1);
  EXPECT_EQ(status.message(), "aclnnToy: x must have at most 1 dims, got shape [3, 12] with 2");
}

TEST(Rules, DeadHandlesAnswerBeforeEverything) {
  const Contract contract = Toy({NotNull("x"), NotNull("w")});
  const CallSpec call = With([](CallSpec& c) { c.args[kX].null = true; });
  const BoundCall bound = call.Bind(contract);
  const Values alive = bound;
  std::vector<Value> values(alive.begin(), alive.end());
  values[kMask].state = Value::State::kDead;
  const Status status = contract.Check(values, Product::kAscend950);
  EXPECT_EQ(status.code(), 161002);
  EXPECT_EQ(status.message(),
            "aclnnToy: mask is not a live aclBoolArray: it was destroyed or is no such handle");
}

// The checks in two halves, with the result pointers tested between them, are the whole.
TEST(Rules, NullRulesAtTheHeadAreTheFirstHalf) {
  const Contract contract = Toy({NotNull("x"), NotNull("s"), Rank("x", 0, 1), NotNull("mask")});
  const CallSpec no_scalar = With([](CallSpec& c) { c.args[kScalar].null = true; });
  EXPECT_EQ(contract.CheckNulls(no_scalar.Bind(contract)).code(), 161001);
  EXPECT_EQ(contract.CheckRest(no_scalar.Bind(contract), Product::kAscend950).code(), 161002);
  const CallSpec no_mask = With([](CallSpec& c) { c.args[kMask].null = true; });
  EXPECT_EQ(contract.CheckNulls(no_mask.Bind(contract)).code(), 0);
}

using RulesDeathTest = testing::Test;

TEST(RulesDeathTest, ATableWithAMistakeDoesNotLoad) {
  testing::FLAGS_gtest_death_test_style = "threadsafe";
  EXPECT_DEATH(Toy({NotNull("z")}), "aclnnToy: bad contract table: no argument 'z'");
  EXPECT_DEATH(Toy({Require("group", "C % grp == 0")}), "'C % grp == 0': unknown name 'grp'");
  EXPECT_DEATH(Toy({NotNull("x").If("nothing")}), "no argument 'nothing'");
}

}  // namespace
}  // namespace anyacl::contract
