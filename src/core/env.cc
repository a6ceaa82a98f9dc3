// SPDX-License-Identifier: Apache-2.0
// Copyright The AnyACL Authors
#include "core/env.h"

#include <charconv>
#include <cstdlib>
#include <cstring>
#include <string_view>

namespace anyacl::env {
namespace {

constexpr Description kAll[] = {
#define ANYACL_ENV(name, fallback, values, meaning) {#name, fallback, values, meaning},
#include "core/env_list.inc"
#undef ANYACL_ENV
};

const char* Raw(const Description& variable) {
  const char* value = secure_getenv(variable.name);
  return value && *value ? value : nullptr;
}
const char* Raw(Var var) { return Raw(kAll[static_cast<int>(var)]); }

bool ReadNumber(std::string_view text, int* number) {
  const auto [stop, error] = std::from_chars(text.data(), text.data() + text.size(), *number);
  return error == std::errc() && stop == text.data() + text.size();
}

// The ends of "1..9".
struct Range {
  explicit Range(std::string_view values) {
    const size_t dots = values.find("..");
    is_one = dots != values.npos && ReadNumber(values.substr(0, dots), &min) && ReadNumber(values.substr(dots + 2), &max);
  }
  bool Has(std::string_view text, int* number) const { return ReadNumber(text, number) && *number >= min && *number <= max; }

  bool is_one = false;
  int min = 0;
  int max = 0;
};

bool HasWord(std::string_view values, std::string_view word) {
  while (true) {
    const size_t end = values.find('|');
    if (values.substr(0, end) == word) return true;
    if (end == values.npos) return false;
    values.remove_prefix(end + 1);
  }
}

}  // namespace

std::span<const Description> All() { return kAll; }

bool IsSet(Var var) { return Raw(var) != nullptr; }

bool IsOn(Var var) { return IsSet(var) && std::strcmp(Raw(var), "0") != 0; }

const char* Get(Var var) {
  const char* value = Raw(var);
  return value ? value : kAll[static_cast<int>(var)].fallback;
}

int GetInt(Var var, int fallback) {
  const char* const value = Raw(var);
  int number = 0;
  return value && Range(kAll[static_cast<int>(var)].values).Has(value, &number) ? number : fallback;
}

std::string Problem(const Description& variable) {
  const char* const value = Raw(variable);
  if (!value || !*variable.values) return "";
  const Range range(variable.values);
  int number = 0;
  if (range.is_one ? range.Has(value, &number) : HasWord(variable.values, value)) return "";
  std::string wanted = range.is_one ? "a number from " + std::to_string(range.min) + " to " + std::to_string(range.max) : variable.values;
  for (size_t at; (at = wanted.find('|')) != wanted.npos;) wanted.replace(at, 1, ", ");
  return std::string(variable.name) + " must be " + (range.is_one ? "" : "one of ") + wanted + ", got " + value;
}

}  // namespace anyacl::env
