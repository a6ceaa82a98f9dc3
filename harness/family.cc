// SPDX-License-Identifier: Apache-2.0
// Copyright The AnyACL Authors
#include "harness/family.h"

#include <fmt/format.h>

#include <algorithm>
#include <cmath>
#include <cstring>
#include <limits>
#include <memory>
#include <numeric>
#include <optional>
#include <stdexcept>

#include "acl/acl.h"
#include "aclnn/aclnn_base.h"
#include "harness/call.h"
#include "harness/cases.h"
#include "harness/session.h"

namespace anyacl::harness {

// --- numbers -------------------------------------------------------------------------------------

namespace {

Real OneHostile(DType dtype, uint64_t choice, std::mt19937_64& random) {
  if (dtype == DType::kBool) return static_cast<Real>(choice & 1);
  if (IsInteger(dtype)) {
    const bool is_signed = dtype == DType::kI8 || dtype == DType::kI16 || dtype == DType::kI32 || dtype == DType::kI64;
    const Real range = std::ldexp(Real{1}, static_cast<int>(8 * SizeOf(dtype)));
    const Real high = is_signed ? range / 2 - 1 : range - 1, low = is_signed ? -range / 2 : 0;
    const Real pool[] = {low, high, 0, 1, low + 1, high - 1, is_signed ? Real{-1} : high / 2, 7};
    return pool[choice % std::size(pool)];
  }
  constexpr Real kInfinity = std::numeric_limits<Real>::infinity();
  const Real pool[] = {std::numeric_limits<Real>::quiet_NaN(), kInfinity, -kInfinity, Real{0}, -Real{0},
                       UlpOf(dtype, 0), -UlpOf(dtype, 0) * 3, Real{65504}, Real{1}, Real{-1}};
  if (choice % 16 < std::size(pool)) return pool[choice % 16];
  return std::uniform_real_distribution<double>(-2, 2)(random);
}

Real OneOf(const Values& values, DType dtype, std::mt19937_64& random) {
  switch (values.kind) {
    case Values::kBool:
      return static_cast<Real>(random() & 1);
    case Values::kWhole:
      return values.low + static_cast<Real>(random() % static_cast<uint64_t>(values.high - values.low + 1));
    case Values::kHostile:
      return OneHostile(dtype, random(), random);
    default:
      break;
  }
  if (dtype == DType::kBool) return static_cast<Real>(random() & 1);
  const Real x = values.low + (values.high - values.low) * (static_cast<Real>(random() >> 11) * 0x1p-53L);
  if (!IsInteger(dtype)) return x;
  // Whole numbers of the range, a few more where it is narrow: products and sums must not all be 0.
  const Real wide = std::max<Real>(values.high - values.low, 1);
  return std::round(wide < 16 && values.low < 0 ? x * 4 : x);
}

std::vector<Number> Generate(const Values& values, const Tensor& t, std::mt19937_64& random) {
  const int64_t count = t.numel();
  std::vector<Number> numbers(count);
  if (values.kind == Values::kGiven) {
    for (int64_t i = 0; i < count; ++i) numbers[i] = values.given.at(i % values.given.size());
  } else if (values.kind == Values::kPermutation) {
    std::vector<int64_t> order(count);
    std::iota(order.begin(), order.end(), int64_t{0});
    std::shuffle(order.begin(), order.end(), random);
    for (int64_t i = 0; i < count; ++i) numbers[i] = static_cast<Real>(order[i]);
  } else {
    const bool is_complex = IsComplex(t.dtype) || t.dtype == DType::kC32;
    for (Number& number : numbers) {
      const Real re = OneOf(values, t.dtype, random);
      number = Number(re, is_complex ? OneOf(values, t.dtype, random) : 0);
    }
  }
  const bool is_unsigned = t.dtype == DType::kU8 || t.dtype == DType::kU16 || t.dtype == DType::kU32 || t.dtype == DType::kU64;
  for (Number& number : numbers) {
    if (is_unsigned && values.kind == Values::kUniform) number = std::fabs(number.real());
    number = Rounded(t.dtype, number);
  }
  return numbers;
}

// --- one call ------------------------------------------------------------------------------------

struct TensorState {
  int arg;
  int item;
  Tensor tensor;
  bool is_read;
  bool is_written;
  int memory;  // index of the state whose memory it uses
  std::vector<Number> numbers;
  std::optional<GuardedMemory> cells;
  std::vector<unsigned char> image;
  std::vector<bool> may_change;
  aclTensor* handle = nullptr;
};

class LiveCall {
 public:
  LiveCall(const Operator& op, const TestCall& call, const RunOptions& options);
  // Descriptions alone: phase 1 looks at no memory.
  LiveCall(const Operator& op, const contract::CallSpec& spec);
  ~LiveCall();

