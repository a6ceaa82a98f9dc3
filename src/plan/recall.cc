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

constexpr int kCallBits = 6;       // 64 calls of one thread, some 2 KiB each
constexpr size_t kMaxWords = 192;  // of one of them

struct Memory {
  std::unique_ptr<RememberedCall> calls[1 << kCallBits];
};

std::unique_ptr<RememberedCall>* PlaceOf(const CallDescription& call) {
  Memory* const memory = ThreadValue<Memory>();
  return memory ? &memory->calls[call.Hash() >> (64 - kCallBits)] : nullptr;
}

// As many as CallDescription::Read gives of a tensor.
int WordsOf(const Tensor& t) { return 3 + 2 * t.rank(); }

// Who asks for lines about plans gets one for every call.
bool Remembers() { return !log::Enabled(log::Level::kDebug); }

}  // namespace

template <class Reader>
bool CallDescription::Read(Reader& reader) const {
  if (!reader.Take(reinterpret_cast<uintptr_t>(&op_)) ||
      !reader.Take(reinterpret_cast<uintptr_t>(&backend_)) ||
      !reader.Take(reinterpret_cast<uintptr_t>(ForcedKernelName())) ||
      !reader.Take(static_cast<uint64_t>(product_))) {
    return false;
  }
  const contract::Arg* arg = op_.contract.args().data();
  for (const Value& value : values_) {
    if (!Read((arg++)->kind, value, reader)) return false;
  }
  return true;
}

template <class Reader>
bool CallDescription::Read(ArgKind kind, const Value& value, Reader& reader) {
  if (!reader.Take(static_cast<uint64_t>(value.state))) return false;
  if (!value.given()) return true;
  const auto take = [&](uint64_t word) { return reader.Take(word); };
  switch (kind) {
    case ArgKind::kInput:
    case ArgKind::kOutput:
      return reader.Knows(*value.tensor) || Read(*value.tensor, reader);
    case ArgKind::kScalar: {
      uint64_t halves[2];
      static_assert(sizeof(halves) == sizeof(value.scalar->bytes));
      std::memcpy(halves, value.scalar->bytes, sizeof(halves));
      return take(static_cast<uint64_t>(value.scalar->dtype)) && take(halves[0]) && take(halves[1]);
    }
    case ArgKind::kBoolArray:
      return take(value.bools->values.size()) &&
             std::ranges::all_of(value.bools->values, [&](bool one) { return take(one); });
    case ArgKind::kIntArray:
      return take(value.ints->values.size()) && std::ranges::all_of(value.ints->values, take);
    case ArgKind::kInt:
      return take(static_cast<uint64_t>(value.integer));
    case ArgKind::kReal:
      return take(std::bit_cast<uint64_t>(value.real));
    case ArgKind::kBool:
      return take(value.flag);
  }
  return false;
}

template <class Reader>
bool CallDescription::Read(const Tensor& t, Reader& reader) {
  const uint64_t types =
      static_cast<uint64_t>(static_cast<uint32_t>(t.dtype)) << 32 | static_cast<uint32_t>(t.format);
  if (!reader.Take(static_cast<uint64_t>(t.rank())) || !reader.Take(types) ||
      !reader.Take(static_cast<uint64_t>(t.offset))) {
    return false;
  }
  for (int i = 0; i < t.rank(); ++i) {
    if (!reader.Take(static_cast<uint64_t>(t.dims[i])) ||
        !reader.Take(static_cast<uint64_t>(t.strides[i]))) {
      return false;
    }
  }
  return true;
}

// A sum of products: one word does not wait for the one before.
uint64_t CallDescription::Hash() const {
  uint64_t sum = reinterpret_cast<uintptr_t>(&op_);
  uint64_t factor = kHashFactor;
  const contract::Arg* arg = op_.contract.args().data();
  for (const Value& value : values_) {
    const ArgKind kind = (arg++)->kind;
    factor += 2 * kHashFactor;
    if (!value.given()) continue;
    if (kind == ArgKind::kInt) sum += static_cast<uint64_t>(value.integer) * factor;
    if (kind == ArgKind::kInput || kind == ArgKind::kOutput) sum += value.tensor->hash * factor;
  }
  return sum * kHashFactor;
}

