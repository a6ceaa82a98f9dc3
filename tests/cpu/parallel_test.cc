// SPDX-License-Identifier: Apache-2.0
// Copyright The AnyACL Authors
#include "cpu/parallel.h"

#include <gtest/gtest.h>
#include <sys/wait.h>
#include <unistd.h>

#include <atomic>
#include <chrono>
#include <filesystem>
#include <fstream>
#include <memory>
#include <set>
#include <thread>
#include <vector>

#include "cpu/cores.h"

namespace anyacl::cpu {
namespace {

class Threads {
 public:
  explicit Threads(int n) { SetMaxThreads(n); }
  ~Threads() { SetMaxThreads(0); }
};

// True when every index was visited exactly once.
bool EachOnce(int64_t tasks, Order order = Order::kForwards) {
  const auto visits = std::make_unique<std::atomic<int>[]>(tasks + 1);
  ParallelFor(
      tasks, [&](int64_t i) { ++visits[i]; }, order);
  for (int64_t i = 0; i < tasks; ++i) {
    if (visits[i] != 1) return false;
  }
  return visits[tasks] == 0;
}

TEST(ParallelFor, VisitsEachIndexOnce) {
  for (const int threads : {1, 2, 3, 16, 40}) {
    const Threads limit(threads);
    for (const int64_t tasks : {0, 1, 2, 3, 7, 64, 1000}) {
      EXPECT_TRUE(EachOnce(tasks)) << tasks << " tasks, " << threads << " threads";
      EXPECT_TRUE(EachOnce(tasks, Order::kBackwards))
          << tasks << " tasks, " << threads << " threads";
    }
  }
}

TEST(ParallelFor, OneThreadKeepsTheOrder) {
  const Threads limit(1);
  std::vector<int64_t> visited;
  const auto visit = [&](int64_t i) { visited.push_back(i); };
  ParallelFor(3, visit);
  ParallelFor(3, visit, Order::kBackwards);
  EXPECT_EQ(visited, (std::vector<int64_t>{0, 1, 2, 2, 1, 0}));
}

// Both threads are kept inside their first task until the other has one, so neither can take over.
TEST(ParallelFor, ThreadsBeginWithTheirOwnShares) {
  const Threads limit(2);
  for (const Order order : {Order::kForwards, Order::kBackwards}) {
    for (int round = 0; round < 100; ++round) {
      std::atomic<int> inside{0};
      std::atomic<int64_t> first_of_caller{-1}, first_of_worker{-1};
      const auto caller = std::this_thread::get_id();
      ParallelFor(
          10,
          [&](int64_t i) {
            auto& first = std::this_thread::get_id() == caller ? first_of_caller : first_of_worker;
            int64_t none = -1;
            if (first.compare_exchange_strong(none, i)) ++inside;
            while (inside < 2) std::this_thread::yield();
          },
          order);
      EXPECT_EQ(first_of_caller, order == Order::kForwards ? 0 : 4);
      EXPECT_EQ(first_of_worker, order == Order::kForwards ? 5 : 9);
    }
  }
}

TEST(ParallelFor, ManySmallJobsInARow) {
  const Threads limit(4);
  int64_t sum = 0;
  for (int round = 0; round < 20000; ++round) {
    int64_t parts[4] = {};
    ParallelFor(4, [&](int64_t i) { parts[i] = i + round; });
    for (const int64_t part : parts) sum += part;
  }
  EXPECT_EQ(sum, int64_t{20000} * 6 + int64_t{4} * 20000 * 19999 / 2);
}

TEST(ParallelFor, SleepingWorkersWakeUp) {
  const Threads limit(3);
  for (int round = 0; round < 20; ++round) {
    EXPECT_TRUE(EachOnce(16));
    std::this_thread::sleep_for(std::chrono::milliseconds(1));
  }
}

TEST(ParallelFor, ReallyUsesOtherThreads) {
  const Threads limit(3);
  std::atomic<int> inside{0};
  // Nobody leaves before all are in: only three threads at once can finish this.
  ParallelFor(3, [&](int64_t) {
    ++inside;
    while (inside < 3) std::this_thread::yield();
  });
  EXPECT_EQ(inside, 3);
}

TEST(ParallelFor, KeepsToItsThreadCount) {
  for (const int threads : {4, 2, 1}) {
    const Threads limit(threads);
    std::mutex mutex;
    std::set<std::thread::id> seen;
    std::atomic<int> now{0};
    std::atomic<int> most{0};
    ParallelFor(64, [&](int64_t) {
      const int here = ++now;
      for (int before = most; here > before && !most.compare_exchange_weak(before, here);) {
      }
      std::this_thread::sleep_for(std::chrono::microseconds(100));
      --now;
      const std::lock_guard lock(mutex);
      seen.insert(std::this_thread::get_id());
    });
    EXPECT_LE(most, threads);
    if (threads == 1) {
      EXPECT_EQ(seen, std::set{std::this_thread::get_id()});
    }
  }
}

TEST(ParallelFor, NestedCallsRunInTheirTask) {
  const Threads limit(4);
  std::atomic<int> total{0};
  ParallelFor(8, [&](int64_t) {
    const auto here = std::this_thread::get_id();
    ParallelFor(8, [&](int64_t) {
      EXPECT_EQ(std::this_thread::get_id(), here);
      ++total;
    });
  });
  EXPECT_EQ(total, 64);
}

TEST(ParallelFor, ManyCallersAtOnce) {
  const Threads limit(4);
  std::atomic<bool> right{true};
  std::vector<std::thread> callers;
  for (int c = 0; c < 8; ++c) {
    callers.emplace_back([&right, c] {
      for (int round = 0; round < 300; ++round) {
        if (!EachOnce(1 + (c * 37 + round) % 50)) right = false;
      }
    });
  }
  for (std::thread& caller : callers) caller.join();
  EXPECT_TRUE(right);
}

TEST(ParallelFor, ThreadCountMayChangeMeanwhile) {
  std::atomic<bool> stop{false};
  std::thread changer([&] {
    for (int n = 1; !stop; n = n % 5 + 1) {
      SetMaxThreads(n);
      std::this_thread::yield();
    }
  });
  bool right = true;
  for (int round = 0; round < 2000; ++round) right = EachOnce(20) && right;
  stop = true;
  changer.join();
  SetMaxThreads(0);
  EXPECT_TRUE(right);
}

#if !defined(ANYACL_SANITIZE_thread)  // TSan forbids new threads in the child of a threaded process
TEST(ParallelFor, WorksInAForkedChild) {
  const Threads limit(3);
  EXPECT_TRUE(EachOnce(100));
  const pid_t child = fork();
  ASSERT_GE(child, 0);
  if (child == 0) {
    alarm(20);
    std::atomic<int> inside{0};
    ParallelFor(3, [&](int64_t) {
      ++inside;
      while (inside < 3) std::this_thread::yield();
    });
    _exit(EachOnce(100) ? 0 : 1);
  }
  int status = 0;
  ASSERT_EQ(waitpid(child, &status, 0), child);
  EXPECT_TRUE(WIFEXITED(status) && WEXITSTATUS(status) == 0) << status;
  EXPECT_TRUE(EachOnce(100));
}
#endif

TEST(MaxThreads, SetAndReset) {
  const int start = MaxThreads();
  EXPECT_GE(start, 1);
  SetMaxThreads(7);
  EXPECT_EQ(MaxThreads(), 7);
  SetMaxThreads(0);
  EXPECT_EQ(MaxThreads(), start);
}

// A make-believe root with the files that CgroupCores and LastCacheBytes read.
class RootTree {
 public:
  RootTree() : root_(testing::TempDir() + "anyacl_root_" + std::to_string(getpid()) + "/") {}
  ~RootTree() { std::filesystem::remove_all(root_); }
  RootTree& File(const std::string& path, const std::string& text) {
    std::filesystem::create_directories(std::filesystem::path(root_ + path).parent_path());
    std::ofstream(root_ + path) << text << "\n";
    return *this;
  }
  int Cores() const { return CgroupCores(root_); }
  int64_t LastCache() const { return LastCacheBytes(root_); }

