// SPDX-License-Identifier: Apache-2.0
// Copyright The AnyACL Authors
#include "contract/formula.h"

#include <algorithm>
#include <cctype>
#include <charconv>
#include <cmath>
#include <cstdint>

namespace anyacl::contract {

Number Formula::Apply(char op, Number a, Number b) {
  switch (op) {
    case '+':
      return a + b;
    case '-':
      return a - b;
    case '*':
      return a * b;
    case '/':
      return b == 0 ? Number{0} : std::trunc(a / b);
    default:  // a remainder by zero is left to the rule that forbids the zero
      return b == 0 ? Number{0} : std::fmod(a, b);
  }
}

// True when evaluation would need more than its stack.
bool Formula::TooDeep(const Steps& steps) {
  int top = 0;
  for (const Step& step : steps) {
    top += step.op == 'n' || step.op == 'v' ? 1 : -1;
    if (top > kStack) return true;
  }
  return false;
}

bool Formula::Eat(std::string_view token) {
  while (at_ < text_.size() && text_[at_] == ' ') ++at_;
  if (std::string_view(text_).substr(at_, token.size()) != token) return false;
  at_ += token.size();
  return true;
}

void Formula::ParseAtom(Steps* out, const Names& names) {
  if (Eat("(")) {
    ParseSum(out, names);
    if (!Eat(")")) error_ = "')' expected";
    return;
  }
  const size_t begin = at_;
  while (at_ < text_.size() && (std::isalnum(static_cast<unsigned char>(text_[at_])) || text_[at_] == '_')) {
    ++at_;
  }
  const std::string word = text_.substr(begin, at_ - begin);
  if (word.empty()) {
    error_ = "name or number expected at position " + std::to_string(begin);
  } else if (std::isdigit(static_cast<unsigned char>(word[0]))) {
    int64_t number = 0;
    const char* const end = word.data() + word.size();
    const auto [stop, problem] = std::from_chars(word.data(), end, number);
    if (problem != std::errc() || stop != end) {
      error_ = "'" + word + "' is not a whole number below 2^63";
    }
    out->push_back({'n', number});
  } else if (const auto found = std::find(names.begin(), names.end(), word); found != names.end()) {
    const int variable = static_cast<int>(found - names.begin());
    out->push_back({'v', 0, variable});
    if (std::find(variables_.begin(), variables_.end(), variable) == variables_.end()) {
      variables_.push_back(variable);
    }
  } else {
    error_ = "unknown name '" + word + "'";
  }
}

void Formula::ParseProduct(Steps* out, const Names& names) {
  Eat("");
  ParseAtom(out, names);
  while (error_.empty()) {
    const char op = Eat("*") ? '*' : Eat("/") ? '/' : Eat("%") ? '%' : 0;
    if (!op) return;
    Eat("");
    ParseAtom(out, names);
    out->push_back({op});
  }
}

void Formula::ParseSum(Steps* out, const Names& names) {
  ParseProduct(out, names);
  while (error_.empty()) {
    const char op = Eat("+") ? '+' : Eat("-") ? '-' : 0;
    if (!op) return;
    ParseProduct(out, names);
    out->push_back({op});
  }
}

Formula::Formula(std::string_view text, const Names& names) : text_(text) {
  ParseSum(&left_, names);
  if (!error_.empty()) return;
  struct Sign {
    const char* token;
    Comparison comparison;
  };
  static constexpr Sign kSigns[] = {{"==", Comparison::kEqual},   {"!=", Comparison::kNotEqual},
                                    {"<=", Comparison::kAtMost},  {">=", Comparison::kAtLeast},
                                    {"<", Comparison::kLess},     {">", Comparison::kGreater}};
  for (const Sign& sign : kSigns) {
    if (!Eat(sign.token)) continue;
    comparison_ = sign.comparison;
    ParseSum(&right_, names);
    break;
  }
  Eat("");
  if (error_.empty() && at_ != text_.size()) {
    error_ = "unexpected '" + text_.substr(at_) + "'";
  }
  if (error_.empty() && (TooDeep(left_) || TooDeep(right_))) error_ = "nested too deeply";
}

}  // namespace anyacl::contract
