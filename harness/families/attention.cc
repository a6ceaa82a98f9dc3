// SPDX-License-Identifier: Apache-2.0
// Copyright The AnyACL Authors
//
// Attention position by position: all scores of a query at once, the soft-max by definition, gradients by the chain rule. Bounds
// are those of a sum in FLOAT in any order, carried along as absolute errors.
#include <algorithm>
#include <cmath>
#include <climits>
#include <cstring>
#include <limits>
#include <string>
#include <string_view>
#include <vector>

#include "harness/family.h"
#include "harness/philox.h"

namespace anyacl::harness {
namespace {

constexpr Real kUnit = 0x1p-24L;       // half an ulp of 1
constexpr Real kSafety = 4;            // of second order, and for exp
constexpr Real kInfinity = std::numeric_limits<Real>::infinity();
constexpr Real kNoPosition = 3.4028235e38f;

// A number, and how far FLOAT may be off it.
struct Bound {
  Real value = 0;
  Real error = 0;
};

// One call; names of arguments differ between the entries.
class Net {
 public:
  explicit Net(HostCall& c) : call(c) {
    gradient = std::string_view(call.name()).find("Grad") != std::string_view::npos;
    query = &call.In("query");
    key = &call.In(call.HasArg("key") ? "key" : "keyIn");
    value = &call.In("value");
    layout = call.Text("inputLayout");
    heads = call.Int("headNum");
    const auto last = [](const Host& x) { return x.dims[x.dims.rank() - 1]; };
    joined = layout == "BSH" || layout == "SBH";
    width = joined ? last(*query) / heads : last(*query);
    key_heads = joined ? (width == 0 ? heads : last(*key) / width) : layout == "BNSD" ? key->dims[1] : key->dims[key->dims.rank() - 2];
    v_width = joined ? last(*value) / key_heads : last(*value);
    tnd = layout == "TND";
    const int token = layout == "SBH" || tnd ? 0 : layout == "BNSD" ? 2 : 1, batch = layout == "SBH" ? 1 : 0;
    if (tnd) {
      const auto &q = call.Ints("actualSeqQLenOptional"), &k = call.Ints("actualSeqKvLenOptional");
      size_t count = q.size();
      while (count > 0 && q[count - 1] == 0 && k[count - 1] == 0) --count;
      q_ends.assign(q.begin(), q.begin() + count);
      k_ends.assign(k.begin(), k.begin() + count);
      sequences = static_cast<int64_t>(count);
      key_sequences = sequences;
    } else {
      sequences = query->dims[batch];
      key_sequences = key->dims[batch];
      q_tokens = query->dims[token];
      k_tokens = key->dims[token];
    }
    pse = First({"realShiftOptional", "pseShiftOptional", "pseOptional"});
    pse_type = call.HasArg("pseType") ? call.Int("pseType") : 1;
    mask = First({"attenMaskOptional"});
    drop = First({"dropMaskOptional"});
    query_rope = First({"queryRope", "queryRopeOptional"});
    key_rope = First({"keyRope", "keyInRope", "keyRopeOptional"});
    scale = static_cast<Real>(static_cast<float>(call.Real("scaleValue")));
    keep = static_cast<Real>(call.Real("keepProb"));
    mode = call.Int("sparseMode");
  }

  int64_t Queries(int64_t b) const { return tnd ? q_ends[b] - QueryBegin(b) : q_tokens; }
  int64_t Keys(int64_t b) const { return tnd ? k_ends[b] - KeyBegin(b) : k_tokens; }
  int64_t QueryBegin(int64_t b) const { return tnd && b > 0 ? q_ends[b - 1] : 0; }
  int64_t KeyBegin(int64_t b) const { return tnd && b > 0 ? k_ends[b - 1] : 0; }

  // Where number e of a token stands.
  int64_t Place(const Host& x, int64_t b, int64_t head, int64_t token, int64_t e, int64_t all_heads, int64_t numbers) const {
    if (tnd) return (token * all_heads + head) * numbers + e;
    if (layout == "SBH") return ((token * x.dims[1] + std::min(b, x.dims[1] - 1)) * all_heads + head) * numbers + e;
    b = std::min(b, x.dims[0] - 1);
    if (layout == "BNSD") return ((b * all_heads + head) * x.dims[2] + token) * numbers + e;
    return ((b * x.dims[1] + token) * all_heads + head) * numbers + e;
  }
  int64_t QueryPlace(const Host& x, int64_t b, int64_t n, int64_t i, int64_t e, int64_t numbers) const {
    return Place(x, b, n, QueryBegin(b) + i, e, heads, numbers);
  }
  int64_t KeyPlace(const Host& x, int64_t b, int64_t n, int64_t j, int64_t e, int64_t numbers) const {
    return Place(x, b, n / (heads / key_heads), KeyBegin(b) + j, e, key_heads, numbers);
  }

