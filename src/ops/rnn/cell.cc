// SPDX-License-Identifier: Apache-2.0
// Copyright The AnyACL Authors
//
// One step of an LSTM from gates that are sums already, and its gradient: a recurrence of one step without a product.
#include <fmt/format.h>

#include "ops/dense.h"
#include "ops/matmul/product.h"
#include "ops/operators.h"
#include "ops/pointwise/formulas.h"
#include "ops/pointwise/pass.h"
#include "ops/rnn/families.h"
#include "ops/rnn/recurrence.h"
#include "ops/table.h"

namespace anyacl::rnn {
namespace {

using namespace contract;

enum { kInputGates, kHiddenGates, kCx, kInputBias, kHiddenBias, kHy, kCy, kStorage };
enum { kGradHy, kGradC, kBackCx, kBackCy, kBackStorage, kHasBias, kGradGates, kGradCx, kGradBias };

std::string WrongBias(Values v, Product) {
  if (v[kInputBias].given() == v[kHiddenBias].given()) return "";
  return fmt::format("must be given with hiddenBiasOptional or not at all, got {} and {}", v[kInputBias].given() ? "a tensor" : "null",
                     v[kHiddenBias].given() ? "a tensor" : "null");
}

// [batch, 4 * hidden] beside cx [batch, hidden].
template <int kArg, int kState>
std::string WrongGates(Values v, Product) {
  const Dims &gates = v[kArg].tensor->dims, &cx = v[kState].tensor->dims;
  if (gates.rank() == 2 && gates[0] == cx[0] && cx[1] <= gates[1] && gates[1] % 4 == 0 && gates[1] / 4 == cx[1]) return "";
  return fmt::format("must be [{}, 4 * {}], got {}", cx[0], cx[1], ToString(gates));
}
template <int kArg, int kState>
std::string WrongBiasShape(Values v, Product) {
  if (!v[kArg].given()) return "";
  const Dims &bias = v[kArg].tensor->dims, &cx = v[kState].tensor->dims;
  return bias.rank() == 1 && bias[0] % 4 == 0 && bias[0] / 4 == cx[1] ? "" : fmt::format("must be [4 * {}], got {}", cx[1], ToString(bias));
}

// A tensor in FLOAT, in memory of its own: the kernel writes it.
Status Own(PlanBuilder& plan, const char* name, int arg, Operand* own) {
  const Operand tensor = plan.TensorOperand(arg);
  *own = plan.ScratchOperand(name, DType::kF32, tensor.dims);
  return pointwise::AddCopy(plan, tensor, *own);
}
Status OwnOrZero(PlanBuilder& plan, const char* name, bool given, int arg, const Dims& dims, Operand* own) {
  if (given) return Own(plan, name, arg, own);
  *own = plan.ScratchOperand(name, DType::kF32, dims);
  const pointwise::ScalarUse zero[] = {{Scalar::OfFloat(0)}};
  return pointwise::AddPass(plan, pointwise::Formula::kFill, DType::kF32, {}, *own, zero);
}

RecurrenceParams& Begin(PlanBuilder& plan, const Dims& state, bool gradient) {
  auto& params = plan.MakeParams<RecurrenceParams>();
  params.cell = Cell::kLstm;
  params.gradient = gradient;
  params.steps = 1;
  params.batch = state[0];
  params.hidden = params.y_step = state[1];
  return params;
}

Status PlanCell(Values v, PlanBuilder& plan) {
  if (v[kInputGates].tensor->empty()) return {};
  const Dims &state = v[kCx].tensor->dims;
  const bool bias = v[kInputBias].given();
  Operand gates, hidden_gates, c, biases[2];
  ANYACL_RETURN_IF_ERROR(Own(plan, "gates", kInputGates, &gates));
  ANYACL_RETURN_IF_ERROR(Own(plan, "c", kCx, &c));
  ANYACL_RETURN_IF_ERROR(pointwise::DenseInput(plan, kHiddenGates, 0, DType::kF32, &hidden_gates));
  for (int i = 0; i < 2 && bias; ++i) ANYACL_RETURN_IF_ERROR(pointwise::DenseInput(plan, kInputBias + i, 0, DType::kF32, &biases[i]));
  const Operand h = plan.ScratchOperand("h", DType::kF32, state), y = plan.ScratchOperand("y", DType::kF32, state);
  const Operand cells = plan.ScratchOperand("cells", DType::kF32, state), tanh_cells = plan.ScratchOperand("tanh of cells", DType::kF32, state);
  RecurrenceParams& params = Begin(plan, state, false);
  Bind(plan, gates, params.gates);
  Bind(plan, hidden_gates, params.hidden_gates);
  Bind(plan, h, params.h);
  Bind(plan, c, params.c);
  Bind(plan, y, params.y);
  Bind(plan, cells, params.cells);
  Bind(plan, tanh_cells, params.tanh_cells);
  if (bias) {
    Bind(plan, biases[0], params.input_bias);
    Bind(plan, biases[1], params.hidden_bias);
  }
  ANYACL_RETURN_IF_ERROR(plan.ChooseKernel("recurrence"));
  ANYACL_RETURN_IF_ERROR(pointwise::AddCopy(plan, h, plan.TensorOperand(kHy)));
  ANYACL_RETURN_IF_ERROR(pointwise::AddCopy(plan, c, plan.TensorOperand(kCy)));
  return pointwise::AddCopy(plan, gates, plan.TensorOperand(kStorage));
}

Status PlanCellBackward(Values v, PlanBuilder& plan) {
  const Dims& state = v[kBackCx].tensor->dims;
  Operand dh, dc, c, gates;
  ANYACL_RETURN_IF_ERROR(OwnOrZero(plan, "gradient of h", v[kGradHy].given(), kGradHy, state, &dh));
  ANYACL_RETURN_IF_ERROR(OwnOrZero(plan, "gradient of c", v[kGradC].given(), kGradC, state, &dc));
  ANYACL_RETURN_IF_ERROR(pointwise::DenseInput(plan, kBackCx, 0, DType::kF32, &c));
  ANYACL_RETURN_IF_ERROR(pointwise::DenseInput(plan, kBackStorage, 0, DType::kF32, &gates));
  const Operand cy = plan.TensorOperand(kBackCy), tanh_cells = plan.ScratchOperand("tanh of cells", DType::kF32, state);
  ANYACL_RETURN_IF_ERROR(pointwise::AddPass(plan, pointwise::Formula::kTanh, DType::kF32, {&cy, 1}, tanh_cells));
  Operand grads = plan.ScratchOperand("gradients of gates", DType::kF32, gates.dims);
  RecurrenceParams& params = Begin(plan, state, true);
  Bind(plan, dh, params.dh);
  Bind(plan, dc, params.dc);
  Bind(plan, c, params.c);
  Bind(plan, gates, params.gates);
  Bind(plan, tanh_cells, params.tanh_cells);
  Bind(plan, grads, params.gate_grads);
  Bind(plan, grads, params.hidden_gate_grads);
  ANYACL_RETURN_IF_ERROR(plan.ChooseKernel("recurrence"));
  Operand bias;
  if (v[kHasBias].flag) {
    Operand one = plan.ScratchOperand("one", DType::kF32, {1});
    const pointwise::ScalarUse value[] = {{Scalar::OfFloat(1)}};
    ANYACL_RETURN_IF_ERROR(pointwise::AddPass(plan, pointwise::Formula::kFill, DType::kF32, {}, one, value));
    one.dims = {1, state[0]};
    one.strides = {0, 0};
    bias = plan.ScratchOperand("gradient of the bias", DType::kF32, {gates.dims[1]});
    ANYACL_RETURN_IF_ERROR(matmul::AddContraction(plan, matmul::Transposed(grads), {0, 1, 1}, one, {0, 1, 1}, bias));
  }
  ANYACL_RETURN_IF_ERROR(pointwise::AddCopy(plan, grads, plan.TensorOperand(kGradGates)));
  ANYACL_RETURN_IF_ERROR(pointwise::AddCopy(plan, dc, plan.TensorOperand(kGradCx)));
  return v[kHasBias].flag ? pointwise::AddCopy(plan, bias, plan.TensorOperand(kGradBias)) : Status();
}

constexpr DTypeSet kTypes = {DType::kF32, DType::kF16};

Operator MakeCell(const Entry& entry) {
  Table table = TableOf(entry, "recurrence", "One step of an LSTM from its gates before they are activated.",
                        {.optional = {"inputBiasOptional", "hiddenBiasOptional"}});
  table.formulas = {"i, f, g, o = inputGates + inputBias + hiddenGates + hiddenBias, activated; cy = f * cx + i * g; hy = o * tanh(cy)"};
  table.notes = {"storage holds the activated gates, in the order i, f, g, o."};
  AddNullRules(&table);
  Add(&table, {Custom("inputBiasOptional", "must be given with hiddenBiasOptional or not at all", WrongBias).EvenIfAbsent().Code(161001), Supported(kNewer),
               AcceptIfEmpty({"inputGates"}), DTypes("inputGates", RowsOf(kTypes))});
  for (const char* arg : {"hiddenGates", "cx", "inputBiasOptional", "hiddenBiasOptional", "hyOut", "cyOut", "storageOut"}) {
    Add(&table, {SameDType(arg, "inputGates")});
  }
  Add(&table, {Rank("cx", 2, 2), Custom("inputGates", "must have 4 gates for every element of cx", WrongGates<kInputGates, kCx>),
               SameShape("hiddenGates", "inputGates"), Custom("inputBiasOptional", "must have an element for every gate", WrongBiasShape<kInputBias, kCx>),
               Custom("hiddenBiasOptional", "must have an element for every gate", WrongBiasShape<kHiddenBias, kCx>), SameShape("hyOut", "cx"),
               SameShape("cyOut", "cx"), SameShape("storageOut", "inputGates")});
  return {.contract = Contract(std::move(table)), .plan = PlanCell, .family = "rnn"};
}

Operator MakeCellBackward(const Entry& entry) {
  Table table = TableOf(entry, "recurrence", "Gradient of one step of an LSTM.", {.optional = {"gradHyOptional", "gradCOptional", "gradBiasOut"}});
  AddNullRules(&table);
  Add(&table, {OneGiven({"gradHyOptional", "gradCOptional"}), NotNull("gradBiasOut").If("hasBias"), Supported(kNewer), DTypes("cx", RowsOf(kTypes))});
  for (const char* arg : {"gradHyOptional", "gradCOptional", "cy", "storage", "gradGatesOut", "gradCxOut", "gradBiasOut"}) {
    Add(&table, {SameDType(arg, "cx")});
  }
  Add(&table, {Formats("cx", {Format::kND}), SameFormat({"cx", "cy", "storage", "gradGatesOut", "gradCxOut"}), Rank("cx", 2, 2), NotEmpty("cx"),
               SameShape("gradHyOptional", "cx"), SameShape("gradCOptional", "cx"), SameShape("cy", "cx"),
               Custom("storage", "must have 4 gates for every element of cx", WrongGates<kBackStorage, kBackCx>), SameShape("gradGatesOut", "storage"),
               SameShape("gradCxOut", "cx"), Custom("gradBiasOut", "must have an element for every gate", WrongBiasShape<kGradBias, kBackCx>)});
  table.notes = {"A gradient that is null counts as zeros. gradBiasOut is not written without hasBias."};
  return {.contract = Contract(std::move(table)), .plan = PlanCellBackward, .family = "rnn"};
}

}  // namespace

void DeclareCells(Declarations& declarations) {
  declarations.Add("aclnnThnnFusedLstmCell", MakeCell);
  declarations.Add("aclnnThnnFusedLstmCellBackward", MakeCellBackward);
}

}  // namespace anyacl::rnn
