// SPDX-License-Identifier: Apache-2.0
// Copyright The AnyACL Authors
//
// Recorded work on a GPU: a CUDA graph. The native capture is always "relaxed": which calls a capture forbids is
// decided by the runtime, whose rules are not those of CUDA.
#include <memory>
#include <set>
#include <string>
#include <vector>

#include "core/codes.h"
#include "cuda/backend.h"
#include "cuda/cuda_stream.h"

namespace anyacl::cuda {
namespace {

using runtime::StreamEngine;
using runtime::Where;

CudaStream& Of(StreamEngine& engine) { return static_cast<CudaStream&>(engine); }

class CudaGraph final : public runtime::Recording {
 public:
  ~CudaGraph() override {
    if (exec_) cudaGraphExecDestroy(exec_);
    for (const auto& call : host_calls_) {
      if (call->release) call->release(*call);
    }
  }

  Status Begin(StreamEngine& origin) override {
    CudaStream& stream = Of(origin);
    const DeviceGuard guard(stream.ordinal());
    Enter(&stream);
    const cudaError_t error = cudaStreamBeginCapture(stream.native(), cudaStreamCaptureModeRelaxed);
    if (error != cudaSuccess) LeaveAll();
    return ToStatus("cudaStreamBeginCapture", error);
  }

  Status Add(StreamEngine& engine, const Work& work, Where where) override {
    CudaStream& stream = Of(engine);
    if (where == Where::kAnywhere) return stream.Capture(work);
    const DeviceGuard guard(stream.ordinal());
    host_calls_.push_back(std::make_unique<Work>(work));
    const cudaError_t error = cudaLaunchHostFunc(stream.native(), Call, host_calls_.back().get());
    if (error != cudaSuccess) host_calls_.pop_back();
    return ToStatus(work.label, error);
  }

  int Point(StreamEngine& engine) override {
    CudaStream& stream = Of(engine);
    const DeviceGuard guard(stream.ordinal());
    points_.push_back(NativeEvent::Make(stream.ordinal(), false));
    if (points_.back()) cudaEventRecord(points_.back()->get(), stream.native());
    return static_cast<int>(points_.size()) - 1;
  }

  Status Join(StreamEngine& engine, int point) override {
    CudaStream& stream = Of(engine);
    const DeviceGuard guard(stream.ordinal());
    Enter(&stream);
    const auto& event = points_[static_cast<size_t>(point)];
    if (!event) return Status(code::kRtNoEventResource, "no event could be made for the capture");
    return ToStatus("cudaStreamWaitEvent", cudaStreamWaitEvent(stream.native(), event->get(), 0));
  }

  Status End(StreamEngine& origin, bool keep) override {
    CudaStream& stream = Of(origin);
    const DeviceGuard guard(stream.ordinal());
    cudaGraph_t graph = nullptr;
    if (!keep) JoinAll(&stream);
    cudaError_t error = cudaStreamEndCapture(stream.native(), &graph);
    LeaveAll();
    points_.clear();
    if (keep && error == cudaSuccess) error = cudaGraphInstantiate(&exec_, graph, 0);
    if (graph) cudaGraphDestroy(graph);
    cudaGetLastError();
    return keep ? ToStatus("the end of the capture", error) : Status();
  }

  Status Replay(StreamEngine& engine, const char* label, uint64_t* sequence) override {
    const auto run = [](Work& work, const Launch& launch) -> int32_t {
      return CodeOf(cudaGraphLaunch(runtime::PayloadOf<cudaGraphExec_t>(work), StreamOf(launch)));
    };
    return engine.Submit(runtime::MakeWork(label, 0, exec_, run), Where::kAnywhere, sequence);
  }

 private:
  // On a thread of CUDA. Nobody can be told of a failure here.
  static void CUDART_CB Call(void* recorded) {
    Work work = *static_cast<Work*>(recorded);
    try {
      work.run(work, Launch{});
    } catch (...) {
    }
  }

  // CUDA takes an end with unjoined streams for an error, also when nothing is kept.
  void JoinAll(CudaStream* origin) {
    for (CudaStream* stream : streams_) {
      if (stream == origin) continue;
      const Status ignored = Join(*origin, Point(*stream));
      (void)ignored;
    }
  }

  void Enter(CudaStream* stream) {
    if (streams_.insert(stream).second) stream->SetCaptured(true);
  }
  void LeaveAll() {
    for (CudaStream* stream : streams_) stream->SetCaptured(false);
    streams_.clear();
  }

  std::set<CudaStream*> streams_;
  std::vector<std::shared_ptr<NativeEvent>> points_;
  std::vector<std::unique_ptr<Work>> host_calls_;
  cudaGraphExec_t exec_ = nullptr;
};

}  // namespace

std::unique_ptr<runtime::Recording> CudaBackend::NewRecording() const {
  return std::make_unique<CudaGraph>();
}

}  // namespace anyacl::cuda
