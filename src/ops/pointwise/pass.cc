// SPDX-License-Identifier: Apache-2.0
// Copyright The AnyACL Authors
#include "ops/pointwise/pass.h"

#include <fmt/format.h>

#include <algorithm>
#include <cstdlib>
#include <cstring>
#include <stdexcept>

#include "core/codes.h"
#include "core/scalar.h"
#include "ops/pointwise/formulas.h"
#include "plan/operator.h"

namespace anyacl::pointwise {
namespace {

struct Axis {
  int64_t size;
  int64_t out;
  int64_t in[kMaxInputs];
};

// Wraps: what has no elements may have any dims.
int64_t Times(int64_t a, int64_t b) { return static_cast<int64_t>(static_cast<uint64_t>(a) * static_cast<uint64_t>(b)); }

// Axes of out that have more than one element, those written closest together innermost, merged as far as every operand
// allows. Inputs are already broadcast.
int MergeAxes(std::span<const Operand> inputs, const Operand& out, Axis* axes) {
  int count = 0;
  for (int i = 0; i < out.dims.rank(); ++i) {
    if (out.dims[i] == 1) continue;
    Axis& axis = axes[count++];
    axis = {out.dims[i], out.strides[i], {}};
    for (size_t k = 0; k < inputs.size(); ++k) axis.in[k] = inputs[k].strides[i];
  }
  std::stable_sort(axes, axes + count, [](const Axis& a, const Axis& b) { return std::abs(a.out) > std::abs(b.out); });
  int kept = 0;
  for (int i = 0; i < count; ++i) {
    const Axis axis = axes[i];
    bool merges = kept > 0 && axes[kept - 1].out == Times(axis.out, axis.size);
    for (size_t k = 0; merges && k < inputs.size(); ++k) merges = axes[kept - 1].in[k] == Times(axis.in[k], axis.size);
    if (!merges) {
      axes[kept++] = axis;
      continue;
    }
    const int64_t outer = axes[kept - 1].size;
    axes[kept - 1] = axis;
    axes[kept - 1].size = Times(axis.size, outer);
  }
  if (kept == 0) axes[kept++] = {1, 1, {1, 1, 1, 1}};
  return kept;
}

// Whether a walk along the last axis of `dims` takes every element of the operand from another line of memory, while some other axis
// has them side by side. Of tensors that are small all lines stay in a cache anyway.
bool LiesAcross(const Operand& operand, const Dims& dims) {
  constexpr int64_t kFewElements = 4096, kShortAxis = 16;
  const int last = dims.rank() - 1;
  if (Numel(dims) < kFewElements || dims[last] < kShortAxis) return false;
  const int64_t step = std::abs(operand.strides[last]);
  if (step * static_cast<int64_t>(SizeOf(operand.dtype)) < 64) return false;
  bool across = false;
  for (int axis = 0; axis < last; ++axis) {
    if (dims[axis] == 1) continue;
    if (operand.strides[axis] == 0) return false;  // what is repeated is read again from a cache
    across = across || (dims[axis] >= kShortAxis && std::abs(operand.strides[axis]) < step);
  }
  return across;
}

// A whole number of a floating one, as tensors are converted: 8 and 16 bits through 32, and saturating there.
int64_t WholeOf(const Scalar& s, DType as) {
  if (!IsFloating(s.dtype)) return s.AsInt();
  if (as == DType::kU64 && s.AsDouble() >= 0x1p63) {
    return s.AsDouble() >= 0x1p64 ? -1 : static_cast<int64_t>(static_cast<uint64_t>(s.AsDouble()));
  }
  const bool wide = SizeOf(as) == 8 || as == DType::kU32 || as == DType::kUndefined;
  return wide ? s.AsInt() : std::clamp<int64_t>(s.AsInt(), INT32_MIN, INT32_MAX);
}

float FloatOf(const Scalar& s) {
  if (s.dtype == DType::kU64) return static_cast<float>(static_cast<uint64_t>(s.AsInt()));
  return IsInteger(s.dtype) ? static_cast<float>(s.AsInt()) : static_cast<float>(s.AsDouble());
}

double Rounded(double value, DType as) {
  switch (as) {
    case DType::kF16:
      return static_cast<double>(Half(value));
    case DType::kBF16:
      return static_cast<double>(BFloat16(value));
    case DType::kF32:
      return static_cast<float>(value);
    default:
      return value;
  }
}

int64_t Wrapped(int64_t value, DType as) {
  switch (as) {
    case DType::kI8:
      return static_cast<int8_t>(value);
    case DType::kU8:
      return static_cast<uint8_t>(value);
    case DType::kI16:
      return static_cast<int16_t>(value);
    case DType::kU16:
      return static_cast<uint16_t>(value);
    case DType::kI32:
      return static_cast<int32_t>(value);
    case DType::kU32:
      return static_cast<uint32_t>(value);
    default:
      return value;
  }
}

template <class T>
void Put(unsigned char* bytes, int place, T value) {
  std::memcpy(bytes + place * sizeof(T), &value, sizeof(T));
}

void PutScalar(const ScalarUse& use, Compute compute, unsigned char* bytes) {
  const Scalar& s = use.value;
  switch (compute) {
    case Compute::kFloat:
      return Put(bytes, 0, SizeOf(use.as) == 2 ? static_cast<float>(Rounded(s.AsDouble(), use.as)) : FloatOf(s));
    case Compute::kDouble:
      return Put(bytes, 0, Rounded(s.AsDouble(), use.as));
    case Compute::kInt:
      return Put(bytes, 0, use.as == DType::kBool ? int64_t{s.AsBool()} : Wrapped(WholeOf(s, use.as), use.as));
    case Compute::kUnsigned:
      return Put(bytes, 0, static_cast<uint64_t>(WholeOf(s, DType::kU64)));
    case Compute::kComplex: {
      const std::complex<double> z = s.AsComplex();
      Put(bytes, 0, static_cast<float>(z.real()));
      return Put(bytes, 1, static_cast<float>(z.imag()));
    }
    case Compute::kDoubleComplex: {
      const std::complex<double> z = s.AsComplex();
      Put(bytes, 0, z.real());
      return Put(bytes, 1, z.imag());
    }
  }
}

constexpr int kConstant = -2;  // Operand::index of a ConstantOperand

// Computed in 64 bits, but of fewer.
bool IsNarrowWhole(DType t) {
  return t == DType::kBool || (IsInteger(t) && SizeOf(t) < 8);
}

int InputsOf(Formula formula) {
  static constexpr uint8_t kInputs[] = {
#define ANYACL_FORMULA(name, inputs, types) inputs,
#include "ops/pointwise/formulas.inc"
#undef ANYACL_FORMULA
  };
  return kInputs[static_cast<int>(formula)];
}

// Whether every number of `from` is one of `to`, or `to` is all of its compute type.
bool IsExact(DType from, DType to) {
  using enum DType;
  if (from == to || from == kBool) return true;
  switch (to) {
    case kF16:
    case kBF16:
    case kI16:
      return from == kI8 || from == kU8;
    case kC32:
      return from == kI8 || from == kU8 || from == kF16;
    case kI32:
      return from == kI8 || from == kU8 || from == kI16 || from == kU16;
    case kU32:
      return from == kU8 || from == kU16;
    case kU16:
      return from == kU8;
    case kI8:
    case kU8:
      return false;
    default:
      return true;
  }
}

}  // namespace

Operand ConstantOperand(int i) {
  Operand operand;
  operand.index = kConstant;
  operand.offset = i;
  return operand;
}

bool IsConstant(const Operand& operand) { return operand.index == kConstant; }

Operand BroadcastTo(Operand operand, const Dims& dims) {
  const int missing = dims.rank() - operand.dims.rank();
  Dims strides;
  for (int i = 0; i < dims.rank(); ++i) {
    const bool repeated = i < missing || (operand.dims[i - missing] == 1 && dims[i] != 1);
    strides.push_back(repeated ? 0 : operand.strides[i - missing]);
  }
  operand.dims = dims;
  operand.strides = strides;
  return operand;
}

Status AddPass(PlanBuilder& plan, Formula formula, DType computed, std::span<const Operand> inputs, const Operand& out,
               std::span<const ScalarUse> scalars, PassOptions options) {
  if (static_cast<int>(inputs.size()) != InputsOf(formula)) {
    throw std::logic_error(fmt::format("a formula of {} inputs is given {}", InputsOf(formula), inputs.size()));
  }
  if (Numel(out.dims) == 0) return {};
  Operand operands[kMaxInputs];
  unsigned constants = 0;
  for (size_t k = 0; k < inputs.size(); ++k) {
    operands[k] = inputs[k];
    if (IsConstant(inputs[k])) {
      constants |= 1u << k;
      operands[k].dims = Dims();
      operands[k].dtype = computed;
    }
    operands[k] = BroadcastTo(operands[k], out.dims);
    if (IsConstant(inputs[k]) || !out.row_major() || !LiesAcross(operands[k], out.dims)) continue;
    const Operand turned = plan.ScratchOperand("turned input", operands[k].dtype, out.dims);
    ANYACL_RETURN_IF_ERROR(AddCopy(plan, operands[k], turned));
    operands[k] = turned;
  }
  Axis axes[kMaxRank];
  const int count = MergeAxes({operands, inputs.size()}, out, axes);
  if (count > kMaxWalkAxes) {
    return Status(code::kInvalid, fmt::format("{}: tensors whose strides leave more than {} separate axes are not supported, got {}",
                                              plan.op().contract.op(), kMaxWalkAxes, count));
  }
  auto& params = plan.MakeParams<Params>();
  params.formula = formula;
  params.computed = computed;
  params.compute = ComputeOf(computed);
  params.count = Numel(out.dims);
  params.inputs = static_cast<uint8_t>(inputs.size());
  params.axes = static_cast<uint8_t>(count);
  params.constants = static_cast<uint8_t>(constants);
  const bool narrow = IsNarrowWhole(computed) || SizeOf(computed) == 2 || computed == DType::kC32;
  const bool wraps = formula != Formula::kCopy && IsNarrowWhole(computed);
  params.cut_result = out.dtype != computed && narrow && (wraps || options.cut_result);
  for (int i = 0; i < count; ++i) {
    params.dims[i] = axes[i].size;
    params.out_strides[i] = axes[i].out;
    for (size_t k = 0; k < inputs.size(); ++k) params.in_strides[k][i] = axes[i].in[k];
  }
  for (size_t k = 0; k < inputs.size(); ++k) {
    params.in_types[k] = operands[k].dtype;
    if (constants >> k & 1) {
      params.constant_of[k] = static_cast<uint8_t>(inputs[k].offset);
      continue;
    }
    if (!(options.keep_inputs >> k & 1) && !IsExact(inputs[k].dtype, computed)) {
      params.cut_inputs |= static_cast<uint8_t>(1u << k);
    }
    plan.Bind(operands[k], params.in[k]);
  }
  params.out_type = out.dtype;
  plan.Bind(out, params.out);
  for (size_t i = 0; i < scalars.size(); ++i) PutScalar(scalars[i], params.compute, params.scalars[i]);
  return plan.ChooseKernel("pointwise");
}

// Equal dtypes: bytes are moved as they are, NaN payloads and all.
Status AddCopy(PlanBuilder& plan, const Operand& from, const Operand& to) {
  if (from.dtype != to.dtype) return AddPass(plan, Formula::kCopy, from.dtype, {&from, 1}, to);
  if (Numel(to.dims) == 0) return {};
  auto& params = plan.MakeParams<CopyParams>();
  const Operand source = BroadcastTo(from, to.dims);
  params.copy.dims = to.dims;
  params.copy.from_strides = source.strides;
  params.copy.to_strides = to.strides;
  params.copy.element_size = static_cast<int>(SizeOf(to.dtype));
  plan.Bind(source, params.copy.from);
  plan.Bind(to, params.copy.to);
  return plan.ChooseKernel("copy");
}

Status DenseInput(PlanBuilder& plan, int arg, int item, DType dtype, Operand* operand) {
  *operand = plan.TensorOperand(arg, item);
  if (operand->dtype == dtype && operand->row_major()) return {};
  const Operand tensor = *operand;
  *operand = plan.ScratchOperand("converted input", dtype, tensor.dims);
  return AddCopy(plan, tensor, *operand);
}

Operand DenseOutput(PlanBuilder& plan, int arg, int item, DType dtype) {
  const Operand tensor = plan.TensorOperand(arg, item);
  if (tensor.dtype == dtype && tensor.row_major() && !plan.Overlaps(tensor, /*exact_too=*/true)) return tensor;
  return plan.ScratchOperand("output before conversion", dtype, tensor.dims);
}

Status FinishOutput(PlanBuilder& plan, int arg, int item, const Operand& operand) {
  if (operand.index >= 0) return {};
  return AddCopy(plan, operand, plan.TensorOperand(arg, item));
}

}  // namespace anyacl::pointwise
