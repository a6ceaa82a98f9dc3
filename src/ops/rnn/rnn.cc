// SPDX-License-Identifier: Apache-2.0
// Copyright The AnyACL Authors
//
// Recurrent layers: LSTM and GRU over sequences, forwards and gradients, and the fused LSTM cell. A layer is, per direction, a
// product for all steps, a recurrence (recurrence.h), and for gradients a product per weight.
#include <fmt/format.h>

#include <utility>

#include "ops/dense.h"
#include "ops/matmul/product.h"
#include "ops/operators.h"
#include "ops/pointwise/formulas.h"
#include "ops/pointwise/pass.h"
#include "ops/rnn/families.h"
#include "ops/rnn/recurrence.h"
#include "ops/table.h"

namespace anyacl {
namespace {

using namespace contract;
using rnn::Cell;
using rnn::RecurrenceParams;

constexpr DTypeSet k2 = {DType::kF32, DType::kF16};
constexpr Products kFive = Of({Product::kAscend950, Product::kA3, Product::kA2, Product::kTraining, Product::kInference});
constexpr int kNone = -1;

// Where arguments stand.
struct Args {
  Cell cell;
  bool gradient;
  int input, params, hx, sizes, bias, layers, train, bidirectional, batch_first;
  int gates[4];                   // lists, in the order of the parameters
  int cells, tanh_cells, h;       // lists: c or the state's part of n, ...
  int y, last_h, last_c;          // results, or their gradients
  int dx = kNone, dh = kNone, dc = kNone, dparams = kNone;
};
constexpr Args kLstm = {Cell::kLstm, false, 0, 1, 2, 3, 4, 5, 7, 8, 9, {13, 15, 14, 16}, 18, 19, 17, 10, 11, 12};
constexpr Args kLstmBackward = {Cell::kLstm, true, 0, 2, 1, 13, 14, 15, kNone, 18, 19, {6, 8, 7, 9}, 11, 12, 10, 3, 4, 5, 21, 22, 23, 24};
constexpr Args kGru = {Cell::kGru, false, 0, 1, 2, 3, 4, 5, 7, 8, 9, {12, 13, 14, kNone}, 15, kNone, 16, 10, 11, kNone};
constexpr Args kGruBackward = {Cell::kGru, true, 0, 1, 2, 10, 11, 12, kNone, 13, 14, {5, 6, 7, kNone}, 8, kNone, 9, 3, 4, kNone, 15, 16, kNone, 17};

std::vector<int> SavedLists(const Args& a) {
  std::vector<int> lists;
  for (int i = 0; i < rnn::GatesOf(a.cell); ++i) lists.push_back(a.gates[i]);
  lists.push_back(a.h);
  lists.push_back(a.cells);
  if (a.tanh_cells >= 0) lists.push_back(a.tanh_cells);
  return lists;
}

// --- the sizes of a call ----------------------------------------------------------------------------------------------

struct Sizes {
  int64_t steps, batch, in, hidden, gates;
  int64_t directions, layers;
  int64_t per_direction;  // parameters
};

bool IsPacked(const Args& a, Values v) { return v[a.sizes].given(); }
size_t Count(const Value& list) { return list.given() ? list.tensors->tensors.size() : 0; }

Sizes SizesOf(const Args& a, Values v) {
  const Dims& input = v[a.input].tensor->dims;
  Sizes s{};
  s.directions = v[a.bidirectional].flag ? 2 : 1;
  s.layers = v[a.layers].integer;
  s.per_direction = v[a.bias].flag ? 4 : 2;
  if (IsPacked(a, v)) {
    s.steps = v[a.sizes].tensor->dims[0];
    s.batch = s.steps == 0 ? 0 : input[0] / s.steps;
  } else {
    s.steps = input[v[a.batch_first].flag ? 1 : 0];
    s.batch = input[v[a.batch_first].flag ? 0 : 1];
  }
  s.in = input[input.rank() - 1];
  const Dims& state_weights = v[a.params].tensors->tensors[1]->dims;
  s.hidden = state_weights[state_weights.rank() - 1];
  s.gates = rnn::GatesOf(a.cell) * s.hidden;
  return s;
}

Dims SequenceDims(const Args& a, Values v, const Sizes& s, int64_t width) {
  if (!IsPacked(a, v) && v[a.batch_first].flag) return {s.batch, s.steps, width};
  return {s.steps, s.batch, width};
}

// --- rules ------------------------------------------------------------------------------------------------------------

std::string ShapeProblem(const std::string& name, const Dims& wanted, const Tensor* tensor) {
  if (tensor && tensor->dims == wanted) return "";
  return fmt::format("{}must have shape {}, got {}", name, ToString(wanted), tensor ? ToString(tensor->dims) : "null");
}

constexpr const char* kInputRule = "must be [steps, batch, size], or [steps * batch, size] with batchSizes";
std::string WrongInput(const Args& a, Values v) {
  const Dims& input = v[a.input].tensor->dims;
  if (!IsPacked(a, v)) return input.rank() == 3 ? "" : fmt::format("must have 3 dims, got {}", ToString(input));
  const Dims& sizes = v[a.sizes].tensor->dims;
  if (input.rank() == 2 && sizes.rank() == 1 && sizes[0] > 0 && input[0] % sizes[0] == 0) return "";
  return fmt::format("must have 2 dims and a multiple of the steps of batchSizes as rows, got {} and {}", ToString(input), ToString(sizes));
}

constexpr const char* kParamsRule = "must hold the weights, and with hasBias the biases, of every layer and direction";
std::string WrongParams(const Args& a, Values v, int arg) {
  const auto tensors = v[arg].tensors->tensors;
  const int64_t directions = v[a.bidirectional].flag ? 2 : 1, per_layer = directions * (v[a.bias].flag ? 4 : 2), layers = v[a.layers].integer;
  const auto count = static_cast<int64_t>(tensors.size());
  if (count % per_layer != 0 || count / per_layer != layers) return fmt::format("must have {} entries for each of {} layers, got {}", per_layer, layers, count);
  if (v[a.params].tensors->tensors[1]->rank() != 2) return fmt::format("must have matrices as weights, got {}", ToString(v[a.params].tensors->tensors[1]->dims));
  const Sizes s = SizesOf(a, v);
  for (int64_t k = 0; k < count; ++k) {
    const int64_t layer = k / per_layer, kind = k % s.per_direction, in = layer == 0 ? s.in : s.directions * s.hidden;
    const Dims wanted = kind == 0 ? Dims{s.gates, in} : kind == 1 ? Dims{s.gates, s.hidden} : Dims{s.gates};
    const std::string problem = ShapeProblem(fmt::format("entry {} ", k), wanted, tensors[k]);
    if (!problem.empty()) return problem;
  }
  return "";
}

Dims StateDims(const Sizes& s) { return {s.directions * s.layers, s.batch, s.hidden}; }

std::string WrongState(const Args& a, Values v, int arg) {
  return v[arg].given() ? ShapeProblem("", StateDims(SizesOf(a, v)), v[arg].tensor) : "";
}

// The first state: of an LSTM h and c, or nothing.
constexpr const char* kFirstStateRule = "must be the first states, [layers * directions, batch, hidden]";
std::string WrongFirstState(const Args& a, Values v) {
  if (a.cell == Cell::kGru) return WrongState(a, v, a.hx);
  const size_t count = Count(v[a.hx]);
  for (size_t i = 0; i < count; ++i) {
    const std::string problem = ShapeProblem(fmt::format("entry {} ", i), StateDims(SizesOf(a, v)), v[a.hx].tensors->tensors[i]);
    if (!problem.empty()) return problem;
  }
  return "";
}
std::string WrongFirstStateCount(const Args& a, Values v) {
  const size_t count = Count(v[a.hx]);
  if (count == 2 || (count == 0 && !a.gradient)) return "";
  return fmt::format("must have 2 entries, h and c, got {}", count);
}

bool UsesLists(const Args& a, Values v) { return a.gradient || v[a.train].flag; }

std::string WrongListLength(const Args& a, Values v, int arg) {
  if (!UsesLists(a, v)) return "";
  const auto count = static_cast<int64_t>(Count(v[arg])), directions = v[a.bidirectional].flag ? int64_t{2} : int64_t{1};
  if (count % directions == 0 && count / directions == v[a.layers].integer) return "";
  return fmt::format("must have an entry for each layer and direction, {} times {}, got {}", v[a.layers].integer, directions, count);
}
std::string WrongListShapes(const Args& a, Values v, int arg) {
  if (!UsesLists(a, v)) return "";
  const Sizes s = SizesOf(a, v);
  for (size_t i = 0; i < Count(v[arg]); ++i) {
    const std::string problem = ShapeProblem(fmt::format("entry {} ", i), {s.steps, s.batch, s.hidden}, v[arg].tensors->tensors[i]);
    if (!problem.empty()) return problem;
  }
  return "";
}

std::string WrongSequence(const Args& a, Values v, int arg) {
  if (!v[arg].given()) return "";
  const Sizes s = SizesOf(a, v);
  return ShapeProblem("", SequenceDims(a, v, s, s.directions * s.hidden), v[arg].tensor);
}

// --- plan -------------------------------------------------------------------------------------------------------------

Operand Slice(Operand operand, int axis, int64_t first, int64_t count) {
  operand.offset += first * operand.strides[axis] * static_cast<int64_t>(SizeOf(operand.dtype));
  operand.dims[axis] = count;
  return operand;
}
// One index of the first axis, which goes.
Operand At(const Operand& operand, int64_t index) {
  const Operand one = Slice(operand, 0, index, 1);
  Operand rest = one;
  rest.dims = rest.strides = Dims();
  for (int i = 1; i < one.dims.rank(); ++i) {
    rest.dims.push_back(one.dims[i]);
    rest.strides.push_back(one.strides[i]);
  }
  return rest;
}
// Axes in another order.
Operand Permuted(const Operand& operand, std::initializer_list<int> order) {
  Operand result = operand;
  int i = 0;
  for (const int axis : order) {
    result.dims[i] = operand.dims[axis];
    result.strides[i++] = operand.strides[axis];
  }
  return result;
}

class Builder {
 public:
  Builder(const Args& a, Values v, PlanBuilder& plan) : a_(a), v_(v), plan_(plan), s_(SizesOf(a, v)) {}

