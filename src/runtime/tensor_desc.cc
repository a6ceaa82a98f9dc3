// SPDX-License-Identifier: Apache-2.0
// Copyright The AnyACL Authors
//
// The records of acl_base_mdl.h: they describe tensors to the aclop functions and compute nothing.
#include <algorithm>
#include <array>
#include <cstdint>
#include <string>
#include <vector>

#include "acl/acl_base_mdl.h"
#include "core/border.h"
#include "core/dtype.h"
#include "core/tensor.h"
#include "core/handle_table.h"
#include "core/once.h"
#include "runtime/internal.h"

namespace anyacl::runtime {
namespace {

constexpr int64_t kUnknownRankDim = -2;

struct TensorDesc {
  int dtype = ACL_DT_UNDEFINED;  // numbers: the caller may pass any
  int format = ACL_FORMAT_UNDEFINED;
  std::vector<int64_t> dims;
  std::string name;
  int storage_format = ACL_FORMAT_UNDEFINED;
  std::vector<int64_t> storage_dims;
  std::vector<std::array<int64_t, ACL_TENSOR_SHAPE_RANGE_NUM>> dim_ranges;
  std::vector<unsigned char> constant;
  int placement = ACL_MEMTYPE_DEVICE;

  bool has_unknown_rank() const { return dims.size() == 1 && dims[0] == kUnknownRankDim; }
};
using TensorDescs = HandleTable<TensorDesc, HandleKind::kTensorDesc>;

TensorDescs& Descs() { return TheOne<TensorDescs>(); }

// Pinned: another thread may destroy it meanwhile.
using FoundDesc = TensorDescs::Pinned;
FoundDesc FindDesc(const aclTensorDesc* handle) { return FoundDesc(Descs(), handle); }

Status FindDesc(const char* function, const aclTensorDesc* handle, FoundDesc* desc) {
  ANYACL_RETURN_IF_ERROR(RequireNotNull(function, "desc", handle));
  *desc = FindDesc(handle);
  if (*desc) return Status();
  return Fail(code::kAclInvalidParam, function, "desc must be a live tensor description, got {}",
              static_cast<const void*>(handle));
}

Status CheckDims(const char* function, int count, const int64_t* dims) {
  if (count < 0) {
    return Fail(code::kAclInvalidParam, function, "numDims must not be negative, got {}", count);
  }
  if (count > kMaxRank) {  // not read: it can only be a mistake
    return Fail(code::kAclInvalidParam, function, "numDims must be at most {}, got {}", kMaxRank, count);
  }
  return count > 0 ? RequireNotNull(function, "dims", dims) : Status();
}

// 0 when a dim is unknown or the product does not fit.
size_t ElementCount(const TensorDesc& desc) {
  size_t count = 1;
  for (const int64_t dim : desc.dims) {
    if (dim < 0 || __builtin_mul_overflow(count, static_cast<size_t>(dim), &count)) return 0;
  }
  return count;
}

Status RequireIndex(const char* function, const TensorDesc& desc, size_t index) {
  if (index < desc.dims.size()) return Status();
  return Fail(code::kAclInvalidParam, function, "index must be below the rank {}, got {}",
              desc.dims.size(), index);
}

aclError DescDim(const char* function, const aclTensorDesc* desc, size_t index, int64_t* dim) {
  return AclBorder(function, [&]() -> Status {
    FoundDesc found;
    ANYACL_RETURN_IF_ERROR(FindDesc(function, desc, &found));
    ANYACL_RETURN_IF_ERROR(RequireNotNull(function, "dimSize", dim));
    ANYACL_RETURN_IF_ERROR(RequireIndex(function, *found.get(), index));
    *dim = found->dims[index];
    return Status();
  });
}

}  // namespace
}  // namespace anyacl::runtime

using namespace anyacl;           // NOLINT: the C functions below are the border of this file
using namespace anyacl::runtime;  // NOLINT

aclTensorDesc* aclCreateTensorDesc(aclDataType dataType, int numDims, const int64_t* dims,
                                   aclFormat format) {
  constexpr const char* kName = "aclCreateTensorDesc";
  void* handle = nullptr;
  AclBorder(kName, [&]() -> Status {
    ANYACL_RETURN_IF_ERROR(CheckDims(kName, numDims, dims));
    std::vector<int64_t> copy(dims, dims + numDims);
    TensorDesc* desc = nullptr;
    handle = Descs().Create(&desc);
    if (!handle) return Fail(code::kAclBadAlloc, kName, "too many are alive");
    desc->dtype = Number(dataType);
    desc->format = Number(format);
    desc->dims = std::move(copy);
    return Status();
  });
  return static_cast<aclTensorDesc*>(handle);
}

void aclDestroyTensorDesc(const aclTensorDesc* desc) { Descs().Destroy(desc); }

void aclSetTensorDescName(aclTensorDesc* desc, const char* name) {
  AclBorder("aclSetTensorDescName", [&]() -> Status {
    FoundDesc found;
    ANYACL_RETURN_IF_ERROR(FindDesc("aclSetTensorDescName", desc, &found));
    found->name = name ? name : "";
    return Status();
  });
}

const char* aclGetTensorDescName(aclTensorDesc* desc) {
  const FoundDesc found = FindDesc(desc);
  return found ? found->name.c_str() : "";
}

