// SPDX-License-Identifier: Apache-2.0
// Copyright The AnyACL Authors
//
// What the normalisations may give: their formulas over Possible, see possible.h.
#ifndef ANYACL_TESTS_NUMERIC_NORM_REFERENCES_H_
#define ANYACL_TESTS_NUMERIC_NORM_REFERENCES_H_

#include <vector>

#include "harness/call.h"
#include "numeric/references.h"

namespace anyacl::numeric {

std::vector<std::vector<Expected>> GroupNormBackwardReference(const harness::Call& call);
std::vector<std::vector<Expected>> BatchNormElemtBackwardReference(const harness::Call& call);
std::vector<std::vector<Expected>> RmsNormGradReference(const harness::Call& call);

}  // namespace anyacl::numeric

#endif  // ANYACL_TESTS_NUMERIC_NORM_REFERENCES_H_
