// SPDX-License-Identifier: Apache-2.0
// Copyright The AnyACL Authors
//
// Attention as inference calls it: aclnnFusedInferAttentionScore, aclnnPromptFlashAttention and aclnnIncreFlashAttention. Keys may
// be one tensor, a list with one per sequence, or pages of a cache. One list of rules and one plan serve all; what the entries
// differ in is where arguments stand.
#include <fmt/format.h>

#include <algorithm>
#include <climits>
#include <limits>
#include <string>
#include <tuple>
#include <utility>
#include <vector>

#include "core/codes.h"
#include "ops/attention/families.h"
#include "ops/pointwise/formulas.h"
#include "ops/pointwise/pass.h"
#include "ops/table.h"

namespace anyacl::attention {
namespace {

using namespace contract;

constexpr int kNone = -1;
constexpr DType F32 = DType::kF32;

// Where arguments stand.
struct Args {
  bool prompt = false;     // keys are plain tensors, and every refusal is 161002
  bool one_query = false;  // of each sequence
  bool flat = false;       // TND and NTD_TND too
  int query = 0, key = 1, value = 2, pse = 3, mask = 4;
  int q_lengths = kNone, k_lengths = kNone, pages = kNone, q_pad = kNone, k_pad = kNone;
  int k_prefix = kNone, v_prefix = kNone, prefix_length = kNone, q_rope = kNone, k_rope = kNone, q_start = kNone, k_start = kNone;
  int heads, scale, pre = kNone, next = kNone, layout, k_heads, sparse = kNone, page_tokens = kNone, wants_lse = kNone, pse_type = kNone;
  int out, lse = kNone;
};

// `heads` is the first of the numbers, which have the same order in every version.
constexpr Args FusedInfer(int heads, int out) {
  return {.flat = heads > 24, .q_lengths = 5, .k_lengths = 6, .pages = 14, .q_pad = 15, .k_pad = 16, .k_prefix = heads > 17 ? 21 : kNone,
          .v_prefix = heads > 17 ? 22 : kNone, .prefix_length = heads > 17 ? 23 : kNone, .q_rope = heads > 24 ? 24 : kNone,
          .k_rope = heads > 24 ? 25 : kNone, .q_start = heads > 29 ? 29 : kNone, .k_start = heads > 29 ? 30 : kNone, .heads = heads,
          .scale = heads + 1, .pre = heads + 2, .next = heads + 3, .layout = heads + 4, .k_heads = heads + 5, .sparse = heads + 6,
          .page_tokens = heads + 8, .wants_lse = heads + 10, .pse_type = heads > 29 ? out - 1 : kNone, .out = out, .lse = out + 1};
}
constexpr Args Prompt(int heads, int out) {
  return {.prompt = true, .q_lengths = 5, .k_lengths = heads > 6 ? 6 : kNone, .heads = heads, .scale = heads + 1, .pre = heads + 2,
          .next = heads + 3, .layout = heads + 4, .k_heads = heads + 5, .sparse = heads > 6 ? heads + 6 : kNone, .out = out};
}
constexpr Args Incre(int heads, int out) {
  return {.one_query = true, .k_lengths = 5, .pages = heads > 11 ? 13 : kNone, .k_pad = heads > 14 ? 14 : kNone, .heads = heads,
          .scale = heads + 1, .layout = heads + 2, .k_heads = heads + 3, .page_tokens = heads > 11 ? heads + 4 : kNone, .out = out};
}
constexpr Args kFused = FusedInfer(17, 28), kFusedV2 = FusedInfer(24, 37), kFusedV3 = FusedInfer(27, 40), kFusedV4 = FusedInfer(29, 43),
               kFusedV5 = FusedInfer(31, 46);
constexpr Args kPrompt = Prompt(6, 12), kPromptV2 = Prompt(12, 19), kPromptV3 = Prompt(12, 20);
constexpr Args kIncre = Incre(6, 10), kIncreV2 = Incre(11, 15), kIncreV3 = Incre(14, 20), kIncreV4 = Incre(15, 21);

// Results may lie in another order than queries.
struct Form {
  std::string_view name;
  Layout in;
  Layout out;
};
constexpr Layout kBsh = {"BSH", 3, 0, -1, 1}, kBsnd = {"BSND", 4, 0, 2, 1}, kBnsd = {"BNSD", 4, 0, 1, 2}, kTnd = {"TND", 3, -1, 1, 0},
                 kNtd = {"NTD", 3, -1, 0, 1};
constexpr Form kForms[] = {{"BSH", kBsh, kBsh},          {"BSND", kBsnd, kBsnd}, {"BNSD", kBnsd, kBnsd},
                           {"BNSD_BSND", kBnsd, kBsnd}, {"TND", kTnd, kTnd},    {"NTD_TND", kNtd, kTnd}};

bool Has(Values v, int arg) { return arg >= 0 && HasElements(v[arg]); }
bool HasInts(Values v, int arg) { return arg >= 0 && HasNumbers(v[arg]); }
const std::vector<int64_t>& IntsOf(Values v, int arg) { return v[arg].ints->values; }
const Dims& DimsOf(Values v, int arg) { return v[arg].tensor->dims; }
int64_t LastDim(const Dims& dims) { return dims[dims.rank() - 1]; }

const Form* FormNamed(const Args& a, std::string_view name) {
  for (const Form& form : kForms) {
    if (form.name == name && (a.flat || form.in.batch >= 0)) return &form;
  }
  return nullptr;
}
const Form& FormOf(const Args& a, Values v) { return *FormNamed(a, v[a.layout].text); }
bool IsFlat(const Args& a, Values v) { return FormOf(a, v).in.batch < 0; }
bool IsPaged(const Args& a, Values v) { return Has(v, a.pages); }

// Keys or values.
int64_t CountOf(const Args& a, Values v, int arg) { return a.prompt ? 1 : static_cast<int64_t>(v[arg].tensors->tensors.size()); }
const Tensor& ItemOf(const Args& a, Values v, int arg, int64_t item) { return a.prompt ? *v[arg].tensor : *v[arg].tensors->tensors[item]; }

// --- the sizes of a call; each asks of the rules in front of it ----------------------------------------------------------

int64_t QueryTokens(const Args& a, Values v) { return DimsOf(v, a.query)[FormOf(a, v).in.token]; }
// One query of each sequence: neither modes nor lengths of queries count.
bool HasOneQuery(const Args& a, Values v) { return !IsFlat(a, v) && QueryTokens(a, v) == 1; }
int64_t HeadsOfKeys(const Args& a, Values v) { return v[a.k_heads].integer == 0 ? v[a.heads].integer : v[a.k_heads].integer; }
int64_t WidthOf(const Layout& layout, const Dims& dims, int64_t heads) { return layout.heads >= 0 ? LastDim(dims) : LastDim(dims) / heads; }
int64_t Width(const Args& a, Values v) { return WidthOf(FormOf(a, v).in, DimsOf(v, a.query), v[a.heads].integer); }
const Layout& LayoutOfKeys(const Args& a, Values v) {
  if (!IsPaged(a, v)) return FormOf(a, v).in;
  return ItemOf(a, v, a.key, 0).dims.rank() == 3 ? kBsh : kBnsd;
}
// Sequences. Flat: zeros at the end are none.
int64_t Batch(const Args& a, Values v) {
  if (!IsFlat(a, v)) return DimsOf(v, a.query)[FormOf(a, v).in.batch];
  const auto& ends = IntsOf(v, a.q_lengths);
  auto count = static_cast<int64_t>(ends.size());
  while (count > 0 && ends[count - 1] == 0) --count;
  return count;
}
int64_t KeyTokens(const Args& a, Values v, int64_t item) { return ItemOf(a, v, a.key, item).dims[LayoutOfKeys(a, v).token]; }
int64_t MostKeyTokens(const Args& a, Values v) {
  int64_t most = 0;
  for (int64_t item = 0; item < CountOf(a, v, a.key); ++item) most = std::max(most, KeyTokens(a, v, item));
  return most;
}
int64_t Prefix(const Args& a, Values v) {
  if (!Has(v, a.k_prefix)) return 0;
  return HasInts(v, a.prefix_length) ? IntsOf(v, a.prefix_length)[0] : DimsOf(v, a.k_prefix)[FormOf(a, v).in.token];
}
// Lengths of sequences, or where they end; one may stand for all.
int64_t At(const std::vector<int64_t>& lengths, int64_t b) { return lengths[lengths.size() == 1 ? 0 : b]; }
bool CountsQueries(const Args& a, Values v) { return HasInts(v, a.q_lengths) && !HasOneQuery(a, v); }
bool PadsQueries(const Args& a, Values v) { return Has(v, a.q_pad) && CountsQueries(a, v); }
bool PadsKeys(const Args& a, Values v) { return Has(v, a.k_pad) && HasInts(v, a.k_lengths); }

constexpr int64_t kCausal = 2048;  // rows and columns of masks that the mode stands for
int64_t Mode(const Args& a, Values v) { return a.sparse < 0 ? 0 : v[a.sparse].integer; }
bool IsCompressed(const Args& a, Values v) { return !HasOneQuery(a, v) && Mode(a, v) >= 2; }
int64_t PseType(const Args& a, Values v) { return a.pse_type < 0 ? 0 : v[a.pse_type].integer; }
bool HasSlopes(const Args& a, Values v) { return PseType(a, v) >= 2; }
int64_t Limited(int64_t x) { return std::clamp(x, -kFar, kFar); }
int64_t Tokens32(int64_t tokens) { return tokens >= INT32_MAX ? kFar : Limited(tokens); }  // 2147483647: no limit

void LimitSequence(const Args& a, Values v, Sequence* s) {
  s->first = -kFar;
  s->last = kFar;
  if (!Has(v, a.mask) || HasOneQuery(a, v)) return;
  const int64_t shift = s->k_count - s->q_count, mode = Mode(a, v);
  const int64_t pre = a.pre < 0 ? kFar : Tokens32(v[a.pre].integer), next = a.next < 0 ? kFar : Tokens32(v[a.next].integer);
  if (mode == 0) std::tie(s->first, s->last) = std::pair(-pre, next);
  if (mode == 2) s->last = 0;
  if (mode == 3) s->last = shift;
  if (mode == 4) std::tie(s->first, s->last) = std::pair(Limited(shift - pre), Limited(shift + next));
}

std::vector<Sequence> SequencesOf(const Args& a, Values v) {
  std::vector<Sequence> all;
  const bool flat = IsFlat(a, v), flat_keys = flat && !IsPaged(a, v);
  const int64_t heads = v[a.heads].integer, tokens = QueryTokens(a, v), prefix = Prefix(a, v), items = CountOf(a, v, a.key);
  Sequence s{};
  for (int64_t b = 0; b < Batch(a, v); ++b) {
    s.q_begin += flat ? s.q_count : 0;
    s.k_begin += flat_keys ? s.k_count : 0;
    s.q_count = CountsQueries(a, v) ? At(IntsOf(v, a.q_lengths), b) - s.q_begin : tokens;
    s.k_count = HasInts(v, a.k_lengths) ? At(IntsOf(v, a.k_lengths), b) - s.k_begin : KeyTokens(a, v, items > 1 ? b : 0);
    s.k_count += prefix;
    s.stats = heads * (flat ? s.q_begin : b * tokens);
    s.stats_head = flat ? 1 : tokens;
    LimitSequence(a, v, &s);
    all.push_back(s);
  }
  return all;
}

// Rows and columns that a mask must have.
std::pair<int64_t, int64_t> Positions(const Args& a, Values v) {
  int64_t queries = 0, keys = 0;
  for (const Sequence& s : SequencesOf(a, v)) {
    queries = std::max(queries, s.q_count);
    keys = std::max(keys, s.k_count);
  }
  if (!IsFlat(a, v)) queries = QueryTokens(a, v);
  return {queries, IsPaged(a, v) || IsFlat(a, v) ? keys : Prefix(a, v) + MostKeyTokens(a, v)};
}

// --- rules ------------------------------------------------------------------------------------------------------------

using Check = std::string (*)(const Args& a, Values v, Product product);

std::string ShapeProblem(const Dims& want, const Dims& got) {
  return got == want ? "" : fmt::format("must have shape {}, got {}", ToString(want), ToString(got));
}

template <int Args::*kArg>
std::string HasEntries(const Args& a, Values v, Product) {
  return CountOf(a, v, a.*kArg) > 0 ? "" : "must have entries, got an empty list";
}
template <int Args::*kArg>
std::string NotQuantised(const Args& a, Values v, Product) {
  const bool list = !a.prompt && (kArg == &Args::key || kArg == &Args::value);
  for (int64_t item = 0; item < (list ? CountOf(a, v, a.*kArg) : 1); ++item) {
    const DType t = (list ? ItemOf(a, v, a.*kArg, item) : *v[a.*kArg].tensor).dtype;
    if (t == DType::kI8 || t == DType::kI4) return fmt::format("must not be quantised, got {}", Name(t));
  }
  return "";
}
template <int Args::*kArg>
std::string WrongType(const Args& a, Values v, Product) {
  const DType want = v[a.query].tensor->dtype;
  for (int64_t item = 0; item < CountOf(a, v, a.*kArg); ++item) {
    const DType got = ItemOf(a, v, a.*kArg, item).dtype;
    if (got != want) return fmt::format("must be {} as the queries, got {}", Name(want), Name(got));
  }
  return "";
}
template <int Args::*kArg>
std::string WrongOptionalType(const Args& a, Values v, Product) {
  if (!Has(v, a.*kArg)) return "";
  const DType want = kArg == &Args::pse && HasSlopes(a, v) ? F32 : v[a.query].tensor->dtype, got = v[a.*kArg].tensor->dtype;
  return got == want ? "" : fmt::format("must be {}, got {}", Name(want), Name(got));
}

std::string WrongLayout(const Args& a, Values v, Product) {
  if (FormNamed(a, v[a.layout].text)) return "";
  return fmt::format("must be BSH, BSND, BNSD, BNSD_BSND{}, got {}", a.flat ? ", TND or NTD_TND" : "", v[a.layout].text);
}
std::string WrongQuery(const Args& a, Values v, Product) {
  const Form& form = FormOf(a, v);
  const Dims& dims = DimsOf(v, a.query);
  if (dims.rank() != form.in.rank) return fmt::format("must have {} dims as {}, got {}", form.in.rank, form.in.name, ToString(dims));
  if (a.one_query && dims[form.in.token] != 1) return fmt::format("must have one token of each sequence, got {}", ToString(dims));
  if (&form == &kForms[3] && dims[form.in.token] == 1) return fmt::format("must have several tokens with {}, got {}", form.name, ToString(dims));
  return "";
}
std::string WrongHeads(const Args& a, Values v, Product) {
  const Layout& layout = FormOf(a, v).in;
  const Dims& dims = DimsOf(v, a.query);
  const int64_t heads = v[a.heads].integer;
  const bool fits = heads > 0 && (layout.heads >= 0 ? dims[layout.heads] == heads : LastDim(dims) % heads == 0);
  return fits ? "" : fmt::format("must be the number of heads of the queries, got {} for shape {}", heads, ToString(dims));
}
std::string WrongKeyHeads(const Args& a, Values v, Product) {
  const int64_t heads = v[a.heads].integer, k_heads = v[a.k_heads].integer;
  const bool fits = k_heads >= 0 && (k_heads == 0 || heads % k_heads == 0);
  return fits ? "" : fmt::format("must be 0 or divide {} heads, got {}", heads, k_heads);
}

template <int Args::*kLengths>
std::string WrongEnds(const Args& a, Values v) {
  if (!HasInts(v, a.*kLengths)) return fmt::format("must be given for {}, got nothing", v[a.layout].text);
  const auto& ends = IntsOf(v, a.*kLengths);
  const bool queries = kLengths == &Args::q_lengths;
  const int64_t batch = Batch(a, v);
  if (static_cast<int64_t>(ends.size()) < batch) return fmt::format("must have an entry for each of {} sequences, got {}", batch, ends.size());
  const int64_t tokens = queries ? QueryTokens(a, v) : KeyTokens(a, v, 0);
  int64_t before = 0;
  for (int64_t b = 0; b < batch; before = ends[b++]) {
    if (ends[b] < before || ends[b] > tokens) {
      return fmt::format("must hold ends of sequences among {} tokens in order, got {} behind {} at {}", tokens, ends[b], before, b);
    }
  }
  return "";
}
// Of each sequence.
std::string WrongCounts(const std::vector<int64_t>& lengths, int64_t batch, int64_t tokens) {
  if (lengths.size() != 1 && static_cast<int64_t>(lengths.size()) < batch) {
    return fmt::format("must have one entry or one for each of {} sequences, got {}", batch, lengths.size());
  }
  const int64_t given = lengths.size() == 1 ? 1 : batch;  // not more than there are, whatever the batch says
  for (int64_t b = 0; b < given; ++b) {
    if (lengths[b] < 0 || lengths[b] > tokens) return fmt::format("must be 0 to {}, got {} at {}", tokens, lengths[b], b);
  }
  return "";
}
std::string WrongQueryLengths(const Args& a, Values v, Product) {
  if (IsFlat(a, v)) return WrongEnds<&Args::q_lengths>(a, v);
  return CountsQueries(a, v) ? WrongCounts(IntsOf(v, a.q_lengths), Batch(a, v), QueryTokens(a, v)) : "";
}
std::string WrongPages(const Args& a, Values v, Product) {
  if (!IsPaged(a, v)) return "";
  const Dims& pages = DimsOf(v, a.pages);
  const int64_t batch = Batch(a, v), tokens = v[a.page_tokens].integer;
  if (tokens <= 0) return fmt::format("must come with a positive blockSize, got {}", tokens);
  if (pages.rank() != 2 || pages[0] != batch) return fmt::format("must have a row for each of {} sequences, got {}", batch, ToString(pages));
  const int rank = ItemOf(a, v, a.key, 0).dims.rank();
  if (rank != 3 && rank != 4) return fmt::format("must come with keys of 3 or 4 dims, got {}", rank);
  return PadsKeys(a, v) || Has(v, a.k_prefix) ? "must be absent beside kvPaddingSize or a shared prefix, got a tensor" : "";
}

// One entry of a list of keys or values whose heads are `width` wide.
std::string WrongTokens(const Args& a, Values v, const Dims& dims, int64_t items, int64_t width) {
  const Layout& layout = LayoutOfKeys(a, v);
  const int64_t heads = HeadsOfKeys(a, v);
  const auto wrong = [&](const std::string& what) { return fmt::format("must have {}, got {}", what, ToString(dims)); };
  if (dims.rank() != layout.rank) return wrong(fmt::format("{} dims", layout.rank));
  if (layout.heads >= 0 && dims[layout.heads] != heads) return wrong(fmt::format("{} heads", heads));
  if (LastDim(dims) != (layout.heads >= 0 ? width : width * heads)) return wrong(fmt::format("heads {} wide", width));
  if (IsPaged(a, v)) return dims[layout.token] == v[a.page_tokens].integer ? "" : wrong("blockSize tokens in a block");
  if (layout.batch < 0) return "";
  const int64_t batch = items > 1 ? 1 : Batch(a, v);
  return dims[layout.batch] == batch ? "" : wrong(fmt::format("{} sequences", batch));
}
std::string WrongKey(const Args& a, Values v, Product) {
  const int64_t items = CountOf(a, v, a.key);
  if (items != 1 && (IsFlat(a, v) || IsPaged(a, v) || items != Batch(a, v))) {
    return fmt::format("must be one tensor or, where they are neither flat nor paged, one for each sequence, got {}", items);
  }
  for (int64_t item = 0; item < items; ++item) {
    if (std::string problem = WrongTokens(a, v, ItemOf(a, v, a.key, item).dims, items, Width(a, v)); !problem.empty()) return problem;
  }
  return "";
}
int64_t ValueWidth(const Args& a, Values v) { return WidthOf(LayoutOfKeys(a, v), ItemOf(a, v, a.value, 0).dims, HeadsOfKeys(a, v)); }
std::string WrongValue(const Args& a, Values v, Product) {
  const int64_t items = CountOf(a, v, a.key);
  if (CountOf(a, v, a.value) != items) return fmt::format("must have as many tensors as the keys, got {}", CountOf(a, v, a.value));
  const Layout& layout = LayoutOfKeys(a, v);
  for (int64_t item = 0; item < items; ++item) {
    const Dims &dims = ItemOf(a, v, a.value, item).dims, &key = ItemOf(a, v, a.key, item).dims;
    if (dims.rank() == 0) return "must have dims, got none";
    if (std::string problem = WrongTokens(a, v, dims, items, ValueWidth(a, v)); !problem.empty()) return problem;
    if (dims[layout.token] != key[layout.token] || (layout.batch >= 0 && dims[layout.batch] != key[layout.batch])) {
      return fmt::format("must have the tokens of the keys {}, got {}", ToString(key), ToString(dims));
    }
  }
  return "";
}
std::string WrongKeyLengths(const Args& a, Values v, Product) {
  if (IsPaged(a, v)) {
    if (!HasInts(v, a.k_lengths)) return "must be given for keys in blocks, got nothing";
    const int64_t room = DimsOf(v, a.pages)[1];
    return WrongCounts(IntsOf(v, a.k_lengths), Batch(a, v), room > kFar / v[a.page_tokens].integer ? kFar : room * v[a.page_tokens].integer);
  }
  if (IsFlat(a, v)) return WrongEnds<&Args::k_lengths>(a, v);
  if (!HasInts(v, a.k_lengths)) return "";
  if (std::string problem = WrongCounts(IntsOf(v, a.k_lengths), Batch(a, v), MostKeyTokens(a, v)); !problem.empty()) return problem;
  for (int64_t item = 0; CountOf(a, v, a.key) > 1 && item < CountOf(a, v, a.key); ++item) {
    const int64_t got = At(IntsOf(v, a.k_lengths), item), tokens = KeyTokens(a, v, item);
    if (got > tokens) return fmt::format("must be 0 to {} for that tensor, got {} at {}", tokens, got, item);
  }
  return "";
}
std::string WrongPrefix(const Args& a, Values v, Product) {
  if (Has(v, a.k_prefix) != Has(v, a.v_prefix)) return "must be given with that of the values, got one of them";
  if (!Has(v, a.k_prefix)) return "";
  if (IsFlat(a, v) || PadsKeys(a, v) || Has(v, a.k_rope)) return "must be absent with flat sequences, padding or ropes, got a tensor";
  const Layout& layout = FormOf(a, v).in;
  for (const int arg : {a.k_prefix, a.v_prefix}) {
    Dims want = ItemOf(a, v, arg == a.k_prefix ? a.key : a.value, 0).dims;
    want[layout.batch] = 1;
    want[layout.token] = DimsOf(v, a.k_prefix).rank() == layout.rank ? DimsOf(v, a.k_prefix)[layout.token] : 0;
    if (std::string problem = ShapeProblem(want, DimsOf(v, arg)); !problem.empty()) return problem;
  }
  return "";
}
std::string WrongPrefixLength(const Args& a, Values v, Product) {
  if (!Has(v, a.k_prefix) || !HasInts(v, a.prefix_length)) return "";
  const int64_t got = IntsOf(v, a.prefix_length)[0], tokens = DimsOf(v, a.k_prefix)[FormOf(a, v).in.token];
  return got >= 0 && got <= tokens ? "" : fmt::format("must be 0 to {}, got {}", tokens, got);
}
std::string WrongQueryRope(const Args& a, Values v, Product) {
  if (Has(v, a.q_rope) != Has(v, a.k_rope)) return "must be given with that of the keys, got one of them";
  if (!Has(v, a.q_rope)) return "";
  Dims want = DimsOf(v, a.query);
  const Dims& got = DimsOf(v, a.q_rope);
  const bool divides = FormOf(a, v).in.heads >= 0 || (got.rank() > 0 && LastDim(got) % v[a.heads].integer == 0);
  if (got.rank() == want.rank() && divides) want[want.rank() - 1] = LastDim(got);
  return ShapeProblem(want, got);
}
std::string WrongKeyRope(const Args& a, Values v, Product) {
  if (!Has(v, a.k_rope)) return "";
  if (CountOf(a, v, a.key) != 1) return "must be absent with a list of keys, got a tensor";
  const Layout& layout = LayoutOfKeys(a, v);
  const int64_t width = WidthOf(FormOf(a, v).in, DimsOf(v, a.q_rope), v[a.heads].integer);
  Dims want = ItemOf(a, v, a.key, 0).dims;
  want[want.rank() - 1] = layout.heads >= 0 ? width : width * HeadsOfKeys(a, v);
  return ShapeProblem(want, DimsOf(v, a.k_rope));
}

std::string WrongPseType(const Args& a, Values v, Product) {
  const int64_t type = PseType(a, v);
  return type >= 0 && type <= 3 ? "" : fmt::format("must be 0 to 3, got {}", type);
}
std::string WrongPse(const Args& a, Values v, Product) {
  if (!Has(v, a.pse)) return "";
  const Dims& d = DimsOf(v, a.pse);
  const auto [queries, keys] = Positions(a, v);
  const int64_t heads = v[a.heads].integer, batch = Batch(a, v);
  if (HasSlopes(a, v)) {
    return d == Dims{heads} || d == Dims{batch, heads} ? "" : fmt::format("must hold slopes of {} heads, got {}", heads, ToString(d));
  }
  const bool fits = d.rank() == 4 && (d[0] == 1 || d[0] == batch) && d[1] == heads && d[2] >= queries && d[3] >= keys;
  return fits ? "" : fmt::format("must have shape {}, or more in the last two dims and 1 in the first, got {}", ToString({batch, heads, queries, keys}), ToString(d));
}
std::string WrongMode(const Args& a, Values v, Product) {
  const int64_t mode = Mode(a, v);
  if (HasOneQuery(a, v)) return "";
  if (mode < 0 || mode > 4) return fmt::format("must be 0 to 4, got {}", mode);
  return mode == 0 || Has(v, a.mask) ? "" : fmt::format("must be 0 without a mask, got {}", mode);
}

// Axes of a mask that is not compressed; -1: it has none.
struct MaskAxes {
  int batch, query, key;
};
MaskAxes AxesOf(const Args& a, Values v) {
  const int rank = DimsOf(v, a.mask).rank();
  if (rank == 2) return HasOneQuery(a, v) ? MaskAxes{0, -1, 1} : MaskAxes{-1, 0, 1};
  return {0, rank - 2, rank - 1};
}
std::string WrongMask(const Args& a, Values v, Product) {
  if (!Has(v, a.mask)) return "";
  const Dims& d = DimsOf(v, a.mask);
  const int rank = d.rank();
  const auto wrong = [&](const std::string& want) { return fmt::format("must have {}, got {}", want, ToString(d)); };
  if (rank < 2 || rank > 4) return wrong("2 to 4 dims");
  if (IsCompressed(a, v)) {
    bool fits = d[rank - 2] == kCausal && d[rank - 1] == kCausal;
    for (int axis = 0; axis + 2 < rank; ++axis) fits = fits && d[axis] == 1;
    return fits ? "" : wrong(fmt::format("shape [{}, {}] for sparseMode {}", kCausal, kCausal, Mode(a, v)));
  }
  const auto [queries, keys] = Positions(a, v);
  const MaskAxes axes = AxesOf(a, v);
  const int64_t batch = Batch(a, v);
  const bool fits = (axes.batch < 0 || d[axes.batch] == 1 || d[axes.batch] == batch) && (rank < 4 || d[1] == 1) &&
                    (axes.query < 0 || d[axes.query] >= queries) && d[axes.key] >= keys;
  return fits ? "" : wrong(fmt::format("at least {} x {} positions, of one sequence or of {}", queries, keys, batch));
}
std::string WrongBand(const Args& a, Values v, Product) {
  const int64_t mode = Mode(a, v);
  if (!Has(v, a.mask) || HasOneQuery(a, v) || (mode != 0 && mode != 4)) return "";
  const int64_t pre = Tokens32(v[a.pre].integer), next = Tokens32(v[a.next].integer);
  return pre + next >= 0 ? "" : fmt::format("and nextTokens must leave a band, got {} and {}", v[a.pre].integer, v[a.next].integer);
}
template <int Args::*kArg>
std::string WrongPadding(const Args& a, Values v, Product) {
  if (!Has(v, a.*kArg)) return "";
  if (Numel(DimsOf(v, a.*kArg)) != 1) return fmt::format("must have one element, got {}", ToString(DimsOf(v, a.*kArg)));
  const bool counts = kArg == &Args::q_pad ? PadsQueries(a, v) : PadsKeys(a, v);
  return counts && (IsFlat(a, v) || CountOf(a, v, a.key) != 1) ? "must be absent with flat sequences or a list of keys, got a tensor" : "";
}
std::string WrongOut(const Args& a, Values v, Product) {
  const Form& form = FormOf(a, v);
  const Dims& q = DimsOf(v, a.query);
  const int64_t heads = v[a.heads].integer, width = ValueWidth(a, v);
  Dims want = q;
  if (form.out.batch >= 0) want[form.out.batch] = q[form.in.batch];
  want[form.out.token] = q[form.in.token];
  if (form.out.heads >= 0) want[form.out.heads] = heads;
  want[form.out.rank - 1] = form.out.heads >= 0 ? width : heads * width;
  return ShapeProblem(want, DimsOf(v, a.out));
}
std::string WrongLse(const Args& a, Values v, Product) {
  if (!v[a.wants_lse].flag) return "";
  const int64_t heads = v[a.heads].integer, tokens = QueryTokens(a, v);
  return ShapeProblem(IsFlat(a, v) ? Dims{tokens, heads, 1} : Dims{Batch(a, v), heads, tokens, 1}, DimsOf(v, a.lse));
}

// --- plan -------------------------------------------------------------------------------------------------------------

// The operand as [sequences, heads, tokens, numbers].
Operand HeadsOf(const Layout& layout, Operand x, int64_t heads) {
  const int64_t width = WidthOf(layout, x.dims, heads), step = x.strides[layout.rank - 1];
  const Dims dims = {layout.batch < 0 ? 1 : x.dims[layout.batch], heads, x.dims[layout.token], width};
  x.strides = {layout.batch < 0 ? 0 : x.strides[layout.batch], layout.heads < 0 ? width * step : x.strides[layout.heads], x.strides[layout.token], step};
  x.dims = dims;
  return x;
}
// Tokens [first, first + count) of such an operand.
Operand TokensAt(Operand x, int64_t first, int64_t count) {
  x.offset += first * x.strides[2] * static_cast<int64_t>(SizeOf(x.dtype));
  x.dims[2] = count;
  return x;
}

class Builder {
 public:
  Builder(const Args& a, Values v, PlanBuilder& plan)
      : a_(a), v_(v), plan_(plan), form_(FormOf(a, v)), all_(SequencesOf(a, v)), heads_(v[a.heads].integer), k_heads_(HeadsOfKeys(a, v)) {
    places_ = Place(&all_, false);
  }

