// SPDX-License-Identifier: Apache-2.0
// Copyright The AnyACL Authors
//
// What all CUDA kernels share: 16-byte vectors of elements, sums over warps, fast division, launches.
//
// Kernels work on vectors of 16 bytes whatever the address is: where the arrays are aligned a vector is one
// access, else it is put together from its elements. So the order of all sums, and with it every bit of the
// results, is the same for any address that is a multiple of the element size.
#ifndef ANYACL_CUDA_BLOCK_CUH_
#define ANYACL_CUDA_BLOCK_CUH_

#include <cooperative_groups.h>
#include <cuda_bf16.h>
#include <cuda_fp16.h>
#include <cuda_pipeline_primitives.h>
#include <cuda_runtime.h>

#include <algorithm>
#include <atomic>
#include <cstdint>
#include <initializer_list>
#include <type_traits>

#include "core/dtype.h"
#include "cuda/device.h"
#include "cuda/kernels.h"
#include "runtime/backend.h"

namespace anyacl::cuda {

inline constexpr int kWarp = 32;

template <class Int>
__host__ __device__ constexpr Int CeilDiv(Int a, Int b) {
  return (a + b - 1) / b;
}

// ---- Elements ----

// Calls f.operator()<T>() with the device type of FLOAT, FLOAT16 or BF16.
template <class F>
void WithType(DType dtype, F&& f) {
  switch (dtype) {
    case DType::kF32:
      return f.template operator()<float>();
    case DType::kF16:
      return f.template operator()<__half>();
    case DType::kBF16:
      return f.template operator()<__nv_bfloat16>();
    default:
      return;
  }
}

template <class T>
__device__ inline T FromFloat(float value) {
  if constexpr (sizeof(T) == sizeof(float))
    return value;
  else if constexpr (std::is_same_v<T, __half>)
    return __float2half_rn(value);
  else
    return __float2bfloat16_rn(value);
}

template <class T>
__device__ inline float ToFloat(T value) {
  return static_cast<float>(value);
}

// An array of FLOAT, FLOAT16, BF16 or INT32; only the call knows which. A load that is decoded at once is
// waited for: whoever needs several numbers gets all of them raw first.
struct Numbers {
  const void* data;
  DType dtype;

