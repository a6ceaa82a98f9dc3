// SPDX-License-Identifier: Apache-2.0
// Copyright The AnyACL Authors
//
// Behaviour of aclnnEluBackward written down by hand from its documents: the order of the checks,
// and what a table alone would not make anyone test.
#include <gtest/gtest.h>

#include <cmath>
#include <functional>
#include <limits>
#include <string>
#include <vector>

#include "acl/acl.h"
#include "aclnnop/aclnn_elu_backward.h"
#include "core/product.h"
#include "core/scalar.h"

namespace anyacl {
namespace {

using Shape = std::vector<int64_t>;

class Tensors {
 public:
  ~Tensors() {
    for (aclTensor* t : all_) aclDestroyTensor(t);
  }
  aclTensor* Make(aclDataType dtype, const Shape& shape, aclFormat format = ACL_FORMAT_ND) {
    all_.push_back(aclCreateTensor(shape.data(), shape.size(), dtype, nullptr, 0, format,
                                   shape.data(), shape.size(), memory_));
    return all_.back();
  }

 private:
  double memory_[256] = {};
  std::vector<aclTensor*> all_;
};

// A call that is fine until a test makes it wrong.
struct Arguments {
  Arguments() {
    SetTensors(ACL_FLOAT, ACL_FLOAT, {2, 3});
    for (aclScalar** s : {&alpha, &scale, &input_scale}) *s = Number(1);
  }
  ~Arguments() {
    for (aclScalar* s : scalars_) aclDestroyScalar(s);
  }

  void SetTensors(aclDataType in, aclDataType out, const Shape& shape) {
    grad_output = tensors.Make(in, shape);
    self = tensors.Make(in, shape);
    grad_input = tensors.Make(out, shape);
  }
  aclScalar* Number(float value) { return Keep(aclCreateScalar(&value, ACL_FLOAT)); }
  aclScalar* Complex() {
    float value[2] = {1, 0};
    return Keep(aclCreateScalar(value, ACL_COMPLEX64));
  }
  aclScalar* Keep(aclScalar* s) {
    scalars_.push_back(s);
    return s;
  }

  Tensors tensors;
  const aclTensor* grad_output;
  aclScalar* alpha;
  aclScalar* scale;
  aclScalar* input_scale;
  bool is_result = true;
  const aclTensor* self;
  aclTensor* grad_input;
  uint64_t size = 99;
  uint64_t* size_pointer = &size;
  aclOpExecutor* executor = nullptr;

