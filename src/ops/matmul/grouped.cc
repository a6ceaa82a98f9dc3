// SPDX-License-Identifier: Apache-2.0
// Copyright The AnyACL Authors
//
// Products of several groups of rows with a weight each. Where the host knows the groups, each is a product of its own; lists in
// device memory are read by the kernel.
#include "ops/matmul/grouped.h"

#include <fmt/format.h>

#include <algorithm>
#include <utility>

#include "core/codes.h"
#include "ops/matmul/families.h"
#include "ops/matmul/product.h"
#include "ops/pointwise/pass.h"
#include "ops/table.h"

namespace anyacl::matmul {
namespace {

using namespace contract;

enum { kX, kWeight, kBias, kScale, kOffset, kAntiquantScale, kAntiquantOffset };

// Where the versions have their other arguments; -1: they have none.
struct Places {
  int version, list, split, type, out, list_type, tuning;
  bool host_list() const { return version <= 2; }
};
constexpr Places kV1 = {1, 7, 8, -1, 9, -1, -1};
constexpr Places kV2 = {2, 7, 8, 9, 10, -1, -1};
constexpr Places kV3 = {3, 7, 8, 9, 10, -1, -1};
constexpr Places kV4 = {4, 8, 12, 13, 16, 14, -1};
constexpr Places kV5 = {5, 8, 12, 13, 17, 14, 16};

std::span<const Tensor* const> ListOf(Values v, int arg) { return v[arg].tensors->tensors; }
int64_t CountOf(Values v, int arg) { return v[arg].given() ? static_cast<int64_t>(ListOf(v, arg).size()) : 0; }
const Dims& DimsOf(Values v, int arg, int64_t item) { return ListOf(v, arg)[static_cast<size_t>(item)]->dims; }

bool AllEmpty(Values v, int arg) {
  if (!v[arg].given()) return true;
  for (const Tensor* t : ListOf(v, arg)) {
    if (t && !t->empty()) return false;
  }
  return true;
}
bool HasBias(Values v) { return !AllEmpty(v, kBias); }

bool HasList(const Places& p, Values v) {
  if (!v[p.list].given()) return false;
  return p.host_list() ? !v[p.list].ints->values.empty() : !v[p.list].tensor->empty();
}

// What the lists are to each other.
enum class Form {
  kSeparate,     // x_i, w_i, y_i
  kOneWeight,    // x, w [E, k, n], y
  kManyWeights,  // x, w_i, y
  kSplit,        // x, w_i, y_i
  kStacked,      // x_i, w_i, y
  kAlongK,       // x [m, k], w [k, n], y [E, m, n]
  kNone,
};

int64_t TypeOf(const Places& p, Values v) {
  if (p.type >= 0) return v[p.type].integer;
  const bool x = CountOf(v, kX) > 1, weight = CountOf(v, kWeight) > 1, y = CountOf(v, p.out) > 1;
  return (x && y) || (!x && !weight && !y) ? -1 : 0;
}

Form FormOf(const Places& p, Values v) {
  const int64_t x = CountOf(v, kX), w = CountOf(v, kWeight), y = CountOf(v, p.out), type = TypeOf(p, v);
  if (type == -1) return x == w && w == y ? Form::kSeparate : Form::kNone;
  if (type == 2) return x == 1 && w == 1 && y == 1 ? Form::kAlongK : Form::kNone;
  if (x > 1) return x == w && y == 1 ? Form::kStacked : Form::kNone;
  if (y > 1) return w == y && p.host_list() ? Form::kSplit : Form::kNone;
  return w > 1 ? Form::kManyWeights : Form::kOneWeight;
}

int64_t GroupsOf(const Places& p, Values v) {
  switch (FormOf(p, v)) {
    case Form::kOneWeight:
      return DimsOf(v, kWeight, 0)[0];
    case Form::kAlongK:
      return DimsOf(v, p.out, 0)[0];
    default:
      return CountOf(v, kWeight);
  }
}

// Host lists: where group `g` ends, cut to what there is.
int64_t EndOf(const Places& p, Values v, int64_t g, int64_t limit) {
  return std::clamp<int64_t>(v[p.list].ints->values[static_cast<size_t>(g)], 0, limit);
}

// ---- rules ----

template <int kArg>
std::string HasEntries(Values v, Product) {
  return CountOf(v, kArg) > 0 ? "" : "must have entries, got an empty list";
}

std::string Quantised(Values v, Product) {
  for (const int arg : {kX, kWeight}) {
    for (const Tensor* t : ListOf(v, arg)) {
      if (!t || types::kFloat3.Has(t->dtype) || t->dtype == DType::kF64) continue;
      const bool narrow = SizeOf(t->dtype) == 1 || t->dtype == DType::kI32;
      if (narrow && t->dtype != DType::kBool) return fmt::format("of {} belongs to a quantised product, which is not supported", Name(t->dtype));
    }
  }
  return "";
}

template <const Places& P>
std::string OneDType(Values v, Product) {
  const DType x = ListOf(v, kX)[0]->dtype;
  for (const int arg : {static_cast<int>(kX), static_cast<int>(kWeight), P.out}) {
    for (const Tensor* t : ListOf(v, arg)) {
      if (t->dtype != x) return fmt::format("must be {} as all of x, weight and the results, got {}", Name(x), Name(t->dtype));
    }
  }
  return "";
}

std::string BiasDType(Values v, Product) {
  if (!HasBias(v)) return "";
  const DType x = ListOf(v, kX)[0]->dtype, wanted = x == DType::kF16 ? x : DType::kF32;
  for (const Tensor* t : ListOf(v, kBias)) {
    if (!t) return "must have no entry that is null, got one";
    if (t->dtype != wanted) return fmt::format("must be {} for x in {}, got {}", Name(wanted), Name(x), Name(t->dtype));
  }
  return "";
}

constexpr char kFormRule[] = "must have lists of lengths that groupType has a meaning for";
template <const Places& P>
std::string HasForm(Values v, Product) {
  if (FormOf(P, v) != Form::kNone) return "";
  return fmt::format("{}, got groupType {} and {} x, {} weights and {} results", kFormRule, TypeOf(P, v), CountOf(v, kX), CountOf(v, kWeight),
                     CountOf(v, P.out));
}

template <const Places& P>
std::string WrongSplit(Values v, Product) {
  const Form form = FormOf(P, v);
  const int64_t split = v[P.split].integer, first = form == Form::kSeparate || form == Form::kSplit ? 0 : 2;
  if (split == first || split == first + 1) return "";
  return fmt::format("must be {} or {} for {} results, got {}", first, first + 1, first == 0 ? "separate" : "joined", split);
}

std::string Show(const Dims& dims) { return ToString(dims); }

// Ranks and inner dims of one product x @ w -> y with `groups` in front of w, or of y.
template <const Places& P>
std::string WrongShapes(Values v, Product) {
  const Form form = FormOf(P, v);
  const int64_t count = std::max({CountOf(v, kX), CountOf(v, kWeight), CountOf(v, P.out)});
  const int w_rank = form == Form::kOneWeight ? 3 : 2, y_rank = form == Form::kAlongK ? 3 : 2;
  int64_t rows = 0;
  for (int64_t i = 0; i < count; ++i) {
    const Dims &x = DimsOf(v, kX, CountOf(v, kX) > 1 ? i : 0), &w = DimsOf(v, kWeight, CountOf(v, kWeight) > 1 ? i : 0);
    const Dims& y = DimsOf(v, P.out, CountOf(v, P.out) > 1 ? i : 0);
    const std::string shapes = fmt::format("got x {}, weight {} and result {}", Show(x), Show(w), Show(y));
    const bool loose = form == Form::kSeparate;
    if (x.rank() < 2 || x.rank() > (loose ? 6 : 2) || w.rank() != w_rank || y.rank() != (loose ? x.rank() : y_rank)) {
      return fmt::format("must have entries whose ranks fit groupType, {}", shapes);
    }
    if (x[x.rank() - 1] != w[w_rank - 2] || y[y.rank() - 1] != w[w_rank - 1]) return fmt::format("must have entries that can be multiplied, {}", shapes);
    for (int axis = 0; loose && axis + 1 < x.rank(); ++axis) {
      if (x[axis] != y[axis]) return fmt::format("must have the leading dims of its result, {}", shapes);
    }
    if (form == Form::kAlongK && y[1] != x[0]) return fmt::format("must have the rows of each result, {}", shapes);
    rows += form == Form::kStacked ? x[0] : form == Form::kSplit ? y[0] : 0;
    const bool joined = form == Form::kOneWeight || form == Form::kManyWeights;
    if (joined && x[0] != y[0]) return fmt::format("must have the rows of the result, {}", shapes);
    const int64_t all = form == Form::kStacked ? y[0] : x[0];
    const bool counts = form == Form::kStacked || (form == Form::kSplit && i + 1 < count);
    if (counts && rows > all) return fmt::format("must have no more rows than there are, {}, got {}", all, rows);
    if (form == Form::kStacked && i + 1 == count && rows != all) return fmt::format("must have the {} rows of the result together, got {}", all, rows);
  }
  return "";
}

template <const Places& P>
std::string WrongBiasShape(Values v, Product) {
  if (!HasBias(v)) return "";
  const Form form = FormOf(P, v);
  if (form == Form::kAlongK) return "must be null for groups along k, got a list";
  if (CountOf(v, kBias) != CountOf(v, kWeight)) return fmt::format("must have an entry for each of the {} weights, got {}", CountOf(v, kWeight), CountOf(v, kBias));
  for (int64_t i = 0; i < CountOf(v, kBias); ++i) {
    const Dims& w = DimsOf(v, kWeight, i);
    const Dims wanted = form == Form::kOneWeight ? Dims{w[0], w[2]} : Dims{w[1]};
    if (!(DimsOf(v, kBias, i) == wanted)) return fmt::format("must have shape {}, got {}", Show(wanted), Show(DimsOf(v, kBias, i)));
  }
  return "";
}

std::string WrongHostList(const Places& p, Values v) {
  const std::vector<int64_t>& ends = v[p.list].ints->values;
  if (static_cast<int64_t>(ends.size()) != GroupsOf(p, v)) return fmt::format("must have an entry for each of the {} groups, got {}", GroupsOf(p, v), ends.size());
  int64_t last = 0;
  for (size_t i = 0; i < ends.size(); ++i) {
    if (ends[i] < last) return fmt::format("must not descend nor be negative, got {} behind {}", ends[i], last);
    const bool split = FormOf(p, v) == Form::kSplit;
    const int64_t limit = DimsOf(v, kX, 0)[0];
    const int64_t rows = std::min(ends[i], limit) - std::min(last, limit);
    if (split && DimsOf(v, p.out, static_cast<int64_t>(i))[0] != rows) {
      return fmt::format("must give result {} its {} rows, got {}", i, DimsOf(v, p.out, static_cast<int64_t>(i))[0], rows);
    }
    last = ends[i];
  }
  return "";
}

template <const Places& P>
std::string WrongList(Values v, Product) {
  const Form form = FormOf(P, v);
  if (!HasList(P, v)) {
    return form == Form::kSeparate || form == Form::kStacked ? "" : "must be given for groups of one x, got none";
  }
  if (form == Form::kSeparate) return P.version == 1 ? "" : "must be null without groups, got a list";
  if (P.host_list()) return form == Form::kStacked ? "" : WrongHostList(P, v);
  const Dims& list = v[P.list].tensor->dims;
  const bool pairs = P.list_type >= 0 && v[P.list_type].integer == 2;
  const Dims wanted = pairs ? Dims{GroupsOf(P, v), 2} : Dims{GroupsOf(P, v)};
  return list == wanted ? "" : fmt::format("must have shape {}, got {}", Show(wanted), Show(list));
}

template <const Places& P>
std::string WrongListType(Values v, Product) {
  const int64_t type = v[P.list_type].integer;
  if (type == 0 || type == 1 || (type == 2 && TypeOf(P, v) == 0)) return "";
  return fmt::format("must be 0 or 1, or 2 with groupType 0, got {}", type);
}

template <const Places& P>
std::string WrongTuning(Values v, Product) {
  if (!v[P.tuning].given() || v[P.tuning].ints->values.empty()) return "";
  int64_t most = 0;
  for (const Tensor* t : ListOf(v, kX)) most = std::max(most, t->rank() > 0 && t->dims[t->rank() - 1] > 0 ? t->numel() / t->dims[t->rank() - 1] : 0);
  const int64_t rows = v[P.tuning].ints->values[0];
  return rows >= 0 && rows <= most ? "" : fmt::format("must begin with 0 to the {} rows of x, got {}", most, rows);
}

// ---- plan ----

Operand Part(Operand operand, int axis, int64_t first, int64_t count) {
  const int64_t skipped = first * operand.strides[axis] * static_cast<int64_t>(SizeOf(operand.dtype));
  operand.offset += skipped;
  operand.bytes -= skipped;
  operand.dims[axis] = count;
  return operand;
}
// Entry `i` of the first axis.
Operand Entry0(const Operand& operand, int64_t i) {
  Operand entry = Part(operand, 0, i, 1);
  entry.dims = entry.strides = Dims();
  for (int axis = 1; axis < operand.dims.rank(); ++axis) {
    entry.dims.push_back(operand.dims[axis]);
    entry.strides.push_back(operand.strides[axis]);
  }
  return entry;
}

class Builder {
 public:
  Builder(const Places& places, Values v, PlanBuilder& plan) : p_(places), v_(v), plan_(plan), form_(FormOf(places, v)) {}

