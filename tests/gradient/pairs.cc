// SPDX-License-Identifier: Apache-2.0
// Copyright The AnyACL Authors
#include "gradient/pairs.h"

#include <cstdint>
#include <map>
#include <stdexcept>
#include <string>
#include <string_view>

#include "ops/operators.h"

namespace anyacl {
namespace {

using harness::Between;
using harness::Bools;
using harness::Flag;
using harness::In;
using harness::Int;
using harness::Ints;
using harness::Null;
using harness::Num;
using harness::Out;
using harness::RealArg;
using harness::TestArg;
using harness::Text;
using harness::Whole;

constexpr DType F32 = DType::kF32;

TestArg X(const Dims& dims) { return In(F32, dims); }
TestArg Y(const Dims& dims) { return Out(F32, dims); }
TestArg Variance(const Dims& dims) { return In(F32, dims, Between(0.5, 2)); }
const TestArg kAll3 = Bools({true, true, true});

std::vector<Pair> Norms() {
  const std::vector<Pair::Link> of_input = {{"gradInput", "input"}, {"gradWeight", "weight"}, {"gradBias", "bias"}};
  const std::vector<TestArg> trained = {X({3, 2, 5}), X({2}), X({2}), Null(), Null(), Flag(true), RealArg(0.1), RealArg(0.1), Y({3, 2, 5}),
                                        Y({2}), Y({2})};
  const std::vector<TestArg> evaluated = {X({3, 2, 5}), X({2}), X({2}), X({2}), Variance({2}), Flag(false), RealArg(0.1), RealArg(0.1),
                                          Y({3, 2, 5}), Null(), Null()};
  return {
      {"aclnnLayerNorm", "aclnnLayerNormBackward",
       {X({3, 2, 7}), Ints({2, 7}), X({2, 7}), X({2, 7}), RealArg(0.1), Y({3, 2, 7}), Y({3, 1, 1}), Y({3, 1, 1})},
       {{"gradOut", "out"}}, {{"gradInputOut", "input"}, {"gradWeightOut", "weightOptional"}, {"gradBiasOut", "biasOptional"}},
       {{"mean", "meanOutOptional"}, {"rstd", "rstdOutOptional"}}, {{"outputMask", kAll3}}},
      {"aclnnRmsNorm", "aclnnRmsNormGrad", {X({4, 9}), X({9}), RealArg(0.1), Y({4, 9}), Y({4, 1})},
       {{"dy", "yOut"}}, {{"dxOut", "x"}, {"dgammaOut", "gamma"}}, {{"rstd", "rstdOut"}}},
      {"aclnnAddLayerNorm", "aclnnAddLayerNormGrad",
       {X({4, 9}), X({4, 9}), X({9}), X({9}), Null(), RealArg(0.1), Flag(true), Y({4, 9}), Y({4, 1}), Y({4, 1}), Y({4, 9})},
       {{"dy", "yOut"}, {"dsumOptional", "xOut"}}, {{"dxOut", "x1"}, {"dgammaOut", "gamma"}, {"dbetaOut", "beta"}},
       {{"mean", "meanOut"}, {"rstd", "rstdOut"}}},
      {"aclnnDeepNorm", "aclnnDeepNormGrad",
       {X({4, 9}), X({4, 9}), X({9}), X({9}), RealArg(0.3), RealArg(0.1), Y({4, 1}), Y({4, 1}), Y({4, 9})},
       {{"dy", "yOut"}}, {{"dxOut", "x"}, {"dgxOut", "gx"}, {"dbetaOut", "beta"}, {"dgammaOut", "gamma"}},
       {{"mean", "meanOut"}, {"rstd", "rstdOut"}}},
      {"aclnnAdaLayerNormV2", "aclnnAdaLayerNormBackward",
       {X({2, 3, 7}), X({2, 7}), X({2, 1, 7}), X({7}), X({7}), RealArg(0.1), Y({2, 3, 7}), Y({2, 3, 1}), Y({2, 3, 1})},
       {{"gradOut", "out"}},
       {{"gradInputOut", "x"}, {"gradScaleOut", "scale"}, {"gradShiftOut", "shift"}, {"gradWeightOut", "weightOptional"},
        {"gradBiasOut", "biasOptional"}},
       {{"input", "x"}, {"mean", "meanOutOptional"}, {"rstd", "rstdOutOptional"}}, {{"normalizedShape", Ints({7})}}},
      {"aclnnGroupNorm", "aclnnGroupNormBackward",
       {X({2, 4, 5}), X({4}), X({4}), Int(2), Int(4), Int(5), Int(2), RealArg(0.1), Y({2, 4, 5}), Y({2, 2}), Y({2, 2})},
       {{"gradOut", "out"}}, {{"gradInput", "self"}, {"gradGammaOut", "gamma"}, {"gradBetaOut", "beta"}},
       {{"input", "self"}, {"mean", "meanOut"}, {"rstd", "rstdOut"}}, {{"outputMask", kAll3}}},
      {"aclnnGroupNormSwish", "aclnnGroupNormSwishGrad",
       {X({2, 4, 5}), X({4}), X({4}), Int(2), Text("NCHW"), RealArg(0.1), Flag(true), RealArg(1.5), Y({2, 4, 5}), Y({2, 2}), Y({2, 2})},
       {{"dy", "yOut"}}, {{"dxOut", "x"}, {"dgammaOut", "gamma"}, {"dbetaOut", "beta"}}, {{"mean", "meanOut"}, {"rstd", "rstdOut"}},
       {{"dgammaIsRequire", Flag(true)}, {"dbetaIsRequire", Flag(true)}}},
      {"aclnnBatchNorm", "aclnnBatchNormBackward", trained, {{"gradOut", "output"}}, of_input, {}, {{"outputMask", kAll3}}},
      {"aclnnBatchNorm", "aclnnBatchNormBackward", evaluated, {{"gradOut", "output"}}, of_input, {}, {{"outputMask", kAll3}}},
      {"aclnnBatchNorm", "aclnnFastBatchNormBackward", trained, {{"gradOut", "output"}}, of_input, {}, {{"outputMask", kAll3}, {"version", Int(0)}}},
      {"aclnnBatchNorm", "aclnnBatchNormReduceBackward", trained, {{"gradOut", "output"}}, {{"gradWeight", "weight"}, {"gradBias", "bias"}},
       {{"mean", "saveMean"}, {"invstd", "saveInvstd"}}, {{"inputG", Flag(false)}, {"weightG", Flag(true)}, {"biasG", Flag(true)}}},
  };
}

std::vector<Pair> SoftMaxima() {
  const TestArg mask = In(DType::kBool, {2, 1, 4, 5});
  const std::vector<TestArg> call = {X({3, 5, 2}), Int(1), Y({3, 5, 2})};
  const std::vector<Pair::Link> grads = {{"gradOutput", "out"}}, results = {{"out", "self"}}, same = {{"output", "out"}};
  return {
      {"aclnnSoftmax", "aclnnSoftmaxBackward", call, grads, results, same},
      {"aclnnLogSoftmax", "aclnnLogSoftmaxBackward", call, grads, results, same},
      {"aclnnScaledMaskedSoftmax", "aclnnScaledMaskedSoftmaxBackward", {X({2, 3, 4, 5}), mask, RealArg(0.5), Flag(false), Y({2, 3, 4, 5})},
       {{"gradOutput", "y"}}, {{"out", "x"}}},
  };
}

std::vector<Pair> GatedUnits() {
  std::vector<Pair> pairs = {
      {"aclnnGlu", "aclnnGluBackward", {X({3, 8}), Int(1), Y({3, 4})}, {{"gradOut", "out"}}, {{"out", "self"}}},
      {"aclnnSwiGlu", "aclnnSwiGluGrad", {X({3, 8}), Int(1), Y({3, 4})}, {{"yGrad", "out"}}, {{"out", "x"}}},
  };
  for (int tanh : {0, 1}) {
    pairs.push_back({"aclnnGeGlu", "aclnnGeGluBackward", {X({3, 8}), Int(1), Int(tanh), Y({3, 4}), Y({3, 4})},
                     {{"gradOutput", "out"}}, {{"gradInput", "self"}}, {{"gelu", "outGelu"}}});
    for (bool left : {false, true}) {
      pairs.push_back({"aclnnGeGluV3", "aclnnGeGluV3Backward", {X({3, 8}), Int(1), Int(tanh), Flag(left), Y({3, 4}), Y({3, 4})},
                       {{"gradOutput", "out"}}, {{"gradInput", "self"}}, {{"gelu", "outGelu"}}});
    }
  }
  for (bool first : {false, true}) {
    pairs.push_back({"aclnnClippedSwiglu", "aclnnClippedSwigluGrad",
                     {X({3, 8}), Null(), Int(1), RealArg(1.7), RealArg(1.1), RealArg(0.75), Flag(first), Y({3, 4})},
                     {{"gradY", "out"}}, {{"gradXOut", "x"}}});
    for (double linear : {0.0, 1.5}) {
      pairs.push_back({"aclnnSituGlu", "aclnnSituGluGrad", {X({3, 8}), Int(1), RealArg(1.25), RealArg(linear), Flag(first), Y({3, 4})},
                       {{"gradY", "out"}}, {{"out", "x"}}});
    }
  }
  return pairs;
}

// --- attention ----------------------------------------------------------------------------------------------------------

using Given = std::map<std::string, TestArg>;

// A call of an operator with many arguments: those that are not given are null, empty or 0.
std::vector<TestArg> CallOf(std::string_view op, const Given& given) {
  for (const Operator* known : Operators()) {
    if (op != known->contract.op()) continue;
    std::vector<TestArg> call;
    for (const contract::Arg& arg : known->contract.args()) {
      const auto found = given.find(arg.name);
      call.push_back(found != given.end() ? found->second : arg.kind == contract::ArgKind::kString ? Text("") : arg.is_handle() ? Null() : Int(0));
    }
    return call;
  }
  throw std::invalid_argument("no operator " + std::string(op));
}

struct AttentionNames {
  const char* forward;
  const char* backward;
  bool tnd;  // and nothing else
  const char* pse = "realShiftOptional";
  const char* pse_again = "pseShiftOptional";
  const char* query_rope = nullptr;
  const char* key_rope = nullptr;
  const char* key_rope_again = nullptr;
};

// Two queries' heads to one of keys; numbers that are added, dropout, a mask that leaves a query nothing.
std::vector<Pair> Attention() {
  static constexpr AttentionNames kEntries[] = {
      {"aclnnFlashAttentionScore", "aclnnFlashAttentionScoreGrad", false},
      {"aclnnFlashAttentionScoreV2", "aclnnFlashAttentionScoreGradV2", false},
      {"aclnnFlashAttentionScoreV4", "aclnnFlashAttentionScoreGradV4", false, "pseOptional", "pseOptional", "queryRopeOptional", "keyRopeOptional",
       "keyRopeOptional"},
      {"aclnnFlashAttentionVarLenScore", "aclnnFlashAttentionUnpaddingScoreGrad", true},
      {"aclnnFlashAttentionVarLenScoreV2", "aclnnFlashAttentionUnpaddingScoreGradV2", true},
      {"aclnnFlashAttentionVarLenScoreV3", "aclnnFlashAttentionUnpaddingScoreGradV3", true, "realShiftOptional", "pseShiftOptional", "queryRope",
       "keyRope", "keyInRope"},
      {"aclnnFlashAttentionVarLenScoreV4", "aclnnFlashAttentionUnpaddingScoreGradV4", true},
  };
  std::vector<Pair> pairs;
  for (const AttentionNames& names : kEntries) {
    for (const bool dropped : {false, true}) {
      const int64_t n = 4, kn = 2, q = 4, k = 5, d = 3, dv = 2;
      const Dims query = names.tnd ? Dims{q, n, d} : Dims{1, n, q, d}, key = names.tnd ? Dims{k, kn, d} : Dims{1, kn, k, d};
      const Dims value = names.tnd ? Dims{k, kn, dv} : Dims{1, kn, k, dv}, out = names.tnd ? Dims{q, n, dv} : Dims{1, n, q, dv};
      const Dims stats = names.tnd ? Dims{q, n, 8} : Dims{1, n, q, 8}, pse = names.tnd ? Dims{n * q * k} : Dims{1, n, q, k};
      Given given = {{"query", X(query)}, {"key", X(key)}, {"value", X(value)}, {names.pse, X(pse)}, {"attenMaskOptional", In(DType::kBool, {q, k})},
                     {"scaleValue", RealArg(0.5)}, {"keepProb", RealArg(0.8)}, {"preTokens", Int(2)}, {"nextTokens", Int(3)}, {"headNum", Int(n)},
                     {"inputLayout", Text(names.tnd ? "TND" : "BNSD")}, {"pseType", Int(dropped ? 0 : 1)}, {"seed", Int(5)}, {"sparseMode", Int(0)},
                     {"softmaxMaxOut", Y(stats)}, {"softmaxSumOut", Y(stats)}, {"attentionOutOut", Y(out)}};
      if (dropped) given["dropMaskOptional"] = In(DType::kU8, {(n * q * k + 7) / 8}, Between(0, 255));
      if (names.tnd) given["actualSeqQLenOptional"] = Ints({1, q});
      if (names.tnd) given["actualSeqKvLenOptional"] = Ints({2, k});
      if (names.tnd) given[names.pse] = X({n * (1 * 2 + 3 * 3)});
      if (names.tnd) given["attenMaskOptional"] = In(DType::kBool, {3, 3});
      Pair pair = {names.forward, names.backward, CallOf(names.forward, given), {{"dy", "attentionOutOut"}},
                   {{"dqOut", "query"}, {"dkOut", "key"}, {"dvOut", "value"}, {"dpseOut", names.pse}},
                   {{"keyIn", "key"}, {names.pse_again, names.pse}, {"softmaxMaxOptional", "softmaxMaxOut"}, {"softmaxSumOptional", "softmaxSumOut"},
                    {"attentionInOptional", "attentionOutOut"}, {"softmaxInLayout", "softmaxOutLayout"}}};
      pairs.push_back(pair);
      // Without what is added, and with numbers beside queries and keys.
      if (!names.key_rope || dropped) continue;
      given.erase(names.pse);
      Dims query_rope = query, key_rope = key;
      query_rope[query.rank() - 1] = key_rope[key.rank() - 1] = 2;
      given[names.query_rope] = X(query_rope);
      given[names.key_rope] = X(key_rope);
      pair.call = CallOf(names.forward, given);
      pair.results = {{"dqOut", "query"}, {"dkOut", "key"}, {"dvOut", "value"}, {"dqRopeOut", names.query_rope}, {"dkRopeOut", names.key_rope}};
      pair.same.push_back({names.key_rope_again, names.key_rope});
      pairs.push_back(pair);
    }
  }
  return pairs;
}

// Element by element: of one input and some scalars.
struct Activation {
  const char* forward;
  const char* backward;
  std::vector<TestArg> scalars = {};
  std::vector<Pair::Link> same = {};
  std::vector<std::pair<const char*, TestArg>> others = {};
  const char* result = "gradInput";
};

std::vector<Pair> Activations() {
  // Kinks lie between the numbers of the test.
  const auto number = [](double value) { return Num(DType::kF64, value + 0x1p-13); };
  const std::vector<Activation> rows = {
      {"aclnnElu", "aclnnEluBackward", {number(1.5), number(0.75), number(2)}, {{"selfOrResult", "self"}}, {{"isResult", Flag(false)}}},
      {"aclnnElu", "aclnnEluBackward", {number(1.5), number(0.75), number(2)}, {{"selfOrResult", "out"}}, {{"isResult", Flag(true)}}},
      {"aclnnFastGelu", "aclnnFastGeluBackward"},
      {"aclnnGelu", "aclnnGeluBackward"},
      {"aclnnGelu", "aclnnGeluBackwardV2", {}, {}, {{"approximate", Text("tanh")}}},
      {"aclnnHardshrink", "aclnnHardshrinkBackward", {number(0.5)}},
      {"aclnnHardsigmoid", "aclnnHardsigmoidBackward", {}, {}, {}, "out"},
      {"aclnnHardswish", "aclnnHardswishBackward", {}, {}, {}, "out"},
      {"aclnnHardswish", "aclnnHardswishBackwardV2", {}, {}, {}, "out"},
      {"aclnnHardtanh", "aclnnHardtanhBackward", {number(-1), number(0.5)}, {{"min", "clipValueMin"}, {"max", "clipValueMax"}}, {}, "out"},
      {"aclnnLeakyRelu", "aclnnLeakyReluBackward", {number(0.125)}, {}, {{"selfIsResult", Flag(false)}}, "out"},
      {"aclnnLogSigmoid", "aclnnLogSigmoidBackward", {}, {}, {{"buffer", In(DType::kF64, {0})}}},
      {"aclnnMish", "aclnnMishBackward"},
      {"aclnnSelu", "aclnnSeluBackward", {}, {{"result", "out"}}},
      {"aclnnSigmoid", "aclnnSigmoidBackward", {}, {{"output", "out"}}},
      {"aclnnSilu", "aclnnSiluBackward"},
      {"aclnnSoftplus", "aclnnSoftplusBackward", {number(1.5), number(20)}},
      {"aclnnSoftshrink", "aclnnSoftshrinkBackward", {number(0.5)}, {{"lambda", "lambd"}}},
      {"aclnnSwish", "aclnnSwishBackward", {number(1.5)}},
      {"aclnnTanh", "aclnnTanhBackward", {}, {{"output", "out"}}},
      {"aclnnThreshold", "aclnnThresholdBackward", {number(0.5), number(3)}, {}, {}, "out"},
  };
  const Dims dims = {4, 25};
  std::vector<Pair> pairs;
  for (const Activation& row : rows) {
    std::vector<TestArg> call = {In(DType::kF64, dims, Between(-5, 5))};  // their oracles round inputs
    call.insert(call.end(), row.scalars.begin(), row.scalars.end());
    call.push_back(Out(DType::kF64, dims));
    pairs.push_back({row.forward, row.backward, call, {{"gradOutput", "out"}}, {{row.result, "self"}}, row.same, row.others});
  }
  for (const Dims& slopes : {Dims{1}, Dims{5}}) {
    pairs.push_back({"aclnnPrelu", "aclnnPreluBackward",
                     {In(DType::kF64, {4, 5, 3}, Between(-5, 5)), In(DType::kF64, slopes), Out(DType::kF64, {4, 5, 3})},
                     {{"gradOutput", "out"}}, {{"gradInput", "self"}, {"gradWeight", "weight"}}});
  }
  return pairs;
}

TestArg Probability(const Dims& dims) { return In(F32, dims, Between(0.125, 0.875)); }
TestArg Classes(const Dims& dims, int64_t count) { return In(DType::kI64, dims, Whole(0, count - 1)); }
TestArg Places(DType dtype, const Dims& dims, const std::vector<int64_t>& values) {
  std::vector<harness::Number> numbers;
  for (const int64_t value : values) numbers.push_back(static_cast<harness::Real>(value));
  return In(dtype, dims, harness::Given(numbers));
}

// With every reduction: none, mean, sum.
std::vector<Pair> Losses() {
  std::vector<Pair> pairs;
  const Dims d = {4, 5};
  for (const int64_t r : {0, 1, 2}) {
    const Dims one = r == 0 ? d : Dims{}, rows = r == 0 ? Dims{3} : Dims{}, pixels = r == 0 ? Dims{2, 3, 2} : Dims{};
    const std::vector<Pair::Link> grad = {{"gradOutput", "out"}}, self = {{"out", "self"}};
    pairs.push_back({"aclnnMseLoss", "aclnnMseLossBackward", {X(d), X(d), Int(r), Y(one)}, grad, self});
    pairs.push_back({"aclnnL1Loss", "aclnnL1LossBackward", {X(d), X(d), Int(r), Y(one)}, grad, {{"gradInput", "self"}}});
    pairs.push_back({"aclnnSmoothL1Loss", "aclnnSmoothL1LossBackward", {X(d), X(d), Int(r), RealArg(0.53), Y(one)}, {{"gradOut", "result"}}, {{"gradInput", "self"}}});
    pairs.push_back({"aclnnSoftMarginLoss", "aclnnSoftMarginLossBackward", {X(d), X(d), Int(r), Y(one)}, grad, self});
    pairs.push_back({"aclnnKlDiv", "aclnnKlDivBackward", {X(d), Variance(d), Int(r), Flag(false), Y(one)}, grad, self});
    pairs.push_back({"aclnnKlDiv", "aclnnKlDivBackward", {X(d), X(d), Int(r), Flag(true), Y(one)}, grad, self});
    pairs.push_back({"aclnnKlDiv", "aclnnKlDivTargetBackward", {X(d), Variance(d), Int(r), Flag(false), Y(one)}, grad, {{"gradTarget", "target"}}});
    pairs.push_back({"aclnnKlDiv", "aclnnKlDivTargetBackward", {X(d), X(d), Int(r), Flag(true), Y(one)}, grad, {{"gradTarget", "target"}}});
    pairs.push_back({"aclnnBinaryCrossEntropy", "aclnnBinaryCrossEntropyBackward", {Probability(d), Probability(d), X(d), Int(r), Y(one)}, grad, self,
                     {{"weightOptional", "weight"}}});
    const std::vector<TestArg> logits = {X(d), Probability(d), X(d), Variance(d), Int(r), Y(one)};
    pairs.push_back({"aclnnBinaryCrossEntropyWithLogits", "aclnnBinaryCrossEntropyWithLogitsBackward", logits, grad, self});
    pairs.push_back({"aclnnBinaryCrossEntropyWithLogits", "aclnnBinaryCrossEntropyWithLogitsTargetBackward", logits, grad, {{"gradTarget", "target"}}});
    pairs.push_back({"aclnnNLLLoss", "aclnnNLLLossBackward", {X({3, 4}), Classes({3}, 4), Variance({4}), Int(r), Int(-100), Y(rows), Y({})}, grad, self,
                     {{"totalWeight", "totalWeightOut"}}});
    pairs.push_back({"aclnnNLLLoss2d", "aclnnNLLLoss2dBackward",
                     {X({2, 4, 3, 2}), Classes({2, 3, 2}, 4), Variance({4}), Int(r), Int(-100), Y(pixels), Y({})}, grad, self, {{"totalWeight", "totalWeightOut"}}});
    static constexpr const char* kNames[] = {"none", "mean", "sum"};
    pairs.push_back({"aclnnCrossEntropyLoss", "aclnnCrossEntropyLossGrad",
                     {X({3, 4}), Classes({3}, 4), Variance({4}), Text(kNames[r]), Int(-100), RealArg(0.125), RealArg(0), Flag(false), Y(rows), Y({3, 4}), X({0}), X({0})},
                     {{"gradLoss", "lossOut"}}, {{"out", "input"}}, {{"logProb", "logProbOut"}}});
  }
  return pairs;
}

std::vector<Pair> Convolutions() {
  const std::vector<Pair::Link> results = {{"gradInput", "input"}, {"gradWeight", "weight"}, {"gradBias", "bias"}};
  const auto call = [](const Dims& weight, bool transposed, const Dims& out) {
    return std::vector<TestArg>{X({2, 4, 5, 4}), X(weight), X({6}), Ints({1, 2}), Ints({1, 0}), Ints({1, 1}), Flag(transposed), Ints({0, 0}), Int(2), Y(out), Int(0)};
  };
  return {{"aclnnConvolution", "aclnnConvolutionBackward", call({6, 2, 3, 2}, false, {2, 6, 5, 2}), {{"gradOutput", "output"}}, results, {}, {{"outputMask", kAll3}}},
          {"aclnnConvolution", "aclnnConvolutionBackward", call({4, 3, 3, 2}, true, {2, 6, 5, 8}), {{"gradOutput", "output"}}, results, {}, {{"outputMask", kAll3}}},
          {"aclnnConvTbc", "aclnnConvTbcBackward", {X({5, 2, 3}), X({3, 3, 4}), X({4}), Int(1), Y({5, 2, 4}), Int(0)}, {{"self", "out"}},
           {{"gradInput", "self"}, {"gradWeight", "weight"}, {"gradBias", "bias"}}, {{"input", "self"}}}};
}

std::vector<Pair> Pools() {
  const std::vector<Pair::Link> grad = {{"gradOutput", "out"}}, grad_most = {{"gradOutput", "outputOut"}}, self = {{"gradInput", "self"}}, out = {{"out", "self"}};
  const Dims plane = {1, 2, 5, 4}, pooled = {1, 2, 3, 3}, volume = {1, 2, 4, 4, 5}, blocks = {1, 2, 2, 2, 2};
  const TestArg twos = Ints({2, 2, 2}), zeros = Ints({0, 0, 0}), ones = Ints({1, 1, 1}), no = Flag(false), yes = Flag(true);
  return {
      {"aclnnAvgPool2d", "aclnnAvgPool2dBackward", {X(plane), Ints({3, 2}), Ints({2, 1}), Ints({1, 0}), no, yes, Int(0), Int(0), Y(pooled)}, grad, self,
       {{"stride", "strides"}, {"padding", "paddings"}}},
      {"aclnnAvgPool2d", "aclnnAvgPool2dBackward", {X(plane), Ints({3, 2}), Ints({2, 1}), Ints({1, 0}), no, no, Int(0), Int(0), Y(pooled)}, grad, self,
       {{"stride", "strides"}, {"padding", "paddings"}}},
      {"aclnnAvgPool3d", "aclnnAvgPool3dBackward", {X(volume), twos, twos, zeros, no, yes, Int(3), Y(blocks)}, grad, {{"output", "self"}}},
      {"aclnnAdaptiveAvgPool2d", "aclnnAdaptiveAvgPool2dBackward", {X(plane), Ints({3, 2}), Y({1, 2, 3, 2})}, grad, out},
      {"aclnnAdaptiveAvgPool3d", "aclnnAdaptiveAvgPool3dBackward", {X(volume), Ints({2, 3, 2}), Y({1, 2, 2, 3, 2})}, grad, out},
      {"aclnnAdaptiveMaxPool2d", "aclnnAdaptiveMaxPool2dBackward", {X(plane), Ints({3, 2}), Y({1, 2, 3, 2}), Out(DType::kI64, {1, 2, 3, 2})}, grad_most, self,
       {{"indices", "indicesOut"}}},
      {"aclnnAdaptiveMaxPool3d", "aclnnAdaptiveMaxPool3dBackward", {X(volume), Ints({2, 3, 2}), Y({1, 2, 2, 3, 2}), Out(DType::kI32, {1, 2, 2, 3, 2})}, grad_most,
       self, {{"indices", "indicesOut"}}},
      {"aclnnMaxPool2dWithIndices", "aclnnMaxPool2dWithIndicesBackward",
       {X(plane), Ints({3, 2}), Ints({2, 1}), Ints({1, 0}), Ints({1, 1}), no, Y(pooled), Out(DType::kI32, pooled)}, grad, self},
      {"aclnnMaxPool2dWithMask", "aclnnMaxPool2dWithMaskBackward",
       {X(plane), Ints({3, 2}), Ints({2, 1}), Ints({1, 0}), Ints({1, 1}), no, Y(pooled), Out(DType::kI8, {1, 2, 6, 64})}, grad, self},
      {"aclnnMaxPool3dWithArgmax", "aclnnMaxPool3dWithArgmaxBackward", {X(volume), twos, twos, zeros, ones, no, Y(blocks), Out(DType::kI32, blocks)}, grad, self},
      {"aclnnMaxUnpool2d", "aclnnMaxUnpool2dBackward",
       {X({1, 2, 2, 3}), Places(DType::kI64, {1, 2, 2, 3}, {0, 3, 7, 9, 13, 19, 1, 2, 8, 11, 14, 18}), Ints({4, 5}), Y({1, 2, 4, 5})}, grad, out},
  };
}

std::vector<Pair> Paddings() {
  struct Row {
    const char* forward;
    const char* backward;
    Dims self;
    std::vector<int64_t> padding;
    Dims out;
  };
  const Dims line = {2, 5}, plane = {2, 4, 5}, volume = {2, 3, 4, 5};
  const std::vector<Row> rows = {
      {"aclnnReflectionPad1d", "aclnnReflectionPad1dBackward", line, {2, 1}, {2, 8}},
      {"aclnnReflectionPad2d", "aclnnReflectionPad2dBackward", plane, {1, 2, 2, 1}, {2, 7, 8}},
      {"aclnnReflectionPad3d", "aclnnReflectionPad3dBackward", volume, {1, 2, 2, 1, 1, 1}, {2, 5, 7, 8}},
      {"aclnnReplicationPad1d", "aclnnReplicationPad1dBackward", line, {2, 1}, {2, 8}},
      {"aclnnReplicationPad2d", "aclnnReplicationPad2dBackward", plane, {1, 2, 2, 1}, {2, 7, 8}},
      {"aclnnReplicationPad3d", "aclnnReplicationPad3dBackward", volume, {1, 2, 2, 1, 1, 1}, {2, 5, 7, 8}},
      {"aclnnCircularPad2d", "aclnnCircularPad2dBackward", plane, {1, 2, 2, 1}, {2, 7, 8}},
      {"aclnnCircularPad3d", "aclnnCircularPad3dBackward", volume, {1, 2, 2, 1, 1, 1}, {2, 5, 7, 8}},
  };
  std::vector<Pair> pairs;
  for (const Row& row : rows) {
    pairs.push_back({row.forward, row.backward, {X(row.self), Ints(row.padding), Y(row.out)}, {{"gradOutput", "out"}}, {{"gradInput", "self"}}});
  }
  return pairs;
}

bool HasArg(std::string_view op, const char* arg) {
  for (const Operator* known : Operators()) {
    if (op == known->contract.op()) return known->contract.ArgIndex(arg) >= 0;
  }
  throw std::invalid_argument("no operator " + std::string(op));
}

std::vector<Pair> Resizes() {
  struct Row {
    const char* forward;
    const char* backward;
    int axes;
    const char* self = "self";
  };
  static constexpr Row kRows[] = {
      {"aclnnUpsampleLinear1d", "aclnnUpsampleLinear1dBackward", 1},
      {"aclnnUpsampleBilinear2d", "aclnnUpsampleBilinear2dBackward", 2},
      {"aclnnUpsampleBilinear2d", "aclnnUpsampleBilinear2dBackwardV2", 2},
      {"aclnnUpsampleBilinear2dAA", "aclnnUpsampleBilinear2dAABackward", 2, "input"},
      {"aclnnUpsampleBicubic2d", "aclnnUpsampleBicubic2dBackward", 2},
      {"aclnnUpsampleBicubic2dAA", "aclnnUpsampleBicubic2dAAGrad", 2, "x"},
      {"aclnnUpsampleTrilinear3d", "aclnnUpsampleTrilinear3dBackward", 3},
      {"aclnnUpsampleNearest1d", "aclnnUpsampleNearest1dBackward", 1},
      {"aclnnUpsampleNearest2d", "aclnnUpsampleNearest2dBackward", 2},
      {"aclnnUpsampleNearest3d", "aclnnUpsampleNearest3dBackward", 3},
      {"aclnnUpsampleNearestExact1d", "aclnnUpsampleNearestExact1dBackward", 1},
      {"aclnnUpsampleNearestExact2d", "aclnnUpsampleNearestExact2dBackward", 2},
      {"aclnnUpsampleNearestExact3d", "aclnnUpsampleNearestExact3dBackward", 3},
  };
  std::vector<Pair> pairs;
  for (const Row& row : kRows) {
    for (const bool corners : {false, true}) {
      if (corners && !HasArg(row.forward, "alignCorners")) continue;
      const std::vector<int64_t> sizes = {3, 4, 2}, larger = {5, 3, 4}, out(larger.begin(), larger.begin() + row.axes);
      Dims from = {1, 2}, to = from;
      for (int i = 0; i < row.axes; ++i) {
        from.push_back(sizes[i]);
        to.push_back(larger[i]);
      }
      const char* const result = HasArg(row.backward, "gradInput") ? "gradInput" : "out";
      const Given given = {{row.self, X(from)}, {"outputSize", Ints(out)}, {"alignCorners", Flag(corners)}, {"out", Y(to)}};
      const TestArg none = RealArg(0);
      pairs.push_back({row.forward, row.backward, CallOf(row.forward, given), {{"gradOut", "out"}, {"gradOutput", "out"}}, {{result, row.self}}, {},
                       {{"inputSize", Ints({from.begin(), from.end()})}, {"scales", none}, {"scalesD", none}, {"scalesH", none}, {"scalesW", none}}});
    }
  }
  const std::vector<Pair::Link> grad = {{"gradOutput", "out"}}, both = {{"inputGrad", "input"}, {"gridGrad", "grid"}};
  const std::vector<std::pair<const char*, TestArg>> mask = {{"outputMask", Bools({true, true})}};
  const auto grid = [](const Dims& dims) { return In(F32, dims, Between(-1.2, 1.2)); };
  for (const bool corners : {false, true}) {
    for (const int64_t mode : {0, 2}) {
      pairs.push_back({"aclnnGridSampler2D", "aclnnGridSampler2DBackward",
                       {X({1, 2, 4, 5}), grid({1, 3, 2, 2}), Int(mode), Int(mode / 2), Flag(corners), Y({1, 2, 3, 2})}, grad, both, {}, mask});
    }
    pairs.push_back({"aclnnGridSampler3D", "aclnnGridSampler3DBackward",
                     {X({1, 2, 3, 4, 5}), grid({1, 2, 1, 2, 3}), Int(0), Int(0), Flag(corners), Y({1, 2, 2, 1, 2})}, grad, both, {}, mask});
  }
  return pairs;
}

std::vector<Pair> Others() {
  std::vector<Pair> pairs = {
      {"aclnnLogit", "aclnnLogitGrad", {Probability({4, 5}), RealArg(0.01), Y({4, 5})}, {{"dy", "out"}}, {{"out", "input"}}, {{"x", "input"}}},
      {"aclnnEmbedding", "aclnnEmbeddingDenseBackward", {X({5, 3}), Classes({2, 4}, 5), Y({2, 4, 3})}, {{"grad", "out"}}, {{"out", "weight"}}, {},
       {{"numWeights", Int(5)}, {"paddingIdx", Int(100)}, {"scaleGradByFreq", Flag(false)}}},
      {"aclnnIm2col", "aclnnIm2colBackward", {X({1, 2, 4, 5}), Ints({2, 3}), Ints({1, 1}), Ints({1, 0}), Ints({1, 2}), Y({1, 12, 10})}, {{"gradOutput", "out"}},
       {{"out", "self"}}, {}, {{"inputSize", Ints({4, 5})}}},
      {"aclnnRepeatInterleaveWithDim", "aclnnRepeatInterleaveGrad", {X({2, 3, 2}), Places(DType::kI64, {3}, {1, 0, 2}), Int(1), Int(3), Y({2, 3, 2})},
       {{"yGrad", "out"}}, {{"out", "self"}}, {}, {{"axis", Int(1)}}},
      {"aclnnThnnFusedLstmCell", "aclnnThnnFusedLstmCellBackward", {X({2, 12}), X({2, 12}), X({2, 3}), X({12}), X({12}), Y({2, 3}), Y({2, 3}), Y({2, 12})},
       {{"gradHyOptional", "hyOut"}, {"gradCOptional", "cyOut"}}, {{"gradGatesOut", "inputGates"}, {"gradCxOut", "cx"}, {"gradBiasOut", "inputBiasOptional"}},
       {{"cy", "cyOut"}, {"storage", "storageOut"}}, {{"hasBias", Flag(true)}}},
      {"aclnnMoeTokenPermute", "aclnnMoeTokenPermuteGrad", {X({3, 2}), Classes({3, 2}, 3), Int(0), Flag(false), Y({6, 2}), Out(DType::kI32, {6})},
       {{"permutedOutputGrad", "permuteTokensOut"}}, {{"out", "tokens"}}, {{"sortedIndices", "sortedIndicesOut"}}, {{"numTopk", Int(2)}}},
      {"aclnnMoeTokenUnpermute", "aclnnMoeTokenUnpermuteGrad",
       {X({6, 2}), Places(DType::kI32, {6}, {2, 0, 1, 5, 3, 4}), X({3, 2}), Flag(false), Null(), Y({3, 2})}, {{"unpermutedTokensGrad", "out"}},
       {{"permutedTokensGradOut", "permutedTokens"}, {"probsGradOut", "probsOptional"}}, {{"permuteTokens", "permutedTokens"}}},
  };
  for (const double p : {1.5, 2.0, 3.0}) {
    // Below 2, points lie apart: near a difference of 0 higher derivatives have no limit.
    const TestArg from = p < 2 ? In(F32, {3, 4}, Between(0.5, 2)) : X({3, 4}), to = p < 2 ? In(F32, {5, 4}, Between(-2, 0)) : X({5, 4});
    pairs.push_back({"aclnnCdist", "aclnnCdistBackward", {from, to, RealArg(p), Int(2), Y({3, 5})}, {{"grad", "out"}}, {{"out", "x1"}}, {{"cdist", "out"}}});
  }
  for (const int64_t mode : {0, 1, 2, 3}) {
    pairs.push_back({"aclnnRotaryPositionEmbedding", "aclnnRotaryPositionEmbeddingGrad",
                     {X({2, 2, 3, 8}), X({1, 1, 3, 8}), X({1, 1, 3, 8}), Int(mode), Y({2, 2, 3, 8})}, {{"dy", "out"}},
                     {{"dxOut", "x"}, {"dcosOut", "cos"}, {"dsinOut", "sin"}}, {{"xOptional", "x"}}});
  }
  return pairs;
}

}  // namespace

const std::vector<Pair>& GradientPairs() {
  static const auto* const all = [] {
    auto* const pairs = new std::vector<Pair>;
    for (const auto& family : {Norms(), SoftMaxima(), GatedUnits(), Attention(), Activations(), Losses(), Convolutions(), Pools(), Paddings(), Resizes(), Others()}) {
      pairs->insert(pairs->end(), family.begin(), family.end());
    }
    return pairs;
  }();
  return *all;
}

}  // namespace anyacl
