// SPDX-License-Identifier: Apache-2.0
// Copyright The AnyACL Authors
#include "contract/call_spec.h"

namespace anyacl::contract {
namespace {

void Copy(const Value& value, ArgKind kind, ArgSpec* arg) {
  switch (kind) {
    case ArgKind::kInput:
    case ArgKind::kOutput:
    case ArgKind::kInOut:
      arg->tensor = *value.tensor;
      return;
    case ArgKind::kInputList:
    case ArgKind::kOutputList:
    case ArgKind::kInOutList:
      for (const Tensor* t : value.tensors->tensors) arg->tensors.push_back(t ? *t : Tensor());
      return;
    case ArgKind::kScalar:
      arg->scalar = *value.scalar;
      return;
    case ArgKind::kScalarList:
      for (const Scalar* s : value.scalars->scalars) arg->scalars.push_back(s ? *s : Scalar());
      return;
    case ArgKind::kBoolArray:
      arg->bools = *value.bools;
      return;
    case ArgKind::kIntArray:
      arg->ints = *value.ints;
      return;
    case ArgKind::kFloatArray:
      arg->floats = *value.floats;
      return;
    case ArgKind::kString:
      arg->text = value.text;
      return;
    case ArgKind::kInt:
      arg->integer = value.integer;
      return;
    case ArgKind::kReal:
      arg->real = value.real;
      return;
    case ArgKind::kBool:
      arg->flag = value.flag;
      return;
  }
}

}  // namespace

CallSpec CallSpec::Of(const Contract& contract, Values values) {
  CallSpec spec;
  spec.args.resize(values.size());
  for (size_t i = 0; i < values.size(); ++i) {
    spec.args[i].null = !values[i].given();
    if (values[i].given()) Copy(values[i], contract.args()[i].kind, &spec.args[i]);
  }
  return spec;
}

BoundCall CallSpec::Bind(const Contract& contract) const {
  BoundCall bound;
  bound.values_.resize(args.size());
  for (size_t i = 0; i < args.size(); ++i) {
    const ArgSpec& arg = args[i];
    Value& value = bound.values_[i];
    value.state = arg.null ? Value::State::kNull : Value::State::kGiven;
    switch (contract.args()[i].kind) {
      case ArgKind::kInput:
      case ArgKind::kOutput:
      case ArgKind::kInOut:
        value.tensor = &arg.tensor;
        break;
      case ArgKind::kInputList:
      case ArgKind::kOutputList:
      case ArgKind::kInOutList: {
        BoundCall::List& list = bound.lists_.emplace_back();
        for (const Tensor& t : arg.tensors)
          list.tensors.push_back(t.dtype == DType::kUndefined ? nullptr : &t);
        list.tensor_span.tensors = list.tensors;
        value.tensors = &list.tensor_span;
        break;
      }
      case ArgKind::kScalarList: {
        BoundCall::List& list = bound.lists_.emplace_back();
        for (const Scalar& s : arg.scalars) list.scalars.push_back(&s);
        list.scalar_span.scalars = list.scalars;
        value.scalars = &list.scalar_span;
        break;
      }
      case ArgKind::kScalar:
        value.scalar = &arg.scalar;
        break;
      case ArgKind::kBoolArray:
        value.bools = &arg.bools;
        break;
      case ArgKind::kIntArray:
        value.ints = &arg.ints;
        break;
      case ArgKind::kFloatArray:
        value.floats = &arg.floats;
        break;
      case ArgKind::kString:
        value.text = arg.text.c_str();
        break;
      case ArgKind::kInt:
        value.integer = arg.integer;
        break;
      case ArgKind::kReal:
        value.real = arg.real;
        break;
      case ArgKind::kBool:
        value.flag = arg.flag;
        break;
    }
  }
  return bound;
}

}  // namespace anyacl::contract