  Status Run() {
    for (int64_t i = 0; i < CountOf(v_, p_.out); ++i) plan_.RequireApart(p_.out, static_cast<int>(i));
    const bool by_host = p_.host_list() || form_ == Form::kSeparate || form_ == Form::kStacked;
    return by_host ? RunByHost() : RunByDevice();
  }

 private:
  Operand Item(int arg, int64_t item) { return plan_.TensorOperand(arg, static_cast<int>(item)); }
  Operand X(int64_t g) { return Item(kX, CountOf(v_, kX) > 1 ? g : 0); }
  Operand Y(int64_t g) { return Item(p_.out, CountOf(v_, p_.out) > 1 ? g : 0); }
  Operand Weight(int64_t g) {
    return form_ == Form::kOneWeight ? Entry0(Item(kWeight, 0), g) : Item(kWeight, CountOf(v_, kWeight) > 1 ? g : 0);
  }
  Operand Bias(int64_t g) { return form_ == Form::kOneWeight ? Entry0(Item(kBias, 0), g) : Item(kBias, g); }

  // One group that the host knows.
  struct Group {
    Operand x, w, y;
    int64_t rows, k, n;
  };
  std::vector<Group> Groups() {
    std::vector<Group> groups;
    int64_t begin = 0;
    for (int64_t g = 0; g < GroupsOf(p_, v_); ++g) {
      Group group = {X(g), Weight(g), Y(g), 0, 0, 0};
      if (form_ == Form::kStacked) {
        group.y = Part(group.y, 0, begin, group.x.dims[0]);
        begin += group.x.dims[0];
      } else if (form_ == Form::kAlongK) {
        const int64_t end = EndOf(p_, v_, g, group.x.dims[1]);
        group.x = Part(group.x, 1, begin, end - begin);
        group.w = Part(group.w, 0, begin, end - begin);
        group.y = Entry0(group.y, g);
        begin = end;
      } else if (form_ != Form::kSeparate) {
        const int64_t end = EndOf(p_, v_, g, group.x.dims[0]);
        group.x = Part(group.x, 0, begin, end - begin);
        if (form_ != Form::kSplit) group.y = Part(group.y, 0, begin, end - begin);
        begin = end;
      }
      group.k = group.w.dims[0];
      group.n = group.w.dims[1];
      group.rows = 1;
      for (int axis = 0; axis + 1 < group.x.dims.rank(); ++axis) group.rows *= group.x.dims[axis];
      if (group.rows > 0 && group.n > 0) groups.push_back(group), index_.push_back(g);
    }
    return groups;
  }

