// SPDX-License-Identifier: Apache-2.0
// Copyright The AnyACL Authors
//
// Grouped products by their definition: which rows belong to which weight is worked out first, element by element.
#include <algorithm>
#include <cmath>
#include <string_view>

#include "harness/family.h"

namespace anyacl::harness {
namespace {

constexpr DType F32 = DType::kF32, F16 = DType::kF16, BF16 = DType::kBF16, I64 = DType::kI64;

int VersionOf(const Operator& op) {
  const std::string_view name = op.contract.op();
  return name.back() == 'l' ? 1 : name.back() - '0';
}

// The parts of a call that the versions put in different places.
struct Grouped {
  std::vector<TestArg> x, w, y;
  std::vector<TestArg> bias = {};
  Checked<int64_t> list = {};
  int64_t split = 0, type = -1, list_type = 0;
  bool has_list = false;
};

TestArg ListOrNull(const std::vector<TestArg>& tensors) { return tensors.empty() ? Null() : List(tensors); }

TestArg GroupListOf(const Grouped& g, int version) {
  if (!g.has_list) return Null();
  if (version <= 2) return Ints(g.list);
  Checked<Number> numbers;
  for (const int64_t number : g.list) numbers.push_back(static_cast<Real>(number));
  const int64_t count = static_cast<int64_t>(numbers.size());
  return In(I64, g.list_type == 2 ? Dims{count / 2, 2} : Dims{count}, Given(numbers));
}

void AddCall(Calls& calls, const Grouped& g) {
  const int version = VersionOf(calls.op());
  std::vector<TestArg> args = {List(g.x), List(g.w), ListOrNull(g.bias), Null(), Null(), Null(), Null()};
  if (version >= 4) args.push_back(Null());
  args.push_back(GroupListOf(g, version));
  if (version >= 4) args.insert(args.end(), {Null(), Null(), Null()});
  args.push_back(Int(g.split));
  if (version >= 2) args.push_back(Int(g.type));
  if (version >= 4) args.insert(args.end(), {Int(g.list_type), Int(0)});
  if (version == 5) args.push_back(Ints({0}));
  args.push_back(List(g.y));
  if (version >= 4) args.insert(args.end(), {Null(), Null()});
  calls.Add(std::move(args));
}

void SampleGrouped(Calls& calls) {
  const int version = VersionOf(calls.op());
  for (DType t : {F32, F16, BF16}) {
    if (version == 1 && t == F32) continue;
    const DType bias = t == F16 ? F16 : F32;
    const auto in = [&](const Dims& dims) { return In(t, dims); };
    // No groups: a product per entry.
    AddCall(calls, {.x = {in({2, 5}), in({3, 2, 7}), in({0, 4})}, .w = {in({5, 4}), in({7, 3}), in({4, 2})},
                    .y = {Out(t, {2, 4}), Out(t, {3, 2, 3}), Out(t, {0, 2})}});
    AddCall(calls, {.x = {in({1, 40})}, .w = {in({40, 70})}, .y = {Out(t, {1, 70})}, .bias = {In(bias, {70})}, .split = 1});
    AddCall(calls, {.x = {in({3, 0}), in({2, 3})}, .w = {in({0, 4}), in({3, 2})}, .y = {Out(t, {3, 4}), Out(t, {2, 2})},
                    .bias = {In(bias, {4}), In(bias, {2})}});
    // Rows of several x in one y.
    AddCall(calls, {.x = {in({2, 5}), in({3, 4})}, .w = {in({5, 3}), in({4, 3})}, .y = {Out(t, {5, 3})}, .bias = {In(bias, {3}), In(bias, {3})},
                    .split = 3, .type = 0});
    // Rows of one x.
    AddCall(calls, {.x = {in({9, 5})}, .w = {in({5, 3}), in({5, 3}), in({5, 3})}, .y = {Out(t, {9, 3})},
                    .bias = {In(bias, {3}), In(bias, {3}), In(bias, {3})}, .list = {2, 2, 7}, .split = 2, .type = 0, .has_list = true});
    if (version <= 2) {
      AddCall(calls, {.x = {in({7, 5})}, .w = {in({5, 3}), in({5, 2}), in({5, 3})}, .y = {Out(t, {2, 3}), Out(t, {0, 2}), Out(t, {5, 3})},
                      .list = {2, 2, 7}, .type = 0, .has_list = true});
    }
    if (version == 1) continue;
    AddCall(calls, {.x = {in({9, 5})}, .w = {in({3, 5, 4})}, .y = {Out(t, {9, 4})}, .bias = {In(bias, {3, 4})}, .list = {4, 4, 9}, .split = 3, .type = 0,
                    .has_list = true});
    AddCall(calls, {.x = {in({9, 0})}, .w = {in({2, 0, 4})}, .y = {Out(t, {9, 4})}, .list = {4, 8}, .split = 2, .type = 0, .has_list = true});
    AddCall(calls, {.x = {in({6, 9})}, .w = {in({9, 4})}, .y = {Out(t, {3, 6, 4})}, .list = {4, 4, 8}, .split = 2, .type = 2, .has_list = true});
    if (version < 3) continue;
    AddCall(calls, {.x = {in({9, 5})}, .w = {in({3, 5, 4})}, .y = {Out(t, {9, 4})}, .list = {-4, 5, 99}, .split = 3, .type = 0, .has_list = true});
    if (version < 4) continue;
    AddCall(calls, {.x = {in({25, 33})}, .w = {in({3, 33, 40})}, .y = {Out(t, {25, 40})}, .list = {14, 0, 7}, .split = 3, .type = 0,
                    .list_type = 1, .has_list = true});
    AddCall(calls, {.x = {in({6, 9})}, .w = {in({9, 4})}, .y = {Out(t, {3, 6, 4})}, .list = {3, 0, 5}, .split = 2, .type = 2, .list_type = 1, .has_list = true});
    AddCall(calls, {.x = {in({9, 5})}, .w = {in({4, 5, 3})}, .y = {Out(t, {9, 3})}, .bias = {In(bias, {4, 3})}, .list = {2, 3, 0, 4, 3, 0, 1, 5}, .split = 3,
                    .type = 0, .list_type = 2, .has_list = true});
  }
}

// (group, begin, end) of a list, cut to `limit`.
struct Range {
  int64_t group, begin, end;
};
std::vector<Range> RangesOf(const Checked<int64_t>& list, int64_t kind, int64_t limit) {
  std::vector<Range> ranges;
  int64_t at = 0;
  if (kind == 2) {
    for (size_t i = 0; i + 1 < list.size() && list[i + 1] > 0; i += 2) {
      const int64_t end = std::min(limit, at + list[i + 1]);
      ranges.push_back({list[i], at, end});
      at = end;
    }
    return ranges;
  }
  for (size_t i = 0; i < list.size(); ++i) {
    // What is below the begin or above the limit is cut; a group begins where the one before says that it ends.
    const int64_t begin = kind == 0 ? (i == 0 ? 0 : std::clamp<int64_t>(list[i - 1], 0, limit)) : at;
    const int64_t end = kind == 0 ? std::clamp<int64_t>(list[i], 0, limit) : std::min(limit, at + std::max<int64_t>(list[i], 0));
    ranges.push_back({static_cast<int64_t>(i), begin, std::max(begin, end)});
    at = end;
  }
  return ranges;
}

Checked<int64_t> NumbersOf(HostCall& call) {
  if (!call.Has("groupListOptional")) return {};
  if (call.KindOf("groupListOptional") == contract::ArgKind::kIntArray) return call.Ints("groupListOptional");
  Checked<int64_t> numbers;
  for (const Number& number : call.In("groupListOptional").values) numbers.push_back(static_cast<int64_t>(number.real()));
  return numbers;
}

// y[to_row, :] = x[row, begin..end of k] @ w (+ bias), w of group g.
void PutRow(HostCall& call, const Host& x, int64_t row, int64_t begin, int64_t end, int64_t g, Host& y, int64_t to_row) {
  const bool many = call.Count("weight") > 1;
  const Host& w = call.In("weight", many ? static_cast<int>(g) : 0);
  const int64_t k = x.dims[x.dims.rank() - 1], n = y.dims[y.dims.rank() - 1];
  const int64_t first = w.dims.rank() == 3 ? g * k * n : 0;
  for (int64_t column = 0; column < n; ++column) {
    Real sum = 0, size = 0;
    for (int64_t i = begin; i < end; ++i) {
      const Real term = x.real(row * k + i) * w.real(first + i * n + column);
      sum += term;
      size += std::fabs(term);
    }
    if (call.Has("biasOptional")) {
      const Host& bias = call.In("biasOptional", many ? static_cast<int>(g) : 0);
      const Real more = bias.real((bias.dims.rank() == 2 ? g * n : 0) + column);
      sum += more;
      size += std::fabs(more);
    }
    y[to_row * n + column] = sum;
    y.slack[to_row * n + column] = size * 0x1p-24L * static_cast<Real>(end - begin + 3);
  }
}

void OracleGrouped(HostCall& call) {
  const char* const out = call.HasArg("y") ? "y" : "out";
  const int outputs = call.Count(out), entries = call.Count("x");
  for (int i = 0; i < outputs; ++i) call.Out(out, i).slack.assign(call.Out(out, i).size(), 0);
  const int64_t type = call.HasArg("groupType") ? call.Int("groupType") : call.Has("groupListOptional") || entries > outputs ? 0 : -1;
  const int64_t kind = call.HasArg("groupListType") ? call.Int("groupListType") : 0;
  if (type == -1) {
    for (int i = 0; i < entries; ++i) {
      const Host& x = call.In("x", i);
      const int64_t k = x.dims[x.dims.rank() - 1], n = call.Out(out, i).dims[x.dims.rank() - 1];
      for (int64_t row = 0; row < call.Out(out, i).size() / n; ++row) PutRow(call, x, row, 0, k, i, call.Out(out, i), row);
    }
    return;
  }
  if (entries > 1) {
    int64_t to = 0;
    for (int i = 0; i < entries; ++i) {
      for (int64_t row = 0; row < call.In("x", i).dims[0]; ++row) PutRow(call, call.In("x", i), row, 0, call.In("x", i).dims[1], i, call.Out(out), to++);
    }
    return;
  }
  const Host& x = call.In("x");
  if (type == 2) {
    for (const Range& range : RangesOf(NumbersOf(call), kind, x.dims[1])) {
      for (int64_t row = 0; row < x.dims[0]; ++row) {
        Host& y = call.Out(out);
        const int64_t n = y.dims[2], to = range.group * x.dims[0] + row;
        for (int64_t column = 0; column < n; ++column) {
          Real sum = 0, size = 0;
          for (int64_t i = range.begin; i < range.end; ++i) {
            const Real term = x.real(row * x.dims[1] + i) * call.In("weight").real(i * n + column);
            sum += term;
            size += std::fabs(term);
          }
          y[to * n + column] = sum;
          y.slack[to * n + column] = size * 0x1p-24L * static_cast<Real>(range.end - range.begin + 2);
        }
      }
    }
    return;
  }
  int64_t last = 0;
  for (const Range& range : RangesOf(NumbersOf(call), kind, x.dims[0])) {
    const int to = outputs > 1 ? static_cast<int>(range.group) : 0;
    for (int64_t row = range.begin; row < range.end; ++row) PutRow(call, x, row, 0, x.dims[1], range.group, call.Out(out, to), outputs > 1 ? row - range.begin : row);
    last = std::max(last, range.end);
  }
  if (outputs > 1) return;
  Host& y = call.Out(out);  // rows behind the last group stay as they were
  y.values.resize(last * y.dims[1]);
  y.slack.resize(y.values.size());
}

}  // namespace

std::span<const Subject> GroupedSubjects() {
  static const Subject subjects[] = {
      {"aclnnGroupedMatmul", SampleGrouped, OracleGrouped, {.partial = true}},   {"aclnnGroupedMatmulV2", SampleGrouped, OracleGrouped, {.partial = true}},
      {"aclnnGroupedMatmulV3", SampleGrouped, OracleGrouped, {.partial = true}}, {"aclnnGroupedMatmulV4", SampleGrouped, OracleGrouped, {.partial = true}},
      {"aclnnGroupedMatmulV5", SampleGrouped, OracleGrouped, {.partial = true}},
  };
  return subjects;
}

}  // namespace anyacl::harness
