// SPDX-License-Identifier: Apache-2.0
// Copyright The AnyACL Authors
#include "core/dtype.h"

namespace anyacl {
namespace {

struct DTypeRow {
  DType dtype;
  const char* name;
  size_t size;
};

// 4-bit and 1-bit types report one byte, the 6- and 4-bit floats eight: that is what the original's
// size function answers, and callers allocate by it.
constexpr DTypeRow kDTypes[] = {
    {DType::kUndefined, "DT_UNDEFINED", 0},
    {DType::kF32, "FLOAT", 4},
    {DType::kF16, "FLOAT16", 2},
    {DType::kI8, "INT8", 1},
    {DType::kI32, "INT32", 4},
    {DType::kU8, "UINT8", 1},
    {DType::kI16, "INT16", 2},
    {DType::kU16, "UINT16", 2},
    {DType::kU32, "UINT32", 4},
    {DType::kI64, "INT64", 8},
    {DType::kU64, "UINT64", 8},
    {DType::kF64, "DOUBLE", 8},
    {DType::kBool, "BOOL", 1},
    {DType::kString, "STRING", 0},
    {DType::kC64, "COMPLEX64", 8},
    {DType::kC128, "COMPLEX128", 16},
    {DType::kBF16, "BF16", 2},
    {DType::kI4, "INT4", 1},
    {DType::kU1, "UINT1", 1},
    {DType::kC32, "COMPLEX32", 4},
    {DType::kHiF8, "HIFLOAT8", 1},
    {DType::kF8E5M2, "FLOAT8_E5M2", 1},
    {DType::kF8E4M3FN, "FLOAT8_E4M3FN", 1},
    {DType::kF8E8M0, "FLOAT8_E8M0", 1},
    {DType::kF6E3M2, "FLOAT6_E3M2", 8},
    {DType::kF6E2M3, "FLOAT6_E2M3", 8},
    {DType::kF4E2M1, "FLOAT4_E2M1", 8},
    {DType::kF4E1M2, "FLOAT4_E1M2", 8},
};

const DTypeRow* Find(DType dtype) {
  for (const DTypeRow& row : kDTypes) {
    if (row.dtype == dtype) return &row;
  }
  return nullptr;
}

struct FormatRow {
  Format format;
  const char* name;
  bool is_private;
};

constexpr FormatRow kFormats[] = {
    {Format::kUndefined, "UNDEFINED", false},
    {Format::kNCHW, "NCHW", false},
    {Format::kNHWC, "NHWC", false},
    {Format::kND, "ND", false},
    {Format::kNC1HWC0, "NC1HWC0", true},
    {Format::kFractalZ, "FRACTAL_Z", true},
    {Format::kNC1HWC0C04, "NC1HWC0_C04", true},
    {Format::kHWCN, "HWCN", false},
    {Format::kNDHWC, "NDHWC", false},
    {Format::kFractalNZ, "FRACTAL_NZ", true},
    {Format::kNCDHW, "NCDHW", false},
    {Format::kNDC1HWC0, "NDC1HWC0", true},
    {Format::kFractalZ3D, "FRACTAL_Z_3D", true},
    {Format::kNC, "NC", false},
    {Format::kNCL, "NCL", false},
    {Format::kFractalNZC0_16, "FRACTAL_NZ_C0_16", true},
    {Format::kFractalNZC0_32, "FRACTAL_NZ_C0_32", true},
    {Format::kFractalNZC0_2, "FRACTAL_NZ_C0_2", true},
    {Format::kFractalNZC0_4, "FRACTAL_NZ_C0_4", true},
    {Format::kFractalNZC0_8, "FRACTAL_NZ_C0_8", true},
};

const FormatRow* Find(Format format) {
  for (const FormatRow& row : kFormats) {
    if (row.format == format) return &row;
  }
  return nullptr;
}

}  // namespace

bool ConvertsTo(DType from, DType to) {
  const auto known = [](DType t) {
    return IsFloating(t) || IsInteger(t) || IsComplex(t) || t == DType::kBool;
  };
  if (!known(from) || !known(to)) return false;
  if (from == to) return true;
  if (to == DType::kBool) return false;
  if (IsComplex(from)) return IsComplex(to);
  if (IsFloating(from)) return !IsInteger(to);
  return true;  // integers and BOOL convert to everything but BOOL
}

std::string Name(DType dtype) {
  const DTypeRow* row = Find(dtype);
  return row ? row->name : "dtype " + std::to_string(static_cast<int32_t>(dtype));
}

std::string Name(Format format) {
  const FormatRow* row = Find(format);
  return row ? row->name : "format " + std::to_string(static_cast<int32_t>(format));
}

size_t internal::SizeOfOther(DType dtype) {
  const DTypeRow* row = Find(dtype);
  return row ? row->size : 0;
}

bool IsPrivate(Format format) {
  const FormatRow* row = Find(format);
  return row && row->is_private;
}

std::vector<DType> DTypeSet::List() const {
  std::vector<DType> list;
  for (int number = 0; number < 64; ++number) {
    if (bits_ >> number & 1) list.push_back(static_cast<DType>(number));
  }
  return list;
}

}  // namespace anyacl
