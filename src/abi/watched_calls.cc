// SPDX-License-Identifier: Apache-2.0
// Copyright The AnyACL Authors
#include "abi/watched_calls.h"

#include <deque>
#include <string>
#include <vector>

#include "border/watched.h"
#include "core/once.h"

namespace anyacl::abi {
namespace {

using border::Quietly;
using contract::ArgKind;
using trace::Function;
using trace::Param;
using trace::Record;
using trace::Value;

const char* TypeOf(ArgKind kind) {
  switch (kind) {
    case ArgKind::kInput:
      return "const aclTensor*";
    case ArgKind::kOutput:
    case ArgKind::kInOut:
      return "aclTensor*";
    case ArgKind::kInputList:
      return "const aclTensorList*";
    case ArgKind::kOutputList:
    case ArgKind::kInOutList:
      return "aclTensorList*";
    case ArgKind::kScalar:
      return "const aclScalar*";
    case ArgKind::kScalarList:
      return "const aclScalarList*";
    case ArgKind::kIntArray:
      return "const aclIntArray*";
    case ArgKind::kFloatArray:
      return "const aclFloatArray*";
    case ArgKind::kBoolArray:
      return "const aclBoolArray*";
    case ArgKind::kString:
      return "const char*";
    case ArgKind::kInt:
      return "int64_t";
    case ArgKind::kReal:
      return "double";
    case ArgKind::kBool:
      return "bool";
  }
  return "";
}

// What a trace says of one operator.
struct Described {
  explicit Described(const Entry& entry)
      : name(std::string(entry.op) + "GetWorkspaceSize"),
        params(ParamsOf(entry)),
        phase1{name.c_str(), "aclnnStatus", true, true, params},
        phase2{entry.op, "aclnnStatus", true, true, kPhase2} {}

  static std::vector<Param> ParamsOf(const Entry& entry) {
    std::vector<Param> params;
    for (const Entry::Arg& arg : entry.args) params.push_back({arg.name, TypeOf(arg.kind)});
    params.push_back({"workspaceSize", "uint64_t*"});
    params.push_back({"executor", "aclOpExecutor**"});
    return params;
  }
  static constexpr Param kPhase2[] = {{"workspace", "void*"},
                                      {"workspaceSize", "uint64_t"},
                                      {"executor", "aclOpExecutor*"},
                                      {"stream", "aclrtStream"}};

  const std::string name;
  const std::vector<Param> params;
  Function phase1;
  Function phase2;
};

struct AllDescribed {
  AllDescribed() {
    for (const Entry& entry : Entries()) each.emplace_back(entry);
  }
  std::deque<Described> each;
};
Described& DescribedAt(size_t entry) { return TheOne<AllDescribed>().each[entry]; }

void PutArgument(ArgKind kind, const RawArg& arg, Record* record) {
  switch (kind) {
    case ArgKind::kInt:
      return record->PutInteger(arg.integer);
    case ArgKind::kBool:
      return record->PutInteger(arg.flag);
    case ArgKind::kReal:
      record->Put(Value::kReal);
      return record->Put(arg.real);
    case ArgKind::kString:
      return record->PutString(static_cast<const char*>(arg.handle));
    default:
      return record->PutPointer(arg.handle);
  }
}

void PutPlace(const void* where, Record* record) {
  if (!where) return record->Put(Value::kNull);
  border::PutPlace(where, record);
}

void PutPhase1(const Entry& entry, std::span<const CallArg> args, const void* size, const void* executor,
               Record* record) {
  for (size_t i = 0; i < args.size(); ++i) PutArgument(entry.args[i].kind, args[i], record);
  PutPlace(size, record);
  PutPlace(executor, record);
}

void PutPhase1Results(size_t args, const uint64_t* size, aclOpExecutor* const* executor, Record* record) {
  record->Put(uint8_t{2});
  record->Put(static_cast<uint8_t>(args));
  record->PutInteger(static_cast<int64_t>(*size));
  record->Put(static_cast<uint8_t>(args + 1));
  record->PutPointer(*executor);
}

// Puts the record of the call around `call`.
template <class Call, class PutArguments, class PutResults>
aclnnStatus Traced(Function& function, Call&& call, PutArguments&& put_arguments, PutResults&& put_results) {
  const uint64_t texts = error_text::Count();
  uint64_t ticket = 0;
  const bool begun = Quietly([&] {
    Record record;
    ticket = trace::BeginCall(function, &record);
    put_arguments(&record);
    trace::Append(record);
  });
  const aclnnStatus status = call();
  if (begun) {
    Quietly([&] {
      Record record;
      trace::BeginReturn(ticket, &record);
      status == 0 ? put_results(&record) : record.Put(uint8_t{0});
      record.PutInteger(status);
      border::PutEnd(status != 0, texts, &record);
      trace::Append(record);
    });
  }
  return status;
}

// The call, or its failure on purpose.
template <class Call>
aclnnStatus CallOrFail(const Function& function, Call&& call) {
  const int32_t code = trace::IsOn(trace::kFaults) ? border::FaultOf(function) : 0;
  if (code == 0) return call();
  border::TellFault(function, code);
  return code;
}

// Null when there is no memory for it.
Described* Find(size_t entry) noexcept {
  Described* found = nullptr;
  Quietly([&] { found = &DescribedAt(entry); });
  return found;
}

}  // namespace

aclnnStatus Watch(Phase1 call, size_t entry, std::span<const CallArg> args, uint64_t* workspace_size,
                  aclOpExecutor** executor) noexcept {
  trace::Switches();
  Described* const described = Find(entry);
  if (!described) return call(entry, args, workspace_size, executor);
  const auto run = [&] {
    return CallOrFail(described->phase1, [&] { return call(entry, args, workspace_size, executor); });
  };
  if (!trace::IsOn(trace::kTrace)) return run();
  return Traced(
      described->phase1, run,
      [&](Record* record) { PutPhase1(Entries()[entry], args, workspace_size, executor, record); },
      [&](Record* record) { PutPhase1Results(args.size(), workspace_size, executor, record); });
}

aclnnStatus Watch(Phase2 call, size_t entry, void* workspace, uint64_t workspace_size, aclOpExecutor* executor,
                  void* stream) noexcept {
  trace::Switches();
  Described* const described = Find(entry);
  if (!described) return call(entry, workspace, workspace_size, executor, stream);
  const auto run = [&] {
    return CallOrFail(described->phase2, [&] { return call(entry, workspace, workspace_size, executor, stream); });
  };
  if (!trace::IsOn(trace::kTrace)) return run();
  return Traced(
      described->phase2, run,
      [&](Record* record) {
        record->PutPointer(workspace);
        record->PutInteger(static_cast<int64_t>(workspace_size));
        record->PutPointer(executor);
        record->PutPointer(stream);
      },
      [](Record* record) { record->Put(uint8_t{0}); });
}

}  // namespace anyacl::abi
