// SPDX-License-Identifier: Apache-2.0
// Copyright The AnyACL Authors
#include <fmt/format.h>
#include <unistd.h>

#include <cstdio>
#include <cstdlib>
#include <fstream>
#include <iostream>
#include <nlohmann/json.hpp>

#include "bench.h"
#include "commands.h"
#include "harness/cases.h"
#include "harness/session.h"
#include "library.h"

namespace anyacl::tool {
namespace {

using harness::Case;
using harness::OperatorCases;
using harness::TypeChoice;

struct Task {
  const Operator* op;
  const OperatorCases* cases;
  const Case* row;
  const TypeChoice* type;
};

// Rows of the bench whose name is the text, or else contains it. A GPU has its own: the sizes that fill it.
std::vector<const Case*> SelectRows(const OperatorCases& cases, const std::string& text) {
  const char* const tag = Library().backend().launches() ? "gpu" : "bench";
  std::vector<const Case*> exact, containing;
  for (const Case& row : cases.cases) {
    if (!row.Has(tag)) continue;
    if (row.name == text) exact.push_back(&row);
    if (std::string_view(row.name).find(text) != std::string_view::npos) containing.push_back(&row);
  }
  return exact.empty() ? containing : exact;
}

std::vector<const TypeChoice*> SelectTypes(const OperatorCases& cases, const std::string& label) {
  std::vector<const TypeChoice*> types;
  for (const TypeChoice& type : cases.types) {
    if (label.empty() ? type.bench : type.label == label) types.push_back(&type);
  }
  return types;
}

template <class Items, class Text>
std::string List(const Items& items, Text&& text) {
  std::vector<std::string> names;
  for (const auto& item : items) names.push_back(text(item));
  return fmt::format("{}", fmt::join(names, ", "));
}

// Nothing was selected: tell what there would have been.
[[noreturn]] void NothingSelected(const BenchOptions& options,
                                  const std::vector<const Operator*>& ops) {
  const OperatorCases& cases = harness::CasesOf(ops[0]->contract.op());
  if (SelectTypes(cases, options.type).empty()) {
    throw UserError(fmt::format("there is no dtype {}; known: {}", options.type,
                                List(cases.types, [](const TypeChoice& t) { return t.label; })));
  }
  std::vector<const Case*> rows;
  for (const Operator* op : ops) {
    const auto more = SelectRows(harness::CasesOf(op->contract.op()), "");
    rows.insert(rows.end(), more.begin(), more.end());
  }
  throw UserError(fmt::format("there is no case {}; known: {}", options.row,
                              List(rows, [](const Case* c) { return c->name; })));
}

// Those that have rows, or the one that is named.
std::vector<const Operator*> SelectOperators(const std::string& name) {
  std::vector<const Operator*> all;
  for (const OperatorCases* cases : harness::AllCases()) all.push_back(&FindOperator(cases->op));
  if (name.empty()) return all;
  const Operator* const op = &FindOperator(name);
  if (std::find(all.begin(), all.end(), op) != all.end()) return {op};
  throw UserError(fmt::format("the bench has no rows of {}; known: {}", op->contract.op(),
                              List(all, [](const Operator* o) { return o->contract.op(); })));
}

std::vector<Task> SelectTasks(const BenchOptions& options) {
  const std::vector<const Operator*> ops = SelectOperators(options.op);
  std::vector<Task> tasks;
  for (const Operator* op : ops) {
    const OperatorCases& cases = harness::CasesOf(op->contract.op());
    for (const Case* row : SelectRows(cases, options.row)) {
      for (const TypeChoice* type : SelectTypes(cases, options.type)) {
        tasks.push_back({op, &cases, row, type});
      }
    }
  }
  if (tasks.empty()) NothingSelected(options, ops);
  return tasks;
}

void SelectBackend(const std::string& name) {
  if (name.empty()) return;
  const auto backends = Library().backends();
  for (const Backend* backend : backends) {
    if (name != backend->name()) continue;
    setenv("ANYACL_BACKEND", name.c_str(), 1);
    return;
  }
  throw UserError(fmt::format("there is no backend {}; known: {}", name,
                              List(backends, [](const Backend* b) { return b->name(); })));
}

nlohmann::ordered_json ToJson(const BenchRow& row) {
  const auto rounded = [](double value) {
    return std::strtod(fmt::format("{:.5g}", value).c_str(), nullptr);
  };
  nlohmann::ordered_json json = {
      {"op", row.op},
      {"case", row.row},
      {"dtype", row.type},
      {"backend", row.backend},
      {"kernel", row.kernel},
      {"threads", row.threads},
      {"time_us", rounded(row.time_us)},
      {"bytes", row.bytes},
      {"gbps", rounded(row.gbps())},
      {"roof_gbps", rounded(row.roof_gbps)},
      {"roof_ratio", rounded(row.roof_ratio())},
      {"plan_us", rounded(row.plan_us)},
      {"call_us", rounded(row.call_us)},
  };
  if (row.exp_us) json["exp_us"] = rounded(*row.exp_us);
  return json;
}

void PrintHead() {
  fmt::print("{:<26} {:<16} {:<10} {:<10} {:>4} {:>11} {:>8} {:>8} {:>6} {:>8} {:>8} {:>9}\n",
             "operator", "case", "dtype", "kernel", "thr", "time us", "GB/s", "roof", "ratio",
             "plan us", "call us", "exp us");
}

void PrintRow(const BenchRow& row) {
  fmt::print(
      "{:<26} {:<16} {:<10} {:<10} {:>4} {:>11.3f} {:>8.2f} {:>8.2f} {:>6.2f} {:>8.3f} {:>8.3f} "
      "{:>9}\n",
      row.op, row.row, row.type, row.kernel, row.threads, row.time_us, row.gbps(), row.roof_gbps,
      row.roof_ratio(), row.plan_us, row.call_us,
      row.exp_us ? fmt::format("{:.3f}", *row.exp_us) : "");
  std::fflush(stdout);
}

// One line that is written over, on a terminal only.
class Progress {
 public:
  explicit Progress(size_t all) : all_(all), on_(isatty(STDERR_FILENO)) {}
  ~Progress() { Clear(); }
  void Show(const Task& task) {
    ++at_;
    if (!on_) return;
    fmt::print(stderr, "\r\033[K[{}/{}] {} {} {} ...", at_, all_, task.op->contract.op(),
               task.row->name, task.type->label);
    std::fflush(stderr);
  }
  void Clear() {
    if (on_) fmt::print(stderr, "\r\033[K");
  }

