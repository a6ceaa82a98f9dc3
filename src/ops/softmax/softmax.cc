// SPDX-License-Identifier: Apache-2.0
// Copyright The AnyACL Authors
//
// Soft-max, its logarithm, their gradients, and the cross entropy on top of it.
#include "ops/softmax/softmax.h"

#include "ops/dense.h"
#include "ops/operators.h"
#include "ops/table.h"

namespace anyacl {
namespace {

using namespace contract;
using softmax::Kind;
using softmax::Params;

constexpr Products kProducts5 =
    Of({Product::kAscend950, Product::kA3, Product::kA2, Product::kInference, Product::kTraining});

std::vector<TypeRow> Float3Double() { return RowsOf(types::kFloat3 | types::kDouble); }

int AxisOf(int64_t dim, int rank) { return static_cast<int>(dim < 0 ? dim + rank : dim); }

// An operand with the axis of soft-max last.
Operand Along(const Operand& operand, int64_t dim) {
  return operand.dims.rank() == 0 ? operand : AxisLast(operand, AxisOf(dim, operand.dims.rank()));
}

Status Compute(PlanBuilder& plan, Dense& dense, Kind kind, DType computed, DType stored, const Tensor& shape, int64_t dim, int x, int y, int out,
               int loss = -1) {
  auto& params = plan.MakeParams<Params>();
  params.kind = kind;
  params.wide = computed == DType::kF64;
  params.stored = stored;
  params.count = shape.rank() == 0 ? 1 : shape.dims[AxisOf(dim, shape.rank())];
  params.rows = shape.numel() / params.count;
  dense.Bind(x, params.x);
  dense.Bind(y, params.y);
  dense.BindOut(out, params.out);
  dense.BindOut(loss, params.loss);
  ANYACL_RETURN_IF_ERROR(plan.ChooseKernel("softmax"));
  return dense.Finish();
}

DType ComputeTypeOf(std::initializer_list<const Tensor*> tensors) {
  for (const Tensor* t : tensors) {
    if (t->dtype == DType::kF64) return DType::kF64;
  }
  return DType::kF32;
}

// ---- forward ----

enum { kSelf, kDim, kOut };

template <Kind kind>
Status PlanForward(Values values, PlanBuilder& plan) {
  const Tensor& self = *values[kSelf].tensor;
  if (self.empty()) return {};
  const int64_t dim = values[kDim].integer;
  const DType computed = ComputeTypeOf({&self, values[kOut].tensor});
  const Operand x = Along(plan.TensorOperand(kSelf), dim), out = Along(plan.TensorOperand(kOut), dim);
  const DType stored = StoredType(computed, {x, out});
  Dense dense(plan, values, computed);
  ANYACL_RETURN_IF_ERROR(dense.Read(kSelf, x, stored));
  dense.Write(kOut, out, stored);
  return Compute(plan, dense, kind, computed, stored, self, dim, kSelf, -1, kOut);
}

Operator MakeSoftmax(const Entry& entry) {
  Table table = TableOf(entry, "softmax", "Exponentials along an axis, divided by their sum.");
  table.formulas = {"out = exp(self - m) / sum of exp(self - m), m = largest number along dim"};
  table.notes = {"Computed in FLOAT (DOUBLE when self or out is) with one rounding to out.",
                 "A row of -inf, and one with +inf or NaN in it, gives NaN."};
  Describe(&table, "self", "numbers");
  Describe(&table, "dim", "the axis along which results add up to one");
  AddNullRules(&table);
  const Products products = {kProducts5.bits | Of({Product::k200I}).bits};
  Add(&table, {Supported(products), AcceptIfEmpty({"self"}), DTypes("self", Float3Double()), DTypes("out", Float3Double()),
               Dim("dim", "self"), Rank("self", 0, 8), SameShape("out", "self")});
  return {.contract = Contract(std::move(table)), .plan = PlanForward<Kind::kSoftmax>, .family = "softmax"};
}

Operator MakeLogSoftmax(const Entry& entry) {
  Table table = TableOf(entry, "softmax", "Logarithm of the soft-max along an axis.");
  table.formulas = {"out = (self - m) - log(sum of exp(self - m)), m = largest number along dim"};
  table.notes = {"Computed in FLOAT (DOUBLE when self or out is) with one rounding to out.",
                 "A row of -inf, and one with +inf or NaN in it, gives NaN."};
  Describe(&table, "self", "numbers");
  Describe(&table, "dim", "the axis along which the exponentials of the results add up to one");
  AddNullRules(&table);
  Add(&table, {Supported(kProducts5), Dim("dim", "self"), DTypes("self", Float3Double()), DTypes("out", Float3Double()),
               ResultConverts("self", "out"), Rank("self", 0, 8), Rank("out", 0, 8), SameShape("out", "self")});
  return {.contract = Contract(std::move(table)), .plan = PlanForward<Kind::kLogSoftmax>, .family = "softmax"};
}

// ---- gradients ----

enum { kGradOutput, kOutput, kGradDim, kGradOut };

template <Kind kind>
Status PlanBackward(Values values, PlanBuilder& plan) {
  const Tensor& grad = *values[kGradOutput].tensor;
  if (grad.empty()) return {};
  const int64_t dim = values[kGradDim].integer;
  const DType computed = ComputeTypeOf({&grad});
  const auto along = [&](int arg) { return Along(plan.TensorOperand(arg), dim); };
  const Operand g = along(kGradOutput), y = along(kOutput), out = along(kGradOut);
  const DType stored = StoredType(computed, {g, y, out});
  Dense dense(plan, values, computed);
  ANYACL_RETURN_IF_ERROR(dense.Read(kGradOutput, g, stored));
  ANYACL_RETURN_IF_ERROR(dense.Read(kOutput, y, stored));
  dense.Write(kGradOut, out, stored);
  return Compute(plan, dense, kind, computed, stored, grad, dim, kGradOutput, kOutput, kGradOut);
}

Operator MakeBackward(const Entry& entry) {
  const bool log = std::string_view(entry.op) == "aclnnLogSoftmaxBackward";
  Table table = TableOf(entry, "softmax", log ? "Gradient of the logarithm of the soft-max." : "Gradient of the soft-max.");
  table.formulas = {log ? "out = gradOutput - exp(output) * sum of gradOutput along dim"
                        : "out = output * (gradOutput - sum of gradOutput * output along dim)"};
  Describe(&table, "gradOutput", "gradient of the forward result");
  Describe(&table, "output", "the forward result");
  Describe(&table, "dim", "the axis of the forward call");
  Describe(&table, "out", "gradient of the forward input; of any dtype that gradOutput converts to");
  const auto types = RowsOf(types::kFloat3 | types::kDouble, types::kFloat3);
  log ? AddNullRules(&table, {"output"}) : AddNullRules(&table);
  Add(&table, {Supported(kProducts5)});
  if (log) Add(&table, {DTypes("output", types), DTypes("gradOutput", types)});
  else Add(&table, {DTypes("gradOutput", types), DTypes("output", types)});
  Add(&table, {SameDType("output", "gradOutput"), ResultConverts("gradOutput", "out")});
  if (!log) Add(&table, {Dim("dim", "gradOutput")});
  Add(&table, {Rank("gradOutput", 0, 8), SameShape("output", "gradOutput"), SameShape("out", "gradOutput")});
  if (log) Add(&table, {Dim("dim", "gradOutput")});
  return {.contract = Contract(std::move(table)),
          .plan = log ? PlanBackward<Kind::kLogSoftmaxBackward> : PlanBackward<Kind::kSoftmaxBackward>,
          .family = "softmax"};
}

// ---- cross entropy ----

Operator MakeCrossEntropy(const Entry& entry) {
  Table table = TableOf(entry, "softmax", "Cross entropy of soft-max rows with label rows, and its gradient.",
                        {.inputs = {"labels"}});
  table.formulas = {"p = softmax(features) of each row", "loss = -sum of labels * log(p) of each row", "backprop = p - labels"};
  table.sizes = {{"N", "features", 0}};
  table.notes = {"A label of 0 where p is 0 gives NaN, as the product 0 * -inf does."};
  Describe(&table, "features", "a row of numbers for each sample");
  Describe(&table, "labels", "what the soft-max of each row should be");
  Describe(&table, "loss", "cross entropy of each row");
  Describe(&table, "backprop", "gradient of the sum of all losses, for labels that add up to one");
  AddNullRules(&table);
  Add(&table, {Supported(kProducts5)});
  for (const char* arg : {"features", "labels", "loss", "backprop"}) Add(&table, {DTypes(arg, RowsOf(types::kFloat3))});
  Add(&table, {SameDType("labels", "features"), SameDType("loss", "features"), SameDType("backprop", "features"),
               Rank("features", 2, 2), SameShape("labels", "features"), ShapeIs("loss", "N"), SameShape("backprop", "features")});
  return {.contract = Contract(std::move(table)),
          .plan = [](Values values, PlanBuilder& plan) -> Status {
            enum { kFeatures, kLabels, kLoss, kBackprop };
            const Tensor& features = *values[kFeatures].tensor;
            if (features.empty()) return {};
            Dense dense(plan, values, DType::kF32);
            for (int arg : {kFeatures, kLabels}) ANYACL_RETURN_IF_ERROR(dense.Read(arg));
            dense.Write(kLoss);
            dense.Write(kBackprop);
            return Compute(plan, dense, Kind::kCrossEntropy, DType::kF32, DType::kF32, features, 1, kFeatures, kLabels, kBackprop, kLoss);
          },
          .family = "softmax"};
}

}  // namespace

void DeclareMaskedSoftmax(Declarations& declarations);

void DeclareSoftmax(Declarations& declarations) {
  DeclareMaskedSoftmax(declarations);
  declarations.Add("aclnnSoftmax", MakeSoftmax);
  declarations.Add("aclnnLogSoftmax", MakeLogSoftmax);
  declarations.Add("aclnnSoftmaxBackward", MakeBackward);
  declarations.Add("aclnnLogSoftmaxBackward", MakeBackward);
  declarations.Add("aclnnSoftmaxCrossEntropyWithLogits", MakeCrossEntropy);
}

}  // namespace anyacl