  Status Plan() {
    const bool wants_lse = a_.wants_lse >= 0 && v_[a_.wants_lse].flag;
    const Operand lse = wants_lse ? pointwise::DenseOutput(plan_, a_.lse, 0, F32) : Operand();
    const Operand tensor = plan_.TensorOperand(a_.out);
    const Operand out = plan_.Overlaps(tensor, /*exact_too=*/true) ? plan_.ScratchOperand("result", tensor.dtype, tensor.dims) : tensor;
    // Queries that belong to no sequence.
    if (NeedsTable() || all_.empty()) {
      ANYACL_RETURN_IF_ERROR(AddZeros(plan_, out));
      if (wants_lse) ANYACL_RETURN_IF_ERROR(Fill(lse, std::numeric_limits<float>::infinity()));
    }
    if (!all_.empty()) ANYACL_RETURN_IF_ERROR(AddAttention(out, wants_lse ? &lse : nullptr));
    if (wants_lse) ANYACL_RETURN_IF_ERROR(pointwise::FinishOutput(plan_, a_.lse, 0, lse));
    return out.index >= 0 ? Status() : pointwise::AddCopy(plan_, out, tensor);
  }

 private:
  bool IsListed() const { return CountOf(a_, v_, a_.key) > 1; }
  bool NeedsTable() const {
    return form_.in.batch < 0 || CountsQueries(a_, v_) || HasInts(v_, a_.k_lengths) || IsListed() || PadsQueries(a_, v_) || PadsKeys(a_, v_);
  }
  bool IsPadded() const { return PadsQueries(a_, v_) || PadsKeys(a_, v_); }

