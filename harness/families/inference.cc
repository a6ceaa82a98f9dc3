// SPDX-License-Identifier: Apache-2.0
// Copyright The AnyACL Authors
//
// Attention for inference, query by query: which keys it sees is worked out first, wherever they lie, then the soft-max by
// definition. Bounds are those of a sum in FLOAT in any order, carried along as absolute errors.
#include <algorithm>
#include <climits>
#include <cmath>
#include <limits>
#include <optional>
#include <string>
#include <string_view>
#include <vector>

#include "harness/family.h"

namespace anyacl::harness {
namespace {

constexpr Real kUnit = 0x1p-24L;  // half an ulp of 1
constexpr Real kSafety = 4;       // of second order, and for exp
constexpr Real kInfinity = std::numeric_limits<Real>::infinity();

// Element of a tensor in some layout; `token` counts from the first one of TND and NTD.
int64_t Place(std::string_view layout, const Dims& dims, int64_t b, int64_t head, int64_t token, int64_t e, int64_t heads, int64_t width) {
  if (layout == "TND") return (token * heads + head) * width + e;
  if (layout == "NTD") return (head * dims[1] + token) * width + e;
  if (layout == "BNSD") return ((b * heads + head) * dims[2] + token) * width + e;
  return ((b * dims[1] + token) * heads + head) * width + e;
}

class Scene {
 public:
  explicit Scene(HostCall& c) : call(c) {
    const std::string& layout = call.Text("inputLayout");
    in = layout == "BNSD_BSND" ? "BNSD" : layout == "NTD_TND" ? "NTD" : layout;
    out = layout == "BNSD_BSND" ? "BSND" : layout == "NTD_TND" ? "TND" : layout;
    flat = in == "TND" || in == "NTD";
    query = &call.In("query");
    heads = call.Int("numHeads");
    key_heads = call.Int("numKeyValueHeads") == 0 ? heads : call.Int("numKeyValueHeads");
    width = Last(*query) / (in == "BSH" ? heads : 1);
    tokens = query->dims[in == "NTD" || in == "BSH" || in == "BSND" ? 1 : in == "TND" ? 0 : 2];
    if (const Host* const table = Given({"blockTableOptional", "blockTable", "blocktable"})) pages = table;
    list = call.KindOf("key") == contract::ArgKind::kInputList && call.Count("key") > 1;
    key_layout = !pages ? in : call.In("key").dims.rank() == 3 ? "BSH" : "BNSD";
    v_width = Last(call.In("value")) / (key_layout == "BSH" ? key_heads : 1);
    pse = Given({"pseShift", "pseShiftOptional"});
    mask = Given({"attenMask", "attenMaskOptional"});
    const bool one_query = call.HasArg("blocktable") || !call.HasArg("preTokens");
    q_lengths = one_query ? std::nullopt : Lengths({"actualSeqLengths", "actualSeqLengthsOptional"});
    k_lengths = one_query ? Lengths({"actualSeqLengths"}) : Lengths({"actualSeqLengthsKv", "actualSeqLengthsKvOptional"});
    k_prefix = Given({"keySharedPrefixOptional"});
    v_prefix = Given({"valueSharedPrefixOptional"});
    q_rope = Given({"queryRopeOptional"});
    k_rope = Given({"keyRopeOptional"});
    if (k_prefix) prefix = k_prefix->dims[in == "BNSD" ? 2 : 1];
    if (k_prefix && call.Has("actualSharedPrefixLenOptional")) prefix = call.Ints("actualSharedPrefixLenOptional")[0];
    single = !flat && tokens == 1;
    batch = flat ? static_cast<int64_t>(q_lengths->size()) : query->dims[0];
    while (flat && batch > 0 && (*q_lengths)[batch - 1] == 0) --batch;
    scale = static_cast<Real>(static_cast<float>(call.Real("scaleValue")));
    pse_type = call.HasArg("pseType") ? call.Int("pseType") : 0;
  }

