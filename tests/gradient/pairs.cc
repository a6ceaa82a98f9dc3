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

}  // namespace

const std::vector<Pair>& GradientPairs() {
  static const auto* const all = [] {
    auto* const pairs = new std::vector<Pair>;
    for (const auto& family : {Norms(), SoftMaxima(), GatedUnits(), Attention(), Activations()}) pairs->insert(pairs->end(), family.begin(), family.end());
    return pairs;
  }();
  return *all;
}

}  // namespace anyacl
