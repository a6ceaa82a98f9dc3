// SPDX-License-Identifier: Apache-2.0
// Copyright The AnyACL Authors
//
// Mixtures of experts by their definitions: orders are those of std::stable_sort, rows are taken one number at a time.
#include <algorithm>
#include <cmath>
#include <numeric>
#include <string_view>

#include "harness/family.h"

namespace anyacl::harness {
namespace {

constexpr DType F32 = DType::kF32, F16 = DType::kF16, BF16 = DType::kBF16, I32 = DType::kI32, I64 = DType::kI64, BOOL = DType::kBool;
constexpr DType kTypes[] = {F32, F16, BF16};
using Reals = Checked<Real>;

Reals SoftmaxOf(const Reals& x) {
  const Real most = *std::max_element(x.begin(), x.end());
  Real sum = 0;
  for (const Real v : x) sum += std::exp(v - most);
  Reals result;
  for (const Real v : x) result.push_back(std::exp(v - most) / sum);
  return result;
}

// Places of the `count` largest, of equal ones the first.
Checked<int64_t> Best(const Reals& values, int64_t count) {
  Checked<int64_t> order(values.size());
  std::iota(order.begin(), order.end(), int64_t{0});
  std::stable_sort(order.begin(), order.end(), [&](int64_t a, int64_t b) { return values[a] > values[b]; });
  order.resize(count);
  return order;
}

// ---- gating ----

// Numbers far enough apart that no rounding changes their order, and some that are equal.
Values Apart(std::mt19937_64& random, int64_t rows, int64_t experts) {
  Checked<Number> numbers;
  for (int64_t r = 0; r < rows; ++r) {
    Checked<Number> row;
    for (int64_t e = 0; e < experts; ++e) row.push_back(static_cast<Real>(e / 2 * 2) / 4 - 3);  // pairs are equal
    std::shuffle(row.begin(), row.end(), random);
    numbers.insert(numbers.end(), row.begin(), row.end());
  }
  return Given(std::move(numbers));
}

void SampleTop(Calls& calls) {
  const bool v2 = std::string_view(calls.op().contract.op()) == "aclnnMoeGatingTopKSoftmaxV2";
  const auto add = [&](DType t, Dims x, int64_t k, bool finished, int64_t renorm = 0, bool flag = false) {
    const int64_t experts = x[x.rank() - 1];
    Dims chosen = x, leading = x;
    chosen[x.rank() - 1] = k;
    leading.resize(x.rank() - 1);
    std::vector<TestArg> args = {In(t, x, Apart(calls.random(), Numel(leading), experts)), finished ? In(BOOL, leading, Whole(0, 1)) : Null(), Int(k)};
    if (v2) args.insert(args.end(), {Int(renorm), Flag(flag)});
    args.insert(args.end(), {Out(t, chosen), Out(I32, chosen)});
    if (v2) args.push_back(flag ? Out(F32, x) : Null());
    else args.push_back(Out(I32, chosen));
    calls.Add(std::move(args));
  };
  for (DType t : kTypes) {
    for (const int64_t renorm : {0, 1}) {
      add(t, {3, 8}, 2, false, renorm, true);
      add(t, {2, 3, 16}, 4, true, renorm, true);
      add(t, {5, 6}, 6, true, renorm);
      add(t, {1, 1}, 1, false, renorm);
    }
  }
  add(F32, {700, 40}, 3, true);
}

void OracleTop(HostCall& call) {
  const Host& x = call.In("x");
  Host &y = call.Out("yOut"), &expert = call.Out("expertIdxOut");
  const int64_t experts = x.dims[x.dims.rank() - 1], k = call.Int("k"), rows = x.size() / experts;
  const bool renorm = call.HasArg("renorm") && call.Int("renorm") == 1;
  for (int64_t r = 0; r < rows; ++r) {
    Reals row;
    for (int64_t e = 0; e < experts; ++e) row.push_back(x.real(r * experts + e));
    const Checked<int64_t> best = Best(row, k);
    Reals chosen = SoftmaxOf(row);
    if (call.HasArg("softmaxResultOutOptional") && call.Has("softmaxResultOutOptional")) {
      Host& all = call.Out("softmaxResultOutOptional");
      for (int64_t e = 0; e < experts && !renorm; ++e) all[r * experts + e] = chosen[e];
      if (renorm) all.values.clear();  // stays as it was
    }
    if (renorm) {
      Reals kept;
      for (const int64_t e : best) kept.push_back(row[e]);
      kept = SoftmaxOf(kept);
      for (int64_t c = 0; c < k; ++c) chosen[best[c]] = kept[c];
    }
    for (int64_t c = 0; c < k; ++c) {
      y[r * k + c] = chosen[best[c]];
      expert[r * k + c] = static_cast<Real>(call.Has("finishedOptional") && call.In("finishedOptional").real(r) != 0 ? experts : best[c]);
      if (call.HasArg("rowIdxOut")) call.Out("rowIdxOut")[r * k + c] = static_cast<Real>(c * rows + r);
    }
  }
}

void SampleGrouped(Calls& calls) {
  const auto add = [&](DType t, int64_t rows, int64_t experts, int64_t k, int64_t best, int64_t groups, int64_t select, int64_t norm, bool bias, bool flag) {
    Checked<Number> biases;
    for (int64_t e = 0; e < experts; ++e) biases.push_back(static_cast<Real>(e * 7 % 5) - 2);
    calls.Add({In(t, {rows, experts}, Apart(calls.random(), rows, experts)), bias ? In(t, {experts}, Given(biases)) : Null(), Int(k), Int(best), Int(groups),
               Int(select), Int(0), Int(norm), Flag(flag), RealArg(2.5), RealArg(1e-3), Out(t, {rows, k}), Out(I32, {rows, k}), flag ? Out(F32, {rows, experts}) : Null()});
  };
  for (DType t : kTypes) {
    for (const int64_t norm : {0, 1}) {
      for (const bool bias : {false, true}) {
        add(t, 3, 16, 4, 2, 4, 0, norm, bias, true);
        add(t, 3, 16, 4, 2, 4, 1, norm, bias, false);
        add(t, 2, 6, 3, 1, 1, 0, norm, bias, true);
      }
    }
  }
}

void OracleGrouped(HostCall& call) {
  const Host& x = call.In("x");
  Host &y = call.Out("yOut"), &expert = call.Out("expertIdxOut");
  const int64_t rows = x.dims[0], experts = x.dims[1], k = call.Int("k"), groups = call.Int("groupCount"), size = experts / groups;
  const bool sigmoid = call.Int("normType") == 1;
  for (int64_t r = 0; r < rows; ++r) {
    Reals n, by, group_scores;
    for (int64_t e = 0; e < experts; ++e) n.push_back(x.real(r * experts + e));
    if (sigmoid) {
      for (Real& v : n) v = 1 / (1 + std::exp(-v));
    } else {
      n = SoftmaxOf(n);
    }
    // What FLOAT makes equal is equal.
    for (int64_t e = 0; e < experts; ++e) {
      const Real rounded = Rounded(F32, n[e]).real(), bias = call.Has("biasOptional") ? call.In("biasOptional").real(e) : 0;
      by.push_back(Rounded(F32, rounded + bias).real());
      if (call.Has("outOut")) call.Out("outOut")[r * experts + e] = n[e];
    }
    for (int64_t g = 0; g < groups; ++g) {
      Reals members(by.begin() + g * size, by.begin() + (g + 1) * size);
      std::sort(members.rbegin(), members.rend());
      group_scores.push_back(call.Int("groupSelectMode") == 1 ? members[0] + members[1] : members[0]);
    }
    const Checked<int64_t> kept = Best(group_scores, call.Int("kGroup"));
    for (int64_t e = 0; e < experts; ++e) {
      if (std::find(kept.begin(), kept.end(), e / size) == kept.end()) by[e] = -1e30L;
    }
    const Checked<int64_t> best = Best(by, k);
    Real sum = static_cast<Real>(call.Real("eps"));
    for (const int64_t e : best) sum += n[e];
    for (int64_t c = 0; c < k; ++c) {
      y[r * k + c] = n[best[c]] * static_cast<Real>(call.Real("routedScalingFactor")) / (sigmoid ? sum : 1);
      y.slack.push_back(std::fabs(y.real(r * k + c)) * 0x1p-22L);
      expert[r * k + c] = static_cast<Real>(best[c]);
    }
  }
}

// ---- routing ----

// Places in the stable order of ids.
Checked<int64_t> OrderOf(const Host& ids) {
  Checked<int64_t> order;
  for (int64_t i = 0; i < ids.size(); ++i) order.push_back(i);
  std::stable_sort(order.begin(), order.end(), [&](int64_t a, int64_t b) { return ids.real(a) < ids.real(b); });
  return order;
}
// Where every place comes in it.
Checked<int64_t> RanksOf(const Host& ids) {
  const Checked<int64_t> order = OrderOf(ids);
  Checked<int64_t> ranks(order.size());
  for (size_t i = 0; i < order.size(); ++i) ranks[order[i]] = static_cast<int64_t>(i);
  return ranks;
}

void CopyRow(const Host& from, int64_t row, Host& to, int64_t to_row) {
  const int64_t width = from.dims[from.dims.rank() - 1];
  for (int64_t i = 0; i < width; ++i) to[to_row * width + i] = from[row * width + i];
}

const Values kExample = Given({1, 0, 0, 2, 1, 1});  // of the operators' page

void SampleInit(Calls& calls) {
  for (DType t : kTypes) {
    for (const int64_t active : {0, 2, 3, 99}) {
      calls.Add({In(t, {3, 5}), In(I32, {3, 2}, Given({0, 3, 1, 4, 2, 5})), In(I32, {3, 2}, kExample), Int(active), Out(t, {std::min<int64_t>(active, 3) * 2, 5}), Out(I32, {6}),
                 Out(I32, {6})});
    }
    calls.Add({In(t, {40, 7}), In(I32, {40, 3}, Permutation()), In(I32, {40, 3}, Whole(0, 9)), Int(40), Out(t, {120, 7}), Out(I32, {120}), Out(I32, {120})});
  }
}

void OracleInit(HostCall& call) {
  const Host &x = call.In("x"), &row = call.In("rowIdx"), &ids = call.In("expertIdx");
  Host &out = call.Out("expandedXOut"), &ranks = call.Out("expandedRowIdxOut"), &sorted = call.Out("expandedExpertIdxOut");
  for (Number& rank : ranks.values) rank = -1;  // of rows that are not named
  const Checked<int64_t> order = OrderOf(ids);
  for (size_t i = 0; i < order.size(); ++i) {
    const int64_t name = static_cast<int64_t>(row.real(order[i]));
    sorted[static_cast<int64_t>(i)] = ids[order[i]];
    ranks[name] = static_cast<Real>(i);
    if (static_cast<int64_t>(i) < out.dims[0]) CopyRow(x, name % x.dims[0], out, static_cast<int64_t>(i));
  }
}

void SampleInit2(Calls& calls) {
  const auto add = [&](DType t, const Dims& x, int64_t k, Values ids, int64_t active, int64_t capacity, int64_t experts, int64_t mode, int64_t flag, bool before) {
    const int64_t places = x[0] * k, kept = active > 0 ? std::min(active, places) : places;
    calls.Add({In(t, x), In(I32, {x[0], k}, ids), Int(active), Int(capacity), Int(experts), Int(mode), Int(flag), Flag(before),
               Out(t, mode ? Dims{experts, capacity, x[1]} : Dims{kept, x[1]}), Out(I32, {places}), mode == 0 && flag ? Out(I32, {experts}) : Null(),
               mode == 1 && before ? Out(I32, {experts}) : Null()});
  };
  for (DType t : kTypes) {
    add(t, {3, 5}, 2, kExample, 0, 0, 3, 0, 2, false);
    add(t, {3, 5}, 2, kExample, 4, 0, 3, 0, 1, false);
    add(t, {3, 5}, 2, kExample, 99, 0, 0, 0, 0, true);
    add(t, {3, 5}, 2, kExample, 0, 2, 3, 1, 0, true);
    add(t, {40, 7}, 3, Whole(-1, 10), 0, 5, 9, 1, 2, false);
    add(t, {40, 7}, 3, Whole(-1, 10), 0, 0, 9, 0, 2, false);
  }
}

void OracleInit2(HostCall& call) {
  const Host &x = call.In("x"), &ids = call.In("expertIdx");
  Host &out = call.Out("expandedXOut"), &ranks = call.Out("expandedRowIdxOut");
  const int64_t k = ids.dims[1], experts = call.Int("expertNumOptional"), capacity = call.Int("expertCapacityOptional"), flag = call.Int("expertTokensCountOrCumsumFlagOptional");
  const bool padded = call.Int("dropPadModeOptional") == 1;
  const Checked<int64_t> places = RanksOf(ids);
  Checked<int64_t> counts(experts);
  for (int64_t f = 0; f < ids.size(); ++f) {
    const int64_t id = static_cast<int64_t>(ids.real(f));
    const bool known = id >= 0 && id < experts;
    // Of its expert, in the order of places.
    const int64_t taken = known ? counts[id]++ : 0;
    int64_t to = places[f];
    if (padded) to = known && taken < capacity ? id * capacity + taken : -1;
    ranks[f] = static_cast<Real>(to);
    if (to >= 0 && to < out.size() / x.dims[1]) CopyRow(x, f / k, out, to);
  }
  if (padded && call.Has("expertTokensBeforeCapacityOutOptional")) {
    for (int64_t e = 0; e < experts; ++e) call.Out("expertTokensBeforeCapacityOutOptional")[e] = static_cast<Real>(counts[e]);
  }
  if (padded || !call.Has("expertTokensCountOrCumsumOutOptional")) return;
  for (int64_t e = 0, all = 0; e < experts; ++e) {
    all += counts[e];
    call.Out("expertTokensCountOrCumsumOutOptional")[e] = static_cast<Real>(flag == 1 ? all : counts[e]);
  }
}

void SamplePermute(Calls& calls) {
  for (DType t : kTypes) {
    for (DType index : {I32, I64}) {
      for (const int64_t number : {0, 4, -2, 99, -99}) {
        const int64_t kept = number > 0 ? std::min<int64_t>(number, 6) : std::max<int64_t>(0, 6 + number);
        calls.Add({In(t, {3, 5}), In(index, {3, 2}, kExample), Int(number), Flag(false), Out(t, {kept, 5}), Out(I32, {6})});
      }
      calls.Add({In(t, {50, 3}), In(index, {50}, Whole(0, 7)), Int(0), Flag(false), Out(t, {50, 3}), Out(I32, {50})});
    }
  }
}

void OraclePermute(HostCall& call) {
  const Host &tokens = call.In("tokens"), &ids = call.In("indices");
  Host &out = call.Out("permuteTokensOut"), &sorted = call.Out("sortedIndicesOut");
  const Checked<int64_t> places = RanksOf(ids);
  const int64_t k = ids.size() / tokens.dims[0];
  for (int64_t f = 0; f < ids.size(); ++f) {
    sorted[f] = static_cast<Real>(places[f]);
    if (places[f] < out.dims[0]) CopyRow(tokens, f / k, out, places[f]);
  }
}

// ---- back ----

// out[t] += scale * (row + bias), a term at a time.
struct Sums {
  explicit Sums(Host& host) : out(host), size(host.size()) {}
  void Add(int64_t at, Real term) {
    out[at] += term;
    size[at] += std::fabs(term);
  }
  void Finish(int64_t terms) {
    for (const Real s : size) out.slack.push_back(s * 0x1p-24L * static_cast<Real>(2 * terms + 4));
  }
  Host& out;
  Reals size;
};

void SampleFinalize(Calls& calls) {
  const bool v2 = std::string_view(calls.op().contract.op()) == "aclnnMoeFinalizeRoutingV2";
  const auto add = [&](DType t, DType scale, int64_t mode, bool all) {
    const Dims rows = mode == 1 || mode == 3 ? Dims{3, 4, 5} : Dims{8, 5};
    const Values places = mode == 1 || mode == 3 ? Whole(-1, 11) : Whole(-1, 7);
    const TestArg x = In(t, rows), index = In(I32, {8}, places), x1 = In(t, {4, 5}), x2 = In(t, {4, 5}), bias = In(t, {3, 5});
    const TestArg scales = In(scale, {4, 2}), experts = In(I32, {4, 2}, Whole(0, 2));
    if (!v2) return (void)calls.Add({x, x1, all ? x2 : Null(), bias, scales, index, experts, Out(t, {4, 5})});
    calls.Add({x, index, all ? x1 : Null(), all ? x2 : Null(), all ? bias : Null(), scales, all ? experts : Null(), Int(mode), Out(t, {4, 5})});
  };
  for (DType t : kTypes) {
    for (DType scale : kTypes) add(t, scale, 0, true);
    for (const int64_t mode : {0, 1, 2, 3}) {
      if (v2 || mode == 0) add(t, t, mode, false);
      if (v2 && mode > 0) add(t, F32, mode, true);
    }
    if (v2) calls.Add({In(t, {4, 300}), In(I32, {4}, Whole(-1, 3)), In(t, {4, 300}), Null(), Null(), Null(), Null(), Int(0), Out(t, {4, 300})});
  }
}

void OracleFinalize(HostCall& call) {
  const bool v2 = call.HasArg("dropPadMode");
  const char* const x1 = v2 ? "x1Optional" : "x1";
  const char* const bias = v2 ? "biasOptional" : "bias";
  const char* const scales = v2 ? "scalesOptional" : "scales";
  const char* const experts = v2 ? "expertIdxOptional" : "expandedExpertIdx";
  const Host &rows = call.In("expandedX"), &index = call.In("expandedRowIdx");
  const int64_t mode = v2 ? call.Int("dropPadMode") : 0, tokens = call.Out("out").dims[0], width = call.Out("out").dims[1];
  const int64_t k = call.Has(scales) ? call.In(scales).dims[1] : 1;
  Sums sums(call.Out("out"));
  for (int64_t i = 0; i < tokens * width; ++i) {
    const int64_t t = i / width, column = i % width;
    if (call.Has(x1)) sums.Add(i, call.In(x1).real(i));
    if (call.Has("x2Optional")) sums.Add(i, call.In("x2Optional").real(i));
    for (int64_t c = 0; c < k; ++c) {
      const int64_t place = static_cast<int64_t>(index.real(mode < 2 ? c * tokens + t : t * k + c));
      const Real scale = call.Has(scales) ? call.In(scales).real(t * k + c) : 1;
      if (place >= 0) sums.Add(i, scale * rows.real(place * width + column));
      if (call.Has(bias)) sums.Add(i, scale * call.In(bias).real(static_cast<int64_t>(call.In(experts).real(t * k + c)) * width + column));
    }
  }
  sums.Finish(2 * k + 2);
}

void SamplePermuteGrad(Calls& calls) {
  for (DType t : kTypes) {
    calls.Add({In(t, {6, 5}), In(I32, {6}, Permutation()), Int(2), Flag(false), Out(t, {3, 5})});
    calls.Add({In(t, {4, 300}), In(I32, {6}, Permutation()), Int(3), Flag(false), Out(t, {2, 300})});  // two rows were dropped
    calls.Add({In(t, {4, 3}), In(I32, {4}, Permutation()), Int(1), Flag(false), Out(t, {4, 3})});
  }
}

void OraclePermuteGrad(HostCall& call) {
  const Host &grad = call.In("permutedOutputGrad"), &index = call.In("sortedIndices");
  const int64_t width = grad.dims[1], top = call.Int("numTopk");
  Sums sums(call.Out("out"));
  for (int64_t f = 0; f < index.size(); ++f) {
    const int64_t row = static_cast<int64_t>(index.real(f));
    for (int64_t i = 0; i < width && row < grad.dims[0]; ++i) sums.Add(f / top * width + i, grad.real(row * width + i));
  }
  sums.Finish(top);
}

void SampleUnpermute(Calls& calls) {
  for (DType t : kTypes) {
    for (DType probs : kTypes) calls.Add({In(t, {6, 5}), In(I32, {6}, Permutation()), In(probs, {3, 2}), Flag(false), Null(), Out(t, {3, 5})});
    calls.Add({In(t, {4, 300}), In(I32, {6}, Permutation()), In(t, {2, 3}), Flag(false), Null(), Out(t, {2, 300})});
    calls.Add({In(t, {4, 3}), In(I32, {4}, Permutation()), Null(), Flag(false), Ints({}), Out(t, {4, 3})});
  }
}

void OracleUnpermute(HostCall& call) {
  const Host &rows = call.In("permutedTokens"), &index = call.In("sortedIndices");
  const bool probs = call.Has("probsOptional");
  const int64_t width = rows.dims[1], k = probs ? call.In("probsOptional").dims[1] : 1;
  Sums sums(call.Out("out"));
  for (int64_t f = 0; f < index.size(); ++f) {
    const int64_t row = static_cast<int64_t>(index.real(f));
    const Real scale = probs ? call.In("probsOptional").real(f) : 1;
    for (int64_t i = 0; i < width && row < rows.dims[0]; ++i) sums.Add(f / k * width + i, scale * rows.real(row * width + i));
  }
  sums.Finish(k);
}

void SampleUnpermuteGrad(Calls& calls) {
  for (DType t : kTypes) {
    for (DType probs : kTypes) {
      calls.Add({In(t, {6, 5}), In(t, {3, 5}), In(I32, {6}, Permutation()), In(probs, {3, 2}), Flag(false), Null(), Out(t, {6, 5}), Out(probs, {3, 2})});
    }
    calls.Add({In(t, {5, 300}), In(t, {2, 300}), In(I32, {6}, Permutation()), In(t, {2, 3}), Flag(false), Null(), Out(t, {5, 300}), Out(t, {2, 3})});
    calls.Add({In(t, {7, 3}), In(t, {4, 3}), In(I32, {4}, Permutation()), Null(), Flag(false), Null(), Out(t, {7, 3}), Null()});
  }
}

void OracleUnpermuteGrad(HostCall& call) {
  const Host &rows = call.In("permuteTokens"), &grad = call.In("unpermutedTokensGrad"), &index = call.In("sortedIndices");
  const bool probs = call.Has("probsOptional");
  const int64_t width = rows.dims[1], k = probs ? call.In("probsOptional").dims[1] : 1;
  Host& rows_grad = call.Out("permutedTokensGradOut");
  rows_grad.slack.assign(rows_grad.size(), 0);
  for (int64_t f = 0; f < index.size(); ++f) {
    const int64_t row = static_cast<int64_t>(index.real(f));
    Real sum = 0, size = 0;
    for (int64_t i = 0; i < width && row < rows.dims[0]; ++i) {
      const Real term = rows.real(row * width + i) * grad.real(f / k * width + i);
      sum += term;
      size += std::fabs(term);
      rows_grad[row * width + i] = (probs ? call.In("probsOptional").real(f) : 1) * grad.real(f / k * width + i);
    }
    if (!probs) continue;
    call.Out("probsGradOut")[f] = sum;
    call.Out("probsGradOut").slack.push_back(size * 0x1p-40L);
  }
}

}  // namespace

std::span<const Subject> MoeSubjects() {
  // Repeated indices name some rows never and some often, which has a meaning only for those that read rows.
  static const Subject subjects[] = {
      {"aclnnMoeGatingTopKSoftmax", SampleTop, OracleTop},
      {"aclnnMoeGatingTopKSoftmaxV2", SampleTop, OracleTop, {.partial = true}},
      {"aclnnMoeGatingTopK", SampleGrouped, OracleGrouped},
      {"aclnnMoeInitRouting", SampleInit, OracleInit},
      {"aclnnMoeInitRoutingV2", SampleInit2, OracleInit2},
      {"aclnnMoeFinalizeRouting", SampleFinalize, OracleFinalize},
      {"aclnnMoeFinalizeRoutingV2", SampleFinalize, OracleFinalize},
      {"aclnnMoeTokenPermute", SamplePermute, OraclePermute},
      {"aclnnMoeTokenPermuteGrad", SamplePermuteGrad, OraclePermuteGrad},
      {"aclnnMoeTokenUnpermute", SampleUnpermute, OracleUnpermute},
      {"aclnnMoeTokenUnpermuteGrad", SampleUnpermuteGrad, OracleUnpermuteGrad},
  };
  return subjects;
}

}  // namespace anyacl::harness
