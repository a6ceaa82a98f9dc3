// SPDX-License-Identifier: Apache-2.0
// Copyright The AnyACL Authors

// Communicators: how ranks meet, what a communicator is asked, and how it ends.

#ifndef ANYACL_HCCL_HCCL_COMM_H_
#define ANYACL_HCCL_HCCL_COMM_H_

#include <string.h>

#include "../acl/acl_base.h"
#include "hccl_types.h"

#ifdef __cplusplus
extern "C" {
#endif

// Opens a place to meet; a current device is needed. It listens on HCCL_IF_IP or HCCL_SOCKET_IFNAME, else on the
// loopback interface. One communicator can be made of it, and this process must be one of its ranks.
ACL_FUNC_VISIBILITY HcclResult HcclGetRootInfo(HcclRootInfo* rootInfo);

// Blocks until all ranks have come; HCCL_E_TIMEOUT after HCCL_CONNECT_TIMEOUT seconds, and the text names those missing.
// The communicator belongs to the current device.
ACL_FUNC_VISIBILITY HcclResult HcclCommInitRootInfo(
    uint32_t nRanks, const HcclRootInfo* rootInfo, uint32_t rank, HcclComm* comm);
ACL_FUNC_VISIBILITY HcclResult HcclCommInitRootInfoConfig(
    uint32_t nRanks, const HcclRootInfo* rootInfo, uint32_t rank, const HcclCommConfig* config, HcclComm* comm);

// All ranks in this process, one for each listed device; null lists 0 to ndev - 1.
ACL_FUNC_VISIBILITY HcclResult HcclCommInitAll(uint32_t ndev, int32_t* devices, HcclComm* comms);

// A communicator of some ranks of another one, called by each of them in the same order as their collectives: rankIds
// has their numbers in *comm, subCommRankId is the caller's place in it. Null rankIds: the caller is none of them.
ACL_FUNC_VISIBILITY HcclResult HcclCreateSubCommConfig(HcclComm* comm, uint32_t rankNum, uint32_t* rankIds,
    uint64_t subCommId, uint32_t subCommRankId, HcclCommConfig* config, HcclComm* subComm);

// Does not wait: work that is on a stream still is done before the connections close.
ACL_FUNC_VISIBILITY HcclResult HcclCommDestroy(HcclComm comm);

ACL_FUNC_VISIBILITY HcclResult HcclGetRankSize(HcclComm comm, uint32_t* rankSize);
ACL_FUNC_VISIBILITY HcclResult HcclGetRankId(HcclComm comm, uint32_t* rank);
// Room for 128 bytes.
ACL_FUNC_VISIBILITY HcclResult HcclGetCommName(HcclComm comm, char* commName);
// HCCL_SUCCESS, or why the communicator does not work any more: HCCL_E_REMOTE soon after a rank is gone.
ACL_FUNC_VISIBILITY HcclResult HcclGetCommAsyncError(HcclComm comm, HcclResult* asyncError);
ACL_FUNC_VISIBILITY const char* HcclGetErrorString(HcclResult code);
ACL_FUNC_VISIBILITY uint32_t HcclGetCommConfigCapability();

// Remembered and given back. Results never depend on them: sums are made in the order of the ranks anyway.
ACL_FUNC_VISIBILITY HcclResult HcclSetConfig(HcclConfig config, HcclConfigValue configValue);
ACL_FUNC_VISIBILITY HcclResult HcclGetConfig(HcclConfig config, HcclConfigValue* configValue);
ACL_FUNC_VISIBILITY HcclResult HcclSetCommConfig(HcclComm comm, HcclConfig config, HcclConfigValue configValue);
ACL_FUNC_VISIBILITY HcclResult HcclGetCommConfig(HcclComm comm, HcclConfig config, HcclConfigValue* configValue);

// Sends and receives of this thread between the two are done together, as by HcclBatchSendRecv. They nest.
ACL_FUNC_VISIBILITY HcclResult HcclGroupStart();
ACL_FUNC_VISIBILITY HcclResult HcclGroupEnd();

static inline void HcclCommConfigInit(HcclCommConfig* config)
{
    const size_t size = sizeof(HcclCommConfig);
    const uint32_t magic = HCCL_COMM_CONFIG_MAGIC_WORD;
    const uint32_t version = HCCL_COMM_CONFIG_VERSION;
    memset(config, 0, size);
    memcpy(config->reserved, &size, sizeof(size));
    memcpy(config->reserved + sizeof(size), &magic, sizeof(magic));
    memcpy(config->reserved + sizeof(size) + sizeof(magic), &version, sizeof(version));
    config->hcclBufferSize = HCCL_COMM_BUFFSIZE_CONFIG_NOT_SET;
    config->hcclDeterministic = HCCL_COMM_DETERMINISTIC_CONFIG_NOT_SET;
    config->hcclOpExpansionMode = HCCL_COMM_DEFAULT_OP_EXPANSION_MODE;
    config->hcclRdmaTrafficClass = HCCL_COMM_TRAFFIC_CLASS_CONFIG_NOT_SET;
    config->hcclRdmaServiceLevel = HCCL_COMM_SERVICE_LEVEL_CONFIG_NOT_SET;
    config->hcclExecTimeOut = (int32_t)HCCL_COMM_EXECTIMEOUT_CONFIG_NOT_SET;
    config->hcclQos = HCCL_COMM_QOS_CONFIG_NOT_SET;
}

#ifdef __cplusplus
}
#endif

#endif  // ANYACL_HCCL_HCCL_COMM_H_
