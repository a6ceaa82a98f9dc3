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
#include "core/dtype.h"
#include "core/product.h"
#include "core/status.h"

namespace anyacl::contract {

// Arguments, in ABI order ---------------------------------------------------------------------------

// kInOut: a tensor that is read and written ("selfRef"). Lists hold tensors or scalars, each with its own rules.
enum class ArgKind {
  kInput,
  kOutput,
  kInOut,
  kInputList,
  kOutputList,
  kInOutList,
  kScalar,
  kScalarList,
  kInt,
  kReal,
  kBool,
  kString,
  kBoolArray,
  kIntArray,
  kFloatArray,
};

constexpr bool IsTensor(ArgKind kind) {
  return kind == ArgKind::kInput || kind == ArgKind::kOutput || kind == ArgKind::kInOut;
}
constexpr bool IsTensorList(ArgKind kind) {
  return kind == ArgKind::kInputList || kind == ArgKind::kOutputList || kind == ArgKind::kInOutList;
}
constexpr bool IsWritten(ArgKind kind) {
  return kind == ArgKind::kOutput || kind == ArgKind::kInOut || kind == ArgKind::kOutputList ||
         kind == ArgKind::kInOutList;
}
constexpr bool IsRead(ArgKind kind) {
  return kind == ArgKind::kInput || kind == ArgKind::kInOut || kind == ArgKind::kInputList ||
         kind == ArgKind::kInOutList;
}

struct Arg {
  const char* name;
  ArgKind kind;
  const char* meaning = "";
  bool optional = false;

  bool is_tensor() const { return IsTensor(kind); }
  bool is_tensor_list() const { return IsTensorList(kind); }
  bool is_list() const { return is_tensor_list() || kind == ArgKind::kScalarList; }
  bool is_written() const { return IsWritten(kind); }
  bool is_read() const { return IsRead(kind); }
  bool is_array() const {
    return kind == ArgKind::kBoolArray || kind == ArgKind::kIntArray || kind == ArgKind::kFloatArray;
  }
  // Given by a pointer that may be null.
  bool is_handle() const {
    return is_tensor() || is_list() || is_array() || kind == ArgKind::kScalar || kind == ArgKind::kString;
  }
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
inline Arg InOut(const char* name, const char* meaning) { return {name, ArgKind::kInOut, meaning}; }

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
  kOneGiven,
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
  kDeduces,
  kDeducedConverts,
  kDeducedStaysComplex,
  kScalarFits,
  kScalarStaysComplex,
  kScalarDTypes,
  kBroadcast,
  kSameFormat,
  kPlainStorage,
  kOneOf,
  kDim,
  kDims,
  kSameLength,
  kDTypeArg,
  kDTypeIs,
  kNotGiven,
  kReduced,
  kReduces,
  kTail,
  kShapeOf,
  kKeepDims,
  kNotEmpty,
  kEvenAxis,
  kHalved,
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
  std::vector<int64_t> numbers = {};  // kOneOf
  CustomCheck check = nullptr;
  const char* text = "";  // kCustom: the rule in words
  bool alone = false;

