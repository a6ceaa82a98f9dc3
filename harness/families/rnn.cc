// SPDX-License-Identifier: Apache-2.0
// Copyright The AnyACL Authors
//
// Recurrent layers unit by unit and step by step, and their gradients by the chain rule along the same way back.
#include <cmath>
#include <string_view>

#include "harness/family.h"

namespace anyacl::harness {
namespace {

Real Logistic(Real x) { return 1 / (1 + std::exp(-x)); }

// [steps][rows][width]
struct Sequence {
  Sequence() = default;
  Sequence(int64_t steps, int64_t rows, int64_t width) : rows(rows), width(width), values(steps * rows * width, 0) {}
  Real& at(int64_t t, int64_t b, int64_t k) { return values[(t * rows + b) * width + k]; }
  Real at(int64_t t, int64_t b, int64_t k) const { return values[(t * rows + b) * width + k]; }
  int64_t rows = 0, width = 0;
  Checked<Real> values;
};

// One call; names of arguments differ between the entries.
struct Net {
  explicit Net(HostCall& c) : call(c) {
    const std::string_view name = call.name();
    lstm = name.find("GRU") == name.npos;
    gradient = name.find("Backward") != name.npos;
    sizes = call.HasArg("batchSizes") ? "batchSizes" : "batchSizesOptional";
    packed = call.Has(sizes);
    directions = call.Flag(lstm ? "bidirectional" : "bidirection") ? 2 : 1;
    layers = call.Int("numLayers");
    bias = call.Flag("hasBias");
    first = !packed && call.Flag("batchFirst");
    const Host& x = call.In("input");
    in = x.dims[x.dims.rank() - 1];
    steps = packed ? call.In(sizes).size() : x.dims[first ? 1 : 0];
    rows = packed ? x.dims[0] / steps : x.dims[first ? 0 : 1];
    hidden = call.In("params", 1).dims[1];
    gates = lstm ? 4 : 3;
  }
  bool IsActive(int64_t t, int64_t b) const { return !packed || b < call.In(sizes).real(t); }
  Real Weight(int64_t index, int kind, int64_t row, int64_t column) const {
    const Host& w = call.In("params", static_cast<int>(index * (bias ? 4 : 2) + kind));
    return w.real(row * w.dims[1] + column);
  }
  Real Bias(int64_t index, int kind, int64_t row) const {
    return bias ? call.In("params", static_cast<int>(index * 4 + 2 + kind)).real(row) : 0;
  }
  // A sequence of a tensor, in its own order or by rows first.
  Sequence Read(const Host& x, int64_t width) const {
    Sequence s(steps, rows, width);
    for (int64_t i = 0; i < x.size(); ++i) {
      const int64_t a = i / width / (first ? steps : rows), b = i / width % (first ? steps : rows);
      s.at(first ? b : a, first ? a : b, i % width) = x.real(i);
    }
    return s;
  }
  void Write(const Sequence& s, Host& y, Real slack) const {
    for (int64_t i = 0; i < y.size(); ++i) {
      const int64_t a = i / s.width / (first ? steps : rows), b = i / s.width % (first ? steps : rows);
      y[i] = s.at(first ? b : a, first ? a : b, i % s.width);
    }
    y.slack.assign(y.size(), slack);
  }
  Sequence FromList(const char* list, int64_t index) const {
    const Host& x = call.In(list, static_cast<int>(index));
    Sequence s(steps, rows, hidden);
    for (int64_t i = 0; i < x.size(); ++i) s.values[i] = x.real(i);
    return s;
  }
  Real FirstState(const char* which, int64_t index, int64_t b, int64_t k) const {
    if (!call.Has("hx") || (lstm && call.Count("hx") == 0)) return 0;
    const Host& h = call.In("hx", which[0] == 'c' ? 1 : 0);
    return h.real((index * rows + b) * hidden + k);
  }

