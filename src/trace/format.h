// SPDX-License-Identifier: Apache-2.0
// Copyright The AnyACL Authors
//
// What a trace file looks like: a header, then chunks, each written by one thread. A chunk holds records, each with its
// size in front; `used` grows with every record, so that a trace is whole whenever its program ends, however it ends.
// Numbers are little-endian and lie as this machine's do.
#ifndef ANYACL_TRACE_FORMAT_H_
#define ANYACL_TRACE_FORMAT_H_

#include <cstdint>

namespace anyacl::trace {

inline constexpr char kMagic[8] = {'A', 'n', 'y', 'A', 'C', 'L', 'T', '1'};
inline constexpr uint32_t kChunkMagic = 0x4b4e4843;
inline constexpr uint64_t kPage = 4096;  // headers and chunks are multiples of it

struct FileHeader {
  char magic[8];
  uint32_t process;
  uint32_t holds_data;     // whether contents were asked for
  int64_t wall_time;       // nanoseconds since 1970, at the same moment as
  int64_t steady_time;     // this one of the clock that records use
  char version[16];        // of the library
  char command[1024];      // words, each with its zero
  char environment[2048];  // of AnyACL's variables those that were set: NAME=value, each with its zero
};
static_assert(sizeof(FileHeader) <= kPage);

struct ChunkHeader {
  uint32_t magic;
  uint32_t thread;
  uint64_t bytes;  // of the chunk, with this header
  uint64_t used;   // of it; written last
  char name[16];   // of the thread
  uint64_t handle; // of the thread: its pthread_t
};

// A record: uint32_t size of what follows, uint8_t kind, then
enum class Kind : uint8_t {
  kFunction = 1,  // u16 id, text name, text type of the result, u8 whether that is a status, u8 n, n times: text name, text type
  kCall = 2,      // u16 id, u64 ticket, i64 time, values of all parameters
  kReturn = 3,    // u64 ticket of the call, u64 ticket, i64 time, u8 n, n times: u8 parameter, value after the call;
                  // value of the result, text of the error, text of the Python file, i32 line
  kWork = 4,      // u32 stream, text label, u64 bytes, i64 begin, i64 end, i32 code
};
// Tickets order what all threads do: one counter, at every call and at every return.

// A text is u16 length, then its bytes. A value is one of these letters, then
enum class Value : char {
  kNothing = '-',   // of a function without a result
  kNull = '0',
  kInteger = 'i',   // i64
  kReal = 'd',      // f64
  kText = 's',      // u32 length, bytes
  kPointer = 'p',   // u64
  kPlace = 'o',     // u64, where the call puts something
  kFunction = 'f',  // u64
  kPointers = 'h',  // u64 where, u32 count, as many u64
  kArray = 'a',     // u64 where, u8 letter of Element, u8 size of an element, u32 count, bytes
  kBytes = 'b',     // u64 where, or 0; u32 size, bytes
  kContents = 'c',  // u64 where, u64 size, bytes: what a copy reads
  kDigest = 'x',    // u64: of what a copy wrote
};
enum class Element : char { kSigned = 'i', kUnsigned = 'u', kReal = 'f' };

inline uint64_t Digest(const void* data, uint64_t size, uint64_t seed = 0) {
  const auto* const bytes = static_cast<const unsigned char*>(data);
  uint64_t hash = seed ^ 0xcbf29ce484222325;
  for (uint64_t i = 0; i < size; ++i) hash = (hash ^ bytes[i]) * 0x100000001b3;
  return hash;
}

}  // namespace anyacl::trace

#endif  // ANYACL_TRACE_FORMAT_H_
