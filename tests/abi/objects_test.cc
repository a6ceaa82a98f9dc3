// SPDX-License-Identifier: Apache-2.0
// Copyright The AnyACL Authors
//
// Ownership and lifetime of the aclnn objects, and what happens to handles that are not alive.
#include "abi/objects.h"

#include <gtest/gtest.h>

#include <algorithm>
#include <array>
#include <atomic>
#include <functional>
#include <memory>
#include <string>
#include <thread>
#include <vector>

#include "aclnn/aclnn_base.h"
#include "core/error_text.h"

namespace anyacl {
namespace {

using Numbers = std::vector<int64_t>;

std::string TakeText() {
  const char* text = error_text::Take();
  return text ? text : "";
}

aclTensor* MakeTensor(const Numbers& dims, void* data = nullptr) {
  return aclCreateTensor(dims.data(), dims.size(), ACL_FLOAT, nullptr, 0, ACL_FORMAT_ND,
                         dims.data(), dims.size(), data);
}

aclTensor* MakeView(const Numbers& dims, const int64_t* strides, int64_t offset,
                    const Numbers& storage) {
  return aclCreateTensor(dims.data(), dims.size(), ACL_FLOAT, strides, offset, ACL_FORMAT_ND,
                         storage.data(), storage.size(), nullptr);
}

aclScalar* MakeScalar(float value) { return aclCreateScalar(&value, ACL_FLOAT); }

using DimsGetter = aclnnStatus (*)(const aclTensor*, int64_t**, uint64_t*);

Numbers Read(DimsGetter get, const aclTensor* tensor) {
  int64_t* values = nullptr;
  uint64_t count = 99;
  EXPECT_EQ(get(tensor, &values, &count), 0);
  EXPECT_NE(values, nullptr);
  Numbers result(values, values + count);
  delete[] values;  // the caller's duty, with the caller's delete
  return result;
}

class ObjectsTest : public testing::Test {
 protected:
  void SetUp() override { TakeText(); }
  void ExpectText(const std::string& sentence) {
    const std::string text = TakeText();
    EXPECT_NE(text.find(sentence), std::string::npos) << "got: " << text;
  }
};

// ---- tensors ----

TEST_F(ObjectsTest, TensorCopiesWhatItIsGiven) {
  Numbers dims{2, 3};
  Numbers strides{1, 2};
  Numbers storage{3, 2};
  float memory[16];
  aclTensor* t = aclCreateTensor(dims.data(), 2, ACL_FLOAT, strides.data(), 4, ACL_FORMAT_NCHW,
                                 storage.data(), 2, memory);
  ASSERT_NE(t, nullptr);
  dims = strides = storage = {7, 7};
  EXPECT_EQ(Read(aclGetViewShape, t), (Numbers{2, 3}));
  EXPECT_EQ(Read(aclGetViewStrides, t), (Numbers{1, 2}));
  EXPECT_EQ(Read(aclGetStorageShape, t), (Numbers{3, 2}));
  int64_t offset = 0;
  EXPECT_EQ(aclGetViewOffset(t, &offset), 0);
  EXPECT_EQ(offset, 4);
  aclFormat format = ACL_FORMAT_UNDEFINED;
  EXPECT_EQ(aclGetFormat(t, &format), 0);
  EXPECT_EQ(format, ACL_FORMAT_NCHW);
  aclDataType dtype = ACL_DT_UNDEFINED;
  EXPECT_EQ(aclGetDataType(t, &dtype), 0);
  EXPECT_EQ(dtype, ACL_FLOAT);
  void* address = nullptr;
  EXPECT_EQ(aclGetRawTensorAddr(t, &address), 0);
  EXPECT_EQ(address, memory);
  EXPECT_EQ(aclDestroyTensor(t), 0);
}

TEST_F(ObjectsTest, WithoutStridesATensorIsContiguous) {
  aclTensor* t = MakeTensor({2, 3, 5});
  EXPECT_EQ(Read(aclGetViewStrides, t), (Numbers{15, 5, 1}));
  aclDestroyTensor(t);
}

TEST_F(ObjectsTest, ZeroAndOverlappingStridesAreLegal) {
  const Numbers broadcast{0, 1};
  const Numbers overlapping{1, 1};
  for (const Numbers& strides : {broadcast, overlapping}) {
    aclTensor* t = MakeView({4, 3}, strides.data(), 0, {6});
    ASSERT_NE(t, nullptr);
    EXPECT_EQ(Read(aclGetViewStrides, t), strides);
    aclDestroyTensor(t);
  }
}

TEST_F(ObjectsTest, RankZeroHasEmptyArraysThatMayBeDeleted) {
  aclTensor* t =
      aclCreateTensor(nullptr, 0, ACL_FLOAT16, nullptr, 0, ACL_FORMAT_ND, nullptr, 0, nullptr);
  ASSERT_NE(t, nullptr);
  EXPECT_EQ(Read(aclGetViewShape, t), Numbers{});
  EXPECT_EQ(Read(aclGetViewStrides, t), Numbers{});
  EXPECT_EQ(Read(aclGetStorageShape, t), Numbers{});
  EXPECT_EQ(Tensors().Get(t)->numel(), 1);
  aclDestroyTensor(t);
}

TEST_F(ObjectsTest, EmptyTensorNeedsNoMemory) {
  aclTensor* t = MakeTensor({4, 0, 2});
  ASSERT_NE(t, nullptr);
  EXPECT_TRUE(Tensors().Get(t)->empty());
  aclDestroyTensor(t);
}

TEST_F(ObjectsTest, RankTwentyFiveIsTheMost) {
  aclTensor* t = MakeTensor(Numbers(25, 1));
  ASSERT_NE(t, nullptr);
  EXPECT_EQ(Read(aclGetViewShape, t), Numbers(25, 1));
  aclDestroyTensor(t);
  EXPECT_EQ(MakeTensor(Numbers(26, 1)), nullptr);
  ExpectText("aclCreateTensor: viewDims can have at most 25 entries, got 26");
  EXPECT_EQ(MakeView({1}, nullptr, 0, Numbers(26, 1)), nullptr);
  ExpectText("aclCreateTensor: storageDims can have at most 25 entries, got 26");
  const int64_t one = 1;
  EXPECT_EQ(
      aclCreateTensor(&one, ~uint64_t{0}, ACL_FLOAT, nullptr, 0, ACL_FORMAT_ND, &one, 1, nullptr),
      nullptr);
}

TEST_F(ObjectsTest, NullDimsWithACountAreRefused) {
  const int64_t one = 1;
  EXPECT_EQ(aclCreateTensor(nullptr, 1, ACL_FLOAT, nullptr, 0, ACL_FORMAT_ND, &one, 1, nullptr),
            nullptr);
  ExpectText("aclCreateTensor: viewDims must not be null with 1 dims");
  EXPECT_EQ(aclCreateTensor(&one, 1, ACL_FLOAT, nullptr, 0, ACL_FORMAT_ND, nullptr, 3, nullptr),
            nullptr);
  ExpectText("aclCreateTensor: storageDims must not be null with 3 dims");
}

TEST_F(ObjectsTest, NegativeNumbersAreRefused) {
  EXPECT_EQ(MakeView({2, -3}, nullptr, 0, {6}), nullptr);
  ExpectText(
      "AclNN_Parameter_Error(EZ1001): aclCreateTensor: viewDims[1] must not be negative, got -3");
  const Numbers strides{-1, 2};
  EXPECT_EQ(MakeView({2, 3}, strides.data(), 0, {6}), nullptr);
  ExpectText("aclCreateTensor: stride[0] must not be negative, got -1");
  EXPECT_EQ(MakeView({2, 3}, nullptr, -5, {6}), nullptr);
  ExpectText("aclCreateTensor: offset must not be negative, got -5");
  EXPECT_EQ(MakeView({2, 3}, nullptr, 0, {-6}), nullptr);
  ExpectText("aclCreateTensor: storageDims[0] must not be negative, got -6");
}

TEST_F(ObjectsTest, ShapesWhoseProductOverflowsAreObjectsLikeOthers) {
  const int64_t huge = int64_t{1} << 62;
  aclTensor* t = MakeTensor({huge, huge, huge});  // an operator refuses it, and says why
  ASSERT_NE(t, nullptr);
  EXPECT_EQ(Tensors().Get(t)->numel(), kOverflow);
  aclDestroyTensor(t);
}

TEST_F(ObjectsTest, PrivateFormatIsRecorded) {
  const Numbers dims{16, 16};
  const Numbers storage{1, 1, 16, 16};
  aclTensor* t = aclCreateTensor(dims.data(), 2, ACL_FLOAT16, nullptr, 0, ACL_FORMAT_FRACTAL_NZ,
                                 storage.data(), 4, nullptr);
  aclFormat format = ACL_FORMAT_UNDEFINED;
  EXPECT_EQ(aclGetFormat(t, &format), 0);
  EXPECT_EQ(format, ACL_FORMAT_FRACTAL_NZ);
  EXPECT_EQ(Read(aclGetStorageShape, t), storage);
  aclDestroyTensor(t);
}

TEST_F(ObjectsTest, InitTensorResetsEveryField) {
  const Numbers strides{1, 2};
  aclTensor* t = MakeView({2, 2}, strides.data(), 3, {9});
  const int64_t dims = 8;
  const int64_t storage = 10;
  int memory = 0;
  EXPECT_EQ(aclInitTensor(t, &dims, 1, ACL_INT32, nullptr, 1, ACL_FORMAT_NCL, &storage, 1, &memory),
            0);
  const Tensor& object = *Tensors().Get(t);
  EXPECT_EQ(object.dtype, DType::kI32);
  EXPECT_EQ(object.format, Format::kNCL);
  EXPECT_EQ(object.dims, Dims({8}));
  EXPECT_EQ(object.strides, Dims({1}));
  EXPECT_EQ(object.storage, Dims({10}));
  EXPECT_EQ(object.offset, 1);
  EXPECT_EQ(object.data, &memory);
  aclDestroyTensor(t);
}

TEST_F(ObjectsTest, RefusedInitTensorChangesNothing) {
  aclTensor* t = MakeTensor({2, 3});
  const int64_t negative = -1;
  EXPECT_EQ(
      aclInitTensor(t, &negative, 1, ACL_INT32, nullptr, 0, ACL_FORMAT_ND, nullptr, 0, nullptr),
      ACLNN_ERR_PARAM_INVALID);
  ExpectText("aclInitTensor: viewDims[0] must not be negative, got -1");
  EXPECT_EQ(Read(aclGetViewShape, t), (Numbers{2, 3}));
  aclDestroyTensor(t);
}

TEST_F(ObjectsTest, RawAddressIsThatOfTheStorage) {
  float memory[8];
  aclTensor* t = MakeView({2}, nullptr, 3, {8});
  void* address = memory;
  EXPECT_EQ(aclGetRawTensorAddr(t, &address), 0);
  EXPECT_EQ(address, nullptr);
  EXPECT_EQ(aclSetRawTensorAddr(t, memory), 0);
  EXPECT_EQ(aclGetRawTensorAddr(t, &address), 0);
  EXPECT_EQ(address, memory);  // without the offset
  EXPECT_EQ(aclSetRawTensorAddr(t, nullptr), 0);
  aclDestroyTensor(t);
}

// ---- scalars and arrays ----

TEST_F(ObjectsTest, ScalarCopiesByTypeSize) {
  // Each value is at the end of its own block, so that a sanitizer sees a read behind it.
  const struct {
    aclDataType dtype;
    size_t bytes;
  } rows[] = {{ACL_BOOL, 1},        {ACL_INT8, 1},        {ACL_FLOAT16, 2},    {ACL_BF16, 2},
              {ACL_FLOAT, 4},       {ACL_INT64, 8},       {ACL_DOUBLE, 8},     {ACL_COMPLEX64, 8},
              {ACL_COMPLEX128, 16}, {ACL_FLOAT8_E5M2, 1}, {ACL_FLOAT4_E2M1, 1}};
  for (const auto& row : rows) {
    const auto value = std::make_unique<unsigned char[]>(row.bytes);
    std::fill_n(value.get(), row.bytes, 0xab);
    aclScalar* s = aclCreateScalar(value.get(), row.dtype);
    ASSERT_NE(s, nullptr) << row.dtype;
    value[0] = 0;
    const Scalar& object = *Scalars().Get(s);
    EXPECT_EQ(static_cast<int>(object.dtype), row.dtype);
    for (size_t i = 0; i < sizeof(object.bytes); ++i) {
      EXPECT_EQ(object.bytes[i], i < row.bytes ? 0xab : 0);
    }
    EXPECT_EQ(aclDestroyScalar(s), 0);
  }
}

TEST_F(ObjectsTest, ScalarWithoutValueOrSizeIsRefused) {
  EXPECT_EQ(aclCreateScalar(nullptr, ACL_FLOAT), nullptr);
  ExpectText("aclCreateScalar: value must not be null");
  double value = 1;
  EXPECT_EQ(aclCreateScalar(&value, ACL_STRING), nullptr);
  ExpectText("aclCreateScalar: dataType must be a type with a size, got STRING");
  EXPECT_EQ(aclCreateScalar(&value, ACL_DT_UNDEFINED), nullptr);
}

TEST_F(ObjectsTest, ArraysCopy) {
  int64_t ints[] = {1, -2, 3};
  float floats[] = {0.5f, -1};
  bool bools[] = {true, false, true, true};
  aclIntArray* i = aclCreateIntArray(ints, 3);
  aclFloatArray* f = aclCreateFloatArray(floats, 2);
  aclBoolArray* b = aclCreateBoolArray(bools, 4);
  ints[0] = 9;
  floats[0] = 9;
  bools[0] = false;
  uint64_t size = 0;
  EXPECT_EQ(aclGetIntArraySize(i, &size), 0);
  EXPECT_EQ(size, 3u);
  EXPECT_EQ(IntArrays().Get(i)->values, (Numbers{1, -2, 3}));
  EXPECT_EQ(aclGetFloatArraySize(f, &size), 0);
  EXPECT_EQ(size, 2u);
  EXPECT_EQ(FloatArrays().Get(f)->values, (std::vector<float>{0.5f, -1}));
  EXPECT_EQ(aclGetBoolArraySize(b, &size), 0);
  EXPECT_EQ(size, 4u);
  EXPECT_EQ(BoolArrays().Get(b)->values, (std::vector<unsigned char>{1, 0, 1, 1}));
  EXPECT_EQ(aclDestroyIntArray(i), 0);
  EXPECT_EQ(aclDestroyFloatArray(f), 0);
  EXPECT_EQ(aclDestroyBoolArray(b), 0);
}

TEST_F(ObjectsTest, BoolArrayTakesAnyByte) {
  const unsigned char bytes[] = {0, 2, 255};
  aclBoolArray* b = aclCreateBoolArray(reinterpret_cast<const bool*>(bytes), 3);
  EXPECT_EQ(BoolArrays().Get(b)->values, (std::vector<unsigned char>{0, 2, 255}));
  aclDestroyBoolArray(b);
}

TEST_F(ObjectsTest, NullOrSizeZeroMakesAnEmptyArray) {
  const int64_t value = 1;
  for (aclIntArray* a : {aclCreateIntArray(nullptr, 5), aclCreateIntArray(&value, 0),
                         aclCreateIntArray(nullptr, 0)}) {
    ASSERT_NE(a, nullptr);
    uint64_t size = 99;
    EXPECT_EQ(aclGetIntArraySize(a, &size), 0);
    EXPECT_EQ(size, 0u);
    EXPECT_EQ(aclDestroyIntArray(a), 0);
  }
  aclTensorList* list = aclCreateTensorList(nullptr, 4);
  uint64_t size = 99;
  EXPECT_EQ(aclGetTensorListSize(list, &size), 0);
  EXPECT_EQ(size, 0u);
  EXPECT_EQ(aclDestroyTensorList(list), 0);
}

TEST_F(ObjectsTest, AbsurdCountsAreRefusedNotRead) {
  const int64_t ints = 1;
  const bool bools = true;
  aclTensor* t = MakeTensor({1});
  const aclTensor* tensors[] = {t};
  EXPECT_EQ(aclCreateIntArray(&ints, ~uint64_t{0}), nullptr);
  ExpectText("aclCreateIntArray: size must be at most 268435456, got 18446744073709551615");
  EXPECT_EQ(aclCreateBoolArray(&bools, uint64_t{1} << 40), nullptr);
  EXPECT_EQ(aclCreateTensorList(tensors, uint64_t{1} << 62), nullptr);
  EXPECT_EQ(aclDestroyTensor(t), 0);
}

// ---- lists ----

TEST_F(ObjectsTest, ListOwnsItsTensors) {
  aclTensor* a = MakeTensor({2});
  aclTensor* b = MakeTensor({3});
  const aclTensor* members[] = {a, nullptr, b};
  aclTensorList* list = aclCreateTensorList(members, 3);
  members[0] = nullptr;  // the list has its own copy
  uint64_t size = 0;
  EXPECT_EQ(aclGetTensorListSize(list, &size), 0);
  EXPECT_EQ(size, 3u);
  EXPECT_EQ(TensorLists().Get(list)->handles, (std::vector<const void*>{a, nullptr, b}));
  EXPECT_EQ(aclDestroyTensorList(list), 0);
  EXPECT_EQ(Tensors().Get(a), nullptr);
  EXPECT_EQ(Tensors().Get(b), nullptr);
  EXPECT_EQ(aclDestroyTensorList(list), ACLNN_ERR_PARAM_INVALID);
}

TEST_F(ObjectsTest, ListOwnsItsScalars) {
  aclScalar* a = MakeScalar(1);
  const aclScalar* members[] = {a, nullptr};
  aclScalarList* list = aclCreateScalarList(members, 2);
  uint64_t size = 0;
  EXPECT_EQ(aclGetScalarListSize(list, &size), 0);
  EXPECT_EQ(size, 2u);
  EXPECT_EQ(aclDestroyScalarList(list), 0);
  EXPECT_EQ(Scalars().Get(a), nullptr);
}

TEST_F(ObjectsTest, ListSkipsMembersThatAreDead) {
  aclTensor* twice = MakeTensor({2});
  aclTensor* destroyed = MakeTensor({2});
  const aclTensor* members[] = {twice, destroyed, twice};
  aclTensorList* list = aclCreateTensorList(members, 3);
  EXPECT_EQ(aclDestroyTensor(destroyed), 0);
  aclTensor* reuses_the_slot = MakeTensor({5});
  EXPECT_EQ(aclDestroyTensorList(list), 0);
  EXPECT_NE(Tensors().Get(reuses_the_slot), nullptr);  // not taken for the member it replaced
  EXPECT_EQ(aclDestroyTensor(reuses_the_slot), 0);
}

TEST_F(ObjectsTest, ListOfADeadTensorIsRefusedAndTakesNothing) {
  aclTensor* alive = MakeTensor({2});
  aclTensor* dead = MakeTensor({2});
  aclDestroyTensor(dead);
  const aclTensor* members[] = {alive, dead};
  EXPECT_EQ(aclCreateTensorList(members, 2), nullptr);
  ExpectText("aclCreateTensorList: value[1] is not a live aclTensor");
  EXPECT_EQ(aclDestroyTensor(alive), 0);
}

// ---- handles that are not alive ----

// Every function that takes a handle of a kind, with everything else about the call in order.
struct Call {
  const char* function;
  HandleKind kind;
  bool null_is_fine;
  std::function<aclnnStatus(void*)> call;
};

template <class Handle, class... Rest>
std::function<aclnnStatus(void*)> Bind(aclnnStatus (*function)(Handle*, Rest...), Rest... rest) {
  return [=](void* handle) { return function(static_cast<Handle*>(handle), rest...); };
}

#define ANYACL_DESTROY(kind, function) \
  { #function, HandleKind::kind, true, Bind(function) }
#define ANYACL_USE(kind, function, ...) \
  { #function, HandleKind::kind, false, Bind(function, __VA_ARGS__) }

const std::vector<Call>& Calls() {
  static int64_t* dims;
  static uint64_t count;
  static int64_t number;
  static aclFormat format;
  static aclDataType dtype;
  static void* address;
  const auto init = [](void* handle) {
    const int64_t one = 1;
    return aclInitTensor(static_cast<aclTensor*>(handle), &one, 1, ACL_FLOAT, nullptr, 0,
                         ACL_FORMAT_ND, &one, 1, nullptr);
  };
  static const auto* const calls = new std::vector<Call>{
      ANYACL_DESTROY(kTensor, aclDestroyTensor),
      ANYACL_DESTROY(kScalar, aclDestroyScalar),
      ANYACL_DESTROY(kIntArray, aclDestroyIntArray),
      ANYACL_DESTROY(kFloatArray, aclDestroyFloatArray),
      ANYACL_DESTROY(kBoolArray, aclDestroyBoolArray),
      ANYACL_DESTROY(kTensorList, aclDestroyTensorList),
      ANYACL_DESTROY(kScalarList, aclDestroyScalarList),
      ANYACL_USE(kTensor, aclGetViewShape, &dims, &count),
      ANYACL_USE(kTensor, aclGetStorageShape, &dims, &count),
      ANYACL_USE(kTensor, aclGetViewStrides, &dims, &count),
      ANYACL_USE(kTensor, aclGetViewOffset, &number),
      ANYACL_USE(kTensor, aclGetFormat, &format),
      ANYACL_USE(kTensor, aclGetDataType, &dtype),
      ANYACL_USE(kTensor, aclSetRawTensorAddr, address),
      ANYACL_USE(kTensor, aclGetRawTensorAddr, &address),
      {"aclInitTensor", HandleKind::kTensor, false, init},
      ANYACL_USE(kIntArray, aclGetIntArraySize, &count),
      ANYACL_USE(kFloatArray, aclGetFloatArraySize, &count),
      ANYACL_USE(kBoolArray, aclGetBoolArraySize, &count),
      ANYACL_USE(kTensorList, aclGetTensorListSize, &count),
      ANYACL_USE(kScalarList, aclGetScalarListSize, &count),
  };
  return *calls;
}

struct KindRow {
  HandleKind kind;
  std::function<void*()> create;
  std::function<aclnnStatus(void*)> destroy;
};

const std::vector<KindRow>& Kinds() {
  static const auto* const kinds = new std::vector<KindRow>{
      {HandleKind::kTensor, [] { return MakeTensor({1}); }, Bind(aclDestroyTensor)},
      {HandleKind::kScalar, [] { return MakeScalar(1); }, Bind(aclDestroyScalar)},
      {HandleKind::kIntArray, [] { return aclCreateIntArray(nullptr, 0); },
       Bind(aclDestroyIntArray)},
      {HandleKind::kFloatArray, [] { return aclCreateFloatArray(nullptr, 0); },
       Bind(aclDestroyFloatArray)},
      {HandleKind::kBoolArray, [] { return aclCreateBoolArray(nullptr, 0); },
       Bind(aclDestroyBoolArray)},
      {HandleKind::kTensorList, [] { return aclCreateTensorList(nullptr, 0); },
       Bind(aclDestroyTensorList)},
      {HandleKind::kScalarList, [] { return aclCreateScalarList(nullptr, 0); },
       Bind(aclDestroyScalarList)},
  };
  return *kinds;
}

void ExpectRefused(const Call& row, void* handle, aclnnStatus code) {
  TakeText();
  EXPECT_EQ(row.call(handle), code) << row.function << " with " << handle;
  const std::string text = TakeText();
  EXPECT_NE(text.find(std::string("AclNN_Parameter_Error(EZ1001): ") + row.function + ": "),
            std::string::npos)
      << row.function << " with " << handle << " said: " << text;
}

TEST_F(ObjectsTest, NullHandles) {
  for (const Call& row : Calls()) {
    if (row.null_is_fine) {
      EXPECT_EQ(row.call(nullptr), 0) << row.function;
      EXPECT_EQ(TakeText(), "");
    } else {
      ExpectRefused(row, nullptr, ACLNN_ERR_PARAM_NULLPTR);
    }
  }
}

TEST_F(ObjectsTest, MadeUpHandles) {
  int on_the_stack = 0;
  const auto on_the_heap = std::make_unique<std::array<char, 4096>>();
  std::vector<uint64_t> values{1,
                               0x10,
                               0xdeadbeef,
                               ~uint64_t{0},
                               ~uint64_t{0} - 15,
                               uint64_t{1} << 63,
                               reinterpret_cast<uint64_t>(&on_the_stack),
                               reinterpret_cast<uint64_t>(on_the_heap.get())};
  for (uint64_t kind = 0; kind < 16; ++kind) {  // right kind, wrong rest
    values.push_back(kind << 60 | 0xffffffffff0);
    values.push_back(kind << 60 | uint64_t{0xfffffffe} << 28);
    values.push_back(kind << 60 | 0x8);
  }
  for (const Call& row : Calls()) {
    for (const uint64_t value : values) {
      if (value) ExpectRefused(row, reinterpret_cast<void*>(value), ACLNN_ERR_PARAM_INVALID);
    }
  }
}

TEST_F(ObjectsTest, HandlesOfAnotherKind) {
  for (const KindRow& kind : Kinds()) {
    void* handle = kind.create();
    for (const Call& row : Calls()) {
      if (row.kind != kind.kind) ExpectRefused(row, handle, ACLNN_ERR_PARAM_INVALID);
    }
    EXPECT_EQ(kind.destroy(handle), 0);  // none of them touched it
  }
}

TEST_F(ObjectsTest, DeadHandles) {
  for (const KindRow& kind : Kinds()) {
    void* dead = kind.create();
    EXPECT_EQ(kind.destroy(dead), 0);
    void* reuses_the_slot = kind.create();
    EXPECT_NE(dead, reuses_the_slot);
    for (const Call& row : Calls()) {
      if (row.kind == kind.kind) ExpectRefused(row, dead, ACLNN_ERR_PARAM_INVALID);
    }
    EXPECT_EQ(kind.destroy(reuses_the_slot), 0);
  }
}

TEST_F(ObjectsTest, HandleValuesDoNotComeBack) {
  std::vector<void*> seen;
  for (int i = 0; i < 1000; ++i) {
    void* handle = MakeScalar(1);
    EXPECT_EQ(std::find(seen.begin(), seen.end(), handle), seen.end());
    seen.push_back(handle);
    aclDestroyScalar(static_cast<aclScalar*>(handle));
  }
}

TEST_F(ObjectsTest, GettersNeedSomewhereToWrite) {
  aclTensor* t = MakeTensor({2});
  int64_t* dims = nullptr;
  uint64_t count = 0;
  for (DimsGetter get : {aclGetViewShape, aclGetStorageShape, aclGetViewStrides}) {
    EXPECT_EQ(get(t, nullptr, &count), ACLNN_ERR_PARAM_NULLPTR);
    EXPECT_EQ(get(t, &dims, nullptr), ACLNN_ERR_PARAM_NULLPTR);
    EXPECT_EQ(dims, nullptr);  // nothing allocated that nobody would free
  }
  EXPECT_EQ(aclGetViewOffset(t, nullptr), ACLNN_ERR_PARAM_NULLPTR);
  EXPECT_EQ(aclGetFormat(t, nullptr), ACLNN_ERR_PARAM_NULLPTR);
  EXPECT_EQ(aclGetDataType(t, nullptr), ACLNN_ERR_PARAM_NULLPTR);
  EXPECT_EQ(aclGetRawTensorAddr(t, nullptr), ACLNN_ERR_PARAM_NULLPTR);
  ExpectText("aclGetRawTensorAddr: addr must not be null");
  aclDestroyTensor(t);
  aclIntArray* array = aclCreateIntArray(nullptr, 0);
  EXPECT_EQ(aclGetIntArraySize(array, nullptr), ACLNN_ERR_PARAM_NULLPTR);
  ExpectText("aclGetIntArraySize: size must not be null");
  aclDestroyIntArray(array);
}

TEST_F(ObjectsTest, DumpChecksItsArgumentsAndWritesNothing) {
  aclTensor* t = MakeTensor({2});
  aclTensor* tensors[] = {t, nullptr};
  EXPECT_EQ(aclDumpOpTensors("Type", "name", tensors, 1, 1, nullptr), 0);
  EXPECT_EQ(aclDumpOpTensors("Type", "name", nullptr, 0, 0, nullptr), 0);
  EXPECT_EQ(aclDumpOpTensors(nullptr, "name", tensors, 1, 1, nullptr), ACLNN_ERR_PARAM_NULLPTR);
  EXPECT_EQ(aclDumpOpTensors("Type", nullptr, tensors, 1, 1, nullptr), ACLNN_ERR_PARAM_NULLPTR);
  EXPECT_EQ(aclDumpOpTensors("Type", "name", nullptr, 1, 0, nullptr), ACLNN_ERR_PARAM_NULLPTR);
  EXPECT_EQ(aclDumpOpTensors("Type", "name", tensors, ~size_t{0}, 2, nullptr),
            ACLNN_ERR_PARAM_INVALID);
  aclDestroyTensor(t);
  EXPECT_EQ(aclDumpOpTensors("Type", "name", tensors, 1, 1, nullptr), ACLNN_ERR_PARAM_INVALID);
  ExpectText("aclDumpOpTensors: tensors[0] is not a live aclTensor");
}

// ---- threads ----

constexpr int kThreads = 8;

void InThreads(const std::function<void(int)>& body) {
  std::vector<std::thread> threads;
  for (int i = 0; i < kThreads; ++i) threads.emplace_back(body, i);
  for (std::thread& thread : threads) thread.join();
}

TEST_F(ObjectsTest, ThreadsCreateAndDestroyAtOnce) {
  std::atomic<int> failures{0};
  InThreads([&](int thread) {
    for (int64_t i = 1; i <= 5000; ++i) {
      aclTensor* a = MakeTensor({thread + 1, i});
      aclTensor* b = MakeTensor({i});
      const aclTensor* members[] = {a, b};
      aclTensorList* list = aclCreateTensorList(members, 2);
      aclScalar* s = MakeScalar(static_cast<float>(i));
      aclIntArray* array = aclCreateIntArray(&i, 1);
      const bool fine = Tensors().Get(a)->dims == Dims({thread + 1, i}) &&
                        Tensors().Get(b)->dims == Dims({i}) &&
                        Scalars().Get(s)->AsFloat() == static_cast<float>(i) &&
                        IntArrays().Get(array)->values[0] == i;
      const int codes =
          aclDestroyTensorList(list) + aclDestroyScalar(s) + aclDestroyIntArray(array);
      failures += !fine || codes != 0;
    }
  });
  EXPECT_EQ(failures, 0);
}

TEST_F(ObjectsTest, OfManyDestroysExactlyOneSucceeds) {
  for (int round = 0; round < 50; ++round) {
    aclTensor* t = MakeTensor({1});
    std::atomic<int> succeeded{0};
    InThreads([&](int) { succeeded += aclDestroyTensor(t) == 0; });
    ASSERT_EQ(succeeded, 1);
  }
}

TEST_F(ObjectsTest, ObjectsMoveBetweenThreads) {
  std::vector<aclTensor*> tensors;
  std::thread([&] {
    for (int64_t i = 0; i < 100; ++i) tensors.push_back(MakeTensor({i}));
  }).join();
  for (int64_t i = 0; i < 100; ++i) {
    EXPECT_EQ(Read(aclGetViewShape, tensors[i]), Numbers{i});
    EXPECT_EQ(aclDestroyTensor(tensors[i]), 0);
  }
}

}  // namespace
}  // namespace anyacl
