// SPDX-License-Identifier: Apache-2.0
// Copyright The AnyACL Authors
#include "fuzz/border_fuzz.h"

#include <algorithm>
#include <bit>
#include <cstdio>
#include <cstdlib>
#include <cstring>
#include <map>
#include <memory>
#include <set>
#include <span>
#include <vector>

#include "acl/acl.h"
#include "aclnn/aclnn_base.h"
#include "core/tensor.h"
#include "harness/cases.h"
#include "harness/family.h"
#include "operators_with_cases.h"

namespace anyacl::fuzz {
namespace {

constexpr int64_t kSpan = 8192;  // bytes behind its address that a tensor with memory may reach
constexpr int64_t kMaxElements = 2048;  // of such a tensor: a broadcast view is long in few bytes
constexpr uint64_t kMaxWorkspace = 1 << 20;
constexpr int kMaxSteps = 64;

[[noreturn]] void Broken(const char* what) {
  std::fprintf(stderr, "fuzz: %s\n", what);
  std::abort();
}

void Expect(bool holds, const char* what) {
  if (!holds) Broken(what);
}

// The input; zeros behind its end.
class Source {
 public:
  Source(const uint8_t* data, size_t size) : data_(data), left_(size) {}
  bool empty() const { return left_ == 0; }
  uint8_t Byte() {
    if (left_ == 0) return 0;
    --left_;
    return *data_++;
  }
  int Below(int n) { return Byte() % n; }
  template <class T>
  T AnyOf(std::span<const T> items) {  // which may be more than a byte can tell apart
    const size_t high = Byte();
    return items[(high << 8 | Byte()) % items.size()];
  }
  bool Chance(int one_in) { return Byte() % one_in == 0; }
  uint64_t Word() {
    uint64_t word = 0;
    for (int i = 0; i < 8; ++i) word = word << 8 | Byte();
    return word;
  }
  // Mostly small, sometimes anything.
  int64_t Number() {
    const uint8_t kind = Byte();
    if (kind < 200) return kind % 9;
    if (kind < 240) return Byte();
    return static_cast<int64_t>(Word());
  }

 private:
  const uint8_t* data_;
  size_t left_;
};

struct TensorInfo {
  bool tame = false;  // fits the memory, wherever its address points
};
struct ExecutorInfo {
  const Operator* op = nullptr;
  uint64_t workspace = 0;
  bool tame = false;  // so are all tensors it was planned with
};

// All objects of one input. Handles stay in the pools after they die, to be used again.
class World {
 public:
  explicit World(Source& source) : in_(source), exact_(source.Chance(2)) {
    arena_.resize(3 * kSpan);
    other_.resize(kSpan);
    for (unsigned char& b : arena_) b = static_cast<unsigned char>(&b - arena_.data());
  }

  ~World() {
    for (aclrtStream s : streams_) aclrtSynchronizeStream(s);
    aclrtSynchronizeStream(nullptr);
    aclrtSynchronizeDevice();
    for (const auto& [handle, info] : executors_)
      aclDestroyAclOpExecutor(Cast<aclOpExecutor>(handle));
    for (void* list : lists_) aclDestroyTensorList(Cast<aclTensorList>(list));
    for (const auto& [handle, info] : tensors_) aclDestroyTensor(Cast<aclTensor>(handle));
    for (void* scalar : scalars_) aclDestroyScalar(Cast<aclScalar>(scalar));
    for (void* array : arrays_) aclDestroyIntArray(Cast<aclIntArray>(array));
    for (void* list : scalar_lists_) aclDestroyScalarList(Cast<aclScalarList>(list));
    for (void* array : float_arrays_) aclDestroyFloatArray(Cast<aclFloatArray>(array));
    for (void* mask : masks_) aclDestroyBoolArray(Cast<aclBoolArray>(mask));
    for (void* event : events_) aclrtDestroyEvent(event);
    for (void* stream : streams_) aclrtDestroyStream(stream);
    for (void* memory : blocks_) aclrtFree(memory);
    aclGetRecentErrMsg();
  }

  int runs() const { return runs_; }

