// SPDX-License-Identifier: Apache-2.0
// Copyright The AnyACL Authors
//
// Borders around tensors, their gradients, and windows laid out as columns.
#include "ops/indexing/steps.h"
#include "ops/movement/families.h"

namespace anyacl::movement {

using namespace contract;

namespace {

constexpr DTypeSet kAll15 = types::kBasic10 | types::kUnsigned3 | types::kComplex;

const Dims& DimsOfArg(Values v, int arg) { return v[arg].tensor->dims; }
const std::vector<int64_t>& IntsOf(Values v, int arg) { return v[arg].ints->values; }

// Pairs (before, after) from the last axis backwards.
int64_t Before(Values v, int arg, int axes_from_last) { return IntsOf(v, arg)[static_cast<size_t>(2 * axes_from_last)]; }
int64_t After(Values v, int arg, int axes_from_last) { return IntsOf(v, arg)[static_cast<size_t>(2 * axes_from_last + 1)]; }

// The shape with its borders; -1 for what cannot be.
Dims PaddedDims(const Dims& self, Values v, int arg) {
  Dims dims = self;
  const int pairs = static_cast<int>(IntsOf(v, arg).size() / 2);
  for (int i = 0; i < pairs && i < self.rank(); ++i) {
    int64_t& size = dims[self.rank() - 1 - i];
    if (__builtin_add_overflow(size, Before(v, arg, i), &size) || __builtin_add_overflow(size, After(v, arg, i), &size)) size = -1;
  }
  return dims;
}

// --- constant ------------------------------------------------------------------------------------

enum { kSelf, kPad, kValue, kOut };

std::string WrongConstantPad(Values v, Product) {
  const Dims& self = DimsOfArg(v, kSelf);
  const size_t length = IntsOf(v, kPad).size();
  if (length % 2 != 0) return "must have an even number of entries, got " + std::to_string(length);
  if (length / 2 > static_cast<size_t>(self.rank())) return "must have at most a pair per axis of " + ToString(self) + ", got " + std::to_string(length);
  const Dims dims = PaddedDims(self, v, kPad);
  const bool grows = std::ranges::any_of(IntsOf(v, kPad), [](int64_t one) { return one > 0; });
  for (int i = 0; i < static_cast<int>(length / 2); ++i) {
    const int64_t size = self[self.rank() - 1 - i], before = Before(v, kPad, i), after = After(v, kPad, i);
    const int64_t padded = dims[self.rank() - 1 - i];
    if (before < -size || after < -size || padded < 0) {
      return "must not take more than there is, got (" + std::to_string(before) + ", " + std::to_string(after) + ") for " + std::to_string(size);
    }
    if (padded == 0 && grows) return "must leave something of every axis it names, got " + ToString(dims) + " from " + ToString(self);
  }
  return "";
}
Dims ConstantPadDims(Values v) { return PaddedDims(DimsOfArg(v, kSelf), v, kPad); }
std::string ComplexPad(Values v, Product) {
  const bool is_complex = IsComplex(v[kValue].scalar->dtype) || v[kValue].scalar->dtype == DType::kC32;
  const DType self = v[kSelf].tensor->dtype;
  return is_complex && !IsComplex(self) && self != DType::kC32 ? "must not be complex for a real self" : "";
}
std::string OtherStorage(Values v, Product) {
  const Format self = v[kSelf].tensor->format, out = v[kOut].tensor->format;
  return self != Format::kND && self != out ? "must have the format of self, got " + Name(out) + " and " + Name(self) : "";
}

Operator MakeConstantPadNd(const Entry& entry) {
  Table table = TableOf(entry, "pointwise", "A tensor with a border of one value; negative widths cut off.");
  table.notes = {"pad has a pair (before, after) per axis, from the last one backwards."};
  AddNullRules(&table);
  Add(&table, {Supported(kFive), SameDType("out", "self"), DTypes("self", RowsOf(kAll15 | types::kComplex32, kAll15)),
               Custom("out", "must have the format of self, unless that is ND", OtherStorage)});
  AddStorageRules(&table);
  AddRankRules(&table);
  Add(&table, {Custom("value", "must not be complex for a real self", ComplexPad),
               Custom("pad", "must be pairs that leave something of every axis", WrongConstantPad),
               ShapeOf<kOut, ConstantPadDims>("out", "must have the sizes of self and both widths together")});
  return {.contract = Contract(std::move(table)),
          .plan = [](Values values, PlanBuilder& plan) -> Status {
            if (values[kOut].tensor->empty()) return {};
            const Operand out = ApartOutput(plan, kOut);
            const int rank = out.dims.rank();
            const bool grows = std::ranges::any_of(IntsOf(values, kPad), [](int64_t one) { return one > 0; });
            if (grows) ANYACL_RETURN_IF_ERROR(AddFill(plan, out, *values[kValue].scalar));
            if (values[kSelf].tensor->empty()) return pointwise::FinishOutput(plan, kOut, 0, out);
            Operand from = plan.TensorOperand(kSelf), to = out;
            for (int i = 0; i < static_cast<int>(IntsOf(values, kPad).size() / 2); ++i) {
              const int axis = rank - 1 - i;
              const int64_t before = Before(values, kPad, i), after = After(values, kPad, i);
              const int64_t kept = std::max<int64_t>(0, from.dims[axis] + std::min<int64_t>(before, 0) + std::min<int64_t>(after, 0));
              from = Narrow(from, axis, std::max<int64_t>(0, -before), kept);
              to = Narrow(to, axis, std::max<int64_t>(0, before), kept);
            }
            if (Numel(from.dims) > 0) ANYACL_RETURN_IF_ERROR(pointwise::AddCopy(plan, from, to));
            return pointwise::FinishOutput(plan, kOut, 0, out);
          },
          .family = "movement"};
}

// --- reflection, replication, circular -----------------------------------------------------------

struct PadRow {
  const char* op;
  const char* back;  // its gradient
  Mapping mapping;
  int axes;
};
constexpr PadRow kPads[] = {
    {"aclnnReflectionPad1d", "aclnnReflectionPad1dBackward", Mapping::kReflect, 1},
    {"aclnnReflectionPad2d", "aclnnReflectionPad2dBackward", Mapping::kReflect, 2},
    {"aclnnReflectionPad3d", "aclnnReflectionPad3dBackward", Mapping::kReflect, 3},
    {"aclnnReplicationPad1d", "aclnnReplicationPad1dBackward", Mapping::kClamp, 1},
    {"aclnnReplicationPad2d", "aclnnReplicationPad2dBackward", Mapping::kClamp, 2},
    {"aclnnReplicationPad3d", "aclnnReplicationPad3dBackward", Mapping::kClamp, 3},
    {"aclnnCircularPad2d", "aclnnCircularPad2dBackward", Mapping::kWrap, 2},
    {"aclnnCircularPad3d", "aclnnCircularPad3dBackward", Mapping::kWrap, 3},
};
constexpr int kPadRows = static_cast<int>(std::size(kPads));

std::string WrongLength(const PadRow& row, Values v, int arg) {
  const size_t length = IntsOf(v, arg).size();
  return length == static_cast<size_t>(2 * row.axes) ? ""
                                                     : "must have " + std::to_string(2 * row.axes) + " entries, got " + std::to_string(length);
}
std::string TooWide(const PadRow& row, Values v, const Dims& self, int arg) {
  if (row.mapping == Mapping::kClamp || Numel(self) == 0) return "";
  for (int i = 0; i < row.axes; ++i) {
    const int64_t size = self[self.rank() - 1 - i];
    if (Before(v, arg, i) >= size || After(v, arg, i) >= size) {
      return "must be less than the axis it borders, got (" + std::to_string(Before(v, arg, i)) + ", " + std::to_string(After(v, arg, i)) +
             ") for " + std::to_string(size);
    }
  }
  return "";
}
// Only the batch may be empty, and only where there is one.
std::string WrongEmpty(const PadRow& row, const Dims& self, bool channels_may_be) {
  for (int i = 0; i < self.rank(); ++i) {
    const bool batch = i == 0 && (self.rank() == row.axes + 2 || channels_may_be);
    if (self[i] == 0 && !batch) return "must have elements but for an empty batch, got " + ToString(self);
  }
  return "";
}

template <int kRow>
std::string WrongPadLength(Values v, Product) {
  return WrongLength(kPads[kRow], v, 1);
}
template <int kRow>
std::string PadTooWide(Values v, Product) {
  return TooWide(kPads[kRow], v, DimsOfArg(v, 0), 1);
}
template <int kRow>
std::string PadOfNothing(Values v, Product) {
  return WrongEmpty(kPads[kRow], DimsOfArg(v, 0), false);
}
template <int kRow>
Dims PadDims(Values v) {
  return PaddedDims(DimsOfArg(v, 0), v, 1);
}

DTypeSet PadTypes(Mapping mapping) {
  if (mapping == Mapping::kWrap) return types::kFloat3 | DTypeSet{DType::kI8, DType::kI32};
  return kAll15;
}
std::vector<TypeRow> PadRowsOf(Mapping mapping) {
  constexpr DTypeSet kOlder = types::kBasic10 | types::kComplex;
  std::vector<TypeRow> rows = RowsOf(PadTypes(mapping), mapping == Mapping::kWrap ? PadTypes(mapping) : kOlder);
  for (TypeRow& row : rows) {
    if (mapping == Mapping::kReflect && IsComplex(row.types[0])) row.products = kNewer;
    if (mapping == Mapping::kClamp && row.types[0] == DType::kBool) row.products = kOnly950;
    if (mapping == Mapping::kClamp && row.types[0] == DType::kBF16) row.products = kAllProducts;
  }
  return rows;
}

Products PadProducts(const PadRow& row) {
  if (row.mapping == Mapping::kWrap) return kNewer;
  return row.mapping == Mapping::kReflect && row.axes == 3 ? kNewerAndTraining : kFive;
}

template <int kRow>
Operator MakePad(const Entry& entry) {
  constexpr PadRow row = kPads[kRow];
  const char* const summary = row.mapping == Mapping::kReflect ? "A tensor with its own elements mirrored around it, the edge not repeated."
                              : row.mapping == Mapping::kClamp ? "A tensor with its edge repeated around it."
                                                               : "A tensor that goes on around itself.";
  Table table = TableOf(entry, "remap", summary);
  table.formulas = {row.mapping == Mapping::kReflect ? "out[j] = self[reflect(j - before)]"
                    : row.mapping == Mapping::kClamp ? "out[j] = self[clamp(j - before, 0, n - 1)]"
                                                     : "out[j] = self[(j - before) mod n]"};
  table.notes = {"padding has a pair (before, after) per axis, from the last one backwards; negative widths cut off."};
  AddNullRules(&table);
  Add(&table, {Supported(row.mapping == Mapping::kWrap ? Of({Product::kAscend950, Product::kA3, Product::kA2}) : PadProducts(row)),
               DTypes("self", PadRowsOf(row.mapping)), SameDType("out", "self")});
  if (row.mapping == Mapping::kWrap) Add(&table, {PublicFormat("self"), PublicFormat("out")});
  else AddStorageRules(&table);
  Add(&table, {SameFormat({"self", "out"}), Rank("self", row.axes + 1, row.axes + 2),
               Custom("padding", "must have a pair per axis", WrongPadLength<kRow>), Custom("self", "must have elements but for an empty batch", PadOfNothing<kRow>),
               Custom("padding", "must be less than the axis it borders", PadTooWide<kRow>),
               ShapeOf<2, PadDims<kRow>>("out", "must have the sizes of self and both widths together")});
  return {.contract = Contract(std::move(table)),
          .plan = [](Values values, PlanBuilder& plan) -> Status {
            if (values[2].tensor->empty()) return {};
            const Operand self = plan.TensorOperand(0);
            const Operand out = ApartOutput(plan, 2);
            std::vector<AxisMap> maps(static_cast<size_t>(self.dims.rank()));
            for (int i = 0; i < kPads[kRow].axes; ++i) {
              maps[maps.size() - 1 - static_cast<size_t>(i)] = {kPads[kRow].mapping, Before(values, 1, i)};
            }
            ANYACL_RETURN_IF_ERROR(AddRemap(plan, self, out, maps));
            return pointwise::FinishOutput(plan, 2, 0, out);
          },
          .family = "movement"};
}

enum { kGrad, kInput, kPadding, kGradInput };

template <int kRow>
std::string WrongBackLength(Values v, Product) {
  return WrongLength(kPads[kRow], v, kPadding);
}
template <int kRow>
std::string BackTooWide(Values v, Product) {
  return TooWide(kPads[kRow], v, DimsOfArg(v, kInput), kPadding);
}
template <int kRow>
std::string BackOfNothing(Values v, Product) {
  constexpr PadRow row = kPads[kRow];
  const bool channels = row.mapping != Mapping::kClamp && row.axes < 3;
  return WrongEmpty(row, DimsOfArg(v, kInput), channels);
}
template <int kRow>
Dims BackDims(Values v) {
  return PaddedDims(DimsOfArg(v, kInput), v, kPadding);
}

// The sums of a gradient's elements, in the dtype sums are kept in, then in that of the output.
template <class Params>
Status PlanSums(PlanBuilder& plan, int grad_arg, int out_arg, Params (*make)(Values), Values values, const char* stem) {
  const DType dtype = plan.TensorOf(out_arg).dtype;
  const DType work = indexing::AccumulatorOf(dtype);
  Operand grad;
  ANYACL_RETURN_IF_ERROR(pointwise::DenseInput(plan, grad_arg, 0, work, &grad));
  const Operand sum = pointwise::DenseOutput(plan, out_arg, 0, work);
  Params& p = plan.MakeParams<Params>();
  p = make(values);
  p.dtype = work;
  plan.Bind(grad, p.grad);
  plan.Bind(sum, p.sum);
  ANYACL_RETURN_IF_ERROR(plan.ChooseKernel(stem));
  return pointwise::FinishOutput(plan, out_arg, 0, sum);
}

template <int kRow>
PadBackParams BackParams(Values v) {
  constexpr PadRow row = kPads[kRow];
  PadBackParams p{};
  const Dims &self = DimsOfArg(v, kInput), &grad = DimsOfArg(v, kGrad);
  p.mapping = row.mapping;
  p.planes = 1;
  for (int i = 0; i < self.rank() - row.axes; ++i) p.planes *= self[i];
  for (int i = 0; i < 3; ++i) {
    const bool used = i < row.axes;
    const int axis = self.rank() - 1 - i;
    p.grad_dims[2 - i] = used ? grad[axis] : 1;
    p.sum_dims[2 - i] = used ? self[axis] : 1;
    p.before[2 - i] = used ? Before(v, kPadding, i) : 0;
  }
  return p;
}

template <int kRow>
Operator MakePadBackward(const Entry& entry) {
  constexpr PadRow row = kPads[kRow];
  Table table = TableOf(entry, "pad_back", "The gradient of a pad: each element of gradOutput is added to where it came from.");
  table.formulas = {"gradInput[i] = sum of gradOutput[j] over all j that come from i"};
  table.notes = {"self gives its shape alone."};
  constexpr DTypeSet kTypes = row.mapping == Mapping::kWrap ? types::kFloat3 : types::kFloat3 | types::kDouble | types::kComplex;
  AddNullRules(&table);
  Add(&table, {Supported(row.mapping == Mapping::kWrap ? kNewer : kFive), DTypes("gradOutput", RowsOf(kTypes)),
               SameDType("self", "gradOutput"), SameDType("gradInput", "self"), PublicFormat("gradOutput"), PublicFormat("self"),
               PublicFormat("gradInput"), SameFormat({"gradOutput", "self", "gradInput"}), SameShape("gradInput", "self"),
               Rank("self", row.axes + 1, row.axes + 2), Custom("padding", "must have a pair per axis", WrongBackLength<kRow>),
               Custom("self", "must have elements but for an empty batch", BackOfNothing<kRow>),
               Custom("padding", "must be less than the axis it borders", BackTooWide<kRow>),
               ShapeOf<kGrad, BackDims<kRow>>("gradOutput", "must have the sizes of self and both widths together")});
  return {.contract = Contract(std::move(table)),
          .plan = [](Values values, PlanBuilder& plan) -> Status {
            if (values[kInput].tensor->empty()) return {};
            if (values[kGrad].tensor->empty()) return AddZeros(plan, plan.TensorOperand(kGradInput));
            return PlanSums<PadBackParams>(plan, kGrad, kGradInput, BackParams<kRow>, values, "pad_back");
          },
          .family = "movement"};
}

template <int... kRows>
void DeclarePadRows(Declarations& declarations, std::integer_sequence<int, kRows...>) {
  (declarations.Add(kPads[kRows].op, MakePad<kRows>), ...);
  (declarations.Add(kPads[kRows].back, MakePadBackward<kRows>), ...);
}

// --- windows as columns --------------------------------------------------------------------------

// The arrays of Im2col and its gradient, two numbers each.
struct Windows {
  int64_t kernel[2], dilation[2], padding[2], stride[2];
  int64_t blocks[2];
};
Windows WindowsOf(Values v, int first, int64_t height, int64_t width) {
  Windows w{};
  const int64_t size[2] = {height, width};
  for (size_t i = 0; i < 2; ++i) {
    w.kernel[i] = IntsOf(v, first)[i];
    w.dilation[i] = IntsOf(v, first + 1)[i];
    w.padding[i] = IntsOf(v, first + 2)[i];
    w.stride[i] = IntsOf(v, first + 3)[i];
    // Absurd numbers give no blocks, not another number of them.
    const __int128 reach = static_cast<__int128>(size[i]) + 2 * static_cast<__int128>(w.padding[i]) -
                           static_cast<__int128>(w.dilation[i]) * (w.kernel[i] - 1) - 1;
    const __int128 blocks = reach < 0 ? 0 : reach / w.stride[i] + 1;
    w.blocks[i] = blocks > INT32_MAX ? -1 : static_cast<int64_t>(blocks);
  }
  return w;
}

template <int kArg, bool kMayBeZero>
std::string WrongPair(Values v, Product) {
  const std::vector<int64_t>& values = IntsOf(v, kArg);
  if (values.size() != 2) return "must have 2 entries, got " + std::to_string(values.size());
  for (const int64_t one : values) {
    if (one < (kMayBeZero ? 0 : 1)) return std::string(kMayBeZero ? "must not be negative" : "must be positive") + ", got " + std::to_string(one);
  }
  return "";
}
template <int kArg, bool kMayBeZero = false>
Rule Pair(const char* arg) {
  return Custom(arg, kMayBeZero ? "must be two numbers, not negative" : "must be two positive numbers", WrongPair<kArg, kMayBeZero>);
}

// [N, C, H, W], with N = 1 for what has no batch.
struct Planes {
  int64_t batch, channels, height, width;
};
Planes PlanesOf(const Dims& dims) {
  const int i = dims.rank() - 3;
  return {i ? dims[0] : 1, dims[i], dims[i + 1], dims[i + 2]};
}

Dims Im2colDims(Values v) {
  const Dims& self = DimsOfArg(v, 0);
  const Planes planes = PlanesOf(self);
  const Windows w = WindowsOf(v, 1, planes.height, planes.width);
  Dims dims;
  if (self.rank() == 4) dims.push_back(planes.batch);
  int64_t rows = planes.channels, length = w.blocks[0];
  if (__builtin_mul_overflow(rows, w.kernel[0], &rows) || __builtin_mul_overflow(rows, w.kernel[1], &rows)) rows = -1;
  if (__builtin_mul_overflow(length, w.blocks[1], &length)) length = -1;
  dims.push_back(rows);
  dims.push_back(length);
  return dims;
}
std::string WrongPlanes(Values v, Product) {
  const Dims& self = DimsOfArg(v, 0);
  for (int i = 0; i < self.rank(); ++i) {
    if (self[i] == 0 && !(i == 0 && self.rank() == 4)) return "must have elements but for an empty batch, got " + ToString(self);
  }
  return "";
}
std::string NoWindow(Values v, Product) {
  const Planes planes = PlanesOf(DimsOfArg(v, 0));
  const Windows w = WindowsOf(v, 1, planes.height, planes.width);
  return w.blocks[0] > 0 && w.blocks[1] > 0 ? "" : "must leave room for a window in " + ToString(DimsOfArg(v, 0));
}

Operator MakeIm2col(const Entry& entry) {
  enum { kIn, kKernel, kDilation, kPaddingArg, kStride, kColumns };
  Table table = TableOf(entry, "copy", "The windows of images as columns.", {.outputs = {"out"}});
  table.formulas = {"out[n, (c, ky, kx), (by, bx)] = self[n, c, by * stride + ky * dilation - padding, ...], 0 outside"};
  constexpr DTypeSet kNewest = kAll15 | types::kComplex32;
  AddNullRules(&table);
  Add(&table, {Supported(kNewer), DTypes("self", RowsOf(kNewest, types::kFloat3))});
  AddStorageRules(&table);
  Add(&table, {Rank("self", 3, 4), Custom("self", "must have elements but for an empty batch", WrongPlanes), Pair<1>("kernelSize"), Pair<2>("dilation"),
               Pair<3, true>("padding"), Pair<4>("stride"), Custom("kernelSize", "must leave room for a window", NoWindow),
               ShapeOf<kColumns, Im2colDims>("out", "must have a row per element of a window and a column per window")});
  return {.contract = Contract(std::move(table)),
          .plan = [](Values values, PlanBuilder& plan) -> Status {
            if (values[kIn].tensor->empty()) return {};
            Operand self = plan.TensorOperand(kIn), out = ApartOutput(plan, kColumns);
            if (self.dims.rank() == 3) {
              self = WithAxis(self, 0);
              out = WithAxis(out, 0);
            }
            const Planes planes = PlanesOf(self.dims);
            const Windows w = WindowsOf(values, 1, planes.height, planes.width);
            if (w.padding[0] > 0 || w.padding[1] > 0) {
              const Operand bordered = plan.ScratchOperand("bordered", self.dtype, {planes.batch, planes.channels, planes.height + 2 * w.padding[0],
                                                                                     planes.width + 2 * w.padding[1]});
              ANYACL_RETURN_IF_ERROR(AddZeros(plan, bordered));
              ANYACL_RETURN_IF_ERROR(pointwise::AddCopy(
                  plan, self, Narrow(Narrow(bordered, 2, w.padding[0], planes.height), 3, w.padding[1], planes.width)));
              self = bordered;
            }
            // [n, c, ky, kx, by, bx] on both sides.
            Operand windows = self;
            windows.dims = {planes.batch, planes.channels, w.kernel[0], w.kernel[1], w.blocks[0], w.blocks[1]};
            windows.strides = {self.strides[0], self.strides[1], self.strides[2] * w.dilation[0], self.strides[3] * w.dilation[1],
                               self.strides[2] * w.stride[0], self.strides[3] * w.stride[1]};
            const Operand columns = SplitAxis(SplitAxis(SplitAxis(out, 2, w.blocks[1]), 1, w.kernel[1]), 1, w.kernel[0]);
            ANYACL_RETURN_IF_ERROR(pointwise::AddCopy(plan, windows, columns));
            if (out.index < 0 && values[kIn].tensor->rank() == 3) out = WithoutAxis(out, 0);
            return pointwise::FinishOutput(plan, kColumns, 0, out);
          },
          .family = "movement"};
}

// columns [planes, ky, kx, by, bx] folded back; dense in the sum's dtype.
Status AddFold(PlanBuilder& plan, const Operand& columns, const Operand& sum, int64_t planes, const Windows& w, int64_t height, int64_t width) {
  auto& p = plan.MakeParams<FoldParams>();
  p.planes = planes;
  p.size[0] = height;
  p.size[1] = width;
  for (int i = 0; i < 2; ++i) {
    p.kernel[i] = w.kernel[i];
    p.blocks[i] = w.blocks[i];
    p.stride[i] = w.stride[i];
    p.dilation[i] = w.dilation[i];
    p.padding[i] = w.padding[i];
  }
  p.dtype = sum.dtype;
  plan.Bind(columns, p.columns);
  plan.Bind(sum, p.sum);
  return plan.ChooseKernel("fold");
}

Dims FoldedDims(Values v) {
  const Dims& grad = DimsOfArg(v, 0);
  const int64_t window = IntsOf(v, 2)[0] * IntsOf(v, 2)[1];
  Dims dims;
  if (grad.rank() == 3) dims.push_back(grad[0]);
  dims.push_back(grad[grad.rank() - 2] / window);
  for (const int64_t size : IntsOf(v, 1)) dims.push_back(size);
  return dims;
}
std::string WrongColumns(Values v, Product) {
  const Dims& grad = DimsOfArg(v, 0);
  const Windows w = WindowsOf(v, 2, IntsOf(v, 1)[0], IntsOf(v, 1)[1]);
  int64_t window, length;
  if (__builtin_mul_overflow(w.kernel[0], w.kernel[1], &window) || grad[grad.rank() - 2] % window != 0) {
    return "must have a row per element of the windows, got " + ToString(grad);
  }
  if (__builtin_mul_overflow(w.blocks[0], w.blocks[1], &length) || w.blocks[0] < 1 || w.blocks[1] < 1 || grad[grad.rank() - 1] != length) {
    return "must have a column per window, got " + ToString(grad);
  }
  return "";
}

Operator MakeIm2colBackward(const Entry& entry) {
  enum { kColumnsArg, kInputSize, kKernel, kDilation, kPaddingArg, kStride, kImage };
  Table table = TableOf(entry, "fold", "The gradient of Im2col: the elements of all windows added where they came from.");
  table.formulas = {"out[n, c, y, x] = sum of gradOutput[n, (c, ky, kx), (by, bx)] with y = by * stride + ky * dilation - padding"};
  constexpr DTypeSet kNewest = types::kFloat3 | types::kDouble | types::kComplex;
  AddNullRules(&table);
  Add(&table, {Supported(kNewer), DTypes("gradOutput", RowsOf(kNewest, types::kFloat3)), DTypes("out", RowsOf(kNewest, types::kFloat3)),
               ResultConverts("gradOutput", "out")});
  AddStorageRules(&table);
  Add(&table, {Rank("gradOutput", 2, 3), Pair<1>("inputSize"), Pair<2>("kernelSize"), Pair<3>("dilation"), Pair<4, true>("padding"),
               Pair<5>("stride"), Custom("gradOutput", "must have a row per element of a window and a column per window", WrongColumns),
               ShapeOf<kImage, FoldedDims>("out", "must have the shape of the images")});
  return {.contract = Contract(std::move(table)),
          .plan = [](Values values, PlanBuilder& plan) -> Status {
            const Tensor& out = *values[kImage].tensor;
            if (out.empty()) return {};
            const DType given = values[kColumnsArg].tensor->dtype;
            const DType work = indexing::AccumulatorOf(IsComplex(out.dtype) || out.dtype == DType::kF64 ? out.dtype : given);
            const Planes planes = PlanesOf(out.dims);
            const Windows w = WindowsOf(values, kKernel, planes.height, planes.width);
            Operand columns;
            ANYACL_RETURN_IF_ERROR(pointwise::DenseInput(plan, kColumnsArg, 0, work, &columns));
            const Operand sum = pointwise::DenseOutput(plan, kImage, 0, work);
            ANYACL_RETURN_IF_ERROR(AddFold(plan, columns, sum, planes.batch * planes.channels, w, planes.height, planes.width));
            return pointwise::FinishOutput(plan, kImage, 0, sum);
          },
          .family = "movement"};
}

// --- the gradient of unfold ----------------------------------------------------------------------

enum { kGradOut, kInputSizes, kDimArg, kSize, kStep, kGradIn };

int UnfoldRank(Values v) { return static_cast<int>(IntsOf(v, kInputSizes).size()); }
int UnfoldAxis(Values v) { return AxisOf(v[kDimArg].integer, UnfoldRank(v)); }
Dims UnfoldInput(Values v) {
  Dims dims;
  for (const int64_t size : IntsOf(v, kInputSizes)) dims.push_back(size);
  return dims;
}
std::string WrongUnfoldDim(Values v, Product product) {
  const int axes = std::max(UnfoldRank(v), 1);
  const int64_t dim = v[kDimArg].integer;
  const bool fits = dim >= (product == Product::kAscend950 ? -axes : 0) && dim < axes;
  return fits ? "" : "must be an axis of the input, got " + std::to_string(dim) + " for " + ToString(UnfoldInput(v));
}
std::string WrongUnfoldSizes(Values v, Product) {
  const Dims& grad = DimsOfArg(v, kGradOut);
  return UnfoldRank(v) == grad.rank() - 1 ? "" : "must have one entry less than gradOut has dims, got " + std::to_string(UnfoldRank(v));
}
std::string WrongUnfold(Values v, Product) {
  const Dims &grad = DimsOfArg(v, kGradOut), input = UnfoldInput(v);
  const int64_t size = v[kSize].integer, step = v[kStep].integer;
  const int axis = UnfoldAxis(v);
  const int64_t length = input.rank() == 0 ? 1 : input[axis];
  if (size > length) return "must come from windows that fit, got size " + std::to_string(size) + " for " + std::to_string(length);
  Dims want = input;
  if (input.rank() > 0) want[axis] = (length - size) / step + 1;
  want.push_back(size);
  return want == grad ? "" : "must have shape " + ToString(want) + ", got " + ToString(grad);
}

Operator MakeUnfoldGrad(const Entry& entry) {
  Table table = TableOf(entry, "fold", "The gradient of Tensor.unfold: the elements of all windows added where they came from.",
                        {.outputs = {"gradIn"}});
  table.formulas = {"gradIn[..., w * step + k, ...] += gradOut[..., w, ..., k]"};
  constexpr DTypeSet kNewest = types::kFloat3 | types::kDouble | types::kComplex;
  AddNullRules(&table);
  const auto positive = [](const char* arg, CustomCheck check) { return Custom(arg, "must be positive", check); };
  Add(&table, {Supported(kNewer), DTypes("gradOut", RowsOf(kNewest, types::kFloat3)), SameDType("gradIn", "gradOut"),
               PublicFormat("gradOut"), PublicFormat("gradIn"), Rank("gradOut", 1, 8), Rank("gradIn", 0, 8),
               Custom("inputSizes", "must have one entry less than gradOut has dims", WrongUnfoldSizes),
               ShapeOf<kGradIn, UnfoldInput>("gradIn", "must have the shape inputSizes"),
               Custom("dim", "must be an axis of the input", WrongUnfoldDim),
               positive("size", [](Values v, Product) { return v[kSize].integer > 0 ? std::string() : "must be positive, got " + std::to_string(v[kSize].integer); }),
               positive("step", [](Values v, Product) { return v[kStep].integer > 0 ? std::string() : "must be positive, got " + std::to_string(v[kStep].integer); }),
               Custom("gradOut", "must have the shape of the windows", WrongUnfold).Code(561002)});
  return {.contract = Contract(std::move(table)),
          .plan = [](Values values, PlanBuilder& plan) -> Status {
            const Tensor& in = *values[kGradIn].tensor;
            if (in.empty()) return {};
            const DType work = indexing::AccumulatorOf(in.dtype);
            const int axis = UnfoldAxis(values);
            Operand grad = plan.TensorOperand(kGradOut), out = AtLeast1d(ApartOutput(plan, kGradIn));
            if (in.rank() == 0) grad = WithAxis(grad, 0);
            // The other axes first, then [k, w]: planes of one row each.
            std::vector<int> order;
            const int rank = out.dims.rank();
            for (int i = 0; i < rank; ++i) {
              if (i != axis) order.push_back(i);
            }
            std::vector<int> columns_order = order, rows_order = order;
            columns_order.push_back(rank);
            columns_order.push_back(axis);
            rows_order.push_back(axis);
            grad = Permuted(grad, columns_order);
            const Operand columns = plan.ScratchOperand("columns", work, grad.dims);
            ANYACL_RETURN_IF_ERROR(pointwise::AddCopy(plan, grad, columns));
            const Operand rows = Permuted(out, rows_order);
            const bool direct = rows.dtype == work && rows.row_major();
            const Operand sum = direct ? rows : plan.ScratchOperand("sums", work, rows.dims);
            Windows w{};
            for (int i = 0; i < 2; ++i) w.kernel[i] = w.dilation[i] = w.stride[i] = w.blocks[i] = 1;
            w.kernel[1] = values[kSize].integer;
            w.stride[1] = values[kStep].integer;
            w.blocks[1] = grad.dims[rank];
            const int64_t length = rows.dims[rank - 1];
            ANYACL_RETURN_IF_ERROR(AddFold(plan, columns, sum, Numel(rows.dims) / length, w, 1, length));
            if (!direct) ANYACL_RETURN_IF_ERROR(pointwise::AddCopy(plan, sum, rows));
            if (in.rank() == 0) out = WithoutAxis(out, 0);
            return pointwise::FinishOutput(plan, kGradIn, 0, out);
          },
          .family = "movement"};
}

}  // namespace

void DeclarePads(Declarations& declarations) {
  declarations.Add("aclnnConstantPadNd", MakeConstantPadNd);
  DeclarePadRows(declarations, std::make_integer_sequence<int, kPadRows>());
  declarations.Add("aclnnIm2col", MakeIm2col);
  declarations.Add("aclnnIm2colBackward", MakeIm2colBackward);
  declarations.Add("aclnnUnfoldGrad", MakeUnfoldGrad);
}

}  // namespace anyacl::movement
