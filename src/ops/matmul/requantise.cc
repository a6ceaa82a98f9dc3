// SPDX-License-Identifier: Apache-2.0
// Copyright The AnyACL Authors
#include "ops/matmul/requantise.h"

#include <fmt/format.h>

#include <algorithm>

#include "ops/dense.h"
#include "ops/matmul/families.h"
#include "ops/pointwise/pass.h"
#include "ops/table.h"

namespace anyacl::matmul {
namespace {

using namespace contract;

enum { kScale, kOffset, kOut };

int64_t Count(const Tensor& t) { return t.numel(); }
bool IsVector(const Dims& dims) { return dims.rank() == 1 || (dims.rank() == 2 && dims[0] == 1); }

std::string WrongShapes(Values v, Product) {
  const Tensor &scale = *v[kScale].tensor, &out = *v[kOut].tensor;
  const int64_t offsets = v[kOffset].given() ? Count(*v[kOffset].tensor) : 1, most = std::max(Count(scale), offsets);
  const bool vectors = IsVector(scale.dims) && IsVector(out.dims) && (!v[kOffset].given() || IsVector(v[kOffset].tensor->dims));
  const bool fits = (Count(scale) == 1 || Count(scale) == most) && (offsets == 1 || offsets == most) && Count(out) == most;
  if (vectors && fits) return "";
  return fmt::format("must be [n] or [1, n] for as many scales and offsets, or one of them, got {}, {} scales and {} offsets", ToString(out.dims),
                     Count(scale), offsets);
}

Status PlanWords(Values v, PlanBuilder& plan) {
  const Operand out = plan.TensorOperand(kOut);
  plan.RequireApart(kOut);
  const Operand words = plan.ScratchOperand("words", DType::kI64, out.dims);
  Dense dense(plan, v, DType::kF32);
  ANYACL_RETURN_IF_ERROR(dense.Read(kScale));
  ANYACL_RETURN_IF_ERROR(dense.Read(kOffset));
  auto& params = plan.MakeParams<QuantWordsParams>();
  params.count = Numel(out.dims);
  params.scale_step = Count(*v[kScale].tensor) == 1 ? 0 : 1;
  params.offset_step = v[kOffset].given() && Count(*v[kOffset].tensor) != 1 ? 1 : 0;
  dense.Bind(kScale, params.scale);
  dense.Bind(kOffset, params.offset);
  plan.Bind(words, reinterpret_cast<void*&>(params.words));
  ANYACL_RETURN_IF_ERROR(plan.ChooseKernel("quant_words"));
  return pointwise::AddCopy(plan, words, out);
}

Operator MakeWords(const Entry& entry) {
  Table table = TableOf(entry, "quant_words", "Scales and offsets of quantised results as the product units take them.", {.optional = {"offset"}, .outputs = {"out"}});
  table.formulas = {"out = bits of scale without the lower 13, and round(offset) as a signed number of 9 bits from bit 37 on"};
  AddNullRules(&table);
  Add(&table, {Supported(Of({Product::kAscend950, Product::kA3, Product::kA2, Product::kInference})), DTypes("scale", RowsOf({DType::kF32})),
               DTypes("offset", RowsOf({DType::kF32})), DTypes("out", RowsOf({DType::kI64, DType::kU64})), NotEmpty("scale"), NotEmpty("offset"),
               Custom("out", "must be [n] or [1, n] for as many scales and offsets, or one of them", WrongShapes)});
  return {.contract = Contract(std::move(table)), .plan = PlanWords, .family = "matmul"};
}

}  // namespace

Status AddRequantise(PlanBuilder& plan, const Operand& y, int words, int out) {
  Operand dense_words;
  ANYACL_RETURN_IF_ERROR(pointwise::DenseInput(plan, words, 0, DType::kI64, &dense_words));
  const Operand to = pointwise::DenseOutput(plan, out, 0, DType::kI8);
  auto& params = plan.MakeParams<RequantiseParams>();
  params.columns = Numel(dense_words.dims);
  params.rows = Numel(y.dims) / params.columns;
  plan.Bind(y, reinterpret_cast<const void*&>(params.y));
  plan.Bind(dense_words, reinterpret_cast<const void*&>(params.words));
  plan.Bind(to, reinterpret_cast<void*&>(params.out));
  ANYACL_RETURN_IF_ERROR(plan.ChooseKernel("requantise"));
  return pointwise::FinishOutput(plan, out, 0, to);
}

void DeclareQuantWords(Declarations& declarations) { declarations.Add("aclnnTransQuantParamV2", MakeWords); }

}  // namespace anyacl::matmul
