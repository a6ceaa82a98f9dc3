// SPDX-License-Identifier: Apache-2.0
// Copyright The AnyACL Authors
//
// Start-up and shutdown, configuration, versions, error text.
//
// Nothing else in the library needs aclInit: it only counts, applies a configuration and runs hooks. So
// whatever a program does after aclFinalize keeps working.
#include <algorithm>
#include <charconv>
#include <cstring>
#include <filesystem>
#include <fstream>
#include <iterator>
#include <mutex>
#include <nlohmann/json.hpp>
#include <optional>
#include <string>
#include <system_error>
#include <utility>
#include <vector>

#include "acl/acl_base.h"
#include "acl/acl_rt.h"
#include "aclnn/aclnn_base.h"
#include "core/border.h"
#include "core/error_text.h"
#include "core/locks.h"
#include "core/once.h"
#include "core/product.h"
#include "core/undo.h"
#include "runtime/backends.h"
#include "runtime/internal.h"
#include "watch/watch.h"

namespace anyacl::runtime {
namespace {

using nlohmann::json;

constexpr int kMaxNesting = 10;  // of braces, and of brackets
constexpr char kCannVersion[] = "9.0.0";
constexpr int32_t kCannVersionNumber = 90000000;

template <class Function>
struct Hook {
  int type;
  Function function;
  void* data;
};

// Guarded by kProcess.
struct Process {
  uint64_t init_count = 0;
  std::optional<json> first_config;  // later ones must be the same
  std::string config_text;
  std::vector<Hook<aclInitCallbackFunc>> init_hooks;
  std::vector<Hook<aclFinalizeCallbackFunc>> finalize_hooks;
};
Process& ThisProcess() { return TheOne<Process>(); }
std::mutex& ProcessLock() { return LockOf(Lock::kProcess); }

// --- configuration ---

bool NestsTooDeep(const std::string& text) {
  int braces = 0;
  int brackets = 0;
  bool in_string = false;
  for (size_t i = 0; i < text.size(); ++i) {
    const char c = text[i];
    if (c == '"') in_string = !in_string;
    if (in_string) {
      if (c == '\\') ++i;
      continue;
    }
    braces += (c == '{') - (c == '}');
    brackets += (c == '[') - (c == ']');
    if (braces > kMaxNesting || brackets > kMaxNesting) return true;
  }
  return false;
}

Status ReadFile(const char* function, int32_t code, const char* path, std::string* text) {
  std::error_code ignored;
  std::ifstream file;
  if (std::filesystem::is_regular_file(path, ignored)) file.open(path, std::ios::binary);
  if (file.is_open()) {
    text->assign(std::istreambuf_iterator<char>(file), {});
    return Status();
  }
  return Fail(code, function, "configPath must be a readable file, got '{}'", path);
}

Status ParseConfig(const char* function, int32_t code, const std::string& text, json* config) {
  if (NestsTooDeep(text)) {
    return Fail(code, function, "the configuration must not nest more than {} braces or brackets",
                kMaxNesting);
  }
  *config = text.empty() ? json::object() : json::parse(text, nullptr, false);
  if (config->is_object()) return Status();
  return Fail(code, function, "the configuration must be a JSON object");
}

std::optional<int> AsInt(const json& value) {
  if (value.is_number_integer()) {
    const auto number = value.get<int64_t>();
    if (number < -1 || number > 1'000'000) return std::nullopt;
    return static_cast<int>(number);
  }
  if (!value.is_string()) return std::nullopt;
  const auto& text = value.get_ref<const std::string&>();
  int number = 0;
  const char* const end = text.data() + text.size();
  const auto [stop, error] = std::from_chars(text.data(), end, number);
  if (error != std::errc() || stop != end) return std::nullopt;
  return number;
}

struct Settings {
  bool process_wide_errors = false;
  int default_device = -1;
};

// Only what means something here is looked at; dump, profiling and limits of the chip are ignored.
Status ReadSettings(const char* function, const json& config, Settings* settings) {
  if (const auto mode = config.find("err_msg_mode"); mode != config.end()) {
    const std::optional<int> number = AsInt(*mode);
    if (number != 0 && number != 1) {
      return Fail(code::kAclInvalidParam, function, "err_msg_mode must be \"0\" or \"1\", got {}",
                  mode->dump());
    }
    settings->process_wide_errors = number == 1;
  }
  const auto section = config.find("defaultDevice");
  if (section == config.end()) return Status();
  const json device = section->is_object() ? section->value("default_device", json()) : json();
  const std::optional<int> number = AsInt(device);
  if (!number || *number < 0 || *number >= DeviceCount()) {
    return Fail(code::kAclInvalidParam, function,
                "defaultDevice.default_device must be in [0, {}), got {}", DeviceCount(),
                device.dump());
  }
  settings->default_device = *number;
  return Status();
}

Status CheckProduct(const char* function) {
  if (ProductOf(SocName())) return Status();
  return Fail(code::kAclInvalidParam, function, "ANYACL_SOC must be one of {}, got '{}'",
              KnownSocNames(), SocName());
}

// --- start and end ---

// The hooks run without the lock: they may call acl functions.
Status RunInitHooks(const char* function, const std::vector<Hook<aclInitCallbackFunc>>& hooks,
                    const std::string& text) {
  for (const auto& hook : hooks) {
    const aclError result = hook.function(text.c_str(), text.size(), hook.data);
    if (result != ACL_SUCCESS) {
      return Fail(result, function, "an init callback of type {} returned {}", hook.type, result);
    }
  }
  return Status();
}

void Apply(const Settings& settings) {
  error_text::SetProcessScope(settings.process_wide_errors);
  SetDefaultDevice(settings.default_device);
}

// For an aclInit that failed in a hook: the next one is to run them again, with the configuration it likes.
void CountBack(bool was_first) {
  Process& process = ThisProcess();
  {
    const std::lock_guard lock(ProcessLock());
    if (process.init_count > 0 && --process.init_count > 0) return;
    if (was_first) process.first_config.reset();
  }
  Apply({});
}

// *repeated: another thread was quicker, this call was only counted.
Status Initialize(const char* function, const char* path, bool* repeated) {
  std::string text;
  json config;
  Settings settings;
  ANYACL_RETURN_IF_ERROR(CheckProduct(function));
  ANYACL_RETURN_IF_ERROR(CheckBackend(function));
  if (path && *path) ANYACL_RETURN_IF_ERROR(ReadFile(function, code::kAclInvalidFile, path, &text));
  ANYACL_RETURN_IF_ERROR(ParseConfig(function, code::kAclParseFile, text, &config));
  ANYACL_RETURN_IF_ERROR(ReadSettings(function, config, &settings));
  Process& process = ThisProcess();
  std::vector<Hook<aclInitCallbackFunc>> hooks;
  bool is_first = false;
  {
    const std::lock_guard lock(ProcessLock());
    if (process.init_count > 0) {
      ++process.init_count;
      *repeated = true;
      return Status();
    }
    is_first = !process.first_config;
    if (process.first_config && *process.first_config != config) {
      return Fail(code::kAclInvalidParam, function,
                  "the configuration must be the same as in the first aclInit of this process");
    }
    hooks = process.init_hooks;
    process.config_text = text;
    process.first_config = std::move(config);
    process.init_count = 1;
  }
  Undo counted([&] { CountBack(is_first); });
  Apply(settings);
  ANYACL_RETURN_IF_ERROR(RunInitHooks(function, hooks, text));
  counted.Keep();
  return Status();
}

bool CountRepeatedInit() {
  Process& process = ThisProcess();
  const std::lock_guard lock(ProcessLock());
  if (process.init_count == 0) return false;
  ++process.init_count;
  return true;
}

Status Finalize(const char* function, uint64_t subtract, uint64_t* remaining) {
  Process& process = ThisProcess();
  std::vector<Hook<aclFinalizeCallbackFunc>> hooks;
  {
    const std::lock_guard lock(ProcessLock());
    if (process.init_count == 0) {
      return Fail(code::kAclRepeatFinalize, function,
                  "acl is not initialised, or finalised already");
    }
    if (process.init_count <= subtract) hooks = process.finalize_hooks;
    process.init_count -= std::min(process.init_count, subtract);
    if (remaining) *remaining = process.init_count;
    if (process.init_count > 0) return Status();
  }
  if (watch::On()) [[unlikely]]
    watch::Tell(&watch::Watcher::Ends, false);
  // All of them run, and what aclInit set is taken back: nobody can finalise a second time.
  Status first;
  for (const auto& hook : hooks) {
    const aclError result = hook.function(hook.data);
    if (result == ACL_SUCCESS || !first.ok()) continue;
    first = Fail(result, function, "a finalise callback of type {} returned {}", hook.type, result);
  }
  Apply({});
  return first;
}

template <class Function>
Status RemoveHook(const char* name, std::vector<Hook<Function>>* hooks, int type,
                  Function function) {
  const std::lock_guard lock(ProcessLock());
  const auto found = std::find_if(hooks->begin(), hooks->end(), [&](const auto& hook) {
    return hook.type == type && hook.function == function;
  });
  if (found == hooks->end()) {
    return Fail(code::kAclInvalidParam, name, "cbFunc must have been registered for type {}", type);
  }
  hooks->erase(found);
  return Status();
}

Status CheckLevel(const char* function, int level) {
  if (level == ACL_RT_THREAD_LEVEL) return Status();
  return Fail(code::kAclInvalidParam, function, "level must be 0 (thread), got {}", level);
}

void Put(char* field, size_t size, const char* text) {
  std::memset(field, 0, size);
  std::memcpy(field, text, std::min(size - 1, std::strlen(text)));
}

}  // namespace
}  // namespace anyacl::runtime

