// SPDX-License-Identifier: Apache-2.0
// Copyright The AnyACL Authors
//
// anyacl verify-report: the log of ANYACL_VERIFY as one page without anything from outside.
#include <fmt/format.h>

#include <algorithm>
#include <cmath>
#include <fstream>
#include <map>
#include <string>
#include <vector>

#include "commands.h"
#include "library.h"
#include "verify/log_line.h"

namespace anyacl::tool {
namespace {

using verify::LogLine;
using verify::Outcome;

// Largest errors of calls, in ulps: none, up to half a unit, up to 1, 2, 4 ... and everything beyond.
constexpr int kBins = 14;
constexpr double kFirstBound = 0.5;

int BinOf(double ulps) {
  if (ulps == 0) return 0;
  if (!(ulps > kFirstBound)) return 1;
  const double doublings = std::ceil(std::log2(ulps / kFirstBound));
  return doublings < kBins - 2 ? 1 + static_cast<int>(doublings) : kBins - 1;
}
std::string NameOfBin(int bin) {
  if (bin == 0) return "exact";
  if (bin == kBins - 1) return fmt::format("more than {:g} ulp", std::ldexp(kFirstBound, bin - 2));
  return fmt::format("up to {:g} ulp", std::ldexp(kFirstBound, bin - 1));
}

struct Row {
  int calls = 0, ok = 0, wrong = 0, appears = 0;
  std::map<std::string, int> unchecked;
  int bins[kBins] = {};
  LogLine worst;  // the call with the largest error

