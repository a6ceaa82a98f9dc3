// SPDX-License-Identifier: Apache-2.0
// Copyright The AnyACL Authors
#include "abi/introspection.h"

#include "cpu/parallel.h"
#include "cpu/targets.h"
#include "ops/operators.h"
#include "plan/executor.h"
#include "runtime/backends.h"
#include "runtime/submit.h"

namespace anyacl {
namespace {

std::span<const Backend* const> Backends() {
  static const Backend* const backends[] = {&CpuBackend(), CudaBackend()};
  return {backends, backends[1] ? size_t{2} : size_t{1}};
}

std::span<const char* const> CudaStems() {
  static constexpr const char* stems[] = {ANYACL_CUDA_STEMS};
  return stems;
}

std::string CudaProblem() {
  std::string problem;
  CudaBackend(&problem);
  return problem;
}

const char* KernelOf(const void* executor) {
  const Executor* const found = Executors().Get(executor);
  return found && !found->plan->steps.empty() ? found->plan->steps[0].kernel->name : "none";
}

void RunTasks(int64_t tasks, cpu::internal::TaskFunction call, void* context) {
  cpu::internal::RunTasks(tasks, cpu::Order::kForwards, call, context);
}

}  // namespace
}  // namespace anyacl

const anyacl::Introspection* anyacl_introspection_v1() {
  static constexpr anyacl::Introspection kIntrospection = {
      .version = ANYACL_VERSION,
      .cann_version = ANYACL_CANN_VERSION,
      .operators = anyacl::Operators,
      .backends = anyacl::Backends,
      .cuda_stems = anyacl::CudaStems,
      .backend = anyacl::runtime::CurrentBackend,
      .cuda_problem = anyacl::CudaProblem,
      .submit = anyacl::runtime::Submit,
      .force_kernel = anyacl::ForceKernel,
      .kernel_of = anyacl::KernelOf,
      .soc_name = anyacl::SocName,
      .product = anyacl::CurrentProduct,
      .targets = anyacl::cpu::UsableTargets,
      .active_target = anyacl::cpu::ActiveTarget,
      .force_target = anyacl::cpu::ForceTarget,
      .threads = anyacl::cpu::MaxThreads,
      .set_threads = anyacl::cpu::SetMaxThreads,
      .run_tasks = anyacl::RunTasks,
  };
  return &kIntrospection;
}
