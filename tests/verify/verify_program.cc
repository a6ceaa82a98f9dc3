// SPDX-License-Identifier: Apache-2.0
// Copyright The AnyACL Authors
//
// A program that ANYACL_VERIFY looks at: calls of a few operators, among them views, an operation in place, lists, a result that
// is NaN for good reasons and an operator without a reference.
//
//   verify_program [NAME VALUE]   VALUE (a number, or nan) is written into the last element of the first output of every run of
//                                 NAME, as if its kernel had a mistake
#include <algorithm>
#include <cstdlib>
#include <string>

#include "harness/family.h"
#include "harness/session.h"
#include "ops/operators.h"
#include "watch/watch.h"

namespace anyacl {
namespace {

class Mistake : public watch::Watcher {
 public:
  Mistake(const char* op, double value) : op_(op), value_(value) {}

  void After(const watch::OperatorRun& run, const Launch&, void*) override {
    if (run.name != op_) return;
    for (const watch::TensorUse& use : run.tensors) {
      if (!use.is_written || use.tensor.empty()) continue;
      Extent extent;
      GetExtent(use.tensor, &extent);
      auto* const memory = static_cast<unsigned char*>(use.tensor.data);
      return harness::EncodeNumber(use.tensor.dtype, value_,
                                   memory + (extent.end - 1) * SizeOf(use.tensor.dtype));
    }
  }

 private:
  const std::string op_;
  const double value_;
};

const Operator& Find(std::string_view name) {
  for (const Operator* op : Operators()) {
    if (name == op->contract.op()) return *op;
  }
  std::abort();
}

void RunSamples(const char* name, void* stream) {
  const Operator& op = Find(name);
  const harness::Subject& subject = *harness::FindSubject(name);
  harness::Calls calls(op);
  subject.sample(calls);
  for (const harness::TestCall& call :
       calls.all().first(std::min<size_t>(calls.all().size(), 20))) {
    for (const char* layout : {"dense", "sliced", "transposed"}) {
      RunCall(op, subject, call, stream, {.layout = layout, .compare = false});
    }
  }
}

void RunLogOfNegative(void* stream) {
  const Operator& op = Find("aclnnLog");
  harness::Calls calls(op);
  const harness::TestCall& call = calls.Add(
      {harness::In(DType::kF32, {3}, harness::Given({1, -1, 2})), harness::Out(DType::kF32, {3})});
  RunCall(op, *harness::FindSubject("aclnnLog"), call, stream, {.compare = false});
}

// INT4 has no numbers that a reference could take.
void RunWithoutReference(void* stream) {
  const char* const name = "aclnnWeightQuantBatchMatmulV2";
  const Operator& op = Find(name);
  const harness::Subject& subject = *harness::FindSubject(name);
  harness::Calls calls(op);
  subject.sample(calls);
  for (const harness::TestCall& call : calls.all()) {
    if (call.args[1].spec.tensor.dtype != DType::kI4) continue;
    RunCall(op, subject, call, stream, {.compare = false});
    return;
  }
}

}  // namespace
}  // namespace anyacl

int main(int argc, char** argv) {
  using namespace anyacl;  // NOLINT
  if (argc == 3) watch::Add(*new Mistake(argv[1], std::strtod(argv[2], nullptr)));
  const harness::Session session;
  for (const char* name :
       {"aclnnAdd", "aclnnInplaceMul", "aclnnSum", "aclnnMm", "aclnnForeachExp", "aclnnArgMax"}) {
    RunSamples(name, session.stream());
  }
  RunLogOfNegative(session.stream());
  RunWithoutReference(session.stream());
  return 0;
}
