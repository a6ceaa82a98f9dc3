// SPDX-License-Identifier: Apache-2.0
// Copyright The AnyACL Authors
//
// How long an all-reduce takes on several ranks of this machine, and, where it is built so, beside Gloo's in the same run.
//
//   dist/bin/anyacl-c++ -O2 -Iexamples bench/all_reduce.cpp -lhccl -o build/all_reduce
//   dist/bin/anyacl-c++ -O2 -Iexamples -DWITH_GLOO bench/all_reduce.cpp -lhccl -lgloo -o build/all_reduce   (libgloo-dev)
//   dist/bin/anyacl run -n 2 -- build/all_reduce [BYTES ...]
//
// The ways take turns, nine times each; a time is from one barrier to the moment when the slowest rank has its sum. The
// medians count. "bus" is what a rank sends and receives, 2 (n - 1) / n of the bytes each way, over the time.
#include <algorithm>
#include <chrono>
#include <cstring>
#include <functional>

#include "ranks.h"

#ifdef WITH_GLOO
#include <gloo/allreduce.h>
#include <gloo/math.h>
#include <gloo/rendezvous/context.h>
#include <gloo/rendezvous/file_store.h>
#include <gloo/transport/tcp/device.h>
#endif

namespace {

constexpr int kRounds = 9;

struct Way {
  const char* name;
  std::function<void(size_t count)> sum;  // in place, to the end
  std::vector<double> us = {};
};

class Rank {
 public:
  Rank() {
    CHECK(aclInit(nullptr));
    place = PlaceFromEnvironment();
    if (place.ranks == 0) place.ranks = 1;
    CHECK(aclrtSetDevice(place.device));
    HcclRootInfo info;
    ShareRootInfo(place, &info);
    CHECK(HcclCommInitRootInfo(place.ranks, &info, place.rank, &comm_));
    CHECK(aclrtCreateStream(&stream_));
    CHECK(aclrtMalloc(&word_, sizeof(float), ACL_MEM_MALLOC_HUGE_FIRST));
  }
  ~Rank() {
    aclrtFree(word_);
    HcclCommDestroy(comm_);
    aclrtDestroyStream(stream_);
    aclrtResetDevice(place.device);
    aclFinalize();
  }

  void Sum(void* numbers, size_t count) const {
    CHECK(HcclAllReduce(numbers, numbers, count, HCCL_DATA_TYPE_FP32, HCCL_REDUCE_SUM, comm_,
                        stream_));
    CHECK(aclrtSynchronizeStream(stream_));
  }
  void Barrier() const {
    CHECK(HcclBarrier(comm_, stream_));
    CHECK(aclrtSynchronizeStream(stream_));
  }
  float Slowest(float own) const {
    CHECK(aclrtMemcpy(word_, 4, &own, 4, ACL_MEMCPY_HOST_TO_DEVICE));
    CHECK(HcclAllReduce(word_, word_, 1, HCCL_DATA_TYPE_FP32, HCCL_REDUCE_MAX, comm_, stream_));
    CHECK(aclrtSynchronizeStream(stream_));
    CHECK(aclrtMemcpy(&own, 4, word_, 4, ACL_MEMCPY_DEVICE_TO_HOST));
    return own;
  }

  Place place;

 private:
  HcclComm comm_ = nullptr;
  aclrtStream stream_ = nullptr;
  void* word_ = nullptr;
};

#ifdef WITH_GLOO
std::shared_ptr<gloo::Context> GlooContext(const Place& place) {
  const std::string folder = "/tmp/anyacl-all-reduce-" + Setting({"MASTER_PORT"}, "0");
  if (std::system(("mkdir -p " + folder).c_str()) != 0) Fail(folder.c_str());
  gloo::transport::tcp::attr address;
  address.hostname = "127.0.0.1";
  gloo::rendezvous::FileStore store(folder);
  auto context = std::make_shared<gloo::rendezvous::Context>(place.rank, place.ranks);
  auto device = gloo::transport::tcp::CreateDevice(address);
  context->connectFullMesh(store, device);
  return context;
}

void GlooSum(const std::shared_ptr<gloo::Context>& context, float* numbers, size_t count) {
  gloo::AllreduceOptions options(context);
  options.setOutput(numbers, count);
  options.setReduceFunction(
      [](void* c, const void* a, const void* b, size_t n) { gloo::sum<float>(c, a, b, n); });
  gloo::allreduce(options);
}
#endif

double Median(std::vector<double> values) {
  std::sort(values.begin(), values.end());
  return values[values.size() / 2];
}

void Measure(const Rank& rank, std::vector<Way> ways, size_t bytes) {
  const size_t count = std::max<size_t>(bytes / sizeof(float), 1);
  const int calls = static_cast<int>(
      std::max<size_t>(1, std::min<size_t>(200, (4u << 20) / (count * sizeof(float)))));
  for (int round = -1; round < kRounds; ++round) {  // the first to warm up
    for (Way& way : ways) {
      rank.Barrier();
      const auto start = std::chrono::steady_clock::now();
      for (int i = 0; i < calls; ++i) way.sum(count);
      const std::chrono::duration<float, std::micro> time =
          std::chrono::steady_clock::now() - start;
      const float slowest = rank.Slowest(time.count());
      if (round >= 0) way.us.push_back(slowest / calls);
    }
  }
  if (rank.place.rank != 0) return;
  const double base = Median(ways[0].us), travels = 2.0 * (rank.place.ranks - 1) / rank.place.ranks;
  for (const Way& way : ways) {
    const double us = Median(way.us);
    std::printf("%5u %10zu  %-6s %12.1f us  bus %7.3f GB/s", rank.place.ranks, bytes, way.name, us,
                travels * bytes / us / 1e3);
    if (&way == &ways[0])
      std::printf("\n");
    else
      std::printf("  AnyACL takes %.2f of it\n", base / us);
  }
  std::fflush(stdout);
}

}  // namespace

int main(int argc, char** argv) {
  std::vector<size_t> sizes;
  for (int i = 1; i < argc; ++i) sizes.push_back(std::strtoull(argv[i], nullptr, 10));
  if (sizes.empty())
    sizes = {4, 1024, 16 << 10, 64 << 10, 256 << 10, 1 << 20, 4 << 20, 16 << 20, 64 << 20};
  const Rank rank;
  const size_t most = *std::max_element(sizes.begin(), sizes.end());
  std::vector<float> values(most / sizeof(float) + 1, 0.0f);
  for (size_t i = 0; i < values.size(); ++i)
    values[i] = 1e-30f * static_cast<float>(i % 1000 + rank.place.rank);
  void* memory = nullptr;
  CHECK(aclrtMalloc(&memory, values.size() * sizeof(float), ACL_MEM_MALLOC_HUGE_FIRST));
  CHECK(aclrtMemcpy(memory, values.size() * sizeof(float), values.data(),
                    values.size() * sizeof(float), ACL_MEMCPY_HOST_TO_DEVICE));
  std::vector<Way> ways = {{"AnyACL", [&](size_t count) { rank.Sum(memory, count); }}};
#ifdef WITH_GLOO
  const auto context = GlooContext(rank.place);
  ways.push_back({"Gloo", [&](size_t count) { GlooSum(context, values.data(), count); }});
#endif
  for (const size_t bytes : sizes) Measure(rank, ways, bytes);
  CHECK(aclrtFree(memory));
  return 0;
}
