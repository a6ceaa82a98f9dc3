// SPDX-License-Identifier: Apache-2.0
// Copyright The AnyACL Authors
#include "plan/recall.h"

#include <algorithm>
#include <bit>
#include <cstring>
#include <memory>
#include <new>
#include <span>
#include <string_view>

#include "core/log.h"
#include "core/thread_value.h"

namespace anyacl {
namespace {

using contract::ArgKind;
using contract::Value;

constexpr int kCallBits = 6;       // 64 calls of one thread, some 2 KiB each
constexpr size_t kMaxWords = 4096;  // of one of them: a step of an optimizer over some hundred tensors

struct Memory {
  std::unique_ptr<RememberedCall> calls[1 << kCallBits];
};

std::unique_ptr<RememberedCall>* PlaceOf(const CallDescription& call) {
  Memory* const memory = ThreadValue<Memory>();
  return memory ? &memory->calls[call.Hash() >> (64 - kCallBits)] : nullptr;
}

uint64_t HashOf(const TensorSpan& list) {
  uint64_t sum = list.tensors.size();
  for (const Tensor* t : list.tensors) sum = sum * 3 + (t ? t->hash : 1);
  return sum;
}

// Calls visit(arg, item, tensor) for every tensor that is given.
template <class Visit>
void ForEachTensor(std::span<const contract::Arg> args, contract::Values values, Visit&& visit) {
  for (int i = 0; i < static_cast<int>(values.size()); ++i) {
    if (!values[i].given()) continue;
    if (args[i].is_tensor()) visit(i, 0, *values[i].tensor);
    if (!args[i].is_tensor_list()) continue;
    int item = 0;
    for (const Tensor* t : values[i].tensors->tensors) {
      if (t) visit(i, item, *t);
      ++item;
    }
  }
}

// Rules ask for the storage of these alone: how a private format lies, and what an empty tensor is a part of.
bool StorageMatters(const Tensor& t) { return IsPrivate(t.format) || t.empty(); }

// As many as CallDescription::Read gives of a tensor.
int WordsOf(const Tensor& t) { return 3 + 2 * t.rank() + (StorageMatters(t) ? 1 + t.storage.rank() : 0); }

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
    case ArgKind::kInOut:
      return reader.Knows(*value.tensor) || Read(*value.tensor, reader);
    case ArgKind::kInputList:
    case ArgKind::kOutputList:
    case ArgKind::kInOutList:
      return take(value.tensors->tensors.size()) &&
             std::ranges::all_of(value.tensors->tensors, [&](const Tensor* t) {
               return take(t != nullptr) && (!t || reader.Knows(*t) || Read(*t, reader));
             });
    case ArgKind::kScalar:
      return Read(*value.scalar, reader);
    case ArgKind::kScalarList:
      return take(value.scalars->scalars.size()) &&
             std::ranges::all_of(value.scalars->scalars, [&](const Scalar* scalar) {
               return take(scalar != nullptr) && (!scalar || Read(*scalar, reader));
             });
    case ArgKind::kString:
      return std::ranges::all_of(std::string_view(value.text), [&](char c) { return take(static_cast<unsigned char>(c)); }) &&
             take(0);
    case ArgKind::kFloatArray:
      return take(value.floats->values.size()) &&
             std::ranges::all_of(value.floats->values, [&](float one) { return take(std::bit_cast<uint32_t>(one)); });
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
bool CallDescription::Read(const Scalar& scalar, Reader& reader) {
  uint64_t halves[2];
  static_assert(sizeof(halves) == sizeof(scalar.bytes));
  std::memcpy(halves, scalar.bytes, sizeof(halves));
  return reader.Take(static_cast<uint64_t>(scalar.dtype)) && reader.Take(halves[0]) && reader.Take(halves[1]);
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
  if (!StorageMatters(t)) return true;
  return reader.Take(static_cast<uint64_t>(t.storage.rank())) &&
         std::ranges::all_of(t.storage, [&](int64_t dim) { return reader.Take(static_cast<uint64_t>(dim)); });
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
    if (contract::IsTensor(kind)) sum += value.tensor->hash * factor;
    if (contract::IsTensorList(kind)) sum += HashOf(*value.tensors) * factor;
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
                               const PlanRef& plan)
    : words_(std::move(words)), plan_(plan) {
  const auto& args = plan->op->contract.args();
  ForEachTensor(args, values, [&](int arg, int item, const Tensor& t) {
    seen_.push_back({WordsOf(t), 0, nullptr});
    const Span span = SpanOf(t);
    if (span.begin == span.end) return;
    const auto base = reinterpret_cast<uintptr_t>(t.data);
    reaches_.push_back({arg, item, args[arg].is_written(), span.begin - base, span.end - base, -1});
  });
  repeats_ = FindSame(values);
}

const Tensor& RememberedCall::TensorOf(const Reach& reach, contract::Values values) const {
  const Value& value = values[reach.arg];
  return plan_->op->contract.args()[reach.arg].is_tensor() ? *value.tensor : *value.tensors->tensors[reach.item];
}

// Which tensor each output exactly is; false when one meets another otherwise.
bool RememberedCall::FindSame(contract::Values values) {
  for (Reach& output : reaches_) {
    if (!output.is_written) continue;
    const Tensor& written = TensorOf(output, values);
    const Span span = SpanOf(written);
    for (const Reach& other : reaches_) {
      if (&other == &output) continue;
      const Tensor& t = TensorOf(other, values);
      if (!span.Meets(SpanOf(t))) continue;
      if (other.is_written || output.same_as >= 0 || !SameElements(written, t)) return false;
      output.same_as = static_cast<int>(&other - reaches_.data());
    }
  }
  return true;
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
  if (!MeetsAsBefore(call.values())) return false;
  Seen* seen = seen_.data();
  ForEachTensor(plan_->op->contract.args(), call.values(), [&](int, int, const Tensor& t) {
    seen->number = t.number;
    (seen++)->data = t.data;
  });
  return true;
}

bool RememberedCall::MeetsAsBefore(contract::Values values) const {
  struct Place {
    uintptr_t begin, end;
    int index;
  };
  const auto place_of = [&](size_t i) -> Place {
    const auto base = reinterpret_cast<uintptr_t>(TensorOf(reaches_[i], values).data);
    return {base + reaches_[i].begin, base + reaches_[i].end, static_cast<int>(i)};
  };
  InlineVector<Place, 32> places;  // of the outputs, by address
  for (size_t i = 0; i < reaches_.size(); ++i) {
    if (reaches_[i].is_written) places.push_back(place_of(i));
  }
  if (places.size() > 1) {
    std::sort(places.begin(), places.end(), [](const Place& a, const Place& b) { return a.begin < b.begin; });
  }
  for (size_t i = 1; i < places.size(); ++i) {
    if (places[i].begin < places[i - 1].end) return false;
  }
  for (size_t i = 0; i < reaches_.size(); ++i) {
    if (reaches_[i].is_written) continue;
    const Place other = place_of(i);
    // The first output that ends behind the beginning of this tensor; those behind it begin later.
    const Place* output = std::partition_point(places.begin(), places.end(),
                                               [&](const Place& p) { return p.end <= other.begin; });
    for (; output != places.end() && output->begin < other.end; ++output) {
      if (reaches_[output->index].same_as != static_cast<int>(i)) return false;
    }
  }
  for (const Place& output : places) {
    const int same = reaches_[output.index].same_as;
    if (same >= 0 && place_of(same).begin != output.begin) return false;
  }
  return true;
}

const std::shared_ptr<const contract::CallSpec>& RememberedCall::spec(contract::Values values) const {
  if (!spec_) spec_ = std::make_shared<const contract::CallSpec>(contract::CallSpec::Of(plan_->op->contract, values));
  return spec_;
}

const RememberedCall* Recall(const CallDescription& call) {
  if (!Remembers()) return nullptr;
  const auto* const place = PlaceOf(call);
  RememberedCall* const known = place ? place->get() : nullptr;
  return known && known->Is(call) ? known : nullptr;
}

void Remember(const CallDescription& call, const PlanRef& plan) noexcept try {
  if (!Remembers() || plan->follows_switch) return;
  bool placed = true;  // else nobody knows yet how they will lie
  ForEachTensor(plan->op->contract.args(), call.values(), [&](int, int, const Tensor& t) { placed = placed && t.data; });
  std::vector<uint64_t> words;
  if (placed) words = call.Words();
  auto* const place = words.empty() ? nullptr : PlaceOf(call);
  if (!place) return;
  auto known = std::make_unique<RememberedCall>(std::move(words), call.values(), plan);
  if (known->repeats_) *place = std::move(known);
} catch (const std::bad_alloc&) {  // then the next call is planned again
}

}  // namespace anyacl
