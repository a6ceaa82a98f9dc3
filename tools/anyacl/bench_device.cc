// SPDX-License-Identifier: Apache-2.0
// Copyright The AnyACL Authors
//
// Times on a device that works by itself: many calls captured into one graph, so that the host's part of a launch does not
// count, over several sets of tensors in turn, so that nothing is still in the cache from the call before.
#include <algorithm>
#include <chrono>
#include <memory>
#include <vector>

#include "bench.h"
#include "harness/session.h"
#include "library.h"
#include "runtime/engine.h"

namespace anyacl::tool {
namespace {

using harness::Call;
using harness::Require;

constexpr int kMostSets = 64;
constexpr double kGraphUs = 3000;  // of work in one graph, where that takes at most kMostCalls
constexpr int kMostCalls = 512;
constexpr int kSamples = 20;

// A graph of `calls` pieces of work, as `record(i)` puts them on the stream.
class Graph {
 public:
  template <class Record>
  Graph(aclrtStream stream, int calls, Record&& record) : stream_(stream), calls_(calls) {
    Require(aclmdlRICaptureBegin(stream, ACL_MODEL_RI_CAPTURE_MODE_RELAXED),
            "aclmdlRICaptureBegin");
    for (int i = 0; i < calls; ++i) record(i);
    Require(aclmdlRICaptureEnd(stream, &model_), "aclmdlRICaptureEnd");
    Require(aclrtCreateEvent(&start_), "aclrtCreateEvent");
    Require(aclrtCreateEvent(&end_), "aclrtCreateEvent");
    Sample();  // the first replay puts the graph onto the device
  }
  ~Graph() {
    aclrtSynchronizeStream(stream_);
    aclmdlRIDestroy(model_);
    aclrtDestroyEvent(start_);
    aclrtDestroyEvent(end_);
  }
  Graph(const Graph&) = delete;
  Graph& operator=(const Graph&) = delete;

  // Microseconds of one call.
  double Sample() {
    float ms = 0;
    Require(aclrtRecordEvent(start_, stream_), "aclrtRecordEvent");
    Require(aclmdlRIExecuteAsync(model_, stream_), "aclmdlRIExecuteAsync");
    Require(aclrtRecordEvent(end_, stream_), "aclrtRecordEvent");
    Require(aclrtSynchronizeStream(stream_), "aclrtSynchronizeStream");
    Require(aclrtEventElapsedTime(&ms, start_, end_), "aclrtEventElapsedTime");
    return static_cast<double>(ms) * 1e3 / calls_;
  }

 private:
  aclrtStream stream_;
  int calls_;
  aclmdlRI model_ = nullptr;
  aclrtEvent start_ = nullptr;
  aclrtEvent end_ = nullptr;
};

// Enough to fill the shared cache three times.
int SetsFor(uint64_t bytes) {
  const auto cache = static_cast<uint64_t>(Library().backend().Facts(0).cache_bytes);
  const uint64_t sets = bytes == 0 ? 1 : (3 * cache + bytes - 1) / bytes;
  return static_cast<int>(std::clamp<uint64_t>(sets, 1, kMostSets));
}

// As many calls as make a graph of some length; every set equally often.
int CallsFor(double one_us, int sets) {
  const double wanted = std::clamp(kGraphUs / std::max(one_us, 0.1), 4.0, double{kMostCalls});
  return (static_cast<int>(wanted) + sets - 1) / sets * sets;
}

void SubmitPass(const MovePass& pass, aclrtStream stream) {
  struct Payload {
    const Backend* backend;
    MovePass pass;
  };
  const Work work = runtime::MakeWork("roof", pass.bytes, Payload{&Library().backend(), pass},
                                      [](Work& w, const Launch& launch) {
                                        const Payload& payload = runtime::PayloadOf<Payload>(w);
                                        payload.backend->Move(payload.pass, launch);
                                        return 0;
                                      });
  const Status status = Library().submit(stream, work);
  Require(status.code(), "roof");
}

// Both phases, without waiting for the device: batches short enough for its queue, for long enough that the host's
// clock has risen.
double CallUs(Call& call, aclrtStream stream) {
  constexpr int kBatch = 64;
  constexpr double kEnoughUs = 100000;
  void* const workspace = call.workspace();
  std::vector<double> samples;
  for (double all = 0; all < kEnoughUs;) {
    const auto start = std::chrono::steady_clock::now();
    for (int n = 0; n < kBatch; ++n) {
      uint64_t size = 0;
      void* executor = nullptr;
      call.op().entry->get_workspace_size(call.raw().data(), &size, &executor);
      call.op().entry->run(workspace, size, executor, stream);
    }
    const std::chrono::duration<double, std::micro> spent =
        std::chrono::steady_clock::now() - start;
    Require(aclrtSynchronizeStream(stream), "aclrtSynchronizeStream");
    samples.push_back(spent.count() / kBatch);
    all += spent.count();
  }
  return Median(samples);
}

}  // namespace

BenchRow MeasureOnDevice(const Operator& op, const harness::OperatorCases& cases,
                         const harness::Case& row, const harness::TypeChoice& type,
                         aclrtStream stream) {
  std::vector<std::unique_ptr<Call>> sets;
  const auto add = [&] {
    sets.push_back(
        std::make_unique<Call>(op, MakeCall(op.contract, cases, row, type),
                               harness::CallOptions{.seed = sets.size() + 1, .guards = false}));
    Require(sets.back()->PlanRepeatable(), op.contract.op());
  };
  add();
  const uint64_t bytes = BytesOf(*sets[0]);
  while (static_cast<int>(sets.size()) < SetsFor(bytes)) add();
  const int count = static_cast<int>(sets.size());

  const auto run = [&](int i) { Require(sets[i % count]->Run(stream), op.contract.op()); };
  const double first_us = Graph(stream, 4 * count, run).Sample();
  Graph graph(stream, CallsFor(first_us, count), run);
  std::vector<MovePass> passes;
  for (const auto& set : sets) passes.push_back(RoofOf(*set).DevicePass());
  const bool has_roof = passes[0].read_count > 0 && passes[0].write_count > 0;
  const auto move = [&](int i) { SubmitPass(passes[i % count], stream); };
  Graph roof(stream, CallsFor(first_us, count), [&](int i) {
    if (has_roof) move(i);
  });

  std::vector<double> samples;
  double roof_us = roof.Sample();
  for (int i = 0; i < kSamples; ++i) {
    samples.push_back(graph.Sample());
    roof_us = std::min(roof_us, roof.Sample());
  }
  const uint64_t moved = (passes[0].read_count + passes[0].write_count) * passes[0].bytes;
  return {cases.op,
          row.name,
          type.label,
          Library().backend().name(),
          Library().kernel_of(sets[0]->executor()),
          0,
          Median(samples),
          bytes,
          static_cast<double>(moved) / std::max(roof_us, 1e-3) * 1e-3,
          PlanUs(*sets[0]),
          CallUs(*sets[0], stream),
          {}};
}

}  // namespace anyacl::tool
