// SPDX-License-Identifier: Apache-2.0
// Copyright The AnyACL Authors
//
// Valid calls of every operator with one thing made absurd: dtypes, shapes, formats, numbers, lists, what lies in memory.
// Whatever the answer is, it is a code, and nothing is written beside what the program gave.
#include <fmt/format.h>
#include <gtest/gtest.h>
#include <signal.h>
#include <unistd.h>

#include <algorithm>
#include <chrono>
#include <cstdio>
#include <cstring>
#include <functional>
#include <limits>
#include <string>
#include <vector>

#include "harness/family.h"
#include "harness/loose_call.h"
#include "harness/session.h"
#include "ops/operators.h"
#include "sanitized.h"

namespace anyacl {
namespace {

using contract::ArgKind;
using contract::ArgSpec;
using contract::CallSpec;
using harness::LooseCall;

constexpr unsigned kSecondsPerCall = kSanitized ? 60 : 15;

// --- what is tried, for whoever reads the log of a crash ---

char present[512];

void SayWhere(int number) {
  const auto put = [](const char* text) { (void)!write(STDERR_FILENO, text, std::strlen(text)); };
  put(number == SIGALRM ? "\nno end: " : "\nended by a signal: ");
  put(present);
  put("\n");
  signal(number, SIG_DFL);
  raise(number);
}

void Remember(const std::string& what) { std::snprintf(present, sizeof(present), "%s", what.c_str()); }

// --- changes ---

struct Change {
  std::string text;
  CallSpec call;
};

constexpr int64_t kOddInts[] = {std::numeric_limits<int64_t>::min(), -(int64_t{1} << 31), -17, -2, -1, 0, 1, 2, 3, 7, 100,
                                (int64_t{1} << 31) - 1, int64_t{1} << 31, std::numeric_limits<int64_t>::max()};
constexpr double kOddReals[] = {std::numeric_limits<double>::quiet_NaN(), std::numeric_limits<double>::infinity(),
                                -std::numeric_limits<double>::infinity(), -1, 0, 1e-320, 1.5, 1e300};

class Changes {
 public:
  Changes(const Operator& op, const CallSpec& valid) : op_(op), valid_(valid) {}

  std::vector<Change> All() {
    for (size_t i = 0; i < valid_.args.size(); ++i) {
      const contract::Arg& role = op_.contract.args()[i];
      if (role.is_handle() && !valid_.args[i].null) Put(i, "null", [](ArgSpec& a) { a.null = true; });
      if (valid_.args[i].null) continue;
      switch (role.kind) {
        case ArgKind::kInt:
          for (int64_t n : kOddInts) Put(i, fmt::format("= {}", n), [&](ArgSpec& a) { a.integer = n; });
          break;
        case ArgKind::kReal:
          for (double x : kOddReals) Put(i, fmt::format("= {}", x), [&](ArgSpec& a) { a.real = x; });
          break;
        case ArgKind::kBool:
          Put(i, "turned", [](ArgSpec& a) { a.flag = !a.flag; });
          break;
        case ArgKind::kScalar:
          Scalars(i, [](ArgSpec& a) -> Scalar& { return a.scalar; });
          break;
        case ArgKind::kScalarList:
          if (!valid_.args[i].scalars.empty()) Scalars(i, [](ArgSpec& a) -> Scalar& { return a.scalars.back(); });
          Lengths(i, [](ArgSpec& a) -> auto& { return a.scalars; });
          break;
        case ArgKind::kIntArray:
          Ints(i);
          Lengths(i, [](ArgSpec& a) -> auto& { return a.ints.values; });
          break;
        case ArgKind::kFloatArray:
          Floats(i);
          Lengths(i, [](ArgSpec& a) -> auto& { return a.floats.values; });
          break;
        case ArgKind::kBoolArray:
          Lengths(i, [](ArgSpec& a) -> auto& { return a.bools.values; });
          break;
        case ArgKind::kString:
          for (const char* text : {"", "none", "%s%n", "BNSD"}) Put(i, fmt::format("= {}", text), [&](ArgSpec& a) { a.text = text; });
          break;
        default:
          if (role.is_tensor()) Tensors(i, [](ArgSpec& a) -> Tensor& { return a.tensor; });
          if (role.is_tensor_list() && !valid_.args[i].tensors.empty()) {
            Tensors(i, [](ArgSpec& a) -> Tensor& { return a.tensors.back(); });
          }
          if (role.is_tensor_list()) Lengths(i, [](ArgSpec& a) -> auto& { return a.tensors; });
      }
    }
    return std::move(changes_);
  }

