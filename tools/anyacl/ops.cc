// SPDX-License-Identifier: Apache-2.0
// Copyright The AnyACL Authors
#include <fmt/format.h>

#include <algorithm>
#include <cstdio>
#include <filesystem>
#include <fstream>

#include "commands.h"
#include "contract/render.h"
#include "library.h"

namespace anyacl::tool {
namespace {

using contract::Rule;
using contract::RuleKind;

std::vector<std::string> ProductsOf(const contract::Contract& contract) {
  unsigned bits = contract::kAllProducts.bits;
  for (const Rule& rule : contract.rules()) {
    if (rule.kind == RuleKind::kSupported) bits &= rule.products.bits;
  }
  std::vector<std::string> names;
  for (const Product product : kProducts) {
    if (contract::Products{bits}.Has(product)) names.push_back(Name(product));
  }
  return names;
}

// Dtypes of the first argument that has a choice: the ones people ask for.
std::vector<std::string> TypesOf(const contract::Contract& contract) {
  std::vector<std::string> names;
  for (const Rule& rule : contract.rules()) {
    if (rule.kind != RuleKind::kDTypeRows) continue;
    for (const contract::TypeRow& row : rule.rows) {
      const std::string name = Name(row.types[0]);
      if (std::find(names.begin(), names.end(), name) == names.end()) names.push_back(name);
    }
    break;
  }
  return names;
}

std::vector<std::string> BackendsOf(const Operator& op) {
  std::vector<std::string> names;
  for (const contract::BackendKernels& kernels : KernelsOf(op, true)) names.push_back(kernels.backend);
  return names;
}

std::string IndexMarkdown() {
  std::string out =
      "# Operators\n\nWritten by `anyacl ops --markdown --out docs/operators`; do not edit.\n\n"
      "| operator | what it does | dtypes | products | backends |\n|---|---|---|---|---|\n";
  for (const Operator* op : Library().operators()) {
    const contract::Table& table = op->contract.table();
    out += fmt::format("| [{}]({}.md) | {} | {} | {} | {} |\n", table.op, table.stem, table.summary,
                       fmt::join(TypesOf(op->contract), ", "),
                       fmt::join(ProductsOf(op->contract), ", "), fmt::join(BackendsOf(*op), ", "));
  }
  return out;
}

std::string IndexText() {
  std::string out;
  for (const Operator* op : Library().operators()) {
    const contract::Table& table = op->contract.table();
    out += fmt::format("{:<36} {}\n", table.op, table.summary);
  }
  return out + "\nanyacl ops NAME tells all about one.\n";
}

std::string IndexJson() {
  std::vector<std::string> entries;
  for (const Operator* op : Library().operators()) {
    entries.push_back(contract::RenderJson(op->contract, KernelsOf(*op, false)));
  }
  return fmt::format("[\n{}\n]\n", fmt::join(entries, ",\n"));
}

std::string Page(const Operator& op, const OpsOptions& options) {
  const std::vector<contract::BackendKernels> kernels = KernelsOf(op, options.markdown);
  if (options.markdown) return contract::RenderMarkdown(op.contract, kernels);
  if (options.json) return contract::RenderJson(op.contract, kernels) + "\n";
  return contract::RenderText(op.contract, kernels);
}

void WriteFile(const std::filesystem::path& path, const std::string& text) {
  std::ofstream file(path, std::ios::binary);
  file << text;
  file.close();
  if (!file) throw UserError(fmt::format("{} cannot be written", path.string()));
}

void WritePages(const OpsOptions& options) {
  const std::filesystem::path folder = options.out;
  std::error_code failed;
  std::filesystem::create_directories(folder, failed);
  if (failed) throw UserError(fmt::format("{}: {}", options.out, failed.message()));
  for (const Operator* op : Library().operators()) {
    WriteFile(folder / fmt::format("{}.md", op->contract.table().stem), Page(*op, options));
  }
  WriteFile(folder / "README.md", IndexMarkdown());
}

}  // namespace

void Ops(const OpsOptions& options) {
  if (!options.out.empty()) {
    if (!options.name.empty())
      throw UserError("--out writes the pages of all operators: leave out the name");
    return WritePages(options);
  }
  if (!options.name.empty()) {
    fmt::print("{}", Page(FindOperator(options.name), options));
  } else {
    fmt::print("{}", options.markdown ? IndexMarkdown() : options.json ? IndexJson() : IndexText());
  }
}

}  // namespace anyacl::tool
