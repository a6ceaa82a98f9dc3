// SPDX-License-Identifier: Apache-2.0
// Copyright The AnyACL Authors
//
// Squares of numbers of FLOAT16 above 255 are more than FLOAT16 can hold. The kernel is right, the program is not.
// tool: ANYACL_VERIFY=1
// finds: verify: ok aclnnMul; .*; new infinity at out\[0\]; .*FLOAT16
#include "program.h"

void Program::Run() {
  constexpr uint16_t k300 = 0x5cb0;  // as FLOAT16
  const std::vector<uint16_t> halves(kCount, k300);
  const std::vector<float> floats(kCount, 300.0F);
  void* in = Memory();
  void* out = Memory();
  const void* numbers = right ? static_cast<const void*>(floats.data()) : halves.data();
  const size_t bytes = kCount * (right ? sizeof(float) : sizeof(uint16_t));
  MUST(aclrtMemcpy(in, kBytes, numbers, bytes, ACL_MEMCPY_HOST_TO_DEVICE));
  const aclDataType dtype = right ? ACL_FLOAT : ACL_FLOAT16;
  aclTensor* x = Tensor(in, {kCount}, dtype);
  aclTensor* y = Tensor(out, {kCount}, dtype);
  uint64_t size = 0;
  aclOpExecutor* executor = nullptr;
  MUST(aclnnMulGetWorkspaceSize(x, x, y, &size, &executor));
  MUST(aclnnMul(nullptr, size, executor, stream));
  Wait();
  Destroy({x, y});
  Free({in, out});
}
