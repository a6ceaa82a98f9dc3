// SPDX-License-Identifier: Apache-2.0
// Copyright The AnyACL Authors
#include "ops/conv/correlate.h"

#include <algorithm>

#include "ops/matmul/product.h"
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

// Zeros of `spatial`, in which the elements of `from` stand at `first` + i * `step`, as far as they fit.
Status Spread(PlanBuilder& plan, const char* name, const Operand& from, int axes, const int64_t* spatial, const int64_t* first,
              const int64_t* step, Operand* result) {
  *result = plan.ScratchOperand(name, from.dtype, WithSpatial(from.dims[0], from.dims[1], spatial, axes));
  ANYACL_RETURN_IF_ERROR(Fill(plan, *result, 0));
  Operand source = from, inside = *result;
  for (int i = 0; i < axes; ++i) {
    const int axis = 2 + i;
    const int64_t fits = (spatial[i] - first[i] + step[i] - 1) / step[i];
    source.dims[axis] = inside.dims[axis] = std::clamp<int64_t>(fits, 0, from.dims[axis]);
    inside.offset += first[i] * inside.strides[axis] * ElementBytes(inside);
    inside.strides[axis] *= step[i];
  }
  return pointwise::AddCopy(plan, source, inside);
}

// x with its padding around it; x itself where there is none.
Status Padded(PlanBuilder& plan, const Geometry& g, const Operand& x, Operand* result) {
  constexpr int64_t kOnes[kMaxSpatial] = {1, 1, 1};
  int64_t spatial[kMaxSpatial] = {};
  bool any = false;
  for (int i = 0; i < g.axes; ++i) {
    // Windows of the last outputs may end before the image does, but never behind it.
    spatial[i] = g.in[i] + g.before[i] + g.after[i];
    any = any || g.before[i] != 0 || g.after[i] != 0;
  }
  if (!any) {
    *result = x;
    return {};
  }
  return Spread(plan, "padded image", x, g.axes, spatial, g.before, kOnes, result);
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
  *y = plan.ScratchOperand("correlation", DType::kF32, OutputDims(g));
  Operand image;
  ANYACL_RETURN_IF_ERROR(Padded(plan, g, x, &image));
  const Operand rows = AxisList(w).Add(g.n, 0).Add(g.groups, out_group * w.strides[0]).Add(out_group, w.strides[0])
                           .Add(in_group, w.strides[1]).Spatial(w, g.axes, g.kernel, nullptr).Take();
  const Operand windows = AxisList(image).Add(g.n, image.strides[0]).Add(g.groups, in_group * image.strides[1])
                              .Spatial(image, g.axes, g.out, g.stride).Add(in_group, image.strides[1])
                              .Spatial(image, g.axes, g.kernel, g.dilation).Take();
  return matmul::AddContraction(plan, rows, {2, 1, 1 + g.axes}, windows, {2, g.axes, 1 + g.axes}, *y);
}

// dx[i] = sum over q of dy[(i + padding - q * dilation) / stride] * w[q], where that is whole: dy is spread out by the stride, with
// room for the whole kernel in front, and read backwards along the kernel.
Status InputGradient(PlanBuilder& plan, const Geometry& g, const Operand& dy, const Operand& w, Operand* dx) {
  const int64_t in_group = g.in_channels / g.groups, out_group = g.out_channels / g.groups;
  *dx = plan.ScratchOperand("input gradient", DType::kF32, InputDims(g));
  int64_t spatial[kMaxSpatial] = {}, first[kMaxSpatial] = {}, backwards[kMaxSpatial] = {};
  for (int i = 0; i < g.axes; ++i) {
    first[i] = (g.kernel[i] - 1) * g.dilation[i];
    spatial[i] = g.before[i] + g.in[i] + first[i];
    backwards[i] = -g.dilation[i];
  }
  Operand spread;
  ANYACL_RETURN_IF_ERROR(Spread(plan, "spread gradient", dy, g.axes, spatial, first, g.stride, &spread));
  Operand begin = spread;
  for (int i = 0; i < g.axes; ++i) begin.offset += (g.before[i] + first[i]) * spread.strides[2 + i] * ElementBytes(spread);
  const Operand rows = AxisList(w).Add(g.n, 0).Add(g.groups, out_group * w.strides[0]).Add(in_group, w.strides[1])
                           .Add(out_group, w.strides[0]).Spatial(w, g.axes, g.kernel, nullptr).Take();
  const Operand windows = AxisList(begin).Add(g.n, spread.strides[0]).Add(g.groups, out_group * spread.strides[1])
                              .Spatial(spread, g.axes, g.in, nullptr).Add(out_group, spread.strides[1])
                              .Spatial(spread, g.axes, g.kernel, backwards).Take();
  return matmul::AddContraction(plan, rows, {2, 1, 1 + g.axes}, windows, {2, g.axes, 1 + g.axes}, *dx);
}

Status WeightGradient(PlanBuilder& plan, const Geometry& g, const Operand& dy, const Operand& x, Operand* dw) {
  const int64_t in_group = g.in_channels / g.groups, out_group = g.out_channels / g.groups;
  *dw = plan.ScratchOperand("weight gradient", DType::kF32, WeightDims(g));
  Operand image;
  ANYACL_RETURN_IF_ERROR(Padded(plan, g, x, &image));
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