  int32_t PlanOnly(uint64_t* size, void** executor) { return op_.entry->get_workspace_size(raw_.data(), size, executor); }

  int32_t Execute(void* stream, const RunOptions& options);
  std::string CheckMemory() const;
  std::vector<unsigned char> Elements(const TensorState& state) const;

  contract::CallSpec spec;
  std::vector<TensorState> tensors;
  std::vector<bool> strided;

 private:
  void AddTensor(int arg, int item, const Tensor& tensor, const TestCall& call, const RunOptions& options);
  void FillMemory();
  void MakeHandles();

  const Operator& op_;
  std::vector<RawArg> raw_;
  std::vector<void (*)(const void*)> destroy_;
  std::optional<GuardedMemory> workspace_;
  std::mt19937_64 random_;
};

const char* LayoutOf(const TestArg& arg, const contract::Arg& role, const Tensor& t, const RunOptions& options) {
  if (*arg.layout) return arg.layout;
  const bool expandable = !role.is_written() && t.rank() > 0 && t.dims[0] > 1;
  if (std::string_view(options.layout) == "expanded" && !expandable) return "dense";
  return options.layout;
}

LiveCall::LiveCall(const Operator& op, const TestCall& call, const RunOptions& options)
    : op_(op), raw_(call.args.size()), random_(options.seed) {
  for (const TestArg& arg : call.args) spec.args.push_back(arg.spec);
  strided.assign(call.args.size(), false);
  for (int i = 0; i < static_cast<int>(call.args.size()); ++i) {
    const contract::Arg& role = op.contract.args()[i];
    if (spec.args[i].null) continue;
    if (role.is_tensor()) AddTensor(i, 0, spec.args[i].tensor, call, options);
    if (!role.is_tensor_list()) continue;
    for (size_t item = 0; item < spec.args[i].tensors.size(); ++item) {
      AddTensor(i, static_cast<int>(item), spec.args[i].tensors[item], call, options);
    }
  }
  FillMemory();
  MakeHandles();
}

LiveCall::LiveCall(const Operator& op, const contract::CallSpec& call_spec) : spec(call_spec), op_(op), raw_(call_spec.args.size()) {
  for (int i = 0; i < static_cast<int>(spec.args.size()); ++i) {
    const contract::Arg& role = op.contract.args()[i];
    const auto add = [&](int item, const Tensor& tensor) {
      tensors.push_back({i, item, tensor, role.is_read(), role.is_written(), static_cast<int>(tensors.size()), {}, {}, {}, {}});
    };
    if (spec.args[i].null) continue;
    if (role.is_tensor()) add(0, spec.args[i].tensor);
    if (!role.is_tensor_list()) continue;
    for (size_t item = 0; item < spec.args[i].tensors.size(); ++item) add(static_cast<int>(item), spec.args[i].tensors[item]);
  }
  MakeHandles();
}

void LiveCall::AddTensor(int arg, int item, const Tensor& tensor, const TestCall& call, const RunOptions& options) {
  const contract::Arg& role = op_.contract.args()[arg];
  TensorState state{arg, item, tensor, role.is_read(), role.is_written(), static_cast<int>(tensors.size()), {}, {}, {}, {}};
  bool is_shared = false;
  for (const auto& [written, read] : call.same) is_shared = is_shared || written == arg || read == arg;
  const char* layout = LayoutOf(call.args[arg], role, tensor, options);
  if (is_shared && std::string_view(layout) == "expanded") layout = "dense";
  SetLayout(layout, &state.tensor);
  for (const auto& [written, read] : call.same) {
    if (written != arg) continue;
    for (const TensorState& other : tensors) {
      if (other.arg == read && other.item == item) state.memory = other.memory;
    }
    if (state.memory == static_cast<int>(tensors.size())) throw std::invalid_argument("same: the input must come first");
  }
  if (!IsContiguous(state.tensor) || state.tensor.offset != 0) strided[arg] = true;
  spec.args[arg].tensors.empty() ? spec.args[arg].tensor = state.tensor : spec.args[arg].tensors[item] = state.tensor;
  const bool unread = call.args[arg].values.at(item).kind == Values::kUnread;
  if (role.is_read() && !unread && (HasNumbers(tensor.dtype) || tensor.dtype == DType::kC32)) {
    state.numbers = Generate(call.args[arg].values.at(item), tensor, random_);
    const int64_t slice = tensor.rank() > 0 && tensor.dims[0] > 0 ? tensor.numel() / tensor.dims[0] : 0;
    if (std::string_view(layout) == "expanded") {
      for (int64_t i = slice; slice > 0 && i < tensor.numel(); ++i) state.numbers[i] = state.numbers[i % slice];
    }
  }
  tensors.push_back(std::move(state));
}

void LiveCall::FillMemory() {
  for (size_t i = 0; i < tensors.size(); ++i) {
    TensorState& state = tensors[i];
    const Tensor& t = state.tensor;
    const size_t size = SizeOf(t.dtype);
    Extent extent;
    if (!GetExtent(t, &extent)) throw std::invalid_argument("a tensor beyond 63 bits");
    const size_t bytes = t.empty() ? 0 : static_cast<size_t>(extent.end) * size;
    if (state.memory == static_cast<int>(i)) {
      state.cells.emplace(bytes, /*guards=*/true);
      state.image.assign(bytes, GuardedMemory::kPoison);
      state.may_change.assign(bytes, false);
    }
    TensorState& owner = tensors[state.memory];
    if (state.numbers.empty() && !state.is_written) continue;
    const std::vector<int64_t> offsets = ElementOffsets(t);
    for (size_t k = 0; k < offsets.size(); ++k) {
      unsigned char* const element = owner.image.data() + offsets[k] * size;
      if (!state.numbers.empty()) EncodeNumber(t.dtype, state.numbers[k], element);
      if (!state.is_written) continue;
      for (size_t b = 0; b < size; ++b) owner.may_change[offsets[k] * size + b] = true;
    }
  }
  for (TensorState& state : tensors) {
    if (state.cells) state.cells->Write(state.image);
  }
}

template <class T>
const void* Made(T* handle) {
  if (!handle) throw std::runtime_error("a handle could not be created");
  return handle;
}

void LiveCall::MakeHandles() {
  for (TensorState& state : tensors) {
    const Tensor& t = state.tensor;
    state.handle = aclCreateTensor(t.dims.begin(), t.rank(), static_cast<aclDataType>(t.dtype), t.strides.begin(), t.offset,
                                   static_cast<aclFormat>(t.format), t.storage.begin(), t.storage.rank(),
                                   tensors[state.memory].cells && !t.empty() ? tensors[state.memory].cells->payload() : nullptr);
    Made(state.handle);
  }
  destroy_.assign(raw_.size(), nullptr);
  for (size_t i = 0; i < raw_.size(); ++i) {
    const contract::Arg& role = op_.contract.args()[i];
    contract::ArgSpec& arg = spec.args[i];
    RawArg& raw = raw_[i];
    raw.integer = arg.integer;
    raw.real = arg.real;
    raw.flag = arg.flag;
    if (arg.null) continue;
    if (role.is_tensor()) {
      for (const TensorState& state : tensors) {
        if (state.arg == static_cast<int>(i)) raw.handle = state.handle;
      }
    } else if (role.is_tensor_list()) {
      std::vector<const aclTensor*> list;
      for (const TensorState& state : tensors) {
        if (state.arg == static_cast<int>(i)) list.push_back(state.handle);
      }
      raw.handle = Made(aclCreateTensorList(list.data(), list.size()));
      destroy_[i] = [](const void* h) { aclDestroyTensorList(static_cast<const aclTensorList*>(h)); };
    } else if (role.kind == contract::ArgKind::kScalar) {
      raw.handle = Made(aclCreateScalar(arg.scalar.bytes, static_cast<aclDataType>(arg.scalar.dtype)));
      destroy_[i] = [](const void* h) { aclDestroyScalar(static_cast<const aclScalar*>(h)); };
    } else if (role.kind == contract::ArgKind::kScalarList) {
      std::vector<const aclScalar*> list;
      for (Scalar& scalar : arg.scalars) list.push_back(aclCreateScalar(scalar.bytes, static_cast<aclDataType>(scalar.dtype)));
      raw.handle = Made(aclCreateScalarList(list.data(), list.size()));
      destroy_[i] = [](const void* h) { aclDestroyScalarList(static_cast<const aclScalarList*>(h)); };
    } else if (role.kind == contract::ArgKind::kIntArray) {
      raw.handle = Made(aclCreateIntArray(arg.ints.values.data(), arg.ints.values.size()));
      destroy_[i] = [](const void* h) { aclDestroyIntArray(static_cast<const aclIntArray*>(h)); };
    } else if (role.kind == contract::ArgKind::kFloatArray) {
      raw.handle = Made(aclCreateFloatArray(arg.floats.values.data(), arg.floats.values.size()));
      destroy_[i] = [](const void* h) { aclDestroyFloatArray(static_cast<const aclFloatArray*>(h)); };
    } else if (role.kind == contract::ArgKind::kBoolArray) {
      const std::unique_ptr<bool[]> bools(new bool[arg.bools.values.size()]);
      std::copy(arg.bools.values.begin(), arg.bools.values.end(), bools.get());
      raw.handle = Made(aclCreateBoolArray(bools.get(), arg.bools.values.size()));
      destroy_[i] = [](const void* h) { aclDestroyBoolArray(static_cast<const aclBoolArray*>(h)); };
    } else if (role.kind == contract::ArgKind::kString) {
      raw.handle = arg.text.c_str();
    }
  }
}

LiveCall::~LiveCall() {
  for (size_t i = 0; i < raw_.size(); ++i) {
    if (destroy_[i] && raw_[i].handle) destroy_[i](raw_[i].handle);  // a list takes its entries along
  }
  for (const TensorState& state : tensors) {
    if (op_.contract.args()[state.arg].is_tensor()) aclDestroyTensor(state.handle);
  }
}

int32_t LiveCall::Execute(void* stream, const RunOptions& options) {
  const auto inside = [&](auto&& call) {
    if (options.at_border) options.at_border(true);
    const int32_t code = call();
    if (options.at_border) options.at_border(false);
    return code;
  };
  uint64_t size = 0;
  void* executor = nullptr;
  int32_t code = inside([&] { return op_.entry->get_workspace_size(raw_.data(), &size, &executor); });
  if (code != 0) return code;
  if (options.planned) options.planned(executor);
  workspace_.emplace(size, /*guards=*/true);
  void* const workspace = size > 0 ? workspace_->payload() : nullptr;
  code = inside([&] { return op_.entry->run(workspace, size, executor, stream); });
  return code != 0 ? code : inside([&] { return aclrtSynchronizeStream(stream); });
}

std::string LiveCall::CheckMemory() const {
  const std::string hit = workspace_ ? workspace_->CheckGuards() : "";
  if (!hit.empty()) return "workspace: " + hit;
  for (const TensorState& state : tensors) {
    if (!state.cells) continue;
    const char* const name = op_.contract.args()[state.arg].name;
    const std::string guards = state.cells->CheckGuards();
    if (!guards.empty()) return fmt::format("{}: {}", name, guards);
    const std::vector<unsigned char> now = state.cells->Read();
    for (size_t i = 0; i < now.size(); ++i) {
      if (now[i] != state.image[i] && !state.may_change[i]) {
        return fmt::format("{}: byte {} changed, which belongs to no element that may", name, i);
      }
    }
  }
  return "";
}

std::vector<unsigned char> LiveCall::Elements(const TensorState& state) const {
  const std::vector<unsigned char> bytes = tensors[state.memory].cells->Read();
  const size_t size = SizeOf(state.tensor.dtype);
  std::vector<unsigned char> dense;
  for (int64_t offset : ElementOffsets(state.tensor)) {
    dense.insert(dense.end(), bytes.begin() + offset * size, bytes.begin() + (offset + 1) * size);
  }
  return dense;
}

// Empty when the output is as it must be.
std::string Compare(const char* name, int item, const Host& expected, const std::vector<unsigned char>& elements,
                    const Limits& limits) {
  const Comparison comparison = Compare(expected, elements, limits);
  const std::string output = fmt::format("{}[{}]", name, item);
  if (!comparison.problem.empty()) return fmt::format("{}: {}", output, comparison.problem);
  if (comparison.wrong == 0) return "";
  const int64_t i = comparison.first_wrong;
  const Number got = DecodeNumber(expected.dtype, elements.data() + i * SizeOf(expected.dtype));
  return fmt::format("{} {} {}, element {}: {}", output, Name(expected.dtype), ToString(expected.dims), i,
                     Describe(expected, i, got, ErrorOf(expected, i, got, limits)));
}

}  // namespace

Refusal PlanCall(const Operator& op, const contract::CallSpec& spec) {
  LiveCall live(op, spec);
  aclGetRecentErrMsg();  // takes what an earlier call left
  uint64_t size = 1;
  void* executor = &size;
  const int32_t code = live.PlanOnly(&size, &executor);
  if (code == 0) {
    aclDestroyAclOpExecutor(static_cast<aclOpExecutor*>(executor));
    return {};
  }
  const char* const text = aclGetRecentErrMsg();
  return {code, text ? text : "", size == 0 && executor == nullptr};
}

bool SameOutputs(const RunResult& a, const RunResult& b) {
  if (a.outputs == b.outputs) return true;
  if (a.outputs.size() != b.outputs.size() || a.output_types != b.output_types) return false;
  const auto same_part = [](Real x, Real y) { return x == y ? std::signbit(x) == std::signbit(y) : std::isnan(x) && std::isnan(y); };
  for (size_t k = 0; k < a.outputs.size(); ++k) {
    const size_t size = SizeOf(a.output_types[k]);
    if (a.outputs[k].size() != b.outputs[k].size() || size == 0 || !HasNumbers(a.output_types[k])) return false;
    for (size_t at = 0; at + size <= a.outputs[k].size(); at += size) {
      const Number x = DecodeNumber(a.output_types[k], &a.outputs[k][at]), y = DecodeNumber(b.output_types[k], &b.outputs[k][at]);
      if (!same_part(x.real(), y.real()) || !same_part(x.imag(), y.imag())) return false;
    }
  }
  return true;
}

RunResult RunCall(const Operator& op, const Subject& subject, const TestCall& call, void* stream, const RunOptions& options) {
  RunResult result;
  LiveCall live(op, call, options);
  result.strided = live.strided;
  for (const TensorState& state : live.tensors) result.types.push_back({state.arg, state.tensor.dtype});
  HostCall host(op, live.spec);
  host.inputs.resize(call.args.size());
  host.outputs.resize(call.args.size());
  for (const TensorState& state : live.tensors) {
    const Host tensor{state.tensor.dtype, state.tensor.dims, state.numbers, {}, {}};
    if (state.is_read) host.inputs[state.arg].push_back(tensor);
    if (state.is_written) host.outputs[state.arg].push_back(tensor);
    if (state.is_written) host.outputs[state.arg].back().values.resize(state.tensor.numel());
  }
  const int32_t code = live.Execute(stream, options);
  if (code != 0) {
    const char* const text = aclGetRecentErrMsg();
    result.problem = fmt::format("ended with {}: {}", code, text ? text : "");
    return result;
  }
  result.problem = live.CheckMemory();
  if (!result.problem.empty()) return result;
  for (const TensorState& state : live.tensors) {
    if (!state.is_written) continue;
    result.outputs.push_back(live.Elements(state));
    result.output_types.push_back(state.tensor.dtype);
  }
  if (!options.compare) return result;
  if (subject.limits.check) {
    size_t k = 0;
    for (const TensorState& state : live.tensors) {
      if (!state.is_written) continue;
      const std::vector<unsigned char>& elements = result.outputs[k++];
      Host& out = host.outputs[state.arg][state.item];
      for (int64_t i = 0; i < out.size(); ++i) out[i] = DecodeNumber(out.dtype, elements.data() + i * SizeOf(out.dtype));
    }
    result.problem = subject.limits.check(host);
    return result;
  }
  subject.oracle(host);
  size_t k = 0;
  for (const TensorState& state : live.tensors) {
    if (!state.is_written) continue;
    const Host& expected = host.outputs[state.arg][state.item];
    result.problem = Compare(op.contract.args()[state.arg].name, state.item, expected, result.outputs[k++], subject.limits);
    if (!result.problem.empty()) return result;
  }
  return result;
}

}  // namespace anyacl::harness
