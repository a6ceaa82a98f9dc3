// SPDX-License-Identifier: Apache-2.0
// Copyright The AnyACL Authors
//
// Rotary position embedding by its definition: every element of the result is a sum of two products.
#include <cmath>

#include "harness/family.h"

namespace anyacl::harness {
namespace {

constexpr DType F32 = DType::kF32, F16 = DType::kF16, BF16 = DType::kBF16;

// For an element of a result row: the element of x that its cosine multiplies, and the one that its sine does.
struct Term {
  int64_t with_cos, with_sin;
  int sign;
};
Term TermOf(int64_t mode, int64_t width, int64_t d) {
  const int64_t half = width / 2, quarter = width / 4;
  switch (mode) {
    case 0:
      return d < half ? Term{d, d + half, -1} : Term{d, d - half, 1};
    case 1:
      return d % 2 == 0 ? Term{d, d + 1, -1} : Term{d, d - 1, 1};
    case 2:
      return d % half < quarter ? Term{d, d + quarter, -1} : Term{d, d - quarter, 1};
    default:
      return d < half ? Term{2 * d, 2 * d + 1, -1} : Term{2 * (d - half) + 1, 2 * (d - half), 1};
  }
}

// Two products and their sum in FLOAT.
Real SlackOf(Real a, Real b) { return 0x1p-23L * (std::fabs(a) + std::fabs(b)); }

void PutRotated(const Host& x, const Host& cos, const Host& sin, int64_t mode, Host& out) {
  out.slack.assign(out.size(), 0);
  const int64_t width = x.dims[x.dims.rank() - 1];
  for (int64_t i = 0; i < out.size(); ++i) {
    const int64_t row = i - i % width;
    const Term term = TermOf(mode, width, i % width);
    const Real a = x.real(row + term.with_cos) * cos.Broadcast(x.dims, i).real();
    const Real b = static_cast<Real>(term.sign) * x.real(row + term.with_sin) * sin.Broadcast(x.dims, i).real();
    out[i] = a + b;
    out.slack[i] = SlackOf(a, b);
  }
}

void SampleForward(Calls& calls) {
  const auto add = [&](DType t, const Dims& x, const Dims& cos, int64_t mode, Values values = {}) {
    return &calls.Add({In(t, x, values), In(t, cos), In(t, cos), Int(mode), Out(t, x)});
  };
  for (DType t : {F32, F16, BF16}) {
    for (int64_t mode : {0, 1, 2, 3}) {
      add(t, {2, 3, 5, 8}, {1, 3, 1, 8}, mode);
      add(t, {2, 3, 5, 12}, {2, 1, 5, 12}, mode);
      add(t, {2, 3, 1, 4}, {2, 3, 1, 4}, mode);
      add(t, {2, 0, 5, 8}, {2, 1, 5, 8}, mode);
    }
    add(t, {2, 3, 4, 6}, {1, 1, 1, 6}, 0);
  }
  for (int64_t mode : {0, 1, 2, 3}) {
    // The example of the operator's page.
    calls.Add({In(F32, {1, 1, 1, 4}, Given({1, 2, 3, 4})), In(F32, {1, 1, 1, 4}, Given({.1L, .2L, .3L, .4L})),
               In(F32, {1, 1, 1, 4}, Given({.5L, .6L, .7L, .8L})), Int(mode), Out(F32, {1, 1, 1, 4})});
    add(F32, {2, 3, 5, 8}, {1, 3, 1, 8}, mode)->same = {{4, 0}};
  }
  add(F32, {4, 90, 8, 128}, {1, 90, 1, 128}, 0);
}

void OracleForward(HostCall& call) { PutRotated(call.In("x"), call.In("cos"), call.In("sin"), call.Int("mode"), call.Out("out")); }

void SampleInterleave(Calls& calls) {
  for (DType t : {F16, BF16}) {
    calls.Add({In(t, {2, 3, 5, 8}), In(t, {2, 1, 5, 8}), In(t, {2, 1, 5, 8}), Out(t, {2, 3, 5, 8})});
    calls.Add({In(t, {2, 3, 5, 64}), In(t, {2, 1, 1, 64}), In(t, {2, 1, 1, 64}), Out(t, {2, 3, 5, 64})}).same = {{3, 0}};
    calls.Add({In(t, {0, 3, 5, 8}), In(t, {0, 1, 5, 8}), In(t, {0, 1, 5, 8}), Out(t, {0, 3, 5, 8})});
  }
}
void OracleInterleave(HostCall& call) { PutRotated(call.In("x"), call.In("cos"), call.In("sin"), 3, call.Out("out")); }

void SampleBackward(Calls& calls) {
  const auto add = [&](DType t, const Dims& x, const Dims& cos, int64_t mode, bool with_x = true) {
    calls.Add({In(t, x), In(t, cos), In(t, cos), with_x ? In(t, x) : Null(), Int(mode), Out(t, x), Out(t, cos), Out(t, cos)});
  };
  for (DType t : {F32, F16, BF16}) {
    for (int64_t mode : {0, 1, 2, 3}) {
      add(t, {2, 3, 5, 8}, {1, 3, 1, 8}, mode);
      add(t, {2, 3, 5, 12}, {2, 1, 5, 12}, mode);
      add(t, {2, 3, 5, 4}, {1, 1, 1, 4}, mode);
    }
    add(t, {2, 3, 1, 4}, {2, 3, 1, 4}, 1, false);
    add(t, {0, 3, 1, 4}, {1, 3, 1, 4}, 1);
  }
  add(F32, {3, 40, 4, 256}, {1, 40, 1, 256}, 0);
}

void OracleBackward(HostCall& call) {
  const Host &dy = call.In("dy"), &cos = call.In("cos"), &sin = call.In("sin");
  Host &dx = call.Out("dxOut"), &dcos = call.Out("dcosOut"), &dsin = call.Out("dsinOut");
  const bool with_x = call.Has("xOptional");
  const int64_t width = dy.dims[3], mode = call.Int("mode");
  dx.slack.assign(dx.size(), 0);
  Checked<Real> cos_size(dcos.size()), sin_size(dsin.size());
  for (int64_t i = 0; i < dy.size(); ++i) {
    const int64_t row = i - i % width;
    const Term term = TermOf(mode, width, i % width);
    const Real sign = static_cast<Real>(term.sign), g = dy.real(i);
    const Real to_a = g * cos.Broadcast(dy.dims, i).real(), to_b = sign * g * sin.Broadcast(dy.dims, i).real();
    dx[row + term.with_cos] += to_a;
    dx[row + term.with_sin] += to_b;
    dx.slack[row + term.with_cos] += SlackOf(to_a, 0);
    dx.slack[row + term.with_sin] += SlackOf(to_b, 0);
    if (!with_x) continue;
    Checked<int64_t> at = dy.Position(i);
    for (int axis = 0; axis < 3; ++axis) at[axis] = cos.dims[axis] == 1 ? 0 : at[axis];
    const int64_t factor = cos.Index(at);
    const Host& x = call.In("xOptional");
    dcos[factor] += g * x.real(row + term.with_cos);
    dsin[factor] += sign * g * x.real(row + term.with_sin);
    cos_size[factor] += std::fabs(g * x.real(row + term.with_cos));
    sin_size[factor] += std::fabs(g * x.real(row + term.with_sin));
  }
  if (!with_x) {
    dcos.values.clear();  // stay as they were
    dsin.values.clear();
    return;
  }
  // Sums in DOUBLE, one rounding to FLOAT.
  for (const Real size : cos_size) dcos.slack.push_back(0x1p-40L * size);
  for (const Real size : sin_size) dsin.slack.push_back(0x1p-40L * size);
}

void SampleApply(Calls& calls) {
  const bool v2 = calls.op().contract.args().size() > 5;
  const auto add = [&](DType t, const Dims& query, const Dims& key, const Dims& cos, int64_t layout, const char* mode) {
    std::vector<TestArg> args = {In(t, query), In(t, key), In(t, cos), In(t, cos), Int(layout)};
    if (v2) args.push_back(Text(mode));
    calls.Add(std::move(args));
  };
  for (DType t : {F32, F16, BF16}) {
    for (const char* mode : {"half", "quarter", "interleave"}) {
      add(t, {2, 5, 4, 8}, {2, 5, 1, 8}, {2, 5, 1, 8}, 1, mode);
      add(t, {5, 2, 3, 8}, {5, 2, 2, 8}, {5, 2, 1, 8}, 2, mode);
      add(t, {2, 4, 5, 8}, {2, 2, 5, 8}, {2, 1, 5, 8}, 3, mode);
      if (v2) add(t, {7, 4, 8}, {7, 2, 8}, {7, 1, 8}, 4, mode);
      if (!v2) break;
    }
  }
}

void OracleApply(HostCall& call) {
  int64_t mode = 0;
  if (call.HasArg("rotaryMode")) mode = call.Text("rotaryMode") == "quarter" ? 2 : call.Text("rotaryMode") == "interleave" ? 1 : 0;
  for (const char* arg : {"queryRef", "keyRef"}) PutRotated(call.In(arg), call.In("cos"), call.In("sin"), mode, call.Out(arg));
}

void SampleCached(Calls& calls) {
  const auto add = [&](DType t, DType index, bool sections, bool neox, int64_t head, const Dims& cache, Values positions) {
    calls.Add({In(index, sections ? Dims{3, 5} : Dims{5}, positions), In(t, {5, 3 * head}), In(t, {5, head}), In(t, cache),
               sections ? Ints({1, 2, cache[1] / 2 - 3}) : Null(), Int(head), Flag(neox), Out(t, {5, 3 * head}), Out(t, {5, head})});
  };
  for (DType t : {F32, F16, BF16}) {
    for (const bool neox : {true, false}) {
      add(t, DType::kI64, false, neox, 8, {9, 8}, Whole(0, 8));
      add(t, DType::kI32, false, neox, 10, {9, 6}, Whole(0, 8));
      add(t, DType::kI64, true, neox, 12, {7, 8}, Whole(0, 6));
      add(t, DType::kI32, true, neox, 8, {7, 8}, Whole(-1, 7));  // some lie outside
    }
  }
  calls.Add({In(DType::kI64, {0}), In(F32, {0, 8}), In(F32, {0, 4}), In(F32, {3, 4}), Ints({}), Int(4), Flag(true), Out(F32, {0, 8}), Out(F32, {0, 4})});
}

void OracleCached(HostCall& call) {
  const Host &positions = call.In("positions"), &cache = call.In("cosSinCache");
  const int64_t rotated = cache.dims[1], head = call.Int("headSize");
  const bool neox = call.Flag("isNeoxStyle"), sections = positions.dims.rank() == 2;
  for (const auto& [in, to] : {std::pair{"queryIn", "queryOut"}, {"keyIn", "keyOut"}}) {
    const Host& x = call.In(in);
    Host& out = call.Out(to);
    const int64_t tokens = x.dims[0], width = x.dims[1];
    for (int64_t i = 0; i < x.size(); ++i) {
      const int64_t token = i / width, d = i % width % head, first = i - d;
      out[i] = x[i];
      out.slack.push_back(0);
      bool inside = true;
      for (int64_t s = 0; s < (sections ? 3 : 1); ++s) {
        const Real position = positions.real(s * tokens + token);
        inside = inside && position >= 0 && position < static_cast<Real>(cache.dims[0]);
      }
      if (d >= rotated || !inside) continue;
      const Term term = TermOf(neox ? 0 : 1, rotated, d);
      const int64_t column = neox ? d % (rotated / 2) : d / 2;
      int64_t section = 0;
      if (sections) {
        const Checked<int64_t>& widths = call.Ints("mropeSection");
        section = column < widths[0] ? 0 : column < widths[0] + widths[1] ? 1 : 2;
      }
      const int64_t row = static_cast<int64_t>(positions.real(section * tokens + token)) * rotated;
      const Real a = x.real(first + term.with_cos) * cache.real(row + column);
      const Real b = static_cast<Real>(term.sign) * x.real(first + term.with_sin) * cache.real(row + rotated / 2 + column);
      out[i] = a + b;
      out.slack.back() = SlackOf(a, b);
    }
  }
}

}  // namespace

std::span<const Subject> RotarySubjects() {
  static const Subject subjects[] = {
      {"aclnnRotaryPositionEmbedding", SampleForward, OracleForward},
      {"aclnnRotaryPositionEmbeddingGrad", SampleBackward, OracleBackward, {.partial = true}},
      {"aclnnApplyRotaryPosEmb", SampleApply, OracleApply},
      {"aclnnApplyRotaryPosEmbV2", SampleApply, OracleApply},
      {"aclnnInterleaveRope", SampleInterleave, OracleInterleave},
      {"aclnnRopeWithSinCosCache", SampleCached, OracleCached},
  };
  return subjects;
}

}  // namespace anyacl::harness
