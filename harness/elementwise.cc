// SPDX-License-Identifier: Apache-2.0
// Copyright The AnyACL Authors
#include "harness/elementwise.h"

#include <algorithm>
#include <cmath>
#include <cstring>
#include <deque>
#include <map>

#include "core/product.h"
#include "core/promotion.h"

namespace anyacl::harness {

Number Point::Whole(__int128 value) const {
  const uint64_t low = static_cast<uint64_t>(static_cast<unsigned __int128>(value));
  return computed == DType::kU64 ? Number(low) : Number(static_cast<int64_t>(low));
}

namespace {

using contract::ArgKind;

std::map<std::string, const Elementwise*>& Rows() {
  static auto* const rows = new std::map<std::string, const Elementwise*>;
  return *rows;
}

// Which arguments of a form are what.
struct Layout {
  explicit Layout(const Operator& op) : row(*Rows().at(op.contract.op())) {
    in_place = std::strncmp(op.contract.op(), "aclnnInplace", 12) == 0;
    const auto args = op.contract.args();
    for (int i = 0; i < static_cast<int>(args.size()); ++i) {
      const contract::Arg& arg = args[i];
      if (Has(row.ignored, arg.name)) {
        ignored.push_back(i);
        continue;
      }
      if (arg.is_written()) out = i;
      if (arg.is_tensor() && (arg.kind != ArgKind::kOutput)) operands.push_back(i);
      else if (arg.kind == ArgKind::kOutput) continue;
      else if (arg.kind == ArgKind::kScalar && !Has(row.scalars, arg.name)) operands.push_back(i);
      else if (arg.kind == ArgKind::kScalar) scalars.push_back(i);
      else attributes.push_back(i);
    }
  }
  static bool Has(const std::vector<std::string>& names, const char* name) {
    return std::find(names.begin(), names.end(), name) != names.end();
  }

