// SPDX-License-Identifier: Apache-2.0
// Copyright The AnyACL Authors
//
// Elements that change their place and nothing else: the copy, and what the rest of the family stands on.
#include "ops/movement/families.h"
#include "plan/layout.h"

namespace anyacl {
namespace movement {
namespace {

using namespace contract;

enum { kSelf, kSrc };

// Raw storage of equal private formats is copied as it is.
std::string WrongPrivate(Values v, Product) {
  const Tensor &self = *v[kSelf].tensor, &src = *v[kSrc].tensor;
  if (!IsPrivate(self.format) && !IsPrivate(src.format)) return "";
  const bool alike = self.format == src.format && self.dtype == src.dtype && self.storage == src.storage && self.dims == src.dims;
  return alike ? ""
               : "must have the private format, dtype and storage of src, got " + Name(self.format) + " " + ToString(self.storage) +
                     " and " + Name(src.format) + " " + ToString(src.storage);
}

Status PlanCopy(Values values, PlanBuilder& plan) {
  const Tensor& self = *values[kSelf].tensor;
  if (self.empty() || values[kSrc].tensor->empty()) return {};
  Operand from = plan.TensorOperand(kSrc), to = plan.TensorOperand(kSelf);
  if (IsPrivate(self.format)) {
    from = Reshaped(from, self.storage);
    to = Reshaped(to, self.storage);
  }
  const bool piled_up = OverlapsItself(self) && !IsPrivate(self.format);
  if (plan.Overlaps(to, /*exact_too=*/false) || (piled_up && from.dtype != to.dtype)) {  // as if all had been read before
    const Operand copy = plan.ScratchOperand("source", to.dtype, piled_up ? to.dims : from.dims);
    ANYACL_RETURN_IF_ERROR(pointwise::AddCopy(plan, from, copy));
    from = copy;
  }
  if (!piled_up) return pointwise::AddCopy(plan, from, to);
  auto& params = plan.MakeParams<CopyParams>();  // several sources for one element: the last one wins
  const Operand source = pointwise::BroadcastTo(from, to.dims);
  params.copy.dims = to.dims;
  params.copy.from_strides = source.strides;
  params.copy.to_strides = to.strides;
  params.copy.element_size = static_cast<int>(SizeOf(to.dtype));
  params.copy.serial = true;
  plan.Bind(source, params.copy.from);
  plan.Bind(to, params.copy.to);
  return plan.ChooseKernel("copy");
}

Operator MakeInplaceCopy(const Entry& entry) {
  constexpr DTypeSet kCopied = types::kBasic10 | types::kUnsigned3 | types::kComplex;
  Table table = TableOf(entry, "copy", "Copies a tensor into another, converting its dtype and broadcasting it.",
                        {.outputs = {"selfRef"}});
  table.formulas = {"selfRef[...] = src, broadcast to the shape of selfRef"};
  table.notes = {"Of a complex number that becomes a real one the real part is kept. Equal dtypes are copied bit by bit."};
  AddNullRules(&table);
  // BF16 too, whatever the product.
  std::vector<TypeRow> rows = EverywhereRows(kCopied);
  rows.push_back({{DType::kC32}, kOnly950});
  Add(&table, {DTypes("selfRef", rows), DTypes("src", rows), Rank("selfRef", 0, 8), Rank("src", 0, 8),
               Broadcast("selfRef", {"selfRef", "src"}),
               Custom("selfRef", "must have the private format, dtype and storage of src where either has a private format",
                      WrongPrivate)});
  return {.contract = Contract(std::move(table)), .plan = PlanCopy, .family = "movement"};
}

}  // namespace

Status AddRemap(PlanBuilder& plan, const Operand& in, const Operand& out, const std::vector<AxisMap>& maps) {
  auto& p = plan.MakeParams<RemapParams>();
  for (size_t i = 0; i < maps.size(); ++i) {
    p.mapping[i] = maps[i].mapping;
    p.before[i] = maps[i].before;
  }
  p.element_size = static_cast<int32_t>(SizeOf(out.dtype));
  plan.Bind(in, p.in);
  plan.Bind(out, p.out);
  return plan.ChooseKernel("remap");
}

}  // namespace movement

void DeclareMovement(Declarations& declarations) {
  declarations.Add("aclnnInplaceCopy", movement::MakeInplaceCopy);
  movement::DeclareJoins(declarations);
  movement::DeclareLayouts(declarations);
  movement::DeclarePads(declarations);
  movement::DeclareSlices(declarations);
}

}  // namespace anyacl
