// SPDX-License-Identifier: Apache-2.0
// Copyright The AnyACL Authors
#ifndef ANYACL_TESTS_CPU_STREAM_FROM_H_
#define ANYACL_TESTS_CPU_STREAM_FROM_H_

#include <cstdint>

#include "cpu/kernels.h"

namespace anyacl::cpu {

// While alive, kernels store past the caches from this many bytes on, whatever suits the machine: the
// same code as for large arrays, in a thousandth of their time.
class StreamFrom {
 public:
  explicit StreamFrom(int64_t bytes) : before_(stream_bytes) { stream_bytes = bytes; }
  ~StreamFrom() { stream_bytes = before_; }
  StreamFrom(const StreamFrom&) = delete;
  StreamFrom& operator=(const StreamFrom&) = delete;

 private:
  int64_t before_;
};

}  // namespace anyacl::cpu

#endif  // ANYACL_TESTS_CPU_STREAM_FROM_H_
