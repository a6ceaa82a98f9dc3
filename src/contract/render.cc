// SPDX-License-Identifier: Apache-2.0
// Copyright The AnyACL Authors
#include "contract/render.h"

#include <fmt/format.h>

#include <algorithm>
#include <nlohmann/json.hpp>

namespace anyacl::contract {
namespace {

const char* RoleOf(ArgKind kind) {
  switch (kind) {
    case ArgKind::kInput:
      return "input tensor";
    case ArgKind::kOutput:
      return "output tensor";
    case ArgKind::kInOut:
      return "input and output tensor";
    case ArgKind::kInputList:
      return "list of input tensors";
    case ArgKind::kOutputList:
      return "list of output tensors";
    case ArgKind::kInOutList:
      return "list of input and output tensors";
    case ArgKind::kScalar:
      return "scalar";
    case ArgKind::kScalarList:
      return "list of scalars";
    case ArgKind::kString:
      return "string";
    case ArgKind::kFloatArray:
      return "float array";
    case ArgKind::kInt:
      return "int64";
    case ArgKind::kReal:
      return "double";
    case ArgKind::kBool:
      return "bool";
    case ArgKind::kBoolArray:
      return "bool array";
    case ArgKind::kIntArray:
      return "int array";
  }
  return "";
}

// One line of the list of checks. Products with the same words share a line.
struct Check {
  std::string text;
  int32_t code;
};

std::vector<Check> ChecksOf(const Contract& contract) {
  std::vector<Check> checks;
  for (const Rule& rule : contract.rules()) {
    std::string text;
    if (rule.kind == RuleKind::kSupported) {
      std::vector<std::string> names;
      for (Product p : kProducts) {
        if (rule.products.Has(p)) names.push_back(Name(p));
      }
      text = fmt::format("the product must be {}", Join(names));
    } else if (!rule.rows.empty()) {
      text = rule.kind == RuleKind::kDeduces
                 ? fmt::format("{} must have dtypes that are computed together in one of those listed",
                               fmt::join(contract.table().deduce.from, " and "))
                 : fmt::format("dtype of {} must be one of those listed", fmt::join(rule.args, ", "));
      const std::string described = contract.Describe(rule, Product::kAscend950);
      if (rule.when.arg) text += described.substr(described.find(" when "));
    } else {
      text = contract.Describe(rule, Product::kAscend950);
    }
    checks.push_back({text, contract.CodeOf(rule)});
  }
  return checks;
}

// What a rule about dtypes is about: its arguments, or what the call is computed in.
std::vector<std::string> SubjectsOf(const Contract& contract, const Rule& rule) {
  if (rule.kind == RuleKind::kDeduces) {
    return {fmt::format("computed from {}", fmt::join(contract.table().deduce.from, " and "))};
  }
  return {rule.args.begin(), rule.args.end()};
}

std::string ProductsText(Products products) {
  if (products.bits == kAllProducts.bits) return "all";
  std::vector<std::string> names;
  for (Product p : kProducts) {
    if (products.Has(p)) names.push_back(Name(p));
  }
  return fmt::format("{}", fmt::join(names, ", "));
}

// Arguments that take the same dtypes share a table. In a table of one column, dtypes of the same products share a row.
struct DTypeTable {
  std::vector<std::string> args;
  std::vector<std::pair<std::string, std::string>> rows;  // dtypes, products
  bool one_column = false;
};

std::vector<DTypeTable> DTypeTablesOf(const Contract& contract) {
  std::vector<DTypeTable> tables;
  for (const Rule& rule : contract.rules()) {
    if (rule.rows.empty()) continue;
    DTypeTable table{SubjectsOf(contract, rule), {}, false};
    table.one_column = table.args.size() == 1;
    for (const TypeRow& row : rule.rows) {
      std::vector<std::string> types;
      for (DType t : row.types) types.push_back(Name(t));
      const std::string products = ProductsText(row.products);
      const auto same = std::find_if(table.rows.begin(), table.rows.end(),
                                     [&](const auto& other) { return other.second == products; });
      if (table.one_column && same != table.rows.end()) {
        same->first += ", " + types[0];
      } else {
        table.rows.emplace_back(fmt::format("{}", fmt::join(types, " | ")), products);
      }
    }
    const auto same = std::find_if(tables.begin(), tables.end(), [&](const DTypeTable& other) {
      return other.one_column && table.one_column && other.rows == table.rows;
    });
    if (same == tables.end()) {
      tables.push_back(std::move(table));
    } else if (same->args[0] != table.args[0]) {
      same->args[0] += ", " + table.args[0];
    }
  }
  return tables;
}

std::string KernelText(const BackendKernels& k) {
  return fmt::format("{}: {}", k.backend, fmt::join(k.kernels, ", "));
}

}  // namespace

std::string RenderText(const Contract& contract, std::span<const BackendKernels> kernels) {
  const Table& t = contract.table();
  std::string out = fmt::format("{}\n  {}\n\n", t.op, t.summary);
  for (const std::string& formula : t.formulas) out += fmt::format("  {}\n", formula);
  out += "\n  arguments\n";
  for (const Arg& arg : t.args) {
    out += fmt::format("    {:<14} {:<14} {}{}\n", arg.name, RoleOf(arg.kind), arg.meaning,
                       arg.optional ? " (may be null)" : "");
  }
  out += "\n  dtypes\n";
  for (const DTypeTable& table : DTypeTablesOf(contract)) {
    out += fmt::format("    {}\n", fmt::join(table.args, " | "));
    for (const auto& [types, products] : table.rows) {
      out += fmt::format("      {:<24} {}\n", types, products);
    }
  }
  out += "\n  checks, in order\n";
  for (const Check& check : ChecksOf(contract)) out += fmt::format("    {}  {}\n", check.code, check.text);
  out += "\n  kernels, best first\n";
  for (const BackendKernels& k : kernels) out += fmt::format("    {}\n", KernelText(k));
  return out;
}

std::string RenderMarkdown(const Contract& contract, const char* header, std::span<const BackendKernels> kernels) {
  const Table& t = contract.table();
  std::string out = fmt::format("# {}\n\n{}\n\nHeader: `{}`\n\n", t.op, t.summary, header);
  if (!t.formulas.empty()) {
    out += "```\n";
    for (const std::string& formula : t.formulas) out += formula + "\n";
    out += "```\n\n";
  }
  out += "## Arguments\n\n| name | kind | null | meaning |\n|---|---|---|---|\n";
  for (const Arg& arg : t.args) {
    const char* null = !arg.is_handle() ? "-" : arg.optional ? "yes" : "no";
    out += fmt::format("| {} | {} | {} | {} |\n", arg.name, RoleOf(arg.kind), null, arg.meaning);
  }
  out += "\n## Dtypes\n";
  for (const DTypeTable& table : DTypeTablesOf(contract)) {
    out += fmt::format("\n| {} | products |\n|", fmt::join(table.args, " | "));
    for (size_t i = 0; i <= table.args.size(); ++i) out += "---|";
    out += "\n";
    for (const auto& [types, products] : table.rows) out += fmt::format("| {} | {} |\n", types, products);
  }
  out += "\n## Checks, in order\n\n| code | rule |\n|---|---|\n";
  for (const Check& check : ChecksOf(contract)) {
    out += fmt::format("| {} | {} |\n", check.code, check.text);
  }
  if (!t.notes.empty()) {
    out += "\n## Notes\n\n";
    for (const std::string& note : t.notes) out += fmt::format("- {}\n", note);
  }
  out += "\n## Kernels, best first\n\n";
  for (const BackendKernels& k : kernels) out += fmt::format("- {}\n", KernelText(k));
  return out;
}

std::string RenderJson(const Contract& contract, const char* header, std::span<const BackendKernels> kernels) {
  using nlohmann::ordered_json;
  const Table& t = contract.table();
  ordered_json json;
  json["op"] = t.op;
  json["header"] = header;
  json["stem"] = t.stem;
  json["summary"] = t.summary;
  json["formulas"] = t.formulas;
  json["args"] = ordered_json::array();
  for (const Arg& arg : t.args) {
    json["args"].push_back({{"name", arg.name}, {"kind", RoleOf(arg.kind)}, {"optional", arg.optional},
                            {"meaning", arg.meaning}});
  }
  json["dtypes"] = ordered_json::array();
  for (const Rule& rule : t.rules) {
    const std::vector<std::string> subjects = SubjectsOf(contract, rule);
    for (const TypeRow& row : rule.rows) {
      ordered_json entry;
      for (size_t i = 0; i < subjects.size(); ++i) entry["types"][subjects[i]] = Name(row.types[i]);
      entry["products"] = ordered_json::array();
      for (Product p : kProducts) {
        if (row.products.Has(p)) entry["products"].push_back(Name(p));
      }
      json["dtypes"].push_back(entry);
    }
  }
  json["checks"] = ordered_json::array();
  for (const Check& check : ChecksOf(contract)) {
    json["checks"].push_back({{"code", check.code}, {"rule", check.text}});
  }
  json["notes"] = t.notes;
  for (const BackendKernels& k : kernels) json["kernels"][k.backend] = k.kernels;
  return json.dump(2);
}

}  // namespace anyacl::contract
