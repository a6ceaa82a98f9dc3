// SPDX-License-Identifier: Apache-2.0
// Copyright The AnyACL Authors
#include "runtime/support.h"

#include <string>

namespace anyacl {
namespace {

// Before main, and so before any test: the library reads it once.
[[maybe_unused]] const int devices_set =
    setenv("ANYACL_DEVICES", std::to_string(kDevices).c_str(), 1);

}  // namespace
}  // namespace anyacl
