// SPDX-License-Identifier: Apache-2.0
// Copyright The AnyACL Authors
#include <algorithm>
#include <atomic>
#include <cstring>
#include <memory>
#include <string>
#include <vector>

#include "core/env.h"
#include "core/undo.h"
#include "hccl/border.h"
#include "hccl/elements.h"
#include "hccl/interface.h"
#include "hccl/rendezvous.h"
#include "runtime/context.h"
#include "runtime/submit.h"

namespace anyacl::hccl {
namespace {

constexpr uint32_t kMostRanks = 65536;
constexpr uint32_t kCapabilities = (1u << HCCL_COMM_CONFIG_RESERVED) - 1;

std::atomic<int32_t> options[HCCL_CONFIG_RESERVED];

Status CurrentDevice(int* device) {
  runtime::Context* context = nullptr;
  if (const Status status = runtime::RequireContext("aclrtSetDevice", &context); !status.ok()) {
    return Problem(HCCL_E_RUNTIME, "a device must be current: {}", status.message());
  }
  *device = context->device;
  return Status();
}

// The fields that count, of those that the caller's struct has.
struct Config {
  std::string name;
  std::chrono::seconds limit = ExecTimeout();
};

Status ReadConfig(const HcclCommConfig* config, Config* read) {
  if (!config) return Status();
  size_t size = 0;
  uint32_t magic = 0;
  std::memcpy(&size, config->reserved, sizeof(size));
  std::memcpy(&magic, config->reserved + sizeof(size), sizeof(magic));
  if (magic != HCCL_COMM_CONFIG_MAGIC_WORD || size < HCCL_COMM_CONFIG_INFO_BYTES) {
    return Problem(HCCL_E_PARA, "config must come from HcclCommConfigInit, got magic {:#x} and size {}", magic, size);
  }
  HcclCommConfig known;
  HcclCommConfigInit(&known);
  std::memcpy(&known, config, std::min(size, sizeof(known)));
  read->name.assign(known.hcclCommName, strnlen(known.hcclCommName, sizeof(known.hcclCommName)));
  if (read->name.size() == sizeof(known.hcclCommName)) {
    return Problem(HCCL_E_PARA, "hcclCommName must be shorter than {} bytes", sizeof(known.hcclCommName));
  }
  const auto not_set = static_cast<int32_t>(HCCL_COMM_EXECTIMEOUT_CONFIG_NOT_SET);
  if (known.hcclExecTimeOut != not_set && known.hcclExecTimeOut < 0) {
    return Problem(HCCL_E_PARA, "hcclExecTimeOut must not be negative, got {}", known.hcclExecTimeOut);
  }
  if (known.hcclExecTimeOut != not_set) read->limit = std::chrono::seconds(known.hcclExecTimeOut);
  return Status();
}

bool HasGroups() { return env::GetInt(env::Var::ANYACL_NCCL, 1) != 0 && runtime::CurrentBackend().groups(); }

HcclComm Make(uint32_t rank, uint32_t ranks, int device, const Config& config, Met met) {
  Communicator::Settings settings{rank,         ranks,         device, config.name.empty() ? met.name : config.name,
                                  config.limit, met.has_groups};
  auto transport = ranks > 1 ? NewTcpTransport(rank, std::move(met.peers)) : nullptr;
  return Publish(std::make_shared<Communicator>(std::move(settings), std::move(transport)));
}

Status Init(uint32_t ranks, const HcclRootInfo* info, uint32_t rank, const HcclCommConfig* given, HcclComm* comm) {
  ANYACL_RETURN_IF_ERROR(RequireNotNull("rootInfo", info));
  ANYACL_RETURN_IF_ERROR(RequireNotNull("comm", comm));
  if (ranks == 0 || ranks > kMostRanks) return Problem(HCCL_E_PARA, "nRanks must be from 1 to {}, got {}", kMostRanks, ranks);
  if (rank >= ranks) return Problem(HCCL_E_PARA, "rank must be less than nRanks {}, got {}", ranks, rank);
  int device = 0;
  ANYACL_RETURN_IF_ERROR(CurrentDevice(&device));
  Config config;
  ANYACL_RETURN_IF_ERROR(ReadConfig(given, &config));
  const Deadline deadline = std::chrono::steady_clock::now() + ConnectTimeout();
  Met met{HasGroups(), {}, {}};
  ANYACL_RETURN_IF_ERROR(Meet(*info, ranks, rank, deadline, &met));
  *comm = Make(rank, ranks, device, config, std::move(met));
  return Status();
}

// Ranks of one process need no addresses.
Status InitAll(uint32_t count, const int32_t* devices, HcclComm* comms) {
  ANYACL_RETURN_IF_ERROR(RequireNotNull("comms", comms));
  const auto visible = static_cast<uint32_t>(runtime::DeviceCount());
  if (count == 0 || count > visible) return Problem(HCCL_E_PARA, "ndev must be from 1 to the {} devices, got {}", visible, count);
  std::vector<int> list(count);
  for (uint32_t i = 0; i < count; ++i) {
    list[i] = devices ? devices[i] : static_cast<int>(i);
    const bool exists = list[i] >= 0 && list[i] < runtime::DeviceCount();
    if (!exists || std::count(list.begin(), list.begin() + i, list[i]) > 0) {
      return Problem(HCCL_E_PARA, "devices must be different ones of the {}, got {} at {}", visible, list[i], i);
    }
  }
  std::vector<std::vector<Socket>> peers(count);
  for (auto& of_rank : peers) of_rank.resize(count);
  for (uint32_t i = 0; i < count; ++i) {
    for (uint32_t j = 0; j < i; ++j) ANYACL_RETURN_IF_ERROR(ConnectedPair(&peers[i][j], &peers[j][i]));
  }
  static std::atomic<uint32_t> number{0};
  const std::string name = fmt::format("hccl_all_{}", number.fetch_add(1));
  std::vector<HcclComm> made;
  made.reserve(count);
  Undo some([&] {
    for (const HcclComm comm : made) Withdraw(comm);
  });
  for (uint32_t i = 0; i < count; ++i) {
    made.push_back(Make(i, count, list[i], Config(), {HasGroups(), std::move(peers[i]), name}));
  }
  some.Keep();
  std::copy(made.begin(), made.end(), comms);
  return Status();
}

// The first member makes a root info and sends it to the others over their communicator.
Status ShareRootInfo(Communicator& parent, const std::vector<uint32_t>& members, uint32_t place, HcclRootInfo* info) {
  if (place == 0) ANYACL_RETURN_IF_ERROR(MakeRootInfo(info));
  Call call;
  call.kind = Kind::kSubComm;
  const int dtype = HCCL_DATA_TYPE_INT8;
  for (uint32_t i = 1; place == 0 && i < members.size(); ++i) call.items.push_back({true, info, sizeof(*info), dtype, members[i]});
  if (place > 0) call.items.push_back({false, info, sizeof(*info), dtype, members[0]});
  return parent.Run("HcclCreateSubCommConfig", parent.TakeTicket(), call, {});
}

Status CreateSub(HcclComm* comm, uint32_t count, const uint32_t* ranks, uint32_t place, const HcclCommConfig* given,
                 HcclComm* made) {
  ANYACL_RETURN_IF_ERROR(RequireNotNull("comm", comm));
  ANYACL_RETURN_IF_ERROR(RequireNotNull("subComm", made));
  SharedCommunicator parent;
  ANYACL_RETURN_IF_ERROR(Resolve(*comm, &parent));
  *made = nullptr;
  if (!ranks) return Status();
  const std::vector<uint32_t> members(ranks, ranks + count);
  for (size_t i = 0; i < members.size(); ++i) {
    if (members[i] >= parent->ranks() || std::count(members.begin(), members.end(), members[i]) > 1) {
      return Problem(HCCL_E_PARA, "rankIds must be different ranks of the {}, got {} at {}", parent->ranks(), members[i], i);
    }
  }
  if (place >= members.size() || members[place] != parent->rank()) {
    return Problem(HCCL_E_PARA, "subCommRankId must be the place of rank {} in rankIds, got {}", parent->rank(), place);
  }
  Config config;
  ANYACL_RETURN_IF_ERROR(ReadConfig(given, &config));
  const Deadline deadline = std::chrono::steady_clock::now() + ConnectTimeout();
  HcclRootInfo info;
  ANYACL_RETURN_IF_ERROR(ShareRootInfo(*parent, members, place, &info));
  Met met{HasGroups(), {}, {}};
  ANYACL_RETURN_IF_ERROR(Meet(info, count, place, deadline, &met));
  *made = Make(place, count, parent->device(), config, std::move(met));
  return Status();
}

Status RequireOption(HcclConfig config) {
  const int number = Number(config);
  if (number == HCCL_DETERMINISTIC) return Status();
  return Problem(number == HCCL_ACCELERATOR ? HCCL_E_NOT_SUPPORT : HCCL_E_PARA, "config must be HCCL_DETERMINISTIC (0), got {}", number);
}

Status RequireValue(int32_t value) {
  if (value >= 0 && value <= 2) return Status();
  return Problem(HCCL_E_PARA, "configValue must be 0, 1 or 2, got {}", value);
}

}  // namespace
}  // namespace anyacl::hccl

