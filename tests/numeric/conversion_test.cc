// SPDX-License-Identifier: Apache-2.0
// Copyright The AnyACL Authors
//
// Results stored in another dtype: rounded to the dtype of the computation first, then converted.
// So the bits follow from those of the same call with an output of the input's dtype, with no
// tolerance at all.
#include <fmt/format.h>
#include <gtest/gtest.h>

#include <cmath>
#include <cstring>
#include <stdexcept>
#include <string>
#include <vector>

#include "harness/call.h"
#include "harness/cases.h"
#include "harness/data.h"
#include "harness/session.h"
#include "operators_with_cases.h"

namespace anyacl {
namespace {

using harness::Call;
using harness::Case;
using harness::Data;
using harness::TypeChoice;

// The operators with this rule; the others round once.
const Operator* const kRoundTwice[] = {&OperatorNamed("aclnnEluBackward")};

const TypeChoice& SameTypes(const harness::OperatorCases& cases, DType input) {
  for (const TypeChoice& types : cases.types) {
    if (types.dtypes.front() == input && types.dtypes.back() == input) return types;
  }
  throw std::out_of_range("no equal dtypes");
}

std::vector<unsigned char> ResultOf(const Operator& op, const harness::OperatorCases& cases,
                                    const Case& row, const TypeChoice& types, Data data,
                                    aclrtStream stream) {
  Call call(op, harness::MakeCall(op.contract, cases, row, types), {.data = data});
  EXPECT_EQ(call.Execute(stream), 0);
  return call.Elements(call.Outputs()[0]);
}

// The first element that is not the converted one, or nothing.
std::string FirstDifference(DType in, DType out, const std::vector<unsigned char>& same,
                            const std::vector<unsigned char>& converted) {
  const std::vector<double> values = harness::Decode(in, same);
  if (converted.size() != values.size() * SizeOf(out)) return "another number of elements";
  for (size_t i = 0; i < values.size(); ++i) {
    const unsigned char* const got = converted.data() + i * SizeOf(out);
    unsigned char wanted[16] = {};
    harness::Encode(out, values[i], wanted);
    if (std::isnan(values[i]) && std::isnan(harness::Decode(out, got))) continue;
    if (std::memcmp(wanted, got, SizeOf(out)) == 0) continue;
    return fmt::format("element {}: {} became {}", i, values[i], harness::Decode(out, got));
  }
  return "";
}

TEST(Conversion, ResultsAreRoundedToTheInputTypeFirst) {
  const harness::Session session;
  for (const Operator* op : kRoundTwice) {
    const harness::OperatorCases& cases = harness::CasesOf(op->contract.op());
    for (const Case& row : cases.cases) {
      if (!row.Has("small") || row.Has("alias")) continue;
      for (const TypeChoice& types : cases.types) {
        const DType in = types.dtypes.front();
        const DType out = types.dtypes.back();
        if (in == out) continue;
        for (Data data : {Data::kRandom, Data::kSmall, Data::kHostile}) {
          const auto same = ResultOf(*op, cases, row, SameTypes(cases, in), data, session.stream());
          const auto converted = ResultOf(*op, cases, row, types, data, session.stream());
          EXPECT_EQ(FirstDifference(in, out, same, converted), "")
              << op->contract.op() << " \"" << row.name << "\" " << types.label << " "
              << harness::Name(data);
        }
      }
    }
  }
}

}  // namespace
}  // namespace anyacl
