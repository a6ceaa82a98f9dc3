// SPDX-License-Identifier: Apache-2.0
// Copyright The AnyACL Authors
//
// The walk: blocks of elements that fit the first cache are converted, computed and converted back. Operands that lie
// dense in the compute type are taken where they are.
#include <algorithm>
#include <cstring>

#undef HWY_TARGET_INCLUDE
#define HWY_TARGET_INCLUDE "ops/pointwise/pointwise.cpu.cc"
#include "cpu/family_targets.h"
#include "hwy/foreach_target.h"
#include "hwy/highway.h"
//
#include "ops/pointwise/convert-inl.h"

HWY_BEFORE_NAMESPACE();
namespace anyacl {
namespace pointwise {
namespace HWY_NAMESPACE {

RunConversion FindLoad(DType from, Compute to) { return LoadOf(from, to); }
RunConversion FindStore(Compute from, DType to) { return StoreOf(from, to); }
RunConversion FindTruth(DType from) { return TruthOf(from); }

}  // namespace HWY_NAMESPACE
}  // namespace pointwise
}  // namespace anyacl
HWY_AFTER_NAMESPACE();

#if HWY_ONCE
#include "cpu/kernels.h"
#include "cpu/parallel.h"
#include "ops/pointwise/blocks.h"

namespace anyacl::pointwise {

HWY_EXPORT(FindLoad);
HWY_EXPORT(FindStore);
HWY_EXPORT(FindTruth);
RunConversion LoadConversion(DType from, Compute to) { return ANYACL_FAMILY_DISPATCH(FindLoad)(from, to); }
RunConversion StoreConversion(Compute from, DType to) { return ANYACL_FAMILY_DISPATCH(FindStore)(from, to); }

RunConversion TruthConversion(DType from) { return ANYACL_FAMILY_DISPATCH(FindTruth)(from); }

namespace {

constexpr int64_t kBlockBytes = 2048;  // of one operand; all of them fit small stacks
constexpr int64_t kTask = cpu::kTask;

BlockFunction FunctionOf(const Params& p) {
  const Blocks* blocks = nullptr;
#define ANYACL_FORMULA_GROUP(Name, stem) \
  if (!blocks) blocks = Name##Blocks(p.formula);
#include "ops/pointwise/groups.inc"
#undef ANYACL_FORMULA_GROUP
  return blocks ? blocks->of[static_cast<int>(p.compute)] : nullptr;
}

// The dtype whose elements are the compute type's own.
constexpr DType StorageOf(Compute compute) {
  constexpr DType kTypes[] = {DType::kF32, DType::kF64, DType::kI64, DType::kU64, DType::kC64, DType::kC128};
  return kTypes[static_cast<int>(compute)];
}

// What is found once per call.
struct Pass {
  explicit Pass(const Params& params)
      : p(params),
        function(FunctionOf(params)),
        element(SizeOfCompute(params.compute)),
        block(kBlockBytes / SizeOfCompute(params.compute)) {
    for (int k = 0; k < p.inputs; ++k) {
      is_constant[k] = (p.constants >> k & 1) != 0;
      load[k] = p.computed == DType::kBool ? TruthConversion(p.in_types[k]) : LoadConversion(p.in_types[k], p.compute);
      in_size[k] = static_cast<int64_t>(SizeOf(p.in_types[k]));
      as_is[k] = p.in_types[k] == StorageOf(p.compute) && p.computed != DType::kBool && !(p.cut_inputs >> k & 1) &&
                 !is_constant[k];
    }
    store = StoreConversion(p.compute, p.out_type);
    out_size = static_cast<int64_t>(SizeOf(p.out_type));
    out_as_is = p.out_type == StorageOf(p.compute) && !p.cut_result;
    if (p.cut_inputs || p.cut_result) {
      cut_store = StoreConversion(p.compute, p.computed);
      cut_load = LoadConversion(p.computed, p.compute);
    }
  }

  // A block of a scalar.
  void Repeat(int k, unsigned char* numbers) const {
    for (int64_t i = 0; i < block; ++i) {
      std::memcpy(numbers + i * element, p.scalars[p.constant_of[k]], static_cast<size_t>(element));
    }
  }

  // Rounds or wraps numbers of the compute type to `computed`, where they are.
  void Cut(void* numbers, int64_t count) const {
    alignas(64) unsigned char narrow[kBlockBytes];
    cut_store(numbers, 1, narrow, 1, count);
    cut_load(narrow, 1, numbers, 1, count);
  }

  const Params& p;
  BlockFunction function;
  int64_t element;
  int64_t block;
  RunConversion load[kMaxInputs];
  int64_t in_size[kMaxInputs];
  bool as_is[kMaxInputs];
  bool is_constant[kMaxInputs];
  RunConversion store;
  int64_t out_size;
  bool out_as_is;
  RunConversion cut_store = nullptr;
  RunConversion cut_load = nullptr;
};

// A position in row-major order of the merged axes, and where each operand is there.
class Walk {
 public:
  Walk(const Pass& pass, int64_t index) : pass_(pass), p_(pass.p), inner_(p_.axes - 1) {
    for (int axis = inner_; axis >= 0; --axis) {
      at_[axis] = index % p_.dims[axis];
      index /= p_.dims[axis];
    }
    for (int k = 0; k < p_.inputs; ++k) in_[k] = OffsetOf(p_.in_strides[k]);
    out_ = OffsetOf(p_.out_strides);
  }

