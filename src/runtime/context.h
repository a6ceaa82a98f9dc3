// SPDX-License-Identifier: Apache-2.0
// Copyright The AnyACL Authors
//
// Devices and contexts, and which of them is current in a thread.
#ifndef ANYACL_RUNTIME_CONTEXT_H_
#define ANYACL_RUNTIME_CONTEXT_H_

#include <atomic>
#include <cstdint>

#include "core/env.h"
#include "core/status.h"

namespace anyacl::runtime {

class Stream;

inline constexpr int kMaxDevices = env::kMostDevices;

// A context is a device, a default stream and a few options. Memory does not belong to it.
struct Context {
  static constexpr int kOptions = 4;  // aclSysParamOpt numbers 0 .. kOptions - 1
  struct Option {
    std::atomic<bool> set{false};
    std::atomic<int64_t> value{0};
  };

  int device = 0;
  bool implicit = false;
  std::atomic<bool> device_was_reset{
      false};  // an explicit context survives the reset, but only to be destroyed
  void* handle = nullptr;
  // Null for a moment where a thread looks at a context that another one ends, and whose place is taken again.
  std::atomic<Stream*> default_stream{nullptr};
  Option options[kOptions];
};

// The context this thread works in, or null: what it set last, else the implicit context of the device it
// selected, else the one of the default device that the configuration of aclInit names.
Context* CurrentContext();

// The same; 107002 and a sentence when there is none.
Status RequireContext(const char* function, Context** context);

// Its default stream; the same code when the context ends meanwhile.
Status RequireDefaultStream(const char* function, const Context& context, Stream** stream);

// Number of devices this process sees, and the check of an id against it (107001).
int DeviceCount();
Status RequireDevice(const char* function, int64_t device);

// Device selected by calls in threads that selected none; -1 for none. From the configuration of aclInit.
void SetDefaultDevice(int device);

// Value an operator should use: of the current context when set there, else of the process.
int64_t EffectiveOption(int option);

}  // namespace anyacl::runtime

#endif  // ANYACL_RUNTIME_CONTEXT_H_
