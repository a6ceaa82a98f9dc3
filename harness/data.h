// SPDX-License-Identifier: Apache-2.0
// Copyright The AnyACL Authors
//
// Numbers for tensors: where they come from, and their way into and out of any dtype.
#ifndef ANYACL_HARNESS_DATA_H_
#define ANYACL_HARNESS_DATA_H_

#include <cstdint>
#include <span>
#include <string>
#include <vector>

#include "core/dtype.h"

namespace anyacl::harness {

enum class Data {
  kExact,    // small multiples of 1/4: results are nearly exact, mistakes in indexing show
  kRandom,   // uniform in (-2, 2), never 0
  kOffset,   // 1e4 plus (-1, 1): mean much larger than deviation
  kSmall,    // magnitudes from 1e-8 to 1, log-uniform: 16-bit subnormals
  kTiny,     // magnitudes from 1e-45 to 1e-30, log-uniform: FLOAT and BF16 subnormals
  kHostile,  // NaN, infinities, both zeros, subnormals, largest numbers, mixed with kRandom
};
inline constexpr Data kAllData[] = {Data::kExact, Data::kRandom, Data::kOffset,
                                    Data::kSmall, Data::kTiny,   Data::kHostile};
const char* Name(Data data);

// Number `index` of a sequence; the same for the same arguments on every machine.
double Generate(Data data, uint64_t seed, uint64_t index);
std::vector<double> Generate(Data data, uint64_t seed, int64_t count);

// One element of a dtype. Rounds once, to nearest even; integers are cut off at their range, NaN
// becomes 0 there; complex numbers have only their real part. Throws std::invalid_argument for
// other dtypes.
void Encode(DType dtype, double value, void* element);
double Decode(DType dtype, const void* element);

// Dense arrays of elements.
std::vector<unsigned char> Encode(DType dtype, std::span<const double> values);
std::vector<double> Decode(DType dtype, std::span<const unsigned char> bytes);

// Whether a dtype has numbers that can be generated.
bool HasNumbers(DType dtype);

}  // namespace anyacl::harness

#endif  // ANYACL_HARNESS_DATA_H_