  const Elementwise& row;
  Checked<int> operands, scalars, attributes, ignored;
  int out = -1;
  bool in_place;
};

bool IsWholeType(DType t) { return IsInteger(t) || t == DType::kBool; }

// One operand: its dtype and how many dims it has; scalars have -1.
struct OperandType {
  DType dtype;
  int rank;
};

// The dtype operands are computed in, for a result of dtype `out`.
DType ComputedOf(const Elementwise& row, const std::vector<OperandType>& operands, const Checked<bool>& decides, DType out) {
  if (row.decides == Decides::kTruth) return DType::kBool;
  if (row.decides == Decides::kFloat) return DType::kF32;
  if (row.decides == Decides::kResult) return out;
  DType result = DType::kUndefined;
  bool has_dims = false;
  for (const bool scalar : {false, true}) {
    for (size_t k = 0; k < operands.size(); ++k) {
      if (!decides[k] || (operands[k].rank < 0) != scalar) continue;
      const OperandType& o = operands[k];
      if (scalar) {
        result = PromoteScalar(result, o.dtype, out);
      } else if (result == DType::kUndefined) {
        result = o.dtype;
        has_dims = o.rank > 0;
        if (row.decides == Decides::kFirst) break;
      } else {
        const DType plain = Promote(result, o.dtype);
        DType relaxed = plain;
        if (has_dims != (o.rank > 0)) {
          relaxed = has_dims ? PromoteZeroDim(result, o.dtype) : PromoteZeroDim(o.dtype, result);
        }
        result = row.zero_dim || relaxed == out ? relaxed : plain;
        has_dims = has_dims || o.rank > 0;
      }
    }
    if (row.decides == Decides::kFirst) break;
  }
  if (result == DType::kBool && row.truth != DType::kUndefined) return row.truth;
  if (IsWholeType(result) && row.whole != DType::kUndefined) return row.whole;
  if (IsWholeType(result) && row.whole_as_result) return out;
  return result;
}

bool IsHalf(DType t) { return t == DType::kF16 || t == DType::kBF16; }

void Oracle(HostCall& call) {
  const Operator& op = call.op();
  const Layout layout(op);
  const Elementwise& row = layout.row;
  const auto args = op.contract.args();
  Host& out = call.Out(args[layout.out].name);
  Point p{.call = call, .computed = DType::kUndefined, .result = out.dtype};
  std::vector<OperandType> types;
  Checked<bool> decides;
  std::vector<const Host*> tensors;
  for (size_t k = 0; k < layout.operands.size(); ++k) {
    const contract::Arg& arg = args[layout.operands[k]];
    const bool given = call.Has(arg.name);
    p.given.push_back(given);
    decides.push_back(given && !(row.aside >> k & 1));
    tensors.push_back(given && arg.is_tensor() ? &call.In(arg.name) : nullptr);
    types.push_back(!given           ? OperandType{DType::kUndefined, 0}
                    : arg.is_tensor() ? OperandType{tensors[k]->dtype, tensors[k]->dims.rank()}
                                      : OperandType{call.ScalarType(arg.name), -1});
  }
  p.computed = ComputedOf(row, types, decides, out.dtype);
  if (row.computed) p.computed = row.computed(p);
  const auto rounded = [&](Number value, bool kept) {
    if (kept && IsHalf(p.computed)) return Rounded(DType::kF32, value);
    return Rounded(p.computed, value);
  };
  for (const int arg : layout.scalars) {
    p.s.push_back(call.Has(args[arg].name) ? rounded(call.Scalar(args[arg].name), row.keep_scalars) : Number(1));
  }
  out.computed = IsHalf(p.computed) || p.computed == DType::kC32 ? DType::kF32 : p.computed;
  const DType part = out.computed == DType::kF64 || out.computed == DType::kC128 ? DType::kF64 : DType::kF32;
  for (int64_t i = 0; i < out.size(); ++i) {
    p.x.clear();
    for (size_t k = 0; k < layout.operands.size(); ++k) {
      if (!p.given[k]) {
        p.x.push_back(0);
        continue;
      }
      const bool kept = row.keep >> k & 1;
      if (!tensors[k]) {
        const Number value = call.Scalar(args[layout.operands[k]].name);
        p.x.push_back(kept ? value : rounded(value, row.keep_scalars));
      } else {
        const Number value = tensors[k]->Broadcast(out.dims, i);
        p.x.push_back(kept ? value : rounded(value, row.keep_zero_dim && types[k].rank == 0));
      }
    }
    Number y = row.of(p);
    if (p.whole()) y = Rounded(p.computed, y);
    Real slack = 0;
    if (row.size && !p.whole()) {
      const Real size = row.size(p);
      slack = 2 * UlpOf(part, std::isfinite(size) ? size : 0);
    }
    // Rounded twice: near a tie the last place may go the other way.
    if (row.round_result && IsHalf(p.computed) && out.dtype != p.computed) {
      y = Rounded(p.computed, y);
      if (row.ulps > 0) slack += UlpOf(p.computed, y.real());
    }
    out[i] = y;
    out.slack.push_back(slack);
  }
}

class Sampler {
 public:
  explicit Sampler(Calls& calls) : calls_(calls), op_(calls.op()), layout_(op_), row_(layout_.row) {
    for (const int arg : layout_.operands) {
      types_.push_back(IsTensor(arg) ? calls.TypesOf(NameOf(arg)) : std::vector<DType>());
    }
    if (layout_.in_place) return;
    results_ = calls.TypesOf(NameOf(layout_.out));
    results_.push_back(DType::kC32);
  }

  void Run() {
    std::vector<DType> all;
    for (int number = 0; number < 64; ++number) {
      for (const auto& list : types_) {
        if (std::find(list.begin(), list.end(), static_cast<DType>(number)) == list.end()) continue;
        all.push_back(static_cast<DType>(number));
        break;
      }
    }
    for (const DType t : all) {
      for (const auto& attributes : row_.attributes) {
        for (const unsigned absent : row_.absent) OfOneType(t, attributes, absent);
      }
    }
    Pairs();
    Large();
  }

 private:
  const char* NameOf(int arg) const { return op_.contract.args()[arg].name; }
  bool IsTensor(int arg) const { return op_.contract.args()[arg].is_tensor(); }
  // As an argument, or as its place among the operands.
  int FirstTensor(bool operand = false) const {
    int k = 0;
    while (!IsTensor(layout_.operands[k])) ++k;
    return operand ? k : layout_.operands[k];
  }
  size_t Tensors() const {
    size_t count = 0;
    for (const int arg : layout_.operands) count += IsTensor(arg);
    return count;
  }

  static constexpr DType kScalarTypes[] = {DType::kF64, DType::kI64, DType::kBool, DType::kC128, DType::kF32,  DType::kI32,
                                           DType::kC64, DType::kU8,  DType::kF16,  DType::kBF16, DType::kI16, DType::kI8,
                                           DType::kU16, DType::kU32, DType::kU64};

