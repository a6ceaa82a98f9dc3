// SPDX-License-Identifier: Apache-2.0
// Copyright The AnyACL Authors
//
// What the parts of the family share: layouts, and the sequences of a call.
#ifndef ANYACL_OPS_ATTENTION_FAMILIES_H_
#define ANYACL_OPS_ATTENTION_FAMILIES_H_

#include <string_view>
#include <vector>

#include "contract/value.h"
#include "ops/attention/attention.h"
#include "ops/operators.h"
#include "plan/plan.h"

namespace anyacl::attention {

// Which axis is which; -1: there is none. Without one for heads, the last axis holds heads times numbers.
struct Layout {
  std::string_view name;
  int rank;
  int batch;
  int heads;
  int token;
};
inline constexpr Layout kLayouts[] = {{"BSH", 3, 0, -1, 1}, {"SBH", 3, 1, -1, 0}, {"BSND", 4, 0, 2, 1}, {"BNSD", 4, 0, 1, 2}, {"TND", 3, -1, 1, 0}};
// Null when there is no such layout.
const Layout* LayoutNamed(std::string_view name);

inline bool HasElements(const contract::Value& tensor) { return tensor.given() && !tensor.tensor->empty(); }
inline bool HasNumbers(const contract::Value& ints) { return ints.given() && !ints.ints->values.empty(); }

// "no limit", small enough to be added to.
inline constexpr int64_t kFar = int64_t{1} << 40;

// An operand of that layout with `heads` heads; with one sequence where there are `batch`, it is repeated.
Tokens TokensOf(const Layout& layout, const Operand& operand, int64_t heads, int64_t batch);

// The operand and the pointer that receives it, but for operands without elements.
void BindTokens(PlanBuilder& plan, const Layout& layout, const Operand& operand, int64_t heads, int64_t batch, Tokens* tokens);

// Packed tokens of all sequences, for one head.
struct Places {
  int64_t queries = 0;
  int64_t keys = 0;
};
// Says where each sequence lies among packed tokens.
Places Place(std::vector<Sequence>* sequences, bool shared_keys);

// Steps that write the sequences to memory, which is returned.
Status AddSequences(PlanBuilder& plan, const std::vector<Sequence>& sequences, Operand* table);

// Sets of tables that their tiles of queries, or also those of keys, can use at the same time.
int64_t SetsOf(const std::vector<Sequence>& sequences, int64_t heads, bool keys_too);

Status AddZeros(PlanBuilder& plan, const Operand& to);

void DeclareScores(Declarations& declarations);     // of training
void DeclareInference(Declarations& declarations);

}  // namespace anyacl::attention

#endif  // ANYACL_OPS_ATTENTION_FAMILIES_H_
