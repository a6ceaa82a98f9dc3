// SPDX-License-Identifier: Apache-2.0
// Copyright The AnyACL Authors
#include "verify/check.h"

#include <fmt/format.h>

#include <algorithm>
#include <cmath>
#include <cstring>
#include <exception>
#include <mutex>
#include <unordered_map>
#include <unordered_set>
#include <utility>

#include "core/locks.h"
#include "core/once.h"
#include "harness/data.h"

namespace anyacl::verify {
namespace {

using harness::Host;
using harness::Number;
using watch::TensorUse;

// Every element is read, computed and compared; an oracle touches it a few times more.
constexpr int64_t kLeastStepsPerElement = 8;

// What is known of operators and calls. Guarded by Lock::kVerify.
struct Known {
  std::unordered_map<const Operator*, const harness::Subject*> subjects;
  std::unordered_set<std::string> too_large;  // calls whose oracles gave up, by operator and description
};

const harness::Subject* SubjectOf(const Operator* op, const char* name) {
  auto& subjects = TheOne<Known>().subjects;
  {
    const std::lock_guard lock(LockOf(Lock::kVerify));
    const auto found = subjects.find(op);
    if (found != subjects.end()) return found->second;
  }
  const harness::Subject* const subject = harness::FindSubject(name);
  const std::lock_guard lock(LockOf(Lock::kVerify));
  return subjects[op] = subject;
}

bool IsKnownAsTooLarge(const LogLine& line) {
  auto& too_large = TheOne<Known>().too_large;
  const std::lock_guard lock(LockOf(Lock::kVerify));
  return too_large.count(line.op + line.call) > 0;
}
void KnowAsTooLarge(const LogLine& line) {
  auto& too_large = TheOne<Known>().too_large;
  const std::lock_guard lock(LockOf(Lock::kVerify));
  too_large.insert(line.op + line.call);
}

bool IsDecodable(DType dtype) { return harness::HasNumbers(dtype) || dtype == DType::kC32; }
bool HasSpecials(DType dtype) {
  return IsDecodable(dtype) && !IsInteger(dtype) && dtype != DType::kBool;
}
bool IsNan(Number x) { return std::isnan(x.real()) || std::isnan(x.imag()); }
bool IsInfinite(Number x) { return std::isinf(x.real()) || std::isinf(x.imag()); }

// "out[3, 1]", "tensors[2][0]"
std::string Place(const TensorUse& use, int64_t index) {
  const Host shape{DType::kUndefined, use.tensor.dims, {}};
  const harness::Checked<int64_t> at = shape.Position(index);
  const std::string item = use.in_list ? fmt::format("[{}]", use.item) : "";
  return fmt::format("{}{}{}", use.name, item, ToString(Dims(at)));
}

// Whether every byte that the one can touch is between some that the other can.
bool IsWithin(const Tensor& inner, const Tensor& outer) {
  const auto bytes_of = [](const Tensor& t) {
    Extent extent;
    GetExtent(t, &extent);
    const int64_t size = static_cast<int64_t>(SizeOf(t.dtype));
    const auto* const data = static_cast<const unsigned char*>(t.data);
    return std::pair(data + extent.begin * size, data + extent.end * size);
  };
  const auto [begin, end] = bytes_of(inner);
  const auto [first, last] = bytes_of(outer);
  return !outer.empty() && first <= begin && end <= last;
}

// The elements of a view in row-major order; `memory` is where element `first` of its storage lies.
std::vector<unsigned char> Gather(const Tensor& view, const unsigned char* memory, int64_t first) {
  const size_t size = SizeOf(view.dtype);
  std::vector<unsigned char> dense(static_cast<size_t>(view.numel()) * size);
  if (IsContiguous(view)) {
    std::memcpy(dense.data(), memory + (view.offset - first) * static_cast<int64_t>(size),
                dense.size());
    return dense;
  }
  std::vector<int64_t> at(view.rank());
  int64_t element = view.offset - first;
  for (unsigned char* to = dense.data(); to != dense.data() + dense.size(); to += size) {
    std::memcpy(to, memory + element * static_cast<int64_t>(size), size);
    for (int axis = view.rank() - 1; axis >= 0; --axis) {
      element += view.strides[axis];
      if (++at[axis] < view.dims[axis]) break;
      element -= view.strides[axis] * view.dims[axis];
      at[axis] = 0;
    }
  }
  return dense;
}

template <class Values>
std::string ListOf(const Values& values) {
  constexpr size_t kMost = 8;
  std::string text;
  for (size_t i = 0; i < values.size() && i < kMost; ++i)
    text += fmt::format("{}{:g}", i ? ", " : "", static_cast<double>(values[i]));
  return fmt::format("[{}{}]", text, values.size() > kMost ? ", ..." : "");
}

// An argument that is no tensor; else empty.
std::string TextOf(contract::ArgKind kind, const contract::ArgSpec& arg) {
  using contract::ArgKind;
  switch (kind) {
    case ArgKind::kScalar:
      return fmt::format("{:g}", arg.scalar.AsDouble());
    case ArgKind::kInt:
      return fmt::format("{}", arg.integer);
    case ArgKind::kReal:
      return fmt::format("{:g}", arg.real);
    case ArgKind::kBool:
      return arg.flag ? "true" : "false";
    case ArgKind::kIntArray:
      return ListOf(arg.ints.values);
    case ArgKind::kFloatArray:
      return ListOf(arg.floats.values);
    case ArgKind::kBoolArray:
      return ListOf(arg.bools.values);
    case ArgKind::kString:
      return arg.text;
    default:
      return "";
  }
}

// An oracle's work is counted on its thread.
class Budget {
 public:
  explicit Budget(int64_t steps) : before_(harness::oracle_steps_left) {
    harness::oracle_steps_left = steps;
  }
  ~Budget() { harness::oracle_steps_left = before_; }
  Budget(const Budget&) = delete;
  Budget& operator=(const Budget&) = delete;

