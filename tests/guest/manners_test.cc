// SPDX-License-Identifier: Apache-2.0
// Copyright The AnyACL Authors
//
// What else a program may do to its process: have no threads, keys or stack to give, let its main thread go first, end threads
// and throw in its functions, have its log folder shared with others, inherit an environment full of nonsense. What concerns the
// whole process happens in a program of its own: this one, started again with a name as its argument.
#include <dlfcn.h>
#include <fcntl.h>
#include <gtest/gtest.h>
#include <pthread.h>
#include <signal.h>
#include <sys/auxv.h>
#include <sys/stat.h>
#include <sys/wait.h>
#include <unistd.h>

#include <algorithm>
#include <atomic>
#include <cerrno>
#include <cstdio>
#include <cstdlib>
#include <cstring>
#include <filesystem>
#include <fstream>
#include <functional>
#include <map>
#include <stdexcept>
#include <string>
#include <string_view>
#include <thread>
#include <vector>

#include "acl/acl.h"
#include "core/env.h"
#include "harness/family.h"
#include "harness/loose_call.h"
#include "ops/operators.h"
#include "plan/elu_call.h"
#include "run_tests.h"
#include "sanitized.h"

namespace {

std::atomic<bool> no_threads{false};
std::atomic<int> refused{0};  // threads

}  // namespace

// Instead of the system's, which it calls.
extern "C" int pthread_create(pthread_t* thread, const pthread_attr_t* attributes, void* (*main)(void*), void* argument) noexcept {
  using Create = int (*)(pthread_t*, const pthread_attr_t*, void* (*)(void*), void*);
  static const auto create = reinterpret_cast<Create>(dlsym(RTLD_NEXT, "pthread_create"));
  if (!no_threads) return create(thread, attributes, main, argument);
  ++refused;
  return EAGAIN;
}

