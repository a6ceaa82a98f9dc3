// SPDX-License-Identifier: Apache-2.0
// Copyright The AnyACL Authors
//
// What element-wise passes, reductions and copies reach of a GPU's memory, beside the GPU's own copy from memory to memory.
//
//   dist/bin/anyacl-c++ -O2 bench/gpu_passes.cpp -o build/gpu_passes
//   ANYACL_BACKEND=cuda dist/bin/anyacl run -- build/gpu_passes
//
// Tensors of 64 Mi elements, far more than the caches hold, of random numbers. Medians of samples of ten calls between two events; bytes
// are those that must be read and written.
#include <aclnnop/aclnn_add.h>
#include <aclnnop/aclnn_cast.h>
#include <aclnnop/aclnn_copy.h>
#include <aclnnop/aclnn_exp.h>
#include <aclnnop/aclnn_gelu.h>
#include <aclnnop/aclnn_max_dim.h>
#include <aclnnop/aclnn_mul.h>
#include <aclnnop/aclnn_reduce_sum.h>

#include <algorithm>
#include <cstdint>
#include <cstdio>
#include <cstdlib>
#include <functional>
#include <random>
#include <vector>

#include "acl/acl.h"

namespace {

constexpr int64_t kRows = 8192, kColumns = 8192, kCount = kRows * kColumns;
constexpr int kCalls = 10, kSamples = 11;

void Require(int status, const char* what) {
  if (status == 0) return;
  const char* const text = aclGetRecentErrMsg();
  std::fprintf(stderr, "%s: %d %s\n", what, status, text ? text : "");
  std::exit(1);
}

int64_t SizeOf(aclDataType type) { return static_cast<int64_t>(aclDataTypeSize(type)); }

// Random floats; as 16-bit numbers the same bits are numbers too. Integers are anything.
void* Memory(int64_t bytes, bool numbers) {
  void* memory = nullptr;
  Require(aclrtMalloc(&memory, bytes, ACL_MEM_MALLOC_HUGE_FIRST), "aclrtMalloc");
  if (!numbers) return memory;
  static const std::vector<float> block = [] {
    std::minstd_rand random(1);
    std::vector<float> values(1 << 20);
    for (float& x : values) x = std::uniform_real_distribution<float>(-2, 2)(random);
    return values;
  }();
  const int64_t size = static_cast<int64_t>(block.size() * sizeof(float));
  for (int64_t at = 0; at < bytes; at += size) {
    const int64_t part = std::min(size, bytes - at);
    Require(aclrtMemcpy(static_cast<char*>(memory) + at, part, block.data(), part, ACL_MEMCPY_HOST_TO_DEVICE), "aclrtMemcpy");
  }
  return memory;
}

aclTensor* View(aclDataType type, void* memory, std::vector<int64_t> dims, std::vector<int64_t> strides, int64_t storage) {
  return aclCreateTensor(dims.data(), dims.size(), type, strides.data(), 0, ACL_FORMAT_ND, &storage, 1, memory);
}

aclTensor* Dense(aclDataType type, std::vector<int64_t> dims, bool numbers) {
  int64_t count = 1;
  std::vector<int64_t> strides(dims.size());
  for (size_t i = dims.size(); i-- > 0; count *= dims[i]) strides[i] = count;
  return View(type, Memory(count * SizeOf(type), numbers), dims, strides, count);
}

aclrtStream stream;

// Milliseconds of one call.
double Time(const std::function<void()>& call) {
  aclrtEvent begin, end;
  Require(aclrtCreateEvent(&begin), "aclrtCreateEvent");
  Require(aclrtCreateEvent(&end), "aclrtCreateEvent");
  std::vector<double> times;
  for (int sample = 0; sample < kSamples; ++sample) {
    Require(aclrtRecordEvent(begin, stream), "aclrtRecordEvent");
    for (int i = 0; i < kCalls; ++i) call();
    Require(aclrtRecordEvent(end, stream), "aclrtRecordEvent");
    Require(aclrtSynchronizeStream(stream), "aclrtSynchronizeStream");
    float ms = 0;
    Require(aclrtEventElapsedTime(&ms, begin, end), "aclrtEventElapsedTime");
    times.push_back(ms / kCalls);
  }
  std::nth_element(times.begin(), times.begin() + kSamples / 2, times.end());
  return times[kSamples / 2];
}

double copy_rate = 0;

void Report(const char* name, const char* type, int64_t bytes, double ms) {
  const double rate = static_cast<double>(bytes) / ms * 1e-6;
  if (copy_rate == 0) copy_rate = rate;
  std::printf("| %s | %s | %.1f | %.0f | %.2f |\n", name, type, ms * 1e3, rate, rate / copy_rate);
  std::fflush(stdout);
}

using Plan = std::function<int(uint64_t*, aclOpExecutor**)>;
using Run = int (*)(void*, uint64_t, aclOpExecutor*, aclrtStream);

void Measure(const char* name, const char* type, int64_t bytes, const Plan& plan, Run run) {
  uint64_t size = 0;
  aclOpExecutor* executor = nullptr;
  Require(plan(&size, &executor), name);
  Require(aclSetAclOpExecutorRepeatable(executor), name);
  void* workspace = nullptr;
  if (size > 0) Require(aclrtMalloc(&workspace, size, ACL_MEM_MALLOC_HUGE_FIRST), "aclrtMalloc");
  Report(name, type, bytes, Time([&] { Require(run(workspace, size, executor, stream), name); }));
  aclDestroyAclOpExecutor(executor);
  if (workspace) aclrtFree(workspace);
}

void OfType(aclDataType type, const char* name) {
  const int64_t all = kCount * SizeOf(type);
  int64_t one_value = 1;
  aclScalar* const one = aclCreateScalar(&one_value, ACL_INT64);
  aclTensor* const a = Dense(type, {kRows, kColumns}, true);
  aclTensor* const b = Dense(type, {kRows, kColumns}, true);
  aclTensor* const out = Dense(type, {kRows, kColumns}, false);
  aclTensor* const row = Dense(type, {kColumns}, true);
  aclTensor* const sum = Dense(type, {}, false);
  aclTensor* const rows = Dense(type, {kRows}, false);
  aclTensor* const columns = Dense(type, {kColumns}, false);
  aclTensor* const places = Dense(ACL_INT64, {kRows}, false);
  void* const memory = Memory(2 * all, true);
  aclTensor* const turned = View(type, memory, {kRows, kColumns}, {1, kRows}, 2 * kCount);
  aclTensor* const sliced = View(type, memory, {kRows, kColumns}, {2 * kColumns, 1}, 2 * kCount);
  aclTensor* const stepped = View(type, memory, {kRows, kColumns}, {2 * kColumns, 2}, 2 * kCount);
  const aclDataType other_type = type == ACL_FLOAT ? ACL_BF16 : ACL_FLOAT;
  aclTensor* const other = Dense(other_type, {kRows, kColumns}, false);
  aclTensor* const whole = Dense(ACL_INT32, {kRows, kColumns}, false);
  const auto axes = [](std::vector<int64_t> list) { return aclCreateIntArray(list.data(), list.size()); };
  const auto sums = [&](std::vector<int64_t> list, aclTensor* to) {
    return [=](uint64_t* s, aclOpExecutor** e) { return aclnnReduceSumGetWorkspaceSize(a, axes(list), false, type, to, s, e); };
  };
#define PLAN(call) [&](uint64_t* s, aclOpExecutor** e) { return call; }
  Measure("Add", name, 3 * all, PLAN(aclnnAddGetWorkspaceSize(a, b, one, out, s, e)), aclnnAdd);
  Measure("Add of a row", name, 2 * all, PLAN(aclnnAddGetWorkspaceSize(a, row, one, out, s, e)), aclnnAdd);
  if (type == ACL_INT32 || type == ACL_INT64) return;
  Measure("Mul", name, 3 * all, PLAN(aclnnMulGetWorkspaceSize(a, b, out, s, e)), aclnnMul);
  Measure("Exp", name, 2 * all, PLAN(aclnnExpGetWorkspaceSize(a, out, s, e)), aclnnExp);
  Measure("Gelu", name, 2 * all, PLAN(aclnnGeluGetWorkspaceSize(a, out, s, e)), aclnnGelu);
  Measure(type == ACL_FLOAT ? "Cast to BF16" : "Cast to FLOAT", name, all + kCount * SizeOf(other_type),
          PLAN(aclnnCastGetWorkspaceSize(a, other_type, other, s, e)), aclnnCast);
  Measure("Cast to INT32", name, all + kCount * 4, PLAN(aclnnCastGetWorkspaceSize(a, ACL_INT32, whole, s, e)), aclnnCast);
  Measure("ReduceSum of all", name, all, sums({}, sum), aclnnReduceSum);
  Measure("ReduceSum of rows", name, all, sums({1}, rows), aclnnReduceSum);
  Measure("ReduceSum of columns", name, all, sums({0}, columns), aclnnReduceSum);
  Measure("MaxDim of rows", name, all, PLAN(aclnnMaxDimGetWorkspaceSize(a, 1, false, rows, places, s, e)), aclnnMaxDim);
  Measure("copy, turned", name, 2 * all, PLAN(aclnnInplaceCopyGetWorkspaceSize(out, turned, s, e)), aclnnInplaceCopy);
  Measure("copy, sliced", name, 2 * all, PLAN(aclnnInplaceCopyGetWorkspaceSize(out, sliced, s, e)), aclnnInplaceCopy);
  Measure("copy, every second", name, 2 * all, PLAN(aclnnInplaceCopyGetWorkspaceSize(out, stepped, s, e)), aclnnInplaceCopy);
  Measure("Add, turned", name, 3 * all, PLAN(aclnnAddGetWorkspaceSize(a, turned, one, out, s, e)), aclnnAdd);
  Measure("Add, every second", name, 3 * all, PLAN(aclnnAddGetWorkspaceSize(a, stepped, one, out, s, e)), aclnnAdd);
#undef PLAN
}

}  // namespace

int main() {
  Require(aclInit(nullptr), "aclInit");
  Require(aclrtSetDevice(0), "aclrtSetDevice");
  Require(aclrtCreateStream(&stream), "aclrtCreateStream");
  std::printf("| pass | dtype | us | GB/s | of the copy |\n|---|---|---|---|---|\n");
  const int64_t bytes = kCount * 4;
  void* const from = Memory(bytes, true);
  void* const to = Memory(bytes, false);
  Report("memory to memory", "", 2 * bytes,
         Time([&] { Require(aclrtMemcpyAsync(to, bytes, from, bytes, ACL_MEMCPY_DEVICE_TO_DEVICE, stream), "aclrtMemcpyAsync"); }));
  OfType(ACL_FLOAT, "FLOAT");
  OfType(ACL_BF16, "BF16");
  OfType(ACL_FLOAT16, "FLOAT16");
  OfType(ACL_INT32, "INT32");
  OfType(ACL_INT64, "INT64");
  return 0;
}
