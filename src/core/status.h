// SPDX-License-Identifier: Apache-2.0
// Copyright The AnyACL Authors
#ifndef ANYACL_CORE_STATUS_H_
#define ANYACL_CORE_STATUS_H_

#include <cstdint>
#include <memory>
#include <string>
#include <utility>

namespace anyacl {

// A status code of the C API and, on failure, the sentence that explains it.
// Success carries no allocation, so the fast path costs two registers.
class [[nodiscard]] Status {
 public:
  Status() = default;
  Status(int32_t code, std::string message)
      : code_(code), message_(std::make_unique<std::string>(std::move(message))) {}

  bool ok() const { return code_ == 0; }
  int32_t code() const { return code_; }
  const std::string& message() const {
    static const std::string* const kNone = new std::string;
    return message_ ? *message_ : *kNone;
  }

  // The same sentence under another code: aclnn calls report runtime failures as 361001.
  Status WithCode(int32_t code) && {
    code_ = code;
    return std::move(*this);
  }

 private:
  int32_t code_ = 0;
  std::unique_ptr<std::string> message_;
};

#define ANYACL_RETURN_IF_ERROR(expr)                                                   \
  do {                                                                                 \
    if (::anyacl::Status anyacl_status_ = (expr); !anyacl_status_.ok()) [[unlikely]] { \
      return anyacl_status_;                                                           \
    }                                                                                  \
  } while (false)

}  // namespace anyacl

#endif  // ANYACL_CORE_STATUS_H_
