// SPDX-License-Identifier: Apache-2.0
// Copyright The AnyACL Authors
//
// Object functions of aclnn/acl_meta.h. Those about executors are in executors.cc.
//
// Every argument is checked before anything is written, so a refused call changes nothing. Null is
// 161001, a handle that is not alive 161002.
#include "abi/objects.h"

#include <fmt/format.h>

#include <algorithm>
#include <cstring>
#include <type_traits>

#include "aclnn/acl_meta.h"
#include "core/border.h"
#include "core/codes.h"
#include "core/log.h"

namespace anyacl {
namespace {

// An uninitialised count is refused instead of read; real arrays have a few entries.
constexpr uint64_t kMaxEntries = uint64_t{1} << 28;

Status NullArgument(const char* function, const char* argument) {
  return {code::kNull, fmt::format("{}: {} must not be null", function, argument)};
}

Status NotAlive(const char* function, const std::string& argument, const char* type) {
  return {code::kInvalid,
          fmt::format("{}: {} is not a live {}; it was destroyed before or never created", function,
                      argument, type)};
}

Status OutOfHandles(const char* function, const char* type) {
  return {code::kInner, fmt::format("{}: too many live {} objects", function, type)};
}

// The border for functions that return a handle: null on failure, and the text explains it.
template <class T, class Body>
T* CreateBorder(const char* function, Body&& body) noexcept {
  void* handle = nullptr;
  const int32_t result =
      AclnnBorder(function, [&]() -> Status { return body(function, &handle); });
  return result == 0 ? static_cast<T*>(handle) : nullptr;
}

// Finds the object and hands it to `body`.
template <class Table, class Body>
aclnnStatus WithObject(const char* function, const char* argument, const char* type, Table& table,
                       const void* handle, Body&& body) noexcept {
  return AclnnBorder(function, [&]() -> Status {
    if (!handle) return NullArgument(function, argument);
    auto* const object = table.Get(handle);
    if (!object) return NotAlive(function, argument, type);
    return body(*object);
  });
}

template <class Table>
aclnnStatus DestroyObject(const char* function, const char* argument, const char* type,
                          Table& table, const void* handle) noexcept {
  if (!handle || table.Destroy(handle)) return 0;
  return AclnnBorder(function,
                [&]() -> Status { return NotAlive(function, argument, type); });
}

// ---- tensors ----

struct Description {
  const int64_t* dims;
  uint64_t rank;
  aclDataType dtype;
  const int64_t* strides;
  int64_t offset;
  aclFormat format;
  const int64_t* storage;
  uint64_t storage_rank;
  void* data;
};

Status CheckNumbers(const char* function, const char* argument, const int64_t* values, uint64_t n) {
  if (n > kMaxRank) {
    return {code::kInvalid, fmt::format("{}: {} can have at most {} entries, got {}", function,
                                        argument, kMaxRank, n)};
  }
  if (n > 0 && !values) {
    return {code::kNull,
            fmt::format("{}: {} must not be null with {} dims", function, argument, n)};
  }
  for (uint64_t i = 0; i < n; ++i) {
    if (values[i] < 0) [[unlikely]] {
      return {code::kInvalid, fmt::format("{}: {}[{}] must not be negative, got {}", function,
                                          argument, i, values[i])};
    }
  }
  return {};
}

Status Check(const char* function, const Description& d) {
  ANYACL_RETURN_IF_ERROR(CheckNumbers(function, "viewDims", d.dims, d.rank));
  if (d.strides) ANYACL_RETURN_IF_ERROR(CheckNumbers(function, "stride", d.strides, d.rank));
  ANYACL_RETURN_IF_ERROR(CheckNumbers(function, "storageDims", d.storage, d.storage_rank));
  if (d.offset < 0) {
    return {code::kInvalid,
            fmt::format("{}: offset must not be negative, got {}", function, d.offset)};
  }
  return {};
}

// In place: an assignment would copy room for 25 numbers, and this is on the path of every call.
void Assign(const int64_t* values, uint64_t n, Dims* dims) {
  dims->resize(static_cast<int>(n));
  for (int i = 0; i < dims->rank(); ++i) (*dims)[i] = values[i];
}

void Fill(const char* function, const Description& d, Tensor* tensor) {
  tensor->number = 0;  // until it is whole
  tensor->dtype = static_cast<DType>(d.dtype);
  tensor->format = static_cast<Format>(d.format);
  Assign(d.dims, d.rank, &tensor->dims);
  if (d.strides) {
    Assign(d.strides, d.rank, &tensor->strides);
  } else {
    tensor->strides = ContiguousStrides(tensor->dims);
  }
  tensor->offset = d.offset;
  Assign(d.storage, d.storage_rank, &tensor->storage);
  tensor->data = d.data;
  tensor->Identify();
  if (log::Enabled(log::Level::kWarn) && IsPrivate(tensor->format)) {
    log::Write(log::Level::kWarn,
               fmt::format("{}: format {} is recorded; its storage layout is not", function,
                           Name(tensor->format)));
  }
}

Status CreateTensor(const char* function, const Description& d, void** handle) {
  ANYACL_RETURN_IF_ERROR(Check(function, d));
  Tensor* tensor = nullptr;
  *handle = Tensors().Create(&tensor);
  if (!*handle) return OutOfHandles(function, "aclTensor");
  Fill(function, d, tensor);
  return {};
}

template <class Body>
aclnnStatus WithTensor(const char* function, const aclTensor* tensor, Body&& body) noexcept {
  return WithObject(function, "tensor", "aclTensor", Tensors(), tensor, body);
}

template <class T, class Read>
aclnnStatus GetField(const char* function, const aclTensor* tensor, const char* out_name, T* out,
                     Read&& read) noexcept {
  return WithTensor(function, tensor, [&](const Tensor& t) -> Status {
    if (!out) return NullArgument(function, out_name);
    *out = static_cast<T>(read(t));
    return {};
  });
}

aclnnStatus GetDims(const char* function, const aclTensor* tensor, Dims Tensor::*field,
                    const char* values_name, int64_t** values, const char* count_name,
                    uint64_t* count) noexcept {
  return WithTensor(function, tensor, [&](const Tensor& t) -> Status {
    if (!values) return NullArgument(function, values_name);
    if (!count) return NullArgument(function, count_name);
    const Dims& dims = t.*field;
    *values = new int64_t[dims.rank()];  // rank 0 too: the caller may always delete[] it
    std::copy(dims.begin(), dims.end(), *values);
    *count = static_cast<uint64_t>(dims.rank());
    return {};
  });
}

// ---- scalars, arrays, lists ----

// What aclCreateScalar may read behind `value`. The size of the packed 4 and 6 bit floats is that of
// a whole pack, but one value is one byte.
size_t ValueBytes(DType dtype) {
  const bool is_packed_float = dtype >= DType::kF6E3M2 && dtype <= DType::kF4E1M2;
  return is_packed_float ? 1 : SizeOf(dtype);
}

Status CreateScalar(const char* function, const void* value, DType dtype, void** handle) {
  if (!value) return NullArgument(function, "value");
  const size_t bytes = ValueBytes(dtype);
  if (bytes == 0) {
    return {code::kInvalid,
            fmt::format("{}: dataType must be a type with a size, got {}", function, Name(dtype))};
  }
  Scalar* scalar = nullptr;
  *handle = Scalars().Create(&scalar);
  if (!*handle) return OutOfHandles(function, "aclScalar");
  scalar->dtype = dtype;
  std::memcpy(scalar->bytes, value, bytes);
  return {};
}

Status CheckCount(const char* function, uint64_t size) {
  if (size <= kMaxEntries) return {};
  return {code::kInvalid,
          fmt::format("{}: size must be at most {}, got {}", function, kMaxEntries, size)};
}

// Copies `size` values into a new object; null makes an empty one, as in the original.
template <class Handle, class Table, class Value>
Handle* CreateArray(const char* function, const char* type, Table& table, const Value* value,
                    uint64_t size) noexcept {
  return CreateBorder<Handle>(function, [&](const char*, void** handle) -> Status {
    if (value) ANYACL_RETURN_IF_ERROR(CheckCount(function, size));
    decltype(table.Get(nullptr)->values) values;
    // As bytes: a caller's bool may hold any byte, and reading that as bool is undefined.
    using Element = typename decltype(values)::value_type;
    static_assert(sizeof(Element) == sizeof(Value));
    const auto* const first = reinterpret_cast<const Element*>(value);
    if (value) values.assign(first, first + size);
    std::remove_pointer_t<decltype(table.Get(nullptr))>* array = nullptr;
    *handle = table.Create(&array);
    if (!*handle) return OutOfHandles(function, type);
    array->values = std::move(values);
    return {};
  });
}

template <class Handle, class Table, class Members, class Member>
Handle* CreateList(const char* function, const char* type, Table& table, const char* member_type,
                   const Members& members, const Member* const* value, uint64_t size) noexcept {
  return CreateBorder<Handle>(function, [&](const char*, void** handle) -> Status {
    std::vector<const void*> handles;
    if (value) {
      ANYACL_RETURN_IF_ERROR(CheckCount(function, size));
      handles.assign(value, value + size);
    }
    for (size_t i = 0; i < handles.size(); ++i) {
      if (handles[i] && !members.Get(handles[i])) {
        return NotAlive(function, fmt::format("value[{}]", i), member_type);
      }
    }
    std::remove_pointer_t<decltype(table.Get(nullptr))>* list = nullptr;
    *handle = table.Create(&list);
    if (!*handle) return OutOfHandles(function, type);
    list->handles = std::move(handles);
    return {};
  });
}

// Members that the program destroyed itself, or that are in the list twice, are dead by now.
template <class Table, class Members>
aclnnStatus DestroyList(const char* function, const char* type, Table& table, Members& members,
                        const void* handle) noexcept {
  if (!handle) return 0;
  auto* const list = table.Retire(handle);
  if (!list) {
    return AclnnBorder(function,
                  [&]() -> Status { return NotAlive(function, "array", type); });
  }
  for (const void* member : list->handles) members.Destroy(member);
  table.Release(list);
  return 0;
}

template <class Table, class Count>
aclnnStatus GetSize(const char* function, const char* argument, const char* type, Table& table,
                    const void* handle, uint64_t* size, Count&& count) noexcept {
  return WithObject(function, argument, type, table, handle, [&](const auto& object) -> Status {
    if (!size) return NullArgument(function, "size");
    *size = count(object);
    return {};
  });
}

constexpr auto kCountValues = [](const auto& array) { return array.values.size(); };
constexpr auto kCountHandles = [](const auto& list) { return list.handles.size(); };

Status CheckDump(const char* function, const char* type, const char* name, aclTensor** tensors,
                 uint64_t inputs, uint64_t outputs) {
  if (!type) return NullArgument(function, "opType");
  if (!name) return NullArgument(function, "opName");
  ANYACL_RETURN_IF_ERROR(CheckCount(function, std::max(inputs, outputs)));
  if (inputs + outputs > 0 && !tensors) return NullArgument(function, "tensors");
  for (uint64_t i = 0; i < inputs + outputs; ++i) {
    if (tensors[i] && !Tensors().Get(tensors[i])) {
      return NotAlive(function, fmt::format("tensors[{}]", i), "aclTensor");
    }
  }
  return {};
}

}  // namespace
}  // namespace anyacl