  Status Forward() {
    Operand x = Sequence(a_.input);
    for (int64_t layer = 0; layer < s_.layers; ++layer) {
      const Operand y = Scratch("layer", {s_.steps, s_.batch, s_.directions * s_.hidden});
      for (int64_t d = 0; d < s_.directions; ++d) ANYACL_RETURN_IF_ERROR(ForwardDirection(layer, d, x, y));
      x = y;
    }
    Leave(x, Sequence(a_.y));
    return Finish();
  }

  Status Gradient() {
    Operand dy;
    bool has_dy = v_[a_.y].given();
    if (has_dy) ANYACL_RETURN_IF_ERROR(ToFloat(Sequence(a_.y), &dy));
    for (int64_t layer = s_.layers - 1; layer >= 0; --layer) {
      Operand x = Sequence(a_.input), parts[2];
      if (layer > 0) ANYACL_RETURN_IF_ERROR(Joined(layer - 1, &x));
      for (int64_t d = 0; d < s_.directions; ++d) ANYACL_RETURN_IF_ERROR(BackDirection(layer, d, x, has_dy ? &dy : nullptr, &parts[d]));
      dy = parts[0];
      if (s_.directions == 2) ANYACL_RETURN_IF_ERROR(Sum(parts, &dy));
      has_dy = true;
    }
    Leave(dy, Sequence(a_.dx));
    return Finish();
  }