  Status Fill(const Operand& to, float value) {
    const pointwise::ScalarUse scalar[] = {{Scalar::OfFloat(value)}};
    return pointwise::AddPass(plan_, pointwise::Formula::kFill, to.dtype, {}, to, scalar);
  }

  // Keys or values as [sequences or pages, heads, tokens, numbers]; several pieces of them are put together first.
  Status Gather(int arg, int prefix_arg, const char* name, Operand* all) {
    const Layout& layout = LayoutOfKeys(a_, v_);
    const int64_t prefix = Prefix(a_, v_), items = CountOf(a_, v_, arg);
    if (items == 1 && prefix == 0) {
      *all = HeadsOf(layout, plan_.TensorOperand(arg), k_heads_);
      return {};
    }
    const int64_t width = WidthOf(layout, ItemOf(a_, v_, arg, 0).dims, k_heads_), tokens = prefix + MostKeyTokens(a_, v_);
    *all = plan_.ScratchOperand(name, v_[a_.query].tensor->dtype, {Batch(a_, v_), k_heads_, tokens, width});
    if (prefix > 0) {
      const Operand from = HeadsOf(layout, plan_.TensorOperand(prefix_arg), k_heads_);
      ANYACL_RETURN_IF_ERROR(pointwise::AddCopy(plan_, TokensAt(from, 0, prefix), TokensAt(*all, 0, prefix)));
    }
    for (int64_t item = 0; item < items; ++item) {
      const Operand from = HeadsOf(layout, plan_.TensorOperand(arg, static_cast<int>(item)), k_heads_);
      Operand to = TokensAt(*all, prefix, from.dims[2]);
      to.dims[0] = from.dims[0];
      to.offset += item * to.strides[0] * static_cast<int64_t>(SizeOf(to.dtype));
      ANYACL_RETURN_IF_ERROR(pointwise::AddCopy(plan_, from, to));
    }
    return {};
  }

