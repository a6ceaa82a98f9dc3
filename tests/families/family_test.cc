// SPDX-License-Identifier: Apache-2.0
// Copyright The AnyACL Authors
//
// Every operator that has a subject (harness/family.h): right results in every layout, the same bits in all of them, with any
// number of threads and on every run; a code and a sentence for every rule of its contract that a small mistake can break.
// What the contract admits and no call covers fails.
//
// On a GPU operators without a kernel there are skipped, after they have said so.
//
//   family_test --gtest_filter=pointwise.aclnnAdd
//   family_test --engines=src/ops/engines.inc    writes anew which engines operators are made of
//   family_test --every=10                       each tenth call alone, and no checks that take all: for devices in a hurry
#include <fmt/format.h>
#include <gtest/gtest.h>

#include <algorithm>
#include <cstring>
#include <fstream>
#include <map>
#include <set>
#include <string>
#include <vector>

#include "abi/introspection.h"
#include "core/codes.h"
#include "cpu/parallel.h"
#include "cpu/targets.h"
#include "harness/call.h"
#include "harness/cases.h"
#include "harness/family.h"
#include "harness/session.h"
#include "ops/operators.h"
#include "plan/executor.h"
#include "run_tests.h"
#include "runtime/submit.h"
#include "sanitized.h"

namespace anyacl {
namespace {

using harness::Calls;
using harness::RunCall;
using harness::RunOptions;
using harness::RunResult;
using harness::Subject;
using harness::TestCall;

// Engines that the calls of an operator were planned with, by name.
using Engines = std::set<std::string>;
Engines seen_engines;
void SeePlan(const void* executor) {
  const Executor* const found = Executors().Get(executor);
  ASSERT_TRUE(found);
  for (const Plan::Step& step : found->plan->steps) seen_engines.insert(step.stem);
}

std::map<std::string, std::string> ListedEngines() {
  return {
#define ANYACL_ENGINES(op, engines) {#op, engines},
#include "ops/engines.inc"
#undef ANYACL_ENGINES
  };
}
std::map<std::string, std::string>& EnginesToWrite() {
  static auto* const rows = new std::map<std::string, std::string>(ListedEngines());
  return *rows;
}
const char* engines_file = nullptr;  // to be written
size_t every = 1;                    // of the calls

Engines EnginesOf(const std::string& op) {
  Engines engines;
  const std::map<std::string, std::string> rows = ListedEngines();
  const auto row = rows.find(op);
  const std::string text = row == rows.end() ? "" : row->second;
  for (size_t at = 0; at < text.size();) {
    const size_t end = std::min(text.find(' ', at), text.size());
    engines.insert(text.substr(at, end - at));
    at = end + 1;
  }
  return engines;
}

// Whether all engines of an operator have kernels on a backend.
bool RunsOn(const Backend& backend, const std::string& op) {
  const Engines engines = EnginesOf(op);
  return std::all_of(engines.begin(), engines.end(), [&](const std::string& stem) { return !backend.Kernels(stem.c_str()).empty(); });
}

const Operator* FindOperator(std::string_view name) {
  for (const Operator* op : Operators()) {
    if (name == op->contract.op()) return op;
  }
  return nullptr;
}

std::string NameOf(const Operator& op, const TestCall& call) {
  std::string text;
  for (size_t i = 0; i < call.args.size(); ++i) {
    const contract::ArgSpec& arg = call.args[i].spec;
    if (op.contract.args()[i].is_tensor() && !arg.null) {
      text += fmt::format(" {} {}{}", op.contract.args()[i].name, Name(arg.tensor.dtype), ToString(arg.tensor.dims));
    }
  }
  return call.label.empty() ? text : call.label + ":" + text;
}

// A sanitized build takes some, from the first to the last: what it looks for does not hang on each dtype.
std::vector<const TestCall*> Chosen(std::span<const TestCall> calls) {
  const size_t count = kSanitized ? std::min<size_t>(calls.size(), 8) : (calls.size() + every - 1) / every;
  std::vector<const TestCall*> chosen;
  for (size_t i = 0; i < count; ++i) chosen.push_back(&calls[count == 1 ? 0 : i * (calls.size() - 1) / (count - 1)]);
  return chosen;
}

class FamilyTest : public testing::Test {
 public:
  explicit FamilyTest(const Subject& subject) : subject_(subject) {}