  HostCall& call;
  const char* sizes;
  bool lstm, gradient, packed, bias, first;
  int64_t directions, layers, in, steps, rows, hidden, gates;
};

constexpr Real kSlack = 0x1p-17L, kGradientSlack = 0x1p-13L;

void Put(Host& to, int64_t index, Real value, Real slack) {
  to[index] = value;
  to.slack.resize(to.size(), slack);
}

void OracleForward(HostCall& call) {
  const Net n(call);
  Sequence x = n.Read(call.In("input"), n.in);
  const bool train = call.Flag("train");
  for (int64_t layer = 0; layer < n.layers; ++layer) {
    Sequence y(n.steps, n.rows, n.directions * n.hidden);
    for (int64_t d = 0; d < n.directions; ++d) {
      const int64_t index = layer * n.directions + d;
      for (int64_t b = 0; b < n.rows; ++b) {
        Checked<Real> h, c;
        for (int64_t k = 0; k < n.hidden; ++k) {
          h.push_back(n.FirstState("h", index, b, k));
          c.push_back(n.lstm ? n.FirstState("c", index, b, k) : 0);
        }
        for (int64_t s = 0; s < n.steps; ++s) {
          const int64_t t = d == 1 ? n.steps - 1 - s : s;
          const bool active = n.IsActive(t, b);
          Checked<Real> next = h;
          for (int64_t k = 0; k < n.hidden; ++k) {
            const auto from_input = [&](int64_t gate) {
              Real sum = n.Bias(index, 0, gate * n.hidden + k);
              for (int64_t i = 0; i < x.width; ++i) sum += n.Weight(index, 0, gate * n.hidden + k, i) * x.at(t, b, i);
              return sum;
            };
            const auto from_state = [&](int64_t gate) {
              Real sum = n.Bias(index, 1, gate * n.hidden + k);
              for (int64_t i = 0; i < n.hidden; ++i) sum += n.Weight(index, 1, gate * n.hidden + k, i) * h[i];
              return sum;
            };
            const auto save = [&](const char* list, Real value) {
              if (train) Put(call.Out(list, static_cast<int>(index)), (t * n.rows + b) * n.hidden + k, active ? value : 0, kSlack);
            };
            if (n.lstm) {
              const Real i = Logistic(from_input(0) + from_state(0)), f = Logistic(from_input(1) + from_state(1));
              const Real g = std::tanh(from_input(2) + from_state(2)), o = Logistic(from_input(3) + from_state(3));
              if (active) c[k] = f * c[k] + i * g;
              if (active) next[k] = o * std::tanh(c[k]);
              save("iOut", i), save("jOut", g), save("fOut", f), save("oOut", o);
              save("cOut", c[k]), save("tanhCOut", std::tanh(c[k]));
            } else {
              const Real r = Logistic(from_input(0) + from_state(0)), z = Logistic(from_input(1) + from_state(1)), hn = from_state(2);
              const Real fresh = std::tanh(from_input(2) + r * hn);
              if (active) next[k] = (1 - z) * fresh + z * h[k];
              save("rOut", r), save("zOut", z), save("nOut", fresh), save("hnOut", hn);
            }
            save("hOut", next[k]);
            y.at(t, b, d * n.hidden + k) = active ? next[k] : 0;
          }
          h = next;
        }
        for (int64_t k = 0; k < n.hidden; ++k) {
          Put(call.Out("hy"), (index * n.rows + b) * n.hidden + k, h[k], kSlack);
          if (n.lstm) Put(call.Out("cy"), (index * n.rows + b) * n.hidden + k, c[k], kSlack);
        }
      }
    }
    x = y;
  }
  n.Write(x, call.Out("output"), kSlack);
}

// What a state receives, one row, all the way back; adds to the gradients of parameters and of x.
class Back {
 public:
  Back(const Net& n, int64_t layer, int64_t d) : n_(n), index_(layer * n.directions + d), d_(d), h_(n.FromList("h", index_)) {
    if (n.lstm) {
      i_ = n.FromList("i", index_), f_ = n.FromList("f", index_), g_ = n.FromList("g", index_), o_ = n.FromList("o", index_);
      c_ = n.FromList("c", index_), tc_ = n.FromList("tanhc", index_);
    } else {
      r_ = n.FromList("r", index_), z_ = n.FromList("z", index_), f_ = n.FromList("n", index_), hn_ = n.FromList("hn", index_);
    }
  }