  __device__ bool is_wide() const { return dtype == DType::kF32 || dtype == DType::kI32; }
  __device__ uint32_t Raw(int64_t i) const {
    return is_wide() ? static_cast<const uint32_t*>(data)[i]
                     : static_cast<const uint16_t*>(data)[i];
  }
  __device__ float Decode(uint32_t raw) const {
    if (dtype == DType::kF32) return __uint_as_float(raw);
    if (dtype == DType::kBF16) return __uint_as_float(raw << 16);
    if (dtype == DType::kI32) return static_cast<float>(static_cast<int32_t>(raw));
    return __half2float(__ushort_as_half(static_cast<unsigned short>(raw)));
  }
  // For arrays of FLOAT or T.
  template <class T>
  __device__ uint32_t RawAs(int64_t i) const {
    if constexpr (sizeof(T) == 4) return static_cast<const uint32_t*>(data)[i];
    return dtype == DType::kF32 ? static_cast<const uint32_t*>(data)[i]
                                : static_cast<const uint16_t*>(data)[i];
  }
  template <class T>
  __device__ float DecodeAs(uint32_t raw) const {
    if constexpr (sizeof(T) == 4) return __uint_as_float(raw);
    const uint16_t bits = static_cast<uint16_t>(raw);
    return dtype == DType::kF32 ? __uint_as_float(raw) : ToFloat(reinterpret_cast<const T&>(bits));
  }
  __device__ float operator[](int64_t i) const { return Decode(Raw(i)); }
};

__device__ inline void StoreAs(void* data, DType dtype, int64_t i, float value) {
  switch (dtype) {
    case DType::kF16:
      static_cast<__half*>(data)[i] = FromFloat<__half>(value);
      return;
    case DType::kBF16:
      static_cast<__nv_bfloat16*>(data)[i] = FromFloat<__nv_bfloat16>(value);
      return;
    default:
      static_cast<float*>(data)[i] = value;
      return;
  }
}

// ---- Vectors of 16 bytes ----

template <class T>
inline constexpr int kLanes = 16 / sizeof(T);

template <class T>
union Vector {
  uint4 bits;
  T lanes[kLanes<T>];
  __device__ Vector() : bits{} {}
};

template <class T>
__device__ inline void Unpack(const uint4& from, float (&to)[kLanes<T>]) {
  if constexpr (std::is_same_v<T, float>) {
    to[0] = __uint_as_float(from.x), to[1] = __uint_as_float(from.y);
    to[2] = __uint_as_float(from.z), to[3] = __uint_as_float(from.w);
  } else {
    const uint32_t words[] = {from.x, from.y, from.z, from.w};
#pragma unroll
    for (int i = 0; i < 4; ++i) {
      if constexpr (std::is_same_v<T, __half>) {
        const float2 pair = __half22float2(reinterpret_cast<const __half2&>(words[i]));
        to[2 * i] = pair.x, to[2 * i + 1] = pair.y;
      } else {  // a bfloat16 is the upper half of a float
        to[2 * i] = __uint_as_float(words[i] << 16);
        to[2 * i + 1] = __uint_as_float(words[i] & 0xffff0000u);
      }
    }
  }
}

template <class T>
__device__ inline uint4 Pack(const float (&from)[kLanes<T>]) {
  if constexpr (std::is_same_v<T, float>) {
    return {__float_as_uint(from[0]), __float_as_uint(from[1]), __float_as_uint(from[2]),
            __float_as_uint(from[3])};
  } else {
    uint32_t words[4];
#pragma unroll
    for (int i = 0; i < 4; ++i) {
      if constexpr (std::is_same_v<T, __half>) {
        const __half2 pair = __floats2half2_rn(from[2 * i], from[2 * i + 1]);
        words[i] = reinterpret_cast<const uint32_t&>(pair);
      } else {
        const __nv_bfloat162 pair = __floats2bfloat162_rn(from[2 * i], from[2 * i + 1]);
        words[i] = reinterpret_cast<const uint32_t&>(pair);
      }
    }
    return {words[0], words[1], words[2], words[3]};
  }
}

// True when every array and every distance between two vectors is a multiple of a vector's bytes.
inline bool Aligned(std::initializer_list<const void*> arrays, int64_t pitch_bytes = 0,
                    uintptr_t vector_bytes = 16) {
  uintptr_t all = static_cast<uintptr_t>(pitch_bytes);
  for (const void* array : arrays) all |= reinterpret_cast<uintptr_t>(array);
  return all % vector_bytes == 0;
}

// The vector at `from`, of which the first `count` elements exist; the others are 0. Where `aligned`, count
// is a whole vector or nothing. Loads carry no streaming hints: they cost 6 to 12 %.
template <class T>
__device__ inline uint4 LoadVector(const T* from, int count, bool aligned) {
  Vector<T> v;
  if (aligned) {
    if (count > 0) v.bits = *reinterpret_cast<const uint4*>(from);
  } else {
#pragma unroll
    for (int i = 0; i < kLanes<T>; ++i) {
      if (i < count) v.lanes[i] = from[i];
    }
  }
  return v.bits;
}

template <class T>
__device__ inline void StoreVector(T* to, const uint4& bits, int count, bool aligned) {
  if (aligned) {
    if (count > 0) *reinterpret_cast<uint4*>(to) = bits;
  } else {
    Vector<T> v;
    v.bits = bits;
#pragma unroll
    for (int i = 0; i < kLanes<T>; ++i) {
      if (i < count) to[i] = v.lanes[i];
    }
  }
}

// A slot is written as elements and read as a vector, or the other way round: the compiler must not take the
// two for different memory.
__device__ inline void KeepOrder() { asm volatile("" ::: "memory"); }

// The same for kernels that keep many vectors; alignment is part of the kernel, because code that is never
// run still costs registers and room in the instruction cache. Unaligned vectors go through a slot of shared
// memory of the thread's own: a short loop instead of many instructions.
template <bool kAligned, class T>
__device__ inline uint4 LoadVector(const T* from, int count, uint4* slot) {
  if constexpr (kAligned) return LoadVector(from, count, true);
  *slot = uint4{};
  KeepOrder();
#pragma unroll 1
  for (int i = 0; i < kLanes<T> && i < count; ++i) reinterpret_cast<T*>(slot)[i] = from[i];
  KeepOrder();
  return *slot;
}

template <bool kAligned, class T>
__device__ inline void StoreVector(T* to, const uint4& bits, int count, uint4* slot) {
  if constexpr (kAligned) return StoreVector(to, bits, count, true);
  *slot = bits;
  KeepOrder();
#pragma unroll 1
  for (int i = 0; i < kLanes<T> && i < count; ++i) to[i] = reinterpret_cast<const T*>(slot)[i];
  KeepOrder();
}

// Copies the vector into a slot of the thread's own, asynchronously where the hardware can (pieces of 4 bytes
// and more). Elements that do not exist leave the slot as it is. A thread that reads only slots it copied
// itself needs no barrier, only __pipeline_wait_prior.
template <bool kAligned, class T>
__device__ inline void CopyVector(uint4* slot, const T* from, int count) {
  if constexpr (kAligned) {
    if (count > 0) __pipeline_memcpy_async(slot, from, 16);
  } else {
    T* const lanes = reinterpret_cast<T*>(slot);
    KeepOrder();
#pragma unroll 1
    for (int i = 0; i < kLanes<T> && i < count; ++i) {
      if constexpr (sizeof(T) == 4)
        __pipeline_memcpy_async(lanes + i, from + i, 4);
      else
        lanes[i] = from[i];
    }
    KeepOrder();
  }
}

// Slots start at a line of the banks; behind a few other bytes every access would take one more turn.
#define ANYACL_SLOTS(name) extern __shared__ __align__(128) uint4 name[]

// Calls f.operator()<flag>().
template <class F>
void WithFlag(bool flag, F&& f) {
  flag ? f.template operator()<true>() : f.template operator()<false>();
}

// ---- Sums ----

// The sum over `kWidth` neighbouring lanes, in every one of them, with the same bits.
template <int kWidth = kWarp>
__device__ inline float WarpSum(float value) {
#pragma unroll
  for (int distance = kWidth / 2; distance > 0; distance /= 2) {
    value += __shfl_xor_sync(0xffffffffu, value, distance);
  }
  return value;
}

// ---- Barriers that count bytes ----

__device__ inline uint32_t SharedAddress(const void* of) {
  return static_cast<uint32_t>(__cvta_generic_to_shared(of));
}

// By one thread; everybody else needs a barrier before the first use. A round takes so many arrivals.
__device__ inline void InitBarrier(uint64_t* barrier, uint32_t arrivals = 1) {
#if __CUDA_ARCH__ >= 900
  asm volatile("mbarrier.init.shared::cta.b64 [%0], %1;" ::"r"(SharedAddress(barrier)),
               "r"(arrivals));
  asm volatile("fence.mbarrier_init.release.cluster;" ::: "memory");
#endif
}

__device__ inline void Arrive(uint64_t* barrier) {
#if __CUDA_ARCH__ >= 900
  asm volatile("mbarrier.arrive.shared::cta.b64 _, [%0];" ::"r"(SharedAddress(barrier)) : "memory");
#endif
}

// By one thread per round: it arrives, and so many bytes will come.
__device__ inline void ExpectBytes(uint64_t* barrier, uint32_t bytes) {
#if __CUDA_ARCH__ >= 900
  asm volatile(
      "mbarrier.arrive.expect_tx.shared::cta.b64 _, [%0], %1;" ::"r"(SharedAddress(barrier)),
      "r"(bytes)
      : "memory");
#endif
}

// Until everything of round `round` (0, 1, ...) has come.
__device__ inline void AwaitBytes(uint64_t* barrier, uint32_t round) {
#if __CUDA_ARCH__ >= 900
  uint32_t done = 0;
  while (!done) {
    asm volatile(
        "{ .reg .pred p; mbarrier.try_wait.parity.acquire.cluster.shared::cta.b64 p, [%1], %2; "
        "selp.u32 %0, 1, 0, p; }"
        : "=r"(done)
        : "r"(SharedAddress(barrier)), "r"(round & 1)
        : "memory");
  }
#endif
}

#if defined(__CUDA_ARCH__) && __CUDA_ARCH__ >= 900
inline constexpr bool kHasBulkCopies = true;
#else
inline constexpr bool kHasBulkCopies = false;
#endif

// By one thread: whole vectors, which count at the barrier when they have come. It does not stand in the way of the
// block's other loads and stores, as many small copies do.
__device__ inline void BulkCopy(uint4* to, const void* from, uint32_t bytes, uint64_t* barrier) {
#if __CUDA_ARCH__ >= 900
  asm volatile(
      "cp.async.bulk.shared::cluster.global.mbarrier::complete_tx::bytes [%0], [%1], %2, [%3];" ::
          "r"(SharedAddress(to)),
      "l"(__cvta_generic_to_global(from)), "r"(bytes), "r"(SharedAddress(barrier))
      : "memory");
#endif
}

// ---- Mail between the blocks of a cluster ----
//
// A cluster barrier waits until all stores of its threads have arrived, results included: about 1 us. Mail
// does not: numbers go straight into the memory of the other block and count at a barrier there.

// Two boxes, used in turn: who sends its second mail to a box has received mail that everybody sent after
// reading the first.
struct MailCounters {
  uint64_t of_box[2];
};

// By all threads of the cluster, once; what lies between the two, loads above all, hides the wait for the others.
__device__ inline void OpenMail(MailCounters& counters) {
#if __CUDA_ARCH__ >= 900
  if (threadIdx.x == 0) {
    for (uint64_t& counter : counters.of_box) InitBarrier(&counter);
  }
  asm volatile("barrier.cluster.arrive;" ::: "memory");
#endif
}
// Before the first mail.
__device__ inline void AwaitMail() {
#if __CUDA_ARCH__ >= 900
  asm volatile("barrier.cluster.wait;" ::: "memory");
#endif
}

// Puts `value` where `to` is in block `rank`.
template <class V>
__device__ inline void SendMail(MailCounters& counters, int box, const V* to, const V& value,
                                int rank) {
#if __CUDA_ARCH__ >= 900
  uint32_t there, counter;
  asm volatile("mapa.shared::cluster.u32 %0, %1, %2;"
               : "=r"(there)
               : "r"(SharedAddress(to)), "r"(rank));
  asm volatile("mapa.shared::cluster.u32 %0, %1, %2;"
               : "=r"(counter)
               : "r"(SharedAddress(&counters.of_box[box])), "r"(rank));
  if constexpr (sizeof(V) == 16) {
    const float4 v = reinterpret_cast<const float4&>(value);
    asm volatile(
        "st.async.shared::cluster.mbarrier::complete_tx::bytes.v4.f32 [%0], {%1, %2, %3, %4}, "
        "[%5];" ::"r"(there),
        "f"(v.x), "f"(v.y), "f"(v.z), "f"(v.w), "r"(counter)
        : "memory");
  } else if constexpr (sizeof(V) == 8) {
    const float2 v = reinterpret_cast<const float2&>(value);
    asm volatile(
        "st.async.shared::cluster.mbarrier::complete_tx::bytes.v2.f32 [%0], {%1, %2}, [%3];" ::"r"(
            there),
        "f"(v.x), "f"(v.y), "r"(counter)
        : "memory");
  } else {
    static_assert(sizeof(V) == 4);
    asm volatile(
        "st.async.shared::cluster.mbarrier::complete_tx::bytes.f32 [%0], %1, [%2];" ::"r"(there),
        "f"(value), "r"(counter)
        : "memory");
  }
#endif
}

// ---- Division by a number known at launch, for dividends below 2^31 ----

struct FastDivisor {
  FastDivisor() = default;
  explicit FastDivisor(uint32_t divisor) : divisor(divisor) {
    int bits = 0;
    while ((uint64_t{1} << bits) < divisor) ++bits;
    shift = 31 + bits;
    magic = static_cast<uint32_t>((uint64_t{1} << shift) / divisor + 1);
  }
  __device__ uint32_t Divide(uint32_t n) const {
    return static_cast<uint32_t>((static_cast<uint64_t>(n) * magic) >> shift);
  }
  uint32_t divisor = 1;
  uint32_t magic = 0;
  int shift = 0;
};

// ---- Launches ----
//
// A failed launch is remembered by the CUDA runtime; whoever called Kernel::run asks for it.

struct LaunchShape {
  int64_t blocks = 1;
  int threads = 256;
  int64_t shared_bytes = 0;
  int cluster = 1;           // blocks that share their memories
  bool cooperative = false;  // all blocks are resident at once
  // Not more blocks than this on one multiprocessor; 0: as many as fit. A grid that is to spread over all of them would
  // else crowd onto those that the kernel in front leaves first.
  int most_together = 0;

