// SPDX-License-Identifier: Apache-2.0
// Copyright The AnyACL Authors
//
// What happens around a public function when something of trace/switches.h is on: it may fail on purpose, and it is
// written to the trace. How an argument is written follows from its C type.
#ifndef ANYACL_BORDER_WATCHED_H_
#define ANYACL_BORDER_WATCHED_H_

#include <cstddef>
#include <cstdint>
#include <string_view>
#include <type_traits>

#include "core/error_text.h"
#include "trace/recorder.h"
#include "trace/switches.h"

namespace anyacl::border {

using trace::Element;
using trace::Function;
using trace::Param;
using trace::Record;
using trace::Value;

// A count that is a data type means one element of it.
struct Count {
  int64_t value = -1;  // negative: none
  bool is_data_type = false;
};

// Of copies.
struct Extent {
  int64_t bytes = 0;
  int64_t pitch = 0;
  int64_t rows = 0;  // 0: bytes without rows

  uint64_t Total() const { return static_cast<uint64_t>(rows > 0 ? pitch * (rows - 1) + bytes : bytes); }
};

// The rest, which has no types.
uint64_t BytesOfDataType(int64_t data_type);
// Whether so many elements may be read there. A few always.
bool CanRead(const void* data, int64_t count, size_t size);
// What lies at a host address goes into a record when contents are asked for; else, and of device memory, the address.
void PutContents(const void* data, const Extent& extent, Record* record);
// What a finished copy left in host memory; false when there is nothing to say.
bool PutDigest(uint8_t param, const void* data, const Extent& extent, Record* record);
// The text of the error, and the line of Python that the call came from.
void PutEnd(bool failed, uint64_t texts_before, Record* record);
// What ANYACL_FAIL asks for: the code that the call is to fail with, or 0.
int32_t FaultOf(const Function& function);
// What a failing call does besides returning the code.
void TellFault(const Function& function, int32_t code);

template <class T>
inline constexpr bool kIsScalar = std::is_arithmetic_v<T> || std::is_enum_v<T>;

template <class T, class = void>
inline constexpr bool kIsComplete = false;
template <class T>
inline constexpr bool kIsComplete<T, std::void_t<decltype(sizeof(T))>> = true;

template <class T>
constexpr Element ElementOf() {
  if constexpr (std::is_floating_point_v<T>) return Element::kReal;
  return std::is_unsigned_v<T> ? Element::kUnsigned : Element::kSigned;
}

inline void PutBlob(const void* where, const void* data, uint64_t size, Record* record) {
  record->Put(Value::kBytes);
  record->Put(reinterpret_cast<uint64_t>(where));
  record->Put(static_cast<uint32_t>(size));
  record->PutBytes(data, size);
}

inline void PutPlace(const void* where, Record* record) {
  record->Put(Value::kPlace);
  record->Put(reinterpret_cast<uint64_t>(where));
}

// `count` values of a type, at an address that is not null; the address alone where a program says that there are more than there
// can be, which the call itself refuses.
template <class T>
void PutElements(const T* data, int64_t count, Record* record) {
  if (!CanRead(data, count, sizeof(T))) return PutPlace(data, record);
  if constexpr (std::is_pointer_v<T>) {
    record->Put(Value::kPointers);
    record->Put(reinterpret_cast<uint64_t>(data));
    record->Put(static_cast<uint32_t>(count));
    record->PutBytes(data, count * sizeof(T));
  } else if constexpr (kIsScalar<T>) {
    record->Put(Value::kArray);
    record->Put(reinterpret_cast<uint64_t>(data));
    record->Put(ElementOf<T>());
    record->Put(static_cast<uint8_t>(sizeof(T)));
    record->Put(static_cast<uint32_t>(count));
    record->PutBytes(data, count * sizeof(T));
  } else {
    PutBlob(data, data, count * sizeof(T), record);
  }
}

// A pointer before the call. Without a count, a place for one value is not read: it need not have one yet.
template <class T>
void PutPointerTo(T* pointer, Count count, Record* record) {
  using Target = std::remove_cv_t<T>;
  if (!pointer) {
    record->Put(Value::kNull);
  } else if constexpr (std::is_function_v<Target>) {
    record->Put(Value::kFunction);
    record->Put(reinterpret_cast<uint64_t>(pointer));
  } else if constexpr (std::is_void_v<Target>) {
    if (!count.is_data_type) return record->PutPointer(pointer);
    PutBlob(pointer, pointer, BytesOfDataType(count.value), record);
  } else if constexpr (!kIsComplete<Target>) {
    record->PutPointer(pointer);
  } else if constexpr (std::is_same_v<T, const char>) {
    record->PutString(pointer);
  } else if constexpr (std::is_same_v<T, char>) {
    PutPlace(pointer, record);
  } else if constexpr (std::is_array_v<Target>) {
    record->PutPointer(pointer);
  } else if constexpr (std::is_pointer_v<Target> || kIsScalar<Target>) {
    if (count.value >= 0) return PutElements(pointer, count.value, record);
    if constexpr (std::is_enum_v<Target>) return PutElements(pointer, 1, record);  // some are exchanged
    PutPlace(pointer, record);
  } else {
    PutElements(pointer, count.value >= 0 ? count.value : 1, record);
  }
}

template <class T>
void PutValue(T value, Count count, Record* record) {
  if constexpr (std::is_pointer_v<T>) {
    PutPointerTo(value, count, record);
  } else if constexpr (std::is_floating_point_v<T>) {
    record->Put(Value::kReal);
    record->Put(static_cast<double>(value));
  } else if constexpr (kIsScalar<T>) {
    record->PutInteger(static_cast<int64_t>(value));
  } else {
    PutBlob(nullptr, &value, sizeof(value), record);
  }
}

// What a call put where a pointer that is not const points to.
template <class T>
uint8_t PutAfter([[maybe_unused]] uint8_t param, [[maybe_unused]] T value, [[maybe_unused]] Count count,
                 [[maybe_unused]] Record* record) {
  if constexpr (std::is_pointer_v<T>) {
    using Target = std::remove_pointer_t<T>;
    if constexpr (!std::is_function_v<Target> && !std::is_const_v<Target> && kIsComplete<Target> &&
                  !std::is_array_v<Target> && !std::is_same_v<Target, char>) {
      if (!value) return 0;
      record->Put(param);
      if (count.value >= 0 || !(std::is_pointer_v<Target> || kIsScalar<Target>)) {
        PutElements(value, count.value >= 0 ? count.value : 1, record);
      } else if constexpr (std::is_pointer_v<Target>) {
        record->PutPointer(*value);
      } else {
        PutValue(*value, {}, record);
      }
      return 1;
    }
  }
  return 0;
}

template <class T>
int64_t NumberOf(const T& value) {
  if constexpr (kIsScalar<T>) return static_cast<int64_t>(value);
  return -1;
}

// The arguments of one call.
template <class... A>
class Arguments {
 public:
  Arguments(const Function& function, A... values) : function_(function), numbers_{NumberOf(values)..., 0} {}