  bool IsMasked(int64_t b, int64_t n, int64_t i, int64_t j) const {
    const int rank = mask->dims.rank();
    if (tnd) {
      const int64_t rows = mask->dims[rank - 2], columns = mask->dims[rank - 1];
      const bool all = rows == query->dims[0] && columns == key->dims[0];
      return mask->real((i + (all ? QueryBegin(b) : 0)) * columns + j + (all ? KeyBegin(b) : 0)) != 0;
    }
    return mask->Broadcast({sequences, heads, q_tokens, k_tokens}, ((b * heads + n) * q_tokens + i) * k_tokens + j).real() != 0;
  }
  int64_t Limit(const char* arg) const { return call.Int(arg) >= INT32_MAX ? int64_t{1} << 50 : call.Int(arg); }

  bool TakesPart(int64_t b, int64_t n, int64_t i, int64_t j) const {
    if (!mask) return true;
    const int64_t shift = Keys(b) - Queries(b), pre = Limit("preTokens"), next = Limit("nextTokens");
    int64_t how = mode;
    if (mode == 7) how = b == LastWithQueries() ? 4 : 3;
    if (mode == 8) how = b == FirstWithQueries() ? 4 : 2;
    switch (how) {
      case 0:
        return !IsMasked(b, n, i, j) && j >= i - pre && j <= i + next;
      case 1:
      case 5:
        return !IsMasked(b, n, i, j);
      case 2:
        return j <= i;
      case 3:
        return j <= i + shift;
      case 4:
        return j >= i + shift - pre && j <= i + shift + next;
      default:
        return j < call.Ints("prefixOptional")[b] || j <= i + shift;
    }
  }
  int64_t LastWithQueries() const {
    int64_t found = -1;
    for (int64_t b = 0; b < sequences; ++b) found = Queries(b) > 0 ? b : found;
    return found;
  }
  int64_t FirstWithQueries() const {
    for (int64_t b = 0; b < sequences; ++b) {
      if (Queries(b) > 0) return b;
    }
    return -1;
  }

  // Index of what is added to a score, or -1.
  int64_t PsePlace(int64_t b, int64_t n, int64_t i, int64_t j) const {
    const Dims& d = pse->dims;
    if (tnd) {
      int64_t before = 0, all = 0;
      for (int64_t s = 0; s < sequences; ++s) all += heads * Queries(s) * Keys(s);
      const bool rows = pse->size() == all;
      for (int64_t s = 0; s < b; ++s) before += heads * (rows ? Queries(s) : 1) * Keys(s);
      return before + (rows ? n * Queries(b) + i : n) * Keys(b) + j;
    }
    const int64_t head = (d[0] == 1 ? 0 : b) * heads + n;
    if (d[2] == 1024 && q_tokens > 1024) {
      const int64_t m = i >= q_tokens - 1024 ? i - (q_tokens - 1024) : i % 1024;
      const int64_t column = i >= q_tokens - 1024 ? j : k_tokens - (i - j) - (1024 - m);
      return column < 0 || column >= k_tokens ? -1 : (head * 1024 + m) * k_tokens + column;
    }
    return (head * d[2] + (d[2] == 1 ? 0 : i)) * k_tokens + j;
  }
  Real Added(int64_t b, int64_t n, int64_t i, int64_t j) const {
    if (!pse) return 0;
    if (pse_type >= 2) {
      const auto start = [&](const char* arg) { return call.Has(arg) && !call.Ints(arg).empty() ? call.Ints(arg)[0] : 0; };
      const Real slope = pse->real(pse->dims.rank() == 2 ? b * heads + n : n);
      const auto distance = static_cast<Real>(std::llabs(j + start("kvStartIdxOptional") - i - start("qStartIdxOptional")));
      return -slope * (pse_type == 2 ? distance : std::sqrt(distance));
    }
    const int64_t place = PsePlace(b, n, i, j);
    return place < 0 ? 0 : pse->real(place);
  }

