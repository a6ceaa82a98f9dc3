// SPDX-License-Identifier: Apache-2.0
// Copyright The AnyACL Authors
#include "plan/recall.h"

#include <algorithm>
#include <bit>
#include <cstring>
#include <memory>
#include <new>
#include <span>

#include "core/log.h"
#include "core/thread_value.h"

namespace anyacl {
namespace {

using contract::ArgKind;
using contract::Value;

constexpr int kCallBits = 6;  // 64 calls of one thread, some 2 KiB each

struct Memory {
  std::unique_ptr<RememberedCall> calls[1 << kCallBits];
};

std::unique_ptr<RememberedCall>* PlaceOf(const CallDescription& description) {
  Memory* const memory = ThreadValue<Memory>();
  return memory ? &memory->calls[description.hash() >> (64 - kCallBits)] : nullptr;
}

}  // namespace

CallDescription::CallDescription(const Operator& op, contract::Values values,
                                 const Backend& backend, Product product) {
  // Who asks for lines about plans gets one for every call.
  complete_ = !log::Enabled(log::Level::kDebug);
  Add(reinterpret_cast<uintptr_t>(&op));
  Add(reinterpret_cast<uintptr_t>(&backend));
  Add(reinterpret_cast<uintptr_t>(ForcedKernelName()));
  Add(static_cast<uint64_t>(product));
  const contract::Arg* arg = op.contract.args().data();
  for (const Value& value : values) Add((arg++)->kind, value);
}

// How many words follow can be told from those before, so no two calls give the same ones.
void CallDescription::Add(ArgKind kind, const Value& value) {
  complete_ = complete_ && value.state != Value::State::kDead;
  Add(uint64_t{value.given()});
  if (!value.given()) return;
  switch (kind) {
    case ArgKind::kInput:
    case ArgKind::kOutput:
      return Add(*value.tensor);
    case ArgKind::kScalar: {
      uint64_t halves[2];
      static_assert(sizeof(halves) == sizeof(value.scalar->bytes));
      std::memcpy(halves, value.scalar->bytes, sizeof(halves));
      Add(static_cast<uint64_t>(value.scalar->dtype));
      Add(halves[0]);
      return Add(halves[1]);
    }
    case ArgKind::kBoolArray:
      Add(value.bools->values.size());
      for (const unsigned char one : value.bools->values) Add(one != 0);
      return;
    case ArgKind::kIntArray:
      Add(value.ints->values.size());
      for (const int64_t one : value.ints->values) Add(static_cast<uint64_t>(one));
      return;
    case ArgKind::kInt:
      return Add(static_cast<uint64_t>(value.integer));
    case ArgKind::kReal:
      return Add(std::bit_cast<uint64_t>(value.real));
    case ArgKind::kBool:
      return Add(uint64_t{value.flag});
  }
}

void CallDescription::Add(const Tensor& t) {
  const int rank = t.rank();
  if (count_ + 3 + 2 * rank > kMaxWords) [[unlikely]] {
    complete_ = false;
    return;
  }
  uint64_t* const to = words_ + count_;
  to[0] = static_cast<uint64_t>(rank);
  to[1] =
      static_cast<uint64_t>(static_cast<uint32_t>(t.dtype)) << 32 | static_cast<uint32_t>(t.format);
  to[2] = static_cast<uint64_t>(t.offset);
  for (int i = 0; i < rank; ++i) {
    to[3 + 2 * i] = static_cast<uint64_t>(t.dims[i]);
    to[4 + 2 * i] = static_cast<uint64_t>(t.strides[i]);
  }
  count_ += 3 + 2 * rank;
}

// A sum of products: one word does not wait for the one before.
uint64_t CallDescription::hash() const {
  constexpr uint64_t kFactor = 0x9e3779b97f4a7c15;  // odd, with ones and zeros everywhere
  uint64_t sum = 0;
  uint64_t factor = kFactor;
  for (int i = 0; i < count_; ++i) {
    sum += words_[i] * factor;
    factor += 2 * kFactor;
  }
  return sum * kFactor;
}

bool CallDescription::operator==(const std::vector<uint64_t>& words) const {
  return words.size() == static_cast<size_t>(count_) &&
         std::memcmp(words.data(), words_, words.size() * sizeof(uint64_t)) == 0;
}

RememberedCall::RememberedCall(const CallDescription& description, contract::Values values,
                               const Executor& executor)
    : words_(description.words()),
      tensors_(executor.tensors, executor.tensors + executor.tensor_count) {
  plan_.CopyFrom(executor.plan);
  const auto& args = executor.plan.op->contract.args();
  for (int i = 0; i < static_cast<int>(values.size()); ++i) {
    if (!args[i].is_tensor() || !values[i].given()) continue;
    const Span span = SpanOf(*values[i].tensor);
    if (span.begin == span.end) continue;
    const auto base = reinterpret_cast<uintptr_t>(values[i].tensor->data);
    reaches_.push_back({i, args[i].kind == ArgKind::kOutput, span.begin - base, span.end - base});
  }
}

bool RememberedCall::IsApart(contract::Values values) const {
  const auto span_of = [&](const Reach& reach) {
    const auto base = reinterpret_cast<uintptr_t>(values[reach.arg].tensor->data);
    Span span;
    span.begin = base + reach.begin;
    span.end = base + reach.end;
    return span;
  };
  for (const Reach& output : reaches_) {
    if (!output.is_output) continue;
    const Span written = span_of(output);
    for (const Reach& other : reaches_) {
      if (&other != &output && written.Meets(span_of(other))) return false;
    }
  }
  return true;
}

void RememberedCall::CopyTo(Executor* executor) const {
  executor->plan.CopyFrom(plan_);
  executor->tensor_count = static_cast<int>(tensors_.size());
  std::copy(tensors_.begin(), tensors_.end(), executor->tensors);
}

const RememberedCall* Recall(const CallDescription& description, contract::Values values) {
  if (!description.complete()) return nullptr;
  const auto* const place = PlaceOf(description);
  const RememberedCall* const call = place ? place->get() : nullptr;
  return call && call->Is(description) && call->IsApart(values) ? call : nullptr;
}

void Remember(const CallDescription& description, contract::Values values,
              const Executor& executor) noexcept try {
  if (!description.complete() || !executor.plan.packs.empty() || !executor.plan.unpacks.empty())
    return;
  for (const Executor::TensorRef& t : std::span(executor.tensors, executor.tensor_count)) {
    if (t.given && !t.address) return;  // nobody knows yet whether it will lie apart
  }
  auto* const place = PlaceOf(description);
  if (!place) return;
  auto call = std::make_unique<RememberedCall>(description, values, executor);
  if (call->IsApart(values)) *place = std::move(call);
} catch (const std::bad_alloc&) {  // then the next call is planned again
}

}  // namespace anyacl
