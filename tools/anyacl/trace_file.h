// SPDX-License-Identifier: Apache-2.0
// Copyright The AnyACL Authors
//
// A trace in memory, and names for what its numbers mean.
#ifndef ANYACL_TOOLS_TRACE_FILE_H_
#define ANYACL_TOOLS_TRACE_FILE_H_

#include <cstdint>
#include <map>
#include <optional>
#include <string>
#include <utility>
#include <vector>

#include "trace/format.h"

namespace anyacl::tool {

// One value of a trace; which members count follows from its kind.
struct Traced {
  trace::Value kind = trace::Value::kNothing;
  int64_t integer = 0;
  double real = 0;
  uint64_t address = 0;  // of pointers, and where arrays, bytes and contents were
  std::string bytes;     // of texts, arrays, bytes and contents
  std::vector<uint64_t> pointers;
  trace::Element element = trace::Element::kSigned;
  uint32_t element_size = 1;

  // The n-th element of an array, as text.
  std::string ElementText(size_t n) const;
  int64_t Integer(size_t n) const;
  size_t elements() const { return bytes.size() / element_size; }
};

struct TracedFunction {
  struct Param {
    std::string name;
    std::string type;
  };
  std::string name;
  std::string result;
  bool is_status = false;
  std::vector<Param> params;

  int Find(const std::string& param) const;  // -1: it has none of that name
};

struct TracedCall {
  const TracedFunction* function = nullptr;
  uint32_t thread = 0;
  uint64_t ticket = 0;
  int64_t begin = 0;
  std::vector<Traced> args;
  bool returned = false;
  uint64_t return_ticket = 0;
  int64_t end = 0;
  std::map<size_t, Traced> after;  // by parameter
  Traced result;
  std::string error;
  std::string python_file;
  int python_line = 0;

  bool failed() const { return returned && function->is_status && result.integer != 0; }
  const Traced* Arg(const std::string& param) const;
  const Traced* After(const std::string& param) const;
};

struct TracedWork {
  uint32_t stream;
  std::string label;
  uint64_t bytes;
  int64_t begin;
  int64_t end;
  int32_t code;
};

struct TracedThread {
  std::string name;
  uint64_t handle;
};

struct Trace {
  trace::FileHeader header;
  std::map<uint16_t, TracedFunction> functions;
  std::vector<TracedCall> calls;  // in the order in which they began
  std::vector<TracedWork> work;
  std::map<uint32_t, TracedThread> threads;
};

// UserError when it is none.
Trace ReadTrace(const std::string& path);

// A range of memory that a call gave out.
struct MemoryRange {
  uint64_t begin;
  uint64_t bytes;
};
std::optional<MemoryRange> MemoryMadeBy(const TracedCall& call);

// Names for handles and addresses, given in the order in which they first appear: the same in every run of a program.
class Naming {
 public:
  // Takes note of what a call made or freed. For every call, in order; before its values are shown.
  void Learn(const TracedCall& call);

  // "mem#2+0x40", "stream#1", "tensor#7", "host#3".
  std::string NameOf(uint64_t value, const std::string& type);
  // With what it is: "tensor#7 FLOAT [2, 3] at mem#2".
  std::string Of(uint64_t value, const std::string& type);
  // An argument of that type.
  std::string Text(const Traced& value, const std::string& type);
  // "self=..., alpha=...": of a call.
  std::string Arguments(const TracedCall& call);
  std::string Results(const TracedCall& call);

 private:
  struct Memory {
    std::string name;
    uint64_t bytes;
    bool freed;
  };
  std::string Numbered(const std::string& kind) { return kind + "#" + std::to_string(++counts_[kind]); }
  std::string TensorText(const TracedCall& call);

  std::map<std::string, int> counts_;
  std::map<uint64_t, std::string> names_;
  std::map<uint64_t, std::string> descriptions_;  // of tensors, scalars, arrays
  std::map<uint64_t, Memory> memory_;
};

}  // namespace anyacl::tool

#endif  // ANYACL_TOOLS_TRACE_FILE_H_