  // Calls without elements: gradients that have some are 0.
  Status Nothing() {
    if (!a_.gradient) return {};
    for (const int arg : {a_.dx, a_.dh, a_.dc}) {
      if (arg >= 0 && !v_[arg].tensor->empty()) ANYACL_RETURN_IF_ERROR(Zero(plan_.TensorOperand(arg)));
    }
    for (size_t i = 0; i < Count(v_[a_.dparams]); ++i) {
      const Operand to = plan_.TensorOperand(a_.dparams, static_cast<int>(i));
      if (Numel(to.dims) != 0) ANYACL_RETURN_IF_ERROR(Zero(to));
    }
    return {};
  }

 private:
  Operand Scratch(const char* name, const Dims& dims) { return plan_.ScratchOperand(name, DType::kF32, dims); }
  Status Zero(const Operand& to) {
    const pointwise::ScalarUse zero[] = {{Scalar::OfInt(0)}};
    return pointwise::AddPass(plan_, pointwise::Formula::kFill, to.dtype, {}, to, zero);
  }
  Status ToFloat(const Operand& from, Operand* to) {
    *to = from;
    if (from.dtype == DType::kF32 && from.row_major()) return {};
    *to = Scratch("converted", from.dims);
    return pointwise::AddCopy(plan_, from, *to);
  }
  // Results wait until nothing reads any longer.
  void Leave(const Operand& from, const Operand& to) { results_.push_back({from, to}); }
  Status Finish() {
    for (const auto& [from, to] : results_) ANYACL_RETURN_IF_ERROR(pointwise::AddCopy(plan_, from, to));
    return {};
  }