using namespace anyacl::hccl;  // NOLINT: the C functions of this room
using anyacl::Status;

HcclResult HcclGetRootInfo(HcclRootInfo* rootInfo) {
  return HcclBorder("HcclGetRootInfo", [&]() -> Status {
    ANYACL_RETURN_IF_ERROR(RequireNotNull("rootInfo", rootInfo));
    int device = 0;
    ANYACL_RETURN_IF_ERROR(CurrentDevice(&device));
    return MakeRootInfo(rootInfo);
  });
}

HcclResult HcclCommInitRootInfo(uint32_t nRanks, const HcclRootInfo* rootInfo, uint32_t rank, HcclComm* comm) {
  return HcclBorder("HcclCommInitRootInfo", [&] { return Init(nRanks, rootInfo, rank, nullptr, comm); });
}

HcclResult HcclCommInitRootInfoConfig(uint32_t nRanks, const HcclRootInfo* rootInfo, uint32_t rank,
                                      const HcclCommConfig* config, HcclComm* comm) {
  return HcclBorder("HcclCommInitRootInfoConfig", [&]() -> Status {
    ANYACL_RETURN_IF_ERROR(RequireNotNull("config", config));
    return Init(nRanks, rootInfo, rank, config, comm);
  });
}

HcclResult HcclCommInitAll(uint32_t ndev, int32_t* devices, HcclComm* comms) {
  return HcclBorder("HcclCommInitAll", [&] { return InitAll(ndev, devices, comms); });
}