  void Put([[maybe_unused]] Record* record, A... values) const {
    [[maybe_unused]] size_t i = 0;
    (PutOne(i++, values, record), ...);
  }

  // Their number, then each.
  void PutAfterwards(Record* record, A... values) const {
    Record after;
    uint8_t count = 0;
    [[maybe_unused]] size_t i = 0;
    ((count += PutOneAfter(i++, values, &after)), ...);
    record->Put(count);
    record->PutBytes(after.bytes().data(), after.bytes().size());
  }

 private:
  Count CountOf(const Param& param) const {
    if (param.count < 0) return {};
    return {numbers_[param.count], std::string_view(function_.params[param.count].type) == "aclDataType"};
  }
  Extent ExtentOf(const Param& param) const {
    if (param.rows < 0) return {numbers_[param.count]};
    return {numbers_[param.count], numbers_[param.pitch], numbers_[param.rows]};
  }
  template <class T>
  void PutOne(size_t i, T value, Record* record) const {
    const Param& param = function_.params[i];
    if constexpr (std::is_same_v<T, const void*>) {
      if (param.content) return PutContents(value, ExtentOf(param), record);
    }
    PutValue(value, CountOf(param), record);
  }
  template <class T>
  uint8_t PutOneAfter(size_t i, T value, Record* record) const {
    const Param& param = function_.params[i];
    if constexpr (std::is_same_v<T, void*>) {
      if (param.content && function_.waits) return PutDigest(static_cast<uint8_t>(i), value, ExtentOf(param), record);
    }
    return PutAfter(static_cast<uint8_t>(i), value, CountOf(param), record);
  }

