// SPDX-License-Identifier: Apache-2.0
// Copyright The AnyACL Authors
//
// A batch norm whose batch is spread unevenly over several ranks, forward and backward, in the five steps
//
//   aclnnBatchNormStats -> (gather) -> aclnnBatchNormGatherStatsWithCounts -> aclnnBatchNormElemt
//   aclnnBatchNormReduceBackward -> (sum) -> aclnnBatchNormElemtBackward
//
// beside aclnnBatchNorm and aclnnBatchNormBackward of one big batch. All ranks live in this process.
#include <memory>

#include "aclnnop/aclnn_batch_norm.h"
#include "aclnnop/aclnn_batch_norm_backward.h"
#include "aclnnop/aclnn_batch_norm_backward_reduce.h"
#include "aclnnop/aclnn_batch_norm_elemt.h"
#include "aclnnop/aclnn_batch_norm_elemt_backward.h"
#include "aclnnop/aclnn_batch_norm_gather_stats_with_counts.h"
#include "aclnnop/aclnn_batch_norm_stats.h"
#include "example.h"

typedef std::vector<float> Floats;
typedef std::vector<int64_t> Shape;

const int64_t kSamples[] = {2, 5, 3};  // of each rank
const int64_t kChannels = 6, kHeight = 5, kWidth = 7;
const double kEps = 1e-5, kMomentum = 0.1;

// Both phases of an operator: its two functions, then its arguments.
template <class Plan, class Run, class... Args>
void Call(aclrtStream stream, Plan plan, Run run, Args... args) {
  uint64_t workspaceSize = 0;
  aclOpExecutor* executor = nullptr;
  CHECK(plan(args..., &workspaceSize, &executor));
  void* workspace = nullptr;
  if (workspaceSize > 0) CHECK(aclrtMalloc(&workspace, workspaceSize, ACL_MEM_MALLOC_HUGE_FIRST));
  CHECK(run(workspace, workspaceSize, executor, stream));
  CHECK(aclrtSynchronizeStream(stream));
  if (workspace != nullptr) aclrtFree(workspace);
}

Shape ShapeOf(int64_t samples) { return {samples, kChannels, kHeight, kWidth}; }
int64_t PerSample() { return kChannels * kHeight * kWidth; }

// What a layer owns, on every rank the same, and what it gets and gives for some samples.
struct Layer {
  Layer(int64_t samples, const Floats& x, const Floats& dy, const Floats& gamma, const Floats& beta)
      : samples(samples),
        input(x, ShapeOf(samples)),
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

  int64_t samples;
  FloatTensor input, gradOut, weight, bias, runningMean, runningVar, mean, invstd;
  FloatTensor output, gradInput, gradWeight, gradBias;
};

void Append(const Floats& values, Floats* all) { all->insert(all->end(), values.begin(), values.end()); }

void Add(const Floats& values, Floats* sum) {
  sum->resize(values.size());
  for (size_t i = 0; i < values.size(); ++i) (*sum)[i] += values[i];
}

void OneBigBatch(const Layer& layer, aclrtStream stream) {
  Call(stream, aclnnBatchNormGetWorkspaceSize, aclnnBatchNorm, layer.input.tensor, layer.weight.tensor,
       layer.bias.tensor, layer.runningMean.tensor, layer.runningVar.tensor, true, kMomentum, kEps,
       layer.output.tensor, layer.mean.tensor, layer.invstd.tensor);
  const bool wanted[] = {true, true, true};
  aclBoolArray* mask = aclCreateBoolArray(wanted, 3);
  Call(stream, aclnnBatchNormBackwardGetWorkspaceSize, aclnnBatchNormBackward, layer.gradOut.tensor,
       layer.input.tensor, layer.weight.tensor, layer.runningMean.tensor, layer.runningVar.tensor,
       layer.mean.tensor, layer.invstd.tensor, true, kEps, mask, layer.gradInput.tensor,
       layer.gradWeight.tensor, layer.gradBias.tensor);
  aclDestroyBoolArray(mask);
}

void Forward(const std::vector<std::unique_ptr<Layer>>& ranks, const Floats& counts, aclrtStream stream) {
  Floats means, invstds;  // of all ranks, one row each
  for (const auto& rank : ranks) {
    Call(stream, aclnnBatchNormStatsGetWorkspaceSize, aclnnBatchNormStats, rank->input.tensor, kEps,
         rank->mean.tensor, rank->invstd.tensor);
    Append(rank->mean.Read(), &means);
    Append(rank->invstd.Read(), &invstds);
  }
  const int64_t size = static_cast<int64_t>(counts.size());
  const FloatTensor meanOfAll(means, {size, kChannels}), invstdOfAll(invstds, {size, kChannels});
  const FloatTensor countOfAll(counts, {size});
  for (const auto& rank : ranks) {
    Call(stream, aclnnBatchNormGatherStatsWithCountsGetWorkspaceSize, aclnnBatchNormGatherStatsWithCounts,
         rank->input.tensor, meanOfAll.tensor, invstdOfAll.tensor, rank->runningMean.tensor,
         rank->runningVar.tensor, kMomentum, kEps, countOfAll.tensor, rank->mean.tensor, rank->invstd.tensor);
    Call(stream, aclnnBatchNormElemtGetWorkspaceSize, aclnnBatchNormElemt, rank->input.tensor,
         rank->weight.tensor, rank->bias.tensor, rank->mean.tensor, rank->invstd.tensor, kEps,
         rank->output.tensor);
  }
}

