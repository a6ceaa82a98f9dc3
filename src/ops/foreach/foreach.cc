// SPDX-License-Identifier: Apache-2.0
// Copyright The AnyACL Authors
//
// One formula over every entry of lists. A row says which; the header says which form it is: where the number comes from that
// entries are combined with (a scalar, a list of scalars, a tensor), and whether the result is written in place.
#include <fmt/format.h>

#include <cmath>
#include <cstring>
#include <limits>

#include "ops/foreach/list_reduce.h"
#include "ops/operators.h"
#include "ops/pointwise/formulas.h"
#include "ops/pointwise/pass.h"
#include "ops/table.h"

namespace anyacl {
namespace {

using namespace contract;
using pointwise::AddPass;
using pointwise::ConstantOperand;
using pointwise::Formula;
using pointwise::ScalarUse;

constexpr DTypeSet kFloats = types::kFloat3;
constexpr DTypeSet kPlusI = kFloats | DTypeSet{DType::kI32};
constexpr DTypeSet kSmall = {DType::kI16, DType::kI8, DType::kU8};
constexpr DTypeSet kCopied = kFloats | DTypeSet{DType::kI8, DType::kU8, DType::kI16, DType::kU16, DType::kI32, DType::kU32, DType::kI64,
                                                DType::kF64, DType::kBool};

// What a row computes with its lists x, y, z and its number s.
enum class Shape {
  kUnary,       // f(x)
  kBinary,      // f(x, y)
  kNumber,      // f(x, s)
  kFromNumber,  // f(s, x)
  kSum,         // x + s * y, or minus
  kTriple,      // x + s * y * z, or / z
  kLerp,        // from x to y by s
  kExponential, // whole results are rounded and saturated
  kCopy,
  kZero,
};

struct Row {
  const char* op;  // without prefix and form
  Shape shape;
  Formula formula;
  DTypeSet types;
  const char* text;
  bool handwritten = false;  // its rules about lists answer 161002, not 561002
  double factor = 1;         // kSum: of the number
};

constexpr Row kRows[] = {
    {"Abs", Shape::kUnary, Formula::kAbs, kFloats, "|x|"},
    {"Acos", Shape::kUnary, Formula::kAcos, kFloats, "acos(x)"},
    {"ACosInplace", Shape::kUnary, Formula::kAcos, kFloats, "acos(x)"},
    {"Asin", Shape::kUnary, Formula::kAsin, kFloats, "asin(x)"},
    {"Atan", Shape::kUnary, Formula::kAtan, kFloats, "atan(x)"},
    {"Cos", Shape::kUnary, Formula::kCos, kFloats, "cos(x)"},
    {"Cosh", Shape::kUnary, Formula::kCosh, kFloats, "cosh(x)"},
    {"Erf", Shape::kUnary, Formula::kErf, kFloats, "erf(x)"},
    {"Erfc", Shape::kUnary, Formula::kErfc, kFloats, "1 - erf(x)"},
    {"Log", Shape::kUnary, Formula::kLog, kFloats, "ln(x)"},
    {"LogInplace", Shape::kUnary, Formula::kLog, kFloats, "ln(x)"},
    {"Log10", Shape::kUnary, Formula::kLog10, kFloats, "log10(x)"},
    {"Log1p", Shape::kUnary, Formula::kLog1p, kFloats, "ln(1 + x)"},
    {"Log2", Shape::kUnary, Formula::kLog2, kFloats, "log2(x)"},
    {"Reciprocal", Shape::kUnary, Formula::kReciprocal, kFloats, "1 / x"},
    {"Sigmoid", Shape::kUnary, Formula::kSigmoid, kFloats, "1 / (1 + e^-x)"},
    {"Sin", Shape::kUnary, Formula::kSin, kFloats, "sin(x)"},
    {"Sinh", Shape::kUnary, Formula::kSinh, kFloats, "sinh(x)"},
    {"Tan", Shape::kUnary, Formula::kTan, kFloats, "tan(x)"},
    {"Tanh", Shape::kUnary, Formula::kTanh, kFloats, "tanh(x)"},
    {"Sqrt", Shape::kUnary, Formula::kSqrt, kFloats, "sqrt(x)", true},
    {"Exp", Shape::kExponential, Formula::kExp, kFloats | kSmall, "e^x"},
    {"Expm1", Shape::kExponential, Formula::kExpm1, kFloats | kSmall, "e^x - 1"},
    {"Neg", Shape::kUnary, Formula::kNeg, kPlusI | kSmall, "-x"},
    {"Sign", Shape::kUnary, Formula::kSign, kFloats | DTypeSet{DType::kI8, DType::kI32, DType::kI64}, "sign of x"},
    {"ZeroInplace", Shape::kZero, Formula::kFill, kFloats | DTypeSet{DType::kI16, DType::kI32}, "0"},
    {"Copy", Shape::kCopy, Formula::kCopy, kCopied, "x", true},
    {"AddList", Shape::kSum, Formula::kAddcmul, kPlusI | kSmall, "x1 + alpha * x2", true},
    {"AddListV2", Shape::kSum, Formula::kAddcmul, kPlusI | kSmall, "x1 + alpha * x2", true},
    {"AddListInplace", Shape::kSum, Formula::kAddcmul, kPlusI, "x1 + alpha * x2"},
    {"SubList", Shape::kSum, Formula::kAddcmul, kPlusI | kSmall, "x1 - alpha * x2", false, -1},
    {"SubListV2", Shape::kSum, Formula::kAddcmul, kPlusI | kSmall, "x1 - alpha * x2", true, -1},
    {"SubListInplace", Shape::kSum, Formula::kAddcmul, kPlusI, "x1 - alpha * x2", false, -1},
    {"MulList", Shape::kBinary, Formula::kMul, kPlusI | kSmall, "x1 * x2", true},
    {"MulListInplace", Shape::kBinary, Formula::kMul, kPlusI, "x1 * x2"},
    {"DivList", Shape::kBinary, Formula::kDiv, kFloats, "x1 / x2", true},
    {"DivListInplace", Shape::kBinary, Formula::kDiv, kFloats, "x1 / x2"},
    {"MaximumList", Shape::kBinary, Formula::kMaximum, kPlusI, "the larger of x1 and x2"},
    {"MinimumList", Shape::kBinary, Formula::kMinimum, kPlusI, "the smaller of x1 and x2"},
    {"PowList", Shape::kBinary, Formula::kPow, kPlusI, "x1 ^ x2"},
    {"LerpList", Shape::kLerp, Formula::kLerp, kFloats, "x1 + weight * (x2 - x1)", true},
    {"LerpScalar", Shape::kLerp, Formula::kLerp, kFloats, "x1 + weight * (x2 - x1)", true},
    {"AddcdivList", Shape::kTriple, Formula::kAddcdiv, kFloats, "x1 + s * x2 / x3"},
    {"AddcdivScalar", Shape::kTriple, Formula::kAddcdiv, kFloats, "x1 + s * x2 / x3", true},
    {"AddcdivScalarList", Shape::kTriple, Formula::kAddcdiv, kFloats, "x1 + s * x2 / x3", true},
    {"AddcdivScalarV2", Shape::kTriple, Formula::kAddcdiv, kFloats, "x1 + s * x2 / x3", true},
    {"AddcmulList", Shape::kTriple, Formula::kAddcmul, kPlusI, "x1 + s * x2 * x3"},
    {"AddcmulScalar", Shape::kTriple, Formula::kAddcmul, kPlusI, "x1 + s * x2 * x3"},
    {"AddcmulScalarList", Shape::kTriple, Formula::kAddcmul, kPlusI, "x1 + s * x2 * x3"},
    {"AddcmulScalarV2", Shape::kTriple, Formula::kAddcmul, kPlusI, "x1 + s * x2 * x3", true},
    {"AddScalar", Shape::kNumber, Formula::kPlus, kPlusI | kSmall, "x + s"},
    {"AddScalarV2", Shape::kNumber, Formula::kPlus, kPlusI | kSmall, "x + s", true},
    {"AddScalarList", Shape::kNumber, Formula::kPlus, kPlusI, "x + s"},
    {"SubScalar", Shape::kNumber, Formula::kMinus, kPlusI, "x - s"},
    {"SubScalarV2", Shape::kNumber, Formula::kMinus, kPlusI, "x - s", true},
    {"SubScalarList", Shape::kNumber, Formula::kMinus, kPlusI, "x - s"},
    {"SubScalarInplace", Shape::kNumber, Formula::kMinus, kPlusI, "x - s"},
    {"MulScalar", Shape::kNumber, Formula::kMul, kPlusI, "x * s"},
    {"MulScalarV2", Shape::kNumber, Formula::kMul, kPlusI, "x * s", true},
    {"MulScalarList", Shape::kNumber, Formula::kMul, kPlusI, "x * s"},
    {"MulScalarInplace", Shape::kNumber, Formula::kMul, kPlusI, "x * s"},
    {"DivScalar", Shape::kNumber, Formula::kDiv, kFloats, "x / s", true},
    {"DivScalarV2", Shape::kNumber, Formula::kDiv, kFloats, "x / s", true},
    {"DivScalarList", Shape::kNumber, Formula::kDiv, kFloats, "x / s"},
    {"MaximumScalar", Shape::kNumber, Formula::kMaximum, kPlusI, "the larger of x and s"},
    {"MaximumScalarV2", Shape::kNumber, Formula::kMaximum, kPlusI, "the larger of x and s", true},
    {"MaximumScalarList", Shape::kNumber, Formula::kMaximum, kPlusI, "the larger of x and s"},
    {"MinimumScalar", Shape::kNumber, Formula::kMinimum, kPlusI, "the smaller of x and s"},
    {"MinimumScalarV2", Shape::kNumber, Formula::kMinimum, kPlusI, "the smaller of x and s", true},
    {"MinimumScalarList", Shape::kNumber, Formula::kMinimum, kPlusI, "the smaller of x and s"},
    {"PowScalar", Shape::kNumber, Formula::kPow, kPlusI, "x ^ s"},
    {"PowScalarV2", Shape::kNumber, Formula::kPow, kPlusI, "x ^ s", true},
    {"PowScalarList", Shape::kNumber, Formula::kPow, kPlusI, "x ^ s"},
    {"PowScalarAndTensor", Shape::kFromNumber, Formula::kPow, kPlusI, "s ^ x"},
    {"RoundOffNumber", Shape::kNumber, Formula::kRoundOff, kFloats | DTypeSet{DType::kI16}, "x rounded as s says"},
    {"RoundOffNumberV2", Shape::kNumber, Formula::kRoundOff, kPlusI | DTypeSet{DType::kI16}, "x rounded as s says", true},
};

// On the newest product DOUBLE is taken too, and arithmetic takes every usual integer.
DTypeSet NewestOf(DTypeSet types, bool is_arithmetic) {
  types = types | types::kDouble;
  return is_arithmetic && types.Has(DType::kI32) ? types | types::kInt5 : types;
}
std::vector<TypeRow> RowsOf(const Row& row) {
  const bool is_arithmetic = row.shape != Shape::kUnary && row.shape != Shape::kZero && row.shape != Shape::kCopy && row.formula != Formula::kRoundOff;
  return contract::RowsOf(NewestOf(row.types, is_arithmetic), row.types);
}
std::vector<TypeRow> FloatRows() { return contract::RowsOf(NewestOf(kFloats, false), kFloats); }

const Products kWithForeach = Of({Product::kAscend950, Product::kA3, Product::kA2});

// An operator: its row, and where its arguments stand.
struct Form {
  const Row* row;
  int lists[3] = {-1, -1, -1};
  int weights = -1;  // list of kLerp
  int number = -1;
  ArgKind number_kind = ArgKind::kScalar;
  bool per_entry = false;  // the number's tensor has one element per entry
  int out;
};

bool IsWhole(DType t) { return IsInteger(t); }

// --- numbers ---------------------------------------------------------------------------------------------------------

double LargestOf(DType t) {
  switch (t) {
    case DType::kF16:
      return 65504;
    case DType::kBF16:
      return 0x1.fep127;
    case DType::kF32:
      return std::numeric_limits<float>::max();
    case DType::kF64:
      return std::numeric_limits<double>::max();
    default:
      return std::ldexp(1.0, static_cast<int>(8 * SizeOf(t)) - (t == DType::kU8 ? 0 : 1)) - 1;
  }
}
double LowestOf(DType t) { return t == DType::kU8 ? 0 : IsWhole(t) ? -LargestOf(t) - 1 : -LargestOf(t); }

bool ScalarFitsList(DType scalar, DType x) {
  if (IsWhole(x)) return IsInteger(scalar) || scalar == DType::kBool;
  return IsFloating(scalar) || IsInteger(scalar) || scalar == DType::kBool;
}

template <int kArg, int kList>
std::string NumberFits(Values v, Product) {
  const auto& tensors = v[kList].tensors->tensors;
  if (tensors.empty() || !tensors[0]) return "";
  const DType x = tensors[0]->dtype, s = v[kArg].scalar->dtype;
  if (ScalarFitsList(s, x)) return "";
  return fmt::format("must be a number that {} lists take, got {}", Name(x), Name(s));
}

template <int kArg, int kList>
std::string NumbersFit(Values v, Product) {
  const auto& tensors = v[kList].tensors->tensors;
  if (tensors.empty() || !tensors[0]) return "";
  for (const Scalar* s : v[kArg].scalars->scalars) {
    if (s && !ScalarFitsList(s->dtype, tensors[0]->dtype)) {
      return fmt::format("must be numbers that {} lists take, got {}", Name(tensors[0]->dtype), Name(s->dtype));
    }
  }
  return "";
}

// One element for all entries: of x's dtype, FLOAT for BF16 and INT32 for small integers; wider ones are converted.
template <int kArg, int kList>
std::string TensorNumberFits(Values v, Product) {
  const auto& tensors = v[kList].tensors->tensors;
  if (tensors.empty() || !tensors[0]) return "";
  const DType x = tensors[0]->dtype, s = v[kArg].tensor->dtype;
  const bool fits = IsWhole(x) ? IsInteger(s) : IsFloating(s);
  return fits ? "" : fmt::format("must be a number that {} lists take, got {}", Name(x), Name(s));
}
template <int kArg>
std::string HasOneElement(Values v, Product) {
  const Dims& dims = v[kArg].tensor->dims;
  return Numel(dims) == 1 && dims.rank() <= 8 ? "" : fmt::format("must have one element, got shape {}", ToString(dims));
}
template <int kArg, int kList>
std::string SameTypeAsList(Values v, Product) {
  const auto& tensors = v[kList].tensors->tensors;
  if (tensors.empty() || !tensors[0] || tensors[0]->dtype == v[kArg].tensor->dtype) return "";
  return fmt::format("must have the dtype of the list, got {} and {}", Name(v[kArg].tensor->dtype), Name(tensors[0]->dtype));
}
template <int kArg, int kList>
std::string OnePerEntry(Values v, Product) {
  const size_t entries = v[kList].tensors->tensors.size();
  const int64_t count = v[kArg].tensor->numel();
  return static_cast<size_t>(count) == entries ? "" : fmt::format("must have one element per entry, got {} and {} entries", count, entries);
}

// The checks above for one position of the number and of the first list. Lists stand first but in PowScalarAndTensor.
struct NumberChecks {
  CustomCheck fits, fit, tensor, one, same, each;
};
template <int kArg, int kList>
constexpr NumberChecks kChecks = {NumberFits<kArg, kList>,    NumbersFit<kArg, kList>,     TensorNumberFits<kArg, kList>,
                                  HasOneElement<kArg>, SameTypeAsList<kArg, kList>, OnePerEntry<kArg, kList>};
NumberChecks ChecksAt(int arg) {
  switch (arg) {
    case 0:
      return kChecks<0, 1>;
    case 1:
      return kChecks<1, 0>;
    case 2:
      return kChecks<2, 0>;
    default:
      return kChecks<3, 0>;
  }
}

// A number of another dtype that x compares with must be one of x's; infinities are, where x is floating.
std::string NumberInRange(Values v, Product) {
  const auto& tensors = v[0].tensors->tensors;
  if (tensors.empty() || tensors[0]->dtype == v[1].scalar->dtype) return "";
  const DType x = tensors[0]->dtype;
  const double s = v[1].scalar->AsDouble(), low = LowestOf(x), high = LargestOf(x);
  if (std::isnan(s) || (std::isinf(s) && !IsWhole(x)) || (s >= low && s <= high)) return "";
  return fmt::format("must be a number of {}, got {}", Name(x), s);
}

void AddNumberRules(const Form& form, Table* table) {
  const char* const name = table->args[form.number].name;
  const NumberChecks checks = ChecksAt(form.number);
  const int32_t shape_code = form.row->handwritten ? 161002 : 561002;
  if (form.number_kind == ArgKind::kScalar) Add(table, {Custom(name, "must be a number that the list takes", checks.fits)});
  if (form.number_kind == ArgKind::kScalarList) {
    Add(table, {Custom(name, "must be numbers that the list takes", checks.fit),
                SameLength(name, table->args[form.lists[0]].name).Code(shape_code)});
  }
  if (form.number_kind != ArgKind::kInput) return;
  if (form.per_entry) {
    Add(table, {Custom(name, "must have the dtype of the list", checks.same), Custom(name, "must have one element per entry", checks.each).Code(shape_code)});
  } else {
    Add(table, {Custom(name, "must be a number that the list takes", checks.tensor), Custom(name, "must have one element", checks.one).Code(shape_code)});
  }
}

// --- entries ---------------------------------------------------------------------------------------------------------

// Of a longer output the first elements are written.
std::string HasRoom(const TensorSpan& x, const TensorSpan& out) {
  for (size_t i = 0; i < x.tensors.size() && i < out.tensors.size(); ++i) {
    if (!x.tensors[i] || !out.tensors[i] || out.tensors[i]->numel() >= x.tensors[i]->numel()) continue;
    return fmt::format("must have room for the elements of the input, got {} at entry {} and input {}", ToString(out.tensors[i]->dims), i,
                       ToString(x.tensors[i]->dims));
  }
  return "";
}
template <int kOut, int kList>
std::string OutputsHaveRoom(Values v, Product) {
  return HasRoom(*v[kList].tensors, *v[kOut].tensors);
}
CustomCheck RoomAt(int out) {
  constexpr CustomCheck checks[] = {nullptr, OutputsHaveRoom<1, 0>, OutputsHaveRoom<2, 0>, OutputsHaveRoom<3, 0>, OutputsHaveRoom<4, 0>};
  return checks[out];
}
std::string PowerHasRoom(Values v, Product) { return HasRoom(*v[1].tensors, *v[2].tensors); }

// The first n elements of a view in row-major order: whole slabs of the first axis, then what is left in the next one.
Status CopyPrefix(PlanBuilder& plan, Operand from, Operand to, int64_t n) {
  while (n > 0) {
    if (to.dims.rank() == 0) return pointwise::AddCopy(plan, from, to);
    int64_t inner = 1;
    for (int i = 1; i < to.dims.rank(); ++i) inner *= to.dims[i];
    const int64_t slabs = n / inner;
    if (slabs > 0) {
      Operand target = to;
      target.dims[0] = slabs;
      Operand source = from;
      source.dims = target.dims;
      source.strides = ContiguousStrides(source.dims);
      ANYACL_RETURN_IF_ERROR(pointwise::AddCopy(plan, source, target));
    }
    const int64_t element_from = static_cast<int64_t>(SizeOf(from.dtype)), element_to = static_cast<int64_t>(SizeOf(to.dtype));
    from.offset += slabs * inner * element_from;
    to.offset += slabs * to.strides[0] * element_to;
    n -= slabs * inner;
    Dims dims, strides;
    for (int i = 1; i < to.dims.rank(); ++i) {
      dims.push_back(to.dims[i]);
      strides.push_back(to.strides[i]);
    }
    to.dims = dims;
    to.strides = strides;
  }
  return {};
}

// The number as an operand of entry i; a scalar is the second one of the pass.
Operand NumberOperand(const Form& form, Values v, PlanBuilder& plan, int item, ScalarUse* scalar) {
  if (form.number_kind == ArgKind::kScalar) {
    scalar->value = *v[form.number].scalar;
    return ConstantOperand(1);
  }
  if (form.number_kind == ArgKind::kScalarList) {
    scalar->value = *v[form.number].scalars->scalars[item];
    return ConstantOperand(1);
  }
  Operand operand = plan.TensorOperand(form.number);
  int64_t offset = 0, index = form.per_entry ? item : 0;
  for (int axis = operand.dims.rank() - 1; axis >= 0; --axis) {
    offset += index % operand.dims[axis] * operand.strides[axis];
    index /= operand.dims[axis];
  }
  operand.offset = offset * static_cast<int64_t>(SizeOf(operand.dtype));
  operand.dims = operand.strides = Dims();
  return operand;
}

struct Entry1 {
  const Form& form;
  PlanBuilder& plan;
  DType x;  // its dtype
  Operand inputs[3];
  Operand number;
  ScalarUse scalars[2];
  Operand out;

