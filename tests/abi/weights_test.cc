// SPDX-License-Identifier: Apache-2.0
// Copyright The AnyACL Authors
//
// Weights whose FRACTAL_NZ image is larger than their matrix: sizes asked for, memory rewritten, the aclTensor relabelled, products.
#include <gtest/gtest.h>

#include <cstdint>
#include <vector>

#include "acl/acl.h"
#include "aclnnop/aclnn_grouped_matmul_v3.h"
#include "aclnnop/aclnn_matmul.h"
#include "aclnnop/aclnn_mm.h"
#include "aclnnop/aclnn_npu_format_cast.h"
#include "aclnnop/aclnn_trans_matmul_weight.h"
#include "aclnnop/aclnn_weight_quant_batch_matmul_v2.h"

namespace {

// Whole numbers up to 2048 as FLOAT16.
uint16_t Half(int value) {
  if (value == 0) return 0;
  int exponent = 0;
  while (value >> (exponent + 1)) ++exponent;
  return static_cast<uint16_t>((exponent + 15) << 10 | ((value << 10 >> exponent) & 0x3ff));
}

class Weights : public testing::Test {
 protected:
  void SetUp() override {
    ASSERT_EQ(aclInit(nullptr), 0);
    ASSERT_EQ(aclrtSetDevice(0), 0);
    ASSERT_EQ(aclrtCreateStream(&stream_), 0);
  }
  void TearDown() override {
    for (aclTensor* t : tensors_) EXPECT_EQ(aclDestroyTensor(t), 0);
    for (void* memory : memory_) EXPECT_EQ(aclrtFree(memory), 0);
    EXPECT_EQ(aclrtDestroyStream(stream_), 0);
    EXPECT_EQ(aclrtResetDevice(0), 0);
    EXPECT_EQ(aclFinalize(), 0);
  }

  template <class T>
  void* Upload(const std::vector<T>& values) {
    void* memory = nullptr;
    const size_t bytes = values.size() * sizeof(T);
    EXPECT_EQ(aclrtMalloc(&memory, bytes, ACL_MEM_MALLOC_HUGE_FIRST), 0);
    EXPECT_EQ(aclrtMemcpy(memory, bytes, values.data(), bytes, ACL_MEMCPY_HOST_TO_DEVICE), 0);
    memory_.push_back(memory);
    return memory;
  }
  template <class T>
  std::vector<T> Download(const void* memory, size_t count) {
    std::vector<T> values(count);
    EXPECT_EQ(aclrtMemcpy(values.data(), count * sizeof(T), memory, count * sizeof(T), ACL_MEMCPY_DEVICE_TO_HOST), 0);
    return values;
  }
  aclTensor* Tensor(void* memory, aclDataType type, std::vector<int64_t> dims, std::vector<int64_t> strides = {}, aclFormat format = ACL_FORMAT_ND,
                    std::vector<int64_t> storage = {}) {
    if (storage.empty()) storage = dims;
    tensors_.push_back(aclCreateTensor(dims.data(), dims.size(), type, strides.empty() ? nullptr : strides.data(), 0, format, storage.data(), storage.size(), memory));
    return tensors_.back();
  }
  template <class Phase2>
  void Run(Phase2 phase2, uint64_t size, aclOpExecutor* executor) {
    void* workspace = nullptr;
    if (size > 0) {
      ASSERT_EQ(aclrtMalloc(&workspace, size, ACL_MEM_MALLOC_HUGE_FIRST), 0);
      memory_.push_back(workspace);
    }
    ASSERT_EQ(phase2(workspace, size, executor, stream_), 0);
    ASSERT_EQ(aclrtSynchronizeStream(stream_), 0);
  }