  // The factor of a probability: 0 or 1 / keep, or 1 where nothing is dropped.
  Real Kept(int64_t b, int64_t n, int64_t i, int64_t j) const {
    int64_t before = 0;
    for (int64_t s = 0; s < b; ++s) before += heads * Queries(s) * Keys(s);
    const int64_t at = before + (n * Queries(b) + i) * Keys(b) + j;
    if (drop) return (static_cast<int>(drop->real(at / 8)) >> (at % 8) & 1) != 0 ? 1 / keep : 0;
    if (!call.HasArg("seed") || keep >= 1) return 1;
    const auto seed = static_cast<uint64_t>(call.Int("seed")), offset = static_cast<uint64_t>(call.Int("offset"));
    const float uniform = static_cast<float>(PhiloxWord(seed, offset, static_cast<uint64_t>(at))) * 0x1p-32f + 0x1p-33f;
    return uniform < static_cast<float>(1 - (1 - call.Real("keepProb"))) ? 1 / keep : 0;
  }

  // Scores of one query; -inf where a position takes no part.
  Checked<Bound> Scores(int64_t b, int64_t n, int64_t i) const {
    Checked<Bound> scores(Keys(b));
    for (int64_t j = 0; j < Keys(b); ++j) {
      if (!TakesPart(b, n, i, j)) {
        scores[j].value = -kInfinity;
        continue;
      }
      Real dot = 0, size = 0;
      const auto add = [&](const Host& q, const Host& k, int64_t numbers) {
        for (int64_t e = 0; e < numbers; ++e) {
          const Real product = q.real(QueryPlace(q, b, n, i, e, numbers)) * k.real(KeyPlace(k, b, n, j, e, numbers));
          dot += product;
          size += std::fabs(product);
        }
      };
      add(*query, *key, width);
      if (query_rope) add(*query_rope, *key_rope, query_rope->dims[query_rope->dims.rank() - 1]);
      const Real added = Added(b, n, i, j), factor = pse_type == 1 ? scale : 1;
      scores[j].value = scale * dot + factor * added;
      scores[j].error = kUnit * (std::fabs(scale) * size * static_cast<Real>(width + 4) + 4 * std::fabs(factor * added));
    }
    return scores;
  }

  int64_t StatsPlace(int64_t b, int64_t n, int64_t i) const {
    const char* const name = call.HasArg("softmaxOutLayout") ? "softmaxOutLayout" : "softmaxInLayout";
    if (!tnd) return ((b * heads + n) * q_tokens + i) * 8;
    if (call.HasArg(name) && call.Text(name) == "same_as_input") return ((QueryBegin(b) + i) * heads + n) * 8;
    return (QueryBegin(b) * heads + n * Queries(b) + i) * 8;
  }

  HostCall& call;
  bool gradient, joined, tnd;
  const Host *query, *key, *value, *pse, *mask, *drop, *query_rope, *key_rope;
  std::string layout;
  int64_t heads, key_heads, width, v_width, sequences, key_sequences, q_tokens = 0, k_tokens = 0, pse_type, mode;
  Checked<int64_t> q_ends, k_ends;
  Real scale, keep;

