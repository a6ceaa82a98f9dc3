// SPDX-License-Identifier: Apache-2.0
// Copyright The AnyACL Authors
#include "allocator.h"

#include <atomic>
#include <cerrno>
#include <cstdlib>
#include <new>

namespace anyacl::allocator {
namespace {

std::atomic<bool> watched{false};
std::atomic<int64_t> made{0};
std::atomic<int64_t> refused{0};
std::atomic<int64_t> live{0};
std::atomic<int64_t> first_refused{0};
std::atomic<bool> refuses_once{true};

// Whether this allocation is to succeed.
bool Allowed() {
  if (!watched.load(std::memory_order_relaxed)) return true;
  const int64_t number = made.fetch_add(1, std::memory_order_relaxed) + 1;
  const int64_t first = first_refused.load(std::memory_order_relaxed);
  if (first == 0 || number < first || (number > first && refuses_once.load(std::memory_order_relaxed))) return true;
  refused.fetch_add(1, std::memory_order_relaxed);
  return false;
}

void* Counted(void* memory) {
  if (memory) live.fetch_add(1, std::memory_order_relaxed);
  return memory;
}

void CountFree(void* memory) {
  if (memory) live.fetch_sub(1, std::memory_order_relaxed);
}

}  // namespace

void Refuse(int64_t first, bool once) {
  made = 0;
  refused = 0;
  first_refused = first;
  refuses_once = once;
}

Watch::Watch() { watched = true; }
Watch::~Watch() { watched = false; }

int64_t Made() { return made; }
int64_t Refused() { return refused; }
int64_t Live() { return live; }

}  // namespace anyacl::allocator

using anyacl::allocator::Allowed;
using anyacl::allocator::CountFree;
using anyacl::allocator::Counted;

#if defined(ANYACL_SANITIZE_address) || defined(ANYACL_SANITIZE_thread)
#pragma GCC diagnostic ignored "-Wmismatched-new-delete"  // new and delete below do match
void* operator new(size_t bytes) {
  void* const memory = Allowed() ? std::malloc(bytes ? bytes : 1) : nullptr;
  if (!memory) throw std::bad_alloc();
  return Counted(memory);
}
void* operator new(size_t bytes, const std::nothrow_t&) noexcept {
  return Allowed() ? Counted(std::malloc(bytes ? bytes : 1)) : nullptr;
}
void* operator new[](size_t bytes) { return operator new(bytes); }
void* operator new[](size_t bytes, const std::nothrow_t& nothrow) noexcept { return operator new(bytes, nothrow); }
void operator delete(void* memory) noexcept {
  CountFree(memory);
  std::free(memory);
}
void operator delete[](void* memory) noexcept { operator delete(memory); }
void operator delete(void* memory, size_t) noexcept { operator delete(memory); }
void operator delete[](void* memory, size_t) noexcept { operator delete(memory); }
#else
extern "C" {
void* __libc_malloc(size_t);
void* __libc_calloc(size_t, size_t);
void* __libc_realloc(void*, size_t);
void* __libc_memalign(size_t, size_t);
void __libc_free(void*);

static void* OutOfMemory() {
  errno = ENOMEM;
  return nullptr;
}

void* malloc(size_t bytes) noexcept { return Allowed() ? Counted(__libc_malloc(bytes)) : OutOfMemory(); }
void* calloc(size_t count, size_t bytes) noexcept {
  return Allowed() ? Counted(__libc_calloc(count, bytes)) : OutOfMemory();
}
void* realloc(void* memory, size_t bytes) noexcept {
  if (!Allowed()) return OutOfMemory();
  void* const moved = __libc_realloc(memory, bytes);
  if (moved || bytes == 0) CountFree(memory);
  return Counted(moved);
}
void* memalign(size_t alignment, size_t bytes) noexcept {
  return Allowed() ? Counted(__libc_memalign(alignment, bytes)) : OutOfMemory();
}
void* aligned_alloc(size_t alignment, size_t bytes) noexcept { return memalign(alignment, bytes); }
int posix_memalign(void** memory, size_t alignment, size_t bytes) noexcept {
  *memory = memalign(alignment, bytes);
  return *memory ? 0 : ENOMEM;
}
void free(void* memory) noexcept {
  CountFree(memory);
  __libc_free(memory);
}
}
#endif
