// SPDX-License-Identifier: Apache-2.0
// Copyright The AnyACL Authors
//
// The gradient of the Chamfer distance of two sets of points.
#include "ops/loss/chamfer.h"

#include "ops/dense.h"
#include "ops/loss/loss.h"
#include "ops/table.h"

namespace anyacl {
namespace {

using namespace contract;
using namespace loss;

enum { kXyz1, kXyz2, kIdx1, kIdx2, kGrad1, kGrad2, kOut1, kOut2 };

Status Plan(Values v, PlanBuilder& plan) {
  const Dims &a = v[kXyz1].tensor->dims, &b = v[kXyz2].tensor->dims;
  if (a[0] == 0 || (a[1] == 0 && b[1] == 0)) return {};
  Dense dense(plan, v, DType::kF32);
  const auto read = [&](int arg, DType dtype) { return v[arg].tensor->empty() ? Status() : dense.Read(arg, dtype); };
  for (const int arg : {kXyz1, kXyz2, kGrad1, kGrad2}) ANYACL_RETURN_IF_ERROR(read(arg, DType::kF32));
  for (const int arg : {kIdx1, kIdx2}) ANYACL_RETURN_IF_ERROR(read(arg, DType::kI64));
  for (const int arg : {kOut1, kOut2}) {
    if (!v[arg].tensor->empty()) dense.Write(arg);
  }
  auto& params = plan.MakeParams<ChamferParams>();
  params.batch = a[0];
  params.n = a[1];
  params.m = b[1];
  dense.Bind(kXyz1, params.a);
  dense.Bind(kXyz2, params.b);
  dense.Bind(kIdx1, params.index_a);
  dense.Bind(kIdx2, params.index_b);
  dense.Bind(kGrad1, params.grad_a);
  dense.Bind(kGrad2, params.grad_b);
  dense.BindOut(kOut1, params.out_a);
  dense.BindOut(kOut2, params.out_b);
  ANYACL_RETURN_IF_ERROR(plan.ChooseKernel("chamfer"));
  return dense.Finish();
}

Operator MakeChamferBackward(const Entry& entry) {
  Table table = TableOf(entry, "chamfer", "Gradient of the squared distances between the points of two sets and their nearest ones in the other.");
  table.formulas = {"gradXyz1[i] = 2 gradDist1[i] (xyz1[i] - xyz2[idx1[i]]) - sum over j with idx2[j] = i of 2 gradDist2[j] (xyz2[j] - xyz1[i])",
                    "gradXyz2[j] = 2 gradDist2[j] (xyz2[j] - xyz1[idx2[j]]) - sum over i with idx1[i] = j of 2 gradDist1[i] (xyz1[i] - xyz2[j])"};
  table.notes = {"A point whose index is no point of the other set adds nothing."};
  table.sizes = {{"B", "xyz1", 0}, {"N", "xyz1", 1}, {"M", "xyz2", 1}};
  AddNullRules(&table);
  Add(&table, {Supported(kNewer)});
  for (const char* arg : {"xyz1", "xyz2", "gradDist1", "gradDist2", "gradXyz1", "gradXyz2"}) {
    Add(&table, {DTypes(arg, RowsOf({DType::kF32, DType::kF16}))});
  }
  for (const char* arg : {"idx1", "idx2"}) Add(&table, {DTypes(arg, RowsOf({DType::kI32}))});
  Add(&table, {Rank("xyz1", 3, 3), Rank("xyz2", 3, 3), ShapeIs("xyz1", "B, N, 2"), ShapeIs("xyz2", "B, M, 2"), ShapeIs("idx1", "B, N"),
               ShapeIs("idx2", "B, M"), ShapeIs("gradDist1", "B, N"), ShapeIs("gradDist2", "B, M"), SameShape("gradXyz1", "xyz1"),
               SameShape("gradXyz2", "xyz2")});
  return {.contract = Contract(std::move(table)), .plan = Plan, .family = "loss"};
}

}  // namespace

void DeclareChamfer(Declarations& declarations) { declarations.Add("aclnnChamferDistanceBackward", MakeChamferBackward); }

}  // namespace anyacl
