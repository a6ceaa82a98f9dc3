// SPDX-License-Identifier: Apache-2.0
// Copyright The AnyACL Authors
//
// Finite differences join every forward operator to its gradient. The forward side is its oracle in long double, which family_test
// compares the operator to. The backward side is an oracle too, or the operator itself where it has none.
#include <fmt/format.h>
#include <gtest/gtest.h>

#include <algorithm>
#include <cmath>
#include <memory>
#include <random>
#include <set>
#include <string>

#include "gradient/pairs.h"
#include "harness/cases.h"
#include "harness/session.h"
#include "ops/operators.h"

namespace anyacl {
namespace {

using harness::Host;
using harness::HostCall;
using harness::Real;
using harness::TestArg;

// Of the names of backward operators.
bool IsGradient(std::string_view op) { return op.ends_with("Backward") || op.ends_with("Grad"); }

const Operator& Named(const char* op) {
  for (const Operator* known : Operators()) {
    if (std::string_view(op) == known->contract.op()) return *known;
  }
  throw std::invalid_argument(fmt::format("no operator {}", op));
}

// Number `i` of a tensor. Few digits, so that FLOAT has them all.
Real OneOf(const TestArg& arg, DType dtype, size_t i, std::mt19937_64& random) {
  const harness::Values& values = arg.values.at(0);
  if (values.kind == harness::Values::kGiven) return values.given.at(i).real();
  if (dtype == DType::kBool) return static_cast<Real>(random() & 1);
  if (values.kind == harness::Values::kWhole) return values.low + static_cast<Real>(random() % static_cast<uint64_t>(values.high - values.low + 1));
  if (IsInteger(dtype)) return static_cast<Real>(random() & 127);
  return std::round((values.low + (values.high - values.low) * static_cast<Real>(random() >> 11) * 0x1p-53L) * 4096) / 4096;
}

// A call of an oracle, with random numbers in its inputs.
struct Side {
  Side(const char* name, const std::vector<TestArg>& args, std::mt19937_64& random) : op(Named(name)), args(args), host(op, spec) {
    EXPECT_EQ(args.size(), op.contract.args().size()) << name;
    for (const TestArg& arg : args) spec.args.push_back(arg.spec);
    host.inputs.resize(args.size());
    host.outputs.resize(args.size());
    for (size_t i = 0; i < args.size(); ++i) {
      const contract::Arg& role = op.contract.args()[i];
      if (!role.is_tensor() || args[i].spec.null) continue;
      const Tensor& t = args[i].spec.tensor;
      Host tensor{t.dtype, t.dims, std::vector<harness::Number>(t.numel())};
      if (role.is_written()) host.outputs[i].push_back(tensor);
      if (!role.is_read()) continue;
      for (size_t k = 0; k < tensor.values.size(); ++k) tensor.values[k] = OneOf(args[i], t.dtype, k, random);
      host.inputs[i].push_back(tensor);
    }
  }
  bool Has(const char* arg) const { return op.contract.ArgIndex(arg) >= 0; }
  Host& Input(const char* arg) { return host.inputs[host.ArgOf(arg)].at(0); }

  void Run() {
    for (auto& list : host.outputs) {
      for (Host& out : list) {
        out.values.assign(Numel(out.dims), 0);
        out.slack.clear();
      }
    }
    harness::FindSubject(op.contract.op())->oracle(host);
  }
  // The operator itself, in FLOAT.
  void RunOperator() {
    harness::Session session;
    harness::TestCall call{args, {}};
    for (size_t i = 0; i < args.size(); ++i) {
      if (!host.inputs[i].empty()) call.args[i].values = {harness::Given(host.inputs[i][0].values)};
      if (call.args[i].spec.tensor.dtype == DType::kF64) call.args[i].spec.tensor.dtype = DType::kF32;
    }
    const harness::RunResult result = harness::RunCall(op, {op.contract.op(), nullptr, nullptr}, call, session.stream(), {.compare = false});
    ASSERT_EQ(result.problem, "");
    size_t k = 0;
    for (auto& list : host.outputs) {
      for (Host& out : list) {
        const auto& bytes = result.outputs.at(k++);
        for (int64_t i = 0; i < out.size(); ++i) out[i] = harness::DecodeNumber(DType::kF32, bytes.data() + i * sizeof(float));
      }
    }
  }

  const Operator& op;
  std::vector<TestArg> args;
  contract::CallSpec spec;
  HostCall host;
};

const char* Linked(const std::vector<Pair::Link>& links, const char* backward) {
  for (const Pair::Link& link : links) {
    if (std::string_view(link.backward) == backward) return link.forward;
  }
  return nullptr;
}

// Those with kernels of their own: their oracles round to FLOAT where the kernels do.
bool IsTuned(std::string_view op) {
  const auto& all = harness::AllCases();
  return std::any_of(all.begin(), all.end(), [&](const harness::OperatorCases* cases) { return op == cases->op; });
}

class Check {
 public:
  explicit Check(const Pair& pair) : pair_(pair), forward_(pair.forward, pair.call, random_) {}

