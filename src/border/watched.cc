// SPDX-License-Identifier: Apache-2.0
// Copyright The AnyACL Authors
#include "border/watched.h"

#include <fmt/format.h>
#include <sys/uio.h>
#include <unistd.h>

#include <string>
#include <vector>

#include "core/dtype.h"
#include "core/python_caller.h"
#include "runtime/memory.h"
#include "trace/faults.h"

namespace anyacl::border {
namespace {

constexpr uint64_t kMostContents = uint64_t{1} << 30;

bool IsHostMemory(const void* address) { return !runtime::MemoryMap::Get().Locate(address).is_device(); }

// As many bytes as can be read there: the call has not checked its arguments yet.
std::vector<char> ReadSafely(const void* address, uint64_t size) {
  std::vector<char> bytes(size);
  const iovec to{bytes.data(), size};
  const iovec from{const_cast<void*>(address), size};
  const ssize_t got = process_vm_readv(getpid(), &to, 1, &from, 1, 0);
  bytes.resize(got < 0 ? 0 : static_cast<size_t>(got));
  return bytes;
}

}  // namespace

uint64_t BytesOfDataType(int64_t data_type) {
  return static_cast<uint64_t>(SizeOf(static_cast<DType>(data_type)));
}

bool CanRead(const void* data, int64_t count, size_t size) {
  constexpr int64_t kFew = 32;
  if (count <= kFew) return true;
  uint64_t bytes;
  if (__builtin_mul_overflow(static_cast<uint64_t>(count), size, &bytes) || bytes > kMostContents) return false;
  return ReadSafely(data, bytes).size() == bytes;
}

void PutContents(const void* data, const Extent& extent, Record* record) {
  const uint64_t size = extent.Total();
  if (!data || size > kMostContents || !trace::IsOn(trace::kData) || !IsHostMemory(data)) {
    return record->PutPointer(data);
  }
  const std::vector<char> bytes = ReadSafely(data, size);
  record->Put(Value::kContents);
  record->Put(reinterpret_cast<uint64_t>(data));
  record->Put(static_cast<uint64_t>(bytes.size()));
  record->PutBytes(bytes.data(), bytes.size());
}

bool PutDigest(uint8_t param, const void* data, const Extent& extent, Record* record) {
  if (!data || !trace::IsOn(trace::kData) || !IsHostMemory(data)) return false;
  uint64_t digest = 0;
  const auto* row = static_cast<const char*>(data);
  for (int64_t i = 0; i < (extent.rows > 0 ? extent.rows : 1); ++i, row += extent.pitch) {
    digest = trace::Digest(row, static_cast<uint64_t>(extent.bytes), digest);
  }
  record->Put(param);
  record->Put(Value::kDigest);
  record->Put(digest);
  return true;
}

void PutEnd(bool failed, uint64_t texts_before, Record* record) {
  record->PutText(failed ? error_text::NewestSince(texts_before) : "");
  std::string file;
  int line = 0;
  PythonCaller(&file, &line);
  record->PutText(file);
  record->Put(static_cast<int32_t>(line));
}

int32_t FaultOf(const Function& function) {
  const std::string_view result = function.result;
  return function.status || result.ends_with('*') ? trace::FaultAtCall(function.name) : 0;
}

void TellFault(const Function& function, int32_t code) {
  Quietly([&] { error_text::Remember(Status(code, fmt::format("{}: ANYACL_FAIL makes this call fail", function.name))); });
  const std::string_view result = function.result;
  if (result == "aclError") error_text::SetLastRuntimeCode(code);
  if (result == "aclnnStatus") error_text::SetLastRuntimeCode(0);
}

}  // namespace anyacl::border
