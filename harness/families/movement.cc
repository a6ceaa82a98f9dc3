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

// out[at] = source(at) for every position.
void Fill(Host& out, const std::function<Number(const At&)>& source) {
  for (int64_t i = 0; i < out.size(); ++i) out[i] = source(out.Position(i));
}
int64_t Wrap(int64_t axis, int rank) { return axis < 0 ? axis + std::max(rank, 1) : axis; }

// --- copy ----------------------------------------------------------------------------------------

void SampleInplaceCopy(Calls& calls) {
  for (DType to : calls.TypesOf("selfRef")) {
    for (DType from : calls.TypesOf("src")) {
      calls.Add({Out(to, {3, 7}), In(from, {7}, Between(-300, 300))});
      if (from != DType::kF32 && to == from) calls.Add({Out(to, {65}), In(from, {65}, Hostile())});
    }
    calls.Add({Out(to, {0, 3}), In(to, {3})});
    calls.Add({Out(to, {2, 3}), In(to, {})});
    calls.Add({Out(to, {}), In(to, {})});
  }
  calls.Add({Out(DType::kBF16, {250, 200}), In(DType::kF32, {250, 200})});
  calls.Add({Out(DType::kF32, {2, 3, 4}), In(DType::kF32, {2, 3, 4})});
}

void OracleInplaceCopy(HostCall& call) {
  Host& out = call.Out("selfRef");
  for (int64_t i = 0; i < out.size(); ++i) out[i] = call.In("src").Broadcast(out.dims, i);
}

// --- join ----------------------------------------------------------------------------------------

void SampleCat(Calls& calls) {
  for (DType t : calls.TypesOf("tensors")) {
    calls.Add({List({In(t, {2, 3}), In(t, {2, 1}), In(t, {0}), In(t, {2, 4})}), Int(1), Out(t, {2, 8})});
    calls.Add({List({In(t, {4}, Hostile()), In(t, {1}, Hostile())}), Int(-1), Out(t, {5})});
    calls.Add({List({In(t, {2, 0}), In(t, {3, 0})}), Int(0), Out(t, {5, 0})});
  }
  calls.Add({List({In(DType::kF32, {2, 2}), In(DType::kF32, {0}), In(DType::kI32, {1, 2})}), Int(0), Out(DType::kF32, {3, 2})});
  calls.Add({List({In(DType::kI64, {2}, Given({16777217, 5})), In(DType::kF32, {1})}), Int(0), Out(DType::kF64, {3})});
  calls.Add({List({In(DType::kU16, {2}), In(DType::kF16, {1})}), Int(0), Out(DType::kF16, {3})});
  calls.Add({List({In(DType::kI32, {2}), In(DType::kBool, {1})}), Int(0), Out(DType::kF32, {3})});
  calls.Add({List({In(DType::kF32, {0}), In(DType::kF32, {0})}), Int(0), Out(DType::kF32, {0})});
  calls.Add({List({In(DType::kF32, {200, 100}), In(DType::kF32, {200, 130})}), Int(1), Out(DType::kF32, {200, 230})});
}

void OracleCat(HostCall& call) {
  Host& out = call.Out("out");
  const int64_t dim = Wrap(call.Int("dim"), out.dims.rank());
  Fill(out, [&](At at) {
    for (int item = 0; item < call.Count("tensors"); ++item) {
      const Host& t = call.In("tensors", item);
      if (t.dims == Dims{0}) continue;
      if (at[dim] < t.dims[static_cast<int>(dim)]) return t[t.Index(at)];
      at[dim] -= t.dims[static_cast<int>(dim)];
    }
    return Number(-1);
  });
}

void SampleStack(Calls& calls) {
  for (DType t : calls.TypesOf("tensors")) {
    calls.Add({List({In(t, {2, 3}), In(t, {2, 3}), In(t, {2, 3})}), Int(1), Out(t, {2, 3, 3})});
    calls.Add({List({In(t, {}), In(t, {})}), Int(-1), Out(t, {2})});
    calls.Add({List({In(t, {0, 2})}), Int(0), Out(t, {1, 0, 2})});
  }
  calls.Add({List({In(DType::kF16, {3}), In(DType::kI32, {3})}), Int(0), Out(DType::kF32, {2, 3})});
  calls.Add({List({In(DType::kF32, {150, 120}), In(DType::kF32, {150, 120})}), Int(-3), Out(DType::kF32, {2, 150, 120})});
}

void OracleStack(HostCall& call) {
  Host& out = call.Out("out");
  const int64_t dim = Wrap(call.Int("dim"), out.dims.rank());
  Fill(out, [&](At at) {
    const Host& t = call.In("tensors", static_cast<int>(at[dim]));
    at.erase(at.begin() + dim);
    return t[t.Index(at)];
  });
}

void SampleChunkCat(Calls& calls) {
  for (DType t : calls.TypesOf("tensors")) {
    calls.Add({List({In(t, {3, 2}), In(t, {2, 1})}), Int(0), Int(2), Out(t, {2, 5})});
    calls.Add({List({In(t, {5}), In(t, {7, 2, 3}), In(t, {0})}), Int(0), Int(3), Out(t, {3, 20})});
    calls.Add({List({In(t, {0, 3})}), Int(0), Int(2), Out(t, {2, 0})});
  }
  calls.Add({List({In(DType::kF16, {3, 2}), In(DType::kF16, {8, 2})}), Int(0), Int(5), Out(DType::kF32, {5, 6})});
  calls.Add({List({In(DType::kF32, {400, 100}), In(DType::kF32, {10})}), Int(0), Int(7), Out(DType::kF32, {7, 5802})});
}

void OracleChunkCat(HostCall& call) {
  Host& out = call.Out("out");
  const int64_t chunks = call.Int("numChunks");
  Fill(out, [&](const At& at) {
    int64_t column = at[1];
    for (int item = 0; item < call.Count("tensors"); ++item) {
      const Host& t = call.In("tensors", item);
      if (t.size() == 0) continue;
      const int64_t rows = (t.dims[0] + chunks - 1) / chunks, row = t.size() / t.dims[0];
      if (column < rows * row) {
        const int64_t i = at[0] * rows * row + column;
        return i < t.size() ? t[i] : Number(0);
      }
      column -= rows * row;
    }
    return Number(-1);
  });
}