  void Row(int64_t b, const Sequence& x, const Sequence& dy, Sequence& dx) {
    HostCall& call = n_.call;
    const int64_t size = n_.hidden;
    Checked<Real> dh(size, 0), dc(size, 0);
    for (int64_t k = 0; k < size; ++k) {
      if (call.Has("dh")) dh[k] = call.In("dh").real((index_ * n_.rows + b) * size + k);
      if (n_.lstm && call.Has("dc")) dc[k] = call.In("dc").real((index_ * n_.rows + b) * size + k);
    }
    for (int64_t s = n_.steps - 1; s >= 0; --s) {
      const int64_t t = Time(s);
      if (!n_.IsActive(t, b)) continue;
      const int64_t before = s > 0 && n_.IsActive(Time(s - 1), b) ? Time(s - 1) : -1;
      const auto old = [&](const Sequence& of, const char* which, int64_t k) { return before >= 0 ? of.at(before, b, k) : n_.FirstState(which, index_, b, k); };
      Checked<Real> from_input(n_.gates * size), from_state(n_.gates * size), kept(size, 0);
      for (int64_t k = 0; k < size; ++k) {
        const Real d = dy.at(t, b, d_ * size + k) + dh[k];
        if (n_.lstm) {
          const Real i = i_.at(t, b, k), f = f_.at(t, b, k), g = g_.at(t, b, k), o = o_.at(t, b, k), tc = tc_.at(t, b, k);
          const Real cell = dc[k] + d * o * (1 - tc * tc);
          from_input[k] = cell * g * i * (1 - i);
          from_input[size + k] = cell * old(c_, "c", k) * f * (1 - f);
          from_input[2 * size + k] = cell * i * (1 - g * g);
          from_input[3 * size + k] = d * tc * o * (1 - o);
          dc[k] = cell * f;
        } else {
          const Real r = r_.at(t, b, k), z = z_.at(t, b, k), fresh = f_.at(t, b, k), hn = hn_.at(t, b, k);
          const Real dn = d * (1 - z) * (1 - fresh * fresh);
          from_input[k] = dn * hn * r * (1 - r);
          from_input[size + k] = d * (old(h_, "h", k) - fresh) * z * (1 - z);
          from_input[2 * size + k] = dn;
          kept[k] = d * z;
        }
      }
      from_state = from_input;
      for (int64_t k = 0; k < size && !n_.lstm; ++k) from_state[2 * size + k] *= r_.at(t, b, k);
      dh = kept;
      for (int64_t row = 0; row < n_.gates * size; ++row) {
        for (int64_t k = 0; k < x.width; ++k) {
          Add(0, row * x.width + k, from_input[row] * x.at(t, b, k));
          dx.at(t, b, k) += from_input[row] * n_.Weight(index_, 0, row, k);
        }
        for (int64_t k = 0; k < size; ++k) {
          Add(1, row * size + k, from_state[row] * old(h_, "h", k));
          dh[k] += from_state[row] * n_.Weight(index_, 1, row, k);
        }
        if (n_.bias) Add(2, row, from_input[row]);
        if (n_.bias) Add(3, row, from_state[row]);
      }
    }
    for (int64_t k = 0; k < size; ++k) {
      Put(call.Out("dhPrevOut"), (index_ * n_.rows + b) * size + k, dh[k], kGradientSlack);
      if (n_.lstm) Put(call.Out("dcPrevOut"), (index_ * n_.rows + b) * size + k, dc[k], kGradientSlack);
    }
  }

 private:
  int64_t Time(int64_t s) const { return d_ == 1 ? n_.steps - 1 - s : s; }
  void Add(int kind, int64_t at, Real value) {
    Host& to = n_.call.Out("dparamsOut", static_cast<int>(index_ * (n_.bias ? 4 : 2) + kind));
    Put(to, at, to.real(at) + value, kGradientSlack);
  }

