// SPDX-License-Identifier: Apache-2.0
// Copyright The AnyACL Authors
#include "hccl/interface.h"

#include <ifaddrs.h>
#include <net/if.h>

#include <cstring>
#include <memory>
#include <string>
#include <string_view>
#include <vector>

#include "core/env.h"

namespace anyacl::hccl {
namespace {

using env::Var;

// "eth": interfaces whose names begin so; "=eth0": this one; "^lo,docker": others. Commas separate.
struct NamePattern {
  explicit NamePattern(std::string_view text) {
    is_negative = text.starts_with('^');
    is_exact = text.substr(is_negative).starts_with('=');
    text.remove_prefix(is_negative + is_exact);
    while (!text.empty()) {
      const size_t end = text.find(',');
      names.push_back(text.substr(0, end));
      text = end == std::string_view::npos ? "" : text.substr(end + 1);
    }
  }
  bool Fits(std::string_view name) const {
    for (const std::string_view one : names) {
      if (is_exact ? name == one : name.starts_with(one)) return !is_negative;
    }
    return is_negative;
  }

  bool is_negative = false;
  bool is_exact = false;
  std::vector<std::string_view> names;
};

bool TakeAddress(const sockaddr* from, Endpoint* to) {
  const bool wants_6 = std::string_view(env::Get(Var::HCCL_SOCKET_FAMILY)) == "AF_INET6";
  if (!from || from->sa_family != (wants_6 ? AF_INET6 : AF_INET)) return false;
  *to = Endpoint();
  to->family = wants_6 ? 6 : 4;
  if (wants_6) {
    sockaddr_in6 address;
    std::memcpy(&address, from, sizeof(address));
    std::memcpy(to->address, &address.sin6_addr, 16);
    to->scope = address.sin6_scope_id;
  } else {
    sockaddr_in address;
    std::memcpy(&address, from, sizeof(address));
    std::memcpy(to->address, &address.sin_addr, 4);
  }
  return true;
}

Status AddressOfInterface(const std::string& wanted, Endpoint* address) {
  ifaddrs* all = nullptr;
  if (getifaddrs(&all)) return Problem(HCCL_E_NETWORK, "the interfaces cannot be listed: {}", ErrorText(errno));
  const std::unique_ptr<ifaddrs, decltype(&freeifaddrs)> owner(all, freeifaddrs);
  const NamePattern pattern(wanted);
  for (const ifaddrs* one = all; one; one = one->ifa_next) {
    if ((one->ifa_flags & IFF_UP) && pattern.Fits(one->ifa_name) && TakeAddress(one->ifa_addr, address)) return Status();
  }
  return Problem(HCCL_E_NOT_FOUND, "HCCL_SOCKET_IFNAME is {}, but no interface of such a name has an address", wanted);
}

}  // namespace

Status ListenAddress(Endpoint* address, bool* told) {
  *told = true;
  if (const std::string ip = env::Get(Var::HCCL_IF_IP); !ip.empty()) {
    if (address->FromText(ip)) return Status();
    return Problem(HCCL_E_PARA, "HCCL_IF_IP must be an address of this machine, got '{}'", ip);
  }
  if (const std::string name = env::Get(Var::HCCL_SOCKET_IFNAME); !name.empty()) {
    return AddressOfInterface(name, address);
  }
  *told = false;
  address->FromText("127.0.0.1");
  return Status();
}

std::chrono::seconds ConnectTimeout() {
  return std::chrono::seconds(env::GetInt(Var::HCCL_CONNECT_TIMEOUT, 120));
}

std::chrono::seconds ExecTimeout() {
  return std::chrono::seconds(env::GetInt(Var::HCCL_EXEC_TIMEOUT, 1836));
}

}  // namespace anyacl::hccl