aclDataType aclGetTensorDescType(const aclTensorDesc* desc) {
  const FoundDesc found = FindDesc(desc);
  return static_cast<aclDataType>(found ? found->dtype : ACL_DT_UNDEFINED);
}

aclFormat aclGetTensorDescFormat(const aclTensorDesc* desc) {
  const FoundDesc found = FindDesc(desc);
  return static_cast<aclFormat>(found ? found->format : ACL_FORMAT_UNDEFINED);
}

size_t aclGetTensorDescSize(const aclTensorDesc* desc) {
  const FoundDesc found = FindDesc(desc);
  if (!found) return 0;
  size_t bytes = 0;
  const size_t element = SizeOf(static_cast<DType>(found->dtype));
  return __builtin_mul_overflow(ElementCount(*found.get()), element, &bytes) ? 0 : bytes;
}

size_t aclGetTensorDescElementCount(const aclTensorDesc* desc) {
  const FoundDesc found = FindDesc(desc);
  return found ? ElementCount(*found.get()) : 0;
}

size_t aclGetTensorDescNumDims(const aclTensorDesc* desc) {
  const FoundDesc found = FindDesc(desc);
  if (!found) return 0;
  return found->has_unknown_rank() ? static_cast<size_t>(ACL_UNKNOWN_RANK) : found->dims.size();
}

int64_t aclGetTensorDescDim(const aclTensorDesc* desc, size_t index) {
  int64_t dim = -1;
  return DescDim("aclGetTensorDescDim", desc, index, &dim) == ACL_SUCCESS ? dim : -1;
}

aclError aclGetTensorDescDimV2(const aclTensorDesc* desc, size_t index, int64_t* dimSize) {
  return DescDim("aclGetTensorDescDimV2", desc, index, dimSize);
}

aclError aclSetTensorShapeRange(aclTensorDesc* desc, size_t dimsCount,
                                int64_t dimsRange[][ACL_TENSOR_SHAPE_RANGE_NUM]) {
  constexpr const char* kName = "aclSetTensorShapeRange";
  return AclBorder(kName, [&]() -> Status {
    FoundDesc found;
    ANYACL_RETURN_IF_ERROR(FindDesc(kName, desc, &found));
    if (dimsCount > 0) ANYACL_RETURN_IF_ERROR(RequireNotNull(kName, "dimsRange", dimsRange));
    if (dimsCount > kMaxRank) {
      return Fail(code::kAclInvalidParam, kName, "dimsCount must be at most {}, got {}", kMaxRank, dimsCount);
    }
    if (!found->has_unknown_rank() && dimsCount != found->dims.size()) {
      return Fail(code::kAclInvalidParam, kName, "dimsCount must be the rank {}, got {}",
                  found->dims.size(), dimsCount);
    }
    std::vector<std::array<int64_t, ACL_TENSOR_SHAPE_RANGE_NUM>> ranges;
    for (size_t i = 0; i < dimsCount; ++i) ranges.push_back({dimsRange[i][0], dimsRange[i][1]});
    found->dim_ranges = std::move(ranges);
    return Status();
  });
}

aclError aclSetTensorFormat(aclTensorDesc* desc, aclFormat format) {
  return AclBorder("aclSetTensorFormat", [&]() -> Status {
    FoundDesc found;
    ANYACL_RETURN_IF_ERROR(FindDesc("aclSetTensorFormat", desc, &found));
    found->storage_format = Number(format);
    return Status();
  });
}

aclError aclSetTensorShape(aclTensorDesc* desc, int numDims, const int64_t* dims) {
  constexpr const char* kName = "aclSetTensorShape";
  return AclBorder(kName, [&]() -> Status {
    FoundDesc found;
    ANYACL_RETURN_IF_ERROR(FindDesc(kName, desc, &found));
    ANYACL_RETURN_IF_ERROR(CheckDims(kName, numDims, dims));
    found->storage_dims.assign(dims, dims + numDims);
    return Status();
  });
}

aclError aclSetTensorConst(aclTensorDesc* desc, void* dataBuffer, size_t length) {
  constexpr const char* kName = "aclSetTensorConst";
  return AclBorder(kName, [&]() -> Status {
    FoundDesc found;
    ANYACL_RETURN_IF_ERROR(FindDesc(kName, desc, &found));
    ANYACL_RETURN_IF_ERROR(RequireNotNull(kName, "dataBuffer", dataBuffer));
    if (length == 0) {
      return Fail(code::kAclInvalidParam, kName, "length must be greater than 0, got 0");
    }
    const auto* bytes = static_cast<const unsigned char*>(dataBuffer);
    found->constant.assign(bytes, bytes + length);
    return Status();
  });
}

aclError aclSetTensorPlaceMent(aclTensorDesc* desc, aclMemType memType) {
  constexpr const char* kName = "aclSetTensorPlaceMent";
  return AclBorder(kName, [&]() -> Status {
    FoundDesc found;
    ANYACL_RETURN_IF_ERROR(FindDesc(kName, desc, &found));
    const int number = Number(memType);
    if (number < ACL_MEMTYPE_DEVICE || number > ACL_MEMTYPE_HOST_COMPILE_INDEPENDENT) {
      return Fail(code::kAclInvalidParam, kName, "memType must be 0 to 2, got {}", number);
    }
    found->placement = number;
    return Status();
  });
}
