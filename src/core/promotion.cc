// SPDX-License-Identifier: Apache-2.0
// Copyright The AnyACL Authors
#include "core/promotion.h"

#include <algorithm>

namespace anyacl {
namespace {

enum class Category { kBool, kInteger, kFloating, kComplex, kOther };

Category CategoryOf(DType t) {
  if (t == DType::kBool) return Category::kBool;
  if (IsInteger(t)) return Category::kInteger;
  if (IsFloating(t)) return Category::kFloating;
  return IsComplex(t) || t == DType::kC32 ? Category::kComplex : Category::kOther;
}

constexpr DTypeSet kLargeUnsigned = {DType::kU16, DType::kU32, DType::kU64};

DType PromoteIntegers(DType a, DType b) {
  if (kLargeUnsigned.Has(a) || kLargeUnsigned.Has(b)) return DType::kUndefined;
  if (SizeOf(a) == SizeOf(b)) return DType::kI16;  // UINT8 with INT8: the first type that holds both
  return SizeOf(a) > SizeOf(b) ? a : b;
}

DType PromoteFloating(DType a, DType b) {
  if (a == DType::kF64 || b == DType::kF64) return DType::kF64;
  return DType::kF32;  // of two different types of at most 32 bits
}

// Of a complex type with a floating or complex one.
DType PromoteComplex(DType a, DType b) {
  const auto bytes = [](DType t) {  // of the real part
    if (t == DType::kBF16) return size_t{4};
    return IsFloating(t) ? SizeOf(t) : SizeOf(t) / 2;
  };
  switch (std::max(bytes(a), bytes(b))) {
    case 2:
      return DType::kC32;
    case 4:
      return DType::kC64;
    default:
      return DType::kC128;
  }
}

DType ComplexOf(DType floating) {
  if (floating == DType::kF64) return DType::kC128;
  return floating == DType::kF16 ? DType::kC32 : DType::kC64;
}

}  // namespace

DType Promote(DType a, DType b) {
  Category low = CategoryOf(a), high = CategoryOf(b);
  if (low > high) {
    std::swap(a, b);
    std::swap(low, high);
  }
  if (high == Category::kOther) return DType::kUndefined;
  if (a == b) return a;
  if (kLargeUnsigned.Has(a)) {  // PyTorch lets them meet floating types; the table has no answer for the rest
    return high == Category::kFloating ? b : DType::kUndefined;
  }
  if (low == high) {
    if (high == Category::kInteger) return PromoteIntegers(a, b);
    return high == Category::kFloating ? PromoteFloating(a, b) : PromoteComplex(a, b);
  }
  if (high == Category::kComplex && low == Category::kFloating) return PromoteComplex(a, b);
  return kLargeUnsigned.Has(b) ? DType::kUndefined : b;
}

DType PromoteZeroDim(DType tensor, DType zero_dim) {
  const Category t = CategoryOf(tensor), z = CategoryOf(zero_dim);
  if (t == Category::kOther || z == Category::kOther) return DType::kUndefined;
  if (z <= t) return tensor;
  if (t == Category::kFloating) return ComplexOf(tensor);
  return Promote(tensor, zero_dim);
}

DType PromoteScalar(DType tensor, DType scalar, DType out) {
  const Category t = CategoryOf(tensor), s = CategoryOf(scalar);
  if (t == Category::kOther || s == Category::kOther) return DType::kUndefined;
  if (t == Category::kComplex) return tensor;
  if (s == Category::kComplex) return tensor == DType::kF64 || out == DType::kC128 ? DType::kC128 : DType::kC64;
  if (t == Category::kFloating) return tensor;
  if (s == Category::kFloating) return out == DType::kF64 || out == DType::kC128 ? DType::kF64 : DType::kF32;
  if (t == Category::kInteger) return tensor;
  return kLargeUnsigned.Has(scalar) ? DType::kUndefined : scalar;
}

}  // namespace anyacl
