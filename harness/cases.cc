// SPDX-License-Identifier: Apache-2.0
// Copyright The AnyACL Authors
#include "harness/cases.h"

#include <fmt/format.h>

#include <algorithm>
#include <sstream>
#include <stdexcept>

namespace anyacl::harness {
namespace {

std::vector<std::string> Words(std::string_view text) {
  std::istringstream in{std::string(text)};
  std::vector<std::string> words;
  for (std::string word; in >> word;) words.push_back(word);
  return words;
}

double ToNumber(const std::string& name, const std::string& text) {
  size_t used = 0;
  const double value = std::stod(text, &used);
  if (used != text.size()) throw std::invalid_argument(name + "=" + text + " is not a number");
  return value;
}

void SetStrides(Tensor* t, Dims strides, int64_t offset) {
  t->strides = strides;
  t->offset = offset;
  Extent extent;
  if (!GetExtent(*t, &extent)) throw std::invalid_argument("the layout does not fit into 63 bits");
  t->storage = Dims{std::max<int64_t>(extent.end, 1)};
}

// Strides of dense memory whose axes, slowest first, are `order`.
Dims DenseStrides(const Dims& dims, const std::vector<int>& order) {
  Dims strides = dims;
  int64_t step = 1;
  for (auto axis = order.rbegin(); axis != order.rend(); ++axis) {
    strides[*axis] = step;
    step *= std::max<int64_t>(dims[*axis], 1);
  }
  return strides;
}

Dims TransposedStrides(const Dims& dims) {
  std::vector<int> order;
  for (int i = dims.rank() - 1; i >= 0; --i) order.push_back(i);
  return DenseStrides(dims, order);
}

Dims ChannelsLastStrides(const Dims& dims) {
  std::vector<int> order;
  for (int i = 0; i < dims.rank(); ++i) {
    if (i != 1) order.push_back(i);
  }
  if (dims.rank() > 1) order.push_back(1);
  return DenseStrides(dims, order);
}

Dims SlicedStrides(const Dims& dims) {
  Dims outer = dims;
  for (int i = 0; i < dims.rank(); ++i) outer[i] = dims[i] + 2;
  Dims strides = ContiguousStrides(outer);
  for (int i = 0; i < dims.rank(); ++i) strides[i] *= 2;
  return strides;
}

struct Row {
  std::string_view op;
  Case row;
};

#define ANYACL_CASE(op, name, dims, attributes, tags) {#op, {name, dims, attributes, tags}},
constexpr Row kRows[] = {
#include "harness/cases/activation.inc"
#include "harness/cases/norm.inc"
};
#undef ANYACL_CASE

// The argument whose memory this one uses.
int MemoryOf(const contract::Contract& contract, const contract::CallSpec& spec, int arg,
             const std::string& other) {
  if (other.empty()) return arg;
  const int index = contract.ArgIndex(other.c_str());
  if (index < 0) throw std::invalid_argument("there is no argument " + other);
  return SizeOf(spec.args[index].tensor.dtype) == SizeOf(spec.args[arg].tensor.dtype) ? index : arg;
}

// Attributes that every operator has: layout=KIND for all tensors, ARG.layout=KIND for one, and
// ARG.is=OTHER when ARG is the very memory of OTHER.
void ApplyLayouts(const contract::Contract& contract, Attributes& attributes, CaseCall* call) {
  const std::string common = attributes.Text("layout", "dense");
  for (size_t i = 0; i < call->spec.args.size(); ++i) {
    const contract::Arg& arg = contract.args()[i];
    call->memory_of.push_back(static_cast<int>(i));
    if (!arg.is_tensor() || call->spec.args[i].null) continue;
    const std::string name = arg.name;
    SetLayout(attributes.Text(name + ".layout", common), &call->spec.args[i].tensor);
    call->memory_of.back() =
        MemoryOf(contract, call->spec, static_cast<int>(i), attributes.Text(name + ".is", ""));
  }
}

}  // namespace

Attributes::Attributes(std::string_view text) {
  for (const std::string& word : Words(text)) {
    const size_t equals = word.find('=');
    if (equals == std::string::npos) throw std::invalid_argument(word + " is not name=value");
    entries_[word.substr(0, equals)].value = word.substr(equals + 1);
  }
}

std::string Attributes::Text(const std::string& name, const std::string& fallback) {
  const auto found = entries_.find(name);
  if (found == entries_.end()) return fallback;
  found->second.used = true;
  return found->second.value;
}

double Attributes::Real(const std::string& name, double fallback) {
  const std::string text = Text(name, "");
  return text.empty() ? fallback : ToNumber(name, text);
}

int64_t Attributes::Int(const std::string& name, int64_t fallback) {
  const std::string text = Text(name, "");
  return text.empty() ? fallback : std::stoll(text);
}

bool Attributes::Flag(const std::string& name, bool fallback) { return Int(name, fallback) != 0; }

std::string Attributes::FirstUnused() const {
  for (const auto& [name, entry] : entries_) {
    if (!entry.used) return name;
  }
  return "";
}

Dims Case::ParsedDims() const {
  Dims result;
  std::istringstream in{std::string(dims)};
  for (std::string part; std::getline(in, part, 'x');) result.push_back(std::stoll(part));
  return result;
}

bool Case::Has(std::string_view tag) const {
  const std::vector<std::string> words = Words(tags);
  return std::find(words.begin(), words.end(), tag) != words.end();
}

const std::vector<const OperatorCases*>& AllCases() {
  static const auto* const all = new std::vector<const OperatorCases*>{
      &EluBackwardCases(), &BatchNormElemtBackwardCases(), &GroupNormBackwardCases(), &RmsNormGradCases(),
  };
  return *all;
}

const OperatorCases& CasesOf(std::string_view op) {
  for (const OperatorCases* cases : AllCases()) {
    if (op == cases->op) return *cases;
  }
  throw std::out_of_range(fmt::format("there are no cases for {}", op));
}

CaseCall MakeCall(const contract::Contract& contract, const OperatorCases& cases, const Case& row,
                  const TypeChoice& types) {
  Attributes attributes(row.attributes);
  CaseCall call{cases.make(row.ParsedDims(), types.dtypes, attributes), {}};
  ApplyLayouts(contract, attributes, &call);
  const std::string unused = attributes.FirstUnused();
  if (unused.empty()) return call;
  throw std::invalid_argument(
      fmt::format("{} case \"{}\": nobody reads the attribute {}", cases.op, row.name, unused));
}

std::vector<Case> RowsOf(std::string_view op) {
  std::vector<Case> rows;
  for (const Row& entry : kRows) {
    if (entry.op == op) rows.push_back(entry.row);
  }
  return rows;
}

contract::ArgSpec DenseTensor(DType dtype, const Dims& dims) {
  contract::ArgSpec arg;
  arg.tensor.dtype = dtype;
  arg.tensor.dims = dims;
  arg.tensor.strides = ContiguousStrides(dims);
  arg.tensor.storage = dims;
  return arg;
}

contract::ArgSpec FloatScalar(double value) {
  contract::ArgSpec arg;
  arg.scalar = Scalar::OfFloat(static_cast<float>(value));
  return arg;
}

contract::ArgSpec FlagArg(bool value) {
  contract::ArgSpec arg;
  arg.flag = value;
  return arg;
}

contract::ArgSpec IntArg(int64_t value) {
  contract::ArgSpec arg;
  arg.integer = value;
  return arg;
}

contract::ArgSpec MaskArg(std::string_view bits) {
  contract::ArgSpec arg;
  for (char bit : bits) arg.bools.values.push_back(bit == '1');
  return arg;
}

int64_t Below(Random& random, int64_t n) { return static_cast<int64_t>(random() % n); }

Dims RandomDims(Random& random, int min_rank, int max_rank) {
  Dims dims;
  const int rank = min_rank + static_cast<int>(Below(random, max_rank - min_rank + 1));
  int64_t left = 600;
  for (int i = 0; i < rank; ++i) {
    dims.push_back(1 + Below(random, std::min<int64_t>(left, 7)));
    left /= dims[i];
  }
  return dims;
}

contract::CallSpec MakeRandomCall(const OperatorCases& cases, const TypeChoice& types,
                                  Random& random) {
  const RandomRow row = cases.random(random);
  Attributes attributes(row.attributes);
  return cases.make(row.dims, types.dtypes, attributes);
}

void SetLayout(std::string_view layout, Tensor* t) {
  if (layout == "dense") return;
  if (layout == "offset") return SetStrides(t, ContiguousStrides(t->dims), 3);
  if (layout == "sliced") return SetStrides(t, SlicedStrides(t->dims), 5);
  if (layout == "transposed") return SetStrides(t, TransposedStrides(t->dims), 0);
  if (layout == "channels") return SetStrides(t, ChannelsLastStrides(t->dims), 0);
  if (layout != "expanded") throw std::invalid_argument(fmt::format("unknown layout {}", layout));
  Dims strides = ContiguousStrides(t->dims);
  if (t->rank() > 0) strides[0] = 0;
  SetStrides(t, strides, 0);
}

}  // namespace anyacl::harness
