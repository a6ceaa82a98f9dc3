// SPDX-License-Identifier: Apache-2.0
// Copyright The AnyACL Authors
//
// The entry point that libFuzzer calls.
#include "fuzz/border_fuzz.h"

extern "C" __attribute__((visibility("default"))) int LLVMFuzzerTestOneInput(const uint8_t* data,
                                                                             size_t size) {
  anyacl::fuzz::FuzzBorder(data, size);
  return 0;
}