  // Numbers keep digits that FLOAT16 and BF16 have not.
  Status Pass(Formula formula, std::span<const Operand> operands, unsigned keep, const Operand& to, DType computed) {
    return AddPass(plan, formula, computed, operands, to, scalars, {.keep_inputs = keep});
  }
};

Status PlanExponential(Entry1& e) {
  if (!IsWhole(e.x)) return e.Pass(e.form.row->formula, {e.inputs, 1}, 0, e.out, e.x);
  const Operand real = e.plan.ScratchOperand("real result", DType::kF32, e.out.dims);
  ANYACL_RETURN_IF_ERROR(e.Pass(e.form.row->formula, {e.inputs, 1}, 0, real, DType::kF32));
  const Operand rounded = e.plan.ScratchOperand("rounded", DType::kF32, e.out.dims);
  ANYACL_RETURN_IF_ERROR(e.Pass(Formula::kRound, {&real, 1}, 0, rounded, DType::kF32));
  const double most = e.x == DType::kI8 ? 127 : e.x == DType::kU8 ? 255 : 32767;
  e.scalars[0] = {Scalar::Of(DType::kF64, e.x == DType::kU8 ? 0 : -most - 1)};
  e.scalars[1] = {Scalar::Of(DType::kF64, most)};
  const Operand clamped[] = {rounded, ConstantOperand(0), ConstantOperand(1)};
  return e.Pass(Formula::kClamp, clamped, 0, e.out, DType::kF32);
}

Status PlanTriple(Entry1& e) {
  const Formula formula = e.form.row->formula;
  if (e.form.number_kind == ArgKind::kScalar) {  // a factor of the formula
    std::swap(e.scalars[0], e.scalars[1]);
    return e.Pass(formula, e.inputs, 0, e.out, e.x);
  }
  const DType wide = IsWhole(e.x) || e.x == DType::kF64 ? e.x : DType::kF32;
  const Operand scaled = e.plan.ScratchOperand("scaled", wide, e.out.dims);
  const Operand factors[] = {e.inputs[1], e.number};
  ANYACL_RETURN_IF_ERROR(e.Pass(Formula::kMul, factors, 0, scaled, wide));
  const Operand operands[] = {e.inputs[0], scaled, e.inputs[2]};
  return e.Pass(formula, operands, 0b010, e.out, e.x);
}

Status PlanEntry(Entry1& e) {
  const Row& row = *e.form.row;
  switch (row.shape) {
    case Shape::kUnary:
      return e.Pass(row.formula, {e.inputs, 1}, 0, e.out, e.x);
    case Shape::kBinary:
      return e.Pass(row.formula, {e.inputs, 2}, 0, e.out, e.x);
    case Shape::kNumber: {
      if (row.formula == Formula::kRoundOff && IsWhole(e.x)) return pointwise::AddCopy(e.plan, e.inputs[0], e.out);
      const Operand operands[] = {e.inputs[0], e.number};
      return e.Pass(row.formula, operands, 0b10, e.out, e.x);
    }
    case Shape::kFromNumber: {
      const Operand operands[] = {e.number, e.inputs[0]};
      return e.Pass(row.formula, operands, 0b01, e.out, e.x);
    }
    case Shape::kSum: {
      const Operand operands[] = {e.inputs[0], e.number, e.inputs[1]};
      return e.Pass(row.formula, operands, 0b010, e.out, e.x);
    }
    case Shape::kTriple:
      return PlanTriple(e);
    case Shape::kLerp: {
      const Operand operands[] = {e.inputs[0], e.inputs[1], e.form.weights >= 0 ? e.inputs[2] : e.number};
      return e.Pass(row.formula, operands, 0b100, e.out, e.x);
    }
    case Shape::kExponential:
      return PlanExponential(e);
    case Shape::kCopy:
      return pointwise::AddCopy(e.plan, e.inputs[0], e.out);
    case Shape::kZero:
      e.scalars[0] = {Scalar::OfInt(0)};
      return e.Pass(Formula::kFill, {}, 0, e.out, e.x);
  }
  return {};
}

Status PlanLists(Values v, PlanBuilder& plan) {
  const Form& form = plan.op().As<Form>();
  const auto& first = v[form.lists[0]].tensors->tensors;
  for (size_t i = 0; i < first.size(); ++i) {
    if (first[i]->empty()) continue;
    const int item = static_cast<int>(i);
    Entry1 e{form, plan, first[i]->dtype, {}, {}, {}, {}};
    e.scalars[0].value = Scalar::Of(DType::kF64, form.row->factor);
    for (int k = 0; k < 3; ++k) {
      if (form.lists[k] >= 0) e.inputs[k] = plan.TensorOperand(form.lists[k], item);
    }
    if (form.weights >= 0) e.inputs[2] = plan.TensorOperand(form.weights, item);
    if (form.number >= 0) e.number = NumberOperand(form, v, plan, item, &e.scalars[1]);
    if (form.number >= 0) e.scalars[1].as = DType::kUndefined;
    const Operand out = plan.TensorOperand(form.out, item);
    const bool direct = out.dims == first[i]->dims && !plan.Overlaps(out, /*exact_too=*/false);
    e.out = direct ? out : plan.ScratchOperand("result", out.dtype, first[i]->dims);
    ANYACL_RETURN_IF_ERROR(PlanEntry(e));
    if (!direct) ANYACL_RETURN_IF_ERROR(CopyPrefix(plan, e.out, out, first[i]->numel()));
  }
  return {};
}

// --- contracts -------------------------------------------------------------------------------------------------------

Form FormOf(const Row& row, const Entry& entry) {
  Form form{.row = &row, .out = 0};
  int lists = 0;
  for (int i = 0; i < static_cast<int>(entry.args.size()); ++i) {
    const std::string_view name = entry.args[i].name;
    if (name == "out") {
      form.out = i;
    } else if (name == "weight" && IsTensorList(entry.args[i].kind)) {
      form.weights = i;
    } else if (IsTensorList(entry.args[i].kind)) {
      form.lists[lists++] = i;
    } else {
      form.number = i;
      form.number_kind = entry.args[i].kind == ArgKind::kOutput ? ArgKind::kInput : entry.args[i].kind;
    }
  }
  const bool has_out = std::string_view(entry.args.back().name) == "out";
  if (!has_out) form.out = form.lists[0];
  form.per_entry = form.number >= 0 && form.number_kind == ArgKind::kInput && std::string_view(entry.args[form.number].name) == "scalars";
  return form;
}

std::vector<TypeRow> CopyRows() {
  std::vector<TypeRow> rows;
  for (DType t : kCopied.List()) rows.push_back({{t, t}, t == DType::kBF16 ? kNewer : kAllProducts});
  rows.push_back({{DType::kF32, DType::kF16}});
  rows.push_back({{DType::kF32, DType::kBF16}, kNewer});
  rows.push_back({{DType::kF16, DType::kF32}});
  rows.push_back({{DType::kBF16, DType::kF32}, kNewer});
  return rows;
}

Operator MakeList(const Row& row, const Entry& entry) {
  const Form form = FormOf(row, entry);
  const auto name = [&](int arg) { return entry.args[arg].name; };
  const bool in_place = form.out == form.lists[0];
  ArgRoles roles;
  if (in_place) roles.in_out = {name(form.out)};
  else roles.outputs = {name(form.out)};
  for (int list : form.lists) {
    if (list >= 0 && list != form.out) roles.inputs.push_back(name(list));
  }
  if (form.weights >= 0) roles.inputs.push_back(name(form.weights));
  Table table = TableOf(entry, "pointwise", "", roles);
  table.summary = "Entry by entry of lists.";
  table.formulas = {fmt::format("{}[i] = {}", name(form.out), row.text)};
  const int32_t code = row.handwritten ? 161002 : 561002;
  for (const Arg& arg : table.args) Add(&table, {NotNull(arg.name).Alone()});
  Add(&table, {Supported(kWithForeach)});
  for (const Arg& arg : table.args) {
    if (arg.is_list()) Add(&table, {NotNull(arg.name).Code(161002)});
  }
  const char* const x = name(form.lists[0]);
  Add(&table, {DTypes(x, RowsOf(row)).Alone(), DTypes(x, RowsOf(row)).Code(code)});
  std::vector<int> others = {form.lists[1], form.lists[2], form.weights};
  for (int other : others) {
    if (other >= 0) Add(&table, {SameLength(name(other), x).Code(code), SameDType(name(other), x).Code(code)});
  }
  if (!in_place) {
    Add(&table, {SameLength("out", x).Code(code)});
    if (row.shape == Shape::kCopy) Add(&table, {DTypeRows({x, "out"}, CopyRows())});
    else Add(&table, {SameDType("out", x)});
  }
  if (form.number >= 0) AddNumberRules(form, &table);
  Add(&table, {Rank(x, 0, 8).Code(code)});
  for (int other : others) {
    if (other >= 0) Add(&table, {SameShape(name(other), x).Code(code)});
  }
  if (!in_place) {
    Add(&table, {Rank("out", 0, 8).Code(code)});
    if (row.handwritten && row.shape != Shape::kCopy) Add(&table, {SameShape("out", x)});
    else Add(&table, {Custom("out", "must have room for the elements of the input",
                             row.shape == Shape::kFromNumber ? PowerHasRoom : RoomAt(form.out)).Code(code)});
  }
  if (row.handwritten) {
    for (const Arg& arg : table.args) {
      if (arg.is_tensor_list()) Add(&table, {PublicFormat(arg.name)});
    }
  }
  const bool compares = row.formula == Formula::kMaximum || row.formula == Formula::kMinimum;
  if (compares && form.number_kind == ArgKind::kScalar && form.number >= 0) {
    Add(&table, {Custom(name(form.number), "must be a number of the list's dtype", NumberInRange)});
  }
  return {.contract = Contract(std::move(table)), .plan = PlanLists, .family = "foreach", .row = std::make_shared<const Form>(form)};
}

// --- sums over entries -----------------------------------------------------------------------------------------------

// Dense, in FLOAT or DOUBLE.
Operand Flat(PlanBuilder& plan, const Operand& tensor, Status* status) {
  Operand flat = tensor;
  const DType dtype = tensor.dtype == DType::kF64 ? DType::kF64 : DType::kF32;
  if (tensor.dtype != dtype || !tensor.row_major()) {
    flat = plan.ScratchOperand("dense numbers", dtype, tensor.dims);
    *status = pointwise::AddCopy(plan, tensor, flat);
  }
  return flat;
}

Status AddListReduce(PlanBuilder& plan, ListReduce what, const Operand& x, double p, const Operand& result) {
  const int64_t count = Numel(x.dims);
  const Operand parts = plan.ScratchOperand("parts", DType::kF64, {ListReduceParts(count)});
  auto& params = plan.MakeParams<ListReduceParams>();
  params.what = what;
  params.p = p;
  params.count = count;
  params.wide = x.dtype == DType::kF64;
  plan.Bind(x, params.x);
  plan.Bind(parts, reinterpret_cast<void*&>(params.parts));
  plan.Bind(result, params.result);
  return plan.ChooseKernel("list_reduce");
}

std::string OneElementEach(Values v, Product) {
  for (const Tensor* t : v[2].tensors->tensors) {
    if (t && t->numel() != 1) return fmt::format("must have one element in each entry, got shape {}", ToString(t->dims));
  }
  return "";
}

Operator MakeNorm(const Entry& entry) {
  Table table = TableOf(entry, "list_reduce", "The p-norm of every entry of a list.", {.outputs = {"out"}, .inputs = {"x"}});
  table.formulas = {"out[i] = (sum of |x[i]|^p)^(1/p); p = 0 counts what is not 0, p = inf is the largest, p = -inf the smallest |x|"};
  for (const Arg& arg : table.args) Add(&table, {NotNull(arg.name).Alone()});
  Add(&table, {Supported(kWithForeach), NotNull("x").Code(161002), NotNull("out").Code(161002), DTypes("x", FloatRows()).Alone(),
               DTypes("x", FloatRows()).Code(561002),
               ScalarDTypes("scalar", {{{DType::kF32}}, {{DType::kF64}}, {{DType::kI64}}}), SameLength("out", "x").Code(561002),
               SameDType("out", "x"), Rank("x", 0, 8).Code(561002), Custom("out", "must have one element in each entry", OneElementEach).Code(561002)});
  return {.contract = Contract(std::move(table)),
          .plan = [](Values v, PlanBuilder& plan) -> Status {
            for (size_t i = 0; i < v[0].tensors->tensors.size(); ++i) {
              Status status;
              const Operand x = Flat(plan, plan.TensorOperand(0, static_cast<int>(i)), &status);
              ANYACL_RETURN_IF_ERROR(std::move(status));
              const Operand norm = plan.ScratchOperand("norm", x.dtype, {});
              ANYACL_RETURN_IF_ERROR(AddListReduce(plan, ListReduce::kNorm, x, v[1].scalar->AsDouble(), norm));
              Operand out = plan.TensorOperand(2, static_cast<int>(i));
              out.dims = out.strides = Dims();
              ANYACL_RETURN_IF_ERROR(pointwise::AddCopy(plan, norm, out));
            }
            return {};
          },
          .family = "foreach"};
}

template <int kArg>
std::string OneElement(Values v, Product) {
  const Dims& dims = v[kArg].tensor->dims;
  return Numel(dims) == 1 ? "" : fmt::format("must have one element, got shape {}", ToString(dims));
}
std::string NotEmptyList(Values v, Product) { return v[0].tensors->tensors.empty() ? "must have at least one entry, got none" : ""; }

Operator MakeUnscale(const Entry& entry) {
  Table table = TableOf(entry, "list_reduce", "Multiplies every entry of a list by invScale, and says whether any number was not finite.",
                        {.in_out = {"scaledGrads", "foundInf"}, .inputs = {"invScale"}});
  table.formulas = {"scaledGrads[i] = scaledGrads[i] * invScale", "foundInf = 1 if an infinity or NaN was among them, else as it was"};
  for (const Arg& arg : table.args) Add(&table, {NotNull(arg.name).Alone()});
  Add(&table, {Supported(Of({Product::kAscend950, Product::kA3, Product::kA2, Product::kInference})), NotNull("scaledGrads").Code(161002),
               Custom("scaledGrads", "must have at least one entry", NotEmptyList).Code(561002),
               DTypes("scaledGrads", FloatRows()).Alone(), DTypes("scaledGrads", FloatRows()).Code(561002),
               DTypes("foundInf", contract::RowsOf({DType::kF32})), DTypes("invScale", contract::RowsOf({DType::kF32})),
               Custom("foundInf", "must have one element", OneElement<1>).Code(561002),
               Custom("invScale", "must have one element", OneElement<2>).Code(561002), Rank("scaledGrads", 0, 8).Code(561002)});
  return {.contract = Contract(std::move(table)),
          .plan = [](Values v, PlanBuilder& plan) -> Status {
            Operand found = plan.TensorOperand(1), scale = plan.TensorOperand(2);
            found.dims = found.strides = scale.dims = scale.strides = Dims();
            for (size_t i = 0; i < v[0].tensors->tensors.size(); ++i) {
              const Operand grads = plan.TensorOperand(0, static_cast<int>(i));
              if (Numel(grads.dims) == 0) continue;
              Status status;
              const Operand x = Flat(plan, grads, &status);
              ANYACL_RETURN_IF_ERROR(std::move(status));
              ANYACL_RETURN_IF_ERROR(AddListReduce(plan, ListReduce::kNonFinite, x, 0, found));
              const Operand factors[] = {grads, scale};
              ANYACL_RETURN_IF_ERROR(AddPass(plan, Formula::kMul, grads.dtype, factors, grads, {}, {.keep_inputs = 0b10}));
            }
            return {};
          },
          .family = "foreach"};
}

}  // namespace

void DeclareForeach(Declarations& declarations) {
  for (const Row& row : kRows) {
    declarations.Add(fmt::format("aclnnForeach{}", row.op), [&row](const anyacl::Entry& entry) { return MakeList(row, entry); });
  }
  declarations.Add("aclnnForeachNorm", MakeNorm);
  declarations.Add("aclnnForeachNonFiniteCheckAndUnscale", MakeUnscale);
}

}  // namespace anyacl
