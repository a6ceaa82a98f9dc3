// SPDX-License-Identifier: Apache-2.0
// Copyright The AnyACL Authors
//
// The parts of the family.
#ifndef ANYACL_OPS_MOVEMENT_FAMILIES_H_
#define ANYACL_OPS_MOVEMENT_FAMILIES_H_

#include <algorithm>
#include <string>
#include <vector>

#include "ops/movement/common.h"
#include "ops/movement/remap.h"

namespace anyacl::movement {

void DeclareJoins(Declarations& declarations);
void DeclareLayouts(Declarations& declarations);
void DeclarePads(Declarations& declarations);
void DeclareSlices(Declarations& declarations);

// out[j...] = in[m(j)...], each axis mapped by itself.
struct AxisMap {
  Mapping mapping = Mapping::kSame;
  int64_t before = 0;
};
Status AddRemap(PlanBuilder& plan, const Operand& in, const Operand& out, const std::vector<AxisMap>& maps);

}  // namespace anyacl::movement

#endif  // ANYACL_OPS_MOVEMENT_FAMILIES_H_
