// SPDX-License-Identifier: Apache-2.0
// Copyright The AnyACL Authors
//
// A batch norm whose batch is spread unevenly over several ranks, forward and backward, in the five steps
//
//   aclnnBatchNormStats -> HcclAllGather -> aclnnBatchNormGatherStatsWithCounts -> aclnnBatchNormElemt
//   aclnnBatchNormReduceBackward -> HcclAllReduce -> aclnnBatchNormElemtBackward
//
// beside aclnnBatchNorm and aclnnBatchNormBackward of one big batch, which every rank computes for itself.
//
//   anyacl run -n 4 -- ./sync_batch_norm        or mpirun -n 4, or torchrun --no-python: a process for each rank
//   ./sync_batch_norm                           three ranks as threads of this process
#include <memory>
#include <thread>

#include "aclnnop/aclnn_batch_norm.h"
#include "aclnnop/aclnn_batch_norm_backward.h"
#include "aclnnop/aclnn_batch_norm_backward_reduce.h"
#include "aclnnop/aclnn_batch_norm_elemt.h"
#include "aclnnop/aclnn_batch_norm_elemt_backward.h"
#include "aclnnop/aclnn_batch_norm_gather_stats_with_counts.h"
#include "aclnnop/aclnn_batch_norm_stats.h"
#include "ranks.h"

typedef std::vector<float> Floats;
typedef std::vector<int64_t> Shape;

const int64_t kChannels = 6, kHeight = 5, kWidth = 7;
const int64_t kPerSample = kChannels * kHeight * kWidth;
const double kEps = 1e-5, kMomentum = 0.1;

int64_t SamplesOf(uint32_t rank) { return 1 + (3 * rank + 1) % 5; }  // 2, 5, 3, 1, 4, 2, ...
Shape ShapeOf(int64_t samples) { return {samples, kChannels, kHeight, kWidth}; }

// Both phases of an operator: its two functions, then its arguments. Nobody waits for it: the stream keeps the order.
class Caller {
 public:
  explicit Caller(aclrtStream stream) : stream_(stream) {}
  ~Caller() {
    CHECK(aclrtSynchronizeStream(stream_));
    for (void* workspace : workspaces_) aclrtFree(workspace);
  }
  template <class Plan, class Run, class... Args>
  void Call(Plan plan, Run run, Args... args) {
    uint64_t workspaceSize = 0;
    aclOpExecutor* executor = nullptr;
    CHECK(plan(args..., &workspaceSize, &executor));
    void* workspace = nullptr;
    if (workspaceSize > 0) CHECK(aclrtMalloc(&workspace, workspaceSize, ACL_MEM_MALLOC_HUGE_FIRST));
    workspaces_.push_back(workspace);
    CHECK(run(workspace, workspaceSize, executor, stream_));
  }

 private:
  aclrtStream stream_;
  std::vector<void*> workspaces_;
};

// What a layer owns, on every rank the same, and what it gets and gives for some samples.
struct Layer {
  Layer(int64_t samples, const Floats& x, const Floats& dy, const Floats& gamma, const Floats& beta)
      : input(x, ShapeOf(samples)),
        gradOut(dy, ShapeOf(samples)),
        weight(gamma, {kChannels}),
        bias(beta, {kChannels}),
        runningMean(Floats(kChannels, 0.0f), {kChannels}),
        runningVar(Floats(kChannels, 1.0f), {kChannels}),
        mean(Floats(kChannels), {kChannels}),
        invstd(Floats(kChannels), {kChannels}),
        output(Floats(x.size()), ShapeOf(samples)),
        gradInput(Floats(x.size()), ShapeOf(samples)),
        gradWeight(Floats(kChannels), {kChannels}),
        gradBias(Floats(kChannels), {kChannels}) {}

  FloatTensor input, gradOut, weight, bias, runningMean, runningVar, mean, invstd;
  FloatTensor output, gradInput, gradWeight, gradBias;
};

