// SPDX-License-Identifier: Apache-2.0
// Copyright The AnyACL Authors
//
// Convolution and its gradients. A transposed convolution is the input gradient of one whose input has its output's shape.
#include <fmt/format.h>

#include "ops/conv/correlate.h"
#include "ops/conv/families.h"
#include "ops/operators.h"
#include "ops/pointwise/formulas.h"
#include "ops/pointwise/pass.h"
#include "ops/table.h"

namespace anyacl {
namespace {

using namespace contract;
using conv::Geometry;

// What both entries say about a convolution, from the side of the forward call.
struct Call {
  const Dims& input;
  const Dims& weight;
  const std::vector<int64_t>& stride;
  const std::vector<int64_t>& padding;
  const std::vector<int64_t>& dilation;
  const std::vector<int64_t>* output_padding;  // null where it is not looked at
  int64_t groups;
  bool transposed;
};

std::string Show(const std::vector<int64_t>& values) { return fmt::format("[{}]", fmt::join(values, ", ")); }

// The output's dims and the geometry of the correlation behind it; else the sentence.
std::string Solve(const Call& call, Dims* output, Geometry* g) {
  const int axes = call.input.rank() - 2;
  const auto wrong = [](const char* name, const std::vector<int64_t>& values, const std::string& rule) {
    return fmt::format("needs {} {}, got {}", name, rule, Show(values));
  };
  const size_t count = static_cast<size_t>(axes);
  const bool four = axes == 2 && call.padding.size() == 4, two = axes == 1 && call.padding.size() == 2;
  if (call.stride.size() != count) return wrong("stride", call.stride, fmt::format("of {} entries", axes));
  if (call.dilation.size() != count) return wrong("dilation", call.dilation, fmt::format("of {} entries", axes));
  if (call.padding.size() != count && !four && !two) return wrong("padding", call.padding, fmt::format("of {} entries", axes));
  if (call.transposed && call.output_padding->size() != count) {
    return wrong("outputPadding", *call.output_padding, fmt::format("of {} entries", axes));
  }
  if (call.groups <= 0) return fmt::format("needs groups > 0, got {}", call.groups);
  g->axes = axes;
  g->groups = call.groups;
  const int64_t channels = call.input[1], rows = call.weight[0], columns = call.weight[1];
  int64_t all_columns = 0;
  if (__builtin_mul_overflow(columns, call.groups, &all_columns)) return fmt::format("needs groups that sizes can have, got {}", call.groups);
  if (call.transposed ? rows != channels : all_columns != channels) {
    return fmt::format("needs a weight of {} input channels, got input {}, weight {} and groups {}", channels, ToString(call.input),
                       ToString(call.weight), call.groups);
  }
  if (rows % call.groups != 0) return fmt::format("needs weight's dim 0 to be a multiple of groups, got {} and {}", rows, call.groups);
  *output = {call.input[0], call.transposed ? all_columns : rows};
  g->n = call.input[0];
  g->in_channels = all_columns;
  g->out_channels = rows;
  for (int i = 0; i < axes; ++i) {
    const int64_t stride = call.stride[i], dilation = call.dilation[i], kernel = call.weight[2 + i], size = call.input[2 + i];
    const int64_t before = four || two ? call.padding[2 * i] : call.padding[i];
    const int64_t after = four || two ? call.padding[2 * i + 1] : call.padding[i];
    constexpr int64_t kMost = int64_t{1} << 40;  // beyond it products of two would wrap
    if (stride <= 0 || stride > kMost) return wrong("stride", call.stride, "> 0");
    if (dilation <= 0 || dilation > kMost) return wrong("dilation", call.dilation, "> 0");
    if (before < 0 || after < 0 || before > kMost || after > kMost) return wrong("padding", call.padding, ">= 0");
    if (kernel < 1) return fmt::format("needs a kernel of at least 1 on every axis, got weight {}", ToString(call.weight));
    if (kernel > kMost / dilation || size > kMost) return fmt::format("needs sizes that can be, got weight {}", ToString(call.weight));
    const int64_t reach = dilation * (kernel - 1) + 1;
    g->stride[i] = stride;
    g->dilation[i] = dilation;
    g->kernel[i] = kernel;
    g->before[i] = before;
    g->after[i] = after;
    if (!call.transposed) {
      if (size + before + after < reach && call.input[0] != 0 && channels != 0) {
        return fmt::format("needs a padded input of at least the dilated kernel {} on axis {}, got {} + {} + {}", reach, 2 + i, size,
                           before, after);
      }
      g->in[i] = size;
      g->out[i] = size + before + after < reach ? 0 : (size + before + after - reach) / stride + 1;
      output->push_back(g->out[i]);
    } else {
      const int64_t more = (*call.output_padding)[i];
      if (more < 0 || (more >= stride && more >= dilation)) {
        return wrong("outputPadding", *call.output_padding, ">= 0 and below stride or dilation");
      }
      g->out[i] = size;
      g->in[i] = (size - 1) * stride - before - after + reach + more;
      if (size > 0 && g->in[i] < 0) return fmt::format("needs an output of at least 0 on axis {}, got {}", 2 + i, g->in[i]);
      output->push_back(g->in[i]);
    }
  }
  return "";
}

constexpr const char* kTagRule = "must have the format of its rank: NCL, NCHW or NCDHW";
template <int kArg, bool kThreeTakesND>
std::string TagOfRank(Values values, Product product) {
  if (!values[kArg].given()) return "";
  const Tensor& t = *values[kArg].tensor;
  const bool older = product != Product::kAscend950;
  const bool fits = t.rank() == 3   ? t.format == Format::kNCL || (kThreeTakesND && t.format == Format::kND)
                    : t.rank() == 4 ? t.format == Format::kNCHW
                                    : t.format == Format::kNCDHW || (older && t.format == Format::kNDHWC);
  return fits ? "" : fmt::format("{}, got {} for shape {}", kTagRule, Name(t.format), ToString(t.dims));
}

std::string CubeMathType(int64_t type, int64_t most) {
  return type >= 0 && type <= most ? "" : fmt::format("must be 0 to {}, got {}", most, type);
}

// out = result + bias, where there is one
Status AddBias(PlanBuilder& plan, Values values, int arg, const Operand& result, const Operand& out) {
  if (!values[arg].given()) return pointwise::AddCopy(plan, result, out);
  Operand bias = plan.TensorOperand(arg);
  const int axes = out.dims.rank() - 1;
  bias.dims.resize(axes);
  bias.strides.resize(axes);
  for (int i = 1; i < axes; ++i) {
    bias.dims[i] = 1;
    bias.strides[i] = 0;
  }
  const Operand inputs[] = {result, bias};
  const pointwise::ScalarUse ones[] = {{Scalar::OfFloat(1)}, {Scalar::OfFloat(1)}};
  return pointwise::AddPass(plan, pointwise::Formula::kScaledSum, DType::kF32, inputs, out, ones);
}

// --- forward ---------------------------------------------------------------------------------------------------------

enum { kInput, kWeight, kBias, kStride, kPadding, kDilation, kTransposed, kOutputPadding, kGroups, kOutput, kCube };

Call ForwardCall(Values v) {
  return {v[kInput].tensor->dims, v[kWeight].tensor->dims, v[kStride].ints->values, v[kPadding].ints->values, v[kDilation].ints->values,
          v[kOutputPadding].given() ? &v[kOutputPadding].ints->values : nullptr, v[kGroups].integer, v[kTransposed].flag};
}

std::string FitsForward(Values values, Product) {
  Dims output;
  Geometry g;
  const std::string problem = Solve(ForwardCall(values), &output, &g);
  if (!problem.empty()) return problem;
  const Dims& given = values[kOutput].tensor->dims;
  return output == given ? "" : fmt::format("must have the shape {} of the convolution, got {}", ToString(output), ToString(given));
}

std::string BiasFits(Values values, Product) {
  if (!values[kBias].given()) return "";
  const Dims& bias = values[kBias].tensor->dims;
  const Dims& weight = values[kWeight].tensor->dims;
  const int64_t channels = values[kTransposed].flag ? weight[1] * values[kGroups].integer : weight[0];
  if (bias == Dims{channels}) return "";
  return fmt::format("must have one element per output channel, {}, got shape {}", channels, ToString(bias));
}

Operator MakeConvolution(const Entry& entry) {
  Table table = TableOf(entry, "gemm", "Convolution over one to three axes, plain or transposed.", {.optional = {"bias", "outputPadding"}});
  table.formulas = {"output[n, o, p] = bias[o] + sum over c, q of input[n, c, p * stride + q * dilation - padding] * weight[o, c, q]"};
  table.notes = {"Computed in FLOAT whatever cubeMathType says, rounded once."};
  AddNullRules(&table);
  Add(&table, {NotNull("outputPadding").If("transposed"), DTypes("bias", RowsOf(types::kFloat3)), DTypes("input", RowsOf(types::kFloat3)),
               DTypes("weight", RowsOf(types::kFloat3)), DTypes("output", RowsOf(types::kFloat3)), Rank("input", 3, 5), Rank("weight", 3, 5),
               Custom("weight", "must have the rank of input",
                      [](Values v, Product) {
                        const int a = v[kInput].tensor->rank(), b = v[kWeight].tensor->rank();
                        return a == b ? "" : fmt::format("must have the rank of input, got {} and {}", b, a);
                      }),
               Custom("bias", "must have one element per output channel", BiasFits),
               Custom("input", kTagRule, TagOfRank<kInput, false>), Custom("weight", kTagRule, TagOfRank<kWeight, false>),
               Custom("output", "must have the shape of the convolution", FitsForward), Custom("output", kTagRule, TagOfRank<kOutput, false>),
               Formats("bias", {Format::kND, Format::kNCL, Format::kNCHW, Format::kNCDHW}),
               Custom("cubeMathType", "must be 0 to 4", [](Values v, Product) { return CubeMathType(v[kCube].integer, 4); }),
               Supported(Of({Product::kAscend950, Product::kA3, Product::kA2, Product::kInference, Product::k200I}))});
  return {.contract = Contract(std::move(table)),
          .plan = [](Values values, PlanBuilder& plan) -> Status {
            for (const int arg : {kInput, kWeight, kOutput}) {
              if (values[arg].tensor->empty()) return {};
            }
            Dims dims;
            Geometry g;
            Solve(ForwardCall(values), &dims, &g);
            const Operand x = plan.TensorOperand(kInput), w = plan.TensorOperand(kWeight), to = plan.TensorOperand(kOutput);
            Operand result;
            ANYACL_RETURN_IF_ERROR(values[kTransposed].flag ? conv::InputGradient(plan, g, x, w, &result)
                                                            : conv::Correlate(plan, g, x, w, &result));
            return AddBias(plan, values, kBias, result, to);
          },
          .family = "conv"};
}

// --- one channel at a time -----------------------------------------------------------------------------------------------

struct Deep {
  enum { kSelf, kWeight, kKernel, kBias, kStride, kPadding, kDilation, kOut, kCube };
};

Call DepthwiseCall(Values v) {
  const Dims& self = v[Deep::kSelf].tensor->dims;
  return {self, v[Deep::kWeight].tensor->dims, v[Deep::kStride].ints->values, v[Deep::kPadding].ints->values, v[Deep::kDilation].ints->values,
          nullptr, self[1], false};
}

bool DepthwiseIsEmpty(Values v) { return v[Deep::kSelf].tensor->empty() || v[Deep::kWeight].tensor->empty() || v[Deep::kOut].tensor->empty(); }

std::string WrongDepth(Values v, Product) {
  const Dims &weight = v[Deep::kWeight].tensor->dims, &self = v[Deep::kSelf].tensor->dims;
  const bool fits = weight[1] <= 1 && (self[1] == 0 ? weight[0] == 0 : weight[0] % self[1] == 0);
  return fits ? "" : fmt::format("must have one channel and a multiple of {} of them, got {}", self[1], ToString(weight));
}

std::string WrongKernel(Values v, Product) {
  const Dims& weight = v[Deep::kWeight].tensor->dims;
  const auto& kernel = v[Deep::kKernel].ints->values;
  return kernel.size() == 2 && kernel[0] == weight[2] && kernel[1] == weight[3]
             ? "" : fmt::format("must be the last two dims of weight {}, got {}", ToString(weight), Show(kernel));
}

std::string WrongDepthBias(Values v, Product) {
  if (!v[Deep::kBias].given()) return "";
  const Dims &bias = v[Deep::kBias].tensor->dims, want = {v[Deep::kWeight].tensor->dims[0]};
  return bias == want ? "" : fmt::format("must have one element per output channel, {}, got shape {}", want[0], ToString(bias));
}

std::string FitsDepthwise(Values v, Product) {
  Dims output;
  Geometry g;
  const Call call = DepthwiseCall(v);
  if (call.padding.size() != 2) return fmt::format("needs padding of 2 entries, got {}", Show(call.padding));
  if (v[Deep::kWeight].tensor->dims[1] == 0 || call.input[1] == 0) return "";  // nothing is computed
  if (std::string problem = Solve(call, &output, &g); !problem.empty()) return problem;
  const Dims& given = v[Deep::kOut].tensor->dims;
  return output == given ? "" : fmt::format("must have the shape {} of the convolution, got {}", ToString(output), ToString(given));
}

Status PlanDepthwise(Values v, PlanBuilder& plan) {
  if (DepthwiseIsEmpty(v)) return {};
  Dims dims;
  Geometry g;
  Solve(DepthwiseCall(v), &dims, &g);
  Operand result;
  ANYACL_RETURN_IF_ERROR(conv::Correlate(plan, g, plan.TensorOperand(Deep::kSelf), plan.TensorOperand(Deep::kWeight), &result));
  return AddBias(plan, v, Deep::kBias, result, plan.TensorOperand(Deep::kOut));
}

Operator MakeDepthwise(const Entry& entry) {
  Table table = TableOf(entry, "gemm", "Convolution of each channel by itself, over two axes.", {.optional = {"bias"}});
  table.formulas = {"out[n, o, p] = bias[o] + sum over q of self[n, o / m, p * stride + q * dilation - padding] * weight[o, 0, q]"};
  table.notes = {"Computed in FLOAT whatever cubeMathType says, rounded once. m is the number of output channels for each of self's."};
  AddNullRules(&table);
  Add(&table, {Supported(kNewer), DTypes("self", RowsOf(types::kFloat3)), SameDType("weight", "self"), SameDType("out", "self"), SameDType("bias", "self"),
               Rank("self", 4, 4), Rank("weight", 4, 4), Rank("out", 4, 4)});
  for (const char* arg : {"self", "weight", "out"}) Add(&table, {Formats(arg, {Format::kNCHW})});
  Add(&table, {Custom("weight", "must have one channel, and a multiple of self's channels of them", WrongDepth),
               Custom("kernelSize", "must be the last two dims of weight", WrongKernel),
               Custom("bias", "must have one element per output channel", WrongDepthBias),
               Custom("out", "must have the shape of the convolution", FitsDepthwise),
               Custom("cubeMathType", "must be 0 to 4", [](Values v, Product) { return CubeMathType(v[Deep::kCube].integer, 4); })});
  return {.contract = Contract(std::move(table)), .plan = PlanDepthwise, .family = "conv"};
}

// --- backward --------------------------------------------------------------------------------------------------------

enum { kGradOutput, kBackInput, kBackWeight, kBiasSizes, kBackStride, kBackPadding, kBackDilation, kBackTransposed, kBackOutputPadding,
       kBackGroups, kMask, kBackCube, kGradInput, kGradWeight, kGradBias };

bool Wants(Values values, int output) { return values[kMask].bools->values[output] != 0; }

Call BackwardCall(Values v) {
  return {v[kBackInput].tensor->dims, v[kBackWeight].tensor->dims, v[kBackStride].ints->values, v[kBackPadding].ints->values,
          v[kBackDilation].ints->values, &v[kBackOutputPadding].ints->values, v[kBackGroups].integer, v[kBackTransposed].flag};
}

bool SomethingEmpty(Values v) { return v[kBackInput].tensor->empty() || v[kBackWeight].tensor->empty(); }

std::string FitsBackward(Values values, Product) {
  Dims output;
  Geometry g;
  const Call call = BackwardCall(values);
  const std::string problem = Solve(call, &output, &g);
  if (!problem.empty()) return problem;
  if (!call.transposed) {
    for (const int64_t more : *call.output_padding) {
      if (more != 0) return fmt::format("needs an outputPadding of zeros unless transposed, got {}", Show(*call.output_padding));
    }
  }
  const Dims& given = values[kGradOutput].tensor->dims;
  if (!SomethingEmpty(values) && values[kGradOutput].tensor->empty()) return fmt::format("must not be empty, got {}", ToString(given));
  return output == given ? "" : fmt::format("must have the shape {} of the convolution's output, got {}", ToString(output), ToString(given));
}

std::string GradBiasFits(Values values, Product) {
  if (!values[kGradBias].given()) return "";
  const int64_t channels = values[kGradOutput].tensor->dims[1];
  const Dims& bias = values[kGradBias].tensor->dims;
  return bias == Dims{channels} ? "" : fmt::format("must have one element per output channel, {}, got shape {}", channels, ToString(bias));
}

std::string EmptyGradInputFits(Values values, Product) {
  const Dims& input = values[kBackInput].tensor->dims;
  if (!SomethingEmpty(values) || !Wants(values, 0) || input[0] == 0 || input[1] == 0) return "";
  return fmt::format("of an empty call needs a batch or channels of 0, got input {}", ToString(input));
}

Status PlanBackward(Values values, PlanBuilder& plan) {
  const auto finish = [&](int arg, const Operand& result) { return pointwise::AddCopy(plan, result, plan.TensorOperand(arg)); };
  if (SomethingEmpty(values)) {
    for (const int output : {1, 2}) {
      if (!Wants(values, output) || values[kGradInput + output].tensor->empty()) continue;
      const Operand to = plan.TensorOperand(kGradInput + output);
      const pointwise::ScalarUse zero[] = {{Scalar::OfFloat(0)}};
      ANYACL_RETURN_IF_ERROR(pointwise::AddPass(plan, pointwise::Formula::kFill, to.dtype, {}, to, zero));
    }
    return {};
  }
  Dims dims;
  Geometry g;
  Solve(BackwardCall(values), &dims, &g);
  const bool transposed = values[kBackTransposed].flag;
  const Operand dy = plan.TensorOperand(kGradOutput), x = plan.TensorOperand(kBackInput), w = plan.TensorOperand(kBackWeight);
  Operand result;
  if (Wants(values, 0)) {
    ANYACL_RETURN_IF_ERROR(transposed ? conv::Correlate(plan, g, dy, w, &result) : conv::InputGradient(plan, g, dy, w, &result));
    ANYACL_RETURN_IF_ERROR(finish(kGradInput, result));
  }
  if (Wants(values, 1)) {
    ANYACL_RETURN_IF_ERROR(transposed ? conv::WeightGradient(plan, g, x, dy, &result) : conv::WeightGradient(plan, g, dy, x, &result));
    ANYACL_RETURN_IF_ERROR(finish(kGradWeight, result));
  }
  if (Wants(values, 2)) {
    ANYACL_RETURN_IF_ERROR(conv::ChannelSums(plan, dy, &result));
    ANYACL_RETURN_IF_ERROR(finish(kGradBias, result));
  }
  return {};
}

Operator MakeConvolutionBackward(const Entry& entry) {
  Table table = TableOf(entry, "gemm", "Gradients of a convolution: input, weight and bias.",
                        {.optional = {"biasSizes", "gradInput", "gradWeight", "gradBias"}});
  table.notes = {"Outputs whose entry of outputMask is false may be null and are not written.",
                 "Computed in FLOAT whatever cubeMathType says, rounded once."};
  AddNullRules(&table);
  Add(&table, {Length("outputMask", 3).Code(161001), NotNull("gradInput").If("outputMask", 0), NotNull("gradWeight").If("outputMask", 1),
               NotNull("gradBias").If("outputMask", 2)});
  for (const char* arg : {"gradOutput", "input", "weight", "gradInput", "gradWeight", "gradBias"}) Add(&table, {DTypes(arg, RowsOf(types::kFloat3))});
  Add(&table, {SameDType("gradInput", "input"), SameDType("gradWeight", "weight"), SameDType("gradBias", "gradOutput"), Rank("input", 3, 5),
               Rank("weight", 3, 5), Rank("gradOutput", 3, 5),
               Custom("weight", "must have the rank of input",
                      [](Values v, Product) {
                        const int a = v[kBackInput].tensor->rank(), b = v[kBackWeight].tensor->rank(), c = v[kGradOutput].tensor->rank();
                        return a == b && a == c ? "" : fmt::format("must have the rank of input and gradOutput, got {}, {} and {}", b, a, c);
                      }),
               Custom("gradOutput", kTagRule, TagOfRank<kGradOutput, true>), Custom("input", kTagRule, TagOfRank<kBackInput, true>),
               Custom("weight", kTagRule, TagOfRank<kBackWeight, true>),
               Custom("gradOutput", "must have the shape of the convolution's output", FitsBackward), SameShape("gradInput", "input"),
               SameShape("gradWeight", "weight"), Custom("gradBias", "must have one element per output channel", GradBiasFits),
               Custom("gradInput", "of an empty call needs a batch or channels of 0", EmptyGradInputFits),
               Custom("cubeMathType", "must be 0 to 3", [](Values v, Product) { return CubeMathType(v[kBackCube].integer, 3); }),
               Supported(Of({Product::kAscend950, Product::kA3, Product::kA2, Product::kInference, Product::kTraining}))});
  return {.contract = Contract(std::move(table)), .plan = PlanBackward, .family = "conv"};
}

}  // namespace

void DeclareConv(Declarations& declarations) {
  declarations.Add("aclnnConvolution", MakeConvolution);
  declarations.Add("aclnnConvolutionBackward", MakeConvolutionBackward);
  declarations.Add("aclnnConvDepthwise2d", MakeDepthwise);
  conv::DeclareTbc(declarations);
}

}  // namespace anyacl
