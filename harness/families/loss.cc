// SPDX-License-Identifier: Apache-2.0
// Copyright The AnyACL Authors
//
// Losses and their gradients from their definitions, element by element in long double.
#include <cmath>
#include <limits>
#include <string_view>

#include "core/product.h"
#include "harness/family.h"

namespace anyacl::harness {

namespace {

constexpr Real kNan = std::numeric_limits<Real>::quiet_NaN();
enum { kNone, kMean, kSum, kBatchMean };

// One element's operands, and how large the numbers were that its result is the difference of.
struct Point {
  Real g = 1, x = 0, t = 0, w = 1, p = 1, beta = 0;
  bool log = false;
  Real size = 0;
};

Real Sigma(Real x) { return 1 / (1 + std::exp(-x)); }
Real Softplus(Real x) { return std::isnan(x) ? x : std::fmax(x, Real{0}) + std::log1p(std::exp(-std::fabs(x))); }
Real Sign(Real x) { return x > 0 ? 1 : x < 0 ? -1 : 0; }
Real AtLeast(Real x, Real least) { return x < least ? least : x; }

Real Mse(Point& p) {
  p.size = (std::fabs(p.x) + std::fabs(p.t)) * std::fabs(p.x - p.t);
  return (p.x - p.t) * (p.x - p.t);
}
Real MseBackward(Point& p) {
  p.size = 2 * (std::fabs(p.x) + std::fabs(p.t)) * std::fabs(p.g);
  return 2 * (p.x - p.t) * p.g;
}
Real L1(Point& p) { return std::fabs(p.x - p.t); }
Real L1Backward(Point& p) { return Sign(p.x - p.t) * p.g; }
Real SmoothL1(Point& p) {
  const Real d = std::fabs(p.x - p.t);
  p.size = std::fabs(p.x) + std::fabs(p.t) + p.beta;
  return d < p.beta ? d * d / 2 / p.beta : d - p.beta / 2;
}
Real SmoothL1Backward(Point& p) {
  const Real d = p.x - p.t;
  p.size = std::fabs(p.g) * (1 + (p.beta > 0 ? (std::fabs(p.x) + std::fabs(p.t)) / p.beta : 0));
  return d <= -p.beta ? -p.g : d >= p.beta ? p.g : p.g * d / p.beta;
}
Real Bce(Point& p) {
  const Real yes = AtLeast(std::log(p.x), -100), no = AtLeast(std::log1p(-p.x), -100);
  p.size = std::fabs(p.w) * (std::fabs(p.t * yes) + (1 + std::fabs(p.t)) * std::fabs(no));
  return -p.w * (p.t * yes + (1 - p.t) * no);
}
Real BceBackward(Point& p) {
  const Real room = AtLeast((1 - p.x) * p.x, 1e-12L);
  p.size = std::fabs(p.g * p.w) * (std::fabs(p.x) + std::fabs(p.t)) / room * 2;
  return p.g * p.w * (p.x - p.t) / room;
}
Real BceWithLogits(Point& p) {
  const Real positive = 1 + (p.p - 1) * p.t, rest = std::log1p(std::exp(-std::fabs(p.x))) + AtLeast(-p.x, 0);
  p.size = std::fabs(p.w) * ((1 + std::fabs(p.t)) * std::fabs(p.x) + (1 + (std::fabs(p.p) + 1) * std::fabs(p.t)) * (rest + 1));
  return p.w * ((1 - p.t) * p.x + positive * rest);
}
Real BceWithLogitsBackward(Point& p) {
  p.size = std::fabs(p.g * p.w) * (2 + 3 * (std::fabs(p.p) + 1) * std::fabs(p.t));
  return p.g * p.w * ((p.p * p.t + 1 - p.t) * Sigma(p.x) - p.p * p.t);
}
Real BceTarget(Point& p) {
  p.size = std::fabs(p.g * p.w) * (1 + std::fabs(p.p)) * (1 + std::fabs(p.x));
  return p.g * p.w * (p.p * Softplus(-p.x) - Softplus(p.x));
}
Real SoftMargin(Point& p) {
  p.size = 1;
  return Softplus(-p.t * p.x);
}
Real SoftMarginBackward(Point& p) {
  p.size = std::fabs(p.t * p.g) * (1 + std::fabs(p.t * p.x));
  return -p.t * Sigma(-p.t * p.x) * p.g;
}
Real Kl(Point& p) {
  p.size = std::fabs(p.t * p.x) + std::fabs(p.t);
  if (p.log) {
    p.size = std::exp(p.t) * (std::fabs(p.t) + std::fabs(p.x)) * (1 + std::fabs(p.t));
    return std::exp(p.t) * (p.t - p.x);
  }
  return (p.t == 0 ? 0 : p.t * std::log(p.t)) - p.t * p.x;
}
Real KlBackward(Point& p) {
  p.size = p.log ? std::exp(p.t) * std::fabs(p.g * p.t) : 0;
  return -(p.log ? std::exp(p.t) : p.t) * p.g;
}
Real KlTarget(Point& p) {
  p.size = std::fabs(p.g) * (2 + std::fabs(p.x) + std::fabs(std::log(p.t)));
  if (!p.log) return p.t > 0 ? p.g * (std::log(p.t) + 1 - p.x) : kNan;
  p.size = std::fabs(p.g) * std::exp(p.t) * (1 + std::fabs(p.t)) * (1 + std::fabs(p.x) + std::fabs(p.t));
  return p.g * std::exp(p.t) * (p.t - p.x + 1);
}

struct Loss {
  const char* op;
  Real (*of)(Point& p);
  Values self = Between(-2, 2), target = Between(-2, 2);
  bool self_counts = false;  // a mean is divided by the elements of self
  bool batch = false;        // reduction 3
  bool log = false;          // has logTarget
};

const std::vector<Loss>& Losses() {
  static const auto* const losses = new std::vector<Loss>{
      {"aclnnMseLoss", Mse},
      {"aclnnMseLossOut", Mse},
      {.op = "aclnnMseLossBackward", .of = MseBackward, .self_counts = true},
      {"aclnnL1Loss", L1},
      {"aclnnL1LossBackward", L1Backward},
      {"aclnnSmoothL1Loss", SmoothL1},
      {.op = "aclnnSmoothL1LossBackward", .of = SmoothL1Backward, .self_counts = true},
      {"aclnnBinaryCrossEntropy", Bce, Between(0, 1), Between(0, 1)},
      {"aclnnBinaryCrossEntropyBackward", BceBackward, Between(0, 1), Between(0, 1)},
      {"aclnnBinaryCrossEntropyWithLogits", BceWithLogits, Between(-9, 9), Between(0, 1)},
      {"aclnnBinaryCrossEntropyWithLogitsBackward", BceWithLogitsBackward, Between(-9, 9), Between(0, 1)},
      {"aclnnBinaryCrossEntropyWithLogitsTargetBackward", BceTarget, Between(-9, 9), Between(0, 1)},
      {"aclnnSoftMarginLoss", SoftMargin, Between(-9, 9), Whole(-1, 1)},
      {"aclnnSoftMarginLossBackward", SoftMarginBackward, Between(-9, 9), Whole(-1, 1)},
      {.op = "aclnnKlDiv", .of = Kl, .self = Between(-3, 0), .target = Between(-0.1L, 1), .batch = true, .log = true},
      {.op = "aclnnKlDivBackward", .of = KlBackward, .self = Between(-3, 0), .target = Between(-0.1L, 1), .batch = true, .log = true},
      {.op = "aclnnKlDivTargetBackward", .of = KlTarget, .self = Between(-3, 0), .target = Between(-0.1L, 1), .batch = true, .log = true},
  };
  return *losses;
}
const Loss& LossOf(std::string_view op) {
  for (const Loss& loss : Losses()) {
    if (op == loss.op) return loss;
  }
  throw std::invalid_argument(std::string(op));
}

// --- samples ---------------------------------------------------------------------------------------------------------

struct Sampler {
  explicit Sampler(Calls& all) : calls(all), loss(LossOf(all.op().contract.op())), args(all.op().contract.args()) {
    for (int i = 0; i < static_cast<int>(args.size()); ++i) {
      if (args[i].kind == contract::ArgKind::kOutput) out = i;
      else if (args[i].is_tensor()) inputs.push_back(i);
    }
  }
  bool is_gradient() const { return std::string_view(args[0].name).starts_with("grad"); }

