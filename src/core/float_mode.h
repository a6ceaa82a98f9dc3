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
      Set(kDefault);
  }
  ~DefaultFloatMode() {
    if (IsOther()) [[unlikely]]
      Set(before_);
  }
  DefaultFloatMode(const DefaultFloatMode&) = delete;
  DefaultFloatMode& operator=(const DefaultFloatMode&) = delete;

 private:
#if defined(__x86_64__)
  static constexpr uint64_t kDefault = 0x1f80;
  static constexpr uint64_t kFlags = 0x3f;  // what has happened is no mode
  static uint64_t Get() { return _mm_getcsr(); }
  static void Set(uint64_t mode) { _mm_setcsr(static_cast<unsigned>(mode)); }
#elif defined(__aarch64__)
  static constexpr uint64_t kDefault = 0;
  static constexpr uint64_t kFlags = 0;
  static uint64_t Get() {
    uint64_t mode;
    asm volatile("mrs %0, fpcr" : "=r"(mode));
    return mode;
  }
  static void Set(uint64_t mode) { asm volatile("msr fpcr, %0" ::"r"(mode)); }
#else
  static constexpr uint64_t kDefault = 0;
  static constexpr uint64_t kFlags = 0;
  static uint64_t Get() { return kDefault; }
  static void Set(uint64_t) {}
#endif
  bool IsOther() const { return (before_ & ~kFlags) != kDefault; }

  const uint64_t before_;
};

}  // namespace anyacl

#endif  // ANYACL_CORE_FLOAT_MODE_H_
