// SPDX-License-Identifier: Apache-2.0
// Copyright The AnyACL Authors
#ifndef ANYACL_TOOLS_BENCH_H_
#define ANYACL_TOOLS_BENCH_H_

#include <cstdint>
#include <iosfwd>
#include <optional>
#include <span>
#include <string>
#include <vector>

#include "acl/acl.h"
#include "harness/call.h"
#include "harness/cases.h"
#include "plan/operator.h"
#include "roof.h"

namespace anyacl::tool {

struct BenchRow {
  std::string op;
  std::string row;
  std::string type;
  std::string backend;
  std::string kernel;
  int threads;
  double time_us;                // median of the run alone
  uint64_t bytes;                // that must move: every tensor once
  double roof_gbps;              // best bandwidth of the same mix in the same minutes
  double plan_us;                // phase 1
  double call_us;                // phases 1 and 2, no synchronise
  std::optional<double> exp_us;  // rows tagged "exp": the arithmetic alone

  double gbps() const { return static_cast<double>(bytes) / time_us * 1e-3; }
  double floor_us() const { return static_cast<double>(bytes) / roof_gbps * 1e-3; }
  double roof_ratio() const { return time_us / floor_us(); }
};

BenchRow Measure(const Operator& op, const harness::OperatorCases& cases, const harness::Case& row,
                 const harness::TypeChoice& type, aclrtStream stream);

// The same on a backend that launches: bench_device.cc.
BenchRow MeasureOnDevice(const Operator& op, const harness::OperatorCases& cases,
                         const harness::Case& row, const harness::TypeChoice& type,
                         aclrtStream stream);

// A picture of the rows: bars beside what the memory allows.
void DrawSvg(std::span<const BenchRow> rows, std::ostream& out);

// What both share.
double Median(std::vector<double> values);
double PlanUs(harness::Call& call);
Roof RoofOf(const harness::Call& call);
uint64_t BytesOf(const harness::Call& call);

}  // namespace anyacl::tool

#endif  // ANYACL_TOOLS_BENCH_H_
