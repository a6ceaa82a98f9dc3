// SPDX-License-Identifier: Apache-2.0
// Copyright The AnyACL Authors
#ifndef ANYACL_TOOLS_LIBRARY_H_
#define ANYACL_TOOLS_LIBRARY_H_

#include <stdexcept>
#include <string>
#include <string_view>
#include <vector>

#include "abi/introspection.h"
#include "contract/render.h"

namespace anyacl::tool {

// The user asked for something that does not exist: one sentence, status 2.
struct UserError : std::runtime_error {
  using std::runtime_error::runtime_error;
};

// The library this tool was installed with.
const Introspection& Library();

// "elu_backward" for aclnnEluBackward: the name of its page.
std::string PageName(const Operator& op);

// "aclnnEluBackward", "EluBackward" or "elu_backward", in any case. UserError for an unknown name.
const Operator& FindOperator(const std::string& name);
const Operator* FindOperatorOrNull(const std::string& name);

// Names of an operator's kernels, from the tables compiled in. With `everywhere`, what the sources have, whatever was
// built and found: a page must not depend on where it was made.
std::vector<contract::BackendKernels> KernelsOf(const Operator& op, bool everywhere);

}  // namespace anyacl::tool

#endif  // ANYACL_TOOLS_LIBRARY_H_