void SampleSplitTensor(Calls& calls) {
  for (DType t : calls.TypesOf("self")) {
    calls.Add({In(t, {2, 5}), Int(2), Int(1), List({Out(t, {2, 2}), Out(t, {2, 2}), Out(t, {2, 1})})});
    calls.Add({In(t, {4}), Int(7), Int(-1), List({Out(t, {4})})});
    calls.Add({In(t, {0, 2}), Int(0), Int(0), List({Out(t, {0, 2})})});
  }
  calls.Add({In(DType::kF32, {3, 5}), Int(2), Int(0), List({Out(DType::kF16, {2, 5}), Out(DType::kF16, {1, 5})})});
  calls.Add({In(DType::kF32, {300, 120}), Int(250), Int(0), List({Out(DType::kF32, {250, 120}), Out(DType::kF32, {50, 120})})});
}
void SampleSplitWithSize(Calls& calls) {
  for (DType t : calls.TypesOf("self")) {
    calls.Add({In(t, {2, 5}), Ints({1, 0, 4}), Int(1), List({Out(t, {2, 1}), Out(t, {2, 0}), Out(t, {2, 4})})});
    calls.Add({In(t, {4}), Ints({4}), Int(-1), List({Out(t, {4})})});
    calls.Add({In(t, {0, 2}), Ints({0}), Int(0), List({Out(t, {0, 2})})});
  }
  calls.Add({In(DType::kF32, {3, 5}), Ints({2, 1}), Int(0), List({Out(DType::kF16, {2, 5}), Out(DType::kBF16, {1, 5})})});
  calls.Add({In(DType::kF32, {300, 120}), Ints({250, 50}), Int(0), List({Out(DType::kF32, {250, 120}), Out(DType::kF32, {50, 120})})});
}

void OracleSplit(HostCall& call) {
  const Host& self = call.In("self");
  const int dim = static_cast<int>(Wrap(call.Int("dim"), self.dims.rank()));
  int64_t before = 0;
  for (int item = 0; item < call.Count("out"); ++item) {
    Host& out = call.Out("out", item);
    Fill(out, [&](At at) {
      at[static_cast<size_t>(dim)] += before;
      return self[self.Index(at)];
    });
    before += out.dims[dim];
  }
}

// --- slices --------------------------------------------------------------------------------------

void SampleSlice(Calls& calls) {
  for (DType t : calls.TypesOf("self")) {
    calls.Add({In(t, {3, 10}), Int(1), Int(1), Int(9), Int(3), Out(t, {3, 3})});
    calls.Add({In(t, {5, 2}), Int(-2), Int(-3), Int(99), Int(1), Out(t, {3, 2})});
  }
  calls.Add({In(DType::kF32, {5}), Int(0), Int(4), Int(2), Int(1), Out(DType::kF32, {0})});
  calls.Add({In(DType::kF32, {5}), Int(0), Int(-99), Int(-1), Int(2), Out(DType::kF32, {2})});
  calls.Add({In(DType::kF32, {300, 300}), Int(1), Int(7), Int(293), Int(2), Out(DType::kF32, {300, 143})});
}
int64_t Clamped(int64_t at, int64_t size) { return std::min(std::max<int64_t>(at < 0 ? at + size : at, 0), size); }
void OracleSlice(HostCall& call) {
  const Host& self = call.In("self");
  const int dim = static_cast<int>(Wrap(call.Int("dim"), self.dims.rank()));
  const int64_t start = Clamped(call.Int("start"), self.dims[dim]), step = call.Int("step");
  Fill(call.Out("out"), [&](At at) {
    at[static_cast<size_t>(dim)] = start + at[static_cast<size_t>(dim)] * step;
    return self[self.Index(at)];
  });
}

void SampleSliceV2(Calls& calls) {
  for (DType t : calls.TypesOf("self")) {
    calls.Add({In(t, {3, 10, 4}), Ints({1, -3}), Ints({9, 3}), Ints({1, 0}), Ints({3, 2}), Out(t, {2, 3, 4})});
    calls.Add({In(t, {3, 2}), Ints({}), Ints({}), Ints({}), Ints({}), Out(t, {3, 2})});
  }
  calls.Add({In(DType::kF32, {}), Ints({}), Ints({}), Ints({}), Ints({}), Out(DType::kF32, {})});
}
void OracleSliceV2(HostCall& call) {
  const Host& self = call.In("self");
  Fill(call.Out("out"), [&](At at) {
    for (size_t i = 0; i < call.Ints("axes").size(); ++i) {
      const int axis = static_cast<int>(Wrap(call.Ints("axes")[i], self.dims.rank()));
      at[static_cast<size_t>(axis)] = Clamped(call.Ints("starts")[i], self.dims[axis]) + at[static_cast<size_t>(axis)] * call.Ints("steps")[i];
    }
    return self[self.Index(at)];
  });
}