  // An argument as [steps, batch, size].
  Operand Sequence(int arg) {
    Operand x = plan_.TensorOperand(arg);
    if (x.dims.rank() == 2) {
      const Dims strides = x.strides;
      x.dims = {s_.steps, s_.batch, x.dims[1]};
      x.strides = {s_.batch * strides[0], strides[0], strides[1]};
      return x;
    }
    return IsPacked(a_, v_) || !v_[a_.batch_first].flag ? x : Permuted(x, {1, 0, 2});
  }
  int64_t Index(int64_t layer, int64_t d) const { return layer * s_.directions + d; }
  Operand Param(int64_t index, int kind) { return plan_.TensorOperand(a_.params, static_cast<int>(index * s_.per_direction + kind)); }
  // What a state starts from, in memory of its own.
  Status State(const char* name, bool given, const Operand& all, int64_t index, Operand* state) {
    *state = Scratch(name, {s_.batch, s_.hidden});
    return given ? pointwise::AddCopy(plan_, At(all, index), *state) : Zero(*state);
  }
  Status FirstState(int64_t index, Operand* h, Operand* c) {
    const bool lstm = a_.cell == Cell::kLstm, given = lstm ? Count(v_[a_.hx]) != 0 : v_[a_.hx].given();
    ANYACL_RETURN_IF_ERROR(State("h", given, given ? plan_.TensorOperand(a_.hx) : Operand(), index, h));
    return lstm ? State("c", given, given ? plan_.TensorOperand(a_.hx, 1) : Operand(), index, c) : Status();
  }

  Status Active(Operand* active) {
    return IsPacked(a_, v_) ? pointwise::DenseInput(plan_, a_.sizes, 0, DType::kI64, active) : Status();
  }

  RecurrenceParams& Begin(int64_t d, const Operand& active) {
    auto& params = plan_.MakeParams<RecurrenceParams>();
    params.cell = a_.cell;
    params.gradient = a_.gradient;
    params.reverse = d == 1;
    params.steps = s_.steps;
    params.batch = s_.batch;
    params.hidden = s_.hidden;
    if (IsPacked(a_, v_)) Bind(active, params.active);
    return params;
  }
  template <class T>
  void Bind(const Operand& operand, T*& member) {
    rnn::Bind(plan_, operand, member);
  }

  Status ForwardDirection(int64_t layer, int64_t d, const Operand& x, const Operand& y) {
    const int64_t index = Index(layer, d);
    const Operand gates = Scratch("gates", {s_.steps, s_.batch, s_.gates}), hidden_gates = Scratch("gates of the state", {s_.batch, s_.gates});
    const Operand cells = Scratch("cells", {s_.steps, s_.batch, s_.hidden}), tanh_cells = Scratch("tanh of cells", {s_.steps, s_.batch, s_.hidden});
    ANYACL_RETURN_IF_ERROR(matmul::AddContraction(plan_, x, {0, 2, 1}, Param(index, 0), {0, 1, 1}, gates));
    Operand h, c, bias[2], active;
    ANYACL_RETURN_IF_ERROR(FirstState(index, &h, &c));
    for (int i = 0; i < 2 && v_[a_.bias].flag; ++i) ANYACL_RETURN_IF_ERROR(ToFloat(Param(index, 2 + i), &bias[i]));
    ANYACL_RETURN_IF_ERROR(Active(&active));
    const Operand half = Slice(y, 2, d * s_.hidden, s_.hidden);
    RecurrenceParams& params = Begin(d, active);
    matmul::BindContraction(plan_, h, {0, 1, 1}, Param(index, 1), {0, 1, 1}, hidden_gates, &params.product);
    params.y_step = s_.directions * s_.hidden;
    Bind(gates, params.gates);
    Bind(hidden_gates, params.hidden_gates);
    Bind(h, params.h);
    Bind(half, params.y);
    Bind(cells, params.cells);
    if (v_[a_.bias].flag) {
      Bind(bias[0], params.input_bias);
      Bind(bias[1], params.hidden_bias);
    }
    if (a_.cell == Cell::kLstm) {
      Bind(c, params.c);
      Bind(tanh_cells, params.tanh_cells);
    }
    ANYACL_RETURN_IF_ERROR(plan_.ChooseKernel("recurrence"));
    Leave(h, At(plan_.TensorOperand(a_.last_h), index));
    if (a_.cell == Cell::kLstm) Leave(c, At(plan_.TensorOperand(a_.last_c), index));
    if (v_[a_.train].flag) LeaveSteps(static_cast<int>(index), gates, half, cells, tanh_cells);
    return {};
  }