  void Run() {
    forward_.Run();
    std::vector<TestArg> args;
    for (const contract::Arg& arg : Named(pair_.backward).contract.args()) args.push_back(ArgOf(arg));
    Side backward(pair_.backward, args, random_);
    Give(backward);
    const bool exact = harness::FindSubject(pair_.backward) && !IsTuned(pair_.backward);
    exact ? backward.Run() : backward.RunOperator();
    for (const Pair::Link& result : pair_.results) {
      SCOPED_TRACE(result.backward);
      Compare(backward.host.Out(result.backward), forward_.Input(result.forward), exact ? 1e-10L : 1e-5L);
    }
  }

 private:
  const TestArg* Other(const char* arg) const {
    for (const auto& [name, other] : pair_.others) {
      if (std::string_view(name) == arg) return &other;
    }
    return nullptr;
  }

  // What stands in the backward call for one of its arguments; numbers of tensors follow.
  TestArg ArgOf(const contract::Arg& arg) {
    if (const TestArg* other = Other(arg.name)) return *other;
    const char* name = arg.name;
    for (const auto* links : {&pair_.grads, &pair_.results, &pair_.same}) {
      if (const char* linked = Linked(*links, arg.name)) name = linked;
    }
    if (!forward_.Has(name) || forward_.args[forward_.host.ArgOf(name)].spec.null) {
      if (arg.optional) return harness::Null();
      throw std::invalid_argument(fmt::format("{}: nothing is said of {}", pair_.backward, arg.name));
    }
    return forward_.args[forward_.host.ArgOf(name)];
  }

  void Give(Side& backward) {
    const auto args = backward.op.contract.args();
    for (size_t i = 0; i < args.size(); ++i) {
      if (backward.host.inputs[i].empty() || Other(args[i].name)) continue;
      Host& to = backward.host.inputs[i][0];
      if (const char* result = Linked(pair_.grads, args[i].name)) {
        losses_.push_back({result, to});
        continue;
      }
      const char* const linked = Linked(pair_.same, args[i].name);
      const char* const name = linked ? linked : args[i].name;
      const int from = forward_.host.ArgOf(name);
      to.values = (forward_.host.inputs[from].empty() ? forward_.host.outputs[from] : forward_.host.inputs[from]).at(0).values;
    }
  }

  Real Loss() {
    forward_.Run();
    Real loss = 0;
    for (const auto& [result, grad] : losses_) {
      const Host& out = forward_.host.Out(result);
      for (int64_t i = 0; i < grad.size(); ++i) loss += grad.real(i) * out.real(i);
    }
    return loss;
  }

  // Four points: the error is h^4 / 30 times the fifth derivative.
  void Compare(const Host& gradient, Host& at, Real tolerance) {
    constexpr Real kStep = 0x1p-15L;  // DOUBLE has the moved numbers, too
    ASSERT_EQ(gradient.size(), at.size());
    for (int64_t i = 0; i < at.size(); ++i) {
      const harness::Number x = at[i];
      const auto moved = [&](Real by) {
        at[i] = x.real() + by;
        return Loss();
      };
      const Real slope = (8 * (moved(kStep) - moved(-kStep)) - (moved(2 * kStep) - moved(-2 * kStep))) / (12 * kStep);
      at[i] = x;
      EXPECT_NEAR(static_cast<double>(gradient.real(i)), static_cast<double>(slope), static_cast<double>(tolerance * (1 + std::fabs(slope))))
          << "element " << i;
    }
  }

  const Pair& pair_;
  std::mt19937_64 random_{7};
  Side forward_;
  std::vector<std::pair<const char*, Host>> losses_;  // a result of the forward operator, and the gradient that comes in for it
};

TEST(Pairs, EveryGradientIsTheDerivativeOfItsForwardOperator) {
  for (const Pair& pair : GradientPairs()) {
    SCOPED_TRACE(std::string(pair.forward) + ", " + pair.backward);
    Check(pair).Run();
  }
}

// Families whose gradients all have a row.
TEST(Pairs, NoGradientOfTheseFamiliesIsMissing) {
  std::set<std::string_view> known;
  for (const Pair& pair : GradientPairs()) known.insert(pair.backward);
  known.insert("aclnnBatchNormElemtBackward");  // of a chain of operators: gradient_test, examples/sync_batch_norm.cpp
  for (const Operator* op : Operators()) {
    const std::string_view family = op->family;
    const std::string_view name = op->contract.op();
    const bool attention = family == "attention" && name.find("Grad") != name.npos;  // of whatever version
    const bool expected = attention || family == "activation" || family == "norm" || family == "softmax" || family == "gated" || family == "conv" ||
                          family == "resize" || family == "rotary";
    EXPECT_TRUE(!expected || !(attention || IsGradient(name)) || known.count(name)) << name;
  }
}

}  // namespace
}  // namespace anyacl