 private:
  const int64_t before_;
};

constexpr char kTooLarge[] = "too large";

}  // namespace

Check::Check(const watch::OperatorRun& run, const Launch& launch, int64_t most)
    : run_(run), subject_(SubjectOf(run.op, run.name)), most_(most), host_(*run.op, *run.call) {
  line_.op = run.name;
  line_.call = Describe();
  line_.caller = run.caller;
  line_.reason = WhyNot(most);
  host_.inputs.resize(run.call->args.size());
  host_.outputs.resize(run.call->args.size());
  if (line_.reason.empty()) ReadInputs(launch);
}

// A call without a reference is still looked through for NaN and infinities.
std::string Check::WhyNot(int64_t most) const {
  if (run_.is_captured && run_.backend->launches()) return "captured";
  if (IsKnownAsTooLarge(line_)) return kTooLarge;
  int64_t elements = 0;
  for (const TensorUse& use : run_.tensors) {
    if (use.is_touched && !IsDecodable(use.tensor.dtype))
      return fmt::format("no reference for {}", Name(use.tensor.dtype));
    if (use.is_touched && IsPrivate(use.tensor.format))
      return fmt::format("no reference for {}", Name(use.tensor.format));
    const int64_t count = use.tensor.numel();
    if (__builtin_add_overflow(elements, count, &elements)) return kTooLarge;
    Extent extent;
    if (!GetExtent(use.tensor, &extent) || extent.end - extent.begin > most) return kTooLarge;
  }
  return elements > most / kLeastStepsPerElement ? kTooLarge : "";
}

// Whether its elements may be looked at. The operator may leave a tensor alone because it is exactly another one (an output that
// starts from it); else nobody says that what only its description matters of has memory at all.
bool Check::HasMemory(const TensorUse& use) const {
  if (!use.tensor.data || use.tensor.empty() || !IsDecodable(use.tensor.dtype)) return false;
  return std::any_of(run_.tensors.begin(), run_.tensors.end(), [&](const TensorUse& touched) {
    return touched.is_touched && IsWithin(use.tensor, touched.tensor);
  });
}

Check::Bytes Check::Read(const TensorUse& use, const Launch& launch) const {
  Extent extent;
  GetExtent(use.tensor, &extent);
  const int64_t size = static_cast<int64_t>(SizeOf(use.tensor.dtype));
  const unsigned char* const begin =
      static_cast<const unsigned char*>(use.tensor.data) + extent.begin * size;
  if (run_.backend->memory().HostCanAccess() && !run_.backend->launches())
    return Gather(use.tensor, begin, extent.begin);
  // Behind the work of the stream; a copy to memory that is not pinned has ended when the call returns.
  Bytes copy(static_cast<size_t>((extent.end - extent.begin) * size));
  const Status status =
      run_.backend->memory().Copy({.to = copy.data(), .from = begin, .width = copy.size()}, launch);
  if (!status.ok()) throw std::runtime_error("the memory cannot be read");
  return Gather(use.tensor, copy.data(), extent.begin);
}

void Check::AddSpecials(Number number) {
  seen_.nan = seen_.nan || IsNan(number);
  seen_.infinity = seen_.infinity || IsInfinite(number);
}

void Check::AddSpecialsOfAttributes() {
  for (const contract::ArgSpec& arg : run_.call->args) {
    const auto add = [&](const Scalar& scalar) {
      if (HasSpecials(scalar.dtype)) AddSpecials(harness::DecodeNumber(scalar.dtype, scalar.bytes));
    };
    add(arg.scalar);
    for (const Scalar& scalar : arg.scalars) add(scalar);
    AddSpecials(static_cast<long double>(arg.real));
    for (const float value : arg.floats.values) AddSpecials(static_cast<long double>(value));
  }
}

void Check::ReadInputs(const Launch& launch) {
  AddSpecialsOfAttributes();
  for (const TensorUse& use : run_.tensors) {
    Host tensor{use.tensor.dtype, use.tensor.dims, {}};
    if (use.is_read && HasMemory(use)) {
      const Bytes elements = Read(use, launch);
      const size_t size = SizeOf(tensor.dtype);
      for (size_t at = 0; at < elements.size(); at += size) {
        tensor.values.push_back(harness::DecodeNumber(tensor.dtype, &elements[at]));
        AddSpecials(tensor.values.back());
      }
    } else if (use.is_read && IsDecodable(use.tensor.dtype)) {
      tensor.values.assign(static_cast<size_t>(use.tensor.numel()),
                           1);  // the operator does not ask either
    }
    const auto put = [&](std::vector<std::vector<Host>>& to) {
      to[use.arg].resize(static_cast<size_t>(use.item) + 1);
      to[use.arg][use.item] = tensor;
    };
    if (use.is_read) put(host_.inputs);
    tensor.values.resize(static_cast<size_t>(
        use.tensor.numel()));  // outputs start from what they held if that is read
    if (use.is_written) put(host_.outputs);
  }
}

LogLine Check::Finish(const Launch& launch) {
  if (line_.reason.empty()) {
    std::vector<Bytes> outputs;
    for (const TensorUse& use : run_.tensors)
      outputs.push_back(use.is_written && HasMemory(use) ? Read(use, launch) : Bytes());
    try {
      CompareAll(outputs);
    } catch (const harness::TooMuchWork&) {
      line_.reason = kTooLarge;
      KnowAsTooLarge(line_);
    } catch (const std::exception& e) {
      line_.reason = fmt::format("the reference does not take this call: {}", e.what());
    }
    for (size_t i = 0; i < outputs.size(); ++i) FindNewSpecials(run_.tensors[i], outputs[i]);
  }
  line_.outcome = !line_.wrong.empty()   ? Outcome::kWrong
                  : line_.reason.empty() ? Outcome::kOk
                                         : Outcome::kUnchecked;
  return line_;
}

void Check::CompareAll(std::span<const Bytes> outputs) {
  if (!subject_) {
    line_.reason = "no reference";
    return;
  }
  if (std::all_of(outputs.begin(), outputs.end(),
                  [](const Bytes& output) { return output.empty(); }))
    return;
  const Budget budget(most_);
  if (subject_->limits.check) {
    for (size_t i = 0; i < outputs.size(); ++i) {
      if (outputs[i].empty()) continue;
      Host& out = host_.outputs[run_.tensors[i].arg][run_.tensors[i].item];
      for (int64_t k = 0; k < out.size(); ++k)
        out[k] = harness::DecodeNumber(out.dtype, &outputs[i][k * SizeOf(out.dtype)]);
    }
    line_.wrong = subject_->limits.check(host_);
    return;
  }
  subject_->oracle(host_);
  for (size_t i = 0; i < outputs.size(); ++i) {
    if (!outputs[i].empty()) CompareOutput(run_.tensors[i], outputs[i]);
  }
}

void Check::CompareOutput(const TensorUse& use, const Bytes& elements) {
  const Host& expected = host_.outputs[use.arg][use.item];
  const harness::Comparison result = harness::Compare(expected, elements, subject_->limits);
  if (!result.problem.empty()) {
    line_.reason = fmt::format("the reference does not take this call: {}", result.problem);
    return;
  }
  if (result.largest >= 0 && (line_.where.empty() || result.error.ulps > line_.ulps)) {
    line_.ulps = static_cast<double>(result.error.ulps);
    line_.where = Place(use, result.largest);
  }
  line_.of_bound = std::fmax(line_.of_bound, static_cast<double>(result.of_bound));
  if (result.wrong == 0 || !line_.wrong.empty()) return;
  const int64_t i = result.first_wrong;
  const Number got = harness::DecodeNumber(expected.dtype, &elements[i * SizeOf(expected.dtype)]);
  line_.wrong = fmt::format(
      "{} of {} elements, {}: {}", result.wrong, result.elements, Place(use, i),
      harness::Describe(expected, i, got, harness::ErrorOf(expected, i, got, subject_->limits)));
}

void Check::FindNewSpecials(const TensorUse& use, const Bytes& elements) {
  if (elements.empty() || !HasSpecials(use.tensor.dtype) || seen_.nan) return;
  const size_t size = SizeOf(use.tensor.dtype);
  // What the oracle left out is left to what the memory held before.
  const bool compared = line_.reason.empty() && !subject_->limits.check;
  const int64_t count = compared ? host_.outputs[use.arg][use.item].size()
                                 : static_cast<int64_t>(elements.size() / size);
  for (int64_t i = 0; i < count && static_cast<size_t>(i) * size < elements.size(); ++i) {
    const Number x = harness::DecodeNumber(use.tensor.dtype, &elements[i * size]);
    const bool is_nan = IsNan(x);
    if (!is_nan && (!IsInfinite(x) || seen_.infinity)) continue;
    if (!line_.appears.empty()) line_.appears += ", ";
    line_.appears += fmt::format("{} at {}", is_nan ? "NaN" : "infinity", Place(use, i));
    return;
  }
}

// Tensors first, then what is no tensor: "self FLOAT[2, 3], out FLOAT[2], dim=1, keepdim=true".
std::string Check::Describe() const {
  std::string text;
  const auto add = [&](const std::string& one) { text += text.empty() ? one : ", " + one; };
  for (const TensorUse& use : run_.tensors) {
    const std::string item = use.in_list ? fmt::format("[{}]", use.item) : "";
    add(fmt::format("{}{} {}{}", use.name, item, Name(use.tensor.dtype),
                    ToString(use.tensor.dims)));
  }
  const auto args = run_.op->contract.args();
  for (size_t i = 0; i < args.size(); ++i) {
    const std::string value = TextOf(args[i].kind, run_.call->args[i]);
    if (!value.empty() && !run_.call->args[i].null) add(fmt::format("{}={}", args[i].name, value));
  }
  return text;
}

}  // namespace anyacl::verify
