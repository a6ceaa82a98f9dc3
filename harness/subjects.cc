// SPDX-License-Identifier: Apache-2.0
// Copyright The AnyACL Authors
//
// What subjects are made of: their list, arguments as data, calls as oracles see them. No call of the C API: the library that
// verifies the calls of users has this code too.
#include <fmt/format.h>

#include <algorithm>
#include <cstring>
#include <stdexcept>

#include "harness/cases.h"
#include "harness/data.h"
#include "harness/family.h"

namespace anyacl::harness {

constinit thread_local int64_t oracle_steps_left = INT64_MAX;

#define ANYACL_SUBJECTS(name, family) std::span<const Subject> name##Subjects();
#include "harness/families.inc"
#undef ANYACL_SUBJECTS

std::span<const Subject> SubjectsOf(std::string_view family) {
  static auto* const all = [] {
    auto* const lists = new std::vector<std::pair<std::string, std::vector<Subject>>>;
    const auto add = [&](const char* name, std::span<const Subject> subjects) {
      for (auto& [known, list] : *lists) {
        if (known == name) return (void)list.insert(list.end(), subjects.begin(), subjects.end());
      }
      lists->push_back({name, {subjects.begin(), subjects.end()}});
    };
#define ANYACL_SUBJECTS(name, family) add(#family, name##Subjects());
#include "harness/families.inc"
#undef ANYACL_SUBJECTS
    return lists;
  }();
  for (const auto& [name, list] : *all) {
    if (name == family) return list;
  }
  return {};
}

namespace {

constexpr std::string_view kFamilies[] = {
#define ANYACL_SUBJECTS(name, family) #family,
#include "harness/families.inc"
#undef ANYACL_SUBJECTS
};

}  // namespace

const Subject* FindSubject(std::string_view op) {
  for (std::string_view family : kFamilies) {
    for (const Subject& subject : SubjectsOf(family)) {
      if (op == subject.op) return &subject;
    }
  }
  return nullptr;
}

// --- Host ----------------------------------------------------------------------------------------

int64_t Host::Index(std::span<const int64_t> at) const {
  int64_t index = 0;
  for (int i = 0; i < dims.rank(); ++i) index = index * dims[i] + at[i];
  return index;
}

Checked<int64_t> Host::Position(int64_t index) const {
  Checked<int64_t> at(dims.rank());
  for (int i = dims.rank() - 1; i >= 0; --i) {
    at[i] = index % dims[i];
    index /= dims[i];
  }
  return at;
}

Number Host::Broadcast(const Dims& to, int64_t i) const {
  const int missing = to.rank() - dims.rank();
  int64_t index = 0, step = 1;
  for (int axis = to.rank() - 1; axis >= 0; --axis) {
    const int64_t at = i % to[axis];
    i /= to[axis];
    if (axis < missing) continue;
    if (dims[axis - missing] != 1) index += at * step;
    step *= dims[axis - missing];
  }
  return values[index];
}

// --- arguments -----------------------------------------------------------------------------------

TestArg In(DType dtype, const Dims& dims, Values values) {
  TestArg arg{.spec = DenseTensor(dtype, dims), .values = {}};
  arg.values.push_back(std::move(values));
  return arg;
}
TestArg Out(DType dtype, const Dims& dims) { return In(dtype, dims); }
TestArg List(const std::vector<TestArg>& tensors) {
  TestArg arg;
  for (const TestArg& t : tensors) {
    arg.spec.tensors.push_back(t.spec.tensor);
    arg.values.push_back(t.values[0]);
  }
  return arg;
}
TestArg Null() {
  TestArg arg;
  arg.spec.null = true;
  return arg;
}
TestArg Complex(DType dtype, Number value) {
  TestArg arg;
  arg.spec.scalar.dtype = dtype;
  EncodeNumber(dtype, value, arg.spec.scalar.bytes);
  return arg;
}
TestArg Num(DType dtype, Real value) { return Complex(dtype, value); }
TestArg NumList(DType dtype, const std::vector<Real>& values) {
  TestArg arg;
  for (Real value : values) arg.spec.scalars.push_back(Num(dtype, value).spec.scalar);
  return arg;
}
TestArg Int(int64_t value) {
  TestArg arg;
  arg.spec.integer = value;
  return arg;
}
TestArg RealArg(double value) {
  TestArg arg;
  arg.spec.real = value;
  return arg;
}
TestArg Flag(bool value) {
  TestArg arg;
  arg.spec.flag = value;
  return arg;
}
TestArg Ints(std::vector<int64_t> values) {
  TestArg arg;
  arg.spec.ints.values = std::move(values);
  return arg;
}
TestArg Bools(std::vector<bool> values) {
  TestArg arg;
  for (bool value : values) arg.spec.bools.values.push_back(value);
  return arg;
}
TestArg Floats(std::vector<float> values) {
  TestArg arg;
  arg.spec.floats.values = std::move(values);
  return arg;
}
TestArg Text(std::string text) {
  TestArg arg;
  arg.spec.text = std::move(text);
  return arg;
}

// --- Calls ---------------------------------------------------------------------------------------

std::vector<DType> Calls::TypesOf(const char* name) const {
  const contract::Contract& contract = op_.contract;
  const int arg = contract.ArgIndex(name);
  if (arg < 0) throw std::invalid_argument(fmt::format("{} has no argument {}", contract.op(), name));
  DTypeSet set;
  bool limited = false;
  // Rules under a condition count where there are no others.
  for (const bool conditional : {false, true}) {
    if (limited) break;
    for (const contract::Rule& rule : contract.rules()) {
      if (rule.kind != contract::RuleKind::kDTypeRows || rule.args.size() != 1 || std::strcmp(rule.args[0], name) != 0 ||
          (rule.when.arg != nullptr) != conditional) {
        continue;
      }
      DTypeSet here;
      for (const contract::TypeRow& row : rule.rows) {
        if (row.products.Has(Product::kAscend950)) here.Add(row.types[0]);
      }
      set = limited ? set & here : here;
      limited = true;
    }
  }
  if (!limited) {
    for (int i = 0; i < 64; ++i) {
      if (HasNumbers(static_cast<DType>(i))) set.Add(static_cast<DType>(i));
    }
  }
  return set.List();
}

TestCall& Calls::Add(std::vector<TestArg> args, std::string label) {
  if (args.size() != op_.contract.args().size()) {
    throw std::invalid_argument(fmt::format("{} takes {} arguments, the sample has {}", op_.contract.op(),
                                            op_.contract.args().size(), args.size()));
  }
  calls_.push_back({std::move(args), std::move(label)});
  return calls_.back();
}

// --- HostCall ------------------------------------------------------------------------------------

int HostCall::ArgOf(const char* arg) const {
  const int index = op_.contract.ArgIndex(arg);
  if (index < 0) throw std::invalid_argument(fmt::format("{} has no argument {}", op_.contract.op(), arg));
  return index;
}
bool HostCall::Has(const char* arg) const { return !spec_.args[ArgOf(arg)].null; }
const Host& HostCall::In(const char* arg, int item) const { return inputs[ArgOf(arg)].at(item); }
int HostCall::Count(const char* arg) const {
  const contract::ArgSpec& spec = spec_.args[ArgOf(arg)];
  return static_cast<int>(std::max(spec.tensors.size(), spec.scalars.size()));
}
Number HostCall::Scalar(const char* arg, int item) const {
  const contract::ArgSpec& spec = spec_.args[ArgOf(arg)];
  const anyacl::Scalar& scalar = spec.scalars.empty() ? spec.scalar : spec.scalars.at(item);
  return DecodeNumber(scalar.dtype, scalar.bytes);
}
DType HostCall::ScalarType(const char* arg, int item) const {
  const contract::ArgSpec& spec = spec_.args[ArgOf(arg)];
  return (spec.scalars.empty() ? spec.scalar : spec.scalars.at(item)).dtype;
}
Format HostCall::FormatOf(const char* arg) const { return spec_.args[ArgOf(arg)].tensor.format; }
const Dims& HostCall::StridesOf(const char* arg) const { return spec_.args[ArgOf(arg)].tensor.strides; }
int64_t HostCall::Int(const char* arg) const { return spec_.args[ArgOf(arg)].integer; }
double HostCall::Real(const char* arg) const { return spec_.args[ArgOf(arg)].real; }
bool HostCall::Flag(const char* arg) const { return spec_.args[ArgOf(arg)].flag; }
Checked<int64_t> HostCall::Ints(const char* arg) const { return spec_.args[ArgOf(arg)].ints.values; }
Checked<bool> HostCall::Bools(const char* arg) const {
  const auto& bytes = spec_.args[ArgOf(arg)].bools.values;
  return Checked<bool>(bytes.begin(), bytes.end());
}
Checked<float> HostCall::Floats(const char* arg) const { return spec_.args[ArgOf(arg)].floats.values; }
const std::string& HostCall::Text(const char* arg) const { return spec_.args[ArgOf(arg)].text; }
Host& HostCall::Out(const char* arg, int item) { return outputs[ArgOf(arg)].at(item); }

}  // namespace anyacl::harness
