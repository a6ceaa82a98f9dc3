// SPDX-License-Identifier: Apache-2.0
// Copyright The AnyACL Authors
//
// How families of operators are tested: a Subject is an operator, valid calls of it, and an oracle that says what must
// come out, in long double. One driver (tests/families) runs every call over every layout, backend and number of threads and
// compares. Oracles share no code with the library.
//
//   void Sample(Calls& calls) {            // harness/families/<family>.cc
//     for (DType t : calls.types()) calls.Add({In(t, {2, 3}), In(t, {3}), Num(t, 1), Out(t, {2, 3})});
//   }
//   void Oracle(HostCall& call) {
//     Host& out = call.Out("out");
//     for (int64_t i = 0; i < out.size(); ++i) out[i] = ...
//   }
//   const Subject kAdd = {"aclnnAdd", Sample, Oracle, {.ulps = 1}};
#ifndef ANYACL_HARNESS_FAMILY_H_
#define ANYACL_HARNESS_FAMILY_H_

#include <complex>
#include <cstdint>
#include <random>
#include <span>
#include <stdexcept>
#include <string>
#include <string_view>
#include <vector>

#include "contract/violations.h"
#include "core/dtype.h"
#include "core/tensor.h"
#include "plan/operator.h"

namespace anyacl::harness {

// One element of any dtype, exactly: 64 bits of mantissa hold INT64 and UINT64 too.
using Real = long double;
using Number = std::complex<long double>;

// Rounded (or wrapped, or saturated) to a dtype, as conversions of the library promise it.
Number Rounded(DType dtype, Number value);
// Distance of the dtype's numbers near `value`; 0 for integers.
Real UlpOf(DType dtype, Real value);
void EncodeNumber(DType dtype, Number value, unsigned char* element);  // Rounded first
Number DecodeNumber(DType dtype, const unsigned char* element);

// What an oracle of this thread may still do, in elements touched; it throws TooMuchWork when nothing is left.
extern constinit thread_local int64_t oracle_steps_left __attribute__((tls_model("initial-exec")));
struct TooMuchWork : std::runtime_error {
  TooMuchWork() : std::runtime_error("too much work") {}
};

// A vector that nobody leaves: what lies outside throws. Oracles are written for the calls of tests, but the calls of users
// are verified with them too.
template <class T>
class Checked : public std::vector<T> {
 public:
  using std::vector<T>::vector;
  Checked(std::vector<T> values) : std::vector<T>(std::move(values)) {}  // NOLINT: it is one

  decltype(auto) operator[](int64_t i) { return this->at(Step(i)); }
  decltype(auto) operator[](int64_t i) const { return this->at(Step(i)); }

 private:
  static size_t Step(int64_t i) {
    if (--oracle_steps_left < 0) throw TooMuchWork();
    return static_cast<size_t>(i);
  }
};

// A tensor on the host, row-major.
struct Host {
  DType dtype = DType::kUndefined;
  Dims dims;
  Checked<Number> values;
  // Outputs only: how far the result may be off, beside Limits::ulps. Empty: not at all.
  Checked<Real> slack = {};
  // Outputs only: the dtype the result is computed in, if not its own; its ulps count then.
  DType computed = DType::kUndefined;

