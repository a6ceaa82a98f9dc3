// SPDX-License-Identifier: Apache-2.0
// Copyright The AnyACL Authors
//
// Prints the median time of a call, in microseconds, for every row of harness/cases that is for the bench. It takes ten seconds,
// so that two checkouts can take turns on a machine whose speed changes from minute to minute:
//   for i in 1 2 3 4 5; do old/.../case_times > old.$i; new/.../case_times > new.$i; done
#include <fmt/format.h>

#include <algorithm>
#include <chrono>
#include <string_view>
#include <vector>

#include "harness/call.h"
#include "harness/cases.h"
#include "harness/session.h"
#include "ops/operators.h"

namespace anyacl {
namespace {

using Clock = std::chrono::steady_clock;

constexpr int kSamples = 11;
constexpr double kSample = 4000;  // microseconds

double Microseconds(harness::Call& call, int calls, aclrtStream stream) {
  const Clock::time_point start = Clock::now();
  for (int i = 0; i < calls; ++i) harness::Require(call.Run(stream), "run");
  harness::Require(aclrtSynchronizeStream(stream), "synchronise");
  return std::chrono::duration<double, std::micro>(Clock::now() - start).count() / calls;
}

double Median(harness::Call& call, aclrtStream stream) {
  Microseconds(call, 2, stream);
  const int calls = static_cast<int>(std::clamp(kSample / Microseconds(call, 4, stream), 1.0, kSample));
  std::vector<double> times;
  for (int i = 0; i < kSamples; ++i) times.push_back(Microseconds(call, calls, stream));
  std::nth_element(times.begin(), times.begin() + kSamples / 2, times.end());
  return times[kSamples / 2];
}

void PrintOperator(const Operator& op, const harness::OperatorCases& cases, aclrtStream stream) {
  for (const harness::Case& row : cases.cases) {
    for (const harness::TypeChoice& types : cases.types) {
      if (!row.Has("bench") || !types.bench) continue;
      harness::Call call(op, harness::MakeCall(op.contract, cases, row, types), {.guards = false});
      harness::Require(call.PlanRepeatable(), "plan");
      fmt::print("{}|{}|{}|{:.3f}\n", op.contract.op(), row.name, types.label, Median(call, stream));
    }
  }
}

void Main() {
  const harness::Session session;
  for (const Operator* op : Operators()) {
    for (const harness::OperatorCases* cases : harness::AllCases()) {
      if (cases->op == std::string_view(op->contract.op())) PrintOperator(*op, *cases, session.stream());
    }
  }
}

}  // namespace
}  // namespace anyacl

int main() { anyacl::Main(); }
