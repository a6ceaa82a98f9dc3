// SPDX-License-Identifier: Apache-2.0
// Copyright The AnyACL Authors
#include "verify/log_line.h"

#include <fmt/format.h>

#include <cstdlib>
#include <utility>

namespace anyacl::verify {
namespace {

constexpr std::pair<Outcome, std::string_view> kOutcomes[] = {
    {Outcome::kOk, "ok "}, {Outcome::kWrong, "WRONG "}, {Outcome::kUnchecked, "unchecked "}};
constexpr std::string_view kBetween = "; ", kUlp = " ulp", kAt = " at ", kOfBound = " of the bound";

bool Skip(std::string_view start, std::string_view* text) {
  if (!text->starts_with(start)) return false;
  text->remove_prefix(start.size());
  return true;
}

std::string_view TakeUntil(std::string_view end, std::string_view* text) {
  const std::string_view taken = text->substr(0, text->find(end));
  text->remove_prefix(std::min(text->size(), taken.size() + end.size()));
  return taken;
}

double ToNumber(std::string_view text) { return std::strtod(std::string(text).c_str(), nullptr); }

void ParsePart(std::string_view part, LogLine* line) {
  if (Skip("error ", &part)) {
    line->ulps = ToNumber(TakeUntil(kUlp, &part));
    if (Skip(kAt, &part)) line->where = part;
  } else if (part.ends_with(kOfBound)) {
    line->of_bound = ToNumber(part);
  } else if (Skip("wrong ", &part)) {
    line->wrong = part;
  } else if (Skip("new ", &part)) {
    line->appears = part;
  } else if (Skip("call ", &part)) {
    line->call = part;
  } else if (Skip("at ", &part)) {
    line->caller = part;
  } else {
    line->reason = part;
  }
}

}  // namespace

std::string ToText(const LogLine& line) {
  std::string text(kLogPrefix);
  for (const auto& [outcome, word] : kOutcomes) {
    if (outcome == line.outcome) text += word;
  }
  text += line.op;
  const auto add = [&](std::string_view name, const std::string& value) {
    if (!value.empty()) text.append(kBetween).append(name).append(value);
  };
  if (line.outcome == Outcome::kUnchecked) {
    add("", line.reason);
  } else {
    add("error ", fmt::format("{:.3g}{}", line.ulps, kUlp));
    if (line.ulps > 0) text.append(kAt).append(line.where);
    add("", fmt::format("{:.3g}{}", line.of_bound, kOfBound));
  }
  add("wrong ", line.wrong);
  add("new ", line.appears);
  add("call ", line.call);
  add("at ", line.caller);
  return text;
}

bool Parse(std::string_view text, LogLine* line) {
  if (!Skip(kLogPrefix, &text)) return false;
  for (const auto& [outcome, word] : kOutcomes) {
    if (!Skip(word, &text)) continue;
    *line = {.outcome = outcome, .op = std::string(TakeUntil(kBetween, &text))};
    while (!text.empty()) ParsePart(TakeUntil(kBetween, &text), line);
    return true;
  }
  return false;
}

}  // namespace anyacl::verify
