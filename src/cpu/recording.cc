// SPDX-License-Identifier: Apache-2.0
// Copyright The AnyACL Authors
//
// Recorded work on the CPU: a list in the order it came, over all streams of the capture. That order is one of those
// that the streams and their events allow, so a replay runs the list from front to back and needs no points.
#include <vector>

#include "cpu/backend.h"
#include "runtime/engine.h"

namespace anyacl::cpu {
namespace {

using runtime::StreamEngine;
using runtime::Where;

class WorkList final : public runtime::Recording {
 public:
  ~WorkList() override {
    for (Work& work : works_) {
      if (work.release) work.release(work);
    }
  }

  Status Begin(StreamEngine&) override { return Status(); }

  Status Add(StreamEngine&, const Work& work, Where where) override {
    works_.push_back(work);
    cost_bytes_ += work.cost_bytes;
    if (where == Where::kOnStreamThread) where_ = where;
    return Status();
  }

  int Point(StreamEngine&) override { return 0; }
  Status Join(StreamEngine&, int) override { return Status(); }
  Status End(StreamEngine&, bool) override { return Status(); }

  Status Replay(StreamEngine& engine, const char* label, uint64_t* sequence) override {
    return engine.Submit(runtime::MakeWork(label, cost_bytes_, this, RunAll), where_, sequence);
  }

 private:
  // Goes on after a failure, as a stream does, and reports the first.
  static int32_t RunAll(Work& replay, const Launch& launch) {
    int32_t result = 0;
    for (const Work& recorded : runtime::PayloadOf<WorkList*>(replay)->works_) {
      Work work = recorded;  // run may change it
      const int32_t code = work.run(work, launch);
      if (code == 0 || result != 0) continue;
      result = code;
      replay.label = work.label;
    }
    return result;
  }

  std::vector<Work> works_;
  uint64_t cost_bytes_ = 0;
  Where where_ = Where::kAnywhere;
};

}  // namespace

std::unique_ptr<runtime::Recording> CpuBackend::NewRecording() const {
  return std::make_unique<WorkList>();
}

}  // namespace anyacl::cpu
