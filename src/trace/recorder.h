// SPDX-License-Identifier: Apache-2.0
// Copyright The AnyACL Authors
//
// Writes the records of format.h. Threads write into pages of their own, mapped from the file: no lock, no system call,
// and nothing is lost when the program dies.
#ifndef ANYACL_TRACE_RECORDER_H_
#define ANYACL_TRACE_RECORDER_H_

#include <atomic>
#include <cstdint>
#include <cstring>
#include <span>
#include <string_view>

#include "core/inline_vector.h"
#include "trace/format.h"

namespace anyacl::trace {

struct Param {
  const char* name;
  const char* type;     // as the header has it
  int8_t count = -1;    // parameter that says how many elements, or bytes, this one points to
  int8_t pitch = -1;    // of contents that lie in rows: bytes from one row to the next
  int8_t rows = -1;     //   and how many
  bool content = false; // points to what the call copies
};

// One public function. The description goes into the trace at its first call.
struct Function {
  const char* name;
  const char* result;
  bool status;  // whether that is a code
  bool waits;   // what it copies has been copied when it returns
  std::span<const Param> params;
  std::atomic<uint32_t> known{0};  // its number in the present file, and which file that is
};

// A record as it grows.
class Record {
 public:
  template <class T>
  void Put(T value) {
    const size_t at = bytes_.size();
    bytes_.resize(at + sizeof(T));
    std::memcpy(bytes_.data() + at, &value, sizeof(T));
  }
  void PutBytes(const void* data, size_t size) {
    if (size == 0) return;
    const size_t at = bytes_.size();
    bytes_.resize(at + size);
    std::memcpy(bytes_.data() + at, data, size);
  }
  void PutText(std::string_view text) {
    const auto size = static_cast<uint16_t>(text.size() < UINT16_MAX ? text.size() : UINT16_MAX);
    Put(size);
    PutBytes(text.data(), size);
  }
  void PutInteger(int64_t value) {
    Put(Value::kInteger);
    Put(value);
  }
  void PutPointer(const void* value) {
    if (!value) return Put(Value::kNull);
    Put(Value::kPointer);
    Put(reinterpret_cast<uint64_t>(value));
  }
  void PutString(const char* value) {
    if (!value) return Put(Value::kNull);
    Put(Value::kText);
    Put(static_cast<uint32_t>(std::strlen(value)));
    PutBytes(value, std::strlen(value));
  }
  std::span<const char> bytes() const { return bytes_; }

 private:
  InlineVector<char, 512> bytes_;
};

// False, and a line on standard error, when it cannot be written. A file that another process writes gets a sibling with
// the number of this process behind its name; so does that of a forked child.
bool OpenTrace(const char* path, bool with_data);

// Begins the record of a call; the caller adds the values of the parameters and gives it to Append. Returns its ticket.
uint64_t BeginCall(Function& function, Record* record);
void BeginReturn(uint64_t call, Record* record);
void Append(const Record& record);

int64_t Now();
void AppendWork(uint32_t stream, const char* label, uint64_t bytes, int64_t begin, int64_t end, int32_t code);

}  // namespace anyacl::trace

#endif  // ANYACL_TRACE_RECORDER_H_