  // What keeps a further block away is the shared memory that it does not get.
  int64_t SharedBytes() const {
    constexpr int64_t kOfMultiprocessor = 228 * 1024;
    const int64_t least = most_together ? kOfMultiprocessor / (most_together + 1) : 0;
    return std::max(shared_bytes, least);
  }
};

inline constexpr int kMaxDevices = 64;

// A number about a device that is asked for once; 0 is "not asked yet".
template <class Ask>
int Cached(std::atomic<int>& cache, const Ask& ask) {
  int value = cache.load(std::memory_order_relaxed);
  if (value == 0) {
    value = ask() + 1;
    cache.store(value, std::memory_order_relaxed);
  }
  return value - 1;
}

inline int DeviceAttribute(cudaDeviceAttr attribute, int device) {
  int value = 0;
  cudaDeviceGetAttribute(&value, attribute, device);
  return value;
}

inline int Multiprocessors(int device) {
  static std::atomic<int> cache[kMaxDevices];
  return Cached(cache[device],
                [&] { return DeviceAttribute(cudaDevAttrMultiProcessorCount, device); });
}

inline bool HasClusters(int device) {
  static std::atomic<int> cache[kMaxDevices];
  return Cached(cache[device], [&] { return DeviceAttribute(cudaDevAttrClusterLaunch, device); }) !=
         0;
}

// Lets `kernel` use as much shared memory as the device has.
template <auto kernel>
void AllowSharedMemory(int device) {
  static std::atomic<int> cache[kMaxDevices];
  Cached(cache[device], [&] {
    const int most = DeviceAttribute(cudaDevAttrMaxSharedMemoryPerBlockOptin, device);
    cudaFuncAttributes attributes{};
    cudaFuncGetAttributes(&attributes, kernel);
    return static_cast<int>(
        cudaFuncSetAttribute(kernel, cudaFuncAttributeMaxDynamicSharedMemorySize,
                             most - static_cast<int>(attributes.sharedSizeBytes)));
  });
}

// Lets `kernel` run in clusters of more than eight blocks; ResidentClusters says whether the device has them.
template <auto kernel>
void AllowLargeClusters(int device) {
  static std::atomic<int> cache[kMaxDevices];
  Cached(cache[device], [] {
    return static_cast<int>(
        cudaFuncSetAttribute(kernel, cudaFuncAttributeNonPortableClusterSizeAllowed, 1));
  });
}

struct LaunchConfig : cudaLaunchConfig_t {
  LaunchConfig(const Launch& launch, const LaunchShape& shape) : cudaLaunchConfig_t{} {
    gridDim = dim3(static_cast<unsigned>(shape.blocks));
    blockDim = dim3(static_cast<unsigned>(shape.threads));
    dynamicSmemBytes = static_cast<size_t>(shape.SharedBytes());
    stream = static_cast<cudaStream_t>(launch.native_stream);
    attrs = attributes;
    if (shape.cluster > 1) {
      attributes[numAttrs].id = cudaLaunchAttributeClusterDimension;
      attributes[numAttrs].val.clusterDim.x = static_cast<unsigned>(shape.cluster);
      attributes[numAttrs].val.clusterDim.y = attributes[numAttrs].val.clusterDim.z = 1;
      ++numAttrs;
    }
    if (shape.cooperative) {
      attributes[numAttrs].id = cudaLaunchAttributeCooperative;
      attributes[numAttrs++].val.cooperative = 1;
    }
    // BeginKernel; 0.6 us of the host's less.
    if (HasClusters(launch.device)) {
      attributes[numAttrs].id = cudaLaunchAttributeProgrammaticStreamSerialization;
      attributes[numAttrs++].val.programmaticStreamSerializationAllowed = 1;
    }
  }
  LaunchConfig(const LaunchConfig&) = delete;
  cudaLaunchAttribute attributes[3];
};

template <class... Types>
void LaunchPointer(void (*kernel)(Types...), const cudaLaunchConfig_t& config,
                   std::atomic<CUfunction>& function, const std::type_identity_t<Types>&... args) {
  void* pointers[] = {const_cast<void*>(static_cast<const void*>(&args))...};
  LaunchByDriver(config, reinterpret_cast<const void*>(kernel), function, pointers);
}

template <auto kernel, class... Args>
void LaunchKernel(const Launch& launch, const LaunchShape& shape, const Args&... args) {
  static std::atomic<CUfunction> functions[kMaxDevices];
  if (shape.SharedBytes() > 48 * 1024) AllowSharedMemory<kernel>(launch.device);
  LaunchPointer(kernel, LaunchConfig(launch, shape), functions[launch.device], args...);
}

// How many clusters of this shape the device runs at once. `cache` belongs to the kernel, device and shape.
template <auto kernel>
int ResidentClusters(std::atomic<int>& cache, const Launch& launch, const LaunchShape& shape) {
  return Cached(cache, [&] {
    AllowSharedMemory<kernel>(launch.device);
    const LaunchConfig config(launch, shape);
    int count = 0;
    if (shape.cluster > 1) {
      // A cluster that no device of this kind can have is an answer, not a failure.
      if (cudaOccupancyMaxActiveClusters(&count, kernel, &config) != cudaSuccess)
        cudaGetLastError();
      return count;
    }
    cudaOccupancyMaxActiveBlocksPerMultiprocessor(&count, kernel, shape.threads,
                                                  shape.SharedBytes());
    return count * Multiprocessors(launch.device);
  });
}

// In every kernel before it touches device memory, because kernels may be launched before the one in front has ended:
// everything that one wrote is visible behind this, and the next one may take the places that become free.
__device__ inline void BeginKernel() {
#if __CUDA_ARCH__ >= 900
  cudaGridDependencySynchronize();
  cudaTriggerProgrammaticLaunchCompletion();
#endif
}

// ---- Blocks that wait for each other ----
//
// With counters of Launch::counters; what one block wrote before is visible to the others behind it.

// What the thread wrote before is visible to whoever sees the count; cheaper than fences around an atomicAdd.
__device__ inline void CountUp(unsigned* counter) {
  asm volatile("red.release.gpu.global.add.u32 [%0], 1;" ::"l"(__cvta_generic_to_global(counter))
               : "memory");
}
__device__ inline unsigned Counted(const unsigned* counter) {
  unsigned count;
  asm volatile("ld.acquire.gpu.global.u32 %0, [%1];"
               : "=r"(count)
               : "l"(__cvta_generic_to_global(counter))
               : "memory");
  return count;
}
// Until so many have been counted; the counter may wrap.
__device__ inline void AwaitCount(const unsigned* counter, unsigned count) {
  while (static_cast<int>(Counted(counter) - count) < 0) {
  }
}

// For all threads: true in the last of `blocks` blocks that comes here.
__device__ inline bool IsLastBlock(unsigned* counter, unsigned blocks) {
  __syncthreads();
  bool is_last = false;
  if (threadIdx.x == 0) {
    __threadfence();
    is_last = atomicAdd(counter, 1u) == blocks - 1;
    if (is_last) *counter = 0;
    __threadfence();
  }
  return __syncthreads_or(is_last);
}

// The last work of a grid, divided among its blocks, that needs what all of them wrote. Blocks that wait for each
// other must all be resident, and a launch that sees to it costs the host 0.7 us more. Here a block waits only where
// all have begun: they will come, because nobody waits before. One that comes earlier leaves, and the last one
// of all does its share.
class Gathering {
 public:
  static constexpr unsigned kMostBlocks = kLaunchCounters - 4;

