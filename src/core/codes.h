// SPDX-License-Identifier: Apache-2.0
// Copyright The AnyACL Authors
//
// The status codes this library returns, by meaning. The public headers spell them for users; inside
// we use these names so that no room below the C border depends on the public headers.
#ifndef ANYACL_CORE_CODES_H_
#define ANYACL_CORE_CODES_H_

#include <cstdint>

namespace anyacl::code {

// aclnn operators and objects
inline constexpr int32_t kNull = 161001;
inline constexpr int32_t kInvalid = 161002;
inline constexpr int32_t kRuntime = 361001;
inline constexpr int32_t kInner = 561000;
inline constexpr int32_t kTiling = 561002;
inline constexpr int32_t kNoKernel = 561003;
inline constexpr int32_t kInnerNull = 561103;

// acl and aclrt
inline constexpr int32_t kAclInvalidParam = 100000;
inline constexpr int32_t kAclRepeatInitialize = 100002;
inline constexpr int32_t kAclInvalidFile = 100003;
inline constexpr int32_t kAclParseFile = 100006;
inline constexpr int32_t kAclRepeatFinalize = 100037;
inline constexpr int32_t kAclBadAlloc = 200000;
inline constexpr int32_t kAclNotSupported = 200001;
inline constexpr int32_t kAclInternal = 500000;
inline constexpr int32_t kRtParamInvalid = 107000;
inline constexpr int32_t kRtInvalidDevice = 107001;
inline constexpr int32_t kRtContextNull = 107002;
inline constexpr int32_t kRtStreamContext = 107003;
inline constexpr int32_t kRtTimestampInvalid = 107006;
inline constexpr int32_t kRtTimestampReversal = 107007;
inline constexpr int32_t kRtStreamSubscribed = 107011;
inline constexpr int32_t kRtNoSubscription = 107015;
inline constexpr int32_t kRtInvalidHandle = 107017;
inline constexpr int32_t kRtWaitTimeout = 107019;
inline constexpr int32_t kRtSysParamNotSet = 107021;
inline constexpr int32_t kRtDeviceTaskAbort = 107022;
inline constexpr int32_t kRtStreamAbort = 107023;
inline constexpr int32_t kRtCaptureDependency = 107024;
inline constexpr int32_t kRtStreamUnjoined = 107025;
inline constexpr int32_t kRtStreamCaptured = 107027;
inline constexpr int32_t kRtEventCaptured = 107028;
inline constexpr int32_t kRtStreamNotCaptured = 107029;
inline constexpr int32_t kRtCaptureMode = 107030;
inline constexpr int32_t kRtCaptureImplicit = 107031;
inline constexpr int32_t kRtCaptureConflict = 107032;
inline constexpr int32_t kRtCaptureUnmatched = 107036;
inline constexpr int32_t kRtModelRunning = 107037;
inline constexpr int32_t kRtCaptureWrongThread = 107038;
inline constexpr int32_t kRtCaptureBlocksAsync = 107041;
inline constexpr int32_t kRtNotSupported = 207000;
inline constexpr int32_t kRtOutOfMemory = 207001;
inline constexpr int32_t kRtNoDevice = 207004;
inline constexpr int32_t kRtNoEventResource = 207007;
inline constexpr int32_t kRtNoStreamResource = 207008;
inline constexpr int32_t kRtContextRelease = 507007;
inline constexpr int32_t kRtReportTimeout = 507012;
inline constexpr int32_t kRtCoreException = 507015;
inline constexpr int32_t kRtStreamSyncTimeout = 507046;
inline constexpr int32_t kRtEventSyncTimeout = 507047;
inline constexpr int32_t kRtDriver = 507899;
inline constexpr int32_t kRtCaptureInvalidated = 507903;
inline constexpr int32_t kRtHostRegistered = 507910;
inline constexpr int32_t kRtHostNotRegistered = 507911;

}  // namespace anyacl::code

#endif  // ANYACL_CORE_CODES_H_