 private:
  const Host* First(std::initializer_list<const char*> names) const {
    for (const char* name : names) {
      if (call.HasArg(name) && call.Has(name) && Numel(call.In(name).dims) > 0) return &call.In(name);
    }
    return nullptr;
  }
};

void Start(Host& out) {
  out.values.assign(out.size(), 0);
  out.slack.assign(out.size(), 0);
}
void Put(Host& out, int64_t place, Bound x) {
  out[place] = x.value;
  out.slack[place] = x.error;
}
void Increase(Host& out, int64_t place, Bound x) {
  out[place] += x.value;
  out.slack[place] += x.error;
}

void OracleForward(HostCall& call) {
  const Net net(call);
  Host &out = call.Out("attentionOutOut"), &most_out = call.Out("softmaxMaxOut"), &sum_out = call.Out("softmaxSumOut");
  for (Host* host : {&out, &most_out, &sum_out}) Start(*host);
  if (net.width == 0 && net.v_width == 0) return;
  for (int64_t b = 0; b < net.sequences; ++b) {
    const int64_t keys = net.Keys(b);
    for (int64_t n = 0; n < net.heads; ++n) {
      for (int64_t i = 0; i < net.Queries(b); ++i) {
        if (keys == 0) continue;
        const Checked<Bound> scores = net.Scores(b, n, i);
        Real most = -kInfinity, worst = 0, sum = 0;
        for (const Bound& s : scores) {
          most = std::max(most, s.value);
          worst = std::max(worst, s.error);
        }
        const bool none = most == -kInfinity;
        // exp(s - M): the difference of two scores, its rounding, and exp itself
        const auto relative = [&](const Bound& s) { return 2 * worst + kUnit * (most - s.value + 4); };
        for (const Bound& s : scores) sum += none ? 0 : std::exp(s.value - most);
        const Real sum_error = sum * (2 * worst + kUnit * static_cast<Real>(keys + 8)) * kSafety;
        for (int64_t copy = 0; copy < 8; ++copy) {
          Put(most_out, net.StatsPlace(b, n, i) + copy, {none ? -kNoPosition : most, none ? 0 : worst * kSafety});
          Put(sum_out, net.StatsPlace(b, n, i) + copy, {none ? kNoPosition : sum, sum_error});
        }
        for (int64_t e = 0; e < net.v_width && !none; ++e) {
          Bound result;
          for (int64_t j = 0; j < keys; ++j) {
            if (scores[j].value == -kInfinity) continue;
            const Real p = std::exp(scores[j].value - most) / sum * net.Kept(b, n, i, j);
            const Real x = net.value->real(net.KeyPlace(*net.value, b, n, j, e, net.v_width));
            result.value += p * x;
            result.error += std::fabs(p * x) * (relative(scores[j]) + 2 * worst + 2 * kUnit * static_cast<Real>(keys + 8)) * kSafety;
          }
          Put(out, net.QueryPlace(out, b, n, i, e, net.v_width), result);
        }
      }
    }
  }
}

// M, Z and the forward result are what the call hands over, whatever they are.
void OracleBackward(HostCall& call) {
  const Net net(call);
  const bool rope = net.query_rope != nullptr;
  const int64_t r_width = rope ? net.query_rope->dims[net.query_rope->dims.rank() - 1] : 0;
  Host &dq = call.Out("dqOut"), &dk = call.Out("dkOut"), &dv = call.Out("dvOut");
  for (Host* host : {&dq, &dk, &dv}) Start(*host);
  if (rope) Start(call.Out("dqRopeOut"));
  if (rope) Start(call.Out("dkRopeOut"));
  const bool wants_pse = call.HasArg("dpseOut") && call.Has("dpseOut") && net.pse && net.pse_type < 2;
  if (wants_pse) Start(call.Out("dpseOut"));
  const Host &dy = call.In("dy"), &out = call.In(call.HasArg("attentionIn") ? "attentionIn" : "attentionInOptional");
  const Host& most = call.In(call.HasArg("softmaxMax") ? "softmaxMax" : "softmaxMaxOptional");
  const Host& sum = call.In(call.HasArg("softmaxSum") ? "softmaxSum" : "softmaxSumOptional");
  for (int64_t b = 0; b < net.sequences; ++b) {
    const Real terms = static_cast<Real>(net.Keys(b) + net.Queries(b) * net.heads * net.sequences + 8);
    for (int64_t n = 0; n < net.heads; ++n) {
      for (int64_t i = 0; i < net.Queries(b); ++i) {
        const Checked<Bound> scores = net.Scores(b, n, i);
        Real delta = 0;
        for (int64_t e = 0; e < net.v_width; ++e) {
          delta += dy.real(net.QueryPlace(dy, b, n, i, e, net.v_width)) * out.real(net.QueryPlace(out, b, n, i, e, net.v_width));
        }
        const Real m = most.real(net.StatsPlace(b, n, i)), z = sum.real(net.StatsPlace(b, n, i));
        for (int64_t j = 0; j < net.Keys(b); ++j) {
          if (scores[j].value == -kInfinity) continue;
          const Real p = std::exp(scores[j].value - m) / z, kept = net.Kept(b, n, i, j);
          const Real p_error = p * (scores[j].error + kUnit * (std::fabs(scores[j].value - m) + 8)) * kSafety;
          Real dp = 0, size = 0;
          for (int64_t e = 0; e < net.v_width; ++e) {
            const Real g = dy.real(net.QueryPlace(dy, b, n, i, e, net.v_width));
            const Real product = g * net.value->real(net.KeyPlace(*net.value, b, n, j, e, net.v_width));
            dp += product;
            size += std::fabs(product);
            Increase(dv, net.KeyPlace(dv, b, n, j, e, net.v_width), {p * kept * g, std::fabs(kept * g) * (p_error + p * kUnit * terms * kSafety)});
          }
          const Real d = dp * kept - delta, ds = p * d;
          const Real ds_error = std::fabs(d) * p_error + p * kUnit * kSafety * (size * kept * static_cast<Real>(net.v_width + 4) + std::fabs(delta) * 2 + std::fabs(d));
          const auto chain = [&](Real factor) { return Bound{factor * ds, std::fabs(factor) * (ds_error + std::fabs(ds) * kUnit * terms * kSafety)}; };
          for (int64_t e = 0; e < net.width; ++e) {
            const int64_t q = net.QueryPlace(*net.query, b, n, i, e, net.width), k = net.KeyPlace(*net.key, b, n, j, e, net.width);
            Increase(dq, q, chain(net.scale * net.key->real(k)));
            Increase(dk, k, chain(net.scale * net.query->real(q)));
          }
          for (int64_t e = 0; e < r_width; ++e) {
            const int64_t q = net.QueryPlace(*net.query_rope, b, n, i, e, r_width), k = net.KeyPlace(*net.key_rope, b, n, j, e, r_width);
            Increase(call.Out("dqRopeOut"), q, chain(net.scale * net.key_rope->real(k)));
            Increase(call.Out("dkRopeOut"), k, chain(net.scale * net.query_rope->real(q)));
          }
          if (wants_pse && net.PsePlace(b, n, i, j) >= 0) Increase(call.Out("dpseOut"), net.PsePlace(b, n, i, j), chain(net.pse_type == 1 ? net.scale : 1));
        }
      }
    }
  }
}

// --- calls --------------------------------------------------------------------------------------------------------------

struct Shape {
  const char* layout;
  int64_t batch, heads, key_heads, queries, keys, width, v_width;
};
struct Case {
  Shape of;
  // "": none; "SS" [queries, keys], "B1SS", "BNSS", "1SS", "N1S" (broadcast), "all" of TND, "small": 2048 x 2048
  const char* mask = "";
  int64_t mode = 0;
  int64_t pre = INT32_MAX, next = INT32_MAX;
  const char* pse = "";  // "full", "one" sequence, "row", "slopes", "BN"
  int64_t pse_type = 1;
  double keep = 1;
  bool drop_mask = false;
  Checked<int64_t> q_ends = {}, k_ends = {};
  Checked<int64_t> prefix = {};
  int64_t rope = 0;
  const char* stats = "";
  int64_t key_batch = 0;  // if not the same
  bool extras = false;    // what is never read is given
  bool large = false;     // only in FLOAT
  bool bf16 = false;      // only in BF16
};

std::vector<Case> Cases() {
  std::vector<Case> cases;
  for (const char* layout : {"BSH", "SBH", "BSND", "BNSD"}) {
    cases.push_back({.of = {layout, 2, 4, 2, 5, 7, 8, 8}});
    cases.push_back({.of = {layout, 2, 2, 2, 6, 9, 5, 3}, .mask = "BNSS"});
  }
  cases.push_back({.of = {"BNSD", 1, 2, 1, 101, 130, 6, 5}, .mask = "SS", .mode = 1, .large = true});
  cases.push_back({.of = {"BNSD", 1, 1, 1, 130, 101, 13, 20}, .mask = "small", .mode = 2, .large = true});
  cases.push_back({.of = {"BSND", 1, 2, 2, 33, 100, 33, 17}, .mask = "small", .mode = 3, .large = true});
  cases.push_back({.of = {"BNSD", 1, 1, 1, 1, 300, 4, 300}, .large = true});
  cases.push_back({.of = {"BNSD", 2, 3, 1, 7, 5, 4, 4}, .mask = "B1SS", .pre = 2, .next = 1, .extras = true});
  cases.push_back({.of = {"BNSD", 2, 3, 3, 6, 6, 4, 4}, .mask = "SS", .pre = -1, .next = 3});
  cases.push_back({.of = {"BNSD", 2, 2, 1, 7, 5, 4, 6}, .mask = "1SS", .mode = 1});
  cases.push_back({.of = {"BNSD", 2, 2, 1, 7, 5, 4, 4}, .mask = "N1S", .mode = 1});
  cases.push_back({.of = {"BNSD", 1, 2, 2, 6, 4, 4, 4}, .mask = "small", .mode = 3});
  cases.push_back({.of = {"BSH", 1, 2, 2, 6, 9, 4, 4}, .mask = "small", .mode = 4, .pre = 2, .next = 1});
  cases.push_back({.of = {"BSH", 2, 2, 2, 6, 9, 4, 4}, .mask = "B1SS", .mode = 5});
  cases.push_back({.of = {"BNSD", 2, 2, 2, 5, 8, 4, 4}, .mask = "small", .mode = 6, .prefix = {4, 8}});
  cases.push_back({.of = {"BNSD", 2, 2, 2, 5, 8, 4, 4}, .pse = "full"});
  cases.push_back({.of = {"BNSD", 2, 2, 1, 5, 8, 4, 4}, .pse = "one", .pse_type = 0});
  cases.push_back({.of = {"BSND", 2, 2, 2, 5, 8, 4, 4}, .mask = "SS", .pse = "row", .pse_type = 0});
  cases.push_back({.of = {"BNSD", 2, 2, 2, 5, 8, 4, 4}, .pse = "slopes", .pse_type = 2});
  cases.push_back({.of = {"BNSD", 2, 2, 2, 5, 8, 4, 4}, .pse = "BN", .pse_type = 3});
  cases.push_back({.of = {"BNSD", 2, 2, 2, 5, 11, 4, 4}, .keep = 0.75, .drop_mask = true});
  cases.push_back({.of = {"BNSD", 1, 2, 1, 5, 8, 4, 4}, .drop_mask = true});
  cases.push_back({.of = {"BNSD", 2, 2, 1, 9, 100, 4, 4}, .mask = "small", .mode = 2, .keep = 0.9, .large = true});
  cases.push_back({.of = {"BNSD", 2, 2, 2, 5, 8, 4, 4}, .rope = 3});
  cases.push_back({.of = {"BNSD", 3, 2, 2, 5, 8, 4, 6}, .key_batch = 1});
  cases.push_back({.of = {"BNSD", 2, 2, 2, 5, 0, 4, 4}});
  cases.push_back({.of = {"BNSD", 2, 2, 2, 5, 3, 0, 4}});
  const Checked<int64_t> q_ends = {2, 4, 4, 6, 8}, k_ends = {3, 3, 7, 9, 10};
  const auto tnd = [&](Case c) {
    c.of.layout = "TND";
    c.of.batch = 1;
    if (c.q_ends.empty()) c.q_ends = q_ends, c.k_ends = k_ends;
    cases.push_back(c);
  };
  tnd({.of = {"", 0, 4, 2, 8, 10, 5, 3}, .extras = true});
  tnd({.of = {"", 0, 2, 1, 9, 12, 5, 3}, .mask = "SS", .stats = "same_as_input"});
  tnd({.of = {"", 0, 2, 2, 8, 10, 4, 4}, .mask = "all", .mode = 1, .q_ends = {2, 4, 4, 6, 8, 0, 0}, .k_ends = {3, 3, 7, 9, 10, 0, 0}});
  for (const int64_t mode : {2, 3, 4, 7, 8}) tnd({.of = {"", 0, 2, 2, 8, 10, 4, 4}, .mask = "small", .mode = mode, .pre = 1, .next = 1});
  tnd({.of = {"", 0, 2, 2, 8, 12, 4, 4}, .mask = "small", .mode = 6, .q_ends = {3, 8}, .k_ends = {5, 12}, .prefix = {2, 6}});
  tnd({.of = {"", 0, 2, 2, 8, 10, 4, 4}, .pse = "full", .pse_type = 0});
  tnd({.of = {"", 0, 2, 2, 8, 10, 4, 4}, .pse = "row"});
  tnd({.of = {"", 0, 2, 2, 8, 10, 4, 4}, .pse = "slopes", .pse_type = 3});
  tnd({.of = {"", 0, 2, 2, 8, 10, 4, 4}, .keep = 0.6, .drop_mask = true});
  tnd({.of = {"", 0, 2, 1, 130, 250, 4, 4}, .mask = "small", .mode = 3, .q_ends = {100, 130}, .k_ends = {120, 250}, .large = true});
  tnd({.of = {"", 0, 4, 2, 8, 10, 5, 3}, .mask = "SS", .rope = 2, .bf16 = true});
  Checked<int64_t> many;
  for (int64_t i = 1; i <= 40; ++i) many.push_back(i);
  tnd({.of = {"", 0, 1, 1, 40, 40, 3, 3}, .q_ends = many, .k_ends = many});
  return cases;
}

// Whether the entry can be asked that.
bool Fits(const Calls& calls, const Case& c) {
  const contract::Contract& contract = calls.op().contract;
  const std::string_view name = contract.op();
  const bool tnd = std::string_view(c.of.layout) == "TND", generated = contract.ArgIndex("seed") >= 0, grad = name.find("Grad") != name.npos;
  if (tnd && contract.ArgIndex("actualSeqQLenOptional") < 0) return false;
  if (!tnd && (name.find("VarLen") != name.npos || name.find("Unpadding") != name.npos)) return false;
  if (c.keep < 1 && !c.drop_mask && !generated) return false;
  if (c.pse_type != 1 && contract.ArgIndex("pseType") < 0) return false;
  const bool has_rope = contract.ArgIndex("queryRopeOptional") >= 0 || contract.ArgIndex("queryRope") >= 0;
  if (c.rope > 0 && !has_rope) return false;
  // VarLenScoreV3 has more rules about it.
  const bool plain = name.ends_with("V3");
  if (plain && c.rope > 0 && (std::string_view(c.mask).empty() || !c.bf16)) return false;
  if (*c.stats && contract.ArgIndex(grad ? "softmaxInLayout" : "softmaxOutLayout") < 0) return false;
  return true;
}

Dims DimsOf(const Case& c, bool keys, int64_t width) {
  const std::string_view layout = c.of.layout;
  const int64_t batch = keys && c.key_batch > 0 ? c.key_batch : c.of.batch, tokens = keys ? c.of.keys : c.of.queries, heads = keys ? c.of.key_heads : c.of.heads;
  if (layout == "TND") return {tokens, heads, width};
  if (layout == "BSH") return {batch, tokens, heads * width};
  if (layout == "SBH") return {tokens, batch, heads * width};
  return layout == "BSND" ? Dims{batch, tokens, heads, width} : Dims{batch, heads, tokens, width};
}

// Tokens of a sequence, by sequence.
Checked<int64_t> Counts(const Checked<int64_t>& ends) {
  Checked<int64_t> counts;
  for (size_t i = 0; i < ends.size() && ends[i] > 0; ++i) counts.push_back(ends[i] - (i > 0 ? ends[i - 1] : 0));
  return counts;
}
int64_t Positions(const Case& c, bool rows) {
  if (c.q_ends.empty()) return c.of.batch * c.of.heads * c.of.queries * c.of.keys;
  int64_t sum = 0;
  const auto q = Counts(c.q_ends), k = Counts(c.k_ends);
  for (size_t i = 0; i < q.size(); ++i) sum += c.of.heads * (rows ? q[i] : 1) * k[i];
  return sum;
}

TestArg MaskOf(const Case& c, DType type) {
  const std::string_view kind = c.mask;
  const auto make = [&](const Dims& dims) { return type == DType::kBool ? In(type, dims) : In(type, dims, Whole(0, 2)); };
  if (kind.empty()) return Null();
  if (kind == "small") return In(type, {c.mode == 6 ? 3072 : 2048, 2048}, Unread()).Layout("expanded");
  if (kind == "all") return make({c.of.queries, c.of.keys});
  if (kind == "B1SS") return make({c.of.batch, 1, c.of.queries, c.of.keys});
  if (kind == "BNSS") return make({c.of.batch, c.of.heads, c.of.queries, c.of.keys});
  if (kind == "1SS") return make({1, c.of.queries, c.of.keys});
  if (kind == "N1S") return make({c.of.heads, 1, c.of.keys});
  if (c.q_ends.empty()) return make({c.of.queries, c.of.keys});
  const auto q = Counts(c.q_ends), k = Counts(c.k_ends);
  return make({*std::max_element(q.begin(), q.end()), *std::max_element(k.begin(), k.end())});
}

Dims PseDims(const Case& c) {
  const std::string_view kind = c.pse;
  if (kind == "slopes") return {c.of.heads};
  if (kind == "BN") return {c.of.batch, c.of.heads};
  if (!c.q_ends.empty()) return {Positions(c, kind == "full")};
  return {kind == "full" ? c.of.batch : 1, c.of.heads, kind == "row" ? 1 : c.of.queries, c.of.keys};
}

TestArg ArgOf(const Case& c, const contract::Arg& arg, DType t, DType mask) {
  const std::string_view name = arg.name;
  const bool tnd = !c.q_ends.empty();
  const Dims out = DimsOf(c, false, c.of.v_width), stats = tnd ? Dims{c.of.queries, c.of.heads, 8} : Dims{c.of.batch, c.of.heads, c.of.queries, 8};
  const auto is = [&](std::initializer_list<const char*> names) { return std::find(names.begin(), names.end(), name) != names.end(); };
  if (is({"query", "dqOut"})) return In(t, DimsOf(c, false, c.of.width));
  if (is({"key", "keyIn", "dkOut"})) return In(t, DimsOf(c, true, c.of.width));
  if (is({"value", "dvOut"})) return In(t, DimsOf(c, true, c.of.v_width));
  if (is({"dy", "attentionIn", "attentionInOptional", "attentionOutOut"})) return In(t, out);
  if (is({"softmaxMax", "softmaxMaxOptional"})) return In(DType::kF32, stats, Between(1, 4));
  if (is({"softmaxSum", "softmaxSumOptional"})) return In(DType::kF32, stats, Between(2, 8));
  if (is({"softmaxMaxOut", "softmaxSumOut"})) return Out(DType::kF32, stats);
  if (is({"queryRope", "queryRopeOptional", "dqRopeOut"})) return c.rope > 0 ? In(t, DimsOf(c, false, c.rope)) : Null();
  if (is({"keyRope", "keyInRope", "keyRopeOptional", "dkRopeOut"})) return c.rope > 0 ? In(t, DimsOf(c, true, c.rope)) : Null();
  if (is({"realShiftOptional", "pseShiftOptional", "pseOptional"})) return *c.pse ? In(c.pse_type >= 2 ? DType::kF32 : t, PseDims(c)) : Null();
  if (name == "dpseOut") return *c.pse && c.pse_type < 2 ? Out(t, PseDims(c)) : Null();
  if (name == "attenMaskOptional") return MaskOf(c, mask);
  if (name == "dropMaskOptional") return c.drop_mask ? In(DType::kU8, {(Positions(c, true) + 7) / 8 + 32}, Whole(0, 255)) : Null();
  if (is({"paddingMaskOptional", "softmaxInOptional", "softmaxOutOut", "dsinkOut"})) return c.extras ? In(DType::kF32, {2, 3}) : Null();
  if (is({"sinkOptional", "dScaleQOptional", "dScaleKOptional"})) return c.extras ? In(DType::kF32, {0}) : Null();
  if (arg.is_tensor()) return Null();
  if (name == "prefixOptional") return c.prefix.empty() ? Null() : Ints(c.prefix);
  if (name == "actualSeqQLenOptional") return tnd ? Ints(c.q_ends) : Ints({});
  if (name == "actualSeqKvLenOptional") return tnd ? Ints(c.k_ends) : Null();
  if (name == "qStartIdxOptional") return c.pse_type >= 2 ? Ints({3}) : Null();
  if (name == "kvStartIdxOptional") return c.pse_type >= 2 ? Ints({1}) : Ints({});
  if (name == "scaleValue") return RealArg(0.4);
  if (name == "keepProb") return RealArg(c.keep);
  if (name == "preTokens") return Int(c.pre);
  if (name == "nextTokens") return Int(c.next);
  if (name == "headNum") return Int(c.of.heads);
  if (name == "inputLayout") return Text(c.of.layout);
  if (name == "sparseMode") return Int(c.mode);
  if (name == "pseType") return Int(c.pse_type);
  if (is({"seed", "offset"})) return Int(name == "seed" ? -42 : 12);
  if (is({"softmaxOutLayout", "softmaxInLayout"})) return Text(c.stats);
  return Int(0);  // innerPrecise, outDtype
}

void Sample(Calls& calls) {
  for (const DType t : calls.TypesOf("query")) {
    bool bytes = false;
    int fitting = 0;
    for (const Case& c : Cases()) {
      if ((c.large && t != DType::kF32) || (c.bf16 && t != DType::kBF16) || !Fits(calls, c)) continue;
      // What differs between the dtypes is how tokens are read and written.
      if (t != DType::kF32 && !c.bf16 && ++fitting % 4 != 1) continue;
      bytes = !bytes;
      std::vector<TestArg> args;
      for (const contract::Arg& arg : calls.op().contract.args()) args.push_back(ArgOf(c, arg, t, bytes ? DType::kU8 : DType::kBool));
      calls.Add(std::move(args), std::string(c.of.layout) + " mask " + c.mask + " mode " + std::to_string(c.mode));
    }
  }
}

}  // namespace

std::span<const Subject> AttentionSubjects() {
  constexpr Limits kLimits = {.ulps = 2};
  static const Subject subjects[] = {{"aclnnFlashAttentionScore", Sample, OracleForward, kLimits},
                                     {"aclnnFlashAttentionScoreV2", Sample, OracleForward, kLimits},
                                     {"aclnnFlashAttentionScoreV4", Sample, OracleForward, kLimits},
                                     {"aclnnFlashAttentionVarLenScore", Sample, OracleForward, kLimits},
                                     {"aclnnFlashAttentionVarLenScoreV2", Sample, OracleForward, kLimits},
                                     {"aclnnFlashAttentionVarLenScoreV3", Sample, OracleForward, kLimits},
                                     {"aclnnFlashAttentionVarLenScoreV4", Sample, OracleForward, kLimits},
                                     {"aclnnFlashAttentionScoreGrad", Sample, OracleBackward, kLimits},
                                     {"aclnnFlashAttentionScoreGradV2", Sample, OracleBackward, kLimits},
                                     {"aclnnFlashAttentionScoreGradV4", Sample, OracleBackward, kLimits},
                                     {"aclnnFlashAttentionUnpaddingScoreGrad", Sample, OracleBackward, kLimits},
                                     {"aclnnFlashAttentionUnpaddingScoreGradV2", Sample, OracleBackward, kLimits},
                                     {"aclnnFlashAttentionUnpaddingScoreGradV3", Sample, OracleBackward, kLimits},
                                     {"aclnnFlashAttentionUnpaddingScoreGradV4", Sample, OracleBackward, kLimits}};
  return subjects;
}

}  // namespace anyacl::harness