 private:
  std::vector<aclScalar*> scalars_;
};

struct Answer {
  aclnnStatus code;
  std::string text;
};

Answer Ask(Arguments& a) {
  aclGetRecentErrMsg();
  const aclnnStatus code =
      aclnnEluBackwardGetWorkspaceSize(a.grad_output, a.alpha, a.scale, a.input_scale, a.is_result,
                                       a.self, a.grad_input, a.size_pointer, &a.executor);
  const char* const text = aclGetRecentErrMsg();
  if (code == 0) {
    EXPECT_EQ(aclDestroyAclOpExecutor(a.executor), 0);
  }
  return {code, text ? text : ""};
}

class EluBackwardContract : public testing::Test {
 protected:
  void TearDown() override { SetCurrentProduct(Product::kAscend950); }
};

void ExpectCode(aclnnStatus code, const std::function<void(Arguments&)>& change) {
  Arguments a;
  change(a);
  const Answer answer = Ask(a);
  EXPECT_EQ(answer.code, code) << answer.text;
}

// ---- order of the checks ----

struct Mistake {
  const char* sentence;  // a part of the text that shows which check answered
  aclnnStatus code;
  std::function<void(Arguments&)> make;
};

// Each mistake leaves those before it in order unless it is made too.
const std::vector<Mistake>& Mistakes() {
  static const auto* const list = new std::vector<Mistake>{
      {"workspaceSize must not be null", 161001, [](Arguments& a) { a.size_pointer = nullptr; }},
      {"gradOutput must not be null", 161001, [](Arguments& a) { a.grad_output = nullptr; }},
      {"alpha must not be null", 161001, [](Arguments& a) { a.alpha = nullptr; }},
      {"scale must not be null", 161001, [](Arguments& a) { a.scale = nullptr; }},
      {"inputScale must not be null", 161001, [](Arguments& a) { a.input_scale = nullptr; }},
      {"selfOrResult must not be null", 161001, [](Arguments& a) { a.self = nullptr; }},
      {"gradInput must not be null", 161001, [](Arguments& a) { a.grad_input = nullptr; }},
      {"selfOrResult must have the dtype of gradOutput", 161002,
       [](Arguments& a) {
         a.self = a.tensors.Make(ACL_FLOAT16, {2, 3});
       }},
      {"gradOutput must be FLOAT", 161002,
       [](Arguments& a) {
         a.grad_output = a.tensors.Make(ACL_INT32, {2, 3});
         if (a.self) a.self = a.tensors.Make(ACL_INT32, {2, 3});
       }},
      {"alpha must convert to FLOAT", 161002, [](Arguments& a) { a.alpha = a.Complex(); }},
      {"scale must convert to FLOAT", 161002, [](Arguments& a) { a.scale = a.Complex(); }},
      {"inputScale must convert to FLOAT", 161002,
       [](Arguments& a) { a.input_scale = a.Complex(); }},
      {"gradInput must have a dtype that gradOutput converts to", 161002,
       [](Arguments& a) {
         a.grad_input = a.tensors.Make(ACL_INT32, {2, 3});
       }},
      {"selfOrResult must have the shape of gradOutput", 161002,
       [](Arguments& a) {
         a.self = a.tensors.Make(ACL_FLOAT, {3, 2});
       }},
      {"gradInput must have the shape of gradOutput", 161002,
       [](Arguments& a) { a.grad_input = a.tensors.Make(ACL_FLOAT, {6}); }},
      {"gradOutput must have at most 8 dims", 161002,
       [](Arguments& a) { a.SetTensors(ACL_FLOAT, ACL_FLOAT, Shape(9, 1)); }},
      {"requires alpha >= 0", 161002, [](Arguments& a) { a.alpha = a.Number(-1); }},
  };
  return *list;
}

TEST_F(EluBackwardContract, EachMistakeAlone) {
  for (const Mistake& mistake : Mistakes()) {
    Arguments a;
    mistake.make(a);
    const Answer answer = Ask(a);
    EXPECT_EQ(answer.code, mistake.code) << mistake.sentence;
    EXPECT_NE(answer.text.find(std::string(": ") + mistake.sentence), std::string::npos)
        << "wanted " << mistake.sentence << ", got " << answer.text;
  }
}

// Of two neighbours the first answers. The later mistake is made first, because some replace whole
// tensors.
TEST_F(EluBackwardContract, OrderOfNeighbours) {
  for (size_t i = 0; i + 1 < Mistakes().size(); ++i) {
    Arguments a;
    Mistakes()[i + 1].make(a);
    Mistakes()[i].make(a);
    const Answer answer = Ask(a);
    EXPECT_EQ(answer.code, Mistakes()[i].code);
    EXPECT_NE(answer.text.find(Mistakes()[i].sentence), std::string::npos)
        << Mistakes()[i].sentence << " before " << Mistakes()[i + 1].sentence << ", got "
        << answer.text;
  }
}

// ---- alpha ----

TEST_F(EluBackwardContract, AlphaOfOddValues) {
  const float nan = std::numeric_limits<float>::quiet_NaN();
  const float inf = std::numeric_limits<float>::infinity();
  for (float fine : {nan, -nan, -0.0f, 0.0f, inf}) {
    ExpectCode(0, [fine](Arguments& a) { a.alpha = a.Number(fine); });
  }
  for (float refused : {-inf, -std::numeric_limits<float>::denorm_min(), -1.0f}) {
    ExpectCode(161002, [refused](Arguments& a) { a.alpha = a.Number(refused); });
    ExpectCode(0, [refused](Arguments& a) {
      a.alpha = a.Number(refused);
      a.is_result = false;
    });
  }
}

// alpha is compared as FLOAT: a negative DOUBLE too small for FLOAT is -0 there, and passes.
TEST_F(EluBackwardContract, AlphaIsComparedAsFloat) {
  double tiny = -1e-300;
  double little = -1e-40;
  ExpectCode(0, [&](Arguments& a) { a.alpha = a.Keep(aclCreateScalar(&tiny, ACL_DOUBLE)); });
  ExpectCode(161002, [&](Arguments& a) { a.alpha = a.Keep(aclCreateScalar(&little, ACL_DOUBLE)); });
}

TEST_F(EluBackwardContract, NegativeAlphaIsRefusedForEmptyTensorsToo) {
  ExpectCode(0, [](Arguments& a) { a.SetTensors(ACL_FLOAT, ACL_FLOAT, {2, 0}); });
  ExpectCode(161002, [](Arguments& a) {
    a.SetTensors(ACL_FLOAT, ACL_FLOAT, {2, 0});
    a.alpha = a.Number(-1);
  });
}

TEST_F(EluBackwardContract, ScalarsOfEveryRealType) {
  const unsigned char zeros[16] = {};
  for (aclDataType t :
       {ACL_FLOAT, ACL_FLOAT16, ACL_BF16, ACL_DOUBLE, ACL_INT8, ACL_UINT8, ACL_INT16, ACL_UINT16,
        ACL_INT32, ACL_UINT32, ACL_INT64, ACL_UINT64, ACL_BOOL}) {
    ExpectCode(0, [&](Arguments& a) {
      for (aclScalar** s : {&a.alpha, &a.scale, &a.input_scale}) {
        *s = a.Keep(aclCreateScalar(const_cast<unsigned char*>(zeros), t));
      }
    });
  }
  for (aclDataType t : {ACL_COMPLEX32, ACL_COMPLEX64, ACL_COMPLEX128, ACL_HIFLOAT8, ACL_INT4}) {
    ExpectCode(161002, [&](Arguments& a) {
      a.scale = a.Keep(aclCreateScalar(const_cast<unsigned char*>(zeros), t));
    });
  }
}

TEST_F(EluBackwardContract, NegativeIntegerAlpha) {
  int8_t minus = -1;
  int64_t far = std::numeric_limits<int64_t>::min();
  ExpectCode(161002, [&](Arguments& a) { a.alpha = a.Keep(aclCreateScalar(&minus, ACL_INT8)); });
  ExpectCode(161002, [&](Arguments& a) { a.alpha = a.Keep(aclCreateScalar(&far, ACL_INT64)); });
  ExpectCode(0, [&](Arguments& a) { a.alpha = a.Keep(aclCreateScalar(&minus, ACL_UINT8)); });
}

// ---- dtypes and products ----

TEST_F(EluBackwardContract, DTypesOfEveryProduct) {
  const aclDataType kInputs[] = {ACL_FLOAT, ACL_FLOAT16, ACL_BF16};
  const aclDataType kOutputs[] = {ACL_FLOAT,  ACL_FLOAT16,   ACL_BF16,
                                  ACL_DOUBLE, ACL_COMPLEX64, ACL_COMPLEX128};
  const aclDataType kNever[] = {ACL_INT8,         ACL_UINT8,
                                ACL_INT16,        ACL_UINT16,
                                ACL_INT32,        ACL_UINT32,
                                ACL_INT64,        ACL_UINT64,
                                ACL_BOOL,         ACL_STRING,
                                ACL_COMPLEX32,    ACL_HIFLOAT8,
                                ACL_DT_UNDEFINED, static_cast<aclDataType>(99)};
  for (Product product :
       {Product::kAscend950, Product::kA3, Product::kA2, Product::kTraining, Product::kInference}) {
    SetCurrentProduct(product);
    const bool has_bf16 = product != Product::kTraining && product != Product::kInference;
    for (aclDataType in : kInputs) {
      for (aclDataType out : kOutputs) {
        const bool fine = has_bf16 || (in != ACL_BF16 && out != ACL_BF16);
        SCOPED_TRACE(std::string(Name(product)) + " " + std::to_string(in) + " -> " +
                     std::to_string(out));
        ExpectCode(fine ? 0 : 161002, [&](Arguments& a) { a.SetTensors(in, out, {4}); });
      }
      for (aclDataType out : kNever) {
        ExpectCode(161002, [&](Arguments& a) { a.SetTensors(in, out, {4}); });
      }
    }
    for (aclDataType in : kNever) {
      ExpectCode(161002, [&](Arguments& a) { a.SetTensors(in, ACL_FLOAT, {4}); });
    }
    ExpectCode(161002, [](Arguments& a) { a.SetTensors(ACL_DOUBLE, ACL_DOUBLE, {4}); });
    ExpectCode(161002, [](Arguments& a) { a.SetTensors(ACL_COMPLEX64, ACL_COMPLEX64, {4}); });
  }
}

// The product without this operator says so right after the null checks, whatever else is wrong.
TEST_F(EluBackwardContract, Atlas200IHasNone) {
  SetCurrentProduct(Product::k200I);
  ExpectCode(561003, [](Arguments&) {});
  ExpectCode(561003, [](Arguments& a) { a.self = a.tensors.Make(ACL_FLOAT16, {2, 3}); });
  ExpectCode(161001, [](Arguments& a) { a.grad_input = nullptr; });
}

// ---- formats, shapes ----

TEST_F(EluBackwardContract, EveryFormatTagIsAccepted) {
  const aclFormat kFormats[] = {ACL_FORMAT_ND,      ACL_FORMAT_NCHW,     ACL_FORMAT_NHWC,
                                ACL_FORMAT_HWCN,    ACL_FORMAT_NCDHW,    ACL_FORMAT_NDHWC,
                                ACL_FORMAT_NC,      ACL_FORMAT_NCL,      ACL_FORMAT_FRACTAL_NZ,
                                ACL_FORMAT_NC1HWC0, ACL_FORMAT_UNDEFINED};
  for (aclFormat in : kFormats) {
    for (aclFormat out : kFormats) {
      ExpectCode(0, [&](Arguments& a) {
        a.grad_output = a.tensors.Make(ACL_FLOAT, {2, 3}, in);
        a.self = a.tensors.Make(ACL_FLOAT, {2, 3}, out);
        a.grad_input = a.tensors.Make(ACL_FLOAT, {2, 3}, out);
      });
    }
  }
}

TEST_F(EluBackwardContract, ShapesCompareByEveryDim) {
  for (const Shape& other :
       {Shape{1, 2, 3}, Shape{2, 3, 1}, Shape{6}, Shape{3, 2}, Shape{2, 0}, Shape{}}) {
    ExpectCode(161002, [&](Arguments& a) { a.self = a.tensors.Make(ACL_FLOAT, other); });
    ExpectCode(161002, [&](Arguments& a) { a.grad_input = a.tensors.Make(ACL_FLOAT, other); });
  }
  ExpectCode(161002, [](Arguments& a) {  // 0-dim is not [1]
    a.SetTensors(ACL_FLOAT, ACL_FLOAT, {});
    a.self = a.tensors.Make(ACL_FLOAT, {1});
  });
}

TEST_F(EluBackwardContract, RanksZeroToEight) {
  for (int rank = 0; rank <= 8; ++rank) {
    ExpectCode(0, [&](Arguments& a) { a.SetTensors(ACL_FLOAT, ACL_FLOAT, Shape(rank, 1)); });
    ExpectCode(
        0, [&](Arguments& a) { a.SetTensors(ACL_FLOAT, ACL_FLOAT, Shape(rank, rank ? 0 : 1)); });
  }
  ExpectCode(161002, [](Arguments& a) { a.SetTensors(ACL_FLOAT, ACL_FLOAT, Shape(9, 0)); });
}

// Absurd sizes are refused in phase 1, with no arithmetic that overflows on the way.
TEST_F(EluBackwardContract, SizesBeyondAnyMemory) {
  const int64_t huge = int64_t{1} << 40;
  ExpectCode(161002, [&](Arguments& a) { a.SetTensors(ACL_FLOAT, ACL_FLOAT, {huge, huge}); });
  ExpectCode(161002, [&](Arguments& a) { a.SetTensors(ACL_FLOAT, ACL_FLOAT, {INT64_MAX}); });
  ExpectCode(0, [&](Arguments& a) { a.SetTensors(ACL_FLOAT, ACL_FLOAT, {huge, 0, huge}); });
}

TEST_F(EluBackwardContract, StridesBeyondAnyMemory) {
  float memory[4] = {};
  const int64_t dims[] = {2};
  for (int64_t stride : {INT64_MAX / 4 - 1, INT64_MAX / 4, INT64_MAX / 2, INT64_MAX}) {
    for (int64_t offset : {int64_t{0}, int64_t{2}, INT64_MAX}) {
      Arguments a;
      a.SetTensors(ACL_FLOAT, ACL_FLOAT, {2});
      aclTensor* const far =
          aclCreateTensor(dims, 1, ACL_FLOAT, &stride, offset, ACL_FORMAT_ND, dims, 1, memory);
      ASSERT_NE(far, nullptr);
      a.grad_input = far;
      const aclnnStatus as_output = Ask(a).code;
      a.SetTensors(ACL_FLOAT, ACL_FLOAT, {2});
      a.self = far;
      const aclnnStatus as_input = Ask(a).code;
      const bool fits = stride < INT64_MAX / 4 && offset == 0;
      EXPECT_EQ(as_output, fits ? 0 : 161002) << stride << " " << offset;
      EXPECT_EQ(as_input, fits ? 0 : 161002) << stride << " " << offset;
      aclDestroyTensor(far);
    }
  }
}

}  // namespace
}  // namespace anyacl
