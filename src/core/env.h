// SPDX-License-Identifier: Apache-2.0
// Copyright The AnyACL Authors
#ifndef ANYACL_CORE_ENV_H_
#define ANYACL_CORE_ENV_H_

#include <span>
#include <string>

namespace anyacl::env {

// Names of the variables in env_list.inc; there is no other way to read the environment.
enum class Var {
#define ANYACL_ENV(name, fallback, values, meaning) name,
#include "core/env_list.inc"
#undef ANYACL_ENV
};

struct Description {
  const char* name;
  const char* fallback;
  const char* values;  // of the list
  const char* meaning;
};
std::span<const Description> All();

// Value, or the default of the list when unset. Empty counts as unset; so does everything in a set-uid program, whose user
// is not to be trusted. It lives as long as the program leaves its environment alone.
const char* Get(Var var);
bool IsSet(Var var);
bool IsOn(Var var);  // set, and not to 0

inline constexpr int kMostDevices = 1024;

// Whole number among the values of the list; `fallback` when unset or not such a number.
int GetInt(Var var, int fallback);

// "" or why the present value has no effect: "ANYACL_THREADS must be a number from 1 to 1024, got many".
std::string Problem(const Description& variable);

}  // namespace anyacl::env

#endif  // ANYACL_CORE_ENV_H_
