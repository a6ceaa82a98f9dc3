// SPDX-License-Identifier: Apache-2.0
// Copyright The AnyACL Authors
#include "trace/recorder.h"

#include <errno.h>
#include <fcntl.h>
#include <pthread.h>
#include <sys/file.h>
#include <sys/mman.h>
#include <sys/stat.h>
#include <sys/syscall.h>
#include <unistd.h>

#include <algorithm>
#include <cstdio>
#include <cstdlib>
#include <ctime>
#include <mutex>
#include <string>

#include "core/env.h"
#include "core/locks.h"
#include "core/once.h"
#include "core/thread_value.h"
#include "trace/switches.h"

namespace anyacl::trace {
namespace {

constexpr uint64_t kChunkBytes = 256 * 1024;

struct File {
  std::string path;
  bool with_data = false;
  bool forked = false;                  // since path was given
  int descriptor = -1;                  // these two are guarded by kTrace
  uint64_t end = 0;
  std::atomic<uint32_t> generation{0};  // counts files; 0: none
  std::atomic<uint32_t> functions{0};   // in the present one
  std::atomic<uint64_t> tickets{0};
};
File& TheFile() { return TheOne<File>(); }

// The pages that the calling thread writes to.
struct Pages {
  ChunkHeader* chunk = nullptr;
  uint32_t generation = 0;