HcclResult HcclCreateSubCommConfig(HcclComm* comm, uint32_t rankNum, uint32_t* rankIds, uint64_t,
                                   uint32_t subCommRankId, HcclCommConfig* config, HcclComm* subComm) {
  return HcclBorder("HcclCreateSubCommConfig",
                    [&] { return CreateSub(comm, rankNum, rankIds, subCommRankId, config, subComm); });
}

HcclResult HcclCommDestroy(HcclComm comm) {
  return HcclBorder("HcclCommDestroy", [&]() -> Status {
    if (Withdraw(comm)) return Status();
    return Problem(comm ? HCCL_E_PARA : HCCL_E_PTR, "comm must be a live communicator, got {}", comm);
  });
}

HcclResult HcclGetRankSize(HcclComm comm, uint32_t* rankSize) {
  return HcclBorder("HcclGetRankSize", [&]() -> Status {
    SharedCommunicator communicator;
    ANYACL_RETURN_IF_ERROR(Resolve(comm, &communicator));
    ANYACL_RETURN_IF_ERROR(RequireNotNull("rankSize", rankSize));
    *rankSize = communicator->ranks();
    return Status();
  });
}

HcclResult HcclGetRankId(HcclComm comm, uint32_t* rank) {
  return HcclBorder("HcclGetRankId", [&]() -> Status {
    SharedCommunicator communicator;
    ANYACL_RETURN_IF_ERROR(Resolve(comm, &communicator));
    ANYACL_RETURN_IF_ERROR(RequireNotNull("rank", rank));
    *rank = communicator->rank();
    return Status();
  });
}

