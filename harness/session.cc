// SPDX-License-Identifier: Apache-2.0
// Copyright The AnyACL Authors
#include "harness/session.h"

#include <fmt/format.h>

namespace anyacl::harness {

void Require(int32_t status, const char* what) {
  if (status == 0) return;
  const char* const text = aclGetRecentErrMsg();
  throw std::runtime_error(fmt::format("{} gave {}: {}", what, status, text ? text : "no text"));
}

Session::Session(int device) : device_(device) {
  const aclError status = aclInit(nullptr);
  owns_init_ = status != ACL_ERROR_REPEAT_INITIALIZE;
  if (owns_init_) Require(status, "aclInit");
  Require(aclrtSetDevice(device_), "aclrtSetDevice");
  Require(aclrtCreateStream(&stream_), "aclrtCreateStream");
}

Session::~Session() {
  aclrtDestroyStream(stream_);
  aclrtResetDevice(device_);
  if (owns_init_) aclFinalize();
}

}  // namespace anyacl::harness