  void TestBody() override {
    const Operator* const op = FindOperator(subject_.op);
    ASSERT_TRUE(op) << subject_.op << " is no operator";
    Calls calls(*op);
    subject_.sample(calls);
    ASSERT_FALSE(calls.all().empty());
    const Backend& backend = runtime::CurrentBackend();
    seen_engines.clear();
    if (!RunsOn(backend, subject_.op)) return CheckAbsenceOfKernels(*op, calls.all());
    const std::vector<const TestCall*> chosen = Chosen(calls.all());
    for (const TestCall* call : chosen) {
      SCOPED_TRACE(NameOf(*op, *call));
      CheckResults(*op, *call);
      if (engines_file) continue;
      if (backend.launches()) CheckAgain(*op, *call);
      else CheckThreadsAndTargets(*op, *call);
      if (testing::Test::HasFailure() && ++failures_ >= kMostFailures) return;
    }
    if (every > 1) return;
    const bool all = chosen.size() == calls.all().size();
    if (all) CheckEngines();
    if (engines_file) return;
    if (all) CheckCoverage(*op);
    CheckRefusals(*op, calls.all());
    CheckAbsence(*op, calls.all());
  }

 private:
  static constexpr int kMostFailures = 5;  // calls of one operator

  RunResult Run(const Operator& op, const TestCall& call, const char* layout, bool compare = true) {
    return RunCall(op, subject_, call, session_.stream(),
                   {.layout = layout, .compare = compare && !engines_file, .planned = SeePlan});
  }

  // The oracle speaks once for dense tensors and once for repeated ones; what else must have the same bits is compared to those.
  void CheckResults(const Operator& op, const TestCall& call) {
    dense_ = {};
    for (const char* layout : harness::kLayouts) {
      const bool is_dense = std::strcmp(layout, "dense") == 0;
      if (subject_.limits.dense_only && !is_dense) continue;
      const bool same_bits = !is_dense && subject_.limits.same_layout_bits && std::strcmp(layout, "expanded") != 0;
      RunResult result = Run(op, call, layout, /*compare=*/!same_bits);
      EXPECT_EQ(result.problem, "") << "layout " << layout;
      if (!result.problem.empty()) return;
      for (const auto& [arg, dtype] : result.types) seen_types_.insert({arg, dtype});
      for (size_t i = 0; i < result.strided.size(); ++i) {
        if (result.strided[i]) seen_strided_.insert(static_cast<int>(i));
      }
      EXPECT_TRUE(!same_bits || SameOutputs(result, dense_)) << "layout " << layout << " gives other bits than dense tensors";
      if (is_dense) dense_ = std::move(result);
    }
  }

  void CheckThreadsAndTargets(const Operator& op, const TestCall& call) {
    for (const int threads : {1, 3}) {
      cpu::SetMaxThreads(threads);
      EXPECT_TRUE(SameOutputs(Run(op, call, "dense", false), dense_)) << "other bits with " << threads << " threads";
    }
    cpu::SetMaxThreads(0);
    for (const std::string& target : cpu::UsableTargets()) {
      if (!cpu::ForceTarget(target)) continue;
      if (SameOutputs(Run(op, call, "dense", false), dense_)) continue;
      EXPECT_EQ(Run(op, call, "dense").problem, "") << "on " << target;
    }
    cpu::ForceTarget("");
  }

  void CheckAgain(const Operator& op, const TestCall& call) {
    EXPECT_TRUE(SameOutputs(Run(op, call, "dense", false), dense_)) << "other bits in another run";
  }

  // src/ops/engines.inc names what the calls were planned with: pages say by it what runs on a GPU.
  void CheckEngines() {
    const std::string engines = fmt::format("{}", fmt::join(seen_engines, " "));
    EnginesToWrite()[subject_.op] = engines;
    if (engines_file) return;
    EXPECT_EQ(fmt::format("{}", fmt::join(EnginesOf(subject_.op), " ")), engines)
        << "src/ops/engines.inc is not up to date; --engines=FILE writes it";
  }

