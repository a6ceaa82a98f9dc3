// SPDX-License-Identifier: Apache-2.0
// Copyright The AnyACL Authors
//
// The table language in which an operator is declared once. From one table come the checks in their
// order, the status codes, the sentences, `anyacl ops`, the documentation page and the negative tests.
//
//   const Contract kContract({
//       .op = "aclnnEluBackward",
//       .args = {Input("gradOutput"), ScalarArg("alpha"), ..., Output("gradInput")},
//       .rules = {NotNull("gradOutput"), SameDType("selfOrResult", "gradOutput"), ...},
//   });
#ifndef ANYACL_CONTRACT_CONTRACT_H_
#define ANYACL_CONTRACT_CONTRACT_H_

#include <initializer_list>
#include <iterator>
#include <string>
#include <vector>

#include "contract/formula.h"
#include "contract/value.h"
#include "core/product.h"
#include "core/status.h"

namespace anyacl::contract {

// Arguments, in ABI order ---------------------------------------------------------------------------

enum class ArgKind { kInput, kOutput, kScalar, kInt, kReal, kBool, kBoolArray, kIntArray };

struct Arg {
  const char* name;
  ArgKind kind;
  const char* meaning = "";
  bool optional = false;

  bool is_tensor() const { return kind == ArgKind::kInput || kind == ArgKind::kOutput; }
  bool is_handle() const { return is_tensor() || kind == ArgKind::kScalar || is_array(); }
  bool is_array() const { return kind == ArgKind::kBoolArray || kind == ArgKind::kIntArray; }
  Arg Optional() && {
    optional = true;
    return *this;
  }
};

inline Arg Input(const char* name, const char* meaning) { return {name, ArgKind::kInput, meaning}; }
inline Arg Output(const char* name, const char* meaning) { return {name, ArgKind::kOutput, meaning}; }
inline Arg ScalarArg(const char* name, const char* meaning) {
  return {name, ArgKind::kScalar, meaning};
}
inline Arg Int(const char* name, const char* meaning) { return {name, ArgKind::kInt, meaning}; }
inline Arg Real(const char* name, const char* meaning) { return {name, ArgKind::kReal, meaning}; }
inline Arg Bool(const char* name, const char* meaning) { return {name, ArgKind::kBool, meaning}; }
inline Arg Mask(const char* name, const char* meaning) { return {name, ArgKind::kBoolArray, meaning}; }

// Products ------------------------------------------------------------------------------------------

// A set of product profiles, one bit each.
struct Products {
  unsigned bits;
  bool Has(Product p) const { return bits >> static_cast<int>(p) & 1; }
};
constexpr Products Of(std::initializer_list<Product> list) {
  unsigned bits = 0;
  for (Product p : list) bits |= 1u << static_cast<int>(p);
  return {bits};
}
inline constexpr Products kAllProducts = Of({Product::kAscend950, Product::kA3, Product::kA2,
                                             Product::kTraining, Product::kInference, Product::k200I});
inline constexpr Products kOnly950 = Of({Product::kAscend950});
inline constexpr Products kNewer = Of({Product::kAscend950, Product::kA3, Product::kA2});

// A dtype (or one row of dtypes, one per argument of the rule) and the products that take it.
struct TypeRow {
  std::vector<DType> types;
  Products products = kAllProducts;
};

// Rules, checked in the order of the table ----------------------------------------------------------

// When a rule applies: always, when a bool argument is true, when a mask bit is set.
struct When {
  const char* arg = nullptr;
  int bit = -1;
};

enum class RuleKind {
  kNotNull,
  kSupported,
  kDTypeRows,
  kSameDType,
  kConvertsTo,
  kScalarConvertsTo,
  kPublicFormat,
  kFormats,
  kRank,
  kSameShape,
  kShape,
  kNumel,
  kLength,
  kRequire,
  kAcceptIfEmpty,
  kCustom,
};

// For rules the language has no words for. Returns the sentence's end ("must ..., got ..."), empty when fine.
using CustomCheck = std::string (*)(Values values, Product product);

struct Rule {
  RuleKind kind;
  std::vector<const char*> args;  // the first one is named in the sentence
  int32_t code = 0;               // 0: the default of the kind
  When when = {};
  std::vector<TypeRow> rows = {};
  Products products = kAllProducts;
  DType dtype = DType::kUndefined;
  std::vector<Format> formats = {};
  int min = 0;
  int max = 0;
  const char* formula = nullptr;    // kNumel, kRequire; kShape: dims separated by commas
  const char* otherwise = nullptr;  // kSameShape: the shape when the other argument is null
  CustomCheck check = nullptr;
  const char* text = "";  // kCustom: the rule in words

