// SPDX-License-Identifier: Apache-2.0
// Copyright The AnyACL Authors

// Collectives. Every one is put on the stream and done there, behind what was put there before; all ranks of a
// communicator must call the same ones in the same order. Counts are of elements, buffers in device memory. A result
// is the same on every rank and in every run: numbers are added in the order of the ranks, FP16 and BFP16 in FLOAT.

#ifndef ANYACL_HCCL_HCCL_H_
#define ANYACL_HCCL_HCCL_H_

#include "../acl/acl.h"
#include "hccl_comm.h"
#include "hccl_types.h"

#ifdef __cplusplus
extern "C" {
#endif

// sendBuf may be recvBuf.
ACL_FUNC_VISIBILITY HcclResult HcclAllReduce(void* sendBuf, void* recvBuf, uint64_t count, HcclDataType dataType,
    HcclReduceOp op, HcclComm comm, aclrtStream stream);
// On the other ranks recvBuf is left alone.
ACL_FUNC_VISIBILITY HcclResult HcclReduce(void* sendBuf, void* recvBuf, uint64_t count, HcclDataType dataType,
    HcclReduceOp op, uint32_t root, HcclComm comm, aclrtStream stream);
ACL_FUNC_VISIBILITY HcclResult HcclBroadcast(
    void* buf, uint64_t count, HcclDataType dataType, uint32_t root, HcclComm comm, aclrtStream stream);

// Each rank's part behind the other in recvBuf; sendBuf may be the caller's part of it.
ACL_FUNC_VISIBILITY HcclResult HcclAllGather(void* sendBuf, void* recvBuf, uint64_t sendCount, HcclDataType dataType,
    HcclComm comm, aclrtStream stream);
// recvCounts and recvDispls: uint64_t on the host, one for each rank, read before the call returns.
ACL_FUNC_VISIBILITY HcclResult HcclAllGatherV(void* sendBuf, uint64_t sendCount, void* recvBuf, const void* recvCounts,
    const void* recvDispls, HcclDataType dataType, HcclComm comm, aclrtStream stream);

ACL_FUNC_VISIBILITY HcclResult HcclReduceScatter(void* sendBuf, void* recvBuf, uint64_t recvCount,
    HcclDataType dataType, HcclReduceOp op, HcclComm comm, aclrtStream stream);
ACL_FUNC_VISIBILITY HcclResult HcclReduceScatterV(void* sendBuf, const void* sendCounts, const void* sendDispls,
    void* recvBuf, uint64_t recvCount, HcclDataType dataType, HcclReduceOp op, HcclComm comm, aclrtStream stream);

// sendBuf is read on the root only.
ACL_FUNC_VISIBILITY HcclResult HcclScatter(void* sendBuf, void* recvBuf, uint64_t recvCount, HcclDataType dataType,
    uint32_t root, HcclComm comm, aclrtStream stream);

ACL_FUNC_VISIBILITY HcclResult HcclAlltoAll(const void* sendBuf, uint64_t sendCount, HcclDataType sendType,
    const void* recvBuf, uint64_t recvCount, HcclDataType recvType, HcclComm comm, aclrtStream stream);
ACL_FUNC_VISIBILITY HcclResult HcclAlltoAllV(const void* sendBuf, const void* sendCounts, const void* sdispls,
    HcclDataType sendType, const void* recvBuf, const void* recvCounts, const void* rdispls, HcclDataType recvType,
    HcclComm comm, aclrtStream stream);
// sendCountMatrix: nRanks * nRanks uint64_t on the host, row by sender; parts lie one behind the other.
ACL_FUNC_VISIBILITY HcclResult HcclAlltoAllVC(const void* sendBuf, const void* sendCountMatrix, HcclDataType sendType,
    const void* recvBuf, HcclDataType recvType, HcclComm comm, aclrtStream stream);

ACL_FUNC_VISIBILITY HcclResult HcclBarrier(HcclComm comm, aclrtStream stream);

// A send ends when its bytes are on their way. Two ranks that send to each other before they receive need
// HcclBatchSendRecv or a group.
ACL_FUNC_VISIBILITY HcclResult HcclSend(void* sendBuf, uint64_t count, HcclDataType dataType, uint32_t destRank,
    HcclComm comm, aclrtStream stream);
ACL_FUNC_VISIBILITY HcclResult HcclRecv(void* recvBuf, uint64_t count, HcclDataType dataType, uint32_t srcRank,
    HcclComm comm, aclrtStream stream);
// All at once; several to or from one rank in their order. A rank may send to itself.
ACL_FUNC_VISIBILITY HcclResult HcclBatchSendRecv(
    HcclSendRecvItem* sendRecvInfo, uint32_t itemNum, HcclComm comm, aclrtStream stream);

#ifdef __cplusplus
}
#endif

#endif  // ANYACL_HCCL_HCCL_H_
