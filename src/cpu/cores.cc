// SPDX-License-Identifier: Apache-2.0
// Copyright The AnyACL Authors
#include "cpu/cores.h"

#include <sched.h>

#include <algorithm>
#include <cerrno>
#include <cmath>
#include <fstream>
#include <new>
#include <sstream>
#include <string>
#include <string_view>

#include "core/once.h"

namespace anyacl::cpu {
namespace {

// Machines with more than 1024 CPUs refuse the default set, so ask with a growing one.
int AffinityCores() {
  for (int cpus = CPU_SETSIZE; cpus <= (1 << 20); cpus *= 2) {
    cpu_set_t* const set = CPU_ALLOC(cpus);
    if (!set) break;
    const size_t bytes = CPU_ALLOC_SIZE(cpus);
    const bool known = sched_getaffinity(0, bytes, set) == 0;
    const bool too_small = !known && errno == EINVAL;
    const int count = known ? CPU_COUNT_S(bytes, set) : 0;
    CPU_FREE(set);
    if (known) return std::max(count, 1);
    if (!too_small) break;
  }
  return 1;
}

std::string FirstLine(const std::string& path) {
  std::string line;
  std::ifstream file(path);
  std::getline(file, line);
  if (file.bad()) throw std::bad_alloc();  // or a limit would go unseen
  return line;
}

int RoundUp(double quota, double period) {
  return quota > 0 && period > 0 ? static_cast<int>(std::ceil(quota / period)) : 0;
}

// "200000 100000" or "max 100000".
int CoresOfV2(const std::string& folder) {
  std::istringstream line(FirstLine(folder + "/cpu.max"));
  double quota = 0;
  double period = 0;
  return line >> quota >> period ? RoundUp(quota, period) : 0;
}

int CoresOfV1(const std::string& folder) {
  std::istringstream quota_line(FirstLine(folder + "/cpu.cfs_quota_us"));
  std::istringstream period_line(FirstLine(folder + "/cpu.cfs_period_us"));
  double quota = 0;
  double period = 0;
  return quota_line >> quota && period_line >> period ? RoundUp(quota, period) : 0;
}

// The tightest quota of a group and of those above it. Inside a container the path of the group
// often does not exist below the mount; the mount itself, reached last, then holds the container's
// own quota.
int Tightest(const std::string& mount, std::string group, int (*cores_of)(const std::string&)) {
  int tightest = 0;
  while (true) {
    const int cores = cores_of(mount + group);
    if (cores > 0 && (tightest == 0 || cores < tightest)) tightest = cores;
    const size_t slash = group.find_last_of('/');
    if (slash == std::string::npos) return tightest;
    group.resize(slash);
  }
}

bool HasCpuController(std::string_view controllers) {
  while (!controllers.empty()) {
    const size_t comma = controllers.find(',');
    if (controllers.substr(0, comma) == "cpu") return true;
    if (comma == std::string_view::npos) return false;
    controllers.remove_prefix(comma + 1);
  }
  return false;
}

}  // namespace

int CgroupCores(const std::string& root) {
  std::ifstream groups(root + "proc/self/cgroup");
  const std::string mount = root + "sys/fs/cgroup";
  int tightest = 0;
  for (std::string line; std::getline(groups, line);) {  // "4:cpu,cpuacct:/path"
    const size_t first = line.find(':');
    const size_t second = first == std::string::npos ? first : line.find(':', first + 1);
    if (second == std::string::npos) continue;
    const std::string controllers = line.substr(first + 1, second - first - 1);
    const std::string group = line.substr(second + 1);
    int cores = 0;
    if (controllers.empty()) {
      cores = Tightest(mount, group, CoresOfV2);
    } else if (HasCpuController(controllers)) {
      cores = Tightest(mount + "/cpu", group, CoresOfV1);
    }
    if (cores > 0 && (tightest == 0 || cores < tightest)) tightest = cores;
  }
  if (groups.bad()) throw std::bad_alloc();
  return tightest;
}

// Files of Linux; "32768K".
int64_t LastCacheBytes(const std::string& root) {
  int64_t bytes = 0;
  int last_level = 0;
  for (int i = 0;; ++i) {
    const std::string cache = root + "sys/devices/system/cpu/cpu0/cache/index" + std::to_string(i);
    std::istringstream level_line(FirstLine(cache + "/level"));
    std::istringstream size_line(FirstLine(cache + "/size"));
    int level = 0;
    int64_t kib = 0;
    if (!(level_line >> level)) return bytes;
    if (level <= last_level || !(size_line >> kib)) continue;
    last_level = level;
    bytes = kib * 1024;
  }
}

int64_t LastCacheBytes() {
  struct Bytes {
    int64_t value = LastCacheBytes("/");
  };
  return TheOne<Bytes>().value;
}

int UsableCores() {
  const int affinity = AffinityCores();
  const int quota = CgroupCores("/");
  return quota > 0 ? std::min(affinity, quota) : affinity;
}

}  // namespace anyacl::cpu