 private:
  template <class Edit>
  void Put(size_t arg, const std::string& text, const Edit& edit) {
    changes_.push_back({fmt::format("{} {}", op_.contract.args()[arg].name, text), valid_});
    edit(changes_.back().call.args[arg]);
  }

  template <class Part>
  void Lengths(size_t arg, const Part& part) {
    Put(arg, "emptied", [&](ArgSpec& a) { part(a).clear(); });
    ArgSpec copy = valid_.args[arg];
    if (part(copy).empty()) return;
    Put(arg, "one shorter", [&](ArgSpec& a) { part(a).pop_back(); });
    for (const size_t more : {1, 9, 300}) {
      Put(arg, fmt::format("{} longer", more), [&](ArgSpec& a) {
        const auto last = part(a).back();
        part(a).insert(part(a).end(), more, last);
      });
    }
  }

  template <class Part>
  void Scalars(size_t arg, const Part& part) {
    for (int number = -1; number <= 42; ++number) {
      Put(arg, fmt::format("of dtype {}", number), [&](ArgSpec& a) { part(a).dtype = static_cast<DType>(number); });
    }
    for (const unsigned char byte : {0x00, 0x7f, 0x80, 0xff}) {
      Put(arg, fmt::format("of bytes {:x}", byte), [&](ArgSpec& a) { std::memset(part(a).bytes, byte, sizeof(part(a).bytes)); });
    }
    for (double x : kOddReals) {
      Put(arg, fmt::format("= {}", x), [&](ArgSpec& a) { part(a) = Scalar::Of(DType::kF64, x); });
    }
    for (int64_t n : kOddInts) {
      Put(arg, fmt::format("= {}", n), [&](ArgSpec& a) { part(a) = Scalar::OfInt(n); });
    }
  }

  void Ints(size_t arg) {
    const size_t count = std::min<size_t>(valid_.args[arg].ints.values.size(), 4);
    for (size_t at = 0; at < count; ++at) {
      for (int64_t n : kOddInts) Put(arg, fmt::format("[{}] = {}", at, n), [&](ArgSpec& a) { a.ints.values[at] = n; });
    }
    for (int64_t n : kOddInts) {
      Put(arg, fmt::format("all = {}", n), [&](ArgSpec& a) { std::fill(a.ints.values.begin(), a.ints.values.end(), n); });
    }
  }

  void Floats(size_t arg) {
    if (valid_.args[arg].floats.values.empty()) return;
    for (double x : kOddReals) {
      Put(arg, fmt::format("[0] = {}", x), [&](ArgSpec& a) { a.floats.values[0] = static_cast<float>(x); });
    }
  }

  template <class Part>
  void Shape(size_t arg, const Part& part, const Dims& dims) {
    Put(arg, "of shape " + ToString(dims), [&](ArgSpec& a) {
      Tensor& t = part(a);
      t.dims = t.storage = dims;
      t.strides = ContiguousStrides(dims);
    });
  }

  template <class Part>
  void Tensors(size_t arg, const Part& part) {
    ArgSpec copy = valid_.args[arg];
    const Tensor& t = part(copy);
    Dims empty = t.dims;
    if (t.rank() > 0) empty[0] = 0;
    for (int number = -1; number <= 42; ++number) {
      const auto retype = [&](ArgSpec& a) { part(a).dtype = static_cast<DType>(number); };
      Put(arg, fmt::format("of dtype {}", number), retype);
      if (t.rank() == 0) continue;
      Put(arg, fmt::format("of dtype {} and shape {}", number, ToString(empty)), [&](ArgSpec& a) {
        retype(a);
        part(a).dims = part(a).storage = empty;
      });
    }
    for (const int format : {-1, 0, 1, 2, 3, 4, 27, 29, 30, 35, 47, 99}) {
      Put(arg, fmt::format("of format {}", format), [&](ArgSpec& a) { part(a).format = static_cast<Format>(format); });
    }
    for (int axis = 0; axis < t.rank(); ++axis) {
      for (const int64_t n : {int64_t{0}, int64_t{1}, t.dims[axis] + 1, int64_t{1} << 40}) {
        Dims dims = t.dims;
        dims[axis] = n;
        Shape(arg, part, dims);
      }
    }
    if (t.rank() > 1) {  // nothing in it, and an axis that is longer than memory
      for (const auto& [gone, endless] : {std::pair(0, t.rank() - 1), std::pair(t.rank() - 1, 0)}) {
        Dims dims = t.dims;
        dims[gone] = 0;
        dims[endless] = int64_t{1} << 40;
        Shape(arg, part, dims);
      }
    }
    Dims longer = t.dims, shorter = t.dims;
    for (const int rank : {t.rank() + 1, 9, kMaxRank}) {
      while (longer.rank() < rank) longer.push_back(1);
      Shape(arg, part, longer);
    }
    while (shorter.rank() > 0) {
      shorter.resize(shorter.rank() - 1);
      Shape(arg, part, shorter);
    }
    Put(arg, "of strides 0", [&](ArgSpec& a) { std::fill_n(&part(a).strides[0], part(a).rank(), 0); });
    Put(arg, "behind an offset", [&](ArgSpec& a) { part(a).offset = 5; });
  }

