// SPDX-License-Identifier: Apache-2.0
// Copyright The AnyACL Authors
#ifndef ANYACL_TESTS_CPU_FOR_EACH_TARGET_H_
#define ANYACL_TESTS_CPU_FOR_EACH_TARGET_H_

#include <gtest/gtest.h>

#include <string>

#include "cpu/targets.h"

namespace anyacl::cpu {

// Runs body() once per SIMD target of this build and machine, that target forced.
template <class Body>
void ForEachTarget(Body&& body) {
  for (const std::string& target : UsableTargets()) {
    SCOPED_TRACE("target " + target);
    ASSERT_TRUE(ForceTarget(target));
    ASSERT_EQ(ActiveTarget(), target);
    body();
  }
  ForceTarget("");
}

}  // namespace anyacl::cpu

#endif  // ANYACL_TESTS_CPU_FOR_EACH_TARGET_H_
