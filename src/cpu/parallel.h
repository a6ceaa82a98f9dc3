// SPDX-License-Identifier: Apache-2.0
// Copyright The AnyACL Authors
//
// One fork-join pool for the whole process.
//
// A kernel cuts its work into tasks by shape alone, never by the number of threads; which thread
// runs a task then cannot change a bit of the result.
#ifndef ANYACL_CPU_PARALLEL_H_
#define ANYACL_CPU_PARALLEL_H_

#include <cstdint>
#include <memory>
#include <type_traits>

namespace anyacl::cpu {

// Threads a ParallelFor may use, the caller included. Starts as ANYACL_THREADS, else as the cores
// this process may use (affinity, cgroup quota rounded up).
int MaxThreads();
void SetMaxThreads(int n);  // n < 1: back to the start value

// How each thread goes through its share of the tasks. Backwards over what was just worked on forwards finds
// the end of it in the cache.
enum class Order { kForwards, kBackwards };

namespace internal {
using TaskFunction = void (*)(void* context, int64_t index);
void RunTasks(int64_t tasks, Order order, TaskFunction call, void* context);
}  // namespace internal

// Calls task(i) once for every i in [0, tasks), on the caller and on workers of the pool, and
// returns when all are done. Any number of threads may call it at the same time; inside a task it
// runs serially. Tasks must not throw. Allocates nothing once the workers run.
template <class F>
void ParallelFor(int64_t tasks, F&& task, Order order = Order::kForwards) {
  if (tasks <= 1) {
    if (tasks == 1) task(int64_t{0});
    return;
  }
  using Task = std::remove_reference_t<F>;
  internal::RunTasks(
      tasks, order, [](void* context, int64_t i) { (*static_cast<Task*>(context))(i); },
      const_cast<void*>(static_cast<const void*>(std::addressof(task))));
}

}  // namespace anyacl::cpu

#endif  // ANYACL_CPU_PARALLEL_H_
