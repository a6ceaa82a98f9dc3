// SPDX-License-Identifier: Apache-2.0
// Copyright The AnyACL Authors
#include "harness/call.h"

#include <fmt/format.h>

#include <algorithm>
#include <cstring>
#include <numeric>
#include <stdexcept>
#include <utility>

#include "core/undo.h"
#include "harness/session.h"

#ifdef ANYACL_SANITIZE_address
#include <sanitizer/asan_interface.h>
#endif

namespace anyacl::harness {
namespace {

using contract::ArgKind;

void CopyIn(void* to, const void* from, size_t bytes) {
  if (bytes == 0) return;
  Require(aclrtMemcpy(to, bytes, from, bytes, ACL_MEMCPY_HOST_TO_DEVICE), "aclrtMemcpy");
}

void CopyOut(void* to, const void* from, size_t bytes) {
  if (bytes == 0) return;
  Require(aclrtMemcpy(to, bytes, from, bytes, ACL_MEMCPY_DEVICE_TO_HOST), "aclrtMemcpy");
}

// Bytes of the storage, or nothing when no memory can be that long.
std::optional<uint64_t> StorageBytes(const Tensor& t, uint64_t max_bytes) {
  Extent extent;
  if (t.numel() == kOverflow || t.offset < 0 || !GetExtent(t, &extent) || extent.end < 0) return {};
  for (int64_t stride : t.strides) {
    if (stride < 0) return {};
  }
  uint64_t bytes;
  const uint64_t size = std::max<size_t>(SizeOf(t.dtype), 1);
  if (__builtin_mul_overflow(static_cast<uint64_t>(extent.end), size, &bytes)) return {};
  return bytes <= max_bytes ? std::optional(bytes) : std::nullopt;
}

uint64_t SeedOf(const CallOptions& options, int arg) { return options.seed * 64 + arg; }

std::vector<int> Identity(size_t count) {
  std::vector<int> indices(count);
  std::iota(indices.begin(), indices.end(), 0);
  return indices;
}

size_t FirstDifference(std::span<const unsigned char> cells) {
  const auto hit = std::find_if(cells.begin(), cells.end(),
                                [](unsigned char c) { return c != GuardedMemory::kPoison; });
  return static_cast<size_t>(hit - cells.begin());
}

}  // namespace

// --- GuardedMemory -------------------------------------------------------------------------------

GuardedMemory::GuardedMemory(size_t bytes, bool guards, size_t shift)
    : front_(guards ? kGuard + shift : shift), bytes_(bytes), back_(guards ? kGuard : 0) {
  constexpr size_t kLine =
      64;  // without guards the last line is whole: the bench's roof moves whole lines
  void* base = nullptr;
  const size_t all = guards ? front_ + bytes_ + back_ : (front_ + bytes_ + kLine) / kLine * kLine;
  Require(aclrtMalloc(&base, all, ACL_MEM_MALLOC_HUGE_FIRST), "aclrtMalloc");
  base_ = static_cast<unsigned char*>(base);
  if (guards) Require(aclrtMemset(base_, all, kPoison, all), "aclrtMemset");
  ForbidGuards(true);
}

GuardedMemory::~GuardedMemory() {
  if (!base_) return;
  ForbidGuards(false);
  aclrtFree(base_);
}

// What is written there is found afterwards; what is read there only a sanitizer sees.
void GuardedMemory::ForbidGuards([[maybe_unused]] bool forbidden) const {
#ifdef ANYACL_SANITIZE_address
  if (back_ == 0) return;
  const auto set = forbidden ? __asan_poison_memory_region : __asan_unpoison_memory_region;
  set(base_, front_);
  set(payload() + bytes_, back_);
#endif
}

GuardedMemory::GuardedMemory(GuardedMemory&& other) noexcept
    : base_(std::exchange(other.base_, nullptr)),
      front_(other.front_),
      bytes_(other.bytes_),
      back_(other.back_) {}

void GuardedMemory::Write(std::span<const unsigned char> payload) {
  if (payload.size() != bytes_) throw std::invalid_argument("payload of another length");
  CopyIn(this->payload(), payload.data(), bytes_);
}

std::vector<unsigned char> GuardedMemory::Read() const {
  std::vector<unsigned char> bytes(bytes_);
  CopyOut(bytes.data(), payload(), bytes_);
  return bytes;
}

std::string GuardedMemory::CheckGuards() const {
  if (back_ == 0) return "";
  ForbidGuards(false);
  const Undo forbid([this] { ForbidGuards(true); });
  std::vector<unsigned char> cells(front_);
  CopyOut(cells.data(), base_, front_);
  size_t at = FirstDifference(cells);
  if (at < cells.size()) return fmt::format("{} bytes before the start were written", front_ - at);
  cells.resize(back_);
  CopyOut(cells.data(), payload() + bytes_, back_);
  at = FirstDifference(cells);
  return at < cells.size() ? fmt::format("{} bytes behind the end were written", at + 1) : "";
}

// --- Call ----------------------------------------------------------------------------------------

std::vector<int64_t> ElementOffsets(const Tensor& t) {
  const int64_t count = t.numel();
  std::vector<int64_t> offsets;
  offsets.reserve(count);
  std::vector<int64_t> index(t.rank(), 0);
  int64_t at = t.offset;
  for (int64_t i = 0; i < count; ++i) {
    offsets.push_back(at);
    for (int axis = t.rank() - 1; axis >= 0; --axis) {
      at += t.strides[axis];
      if (++index[axis] < t.dims[axis]) break;
      at -= t.dims[axis] * t.strides[axis];
      index[axis] = 0;
    }
  }
  return offsets;
}

Call::Call(const Operator& op, contract::CallSpec spec, const CallOptions& options)
    : Call(op, CaseCall{std::move(spec), {}}, options) {}

Call::Call(const Operator& op, CaseCall call, const CallOptions& options)
    : op_(op),
      spec_(std::move(call.spec)),
      memory_of_(std::move(call.memory_of)),
      guards_(options.guards),
      memory_(spec_.args.size()),
      operands_(spec_.args.size()),
      raw_(spec_.args.size()) {
  if (memory_of_.empty()) memory_of_ = Identity(spec_.args.size());
  for (size_t i = 0; i < spec_.args.size(); ++i) {
    const int arg = static_cast<int>(i);
    if (op_.contract.args()[i].is_tensor() && !spec_.args[i].null) MakeMemory(arg, options);
  }
  for (int arg : Outputs()) {
    if (guards_ && HasMemory(arg)) MarkResult(arg);
  }
  Refill();
  for (size_t i = 0; i < spec_.args.size(); ++i) MakeHandle(static_cast<int>(i));
}

Call::~Call() {
  DropExecutor();
  for (size_t i = 0; i < spec_.args.size(); ++i) DestroyHandle(static_cast<int>(i));
}

void Call::MakeMemory(int arg, const CallOptions& options) {
  const Tensor& t = spec_.args[arg].tensor;
  const std::optional<uint64_t> bytes = StorageBytes(t, options.max_bytes);
  if (!bytes) return;
  if (memory_of_[arg] == arg) {
    memory_[arg].emplace(Memory{GuardedMemory(*bytes, guards_, options.shift), {}, {}});
    if (guards_) memory_[arg]->image.assign(*bytes, GuardedMemory::kPoison);
    if (guards_) memory_[arg]->is_result.assign(*bytes, false);
  }
  if (!HasNumbers(t.dtype)) return;
  if (!guards_) return FillQuickly(arg, options);
  if (!IsOutput(arg)) operands_[arg] = Generate(options.data, SeedOf(options, arg), t.numel());
  if (!IsOutput(arg)) operands_[arg] = Decode(t.dtype, Encode(t.dtype, operands_[arg]));
}

// The whole storage from a short sequence; outputs too, so that every page is there before the
// first run.
void Call::FillQuickly(int arg, const CallOptions& options) {
  constexpr int64_t kSequence = 1 << 16;
  const DType dtype = spec_.args[arg].tensor.dtype;
  const std::vector<unsigned char> block =
      Encode(dtype, Generate(options.data, SeedOf(options, arg), kSequence));
  const GuardedMemory& cells = MemoryOf(arg).cells;
  for (size_t at = 0; at < cells.bytes(); at += block.size()) {
    CopyIn(cells.payload() + at, block.data(), std::min(block.size(), cells.bytes() - at));
  }
}

void Call::PutOperand(int arg) {
  const Tensor& t = spec_.args[arg].tensor;
  const size_t size = SizeOf(t.dtype);
  const std::vector<unsigned char> dense = Encode(t.dtype, operands_[arg]);
  std::vector<unsigned char>& image = MemoryOf(arg).image;
  if (IsContiguous(t)) {  // most tensors: the long way is longer than the tests around it
    std::copy(dense.begin(), dense.end(), image.begin() + t.offset * size);
    return;
  }
  const std::vector<int64_t> offsets = ElementOffsets(t);
  for (size_t i = 0; i < offsets.size(); ++i) {
    std::memcpy(image.data() + offsets[i] * size, dense.data() + i * size, size);
  }
  for (size_t i = 0; i < offsets.size();
       ++i) {  // elements that share memory have one value: the last
    operands_[arg][i] = Decode(t.dtype, image.data() + offsets[i] * size);
  }
}

void Call::MarkResult(int arg) {
  const Tensor& t = spec_.args[arg].tensor;
  const int64_t size = static_cast<int64_t>(SizeOf(t.dtype));
  std::vector<bool>& is_result = MemoryOf(arg).is_result;
  const auto mark = [&](int64_t offset, int64_t count) {
    const auto begin = is_result.begin() + offset * size;
    std::fill(begin, begin + count * size, true);
  };
  if (IsContiguous(t)) return mark(t.offset, t.numel());
  for (int64_t offset : ElementOffsets(t)) mark(offset, 1);
}

void Call::Refill() {
  if (!guards_) return;
  for (int arg : Inputs()) {
    if (HasMemory(arg) && !operands_[arg].empty()) PutOperand(arg);
  }
  for (std::optional<Memory>& memory : memory_) {
    if (memory) memory->cells.Write(memory->image);
  }
}

void Call::SetInput(int arg, std::span<const double> values) {
  const Tensor& t = spec_.args[arg].tensor;
  if (static_cast<int64_t>(values.size()) != t.numel() || !guards_) {
    throw std::invalid_argument("SetInput: as many numbers as elements, and a call with guards");
  }
  operands_[arg] = Decode(t.dtype, Encode(t.dtype, values));
  Refill();
}

void Call::MakeHandle(int arg) {
  const contract::ArgSpec& a = spec_.args[arg];
  RawArg& raw = raw_[arg];
  raw.integer = a.integer;
  raw.real = a.real;
  raw.flag = a.flag;
  if (a.null) return;
  const Tensor& t = a.tensor;
  Scalar scalar = a.scalar;
  switch (op_.contract.args()[arg].kind) {
    case ArgKind::kInput:
    case ArgKind::kOutput:
      raw.handle = aclCreateTensor(t.dims.begin(), t.rank(), static_cast<aclDataType>(t.dtype),
                                   t.strides.begin(), t.offset, static_cast<aclFormat>(t.format),
                                   t.storage.begin(), t.storage.rank(),
                                   HasMemory(arg) ? MemoryOf(arg).cells.payload() : nullptr);
      return;
    case ArgKind::kScalar:
      raw.handle = aclCreateScalar(scalar.bytes, static_cast<aclDataType>(scalar.dtype));
      return;
    case ArgKind::kBoolArray:
      raw.handle = aclCreateBoolArray(reinterpret_cast<const bool*>(a.bools.values.data()),
                                      a.bools.values.size());
      return;
    case ArgKind::kIntArray:
      raw.handle = aclCreateIntArray(a.ints.values.data(), a.ints.values.size());
      return;
    default:
      return;
  }
}

void Call::DestroyHandle(int arg) {
  const void* const handle = raw_[arg].handle;
  switch (op_.contract.args()[arg].kind) {
    case ArgKind::kInput:
    case ArgKind::kOutput:
      aclDestroyTensor(static_cast<const aclTensor*>(handle));
      return;
    case ArgKind::kScalar:
      aclDestroyScalar(static_cast<const aclScalar*>(handle));
      return;
    case ArgKind::kBoolArray:
      aclDestroyBoolArray(static_cast<const aclBoolArray*>(handle));
      return;
    case ArgKind::kIntArray:
      aclDestroyIntArray(static_cast<const aclIntArray*>(handle));
      return;
    default:
      return;
  }
}

void Call::DropExecutor() {
  if (executor_) aclDestroyAclOpExecutor(executor_);
  executor_ = nullptr;
  repeatable_ = false;
}

void Call::MakeWorkspace() {
  if (workspace_ && workspace_->bytes() == workspace_size_) return;
  workspace_.reset();
  if (workspace_size_ > 0) workspace_.emplace(workspace_size_, guards_);
}

int32_t Call::Plan() {
  DropExecutor();
  void* executor = nullptr;
  const int32_t status = op_.entry->get_workspace_size(raw_.data(), &workspace_size_, &executor);
  executor_ = static_cast<aclOpExecutor*>(executor);
  if (status == 0) MakeWorkspace();
  return status;
}

int32_t Call::PlanRepeatable() {
  const int32_t status = Plan();
  if (status != 0) return status;
  repeatable_ = true;
  return aclSetAclOpExecutorRepeatable(executor_);
}

int32_t Call::Run(aclrtStream stream) {
  const int32_t status = op_.entry->run(workspace(), workspace_size_, executor_, stream);
  if (status == 0 && !repeatable_) executor_ = nullptr;  // the run took it
  return status;
}

int32_t Call::Execute(aclrtStream stream) {
  int32_t status = Plan();
  if (status == 0) status = Run(stream);
  return status == 0 ? aclrtSynchronizeStream(stream) : status;
}

std::vector<int> Call::Outputs() const {
  std::vector<int> result;
  for (size_t i = 0; i < spec_.args.size(); ++i) {
    if (op_.contract.args()[i].kind == ArgKind::kOutput && !spec_.args[i].null) {
      result.push_back(static_cast<int>(i));
    }
  }
  return result;
}

std::vector<int> Call::Inputs() const {
  std::vector<int> result;
  for (size_t i = 0; i < spec_.args.size(); ++i) {
    if (op_.contract.args()[i].kind == ArgKind::kInput && !spec_.args[i].null) {
      result.push_back(static_cast<int>(i));
    }
  }
  return result;
}

std::vector<unsigned char> Call::Elements(int arg) const {
  const Tensor& t = spec_.args[arg].tensor;
  const size_t size = SizeOf(t.dtype);
  const std::vector<unsigned char> storage = MemoryOf(arg).cells.Read();
  if (IsContiguous(t)) {
    const auto begin = storage.begin() + t.offset * size;
    return {begin, begin + t.numel() * size};
  }
  const std::vector<int64_t> offsets = ElementOffsets(t);
  std::vector<unsigned char> dense(offsets.size() * size);
  for (size_t i = 0; i < offsets.size(); ++i) {
    std::memcpy(dense.data() + i * size, storage.data() + offsets[i] * size, size);
  }
  return dense;
}

std::vector<double> Call::Values(int arg) const {
  return Decode(spec_.args[arg].tensor.dtype, Elements(arg));
}

std::string Call::CheckMemory() const {
  for (size_t arg = 0; arg < memory_.size(); ++arg) {
    if (!memory_[arg]) continue;
    const char* const name = op_.contract.args()[arg].name;
    const std::string guards = memory_[arg]->cells.CheckGuards();
    if (!guards.empty()) return fmt::format("memory of {}: {}", name, guards);
    const std::vector<unsigned char> now = memory_[arg]->cells.Read();
    if (now == memory_[arg]->image) continue;
    for (size_t i = 0; i < memory_[arg]->image.size(); ++i) {
      if (now[i] == memory_[arg]->image[i] || memory_[arg]->is_result[i]) continue;
      return fmt::format("memory of {}: byte {} is no result and was changed", name, i);
    }
  }
  const std::string guards = workspace_ ? workspace_->CheckGuards() : "";
  return guards.empty() ? "" : "workspace: " + guards;
}

}  // namespace anyacl::harness
