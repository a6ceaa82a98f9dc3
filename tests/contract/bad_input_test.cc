// SPDX-License-Identifier: Apache-2.0
// Copyright The AnyACL Authors
//
// Nonsense that no table lists: sizes that overflow or are negative, memory that is missing or too
// small, streams that are gone. For every operator alike: a code, a sentence that starts with its name,
// and no byte of the caller's memory changed.
#include <fmt/format.h>
#include <gtest/gtest.h>

#include <cstdint>
#include <limits>
#include <string>
#include <vector>

#include "aclnn/aclnn_base.h"
#include "harness/call.h"
#include "harness/cases.h"
#include "harness/session.h"
#include "operators_with_cases.h"

namespace anyacl {
namespace {

using contract::ArgKind;
using contract::CallSpec;
using harness::Call;

std::string TakeText() {
  const char* const text = aclGetRecentErrMsg();
  return text ? text : "";
}

void SetDims(Tensor* t, const Dims& dims) {
  t->dims = dims;
  t->strides = ContiguousStrides(dims);
  t->storage = dims;
}

// Calls visit(op, spec) with a valid call of every operator; all arguments given, all of its outputs wanted.
template <class Visit>
void ForEachOperator(const char* layout, Visit&& visit) {
  for (const Operator* op : OperatorsWithCases()) {
    const harness::OperatorCases& cases = harness::CasesOf(op->contract.op());
    harness::Attributes defaults("");
    CallSpec spec = cases.make({4, 6}, cases.types[0].dtypes, defaults);
    for (size_t i = 0; i < spec.args.size(); ++i) {
      if (op->contract.args()[i].is_tensor()) harness::SetLayout(layout, &spec.args[i].tensor);
    }
    SCOPED_TRACE(op->contract.op());
    visit(*op, spec);
  }
}

// Calls visit(arg, argument) for every tensor of an operator.
template <class Visit>
void ForEachTensor(const Operator& op, Visit&& visit) {
  for (size_t i = 0; i < op.contract.args().size(); ++i) {
    const contract::Arg& arg = op.contract.args()[i];
    if (!arg.is_tensor()) continue;
    SCOPED_TRACE(arg.name);
    visit(static_cast<int>(i), arg);
  }
}

class BadInputTest : public testing::Test {
 protected:
  void TearDown() override { EXPECT_GT(checked_, 0) << "there was no call to check"; }

  // Phase 1 says no, with a sentence of this operator.
  void ExpectRefused(const Operator& op, const CallSpec& spec, const std::string& what) {
    SCOPED_TRACE(what);
    Call call(op, spec);
    TakeText();
    const int32_t code = call.Plan();
    EXPECT_TRUE(code == 161001 || code == 161002 || code == 561002) << code;
    ExpectSentence(op);
    EXPECT_EQ(call.executor(), nullptr);
    EXPECT_EQ(call.workspace_size(), 0u);
    ++checked_;
  }

  void ExpectSentence(const Operator& op, const std::string& part = "") {
    const std::string text = TakeText();
    EXPECT_NE(text.find(fmt::format("): {}: ", op.contract.op())), std::string::npos) << text;
    EXPECT_NE(text.find(part), std::string::npos) << "wanted: " << part << "\n   got: " << text;
  }

  // Nothing was written: poison in the outputs, inputs as they were.
  void ExpectUntouched(const Call& call) {
    ASSERT_EQ(aclrtSynchronizeDevice(), 0);
    EXPECT_EQ(call.CheckMemory(), "");
    ++checked_;
    for (int arg : call.Outputs()) {
      for (unsigned char byte : call.Elements(arg)) {
        ASSERT_EQ(byte, harness::GuardedMemory::kPoison) << "output " << arg;
      }
    }
  }

