// SPDX-License-Identifier: Apache-2.0
// Copyright The AnyACL Authors
//
// The small formulas of the contract tables: "N*C*HxW", "C % group == 0", "alpha >= 0".
#ifndef ANYACL_CONTRACT_FORMULA_H_
#define ANYACL_CONTRACT_FORMULA_H_

#include <cstdint>
#include <string>
#include <string_view>
#include <vector>

namespace anyacl::contract {

// Sizes are 64-bit and their products may be larger. In long double every value below 2^63 is exact and
// a larger product stays larger, so a comparison never sees a wrapped number. Bits lost beyond
// 2^63 cannot turn an unequal size equal, because no element count reaches that far.
using Number = long double;

// Grammar: sum [ (== != <= >= < >) sum ]; sum: products with + -; product: atoms with * / %; atom: name,
// number, ( sum ).
class Formula {
 public:
  Formula() = default;
  // A variable's index is its place in `names`. On a mistake error() says what.
  Formula(std::string_view text, const std::vector<std::string>& names);

  const std::string& text() const { return text_; }
  const std::string& error() const { return error_; }
  const std::vector<int>& variables() const { return variables_; }  // each once, in order of appearance

  // The same in 64-bit integers, many times as fast, for formulas whose variables are all whole
  // numbers. False, and nothing known, when a result does not fit.
  template <class ValueOf>
  bool EvaluateWhole(ValueOf&& value_of, int64_t* value) const {
    return RunWhole(left_, value_of, value);
  }
  template <class ValueOf>
  bool HoldsWhole(ValueOf&& value_of, bool* holds) const {
    int64_t a = 0, b = 0;
    if (!RunWhole(left_, value_of, &a) || !RunWhole(right_, value_of, &b)) return false;
    *holds = Compare(a, b);
    return true;
  }

  // Value of the left (or only) side. `value_of(index)` gives a variable's value.
  template <class ValueOf>
  Number Evaluate(ValueOf&& value_of) const {
    return Run(left_, value_of);
  }

  // A comparison is broken when its opposite is true: NaN breaks nothing.
  template <class ValueOf>
  bool Holds(ValueOf&& value_of) const {
    return Compare(Run(left_, value_of), Run(right_, value_of));
  }

 private:
  enum class Comparison { kNone, kEqual, kNotEqual, kAtMost, kAtLeast, kLess, kGreater };
  struct Step {  // postfix
    char op;     // 'n' number, 'v' variable, or + - * / %
    int64_t number = 0;
    int variable = -1;
  };
  using Steps = std::vector<Step>;
  static constexpr int kStack = 16;
  using Names = std::vector<std::string>;

  void ParseSum(Steps* out, const Names& names);
  void ParseProduct(Steps* out, const Names& names);
  void ParseAtom(Steps* out, const Names& names);
  bool Eat(std::string_view token);
  static bool TooDeep(const Steps& steps);
  static Number Apply(char op, Number a, Number b);

  template <class T>
  bool Compare(T a, T b) const {
    switch (comparison_) {
      case Comparison::kEqual:
        return !(a < b || a > b);
      case Comparison::kNotEqual:
        return !(a == b);
      case Comparison::kAtMost:
        return !(a > b);
      case Comparison::kAtLeast:
        return !(a < b);
      case Comparison::kLess:
        return !(a >= b);
      case Comparison::kGreater:
        return !(a <= b);
      case Comparison::kNone:
        break;
    }
    return a != 0;
  }

  // a = a op b; false when it does not fit.
  static bool ApplyWhole(char op, int64_t b, int64_t* a) {
    switch (op) {
      case '+':
        return !__builtin_add_overflow(*a, b, a);
      case '-':
        return !__builtin_sub_overflow(*a, b, a);
      case '*':
        return !__builtin_mul_overflow(*a, b, a);
      default:
        if (b == -1) return false;  // the one quotient that may not fit
        if (b == 0) {
          *a = 0;
        } else {
          *a = op == '/' ? *a / b : *a % b;
        }
        return true;
    }
  }

  template <class ValueOf>
  static bool RunWhole(const Steps& steps, ValueOf&& value_of, int64_t* result) {
    int64_t stack[kStack];
    int top = 0;
    for (const Step& step : steps) {
      if (step.op == 'v') {
        stack[top++] = value_of(step.variable);
      } else if (step.op == 'n') {
        stack[top++] = step.number;
      } else {
        --top;
        if (!ApplyWhole(step.op, stack[top], &stack[top - 1])) return false;
      }
    }
    *result = top > 0 ? stack[0] : 0;
    return true;
  }

  template <class ValueOf>
  static Number Run(const Steps& steps, ValueOf&& value_of) {
    Number stack[kStack] = {};
    int top = 0;
    for (const Step& step : steps) {
      if (step.op == 'n') {
        stack[top++] = static_cast<Number>(step.number);
      } else if (step.op == 'v') {
        stack[top++] = value_of(step.variable);
      } else {
        --top;
        stack[top - 1] = Apply(step.op, stack[top - 1], stack[top]);
      }
    }
    return stack[0];
  }

  std::string text_;
  std::string error_;
  size_t at_ = 0;
  Steps left_;
  Steps right_;
  Comparison comparison_ = Comparison::kNone;
  std::vector<int> variables_;
};

}  // namespace anyacl::contract

#endif  // ANYACL_CONTRACT_FORMULA_H_
