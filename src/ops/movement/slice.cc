// SPDX-License-Identifier: Apache-2.0
// Copyright The AnyACL Authors
//
// Parts of a tensor, and its elements the other way round.
#include <optional>

#include "ops/movement/families.h"

namespace anyacl::movement {

using namespace contract;

namespace {

constexpr DTypeSet kAll15 = types::kBasic10 | types::kUnsigned3 | types::kComplex;

// Elements start, start + step, ... of an axis.
struct Part {
  int64_t start = 0;
  int64_t count = 0;
  int64_t step = 1;
};

// Negative ends count from the end once, then both are clamped.
Part SliceOf(int64_t size, int64_t start, int64_t end, int64_t step) {
  if (start < 0) start += size;
  if (end < 0) end += size;
  start = std::clamp<int64_t>(start, 0, size);
  end = std::clamp<int64_t>(end, start, size);
  const int64_t length = end - start;
  return {start, length / step + (length % step != 0), step};
}

Operand Taken(const Operand& operand, int axis, const Part& part) { return Narrow(operand, axis, part.start, part.count, part.step); }

std::string NotPositive(int64_t step) { return step > 0 ? "" : "must be positive, got " + std::to_string(step); }

// --- slice ---------------------------------------------------------------------------------------

Dims SliceDims(Values v) {
  Dims dims = v[0].tensor->dims;
  const int dim = AxisOf(v[1].integer, dims.rank());
  dims[dim] = SliceOf(dims[dim], v[2].integer, v[3].integer, v[4].integer).count;
  return dims;
}

Operator MakeSlice(const Entry& entry) {
  enum { kSelf, kDim, kStart, kEnd, kStep, kOut };
  Table table = TableOf(entry, "copy", "Every step-th element of a range of one axis.");
  table.formulas = {"out[..., i, ...] = self[..., start + i * step, ...]"};
  table.notes = {"Negative start and end count from the end of the axis; both are clamped to it."};
  AddNullRules(&table);
  Add(&table, {Supported(kNewerAndTraining), SameDType("out", "self"), DTypes("self", RowsOf(kAll15, types::kSmall8))});
  AddStorageRules(&table);
  Add(&table, {Rank("self", 1, 8), Dim("dim", "self"),
               Custom("step", "must be positive", [](Values v, Product) { return NotPositive(v[kStep].integer); }),
               ShapeOf<kOut, SliceDims>("out", "must have the shape of self with the number of elements taken on the axis")});
  return {.contract = Contract(std::move(table)),
          .plan = [](Values values, PlanBuilder& plan) -> Status {
            if (values[kOut].tensor->empty()) return {};
            const Operand self = plan.TensorOperand(kSelf);
            const int dim = AxisOf(values[kDim].integer, self.dims.rank());
            const Part part = SliceOf(self.dims[dim], values[kStart].integer, values[kEnd].integer, values[kStep].integer);
            return CopyOut(plan, Taken(self, dim, part), kOut);
          },
          .family = "movement"};
}

enum { kSelf, kStarts, kEnds, kAxes, kSteps, kOut };

const std::vector<int64_t>& IntsOf(Values v, int arg) { return v[arg].ints->values; }

Part PartV2(Values v, size_t i, int64_t size) { return SliceOf(size, IntsOf(v, kStarts)[i], IntsOf(v, kEnds)[i], IntsOf(v, kSteps)[i]); }
Dims SliceV2Dims(Values v) {
  Dims dims = v[kSelf].tensor->dims;
  for (size_t i = 0; i < IntsOf(v, kAxes).size(); ++i) {
    const int axis = AxisOf(IntsOf(v, kAxes)[i], dims.rank());
    dims[axis] = PartV2(v, i, dims[axis]).count;
  }
  return dims;
}
std::string ScalarWithAxes(Values v, Product) {
  return v[kSelf].tensor->rank() == 0 && !IntsOf(v, kAxes).empty() ? "must be empty for a 0-dim self" : "";
}
std::string StepNotPositive(Values v, Product) {
  for (const int64_t step : IntsOf(v, kSteps)) {
    if (step <= 0) return NotPositive(step);
  }
  return "";
}

Operator MakeSliceV2(const Entry& entry) {
  Table table = TableOf(entry, "copy", "Every step-th element of ranges of several axes.");
  table.formulas = {"out = self[start0:end0:step0, start1:end1:step1, ...] on the axes named"};
  table.notes = {"Negative starts and ends count from the end of their axis; all are clamped to it."};
  AddNullRules(&table, {"self", "out", "starts", "ends", "axes", "steps"});
  Add(&table, {Supported(kNewerAndTraining), SameDType("out", "self"), DTypes("self", RowsOf(kAll15, types::kSmall8))});
  AddStorageRules(&table);
  Add(&table, {Rank("self", 0, 8), DimsOf("axes", "self"), Custom("axes", "must be empty for a 0-dim self", ScalarWithAxes),
               SameLength("starts", "axes"), SameLength("ends", "axes"), Custom("steps", "must be positive", StepNotPositive),
               SameLength("steps", "axes"),
               ShapeOf<kOut, SliceV2Dims>("out", "must have the shape of self with the number of elements taken on the axes")});
  return {.contract = Contract(std::move(table)),
          .plan = [](Values values, PlanBuilder& plan) -> Status {
            if (values[kOut].tensor->empty()) return {};
            Operand self = plan.TensorOperand(kSelf);
            for (size_t i = 0; i < IntsOf(values, kAxes).size(); ++i) {
              const int axis = AxisOf(IntsOf(values, kAxes)[i], self.dims.rank());
              self = Taken(self, axis, PartV2(values, i, self.dims[axis]));
            }
            return CopyOut(plan, self, kOut);
          },
          .family = "movement"};
}

// --- strided slice, after TensorFlow -------------------------------------------------------------

enum { kFrom, kBegin, kEnd, kStrides, kBeginMask, kEndMask, kEllipsisMask, kNewAxisMask, kShrinkAxisMask, kTo };

// What becomes of one axis of self, or a new one; the axes of the result in order.
struct StridedPart {
  int axis = -1;  // of self; -1: new
  Part part;      // may go backwards
  bool shrinks = false;
};

bool Bit(Values v, int mask, size_t i) { return i < 63 && (v[mask].integer >> i & 1) != 0; }

// Nothing where the arrays and masks do not fit self: too many entries, or an element outside of an axis.
std::optional<std::vector<StridedPart>> StridedParts(Values v) {
  const Dims& self = v[kFrom].tensor->dims;
  const size_t entries = IntsOf(v, kBegin).size();
  bool ellipsis = false;
  int named = 0;
  for (size_t i = 0; i < entries; ++i) {
    const bool here = Bit(v, kEllipsisMask, i);
    ellipsis = ellipsis || here;
    if (!here && !Bit(v, kNewAxisMask, i)) ++named;
  }
  if (named > self.rank()) return std::nullopt;
  std::vector<StridedPart> parts;
  int axis = 0;
  const auto add_whole = [&](int count) {
    for (; count > 0; --count, ++axis) parts.push_back({axis, {0, self[axis], 1}});
  };
  for (size_t i = 0; i < entries; ++i) {
    if (Bit(v, kEllipsisMask, i)) {
      add_whole(self.rank() - named);
      continue;
    }
    if (Bit(v, kNewAxisMask, i)) {
      parts.push_back({-1, {0, 1, 1}});
      continue;
    }
    const int64_t size = self[axis], stride = IntsOf(v, kStrides)[i];
    int64_t begin = IntsOf(v, kBegin)[i], end = IntsOf(v, kEnd)[i];
    if (Bit(v, kShrinkAxisMask, i)) {
      if (begin < -size || begin >= size) return std::nullopt;
      parts.push_back({axis++, {begin < 0 ? begin + size : begin, 1, 1}, true});
      continue;
    }
    const int64_t low = stride > 0 ? 0 : -1, high = stride > 0 ? size : size - 1;
    const auto clamp = [&](int64_t at) { return std::clamp(at < 0 ? at + size : at, low, high); };
    begin = Bit(v, kBeginMask, i) ? (stride > 0 ? low : high) : clamp(begin);
    end = Bit(v, kEndMask, i) ? (stride > 0 ? high : low) : clamp(end);
    const int64_t distance = stride > 0 ? end - begin : begin - end;
    const uint64_t pace = stride > 0 ? static_cast<uint64_t>(stride) : uint64_t{0} - static_cast<uint64_t>(stride);
    const int64_t count = distance <= 0 ? 0 : static_cast<int64_t>((static_cast<uint64_t>(distance) - 1) / pace) + 1;
    parts.push_back({axis++, {begin, count, stride}});
  }
  if (!ellipsis) add_whole(self.rank() - axis);
  return parts;
}

std::string WrongStridedParts(Values v, Product) {
  return StridedParts(v) ? "" : "must name elements of " + ToString(v[kFrom].tensor->dims) + " and not more axes than it has";
}
Dims StridedDims(Values v) {
  Dims dims;
  const std::vector<StridedPart> parts = *StridedParts(v);
  for (const StridedPart& part : parts) {
    if (!part.shrinks) dims.push_back(part.part.count);
  }
  return dims;
}
std::string ZeroStride(Values v, Product) {
  for (const int64_t stride : IntsOf(v, kStrides)) {
    if (stride == 0) return "must not be 0";
  }
  return "";
}
std::string TwoEllipses(Values v, Product) {
  const uint64_t mask = static_cast<uint64_t>(v[kEllipsisMask].integer);
  return (mask & (mask - 1)) == 0 ? "" : "must have at most one bit, got " + std::to_string(v[kEllipsisMask].integer);
}
std::string ShrinksBackwards(Values v, Product) {
  for (size_t i = 0; i < IntsOf(v, kStrides).size(); ++i) {
    const bool wins = !Bit(v, kEllipsisMask, i) && !Bit(v, kNewAxisMask, i);
    if (wins && Bit(v, kShrinkAxisMask, i) && IntsOf(v, kStrides)[i] < 0) return "must not name an axis with a negative stride";
  }
  return "";
}

// Positive steps are views; axes that go backwards are turned by a mapping afterwards.
Status PlanStridedSlice(Values values, PlanBuilder& plan) {
  if (values[kTo].tensor->empty()) return {};
  Operand from = plan.TensorOperand(kFrom);
  const std::vector<StridedPart> parts = *StridedParts(values);
  std::vector<bool> turned;
  bool any = false;
  Operand view = from;
  view.dims = view.strides = Dims();
  for (const StridedPart& one : parts) {
    if (one.axis < 0) {
      view = WithAxis(view, view.dims.rank());
      turned.push_back(false);
      continue;
    }
    Part part = one.part;
    const bool backwards = part.step < 0;
    if (backwards) part = {part.start + (part.count - 1) * part.step, part.count, -part.step};
    const Operand axis = Taken(from, one.axis, part);
    view.offset += axis.offset - from.offset;
    view.bytes -= axis.offset - from.offset;
    if (one.shrinks) continue;
    view.dims.push_back(part.count);
    view.strides.push_back(axis.strides[one.axis]);
    turned.push_back(backwards);
    any = any || backwards;
  }
  if (!any) return CopyOut(plan, view, kTo);
  std::vector<AxisMap> maps;
  for (const bool backwards : turned) maps.push_back({backwards ? Mapping::kReverse : Mapping::kSame, 0});
  const Operand out = ApartOutput(plan, kTo);
  ANYACL_RETURN_IF_ERROR(AddRemap(plan, view, out, maps));
  return pointwise::FinishOutput(plan, kTo, 0, out);
}

Operator MakeStridedSlice(const Entry& entry) {
  Table table = TableOf(entry, "copy", "Elements of ranges of all axes, forwards or backwards, with axes left out and new ones.");
  table.notes = {"Bit i of a mask is about entry i of begin, end and strides.",
                 "A set bit of beginMask or endMask stands for the whole range on that side; ellipsisMask for all axes not named,"
                 " before newAxisMask (an axis of 1), before shrinkAxisMask (one element, and no axis)."};
  constexpr DTypeSet kTypes = types::kFloat3 | types::kInt5Bool | types::kUnsigned3 | DTypeSet{DType::kC32, DType::kC64};
  AddNullRules(&table);
  Add(&table, {Supported(kOnly950).Code(161002), DTypes("self", RowsOf(kTypes | types::kFloat8)), SameDType("out", "self")});
  AddStorageRules(&table);
  Add(&table, {Rank("self", 0, 8), Rank("out", 0, 8), SameLength("begin", "strides"), SameLength("end", "strides"),
               Custom("strides", "must not be 0", ZeroStride), Custom("ellipsisMask", "must have at most one bit", TwoEllipses),
               Custom("shrinkAxisMask", "must not name an axis with a negative stride", ShrinksBackwards),
               Custom("begin", "must name elements of self and not more axes than it has", WrongStridedParts),
               ShapeOf<kTo, StridedDims>("out", "must have the shape that the parts of self give")});
  return {.contract = Contract(std::move(table)), .plan = PlanStridedSlice, .family = "movement"};
}

// --- assignment to a slice -----------------------------------------------------------------------

enum { kVar, kValue, kFirst, kLast, kPace, kNamed };

std::vector<Part> AssignedParts(Values v) {
  const Dims& dims = v[kVar].tensor->dims;
  std::vector<Part> parts;
  for (const int64_t size : dims) parts.push_back({0, size, 1});
  for (size_t i = 0; i < IntsOf(v, kFirst).size(); ++i) {
    const int axis = v[kNamed].given() ? AxisOf(IntsOf(v, kNamed)[i], dims.rank()) : static_cast<int>(i);
    const int64_t size = dims[axis];
    const auto clamp = [&](int64_t at) { return std::clamp<int64_t>(at < 0 ? at + size : at, 0, size); };
    const int64_t begin = clamp(IntsOf(v, kFirst)[i]), end = std::max(begin, clamp(IntsOf(v, kLast)[i]));
    const int64_t step = IntsOf(v, kPace)[i];
    parts[static_cast<size_t>(axis)] = {begin, (end - begin) / step + ((end - begin) % step != 0), step};
  }
  return parts;
}
Dims AssignedDims(Values v) {
  Dims dims;
  for (const Part& part : AssignedParts(v)) dims.push_back(part.count);
  return dims;
}
std::string WrongAssignedAxes(Values v, Product) {
  const int rank = v[kVar].tensor->rank();
  const size_t entries = IntsOf(v, kFirst).size();
  if (!v[kNamed].given()) return entries <= static_cast<size_t>(rank) ? "" : "must have at most one entry per axis, got " + std::to_string(entries);
  return IntsOf(v, kNamed).size() == entries ? "" : "must have as many entries as axesOptional, got " + std::to_string(entries);
}
std::string EmptyAxis(Values v, Product) { return v[kVar].tensor->empty() ? "must have elements, got " + ToString(v[kVar].tensor->dims) : ""; }
std::string PaceNotPositive(Values v, Product) {
  for (const int64_t step : IntsOf(v, kPace)) {
    if (step <= 0) return NotPositive(step);
  }
  return "";
}

Operator MakeStridedSliceAssign(const Entry& entry) {
  Table table = TableOf(entry, "copy", "Writes a tensor into a slice of another.", {.in_out = {"varRef"}, .optional = {"axesOptional"}});
  table.formulas = {"varRef[begin0:end0:stride0, ...] = inputValue on the axes named"};
  table.notes = {"Without axesOptional the entries are about the first axes. Axes not named are taken whole."};
  table.result_pointers = ResultPointers::kAfterNullChecks;
  AddNullRules(&table);
  Add(&table, {Supported(kNewer),
               DTypes("varRef", RowsOf(types::kFloat3 | DTypeSet{DType::kI32, DType::kI64, DType::kF64, DType::kI8})),
               SameDType("inputValue", "varRef")});
  AddStorageRules(&table);
  Add(&table, {Rank("varRef", 1, 8).Code(561002), Custom("varRef", "must have elements", EmptyAxis).Code(561002),
               DimsOf("axesOptional", "varRef").Code(561002), SameLength("end", "begin").Code(561002),
               SameLength("strides", "begin").Code(561002), Custom("begin", "must fit the axes", WrongAssignedAxes).Code(561002),
               Custom("strides", "must be positive", PaceNotPositive).Code(561002),
               ShapeOf<kValue, AssignedDims>("inputValue", "must have the shape of the slice").Code(561002)});
  return {.contract = Contract(std::move(table)),
          .plan = [](Values values, PlanBuilder& plan) -> Status {
            if (values[kValue].tensor->empty()) return {};
            Operand var = plan.TensorOperand(kVar), value = plan.TensorOperand(kValue);
            if (plan.Overlaps(var, /*exact_too=*/true)) {
              const Operand copy = plan.ScratchOperand("inputValue", value.dtype, value.dims);
              ANYACL_RETURN_IF_ERROR(pointwise::AddCopy(plan, value, copy));
              value = copy;
            }
            const std::vector<Part> parts = AssignedParts(values);
            for (int i = 0; i < static_cast<int>(parts.size()); ++i) var = Taken(var, i, parts[static_cast<size_t>(i)]);
            return pointwise::AddCopy(plan, value, var);
          },
          .family = "movement"};
}

// --- flip and roll -------------------------------------------------------------------------------

Operator MakeFlip(const Entry& entry) {
  enum { kIn, kDims, kResult };
  Table table = TableOf(entry, "remap", "The elements of some axes in reverse order.");
  table.formulas = {"out[..., i, ...] = self[..., n - 1 - i, ...]"};
  constexpr DTypeSet kOlder = types::kBasic10 | types::kComplex;
  AddNullRules(&table);
  Add(&table, {Supported(kNewer), SameDType("out", "self"), DTypes("self", RowsOf(kAll15, kOlder))});
  AddStorageRules(&table);
  Add(&table, {SameShape("out", "self"), Rank("self", 0, 8), DimsOf("dims", "self")});
  return {.contract = Contract(std::move(table)),
          .plan = [](Values values, PlanBuilder& plan) -> Status {
            const Tensor& self = *values[kIn].tensor;
            if (self.empty()) return {};
            if (self.rank() == 0 || IntsOf(values, kDims).empty()) return CopyOut(plan, plan.TensorOperand(kIn), kResult);
            std::vector<AxisMap> maps(static_cast<size_t>(self.rank()));
            for (const int64_t dim : IntsOf(values, kDims)) maps[static_cast<size_t>(AxisOf(dim, self.rank()))].mapping = Mapping::kReverse;
            const Operand out = ApartOutput(plan, kResult);
            ANYACL_RETURN_IF_ERROR(AddRemap(plan, plan.TensorOperand(kIn), out, maps));
            return pointwise::FinishOutput(plan, kResult, 0, out);
          },
          .family = "movement"};
}

enum { kX, kShifts, kDims, kRolled };

std::string WrongShifts(Values v, Product) {
  const size_t shifts = IntsOf(v, kShifts).size(), dims = IntsOf(v, kDims).size();
  return dims == shifts || (dims == 0 && shifts == 1)
             ? ""
             : "must have one entry per axis of dims, or one where dims is empty, got " + std::to_string(shifts) + " for " + std::to_string(dims);
}
std::string WrongRollDims(Values v, Product) {
  const int rank = v[kX].tensor->rank();
  for (const int64_t dim : IntsOf(v, kDims)) {
    if (dim < -rank || dim >= rank) return "must be axes of " + ToString(v[kX].tensor->dims) + ", got " + std::to_string(dim);
  }
  return "";
}

Operator MakeRoll(const Entry& entry) {
  Table table = TableOf(entry, "remap", "Elements moved along axes; what leaves at one end comes in at the other.");
  table.formulas = {"out[..., (i + shift) mod n, ...] = self[..., i, ...]"};
  table.notes = {"Without dims the tensor is rolled as one row. Shifts of an axis named twice add up."};
  constexpr DTypeSet kOlder =
      types::kFloat3 | types::kBool | DTypeSet{DType::kI8, DType::kU8, DType::kI16, DType::kI32, DType::kI64, DType::kU32};
  std::vector<TypeRow> rows = RowsOf(kAll15 | types::kComplex32, kOlder);
  for (TypeRow& row : rows) {
    if (row.types[0] == DType::kI16) row.products = kNewerAndTraining;
    if (row.types[0] == DType::kI16) row.products = kNewer;
  }
  AddNullRules(&table);
  Add(&table, {Supported(kFive), DTypes("x", rows), SameDType("out", "x")});
  AddStorageRules(&table);
  Add(&table, {SameShape("out", "x"), Custom("shifts", "must have one entry per axis of dims", WrongShifts), Rank("x", 0, 8),
               AcceptIfEmpty({"x"}), Custom("dims", "must be axes of x", WrongRollDims)});
  return {.contract = Contract(std::move(table)),
          .plan = [](Values values, PlanBuilder& plan) -> Status {
            const Tensor& self = *values[kX].tensor;
            if (self.empty()) return {};
            const std::vector<int64_t>&shifts = IntsOf(values, kShifts), &dims = IntsOf(values, kDims);
            Operand x = plan.TensorOperand(kX);
            if (self.rank() == 0 || shifts.empty()) return CopyOut(plan, x, kRolled);
            Operand out = ApartOutput(plan, kRolled);
            if (dims.empty()) {
              const Operand flat = Reshaped(out.row_major() ? out : plan.ScratchOperand("rolled", out.dtype, out.dims), {self.numel()});
              ANYACL_RETURN_IF_ERROR(DenseOf(plan, x, &x));
              ANYACL_RETURN_IF_ERROR(
                  AddRemap(plan, Reshaped(x, {self.numel()}), flat, {{Mapping::kWrap, shifts[0] % self.numel()}}));
              if (!out.row_major()) ANYACL_RETURN_IF_ERROR(pointwise::AddCopy(plan, Reshaped(flat, out.dims), out));
              return pointwise::FinishOutput(plan, kRolled, 0, out);
            }
            std::vector<AxisMap> maps(static_cast<size_t>(self.rank()));
            for (size_t i = 0; i < dims.size(); ++i) {
              AxisMap& map = maps[static_cast<size_t>(AxisOf(dims[i], self.rank()))];
              const int64_t size = self.dims[AxisOf(dims[i], self.rank())];
              map = {Mapping::kWrap, (map.before + shifts[i] % size) % size};
            }
            ANYACL_RETURN_IF_ERROR(AddRemap(plan, x, out, maps));
            return pointwise::FinishOutput(plan, kRolled, 0, out);
          },
          .family = "movement"};
}

}  // namespace

void DeclareSlices(Declarations& declarations) {
  declarations.Add("aclnnFlip", MakeFlip);
  declarations.Add("aclnnRoll", MakeRoll);
  declarations.Add("aclnnSlice", MakeSlice);
  declarations.Add("aclnnSliceV2", MakeSliceV2);
  declarations.Add("aclnnStridedSlice", MakeStridedSlice);
  declarations.Add("aclnnStridedSliceAssignV2", MakeStridedSliceAssign);
}

}  // namespace anyacl::movement
