// SPDX-License-Identifier: Apache-2.0
// Copyright The AnyACL Authors
//
// The C border: nothing thrown crosses it, and every failure leaves its sentence behind.
#ifndef ANYACL_CORE_BORDER_H_
#define ANYACL_CORE_BORDER_H_

#include <cxxabi.h>

#include <exception>
#include <new>
#include <string>

#include "core/codes.h"
#include "core/error_text.h"
#include "core/float_mode.h"
#include "core/status.h"

namespace anyacl {

struct BorderCodes {
  int32_t out_of_memory;
  int32_t internal;
};
inline constexpr BorderCodes kAclnnBorder{code::kInner, code::kInner};
inline constexpr BorderCodes kAclBorder{code::kAclBadAlloc, code::kAclInternal};
// Of functions that give out memory: programs that allocate look for this code and try again with less.
inline constexpr BorderCodes kMemoryBorder{code::kRtOutOfMemory, code::kAclInternal};

// An exception in the catch block it ended in. Not for the end of a thread in a function of the user's, which travels as
// one and must go on.
inline int32_t CodeOfException(const char* function, BorderCodes codes) noexcept {
  try {
    throw;
  } catch (const std::bad_alloc&) {
    error_text::RememberShortage(codes.out_of_memory, function);
    return codes.out_of_memory;
  } catch (const std::exception& e) {
    try {
      error_text::Remember(Status(codes.internal, std::string(function) + ": " + e.what()));
    } catch (...) {
      error_text::RememberShortage(codes.internal, function);
    }
  } catch (...) {
  }
  return codes.internal;
}

// In place of DefaultFloatMode, for bodies that do no arithmetic unless they see to the mode themselves: asking the
// processor for it takes longer than many a call.
struct AnyFloatMode {};

// Runs `body` (which returns a Status) and gives its code to the C caller.
template <class Mode = DefaultFloatMode, class Body>
int32_t Border(const char* function, BorderCodes codes, Body&& body) {
  [[maybe_unused]] const Mode mode;
  try {
    const Status status = body();
    if (!status.ok()) [[unlikely]]
      error_text::Remember(status);
    return status.code();
  } catch (const __cxxabiv1::__forced_unwind&) {
    throw;
  } catch (...) {
    return CodeOfException(function, codes);
  }
}

// For acl and aclrt functions: also feeds aclrtGetLastError. "Not supported" is an answer that programs ask for to
// choose another way, and some of them take a last code for the cause of the next failure: it is never kept.
template <class Body>
int32_t AclBorder(const char* function, Body&& body, BorderCodes codes = kAclBorder) {
  const int32_t result = Border(function, codes, static_cast<Body&&>(body));
  if (result != 0 && result != code::kRtNotSupported) [[unlikely]]
    error_text::SetLastRuntimeCode(result);
  return result;
}

// For aclnn functions. A runtime failure from before this one, which the program has dealt with (an out-of-memory,
// say), must not be taken for its cause: the code of an operator is its own, and the last runtime code is none.
template <class Mode = DefaultFloatMode, class Body>
int32_t AclnnBorder(const char* function, Body&& body) {
  const int32_t result = Border<Mode>(function, kAclnnBorder, static_cast<Body&&>(body));
  if (result != 0) [[unlikely]]
    error_text::SetLastRuntimeCode(0);
  return result;
}

}  // namespace anyacl

#endif  // ANYACL_CORE_BORDER_H_