  const Operator& op_;
  const CallSpec& valid_;
  std::vector<Change> changes_;
};

// --- calls ---

int64_t Elements(const CallSpec& call) {
  int64_t count = 0;
  for (const ArgSpec& arg : call.args) {
    if (!arg.null && arg.tensor.dtype != DType::kUndefined) count += arg.tensor.numel();
    for (const Tensor& t : arg.tensors) count += t.numel();
  }
  return count;
}

CallSpec SpecOf(const harness::TestCall& call) {
  CallSpec spec;
  for (const harness::TestArg& arg : call.args) spec.args.push_back(arg.spec);
  return spec;
}

// Some of a subject's calls that are short: the first, the last and, of long lists, some between.
std::vector<CallSpec> ShortCalls(const Operator& op, const harness::Subject& subject, size_t most) {
  harness::Calls calls(op);
  subject.sample(calls);
  std::vector<CallSpec> all, chosen;
  for (const harness::TestCall& call : calls.all()) {
    CallSpec spec = SpecOf(call);
    if (Elements(spec) <= 1024) all.push_back(std::move(spec));
  }
  const size_t count = std::min(most, all.size());
  for (size_t i = 0; i < count; ++i) chosen.push_back(all[count == 1 ? 0 : i * (all.size() - 1) / (count - 1)]);
  return chosen;
}

class HostileTest : public testing::Test {
 protected:
  void SetUp() override {
    for (int number : {SIGSEGV, SIGBUS, SIGFPE, SIGILL, SIGABRT, SIGALRM}) {
#ifdef ANYACL_SANITIZE_address
      if (number != SIGALRM && number != SIGABRT) continue;  // it says more
#endif
      signal(number, SayWhere);
    }
  }
  void TearDown() override { alarm(0); }

  void Try(const Operator& op, const CallSpec& call, const std::string& change, LooseCall::Fill fill) {
    Remember(fmt::format("{} with {} (memory {})", op.contract.op(), change, static_cast<int>(fill)));
    alarm(kSecondsPerCall);
    LooseCall loose(op, call, fill);
    const int32_t code = loose.Execute(session_.stream());
    ++calls_;
    runs_ += loose.ran();
    if (code != 0 && !aclGetRecentErrMsg()) ADD_FAILURE() << present << ": " << code << " without a text";
    const std::string hit = loose.CheckMemory();
    EXPECT_EQ(hit, "") << present;
  }

  harness::Session session_;
  int64_t calls_ = 0, runs_ = 0;
};

TEST_F(HostileTest, OneThingAbsurd) {
  for (const Operator* op : Operators()) {
    const harness::Subject* const subject = harness::FindSubject(op->contract.op());
    if (!subject) continue;
    for (const CallSpec& valid : ShortCalls(*op, *subject, kSanitized ? 1 : 4)) {
      for (const Change& change : Changes(*op, valid).All()) Try(*op, change.call, change.text, LooseCall::Fill::kSmall);
    }
  }
  EXPECT_GT(runs_, calls_ / 10);
  std::printf("%lld calls, %lld ran\n", static_cast<long long>(calls_), static_cast<long long>(runs_));
}

// Indices, counts and lengths that lie in memory are numbers like any other.
TEST_F(HostileTest, AnythingInMemory) {
  for (const Operator* op : Operators()) {
    const harness::Subject* const subject = harness::FindSubject(op->contract.op());
    if (!subject) continue;
    for (const CallSpec& valid : ShortCalls(*op, *subject, kSanitized ? 6 : 24)) {
      for (const auto fill : {LooseCall::Fill::kZeros, LooseCall::Fill::kSmall, LooseCall::Fill::kOnes, LooseCall::Fill::kRandom}) {
        Try(*op, valid, "nothing", fill);
      }
    }
  }
  EXPECT_GT(runs_, calls_ / 2);
  std::printf("%lld calls, %lld ran\n", static_cast<long long>(calls_), static_cast<long long>(runs_));
}

}  // namespace
}  // namespace anyacl
