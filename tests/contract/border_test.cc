// SPDX-License-Identifier: Apache-2.0
// Copyright The AnyACL Authors
//
// Every rule of every operator, broken through the C border: derived from the tables, so a new rule
// is tested the day it is written.
#include <fmt/format.h>
#include <gtest/gtest.h>

#include <cstring>
#include <memory>
#include <set>
#include <string>
#include <vector>

#include "aclnn/aclnn_base.h"
#include "contract/violations.h"
#include "core/product.h"
#include "harness/call.h"
#include "harness/cases.h"
#include "harness/session.h"
#include "operators_with_cases.h"

namespace anyacl {
namespace {

using contract::ArgKind;
using contract::CallSpec;
using contract::Contract;
using contract::Rule;
using contract::RuleKind;
using contract::Violation;
using harness::Call;

// Rules that no call can break first: an earlier rule refuses everything they would refuse, or they
// refuse nothing on some products.
struct Shadowed {
  const char* op;
  RuleKind kind;
  const char* arg;
  contract::Products products;
};
constexpr Shadowed kShadowed[] = {
    // FLOAT, FLOAT16 and BF16 convert to exactly the dtypes that gradInput may have; only where
    // BF16 is excluded does this rule say more than the one about conversion before it.
    {"aclnnEluBackward", RuleKind::kDTypeRows, "gradInput", contract::kNewer},
    // "must have rows, except on Ascend 950".
    {"aclnnRmsNormGrad", RuleKind::kCustom, "x", contract::kOnly950},
};

bool IsShadowed(const Contract& contract, const Rule& rule, Product product) {
  for (const Shadowed& s : kShadowed) {
    if (std::strcmp(s.op, contract.op()) == 0 && s.kind == rule.kind &&
        std::strcmp(s.arg, rule.args.empty() ? "" : rule.args[0]) == 0 && s.products.Has(product)) {
      return true;
    }
  }
  return false;
}

bool IsAvailable(const Contract& contract, Product product) {
  for (const Rule& rule : contract.rules()) {
    if (rule.kind == RuleKind::kSupported && !rule.products.Has(product)) return false;
  }
  return true;
}

// Whether some call must break this rule first on this product.
bool MustBeReached(const Contract& contract, int index, Product product) {
  const Rule& rule = contract.rules()[index];
  if (rule.kind == RuleKind::kAcceptIfEmpty || IsShadowed(contract, rule, product)) return false;
  if (rule.kind == RuleKind::kSupported) return !rule.products.Has(product);
  for (int i = 0; i < index; ++i) {
    const Rule& earlier = contract.rules()[i];
    if (earlier.kind == RuleKind::kSupported && !earlier.products.Has(product)) return false;
  }
  return true;
}

std::string ValueText(const Contract& contract, const std::string& name, const CallSpec& call) {
  const int arg = contract.ArgIndex(name.c_str());
  if (arg < 0) return name;  // a named size
  const contract::ArgSpec& a = call.args[arg];
  switch (contract.args()[arg].kind) {
    case ArgKind::kInt:
      return fmt::format("{}={}", name, a.integer);
    case ArgKind::kReal:
      return fmt::format("{}={}", name, a.real);
    case ArgKind::kBool:
      return fmt::format("{}={}", name, a.flag ? 1 : 0);
    case ArgKind::kScalar:
      return fmt::format("{}={}", name, a.scalar.AsFloat());
    default:
      return name;
  }
}

// What the sentence must contain besides the operator: the argument the rule is about and what it
// got.
std::vector<std::string> MustMention(const Contract& contract, const Rule& rule,
                                     const CallSpec& call, Product product) {
  if (rule.kind == RuleKind::kSupported) return {Name(product)};
  std::vector<std::string> words = {rule.args[0]};
  const auto spec = [&](const char* name) { return call.args[contract.ArgIndex(name)]; };
  for (const char* name : rule.args) {
    const contract::ArgSpec arg = spec(name);
    if (arg.null) continue;
    switch (rule.kind) {
      case RuleKind::kDTypeRows:
      case RuleKind::kSameDType:
      case RuleKind::kConvertsTo:
        words.insert(words.end(), {name, Name(arg.tensor.dtype)});
        break;
      case RuleKind::kScalarConvertsTo:
        words.push_back(Name(arg.scalar.dtype));
        break;
      case RuleKind::kPublicFormat:
      case RuleKind::kFormats:
        words.push_back(Name(arg.tensor.format));
        break;
      case RuleKind::kRank:
      case RuleKind::kShape:
      case RuleKind::kNumel:
      case RuleKind::kSameShape:
        words.insert(words.end(), {name, ToString(arg.tensor.dims)});
        break;
      case RuleKind::kRequire:
        words.push_back(ValueText(contract, name, call));
        break;
      default:
        break;
    }
  }
  return words;
}

const char* ClassOf(int32_t code) {
  return code / 1000 == 161 ? "AclNN_Parameter_Error(EZ1001): " : "(EZ9999): ";
}

std::string TakeText() {
  const char* const text = aclGetRecentErrMsg();
  return text ? text : "";
}

// Phase 1 with result variables that hold rubbish, as in many samples.
struct Answer {
  int32_t code = 0;
  uint64_t size = 0xdeadbeef;
  void* executor = &size;
  std::string text;
};

Answer Phase1(const Operator& op, std::span<const RawArg> args) {
  TakeText();
  Answer answer;
  answer.code = op.entry->get_workspace_size(args.data(), &answer.size, &answer.executor);
  answer.text = TakeText();
  return answer;
}

void ExpectRefused(const Answer& answer, int32_t code, const std::string& sentence) {
  EXPECT_EQ(answer.code, code);
  EXPECT_EQ(answer.size, 0u);
  EXPECT_EQ(answer.executor, nullptr);
  EXPECT_NE(answer.text.find(ClassOf(code) + sentence), std::string::npos)
      << "wanted: " << ClassOf(code) << sentence << "\n   got: " << answer.text;
  EXPECT_EQ(aclGetRecentErrMsg(), nullptr) << "the text is handed out once";
}

class BorderTest : public testing::Test {
 protected:
  void TearDown() override { SetCurrentProduct(Product::kAscend950); }

