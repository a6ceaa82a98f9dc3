// SPDX-License-Identifier: Apache-2.0
// Copyright The AnyACL Authors
#include "harness/loose_call.h"

#include <fmt/format.h>

#include <algorithm>
#include <cstring>
#include <optional>
#include <random>
#include <utility>

#include "acl/acl.h"
#include "core/nz_layout.h"

namespace anyacl::harness {
namespace {

using contract::ArgKind;

constexpr size_t kGuard = 64;
constexpr unsigned char kPoison = 0xa5;
constexpr size_t kLongest = 1 << 20;             // bytes of one tensor
constexpr uint64_t kLongestWorkspace = 32 << 20;
constexpr int64_t kMostElements = 1 << 16;       // a broadcast view is long in few bytes

// Elements of the FRACTAL_NZ image of a tensor, whichever of its last two axes are the rows.
int64_t ImageElements(const Tensor& t) {
  if (t.rank() < 2 || t.rank() > 6 || SizeOf(t.dtype) == 0) return 0;
  Dims turned = t.dims;
  std::swap(turned[t.rank() - 2], turned[t.rank() - 1]);
  return std::max(Numel(NzStorage(t.dims, t.dtype)), Numel(NzStorage(turned, t.dtype)));
}

// Bytes behind its address that a tensor reaches, with `becomes_image` also when it has been laid out anew; nothing where
// it reaches before it or too far.
std::optional<size_t> ReachOf(const Tensor& t, bool becomes_image) {
  const int64_t count = t.numel();
  if (count < 0 || count > kMostElements || t.offset < 0 || t.offset > static_cast<int64_t>(kLongest)) return {};
  for (int64_t stride : t.strides) {
    if (stride < 0) return {};
  }
  Extent extent;
  if (!GetExtent(t, &extent)) return {};
  int64_t end = extent.end;
  if (IsPrivate(t.format)) end = std::max(end, Numel(t.storage));
  if (becomes_image) end = std::max(end, t.offset + ImageElements(t));
  if (end > static_cast<int64_t>(kLongest)) return {};
  return static_cast<size_t>(end) * std::max<size_t>(SizeOf(t.dtype), 1);
}

template <class Handle, int32_t (*destroy)(const Handle*)>
void Destroy(const void* handle) {
  if (handle) destroy(static_cast<const Handle*>(handle));
}

}  // namespace

LooseCall::LooseCall(const Operator& op, const contract::CallSpec& spec, Fill fill)
    : op_(op), spec_(spec), fill_(fill), raw_(spec.args.size()), destroy_(spec.args.size(), nullptr) {
  for (size_t i = 0; i < spec_.args.size(); ++i) MakeHandle(i);
}

LooseCall::~LooseCall() {
  for (size_t i = 0; i < raw_.size(); ++i) {
    if (destroy_[i]) destroy_[i](raw_[i].handle);
  }
}

unsigned char* LooseCall::NewBlock(size_t bytes) {
#ifdef ANYACL_SANITIZE_address
  constexpr size_t kBehind = 0;  // it has red zones of its own, without a gap before them
#else
  constexpr size_t kBehind = kGuard;
#endif
  blocks_.push_back({std::make_unique<unsigned char[]>(kGuard + bytes + kBehind), bytes});
  unsigned char* const cells = blocks_.back().cells.get();
  std::memset(cells, kPoison, kGuard + bytes + kBehind);
  return cells + kGuard;
}

void* LooseCall::BlockOf(const Tensor& t) {
  const std::optional<size_t> bytes = ReachOf(t, op_.relabel != nullptr);
  if (!bytes) {
    has_memory_ = false;
    return nullptr;
  }
  unsigned char* const block = NewBlock(*bytes);
  if (fill_ == Fill::kZeros) std::memset(block, 0, *bytes);
  if (fill_ == Fill::kOnes) std::memset(block, 0xff, *bytes);
  const size_t size = std::max<size_t>(SizeOf(t.dtype), 1);
  if (fill_ == Fill::kSmall) {
    for (size_t i = 0; i < *bytes; ++i) block[i] = i % size == 0 ? static_cast<unsigned char>(i / size % 3) : 0;
  }
  if (fill_ == Fill::kRandom) {
    std::minstd_rand random(static_cast<unsigned>(*bytes));
    for (size_t i = 0; i < *bytes; ++i) block[i] = static_cast<unsigned char>(random() >> 8);
  }
  return block;
}

aclTensor* LooseCall::MakeTensor(const Tensor& t) {
  return aclCreateTensor(t.dims.begin(), t.rank(), static_cast<aclDataType>(t.dtype), t.strides.begin(), t.offset,
                         static_cast<aclFormat>(t.format), t.storage.begin(), t.storage.rank(), BlockOf(t));
}

void LooseCall::MakeHandle(size_t i) {
  const contract::Arg& role = op_.contract.args()[i];
  contract::ArgSpec& arg = spec_.args[i];
  RawArg& raw = raw_[i];
  raw.integer = arg.integer;
  raw.real = arg.real;
  raw.flag = arg.flag;
  if (arg.null) return;
  if (role.is_tensor()) {
    raw.handle = MakeTensor(arg.tensor);
    destroy_[i] = Destroy<aclTensor, aclDestroyTensor>;
  } else if (role.is_tensor_list()) {
    std::vector<const aclTensor*> list;
    for (const Tensor& t : arg.tensors) list.push_back(MakeTensor(t));
    raw.handle = aclCreateTensorList(list.data(), list.size());
    destroy_[i] = Destroy<aclTensorList, aclDestroyTensorList>;
  } else if (role.kind == ArgKind::kScalar) {
    raw.handle = aclCreateScalar(arg.scalar.bytes, static_cast<aclDataType>(arg.scalar.dtype));
    destroy_[i] = Destroy<aclScalar, aclDestroyScalar>;
  } else if (role.kind == ArgKind::kScalarList) {
    std::vector<const aclScalar*> list;
    for (Scalar& s : arg.scalars) list.push_back(aclCreateScalar(s.bytes, static_cast<aclDataType>(s.dtype)));
    raw.handle = aclCreateScalarList(list.data(), list.size());
    destroy_[i] = Destroy<aclScalarList, aclDestroyScalarList>;
  } else if (role.kind == ArgKind::kIntArray) {
    raw.handle = aclCreateIntArray(arg.ints.values.data(), arg.ints.values.size());
    destroy_[i] = Destroy<aclIntArray, aclDestroyIntArray>;
  } else if (role.kind == ArgKind::kFloatArray) {
    raw.handle = aclCreateFloatArray(arg.floats.values.data(), arg.floats.values.size());
    destroy_[i] = Destroy<aclFloatArray, aclDestroyFloatArray>;
  } else if (role.kind == ArgKind::kBoolArray) {
    const auto bools = std::make_unique<bool[]>(arg.bools.values.size());
    std::copy(arg.bools.values.begin(), arg.bools.values.end(), bools.get());
    raw.handle = aclCreateBoolArray(bools.get(), arg.bools.values.size());
    destroy_[i] = Destroy<aclBoolArray, aclDestroyBoolArray>;
  } else if (role.kind == ArgKind::kString) {
    raw.handle = arg.text.c_str();
  }
}

int32_t LooseCall::Execute(void* stream) {
  uint64_t size = 0;
  void* executor = nullptr;
  const int32_t planned = op_.entry->get_workspace_size(raw_.data(), &size, &executor);
  if (planned != 0) return planned;
  if (!has_memory_ || size > kLongestWorkspace) return aclDestroyAclOpExecutor(static_cast<aclOpExecutor*>(executor));
  ran_ = true;
  const int32_t code = op_.entry->run(size > 0 ? NewBlock(size) : nullptr, size, executor, stream);
  if (code != 0) {
    aclDestroyAclOpExecutor(static_cast<aclOpExecutor*>(executor));
    return code;
  }
  return aclrtSynchronizeStream(stream);
}

std::string LooseCall::CheckMemory() const {
  for (const Block& block : blocks_) {
    for (size_t i = 0; i < kGuard; ++i) {
      if (block.cells[i] != kPoison) return fmt::format("{} bytes before a block of {} were written", kGuard - i, block.bytes);
#ifndef ANYACL_SANITIZE_address
      if (block.cells[kGuard + block.bytes + i] != kPoison) {
        return fmt::format("{} bytes behind a block of {} were written", i + 1, block.bytes);
      }
#endif
    }
  }
  return "";
}

}  // namespace anyacl::harness
