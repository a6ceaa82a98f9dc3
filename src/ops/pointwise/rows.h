// SPDX-License-Identifier: Apache-2.0
// Copyright The AnyACL Authors
//
// Element-wise operators, one row each: the formula, what the operands may be, what decides the dtype it is computed in,
// what the result may be. From a row come the contract and the plan of the plain and of the in-place form, whichever the
// headers declare; operands that are scalars there are scalars here.
//
//   {.name = "Sub", .formula = Formula::kSub, .summary = "self - alpha * other", .types = kArithmetic, .scalars = {"alpha"}}
#ifndef ANYACL_OPS_POINTWISE_ROWS_H_
#define ANYACL_OPS_POINTWISE_ROWS_H_

#include <vector>

#include "core/inline_vector.h"
#include "ops/operators.h"
#include "ops/pointwise/formulas.h"
#include "ops/pointwise/pass.h"

namespace anyacl::pointwise {

// Dtypes on the newest product and on the others.
struct Types {
  constexpr Types() = default;
  constexpr Types(DTypeSet both) : newest(both), others(both) {}  // NOLINT: the usual case
  constexpr Types(DTypeSet newest_types, DTypeSet other_types) : newest(newest_types), others(other_types) {}
  constexpr bool empty() const { return newest.empty() && others.empty(); }
  DTypeSet newest, others;
};

// The result's dtype.
enum class Result {
  kConverts,  // one that the computed dtype converts to, and in Row::results if there are any
  kSame,      // that of the first operand
  kListed,    // any of Row::results; complex numbers stay complex
  kAny,       // any of Row::results, whatever is computed
  kPairs,     // Row::pairs
};

enum class Formats { kAny, kPublic, kSame, kSameAndPublic };

// Which rules hold for empty tensors too: all, or those up to some point.
enum class Empty { kAll, kAllButDeduction, kAllButShape, kTypesAndRank, kNulls };

struct Form;

// One call, before it becomes a step: Row::plan may change everything.
struct PassCall {
  const Form& form;
  contract::Values values;
  PlanBuilder& plan;
  Formula formula;
  DType computed;
  std::vector<Operand> inputs;  // those that are given, in the formula's order
  Operand out;
  std::vector<ScalarUse> scalars;
  PassOptions options;

  // The argument of that name; in an in-place form the first tensor has another one, and goes by its index.
  const contract::Value& Arg(const char* name) const;
  // Makes a scalar the i-th of the formula, or an input.
  void SetScalar(int i, const Scalar& value, DType as = DType::kUndefined);
  Operand Constant(const Scalar& value, DType as);
  Status Run();
};

struct Row {
  const char* name;  // without prefix
  Formula formula = Formula::kCopy;
  const char* summary;
  std::vector<std::string> texts = {};   // formulas, for the documentation page
  Types types = {};                      // of all tensors that are operands
  std::vector<Types> own = {};           // ... or of each, in the order of the header
  Types scalar_types = {};               // of scalars that are operands; empty: what the deduction takes
  std::vector<int> order = {};           // operands as the formula takes them; empty: as the header names them
  std::vector<const char*> scalars = {}; // scalars of the formula that are no operands, and so decide no dtype
  std::vector<const char*> optional = {};
  std::vector<const char*> null_order = {};
  unsigned aside = 0;                    // one bit per operand, in the order of the header: decides no dtype
  bool zero_dim = false;                 // contract::Deduction::zero_dim, on the newest product
  Types computed = {};                   // what the operands may make together; empty: Row::types
  DType whole = DType::kUndefined;       // what integers and BOOL are computed in, if not in their own dtype
  DType truth = DType::kUndefined;       // ... what BOOL alone is
  bool whole_as_result = false;          // ... if that is the result's dtype
  DType as = DType::kUndefined;          // computed in this, whatever the operands are
  bool equal_types = false;              // all operands have one dtype
  Result result = Result::kConverts;
  Types results = {};
  std::vector<contract::TypeRow> pairs = {};
  Formats formats = Formats::kAny;
  Empty empty = Empty::kAll;
  bool any_rank = false;
  int min_rank = 0;
  bool any_rank_in_place = false;
  int32_t shape_code = 0;                // of rank and shape, if not the usual one
  bool same_shape = false;               // operands are not broadcast
  bool real_scalars = false;             // scalars lose their digits to an integer dtype, but no imaginary part
  bool keep_scalars = false;             // scalars keep the digits that FLOAT16 and BF16 have not
  bool keep_zero_dim = false;            // ... and so do tensors without dims
  bool round_result = false;             // to the computed dtype, before it is converted to another
  const char* written = nullptr;         // the result, where it is not the last tensor (first of an in-place form)
  std::vector<const char*> ignored = {}; // tensors that are neither read nor written
  bool any_in_place = false;             // the in-place form takes integers although they are computed in floating point
  contract::Products products = contract::kAllProducts;
  bool own_shape = false;                // `rules` says what the result's shape is
  bool runs_empty = false;               // empty operands have a result, too
  // Rules right behind those about null.
  std::vector<contract::Rule> (*first_rules)(const Form& form) = nullptr;
  // Further rules. Names are as in the header of the form.
  std::vector<contract::Rule> (*rules)(const Form& form) = nullptr;
  Status (*plan)(PassCall& call) = nullptr;
  const char* family = "pointwise";
};

// A row with the arguments of one of its forms.
struct Form {
  Row row;
  std::vector<int> operands;           // arguments, in the formula's order
  std::vector<const char*> names;      // ... their names in the order of the header
  std::vector<int> scalars;            // of the formula
  int result;
  bool in_place;

  const char* out;                     // name of the result
};

// Declares the forms of a row that the headers have.
void Declare(Declarations* declarations, Row row);

}  // namespace anyacl::pointwise

#endif  // ANYACL_OPS_POINTWISE_ROWS_H_
