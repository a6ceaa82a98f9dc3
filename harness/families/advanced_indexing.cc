// SPDX-License-Identifier: Apache-2.0
// Copyright The AnyACL Authors
//
// Lists of index tensors, masks, counts.
#include <algorithm>

#include "harness/family.h"

namespace anyacl::harness {
namespace {

using At = Checked<int64_t>;

// --- Index, IndexPutImpl -------------------------------------------------------------------------

// An index tensor or a mask as the list of coordinates it names on the dims from `axis` on.
struct Named {
  int axis;
  Checked<Checked<int64_t>> coordinates;  // per dim, one per place
  Dims places;
};

std::vector<Named> NamedBy(HostCall& call, Dims self) {
  if (self.rank() == 0) self = {1};
  std::vector<Named> list;
  int axis = 0;
  for (int k = 0; k < call.Count("indices"); ++k) {
    const Host& entry = call.In("indices", k);
    if (entry.size() == 0) {
      ++axis;
      continue;
    }
    Named named{axis, {}, entry.dims};
    if (entry.dtype == DType::kBool) {
      named.coordinates.resize(static_cast<size_t>(entry.dims.rank()));
      for (int64_t i = 0; i < entry.size(); ++i) {
        if (entry[i] == Number(0)) continue;
        for (int d = 0; d < entry.dims.rank(); ++d) named.coordinates[static_cast<size_t>(d)].push_back(entry.Position(i)[static_cast<size_t>(d)]);
      }
      named.places = {static_cast<int64_t>(named.coordinates[0].size())};
    } else {
      named.coordinates.resize(1);
      for (int64_t i = 0; i < entry.size(); ++i) {
        const int64_t at = static_cast<int64_t>(entry.real(i));
        named.coordinates[0].push_back(at < 0 ? at + self[axis] : at);
      }
    }
    axis += static_cast<int>(named.coordinates.size());
    list.push_back(std::move(named));
  }
  return list;
}

// For each element of the result, row-major, the element of self that it stands for; -1: outside of self.
struct Resolved {
  Dims dims;
  Checked<int64_t> from;
};

// How many places a mask has is the caller's promise: the shape of `expected`, where that is known.
Resolved Resolve(HostCall& call, const Host& self_host, const Dims* expected) {
  Host self = self_host;
  const std::vector<Named> list = NamedBy(call, self.dims);
  if (self.dims.rank() == 0 && !list.empty()) self.dims = {1};
  Checked<int> covered;
  int rank = 0;
  for (const Named& named : list) {
    for (size_t d = 0; d < named.coordinates.size(); ++d) covered.push_back(named.axis + static_cast<int>(d));
    rank = std::max(rank, named.places.rank());
  }
  At places(static_cast<size_t>(rank), 1);
  for (const Named& named : list) {
    for (int d = 0; d < named.places.rank(); ++d) {
      int64_t& size = places[static_cast<size_t>(rank - named.places.rank() + d)];
      if (size == 1) size = named.places[d];
    }
  }
  const bool neighbours = !covered.empty() && covered.back() - covered.front() + 1 == static_cast<int>(covered.size());
  const int at = neighbours ? covered.front() : 0;
  if (expected && rank > 0) places.back() = (*expected)[at + rank - 1];
  At holes;
  for (int d = 0; d < self.dims.rank(); ++d) {
    if (std::find(covered.begin(), covered.end(), d) == covered.end()) holes.push_back(d);
  }
  Resolved result;
  for (int d = 0; d < at; ++d) result.dims.push_back(self.dims[static_cast<int>(holes[static_cast<size_t>(d)])]);
  for (const int64_t size : places) result.dims.push_back(size);
  for (size_t d = static_cast<size_t>(at); d < holes.size(); ++d) result.dims.push_back(self.dims[static_cast<int>(holes[d])]);
  const Host shape{DType::kI64, result.dims, {}};
  for (int64_t i = 0; i < Numel(result.dims); ++i) {
    const At position = shape.Position(i);
    At from(static_cast<size_t>(self.dims.rank()));
    bool inside = true;
    for (const Named& named : list) {
      int64_t place = 0;
      for (int d = 0; d < named.places.rank(); ++d) {
        const int64_t p = position[static_cast<size_t>(at + rank - named.places.rank() + d)];
        place = place * named.places[d] + (named.places[d] == 1 ? 0 : p);
      }
      for (size_t d = 0; d < named.coordinates.size(); ++d) {
        const int axis = named.axis + static_cast<int>(d);
        const bool known = place < static_cast<int64_t>(named.coordinates[d].size());
        from[static_cast<size_t>(axis)] = known ? named.coordinates[d][static_cast<size_t>(place)] : -1;
        inside = inside && from[static_cast<size_t>(axis)] >= 0 && from[static_cast<size_t>(axis)] < self.dims[axis];
      }
    }
    for (size_t d = 0; d < holes.size(); ++d) {
      from[static_cast<size_t>(holes[d])] = position[d < static_cast<size_t>(at) ? d : d + static_cast<size_t>(rank)];
    }
    result.from.push_back(inside ? self.Index(from) : -1);
  }
  return result;
}

TestArg Hole(DType t) { return In(t, {0}); }
// A mask of `dims` with the given elements set.
TestArg Mask(const Dims& dims, const At& set) {
  Checked<Number> bits(static_cast<size_t>(Numel(dims)));
  for (const int64_t i : set) bits[static_cast<size_t>(i)] = 1;
  return In(DType::kBool, dims, Given(bits));
}

struct Sample {
  Dims self;
  std::vector<TestArg> entries;
  Dims result;
  const char* label = "";
};

std::vector<Sample> SamplesOf(DType t) {
  constexpr DType i64 = DType::kI64, i32 = DType::kI32;
  return {
      {{4, 3}, {In(i64, {5}, Whole(-5, 4))}, {5, 3}, "rows, some outside"},
      {{2, 3, 4}, {In(i64, {5}, Whole(0, 1)), Hole(t), In(i32, {5}, Whole(-4, 3))}, {5, 3}, "apart"},
      {{2, 3, 4}, {Hole(i64), In(i64, {5}, Whole(0, 2)), In(i64, {5}, Whole(0, 3))}, {2, 5}, "behind a hole"},
      {{2, 3, 4}, {Hole(t), In(i64, {2, 1}, Whole(-3, 2))}, {2, 2, 1, 4}, "between"},
      {{4, 5}, {In(i64, {3, 1}, Whole(0, 3)), In(i64, {4}, Whole(0, 4))}, {3, 4}, "grid"},
      {{4, 5}, {In(i64, {}, Whole(0, 3))}, {5}, "one place"},
  };
}
std::vector<Sample> MaskSamples() {
  constexpr DType i64 = DType::kI64;
  return {
      {{4, 3}, {Mask({4}, {0, 2, 3})}, {3, 3}, "mask of rows"},
      {{2, 3, 4}, {Mask({2, 3}, {1, 2, 5})}, {3, 4}, "mask of two dims"},
      {{2, 3, 4}, {Hole(i64), Mask({3, 4}, {0, 3, 7, 11})}, {2, 4}, "mask behind a hole"},
      {{2, 3, 4}, {Mask({2}, {1}), Hole(i64), In(i64, {3}, Whole(0, 3))}, {3, 3}, "mask of one and places"},
      {{3, 4}, {Mask({3}, {0, 2}), Mask({4}, {1, 3})}, {2}, "two masks"},
      {{50000}, {Mask({50000}, {0, 7, 40000, 49999})}, {4}, "long mask"},
  };
}

void SampleIndex(Calls& calls) {
  const auto add = [&](DType t, const Sample& s) { calls.Add({In(t, s.self), List(s.entries), Out(t, s.result)}, s.label); };
  for (DType t : calls.TypesOf("self")) {
    for (const Sample& s : SamplesOf(t)) add(t, s);
  }
  for (const Sample& s : MaskSamples()) add(DType::kF32, s);
  add(DType::kF32, {{}, {In(DType::kI64, {2, 3}, Whole(0, 0))}, {2, 3}, "of one element"});
  add(DType::kF32, {{3, 2}, {Hole(DType::kF32)}, {3, 2}, "all"});
  add(DType::kF32, {{3, 2}, {In(DType::kI64, {0})}, {0, 2}, "nothing"});
  add(DType::kI64, {{300, 70}, {In(DType::kI64, {900}, Whole(0, 299)), In(DType::kI64, {900}, Whole(0, 69))}, {900}, "many"});
}
void OracleIndex(HostCall& call) {
  const Host& self = call.In("self");
  Host& out = call.Out("out");
  if (out.size() == 0) return;
  const Resolved resolved = Resolve(call, self, &out.dims);
  for (int64_t i = 0; i < out.size(); ++i) {
    const int64_t from = resolved.from[static_cast<size_t>(i)];
    out[i] = from < 0 ? Number(0) : self[from];
  }
}

void SampleIndexPut(Calls& calls) {
  const auto add = [&](DType t, const Sample& s, const Dims& values, bool accumulate) {
    bool holes = false;
    for (const TestArg& entry : s.entries) holes = holes || entry.spec.tensor.dims == Dims{0};
    TestArg entries = List(s.entries);
    if (holes) entries.layout = "dense";  // in a larger storage they would stand for no place at all
    calls.Add({In(t, s.self), entries, In(t, values), Flag(accumulate), Flag(false)}, s.label);
  };
  for (DType t : calls.TypesOf("selfRef")) {
    for (const Sample& s : SamplesOf(t)) {
      add(t, s, s.result, false);
      add(t, s, s.result, true);
    }
  }
  for (const Sample& s : MaskSamples()) {
    add(DType::kF32, s, s.result, false);
    add(DType::kF32, s, {1}, true);
  }
  constexpr DType f = DType::kF32, i64 = DType::kI64;
  add(f, {{4, 3}, {In(i64, {5}, Whole(0, 3))}, {5, 3}, "repeated"}, {5, 1}, true);
  add(f, {{4, 3}, {In(i64, {5}, Whole(0, 3))}, {5, 3}, "one value"}, {}, false);
  add(f, {{}, {In(i64, {3}, Whole(0, 0))}, {3}, "of one element"}, {3}, true);
  add(f, {{4, 3}, {Hole(f), Hole(f)}, {4, 3}, "no entries"}, {1}, false);
  add(f, {{4, 3}, {In(i64, {0, 2}), In(i64, {1}, Whole(0, 2))}, {4}, "no places"}, {1}, false);
  add(DType::kF16, {{2}, {In(i64, {3000}, Whole(0, 0))}, {3000}, "long sum"}, {3000}, true);
  add(f, {{40, 200}, {In(i64, {500}, Whole(0, 39))}, {500, 200}, "many"}, {500, 200}, true);
}
void OracleIndexPut(HostCall& call) {
  const Host self = call.In("selfRef");
  Host& out = call.Out("selfRef");
  const bool adds = call.Flag("accumulate");
  bool names = false;
  for (int k = 0; k < call.Count("indices"); ++k) {
    const Host& entry = call.In("indices", k);
    if (entry.size() == 0 && !(entry.dims == Dims{0})) return;
    names = names || entry.size() > 0;
  }
  if (!names) return;
  const Dims& values = call.In("values").dims;
  const Resolved resolved = Resolve(call, self, values == Dims{1} || values.rank() == 0 ? nullptr : &values);
  Checked<Real> magnitude(static_cast<size_t>(self.size())), hits(magnitude.size());
  for (size_t i = 0; i < resolved.from.size(); ++i) {
    const int64_t to = resolved.from[i];
    if (to < 0) continue;
    const Number value = call.In("values").Broadcast(resolved.dims, static_cast<int64_t>(i));
    out[to] = adds ? out[to] + value : value;
    hits[static_cast<size_t>(to)] += adds;
    magnitude[static_cast<size_t>(to)] += std::abs(value);
  }
  if (IsInteger(out.dtype) || out.dtype == DType::kBool) return;
  const bool wide = out.dtype == DType::kF64 || out.dtype == DType::kC128;
  for (size_t i = 0; i < hits.size(); ++i) {
    out.slack.push_back(hits[i] * UlpOf(wide ? DType::kF64 : DType::kF32, magnitude[i] + std::abs(self.values[i])));
  }
}

// --- masks ---------------------------------------------------------------------------------------

void SampleMaskedSelect(Calls& calls) {
  const auto add = [&](DType t, const Dims& self, const TestArg& mask, DType out, int64_t count) {
    calls.Add({In(t, self), mask, Out(out, {count}).Layout("dense")});
  };
  for (DType t : calls.TypesOf("self")) {
    add(t, {3, 4}, In(DType::kBool, {3, 4}, Whole(0, 1)), t, 12);
    add(t, {3, 1}, In(DType::kU8, {4}, Whole(0, 3)), t, 12);
    add(t, {4}, In(DType::kBool, {2, 1}, Whole(0, 1)), IsComplex(t) ? t : DType::kF64, 8);
  }
  add(DType::kF32, {}, In(DType::kBool, {}, Whole(1, 1)), DType::kF32, 1);
  add(DType::kF32, {5}, In(DType::kBool, {5}, Whole(0, 0)), DType::kF32, 5);
  add(DType::kF32, {0}, In(DType::kBool, {1}, Whole(1, 1)), DType::kF32, 0);
  add(DType::kF32, {400, 300}, In(DType::kBool, {400, 300}, Whole(0, 1)), DType::kF32, 120000);
}
void OracleMaskedSelect(HostCall& call) {
  const Host &self = call.In("self"), &mask = call.In("mask");
  Host& out = call.Out("out");
  Dims dims;
  for (int i = std::max(self.dims.rank(), mask.dims.rank()); i > 0; --i) {
    const int64_t a = i <= self.dims.rank() ? self.dims[self.dims.rank() - i] : 1;
    const int64_t b = i <= mask.dims.rank() ? mask.dims[mask.dims.rank() - i] : 1;
    dims.push_back(a == 1 ? b : a);
  }
  out.values.clear();
  for (int64_t i = 0; i < Numel(dims); ++i) {
    if (mask.Broadcast(dims, i) != Number(0)) out.values.push_back(self.Broadcast(dims, i));
  }
}

void SampleMaskedScatter(Calls& calls) {
  for (DType t : calls.TypesOf("selfRef")) {
    calls.Add({In(t, {3, 4}), In(DType::kBool, {3, 4}, Whole(0, 1)), In(t, {12})});
    calls.Add({In(t, {3, 4}), In(DType::kU8, {4}, Whole(0, 2)), In(t, {2, 2})});
  }
  calls.Add({In(DType::kF32, {}), In(DType::kBool, {}, Whole(1, 1)), In(DType::kF32, {1})});
  calls.Add({In(DType::kF32, {0}), In(DType::kBool, {1}), In(DType::kF32, {1})});
  calls.Add({In(DType::kF32, {300, 250}), In(DType::kBool, {300, 250}, Whole(0, 1)), In(DType::kF32, {250, 300})});
}
void OracleMaskedScatter(HostCall& call) {
  const Host &mask = call.In("mask"), &source = call.In("source");
  Host& out = call.Out("selfRef");
  int64_t taken = 0;
  for (int64_t i = 0; i < out.size(); ++i) {
    if (mask.Broadcast(out.dims, i) != Number(0) && taken < source.size()) out[i] = source[taken++];
  }
}

// --- RepeatInterleave ----------------------------------------------------------------------------

void SampleRepeat(Calls& calls) {
  for (DType t : calls.TypesOf("self")) {
    calls.Add({In(t, {2, 2}), In(DType::kI64, {4}, Given({1, 0, 3, 2})), Int(6), Out(t, {6})});
    calls.Add({In(t, {3}), In(DType::kI32, {1}, Given({2})), Int(6), Out(t, {6})});
  }
  const DType f = DType::kF32;
  calls.Add({In(f, {3}), In(DType::kI64, {}, Given({2})), Int(6), Out(f, {6})});
  calls.Add({In(f, {3}), In(DType::kI64, {3}, Given({1, -4, 9})), Int(4), Out(f, {4})}, "more than there is room for");
  calls.Add({In(f, {3}), In(DType::kI64, {3}, Given({1, 1, 1})), Int(5), Out(f, {5})}, "less");
  calls.Add({In(f, {0}), In(DType::kI64, {0}), Int(0), Out(f, {0})});
  calls.Add({In(f, {300, 20}), In(DType::kI64, {6000}, Whole(0, 9)), Int(26000), Out(f, {26000})});
}
void SampleRepeatDim(Calls& calls) {
  for (DType t : calls.TypesOf("self")) {
    calls.Add({In(t, {2, 3, 2}), In(DType::kI64, {3}, Given({1, 0, 3})), Int(1), Int(4), Out(t, {2, 4, 2})});
    calls.Add({In(t, {2, 3}), In(DType::kI32, {1}, Given({2})), Int(-1), Int(6), Out(t, {2, 6})});
  }
  const DType f = DType::kF32;
  calls.Add({In(f, {2, 3}), In(DType::kI64, {2}, Given({2, 2})), Int(0), Int(4), Out(f, {4, 3})});
  calls.Add({In(f, {0, 3}), In(DType::kI64, {0}), Int(0), Int(0), Out(f, {0, 3})});
  calls.Add({In(f, {700, 60}), In(DType::kI64, {700}, Whole(0, 4)), Int(0), Int(1500), Out(f, {1500, 60})});
}
void SampleRepeatTensor(Calls& calls) {
  for (DType t : calls.TypesOf("repeats")) {
    calls.Add({In(t, {4}, Given({1, 0, 3, -2})), Int(4), Out(t, {4})});
    calls.Add({In(t, {4}, Given({1, 0, 3, 2})), Int(9), Out(t, {9})});
    calls.Add({In(t, {0}), Int(0), Out(t, {0})});
    calls.Add({In(t, {1}, Given({3})), Int(3), Out(t, {3})});
  }
  calls.Add({In(DType::kI64, {5000}, Whole(0, 9)), Int(22000), Out(DType::kI64, {22000})});
}

// Which item each place is; -1 behind the last.
Checked<int64_t> ItemsAt(const Host& repeats, int64_t items, int64_t places) {
  Checked<int64_t> result;
  for (int64_t i = 0; i < items; ++i) {
    const int64_t count = static_cast<int64_t>(repeats.real(repeats.size() == 1 ? 0 : i));
    for (int64_t k = 0; k < count && static_cast<int64_t>(result.size()) < places; ++k) result.push_back(i);
  }
  result.resize(static_cast<size_t>(places), -1);
  return result;
}
void OracleRepeat(HostCall& call) {
  Host self = call.In("self");
  Host& out = call.Out("out");
  if (!call.HasArg("dim")) self.dims = {self.size()};
  const int64_t dim_arg = call.HasArg("dim") ? call.Int("dim") : 0;
  const size_t dim = static_cast<size_t>(dim_arg < 0 ? dim_arg + self.dims.rank() : dim_arg);
  const Checked<int64_t> items = ItemsAt(call.In("repeats"), self.dims[static_cast<int>(dim)], call.Int("outputSize"));
  for (int64_t i = 0; i < out.size(); ++i) {
    At at = out.Position(i);
    at[dim] = items[static_cast<size_t>(at[dim])];
    out[i] = at[dim] < 0 ? Number(0) : self[self.Index(at)];
  }
}
void OracleRepeatTensor(HostCall& call) {
  const Host& repeats = call.In("repeats");
  Host& out = call.Out("out");
  const Checked<int64_t> items = ItemsAt(repeats, repeats.size(), out.size());
  for (int64_t i = 0; i < out.size(); ++i) out[i] = static_cast<Real>(std::max<int64_t>(0, items[static_cast<size_t>(i)]));
}

void SampleRepeatGrad(Calls& calls) {
  for (DType t : calls.TypesOf("yGrad")) {
    calls.Add({In(t, {2, 6}), In(DType::kI64, {4}, Given({1, 2, 2, 1})), Int(-1), Out(t, {2, 4})});
    calls.Add({In(t, {6, 2}), In(DType::kI32, {3}, Given({1, 0, 5})), Int(0), Out(t, {3, 2})});
    calls.Add({In(t, {6, 2}), In(DType::kI64, {1}, Given({3})), Int(0), Out(t, {2, 2})});
  }
  calls.Add({In(DType::kF32, {2, 6}), In(DType::kI64, {4}, Given({1, 2, 2, 1})), Int(-1), Out(DType::kF32, {8})}, "other dims");
  calls.Add({In(DType::kF32, {2, 0}), In(DType::kI64, {2}, Given({0, 0})), Int(1), Out(DType::kF32, {2, 2})}, "of nothing");
  calls.Add({In(DType::kF16, {3000}, Given({1})), In(DType::kI64, {1}, Given({3000})), Int(0), Out(DType::kF16, {1})}, "long sum");
}
void OracleRepeatGrad(HostCall& call) {
  const Host &grad = call.In("yGrad"), &repeats = call.In("repeats");
  Host& out = call.Out("out");
  const int axis = static_cast<int>(call.Int("axis") < 0 ? call.Int("axis") + grad.dims.rank() : call.Int("axis"));
  Host sums{out.dtype, grad.dims, {}};
  sums.dims[axis] = 1;
  sums.dims[axis] = repeats.size() > 1 ? repeats.size() : out.size() / Numel(sums.dims);
  const Checked<int64_t> items = ItemsAt(repeats, sums.dims[axis], grad.dims[axis]);
  out.values.assign(static_cast<size_t>(out.size()), 0);
  out.slack.assign(static_cast<size_t>(out.size()), 0);
  for (int64_t i = 0; i < grad.size(); ++i) {
    At at = grad.Position(i);
    at[static_cast<size_t>(axis)] = items[static_cast<size_t>(at[static_cast<size_t>(axis)])];
    if (at[static_cast<size_t>(axis)] < 0) continue;
    const int64_t to = sums.Index(at);
    out[to] += grad[i];
    out.slack[static_cast<size_t>(to)] += UlpOf(out.dtype == DType::kF64 ? DType::kF64 : DType::kF32, 2 * static_cast<Real>(grad.dims[axis]));
  }
}

}  // namespace

std::span<const Subject> AdvancedIndexingSubjects() {
  static const Subject subjects[] = {
      {"aclnnIndex", SampleIndex, OracleIndex, {.ulps = 0}},
      {"aclnnIndexPutImpl", SampleIndexPut, OracleIndexPut, {.ulps = 0}},
      {"aclnnInplaceMaskedScatter", SampleMaskedScatter, OracleMaskedScatter, {.ulps = 0}},
      {"aclnnMaskedSelect", SampleMaskedSelect, OracleMaskedSelect, {.ulps = 0, .partial = true}},
      {"aclnnRepeatInterleave", SampleRepeat, OracleRepeat, {.ulps = 0}},
      {"aclnnRepeatInterleaveGrad", SampleRepeatGrad, OracleRepeatGrad, {.ulps = 0}},
      {"aclnnRepeatInterleaveTensor", SampleRepeatTensor, OracleRepeatTensor, {.ulps = 0}},
      {"aclnnRepeatInterleaveWithDim", SampleRepeatDim, OracleRepeat, {.ulps = 0}},
  };
  return subjects;
}

}  // namespace anyacl::harness