  int64_t size() const { return static_cast<int64_t>(values.size()); }
  Number& operator[](int64_t i) { return values[i]; }
  const Number& operator[](int64_t i) const { return values[i]; }
  Real real(int64_t i) const { return values[i].real(); }
  // Element of a tensor that is broadcast to `to`, at the row-major index i of that.
  Number Broadcast(const Dims& to, int64_t i) const;
  int64_t Index(std::span<const int64_t> at) const;  // row-major
  Checked<int64_t> Position(int64_t index) const;
};

// Where the numbers of an input come from.
struct Values {
  enum Kind { kUniform, kWhole, kBool, kHostile, kPermutation, kGiven, kUnread };
  Kind kind = kUniform;
  Real low = -2;
  Real high = 2;
  std::vector<Number> given = {};
};
inline Values Between(Real low, Real high) { return {Values::kUniform, low, high, {}}; }
inline Values Whole(int64_t low, int64_t high) {  // both included
  return {Values::kWhole, static_cast<Real>(low), static_cast<Real>(high), {}};
}
inline Values Given(std::vector<Number> values) { return {Values::kGiven, 0, 0, std::move(values)}; }
// NaN, infinities, both zeros, subnormals, the largest numbers; of integers the extremes.
inline Values Hostile() { return {Values::kHostile, -2, 2, {}}; }
// 0 to n - 1 in some order.
inline Values Permutation() { return {Values::kPermutation, 0, 0, {}}; }

// None: of a tensor that only its description matters of. Its elements stay poison.
inline Values Unread() { return {Values::kUnread, 0, 0, {}}; }

// One argument of a call.
struct TestArg {
  contract::ArgSpec spec;
  std::vector<Values> values = {};  // of the tensor, or one per entry of a list
  // "dense" fixes the layout of this tensor; empty: all are tried.
  const char* layout = "";
  TestArg Layout(const char* name) && {
    layout = name;
    return std::move(*this);
  }
};

TestArg In(DType dtype, const Dims& dims, Values values = {});  // also for in/out arguments
TestArg Out(DType dtype, const Dims& dims);
TestArg List(const std::vector<TestArg>& tensors);               // of In or Out
TestArg Null();
TestArg Num(DType dtype, Real value);                            // aclScalar
TestArg Complex(DType dtype, Number value);
TestArg NumList(DType dtype, const std::vector<Real>& values);   // aclScalarList
TestArg Int(int64_t value);
TestArg RealArg(double value);
TestArg Flag(bool value);
TestArg Ints(std::vector<int64_t> values);
TestArg Bools(std::vector<bool> values);
TestArg Floats(std::vector<float> values);
TestArg Text(std::string text);

struct TestCall {
  std::vector<TestArg> args;
  std::string label;
  // The first argument is written over the second one's memory: an output that is exactly an input.
  std::vector<std::pair<int, int>> same = {};
};

// What a subject's sampler fills.
class Calls {
 public:
  explicit Calls(const Operator& op) : op_(op) {}
  const Operator& op() const { return op_; }
  // Dtypes that the contract takes for a tensor argument on the newest product, by its one-argument rules; all with
  // numbers where it has none.
  std::vector<DType> TypesOf(const char* arg) const;
  TestCall& Add(std::vector<TestArg> args, std::string label = "");
  std::mt19937_64& random() { return random_; }
  std::span<const TestCall> all() const { return calls_; }

 private:
  const Operator& op_;
  std::vector<TestCall> calls_;
  std::mt19937_64 random_{1};
};

// A call with its numbers, as an oracle sees it.
class HostCall {
 public:
  HostCall(const Operator& op, const contract::CallSpec& spec) : op_(op), spec_(spec) {}
  const Operator& op() const { return op_; }
  const char* name() const { return op_.contract.op(); }
  // Whether the operator has such an argument at all, and whether it is given.
  bool HasArg(const char* arg) const { return op_.contract.ArgIndex(arg) >= 0; }
  bool Has(const char* arg) const;
  contract::ArgKind KindOf(const char* arg) const { return op_.contract.args()[ArgOf(arg)].kind; }
  // Of an input; for an in/out argument what it held before.
  const Host& In(const char* arg, int item = 0) const;
  int Count(const char* arg) const;  // entries of a list
  Number Scalar(const char* arg, int item = 0) const;
  DType ScalarType(const char* arg, int item = 0) const;
  Format FormatOf(const char* arg) const;  // of a tensor
  const Dims& StridesOf(const char* arg) const;
  int64_t Int(const char* arg) const;
  double Real(const char* arg) const;
  bool Flag(const char* arg) const;
  Checked<int64_t> Ints(const char* arg) const;
  Checked<bool> Bools(const char* arg) const;
  Checked<float> Floats(const char* arg) const;
  const std::string& Text(const char* arg) const;
  // To be filled with exact values; they are rounded when compared. Left alone (and so is the tensor) when null.
  Host& Out(const char* arg, int item = 0);

