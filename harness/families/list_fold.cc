// SPDX-License-Identifier: Apache-2.0
// Copyright The AnyACL Authors
//
// Tensors of a list as one.
#include <algorithm>
#include <cmath>
#include <string_view>

#include "harness/family.h"

namespace anyacl::harness {
namespace {

void Sample(Calls& calls) {
  for (DType t : calls.TypesOf("tensors")) {
    calls.Add({List({In(t, {2, 3}), In(t, {3}), In(t, {2, 1})}), Out(t, {2, 3})});
    calls.Add({List({In(t, {4}), In(t, {4})}), Out(t, {4})});
    calls.Add({List({In(t, {}), In(t, {2, 2}), In(t, {1, 2}), In(t, {})}), Out(t, {2, 2})});
    calls.Add({List({In(t, {1}), In(t, {1})}), Out(t, {1})});
    calls.Add({List({In(t, {1, 3})}), Out(t, {1, 3})}, "one tensor");
  }
  calls.Add({List({In(DType::kI8, {3}, Whole(100, 120)), In(DType::kI8, {3}, Whole(100, 120)), In(DType::kI8, {3}, Whole(-5, 5))}), Out(DType::kI8, {3})});
  calls.Add({List({In(DType::kF32, {7}, Hostile()), In(DType::kF32, {7}, Hostile()), In(DType::kF32, {7}, Hostile())}), Out(DType::kF32, {7})});
  calls.Add({List({In(DType::kF32, {0, 3}), In(DType::kF32, {3})}), Out(DType::kF32, {0, 3})});
}

Real Largest(Real a, Real b) { return std::isnan(a) || std::isnan(b) ? std::nanl("") : a >= b ? a : b; }

void Oracle(HostCall& call) {
  const std::string_view op = call.name();
  Host& out = call.Out("out");
  const int count = call.Count("tensors");
  for (int64_t i = 0; i < out.size(); ++i) {
    Real value = call.In("tensors", 0).Broadcast(out.dims, i).real(), magnitude = std::fabs(value);
    for (int k = 1; k < count; ++k) {
      const Real x = call.In("tensors", k).Broadcast(out.dims, i).real();
      if (op == "aclnnMaxN") value = Largest(value, x);
      else if (op == "aclnnMinN") value = -Largest(-value, -x);
      else value += x;
      magnitude += std::fabs(x);
    }
    // Steps in FLOAT may overflow where the whole sum does not.
    const bool large = op == "aclnnSum" && std::isfinite(magnitude) && magnitude > 3e38L;
    out[i] = value;
    out.slack.push_back(op != "aclnnSum" || IsInteger(out.dtype) || !std::isfinite(magnitude) ? 0
                        : large                                                              ? magnitude * 1e6L
                                                                                             : count * UlpOf(DType::kF32, magnitude));
  }
}

}  // namespace

std::span<const Subject> ListFoldSubjects() {
  static const Subject subjects[] = {
      {"aclnnMaxN", Sample, Oracle, {.ulps = 0}},
      {"aclnnMinN", Sample, Oracle, {.ulps = 0}},
      {"aclnnSum", Sample, Oracle, {.ulps = 0}},
  };
  return subjects;
}

}  // namespace anyacl::harness
