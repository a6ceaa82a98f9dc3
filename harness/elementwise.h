// SPDX-License-Identifier: Apache-2.0
// Copyright The AnyACL Authors
//
// Subjects of element-wise operators from one line each: what comes out of single numbers, in long double. Which dtype is
// computed in, how operands are rounded to it and which calls are tried follows from few words; none of it is taken from
// the library's own tables.
#ifndef ANYACL_HARNESS_ELEMENTWISE_H_
#define ANYACL_HARNESS_ELEMENTWISE_H_

#include <span>
#include <string>
#include <vector>

#include "harness/family.h"

namespace anyacl::harness {

// The operands of one element, rounded to the dtype they are computed in.
struct Point {
  HostCall& call;
  DType computed;
  DType result;                // dtype
  std::vector<Number> x = {};  // tensors and scalars that are operands, as the header names them
  std::vector<Number> s = {};  // other scalars
  std::vector<bool> given = {};

  bool complex() const { return IsComplex(computed) || computed == DType::kC32; }
  bool whole() const { return IsInteger(computed) || computed == DType::kBool; }
  Real re(int k) const { return x[k].real(); }
  __int128 i(int k) const { return static_cast<__int128>(x[k].real()); }
  // A whole number, wrapped to 64 bits; the driver wraps it to `computed`.
  Number Whole(__int128 value) const;
  Real Value(const char* attribute) const { return call.Real(attribute); }
  // As the computed dtype holds it.
  Real Single(Real value) const { return Rounded(computed == DType::kF64 ? DType::kF64 : DType::kF32, value).real(); }
};

// What decides the computed dtype.
enum class Decides {
  kOperands,  // the dtypes of all together
  kFirst,     // that of the first one alone
  kResult,    // that of the result
  kTruth,     // operands are true or false
  kFloat,     // FLOAT always
};

struct Elementwise {
  const char* name;  // without prefix, for the plain and the in-place form
  Number (*of)(const Point& p);
  Real low = -2, high = 2;
  double ulps = 2;
  // Numbers whose rounding may show in the result, beside the result itself.
  Real (*size)(const Point& p) = nullptr;
  Decides decides = Decides::kOperands;
  unsigned aside = 0;                      // operands that decide nothing, one bit each
  DType whole = DType::kUndefined;         // what integers and BOOL are computed in
  bool whole_as_result = false;
  DType truth = DType::kUndefined;         // what BOOL is
  bool zero_dim = false;                   // tensors without dims never decide the precision
  bool keep_scalars = false;               // with half types they keep the digits of FLOAT
  bool keep_zero_dim = false;
  unsigned keep = 0;                       // operands that are not rounded to `computed`, one bit each
  std::vector<std::string> scalars = {};   // that are no operands
  std::vector<Real> numbers = {2, -1, 0.5, 3, 0};  // what scalars are
  std::vector<std::vector<TestArg>> attributes = {{}};  // all other arguments, for several calls
  std::vector<unsigned> absent = {0};      // operands that are null, one bit each; bit 31: the other scalars
  DType (*computed)(const Point& p) = nullptr;
  unsigned dimless = 0;                    // operands without dims, one bit each
  bool hostile = true;
  bool round_result = false;               // to the computed dtype, before it is converted
  std::vector<std::string> ignored = {};   // tensors that are not used
};

// Both forms, where there are such.
void AddSubjects(std::vector<Subject>* subjects, std::span<const Elementwise> rows);

}  // namespace anyacl::harness

#endif  // ANYACL_HARNESS_ELEMENTWISE_H_
