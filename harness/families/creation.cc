// SPDX-License-Identifier: Apache-2.0
// Copyright The AnyACL Authors
#include <algorithm>
#include <cmath>
#include <iterator>

#include "harness/family.h"

namespace anyacl::harness {
namespace {

using At = Checked<int64_t>;

void SampleSelf(Calls& calls) {
  for (DType t : calls.TypesOf("selfRef")) {
    calls.Add({Out(t, {3, 5})});
    calls.Add({Out(t, {})});
    calls.Add({Out(t, {0, 2})});
  }
  calls.Add({Out(DType::kF32, {200, 300})});
}
template <int kValue>
void OracleConstant(HostCall& call) {
  for (Number& value : call.Out("selfRef").values) value = kValue;
}

void SampleFillScalar(Calls& calls) {
  for (DType t : calls.TypesOf("selfRef")) {
    for (const DType s : {DType::kI64, DType::kF64, DType::kBool, DType::kF32, DType::kC128}) {
      calls.Add({Out(t, {3, 5}), s == DType::kC128 ? Complex(s, Number(3, -2)) : Num(s, s == DType::kF64 ? 2.75L : 1)});
    }
    if (t != DType::kC32) calls.Add({Out(t, {}), Num(t, 1)});  // scalars of COMPLEX32 cannot be made
    calls.Add({Out(t, {2, 0}), Num(DType::kI64, 1)});
    if (!IsComplex(t) && t != DType::kC32) calls.Add({Out(t, {4}), Num(DType::kF64, -1.5L)});
  }
  calls.Add({Out(DType::kF32, {200, 300}), Num(DType::kF64, 0.1L)});
  calls.Add({Out(DType::kI64, {2}), Num(DType::kI64, 9007199254740993.0L)});
  calls.Add({Out(DType::kU64, {2}), Num(DType::kU64, 18446744073709551615.0L)});
  calls.Add({Out(DType::kF32, {2}), Num(DType::kF64, HUGE_VALL)});
  calls.Add({Out(DType::kF16, {2}), Num(DType::kF64, 1e6L)});
}
void OracleFillScalar(HostCall& call) {
  for (Number& value : call.Out("selfRef").values) value = call.Scalar("value");
}

void SampleFillTensor(Calls& calls) {
  for (DType t : calls.TypesOf("selfRef")) {
    calls.Add({Out(t, {3, 5}), In(t, {}, Between(0, 9))});
    calls.Add({Out(t, {4}), In(DType::kF32, {1}, Between(0, 9))});
  }
  for (DType t : calls.TypesOf("value")) calls.Add({Out(DType::kF32, {3, 5}), In(t, {1}, Between(-9, 9)).Layout("offset")});
  calls.Add({Out(DType::kF32, {200, 300}), In(DType::kF64, {})});
}
void OracleFillTensor(HostCall& call) {
  for (Number& value : call.Out("selfRef").values) value = call.In("value")[0];
}

void SampleFillDiagonal(Calls& calls) {
  for (DType t : calls.TypesOf("selfRef")) {
    calls.Add({In(t, {4, 3}), Num(DType::kI64, 1), Flag(false)});
    calls.Add({In(t, {9, 3}), Num(DType::kI64, 1), Flag(true)});
  }
  calls.Add({In(DType::kF32, {7, 3}), Num(DType::kF64, 2.5L), Flag(true)});
  calls.Add({In(DType::kF32, {3, 7}), Num(DType::kF64, 2.5L), Flag(true)});
  calls.Add({In(DType::kF32, {3, 3, 3}), Num(DType::kF64, 2.5L), Flag(true)});
  calls.Add({In(DType::kC64, {3, 3}), Complex(DType::kC128, Number(1, 2)), Flag(false)});
  calls.Add({In(DType::kU8, {3, 3}), Num(DType::kI64, -255), Flag(false)});
  calls.Add({In(DType::kF32, {3, 0}), Num(DType::kI64, 1), Flag(true)});
  calls.Add({In(DType::kF32, {300, 200}), Num(DType::kI64, 1), Flag(true)});
}
void OracleFillDiagonal(HostCall& call) {
  Host& self = call.Out("selfRef");
  int64_t step = self.dims.rank() == 2 ? self.dims[1] + 1 : 0;
  for (int64_t stride = 1, i = self.dims.rank() - 1; self.dims.rank() > 2 && i >= 0; stride *= self.dims[static_cast<int>(i)], --i) step += stride;
  const int64_t shortest = self.size() == 0 ? 0 : *std::min_element(self.dims.begin(), self.dims.end());
  for (int64_t i = 0, count = 0; i < self.size(); i += step, ++count) {
    if (count >= shortest && !(call.Flag("wrap") && self.dims.rank() == 2)) break;
    self[i] = call.Scalar("fillValue");
  }
}

void SampleEye(Calls& calls) {
  for (DType t : calls.TypesOf("out")) {
    calls.Add({Int(3), Int(5), Out(t, {3, 5})});
    calls.Add({Int(4), Int(2), Out(t, {4, 2})});
  }
  calls.Add({Int(0), Int(2), Out(DType::kF32, {0, 2})});
  calls.Add({Int(200), Int(300), Out(DType::kF32, {200, 300})});
}
void OracleEye(HostCall& call) {
  Host& out = call.Out("out");
  for (int64_t i = 0; i < out.size(); ++i) out[i] = out.Position(i)[0] == out.Position(i)[1] ? 1 : 0;
}

void SampleArange(Calls& calls) {
  for (DType t : calls.TypesOf("out")) {
    calls.Add({Num(DType::kI64, 2), Num(DType::kI64, 12), Num(DType::kI64, 3), Out(t, {4})});
    calls.Add({Num(DType::kF64, 0.5L), Num(DType::kF64, 3.7L), Num(DType::kF64, 1), Out(t, {4})});
    calls.Add({Num(DType::kI32, 5), Num(DType::kI32, -5), Num(DType::kI32, -2), Out(t, {5})});
  }
  for (DType t : {DType::kF32, DType::kF16, DType::kBF16, DType::kI8, DType::kU8, DType::kI16, DType::kBool}) {
    calls.Add({Num(t, 0), Num(t, 1), Num(t, 1), Out(DType::kF32, {1})});
  }
  calls.Add({Num(DType::kI64, 250), Num(DType::kI64, 260), Num(DType::kI64, 4), Out(DType::kU8, {3})});
  calls.Add({Num(DType::kI64, 0), Num(DType::kF64, 5), Num(DType::kF64, 1.5L), Out(DType::kI64, {5})});
  calls.Add({Num(DType::kF64, 0), Num(DType::kF64, 5000), Num(DType::kF64, 0.1L), Out(DType::kF32, {50000})});
  calls.Add({Num(DType::kF64, 0), Num(DType::kF64, 5000), Num(DType::kF64, 0.1L), Out(DType::kBF16, {2, 30})});
  calls.Add({Num(DType::kI64, 9007199254740993.0L), Num(DType::kI64, 9007199254740999.0L), Num(DType::kI64, 1), Out(DType::kI64, {6})});
}
void OracleArange(HostCall& call) {
  Host& out = call.Out("out");
  Real start = call.Scalar("start").real(), step = call.Scalar("step").real();
  if (IsInteger(out.dtype)) start = std::trunc(start), step = std::trunc(step);
  for (int64_t i = 0; i < out.size(); ++i) {
    out[i] = start + static_cast<Real>(i) * step;
    if (!IsInteger(out.dtype)) out.slack.push_back(2 * UlpOf(DType::kF64, std::fabs(start) + static_cast<Real>(i) * std::fabs(step)));
  }
}

// As the dtype of the result has it.
Number EndIn(DType t, Number value) { return IsInteger(t) ? Number(std::trunc(value.real())) : Rounded(t, value); }
Number OnLine(HostCall& call, const Host& out, int64_t i) {
  const Number a = EndIn(out.dtype, call.Scalar("start")), b = EndIn(out.dtype, call.Scalar("end"));
  return call.Int("steps") == 1 ? a : a + (b - a) * static_cast<Real>(i) / static_cast<Real>(call.Int("steps") - 1);
}
Real EndSize(HostCall& call) { return std::abs(call.Scalar("start")) + std::abs(call.Scalar("end")); }

void SampleLinspace(Calls& calls) {
  for (DType t : calls.TypesOf("out")) {
    calls.Add({Num(DType::kI64, 0), Num(DType::kI64, 10), Int(4), Out(t, {4})});
    calls.Add({Num(DType::kF64, 0.25L), Num(DType::kF64, 9.75L), Int(7), Out(t, {7})});
    calls.Add({Num(DType::kF32, 3), Num(DType::kF32, 5), Int(1), Out(t, {1})});
  }
  calls.Add({Num(DType::kI64, 10), Num(DType::kI64, 0), Int(5), Out(DType::kI32, {5})});
  calls.Add({Num(DType::kI64, 3), Num(DType::kI64, -4), Int(6), Out(DType::kI32, {6})});
  calls.Add({Complex(DType::kC64, Number(1, 2)), Complex(DType::kC64, Number(3, -4)), Int(5), Out(DType::kC64, {5})});
  calls.Add({Num(DType::kF64, 0.1L), Num(DType::kF64, 0.9L), Int(1001), Out(DType::kF16, {7, 143})});
  calls.Add({Num(DType::kF64, 0), Num(DType::kF64, 1), Int(0), Out(DType::kF32, {0})});
  calls.Add({Num(DType::kF64, -3), Num(DType::kF64, 10), Int(50000), Out(DType::kF32, {50000})});
}
void OracleLinspace(HostCall& call) {
  Host& out = call.Out("out");
  for (int64_t i = 0; i < out.size(); ++i) {
    out[i] = OnLine(call, out, i);
    if (!IsInteger(out.dtype)) out.slack.push_back(4 * UlpOf(DType::kF64, EndSize(call)));
  }
}

void SampleLogSpace(Calls& calls) {
  for (DType t : calls.TypesOf("result")) {
    calls.Add({Num(DType::kF64, 0), Num(DType::kF64, 2), Int(4), RealArg(2), Out(t, {4})});
    calls.Add({Num(DType::kF64, 0), Num(DType::kF64, 1), Int(2), RealArg(10), Out(t, {2})});
  }
  calls.Add({Num(DType::kF64, 0), Num(DType::kF64, 2.5L), Int(4), RealArg(10), Out(DType::kI32, {4})});
  calls.Add({Num(DType::kI64, 0), Num(DType::kI64, 2), Int(5), RealArg(-2), Out(DType::kF32, {5})});
  calls.Add({Num(DType::kI64, 0), Num(DType::kI64, 2), Int(3), RealArg(0), Out(DType::kF32, {3})});
  calls.Add({Num(DType::kF64, -1), Num(DType::kF64, 1), Int(40000), RealArg(3), Out(DType::kF32, {40000})});
}
void OracleLogSpace(HostCall& call) {
  Host& out = call.Out("result");
  const Real base = call.Real("base");
  for (int64_t i = 0; i < out.size(); ++i) {
    const Number exponent = OnLine(call, out, i);
    out[i] = IsComplex(out.dtype) ? std::pow(Number(base), exponent) : Number(std::pow(base, exponent.real()));
    if (IsInteger(out.dtype)) {
      out[i] = std::trunc(out[i].real() + 1e-9L);  // whole powers must not fall short
    } else {
      // The exponent's own rounding, magnified by the logarithm.
      const Real size = std::abs(out[i]);
      out.slack.push_back(std::isfinite(size) ? size * (8 + 8 * EndSize(call) * std::fabs(std::log(std::fabs(base) + 1e-30L))) * 0x1p-53L : 0);
    }
  }
}

void SampleOneHot(Calls& calls) {
  for (DType t : calls.TypesOf("out")) {
    calls.Add({In(DType::kI64, {2, 3}, Whole(0, 4)), Int(5), In(t, {1}, Given({7})).Layout("dense"), In(t, {1}, Given({2})).Layout("offset"), Int(-1), Out(t, {2, 3, 5})});
  }
  for (DType t : calls.TypesOf("self")) {
    calls.Add({In(t, {4, 2}, Whole(0, 6)), Int(4), In(DType::kF32, {2}), In(DType::kF32, {2}), Int(0), Out(DType::kF32, {4, 4, 2})});
  }
  calls.Add({In(DType::kI64, {3}, Whole(-3, 3)), Int(3), In(DType::kI32, {}), In(DType::kI32, {}), Int(1), Out(DType::kI32, {3, 3})});
  calls.Add({In(DType::kI64, {}, Whole(0, 2)), Int(3), In(DType::kI32, {}), In(DType::kI32, {}), Int(-1), Out(DType::kI32, {3})});
  calls.Add({In(DType::kI64, {0}), Int(3), In(DType::kI32, {}), In(DType::kI32, {}), Int(-1), Out(DType::kI32, {0, 3})});
  calls.Add({In(DType::kI64, {3000}, Whole(0, 15)), Int(16), In(DType::kF32, {}), In(DType::kF32, {}), Int(-1), Out(DType::kF32, {3000, 16})});
}
void OracleOneHot(HostCall& call) {
  Host& out = call.Out("out");
  const int64_t axis = call.Int("axis") == -1 ? out.dims.rank() - 1 : call.Int("axis");
  for (int64_t i = 0; i < out.size(); ++i) {
    At at = out.Position(i);
    const int64_t place = at[static_cast<size_t>(axis)];
    at.erase(at.begin() + axis);
    const Host& self = call.In("self");
    out[i] = call.In(self.real(self.Index(at)) == static_cast<Real>(place) ? "onValue" : "offValue")[0];
  }
}

}  // namespace

std::span<const Subject> CreationSubjects() {
  static const Subject subjects[] = {
      {"aclnnArange", SampleArange, OracleArange, {.ulps = 0}},
      {"aclnnEye", SampleEye, OracleEye, {.ulps = 0}},
      {"aclnnInplaceFillDiagonal", SampleFillDiagonal, OracleFillDiagonal, {.ulps = 0}},
      {"aclnnInplaceFillScalar", SampleFillScalar, OracleFillScalar, {.ulps = 0}},
      {"aclnnInplaceFillTensor", SampleFillTensor, OracleFillTensor, {.ulps = 0}},
      {"aclnnInplaceOne", SampleSelf, OracleConstant<1>, {.ulps = 0}},
      {"aclnnInplaceZero", SampleSelf, OracleConstant<0>, {.ulps = 0}},
      {"aclnnLinspace", SampleLinspace, OracleLinspace, {.ulps = 0}},
      {"aclnnLogSpace", SampleLogSpace, OracleLogSpace, {.ulps = 0}},
      {"aclnnOneHot", SampleOneHot, OracleOneHot, {.ulps = 0}},
      {"aclnnRange", SampleArange, OracleArange, {.ulps = 0}},
  };
  return subjects;
}

}  // namespace anyacl::harness
