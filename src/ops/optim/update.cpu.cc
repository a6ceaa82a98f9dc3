// SPDX-License-Identifier: Apache-2.0
// Copyright The AnyACL Authors
//
// Blocks that fit the first cache are converted, updated and converted back; arrays of the type that is computed in are
// updated where they are.
#include "ops/optim/update.h"

#include <algorithm>
#include <cmath>
#include <cstring>

#undef HWY_TARGET_INCLUDE
#define HWY_TARGET_INCLUDE "ops/optim/update.cpu.cc"
#include "cpu/family_targets.h"
#include "hwy/foreach_target.h"
#include "hwy/highway.h"
//
#include "ops/pointwise/lanes-inl.h"

#ifndef ANYACL_OPS_OPTIM_UPDATE_CPU_
#define ANYACL_OPS_OPTIM_UPDATE_CPU_
namespace anyacl::optim {

// What all elements share, found once per call.
struct Factors {
  double scale, l2, keep, beta1, beta2, rate, root, eps, ema, momentum, fresh;
  bool scales, decays, nesterov, amsgrad, keeps_max, has_ema, has_momentum, first_step, maximize;
};

// A block of each array, in the type that is computed in. The count is a multiple of every vector's length.
struct Block {
  void *var, *m, *v, *extra, *grad;
  int64_t count;
};

}  // namespace anyacl::optim
#endif

HWY_BEFORE_NAMESPACE();
namespace anyacl {
namespace optim {
namespace HWY_NAMESPACE {

template <class V>
HWY_INLINE V Larger(V a, V b) {  // NaN of either
  return Select(b > a || IsNan(b), b, a);
}

template <class T>
HWY_INLINE pointwise::HWY_NAMESPACE::Lanes<T> Gradient(const Factors& f, T* grad, bool keep) {
  using V = pointwise::HWY_NAMESPACE::Lanes<T>;
  V g = V::Load(grad);
  if (f.scales) g = g / V(static_cast<T>(f.scale));
  if (keep && f.scales) g.Store(grad);
  return f.maximize ? -g : g;
}

template <class T>
void AdamOf(const Factors& f, const Block& b) {
  using V = pointwise::HWY_NAMESPACE::Lanes<T>;
  const auto number = [](double x) { return V(static_cast<T>(x)); };
  const V one_less_beta1 = number(1 - f.beta1), one_less_beta2 = number(1 - f.beta2), beta1 = number(f.beta1), beta2 = number(f.beta2);
  const V keep = number(f.keep), rate = number(f.rate), root = number(f.root), eps = number(f.eps), l2 = number(f.l2), ema = number(f.ema);
  T *const var = static_cast<T*>(b.var), *const m = static_cast<T*>(b.m), *const v = static_cast<T*>(b.v), *const extra = static_cast<T*>(b.extra);
  for (int64_t i = 0; i < b.count; i += static_cast<int64_t>(V::Count())) {
    const V old = V::Load(var + i);
    V g = Gradient(f, static_cast<T*>(b.grad) + i, false);
    if (f.decays) g = g + l2 * old;
    const V mean = V::Load(m + i);
    const V new_mean = mean + (g - mean) * one_less_beta1;
    const V square = beta2 * V::Load(v + i) + one_less_beta2 * g * g;
    new_mean.Store(m + i);
    square.Store(v + i);
    V u = square;
    if (f.amsgrad) u = Larger(V::Load(extra + i), square);
    if (f.keeps_max) u.Store(extra + i);
    const V direction = f.nesterov ? beta1 * new_mean + one_less_beta1 * g : new_mean;
    const V fresh = old * keep - rate * direction / (Sqrt(u) / root + eps);
    fresh.Store(var + i);
    if (f.has_ema) (ema * V::Load(extra + i) + number(1 - f.ema) * fresh).Store(extra + i);
  }
}

template <class T>
void SgdOf(const Factors& f, const Block& b) {
  using V = pointwise::HWY_NAMESPACE::Lanes<T>;
  const auto number = [](double x) { return V(static_cast<T>(x)); };
  const V rate = number(f.rate), l2 = number(f.l2), momentum = number(f.momentum), fresh = number(f.fresh);
  T *const var = static_cast<T*>(b.var), *const m = static_cast<T*>(b.m);
  for (int64_t i = 0; i < b.count; i += static_cast<int64_t>(V::Count())) {
    const V old = V::Load(var + i);
    V g = Gradient(f, static_cast<T*>(b.grad) + i, true);
    if (f.decays) g = g + l2 * old;
    V direction = g;
    if (f.has_momentum) {
      const V buffer = f.first_step ? g : momentum * V::Load(m + i) + fresh * g;
      buffer.Store(m + i);
      direction = f.nesterov ? g + momentum * buffer : buffer;
    }
    (old - rate * direction).Store(var + i);
  }
}

void Adam(const Factors& f, const Block& b, bool wide) { wide ? AdamOf<double>(f, b) : AdamOf<float>(f, b); }
void Sgd(const Factors& f, const Block& b, bool wide) { wide ? SgdOf<double>(f, b) : SgdOf<float>(f, b); }

}  // namespace HWY_NAMESPACE
}  // namespace optim
}  // namespace anyacl
HWY_AFTER_NAMESPACE();

