// SPDX-License-Identifier: Apache-2.0
// Copyright The AnyACL Authors
#ifndef ANYACL_HARNESS_SESSION_H_
#define ANYACL_HARNESS_SESSION_H_

#include <cstdint>
#include <stdexcept>
#include <string>

#include "acl/acl.h"

namespace anyacl::harness {

// Turns a status code that must be 0 into an exception with the library's own sentence.
void Require(int32_t status, const char* what);

// aclInit, a device and a stream for as long as it lives.
class Session {
 public:
  explicit Session(int device = 0);
  ~Session();
  Session(const Session&) = delete;
  Session& operator=(const Session&) = delete;

  aclrtStream stream() const { return stream_; }

 private:
  int device_;
  bool owns_init_;
  aclrtStream stream_ = nullptr;
};

}  // namespace anyacl::harness

#endif  // ANYACL_HARNESS_SESSION_H_