  void LeaveSteps(int index, const Operand& gates, const Operand& h, const Operand& cells, const Operand& tanh_cells) {
    for (int i = 0; i < rnn::GatesOf(a_.cell); ++i) Leave(Slice(gates, 2, i * s_.hidden, s_.hidden), plan_.TensorOperand(a_.gates[i], index));
    Leave(h, plan_.TensorOperand(a_.h, index));
    Leave(cells, plan_.TensorOperand(a_.cells, index));
    if (a_.tanh_cells >= 0) Leave(tanh_cells, plan_.TensorOperand(a_.tanh_cells, index));
  }

  // What a layer gave, of both directions together.
  Status Joined(int64_t layer, Operand* x) {
    *x = Scratch("layer", {s_.steps, s_.batch, s_.directions * s_.hidden});
    for (int64_t d = 0; d < s_.directions; ++d) {
      const Operand from = plan_.TensorOperand(a_.h, static_cast<int>(Index(layer, d)));
      ANYACL_RETURN_IF_ERROR(pointwise::AddCopy(plan_, from, Slice(*x, 2, d * s_.hidden, s_.hidden)));
    }
    return {};
  }
  Status Sum(const Operand* parts, Operand* sum) {
    *sum = Scratch("gradient of a layer", parts[0].dims);
    const pointwise::ScalarUse ones[] = {{Scalar::OfFloat(1)}, {Scalar::OfFloat(1)}};
    return pointwise::AddPass(plan_, pointwise::Formula::kScaledSum, DType::kF32, {parts, 2}, *sum, ones);
  }

  Status BackDirection(int64_t layer, int64_t d, const Operand& x, const Operand* dy, Operand* dx) {
    const int64_t index = Index(layer, d);
    const int item = static_cast<int>(index);
    const bool lstm = a_.cell == Cell::kLstm;
    const Dims per_gate = {s_.steps, s_.batch, s_.gates}, per_unit = {s_.steps, s_.batch, s_.hidden};
    const Operand gates = Scratch("gates", per_gate), gate_grads = Scratch("gradients of gates", per_gate);
    const Operand hidden_grads = lstm ? gate_grads : Scratch("gradients of gates of the state", per_gate);
    const Operand h_before = Scratch("states", per_unit), h_grads = Scratch("gradient of a state", {s_.batch, s_.hidden});
    for (int i = 0; i < rnn::GatesOf(a_.cell); ++i) {
      ANYACL_RETURN_IF_ERROR(pointwise::AddCopy(plan_, plan_.TensorOperand(a_.gates[i], item), Slice(gates, 2, i * s_.hidden, s_.hidden)));
    }
    Operand h, c, cells, tanh_cells, y, dh, dc, active;
    ANYACL_RETURN_IF_ERROR(FirstState(index, &h, &c));
    ANYACL_RETURN_IF_ERROR(ToFloat(plan_.TensorOperand(a_.h, item), &y));
    ANYACL_RETURN_IF_ERROR(ToFloat(plan_.TensorOperand(a_.cells, item), &cells));
    if (lstm) ANYACL_RETURN_IF_ERROR(ToFloat(plan_.TensorOperand(a_.tanh_cells, item), &tanh_cells));
    const auto state = [&](int arg, Operand* operand) {
      return State("gradient of the state", v_[arg].given(), v_[arg].given() ? plan_.TensorOperand(arg) : Operand(), index, operand);
    };
    ANYACL_RETURN_IF_ERROR(state(a_.last_h, &dh));
    if (lstm) ANYACL_RETURN_IF_ERROR(state(a_.last_c, &dc));
    ANYACL_RETURN_IF_ERROR(Active(&active));

    RecurrenceParams& params = Begin(d, active);
    matmul::BindContraction(plan_, At(hidden_grads, 0), {0, 1, 1}, matmul::Transposed(Param(index, 1)), {0, 1, 1}, h_grads, &params.product);
    params.y_step = s_.hidden;
    params.dy_step = s_.directions * s_.hidden;
    if (dy) Bind(Slice(*dy, 2, d * s_.hidden, s_.hidden), params.dy);
    Bind(gates, params.gates);
    Bind(h, params.h);
    Bind(y, params.y);
    Bind(cells, params.cells);
    Bind(dh, params.dh);
    Bind(gate_grads, params.gate_grads);
    Bind(hidden_grads, params.hidden_gate_grads);
    Bind(h_before, params.h_before);
    Bind(h_grads, params.h_grads);
    if (lstm) {
      Bind(c, params.c);
      Bind(dc, params.dc);
      Bind(tanh_cells, params.tanh_cells);
    }
    ANYACL_RETURN_IF_ERROR(plan_.ChooseKernel("recurrence"));
    Leave(dh, At(plan_.TensorOperand(a_.dh), index));
    if (lstm) Leave(dc, At(plan_.TensorOperand(a_.dc), index));
    return BackWeights(index, x, h_before, gate_grads, hidden_grads, dx);
  }