void SampleStridedSlice(Calls& calls) {
  const auto add = [&](DType t, Dims in, Checked<int64_t> begin, Checked<int64_t> end, Checked<int64_t> strides,
                       Checked<int64_t> masks, Dims out) {
    calls.Add({In(t, in), Ints(begin), Ints(end), Ints(strides), Int(masks[0]), Int(masks[1]), Int(masks[2]), Int(masks[3]), Int(masks[4]),
               Out(t, out)});
  };
  for (DType t : calls.TypesOf("self")) {
    add(t, {4, 5, 6}, {1, 0, -1}, {3, 0, 0}, {1, 1, 1}, {0, 0, 2, 0, 4}, {2, 5});
    add(t, {4, 5}, {0, -1}, {4, 0}, {2, -2}, {0, 0, 0, 0, 0}, {2, 2});
  }
  add(DType::kF32, {4, 5}, {3, 0}, {0, 0}, {-1, 1}, {1, 3, 0, 0, 0}, {4, 5});
  add(DType::kF32, {4, 5}, {0, 1}, {0, 3}, {1, 1}, {0, 0, 0, 1, 0}, {1, 2, 5});
  add(DType::kF32, {4, 5}, {}, {}, {}, {0, 0, 0, 0, 0}, {4, 5});
  add(DType::kF32, {4}, {3}, {1}, {1}, {0, 0, 0, 0, 0}, {0});
  add(DType::kF32, {300, 200}, {-1, -2}, {0, -150}, {-1, -3}, {0, 2, 0, 0, 0}, {299, 67});
}
void OracleStridedSlice(HostCall& call) {
  const Host& self = call.In("self");
  const auto bit = [&](const char* mask, size_t i) { return (call.Int(mask) >> i & 1) != 0; };
  // Per axis of self, the places taken; -1 in `shown` marks a new axis of the result, others name the axis of self.
  Checked<Checked<int64_t>> places;
  Checked<int> shown;
  const size_t entries = call.Ints("begin").size();
  int named = 0;
  bool ellipsis = false;
  for (size_t i = 0; i < entries; ++i) {
    ellipsis = ellipsis || bit("ellipsisMask", i);
    named += !bit("ellipsisMask", i) && !bit("newAxisMask", i);
  }
  const auto whole = [&] {
    Checked<int64_t> all(static_cast<size_t>(self.dims[static_cast<int>(places.size())]));
    for (size_t k = 0; k < all.size(); ++k) all[k] = static_cast<int64_t>(k);
    shown.push_back(static_cast<int>(places.size()));
    places.push_back(all);
  };
  for (size_t i = 0; i < entries; ++i) {
    if (bit("ellipsisMask", i)) {
      for (int k = named; k < self.dims.rank(); ++k) whole();
    } else if (bit("newAxisMask", i)) {
      shown.push_back(-1);
    } else {
      const int64_t n = self.dims[static_cast<int>(places.size())], step = call.Ints("strides")[i];
      int64_t b = call.Ints("begin")[i], e = call.Ints("end")[i];
      if (bit("shrinkAxisMask", i)) {
        places.push_back({b < 0 ? b + n : b});
        continue;
      }
      if (b < 0) b += n;
      if (e < 0) e += n;
      if (bit("beginMask", i)) b = step > 0 ? 0 : n - 1;
      if (bit("endMask", i)) e = step > 0 ? n : -1;
      Checked<int64_t> taken;
      for (int64_t at = std::min(std::max<int64_t>(b, step > 0 ? 0 : -1), step > 0 ? n : n - 1); step > 0 ? at < std::min(e, n) : at > std::max<int64_t>(e, -1);
           at += step) {
        taken.push_back(at);
      }
      shown.push_back(static_cast<int>(places.size()));
      places.push_back(taken);
    }
  }
  while (static_cast<int>(places.size()) < self.dims.rank()) whole();
  Fill(call.Out("out"), [&](const At& at) {
    At from(places.size());
    for (size_t axis = 0; axis < places.size(); ++axis) from[axis] = places[axis].empty() ? 0 : places[axis][0];
    for (size_t i = 0; i < shown.size(); ++i) {
      if (shown[i] >= 0) from[static_cast<size_t>(shown[i])] = places[static_cast<size_t>(shown[i])][static_cast<size_t>(at[i])];
    }
    return self[self.Index(from)];
  });
}

void SampleStridedSliceAssign(Calls& calls) {
  for (DType t : calls.TypesOf("varRef")) {
    calls.Add({In(t, {4, 10}), In(t, {2, 3}), Ints({1, 0}), Ints({-1, 9}), Ints({1, 3}), Null()});
    calls.Add({In(t, {4, 10, 2}), In(t, {4, 10, 1}), Ints({-1}), Ints({99}), Ints({1}), Ints({-1})});
  }
}
void OracleStridedSliceAssign(HostCall& call) {
  Host& var = call.Out("varRef");
  const Host& value = call.In("inputValue");
  for (int64_t i = 0; i < value.size(); ++i) {
    At at = value.Position(i);
    for (size_t k = 0; k < call.Ints("begin").size(); ++k) {
      const int axis = call.Has("axesOptional") ? static_cast<int>(Wrap(call.Ints("axesOptional")[k], var.dims.rank())) : static_cast<int>(k);
      at[static_cast<size_t>(axis)] = Clamped(call.Ints("begin")[k], var.dims[axis]) + at[static_cast<size_t>(axis)] * call.Ints("strides")[k];
    }
    var[var.Index(at)] = value[i];
  }
}

void SampleFlip(Calls& calls) {
  for (DType t : calls.TypesOf("self")) {
    calls.Add({In(t, {3, 5}), Ints({1}), Out(t, {3, 5})});
    calls.Add({In(t, {3, 5}), Ints({-2, 1}), Out(t, {3, 5})}).same = {{2, 0}};
    calls.Add({In(t, {0, 5}), Ints({0}), Out(t, {0, 5})});
  }
  calls.Add({In(DType::kF32, {}), Ints({0}), Out(DType::kF32, {})});
  calls.Add({In(DType::kF32, {2, 3}), Ints({}), Out(DType::kF32, {2, 3})});
  calls.Add({In(DType::kF32, {200, 300}), Ints({0}), Out(DType::kF32, {200, 300})});
}
void OracleFlip(HostCall& call) {
  const Host& self = call.In("self");
  Fill(call.Out("out"), [&](At at) {
    for (const int64_t dim : call.Ints("dims")) {
      if (self.dims.rank() == 0) continue;
      const int axis = static_cast<int>(Wrap(dim, self.dims.rank()));
      at[static_cast<size_t>(axis)] = self.dims[axis] - 1 - at[static_cast<size_t>(axis)];
    }
    return self[self.Index(at)];
  });
}