 private:
  size_t all_;
  size_t at_ = 0;
  bool on_;
};

// A file of the results, opened before minutes of measuring.
class ResultFile {
 public:
  explicit ResultFile(const std::string& path) : path_(path) {
    if (!path.empty() && path != "-") file_.open(path);
    RequireGood();
  }

  template <class Writer>
  void Write(Writer&& write) {
    if (path_.empty()) return;
    write(path_ == "-" ? std::cout : file_);
    (path_ == "-" ? std::cout : file_).flush();
    RequireGood();
  }

 private:
  void RequireGood() const {
    if (!file_) throw UserError(fmt::format("{} cannot be written", path_));
  }

  const std::string path_;
  std::ofstream file_;
};

}  // namespace

void Bench(const BenchOptions& options) {
  SelectBackend(options.backend);
  const std::vector<Task> tasks = SelectTasks(options);
  if (options.threads > 0) Library().set_threads(options.threads);
  ResultFile json(options.json), svg(options.svg);
  const bool table = options.json != "-" && options.svg != "-";
  const harness::Session session;
  std::vector<BenchRow> rows;
  Progress progress(tasks.size());
  if (table) PrintHead();
  for (const Task& task : tasks) {
    progress.Show(task);
    rows.push_back(Measure(*task.op, *task.cases, *task.row, *task.type, session.stream()));
    progress.Clear();
    if (table) PrintRow(rows.back());
  }
  json.Write([&](std::ostream& out) {
    nlohmann::ordered_json list = nlohmann::ordered_json::array();
    for (const BenchRow& row : rows) list.push_back(ToJson(row));
    out << list.dump(2) << '\n';
  });
  svg.Write([&](std::ostream& out) { DrawSvg(rows, out); });
}

}  // namespace anyacl::tool
