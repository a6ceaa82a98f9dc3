// SPDX-License-Identifier: Apache-2.0
// Copyright The AnyACL Authors
//
// Stretches of an axis that are overwritten, planes that are unpooled.
#include <algorithm>
#include <string_view>

#include "harness/family.h"

namespace anyacl::harness {
namespace {

using At = Checked<int64_t>;
int64_t WholeAt(const Host& host, int64_t i) { return static_cast<int64_t>(host.real(i)); }

// --- InplaceScatterUpdate, ScatterList -----------------------------------------------------------

void SampleScatterUpdate(Calls& calls) {
  constexpr DType i64 = DType::kI64, i32 = DType::kI32;
  for (DType t : calls.TypesOf("data")) {
    calls.Add({In(t, {2, 4}), In(i64, {2}, Given({1, 3})), In(t, {2, 1}), Int(-1)});
    calls.Add({In(t, {3, 5, 2}), In(i32, {2}, Whole(-1, 5)), In(t, {2, 2, 2}), Int(1)});
    calls.Add({In(t, {3, 2, 5}), In(i64, {3, 2}, Whole(0, 4)), In(t, {3, 2, 2}), Int(-1)});
  }
  calls.Add({In(DType::kF32, {2, 4, 3}), In(i64, {}, Given({1})), In(DType::kF32, {1, 2, 3}), Int(1)});
  calls.Add({In(DType::kF32, {3, 6}), In(i64, {3, 2}, Given({1, 0, 1, 1, 1, 2})), In(DType::kF32, {3, 3}), Int(1)}, "one over the other");
  calls.Add({In(DType::kF32, {4, 500, 70}), In(i64, {4}, Whole(0, 300)), In(DType::kF32, {4, 190, 70}), Int(1)});
}
void OracleScatterUpdate(HostCall& call) {
  const Host &indices = call.In("indices"), &updates = call.In("updates");
  Host& out = call.Out("data");
  const bool pairs = indices.dims.rank() == 2;
  const size_t axis = static_cast<size_t>(call.Int("axis") < 0 ? call.Int("axis") + out.dims.rank() : call.Int("axis"));
  for (int64_t i = 0; i < updates.size(); ++i) {
    At at = updates.Position(i);
    const int64_t row = at[0];
    if (pairs) at[0] = WholeAt(indices, 2 * row);
    at[axis] += WholeAt(indices, pairs ? 2 * row + 1 : row);
    const bool inside = at[0] >= 0 && at[0] < out.dims[0] && at[axis] >= 0 && at[axis] < out.dims[static_cast<int>(axis)];
    if (inside) out[out.Index(at)] = updates[i];
  }
}

void SampleScatterList(Calls& calls) {
  constexpr DType i64 = DType::kI64, i32 = DType::kI32;
  const auto list = [](DType t, int count, const Dims& dims) { return List(std::vector<TestArg>(static_cast<size_t>(count), In(t, dims))); };
  for (DType t : calls.TypesOf("updates")) {
    calls.Add({list(t, 3, {5, 2}), In(i64, {3}, Whole(-1, 5)), In(t, {3, 2, 2}), Null(), Null(), Int(-2)});
    calls.Add({list(t, 2, {3, 4}), In(i32, {2, 2}, Whole(0, 3)), In(t, {2, 3, 3}), In(DType::kU8, {2}, Given({0, 1})), Text("update"), Int(2)});
  }
  calls.Add({list(DType::kF32, 2, {4}), In(i64, {2}, Whole(0, 3)), In(DType::kF32, {2, 2}), In(DType::kU8, {2}, Whole(0, 2)), Null(), Int(1)});
  calls.Add({list(DType::kF32, 2, {600, 90}), In(i64, {2}, Whole(0, 200)), In(DType::kF32, {2, 400, 90}), Null(), Null(), Int(1)});
}
void OracleScatterList(HostCall& call) {
  const Host &indice = call.In("indice"), &updates = call.In("updates");
  const size_t axis = static_cast<size_t>(call.Int("axis") < 0 ? call.Int("axis") + updates.dims.rank() : call.Int("axis"));
  const bool pairs = indice.dims.rank() == 2;
  for (int64_t i = 0; i < updates.size(); ++i) {
    At at = updates.Position(i);
    const int64_t b = at[0], along = at[axis];
    if (call.Has("maskOptional") && call.In("maskOptional").real(b) == 0) continue;
    if (pairs && along >= WholeAt(indice, 2 * b + 1)) continue;
    Host& out = call.Out("varRef", static_cast<int>(b));
    at[axis] += WholeAt(indice, pairs ? 2 * b : b);
    if (at[axis] < 0 || at[axis] >= out.dims[static_cast<int>(axis) - 1]) continue;
    at.erase(at.begin());
    out[out.Index(at)] = updates[i];
  }
}

// --- MaxUnpool -----------------------------------------------------------------------------------

void SampleUnpool(Calls& calls) {
  const std::string_view op = calls.op().contract.op();
  const bool solid = op.find("3d") != std::string_view::npos, backward = op.ends_with("Backward");
  const auto add = [&](DType t, DType index, Dims lead, const Dims& pooled, const Dims& plane, Values places, DType out_type) {
    Dims small = lead, large = lead;
    for (const int64_t d : pooled) small.push_back(d);
    for (const int64_t d : plane) large.push_back(d);
    const Checked<int64_t> size(plane.begin(), plane.end());
    std::vector<TestArg> args;
    if (backward) args.push_back(In(t, large));
    args.push_back(In(t, small));
    args.push_back(In(index, small, places));
    args.push_back(Ints(size));
    if (solid) args.insert(args.end(), {Ints({2, 2, 2}), Ints({0, 0, 0})});
    TestArg out = Out(out_type, backward ? small : large);
    if (solid) out.layout = "dense";
    args.push_back(out);
    calls.Add(args);
  };
  for (DType t : calls.TypesOf("self")) {
    const DType other = backward && solid ? DType::kI64 : DType::kI32;
    if (solid) {
      add(t, DType::kI64, {2, 2}, {2, 1, 2}, {2, 2, 3}, Whole(-1, 12), t);
      add(t, other, {2}, {1, 2, 2}, {2, 2, 2}, Whole(0, 7), t);
    } else {
      add(t, DType::kI64, {2, 2}, {2, 2}, {3, 4}, Whole(-1, 12), t);
      add(t, other, {2}, {2, 2}, {4, 4}, Whole(0, 15), t);
    }
  }
  const DType f = DType::kF32;
  if (solid) {
    add(f, DType::kI64, {0, 2}, {1, 2, 2}, {2, 2, 2}, {}, f);
    add(f, DType::kI64, {3, 20}, {5, 20, 20}, {10, 40, 40}, Whole(0, 15999), f);
  } else {
    add(f, DType::kI64, {0, 2}, {2, 2}, {4, 4}, {}, f);
    add(f, DType::kI64, {3, 40}, {20, 20}, {40, 40}, Whole(0, 1599), f);
    if (backward) add(f, DType::kI64, {2}, {2, 2}, {4, 4}, Whole(0, 15), DType::kF16);
  }
}
void OracleUnpool(HostCall& call) {
  const std::string_view op = call.name();
  const int axes = op.find("3d") != std::string_view::npos ? 3 : 2;
  const bool backward = op.ends_with("Backward");
  const Host &self = call.In("self"), &indices = call.In("indices");
  Host& out = call.Out(axes == 3 && !backward ? "outRef" : "out");
  int64_t pooled = 1, plane = 1;
  for (int i = 0; i < axes; ++i) {
    pooled *= self.dims[self.dims.rank() - 1 - i];
    plane *= call.Ints("outputSize")[static_cast<size_t>(i)];
  }
  out.values.assign(static_cast<size_t>(out.size()), 0);
  for (int64_t i = 0; i < self.size(); ++i) {
    const int64_t at = WholeAt(indices, i);
    if (at < 0 || at >= plane) continue;
    const int64_t large = i / pooled * plane + at;
    if (backward) out[i] = call.In("gradOutput")[large];
    else out[large] = self[i];
  }
}

}  // namespace

std::span<const Subject> StretchSubjects() {
  static constexpr Limits kDenseOut = {.ulps = 0, .partial = true};  // whose output may be no view
  static const Subject subjects[] = {
      {"aclnnInplaceScatterUpdate", SampleScatterUpdate, OracleScatterUpdate, {.ulps = 0}},
      {"aclnnMaxUnpool2d", SampleUnpool, OracleUnpool, {.ulps = 0}},
      {"aclnnMaxUnpool2dBackward", SampleUnpool, OracleUnpool, {.ulps = 0}},
      {"aclnnMaxUnpool3d", SampleUnpool, OracleUnpool, kDenseOut},
      {"aclnnMaxUnpool3dBackward", SampleUnpool, OracleUnpool, kDenseOut},
      {"aclnnScatterList", SampleScatterList, OracleScatterList, {.ulps = 0}},
  };
  return subjects;
}

}  // namespace anyacl::harness
