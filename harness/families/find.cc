// SPDX-License-Identifier: Apache-2.0
// Copyright The AnyACL Authors
//
// Results of a size that the data decide; the shapes that tensors are given are tested in tests/plan.
#include <algorithm>
#include <cmath>
#include <limits>
#include <numeric>
#include <string_view>

#include "harness/family.h"

namespace anyacl::harness {
namespace {

constexpr Real kNan = std::numeric_limits<Real>::quiet_NaN();

Values Few(DType t) { return t == DType::kBool ? Whole(0, 1) : Whole(0, 3); }

// ---- Nonzero --------------------------------------------------------------------------------------------------------

void SampleNonzero(Calls& calls) {
  const bool by_axis = std::string_view(calls.op().contract.op()) == "aclnnNonzeroV2";
  const auto add = [&](DType t, const Dims& dims, Values values) {
    const int64_t n = Numel(dims), rank = dims.rank();
    calls.Add({In(t, dims, values), Out(DType::kI64, by_axis ? Dims{rank, n} : Dims{n, rank}).Layout("dense")});
  };
  for (DType t : calls.TypesOf("self")) {
    add(t, {3, 5}, Few(t));
    add(t, {2, 3, 4}, Whole(0, 0));
    add(t, {7}, Whole(1, 1));
    add(t, {}, Whole(1, 1));
    add(t, {0, 3}, {});
    add(t, {2, 2}, IsFloating(t) ? Given({0.5L, kNan, 0, -0.0L}) : Few(t));
  }
  add(DType::kC64, {3}, Given({Number(0, 1), Number(0, 0), Number(kNan, 0)}));
  add(DType::kBool, {300, 250}, Whole(0, 1));
}

void OracleNonzero(HostCall& call) {
  const Host& self = call.In("self");
  Host& out = call.Out("out");
  Checked<Checked<int64_t>> found;
  for (int64_t i = 0; i < self.size(); ++i) {
    if (Rounded(DType::kBool, self[i]) != Number(0)) found.push_back(self.Position(i));
  }
  out.values.clear();
  if (std::string_view(call.name()) == "aclnnNonzeroV2") {
    for (int axis = 0; axis < self.dims.rank(); ++axis) {
      for (const auto& at : found) out.values.push_back(static_cast<Real>(at[axis]));
    }
  } else {
    for (const auto& at : found) {
      for (int64_t index : at) out.values.push_back(static_cast<Real>(index));
    }
  }
}

// ---- Unique ---------------------------------------------------------------------------------------------------------

void SampleUnique(Calls& calls) {
  const std::string_view op = calls.op().contract.op();
  const bool dim = op == "aclnnUniqueDim", runs = op == "aclnnUniqueConsecutive", second = op == "aclnnUnique2";
  const auto add = [&](DType t, const Dims& dims, int64_t axis, bool inverse, bool counts, Values values, DType index = DType::kI64) {
    const bool flat = axis == 1000;
    const int64_t rank = dims.rank();
    const int64_t slices = flat ? Numel(dims) : dims[static_cast<int>(axis < 0 ? axis + rank : axis)];
    const TestArg value_out = Out(t, flat ? Dims{slices} : dims).Layout("dense");
    const TestArg count_out = Out(index, {counts || dim ? slices : 0}).Layout("dense");
    const TestArg inverse_out = Out(index, !inverse && !counts ? Dims{0} : flat ? dims : Dims{slices});
    std::vector<TestArg> args = {In(t, dims, values)};
    if (!runs) args.push_back(Flag(true));
    args.push_back(Flag(inverse));
    if (runs || second) args.push_back(Flag(counts));
    if (runs || dim) args.push_back(Int(axis));
    args.push_back(value_out);
    args.push_back(inverse_out);
    if (op != "aclnnUnique") args.push_back(count_out);
    calls.Add(std::move(args));
  };
  for (DType t : calls.TypesOf("self")) {
    for (const auto& [inverse, counts] : {std::pair(true, true), {false, false}, {true, false}, {false, true}}) {
      if (!dim) {
        add(t, {4, 5}, 1000, inverse, counts, Few(t));
        add(t, {0}, 1000, inverse, counts, {});
        if (IsFloating(t)) add(t, {9}, 1000, inverse, counts, Given({3, kNan, 0, -0.0L, 1, 3, kNan, 0, 1}));
      }
      if (!dim && !runs) continue;
      const Values bits = Whole(0, 1);
      add(t, {9, 2}, 0, inverse, counts, bits);
      add(t, {2, 9}, -1, inverse, counts, bits);
      add(t, {2, 8, 2}, 1, inverse, counts, bits);
      add(t, {6}, 0, inverse, counts, Few(t));
      if (IsFloating(t)) add(t, {4, 2}, 0, inverse, counts, Given({1, kNan, 1, 2, 1, kNan, 1, 2}));
    }
    if (runs) add(t, {30}, 1000, true, true, Few(t), DType::kI32);
  }
  if (!dim) add(DType::kF32, {}, 1000, true, true, {});
  if (!dim) add(DType::kF32, {40000}, 1000, true, true, Whole(0, 500));
}

void OracleUnique(HostCall& call) {
  const std::string_view op = call.name();
  const bool runs = op == "aclnnUniqueConsecutive";
  const Host& self = call.In("self");
  Host &values = call.Out("valueOut"), &inverse = call.Out("inverseOut");
  Host* const counts = call.HasArg("countsOut") ? &call.Out("countsOut") : nullptr;
  const bool flat = !call.HasArg("dim") || call.Int("dim") == 1000;
  const int rank = self.dims.rank();
  const int axis = flat ? 0 : static_cast<int>(call.Int("dim") < 0 ? call.Int("dim") + rank : call.Int("dim"));
  // The elements of each slice, row-major.
  Checked<Checked<int64_t>> slices(flat ? self.size() : self.dims[axis]);
  for (int64_t i = 0; i < self.size(); ++i) slices[flat ? i : self.Position(i)[axis]].push_back(i);
  const auto equal = [&](size_t a, size_t b) {
    for (size_t i = 0; i < slices[a].size(); ++i) {
      if (!(self[slices[a][i]] == self[slices[b][i]])) return false;
    }
    return true;
  };
  const auto before = [&](size_t a, size_t b) {
    for (size_t i = 0; i < slices[a].size(); ++i) {
      const Real x = self.real(slices[a][i]), y = self.real(slices[b][i]);
      if (std::isnan(x) && std::isnan(y)) continue;
      if (std::isnan(y)) return true;
      if (std::isnan(x)) return false;
      if (x != y) return x < y;
    }
    return false;
  };
  Checked<size_t> order(slices.size());
  std::iota(order.begin(), order.end(), size_t{0});
  if (!runs) std::stable_sort(order.begin(), order.end(), before);
  Checked<size_t> first;
  Checked<Number> count;
  Checked<Number> group(slices.size());
  for (size_t j = 0; j < order.size(); ++j) {
    if (j == 0 || !equal(order[j - 1], order[j])) {
      first.push_back(order[j]);
      count.push_back(0);
    }
    count.back() += 1;
    group[order[j]] = static_cast<Real>(first.size() - 1);
  }
  // Row-major over the shape of the values.
  values.values.clear();
  const size_t inner = [&] {
    size_t size = 1;
    for (int i = axis + 1; !flat && i < rank; ++i) size *= static_cast<size_t>(self.dims[i]);
    return size;
  }();
  const size_t per_slice = slices.empty() ? 0 : slices[0].size();
  for (size_t outer = 0; outer * inner < per_slice; ++outer) {
    for (size_t one : first) {
      for (size_t i = 0; i < inner; ++i) values.values.push_back(self[slices[one][outer * inner + i]]);
    }
  }
  inverse.values.clear();
  if (call.Flag("returnInverse")) inverse.values = group;
  if (!counts) return;
  counts->values.clear();
  if (!call.HasArg("returnCounts") || call.Flag("returnCounts")) counts->values = count;
}

}  // namespace

std::span<const Subject> FindSubjects() {
  static constexpr Limits kPartial = {.ulps = 0, .partial = true};
  static const Subject subjects[] = {
      {"aclnnNonzero", SampleNonzero, OracleNonzero, kPartial},
      {"aclnnNonzeroV2", SampleNonzero, OracleNonzero, kPartial},
      {"aclnnUnique", SampleUnique, OracleUnique, kPartial},
      {"aclnnUnique2", SampleUnique, OracleUnique, kPartial},
      {"aclnnUniqueDim", SampleUnique, OracleUnique, kPartial},
      {"aclnnUniqueConsecutive", SampleUnique, OracleUnique, kPartial},
  };
  return subjects;
}

}  // namespace anyacl::harness
