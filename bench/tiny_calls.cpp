// SPDX-License-Identifier: Apache-2.0
// Copyright The AnyACL Authors
//
// What a call costs when there is nothing to compute: both phases on 16 elements, queued one behind the other.
//
//   dist/bin/anyacl-c++ -O2 bench/tiny_calls.cpp -o build/tiny_calls
//   dist/bin/anyacl run -- build/tiny_calls [ROUNDS]
//
// Operators take turns, round by round; the table has the medians of the rounds and their ratio to EluBackward. Only the
// installed interface is used, so one binary measures several installations.
#include <aclnnop/aclnn_add.h>
#include <aclnnop/aclnn_copy.h>
#include <aclnnop/aclnn_elu_backward.h>
#include <aclnnop/aclnn_reduce_sum.h>

#include <algorithm>
#include <chrono>
#include <cstdio>
#include <cstdlib>
#include <functional>
#include <vector>

#include "acl/acl.h"

namespace {

constexpr int kCalls = 2000;

void Require(int status, const char* what) {
  if (status == 0) return;
  std::fprintf(stderr, "%s: %d %s\n", what, status, aclGetRecentErrMsg());
  std::exit(1);
}

aclTensor* Floats(std::vector<int64_t> dims) {
  void* memory = nullptr;
  Require(aclrtMalloc(&memory, 4096, ACL_MEM_MALLOC_HUGE_FIRST), "aclrtMalloc");
  Require(aclrtMemset(memory, 4096, 0, 4096), "aclrtMemset");
  const std::vector<int64_t> strides(dims.size(), 1);
  return aclCreateTensor(dims.data(), dims.size(), ACL_FLOAT, strides.data(), 0, ACL_FORMAT_ND, dims.data(), dims.size(), memory);
}

struct Call {
  const char* name;
  std::function<int(uint64_t*, aclOpExecutor**)> plan;
  int (*run)(void*, uint64_t, aclOpExecutor*, aclrtStream);
  std::vector<double> us = {};
};

double Microseconds(const Call& call, void* workspace, aclrtStream stream) {
  const auto start = std::chrono::steady_clock::now();
  for (int i = 0; i < kCalls; ++i) {
    uint64_t size = 0;
    aclOpExecutor* executor = nullptr;
    Require(call.plan(&size, &executor), call.name);
    Require(call.run(workspace, size, executor, stream), call.name);
  }
  Require(aclrtSynchronizeStream(stream), "aclrtSynchronizeStream");
  return std::chrono::duration<double, std::micro>(std::chrono::steady_clock::now() - start).count() / kCalls;
}

}  // namespace

int main(int argc, char** argv) {
  const int rounds = argc > 1 ? std::atoi(argv[1]) : 5;
  Require(aclInit(nullptr), "aclInit");
  Require(aclrtSetDevice(0), "aclrtSetDevice");
  aclrtStream stream = nullptr;
  void* workspace = nullptr;
  Require(aclrtCreateStream(&stream), "aclrtCreateStream");
  Require(aclrtMalloc(&workspace, 1 << 20, ACL_MEM_MALLOC_HUGE_FIRST), "aclrtMalloc");

  float one = 1;
  aclScalar* const scalar = aclCreateScalar(&one, ACL_FLOAT);
  aclTensor *const a = Floats({16}), *const b = Floats({16}), *const out = Floats({16}), *const single = Floats({1});
  const int64_t axis = 0;
  aclIntArray* const axes = aclCreateIntArray(&axis, 1);
  Call calls[] = {
      {"EluBackward", [=](auto* size, auto** executor) {
         return aclnnEluBackwardGetWorkspaceSize(a, scalar, scalar, scalar, true, b, out, size, executor);
       }, aclnnEluBackward},
      {"Add", [=](auto* size, auto** executor) { return aclnnAddGetWorkspaceSize(a, single, scalar, out, size, executor); }, aclnnAdd},
      {"ReduceSum", [=](auto* size, auto** executor) {
         return aclnnReduceSumGetWorkspaceSize(a, axes, true, ACL_FLOAT, single, size, executor);
       }, aclnnReduceSum},
      {"InplaceCopy", [=](auto* size, auto** executor) { return aclnnInplaceCopyGetWorkspaceSize(out, a, size, executor); },
       aclnnInplaceCopy},
  };
  for (Call& call : calls) Microseconds(call, workspace, stream);
  for (int round = 0; round < rounds; ++round) {
    for (Call& call : calls) call.us.push_back(Microseconds(call, workspace, stream));
  }
  double elu = 0;
  std::printf("%-12s %8s %8s %8s %8s\n", "operator", "us", "least", "most", "ratio");
  for (Call& call : calls) {
    std::sort(call.us.begin(), call.us.end());
    const double median = call.us[call.us.size() / 2];
    if (elu == 0) elu = median;
    std::printf("%-12s %8.3f %8.3f %8.3f %8.2f\n", call.name, median, call.us.front(), call.us.back(), median / elu);
  }
  return 0;
}
