// SPDX-License-Identifier: Apache-2.0
// Copyright The AnyACL Authors
//
// Every upsampling entry is one row: how positions are weighted, how many axes, what it takes. A plan maps one axis after the
// other, the innermost first, so that the larger passes work on long rows; gradients go the way back.
#include <fmt/format.h>

#include <algorithm>
#include <cmath>
#include <string_view>

#include "ops/operators.h"
#include "ops/pointwise/formulas.h"
#include "ops/pointwise/pass.h"
#include "ops/resize/families.h"
#include "ops/resize/resize.h"
#include "ops/table.h"

namespace anyacl {
namespace {

using namespace contract;
using resize::Mode;

// Formats of the image, the same for what is read and what is written.
enum class Tags { kAny, kNcl, kImage, kImageOrNd, kImageLast950, kPlainImage, kVolume, kAnyVolume };

constexpr DTypeSet k3 = types::kFloat3, k4 = types::kFloat3 | types::kDouble, kByte = {DType::kU8}, k2 = {DType::kF32, DType::kF16};
constexpr DTypeSet kHalf = {DType::kF16}, kNone = {};
constexpr Products kFive = Of({Product::kAscend950, Product::kA3, Product::kA2, Product::kTraining, Product::kInference});
constexpr Products kNoTraining = Of({Product::kAscend950, Product::kA3, Product::kA2, Product::kInference});
constexpr Products kNoInference = Of({Product::kAscend950, Product::kA3, Product::kA2, Product::kTraining});

enum class EmptyRule { kAfterShapes, kFirst, kAfterNulls };

struct Row {
  const char* op;
  Mode mode;
  int axes;
  Tags tags;
  DTypeSet newest, older;                     // dtypes on the newest product and on A2, A3
  DTypeSet training = older, inference = older;
  Products products = kFive;
  EmptyRule empty = EmptyRule::kAfterShapes;
  bool positive_scales = false;               // negative ones are refused
  bool needs_batch = false;                   // N = 0 is refused by older products
};

constexpr Row kRows[] = {
    {"aclnnUpsampleNearest1d", Mode::kNearest, 1, Tags::kNcl, k4 | kByte, k4 | kByte},
    {"aclnnUpsampleNearest1dV2", Mode::kNearest, 1, Tags::kNcl, k4 | kByte, k4 | kByte},
    {"aclnnUpsampleNearest2d", Mode::kNearest, 2, Tags::kImage, k4 | kByte, k4 | kByte, kHalf | types::kDouble | kByte, kHalf | types::kDouble | kByte},
    {"aclnnUpsampleNearest2dV2", Mode::kNearest, 2, Tags::kImage, k4 | kByte, k4 | kByte, kHalf | types::kDouble | kByte,
     kHalf | types::kDouble | kByte, kFive, EmptyRule::kAfterNulls},
    {"aclnnUpsampleNearest3d", Mode::kNearest, 3, Tags::kAnyVolume, k4 | kByte, k4, k2 | types::kDouble, k2},
    {"aclnnUpsampleNearestExact1d", Mode::kNearestExact, 1, Tags::kAny, k4 | kByte, k3 | kByte, kNone, k2, kNoTraining, EmptyRule::kAfterShapes,
     false, true},
    {"aclnnUpsampleNearestExact2d", Mode::kNearestExact, 2, Tags::kImageOrNd, k4 | kByte, k3 | kByte, kNone, k2, kNoTraining,
     EmptyRule::kAfterNulls},
    {"aclnnUpsampleNearestExact3d", Mode::kNearestExact, 3, Tags::kAnyVolume, k4 | kByte, k3, kNone, k2, kNoTraining},
    {"aclnnUpsampleLinear1d", Mode::kLinear, 1, Tags::kAny, k4, k3, k2, kNone, kNoInference},
    {"aclnnUpsampleBilinear2d", Mode::kLinear, 2, Tags::kImage, k4 | kByte, k4, k4, k4, kFive, EmptyRule::kAfterShapes, true},
    {"aclnnUpsampleBicubic2d", Mode::kCubic, 2, Tags::kImageLast950, k4 | kByte, k3, k3, k3, kAllProducts},
    {"aclnnUpsampleTrilinear3d", Mode::kLinear, 3, Tags::kVolume, k4, k4, k4, k2},
    {"aclnnUpsampleBilinear2dAA", Mode::kLinearAA, 2, Tags::kPlainImage, k4 | kByte, k3, kNone, kNone, kNewer, EmptyRule::kAfterShapes, true, true},
    {"aclnnUpsampleBicubic2dAA", Mode::kCubicAA, 2, Tags::kPlainImage, k4 | kByte, k3, kNone, kNone, kNewer},
    {"aclnnUpsampleNearest1dBackward", Mode::kNearest, 1, Tags::kAny, k4, k4, kHalf, kHalf},
    {"aclnnUpsampleNearest2dBackward", Mode::kNearest, 2, Tags::kImage, k4, k3, kHalf, kHalf, kFive, EmptyRule::kAfterNulls},
    {"aclnnUpsampleNearest3dBackward", Mode::kNearest, 3, Tags::kVolume, k4, k4, k4, kNone, kNoInference},
    {"aclnnUpsampleNearestExact1dBackward", Mode::kNearestExact, 1, Tags::kAny, k4, k3, kNone, kNone, kNewer, EmptyRule::kAfterShapes, true, true},
    {"aclnnUpsampleNearestExact2dBackward", Mode::kNearestExact, 2, Tags::kImageOrNd, k4, k3, kNone, kNone, kNewer, EmptyRule::kAfterNulls, true},
    {"aclnnUpsampleNearestExact3dBackward", Mode::kNearestExact, 3, Tags::kAnyVolume, k4, k3, kNone, kNone, kNewer},
    {"aclnnUpsampleLinear1dBackward", Mode::kLinear, 1, Tags::kAny, k4, k3, k3, kNone, kNoInference},
    {"aclnnUpsampleBilinear2dBackward", Mode::kLinear, 2, Tags::kImage, k4, k3, k2, k2},
    {"aclnnUpsampleBilinear2dBackwardV2", Mode::kLinear, 2, Tags::kImage, k4, k3, k2, k2},
    {"aclnnUpsampleBicubic2dBackward", Mode::kCubic, 2, Tags::kImageLast950, k4, k3, k3, kNone, kNoInference},
    {"aclnnUpsampleTrilinear3dBackward", Mode::kLinear, 3, Tags::kVolume, k4, k4, k4, k4},
    {"aclnnUpsampleBilinear2dAABackward", Mode::kLinearAA, 2, Tags::kPlainImage, k4, k3, kNone, kNone, kNewer, EmptyRule::kAfterShapes, true, true},
    {"aclnnUpsampleBicubic2dAAGrad", Mode::kCubicAA, 2, Tags::kPlainImage, k4, k3, kNone, kNone, kNewer, EmptyRule::kAfterShapes, true, true},
};
constexpr size_t kCount = std::size(kRows);

constexpr bool IsBackward(const Row& row) {
  const std::string_view op = row.op;
  return op.find("Backward") != op.npos || op.ends_with("Grad");
}
// The bilinear gradient, first form: FLOAT gradients may become 16-bit ones.
bool Converts(const Row& row) { return std::string_view(row.op) == "aclnnUpsampleBilinear2dBackward"; }

std::string Show(const std::vector<int64_t>& values) { return fmt::format("[{}]", fmt::join(values, ", ")); }

// --- one call, as its arguments say it -------------------------------------------------------------------------------

// Arguments: tensor, outputSize, inputSize (of gradients), alignCorners (linear and cubic), a scale per axis or none, result.
enum { kFrom, kOutputSize, kInputSize };

bool HasCorners(const Row& row) { return row.mode != Mode::kNearest && row.mode != Mode::kNearestExact; }
int CornersArg(const Row& row) { return IsBackward(row) ? 3 : 2; }
int FirstScale(const Row& row) { return CornersArg(row) + (HasCorners(row) ? 1 : 0); }
int ResultArg(Values v) { return static_cast<int>(v.size()) - 1; }

double ScaleOf(const Row& row, Values v, int axis) {
  const int arg = FirstScale(row) + axis;
  return arg < ResultArg(v) ? v[arg].real : 0;
}

bool IsChannelsLast(Format format) { return format == Format::kNHWC || format == Format::kNDHWC; }
// Of the tensors, which are in the order of the tag.
int FirstSpatial(Values v) { return IsChannelsLast(v[kFrom].tensor->format) ? 1 : 2; }

// The smaller or larger tensor in front of the map, in the order of the tag.
Dims InputDims(const Row& row, Values v) {
  if (!IsBackward(row)) return v[kFrom].tensor->dims;
  const std::vector<int64_t>& size = v[kInputSize].ints->values;
  Dims dims{std::span<const int64_t>(size)};
  if (FirstSpatial(v) == 1 && row.axes == 3) dims = {size[0], size[2], size[3], size[4], size[1]};
  return dims;
}
Dims OutputDims(const Row& row, Values v) {
  Dims dims = InputDims(row, v);
  for (int i = 0; i < row.axes; ++i) dims[FirstSpatial(v) + i] = v[kOutputSize].ints->values[i];
  return dims;
}

// --- rules ----------------------------------------------------------------------------------------------------------

std::vector<Format> FormatsOf(Tags tags, Product product) {
  switch (tags) {
    case Tags::kNcl:
      return {Format::kNCL};
    case Tags::kImage:
      return {Format::kNCHW, Format::kNHWC};
    case Tags::kImageOrNd:
      return {Format::kNCHW, Format::kNHWC, Format::kND};
    case Tags::kImageLast950:
      if (product == Product::kAscend950) return {Format::kNCHW, Format::kND, Format::kNHWC};
      return {Format::kNCHW, Format::kND};
    case Tags::kPlainImage:
      return {Format::kNCHW, Format::kND};
    case Tags::kVolume:
      return {Format::kNCDHW, Format::kND, Format::kNDHWC};
    default:
      return {};
  }
}

constexpr const char* kTagRule = "must have a format of its images, the same as the result";

std::string CheckTags(const Row& row, Values v, Product product) {
  const Tensor &from = *v[kFrom].tensor, &to = *v[ResultArg(v)].tensor;
  const std::vector<Format> formats = FormatsOf(row.tags, product);
  const bool listed = formats.empty() ? !IsPrivate(from.format) && !IsPrivate(to.format)
                                      : std::find(formats.begin(), formats.end(), from.format) != formats.end();
  const bool same = row.tags == Tags::kAny || from.format == to.format;
  const bool older_double = row.axes == 2 && row.mode == Mode::kLinear && !IsBackward(row) && product != Product::kAscend950 &&
                            from.dtype == DType::kF64 && from.format != Format::kNHWC;
  if (listed && same && !older_double) return "";
  return fmt::format("{}, got {} {} and {}", kTagRule, Name(from.dtype), Name(from.format), Name(to.format));
}

constexpr const char* kSizeRule = "must have a number > 0 per axis that is resized";
std::string CheckOutputSize(const Row& row, Values v) {
  const std::vector<int64_t>& size = v[kOutputSize].ints->values;
  const bool fits = size.size() == static_cast<size_t>(row.axes) && std::all_of(size.begin(), size.end(), [](int64_t n) { return n > 0; });
  return fits ? "" : fmt::format("must have {} entries > 0, got {}", row.axes, Show(size));
}

// Where the map starts from: sizes of the tensor itself, or of the argument inputSize.
constexpr const char* kInputRule = "must have elements on every axis but the batch";
std::string CheckInput(const Row& row, Values v, Product product) {
  if (IsBackward(row)) {
    const std::vector<int64_t>& size = v[kInputSize].ints->values;
    if (size.size() != static_cast<size_t>(row.axes) + 2) return fmt::format("must have {} entries, got {}", row.axes + 2, Show(size));
    if (std::any_of(size.begin(), size.end(), [](int64_t n) { return n < 0; })) return fmt::format("must not be negative, got {}", Show(size));
  }
  const Dims input = InputDims(row, v);
  for (int i = 0; i < input.rank(); ++i) {
    if (input[i] != 0) continue;
    if (i != 0) return fmt::format("{}, got {}", kInputRule, ToString(input));
    if (row.needs_batch && product != Product::kAscend950) return fmt::format("must have a batch that is not empty, got {}", ToString(input));
  }
  return "";
}

std::string CheckShape(const Dims& wanted, const Dims& given) {
  return wanted == given ? "" : fmt::format("must have shape {}, got {}", ToString(wanted), ToString(given));
}

std::string CheckSigns(const Row& row, Values v) {
  for (int i = 0; i < row.axes; ++i) {
    if (ScaleOf(row, v, i) < 0) return fmt::format("and other scales must not be negative, got {} for axis {}", ScaleOf(row, v, i), i);
  }
  return "";
}

// Scales and sizes agree; only some entries ask.
constexpr const char* kAgreeRule = "must be the size that the scales lead to, where they are asked";
std::string CheckScales(const Row& row, Values v, Product product) {
  const bool exact = row.mode == Mode::kNearestExact, older = product != Product::kAscend950;
  const bool line = row.mode == Mode::kLinear && row.axes == 1;
  if (!exact && !older) return "";
  double scales[3] = {};
  bool all = true;
  for (int i = 0; i < row.axes; ++i) {
    scales[i] = ScaleOf(row, v, i);
    all = all && scales[i] > 0;
  }
  if (exact && !all) return "";
  for (int i = 0; i < row.axes; ++i) {
    const double in = static_cast<double>(v[kFrom].tensor->dims[FirstSpatial(v) + i]), scale = scales[i];
    const double out = static_cast<double>(v[kOutputSize].ints->values[i]);
    if (line ? !(scale >= 0) : !(scale > 0)) continue;
    if (out < std::floor(in * (scale - 1e-5)) || out > std::floor(in * (scale + 1e-5))) {
      return fmt::format("must be the size that the scale leads to, got {} for size {} and scale {}", Show(v[kOutputSize].ints->values), in, scale);
    }
  }
  return "";
}
bool AsksScales(const Row& row) {
  if (IsBackward(row)) return false;
  return (row.mode == Mode::kNearestExact && row.axes == 3) || (row.mode == Mode::kLinear && row.axes == 1) || row.mode == Mode::kCubic;
}

// --- plan -----------------------------------------------------------------------------------------------------------

DType Computed(DType dtype) { return dtype == DType::kF64 ? dtype : DType::kF32; }

int64_t MostTaps(Mode mode, double rate, int64_t in) {
  if (mode == Mode::kLinear) return 2;
  if (mode == Mode::kCubic) return 4;
  if (!resize::IsAntialiased(mode)) return 1;
  const double support = (mode == Mode::kLinearAA ? 1 : 2) * std::max(rate, 1.0);
  return support * 2 + 3 < static_cast<double>(in) ? static_cast<int64_t>(support * 2) + 3 : in;
}

// One axis of one call.
struct Axis {
  int at;
  int64_t in;
  int64_t out;
  double rate;
};

bool IsCopy(Mode mode, const Axis& axis) {
  if (axis.in != axis.out) return false;
  return mode == Mode::kLinear || resize::IsAntialiased(mode) || (axis.rate == 1 && mode != Mode::kCubic);
}

double RateOf(const Axis& axis, bool align_corners, double scale) {
  if (align_corners) return axis.out > 1 ? static_cast<double>(axis.in - 1) / static_cast<double>(axis.out - 1) : 0;
  return scale > 0 ? 1 / scale : static_cast<double>(axis.in) / static_cast<double>(axis.out);
}

struct Map {
  Mode mode;
  bool align_corners;
  bool transposed;
  bool round_bytes;
};

Status AddAxis(PlanBuilder& plan, const Map& map, const Axis& axis, bool last, const Operand& from, const Operand& to) {
  const int64_t taps = MostTaps(map.mode, axis.rate, axis.in);
  const Operand index = plan.ScratchOperand("positions", DType::kI64, {axis.out, taps});
  const Operand weight = plan.ScratchOperand("weights", from.dtype, {axis.out, taps});
  auto& params = plan.MakeParams<resize::Params>();
  params.outer = params.inner = 1;
  for (int i = 0; i < from.dims.rank(); ++i) {
    if (i != axis.at) (i < axis.at ? params.outer : params.inner) *= from.dims[i];
  }
  params.in = axis.in;
  params.out = axis.out;
  params.taps = taps;
  params.rate = axis.rate;
  params.dtype = from.dtype;
  params.mode = map.mode;
  params.align_corners = map.align_corners;
  params.transposed = map.transposed;
  params.round_bytes = map.round_bytes && last;
  plan.Bind(from, params.from);
  plan.Bind(to, params.to);
  plan.Bind(index, reinterpret_cast<void*&>(params.index));
  plan.Bind(weight, params.weight);
  return plan.ChooseKernel("resize");
}

// The axes one after the other: `result` = the map of `from`, both arguments of the call.
Status AddMap(PlanBuilder& plan, const Map& map, std::vector<Axis> axes, int from_arg, int result_arg) {
  std::erase_if(axes, [&](const Axis& axis) { return IsCopy(map.mode, axis); });
  if (!map.transposed) std::reverse(axes.begin(), axes.end());
  const DType computed = Computed(plan.TensorOf(from_arg).dtype);
  Operand from;
  ANYACL_RETURN_IF_ERROR(pointwise::DenseInput(plan, from_arg, 0, computed, &from));
  const Operand result = pointwise::DenseOutput(plan, result_arg, 0, computed);
  if (axes.empty()) ANYACL_RETURN_IF_ERROR(pointwise::AddCopy(plan, from, result));
  for (size_t i = 0; i < axes.size(); ++i) {
    const bool last = i + 1 == axes.size();
    Dims dims = from.dims;
    dims[axes[i].at] = map.transposed ? axes[i].in : axes[i].out;
    const Operand to = last ? result : plan.ScratchOperand("resized axis", computed, dims);
    ANYACL_RETURN_IF_ERROR(AddAxis(plan, map, axes[i], last, from, to));
    from = to;
  }
  return pointwise::FinishOutput(plan, result_arg, 0, result);
}

Status ZeroResult(PlanBuilder& plan, int arg) {
  const Operand to = plan.TensorOperand(arg);
  const pointwise::ScalarUse zero[] = {{Scalar::OfInt(0)}};
  return pointwise::AddPass(plan, pointwise::Formula::kFill, to.dtype, {}, to, zero);
}

Status PlanRow(const Row& row, Values v, PlanBuilder& plan) {
  const int result = ResultArg(v);
  if (v[result].tensor->empty()) return {};
  if (v[kFrom].tensor->empty()) return IsBackward(row) ? ZeroResult(plan, result) : Status();
  const Map map = {row.mode, HasCorners(row) && v[CornersArg(row)].flag, IsBackward(row), v[result].tensor->dtype == DType::kU8};
  const Dims in = InputDims(row, v), out = OutputDims(row, v);
  std::vector<Axis> axes;
  for (int i = 0; i < row.axes; ++i) {
    const int at = FirstSpatial(v) + i;
    Axis axis = {at, in[at], out[at], 0};
    axis.rate = RateOf(axis, map.align_corners, ScaleOf(row, v, i));
    axes.push_back(axis);
  }
  return AddMap(plan, map, std::move(axes), kFrom, result);
}

// --- tables ---------------------------------------------------------------------------------------------------------

std::vector<TypeRow> TypesOf(const Row& row) {
  std::vector<TypeRow> rows;
  for (DType t : (row.newest | row.older | row.training | row.inference).List()) {
    unsigned bits = 0;
    if (row.newest.Has(t)) bits |= kOnly950.bits;
    if (row.older.Has(t)) bits |= kAllProducts.bits & ~kOnly950.bits;
    const auto override_for = [&](Product product, DTypeSet types) {
      const unsigned bit = Of({product}).bits;
      bits = types.Has(t) ? bits | bit : bits & ~bit;
    };
    override_for(Product::kTraining, row.training);
    override_for(Product::kInference, row.inference);
    if (t == DType::kBF16) bits &= kNewer.bits;
    rows.push_back({{t}, {bits}});
  }
  return rows;
}

const char* NameOf(Mode mode) {
  switch (mode) {
    case Mode::kNearest:
      return "the nearest element below";
    case Mode::kNearestExact:
      return "the nearest element";
    case Mode::kLinear:
      return "linear interpolation";
    case Mode::kCubic:
      return "cubic interpolation";
    case Mode::kLinearAA:
      return "linear interpolation over as many elements as the output skips";
    default:
      return "cubic interpolation over as many elements as the output skips";
  }
}

template <size_t kIndex>
Operator Make(const Entry& entry) {
  static constexpr const Row& kRow = kRows[kIndex];
  static const std::string summary =
      fmt::format("{}esizes {} by {}.", IsBackward(kRow) ? "Gradient of an operator that r" : "R",
                  kRow.axes == 1 ? "one axis" : kRow.axes == 2 ? "two axes" : "three axes", NameOf(kRow.mode));
  Table table = TableOf(entry, "resize", summary.c_str());
  const char *from = entry.args.front().name, *to = entry.args.back().name;
  AddNullRules(&table);
  if (kRow.empty == EmptyRule::kAfterNulls) Add(&table, {AcceptIfEmpty({from}), AcceptIfEmpty({to})});
  Add(&table, {Supported(kRow.products), DTypes(from, TypesOf(kRow))});
  if (Converts(kRow)) {
    std::vector<TypeRow> pairs = {{{DType::kF32, DType::kF16}, kOnly950}, {{DType::kF32, DType::kBF16}, kOnly950}};
    for (DType t : k4.List()) pairs.push_back({{t, t}});
    Add(&table, {DTypeRows({from, to}, pairs)});
  } else {
    Add(&table, {SameDType(to, from)});
  }
  Add(&table, {Rank(from, kRow.axes + 2, kRow.axes + 2), Custom(from, kTagRule, [](Values v, Product p) { return CheckTags(kRow, v, p); }),
               Custom("outputSize", kSizeRule, [](Values v, Product) { return CheckOutputSize(kRow, v); }),
               Custom(IsBackward(kRow) ? "inputSize" : from, kInputRule, [](Values v, Product p) { return CheckInput(kRow, v, p); })});
  if (IsBackward(kRow)) {
    Add(&table, {Custom(from, "must have the shape of the forward output", [](Values v, Product) { return CheckShape(OutputDims(kRow, v), v[kFrom].tensor->dims); }),
                 Custom(to, "must have the shape inputSize", [](Values v, Product) { return CheckShape(InputDims(kRow, v), v[ResultArg(v)].tensor->dims); })});
  } else {
    Add(&table, {Custom(to, "must have the shape of the result", [](Values v, Product) { return CheckShape(OutputDims(kRow, v), v[ResultArg(v)].tensor->dims); })});
  }
  if (AsksScales(kRow)) Add(&table, {Custom("outputSize", kAgreeRule, [](Values v, Product p) { return CheckScales(kRow, v, p); })});
  if (kRow.positive_scales) {
    Add(&table, {Custom(entry.args[FirstScale(kRow)].name, "and other scales must not be negative", [](Values v, Product) { return CheckSigns(kRow, v); })});
  }
  table.notes = {"A scale <= 0 counts as absent: then it is the quotient of the sizes. A scale that is given is used as it is, even "
                 "where it contradicts the sizes."};
  return {.contract = Contract(std::move(table)),
          .plan = [](Values v, PlanBuilder& plan) { return PlanRow(kRow, v, plan); },
          .family = "resize"};
}

template <size_t... kIndices>
void DeclareRows(Declarations& declarations, std::index_sequence<kIndices...>) {
  (declarations.Add(kRows[kIndices].op, Make<kIndices>), ...);
}

// --- aclnnResize ----------------------------------------------------------------------------------------------------

namespace plain {

enum { kSelf, kScales, kMode, kOut };

bool IsNearest(Values v) { return std::string_view(v[kMode].text).starts_with("nearest"); }

std::string CheckMode(Values v, Product) {
  const std::string_view mode = v[kMode].text;
  if (mode.starts_with("nearest") || mode.starts_with("bilinear")) return "";
  return fmt::format("must begin with nearest or bilinear, got {}", mode);
}

std::string CheckTag(Values v, Product product) {
  const Format format = v[kSelf].tensor->format;
  if (format == Format::kNCHW || (format == Format::kNHWC && product == Product::kAscend950)) return "";
  return fmt::format("must be NCHW{}, got {}", product == Product::kAscend950 ? " or NHWC" : "", Name(format));
}

std::string CheckOut(Values v, Product product) {
  const Dims &in = v[kSelf].tensor->dims, &out = v[kOut].tensor->dims;
  const std::vector<float>& scales = v[kScales].floats->values;
  const int first = FirstSpatial(v);
  for (int i = 0; i < in.rank(); ++i) {
    const bool spatial = i == first || i == first + 1;
    if (!spatial && in[i] != out[i]) return fmt::format("must have the batch and channels of self, got {} and {}", ToString(out), ToString(in));
    if (spatial && (in[i] <= 0 || out[i] <= 0)) return fmt::format("must have elements on both axes, as self, got {} and {}", ToString(out), ToString(in));
    if (!spatial || product != Product::kAscend950) continue;
    const double size = static_cast<double>(in[i]), scale = scales[i], result = static_cast<double>(out[i]);
    if (!(result >= std::floor(size * (scale - 1e-5)) && result <= std::floor(size * (scale + 1e-5)))) {
      return fmt::format("must have the size that the scale leads to, got {} for size {} and scale {}", out[i], in[i], scale);
    }
  }
  return "";
}

Status Plan(Values v, PlanBuilder& plan) {
  const Tensor &in = *v[kSelf].tensor, &out = *v[kOut].tensor;
  if (in.empty() || out.empty()) return {};
  std::vector<Axis> axes;
  for (int i = 0; i < 2; ++i) {
    const int at = FirstSpatial(v) + i;
    axes.push_back({at, in.dims[at], out.dims[at], static_cast<double>(in.dims[at]) / static_cast<double>(out.dims[at])});
  }
  return AddMap(plan, {IsNearest(v) ? Mode::kNearest : Mode::kLinear, false, false, false}, axes, kSelf, kOut);
}

Operator Make(const Entry& entry) {
  Table table = TableOf(entry, "resize", "Resizes images by the nearest element below or by bilinear interpolation.");
  AddNullRules(&table);
  Add(&table, {Supported(kFive), DTypes("self", RowsOf(k3, k2)), SameDType("out", "self"), Rank("self", 4, 4), Rank("out", 4, 4),
               Custom("self", "must be NCHW, or NHWC on Ascend 950", CheckTag), SameFormat({"out", "self"}), Length("scales", 4),
               Custom("mode", "must begin with nearest or bilinear", CheckMode),
               Custom("out", "must have the sizes that the scales lead to", CheckOut)});
  table.notes = {"Positions follow from the sizes; scales are only compared with them, those of batch and channels not even that."};
  return {.contract = Contract(std::move(table)), .plan = Plan, .family = "resize"};
}

}  // namespace plain

}  // namespace

void DeclareResize(Declarations& declarations) {
  DeclareRows(declarations, std::make_index_sequence<kCount>());
  declarations.Add("aclnnResize", plain::Make);
  resize::DeclareGridSample(declarations);
}

}  // namespace anyacl