  harness::Session session_;
  int64_t checked_ = 0;
};

// ---- sizes ----

TEST_F(BadInputTest, IntegersThatAreNoSizes) {
  constexpr int64_t kMost = std::numeric_limits<int64_t>::max();
  constexpr int64_t kLeast = std::numeric_limits<int64_t>::min();
  ForEachOperator("dense", [&](const Operator& op, const CallSpec& valid) {
    for (size_t i = 0; i < valid.args.size(); ++i) {
      if (op.contract.args()[i].kind != ArgKind::kInt) continue;
      for (int64_t value : {kLeast, kLeast + 1, int64_t{-4}, int64_t{-1}, kMost, kMost - 1}) {
        CallSpec spec = valid;
        spec.args[i].integer = value;
        ExpectRefused(op, spec, fmt::format("{}={}", op.contract.args()[i].name, value));
      }
    }
  });
}

// Products that wrap around to the right number: 2^32 * 2^32 is 0 in 64 bits, and the opposite signs of
// two sizes cancel.
TEST_F(BadInputTest, ProductsThatOverflow) {
  constexpr int64_t kHuge = int64_t{1} << 32;
  ForEachOperator("dense", [&](const Operator& op, const CallSpec& valid) {
    for (size_t i = 0; i < valid.args.size(); ++i) {
      for (size_t j = i + 1; j < valid.args.size(); ++j) {
        const auto is_int = [&](size_t k) { return op.contract.args()[k].kind == ArgKind::kInt; };
        if (!is_int(i) || !is_int(j)) continue;
        for (const int64_t sign : {1, -1}) {
          CallSpec spec = valid;
          const int64_t a = valid.args[i].integer, b = valid.args[j].integer;
          spec.args[i].integer = sign * (a + (sign > 0 ? kHuge : 0));
          spec.args[j].integer = sign * (b + (sign > 0 ? kHuge : 0));
          ExpectRefused(op, spec,
                        fmt::format("{} and {}, sign {}", op.contract.args()[i].name,
                                    op.contract.args()[j].name, sign));
        }
      }
    }
  });
}

// The page of GroupNormBackward says that outputs which are not wanted are not looked at.
TEST_F(BadInputTest, UnwantedOutputsMayBeOfAnySize) {
  const Operator& op = OperatorNamed("aclnnGroupNormBackward");
  const harness::OperatorCases& cases = harness::CasesOf(op.contract.op());
  harness::Attributes attributes("mask=011");
  CallSpec spec = cases.make({4, 6}, cases.types[0].dtypes, attributes);
  Tensor& unwanted = spec.args[op.contract.ArgIndex("gradInput")].tensor;
  unwanted.dims = unwanted.strides = {int64_t{1} << 62, int64_t{1} << 62};
  Call call(op, spec);
  EXPECT_EQ(call.Execute(session_.stream()), 0) << TakeText();
  ++checked_;
}

TEST_F(BadInputTest, TensorsTooLargeForAnyMemory) {
  constexpr int64_t kHuge = int64_t{1} << 40;
  ForEachOperator("dense", [&](const Operator& op, const CallSpec& valid) {
    ForEachTensor(op, [&](int arg, const contract::Arg&) {
      for (const Dims& dims : {Dims{kHuge, kHuge}, Dims{kHuge, kHuge, kHuge, kHuge}}) {
        CallSpec one = valid;
        SetDims(&one.args[arg].tensor, dims);
        ExpectRefused(op, one, "alone " + ToString(dims));
        CallSpec all = valid;  // with all that are like it, so that shapes agree
        for (size_t i = 0; i < all.args.size(); ++i) {
          Tensor& t = all.args[i].tensor;
          const bool like =
              op.contract.args()[i].is_tensor() && t.dims == valid.args[arg].tensor.dims;
          if (like) SetDims(&t, dims);
        }
        ExpectRefused(op, all, "all " + ToString(dims));
      }
    });
  });
}

// Shapes agree, and their elements would even fit, but strides and offset reach beyond 63 bits.
TEST_F(BadInputTest, ViewsThatReachTooFar) {
  ForEachOperator("dense", [&](const Operator& op, const CallSpec& valid) {
    ForEachTensor(op, [&](int arg, const contract::Arg&) {
      CallSpec spec = valid;
      Tensor& t = spec.args[arg].tensor;
      if (t.numel() < 2) return;
      for (int i = 0; i < t.rank(); ++i) t.strides[i] = int64_t{1} << 61;
      ExpectRefused(op, spec, "strides");
      spec = valid;
      spec.args[arg].tensor.offset = std::numeric_limits<int64_t>::max() - 1;
      ExpectRefused(op, spec, "offset");
    });
  });
}

TEST_F(BadInputTest, NegativeDims) {
  ForEachOperator("dense", [&](const Operator& op, const CallSpec& valid) {
    ForEachTensor(op, [&](int arg, const contract::Arg& argument) {
      for (int axis = 0; axis < valid.args[arg].tensor.rank(); ++axis) {
        CallSpec spec = valid;
        spec.args[arg].tensor.dims[axis] *= -1;
        TakeText();
        const Call call(op, spec);
        EXPECT_EQ(call.raw()[arg].handle, nullptr) << "there is no such tensor";
        EXPECT_NE(TakeText().find("must not be negative, got -"), std::string::npos);
        // A null tensor is an absent one where it may be absent.
        if (!argument.optional) ExpectRefused(op, spec, fmt::format("axis {}", axis));
      }
    });
  });
}

// ---- memory ----

TEST_F(BadInputTest, NullDataOfATensorWithElements) {
  ForEachOperator("dense", [&](const Operator& op, const CallSpec& valid) {
    ForEachTensor(op, [&](int arg, const contract::Arg& argument) {
      Call call(op, valid);
      auto* const tensor = static_cast<aclTensor*>(const_cast<void*>(call.raw()[arg].handle));
      ASSERT_EQ(aclSetRawTensorAddr(tensor, nullptr), 0);
      ASSERT_EQ(call.Plan(), 0) << "the address may be set later";
      EXPECT_EQ(call.Run(session_.stream()), 161001);
      ExpectSentence(op,
                     fmt::format("{} has elements but its data pointer is null", argument.name));
      ExpectUntouched(call);
      EXPECT_EQ(call.Run(session_.stream()), 561103) << "a failed run consumes the executor";
      // And once it is set, all is well.
      ASSERT_EQ(call.Plan(), 0);
      ASSERT_EQ(aclSetRawTensorAddr(tensor, call.address(arg)), 0);
      EXPECT_EQ(call.Run(session_.stream()), 0);
      ASSERT_EQ(aclrtSynchronizeStream(session_.stream()), 0);
    });
  });
}

TEST_F(BadInputTest, WorkspaceNullOrTooSmall) {
  ForEachOperator("sliced", [&](const Operator& op, const CallSpec& valid) {
    Call call(op, valid);
    for (const bool null : {true, false}) {
      for (const uint64_t missing : {uint64_t{0}, uint64_t{1}, uint64_t{64}, ~uint64_t{0}}) {
        ASSERT_EQ(call.Plan(), 0);
        const uint64_t planned = call.workspace_size();
        ASSERT_GT(planned, 64u) << "packed views need memory";
        const uint64_t given = missing == ~uint64_t{0} ? 0 : planned - missing;
        if (!null && given == planned) continue;
        const bool is_null_error = null && given > 0;
        SCOPED_TRACE(fmt::format("{} of {} bytes{}", given, planned, null ? ", null" : ""));
        EXPECT_EQ(
            op.entry->run(null ? nullptr : call.workspace(), given, call.executor(), session_.stream()),
            is_null_error ? 161001 : 161002);
        ExpectSentence(op, is_null_error
                               ? "workspace must not be null when workspaceSize is"
                               : fmt::format("workspaceSize must be at least the {} bytes "
                                             "of phase 1, got {}",
                                             planned, given));
        ExpectUntouched(call);
      }
    }
  });
}

// ---- streams ----

TEST_F(BadInputTest, StreamsThatAreGone) {
  ForEachOperator("dense", [&](const Operator& op, const CallSpec& valid) {
    aclrtStream destroyed = nullptr;
    ASSERT_EQ(aclrtCreateStream(&destroyed), 0);
    ASSERT_EQ(aclrtDestroyStream(destroyed), 0);
    int64_t memory[64] = {};
    for (void* stream : {static_cast<void*>(destroyed), static_cast<void*>(memory),
                         reinterpret_cast<void*>(uintptr_t{8})}) {
      Call call(op, valid);
      ASSERT_EQ(call.Plan(), 0);
      EXPECT_EQ(call.Run(stream), 361001);
      ExpectSentence(op);
      ExpectUntouched(call);
    }
  });
}

// The streams of a context, of a device, of the whole library that ended while a plan was waiting.
TEST_F(BadInputTest, StreamOfADeviceThatIsFinalised) {
  ForEachOperator("dense", [&](const Operator& op, const CallSpec& valid) {
    constexpr int32_t kDevice = 0;
    for (const bool finalise : {false, true}) {
      Call call(op, valid);
      aclrtStream stream = nullptr;
      ASSERT_EQ(aclrtCreateStream(&stream), 0);
      ASSERT_EQ(call.Plan(), 0);
      ASSERT_EQ(aclrtResetDeviceForce(kDevice), 0);
      if (finalise) {
        ASSERT_EQ(aclFinalize(), 0);
      }
      EXPECT_EQ(call.Run(stream), 361001) << "a stream dies with its device";
      ExpectSentence(op);
      EXPECT_EQ(call.Run(nullptr), 561103) << "a failed run consumes the executor";
      if (finalise) {
        ASSERT_EQ(aclInit(nullptr), 0);
      }
      ASSERT_EQ(aclrtSetDevice(kDevice), 0);
      ExpectUntouched(call);
    }
  });
}

}  // namespace
}  // namespace anyacl