  Status MakeTable() {
    ANYACL_RETURN_IF_ERROR(AddSequences(plan_, all_, &table_));
    if (!IsPadded()) return {};
    auto& p = plan_.MakeParams<PaddingParams>();
    p.count = static_cast<int64_t>(all_.size());
    p.q_tokens = QueryTokens(a_, v_);
    p.k_tokens = MostKeyTokens(a_, v_);
    plan_.Bind(table_, reinterpret_cast<void*&>(p.table));
    if (PadsQueries(a_, v_)) plan_.Bind(plan_.TensorOperand(a_.q_pad), reinterpret_cast<const void*&>(p.queries));
    if (PadsKeys(a_, v_)) plan_.Bind(plan_.TensorOperand(a_.k_pad), reinterpret_cast<const void*&>(p.keys));
    return plan_.ChooseKernel("attention_padding");
  }

  Status AddAttention(const Operand& out, const Operand* lse) {
    Operand key, value, key_rope, pages, slopes;
    const bool rope = Has(v_, a_.q_rope);
    if (NeedsTable()) ANYACL_RETURN_IF_ERROR(MakeTable());
    ANYACL_RETURN_IF_ERROR(Gather(a_.key, a_.k_prefix, "keys", &key));
    ANYACL_RETURN_IF_ERROR(Gather(a_.value, a_.v_prefix, "values", &value));
    if (rope) key_rope = HeadsOf(LayoutOfKeys(a_, v_), plan_.TensorOperand(a_.k_rope), k_heads_);
    if (IsPaged(a_, v_)) ANYACL_RETURN_IF_ERROR(pointwise::DenseInput(plan_, a_.pages, 0, DType::kI32, &pages));
    if (Has(v_, a_.pse) && HasSlopes(a_, v_)) ANYACL_RETURN_IF_ERROR(pointwise::DenseInput(plan_, a_.pse, 0, F32, &slopes));
    if (HasMask()) ANYACL_RETURN_IF_ERROR(PrepareMask());

    auto& p = plan_.MakeParams<ForwardParams>();
    Describe(&p.problem, pages, slopes);
    BindHeads(HeadsOf(form_.in, plan_.TensorOperand(a_.query), heads_), &p.q[0]);
    BindHeads(HeadsOf(form_.out, out, heads_), &p.out);
    BindKeys(key, &p.k[0]);
    BindKeys(value, &p.v);
    p.q[1].dtype = p.k[1].dtype = p.q[0].dtype;
    if (rope) {
      BindHeads(HeadsOf(form_.in, plan_.TensorOperand(a_.q_rope), heads_), &p.q[1]);
      BindKeys(key_rope, &p.k[1]);
    }
    p.stats_token = form_.in.batch < 0 ? heads_ : 1;
    if (lse) plan_.Bind(*lse, reinterpret_cast<void*&>(p.log_sum));
    const int64_t queries = places_.queries * heads_, keys = places_.keys * k_heads_, width = p.q[0].width + p.q[1].width;
    const int64_t across = PaddedWidth(p.v.width);
    Scratch("packed queries", queries * width, p.packed_q);
    Scratch("packed keys", keys * width, p.packed_k);
    Scratch("packed values", keys * across, p.packed_v);
    Scratch("sums", queries * across, p.sums);
    p.sets = SetsOf(all_, heads_, false);
    Scratch("tables", p.sets * kForwardTables * kTable, p.tables);
    return plan_.ChooseKernel("attention");
  }