  Rule Code(int32_t value) && {
    code = value;
    return std::move(*this);
  }
  // kDTypeArg: UNDEFINED too.
  Rule OrUndefined() && {
    max = 1;
    return std::move(*this);
  }
  // Of a list: kNotNull about the list itself, not its entries; other rules about its first entry only.
  Rule Alone() && {
    alone = true;
    return std::move(*this);
  }
  // kNotGiven: or without elements.
  Rule OrEmpty() && {
    max = 1;
    return std::move(*this);
  }
  // kCustom: asked of an optional argument that is absent, too.
  Rule EvenIfAbsent() && {
    max = 1;
    return std::move(*this);
  }
  Rule If(const char* flag, int bit = -1) && {
    when = {flag, bit};
    return std::move(*this);
  }
};

Rule NotNull(const char* arg);
// Of optional arguments at least one is not null.
Rule OneGiven(std::vector<const char*> args);
// An argument that stands for something we do not do.
Rule NotGiven(const char* arg);
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
// The dtype that the operands of Table::deduce have together (before Deduction::whole) must exist and be one of these.
Rule Deduces(std::vector<TypeRow> rows);
// ... and convert to the dtype of `arg`.
Rule DeducedConverts(const char* arg);
// ... or at least not drop an imaginary part on the way to it.
Rule DeducedStaysComplex(const char* arg);
// A scalar that is converted to the deduced dtype without losing its kind: no floating number becomes an integer.
Rule ScalarFits(const char* scalar);
// ... or whose imaginary part at least is not dropped.
Rule ScalarStaysComplex(const char* scalar);
Rule ScalarDTypes(const char* scalar, std::vector<TypeRow> rows);
// `result` has exactly the shape that the inputs broadcast to.
Rule Broadcast(const char* result, std::vector<const char*> inputs);
Rule SameFormat(std::vector<const char*> args);
// A tensor in a private format lies in memory as its view says: storage and view have the same shape.
Rule PlainStorage(const char* arg);
Rule OneOf(const char* arg, std::vector<int64_t> values);
// An axis of a tensor, counted from the end when negative; a 0-dim tensor has axis 0.
Rule Dim(const char* arg, const char* tensor);
// Several of them, none twice.
Rule DimsOf(const char* array, const char* tensor);
Rule SameLength(const char* list, const char* other);
// An integer argument that names a dtype, and a tensor that has it.
Rule DTypeArg(const char* arg, std::vector<TypeRow> rows);
// ... or, where that integer is UNDEFINED and `otherwise` is given, the dtype of that tensor.
Rule DTypeIs(const char* tensor, const char* arg, const char* otherwise = nullptr);
// What a reduction leaves: `args` name its axes (an axis, or an array of them: all when it is empty or null; without one
// all too), then the flag that keeps them as 1, then the flag under which an empty array means no axes at all.
// kLoose: with one element on both sides any rank does, and an empty tensor is not compared at all.
// kLooseForAll: that only when no axes are named.
enum class ShapeRule { kStrict, kLoose, kLooseForAll };
// Which axes an empty array stands for, where no flag says it.
enum class NoAxes { kAreAll, kAreNone };
Rule Reduced(const char* result, const char* tensor, std::vector<const char*> args, ShapeRule shape = ShapeRule::kStrict,
             NoAxes none = NoAxes::kAreAll);
// The axes it reduces, as in Reduced, all have elements.
Rule ReducesElements(const char* tensor, std::vector<const char*> args);
// `part`, a tensor or an array of numbers, are the trailing dims of `whole`.
Rule Tail(const char* part, const char* whole);
// `array` lists the dims.
Rule ShapeOf(const char* tensor, const char* array);
// The shape of `whole` with 1 for each of the trailing axes that `tail` has.
Rule KeepDims(const char* arg, const char* whole, const char* tail);
// ... unless it has no elements.
Rule KeepDimsOrEmpty(const char* arg, const char* whole, const char* tail);
// No dim is 0.
Rule NotEmpty(const char* tensor);
// An axis of a tensor, the last one or that of the argument `dim`, can be halved; `half` has the shape that is left.
Rule EvenAxis(const char* whole, const char* dim = nullptr);
Rule Halved(const char* half, const char* whole, const char* dim = nullptr);
Rule AcceptIfEmpty(std::vector<const char*> outputs);
Rule Custom(const char* arg, const char* text, CustomCheck check);

// The contract --------------------------------------------------------------------------------------

// A name for a size that shapes define: {"C", "input", 1} is dim 1 of input.
struct SizeName {
  const char* name;
  const char* arg;
  int axis;
};

// Which dtype an operator computes in: that of the named tensors and scalars together (core/promotion.h).
struct Deduction {
  std::vector<const char*> from = {};
  const char* out = nullptr;  // asked where the operands leave the precision open
  // A 0-dim tensor never decides the precision. Else it does not when `out` says so.
  Products zero_dim = {0};
  DType whole = DType::kUndefined;  // what integers and BOOL are computed in, if not in their own dtype
  DType truth = DType::kUndefined;  // ... what BOOL alone is
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
  Deduction deduce = {};
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
  // What Table::deduce gives for a call; for lists, of one of their entries.
  DType Deduced(Values values, int item = 0) const;
  // ... before integers become Deduction::whole.
  DType Common(Values values, int item = 0) const;
  // The tensor of an argument, or the item-th of a list; null when it is absent.
  const Tensor* TensorAt(int arg, int item, Values values) const;
  const Scalar* ScalarAt(int arg, int item, Values values) const;

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
    bool first_is_tensor = false;  // or a list of them
    bool second_is_tensor = false;
    bool alone = false;
    bool first_is_scalar = false;  // and looked at, or a list of them
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
  int Argument(const char* name) const;
  Resolved Resolve(const Rule& rule) const;
  static bool Applies(const Resolved& names, Values values);
  // Which axes of its tensor (args[first]) a reduction takes: one bit each.
  uint64_t ReducedAxes(const Rule& rule, const Resolved& names, size_t first, Values values) const;
  Dims ReducedDims(const Rule& rule, const Resolved& names, Values values) const;
  bool HoldsReduced(const Rule& rule, const Resolved& names, Values values) const;
  // How often a rule is checked: once, or once per entry of its lists.
  int Items(const Resolved& names, Values values) const;
  // "x", or "x[3]" for an entry of a list.
  std::string NameAt(int arg, int item) const;
  // Empty when the rule holds, else the sentence after "<operator>: ".
  std::string Broken(int index, int item, Values values, Product product) const;
  bool Holds(int index, int item, Values values, Product product) const;
  bool RowMatches(const TypeRow& row, const Resolved& names, int item, Values values, Product product) const;
  bool BroadcastOf(const Resolved& names, int item, Values values, Dims* dims) const;
  bool HoldsNull(const Resolved& names, Values values) const;
  bool HoldsDims(const Resolved& names, Values values) const;
  // Of a tensor, or the numbers of an array.
  Dims DimsOfArg(int arg, int item, Values values) const;
  // The axis that an argument names (-1: the last one), and a tensor's dims with half of it.
  static int AxisAt(int dim, const Tensor& tensor, Values values);
  static Dims HalvedDims(int dim, const Tensor& tensor, Values values);
  std::string DeductionText(Values values, int item) const;
  bool HoldsShape(const Resolved& names, const Tensor& tensor, Values values) const;
  size_t LengthOf(int arg, Values values) const;
  Number Lookup(int variable, Values values) const;
  bool IsWhole(int variable) const;
  int64_t LookupWhole(int variable, Values values) const;
  bool Equals(const Resolved& names, int formula, int64_t size, Values values) const;
  bool HoldsFormula(const Resolved& names, Values values) const;
  std::string ValuesOf(const Formula& formula, Values values) const;
  bool IsEmpty(int arg, Values values) const;
  bool HasNothing(int arg, Values values) const;
  bool IsWanted(int arg, Values values) const;
  Status LiveHandles(Values values) const;

  Table table_;
  std::vector<Resolved> resolved_;
  std::vector<int> deduce_from_;        // arguments of Table::deduce
  int deduce_out_ = -1;
  bool has_lists_ = false;
  std::vector<int> size_args_;          // per named size, the argument that defines it
  std::vector<std::string> variables_;  // ints, scalars and named sizes, by formula index
  int null_rules_ = 0;                  // how many rules at the head of the table are about null
};

// One row per dtype of a set; BF16 only where the product has it.
std::vector<TypeRow> RowsOf(DTypeSet types);
// The same on the newest product, and `others` on the rest.
std::vector<TypeRow> RowsOf(DTypeSet newest, DTypeSet others);

// The axes that an array names, counted from the end when negative; one bit each.
uint64_t AxisBits(std::span<const int64_t> axes, int rank);

// The shape that shapes broadcast to, aligned at their last axis; false when they do not.
bool BroadcastDims(std::span<const Dims* const> shapes, Dims* result);

// "FLOAT, FLOAT16 or BF16"
std::string Join(const std::vector<std::string>& words);

}  // namespace anyacl::contract

#endif  // ANYACL_CONTRACT_CONTRACT_H_
