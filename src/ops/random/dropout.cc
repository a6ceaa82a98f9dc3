// SPDX-License-Identifier: Apache-2.0
// Copyright The AnyACL Authors
//
// Dropout, with masks of one bit per element.
#include <cmath>
#include <string>
#include <vector>

#include "ops/random/common.h"

namespace anyacl::random {
namespace {

constexpr DTypeSet kOlder = types::kFloat3;
constexpr DTypeSet kNewest = kOlder | types::kDouble;
inline constexpr char kMaskNote[] =
    "Masks have one bit per element, that of element i in byte i / 8 at place i % 8 from the lowest: 1 keeps it. Their length in bytes is the number "
    "of elements, rounded up to a multiple of 128, over 8; the bits behind the last element are 0, with the probability 0 all bits are 1.";

bool IsZero(double p) { return p < 2.2e-16; }
bool IsOne(double p) { return std::fabs(1 - p) < 2.2e-16; }

int64_t MaskBytes(int64_t elements) { return elements / 128 * 16 + (elements % 128 != 0 ? 16 : 0); }

template <int kArg>
std::string NoProbability(Values v, Product) {
  return v[kArg].real >= 0 && v[kArg].real <= 1 ? "" : "must be in [0, 1], got " + std::to_string(v[kArg].real);
}
template <int kArg>
Rule IsProbability(const char* arg) {
  return Custom(arg, "must be in [0, 1]", NoProbability<kArg>);
}

// The length of a mask of the elements of `x`.
template <int kMask, int kX>
std::string WrongMaskSize(Values v, Product) {
  const int64_t want = MaskBytes(v[kX].tensor->numel()), got = v[kMask].tensor->numel();
  return got == want ? "" : "must have " + std::to_string(want) + " elements, got shape " + ToString(v[kMask].tensor->dims);
}
template <int kMask, int kX>
std::string ShortMask(Values v, Product) {
  const int64_t want = MaskBytes(v[kX].tensor->numel()), got = v[kMask].tensor->numel();
  return got >= want ? "" : "must have at least " + std::to_string(want) + " elements, got shape " + ToString(v[kMask].tensor->dims);
}

// --- steps ----------------------------------------------------------------------------------------

// A step that fills a dense mask of `elements` bits.
Status AddMask(PlanBuilder& plan, Values v, const Operand& mask, int64_t elements, double probability, int seed, bool from_tensors) {
  auto& p = plan.MakeParams<DropMaskParams>();
  p.count = elements;
  p.bytes = Numel(mask.dims);
  p.keep = IsOne(probability) ? 0 : static_cast<float>(1 - probability);
  p.all = IsZero(probability);
  SetSource(plan, v, seed, from_tensors, &p.source);
  plan.Bind(mask, p.out);
  return plan.ChooseKernel("drop_mask");
}

// out = mask ? x * scale : 0
Status AddDrop(PlanBuilder& plan, int x_arg, const Operand& mask, double scale, int out_arg) {
  Operand x;
  ANYACL_RETURN_IF_ERROR(pointwise::DenseInput(plan, x_arg, 0, plan.TensorOf(x_arg).dtype, &x));
  // Written where x lies, element by element, if that is all that lies there.
  Operand out = plan.TensorOperand(out_arg);
  const bool in_place = out.row_major() && x.index == x_arg && out.dtype == x.dtype && !plan.OverlapsAllBut(out, x_arg);
  if (!in_place) out = pointwise::DenseOutput(plan, out_arg, 0, IsComplex(out.dtype) ? x.dtype : out.dtype);
  auto& p = plan.MakeParams<DropParams>();
  p.count = Numel(x.dims);
  p.scale = scale;
  p.x_type = x.dtype;
  p.out_type = out.dtype;
  p.wide = x.dtype == DType::kF64;
  plan.Bind(x, p.x);
  plan.Bind(mask, p.mask);
  plan.Bind(out, p.out);
  ANYACL_RETURN_IF_ERROR(plan.ChooseKernel("drop"));
  return pointwise::FinishOutput(plan, out_arg, 0, out);
}

// What an element is multiplied by that is kept: in FLOAT 1 / q is rounded after q was.
double ScaleOf(double probability, bool wide) {
  return wide ? 1 / (1 - probability) : static_cast<double>(1 / static_cast<float>(1 - probability));
}

// The same with the scale of a probability, without a look at the mask where that is 0 or 1.
Status AddDropBy(PlanBuilder& plan, int x_arg, const Operand& mask, double probability, int out_arg) {
  if (IsZero(probability)) return movement::CopyOut(plan, plan.TensorOperand(x_arg), out_arg);
  if (IsOne(probability)) return movement::AddZeros(plan, plan.TensorOperand(out_arg));
  return AddDrop(plan, x_arg, mask, ScaleOf(probability, plan.TensorOf(x_arg).dtype == DType::kF64), out_arg);
}

// --- operators ------------------------------------------------------------------------------------

int64_t NumelOfShape(const std::vector<int64_t>& shape) {
  int64_t count = 1;
  for (int64_t size : shape) {
    if (size < 0 || (size > 0 && count > (INT64_MAX >> 4) / size)) return -1;
    count *= size;
  }
  return count;
}
std::string NoShape(Values v, Product) {
  return NumelOfShape(v[0].ints->values) >= 0 ? "" : "must have no negative sizes and a product below 2^59";
}
template <int kOut>
std::string WrongGenSize(Values v, Product) {
  const int64_t want = MaskBytes(NumelOfShape(v[0].ints->values)), got = v[kOut].tensor->numel();
  return got == want ? "" : "must have " + std::to_string(want) + " elements, got shape " + ToString(v[kOut].tensor->dims);
}

enum class Version { kV1, kV2, kV2Tensor };

template <Version kVersion>
Operator MakeGenMask(const Entry& entry) {
  constexpr int kOut = kVersion == Version::kV1 ? 4 : kVersion == Version::kV2 ? 5 : 6;
  Table table = TableOf(entry, "drop_mask", "A random mask for dropout.");
  table.formulas = {"bit[i] = u[i] < 1 - prob, 0 < u <= 1"};
  table.notes = {kSequenceNote, kMaskNote, "probDataType only says for which dtype the mask is."};
  AddNullRules(&table, {"shape", "out"});
  Add(&table, {Supported(kVersion == Version::kV2Tensor ? kNewer : movement::kFive), DTypes("out", {{{DType::kU8}}}), IsProbability<1>("prob"),
               Custom("shape", "must be a shape", NoShape), Custom("out", "must have a bit for every element", WrongGenSize<kOut>)});
  if (kVersion != Version::kV1) Add(&table, {DTypeArg("probDataType", RowsOf(kNewest, kOlder))});
  if (kVersion == Version::kV2Tensor) AddSeedRules(&table);
  movement::AddStorageRules(&table);
  return {.contract = Contract(std::move(table)),
          .plan = [](Values v, PlanBuilder& plan) -> Status {
            if (v[kOut].tensor->empty()) return {};
            const Operand mask = pointwise::DenseOutput(plan, kOut, 0, DType::kU8);
            ANYACL_RETURN_IF_ERROR(AddMask(plan, v, mask, NumelOfShape(v[0].ints->values), v[1].real, 2, kVersion == Version::kV2Tensor));
            return pointwise::FinishOutput(plan, kOut, 0, mask);
          },
          .family = "random"};
}

Operator MakeDropout(const Entry& entry) {
  enum { kX, kP, kTrain, kSeed, kOffset, kOut, kMask };
  Table table = TableOf(entry, "drop", "Sets elements to 0 with a probability and scales the others.", {.in_out = {"maskOut"}});
  table.formulas = {"out[i] = bit[i] ? input[i] / (1 - p) : 0"};
  table.notes = {kSequenceNote, kMaskNote, "Without train, and where p is 0 or 1, maskOut is left alone."};
  AddNullRules(&table);
  Add(&table, {Supported(movement::kNewerAndTraining), ResultConverts("input", "out"), DTypes("input", RowsOf(kOlder)), DTypes("maskOut", {{{DType::kU8}}}),
               IsProbability<kP>("p"), Rank("input", 0, 8), SameShape("out", "input"),
               Custom("maskOut", "must have a bit for every element", WrongMaskSize<kMask, kX>)});
  movement::AddStorageRules(&table);
  return {.contract = Contract(std::move(table)),
          .plan = [](Values v, PlanBuilder& plan) -> Status {
            const Tensor& x = *v[kX].tensor;
            if (x.empty()) return {};
            const double probability = v[kTrain].flag ? v[kP].real : 0;
            if (IsZero(probability) || IsOne(probability)) return AddDropBy(plan, kX, {}, probability, kOut);
            const Operand mask = pointwise::DenseOutput(plan, kMask, 0, DType::kU8);
            ANYACL_RETURN_IF_ERROR(AddMask(plan, v, mask, x.numel(), probability, kSeed, /*from_tensors=*/false));
            ANYACL_RETURN_IF_ERROR(AddDropBy(plan, kX, mask, probability, kOut));
            return pointwise::FinishOutput(plan, kMask, 0, mask);
          },
          .family = "random"};
}

Operator MakeDropoutV3(const Entry& entry) {
  enum { kX, kNoise, kP, kSeed, kOffset, kOut, kMask };
  Table table = TableOf(entry, "drop", "Sets elements to 0 with a probability and scales the others.", {.optional = {"optionalNoiseShape"}});
  table.formulas = {"out[i] = bit[i] ? input[i] / (1 - p) : 0"};
  table.notes = {kSequenceNote, kMaskNote};
  AddNullRules(&table);
  Add(&table, {Supported(kOnly950), ResultConverts("input", "out"), DTypes("input", RowsOf(kNewest)), DTypes("maskOut", {{{DType::kU8}}}),
               NotGiven("optionalNoiseShape"), IsProbability<kP>("p"), Rank("input", 0, 8), SameShape("out", "input"),
               Custom("maskOut", "must have a bit for every element", WrongMaskSize<kMask, kX>)});
  for (const char* arg : {"input", "out", "maskOut"}) Add(&table, {PlainStorage(arg)});
  return {.contract = Contract(std::move(table)),
          .plan = [](Values v, PlanBuilder& plan) -> Status {
            const Tensor& x = *v[kX].tensor;
            if (x.empty()) return {};
            const Operand mask = pointwise::DenseOutput(plan, kMask, 0, DType::kU8);
            ANYACL_RETURN_IF_ERROR(AddMask(plan, v, mask, x.numel(), v[kP].real, kSeed, /*from_tensors=*/false));
            ANYACL_RETURN_IF_ERROR(AddDropBy(plan, kX, mask, v[kP].real, kOut));
            return pointwise::FinishOutput(plan, kMask, 0, mask);
          },
          .family = "random"};
}

Operator MakeDoMask(const Entry& entry) {
  enum { kX, kMask, kP, kOut };
  Table table = TableOf(entry, "drop", "Applies a mask of dropout.");
  table.formulas = {"out[i] = bit[i] ? self[i] / (1 - prob) : 0"};
  table.notes = {kMaskNote, "With prob 0 out is self and with prob 1 zero, whatever the mask holds."};
  AddNullRules(&table);
  Add(&table, {Supported(movement::kFive), AcceptIfEmpty({"self"}), AcceptIfEmpty({"mask"}), ResultConverts("self", "out"),
               DTypes("self", RowsOf(kNewest, kOlder)), DTypes("mask", {{{DType::kU8}}}), IsProbability<kP>("prob"), Rank("self", 0, 8),
               SameShape("out", "self"), Custom("mask", "must have a bit for every element", ShortMask<kMask, kX>)});
  movement::AddStorageRules(&table);
  return {.contract = Contract(std::move(table)),
          .plan = [](Values v, PlanBuilder& plan) -> Status {
            if (v[kX].tensor->empty() || v[kMask].tensor->empty()) return {};
            Operand mask;
            ANYACL_RETURN_IF_ERROR(pointwise::DenseInput(plan, kMask, 0, DType::kU8, &mask));
            return AddDropBy(plan, kX, mask, v[kP].real, kOut);
          },
          .family = "random"};
}

// 1 / scale is the probability to be kept.
double DroppedBy(double scale) { return scale == 0 ? 1 : 1 - 1 / scale; }
std::string NoScale(Values v, Product) {
  const double p = DroppedBy(v[2].real);
  return p >= 0 && p <= 1 ? "" : "must be 0 or at least 1, got " + std::to_string(v[2].real);
}

Operator MakeDropoutBackward(const Entry& entry) {
  enum { kX, kMask, kScale, kOut };
  Table table = TableOf(entry, "drop", "The gradient of dropout.");
  table.formulas = {"out[i] = bit[i] ? gradOutput[i] * scale : 0"};
  table.notes = {kMaskNote, "With scale 1 out is gradOutput and with scale 0 zero, whatever the mask holds."};
  AddNullRules(&table);
  Add(&table, {Supported(movement::kNewerAndTraining), ResultConverts("gradOutput", "out"), DTypes("gradOutput", RowsOf(kOlder)), DTypes("mask", {{{DType::kU8}}}),
               Custom("scale", "must be 0 or at least 1", NoScale), Rank("gradOutput", 0, 8), SameShape("out", "gradOutput"),
               Custom("mask", "must have a bit for every element", WrongMaskSize<kMask, kX>)});
  movement::AddStorageRules(&table);
  return {.contract = Contract(std::move(table)),
          .plan = [](Values v, PlanBuilder& plan) -> Status {
            if (v[kX].tensor->empty()) return {};
            Operand mask;
            ANYACL_RETURN_IF_ERROR(pointwise::DenseInput(plan, kMask, 0, DType::kU8, &mask));
            return AddDropBy(plan, kX, mask, DroppedBy(v[kScale].real), kOut);
          },
          .family = "random"};
}

Operator MakeDropoutV3Grad(const Entry& entry) {
  enum { kX, kMask, kScale, kOut };
  Table table = TableOf(entry, "drop", "The gradient of dropout.");
  table.formulas = {"gradX[i] = bit[i] ? gradY[i] * scale : 0"};
  table.notes = {kMaskNote};
  Add(&table, {Supported(kOnly950).Code(161002)});
  AddNullRules(&table);
  Add(&table, {ResultConverts("gradY", "gradX"), DTypes("gradY", RowsOf(kOlder)), DTypes("mask", {{{DType::kU8}}}), Rank("gradY", 0, 8),
               SameShape("gradX", "gradY"), Custom("mask", "must have a bit for every element", WrongMaskSize<kMask, kX>)});
  movement::AddStorageRules(&table);
  return {.contract = Contract(std::move(table)),
          .plan = [](Values v, PlanBuilder& plan) -> Status {
            if (v[kX].tensor->empty()) return {};
            Operand mask;
            ANYACL_RETURN_IF_ERROR(pointwise::DenseInput(plan, kMask, 0, DType::kU8, &mask));
            return AddDrop(plan, kX, mask, v[kScale].real, kOut);
          },
          .family = "random"};
}

}  // namespace

void DeclareDropout(Declarations& declarations) {
  declarations.Add("aclnnDropout", MakeDropout);
  declarations.Add("aclnnDropoutBackward", MakeDropoutBackward);
  declarations.Add("aclnnDropoutDoMask", MakeDoMask);
  declarations.Add("aclnnDropoutGenMask", MakeGenMask<Version::kV1>);
  declarations.Add("aclnnDropoutGenMaskV2", MakeGenMask<Version::kV2>);
  declarations.Add("aclnnDropoutGenMaskV2Tensor", MakeGenMask<Version::kV2Tensor>);
  declarations.Add("aclnnDropoutV3", MakeDropoutV3);
  declarations.Add("aclnnDropoutV3Grad", MakeDropoutV3Grad);
}

}  // namespace anyacl::random
