// SPDX-License-Identifier: Apache-2.0
// Copyright The AnyACL Authors
//
// One run of an operator, computed again from its inputs and compared.
#ifndef ANYACL_VERIFY_CHECK_H_
#define ANYACL_VERIFY_CHECK_H_

#include <cstdint>
#include <memory>
#include <span>
#include <string>
#include <vector>

#include "harness/family.h"
#include "verify/log_line.h"
#include "watch/watch.h"

namespace anyacl::verify {

class Check {
 public:
  // `most`: elements that the oracle may touch. Reads the inputs, so the run must not have begun.
  Check(const watch::OperatorRun& run, const Launch& launch, int64_t most);
  // After the run.
  LogLine Finish(const Launch& launch);

 private:
  // Numbers that propagate: whether some input has them.
  struct Specials {
    bool nan = false;
    bool infinity = false;
  };
  using Bytes = std::vector<unsigned char>;

  std::string WhyNot(int64_t most) const;
  void ReadInputs(const Launch& launch);
  void AddSpecials(harness::Number number);
  void AddSpecialsOfAttributes();
  bool HasMemory(const watch::TensorUse& use) const;
  Bytes Read(const watch::TensorUse& use, const Launch& launch) const;
  void CompareAll(std::span<const Bytes> outputs);
  void CompareOutput(const watch::TensorUse& use, const Bytes& elements);
  void FindNewSpecials(const watch::TensorUse& use, const Bytes& elements);
  std::string Describe() const;

  const watch::OperatorRun& run_;
  const harness::Subject* const subject_;
  const int64_t most_;
  harness::HostCall host_;
  Specials seen_;
  LogLine line_;
};

}  // namespace anyacl::verify

#endif  // ANYACL_VERIFY_CHECK_H_