std::vector<uint64_t> CallDescription::Words() const {
  struct Writer {
    bool Take(uint64_t word) {
      words.push_back(word);
      return words.size() < kMaxWords;
    }
    static bool Knows(const Tensor&) { return false; }
    std::vector<uint64_t> words;
  } writer;
  const bool dead = std::ranges::any_of(
      values_, [](const Value& value) { return value.state == Value::State::kDead; });
  if (dead || !Read(writer)) return {};
  return std::move(writer.words);
}

RememberedCall::RememberedCall(std::vector<uint64_t> words, contract::Values values,
                               const Executor& executor)
    : words_(std::move(words)),
      tensors_(executor.tensors, executor.tensors + executor.tensor_count) {
  plan_.CopyFrom(executor.plan);
  const auto& args = executor.plan.op->contract.args();
  for (int i = 0; i < static_cast<int>(values.size()); ++i) {
    if (!args[i].is_tensor() || !values[i].given()) continue;
    seen_.push_back({WordsOf(*values[i].tensor), 0, nullptr});
    const Span span = SpanOf(*values[i].tensor);
    if (span.begin == span.end) continue;
    const auto base = reinterpret_cast<uintptr_t>(values[i].tensor->data);
    reaches_.push_back({i, args[i].kind == ArgKind::kOutput, span.begin - base, span.end - base});
  }
}

// Reads a call beside the words and tensors that are remembered, and not beyond them, should another thread change a
// tensor meanwhile.
class RememberedCall::Comparison {
 public:
  explicit Comparison(const RememberedCall& call)
      : word_(call.words_.data()), end_(word_ + call.words_.size()), seen_(call.seen_.data()) {}

  bool Take(uint64_t word) { return word_ != end_ && word == *word_++; }
  bool Knows(const Tensor& t) {
    const Seen& seen = *seen_++;
    if (seen.number != t.number || seen.data != t.data) moved_ = true;
    if (seen.number != t.number || t.number == 0) return false;
    word_ += seen.words;
    return true;
  }
  // True unless all tensors are those of the last call, where they were.
  bool moved() const { return moved_; }

 private:
  const uint64_t* word_;
  const uint64_t* const end_;
  const Seen* seen_;
  bool moved_ = false;
};

bool RememberedCall::Is(const CallDescription& call) {
  Comparison comparison(*this);
  if (!call.Read(comparison)) return false;
  if (!comparison.moved()) return true;
  if (!IsApart(call.values())) return false;
  Seen* seen = seen_.data();
  const auto& args = plan_.op->contract.args();
  for (size_t i = 0; i < call.values().size(); ++i) {
    const Value& value = call.values()[i];
    if (!args[i].is_tensor() || !value.given()) continue;
    seen->number = value.tensor->number;
    (seen++)->data = value.tensor->data;
  }
  return true;
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

const RememberedCall* Recall(const CallDescription& call) {
  if (!Remembers()) return nullptr;
  const auto* const place = PlaceOf(call);
  RememberedCall* const known = place ? place->get() : nullptr;
  return known && known->Is(call) ? known : nullptr;
}

void Remember(const CallDescription& call, const Executor& executor) noexcept try {
  if (!Remembers() || !executor.plan.packs.empty() || !executor.plan.unpacks.empty()) return;
  for (const Executor::TensorRef& t : std::span(executor.tensors, executor.tensor_count)) {
    if (t.given && !t.address) return;  // nobody knows yet whether it will lie apart
  }
  std::vector<uint64_t> words = call.Words();
  auto* const place = words.empty() ? nullptr : PlaceOf(call);
  if (!place) return;
  auto known = std::make_unique<RememberedCall>(std::move(words), call.values(), executor);
  if (known->IsApart(call.values())) *place = std::move(known);
} catch (const std::bad_alloc&) {  // then the next call is planned again
}

}  // namespace anyacl