  Status RunByHost() {
    const std::vector<Group> groups = Groups();
    for (const Group& g : groups) room_.Fit(g.rows, g.n, g.k);
    if (groups.empty()) return {};
    room_.Book(plan_);
    for (size_t i = 0; i < groups.size(); ++i) {
      const Group& g = groups[i];
      const Operand sums = room_.Sums(g.y.dims);
      ANYACL_RETURN_IF_ERROR(AddContraction(plan_, g.x, {0, g.x.dims.rank() - 1, 1}, Transposed(g.w), {0, 1, 1}, sums, room_));
      const Operand bias = HasBias(v_) ? Bias(index_[i]) : Operand();
      ANYACL_RETURN_IF_ERROR(HasBias(v_) ? AddScaledSum(plan_, sums, 1, &bias, 1, g.y) : pointwise::AddCopy(plan_, sums, g.y));
    }
    return {};
  }

  Status RunByDevice() {
    const Operand x = X(0), y = Y(0);
    Operand list, biases;
    ANYACL_RETURN_IF_ERROR(pointwise::DenseInput(plan_, p_.list, 0, DType::kI64, &list));
    const Operand first = Weight(0);
    const int64_t m = x.dims[0], n = first.dims[1];
    if (m == 0 || n == 0) return {};
    room_.Fit(m, n, first.dims[0]);
    room_.Book(plan_);
    for (int64_t g = 0; g < GroupsOf(p_, v_); ++g) {
      Operand bias;
      ANYACL_RETURN_IF_ERROR(FloatBias(g, &bias));
      const Operand to = form_ == Form::kAlongK ? Entry0(y, g) : y;
      auto& params = plan_.MakeParams<GroupedParams>();
      BindContraction(plan_, x, {0, 1, 1}, Transposed(Weight(g)), {0, 1, 1}, room_.Sums({m, n}), room_, &params.product);
      params.entries = GroupsOf(p_, v_);
      params.group = g;
      params.kind = p_.list_type >= 0 ? static_cast<GroupList>(v_[p_.list_type].integer) : GroupList::kEnds;
      params.along_k = form_ == Form::kAlongK;
      params.y_row = to.strides[0];
      params.y_column = to.strides[1];
      params.y_type = to.dtype;
      plan_.Bind(list, reinterpret_cast<const void*&>(params.list));
      if (HasBias(v_)) plan_.Bind(bias, reinterpret_cast<const void*&>(params.bias));
      plan_.Bind(to, params.y);
      ANYACL_RETURN_IF_ERROR(plan_.ChooseKernel("grouped"));
    }
    return {};
  }

