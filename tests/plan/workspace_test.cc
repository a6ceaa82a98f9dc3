// SPDX-License-Identifier: Apache-2.0
// Copyright The AnyACL Authors
//
// Contiguous calls need little workspace: at most 4 MiB, or 2 % of their inputs where that is more. Only
// phase 1 runs, so the tensors need no memory and may be as long as they like.
#include <fmt/format.h>
#include <gtest/gtest.h>

#include <algorithm>
#include <cstring>
#include <string>
#include <vector>

#include "harness/call.h"
#include "harness/cases.h"
#include "harness/session.h"
#include "operators_with_cases.h"

namespace anyacl {
namespace {

// Attributes that change how the work is cut; {C} is the second dim.
struct Variants {
  const char* op;
  std::vector<const char*> attributes;
};
const Variants kVariants[] = {
    {"aclnnGroupNormBackward", {"group=1", "group={C}", "group=1 mask=100", "group={C} mask=011"}},
    {"aclnnRmsNormGrad", {"axes=1", "axes=2", "axes=3"}},
    {"aclnnBatchNormElemtBackward", {"", "weight=0"}},
};

std::vector<const char*> AttributesOf(const Operator& op) {
  for (const Variants& v : kVariants) {
    if (std::strcmp(v.op, op.contract.op()) == 0) return v.attributes;
  }
  return {""};
}

std::vector<Dims> Shapes() {
  std::vector<Dims> shapes;
  for (const int64_t n : {1, 2, 7, 64, 1000, 4096, 100'000}) {
    for (const int64_t c : {1, 3, 32, 320, 2048, 4096, 60'000, 240'000, 1'000'003}) {
      for (const int64_t s : {1, 2, 25, 31, 32, 49, 128, 256, 3136, 4097, 262'144, 5'000'011}) {
        if (n * c * s <= int64_t{1} << 38) shapes.push_back({n, c, s});
      }
    }
  }
  return shapes;
}

uint64_t InputBytes(const harness::Call& call) {
  uint64_t bytes = 0;
  for (int arg : call.Inputs()) {
    const Tensor& t = call.spec().args[arg].tensor;
    bytes += static_cast<uint64_t>(t.numel()) * SizeOf(t.dtype);
  }
  return bytes;
}

// Not Call::Plan, which makes the memory as well.
uint64_t WorkspaceOf(const harness::Call& call) {
  uint64_t size = 0;
  void* executor = nullptr;
  EXPECT_EQ(call.op().entry->get_workspace_size(call.raw().data(), &size, &executor), 0)
      << aclGetRecentErrMsg();
  EXPECT_EQ(aclDestroyAclOpExecutor(static_cast<aclOpExecutor*>(executor)), 0);
  return size;
}

TEST(Workspace, ContiguousCallsNeedLittle) {
  const harness::Session session;
  for (const Operator* op : OperatorsWithCases()) {
    const harness::OperatorCases& cases = harness::CasesOf(op->contract.op());
    int64_t checked = 0;
    uint64_t most = 0;
    for (const Dims& dims : Shapes()) {
      for (const char* pattern : AttributesOf(*op)) {
        const std::string text = fmt::format(fmt::runtime(pattern), fmt::arg("C", dims[1]));
        for (const harness::TypeChoice& types : cases.types) {
          harness::Attributes attributes(text);
          harness::Call call(*op, cases.make(dims, types.dtypes, attributes), {.max_bytes = 0});
          const uint64_t size = WorkspaceOf(call);
          const uint64_t allowed = std::max<uint64_t>(4 << 20, InputBytes(call) / 50);
          EXPECT_LE(size, allowed)
              << op->contract.op() << " " << ToString(dims) << " " << text << " " << types.label;
          most = std::max(most, size);
          ++checked;
        }
      }
    }
    EXPECT_GT(checked, 1000) << op->contract.op();
    RecordProperty(op->contract.op(), std::to_string(most));
  }
}

}  // namespace
}  // namespace anyacl