void SampleRoll(Calls& calls) {
  for (DType t : calls.TypesOf("x")) {
    calls.Add({In(t, {3, 5}), Ints({2}), Ints({1}), Out(t, {3, 5})});
    calls.Add({In(t, {3, 5}), Ints({-7, 1, 1}), Ints({-1, 0, 0}), Out(t, {3, 5})});
    calls.Add({In(t, {2, 3}), Ints({1}), Ints({}), Out(t, {2, 3})});
  }
  calls.Add({In(DType::kF32, {}), Ints({3}), Ints({}), Out(DType::kF32, {})});
  calls.Add({In(DType::kF32, {0, 3}), Ints({1}), Ints({0}), Out(DType::kF32, {0, 3})});
  calls.Add({In(DType::kF32, {200, 300}), Ints({77, -1000}), Ints({0, 1}), Out(DType::kF32, {200, 300})});
}
void OracleRoll(HostCall& call) {
  const Host& x = call.In("x");
  Host& out = call.Out("out");
  const auto mod = [](int64_t a, int64_t n) { return ((a % n) + n) % n; };
  for (int64_t i = 0; i < x.size(); ++i) {
    if (call.Ints("dims").empty()) {
      out[mod(i + call.Ints("shifts")[0], x.size())] = x[i];
      continue;
    }
    At at = x.Position(i);
    for (size_t k = 0; k < call.Ints("dims").size(); ++k) {
      const int axis = static_cast<int>(Wrap(call.Ints("dims")[k], x.dims.rank()));
      at[static_cast<size_t>(axis)] = mod(at[static_cast<size_t>(axis)] + call.Ints("shifts")[k], x.dims[axis]);
    }
    out[out.Index(at)] = x[i];
  }
}

// --- layouts -------------------------------------------------------------------------------------

void SamplePermute(Calls& calls) {
  for (DType t : calls.TypesOf("self")) {
    calls.Add({In(t, {2, 3, 5}), Ints({2, 0, 1}), Out(t, {5, 2, 3})});
    calls.Add({In(t, {3, 3}), Ints({-1, 0}), Out(t, {3, 3})}).same = {{2, 0}};
  }
  calls.Add({In(DType::kF32, {}), Ints({}), Out(DType::kF32, {})});
  calls.Add({In(DType::kF32, {0, 3}), Ints({1, 0}), Out(DType::kF32, {3, 0})});
  calls.Add({In(DType::kF32, {200, 300}), Ints({1, 0}), Out(DType::kF32, {300, 200})});
}
void OraclePermute(HostCall& call) {
  const Host& self = call.In("self");
  Fill(call.Out("out"), [&](const At& at) {
    At from(at.size());
    for (size_t i = 0; i < at.size(); ++i) from[static_cast<size_t>(Wrap(call.Ints("dims")[i], self.dims.rank()))] = at[i];
    return self[self.Index(from)];
  });
}

void SampleExpand(Calls& calls) {
  for (DType t : calls.TypesOf("self")) calls.Add({In(t, {3, 1}), Ints({2, -1, 4}), Out(t, {2, 3, 4})});
  calls.Add({In(DType::kF32, {}), Ints({}), Out(DType::kF32, {})});
  calls.Add({In(DType::kF32, {1}), Ints({0}), Out(DType::kF32, {0})});
  calls.Add({In(DType::kF32, {300}), Ints({200, 300}), Out(DType::kF32, {200, 300})});
}
void OracleExpand(HostCall& call) {
  Host& out = call.Out("out");
  for (int64_t i = 0; i < out.size(); ++i) out[i] = call.In("self").Broadcast(out.dims, i);
}

void SampleRepeat(Calls& calls) {
  for (DType t : calls.TypesOf("self")) {
    calls.Add({In(t, {3, 2}), Ints({2, 1, 3}), Out(t, {2, 3, 6})});
    calls.Add({In(t, {}), Ints({3}), Out(t, {3})});
  }
  calls.Add({In(DType::kF32, {}), Ints({}), Out(DType::kF32, {})});
  calls.Add({In(DType::kF32, {2, 3}), Ints({0, 2}), Out(DType::kF32, {0, 6})});
  calls.Add({In(DType::kF32, {100, 30}), Ints({3, 5}), Out(DType::kF32, {300, 150})});
}
void OracleRepeat(HostCall& call) {
  const Host& self = call.In("self");
  Fill(call.Out("out"), [&](const At& at) {
    At from(at.end() - self.dims.rank(), at.end());
    for (size_t i = 0; i < from.size(); ++i) from[i] %= self.dims[static_cast<int>(i)];
    return self[self.Index(from)];
  });
}

void SampleFlatten(Calls& calls) {
  for (DType t : calls.TypesOf("self")) {
    calls.Add({In(t, {2, 3, 4}), Int(1), Out(t, {2, 12})});
    calls.Add({In(t, {2, 3, 4}), Int(-1), Out(t, {6, 4})});
    calls.Add({In(t, {2, 3}), Int(0), Out(t, {1, 6})});
  }
  calls.Add({In(DType::kF32, {}), Int(0), Out(DType::kF32, {1, 1})});
  calls.Add({In(DType::kF32, {40, 30, 40}), Int(2), Out(DType::kF32, {1200, 40})});
}
void OracleSameOrder(HostCall& call) {
  Host& out = call.Out("out");
  for (int64_t i = 0; i < out.size(); ++i) out[i] = call.In("self")[i];
}

void SampleChannelShuffle(Calls& calls) {
  for (DType t : calls.TypesOf("self")) calls.Add({In(t, {2, 6, 3}), Int(3), Out(t, {2, 6, 3})});
  calls.Add({In(DType::kF32, {0, 4, 3}), Int(2), Out(DType::kF32, {0, 4, 3})});
  calls.Add({In(DType::kF32, {4, 32, 20, 20}), Int(8), Out(DType::kF32, {4, 32, 20, 20})});
}
void OracleChannelShuffle(HostCall& call) {
  const Host& self = call.In("self");
  const int64_t groups = call.Int("groups");
  Fill(call.Out("out"), [&](At at) {
    at[1] = at[1] % groups * (self.dims[1] / groups) + at[1] / groups;
    return self[self.Index(at)];
  });
}

