// SPDX-License-Identifier: Apache-2.0
// Copyright The AnyACL Authors
#include "trace/switches.h"

#include <string_view>

#include "core/env.h"
#include "core/once.h"
#include "trace/faults.h"
#include "trace/recorder.h"

namespace anyacl::trace {

constinit std::atomic<unsigned> switches{kUndecided};

namespace {

bool IsSwitchedOn(env::Var variable) {
  return env::IsSet(variable) && std::string_view(env::Get(variable)) != "0";
}

struct Decision {
  Decision() {
    unsigned on = 0;
    if (env::IsSet(env::Var::ANYACL_TRACE)) {
      const bool data = IsSwitchedOn(env::Var::ANYACL_TRACE_DATA);
      if (OpenTrace(env::Get(env::Var::ANYACL_TRACE), data)) on |= data ? kTrace | kData : kTrace;
    }
    if (env::IsSet(env::Var::ANYACL_FAIL) && ReadFaults(env::Get(env::Var::ANYACL_FAIL))) on |= kFaults;
    if (IsSwitchedOn(env::Var::ANYACL_BLOCKING)) on |= kBlocking;
    switches.store(on, std::memory_order_relaxed);
  }
};

}  // namespace

unsigned Switches() noexcept {
  const unsigned known = switches.load(std::memory_order_relaxed);
  if (known != kUndecided) [[likely]]
    return known;
  try {
    TheOne<Decision>();
  } catch (...) {  // no memory: the next call looks again
    return 0;
  }
  return switches.load(std::memory_order_relaxed);
}

void SwitchOff(unsigned which) { switches.fetch_and(~which, std::memory_order_relaxed); }

}  // namespace anyacl::trace
