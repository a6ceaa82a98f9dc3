// SPDX-License-Identifier: Apache-2.0
// Copyright The AnyACL Authors
//
// Oracles of element-wise mathematics, written from the operator page and PyTorch's results on a CPU.
#include <bit>
#include <cmath>
#include <limits>

#include "core/promotion.h"
#include "harness/elementwise.h"

namespace anyacl::harness {
namespace {

constexpr Real kNan = std::numeric_limits<Real>::quiet_NaN();
constexpr Real kInf = std::numeric_limits<Real>::infinity();
constexpr Real kPi = 3.141592653589793238462643383279502884L;
constexpr Real kLn2 = 0.693147180559945309417232121458176568L;

Real Largest(Real a, Real b) { return std::fmax(std::fabs(a), std::fabs(b)); }
Real Size(Number z) { return std::abs(z); }

// --- sums ----------------------------------------------------------------------------------------

Number Plus(const Point& p, int a, int b, int sign) {
  const Number alpha = p.s.empty() ? Number(1) : p.s[0];
  if (p.whole()) {
    return p.Whole(p.i(a) + sign * static_cast<__int128>(alpha.real()) * p.i(b));
  }
  const Number product = alpha == Number(1) ? p.x[b] : p.complex() ? alpha * p.x[b] : Number(alpha.real() * p.re(b));
  return sign > 0 ? p.x[a] + product : p.x[a] - product;
}
Real SumSize(const Point& p) { return Size(p.x[0]) + Size(p.x[1]) + (p.s.empty() ? 0 : Size(p.s[0] * p.x[0]) + Size(p.s[0] * p.x[1])); }

Number Times(const Point& p, Number a, Number b) {
  if (p.whole()) return p.Whole(static_cast<__int128>(a.real()) * static_cast<__int128>(b.real()));
  return p.complex() ? a * b : Number(a.real() * b.real());
}

// --- quotients -----------------------------------------------------------------------------------

Number Over(const Point& p, Number a, Number b) { return p.complex() ? a / b : Number(a.real() / b.real()); }

Number Truncated(const Point& p) {
  if (p.whole()) return p.i(1) == 0 ? p.Whole(-1) : p.Whole(p.i(0) / p.i(1));
  return std::trunc(p.Single(p.re(0) / p.re(1)));  // of the rounded quotient
}

// In the precision of the computed dtype, step by step as PyTorch.
Number FlooredReal(const Point& p) {
  const Real a = p.re(0), b = p.re(1);
  if (b == 0) return a / b;
  const Real r = std::fmod(a, b);
  Real q = p.Single(p.Single(a - r) / b);
  if (r != 0 && (b < 0) != (r < 0)) q = p.Single(q - 1);
  if (q == 0) return std::copysign(Real{0}, a / b);
  const Real floor = std::floor(q);
  return q - floor > 0.5 ? floor + 1 : floor;
}
Number Floored(const Point& p) {
  if (!p.whole()) return FlooredReal(p);
  const __int128 a = p.i(0), b = p.i(1);
  if (b == 0) return p.Whole(-1);
  return p.Whole(a / b - (a % b != 0 && (a < 0) != (b < 0)));
}
Number Fmod(const Point& p) {
  if (p.whole()) return p.i(1) == 0 ? p.Whole(-1) : p.Whole(p.i(0) % p.i(1));
  return std::fmod(p.re(0), p.re(1));
}
Number Remainder(const Point& p) {
  if (p.whole()) {
    if (p.i(1) == 0) return p.x[0];
    const __int128 r = p.i(0) % p.i(1);
    return p.Whole(r != 0 && (r < 0) != (p.i(1) < 0) ? r + p.i(1) : r);
  }
  const Real r = std::fmod(p.re(0), p.re(1));
  return r != 0 && (r < 0) != (p.re(1) < 0) ? r + p.re(1) : r;
}

Number ByMode(const Point& p) {
  const int64_t mode = p.call.Int("mode");
  return mode == 0 ? Over(p, p.x[0], p.x[1]) : mode == 1 ? Truncated(p) : Floored(p);
}
DType DivModType(const Point& p) {
  if (IsInteger(p.computed) && p.call.Int("mode") == 0) return DType::kF32;
  return p.computed;
}

// --- powers --------------------------------------------------------------------------------------

Number WholePower(const Point& p) {
  const __int128 base = p.i(0);
  __int128 exponent = p.i(1);
  if (exponent < 0) return base == 1 ? 1 : base == -1 ? (exponent % 2 == 0 ? 1 : -1) : 0;
  unsigned __int128 result = 1, square = static_cast<unsigned __int128>(base);
  for (; exponent != 0; exponent /= 2) {
    if (exponent % 2 != 0) result *= square;
    square *= square;
  }
  return p.Whole(static_cast<__int128>(result));
}

Number Power(const Point& p) {
  if (p.whole()) return WholePower(p);
  if (p.complex()) {
    if (p.x[0] == Number(0)) return p.x[1].real() > 0 ? Number(0) : Number(kNan, kNan);
    return std::exp(p.x[1] * std::log(p.x[0]));
  }
  return std::pow(p.re(0), p.re(1));
}
// The logarithm is rounded before it is multiplied.
Real PowerSize(const Point& p) {
  if (!p.complex() || p.x[0] == Number(0)) return 0;
  return 4 * Size(std::exp(p.x[1] * std::log(p.x[0]))) * (1 + Size(p.x[1] * std::log(p.x[0])));
}
Number PowerTensorScalar(const Point& p) {
  if (p.x[1] == Number(0)) return 1;
  if (p.whole()) return WholePower(p);
  if (!p.complex()) {
    if (p.re(1) == 0.5) return std::sqrt(p.re(0));
    if (p.re(1) == -0.5) return 1 / std::sqrt(p.re(0));
    if (p.re(1) == -2) return 1 / p.Single(p.re(0) * p.re(0));
  } else {
    if (p.x[1] == Number(1)) return p.x[0];
    if (p.x[1] == Number(2)) return p.x[0] * p.x[0];
    if (p.x[1] == Number(3)) return p.x[0] * p.x[0] * p.x[0];
    if (p.x[1] == Number(0.5)) return std::sqrt(p.x[0]);
  }
  return Power(p);
}
Number PowerScalarTensor(const Point& p) { return p.x[0] == Number(1) ? Number(1) : Power(p); }

// --- functions -----------------------------------------------------------------------------------

#define FUNCTION(name) [](const Point& p) { return p.complex() ? std::name(p.x[0]) : Number(std::name(p.re(0))); }
#define REAL_FUNCTION(name) [](const Point& p) { return Number(std::name(p.re(0))); }

Number Digamma(const Point& p) {
  Real x = p.re(0), sum = 0;
  if (x == 0) return std::copysign(kInf, -x);
  if (x < 0 && (x == std::floor(x) || std::isinf(x))) return kNan;
  if (x < 0) {
    sum = -kPi / std::tan(kPi * (x - std::trunc(x)));
    x = 1 - x;
  }
  for (; x < 30; x += 1) sum -= 1 / x;
  if (std::isinf(x)) return kInf;
  const Real y = 1 / (x * x);
  return sum + std::log(x) - 1 / (2 * x) - y * (Real{1} / 12 - y * (Real{1} / 120 - y * (Real{1} / 252 - y * (Real{1} / 240 - y / 132))));
}

Number LogSum(const Point& p, bool binary) {
  const Real a = p.re(0), b = p.re(1);
  if (std::isnan(a) || std::isnan(b)) return kNan;
  const Real most = std::fmax(a, b);
  if (std::isinf(most)) return most;
  const Real distance = std::fabs(a - b);
  return binary ? most + std::log1p(std::exp2(-distance)) / kLn2 : most + std::log1p(std::exp(-distance));
}

Number LogitOf(Real z) { return z == Real{0.5} ? Real{0} : std::log(z / (1 - z)); }
Number Logit(const Point& p) {
  const Real eps = p.Single(p.Value("eps")), x = p.re(0);
  if (!(eps >= 0)) return LogitOf(x);
  const Real high = p.Single(1 - eps);
  return LogitOf(x < eps ? eps : x > high ? high : x);
}
Number LogitGrad(const Point& p) {
  const Real eps = p.Single(p.Value("eps")), x = p.re(0), quotient = p.re(1) / (x * (1 - x));
  if (eps < 0) return x < 0 || x > 1 ? kNan : quotient;
  return x < eps || x > p.Single(1 - eps) ? 0 : quotient;
}

Number XLogY(const Point& p) {
  if (std::isnan(p.re(1))) return kNan;
  return p.re(0) == 0 ? 0 : p.re(0) * std::log(p.re(1));
}
Number Xlog1py(const Point& p) {
  if (std::isnan(p.re(1))) return kNan;
  return p.re(0) == 0 ? 0 : p.re(0) * std::log1p(p.re(1));
}

Number Expm1(const Point& p) {
  if (!p.complex()) return std::expm1(p.re(0));
  const Number z = p.x[0];
  const Real half = std::sin(z.imag() / 2);
  return {std::expm1(z.real()) * std::cos(z.imag()) - 2 * half * half, std::exp(z.real()) * std::sin(z.imag())};
}
Number Log1p(const Point& p) { return p.complex() ? std::log(Number(1) + p.x[0]) : Number(std::log1p(p.re(0))); }

// Pi as the computed dtype has it; the product is rounded, too.
Number Sinc(const Point& p) {
  if (p.re(0) == 0) return 1;
  const Real angle = p.Single(p.re(0) * p.Single(kPi));
  return std::sin(angle) / angle;
}

// --- comparisons ---------------------------------------------------------------------------------

// Rounded as a dtype's own comparison would see it: BOOL operands of logic are truths already.
Number IsClose(const Point& p) {
  const Real rtol = p.Single(p.Value("rtol")), atol = p.Single(p.Value("atol"));
  if (p.x[0] == p.x[1]) return 1;
  if (p.whole()) {
    const auto single = [](Real x) { return Rounded(DType::kF32, x).real(); };
    return single(std::fabs(single(p.re(0)) - single(p.re(1)))) <= single(atol + single(rtol * std::fabs(single(p.re(1)))));
  }
  const auto is_nan = [](Number z) { return std::isnan(z.real()) || std::isnan(z.imag()); };
  if (is_nan(p.x[0]) || is_nan(p.x[1])) return p.call.Flag("equalNan") && is_nan(p.x[0]) && is_nan(p.x[1]);
  const Real distance = p.Single(Size(p.x[0] - p.x[1]));
  return std::isfinite(distance) && distance <= p.Single(atol + p.Single(rtol * Size(p.x[1])));
}

Number Shift(const Point& p, bool left) {
  const int width = static_cast<int>(8 * SizeOf(p.computed));
  const bool is_signed = p.computed == DType::kI8 || p.computed == DType::kI16 || p.computed == DType::kI32 || p.computed == DType::kI64;
  const __int128 a = p.i(0), n = p.i(1);
  if (left) return n < 0 || n >= width ? 0 : p.Whole(a << static_cast<int>(n));
  if (n < 0 || n >= (is_signed ? width - 1 : width)) return a < 0 ? -1 : 0;
  return p.Whole(a >> static_cast<int>(n));
}
DType ShiftType(const Point& p) {
  const DType self = p.call.inputs[0][0].dtype;
  const auto args = p.call.op().contract.args();
  return args[1].is_tensor() ? p.computed : Promote(self, p.call.ScalarType(args[1].name));
}

// --- rounding ------------------------------------------------------------------------------------

Number RoundDecimals(const Point& p) {
  const int64_t decimals = p.call.Int("decimals");
  if (p.whole()) {
    if (decimals >= 0) return p.x[0];
    if (decimals < -20) return 0;
    __int128 power = 1;
    for (int64_t i = decimals; i < 0; ++i) power *= 10;
    if (static_cast<Real>(power) > std::ldexp(Real{1}, static_cast<int>(8 * SizeOf(p.computed)) - (p.computed != DType::kU8))) return 0;
    const __int128 a = p.i(0);
    __int128 quotient = a / power;
    const __int128 rest = a % power, twice = 2 * (rest < 0 ? -rest : rest);
    if (twice > power || (twice == power && quotient % 2 != 0)) quotient += a < 0 ? -1 : 1;
    return p.Whole(quotient * power);
  }
  const Real power = p.Single(std::pow(Real{10}, std::fabs(static_cast<Real>(decimals))));
  if (decimals == 0) return std::nearbyint(p.re(0));
  if (decimals > 0) return std::nearbyint(p.Single(p.re(0) * power)) / power;
  return std::nearbyint(p.Single(p.re(0) / power)) * power;
}

Number Frac(const Point& p) {
  if (p.whole()) return 0;
  const Real rest = p.re(0) - std::trunc(p.re(0));
  return std::isinf(p.re(0)) ? kNan : rest == 0 ? Real{0} : rest;
}

Number Sign(const Point& p) {
  if (!p.complex()) return p.re(0) > 0 ? 1 : p.re(0) < 0 ? -1 : 0;
  const Number z = p.x[0];
  if (!std::isfinite(z.real()) || !std::isfinite(z.imag())) return {kNan, kNan};
  return z == Number(0) ? Number(0) : z / std::abs(z);
}

Number NanToNum(const Point& p) {
  if (p.whole()) return p.x[0];
  const auto part = [&](Real x) {
    if (std::isnan(x)) return Rounded(p.computed, p.Value("nan")).real();
    if (!std::isinf(x)) return x;
    return Rounded(p.computed, p.Value(x > 0 ? "posinf" : "neginf")).real();
  };
  return p.complex() ? Number(part(p.x[0].real()), part(p.x[0].imag())) : Number(part(p.re(0)));
}

// --- bounds --------------------------------------------------------------------------------------

Real Most(Real a, Real b) { return std::isnan(a) || std::isnan(b) ? kNan : std::fmax(a, b); }
Real Least(Real a, Real b) { return std::isnan(a) || std::isnan(b) ? kNan : std::fmin(a, b); }
Number Clamp(const Point& p) {
  Real x = p.re(0);
  if (p.given[1]) x = Most(x, p.re(1));
  if (p.given[2]) x = Least(x, p.re(2));
  return x;
}

Number Lerp(const Point& p) {
  if (!p.complex()) {
    const Real s = p.re(0), e = p.re(1), w = p.re(2);
    return std::fabs(w) < 0.5 ? s + w * p.Single(e - s) : e - p.Single(e - s) * (1 - w);
  }
  const Number s = p.x[0], e = p.x[1], w = p.x[2];
  return std::abs(w) < 0.5 ? s + w * (e - s) : e - (e - s) * (Number(1) - w);
}
Real LerpSize(const Point& p) { return (Size(p.x[0]) + Size(p.x[1])) * (1 + Size(p.x[2])) * 2; }

Number Addcmul(const Point& p) {
  if (p.whole()) {
    const auto wrapped = [&](__int128 v) { return static_cast<__int128>(p.Whole(v).real()); };
    return p.Whole(p.i(0) + wrapped(wrapped(static_cast<__int128>(p.s[0].real()) * p.i(1)) * p.i(2)));
  }
  const Number product = p.complex() ? p.s[0] * p.x[1] * p.x[2] : Number(p.Single(p.s[0].real() * p.re(1)) * p.re(2));
  return p.x[0] + product;
}
Number Addcdiv(const Point& p) {
  if (p.whole()) {
    const __int128 product = static_cast<__int128>(p.Whole(static_cast<__int128>(p.s[0].real()) * p.i(1)).real());
    return p.Whole(p.i(0) + (p.i(2) == 0 ? -1 : product / p.i(2)));
  }
  return p.x[0] + (p.complex() ? p.s[0] * p.x[1] / p.x[2] : Number(p.Single(p.s[0].real() * p.re(1)) / p.re(2)));
}
Real AddcmulSize(const Point& p) { return Size(p.x[0]) + Size(p.s[0]) * Size(p.x[1]) * Size(p.x[2]); }
Real AddcdivSize(const Point& p) { return Size(p.x[0]) + Size(p.s[0] * p.x[1] / p.x[2]); }

// --- rows ----------------------------------------------------------------------------------------

const Checked<Real> kPowers = {2, 3, 1, 0, 0.5L, -0.5L, -1, -2, 1.7L, 4};
const std::vector<std::vector<TestArg>> kModes = {{Int(0)}, {Int(1)}, {Int(2)}};

std::vector<Elementwise> ArithmeticRows() {
  using enum Decides;
  const std::vector<std::string> alpha = {"alpha"}, value = {"value"};
  const auto add = [](const Point& p) { return Plus(p, 0, 1, 1); };
  const auto sub = [](const Point& p) { return Plus(p, 0, 1, -1); };
  const auto rsub = [](const Point& p) { return Plus(p, 1, 0, -1); };
  const auto mul = [](const Point& p) { return Times(p, p.x[0], p.x[1]); };
  const auto div = [](const Point& p) { return Over(p, p.x[0], p.x[1]); };
  const auto size_of_product = [](const Point& p) { return Size(p.x[0]) * Size(p.x[1]); };
  return {
      {.name = "Add", .of = add, .size = SumSize, .scalars = alpha},
      {.name = "Adds", .of = add, .size = SumSize, .scalars = alpha},
      {.name = "AddV3", .of = add, .size = SumSize, .scalars = alpha},
      {.name = "Sub", .of = sub, .size = SumSize, .scalars = alpha},
      {.name = "Subs", .of = sub, .size = SumSize, .scalars = alpha},
      {.name = "Rsub", .of = rsub, .size = SumSize, .scalars = alpha},
      {.name = "Rsubs", .of = rsub, .size = SumSize, .scalars = alpha},
      {.name = "Mul", .of = mul, .ulps = 1, .size = size_of_product, .keep_zero_dim = true},
      {.name = "Muls", .of = mul, .ulps = 1, .size = size_of_product, .keep_scalars = true},
      {.name = "Div", .of = div, .ulps = 2, .whole = DType::kF32, .keep_zero_dim = true},
      {.name = "Divs", .of = div, .ulps = 2, .whole = DType::kF32, .keep_scalars = true},
      {.name = "DivMod", .of = ByMode, .low = -9, .high = 9, .truth = DType::kF32, .keep_zero_dim = true, .attributes = kModes,
       .computed = DivModType},
      {.name = "DivMods", .of = ByMode, .low = -9, .high = 9, .truth = DType::kF32, .keep_scalars = true,
       .numbers = {2, -1, 0.1L, 3, 0}, .attributes = kModes, .computed = DivModType},
      {.name = "FloorDivide", .of = Floored, .low = -9, .high = 9, .truth = DType::kF32},
      {.name = "FloorDivides", .of = Floored, .low = -9, .high = 9, .truth = DType::kF32, .keep_scalars = true,
       .numbers = {2, -1, 0.1L, 3, 0}},
      {.name = "FmodTensor", .of = Fmod, .low = -9, .high = 9, .ulps = 0},
      {.name = "FmodScalar", .of = Fmod, .low = -9, .high = 9, .ulps = 0, .numbers = {3, -2, 0.7L, 0}},
      {.name = "RemainderTensorTensor", .of = Remainder, .low = -9, .high = 9, .ulps = 1},
      {.name = "RemainderTensorScalar", .of = Remainder, .low = -9, .high = 9, .ulps = 1, .numbers = {3, -2, 0.7L, 0}},
      {.name = "RemainderScalarTensor", .of = Remainder, .low = -9, .high = 9, .ulps = 1, .numbers = {3, -2, 0.7L, 0}},
      {.name = "PowTensorTensor", .of = Power, .low = -3, .high = 3, .ulps = 4, .size = PowerSize},
      {.name = "PowTensorScalar", .of = PowerTensorScalar, .ulps = 4, .size = PowerSize, .numbers = kPowers},
      {.name = "PowScalarTensor", .of = PowerScalarTensor, .low = -3, .high = 3, .ulps = 4, .size = PowerSize, .numbers = {2, 1, 0.3L, -3, 0}},
      {.name = "Atan2", .of = [](const Point& p) { return Number(std::atan2(p.re(0), p.re(1))); }, .whole = DType::kF32},
      {.name = "Maximum", .of = [](const Point& p) { return Number(Most(p.re(0), p.re(1))); }, .ulps = 0, .zero_dim = true},
      {.name = "Minimum", .of = [](const Point& p) { return Number(Least(p.re(0), p.re(1))); }, .ulps = 0, .zero_dim = true},
      {.name = "LogAddExp", .of = [](const Point& p) { return LogSum(p, false); }, .low = -9, .high = 9,
       .size = [](const Point& p) { return 1 + Largest(p.re(0), p.re(1)); }, .decides = kResult},
      {.name = "LogAddExp2", .of = [](const Point& p) { return LogSum(p, true); }, .low = -9, .high = 9,
       .size = [](const Point& p) { return 1 + Largest(p.re(0), p.re(1)); }, .decides = kResult},
      {.name = "XLogYTensor", .of = XLogY, .low = -0.5L, .high = 4, .whole = DType::kF32},
      {.name = "XLogYScalarSelf", .of = XLogY, .low = -0.5L, .high = 4, .whole = DType::kF32, .keep_scalars = true},
      {.name = "XLogYScalarOther", .of = XLogY, .low = -0.5L, .high = 4, .whole = DType::kF32, .keep_scalars = true},
      {.name = "Xlog1py", .of = Xlog1py, .low = -0.9L, .high = 4},
      {.name = "Gcd",
       .of = [](const Point& p) {
         __int128 a = p.i(0), b = p.i(1);
         while (b != 0) {
           const __int128 rest = a % b;
           a = b;
           b = rest;
         }
         return p.Whole(a < 0 ? -a : a);
       },
       .low = -60, .high = 60},
      {.name = "LeftShift", .of = [](const Point& p) { return Shift(p, true); }, .low = -3, .high = 12, .computed = ShiftType},
      {.name = "LeftShifts", .of = [](const Point& p) { return Shift(p, true); }, .low = -3, .high = 12,
       .numbers = {2, 7, 8, -1, 31, 40, 64}, .computed = ShiftType},
      {.name = "RightShift", .of = [](const Point& p) { return Shift(p, false); }, .low = -3, .high = 12, .computed = ShiftType},
      {.name = "Addcmul", .of = Addcmul, .size = AddcmulSize, .keep_scalars = true, .scalars = value},
      {.name = "Addcdiv", .of = Addcdiv, .low = 0.2L, .high = 4, .size = AddcdivSize, .keep_scalars = true, .scalars = value},
      {.name = "Lerp", .of = Lerp, .size = LerpSize},
      {.name = "Lerps", .of = Lerp, .size = LerpSize, .aside = 4, .keep_scalars = true, .numbers = {0.25L, 0.75L, -1, 2, 0.1L}},
  };
}

std::vector<Elementwise> BitRows() {
  std::vector<Elementwise> rows;
  const auto both = [](const Point& p) { return p.Whole(p.i(0) & p.i(1)); };
  const auto either = [](const Point& p) { return p.Whole(p.i(0) | p.i(1)); };
  const auto one = [](const Point& p) { return p.Whole(p.i(0) ^ p.i(1)); };
  const Checked<Real> numbers = {3, 12, -1, 0, 1};
  for (const char* name : {"BitwiseAndTensor", "BitwiseAndTensorOut", "BitwiseAndScalar"}) {
    rows.push_back({.name = name, .of = both, .low = -90, .high = 90, .numbers = numbers});
  }
  for (const char* name : {"BitwiseOrTensor", "BitwiseOrScalar"}) {
    rows.push_back({.name = name, .of = either, .low = -90, .high = 90, .numbers = numbers});
  }
  for (const char* name : {"BitwiseXorTensor", "BitwiseXorScalar"}) {
    rows.push_back({.name = name, .of = one, .low = -90, .high = 90, .numbers = numbers});
  }
  rows.push_back({.name = "BitwiseNot", .of = [](const Point& p) {
                    return p.computed == DType::kBool ? Number(p.i(0) == 0) : p.Whole(-1 - p.i(0));
                  }, .low = -90, .high = 90});
  return rows;
}

std::vector<Elementwise> ComparisonRows() {
  std::vector<Elementwise> rows;
  const struct {
    const char* name;
    Number (*of)(const Point& p);
  } kOrders[] = {
      {"Eq", [](const Point& p) { return Number(p.x[0] == p.x[1]); }},
      {"Ne", [](const Point& p) { return Number(p.x[0] != p.x[1]); }},
      {"Gt", [](const Point& p) { return Number(p.re(0) > p.re(1)); }},
      {"Ge", [](const Point& p) { return Number(p.re(0) >= p.re(1)); }},
      {"Lt", [](const Point& p) { return Number(p.re(0) < p.re(1)); }},
      {"Le", [](const Point& p) { return Number(p.re(0) <= p.re(1)); }},
  };
  static const std::string names[] = {"EqTensor", "NeTensor", "GtTensor", "GeTensor", "LtTensor", "LeTensor",
                                      "EqScalar", "NeScalar", "GtScalar", "GeScalar", "LtScalar", "LeScalar"};
  for (int i = 0; i < 6; ++i) {
    rows.push_back({.name = names[i].c_str(), .of = kOrders[i].of, .low = -3, .high = 3, .zero_dim = true});
    rows.push_back({.name = names[i + 6].c_str(), .of = kOrders[i].of, .low = -3, .high = 3, .numbers = {1, -1, 0.1L, 300, 0}});
  }
  using enum Decides;
  rows.push_back({.name = "LogicalAnd", .of = [](const Point& p) { return Number(p.re(0) != 0 && p.re(1) != 0); }, .decides = kTruth});
  rows.push_back({.name = "LogicalOr", .of = [](const Point& p) { return Number(p.re(0) != 0 || p.re(1) != 0); }, .decides = kTruth});
  rows.push_back({.name = "LogicalXor", .of = [](const Point& p) { return Number(p.re(0) != p.re(1)); }, .decides = kTruth});
  rows.push_back({.name = "LogicalNot", .of = [](const Point& p) { return Number(p.re(0) == 0); }, .decides = kTruth});
  rows.push_back({.name = "IsFinite", .of = [](const Point& p) {
    return Number(std::isfinite(p.x[0].real()) && std::isfinite(p.x[0].imag()));
  }});
  rows.push_back({.name = "IsPosInf", .of = [](const Point& p) { return Number(p.re(0) == kInf); }});
  rows.push_back({.name = "IsNegInf", .of = [](const Point& p) { return Number(p.re(0) == -kInf); }});
  rows.push_back({.name = "IsInf", .of = [](const Point& p) { return Number(std::isinf(p.re(0))); }});
  rows.push_back({.name = "Signbit", .of = [](const Point& p) {
    return Number(p.whole() ? p.re(0) < 0 : std::signbit(p.re(0)));
  }});
  rows.push_back({.name = "IsClose", .of = IsClose, .low = -1, .high = 1,
                  .attributes = {{RealArg(1e-5), RealArg(1e-8), Flag(false)}, {RealArg(0.5), RealArg(0.25), Flag(true)},
                                 {RealArg(0), RealArg(1), Flag(false)}, {RealArg(kInf), RealArg(0.5), Flag(true)}}});
  rows.push_back({.name = "IsInTensorScalar", .of = [](const Point& p) {
                    return Number((p.x[0] == p.x[1]) != p.call.Flag("invert"));
                  }, .low = -3, .high = 3, .numbers = {1, -1, 0, 2},
                  .attributes = {{Flag(false), Flag(false)}, {Flag(true), Flag(true)}}});
  return rows;
}

std::vector<Elementwise> FunctionRows() {
  const DType f32 = DType::kF32;
  const auto near_one = [](const Point&) { return Real{1}; };
  return {
      {.name = "Acos", .of = FUNCTION(acos), .low = -1.1L, .high = 1.1L, .whole = f32},
      {.name = "Acosh", .of = FUNCTION(acosh), .low = 0.9L, .high = 9, .whole = f32},
      {.name = "Asin", .of = FUNCTION(asin), .low = -1.1L, .high = 1.1L, .whole = f32},
      {.name = "Asinh", .of = FUNCTION(asinh), .low = -9, .high = 9, .whole = f32},
      {.name = "Atan", .of = FUNCTION(atan), .low = -9, .high = 9, .whole = f32},
      {.name = "Atanh", .of = FUNCTION(atanh), .low = -1.1L, .high = 1.1L, .whole = f32},
      {.name = "Cos", .of = FUNCTION(cos), .low = -20, .high = 20, .whole = f32},
      {.name = "Cosh", .of = FUNCTION(cosh), .low = -9, .high = 9, .whole = f32},
      {.name = "Erf", .of = REAL_FUNCTION(erf), .low = -4, .high = 4, .whole = f32},
      {.name = "Erfc", .of = REAL_FUNCTION(erfc), .low = -4, .high = 9, .whole = f32},
      {.name = "Exp", .of = FUNCTION(exp), .low = -20, .high = 20, .whole = f32},
      {.name = "Exp2", .of = [](const Point& p) { return p.complex() ? std::exp(p.x[0] * kLn2) : Number(std::exp2(p.re(0))); },
       .low = -20, .high = 20, .ulps = 3, .size = [](const Point& p) {
         return p.complex() ? 20 * std::exp2(p.x[0].real()) : Real{0};
       }, .whole = f32},
      {.name = "Expm1", .of = Expm1, .low = -3, .high = 3, .whole = f32},
      {.name = "Log", .of = FUNCTION(log), .low = -0.5L, .high = 9, .size = near_one, .whole = f32},
      {.name = "Log2", .of = [](const Point& p) { return p.complex() ? std::log(p.x[0]) / kLn2 : Number(std::log2(p.re(0))); },
       .low = -0.5L, .high = 9, .size = [](const Point& p) { return Real(p.complex()); }, .whole = f32},
      {.name = "Log10", .of = FUNCTION(log10), .low = -0.5L, .high = 9, .size = [](const Point& p) { return Real(p.complex()); },
       .whole = f32},
      {.name = "Log1p", .of = Log1p, .low = -1.2L, .high = 4, .size = [](const Point& p) { return Real(p.complex()); },
       .whole_as_result = true},
      {.name = "Sqrt", .of = FUNCTION(sqrt), .low = -0.5L, .high = 99, .whole = f32,
       .computed = [](const Point& p) { return p.call.inputs[0][0].dtype == DType::kI64 ? DType::kF64 : p.computed; }},
      {.name = "Rsqrt", .of = [](const Point& p) { return p.complex() ? Number(1) / std::sqrt(p.x[0]) : Number(1 / std::sqrt(p.re(0))); },
       .low = -0.5L, .high = 99, .whole_as_result = true},
      {.name = "Reciprocal", .of = [](const Point& p) { return p.complex() ? Number(1) / p.x[0] : Number(1 / p.re(0)); }, .whole = f32},
      {.name = "Sin", .of = FUNCTION(sin), .low = -20, .high = 20, .whole = f32},
      {.name = "Sinc", .of = Sinc, .low = -4, .high = 4, .size = near_one, .whole = f32},
      {.name = "Sinh", .of = FUNCTION(sinh), .low = -9, .high = 9, .whole_as_result = true},
      {.name = "Tan", .of = FUNCTION(tan), .low = -20, .high = 20, .whole = f32},
      {.name = "Tanh", .of = FUNCTION(tanh), .low = -4, .high = 4, .whole = f32},
      {.name = "Digamma", .of = Digamma, .low = -4, .high = 20, .ulps = 8,
       .size = [](const Point& p) { return 4 + std::fabs(1 / (p.re(0) - std::round(p.re(0)))); }},
      {.name = "Lgamma", .of = [](const Point& p) { return Number(std::lgamma(p.re(0))); }, .low = -4, .high = 20, .ulps = 4,
       .size = near_one},
      {.name = "TanhBackward", .of = [](const Point& p) { return p.complex() ? p.x[0] * std::conj(Number(1) - p.x[1] * p.x[1])
                                                                         : Number(p.re(0) * (1 - p.re(1) * p.re(1))); },
       .low = -1, .high = 1, .size = [](const Point& p) { return Size(p.x[0]) * (1 + Size(p.x[1]) * Size(p.x[1])); }},
      {.name = "Logit", .of = Logit, .low = -0.1L, .high = 1.1L, .size = [](const Point& p) {
         return p.Value("eps") >= 0 ? Real{1} : Real{0};
       }, .attributes = {{RealArg(-1)}, {RealArg(0)}, {RealArg(0.3)}, {RealArg(1e-6)}, {RealArg(1.5)}}},
      {.name = "LogitGrad", .of = LogitGrad, .low = -0.1L, .high = 1.1L, .ulps = 4,
       .attributes = {{RealArg(-1)}, {RealArg(0)}, {RealArg(0.3)}}},
  };
}

std::vector<Elementwise> SelectionRows() {
  using enum Decides;
  std::vector<std::vector<TestArg>> targets;
  for (int dtype = 0; dtype < 64; ++dtype) targets.push_back({Int(dtype)});
  const std::vector<std::vector<TestArg>> replaced = {{RealArg(7), RealArg(1e30f), RealArg(-3)},
                                                      {RealArg(kInf), RealArg(kInf), RealArg(-kInf)}};
  const Checked<unsigned> bounds = {0, 2, 4};
  return {
      {.name = "Neg", .of = [](const Point& p) { return p.whole() ? p.Whole(-p.i(0)) : -p.x[0]; }, .ulps = 0},
      {.name = "Abs", .of = [](const Point& p) {
         return p.whole() ? p.Whole(p.i(0) < 0 ? -p.i(0) : p.i(0)) : p.complex() ? Number(std::abs(p.x[0])) : Number(std::fabs(p.re(0)));
       }, .ulps = 1},
      {.name = "Ceil", .of = REAL_FUNCTION(ceil), .low = -9, .high = 9, .ulps = 0},
      {.name = "Floor", .of = REAL_FUNCTION(floor), .low = -9, .high = 9, .ulps = 0},
      {.name = "Trunc", .of = REAL_FUNCTION(trunc), .low = -9, .high = 9, .ulps = 0},
      {.name = "Round", .of = REAL_FUNCTION(nearbyint), .low = -9, .high = 9, .ulps = 0},
      {.name = "Frac", .of = Frac, .low = -9, .high = 9, .ulps = 0},
      {.name = "RoundDecimals", .of = RoundDecimals, .low = -2000, .high = 2000, .ulps = 1,
       .attributes = {{Int(0)}, {Int(2)}, {Int(-2)}, {Int(-1)}, {Int(40)}, {Int(-40)}}},
      {.name = "Sign", .of = Sign, .ulps = 1},
      {.name = "Square", .of = [](const Point& p) { return Times(p, p.x[0], p.x[0]); }, .ulps = 1},
      {.name = "NanToNum", .of = NanToNum, .ulps = 0, .attributes = replaced},
      {.name = "AngleV2", .of = [](const Point& p) {
         if (p.complex()) return Number(std::atan2(p.x[0].imag(), p.x[0].real()));
         return std::isnan(p.re(0)) ? Number(kNan) : Number(p.re(0) < 0 ? kPi : 0);
       }, .whole = DType::kF32},
      {.name = "Real", .of = [](const Point& p) { return Number(p.x[0].real()); }, .ulps = 0},
      {.name = "Complex", .of = [](const Point& p) { return Number(p.re(0), p.re(1)); }, .ulps = 0, .decides = kResult},
      {.name = "Polar", .of = [](const Point& p) { return std::polar(Real{1}, p.re(1)) * p.re(0); }, .decides = kResult,
       .hostile = false},
      {.name = "Clamp", .of = Clamp, .low = -9, .high = 9, .ulps = 0, .numbers = {-2, 3, 1, 5, 300}, .absent = bounds},
      {.name = "ClampMin", .of = [](const Point& p) { return Number(Most(p.re(0), p.re(1))); }, .low = -9, .high = 9, .ulps = 0},
      {.name = "ClampMax", .of = [](const Point& p) { return Number(Least(p.re(0), p.re(1))); }, .low = -9, .high = 9, .ulps = 0},
      {.name = "ClampTensor", .of = Clamp, .low = -9, .high = 9, .ulps = 0, .absent = bounds},
      {.name = "ClampMinTensor", .of = [](const Point& p) { return Number(Most(p.re(0), p.re(1))); }, .low = -9, .high = 9, .ulps = 0},
      {.name = "ClampMaxTensor", .of = [](const Point& p) { return Number(Least(p.re(0), p.re(1))); }, .low = -9, .high = 9, .ulps = 0},
      {.name = "Hardtanh", .of = [](const Point& p) { return Number(Least(Most(p.re(0), p.re(1)), p.re(2))); }, .low = -9, .high = 9,
       .ulps = 0, .aside = 6, .numbers = {-2.7L, 3, 1, 5}},
      {.name = "SWhere", .of = [](const Point& p) { return p.re(0) != 0 ? p.x[1] : p.x[2]; }, .ulps = 0, .aside = 1, .keep = 1},
      {.name = "MaskedFillScalar", .of = [](const Point& p) { return p.re(1) != 0 ? p.x[2] : p.x[0]; }, .ulps = 0,
       .decides = kFirst, .aside = 6},
      {.name = "MaskedFillTensor", .of = [](const Point& p) { return p.re(1) != 0 ? p.x[2] : p.x[0]; }, .ulps = 0,
       .decides = kFirst, .aside = 6, .dimless = 4, .hostile = false},
      {.name = "MaskedScale", .of = [](const Point& p) { return Number(p.Single(p.re(0) * p.re(1)) * p.Value("scale")); },
       .decides = kFloat, .attributes = {{RealArg(2)}, {RealArg(-0.25)}}},
      {.name = "Cast", .of = [](const Point& p) { return p.x[0]; }, .low = -300, .high = 300, .ulps = 0, .attributes = targets,
       .hostile = false},
  };
}

// --- one value of many ---------------------------------------------------------------------------

void SampleIsIn(Calls& calls) {
  for (DType t : calls.TypesOf("testElements")) {
    const bool with_floats_only = t == DType::kU16 || t == DType::kU32 || t == DType::kU64;
    for (DType s : {DType::kF64, DType::kI64, DType::kF32, DType::kI32}) {
      if (with_floats_only && !IsFloating(s)) continue;
      for (const bool invert : {false, true}) {
        for (const Real number : {Real{1}, Real{4}, Real{0.1L}}) {
          calls.Add({Num(s, number), In(t, {2, 3}, Given({0, 1, 2, 3, 1, 0.1L})), Flag(invert), Flag(invert), Out(DType::kBool, {})});
          calls.Add({Num(s, number), In(t, {5, 3}, Given({0, 1, 2, 3, 1, 0.1L})), Flag(false), Flag(invert), Out(DType::kBool, {})});
        }
        calls.Add({Num(s, 1), In(t, {0, 3}), Flag(false), Flag(invert), Out(DType::kBool, {})});
      }
    }
  }
  calls.Add({Num(DType::kF64, kNan), In(DType::kF32, {3}, Given({kNan})), Flag(false), Flag(false), Out(DType::kBool, {})});
}

// Ten elements and more are compared with a number of its own dtype.
void OracleIsIn(HostCall& call) {
  const Host& elements = call.In("testElements");
  const DType scalar = call.ScalarType("element");
  const DType computed = elements.size() >= 10 ? Promote(elements.dtype, scalar) : PromoteScalar(elements.dtype, scalar);
  bool found = false;
  for (int64_t i = 0; i < elements.size(); ++i) {
    found = found || Rounded(computed, elements[i]) == Rounded(computed, call.Scalar("element"));
  }
  call.Out("out")[0] = found != call.Flag("invert");
}

}  // namespace

std::span<const Subject> PointwiseSubjects() {
  static auto* const subjects = [] {
    auto* const list = new std::vector<Subject>;
    static const std::vector<Elementwise> tables[] = {ArithmeticRows(), BitRows(), ComparisonRows(), FunctionRows(), SelectionRows()};
    for (const auto& rows : tables) AddSubjects(list, rows);
    list->push_back({"aclnnIsInScalarTensor", SampleIsIn, OracleIsIn});
    return list;
  }();
  return *subjects;
}

}  // namespace anyacl::harness
