// SPDX-License-Identifier: Apache-2.0
// Copyright The AnyACL Authors
//
// Resizing by its definition: every output element is the sum over all positions of the image, each with the product of its
// weights on all axes. Positions are computed in the precision that decides between neighbours: FLOAT, of DOUBLE tensors DOUBLE.
#include <algorithm>
#include <cmath>
#include <limits>
#include <map>
#include <stdexcept>
#include <string>
#include <string_view>

#include "harness/family.h"

namespace anyacl::harness {
namespace {

enum class Way { kNearest, kExact, kLinear, kCubic, kLinearAA, kCubicAA };

struct Setup {
  int axes = 2;
  Way way = Way::kNearest;
  bool gradient = false, corners = false;
  Checked<double> scales;  // one per axis, 0: none
  bool wide = false;           // DOUBLE
};

using Line = std::map<int64_t, Real>;  // weights of positions

Real Hat(Real x) { return std::max(1 - std::fabs(x), Real(0)); }
Real Keys(Real x, Real a) {
  x = std::fabs(x);
  if (x < 1) return (a + 2) * x * x * x - (a + 3) * x * x + 1;
  return x < 2 ? a * (x * x * x - 5 * x * x + 8 * x - 4) : 0;
}

template <class T>
Line LineIn(const Setup& s, double scale, int64_t o, int64_t in, int64_t out) {
  const bool linear = s.way == Way::kLinear || s.way == Way::kLinearAA || s.way == Way::kCubicAA;
  Line line;
  if (in == out && linear) return {{o, 1}};
  T rate;
  if (s.corners) rate = out > 1 ? T(in - 1) / T(out - 1) : T(0);
  else rate = scale > 0 ? static_cast<T>(1 / scale) : T(in) / T(out);
  const T half = T(o) + T(0.5);
  const auto inside = [&](int64_t i) { return std::clamp<int64_t>(i, 0, in - 1); };
  switch (s.way) {
    case Way::kNearest:
      line[inside(static_cast<int64_t>(std::floor(static_cast<float>(T(o) * rate))))] = 1;
      break;
    case Way::kExact:
      line[inside(static_cast<int64_t>(std::floor(static_cast<float>(half * rate))))] = 1;
      break;
    case Way::kLinear:
    case Way::kCubic: {
      T x = s.corners ? T(o) * rate : half * rate - T(0.5);
      if (s.way == Way::kLinear) x = std::max(x, T(0));
      const int64_t first = std::min(static_cast<int64_t>(std::floor(x)), in - 1);
      const Real t = std::min<Real>(static_cast<Real>(x) - first, 1);
      for (int64_t i = first - 1; i <= first + 2; ++i) {
        const Real weight = s.way == Way::kLinear ? Hat(t - static_cast<Real>(i - first)) : Keys(t - static_cast<Real>(i - first), -0.75L);
        if (weight != 0) line[inside(i)] += weight;
      }
      break;
    }
    default: {
      const Real wide = std::max<Real>(rate, 1), support = wide * (s.way == Way::kLinearAA ? 1 : 2), centre = static_cast<Real>(rate) * half;
      const int64_t begin = std::max<int64_t>(static_cast<int64_t>(centre - support + 0.5L), 0);
      const int64_t end = std::min(static_cast<int64_t>(centre + support + 0.5L), in);
      Real sum = 0;
      for (int64_t i = begin; i < end; ++i) {
        const Real x = (i - centre + 0.5L) / wide;
        line[i] = s.way == Way::kLinearAA ? Hat(x) : Keys(x, -0.5L);
        sum += line[i];
      }
      for (auto& [i, weight] : line) weight /= sum;
    }
  }
  return line;
}

// Adds up `to` from `from`, and their magnitudes in the slack.
void Resize(const Setup& s, int first, const Host& from, Host& to) {
  const Dims &in = s.gradient ? to.dims : from.dims, &out = s.gradient ? from.dims : to.dims;
  Checked<Checked<Line>> lines(s.axes);
  for (int axis = 0; axis < s.axes; ++axis) {
    for (int64_t o = 0; o < out[first + axis]; ++o) {
      lines[axis].push_back(s.wide ? LineIn<double>(s, s.scales[axis], o, in[first + axis], out[first + axis])
                                   : LineIn<float>(s, s.scales[axis], o, in[first + axis], out[first + axis]));
    }
  }
  Checked<Real> size(to.size(), 0);
  for (Number& value : to.values) value = 0;
  const Host shape_of_out{DType::kF32, out, {}, {}}, shape_of_in{DType::kF32, in, {}, {}};
  for (int64_t at = 0; at < Numel(out); ++at) {
    const Checked<int64_t> place = shape_of_out.Position(at);
    std::vector<std::pair<Checked<int64_t>, Real>> terms = {{place, 1}};
    for (int axis = 0; axis < s.axes; ++axis) {
      std::vector<std::pair<Checked<int64_t>, Real>> more;
      for (const auto& [position, weight] : terms) {
        for (const auto& [i, w] : lines[axis][place[first + axis]]) {
          more.push_back({position, weight * w});
          more.back().first[first + axis] = i;
        }
      }
      terms = more;
    }
    for (const auto& [position, weight] : terms) {
      const int64_t source = shape_of_in.Index(position);
      const int64_t to_index = s.gradient ? source : at, from_index = s.gradient ? at : source;
      to[to_index] += weight * from.real(from_index);
      size[to_index] += std::fabs(from.real(from_index));
    }
  }
  const bool exact = (s.way == Way::kNearest || s.way == Way::kExact) && !s.gradient;
  for (int64_t i = 0; i < to.size(); ++i) {
    const Real value = to.real(i);
    const bool at_half = std::fabs(value - std::floor(value) - 0.5L) < 1e-3L;
    if (to.dtype == DType::kU8) to[i] = std::clamp(std::floor(value + 0.5L), Real(0), Real(255));
    to.slack.push_back(exact ? 0 : to.dtype == DType::kU8 ? (at_half ? 1 : 0) : size[i] * (s.wide ? 0x1p-48L : 0x1p-20L));
  }
}

Setup SetupOf(HostCall& call) {
  const std::string_view name = call.name();
  const auto has = [&](const char* part) { return name.find(part) != name.npos; };
  Setup s;
  s.axes = has("1d") ? 1 : has("2d") ? 2 : 3;
  const bool cubic = has("Bicubic"), linear = has("inear"), aa = has("AA");
  s.way = cubic ? (aa ? Way::kCubicAA : Way::kCubic) : linear ? (aa ? Way::kLinearAA : Way::kLinear) : has("Exact") ? Way::kExact : Way::kNearest;
  s.gradient = has("Backward") || has("Grad");
  s.corners = call.HasArg("alignCorners") && call.Flag("alignCorners");
  for (const char* scale : {"scales", "scaleL", "scalesD", "scalesH", "scalesW"}) {
    if (call.HasArg(scale)) s.scales.push_back(call.Real(scale));
  }
  s.scales.resize(s.axes, 0);
  return s;
}

// The names of the first and the last argument differ between entries.
const char* FirstArg(const Operator& op) { return op.contract.args()[0].name; }
const char* LastArg(const Operator& op) { return op.contract.args()[op.contract.args().size() - 1].name; }

void Oracle(HostCall& call) {
  Setup s = SetupOf(call);
  const Host& from = call.In(FirstArg(call.op()));
  const Format format = call.FormatOf(FirstArg(call.op()));
  s.wide = from.dtype == DType::kF64;
  Resize(s, format == Format::kNHWC || format == Format::kNDHWC ? 1 : 2, from, call.Out(LastArg(call.op())));
}

TestArg Tagged(TestArg arg, Format format) {
  arg.spec.tensor.format = format;
  return arg;
}

struct Case {
  Checked<int64_t> in, out;
  Checked<double> scales;
  bool corners = false;
  bool last = false;  // channels last
  bool contradicting = false;
};

std::vector<Case> CasesOf(int axes) {
  if (axes == 1) return {{{5}, {8}, {0}}, {{7}, {3}, {0}, true}, {{4}, {6}, {1.7}, false, false, true}, {{3}, {3}, {1.3}, false, false, true}, {{6}, {1}, {0}, true}};
  if (axes == 2) {
    return {{{4, 5}, {7, 3}, {0, 0}}, {{3, 4}, {6, 4}, {2, 1}}, {{4, 6}, {5, 9}, {0, 0}, true}, {{4, 4}, {6, 5}, {1.7, 1.3}, false, false, true},
            {{6, 7}, {2, 2}, {0, 0}, false, true}, {{2, 3}, {2, 3}, {0, 0}}};
  }
  return {{{2, 3, 4}, {3, 5, 2}, {0, 0, 0}}, {{3, 2, 3}, {4, 4, 3}, {0, 0, 0}, true}, {{2, 2, 4}, {3, 4, 6}, {1.7, 2, 1.5}, false, false, true},
          {{2, 3, 2}, {3, 3, 5}, {0, 0, 0}, false, true}};
}

Dims Shape(int64_t n, int64_t channels, const Checked<int64_t>& spatial, bool last) {
  Dims dims = {n};
  if (!last) dims.push_back(channels);
  for (int64_t size : spatial) dims.push_back(size);
  if (last) dims.push_back(channels);
  return dims;
}

Format TagOf(int axes, bool last) {
  if (last) return axes == 2 ? Format::kNHWC : Format::kNDHWC;
  return axes == 1 ? Format::kNCL : axes == 2 ? Format::kNCHW : Format::kNCDHW;
}

// Arguments in the order of all entries: tensor, sizes, corners, scales, result.
void Sample(Calls& calls) {
  const Operator& op = calls.op();
  const std::string_view name = op.contract.op();
  const auto has = [&](const char* part) { return name.find(part) != name.npos; };
  const int axes = has("1d") ? 1 : has("2d") ? 2 : 3;
  const bool gradient = has("Backward") || has("Grad");
  const bool plain_only = has("AA");
  const bool asks = has("Exact3d") && !gradient;
  for (DType t : calls.TypesOf(FirstArg(op))) {
    for (const Case& c : CasesOf(axes)) {
      if ((c.last && plain_only) || (asks && c.contradicting)) continue;
      for (const int64_t n : {2, 0}) {
        if (n == 0 && c.last) continue;
        const Dims in = Shape(n, 3, c.in, c.last), out = Shape(n, 3, c.out, c.last);
        const Dims in_size = Shape(n, 3, c.in, c.last && axes == 2);
        const Format tag = TagOf(axes, c.last);
        std::vector<TestArg> args = {Tagged(In(t, gradient ? out : in, t == DType::kU8 ? Whole(0, 255) : Values{}), tag), Ints(c.out)};
        if (gradient) args.push_back(Ints({in_size.begin(), in_size.end()}));
        size_t scale = 0;
        for (size_t i = args.size(); i + 1 < op.contract.args().size(); ++i) {
          if (op.contract.args()[i].kind == contract::ArgKind::kBool) args.push_back(Flag(c.corners));
          else args.push_back(RealArg(c.scales[scale++]));
        }
        args.push_back(Tagged(Out(t, gradient ? in : out), tag));
        calls.Add(std::move(args));
      }
    }
  }
}

// FLOAT gradients of 16-bit results.
void SampleBilinearBackward(Calls& calls) {
  Sample(calls);
  for (DType t : {DType::kF16, DType::kBF16}) {
    calls.Add({Tagged(In(DType::kF32, {2, 3, 7, 6}), Format::kNCHW), Ints({7, 6}), Ints({2, 3, 4, 5}), Flag(false), RealArg(0), RealArg(0),
               Tagged(Out(t, {2, 3, 4, 5}), Format::kNCHW)});
  }
}

void SampleResize(Calls& calls) {
  for (DType t : {DType::kF32, DType::kF16, DType::kBF16}) {
    for (const char* mode : {"nearest", "bilinear"}) {
      calls.Add({Tagged(In(t, {2, 3, 4, 5}), Format::kNCHW), Floats({1, 1, 1.75f, 0.6f}), Text(mode), Tagged(Out(t, {2, 3, 7, 3}), Format::kNCHW)});
      calls.Add({Tagged(In(t, {2, 4, 5, 3}), Format::kNHWC), Floats({1, 2, 2, 1}), Text(mode), Tagged(Out(t, {2, 8, 10, 3}), Format::kNHWC)});
    }
  }
}
void OracleResize(HostCall& call) {
  Setup s;
  s.way = call.Text("mode") == "nearest" ? Way::kNearest : Way::kLinear;
  s.scales = {0, 0};
  Resize(s, call.FormatOf("self") == Format::kNHWC ? 1 : 2, call.In("self"), call.Out("out"));
}

// --- sampling at the places of a grid ----------------------------------------------------------------------------------

struct Sampler {
  int64_t mode, padding;  // linear, nearest, cubic; zeros, border, reflection
  bool corners, volume;
};

// A weight and its derivative, per position of an axis. `lost`: all weights are NaN.
struct Weights {
  std::map<int64_t, std::pair<Real, Real>> at;
  bool lost = false;
};

// Mirrored until it is between low and high, clamped to the elements; the factor of its derivative.
std::pair<Real, Real> Inside(const Sampler& s, Real x, int64_t size) {
  const Real most = static_cast<Real>(size - 1), low = s.corners ? 0 : -0.5L, high = s.corners ? most : size - 0.5L;
  Real factor = 1;
  if (s.padding == 0) return {x, 1};
  if (s.padding == 2 && low == high) return {0, 0};
  if (s.padding == 2 && !std::isfinite(x)) x = std::nanl("");
  if (std::isnan(x)) return {s.volume ? most : 0, 0};
  while (s.padding == 2 && (x < low || x > high)) {
    x = x < low ? 2 * low - x : 2 * high - x;
    factor = -factor;
  }
  if (x <= 0) return {0, 0};
  return x >= most ? std::pair<Real, Real>{most, 0} : std::pair<Real, Real>{x, factor};
}

Weights WeightsOf(const Sampler& s, Real g, int64_t size) {
  Weights weights;
  const Real x = s.corners ? (g + 1) / 2 * (size - 1) : ((g + 1) * size - 1) / 2, rise = s.corners ? (size - 1) / 2.0L : size / 2.0L;
  if (s.mode == 2) {
    if (!std::isfinite(x)) return {{}, true};
    for (int64_t i = static_cast<int64_t>(std::floor(x)) - 1, n = 0; n < 4; ++i, ++n) {
      const auto [place, ignored] = Inside(s, static_cast<Real>(i), size);
      if (place < 0 || place > size - 1) continue;
      auto& [weight, slope] = weights.at[static_cast<int64_t>(place)];
      weight += Keys(x - i, -0.75L);
      slope += rise * (Keys(x - i + 1e-7L, -0.75L) - Keys(x - i - 1e-7L, -0.75L)) / 2e-7L;
    }
    return weights;
  }
  const auto [place, factor] = Inside(s, x, size);
  if (!std::isfinite(place)) return {{}, s.mode == 0 && !s.volume};
  if (s.mode == 1) {
    const Real nearest = std::nearbyint(place);
    if (nearest >= 0 && nearest <= size - 1) weights.at[static_cast<int64_t>(nearest)] = {1, 0};
    return weights;
  }
  for (int64_t i = 0; i < size; ++i) {
    if (place - i < 1 && i - place <= 1) weights.at[i] = {Hat(place - i), (i <= place ? -1 : 1) * factor * rise};
  }
  return weights;
}

// Visits (index in the image, index of the sample, index of the place, weight, its derivatives).
template <class Visit>
void ForSamples(const Sampler& s, const Host& image, const Host& grid, bool last, const Visit& visit) {
  const int axes = image.dims.rank() - 2, first = last ? 1 : 2;
  const int64_t channels = image.dims[last ? image.dims.rank() - 1 : 1], batch = image.dims[0];
  const int64_t places = batch == 0 ? 0 : Numel(grid.dims) / axes / batch;
  for (int64_t at = 0; at < batch * places; ++at) {
    std::vector<Weights> w;
    for (int axis = 0; axis < axes; ++axis) w.push_back(WeightsOf(s, grid.real(at * axes + axes - 1 - axis), image.dims[first + axis]));
    std::vector<std::pair<Checked<int64_t>, Checked<Real>>> terms = {{{}, Checked<Real>(axes + 1, 1)}};
    bool lost = false;
    for (int axis = 0; axis < axes; ++axis) {
      lost = lost || w[axis].lost;
      std::vector<std::pair<Checked<int64_t>, Checked<Real>>> more;
      for (const auto& [position, factors] : terms) {
        for (const auto& [i, pair] : w[axis].at) {
          more.push_back({position, factors});
          more.back().first.push_back(i);
          for (int k = 0; k <= axes; ++k) more.back().second[k] *= k == axes - axis ? pair.second : pair.first;
        }
      }
      terms = more;
    }
    for (int64_t c = 0; c < channels; ++c) {
      const int64_t n = at / places, place = at % places;
      const int64_t sample = last ? at * channels + c : (n * channels + c) * places + place;
      if (lost) visit(-1, sample, at, Checked<Real>(axes + 1, std::nanl("")));
      for (const auto& [position, factors] : terms) {
        if (lost) break;
        Checked<int64_t> full = {n};
        if (!last) full.push_back(c);
        full.insert(full.end(), position.begin(), position.end());
        if (last) full.push_back(c);
        visit(image.Index(full), sample, at, factors);
      }
    }
  }
}

Sampler SamplerOf(HostCall& call) {
  return {call.Int("interpolationMode"), call.Int("paddingMode"), call.Flag("alignCorners"), call.In("input").dims.rank() == 5};
}
bool IsLast(HostCall& call) { return call.In("input").dims.rank() == 5 && call.FormatOf("input") == Format::kNDHWC; }

// Whether FLOAT may take a place that is so near to an element, or to the middle of two, for one beyond it: then it is another
// neighbour, or another slope.
bool IsUnsure(const Sampler& s, const Host& image, const Host& grid, bool last, int64_t at) {
  const int axes = image.dims.rank() - 2;
  for (int axis = 0; axis < axes && image.dtype != DType::kF64; ++axis) {
    const Real g = grid.real(at * axes + axes - 1 - axis), size = static_cast<Real>(image.dims[(last ? 1 : 2) + axis]);
    const Real sum = g + 1, product = sum * (s.corners ? size - 1 : size), x = (s.corners ? product : product - 1) / 2;
    const auto exact = [](Real value) { return Rounded(DType::kF32, value).real() == value; };
    if (exact(sum) && exact(product) && exact(x)) continue;
    if (std::fabs(2 * x - std::nearbyint(2 * x)) <= (std::fabs(x) + size) * 0x1p-20L) return true;
  }
  return false;
}

// Bounds are for numbers up to 2 and images up to 16 wide: a coordinate is rounded where the image is as wide as that.
Real Growth(const Host& numbers, const Dims& image) {
  Real largest = 2;
  for (const Number& x : numbers.values) largest = std::fmax(largest, std::fabs(x.real()));
  const int64_t widest = image.rank() == 0 ? 0 : *std::max_element(image.begin() + 1, image.end());
  return largest / 2 * static_cast<Real>(std::max<int64_t>(widest, 16)) / 16;
}

void OracleGridSampler(HostCall& call) {
  const Host& image = call.In("input");
  Host& out = call.Out("out");
  for (Number& value : out.values) value = 0;
  ForSamples(SamplerOf(call), image, call.In("grid"), IsLast(call), [&](int64_t from, int64_t to, int64_t, const Checked<Real>& factors) {
    out[to] += (from < 0 ? 0 : image.real(from)) * factors[0];
  });
  out.slack.assign(out.size(), (image.dtype == DType::kF64 ? 0x1p-44L : 0x1p-16L) * Growth(image, image.dims));
  if (call.Int("interpolationMode") != 1) return;
  ForSamples(SamplerOf(call), image, call.In("grid"), IsLast(call), [&](int64_t, int64_t to, int64_t place, const Checked<Real>&) {
    if (IsUnsure(SamplerOf(call), image, call.In("grid"), IsLast(call), place)) out.slack[to] = std::numeric_limits<Real>::infinity();
  });
}

void OracleGridSamplerBackward(HostCall& call) {
  const Host &image = call.In("input"), &grid = call.In("grid"), &dy = call.In("gradOutput");
  const int axes = image.dims.rank() - 2;
  Host &dx = call.Out("inputGrad"), &dg = call.Out("gridGrad");
  const Checked<bool> mask = call.Bools("outputMask");
  Checked<int64_t> hits(image.size());
  Host to_image{dx.dtype, dx.dims, Checked<Number>(image.size()), {}}, to_grid{dg.dtype, dg.dims, Checked<Number>(grid.size()), {}};
  ForSamples(SamplerOf(call), image, grid, IsLast(call), [&](int64_t from, int64_t sample, int64_t place, const Checked<Real>& factors) {
    if (from < 0) throw std::invalid_argument("no sample of the gradient has coordinates that are no numbers");
    to_image[from] += dy.real(sample) * factors[0];
    ++hits[from];
    for (int axis = 0; axis < axes; ++axis) to_grid[place * axes + axis] += dy.real(sample) * image.real(from) * factors[axis + 1];
  });
  for (int64_t at = 0; at < grid.size() / std::max(axes, 1) && call.Int("interpolationMode") == 1; ++at) {
    if (IsUnsure(SamplerOf(call), image, grid, IsLast(call), at)) throw std::invalid_argument("a place lies in the middle of two elements");
  }
  if (call.Int("interpolationMode") == 1) to_grid.values.assign(grid.size(), 0);
  const bool wide = image.dtype == DType::kF64;
  const auto put = [](Host& to, const Host& from, bool wanted, auto&& slack) {
    to.values = wanted ? from.values : Checked<Number>();  // else it stays as it was
    for (int64_t i = 0; i < to.size(); ++i) to.slack.push_back(slack(i));
  };
  const Real growth = Growth(dy, image.dims), both = growth * Growth(image, {}) * std::fmax(1, static_cast<Real>(dy.size()) / grid.size());
  put(dx, to_image, mask[0], [&](int64_t i) { return (wide ? 0x1p-40L : 0x1p-13L) * growth * std::fmax(1, hits[i] / 16.0L); });
  put(dg, to_grid, mask[1], [&](int64_t i) {
    if (IsUnsure(SamplerOf(call), image, grid, IsLast(call), i / axes)) return std::numeric_limits<Real>::infinity();
    return (wide ? 0x1p-34L : 0x1p-11L) * both;
  });
}

template <bool kVolume, bool kGradient>
void SampleGridSampler(Calls& calls) {
  const Real inf = std::numeric_limits<Real>::infinity(), nan = std::nanl("");
  for (DType t : {DType::kF32, DType::kF16, DType::kBF16, DType::kF64}) {
    for (int64_t mode = 0; mode < (kVolume ? 2 : 3); ++mode) {
      for (int64_t padding = 0; padding < 3; ++padding) {
        for (const int kind : {0, 1, 2, 3}) {  // plain, channels last, infinite places, nothing
          const bool corners = (mode + padding + kind) % 2 == 1;
          if ((kind == 1 && !kVolume) || (kind == 2 && kGradient)) continue;
          Dims image = {2, 3, 4, 5}, grid = {2, 3, 2, 2}, out = {2, 3, 3, 2};
          if (kVolume) image = {2, 3, 3, 4, 2}, grid = {2, 2, 1, 3, 3}, out = {2, 3, 2, 1, 3};
          if (kVolume && kind == 1) image = {2, 3, 4, 2, 3}, out = {2, 2, 1, 3, 3};
          if (kind == 3) grid[1] = out[2] = 0;
          const Format tag = kVolume ? (kind == 1 ? Format::kNDHWC : Format::kNCDHW) : Format::kNCHW;
          Checked<Number> given;
          for (int64_t i = 0; i < Numel(grid); ++i) given.push_back(i % 4 == 0 ? nan : i % 4 == 2 ? inf : i % 8 == 5 ? -inf : 0.25L);
          const TestArg places = In(t, grid, kind == 2 ? Given(given) : Between(-1.7L, 1.7L));
          std::vector<TestArg> args = {Tagged(In(t, image), tag), places, Int(mode), Int(padding), Flag(corners)};
          if (kGradient) {
            args.insert(args.begin(), Tagged(In(t, out), tag));
            args.push_back(Bools({padding != 1 || kind == 1, padding != 2}));
            args.push_back(Tagged(Out(t, image), tag));
            args.push_back(Out(t, grid));
          } else {
            args.push_back(Tagged(Out(t, out), tag));
          }
          calls.Add(std::move(args));
        }
      }
    }
  }
}

}  // namespace

std::span<const Subject> ResizeSubjects() {
  static const Subject subjects[] = {{"aclnnUpsampleNearest1d", Sample, Oracle},
                                     {"aclnnUpsampleNearest1dV2", Sample, Oracle},
                                     {"aclnnUpsampleNearest2d", Sample, Oracle},
                                     {"aclnnUpsampleNearest2dV2", Sample, Oracle},
                                     {"aclnnUpsampleNearest3d", Sample, Oracle},
                                     {"aclnnUpsampleNearestExact1d", Sample, Oracle},
                                     {"aclnnUpsampleNearestExact2d", Sample, Oracle},
                                     {"aclnnUpsampleNearestExact3d", Sample, Oracle},
                                     {"aclnnUpsampleLinear1d", Sample, Oracle},
                                     {"aclnnUpsampleBilinear2d", Sample, Oracle},
                                     {"aclnnUpsampleBicubic2d", Sample, Oracle},
                                     {"aclnnUpsampleTrilinear3d", Sample, Oracle},
                                     {"aclnnUpsampleBilinear2dAA", Sample, Oracle},
                                     {"aclnnUpsampleBicubic2dAA", Sample, Oracle},
                                     {"aclnnUpsampleNearest1dBackward", Sample, Oracle},
                                     {"aclnnUpsampleNearest2dBackward", Sample, Oracle},
                                     {"aclnnUpsampleNearest3dBackward", Sample, Oracle},
                                     {"aclnnUpsampleNearestExact1dBackward", Sample, Oracle},
                                     {"aclnnUpsampleNearestExact2dBackward", Sample, Oracle},
                                     {"aclnnUpsampleNearestExact3dBackward", Sample, Oracle},
                                     {"aclnnUpsampleLinear1dBackward", Sample, Oracle},
                                     {"aclnnUpsampleBilinear2dBackward", SampleBilinearBackward, Oracle},
                                     {"aclnnUpsampleBilinear2dBackwardV2", Sample, Oracle},
                                     {"aclnnUpsampleBicubic2dBackward", Sample, Oracle},
                                     {"aclnnUpsampleTrilinear3dBackward", Sample, Oracle},
                                     {"aclnnUpsampleBilinear2dAABackward", Sample, Oracle},
                                     {"aclnnUpsampleBicubic2dAAGrad", Sample, Oracle},
                                     {"aclnnGridSampler2D", SampleGridSampler<false, false>, OracleGridSampler},
                                     {"aclnnGridSampler3D", SampleGridSampler<true, false>, OracleGridSampler},
                                     {"aclnnGridSampler2DBackward", SampleGridSampler<false, true>, OracleGridSamplerBackward, {.partial = true}},
                                     {"aclnnGridSampler3DBackward", SampleGridSampler<true, true>, OracleGridSamplerBackward, {.partial = true}},
                                     {"aclnnResize", SampleResize, OracleResize}};
  return subjects;
}

}  // namespace anyacl::harness
