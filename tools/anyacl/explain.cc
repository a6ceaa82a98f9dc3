// SPDX-License-Identifier: Apache-2.0
// Copyright The AnyACL Authors
//
// anyacl explain: what a status code means.
#include <fmt/format.h>

#include <algorithm>
#include <charconv>
#include <cstdlib>
#include <iterator>
#include <string>
#include <vector>

#include "commands.h"
#include "library.h"
#include "trace_file.h"

namespace anyacl::tool {
namespace {

struct Name {
  int64_t code;
  const char* name;
  const char* text;
};
constexpr Name kNames[] = {
#define CODE(code, name, text) {code, name, text},
#include "code_names.inc"
#undef CODE
};

struct Advice {
  int64_t code;
  const char* meaning;
  const char* causes;
  const char* help;
};
constexpr Advice kAdvice[] = {
#define ADVICE(code, meaning, causes, help) {code, meaning, causes, help},
#include "code_advice.inc"
#undef ADVICE
};

// By the first digits: who is to blame.
const char* ClassOf(int64_t code) {
  switch (code / 100000) {
    case 0:
      return "a code of the collectives";
    case 1:
      return "the caller's fault: an argument, an object or the order of calls";
    case 2:
      return "something is not to be had: memory, another resource, or a feature";
    case 3:
      return "the runtime or the state of the program";
    case 5:
      return "internal, or from the device";
    default:
      return "not a code of this interface";
  }
}

void PrintNames(int64_t code) {
  for (const Name& name : kNames) {
    if (name.code == code) fmt::print("{} {}: {}\n", code, name.name, name.text);
  }
}

bool IsNamed(int64_t code) {
  return std::any_of(std::begin(kNames), std::end(kNames), [&](const Name& name) { return name.code == code; });
}

void Explain(int64_t code) {
  PrintNames(code);
  const auto* const advice =
      std::find_if(std::begin(kAdvice), std::end(kAdvice), [&](const Advice& row) { return row.code == code; });
  if (advice == std::end(kAdvice)) {
    fmt::print("  Class:  {}.\n  AnyACL never returns it; programs may compare with it.\n", ClassOf(code));
    return;
  }
  fmt::print("  Means:  {}\n  Causes: {}\n  Try:    {}\n", advice->meaning, advice->causes, advice->help);
}

int64_t CodeOf(const std::string& word) {
  int64_t code = 0;
  const auto [end, error] = std::from_chars(word.data(), word.data() + word.size(), code);
  if (error == std::errc() && end == word.data() + word.size() && IsNamed(code)) return code;
  for (const Name& name : kNames) {
    if (word == name.name) return name.code;
  }
  throw UserError(fmt::format("there is no status code {}", word));
}

std::string TraceOf(const std::vector<std::string>& words) {
  if (!words.empty()) return words[0];
  const char* const traced = std::getenv("ANYACL_TRACE");
  if (traced && *traced) return traced;
  throw UserError("explain --last needs the file of a trace, or ANYACL_TRACE");
}

void ExplainLast(const std::string& file) {
  const Trace trace = ReadTrace(file);
  const TracedCall* last = nullptr;
  for (const TracedCall& call : trace.calls) {
    if (call.failed()) last = &call;
  }
  if (!last) {
    fmt::print("no call of the trace failed\n");
    return;
  }
  fmt::print("{} returned {}{}{}\n", last->function->name, last->result.integer, last->error.empty() ? "" : ": ", last->error);
  if (!last->python_file.empty()) fmt::print("from {}:{}\n", last->python_file, last->python_line);
  Explain(last->result.integer);
}

}  // namespace

void ExplainCode(const ExplainOptions& options) {
  if (options.last) return ExplainLast(TraceOf(options.words));
  if (options.words.empty()) throw UserError("explain needs a status code: anyacl explain 161002");
  for (const std::string& word : options.words) Explain(CodeOf(word));
}

}  // namespace anyacl::tool
