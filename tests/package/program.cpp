// SPDX-License-Identifier: Apache-2.0
// Copyright The AnyACL Authors
//
// One call into each of the three libraries that a sample links, and an address taken, in C++11.

#include <iostream>
#include <vector>

#include "acl/acl.h"
#include "aclnnop/aclnn_elu_backward.h"

int main() {
  aclError (*initialise)(const char*) = aclInit;
  if (initialise(nullptr) != ACL_SUCCESS) return 1;
  std::vector<int64_t> values = {1, 2, 3};
  aclIntArray* array = aclCreateIntArray(values.data(), values.size());
  uint64_t size = 0;
  if (array == nullptr || aclGetIntArraySize(array, &size) != 0 || size != 3) return 2;
  aclDestroyIntArray(array);
  if (aclnnEluBackward(nullptr, 0, nullptr, nullptr) != 161001) return 3;
  if (aclFinalize() != ACL_SUCCESS) return 4;
  std::cout << "fine" << std::endl;
  return 0;
}
