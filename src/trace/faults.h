// SPDX-License-Identifier: Apache-2.0
// Copyright The AnyACL Authors
//
// ANYACL_FAIL=POINT,POINT...: calls that are to fail. A point is NAME:N, the N-th call of that function, or of those that
// begin so when it ends in *. A third field is the code it fails with, or "async": then the work that the call puts on its
// stream fails there.
#ifndef ANYACL_TRACE_FAULTS_H_
#define ANYACL_TRACE_FAULTS_H_

#include <cstdint>

namespace anyacl::trace {

// Complains of what it cannot read on standard error; false when nothing is left.
bool ReadFaults(const char* text);

// Counts a call. The code it is to fail with, or 0.
int32_t FaultAtCall(const char* function) noexcept;
// Counts work that is put on a stream, by the name of its function. The code it is to fail with, or 0.
int32_t FaultOnStream(const char* label) noexcept;

}  // namespace anyacl::trace

#endif  // ANYACL_TRACE_FAULTS_H_