  // `counters` are those of Launch::counters; they are 0 again in the end.
  __device__ explicit Gathering(unsigned* counters)
      : begun_(counters),
        arrived_(counters + 1),
        absent_(counters + 2),
        gone_(counters + 3),
        absentees_(counters + 4) {}

  // By all threads, behind BeginKernel.
  __device__ void Begin() const {
    if (threadIdx.x == 0) CountUp(begun_);
  }

  // By all threads. do_share(b) does the share of block b, with all threads.
  template <class DoShare>
  __device__ void End(const DoShare& do_share) const {
    bool stays = false, is_last = false;
    __syncthreads();
    if (threadIdx.x == 0) {
      const unsigned begun = __ldcg(begun_);  // on its way while the fence waits
      __threadfence();
      stays = begun == gridDim.x;
      if (!stays) RegisterAbsence();
      is_last = atomicAdd(arrived_, 1u) == gridDim.x - 1;
      while (stays && Counted(arrived_) < gridDim.x) {
      }
      __threadfence();
    }
    stays = __syncthreads_or(stays);
    is_last = __syncthreads_or(is_last);
    if (stays) do_share(blockIdx.x);
    if (is_last) {
      const unsigned count = __ldcg(absent_);
      for (unsigned i = 0; i < count; ++i) do_share(__ldcg(absentees_ + i));
    }
    Leave();
  }