  void Step() {
    switch (in_.Below(24)) {
      case 0:
      case 1:
      case 2:
        return MakeTensor();
      case 3:
        return MakeScalar();
      case 4:
      case 5:
      case 6:
        return PhaseOne();
      case 7:
      case 8:
      case 9:
        return PhaseTwo();
      case 10:
        return DestroyTensor();
      case 11:
        return DestroyOther();
      case 12:
        return DestroyExecutor();
      case 13:
        return MakeRepeatable();
      case 14:
        return SetAddress();
      case 15:
        return InitTensor();
      case 16:
        return AskTensor();
      case 17:
        return MakeList();
      case 18:
        return MakeArray();
      case 19:
        return UseStream();
      case 20:
        return UseEvent();
      case 21:
        return UseMemory();
      case 22:
        return Copy();
      default:
        return CompleteCall();
    }
  }

 private:
  template <class T>
  static T* Cast(const void* handle) {
    return static_cast<T*>(const_cast<void*>(handle));
  }

  // A handle of this pool, or of another, or nobody's.
  template <class Pool>
  void* Pick(const Pool& pool) {
    const int kind = in_.Below(16);
    if (kind == 0) return nullptr;
    if (kind == 1) return PickWild();
    if (kind == 2 && !tensors_.empty()) return tensors_.begin()->first;
    if (pool.empty()) return nullptr;
    auto at = pool.begin();
    std::advance(at, in_.Below(static_cast<int>(std::min<size_t>(pool.size(), 255))));
    if constexpr (requires { at->first; }) {
      return at->first;
    } else {
      return *at;
    }
  }
  void* PickWild() {
    switch (in_.Below(5)) {
      case 0:
        return arena_.data();
      case 1:
        return reinterpret_cast<void*>(uintptr_t{in_.Byte()});
      case 2:
        return reinterpret_cast<void*>(in_.Word());
      case 3:
        return &in_;
      default:  // a handle with one bit turned
        if (tensors_.empty()) return nullptr;
        return reinterpret_cast<void*>(reinterpret_cast<uintptr_t>(tensors_.begin()->first) ^
                                       uintptr_t{1} << in_.Below(64));
    }
  }

  // ---- tensors ----

  struct Shape {
    Dims dims, strides;
    int64_t offset = 0;
    bool has_strides = false;
    aclDataType dtype = ACL_FLOAT;
    aclFormat format = ACL_FORMAT_ND;
    int64_t bytes = -1;  // how far it reaches; -1: no memory is that long
  };

  aclDataType AnyType() {
    static constexpr aclDataType kUsual[] = {ACL_FLOAT,  ACL_FLOAT16,   ACL_BF16,
                                             ACL_DOUBLE, ACL_COMPLEX64, ACL_COMPLEX128};
    const int kind = in_.Byte();
    if (kind < 160) return kUsual[kind % 3];
    if (kind < 240) return kUsual[kind % 6];
    return static_cast<aclDataType>(static_cast<int8_t>(in_.Byte()));
  }

  Shape AnyShape() {
    Shape s;
    if (in_.Chance(2) && has_last_) {  // operators want equal shapes
      s.dims = last_;
    } else {
      const int rank = in_.Below(10);
      for (int i = 0; i < rank; ++i) s.dims.push_back(in_.Number());
      last_ = s.dims;
      has_last_ = true;
    }
    s.dtype = AnyType();
    s.format =
        in_.Chance(4) ? static_cast<aclFormat>(static_cast<int8_t>(in_.Byte())) : ACL_FORMAT_ND;
    s.strides = ContiguousStrides(s.dims);
    s.has_strides = in_.Chance(3);
    if (s.has_strides) {
      for (int i = 0; i < s.strides.rank(); ++i) {
        if (in_.Chance(2)) s.strides[i] = in_.Number();
      }
      s.offset = in_.Number();
    }
    s.bytes = BytesOf(s);
    return s;
  }

  static int64_t BytesOf(const Shape& s) {
    Tensor t;
    t.dims = s.dims;
    t.strides = s.strides;
    t.offset = s.offset;
    Extent extent;
    for (int64_t n : s.dims) {
      if (n < 0) return -1;
    }
    for (int64_t n : s.strides) {
      if (n < 0) return -1;
    }
    const int64_t size =
        static_cast<int64_t>(std::max<size_t>(SizeOf(static_cast<DType>(s.dtype)), 1));
    if (s.offset < 0 || s.offset > kSpan || t.numel() < 0 || t.numel() > kMaxElements) return -1;
    if (!GetExtent(t, &extent) || extent.end > kSpan / size) return -1;
    return extent.end * size;
  }

