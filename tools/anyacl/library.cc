// SPDX-License-Identifier: Apache-2.0
// Copyright The AnyACL Authors
#include "library.h"

#include <fmt/format.h>
#include <strings.h>

#include <algorithm>
#include <map>
#include <sstream>

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

namespace {

// Engines that an operator's calls are made of; its own where none was seen.
std::vector<std::string> EnginesOf(const Operator& op) {
  static const std::map<std::string_view, std::string_view> rows = {
#define ANYACL_ENGINES(op, engines) {#op, engines},
#include "ops/engines.inc"
#undef ANYACL_ENGINES
  };
  const auto row = rows.find(op.contract.op());
  std::vector<std::string> engines;
  std::istringstream words(std::string(row == rows.end() ? "" : row->second));
  for (std::string word; words >> word;) engines.push_back(word);
  if (engines.empty()) engines.push_back(op.contract.table().stem);
  return engines;
}

}  // namespace

std::vector<contract::BackendKernels> KernelsOf(const Operator& op, bool everywhere) {
  std::vector<contract::BackendKernels> result;
  const char* const stem = op.contract.table().stem;
  const std::vector<std::string> engines = EnginesOf(op);
  for (const Backend* backend : Library().backends()) {
    if (everywhere && backend->launches()) continue;
    contract::BackendKernels entry{backend->name(), {}};
    for (const Kernel& kernel : backend->Kernels(stem)) entry.kernels.push_back(kernel.name);
    const bool whole = std::all_of(engines.begin(), engines.end(), [&](const std::string& engine) { return !backend->Kernels(engine.c_str()).empty(); });
    if (whole && !entry.kernels.empty()) result.push_back(std::move(entry));
  }
  const std::span<const char* const> stems = Library().cuda_stems();
  const bool on_gpus = std::all_of(engines.begin(), engines.end(), [&](const std::string& engine) {
    return std::find(stems.begin(), stems.end(), engine) != stems.end();
  });
  if (everywhere && on_gpus) result.push_back({"cuda", {"see src/ops"}});
  return result;
}

}  // namespace anyacl::tool