  static Real Last(const Host& x) { return static_cast<Real>(x.dims[x.dims.rank() - 1]); }
  static int64_t Of(const Checked<int64_t>& lengths, int64_t b) { return lengths[lengths.size() == 1 ? 0 : b]; }
  static int64_t Begin(const Checked<int64_t>& ends, int64_t b) { return b == 0 ? 0 : ends[b - 1]; }

  // Queries [first, first + count) of a sequence, by the tokens of its tensor; the same of its keys.
  struct Range {
    int64_t first, count;
  };
  Range Queries(int64_t b) const {
    if (flat) return {Begin(*q_lengths, b), (*q_lengths)[b] - Begin(*q_lengths, b)};
    if (single || !q_lengths) return {0, tokens};
    return Padded("queryPaddingSize", tokens, Of(*q_lengths, b));
  }
  Range Keys(int64_t b) const {
    if (flat && !pages) return {Begin(*k_lengths, b), (*k_lengths)[b] - Begin(*k_lengths, b)};
    const Host& key = call.In("key", list ? static_cast<int>(b) : 0);
    const int64_t all = key.dims[key_layout == "BNSD" ? 2 : 1];
    if (!k_lengths) return {0, all};
    return pages ? Range{0, Of(*k_lengths, b)} : Padded("kvPaddingSize", all, Of(*k_lengths, b));
  }

  // Number e of key or value j, which counts from the shared prefix; NaN where there is no such block.
  Real Number(bool value, int64_t b, int64_t n, int64_t j, int64_t e) const {
    const int64_t numbers = value ? v_width : width, head = n / (heads / key_heads);
    if (j < prefix) {
      const Host& x = value ? *v_prefix : *k_prefix;
      return x.real(Place(in, x.dims, 0, head, j, e, key_heads, numbers));
    }
    const Host& x = call.In(value ? "value" : "key", list ? static_cast<int>(b) : 0);
    return At(x, b, head, j - prefix, e, numbers);
  }
  Real At(const Host& x, int64_t b, int64_t head, int64_t j, int64_t e, int64_t numbers) const {
    const int64_t token = Keys(b).first + j;
    if (!pages) return x.real(Place(in, x.dims, list ? 0 : b, head, token, e, key_heads, numbers));
    const int64_t size = call.Int("blockSize"), page = static_cast<int64_t>(pages->real(b * pages->dims[1] + token / size));
    if (page < 0 || page >= x.dims[0]) return std::numeric_limits<Real>::quiet_NaN();
    return x.real(Place(key_layout, x.dims, page, head, token % size, e, key_heads, numbers));
  }

  bool TakesPart(int64_t b, int64_t i, int64_t j) const {
    const Range q = Queries(b), k = Keys(b);
    if (pages && std::isnan(Number(false, b, 0, j, 0))) return false;
    if (!mask) return true;
    const bool modes = call.HasArg("sparseMode") && !single;
    const int64_t mode = modes ? call.Int("sparseMode") : 0, shift = k.count + prefix - q.count;
    if (mode < 2 && Masked(b, i + (flat ? 0 : q.first), j + (flat ? 0 : k.first))) return false;
    if (single || mode == 1) return true;
    const auto limit = [&](const char* arg) { return call.Int(arg) >= INT32_MAX ? int64_t{1} << 50 : call.Int(arg); };
    if (mode == 2) return j <= i;
    if (mode == 3) return j <= i + shift;
    const int64_t from = mode == 4 ? shift : 0;
    return j >= i + from - limit("preTokens") && j <= i + from + limit("nextTokens");
  }

