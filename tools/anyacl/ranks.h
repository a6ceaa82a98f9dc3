// SPDX-License-Identifier: Apache-2.0
// Copyright The AnyACL Authors
#ifndef ANYACL_TOOLS_RANKS_H_
#define ANYACL_TOOLS_RANKS_H_

#include <string>
#include <vector>

namespace anyacl::tool {

// The program as so many ranks; its status is that of the first that failed.
int RunRanks(const std::vector<std::string>& command, int count);

}  // namespace anyacl::tool

#endif  // ANYACL_TOOLS_RANKS_H_
