// SPDX-License-Identifier: Apache-2.0
// Copyright The AnyACL Authors
//
// Which backend all devices of this process have. It is chosen once, at the first call that needs a device.
#include "runtime/backends.h"

#include <dlfcn.h>

#include "core/beside.h"
#include "core/env.h"
#include "core/once.h"
#include "core/log.h"
#include "runtime/internal.h"
#include "runtime/submit.h"

namespace anyacl {
namespace {

// --- the plug-in ---

struct Loaded {
  const Backend* backend = nullptr;
  std::string problem;
};

// Asks the driver alone, so that nothing of ours is opened in vain.
std::string DriverProblem() {
  void* const driver = dlopen("libcuda.so.1", RTLD_LAZY | RTLD_LOCAL);
  if (!driver) return "there is no NVIDIA driver (libcuda.so.1)";
  const auto init = reinterpret_cast<int (*)(unsigned)>(dlsym(driver, "cuInit"));
  const auto count = reinterpret_cast<int (*)(int*)>(dlsym(driver, "cuDeviceGetCount"));
  if (!init || !count) return "libcuda.so.1 is no NVIDIA driver";
  if (const int error = init(0))
    return fmt::format("the NVIDIA driver failed with error {}", error);
  int devices = 0;
  if (const int error = count(&devices)) {
    return fmt::format("the NVIDIA driver failed with error {}", error);
  }
  return devices > 0 ? "" : "the NVIDIA driver shows no GPU";
}

Loaded Load() {
  Loaded loaded;
  loaded.problem = DriverProblem();
  if (!loaded.problem.empty()) return loaded;
  void* const library = OpenBeside(kCudaPluginFile, &loaded.problem);
  if (!library) return loaded;
  loaded.problem.clear();
  const auto entry = reinterpret_cast<PluginEntry>(dlsym(library, kCudaPluginEntry));
  static constexpr PluginHost kHost = {ANYACL_VERSION, runtime::DeviceCount, runtime::LogicalIdOf};
  if (entry) {
    loaded.backend = entry(kHost, &loaded.problem);
  } else {
    loaded.problem = fmt::format("{} is of another version", kCudaPluginFile);
  }
  return loaded;
}

struct ThePlugin {
  Loaded loaded = Load();
};

const Loaded& Plugin() { return TheOne<ThePlugin>().loaded; }

// --- the choice ---

struct Choice {
  const Backend* backend = nullptr;
  Status problem;
};

Choice Choose() {
  const std::string name = env::Get(env::Var::ANYACL_BACKEND);
  if (name == "cpu") return {&CpuBackend(), {}};
  if (name != "auto" && name != "cuda") {
    return {nullptr,
            Status(code::kAclInvalidParam,
                   fmt::format("ANYACL_BACKEND must be auto, cpu or cuda, got '{}'", name))};
  }
  std::string problem;
  if (const Backend* const cuda = CudaBackend(&problem)) return {cuda, {}};
  if (name == "cuda") {
    return {nullptr,
            Status(code::kRtNoDevice, fmt::format("ANYACL_BACKEND is cuda, but {}", problem))};
  }
  log::Write(log::Level::kInfo, "CUDA backend not used: " + problem);
  return {&CpuBackend(), {}};
}

struct TheChoice {
  Choice choice = Choose();
};

const Choice& Chosen() { return TheOne<TheChoice>().choice; }

}  // namespace

const Backend* CudaBackend(std::string* problem) {
  if (problem) *problem = Plugin().problem;
  return Plugin().backend;
}

Status CheckBackend(const char* function) {
  const Status& problem = Chosen().problem;
  if (problem.ok()) [[likely]]
    return Status();
  return Status(problem.code(), fmt::format("{}: {}", function, problem.message()));
}

namespace runtime {

const Backend& CurrentBackend() {
  const Backend* const backend = Chosen().backend;
  return backend ? *backend : CpuBackend();  // no device can be selected then
}

}  // namespace runtime
}  // namespace anyacl
