// SPDX-License-Identifier: Apache-2.0
// Copyright The AnyACL Authors
#include "library.h"

#include <fmt/format.h>
#include <strings.h>

namespace anyacl::tool {

const Introspection& Library() { return *anyacl_introspection_v1(); }

const Operator& FindOperator(const std::string& name) {
  std::vector<std::string> known;
  for (const Operator* op : Library().operators()) {
    const contract::Table& table = op->contract.table();
    const auto is = [&](const char* other) { return strcasecmp(name.c_str(), other) == 0; };
    if (is(table.op) || is(table.op + sizeof("aclnn") - 1) || is(table.stem)) return *op;
    known.push_back(table.op);
  }
  throw UserError(fmt::format("there is no operator {}; known: {}", name, fmt::join(known, ", ")));
}

std::vector<contract::BackendKernels> KernelsOf(const Operator& op, bool everywhere) {
  std::vector<contract::BackendKernels> result;
  for (const Backend* backend : Library().backends()) {
    if (everywhere && backend->launches()) continue;
    contract::BackendKernels entry{backend->name(), {}};
    for (const Kernel& kernel : backend->Kernels(op.contract.table().stem)) {
      entry.kernels.push_back(kernel.name);
    }
    if (!entry.kernels.empty()) result.push_back(std::move(entry));
  }
  return result;
}

}  // namespace anyacl::tool
