// SPDX-License-Identifier: Apache-2.0
// Copyright The AnyACL Authors
//
// Pooling by its definition: for every window the list of positions it sees.
#include <algorithm>
#include <cmath>
#include <limits>
#include <string_view>

#include "harness/family.h"

namespace anyacl::harness {
namespace {

struct Pooling {
  int axes = 2;
  Checked<int64_t> kernel, stride, padding, dilation;  // empty kernel: adaptive
  bool ceil = false, include = true;
  int64_t divisor = 0;
};

int64_t One(const Checked<int64_t>& values, int axis, int64_t fallback) {
  return values.empty() ? fallback : values.size() == 1 ? values[0] : values[axis];
}

int64_t OutSize(const Pooling& p, int axis, int64_t in) {
  const int64_t k = One(p.kernel, axis, 1), s = One(p.stride, axis, k), pad = One(p.padding, axis, 0), d = One(p.dilation, axis, 1);
  const Real steps = static_cast<Real>(in + 2 * pad - d * (k - 1) - 1) / static_cast<Real>(s);
  int64_t out = static_cast<int64_t>(p.ceil ? std::ceil(steps) : std::floor(steps)) + 1;
  if (p.ceil && (out - 1) * s >= in + pad) --out;
  return out;
}

// Positions one axis of a window sees inside the plane, and its length with padding.
struct Line {
  Checked<int64_t> inside;
  int64_t length = 0;
  int64_t first = 0;  // where the scan would begin
};
Line LineOf(const Pooling& p, int axis, int64_t o, int64_t in, int64_t out) {
  Line line;
  if (p.kernel.empty()) {
    const int64_t begin = static_cast<int64_t>(std::floor(static_cast<Real>(o * in) / out));
    const int64_t end = static_cast<int64_t>(std::ceil(static_cast<Real>((o + 1) * in) / out));
    for (int64_t i = begin; i < end; ++i) line.inside.push_back(i);
    line.length = end - begin;
    line.first = begin;
    return line;
  }
  const int64_t k = One(p.kernel, axis, 1), s = One(p.stride, axis, k), pad = One(p.padding, axis, 0), d = One(p.dilation, axis, 1);
  const int64_t begin = o * s - pad;
  line.first = begin;
  while (line.first < 0) line.first += d;
  for (int64_t t = 0; t < k; ++t) {
    const int64_t i = begin + t * d;
    if (i < in + pad) line.length = i - begin + 1;
    if (i >= 0 && i < in) line.inside.push_back(i);
  }
  return line;
}

// Visits (window index, positions in the whole tensor, divisor, first position in the plane) for all windows.
template <class Visit>
void ForWindows(const Pooling& p, const Host& large, const Host& small, const Visit& visit) {
  const int first = large.dims.rank() - p.axes;
  int64_t plane_size = 1;
  for (int i = first; i < large.dims.rank(); ++i) plane_size *= large.dims[i];
  for (int64_t at = 0; at < Numel(small.dims); ++at) {
    const Checked<int64_t> o = small.Position(at);
    int64_t plane = 0;
    for (int i = 0; i < first; ++i) plane = plane * large.dims[i] + o[i];
    Checked<int64_t> places = {0};
    int64_t with_padding = 1, start = 0;
    for (int i = 0; i < p.axes; ++i) {
      const int64_t in = large.dims[first + i];
      const Line line = LineOf(p, i, o[first + i], in, small.dims[first + i]);
      Checked<int64_t> next;
      for (int64_t place : places) {
        for (int64_t step : line.inside) next.push_back(place * in + step);
      }
      places = next;
      with_padding *= line.length;
      start = start * in + line.first;
    }
    const int64_t divisor = p.divisor != 0 ? p.divisor : p.include ? with_padding : static_cast<int64_t>(places.size());
    visit(at, places, plane * plane_size, divisor, start);
  }
}

Pooling OfAverage(HostCall& call, int axes, const char* stride, const char* padding) {
  Pooling p;
  p.axes = axes;
  p.kernel = call.Ints("kernelSize");
  if (call.Has(stride)) p.stride = call.Ints(stride);
  p.padding = call.Ints(padding);
  p.ceil = call.Flag("ceilMode");
  p.include = call.Flag("countIncludePad");
  p.divisor = call.Int("divisorOverride");
  return p;
}
Pooling OfMaximum(HostCall& call, int axes) {
  Pooling p;
  p.axes = axes;
  p.kernel = call.Ints("kernelSize");
  p.stride = call.Ints("stride");
  p.padding = call.Ints("padding");
  p.dilation = call.Ints("dilation");
  p.ceil = call.Flag("ceilMode");
  return p;
}
Pooling Adaptive(int axes) {
  Pooling p;
  p.axes = axes;
  p.include = false;
  return p;
}

void Mean(const Pooling& p, const Host& x, Host& out) {
  ForWindows(p, x, out, [&](int64_t at, const Checked<int64_t>& places, int64_t base, int64_t divisor, int64_t) {
    Real sum = 0, size = 0;
    for (int64_t i : places) {
      sum += x.real(base + i);
      size += std::fabs(x.real(base + i));
    }
    out[at] = sum / static_cast<Real>(divisor);
    out.slack.push_back(size / std::fabs(static_cast<Real>(divisor)) * 0x1p-23L);
  });
}
void MeanGradient(const Pooling& p, const Host& dy, Host& out) {
  Checked<Real> size(out.size(), 0);
  for (Number& value : out.values) value = 0;
  ForWindows(p, out, dy, [&](int64_t at, const Checked<int64_t>& places, int64_t base, int64_t divisor, int64_t) {
    for (int64_t i : places) {
      const Real share = dy.real(at) / static_cast<Real>(divisor);
      out[base + i] += share;
      size[base + i] += std::fabs(share);
    }
  });
  for (Real s : size) out.slack.push_back(s * 0x1p-20L);
}
void Largest(const Pooling& p, const Host& x, Host& out, Host* indices) {
  ForWindows(p, x, out, [&](int64_t at, const Checked<int64_t>& places, int64_t base, int64_t, int64_t start) {
    Real most = -std::numeric_limits<Real>::infinity();
    int64_t where = start;
    for (int64_t i : places) {
      if (x.real(base + i) > most || std::isnan(x.real(base + i))) {
        most = x.real(base + i);
        where = i;
      }
    }
    out[at] = most;
    if (indices) (*indices)[at] = where;
  });
}
// Indices may be any: those outside the plane add to nothing.
void LargestGradient(int axes, const Host& dy, const Host& indices, Host& out) {
  const int first = out.dims.rank() - axes;
  int64_t large = 1, small = 1;
  for (int i = first; i < out.dims.rank(); ++i) {
    large *= out.dims[i];
    small *= dy.dims[i];
  }
  Checked<Real> size(out.size(), 0);
  for (Number& value : out.values) value = 0;
  for (int64_t at = 0; at < dy.size(); ++at) {
    const Real index = indices.real(at);
    if (index < 0 || index >= large) continue;
    const int64_t to = at / small * large + static_cast<int64_t>(index);
    out[to] += dy.real(at);
    size[to] += std::fabs(dy.real(at));
  }
  for (Real s : size) out.slack.push_back(s * 0x1p-20L);
}

constexpr DType kTypes[] = {DType::kF32, DType::kF16, DType::kBF16};

TestArg Tag(TestArg arg, int axes) {
  const int rank = arg.spec.tensor.rank();
  arg.spec.tensor.format = axes == 3 ? (rank == 5 ? Format::kNCDHW : Format::kNCHW) : (rank == 4 ? Format::kNCHW : Format::kNCL);
  return arg;
}

struct Case {
  Dims x;
  Pooling p;
};
const std::vector<Case>& Windows2() {
  static const auto* const cases = new std::vector<Case>{
      {{2, 3, 7, 8}, {2, {3, 2}, {2, 2}, {1, 1}, {1, 1}, false, true, 0}}, {{3, 9, 6}, {2, {3}, {}, {0}, {1}, true, false, 0}},
      {{1, 2, 6, 5}, {2, {2, 3}, {1, 2}, {1, 0}, {1}, true, true, 5}},     {{2, 2, 5, 5}, {2, {1}, {1}, {0}, {1}, false, true, 0}}};
  return *cases;
}
const std::vector<Case>& Windows3() {
  static const auto* const cases = new std::vector<Case>{
      {{2, 2, 5, 6, 4}, {3, {2, 3, 2}, {2, 1, 2}, {1, 1, 0}, {1, 1, 1}, true, false, 0}}, {{2, 4, 4, 5}, {3, {2}, {}, {0}, {1}, false, true, 3}}};
  return *cases;
}
Dims OutDims(const Case& c) {
  Dims out = c.x;
  const int first = c.x.rank() - c.p.axes;
  for (int i = 0; i < c.p.axes; ++i) out[first + i] = OutSize(c.p, i, c.x[first + i]);
  return out;
}

template <int kAxes>
void SampleAverage(Calls& calls) {
  for (DType t : kTypes) {
    for (const Case& c : kAxes == 2 ? Windows2() : Windows3()) {
      std::vector<TestArg> args = {Tag(In(t, c.x), kAxes), Ints(c.p.kernel), Ints(c.p.stride), Ints(c.p.padding), Flag(c.p.ceil),
                                   Flag(c.p.include), Int(c.p.divisor)};
      if (kAxes == 2) args.push_back(Int(0));
      args.push_back(Tag(Out(t, OutDims(c)), kAxes));
      calls.Add(std::move(args));
    }
  }
}
template <int kAxes>
void OracleAverage(HostCall& call) {
  Mean(OfAverage(call, kAxes, kAxes == 2 ? "strides" : "stride", kAxes == 2 ? "paddings" : "padding"), call.In("self"), call.Out("out"));
}
template <int kAxes>
void SampleAverageBackward(Calls& calls) {
  for (DType t : kTypes) {
    for (const Case& c : kAxes == 2 ? Windows2() : Windows3()) {
      std::vector<TestArg> args = {Tag(In(t, OutDims(c)), kAxes), Tag(In(t, c.x), kAxes), Ints(c.p.kernel), Ints(c.p.stride),
                                   Ints(c.p.padding), Flag(c.p.ceil), Flag(c.p.include), Int(c.p.divisor)};
      if (kAxes == 2) args.push_back(Int(0));
      args.push_back(Tag(Out(t, c.x), kAxes));
      calls.Add(std::move(args));
    }
  }
}
template <int kAxes>
void OracleAverageBackward(HostCall& call) {
  MeanGradient(OfAverage(call, kAxes, "stride", "padding"), call.In("gradOutput"), call.Out(kAxes == 2 ? "gradInput" : "output"));
}

template <int kAxes>
void SampleMaximum(Calls& calls, bool mask) {
  for (DType t : kTypes) {
    for (Case c : kAxes == 2 ? Windows2() : Windows3()) {
      for (const bool dilated : {false, true}) {
        if (dilated && (c.p.dilation.size() == 1 || mask)) continue;
        if (dilated) c.p.dilation = kAxes == 2 ? Checked<int64_t>{2, 3} : Checked<int64_t>{1, 2, 1};
        const Dims out = OutDims(c);
        Dims extra = out;
        if (mask) {
          const int64_t windows = out[out.rank() - 2] * out[out.rank() - 1];
          extra[out.rank() - 2] = One(c.p.kernel, 0, 1) * One(c.p.kernel, 1, 1);
          extra[out.rank() - 1] = ((windows + 15) / 16 + 1) * 32;
        }
        for (DType index : {DType::kI32, DType::kI64}) {
          calls.Add({Tag(In(t, c.x, t == DType::kF32 ? Hostile() : Whole(-3, 3)), kAxes), Ints(c.p.kernel), Ints(c.p.stride), Ints(c.p.padding),
                     Ints(c.p.dilation), Flag(c.p.ceil), Tag(Out(t, out), kAxes), Tag(Out(mask ? DType::kI8 : index, extra), kAxes)});
        }
      }
    }
  }
}
void SampleMaximum2(Calls& calls) { SampleMaximum<2>(calls, false); }
void SampleMaximum3(Calls& calls) { SampleMaximum<3>(calls, false); }
void SampleMask(Calls& calls) { SampleMaximum<2>(calls, true); }
template <int kAxes>
void OracleMaximum(HostCall& call) {
  Largest(OfMaximum(call, kAxes), call.In("self"), call.Out("out"), &call.Out("indices"));
}
// The bytes of a mask are INT32 indices, then zeros.
void OracleMask(HostCall& call) {
  const Pooling p = OfMaximum(call, 2);
  Host& out = call.Out("out");
  Host indices{DType::kI32, out.dims, Checked<Number>(out.size()), {}};
  Largest(p, call.In("self"), out, &indices);
  Host& mask = call.Out("indices");
  for (Number& byte : mask.values) byte = 0;
  if (One(p.kernel, 0, 1) * One(p.kernel, 1, 1) == 1) return;
  for (int64_t i = 0; i < indices.size(); ++i) {
    unsigned char bytes[4];
    EncodeNumber(DType::kI32, indices[i], bytes);
    for (int b = 0; b < 4; ++b) mask[4 * i + b] = static_cast<Real>(static_cast<int8_t>(bytes[b]));
  }
}
template <int kAxes>
void SampleMaximumBackward(Calls& calls) {
  for (DType t : kTypes) {
    for (const Case& c : kAxes == 2 ? Windows2() : Windows3()) {
      const Dims out = OutDims(c);
      for (DType index : {DType::kI32, DType::kI64}) {
        calls.Add({Tag(In(t, out), kAxes), Tag(In(t, c.x), kAxes), Tag(In(index, out, Whole(-2, 40)), kAxes), Ints(c.p.kernel), Ints(c.p.stride),
                   Ints(c.p.padding), Ints(c.p.dilation), Flag(c.p.ceil), Tag(Out(t, c.x), kAxes)});
      }
    }
  }
}
template <int kAxes>
void OracleMaximumBackward(HostCall& call) {
  LargestGradient(kAxes, call.In("gradOutput"), call.In("indices"), call.Out("gradInput"));
}
void SampleMaskBackward(Calls& calls) {
  for (DType t : kTypes) {
    for (const Case& c : Windows2()) {
      const Dims out = OutDims(c);
      Dims mask = out;
      mask[out.rank() - 2] = One(c.p.kernel, 0, 1) * One(c.p.kernel, 1, 1);
      mask[out.rank() - 1] = ((out[out.rank() - 2] * out[out.rank() - 1] + 15) / 16 + 1) * 32;
      Checked<Number> bytes;
      for (int64_t i = 0; i < Numel(mask) / 4; ++i) {
        for (int b = 0; b < 4; ++b) bytes.push_back(b == 0 ? static_cast<Real>(i * 7 % 25) : 0);
      }
      calls.Add({Tag(In(t, out), 2), Tag(In(t, c.x), 2), Tag(In(DType::kI8, mask, Given(bytes)), 2).Layout("dense"), Ints(c.p.kernel),
                 Ints(c.p.stride), Ints(c.p.padding), Ints(c.p.dilation), Flag(c.p.ceil), Tag(Out(t, c.x), 2)});
      calls.Add({Tag(In(t, out), 2), Tag(In(t, c.x), 2), Tag(In(DType::kI8, mask, Given(bytes)), 2).Layout("sliced"), Ints(c.p.kernel),
                 Ints(c.p.stride), Ints(c.p.padding), Ints(c.p.dilation), Flag(c.p.ceil), Tag(Out(t, c.x), 2)});
    }
  }
}
void OracleMaskBackward(HostCall& call) {
  const Host &dy = call.In("gradOutput"), &mask = call.In("indices");
  Host indices{DType::kI32, dy.dims, {}, {}};
  const Checked<int64_t> kernel = call.Ints("kernelSize");
  const bool one_tap = One(kernel, 0, 1) * One(kernel, 1, 1) == 1;
  Host& out = call.Out("gradInput");
  const int64_t plane = dy.dims[dy.dims.rank() - 1] * dy.dims[dy.dims.rank() - 2];
  for (int64_t i = 0; i < dy.size(); ++i) indices.values.push_back(one_tap ? static_cast<Real>(i % plane) : mask.real(4 * i));
  LargestGradient(2, dy, indices, out);
}

template <int kAxes>
std::vector<std::pair<Dims, Dims>> AdaptiveShapes() {
  if (kAxes == 2) return {{{2, 3, 7, 5}, {2, 3, 3, 4}}, {{3, 6, 6}, {3, 2, 3}}, {{1, 2, 3, 3}, {1, 2, 5, 1}}};
  return {{{2, 2, 5, 4, 6}, {2, 2, 2, 3, 4}}, {{2, 4, 4, 4}, {2, 1, 1, 1}}};
}
Checked<int64_t> LastOf(const Dims& dims, int axes) { return {dims.end() - axes, dims.end()}; }

template <int kAxes>
void SampleAdaptive(Calls& calls) {
  for (DType t : kTypes) {
    for (const auto& [x, y] : AdaptiveShapes<kAxes>()) {
      calls.Add({Tag(In(t, x), kAxes), Ints(LastOf(y, kAxes)), Tag(Out(t, y), kAxes)});
    }
  }
}
template <int kAxes>
void OracleAdaptive(HostCall& call) {
  Mean(Adaptive(kAxes), call.In("self"), call.Out("out"));
}
template <int kAxes>
void SampleAdaptiveBackward(Calls& calls) {
  for (DType t : kTypes) {
    for (const auto& [x, y] : AdaptiveShapes<kAxes>()) calls.Add({Tag(In(t, y), kAxes), Tag(In(t, x), kAxes), Tag(Out(t, x), kAxes)});
  }
}
template <int kAxes>
void OracleAdaptiveBackward(HostCall& call) {
  MeanGradient(Adaptive(kAxes), call.In("gradOutput"), call.Out("out"));
}
template <int kAxes>
void SampleAdaptiveMax(Calls& calls) {
  for (DType t : calls.TypesOf("self")) {
    for (const auto& [x, y] : AdaptiveShapes<kAxes>()) {
      for (DType index : calls.TypesOf("indicesOut")) {
        calls.Add({Tag(In(t, x), kAxes), Ints(LastOf(y, kAxes)), Tag(Out(t, y), kAxes), Tag(Out(index, y), kAxes)});
      }
    }
  }
}
template <int kAxes>
void OracleAdaptiveMax(HostCall& call) {
  Largest(Adaptive(kAxes), call.In("self"), call.Out("outputOut"), &call.Out("indicesOut"));
}
template <int kAxes>
void SampleAdaptiveMaxBackward(Calls& calls) {
  for (DType t : kTypes) {
    for (const auto& [x, y] : AdaptiveShapes<kAxes>()) {
      for (DType index : {DType::kI32, DType::kI64}) {
        calls.Add({Tag(In(t, y), kAxes), Tag(In(t, x), kAxes), Tag(In(index, y, Whole(0, 8)), kAxes), Tag(Out(t, x), kAxes)});
      }
    }
  }
}

// Paddings are those of the fronts, then of the ends, when there are four.
struct OnnxCase {
  Dims x, y;
  Checked<int64_t> kernel, stride, padding, dilation;
  int64_t ceil = 0;
};
void SampleOnnx(Calls& calls) {
  const OnnxCase cases[] = {{{2, 3, 7, 8}, {2, 3, 5, 7}, {3, 2}, {}, {}, {}},
                            {{2, 6, 5}, {2, 4, 3}, {3, 2}, {2, 2}, {1, 1, 2, 0}, {1, 1, 1, 1}, 1},
                            {{2, 2, 6, 5}, {2, 2, 3, 3}, {2}, {2}, {0}, {1}, 2},
                            {{0, 2, 4, 4}, {0, 2, 4, 4}, {1}, {1}, {0}, {1}, 0}};
  for (DType t : calls.TypesOf("self")) {
    for (const OnnxCase& c : cases) {
      calls.Add({Tag(In(t, c.x), 2), Ints(c.kernel), Ints(c.stride), Int(0), Ints(c.padding), Ints(c.dilation), Int(c.ceil), Tag(Out(t, c.y), 2)});
    }
  }
}
void OracleOnnx(HostCall& call) {
  const Host& x = call.In("self");
  Host& y = call.Out("out");
  const Checked<int64_t> pads = call.Ints("pads"), strides = call.Ints("strides"), kernel = call.Ints("kernelShape");
  const int row = x.dims.rank() - 2;
  for (int64_t at = 0; at < y.size(); ++at) {
    Checked<int64_t> place = y.Position(at);
    Real most = -std::numeric_limits<Real>::infinity();
    for (int64_t a = 0; a < One(kernel, 0, 1); ++a) {
      for (int64_t b = 0; b < One(kernel, 1, 1); ++b) {
        Checked<int64_t> from = place;
        from[row] = place[row] * One(strides, 0, 1) - One(pads, 0, 0) + a;
        from[row + 1] = place[row + 1] * One(strides, 1, 1) - One(pads, 1, 0) + b;
        if (from[row] < 0 || from[row] >= x.dims[row] || from[row + 1] < 0 || from[row + 1] >= x.dims[row + 1]) continue;
        most = std::max(most, x.real(x.Index(from)));
      }
    }
    y[at] = most;
  }
}

void SampleGlobal(Calls& calls) {
  for (DType t : calls.TypesOf("self")) {
    TestArg x = In(t, {2, 3, 4, 5}), y = Out(t, {2, 3, 1, 1});
    calls.Add({x, y});
    calls.Add({In(t, {2, 1, 3, 2, 2}), Out(t, {2, 1, 1, 1, 1})});
    calls.Add({In(t, {0, 1, 3, 2}), Out(t, {0, 1, 1, 1})});
  }
}
Pooling Whole(const Host& x) { return Adaptive(x.dims.rank() - 2); }
void OracleGlobalAverage(HostCall& call) { Mean(Whole(call.In("self")), call.In("self"), call.Out("out")); }
void OracleGlobalMax(HostCall& call) { Largest(Whole(call.In("self")), call.In("self"), call.Out("out"), nullptr); }

}  // namespace

std::span<const Subject> PoolSubjects() {
  static const Subject subjects[] = {
      {"aclnnAvgPool2d", SampleAverage<2>, OracleAverage<2>},
      {"aclnnAvgPool3d", SampleAverage<3>, OracleAverage<3>},
      {"aclnnAvgPool2dBackward", SampleAverageBackward<2>, OracleAverageBackward<2>},
      {"aclnnAvgPool3dBackward", SampleAverageBackward<3>, OracleAverageBackward<3>},
      {"aclnnMaxPool2dWithIndices", SampleMaximum2, OracleMaximum<2>, {.ulps = 0}},
      {"aclnnMaxPool3dWithArgmax", SampleMaximum3, OracleMaximum<3>, {.ulps = 0}},
      {"aclnnMaxPool2dWithMask", SampleMask, OracleMask, {.ulps = 0}},
      {"aclnnMaxPool2dWithIndicesBackward", SampleMaximumBackward<2>, OracleMaximumBackward<2>},
      {"aclnnMaxPool3dWithArgmaxBackward", SampleMaximumBackward<3>, OracleMaximumBackward<3>},
      {"aclnnMaxPool2dWithMaskBackward", SampleMaskBackward, OracleMaskBackward},
      {"aclnnAdaptiveAvgPool2d", SampleAdaptive<2>, OracleAdaptive<2>},
      {"aclnnAdaptiveAvgPool3d", SampleAdaptive<3>, OracleAdaptive<3>},
      {"aclnnAdaptiveAvgPool2dBackward", SampleAdaptiveBackward<2>, OracleAdaptiveBackward<2>},
      {"aclnnAdaptiveAvgPool3dBackward", SampleAdaptiveBackward<3>, OracleAdaptiveBackward<3>},
      {"aclnnAdaptiveMaxPool2d", SampleAdaptiveMax<2>, OracleAdaptiveMax<2>, {.ulps = 0}},
      {"aclnnAdaptiveMaxPool3d", SampleAdaptiveMax<3>, OracleAdaptiveMax<3>, {.ulps = 0}},
      {"aclnnAdaptiveMaxPool2dBackward", SampleAdaptiveMaxBackward<2>, OracleMaximumBackward<2>},
      {"aclnnAdaptiveMaxPool3dBackward", SampleAdaptiveMaxBackward<3>, OracleMaximumBackward<3>},
      {"aclnnMaxPool", SampleOnnx, OracleOnnx, {.ulps = 0}},
      {"aclnnGlobalAveragePool", SampleGlobal, OracleGlobalAverage},
      {"aclnnGlobalMaxPool", SampleGlobal, OracleGlobalMax, {.ulps = 0}}};
  return subjects;
}

}  // namespace anyacl::harness
