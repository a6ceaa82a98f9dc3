// SPDX-License-Identifier: Apache-2.0
// Copyright The AnyACL Authors
//
// Every pooling entry is one row: where its arguments stand, how many axes it has, and what it computes.
#include <fmt/format.h>

#include <algorithm>

#include "ops/operators.h"
#include "ops/pointwise/formulas.h"
#include "ops/pointwise/pass.h"
#include "ops/pool/pool.h"
#include "ops/table.h"

namespace anyacl {
namespace {

using namespace contract;
using pool::Axis;
using pool::Mode;

// Positions of arguments; -1: the entry has none.
struct Row {
  const char* op;
  Mode mode;
  int axes;
  int self;     // what windows move over, or its description
  int small;    // one element per window
  int gradient = -1;  // of self, in the backward entries
  int kernel = -1;    // adaptive where -1
  int stride = -1;
  int padding = -1;
  int dilation = -1;
  int ceil = -1;
  int include = -1;
  int divisor = -1;
  int cube = -1;
  int output_size = -1;  // of adaptive forward entries
  int indices = -1;
  bool mask = false;     // indices are bytes that hold INT32
  bool global = false;   // one window over everything
  bool onnx = false;     // strides are 1 where none are given, paddings may differ at the two ends of an axis, no dilation
};

constexpr Row kRows[] = {
    {.op = "aclnnAvgPool2d", .mode = Mode::kAverage, .axes = 2, .self = 0, .small = 8, .kernel = 1, .stride = 2, .padding = 3, .ceil = 4,
     .include = 5, .divisor = 6, .cube = 7},
    {.op = "aclnnAvgPool2dBackward", .mode = Mode::kAverageGradient, .axes = 2, .self = 1, .small = 0, .gradient = 9, .kernel = 2,
     .stride = 3, .padding = 4, .ceil = 5, .include = 6, .divisor = 7, .cube = 8},
    {.op = "aclnnAvgPool3d", .mode = Mode::kAverage, .axes = 3, .self = 0, .small = 7, .kernel = 1, .stride = 2, .padding = 3, .ceil = 4,
     .include = 5, .divisor = 6},
    {.op = "aclnnAvgPool3dBackward", .mode = Mode::kAverageGradient, .axes = 3, .self = 1, .small = 0, .gradient = 8, .kernel = 2,
     .stride = 3, .padding = 4, .ceil = 5, .include = 6, .divisor = 7},
    {.op = "aclnnAdaptiveAvgPool2d", .mode = Mode::kAverage, .axes = 2, .self = 0, .small = 2, .output_size = 1},
    {.op = "aclnnAdaptiveAvgPool2dBackward", .mode = Mode::kAverageGradient, .axes = 2, .self = 1, .small = 0, .gradient = 2},
    {.op = "aclnnAdaptiveAvgPool3d", .mode = Mode::kAverage, .axes = 3, .self = 0, .small = 2, .output_size = 1},
    {.op = "aclnnAdaptiveAvgPool3dBackward", .mode = Mode::kAverageGradient, .axes = 3, .self = 1, .small = 0, .gradient = 2},
    {.op = "aclnnAdaptiveMaxPool2d", .mode = Mode::kMaximum, .axes = 2, .self = 0, .small = 2, .output_size = 1, .indices = 3},
    {.op = "aclnnAdaptiveMaxPool2dBackward", .mode = Mode::kMaximumGradient, .axes = 2, .self = 1, .small = 0, .gradient = 3, .indices = 2},
    {.op = "aclnnAdaptiveMaxPool3d", .mode = Mode::kMaximum, .axes = 3, .self = 0, .small = 2, .output_size = 1, .indices = 3},
    {.op = "aclnnAdaptiveMaxPool3dBackward", .mode = Mode::kMaximumGradient, .axes = 3, .self = 1, .small = 0, .gradient = 3, .indices = 2},
    {.op = "aclnnMaxPool2dWithIndices", .mode = Mode::kMaximum, .axes = 2, .self = 0, .small = 6, .kernel = 1, .stride = 2, .padding = 3,
     .dilation = 4, .ceil = 5, .indices = 7},
    {.op = "aclnnMaxPool2dWithIndicesBackward", .mode = Mode::kMaximumGradient, .axes = 2, .self = 1, .small = 0, .gradient = 8, .kernel = 3,
     .stride = 4, .padding = 5, .dilation = 6, .ceil = 7, .indices = 2},
    {.op = "aclnnMaxPool2dWithMask", .mode = Mode::kMaximum, .axes = 2, .self = 0, .small = 6, .kernel = 1, .stride = 2, .padding = 3,
     .dilation = 4, .ceil = 5, .indices = 7, .mask = true},
    {.op = "aclnnMaxPool2dWithMaskBackward", .mode = Mode::kMaximumGradient, .axes = 2, .self = 1, .small = 0, .gradient = 8, .kernel = 3,
     .stride = 4, .padding = 5, .dilation = 6, .ceil = 7, .indices = 2, .mask = true},
    {.op = "aclnnMaxPool3dWithArgmax", .mode = Mode::kMaximum, .axes = 3, .self = 0, .small = 6, .kernel = 1, .stride = 2, .padding = 3,
     .dilation = 4, .ceil = 5, .indices = 7},
    {.op = "aclnnMaxPool3dWithArgmaxBackward", .mode = Mode::kMaximumGradient, .axes = 3, .self = 1, .small = 0, .gradient = 8, .kernel = 3,
     .stride = 4, .padding = 5, .dilation = 6, .ceil = 7, .indices = 2},
    {.op = "aclnnMaxPool", .mode = Mode::kMaximum, .axes = 2, .self = 0, .small = 7, .kernel = 1, .stride = 2, .padding = 4, .dilation = 5,
     .ceil = 6, .onnx = true},
    {.op = "aclnnGlobalAveragePool", .mode = Mode::kAverage, .axes = 2, .self = 0, .small = 1, .global = true},
    {.op = "aclnnGlobalMaxPool", .mode = Mode::kMaximum, .axes = 2, .self = 0, .small = 1, .global = true},
};
constexpr size_t kCount = std::size(kRows);

bool IsMaximum(const Row& row) { return row.mode == Mode::kMaximum || row.mode == Mode::kMaximumGradient; }
bool IsForward(const Row& row) { return row.gradient < 0; }

std::string Show(const std::vector<int64_t>& values) { return fmt::format("[{}]", fmt::join(values, ", ")); }

// One number stands for all axes; none for `fallback`.
int64_t Entry1(const std::vector<int64_t>& values, int axis, int64_t fallback) {
  if (values.empty()) return fallback;
  return values.size() == 1 ? values[0] : values[axis];
}

bool HasLength(const std::vector<int64_t>& values, int axes, bool may_be_empty) {
  return values.size() == 1 || values.size() == static_cast<size_t>(axes) || (may_be_empty && values.empty());
}

// Padding in front of an axis and behind it. Four numbers are the two axes' fronts, then their ends.
struct Sides {
  int64_t before, after;
};
Sides PaddingOf(const std::vector<int64_t>& values, int axis, int axes) {
  if (values.size() == 2 * static_cast<size_t>(axes)) return {values[axis], values[axes + axis]};
  return {Entry1(values, axis, 0), Entry1(values, axis, 0)};
}

bool Ceil(const Row& row, Values v) { return row.onnx ? v[row.ceil].integer != 0 : v[row.ceil].flag; }

// The lengths that ONNX allows; every dilation must be 1.
std::string SolveOnnx(const Row& row, Values v) {
  const std::vector<int64_t>&padding = v[row.padding].ints->values, &dilation = v[row.dilation].ints->values;
  const auto four = [&](const std::vector<int64_t>& values) { return values.size() <= 2 || values.size() == 4; };
  if (!four(padding)) return fmt::format("needs pads of 0, 1, 2 or 4 entries, got {}", Show(padding));
  const bool ones = std::all_of(dilation.begin(), dilation.end(), [](int64_t d) { return d == 1; });
  return four(dilation) && ones ? "" : fmt::format("needs dilations of 0, 1, 2 or 4 entries that are 1, got {}", Show(dilation));
}

// The axes, outermost first in places 3 - axes to 2; else the sentence behind an argument's name.
std::string Solve(const Row& row, Values v, Axis* axes) {
  static const std::vector<int64_t> kNone;
  const Dims& self = v[row.self].tensor->dims;
  const int first = self.rank() - row.axes;
  const auto ints = [&](int arg) -> const std::vector<int64_t>& { return arg >= 0 && v[arg].given() ? v[arg].ints->values : kNone; };
  if (row.kernel >= 0) {
    if (!HasLength(ints(row.kernel), row.axes, false)) return fmt::format("needs a kernel of 1 or {} entries, got {}", row.axes, Show(ints(row.kernel)));
    if (!HasLength(ints(row.stride), row.axes, true)) return fmt::format("needs a stride of 0, 1 or {} entries, got {}", row.axes, Show(ints(row.stride)));
    if (row.onnx) {
      const std::string problem = SolveOnnx(row, v);
      if (!problem.empty()) return problem;
    } else if (!HasLength(ints(row.padding), row.axes, false)) {
      return fmt::format("needs a padding of 1 or {} entries, got {}", row.axes, Show(ints(row.padding)));
    }
    if (row.dilation >= 0 && !row.onnx && !HasLength(ints(row.dilation), row.axes, false)) {
      return fmt::format("needs a dilation of 1 or {} entries, got {}", row.axes, Show(ints(row.dilation)));
    }
  }
  for (int i = 0; i < row.axes; ++i) {
    Axis& axis = axes[3 - row.axes + i];
    axis.in = self[first + i];
    if (row.kernel < 0) {
      axis.adaptive = true;
      axis.out = v[row.small].tensor->dims[first + i];
      continue;
    }
    constexpr int64_t kMost = int64_t{1} << 30;
    axis.kernel = Entry1(ints(row.kernel), i, 1);
    axis.stride = Entry1(ints(row.stride), i, row.onnx ? 1 : axis.kernel);
    const Sides sides = PaddingOf(ints(row.padding), i, row.axes);
    axis.pad = sides.before;
    axis.dilation = row.onnx ? 1 : Entry1(ints(row.dilation), i, 1);
    if (axis.kernel <= 0 || axis.kernel > kMost) return fmt::format("needs a kernel > 0, got {}", Show(ints(row.kernel)));
    if (axis.stride <= 0 || axis.stride > kMost) return fmt::format("needs a stride > 0, got {}", Show(ints(row.stride)));
    if (axis.dilation <= 0 || axis.dilation > kMost) return fmt::format("needs a dilation > 0, got {}", Show(ints(row.dilation)));
    const int64_t reach = (axis.kernel - 1) * axis.dilation + 1;
    const int64_t room = row.mode == Mode::kMaximumGradient ? reach : axis.kernel;
    if (row.onnx) {
      if (sides.before < 0 || sides.after < 0 || sides.before > kMost || sides.before + sides.after > axis.kernel) {
        return fmt::format("needs pads >= 0 that are no larger together than the kernel, got {} and kernel {}", Show(ints(row.padding)), axis.kernel);
      }
    } else if (axis.pad < 0 || axis.pad > room / 2) {
      return fmt::format("needs a padding of 0 to half the kernel, got {} and kernel {}", axis.pad, axis.kernel);
    }
    const int64_t left = axis.in + sides.before + sides.after - reach + (Ceil(row, v) ? axis.stride - 1 : 0);
    axis.out = (left < 0 ? -((-left + axis.stride - 1) / axis.stride) : left / axis.stride) + 1;
    if (Ceil(row, v) && (axis.out - 1) * axis.stride >= axis.in + axis.pad) --axis.out;
    if (axis.out <= 0) return fmt::format("needs room for a window on axis {}, got size {}, kernel {}, padding {}", first + i, axis.in, axis.kernel, axis.pad);
  }
  return "";
}

// Of the tensor that has one element per window.
template <size_t kIndex>
std::string Fits(Values v, Product) {
  const Row& row = kRows[kIndex];
  const Dims &self = v[row.self].tensor->dims, &small = v[row.small].tensor->dims;
  const int first = self.rank() - row.axes;
  if (small.rank() != self.rank()) return fmt::format("must have as many dims as the other side, got {} and {}", ToString(small), ToString(self));
  for (int i = 1; i < self.rank(); ++i) {
    if (self[i] == 0) return fmt::format("needs an input of more than 0 elements on axis {}, got {}", i, ToString(self));
  }
  Axis axes[3];
  const std::string problem = Solve(row, v, axes);
  if (!problem.empty()) return problem;
  Dims wanted;
  for (int i = 0; i < first; ++i) wanted.push_back(self[i]);
  for (int i = 0; i < row.axes; ++i) wanted.push_back(axes[3 - row.axes + i].out);
  if (row.output_size >= 0) {
    const std::vector<int64_t>& sizes = v[row.output_size].ints->values;
    if (sizes.size() != static_cast<size_t>(row.axes)) return fmt::format("needs an outputSize of {} entries, got {}", row.axes, Show(sizes));
    for (int i = 0; i < row.axes; ++i) {
      if (sizes[i] < 0 || (sizes[i] == 0 && row.mode == Mode::kMaximum)) return fmt::format("needs an outputSize > 0, got {}", Show(sizes));
      wanted[first + i] = sizes[i];
    }
  }
  return wanted == small ? "" : fmt::format("must have shape {}, got {}", ToString(wanted), ToString(small));
}

// Whole planes behind the batch and channel axes become one.
template <size_t kIndex>
std::string GlobalFits(Values v, Product) {
  const Row& row = kRows[kIndex];
  const Dims& self = v[row.self].tensor->dims;
  Dims wanted = {self[0], self[1]};
  bool nothing = false;
  for (int i = 2; i < self.rank(); ++i) {
    wanted.push_back(1);
    nothing = nothing || self[i] == 0;
  }
  if (nothing && IsMaximum(row)) return fmt::format("needs planes that are not empty, got {}", ToString(self));
  const Dims& small = v[row.small].tensor->dims;
  return wanted == small ? "" : fmt::format("must have shape {}, got {}", ToString(wanted), ToString(small));
}

template <size_t kIndex>
std::string MaskFits(Values v, Product) {
  const Row& row = kRows[kIndex];
  Axis axes[3];
  if (!Solve(row, v, axes).empty()) return "";  // said elsewhere
  const Dims &self = v[row.self].tensor->dims, &mask = v[row.indices].tensor->dims;
  Dims wanted;
  for (int i = 0; i + 2 < self.rank(); ++i) wanted.push_back(self[i]);
  wanted.push_back(axes[1].kernel * axes[2].kernel);
  wanted.push_back(((axes[1].out * axes[2].out + 15) / 16 + 1) * 32);
  return wanted == mask ? "" : fmt::format("must have shape {}, got {}", ToString(wanted), ToString(mask));
}

template <size_t kIndex>
std::string TagOfRank(Values v, Product) {
  const Row& row = kRows[kIndex];
  for (const int arg : {row.self, row.small}) {
    const Tensor& t = *v[arg].tensor;
    const Format wanted = t.rank() == 4 ? Format::kNCHW : Format::kNCL;
    if (t.format != wanted) return fmt::format("must have the format of its rank, NCL or NCHW, got {} for shape {}", Name(t.format), ToString(t.dims));
  }
  return "";
}

template <size_t kIndex>
std::string CubeMathType(Values v, Product) {
  const int64_t type = v[kRows[kIndex].cube].integer, most = IsForward(kRows[kIndex]) ? 4 : 3;
  return type >= 0 && type <= most ? "" : fmt::format("must be 0 to {}, got {}", most, type);
}

// What the kernel computes in: FLOAT, DOUBLE, or INT64 for whole numbers.
DType Computed(DType dtype) { return dtype == DType::kF64 || IsInteger(dtype) ? (dtype == DType::kF64 ? dtype : DType::kI64) : DType::kF32; }

Status Zero(PlanBuilder& plan, const Operand& to) {
  const pointwise::ScalarUse zero[] = {{Scalar::OfInt(0)}};
  return pointwise::AddPass(plan, pointwise::Formula::kFill, to.dtype, {}, to, zero);
}

// The mask is memory for INT32 indices, one per window. Bytes may lie at any address, numbers may not: indices are brought there
// and back byte by byte.
Operand FirstBytes(const Operand& memory, int64_t count) {
  Operand bytes = memory;
  bytes.dtype = DType::kI8;
  bytes.dims = {count};
  bytes.strides = {1};
  return bytes;
}

template <size_t kIndex>
Status Plan(Values v, PlanBuilder& plan) {
  const Row& row = kRows[kIndex];
  const Tensor &self = *v[row.self].tensor, &small = *v[row.small].tensor;
  const int result = IsForward(row) ? row.small : row.gradient;
  if (v[result].tensor->empty()) return {};
  if (IsForward(row) ? self.empty() && !row.global : small.empty()) return IsForward(row) ? Status() : Zero(plan, plan.TensorOperand(row.gradient));
  const DType computed = Computed(v[result].tensor->dtype);
  Axis axes[3];
  int64_t planes = 1;
  if (row.global) {
    planes = self.dims[0] * self.dims[1];
    axes[2].adaptive = true;
    axes[2].in = planes == 0 ? 0 : self.numel() / planes;
  } else {
    Solve(row, v, axes);
    for (int i = 0; i < self.rank() - row.axes; ++i) planes *= self.dims[i];
  }
  Operand from;
  ANYACL_RETURN_IF_ERROR(pointwise::DenseInput(plan, IsForward(row) ? row.self : row.small, 0, computed, &from));
  const Operand to = pointwise::DenseOutput(plan, result, 0, computed);
  Operand indices, given, narrow;  // as the kernel has them, as the call has them, and as a mask holds them
  if (row.indices >= 0) {
    indices = plan.ScratchOperand("indices", DType::kI64, small.dims);
    given = plan.TensorOperand(row.indices);
    const bool one_tap = row.mask && axes[1].kernel == 1 && axes[2].kernel == 1;
    if (row.mask && !given.row_major()) {
      const Operand dense = plan.ScratchOperand("mask", given.dtype, given.dims);
      if (!IsForward(row)) ANYACL_RETURN_IF_ERROR(pointwise::AddCopy(plan, given, dense));
      given = dense;
    }
    if (row.mask && !one_tap) narrow = plan.ScratchOperand("narrow indices", DType::kI32, small.dims);
    if (!IsForward(row) && row.mask && !one_tap) {
      ANYACL_RETURN_IF_ERROR(pointwise::AddCopy(plan, FirstBytes(given, narrow.bytes), FirstBytes(narrow, narrow.bytes)));
    }
    if (!IsForward(row) && !one_tap) ANYACL_RETURN_IF_ERROR(pointwise::AddCopy(plan, row.mask ? narrow : given, indices));
  }
  auto& params = plan.MakeParams<pool::Params>();
  std::copy(std::begin(axes), std::end(axes), params.axes);
  params.planes = planes;
  params.dtype = computed;
  params.mode = row.mode;
  params.divisor = row.divisor >= 0 ? v[row.divisor].integer : 0;
  params.count_padding = row.include >= 0 && v[row.include].flag;
  // A mask of a kernel of one tap has no room for indices: every window's maximum is its only tap.
  if (row.mode == Mode::kMaximumGradient && row.mask && axes[1].kernel == 1 && axes[2].kernel == 1) {
    params.mode = Mode::kAverageGradient;
    params.divisor = 1;
  } else if (row.indices >= 0) {
    plan.Bind(indices, reinterpret_cast<void*&>(params.indices));
  }
  plan.Bind(from, params.from);
  plan.Bind(to, params.to);
  ANYACL_RETURN_IF_ERROR(plan.ChooseKernel("pool"));
  ANYACL_RETURN_IF_ERROR(pointwise::FinishOutput(plan, result, 0, to));
  if (row.indices < 0 || !IsForward(row)) return {};
  if (!row.mask) return pointwise::AddCopy(plan, indices, given);
  ANYACL_RETURN_IF_ERROR(Zero(plan, given));
  if (axes[1].kernel * axes[2].kernel > 1) {
    ANYACL_RETURN_IF_ERROR(pointwise::AddCopy(plan, indices, narrow));
    ANYACL_RETURN_IF_ERROR(pointwise::AddCopy(plan, FirstBytes(narrow, narrow.bytes), FirstBytes(given, narrow.bytes)));
  }
  return given.index >= 0 ? Status() : pointwise::AddCopy(plan, given, plan.TensorOperand(row.indices));
}

std::string SummaryOf(const Row& row) {
  return fmt::format("{} of {}windows over {} axes.", IsMaximum(row) ? (IsForward(row) ? "Largest elements" : "Gradient of the largest elements")
                                                                    : (IsForward(row) ? "Means" : "Gradient of the means"),
                     row.global ? "whole " : row.kernel < 0 ? "adaptive " : "moving ", row.global ? "all" : row.axes == 2 ? "two" : "three");
}

DTypeSet TypesOf(const Row& row) {
  const std::string_view op = row.op;
  if (op == "aclnnAdaptiveMaxPool2d" || op == "aclnnGlobalAveragePool") return types::kFloat3 | types::kDouble;
  if (op == "aclnnGlobalMaxPool") return DTypeSet{DType::kF32, DType::kF16, DType::kF64};
  return types::kFloat3;
}

std::vector<TypeRow> OnnxTypes() {
  std::vector<TypeRow> rows = {{{DType::kF32}, kNewer}, {{DType::kF16}, Of({Product::kAscend950, Product::kA3, Product::kA2, Product::kTraining})}};
  for (DType t : (types::kInt5 | DTypeSet{DType::kBF16, DType::kU16}).List()) rows.push_back({{t}, kOnly950});
  return rows;
}

template <size_t kIndex>
Operator Make(const Entry& entry) {
  const Row& row = kRows[kIndex];
  const auto name = [&](int arg) { return entry.args[arg].name; };
  ArgRoles roles;
  const bool stride_may_be_null = row.mode == Mode::kAverageGradient && row.axes == 2 && row.stride >= 0;
  if (stride_may_be_null) roles.optional.push_back(name(row.stride));
  static const std::string summary = SummaryOf(row);
  Table table = TableOf(entry, "pool", summary.c_str(), roles);
  AddNullRules(&table);
  if (row.mask) Add(&table, {Supported(Of({Product::kAscend950, Product::kA3, Product::kA2, Product::kTraining, Product::kInference}))});
  if (row.onnx) {
    Add(&table, {Supported(Of({Product::kAscend950, Product::kA3, Product::kA2, Product::kTraining})), DTypes(name(row.self), OnnxTypes())});
  } else {
    Add(&table, {DTypes(name(row.self), RowsOf(TypesOf(row)))});
  }
  Add(&table, {SameDType(name(row.small), name(row.self))});
  if (row.gradient >= 0) Add(&table, {SameDType(name(row.gradient), name(row.self))});
  if (row.indices >= 0) {
    const bool only64 = std::string_view(row.op) == "aclnnAdaptiveMaxPool2d";
    std::vector<TypeRow> rows;
    if (row.mask) rows = {{{DType::kI8}}};
    else if (only64) rows = {{{DType::kI64}}};
    else rows = {{{DType::kI32}}, {{DType::kI64}}};
    Add(&table, {DTypes(name(row.indices), rows)});
  }
  const bool strict = row.axes == 2 && !IsMaximum(row) && (row.kernel >= 0 || IsForward(row)) && !row.global;
  if (row.global) {
    Add(&table, {Rank(name(row.self), 4, 8), SameFormat({name(row.self), name(row.small)}),
                 Formats(name(row.self), {Format::kND, Format::kNCHW, Format::kNCDHW}),
                 Custom(name(row.small), "must have one element per plane", GlobalFits<kIndex>)});
  } else {
    Add(&table, {Rank(name(row.self), row.axes + 1, row.axes + 2)});
    if (strict) Add(&table, {Custom(name(row.self), "must have the format of its rank, NCL or NCHW", TagOfRank<kIndex>)});
    else Add(&table, {SameFormat({name(row.self), name(row.small)}), PublicFormat(name(row.self))});
    if (row.onnx) Add(&table, {OneOf("autoPad", {0})});
    Add(&table, {Custom(name(row.small), "must have one element per window", Fits<kIndex>)});
    if (row.gradient >= 0) Add(&table, {SameShape(name(row.gradient), name(row.self))});
    if (row.indices >= 0 && !row.mask) Add(&table, {SameShape(name(row.indices), name(row.small))});
    if (row.mask) Add(&table, {Custom(name(row.indices), "must have the shape of a mask", MaskFits<kIndex>)});
    if (row.cube >= 0) Add(&table, {Custom(name(row.cube), "must be a known value", CubeMathType<kIndex>)});
  }
  if (IsMaximum(row)) table.notes = {"NaN wins, the last of several; of equal elements the first. Indices count inside a plane."};
  return {.contract = Contract(std::move(table)), .plan = Plan<kIndex>, .family = "pool"};
}

template <size_t... kIndices>
void DeclareRows(Declarations& declarations, std::index_sequence<kIndices...>) {
  (declarations.Add(kRows[kIndices].op, Make<kIndices>), ...);
}

}  // namespace

void DeclarePool(Declarations& declarations) { DeclareRows(declarations, std::make_index_sequence<kCount>()); }

}  // namespace anyacl
