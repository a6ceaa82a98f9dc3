// SPDX-License-Identifier: Apache-2.0
// Copyright The AnyACL Authors
//
// The floating-point mode that results are promised in: rounding to nearest even, subnormals kept, no traps. Programs
// may run in another one (-Ofast sets it at start-up), and threads inherit it from whoever starts them.
#ifndef ANYACL_CORE_FLOAT_MODE_H_
#define ANYACL_CORE_FLOAT_MODE_H_

#include <cstdint>

#ifdef __x86_64__
#include <xmmintrin.h>
#endif

namespace anyacl {

// The default mode, as long as this lives.
class DefaultFloatMode {
 public:
  DefaultFloatMode() : before_(Get()) {
    if (IsOther()) [[unlikely]]
      SetDefault();
  }
  ~DefaultFloatMode() {
    if (IsOther()) [[unlikely]]
      Restore();
  }
  DefaultFloatMode(const DefaultFloatMode&) = delete;
  DefaultFloatMode& operator=(const DefaultFloatMode&) = delete;

 private:
#if defined(__x86_64__)
  // Of SSE and, in the upper half, of the x87 unit, which long double uses.
  static constexpr uint32_t kSse = 0x1f80;
  static constexpr uint16_t kX87 = 0x037f;
  static constexpr uint64_t kDefault = uint64_t{kX87} << 32 | kSse;
  static constexpr uint64_t kFlags = 0x3f;  // what has happened is no mode
  static uint64_t Get() {
    uint16_t x87;
    asm volatile("fnstcw %0" : "=m"(x87));
    return uint64_t{x87} << 32 | _mm_getcsr();
  }
  void SetDefault() {
    asm volatile("fnstenv %0" : "=m"(x87_));
    asm volatile("fldcw %0" ::"m"(kX87));
    _mm_setcsr(kSse);
  }
  // What happened in between would trap later in the x87 unit; with its old flags it does not.
  void Restore() {
    asm volatile("fldenv %0" ::"m"(x87_));
    _mm_setcsr(static_cast<uint32_t>(before_));
  }
  struct X87Environment {
    uint32_t words[7];
  };
  X87Environment x87_;  // only where the mode is another one
#elif defined(__aarch64__)
  static constexpr uint64_t kDefault = 0;
  static constexpr uint64_t kFlags = 0;
  static uint64_t Get() {
    uint64_t mode;
    asm volatile("mrs %0, fpcr" : "=r"(mode));
    return mode;
  }
  static void Set(uint64_t mode) { asm volatile("msr fpcr, %0" ::"r"(mode)); }
  static void SetDefault() { Set(kDefault); }
  void Restore() const { Set(before_); }
#else
  static constexpr uint64_t kDefault = 0;
  static constexpr uint64_t kFlags = 0;
  static uint64_t Get() { return kDefault; }
  static void SetDefault() {}
  static void Restore() {}
#endif
  bool IsOther() const { return (before_ & ~kFlags) != kDefault; }

  const uint64_t before_;
};

}  // namespace anyacl

#endif  // ANYACL_CORE_FLOAT_MODE_H_