  // One call with a result of one of these shapes, if the contract takes it.
  bool Try(const std::vector<DType>& types, const std::vector<Dims>& dims, DType result, int reduction, const Values* values = nullptr,
           unsigned absent = 0, bool alias = false) {
    std::vector<TestArg> list(args.size());
    std::vector<const Dims*> shapes;
    for (size_t k = 0; k < inputs.size(); ++k) {
      const std::string_view name = args[inputs[k]].name;
      if (absent >> k & 1) {
        if (!args[inputs[k]].optional) return false;
        list[inputs[k]] = Null();
        continue;
      }
      Values own = name == "self" ? loss.self : name == "target" ? loss.target : Between(-2, 2);
      if (IsInteger(types[k])) own = Whole(-50, 50);
      list[inputs[k]] = In(types[k], dims[k], values ? *values : own);
      shapes.push_back(&dims[k]);
    }
    for (size_t i = 0; i < args.size(); ++i) {
      const std::string_view name = args[i].name;
      if (name == "reduction") list[i] = Int(reduction);
      if (name == "beta") list[i] = RealArg(betas[next % 3]);
      if (name == "logTarget") list[i] = Flag(next % 2 != 0);
    }
    ++next;
    Dims together, rest;
    if (!contract::BroadcastDims(shapes, &together)) return false;
    for (int i = 1; i < together.rank(); ++i) rest.push_back(together[i]);
    bool any = false;
    for (const Dims& shape : {together, Dims{}, Dims{1}, rest, dims[0], dims[is_gradient() ? 1 : 0], dims[is_gradient() ? 2 : 1]}) {
      list[out] = Out(result, shape);
      contract::CallSpec spec;
      for (const TestArg& arg : list) spec.args.push_back(arg.spec);
      if (!calls.op().contract.Check(spec.Bind(calls.op().contract), CurrentProduct()).ok()) continue;
      TestCall& call = calls.Add(list);
      const size_t self = is_gradient() ? 1 : 0;
      if (alias && shape == dims[self] && result == types[self]) call.same = {{out, inputs[self]}};
      any = true;
      if (shape != Dims{}) break;  // one element may have a rank or none
    }
    return any;
  }