using namespace anyacl;  // NOLINT: what follows is the C border of this namespace

// ---- creation ----

aclTensor* aclCreateTensor(const int64_t* viewDims, uint64_t viewDimsNum, aclDataType dataType,
                           const int64_t* stride, int64_t offset, aclFormat format,
                           const int64_t* storageDims, uint64_t storageDimsNum, void* tensorData) {
  const Description d{viewDims, viewDimsNum, dataType,       stride,    offset,
                      format,   storageDims, storageDimsNum, tensorData};
  return CreateBorder<aclTensor>(__func__, [&](const char* function, void** handle) {
    return CreateTensor(function, d, handle);
  });
}

aclnnStatus aclInitTensor(aclTensor* tensor, const int64_t* viewDims, uint64_t viewDimsNum,
                          aclDataType dataType, const int64_t* stride, int64_t offset,
                          aclFormat format, const int64_t* storageDims, uint64_t storageDimsNum,
                          void* tensorDataAddr) {
  const Description d{viewDims, viewDimsNum, dataType,       stride,        offset,
                      format,   storageDims, storageDimsNum, tensorDataAddr};
  const char* const function = __func__;
  return WithTensor(function, tensor, [&](Tensor& object) -> Status {
    ANYACL_RETURN_IF_ERROR(Check(function, d));
    Fill(function, d, &object);
    return {};
  });
}

