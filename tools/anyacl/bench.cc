// SPDX-License-Identifier: Apache-2.0
// Copyright The AnyACL Authors
#include "bench.h"

#include <algorithm>
#include <chrono>
#include <vector>

#include "harness/session.h"
#include "library.h"

namespace anyacl::tool {
namespace {

using harness::Call;
using harness::Require;
using Clock = std::chrono::steady_clock;

// A sample repeats its work until both of the first two are reached, or the third alone: then neither
// the clock nor waking the stream's thread counts.
constexpr double kShortUs = 200;
constexpr int kShortRepetitions = 16;
constexpr double kLongUs = 3000;

constexpr int kSamples = 12;  // in an attempt

// On shared machines the memory changes its speed within a second, and a time over a floor of another speed says
// nothing. Attempts are short, therefore, and one whose floor wavered is made again; the steadiest counts. The floor
// itself, measured as if it were a row, so came out at 1.02 times the floor for arrays of 205 MB and 1.03 for 67 MB;
// with samples of 30 ms, five attempts and the best of three ways at 1.06 (1.03 to 1.13) and 1.08.
constexpr double kMostOfTheTime = 0.75;
constexpr double kSteady = 1.02;
constexpr int kAttempts = 40;

double MicrosecondsSince(Clock::time_point start) {
  return std::chrono::duration<double, std::micro>(Clock::now() - start).count();
}

// The smallest value that so large a part of them does not exceed.
double Quantile(std::vector<double> values, double part) {
  const auto at =
      values.begin() + static_cast<ptrdiff_t>(static_cast<double>(values.size()) * part);
  std::nth_element(values.begin(), at, values.end());
  return *at;
}

// Microseconds of one of `count` repetitions.
template <class F>
double TimePer(int count, F&& f) {
  const Clock::time_point start = Clock::now();
  for (int i = 0; i < count; ++i) f();
  return MicrosecondsSince(start) / count;
}

// How many repetitions make a sample.
template <class F>
int Repetitions(F&& f) {
  TimePer(1, f);
  int count = 1;
  while (count < 1 << 16) {
    const double us = TimePer(count, f) * count;
    if (us >= kLongUs || (us >= kShortUs && count >= kShortRepetitions)) break;
    count *= 2;
  }
  return count;
}

// --- the case ------------------------------------------------------------------------------------

class CaseTimer {
 public:
  CaseTimer(Call& call, aclrtStream stream) : call_(call), stream_(stream) {
    Require(call_.PlanRepeatable(), call_.op().contract.op());
    kernel_ = Library().kernel_of(call_.executor());
    count_ = Repetitions([&] { Run(1); });
  }

  // The run alone. Work that is queued follows one another, so the wake-up of the stream counts
  // once.
  double Sample() {
    return TimePer(1, [&] { Run(count_); }) / count_;
  }
  const std::string& kernel() const { return kernel_; }

 private:
  void Run(int count) {
    for (int i = 0; i < count; ++i) call_.Run(stream_);
    Require(aclrtSynchronizeStream(stream_), "aclrtSynchronizeStream");
  }

  Call& call_;
  aclrtStream stream_;
  std::string kernel_;
  int count_ = 1;
};

// Both phases. Work that ran inside phase 2 leaves the stream idle, so such calls are timed in
// batches.
double CallUs(Call& call, aclrtStream stream) {
  constexpr double kEnoughUs = 250000;
  void* const workspace = call.workspace();
  const auto both = [&] {
    uint64_t size = 0;
    void* executor = nullptr;
    call.op().entry->get_workspace_size(call.raw().data(), &size, &executor);
    call.op().entry->run(workspace, size, executor, stream);
  };
  aclrtStreamStatus status = ACL_STREAM_STATUS_NOT_READY;
  both();
  Require(aclrtStreamQuery(stream, &status), "aclrtStreamQuery");
  const bool inline_run = status == ACL_STREAM_STATUS_COMPLETE;
  Require(aclrtSynchronizeStream(stream), "aclrtSynchronizeStream");
  const int batch = inline_run ? Repetitions(both) : 1;
  const int most = inline_run ? 400 : 50;
  std::vector<double> samples;
  for (double spent = 0; static_cast<int>(samples.size()) < most && spent < kEnoughUs;) {
    const Clock::time_point start = Clock::now();
    samples.push_back(TimePer(batch, both));
    Require(aclrtSynchronizeStream(stream), "aclrtSynchronizeStream");
    spent += MicrosecondsSince(start);
  }
  return Median(samples);
}

// --- the roof ------------------------------------------------------------------------------------

class RoofTimer {
 public:
  explicit RoofTimer(Roof roof) : roof_(std::move(roof)), way_(FastestWay()) {}

  double Sample() { return Sample(way_); }
  double Gbps(double us) const { return static_cast<double>(roof_.bytes()) / us * 1e-3; }

 private:
  struct Way {
    RoofWay way;
    int count;
    std::vector<double> samples;
  };

  double Sample(const Way& way) const {
    return TimePer(way.count, [&] { roof_.Pass(way.way); });
  }