  // With exact_, so that the view ends where the memory ends; the address of a tensor then never
  // changes.
  void* AddressFor(const Shape& s) {
    if (s.bytes < 0 || in_.Chance(16)) return nullptr;
    if (exact_) return arena_.data() + arena_.size() - s.bytes;
    return arena_.data() + 16 * in_.Byte();
  }

  void MakeTensor() {
    const Shape s = AnyShape();
    aclTensor* const t = aclCreateTensor(s.dims.begin(), s.dims.rank(), s.dtype,
                                         s.has_strides ? s.strides.begin() : nullptr, s.offset,
                                         s.format, s.dims.begin(), s.dims.rank(), AddressFor(s));
    if (t) tensors_[t] = {s.bytes >= 0};
  }

  void InitTensor() {
    if (exact_) return;  // an executor may have planned with the old shape
    const Shape s = AnyShape();
    void* const handle = Pick(tensors_);
    const auto known = tensors_.find(handle);
    // Only from tame to tame: whoever planned with it keeps its shape and takes the new address.
    if (known != tensors_.end() && (!known->second.tame || s.bytes < 0)) return;
    aclInitTensor(Cast<aclTensor>(handle), s.dims.begin(), s.dims.rank(), s.dtype,
                  s.has_strides ? s.strides.begin() : nullptr, s.offset, s.format, s.dims.begin(),
                  s.dims.rank(), AddressFor(s));
  }

  void AskTensor() {
    const auto* const t = Cast<aclTensor>(Pick(tensors_));
    int64_t* numbers = nullptr;
    uint64_t count = 0;
    const bool null = in_.Chance(8);
    switch (in_.Below(7)) {
      case 0:
        if (aclGetViewShape(t, null ? nullptr : &numbers, &count) == 0) delete[] numbers;
        return;
      case 1:
        if (aclGetViewStrides(t, &numbers, null ? nullptr : &count) == 0) delete[] numbers;
        return;
      case 2:
        if (aclGetStorageShape(t, &numbers, &count) == 0) delete[] numbers;
        return;
      case 3: {
        int64_t offset;
        aclGetViewOffset(t, null ? nullptr : &offset);
        return;
      }
      case 4: {
        aclFormat format;
        aclGetFormat(t, null ? nullptr : &format);
        return;
      }
      case 5: {
        aclDataType dtype;
        aclGetDataType(t, null ? nullptr : &dtype);
        return;
      }
      default: {
        void* address;
        aclGetRawTensorAddr(t, null ? nullptr : &address);
        return;
      }
    }
  }

  // ---- other objects ----

  void MakeScalar() {
    unsigned char value[16];
    for (unsigned char& b : value) b = in_.Byte();
    const aclDataType dtype = in_.Chance(2) ? ACL_FLOAT : AnyType();
    if (in_.Chance(2)) {
      const float number = static_cast<float>(in_.Byte()) / 64 - 1;
      std::memcpy(value, &number, sizeof(number));
    }
    if (aclScalar* const s = aclCreateScalar(in_.Chance(16) ? nullptr : value, dtype))
      scalars_.insert(s);
  }

  void MakeArray() {
    const int64_t values[8] = {1, 2, 3};
    const bool null = in_.Chance(4);
    aclIntArray* const a =
        aclCreateIntArray(null ? nullptr : values, null ? in_.Word() : in_.Below(9));
    uint64_t size = 0;
    if (a) arrays_.insert(a);
    aclGetIntArraySize(Cast<aclIntArray>(Pick(arrays_)), &size);
  }

  void MakeList() {
    const aclTensor* members[4];
    const int count = in_.Below(5);
    for (int i = 0; i < count; ++i) members[i] = Cast<aclTensor>(Pick(tensors_));
    if (aclTensorList* const list = aclCreateTensorList(members, count)) lists_.insert(list);
  }

  void DestroyTensor() { aclDestroyTensor(Cast<aclTensor>(Pick(tensors_))); }
  void DestroyExecutor() { aclDestroyAclOpExecutor(Cast<aclOpExecutor>(Pick(executors_))); }
  void MakeRepeatable() { aclSetAclOpExecutorRepeatable(Cast<aclOpExecutor>(Pick(executors_))); }

  void DestroyOther() {
    switch (in_.Below(3)) {
      case 0:
        aclDestroyScalar(Cast<aclScalar>(Pick(scalars_)));
        return;
      case 1:
        aclDestroyTensorList(Cast<aclTensorList>(Pick(lists_)));
        return;
      default:
        aclDestroyIntArray(Cast<aclIntArray>(Pick(arrays_)));
        aclDestroyBoolArray(Cast<aclBoolArray>(Pick(masks_)));
        return;
    }
  }