  void Scratch(const char* name, int64_t count, float*& member) {
    plan_.Bind(plan_.ScratchOperand(name, F32, {std::max<int64_t>(count, 1)}), reinterpret_cast<void*&>(member));
  }
  void BindHeads(const Operand& x, Tokens* tokens) { BindTokens(plan_, kBnsd, x, x.dims[1], Batch(a_, v_), tokens); }
  void BindKeys(const Operand& x, Tokens* tokens) {
    BindHeads(x, tokens);
    tokens->paged = IsPaged(a_, v_);
    if (tokens->paged) tokens->sequence = x.strides[0];
  }

  // Bytes that are 0 where a position takes part.
  bool HasMask() const { return Has(v_, a_.mask) && !IsCompressed(a_, v_); }
  Status PrepareMask() {
    if (SizeOf(v_[a_.mask].tensor->dtype) != 1) return pointwise::DenseInput(plan_, a_.mask, 0, DType::kBool, &mask_);
    mask_ = plan_.TensorOperand(a_.mask);
    return {};
  }

  int64_t Start(int arg) const { return HasInts(v_, arg) ? IntsOf(v_, arg)[0] : 0; }

  void Describe(Problem* p, const Operand& pages, const Operand& slopes) {
    p->sequences = static_cast<int64_t>(all_.size());
    p->heads = heads_;
    p->k_heads = k_heads_;
    p->alike = all_[0];
    p->scale = static_cast<float>(v_[a_.scale].real);
    p->keep_scale = 1;
    p->count_from_first = IsPadded();
    if (NeedsTable()) plan_.Bind(table_, reinterpret_cast<const void*&>(p->table));
    if (IsPaged(a_, v_)) {
      plan_.Bind(pages, reinterpret_cast<const void*&>(p->pages));
      p->pages_of_sequence = pages.dims[1];
      p->page_tokens = v_[a_.page_tokens].integer;
      p->page_count = ItemOf(a_, v_, a_.key, 0).dims[0];
    }
    if (Has(v_, a_.pse)) DescribePse(p, slopes);
    if (HasMask()) DescribeMask(p);
  }