  // What is added to the scaled product.
  Real Added(int64_t b, int64_t n, int64_t i, int64_t j) const {
    if (!pse) return 0;
    const Dims& d = pse->dims;
    if (pse_type >= 2) {
      const auto start = [&](const char* arg) { return call.Has(arg) ? call.Ints(arg)[0] : 0; };
      const auto distance = static_cast<Real>(std::llabs(j + start("kvStartIdxOptional") - i - start("qStartIdxOptional")));
      return -pse->real(d.rank() == 2 ? b * heads + n : n) * (pse_type == 2 ? distance : std::sqrt(distance));
    }
    const int64_t row = i + (flat ? 0 : Queries(b).first), column = j + (flat ? 0 : Keys(b).first);
    return pse->real((((d[0] == 1 ? 0 : b) * heads + n) * d[2] + row) * d[3] + column) * (pse_type == 1 ? scale : 1);
  }

  const Host* Given(std::initializer_list<const char*> names) const {
    for (const char* name : names) {
      if (call.HasArg(name) && call.Has(name) && Numel(call.In(name).dims) > 0) return &call.In(name);
    }
    return nullptr;
  }

  HostCall& call;
  std::string in, out, key_layout;
  bool flat, list, single;
  int64_t batch, heads, key_heads, tokens, width, v_width, prefix = 0, pse_type;
  const Host *query, *pages = nullptr, *pse, *mask, *k_prefix, *v_prefix, *q_rope, *k_rope;
  std::optional<Checked<int64_t>> q_lengths, k_lengths;
  Real scale;