 private:
  __device__ void RegisterAbsence() const {
    absentees_[atomicAdd(absent_, 1u)] = blockIdx.x;
    __threadfence();
  }
  __device__ void Leave() const {
    __syncthreads();
    if (threadIdx.x != 0 || atomicAdd(gone_, 1u) != gridDim.x - 1) return;
    *begun_ = *arrived_ = *absent_ = *gone_ = 0;
  }

  unsigned* const begun_;
  unsigned* const arrived_;
  unsigned* const absent_;
  unsigned* const gone_;
  unsigned* const absentees_;
};

// Blocks that wait for each other in the middle of a kernel. All must be resident; a launch that sees to it costs the
// host 0.9 us more, and does not begin while another kernel keeps its places. Here they agree on it: when all have
// begun, they may wait. A block that has lost patience before calls it off, for everybody; then those that have begun
// take shares of the work in turns, and none waits for one that has not begun.
class Assembly {
 public:
  static constexpr int kCounters = 4;

  // `counters` are zeros.
  __device__ explicit Assembly(unsigned* counters) : counters_(counters) {}

  // By all threads, behind BeginKernel.
  __device__ void Begin() const {
    if (threadIdx.x == 0) CountUp(&counters_[kBegun]);
  }

  // By all threads: whether all blocks run, so that they may wait for each other; every block gets the same answer.
  __device__ bool IsComplete() const { return __syncthreads_or(threadIdx.x == 0 && AwaitAll()); }