  void Run() {
    const size_t n = inputs.size();
    const std::vector<DType> floats = {DType::kF32, DType::kF16, DType::kBF16, DType::kF64};
    std::vector<Dims> same(n, Dims{3, 5}), vector(n, Dims{5}), mixed(n, Dims{2, 1, 3}), none(n, Dims{0, 3}), points(n, Dims{}), large(n, Dims{211, 173});
    std::vector<Dims> scalar_gradient = same, sums = same;
    scalar_gradient[0] = {};
    vector[is_gradient() ? 1 : 0] = {3, 5};
    sums[n - 1] = {1, 5};
    mixed[n - 1] = {4, 1};
    for (int reduction = kNone; reduction <= (loss.batch ? kBatchMean : kSum); ++reduction) {
      for (const DType t : calls.TypesOf("self")) {
        const std::vector<DType> alike(n, t);
        for (const auto& dims : {same, vector, mixed, none, points, scalar_gradient, sums}) {
          Try(alike, dims, t, reduction, nullptr, 0, dims == same);
        }
        for (const unsigned absent : {0b1000u, 0b11000u, 0b100u}) Try(alike, same, t, reduction, nullptr, absent);
        for (const DType result : {DType::kF32, DType::kF16, DType::kBF16, DType::kF64, DType::kI64}) Try(alike, same, result, reduction);
        for (size_t k = 0; k < n; ++k) {
          std::vector<DType> pair(n, DType::kF32);
          pair[k] = t;
          for (const DType result : reduction == kNone ? floats : std::vector{t}) Try(pair, same, result, reduction);
        }
      }
      const Values hostile = Hostile();
      for (int i = 0; i < 3; ++i) Try(std::vector<DType>(n, DType::kF32), std::vector<Dims>(n, Dims{33}), DType::kF32, reduction, &hostile);
      Try(std::vector<DType>(n, DType::kF32), large, DType::kF32, reduction);
    }
  }