 private:
  std::string root_;
};

TEST(CgroupCores, NoneWithoutFiles) { EXPECT_EQ(RootTree().Cores(), 0); }

TEST(CgroupCores, Version2RoundsUp) {
  RootTree tree;
  tree.File("proc/self/cgroup", "0::/a/b").File("sys/fs/cgroup/a/b/cpu.max", "150000 100000");
  EXPECT_EQ(tree.Cores(), 2);
}

TEST(CgroupCores, Version2TakesTheTightestAbove) {
  RootTree tree;
  tree.File("proc/self/cgroup", "0::/a/b")
      .File("sys/fs/cgroup/a/b/cpu.max", "max 100000")
      .File("sys/fs/cgroup/a/cpu.max", "300000 100000")
      .File("sys/fs/cgroup/cpu.max", "800000 100000");
  EXPECT_EQ(tree.Cores(), 3);
}

TEST(CgroupCores, Version1) {
  RootTree tree;
  tree.File("proc/self/cgroup", "5:memory:/x\n4:cpu,cpuacct:/docker/1")
      .File("sys/fs/cgroup/cpu/cpu.cfs_quota_us", "50000")
      .File("sys/fs/cgroup/cpu/cpu.cfs_period_us", "100000");
  EXPECT_EQ(tree.Cores(), 1);
}

TEST(CgroupCores, Version1Unlimited) {
  RootTree tree;
  tree.File("proc/self/cgroup", "4:cpu:/")
      .File("sys/fs/cgroup/cpu/cpu.cfs_quota_us", "-1")
      .File("sys/fs/cgroup/cpu/cpu.cfs_period_us", "100000");
  EXPECT_EQ(tree.Cores(), 0);
}

TEST(LastCacheBytes, NoneWithoutFiles) { EXPECT_EQ(RootTree().LastCache(), 0); }

TEST(LastCacheBytes, HighestLevel) {
  const std::string cache = "sys/devices/system/cpu/cpu0/cache/index";
  RootTree tree;
  tree.File(cache + "0/level", "1").File(cache + "0/size", "32K");
  EXPECT_EQ(tree.LastCache(), 32 << 10);
  tree.File(cache + "1/level", "3").File(cache + "1/size", "32768K");
  tree.File(cache + "2/level", "2").File(cache + "2/size", "1024K");
  EXPECT_EQ(tree.LastCache(), 32 << 20);
}

TEST(LastCacheBytes, LevelOfUnknownSizeDoesNotCount) {
  const std::string cache = "sys/devices/system/cpu/cpu0/cache/index";
  RootTree tree;
  tree.File(cache + "0/level", "2").File(cache + "0/size", "1024K").File(cache + "1/level", "3");
  EXPECT_EQ(tree.LastCache(), 1 << 20);
}

}  // namespace
}  // namespace anyacl::cpu
