// SPDX-License-Identifier: Apache-2.0
// Copyright The AnyACL Authors
//
// What operators that move, create and index elements share: sets of dtypes, rules, operands seen as other views.
#ifndef ANYACL_OPS_MOVEMENT_COMMON_H_
#define ANYACL_OPS_MOVEMENT_COMMON_H_

#include <string>
#include <vector>

#include "ops/operators.h"
#include "ops/pointwise/pass.h"
#include "ops/table.h"

namespace anyacl {

namespace types {
inline constexpr DTypeSet kBasic10 = kFloat3 | kDouble | kInt5Bool;
inline constexpr DTypeSet kUnsigned3 = {DType::kU16, DType::kU32, DType::kU64};
inline constexpr DTypeSet kSmall8 = kFloat3 | kBool | DTypeSet{DType::kI8, DType::kU8, DType::kI32, DType::kI64};
inline constexpr DTypeSet kIndex = {DType::kI32, DType::kI64};
inline constexpr DTypeSet kMask = {DType::kBool, DType::kU8};
inline constexpr DTypeSet kComplex32 = {DType::kC32};
inline constexpr DTypeSet kFloat8 = {};
inline constexpr DTypeSet kExponent8 = {};
}  // namespace types

namespace movement {

inline constexpr contract::Products kNewerAndTraining =
    contract::Of({Product::kAscend950, Product::kA3, Product::kA2, Product::kTraining});
inline constexpr contract::Products kNewerAndInference =
    contract::Of({Product::kAscend950, Product::kA3, Product::kA2, Product::kInference});
inline constexpr contract::Products kFive =
    contract::Of({Product::kAscend950, Product::kA3, Product::kA2, Product::kTraining, Product::kInference});

// One row per dtype on every product, BF16 too.
std::vector<contract::TypeRow> EverywhereRows(DTypeSet types);

// Rank 0 to 8 for every tensor of the table.
void AddRankRules(contract::Table* table);
// A private format is a promise about the storage: refused where it does not lie as its view does.
void AddStorageRules(contract::Table* table);

// "must have shape ..., got ..." of an output whose shape a function computes; it may refuse by a dim of -1.
template <int kArg, Dims (*kShape)(contract::Values)>
std::string WrongShape(contract::Values values, Product) {
  const Dims want = kShape(values);
  const Dims& got = values[kArg].tensor->dims;
  return want == got ? "" : "must have shape " + ToString(want) + ", got " + ToString(got);
}
template <int kArg, Dims (*kShape)(contract::Values)>
contract::Rule ShapeOf(const char* arg, const char* text) {
  return contract::Custom(arg, text, WrongShape<kArg, kShape>);
}

// An axis counted from the front; of a 0-dim tensor it is 0.
inline int AxisOf(int64_t axis, int rank) { return static_cast<int>(axis < 0 ? axis + (rank > 0 ? rank : 1) : axis); }

// ---- Views of operands: the same elements in another order, or some of them. -------------------------------------------------

// Elements start, start + step, ... of an axis.
Operand Narrow(Operand operand, int axis, int64_t start, int64_t count, int64_t step = 1);
Operand Permuted(const Operand& operand, const std::vector<int>& axes);
// A new axis of `size` before `axis`, on which nothing moves.
Operand WithAxis(const Operand& operand, int axis, int64_t size = 1);
Operand WithoutAxis(const Operand& operand, int axis);
// An axis as two: [size / inner, inner].
Operand SplitAxis(const Operand& operand, int axis, int64_t inner);
// The elements on a diagonal of the last two axes, as one axis.
Operand DiagonalOf(const Operand& operand, int64_t diagonal);
// A row-major operand with other dims.
Operand Reshaped(const Operand& operand, const Dims& dims);
// A 0-dim operand as one of [1].
Operand AtLeast1d(const Operand& operand);

// ---- Steps -------------------------------------------------------------------------------------------------------------------

// The output itself, or scratch memory of its shape when another tensor of the call lies there too: so all of those count as
// read before the first element is written. pointwise::FinishOutput afterwards.
Operand ApartOutput(PlanBuilder& plan, int arg, int item = 0);
// A tensor as a row-major operand of its own dtype.
Status DenseOf(PlanBuilder& plan, Operand operand, Operand* dense);
Status AddFill(PlanBuilder& plan, const Operand& out, const Scalar& value);
Status AddZeros(PlanBuilder& plan, const Operand& out);
// from to the output `arg`, through scratch memory if they share some.
Status CopyOut(PlanBuilder& plan, const Operand& from, int arg, int item = 0);

}  // namespace movement
}  // namespace anyacl

#endif  // ANYACL_OPS_MOVEMENT_COMMON_H_
