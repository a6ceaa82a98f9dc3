// SPDX-License-Identifier: Apache-2.0
// Copyright The AnyACL Authors
//
// Calls as data. A row of cases/<family>.inc times a choice of dtypes is one valid call; tests,
// fuzzers and the bench walk over the same rows, so a new operator is a few rows and one short
// function.
#ifndef ANYACL_HARNESS_CASES_H_
#define ANYACL_HARNESS_CASES_H_

#include <map>
#include <random>
#include <string>
#include <string_view>
#include <vector>

#include "contract/contract.h"
#include "contract/violations.h"
#include "core/dtype.h"
#include "core/tensor.h"

namespace anyacl::harness {

// The words "name=value" of a row. Reading a name marks it used; a name nobody read is a typing
// error.
class Attributes {
 public:
  explicit Attributes(std::string_view text);

  double Real(const std::string& name, double fallback);
  int64_t Int(const std::string& name, int64_t fallback);
  bool Flag(const std::string& name, bool fallback);
  std::string Text(const std::string& name, const std::string& fallback);
  std::string FirstUnused() const;  // empty: all were read

 private:
  struct Entry {
    std::string value;
    bool used = false;
  };
  std::map<std::string, Entry> entries_;
};

struct Case {
  const char* name;  // unique per operator: "64Mi exp"
  const char* dims;  // "8x320x64x64"; "" is a 0-dim tensor
  const char*
      attributes;    // "alpha=1.5 isResult=1"; ApplyLayouts in cases.cc has those of all operators
  const char* tags;  // words: bench, exp, tiny, small, large, slow, strided, alias, empty

  Dims ParsedDims() const;
  bool Has(std::string_view tag) const;
};

// Dtypes of the tensor arguments, in the order of the operator's own function.
struct TypeChoice {
  std::string label;  // "FLOAT", "FLOAT16->DOUBLE"
  std::vector<DType> dtypes;
  bool bench = false;  // one of those the bench measures
};

using Random = std::mt19937_64;

// Dims and attributes as a row has them.
struct RandomRow {
  Dims dims;
  std::string attributes;
};

struct OperatorCases {
  const char* op;  // "aclnnEluBackward"
  std::vector<Case> cases;
  std::vector<TypeChoice> types;
  // Dense tensors and attributes of the row; MakeCall adds the layouts.
  contract::CallSpec (*make)(const Dims& dims, const std::vector<DType>& types,
                             Attributes& attributes);
  // A valid call of few elements, any shape and any attributes.
  RandomRow (*random)(Random& random);
};

// A call, and which arguments share memory: memory_of[i] is the argument whose memory i uses, or i
// itself. "In place" rows share memory only under dtype choices whose elements have the same size.
struct CaseCall {
  contract::CallSpec spec;
  std::vector<int> memory_of;
};

// The operators that have rows of their own: those with kernels of their own. The others are tested by family
// (harness/families.h).
const std::vector<const OperatorCases*>& AllCases();
const OperatorCases& CasesOf(std::string_view op);  // throws std::out_of_range for an unknown name

// What the operator's `random` gave, made a call.
contract::CallSpec MakeRandomCall(const OperatorCases& cases, const TypeChoice& types,
                                  Random& random);

// Throws std::invalid_argument when the row has a mistake.
CaseCall MakeCall(const contract::Contract& contract, const OperatorCases& cases, const Case& row,
                  const TypeChoice& types);

// Building blocks for the functions behind OperatorCases.
std::vector<Case> RowsOf(std::string_view op);  // "EluBackward"
contract::ArgSpec DenseTensor(DType dtype, const Dims& dims);
contract::ArgSpec FloatScalar(double value);
contract::ArgSpec FlagArg(bool value);
contract::ArgSpec IntArg(int64_t value);
contract::ArgSpec MaskArg(std::string_view bits);             // "101"
int64_t Below(Random& random, int64_t n);                     // 0 to n - 1
Dims RandomDims(Random& random, int min_rank, int max_rank);  // at most 600 elements

// A view of the same shape that lies differently in memory:
//   dense       row-major
//   offset      row-major, three elements behind the start of the storage
//   sliced      every axis cut out of a larger one, so gaps everywhere
//   transposed  memory order of the axes reversed, dense
//   channels    axis 1 fastest (an NCHW view of NHWC memory), dense
//   expanded    first axis has stride 0 (inputs only)
void SetLayout(std::string_view layout, Tensor* tensor);

const OperatorCases& EluBackwardCases();
const OperatorCases& BatchNormElemtBackwardCases();
const OperatorCases& GroupNormBackwardCases();
const OperatorCases& RmsNormGradCases();

}  // namespace anyacl::harness

#endif  // ANYACL_HARNESS_CASES_H_
