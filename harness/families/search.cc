// SPDX-License-Identifier: Apache-2.0
// Copyright The AnyACL Authors
//
// Counting and searching, by looking at every element.
#include <algorithm>
#include <cmath>
#include <limits>

#include "core/promotion.h"
#include "harness/family.h"

namespace anyacl::harness {
namespace {

constexpr Real kInf = std::numeric_limits<Real>::infinity();
constexpr Real kNan = std::numeric_limits<Real>::quiet_NaN();

// ---- Counting -------------------------------------------------------------------------------------------------------

void SampleBincount(Calls& calls) {
  for (DType t : calls.TypesOf("self")) {
    for (DType out : calls.TypesOf("out")) calls.Add({In(t, {50}, Whole(0, 9)), Null(), Int(0), Out(out, {12})});
    calls.Add({In(t, {40}, Whole(0, 99)), Null(), Int(20), Out(DType::kI64, {20})});  // some are beyond
    calls.Add({In(t, {0}), Null(), Int(5), Out(DType::kI64, {5})});
  }
  for (DType w : calls.TypesOf("weights")) {
    for (DType out : {DType::kF64, DType::kF32}) {
      const Values values = w == DType::kBool ? Whole(0, 1) : IsFloating(w) ? Between(-1, 1) : Whole(0, 5);
      calls.Add({In(DType::kI32, {60}, Whole(0, 9)), In(w, {60}, values), Int(3), Out(out, {10})});
    }
  }
  calls.Add({In(DType::kI32, {5}, Given({-1, 2, -7, 2, 0})), Null(), Int(-3), Out(DType::kI64, {4})});
  calls.Add({In(DType::kI64, {0}), In(DType::kF32, {0}), Int(3), Out(DType::kI64, {3})});
  calls.Add({In(DType::kI64, {33000}, Whole(0, 300)), Null(), Int(0), Out(DType::kI32, {301})});
}

void OracleBincount(HostCall& call) {
  const Host& self = call.In("self");
  Host& out = call.Out("out");
  out.slack.assign(out.size(), 0);
  for (int64_t i = 0; i < self.size(); ++i) {
    const auto v = static_cast<int64_t>(self.real(i));
    if (v < 0 || v >= out.size()) continue;
    const Real weight = call.Has("weights") ? call.In("weights").real(i) : 1;
    out[v] += weight;
    if (call.Has("weights")) out.slack[v] += std::ldexp(std::fabs(weight) * self.size(), -53);
  }
}

void SampleHistc(Calls& calls) {
  const auto add = [&](DType t, DType out, const Dims& dims, int64_t bins, Real low, Real high, Values values) {
    const DType edge = IsFloating(t) ? DType::kF64 : DType::kI64;
    calls.Add({In(t, dims, values), Int(bins), Num(edge, low), Num(edge, high), Out(out, {bins})});
  };
  for (DType t : calls.TypesOf("self")) {
    for (DType out : calls.TypesOf("out")) {
      if (ConvertsTo(out, t)) add(t, out, {4, 30}, 7, 2, 20, IsFloating(t) ? Between(0, 25) : Whole(0, 25));
    }
    add(t, t, {25}, 5, 0, 0, IsFloating(t) ? Between(1, 9) : Whole(1, 9));
    add(t, t, {2}, 3, 0, 0, Given({5, 5}));
    add(t, t, {0}, 3, 0, 4, {});
    add(t, t, {}, 3, 0, 4, Given({4}));
  }
  for (DType t : {DType::kF32, DType::kF64, DType::kF16}) {
    add(t, t, {6}, 4, 0, 2, Given({0, 0.5L, 1, 1.5L, 2, 3}));
    add(t, t, {6}, 4, 0, 2, Given({kNan, 0.5L, kInf, -kInf, 2, 3}));
    add(t, t, {3}, 4, 0, 0, Given({kNan, 0.5L, 1}));
    add(t, t, {3}, 4, 0, 0, Given({kInf, 0.5L, 1}));
  }
  add(DType::kF32, DType::kF32, {30}, 10, 0, 1, Given({0.1L, 0.2L, 0.3L, 0.4L, 0.5L, 0.6L, 0.7L, 0.8L, 0.9L, 1, 0, 0.1L, 0.2L, 0.3L, 0.4L, 0.5L, 0.6L, 0.7L, 0.8L, 0.9L, 1, 0, 0.15L, 0.25L, 0.35L, 0.45L, 0.55L, 0.65L, 0.75L, 0.85L}));
}

void OracleHistc(HostCall& call) {
  const Host& self = call.In("self");
  Host& out = call.Out("out");
  const auto bins = static_cast<Real>(call.Int("bins"));
  const bool whole = IsInteger(self.dtype);
  // What floating numbers are computed in.
  const DType steps = self.dtype == DType::kF64 ? DType::kF64 : DType::kF32;
  const auto rounded = [&](Real x) { return whole ? x : Rounded(steps, x).real(); };
  Real low = Rounded(self.dtype, call.Scalar("min")).real(), high = Rounded(self.dtype, call.Scalar("max")).real();
  if (self.size() == 0) return;
  if (low == high) {
    low = high = self.real(0);
    for (int64_t i = 0; i < self.size(); ++i) {
      if (!std::isfinite(self.real(i))) return;
      low = std::min(low, self.real(i));
      high = std::max(high, self.real(i));
    }
    if (low == high) {
      low -= 1;
      high += 1;
    }
  }
  for (int64_t i = 0; i < self.size(); ++i) {
    const Real x = self.real(i);
    if (!(x >= low && x <= high)) continue;
    const Real bin = std::trunc(rounded(rounded(rounded(x - low) * bins) / rounded(high - low)));
    out[static_cast<int64_t>(std::min(bin, bins - 1))] += 1;
  }
}

// ---- Searching ------------------------------------------------------------------------------------------------------

// The bisection that PyTorch does; NaN and unsorted sequences depend on it.
int64_t Bisected(const Checked<Real>& sequence, Real x, bool right) {
  size_t begin = 0, end = sequence.size();
  while (begin < end) {
    const size_t middle = begin + (end - begin) / 2;
    if (right ? sequence[middle] > x : sequence[middle] >= x) end = middle;
    else begin = middle + 1;
  }
  return static_cast<int64_t>(begin);
}

Checked<Number> Steps(int64_t count) {
  Checked<Number> numbers;
  for (int64_t i = 0; i < count; ++i) numbers.push_back(static_cast<Real>(i / 2 * 3));
  return numbers;
}

void SampleSearch(Calls& calls) {
  for (DType sequence : calls.TypesOf("sortedSequence")) {
    for (DType self : calls.TypesOf("self")) {
      for (bool right : {false, true}) {
        const DType out = right ? DType::kI32 : DType::kI64;
        calls.Add({In(sequence, {9}, Given(Steps(9))), In(self, {3, 5}, Whole(0, 15)), Flag(right), Flag(right), Null(), Out(out, {3, 5})});
      }
    }
    calls.Add({In(sequence, {2, 3, 5}), In(sequence, {2, 3, 4}), Flag(false), Flag(false), Null(), Out(DType::kI64, {2, 3, 4})});
    calls.Add({In(sequence, {5}, Given(Steps(5))), In(sequence, {}, Whole(0, 9)), Flag(false), Flag(true), Null(), Out(DType::kI64, {})});
  }
  for (bool right : {false, true}) {
    calls.Add({In(DType::kF32, {4}, Given({1, 3, 3, 5})), In(DType::kF32, {4}, Given({3, 0, 6, kNan})), Flag(false), Flag(right), Null(), Out(DType::kI64, {4})});
    calls.Add({In(DType::kF32, {4}, Given({5, 1, 3, 3})), In(DType::kF32, {4}, Given({3, 0, 6, kNan})), Flag(false), Flag(right),
               In(DType::kI64, {4}, Given({1, 2, 3, 0})), Out(DType::kI64, {4})});
    calls.Add({In(DType::kF32, {3}, Given({1, kNan, kNan})), In(DType::kF32, {3}, Given({0, 1, 7})), Flag(false), Flag(right), Null(), Out(DType::kI64, {3})});
    calls.Add({In(DType::kF64, {2, 6}), In(DType::kF64, {2, 7}), Flag(true), Flag(right), In(DType::kI64, {2, 6}, Permutation()).Layout("dense"), Out(DType::kI32, {2, 7})});
  }
  calls.Add({In(DType::kF32, {0}), In(DType::kF32, {3}), Flag(false), Flag(false), Null(), Out(DType::kI64, {3})});
  calls.Add({In(DType::kF32, {3}), In(DType::kF32, {0}), Flag(false), Flag(false), Null(), Out(DType::kI64, {0})});
  calls.Add({In(DType::kI32, {3}, Given({1, 2, 3})), In(DType::kF32, {}, Given({2.5L})), Flag(false), Flag(false), Null(), Out(DType::kI64, {})});
  calls.Add({In(DType::kF16, {3}, Given({0.05L, 0.1L, 0.2L})), In(DType::kF32, {}, Given({0.1L})), Flag(false), Flag(false), Null(), Out(DType::kI64, {})});
  calls.Add({In(DType::kF32, {1000}, Given(Steps(1000))), In(DType::kF32, {40000}, Between(-10, 1600)), Flag(false), Flag(false), Null(), Out(DType::kI64, {40000})});
}

DType Compared(const Host& sequence, DType self, bool zero_dim) {
  return zero_dim ? PromoteZeroDim(sequence.dtype, self) : Promote(sequence.dtype, self);
}

void OracleSearchSorted(HostCall& call) {
  const Host &sequence = call.In("sortedSequence"), &self = call.In("self");
  Host& out = call.Out("out");
  const DType compared = Compared(sequence, self.dtype, self.dims.rank() == 0);
  const int64_t length = sequence.dims[sequence.dims.rank() - 1];
  Checked<Real> sorted;  // the present row
  const int64_t per_row = sequence.dims.rank() == 1 ? self.size() : self.dims[self.dims.rank() - 1];
  for (int64_t i = 0; i < self.size(); ++i) {
    const int64_t row = i / per_row;
    for (int64_t j = 0; j < length && i % per_row == 0; ++j) {
      if (j == 0) sorted.clear();
      int64_t place = j;
      // A permutation of a whole tensor is none of its rows; what it says beyond a row is kept inside.
      if (call.Has("sorter")) place = std::clamp<int64_t>(static_cast<int64_t>(call.In("sorter").real(row * length + j)), 0, length - 1);
      sorted.push_back(Rounded(compared, sequence[row * length + place]).real());
    }
    out[i] = static_cast<Real>(Bisected(sorted, Rounded(compared, self[i]).real(), call.Flag("right")));
  }
}

void SampleSearchOne(Calls& calls) {
  for (DType sequence : calls.TypesOf("sortedSequence")) {
    for (bool right : {false, true}) {
      const DType out = right ? DType::kI32 : DType::kI64;
      for (DType scalar : {DType::kF64, DType::kI64, DType::kBool}) {
        calls.Add({In(sequence, {9}, Given(Steps(9))), Num(scalar, scalar == DType::kBool ? 1 : 6), Flag(right), Flag(right), Null(), Out(out, {})});
      }
      calls.Add({In(sequence, {3}, Given({1, 2, 3})), Num(DType::kF64, 2.5L), Flag(right), Flag(right), Null(), Out(out, {1})});
      calls.Add({In(sequence, {3}, Given({3, 1, 2})), Num(DType::kF64, 2), Flag(right), Flag(right), In(DType::kI64, {3}, Given({1, 2, 0})), Out(out, {1})});
    }
  }
  calls.Add({In(DType::kU8, {3}, Given({1, 254, 255})), Num(DType::kI64, -1), Flag(false), Flag(false), Null(), Out(DType::kI64, {})});
  calls.Add({In(DType::kF16, {3}, Given({0.05L, 0.1L, 0.2L})), Num(DType::kF64, 0.1L), Flag(false), Flag(false), Null(), Out(DType::kI64, {})});
  calls.Add({In(DType::kI64, {3}, Given({16777215, 16777216, 16777217})), Num(DType::kF64, 16777217), Flag(false), Flag(false), Null(), Out(DType::kI64, {})});
}

void OracleSearchOne(HostCall& call) {
  const Host& sequence = call.In("sortedSequence");
  const DType compared = PromoteScalar(sequence.dtype, call.ScalarType("self"));
  Checked<Real> sorted;
  for (int64_t j = 0; j < sequence.size(); ++j) {
    const int64_t place = call.Has("sorter") ? static_cast<int64_t>(call.In("sorter").real(j)) : j;
    sorted.push_back(Rounded(compared, sequence[place]).real());
  }
  call.Out("out")[0] = static_cast<Real>(Bisected(sorted, Rounded(compared, call.Scalar("self")).real(), call.Flag("right")));
}

void SampleBucketize(Calls& calls) {
  for (DType boundaries : calls.TypesOf("boundaries")) {
    for (DType self : calls.TypesOf("self")) {
      for (bool right : {false, true}) {
        const DType out = right ? DType::kI32 : DType::kI64;
        calls.Add({In(self, {3, 5}, Whole(0, 15)), In(boundaries, {9}, Given(Steps(9))), Flag(right), Flag(right), Out(out, {3, 5})});
      }
      calls.Add({In(self, {}, Whole(0, 9)), In(boundaries, {5}, Given(Steps(5))), Flag(false), Flag(false), Out(DType::kI64, {})});
    }
  }
  calls.Add({In(DType::kF32, {3}), In(DType::kF32, {0}), Flag(false), Flag(false), Out(DType::kI64, {3})});
  calls.Add({In(DType::kF32, {0}), In(DType::kF32, {3}), Flag(false), Flag(false), Out(DType::kI64, {0})});
}

void OracleBucketize(HostCall& call) {
  const Host &boundaries = call.In("boundaries"), &self = call.In("self");
  const DType compared = Compared(boundaries, self.dtype, self.dims.rank() == 0);
  Checked<Real> sorted;
  for (int64_t j = 0; j < boundaries.size(); ++j) sorted.push_back(Rounded(compared, boundaries[j]).real());
  Host& out = call.Out("out");
  for (int64_t i = 0; i < self.size(); ++i) {
    out[i] = static_cast<Real>(Bisected(sorted, Rounded(compared, self[i]).real(), call.Flag("right")));
  }
}

}  // namespace

std::span<const Subject> SearchSubjects() {
  static const Subject subjects[] = {
      {"aclnnBincount", SampleBincount, OracleBincount, {.ulps = 1}},
      {"aclnnHistc", SampleHistc, OracleHistc, {.ulps = 0}},
      {"aclnnSearchSorted", SampleSearch, OracleSearchSorted, {.ulps = 0}},
      {"aclnnSearchSorteds", SampleSearchOne, OracleSearchOne, {.ulps = 0}},
      {"aclnnBucketize", SampleBucketize, OracleBucketize, {.ulps = 0}},
  };
  return subjects;
}

}  // namespace anyacl::harness