void SampleConfusionTranspose(Calls& calls) {
  for (DType t : calls.TypesOf("x")) {
    calls.Add({In(t, {4, 3, 5}), Ints({1, 0, 2}), Ints({3, 20}), Flag(true), Out(t, {3, 20})});
    calls.Add({In(t, {4, 15}), Ints({2, 0, 1}), Ints({4, 3, 5}), Flag(false), Out(t, {5, 4, 3})});
  }
  calls.Add({In(DType::kF32, {200, 300}), Ints({1, 0}), Ints({60000}), Flag(true), Out(DType::kF32, {60000})});
}
void OracleConfusionTranspose(HostCall& call) {
  const Host& x = call.In("x");
  Host& out = call.Out("out");
  const Checked<int64_t>& perm = call.Ints("perm");
  Host shaped = x;
  if (!call.Flag("transposeFirst")) shaped.dims = Dims(std::span<const int64_t>(call.Ints("shape")));
  Host moved = shaped;
  for (size_t i = 0; i < perm.size(); ++i) moved.dims[static_cast<int>(i)] = shaped.dims[static_cast<int>(perm[i])];
  for (int64_t i = 0; i < moved.size(); ++i) {
    const At at = moved.Position(i);
    At from(at.size());
    for (size_t k = 0; k < at.size(); ++k) from[static_cast<size_t>(perm[k])] = at[k];
    out[i] = shaped[shaped.Index(from)];
  }
}

void SampleTriangle(Calls& calls) {
  const char* const self = calls.op().contract.args()[0].name;
  const bool in_place = calls.op().contract.args().size() == 2;
  const auto add = [&](DType t, const Dims& dims, int64_t diagonal) {
    if (in_place) calls.Add({In(t, dims), Int(diagonal)});
    else calls.Add({In(t, dims), Int(diagonal), Out(t, dims)});
  };
  for (DType t : calls.TypesOf(self)) {
    add(t, {4, 5}, 0);
    add(t, {2, 5, 3}, -1);
  }
  for (const int64_t d : {INT64_MAX, INT64_MIN, INT64_MIN + 1, int64_t{1}, int64_t{2}, int64_t{-4}, int64_t{4}, int64_t{-5}}) add(DType::kF32, {4, 5}, d);
  add(DType::kF32, {0, 3}, 1);
  add(DType::kF32, {3, 150, 100}, -3);
}
template <bool kLower>
void OracleTriangle(HostCall& call) {
  const bool in_place = !call.outputs[0].empty();
  const Host self = call.In(in_place ? "selfRef" : "self");
  const Real diagonal = call.Int("diagonal");
  Fill(call.Out(in_place ? "selfRef" : "out"), [&](const At& at) {
    const Real distance = static_cast<Real>(at[at.size() - 1]) - static_cast<Real>(at[at.size() - 2]);
    return (kLower ? distance <= diagonal : distance >= diagonal) ? self[self.Index(at)] : Number(0);
  });
}

void SampleDiag(Calls& calls) {
  for (DType t : calls.TypesOf("self")) {
    calls.Add({In(t, {3}), Int(-1), Out(t, {4, 4})});
    calls.Add({In(t, {3, 4}), Int(1), Out(t, {3})});
  }
  calls.Add({In(DType::kF32, {}), Int(2), Out(DType::kF32, {3, 3})});
  calls.Add({In(DType::kF32, {3, 4}), Int(4), Out(DType::kF32, {0})});
  calls.Add({In(DType::kF32, {5, 2}), Int(-4), Out(DType::kF32, {1})});
  calls.Add({In(DType::kF32, {0}), Int(2), Out(DType::kF32, {2, 2})});
  calls.Add({In(DType::kF32, {200}), Int(3), Out(DType::kF32, {203, 203})});
}
void OracleDiag(HostCall& call) {
  const Host& self = call.In("self");
  const int64_t d = call.Int("diagonal"), row = std::max<int64_t>(0, -d), column = std::max<int64_t>(0, d);
  Fill(call.Out("out"), [&](const At& at) {
    if (self.dims.rank() == 2) return self[self.Index(At{at[0] + row, at[0] + column})];
    const int64_t i = at[0] - row;
    return i >= 0 && i < self.size() && at[1] == i + column ? self[i] : Number(0);
  });
}
void SampleDiagFlat(Calls& calls) {
  for (DType t : calls.TypesOf("self")) {
    calls.Add({In(t, {3, 2}), Int(2), Out(t, {8, 8})});
    calls.Add({In(t, {3}), Int(0), Out(DType::kF32, {3, 3})});
    calls.Add({In(DType::kF32, {3}), Int(0), Out(t, {3, 3})});
  }
  calls.Add({In(DType::kF32, {0}), Int(-2), Out(DType::kF32, {2, 2})});
}
void OracleDiagFlat(HostCall& call) {
  const Host& self = call.In("self");
  const int64_t d = call.Int("diagonal");
  Fill(call.Out("out"), [&](const At& at) {
    const int64_t i = std::min(at[0], at[1]);
    return at[1] - at[0] == d && i < self.size() ? self[i] : Number(0);
  });
}

void SampleInterleaveInt(Calls& calls) {
  for (DType t : calls.TypesOf("self")) calls.Add({In(t, {2, 3}), Int(3), Int(18), Out(t, {18})});
  calls.Add({In(DType::kF32, {}), Int(2), Int(2), Out(DType::kF32, {2})});
  calls.Add({In(DType::kF32, {4}), Int(0), Int(0), Out(DType::kF32, {0})});
  calls.Add({In(DType::kF32, {100, 100}), Int(5), Int(50000), Out(DType::kF32, {50000})});
}
void SampleInterleaveIntWithDim(Calls& calls) {
  for (DType t : calls.TypesOf("self")) {
    calls.Add({In(t, {2, 3}), Int(3), Int(1), Int(9), Out(t, {2, 9})});
    calls.Add({In(t, {2, 3}), Int(2), Int(-2), Int(4), Out(t, {4, 3})});
  }
  calls.Add({In(DType::kF32, {40, 30, 10}), Int(4), Int(1), Int(120), Out(DType::kF32, {40, 120, 10})});
}
void OracleInterleaveInt(HostCall& call) {
  Host& out = call.Out("out");
  for (int64_t i = 0; i < out.size(); ++i) out[i] = call.In("self")[i / call.Int("repeats")];
}
void OracleInterleaveIntWithDim(HostCall& call) {
  const Host& self = call.In("self");
  Fill(call.Out("out"), [&](At at) {
    at[static_cast<size_t>(Wrap(call.Int("dim"), self.dims.rank()))] /= call.Int("repeats");
    return self[self.Index(at)];
  });
}

