// SPDX-License-Identifier: Apache-2.0
// Copyright The AnyACL Authors
//
// In this room the code of a Status is an HcclResult.
#ifndef ANYACL_HCCL_STATUS_H_
#define ANYACL_HCCL_STATUS_H_

#include <fmt/format.h>

#include <cstdint>
#include <string>

#include "core/status.h"
#include "hccl/hccl_types.h"

namespace anyacl::hccl {

template <class... Args>
Status Problem(HcclResult code, fmt::format_string<Args...> format, Args&&... args) {
  return Status(code, fmt::format(format, static_cast<Args&&>(args)...));
}

// "<where>: <sentence>" under the same code.
inline Status Within(const std::string& where, const Status& status) {
  return status.ok() ? Status() : Status(status.code(), where + ": " + status.message());
}

// "rank 2", "ranks 2, 5, 7", "ranks 2, 5, 7 and 40 more".
template <class Ranks>
std::string NameRanks(const Ranks& ranks) {
  constexpr size_t kNamed = 16;
  std::string text = ranks.size() == 1 ? "rank " : "ranks ";
  for (size_t i = 0; i < ranks.size() && i < kNamed; ++i) text += (i ? ", " : "") + std::to_string(ranks[i]);
  if (ranks.size() > kNamed) text += fmt::format(" and {} more", ranks.size() - kNamed);
  return text;
}

}  // namespace anyacl::hccl

#endif  // ANYACL_HCCL_STATUS_H_