  // One call if the contract takes it. A result of dtype kUndefined has the one that is computed.
  bool Try(const std::vector<DType>& types, std::vector<Dims> dims, const Values& values, DType scalar, DType result,
           const std::vector<TestArg>& attributes, unsigned absent = 0, bool alias = false) {
    for (size_t k = 0; k < dims.size(); ++k) {
      if (row_.dimless >> k & 1) dims[k] = {};
    }
    std::vector<TestArg> args(op_.contract.args().size());
    std::vector<const Dims*> shapes;
    std::vector<OperandType> operands;
    Checked<bool> decides;
    for (size_t k = 0; k < layout_.operands.size(); ++k) {
      const int arg = layout_.operands[k];
      const bool given = !(absent >> k & 1);
      decides.push_back(!(row_.aside >> k & 1) && given);
      if (!given) {
        args[arg] = Null();
        operands.push_back({});
      } else if (IsTensor(arg)) {
        const bool boolean = types[k] == DType::kBool;
        args[arg] = In(types[k], dims[k], boolean && values.kind == Values::kUniform ? Values{Values::kBool} : values);
        if (k == 0 && dims[0].rank() > 1) args[arg].layout = first_layout_;
        shapes.push_back(&dims[k]);
        operands.push_back({types[k], dims[k].rank()});
      } else {
        args[arg] = NextNumber(scalar);
        operands.push_back({scalar, -1});
      }
    }
    for (const int arg : layout_.scalars) args[arg] = absent >> 31 ? Null() : NextNumber(scalar);
    for (const int arg : layout_.ignored) args[arg] = In(DType::kF32, {2, 3});
    for (size_t i = 0; i < layout_.attributes.size(); ++i) args[layout_.attributes[i]] = attributes.at(i);
    Dims out;
    if (!contract::BroadcastDims(shapes, &out)) return false;
    if (!layout_.in_place) {
      const DType computed = ComputedOf(row_, operands, decides, result);
      if (result == DType::kUndefined) result = computed;
      if (result == DType::kUndefined || (alias && result != types[FirstTensor(/*operand=*/true)])) return false;
      args[layout_.out] = Out(result, out);
    }
    contract::CallSpec spec;
    for (const TestArg& arg : args) spec.args.push_back(arg.spec);
    if (!op_.contract.Check(spec.Bind(op_.contract), CurrentProduct()).ok()) return false;
    TestCall& call = calls_.Add(std::move(args));
    if (alias) call.same = {{layout_.out, FirstTensor()}};
    return true;
  }

  TestArg NextNumber(DType type) {
    Real value = row_.numbers[next_++ % row_.numbers.size()];
    if (type == DType::kBool) value = value != 0;
    if (IsComplex(type)) return Complex(type, Number(value, next_ % 3 == 0 ? Real{0.5} : Real{0}));
    return Num(type, value);
  }

  Values Usual() const { return Between(row_.low, row_.high); }

  // Every tensor has this dtype, or where it cannot, the next one of its list.
  std::vector<DType> Alike(DType t) {
    std::vector<DType> types;
    for (const auto& list : types_) {
      if (list.empty()) types.push_back(DType::kUndefined);
      else if (std::find(list.begin(), list.end(), t) != list.end()) types.push_back(t);
      else types.push_back(list[next_++ % list.size()]);
    }
    return types;
  }