  const Net& n_;
  int64_t index_, d_;
  Sequence h_, i_, f_, g_, o_, c_, tc_, r_, z_, hn_;
};

void OracleBackward(HostCall& call) {
  const Net n(call);
  Sequence dy(n.steps, n.rows, n.directions * n.hidden);
  if (call.Has("dy")) dy = n.Read(call.In("dy"), n.directions * n.hidden);
  for (int64_t layer = n.layers - 1; layer >= 0; --layer) {
    Sequence x = n.Read(call.In("input"), n.in);
    if (layer > 0) {
      x = Sequence(n.steps, n.rows, n.directions * n.hidden);
      for (int64_t d = 0; d < n.directions; ++d) {
        const Sequence h = n.FromList("h", (layer - 1) * n.directions + d);
        for (int64_t i = 0; i < n.steps * n.rows * n.hidden; ++i) x.values[i / n.hidden * x.width + d * n.hidden + i % n.hidden] = h.values[i];
      }
    }
    Sequence dx(n.steps, n.rows, x.width);
    for (int64_t d = 0; d < n.directions; ++d) {
      Back back(n, layer, d);
      for (int64_t b = 0; b < n.rows; ++b) back.Row(b, x, dy, dx);
    }
    dy = dx;
  }
  n.Write(dy, call.Out("dxOut"), kGradientSlack);
}

// --- samples ------------------------------------------------------------------------------------------------------------

struct Case {
  int64_t steps, batch, in, hidden, layers;
  bool both = false, bias = true, first = false, packed = false, state = true, train = true;
};
const std::vector<Case>& Cases() {
  static const auto* const cases = new std::vector<Case>{{4, 3, 5, 3, 1},
                                                         {3, 2, 4, 5, 2, true, true, true},
                                                         {2, 4, 3, 6, 2, false, false, false, false, false},
                                                         {3, 3, 4, 3, 2, true, true, false, true},
                                                         {3, 2, 4, 3, 1, true, true, false, false, true, false},
                                                         {1, 40, 33, 37, 1, false, true, true}};
  return *cases;
}

TestArg Tagged(TestArg arg) {
  if (arg.spec.tensor.rank() == 3) arg.spec.tensor.format = Format::kNCL;
  return arg;
}

// The arguments of a case, all of one dtype.
struct Parts {
  Parts(DType t, const Case& c, bool lstm) : t(t), c(c), lstm(lstm) {
    directions = c.both ? 2 : 1;
    state = {directions * c.layers, c.batch, c.hidden};
  }
  TestArg Tensor(bool out, const Dims& dims, Values values = Between(-1, 1)) const { return Tagged(out ? Out(t, dims) : In(t, dims, values)); }
  TestArg Input(bool out) const { return Tensor(out, c.packed ? Dims{c.steps * c.batch, c.in} : Order(c.in)); }
  TestArg Output(bool out) const { return Tensor(out, Order(directions * c.hidden)); }
  TestArg State(bool out) const { return Tensor(out, state); }
  TestArg Params(bool out) const {
    const int64_t gates = (lstm ? 4 : 3) * c.hidden;
    std::vector<TestArg> list;
    for (int64_t index = 0; index < c.layers * directions; ++index) {
      list.push_back(Tensor(out, {gates, index < directions ? c.in : directions * c.hidden}));
      list.push_back(Tensor(out, {gates, c.hidden}));
      for (int i = 0; i < (c.bias ? 2 : 0); ++i) list.push_back(Tensor(out, {gates}));
    }
    return List(list);
  }
  TestArg Saved(bool out, Values values = Between(-1, 1)) const {
    std::vector<TestArg> list;
    for (int64_t index = 0; index < c.layers * directions; ++index) list.push_back(Tensor(out, {c.steps, c.batch, c.hidden}, values));
    return List(list);
  }
  TestArg Sizes() const {
    if (!c.packed) return Null();
    Checked<Number> sizes;
    for (int64_t i = 0; i < c.steps; ++i) sizes.push_back(static_cast<Real>(c.batch - i));
    return In(DType::kI64, {c.steps}, Given(sizes));
  }
  Dims Order(int64_t width) const { return c.first && !c.packed ? Dims{c.batch, c.steps, width} : Dims{c.steps, c.batch, width}; }

