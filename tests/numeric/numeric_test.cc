// SPDX-License-Identifier: Apache-2.0
// Copyright The AnyACL Authors
//
// Every operator x case x dtypes x numbers x kernel x SIMD target against the reference in double,
// through the C border, with guard cells around every buffer. One run alone:
//   numeric_test --only='aclnnEluBackward|sliced|FLOAT16|hostile|vector|AVX2'
// Fewer and shorter cases, for tools that slow everything down, as compute-sanitizer does:
//   numeric_test --brief
// One family of operators alone:
//   numeric_test --family=norm
#include <fmt/format.h>
#include <gtest/gtest.h>

#include <cmath>
#include <set>
#include <string>
#include <vector>

#include "core/codes.h"
#include "cpu/targets.h"
#include "harness/call.h"
#include "harness/cases.h"
#include "harness/data.h"
#include "harness/session.h"
#include "numeric/references.h"
#include "operators_with_cases.h"
#include "plan/plan.h"
#include "run_tests.h"
#include "runtime/submit.h"
#include "sanitized.h"

namespace anyacl::numeric {
namespace {

using harness::Call;
using harness::Case;
using harness::Data;
using harness::TypeChoice;

std::string only;  // of the command line; empty: everything
bool brief = kSanitized;

// Long tensors say something about blocks and threads, short ones about everything else; not all
// pairs pay.
bool IsWorthIt(const Case& row, const TypeChoice& types, Data data) {
  if (row.Has("large") && !row.Has("slow")) return false;  // for the bench
  if (brief && Numel(row.ParsedDims()) > 100'000) return false;
  if (brief && data != Data::kRandom && data != Data::kHostile) return false;
  if (row.Has("small")) return true;
  return types.bench && data == Data::kRandom;
}

// How bad a mismatch is, for the report.
double Excess(double got, const Expected& e) {
  if (e.exact || !std::isfinite(got) || !std::isfinite(e.low) || !std::isfinite(e.high))
    return HUGE_VAL;
  return (std::fabs(got - e.low) + std::fabs(got - e.high)) / (e.high - e.low + 0x1p-149);
}

std::string Wanted(const Expected& e) {
  if (e.exact) return fmt::format("expected exactly {:.9g}", e.low);
  return fmt::format("expected {:.9g} to {:.9g} (tolerance {:.3g}){}", e.low, e.high, e.Tolerance(),
                     e.nan ? " or NaN" : "");
}

std::string IndexText(int64_t flat, const Dims& dims) {
  Dims index = dims;
  for (int axis = dims.rank() - 1; axis >= 0; --axis) {
    index[axis] = flat % dims[axis];
    flat /= dims[axis];
  }
  return ToString(index);
}

struct Report {
  int64_t wrong = 0;
  std::string worst;
};

Report Compare(const Call& call, int arg, const std::vector<Expected>& expected) {
  const Tensor& t = call.spec().args[arg].tensor;
  const std::vector<double> got = call.Values(arg);
  Report report;
  double worst = -1;
  for (size_t i = 0; i < expected.size(); ++i) {
    if (Matches(got[i], expected[i])) continue;
    ++report.wrong;
    if (Excess(got[i], expected[i]) <= worst) continue;
    worst = Excess(got[i], expected[i]);
    report.worst =
        fmt::format("{}{}: {}, got {:.9g}", call.op().contract.args()[arg].name,
                    IndexText(static_cast<int64_t>(i), t.dims), Wanted(expected[i]), got[i]);
  }
  return report;
}

// Complex results have nothing in their second half.
bool ImaginaryPartsAreZero(const Call& call, int arg) {
  const DType dtype = call.spec().args[arg].tensor.dtype;
  if (!IsComplex(dtype)) return true;
  const std::vector<unsigned char> bytes = call.Elements(arg);
  const size_t size = SizeOf(dtype);
  for (size_t i = 0; i < bytes.size(); ++i) {
    if (i % size >= size / 2 && bytes[i] != 0) return false;
  }
  return true;
}

// Whether there is anything that a kernel reads.
bool HasWork(const Call& call) {
  return call.spec().args[0].tensor.numel() > 0 && !call.Outputs().empty();
}

class NumericTest : public testing::Test {
 protected:
  void TearDown() override {
    ForceKernel("");
    cpu::ForceTarget("");
  }

  void CheckOnce(Call& call, const std::string& key,
                 const std::vector<std::vector<Expected>>& expected) {
    ++checked_;
    call.Refill();
    ASSERT_EQ(call.Execute(session_.stream()), 0) << key << ": " << aclGetRecentErrMsg();
    const std::vector<int> outputs = call.Outputs();
    ASSERT_EQ(outputs.size(), expected.size());
    for (size_t i = 0; i < outputs.size(); ++i) {
      const Report report = Compare(call, outputs[i], expected[i]);
      EXPECT_EQ(report.wrong, 0) << key << "\n  worst: " << report.worst
                                 << "\n  again: numeric_test --only='" << key << "'";
      EXPECT_TRUE(ImaginaryPartsAreZero(call, outputs[i])) << key;
    }
    EXPECT_EQ(call.CheckMemory(), "") << key;
  }

  // What is forced takes the call.
  static bool Fits(Call& call) {
    const int32_t status = call.Plan();
    call.DropExecutor();
    return status != code::kNoKernel;
  }

  // A GPU has no targets; its kernels may decline a call, but not the one that is chosen and not the last one.
  void CheckOnGpu(Call& call, const std::string& key,
                  const std::vector<std::vector<Expected>>& expected) {
    const auto kernels = runtime::CurrentBackend().Kernels(call.op().contract.table().stem);
    ASSERT_FALSE(kernels.empty()) << key << ": no kernels";
    const auto check = [&](const char* name, bool must_fit) {
      ForceKernel(name);
      const std::string full = fmt::format("{}|{}|gpu", key, name);
      if (!only.empty() && full != only) return false;
      if (!must_fit && !Fits(call)) return false;
      CheckOnce(call, full, expected);
      return true;
    };
    check("", true);
    for (const Kernel& kernel : kernels) {
      if (check(kernel.name, &kernel == &kernels.back())) seen_.insert(&kernel);
    }
  }

  // The reference kernel is plain code: one target is enough for it, and no long tensors.
  void CheckKernels(Call& call, const std::string& key, bool all_targets) {
    const auto expected = ReferenceOf(call.op().contract.op())(call);
    if (runtime::CurrentBackend().launches()) return CheckOnGpu(call, key, expected);
    for (const Kernel& kernel :
         runtime::CurrentBackend().Kernels(call.op().contract.table().stem)) {
      ForceKernel(kernel.name);
      if (call.Plan() == code::kNoKernel) continue;  // made for other shapes
      seen_.insert(&kernel);
      const bool is_plain = std::string_view(kernel.name) == "reference";
      if (is_plain && !all_targets) continue;
      for (const std::string& target : cpu::UsableTargets()) {
        const std::string full = fmt::format("{}|{}|{}", key, kernel.name, target);
        if (!only.empty() && full != only) continue;
        ASSERT_TRUE(cpu::ForceTarget(target));
        cpu::TargetRecorder recorder;
        CheckOnce(call, full, expected);
        if (!is_plain && HasWork(call)) {
          EXPECT_EQ(recorder.last(), target) << full << " ran on another target";
        }
        if (is_plain || !all_targets) break;
      }
    }
  }

  void CheckCase(const Operator& op, const harness::OperatorCases& cases, const Case& row,
                 const TypeChoice& types) {
    for (Data data : harness::kAllData) {
      if (!IsWorthIt(row, types, data)) continue;
      const std::string key =
          fmt::format("{}|{}|{}|{}", op.contract.op(), row.name, types.label, harness::Name(data));
      if (!only.empty() && only.rfind(key + "|", 0) != 0) continue;
      Call call(op, harness::MakeCall(op.contract, cases, row, types), {.data = data});
      CheckKernels(call, key, !row.Has("slow"));
    }
  }

  void ExpectEveryKernelSeen() {
    for (const Operator* op : OperatorsWithCases()) {
      for (const Kernel& kernel : runtime::CurrentBackend().Kernels(op->contract.table().stem)) {
        EXPECT_TRUE(seen_.count(&kernel)) << op->contract.op() << ": no case fits " << kernel.name;
      }
    }
  }

  harness::Session session_;
  int64_t checked_ = 0;
  std::set<const Kernel*> seen_;
};

TEST_F(NumericTest, EveryResultIsCloseToTheReference) {
  for (const Operator* op : OperatorsWithCases()) {
    const harness::OperatorCases& cases = harness::CasesOf(op->contract.op());
    for (const Case& row : cases.cases) {
      for (const TypeChoice& types : cases.types) CheckCase(*op, cases, row, types);
      if (HasFailure()) break;  // the first bad case is what to look at
    }
  }
  EXPECT_GT(checked_, 0) << "no run is called " << only;
  if (only.empty() && !HasFailure()) ExpectEveryKernelSeen();
  RecordProperty("runs", std::to_string(checked_));
}

}  // namespace
}  // namespace anyacl::numeric

int main(int argc, char** argv) {
  testing::InitGoogleTest(&argc, argv);
  const std::string flag = "--only=";
  for (int i = 1; i < argc; ++i) {
    if (std::string(argv[i]).rfind(flag, 0) == 0) anyacl::numeric::only = argv[i] + flag.size();
    if (std::string(argv[i]) == "--brief") anyacl::numeric::brief = true;
  }
  anyacl::TakeArguments(argc, argv);
  return anyacl::RunTests();
}
