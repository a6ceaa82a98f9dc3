// SPDX-License-Identifier: Apache-2.0
// Copyright The AnyACL Authors
#include <fmt/format.h>

#include <algorithm>
#include <cmath>
#include <ostream>
#include <span>
#include <string>

#include "bench.h"

namespace anyacl::tool {
namespace {

constexpr int kLine = 20, kTop = 58, kNames = 420, kBars = 380, kNumbers = 200;

// Twice the bandwidth of the memory fills the picture: rows that fit a cache are cut there, with an arrow.
constexpr double kMost = 2;

std::string Escaped(std::string_view text) {
  std::string result;
  for (const char c : text) result += c == '<' ? "&lt;" : c == '&' ? "&amp;" : std::string(1, c);
  return result;
}

std::string Line(const BenchRow& row, int y) {
  const double share = row.gbps() / row.roof_gbps;
  const int length = static_cast<int>(std::lround(kBars / kMost * std::min(share, kMost)));
  const char* const kind = share >= 0.9 ? "good" : "behind";
  return fmt::format(
      "<text x='{}' y='{}' class='name'>{}</text><rect x='{}' y='{}' width='{}' height='{}' class='{}'/>"
      "<text x='{}' y='{}'>{}{:.1f} GB/s, {:.4g} us</text>\n",
      kNames - 8, y + 14, Escaped(fmt::format("{} {} {}", row.op, row.row, row.type)), kNames, y + 3, std::max(length, 1),
      kLine - 6, kind, kNames + length + 6, y + 14, share > kMost ? "\u2192 " : "", row.gbps(), row.time_us);
}

}  // namespace

void DrawSvg(std::span<const BenchRow> rows, std::ostream& out) {
  const int width = kNames + kBars + kNumbers;
  const int bottom = kTop + kLine * static_cast<int>(rows.size());
  const int roof = kNames + static_cast<int>(kBars / kMost);
  out << fmt::format(
      "<svg xmlns='http://www.w3.org/2000/svg' width='{0}' height='{1}' viewBox='0 0 {0} {1}' font-family='sans-serif' font-size='12'>\n"
      "<style>.name{{text-anchor:end}}.good{{fill:#2a7f62}}.behind{{fill:#d08c2e}}.roof{{stroke:#555;stroke-dasharray:4 3}}</style>\n"
      "<rect width='100%' height='100%' fill='white'/>\n<text x='12' y='24' font-size='15'>anyacl bench: bytes that must move, per second, "
      "beside what the memory allows{2}</text>\n<text x='{3}' y='46' text-anchor='middle'>the memory</text>\n",
      width, bottom + 16, rows.empty() ? "" : fmt::format(" ({}, {} threads)", rows[0].backend, rows[0].threads), roof);
  int y = kTop;
  for (const BenchRow& row : rows) {
    out << Line(row, y);
    y += kLine;
  }
  out << fmt::format("<line x1='{0}' x2='{0}' y1='{1}' y2='{2}' class='roof'/>\n</svg>\n", roof, kTop - 6, bottom);
}

}  // namespace anyacl::tool
