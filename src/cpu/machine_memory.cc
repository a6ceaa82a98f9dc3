// SPDX-License-Identifier: Apache-2.0
// Copyright The AnyACL Authors
#include "cpu/machine_memory.h"

#include <unistd.h>

#include <algorithm>
#include <cstdint>
#include <fstream>
#include <new>
#include <optional>
#include <sstream>
#include <string>
#include <vector>

#include "core/once.h"

namespace anyacl::cpu {
namespace {

// A stream that found no memory says no more than one that found no number; without this the process would take the
// one for the other as long as it lives.
void RequireRead(const std::ios& stream) {
  if (stream.bad()) throw std::bad_alloc();
}

// The number behind `key` in a file of "key value" lines.
std::optional<size_t> ReadField(const std::string& path, const std::string& key) {
  std::ifstream file(path);
  std::string name;
  size_t value = 0;
  for (std::string line; std::getline(file, line);) {
    std::istringstream words(line);
    if (words >> name >> value && name == key) return value;
    RequireRead(words);
  }
  RequireRead(file);
  return std::nullopt;
}

// The number a file starts with; none when it says "max" or cannot be read.
std::optional<size_t> ReadNumber(const std::string& path) {
  std::ifstream file(path);
  size_t value = 0;
  if (file >> value) return value;
  RequireRead(file);
  return std::nullopt;
}

struct CgroupVersion {
  const char* root;
  const char* limit;
  const char* usage;
  const char* reclaimable;  // page cache that the kernel drops before it refuses memory
};
constexpr CgroupVersion kVersion1{"/sys/fs/cgroup/memory", "memory.limit_in_bytes",
                                  "memory.usage_in_bytes", "total_inactive_file"};
constexpr CgroupVersion kVersion2{"/sys/fs/cgroup", "memory.max", "memory.current",
                                  "inactive_file"};

struct Cgroup {
  std::string folder;
  const CgroupVersion* version;
};

// Appends the group at `path` and all its parents: each may have a limit. Inside a container the
// path can name a folder that is not visible; then only the root answers.
void AppendGroups(const CgroupVersion& version, std::string path, std::vector<Cgroup>* groups) {
  while (true) {
    const std::string folder = version.root + path;
    if (access((folder + "/" + version.limit).c_str(), R_OK) == 0) {
      groups->push_back({folder, &version});
    }
    const size_t slash = path.rfind('/');
    if (slash == std::string::npos) return;
    path.resize(slash);
  }
}

// Lines of /proc/self/cgroup read "number:controllers:path"; version 2 has no controllers.
std::vector<Cgroup> FindGroups() {
  std::vector<Cgroup> groups;
  std::ifstream file("/proc/self/cgroup");
  for (std::string line; std::getline(file, line);) {
    const size_t first = line.find(':');
    const size_t second = first == std::string::npos ? first : line.find(':', first + 1);
    if (second == std::string::npos) continue;
    const std::string controllers = "," + line.substr(first + 1, second - first - 1) + ",";
    const std::string path = line.substr(second + 1);
    if (controllers == ",,") AppendGroups(kVersion2, path, &groups);
    if (controllers.find(",memory,") != std::string::npos) AppendGroups(kVersion1, path, &groups);
  }
  RequireRead(file);
  return groups;
}

struct AllGroups {
  std::vector<Cgroup> groups = FindGroups();
};

void ApplyGroup(const Cgroup& group, MachineMemory* memory) {
  const auto limit = ReadNumber(group.folder + "/" + group.version->limit);
  if (!limit || *limit >= memory->total) return;  // version 1 writes a huge number for no limit
  memory->total = *limit;
  const size_t usage = ReadNumber(group.folder + "/" + group.version->usage).value_or(0);
  const size_t reclaimable =
      ReadField(group.folder + "/memory.stat", group.version->reclaimable).value_or(0);
  const size_t used = usage - std::min(usage, reclaimable);
  memory->available = std::min(memory->available, *limit - std::min(*limit, used));
}

size_t ReadResident() {
  std::ifstream file("/proc/self/statm");
  size_t virtual_pages = 0;
  size_t resident_pages = 0;
  file >> virtual_pages >> resident_pages;
  RequireRead(file);
  return resident_pages * static_cast<size_t>(sysconf(_SC_PAGESIZE));
}

}  // namespace

MachineMemory ReadMachineMemory() {
  MachineMemory memory;
  const size_t page = static_cast<size_t>(sysconf(_SC_PAGESIZE));
  memory.total = static_cast<size_t>(sysconf(_SC_PHYS_PAGES)) * page;
  const auto available_kib = ReadField("/proc/meminfo", "MemAvailable:");
  memory.available =
      available_kib ? *available_kib * 1024 : static_cast<size_t>(sysconf(_SC_AVPHYS_PAGES)) * page;
  for (const Cgroup& group : TheOne<AllGroups>().groups) ApplyGroup(group, &memory);
  memory.available = std::min(memory.available, memory.total);
  memory.resident = ReadResident();
  return memory;
}

size_t MachineTotal() {
  struct Total {
    size_t bytes = ReadMachineMemory().total;
  };
  return TheOne<Total>().bytes;
}

}  // namespace anyacl::cpu