  Status BackWeights(int64_t index, const Operand& x, const Operand& h_before, const Operand& gate_grads, const Operand& hidden_grads, Operand* dx) {
    const Operand grads[] = {Permuted(gate_grads, {2, 0, 1}), Permuted(hidden_grads, {2, 0, 1})};
    const Operand from[] = {Permuted(x, {2, 0, 1}), Permuted(h_before, {2, 0, 1})};
    Operand one = Scratch("one", {1});
    const auto output = [&](int64_t kind) { return plan_.TensorOperand(a_.dparams, static_cast<int>(index * s_.per_direction + kind)); };
    for (int i = 0; i < 2; ++i) {
      const Operand dw = Scratch("gradient of weights", {s_.gates, from[i].dims[0]});
      ANYACL_RETURN_IF_ERROR(matmul::AddContraction(plan_, grads[i], {0, 1, 2}, from[i], {0, 1, 2}, dw));
      Leave(dw, output(i));
    }
    if (v_[a_.bias].flag) {
      const pointwise::ScalarUse value[] = {{Scalar::OfFloat(1)}};
      ANYACL_RETURN_IF_ERROR(pointwise::AddPass(plan_, pointwise::Formula::kFill, DType::kF32, {}, one, value));
      one.dims = {1, s_.steps, s_.batch};
      one.strides = {0, 0, 0};
      for (int i = 0; i < 2; ++i) {
        const Operand db = Scratch("gradient of a bias", {s_.gates});
        ANYACL_RETURN_IF_ERROR(matmul::AddContraction(plan_, grads[i], {0, 1, 2}, one, {0, 1, 2}, db));
        Leave(db, output(2 + i));
      }
    }
    *dx = Scratch("gradient of a layer", {s_.steps, s_.batch, x.dims[2]});
    return matmul::AddContraction(plan_, gate_grads, {0, 2, 1}, matmul::Transposed(Param(index, 0)), {0, 1, 1}, *dx);
  }