// --- pads ----------------------------------------------------------------------------------------

void SampleConstantPad(Calls& calls) {
  for (DType t : calls.TypesOf("self")) {
    calls.Add({In(t, {2, 3}), Ints({1, 2}), Num(DType::kI64, 1), Out(t, {2, 6})});
    calls.Add({In(t, {2, 3}), Ints({-1, 2, 1, -1}), Num(DType::kI64, 0), Out(t, {2, 4})});
  }
  calls.Add({In(DType::kF32, {3}), Ints({-1, 2}), Num(DType::kF64, 0.5), Out(DType::kF32, {4})});
  calls.Add({In(DType::kF32, {3}), Ints({}), Num(DType::kF64, 0.5), Out(DType::kF32, {3})});
  calls.Add({In(DType::kF32, {0, 3}), Ints({1, 0, 2, 0}), Num(DType::kF64, 7), Out(DType::kF32, {2, 4})});
  calls.Add({In(DType::kF32, {3}), Ints({-3, 5}), Num(DType::kF64, 2), Out(DType::kF32, {5})});
  calls.Add({In(DType::kF32, {4, 3}), Ints({-3, 0}), Num(DType::kF64, 2), Out(DType::kF32, {4, 0})});
  calls.Add({In(DType::kF32, {3}), Ints({0, 0}), Num(DType::kF64, 2), Out(DType::kF32, {3})});
  calls.Add({In(DType::kF32, {200, 300}), Ints({3, 5, 7, 1}), Num(DType::kF64, 2), Out(DType::kF32, {208, 308})});
}
void OracleConstantPad(HostCall& call) {
  const Host& self = call.In("self");
  const Checked<int64_t>& pad = call.Ints("pad");
  Fill(call.Out("out"), [&](At at) {
    for (int i = 0; i < self.dims.rank(); ++i) {
      const size_t pair = static_cast<size_t>(self.dims.rank() - 1 - i);
      if (2 * pair < pad.size()) at[static_cast<size_t>(i)] -= pad[2 * pair];
      if (at[static_cast<size_t>(i)] < 0 || at[static_cast<size_t>(i)] >= self.dims[i]) return call.Scalar("value");
    }
    return self[self.Index(at)];
  });
}

enum PadKind { kReflection, kReplication, kCircular };

int64_t PadSource(PadKind kind, int64_t j, int64_t before, int64_t n) {
  int64_t i = j - before;
  switch (kind) {
    case kReflection:
      while (i < 0 || i >= n) i = i < 0 ? -i : 2 * (n - 1) - i;
      return i;
    case kReplication:
      return std::min(std::max<int64_t>(i, 0), n - 1);
    default:
      return ((i % n) + n) % n;
  }
}

Dims WithPads(Dims dims, const Checked<int64_t>& pads) {
  for (size_t i = 0; 2 * i < pads.size(); ++i) dims[dims.rank() - 1 - static_cast<int>(i)] += pads[2 * i] + pads[2 * i + 1];
  return dims;
}
At PadOrigin(PadKind kind, At at, const Dims& dims, const Checked<int64_t>& pads) {
  for (size_t i = 0; 2 * i < pads.size(); ++i) {
    const size_t axis = at.size() - 1 - i;
    at[axis] = PadSource(kind, at[axis], pads[2 * i], dims[static_cast<int>(axis)]);
  }
  return at;
}

// Shapes and widths that a pad over `axes` axes takes.
struct PadSample {
  Dims dims;
  Checked<int64_t> pads;
};
std::vector<PadSample> PadSamples(PadKind kind, int axes) {
  Dims large = {3}, small = {2}, batch = {0, 2};
  Checked<int64_t> wide, cut;
  for (int i = 0; i < axes; ++i) {
    small.push_back(4 + i);
    batch.push_back(3);
    large.push_back(axes == 1 ? 15000 : axes == 2 ? 120 : 25);
    for (const int64_t w : {2 - i % 2, 3}) wide.push_back(w);
    for (const int64_t w : {-1, 1}) cut.push_back(w);
  }
  Dims with_batch = {3, 2};
  for (int i = 0; i < axes; ++i) with_batch.push_back(5);
  std::vector<PadSample> samples = {{small, wide}, {with_batch, wide}, {small, cut}, {batch, cut}, {large, wide}};
  if (kind == kReplication) samples.push_back({small, Checked<int64_t>(static_cast<size_t>(2 * axes), 7)});
  return samples;
}

template <PadKind kKind, int kAxes>
void SamplePad(Calls& calls) {
  const std::vector<PadSample> samples = PadSamples(kKind, kAxes);
  for (DType t : calls.TypesOf("self")) calls.Add({In(t, samples[0].dims), Ints(samples[0].pads), Out(t, WithPads(samples[0].dims, samples[0].pads))});
  for (const PadSample& s : samples) calls.Add({In(DType::kF32, s.dims), Ints(s.pads), Out(DType::kF32, WithPads(s.dims, s.pads))});
}
template <PadKind kKind>
void OraclePad(HostCall& call) {
  const Host& self = call.In("self");
  Fill(call.Out("out"), [&](const At& at) { return self[self.Index(PadOrigin(kKind, at, self.dims, call.Ints("padding")))]; });
}

