// SPDX-License-Identifier: Apache-2.0
// Copyright The AnyACL Authors
#include <fmt/format.h>

#include <iterator>

#include "harness/cases.h"

namespace anyacl::harness {
namespace {

constexpr DType F32 = DType::kF32, F16 = DType::kF16, BF16 = DType::kBF16, I32 = DType::kI32;

// dims: N x C x spatial. Attributes: group (1), gamma (1: given), mask ("111").
contract::CallSpec MakeGroupNormBackward(const Dims& dims, const std::vector<DType>& types,
                                         Attributes& attributes) {
  int64_t hxw = 1;
  for (int i = 2; i < dims.rank(); ++i) hxw *= dims[i];
  const int64_t group = attributes.Int("group", 1);
  const std::string mask = attributes.Text("mask", "111");
  const auto tensor = [&](const Dims& d) { return DenseTensor(types[0], d); };
  const auto param = [&](const Dims& d) { return DenseTensor(types[1], d); };
  contract::ArgSpec gamma = param({dims[1]});
  gamma.null = !attributes.Flag("gamma", true);
  const auto wanted = [&](int bit, contract::ArgSpec arg) {
    arg.null = mask[bit] == '0';
    return arg;
  };
  return {{tensor(dims), tensor(dims), param({dims[0], group}), param({dims[0], group}), gamma,
           IntArg(dims[0]), IntArg(dims[1]), IntArg(hxw), IntArg(group), MaskArg(mask),
           wanted(0, tensor(dims)), wanted(1, param({dims[1]})), wanted(2, param({dims[1]}))}};
}

RandomRow RandomGroupNormBackward(Random& random) {
  static constexpr const char* kMasks[] = {"111", "111", "111", "100", "010", "001", "110", "011"};
  const Dims dims = RandomDims(random, 2, 8);
  int64_t group = 1 + Below(random, dims[1]);
  while (dims[1] % group != 0) --group;
  return {dims, fmt::format("group={} gamma={} mask={}", group, Below(random, 2),
                            kMasks[Below(random, std::size(kMasks))])};
}

// dims: N x C x spatial. Attributes: weight (1: given), counters (2: length of counter).
contract::CallSpec MakeBatchNormElemtBackward(const Dims& dims, const std::vector<DType>& types,
                                              Attributes& attributes) {
  const auto vector = [&] { return DenseTensor(types[2], {dims[1]}); };
  contract::ArgSpec weight = vector();
  weight.null = !attributes.Flag("weight", true);
  return {{DenseTensor(types[0], dims), DenseTensor(types[1], dims), vector(), vector(), weight,
           vector(), vector(), DenseTensor(types[3], {attributes.Int("counters", 2)}),
           DenseTensor(types[4], dims)}};
}

RandomRow RandomBatchNormElemtBackward(Random& random) {
  const Dims dims = RandomDims(random, 2, 8);
  return {dims, fmt::format("weight={} counters={}", Below(random, 2), 1 + Below(random, 4))};
}

// dims: shape of x. Attributes: axes (1: how many trailing axes gamma has), rstd (leading, keep or short).
contract::CallSpec MakeRmsNormGrad(const Dims& dims, const std::vector<DType>& types,
                                   Attributes& attributes) {
  const int leading = dims.rank() - static_cast<int>(attributes.Int("axes", 1));
  const std::string form = attributes.Text("rstd", "leading");
  Dims gamma, rstd;
  for (int i = 0; i < dims.rank(); ++i) {
    if (i >= leading) gamma.push_back(dims[i]);
    if (i < leading && !(form == "short" && dims[i] == 1 && i > 0)) rstd.push_back(dims[i]);
    if (i >= leading && form == "keep") rstd.push_back(1);
  }
  return {{DenseTensor(types[0], dims), DenseTensor(types[0], dims), DenseTensor(F32, rstd),
           DenseTensor(types[1], gamma), DenseTensor(types[0], dims), DenseTensor(F32, gamma)}};
}

RandomRow RandomRmsNormGrad(Random& random) {
  static constexpr const char* kForms[] = {"leading", "keep", "short"};
  const Dims dims = RandomDims(random, 1, 8);
  const int64_t axes = 1 + Below(random, dims.rank());
  bool only_ones = true;  // behind the first leading dim: what the short form leaves out
  for (int i = 1; i < dims.rank() - axes; ++i) only_ones = only_ones && dims[i] == 1;
  return {dims, fmt::format("axes={} rstd={}", axes, kForms[Below(random, only_ones ? 3 : 2)])};
}

}  // namespace

const OperatorCases& GroupNormBackwardCases() {
  static const auto* const cases = new OperatorCases{"aclnnGroupNormBackward",
                                                     RowsOf("GroupNormBackward"),
                                                     {{"FLOAT", {F32, F32}, true},
                                                      {"FLOAT16", {F16, F16}, true},
                                                      {"BF16", {BF16, BF16}, true},
                                                      {"FLOAT16 with FLOAT", {F16, F32}},
                                                      {"BF16 with FLOAT", {BF16, F32}}},
                                                     MakeGroupNormBackward,
                                                     RandomGroupNormBackward};
  return *cases;
}

const OperatorCases& BatchNormElemtBackwardCases() {
  static const auto* const cases =
      new OperatorCases{"aclnnBatchNormElemtBackward",
                        RowsOf("BatchNormElemtBackward"),
                        {{"FLOAT", {F32, F32, F32, F32, F32}, true},
                         {"FLOAT16", {F16, F16, F32, I32, F16}, true},
                         {"BF16", {BF16, BF16, F32, I32, BF16}, true},
                         {"all FLOAT16", {F16, F16, F16, F16, F16}},
                         {"all BF16", {BF16, BF16, BF16, F32, BF16}},
                         {"BF16 and FLOAT16 to FLOAT", {BF16, F16, BF16, F16, F32}},
                         {"FLOAT and BF16 to FLOAT16", {F32, BF16, F16, I32, F16}},
                         {"FLOAT16 and FLOAT to BF16", {F16, F32, F32, F32, BF16}}},
                        MakeBatchNormElemtBackward,
                        RandomBatchNormElemtBackward};
  return *cases;
}

const OperatorCases& RmsNormGradCases() {
  static const auto* const cases = new OperatorCases{"aclnnRmsNormGrad",
                                                     RowsOf("RmsNormGrad"),
                                                     {{"FLOAT", {F32, F32}, true},
                                                      {"FLOAT16", {F16, F16}, true},
                                                      {"BF16", {BF16, BF16}, true},
                                                      {"FLOAT16 with FLOAT", {F16, F32}},
                                                      {"BF16 with FLOAT", {BF16, F32}}},
                                                     MakeRmsNormGrad,
                                                     RandomRmsNormGrad};
  return *cases;
}

}  // namespace anyacl::harness
