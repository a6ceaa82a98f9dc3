// SPDX-License-Identifier: Apache-2.0
// Copyright The AnyACL Authors
//
// Functions that exist so that programs link, and say that they do nothing: 207000, or null from those that
// would return an object.
#include "acl/acl_dump.h"
#include "acl/acl_mdl.h"
#include "acl/acl_op.h"
#include "acl/acl_op_compiler.h"
#include "acl/acl_prof.h"
#include "acl/acl_rt.h"
#include "acl/acl_tdt.h"
#include "core/border.h"
#include "runtime/internal.h"

namespace anyacl::runtime {
namespace {

int32_t NotSupported(const char* function) {
  return AclBorder(function, [&] {
    return Fail(code::kRtNotSupported, function, "is not supported by AnyACL");
  });
}

}  // namespace
}  // namespace anyacl::runtime

using anyacl::AclBorder;
using namespace anyacl::runtime;  // NOLINT: the C functions of this room
namespace code = anyacl::code;

// --- what is true without any of it ---

// Nothing can have been created that these would free.
void aclopDestroyAttr(const aclopAttr*) {}
void aclprofDestroyStepInfo(aclprofStepInfo*) {}
size_t acltdtGetDimNumFromItem(const acltdtDataItem*) { return 0; }
size_t acltdtGetDatasetSize(const acltdtDataset*) { return 0; }
aclDataType acltdtGetDataTypeFromItem(const acltdtDataItem*) { return ACL_DT_UNDEFINED; }

// --- the rest ---