  // ---- operators ----

  void PhaseOne() {
    const Operator& op = *in_.AnyOf(Operators());
    std::vector<RawArg> args(op.contract.args().size());
    bool tame = true;
    for (size_t i = 0; i < args.size(); ++i) {
      const contract::Arg& arg = op.contract.args()[i];
      if (arg.is_tensor()) {
        args[i].handle = Pick(tensors_);
        const auto known = tensors_.find(const_cast<void*>(args[i].handle));
        tame = tame && known != tensors_.end() && known->second.tame;
      } else if (arg.is_tensor_list()) {
        args[i].handle = Pick(lists_);
        tame = false;  // nobody wrote down what is in it
      } else if (arg.kind == contract::ArgKind::kScalarList) {
        args[i].handle = Pick(scalar_lists_);
      } else if (arg.kind == contract::ArgKind::kString) {
        args[i].handle = in_.Chance(4) ? nullptr : "none";
      } else if (arg.kind == contract::ArgKind::kScalar) {
        args[i].handle = Pick(scalars_);
      } else if (arg.is_array()) {
        args[i].handle = Pick(arg.kind == contract::ArgKind::kBoolArray    ? masks_
                              : arg.kind == contract::ArgKind::kFloatArray ? float_arrays_
                                                                           : arrays_);
      }
      args[i].integer = in_.Number();
      args[i].real = static_cast<double>(in_.Byte()) / 16 - 4;
      args[i].flag = in_.Chance(2);
    }
    Plan(op, args, tame);
  }

  void Plan(const Operator& op, const std::vector<RawArg>& args, bool tame) {
    // What lays a tensor out anew needs more memory than its view reaches, from then on.
    if (op.relabel && args[0].handle && (tame || !exact_)) return;
    uint64_t size = 77;
    void* executor = &size;
    const bool no_size = in_.Chance(32), no_executor = in_.Chance(32);
    const int32_t status = op.entry->get_workspace_size(args.data(), no_size ? nullptr : &size,
                                                 no_executor ? nullptr : &executor);
    // Where the tensors are looked at first, a dead one answers before the result pointers do.
    const bool first = op.contract.table().result_pointers == contract::ResultPointers::kFirst;
    if (no_size || no_executor) {
      Expect(status == 161001 || (!first && status == 161002),
             "null result pointers were accepted");
    }
    if (status != 0) {
      Expect(no_size || size == 0, "a failed phase 1 left a workspace size");
      Expect(no_executor || executor == nullptr, "a failed phase 1 left an executor");
      return;
    }
    Expect(executor != nullptr && executors_.count(executor) == 0, "an executor handle came twice");
    executors_[executor] = {&op, size, tame};
  }

  void PhaseTwo() {
    void* const executor = Pick(executors_);
    const Operator* op = Operators()[0];
    uint64_t size = in_.Chance(8) ? in_.Byte() : 0;
    const auto known = executors_.find(executor);
    if (known != executors_.end()) {
      // Tensors that no memory can hold have none; but where addresses change, that may end.
      if (!known->second.tame && !exact_) return;
      op = known->second.op;
      if (!in_.Chance(8)) size = known->second.workspace;
    }
    if (size > kMaxWorkspace) return;
    void* const workspace = size > 0 && !in_.Chance(16) ? WorkspaceOf(size) : nullptr;
    const int32_t status = op->entry->run(workspace, size, executor, Pick(streams_));
    if (status != 0) return;
    Expect(known != executors_.end(), "an executor that was never made ran");
    ++runs_;
  }

  // Lives until the end of this input, because the work is asynchronous; as long as asked for, to
  // the byte.
  void* WorkspaceOf(uint64_t size) {
    workspaces_.push_back(std::make_unique<unsigned char[]>(size));
    return workspaces_.back().get();
  }

