// SPDX-License-Identifier: Apache-2.0
// Copyright The AnyACL Authors
#include "hccl/elements.h"

namespace anyacl::hccl {
namespace {

struct Type {
  const char* name;
  DType dtype;
  size_t size;
  bool reduces;
};

// By number.
constexpr Type kTypes[] = {
    {"INT8", DType::kI8, 1, true},
    {"INT16", DType::kI16, 2, true},
    {"INT32", DType::kI32, 4, true},
    {"FP16", DType::kF16, 2, true},
    {"FP32", DType::kF32, 4, true},
    {"INT64", DType::kI64, 8, true},
    {"UINT64", DType::kU64, 8, true},
    {"UINT8", DType::kU8, 1, true},
    {"UINT16", DType::kU16, 2, true},
    {"UINT32", DType::kU32, 4, true},
    {"FP64", DType::kF64, 8, true},
    {"BFP16", DType::kBF16, 2, true},
    {"INT128", DType::kUndefined, 16, false},
    {nullptr, DType::kUndefined, 0, false},
    {"HIF8", DType::kUndefined, 1, false},
    {"FP8E4M3", DType::kUndefined, 1, false},
    {"FP8E5M2", DType::kUndefined, 1, false},
    {"FP8E8M0", DType::kUndefined, 1, false},
};
constexpr int kTypeCount = sizeof(kTypes) / sizeof(Type);
constexpr const char* kReductions[] = {"SUM", "PROD", "MAX", "MIN"};

const Type& TypeOf(int dtype) {
  static constexpr Type kNone = {nullptr, DType::kUndefined, 0, false};
  return dtype >= 0 && dtype < kTypeCount ? kTypes[dtype] : kNone;
}

}  // namespace

DType ElementType(int dtype) { return TypeOf(dtype).dtype; }

size_t ElementSize(int dtype) { return TypeOf(dtype).size; }

const char* TypeName(int dtype) {
  const char* const name = TypeOf(dtype).name;
  return name ? name : "no type";
}

bool CanReduce(int dtype) { return TypeOf(dtype).reduces; }

const char* ReduceName(int op) { return op >= 0 && op < 4 ? kReductions[op] : nullptr; }

}  // namespace anyacl::hccl