#define ANYACL_UNSUPPORTED(name, ...) \
  aclError name(__VA_ARGS__) { return NotSupported(#name); }
#define ANYACL_UNSUPPORTED_OBJECT(type, name, ...) \
  type name(__VA_ARGS__) {                         \
    NotSupported(#name);                           \
    return nullptr;                                \
  }

// Faults of real memory and links, and events shared between processes.
ANYACL_UNSUPPORTED(aclrtGetMemUceInfo, int32_t, aclrtMemUceInfo*, size_t, size_t*)
ANYACL_UNSUPPORTED(aclrtMemUceRepair, int32_t, aclrtMemUceInfo*, size_t)
ANYACL_UNSUPPORTED(aclrtGetErrorVerbose, int32_t, aclrtErrorInfo*)
ANYACL_UNSUPPORTED(aclrtRepairError, int32_t, const aclrtErrorInfo*)
ANYACL_UNSUPPORTED(aclrtIpcGetEventHandle, aclrtEvent, aclrtIpcEventHandle*)
ANYACL_UNSUPPORTED(aclrtIpcOpenEventHandle, aclrtIpcEventHandle, aclrtEvent*)

// What capture.cc leaves out of graph capture.
ANYACL_UNSUPPORTED(aclmdlRICaptureToModelRIBegin, aclrtStream, aclmdlRI, aclmdlRICaptureMode)
ANYACL_UNSUPPORTED(aclmdlRICaptureTaskGrpBegin, aclrtStream)
ANYACL_UNSUPPORTED(aclmdlRICaptureTaskGrpEnd, aclrtStream, aclrtTaskGrp*)
ANYACL_UNSUPPORTED(aclmdlRICaptureTaskUpdateBegin, aclrtStream, aclrtTaskGrp)
ANYACL_UNSUPPORTED(aclmdlRICaptureTaskUpdateEnd, aclrtStream)
ANYACL_UNSUPPORTED(aclmdlRIDebugPrint, aclmdlRI)
ANYACL_UNSUPPORTED(aclmdlRIDebugJsonPrint, aclmdlRI, const char*, uint32_t)
ANYACL_UNSUPPORTED(aclmdlRICondHandleCreate, aclmdlRI, uint32_t, aclmdlRICondHandleFlag,
                   aclmdlRICondHandle*)
ANYACL_UNSUPPORTED(aclmdlRICondHandleGetCondPtr, aclmdlRICondHandle, uint64_t**)
ANYACL_UNSUPPORTED(aclmdlRIAddCondTask, aclmdlRICondTaskParams, aclrtStream, uint32_t)

// Dump.
ANYACL_UNSUPPORTED(aclmdlInitDump, void)
ANYACL_UNSUPPORTED(aclmdlSetDump, const char*)
ANYACL_UNSUPPORTED(aclmdlFinalizeDump, void)
ANYACL_UNSUPPORTED(aclopStartDumpArgs, uint32_t, const char*)
ANYACL_UNSUPPORTED(aclopStopDumpArgs, uint32_t)

// Operators by name.
ANYACL_UNSUPPORTED_OBJECT(aclopAttr*, aclopCreateAttr, void)
ANYACL_UNSUPPORTED(aclopSetAttrBool, aclopAttr*, const char*, uint8_t)
ANYACL_UNSUPPORTED(aclopSetAttrInt, aclopAttr*, const char*, int64_t)
ANYACL_UNSUPPORTED(aclopSetAttrFloat, aclopAttr*, const char*, float)
ANYACL_UNSUPPORTED(aclopSetAttrString, aclopAttr*, const char*, const char*)
ANYACL_UNSUPPORTED(aclopSetAttrDataType, aclopAttr*, const char*, aclDataType)
ANYACL_UNSUPPORTED(aclopSetAttrListBool, aclopAttr*, const char*, int, const uint8_t*)
ANYACL_UNSUPPORTED(aclopSetAttrListInt, aclopAttr*, const char*, int, const int64_t*)
ANYACL_UNSUPPORTED(aclopSetAttrListFloat, aclopAttr*, const char*, int, const float*)
ANYACL_UNSUPPORTED(aclopSetAttrListListInt, aclopAttr*, const char*, int, const int*,
                   const int64_t* const[])
ANYACL_UNSUPPORTED(aclopSetModelDir, const char*)
ANYACL_UNSUPPORTED(aclopExecuteV2, const char*, int, aclTensorDesc*[], aclDataBuffer*[], int,
                   aclTensorDesc*[], aclDataBuffer*[], aclopAttr*, aclrtStream)
ANYACL_UNSUPPORTED(aclopCompile, const char*, int, const aclTensorDesc* const[], int,
                   const aclTensorDesc* const[], const aclopAttr*, aclopEngineType,
                   aclopCompileType, const char*)
ANYACL_UNSUPPORTED(aclopCompileAndExecute, const char*, int, const aclTensorDesc* const[],
                   const aclDataBuffer* const[], int, const aclTensorDesc* const[],
                   aclDataBuffer* const[], const aclopAttr*, aclopEngineType, aclopCompileType,
                   const char*, aclrtStream)
ANYACL_UNSUPPORTED(aclopCompileAndExecuteV2, const char*, int, aclTensorDesc*[], aclDataBuffer*[],
                   int, aclTensorDesc*[], aclDataBuffer*[], aclopAttr*, aclopEngineType,
                   aclopCompileType, const char*, aclrtStream)
ANYACL_UNSUPPORTED_OBJECT(aclGraphDumpOption*, aclCreateGraphDumpOpt, void)
ANYACL_UNSUPPORTED(aclDestroyGraphDumpOpt, const aclGraphDumpOption*)
ANYACL_UNSUPPORTED(aclGenGraphAndDumpForOp, const char*, int, const aclTensorDesc* const[],
                   const aclDataBuffer* const[], int, const aclTensorDesc* const[],
                   aclDataBuffer* const[], const aclopAttr*, aclopEngineType, const char*,
                   const aclGraphDumpOption*)

// Profiling.
ANYACL_UNSUPPORTED(aclprofInit, const char*, size_t)
ANYACL_UNSUPPORTED(aclprofFinalize, void)
ANYACL_UNSUPPORTED(aclprofSetConfig, aclprofConfigType, const char*, size_t)
ANYACL_UNSUPPORTED_OBJECT(aclprofConfig*, aclprofCreateConfig, uint32_t*, uint32_t,
                          aclprofAicoreMetrics, const aclprofAicoreEvents*, uint64_t)
ANYACL_UNSUPPORTED(aclprofDestroyConfig, const aclprofConfig*)
ANYACL_UNSUPPORTED(aclprofStart, const aclprofConfig*)
ANYACL_UNSUPPORTED(aclprofStop, const aclprofConfig*)
ANYACL_UNSUPPORTED_OBJECT(aclprofStepInfo*, aclprofCreateStepInfo, void)
ANYACL_UNSUPPORTED(aclprofGetStepTimestamp, aclprofStepInfo*, aclprofStepTag, aclrtStream)
ANYACL_UNSUPPORTED(aclprofMarkEx, const char*, size_t, aclrtStream)

// Data transfer channels.
ANYACL_UNSUPPORTED_OBJECT(void*, acltdtGetDataAddrFromItem, const acltdtDataItem*)
ANYACL_UNSUPPORTED(acltdtGetDimsFromItem, const acltdtDataItem*, int64_t*, size_t)
ANYACL_UNSUPPORTED(acltdtDestroyDataItem, acltdtDataItem*)
ANYACL_UNSUPPORTED_OBJECT(acltdtDataset*, acltdtCreateDataset, void)
ANYACL_UNSUPPORTED(acltdtDestroyDataset, acltdtDataset*)
ANYACL_UNSUPPORTED_OBJECT(acltdtDataItem*, acltdtGetDataItem, const acltdtDataset*, size_t)
ANYACL_UNSUPPORTED_OBJECT(const char*, acltdtGetDatasetName, const acltdtDataset*)
ANYACL_UNSUPPORTED_OBJECT(acltdtChannelHandle*, acltdtCreateChannelWithCapacity, uint32_t,
                          const char*, size_t)
ANYACL_UNSUPPORTED(acltdtDestroyChannel, acltdtChannelHandle*)
ANYACL_UNSUPPORTED(acltdtReceiveTensor, const acltdtChannelHandle*, acltdtDataset*, int32_t)
