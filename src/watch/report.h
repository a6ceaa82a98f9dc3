// SPDX-License-Identifier: Apache-2.0
// Copyright The AnyACL Authors
//
// Where the tools write to: standard error, or the file that ANYACL_REPORT names.
#ifndef ANYACL_WATCH_REPORT_H_
#define ANYACL_WATCH_REPORT_H_

#include <string>
#include <string_view>

namespace anyacl::watch {

// "[ANYACL] <tool>: <sentence>" and the lines of `details` below it; the same sentence of the same tool only once,
// of leaks with the same lines.
void Report(std::string_view tool, const std::string& sentence,
            const std::string& details) noexcept;

}  // namespace anyacl::watch

#endif  // ANYACL_WATCH_REPORT_H_
