// SPDX-License-Identifier: Apache-2.0
// Copyright The AnyACL Authors
//
// Tensors of random numbers, draws from weights, permutations.
#include <algorithm>
#include <bit>
#include <cmath>
#include <string>
#include <vector>

#include "core/scalar.h"
#include "ops/order/add_select.h"
#include "ops/random/common.h"

namespace anyacl {
namespace random {
namespace {

// --- uniform, normal, exponential ------------------------------------------------------------------

constexpr DTypeSet kNumbers = types::kFloat3 | types::kDouble | types::kInt5;

std::string Descends(Values v, Product) {
  return v[1].real > v[2].real ? "must not be greater than to, got " + std::to_string(v[1].real) + " and " + std::to_string(v[2].real) : "";
}

template <bool kTensor>
Operator MakeUniform(const Entry& entry) {
  Table table = TableOf(entry, "random", "Fills a tensor with uniform numbers.", {.outputs = {"selfRef"}});
  table.formulas = {"selfRef[i] = from + u[i] * (to - from), 0 <= u < 1"};
  table.notes = {kSequenceNote, "Whole numbers are cut off towards 0. Of a complex number both parts are drawn."};
  AddNullRules(&table);
  Add(&table, {Supported(kTensor ? movement::kNewerAndTraining : movement::kFive),
               DTypes("selfRef", RowsOf(kNumbers | types::kComplex, kNumbers)), Rank("selfRef", 0, 8),
               Custom("from", "must not be greater than to", Descends)});
  if (kTensor) AddSeedRules(&table);
  movement::AddStorageRules(&table);
  return {.contract = Contract(std::move(table)),
          .plan = [](Values v, PlanBuilder& plan) -> Status {
            RandomParams p{.draw = Draw::kUniform};
            p.low = v[1].real;
            p.high = v[2].real;
            return AddDraw(plan, v, p, 3, kTensor, 0);
          },
          .family = "random"};
}

std::string NegativeStd(Values v, Product) {
  return v[2].real >= 0 ? "" : "must not be negative, got " + std::to_string(v[2].real);
}

template <bool kTensor>
Operator MakeNormal(const Entry& entry) {
  Table table = TableOf(entry, "random", "Fills a tensor with normal numbers.", {.outputs = {"selfRef"}});
  table.formulas = {"selfRef[i] = mean + std * n[i]"};
  table.notes = {kSequenceNote, "Whole numbers are cut off towards 0.", "The variance of a complex number is std * std: half of it in each part."};
  constexpr DTypeSet kOlder = kNumbers | types::kBool;
  AddNullRules(&table);
  Add(&table, {Supported(kTensor ? kNewer : movement::kNewerAndTraining), Custom("std", "must not be negative", NegativeStd),
               DTypes("selfRef", RowsOf(kOlder | types::kComplex, kOlder)), Rank("selfRef", 0, 8)});
  if (kTensor) AddSeedRules(&table);
  movement::AddStorageRules(&table);
  return {.contract = Contract(std::move(table)),
          .plan = [](Values v, PlanBuilder& plan) -> Status {
            RandomParams p{.draw = Draw::kNormal};
            p.low = v[1].real;
            p.high = IsComplex(v[0].tensor->dtype) ? v[2].real * std::sqrt(0.5) : v[2].real;
            return AddDraw(plan, v, p, 3, kTensor, 0);
          },
          .family = "random"};
}

std::string NotPositive(Values v, Product) {
  return v[2].real > 0 ? "" : "must be positive, got " + std::to_string(v[2].real);
}
std::string WrongCount(Values v, Product) {
  const int64_t size = v[0].tensor->numel();
  return v[1].integer == size ? "" : "must be the number of elements of selfRef, " + std::to_string(size) + ", got " + std::to_string(v[1].integer);
}

Operator MakeExponential(const Entry& entry) {
  Table table = TableOf(entry, "random", "Fills a tensor with exponential numbers.", {.outputs = {"selfRef"}});
  table.formulas = {"selfRef[i] = -ln(u[i]) / lambda, 0 < u <= 1"};
  table.notes = {kSequenceNote, "No number is 0."};
  AddNullRules(&table);
  Add(&table, {Supported(kNewer), DTypes("selfRef", RowsOf(types::kFloat3)), Rank("selfRef", 0, 8), Custom("lambda", "must be positive", NotPositive),
               Custom("count", "must be the number of elements", WrongCount)});
  movement::AddStorageRules(&table);
  return {.contract = Contract(std::move(table)),
          .plan = [](Values v, PlanBuilder& plan) -> Status {
            RandomParams p{.draw = Draw::kExponential};
            p.low = v[2].real;
            return AddDraw(plan, v, p, 3, /*from_tensors=*/false, 0);
          },
          .family = "random"};
}

// --- normal numbers with means and deviations of their own ---------------------------------------------

constexpr DTypeSet kFloats = types::kFloat3 | types::kDouble;

// mean and std: tensors or numbers; seed, offset and out follow.
Status PlanNormalOut(Values v, PlanBuilder& plan, bool mean_is_tensor, bool std_is_tensor) {
  constexpr int kOut = 4;
  const Tensor& out = *v[kOut].tensor;
  if (out.empty()) return {};
  const bool wide = out.dtype == DType::kF64 || (mean_is_tensor && v[0].tensor->dtype == DType::kF64) ||
                    (std_is_tensor && v[1].tensor->dtype == DType::kF64);
  Operand mean, std;
  if (mean_is_tensor) ANYACL_RETURN_IF_ERROR(NumbersFor(plan, 0, out.dims, wide, &mean));
  if (std_is_tensor) ANYACL_RETURN_IF_ERROR(NumbersFor(plan, 1, out.dims, wide, &std));
  const Operand target = pointwise::DenseOutput(plan, kOut, 0, out.dtype);
  auto& p = plan.MakeParams<RandomParams>();
  p.draw = Draw::kNormal;
  p.wide = wide;
  p.count = out.numel();
  p.dtype = out.dtype;
  if (mean_is_tensor) plan.Bind(mean, p.mean);
  else p.low = v[0].real;
  if (std_is_tensor) plan.Bind(std, p.std);
  else p.high = v[1].real;
  SetSource(plan, v, 2, /*from_tensors=*/false, &p.source);
  plan.Bind(target, p.out);
  ANYACL_RETURN_IF_ERROR(plan.ChooseKernel("random"));
  return pointwise::FinishOutput(plan, kOut, 0, target);
}

std::string EmptyStd(Values v, Product) {
  return v[1].tensor->empty() ? "must have elements, got shape " + ToString(v[1].tensor->dims) : "";
}
std::string WrongStdShape(Values v, Product) {
  const Tensor &std = *v[1].tensor, &out = *v[4].tensor;
  if (std.dims == out.dims || (out.empty() && std.numel() == 1)) return "";
  return "must have the shape of out, got " + ToString(std.dims) + " and " + ToString(out.dims);
}

template <bool kMean, bool kStd>
Operator MakeNormalOut(const Entry& entry) {
  Table table = TableOf(entry, "random", "Normal numbers with given means and standard deviations.");
  table.formulas = {"out[i] = mean[i] + std[i] * n[i]"};
  table.notes = {kSequenceNote, "Computed in FLOAT, in DOUBLE where one of the tensors is DOUBLE; rounded once."};
  AddNullRules(&table);
  const auto list = [&](const char* arg) { Add(&table, {DTypes(arg, RowsOf(kFloats))}); };
  if (kStd && !kMean) Add(&table, {Custom("std", "must have elements", EmptyStd), Custom("std", "must have the shape of out", WrongStdShape)});
  if (kMean || kStd) movement::AddRankRules(&table);
  if (kMean && kStd) Add(&table, {Broadcast("out", {"mean", "std"})});
  else if (kMean) Add(&table, {Broadcast("out", {"mean", "out"})});
  if (kMean) list("mean");
  if (kStd) list("std");
  list("out");
  if (!kMean && !kStd) movement::AddRankRules(&table);
  movement::AddStorageRules(&table);
  return {.contract = Contract(std::move(table)),
          .plan = [](Values v, PlanBuilder& plan) -> Status { return PlanNormalOut(v, plan, kMean, kStd); },
          .family = "random"};
}

// --- whole numbers ---------------------------------------------------------------------------------

int DigitsOf(DType t) { return t == DType::kF16 ? 11 : t == DType::kBF16 ? 8 : t == DType::kF32 ? 24 : 53; }
double InType(DType t, int64_t x) {
  if (t == DType::kF16) return static_cast<double>(Half(static_cast<double>(x)));
  if (t == DType::kBF16) return static_cast<double>(BFloat16(static_cast<double>(x)));
  return t == DType::kF32 ? static_cast<double>(static_cast<float>(x)) : static_cast<double>(x);
}
// The distance of the type's numbers near x, at least 1.
__int128 GridAt(DType t, int64_t x) {
  const uint64_t size = x < 0 ? -static_cast<uint64_t>(x) : static_cast<uint64_t>(x);
  const int excess = static_cast<int>(std::bit_width(size)) - DigitsOf(t);
  return excess > 0 ? __int128{1} << excess : 1;
}

// Ends that the numbers drawn have when they are rounded to a floating dtype: an end that the type has no number for moves
// inwards, so that nothing outside is drawn.
struct Ends {
  __int128 from, to;
};
Ends EndsFor(DType t, int64_t from, int64_t to) {
  Ends ends = {from, to};
  if (!IsFloating(t)) return ends;
  const double above = from == INT64_MAX ? 0x1p63 : InType(t, from + 1);
  if (std::isfinite(above) && static_cast<__int128>(above) < from) ends.from = static_cast<__int128>(above) + GridAt(t, from + 1);
  const double below = to == INT64_MIN ? -0x1p63 : InType(t, to - 1);
  if (std::isfinite(below) && static_cast<__int128>(below) >= to) ends.to = static_cast<__int128>(below) - GridAt(t, to - 1);
  return ends;
}

std::string NoWholeNumber(Values v, Product) {
  const int64_t from = v[1].integer, to = v[2].integer;
  if (from >= to) return "must be less than to, got " + std::to_string(from) + " and " + std::to_string(to);
  const DType t = v[0].tensor->dtype;
  const Ends ends = EndsFor(t, from, to);
  return ends.from < ends.to ? "" : "must leave a number of " + Name(t) + " below to, got " + std::to_string(from) + " and " + std::to_string(to);
}

Status PlanWhole(Values v, PlanBuilder& plan, Ends ends, int seed, bool from_tensors) {
  RandomParams p{.draw = Draw::kWhole};
  p.from = static_cast<int64_t>(ends.from);
  p.range = static_cast<uint64_t>(ends.to - ends.from);
  return AddDraw(plan, v, p, seed, from_tensors, 0);
}

template <bool kTensor>
Operator MakeRandom(const Entry& entry) {
  Table table = TableOf(entry, "random", "Fills a tensor with whole numbers, each as likely as the others.", {.outputs = {"selfRef"}});
  table.formulas = {"from <= selfRef[i] < to"};
  table.notes = {kSequenceNote, "Numbers outside of an integer selfRef's range wrap. Ends that a floating selfRef has no number for move inwards."};
  constexpr DTypeSet kOlder = kNumbers | types::kBool | types::kComplex;
  std::vector<TypeRow> rows = RowsOf(kNumbers | types::kBool | types::kUnsigned3, kOlder);
  AddNullRules(&table);
  Add(&table, {Supported(kTensor ? kNewer : movement::kNewerAndTraining), DTypes("selfRef", rows), Rank("selfRef", 0, 8),
               Custom("from", "must be less than to", NoWholeNumber)});
  if (kTensor) AddSeedRules(&table);
  movement::AddStorageRules(&table);
  return {.contract = Contract(std::move(table)),
          .plan = [](Values v, PlanBuilder& plan) -> Status {
            return PlanWhole(v, plan, EndsFor(v[0].tensor->dtype, v[1].integer, v[2].integer), 3, kTensor);
          },
          .family = "random"};
}

// One more than the largest number that is drawn where nobody names one.
__int128 EndOf(DType t) {
  if (t == DType::kBool) return 2;
  if (IsFloating(t)) return (__int128{1} << DigitsOf(t)) + 1;
  return __int128{1} << (8 * SizeOf(t) - (t == DType::kU8 ? 0 : 1));
}

template <bool kTensor>
Operator MakeRandomWithoutEnds(const Entry& entry) {
  Table table = TableOf(entry, "random", "Fills a tensor with whole numbers from 0 to the largest it has.", {.outputs = {"selfRef"}});
  table.formulas = {"0 <= selfRef[i] <= the largest integer; of floating dtypes 2 to the power of their digits"};
  table.notes = {kSequenceNote};
  AddNullRules(&table);
  Add(&table, {Supported(kOnly950), DTypes("selfRef", RowsOf(kNumbers | types::kBool)), Rank("selfRef", 0, 8)});
  if (kTensor) AddSeedRules(&table);
  movement::AddStorageRules(&table);
  return {.contract = Contract(std::move(table)),
          .plan = [](Values v, PlanBuilder& plan) -> Status { return PlanWhole(v, plan, {0, EndOf(v[0].tensor->dtype)}, 1, kTensor); },
          .family = "random"};
}

// --- Bernoulli -------------------------------------------------------------------------------------

// Where things are: self is the output of the in-place forms.
struct BernoulliArgs {
  int prob = 1;
  int seed = 2;
  int out = 0;
};

std::string NoProbability(Values v, Product) {
  const double p = v[1].scalar->AsDouble();
  return p >= 0 && p <= 1 ? "" : "must be in [0, 1], got " + std::to_string(p);
}

Table BernoulliTable(const Entry& entry, bool in_place, bool tensor) {
  const char* const self = in_place ? "selfRef" : "self";
  const char* const out = in_place ? "selfRef" : "out";
  // Elements beyond the last probability keep what they are.
  ArgRoles roles;
  if (tensor) roles.in_out = {out};
  else roles.outputs = {out};
  Table table = TableOf(entry, "random", "Draws 1 with a probability, else 0.", roles);
  table.formulas = {"out[i] = u[i] <= prob ? 1 : 0, 0 < u <= 1"};
  table.notes = {kSequenceNote};
  if (tensor) {
    table.notes.push_back("prob: one number for all, or broadcast to " + std::string(self) + ", else one after the other; elements beyond the last keep their value.");
  }
  constexpr DTypeSet kOlder = types::kBasic10;
  AddNullRules(&table);
  Add(&table, {Supported(movement::kNewerAndTraining), DTypes(self, RowsOf(kOlder | types::kUnsigned3, kOlder))});
  Add(&table, {tensor ? DTypes("prob", RowsOf(kFloats)) : ScalarDTypes("prob", RowsOf(kFloats))});
  if (!in_place) Add(&table, {SameDType(self, out)});
  if (!tensor) Add(&table, {Custom("prob", "must be in [0, 1]", NoProbability)});
  Add(&table, {Rank(self, 0, 8)});
  if (tensor) Add(&table, {Rank("prob", 0, 8)});
  if (!in_place) Add(&table, {SameShape(out, self)});
  Add(&table, {PublicFormat(self)});
  if (tensor) Add(&table, {PublicFormat("prob")});
  if (!in_place) Add(&table, {PlainStorage(out)});
  return table;
}

template <bool kInPlace>
Operator MakeBernoulli(const Entry& entry) {
  return {.contract = Contract(BernoulliTable(entry, kInPlace, false)),
          .plan = [](Values v, PlanBuilder& plan) -> Status {
            constexpr BernoulliArgs kArgs = {1, 2, kInPlace ? 0 : 4};
            RandomParams p{.draw = Draw::kBernoulli};
            p.low = v[kArgs.prob].scalar->AsDouble();
            return AddDraw(plan, v, p, kArgs.seed, /*from_tensors=*/false, kArgs.out);
          },
          .family = "random"};
}

// Probabilities one after the other: the first elements of out, which starts as it is.
Status PlanFlatBernoulli(Values v, PlanBuilder& plan, const BernoulliArgs& args) {
  const Tensor& out = *v[args.out].tensor;
  const int64_t count = std::min(v[args.prob].tensor->numel(), out.numel());
  const Operand prob = plan.TensorOperand(args.prob);
  Operand numbers = plan.ScratchOperand("probabilities", DType::kF32, prob.dims);
  ANYACL_RETURN_IF_ERROR(pointwise::AddCopy(plan, prob, numbers));
  const Operand target = plan.ScratchOperand("drawn", out.dtype, out.dims);
  ANYACL_RETURN_IF_ERROR(pointwise::AddCopy(plan, plan.TensorOperand(args.out), target));
  auto& p = plan.MakeParams<RandomParams>();
  p.draw = Draw::kBernoulli;
  p.count = count;
  p.dtype = out.dtype;
  plan.Bind(numbers, p.mean);
  SetSource(plan, v, args.seed, /*from_tensors=*/false, &p.source);
  plan.Bind(target, p.out);
  ANYACL_RETURN_IF_ERROR(plan.ChooseKernel("random"));
  return pointwise::FinishOutput(plan, args.out, 0, target);
}

bool BroadcastsTo(const Dims& from, const Dims& to) {
  const Dims* const shapes[] = {&from, &to};
  Dims together;
  return from.rank() <= to.rank() && BroadcastDims(shapes, &together) && together == to;
}

template <bool kInPlace>
Operator MakeBernoulliTensor(const Entry& entry) {
  return {.contract = Contract(BernoulliTable(entry, kInPlace, true)),
          .plan = [](Values v, PlanBuilder& plan) -> Status {
            constexpr BernoulliArgs kArgs = {1, 2, kInPlace ? 0 : 4};
            const Tensor &out = *v[kArgs.out].tensor, &prob = *v[kArgs.prob].tensor;
            if (out.empty() || prob.empty()) return {};
            const bool one = prob.numel() == 1;
            if (!one && !BroadcastsTo(prob.dims, out.dims)) return PlanFlatBernoulli(v, plan, kArgs);
            Operand numbers;
            ANYACL_RETURN_IF_ERROR(NumbersFor(plan, kArgs.prob, out.dims, /*wide=*/false, &numbers));
            const Operand target = pointwise::DenseOutput(plan, kArgs.out, 0, out.dtype);
            auto& p = plan.MakeParams<RandomParams>();
            p.draw = Draw::kBernoulli;
            p.count = out.numel();
            p.dtype = out.dtype;
            plan.Bind(numbers, p.mean);
            SetSource(plan, v, kArgs.seed, /*from_tensors=*/false, &p.source);
            plan.Bind(target, p.out);
            ANYACL_RETURN_IF_ERROR(plan.ChooseKernel("random"));
            return pointwise::FinishOutput(plan, kArgs.out, 0, target);
          },
          .family = "random"};
}

// --- draws from weights -----------------------------------------------------------------------------

enum { kWeights, kSamples, kReplacement, kSampleSeed };

const Tensor& DrawnOf(Values v) { return *v[v.size() - 1].tensor; }

std::string WrongSampleShape(Values v, Product) {
  const Dims &self = v[kWeights].tensor->dims, &out = DrawnOf(v).dims;
  Dims want;
  if (self.rank() == 2) want.push_back(self[0]);
  want.push_back(v[kSamples].integer);
  return out == want ? "" : "must have shape " + ToString(want) + ", got " + ToString(out);
}
std::string WrongSamples(Values v, Product) {
  const int64_t samples = v[kSamples].integer;
  const Dims& self = v[kWeights].tensor->dims;
  const int64_t categories = self[self.rank() - 1];
  if (samples <= 0) return "must be positive, got " + std::to_string(samples);
  if (v[kReplacement].flag || samples <= categories || v[kWeights].tensor->empty()) return "";
  return "must not be more than the categories without replacement, got " + std::to_string(samples) + " of " + std::to_string(categories);
}
std::string TooManyCategories(Values v, Product) {
  const Dims& self = v[kWeights].tensor->dims;
  const int64_t categories = self[self.rank() - 1];
  return categories <= 1 << 24 ? "" : "must have at most 2^24 categories, got " + std::to_string(categories);
}

Status PlanWithReplacement(Values v, PlanBuilder& plan, const Operand& weights, int out_arg, bool from_tensors) {
  const Tensor &self = *v[kWeights].tensor, &out = DrawnOf(v);
  const Operand target = pointwise::DenseOutput(plan, out_arg, 0, DType::kI64);
  auto& p = plan.MakeParams<MultinomialParams>();
  p.categories = self.dims[self.rank() - 1];
  p.rows = self.numel() / p.categories;
  p.samples = out.numel() / p.rows;
  SetSource(plan, v, kSampleSeed, from_tensors, &p.source);
  plan.Bind(weights, p.weights);
  plan.Bind(target, p.out);
  plan.Scratch("sums", self.numel() * static_cast<int64_t>(sizeof(double)), p.sums);
  ANYACL_RETURN_IF_ERROR(plan.ChooseKernel("multinomial"));
  return pointwise::FinishOutput(plan, out_arg, 0, target);
}

// The largest scores of each row, as far as there are samples.
Status PlanByScores(Values v, PlanBuilder& plan, const Operand& weights, int out_arg, bool from_tensors) {
  const Operand scores = plan.ScratchOperand("scores", DType::kF64, weights.dims);
  auto& p = plan.MakeParams<RandomParams>();
  p.draw = Draw::kScores;
  p.wide = true;
  p.count = Numel(weights.dims);
  p.dtype = DType::kF64;
  SetSource(plan, v, kSampleSeed, from_tensors, &p.source);
  plan.Bind(weights, p.mean);
  plan.Bind(scores, p.out);
  ANYACL_RETURN_IF_ERROR(plan.ChooseKernel("random"));
  order::SelectParams select;
  select.pick = order::Pick::kFirst;
  select.count = v[kSamples].integer;
  select.descending = true;
  const Operand target = pointwise::DenseOutput(plan, out_arg, 0, DType::kI64);
  ANYACL_RETURN_IF_ERROR(order::AddSelect(plan, select, scores, nullptr, &target));
  return pointwise::FinishOutput(plan, out_arg, 0, target);
}

template <bool kTensor>
Operator MakeMultinomial(const Entry& entry) {
  Table table = TableOf(entry, "random", "Draws categories, each as often as its weight says.");
  table.notes = {kSequenceNote, "Weights that are not positive count as 0; a row of them gives 0, 1, 2, ... without replacement, else 0."};
  AddNullRules(&table, {"self"});
  Add(&table, {Supported(kTensor ? kNewer : movement::kFive), DTypes("self", RowsOf(kFloats)), DTypes("out", {{{DType::kI64}}}), Rank("self", 1, 2),
               Custom("out", "must have a row of numsamples for each of self", WrongSampleShape),
               Custom("numsamples", "must be positive, and not more than the categories without replacement", WrongSamples),
               Custom("self", "must have at most 2^24 categories", TooManyCategories)});
  if (kTensor) AddSeedRules(&table);
  movement::AddStorageRules(&table);
  return {.contract = Contract(std::move(table)),
          .plan = [](Values v, PlanBuilder& plan) -> Status {
            const Tensor& self = *v[kWeights].tensor;
            const int out_arg = static_cast<int>(v.size()) - 1;
            if (self.empty()) return {};
            Operand weights;
            ANYACL_RETURN_IF_ERROR(pointwise::DenseInput(plan, kWeights, 0, DType::kF64, &weights));
            if (v[kReplacement].flag && v[kSamples].integer > 1) return PlanWithReplacement(v, plan, weights, out_arg, kTensor);
            return PlanByScores(v, plan, weights, out_arg, kTensor);
          },
          .family = "random"};
}

// --- permutations -----------------------------------------------------------------------------------

std::string WrongLength(Values v, Product) {
  const Dims& out = v[3].tensor->dims;
  return out == Dims{v[0].integer} ? "" : "must have shape [" + std::to_string(v[0].integer) + "], got " + ToString(out);
}

Operator MakeRandperm(const Entry& entry) {
  Table table = TableOf(entry, "random", "The numbers 0 to n - 1 in a random order.");
  table.notes = {kSequenceNote};
  AddNullRules(&table);
  Add(&table, {Supported(movement::kNewerAndTraining), DTypes("out", RowsOf(kNumbers)), Custom("out", "must have shape [n]", WrongLength),
               Custom("n", "must not be negative", [](Values v, Product) {
                 return v[0].integer >= 0 ? std::string() : "must not be negative, got " + std::to_string(v[0].integer);
               })});
  movement::AddStorageRules(&table);
  return {.contract = Contract(std::move(table)),
          .plan = [](Values v, PlanBuilder& plan) -> Status {
            if (v[3].tensor->empty()) return {};
            const Operand keys = plan.ScratchOperand("keys", DType::kU64, {v[0].integer});
            auto& p = plan.MakeParams<RandomParams>();
            p.draw = Draw::kKeys;
            p.count = v[0].integer;
            p.dtype = DType::kU64;
            SetSource(plan, v, 1, /*from_tensors=*/false, &p.source);
            plan.Bind(keys, p.out);
            ANYACL_RETURN_IF_ERROR(plan.ChooseKernel("random"));
            order::SelectParams select;
            select.count = v[0].integer;
            const Operand target = pointwise::DenseOutput(plan, 3, 0, DType::kI64);
            ANYACL_RETURN_IF_ERROR(order::AddSelect(plan, select, keys, nullptr, &target));
            return pointwise::FinishOutput(plan, 3, 0, target);
          },
          .family = "random"};
}

}  // namespace
}  // namespace random

void DeclareRandom(Declarations& declarations) {
  using namespace random;
  DeclareDropout(declarations);
  declarations.Add("aclnnBernoulli", MakeBernoulli<false>);
  declarations.Add("aclnnBernoulliTensor", MakeBernoulliTensor<false>);
  declarations.Add("aclnnInplaceBernoulli", MakeBernoulli<true>);
  declarations.Add("aclnnInplaceBernoulliTensor", MakeBernoulliTensor<true>);
  declarations.Add("aclnnInplaceNormal", MakeNormal<false>);
  declarations.Add("aclnnInplaceNormalTensor", MakeNormal<true>);
  declarations.Add("aclnnInplaceRandom", MakeRandom<false>);
  declarations.Add("aclnnInplaceRandomTensor", MakeRandom<true>);
  declarations.Add("aclnnInplaceRandomWithoutFromTo", MakeRandomWithoutEnds<false>);
  declarations.Add("aclnnInplaceRandomWithoutFromToTensor", MakeRandomWithoutEnds<true>);
  declarations.Add("aclnnInplaceUniform", MakeUniform<false>);
  declarations.Add("aclnnInplaceUniformTensor", MakeUniform<true>);
  declarations.Add("aclnnMultinomial", MakeMultinomial<false>);
  declarations.Add("aclnnMultinomialTensor", MakeMultinomial<true>);
  declarations.Add("aclnnNormalFloatFloat", MakeNormalOut<false, false>);
  declarations.Add("aclnnNormalFloatTensor", MakeNormalOut<false, true>);
  declarations.Add("aclnnNormalTensorFloat", MakeNormalOut<true, false>);
  declarations.Add("aclnnNormalTensorTensor", MakeNormalOut<true, true>);
  declarations.Add("aclnnRandperm", MakeRandperm);
  declarations.Add("aclnnSimThreadExponential", MakeExponential);
}

}  // namespace anyacl