void OneBigBatch(const Layer& layer, aclrtStream stream) {
  Caller caller(stream);
  caller.Call(aclnnBatchNormGetWorkspaceSize, aclnnBatchNorm, layer.input.tensor,
              layer.weight.tensor, layer.bias.tensor, layer.runningMean.tensor,
              layer.runningVar.tensor, true, kMomentum, kEps, layer.output.tensor,
              layer.mean.tensor, layer.invstd.tensor);
  const bool wanted[] = {true, true, true};
  aclBoolArray* mask = aclCreateBoolArray(wanted, 3);
  caller.Call(aclnnBatchNormBackwardGetWorkspaceSize, aclnnBatchNormBackward, layer.gradOut.tensor,
              layer.input.tensor, layer.weight.tensor, layer.runningMean.tensor,
              layer.runningVar.tensor, layer.mean.tensor, layer.invstd.tensor, true, kEps, mask,
              layer.gradInput.tensor, layer.gradWeight.tensor, layer.gradBias.tensor);
  aclDestroyBoolArray(mask);
}

// One rank of a communicator, with its stream.
struct Rank {
  // Row r of the result are the numbers of rank r.
  void Gather(const FloatTensor& own, const FloatTensor& all) const {
    CHECK(
        HcclAllGather(own.memory(), all.memory(), own.count(), HCCL_DATA_TYPE_FP32, comm, stream));
  }
  void Sum(const FloatTensor& tensor, HcclReduceOp op = HCCL_REDUCE_SUM) const {
    CHECK(HcclAllReduce(tensor.memory(), tensor.memory(), tensor.count(), HCCL_DATA_TYPE_FP32, op,
                        comm, stream));
  }

  Place place;
  HcclComm comm;
  aclrtStream stream;
};

void Forward(const Rank& rank, const Layer& layer, const FloatTensor& counts) {
  const int64_t ranks = rank.place.ranks;
  const FloatTensor means(Floats(ranks * kChannels), {ranks, kChannels});
  const FloatTensor invstds(Floats(ranks * kChannels), {ranks, kChannels});
  Caller caller(rank.stream);
  caller.Call(aclnnBatchNormStatsGetWorkspaceSize, aclnnBatchNormStats, layer.input.tensor, kEps,
              layer.mean.tensor, layer.invstd.tensor);
  rank.Gather(layer.mean, means);
  rank.Gather(layer.invstd, invstds);
  caller.Call(aclnnBatchNormGatherStatsWithCountsGetWorkspaceSize,
              aclnnBatchNormGatherStatsWithCounts, layer.input.tensor, means.tensor, invstds.tensor,
              layer.runningMean.tensor, layer.runningVar.tensor, kMomentum, kEps, counts.tensor,
              layer.mean.tensor, layer.invstd.tensor);
  caller.Call(aclnnBatchNormElemtGetWorkspaceSize, aclnnBatchNormElemt, layer.input.tensor,
              layer.weight.tensor, layer.bias.tensor, layer.mean.tensor, layer.invstd.tensor, kEps,
              layer.output.tensor);
}

void Backward(const Rank& rank, const Layer& layer, const FloatTensor& counts) {
  const FloatTensor sumDy(Floats(kChannels), {kChannels}), sumDyXmu(Floats(kChannels), {kChannels});
  Caller caller(rank.stream);
  caller.Call(aclnnBatchNormReduceBackwardGetWorkspaceSize, aclnnBatchNormReduceBackward,
              layer.gradOut.tensor, layer.input.tensor, layer.mean.tensor, layer.invstd.tensor,
              layer.weight.tensor, true, true, true, sumDy.tensor, sumDyXmu.tensor,
              layer.gradWeight.tensor, layer.gradBias.tensor);
  rank.Sum(sumDy);
  rank.Sum(sumDyXmu);
  caller.Call(aclnnBatchNormElemtBackwardGetWorkspaceSize, aclnnBatchNormElemtBackward,
              layer.gradOut.tensor, layer.input.tensor, layer.mean.tensor, layer.invstd.tensor,
              layer.weight.tensor, sumDy.tensor, sumDyXmu.tensor, counts.tensor,
              layer.gradInput.tensor);
  rank.Sum(layer.gradWeight);  // as for every parameter of a model
  rank.Sum(layer.gradBias);
}

// How far this rank's part of a result is off, in units of 2^-23 of the largest number of the reference.
float UnitsOff(const Floats& part, const Floats& reference, size_t first) {
  double largest = 0, off = 0;
  for (float value : reference) largest = std::fmax(largest, std::fabs(value));
  for (size_t i = 0; i < part.size(); ++i) {
    const double difference = std::fabs(static_cast<double>(part[i]) - reference[first + i]);
    off = difference <= off ? off : difference;  // NaN, too
  }
  return static_cast<float>(off / largest * (1 << 23));
}

