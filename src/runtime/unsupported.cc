// SPDX-License-Identifier: Apache-2.0
// Copyright The AnyACL Authors
//
// Functions that exist so that programs link, and say that they do nothing.
//
// Which code matters: clients of the original take 207000 for a feature that is merely off and go on as if the call had
// succeeded. So it is for calls that nothing depends on, and leaves no text that could be taken for another failure's.
// What promises an output or a change answers 200001 with a sentence, or null.
#include "acl/acl_dump.h"
#include "acl/acl_link_only.h"
#include "acl/acl_mdl.h"
#include "acl/acl_op.h"
#include "acl/acl_op_compiler.h"
#include "acl/acl_prof.h"
#include "acl/acl_rt.h"
#include "acl/acl_tdt.h"
#include "core/border.h"
#include "core/log.h"
#include "runtime/internal.h"

namespace anyacl::runtime {
namespace {

constexpr char kSentence[] = "is not supported by AnyACL";

int32_t Refused(const char* function) {
  return AclBorder(function, [&] { return Fail(code::kAclNotSupported, function, kSentence); });
}

// The name goes into the sentence: it is what tells the user which operator was meant.
int32_t RefusedOperator(const char* function, const char* type) {
  return AclBorder(function, [&] {
    return Fail(code::kAclNotSupported, function,
                "operators by name are not supported by AnyACL, got operator {}",
                type ? type : "null");
  });
}

int32_t SwitchedOff(const char* function) noexcept {
  try {
    if (log::Enabled(log::Level::kInfo)) {
      log::Write(log::Level::kInfo, ::fmt::format("{}: {}", function, kSentence));
    }
  } catch (...) {  // a line of the log less
  }
  return code::kRtNotSupported;
}

}  // namespace
}  // namespace anyacl::runtime

using anyacl::AclBorder;
using anyacl::Status;
using namespace anyacl::runtime;  // NOLINT: the C functions of this room
namespace code = anyacl::code;

// --- what is true without any of it ---

// Nothing can have been created that these would free.
void aclopDestroyAttr(const aclopAttr*) {}
void aclprofDestroyStepInfo(aclprofStepInfo*) {}
size_t acltdtGetDimNumFromItem(const acltdtDataItem*) { return 0; }
size_t acltdtGetDatasetSize(const acltdtDataset*) { return 0; }
aclDataType acltdtGetDataTypeFromItem(const acltdtDataItem*) { return ACL_DT_UNDEFINED; }

// Nobody listens to what is reported.
uint64_t MsprofGetHashId(const char*, size_t) { return 0; }
uint64_t MsprofSysCycleTime(void) { return 0; }
int32_t MsprofRegisterCallback(uint32_t, MsprofCommandHandle) { return 0; }
int32_t MsprofReportApi(uint32_t, const void*) { return 0; }
int32_t MsprofReportCompactInfo(uint32_t, const void*, uint32_t) { return 0; }
int32_t MsprofReportAdditionalInfo(uint32_t, const void*, uint32_t) { return 0; }

// A device here has no faults of its own. Clients ask after every failure of an operator, so the answer must leave that
// failure's code and sentence alone.
aclError aclrtGetErrorVerbose(int32_t deviceId, aclrtErrorInfo* errorInfo) {
  constexpr const char* kName = "aclrtGetErrorVerbose";
  return AclBorder(kName, [&]() -> Status {
    ANYACL_RETURN_IF_ERROR(RequireNotNull(kName, "errorInfo", errorInfo));
    ANYACL_RETURN_IF_ERROR(RequireDevice(kName, deviceId));
    *errorInfo = {};
    errorInfo->errorType = ACL_RT_NO_ERROR;
    return Status();
  });
}

aclError aclrtGetMemUceInfo(int32_t deviceId, aclrtMemUceInfo* memUceInfoArray, size_t arraySize,
                            size_t* retSize) {
  constexpr const char* kName = "aclrtGetMemUceInfo";
  return AclBorder(kName, [&]() -> Status {
    ANYACL_RETURN_IF_ERROR(RequireNotNull(kName, "retSize", retSize));
    if (arraySize > 0) {
      ANYACL_RETURN_IF_ERROR(RequireNotNull(kName, "memUceInfoArray", memUceInfoArray));
    }
    ANYACL_RETURN_IF_ERROR(RequireDevice(kName, deviceId));
    *retSize = 0;
    return Status();
  });
}

// --- the rest ---

