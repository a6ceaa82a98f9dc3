// SPDX-License-Identifier: Apache-2.0
// Copyright The AnyACL Authors
#ifndef ANYACL_CORE_DTYPE_H_
#define ANYACL_CORE_DTYPE_H_

#include <cstddef>
#include <cstdint>
#include <initializer_list>
#include <string>
#include <vector>

namespace anyacl {

// Numbers are those of aclDataType, so a handle's type converts by a cast.
enum class DType : int32_t {
  kUndefined = -1,
  kF32 = 0,
  kF16 = 1,
  kI8 = 2,
  kI32 = 3,
  kU8 = 4,
  kI16 = 6,
  kU16 = 7,
  kU32 = 8,
  kI64 = 9,
  kU64 = 10,
  kF64 = 11,
  kBool = 12,
  kString = 13,
  kC64 = 16,
  kC128 = 17,
  kBF16 = 27,
  kI4 = 29,
  kU1 = 30,
  kC32 = 33,
  kHiF8 = 34,
  kF8E5M2 = 35,
  kF8E4M3FN = 36,
  kF8E8M0 = 37,
  kF6E3M2 = 38,
  kF6E2M3 = 39,
  kF4E2M1 = 40,
  kF4E1M2 = 41,
};

// Numbers are those of aclFormat.
enum class Format : int32_t {
  kUndefined = -1,
  kNCHW = 0,
  kNHWC = 1,
  kND = 2,
  kNC1HWC0 = 3,
  kFractalZ = 4,
  kNC1HWC0C04 = 12,
  kHWCN = 16,
  kNDHWC = 27,
  kFractalNZ = 29,
  kNCDHW = 30,
  kNDC1HWC0 = 32,
  kFractalZ3D = 33,
  kNC = 35,
  kNCL = 47,
  kFractalNZC0_16 = 50,
  kFractalNZC0_32 = 51,
  kFractalNZC0_2 = 52,
  kFractalNZC0_4 = 53,
  kFractalNZC0_8 = 54,
};

// "FLOAT16", "BF16", ...: the names the operator documents use; "dtype 99" for an unknown number.
std::string Name(DType dtype);
std::string Name(Format format);

namespace internal {
size_t SizeOfOther(DType dtype);
}

// Bytes of one element in memory as aclDataTypeSize reports them; 0 for UNDEFINED, STRING and unknown.
inline size_t SizeOf(DType dtype) {
  switch (dtype) {  // the operators' types first: this runs several times in every call
    case DType::kF32:
      return 4;
    case DType::kF16:
    case DType::kBF16:
      return 2;
    default:
      return internal::SizeOfOther(dtype);
  }
}

// A set of dtypes, one bit each; dtypes beyond the enumeration are in no set.
class DTypeSet {
 public:
  constexpr DTypeSet() = default;
  constexpr DTypeSet(std::initializer_list<DType> list) {
    for (DType t : list) Add(t);
  }
  constexpr void Add(DType t) { bits_ |= Bit(t); }
  constexpr void Remove(DType t) { bits_ &= ~Bit(t); }
  constexpr bool Has(DType t) const { return (bits_ & Bit(t)) != 0; }
  constexpr bool empty() const { return bits_ == 0; }
  friend constexpr DTypeSet operator|(DTypeSet a, DTypeSet b) {
    a.bits_ |= b.bits_;
    return a;
  }
  friend constexpr DTypeSet operator&(DTypeSet a, DTypeSet b) {
    a.bits_ &= b.bits_;
    return a;
  }
  // Its members, by number.
  std::vector<DType> List() const;

 private:
  static constexpr uint64_t Bit(DType t) {
    const uint32_t number = static_cast<uint32_t>(t);
    return number < 64 ? uint64_t{1} << number : 0;
  }
  uint64_t bits_ = 0;
};

inline constexpr DTypeSet kFloatingTypes = {DType::kF16, DType::kBF16, DType::kF32, DType::kF64};
inline constexpr DTypeSet kIntegerTypes = {DType::kI8,  DType::kU8,  DType::kI16, DType::kU16,
                                           DType::kI32, DType::kU32, DType::kI64, DType::kU64};

// The sets of the operator pages.
namespace types {
inline constexpr DTypeSet kFloat3 = {DType::kF32, DType::kF16, DType::kBF16};
inline constexpr DTypeSet kDouble = {DType::kF64};
inline constexpr DTypeSet kInt5 = {DType::kI8, DType::kI16, DType::kI32, DType::kI64, DType::kU8};
inline constexpr DTypeSet kBool = {DType::kBool};
inline constexpr DTypeSet kInt5Bool = kInt5 | kBool;
inline constexpr DTypeSet kComplex = {DType::kC64, DType::kC128};
inline constexpr DTypeSet kInt8 = kIntegerTypes;
}  // namespace types

constexpr bool IsFloating(DType dtype) { return kFloatingTypes.Has(dtype); }
constexpr bool IsInteger(DType dtype) { return kIntegerTypes.Has(dtype); }
constexpr bool IsComplex(DType dtype) { return dtype == DType::kC64 || dtype == DType::kC128; }
bool IsPrivate(Format format);

// The documents' "convertible" relation, restricted to the dtypes we can convert.
bool ConvertsTo(DType from, DType to);

}  // namespace anyacl

#endif  // ANYACL_CORE_DTYPE_H_
