// SPDX-License-Identifier: Apache-2.0
// Copyright The AnyACL Authors
//
// What of this room is on. Everything is off by default, and then a call asks one relaxed load and no more.
#ifndef ANYACL_TRACE_SWITCHES_H_
#define ANYACL_TRACE_SWITCHES_H_

#include <atomic>

namespace anyacl::trace {

inline constexpr unsigned kTrace = 1;     // ANYACL_TRACE
inline constexpr unsigned kData = 2;      // ANYACL_TRACE_DATA, only with the first
inline constexpr unsigned kFaults = 4;    // ANYACL_FAIL
inline constexpr unsigned kBlocking = 8;  // ANYACL_BLOCKING
inline constexpr unsigned kUndecided = 128;

extern constinit std::atomic<unsigned> switches;

// False until the first call has looked, too.
inline bool AllOff() { return switches.load(std::memory_order_relaxed) == 0; }

// Looks at the environment when nobody has.
unsigned Switches() noexcept;
inline bool IsOn(unsigned which) { return !AllOff() && (Switches() & which) != 0; }

// For a file that cannot be written any more.
void SwitchOff(unsigned which);

}  // namespace anyacl::trace

#endif  // ANYACL_TRACE_SWITCHES_H_
