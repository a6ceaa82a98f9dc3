// SPDX-License-Identifier: Apache-2.0
// Copyright The AnyACL Authors
//
// Calls a public function with the arguments of a trace. How an argument is read back follows from its C type, as
// border/watched.h wrote it. The table is written by cmake/border_calls.py.
#ifndef ANYACL_TOOLS_REPLAY_CALLS_H_
#define ANYACL_TOOLS_REPLAY_CALLS_H_

#include <algorithm>
#include <cstddef>
#include <cstring>
#include <map>
#include <string>
#include <tuple>
#include <type_traits>
#include <utility>
#include <vector>

#include "replay.h"

namespace anyacl::tool {

using ReplayCall = void (*)(const TracedCall& call, Translation& translation, Replayed* replayed);
using ReplayTable = std::map<std::string, ReplayCall>;
const ReplayTable& ReplayCalls();

// Whether the digest that the trace has of what a copy wrote is that of this memory.
void CompareDigest(const TracedCall& call, size_t param, const void* data, Replayed* replayed);

template <class T, class = void>
inline constexpr bool kHasSize = false;
template <class T>
inline constexpr bool kHasSize<T, std::void_t<decltype(sizeof(T))>> = true;

// For callbacks of the program.
template <class R, class... A>
R DoNothing(A...) {
  return R();
}
template <class R, class... A>
auto NothingLike(R (*)(A...)) -> R (*)(A...) {
  return DoNothing<R, A...>;
}

// One argument, and what it points to.
template <class T>
class Argument {
 public:
  Argument(const TracedCall& call, size_t i, Translation& translation) {
    const Traced& value = call.args[i];
    if constexpr (std::is_floating_point_v<T>) {
      value_ = static_cast<T>(value.real);
    } else if constexpr (std::is_arithmetic_v<T> || std::is_enum_v<T>) {
      value_ = static_cast<T>(value.integer);
      if constexpr (std::is_same_v<T, uint64_t>) {
        if (call.function->params[i].name == "threadId") value_ = translation.ThreadOf(value_, call.ticket);
      }
    } else {
      const std::string bytes = translation.OfBytes(value.bytes);
      std::memcpy(static_cast<void*>(&value_), bytes.data(), std::min(sizeof(T), bytes.size()));
    }
  }
  T get() { return value_; }
  void After(const TracedCall&, size_t, Translation&, Replayed*) {}

 private:
  T value_{};
};

template <class T>
class Argument<T*> {
 public:
  Argument(const TracedCall& call, size_t i, Translation& translation) : value_(call.args[i]) {
    switch (value_.kind) {
      case trace::Value::kPlace:
        room_.resize(kRoom);
        break;
      case trace::Value::kPointers:
        for (const uint64_t pointer : value_.pointers) {
          const void* const now = pointer ? translation.Of(pointer) : nullptr;
          room_.append(reinterpret_cast<const char*>(&now), sizeof(now));
        }
        room_.resize(room_.size() + kSlack);
        break;
      case trace::Value::kBytes:
        room_ = translation.OfBytes(value_.bytes);
        room_.resize(room_.size() + kSlack);
        break;
      case trace::Value::kText:
      case trace::Value::kArray:
        room_ = value_.bytes;
        room_.resize(room_.size() + kSlack);
        break;
      case trace::Value::kContents:
        elsewhere_ = translation.Of(value_.address);
        std::memcpy(elsewhere_, value_.bytes.data(), value_.bytes.size());
        break;
      case trace::Value::kPointer:
        elsewhere_ = translation.Of(value_.address);
        break;
      default:
        break;
    }
  }

  T* get() {
    if constexpr (std::is_function_v<T>) {
      return value_.kind == trace::Value::kNull ? nullptr : NothingLike(static_cast<T*>(nullptr));
    } else {
      return static_cast<T*>(const_cast<void*>(room_.empty() ? elsewhere_ : room_.data()));
    }
  }

  void After(const TracedCall& call, size_t i, Translation& translation, Replayed* replayed) {
    const auto after = call.after.find(i);
    if (after == call.after.end()) return;
    const Traced& was = after->second;
    if (was.kind == trace::Value::kDigest) CompareDigest(call, i, elsewhere_, replayed);
    if (!room_.empty()) LearnFrom(was, call, translation);
  }

 private:
  static constexpr size_t kRoom = 8192;  // more than any function puts where the trace says no size
  static constexpr size_t kSlack = 64;

  void LearnFrom(const Traced& was, const TracedCall& call, Translation& translation) {
    if (was.kind == trace::Value::kBytes) translation.LearnBytes(was.bytes, room_.substr(0, was.bytes.size()));
    if (was.kind == trace::Value::kPointer) {
      const void* const now = PointerAt(0);
      const auto made = MemoryMadeBy(call);
      made && made->begin == was.address ? translation.LearnMemory(*made, now) : translation.Learn(was.address, now);
    }
    for (size_t n = 0; n < was.pointers.size(); ++n) translation.Learn(was.pointers[n], PointerAt(n));
  }
  const void* PointerAt(size_t n) const {
    const void* pointer;
    std::memcpy(&pointer, room_.data() + n * sizeof(pointer), sizeof(pointer));
    return pointer;
  }

  const Traced& value_;
  std::string room_;
  void* elsewhere_ = nullptr;
};

template <class R>
Traced ResultOf(R result) {
  Traced traced;
  if constexpr (std::is_pointer_v<R>) {
    traced.kind = result ? trace::Value::kPointer : trace::Value::kNull;
    traced.address = reinterpret_cast<uint64_t>(result);
  } else if constexpr (std::is_arithmetic_v<R> || std::is_enum_v<R>) {
    traced.kind = trace::Value::kInteger;
    traced.integer = static_cast<int64_t>(result);
  }
  return traced;
}

template <auto function, class R, class... A, size_t... i>
void Replay(const TracedCall& call, Translation& translation, Replayed* replayed, R (*)(A...), std::index_sequence<i...>) {
  std::tuple<Argument<A>...> arguments{Argument<A>(call, i, translation)...};
  if constexpr (std::is_void_v<R>) {
    function(std::get<i>(arguments).get()...);
  } else {
    const R result = function(std::get<i>(arguments).get()...);
    replayed->result = ResultOf(result);
    if constexpr (std::is_pointer_v<R>) {
      if (result && call.result.kind == trace::Value::kPointer) translation.Learn(call.result.address, result);
    }
    if (replayed->result.kind == trace::Value::kInteger && call.function->is_status && replayed->result.integer != 0) return;
  }
  (std::get<i>(arguments).After(call, i, translation, replayed), ...);
}

template <class R, class... A>
constexpr std::index_sequence_for<A...> IndicesOf(R (*)(A...)) {
  return {};
}

template <auto function>
ReplayCall ReplayOf() {
  return [](const TracedCall& call, Translation& translation, Replayed* replayed) {
    Replay<function>(call, translation, replayed, function, IndicesOf(function));
  };
}

}  // namespace anyacl::tool

#endif  // ANYACL_TOOLS_REPLAY_CALLS_H_