namespace anyacl {
namespace {

namespace fs = std::filesystem;

// --- programs ---

// For use in one.
#define EXACT(call, wanted)                                                                                     \
  do {                                                                                                          \
    const long long anyacl_got = static_cast<long long>(call);                                                  \
    if (anyacl_got != static_cast<long long>(wanted)) {                                                         \
      std::fprintf(stderr, "%s:%d: %s gave %lld: %s\n", __FILE__, __LINE__, #call, anyacl_got, TakeText().c_str()); \
      _exit(1);                                                                                                 \
    }                                                                                                           \
  } while (false)
#define GOOD(call) EXACT(call, ACL_SUCCESS)

// The status of the program `name`.
int StatusOf(const char* name, const std::vector<std::string>& variables = {}, const char* file = "/proc/self/exe") {
  const pid_t child = fork();
  if (child == 0) {
    for (const std::string& variable : variables) putenv(strdup(variable.c_str()));
    execl(file, "manners_test", name, nullptr);
    _exit(127);
  }
  int status = -1;
  waitpid(child, &status, 0);
  return status;
}

class Folder {
 public:
  Folder() {
    char name[] = "/tmp/manners_test.XXXXXX";
    if (mkdtemp(name)) path_ = name;
  }
  ~Folder() { fs::remove_all(path_); }
  Folder(const Folder&) = delete;
  Folder& operator=(const Folder&) = delete;
  const std::string& path() const { return path_; }

 private:
  std::string path_;
};

aclrtStream StreamOfDevice0() {
  aclrtStream stream = nullptr;
  GOOD(aclrtSetDevice(0));
  GOOD(aclrtCreateStream(&stream));
  return stream;
}

void RunLargeCall(aclrtStream stream) {
  EluCall call(1 << 10, 1 << 10);
  GOOD(call.TryPlan());
  GOOD(call.Run(stream));
  GOOD(aclrtSynchronizeStream(stream));
  EXACT(call.Wrong(), 0);
}

// --- no threads ---

void HostFunctionQueuesWithoutThreads() {
  static aclrtStream stream = StreamOfDevice0();
  static int calls = 0;
  no_threads = true;
  const auto outer = [](void*) {
    GOOD(aclrtLaunchHostFunc(stream, [](void*) { ++calls; }, nullptr));
    EXACT(calls, 0);  // in its turn
  };
  GOOD(aclrtLaunchHostFunc(stream, outer, nullptr));
  GOOD(aclrtSynchronizeStream(stream));
  EXACT(calls, 1);
  EXACT(refused > 0, true);
}

void BlockingCallbackWithoutThreads() {
  aclrtStream stream = StreamOfDevice0();
  static int calls = 0;
  GOOD(aclrtSubscribeReport(static_cast<uint64_t>(pthread_self()), stream));
  no_threads = true;
  GOOD(aclrtLaunchCallback([](void*) { ++calls; }, nullptr, ACL_CALLBACK_BLOCK, stream));
  GOOD(aclrtSynchronizeStream(stream));
  EXACT(calls, 1);
  GOOD(aclrtLaunchCallback([](void*) { ++calls; }, nullptr, ACL_CALLBACK_NO_BLOCK, stream));
  GOOD(aclrtSynchronizeStream(stream));
  GOOD(aclrtProcessReport(1000));
  EXACT(calls, 2);
}

void KernelsWithoutThreads() {
  aclrtStream stream = StreamOfDevice0();
  sigset_t mask, after;
  sigemptyset(&mask);
  sigaddset(&mask, SIGUSR1);
  pthread_sigmask(SIG_SETMASK, &mask, nullptr);
  no_threads = true;
  RunLargeCall(stream);
  EXACT(refused > 0, true);
  pthread_sigmask(SIG_SETMASK, nullptr, &after);
  for (const int number : {SIGUSR1, SIGUSR2, SIGTERM, SIGINT, SIGCHLD}) {
    EXACT(sigismember(&after, number), sigismember(&mask, number));
  }
  no_threads = false;  // and when there are some again
  RunLargeCall(stream);
}

// --- no keys ---

// A host function that waits for its own stream, where no thread can keep anything.
void OwnStreamWithoutKeys(bool late) {
  aclrtStream stream = late ? StreamOfDevice0() : nullptr;
  pthread_key_t key;
  while (pthread_key_create(&key, nullptr) == 0) {
  }
  if (!late) {  // a code, for lack of a place to remember it
    if (aclrtSetDevice(0) != 0 || aclrtCreateStream(&stream) != 0) return;
  }
  static int32_t code = 0;
  GOOD(aclrtLaunchHostFunc(stream, [](void* s) { code = aclrtSynchronizeStream(s); }, stream));
  GOOD(aclrtSynchronizeStream(stream));
  EXACT(code, 107000);
}

// --- leaving ---

void MainThreadEndsFirst() {
  aclrtStream stream = StreamOfDevice0();
  RunLargeCall(stream);
  GOOD(aclrtLaunchHostFunc(stream, [](void*) {}, nullptr));
  pthread_exit(nullptr);
}

// --- the log ---

std::string LogName() { return std::string(std::getenv("ASCEND_PROCESS_LOG_PATH")) + "/anyacl-" + std::to_string(getpid()) + ".log"; }

void LogThroughALink() {
  const fs::path victim = fs::path(LogName()).parent_path() / "victim";
  fs::create_symlink(victim, LogName());
  aclAppLog(ACL_ERROR, "Func", "file.cc", 7, "%s", "text");
  EXACT(fs::exists(victim), false);
}

void LogIsNotInherited() {
  aclAppLog(ACL_ERROR, "Func", "file.cc", 7, "%s", "text");
  int open = 0;
  for (int file = 0; file < 100; ++file) {
    std::error_code none;
    if (fs::read_symlink("/proc/self/fd/" + std::to_string(file), none) != LogName()) continue;
    ++open;
    EXACT(fcntl(file, F_GETFD) & FD_CLOEXEC, FD_CLOEXEC);
  }
  EXACT(open, 1);
}

void TakesNonsense() {
  uint32_t devices = 0;
  size_t free = 0, total = 0;
  GOOD(aclrtGetDeviceCount(&devices));
  EXACT(devices, 1);
  GOOD(aclrtSetDevice(0));
  GOOD(aclrtGetMemInfo(ACL_HBM_MEM, &free, &total));
  EXACT(total > size_t{64} << 20, true);  // and not divided by so many
  RunLargeCall(nullptr);
}

constexpr int kNotTried = 77;

void AsksAsAnotherUser() {
  if (!getauxval(AT_SECURE)) exit(kNotTried);
  EXACT(std::getenv("ANYACL_LOG") != nullptr, true);
  EXACT(env::IsSet(env::Var::ANYACL_LOG), false);
}

// --- small stacks ---

// Short calls of every operator, on a thread that has as much stack as the smallest defaults there are. It is given more, so
// that whoever needs it is named.
void CallsOnSmallStacks() {
  constexpr size_t kSmall = 32 << 10, kGiven = 1 << 20;
  constexpr unsigned char kUntouched = 0xa5;
  pthread_attr_t attributes;
  GOOD(pthread_attr_init(&attributes));
  GOOD(pthread_attr_setstacksize(&attributes, kSmall));
  GOOD(pthread_setattr_default_np(&attributes));  // for threads of the library
  static aclrtStream stream = StreamOfDevice0();
  static harness::LooseCall* call = nullptr;
  std::vector<unsigned char> stack(kGiven + 64);
  unsigned char* const begin = stack.data() + 64 - reinterpret_cast<uintptr_t>(stack.data()) % 64;
  GOOD(pthread_attr_setstack(&attributes, begin, kGiven));
  bool fit = true;
  for (const Operator* op : Operators()) {
    const harness::Subject* const subject = harness::FindSubject(op->contract.op());
    if (!subject) continue;
    harness::Calls calls(*op);
    subject->sample(calls);
    contract::CallSpec spec;
    for (const harness::TestArg& arg : calls.all()[0].args) spec.args.push_back(arg.spec);
    harness::LooseCall loose(*op, spec, harness::LooseCall::Fill::kSmall);
    call = &loose;
    std::memset(begin, kUntouched, kGiven);
    pthread_t thread;
    const auto run = [](void*) -> void* {
      GOOD(aclrtSetDevice(0));
      call->Execute(stream);
      GOOD(aclrtResetDevice(0));
      return nullptr;
    };
    GOOD(pthread_create(&thread, &attributes, run, nullptr));
    GOOD(pthread_join(thread, nullptr));
    const auto left = static_cast<size_t>(std::find_if(begin, begin + kGiven, [](unsigned char c) { return c != kUntouched; }) - begin);
    if (kGiven - left <= kSmall) continue;
    std::fprintf(stderr, "%s needs %zu bytes of stack\n", op->contract.op(), kGiven - left);
    fit = false;
  }
  EXACT(fit, true);
}

const std::map<std::string_view, std::function<void()>> programs = {
    {"host function without threads", HostFunctionQueuesWithoutThreads},
    {"callback without threads", BlockingCallbackWithoutThreads},
    {"kernels without threads", KernelsWithoutThreads},
    {"own stream without keys", [] { OwnStreamWithoutKeys(false); }},
    {"own stream without more keys", [] { OwnStreamWithoutKeys(true); }},
    {"main thread ends first", MainThreadEndsFirst},
    {"log through a link", LogThroughALink},
    {"log is not inherited", LogIsNotInherited},
    {"takes nonsense", TakesNonsense},
    {"asks as another user", AsksAsAnotherUser},
    {"calls on small stacks", CallsOnSmallStacks},
};

// --- tests ---

TEST(NoThreads, HostFunctionMayQueueOnItsOwnStream) { EXPECT_EQ(StatusOf("host function without threads"), 0); }
TEST(NoThreads, BlockingCallbackOfTheThreadThatServesItself) { EXPECT_EQ(StatusOf("callback without threads"), 0); }
TEST(NoThreads, KernelsRunAndTheSignalMaskStays) { EXPECT_EQ(StatusOf("kernels without threads"), 0); }

TEST(NoKeys, WaitingForOnesOwnStreamIsNoticed) {
  EXPECT_EQ(StatusOf("own stream without keys"), 0);
  EXPECT_EQ(StatusOf("own stream without more keys"), 0);
}

class LeavingTest : public testing::Test {
 protected:
  void SetUp() override {
    ASSERT_EQ(aclrtSetDevice(0), ACL_SUCCESS);
    ASSERT_EQ(aclrtCreateStream(&stream_), ACL_SUCCESS);
  }
  void TearDown() override {
    EXPECT_EQ(aclrtDestroyStream(stream_), ACL_SUCCESS);
    EXPECT_EQ(aclrtResetDevice(0), ACL_SUCCESS);
  }
  aclrtStream stream_ = nullptr;
};

// When nothing but idle threads of ours is left.
TEST(Leaving, MainThreadMayGoFirst) { EXPECT_EQ(StatusOf("main thread ends first"), 0); }

TEST_F(LeavingTest, HostFunctionMayEndItsThread) {
  static std::atomic<int> calls;
  ASSERT_EQ(aclrtLaunchHostFunc(stream_, [](void*) { pthread_exit(nullptr); }, nullptr), ACL_SUCCESS);
  ASSERT_EQ(aclrtLaunchHostFunc(stream_, [](void*) { ++calls; }, nullptr), ACL_SUCCESS);
  EXPECT_EQ(aclrtSynchronizeStream(stream_), ACL_SUCCESS);
  EXPECT_EQ(calls, 1);
}

// A thread that serves the stream once with `callback`; what aclrtProcessReport said.
int32_t ServeOnce(aclrtStream stream, aclrtCallback callback) {
  int32_t code = 0;
  std::thread([&] {
    const uint64_t self = static_cast<uint64_t>(pthread_self());
    EXPECT_EQ(aclrtSetDevice(0), ACL_SUCCESS);
    EXPECT_EQ(aclrtSubscribeReport(self, stream), ACL_SUCCESS);
    EXPECT_EQ(aclrtLaunchCallback(callback, nullptr, ACL_CALLBACK_BLOCK, stream), ACL_SUCCESS);
    code = aclrtProcessReport(10'000);
    EXPECT_EQ(aclrtUnSubscribeReport(self, stream), ACL_SUCCESS);
    EXPECT_EQ(aclrtResetDevice(0), ACL_SUCCESS);
  }).join();
  return code;
}

TEST_F(LeavingTest, CallbackMayThrow) {
  EXPECT_NE(ServeOnce(stream_, [](void*) { throw std::runtime_error("theirs"); }), ACL_SUCCESS);
  EXPECT_EQ(aclrtSynchronizeStreamWithTimeout(stream_, 10'000), ACL_SUCCESS);
}

TEST_F(LeavingTest, CallbackMayEndItsThread) {
  ServeOnce(stream_, [](void*) { pthread_exit(nullptr); });
  EXPECT_EQ(aclrtSynchronizeStreamWithTimeout(stream_, 10'000), ACL_SUCCESS);
  EXPECT_EQ(aclrtResetDevice(0), ACL_SUCCESS);  // what the thread did not come to
}

TEST(Log, DoesNotFollowLinks) {
  const Folder folder;
  EXPECT_EQ(StatusOf("log through a link", {"ASCEND_PROCESS_LOG_PATH=" + folder.path()}), 0);
}

TEST(Log, IsNotInherited) {
  const Folder folder;
  EXPECT_EQ(StatusOf("log is not inherited", {"ASCEND_PROCESS_LOG_PATH=" + folder.path()}), 0);
}

TEST(Environment, NonsenseIsNamedAndHasNoEffect) {
  testing::internal::CaptureStderr();
  const int status = StatusOf("takes nonsense", {"ANYACL_DEVICES=5000", "ANYACL_THREADS=0x2", "ANYACL_SIMD=MMX", "ANYACL_LOG=loud"});
  const std::string text = testing::internal::GetCapturedStderr();
  EXPECT_EQ(status, 0) << text;
  for (const char* line : {"WARN ANYACL_DEVICES must be a number from 1 to 1024, got 5000\n", "WARN ANYACL_THREADS must be a number from 1 to 1024, got 0x2\n",
                           "WARN ANYACL_LOG must be one of error, warn, info, debug, got loud\n", "WARN ANYACL_SIMD=MMX is none of"}) {
    EXPECT_NE(text.find(line), text.npos) << line << "in\n" << text;
  }
}

// A user who starts a program that has the rights of another one.
TEST(Environment, IsNotAskedInASetUidProgram) {
  if (geteuid() != 0) GTEST_SKIP() << "only root can make one";
  const Folder folder;
  const std::string copy = folder.path() + "/manners_test";
  fs::copy_file("/proc/self/exe", copy);
  ASSERT_EQ(chmod(folder.path().c_str(), 0755), 0);
  ASSERT_EQ(chown(copy.c_str(), 65534, 65534), 0);
  ASSERT_EQ(chmod(copy.c_str(), 04755), 0);
  const int status = StatusOf("asks as another user", {"ANYACL_LOG=error"}, copy.c_str());
  if (WIFEXITED(status) && WEXITSTATUS(status) == kNotTried) GTEST_SKIP() << "the folder for temporary files allows none";
  EXPECT_EQ(status, 0);
}

TEST(SmallStacks, OperatorsFit) {
  if (kSanitized) GTEST_SKIP() << "a sanitizer makes frames several times as large";
  EXPECT_EQ(StatusOf("calls on small stacks"), 0);
}

}  // namespace
}  // namespace anyacl

int main(int argc, char** argv) {
  testing::InitGoogleTest(&argc, argv);
  anyacl::TakeArguments(argc, argv);
  if (argc < 2) return anyacl::RunTests();
  const auto program = anyacl::programs.find(argv[1]);
  if (program == anyacl::programs.end()) return anyacl::RunTests();
  alarm(60);
  program->second();
  return 0;
}