  Status FloatBias(int64_t g, Operand* bias) {
    if (!HasBias(v_)) return {};
    *bias = Bias(g);
    if (bias->dtype == DType::kF32 && bias->row_major()) return {};
    const Operand own = *bias;
    *bias = plan_.ScratchOperand("bias", DType::kF32, own.dims);
    return pointwise::AddCopy(plan_, own, *bias);
  }

  const Places& p_;
  Values v_;
  PlanBuilder& plan_;
  Form form_;
  ProductRoom room_;
  std::vector<int64_t> index_;  // of the groups that have something to compute
};

template <const Places& P>
Operator MakeGrouped(const Entry& entry) {
  std::vector<const char*> optional;
  for (size_t i = kBias; i < entry.args.size(); ++i) {
    const int arg = static_cast<int>(i);
    const ArgKind kind = entry.args[i].kind;
    if (arg != P.out && kind != ArgKind::kInt) optional.push_back(entry.args[i].name);
  }
  const char* const out = entry.args[P.out].name;
  const char* const list = entry.args[P.list].name;
  Table table = TableOf(entry, "grouped", "Products of groups of rows with a weight each.", {.optional = optional, .outputs = {out}});
  table.formulas = {"y_g = x_g @ weight_g + bias_g"};
  table.notes = {"Only the floating part: quantised weights and activations are not supported.",
                 "Rows behind the end of the last group are not written. Values of a list in device memory are cut to the rows there are."};
  AddNullRules(&table);
  Add(&table, {Custom("x", "must have entries", HasEntries<kX>).Code(code::kNull), Custom("weight", "must have entries", HasEntries<kWeight>).Code(code::kNull),
               Custom(out, "must have entries", HasEntries<P.out>).Code(code::kNull)});
  Add(&table, {Supported(kNewer), Custom("x", "of INT8, INT4, INT32 or FLOAT8 belongs to a quantised product", Quantised).Code(code::kNoKernel)});
  const DTypeSet halves = {DType::kF16, DType::kBF16};
  Add(&table, {DTypes("x", RowsOf(P.version == 1 ? halves : types::kFloat3)), Custom("weight", "must have the dtype of x, as all results", OneDType<P>),
               Custom("biasOptional", "must be FLOAT16 for FLOAT16, else FLOAT", BiasDType)});
  if (P.type >= 0) Add(&table, {OneOf("groupType", {-1, 0, 2})});
  if (!P.host_list()) Add(&table, {DTypes(list, RowsOf({DType::kI64}))});
  for (size_t i = kScale; i < entry.args.size(); ++i) {
    const int arg = static_cast<int>(i);
    const bool tensors = IsTensorList(entry.args[i].kind);
    if (arg != P.out && tensors) Add(&table, {NotGiven(entry.args[i].name).OrEmpty()});
  }
  if (P.list_type >= 0) Add(&table, {OneOf("actType", {0}), Custom("groupListType", "must be 0 or 1, or 2 with groupType 0", WrongListType<P>)});
  Add(&table, {Custom("x", kFormRule, HasForm<P>), Custom("splitItem", "must be 0 or 1 for separate results, 2 or 3 for joined ones", WrongSplit<P>),
               Custom("x", "must have entries that can be multiplied and fit the results", WrongShapes<P>),
               Custom("biasOptional", "must have an element per column and group", WrongBiasShape<P>),
               Custom(list, "must have an entry per group", WrongList<P>).EvenIfAbsent()});
  if constexpr (P.tuning >= 0) Add(&table, {Custom("tuningConfigOptional", "must begin with 0 to the rows of x", WrongTuning<P>)});
  for (const char* arg : {"x", "weight", out}) Add(&table, {PublicFormat(arg)});
  return {.contract = Contract(std::move(table)), .plan = [](Values v, PlanBuilder& plan) { return Builder(P, v, plan).Run(); }, .family = "matmul"};
}

}  // namespace

void DeclareGrouped(Declarations& declarations) {
  declarations.Add("aclnnGroupedMatmul", MakeGrouped<kV1>);
  declarations.Add("aclnnGroupedMatmulV2", MakeGrouped<kV2>);
  declarations.Add("aclnnGroupedMatmulV3", MakeGrouped<kV3>);
  declarations.Add("aclnnGroupedMatmulV4", MakeGrouped<kV4>);
  declarations.Add("aclnnGroupedMatmulV5", MakeGrouped<kV5>);
}

}  // namespace anyacl::matmul
