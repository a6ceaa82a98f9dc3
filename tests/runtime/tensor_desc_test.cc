// SPDX-License-Identifier: Apache-2.0
// Copyright The AnyACL Authors
//
// The records of acl_base_mdl.h.
#include <limits>
#include <vector>

#include "acl/acl_base_mdl.h"
#include "memory_fixture.h"

namespace anyacl {
namespace {

class TensorDescTest : public ::testing::Test {
 protected:
  void TearDown() override { aclDestroyTensorDesc(desc_); }

  const std::vector<int64_t> dims_{2, 3, 4};
  aclTensorDesc* desc_ = aclCreateTensorDesc(ACL_FLOAT16, 3, dims_.data(), ACL_FORMAT_NCHW);
};

TEST_F(TensorDescTest, TellsWhatItWasMadeOf) {
  ASSERT_NE(desc_, nullptr);
  EXPECT_EQ(aclGetTensorDescType(desc_), ACL_FLOAT16);
  EXPECT_EQ(aclGetTensorDescFormat(desc_), ACL_FORMAT_NCHW);
  EXPECT_EQ(aclGetTensorDescNumDims(desc_), 3u);
  EXPECT_EQ(aclGetTensorDescElementCount(desc_), 24u);
  EXPECT_EQ(aclGetTensorDescSize(desc_), 48u);
  for (size_t i = 0; i < 3; ++i) {
    int64_t dim = 0;
    EXPECT_EQ(aclGetTensorDescDimV2(desc_, i, &dim), ACL_SUCCESS);
    EXPECT_EQ(dim, dims_[i]);
    EXPECT_EQ(aclGetTensorDescDim(desc_, i), dims_[i]);
  }
}

TEST_F(TensorDescTest, DimsOutOfRange) {
  int64_t dim = 7;
  EXPECT_ACL_FAILURE(100000, aclGetTensorDescDimV2(desc_, 3, &dim), "below the rank 3, got 3");
  EXPECT_EQ(dim, 7);
  EXPECT_EQ(aclGetTensorDescDim(desc_, 3), -1);
  EXPECT_ACL_FAILURE(100000, aclGetTensorDescDimV2(desc_, 0, nullptr), "dimSize");
}

TEST_F(TensorDescTest, Name) {
  EXPECT_STREQ(aclGetTensorDescName(desc_), "");
  aclSetTensorDescName(desc_, "weights");
  EXPECT_STREQ(aclGetTensorDescName(desc_), "weights");
  aclSetTensorDescName(desc_, nullptr);
  EXPECT_STREQ(aclGetTensorDescName(desc_), "");
}

TEST_F(TensorDescTest, Setters) {
  int64_t ranges[3][ACL_TENSOR_SHAPE_RANGE_NUM] = {{1, 2}, {3, 3}, {0, -1}};
  int value = 5;
  EXPECT_EQ(aclSetTensorShapeRange(desc_, 3, ranges), ACL_SUCCESS);
  EXPECT_EQ(aclSetTensorFormat(desc_, ACL_FORMAT_NC1HWC0), ACL_SUCCESS);
  EXPECT_EQ(aclSetTensorShape(desc_, 2, dims_.data()), ACL_SUCCESS);
  EXPECT_EQ(aclSetTensorShape(desc_, 0, nullptr), ACL_SUCCESS);
  EXPECT_EQ(aclSetTensorConst(desc_, &value, sizeof(value)), ACL_SUCCESS);
  EXPECT_EQ(aclSetTensorPlaceMent(desc_, ACL_MEMTYPE_HOST), ACL_SUCCESS);
  // The storage side does not show in what the record was made of.
  EXPECT_EQ(aclGetTensorDescFormat(desc_), ACL_FORMAT_NCHW);
  EXPECT_EQ(aclGetTensorDescNumDims(desc_), 3u);

  EXPECT_ACL_FAILURE(100000, aclSetTensorShapeRange(desc_, 2, ranges), "must be the rank 3, got 2");
  EXPECT_ACL_FAILURE(100000, aclSetTensorShapeRange(desc_, 3, nullptr), "dimsRange");
  EXPECT_ACL_FAILURE(100000, aclSetTensorShape(desc_, -1, dims_.data()), "numDims");
  EXPECT_ACL_FAILURE(100000, aclSetTensorShape(desc_, 2, nullptr), "dims");
  EXPECT_ACL_FAILURE(100000, aclSetTensorShape(desc_, std::numeric_limits<int>::max(), dims_.data()), "at most");
  EXPECT_ACL_FAILURE(100000, aclSetTensorShapeRange(desc_, std::numeric_limits<size_t>::max(), ranges), "at most");
  EXPECT_ACL_FAILURE(100000, aclSetTensorConst(desc_, nullptr, 4), "dataBuffer");
  EXPECT_ACL_FAILURE(100000, aclSetTensorConst(desc_, &value, 0), "length");
  EXPECT_ACL_FAILURE(100000, aclSetTensorPlaceMent(desc_, static_cast<aclMemType>(3)), "memType");
}

TEST(TensorDesc, Creation) {
  EXPECT_EQ(aclCreateTensorDesc(ACL_FLOAT, -1, nullptr, ACL_FORMAT_ND), nullptr);
  EXPECT_EQ(aclCreateTensorDesc(ACL_FLOAT, 2, nullptr, ACL_FORMAT_ND), nullptr);
  const int64_t few[] = {2, 3};  // more are never read
  EXPECT_EQ(aclCreateTensorDesc(ACL_FLOAT, std::numeric_limits<int>::max(), few, ACL_FORMAT_ND), nullptr);
  aclTensorDesc* scalar = aclCreateTensorDesc(ACL_DOUBLE, 0, nullptr, ACL_FORMAT_ND);
  ASSERT_NE(scalar, nullptr);
  EXPECT_EQ(aclGetTensorDescNumDims(scalar), 0u);
  EXPECT_EQ(aclGetTensorDescElementCount(scalar), 1u);
  EXPECT_EQ(aclGetTensorDescSize(scalar), 8u);
  aclDestroyTensorDesc(scalar);
}

TEST(TensorDesc, UnknownDimsRankAndOverflow) {
  struct Case {
    std::vector<int64_t> dims;
    size_t rank;
  };
  const std::vector<Case> cases = {{{4, -1}, 2},
                                   {{-2}, static_cast<size_t>(ACL_UNKNOWN_RANK)},
                                   {{int64_t{1} << 40, int64_t{1} << 40}, 2},
                                   {{0, 5}, 2}};
  for (const Case& c : cases) {
    aclTensorDesc* desc = aclCreateTensorDesc(ACL_FLOAT, static_cast<int>(c.dims.size()),
                                              c.dims.data(), ACL_FORMAT_ND);
    EXPECT_EQ(aclGetTensorDescNumDims(desc), c.rank);
    EXPECT_EQ(aclGetTensorDescElementCount(desc), 0u);
    EXPECT_EQ(aclGetTensorDescSize(desc), 0u);
    aclDestroyTensorDesc(desc);
  }
}

TEST(TensorDesc, NullDeadAndForeign) {
  int local = 0;
  aclTensorDesc* dead = aclCreateTensorDesc(ACL_FLOAT, 0, nullptr, ACL_FORMAT_ND);
  aclDestroyTensorDesc(dead);
  aclDestroyTensorDesc(dead);
  for (aclTensorDesc* desc :
       {static_cast<aclTensorDesc*>(nullptr), dead, reinterpret_cast<aclTensorDesc*>(&local)}) {
    int64_t dim = 0;
    EXPECT_EQ(aclGetTensorDescType(desc), ACL_DT_UNDEFINED);
    EXPECT_EQ(aclGetTensorDescFormat(desc), ACL_FORMAT_UNDEFINED);
    EXPECT_EQ(aclGetTensorDescNumDims(desc), 0u);
    EXPECT_EQ(aclGetTensorDescElementCount(desc), 0u);
    EXPECT_EQ(aclGetTensorDescSize(desc), 0u);
    EXPECT_EQ(aclGetTensorDescDim(desc, 0), -1);
    EXPECT_STREQ(aclGetTensorDescName(desc), "");
    aclSetTensorDescName(desc, "x");
    EXPECT_EQ(aclGetTensorDescDimV2(desc, 0, &dim), 100000);
    EXPECT_EQ(aclSetTensorShapeRange(desc, 0, nullptr), 100000);
    EXPECT_EQ(aclSetTensorFormat(desc, ACL_FORMAT_ND), 100000);
    EXPECT_EQ(aclSetTensorShape(desc, 0, nullptr), 100000);
    EXPECT_EQ(aclSetTensorConst(desc, &local, 4), 100000);
    EXPECT_EQ(aclSetTensorPlaceMent(desc, ACL_MEMTYPE_HOST), 100000);
  }
}

}  // namespace
}  // namespace anyacl