  void SetAddress() {
    if (exact_) return;
    void* const address = in_.Chance(8) ? nullptr : arena_.data() + 16 * in_.Byte();
    void* const tensor = Pick(tensors_);
    const auto known = tensors_.find(tensor);
    if (known != tensors_.end() && !known->second.tame) return;
    auto* const t = Cast<aclTensor>(tensor);
    auto* const e = Cast<aclOpExecutor>(Pick(executors_));
    const size_t index = static_cast<size_t>(in_.Number());
    switch (in_.Below(5)) {
      case 0:
        aclSetInputTensorAddr(e, index, t, address);
        return;
      case 1:
        aclSetOutputTensorAddr(e, index, t, address);
        return;
      case 2:
        aclSetTensorAddr(e, index, t, address);
        return;
      case 3:
        aclSetDynamicTensorAddr(e, index, 0, Cast<aclTensorList>(Pick(lists_)), address);
        return;
      default:
        aclSetRawTensorAddr(t, address);
        return;
    }
  }

  // A valid call from its objects to its end, because chance alone seldom makes one; or nearly valid.
  void CompleteCall() {
    const Operator* op = nullptr;
    contract::CallSpec spec;
    if (in_.Chance(4)) {
      op = in_.AnyOf(std::span<const Operator* const>(WithCases()));
      const harness::OperatorCases& cases = harness::CasesOf(op->contract.op());
      const auto& types = cases.types[in_.Below(static_cast<int>(cases.types.size()))];
      harness::Random random(in_.Word());
      spec = harness::MakeRandomCall(cases, types, random);
      AnyStrides(&spec);
    } else {
      op = in_.AnyOf(Operators());
      const std::vector<contract::CallSpec>& samples = SamplesOf(*op);
      if (samples.empty()) return;
      spec = in_.AnyOf(std::span<const contract::CallSpec>(samples));
      if (in_.Chance(3)) AnyStrides(&spec);
      for (int changes = in_.Below(3); changes > 0; --changes) Change(*op, &spec);
    }
    if (in_.Chance(2)) FillMemory();
    std::vector<RawArg> args(spec.args.size());
    bool tame = true;
    for (size_t i = 0; i < args.size(); ++i) {
      const contract::ArgSpec& arg = spec.args[i];
      args[i].integer = arg.integer;
      args[i].real = arg.real;
      args[i].flag = in_.Chance(2) ? arg.flag : in_.Chance(2);
      if (!arg.null) args[i].handle = MakeHandle(op->contract.args()[i], arg, &tame);
    }
    Plan(*op, args, tame);
    PhaseTwo();
  }

  static const std::vector<const Operator*>& WithCases() {
    static const std::vector<const Operator*> operators = OperatorsWithCases();
    return operators;
  }

  // The short calls among those its family tests it with.
  static const std::vector<contract::CallSpec>& SamplesOf(const Operator& op) {
    static std::map<const Operator*, std::vector<contract::CallSpec>> all;
    const auto [at, is_new] = all.try_emplace(&op);
    const harness::Subject* const subject = is_new ? harness::FindSubject(op.contract.op()) : nullptr;
    if (!subject) return at->second;
    harness::Calls calls(op);
    subject->sample(calls);
    for (const harness::TestCall& call : calls.all()) {
      contract::CallSpec spec;
      int64_t most = 0;
      for (const harness::TestArg& arg : call.args) {
        spec.args.push_back(arg.spec);
        if (arg.spec.tensor.dtype != DType::kUndefined) most = std::max(most, arg.spec.tensor.numel());
        for (const Tensor& t : arg.spec.tensors) most = std::max(most, t.numel());
      }
      if (most <= kMaxElements / 4) at->second.push_back(std::move(spec));
    }
    return at->second;
  }

  void AnyStrides(contract::CallSpec* spec) {
    for (contract::ArgSpec& arg : spec->args) {
      AnyStrides(&arg.tensor);
      for (Tensor& t : arg.tensors) AnyStrides(&t);
    }
  }
  void AnyStrides(Tensor* t) {
    for (int i = 0; i < t->rank(); ++i) {
      if (in_.Chance(3)) t->strides[i] = in_.Below(40);
    }
    t->offset = in_.Chance(3) ? in_.Below(9) : 0;
  }

