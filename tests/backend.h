// SPDX-License-Identifier: Apache-2.0
// Copyright The AnyACL Authors
//
// The same tests run on every backend. A few ask for what only one of them can do.
#ifndef ANYACL_TESTS_BACKEND_H_
#define ANYACL_TESTS_BACKEND_H_

#include <gtest/gtest.h>

#include "runtime/submit.h"

// First line of a test that holds on the CPU alone; the reason is part of the output.
#define ANYACL_CPU_ONLY(reason) \
  if (::anyacl::runtime::CurrentBackend().launches()) GTEST_SKIP() << "only on the CPU: " << reason

#endif  // ANYACL_TESTS_BACKEND_H_
