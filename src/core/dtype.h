// SPDX-License-Identifier: Apache-2.0
// Copyright The AnyACL Authors
#ifndef ANYACL_CORE_DTYPE_H_
#define ANYACL_CORE_DTYPE_H_

#include <cstddef>
#include <cstdint>
#include <string>

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

// Bytes of one element in memory as aclDataTypeSize reports them; 0 for UNDEFINED, STRING and unknown.
size_t SizeOf(DType dtype);

bool IsComplex(DType dtype);
bool IsFloating(DType dtype);  // FLOAT16, BF16, FLOAT, DOUBLE
bool IsInteger(DType dtype);   // INT8 ... UINT64
bool IsPrivate(Format format);

// The documents' "convertible" relation, restricted to the dtypes we can convert.
bool ConvertsTo(DType from, DType to);

}  // namespace anyacl

#endif  // ANYACL_CORE_DTYPE_H_