 private:
  std::optional<Checked<int64_t>> Lengths(std::initializer_list<const char*> names) const {
    for (const char* name : names) {
      if (call.HasArg(name) && call.Has(name) && !call.Ints(name).empty()) return call.Ints(name);
    }
    return std::nullopt;
  }
  Range Padded(const std::string& arg, int64_t all, int64_t count) const {
    const Host* const padding = Given({(arg + "Optional").c_str(), arg.c_str()});
    if (!padding) return {0, count};
    const int64_t first = all - std::max<int64_t>(static_cast<int64_t>(padding->real(0)), 0) - count;
    return first < 0 ? Range{0, 0} : Range{first, count};
  }
  bool Masked(int64_t b, int64_t row, int64_t column) const {
    const Dims& d = mask->dims;
    const int rank = d.rank();
    const int64_t columns = d[rank - 1], rows = rank == 2 ? 1 : d[rank - 2];
    if (rank == 2) return mask->real((single ? (d[0] == 1 ? 0 : b) : row) * columns + column) != 0;
    return mask->real(((d[0] == 1 ? 0 : b) * rows + row) * columns + column) != 0;
  }
};

struct Bound {
  Real value;
  Real error;
};

Bound ScoreOf(const Scene& s, int64_t b, int64_t n, int64_t i, int64_t j) {
  Real dot = 0, size = 0;
  const auto add = [&](Real product) {
    dot += product;
    size += std::fabs(product);
  };
  const int64_t row = s.Queries(b).first + i;
  for (int64_t e = 0; e < s.width; ++e) {
    add(s.query->real(Place(s.in, s.query->dims, b, n, row, e, s.heads, s.width)) * s.Number(false, b, n, j, e));
  }
  const int64_t rope = s.q_rope ? static_cast<int64_t>(Scene::Last(*s.q_rope)) / (s.in == "BSH" ? s.heads : 1) : 0;
  for (int64_t e = 0; e < rope; ++e) {
    const Real key = s.At(*s.k_rope, b, n / (s.heads / s.key_heads), j, e, rope);
    add(s.q_rope->real(Place(s.in, s.q_rope->dims, b, n, row, e, s.heads, rope)) * key);
  }
  const Real added = s.Added(b, n, i, j);
  return {s.scale * dot + added, kUnit * (std::fabs(s.scale) * size * static_cast<Real>(s.width + rope + 4) + 4 * std::fabs(added))};
}

void Oracle(HostCall& call) {
  const Scene s(call);
  Host& out = call.Out("attentionOut");
  out.values.assign(out.size(), 0);
  out.slack.assign(out.size(), 0);
  Host* const lse = call.HasArg("softmaxLseFlag") && call.Flag("softmaxLseFlag") ? &call.Out("softmaxLse") : nullptr;
  if (lse) lse->values.assign(lse->size(), kInfinity);
  if (lse) lse->slack.assign(lse->size(), 0);
  for (int64_t b = 0; b < s.batch; ++b) {
    const Scene::Range queries = s.Queries(b);
    const int64_t keys = s.prefix + s.Keys(b).count;
    for (int64_t at = 0; at < s.heads * queries.count; ++at) {
      const int64_t n = at / queries.count, i = at % queries.count, row = queries.first + i;
      Checked<Bound> scores(keys, {-kInfinity, 0});
      Real most = -kInfinity, worst = 0, sum = 0;
      for (int64_t j = 0; j < keys; ++j) {
        if (s.TakesPart(b, i, j)) scores[j] = ScoreOf(s, b, n, i, j);
        most = std::max(most, scores[j].value);
        if (scores[j].value != -kInfinity) worst = std::max(worst, scores[j].error);
      }
      if (most == -kInfinity) continue;
      for (const Bound& score : scores) sum += std::exp(score.value - most);
      if (lse) {
        const int64_t place = s.flat ? row * s.heads + n : (b * s.heads + n) * s.tokens + row;
        (*lse)[place] = most + std::log(sum);
        lse->slack[place] = kSafety * (3 * worst + kUnit * (static_cast<Real>(keys) + 8 + std::fabs(most)));
      }
      for (int64_t e = 0; e < s.v_width; ++e) {
        Real value = 0, error = 0;
        for (int64_t j = 0; j < keys; ++j) {
          if (scores[j].value == -kInfinity) continue;
          const Real x = std::exp(scores[j].value - most) / sum * s.Number(true, b, n, j, e);
          value += x;
          error += std::fabs(x) * kSafety * (4 * worst + kUnit * (most - scores[j].value + 4 + 2 * static_cast<Real>(keys + 8)));
        }
        const int64_t place = Place(s.out, out.dims, b, n, row, e, s.heads, s.v_width);
        out[place] = value;
        out.slack[place] = error;
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
  const char* mask = "";  // "SS", "BSS", "B1SS" (larger than it must be), "BS", "B11S" of one query, "small": 2048 x 2048
  int64_t mode = 0;
  int64_t pre = INT32_MAX, next = INT32_MAX;
  const char* pse = "";   // "full", "one" sequence, "slopes"
  int64_t pse_type = 0;
  Checked<int64_t> q_lengths = {}, k_lengths = {};
  Checked<int64_t> list = {};    // tokens of each sequence's keys
  int64_t page_tokens = 0;
  Checked<int64_t> pages = {};   // by sequence
  int page_rank = 3;
  int64_t prefix = 0;
  Checked<int64_t> prefix_length = {};
  int64_t q_pad = -2, k_pad = -2;    // -2: none
  int64_t rope = 0;
  bool lse = false;
  bool large = false;                // only in FLOAT
};

std::vector<Case> Cases() {
  std::vector<Case> cases;
  for (const char* layout : {"BSH", "BSND", "BNSD", "BNSD_BSND"}) {
    cases.push_back({.of = {layout, 2, 4, 2, 5, 7, 8, 8}, .lse = true});
    cases.push_back({.of = {layout, 2, 2, 2, 6, 9, 5, 3}, .mask = "B1SS"});
  }
  const auto add = [&](Case c) { cases.push_back(std::move(c)); };
  // One query a sequence.
  for (const char* layout : {"BSH", "BSND", "BNSD"}) add({.of = {layout, 3, 4, 2, 1, 9, 8, 6}, .mask = "BS", .mode = 9, .k_lengths = {9, 4, 7}, .lse = true});
  add({.of = {"BNSD", 2, 4, 1, 1, 40, 8, 8}, .mask = "B11S", .pse = "full"});
  add({.of = {"BNSD", 2, 2, 2, 1, 9, 4, 4}, .k_lengths = {6}, .list = {9, 6}});
  add({.of = {"BSH", 3, 2, 1, 1, 0, 4, 4}, .list = {3, 7, 5}});
  add({.of = {"BSND", 2, 2, 2, 1, 0, 4, 3}, .mask = "BS", .k_lengths = {7, 5}, .page_tokens = 4, .pages = {2, 0, 5, 1, -1, 3}});
  add({.of = {"BNSD", 2, 4, 2, 1, 0, 4, 4}, .k_lengths = {4, 3, 9}, .page_tokens = 2, .pages = {2, 0, 9, 1}, .page_rank = 4});
  add({.of = {"BNSD", 2, 2, 2, 1, 9, 4, 4}, .mask = "BS", .k_lengths = {6, 3}, .k_pad = 2});
  add({.of = {"BNSD", 2, 2, 2, 1, 9, 4, 4}, .k_lengths = {6, 9}, .k_pad = 1});
  add({.of = {"BNSD", 2, 2, 1, 1, 300, 6, 100}, .large = true});
  // Several.
  add({.of = {"BNSD", 1, 2, 1, 101, 130, 6, 5}, .mask = "SS", .mode = 1, .lse = true, .large = true});
  add({.of = {"BNSD", 1, 1, 1, 130, 101, 13, 20}, .mask = "small", .mode = 2, .large = true});
  add({.of = {"BSND", 1, 2, 2, 33, 100, 33, 17}, .mask = "small", .mode = 3, .large = true});
  add({.of = {"BNSD", 2, 3, 1, 7, 5, 4, 4}, .mask = "SS", .pre = 2, .next = 1, .lse = true});
  add({.of = {"BNSD", 2, 3, 1, 7, 5, 4, 4}, .pre = 2, .next = 1});
  add({.of = {"BNSD", 2, 2, 2, 6, 4, 4, 4}, .mask = "small", .mode = 3, .q_lengths = {6, 3}, .k_lengths = {4, 2}, .lse = true});
  add({.of = {"BSH", 1, 2, 2, 6, 9, 4, 4}, .mask = "small", .mode = 4, .pre = 2, .next = 1});
  add({.of = {"BSND", 2, 2, 2, 5, 8, 4, 4}, .mask = "BSS", .q_lengths = {2}, .k_lengths = {8, 5, 3}});
  add({.of = {"BNSD", 2, 2, 2, 5, 8, 4, 4}, .mask = "B1SS", .q_lengths = {4, 3}, .k_lengths = {6, 7}, .q_pad = 1, .k_pad = -1, .lse = true});
  add({.of = {"BNSD", 2, 2, 2, 5, 8, 4, 4}, .pse = "one", .q_lengths = {5, 3}, .q_pad = 1});
  add({.of = {"BSND", 2, 2, 2, 5, 8, 4, 4}, .pse = "full", .k_lengths = {3, 8}, .k_pad = 0});
  add({.of = {"BNSD", 2, 2, 1, 5, 8, 4, 4}, .pse = "full"});
  add({.of = {"BNSD", 2, 2, 1, 5, 8, 4, 4}, .pse = "one", .pse_type = 1});
  add({.of = {"BNSD", 2, 2, 2, 5, 8, 4, 4}, .pse = "slopes", .pse_type = 2});
  add({.of = {"BNSD", 2, 2, 2, 5, 8, 4, 4}, .pse = "slopes", .pse_type = 3});
  add({.of = {"BSND", 2, 2, 1, 5, 0, 4, 4}, .list = {3, 6}, .prefix = 4, .prefix_length = {2}});
  add({.of = {"BSH", 2, 2, 1, 5, 3, 4, 6}, .mask = "SS", .prefix = 4, .lse = true});
  add({.of = {"BSND", 2, 2, 2, 3, 0, 4, 3}, .mask = "small", .mode = 3, .k_lengths = {7, 5}, .page_tokens = 4, .pages = {2, 0, 5, 1, -1, 3}, .rope = 2, .lse = true});
  for (const char* layout : {"BSH", "BNSD"}) add({.of = {layout, 2, 4, 2, 5, 7, 8, 8}, .rope = 4});
  add({.of = {"BNSD", 2, 2, 2, 5, 0, 4, 4}, .lse = true});
  // Sequences one behind the other.
  const Checked<int64_t> q_ends = {2, 2, 5, 7, 0}, k_ends = {3, 5, 9, 10, 0};
  for (const char* layout : {"TND", "NTD_TND"}) {
    add({.of = {layout, 1, 4, 2, 8, 11, 5, 3}, .q_lengths = q_ends, .k_lengths = k_ends, .lse = true});
    add({.of = {layout, 1, 2, 2, 8, 11, 4, 4}, .mask = "small", .mode = 3, .q_lengths = q_ends, .k_lengths = k_ends, .rope = 2});
  }
  add({.of = {"TND", 1, 2, 2, 6, 9, 4, 4}, .mask = "SS", .pse = "one", .q_lengths = {2, 6}, .k_lengths = {4, 9}});
  add({.of = {"TND", 1, 2, 2, 5, 0, 4, 3}, .mask = "small", .mode = 3, .q_lengths = {2, 5}, .k_lengths = {7, 5}, .page_tokens = 4,
       .pages = {2, 0, 5, 1}, .lse = true});
  return cases;
}

bool IsFlat(const Case& c) { return std::string_view(c.of.layout).find("TND") != std::string_view::npos; }
int64_t Rows(const Case& c) { return static_cast<int64_t>(c.page_tokens > 0 && IsFlat(c) ? 2 : c.of.batch); }

// Whether the entry can be asked that.
bool Fits(const contract::Contract& contract, const Case& c) {
  const auto has = [&](const char* arg) { return contract.ArgIndex(arg) >= 0; };
  const std::string_view name = contract.op(), mask = c.mask;
  const bool incre = name.find("Incre") != name.npos, prompt = name.find("Prompt") != name.npos;
  if (IsFlat(c) && !has("queryRopeOptional")) return false;
  if (incre && (c.of.queries != 1 || c.of.layout == std::string_view("BNSD_BSND"))) return false;
  if ((c.mode != 0 || mask == "small") && !has("sparseMode") && c.of.queries != 1) return false;
  if (prompt && (!c.list.empty() || (!c.k_lengths.empty() && !has("actualSeqLengthsKv")))) return false;
  if (c.page_tokens > 0 && !has("blockSize")) return false;
  if (c.rope > 0 && !has("queryRopeOptional")) return false;
  if (c.prefix > 0 && !has("keySharedPrefixOptional")) return false;
  if (c.pse_type != 0 && !has("pseType")) return false;
  if (c.q_pad > -2 && !has("queryPaddingSize") && !has("queryPaddingSizeOptional")) return false;
  return c.k_pad == -2 || has("kvPaddingSize") || has("kvPaddingSizeOptional");
}

Dims DimsIn(std::string_view layout, int64_t batch, int64_t heads, int64_t tokens, int64_t width) {
  if (layout == "BSH") return {batch, tokens, heads * width};
  if (layout == "BSND") return {batch, tokens, heads, width};
  if (layout == "TND") return {tokens, heads, width};
  if (layout == "NTD_TND") return {heads, tokens, width};
  return {batch, heads, tokens, width};
}

TestArg KeysOf(const Case& c, DType t, int64_t width, bool as_list) {
  std::vector<TestArg> tensors;
  if (c.page_tokens > 0) {
    tensors.push_back(In(t, DimsIn(c.page_rank == 3 ? "BSH" : "BNSD", 6, c.of.key_heads, c.page_tokens, width)));
  } else if (c.list.empty()) {
    tensors.push_back(In(t, DimsIn(c.of.layout, c.of.batch, c.of.key_heads, c.of.keys, width)));
  }
  for (const int64_t tokens : c.list) tensors.push_back(In(t, DimsIn(c.of.layout, 1, c.of.key_heads, tokens, width)));
  return as_list ? List(tensors) : tensors[0];
}

TestArg MaskOf(const Case& c, DType type) {
  const std::string_view kind = c.mask;
  const auto make = [&](const Dims& dims) { return type == DType::kBool ? In(type, dims) : In(type, dims, Whole(0, 1)); };
  const int64_t keys = std::max<int64_t>({c.of.keys, c.page_tokens * 3, 0}) + c.prefix, queries = c.of.queries;
  if (kind.empty()) return Null();
  if (kind == "small") return In(type, {2048, 2048}, Unread()).Layout("expanded");
  if (kind == "BS") return make({c.of.batch, keys});
  if (kind == "B11S") return make({c.of.batch, 1, 1, keys + 3});
  if (kind == "BSS") return make({c.of.batch, queries, keys});
  if (kind == "B1SS") return make({c.of.batch, 1, queries + 1, keys + 3});
  return make({queries, keys});
}

TestArg PseOf(const Case& c, DType t) {
  const std::string_view kind = c.pse;
  if (kind.empty()) return Null();
  if (kind == "slopes") return c.pse_type == 2 ? In(DType::kF32, {c.of.heads}) : In(DType::kF32, {c.of.batch, c.of.heads});
  return In(t, {kind == "one" ? 1 : c.of.batch, c.of.heads, c.of.queries + (kind == "one" ? 3 : 0), c.of.keys + 2});
}

TestArg ArgOf(const Case& c, const contract::Contract& contract, const contract::Arg& arg, DType t, DType mask) {
  std::string name = arg.name;
  if (name.ends_with("Optional")) name.resize(name.size() - 8);
  const Shape& of = c.of;
  const bool incre = contract.ArgIndex("preTokens") < 0, list = arg.is_tensor_list();
  const auto ints = [](const Checked<int64_t>& values) { return values.empty() ? Null() : Ints(values); };
  const auto one = [](int64_t value) { return value == -2 ? Null() : In(DType::kI64, {1}, Given({static_cast<Real>(value)})); };
  const std::string_view layout = of.layout, out = layout == "BNSD_BSND" ? "BSND" : layout == "NTD_TND" ? "TND" : layout;
  if (name == "query") return In(t, DimsIn(layout, of.batch, of.heads, of.queries, of.width));
  if (name == "key") return KeysOf(c, t, of.width, list);
  if (name == "value") return KeysOf(c, t, of.v_width, list);
  if (name == "attentionOut") return Out(t, DimsIn(out, of.batch, of.heads, of.queries, of.v_width));
  if (name == "softmaxLse") {
    if (!c.lse) return Null();
    return Out(DType::kF32, IsFlat(c) ? Dims{of.queries, of.heads, 1} : Dims{of.batch, of.heads, of.queries, 1});
  }
  if (name == "queryRope") return c.rope > 0 ? In(t, DimsIn(layout, of.batch, of.heads, of.queries, c.rope)) : Null();
  if (name == "keyRope") return c.rope > 0 ? KeysOf(c, t, c.rope, false) : Null();
  if (name == "pseShift") return PseOf(c, t);
  if (name == "attenMask") return MaskOf(c, mask);
  if (name == "actualSeqLengths") return ints(incre ? c.k_lengths : c.q_lengths);
  if (name == "actualSeqLengthsKv") return ints(c.k_lengths);
  if (name == "keySharedPrefix") return c.prefix > 0 ? In(t, DimsIn(layout, 1, of.key_heads, c.prefix, of.width)) : Null();
  if (name == "valueSharedPrefix") return c.prefix > 0 ? In(t, DimsIn(layout, 1, of.key_heads, c.prefix, of.v_width)) : Null();
  if (name == "actualSharedPrefixLen") return ints(c.prefix_length);
  if (name == "blockTable" || name == "blocktable") {
    if (c.page_tokens == 0) return Null();
    Checked<Number> ids;
    for (const int64_t id : c.pages) ids.push_back(static_cast<Real>(id));
    return In(DType::kI32, {Rows(c), static_cast<int64_t>(ids.size()) / Rows(c)}, Given(ids));
  }
  if (name == "queryPaddingSize") return one(c.q_pad);
  if (name == "kvPaddingSize") return one(c.k_pad);
  if (arg.is_tensor()) return Null();
  if (name == "qStartIdx") return c.pse_type >= 2 ? Ints({3}) : Null();
  if (name == "kvStartIdx") return c.pse_type >= 2 ? Ints({1}) : Null();
  if (name == "numHeads") return Int(of.heads);
  if (name == "numKeyValueHeads") return Int(of.key_heads == of.heads ? 0 : of.key_heads);
  if (name == "scaleValue") return RealArg(0.4);
  if (name == "preTokens") return Int(c.pre);
  if (name == "nextTokens") return Int(c.next);
  if (name == "inputLayout") return Text(of.layout);
  if (name == "sparseMode") return Int(c.mode);
  if (name == "blockSize") return Int(c.page_tokens);
  if (name == "softmaxLseFlag") return Flag(c.lse);
  if (name == "pseType") return Int(c.pse_type);
  return Int(0);  // innerPrecise, modes of quantised parts
}

void Sample(Calls& calls) {
  const contract::Contract& contract = calls.op().contract;
  const char* const mask = contract.ArgIndex("attenMask") >= 0 ? "attenMask" : "attenMaskOptional";
  const std::vector<DType> masks = calls.TypesOf(mask);
  size_t masked = 0;
  for (const DType t : calls.TypesOf("query")) {
    int fitting = 0;
    for (const Case& c : Cases()) {
      if ((c.large && t != DType::kF32) || !Fits(contract, c)) continue;
      // What differs between the dtypes is how tokens are read and written.
      if (t != DType::kF32 && ++fitting % 4 != 1) continue;
      const DType mask_type = masks[(*c.mask ? masked++ : masked) % masks.size()];
      std::vector<TestArg> args;
      for (const contract::Arg& arg : contract.args()) args.push_back(ArgOf(c, contract, arg, t, mask_type));
      calls.Add(std::move(args), std::string(c.of.layout) + " mask " + c.mask + " mode " + std::to_string(c.mode));
    }
  }
}

}  // namespace

std::span<const Subject> InferenceSubjects() {
  constexpr Limits kLimits = {.ulps = 2};
  static const Subject subjects[] = {{"aclnnFusedInferAttentionScore", Sample, Oracle, kLimits},
                                     {"aclnnFusedInferAttentionScoreV2", Sample, Oracle, kLimits},
                                     {"aclnnFusedInferAttentionScoreV3", Sample, Oracle, kLimits},
                                     {"aclnnFusedInferAttentionScoreV4", Sample, Oracle, kLimits},
                                     {"aclnnFusedInferAttentionScoreV5", Sample, Oracle, kLimits},
                                     {"aclnnPromptFlashAttention", Sample, Oracle, kLimits},
                                     {"aclnnPromptFlashAttentionV2", Sample, Oracle, kLimits},
                                     {"aclnnPromptFlashAttentionV3", Sample, Oracle, kLimits},
                                     {"aclnnIncreFlashAttention", Sample, Oracle, kLimits},
                                     {"aclnnIncreFlashAttentionV2", Sample, Oracle, kLimits},
                                     {"aclnnIncreFlashAttentionV3", Sample, Oracle, kLimits},
                                     {"aclnnIncreFlashAttentionV4", Sample, Oracle, kLimits}};
  return subjects;
}

}  // namespace anyacl::harness
