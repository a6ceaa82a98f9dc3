// SPDX-License-Identifier: Apache-2.0
// Copyright The AnyACL Authors
#include "ops/operators.h"

#include <atomic>
#include <memory>
#include <mutex>
#include <stdexcept>

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

std::unique_ptr<Declarations> Declare() {
  auto all = std::make_unique<Declarations>();
#define ANYACL_FAMILY(name, folder) Declare##name(*all);
#include "ops/families.inc"
#undef ANYACL_FAMILY
  return all;
}

// One place per entry; what is built there is never freed, because programs call until their last destructor.
struct Built {
  explicit Built(size_t count) : operators(new std::atomic<const Operator*>[count]()) {}
  std::unique_ptr<std::atomic<const Operator*>[]> operators;
  std::mutex building;
};

Built& AllBuilt() {
  static Built* const built = new Built(Entries().size());
  return *built;
}

std::unique_ptr<const Operator> Build(const Entry& entry) {
  const Declarations::Maker* const maker = DeclaredOperators().Find(entry.op);
  if (!maker) throw std::logic_error("no family declares it");
  auto op = std::make_unique<Operator>((*maker)(entry));
  op->entry = &entry;
  return op;
}

}  // namespace

const Declarations& DeclaredOperators() {
  static const Declarations* const all = Declare().release();
  return *all;
}

const Operator& OperatorAt(size_t entry) {
  Built& built = AllBuilt();
  const Operator* known = built.operators[entry].load(std::memory_order_acquire);
  if (known) [[likely]] return *known;
  std::unique_ptr<const Operator> made = Build(Entries()[entry]);
  const std::lock_guard lock(built.building);
  known = built.operators[entry].load(std::memory_order_relaxed);
  if (known) return *known;  // another thread was faster
  known = made.release();
  built.operators[entry].store(known, std::memory_order_release);
  return *known;
}

std::span<const Operator* const> Operators() {
  static const auto* const all = [] {
    auto list = std::make_unique<std::vector<const Operator*>>();
    for (size_t i = 0; i < Entries().size(); ++i) list->push_back(&OperatorAt(i));
    return list.release();
  }();
  return *all;
}

}  // namespace anyacl