  // In turns, so that the memory's moods meet all of them.
  Way FastestWay() const {
    constexpr int kRounds = 8;
    std::vector<Way> ways;
    for (const RoofWay& way : roof_.Ways()) {
      ways.push_back({way, Repetitions([&] { roof_.Pass(way); }), {}});
    }
    for (int round = 0; round < kRounds; ++round) {
      for (Way& way : ways) way.samples.push_back(Sample(way));
    }
    return *std::min_element(ways.begin(), ways.end(), [](const Way& a, const Way& b) {
      return Median(a.samples) < Median(b.samples);
    });
  }

  Roof roof_;
  Way way_;
};

// --- both, in turns ------------------------------------------------------------------------------

struct Times {
  double run_us;
  double roof_us;
  double wavering;  // how much slower the memory was for a part of the time: 1 is not at all
};

Times Attempt(CaseTimer& timer, RoofTimer& roof) {
  std::vector<double> runs;
  std::vector<double> floors;
  for (int i = 0; i < kSamples; ++i) {
    runs.push_back(timer.Sample());
    floors.push_back(roof.Sample());
  }
  const double roof_us = Quantile(floors, 0);
  return {Median(runs), roof_us, Quantile(floors, kMostOfTheTime) / roof_us};
}

Times SteadiestOf(CaseTimer& timer, RoofTimer& roof) {
  Times steadiest = Attempt(timer, roof);
  for (int i = 1; i < kAttempts && steadiest.wavering > kSteady; ++i) {
    const Times times = Attempt(timer, roof);
    if (times.wavering < steadiest.wavering) steadiest = times;
  }
  return steadiest;
}

size_t BytesOf(const Tensor& t) { return static_cast<size_t>(t.numel()) * SizeOf(t.dtype); }

std::vector<Stretch> Stretches(const Call& call, const std::vector<int>& args) {
  std::vector<Stretch> result;
  for (const int arg : args) {
    const size_t bytes = BytesOf(call.spec().args[arg].tensor);
    if (bytes > 0) result.push_back({call.address(arg), bytes});
  }
  return result;
}

// --- the arithmetic alone ------------------------------------------------------------------------

double RunUs(const Operator& op, const harness::CaseCall& spec, aclrtStream stream) {
  Call call(op, spec, {.guards = false});
  CaseTimer timer(call, stream);
  std::vector<double> samples;
  for (int i = 0; i < 100; ++i) samples.push_back(timer.Sample());
  return Median(samples);
}

// Element-wise rows: the kernel on arrays in the first cache, the cost of the call taken out by a
// difference, scaled to the row's elements and shared by the threads.
double ArithmeticUs(const Operator& op, const harness::OperatorCases& cases, harness::Case row,
                    const harness::TypeChoice& type, aclrtStream stream) {
  constexpr double kLong = 6144;
  constexpr double kShort = 2048;
  const double elements = static_cast<double>(Numel(row.ParsedDims()));
  row.dims = "6144";
  const double long_us = RunUs(op, MakeCall(op.contract, cases, row, type), stream);
  row.dims = "2048";
  const double short_us = RunUs(op, MakeCall(op.contract, cases, row, type), stream);
  return (long_us - short_us) / (kLong - kShort) * elements / Library().threads();
}

}  // namespace

double Median(std::vector<double> values) { return Quantile(std::move(values), 0.5); }

double PlanUs(Call& call) {
  constexpr int kBatch = 64;
  std::vector<double> samples;
  std::vector<void*> executors(kBatch);
  for (int i = 0; i < 200; ++i) {
    int at = 0;
    uint64_t size = 0;
    samples.push_back(TimePer(
        kBatch, [&] { call.op().entry->get_workspace_size(call.raw().data(), &size, &executors[at++]); }));
    for (void* executor : executors) aclDestroyAclOpExecutor(static_cast<aclOpExecutor*>(executor));
  }
  return Median(samples);
}

Roof RoofOf(const Call& call) {
  return Roof(Stretches(call, call.Inputs()), Stretches(call, call.Outputs()));
}

uint64_t BytesOf(const Call& call) {
  uint64_t bytes = 0;
  for (const auto& args : {call.Inputs(), call.Outputs()}) {
    for (const int arg : args) bytes += BytesOf(call.spec().args[arg].tensor);
  }
  return bytes;
}

BenchRow Measure(const Operator& op, const harness::OperatorCases& cases, const harness::Case& row,
                 const harness::TypeChoice& type, aclrtStream stream) {
  if (Library().backend().launches()) return MeasureOnDevice(op, cases, row, type, stream);
  Call call(op, MakeCall(op.contract, cases, row, type), {.guards = false});
  CaseTimer timer(call, stream);
  RoofTimer roof(RoofOf(call));
  const Times times = SteadiestOf(timer, roof);
  BenchRow result{cases.op,
                  row.name,
                  type.label,
                  Library().backend().name(),
                  timer.kernel(),
                  Library().threads(),
                  times.run_us,
                  BytesOf(call),
                  roof.Gbps(times.roof_us),
                  PlanUs(call),
                  CallUs(call, stream),
                  {}};
  if (row.Has("exp")) result.exp_us = ArithmeticUs(op, cases, row, type, stream);
  return result;
}

}  // namespace anyacl::tool
