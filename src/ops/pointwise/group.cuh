// SPDX-License-Identifier: Apache-2.0
// Copyright The AnyACL Authors
//
// Two ways through a pass on a GPU. Vectors: four neighbours at a time, for what is computed in FLOAT from operands that lie
// dense or repeat one element along the last axis; a kernel per formula. Elements: anything, one number per thread; one
// kernel per group of formulas and compute type, which finds the formula itself, because many kernels take long to compile.
#ifndef ANYACL_OPS_POINTWISE_GROUP_CUH_
#define ANYACL_OPS_POINTWISE_GROUP_CUH_

#include "cuda/launch.cuh"
#include "ops/pointwise/convert.cuh"
#include "ops/pointwise/formulas.h"
#include "ops/pointwise/steps.cuh"

namespace anyacl {
namespace pointwise {

inline constexpr int kPassThreads = 256;
inline constexpr int kVector = 4;           // elements
inline constexpr int kVectorsPerThread = 2;

// What floats are stored as.
enum class Form : uint8_t { kFloat, kHalf, kBFloat16, kTruth };

// Bytes from one step along an axis to the next; on the last axis a step is a vector.
struct VectorOperand {
  int64_t bytes[kMaxWalkAxes];
  uint32_t last_bytes;
  Form form;
  bool repeats;  // it has one element for the last axis
};

struct VectorWalk {
  Steps steps;      // of vectors, fewer than 2^31
  uint32_t whole;   // all but one that ends within
  VectorOperand in[kMaxInputs];
  VectorOperand out;
};

// A pass and one of the ways; `vectors` is null for the other.
struct Way {
  const Params& params;
  const Steps& elements;
  const VectorWalk* vectors;
};

// Per group of formulas: false when the formula is of another group.
#define ANYACL_FORMULA_GROUP(Name, stem) bool Launch##Name(const Way& way, const Launch& launch);
#include "ops/pointwise/groups.inc"
#undef ANYACL_FORMULA_GROUP

namespace device {

template <class V>
inline constexpr unsigned kSetOf = 0;  // as formulas.inc names the compute type
template <>
inline constexpr unsigned kSetOf<Lanes<float>> = 1u << static_cast<int>(Compute::kFloat);
template <>
inline constexpr unsigned kSetOf<Lanes<double>> = 1u << static_cast<int>(Compute::kDouble);
template <>
inline constexpr unsigned kSetOf<int64_t> = 1u << static_cast<int>(Compute::kInt);
template <>
inline constexpr unsigned kSetOf<uint64_t> = 1u << static_cast<int>(Compute::kUnsigned);
template <>
inline constexpr unsigned kSetOf<Complex<float>> = 1u << static_cast<int>(Compute::kComplex);
template <>
inline constexpr unsigned kSetOf<Complex<double>> = 1u << static_cast<int>(Compute::kDoubleComplex);

template <class F, int kInputs, class V>
HWY_INLINE V Apply(const V* x, const V* s) {
  if constexpr (kInputs == 0) return F::Of(s);
  else if constexpr (kInputs == 1) return F::Of(x[0], s);
  else if constexpr (kInputs == 2) return F::Of(x[0], x[1], s);
  else if constexpr (kInputs == 3) return F::Of(x[0], x[1], x[2], s);
  else return F::Of(x[0], x[1], x[2], x[3], s);
}

template <class V>
HWY_INLINE V ScalarOf(const Params& p, int i) {
  return PlainOf<V>::In(*reinterpret_cast<const typename PlainOf<V>::Type*>(p.scalars[i]));
}

// ---- Elements ------------------------------------------------------------------------------------------------------

template <class Group, class V>
__global__ void __launch_bounds__(kPassThreads)
    Elements(const __grid_constant__ Params p, const __grid_constant__ Steps steps) {
  cuda::BeginKernel();
  const int64_t i = static_cast<int64_t>(blockIdx.x) * kPassThreads + threadIdx.x;
  if (i >= steps.count) return;
  int64_t in[kMaxInputs] = {}, out = 0;
  steps.ForCoordinates(i, [&](int axis, int64_t at) {
#pragma unroll
    for (int k = 0; k < kMaxInputs; ++k) in[k] += at * p.in_strides[k][axis];
    out += at * p.out_strides[axis];
  });
  V s[kMaxScalars], x[kMaxInputs];
#pragma unroll
  for (int k = 0; k < kMaxScalars; ++k) s[k] = ScalarOf<V>(p, k);
#pragma unroll
  for (int k = 0; k < kMaxInputs; ++k) {
    if (k >= p.inputs) break;
    if (p.constants >> k & 1) {
      x[k] = ScalarOf<V>(p, p.constant_of[k]);
      continue;
    }
    if constexpr (std::is_same_v<V, int64_t>) {
      x[k] = p.computed == DType::kBool ? LoadTruth(p.in[k], p.in_types[k], in[k])
                                        : LoadElement<V>(p.in[k], p.in_types[k], in[k]);
    } else {
      x[k] = LoadElement<V>(p.in[k], p.in_types[k], in[k]);
    }
    if (p.cut_inputs >> k & 1) x[k] = Cut(x[k], p.computed);
  }
  V y = Group::Of(p.formula, x, s);
  if (p.cut_result) y = Cut(y, p.computed);
  StoreElement(p.out, p.out_type, out, y);
}

// ---- Vectors -------------------------------------------------------------------------------------------------------

HWY_INLINE int SizeOfForm(Form form) { return form == Form::kFloat ? 4 : form == Form::kTruth ? 1 : 2; }

// An element in the first word.
HWY_INLINE uint32_t LoadOne(const unsigned char* at, Form form) {
  if (form == Form::kFloat) return *reinterpret_cast<const uint32_t*>(at);
  return form == Form::kTruth ? *at : *reinterpret_cast<const uint16_t*>(at);
}

// The place of a vector in every operand.
template <int kInputs>
struct Places {
  const unsigned char* in[kInputs + 1];
  unsigned char* out;
};

template <int kInputs>
HWY_INLINE Places<kInputs> PlacesOf(const Params& p, const VectorWalk& walk, uint32_t step) {
  Places<kInputs> at;
  at.out = static_cast<unsigned char*>(p.out);
#pragma unroll
  for (int k = 0; k < kInputs; ++k) at.in[k] = static_cast<const unsigned char*>(p.in[k]);
  uint32_t last = step;
  if (walk.steps.axes > 1) {
    walk.steps.ForCoordinates</*kMany=*/false>(step, [&](int axis, int64_t coordinate) {
      if (axis == walk.steps.axes - 1) {
        last = static_cast<uint32_t>(coordinate);
        return;
      }
#pragma unroll
      for (int k = 0; k < kInputs; ++k) at.in[k] += coordinate * walk.in[k].bytes[axis];
      at.out += coordinate * walk.out.bytes[axis];
    });
  }
#pragma unroll
  for (int k = 0; k < kInputs; ++k) at.in[k] += uint64_t{last} * walk.in[k].last_bytes;
  at.out += uint64_t{last} * walk.out.last_bytes;
  return at;
}

HWY_INLINE void Decode(const uint4& bits, Form form, float* x) {
  const uint32_t words[kVector] = {bits.x, bits.y, bits.z, bits.w};
#pragma unroll
  for (int i = 0; i < kVector; ++i) {
    if (form == Form::kFloat) {
      x[i] = __uint_as_float(words[i]);
    } else if (form == Form::kBFloat16) {  // the upper half of a float
      x[i] = __uint_as_float(i % 2 ? words[i / 2] & 0xffff0000u : words[i / 2] << 16);
    } else if (form == Form::kHalf) {
      Half half;
      half.bits = static_cast<uint16_t>(words[i / 2] >> 16 * (i % 2));
      x[i] = static_cast<float>(half);
    } else {
      x[i] = (words[0] >> 8 * i & 0xffu) != 0 ? 1.0f : 0.0f;
    }
  }
}

HWY_INLINE uint4 Encode(const float* y, Form form) {
  uint4 bits{};
  if (form == Form::kFloat) {
    bits = {__float_as_uint(y[0]), __float_as_uint(y[1]), __float_as_uint(y[2]), __float_as_uint(y[3])};
  } else if (form == Form::kTruth) {
    bits.x = (y[0] != 0 ? 1u : 0u) | (y[1] != 0 ? 1u << 8 : 0u) | (y[2] != 0 ? 1u << 16 : 0u) | (y[3] != 0 ? 1u << 24 : 0u);
  } else if (form == Form::kHalf) {
    asm("cvt.rn.f16x2.f32 %0, %1, %2;" : "=r"(bits.x) : "f"(y[1]), "f"(y[0]));
    asm("cvt.rn.f16x2.f32 %0, %1, %2;" : "=r"(bits.y) : "f"(y[3]), "f"(y[2]));
  } else {
    asm("cvt.rn.bf16x2.f32 %0, %1, %2;" : "=r"(bits.x) : "f"(y[1]), "f"(y[0]));
    asm("cvt.rn.bf16x2.f32 %0, %1, %2;" : "=r"(bits.y) : "f"(y[3]), "f"(y[2]));
  }
  return bits;
}

// Calls body with the form as a constant, so that what it does for every vector asks nothing.
template <class Body>
HWY_INLINE void WithForm(Form form, const Body& body) {
  switch (form) {
    case Form::kFloat: return body(std::integral_constant<Form, Form::kFloat>());
    case Form::kHalf: return body(std::integral_constant<Form, Form::kHalf>());
    case Form::kBFloat16: return body(std::integral_constant<Form, Form::kBFloat16>());
    case Form::kTruth: return body(std::integral_constant<Form, Form::kTruth>());
  }
}

// One element at a time: where a block has not all its vectors.
template <class F, int kInputs>
HWY_INLINE void LastVectors(const Params& p, const VectorWalk& walk, const Lanes<float>* s) {
  const int64_t begin = static_cast<int64_t>(blockIdx.x) * (kPassThreads * kVectorsPerThread * kVector);
#pragma unroll 1
  for (int i = static_cast<int>(threadIdx.x); i < kPassThreads * kVectorsPerThread * kVector; i += kPassThreads) {
    if (begin + i >= p.count) return;
    const Places<kInputs> at = PlacesOf<kInputs>(p, walk, static_cast<uint32_t>((begin + i) / kVector));
    const int within = i % kVector;
    Lanes<float> x[kInputs + 1];
#pragma unroll
    for (int k = 0; k < kInputs; ++k) {
      if (p.constants >> k & 1) {
        x[k] = ScalarOf<Lanes<float>>(p, p.constant_of[k]);
        continue;
      }
      const Form form = walk.in[k].form;
      float four[kVector];
      Decode({LoadOne(at.in[k] + (walk.in[k].repeats ? 0 : within * SizeOfForm(form)), form), 0, 0, 0}, form, four);
      x[k] = four[0];
    }
    const float y[kVector] = {Apply<F, kInputs>(x, s).v, 0, 0, 0};
    const uint4 bits = Encode(y, walk.out.form);
    unsigned char* const to = at.out + within * SizeOfForm(walk.out.form);
    if (walk.out.form == Form::kFloat) *reinterpret_cast<uint32_t*>(to) = bits.x;
    else if (walk.out.form == Form::kTruth) *to = static_cast<unsigned char>(bits.x);
    else *reinterpret_cast<uint16_t*>(to) = static_cast<uint16_t>(bits.x);
  }
}

// Everything is loaded before anything is used, so that a thread waits once.
template <class F, int kInputs>
__global__ void __launch_bounds__(kPassThreads)
    Vectors(const __grid_constant__ Params p, const __grid_constant__ VectorWalk walk) {
  cuda::BeginKernel();
  using V = Lanes<float>;
  V s[kMaxScalars];
#pragma unroll
  for (int k = 0; k < kMaxScalars; ++k) s[k] = ScalarOf<V>(p, k);
  const uint32_t begin = blockIdx.x * (kPassThreads * kVectorsPerThread);
  if (begin + kPassThreads * kVectorsPerThread > walk.whole) return LastVectors<F, kInputs>(p, walk, s);
  Places<kInputs> at[kVectorsPerThread];
#pragma unroll
  for (int j = 0; j < kVectorsPerThread; ++j) at[j] = PlacesOf<kInputs>(p, walk, begin + j * kPassThreads + threadIdx.x);
  uint4 bits[kInputs + 1][kVectorsPerThread];
#pragma unroll
  for (int k = 0; k < kInputs; ++k) {
    if (p.constants >> k & 1) continue;
    const Form form = walk.in[k].form;
    if (walk.in[k].repeats) {
#pragma unroll
      for (int j = 0; j < kVectorsPerThread; ++j) bits[k][j].x = LoadOne(at[j].in[k], form);
    } else if (form == Form::kFloat) {
#pragma unroll
      for (int j = 0; j < kVectorsPerThread; ++j) bits[k][j] = *reinterpret_cast<const uint4*>(at[j].in[k]);
    } else if (form == Form::kTruth) {
#pragma unroll
      for (int j = 0; j < kVectorsPerThread; ++j) bits[k][j].x = *reinterpret_cast<const uint32_t*>(at[j].in[k]);
    } else {
#pragma unroll
      for (int j = 0; j < kVectorsPerThread; ++j) {
        const uint2 half = *reinterpret_cast<const uint2*>(at[j].in[k]);
        bits[k][j].x = half.x, bits[k][j].y = half.y;
      }
    }
  }
  float x[kInputs + 1][kVectorsPerThread][kVector], y[kVectorsPerThread][kVector];
#pragma unroll
  for (int k = 0; k < kInputs; ++k) {
    if (p.constants >> k & 1) {
      const float constant = ScalarOf<V>(p, p.constant_of[k]).v;
#pragma unroll
      for (int i = 0; i < kVectorsPerThread * kVector; ++i) x[k][i / kVector][i % kVector] = constant;
      continue;
    }
    WithForm(walk.in[k].form, [&](auto form) {
#pragma unroll
      for (int j = 0; j < kVectorsPerThread; ++j) Decode(bits[k][j], form(), x[k][j]);
    });
    if (!walk.in[k].repeats) continue;
#pragma unroll
    for (int i = 0; i < kVectorsPerThread * kVector; ++i) x[k][i / kVector][i % kVector] = x[k][i / kVector][0];
  }
#pragma unroll
  for (int j = 0; j < kVectorsPerThread; ++j) {
#pragma unroll
    for (int i = 0; i < kVector; ++i) {
      V one[kInputs + 1];
#pragma unroll
      for (int k = 0; k < kInputs; ++k) one[k] = x[k][j][i];
      y[j][i] = Apply<F, kInputs>(one, s).v;
    }
  }
  WithForm(walk.out.form, [&](auto form) {
#pragma unroll
    for (int j = 0; j < kVectorsPerThread; ++j) {
      const uint4 result = Encode(y[j], form());
      if (form() == Form::kFloat) *reinterpret_cast<uint4*>(at[j].out) = result;
      else if (form() == Form::kTruth) *reinterpret_cast<uint32_t*>(at[j].out) = result.x;
      else *reinterpret_cast<uint2*>(at[j].out) = {result.x, result.y};
    }
  });
}

// ---- Launches ------------------------------------------------------------------------------------------------------

template <class F, int kInputs>
void LaunchVectors(const Way& way, const Launch& launch) {
  const int64_t steps = way.vectors->steps.count;
  cuda::LaunchKernel<Vectors<F, kInputs>>(
      launch, {.blocks = cuda::CeilDiv<int64_t>(steps, kPassThreads * kVectorsPerThread), .threads = kPassThreads}, way.params,
      *way.vectors);
}

template <class Group, class V>
void LaunchElementsOf(const Way& way, const Launch& launch) {
  if constexpr ((Group::kTypes & kSetOf<V>) != 0) {
    cuda::LaunchKernel<Elements<Group, V>>(
        launch, {.blocks = cuda::CeilDiv<int64_t>(way.elements.count, kPassThreads), .threads = kPassThreads}, way.params,
        way.elements);
  }
}

template <class Group>
void LaunchElements(const Way& way, const Launch& launch) {
  switch (way.params.compute) {
    case Compute::kFloat: return LaunchElementsOf<Group, Lanes<float>>(way, launch);
    case Compute::kDouble: return LaunchElementsOf<Group, Lanes<double>>(way, launch);
    case Compute::kInt: return LaunchElementsOf<Group, int64_t>(way, launch);
    case Compute::kUnsigned: return LaunchElementsOf<Group, uint64_t>(way, launch);
    case Compute::kComplex: return LaunchElementsOf<Group, Complex<float>>(way, launch);
    case Compute::kDoubleComplex: return LaunchElementsOf<Group, Complex<double>>(way, launch);
  }
}

}  // namespace device

}  // namespace pointwise
}  // namespace anyacl

#endif  // ANYACL_OPS_POINTWISE_GROUP_CUH_