  Calls& calls;
  const Loss& loss;
  std::span<const contract::Arg> args;
  Checked<int> inputs;
  int out = -1;
  size_t next = 0;
  static constexpr double betas[] = {0.75, 0, 1.5};
};

void Sample(Calls& calls) { Sampler(calls).Run(); }

// --- oracle ----------------------------------------------------------------------------------------------------------

// Where the element of `from` at row-major index i goes in `to`, to which `from` is summed up.
int64_t TargetOf(const Host& to, const Dims& from, int64_t i) {
  int64_t index = 0, step = 1;
  for (int axis = from.rank() - 1; axis >= 0; --axis) {
    const int64_t at = i % from[axis];
    i /= from[axis];
    const int own = axis - (from.rank() - to.dims.rank());
    if (own < 0) continue;
    if (to.dims[own] != 1) index += at * step;
    step *= to.dims[own];
  }
  return index;
}

void Oracle(HostCall& call) {
  const Loss& loss = LossOf(call.name());
  const auto args = call.op().contract.args();
  std::vector<std::pair<Real Point::*, const Host*>> operands;
  std::vector<const Dims*> shapes;
  bool wide = false;
  const char* result = nullptr;
  for (const contract::Arg& arg : args) {
    if (arg.kind == contract::ArgKind::kOutput) result = arg.name;
    else if (arg.is_tensor() && call.Has(arg.name)) {
      const std::string_view name = arg.name;
      const auto member = name.starts_with("grad")   ? &Point::g
                          : name == "self"           ? &Point::x
                          : name == "target"         ? &Point::t
                          : name.starts_with("pos") ? &Point::p
                                                     : &Point::w;
      const Host& tensor = call.In(arg.name);
      operands.push_back({member, &tensor});
      shapes.push_back(&tensor.dims);
      wide = wide || tensor.dtype == DType::kF64;
    }
  }
  Dims together;
  contract::BroadcastDims(shapes, &together);
  const bool is_gradient = operands[0].first == &Point::g;
  const int64_t reduction = call.Int("reduction"), count = Numel(together);
  const Dims& self = call.In("self").dims;
  const Real elements = static_cast<Real>(loss.self_counts ? Numel(self) : count);
  const Real batch = self.rank() == 0 ? 1 : static_cast<Real>(self[0]);
  Real divisor = reduction == kMean ? elements : reduction == kBatchMean ? batch : 1;
  Host& out = call.Out(result);
  if (is_gradient && count == 0) return;
  const bool first_only = std::string_view(call.name()) == "aclnnMseLossOut" && reduction != kNone && together.rank() > 0;
  if (first_only && reduction == kMean) divisor = static_cast<Real>(together[0]);
  Dims rest = first_only ? Dims() : out.dims;
  for (int i = 1; first_only && i < together.rank(); ++i) rest.push_back(together[i]);
  Host sums = out;
  sums.dims = is_gradient || reduction == kNone || first_only ? rest : Dims();
  Checked<Real> size(out.size());
  for (int64_t i = 0; i < count; ++i) {
    Point p;
    for (const auto& [member, tensor] : operands) p.*member = tensor->Broadcast(together, i).real();
    if (call.HasArg("beta")) p.beta = static_cast<Real>(call.Real("beta"));
    if (loss.log) p.log = call.Flag("logTarget");
    const Real value = loss.of(p);
    const int64_t to = TargetOf(sums, together, i);
    out[to] += value;
    size[to] += std::fabs(value) + (std::isfinite(p.size) ? p.size : 0);
  }
  const DType unit = wide ? DType::kF64 : DType::kF32;
  if (!IsInteger(out.dtype)) out.computed = unit;
  for (int64_t i = 0; i < out.size(); ++i) {
    out[i] /= divisor;
    const Real spread = size[i] / divisor;
    out.slack.push_back(IsInteger(out.dtype) ? 0 : 4 * UlpOf(unit, std::isfinite(spread) ? spread : 0));
  }
}

}  // namespace

std::span<const Subject> LossSubjects() {
  static auto* const subjects = [] {
    auto* const list = new std::vector<Subject>;
    for (const Loss& loss : Losses()) list->push_back({loss.op, Sample, Oracle, {.ulps = 4}});
    return list;
  }();
  return *subjects;
}

}  // namespace anyacl::harness
