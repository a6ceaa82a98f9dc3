// SPDX-License-Identifier: Apache-2.0
// Copyright The AnyACL Authors
//
// spec/runtime/semantics.md 1, 7 and the process part of 9.
#include <sys/wait.h>
#include <unistd.h>

#include <atomic>
#include <cstring>
#include <string>
#include <thread>
#include <vector>

#include "aclnn/aclnn_base.h"
#include "core/product.h"
#include "runtime/support.h"
#include "sanitized.h"
#include "thread_end.h"

namespace anyacl {
namespace {

// A file for aclInit, gone with this object.
class ConfigFile {
 public:
  explicit ConfigFile(const std::string& text) {
    const int file = mkstemp(path_.data());
    EXPECT_EQ(write(file, text.data(), text.size()), static_cast<ssize_t>(text.size())) << path_;
    close(file);
  }
  ~ConfigFile() { unlink(path_.c_str()); }
  ConfigFile(const ConfigFile&) = delete;
  ConfigFile& operator=(const ConfigFile&) = delete;
  const char* c_str() const { return path_.c_str(); }

 private:
  std::string path_ = testing::TempDir() + "anyacl_config_XXXXXX";
};

TEST(ConfigFile, IsGoneWithItsObject) {
  std::string path;
  {
    const ConfigFile file("{}");
    path = file.c_str();
    EXPECT_EQ(access(path.c_str(), R_OK), 0);
  }
  EXPECT_NE(access(path.c_str(), F_OK), 0);
}

// --- counting ---

TEST(Init, SecondInitCountsAndSaysSo) {
  EXPECT_IN_FRESH_PROCESS({
    CHILD_OK(aclInit(nullptr));
    CHILD_EQ(aclInit(nullptr), 100002);
    CHILD_EQ(aclGetRecentErrMsg() == nullptr, true);  // clients take it for success
    CHILD_OK(aclFinalize());
    CHILD_EQ(aclFinalize(), 100037);
  });
}

TEST(Init, FinalizeReferenceSubtractsOne) {
  EXPECT_IN_FRESH_PROCESS({
    uint64_t count = 7;
    CHILD_EQ(aclFinalizeReference(&count), 100037);
    CHILD_OK(aclInit(nullptr));
    CHILD_EQ(aclInit(nullptr), 100002);
    CHILD_OK(aclFinalizeReference(&count));
    CHILD_EQ(count, 1);
    CHILD_OK(aclFinalizeReference(nullptr));
    CHILD_EQ(aclFinalizeReference(nullptr), 100037);
  });
}

TEST(Init, InitFinalizeInitFinalizeIsLegal) {
  EXPECT_IN_FRESH_PROCESS({
    for (int round = 0; round < 3; ++round) {
      CHILD_OK(aclInit(nullptr));
      CHILD_OK(aclFinalize());
    }
  });
}

TEST(Init, ManyThreadsInitOnce) {
  EXPECT_IN_FRESH_PROCESS({
    std::atomic<int> first{0};
    std::vector<std::thread> threads;
    for (int i = 0; i < 8; ++i) {
      threads.emplace_back([&] { first += aclInit(nullptr) == ACL_SUCCESS; });
    }
    for (auto& thread : threads) thread.join();
    CHILD_EQ(first.load(), 1);
    uint64_t count = 0;
    CHILD_OK(aclFinalizeReference(&count));
    CHILD_EQ(count, 7);
  });
}

TEST(Init, RuntimeWorksWithoutInit) {
  EXPECT_IN_FRESH_PROCESS({
    CHILD_OK(aclrtSetDevice(0));
    aclrtStream stream = nullptr;
    CHILD_OK(aclrtCreateStream(&stream));
    CHILD_OK(aclrtSynchronizeStream(stream));
  });
}

// --- configuration ---

TEST(Config, NullEmptyAndBracesMeanDefaults) {
  EXPECT_IN_FRESH_PROCESS({
    const ConfigFile file("{}");
    CHILD_OK(aclInit(nullptr));
    CHILD_OK(aclFinalize());
    CHILD_OK(aclInit(""));
    CHILD_OK(aclFinalize());
    CHILD_OK(aclInit(file.c_str()));
  });
}

TEST(Config, MissingFile) {
  EXPECT_IN_FRESH_PROCESS({
    CHILD_EQ(aclInit("/nonexistent/acl.json"), 100003);
    CHILD_EQ(strstr(aclGetRecentErrMsg(), "/nonexistent/acl.json") != nullptr, true);
    CHILD_EQ(aclInit("/"), 100003);
    CHILD_OK(aclInit(nullptr));  // the failed ones did not count
  });
}

TEST(Config, MalformedFile) {
  EXPECT_IN_FRESH_PROCESS({
    CHILD_EQ(aclInit(ConfigFile("{\"dump\": ").c_str()), 100006);
    CHILD_EQ(aclInit(ConfigFile("[1, 2]").c_str()), 100006);
  });
}

TEST(Config, NestingLimit) {
  EXPECT_IN_FRESH_PROCESS({
    std::string ten = "{\"a\":" + std::string(10, '[') + std::string(10, ']') + "}";
    std::string eleven = "{\"a\":" + std::string(11, '[') + std::string(11, ']') + "}";
    std::string quoted = "{\"a\":\"" + std::string(50, '{') + "\\\"" + std::string(50, '[') + "\"}";
    std::string deep(1000000, '[');
    CHILD_EQ(aclInit(ConfigFile(eleven).c_str()), 100006);
    CHILD_EQ(aclInit(ConfigFile(deep).c_str()), 100006);
    CHILD_OK(aclInit(ConfigFile(ten).c_str()));
    CHILD_OK(aclFinalize());
    CHILD_EQ(aclInit(ConfigFile(quoted).c_str()), 100000);  // fine, but not the first one
  });
}

TEST(Config, KnownAndUnknownKeysAreAccepted) {
  EXPECT_IN_FRESH_PROCESS({
    CHILD_OK(aclInit(
        ConfigFile(R"({"dump": {"dump_path": "/tmp", "dump_list": []}, "max_opqueue_num": "20000",
      "StackSize": {"aicore_stack_size": 32768}, "profiler": {"switch": "off"}, "whatever": 1})")
            .c_str()));
  });
}

TEST(Config, MustBeTheSameAfterFinalize) {
  EXPECT_IN_FRESH_PROCESS({
    CHILD_OK(aclInit(nullptr));
    CHILD_OK(aclFinalize());
    CHILD_EQ(aclInit(ConfigFile("{\"max_opqueue_num\": \"1\"}").c_str()), 100000);
    CHILD_OK(aclInit(ConfigFile(" { } ").c_str()));
  });
}

TEST(Config, DefaultDeviceIsSelectedImplicitly) {
  EXPECT_IN_FRESH_PROCESS({
    int32_t device = -1;
    CHILD_EQ(aclrtGetDevice(&device), 107002);
    CHILD_OK(aclInit(ConfigFile("{\"defaultDevice\": {\"default_device\": \"2\"}}").c_str()));
    aclrtStream stream = nullptr;
    CHILD_OK(aclrtCreateStream(&stream));
    CHILD_OK(aclrtGetDevice(&device));
    CHILD_EQ(device, 2);
    CHILD_OK(aclrtSetDevice(1));
    CHILD_OK(aclrtGetDevice(&device));
    CHILD_EQ(device, 1);
  });
}

TEST(Config, DefaultDeviceMustExist) {
  EXPECT_IN_FRESH_PROCESS({
    CHILD_EQ(aclInit(ConfigFile("{\"defaultDevice\": {\"default_device\": \"4\"}}").c_str()),
             100000);
    CHILD_EQ(aclInit(ConfigFile("{\"defaultDevice\": 1}").c_str()), 100000);
  });
}

TEST(Config, ErrorTextOfTheProcess) {
  EXPECT_IN_FRESH_PROCESS({
    CHILD_OK(aclInit(ConfigFile("{\"err_msg_mode\": \"1\"}").c_str()));
    InNewThread([] { CHILD_EQ(aclrtSetDevice(99), 107001); });
    const char* text = aclGetRecentErrMsg();
    CHILD_EQ(text && strstr(text, "aclrtSetDevice"), true);
  });
}

TEST(Config, ErrorModeMustBeZeroOrOne) {
  EXPECT_IN_FRESH_PROCESS(
      { CHILD_EQ(aclInit(ConfigFile("{\"err_msg_mode\": \"2\"}").c_str()), 100000); });
}

TEST(AclnnInit, SucceedsWithAnyContent) {
  EXPECT_IN_FRESH_PROCESS({
    CHILD_OK(aclnnInit(nullptr));
    CHILD_OK(aclnnInit(ConfigFile("{\"dump\": {\"dump_scene\": \"lite_exception\"}}").c_str()));
    CHILD_EQ(aclnnInit("/nonexistent.json"), 161002);
    CHILD_OK(aclInit(nullptr));
    CHILD_OK(aclnnFinalize());
    CHILD_OK(aclFinalize());
    CHILD_OK(aclnnFinalize());
  });
}

// --- hooks ---

struct Seen {
  int calls = 0;
  std::string text;
};
aclError OnInit(const char* text, size_t length, void* data) {
  auto* seen = static_cast<Seen*>(data);
  ++seen->calls;
  seen->text.assign(text, length);
  return ACL_SUCCESS;
}
aclError OnFinalize(void* data) {
  ++static_cast<Seen*>(data)->calls;
  return ACL_SUCCESS;
}

TEST(Hooks, RunInsideInitOrAtOnce) {
  EXPECT_IN_FRESH_PROCESS({
    Seen before, after, end;
    CHILD_OK(aclInitCallbackRegister(ACL_REG_TYPE_OTHER, OnInit, &before));
    CHILD_EQ(before.calls, 0);
    CHILD_OK(aclInit(ConfigFile("{\"a\":1}").c_str()));
    CHILD_EQ(before.calls, 1);
    CHILD_EQ(before.text == "{\"a\":1}", true);
    CHILD_OK(aclInitCallbackRegister(ACL_REG_TYPE_OTHER, OnInit, &after));
    CHILD_EQ(after.calls, 1);
    CHILD_OK(aclFinalizeCallbackRegister(ACL_REG_TYPE_OTHER, OnFinalize, &end));
    CHILD_OK(aclInitCallbackUnRegister(ACL_REG_TYPE_OTHER, OnInit));
    CHILD_OK(aclFinalize());
    CHILD_EQ(end.calls, 1);
    CHILD_OK(aclFinalizeCallbackUnRegister(ACL_REG_TYPE_OTHER, OnFinalize));
    CHILD_EQ(aclFinalizeCallbackUnRegister(ACL_REG_TYPE_OTHER, OnFinalize), 100000);
    CHILD_EQ(aclInitCallbackRegister(ACL_REG_TYPE_OTHER, nullptr, nullptr), 100000);
  });
}

// --- exit and fork ---

TEST(Hooks, AFailureAtTheStartLeavesNothingInitialised) {
  EXPECT_IN_FRESH_PROCESS({
    int calls = 0;
    int32_t device = -1;
    const aclInitCallbackFunc fail_once = [](const char*, size_t, void* data) -> aclError {
      return ++*static_cast<int*>(data) == 1 ? 100001 : ACL_SUCCESS;
    };
    const ConfigFile config("{\"defaultDevice\": {\"default_device\": \"0\"}}");
    CHILD_OK(aclInitCallbackRegister(ACL_REG_TYPE_OTHER, fail_once, &calls));
    CHILD_EQ(aclInit(config.c_str()), 100001);
    CHILD_EQ(aclrtGetDevice(&device), 107002);
    CHILD_EQ(aclFinalize(), 100037);
    CHILD_OK(
        aclInit(ConfigFile("{\"a\": 1, \"defaultDevice\": {\"default_device\": \"0\"}}").c_str()));
    CHILD_EQ(calls, 2);
    CHILD_OK(aclrtGetDevice(&device));
    CHILD_EQ(device, 0);
    CHILD_OK(aclFinalize());
  });
}

TEST(Hooks, AFailureAtTheEndStopsNoOther) {
  EXPECT_IN_FRESH_PROCESS({
    Seen end;
    int32_t device = -1;
    const aclFinalizeCallbackFunc fail = [](void*) -> aclError { return 100001; };
    CHILD_OK(aclInit(ConfigFile("{\"defaultDevice\": {\"default_device\": \"0\"}}").c_str()));
    CHILD_OK(aclFinalizeCallbackRegister(ACL_REG_TYPE_OTHER, fail, nullptr));
    CHILD_OK(aclFinalizeCallbackRegister(ACL_REG_TYPE_OTHER, OnFinalize, &end));
    CHILD_EQ(aclFinalize(), 100001);
    CHILD_EQ(end.calls, 1);
    CHILD_EQ(aclrtGetDevice(&device), 107002);  // no default device any more
    CHILD_EQ(aclFinalize(), 100037);
  });
}

void SleepForever(void*) {
  while (true) pause();
}

TEST(Exit, CleanWithWorkPending) {
  EXPECT_IN_FRESH_PROCESS({
    CHILD_OK(aclInit(nullptr));
    CHILD_OK(aclrtSetDevice(0));
    for (int i = 0; i < 4; ++i) {
      aclrtStream stream = nullptr;
      CHILD_OK(aclrtCreateStream(&stream));
      CHILD_OK(aclrtLaunchHostFunc(stream, SleepForever, nullptr));
      CHILD_EQ(SubmitWork(stream, FailingWork(1, kLarge)).code(), 0);
    }
  });
}

TEST(Exit, FailuresInStaticDestructors) {
  EXPECT_IN_FRESH_PROCESS({
    struct AtEnd {
      ~AtEnd() {
        aclrtFree(nullptr);
        aclGetRecentErrMsg();
      }
    };
    static AtEnd of_process;
    static thread_local AtEnd of_thread;
    (void)&of_process;
    (void)&of_thread;
    CHILD_OK(aclInit(nullptr));
    CHILD_OK(aclrtSetDevice(0));
    for (int i = 0; i < 3; ++i) CHILD_EQ(aclrtFree(nullptr) != ACL_SUCCESS, true);
    CHILD_OK(aclFinalize());
  });
}

TEST(Exit, DestroyAfterFinalize) {
  EXPECT_IN_FRESH_PROCESS({
    CHILD_OK(aclInit(nullptr));
    CHILD_OK(aclrtSetDevice(0));
    aclrtStream stream = nullptr;
    aclrtEvent event = nullptr;
    CHILD_OK(aclrtCreateStream(&stream));
    CHILD_OK(aclrtCreateEvent(&event));
    void* memory = nullptr;
    CHILD_OK(aclrtMalloc(&memory, 1024, ACL_MEM_MALLOC_HUGE_FIRST));
    CHILD_OK(aclrtResetDevice(0));
    CHILD_OK(aclFinalize());
    CHILD_OK(aclrtFree(memory));
    CHILD_OK(aclrtDestroyEvent(event));
    CHILD_EQ(aclrtDestroyStream(stream), 107017);  // the reset released it
  });
}

TEST(Fork, ChildDoesNotHang) {
  ANYACL_CPU_ONLY("CUDA does not work in a child of fork");
  ANYACL_FORKS_BESIDE_THREADS();
  EXPECT_IN_FRESH_PROCESS({
    CHILD_OK(aclrtSetDevice(0));
    aclrtStream stream = nullptr;
    CHILD_OK(aclrtCreateStream(&stream));
    CHILD_OK(aclrtLaunchHostFunc(stream, SleepForever, nullptr));
    CHILD_EQ(SubmitWork(stream, FailingWork(1, kLarge)).code(), 0);
    const pid_t child = fork();
    if (child == 0) {
      alarm(30);
      CHILD_OK(aclrtSynchronizeStream(stream));  // what was queued is gone
      std::vector<int> order;
      CHILD_EQ(SubmitWork(stream, AppendWork(&order, 1, kLarge)).code(), 0);
      CHILD_OK(aclrtSynchronizeStream(stream));
      CHILD_EQ(order.size(), 1);
      CHILD_OK(aclrtDestroyStream(stream));
      CHILD_OK(aclrtResetDevice(0));
      _exit(0);
    }
    int status = 0;
    CHILD_EQ(waitpid(child, &status, 0), child);
    CHILD_EQ(status, 0);
  });
}

// --- versions, product ---

TEST(Version, OneCannVersionEverywhere) {
  int32_t major = 0, minor = 0, patch = 0, number = 0;
  EXPECT_EQ(aclrtGetVersion(&major, &minor, &patch), ACL_SUCCESS);
  EXPECT_EQ(major, 1);
  EXPECT_EQ(minor, 17);
  EXPECT_EQ(patch, 0);
  EXPECT_EQ(aclrtGetVersion(nullptr, &minor, &patch), 100000);
  char runtime[] = "runtime";
  char text[ACL_PKG_VERSION_MAX_SIZE];
  EXPECT_EQ(aclsysGetVersionNum(runtime, &number), ACL_SUCCESS);
  EXPECT_EQ(number, 90000000);
  EXPECT_EQ(aclsysGetVersionStr(runtime, text), ACL_SUCCESS);
  EXPECT_STREQ(text, "9.0.0");
  aclCANNPackageVersion version;
  EXPECT_EQ(aclsysGetCANNVersion(ACL_PKG_NAME_DRIVER, &version), ACL_SUCCESS);
  EXPECT_STREQ(version.version, "9.0.0");
  EXPECT_STREQ(version.majorVersion, "9");
  EXPECT_EQ(aclsysGetCANNVersion(static_cast<aclCANNPackageName>(77), &version), 100000);
}

TEST(Product, DefaultIsTheNewest) {
  EXPECT_IN_FRESH_PROCESS({
    unsetenv("ANYACL_SOC");
    CHILD_EQ(strcmp(aclrtGetSocName(), "Ascend950"), 0);
    CHILD_EQ(CurrentProduct() == Product::kAscend950, true);
  });
}

TEST(Product, ComesFromTheEnvironment) {
  EXPECT_IN_FRESH_PROCESS({
    setenv("ANYACL_SOC", "Ascend910_9382", 1);
    CHILD_EQ(strcmp(aclrtGetSocName(), "Ascend910_9382"), 0);
    CHILD_EQ(CurrentProduct() == Product::kA3, true);
    CHILD_OK(aclInit(nullptr));
  });
}

TEST(Product, UnknownNameFailsInit) {
  EXPECT_IN_FRESH_PROCESS({
    setenv("ANYACL_SOC", "Ascend1", 1);
    CHILD_EQ(aclInit(nullptr), 100000);
    const char* text = aclGetRecentErrMsg();
    CHILD_EQ(text && strstr(text, "Ascend910B4-1") && strstr(text, "'Ascend1'"), true);
  });
}

TEST(Product, Names) {
  EXPECT_EQ(ProductOf("Ascend950DT_9582"), Product::kAscend950);
  EXPECT_EQ(ProductOf("Ascend910B2C"), Product::kA2);
  EXPECT_EQ(ProductOf("Ascend910_9363"), Product::kA3);
  EXPECT_EQ(ProductOf("Ascend910B"), Product::kTraining);
  EXPECT_EQ(ProductOf("Ascend910PremiumA"), Product::kTraining);
  EXPECT_EQ(ProductOf("Ascend310P7"), Product::kInference);
  EXPECT_EQ(ProductOf("Ascend310B4"), Product::k200I);
  EXPECT_FALSE(ProductOf("Ascend310P6"));
  EXPECT_FALSE(ProductOf(""));
}

// --- error text and last error ---

TEST(ErrorText, ReturnsAndClears) {
  aclGetRecentErrMsg();
  EXPECT_EQ(aclrtSetDevice(-1), 107001);
  const char* text = aclGetRecentErrMsg();
  ASSERT_NE(text, nullptr);
  EXPECT_NE(std::string(text).find("aclrtSetDevice: device must be in [0, 4), got -1"),
            std::string::npos)
      << text;
  EXPECT_EQ(aclGetRecentErrMsg(), nullptr);
}

TEST(ErrorText, NewestFirst) {
  aclGetRecentErrMsg();
  EXPECT_EQ(aclrtSetDevice(-1), 107001);
  EXPECT_EQ(aclrtSetDevice(-2), 107001);
  const std::string text = aclGetRecentErrMsg();
  EXPECT_LT(text.find("got -2"), text.find("got -1"));
}

TEST(ErrorText, BelongsToTheThread) {
  aclGetRecentErrMsg();
  InNewThread([] { EXPECT_EQ(aclrtSetDevice(-1), 107001); });
  EXPECT_EQ(aclGetRecentErrMsg(), nullptr);
}

// When the thread's own text is gone already.
TEST(ErrorText, FailuresAtTheEndOfAThreadHaveOne) {
  std::string text;
  InNewThread([&] {
    EXPECT_EQ(aclrtSetDevice(98), 107001);
    AtThreadEnd([&] {
      if (aclrtSetDevice(99) == 107001) text = RecentText();
    });
  });
  EXPECT_NE(text.find("99"), std::string::npos) << text;
}

TEST(ErrorText, DoesNotPileUp) {
  for (int i = 0; i < 10000; ++i) EXPECT_EQ(aclrtSetDevice(-1), 107001);
  EXPECT_LT(std::string(aclGetRecentErrMsg()).size(), 64u * 1024);
}

TEST(LastError, PeekKeepsGetClears) {
  aclrtGetLastError(ACL_RT_THREAD_LEVEL);
  EXPECT_EQ(aclrtSetDevice(-1), 107001);
  EXPECT_EQ(aclrtPeekAtLastError(ACL_RT_THREAD_LEVEL), 107001);
  InNewThread([] { EXPECT_EQ(aclrtPeekAtLastError(ACL_RT_THREAD_LEVEL), ACL_SUCCESS); });
  EXPECT_EQ(aclrtGetLastError(ACL_RT_THREAD_LEVEL), 107001);
  EXPECT_EQ(aclrtGetLastError(ACL_RT_THREAD_LEVEL), ACL_SUCCESS);
  EXPECT_EQ(aclrtGetLastError(static_cast<aclrtLastErrLevel>(1)), 100000);
  EXPECT_EQ(aclrtPeekAtLastError(static_cast<aclrtLastErrLevel>(1)), 100000);
  aclrtGetLastError(ACL_RT_THREAD_LEVEL);
}

}  // namespace
}  // namespace anyacl
