// SPDX-License-Identifier: Apache-2.0
// Copyright The AnyACL Authors
//
// The harness itself: rows that are right, numbers that come back, guards that see.
#include <fmt/format.h>
#include <gtest/gtest.h>

#include <cmath>
#include <set>
#include <vector>

#include "harness/call.h"
#include "harness/cases.h"
#include "harness/session.h"
#include "operators_with_cases.h"

namespace anyacl::harness {
namespace {

// Tests that run per family leave none out.
TEST(Cases, EveryFamilyIsKnownToTheBuild) {
  std::set<std::string> families;
  for (const Operator* op : OperatorsWithCases()) families.insert(op->family);
  EXPECT_EQ(fmt::format("{}", fmt::join(families, " ")), ANYACL_FAMILIES_WITH_CASES);
}

TEST(Cases, EveryListHasAllSorts) {
  for (size_t i = 0; i < AllCases().size(); ++i) {
    int bench = 0, tiny = 0, strided = 0;
    for (const Case& row : AllCases()[i]->cases) {
      bench += row.Has("bench");
      tiny += row.Has("tiny");
      strided += row.Has("strided");
    }
    EXPECT_TRUE(bench && tiny && strided) << AllCases()[i]->op;
  }
}

TEST(Cases, EveryRowIsAValidCallUnderEveryChoiceOfTypes) {
  for (const Operator* op : OperatorsWithCases()) {
    const OperatorCases& cases = CasesOf(op->contract.op());
    std::set<std::string> names;
    for (const Case& row : cases.cases) {
      EXPECT_TRUE(names.insert(row.name).second) << row.name << " is there twice";
      for (const TypeChoice& types : cases.types) {
        const CaseCall call = MakeCall(op->contract, cases, row, types);
        const Status status = op->contract.Check(call.spec.Bind(op->contract), Product::kAscend950);
        EXPECT_TRUE(status.ok()) << row.name << " " << types.label << ": " << status.message();
      }
    }
  }
}

TEST(Cases, TypingErrorsAreFound) {
  const Operator& op = OperatorNamed("aclnnEluBackward");
  const OperatorCases& cases = EluBackwardCases();
  EXPECT_THROW(MakeCall(op.contract, cases, {"x", "4", "alhpa=1", ""}, cases.types[0]),
               std::invalid_argument);
  EXPECT_THROW(MakeCall(op.contract, cases, {"x", "4", "alpha", ""}, cases.types[0]),
               std::invalid_argument);
  EXPECT_THROW(MakeCall(op.contract, cases, {"x", "4", "alpha=1y", ""}, cases.types[0]),
               std::invalid_argument);
  EXPECT_THROW(MakeCall(op.contract, cases, {"x", "4", "layout=odd", ""}, cases.types[0]),
               std::invalid_argument);
  EXPECT_THROW(CasesOf("aclnnNothing"), std::out_of_range);
}

TEST(Cases, LayoutsAreWhatTheySay) {
  Tensor t = DenseTensor(DType::kF32, {2, 3, 4}).tensor;
  SetLayout("transposed", &t);
  EXPECT_EQ(t.strides, (Dims{1, 2, 6}));
  SetLayout("channels", &t);
  EXPECT_EQ(t.strides, (Dims{12, 1, 3}));
  SetLayout("sliced", &t);
  EXPECT_EQ(t.strides, (Dims{60, 12, 2}));
  SetLayout("expanded", &t);
  EXPECT_EQ(t.strides, (Dims{0, 4, 1}));
  EXPECT_EQ(t.storage, (Dims{12}));
  SetLayout("offset", &t);
  EXPECT_EQ(t.offset, 3);
  EXPECT_EQ(ElementOffsets(t).back(), 26);
}

TEST(Data, NumbersSurviveTheirDtype) {
  for (const DType dtype : {DType::kF32, DType::kF16, DType::kBF16, DType::kF64, DType::kC64,
                            DType::kC128, DType::kI8, DType::kI32, DType::kI64}) {
    const std::vector<double> values = {0, 1, -2, 5, 100};
    EXPECT_EQ(Decode(dtype, Encode(dtype, values)), values) << anyacl::Name(dtype);
  }
  EXPECT_EQ(Decode(DType::kU8, Encode(DType::kU8, std::vector<double>{-3, 300, NAN})),
            (std::vector<double>{0, 255, 0}));
  EXPECT_THROW(Encode(DType::kString, std::vector<double>{1}), std::invalid_argument);
}

TEST(Data, KindsKeepTheirPromises) {
  bool nan = false, infinite = false;
  for (uint64_t i = 0; i < 10000; ++i) {
    const double exact = Generate(Data::kExact, 1, i);
    EXPECT_EQ(exact * 4, std::round(exact * 4));
    EXPECT_LE(std::fabs(exact), 2);
    const double random = Generate(Data::kRandom, 1, i);
    EXPECT_TRUE(random != 0 && std::fabs(random) < 2);
    EXPECT_LE(std::fabs(Generate(Data::kOffset, 1, i) - 1e4), 1);
    EXPECT_LE(std::fabs(Generate(Data::kSmall, 1, i)), 1);
    const double hostile = Generate(Data::kHostile, 1, i);
    nan = nan || std::isnan(hostile);
    infinite = infinite || std::isinf(hostile);
  }
  EXPECT_TRUE(nan && infinite);
}

class CallTest : public testing::Test {
 protected:
  CaseCall Spec(const char* dims, const char* attributes, const char* type = "FLOAT") {
    const OperatorCases& cases = EluBackwardCases();
    for (const TypeChoice& types : cases.types) {
      if (types.label == type)
        return MakeCall(op_.contract, cases, {"x", dims, attributes, ""}, types);
    }
    throw std::out_of_range(type);
  }

