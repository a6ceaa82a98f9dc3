// SPDX-License-Identifier: Apache-2.0
// Copyright The AnyACL Authors
#include "ops/operators.h"

#include <atomic>
#include <memory>
#include <mutex>
#include <stdexcept>

#include "core/once.h"

namespace anyacl {

#define ANYACL_FAMILY(name, folder) void Declare##name(Declarations& declarations);
#include "ops/families.inc"
#undef ANYACL_FAMILY

std::vector<std::string> Declarations::Names() const {
  std::vector<std::string> names;
  for (const auto& [name, maker] : makers_) names.push_back(name);
  return names;
}

namespace {

struct AllDeclared {
  AllDeclared() {
#define ANYACL_FAMILY(name, folder) Declare##name(all);
#include "ops/families.inc"
#undef ANYACL_FAMILY
  }
  Declarations all;
};

// One place per entry; what is built there is never freed, because programs call until their last destructor.
constexpr size_t kMostEntries = 4096;
constinit std::atomic<const Operator*> built[kMostEntries] = {};

std::unique_ptr<const Operator> Build(const Entry& entry) {
  if (Entries().size() > kMostEntries) throw std::logic_error("there are more operators than places for them");
  const Declarations::Maker* const maker = DeclaredOperators().Find(entry.op);
  if (!maker) throw std::logic_error("no family declares it");
  auto op = std::make_unique<Operator>((*maker)(entry));
  op->entry = &entry;
  return op;
}

}  // namespace

const Declarations& DeclaredOperators() {
  return TheOne<AllDeclared>().all;
}

const Operator& OperatorAt(size_t entry) {
  // With the lock of what is made at first use, which guards the makers' own static variables in a forked child, too.
  return MadeOnce(built[entry], [&] { return Build(Entries()[entry]).release(); });
}

std::span<const Operator* const> Operators() {
  struct List {
    List() {
      for (size_t i = 0; i < Entries().size(); ++i) all.push_back(&OperatorAt(i));
    }
    std::vector<const Operator*> all;
  };
  return TheOne<List>().all;
}

}  // namespace anyacl
