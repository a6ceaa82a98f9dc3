// SPDX-License-Identifier: Apache-2.0
// Copyright The AnyACL Authors
//
// Tables of rows: their gradient, bags of rows, rows cut down to a norm.
#include "ops/indexing/embedding.h"

#include <cmath>
#include <limits>

#include "ops/indexing/families.h"

namespace anyacl::indexing {

using namespace contract;
using namespace movement;

namespace {

const Dims& DimsOfArg(Values values, int arg) { return values[arg].tensor->dims; }
std::string Got(const Dims& dims) { return ", got " + ToString(dims); }

constexpr DTypeSet kFloating = types::kFloat3 | types::kDouble;
DType ComputedIn(DType dtype) { return dtype == DType::kF64 ? DType::kF64 : DType::kF32; }

// An argument as a row-major operand of `dtype`.
Status DenseAs(PlanBuilder& plan, int arg, DType dtype, Operand* dense) {
  ANYACL_RETURN_IF_ERROR(Converted(plan, plan.TensorOperand(arg), dtype, dense));
  return DenseOf(plan, *dense, dense);
}

// --- gradient ------------------------------------------------------------------------------------

enum { kGrad, kIndices, kNumWeights, kPaddingIdx, kScale, kOut };

std::string WrongGradRows(Values v, Product) {
  const Dims &grad = DimsOfArg(v, kGrad), &indices = DimsOfArg(v, kIndices);
  if (grad.rank() == 0) return "must have a dim for the columns of a row" + Got(grad);
  int64_t rows = 1;
  for (int i = 0; i + 1 < grad.rank(); ++i) rows *= grad[i];
  return grad[grad.rank() - 1] == 0 || rows == Numel(indices) ? "" : "must have one row for each of indices " + ToString(indices) + Got(grad);
}
Dims GradDims(Values v) {
  const Dims& grad = DimsOfArg(v, kGrad);
  return {v[kNumWeights].integer, grad[grad.rank() - 1]};
}
std::string OneKind(Values v, Product) {
  const DType grad = v[kGrad].tensor->dtype, out = v[kOut].tensor->dtype;
  return (grad == DType::kF64) == (out == DType::kF64) ? "" : "must be DOUBLE if grad is, got " + Name(out) + " for " + Name(grad);
}

Operator MakeEmbeddingDenseBackward(const Entry& entry) {
  Table table = TableOf(entry, "walk", "The gradient of Embedding: the rows of grad added where indices says.", {.outputs = {"out"}});
  table.formulas = {"out[w, :] = sum of grad[i, :] over the i with indices[i] = w"};
  table.notes = {"Sums are in order and rounded once. The row paddingIdx is 0; a number beyond the rows names none. scaleGradByFreq divides "
                 "each row by how many were added. Indices outside add nothing."};
  constexpr DTypeSet kIndexTypes = types::kInt5Bool | DTypeSet{DType::kF16, DType::kF32, DType::kF64};
  AddNullRules(&table);
  Add(&table, {Supported(kNewerAndTraining), DTypes("grad", RowsOf(kFloating, types::kFloat3)), DTypes("indices", RowsOf(kIndexTypes)),
               DTypes("out", RowsOf(kFloating, types::kFloat3)), Custom("out", "must be DOUBLE if grad is", OneKind)});
  AddRankRules(&table);
  Add(&table, {Custom("grad", "must have one row for each index", WrongGradRows), ShapeOf<kOut, GradDims>("out", "must have numWeights rows of grad"),
               PublicFormat("grad"), PublicFormat("indices"), PublicFormat("out")});
  return {.contract = Contract(std::move(table)),
          .plan = [](Values values, PlanBuilder& plan) -> Status {
            const Tensor &grad = *values[kGrad].tensor, &out = *values[kOut].tensor;
            if (out.empty()) return {};
            const DType work = ComputedIn(grad.dtype);
            const Operand sums = pointwise::DenseOutput(plan, kOut, 0, work);
            ANYACL_RETURN_IF_ERROR(AddZeros(plan, sums));
            if (!grad.empty()) {
              Operand rows, index, hits;
              ANYACL_RETURN_IF_ERROR(DenseAs(plan, kGrad, work, &rows));
              ANYACL_RETURN_IF_ERROR(DenseAs(plan, kIndices, DType::kI64, &index));
              index = Reshaped(index, {Numel(index.dims)});
              rows = Reshaped(rows, {index.dims[0], out.dims[1]});
              const bool scales = values[kScale].flag;
              if (scales) {
                hits = plan.ScratchOperand("hits", DType::kI64, out.dims);
                ANYACL_RETURN_IF_ERROR(AddZeros(plan, hits));
              }
              ANYACL_RETURN_IF_ERROR(AddWalk(plan, {Action::kAdd, sums, rows, AxesAlong(0, sums, rows, index, true),
                                                    {{index, out.dims[0], sums.strides[0], false}}, nullptr, scales ? &hits : nullptr}));
              if (scales) ANYACL_RETURN_IF_ERROR(AddMean(plan, sums, hits, work, false));
            }
            const int64_t padding = values[kPaddingIdx].integer;
            if (padding >= 0 && padding < out.dims[0]) ANYACL_RETURN_IF_ERROR(AddZeros(plan, Narrow(sums, 0, padding, 1)));
            return pointwise::FinishOutput(plan, kOut, 0, sums);
          },
          .family = "indexing"};
}

// --- bags ----------------------------------------------------------------------------------------

namespace bag {

enum { kWeight, kIndices, kOffsets, kScaleGrad, kMode, kSparse, kScales, kLastOffset, kPadding, kOutput, kBagOf, kSizes, kPlaces };

BagMode ModeOf(Values v) { return v[kMode].integer == 0 ? BagMode::kSum : v[kMode].integer == 1 ? BagMode::kMean : BagMode::kMax; }
int64_t BagsOf(Values v) { return v[kOffsets].tensor->numel() - (v[kLastOffset].flag ? 1 : 0); }

std::string WrongIndexTypes(Values v, Product) {
  const DType indices = v[kIndices].tensor->dtype, offsets = v[kOffsets].tensor->dtype;
  return types::kIndex.Has(indices) || types::kIndex.Has(offsets)
             ? ""
             : "must be INT32 or INT64 if offsets is not, got " + Name(indices) + " and " + Name(offsets);
}
std::string DeepIndices(Values v, Product product) {
  if (product == Product::kAscend950) return "";
  if (v[kIndices].tensor->rank() > 1) return "must have one dim on this product" + Got(DimsOfArg(v, kIndices));
  const bool scales = v[kScales].given();
  if (scales && v[kScales].tensor->rank() != 1) return "must go with perSampleWeights of one dim on this product" + Got(DimsOfArg(v, kScales));
  return scales && ModeOf(v) != BagMode::kSum ? "must go without perSampleWeights but for sums on this product, got mode " + std::to_string(v[kMode].integer)
                                              : "";
}
std::string WrongScales(Values v, Product) {
  const int64_t want = v[kIndices].tensor->numel();
  return v[kScales].given() && v[kScales].tensor->numel() != want
             ? "must have one element for each of " + std::to_string(want) + " indices" + Got(DimsOfArg(v, kScales))
             : "";
}
Dims OutputDims(Values v) { return {BagsOf(v), DimsOfArg(v, kWeight)[1]}; }
std::string WrongBagOf(Values v, Product) {
  const Tensor& bag_of = *v[kBagOf].tensor;
  const int64_t want = v[kIndices].tensor->numel();
  return bag_of.empty() || bag_of.numel() == want
             ? ""
             : "must have no elements, or one for each of " + std::to_string(want) + " indices" + Got(bag_of.dims);
}
std::string WrongSizes(Values v, Product product) {
  const int64_t want = product == Product::kAscend950 ? v[kOffsets].tensor->numel() : BagsOf(v);
  return DimsOfArg(v, kSizes) == Dims{want} ? "" : "must have shape [" + std::to_string(want) + "]" + Got(DimsOfArg(v, kSizes));
}
std::string WrongPlaces(Values v, Product product) {
  const Dims& got = DimsOfArg(v, kPlaces);
  const bool max = ModeOf(v) == BagMode::kMax;
  if (!max && product == Product::kAscend950) return "";
  const Dims want = max ? OutputDims(v) : Dims{BagsOf(v)};
  return want == got ? "" : "must have shape " + ToString(want) + Got(got);
}

Status Plan(Values values, PlanBuilder& plan) {
  const Tensor &weight = *values[kWeight].tensor, &indices = *values[kIndices].tensor;
  const DType work = ComputedIn(weight.dtype);
  const bool wants_bags = !values[kBagOf].tensor->empty();
  const bool wants_places = ModeOf(values) == BagMode::kMax && !values[kPlaces].tensor->empty();
  if (values[kOffsets].tensor->empty()) return wants_bags ? AddZeros(plan, plan.TensorOperand(kBagOf)) : Status();
  Operand table, index, offsets, scales;
  ANYACL_RETURN_IF_ERROR(DenseOf(plan, plan.TensorOperand(kWeight), &table));
  ANYACL_RETURN_IF_ERROR(DenseAs(plan, kIndices, DType::kI64, &index));
  ANYACL_RETURN_IF_ERROR(DenseAs(plan, kOffsets, DType::kI64, &offsets));
  const bool scaled = values[kScales].given() && ModeOf(values) != BagMode::kMax && !indices.empty();
  if (scaled) ANYACL_RETURN_IF_ERROR(DenseAs(plan, kScales, work, &scales));
  const Operand out = pointwise::DenseOutput(plan, kOutput, 0, work), sizes = pointwise::DenseOutput(plan, kSizes, 0, DType::kI64);
  const Operand bag_of = pointwise::DenseOutput(plan, kBagOf, 0, DType::kI64), places = pointwise::DenseOutput(plan, kPlaces, 0, DType::kI64);
  auto& p = plan.MakeParams<BagParams>();
  p.rows = weight.dims[0];
  p.length = weight.dims[1];
  p.count = indices.numel();
  p.bags = BagsOf(values);
  p.sizes_length = Numel(sizes.dims);
  p.padding = values[kPadding].integer;
  p.mode = ModeOf(values);
  p.dtype = weight.dtype;
  p.last_offset = values[kLastOffset].flag;
  if (!weight.empty()) plan.Bind(table, p.weight);
  if (!indices.empty()) plan.Bind(index, p.indices);
  plan.Bind(offsets, p.offsets);
  if (scaled) plan.Bind(scales, p.scales);
  if (Numel(out.dims) > 0) plan.Bind(out, p.out);
  if (Numel(sizes.dims) > 0) plan.Bind(sizes, p.sizes);
  if (wants_bags) plan.Bind(bag_of, p.bag_of);
  if (wants_places) plan.Bind(places, p.places);
  ANYACL_RETURN_IF_ERROR(plan.ChooseKernel("bag"));
  ANYACL_RETURN_IF_ERROR(pointwise::FinishOutput(plan, kOutput, 0, out));
  ANYACL_RETURN_IF_ERROR(pointwise::FinishOutput(plan, kSizes, 0, sizes));
  if (wants_bags) ANYACL_RETURN_IF_ERROR(pointwise::FinishOutput(plan, kBagOf, 0, bag_of));
  return wants_places ? pointwise::FinishOutput(plan, kPlaces, 0, places) : Status();
}

}  // namespace bag

Operator MakeEmbeddingBag(const Entry& entry) {
  Table table = TableOf(entry, "bag", "Rows of weight taken together in bags: their sum, mean or largest elements.",
                        {.optional = {"perSampleWeights"}});
  table.formulas = {"output[b, :] = sum, mean or max of weight[indices[i], :] * perSampleWeights[i] over offsets[b] <= i < offsets[b + 1]"};
  table.notes = {"mode: 0 sum, 1 mean, any other max. Indices equal to paddingIdx, if that is not negative, do not count; those outside of weight "
                 "are rows of 0.",
                 "offset2bag, if it has room, receives the bag of every index, bagSize how many count, maxIndices the row each maximum is from, -1 "
                 "for a bag without one. A NaN is the maximum only if it comes first.",
                 "scaleGradByFreq and sparse have no effect here. perSampleWeights do not change a maximum."};
  constexpr DTypeSet kIndexTypes = types::kIndex | DTypeSet{DType::kI8, DType::kU8, DType::kI16};
  AddNullRules(&table);
  Add(&table, {Supported(kFive), DTypes("weight", RowsOf(kFloating, types::kFloat3)), DTypes("indices", RowsOf(kIndexTypes)),
               DTypes("offsets", RowsOf(kIndexTypes)), Custom("indices", "must be INT32 or INT64 if offsets is not", bag::WrongIndexTypes),
               SameDType("perSampleWeights", "weight"), SameDType("output", "weight"), DTypes("offset2bag", RowsOf(types::kIndex)),
               DTypes("bagSize", RowsOf(types::kIndex)), DTypes("maxIndices", RowsOf(types::kIndex))});
  AddStorageRules(&table);
  Add(&table, {Rank("weight", 2, 2), Rank("indices", 0, 2), Rank("offsets", 0, 1), Rank("perSampleWeights", 1, 2), Rank("output", 2, 2),
               Rank("offset2bag", 0, 1), Rank("bagSize", 0, 1), Rank("maxIndices", 0, 2),
               Custom("indices", "must have one dim, and weights of its own only for sums, before the newest product", bag::DeepIndices),
               Custom("perSampleWeights", "must have one element for each index", bag::WrongScales),
               ShapeOf<bag::kOutput, bag::OutputDims>("output", "must have one row per bag"),
               Custom("offset2bag", "must have no elements, or one for each index", bag::WrongBagOf),
               Custom("bagSize", "must have one element for each offset (before the newest product: bag)", bag::WrongSizes),
               Custom("maxIndices", "must have the shape of output if the mode is max (before the newest product: one element per bag if not)",
                      bag::WrongPlaces)});
  return {.contract = Contract(std::move(table)), .plan = bag::Plan, .family = "indexing"};
}

// --- norms ---------------------------------------------------------------------------------------

Operator MakeEmbeddingRenorm(const Entry& entry) {
  enum { kSelfRef, kIndicesArg, kMaxNorm, kNormType };
  Table table = TableOf(entry, "row_renorm", "Rows that indices names, cut down to a largest norm.", {.in_out = {"selfRef"}});
  table.formulas = {"row = row * maxNorm / (n + 1e-7) where n = (sum of |row|^normType)^(1/normType) is more than maxNorm"};
  table.notes = {"A row that is named several times is taken once. What lies outside of selfRef changes nothing."};
  AddNullRules(&table);
  Add(&table, {Supported(kNewerAndTraining), DTypes("selfRef", RowsOf(kFloating, types::kFloat3)), DTypes("indices", RowsOf(types::kIndex)),
               Rank("selfRef", 2, 2), Rank("indices", 0, 8), PublicFormat("selfRef"), PlainStorage("indices")});
  return {.contract = Contract(std::move(table)),
          .plan = [](Values values, PlanBuilder& plan) -> Status {
            const Tensor& self = *values[kSelfRef].tensor;
            if (self.empty() || values[kIndicesArg].tensor->empty()) return {};
            Operand index, table;
            ANYACL_RETURN_IF_ERROR(DenseAs(plan, kIndicesArg, DType::kI64, &index));
            ANYACL_RETURN_IF_ERROR(BeginUpdate(plan, kSelfRef, kSelfRef, self.dtype, true, &table));
            auto& p = plan.MakeParams<RowRenormParams>();
            p.rows = self.dims[0];
            p.length = self.dims[1];
            p.count = Numel(index.dims);
            p.limit = std::isnan(values[kMaxNorm].real) ? std::numeric_limits<double>::infinity() : values[kMaxNorm].real;
            p.p = values[kNormType].real;
            p.dtype = self.dtype;
            plan.Bind(table, p.table);
            plan.Bind(index, p.indices);
            ANYACL_RETURN_IF_ERROR(plan.ChooseKernel(p.scratch, "row_renorm"));
            return EndUpdate(plan, kSelfRef, table);
          },
          .family = "indexing"};
}

}  // namespace

void DeclareEmbeddings(Declarations& declarations) {
  declarations.Add("aclnnEmbeddingBag", MakeEmbeddingBag);
  declarations.Add("aclnnEmbeddingDenseBackward", MakeEmbeddingDenseBackward);
  declarations.Add("aclnnEmbeddingRenorm", MakeEmbeddingRenorm);
}

}  // namespace anyacl::indexing