  // By all threads of an assembly that was called off. The work consists of phases, and every phase of one share
  // for each block of the grid; do_share(phase, block) does one, with all threads. Whoever has a share waits
  // only for shares of earlier phases: all of them were taken before, by blocks that run.
  template <class DoShare>
  __device__ void TakeTurns(unsigned phases, const DoShare& do_share) const {
    __shared__ unsigned taken;
    for (;;) {
      if (threadIdx.x == 0) taken = atomicAdd(&counters_[kTaken], 1u);
      __syncthreads();
      const unsigned phase = taken / gridDim.x, block = taken % gridDim.x;
      if (phase >= phases) return;
      if (threadIdx.x == 0) AwaitCount(&counters_[kDone], phase * gridDim.x);
      __syncthreads();
      do_share(phase, block);
      __syncthreads();
      if (threadIdx.x == 0) CountUp(&counters_[kDone]);
    }
  }

  // By all threads, in the end: true in the last block, where the counters are zeros again.
  __device__ bool IsLast() const {
    if (!IsLastBlock(&counters_[kGone], gridDim.x)) return false;
    if (threadIdx.x == 0) counters_[kBegun] = counters_[kTaken] = counters_[kDone] = 0;
    return true;
  }

 private:
  enum { kBegun, kTaken, kDone, kGone };
  static constexpr unsigned kCalledOff = 1u << 31;
  // Long enough for most kernels of other streams to end: working in turns takes up to twice as long.
  static constexpr uint64_t kPatience = 1000 * 1000;  // ns

