// SPDX-License-Identifier: Apache-2.0
// Copyright The AnyACL Authors
//
// The fuzzer's calls over made-up inputs, in every build: no compiler with libFuzzer is needed.
#include <gtest/gtest.h>

#include <signal.h>
#include <unistd.h>

#include <chrono>
#include <cstdio>
#include <random>
#include <vector>

#include "fuzz/border_fuzz.h"

namespace anyacl::fuzz {
namespace {

std::vector<uint8_t> InputOf(uint64_t number) {
  std::mt19937_64 random(number);
  std::vector<uint8_t> bytes(random() % 1024);
  for (uint8_t& b : bytes) b = static_cast<uint8_t>(random());
  return bytes;
}

// A crash says which input it was.
uint64_t present;

void SayWhere(int signal_number) {
  char text[64];
  const int length = std::snprintf(text, sizeof(text), "\nended by signal %d in input %llu\n", signal_number,
                                   static_cast<unsigned long long>(present));
  (void)!write(STDERR_FILENO, text, static_cast<size_t>(length));
  signal(signal_number, SIG_DFL);
  raise(signal_number);
}

// Stops early on a slow build; the inputs are the same, so a failure names one that comes back.
// --gtest_random_seed=N begins with input N * 100000.
TEST(FuzzSmoke, ManyInputs) {
#ifndef ANYACL_SANITIZE_address  // it says more
  for (int number : {SIGSEGV, SIGBUS, SIGFPE, SIGILL}) signal(number, SayWhere);
#endif
  signal(SIGABRT, SayWhere);
  constexpr uint64_t kMost = 100'000;
  const auto end = std::chrono::steady_clock::now() + std::chrono::seconds(5);
  const uint64_t first = kMost * static_cast<uint64_t>(GTEST_FLAG_GET(random_seed));
  uint64_t made = 0;
  uint64_t runs = 0;
  for (; made < kMost && std::chrono::steady_clock::now() < end; ++made) {
    present = first + made;
    const std::vector<uint8_t> input = InputOf(present);
    runs += FuzzBorder(input.data(), input.size());
  }
  EXPECT_GT(made, 100u);
  EXPECT_GT(runs, made / 10) << "the calls must not only be refused";
  RecordProperty("inputs", static_cast<int>(made));
}

}  // namespace
}  // namespace anyacl::fuzz
