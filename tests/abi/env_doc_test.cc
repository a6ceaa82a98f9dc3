// SPDX-License-Identifier: Apache-2.0
// Copyright The AnyACL Authors
//
// docs/environment.md has one row for each variable of core/env_list.inc, and no other.
#include <gtest/gtest.h>

#include <cctype>
#include <fstream>
#include <set>
#include <string>
#include <vector>

#include "core/env.h"

namespace anyacl {
namespace {

constexpr char kHead[] = "| name | default | meaning |";

std::vector<std::string> PageLines() {
  std::ifstream page(ANYACL_ENVIRONMENT_PAGE);
  EXPECT_TRUE(page) << ANYACL_ENVIRONMENT_PAGE;
  std::vector<std::string> lines;
  for (std::string line; std::getline(page, line);) lines.push_back(line);
  return lines;
}

std::string RowOf(const env::Description& variable) {
  const std::string fallback =
      *variable.fallback ? " " + std::string(variable.fallback) + " |" : " |";
  return "| " + std::string(variable.name) + " |" + fallback + " " + variable.meaning + " |";
}

TEST(EnvironmentPage, TableIsTheList) {
  std::vector<std::string> expected;
  for (const env::Description& variable : env::All()) expected.push_back(RowOf(variable));
  std::vector<std::string> rows;
  for (const std::string& line : PageLines()) {
    if (line.rfind("| ", 0) == 0 && line != kHead) rows.push_back(line);
  }
  EXPECT_EQ(rows, expected);
}

// "- NAME, NAME: why": variables of the toolkit that we leave alone.
TEST(EnvironmentPage, WhatWeReadIsNotCalledIgnored) {
  std::set<std::string> read;
  for (const env::Description& variable : env::All()) read.insert(variable.name);
  for (const std::string& line : PageLines()) {
    if (line.rfind("- ", 0) != 0) continue;
    std::string word;
    for (const char c : line.substr(0, line.find(':')) + " ") {
      if (std::isupper(c) || std::isdigit(c) || c == '_') {
        word += c;
      } else {
        EXPECT_EQ(read.count(word), 0u) << word;
        word.clear();
      }
    }
  }
}

}  // namespace
}  // namespace anyacl
