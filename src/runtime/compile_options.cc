// SPDX-License-Identifier: Apache-2.0
// Copyright The AnyACL Authors
//
// Compile options: clients set them at start-up and expect success. They are kept and given back; nothing
// is compiled here.
#include <cstring>
#include <map>
#include <mutex>
#include <string>

#include "acl/acl_op_compiler.h"
#include "core/border.h"
#include "runtime/internal.h"

namespace anyacl::runtime {
namespace {

struct Options {
  std::mutex mutex;
  std::map<int, std::string> values;
};
Options& All() {
  static auto* const options = new Options;
  return *options;
}

// Clients read this one before they ever set it, and take no other word than these two.
std::string DefaultOf(int option) { return option == ACL_OP_JIT_COMPILE ? "disable" : ""; }

std::string ValueOf(int option) {
  const std::lock_guard lock(All().mutex);
  const auto found = All().values.find(option);
  return found == All().values.end() ? DefaultOf(option) : found->second;
}

}  // namespace
}  // namespace anyacl::runtime

using anyacl::AclBorder;
using anyacl::Status;
using namespace anyacl::runtime;  // NOLINT: the C functions of this room
namespace code = anyacl::code;

aclError aclSetCompileopt(aclCompileOpt opt, const char* value) {
  constexpr const char* kName = "aclSetCompileopt";
  return AclBorder(kName, [&]() -> Status {
    ANYACL_RETURN_IF_ERROR(RequireNotNull(kName, "value", value));
    const std::lock_guard lock(All().mutex);
    All().values[Number(opt)] = value;
    return Status();
  });
}

size_t aclGetCompileoptSize(aclCompileOpt opt) {
  size_t size = 0;
  AclBorder("aclGetCompileoptSize", [&] {
    size = ValueOf(Number(opt)).size() + 1;
    return Status();
  });
  return size;
}

aclError aclGetCompileopt(aclCompileOpt opt, char* value, size_t length) {
  constexpr const char* kName = "aclGetCompileopt";
  return AclBorder(kName, [&]() -> Status {
    ANYACL_RETURN_IF_ERROR(RequireNotNull(kName, "value", value));
    const std::string text = ValueOf(Number(opt));
    if (length < text.size() + 1) {
      return Fail(code::kAclInvalidParam, kName, "length must be at least {}, got {}",
                  text.size() + 1, length);
    }
    std::memcpy(value, text.c_str(), text.size() + 1);
    return Status();
  });
}