  Rule Code(int32_t value) && {
    code = value;
    return std::move(*this);
  }
  Rule If(const char* flag, int bit = -1) && {
    when = {flag, bit};
    return std::move(*this);
  }
};

Rule NotNull(const char* arg);
Rule Supported(Products products);
Rule DTypes(const char* arg, std::vector<TypeRow> rows);
Rule DTypeRows(std::vector<const char*> args, std::vector<TypeRow> rows);
Rule SameDType(const char* arg, const char* other);
Rule ResultConverts(const char* from, const char* to);
Rule ScalarConverts(const char* scalar, DType to);
Rule PublicFormat(const char* arg);
Rule Formats(const char* arg, std::vector<Format> formats);
Rule Rank(const char* arg, int min, int max);
Rule SameShape(const char* arg, const char* other, const char* otherwise = nullptr);
Rule ShapeIs(const char* arg, const char* dims);
Rule NumelIs(const char* arg, const char* formula);
Rule Length(const char* array, int length);
Rule Require(const char* arg, const char* condition);
Rule AcceptIfEmpty(std::vector<const char*> outputs);
Rule Custom(const char* arg, const char* text, CustomCheck check);

// The contract --------------------------------------------------------------------------------------

// A name for a size that shapes define: {"C", "input", 1} is dim 1 of input.
struct SizeName {
  const char* name;
  const char* arg;
  int axis;
};

// When the two result pointers of phase 1 are tested for null.
enum class ResultPointers { kFirst, kAfterNullChecks };

struct Table {
  const char* op;       // "aclnnEluBackward"
  const char* stem;     // "elu_backward"
  const char* summary;  // one sentence for listings
  std::vector<std::string> formulas;
  std::vector<Arg> args;
  std::vector<SizeName> sizes = {};
  std::vector<Rule> rules;
  ResultPointers result_pointers = ResultPointers::kFirst;
  std::vector<std::string> notes = {};  // what a user should know, for the documentation page
};

class Contract {
 public:
  // Resolves names and parses formulas; a mistake in the table aborts at load (tests construct them all).
  explicit Contract(Table table);

  const Table& table() const { return table_; }
  const char* op() const { return table_.op; }
  std::span<const Arg> args() const { return table_.args; }
  std::span<const Rule> rules() const { return table_.rules; }
  int ArgIndex(const char* name) const;  // -1 when there is none
  int TensorIndex(int arg) const { return tensor_index_[arg]; }  // place among the tensors of a call

  // Checks the rules in order. `broken_rule`, when given, receives the index of the first broken rule
  // or -1. Costs about 0.1 us for a valid call.
  Status Check(Values values, Product product, int* broken_rule = nullptr) const;

  // Null and liveness checks come first in phase 1; result pointers may be tested between them and the rest.
  Status CheckNulls(Values values) const { return CheckRange(values, {}, 0, null_rules_, nullptr); }
  Status CheckRest(Values values, Product product) const {
    return CheckRange(values, product, null_rules_, Size(), nullptr);
  }

  int32_t CodeOf(const Rule& rule) const;
  // "gradOutput must be FLOAT, FLOAT16 or BF16": the rule in words, for one product.
  std::string Describe(const Rule& rule, Product product) const;

 private:
  // A rule with its names resolved, in a form that a valid call passes in a few instructions.
  struct Resolved {
    RuleKind kind;
    bool first_is_handle = false;
    int first = -1;   // args[0] and args[1], or -1
    int second = -1;
    int when_arg = -1;
    int when_bit = -1;
    DTypeSet dtypes[std::size(kProducts)];  // kDTypeRows of one argument: what each product takes
    std::vector<int> args;
    std::vector<Formula> formulas;
    bool whole = true;  // their variables are all whole numbers
  };

  int Size() const { return static_cast<int>(table_.rules.size()); }
  Status CheckRange(Values values, Product product, int begin, int end, int* broken_rule) const;
  Resolved Resolve(const Rule& rule) const;
  static bool Applies(const Resolved& names, Values values);
  // Empty when the rule holds, else the sentence after "<operator>: ".
  std::string Broken(int index, Values values, Product product) const;
  bool Holds(int index, Values values, Product product) const;
  bool HoldsShape(const Resolved& names, const Tensor& tensor, Values values) const;
  size_t LengthOf(int arg, Values values) const;
  Number Lookup(int variable, Values values) const;
  bool IsWhole(int variable) const;
  int64_t LookupWhole(int variable, Values values) const;
  bool Equals(const Resolved& names, int formula, int64_t size, Values values) const;
  bool HoldsFormula(const Resolved& names, Values values) const;
  std::string ValuesOf(const Formula& formula, Values values) const;
  bool IsWanted(int arg, Values values) const;
  Status LiveHandles(Values values) const;

  Table table_;
  std::vector<Resolved> resolved_;
  std::vector<int> tensor_index_;       // per argument, how many tensors are before it
  std::vector<int> size_args_;          // per named size, the argument that defines it
  std::vector<std::string> variables_;  // ints, scalars and named sizes, by formula index
  int null_rules_ = 0;                  // how many rules at the head of the table are about null
};

// "FLOAT, FLOAT16 or BF16"
std::string Join(const std::vector<std::string>& words);

}  // namespace anyacl::contract

#endif  // ANYACL_CONTRACT_CONTRACT_H_