  ~Pages() { Leave(); }
  void Leave() {
    if (chunk && generation == TheFile().generation.load(std::memory_order_relaxed)) munmap(chunk, chunk->bytes);
    chunk = nullptr;  // a parent's is not mapped in its child
  }
};

void Complain(const std::string& path, const char* why) {
  std::fprintf(stderr, "anyacl: the trace %s cannot be written: %s\n", path.c_str(), why);
}

// A trace, or nothing yet: what somebody keeps under that name by mistake stays.
bool MayOverwrite(int descriptor) {
  struct stat facts;
  if (fstat(descriptor, &facts) != 0 || !S_ISREG(facts.st_mode)) return false;
  char magic[sizeof(kMagic)] = {};
  return facts.st_size == 0 || (pread(descriptor, magic, sizeof(magic), 0) == sizeof(magic) &&
                                std::memcmp(magic, kMagic, sizeof(magic)) == 0);
}

int Open(const std::string& path) {
  return open(path.c_str(), O_RDWR | O_CREAT | O_NOFOLLOW | O_CLOEXEC | O_NONBLOCK, S_IRUSR | S_IWUSR | S_IRGRP);
}

bool IsLockedByUs(int descriptor) { return flock(descriptor, LOCK_EX | LOCK_NB) == 0; }

int64_t NanosecondsOf(clockid_t clock) {
  timespec now{};
  clock_gettime(clock, &now);
  return int64_t{1'000'000'000} * now.tv_sec + now.tv_nsec;
}

FileHeader MakeHeader(bool with_data) {
  FileHeader header{};
  std::memcpy(header.magic, kMagic, sizeof(kMagic));
  header.process = static_cast<uint32_t>(getpid());
  header.holds_data = with_data;
  header.wall_time = NanosecondsOf(CLOCK_REALTIME);
  header.steady_time = NanosecondsOf(CLOCK_MONOTONIC);
  std::snprintf(header.version, sizeof(header.version), "%s", ANYACL_VERSION);
  size_t used = 0;
  for (const env::Description& variable : env::All()) {
    const char* const value = std::getenv(variable.name);
    const size_t room = sizeof(header.environment) - used;
    if (!value || !*value || std::strstr(variable.name, "TRACE") || std::strstr(variable.name, "LOG")) continue;
    const int length = std::snprintf(header.environment + used, room, "%s=%s", variable.name, value);
    if (length < 0 || static_cast<size_t>(length) + 1 >= room) break;
    used += static_cast<size_t>(length) + 1;
  }
  const int words = open("/proc/self/cmdline", O_RDONLY | O_CLOEXEC);
  if (words >= 0) {
    [[maybe_unused]] const ssize_t got = read(words, header.command, sizeof(header.command) - 1);
    close(words);
  }
  return header;
}

// With kTrace.
bool OpenLocked(File& file) {
  std::string path = file.path;
  const std::string own = path + "." + std::to_string(getpid());
  int descriptor = Open(file.forked ? own : path);
  if (descriptor >= 0 && !IsLockedByUs(descriptor)) {
    close(descriptor);
    descriptor = Open(own);
    path = own;
  }
  if (descriptor < 0) {
    Complain(path, std::strerror(errno));
    return false;
  }
  const FileHeader header = MakeHeader(file.with_data);
  const bool may = MayOverwrite(descriptor);
  if (!may || ftruncate(descriptor, 0) != 0 || pwrite(descriptor, &header, sizeof(header), 0) != sizeof(header)) {
    Complain(path, may ? std::strerror(errno) : "it is something else than a trace");
    close(descriptor);
    return false;
  }
  file.descriptor = descriptor;
  file.end = kPage;
  file.functions.store(0, std::memory_order_relaxed);
  file.generation.fetch_add(1, std::memory_order_relaxed);
  return true;
}

// The child of a fork writes a file of its own, from its next call on.
[[maybe_unused]] const int mends = [] {
  InForkedChild(Lock::kTrace, [] {
    if ((switches.load(std::memory_order_relaxed) & kTrace) == 0) return;
    File& file = TheFile();
    if (file.descriptor >= 0) close(file.descriptor);
    file.descriptor = -1;
    file.forked = true;
    if (!OpenLocked(file)) SwitchOff(kTrace | kData);
  });
  return 0;
}();

// Room for a record of that size. Blocks are reserved, because a full disk would be a signal in the middle of a call.
ChunkHeader* NewChunk(File& file, uint64_t record_bytes) {
  const uint64_t needed = sizeof(ChunkHeader) + record_bytes;
  const uint64_t bytes = std::max(kChunkBytes, (needed + kPage - 1) / kPage * kPage);
  const std::lock_guard lock(LockOf(Lock::kTrace));
  if (file.descriptor < 0) return nullptr;
  const int problem = posix_fallocate(file.descriptor, static_cast<off_t>(file.end), static_cast<off_t>(bytes));
  void* const pages = problem ? MAP_FAILED
                              : mmap(nullptr, bytes, PROT_READ | PROT_WRITE, MAP_SHARED, file.descriptor,
                                     static_cast<off_t>(file.end));
  if (pages == MAP_FAILED) {
    Complain(file.path, std::strerror(problem ? problem : errno));
    SwitchOff(kTrace | kData);
    return nullptr;
  }
  madvise(pages, bytes, MADV_DONTFORK);
  file.end += bytes;
  auto* const chunk = static_cast<ChunkHeader*>(pages);
  chunk->thread = static_cast<uint32_t>(syscall(SYS_gettid));
  pthread_getname_np(pthread_self(), chunk->name, sizeof(chunk->name));
  chunk->handle = reinterpret_cast<uint64_t>(pthread_self());
  chunk->bytes = bytes;
  chunk->used = sizeof(ChunkHeader);
  std::atomic_ref(chunk->magic).store(kChunkMagic, std::memory_order_release);
  return chunk;
}

// Of the calling thread, with room for so many bytes; null when there is none.
ChunkHeader* ChunkWith(uint64_t record_bytes) {
  Pages* const pages = ThreadValue<Pages>();
  if (!pages) return nullptr;
  File& file = TheFile();
  const uint32_t generation = file.generation.load(std::memory_order_relaxed);
  if (pages->generation != generation) pages->Leave();
  pages->generation = generation;
  if (pages->chunk && pages->chunk->bytes - pages->chunk->used >= record_bytes) return pages->chunk;
  pages->Leave();
  return pages->chunk = NewChunk(file, record_bytes);
}

void Describe(const Function& function, uint16_t number) {
  Record record;
  record.Put(Kind::kFunction);
  record.Put(number);
  record.PutText(function.name);
  record.PutText(function.result);
  record.Put(static_cast<uint8_t>(function.status));
  record.Put(static_cast<uint8_t>(function.params.size()));
  for (const Param& param : function.params) {
    record.PutText(param.name);
    record.PutText(param.type);
  }
  Append(record);
}

// Two threads may describe it at once, under two numbers: one stays, both mean the same.
uint16_t NumberOf(Function& function) {
  File& file = TheFile();
  const uint32_t generation = file.generation.load(std::memory_order_relaxed) & 0xffff;
  const uint32_t known = function.known.load(std::memory_order_acquire);
  if (known >> 16 == generation && known != 0) [[likely]]
    return static_cast<uint16_t>(known);
  const auto number = static_cast<uint16_t>(file.functions.fetch_add(1, std::memory_order_relaxed));
  Describe(function, number);
  function.known.store(generation << 16 | number, std::memory_order_release);
  return number;
}

uint64_t Ticket() { return TheFile().tickets.fetch_add(1, std::memory_order_acq_rel); }

}  // namespace

bool OpenTrace(const char* path, bool with_data) {
  File& file = TheFile();
  file.path = path;
  file.with_data = with_data;
  const std::lock_guard lock(LockOf(Lock::kTrace));
  return OpenLocked(file);
}

int64_t Now() { return NanosecondsOf(CLOCK_MONOTONIC); }

uint64_t BeginCall(Function& function, Record* record) {
  record->Put(Kind::kCall);
  record->Put(NumberOf(function));
  const uint64_t ticket = Ticket();
  record->Put(ticket);
  record->Put(Now());
  return ticket;
}

void BeginReturn(uint64_t call, Record* record) {
  record->Put(Kind::kReturn);
  record->Put(call);
  record->Put(Ticket());
  record->Put(Now());
}

void Append(const Record& record) {
  const std::span<const char> bytes = record.bytes();
  const auto size = static_cast<uint32_t>(bytes.size());
  ChunkHeader* const chunk = ChunkWith(sizeof(size) + size);
  if (!chunk) return;
  char* const to = reinterpret_cast<char*>(chunk) + chunk->used;
  std::memcpy(to, &size, sizeof(size));
  std::memcpy(to + sizeof(size), bytes.data(), size);
  std::atomic_ref(chunk->used).store(chunk->used + sizeof(size) + size, std::memory_order_release);
}

void AppendWork(uint32_t stream, const char* label, uint64_t bytes, int64_t begin, int64_t end, int32_t code) {
  Record record;
  record.Put(Kind::kWork);
  record.Put(stream);
  record.PutText(label);
  record.Put(bytes);
  record.Put(begin);
  record.Put(end);
  record.Put(code);
  Append(record);
}

}  // namespace anyacl::trace