  void DescribePse(Problem* p, const Operand& slopes) {
    static constexpr Pse kKinds[] = {Pse::kAdded, Pse::kScaled, Pse::kDistance, Pse::kRootOfDistance};
    const Operand pse = HasSlopes(a_, v_) ? slopes : plan_.TensorOperand(a_.pse);
    p->pse_kind = kKinds[PseType(a_, v_)];
    p->pse_type = pse.dtype;
    plan_.Bind(pse, p->pse);
    if (HasSlopes(a_, v_)) {
      p->pse_strides[0] = pse.dims.rank() == 2 ? pse.dims[1] : 0;
      p->pse_strides[1] = 1;
      p->pse_shift = Limited(Start(a_.k_start)) - Limited(Start(a_.q_start));
      return;
    }
    for (int axis = 0; axis < 4; ++axis) p->pse_strides[axis] = axis == 0 && pse.dims[0] == 1 ? 0 : pse.strides[axis];
  }

  void DescribeMask(Problem* p) {
    const MaskAxes axes = AxesOf(a_, v_);
    plan_.Bind(mask_, p->mask);
    if (axes.batch >= 0 && mask_.dims[axes.batch] > 1) p->mask_strides[0] = mask_.strides[axes.batch];
    if (axes.query >= 0) p->mask_strides[2] = mask_.strides[axes.query];
    p->mask_strides[3] = mask_.strides[axes.key];
  }

