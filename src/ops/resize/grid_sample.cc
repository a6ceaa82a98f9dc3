// SPDX-License-Identifier: Apache-2.0
// Copyright The AnyACL Authors
//
// Sampling at the places of a grid, over two or three axes, and its gradients.
#include "ops/resize/grid_sample.h"

#include <fmt/format.h>

#include "ops/dense.h"
#include "ops/operators.h"
#include "ops/pointwise/pass.h"
#include "ops/resize/families.h"
#include "ops/table.h"

namespace anyacl::resize {
namespace {

using namespace contract;

constexpr DTypeSet kTypes = types::kFloat3 | types::kDouble;

// Where arguments stand: the gradients come with what they start from in front.
enum Forward { kInput, kGrid, kMode, kPadding, kAlign, kOut, kForwardArgs };
enum Backward { kGradOut, kBackInput, kBackGrid, kBackMode, kBackPadding, kBackAlign, kMask, kInputGrad, kGridGrad };

bool IsForward(Values v) { return v.size() == kForwardArgs; }
int Shift(Values v) { return IsForward(v) ? 0 : 1; }
const Tensor& InputOf(Values v) { return *v[kInput + Shift(v)].tensor; }
const Tensor& GridOf(Values v) { return *v[kGrid + Shift(v)].tensor; }
const Tensor& SamplesOf(Values v) { return *v[IsForward(v) ? static_cast<int>(kOut) : static_cast<int>(kGradOut)].tensor; }

bool ChannelsLast(Values v) { return InputOf(v).rank() == 5 && InputOf(v).format == Format::kNDHWC; }

std::string WrongMode(Values v, Product product) {
  const int64_t mode = v[kMode + Shift(v)].integer;
  const bool plane = InputOf(v).rank() == 4;
  const bool small = product == Product::kTraining || product == Product::kInference || product == Product::k200I;
  const bool exact = product != Product::kAscend950 && InputOf(v).dtype == DType::kF64;
  const int64_t most = plane && !small && !exact ? 2 : 1;
  return mode >= 0 && mode <= most ? "" : fmt::format("must be 0 to {}, got {}", most, mode);
}

std::string WrongPadding(Values v, Product) {
  const int64_t padding = v[kPadding + Shift(v)].integer;
  return padding >= 0 && padding <= 2 ? "" : fmt::format("must be 0 to 2, got {}", padding);
}

std::string WrongGrid(Values v, Product) {
  const Dims &input = InputOf(v).dims, &grid = GridOf(v).dims;
  const int64_t axes = input.rank() - 2;
  if (grid.rank() == input.rank() && grid[0] == input[0] && grid[grid.rank() - 1] == axes) return "";
  return fmt::format("must be [{}, ..., {}] of the rank of the input, got {}", input[0], axes, ToString(grid));
}

std::string WrongInput(Values v, Product) {
  const Dims& input = InputOf(v).dims;
  const int first = ChannelsLast(v) ? 1 : 2;
  for (int i = 0; i < input.rank() - 2; ++i) {
    if (input[first + i] == 0) return fmt::format("must have elements on all axes of its planes, got {}", ToString(input));
  }
  return "";
}

std::string WrongSamples(Values v, Product) {
  const Dims &input = InputOf(v).dims, &grid = GridOf(v).dims;
  Dims wanted = {input[0]};
  if (!ChannelsLast(v)) wanted.push_back(input[1]);
  for (int i = 1; i < grid.rank() - 1; ++i) wanted.push_back(grid[i]);
  if (ChannelsLast(v)) wanted.push_back(input[4]);
  const Dims& given = SamplesOf(v).dims;
  return wanted == given ? "" : fmt::format("must have shape {}, got {}", ToString(wanted), ToString(given));
}

// In the order of the kernel: channels in front of the planes.
Operand ChannelsFirst(Values v, Operand operand) {
  if (!ChannelsLast(v)) return operand;
  Operand moved = operand;
  for (int i = 1; i < 5; ++i) {
    moved.dims[i] = operand.dims[i == 1 ? 4 : i - 1];
    moved.strides[i] = operand.strides[i == 1 ? 4 : i - 1];
  }
  return moved;
}

GridSampleParams ParamsOf(Values v, DType dtype) {
  GridSampleParams p{};
  const Dims &input = InputOf(v).dims, &grid = GridOf(v).dims;
  p.axes = input.rank() - 2;
  p.batch = input[0];
  p.channels = input[ChannelsLast(v) ? 4 : 1];
  p.places = 1;
  const int last = input.rank() - (ChannelsLast(v) ? 2 : 1);
  for (int i = 0; i < 3; ++i) p.size[i] = i < p.axes ? input[last - i] : 1;
  for (int i = 1; i < grid.rank() - 1; ++i) p.places *= grid[i];
  p.dtype = dtype;
  p.sampling = static_cast<Sampling>(v[kMode + Shift(v)].integer);
  p.padding = static_cast<Padding>(v[kPadding + Shift(v)].integer);
  p.align_corners = v[kAlign + Shift(v)].flag;
  return p;
}

Status PlanForward(Values v, PlanBuilder& plan) {
  if (v[kOut].tensor->empty()) return {};
  const DType dtype = InputOf(v).dtype == DType::kF64 ? DType::kF64 : DType::kF32;
  Dense dense(plan, v, dtype);
  ANYACL_RETURN_IF_ERROR(dense.Read(kInput, ChannelsFirst(v, plan.TensorOperand(kInput))));
  ANYACL_RETURN_IF_ERROR(dense.Read(kGrid));
  dense.Write(kOut, ChannelsFirst(v, plan.TensorOperand(kOut)));
  auto& params = plan.MakeParams<GridSampleParams>();
  params = ParamsOf(v, dtype);
  dense.Bind(kInput, params.input);
  dense.Bind(kGrid, params.grid);
  dense.BindOut(kOut, params.samples);
  ANYACL_RETURN_IF_ERROR(plan.ChooseKernel("grid_sample"));
  return dense.Finish();
}

Status PlanBackward(Values v, PlanBuilder& plan) {
  if (!v[kMask].given()) return {};
  const bool input_grad = v[kMask].bools->values[0] && !v[kInputGrad].tensor->empty();
  const bool grid_grad = v[kMask].bools->values[1] && !v[kGridGrad].tensor->empty();
  if (!input_grad && !grid_grad) return {};
  if (v[kGradOut].tensor->empty()) {
    if (input_grad) ANYACL_RETURN_IF_ERROR(FillOutput(plan, kInputGrad, 0));
    return grid_grad ? FillOutput(plan, kGridGrad, 0) : Status();
  }
  const DType dtype = InputOf(v).dtype == DType::kF64 ? DType::kF64 : DType::kF32;
  Dense dense(plan, v, dtype);
  ANYACL_RETURN_IF_ERROR(dense.Read(kGradOut, ChannelsFirst(v, plan.TensorOperand(kGradOut))));
  ANYACL_RETURN_IF_ERROR(dense.Read(kBackInput, ChannelsFirst(v, plan.TensorOperand(kBackInput))));
  ANYACL_RETURN_IF_ERROR(dense.Read(kBackGrid));
  if (input_grad) dense.Write(kInputGrad, ChannelsFirst(v, plan.TensorOperand(kInputGrad)));
  if (grid_grad) dense.Write(kGridGrad);
  auto& params = plan.MakeParams<GridSampleParams>();
  params = ParamsOf(v, dtype);
  dense.Bind(kBackInput, params.input);
  dense.Bind(kBackGrid, params.grid);
  dense.Bind(kGradOut, params.samples);
  dense.BindOut(kInputGrad, params.input_grad);
  dense.BindOut(kGridGrad, params.grid_grad);
  ANYACL_RETURN_IF_ERROR(plan.ChooseKernel("grid_sample"));
  return dense.Finish();
}

Operator Make(const Entry& entry, bool volume) {
  const bool forward = entry.args.size() == kForwardArgs;
  Table table = TableOf(entry, "grid_sample", forward ? "Samples images at the places of a grid." : "Gradients of images sampled at the places of a grid.",
                        {.optional = forward ? std::vector<const char*>{} : std::vector<const char*>{"outputMask"}});
  const char* const samples = forward ? "out" : "gradOutput";
  const Products some = Of({Product::kAscend950, Product::kA3, Product::kA2, Product::kTraining});
  AddNullRules(&table);
  Add(&table, {Supported(volume || !forward ? some : kAllProducts), DTypes("input", RowsOf(kTypes)), SameDType("grid", "input"), SameDType(samples, "input")});
  if (!forward) Add(&table, {SameDType("inputGrad", "input"), SameDType("gridGrad", "input"), Length("outputMask", 2)});
  Add(&table, {Rank("input", volume ? 5 : 4, volume ? 5 : 4)});
  if (volume) {
    Add(&table, {Formats("input", {Format::kNCDHW, Format::kNDHWC, Format::kND}), SameFormat({samples, "input"})});
    if (!forward) Add(&table, {SameFormat({"inputGrad", "input"})});
  }
  Add(&table, {Custom("interpolationMode", "must be 0 (linear), 1 (nearest) or, in planes, 2 (cubic)", WrongMode),
               Custom("paddingMode", "must be 0 (zeros), 1 (border) or 2 (reflection)", WrongPadding),
               Custom("grid", "must have the batch of the input and one coordinate per axis", WrongGrid),
               Custom("input", "must have elements on all axes of its planes", WrongInput),
               Custom(samples, "must have one element per channel and place", WrongSamples)});
  if (!forward) Add(&table, {SameShape("inputGrad", "input"), SameShape("gridGrad", "grid")});
  table.notes = {"Coordinates are computed in FLOAT, of DOUBLE images in DOUBLE. -1 and 1 are the centres of the outermost elements "
                 "(alignCorners), or their outer edges."};
  return {.contract = Contract(std::move(table)), .plan = forward ? PlanForward : PlanBackward, .family = "resize"};
}

}  // namespace

void DeclareGridSample(Declarations& declarations) {
  for (const char* name : {"aclnnGridSampler2D", "aclnnGridSampler2DBackward"}) {
    declarations.Add(name, [](const Entry& entry) { return Make(entry, false); });
  }
  for (const char* name : {"aclnnGridSampler3D", "aclnnGridSampler3DBackward"}) {
    declarations.Add(name, [](const Entry& entry) { return Make(entry, true); });
  }
}

}  // namespace anyacl::resize