  void OfOneType(DType t, const std::vector<TestArg>& attributes, unsigned absent) {
    const size_t n = layout_.operands.size();
    const std::vector<DType> types = Alike(t);
    const std::vector<Dims> same(n, Dims{3, 5});
    std::vector<Dims> rest(n, Dims{5}), mixed(n, Dims{2, 1, 3}), points(n, Dims{33}), none(n, Dims{3}), dimless(n);
    rest[0] = {3, 5};
    mixed[0] = {4, 1};
    none[0] = {0, 3};
    const bool scalars = Tensors() < n || !layout_.scalars.empty();
    // Every dtype of a result with the first scalar that fits, the natural one with all.
    bool any = false;
    DType full = DType::kUndefined;
    for (const DType scalar : kScalarTypes) {
      if (!scalars && scalar != kScalarTypes[0]) break;
      for (int result = -1; result < 64; ++result) {
        if (layout_.in_place && result >= 0) break;
        const DType out = static_cast<DType>(result);
        if (result >= 0 && std::find(results_.begin(), results_.end(), out) == results_.end()) continue;
        if (any && result >= 0 && scalar != full) break;
        if (!Try(types, same, Usual(), scalar, out, attributes, absent) || any) continue;
        any = true;
        full = scalar;
        for (const auto& dims : {rest, mixed, dimless}) Try(types, dims, Usual(), scalar, out, attributes, absent);
        std::vector<Dims> first_dimless = rest, last_dimless = rest;
        first_dimless[0] = {};
        last_dimless.back() = {};
        for (const auto& dims : {first_dimless, last_dimless}) Try(types, dims, Usual(), scalar, out, attributes, absent);
        for (const auto& dims : {none, std::vector<Dims>(n, Dims{0, 3})}) {
          Try(types, dims, Usual(), scalar, out, attributes, absent);
        }
        if (!IsComplex(t) && t != DType::kC32 && row_.hostile) {
          for (int i = 0; i < 4; ++i) Try(types, points, Hostile(), scalar, out, attributes, absent);
        }
        if (!layout_.in_place) Try(types, same, Usual(), scalar, out, attributes, absent, /*alias=*/true);
      }
    }
    // The first tensor against one that brings the others along.
    if (Tensors() < 2) return;
    for (const DType partner : {DType::kF32, DType::kF64}) {
      for (size_t k = 0; k < n; ++k) {
        std::vector<DType> pair = Alike(partner);
        if (types_[k].empty() || std::find(types_[k].begin(), types_[k].end(), t) == types_[k].end()) continue;
        pair[k] = t;
        Try(pair, rest, Usual(), DType::kI64, DType::kUndefined, attributes, absent);
      }
    }
  }

  // All pairs of dtypes of the first two tensors, with and without dims; every dtype of a result.
  void Pairs() {
    const size_t n = layout_.operands.size();
    Checked<size_t> tensors;
    for (size_t k = 0; k < n; ++k) {
      if (!types_[k].empty()) tensors.push_back(k);
    }
    if (tensors.size() < 2) return;
    for (const DType a : types_[tensors[0]]) {
      for (const DType b : types_[tensors[1]]) {
        std::vector<DType> types = Alike(b);
        types[tensors[0]] = a;
        types[tensors[1]] = b;
        const std::vector<Dims> same(n, Dims{7});
        std::vector<Dims> second = same;
        second[tensors[1]] = {};
        Try(types, same, Usual(), DType::kI64, DType::kUndefined, row_.attributes[0]);
        for (const DType out : {DType::kUndefined, a}) {
          if (layout_.in_place && out != DType::kUndefined) break;
          Try(types, second, Usual(), DType::kI64, out, row_.attributes[0]);
        }
      }
    }
  }

  // More than one task, and an odd end.
  void Large() {
    LargeOf({211, 173});
    // Enough elements for one operand that lies across the others to be turned first.
    first_layout_ = "transposed";
    LargeOf({70, 66});
    first_layout_ = "";
  }
  void LargeOf(const Dims& each) {
    const std::vector<Dims> dims(layout_.operands.size(), each);
    for (const DType scalar : {DType::kF64, DType::kI64, DType::kBool}) {
      if (Try(Alike(DType::kF32), dims, Usual(), scalar, DType::kUndefined, row_.attributes[0])) return;
      for (const DType out : results_) {
        if (Try(Alike(DType::kF32), dims, Usual(), scalar, out, row_.attributes[0])) return;
      }
    }
  }

  Calls& calls_;
  const Operator& op_;
  const Layout layout_;
  const Elementwise& row_;
  std::vector<std::vector<DType>> types_;  // per operand; none for scalars
  std::vector<DType> results_;
  size_t next_ = 0;
  const char* first_layout_ = "";  // of the first operand; empty: all are tried
};

void Sample(Calls& calls) { Sampler(calls).Run(); }

}  // namespace

void AddSubjects(std::vector<Subject>* subjects, std::span<const Elementwise> rows) {
  static auto* const names = new std::deque<std::string>;  // what Subject::op points to
  for (const Elementwise& row : rows) {
    for (const char* prefix : {"aclnn", "aclnnInplace"}) {
      const std::string name = std::string(prefix) + row.name;
      bool exists = false;
      for (const Entry& entry : Entries()) exists = exists || name == entry.op;
      if (!exists) continue;
      names->push_back(name);
      Rows()[name] = &row;
      subjects->push_back({names->back().c_str(), Sample, Oracle, {.ulps = row.ulps}});
    }
  }
}

}  // namespace anyacl::harness