#if HWY_ONCE
#include "cpu/kernels.h"
#include "cpu/parallel.h"
#include "ops/pointwise/blocks.h"

namespace anyacl::optim {

HWY_EXPORT(Adam);
HWY_EXPORT(Sgd);

namespace {

using pointwise::Compute;

constexpr int64_t kBlock = 256;  // elements; a multiple of every vector's length

double ValueOf(const Number& n) {
  if (!n.data) return n.value;
  double value;
  pointwise::LoadConversion(n.dtype, Compute::kDouble)(n.data, 1, &value, 1, 1);
  return value;
}

// Scalars of FLOAT calls are FLOAT before anything is made of them.
double Narrowed(const Number& n, bool wide) {
  const double value = ValueOf(n);
  return wide ? value : static_cast<double>(static_cast<float>(value));
}

Factors FactorsOf(const UpdateParams& p) {
  Factors f{};
  const auto narrow = [&](double x) { return Narrowed({.value = x}, p.wide); };
  const double lr = Narrowed(p.lr, p.wide), decay = Narrowed(p.decay, p.wide);
  f.scales = p.grad_scale.data != nullptr;
  f.scale = f.scales ? ValueOf(p.grad_scale) : 1;
  f.l2 = narrow(p.l2);
  f.decays = f.l2 != 0;
  f.maximize = p.maximize;
  f.nesterov = p.nesterov;
  f.rate = lr;
  if (p.method == Method::kSgd) {
    f.momentum = narrow(p.momentum);
    f.fresh = 1 - narrow(p.dampening);
    f.has_momentum = p.m.data != nullptr;
    f.first_step = p.first_step;
    return f;
  }
  f.beta1 = Narrowed(p.beta1, p.wide);
  f.beta2 = Narrowed(p.beta2, p.wide);
  f.eps = Narrowed(p.eps, p.wide);
  f.ema = narrow(p.ema);
  f.keep = 1 - lr * decay;
  f.amsgrad = p.amsgrad;
  f.keeps_max = p.keeps_max;
  f.has_ema = p.has_ema;
  double power1 = 0, power2 = 0;
  if (p.correction == Correction::kStep) {
    const double step = ValueOf(p.step) + static_cast<double>(p.step_offset);
    power1 = std::pow(f.beta1, step);
    power2 = std::pow(f.beta2, step);
  } else if (p.correction != Correction::kNone) {
    const bool before = p.correction == Correction::kBefore;
    power1 = ValueOf(p.beta1_power) * (before ? f.beta1 : 1);
    power2 = ValueOf(p.beta2_power) * (before ? f.beta2 : 1);
  }
  const double root = std::sqrt(1 - power2);
  f.rate = lr / (1 - power1) * (p.corrects_rate ? root : 1);
  f.root = p.corrects_rate ? 1 : root;
  return f;
}

// An array, block by block.
class Blocks {
 public:
  Blocks(const Array& array, bool wide) : array_(array), size_(static_cast<int64_t>(SizeOf(array.dtype))), element_(wide ? 8 : 4) {
    const Compute compute = wide ? Compute::kDouble : Compute::kFloat;
    as_is_ = array.dtype == (wide ? DType::kF64 : DType::kF32);
    if (!array.data) return;
    load_ = pointwise::LoadConversion(array.dtype, compute);
    store_ = pointwise::StoreConversion(compute, array.dtype);
  }
  // The numbers from `first` on; a last block that is not full lies in the buffer, followed by ones.
  void* Load(int64_t first, int64_t count, void* buffer) const {
    if (!array_.data) return nullptr;
    unsigned char* const here = static_cast<unsigned char*>(array_.data) + first * size_;
    if (as_is_ && count == kBlock) return here;
    load_(here, 1, buffer, 1, count);
    for (int64_t i = count; i < kBlock; ++i) {
      element_ == 8 ? (void)(static_cast<double*>(buffer)[i] = 1) : (void)(static_cast<float*>(buffer)[i] = 1);
    }
    return buffer;
  }
  void Store(int64_t first, int64_t count, const void* buffer) const {
    if (!array_.data) return;
    unsigned char* const here = static_cast<unsigned char*>(array_.data) + first * size_;
    if (buffer != here) store_(buffer, 1, here, 1, count);
  }

