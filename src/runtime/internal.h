// SPDX-License-Identifier: Apache-2.0
// Copyright The AnyACL Authors
//
// What the files of this room share and nobody else needs.
#ifndef ANYACL_RUNTIME_INTERNAL_H_
#define ANYACL_RUNTIME_INTERNAL_H_

#include <fmt/format.h>

#include <cstdint>
#include <cstring>
#include <string>

#include "core/codes.h"
#include "core/status.h"
#include "runtime/context.h"
#include "runtime/stream.h"

namespace anyacl::runtime {

// "<function>: <sentence>" under a code.
template <class... Args>
Status Fail(int32_t code, const char* function, fmt::format_string<Args...> format,
            Args&&... args) {
  return Status(code,
                fmt::format("{}: {}", function, fmt::format(format, static_cast<Args&&>(args)...)));
}

// The number a C caller passed as an enumerator, which may be none of the type's own: reading it as the
// enum would be undefined.
template <class Enum>
int Number(const Enum& value) {
  static_assert(sizeof(Enum) == sizeof(int));
  int number = 0;
  std::memcpy(&number, &value, sizeof(number));
  return number;
}

inline Status RequireNotNull(const char* function, const char* argument, const void* pointer) {
  if (pointer) [[likely]]
    return Status();
  return Fail(code::kAclInvalidParam, function, "{} must not be null", argument);
}

// Limits in ms: -1 forever, else positive (107000).
Status RequireTimeout(const char* function, int32_t milliseconds);

// How many streams and events of a device are alive. Take: false when the limit is reached.
enum class Resource { kStream, kEvent };
bool TakeResource(Resource resource, int device);
void ReturnResource(Resource resource, int device);
int AvailableResources(Resource resource, int device);

// Visible devices by index: the ids they have outside this process.
int LogicalIdOf(int device);

// Calls the user's exception callbacks.
void ReportException(int device, int32_t stream_id, uint64_t sequence, int32_t code);

// The stream is going: drop its callback subscription, and let callbacks that block it end.
void ForgetSubscription(Stream* stream);
void WakeBlockedCallbacks();

}  // namespace anyacl::runtime

#endif  // ANYACL_RUNTIME_INTERNAL_H_
