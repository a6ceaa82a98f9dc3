// SPDX-License-Identifier: Apache-2.0
// Copyright The AnyACL Authors
//
// Where the lines of ANYACL_VERIFY go, and their sums.
#ifndef ANYACL_REPORT_H_
#define ANYACL_REPORT_H_

#include <string>

#include "verify/log_line.h"

namespace anyacl::verify {

// To ANYACL_REPORT, or to standard error. Counts it, too.
void Write(const LogLine& line);
// One line for each operator so far, those with mistakes first, and one for all.
void WriteSummary();

}  // namespace anyacl::verify

#endif  // ANYACL_REPORT_H_
