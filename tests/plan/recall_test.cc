// SPDX-License-Identifier: Apache-2.0
// Copyright The AnyACL Authors
//
// A plan that is remembered is the plan that would be made. Every thread has a memory of its own, so
// a new thread tells what phase 1 finds without one.
#include "plan/recall.h"

#include <fmt/format.h>
#include <gtest/gtest.h>

#include <cstring>
#include <string>
#include <thread>
#include <utility>
#include <vector>

#include "elu_call.h"
#include "harness/call.h"
#include "harness/session.h"
#include "thread_end.h"
#include "operators_with_cases.h"
#include "runtime/submit.h"

namespace anyacl {
namespace {

constexpr Product kProduct = Product::kAscend950;

// Everything of an executor but its life, as text.
std::string Describe(const aclOpExecutor* handle) {
  const Executor& e = *Executors().Get(handle);
  const Plan& p = *e.plan;
  const auto bytes = [](const void* from, size_t size) {
    return std::string(static_cast<const char*>(from), size);
  };
  std::string text = fmt::format("{} {} {}", p.op->contract.op(), p.workspace_bytes, p.cost_bytes);
  for (const Plan::Step& step : p.steps) {
    text += fmt::format("\n{} ", step.kernel->name) + bytes(step.params.get(), step.params_size);
    for (const Plan::Pointer& pointer : step.pointers) {
      text += fmt::format(" {}={}+{} {} {}", pointer.member, pointer.tensor, pointer.offset, pointer.bytes, pointer.group);
    }
  }
  text += fmt::format("\n{} {}", p.packs.size(), p.unpacks.size());
  for (size_t i = 0; i < p.tensors.size(); ++i) {
    const TensorFacts& t = p.tensors[i];
    text += fmt::format("\n{}[{}] {} {} {} {} {} {} {}", t.name, t.item, t.arg, t.in_list, t.given, t.is_read,
                        t.is_written, t.needs_memory, t.alignment);
    text += fmt::format(" {} {}", e.tensors[i].handle, e.tensors[i].address);
  }
  return text;
}

std::string PlanOf(harness::Call& call) {
  if (const int32_t code = call.Plan(); code != 0) return std::to_string(code);
  return Describe(call.executor());
}

// A call that is planned again and again, and hardly ever run.
struct PlannedCall : EluCall {
  using EluCall::EluCall;
  ~PlannedCall() { Drop(); }
  aclnnStatus TryPlan() {
    Drop();
    return EluCall::TryPlan();
  }
  aclOpExecutor* Plan() {
    Drop();
    return EluCall::Plan();
  }
  // Fails when it was run.
  void Drop() {
    if (executor) aclDestroyAclOpExecutor(std::exchange(executor, nullptr));
  }
};

template <class F>
void InNewThread(F&& f) {
  std::thread thread([&] {
    ASSERT_EQ(aclrtSetDevice(0), 0);
    f();
  });
  thread.join();
}

void ExpectOnePlan(const Operator& op, const harness::OperatorCases& cases,
                   const harness::Case& row, const harness::TypeChoice& types) {
  harness::Call call(op, MakeCall(op.contract, cases, row, types), {.guards = false});
  const std::string first = PlanOf(call);
  const std::string again = PlanOf(call);
  std::string alone;
  InNewThread([&] { alone = PlanOf(call); });
  EXPECT_TRUE(first == alone && again == alone)
      << op.contract.op() << ' ' << row.name << ' ' << types.label;
}

TEST(RecallTest, EveryCaseGetsThePlanOfANewThread) {
  const harness::Session session;
  for (const Operator* op : OperatorsWithCases()) {
    const harness::OperatorCases& cases = harness::CasesOf(op->contract.op());
    for (const harness::Case& row : cases.cases) {
      if (row.Has("large")) continue;
      for (const harness::TypeChoice& types : cases.types) ExpectOnePlan(*op, cases, row, types);
    }
  }
}

// The values of a call whose tensors lie one behind the other, from `base` on.
contract::BoundCall Laid(const Operator& op, contract::CallSpec* spec, uintptr_t base,
                                  uintptr_t step) {
  for (contract::ArgSpec& arg : spec->args) {
    arg.tensor.data = reinterpret_cast<void*>(base);
    base += step;
  }
  return spec->Bind(op.contract);
}

// As phase 1 does.
void PlanOnce(const Operator& op, contract::Values values) {
  const Backend& backend = runtime::CurrentBackend();
  auto* const plan = new Plan;
  const PlanRef owner(plan);
  PlanBuilder builder(op, values, backend, plan);
  ASSERT_TRUE(op.plan(values, builder).ok());
  Remember({op, values, backend, kProduct}, owner);
}

bool IsKnown(const Operator& op, contract::Values values) {
  return Recall({op, values, runtime::CurrentBackend(), kProduct}) != nullptr;
}

// Every call that differs from this one in one place.
std::vector<contract::CallSpec> Neighbours(const contract::CallSpec& call) {
  std::vector<contract::CallSpec> result;
  for (size_t i = 0; i < call.args.size(); ++i) {
    const auto add = [&](auto&& change) {
      contract::CallSpec changed = call;
      change(changed.args[i]);
      result.push_back(std::move(changed));
    };
    using Arg = contract::ArgSpec;
    add([](Arg& arg) { arg.null = !arg.null; });
    add([](Arg& arg) { arg.flag = !arg.flag; });
    add([](Arg& arg) { ++arg.integer; });
    add([](Arg& arg) { arg.real += 1e-9; });
    add([](Arg& arg) { arg.tensor.dtype = DType::kI8; });
    add([](Arg& arg) { arg.tensor.format = Format::kNC1HWC0; });
    add([](Arg& arg) { ++arg.tensor.offset; });
    add([](Arg& arg) { arg.tensor.dims.push_back(1), arg.tensor.strides.push_back(1); });
    add([](Arg& arg) { arg.scalar.dtype = DType::kI8; });
    add([](Arg& arg) { arg.scalar.bytes[3] ^= 1; });
    add([](Arg& arg) { arg.bools.values.push_back(0); });
    add([](Arg& arg) { arg.ints.values.push_back(0); });
    for (int axis = 0; axis < call.args[i].tensor.rank(); ++axis) {
      add([axis](Arg& arg) { ++arg.tensor.dims[axis]; });
      add([axis](Arg& arg) { ++arg.tensor.strides[axis]; });
    }
    for (size_t bit = 0; bit < call.args[i].bools.values.size(); ++bit) {
      add([bit](Arg& arg) { arg.bools.values[bit] ^= 1; });
    }
    for (size_t k = 0; k < call.args[i].ints.values.size(); ++k) {
      add([k](Arg& arg) { ++arg.ints.values[k]; });
    }
  }
  return result;
}

// A neighbour may change what the kind of the argument does not look at; then it is the same call.
bool IsSameCall(const Operator& op, const contract::CallSpec& a, const contract::CallSpec& b) {
  using contract::ArgKind;
  for (size_t i = 0; i < a.args.size(); ++i) {
    const contract::ArgSpec& x = a.args[i];
    const contract::ArgSpec& y = b.args[i];
    const contract::Arg& arg = op.contract.args()[i];
    if (x.null != y.null) return false;
    if (x.null) continue;
    const Tensor& t = x.tensor;
    const Tensor& u = y.tensor;
    if (arg.is_tensor() && !(t.dtype == u.dtype && t.format == u.format && t.offset == u.offset &&
                             t.dims == u.dims && t.strides == u.strides)) {
      return false;
    }
    if (arg.kind == ArgKind::kScalar && (x.scalar.dtype != y.scalar.dtype ||
                                         std::memcmp(x.scalar.bytes, y.scalar.bytes, 16) != 0)) {
      return false;
    }
    if (arg.kind == ArgKind::kBoolArray && x.bools.values != y.bools.values) return false;
    if (arg.kind == ArgKind::kIntArray && x.ints.values != y.ints.values) return false;
    if (arg.kind == ArgKind::kInt && x.integer != y.integer) return false;
    if (arg.kind == ArgKind::kReal && x.real != y.real) return false;
    if (arg.kind == ArgKind::kBool && x.flag != y.flag) return false;
  }
  return true;
}

TEST(RecallTest, NoChangeGoesUnseen) {
  const harness::Session session;
  for (const Operator* op : OperatorsWithCases()) {
    const harness::OperatorCases& cases = harness::CasesOf(op->contract.op());
    contract::CallSpec known = MakeCall(op->contract, cases, cases.cases[0], cases.types[0]).spec;
    const Backend& backend = runtime::CurrentBackend();
    const auto values = Laid(*op, &known, uintptr_t{1} << 40, uintptr_t{1} << 40);
    PlanOnce(*op, values);
    ASSERT_TRUE(IsKnown(*op, values)) << op->contract.op();
    int changed = 0;
    for (contract::CallSpec& other : Neighbours(known)) {
      const bool same = IsSameCall(*op, known, other);
      changed += !same;
      EXPECT_EQ(IsKnown(*op, other.Bind(op->contract)), same) << op->contract.op();
    }
    EXPECT_GT(changed, 20);
    for (const Product product : {Product::kA2, Product::kTraining}) {
      EXPECT_EQ(Recall({*op, values, backend, product}), nullptr);
    }
  }
}

// Types are numbers of the caller's, negative and large ones too: they must not run into one another.
TEST(RecallTest, StrangeTypesAreSeen) {
  const harness::Session session;
  const auto words_of = [](DType dtype, Format format, bool null) {
    const Operator& op = OperatorNamed("aclnnEluBackward");
    const harness::OperatorCases& cases = harness::CasesOf(op.contract.op());
    contract::CallSpec call =
        harness::MakeCall(op.contract, cases, cases.cases[0], cases.types[0]).spec;
    call.args[0].tensor.dtype = dtype;
    call.args[0].tensor.format = format;
    call.args[0].null = null;
    const auto values = call.Bind(op.contract);
    return CallDescription(op, values, runtime::CurrentBackend(), kProduct).Words();
  };
  const std::vector<uint64_t> plain = words_of(DType::kF32, Format::kND, false);
  EXPECT_EQ(plain, words_of(DType::kF32, Format::kND, false));
  EXPECT_NE(plain, words_of(static_cast<DType>(0x20000), Format::kNCHW, false));
  const std::vector<uint64_t> none = words_of(DType::kF32, Format::kND, true);
  for (const int dtype : {-1, -2, 0x10000, 0x7ffffff0}) {
    for (const int format : {-1, 0, 0x10000}) {
      const auto words = words_of(static_cast<DType>(dtype), static_cast<Format>(format), false);
      EXPECT_EQ(words.size(), plain.size());
      EXPECT_NE(words, plain) << dtype << ' ' << format;
      EXPECT_NE(words, words_of(static_cast<DType>(dtype + 1), static_cast<Format>(format), false));
      EXPECT_LT(none.size(), words.size());
    }
  }
}

TEST(RecallTest, OutputsThatMeetAnotherTensorArePlannedAnew) {
  const harness::Session session;
  const Operator& op = OperatorNamed("aclnnEluBackward");
  const harness::OperatorCases& cases = harness::CasesOf(op.contract.op());
  contract::CallSpec spec =
      harness::MakeCall(op.contract, cases, cases.cases[4], cases.types[0]).spec;
  const auto values = Laid(op, &spec, 1 << 20, 1 << 30);
  PlanOnce(op, values);
  EXPECT_TRUE(IsKnown(op, values));
  EXPECT_TRUE(IsKnown(op, Laid(op, &spec, 1 << 24, 1 << 29))) << "other memory, apart too";
  EXPECT_FALSE(IsKnown(op, Laid(op, &spec, 1 << 24, 0))) << "all in one place";
  EXPECT_FALSE(IsKnown(op, Laid(op, &spec, 1 << 24, 64))) << "half over one another";
}

// The result is packed, because it is written over elements that are read later.
TEST(RecallTest, ResultOverPartOfAnInputIsRightAfterOneApart) {
  const harness::Session session;
  constexpr int64_t kCount = 100;
  PlannedCall call(kCount);
  for (int i = 0; i < 2; ++i) {
    call.Plan();
    ASSERT_EQ(call.Run(session.stream()), 0) << TakeText();
  }
  ASSERT_EQ(aclrtSynchronizeStream(session.stream()), 0);
  EXPECT_EQ(call.Wrong(), 0);

  std::vector<float> counting(kCount + 1);
  for (size_t i = 0; i < counting.size(); ++i) counting[i] = static_cast<float>(i);
  DeviceFloats shared(counting);
  aclDestroyTensor(call.grad_output);
  aclDestroyTensor(call.grad_input);
  call.grad_output = DenseTensor(call.dims, shared.data());
  call.grad_input = DenseTensor(call.dims, shared.data() + 1);
  call.Plan();
  EXPECT_GT(call.size, 0u);
  ASSERT_EQ(call.Run(session.stream()), 0) << TakeText();
  ASSERT_EQ(aclrtSynchronizeStream(session.stream()), 0);
  const std::vector<float> result = shared.Read();
  for (int64_t i = 0; i < kCount; ++i) ASSERT_EQ(result[i + 1], 2.0f * static_cast<float>(i));
}

// The handles are those of the last call, but not what they stand for.
TEST(RecallTest, TensorsThatWereMadeAnewOrMovedAreSeen) {
  const harness::Session session;
  PlannedCall call(100);
  for (int i = 0; i < 3; ++i) call.Plan();
  EXPECT_EQ(call.size, 0u);

  ASSERT_EQ(aclSetRawTensorAddr(call.grad_input, call.dy.data() + 1), 0);
  call.Plan();
  EXPECT_GT(call.size, 0u) << "the result lies over elements that are read later, and is packed";
  ASSERT_EQ(aclSetRawTensorAddr(call.grad_input, call.dx.data()), 0);
  call.Plan();
  EXPECT_EQ(call.size, 0u);

  const auto make_anew = [&](int64_t rows, int64_t step) {
    const int64_t dims[] = {rows, 1};
    const int64_t strides[] = {step, step};
    ASSERT_EQ(aclInitTensor(call.grad_input, dims, 2, ACL_FLOAT, strides, 0, ACL_FORMAT_ND, dims, 2,
                            call.dx.data()),
              0);
  };
  make_anew(100, 2);
  call.Plan();
  EXPECT_GT(call.size, 0u) << "the result has gaps, and is packed";
  make_anew(99, 1);
  EXPECT_EQ(call.TryPlan(), 161002) << "the result has another shape";
  make_anew(100, 1);
  call.Plan();
  EXPECT_EQ(call.size, 0u);
}

TEST(RecallTest, KnownCallsStillRefuseNullAndDeadHandles) {
  const harness::Session session;
  PlannedCall call(8);
  for (int i = 0; i < 2; ++i) {
    call.Plan();
    ASSERT_EQ(call.Run(session.stream()), 0);
  }
  EXPECT_EQ(
      aclnnEluBackwardGetWorkspaceSize(call.grad_output, call.alpha, call.scale, call.alpha, true,
                                       call.self, call.grad_input, nullptr, &call.executor),
      161001);
  EXPECT_EQ(aclnnEluBackwardGetWorkspaceSize(call.grad_output, call.alpha, call.scale, call.alpha,
                                             true, call.self, call.grad_input, &call.size, nullptr),
            161001);
  EXPECT_EQ(
      aclnnEluBackwardGetWorkspaceSize(call.grad_output, nullptr, call.scale, call.alpha, true,
                                       call.self, call.grad_input, &call.size, &call.executor),
      161001);
  aclDestroyTensor(call.self);
  EXPECT_NE(call.TryPlan(), 0);
  call.self = DenseTensor(call.dims, nullptr);
  call.Plan();
  EXPECT_EQ(call.Run(session.stream()), 161001) << "no memory";
}

TEST(RecallTest, AForcedKernelIsObeyed) {
  const harness::Session session;
  PlannedCall call(8);
  call.Plan();
  const std::string before = Describe(call.executor);
  ForceKernel("no such kernel");
  EXPECT_EQ(call.TryPlan(), 561003) << TakeText();
  ForceKernel("");
  call.Plan();
  EXPECT_EQ(Describe(call.executor), before);
}

// At the end of a thread, when its memory is gone already.
TEST(RecallTest, CallsAtTheEndOfAThreadWork) {
  const harness::Session session;
  PlannedCall call(8);
  int32_t code = -1;
  InNewThread([&] {
    call.Plan();
    AtThreadEnd([&] { code = call.TryPlan(); });
  });
  EXPECT_EQ(code, 0) << TakeText();
}

}  // namespace
}  // namespace anyacl