HcclResult HcclGetCommName(HcclComm comm, char* commName) {
  return HcclBorder("HcclGetCommName", [&]() -> Status {
    SharedCommunicator communicator;
    ANYACL_RETURN_IF_ERROR(Resolve(comm, &communicator));
    ANYACL_RETURN_IF_ERROR(RequireNotNull("commName", commName));
    std::memcpy(commName, communicator->name().c_str(), communicator->name().size() + 1);
    return Status();
  });
}

HcclResult HcclGetCommAsyncError(HcclComm comm, HcclResult* asyncError) {
  return HcclBorder("HcclGetCommAsyncError", [&]() -> Status {
    SharedCommunicator communicator;
    ANYACL_RETURN_IF_ERROR(Resolve(comm, &communicator));
    ANYACL_RETURN_IF_ERROR(RequireNotNull("asyncError", asyncError));
    const Status failure = communicator->Failure();
    *asyncError = static_cast<HcclResult>(failure.code());
    if (!failure.ok()) anyacl::error_text::Remember(Within("HcclGetCommAsyncError", failure));
    return Status();
  });
}

const char* HcclGetErrorString(HcclResult code) {
  static constexpr const char* kTexts[] = {
      "no error",
      "a parameter is wrong",
      "a pointer is null",
      "out of memory",
      "internal error",
      "not supported",
      "not found",
      "not available",
      "a call of the system failed",
      "timeout",
      "a file cannot be opened",
      "a TCP connection cannot be made",
      "a RoCE connection cannot be made",
      "a transfer over TCP failed",
      "a transfer over RoCE failed",
      "a call of the runtime failed",
      "a call of the driver failed",
      "a call of the profiler failed",
      "a call of CCE failed",
      "a call of the network failed",
      "try again",
      "another rank failed or is gone",
      "the communicator is being suspended",
      "a repeated call failed",
      "out of device memory",
  };
  const int number = Number(code);
  return number >= 0 && number < HCCL_E_RESERVED ? kTexts[number] : "unknown error";
}

uint32_t HcclGetCommConfigCapability() { return kCapabilities; }

HcclResult HcclSetConfig(HcclConfig config, HcclConfigValue configValue) {
  return HcclBorder("HcclSetConfig", [&]() -> Status {
    ANYACL_RETURN_IF_ERROR(RequireOption(config));
    ANYACL_RETURN_IF_ERROR(RequireValue(configValue.value));
    options[HCCL_DETERMINISTIC] = configValue.value;
    return Status();
  });
}

HcclResult HcclGetConfig(HcclConfig config, HcclConfigValue* configValue) {
  return HcclBorder("HcclGetConfig", [&]() -> Status {
    ANYACL_RETURN_IF_ERROR(RequireNotNull("configValue", configValue));
    ANYACL_RETURN_IF_ERROR(RequireOption(config));
    configValue->value = options[HCCL_DETERMINISTIC];
    return Status();
  });
}

HcclResult HcclSetCommConfig(HcclComm comm, HcclConfig config, HcclConfigValue configValue) {
  return HcclBorder("HcclSetCommConfig", [&]() -> Status {
    SharedCommunicator communicator;
    ANYACL_RETURN_IF_ERROR(Resolve(comm, &communicator));
    ANYACL_RETURN_IF_ERROR(RequireOption(config));
    ANYACL_RETURN_IF_ERROR(RequireValue(configValue.value));
    communicator->set_deterministic(configValue.value);
    return Status();
  });
}

HcclResult HcclGetCommConfig(HcclComm comm, HcclConfig config, HcclConfigValue* configValue) {
  return HcclBorder("HcclGetCommConfig", [&]() -> Status {
    SharedCommunicator communicator;
    ANYACL_RETURN_IF_ERROR(Resolve(comm, &communicator));
    ANYACL_RETURN_IF_ERROR(RequireNotNull("configValue", configValue));
    ANYACL_RETURN_IF_ERROR(RequireOption(config));
    configValue->value = communicator->deterministic();
    return Status();
  });
}

HcclResult HcclGroupStart() { return HcclBorder("HcclGroupStart", [] { return BeginGroup(); }); }

HcclResult HcclGroupEnd() { return HcclBorder("HcclGroupEnd", [] { return EndGroup(); }); }