  DType t;
  const Case& c;
  bool lstm;
  int64_t directions;
  Dims state;
};

template <bool kLstm>
void SampleForward(Calls& calls) {
  for (DType t : calls.TypesOf("input")) {
    for (const Case& c : Cases()) {
      if (t == DType::kBF16 && !c.packed) continue;
      const Parts p(t, c, kLstm);
      const TestArg hx = !c.state ? Null() : kLstm ? List({p.State(false), p.State(false)}) : p.State(false);
      std::vector<TestArg> args = {p.Input(false), p.Params(false), hx, p.Sizes(), Flag(c.bias), Int(c.layers), RealArg(0.5), Flag(c.train),
                                   Flag(c.both), Flag(c.first), p.Output(true), p.State(true)};
      if (kLstm) args.push_back(p.State(true));
      for (int i = 0; i < (kLstm ? 7 : 5); ++i) args.push_back(c.train ? p.Saved(true) : Null());
      calls.Add(std::move(args));
    }
  }
}

template <bool kLstm>
void SampleBackward(Calls& calls) {
  for (DType t : calls.TypesOf("input")) {
    for (const Case& c : Cases()) {
      if (t == DType::kBF16 && !c.packed) continue;
      const Parts p(t, c, kLstm);
      const bool absent = kLstm && !c.state;
      std::vector<TestArg> args;
      if (kLstm) {
        args = {p.Input(false), List({p.State(false), p.State(false)}), p.Params(false), absent ? Null() : p.Output(false),
                c.first ? Null() : p.State(false), absent ? Null() : p.State(false)};
      } else {
        args = {p.Input(false), p.Params(false), p.State(false), p.Output(false), p.State(false)};
      }
      for (int i = 0; i < (kLstm ? 7 : 5); ++i) args.push_back(p.Saved(false, Between(-0.9L, 0.9L)));
      args.push_back(p.Sizes());
      args.push_back(Flag(c.bias));
      args.push_back(Int(c.layers));
      if (kLstm) args.push_back(RealArg(0)), args.push_back(Flag(true));
      args.push_back(Flag(c.both));
      args.push_back(Flag(c.first));
      if (kLstm) args.push_back(Null());
      args.push_back(p.Input(true));
      args.push_back(p.State(true));
      if (kLstm) args.push_back(p.State(true));
      args.push_back(p.Params(true));
      calls.Add(std::move(args));
    }
  }
}

// --- one step -----------------------------------------------------------------------------------------------------------

void OracleCell(HostCall& call) {
  const Host &x = call.In("inputGates"), &state = call.In("hiddenGates"), &cx = call.In("cx");
  Host &hy = call.Out("hyOut"), &cy = call.Out("cyOut"), &storage = call.Out("storageOut");
  const int64_t width = cx.dims[1];
  if (x.size() == 0) return;
  for (int64_t at = 0; at < cx.size(); ++at) {
    Real gates[4];
    for (int64_t gate = 0; gate < 4; ++gate) {
      const int64_t column = gate * width + at % width, place = at / width * 4 * width + column;
      Real sum = x.real(place) + state.real(place);
      if (call.Has("inputBiasOptional")) sum += call.In("inputBiasOptional").real(column) + call.In("hiddenBiasOptional").real(column);
      gates[gate] = gate == 2 ? std::tanh(sum) : Logistic(sum);
      Put(storage, place, gates[gate], kSlack);
    }
    const Real cell = gates[1] * cx.real(at) + gates[0] * gates[2];
    Put(cy, at, cell, kSlack);
    Put(hy, at, gates[3] * std::tanh(cell), kSlack);
  }
}

void OracleCellBackward(HostCall& call) {
  const Host &cx = call.In("cx"), &cy = call.In("cy"), &storage = call.In("storage");
  const int64_t width = cx.dims[1];
  for (int64_t at = 0; at < cx.size(); ++at) {
    const auto place = [&](int64_t gate) { return at / width * 4 * width + gate * width + at % width; };
    const Real i = storage.real(place(0)), f = storage.real(place(1)), g = storage.real(place(2)), o = storage.real(place(3));
    const Real dh = call.Has("gradHyOptional") ? call.In("gradHyOptional").real(at) : 0, tc = std::tanh(cy.real(at));
    const Real dc = dh * o * (1 - tc * tc) + (call.Has("gradCOptional") ? call.In("gradCOptional").real(at) : 0);
    const Real grads[] = {dc * g * i * (1 - i), dc * cx.real(at) * f * (1 - f), dc * i * (1 - g * g), dh * tc * o * (1 - o)};
    for (int gate = 0; gate < 4; ++gate) {
      Put(call.Out("gradGatesOut"), place(gate), grads[gate], kSlack);
      if (!call.Flag("hasBias")) continue;
      Host& bias = call.Out("gradBiasOut");
      Put(bias, gate * width + at % width, bias.real(gate * width + at % width) + grads[gate], kGradientSlack);
    }
    Put(call.Out("gradCxOut"), at, dc * f, kSlack);
  }
}

void SampleCell(Calls& calls) {
  for (DType t : calls.TypesOf("inputGates")) {
    for (const int64_t batch : {3, 0}) {
      for (const bool bias : {true, false}) {
        const Dims gates = {batch, 20}, state = {batch, 5};
        calls.Add({In(t, gates), In(t, gates), In(t, state), bias ? In(t, {20}) : Null(), bias ? In(t, {20}) : Null(), Out(t, state), Out(t, state),
                   Out(t, gates)});
      }
    }
  }
}
void SampleCellBackward(Calls& calls) {
  for (DType t : calls.TypesOf("cx")) {
    for (const int kind : {0, 1, 2}) {
      const Dims gates = {6, 28}, state = {6, 7};
      const bool bias = kind != 1;
      calls.Add({kind == 1 ? Null() : In(t, state), kind == 2 ? Null() : In(t, state), In(t, state), In(t, state), In(t, gates, Between(-0.9L, 0.9L)),
                 Flag(bias), Out(t, gates), Out(t, state), bias ? Out(t, {28}) : Null()});
    }
  }
}

// The bounds above are for numbers up to 2 and sums of up to 64 terms; larger and longer ones are off by more in proportion.
template <void (*kOracle)(HostCall&)>
void Scaled(HostCall& call) {
  kOracle(call);
  Real largest = 2;
  int64_t longest = 64;
  for (const auto& list : call.inputs) {
    for (const Host& x : list) {
      for (const Number& value : x.values) largest = std::fmax(largest, std::fabs(value.real()));
      if (x.dims.rank() > 0) longest = std::max(longest, x.size() / std::max<int64_t>(x.dims[x.dims.rank() - 1], 1));
      for (const int64_t dim : x.dims) longest = std::max(longest, dim);
    }
  }
  for (auto& list : call.outputs) {
    for (Host& y : list) {
      for (Real& slack : y.slack) slack *= largest / 2 * static_cast<Real>(longest) / 64;
    }
  }
}

}  // namespace

std::span<const Subject> RnnSubjects() {
  static const Subject subjects[] = {{"aclnnLSTM", SampleForward<true>, Scaled<OracleForward>},
                                     {"aclnnLstmBackward", SampleBackward<true>, Scaled<OracleBackward>},
                                     {"aclnnGRU", SampleForward<false>, Scaled<OracleForward>},
                                     {"aclnnGRUBackward", SampleBackward<false>, Scaled<OracleBackward>},
                                     {"aclnnThnnFusedLstmCell", SampleCell, Scaled<OracleCell>},
                                     {"aclnnThnnFusedLstmCellBackward", SampleCellBackward, Scaled<OracleCellBackward>}};
  return subjects;
}

}  // namespace anyacl::harness