  __device__ static uint64_t Now() {
    uint64_t now;
    asm volatile("mov.u64 %0, %globaltimer;" : "=l"(now));
    return now;
  }

  __device__ bool AwaitAll() const {
    const uint64_t start = Now();
    for (;;) {
      const unsigned begun = Counted(&counters_[kBegun]);
      if (begun == gridDim.x) return true;
      if (begun & kCalledOff) return false;
      if (Now() - start < kPatience) continue;
      if (atomicCAS(&counters_[kBegun], begun, begun | kCalledOff) == begun) return false;
    }
  }

  unsigned* const counters_;
};

// ---- Column sums: the last step of every parameter gradient ----

struct ColumnSums {
  const float* partials;  // [rows][cols]
  int64_t rows;
  int64_t cols;
  int64_t split;  // columns below it go to `first`, the others to `second`; null: not wanted
  void* first;
  void* second;
  DType dtype;

  // Part p adds rows p, p + parts, ...; then the parts are added, in order, wherever that is done.
  __host__ __device__ int parts() const { return rows <= 32 ? 8 : 32; }
  __device__ float Part(int part, int64_t column) const {
    float sum = 0;
#pragma unroll 4
    for (int64_t row = part; row < rows; row += parts())
      sum += __ldcg(partials + row * cols + column);
    return sum;
  }
  // The same of one column by one thread; up to 32 rows at a time are on their way.
  __device__ float Total(int64_t column) const {
    float total = 0;
    for (int first = 0; first < parts(); first += 8) {
      float sum[8] = {};
#pragma unroll 4
      for (int64_t row = first; row < rows; row += parts()) {
#pragma unroll
        for (int i = 0; i < 8; ++i) {
          if (row + i < rows) sum[i] += __ldcg(partials + (row + i) * cols + column);
        }
      }
#pragma unroll
      for (int i = 0; i < 8; ++i) total += sum[i];
    }
    return total;
  }
  __device__ void Store(int64_t column, float total) const {
    void* const to = column < split ? first : second;
    if (to) StoreAs(to, dtype, column < split ? column : column - split, total);
  }
};

// 32 columns of the sums, by all threads of a block.
__device__ inline void AddColumns(const ColumnSums& s, int64_t first_column) {
  __shared__ float sums[32][kWarp];
  const int lane = threadIdx.x % kWarp, warp = threadIdx.x / kWarp;
  const int64_t column = first_column + lane;
  for (int part = warp; part < s.parts(); part += static_cast<int>(blockDim.x) / kWarp) {
    sums[part][lane] = column < s.cols ? s.Part(part, column) : 0.0f;
  }
  __syncthreads();
  if (warp == 0 && column < s.cols) {
    float total = 0;
#pragma unroll 8
    for (int i = 0; i < s.parts(); ++i) total += sums[i][lane];
    s.Store(column, total);
  }
  __syncthreads();  // the sums are free again
}

void LaunchColumnSums(const Launch& launch, const ColumnSums& sums);

}  // namespace anyacl::cuda

#endif  // ANYACL_CUDA_BLOCK_CUH_