  const Function& function_;
  const int64_t numbers_[sizeof...(A) + 1];
};

template <class T>
constexpr bool IsNull(T value) {
  if constexpr (std::is_pointer_v<T>) return value == nullptr;
  return false;
}

template <class R>
void PutResult(R result, Record* record) {
  if constexpr (std::is_pointer_v<R> && !std::is_same_v<R, const char*>) {
    record->PutPointer(reinterpret_cast<const void*>(result));
  } else {
    PutValue(result, {}, record);
  }
}

// What records need is not worth a failure of the call.
template <class Write>
bool Quietly(Write&& write) noexcept {
  try {
    write();
    return true;
  } catch (...) {
    return false;
  }
}

// Calls the body with its record around it. The record of the call is written first: a call that never returns is the one
// that is looked for.
template <class R, class Body, class... A>
R Traced(Function& function, Body&& body, A... values) {
  const Arguments<A...> arguments(function, values...);
  const uint64_t texts = error_text::Count();
  uint64_t call = 0;
  const bool begun = Quietly([&] {
    Record record;
    call = trace::BeginCall(function, &record);
    arguments.Put(&record, values...);
    trace::Append(record);
  });
  const auto end = [&](bool failed, bool has_outputs, auto&& put_result) {
    if (!begun) return;
    Quietly([&] {
      Record record;
      trace::BeginReturn(call, &record);
      if (has_outputs) arguments.PutAfterwards(&record, values...);
      if (!has_outputs) record.Put(uint8_t{0});
      put_result(&record);
      PutEnd(failed, texts, &record);
      trace::Append(record);
    });
  };
  if constexpr (std::is_void_v<R>) {
    body(values...);
    end(false, true, [](Record* record) { record->Put(Value::kNothing); });
  } else {
    const R result = body(values...);
    const bool refused = function.status && NumberOf(result) != 0;
    const bool failed = refused || (std::is_pointer_v<R> && IsNull(result));
    end(failed, !refused, [&](Record* record) { PutResult(result, record); });
    return result;
  }
}

// What a call returns that fails with that code.
template <class R>
R Refusal(int32_t code) {
  if constexpr (std::is_pointer_v<R>) {
    (void)code;
    return nullptr;
  } else {
    return static_cast<R>(code);
  }
}

template <class R, class... A>
[[gnu::noinline, gnu::cold]] R Watched(Function& function, R (*body)(A...), std::type_identity_t<A>... values) {
  const unsigned on = trace::Switches();
  const bool traced = (on & trace::kTrace) != 0;
  if constexpr (kIsScalar<R> || std::is_pointer_v<R>) {
    const int32_t code = (on & trace::kFaults) != 0 ? FaultOf(function) : 0;
    if (code != 0) {
      const auto refuse = [&](A...) {
        TellFault(function, code);
        return Refusal<R>(code);
      };
      return traced ? Traced<R>(function, refuse, values...) : refuse(values...);
    }
  }
  if (traced) return Traced<R>(function, body, values...);
  return body(values...);
}

}  // namespace anyacl::border

#endif  // ANYACL_BORDER_WATCHED_H_
