// SPDX-License-Identifier: Apache-2.0
// Copyright The AnyACL Authors
//
// Outer products.
#include <cmath>
#include <string_view>

#include "core/promotion.h"
#include "harness/family.h"

namespace anyacl::harness {
namespace {

bool IsWhole(DType t) { return IsInteger(t) || t == DType::kBool; }
Values Numbers(DType t) { return t == DType::kBool ? Whole(0, 1) : IsWhole(t) ? Whole(0, 20) : Between(-2, 2); }

void SampleGer(Calls& calls) {
  for (DType t : calls.TypesOf("self")) {
    calls.Add({In(t, {3}, Numbers(t)), In(t, {4}, Numbers(t)), Out(t, {3, 4})});
    calls.Add({In(t, {2}, Numbers(t)), In(DType::kF16, {5}), Out(IsComplex(t) ? DType::kC128 : DType::kF64, {2, 5})});
  }
  calls.Add({In(DType::kI32, {3}, Whole(0, 5)), In(DType::kI8, {2}, Whole(-5, 5)), Out(DType::kBF16, {3, 2})});
  calls.Add({In(DType::kF32, {0}), In(DType::kF32, {4}), Out(DType::kF32, {0, 4})});
  calls.Add({In(DType::kF32, {300}), In(DType::kF32, {200}), Out(DType::kF32, {300, 200})});
}
void OracleGer(HostCall& call) {
  const Host &a = call.In("self"), &b = call.In("vec2");
  Host& out = call.Out("out");
  const DType common = Promote(a.dtype, b.dtype);
  for (int64_t i = 0; i < out.size(); ++i) {
    const Number x = Rounded(common, a[i / b.size()]), y = Rounded(common, b[i % b.size()]);
    const Number value = IsComplex(common) || common == DType::kC32 ? x * y : Number(x.real() * y.real());
    out[i] = IsWhole(common) ? Rounded(common, Rounded(DType::kI64, value)) : value;
    const DType step = common == DType::kF64 || common == DType::kC128 ? DType::kF64 : DType::kF32;
    out.slack.push_back(IsWhole(common) || !std::isfinite(std::abs(value)) ? 0 : 2 * UlpOf(step, std::abs(value)));
  }
}

void SampleAddr(Calls& calls) {
  const bool in_place = std::string_view(calls.op().contract.op()) == "aclnnInplaceAddr";
  const auto add = [&](DType self, DType vec, const Dims& dims, TestArg beta, TestArg alpha, DType out, Dims all = {3, 4}) {
    std::vector<TestArg> args = {In(in_place ? out : self, in_place ? all : dims, Numbers(self)), In(vec, {all[0]}, Numbers(vec)), In(vec, {all[1]}, Numbers(vec)),
                                 std::move(beta), std::move(alpha)};
    if (!in_place) args.push_back(Out(out, all));
    calls.Add(std::move(args));
  };
  for (DType t : calls.TypesOf(in_place ? "selfRef" : "self")) {
    const DType kind = t == DType::kBool ? DType::kBool : IsWhole(t) ? DType::kI64 : DType::kF64;
    add(t, t, {3, 4}, Num(kind, 1), Num(kind, 1), t);
    add(t, t, {4}, Num(kind, t == DType::kBool ? 1 : 2), Num(kind, t == DType::kBool ? 0 : 3), t);
    add(t, t, {}, Num(kind, 0), Null(), t);
    if (t != DType::kBool) add(t, t, {3, 1}, Null(), Num(kind, IsWhole(t) ? 2 : 0.5L), t);
  }
  for (DType t : calls.TypesOf("vec1")) {
    if (!IsComplex(t)) add(DType::kF32, t, {3, 4}, Num(DType::kF64, 0.5L), Num(DType::kF64, -1.5L), DType::kF64);
  }
  add(DType::kC64, DType::kC64, {3, 4}, Complex(DType::kC128, Number(1, 2)), Complex(DType::kC128, Number(0, 1)), DType::kC64);
  if (!in_place) add(DType::kI32, DType::kI8, {3, 4}, Num(DType::kI64, 2), Num(DType::kI64, 3), DType::kF16);
  add(DType::kF32, DType::kF32, {0, 4}, Null(), Null(), DType::kF32, {0, 4});
  add(DType::kF32, DType::kF32, {200, 300}, Num(DType::kF64, 0.25L), Null(), DType::kF32, {200, 300});
}
void OracleAddr(HostCall& call) {
  const bool in_place = !call.HasArg("out");
  const Host self = call.In(in_place ? "selfRef" : "self"), &a = call.In("vec1"), &b = call.In("vec2");
  Host& out = call.Out(in_place ? "selfRef" : "out");
  const DType common = Promote(Promote(self.dtype, a.dtype), b.dtype);
  const auto factor = [&](const char* arg) { return call.Has(arg) ? Rounded(common, call.Scalar(arg)) : Number(1); };
  const Number beta = factor("betaOptional"), alpha = factor("alphaOptional");
  const DType step = common == DType::kF64 || common == DType::kC128 ? DType::kF64 : DType::kF32;
  for (int64_t i = 0; i < out.size(); ++i) {
    const Number product = alpha * Rounded(common, a[i / b.size()]) * Rounded(common, b[i % b.size()]);
    const Number start = beta == Number(0) ? Number(0) : beta * Rounded(common, self.Broadcast(out.dims, i));
    Number value = start + product;
    if (!IsComplex(common)) value = value.real();
    out[i] = IsWhole(common) ? Rounded(common, Rounded(DType::kI64, value)) : value;
    out.slack.push_back(IsWhole(common) ? 0 : 4 * UlpOf(step, std::abs(start) + std::abs(product)));
  }
}

}  // namespace

std::span<const Subject> OuterSubjects() {
  static const Subject subjects[] = {
      {"aclnnAddr", SampleAddr, OracleAddr, {.ulps = 0}},
      {"aclnnGer", SampleGer, OracleGer, {.ulps = 0}},
      {"aclnnInplaceAddr", SampleAddr, OracleAddr, {.ulps = 0}},
  };
  return subjects;
}

}  // namespace anyacl::harness