  void Change(const Operator& op, contract::CallSpec* spec) {
    const size_t at = static_cast<size_t>(in_.Byte()) % std::max<size_t>(spec->args.size(), 1);
    if (at >= spec->args.size()) return;
    contract::ArgSpec& arg = spec->args[at];
    const contract::Arg& role = op.contract.args()[at];
    if (in_.Chance(16)) arg.null = true;
    arg.integer = in_.Chance(2) ? in_.Number() : -in_.Number();
    arg.real = in_.Chance(4) ? std::bit_cast<double>(in_.Word()) : static_cast<double>(in_.Byte()) / 16 - 4;
    if (role.is_tensor()) Change(&arg.tensor);
    if (role.is_tensor_list()) {
      if (!arg.tensors.empty()) Change(&arg.tensors[in_.Byte() % arg.tensors.size()]);
      ChangeLength(&arg.tensors);
    }
    if (role.kind == contract::ArgKind::kScalar) Change(&arg.scalar);
    if (role.kind == contract::ArgKind::kScalarList) {
      if (!arg.scalars.empty()) Change(&arg.scalars[in_.Byte() % arg.scalars.size()]);
      ChangeLength(&arg.scalars);
    }
    if (role.is_array()) {
      if (!arg.ints.values.empty()) arg.ints.values[in_.Byte() % arg.ints.values.size()] = in_.Number();
      if (!arg.floats.values.empty()) {
        arg.floats.values[in_.Byte() % arg.floats.values.size()] = std::bit_cast<float>(static_cast<uint32_t>(in_.Word()));
      }
      ChangeLength(&arg.ints.values);
      ChangeLength(&arg.floats.values);
      ChangeLength(&arg.bools.values);
    }
  }
  template <class List>
  void ChangeLength(List* list) {
    if (list->empty() || in_.Chance(2)) return;
    const auto last = list->back();
    list->resize(in_.Below(12), last);
  }
  void Change(Scalar* scalar) {
    if (in_.Chance(2)) scalar->dtype = static_cast<DType>(AnyType());
    for (unsigned char& b : scalar->bytes) b = in_.Byte();
  }
  void Change(Tensor* t) {
    switch (in_.Below(5)) {
      case 0:
        t->dtype = static_cast<DType>(AnyType());
        return;
      case 1:
        t->format = static_cast<Format>(static_cast<int8_t>(in_.Byte()));
        return;
      case 2:
        if (t->rank() > 0) t->dims[in_.Below(t->rank())] = in_.Number();
        break;
      case 3:
        t->dims.push_back(in_.Number());
        break;
      default:
        t->dims.resize(in_.Below(t->rank() + 1));
    }
    t->storage = t->dims;
    t->strides = ContiguousStrides(t->dims);
  }

  // So that what lies in memory is not always beyond everything as an index or a length.
  void FillMemory() {
    const size_t width = size_t{1} << in_.Below(4);
    const int below = 1 + in_.Below(8);
    for (size_t i = 0; i < arena_.size(); ++i) arena_[i] = i % width == 0 ? static_cast<unsigned char>(i / width % below) : 0;
  }

  const void* MakeHandle(const contract::Arg& arg, const contract::ArgSpec& spec, bool* tame) {
    switch (arg.kind) {
      case contract::ArgKind::kScalar:
        return MakeNumber(spec.scalar);
      case contract::ArgKind::kScalarList: {
        std::vector<const aclScalar*> list;
        for (const Scalar& s : spec.scalars) list.push_back(MakeNumber(s));
        return Keep(&scalar_lists_, aclCreateScalarList(list.data(), list.size()));
      }
      case contract::ArgKind::kIntArray:
        return Keep(&arrays_, aclCreateIntArray(spec.ints.values.data(), spec.ints.values.size()));
      case contract::ArgKind::kFloatArray:
        return Keep(&float_arrays_, aclCreateFloatArray(spec.floats.values.data(), spec.floats.values.size()));
      case contract::ArgKind::kBoolArray:
        return Keep(&masks_, aclCreateBoolArray(reinterpret_cast<const bool*>(spec.bools.values.data()), spec.bools.values.size()));
      case contract::ArgKind::kString:
        return "none";
      default:
        break;
    }
    if (arg.is_tensor()) return MakeView(spec.tensor, tame);
    if (!arg.is_tensor_list()) return nullptr;
    std::vector<const aclTensor*> list;
    for (const Tensor& t : spec.tensors) list.push_back(MakeView(t, tame));
    return Keep(&lists_, aclCreateTensorList(list.data(), list.size()));
  }
  template <class Handle>
  static Handle* Keep(std::set<void*>* pool, Handle* handle) {
    if (handle) pool->insert(handle);
    return handle;
  }
  aclScalar* MakeNumber(Scalar s) {
    return Keep(&scalars_, aclCreateScalar(s.bytes, static_cast<aclDataType>(s.dtype)));
  }