using anyacl::AclBorder;
using anyacl::AclnnBorder;
using anyacl::Status;
using namespace anyacl::runtime;  // NOLINT: the C functions of this room
namespace code = anyacl::code;
namespace error_text = anyacl::error_text;

aclError aclInit(const char* configPath) {
  // Clients take this code for success, so it leaves no text behind.
  bool repeated = CountRepeatedInit();
  if (repeated) return code::kAclRepeatInitialize;
  const aclError result =
      AclBorder("aclInit", [&] { return Initialize("aclInit", configPath, &repeated); });
  return repeated ? code::kAclRepeatInitialize : result;
}

aclError aclFinalize(void) {
  return AclBorder("aclFinalize", [] { return Finalize("aclFinalize", ~uint64_t{0}, nullptr); });
}

aclError aclFinalizeReference(uint64_t* refCount) {
  return AclBorder("aclFinalizeReference",
                   [&] { return Finalize("aclFinalizeReference", 1, refCount); });
}

aclError aclInitCallbackRegister(aclRegisterCallbackType type, aclInitCallbackFunc cbFunc,
                                 void* userData) {
  constexpr const char* kName = "aclInitCallbackRegister";
  return AclBorder(kName, [&]() -> Status {
    if (!cbFunc) return Fail(code::kAclInvalidParam, kName, "cbFunc must not be null");
    const Hook<aclInitCallbackFunc> hook{Number(type), cbFunc, userData};
    std::string text;
    {
      Process& process = ThisProcess();
      const std::lock_guard lock(ProcessLock());
      text = process.config_text;
      process.init_hooks.push_back(hook);
      if (process.init_count == 0) return Status();
    }
    return RunInitHooks(kName, {hook}, text);
  });
}

