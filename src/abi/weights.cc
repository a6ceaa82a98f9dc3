// SPDX-License-Identifier: Apache-2.0
// Copyright The AnyACL Authors
//
// Functions of one phase beside operators that lay weights out anew: how much memory another format needs.
#include <fmt/format.h>

#include <algorithm>

#include "abi/objects.h"
#include "aclnnop/aclnn_npu_format_cast.h"
#include "aclnnop/aclnn_trans_matmul_weight.h"
#include "core/border.h"
#include "core/codes.h"
#include "core/nz_layout.h"
#include "core/product.h"

namespace anyacl {
namespace {

// Keeps an array while its numbers are read.
class PinnedInts {
 public:
  explicit PinnedInts(const aclIntArray* handle) : array_(IntArrays().Pin(handle)) {}
  ~PinnedInts() {
    if (array_) IntArrays().Release(array_);
  }
  PinnedInts(const PinnedInts&) = delete;
  PinnedInts& operator=(const PinnedInts&) = delete;
  const IntArray* get() const { return array_; }

 private:
  IntArray* array_;
};

Status Null(const char* function, const char* argument) {
  return {code::kNull, fmt::format("{}: {} must not be null", function, argument)};
}

// The last two dims rounded up to multiples of 16 and `columns`.
Status WeightSize(const char* function, const aclIntArray* shape, int64_t columns, bool may_be_empty, uint64_t* size) {
  if (!shape) return Null(function, "tensorShape");
  if (!size) return Null(function, "weightTensorSize");
  const PinnedInts pinned(shape);
  if (!pinned.get()) return {code::kInvalid, fmt::format("{}: tensorShape is not a live aclIntArray", function)};
  const std::vector<int64_t>& dims = pinned.get()->values;
  const auto refuse = [&](const char* rule) {
    return Status(code::kInvalid, fmt::format("{}: tensorShape {}, got [{}]", function, rule, fmt::join(dims, ", ")));
  };
  if (dims.size() < 2 || dims.size() > 6) return refuse("must have 2 to 6 entries");
  int64_t product = 1;
  for (size_t i = 0; i < dims.size(); ++i) {
    if (dims[i] < 0 || (dims[i] == 0 && !may_be_empty)) return refuse("must hold positive dims");
    const int64_t unit = i + 1 == dims.size() ? columns : i + 2 == dims.size() ? kNzRows : 1;
    int64_t padded = 0;
    if (__builtin_mul_overflow(NzBlocks(dims[i], unit), unit, &padded) || __builtin_mul_overflow(product, padded, &product)) {
      return refuse("must have fewer than 2^63 elements");
    }
  }
  *size = static_cast<uint64_t>(product);
  return {};
}

constexpr DTypeSet kCastTypes = types::kFloat3 | DTypeSet{DType::kI8, DType::kU8, DType::kI32};

bool IsMatrixFormat(Format format) {
  return format == Format::kND || format == Format::kNCL || format == Format::kNCHW || format == Format::kNCDHW;
}

Status CastShape(const char* function, const Tensor& from, Format to, int additional, Dims* shape) {
  const auto refuse = [&](int32_t code, const std::string& rule) { return Status(code, fmt::format("{}: {}", function, rule)); };
  const Product product = CurrentProduct();
  if (product != Product::kAscend950 && product != Product::kA2 && product != Product::kA3) {
    return refuse(code::kRuntime, "not available on " + std::string(Name(product)));
  }
  if (!kCastTypes.Has(from.dtype)) return refuse(code::kInvalid, "srcTensor must be FLOAT, FLOAT16, BF16, INT8, UINT8 or INT32, got " + Name(from.dtype));
  if (from.format == Format::kFractalNZ && to == Format::kND) {
    *shape = from.dims;
    return {};
  }
  const bool known = IsMatrixFormat(from.format) && to == Format::kFractalNZ && (additional == -1 || additional == static_cast<int>(from.dtype));
  if (!known) {
    return refuse(code::kRuntime, fmt::format("a cast from {} to {} with additionalDtype {} is not supported", Name(from.format), Name(to), additional));
  }
  if (from.rank() < 2 || from.rank() > 6) return refuse(code::kInvalid, "srcTensor must have 2 to 6 dims, got " + ToString(from.dims));
  if (from.empty()) return refuse(product == Product::kAscend950 ? code::kInvalid : code::kRuntime, "srcTensor must not be empty, got " + ToString(from.dims));
  *shape = NzStorage(from.dims, from.dtype);
  return {};
}

}  // namespace
}  // namespace anyacl

using anyacl::Status;

aclnnStatus aclnnCalculateMatmulWeightSize(const aclIntArray* tensorShape, uint64_t* weightTensorSize) {
  return anyacl::AclnnBorder(__func__, [&] { return anyacl::WeightSize("aclnnCalculateMatmulWeightSize", tensorShape, 16, true, weightTensorSize); });
}

aclnnStatus aclnnCalculateMatmulWeightSizeV2(const aclIntArray* tensorShape, aclDataType dataType, uint64_t* weightTensorSize) {
  return anyacl::AclnnBorder(__func__, [&]() -> Status {
    constexpr const char* kName = "aclnnCalculateMatmulWeightSizeV2";
    if (anyacl::CurrentProduct() == anyacl::Product::kTraining) return {anyacl::code::kRuntime, fmt::format("{}: not available on this product", kName)};
    const bool halves = dataType == ACL_FLOAT16 || dataType == ACL_BF16;
    return anyacl::WeightSize(kName, tensorShape, halves ? 16 : 32, false, weightTensorSize);
  });
}

aclnnStatus aclnnNpuFormatCastCalculateSizeAndFormat(const aclTensor* srcTensor, int dstFormat, int additionalDtype, int64_t** dstShape,
                                                     uint64_t* dstShapeSize, int* actualFormat) {
  return anyacl::AclnnBorder(__func__, [&]() -> Status {
    constexpr const char* kName = "aclnnNpuFormatCastCalculateSizeAndFormat";
    if (!srcTensor) return anyacl::Null(kName, "srcTensor");
    if (!dstShape) return anyacl::Null(kName, "dstShape");
    if (!dstShapeSize) return anyacl::Null(kName, "dstShapeSize");
    if (!actualFormat) return anyacl::Null(kName, "actualFormat");
    const anyacl::Tensor* const from = anyacl::Tensors().Get(srcTensor);
    if (!from) return {anyacl::code::kInvalid, fmt::format("{}: srcTensor is not a live aclTensor", kName)};
    anyacl::Dims shape;
    ANYACL_RETURN_IF_ERROR(anyacl::CastShape(kName, *from, static_cast<anyacl::Format>(dstFormat), additionalDtype, &shape));
    *dstShape = new int64_t[shape.rank()];
    std::copy(shape.begin(), shape.end(), *dstShape);
    *dstShapeSize = static_cast<uint64_t>(shape.rank());
    *actualFormat = dstFormat;
    return {};
  });
}