  void Add(const LogLine& line) {
    ++calls;
    if (!line.appears.empty()) ++appears;
    if (line.outcome == Outcome::kUnchecked) {
      ++unchecked[line.reason];
      return;
    }
    ++(line.outcome == Outcome::kOk ? ok : wrong);
    ++bins[BinOf(line.ulps)];
    if (worst.op.empty() || line.ulps > worst.ulps) worst = line;
  }
};

struct Log {
  std::map<std::string, Row> rows;
  std::vector<LogLine> wrong;
  std::vector<LogLine> appears;
};

Log ReadLog(const std::string& file) {
  std::ifstream in(file);
  if (!in) throw UserError(fmt::format("{} cannot be read", file));
  Log log;
  LogLine line;
  for (std::string text; std::getline(in, text);) {
    // A program may have written the beginning of a line of its own.
    const size_t start = text.find(verify::kLogPrefix);
    if (start == std::string::npos || !Parse(std::string_view(text).substr(start), &line)) continue;
    log.rows[line.op].Add(line);
    if (line.outcome == Outcome::kWrong) log.wrong.push_back(line);
    if (!line.appears.empty()) log.appears.push_back(line);
  }
  if (log.rows.empty()) throw UserError(fmt::format("{} has no line of ANYACL_VERIFY", file));
  return log;
}

std::string Escaped(std::string_view text) {
  std::string result;
  for (const char c : text) {
    if (c == '<')
      result += "&lt;";
    else if (c == '>')
      result += "&gt;";
    else if (c == '&')
      result += "&amp;";
    else if (c == '"')
      result += "&quot;";
    else
      result += c;
  }
  return result;
}

std::string Histogram(const Row& row) {
  constexpr int kWidth = 14, kHeight = 36;
  const int most = *std::max_element(row.bins, row.bins + kBins);
  if (most == 0) return "";
  std::string svg = fmt::format("<svg width=\"{}\" height=\"{}\">", kBins * kWidth, kHeight + 1);
  for (int bin = 0; bin < kBins; ++bin) {
    if (row.bins[bin] == 0) continue;
    const double height = std::max(1.0, static_cast<double>(kHeight) * row.bins[bin] / most);
    svg += fmt::format(
        "<rect x=\"{}\" y=\"{:.1f}\" width=\"{}\" height=\"{:.1f}\"><title>{}: {} "
        "calls</title></rect>",
        bin * kWidth, kHeight - height, kWidth - 2, height, NameOfBin(bin), row.bins[bin]);
  }
  return svg + fmt::format("<line x1=\"0\" x2=\"{}\" y1=\"{}\" y2=\"{}\"/></svg>", kBins * kWidth,
                           kHeight, kHeight);
}

std::string TextOf(const std::map<std::string, int>& unchecked) {
  std::string text;
  for (const auto& [reason, count] : unchecked)
    text += fmt::format("{}{} {}", text.empty() ? "" : "; ", count, Escaped(reason));
  return text;
}

std::string Table(const Log& log) {
  std::vector<std::pair<std::string, const Row*>> rows;
  for (const auto& [op, row] : log.rows) rows.push_back({op, &row});
  std::stable_sort(rows.begin(), rows.end(), [](const auto& a, const auto& b) {
    return std::pair(a.second->wrong, a.second->worst.of_bound) >
           std::pair(b.second->wrong, b.second->worst.of_bound);
  });
  std::string html =
      "<table><tr><th>operator<th>calls<th>ok<th>wrong<th>not checked<th>largest errors of its "
      "calls"
      "<th>largest (ulp)<th>of the bound<th>where</tr>\n";
  for (const auto& [op, row] : rows) {
    const bool checked = row->ok + row->wrong > 0;
    html += fmt::format("<tr{}><td>{}<td>{}<td>{}<td>{}<td>{}<td>{}",
                        row->wrong > 0 ? " class=\"wrong\"" : "", Escaped(op), row->calls, row->ok,
                        row->wrong, TextOf(row->unchecked), Histogram(*row));
    html += checked ? fmt::format("<td>{:.3g}<td>{:.3g}<td>{}<br><small>{}<br>{}</small></tr>\n",
                                  row->worst.ulps, row->worst.of_bound, Escaped(row->worst.where),
                                  Escaped(row->worst.call), Escaped(row->worst.caller))
                    : "<td><td><td></tr>\n";
  }
  return html + "</table>\n";
}

std::string List(const char* title, const std::vector<LogLine>& lines, std::string LogLine::*what) {
  constexpr size_t kMost = 200;
  if (lines.empty()) return "";
  std::string html = fmt::format("<h2>{}</h2>\n<ol>\n", title);
  for (size_t i = 0; i < lines.size() && i < kMost; ++i) {
    const LogLine& line = lines[i];
    html += fmt::format("<li><b>{}</b> {}<br><small>{}<br>{}</small>\n", Escaped(line.op),
                        Escaped(line.*what), Escaped(line.call), Escaped(line.caller));
  }
  html += "</ol>\n";
  if (lines.size() > kMost) html += fmt::format("<p>and {} more\n", lines.size() - kMost);
  return html;
}

constexpr char kHead[] =
    "<!DOCTYPE html>\n<meta charset=\"utf-8\">\n<title>AnyACL: verified calls</title>\n<style>\n"
    "body{font:14px "
    "sans-serif;margin:2em}table{border-collapse:collapse}th,td{text-align:left;padding:4px 10px;"
    "border-bottom:1px solid #ccc;vertical-align:top}tr.wrong "
    "td{background:#fdd}small{color:#666}rect{fill:#47a}line{stroke:#999}\n"
    "</style>\n<h1>Verified calls</h1>\n";

}  // namespace

void VerifyReport(const VerifyReportOptions& options) {
  const Log log = ReadLog(options.log);
  Row all;
  for (const auto& [op, row] : log.rows) {
    all.calls += row.calls;
    all.ok += row.ok;
    all.wrong += row.wrong;
  }
  const std::string name = options.out.empty() ? options.log + ".html" : options.out;
  std::ofstream out(name);
  out << kHead
      << fmt::format(
             "<p>{} calls of {} operators: {} ok, {} wrong, {} not checked. Histograms: the "
             "largest error of each call, in units "
             "of the last place; exact, up to 0.5, 1, 2, 4 ... and more than {:g}.\n",
             all.calls, log.rows.size(), all.ok, all.wrong, all.calls - all.ok - all.wrong,
             std::ldexp(kFirstBound, kBins - 3))
      << List("Wrong", log.wrong, &LogLine::wrong)
      << List("NaN and infinities that no input has", log.appears, &LogLine::appears)
      << "<h2>Operators</h2>\n"
      << Table(log);
  if (!out.flush()) throw UserError(fmt::format("{} cannot be written", name));
  fmt::print("{}\n", name);
}

}  // namespace anyacl::tool
