// SPDX-License-Identifier: Apache-2.0
// Copyright The AnyACL Authors
#include <algorithm>
#include <cmath>
#include <functional>
#include <iterator>

#include "harness/family.h"

namespace anyacl::harness {
namespace {

using At = Checked<int64_t>;

int64_t Wrap(int64_t axis, int rank) { return axis < 0 ? axis + std::max(rank, 1) : axis; }
int64_t WholeAt(const Host& index, int64_t i) { return static_cast<int64_t>(index.real(i)); }
// A place on an axis, counted from the end when negative and that is allowed; -1 outside.
int64_t Place(const Host& index, int64_t i, int64_t size, bool wraps) {
  int64_t at = WholeAt(index, i);
  if (wraps && at < 0) at += size;
  return at >= 0 && at < size ? at : -1;
}
Host AtLeast1d(Host host) {
  if (host.dims.rank() == 0) host.dims = {1};
  return host;
}

// What several elements combined into one give, each step in long double; integers wrap at the end.
struct Target {
  Number value = 0;
  Real magnitude = 0;
  int64_t hits = 0;
  Real product = 1;
};

enum Reduce { kNone, kAdd, kMul, kMax, kMin, kMean };

// Applies updates to a tensor in order, then writes results and what rounding may cost.
class Updates {
 public:
  Updates(Host& out, const Host& start, Reduce reduce, bool include) : out_(out), reduce_(reduce), include_(include), targets_(start.values.size()) {
    for (size_t i = 0; i < targets_.size(); ++i) {
      targets_[i].value = start.values[i];
      targets_[i].magnitude = std::abs(start.values[i]);
    }
  }
  void Add(int64_t i, Number value) {
    Target& t = targets_[static_cast<size_t>(i)];
    const bool first = t.hits == 0 && !include_;
    ++t.hits;
    if (first || reduce_ == kNone) {
      t.value = value;
      t.magnitude = std::abs(value);
      return;
    }
    switch (reduce_) {
      case kAdd:
      case kMean:
        t.value += value;
        break;
      case kMul:
        t.value = Product(t.value, value);
        break;
      case kMax:
        if (!std::isnan(t.value.real()) && (std::isnan(value.real()) || value.real() > t.value.real())) t.value = value;
        break;
      case kMin:
        if (!std::isnan(t.value.real()) && (std::isnan(value.real()) || value.real() < t.value.real())) t.value = value;
        break;
      default:
        break;
    }
    t.magnitude = reduce_ == kMul ? std::abs(t.value) : t.magnitude + std::abs(value);
  }
  void Finish() {
    const bool whole = IsInteger(out_.dtype) || out_.dtype == DType::kBool;
    const bool wide = out_.dtype == DType::kF64 || out_.dtype == DType::kC128;
    for (int64_t i = 0; i < out_.size(); ++i) {
      const Target& t = targets_[static_cast<size_t>(i)];
      out_[i] = t.value;
      if (reduce_ == kMean && t.hits > 0) {
        const Real count = static_cast<Real>(t.hits + (include_ ? 1 : 0));
        out_[i] = whole ? Number(std::floor(Rounded(out_.dtype == DType::kBool ? DType::kI64 : out_.dtype, t.value).real() / count)) : t.value / count;
      }
      if (whole) continue;
      const bool exact = t.hits == 0 || reduce_ == kNone || reduce_ == kMax || reduce_ == kMin;
      const Real terms = static_cast<Real>(t.hits + 2) * (reduce_ == kMul ? 3 : 1);
      out_.slack.push_back(exact || !std::isfinite(t.magnitude) ? 0 : terms * UlpOf(wide ? DType::kF64 : DType::kF32, t.magnitude));
    }
  }