  aclrtStream stream_ = nullptr;
  std::vector<aclTensor*> tensors_;
  std::vector<void*> memory_;
};

constexpr int kRows = 3, kColumns = 20;

std::vector<uint16_t> Matrix(size_t room) {
  std::vector<uint16_t> values(room, 0x7e00);  // NaN behind the matrix
  for (int i = 0; i < kRows * kColumns; ++i) values[static_cast<size_t>(i)] = Half(i + 1);
  return values;
}

TEST_F(Weights, SizesRoundUp) {
  const int64_t dims[] = {2, 3, 20};
  aclIntArray* const shape = aclCreateIntArray(dims + 1, 2);
  aclIntArray* const batch = aclCreateIntArray(dims, 3);
  uint64_t size = 0;
  EXPECT_EQ(aclnnCalculateMatmulWeightSize(shape, &size), 0);
  EXPECT_EQ(size, 512u);
  EXPECT_EQ(aclnnCalculateMatmulWeightSizeV2(shape, ACL_FLOAT16, &size), 0);
  EXPECT_EQ(size, 512u);
  EXPECT_EQ(aclnnCalculateMatmulWeightSizeV2(batch, ACL_INT8, &size), 0);
  EXPECT_EQ(size, 1024u);
  EXPECT_EQ(aclnnCalculateMatmulWeightSize(nullptr, &size), 161001);
  EXPECT_EQ(aclnnCalculateMatmulWeightSize(shape, nullptr), 161001);
  aclIntArray* const vector = aclCreateIntArray(dims, 1);
  EXPECT_EQ(aclnnCalculateMatmulWeightSize(vector, &size), 161002);
  for (aclIntArray* array : {shape, batch, vector}) aclDestroyIntArray(array);
}

TEST_F(Weights, TransformRewritesMemoryAndTheTensor) {
  void* const memory = Upload(Matrix(512));
  aclTensor* const weight = Tensor(memory, ACL_FLOAT16, {kRows, kColumns});
  uint64_t size = 0;
  aclOpExecutor* executor = nullptr;
  ASSERT_EQ(aclnnTransMatmulWeightGetWorkspaceSize(weight, &size, &executor), 0) << aclGetRecentErrMsg();
  Run(aclnnTransMatmulWeight, size, executor);
  const std::vector<uint16_t> image = Download<uint16_t>(memory, 512);
  EXPECT_EQ(image[289], Half(2 * kColumns + 17 + 1));
  for (int i = 0; i < 512; ++i) {
    const int r = i / 16 % 16, c = i / 256 * 16 + i % 16;
    EXPECT_EQ(image[static_cast<size_t>(i)], r < kRows && c < kColumns ? Half(r * kColumns + c + 1) : 0) << i;
  }
  aclFormat format = ACL_FORMAT_ND;
  EXPECT_EQ(aclGetFormat(weight, &format), 0);
  EXPECT_EQ(format, ACL_FORMAT_FRACTAL_NZ);
  int64_t* storage = nullptr;
  uint64_t rank = 0;
  ASSERT_EQ(aclGetStorageShape(weight, &storage, &rank), 0);
  EXPECT_EQ(std::vector<int64_t>(storage, storage + rank), (std::vector<int64_t>{2, 1, 16, 16}));
  delete[] storage;
  // A second time it is no plain tensor any more.
  EXPECT_EQ(aclnnTransMatmulWeightGetWorkspaceSize(weight, &size, &executor), 161002);

  // The product with it: ones [1, 3] @ weight.
  std::vector<float> result(kColumns);
  void* const out = Upload(result);
  aclTensor* const ones = Tensor(Upload(std::vector<float>(kRows, 1)), ACL_FLOAT, {1, kRows});
  ASSERT_EQ(aclnnMatmulGetWorkspaceSize(ones, weight, Tensor(out, ACL_FLOAT, {1, kColumns}), 0, &size, &executor), 0) << aclGetRecentErrMsg();
  Run(aclnnMatmul, size, executor);
  result = Download<float>(out, kColumns);
  for (int c = 0; c < kColumns; ++c) EXPECT_EQ(result[static_cast<size_t>(c)], static_cast<float>(3 * c + 63)) << c;
}

TEST_F(Weights, AnImageSeenWithItsAxesExchanged) {
  void* const memory = Upload(Matrix(512));
  aclTensor* const weight = Tensor(memory, ACL_FLOAT16, {kRows, kColumns});
  uint64_t size = 0;
  aclOpExecutor* executor = nullptr;
  ASSERT_EQ(aclnnTransMatmulWeightGetWorkspaceSize(weight, &size, &executor), 0);
  Run(aclnnTransMatmulWeight, size, executor);
  // x [1, 20] of ones @ weight.t() [20, 3]
  void* const out = Upload(std::vector<float>(kRows));
  aclTensor* const turned = Tensor(memory, ACL_FLOAT16, {kColumns, kRows}, {1, kColumns}, ACL_FORMAT_FRACTAL_NZ, {2, 1, 16, 16});
  aclTensor* const ones = Tensor(Upload(std::vector<float>(kColumns, 1)), ACL_FLOAT, {1, kColumns});
  ASSERT_EQ(aclnnMmGetWorkspaceSize(ones, turned, Tensor(out, ACL_FLOAT, {1, kRows}), 2, &size, &executor), 0) << aclGetRecentErrMsg();
  Run(aclnnMm, size, executor);
  const std::vector<float> result = Download<float>(out, kRows);
  for (int r = 0; r < kRows; ++r) EXPECT_EQ(result[static_cast<size_t>(r)], static_cast<float>(400 * r + 210)) << r;
  // A storage that is no image of the view is refused.
  aclTensor* const wrong = Tensor(memory, ACL_FLOAT16, {kColumns, kRows}, {1, kColumns}, ACL_FORMAT_FRACTAL_NZ, {1, 2, 16, 8});
  EXPECT_EQ(aclnnMmGetWorkspaceSize(ones, wrong, Tensor(out, ACL_FLOAT, {1, kRows}), 2, &size, &executor), 161002);
}

TEST_F(Weights, CastsThereAndBack) {
  const std::vector<uint16_t> matrix = Matrix(kRows * kColumns);
  aclTensor* const plain = Tensor(Upload(matrix), ACL_FLOAT16, {kRows, kColumns});
  int64_t* shape = nullptr;
  uint64_t rank = 0, size = 0;
  int format = 0;
  ASSERT_EQ(aclnnNpuFormatCastCalculateSizeAndFormat(plain, ACL_FORMAT_FRACTAL_NZ, -1, &shape, &rank, &format), 0) << aclGetRecentErrMsg();
  EXPECT_EQ(format, static_cast<int>(ACL_FORMAT_FRACTAL_NZ));
  const std::vector<int64_t> storage(shape, shape + rank);
  delete[] shape;
  EXPECT_EQ(storage, (std::vector<int64_t>{2, 1, 16, 16}));
  EXPECT_EQ(aclnnNpuFormatCastCalculateSizeAndFormat(plain, ACL_FORMAT_NC1HWC0, -1, &shape, &rank, &format), 361001);
  EXPECT_EQ(aclnnNpuFormatCastCalculateSizeAndFormat(nullptr, ACL_FORMAT_FRACTAL_NZ, -1, &shape, &rank, &format), 161001);

  void* const memory = Upload(std::vector<uint16_t>(512, 0x7e00));
  void* const back = Upload(std::vector<uint16_t>(matrix.size()));
  aclTensor* const image = Tensor(memory, ACL_FLOAT16, {kRows, kColumns}, {}, ACL_FORMAT_FRACTAL_NZ, storage);
  aclOpExecutor* executor = nullptr;
  ASSERT_EQ(aclnnNpuFormatCastGetWorkspaceSize(plain, image, &size, &executor), 0) << aclGetRecentErrMsg();
  Run(aclnnNpuFormatCast, size, executor);
  const std::vector<uint16_t> blocks = Download<uint16_t>(memory, 512);
  EXPECT_EQ(blocks[289], Half(2 * kColumns + 17 + 1));
  EXPECT_EQ(blocks[511], 0);
  ASSERT_EQ(aclnnNpuFormatCastGetWorkspaceSize(image, Tensor(back, ACL_FLOAT16, {kRows, kColumns}), &size, &executor), 0) << aclGetRecentErrMsg();
  Run(aclnnNpuFormatCast, size, executor);
  EXPECT_EQ(Download<uint16_t>(back, matrix.size()), matrix);
}

// INT4 with other numbers than memory that nobody filled.
TEST_F(Weights, Int4IsTwoToAByte) {
  constexpr int64_t kK = 2, kN = 4;
  const std::vector<uint8_t> bytes = {0x21, 0x83, 0xf0, 0x7e};  // 1 2 3 -8, 0 -1 -2 7
  const std::vector<int> expected = {1, 1, 1, -1};
  aclTensor* const x = Tensor(Upload(std::vector<uint16_t>(kK, Half(1))), ACL_FLOAT16, {1, kK});
  aclTensor* const weight = Tensor(Upload(bytes), ACL_INT4, {kK, kN});
  aclTensor* const scale = Tensor(Upload(std::vector<uint16_t>(kN, Half(1))), ACL_FLOAT16, {kN});
  void* const out = Upload(std::vector<uint16_t>(kN));
  uint64_t size = 0;
  aclOpExecutor* executor = nullptr;
  ASSERT_EQ(aclnnWeightQuantBatchMatmulV2GetWorkspaceSize(x, weight, scale, nullptr, nullptr, nullptr, nullptr, 0, Tensor(out, ACL_FLOAT16, {1, kN}), &size, &executor), 0)
      << aclGetRecentErrMsg();
  Run(aclnnWeightQuantBatchMatmulV2, size, executor);
  const std::vector<uint16_t> result = Download<uint16_t>(out, kN);
  for (size_t i = 0; i < expected.size(); ++i) EXPECT_EQ(result[i], expected[i] < 0 ? Half(-expected[i]) | 0x8000 : Half(expected[i])) << i;
}

// A mixture of experts calls it with an entry per token and expert, weights repeated and transposed.
TEST_F(Weights, GroupedProductsOfSingleRows) {
  constexpr int kEntries = 128, kK = 64, kN = 32;
  std::vector<float> weights(4 * kK * kN), rows(kEntries * kK);
  for (size_t i = 0; i < weights.size(); ++i) weights[i] = static_cast<float>(i % 7) - 3;
  for (size_t i = 0; i < rows.size(); ++i) rows[i] = static_cast<float>(i % 5) - 2;
  auto* const w = static_cast<float*>(Upload(weights));
  auto* const x = static_cast<float*>(Upload(rows));
  auto* const y = static_cast<float*>(Upload(std::vector<float>(kEntries * kN)));
  std::vector<aclTensor*> xs, ws, ys;
  for (int i = 0; i < kEntries; ++i) {
    xs.push_back(Tensor(x + i * kK, ACL_FLOAT, {1, kK}));
    ws.push_back(Tensor(w + i * 5 % 4 * kK * kN, ACL_FLOAT, {kK, kN}, {1, kK}));
    ys.push_back(Tensor(y + i * kN, ACL_FLOAT, {1, kN}));
  }
  tensors_.clear();  // the lists own them
  aclTensorList* const lists[] = {aclCreateTensorList(xs.data(), xs.size()), aclCreateTensorList(ws.data(), ws.size()), aclCreateTensorList(ys.data(), ys.size())};
  uint64_t size = 0;
  aclOpExecutor* executor = nullptr;
  ASSERT_EQ(aclnnGroupedMatmulV3GetWorkspaceSize(lists[0], lists[1], nullptr, nullptr, nullptr, nullptr, nullptr, nullptr, 0, -1, lists[2], &size, &executor), 0)
      << aclGetRecentErrMsg();
  EXPECT_LT(size, 1u << 20) << "entries share their scratch memory";
  Run(aclnnGroupedMatmulV3, size, executor);
  const std::vector<float> result = Download<float>(y, kEntries * kN);
  for (int i = 0; i < kEntries; ++i) {
    for (int n = 0; n < kN; ++n) {
      float sum = 0;
      for (int k = 0; k < kK; ++k) sum += rows[static_cast<size_t>(i * kK + k)] * weights[static_cast<size_t>((i * 5 % 4 * kN + n) * kK + k)];
      ASSERT_EQ(result[static_cast<size_t>(i * kN + n)], sum) << i << " " << n;  // small whole numbers
    }
  }
  for (aclTensorList* list : lists) EXPECT_EQ(aclDestroyTensorList(list), 0);
}

}  // namespace