void Backward(const std::vector<std::unique_ptr<Layer>>& ranks, const Floats& counts, aclrtStream stream) {
  Floats sumDy, sumDyXmu;  // over all ranks
  for (const auto& rank : ranks) {
    const FloatTensor dy(Floats(kChannels), {kChannels}), dyXmu(Floats(kChannels), {kChannels});
    Call(stream, aclnnBatchNormReduceBackwardGetWorkspaceSize, aclnnBatchNormReduceBackward,
         rank->gradOut.tensor, rank->input.tensor, rank->mean.tensor, rank->invstd.tensor,
         rank->weight.tensor, true, true, true, dy.tensor, dyXmu.tensor, rank->gradWeight.tensor,
         rank->gradBias.tensor);
    Add(dy.Read(), &sumDy);
    Add(dyXmu.Read(), &sumDyXmu);
  }
  const FloatTensor dyOfAll(sumDy, {kChannels}), dyXmuOfAll(sumDyXmu, {kChannels});
  const FloatTensor countOfAll(counts, {static_cast<int64_t>(counts.size())});
  for (const auto& rank : ranks) {
    Call(stream, aclnnBatchNormElemtBackwardGetWorkspaceSize, aclnnBatchNormElemtBackward,
         rank->gradOut.tensor, rank->input.tensor, rank->mean.tensor, rank->invstd.tensor,
         rank->weight.tensor, dyOfAll.tensor, dyXmuOfAll.tensor, countOfAll.tensor, rank->gradInput.tensor);
  }
}

// Prints how far a result is off, in units of 2^-23 of the largest number of the reference; four are allowed.
bool Equal(const char* name, const Floats& result, const Floats& reference) {
  double largest = 0, off = 0;
  for (size_t i = 0; i < reference.size(); ++i) {
    largest = std::fmax(largest, std::fabs(reference[i]));
    const double difference = std::fabs(static_cast<double>(result[i]) - reference[i]);
    off = difference <= off ? off : difference;  // NaN, too
  }
  const double units = off / largest * (1 << 23);
  std::printf("%-12s %zu numbers, largest %.5f, off by %.2f of 4 units\n", name, reference.size(), largest, units);
  return result.size() == reference.size() && units <= 4;
}

int main() {
  Device device;
  int64_t samples = 0;
  for (int64_t ofRank : kSamples) samples += ofRank;
  Floats x(samples * PerSample()), dy(x.size()), gamma(kChannels), beta(kChannels);
  for (size_t i = 0; i < x.size(); ++i) {
    x[i] = static_cast<float>(0.5 + 2 * std::sin(0.7 * i) + std::cos(0.011 * i * i));
    dy[i] = static_cast<float>(std::cos(1.3 * i) + 0.25);
  }
  for (int64_t c = 0; c < kChannels; ++c) {
    gamma[c] = 1.0f + 0.25f * c;
    beta[c] = 0.5f - 0.125f * c;
  }
  const Layer whole(samples, x, dy, gamma, beta);
  OneBigBatch(whole, device.stream);

  std::vector<std::unique_ptr<Layer>> ranks;
  Floats counts;
  auto from = [&](const Floats& all, int64_t first, int64_t count) {
    return Floats(all.begin() + first * PerSample(), all.begin() + (first + count) * PerSample());
  };
  int64_t first = 0;
  for (int64_t ofRank : kSamples) {
    ranks.emplace_back(new Layer(ofRank, from(x, first, ofRank), from(dy, first, ofRank), gamma, beta));
    counts.push_back(static_cast<float>(ofRank * kHeight * kWidth));
    first += ofRank;
  }
  Forward(ranks, counts, device.stream);
  Backward(ranks, counts, device.stream);

  Floats output, gradInput, gradWeight, gradBias;
  for (const auto& rank : ranks) {
    Append(rank->output.Read(), &output);
    Append(rank->gradInput.Read(), &gradInput);
    Add(rank->gradWeight.Read(), &gradWeight);
    Add(rank->gradBias.Read(), &gradBias);
  }
  bool right = Equal("output", output, whole.output.Read());
  for (const auto& rank : ranks) {  // every rank carries the same
    right = Equal("runningMean", rank->runningMean.Read(), whole.runningMean.Read()) && right;
    right = Equal("runningVar", rank->runningVar.Read(), whole.runningVar.Read()) && right;
  }
  right = Equal("gradInput", gradInput, whole.gradInput.Read()) && right;
  right = Equal("gradWeight", gradWeight, whole.gradWeight.Read()) && right;
  right = Equal("gradBias", gradBias, whole.gradBias.Read()) && right;
  std::printf("%s\n", right ? "right" : "WRONG");
  return right ? 0 : 1;
}