 private:
  Number Product(Number a, Number b) const {
    if (!IsInteger(out_.dtype)) return IsComplex(out_.dtype) ? a * b : Number(a.real() * b.real());
    return Rounded(out_.dtype, a.real() * b.real());
  }
  Host& out_;
  Reduce reduce_;
  bool include_;
  Checked<Target> targets_;
};

// --- reading -------------------------------------------------------------------------------------

void SampleSelect(Calls& calls) {
  for (DType t : calls.TypesOf("self")) {
    calls.Add({In(t, {3, 5, 2}), Int(1), In(DType::kI64, {4}, Whole(-1, 5)), Out(t, {3, 4, 2})});
    calls.Add({In(t, {5}), Int(-1), In(DType::kI32, {7}, Whole(0, 4)), Out(t, {7})});
  }
  calls.Add({In(DType::kF32, {4, 3}), Int(0), In(DType::kI64, {}, Whole(0, 3)), Out(DType::kF32, {1, 3})});
  calls.Add({In(DType::kF32, {}), Int(0), In(DType::kI64, {1}, Whole(0, 0)), Out(DType::kF32, {})});
  calls.Add({In(DType::kF32, {4, 3}), Int(0), In(DType::kI64, {0}), Out(DType::kF32, {0, 3})});
  calls.Add({In(DType::kF32, {300, 40}), Int(0), In(DType::kI64, {1500}, Whole(0, 299)), Out(DType::kF32, {1500, 40})});
  calls.Add({In(DType::kF32, {20, 3000}), Int(1), In(DType::kI32, {2500}, Whole(0, 2999)), Out(DType::kF32, {20, 2500})});
}
void SampleGatherV2(Calls& calls) {
  SampleSelect(calls);
  calls.Add({In(DType::kF32, {3, 5, 2}), Int(1), In(DType::kI64, {2, 3}, Whole(-6, 6)), Out(DType::kF32, {3, 2, 3, 2})});
}
// self[..., index, ...], `batch` leading dims of index shared with self.
void ReadAlong(const Host& self, int dim, const Host& index, int64_t batch, bool wraps, Host& out) {
  const int places = index.dims.rank() - static_cast<int>(batch);
  for (int64_t i = 0; i < out.size(); ++i) {
    const At at = out.Position(i);
    if (self.dims.rank() == 0) {
      out[i] = Place(index, 0, 1, wraps) < 0 ? Number(0) : self[0];
      continue;
    }
    At from, name(at.begin(), at.begin() + batch);
    for (int k = 0; k < dim; ++k) from.push_back(at[static_cast<size_t>(k)]);
    for (int k = 0; k < places; ++k) name.push_back(at[static_cast<size_t>(dim + k)]);
    const int64_t place = Place(index, index.Index(name), self.dims[dim], wraps);
    from.push_back(place);
    for (size_t k = static_cast<size_t>(dim + places); k < at.size(); ++k) from.push_back(at[k]);
    out[i] = place < 0 ? Number(0) : self[self.Index(from)];
  }
}
template <bool kWraps>
void OracleSelect(HostCall& call) {
  const Host& self = call.In("self");
  ReadAlong(self, static_cast<int>(Wrap(call.Int("dim"), self.dims.rank())), AtLeast1d(call.In("index")), 0, kWraps, call.Out("out"));
}

void SampleGatherV3(Calls& calls) {
  for (DType t : calls.TypesOf("self")) calls.Add({In(t, {3, 5, 2}), Int(1), In(DType::kI64, {4}, Whole(-1, 5)), Int(0), Int(0), Out(t, {3, 4, 2})});
  calls.Add({In(DType::kF32, {3, 5, 2}), Int(1), In(DType::kI32, {3, 4}, Whole(0, 5)), Int(1), Int(1), Out(DType::kF32, {3, 4, 2})});
  calls.Add({In(DType::kF32, {3, 5, 2}), Int(-1), In(DType::kI32, {3, 5}, Whole(0, 1)), Int(2), Int(1), Out(DType::kF32, {3, 5})});
  calls.Add({In(DType::kF32, {5, 2}), Int(0), In(DType::kI32, {}, Whole(0, 4)), Int(0), Int(1), Out(DType::kF32, {2})});
  calls.Add({In(DType::kF32, {40, 50, 20}), Int(1), In(DType::kI64, {40, 60}, Whole(0, 49)), Int(1), Int(0), Out(DType::kF32, {40, 60, 20})});
}
void OracleGatherV3(HostCall& call) {
  const Host& self = call.In("self");
  ReadAlong(self, static_cast<int>(Wrap(call.Int("dim"), self.dims.rank())), call.In("index"), call.Int("batchDims"), false, call.Out("out"));
}

void SampleEmbedding(Calls& calls) {
  for (DType t : calls.TypesOf("weight")) {
    calls.Add({In(t, {7, 3}), In(DType::kI64, {2, 4}, Whole(-1, 7)), Out(t, {2, 4, 3})});
    calls.Add({In(t, {7, 3}), In(DType::kI32, {}, Whole(0, 6)), Out(t, {3})});
  }
  calls.Add({In(DType::kF32, {7, 3}), In(DType::kI32, {0}), Out(DType::kF32, {0, 3})});
  calls.Add({In(DType::kF32, {500, 64}), In(DType::kI64, {40, 30}, Whole(0, 499)), Out(DType::kF32, {40, 30, 64})});
}
void OracleEmbedding(HostCall& call) { ReadAlong(call.In("weight"), 0, call.In("indices"), 0, false, call.Out("out")); }

void SampleGather(Calls& calls) {
  for (DType t : calls.TypesOf("self")) {
    calls.Add({In(t, {3, 5}), Int(1), In(DType::kI64, {3, 4}, Whole(-6, 6)), Out(t, {3, 4})});
    calls.Add({In(t, {3, 5, 2}), Int(0), In(DType::kI32, {6, 2, 2}, Whole(0, 2)), Out(t, {6, 2, 2})});
  }
  calls.Add({In(DType::kF32, {}), Int(0), In(DType::kI64, {}, Whole(0, 0)), Out(DType::kF32, {})});
  calls.Add({In(DType::kF32, {4}), Int(0), In(DType::kF32, {0}), Out(DType::kF32, {0})});
  calls.Add({In(DType::kF32, {4, 3}), Int(1), In(DType::kI64, {0}), Out(DType::kF32, {0})});
  calls.Add({In(DType::kF32, {200, 300}), Int(1), In(DType::kI64, {200, 250}, Whole(0, 299)), Out(DType::kF32, {200, 250})});
}
void OracleGather(HostCall& call) {
  const Host self = AtLeast1d(call.In("self")), index = AtLeast1d(call.In("index"));
  Host& out = call.Out("out");
  const int dim = static_cast<int>(Wrap(call.Int("dim"), self.dims.rank()));
  for (int64_t i = 0; i < index.size(); ++i) {
    At at = index.Position(i);
    at[static_cast<size_t>(dim)] = Place(index, i, self.dims[dim], true);
    out[i] = at[static_cast<size_t>(dim)] < 0 ? Number(0) : self[self.Index(at)];
  }
}

void SampleTake(Calls& calls) {
  for (DType t : calls.TypesOf("self")) calls.Add({In(t, {3, 5}), In(DType::kI64, {2, 4}, Whole(-16, 16)), Out(t, {2, 4})});
  calls.Add({In(DType::kF32, {3, 5}), In(DType::kI32, {}, Whole(0, 14)), Out(DType::kF32, {})});
  calls.Add({In(DType::kF32, {0}), In(DType::kI32, {0}), Out(DType::kF32, {0})});
  calls.Add({In(DType::kF32, {30, 50}), In(DType::kI32, {40000}, Whole(0, 1499)), Out(DType::kF32, {40000})});
}
void OracleTake(HostCall& call) {
  const Host& self = call.In("self");
  Host& out = call.Out("out");
  for (int64_t i = 0; i < out.size(); ++i) {
    const int64_t at = Place(call.In("index"), i, self.size(), true);
    out[i] = at < 0 ? Number(0) : self[at];
  }
}

// Elements behind the i-th tuple of indices and position `rest` of the dims not named; -1 outside.
int64_t Behind(const Host& table, const Host& indices, int64_t tuple, const At& rest, bool wraps) {
  const int64_t k = indices.dims[indices.dims.rank() - 1];
  At at;
  for (int64_t j = 0; j < k; ++j) {
    at.push_back(Place(indices, tuple * k + j, table.dims[static_cast<int>(j)], wraps));
    if (at.back() < 0) return -1;
  }
  at.insert(at.end(), rest.begin(), rest.end());
  return table.Index(at);
}
// The tuple and the rest that position `at` of data stands for.
int64_t TupleOf(const Host& indices, const At& at, At* rest) {
  const int places = indices.dims.rank() - 1;
  int64_t tuple = 0;
  for (int j = 0; j < places; ++j) tuple = tuple * indices.dims[j] + at[static_cast<size_t>(j)];
  rest->assign(at.begin() + places, at.end());
  return tuple;
}

void SampleGatherNd(Calls& calls) {
  for (DType t : calls.TypesOf("self")) {
    calls.Add({In(t, {3, 4, 2}), In(DType::kI64, {5, 2}, Whole(-4, 4)), Flag(true), Out(t, {5, 2})});
    calls.Add({In(t, {3, 4}), In(DType::kI32, {2, 3, 2}, Whole(-1, 3)), Flag(false), Out(t, {2, 3})});
  }
  calls.Add({In(DType::kF32, {3, 4}), In(DType::kI32, {2}, Whole(0, 2)), Flag(false), Out(DType::kF32, {})});
  calls.Add({In(DType::kF32, {100, 30, 20}), In(DType::kI64, {2000, 2}, Whole(0, 29)), Flag(false), Out(DType::kF32, {2000, 20})});
}
void OracleGatherNd(HostCall& call) {
  const Host &self = call.In("self"), &indices = call.In("indices");
  Host& out = call.Out("out");
  for (int64_t i = 0; i < out.size(); ++i) {
    At rest;
    const int64_t tuple = TupleOf(indices, out.Position(i), &rest);
    const int64_t from = Behind(self, indices, tuple, rest, call.Flag("negativeIndexSupport"));
    out[i] = from < 0 ? Number(0) : self[from];
  }
}

// --- scatter -------------------------------------------------------------------------------------

bool InPlace(const Calls& calls) { return std::string_view(calls.op().contract.args()[0].name) == "selfRef"; }

// How the arguments after src look: reduce, includeSelf.
template <bool kValue, bool kReduce, bool kInclude>
void SampleScatter(Calls& calls) {
  const bool in_place = InPlace(calls);
  const auto add = [&](DType t, const Dims& self, int64_t dim, const Dims& index, Values places, const Dims& src, int64_t reduce, bool include,
                       Values numbers = {}) -> TestCall& {
    std::vector<TestArg> args = {In(t, self, numbers), Int(dim), In(DType::kI64, index, places)};
    if (kValue) args.push_back(Num(DType::kF64, 2));
    else args.push_back(In(t, src, numbers));
    if (kReduce) args.push_back(Int(reduce));
    if (kInclude) args.push_back(Flag(include));
    if (!in_place) args.push_back(Out(t, self));
    return calls.Add(args);
  };
  const Checked<int64_t> reductions = kReduce ? Checked<int64_t>{0, 1, 2, 3, 4, 5} : Checked<int64_t>{1};
  for (DType t : calls.TypesOf(in_place ? "selfRef" : "self")) {
    for (const int64_t reduce : reductions) {
      if (IsComplex(t) && (reduce == kMax || reduce == kMin)) continue;
      add(t, {4, 5}, 0, {3, 4}, Whole(-5, 5), {3, 5}, reduce, true);
      if (kInclude) add(t, {3, 4}, 1, {3, 6}, Whole(0, 2), {3, 6}, reduce, false);
    }
    if (!in_place) add(t, {3, 4}, 1, {3, 4}, Whole(0, 3), {3, 4}, 1, true).same = {{static_cast<int>(calls.op().contract.args().size()) - 1, 0}};
    add(t, {4}, 0, {0}, {}, {3}, 0, true);
  }
  if (kReduce) {
    for (const int64_t reduce : {kMax, kMin}) add(DType::kF32, {3, 7}, 0, {5, 7}, Whole(0, 2), {5, 7}, reduce, true, Hostile());
  }
  add(DType::kI32, {}, 0, {}, Whole(0, 0), {}, 1, true);
  add(DType::kI8, {2}, 0, {8}, Whole(0, 0), {8}, kReduce ? kMean : 1, true, Whole(90, 120));
  add(DType::kF16, {2}, 0, {3000}, Whole(0, 0), {3000}, 1, true, Given({1}));
  add(DType::kF32, {180, 30}, 1, {180, 190}, Whole(0, 29), {180, 190}, 1, true);
  add(DType::kBF16, {3, 4000}, 0, {9, 4000}, Whole(0, 2), {9, 4000}, 1, true);
}
template <bool kValue, int kFixed>
void OracleScatter(HostCall& call) {
  const bool in_place = !call.outputs[0].empty();
  const Host self = AtLeast1d(call.In(in_place ? "selfRef" : "self")), index = AtLeast1d(call.In("index"));
  const int dim = static_cast<int>(Wrap(call.Int("dim"), self.dims.rank()));
  const Host src = kValue ? Host() : AtLeast1d(call.In("src"));
  const Reduce reduce = static_cast<Reduce>(kFixed >= 0 ? kFixed : call.Int("reduce"));
  Updates updates(call.Out(in_place ? "selfRef" : "out"), self, reduce, kFixed != -2 || call.Flag("includeSelf"));
  for (int64_t i = 0; i < index.size(); ++i) {
    At at = index.Position(i);
    const Number value = kValue ? Rounded(self.dtype, call.Scalar("value")) : src[src.Index(at)];
    at[static_cast<size_t>(dim)] = Place(index, i, self.dims[dim], true);
    if (at[static_cast<size_t>(dim)] >= 0) updates.Add(self.Index(at), value);
  }
  updates.Finish();
}

// --- along one axis ------------------------------------------------------------------------------

template <bool kV2>
void SampleIndexAdd(Calls& calls) {
  const auto add = [&](DType t, const Dims& self, int64_t dim, int64_t count, int64_t low, int64_t high, const Dims& source, TestArg alpha,
                       int64_t mode = 1) -> TestCall& {
    std::vector<TestArg> args = {In(t, self), Int(dim), In(count % 2 ? DType::kI32 : DType::kI64, {count}, Whole(low, high)), In(t, source), alpha};
    if (kV2) args.push_back(Int(mode));
    args.push_back(Out(t, self));
    return calls.Add(args);
  };
  const int out = kV2 ? 6 : 5;
  for (DType t : calls.TypesOf("self")) {
    add(t, {4, 3}, 0, 6, -1, 4, {6, 3}, Num(DType::kI64, 1));
    add(t, {4, 3}, -1, 5, 0, 2, {4, 5}, Num(DType::kI64, t == DType::kBool ? 1 : 2)).same = {{out, 0}};
  }
  add(DType::kF32, {4, 3}, 0, 6, 0, 3, {6, 3}, Num(DType::kF64, 0.5L));
  add(DType::kI32, {4, 3}, 0, 6, 0, 3, {6, 3}, Num(DType::kI64, 3));
  if (!kV2) add(DType::kI32, {4, 3}, 0, 6, 0, 3, {6, 3}, Num(DType::kF64, 1.5L));
  if (kV2) add(DType::kF32, {4, 3}, 0, 6, 0, 3, {6, 3}, Num(DType::kF64, 0.5L), 0).label = "alpha left out";
  add(DType::kF32, {}, 0, 1, 0, 0, {1}, Num(DType::kI64, 1));
  add(DType::kF32, {2, 0}, 0, 2, 0, 1, {2, 0}, Num(DType::kI64, 1));
  add(DType::kF16, {3}, 0, 3001, 0, 1, {3001}, Num(DType::kI64, 1));
  add(DType::kF32, {50, 300}, 0, 400, 0, 49, {400, 300}, Num(DType::kI64, 1));
}
template <bool kV2>
void OracleIndexAdd(HostCall& call) {
  const Host self = AtLeast1d(call.In("self")), source = AtLeast1d(call.In("source")), &index = call.In("index");
  const int dim = static_cast<int>(Wrap(call.Int("dim"), self.dims.rank()));
  Number alpha = Rounded(self.dtype, IsInteger(self.dtype) ? Number(std::trunc(call.Scalar("alpha").real())) : call.Scalar("alpha"));
  if (kV2 && call.Int("mode") == 0) alpha = 1;
  Updates updates(call.Out("out"), self, kAdd, true);
  for (int64_t i = 0; i < source.size(); ++i) {
    At at = source.Position(i);
    at[static_cast<size_t>(dim)] = Place(index, at[static_cast<size_t>(dim)], self.dims[dim], false);
    if (at[static_cast<size_t>(dim)] >= 0) updates.Add(self.Index(at), alpha * source[i]);
  }
  updates.Finish();
}

void SampleIndexCopy(Calls& calls) {
  const bool in_place = calls.op().contract.args().size() == 4;
  const auto add = [&](DType t, const Dims& self, int64_t dim, TestArg index, const Dims& source) {
    std::vector<TestArg> args = {In(t, self), Int(dim), std::move(index), In(t, source)};
    if (!in_place) args.push_back(Out(t, self));
    calls.Add(args);
  };
  for (DType t : calls.TypesOf("selfRef")) {
    add(t, {4, 3}, 0, In(DType::kI64, {6}, Whole(-1, 4)), {6, 3});
    add(t, {4, 3}, -1, In(DType::kI32, {2}, Whole(0, 2)), {4, 2});
  }
  add(DType::kF32, {4}, 0, In(DType::kI32, {}, Whole(0, 3)), {});
  add(DType::kF32, {}, 0, In(DType::kI32, {1}, Whole(0, 0)), {});
  add(DType::kF32, {4, 3}, 0, In(DType::kI32, {0}), {0, 3});
  add(DType::kF32, {100, 500}, 0, In(DType::kI64, {90}, Whole(0, 99)), {90, 500});
}
void OracleIndexCopy(HostCall& call) {
  const Host self = AtLeast1d(call.In("selfRef")), source = AtLeast1d(call.In("source"));
  const int dim = static_cast<int>(Wrap(call.Int("dim"), self.dims.rank()));
  Updates updates(call.Out(call.outputs[0].empty() ? "outRef" : "selfRef"), self, kNone, true);
  for (int64_t i = 0; i < source.size(); ++i) {
    At at = source.Position(i);
    at[static_cast<size_t>(dim)] = Place(call.In("index"), at[static_cast<size_t>(dim)], self.dims[dim], false);
    if (at[static_cast<size_t>(dim)] >= 0) updates.Add(self.Index(at), source[i]);
  }
  updates.Finish();
}

template <bool kHostIndex>
void SampleIndexFill(Calls& calls) {
  const bool in_place = InPlace(calls);
  const auto add = [&](DType t, const Dims& self, int64_t dim, Checked<int64_t> places, TestArg value) {
    std::vector<TestArg> args = {In(t, self), Int(dim)};
    if (kHostIndex) {
      std::erase_if(places, [&](int64_t i) { return i < -std::max<int64_t>(1, self.rank() ? self[static_cast<int>(Wrap(dim, self.rank()))] : 1) || i > 3; });
      args.push_back(Ints(places));
    } else {
      Checked<Number> numbers;
      for (const int64_t i : places) numbers.push_back(static_cast<Real>(i));
      const Dims dims = {static_cast<int64_t>(places.size())};
      args.push_back(places.empty() ? In(DType::kI64, dims) : In(t == DType::kF32 ? DType::kI32 : DType::kI64, dims, Given(numbers)));
    }
    args.push_back(std::move(value));
    if (!in_place) args.push_back(Out(t, self));
    calls.Add(args);
  };
  for (DType t : calls.TypesOf(in_place ? "selfRef" : "self")) {
    add(t, {4, 3}, 0, {1, -1, 9, -9}, Num(DType::kF64, 1));
    add(t, {4, 5}, -1, {0, 3, 3}, Num(DType::kI64, 1));
  }
  add(DType::kC64, {4, 3}, 0, {1}, Complex(DType::kC128, Number(1, 2)));
  add(DType::kI64, {4, 3}, 0, {1}, Num(DType::kI64, 9007199254740993.0L));
  add(DType::kF32, {}, 0, {0}, Num(DType::kF64, 0.5L));
  add(DType::kF32, {4, 3}, 0, {}, Num(DType::kF64, 0.5L));
  add(DType::kF32, {0, 3}, 1, {0}, Num(DType::kF64, 0.5L));
  add(DType::kF32, {100, 500}, 0, {0, 2, 3}, Num(DType::kF64, 0.5L));
}
template <bool kHostIndex>
void OracleIndexFill(HostCall& call) {
  const bool in_place = !call.outputs[0].empty();
  const Host self = AtLeast1d(call.In(in_place ? "selfRef" : "self"));
  const int dim = static_cast<int>(Wrap(call.Int("dim"), self.dims.rank()));
  Updates updates(call.Out(in_place ? "selfRef" : "out"), self, kNone, true);
  const int64_t count = kHostIndex ? static_cast<int64_t>(call.Ints("index").size()) : call.In("index").size();
  for (int64_t i = 0; i < self.size(); ++i) {
    for (int64_t k = 0; k < count; ++k) {
      int64_t place = kHostIndex ? call.Ints("index")[static_cast<size_t>(k)] : WholeAt(call.In("index"), k);
      if (place < 0) place += self.dims[dim];
      if (self.Position(i)[static_cast<size_t>(dim)] == place) updates.Add(i, call.Scalar("value"));
    }
  }
  updates.Finish();
}

void SamplePut(Calls& calls) {
  for (DType t : calls.TypesOf("selfRef")) {
    calls.Add({In(t, {3, 4}), In(DType::kI64, {2, 5}, Whole(-13, 13)), In(t, {10}), Flag(false)});
    calls.Add({In(t, {3, 4}), In(DType::kI32, {10}, Whole(-3, 3)), In(t, {5, 2}), Flag(true)});
  }
  calls.Add({In(DType::kF32, {3, 4}), In(DType::kI32, {0}), In(DType::kF32, {0}), Flag(true)});
  calls.Add({In(DType::kF32, {300, 40}), In(DType::kI64, {40000}, Whole(0, 11999)), In(DType::kF32, {40000}), Flag(true)});
}
void OraclePut(HostCall& call) {
  const Host& self = call.In("selfRef");
  Updates updates(call.Out("selfRef"), self, call.Flag("accumulate") ? kAdd : kNone, true);
  for (int64_t i = 0; i < call.In("index").size(); ++i) {
    const int64_t at = Place(call.In("index"), i, self.size(), true);
    if (at >= 0) updates.Add(at, call.In("source")[i]);
  }
  updates.Finish();
}

// --- tuples and rows -----------------------------------------------------------------------------

template <bool kOutOfPlace>
void SampleTuples(Calls& calls) {
  const char* const table = calls.op().contract.args()[0].name;
  const auto add = [&](DType t, const Dims& self, const Dims& indices, int64_t high, const Dims& updates) {
    std::vector<TestArg> args = {In(t, self), In(self.rank() % 2 ? DType::kI32 : DType::kI64, indices, Whole(-1, high)), In(t, updates)};
    if (kOutOfPlace) args.push_back(Out(t, self));
    calls.Add(args);
  };
  for (DType t : calls.TypesOf(table)) {
    add(t, {3, 4, 2}, {5, 2}, 3, {5, 2});
    add(t, {3, 4}, {2, 3, 2}, 3, {2, 3});
  }
  add(DType::kF32, {3, 4}, {2}, 2, {});
  add(DType::kF32, {3, 4}, {0, 2}, 2, {0});
  add(DType::kF32, {60, 30, 20}, {2000, 2}, 29, {2000, 20});
}
template <Reduce kReduce>
void OracleTuples(HostCall& call) {
  const bool in_place = !call.outputs[0].empty();
  const Host self = call.In(in_place ? "varRef" : "data");
  Updates updates(call.Out(in_place ? "varRef" : "out"), self, kReduce, true);
  const Host& data = call.In("updates");
  for (int64_t i = 0; i < data.size(); ++i) {
    At rest;
    const int64_t tuple = TupleOf(call.In("indices"), data.Position(i), &rest);
    const int64_t at = Behind(self, call.In("indices"), tuple, rest, false);
    if (at >= 0) updates.Add(at, data[i]);
  }
  updates.Finish();
}

void SampleRows(Calls& calls) {
  for (DType t : calls.TypesOf("varRef")) {
    calls.Add({In(t, {4, 3}, Between(1, 9)), In(DType::kI64, {2, 3}, Whole(-1, 4)), In(t, {2, 3, 3}, Between(0, 3)), Flag(false)});
    calls.Add({In(t, {4}, Between(1, 9)), In(DType::kI32, {}, Whole(0, 3)), In(t, {}, Between(1, 3)), Flag(true)});
  }
  calls.Add({In(DType::kF32, {30, 200}, Between(1, 2)), In(DType::kI64, {300}, Whole(0, 29)), In(DType::kF32, {300, 200}, Between(1, 1.1L)), Flag(false)});
}
void SampleTfScatterAdd(Calls& calls) {
  SampleTuples<false>(calls);
  calls.Add({In(DType::kF32, {4, 3}), In(DType::kI64, {2, 3}, Whole(0, 3)), In(DType::kF32, {2, 3, 3})}).label = "rows";
}
enum RowAction { kRowAdd, kRowDiv, kRowMul, kRowMax, kRowMin };
template <RowAction kAction>
void OracleRows(HostCall& call) {
  const Host &self = call.In("varRef"), &indices = call.In("indices"), &data = call.In("updates");
  Host& out = call.Out("varRef");
  const int64_t row = self.size() / self.dims[0];
  Checked<Real> hits(static_cast<size_t>(self.size()));
  for (int64_t i = 0; i < data.size(); ++i) {
    const int64_t place = Place(indices, i / row, self.dims[0], false);
    if (place < 0) continue;
    Number& target = out[place * row + i % row];
    ++hits[static_cast<size_t>(place * row + i % row)];
    const Real a = target.real(), b = data.real(i);
    if (kAction == kRowAdd) target = a + b;
    if (kAction == kRowMul) target = a * b;
    if (kAction == kRowMax) target = std::max(a, b);
    if (kAction == kRowMin) target = std::min(a, b);
    if (kAction == kRowDiv) target = !IsInteger(self.dtype) ? a / b : b == 0 ? a : std::trunc(a / b);
    if (IsInteger(self.dtype)) target = Rounded(DType::kI64, target);
  }
  if (IsInteger(self.dtype)) return;
  for (int64_t i = 0; i < out.size(); ++i) {
    out.slack.push_back(std::isfinite(out.real(i)) ? 2 * hits[static_cast<size_t>(i)] * UlpOf(DType::kF32, std::abs(out[i])) : 0);
  }
}
void OracleTfScatterAdd(HostCall& call) {
  const Host &indices = call.In("indices"), &data = call.In("updates"), &self = call.In("varRef");
  const int64_t k = indices.dims[indices.dims.rank() - 1];
  const int places = indices.dims.rank() - 1;
  bool tuples = k <= self.dims.rank() && data.dims.rank() == places + self.dims.rank() - static_cast<int>(k);
  for (int i = 0; tuples && i < data.dims.rank(); ++i) tuples = data.dims[i] == (i < places ? indices.dims[i] : self.dims[i - places + static_cast<int>(k)]);
  if (tuples) OracleTuples<kAdd>(call);
  else OracleRows<kRowAdd>(call);
}

}  // namespace

std::span<const Subject> IndexingSubjects() {
  static const Subject subjects[] = {
      {"aclnnEmbedding", SampleEmbedding, OracleEmbedding, {.ulps = 0}},
      {"aclnnGather", SampleGather, OracleGather, {.ulps = 0}},
      {"aclnnGatherNd", SampleGatherNd, OracleGatherNd, {.ulps = 0}},
      {"aclnnGatherV2", SampleGatherV2, OracleSelect<true>, {.ulps = 0}},
      {"aclnnGatherV3", SampleGatherV3, OracleGatherV3, {.ulps = 0}},
      {"aclnnIndexAdd", SampleIndexAdd<false>, OracleIndexAdd<false>, {.ulps = 0}},
      {"aclnnIndexAddV2", SampleIndexAdd<true>, OracleIndexAdd<true>, {.ulps = 0}},
      {"aclnnIndexCopy", SampleIndexCopy, OracleIndexCopy, {.ulps = 0}},
      {"aclnnIndexFill", SampleIndexFill<false>, OracleIndexFill<false>, {.ulps = 0}},
      {"aclnnIndexFillTensor", SampleIndexFill<true>, OracleIndexFill<true>, {.ulps = 0}},
      {"aclnnIndexSelect", SampleSelect, OracleSelect<false>, {.ulps = 0}},
      {"aclnnInplaceIndexCopy", SampleIndexCopy, OracleIndexCopy, {.ulps = 0}},
      {"aclnnInplaceIndexFill", SampleIndexFill<false>, OracleIndexFill<false>, {.ulps = 0}},
      {"aclnnInplaceIndexFillTensor", SampleIndexFill<true>, OracleIndexFill<true>, {.ulps = 0}},
      {"aclnnInplacePut", SamplePut, OraclePut, {.ulps = 0}},
      {"aclnnInplaceScatter", SampleScatter<false, true, false>, OracleScatter<false, -1>, {.ulps = 0}},
      {"aclnnInplaceScatterReduce", SampleScatter<false, true, true>, OracleScatter<false, -2>, {.ulps = 0}},
      {"aclnnInplaceScatterValue", SampleScatter<true, true, false>, OracleScatter<true, -1>, {.ulps = 0}},
      {"aclnnScatter", SampleScatter<false, true, false>, OracleScatter<false, -1>, {.ulps = 0}},
      {"aclnnScatterAdd", SampleScatter<false, false, false>, OracleScatter<false, 1>, {.ulps = 0}},
      {"aclnnScatterDiv", SampleRows, OracleRows<kRowDiv>, {.ulps = 0}},
      {"aclnnScatterMax", SampleRows, OracleRows<kRowMax>, {.ulps = 0}},
      {"aclnnScatterMin", SampleRows, OracleRows<kRowMin>, {.ulps = 0}},
      {"aclnnScatterMul", SampleRows, OracleRows<kRowMul>, {.ulps = 0}},
      {"aclnnScatterNd", SampleTuples<true>, OracleTuples<kNone>, {.ulps = 0}},
      {"aclnnScatterNdUpdate", SampleTuples<false>, OracleTuples<kNone>, {.ulps = 0}},
      {"aclnnScatterReduce", SampleScatter<false, true, true>, OracleScatter<false, -2>, {.ulps = 0}},
      {"aclnnScatterValue", SampleScatter<true, true, false>, OracleScatter<true, -1>, {.ulps = 0}},
      {"aclnnTake", SampleTake, OracleTake, {.ulps = 0}},
      {"aclnnTfScatterAdd", SampleTfScatterAdd, OracleTfScatterAdd, {.ulps = 0}},
  };
  return subjects;
}

}  // namespace anyacl::harness
