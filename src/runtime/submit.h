// SPDX-License-Identifier: Apache-2.0
// Copyright The AnyACL Authors
//
// The runtime as the plan room sees it.
#ifndef ANYACL_RUNTIME_SUBMIT_H_
#define ANYACL_RUNTIME_SUBMIT_H_

#include "core/status.h"
#include "runtime/backend.h"

namespace anyacl::runtime {

// Backend of the calling thread's current device; of device 0 when none was selected. Never null.
const Backend& CurrentBackend();

// Puts work on a stream (null: the default stream of the current context) and returns without waiting
// for it, except that small work may run here and now when the stream is idle. Allocates nothing once
// the stream is warm. On failure the work was neither run nor released: the caller still owns it.
Status Submit(void* stream_handle, const Work& work);

}  // namespace anyacl::runtime

#endif  // ANYACL_RUNTIME_SUBMIT_H_
