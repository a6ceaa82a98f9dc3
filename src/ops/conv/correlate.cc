// SPDX-License-Identifier: Apache-2.0
// Copyright The AnyACL Authors
#include "ops/conv/correlate.h"

#include <algorithm>
#include <array>
#include <numeric>
#include <utility>
#include <vector>

#include "ops/matmul/product.h"
#include "ops/pointwise/formulas.h"
#include "ops/pointwise/pass.h"

namespace anyacl::conv {
namespace {

Dims WithSpatial(int64_t a, int64_t b, const int64_t* spatial, int axes) {
  Dims dims = {a, b};
  for (int i = 0; i < axes; ++i) dims.push_back(spatial[i]);
  return dims;
}

Status Fill(PlanBuilder& plan, const Operand& to, float value) {
  const pointwise::ScalarUse scalar[] = {{Scalar::OfFloat(value)}};
  return pointwise::AddPass(plan, pointwise::Formula::kFill, to.dtype, {}, to, scalar);
}

int64_t ElementBytes(const Operand& operand) { return static_cast<int64_t>(SizeOf(operand.dtype)); }

// The image between so many zeros along each axis; itself where there are none.
Status Padded(PlanBuilder& plan, const char* name, const Operand& image, int axes, const int64_t* before, const int64_t* after,
              Operand* result) {
  int64_t spatial[kMaxSpatial] = {};
  bool any = false;
  for (int i = 0; i < axes; ++i) {
    spatial[i] = image.dims[2 + i] + before[i] + after[i];
    any = any || before[i] != 0 || after[i] != 0;
  }
  if (!any) {
    *result = image;
    return {};
  }
  *result = plan.ScratchOperand(name, image.dtype, WithSpatial(image.dims[0], image.dims[1], spatial, axes));
  ANYACL_RETURN_IF_ERROR(Fill(plan, *result, 0));
  Operand inside = *result;
  inside.dims = image.dims;
  for (int i = 0; i < axes; ++i) inside.offset += before[i] * inside.strides[2 + i] * ElementBytes(inside);
  return pointwise::AddCopy(plan, image, inside);
}

// [channels, n, ...] as [n, channels, ...] and the other way round. Sums lie channel by channel: the columns of the product are the
// places of all images, so that there are many even where images are small.
Operand WithChannelsSecond(Operand sums) {
  std::swap(sums.dims[0], sums.dims[1]);
  std::swap(sums.strides[0], sums.strides[1]);
  return sums;
}
Dims ChannelsFirst(Dims dims) {
  std::swap(dims[0], dims[1]);
  return dims;
}

class AxisList {
 public:
  explicit AxisList(const Operand& base) : operand_(base) { operand_.dims = operand_.strides = Dims(); }
  AxisList& Add(int64_t size, int64_t stride) {
    operand_.dims.push_back(size);
    operand_.strides.push_back(stride);
    return *this;
  }
  AxisList& Spatial(const Operand& of, int axes, const int64_t* sizes, const int64_t* steps) {
    for (int i = 0; i < axes; ++i) Add(sizes[i], of.strides[2 + i] * (steps ? steps[i] : 1));
    return *this;
  }
  Operand Take() { return operand_; }

