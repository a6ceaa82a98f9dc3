// SPDX-License-Identifier: Apache-2.0
// Copyright The AnyACL Authors
//
// LayerNorm, GroupNorm, BatchNorm and what belongs to them.
#include <functional>
#include <limits>

#include "core/product.h"
#include "harness/families/norm_formulas.h"
#include "harness/family.h"

namespace anyacl::harness {
namespace {

using norm::Places;
using norm::Reals;
using norm::Unit;

constexpr DType F32 = DType::kF32, F16 = DType::kF16, BF16 = DType::kBF16, F64 = DType::kF64;
constexpr Real kNaN = std::numeric_limits<Real>::quiet_NaN();

Reals RealsOf(const Host& host) {
  Reals values;
  for (const Number& n : host.values) values.push_back(n.real());
  return values;
}
// Empty for an absent argument.
Reals RealsOf(const HostCall& call, const char* arg) { return call.Has(arg) ? RealsOf(call.In(arg)) : Reals(); }

// FLOAT arithmetic rounds to this, or DOUBLE.
Real UnitOf(bool wide) { return wide ? 0x1p-53L : 0x1p-24L; }
Real Rounded(double value, bool wide) { return wide ? value : static_cast<float>(value); }
bool IsWide(const Host& host) { return host.dtype == F64; }

void Put(Host& out, const Reals& values, const Reals& slack) {
  for (int64_t i = 0; i < out.size(); ++i) out[i] = values[i];
  out.slack = slack;
}
void Fill(Host& out, Real value) {
  for (Number& n : out.values) n = value;
}
// The operator leaves it as it was.
void Untouched(Host& out) { out.values.clear(); }

// How far sums of `count` numbers in DOUBLE may be off, relative to their sizes.
Real SumError(Real count) { return 0x1p-52L * (8 + count / 8); }

// How far the elements of a row are off at most, where x was computed; `x_error` may be empty.
Reals RowErrors(const Places& p, const Reals& x_error) {
  Reals errors(p.rows);
  for (size_t i = 0; i < x_error.size(); ++i) errors[p.row[i]] = std::max(errors[p.row[i]], x_error[i]);
  return errors;
}

// Statistics of rows and the rows themselves; any of the outputs may be null.
void PutNorm(const Reals& x, const Places& p, const norm::Moments& m, const Reals& rstd, const Unit& unit, bool wide, Host* y, Host* mean_out,
             Host* rstd_out, Host* variance_out, const Reals& x_error = {}) {
  const Real sum_error = SumError(p.count());
  const Reals off = RowErrors(p, x_error);
  Reals relative;  // of rstd, and of the mean in terms of it
  for (int64_t r = 0; r < p.rows; ++r) {
    const Real size = m.largest[r] * rstd[r];
    relative.push_back(std::isfinite(size) ? sum_error * (2 + size) + off[r] * rstd[r] : 0);
  }
  const auto per_row = [&](Host* out, const Reals& values, auto&& slack_of) {
    if (!out) return;
    Reals slack;
    for (int64_t r = 0; r < p.rows; ++r) slack.push_back(slack_of(r));
    Put(*out, values, slack);
  };
  per_row(mean_out, m.mean, [&](int64_t r) { return std::isfinite(m.largest[r]) ? sum_error * m.largest[r] + off[r] : 0; });
  per_row(rstd_out, rstd, [&](int64_t r) { return std::isfinite(rstd[r]) ? rstd[r] * relative[r] : 0; });
  per_row(variance_out, m.variance, [&](int64_t r) { return std::isfinite(m.variance[r]) ? m.variance[r] * relative[r] * 2 : 0; });
  if (!y) return;
  Unit plain = unit;
  plain.swish = false;
  const Reals z = norm::Normalised(x, p, m.mean, rstd, plain);
  const Reals values = norm::Normalised(x, p, m.mean, rstd, unit);
  const Real u = UnitOf(wide);
  Reals slack;
  for (int64_t i = 0; i < p.size(); ++i) {
    const int64_t r = p.row[i], c = p.coefficient[i];
    const Real scaled = std::fabs((x[i] - m.mean[r]) * rstd[r] * unit.Gamma(c));
    Real one = 6 * u * (scaled + unit.BetaSize(c)) + relative[r] * (std::fabs(unit.Gamma(c)) + scaled) +
               (x_error.empty() ? 0 : x_error[i] * rstd[r] * std::fabs(unit.Gamma(c)));
    if (unit.swish) {
      const Real sz = std::fabs(unit.swish_scale * z[i]);
      one = one * (2 + sz) + u * (8 + 4 * sz) * std::fabs(z[i]);
    }
    slack.push_back(std::isfinite(one) ? one : 0);
  }
  Put(*y, values, slack);
}

void PutGradients(const norm::Gradients& g, bool wide, Real count, Host* dx, Host* dgamma, Host* dbeta) {
  const Real u = UnitOf(wide) * (wide ? 8 + count : 8);
  const auto put = [&](Host* out, const Reals& values, const Reals& sizes) {
    if (!out) return;
    Reals slack;
    for (Real size : sizes) slack.push_back(u * size);
    Put(*out, values, slack);
  };
  put(dx, g.x, g.x_size);
  put(dgamma, g.gamma, g.gamma_size);
  put(dbeta, g.beta, g.beta_size);
}

Host* Wanted(HostCall& call, const char* arg, bool wanted = true) {
  if (!call.Has(arg)) return nullptr;
  if (wanted) return &call.Out(arg);
  Untouched(call.Out(arg));
  return nullptr;
}

int64_t CountOf(const Checked<int64_t>& dims) {
  int64_t count = 1;
  for (int64_t d : dims) count *= d;
  return count;
}

// ---- LayerNorm ----

// x = leading and normalised dims.
Dims Joined(const Dims& leading, const Dims& tail) {
  Dims dims = leading;
  for (int64_t d : tail) dims.push_back(d);
  return dims;
}
Dims KeptOf(const Dims& leading, int ones) {
  Dims dims = leading;
  for (int i = 0; i < ones; ++i) dims.push_back(1);
  return dims;
}
Checked<int64_t> VectorOf(const Dims& dims) { return {dims.begin(), dims.end()}; }

// What the client calls: optional tensors are there or not, half inputs have FLOAT coefficients.
struct LayerTypes {
  DType x, coefficients, out, statistics;
};
constexpr LayerTypes kLayerTypes[] = {{F32, F32, F32, F32}, {F16, F16, F16, F16},  {BF16, BF16, BF16, BF16}, {F64, F64, F64, F64},
                                      {F16, F32, F16, F32}, {BF16, F32, F32, F32}, {F32, F32, F16, BF16},    {F64, F32, F32, F32},
                                      {F16, F16, BF16, F16}};

void SampleLayerNorm(Calls& calls) {
  const std::string_view op = calls.op().contract.op();
  const bool fast = op == "aclnnFastLayerNorm";
  const auto add = [&](const LayerTypes& t, const Dims& leading, const Dims& tail, double eps, Values values = {}, bool optional = true) {
    std::vector<TestArg> args = {In(t.x, Joined(leading, tail), values), Ints(VectorOf(tail)), optional ? In(t.coefficients, tail) : Null(),
                                 optional ? In(t.coefficients, tail) : Null(), RealArg(eps),
                                 Out(fast ? t.x : t.out, Joined(leading, tail)), Out(t.statistics, KeptOf(leading, tail.rank())),
                                 Out(t.statistics, KeptOf(leading, tail.rank()))};
    if (op == "aclnnLayerNormWithImplMode") {
      const bool half = t.x == F16 && (!optional || t.coefficients == F16);
      args.push_back(Int(half ? 2 : tail.rank() % 2));
    }
    return &calls.Add(args);
  };
  for (const LayerTypes& t : kLayerTypes) {
    add(t, {3}, {37}, 1e-5);
    add(t, {2, 3}, {4, 5}, 1e-3, Between(-3, 9));
  }
  for (DType t : {F32, F16, BF16, F64}) {
    const LayerTypes same{t, t, t, t};
    add(same, {5}, {64}, 0, Hostile());
    add(same, {7}, {8}, 1e-5, {}, /*optional=*/false);
    add(same, {0}, {8}, 1e-5);
    add(same, {3}, {0}, 1e-5);
    add(same, {}, {9}, 1e-5);
    add(same, {2}, {16}, 0, Given({Number(3)}));  // equal numbers: no deviation
    add(same, {4}, {300}, 1e-5, Between(1000, 1001));
  }
  for (DType t : {F32, F16, BF16}) {  // more than one block of statistics, and what is left of it
    add({t, t, t, t}, {3}, {5003}, 1e-5);
    add({t, t, t, t}, {2}, {2100}, 0, Between(1000, 1001));
    add({t, t, t, t}, {9}, {129}, 1e-5, Hostile());
  }
  const LayerTypes same{F32, F32, F32, F32};
  add(same, {40, 30}, {50}, 1e-5);
  add(same, {3}, {40000}, 1e-5);
  add({BF16, F32, BF16, F32}, {2}, {33000}, 1e-5);
  add(same, {6}, {11}, 1e-5)->args[6] = Null();
  add(same, {6}, {11}, 1e-5)->args[7] = Null();
  add(same, {6}, {11}, 1e-5)->args[2] = Null();
  add(same, {6}, {11}, 1e-5)->args[3] = Null();
  if (!fast) add(same, {6}, {12}, 1e-5)->same = {{5, 0}};
  TestCall& empty = *add(same, {0, 4}, {8}, 1e-5);  // statistics of no rows may have any shape without elements
  empty.args[6] = Out(F32, {0});
  empty.args[7] = Out(F32, {0});
}

void OracleLayerNorm(HostCall& call) {
  const Host& input = call.In("input");
  const int64_t count = CountOf(call.Ints("normalizedShape"));
  Host* const mean = Wanted(call, "meanOutOptional");
  Host* const rstd = Wanted(call, "rstdOutOptional");
  if (input.size() == 0) {
    if (mean) Fill(*mean, 0);
    if (rstd) Fill(*rstd, kNaN);
    return;
  }
  const bool wide = IsWide(input);
  const Places p = norm::LayerPlaces(input.size() / count, count);
  const Reals x = RealsOf(input);
  const norm::Moments m = norm::MomentsOf(x, p, true);
  const Unit unit{RealsOf(call, "weightOptional"), RealsOf(call, "biasOptional")};
  PutNorm(x, p, m, norm::ReciprocalRoots(m.variance, Rounded(call.Real("eps"), wide)), unit, wide, &call.Out("out"), mean, rstd, nullptr);
}

void SampleLayerNormBackward(Calls& calls) {
  const auto add = [&](const LayerTypes& t, const Dims& leading, const Dims& tail, Checked<bool> mask, bool optional = true) {
    const Dims rows = KeptOf(leading, tail.rank());
    return &calls.Add({In(t.x, Joined(leading, tail)), In(t.x, Joined(leading, tail)), Ints(VectorOf(tail)), In(t.statistics, rows),
                       In(t.statistics, rows, Between(0.5, 2)), optional ? In(t.coefficients, tail) : Null(),
                       optional ? In(t.coefficients, tail) : Null(), Bools(mask), Out(t.out, Joined(leading, tail)),
                       Out(t.out, tail), Out(t.out, tail)});
  };
  for (const LayerTypes& t : kLayerTypes) {
    add(t, {3}, {37}, {true, true, true});
    add(t, {2, 3}, {4, 5}, {true, true, true}, false);
  }
  const LayerTypes same{F32, F32, F32, F32};
  add(same, {5}, {7}, {true, false, false});
  add(same, {5}, {7}, {false, true, false});
  add(same, {5}, {7}, {false, false, true});
  add(same, {5}, {7}, {false, false, false});
  add(same, {0}, {7}, {true, true, true});
  add(same, {3}, {0}, {true, true, true});
  add(same, {40, 30}, {50}, {true, true, true});
  add(same, {1300}, {300}, {true, true, true});
  for (DType t : {F32, F16, BF16}) {  // rows beyond the last four, columns beyond the last whole vector
    add({t, t, t, t}, {9}, {701}, {true, true, true});
    add({t, t, t, t}, {6}, {5000}, {true, true, true}, false);
    add({t, t, t, t}, {131}, {264}, {false, true, true});
  }
  // Sums that leave FLOAT's range on the way, and terms at its lower end.
  const Number huge(3e38L), minus(-3e38L);
  add(same, {4}, {4}, {false, true, true})->args[0] =
      In(F32, {4, 4}, Given({huge, huge, huge, huge, huge, huge, huge, huge, minus, minus, minus, minus, minus, minus, minus, minus}));
  add(same, {300}, {20}, {false, true, true})->args[0] = In(F32, {300, 20}, Between(1e-40L, 2e-40L));
  add(same, {3}, {40000}, {true, true, true});
  add({BF16, F32, F32, F32}, {70}, {600}, {true, true, true});
  add(same, {6}, {12}, {true, true, true})->same = {{8, 0}};
}

void OracleLayerNormBackward(HostCall& call) {
  const Checked<bool> mask = call.Bools("outputMask");
  Host* const dx = Wanted(call, "gradInputOut", mask[0]);
  Host* const dgamma = Wanted(call, "gradWeightOut", mask[1]);
  Host* const dbeta = Wanted(call, "gradBiasOut", mask[2]);
  const Host& input = call.In("input");
  const int64_t count = CountOf(call.Ints("normalizedShape"));
  if (input.size() == 0) {
    for (Host* out : {dx, dgamma, dbeta}) {
      if (out) Fill(*out, 0);
    }
    return;
  }
  const Places p = norm::LayerPlaces(input.size() / count, count);
  const Unit unit{RealsOf(call, "weightOptional"), {}};
  const norm::Gradients g = norm::GradientsOf(RealsOf(call.In("gradOut")), RealsOf(input), p, RealsOf(call.In("mean")),
                                              RealsOf(call.In("rstd")), unit, false);
  PutGradients(g, IsWide(input), static_cast<Real>(input.size()), dx, dgamma, dbeta);
}

// ---- RmsNorm ----

// A sum of tensors, alpha times the first, the absolute values of what was added, and how far FLOAT may be off.
struct Summed {
  Reals x, size = {}, error = {};
};
Summed SumOf(const HostCall& call, const char* first, const char* second, const char* third = nullptr, Real alpha = 1) {
  const Host& x = call.In(first);
  Summed sum;
  for (int64_t i = 0; i < x.size(); ++i) {
    const Real one = alpha * x.real(i), other = call.In(second).real(i);
    const Real more = third && call.Has(third) ? call.In(third).Broadcast(x.dims, i).real() : 0;
    sum.x.push_back(one + other + more);
    sum.size.push_back(std::fabs(one) + std::fabs(other) + std::fabs(more));
    sum.error.push_back(0x1p-23L * sum.size.back());
  }
  return sum;
}

void SampleRmsNorm(Calls& calls) {
  const bool gemma = std::string_view(calls.op().contract.op()) == "aclnnGemmaRmsNorm";
  const auto add = [&](DType t, DType g, const Dims& leading, const Dims& tail, double eps, Values values = {}) {
    return &calls.Add({In(t, Joined(leading, tail), values), In(g, tail), RealArg(eps), Out(t, Joined(leading, tail)),
                       Out(F32, KeptOf(leading, tail.rank()))});
  };
  for (const auto& [t, g] : {std::pair(F32, F32), std::pair(F16, F16), std::pair(BF16, BF16), std::pair(F16, F32), std::pair(BF16, F32)}) {
    add(t, g, {3}, {37}, 1e-6);
    add(t, g, {2, 3}, {4, 5}, 0.5, Between(-3, 9));
    add(t, g, {5}, {64}, 0, Hostile());
    add(t, g, {}, {9}, 1e-6);
  }
  add(F32, F32, {2}, {16}, 0, Given({Number(0)}));
  add(F32, F32, {40, 30}, {50}, 1e-6);
  add(F32, F32, {3}, {40000}, 1e-6);
  add(BF16, F32, {2}, {33000}, 1e-6);
  add(F32, F32, {0, 4}, {8}, 1e-6);
  add(F32, F32, {6}, {12}, 1e-6)->same = {{3, 0}};
  add(F32, F32, {4, 3}, {8}, 1e-6)->args[4] = Out(F32, {4, 3});
  // What one program passes: the shape of x, with room for one element per row.
  if (!gemma) add(F32, F32, {2, 3}, {8}, 1e-6)->args[4] = Out(F32, {2, 3, 8}).Layout("dense");
}

// `sum` is normalised; y2: the same once more. Any output may be null.
void PutRmsNorm(HostCall& call, const Summed& sum, int64_t count, Real gamma_bias, Host* y, Host* y2, Host* rstd_out) {
  const Places p = norm::LayerPlaces(static_cast<int64_t>(sum.x.size()) / count, count);
  const norm::Moments m = norm::MomentsOf(sum.x, p, false);
  Unit unit{RealsOf(call, "gamma"), {}};
  for (Real& g : unit.gamma) g += gamma_bias;
  const Reals rstd = norm::ReciprocalRoots(m.variance, Rounded(call.Real("epsilon"), false));
  if (rstd_out) rstd_out->values.resize(p.rows);
  PutNorm(sum.x, p, m, rstd, unit, false, y, nullptr, rstd_out, nullptr, sum.error);
  if (y2) PutNorm(sum.x, p, m, rstd, unit, false, y2, nullptr, nullptr, nullptr, sum.error);
}

void OracleRmsNorm(HostCall& call) {
  const Host& x = call.In("x");
  if (x.size() == 0) return;
  const bool gemma = std::string_view(call.name()) == "aclnnGemmaRmsNorm";
  PutRmsNorm(call, {RealsOf(x)}, call.In("gamma").size(), gemma, &call.Out("yOut"), nullptr, &call.Out("rstdOut"));
}

void PutSum(Host* out, const Summed& sum) {
  if (out) Put(*out, sum.x, sum.error);
}

void SampleAddRmsNorm(Calls& calls) {
  const auto add = [&](DType t, const Dims& leading, const Dims& tail, double eps) {
    const Dims dims = Joined(leading, tail);
    return &calls.Add({In(t, dims), In(t, dims), In(t, tail), RealArg(eps), Out(t, dims), Out(F32, KeptOf(leading, tail.rank())), Out(t, dims)});
  };
  for (DType t : {F32, F16, BF16}) {
    add(t, {3}, {37}, 1e-6);
    add(t, {2, 3}, {4, 5}, 0);
    add(t, {0}, {4, 5}, 1e-6);
    if (t == F32) continue;
    TestCall& pre = *add(t, {2, 3}, {1, 20}, 1e-6);
    pre.args[5] = Null();
    TestCall& post = *add(t, {4, 6}, {20}, 1e-6);
    post.args[2] = In(t, {1, 20});
    post.args[5] = post.args[6] = Null();
  }
  add(F32, {3}, {40000}, 1e-6);
  add(F32, {3}, {10}, 1e-6)->same = {{6, 0}};
  add(F32, {3}, {10}, 1e-6)->same = {{4, 1}};
}

void OracleAddRmsNorm(HostCall& call) {
  if (call.In("x1").size() == 0) {
    for (const char* arg : {"yOut", "rstdOut", "xOut"}) Untouched(call.Out(arg));
    return;
  }
  const Summed sum = SumOf(call, "x1", "x2");
  PutRmsNorm(call, sum, call.In("gamma").size(), 0, &call.Out("yOut"), nullptr, Wanted(call, "rstdOut"));
  PutSum(Wanted(call, "xOut"), sum);
}

void SampleInplaceAddRmsNorm(Calls& calls) {
  const auto add = [&](DType t, const Dims& leading, const Dims& tail, double eps) {
    const Dims dims = Joined(leading, tail);
    calls.Add({In(t, dims), In(t, dims), In(t, tail), RealArg(eps), Out(F32, KeptOf(leading, tail.rank()))});
  };
  for (DType t : {F32, F16, BF16}) {
    add(t, {3}, {37}, 1e-6);
    add(t, {2, 3}, {4, 5}, 0);
  }
  add(F32, {3}, {40000}, 1e-6);
  add(F32, {0}, {8}, 1e-6);
}

void OracleInplaceAddRmsNorm(HostCall& call) {
  if (call.In("x1Ref").size() == 0) return;
  const Summed sum = SumOf(call, "x1Ref", "x2Ref");
  PutRmsNorm(call, sum, call.In("gamma").size(), 0, &call.Out("x1Ref"), nullptr, &call.Out("rstdOut"));
  PutSum(&call.Out("x2Ref"), sum);
}

void SampleAddRmsNormCast(Calls& calls) {
  const auto add = [&](DType t, const Dims& leading, const Dims& tail, double eps) {
    const Dims dims = Joined(leading, tail);
    return &calls.Add({In(t, dims), In(t, dims), In(t, tail), RealArg(eps), Out(F32, dims), Out(t, dims),
                       Out(F32, KeptOf(leading, tail.rank())), Out(t, dims)});
  };
  for (DType t : {F16, BF16}) {
    add(t, {3}, {37}, 1e-6);
    add(t, {2, 3}, {4, 5}, 0);
    add(t, {0}, {8}, 1e-6);
    add(t, {3}, {10}, 1e-6)->same = {{7, 0}};
  }
}

void OracleAddRmsNormCast(HostCall& call) {
  if (call.In("x1").size() == 0) return;
  const Summed sum = SumOf(call, "x1", "x2");
  PutRmsNorm(call, sum, call.In("gamma").size(), 0, &call.Out("y1Out"), &call.Out("y2Out"), &call.Out("rstdOut"));
  PutSum(&call.Out("xOut"), sum);
}

// ---- AddLayerNorm, DeepNorm ----

void SampleAddLayerNorm(Calls& calls) {
  struct Types {
    DType x1, x2, coefficients, out;
  };
  const auto add = [&](const Types& t, const Dims& leading, const Dims& tail, bool wants_sum, const Dims& bias) {
    const Dims dims = Joined(leading, tail), rows = KeptOf(leading, tail.rank());
    return &calls.Add({In(t.x1, dims), In(t.x2, dims), In(t.coefficients, tail), In(t.coefficients, tail),
                       bias.rank() == 0 ? Null() : In(t.out, bias), RealArg(1e-5), Flag(wants_sum), Out(t.out, dims), Out(F32, rows),
                       Out(F32, rows), Out(t.out, dims)});
  };
  const Types types[] = {{F32, F32, F32, F32}, {F16, F16, F16, F16},  {BF16, BF16, BF16, BF16}, {F32, F16, F32, F32},  {F32, BF16, F32, F32},
                         {F16, F32, F32, F32}, {BF16, F32, F32, F32}, {F16, F16, F32, F16},     {BF16, BF16, F32, BF16}};
  for (const Types& t : types) {
    add(t, {3}, {37}, true, {});
    add(t, {2, 3}, {4, 5}, false, {4, 5});
    add(t, {4}, {9}, true, {4, 9});
  }
  const Types same = types[0];
  add(same, {3}, {40000}, true, {});
  add(same, {0}, {8}, true, {});
  add(same, {3}, {10}, true, {})->same = {{10, 0}};
  TestCall& one = *add(same, {5}, {2, 6}, false, {});  // as PyTorch has it
  one.args[8] = Out(F32, {5, 1});
  one.args[9] = Out(F32, {5, 1});
}

void OracleAddLayerNorm(HostCall& call) {
  Host* const sum_out = Wanted(call, "xOut", call.Flag("additionalOutput"));
  if (call.In("x1").size() == 0) return;
  const Summed sum = SumOf(call, "x1", "x2", "biasOptional");
  const int64_t count = call.In("gamma").size();
  const Places p = norm::LayerPlaces(static_cast<int64_t>(sum.x.size()) / count, count);
  const norm::Moments m = norm::MomentsOf(sum.x, p, true);
  PutNorm(sum.x, p, m, norm::ReciprocalRoots(m.variance, Rounded(call.Real("epsilon"), false)), {RealsOf(call, "gamma"), RealsOf(call, "beta")},
          false, &call.Out("yOut"), &call.Out("meanOut"), &call.Out("rstdOut"), nullptr, sum.error);
  PutSum(sum_out, sum);
}

void SampleDeepNorm(Calls& calls) {
  const auto add = [&](DType t, const Dims& leading, const Dims& tail, double alpha) {
    const Dims dims = Joined(leading, tail), rows = KeptOf(leading, tail.rank());
    return &calls.Add({In(t, dims), In(t, dims), In(t, tail), In(t, tail), RealArg(alpha), RealArg(1e-6), Out(F32, rows), Out(F32, rows),
                       Out(t, dims)});
  };
  for (DType t : {F32, F16, BF16}) {
    add(t, {3}, {37}, 0.3);
    add(t, {2, 3}, {4, 5}, -2);
    add(t, {0}, {5}, 0.3);
    add(t, {3}, {0}, 0.3);
  }
  add(F32, {3}, {40000}, 0.3);
  add(F32, {3}, {11}, 0.3)->same = {{8, 1}};
}

void OracleDeepNorm(HostCall& call) {
  if (call.In("x").size() == 0) {
    Fill(call.Out("meanOut"), 0);
    Fill(call.Out("rstdOut"), kNaN);
    return;
  }
  const Summed sum = SumOf(call, "x", "gx", nullptr, Rounded(call.Real("alpha"), false));
  const int64_t count = call.In("gamma").size();
  const Places p = norm::LayerPlaces(static_cast<int64_t>(sum.x.size()) / count, count);
  const norm::Moments m = norm::MomentsOf(sum.x, p, true);
  PutNorm(sum.x, p, m, norm::ReciprocalRoots(m.variance, Rounded(call.Real("epsilon"), false)), {RealsOf(call, "gamma"), RealsOf(call, "beta")},
          false, &call.Out("yOut"), &call.Out("meanOut"), &call.Out("rstdOut"), nullptr, sum.error);
}

// Gradients of a LayerNorm whose input is a sum.
norm::Gradients SumGradients(HostCall& call, const Summed& sum) {
  const int64_t count = call.In("gamma").size();
  const Places p = norm::LayerPlaces(static_cast<int64_t>(sum.x.size()) / count, count);
  return norm::GradientsOf(RealsOf(call.In("dy")), sum.x, p, RealsOf(call.In("mean")), RealsOf(call.In("rstd")), {RealsOf(call, "gamma"), {}},
                           false, sum.size);
}

void SampleAddLayerNormGrad(Calls& calls) {
  const auto add = [&](DType t, const Dims& leading, const Dims& tail, bool dsum) {
    const Dims dims = Joined(leading, tail), rows = KeptOf(leading, tail.rank());
    return &calls.Add({In(t, dims), In(t, dims), In(t, dims), In(F32, rows, Between(0.5, 2)), In(F32, rows), In(t, tail),
                       dsum ? In(t, dims) : Null(), Out(t, dims), Out(F32, tail), Out(F32, tail)});
  };
  for (DType t : {F32, F16, BF16}) {
    add(t, {3}, {37}, true);
    add(t, {2, 3}, {4, 5}, false);
  }
  add(F32, {3}, {40000}, true);
  add(F32, {200}, {300}, true);
  add(F32, {3}, {10}, true)->same = {{7, 6}};
  TestCall& one = *add(F32, {5}, {2, 6}, true);
  one.args[3] = In(F32, {5, 1}, Between(0.5, 2));
  one.args[4] = In(F32, {5, 1});
}

void OracleAddLayerNormGrad(HostCall& call) {
  norm::Gradients g = SumGradients(call, SumOf(call, "x1", "x2"));
  const Reals dsum = RealsOf(call, "dsumOptional");
  for (size_t i = 0; i < dsum.size(); ++i) {
    g.x[i] += dsum[i];
    g.x_size[i] += std::fabs(dsum[i]);
  }
  PutGradients(g, false, 0, &call.Out("dxOut"), &call.Out("dgammaOut"), &call.Out("dbetaOut"));
}

void SampleDeepNormGrad(Calls& calls) {
  const auto add = [&](DType t, const Dims& leading, const Dims& tail, double alpha) {
    const Dims dims = Joined(leading, tail), rows = KeptOf(leading, tail.rank());
    return &calls.Add({In(t, dims), In(t, dims), In(t, dims), In(t, tail), In(F32, rows), In(F32, rows, Between(0.5, 2)), RealArg(alpha),
                       Out(t, dims), Out(t, dims), Out(F32, tail), Out(F32, tail)});
  };
  for (DType t : {F32, F16, BF16}) {
    add(t, {3}, {37}, 0.3);
    add(t, {2, 3}, {4, 5}, -2);
    add(t, {0}, {5}, 0.3);
  }
  add(F32, {3}, {40000}, 0.3);
  add(F32, {200}, {300}, 0.3);
  add(F32, {3}, {11}, 0.3)->same = {{8, 0}};
}

void OracleDeepNormGrad(HostCall& call) {
  const Real alpha = Rounded(call.Real("alpha"), false);
  const norm::Gradients g = SumGradients(call, SumOf(call, "x", "gx", nullptr, alpha));
  PutGradients(g, false, 0, &call.Out("dgxOut"), &call.Out("dgammaOut"), &call.Out("dbetaOut"));
  norm::Gradients scaled = g;
  for (size_t i = 0; i < g.x.size(); ++i) {
    scaled.x[i] *= alpha;
    scaled.x_size[i] *= std::fabs(alpha);
  }
  PutGradients(scaled, false, 0, &call.Out("dxOut"), nullptr, nullptr);
}

// ---- AdaLayerNorm ----

// x is [B..., S, H]; `form`: scale and shift have an axis of 1 in front of H.
Dims PerSample(const Dims& x, bool form) {
  Dims dims;
  for (int i = 0; i + 2 < x.rank(); ++i) dims.push_back(x[i]);
  if (form) dims.push_back(1);
  dims.push_back(x[x.rank() - 1]);
  return dims;
}
Dims PerRow(Dims x) {
  x[x.rank() - 1] = 1;
  return x;
}

// A coefficient for each sample and position.
Places AdaPlaces(const Dims& x) {
  const int64_t h = x[x.rank() - 1], s = x[x.rank() - 2];
  int64_t samples = 1;
  for (int i = 0; i + 2 < x.rank(); ++i) samples *= x[i];
  return norm::PlacesOf(samples, s, h, samples * s, samples * h, [=](int64_t n, int64_t c) { return n * s + c; },
                        [=](int64_t n, int64_t, int64_t i) { return n * h + i; });
}

// (u * w + b) * (1 + scale) + shift as u * gamma + beta.
Unit AdaUnit(const HostCall& call) {
  const Host &scale = call.In("scale"), &shift = call.In("shift");
  const Unit plain{RealsOf(call, "weightOptional"), RealsOf(call, "biasOptional")};
  Unit unit;
  for (int64_t i = 0; i < scale.size(); ++i) {
    const int64_t h = i % scale.dims[scale.dims.rank() - 1];
    unit.gamma.push_back(plain.Gamma(h) * (1 + scale.real(i)));
    unit.beta.push_back(plain.Beta(h) * (1 + scale.real(i)) + shift.real(i));
    unit.beta_size.push_back(std::fabs(plain.Beta(h)) * (1 + std::fabs(scale.real(i))) + std::fabs(shift.real(i)));
  }
  return unit;
}

void SampleAdaLayerNorm(Calls& calls) {
  const bool v2 = std::string_view(calls.op().contract.op()) == "aclnnAdaLayerNormV2";
  const auto add = [&](DType t, DType c, const Dims& dims, bool form, bool optional = true) {
    const Dims vector = {dims[dims.rank() - 1]};
    std::vector<TestArg> args = {In(t, dims), In(t, PerSample(dims, form)), In(t, PerSample(dims, !form)), optional ? In(c, vector) : Null(),
                                 optional ? In(c, vector) : Null(), RealArg(1e-5), Out(t, dims)};
    if (v2) args.insert(args.end(), {Out(t, PerRow(dims)), Out(t, PerRow(dims))});
    return &calls.Add(args);
  };
  for (DType t : {F32, F16, BF16}) {
    add(t, t, {2, 3, 37}, true);
    add(t, t, {2, 3, 4, 5}, false);
    add(t, t, {4, 9}, true, false);
    if (v2) add(t, F32, {2, 3, 11}, false);
  }
  add(F32, F32, {2, 2, 20000}, true);
  add(F32, F32, {2, 3, 8}, true)->args[3] = Null();
  add(F32, F32, {2, 3, 8}, true)->args[4] = Null();
  add(F32, F32, {2, 3, 8}, true)->same = {{6, 0}};
  if (v2) add(F32, F32, {2, 3, 8}, true)->args[7] = Null();
}

void OracleAdaLayerNorm(HostCall& call) {
  const Host& in = call.In("x");
  const Places p = AdaPlaces(in.dims);
  const Reals x = RealsOf(in);
  const norm::Moments m = norm::MomentsOf(x, p, true);
  const bool v2 = call.HasArg("meanOutOptional");
  PutNorm(x, p, m, norm::ReciprocalRoots(m.variance, Rounded(call.Real("epsilon"), false)), AdaUnit(call), false, &call.Out("out"),
          v2 ? Wanted(call, "meanOutOptional") : nullptr, v2 ? Wanted(call, "rstdOutOptional") : nullptr, nullptr);
}

void SampleAdaLayerNormBackward(Calls& calls) {
  const auto add = [&](DType t, DType s, DType c, const Dims& dims, bool form, bool optional = true) {
    const Dims vector = {dims[dims.rank() - 1]};
    return &calls.Add({In(t, dims), In(t, dims), Ints(VectorOf(vector)), In(s, PerRow(dims), Between(0.5, 2)), In(s, PerRow(dims)),
                       In(t, PerSample(dims, form)), In(t, PerSample(dims, !form)), optional ? In(c, vector) : Null(),
                       optional ? In(c, vector) : Null(), Out(t, dims), Out(t, PerSample(dims, form)), Out(t, PerSample(dims, !form)),
                       Out(c, vector), Out(c, vector)});
  };
  for (DType t : {F32, F16, BF16}) {
    add(t, t, t, {2, 3, 37}, true);
    add(t, F32, F32, {2, 3, 4, 5}, false);
    add(t, F32, t, {4, 9}, true, false);
    add(t, t, F32, {4, 9}, true, false);
  }
  add(F32, F32, F32, {2, 2, 20000}, true);
  add(F32, F32, F32, {2, 90, 300}, false);
  add(F32, F32, F32, {0, 2, 7, 6}, true);
  add(F32, F32, F32, {2, 0, 6}, true);
  add(F32, F32, F32, {2, 3, 8}, true)->args[7] = Null();
  add(F32, F32, F32, {2, 3, 8}, true)->args[8] = Null();
  add(F32, F32, F32, {2, 3, 8}, true)->same = {{9, 0}};
  for (int wanted = 9; wanted <= 13; ++wanted) {
    TestCall& one = *add(F32, F32, F32, {2, 3, 8}, true);
    for (int arg = 9; arg <= 13; ++arg) {
      if (arg != wanted) one.args[arg] = Null();
    }
  }
}

void OracleAdaLayerNormBackward(HostCall& call) {
  const Host &x = call.In("input"), &scale = call.In("scale");
  const int64_t h = x.dims[x.dims.rank() - 1];
  const Unit plain{RealsOf(call, "weightOptional"), RealsOf(call, "biasOptional")};
  Unit unit = AdaUnit(call);
  const norm::Gradients g = norm::GradientsOf(RealsOf(call.In("gradOut")), RealsOf(x), AdaPlaces(x.dims), RealsOf(call.In("mean")),
                                              RealsOf(call.In("rstd")), unit, false);
  const int64_t n = scale.size();
  norm::Gradients of_scale{{}, Reals(n), Reals(n), {}, Reals(n), Reals(n)}, of_unit{{}, Reals(h), Reals(h), {}, Reals(h), Reals(h)};
  for (int64_t i = 0; i < n; ++i) {
    const Real w = plain.Gamma(i % h), b = plain.Beta(i % h), s = 1 + scale.real(i);
    of_scale.gamma[i] = w * g.gamma[i] + b * g.beta[i];
    of_scale.gamma_size[i] = std::fabs(w) * g.gamma_size[i] + std::fabs(b) * g.beta_size[i];
    of_unit.gamma[i % h] += s * g.gamma[i];
    of_unit.gamma_size[i % h] += std::fabs(s) * g.gamma_size[i];
    of_unit.beta[i % h] += s * g.beta[i];
    of_unit.beta_size[i % h] += std::fabs(s) * g.beta_size[i];
  }
  of_scale.beta = g.beta;
  of_scale.beta_size = g.beta_size;
  PutGradients(g, false, 0, Wanted(call, "gradInputOut"), nullptr, nullptr);
  PutGradients(of_scale, false, 0, nullptr, Wanted(call, "gradScaleOut"), Wanted(call, "gradShiftOut"));
  PutGradients(of_unit, false, 0, nullptr, Wanted(call, "gradWeightOut"), Wanted(call, "gradBiasOut"));
}

// ---- GroupNorm ----

struct GroupTypes {
  DType x, coefficients, statistics;
};

int64_t InnerOf(const Dims& dims) {
  int64_t inner = 1;
  for (int i = 2; i < dims.rank(); ++i) inner *= dims[i];
  return inner;
}

void SampleGroupNorm(Calls& calls) {
  const auto add = [&](const GroupTypes& t, const Dims& dims, int64_t groups, double eps, Values values = {}, bool optional = true) {
    return &calls.Add({In(t.x, dims, values), optional ? In(t.coefficients, {dims[1]}) : Null(),
                       optional ? In(t.coefficients, {dims[1]}) : Null(), Int(dims[0]), Int(dims[1]), Int(InnerOf(dims)), Int(groups),
                       RealArg(eps), Out(t.x, dims), Out(t.statistics, {dims[0], groups}), Out(t.statistics, {dims[0], groups})});
  };
  const GroupTypes types[] = {{F32, F32, F32}, {F16, F16, F16}, {BF16, BF16, BF16}, {F64, F64, F64}, {F16, F32, F16}, {BF16, F32, F32}};
  for (const GroupTypes& t : types) {
    add(t, {2, 6, 5, 7}, 3, 1e-5);
    add(t, {3, 4}, 2, 1e-5);
    add(t, {2, 4, 33}, 4, 1e-3, {}, /*optional=*/false);
    add(t, {2, 4, 3, 3, 2}, 1, 0, Between(100, 101));
  }
  for (DType t : {F32, F16, BF16, F64}) {
    add({t, t, t}, {2, 4, 9}, 2, 1e-5, Hostile());
    add({t, t, t}, {1, 4, 9}, 2, 0, Given({Number(2)}));
    add({t, t, t}, {2, 0, 9}, 2, 1e-5);
    add({t, t, t}, {0, 4, 9}, 2, 1e-5);
    add({t, t, t}, {2, 4, 0}, 2, 1e-5);
  }
  for (DType t : {F32, BF16}) {
    add({t, t, t}, {2, 6, 100, 100}, 2, 1e-5);
    add({t, t, t}, {3, 6, 130}, 2, 1e-5);
  }
  add({BF16, BF16, BF16}, {16, 2, 92, 90}, 1, 1e-5);  // enough groups that each is read twice in a row
  add({F32, F32, F32}, {33, 40, 30}, 8, 1e-5);
  add({F32, F32, F32}, {3, 4, 5}, 2, -1e-3);
  add({F32, F32, F32}, {3, 4, 5}, 2, 1e-5)->same = {{8, 0}};
}

void OracleGroupNorm(HostCall& call) {
  const Host& self = call.In("self");
  if (self.size() == 0) {
    Fill(call.Out("meanOut"), 0);
    Fill(call.Out("rstdOut"), kNaN);
    return;
  }
  const bool wide = IsWide(self);
  const Places p = norm::GroupPlaces(self.dims[0], self.dims[1], InnerOf(self.dims), call.Int("group"));
  const Reals x = RealsOf(self);
  const norm::Moments m = norm::MomentsOf(x, p, true);
  const Unit unit{RealsOf(call, "gamma"), RealsOf(call, "beta")};
  PutNorm(x, p, m, norm::ReciprocalRoots(m.variance, Rounded(call.Real("eps"), wide)), unit, wide, &call.Out("out"),
          &call.Out("meanOut"), &call.Out("rstdOut"), nullptr);
}

void SampleGroupNormSilu(Calls& calls) {
  const bool chooses = calls.op().contract.args().size() == 9;
  const auto add = [&](DType t, DType c, DType s, const Dims& dims, int64_t groups, bool optional = true, bool silu = true) {
    std::vector<TestArg> args = {In(t, dims), optional ? In(c, {dims[1]}) : Null(), optional ? In(c, {dims[1]}) : Null(), Int(groups),
                                 RealArg(1e-5)};
    if (chooses) args.push_back(Flag(silu));
    args.insert(args.end(), {Out(t, dims), Out(s, {dims[0], groups}), Out(s, {dims[0], groups})});
    return &calls.Add(args);
  };
  for (DType t : {F32, F16, BF16}) {
    add(t, t, t, {2, 6, 5, 7}, 3);
    add(t, t, t, {3, 4}, 2, true, false);
    add(t, F32, F32, {2, 4, 3, 11}, 2);
    add(t, t, t, {2, 4, 33}, 4, false);
    add(t, t, t, {0, 4, 33}, 4);
    add(t, t, t, {2, 4, 0}, 4);
  }
  add(F32, F32, F32, {2, 6, 100, 60}, 2);
}

void OracleGroupNormSilu(HostCall& call) {
  const Host& self = call.In("self");
  if (self.size() == 0) {
    Fill(call.Out("meanOut"), kNaN);
    Fill(call.Out("rstdOut"), kNaN);
    return;
  }
  const Places p = norm::GroupPlaces(self.dims[0], self.dims[1], InnerOf(self.dims), call.Int("group"));
  const Reals x = RealsOf(self);
  const norm::Moments m = norm::MomentsOf(x, p, true);
  Unit unit{RealsOf(call, "gamma"), RealsOf(call, "beta")};
  unit.swish = call.outputs.size() == 8 || call.Flag("activateSilu");
  PutNorm(x, p, m, norm::ReciprocalRoots(m.variance, Rounded(call.Real("eps"), false)), unit, false, &call.Out("out"),
          &call.Out("meanOut"), &call.Out("rstdOut"), nullptr);
}

void SampleGroupNormSwish(Calls& calls) {
  const auto add = [&](DType t, DType c, const Dims& dims, int64_t groups, bool swish, double scale) {
    calls.Add({In(t, dims), In(c, {dims[1]}), In(c, {dims[1]}), Int(groups), Text("NCHW"), RealArg(1e-5), Flag(swish), RealArg(scale),
               Out(t, dims), Out(c, {dims[0], groups}), Out(c, {dims[0], groups})});
  };
  for (const auto& [t, c] : {std::pair(F32, F32), std::pair(F16, F16), std::pair(BF16, BF16), std::pair(F16, F32), std::pair(BF16, F32)}) {
    add(t, c, {2, 6, 5, 7}, 3, true, 1);
    add(t, c, {3, 4}, 2, true, 0.5);
    add(t, c, {2, 4, 3, 11}, 2, false, 1);
    add(t, c, {1, 4, 3}, 2, true, -2);
  }
  add(F32, F32, {2, 6, 100, 60}, 2, true, 1);
  calls.Add({In(F32, {0, 4, 3}), In(F32, {4}), In(F32, {4}), Int(2), Null(), RealArg(1e-5), Flag(true), RealArg(1), Out(F32, {0, 4, 3}),
             Out(F32, {0, 2}), Out(F32, {0, 2})});
}

void OracleGroupNormSwish(HostCall& call) {
  const Host& self = call.In("x");
  if (self.size() == 0) return;
  const Places p = norm::GroupPlaces(self.dims[0], self.dims[1], InnerOf(self.dims), call.Int("numGroups"));
  const Reals x = RealsOf(self);
  const norm::Moments m = norm::MomentsOf(x, p, true);
  Unit unit{RealsOf(call, "gamma"), RealsOf(call, "beta")};
  unit.swish = call.Flag("activateSwish");
  unit.swish_scale = Rounded(call.Real("swishScale"), false);
  PutNorm(x, p, m, norm::ReciprocalRoots(m.variance, Rounded(call.Real("eps"), false)), unit, false, &call.Out("yOut"),
          &call.Out("meanOut"), &call.Out("rstdOut"), nullptr);
}

void SampleGroupNormSwishGrad(Calls& calls) {
  const auto add = [&](DType t, const Dims& dims, int64_t groups, double scale, bool dgamma = true, bool dbeta = true) {
    calls.Add({In(t, dims), In(t, {dims[0], groups}), In(t, {dims[0], groups}, Between(0.5, 2)), In(t, dims), In(t, {dims[1]}),
               In(t, {dims[1]}), Int(groups), Text("NCHW"), RealArg(scale), Flag(dgamma), Flag(dbeta), Out(t, dims), Out(t, {dims[1]}),
               Out(t, {dims[1]})});
  };
  for (DType t : {F32, F16, BF16}) {
    add(t, {2, 6, 5, 7}, 3, 1);
    add(t, {3, 4, 1}, 2, 0.5);
    add(t, {2, 4, 33}, 4, -1, true, false);
    add(t, {2, 4, 33}, 1, 1, false, false);
  }
  add(F32, {3, 6, 100, 60}, 2, 1);
}

void OracleGroupNormSwishGrad(HostCall& call) {
  const Host& x = call.In("x");
  Host* const dgamma = Wanted(call, "dgammaOut", call.Flag("dgammaIsRequire"));
  Host* const dbeta = Wanted(call, "dbetaOut", call.Flag("dbetaIsRequire"));
  const Places p = norm::GroupPlaces(x.dims[0], x.dims[1], InnerOf(x.dims), call.Int("numGroups"));
  Unit unit{RealsOf(call, "gamma"), RealsOf(call, "beta")};
  unit.swish = true;
  unit.swish_scale = Rounded(call.Real("swishScale"), false);
  const norm::Gradients g =
      norm::GradientsOf(RealsOf(call.In("dy")), RealsOf(x), p, RealsOf(call.In("mean")), RealsOf(call.In("rstd")), unit, false);
  PutGradients(g, false, 0, &call.Out("dxOut"), dgamma, dbeta);
}

// ---- InstanceNorm ----

void SampleInstanceNorm(Calls& calls) {
  const auto add = [&](DType t, const Dims& dims, const char* format, double eps) {
    const bool last = std::string_view(format).substr(0, 4) == "NHWC";
    const Dims statistics = last ? Dims{dims[0], 1, 1, dims[3]} : Dims{dims[0], dims[1], 1, 1};
    const int64_t channels = dims[last ? 3 : 1];
    return &calls.Add({In(t, dims), In(t, {channels}), In(t, {channels}), Text(format), RealArg(eps), Out(t, dims), Out(t, statistics),
                       Out(t, statistics)});
  };
  for (DType t : {F32, F16}) {
    for (const char* format : {"NCHW", "NHWC", "NHWCx"}) {
      add(t, {2, 5, 6, 7}, format, 1e-5);
      add(t, {3, 4, 1, 2}, format, 1e-3);
    }
    add(t, {0, 5, 6, 7}, "NCHW", 1e-5);
  }
  add(F32, {2, 4, 130, 140}, "NCHW", 1e-5);
}

void OracleInstanceNorm(HostCall& call) {
  const Host& in = call.In("x");
  if (in.size() == 0) {
    for (const char* arg : {"y", "mean", "variance"}) Untouched(call.Out(arg));
    return;
  }
  const bool last = call.Text("dataFormat").substr(0, 4) == "NHWC";
  const int64_t channels = in.dims[last ? 3 : 1], samples = in.dims[0], inner = in.size() / samples / channels;
  const auto at = [&](int64_t i) { return last ? std::pair(i / (inner * channels), i % channels) : std::pair(i / (inner * channels), i / inner % channels); };
  Places p{samples * channels, channels, {}, {}};
  for (int64_t i = 0; i < in.size(); ++i) {
    const auto [n, c] = at(i);
    p.row.push_back(n * channels + c);
    p.coefficient.push_back(c);
  }
  const Reals x = RealsOf(in);
  const norm::Moments m = norm::MomentsOf(x, p, true);
  PutNorm(x, p, m, norm::ReciprocalRoots(m.variance, Rounded(call.Real("eps"), false)), {RealsOf(call, "gamma"), RealsOf(call, "beta")}, false,
          &call.Out("y"), &call.Out("mean"), nullptr, &call.Out("variance"));
}

// ---- BatchNorm ----

// Channels along an axis; every channel is a row with one coefficient.
Places ChannelPlaces(const Host& x, int axis) {
  Places p{x.dims[axis], x.dims[axis], {}, {}};
  for (int64_t i = 0; i < x.size(); ++i) {
    const int64_t c = x.Position(i)[axis];
    p.row.push_back(c);
    p.coefficient.push_back(c);
  }
  return p;
}
TestArg Tagged(TestArg arg, Format format) {
  arg.spec.tensor.format = format;
  return arg;
}
Format FormatOf(int rank) { return rank == 5 ? Format::kNCDHW : rank == 4 ? Format::kNCHW : rank == 3 ? Format::kNCL : Format::kND; }

void SampleBatchNorm(Calls& calls) {
  const auto add = [&](DType t, DType v, const Dims& dims, bool training, double eps = 1e-5, Values values = {}, int axis = 1,
                       Format format = Format::kUndefined) {
    if (format == Format::kUndefined) format = FormatOf(dims.rank());
    const Dims vector = {dims[axis]};
    return &calls.Add({Tagged(In(t, dims, values), format), In(v, vector), In(v, vector), In(v, vector), In(v, vector, Between(0.5, 2)),
                       Flag(training), RealArg(0.25), RealArg(eps), Tagged(Out(t, dims), format), Out(v, vector), Out(v, vector)});
  };
  for (DType t : {F32, F16, BF16, F64}) {
    for (DType v : {t, F32}) {
      add(t, v, {4, 5}, true);
      add(t, v, {3, 2, 37}, true);
      add(t, v, {2, 3, 5, 7}, false);
      add(t, v, {2, 3, 4, 2, 3}, true);
    }
    add(t, t, {2, 3, 5, 7}, true, 0, Hostile());
    add(t, t, {2, 3, 5, 7}, false, 1e-3, Hostile());
    add(t, t, {2, 3, 5}, true, 0, Given({Number(2)}));
    add(t, t, {1, 3}, true, 1e-3);  // one number each: no unbiased variance
    add(t, t, {0, 3, 4}, true);
    add(t, t, {3, 2, 50}, true, 1e-5, Between(500, 501));
  }
  add(F16, BF16, {2, 3, 20}, true);
  add(BF16, F16, {2, 3, 20}, false);
  add(F32, F16, {2, 3, 20}, true);
  add(F32, F32, {2, 3, 5, 7}, true, 1e-5, {}, 3, Format::kNHWC);
  add(F32, F32, {2, 3, 5, 4, 6}, false, 1e-5, {}, 4, Format::kNDHWC);
  add(F32, F32, {2, 3, 2, 2, 2, 2, 2}, true, 1e-5, {}, 1, Format::kNCHW);
  add(F32, F32, {8, 6, 40, 50}, true);
  add(BF16, F32, {2, 16, 92, 90}, true);  // enough channels that each is read twice in a row
  add(F32, F32, {2, 3, 150, 150}, true);
  add(F32, F32, {9000, 4}, true);
  for (bool training : {true, false}) {
    TestCall& none = *add(F32, F32, {4, 5, 20}, training);
    for (int i : {1, 2, 3, 4}) none.args[i] = Null();
    if (!training) none.args[9] = none.args[10] = Null();
    add(F32, F32, {4, 5, 20}, training)->args[3] = Null();
    add(F32, F32, {4, 5, 20}, training)->args[4] = Null();
    add(F32, F32, {4, 5, 20}, training)->same = {{8, 0}};
  }
}

void OracleBatchNorm(HostCall& call) {
  const Host& input = call.In("input");
  const bool training = call.Flag("training");
  const bool empty = input.size() == 0;
  Host* const save_mean = Wanted(call, "saveMean", training || empty);
  Host* const save_invstd = Wanted(call, "saveInvstd", training || empty);
  Host* const running_mean = Wanted(call, "runningMean");
  Host* const running_var = Wanted(call, "runningVar");
  const auto keep = [&](Host* out, const char* arg) {
    if (out) Put(*out, RealsOf(call.In(arg)), {});
  };
  if (empty || !training) {
    keep(running_mean, "runningMean");
    keep(running_var, "runningVar");
  }
  if (empty) {
    if (save_mean) Fill(*save_mean, 0);
    if (save_invstd) Fill(*save_invstd, kNaN);
    return;
  }
  const bool wide = IsWide(input);
  const Real eps = Rounded(call.Real("eps"), wide);
  int axis = 1;
  for (const auto& [format, rank] : {std::pair(Format::kNHWC, 4), std::pair(Format::kNDHWC, 5)}) {
    if (call.FormatOf("input") == format && input.dims.rank() == rank) axis = rank - 1;
  }
  const Places p = ChannelPlaces(input, axis);
  const Reals x = RealsOf(input);
  const Unit unit{RealsOf(call, "weight"), RealsOf(call, "bias")};
  norm::Moments m = norm::MomentsOf(x, p, true);
  if (!training) {
    m.mean = running_mean ? RealsOf(call.In("runningMean")) : Reals(p.rows, 0);
    m.variance = running_var ? RealsOf(call.In("runningVar")) : Reals(p.rows, 1);
  }
  Reals rstd = norm::ReciprocalRoots(m.variance, eps);
  for (int64_t r = 0; r < p.rows; ++r) {
    if (training && eps == 0 && m.variance[r] == 0) rstd[r] = 0;
  }
  PutNorm(x, p, m, rstd, unit, wide, &call.Out("output"), save_mean, save_invstd, nullptr);
  if (!training) return;
  const Real momentum = Rounded(call.Real("momentum"), wide);
  const auto update = [&](Host* out, const char* arg, auto&& value_of) {
    if (!out) return;
    const Reals before = RealsOf(call.In(arg));
    Reals after, slack;
    for (int64_t r = 0; r < p.rows; ++r) {
      const Real value = value_of(r);
      after.push_back((1 - momentum) * before[r] + momentum * value);
      const Real one = UnitOf(wide) * 4 * (std::fabs(before[r]) + std::fabs(value)) + SumError(p.count()) * m.largest[r] * (1 + m.largest[r]);
      slack.push_back(std::isfinite(one) ? one : 0);
    }
    Put(*out, after, slack);
  };
  const Real n = p.count();
  update(running_mean, "runningMean", [&](int64_t r) { return m.mean[r]; });
  update(running_var, "runningVar", [&](int64_t r) { return n == 1 ? kNaN : m.variance[r] * (n / (n - 1)); });
}

void SampleBatchNormBackward(Calls& calls) {
  const bool fast = calls.op().contract.args().size() == 14;
  const auto add = [&](DType t, DType v, DType out, const Dims& dims, bool training, Checked<bool> mask = {true, true, true},
                       int axis = 1, Format format = Format::kUndefined) {
    if (format == Format::kUndefined) format = FormatOf(dims.rank());
    const Dims vector = {dims[axis]};
    std::vector<TestArg> args = {Tagged(In(t, dims), format), Tagged(In(t, dims), format), In(v, vector), In(v, vector),
                                 In(v, vector, Between(0.5, 2)), In(v, vector), In(v, vector, Between(0.5, 2)), Flag(training),
                                 RealArg(1e-3), Bools(mask)};
    if (fast) args.push_back(Int(0));
    args.insert(args.end(), {Tagged(Out(t, dims), format), Out(out, vector), Out(out, vector)});
    return &calls.Add(args);
  };
  const size_t first_out = fast ? 11 : 10;
  for (DType t : {F32, F16, BF16, F64}) {
    for (DType v : {t, F32}) {
      add(t, v, F32, {4, 5}, true);
      add(t, v, v, {3, 2, 37}, true);
      add(t, v, v, {2, 3, 5, 7}, false);
    }
  }
  add(F32, F32, F32, {2, 3, 4, 3, 2}, true);
  if (!fast) add(F32, F32, F32, {2, 3, 5, 7}, true, {true, true, true}, 3, Format::kNHWC);
  add(F32, F32, F32, {8, 6, 40, 50}, true);
  add(BF16, F32, F32, {2, 16, 92, 90}, true);  // enough channels that each is read twice in a row
  add(F32, F32, F32, {2, 3, 150, 150}, false);
  add(F32, F32, F32, {9000, 4}, true);
  add(F32, F32, F32, {3, 4, 20}, true, {true, false, false});
  add(F32, F32, F32, {3, 4, 20}, true, {false, true, false});
  add(F32, F32, F32, {3, 4, 20}, false, {false, false, true});
  add(F32, F32, F32, {3, 4, 20}, false, {false, false, false});
  add(F32, F32, F32, {0, 4, 20}, true);
  add(F32, F32, F32, {3, 4, 20}, true)->same = {{static_cast<int>(first_out), 0}};
  for (bool training : {true, false}) {
    TestCall& none = *add(F32, F32, F16, {4, 5, 20}, training);
    for (int i : {2, 3, 4, 5, 6}) none.args[i] = Null();
    none.args[first_out + 1] = Out(BF16, {5});
    none.args[first_out + 2] = Out(BF16, {5});
  }
  TestCall& unread = *add(F32, F32, F32, {3, 4, 20}, false);  // what training gave need not be there
  unread.args[5] = In(F32, {0});
  unread.args[6] = In(F32, {0});
}

void OracleBatchNormBackward(HostCall& call) {
  const Checked<bool> mask = call.Bools("outputMask");
  Host* const dx = Wanted(call, "gradInput", mask[0]);
  Host* const dgamma = Wanted(call, "gradWeight", mask[1]);
  Host* const dbeta = Wanted(call, "gradBias", mask[2]);
  const Host& input = call.In("input");
  if (input.size() == 0) {
    for (Host* out : {dx, dgamma, dbeta}) {
      if (out) Fill(*out, 0);
    }
    return;
  }
  const bool fast = call.inputs.size() == 14;
  const int axis = !fast && call.FormatOf("input") == Format::kNHWC && input.dims.rank() == 4 ? 3 : 1;
  const Places p = ChannelPlaces(input, axis);
  const bool training = call.Flag("training");
  const bool wide = IsWide(input);
  const auto given = [&](const char* arg, Real otherwise) {
    return call.Has(arg) ? RealsOf(call.In(arg)) : Reals(p.rows, otherwise);
  };
  const Reals mean = training ? given("saveMean", 0) : given("runningMean", 0);
  const Reals rstd = training ? given("saveInvstd", 1) : norm::ReciprocalRoots(given("runningVar", 1), Rounded(call.Real("eps"), wide));
  const norm::Gradients g = norm::GradientsOf(RealsOf(call.In("gradOut")), RealsOf(input), p, mean, rstd, {RealsOf(call, "weight"), {}}, !training);
  PutGradients(g, wide, static_cast<Real>(input.size()), dx, dgamma, dbeta);
}

// ---- SyncBatchNorm ----

void SampleBatchNormStats(Calls& calls) {
  for (const auto& [t, s] : {std::pair(F32, F32), std::pair(F16, F32), std::pair(BF16, F32), std::pair(F64, F64), std::pair(F64, F32)}) {
    for (const Dims& dims : {Dims{4, 5}, Dims{3, 2, 37}, Dims{2, 3, 5, 7}, Dims{2, 3, 2, 2, 2}, Dims{0, 3, 4}}) {
      calls.Add({In(t, dims), RealArg(1e-5), Out(s, {dims[1]}), Out(s, {dims[1]})});
    }
    calls.Add({In(t, {3, 2, 50}, Between(500, 501)), RealArg(0), Out(s, {2}), Out(s, {2})});
    calls.Add({In(t, {3, 2, 5}, Hostile()), RealArg(0), Out(s, {2}), Out(s, {2})});
  }
  calls.Add({In(F32, {4, 3, 100, 100}), RealArg(1e-5), Out(F32, {3}), Out(F32, {3})});
}

void OracleBatchNormStats(HostCall& call) {
  const Host& input = call.In("input");
  if (input.size() == 0) {
    Fill(call.Out("mean"), 0);
    Fill(call.Out("invstd"), kNaN);
    return;
  }
  const Places p = ChannelPlaces(input, 1);
  const Reals x = RealsOf(input);
  const norm::Moments m = norm::MomentsOf(x, p, true);
  PutNorm(x, p, m, norm::ReciprocalRoots(m.variance, Rounded(call.Real("eps"), IsWide(input))), {}, IsWide(input), nullptr,
          &call.Out("mean"), &call.Out("invstd"), nullptr);
}

void SampleBatchNormElemt(Calls& calls) {
  const auto add = [&](DType t, DType v, DType out, const Dims& dims, Values values = {}) {
    return &calls.Add({In(t, dims, values), In(v, {dims[1]}), In(v, {dims[1]}), In(v, {dims[1]}), In(v, {dims[1]}, Between(0.5, 2)),
                       RealArg(1e-5), Out(out, dims)});
  };
  for (DType t : {F32, F16, BF16, F64}) {
    add(t, t, t, {4, 5});
    add(t, F32, t, {2, 3, 5, 7});
    add(t, t, t, {2, 3, 50}, Hostile());
    add(F32, F32, t, {2, 3, 2, 3, 3});
    add(t, t, t, {0, 3});
  }
  add(F32, F32, F32, {4, 5})->args[1] = Null();
  add(F32, F32, F32, {4, 5})->args[2] = Null();
  add(F32, F32, F32, {3, 4, 100, 100});
  add(F32, F32, F32, {3, 4, 10})->same = {{6, 0}};
}

void OracleBatchNormElemt(HostCall& call) {
  const Host& input = call.In("input");
  if (input.size() == 0) return;
  const Places p = ChannelPlaces(input, 1);
  norm::Moments m{RealsOf(call.In("mean")), {}, Reals(p.rows)};
  PutNorm(RealsOf(input), p, m, RealsOf(call.In("invstd")), {RealsOf(call, "weight"), RealsOf(call, "bias")}, IsWide(input), &call.Out("output"),
          nullptr, nullptr, nullptr);
}

void SampleGatherStats(Calls& calls) {
  const auto add = [&](DType input, DType v, DType out, int64_t ranks, int64_t channels) {
    return &calls.Add({In(input, {2, channels, 3}), In(v, {ranks, channels}), In(v, {ranks, channels}, Between(0.5, 2)), In(v, {channels}),
                       In(v, {channels}, Between(0.5, 2)), RealArg(0.25), RealArg(1e-5), In(v, {ranks}, Whole(1, 9)), Out(out, {channels}),
                       Out(out, {channels})});
  };
  for (DType t : {F32, F16, BF16, F64}) {
    add(t, t, t, 3, 5);
    add(t, F32, F32, 2, 4);
    add(F32, t, F32, 4, 7);
    add(F32, F32, t, 1, 3);
  }
  add(F32, F32, F32, 0, 5);
  add(F32, F32, F32, 2, 3000);
  add(F32, F32, F32, 1, 3)->args[7] = In(F32, {1}, Whole(1, 1));  // a single number in all
  TestCall& none = *add(F32, F32, F32, 3, 5);
  none.args[3] = none.args[4] = Null();
  add(F32, F32, F32, 3, 5)->args[3] = Null();  // then the other one stays, too
  add(F32, F32, F32, 3, 5)->args[4] = Null();
  add(F32, F32, F32, 3, 5)->args[0] = In(F32, {0, 5});
}

// Writes running statistics: what was before, what comes in, and how far that may be off.
void PutRunning(HostCall& call, const char* arg, Real momentum, bool wide, const Reals& values, const Reals& errors) {
  const Reals before = RealsOf(call.In(arg));
  Reals after, slack;
  for (size_t c = 0; c < before.size(); ++c) {
    after.push_back((1 - momentum) * before[c] + momentum * values[c]);
    slack.push_back(UnitOf(wide) * 4 * (std::fabs(before[c]) + std::fabs(values[c])) + errors[c]);
    if (!std::isfinite(slack.back())) slack.back() = 0;
  }
  Put(call.Out(arg), after, slack);
}

void OracleGatherStats(HostCall& call) {
  const Host &mean = call.In("mean"), &invstd = call.In("invstd"), &counts = call.In("counts");
  const int64_t ranks = mean.dims[0], channels = mean.dims[1];
  bool wide = false;
  for (const auto& hosts : call.inputs) {
    for (const Host& host : hosts) wide = wide || host.dtype == F64;
  }
  for (const char* arg : {"meanAll", "invstdAll"}) wide = wide || IsWide(call.Out(arg));
  const bool updates = call.Has("runningMean") && ranks > 0;
  if (!updates) {
    for (const char* arg : {"runningMean", "runningVar"}) {
      if (call.Has(arg)) Put(call.Out(arg), RealsOf(call.In(arg)), {});
    }
  }
  if (ranks == 0) {
    Fill(call.Out("meanAll"), 0);
    Fill(call.Out("invstdAll"), kNaN);
    return;
  }
  const Real eps = Rounded(call.Real("eps"), wide);
  Real n = 0;
  for (int64_t k = 0; k < ranks; ++k) n += counts.real(k);
  Reals means(channels), variances(channels), unbiased(channels), rstd(channels), sizes(channels);
  for (int64_t c = 0; c < channels; ++c) {
    for (int64_t k = 0; k < ranks; ++k) means[c] += mean.real(k * channels + c) * counts.real(k) / n;
    Real sum = 0;
    for (int64_t k = 0; k < ranks; ++k) {
      const Real s = invstd.real(k * channels + c), away = mean.real(k * channels + c) - means[c];
      sum += counts.real(k) * (1 / (s * s) - eps + away * away);
    }
    variances[c] = sum / n;
    unbiased[c] = n == 1 ? kNaN : sum / (n - 1);
    rstd[c] = 1 / std::sqrt(variances[c] + eps);
    sizes[c] = 0x1p-45L * (1 + variances[c]);
  }
  if (n == 1 && variances[0] != 0) {
    for (int64_t c = 0; c < channels; ++c) unbiased[c] = variances[c] > 0 ? std::numeric_limits<Real>::infinity() : -std::numeric_limits<Real>::infinity();
  }
  Put(call.Out("meanAll"), means, sizes);
  Put(call.Out("invstdAll"), rstd, sizes);
  if (!updates) return;
  const Real momentum = Rounded(call.Real("momentum"), wide);
  PutRunning(call, "runningMean", momentum, wide, means, sizes);
  if (call.Has("runningVar")) PutRunning(call, "runningVar", momentum, wide, unbiased, sizes);
}

void SampleSyncGatherStats(Calls& calls) {
  const auto add = [&](DType t, DType count, DType out, int64_t ranks, int64_t channels) {
    calls.Add({In(t, {ranks, channels}), In(t, {ranks, channels}, Between(20, 40)), In(count, {ranks}, Whole(2, 9)), In(t, {channels}),
               In(t, {channels}, Between(0.5, 2)), RealArg(0.25), RealArg(static_cast<double>(1e-5f)), Out(out, {channels}), Out(out, {channels})});
  };
  for (DType t : {F32, F16, BF16}) {
    add(t, DType::kI32, t, 3, 5);
    add(F32, t, F32, 2, 4);
    add(t, F32, F32, 4, 7);
    add(F32, F32, t, 1, 3);
  }
  add(F32, DType::kI32, F32, 2, 0);
  add(F32, DType::kI32, F32, 2, 3000);
  // More square than there can be: the variance is no less than 0.
  calls.Add({In(F32, {1, 1}, Given({Number(8)})), In(F32, {1, 1}, Given({Number(15)})), In(F32, {1}, Given({Number(4)})), In(F32, {1}),
             In(F32, {1}), RealArg(0.5), RealArg(1), Out(F32, {1}), Out(F32, {1})});
}

void OracleSyncGatherStats(HostCall& call) {
  const Host &sum = call.In("totalSum"), &square = call.In("totalSquareSum"), &count = call.In("sampleCount");
  const int64_t ranks = sum.dims[0], channels = sum.dims[1];
  Real n = 0;
  for (int64_t k = 0; k < ranks; ++k) n += std::trunc(count.real(k));
  Reals means, unbiased, rstd, sizes;
  const Real eps = static_cast<float>(call.Real("eps"));
  for (int64_t c = 0; c < channels; ++c) {
    Real s = 0, q = 0;
    for (int64_t k = 0; k < ranks; ++k) {
      s += sum.real(k * channels + c);
      q += square.real(k * channels + c);
    }
    const Real variance = std::max<Real>(0, q / n - (s / n) * (s / n));
    means.push_back(s / n);
    unbiased.push_back(variance * n / (n - 1));
    rstd.push_back(1 / std::sqrt(variance + eps));
    sizes.push_back(0x1p-40L * (1 + q));
  }
  Put(call.Out("batchMean"), means, sizes);
  Put(call.Out("batchInvstd"), rstd, sizes);
  const Real momentum = static_cast<float>(call.Real("momentum"));
  PutRunning(call, "mean", momentum, false, means, sizes);
  PutRunning(call, "variance", momentum, false, unbiased, sizes);
}

void SampleBatchNormReduce(Calls& calls) {
  for (DType t : {F32, F16, BF16}) {
    calls.Add({Tagged(In(t, {3, 4, 5, 6}), Format::kNCHW), Out(F32, {4}), Out(F32, {4})});
    calls.Add({Tagged(In(t, {3, 4, 1, 2}), Format::kNCHW), Out(F32, {4}), Out(F32, {4})});
    calls.Add({Tagged(In(t, {3, 5, 6, 4}, Between(100, 101)), Format::kNHWC), Out(F32, {4}), Out(F32, {4})});
    calls.Add({Tagged(In(t, {0, 4, 5, 6}), Format::kNCHW), Out(F32, {4}), Out(F32, {4})});
  }
  calls.Add({Tagged(In(F32, {3, 4, 100, 130}), Format::kNCHW), Out(F32, {4}), Out(F32, {4})});
}

void OracleBatchNormReduce(HostCall& call) {
  const Host& x = call.In("x");
  Host &sum = call.Out("sum"), &square = call.Out("squareSum");
  Fill(sum, 0);
  Fill(square, 0);
  sum.slack = square.slack = Reals(sum.size());
  for (int64_t i = 0; i < x.size(); ++i) {
    const int64_t c = x.Position(i)[call.FormatOf("x") == Format::kNHWC ? 3 : 1];
    const Real v = x.real(i);
    sum[c] += v;
    square[c] += v * v;
    sum.slack[c] += 0x1p-40L * std::fabs(v);
    square.slack[c] += 0x1p-40L * v * v;
  }
}

void SampleReduceBackward(Calls& calls) {
  const auto add = [&](DType t, DType v, DType out, const Dims& dims, bool input_g, bool weight_g, bool bias_g, Values values = {}) {
    const Dims vector = {dims[1]};
    return &calls.Add({In(t, dims), In(t, dims, values), In(v, vector), In(v, vector, Between(0.5, 2)), In(v, vector), Flag(input_g),
                       Flag(weight_g), Flag(bias_g), Out(out, vector), Out(out, vector), Out(out, vector), Out(out, vector)});
  };
  for (DType t : {F32, F16, BF16, F64}) {
    add(t, t, t, {4, 5}, true, true, true);
    add(t, F32, F32, {3, 2, 37}, true, true, true);
    add(F32, t, F32, {2, 3, 5, 7}, true, true, true);
    add(F32, F32, t, {2, 3, 2, 3, 3}, true, true, true);
  }
  add(F32, F32, F32, {3, 4, 20}, true, false, false);
  add(F32, F32, F32, {3, 4, 20}, false, true, false);
  add(F32, F32, F32, {3, 4, 20}, false, false, true);
  add(F32, F32, F32, {3, 4, 20}, false, false, false);
  add(F32, F32, F32, {0, 4, 20}, true, true, true);
  add(F32, F32, F32, {3, 4, 100, 100}, true, true, true);
  TestCall& few = *add(F32, F32, F32, {3, 4, 20}, true, false, false);
  few.args[4] = few.args[10] = few.args[11] = Null();
}

void OracleReduceBackward(HostCall& call) {
  const Host &grad = call.In("gradOut"), &input = call.In("input"), &mean = call.In("mean"), &invstd = call.In("invstd");
  const int64_t channels = input.dims[1];
  Reals dy(channels), dy_size(channels), xmu(channels), xmu_size(channels), weight(channels), weight_size(channels);
  const Real error = IsWide(input) ? 0x1p-53L * (8 + static_cast<Real>(input.size())) : 0x1p-24L * 2;
  for (int64_t i = 0; i < input.size(); ++i) {
    const int64_t c = input.Position(i)[1];
    const Real one = grad.real(i) * (input.real(i) - mean.real(c));
    dy[c] += grad.real(i);
    dy_size[c] += error * std::fabs(grad.real(i));
    xmu[c] += one;
    xmu_size[c] += error * std::fabs(one);
  }
  for (int64_t c = 0; c < channels; ++c) {
    weight[c] = input.size() ? xmu[c] * invstd.real(c) : 0;
    weight_size[c] = input.size() ? xmu_size[c] * std::fabs(invstd.real(c)) : 0;
  }
  if (Host* const out = Wanted(call, "sumDy", call.Flag("inputG"))) Put(*out, dy, dy_size);
  if (Host* const out = Wanted(call, "sumDyXmu", call.Flag("inputG"))) Put(*out, xmu, xmu_size);
  if (Host* const out = Wanted(call, "gradWeight", call.Flag("weightG"))) Put(*out, weight, weight_size);
  if (Host* const out = Wanted(call, "gradBias", call.Flag("biasG"))) Put(*out, dy, dy_size);
}

// ---- Norm, Renorm ----

Reals Magnitudes(const Host& x) {
  Reals magnitudes;
  for (const Number& n : x.values) magnitudes.push_back(n.imag() == 0 ? std::fabs(n.real()) : std::hypot(n.real(), n.imag()));
  return magnitudes;
}

// Of the numbers whose `row` is the same.
Reals PNorms(const Reals& magnitudes, const Checked<int64_t>& row, int64_t rows, Real p) {
  const Real inf = std::numeric_limits<Real>::infinity();
  Reals norms(rows, p == -inf ? inf : 0);
  for (size_t i = 0; i < magnitudes.size(); ++i) {
    Real& norm = norms[row[i]];
    const Real m = magnitudes[i];
    if (p == inf) norm = std::isnan(m) || std::isnan(norm) ? kNaN : std::max(norm, m);
    else if (p == -inf) norm = std::isnan(m) || std::isnan(norm) ? kNaN : std::min(norm, m);
    else norm += p == 0 ? m != 0 : std::pow(m, p);
  }
  if (p == 0 || std::isinf(p)) return norms;
  for (Real& norm : norms) norm = std::pow(norm, 1 / p);
  return norms;
}

// Which result every element belongs to; `reduced` says it of an axis.
template <class Reduced>
Checked<int64_t> ResultOf(const Host& x, const Reduced& reduced) {
  Checked<int64_t> results;
  for (int64_t i = 0; i < x.size(); ++i) {
    const Checked<int64_t> at = x.Position(i);
    int64_t result = 0;
    for (int k = 0; k < x.dims.rank(); ++k) {
      if (!reduced(k)) result = result * x.dims[k] + at[k];
    }
    results.push_back(result);
  }
  return results;
}

// p is FLOAT beside all but DOUBLE.
Real NumberBeside(const HostCall& call, const char* arg, const Host& x) {
  return Rounded(static_cast<double>(call.Scalar(arg).real()), x.dtype == F64 || x.dtype == DType::kC128);
}

Real Relative(const Host& x, Real p) {
  const bool wide = x.dtype == F64 || x.dtype == DType::kC128;
  const Real root = p == 0 || std::isinf(p) ? 0 : 1 / std::fabs(p);
  const Real magnitude = IsComplex(x.dtype) ? (wide ? 0x1p-51L : 0x1p-22L) : 0;  // of a complex number
  return magnitude + 0x1p-50L * (4 + std::fabs(p == p && !std::isinf(p) ? p : 0) + 4 * root);
}

void SampleNorm(Calls& calls) {
  const bool linalg = std::string_view(calls.op().contract.op()) == "aclnnLinalgVectorNorm";
  constexpr DType kI64 = DType::kI64;
  const auto add = [&](DType t, DType out, const Dims& dims, Checked<int64_t> axes, bool keep, TestArg p, Values values = {}) {
    Dims left;
    for (int i = 0; i < dims.rank(); ++i) {
      const bool gone = axes.empty() || std::any_of(axes.begin(), axes.end(), [&](int64_t a) { return a == i || a + dims.rank() == i; });
      if (!gone) left.push_back(dims[i]);
      else if (keep) left.push_back(1);
    }
    std::vector<TestArg> args = {In(t, dims, values), std::move(p), Ints(axes), Flag(keep)};
    if (linalg) args.push_back(Int(static_cast<int64_t>(out)));
    args.push_back(Out(out, left));
    calls.Add(args);
  };
  const Real inf = std::numeric_limits<Real>::infinity();
  for (Real p : {Real(0), Real(1), Real(2), Real(3), Real(0.5), Real(-1), Real(-2.5), inf, -inf}) {
    for (DType t : {F32, F16, BF16, F64}) {
      add(t, t, {2, 3, 5}, {1}, true, Num(F64, p));
      add(t, t, {4, 37}, {}, false, Num(F32, p));
      add(t, t, {3, 4}, {-1}, false, Num(F32, p), Hostile());
    }
    for (DType t : {DType::kC64, DType::kC128}) add(t, t == DType::kC64 ? F32 : F64, {3, 9}, {0, 1}, true, Num(F64, p));
    add(F32, F32, {3, 0}, {1}, false, Num(F64, p));
  }
  add(F32, F32, {}, {}, false, Num(kI64, 2));
  add(F32, F32, {}, {0}, true, Num(kI64, 3));
  add(F32, F32, {40000}, {0}, false, Num(kI64, 2));
  add(F32, F32, {70, 300}, {0}, false, Num(kI64, 2));
  for (DType t : {F32, F16, BF16}) {
    add(t, F64, {2, 7}, {1}, false, Num(F32, 2));
    add(t, F32, {2, 7}, {1}, false, Num(F32, 2));
  }
  add(F64, F32, {2, 7}, {1}, false, Num(F32, 2));
  add(DType::kC128, F32, {2, 7}, {1}, false, Num(F32, 2));
  add(DType::kC64, F64, {2, 7}, {1}, false, Num(F32, 2));
  if (linalg) {
    for (DType out : {DType::kC64, DType::kC128}) add(DType::kC64, out, {2, 7}, {1}, false, Num(F32, 2));
    add(DType::kC64, DType::kC64, {2, 0}, {1}, false, Num(F32, 2));
  } else {
    add(F32, F16, {2, 7}, {1}, false, Num(F32, 2));
    add(F16, BF16, {2, 7}, {1}, false, Num(F32, 2));
  }
}

void OracleNorm(HostCall& call) {
  const bool linalg = call.HasArg("ord");
  const Host& self = call.In("self");
  Host& out = call.Out("out");
  if (self.size() == 0) return Fill(out, 0);
  const Real p = NumberBeside(call, linalg ? "ord" : "pScalar", self);
  const Checked<int64_t>& axes = call.Ints(linalg ? "dims" : "dim");
  const auto reduced = [&](int k) {
    return axes.empty() || std::any_of(axes.begin(), axes.end(), [&](int64_t a) { return a == k || a + self.dims.rank() == k; });
  };
  const Reals norms = PNorms(Magnitudes(self), ResultOf(self, reduced), out.size(), p);
  Reals slack;
  for (Real norm : norms) slack.push_back(std::isfinite(norm) ? norm * Relative(self, p) : 0);
  Put(out, norms, slack);
}

void SampleRenorm(Calls& calls) {
  const bool in_place = std::string_view(calls.op().contract.op()) == "aclnnInplaceRenorm";
  const auto add = [&](DType t, const Dims& dims, int64_t dim, Real p, Real most, Values values = {}) -> TestCall* {
    std::vector<TestArg> args = {In(t, dims, values), Num(F64, p), Int(dim), Num(F32, most)};
    if (!in_place) args.push_back(Out(t, dims));
    return &calls.Add(args);
  };
  const Real inf = std::numeric_limits<Real>::infinity();
  for (DType t : {F32, F16, BF16, F64, DType::kC64, DType::kC128}) {
    for (Real p : {Real(0), Real(1), Real(2), Real(2.5), inf}) add(t, {5, 3, 4}, 0, p, 3.3L);
    add(t, {5, 3, 4}, -2, 2, 4);
    add(t, {5, 0}, 0, 2, 4);
  }
  const Values numbers = Given({1, 1, 1, 2, 2, 2, 3, 3, 3});
  add(F32, {3, 3}, 0, 1, 5, numbers);
  add(F32, {2, 2}, 0, 2, 1, Given({inf, 1, kNaN, 7}));
  add(F32, {40, 900}, 1, 2, 5);
  if (!in_place) add(F32, {5, 6}, 1, 2, 2)->same = {{4, 0}};
}

void OracleRenorm(HostCall& call) {
  const bool in_place = call.HasArg("selfRef");
  const Host& self = call.In(in_place ? "selfRef" : "self");
  Host& out = call.Out(in_place ? "selfRef" : "out");
  const bool wide = self.dtype == F64 || self.dtype == DType::kC128;
  const int64_t dim = call.Int("dim") < 0 ? call.Int("dim") + self.dims.rank() : call.Int("dim");
  const Checked<int64_t> slices = ResultOf(self, [&](int k) { return k != dim; });
  const Real p = NumberBeside(call, "p", self), most = NumberBeside(call, "maxNorm", self);
  const Reals norms = PNorms(Magnitudes(self), slices, self.dims[static_cast<int>(dim)], p);
  out.slack.clear();
  for (int64_t i = 0; i < self.size(); ++i) {
    const Real norm = norms[slices[i]];
    const Real factor = norm > most ? most / (norm + 1e-7L) : 1;
    const Number x = self[i];
    out[i] = x.imag() == 0 ? Number(x.real() * factor) : x * factor;
    const Real size = std::abs(x) * factor * (Relative(self, p) + 4 * UnitOf(wide));
    out.slack.push_back(factor == 1 || !std::isfinite(size) ? 0 : size);
  }
}

constexpr Limits kPartial = {.partial = true};

}  // namespace

std::span<const Subject> NormSubjects() {
  static const Subject subjects[] = {
      {"aclnnLayerNorm", SampleLayerNorm, OracleLayerNorm},
      {"aclnnLayerNormWithImplMode", SampleLayerNorm, OracleLayerNorm},
      {"aclnnFastLayerNorm", SampleLayerNorm, OracleLayerNorm},
      {"aclnnLayerNormBackward", SampleLayerNormBackward, OracleLayerNormBackward, kPartial},
      {"aclnnRmsNorm", SampleRmsNorm, OracleRmsNorm, kPartial},
      {"aclnnGemmaRmsNorm", SampleRmsNorm, OracleRmsNorm},
      {"aclnnAddRmsNorm", SampleAddRmsNorm, OracleAddRmsNorm, kPartial},
      {"aclnnInplaceAddRmsNorm", SampleInplaceAddRmsNorm, OracleInplaceAddRmsNorm},
      {"aclnnAddRmsNormCast", SampleAddRmsNormCast, OracleAddRmsNormCast},
      {"aclnnAddLayerNorm", SampleAddLayerNorm, OracleAddLayerNorm, kPartial},
      {"aclnnAddLayerNormGrad", SampleAddLayerNormGrad, OracleAddLayerNormGrad},
      {"aclnnDeepNorm", SampleDeepNorm, OracleDeepNorm},
      {"aclnnDeepNormGrad", SampleDeepNormGrad, OracleDeepNormGrad},
      {"aclnnAdaLayerNorm", SampleAdaLayerNorm, OracleAdaLayerNorm},
      {"aclnnAdaLayerNormV2", SampleAdaLayerNorm, OracleAdaLayerNorm},
      {"aclnnAdaLayerNormBackward", SampleAdaLayerNormBackward, OracleAdaLayerNormBackward},
      {"aclnnNorm", SampleNorm, OracleNorm},
      {"aclnnLinalgVectorNorm", SampleNorm, OracleNorm},
      {"aclnnRenorm", SampleRenorm, OracleRenorm},
      {"aclnnInplaceRenorm", SampleRenorm, OracleRenorm},
      {"aclnnGroupNorm", SampleGroupNorm, OracleGroupNorm},
      {"aclnnGroupNormSilu", SampleGroupNormSilu, OracleGroupNormSilu},
      {"aclnnGroupNormSiluV2", SampleGroupNormSilu, OracleGroupNormSilu},
      {"aclnnGroupNormSwish", SampleGroupNormSwish, OracleGroupNormSwish},
      {"aclnnGroupNormSwishGrad", SampleGroupNormSwishGrad, OracleGroupNormSwishGrad, kPartial},
      {"aclnnInstanceNorm", SampleInstanceNorm, OracleInstanceNorm, kPartial},
      {"aclnnBatchNorm", SampleBatchNorm, OracleBatchNorm, kPartial},
      {"aclnnBatchNormBackward", SampleBatchNormBackward, OracleBatchNormBackward, kPartial},
      {"aclnnFastBatchNormBackward", SampleBatchNormBackward, OracleBatchNormBackward, kPartial},
      {"aclnnBatchNormStats", SampleBatchNormStats, OracleBatchNormStats},
      {"aclnnBatchNormElemt", SampleBatchNormElemt, OracleBatchNormElemt},
      {"aclnnBatchNormGatherStatsWithCounts", SampleGatherStats, OracleGatherStats},
      {"aclnnSyncBatchNormGatherStats", SampleSyncGatherStats, OracleSyncGatherStats},
      {"aclnnBatchNormReduce", SampleBatchNormReduce, OracleBatchNormReduce},
      {"aclnnBatchNormReduceBackward", SampleReduceBackward, OracleReduceBackward, kPartial},
  };
  return subjects;
}

}  // namespace anyacl::harness