  const Args& a_;
  Values v_;
  PlanBuilder& plan_;
  const Form& form_;
  std::vector<Sequence> all_;
  int64_t heads_;
  int64_t k_heads_;
  Places places_;
  Operand table_, mask_;
};

template <const Args& kArgs>
Status PlanInference(Values v, PlanBuilder& plan) {
  if (!Has(v, kArgs.query)) return {};  // accepted before the rules that the builder relies on
  return Builder(kArgs, v, plan).Plan();
}

// --- tables -----------------------------------------------------------------------------------------------------------

template <const Args& kArgs, Check kCheck>
Rule RuleOf(const Entry& entry, int arg, const char* text, int32_t code = code::kTiling) {
  return Custom(entry.args[arg].name, text, [](Values v, Product product) { return kCheck(kArgs, v, product); })
      .EvenIfAbsent()  // lengths that a layout needs, tensors that come in pairs
      .Code(kArgs.prompt ? code::kInvalid : code);
}

// What stands for parts that are not supported.
bool IsOfQuantised(std::string_view name) {
  for (const char* part : {"deqScale", "quantScale", "quantOffset", "dequantScale", "ntiquantScale", "ntiquantOffset", "learnableSink"}) {
    if (name.find(part) != name.npos) return true;
  }
  return false;
}

ArgRoles RolesOf(const Args& a, const Entry& entry) {
  ArgRoles roles;
  for (size_t i = 0; i < entry.args.size(); ++i) {
    const auto arg = static_cast<int>(i);
    const bool handle = IsTensor(entry.args[i].kind) || entry.args[i].kind == ArgKind::kIntArray;
    if (handle && arg != a.query && arg != a.key && arg != a.value && arg != a.out) roles.optional.push_back(entry.args[i].name);
    if (arg == a.out || arg == a.lse) roles.outputs.push_back(entry.args[i].name);
  }
  return roles;
}

template <const Args& kArgs>
void AddTypeRules(const Entry& entry, Table* table) {
  const auto& a = kArgs;
  const auto name = [&](int arg) { return entry.args[arg].name; };
  constexpr int32_t kWrong = code::kInvalid;
  constexpr const char *kFloating = "must not be quantised", *kSame = "must have the dtype of the queries";
  const auto quantised = [](Rule rule) { return std::move(rule).Code(code::kNoKernel); };
  Add(table, {quantised(RuleOf<kArgs, NotQuantised<&Args::query>>(entry, a.query, kFloating)), quantised(RuleOf<kArgs, NotQuantised<&Args::key>>(entry, a.key, kFloating)),
              quantised(RuleOf<kArgs, NotQuantised<&Args::value>>(entry, a.value, kFloating)), quantised(RuleOf<kArgs, NotQuantised<&Args::out>>(entry, a.out, kFloating)),
              DTypes(name(a.query), RowsOf(types::kFloat3)), RuleOf<kArgs, WrongType<&Args::key>>(entry, a.key, kSame, kWrong),
              RuleOf<kArgs, WrongType<&Args::value>>(entry, a.value, kSame, kWrong), SameDType(name(a.out), name(a.query)),
              RuleOf<kArgs, WrongOptionalType<&Args::pse>>(entry, a.pse, "must have the dtype of the queries, or be FLOAT where it holds slopes", kWrong)});
  Add(table, {DTypes(name(a.mask), a.prompt ? RowsOf({DType::kBool, DType::kI8, DType::kU8, DType::kF16}) : RowsOf({DType::kBool, DType::kI8, DType::kU8}))});
  for (const int arg : {a.q_pad, a.k_pad}) {
    if (arg >= 0) Add(table, {DTypes(name(arg), {{{DType::kI64}}})});
  }
  if constexpr (kArgs.pages >= 0) Add(table, {DTypes(name(a.pages), {{{DType::kI32}}})});
  if constexpr (kArgs.lse >= 0) Add(table, {DTypes(name(a.lse), {{{F32}}}).If(name(a.wants_lse))});
  if constexpr (kArgs.k_prefix >= 0) {
    Add(table, {RuleOf<kArgs, WrongOptionalType<&Args::k_prefix>>(entry, a.k_prefix, kSame, kWrong),
                RuleOf<kArgs, WrongOptionalType<&Args::v_prefix>>(entry, a.v_prefix, kSame, kWrong)});
  }
  if constexpr (kArgs.q_rope >= 0) {
    Add(table, {RuleOf<kArgs, WrongOptionalType<&Args::q_rope>>(entry, a.q_rope, kSame, kWrong),
                RuleOf<kArgs, WrongOptionalType<&Args::k_rope>>(entry, a.k_rope, kSame, kWrong)});
  }
}

template <const Args& kArgs>
void AddTokenRules(const Entry& entry, Table* table) {
  const auto& a = kArgs;
  Add(table, {RuleOf<kArgs, WrongQuery>(entry, a.query, "must have as many dims as the layout, and tokens that the operator takes"),
              RuleOf<kArgs, WrongHeads>(entry, a.heads, "must be the number of heads of the queries"),
              RuleOf<kArgs, WrongKeyHeads>(entry, a.k_heads, "must be 0 or divide the number of heads")});
  if constexpr (kArgs.q_lengths >= 0) Add(table, {RuleOf<kArgs, WrongQueryLengths>(entry, a.q_lengths, "must hold lengths of the queries, or their ends for TND")});
  if constexpr (kArgs.pages >= 0) Add(table, {RuleOf<kArgs, WrongPages>(entry, a.pages, "must have a row for each sequence")});
  Add(table, {RuleOf<kArgs, WrongKey>(entry, a.key, "must have the sequences, heads and widths that the queries ask for"),
              RuleOf<kArgs, WrongValue>(entry, a.value, "must have sequences, heads and tokens of the keys")});
  if constexpr (kArgs.k_lengths >= 0) Add(table, {RuleOf<kArgs, WrongKeyLengths>(entry, a.k_lengths, "must hold lengths of the keys, or their ends for TND")});
  if constexpr (kArgs.q_rope >= 0) {
    Add(table, {RuleOf<kArgs, WrongQueryRope>(entry, a.q_rope, "must have the shape of the queries but for its last dim"),
                RuleOf<kArgs, WrongKeyRope>(entry, a.k_rope, "must have the shape of the keys but for its last dim")});
  }
  if constexpr (kArgs.k_prefix >= 0) {
    Add(table, {RuleOf<kArgs, WrongPrefix>(entry, a.k_prefix, "must be one sequence that looks like those of the keys"),
                RuleOf<kArgs, WrongPrefixLength>(entry, a.prefix_length, "must be a number of tokens of the prefix")});
  }
  if constexpr (kArgs.q_pad >= 0) Add(table, {RuleOf<kArgs, WrongPadding<&Args::q_pad>>(entry, a.q_pad, "must have one element")});
  if constexpr (kArgs.k_pad >= 0) Add(table, {RuleOf<kArgs, WrongPadding<&Args::k_pad>>(entry, a.k_pad, "must have one element")});
}

template <const Args& kArgs>
void AddScoreRules(const Entry& entry, Table* table) {
  const auto& a = kArgs;
  if constexpr (kArgs.pse_type >= 0) Add(table, {RuleOf<kArgs, WrongPseType>(entry, a.pse_type, "must be 0 to 3")});
  Add(table, {RuleOf<kArgs, WrongPse>(entry, a.pse, "must have a number for each position at least")});
  if constexpr (kArgs.sparse >= 0) Add(table, {RuleOf<kArgs, WrongMode>(entry, a.sparse, "must be 0 to 4, and 0 without a mask")});
  Add(table, {RuleOf<kArgs, WrongMask>(entry, a.mask, "must have a position for each query and key at least, or be 2048 x 2048")});
  if constexpr (kArgs.pre >= 0) Add(table, {RuleOf<kArgs, WrongBand>(entry, a.pre, "and nextTokens must leave a band")});
  Add(table, {RuleOf<kArgs, WrongOut>(entry, a.out, "must have the shape of the queries with heads as wide as the values")});
  if constexpr (kArgs.lse >= 0) Add(table, {RuleOf<kArgs, WrongLse>(entry, a.lse, "must have a number for each query and head")});
}

template <const Args& kArgs>
Operator MakeInference(const Entry& entry) {
  const auto& a = kArgs;
  const auto name = [&](int arg) { return entry.args[arg].name; };
  Table table = TableOf(entry, "attention", "Attention for inference: keys as tensors, lists or pages of a cache.", RolesOf(a, entry));
  table.formulas = {"s = scaleValue * (q . k) + what is added, over the positions that take part", "out = sum of softmax(s) * v"};
  table.notes = {"Masks say 1 where a position takes no part. A query for which none is left gives 0, and so does one beyond its length.",
                 "Masks of 2048 x 2048, which go with sparseMode, are not read. With one query a sequence, modes do not count.",
                 "Every sum is in FLOAT, in an order that the shapes decide; memory is linear in the number of tokens."};
  if (a.pages >= 0) table.notes.push_back("With blocks, lengths of keys are those of each sequence, with every layout. Tokens whose block does not exist take no part.");
  if (a.k_pad >= 0) table.notes.push_back("Padding counts with lengths only; masks and pse count queries and keys from the first one that is there.");
  if (!a.prompt) table.result_pointers = ResultPointers::kAfterNullChecks;
  AddNullRules(&table);
  if constexpr (kArgs.lse >= 0) Add(&table, {NotNull(name(a.lse)).If(name(a.wants_lse))});
  if constexpr (!kArgs.prompt) {
    Add(&table, {RuleOf<kArgs, HasEntries<&Args::key>>(entry, a.key, "must have entries", code::kNull),
                 RuleOf<kArgs, HasEntries<&Args::value>>(entry, a.value, "must have entries", code::kNull)});
  }
  for (const Entry::Arg& arg : entry.args) {
    if (IsTensor(arg.kind) && IsOfQuantised(arg.name)) Add(&table, {NotGiven(arg.name).OrEmpty().Code(code::kNoKernel)});
  }
  Add(&table, {Supported(kNewer), RuleOf<kArgs, WrongLayout>(entry, a.layout, "must name a layout").Code(code::kNoKernel)});
  AddTypeRules<kArgs>(entry, &table);
  Add(&table, {AcceptIfEmpty({name(a.query)})});
  AddTokenRules<kArgs>(entry, &table);
  AddScoreRules<kArgs>(entry, &table);
  return {.contract = Contract(std::move(table)), .plan = PlanInference<kArgs>, .family = "attention"};
}

}  // namespace

void DeclareInference(Declarations& declarations) {
  declarations.Add("aclnnFusedInferAttentionScore", MakeInference<kFused>);
  declarations.Add("aclnnFusedInferAttentionScoreV2", MakeInference<kFusedV2>);
  declarations.Add("aclnnFusedInferAttentionScoreV3", MakeInference<kFusedV3>);
  declarations.Add("aclnnFusedInferAttentionScoreV4", MakeInference<kFusedV4>);
  declarations.Add("aclnnFusedInferAttentionScoreV5", MakeInference<kFusedV5>);
  declarations.Add("aclnnPromptFlashAttention", MakeInference<kPrompt>);
  declarations.Add("aclnnPromptFlashAttentionV2", MakeInference<kPromptV2>);
  declarations.Add("aclnnPromptFlashAttentionV3", MakeInference<kPromptV3>);
  declarations.Add("aclnnIncreFlashAttention", MakeInference<kIncre>);
  declarations.Add("aclnnIncreFlashAttentionV2", MakeInference<kIncreV2>);
  declarations.Add("aclnnIncreFlashAttentionV3", MakeInference<kIncreV3>);
  declarations.Add("aclnnIncreFlashAttentionV4", MakeInference<kIncreV4>);
}

}  // namespace anyacl::attention