 private:
  Operand operand_;
};

}  // namespace

Dims InputDims(const Geometry& g) { return WithSpatial(g.n, g.in_channels, g.in, g.axes); }
Dims OutputDims(const Geometry& g) { return WithSpatial(g.n, g.out_channels, g.out, g.axes); }
Dims WeightDims(const Geometry& g) { return WithSpatial(g.out_channels, g.in_channels / g.groups, g.kernel, g.axes); }

Status Correlate(PlanBuilder& plan, const Geometry& g, const Operand& x, const Operand& w, Operand* y) {
  const int64_t in_group = g.in_channels / g.groups, out_group = g.out_channels / g.groups;
  const Operand sums = plan.ScratchOperand("correlation", DType::kF32, ChannelsFirst(OutputDims(g)));
  *y = WithChannelsSecond(sums);
  Operand image;
  ANYACL_RETURN_IF_ERROR(Padded(plan, "padded image", x, g.axes, g.before, g.after, &image));
  const Operand rows = AxisList(w).Add(g.groups, out_group * w.strides[0]).Add(out_group, w.strides[0]).Add(in_group, w.strides[1])
                           .Spatial(w, g.axes, g.kernel, nullptr).Take();
  const Operand windows = AxisList(image).Add(g.groups, in_group * image.strides[1]).Add(g.n, image.strides[0])
                              .Spatial(image, g.axes, g.out, g.stride).Add(in_group, image.strides[1])
                              .Spatial(image, g.axes, g.kernel, g.dilation).Take();
  return matmul::AddContraction(plan, rows, {1, 1, 1 + g.axes}, windows, {1, 1 + g.axes, 1 + g.axes}, sums);
}

namespace {

// dx[i] = sum over q of dy[(i + padding - q * dilation) / stride] * w[q], where that is whole. Along an axis, numbers i of one
// residue by the stride, i = residue + j * stride, have the same taps: q = tap + t * tap_step, at place + j - t * reach in dy.
struct Residue {
  int64_t first = 0;
  int64_t count = 0;  // of j
  int64_t tap = 0;
  int64_t taps = 0;
  int64_t place = 0;
};

int64_t TapStep(const Geometry& g, int axis) { return g.stride[axis] / std::gcd(g.stride[axis], g.dilation[axis]); }
int64_t Reach(const Geometry& g, int axis) { return g.dilation[axis] / std::gcd(g.stride[axis], g.dilation[axis]); }

Residue ResidueOf(const Geometry& g, int axis, int64_t first) {
  Residue r{.first = first, .count = std::max<int64_t>(0, (g.in[axis] - first + g.stride[axis] - 1) / g.stride[axis])};
  const int64_t step = TapStep(g, axis), padded = first + g.before[axis], most = std::min(step, g.kernel[axis]);
  while (r.tap < most && (padded - r.tap * g.dilation[axis]) % g.stride[axis] != 0) ++r.tap;
  if (r.tap == most) return r;
  r.taps = (g.kernel[axis] - r.tap + step - 1) / step;
  r.place = (padded - r.tap * g.dilation[axis]) / g.stride[axis];
  return r;
}

// All choices of a residue for each axis whose numbers are there and reached by a tap.
using Part = std::array<Residue, kMaxSpatial>;
std::vector<Part> PartsOf(const Geometry& g) {
  std::vector<Part> parts = {Part{}};
  for (int axis = 0; axis < g.axes; ++axis) {
    std::vector<Part> more;
    for (const Part& part : parts) {
      for (int64_t first = 0; first < std::min(g.stride[axis], g.in[axis]); ++first) {
        more.push_back(part);
        more.back()[axis] = ResidueOf(g, axis, first);
        if (more.back()[axis].taps == 0) more.pop_back();
      }
    }
    parts = std::move(more);
  }
  return parts;
}

int64_t Places(const Geometry& g, const Part& part) {
  int64_t count = g.n;
  for (int i = 0; i < g.axes; ++i) count *= part[i].count;
  return count;
}
int64_t Taps(const Geometry& g, const Part& part) {
  int64_t count = 1;
  for (int i = 0; i < g.axes; ++i) count *= part[i].taps;
  return count;
}

// dy with zeros around it, so that all parts find their places; `before`: how many are in front.
Status PaddedForParts(PlanBuilder& plan, const Geometry& g, const Operand& dy, const std::vector<Part>& parts, int64_t* before,
                      Operand* image) {
  int64_t after[kMaxSpatial] = {};
  for (const Part& part : parts) {
    for (int i = 0; i < g.axes; ++i) {
      before[i] = std::max(before[i], (part[i].taps - 1) * Reach(g, i) - part[i].place);
      after[i] = std::max(after[i], part[i].place + part[i].count - g.out[i]);
    }
  }
  return Padded(plan, "padded gradient", dy, g.axes, before, after, image);
}

// sums = one part of dx; `image` is dy with `before` zeros in front.
Status AddPart(PlanBuilder& plan, const Geometry& g, const Part& part, const Operand& image, const int64_t* before, const Operand& w,
               const matmul::ProductRoom& room, Operand* sums) {
  const int64_t in_group = g.in_channels / g.groups, out_group = g.out_channels / g.groups;
  Operand kernel = w, begin = image;
  int64_t counts[kMaxSpatial] = {}, taps[kMaxSpatial] = {}, tap_steps[kMaxSpatial] = {}, backwards[kMaxSpatial] = {};
  for (int i = 0; i < g.axes; ++i) {
    counts[i] = part[i].count;
    taps[i] = part[i].taps;
    tap_steps[i] = TapStep(g, i);
    backwards[i] = -Reach(g, i);
    kernel.offset += part[i].tap * w.strides[2 + i] * ElementBytes(w);
    begin.offset += (before[i] + part[i].place) * image.strides[2 + i] * ElementBytes(image);
  }
  const Operand rows = AxisList(kernel).Add(g.groups, out_group * w.strides[0]).Add(in_group, w.strides[1]).Add(out_group, w.strides[0])
                           .Spatial(w, g.axes, taps, tap_steps).Take();
  const Operand windows = AxisList(begin).Add(g.groups, out_group * image.strides[1]).Add(g.n, image.strides[0])
                              .Spatial(image, g.axes, counts, nullptr).Add(out_group, image.strides[1])
                              .Spatial(image, g.axes, taps, backwards).Take();
  *sums = room.Sums(ChannelsFirst(WithSpatial(g.n, g.in_channels, counts, g.axes)));
  return matmul::AddContraction(plan, rows, {1, 1, 1 + g.axes}, windows, {1, 1 + g.axes, 1 + g.axes}, *sums, room);
}

// Where a part is in dx.
Operand PlaceOf(const Geometry& g, const Part& part, Operand dx) {
  for (int i = 0; i < g.axes; ++i) {
    const int axis = 2 + i;
    dx.dims[axis] = part[i].count;
    dx.offset += part[i].first * dx.strides[axis] * ElementBytes(dx);
    dx.strides[axis] *= g.stride[i];
  }
  return dx;
}

}  // namespace

// A product for each part: nothing is multiplied by the zeros that a stride puts between the numbers of dy.
Status InputGradient(PlanBuilder& plan, const Geometry& g, const Operand& dy, const Operand& w, Operand* dx) {
  const std::vector<Part> parts = PartsOf(g);
  matmul::ProductRoom room;
  int64_t reached = 0;
  for (const Part& part : parts) {
    reached += Places(g, part);
    room.Fit(g.in_channels / g.groups, Places(g, part), g.out_channels / g.groups * Taps(g, part), g.groups);
  }
  const bool everything = reached * g.in_channels == Numel(InputDims(g));
  if (!everything || parts.size() > 1) *dx = plan.ScratchOperand("input gradient", DType::kF32, InputDims(g));
  if (!everything) ANYACL_RETURN_IF_ERROR(Fill(plan, *dx, 0));
  if (parts.empty()) return {};
  room.Book(plan);
  int64_t before[kMaxSpatial] = {};
  Operand image, sums;
  ANYACL_RETURN_IF_ERROR(PaddedForParts(plan, g, dy, parts, before, &image));
  for (const Part& part : parts) {
    ANYACL_RETURN_IF_ERROR(AddPart(plan, g, part, image, before, w, room, &sums));
    if (everything && parts.size() == 1) {
      *dx = WithChannelsSecond(sums);
    } else {
      ANYACL_RETURN_IF_ERROR(pointwise::AddCopy(plan, WithChannelsSecond(sums), PlaceOf(g, part, *dx)));
    }
  }
  return {};
}

Status WeightGradient(PlanBuilder& plan, const Geometry& g, const Operand& dy, const Operand& x, Operand* dw) {
  const int64_t in_group = g.in_channels / g.groups, out_group = g.out_channels / g.groups;
  *dw = plan.ScratchOperand("weight gradient", DType::kF32, WeightDims(g));
  Operand image;
  ANYACL_RETURN_IF_ERROR(Padded(plan, "padded image", x, g.axes, g.before, g.after, &image));
  const Operand rows = AxisList(dy).Add(g.groups, out_group * dy.strides[1]).Add(out_group, dy.strides[1])
                           .Add(g.n, dy.strides[0]).Spatial(dy, g.axes, g.out, nullptr).Take();
  const Operand windows = AxisList(image).Add(g.groups, in_group * image.strides[1]).Add(in_group, image.strides[1])
                              .Spatial(image, g.axes, g.kernel, g.dilation).Add(g.n, image.strides[0])
                              .Spatial(image, g.axes, g.out, g.stride).Take();
  return matmul::AddContraction(plan, rows, {1, 1, 1 + g.axes}, windows, {1, 1 + g.axes, 1 + g.axes}, *dw);
}

Status ChannelSums(PlanBuilder& plan, const Operand& x, Operand* sums) {
  *sums = plan.ScratchOperand("channel sums", DType::kF32, {x.dims[1]});
  const Operand one = plan.ScratchOperand("one", DType::kF32, {1});
  ANYACL_RETURN_IF_ERROR(Fill(plan, one, 1));
  const int axes = x.dims.rank() - 2;
  int64_t spatial[kMaxSpatial] = {};
  AxisList ones = AxisList(one).Add(1, 0).Add(x.dims[0], 0);
  for (int i = 0; i < axes; ++i) {
    spatial[i] = x.dims[2 + i];
    ones.Add(spatial[i], 0);
  }
  const Operand rows = AxisList(x).Add(x.dims[1], x.strides[1]).Add(x.dims[0], x.strides[0]).Spatial(x, axes, spatial, nullptr).Take();
  return matmul::AddContraction(plan, rows, {0, 1, 1 + axes}, ones.Take(), {0, 1, 1 + axes}, *sums);
}

}  // namespace anyacl::conv