aclScalar* aclCreateScalar(void* value, aclDataType dataType) {
  return CreateBorder<aclScalar>(__func__, [&](const char* function, void** handle) {
    return CreateScalar(function, value, static_cast<DType>(dataType), handle);
  });
}

aclIntArray* aclCreateIntArray(const int64_t* value, uint64_t size) {
  return CreateArray<aclIntArray>(__func__, "aclIntArray", IntArrays(), value, size);
}

aclFloatArray* aclCreateFloatArray(const float* value, uint64_t size) {
  return CreateArray<aclFloatArray>(__func__, "aclFloatArray", FloatArrays(), value, size);
}

aclBoolArray* aclCreateBoolArray(const bool* value, uint64_t size) {
  return CreateArray<aclBoolArray>(__func__, "aclBoolArray", BoolArrays(), value, size);
}

aclTensorList* aclCreateTensorList(const aclTensor* const* value, uint64_t size) {
  return CreateList<aclTensorList>(__func__, "aclTensorList", TensorLists(), "aclTensor", Tensors(),
                                   value, size);
}

aclScalarList* aclCreateScalarList(const aclScalar* const* value, uint64_t size) {
  return CreateList<aclScalarList>(__func__, "aclScalarList", ScalarLists(), "aclScalar", Scalars(),
                                   value, size);
}

// ---- destruction ----

