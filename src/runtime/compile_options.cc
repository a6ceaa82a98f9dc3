// SPDX-License-Identifier: Apache-2.0
// Copyright The AnyACL Authors
//
// Compile options: clients set them at start-up and expect success. They are kept and given back; nothing
// is compiled here.
#include <cstring>
#include <map>
#include <string>

#include "acl/acl_op_compiler.h"
#include "core/border.h"
#include "core/locks.h"
#include "core/once.h"
#include "runtime/internal.h"

namespace anyacl::runtime {
namespace {

using Options = std::map<int, std::string>;
Options& All() { return TheOne<Options>(); }

// Clients read this one before they ever set it, and take no other word than these two.
std::string DefaultOf(int option) { return option == ACL_OP_JIT_COMPILE ? "disable" : ""; }

std::string ValueOf(int option) {
  const Options& all = All();
  const std::lock_guard lock(LockOf(Lock::kCompileOptions));
  const auto found = all.find(option);
  return found == all.end() ? DefaultOf(option) : found->second;
}

}  // namespace
}  // namespace anyacl::runtime

using anyacl::AclBorder;
using anyacl::Lock;
using anyacl::LockOf;
using anyacl::Status;
using namespace anyacl::runtime;  // NOLINT: the C functions of this room
namespace code = anyacl::code;

aclError aclSetCompileopt(aclCompileOpt opt, const char* value) {
  constexpr const char* kName = "aclSetCompileopt";
  return AclBorder(kName, [&]() -> Status {
    ANYACL_RETURN_IF_ERROR(RequireNotNull(kName, "value", value));
    Options& all = All();
    const std::lock_guard lock(LockOf(Lock::kCompileOptions));
    all[Number(opt)] = value;
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