template <PadKind kKind, int kAxes>
void SamplePadBack(Calls& calls) {
  const std::vector<PadSample> samples = PadSamples(kKind, kAxes);
  for (DType t : calls.TypesOf("gradOutput")) {
    const PadSample& s = samples[0];
    calls.Add({In(t, WithPads(s.dims, s.pads)), In(t, s.dims), Ints(s.pads), Out(t, s.dims)});
  }
  for (const PadSample& s : samples) {
    if (kKind == kReplication && Numel(s.dims) > 0 && s.dims[0] == 0) continue;
    calls.Add({In(DType::kF32, WithPads(s.dims, s.pads)), In(DType::kF32, s.dims), Ints(s.pads), Out(DType::kF32, s.dims)});
  }
}
// Sums: FLOAT (or the dtype's own parts) rounds after every one of `terms` additions.
void AddSlack(Host& out, const Checked<Real>& magnitude, const Checked<int64_t>& terms) {
  const bool wide = out.dtype == DType::kF64 || out.dtype == DType::kC128;
  for (int64_t i = 0; i < out.size(); ++i) {
    out.slack.push_back(static_cast<Real>(terms[i]) * UlpOf(wide ? DType::kF64 : DType::kF32, magnitude[i]));
  }
}
struct Sums {
  explicit Sums(Host& out) : out(out), magnitude(out.size()), terms(out.size()) {
    for (Number& value : out.values) value = 0;
  }
  void Add(int64_t i, Number value) {
    out[i] += value;
    magnitude[i] += std::abs(value);
    ++terms[i];
  }
  void Finish() { AddSlack(out, magnitude, terms); }
  Host& out;
  Checked<Real> magnitude;
  Checked<int64_t> terms;
};
template <PadKind kKind>
void OraclePadBack(HostCall& call) {
  const Host& grad = call.In("gradOutput");
  Sums sums(call.Out("gradInput"));
  for (int64_t i = 0; i < grad.size(); ++i) {
    sums.Add(sums.out.Index(PadOrigin(kKind, grad.Position(i), sums.out.dims, call.Ints("padding"))), grad[i]);
  }
  sums.Finish();
}

// --- windows -------------------------------------------------------------------------------------

void SampleIm2col(Calls& calls) {
  for (DType t : calls.TypesOf("self")) {
    calls.Add({In(t, {2, 3, 5, 6}), Ints({2, 3}), Ints({1, 1}), Ints({1, 0}), Ints({2, 1}), Out(t, {2, 18, 12})});
  }
  calls.Add({In(DType::kF32, {3, 5, 6}), Ints({2, 2}), Ints({2, 1}), Ints({0, 0}), Ints({1, 2}), Out(DType::kF32, {12, 9})});
  calls.Add({In(DType::kF32, {3, 5, 6}), Ints({2, 2}), Ints({2, 1}), Ints({0, 2}), Ints({1, 2}), Out(DType::kF32, {12, 15})}).label = "no batch";
  calls.Add({In(DType::kF32, {0, 3, 5, 6}), Ints({2, 2}), Ints({1, 1}), Ints({0, 0}), Ints({1, 1}), Out(DType::kF32, {0, 12, 20})});
  calls.Add({In(DType::kF16, {1, 1, 3, 3}), Ints({3, 3}), Ints({1, 1}), Ints({1, 1}), Ints({1, 1}), Out(DType::kF32, {1, 9, 9})});
  calls.Add({In(DType::kF32, {2, 3, 40, 40}), Ints({3, 3}), Ints({1, 1}), Ints({1, 1}), Ints({1, 1}), Out(DType::kF32, {2, 27, 1600})});
}
struct Window {
  int64_t k[2], d[2], p[2], s[2], size[2], blocks[2];
};
Window WindowOf(HostCall& call, int64_t height, int64_t width) {
  Window w{};
  w.size[0] = height;
  w.size[1] = width;
  for (size_t i = 0; i < 2; ++i) {
    w.k[i] = call.Ints("kernelSize")[i];
    w.d[i] = call.Ints("dilation")[i];
    w.p[i] = call.Ints("padding")[i];
    w.s[i] = call.Ints("stride")[i];
    w.blocks[i] = (w.size[i] + 2 * w.p[i] - w.d[i] * (w.k[i] - 1) - 1) / w.s[i] + 1;
  }
  return w;
}
// The element of the image, flat in its plane, behind row (c, ky, kx) and column (by, bx); -1: the border.
int64_t ImagePlace(const Window& w, int64_t row, int64_t column) {
  const int64_t y = column / w.blocks[1] * w.s[0] + row / w.k[1] % w.k[0] * w.d[0] - w.p[0];
  const int64_t x = column % w.blocks[1] * w.s[1] + row % w.k[1] * w.d[1] - w.p[1];
  return y < 0 || y >= w.size[0] || x < 0 || x >= w.size[1] ? -1 : y * w.size[1] + x;
}
void OracleIm2col(HostCall& call) {
  const Host& self = call.In("self");
  Host& out = call.Out("out");
  const int last = self.dims.rank() - 1;
  const Window w = WindowOf(call, self.dims[last - 1], self.dims[last]);
  const int64_t rows = out.dims[out.dims.rank() - 2], columns = out.dims[out.dims.rank() - 1], area = w.size[0] * w.size[1];
  for (int64_t i = 0; i < out.size(); ++i) {
    const int64_t row = i / columns % rows, plane = i / columns / rows * self.dims[last - 2] + row / (w.k[0] * w.k[1]);
    const int64_t place = ImagePlace(w, row, i % columns);
    out[i] = place < 0 ? Number(0) : self[plane * area + place];
  }
}
void SampleIm2colBackward(Calls& calls) {
  for (DType t : calls.TypesOf("gradOutput")) {
    calls.Add({In(t, {2, 18, 12}), Ints({5, 6}), Ints({2, 3}), Ints({1, 1}), Ints({1, 0}), Ints({2, 1}), Out(t, {2, 3, 5, 6})});
    calls.Add({In(t, {12, 9}), Ints({5, 6}), Ints({2, 2}), Ints({2, 1}), Ints({0, 0}), Ints({1, 2}), Out(t, {3, 5, 6})});
  }
  calls.Add({In(DType::kF16, {12, 9}), Ints({5, 6}), Ints({2, 2}), Ints({2, 1}), Ints({0, 0}), Ints({1, 2}), Out(DType::kF32, {3, 5, 6})});
  calls.Add({In(DType::kF32, {2, 27, 1600}), Ints({40, 40}), Ints({3, 3}), Ints({1, 1}), Ints({1, 1}), Ints({1, 1}), Out(DType::kF32, {2, 3, 40, 40})});
}
void OracleIm2colBackward(HostCall& call) {
  const Host& grad = call.In("gradOutput");
  Sums sums(call.Out("out"));
  const Window w = WindowOf(call, call.Ints("inputSize")[0], call.Ints("inputSize")[1]);
  const int rank = grad.dims.rank();
  const int64_t rows = grad.dims[rank - 2], columns = grad.dims[rank - 1], area = w.size[0] * w.size[1], window = w.k[0] * w.k[1];
  for (int64_t i = 0; i < grad.size(); ++i) {
    const int64_t row = i / columns % rows, plane = i / columns / rows * (rows / window) + row / window;
    const int64_t place = ImagePlace(w, row, i % columns);
    if (place >= 0) sums.Add(plane * area + place, grad[i]);
  }
  sums.Finish();
}