  int ArgOf(const char* arg) const;
  std::vector<std::vector<Host>> inputs;   // per argument and item
  std::vector<std::vector<Host>> outputs;

 private:
  const Operator& op_;
  const contract::CallSpec& spec_;
};

struct Limits {
  // Beside the rounding itself: ulps of the output's dtype, of FLOAT for the 16-bit types. Integers are exact.
  double ulps = 0.5;
  bool same_layout_bits = true;  // every layout gives the same bits as dense tensors
  // Outputs with other contents than the oracle can say (random numbers): the driver calls `check` instead.
  std::string (*check)(HostCall& call) = nullptr;
  // Outputs of data-dependent length: compared as far as the oracle left elements in Host::values.
  bool partial = false;
  // Operators that may be called with nothing but dense tensors say why.
  const char* dense_only = nullptr;
};

struct Subject {
  const char* op;
  void (*sample)(Calls& calls);
  void (*oracle)(HostCall& call);
  Limits limits = {};
};

// How an element compares with what the oracle says.
struct Error {
  bool close = true;
  Real ulps = 0;      // of the output's dtype; of whole numbers the difference itself
  Real of_bound = 0;  // of what the limits allow; more than 1 is wrong
};
Error ErrorOf(const Host& expected, int64_t i, Number got, const Limits& limits);
std::string Describe(const Host& expected, int64_t i, Number got, const Error& error);

// How an output, dense in memory, compares with what the oracle says.
struct Comparison {
  std::string problem = {};  // why it could not be compared; else empty
  int64_t elements = 0;
  int64_t wrong = 0;
  int64_t first_wrong = -1;
  int64_t largest = -1;      // the element that is most ulps off
  Error error = {};          // there
  Real of_bound = 0;         // the largest one
};
Comparison Compare(const Host& expected, std::span<const unsigned char> elements, const Limits& limits);

// Every subject; harness/families/<family>.cc has those of a family.
std::span<const Subject> SubjectsOf(std::string_view family);
const Subject* FindSubject(std::string_view op);

// Runs one call and compares; empty when all is as it must be, else what is not. `layout` names one of kLayouts.
inline constexpr const char* kLayouts[] = {"dense", "offset", "sliced", "transposed", "expanded"};
struct RunOptions {
  const char* layout = "dense";
  uint64_t seed = 1;
  bool compare = true;
  void (*at_border)(bool inside) = nullptr;  // told around every C function of the operator
  void (*planned)(const void* executor) = nullptr;  // told between the two phases
};
struct RunResult {
  std::string problem;
  std::vector<std::vector<unsigned char>> outputs;  // dense bytes, per output tensor
  std::vector<DType> output_types;
  std::vector<std::pair<int, DType>> types;         // tensor arguments as they were given
  std::vector<bool> strided;                        // per argument: some tensor of it was no dense row-major one
};
// The same bits in all outputs; NaN is NaN, whatever its sign: processors take that from either operand.
bool SameOutputs(const RunResult& a, const RunResult& b);
RunResult RunCall(const Operator& op, const Subject& subject, const TestCall& call, void* stream, const RunOptions& options);

// Phase 1 of a call that has descriptions but no memory.
struct Refusal {
  int32_t code = 0;
  std::string text = {};
  bool results_cleared = true;  // workspaceSize is 0, executor null
};
Refusal PlanCall(const Operator& op, const contract::CallSpec& spec);

}  // namespace anyacl::harness

#endif  // ANYACL_HARNESS_FAMILY_H_
