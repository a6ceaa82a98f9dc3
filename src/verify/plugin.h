// SPDX-License-Identifier: Apache-2.0
// Copyright The AnyACL Authors
#ifndef ANYACL_VERIFY_PLUGIN_H_
#define ANYACL_VERIFY_PLUGIN_H_

#include <span>
#include <string>

#include "plan/operator.h"
#include "watch/watch.h"

namespace anyacl {

// What the plug-in is told by the library that opens it.
struct VerifyHost {
  const char* version;  // both must be of the same build
  std::span<const Entry> (*entries)();
};

// The plug-in's one exported function: what is to watch the operators of this process. Null, and why in *problem, when it
// cannot be used.
using VerifyEntry = watch::Watcher* (*)(const VerifyHost& host, std::string* problem);
inline constexpr char kVerifyPluginFile[] = "libanyacl_verify.so";
inline constexpr char kVerifyPluginEntry[] = "anyacl_verify_plugin_v1";

}  // namespace anyacl

#endif  // ANYACL_VERIFY_PLUGIN_H_
