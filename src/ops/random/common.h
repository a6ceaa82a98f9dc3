// SPDX-License-Identifier: Apache-2.0
// Copyright The AnyACL Authors
//
// What the operators of the family share: seeds, and the step that draws.
#ifndef ANYACL_OPS_RANDOM_COMMON_H_
#define ANYACL_OPS_RANDOM_COMMON_H_

#include "ops/movement/common.h"
#include "ops/random/random.h"

namespace anyacl::random {

using namespace contract;

inline constexpr char kSequenceNote[] = "The same seed, offset and shape give the same numbers, whatever the layout and the number of threads.";

// Rules for seedTensor and offsetTensor, behind all others.
void AddSeedRules(contract::Table* table);

// The source of a step's words: the integers `arg` and `arg + 1`; with `from_tensors` two tensors and the integer behind them.
void SetSource(PlanBuilder& plan, Values values, int arg, bool from_tensors, Source* source);

// Tensor `arg` as dense numbers of a shape that it broadcasts to.
Status NumbersFor(PlanBuilder& plan, int arg, const Dims& dims, bool wide, Operand* numbers);

// Steps that fill the output `out` as `facts` say; `seed`: where the source is.
Status AddDraw(PlanBuilder& plan, Values values, const RandomParams& facts, int seed, bool from_tensors, int out);

void DeclareDropout(Declarations& declarations);

}  // namespace anyacl::random

#endif  // ANYACL_OPS_RANDOM_COMMON_H_