// True when the results of all ranks are right; rank 0 says how far the worst is off. Four units are allowed.
bool Judge(const Rank& rank, const Layer& part, const Layer& whole, size_t first) {
  const char* names[] = {"output",    "runningMean", "runningVar",
                         "gradInput", "gradWeight",  "gradBias"};
  const FloatTensor worst({UnitsOff(part.output.Read(), whole.output.Read(), first),
                           UnitsOff(part.runningMean.Read(), whole.runningMean.Read(), 0),
                           UnitsOff(part.runningVar.Read(), whole.runningVar.Read(), 0),
                           UnitsOff(part.gradInput.Read(), whole.gradInput.Read(), first),
                           UnitsOff(part.gradWeight.Read(), whole.gradWeight.Read(), 0),
                           UnitsOff(part.gradBias.Read(), whole.gradBias.Read(), 0)},
                          {6});
  rank.Sum(worst, HCCL_REDUCE_MAX);
  CHECK(aclrtSynchronizeStream(rank.stream));
  const Floats units = worst.Read();
  bool right = true;
  for (size_t i = 0; i < units.size(); ++i) {
    right = right && units[i] <= 4;
    if (rank.place.rank == 0)
      std::printf("%-12s off by %.2f of 4 units on the worst rank\n", names[i], units[i]);
  }
  if (rank.place.rank == 0)
    std::printf("%u ranks: %s\n", rank.place.ranks, right ? "right" : "WRONG");
  return right;
}

bool RunRank(const Place& place, const HcclRootInfo& info) {
  Rank rank = {place, nullptr, nullptr};
  CHECK(aclrtSetDevice(place.device));
  CHECK(aclrtCreateStream(&rank.stream));
  CHECK(HcclCommInitRootInfo(place.ranks, &info, place.rank, &rank.comm));

  int64_t samples = 0, first = 0;
  Floats counts;
  for (uint32_t r = 0; r < place.ranks; ++r) {
    if (r < place.rank) first += SamplesOf(r) * kPerSample;
    samples += SamplesOf(r);
    counts.push_back(static_cast<float>(SamplesOf(r) * kHeight * kWidth));
  }
  Floats x(samples * kPerSample), dy(x.size()), gamma(kChannels), beta(kChannels);
  for (size_t i = 0; i < x.size(); ++i) {
    x[i] = static_cast<float>(0.5 + 2 * std::sin(0.7 * i) + std::cos(0.011 * i * i));
    dy[i] = static_cast<float>(std::cos(1.3 * i) + 0.25);
  }
  for (int64_t c = 0; c < kChannels; ++c) {
    gamma[c] = 1.0f + 0.25f * c;
    beta[c] = 0.5f - 0.125f * c;
  }
  bool right = false;
  {
    const Layer whole(samples, x, dy, gamma, beta);
    OneBigBatch(whole, rank.stream);
    const int64_t own = SamplesOf(place.rank);
    const auto cut = [&](const Floats& all) {
      return Floats(all.begin() + first, all.begin() + first + own * kPerSample);
    };
    const Layer part(own, cut(x), cut(dy), gamma, beta);
    const FloatTensor countOfAll(counts, {static_cast<int64_t>(place.ranks)});
    Forward(rank, part, countOfAll);
    Backward(rank, part, countOfAll);
    right = Judge(rank, part, whole, first);
  }
  CHECK(HcclCommDestroy(rank.comm));
  CHECK(aclrtDestroyStream(rank.stream));
  CHECK(aclrtResetDevice(place.device));
  return right;
}

int main() {
  CHECK(aclInit(nullptr));
  const Place place = PlaceFromEnvironment();
  HcclRootInfo info;
  bool right = true;
  if (place.ranks > 0) {
    CHECK(aclrtSetDevice(place.device));
    ShareRootInfo(place, &info);
    right = RunRank(place, info);
    CHECK(aclrtResetDevice(place.device));
  } else {
    const uint32_t ranks = 3;
    CHECK(aclrtSetDevice(0));
    CHECK(HcclGetRootInfo(&info));
    std::vector<char> good(ranks);
    std::vector<std::thread> threads;
    for (uint32_t r = 0; r < ranks; ++r) {
      threads.emplace_back([&, r] { good[r] = RunRank(Place{r, ranks, 0}, info); });
    }
    for (std::thread& thread : threads) thread.join();
    for (char one : good) right = right && one;
    CHECK(aclrtResetDevice(0));
  }
  CHECK(aclFinalize());
  return right ? 0 : 1;
}
