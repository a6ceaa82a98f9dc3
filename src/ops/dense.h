// SPDX-License-Identifier: Apache-2.0
// Copyright The AnyACL Authors
//
// For engines whose kernels take dense row-major arrays of one dtype: collects the operands of a call, converting them on
// the way in, and brings the results where they belong.
//
//   Dense dense(plan, values, DType::kF32);
//   ANYACL_RETURN_IF_ERROR(dense.Read(kX));          // steps that convert x, if it must be
//   dense.Write(kOut);
//   auto& params = plan.MakeParams<Params>();
//   dense.Bind(kX, params.x);                         // null stays for what is absent
//   dense.Bind(kOut, params.out);
//   ANYACL_RETURN_IF_ERROR(plan.ChooseKernel(params.scratch));
//   return dense.Finish();
#ifndef ANYACL_OPS_DENSE_H_
#define ANYACL_OPS_DENSE_H_

#include <initializer_list>
#include <map>
#include <type_traits>
#include <vector>

#include "contract/value.h"
#include "plan/plan.h"

namespace anyacl {

class Dense {
 public:
  Dense(PlanBuilder& plan, contract::Values values, DType dtype) : plan_(plan), values_(values), dtype_(dtype) {}

  // An argument; absent ones are passed over.
  Status Read(int arg) { return Read(arg, dtype_); }
  Status Read(int arg, DType dtype);
  // A view of the argument's elements, in whose order the kernel wants them.
  Status Read(int arg, const Operand& view) { return Read(arg, view, dtype_); }
  Status Read(int arg, const Operand& view, DType dtype);
  // Something that steps of the plan have made.
  void Use(int arg, const Operand& operand) { read_[arg] = operand; }

  void Write(int arg);
  void Write(int arg, const Operand& view) { Write(arg, view, dtype_); }
  void Write(int arg, const Operand& view, DType dtype);
  // What the kernel writes for an argument, for steps behind it.
  const Operand& Written(int arg) const { return written_.at(arg).dense; }

  bool Reads(int arg) const { return read_.count(arg) != 0; }
  template <class T>
  void Bind(int arg, T*& member) {
    if (const auto found = read_.find(arg); found != read_.end()) plan_.Bind(found->second, AnyPointer(member));
  }
  template <class T>
  void BindOut(int arg, T*& member) {
    if (const auto found = written_.find(arg); found != written_.end()) plan_.Bind(found->second.dense, AnyPointer(member));
  }

  // Behind the step of the kernel: results that it left in scratch memory.
  Status Finish();

 private:
  struct Result {
    Operand dense;
    Operand tensor;
  };

  // A member of Params that points to numbers, as plans know it.
  template <class T>
  static auto& AnyPointer(T*& member) {
    return reinterpret_cast<std::conditional_t<std::is_const_v<T>, const void*, void*>&>(member);
  }

  PlanBuilder& plan_;
  contract::Values values_;
  DType dtype_;
  std::map<int, Operand> read_;
  std::map<int, Result> written_;
};

// For kernels that convert to FLOAT as they read: FLOAT16 or BF16 where all of these are dense tensors of it, else `computed`.
DType StoredType(DType computed, std::initializer_list<Operand> operands);

// The axes of an operand in another order: `axis` comes first, or last.
Operand AxisFirst(const Operand& operand, int axis);
Operand AxisLast(const Operand& operand, int axis);

// The result of a sum over nothing, or of an operator without rows: every element of an output is `value`.
Status FillOutput(PlanBuilder& plan, int arg, double value);

}  // namespace anyacl

#endif  // ANYACL_OPS_DENSE_H_