  int64_t RunLength() const { return p_.dims[inner_] - at_[inner_]; }
  const unsigned char* In(int k) const { return static_cast<const unsigned char*>(p_.in[k]) + in_[k] * pass_.in_size[k]; }
  unsigned char* Out() const { return static_cast<unsigned char*>(p_.out) + out_ * pass_.out_size; }
  int64_t InStep(int k) const { return p_.in_strides[k][inner_]; }
  int64_t OutStep() const { return p_.out_strides[inner_]; }

  // By at most the length of the run.
  void Advance(int64_t count) {
    int axis = inner_;
    at_[axis] += count;
    Move(axis, count);
    while (at_[axis] == p_.dims[axis] && axis > 0) {
      Move(axis, -p_.dims[axis]);
      at_[axis] = 0;
      --axis;
      ++at_[axis];
      Move(axis, 1);
    }
  }

 private:
  int64_t OffsetOf(const int64_t* strides) const {
    int64_t offset = 0;
    for (int axis = 0; axis <= inner_; ++axis) offset += at_[axis] * strides[axis];
    return offset;
  }
  void Move(int axis, int64_t count) {
    for (int k = 0; k < p_.inputs; ++k) in_[k] += count * p_.in_strides[k][axis];
    out_ += count * p_.out_strides[axis];
  }

  const Pass& pass_;
  const Params& p_;
  int inner_;
  int64_t at_[kMaxWalkAxes];
  int64_t in_[kMaxInputs];
  int64_t out_;
};

// Calls visit(walk, done, run) for the runs that make up `count` elements from `walk` on, and leaves it behind them.
template <class Visit>
void ForRuns(Walk& walk, int64_t count, const Visit& visit) {
  for (int64_t done = 0; done < count;) {
    const int64_t run = std::min(walk.RunLength(), count - done);
    visit(walk, done, run);
    walk.Advance(run);
    done += run;
  }
}

void RunRange(const Pass& pass, int64_t begin, int64_t end) {
  const Params& p = pass.p;
  alignas(64) unsigned char in[kMaxInputs][kBlockBytes];
  alignas(64) unsigned char out[kBlockBytes];
  for (int k = 0; k < p.inputs; ++k) {
    if (pass.is_constant[k]) pass.Repeat(k, in[k]);
  }
  Walk reading(pass, begin);
  Walk writing = reading;
  for (int64_t i = begin; i < end; i += pass.block) {
    const int64_t count = std::min(pass.block, end - i);
    const void* operands[kMaxInputs];
    const bool one_run = reading.RunLength() >= count;
    unsigned to_load = 0;
    for (int k = 0; k < p.inputs; ++k) {
      const bool direct = pass.as_is[k] && one_run && reading.InStep(k) == 1;
      operands[k] = direct ? static_cast<const void*>(reading.In(k)) : in[k];
      if (!direct && !pass.is_constant[k]) to_load |= 1u << k;
    }
    ForRuns(reading, count, [&](const Walk& at, int64_t done, int64_t run) {
      for (int k = 0; k < p.inputs; ++k) {
        if (to_load >> k & 1) pass.load[k](at.In(k), at.InStep(k), in[k] + done * pass.element, 1, run);
      }
    });
    for (int k = 0; k < p.inputs; ++k) {
      if (p.cut_inputs >> k & 1) pass.Cut(in[k], count);
    }
    if (pass.out_as_is && one_run && writing.OutStep() == 1) {
      pass.function(operands, writing.Out(), count, p.scalars);
      writing.Advance(count);
      continue;
    }
    pass.function(operands, out, count, p.scalars);
    if (p.cut_result) pass.Cut(out, count);
    ForRuns(writing, count, [&](const Walk& at, int64_t done, int64_t run) {
      pass.store(out + done * pass.element, 1, at.Out(), at.OutStep(), run);
    });
  }
}

// Also that there is a conversion for everything: not every dtype that a tensor may have is one of numbers.
bool Fits(const Params& p) {
  const Pass pass(p);
  for (int k = 0; k < p.inputs; ++k) {
    if (!pass.is_constant[k] && !pass.load[k]) return false;
  }
  const bool cuts = p.cut_inputs || p.cut_result;
  return pass.function && pass.store && (!cuts || (pass.cut_store && pass.cut_load));
}

void Run(const Params& p) {
  const Pass pass(p);
  cpu::ParallelFor(cpu::CeilDiv(p.count, kTask),
                   [&](int64_t task) { RunRange(pass, task * kTask, std::min(p.count, (task + 1) * kTask)); });
}

}  // namespace
}  // namespace anyacl::pointwise

namespace anyacl::cpu {

std::span<const Kernel> PointwiseKernels() {
  static constexpr Kernel kernels[] = {MakeKernel<pointwise::Params, pointwise::Fits, pointwise::Run>("blocks")};
  return kernels;
}

}  // namespace anyacl::cpu
#endif  // HWY_ONCE
