// SPDX-License-Identifier: Apache-2.0
// Copyright The AnyACL Authors
#include "core/env.h"

#include <charconv>
#include <cstdlib>
#include <cstring>

namespace anyacl::env {
namespace {

constexpr Description kAll[] = {
#define ANYACL_ENV(name, fallback, meaning) {#name, fallback, meaning},
#include "core/env_list.inc"
#undef ANYACL_ENV
};

const char* Raw(Var var) {
  const char* value = secure_getenv(kAll[static_cast<int>(var)].name);
  return value && *value ? value : nullptr;
}

}  // namespace

std::span<const Description> All() { return kAll; }

bool IsSet(Var var) { return Raw(var) != nullptr; }

bool IsOn(Var var) { return IsSet(var) && std::strcmp(Raw(var), "0") != 0; }

const char* Get(Var var) {
  const char* value = Raw(var);
  return value ? value : kAll[static_cast<int>(var)].fallback;
}

int GetInt(Var var, int min, int max, int fallback) {
  const char* value = Raw(var);
  if (!value) return fallback;
  int number = 0;
  const char* end = value + std::strlen(value);
  const auto [stop, error] = std::from_chars(value, end, number);
  const bool valid = error == std::errc() && stop == end && number >= min && number <= max;
  return valid ? number : fallback;
}

}  // namespace anyacl::env