aclError aclInitCallbackUnRegister(aclRegisterCallbackType type, aclInitCallbackFunc cbFunc) {
  constexpr const char* kName = "aclInitCallbackUnRegister";
  return AclBorder(
      kName, [&] { return RemoveHook(kName, &ThisProcess().init_hooks, Number(type), cbFunc); });
}

aclError aclFinalizeCallbackRegister(aclRegisterCallbackType type, aclFinalizeCallbackFunc cbFunc,
                                     void* userData) {
  constexpr const char* kName = "aclFinalizeCallbackRegister";
  return AclBorder(kName, [&]() -> Status {
    if (!cbFunc) return Fail(code::kAclInvalidParam, kName, "cbFunc must not be null");
    Process& process = ThisProcess();
    const std::lock_guard lock(ProcessLock());
    process.finalize_hooks.push_back({Number(type), cbFunc, userData});
    return Status();
  });
}

aclError aclFinalizeCallbackUnRegister(aclRegisterCallbackType type,
                                       aclFinalizeCallbackFunc cbFunc) {
  constexpr const char* kName = "aclFinalizeCallbackUnRegister";
  return AclBorder(kName, [&] {
    return RemoveHook(kName, &ThisProcess().finalize_hooks, Number(type), cbFunc);
  });
}

const char* aclGetRecentErrMsg(void) { return error_text::Take(); }

