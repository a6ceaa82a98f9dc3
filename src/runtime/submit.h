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

// What ACL_OPT_DETERMINISTIC is for the calling thread's context.
int64_t Determinism();

// The stream that Submit would put work on: its number, which no later stream has; -1 when the handle means none.
struct StreamFacts {
  int id = -1;
  int device = 0;
  bool is_captured = false;
};
StreamFacts FactsOf(void* stream_handle);

// Puts work on a stream (null: the default stream of the current context) and returns without waiting
// for it, except that small work may run here and now when the stream is idle. Allocates nothing once
// the stream is warm. On failure the work was neither run nor released: the caller still owns it.
Status Submit(void* stream_handle, const Work& work);

// The same, and waits until it is done. A stream that is captured refuses it. *submitted: as Submit would have succeeded,
// so that the caller does not own the work any more.
Status SubmitAndWait(void* stream_handle, const Work& work, bool* submitted);

// As Submit, and, where that is possible (not in a capture, not in a host function of the stream), returns when it is done,
// with its failure.
Status SubmitBlocking(void* stream_handle, const Work& work, bool* submitted);

}  // namespace anyacl::runtime

#endif  // ANYACL_RUNTIME_SUBMIT_H_