aclnnStatus aclDestroyTensor(const aclTensor* tensor) {
  return DestroyObject(__func__, "tensor", "aclTensor", Tensors(), tensor);
}

aclnnStatus aclDestroyScalar(const aclScalar* scalar) {
  return DestroyObject(__func__, "scalar", "aclScalar", Scalars(), scalar);
}

aclnnStatus aclDestroyIntArray(const aclIntArray* array) {
  return DestroyObject(__func__, "array", "aclIntArray", IntArrays(), array);
}

aclnnStatus aclDestroyFloatArray(const aclFloatArray* array) {
  return DestroyObject(__func__, "array", "aclFloatArray", FloatArrays(), array);
}

aclnnStatus aclDestroyBoolArray(const aclBoolArray* array) {
  return DestroyObject(__func__, "array", "aclBoolArray", BoolArrays(), array);
}

aclnnStatus aclDestroyTensorList(const aclTensorList* array) {
  return DestroyList(__func__, "aclTensorList", TensorLists(), Tensors(), array);
}

aclnnStatus aclDestroyScalarList(const aclScalarList* array) {
  return DestroyList(__func__, "aclScalarList", ScalarLists(), Scalars(), array);
}

// ---- queries ----

aclnnStatus aclGetViewShape(const aclTensor* tensor, int64_t** viewDims, uint64_t* viewDimsNum) {
  return GetDims(__func__, tensor, &Tensor::dims, "viewDims", viewDims, "viewDimsNum", viewDimsNum);
}

aclnnStatus aclGetStorageShape(const aclTensor* tensor, int64_t** storageDims,
                               uint64_t* storageDimsNum) {
  return GetDims(__func__, tensor, &Tensor::storage, "storageDims", storageDims, "storageDimsNum",
                 storageDimsNum);
}

aclnnStatus aclGetViewStrides(const aclTensor* tensor, int64_t** stridesValue,
                              uint64_t* stridesNum) {
  return GetDims(__func__, tensor, &Tensor::strides, "stridesValue", stridesValue, "stridesNum",
                 stridesNum);
}

aclnnStatus aclGetViewOffset(const aclTensor* tensor, int64_t* offset) {
  return GetField(__func__, tensor, "offset", offset, [](const Tensor& t) { return t.offset; });
}

aclnnStatus aclGetFormat(const aclTensor* tensor, aclFormat* format) {
  return GetField(__func__, tensor, "format", format, [](const Tensor& t) { return t.format; });
}

aclnnStatus aclGetDataType(const aclTensor* tensor, aclDataType* dataType) {
  return GetField(__func__, tensor, "dataType", dataType, [](const Tensor& t) { return t.dtype; });
}

aclnnStatus aclGetIntArraySize(const aclIntArray* array, uint64_t* size) {
  return GetSize(__func__, "array", "aclIntArray", IntArrays(), array, size, kCountValues);
}

aclnnStatus aclGetFloatArraySize(const aclFloatArray* array, uint64_t* size) {
  return GetSize(__func__, "array", "aclFloatArray", FloatArrays(), array, size, kCountValues);
}

aclnnStatus aclGetBoolArraySize(const aclBoolArray* array, uint64_t* size) {
  return GetSize(__func__, "array", "aclBoolArray", BoolArrays(), array, size, kCountValues);
}

aclnnStatus aclGetTensorListSize(const aclTensorList* tensorList, uint64_t* size) {
  return GetSize(__func__, "tensorList", "aclTensorList", TensorLists(), tensorList, size,
                 kCountHandles);
}

aclnnStatus aclGetScalarListSize(const aclScalarList* scalarList, uint64_t* size) {
  return GetSize(__func__, "scalarList", "aclScalarList", ScalarLists(), scalarList, size,
                 kCountHandles);
}

// ---- addresses ----

aclnnStatus aclSetRawTensorAddr(aclTensor* tensor, void* addr) {
  return WithTensor(__func__, tensor, [&](Tensor& t) -> Status {
    t.data = addr;
    ++t.repointed;
    return {};
  });
}

aclnnStatus aclGetRawTensorAddr(const aclTensor* tensor, void** addr) {
  return GetField(__func__, tensor, "addr", addr, [](const Tensor& t) { return t.data; });
}

// ---- debugging ----

// Nothing here can switch dumping on, so a well-formed call has nothing to write. The stream is not
// looked at, because nothing is put on it.
aclnnStatus aclDumpOpTensors(const char* opType, const char* opName, aclTensor** tensors,
                             size_t inputTensorNum, size_t outputTensorNum, aclrtStream) {
  const char* const function = __func__;
  return AclnnBorder(function, [&]() -> Status {
    return CheckDump(function, opType, opName, tensors, inputTensorNum, outputTensorNum);
  });
}