  // An operator that has no kernels here says so, if not in every call.
  void CheckAbsenceOfKernels(const Operator& op, std::span<const TestCall> calls) {
    for (const TestCall& call : calls) {
      contract::CallSpec spec;
      for (const harness::TestArg& arg : call.args) spec.args.push_back(arg.spec);
      const harness::Refusal refusal = harness::PlanCall(op, spec);
      if (refusal.code == 0) continue;
      EXPECT_EQ(refusal.code, code::kNoKernel) << refusal.text;
      EXPECT_NE(refusal.text.find("no kernel"), std::string::npos) << refusal.text;
      GTEST_SKIP() << "no kernel on " << runtime::CurrentBackend().name();
    }
    ADD_FAILURE() << "all its calls have kernels, which src/ops/engines.inc does not know";
  }

  void CheckCoverage(const Operator& op) {
    const Calls probe(op);
    for (size_t i = 0; i < op.contract.args().size(); ++i) {
      const contract::Arg& arg = op.contract.args()[i];
      const int index = static_cast<int>(i);
      if (!arg.is_tensor() && !arg.is_tensor_list()) continue;
      for (const contract::Rule& rule : op.contract.rules()) {
        if (rule.kind != contract::RuleKind::kDTypeRows || rule.args.size() != 1 || std::strcmp(rule.args[0], arg.name) != 0) continue;
        for (DType t : probe.TypesOf(arg.name)) {
          EXPECT_TRUE(seen_types_.count({index, t})) << arg.name << " is never " << Name(t) << ", which the contract admits";
        }
      }
      // Results of a length that the data decide lie one behind the other; what must be absent lies nowhere.
      const bool absent = std::any_of(op.contract.rules().begin(), op.contract.rules().end(), [&](const contract::Rule& rule) {
        return rule.kind == contract::RuleKind::kNotGiven && std::strcmp(rule.args[0], arg.name) == 0;
      });
      const bool strided = absent || subject_.limits.dense_only || (subject_.limits.partial && arg.is_written()) || seen_strided_.count(index);
      EXPECT_TRUE(strided) << arg.name << " is never a strided view";
    }
  }

  // Without one of its optional arguments a call is planned or refused, in a sentence of its operator.
  void CheckAbsence(const Operator& op, std::span<const TestCall> calls) {
    for (const TestCall& call : calls) {
      contract::CallSpec spec;
      for (const harness::TestArg& arg : call.args) spec.args.push_back(arg.spec);
      for (size_t i = 0; i < spec.args.size(); ++i) {
        const contract::Arg& arg = op.contract.args()[i];
        if (!arg.optional || !arg.is_handle() || spec.args[i].null) continue;
        contract::CallSpec without = spec;
        without.args[i].null = true;
        const harness::Refusal refusal = harness::PlanCall(op, without);
        EXPECT_TRUE(refusal.code == 0 || refusal.text.find(fmt::format("): {}: ", op.contract.op())) != std::string::npos)
            << NameOf(op, call) << " without " << arg.name << ": " << refusal.code << " " << refusal.text;
      }
    }
  }

  // Every rule that a small change of a valid call breaks first: its code, the operator's name in the sentence, nothing made.
  void CheckRefusals(const Operator& op, std::span<const TestCall> calls) {
    std::set<int> broken;
    int tried = 0;
    for (const TestCall& call : calls) {
      if (++tried > 6) break;
      contract::CallSpec valid;
      for (const harness::TestArg& arg : call.args) valid.args.push_back(arg.spec);
      std::vector<int> unreached;
      for (const contract::Violation& violation : FindViolations(op.contract, valid, CurrentProduct(), &unreached)) {
        if (!broken.insert(violation.rule).second) continue;
        const contract::Rule& rule = op.contract.rules()[violation.rule];
        const harness::Refusal refusal = harness::PlanCall(op, violation.call);
        EXPECT_EQ(refusal.code, op.contract.CodeOf(rule)) << violation.change << ": " << refusal.text;
        EXPECT_NE(refusal.text.find(fmt::format("): {}: ", op.contract.op())), std::string::npos) << refusal.text;
        EXPECT_TRUE(refusal.results_cleared) << violation.change;
      }
    }
    EXPECT_FALSE(broken.empty()) << "no rule of the contract could be broken";
  }

