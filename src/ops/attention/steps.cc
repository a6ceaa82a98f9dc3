// SPDX-License-Identifier: Apache-2.0
// Copyright The AnyACL Authors
#include <algorithm>

#include "ops/attention/families.h"
#include "ops/pointwise/formulas.h"
#include "ops/pointwise/pass.h"

namespace anyacl::attention {

const Layout* LayoutNamed(std::string_view name) {
  for (const Layout& layout : kLayouts) {
    if (layout.name == name) return &layout;
  }
  return nullptr;
}

Tokens TokensOf(const Layout& layout, const Operand& operand, int64_t heads, int64_t batch) {
  Tokens tokens{};
  const int last = layout.rank - 1;
  tokens.dtype = operand.dtype;
  tokens.element = operand.strides[last];
  tokens.token = operand.strides[layout.token];
  tokens.width = operand.dims[last];
  if (layout.heads >= 0) {
    tokens.head = operand.strides[layout.heads];
  } else {
    tokens.width = heads == 0 ? 0 : operand.dims[last] / heads;
    tokens.head = tokens.width * tokens.element;
  }
  if (layout.batch >= 0 && operand.dims[layout.batch] == batch) tokens.sequence = operand.strides[layout.batch];
  return tokens;
}

void BindTokens(PlanBuilder& plan, const Layout& layout, const Operand& operand, int64_t heads, int64_t batch, Tokens* tokens) {
  *tokens = TokensOf(layout, operand, heads, batch);
  if (Numel(operand.dims) != 0) plan.Bind(operand, tokens->data);
}

Places Place(std::vector<Sequence>* sequences, bool shared_keys) {
  Places places;
  for (Sequence& s : *sequences) {
    s.q_place = places.queries;
    s.k_place = shared_keys ? 0 : places.keys;
    places.queries += Padded(s.q_count);
    places.keys = s.k_place + Padded(s.k_count);
  }
  return places;
}

Status AddSequences(PlanBuilder& plan, const std::vector<Sequence>& sequences, Operand* table) {
  constexpr auto kWords = static_cast<int64_t>(sizeof(Sequence) / sizeof(int64_t));
  const auto count = static_cast<int64_t>(sequences.size());
  *table = plan.ScratchOperand("sequences", DType::kI64, {count, kWords});
  for (int64_t first = 0; first < count; first += kSequencesAtOnce) {
    auto& params = plan.MakeParams<SequencesParams>();
    params.count = std::min<int64_t>(kSequencesAtOnce, count - first);
    std::copy_n(sequences.begin() + first, params.count, params.values);
    Operand part = *table;
    part.offset += first * static_cast<int64_t>(sizeof(Sequence));
    part.dims[0] = params.count;
    plan.Bind(part, reinterpret_cast<void*&>(params.to));
    ANYACL_RETURN_IF_ERROR(plan.ChooseKernel("attention_sequences"));
  }
  return {};
}

int64_t SetsOf(const std::vector<Sequence>& sequences, int64_t heads, bool keys_too) {
  int64_t tokens = 1;
  for (const Sequence& s : sequences) tokens = std::max({tokens, s.q_count, keys_too ? s.k_count : 0});
  int64_t sets = 1;  // what is too many is cut each time: the product of the three may be beyond all numbers
  for (const int64_t factor : {static_cast<int64_t>(sequences.size()), heads, (tokens - 1) / kTile + 1}) {
    sets = std::min(sets * std::clamp<int64_t>(factor, 1, kMostSets), kMostSets);
  }
  return sets;
}

Status AddZeros(PlanBuilder& plan, const Operand& to) {
  const pointwise::ScalarUse zero[] = {{Scalar::OfFloat(0)}};
  return Numel(to.dims) == 0 ? Status() : pointwise::AddPass(plan, pointwise::Formula::kFill, to.dtype, {}, to, zero);
}

}  // namespace anyacl::attention

namespace anyacl {

void DeclareAttention(Declarations& declarations) {
  attention::DeclareScores(declarations);
  attention::DeclareInference(declarations);
}

}  // namespace anyacl