#define ANYACL_REFUSED(name, ...) \
  aclError name(__VA_ARGS__) { return Refused(#name); }
#define ANYACL_REFUSED_OBJECT(type, name, ...) \
  type name(__VA_ARGS__) {                     \
    Refused(#name);                            \
    return nullptr;                            \
  }
#define ANYACL_REFUSED_OPERATOR(name, ...) \
  aclError name(const char* type, __VA_ARGS__) { return RefusedOperator(#name, type); }
#define ANYACL_SWITCHED_OFF(name, ...) \
  aclError name(__VA_ARGS__) { return SwitchedOff(#name); }

// Repairs of real memory and links: there is never anything to repair.
ANYACL_SWITCHED_OFF(aclrtMemUceRepair, int32_t, aclrtMemUceInfo*, size_t)
ANYACL_SWITCHED_OFF(aclrtRepairError, int32_t, const aclrtErrorInfo*)

// Sharing between processes.
ANYACL_REFUSED(aclrtIpcGetEventHandle, aclrtEvent, aclrtIpcEventHandle*)
ANYACL_REFUSED(aclrtIpcOpenEventHandle, aclrtIpcEventHandle, aclrtEvent*)
ANYACL_REFUSED(aclrtMemExportToShareableHandle, aclrtDrvMemHandle, aclrtMemHandleType, uint64_t,
               uint64_t*)
ANYACL_REFUSED(aclrtMemImportFromShareableHandle, uint64_t, int32_t, aclrtDrvMemHandle*)
ANYACL_REFUSED(aclrtMemSetPidToShareableHandle, uint64_t, int32_t*, size_t)
ANYACL_REFUSED(aclrtIpcMemGetExportKey, void*, size_t, char*, size_t, uint64_t)
ANYACL_REFUSED(aclrtIpcMemClose, const char*)
ANYACL_REFUSED(aclrtIpcMemImportByKey, void**, const char*, uint64_t)
ANYACL_REFUSED(aclrtIpcMemSetImportPid, const char*, int32_t*, size_t)

// Kernels of the original's chips.
ANYACL_REFUSED(aclrtBinaryLoadFromData, const void*, size_t, const aclrtBinaryLoadOptions*,
               aclrtBinHandle*)
ANYACL_REFUSED(aclrtBinaryGetFunction, const aclrtBinHandle, const char*, aclrtFuncHandle*)
ANYACL_REFUSED(aclrtGetFunctionAddr, aclrtFuncHandle, void**, void**)
ANYACL_REFUSED(rtDevBinaryRegister, const void*, void**)
ANYACL_REFUSED(rtFunctionRegister, void*, const void*, const char*, const void*, uint32_t)
ANYACL_REFUSED(rtKernelLaunch, const void*, uint32_t, void*, uint32_t, void*, void*)
ANYACL_REFUSED(rtGetC2cCtrlAddr, uint64_t*, uint32_t*)

// What capture.cc leaves out of graph capture.
ANYACL_REFUSED(aclmdlRICaptureToModelRIBegin, aclrtStream, aclmdlRI, aclmdlRICaptureMode)
ANYACL_REFUSED(aclmdlRICaptureTaskGrpBegin, aclrtStream)
ANYACL_REFUSED(aclmdlRICaptureTaskGrpEnd, aclrtStream, aclrtTaskGrp*)
ANYACL_REFUSED(aclmdlRICaptureTaskUpdateBegin, aclrtStream, aclrtTaskGrp)
ANYACL_REFUSED(aclmdlRICaptureTaskUpdateEnd, aclrtStream)
ANYACL_SWITCHED_OFF(aclmdlRIDebugPrint, aclmdlRI)
ANYACL_SWITCHED_OFF(aclmdlRIDebugJsonPrint, aclmdlRI, const char*, uint32_t)
ANYACL_REFUSED(aclmdlRICondHandleCreate, aclmdlRI, uint32_t, aclmdlRICondHandleFlag,
               aclmdlRICondHandle*)
ANYACL_REFUSED(aclmdlRICondHandleGetCondPtr, aclmdlRICondHandle, uint64_t**)
ANYACL_REFUSED(aclmdlRIAddCondTask, aclmdlRICondTaskParams, aclrtStream, uint32_t)

// Dump.
ANYACL_REFUSED(aclmdlInitDump, void)
ANYACL_REFUSED(aclmdlSetDump, const char*)
ANYACL_SWITCHED_OFF(aclmdlFinalizeDump, void)
ANYACL_REFUSED(aclopStartDumpArgs, uint32_t, const char*)
ANYACL_SWITCHED_OFF(aclopStopDumpArgs, uint32_t)

// Operators by name.
ANYACL_REFUSED_OBJECT(aclopAttr*, aclopCreateAttr, void)
ANYACL_REFUSED(aclopSetAttrBool, aclopAttr*, const char*, uint8_t)
ANYACL_REFUSED(aclopSetAttrInt, aclopAttr*, const char*, int64_t)
ANYACL_REFUSED(aclopSetAttrFloat, aclopAttr*, const char*, float)
ANYACL_REFUSED(aclopSetAttrString, aclopAttr*, const char*, const char*)
ANYACL_REFUSED(aclopSetAttrDataType, aclopAttr*, const char*, aclDataType)
ANYACL_REFUSED(aclopSetAttrListBool, aclopAttr*, const char*, int, const uint8_t*)
ANYACL_REFUSED(aclopSetAttrListInt, aclopAttr*, const char*, int, const int64_t*)
ANYACL_REFUSED(aclopSetAttrListFloat, aclopAttr*, const char*, int, const float*)
ANYACL_REFUSED(aclopSetAttrListListInt, aclopAttr*, const char*, int, const int*,
               const int64_t* const[])
ANYACL_REFUSED(aclopSetModelDir, const char*)
ANYACL_REFUSED_OPERATOR(aclopExecuteV2, int, aclTensorDesc*[], aclDataBuffer*[], int,
                        aclTensorDesc*[], aclDataBuffer*[], aclopAttr*, aclrtStream)
ANYACL_REFUSED_OPERATOR(aclopCompile, int, const aclTensorDesc* const[], int,
                        const aclTensorDesc* const[], const aclopAttr*, aclopEngineType,
                        aclopCompileType, const char*)
ANYACL_REFUSED_OPERATOR(aclopCompileAndExecute, int, const aclTensorDesc* const[],
                        const aclDataBuffer* const[], int, const aclTensorDesc* const[],
                        aclDataBuffer* const[], const aclopAttr*, aclopEngineType, aclopCompileType,
                        const char*, aclrtStream)
ANYACL_REFUSED_OPERATOR(aclopCompileAndExecuteV2, int, aclTensorDesc*[], aclDataBuffer*[], int,
                        aclTensorDesc*[], aclDataBuffer*[], aclopAttr*, aclopEngineType,
                        aclopCompileType, const char*, aclrtStream)
ANYACL_REFUSED_OBJECT(aclGraphDumpOption*, aclCreateGraphDumpOpt, void)
ANYACL_SWITCHED_OFF(aclDestroyGraphDumpOpt, const aclGraphDumpOption*)
ANYACL_REFUSED_OPERATOR(aclGenGraphAndDumpForOp, int, const aclTensorDesc* const[],
                        const aclDataBuffer* const[], int, const aclTensorDesc* const[],
                        aclDataBuffer* const[], const aclopAttr*, aclopEngineType, const char*,
                        const aclGraphDumpOption*)

// Profiling.
ANYACL_REFUSED(aclprofInit, const char*, size_t)
ANYACL_SWITCHED_OFF(aclprofFinalize, void)
ANYACL_REFUSED(aclprofSetConfig, aclprofConfigType, const char*, size_t)
ANYACL_REFUSED_OBJECT(aclprofConfig*, aclprofCreateConfig, uint32_t*, uint32_t,
                      aclprofAicoreMetrics, const aclprofAicoreEvents*, uint64_t)
ANYACL_SWITCHED_OFF(aclprofDestroyConfig, const aclprofConfig*)
ANYACL_REFUSED(aclprofStart, const aclprofConfig*)
ANYACL_SWITCHED_OFF(aclprofStop, const aclprofConfig*)
ANYACL_REFUSED_OBJECT(aclprofStepInfo*, aclprofCreateStepInfo, void)
ANYACL_SWITCHED_OFF(aclprofGetStepTimestamp, aclprofStepInfo*, aclprofStepTag, aclrtStream)
ANYACL_SWITCHED_OFF(aclprofMarkEx, const char*, size_t, aclrtStream)

// Data transfer channels.
ANYACL_REFUSED_OBJECT(void*, acltdtGetDataAddrFromItem, const acltdtDataItem*)
ANYACL_REFUSED(acltdtGetDimsFromItem, const acltdtDataItem*, int64_t*, size_t)
ANYACL_REFUSED(acltdtDestroyDataItem, acltdtDataItem*)
ANYACL_REFUSED_OBJECT(acltdtDataset*, acltdtCreateDataset, void)
ANYACL_REFUSED(acltdtDestroyDataset, acltdtDataset*)
ANYACL_REFUSED_OBJECT(acltdtDataItem*, acltdtGetDataItem, const acltdtDataset*, size_t)
ANYACL_REFUSED_OBJECT(const char*, acltdtGetDatasetName, const acltdtDataset*)
ANYACL_REFUSED_OBJECT(acltdtChannelHandle*, acltdtCreateChannelWithCapacity, uint32_t, const char*,
                      size_t)
ANYACL_REFUSED(acltdtDestroyChannel, acltdtChannelHandle*)
ANYACL_REFUSED(acltdtReceiveTensor, const acltdtChannelHandle*, acltdtDataset*, int32_t)
