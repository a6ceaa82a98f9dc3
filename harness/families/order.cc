// SPDX-License-Identifier: Apache-2.0
// Copyright The AnyACL Authors
//
// Running results and elements in their order, row by row with the standard library's stable sort.
#include <algorithm>
#include <cmath>
#include <limits>
#include <string_view>

#include "harness/family.h"

namespace anyacl::harness {
namespace {

constexpr Real kInf = std::numeric_limits<Real>::infinity();
constexpr Real kNan = std::numeric_limits<Real>::quiet_NaN();

bool IsExact(DType t) { return IsInteger(t) || t == DType::kBool; }

// Small enough that equal ones occur, and none is lost in any dtype.
Values Numbers(DType t) {
  if (t == DType::kBool) return Whole(0, 1);
  const bool is_unsigned = t == DType::kU8 || t == DType::kU16 || t == DType::kU32 || t == DType::kU64;
  return is_unsigned ? Whole(0, 20) : Whole(-20, 20);
}

const Checked<Number> kMixed = {2, 1, 2, kNan, 1, -0.0L, 0, kInf, -kInf, kNan, 3, -0.0L};

// Lists of the row-major indices of each row along an axis.
Checked<Checked<int64_t>> RowsOf(const Host& t, int64_t axis) {
  const int rank = t.dims.rank();
  if (rank == 0) return {{0}};
  if (axis < 0) axis += rank;
  Checked<Checked<int64_t>> rows;
  for (int64_t i = 0; i < t.size(); ++i) {
    Checked<int64_t> at = t.Position(i);
    if (at[axis] != 0) continue;
    Checked<int64_t>& row = rows.emplace_back();
    for (int64_t j = 0; j < t.dims[static_cast<int>(axis)]; ++j) {
      at[axis] = j;
      row.push_back(t.Index(at));
    }
  }
  return rows;
}

// ---- Scans ----------------------------------------------------------------------------------------------------------

struct ScanCase {
  Dims dims;
  int64_t axis;
};
const ScanCase kScanCases[] = {{{3, 4}, 1}, {{3, 4}, 0}, {{2, 3, 5}, -2}, {{}, 0}, {{}, -1}, {{1}, 0}, {{0, 3}, 1}, {{3, 0}, 1}};

void SampleCumsum(Calls& calls) {
  const auto add = [&](DType self, DType out, const Dims& dims, int64_t axis, Values values) {
    calls.Add({In(self, dims, values), Int(axis), Int(static_cast<int64_t>(out)), Out(out, dims)});
  };
  for (DType t : calls.TypesOf("self")) {
    const DType out = t == DType::kBool ? DType::kI64 : t;
    for (const ScanCase& c : kScanCases) add(t, out, c.dims, c.axis, IsExact(t) ? Numbers(t) : Between(-2, 2));
  }
  for (DType out : calls.TypesOf("out")) {
    for (DType t : {DType::kF32, DType::kI32, DType::kBool}) add(t, out, {2, 5}, 1, t == DType::kBool ? Whole(0, 1) : Between(0, 20));
  }
  add(DType::kF32, DType::kF32, {40000}, 0, Between(-1, 1));
  add(DType::kF32, DType::kF32, {40, 900}, 0, Between(-1, 1));
  add(DType::kF32, DType::kF32, {12}, 0, Given(kMixed));
  add(DType::kF32, DType::kI32, {2}, 0, Given({1.9L, 1.9L}));
  calls.Add({In(DType::kF32, {4, 5}), Int(1), Int(0), Out(DType::kF32, {4, 5})}).same = {{3, 0}};
}

void SampleCumsumV2(Calls& calls) {
  for (DType t : calls.TypesOf("self")) {
    for (const ScanCase& c : kScanCases) {
      for (int flags = 0; flags < 4; ++flags) {
        calls.Add({In(t, c.dims, IsExact(t) ? Numbers(t) : Between(-2, 2)), Int(c.axis), Flag(flags & 1), Flag(flags & 2), Out(t, c.dims)});
      }
    }
  }
}

void SampleCumprod(Calls& calls) {
  const auto values = [](DType t) { return t == DType::kBool ? Whole(0, 1) : IsExact(t) ? Whole(1, 3) : Between(-1.4L, 1.4L); };
  const bool in_place = std::string_view(calls.op().contract.op()) == "aclnnInplaceCumprod";
  const auto add = [&](DType t, DType out, const Dims& dims, Values v, TestArg dim, bool named) -> TestCall& {
    if (in_place) return calls.Add({In(t, dims, v), std::move(dim)});
    return calls.Add({In(t, dims, v), std::move(dim), Int(named ? static_cast<int64_t>(out) : -1), Out(out, dims)});
  };
  for (DType t : calls.TypesOf("input")) {
    const DType out = t == DType::kBool ? DType::kI64 : t;
    for (const ScanCase& c : kScanCases) add(t, out, c.dims, values(t), Num(DType::kI64, static_cast<Real>(c.axis)), true);
    if (t == out) add(t, t, {2, 5}, values(t), Num(DType::kI32, 1), false);
  }
  add(DType::kF32, DType::kF32, {5}, Given({2, 0, 3, kInf, 1}), Num(DType::kI64, -1), true);
  add(DType::kI8, DType::kI8, {9}, Whole(2, 7), Num(DType::kI64, -1), true);
  add(DType::kF32, DType::kF32, {33000}, Between(0.9L, 1.1L), Num(DType::kI64, 0), true);
  if (in_place) return;
  for (DType out : calls.TypesOf("out")) add(DType::kF32, out, {2, 4}, Between(1, 3), Num(DType::kI64, 1), true);
}

// The low bits of a whole number, as a dtype takes them.
Real WrappedTo(DType dtype, uint64_t bits) {
  switch (dtype) {
    case DType::kI8: return static_cast<int8_t>(bits);
    case DType::kU8: return static_cast<uint8_t>(bits);
    case DType::kI16: return static_cast<int16_t>(bits);
    case DType::kU16: return static_cast<uint16_t>(bits);
    case DType::kI32: return static_cast<int32_t>(bits);
    case DType::kU32: return static_cast<uint32_t>(bits);
    case DType::kI64: return static_cast<Real>(static_cast<int64_t>(bits));
    default: return static_cast<Real>(bits);
  }
}

void ScanOracle(HostCall& call, const char* in_name, const char* out_name, int64_t axis, bool product) {
  const Host& in = call.In(in_name);
  Host& out = call.Out(out_name);
  const bool exclusive = call.HasArg("exclusive") && call.Flag("exclusive");
  const bool reverse = call.HasArg("reverse") && call.Flag("reverse");
  const Real epsilon = std::ldexp(Real{1}, -52);
  out.slack.assign(in.size(), 0);
  for (Checked<int64_t> row : RowsOf(in, axis)) {
    if (reverse) std::reverse(row.begin(), row.end());
    Number running = product ? 1 : 0;
    uint64_t wrapped = product ? 1 : 0;
    Real size = 0, count = 0;
    for (int64_t i : row) {
      const Number x = in.dtype == out.dtype ? in[i] : Rounded(out.dtype, in[i]);
      const Number before = running;
      const uint64_t wrapped_before = wrapped;
      if (IsExact(out.dtype)) {
        const auto bits = out.dtype == DType::kU64 ? static_cast<uint64_t>(x.real()) : static_cast<uint64_t>(static_cast<int64_t>(x.real()));
        wrapped = product ? wrapped * bits : wrapped + bits;
      }
      running = product ? running * x : running + x;
      size = product ? std::abs(running) : size + std::abs(x);
      if (IsExact(out.dtype)) out[i] = static_cast<Real>(exclusive ? wrapped_before : wrapped);
      else out[i] = exclusive ? before : running;
      const Real slack = 4 * (++count + 1) * epsilon * size;
      if (std::isfinite(slack) && !IsExact(out.dtype)) out.slack[i] = slack;
    }
  }
  if (IsExact(out.dtype)) {
    for (Number& x : out.values) x = WrappedTo(out.dtype, static_cast<uint64_t>(x.real()));
  }
}

void OracleCumsum(HostCall& call) { ScanOracle(call, "self", "out", call.Int("dim"), false); }
void OracleCumprod(HostCall& call) {
  ScanOracle(call, "input", call.HasArg("out") ? "out" : "input", static_cast<int64_t>(call.Scalar("dim").real()), true);
}

void SampleRunning(Calls& calls) {
  for (DType t : calls.TypesOf("self")) {
    for (const ScanCase& c : kScanCases) {
      for (DType index : {DType::kI64, DType::kI32}) {
        calls.Add({In(t, c.dims, Numbers(t)), Int(c.axis), Out(t, c.dims), Out(index, c.dims)});
      }
    }
    if (IsFloating(t)) calls.Add({In(t, {12}, Given(kMixed)), Int(0), Out(t, {12}), Out(DType::kI64, {12})});
  }
  for (DType out : calls.TypesOf("valuesOut")) {
    calls.Add({In(DType::kBool, {3, 4}, Whole(0, 1)), Int(0), Out(out, {3, 4}), Out(DType::kI64, {3, 4})});
  }
  calls.Add({In(DType::kF32, {6}, Given({3, 1, 1, 2, kNan, 0})), Int(0), Out(DType::kF32, {6}), Out(DType::kI64, {6})});
  calls.Add({In(DType::kF32, {4}, Given({kNan, 1, kNan, 2})), Int(0), Out(DType::kF32, {4}), Out(DType::kI64, {4})});
}

void RunningOracle(HostCall& call, bool largest) {
  const Host& self = call.In("self");
  Host &values = call.Out("valuesOut"), &places = call.Out("indicesOut");
  for (const Checked<int64_t>& row : RowsOf(self, call.Int("dim"))) {
    size_t best = 0;
    for (size_t j = 0; j < row.size(); ++j) {
      const Real x = self.real(row[j]), y = self.real(row[best]);
      if (std::isnan(x) || (!std::isnan(y) && (largest ? x >= y : x <= y))) best = j;
      values[row[j]] = self[row[best]];
      places[row[j]] = static_cast<Real>(best);
    }
  }
}
void OracleCummax(HostCall& call) { RunningOracle(call, true); }
void OracleCummin(HostCall& call) { RunningOracle(call, false); }

// ---- Order ----------------------------------------------------------------------------------------------------------

// Places of a row's elements in stable order.
Checked<size_t> Sorted(const Host& t, const Checked<int64_t>& row, bool descending) {
  Checked<size_t> order(row.size());
  for (size_t j = 0; j < row.size(); ++j) order[j] = j;
  std::stable_sort(order.begin(), order.end(), [&](size_t a, size_t b) {
    const Real x = t.real(row[descending ? b : a]), y = t.real(row[descending ? a : b]);
    return std::isnan(y) ? !std::isnan(x) : x < y;
  });
  return order;
}

void SampleSort(Calls& calls) {
  const auto add = [&](DType t, DType out, const Dims& dims, int64_t axis, bool descending, Values values) {
    calls.Add({In(t, dims, values), Flag(descending), Int(axis), Flag(descending), Out(out, dims), Out(DType::kI64, dims)});
  };
  for (DType t : calls.TypesOf("self")) {
    for (bool descending : {false, true}) {
      for (const ScanCase& c : kScanCases) add(t, t, c.dims, c.axis, descending, Numbers(t));
      add(t, t, {3, 700}, 1, descending, t == DType::kF32 ? Between(-1000, 1000) : Hostile());
      if (IsFloating(t)) add(t, t, {12}, 0, descending, Given(kMixed));
    }
  }
  for (DType out : calls.TypesOf("valuesOut")) add(DType::kU8, out, {4, 6}, 0, false, out == DType::kBool ? Whole(0, 1) : Whole(0, 100));
  add(DType::kF32, DType::kF32, {35000}, 0, false, Between(-3, 3));
  add(DType::kI64, DType::kI64, {900, 40}, 0, true, Whole(-100000, 100000));
  calls.Add({In(DType::kF32, {4, 5}), Flag(true), Int(1), Flag(false), Out(DType::kF32, {4, 5}), Out(DType::kI64, {4, 5})}).same = {{4, 0}};
}

void OracleSort(HostCall& call) {
  const Host& self = call.In("self");
  Host* const values = call.HasArg("valuesOut") ? &call.Out("valuesOut") : nullptr;
  Host& places = call.Out(values ? "indicesOut" : "out");
  for (const Checked<int64_t>& row : RowsOf(self, call.Int("dim"))) {
    const Checked<size_t> order = Sorted(self, row, call.Flag("descending"));
    for (size_t j = 0; j < row.size(); ++j) {
      if (values) (*values)[row[j]] = self[row[order[j]]];
      places[row[j]] = static_cast<Real>(order[j]);
    }
  }
}

void SampleArgsort(Calls& calls) {
  for (DType t : calls.TypesOf("self")) {
    for (bool descending : {false, true}) {
      for (const ScanCase& c : kScanCases) calls.Add({In(t, c.dims, Numbers(t)), Int(c.axis), Flag(descending), Out(DType::kI64, c.dims)});
      if (IsFloating(t)) calls.Add({In(t, {12}, Given(kMixed)), Int(0), Flag(descending), Out(DType::kI64, {12})});
    }
  }
  calls.Add({In(DType::kF32, {2, 40000}), Int(1), Flag(false), Out(DType::kI64, {2, 40000})});
}

void SampleTopk(Calls& calls) {
  const auto add = [&](DType t, const Dims& dims, int64_t k, int64_t axis, bool largest, const Dims& out, Values values) {
    calls.Add({In(t, dims, values), Int(k), Int(axis), Flag(largest), Flag(largest), Out(t, out), Out(DType::kI64, out)});
  };
  for (DType t : calls.TypesOf("self")) {
    for (bool largest : {true, false}) {
      add(t, {3, 7}, 3, 1, largest, {3, 3}, Numbers(t));
      add(t, {7, 3}, 7, 0, largest, {7, 3}, Numbers(t));
      add(t, {2, 9, 3}, 2, -2, largest, {2, 2, 3}, Numbers(t));
      add(t, {}, 1, 0, largest, {}, Numbers(t));
      add(t, {}, 1, -1, largest, {1}, Numbers(t));
      add(t, {4}, 0, 0, largest, {0}, Numbers(t));
      add(t, {0, 4}, 2, 1, largest, {0, 2}, Numbers(t));
      add(t, {2, 900}, 20, 1, largest, {2, 20}, Numbers(t));
      add(t, {2, 900}, 600, 1, largest, {2, 600}, Numbers(t));
      if (IsFloating(t)) add(t, {12}, 5, 0, largest, {5}, Given(kMixed));
    }
  }
  add(DType::kF32, {4, 20000}, 8, 1, true, {4, 8}, Between(-1, 1));
  add(DType::kF32, {4}, 2, 0, true, {2}, Given({4, 9, 9, 1}));
}

void OracleTopk(HostCall& call) {
  const Host& self = call.In("self");
  Host &values = call.Out("valuesOut"), &places = call.Out("indicesOut");
  if (values.size() == 0) return;
  const auto from = RowsOf(self, call.Int("dim"));
  const auto to = RowsOf(values, values.size() == 1 ? 0 : call.Int("dim"));
  for (size_t r = 0; r < from.size(); ++r) {
    const Checked<size_t> order = Sorted(self, from[r], call.Flag("largest"));
    for (size_t j = 0; j < to[r].size(); ++j) {
      values[to[r][j]] = self[from[r][order[j]]];
      places[to[r][j]] = static_cast<Real>(order[j]);
    }
  }
}

void SampleKthvalue(Calls& calls) {
  const auto add = [&](DType t, const Dims& dims, int64_t k, int64_t axis, bool keep, const Dims& out, Values values) {
    calls.Add({In(t, dims, values), Int(k), Int(axis), Flag(keep), Out(t, out), Out(DType::kI64, out)});
  };
  for (DType t : calls.TypesOf("self")) {
    add(t, {3, 7}, 3, 1, false, {3}, Numbers(t));
    add(t, {7, 3}, 7, 0, true, {1, 3}, Numbers(t));
    add(t, {2, 9, 3}, 1, -2, false, {2, 3}, Numbers(t));
    add(t, {}, 1, 0, false, {}, Numbers(t));
    add(t, {5}, 2, 0, false, {1}, Numbers(t));
    add(t, {0, 4}, 2, 1, false, {0}, Numbers(t));
    if (IsFloating(t)) {
      for (int64_t k = 1; k <= 12; ++k) add(t, {12}, k, 0, false, {}, Given(kMixed));
    }
  }
  add(DType::kF32, {20, 2000}, 700, 1, false, {20}, Between(-1, 1));
}

void OracleKthvalue(HostCall& call) {
  const Host& self = call.In("self");
  Host &values = call.Out("valuesOut"), &places = call.Out("indicesOut");
  const auto rows = self.size() == 0 ? Checked<Checked<int64_t>>() : RowsOf(self, call.Int("dim"));
  for (size_t r = 0; r < rows.size(); ++r) {
    const size_t place = Sorted(self, rows[r], false)[call.Int("k") - 1];
    values[r] = self[rows[r][place]];
    places[r] = static_cast<Real>(place);
  }
}

Checked<Number> WithoutNans() {
  Checked<Number> numbers;
  for (const Number& x : kMixed) {
    if (!std::isnan(x.real())) numbers.push_back(x);
  }
  return numbers;
}

void SampleMedian(Calls& calls) {
  const auto add = [&](DType t, const Dims& dims, const Dims& out, Values values) { calls.Add({In(t, dims, values), Out(t, out)}); };
  for (DType t : calls.TypesOf("self")) {
    add(t, {3, 5}, {}, Numbers(t));
    add(t, {4, 3}, {1}, Numbers(t));
    add(t, {}, {}, Numbers(t));
    add(t, {0, 3}, {}, Numbers(t));
    if (!IsFloating(t)) continue;
    add(t, {12}, {}, Given(kMixed));
    add(t, {10}, {}, Given(WithoutNans()));
    add(t, {3}, {}, Given({kNan, kNan, kNan}));
  }
  add(DType::kF32, {40000}, {}, Between(-1, 1));
  add(DType::kF32, {3}, {0}, {});
}

// Place of the median in a row; NaN first if there is one that counts.
size_t MedianOf(const Host& t, const Checked<int64_t>& row, bool skip_nan) {
  size_t numbers = 0;
  for (size_t j = 0; j < row.size(); ++j) {
    if (!std::isnan(t.real(row[j]))) ++numbers;
    else if (!skip_nan) return j;
  }
  return Sorted(t, row, false)[numbers == 0 ? 0 : (numbers - 1) / 2];
}

void MedianOracle(HostCall& call, const char* out_name, bool skip_nan) {
  const Host& self = call.In("self");
  Host& out = call.Out(out_name);
  if (out.size() == 0) return;
  if (self.size() == 0) {
    out[0] = IsFloating(self.dtype)        ? kNan
             : self.dtype == DType::kI32 ? -std::ldexp(Real{1}, 31)
             : self.dtype == DType::kI64 ? -std::ldexp(Real{1}, 63)
                                         : 0;
    return;
  }
  Checked<int64_t> all(self.size());
  for (int64_t i = 0; i < self.size(); ++i) all[i] = i;
  out[0] = self[MedianOf(self, all, skip_nan)];
}
void OracleMedian(HostCall& call) { MedianOracle(call, "valuesOut", false); }
void OracleNanMedian(HostCall& call) { MedianOracle(call, "out", true); }

void SampleMedianDim(Calls& calls) {
  const auto add = [&](DType t, const Dims& dims, int64_t axis, bool keep, const Dims& out, Values values) {
    calls.Add({In(t, dims, values), Int(axis), Flag(keep), Out(t, out), Out(DType::kI64, out)});
  };
  for (DType t : calls.TypesOf("self")) {
    add(t, {3, 7}, 1, false, {3}, Numbers(t));
    add(t, {8, 3}, 0, true, {1, 3}, Numbers(t));
    add(t, {2, 9, 3}, -2, false, {2, 3}, Numbers(t));
    add(t, {}, 0, false, {}, Numbers(t));
    add(t, {4}, 0, false, {1}, Numbers(t));
    add(t, {0, 4}, 1, false, {0}, Numbers(t));
    if (!IsFloating(t)) continue;
    add(t, {2, 6}, 1, false, {2}, Given(kMixed));
    add(t, {2, 3}, 1, false, {2}, Given({kNan, kNan, kNan, 3, 1, kNan}));
  }
}

void MedianDimOracle(HostCall& call, bool skip_nan) {
  const Host& self = call.In("self");
  if (self.size() == 0) return;
  Host &values = call.Out("valuesOut"), &places = call.Out("indicesOut");
  const auto rows = RowsOf(self, call.Int("dim"));
  for (size_t r = 0; r < rows.size(); ++r) {
    const size_t place = MedianOf(self, rows[r], skip_nan);
    values[r] = self[rows[r][place]];
    places[r] = static_cast<Real>(place);
  }
}
void OracleMedianDim(HostCall& call) { MedianDimOracle(call, false); }
void OracleNanMedianDim(HostCall& call) { MedianDimOracle(call, true); }

}  // namespace

std::span<const Subject> OrderSubjects() {
  static constexpr Limits kExact = {.ulps = 0};
  static const Subject subjects[] = {
      {"aclnnCumsum", SampleCumsum, OracleCumsum},
      {"aclnnCumsumV2", SampleCumsumV2, OracleCumsum},
      {"aclnnCumprod", SampleCumprod, OracleCumprod},
      {"aclnnInplaceCumprod", SampleCumprod, OracleCumprod},
      {"aclnnCummax", SampleRunning, OracleCummax, kExact},
      {"aclnnCummin", SampleRunning, OracleCummin, kExact},
      {"aclnnSort", SampleSort, OracleSort, kExact},
      {"aclnnArgsort", SampleArgsort, OracleSort, kExact},
      {"aclnnTopk", SampleTopk, OracleTopk, kExact},
      {"aclnnKthvalue", SampleKthvalue, OracleKthvalue, kExact},
      {"aclnnMedian", SampleMedian, OracleMedian, kExact},
      {"aclnnNanMedian", SampleMedian, OracleNanMedian, kExact},
      {"aclnnMedianDim", SampleMedianDim, OracleMedianDim, kExact},
      {"aclnnNanMedianDim", SampleMedianDim, OracleNanMedianDim, kExact},
  };
  return subjects;
}

}  // namespace anyacl::harness
