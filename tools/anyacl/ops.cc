// SPDX-License-Identifier: Apache-2.0
// Copyright The AnyACL Authors
#include <fmt/format.h>
#include <string.h>

#include <algorithm>
#include <cstdio>
#include <filesystem>
#include <fstream>
#include <map>

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

std::string NamesOf(contract::Products products) {
  std::vector<std::string> names;
  for (const Product product : kProducts) {
    if (products.Has(product)) names.push_back(Name(product));
  }
  return fmt::format("{}", fmt::join(names, ", "));
}

// The dtypes of every argument that has a choice, or of several together, and where they are not the same on all products, on which.
std::string TypeRowsMarkdown(const contract::Contract& contract) {
  std::string out;
  for (const Rule& rule : contract.rules()) {
    if (rule.kind != RuleKind::kDTypeRows) continue;
    std::map<unsigned, std::vector<std::string>> by_products;
    for (const contract::TypeRow& row : rule.rows) {
      std::vector<std::string> types;
      for (const DType t : row.types) types.push_back(Name(t));
      by_products[row.products.bits].push_back(fmt::format("{}", fmt::join(types, "/")));
    }
    std::vector<std::string> parts;
    for (const auto& [bits, types] : by_products) {
      const bool everywhere = bits == contract::kAllProducts.bits;
      parts.push_back(fmt::format("{}{}", fmt::join(types, ", "), everywhere ? "" : " (" + NamesOf({bits}) + ")"));
    }
    out += fmt::format("- {}: {}\n", fmt::join(rule.args, "/"), fmt::join(parts, "; "));
  }
  return out;
}

std::vector<std::string> BackendsOf(const Operator& op) {
  std::vector<std::string> names;
  for (const contract::BackendKernels& kernels : KernelsOf(op, true)) names.push_back(kernels.backend);
  return names;
}

std::map<std::string, std::vector<const Operator*>> Families() {
  std::map<std::string, std::vector<const Operator*>> families;
  for (const Operator* op : Library().operators()) families[op->family].push_back(op);
  return families;
}

// How many operators of a family take each dtype in some argument, on one backend.
std::string MatrixRow(const std::string& family, const std::string& backend, const std::vector<const Operator*>& operators,
                      const std::vector<DType>& types) {
  std::map<DType, int> counts;
  int all = 0;
  for (const Operator* op : operators) {
    const std::vector<std::string> backends = BackendsOf(*op);
    if (std::find(backends.begin(), backends.end(), backend) == backends.end()) continue;
    ++all;
    DTypeSet set;
    for (const Rule& rule : op->contract.rules()) {
      for (const contract::TypeRow& row : rule.rows) {
        for (DType t : row.types) set.Add(t);
      }
    }
    for (DType t : set.List()) ++counts[t];
  }
  if (all == 0) return "";
  std::string row = fmt::format("| [{0}]({0}.md) | {1} | {2} |", family, backend, all);
  for (DType t : types) row += counts.count(t) ? fmt::format(" {} |", counts[t]) : "  |";
  return row + "\n";
}

std::string IndexMarkdown() {
  const std::vector<DType> types = {DType::kF32, DType::kF16, DType::kBF16, DType::kF64, DType::kI64, DType::kI32,
                                    DType::kI16, DType::kI8,  DType::kU8,   DType::kBool, DType::kC64};
  std::string out = fmt::format(
      "# Operators\n\nWritten by `anyacl ops --markdown --out docs/operators`; do not edit. {} operators; `anyacl ops NAME` tells all "
      "about one.\n\nHow many operators of a family take a dtype in some argument:\n\n| family | backend | operators |",
      Library().operators().size());
  for (DType t : types) out += fmt::format(" {} |", Name(t));
  out += "\n|---|---|---|";
  for (size_t i = 0; i < types.size(); ++i) out += "---|";
  out += "\n";
  for (const auto& [family, operators] : Families()) {
    for (const char* backend : {"cpu", "cuda"}) out += MatrixRow(family, backend, operators, types);
  }
  return out;
}

std::string FamilyMarkdown(const std::string& family, const std::vector<const Operator*>& operators) {
  std::string out = fmt::format(
      "# {}\n\nWritten by `anyacl ops --markdown --out docs/operators`; do not edit. `anyacl ops NAME` lists the arguments, "
      "every check with its code, and the kernels.\n\n| operator | what it does | dtypes | products | backends |\n|---|---|---|---|---|\n",
      family);
  for (const Operator* op : operators) {
    out += fmt::format("| {} | {} | {} | {} | {} |\n", op->contract.op(), op->contract.table().summary,
                       fmt::join(TypesOf(op->contract), ", "), fmt::join(ProductsOf(op->contract), ", "), fmt::join(BackendsOf(*op), ", "));
  }
  for (const Operator* op : operators) {
    const contract::Table& table = op->contract.table();
    const std::string types = TypeRowsMarkdown(op->contract);
    if (table.formulas.empty() && table.notes.empty() && types.empty()) continue;
    out += fmt::format("\n## {}\n\n", table.op);
    if (!table.formulas.empty()) out += fmt::format("```\n{}\n```\n", fmt::join(table.formulas, "\n"));
    if (!table.formulas.empty() && !(table.notes.empty() && types.empty())) out += "\n";
    out += types;
    for (const std::string& note : table.notes) out += fmt::format("- {}\n", note);
  }
  return out;
}

// By family; of those whose name or summary has `word` in it, if one is given.
std::string IndexText(const std::string& word) {
  std::string out;
  for (const auto& [family, operators] : Families()) {
    std::string lines;
    for (const Operator* op : operators) {
      const contract::Table& table = op->contract.table();
      if (!word.empty() && !strcasestr(table.op, word.c_str()) && !strcasestr(table.summary, word.c_str())) continue;
      lines += fmt::format("  {:<40} {}\n", table.op, table.summary);
    }
    if (!lines.empty()) out += fmt::format("{}\n{}\n", family, lines);
  }
  return out + "anyacl ops NAME tells all about one.\n";
}

std::string IndexJson() {
  std::vector<std::string> entries;
  for (const Operator* op : Library().operators()) {
    entries.push_back(contract::RenderJson(op->contract, op->entry->header, KernelsOf(*op, false)));
  }
  return fmt::format("[\n{}\n]\n", fmt::join(entries, ",\n"));
}

std::string Page(const Operator& op, const OpsOptions& options) {
  const std::vector<contract::BackendKernels> kernels = KernelsOf(op, options.markdown);
  if (options.markdown) return contract::RenderMarkdown(op.contract, op.entry->header, kernels);
  if (options.json) return contract::RenderJson(op.contract, op.entry->header, kernels) + "\n";
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
  for (const auto& [family, operators] : Families()) WriteFile(folder / (family + ".md"), FamilyMarkdown(family, operators));
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
    const Operator* const op = FindOperatorOrNull(options.name);
    const std::string listed = op || options.markdown || options.json ? "" : IndexText(options.name);
    if (listed.find("aclnn") != std::string::npos) return fmt::print("{}", listed);
    fmt::print("{}", Page(op ? *op : FindOperator(options.name), options));
  } else {
    fmt::print("{}", options.markdown ? IndexMarkdown() : options.json ? IndexJson() : IndexText(""));
  }
}

}  // namespace anyacl::tool
