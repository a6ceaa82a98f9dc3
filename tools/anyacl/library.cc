// SPDX-License-Identifier: Apache-2.0
// Copyright The AnyACL Authors
#include "library.h"

#include <fmt/format.h>
#include <strings.h>

namespace anyacl::tool {

namespace {
constexpr std::string_view kPrefix = "aclnn";
}

const Introspection& Library() { return *anyacl_introspection_v1(); }

std::string PageName(const Operator& op) {
  std::string name;
  for (const char* c = op.contract.op() + kPrefix.size(); *c; ++c) {
    const bool upper = *c >= 'A' && *c <= 'Z';
    if (upper && !name.empty()) name += '_';
    name += static_cast<char>(upper ? *c - 'A' + 'a' : *c);
  }
  return name;
}

const Operator* FindOperatorOrNull(const std::string& name) {
  for (const Operator* op : Library().operators()) {
    const auto is = [&](const char* other) { return strcasecmp(name.c_str(), other) == 0; };
    if (is(op->contract.op()) || is(op->contract.op() + kPrefix.size()) || is(PageName(*op).c_str())) return op;
  }
  return nullptr;
}

const Operator& FindOperator(const std::string& name) {
  if (const Operator* const op = FindOperatorOrNull(name)) return *op;
  throw UserError(fmt::format("there is no operator {}; `anyacl ops` lists them", name));
}

std::vector<contract::BackendKernels> KernelsOf(const Operator& op, bool everywhere) {
  std::vector<contract::BackendKernels> result;
  const char* const stem = op.contract.table().stem;
  for (const Backend* backend : Library().backends()) {
    if (everywhere && backend->launches()) continue;
    contract::BackendKernels entry{backend->name(), {}};
    for (const Kernel& kernel : backend->Kernels(stem)) entry.kernels.push_back(kernel.name);
    if (!entry.kernels.empty()) result.push_back(std::move(entry));
  }
  for (const char* known : Library().cuda_stems()) {
    if (everywhere && std::string_view(known) == stem) result.push_back({"cuda", {"see src/ops"}});
  }
  return result;
}

}  // namespace anyacl::tool