void SampleUnfoldGrad(Calls& calls) {
  for (DType t : calls.TypesOf("gradOut")) {
    calls.Add({In(t, {3, 4, 2, 3}), Ints({3, 9, 2}), Int(1), Int(3), Int(2), Out(t, {3, 9, 2})});
    calls.Add({In(t, {2, 2}), Ints({5}), Int(-1), Int(2), Int(3), Out(t, {5})});
  }
  calls.Add({In(DType::kF32, {1}), Ints({}), Int(0), Int(1), Int(1), Out(DType::kF32, {})});
  calls.Add({In(DType::kF32, {100, 98, 3}), Ints({100, 100}), Int(1), Int(3), Int(1), Out(DType::kF32, {100, 100})});
  calls.Add({In(DType::kF32, {0, 2, 2}), Ints({0, 4}), Int(1), Int(2), Int(2), Out(DType::kF32, {0, 4})});
}
void OracleUnfoldGrad(HostCall& call) {
  const Host& grad = call.In("gradOut");
  Sums sums(call.Out("gradIn"));
  const int rank = sums.out.dims.rank();
  for (int64_t i = 0; i < grad.size(); ++i) {
    At at = grad.Position(i);
    const int64_t k = at.back();
    at.pop_back();
    if (rank > 0) {
      int64_t& w = at[static_cast<size_t>(Wrap(call.Int("dim"), rank))];
      w = w * call.Int("step") + k;
    }
    sums.Add(sums.out.Index(at), grad[i]);
  }
  sums.Finish();
}

}  // namespace

#define ANYACL_PAD(name, kind, axes)                                                                    \
  {"aclnn" #name "Pad" #axes "d", SamplePad<kind, axes>, OraclePad<kind>, {.ulps = 0}},                 \
  {"aclnn" #name "Pad" #axes "dBackward", SamplePadBack<kind, axes>, OraclePadBack<kind>, {.ulps = 0}}

std::span<const Subject> MovementSubjects() {
  static const Subject subjects[] = {
      {"aclnnInplaceCopy", SampleInplaceCopy, OracleInplaceCopy, {.ulps = 0}},
      {"aclnnCat", SampleCat, OracleCat, {.ulps = 0}},
      {"aclnnChannelShuffle", SampleChannelShuffle, OracleChannelShuffle, {.ulps = 0}},
      {"aclnnChunkCat", SampleChunkCat, OracleChunkCat, {.ulps = 0}},
      {"aclnnConfusionTranspose", SampleConfusionTranspose, OracleConfusionTranspose, {.ulps = 0}},
      {"aclnnConstantPadNd", SampleConstantPad, OracleConstantPad, {.ulps = 0}},
      {"aclnnDiag", SampleDiag, OracleDiag, {.ulps = 0}},
      {"aclnnDiagFlat", SampleDiagFlat, OracleDiagFlat, {.ulps = 0}},
      {"aclnnExpand", SampleExpand, OracleExpand, {.ulps = 0}},
      {"aclnnFlatten", SampleFlatten, OracleSameOrder, {.ulps = 0}},
      {"aclnnFlip", SampleFlip, OracleFlip, {.ulps = 0}},
      {"aclnnIm2col", SampleIm2col, OracleIm2col, {.ulps = 0}},
      {"aclnnIm2colBackward", SampleIm2colBackward, OracleIm2colBackward, {.ulps = 0}},
      {"aclnnInplaceTril", SampleTriangle, OracleTriangle<true>, {.ulps = 0}},
      {"aclnnInplaceTriu", SampleTriangle, OracleTriangle<false>, {.ulps = 0}},
      {"aclnnPermute", SamplePermute, OraclePermute, {.ulps = 0}},
      {"aclnnRepeat", SampleRepeat, OracleRepeat, {.ulps = 0}},
      {"aclnnRepeatInterleaveInt", SampleInterleaveInt, OracleInterleaveInt, {.ulps = 0}},
      {"aclnnRepeatInterleaveIntWithDim", SampleInterleaveIntWithDim, OracleInterleaveIntWithDim, {.ulps = 0}},
      {"aclnnRoll", SampleRoll, OracleRoll, {.ulps = 0}},
      {"aclnnSlice", SampleSlice, OracleSlice, {.ulps = 0}},
      {"aclnnSliceV2", SampleSliceV2, OracleSliceV2, {.ulps = 0}},
      {"aclnnSplitTensor", SampleSplitTensor, OracleSplit, {.ulps = 0}},
      {"aclnnSplitWithSize", SampleSplitWithSize, OracleSplit, {.ulps = 0}},
      {"aclnnStack", SampleStack, OracleStack, {.ulps = 0}},
      {"aclnnStridedSlice", SampleStridedSlice, OracleStridedSlice, {.ulps = 0}},
      {"aclnnStridedSliceAssignV2", SampleStridedSliceAssign, OracleStridedSliceAssign, {.ulps = 0}},
      {"aclnnTril", SampleTriangle, OracleTriangle<true>, {.ulps = 0}},
      {"aclnnTriu", SampleTriangle, OracleTriangle<false>, {.ulps = 0}},
      {"aclnnUnfoldGrad", SampleUnfoldGrad, OracleUnfoldGrad, {.ulps = 0}},
      ANYACL_PAD(Circular, kCircular, 2),
      ANYACL_PAD(Circular, kCircular, 3),
      ANYACL_PAD(Reflection, kReflection, 1),
      ANYACL_PAD(Reflection, kReflection, 2),
      ANYACL_PAD(Reflection, kReflection, 3),
      ANYACL_PAD(Replication, kReplication, 1),
      ANYACL_PAD(Replication, kReplication, 2),
      ANYACL_PAD(Replication, kReplication, 3),
  };
  return subjects;
}
#undef ANYACL_PAD

}  // namespace anyacl::harness
