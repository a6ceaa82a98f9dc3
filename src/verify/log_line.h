// SPDX-License-Identifier: Apache-2.0
// Copyright The AnyACL Authors
//
// A line of the log of ANYACL_VERIFY: one call, or the sum of all calls of an operator.
//   [ANYACL] verify: ok aclnnExp; error 0.51 ulp at out[3, 1]; 0.34 of the bound; call self FLOAT[4, 2], out FLOAT[4, 2]; at t.py:7
//   [ANYACL] verify: WRONG aclnnExp; error 8e+06 ulp at out[0, 0]; 3.4e+06 of the bound; wrong 1 of 8 elements, out[0, 0]: expected
//   1, got 2; call ...
//   [ANYACL] verify: unchecked aclnnExp; too large; call ...
#ifndef ANYACL_REPORT_LINE_H_
#define ANYACL_REPORT_LINE_H_

#include <string>
#include <string_view>

namespace anyacl::verify {

inline constexpr std::string_view kLogPrefix = "[ANYACL] verify: ";

enum class Outcome { kOk, kWrong, kUnchecked };

struct LogLine {
  Outcome outcome = Outcome::kOk;
  std::string op;
  // Of calls that were checked: the largest error, in ulps of the output, and the largest share of what is allowed.
  double ulps = 0;
  std::string where =
      {};  // the element with the largest error: "out[3, 1]"; said if that is more than 0
  double of_bound = 0;
  std::string reason = {};   // why it was not checked
  std::string wrong = {};    // what is wrong
  std::string appears = {};  // "NaN at out[0]": what no input has
  std::string call = {};     // dtypes and dims
  std::string caller = {};   // "train.py:12"
};

std::string ToText(const LogLine& line);  // without an end of line
// False for lines of others, and for summaries.
bool Parse(std::string_view text, LogLine* line);

}  // namespace anyacl::verify

#endif  // ANYACL_REPORT_LINE_H_