  aclTensor* MakeView(const Tensor& view, bool* tame) {
    Shape s;
    s.dims = view.dims;
    s.dtype = static_cast<aclDataType>(view.dtype);
    s.strides = view.strides;
    s.offset = view.offset;
    s.bytes = BytesOf(s);
    *tame = *tame && s.bytes >= 0;
    aclTensor* const t = aclCreateTensor(s.dims.begin(), s.dims.rank(), s.dtype, s.strides.begin(), s.offset,
                                         static_cast<aclFormat>(view.format), s.dims.begin(), s.dims.rank(), AddressFor(s));
    if (t) tensors_[t] = {s.bytes >= 0};
    return t;
  }

  // ---- runtime ----

  void UseStream() {
    aclrtStream stream = nullptr;
    switch (in_.Below(4)) {
      case 0:
        if (streams_.size() < 2 && aclrtCreateStream(&stream) == 0) streams_.insert(stream);
        return;
      case 1:
        aclrtDestroyStream(Pick(streams_));
        return;
      case 2:
        aclrtSynchronizeStream(Pick(streams_));
        return;
      default: {
        aclrtStreamStatus status;
        aclrtStreamQuery(Pick(streams_), &status);
        return;
      }
    }
  }

  void UseEvent() {
    aclrtEvent event = nullptr;
    aclrtEventRecordedStatus recorded;
    float ms;
    switch (in_.Below(7)) {
      case 0:
        if (events_.size() < 4 && aclrtCreateEvent(&event) == 0) events_.insert(event);
        return;
      case 1:
        aclrtDestroyEvent(Pick(events_));
        return;
      case 2:
        aclrtRecordEvent(Pick(events_), Pick(streams_));
        return;
      case 3:
        aclrtQueryEventStatus(Pick(events_), &recorded);
        return;
      case 4:
        aclrtEventElapsedTime(&ms, Pick(events_), Pick(events_));
        return;
      case 5:
        aclrtStreamWaitEvent(Pick(streams_), Pick(events_));
        return;
      default:
        aclrtSynchronizeEvent(Pick(events_));
        return;
    }
  }

  void UseMemory() {
    void* memory = nullptr;
    switch (in_.Below(3)) {
      case 0: {
        const size_t size = in_.Chance(8) ? in_.Word() | uint64_t{1} << 50 : in_.Number() & 0xfff;
        if (aclrtMalloc(&memory, size, ACL_MEM_MALLOC_NORMAL_ONLY) == 0) blocks_.insert(memory);
        return;
      }
      case 1: {
        void* const block = Pick(blocks_);
        aclrtSynchronizeDevice();
        aclrtFree(block);
        return;
      }
      default:
        aclGetRecentErrMsg();
        return;
    }
  }

  void Copy() {
    const size_t from = in_.Byte() * 16, to = in_.Byte() * 16;
    const size_t room = in_.Below(64) * 16;
    const size_t count = in_.Chance(4) ? in_.Number() : room;
    const auto kind = static_cast<aclrtMemcpyKind>(in_.Below(8));
    // The source is as long as the room: a longer count must be refused before anything is read.
    if (in_.Chance(2)) {
      aclrtMemcpy(arena_.data() + to, room, other_.data() + from, count, kind);
    } else {
      aclrtMemcpyAsync(arena_.data() + to, room, other_.data() + from, count, kind, Pick(streams_));
    }
  }

  Source& in_;
  const bool exact_;
  std::vector<unsigned char> arena_;
  std::vector<unsigned char> other_;
  std::vector<std::unique_ptr<unsigned char[]>> workspaces_;
  std::map<void*, TensorInfo> tensors_;
  std::map<void*, ExecutorInfo> executors_;
  std::set<void*> scalars_, scalar_lists_, lists_, arrays_, float_arrays_, masks_, streams_, events_, blocks_;
  Dims last_;
  bool has_last_ = false;
  int runs_ = 0;
};

void StartOnce() {
  static const bool started = [] {
    Expect(aclInit(nullptr) == 0, "aclInit failed");
    return true;
  }();
  Expect(started && aclrtSetDevice(0) == 0, "aclrtSetDevice failed");
}

}  // namespace

int FuzzBorder(const uint8_t* data, size_t size) {
  StartOnce();
  Source source(data, size);
  World world(source);
  for (int i = 0; i < kMaxSteps && !source.empty(); ++i) world.Step();
  return world.runs();
}

}  // namespace anyacl::fuzz
