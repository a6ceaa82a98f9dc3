// SPDX-License-Identifier: Apache-2.0
// Copyright The AnyACL Authors
#include "trace/faults.h"

#include <atomic>
#include <charconv>
#include <cstdio>
#include <list>
#include <string>
#include <string_view>

#include "core/codes.h"
#include "core/once.h"

namespace anyacl::trace {
namespace {

constexpr int32_t kCollectiveInternal = 4;  // HCCL_E_INTERNAL

struct Point {
  std::string name;
  bool is_prefix = false;
  bool on_stream = false;
  uint64_t which = 0;
  int32_t code = 0;  // 0: the usual one
  std::atomic<uint64_t> calls{0};

  bool Means(std::string_view function) const {
    return is_prefix ? function.substr(0, name.size()) == name : function == name;
  }
};

struct Points {
  std::list<Point> all;
};
Points& ThePoints() { return TheOne<Points>(); }

template <class Number>
bool Read(std::string_view text, Number* number) {
  const auto [end, error] = std::from_chars(text.data(), text.data() + text.size(), *number);
  return error == std::errc() && end == text.data() + text.size();
}

std::string_view CutAt(char separator, std::string_view* rest) {
  const size_t end = rest->find(separator);
  const std::string_view part = rest->substr(0, end);
  *rest = end == std::string_view::npos ? std::string_view() : rest->substr(end + 1);
  return part;
}

bool ReadPoint(std::string_view text) {
  std::string_view name = CutAt(':', &text);
  const std::string_view which = CutAt(':', &text);
  Points& points = ThePoints();
  Point& point = points.all.emplace_back();
  point.is_prefix = !name.empty() && name.back() == '*';
  if (point.is_prefix) name.remove_suffix(1);
  point.name = name;
  point.on_stream = text == "async";
  const bool good = (point.is_prefix || !name.empty()) && Read(which, &point.which) && point.which > 0 &&
                    (text.empty() || point.on_stream || (Read(text, &point.code) && point.code != 0));
  if (!good) points.all.pop_back();
  return good;
}

// What the function answers when what it needs is not to be had.
int32_t UsualCode(std::string_view function) {
  const auto begins = [&](std::string_view with) { return function.substr(0, with.size()) == with; };
  const auto has = [&](std::string_view part) { return function.find(part) != std::string_view::npos; };
  if (begins("Hccl")) return kCollectiveInternal;
  if (begins("aclnn")) return has("GetWorkspaceSize") ? code::kInner : code::kRuntime;
  if (has("Malloc")) return code::kRtOutOfMemory;
  if (has("CreateStream")) return code::kRtNoStreamResource;
  if (has("CreateEvent")) return code::kRtNoEventResource;
  if (has("Synchronize")) return code::kRtCoreException;
  return begins("aclrt") ? code::kRtDriver : code::kAclInternal;
}

Point* Hit(bool on_stream, const char* function) noexcept {
  Point* hit = nullptr;
  for (Point& point : ThePoints().all) {
    if (point.on_stream != on_stream || !point.Means(function)) continue;
    if (point.calls.fetch_add(1, std::memory_order_relaxed) + 1 == point.which) hit = &point;
  }
  return hit;
}

}  // namespace

bool ReadFaults(const char* text) {
  std::string_view rest = text;
  while (!rest.empty()) {
    const std::string_view part = CutAt(',', &rest);
    if (part.empty() || ReadPoint(part)) continue;
    std::fprintf(stderr, "anyacl: ANYACL_FAIL: a point is NAME:N, NAME:N:CODE or NAME:N:async, got %.*s\n",
                 static_cast<int>(part.size()), part.data());
  }
  return !ThePoints().all.empty();
}

int32_t FaultAtCall(const char* function) noexcept {
  const Point* const hit = Hit(false, function);
  if (!hit) return 0;
  return hit->code ? hit->code : UsualCode(function);
}

int32_t FaultOnStream(const char* label) noexcept { return Hit(true, label) ? code::kRtCoreException : 0; }

}  // namespace anyacl::trace