 private:
  const Array& array_;
  int64_t size_, element_;
  bool as_is_;
  pointwise::RunConversion load_ = nullptr, store_ = nullptr;
};

void Run(const UpdateParams& p) {
  if (p.found_inf.data && ValueOf(p.found_inf) == 1) return;
  const auto update = p.method == Method::kSgd ? ANYACL_FAMILY_DISPATCH(Sgd) : ANYACL_FAMILY_DISPATCH(Adam);
  const Factors factors = FactorsOf(p);
  const Blocks var(p.var, p.wide), m(p.m, p.wide), v(p.v, p.wide), extra(p.extra, p.wide), grad(p.grad, p.wide);
  const bool writes_extra = p.keeps_max || p.has_ema, writes_grad = p.method == Method::kSgd && factors.scales;
  constexpr int64_t kTask = cpu::kTask / 4 / kBlock * kBlock;
  cpu::ParallelFor(cpu::CeilDiv(p.count, kTask), [&](int64_t task) {
    alignas(64) unsigned char buffers[5][kBlock * 8];
    const int64_t end = std::min(p.count, (task + 1) * kTask);
    for (int64_t i = task * kTask; i < end; i += kBlock) {
      const int64_t count = std::min(kBlock, end - i);
      const Block block = {var.Load(i, count, buffers[0]), m.Load(i, count, buffers[1]), v.Load(i, count, buffers[2]),
                           extra.Load(i, count, buffers[3]), grad.Load(i, count, buffers[4]), kBlock};
      update(factors, block, p.wide);
      var.Store(i, count, block.var);
      m.Store(i, count, block.m);
      v.Store(i, count, block.v);
      if (writes_extra) extra.Store(i, count, block.extra);
      if (writes_grad) grad.Store(i, count, block.grad);
    }
  });
}

void RunAmp(const AmpParams& p) {
  const double scale = ValueOf({.data = p.scale, .dtype = p.dtype});
  const bool found = ValueOf({.data = p.found, .dtype = p.dtype}) != 0;  // NaN, too
  int32_t tracker;
  std::memcpy(&tracker, p.tracker, sizeof(tracker));
  const bool grows = !found && int64_t{tracker} + 1 == p.interval;
  float result = static_cast<float>(found ? scale * p.backoff : grows ? scale * p.growth : scale);
  if (grows && !std::isfinite(result)) result = static_cast<float>(scale);
  tracker = found || grows ? 0 : tracker + 1;
  pointwise::StoreConversion(Compute::kFloat, p.dtype)(&result, 1, p.new_scale, 1, 1);
  std::memcpy(p.new_tracker, &tracker, sizeof(tracker));
}

}  // namespace
}  // namespace anyacl::optim

namespace anyacl::cpu {

std::span<const Kernel> UpdateKernels() {
  static constexpr Kernel kernels[] = {MakeKernel<optim::UpdateParams, FitsAlways, optim::Run>("blocks")};
  return kernels;
}

std::span<const Kernel> AmpUpdateKernels() {
  static constexpr Kernel kernels[] = {MakeKernel<optim::AmpParams, FitsAlways, optim::RunAmp>("one")};
  return kernels;
}

}  // namespace anyacl::cpu
#endif  // HWY_ONCE