aclError aclrtPeekAtLastError(aclrtLastErrLevel level) {
  constexpr const char* kName = "aclrtPeekAtLastError";
  const aclError wrong = AclBorder(kName, [&] { return CheckLevel(kName, Number(level)); });
  return wrong ? wrong : error_text::LastRuntimeCode();
}

aclError aclrtGetLastError(aclrtLastErrLevel level) {
  constexpr const char* kName = "aclrtGetLastError";
  const aclError wrong = AclBorder(kName, [&] { return CheckLevel(kName, Number(level)); });
  if (wrong) return wrong;
  const int32_t last = error_text::LastRuntimeCode();
  error_text::SetLastRuntimeCode(0);
  return last;
}

const char* aclrtGetSocName(void) { return anyacl::SocName(); }

aclError aclrtGetVersion(int32_t* majorVersion, int32_t* minorVersion, int32_t* patchVersion) {
  constexpr const char* kName = "aclrtGetVersion";
  return AclBorder(kName, [&]() -> Status {
    ANYACL_RETURN_IF_ERROR(RequireNotNull(kName, "majorVersion", majorVersion));
    ANYACL_RETURN_IF_ERROR(RequireNotNull(kName, "minorVersion", minorVersion));
    ANYACL_RETURN_IF_ERROR(RequireNotNull(kName, "patchVersion", patchVersion));
    *majorVersion = ACL_MAJOR_VERSION;
    *minorVersion = ACL_MINOR_VERSION;
    *patchVersion = ACL_PATCH_VERSION;
    return Status();
  });
}

aclError aclsysGetCANNVersion(aclCANNPackageName name, aclCANNPackageVersion* version) {
  constexpr const char* kName = "aclsysGetCANNVersion";
  return AclBorder(kName, [&]() -> Status {
    ANYACL_RETURN_IF_ERROR(RequireNotNull(kName, "version", version));
    const int package = Number(name);
    if (package < ACL_PKG_NAME_CANN || package > ACL_PKG_NAME_DRIVER) {
      return Fail(code::kAclInvalidParam, kName, "name must be an aclCANNPackageName, got {}",
                  package);
    }
    *version = aclCANNPackageVersion();
    Put(version->version, sizeof(version->version), kCannVersion);
    Put(version->majorVersion, sizeof(version->majorVersion), "9");
    Put(version->minorVersion, sizeof(version->minorVersion), "0");
    Put(version->releaseVersion, sizeof(version->releaseVersion), "");
    Put(version->patchVersion, sizeof(version->patchVersion), "0");
    return Status();
  });
}

aclError aclsysGetVersionStr(char* pkgName, char* versionStr) {
  constexpr const char* kName = "aclsysGetVersionStr";
  return AclBorder(kName, [&]() -> Status {
    ANYACL_RETURN_IF_ERROR(RequireNotNull(kName, "pkgName", pkgName));
    ANYACL_RETURN_IF_ERROR(RequireNotNull(kName, "versionStr", versionStr));
    std::memcpy(versionStr, kCannVersion, sizeof(kCannVersion));
    return Status();
  });
}

aclError aclsysGetVersionNum(char* pkgName, int32_t* versionNum) {
  constexpr const char* kName = "aclsysGetVersionNum";
  return AclBorder(kName, [&]() -> Status {
    ANYACL_RETURN_IF_ERROR(RequireNotNull(kName, "pkgName", pkgName));
    ANYACL_RETURN_IF_ERROR(RequireNotNull(kName, "versionNum", versionNum));
    *versionNum = kCannVersionNumber;
    return Status();
  });
}

// The file is read so that a wrong path shows, but nothing in it matters here.
aclnnStatus aclnnInit(const char* configPath) {
  constexpr const char* kName = "aclnnInit";
  return AclnnBorder(kName, [&]() -> Status {
    if (!configPath || !*configPath) return Status();
    std::string text;
    nlohmann::json config;
    ANYACL_RETURN_IF_ERROR(ReadFile(kName, code::kInvalid, configPath, &text));
    return ParseConfig(kName, code::kInvalid, text, &config);
  });
}

aclnnStatus aclnnFinalize(void) { return 0; }