  Session session_;
  const Operator& op_ = OperatorNamed("aclnnEluBackward");
};

TEST_F(CallTest, WorkedExample) {
  Call call(op_, Spec("2x2", "isResult=1"));
  const std::vector<double> x = {-2, -1, 0, 1};
  call.SetInput(0, x);
  call.SetInput(5, x);
  ASSERT_EQ(call.Execute(session_.stream()), 0) << aclGetRecentErrMsg();
  EXPECT_EQ(call.Values(6), (std::vector<double>{2, 0, 0, 1}));
  EXPECT_EQ(call.CheckMemory(), "");
}

TEST_F(CallTest, EveryLayoutGivesTheSameNumbers) {
  std::vector<double> dense;
  for (const char* layout : {"dense", "offset", "sliced", "transposed", "channels"}) {
    Call call(op_, Spec("3x4x5", ("layout=" + std::string(layout)).c_str()));
    ASSERT_EQ(call.Execute(session_.stream()), 0) << aclGetRecentErrMsg();
    EXPECT_EQ(call.CheckMemory(), "") << layout;
    if (dense.empty()) dense = call.Values(6);
    EXPECT_EQ(call.Values(6), dense) << layout;
    EXPECT_EQ(call.Values(0), call.Operand(0)) << layout;
  }
}

TEST_F(CallTest, InPlaceKeepsTheOperands) {
  Call apart(op_, Spec("100", "isResult=1"));
  Call together(op_, Spec("100", "isResult=1 gradInput.is=gradOutput"));
  ASSERT_EQ(apart.Execute(session_.stream()), 0);
  ASSERT_EQ(together.Execute(session_.stream()), 0);
  EXPECT_EQ(apart.Operand(0), together.Operand(0));
  EXPECT_EQ(apart.Values(6), together.Values(6));
  EXPECT_EQ(together.Values(0), together.Values(6));
  EXPECT_EQ(together.CheckMemory(), "");
}

TEST_F(CallTest, ExpandedOperandsAreWhatTheMemoryHolds) {
  Call call(op_, Spec("4x3", "gradOutput.layout=expanded"));
  EXPECT_EQ(call.Values(0), call.Operand(0));
  EXPECT_EQ(call.Operand(0)[0], call.Operand(0)[9]);
}

TEST_F(CallTest, GuardsSeeEveryStrayByte) {
  Call call(op_, Spec("3x5", "layout=sliced"));
  unsigned char* const output = call.address(6);
  const auto copy = [](void* to, const void* from) {
    ASSERT_EQ(aclrtMemcpy(to, 1, from, 1, ACL_MEMCPY_DEFAULT), 0);
  };
  std::vector<unsigned char*> strays = {output, call.address(0)};  // a gap, an input's gap
#ifndef ANYACL_SANITIZE_address  // it sees whoever writes before a tensor, also this test
  strays.push_back(output - 1);
#endif
  for (unsigned char* stray : strays) {
    unsigned char before = 0;
    copy(&before, stray);
    const unsigned char other = before ^ 1;
    copy(stray, &other);
    EXPECT_NE(call.CheckMemory(), "");
    copy(stray, &before);
    EXPECT_EQ(call.CheckMemory(), "");
  }
}

TEST_F(CallTest, RunsAgain) {
  Call call(op_, Spec("1000", ""));
  ASSERT_EQ(call.PlanRepeatable(), 0);
  ASSERT_EQ(call.Run(session_.stream()), 0);
  ASSERT_EQ(aclrtSynchronizeStream(session_.stream()), 0);
  const std::vector<unsigned char> first = call.Elements(6);
  call.Refill();
  EXPECT_NE(call.Elements(6), first);
  ASSERT_EQ(call.Run(session_.stream()), 0);
  ASSERT_EQ(aclrtSynchronizeStream(session_.stream()), 0);
  EXPECT_EQ(call.Elements(6), first);
}

TEST_F(CallTest, AbsurdTensorsHaveNoMemory) {
  CaseCall spec = Spec("4", "");
  for (int arg : {0, 5, 6}) spec.spec.args[arg] = DenseTensor(DType::kF32, {int64_t{1} << 40});
  Call call(op_, spec);
  EXPECT_EQ(call.Execute(session_.stream()), 161001) << "phase 2 has no address to work on";
}

TEST_F(CallTest, ShiftedMemory) {
  Call call(op_, Spec("33", "", "FLOAT16"), {.shift = 2});
  EXPECT_EQ(reinterpret_cast<uintptr_t>(call.address(0)) % 4, 2u);
  ASSERT_EQ(call.Execute(session_.stream()), 0);
  EXPECT_EQ(call.CheckMemory(), "");
}

}  // namespace
}  // namespace anyacl::harness
