// SPDX-License-Identifier: Apache-2.0
// Copyright The AnyACL Authors
#include "contract/violations.h"

#include <fmt/format.h>

#include <functional>

namespace anyacl::contract {
namespace {

struct Change {
  std::string text;
  std::function<void(ArgSpec&)> apply;
};

void SetDims(Tensor* t, Dims dims) {
  t->dims = dims;
  t->strides = ContiguousStrides(dims);
  t->storage = dims;
}

// The pool of small mistakes, smallest first, by kind of argument.
std::vector<Change> TensorChanges(const Tensor& now) {
  std::vector<Change> pool = {{"null", [](ArgSpec& a) { a.null = true; }}};
  for (DType t : {DType::kI32, DType::kF64, DType::kF32, DType::kF16, DType::kBF16, DType::kBool,
                  DType::kI64, DType::kC64, DType::kU16, DType::kU64, DType::kString}) {
    if (t != now.dtype) pool.push_back({"dtype " + Name(t), [t](ArgSpec& a) { a.tensor.dtype = t; }});
  }
  pool.push_back({"format FRACTAL_NZ", [](ArgSpec& a) { a.tensor.format = Format::kFractalNZ; }});
  pool.push_back({"format FRACTAL_NZ with its storage", [](ArgSpec& a) {
                    a.tensor.format = Format::kFractalNZ;
                    a.tensor.storage.push_back(16);
                  }});
  pool.push_back({"format HWCN", [](ArgSpec& a) { a.tensor.format = Format::kHWCN; }});
  for (int axis = 0; axis < now.rank(); ++axis) {
    for (int64_t delta : {1, -1}) {
      Dims dims = now.dims;
      dims[axis] += delta;
      if (dims[axis] < 0) continue;
      pool.push_back({"shape " + ToString(dims), [dims](ArgSpec& a) { SetDims(&a.tensor, dims); }});
    }
  }
  Dims longer = now.dims;
  longer.push_back(1);
  Dims nine = now.dims;
  while (nine.rank() < 9) nine.push_back(1);
  Dims shorter;
  for (int i = 0; i + 1 < now.rank(); ++i) shorter.push_back(now.dims[i]);
  Dims zero_channel = now.dims;
  if (zero_channel.rank() > 1) zero_channel[1] = 0;
  Dims zero_last = now.dims;
  if (zero_last.rank() > 0) zero_last[zero_last.rank() - 1] = 0;
  for (const Dims& dims : {longer, nine, shorter, zero_channel, zero_last, Dims{}}) {
    pool.push_back({"shape " + ToString(dims), [dims](ArgSpec& a) { SetDims(&a.tensor, dims); }});
  }
  return pool;
}

// Of a list: its length, and the changes of a tensor in its last entry.
std::vector<Change> ListChanges(const ArgSpec& now) {
  std::vector<Change> pool = {{"null", [](ArgSpec& a) { a.null = true; }}};
  if (now.tensors.empty()) return pool;
  pool.push_back({"one entry less", [](ArgSpec& a) { a.tensors.pop_back(); }});
  for (const Change& change : TensorChanges(now.tensors.back())) {
    if (change.text == "null") continue;
    pool.push_back({"last entry " + change.text, [apply = change.apply](ArgSpec& a) {
                      ArgSpec entry;
                      entry.tensor = a.tensors.back();
                      apply(entry);
                      a.tensors.back() = entry.tensor;
                    }});
  }
  return pool;
}

std::vector<Change> ScalarListChanges(const ArgSpec& now) {
  std::vector<Change> pool = {{"null", [](ArgSpec& a) { a.null = true; }}};
  if (now.scalars.empty()) return pool;
  pool.push_back({"one entry less", [](ArgSpec& a) { a.scalars.pop_back(); }});
  pool.push_back({"COMPLEX64", [](ArgSpec& a) { a.scalars.back() = Scalar::Of(DType::kC64, 1); }});
  return pool;
}

std::vector<Change> ChangesOf(const Arg& arg, const ArgSpec& now) {
  switch (arg.kind) {
    case ArgKind::kInput:
    case ArgKind::kOutput:
    case ArgKind::kInOut:
      return TensorChanges(now.tensor);
    case ArgKind::kInputList:
    case ArgKind::kOutputList:
    case ArgKind::kInOutList:
      return ListChanges(now);
    case ArgKind::kScalarList:
      return ScalarListChanges(now);
    case ArgKind::kScalar:
      return {{"null", [](ArgSpec& a) { a.null = true; }},
              {"DOUBLE", [](ArgSpec& a) { a.scalar = Scalar::Of(DType::kF64, 1.5); }},
              {"COMPLEX64", [](ArgSpec& a) { a.scalar = Scalar::Of(DType::kC64, 1); }},
              {"-1", [](ArgSpec& a) { a.scalar = Scalar::OfFloat(-1); }},
              {"UINT64", [](ArgSpec& a) { a.scalar = Scalar::Of(DType::kU64, 1); }},
              {"INT4", [](ArgSpec& a) { a.scalar.dtype = DType::kI4; }}};
    case ArgKind::kInt: {
      std::vector<Change> pool;
      for (int64_t v : {now.integer + 1, int64_t{0}, int64_t{-1}, now.integer * 2 + 1, int64_t{99}, int64_t{-99}}) {
        pool.push_back({std::to_string(v), [v](ArgSpec& a) { a.integer = v; }});
      }
      return pool;
    }
    case ArgKind::kReal:
      return {{"-1", [](ArgSpec& a) { a.real = -1; }}, {"0", [](ArgSpec& a) { a.real = 0; }}};
    case ArgKind::kBool:
      return {{now.flag ? "false" : "true", [](ArgSpec& a) { a.flag = !a.flag; }}};
    case ArgKind::kBoolArray:
      return {{"null", [](ArgSpec& a) { a.null = true; }},
              {"one entry less", [](ArgSpec& a) { a.bools.values.pop_back(); }}};
    case ArgKind::kIntArray:
      return {{"null", [](ArgSpec& a) { a.null = true; }},
              {"one entry less", [](ArgSpec& a) { if (!a.ints.values.empty()) a.ints.values.pop_back(); }},
              {"an entry of 99", [](ArgSpec& a) { a.ints.values.push_back(99); }},
              {"an entry of -99", [](ArgSpec& a) { a.ints.values.push_back(-99); }},
              {"an entry twice", [](ArgSpec& a) {
                 a.ints.values.push_back(a.ints.values.empty() ? 0 : a.ints.values.front());
               }}};
    case ArgKind::kFloatArray:
      return {{"null", [](ArgSpec& a) { a.null = true; }}};
    case ArgKind::kString:
      return {{"null", [](ArgSpec& a) { a.null = true; }},
              {"nonsense", [](ArgSpec& a) { a.text = "nonsense"; }}};
  }
  return {};
}

class Finder {
 public:
  Finder(const Contract& contract, const CallSpec& valid, Product product)
      : contract_(contract), valid_(valid), product_(product), found_(contract.rules().size()) {}

