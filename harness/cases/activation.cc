// SPDX-License-Identifier: Apache-2.0
// Copyright The AnyACL Authors
#include <iterator>

#include "harness/cases.h"

namespace anyacl::harness {
namespace {

contract::CallSpec MakeEluBackward(const Dims& dims, const std::vector<DType>& types,
                                   Attributes& attributes) {
  return {{DenseTensor(types[0], dims), FloatScalar(attributes.Real("alpha", 1)),
           FloatScalar(attributes.Real("scale", 1)), FloatScalar(attributes.Real("inputScale", 1)),
           FlagArg(attributes.Flag("isResult", false)), DenseTensor(types[0], dims),
           DenseTensor(types[1], dims)}};
}

RandomRow RandomEluBackward(Random& random) {
  static constexpr const char* kAttributes[] = {"", "isResult=1", "alpha=1.5 scale=0.5",
                                                "alpha=0.5 inputScale=-2 isResult=1"};
  const Dims dims = RandomDims(random, 0, 8);
  return {dims, kAttributes[Below(random, std::size(kAttributes))]};
}

std::vector<TypeChoice> EluBackwardTypes() {
  std::vector<TypeChoice> choices;
  for (const DType in : {DType::kF32, DType::kF16, DType::kBF16}) {
    choices.push_back({Name(in), {in, in}, true});
  }
  for (const DType in : {DType::kF32, DType::kF16, DType::kBF16}) {
    for (const DType out :
         {DType::kF32, DType::kF16, DType::kBF16, DType::kF64, DType::kC64, DType::kC128}) {
      if (in != out) choices.push_back({Name(in) + "->" + Name(out), {in, out}});
    }
  }
  return choices;
}

}  // namespace

const OperatorCases& EluBackwardCases() {
  static const auto* const cases =
      new OperatorCases{"aclnnEluBackward", RowsOf("EluBackward"), EluBackwardTypes(),
                        MakeEluBackward, RandomEluBackward};
  return *cases;
}

}  // namespace anyacl::harness