  const Args& a_;
  Values v_;
  PlanBuilder& plan_;
  Sizes s_;
  std::vector<std::pair<Operand, Operand>> results_;
};

template <const Args& kArgs>
Status PlanSequence(Values v, PlanBuilder& plan) {
  const Sizes s = SizesOf(kArgs, v);
  Builder builder(kArgs, v, plan);
  if (s.steps == 0 || s.batch == 0 || s.in == 0 || s.hidden == 0) return builder.Nothing();
  return kArgs.gradient ? builder.Gradient() : builder.Forward();
}

// --- tables -----------------------------------------------------------------------------------------------------------

template <const Args& kArgs, int kArg>
Rule StateRule(const Entry& entry) {
  return Custom(entry.args[kArg].name, kFirstStateRule, [](Values v, Product) { return WrongState(kArgs, v, kArg); });
}

template <const Args& kArgs, size_t kList>
void AddListRules(const Entry& entry, bool lengths, int32_t code, Table* table) {
  static const std::vector<int> lists = SavedLists(kArgs);
  if constexpr (kList < 7) {
    if (kList < lists.size()) {
      const char* const name = entry.args[lists[kList]].name;
      if (lengths) {
        Add(table, {Custom(name, "must have an entry for each layer and direction", [](Values v, Product) {
                      return WrongListLength(kArgs, v, lists[kList]);
                    }).Code(code)});
      } else {
        Add(table, {Custom(name, "must have entries of shape [steps, batch, hidden]", [](Values v, Product) { return WrongListShapes(kArgs, v, lists[kList]); })});
      }
      AddListRules<kArgs, kList + 1>(entry, lengths, code, table);
    }
  }
}

constexpr const char* kTagRule = "must be NCL when it has 3 dims, else ND";
std::string WrongTag(const Args& a, Values v) {
  for (const int arg : {a.input, a.y, a.last_h, a.last_c, a.dx, a.dh, a.dc}) {
    if (arg < 0 || !v[arg].given()) continue;
    const Tensor& t = *v[arg].tensor;
    if (t.format != (t.rank() == 3 ? Format::kNCL : Format::kND)) return fmt::format("{}, as other tensors, got {} for argument {}", kTagRule, Name(t.format), arg);
  }
  for (const int arg : {a.params, a.dparams}) {
    for (const Tensor* t : v[arg].tensors->tensors) {
      if (t->format != Format::kND) return fmt::format("and parameters must be ND, got {} for an entry of argument {}", Name(t->format), arg);
    }
  }
  return "";
}

// Every rule about dtype, count and shape; the same for both cells and directions.
template <const Args& kArgs>
void AddSequenceRules(const Entry& entry, DTypeSet newest, Table* table) {
  const auto name = [&](int arg) { return entry.args[arg].name; };
  constexpr bool kLstmCell = kArgs.cell == Cell::kLstm;
  Add(table, {DTypes(name(kArgs.input), RowsOf(newest, k2)), DTypes(name(kArgs.sizes), {{{DType::kI64}}})});
  for (size_t i = 0; i < entry.args.size(); ++i) {
    const int arg = static_cast<int>(i);
    if (arg == kArgs.input || arg == kArgs.sizes) continue;
    const ArgKind kind = entry.args[i].kind;
    if (IsTensor(kind) || IsTensorList(kind)) Add(table, {SameDType(name(arg), name(kArgs.input))});
  }
  if constexpr (kLstmCell) {
    Add(table, {Custom(name(kArgs.hx), "must have 2 entries, h and c", [](Values v, Product) { return WrongFirstStateCount(kArgs, v); })
                    .Code(kArgs.gradient ? 161001 : 161002)});
  }
  AddListRules<kArgs, 0>(entry, true, kArgs.gradient && kLstmCell ? 161001 : 161002, table);
  Add(table, {Require("numLayers", "numLayers >= 1"),
              Custom(name(kArgs.input), kInputRule, [](Values v, Product) { return WrongInput(kArgs, v); }),
              Custom(name(kArgs.params), kParamsRule, [](Values v, Product) { return WrongParams(kArgs, v, kArgs.params); }),
              Custom(name(kArgs.hx), kFirstStateRule, [](Values v, Product) { return WrongFirstState(kArgs, v); }),
              Custom(name(kArgs.y), "must have the hidden state of every step", [](Values v, Product) { return WrongSequence(kArgs, v, kArgs.y); }),
              StateRule<kArgs, kArgs.last_h>(entry)});
  if constexpr (kLstmCell) Add(table, {StateRule<kArgs, kArgs.last_c>(entry)});
  AddListRules<kArgs, 0>(entry, false, 161002, table);
  if constexpr (kArgs.gradient) {
    Add(table, {SameShape(name(kArgs.dx), name(kArgs.input)), StateRule<kArgs, kArgs.dh>(entry)});
    if constexpr (kLstmCell) Add(table, {StateRule<kArgs, kArgs.dc>(entry)});
    Add(table, {Custom(name(kArgs.dparams), kParamsRule, [](Values v, Product) { return WrongParams(kArgs, v, kArgs.dparams); })});
  }
  table->notes = {"Gates are in the order of the parameters: i, f, g, o of an LSTM, r, z, n of a GRU. Dropout is never applied.",
                  "With batchSizes, rows that have ended keep their state and give 0."};
}

Operator MakeLstm(const Entry& entry) {
  const auto name = [&](int arg) { return entry.args[arg].name; };
  ArgRoles roles = {.optional = {"hx", "batchSizes"}};
  for (const int list : SavedLists(kLstm)) roles.optional.push_back(name(list));
  Table table = TableOf(entry, "recurrence", "Long short-term memory over sequences: layers, one direction or two.", roles);
  AddNullRules(&table);
  for (const int list : SavedLists(kLstm)) Add(&table, {NotNull(name(list)).If("train")});
  Add(&table, {Supported(kFive)});
  AddSequenceRules<kLstm>(entry, k2, &table);
  for (const char* arg : {"input", "output", "hy", "cy"}) Add(&table, {PublicFormat(arg)});
  return {.contract = Contract(std::move(table)), .plan = PlanSequence<kLstm>, .family = "rnn"};
}

Operator MakeLstmBackward(const Entry& entry) {
  Table table = TableOf(entry, "recurrence", "Gradients of long short-term memory.", {.optional = {"dy", "dh", "dc", "batchSizesOptional", "outputMask"}});
  AddNullRules(&table);
  Add(&table, {Supported(kNewer)});
  AddSequenceRules<kLstmBackward>(entry, k2, &table);
  Add(&table, {Custom("input", kTagRule, [](Values v, Product) { return WrongTag(kLstmBackward, v); })});
  return {.contract = Contract(std::move(table)), .plan = PlanSequence<kLstmBackward>, .family = "rnn"};
}

// Packed sequences, and with them BF16, are what PyTorch's backend asks of the newest product.
std::string WrongSizes(const Args& a, Values v, Product product) {
  const bool packed = IsPacked(a, v);
  if (packed && product != Product::kAscend950) return "must be null, got a tensor";
  const bool bf16 = v[a.input].tensor->dtype == DType::kBF16;
  return bf16 && !packed ? "must be given for BF16, got null" : "";
}

Operator MakeGru(const Entry& entry) {
  const auto name = [&](int arg) { return entry.args[arg].name; };
  ArgRoles roles = {.optional = {"hx", "batchSizes"}};
  for (const int list : SavedLists(kGru)) roles.optional.push_back(name(list));
  Table table = TableOf(entry, "recurrence", "Gated recurrent units over sequences: layers, one direction or two.", roles);
  AddNullRules(&table);
  for (const int list : SavedLists(kGru)) Add(&table, {NotNull(name(list)).If("train")});
  Add(&table, {Supported(kNewer)});
  AddSequenceRules<kGru>(entry, types::kFloat3, &table);
  Add(&table, {Custom("batchSizes", "must be null, but on Ascend 950", [](Values v, Product p) { return WrongSizes(kGru, v, p); }).EvenIfAbsent()});
  return {.contract = Contract(std::move(table)), .plan = PlanSequence<kGru>, .family = "rnn"};
}

Operator MakeGruBackward(const Entry& entry) {
  Table table = TableOf(entry, "recurrence", "Gradients of gated recurrent units.", {.optional = {"batchSizes"}});
  AddNullRules(&table);
  Add(&table, {Supported(kNewer)});
  AddSequenceRules<kGruBackward>(entry, types::kFloat3, &table);
  Add(&table, {NotEmpty("input"), Custom("batchSizes", "must be null, but on Ascend 950", [](Values v, Product p) { return WrongSizes(kGruBackward, v, p); }).EvenIfAbsent()});
  for (const char* arg : {"input", "dy", "dh", "hx", "dxOut", "dhPrevOut"}) Add(&table, {Formats(arg, {Format::kND, Format::kNCL})});
  return {.contract = Contract(std::move(table)), .plan = PlanSequence<kGruBackward>, .family = "rnn"};
}

}  // namespace

void DeclareRnn(Declarations& declarations) {
  declarations.Add("aclnnLSTM", MakeLstm);
  declarations.Add("aclnnLstmBackward", MakeLstmBackward);
  declarations.Add("aclnnGRU", MakeGru);
  declarations.Add("aclnnGRUBackward", MakeGruBackward);
  rnn::DeclareCells(declarations);
}

}  // namespace anyacl