  // Tries a changed call and keeps it if it is the first to break its rule.
  void Try(const std::string& change, CallSpec call) {
    int rule = -1;
    const Status status = contract_.Check(call.Bind(contract_), product_, &rule);
    if (rule < 0 || found_[rule]) return;
    found_[rule] = true;
    violations_.push_back({rule, change, std::move(call)});
  }

  void TrySingles() {
    for (size_t i = 0; i < valid_.args.size(); ++i) {
      const Arg& arg = contract_.args()[i];
      for (const Change& change : ChangesOf(arg, valid_.args[i])) {
        CallSpec call = valid_;
        change.apply(call.args[i]);
        Try(fmt::format("{} -> {}", arg.name, change.text), std::move(call));
      }
    }
  }

  // The same change on several tensors at once: all of them, or all like one in dtype or shape.
  void TryGroups() {
    for (size_t i = 0; i < valid_.args.size(); ++i) {
      if (!contract_.args()[i].is_tensor()) continue;
      const Tensor& model = valid_.args[i].tensor;
      for (const Change& change : TensorChanges(model)) {
        for (bool by_shape : {true, false}) {
          CallSpec call = valid_;
          for (size_t j = 0; j < call.args.size(); ++j) {
            if (!contract_.args()[j].is_tensor() || call.args[j].null) continue;
            const Tensor& t = valid_.args[j].tensor;
            const bool alike = by_shape ? t.dims == model.dims : t.dtype == model.dtype;
            if (alike) change.apply(call.args[j]);
          }
          Try(fmt::format("all tensors like {} -> {}", contract_.args()[i].name, change.text),
              std::move(call));
        }
      }
    }
  }

