// SPDX-License-Identifier: Apache-2.0
// Copyright The AnyACL Authors
//
// Prints a hash of every output of every row of harness/cases, with every kind of numbers. Built in two checkouts and
// compared, it says whether a change kept the bits:
//   diff <(old/build/release/bin/case_bits) <(build/release/bin/case_bits)
#include <fmt/format.h>

#include <cstdint>
#include <stdexcept>

#include "harness/call.h"
#include "harness/cases.h"
#include "harness/session.h"
#include "ops/operators.h"

namespace anyacl {
namespace {

uint64_t Fnv(const std::vector<unsigned char>& bytes) {
  uint64_t hash = 14695981039346656037u;
  for (unsigned char byte : bytes) hash = (hash ^ byte) * 1099511628211u;
  return hash;
}

void PrintRow(const Operator& op, const harness::OperatorCases& cases, const harness::TypeChoice& types,
              const harness::Case& row, aclrtStream stream) {
  for (harness::Data data : harness::kAllData) {
    harness::Call call(op, harness::MakeCall(op.contract, cases, row, types), {.data = data});
    const int32_t status = call.Execute(stream);
    fmt::print("{} {} {} {} {}", op.contract.op(), types.label, row.name, Name(data), status);
    for (int arg : call.Outputs()) {
      if (!call.spec().args[arg].null) fmt::print(" {:016x}", Fnv(call.Elements(arg)));
    }
    fmt::print("\n");
  }
}

void PrintOperator(const Operator& op, const harness::OperatorCases& cases, aclrtStream stream) {
  for (const harness::TypeChoice& types : cases.types) {
    for (const harness::Case& row : cases.cases) {
      if (!row.Has("slow") && !row.Has("large")) PrintRow(op, cases, types, row, stream);
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
