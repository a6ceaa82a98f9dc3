// SPDX-License-Identifier: Apache-2.0
// Copyright The AnyACL Authors
//
// Convolution by its definition: every output element goes through every tap.
#include <array>
#include <cmath>
#include <functional>

#include "harness/family.h"

namespace anyacl::harness {
namespace {

struct Setup {
  Checked<int64_t> stride, padding, dilation, output_padding = {};
  bool transposed = false;
  int64_t groups = 1;
};

int64_t Before(const Setup& s, int axis, int axes) {
  return static_cast<int>(s.padding.size()) == axes ? s.padding[axis] : s.padding[2 * axis];
}

// Visits (image index, kernel tap index, output index) for every product of a convolution; image is the larger side (the output of a
// transposed one), all indices row-major in [n, c, ...], weight as stored.
void ForTaps(const Setup& s, const Host& image, const Host& weight, const Host& small,
             const std::function<void(int64_t, int64_t, int64_t)>& visit) {
  const int axes = image.dims.rank() - 2;
  const int64_t small_group = small.dims[1] / s.groups, image_group = image.dims[1] / s.groups;
  for (int64_t at = 0; at < Numel(small.dims); ++at) {
    const Checked<int64_t> p = small.Position(at);
    for (int64_t tap = 0; tap < Numel(weight.dims); ++tap) {
      const Checked<int64_t> q = weight.Position(tap);
      if (q[0] != p[1]) continue;
      Checked<int64_t> i = {p[0], p[1] / small_group * image_group + q[1]};
      bool inside = true;
      for (int axis = 0; axis < axes; ++axis) {
        i.push_back(p[2 + axis] * s.stride[axis] + q[2 + axis] * s.dilation[axis] - Before(s, axis, axes));
        inside = inside && i.back() >= 0 && i.back() < image.dims[2 + axis];
      }
      if (inside) visit(image.Index(i), tap, at);
    }
  }
}

struct Sum {
  Real value = 0, size = 0;
  int64_t terms = 0;
  void Add(Real term) {
    value += term;
    size += std::fabs(term);
    ++terms;
  }
};

void Put(Host& out, const Checked<Sum>& sums) {
  for (int64_t i = 0; i < out.size(); ++i) {
    out[i] = sums[i].value;
    out.slack.push_back(sums[i].size * 0x1p-24L * static_cast<Real>(sums[i].terms + 2));
  }
}

Setup SetupOf(HostCall& call) {
  return {call.Ints("stride"), call.Ints("padding"), call.Ints("dilation"), {}, call.Flag("transposed"), call.Int("groups")};
}

void OracleConvolution(HostCall& call) {
  const Setup s = SetupOf(call);
  const Host &x = call.In("input"), &w = call.In("weight");
  Host& out = call.Out("output");
  Checked<Sum> sums(out.size());
  if (call.Has("bias")) {
    for (int64_t i = 0; i < out.size(); ++i) sums[i].Add(call.In("bias").real(out.Position(i)[1]));
  }
  if (s.transposed) {
    ForTaps(s, out, w, x, [&](int64_t image, int64_t tap, int64_t small) { sums[image].Add(x.real(small) * w.real(tap)); });
  } else {
    ForTaps(s, x, w, out, [&](int64_t image, int64_t tap, int64_t small) { sums[small].Add(x.real(image) * w.real(tap)); });
  }
  Put(out, sums);
}

void OracleConvolutionBackward(HostCall& call) {
  const Setup s = SetupOf(call);
  const Host &dy = call.In("gradOutput"), &x = call.In("input"), &w = call.In("weight");
  Checked<Sum> dx(x.size()), dw(w.size()), db(dy.dims[1]);
  const Host &image = s.transposed ? dy : x, &small = s.transposed ? x : dy;
  ForTaps(s, image, w, small, [&](int64_t i, int64_t tap, int64_t p) {
    const int64_t of_x = s.transposed ? p : i, of_dy = s.transposed ? i : p;
    dx[of_x].Add(dy.real(of_dy) * w.real(tap));
    dw[tap].Add(dy.real(of_dy) * x.real(of_x));
  });
  for (int64_t i = 0; i < dy.size(); ++i) db[dy.Position(i)[1]].Add(dy.real(i));
  const Checked<bool> mask = call.Bools("outputMask");
  if (mask[0]) Put(call.Out("gradInput"), dx);
  if (mask[1]) Put(call.Out("gradWeight"), dw);
  if (mask[2]) Put(call.Out("gradBias"), db);
}

struct Shape {
  Dims x, w, y;
  Setup setup;
};

const std::vector<Shape>& Shapes() {
  static const auto* const shapes = new std::vector<Shape>{
      {{2, 4, 7, 6}, {6, 4, 3, 3}, {2, 6, 7, 6}, {{1, 1}, {1, 1}, {1, 1}, {0, 0}, false, 1}},
      {{2, 4, 9, 8}, {6, 2, 3, 2}, {2, 6, 4, 5}, {{2, 2}, {0, 1}, {1, 1}, {0, 0}, false, 2}},
      {{1, 3, 9, 9}, {2, 3, 3, 3}, {1, 2, 6, 4}, {{1, 2}, {0, 1, 1, 2}, {2, 2}, {0, 0}, false, 1}},
      {{2, 3, 10}, {4, 3, 4}, {2, 4, 5}, {{2}, {1}, {1}, {0}, false, 1}},
      {{1, 2, 4, 5, 4}, {3, 2, 2, 2, 2}, {1, 3, 3, 2, 3}, {{1, 2, 1}, {0, 0, 0}, {1, 1, 1}, {0, 0, 0}, false, 1}},
      {{2, 6, 4, 4}, {6, 1, 3, 3}, {2, 6, 2, 2}, {{1, 1}, {0, 0}, {1, 1}, {0, 0}, false, 6}},
      // strides and dilations with a common divisor, strides above the kernel, an image that only the padding of is read
      {{1, 2, 11, 9}, {3, 2, 3, 2}, {1, 3, 3, 3}, {{3, 4}, {1, 1}, {2, 2}, {0, 0}, false, 1}},
      {{2, 3, 5, 4}, {4, 3, 1, 1}, {2, 4, 3, 2}, {{2, 2}, {0, 0}, {1, 1}, {0, 0}, false, 1}},
      {{1, 1, 1}, {1, 1, 1}, {1, 1, 2}, {{2}, {1}, {1}, {0}, false, 1}},
      // transposed: w is [in, out / groups, ...]
      {{2, 4, 4, 5}, {4, 3, 3, 3}, {2, 6, 8, 11}, {{2, 2}, {1, 0}, {1, 1}, {1, 0}, true, 2}},
      {{1, 2, 6}, {2, 3, 3}, {1, 3, 8}, {{1}, {1}, {2}, {0}, true, 1}},
      {{1, 2, 3}, {2, 2, 2}, {1, 2, 9}, {{3}, {0}, {1}, {1}, true, 1}},
  };
  return *shapes;
}

Format TagOf(int rank) { return rank == 3 ? Format::kNCL : rank == 4 ? Format::kNCHW : Format::kNCDHW; }
TestArg Tagged(TestArg arg) {
  arg.spec.tensor.format = TagOf(arg.spec.tensor.rank());
  return arg;
}
TestArg Vector(DType t, int64_t n, bool is_out) { return is_out ? Out(t, {n}) : In(t, {n}); }

void SampleConvolution(Calls& calls) {
  for (DType t : {DType::kF32, DType::kF16, DType::kBF16}) {
    for (const Shape& s : Shapes()) {
      calls.Add({Tagged(In(t, s.x)), Tagged(In(t, s.w)), Vector(t, s.y[1], false), Ints(s.setup.stride), Ints(s.setup.padding),
                 Ints(s.setup.dilation), Flag(s.setup.transposed), Ints(s.setup.output_padding), Int(s.setup.groups), Tagged(Out(t, s.y)), Int(3)});
    }
    const Shape& s = Shapes()[0];
    calls.Add({Tagged(In(t, s.x)), Tagged(In(t, s.w)), Null(), Ints(s.setup.stride), Ints(s.setup.padding), Ints(s.setup.dilation),
               Flag(false), Null(), Int(1), Tagged(Out(t, s.y)), Int(0)});
    calls.Add({Tagged(In(t, {0, 4, 7, 6})), Tagged(In(t, s.w)), Null(), Ints({1, 1}), Ints({1, 1}), Ints({1, 1}), Flag(false), Null(), Int(1),
               Tagged(Out(t, {0, 6, 7, 6})), Int(0)});
  }
  calls.Add({Tagged(In(DType::kF32, {2, 5, 9, 8})), Tagged(In(DType::kF32, {20, 5, 3, 3})), Null(), Ints({1, 1}), Ints({1, 1}), Ints({1, 1}),
             Flag(false), Null(), Int(1), Tagged(Out(DType::kF32, {2, 20, 9, 8})), Int(0)});
}

void SampleConvolutionBackward(Calls& calls) {
  for (DType t : {DType::kF32, DType::kF16, DType::kBF16}) {
    for (const Shape& s : Shapes()) {
      calls.Add({Tagged(In(t, s.y)), Tagged(In(t, s.x)), Tagged(In(t, s.w)), Null(), Ints(s.setup.stride), Ints(s.setup.padding),
                 Ints(s.setup.dilation), Flag(s.setup.transposed), Ints(s.setup.output_padding), Int(s.setup.groups), Bools({true, true, true}),
                 Int(0), Tagged(Out(t, s.x)), Tagged(Out(t, s.w)), Vector(t, s.y[1], true)});
    }
    const Shape& s = Shapes()[1];
    calls.Add({Tagged(In(t, s.y)), Tagged(In(t, s.x)), Tagged(In(t, s.w)), Ints({6}), Ints(s.setup.stride), Ints(s.setup.padding),
               Ints(s.setup.dilation), Flag(false), Ints({0, 0}), Int(2), Bools({false, true, false}), Int(3), Null(), Tagged(Out(t, s.w)), Null()});
  }
}

// ---- one channel at a time ----

void OracleDepthwise(HostCall& call) {
  const Host &x = call.In("self"), &w = call.In("weight");
  Host& out = call.Out("out");
  if (x.size() == 0 || w.size() == 0) return;
  const Setup s = {call.Ints("stride"), call.Ints("padding"), call.Ints("dilation"), {}, false, x.dims[1]};
  Checked<Sum> sums(out.size());
  for (int64_t i = 0; i < out.size() && call.Has("bias"); ++i) sums[i].Add(call.In("bias").real(out.Position(i)[1]));
  ForTaps(s, x, w, out, [&](int64_t image, int64_t tap, int64_t small) { sums[small].Add(x.real(image) * w.real(tap)); });
  Put(out, sums);
}

void SampleDepthwise(Calls& calls) {
  for (DType t : {DType::kF32, DType::kF16, DType::kBF16}) {
    const auto add = [&](const Dims& x, const Dims& w, const Dims& y, const Setup& s, bool bias) {
      calls.Add({Tagged(In(t, x)), Tagged(In(t, w)), Ints({w[2], w[3]}), bias ? Vector(t, w[0], false) : Null(), Ints(s.stride), Ints(s.padding),
                 Ints(s.dilation), Tagged(Out(t, y)), Int(1)});
    };
    add({2, 3, 6, 5}, {6, 1, 3, 2}, {2, 6, 6, 6}, {{1, 1}, {1, 1}, {1, 1}}, true);
    add({1, 4, 9, 8}, {4, 1, 3, 3}, {1, 4, 4, 6}, {{2, 1}, {1, 1}, {2, 2}}, false);
    add({0, 4, 9, 8}, {4, 1, 3, 3}, {0, 4, 7, 6}, {{1, 1}, {0, 0}, {1, 1}}, true);
  }
}

// ---- time first ----

// Visits (output, input, weight) for every product.
void ForTimes(const Host& x, const Host& w, const Dims& out, int64_t pad, const std::function<void(int64_t, int64_t, int64_t)>& visit) {
  for (int64_t at = 0; at < Numel(out); ++at) {
    const int64_t o = at % out[2], b = at / out[2] % out[1], t = at / out[2] / out[1];
    for (int64_t k = 0; k < w.dims[0]; ++k) {
      const int64_t time = t + k - pad;
      for (int64_t c = 0; c < w.dims[1] && time >= 0 && time < x.dims[0]; ++c) visit(at, (time * x.dims[1] + b) * x.dims[2] + c, (k * w.dims[1] + c) * w.dims[2] + o);
    }
  }
}

void OracleTbc(HostCall& call) {
  const Host &x = call.In("self"), &w = call.In("weight"), &bias = call.In("bias");
  Host& out = call.Out("out");
  Checked<Sum> sums(out.size());
  for (int64_t i = 0; i < out.size(); ++i) sums[i].Add(bias.real(i % bias.size()));
  ForTimes(x, w, out.dims, call.Int("pad"), [&](int64_t y, int64_t i, int64_t k) { sums[y].Add(x.real(i) * w.real(k)); });
  Put(out, sums);
}

void OracleTbcBackward(HostCall& call) {
  const Host &dy = call.In("self"), &x = call.In("input"), &w = call.In("weight");
  Checked<Sum> dx(x.size()), dw(w.size()), db(w.dims[2]);
  ForTimes(x, w, dy.dims, call.Int("pad"), [&](int64_t y, int64_t i, int64_t k) {
    dx[i].Add(dy.real(y) * w.real(k));
    dw[k].Add(dy.real(y) * x.real(i));
  });
  for (int64_t i = 0; i < dy.size(); ++i) db[i % w.dims[2]].Add(dy.real(i));
  Put(call.Out("gradInput"), dx);
  Put(call.Out("gradWeight"), dw);
  Put(call.Out("gradBias"), db);
}

struct Times {
  Dims x, w;
  int64_t pad;
  Dims y() const { return {x[0] + 2 * pad - w[0] + 1, x[1], w[2]}; }
};
const Times kTimes[] = {{{7, 2, 3}, {3, 3, 4}, 0}, {{5, 3, 2}, {4, 2, 5}, 2}, {{1, 2, 3}, {3, 3, 2}, 1}, {{40, 1, 9}, {5, 9, 20}, 1}, {{0, 2, 3}, {2, 3, 4}, 1},
                        {{4, 2, 0}, {2, 0, 3}, 0}};

void SampleTbc(Calls& calls) {
  for (DType t : {DType::kF32, DType::kF16, DType::kBF16}) {
    for (const Times& s : kTimes) calls.Add({In(t, s.x), In(t, s.w), Vector(t, s.w[2], false), Int(s.pad), Out(t, s.y()), Int(0)});
  }
}

void SampleTbcBackward(Calls& calls) {
  for (DType t : {DType::kF32, DType::kF16, DType::kBF16}) {
    for (const Times& s : kTimes) {
      calls.Add({In(t, s.y()), In(t, s.x), In(t, s.w), Vector(t, s.w[2], false), Int(s.pad), Int(0), Out(t, s.x), Out(t, s.w), Vector(t, s.w[2], true)});
    }
  }
}

}  // namespace

std::span<const Subject> ConvSubjects() {
  static const Subject subjects[] = {{"aclnnConvolution", SampleConvolution, OracleConvolution},
                                     {"aclnnConvolutionBackward", SampleConvolutionBackward, OracleConvolutionBackward},
                                     {"aclnnConvDepthwise2d", SampleDepthwise, OracleDepthwise},
                                     {"aclnnConvTbc", SampleTbc, OracleTbc},
                                     {"aclnnConvTbcBackward", SampleTbcBackward, OracleTbcBackward}};
  return subjects;
}

}  // namespace anyacl::harness