  // No samples: the first dim of one tensor becomes 0, and so does that of all tensors that start with
  // the same one.
  void TryEmptyBatches() {
    for (size_t i = 0; i < valid_.args.size(); ++i) {
      if (!contract_.args()[i].is_tensor() || valid_.args[i].tensor.rank() == 0) continue;
      const int64_t batch = valid_.args[i].tensor.dims[0];
      CallSpec call = valid_;
      for (size_t j = 0; j < call.args.size(); ++j) {
        Tensor& t = call.args[j].tensor;
        if (!contract_.args()[j].is_tensor() || t.rank() == 0 || t.dims[0] != batch) continue;
        Dims dims = t.dims;
        dims[0] = 0;
        SetDims(&t, dims);
      }
      Try(fmt::format("first dim of {} and its like -> 0", contract_.args()[i].name), std::move(call));
    }
  }

  // Of arguments that may not all be absent: none.
  void TryNoneGiven() {
    for (const Rule& rule : contract_.rules()) {
      if (rule.kind != RuleKind::kOneGiven) continue;
      CallSpec call = valid_;
      for (const char* arg : rule.args) call.args[contract_.ArgIndex(arg)].null = true;
      Try(fmt::format("{} -> null", fmt::join(rule.args, " and ")), std::move(call));
    }
  }

  // Of arguments that must be absent: each.
  void TryGiven() {
    for (const Rule& rule : contract_.rules()) {
      if (rule.kind != RuleKind::kNotGiven) continue;
      CallSpec call = valid_;
      ArgSpec& arg = call.args[contract_.ArgIndex(rule.args[0])];
      arg.null = false;
      arg.tensor.dtype = DType::kF32;
      SetDims(&arg.tensor, {1});
      arg.tensors = {arg.tensor};
      arg.ints.values = {1};
      Try(fmt::format("{} -> given", rule.args[0]), std::move(call));
    }
  }

  // Rules that apply only under a flag: the change together with the flag turned.
  void TryWithFlags() {
    for (size_t f = 0; f < valid_.args.size(); ++f) {
      if (contract_.args()[f].kind != ArgKind::kBool) continue;
      CallSpec turned = valid_;
      turned.args[f].flag = !turned.args[f].flag;
      for (size_t i = 0; i < valid_.args.size(); ++i) {
        for (const Change& change : ChangesOf(contract_.args()[i], valid_.args[i])) {
          CallSpec call = turned;
          change.apply(call.args[i]);
          Try(fmt::format("{} -> {} with {} turned", contract_.args()[i].name, change.text,
                          contract_.args()[f].name),
              std::move(call));
        }
      }
    }
  }

  std::vector<Violation> Take(std::vector<int>* unreached) {
    for (size_t i = 0; i < found_.size(); ++i) {
      if (!found_[i]) unreached->push_back(static_cast<int>(i));
    }
    return std::move(violations_);
  }

 private:
  const Contract& contract_;
  const CallSpec& valid_;
  Product product_;
  std::vector<bool> found_;
  std::vector<Violation> violations_;
};

}  // namespace

std::vector<Violation> FindViolations(const Contract& contract, const CallSpec& valid, Product product,
                                      std::vector<int>* unreached) {
  Finder finder(contract, valid, product);
  finder.TrySingles();
  finder.TryGroups();
  finder.TryEmptyBatches();
  finder.TryNoneGiven();
  finder.TryGiven();
  finder.TryWithFlags();
  return finder.Take(unreached);
}

}  // namespace anyacl::contract