  void ExpectViolation(const Operator& op, const Violation& violation, Product product) {
    const Rule& rule = op.contract.rules()[violation.rule];
    SCOPED_TRACE(fmt::format("{} on {}: {} breaks rule {} ({})", op.contract.op(), Name(product),
                             violation.change, violation.rule,
                             op.contract.Describe(rule, product)));
    const Status expected = op.contract.Check(violation.call.Bind(op.contract), product);
    for (const std::string& word : MustMention(op.contract, rule, violation.call, product)) {
      EXPECT_NE(expected.message().find(word), std::string::npos)
          << "'" << word << "' is missing in: " << expected.message();
    }
    EXPECT_EQ(expected.message().rfind(op.contract.op(), 0), 0u) << expected.message();
    const Call call(op, violation.call);
    ExpectRefused(Phase1(op, call.raw()), op.contract.CodeOf(rule), expected.message());
  }

  harness::Session session_;
};

TEST_F(BorderTest, EveryRuleOfEveryTableRefuses) {
  for (const Operator* op : OperatorsWithCases()) {
    const harness::OperatorCases& cases = harness::CasesOf(op->contract.op());
    for (Product product : kProducts) {
      SetCurrentProduct(product);
      std::set<int> reached;
      for (const harness::Case& row : cases.cases) {
        if (!row.Has("small")) continue;
        for (const harness::TypeChoice& types : cases.types) {
          if (!types.bench) continue;
          const CallSpec valid = harness::MakeCall(op->contract, cases, row, types).spec;
          std::vector<int> unreached;
          for (const Violation& v : FindViolations(op->contract, valid, product, &unreached)) {
            ExpectViolation(*op, v, product);
            reached.insert(v.rule);
          }
        }
      }
      for (int i = 0; i < static_cast<int>(op->contract.rules().size()); ++i) {
        EXPECT_EQ(reached.count(i) != 0, MustBeReached(op->contract, i, product))
            << op->contract.op() << " on " << Name(product) << ": rule " << i << " ("
            << op->contract.Describe(op->contract.rules()[i], product)
            << (reached.count(i) ? ") was thought to be unreachable" : ") was never broken");
      }
    }
  }
}

TEST_F(BorderTest, EveryCaseIsAcceptedWhereItsDTypesAre) {
  for (const Operator* op : OperatorsWithCases()) {
    const harness::OperatorCases& cases = harness::CasesOf(op->contract.op());
    for (Product product : kProducts) {
      SetCurrentProduct(product);
      for (const harness::TypeChoice& types : cases.types) {
        for (const harness::Case& row : cases.cases) {
          if (!row.Has("small")) continue;
          const harness::CaseCall made = harness::MakeCall(op->contract, cases, row, types);
          const int32_t expected = op->contract.Check(made.spec.Bind(op->contract), product).code();
          Call call(*op, made);
          EXPECT_EQ(call.Plan(), expected)
              << cases.op << " \"" << row.name << "\" " << types.label << " on " << Name(product);
          if (product == Product::kAscend950) {
            EXPECT_EQ(expected, 0) << cases.op << " " << types.label;
          }
        }
      }
    }
  }
}

bool UsesRow(const Contract& contract, const Rule& rule, const contract::TypeRow& row,
             const CallSpec& call) {
  for (size_t i = 0; i < rule.args.size(); ++i) {
    const contract::ArgSpec& arg = call.args[contract.ArgIndex(rule.args[i])];
    if (!arg.null && arg.tensor.dtype != row.types[i]) return false;
  }
  return true;
}

// Each row of each dtype table has a choice of dtypes that goes through the border with success.
TEST_F(BorderTest, EveryDTypeRowIsAccepted) {
  for (const Operator* op : OperatorsWithCases()) {
    const harness::OperatorCases& cases = harness::CasesOf(op->contract.op());
    for (const Rule& rule : op->contract.rules()) {
      for (const contract::TypeRow& row : rule.rows) {
        for (Product product : kProducts) {
          if (!row.products.Has(product) || !IsAvailable(op->contract, product)) continue;
          SetCurrentProduct(product);
          int accepted = 0;
          for (const harness::TypeChoice& types : cases.types) {
            const CallSpec spec =
                harness::MakeCall(op->contract, cases, cases.cases.back(), types).spec;
            if (!UsesRow(op->contract, rule, row, spec)) continue;
            Call call(*op, spec);
            accepted += call.Plan() == 0;
          }
          EXPECT_GT(accepted, 0) << op->contract.op() << " on " << Name(product) << ": "
                                 << op->contract.Describe(rule, product);
        }
      }
    }
  }
}

TEST_F(BorderTest, TheCFunctionTakesWhatTheTableSays) {
  // The original is loose with const on outputs: a tensor is all that can be said.
  const auto plain = [](ArgKind kind) {
    return contract::IsTensor(kind) ? ArgKind::kInput : contract::IsTensorList(kind) ? ArgKind::kInputList : kind;
  };
  for (const Operator* op : Operators()) {
    ASSERT_EQ(op->entry->args.size(), op->contract.args().size()) << op->contract.op();
    for (size_t i = 0; i < op->entry->args.size(); ++i) {
      EXPECT_EQ(plain(op->entry->args[i].kind), plain(op->contract.args()[i].kind))
          << op->contract.op() << " argument " << i;
      EXPECT_STREQ(op->entry->args[i].name, op->contract.args()[i].name) << op->contract.op() << " argument " << i;
    }
  }
}

// A declared function without an operator throws at its first call; an operator without one is never called.
TEST_F(BorderTest, EveryDeclaredFunctionHasAnOperator) {
  std::vector<std::string> declared;
  for (const Entry& entry : Entries()) declared.push_back(entry.op);
  EXPECT_EQ(declared, DeclaredOperators().Names());
}

std::unique_ptr<Call> SmallCall(const Operator& op) {
  const harness::OperatorCases& cases = harness::CasesOf(op.contract.op());
  return std::make_unique<Call>(
      op, harness::MakeCall(op.contract, cases, cases.cases.back(), cases.types[0]));
}

// The result pointers are tested where the table says: before every argument, or after the null
// checks.
TEST_F(BorderTest, NullResultPointers) {
  for (const Operator* op : OperatorsWithCases()) {
    const std::unique_ptr<Call> call = SmallCall(*op);
    const std::vector<RawArg> nothing(call->raw().size());
    const bool first = op->contract.table().result_pointers == contract::ResultPointers::kFirst;
    const std::string name = op->contract.op();
    uint64_t size = 7;
    void* executor = &size;
    for (const RawArg* args : {call->raw().data(), nothing.data()}) {
      const bool about_results = first || args != nothing.data();
      TakeText();
      EXPECT_EQ(op->entry->get_workspace_size(args, nullptr, &executor), 161001);
      EXPECT_EQ(TakeText().find(name + "GetWorkspaceSize: workspaceSize must not be null") !=
                    std::string::npos,
                about_results);
      EXPECT_EQ(executor, nullptr);
      EXPECT_EQ(op->entry->get_workspace_size(args, &size, nullptr), 161001);
      EXPECT_EQ(TakeText().find(name + "GetWorkspaceSize: executor must not be null") !=
                    std::string::npos,
                about_results);
      EXPECT_EQ(size, 0u);
      EXPECT_EQ(op->entry->get_workspace_size(args, nullptr, nullptr), 161001);
      size = 7;
      executor = &size;
    }
  }
}

// A handle that was alive a moment ago, of the kind the argument wants.
const void* DeadHandle(ArgKind kind) {
  float value = 1;
  switch (kind) {
    case ArgKind::kInput:
    case ArgKind::kOutput: {
      aclTensor* t =
          aclCreateTensor(nullptr, 0, ACL_FLOAT, nullptr, 0, ACL_FORMAT_ND, nullptr, 0, nullptr);
      EXPECT_EQ(aclDestroyTensor(t), 0);
      return t;
    }
    case ArgKind::kScalar: {
      aclScalar* s = aclCreateScalar(&value, ACL_FLOAT);
      EXPECT_EQ(aclDestroyScalar(s), 0);
      return s;
    }
    case ArgKind::kBoolArray: {
      aclBoolArray* a = aclCreateBoolArray(nullptr, 0);
      EXPECT_EQ(aclDestroyBoolArray(a), 0);
      return a;
    }
    case ArgKind::kIntArray: {
      aclIntArray* a = aclCreateIntArray(nullptr, 0);
      EXPECT_EQ(aclDestroyIntArray(a), 0);
      return a;
    }
    default:
      return nullptr;
  }
}

TEST_F(BorderTest, DeadAndForeignHandles) {
  int64_t memory[64] = {};
  aclFloatArray* const other_kind = aclCreateFloatArray(nullptr, 0);
  for (const Operator* op : OperatorsWithCases()) {
    const std::unique_ptr<Call> call = SmallCall(*op);
    for (size_t i = 0; i < call->raw().size(); ++i) {
      const contract::Arg& arg = op->contract.args()[i];
      if (!arg.is_handle()) continue;
      const void* const alive = call->raw()[i].handle;
      const auto bits = reinterpret_cast<uintptr_t>(alive);
      const void* const made_up[] = {
          DeadHandle(arg.kind),
          memory,                                       // the program's own memory
          reinterpret_cast<const void*>(uintptr_t{8}),  // nobody's
          reinterpret_cast<const void*>(~uintptr_t{0}),
          reinterpret_cast<const void*>(bits + 1),
          reinterpret_cast<const void*>(bits ^ (uintptr_t{1} << 27)),  // a slot far away
          reinterpret_cast<const void*>(bits + (uintptr_t{2} << 28)),  // a later life of this slot
          other_kind,
      };
      for (const void* handle : made_up) {
        std::vector<RawArg> args(call->raw().begin(), call->raw().end());
        args[i].handle = handle;
        SCOPED_TRACE(fmt::format("{} {} = {}", op->contract.op(), arg.name, handle));
        ExpectRefused(Phase1(*op, args), 161002,
                      fmt::format("{}: {} is not a live ", op->contract.op(), arg.name));
      }
    }
  }
  aclDestroyFloatArray(other_kind);
}

}  // namespace
}  // namespace anyacl