  const Subject& subject_;
  RunResult dense_;  // of the present call
  harness::Session session_;
  std::set<std::pair<int, DType>> seen_types_;
  std::set<int> seen_strided_;
  int failures_ = 0;
};

// A name that is exported without being tested is a defect.
class CoverageTest : public testing::Test {
 public:
  void TestBody() override {
    std::set<std::string> tested;
    for (const harness::OperatorCases* cases : harness::AllCases()) tested.insert(cases->op);
    for (const Operator* op : Operators()) {
      const std::string name = op->contract.op();
      if (tested.count(name)) continue;
      const Subject* const subject = harness::FindSubject(name);
      EXPECT_TRUE(subject) << name << " has no subject in harness/families";
    }
    for (const std::string& name : DeclaredOperators().Names()) {
      EXPECT_TRUE(FindOperator(name)) << name << " is declared by a family but by no header";
    }
  }
};

// These families have kernels on every backend.
class GpuTest : public testing::Test {
 public:
  void TestBody() override {
    std::set<std::string> stems;
    for (const char* stem : anyacl_introspection_v1()->cuda_stems()) stems.insert(stem);
    for (const Operator* op : Operators()) {
      if (std::strcmp(op->family, "pointwise") != 0 && std::strcmp(op->family, "reduction") != 0) continue;
      for (const std::string& engine : EnginesOf(op->contract.op())) {
        EXPECT_TRUE(stems.count(engine)) << op->contract.op() << " has no kernel of " << engine << " on GPUs";
      }
    }
  }
};

void RegisterSubjects() {
  std::set<std::string> families;
#define ANYACL_SUBJECTS(name, family) families.insert(#family);
#include "harness/families.inc"
#undef ANYACL_SUBJECTS
  for (const std::string& family : families) {
    for (const Subject& subject : harness::SubjectsOf(family)) {
      testing::RegisterTest(family.c_str(), subject.op, nullptr, nullptr, __FILE__, __LINE__,
                            [&subject]() -> testing::Test* { return new FamilyTest(subject); });
    }
  }
  testing::RegisterTest("Coverage", "EveryOperatorHasASubject", nullptr, nullptr, __FILE__, __LINE__,
                        []() -> testing::Test* { return new CoverageTest; });
  testing::RegisterTest("Coverage", "KernelsForGpus", nullptr, nullptr, __FILE__, __LINE__,
                        []() -> testing::Test* { return new GpuTest; });
}

// Rows of operators that did not run stay as they were.
void WriteEngines() {
  std::ofstream file(engines_file);
  file << "// SPDX-License-Identifier: Apache-2.0\n// Copyright The AnyACL Authors\n//\n"
          "// Which engines the calls of each operator are planned with; written by `family_test --engines=FILE`, and a test fails\n"
          "// when it is stale. An operator runs on a backend that has kernels of all of them.\n";
  for (const auto& [op, engines] : EnginesToWrite()) file << fmt::format("ANYACL_ENGINES({}, \"{}\")\n", op, engines);
}

}  // namespace
}  // namespace anyacl

int main(int argc, char** argv) {
  testing::InitGoogleTest(&argc, argv);
  const std::string_view engines = "--engines=", every = "--every=";
  for (int i = 1; i < argc; ++i) {
    const std::string_view argument = argv[i];
    if (argument.starts_with(engines)) anyacl::engines_file = argv[i] + engines.size();
    if (argument.starts_with(every)) anyacl::every = std::max(1, std::atoi(argv[i] + every.size()));
  }
  anyacl::RegisterSubjects();
  const int result = anyacl::RunTests();
  if (anyacl::engines_file) anyacl::WriteEngines();
  return result;
}
