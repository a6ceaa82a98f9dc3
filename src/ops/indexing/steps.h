// SPDX-License-Identifier: Apache-2.0
// Copyright The AnyACL Authors
//
// Walks (walk.h) as steps of a plan, and what stands around them: the output that is updated, accumulators.
#ifndef ANYACL_OPS_INDEXING_STEPS_H_
#define ANYACL_OPS_INDEXING_STEPS_H_

#include <vector>

#include "ops/indexing/walk.h"
#include "ops/movement/common.h"

namespace anyacl::indexing {

// One axis of a walk: how far each operand moves on it.
struct Axis {
  enum Kind { kLane, kSerial, kRun };
  Kind kind;
  int64_t size;
  int64_t table;
  int64_t data;
  std::vector<int64_t> index = {};  // per index; short: 0
};

// A tensor of positions on an axis of the table with `size` places, `step` elements apart.
struct Index {
  Operand operand;  // INT32 or INT64
  int64_t size;
  int64_t step;
  bool wraps;
};

struct Spec {
  Action action;
  Operand table;
  Operand data;
  std::vector<Axis> axes;
  std::vector<Index> indices;
  const Operand* scale = nullptr;  // one number of the table's dtype
  const Operand* hits = nullptr;
  bool keeps_first = false;
};
Status AddWalk(PlanBuilder& plan, Spec spec);

// Axes for one index [n] on axis `dim` of the table; `data` has the table's other dims and n there.
std::vector<Axis> AxesAlong(int dim, const Operand& table, const Operand& data, const Operand& index, bool writes);
// Axes for an index that names a place on `dim` for each of its elements, elsewhere its own position.
std::vector<Axis> AxesEach(int dim, const Operand& table, const Operand& data, const Operand& index, bool writes);
// Indices of [..., k] that name the first k coordinates; data is [..., the table's other dims].
Spec TupleSpec(Action action, const Operand& table, const Operand& data, const Operand& indices, bool wraps);

// What was added up in `table`, which becomes `dtype` later, divided by how often that was: (self if included + sum) / count,
// rounded down for integers.
Status AddMean(PlanBuilder& plan, const Operand& table, const Operand& hits, DType dtype, bool included);

// The dtype sums of `dtype` are kept in.
DType AccumulatorOf(DType dtype);
// The operand in another dtype; itself where it is of that.
Status Converted(PlanBuilder& plan, Operand operand, DType dtype, Operand* result);
// An index tensor as INT32 or INT64.
Status IndexOperand(PlanBuilder& plan, int arg, Operand* index);

// What a call updates: the output, started from `self` (which it may be), in `dtype`. It is scratch memory when the output
// has another dtype, shares memory with anything but self, or is not `dense` though it must be.
Status BeginUpdate(PlanBuilder& plan, int self, int out, DType dtype, bool dense, Operand* table);
// A step that brings it into the output.
Status EndUpdate(PlanBuilder& plan, int out, const Operand& table);

}  // namespace anyacl::indexing

#endif  // ANYACL_OPS_INDEXING_STEPS_H_
