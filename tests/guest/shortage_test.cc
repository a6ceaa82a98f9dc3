// SPDX-License-Identifier: Apache-2.0
// Copyright The AnyACL Authors
//
// Every allocation that a call makes is made to fail, once and from then on: the call returns a code with a text, nothing is
// lost, and with memory back the same call succeeds. A step of the scenario is first done in forked children, one for each
// allocation, because what is made at first use is made once in a process; then in this process, where nothing may leak.
#include <fmt/format.h>
#include <gtest/gtest.h>
#include <sys/mman.h>
#include <sys/wait.h>
#include <unistd.h>

#include <algorithm>
#include <chrono>
#include <cstdio>
#include <functional>
#include <optional>
#include <set>
#include <string>
#include <thread>
#include <vector>

#include "acl/acl.h"
#include "acl/acl_op_compiler.h"
#include "aclnn/acl_meta.h"
#include "aclnn/aclnn_base.h"
#include "allocator.h"
#include "harness/family.h"
#include "hccl/hccl.h"
#include "ops/operators.h"
#include "sanitized.h"

namespace anyacl {
namespace {

// Points of one step, and of one kind of failure, that are tried at most; spread evenly behind the first hundred.
constexpr int64_t kMostPoints = kSanitized ? 12 : 150;

std::set<std::string> entries;  // that the scenario has called
bool memory_is_back = true;     // no failure is wanted: every call must succeed
int64_t codes = 0;              // of calls that found no memory
std::string complaint;

void Complain(const std::string& text) {
  if (complaint.empty()) complaint = text;
}

// --- calls under watch ---

int32_t CodeOf(int32_t code) { return code; }
int32_t CodeOf(const void* pointer) { return pointer ? 0 : 1; }

// Calls the library with its allocations watched. After a failure of one, a call that did not succeed has a text, which needs
// no memory.
template <class Call>
auto Watched(const char* text, Call&& call) {
  if (memory_is_back) entries.insert(std::string(text, std::string(text).find('(')));
  const int64_t refused_before = allocator::Refused();
  const char* sentence = nullptr;
  const auto result = [&] {
    const allocator::Watch watch;
    const auto got = call();
    if (CodeOf(got) != 0) sentence = aclGetRecentErrMsg();
    return got;
  }();
  if (memory_is_back && CodeOf(result) != 0) {
    Complain(fmt::format("{} gave {} with memory at hand: {}", text, CodeOf(result), sentence ? sentence : ""));
  }
  if (CodeOf(result) != 0 && allocator::Refused() > refused_before) {
    ++codes;
    if (!sentence) Complain(fmt::format("{} gave {} without a text", text, CodeOf(result)));
  }
  return result;
}
#define IN(call) Watched(#call, [&] { return call; })
// Of functions that return nothing, or what may be null.
#define IN_ANY(call)         \
  Watched(#call, [&]() -> int32_t { \
    static_cast<void>(call); \
    return 0;                \
  })
// What a step must give back whatever failed before: tried again with memory.
#define GIVE_BACK(call)                                                           \
  do {                                                                            \
    if (IN(call) != 0 && (call) != 0) Complain(#call " fails with memory back"); \
  } while (false)

// --- the scenario ---

struct Step {
  std::string name;
  std::function<void()> run;
};

// A device, which later steps need.
void SelectDevice(int device = 0) {
  if (IN(aclrtSetDevice(device)) != 0 && aclrtSetDevice(device) != 0) Complain("no device");
}
void ReleaseDevice(int device = 0) { GIVE_BACK(aclrtResetDevice(device)); }

void Start() {
  if (IN(aclInit(nullptr)) == 0) GIVE_BACK(aclFinalize());
  if (IN(aclnnInit(nullptr)) == 0) GIVE_BACK(aclnnFinalize());
  IN_ANY(aclrtGetSocName());
  int32_t major = 0, minor = 0, patch = 0;
  IN(aclrtGetVersion(&major, &minor, &patch));
  IN_ANY(aclAppLog(ACL_INFO, "", "", 1, "%s", "text"));
  aclrtExceptionInfoCallback none = [](aclrtExceptionInfo*) {};
  IN(aclrtSetExceptionInfoCallback(nullptr));
  if (IN(aclrtExceptionInfoCallbackRegister(none)) == 0) GIVE_BACK(aclrtExceptionInfoCallbackUnregister(none));
}

void Device() {
  SelectDevice();
  int32_t device = 0;
  uint32_t count = 0, flags = 0;
  int32_t active = 0;
  int64_t value = 0;
  aclrtUuid uuid;
  IN(aclrtGetDevice(&device));
  IN(aclrtGetDeviceCount(&count));
  IN(aclrtGetDeviceInfo(0, ACL_DEV_ATTR_AICORE_CORE_NUM, &value));
  IN(aclrtDeviceGetUuid(0, &uuid));
  IN(aclrtGetPrimaryCtxState(0, nullptr, &active));
  static_cast<void>(flags);
  aclrtContext current = nullptr, context = nullptr;
  IN(aclrtGetCurrentContext(&current));
  if (IN(aclrtCreateContext(&context, 0)) == 0) {
    IN(aclrtSetCurrentContext(context));
    IN(aclrtCtxSetSysParamOpt(ACL_OPT_DETERMINISTIC, 0));
    GIVE_BACK(aclrtDestroyContext(context));
  }
  SelectDevice();
  ReleaseDevice();
  IN(aclrtSetSysParamOpt(ACL_OPT_DETERMINISTIC, 0));
  ReleaseDevice();
}

// For what follows: a stream, and whether there is one.
struct Stream {
  explicit Stream(int on = 0) : device(on) {
    SelectDevice(device);
    IN(aclrtCreateStream(&handle));
  }
  ~Stream() {
    SelectDevice(device);  // others may have been, meanwhile
    if (handle) GIVE_BACK(aclrtDestroyStream(handle));
    ReleaseDevice(device);
    ReleaseDevice(device);
  }
  Stream(const Stream&) = delete;
  Stream& operator=(const Stream&) = delete;
  explicit operator bool() const { return handle != nullptr; }
  const int device;
  aclrtStream handle = nullptr;
};

void Streams() {
  const Stream stream;
  if (!stream) return;
  aclrtStreamStatus status;
  int32_t id = 0;
  IN(aclrtStreamQuery(stream.handle, &status));
  IN(aclrtStreamGetId(stream.handle, &id));
  IN(aclrtSynchronizeStream(stream.handle));
  IN(aclrtSynchronizeDevice());
}

void Nothing(void*) {}

void HostFunctions() {
  const Stream stream;
  if (!stream) return;
  IN(aclrtLaunchHostFunc(stream.handle, Nothing, nullptr));
  IN(aclrtSynchronizeStream(stream.handle));
  const uint64_t thread = static_cast<uint64_t>(pthread_self());
  if (IN(aclrtSubscribeReport(thread, stream.handle)) != 0) return;
  if (IN(aclrtLaunchCallback(Nothing, nullptr, ACL_CALLBACK_NO_BLOCK, stream.handle)) == 0) {
    const bool done = IN(aclrtSynchronizeStream(stream.handle)) == 0;
    if (done) IN(aclrtProcessReport(100));
  }
  GIVE_BACK(aclrtUnSubscribeReport(thread, stream.handle));
}

void Events() {
  const Stream stream, other;
  if (!stream || !other) return;
  aclrtEvent first = nullptr, second = nullptr;
  IN(aclrtCreateEvent(&first));
  IN(aclrtCreateEventExWithFlag(&second, ACL_EVENT_SYNC));
  aclrtEventRecordedStatus status;
  float ms = 0;
  if (first && second && IN(aclrtRecordEvent(first, stream.handle)) == 0) {
    IN(aclrtLaunchHostFunc(stream.handle, Nothing, nullptr));
    if (IN(aclrtRecordEvent(second, stream.handle)) == 0) {
      IN(aclrtStreamWaitEvent(other.handle, second));
      if (IN(aclrtSynchronizeEvent(second)) == 0) IN(aclrtEventElapsedTime(&ms, first, second));
      IN(aclrtQueryEventStatus(second, &status));
    }
    IN(aclrtResetEvent(first, stream.handle));
    IN(aclrtSynchronizeStream(stream.handle));
    IN(aclrtSynchronizeStream(other.handle));
  }
  if (first) GIVE_BACK(aclrtDestroyEvent(first));
  if (second) GIVE_BACK(aclrtDestroyEvent(second));
}

void Memory() {
  const Stream stream;
  if (!stream) return;
  void *small = nullptr, *large = nullptr, *pinned = nullptr;
  IN(aclrtMalloc(&small, 1000, ACL_MEM_MALLOC_HUGE_FIRST));
  IN(aclrtMalloc(&large, 3 << 20, ACL_MEM_MALLOC_HUGE_FIRST));
  IN(aclrtMallocHost(&pinned, 5000));
  size_t free_bytes = 0, total = 0, outputs = 0;
  aclrtMemUsageInfo usage;
  IN(aclrtGetMemInfo(ACL_HBM_MEM, &free_bytes, &total));
  IN(aclrtGetMemUsageInfo(0, &usage, 1, &outputs));
  if (small && pinned) {
    IN(aclrtMemset(small, 1000, 1, 1000));
    IN(aclrtMemcpy(pinned, 1000, small, 1000, ACL_MEMCPY_DEVICE_TO_HOST));
    IN(aclrtMemsetAsync(small, 1000, 2, 1000, stream.handle));
    IN(aclrtMemcpyAsync(pinned, 1000, small, 1000, ACL_MEMCPY_DEVICE_TO_HOST, stream.handle));
    IN(aclrtSynchronizeStream(stream.handle));
    IN(aclrtHostRegisterV2(pinned, 4096, ACL_HOST_REG_MAPPED));
    IN(aclrtValueWrite(small, 1, 0, stream.handle));
    aclrtPtrAttributes attributes;
    IN(aclrtPointerGetAttributes(small, &attributes));
  }
  if (large) IN(aclrtMemsetAsync(large, 3 << 20, 1, 3 << 20, stream.handle));
  if (large) GIVE_BACK(aclrtFree(large));  // while work that uses it may be queued
  GIVE_BACK(aclrtSynchronizeStream(stream.handle));
  if (small) GIVE_BACK(aclrtFree(small));
  if (pinned) GIVE_BACK(aclrtFreeHost(pinned));
}

void MappedMemory() {
  const Stream stream;
  constexpr size_t kBytes = 2 << 20;
  aclrtPhysicalMemProp prop = {};
  prop.handleType = ACL_MEM_HANDLE_TYPE_NONE;
  prop.allocationType = ACL_MEM_ALLOCATION_TYPE_PINNED;
  prop.memAttr = ACL_HBM_MEM_HUGE;
  prop.location = {0, ACL_MEM_LOCATION_TYPE_DEVICE};
  void* range = nullptr;
  aclrtDrvMemHandle physical = nullptr;
  IN(aclrtReserveMemAddress(&range, kBytes, 0, nullptr, 1));
  IN(aclrtMallocPhysical(&physical, kBytes, &prop, 0));
  if (range && physical && IN(aclrtMapMem(range, kBytes, 0, physical, 0)) == 0) GIVE_BACK(aclrtUnmapMem(range));
  if (physical) GIVE_BACK(aclrtFreePhysical(physical));
  if (range) GIVE_BACK(aclrtReleaseMemAddress(range));
}

void Captures() {
  const Stream stream;
  void* block = nullptr;
  IN(aclrtMalloc(&block, 64, ACL_MEM_MALLOC_HUGE_FIRST));
  aclmdlRI model = nullptr;
  if (stream && block && IN(aclmdlRICaptureBegin(stream.handle, ACL_MODEL_RI_CAPTURE_MODE_RELAXED)) == 0) {
    IN(aclrtMemsetAsync(block, 64, 1, 64, stream.handle));
    aclmdlRICaptureStatus status;
    IN(aclmdlRICaptureGetInfo(stream.handle, &status, nullptr));
    if (IN(aclmdlRICaptureEnd(stream.handle, &model)) != 0) {
      aclmdlRI late = nullptr;  // still captured, or ended without a model
      if (aclmdlRICaptureEnd(stream.handle, &late) == 0) aclmdlRIDestroy(late);
      model = nullptr;
    }
  }
  if (model) {
    IN(aclmdlRIExecuteAsync(model, stream.handle));
    GIVE_BACK(aclrtSynchronizeStream(stream.handle));
    GIVE_BACK(aclmdlRIDestroy(model));
  }
  if (block) GIVE_BACK(aclrtFree(block));
}

void Objects() {
  const int64_t dims[] = {2, 3};
  const bool bools[] = {true, false};
  const float floats[] = {1, 2};
  float one = 1;
  const auto tensor = IN(aclCreateTensor(dims, 2, ACL_FLOAT, nullptr, 0, ACL_FORMAT_ND, dims, 2, nullptr));
  const auto scalar = IN(aclCreateScalar(&one, ACL_FLOAT));
  const auto int_array = IN(aclCreateIntArray(dims, 2));
  const auto float_array = IN(aclCreateFloatArray(floats, 2));
  const auto bool_array = IN(aclCreateBoolArray(bools, 2));
  int64_t* view = nullptr;
  uint64_t rank = 0;
  if (tensor && IN(aclGetViewShape(tensor, &view, &rank)) == 0) delete[] view;
  const auto tensors = tensor ? IN(aclCreateTensorList(&tensor, 1)) : nullptr;
  const auto scalars = scalar ? IN(aclCreateScalarList(&scalar, 1)) : nullptr;
  if (tensors) {
    GIVE_BACK(aclDestroyTensorList(tensors));
  } else if (tensor) {
    GIVE_BACK(aclDestroyTensor(tensor));
  }
  if (scalars) {
    GIVE_BACK(aclDestroyScalarList(scalars));
  } else if (scalar) {
    GIVE_BACK(aclDestroyScalar(scalar));
  }
  if (int_array) GIVE_BACK(aclDestroyIntArray(int_array));
  if (float_array) GIVE_BACK(aclDestroyFloatArray(float_array));
  if (bool_array) GIVE_BACK(aclDestroyBoolArray(bool_array));
}

void Descriptions() {
  const int64_t dims[] = {2, 3};
  char value[16];
  const auto desc = IN(aclCreateTensorDesc(ACL_FLOAT, 2, dims, ACL_FORMAT_ND));
  const auto buffer = IN(aclCreateDataBuffer(value, sizeof(value)));
  if (desc) {
    IN_ANY(aclSetTensorDescName(desc, "a name that is longer than what a string keeps inside"));
    IN_ANY(aclGetTensorDescName(desc));
    IN(aclSetTensorShape(desc, 2, dims));
    IN(aclSetTensorConst(desc, value, sizeof(value)));
    IN_ANY(aclDestroyTensorDesc(desc));
  }
  if (buffer) GIVE_BACK(aclDestroyDataBuffer(buffer));
  if (IN(aclSetCompileopt(ACL_OP_JIT_COMPILE, "disable")) == 0) IN(aclGetCompileopt(ACL_OP_JIT_COMPILE, value, sizeof(value)));
}

// A failure on a stream's own thread, with somebody who wants to hear of it.
void Failures() {
  const Stream stream;
  if (!stream) return;
  aclrtExceptionInfoCallback listener = [](aclrtExceptionInfo*) {};
  const bool listens = IN(aclrtExceptionInfoCallbackRegister(listener)) == 0;
  const auto fail = [](void*) { throw std::bad_alloc(); };
  if (IN(aclrtLaunchHostFunc(stream.handle, fail, nullptr)) == 0) {
    const allocator::Watch watch;
    aclrtSynchronizeStream(stream.handle);  // its failure, or a lack of memory for the sentence
    aclGetRecentErrMsg();
  }
  if (listens) GIVE_BACK(aclrtExceptionInfoCallbackUnregister(listener));
}

// --- collectives ---

// What one rank asks of its communicator.
void AskCommunicator(HcclComm comm) {
  uint32_t ranks = 0, rank = 0;
  char name[HCCL_COMM_NAME_MAX_LENGTH] = {};
  HcclResult failure;
  IN(HcclGetRankSize(comm, &ranks));
  IN(HcclGetRankId(comm, &rank));
  IN(HcclGetCommName(comm, name));
  IN(HcclGetCommAsyncError(comm, &failure));
}

void OneRank() {
  const Stream stream;
  HcclRootInfo info;
  HcclComm comm = nullptr;
  void* block = nullptr;
  IN(aclrtMalloc(&block, 64, ACL_MEM_MALLOC_HUGE_FIRST));
  if (stream && block && IN(HcclGetRootInfo(&info)) == 0) {
    GIVE_BACK(HcclCommInitRootInfo(1, &info, 0, &comm));  // else it would wait for its ranks
    AskCommunicator(comm);
    IN(HcclAllReduce(block, block, 4, HCCL_DATA_TYPE_FP32, HCCL_REDUCE_SUM, comm, stream.handle));
    IN(HcclAllGather(block, block, 4, HCCL_DATA_TYPE_FP32, comm, stream.handle));
    IN(HcclBroadcast(block, 4, HCCL_DATA_TYPE_FP32, 0, comm, stream.handle));
    IN(HcclBarrier(comm, stream.handle));
    IN(aclrtSynchronizeStream(stream.handle));
    aclrtSynchronizeStream(stream.handle);
    GIVE_BACK(HcclCommDestroy(comm));
  }
  if (block) GIVE_BACK(aclrtFree(block));
}

// A rank that finds no memory must not leave the other one waiting.
void TwoRanks() {
  const Stream streams[2] = {Stream(0), Stream(1)};
  HcclComm comms[2] = {};
  void* blocks[2] = {};
  int32_t devices[] = {0, 1};
  for (void*& block : blocks) IN(aclrtMalloc(&block, 64, ACL_MEM_MALLOC_HUGE_FIRST));
  if (streams[0] && streams[1] && blocks[0] && blocks[1] && IN(HcclCommInitAll(2, devices, comms)) == 0) {
    for (int rank = 0; rank < 2; ++rank) {
      SelectDevice(rank);
      const auto reduce = [&] {
        return HcclAllReduce(blocks[rank], blocks[rank], 4, HCCL_DATA_TYPE_FP32, HCCL_REDUCE_SUM, comms[rank], streams[rank].handle);
      };
      HcclResult failure = HCCL_SUCCESS;  // of the other rank, maybe
      if (Watched("HcclAllReduce(", reduce) != 0 && reduce() != 0 &&
          (HcclGetCommAsyncError(comms[rank], &failure) != 0 || failure == HCCL_SUCCESS)) {
        Complain("HcclAllReduce fails with memory back");
      }
      ReleaseDevice(rank);
    }
    for (const Stream& stream : streams) IN(aclrtSynchronizeStream(stream.handle));
    for (const HcclComm comm : comms) GIVE_BACK(HcclCommDestroy(comm));
  }
  for (void* block : blocks) {
    if (block) GIVE_BACK(aclrtFree(block));
  }
}

// --- operators ---

void AtBorder(bool inside) {
  static std::optional<allocator::Watch> watch;
  if (inside) {
    watch.emplace();
  } else {
    watch.reset();
  }
}

// The first call of an operator makes its table; without arguments it ends there.
void MakeTable(const Entry& entry) {
  const std::vector<RawArg> nothing(entry.args.size());
  uint64_t size = 0;
  void* executor = nullptr;
  const allocator::Watch watch;
  if (entry.get_workspace_size(nothing.data(), &size, &executor) == 0) Complain("a call without arguments");
  aclGetRecentErrMsg();
}

void RunOperator(const Operator& op, const harness::Subject& subject) {
  const harness::RunOptions options{.compare = false, .at_border = AtBorder};
  harness::Calls calls(op);
  subject.sample(calls);
  aclrtStream stream = nullptr;
  if (aclrtSetDevice(0) != 0 || aclrtCreateStream(&stream) != 0) return Complain("no stream");
  const harness::RunResult result = RunCall(op, subject, calls.all()[0], stream, options);
  if (memory_is_back) {
    entries.insert(std::string(subject.op) + "GetWorkspaceSize");
    entries.insert(subject.op);
    if (!result.problem.empty()) Complain(result.problem);
  }
  aclrtDestroyStream(stream);
  aclrtResetDevice(0);
}

const Entry& EntryOf(std::string_view op) {
  const auto entries_of_all = Entries();
  const auto found = std::find_if(entries_of_all.begin(), entries_of_all.end(), [&](const Entry& e) { return op == e.op; });
  if (found == entries_of_all.end()) throw std::out_of_range(std::string(op));
  return *found;
}

const Operator& OperatorOf(const Entry& entry) { return OperatorAt(&entry - Entries().data()); }

// The first and the last operator with a subject of every family.
std::vector<const harness::Subject*> TwoOfEachFamily() {
  std::set<std::string> names;
#define ANYACL_SUBJECTS(Name, family) names.insert(#family);
#include "harness/families.inc"
#undef ANYACL_SUBJECTS
  std::vector<const harness::Subject*> chosen;
  for (const std::string& name : names) {
    const auto subjects = harness::SubjectsOf(name);
    chosen.push_back(&subjects.front());
    if (subjects.size() > 1) chosen.push_back(&subjects.back());
  }
  return chosen;
}

std::vector<Step> Scenario() {
  std::vector<Step> steps = {
      {"start", Start},        {"device", Device},         {"streams", Streams},
      {"objects", Objects},    {"host code", HostFunctions}, {"events", Events},
      {"memory", Memory},      {"mapped memory", MappedMemory}, {"captures", Captures},
      {"descriptions", Descriptions}, {"failures", Failures}, {"one rank", OneRank}, {"two ranks", TwoRanks},
  };
  for (const harness::Subject* subject : TwoOfEachFamily()) {
    const Entry& entry = EntryOf(subject->op);
    steps.push_back({std::string("table of ") + subject->op, [&entry] { MakeTable(entry); }});
    steps.push_back({subject->op, [subject, &entry] { RunOperator(OperatorOf(entry), *subject); }});
  }
  return steps;
}

// --- the sweep ---

struct Point {
  int64_t first;
  bool once;
};

void RunShort(const Step& step, const Point& point) {
  allocator::Refuse(point.first, point.once);
  memory_is_back = false;
  step.run();
}

void RunClean(const Step& step) {
  allocator::Refuse(0, true);
  memory_is_back = true;
  step.run();
}

std::vector<Point> PointsOf(int64_t allocations) {
  std::vector<Point> points;
  const int64_t each = std::min<int64_t>(allocations, kMostPoints * 2 / 3);
  const int64_t rest = allocations - each;
  const int64_t spread = std::min(rest, kMostPoints - each);
  for (const bool once : {true, false}) {
    for (int64_t i = 1; i <= each; ++i) points.push_back({i, once});
    for (int64_t i = 1; i <= spread; ++i) points.push_back({each + rest * i / spread, once});
  }
  return points;
}

// Runs `body` in a child; empty when it came back and left no complaint.
template <class Body>
std::string InChild(Body&& body) {
  int ends[2];
  if (pipe(ends) != 0) return "no pipe";
  const pid_t child = fork();
  if (child == 0) {
    alarm(60);
    complaint.clear();
    body();
    if (write(ends[1], complaint.data(), complaint.size()) < 0) _exit(2);
    _exit(0);
  }
  close(ends[1]);
  std::string text;
  char buffer[512];
  for (ssize_t got; (got = read(ends[0], buffer, sizeof(buffer))) > 0;) text.append(buffer, static_cast<size_t>(got));
  close(ends[0]);
  int status = 0;
  waitpid(child, &status, 0);
  if (WIFSIGNALED(status)) return fmt::format("ended by signal {} {}", WTERMSIG(status), text);
  return status != 0 ? "ended with " + std::to_string(status) : text;
}

std::string NameOf(const Step& step, const Point& point) {
  return fmt::format("{}, allocation {}{}", step.name, point.first, point.once ? "" : " and all behind it");
}

// How many allocations the step makes in a child of this process.
int64_t CountInChild(const Step& step) {
  auto* const count = static_cast<int64_t*>(
      mmap(nullptr, sizeof(int64_t), PROT_READ | PROT_WRITE, MAP_SHARED | MAP_ANONYMOUS, -1, 0));
  const std::string problem = InChild([&] {
    RunClean(step);
    *count = allocator::Made();
  });
  EXPECT_EQ(problem, "") << step.name;
  const int64_t made = *count;
  munmap(count, sizeof(int64_t));
  return made;
}

int SweepInChildren(const Step& step) {
  const std::vector<Point> points = PointsOf(CountInChild(step));
  for (const Point& point : points) {
    const std::string problem = InChild([&] {
      RunShort(step, point);
      RunClean(step);
    });
    EXPECT_EQ(problem, "") << NameOf(step, point);
  }
  return static_cast<int>(points.size());
}

int64_t GrowthOf(const Step& step, const Point& point, int times) {
  const int64_t before = allocator::Live();
  for (int i = 0; i < times; ++i) {
    RunShort(step, point);
    RunClean(step);
  }
  return allocator::Live() - before;
}

// Threads come and go and what is kept for later grows and shrinks: a leak is what grows every time.
bool Leaks(const Step& step, const Point& point) {
  constexpr int kTimes = 8;
  return GrowthOf(step, point, 1) > 0 && GrowthOf(step, point, kTimes) >= kTimes && GrowthOf(step, point, kTimes) >= kTimes;
}

void SweepHere(const Step& step) {
  complaint.clear();
  RunClean(step);
  RunClean(step);
  for (const Point& point : PointsOf(allocator::Made())) {
    EXPECT_FALSE(Leaks(step, point)) << NameOf(step, point);
    EXPECT_EQ(complaint, "") << NameOf(step, point);
    complaint.clear();
  }
}

// The code by which allocators know that they may try again with less.
TEST(Shortage, OfDeviceMemoryIs207001) {
  ASSERT_EQ(aclrtSetDevice(0), 0);
  for (const bool once : {true, false}) {
    for (int64_t first = 1, refused = 1; refused > 0; ++first) {
      void *block = nullptr, *pinned = nullptr;
      allocator::Refuse(first, once);
      int32_t codes_of_both[2];
      {
        const allocator::Watch watch;
        codes_of_both[0] = aclrtMalloc(&block, 5 << 20, ACL_MEM_MALLOC_HUGE_FIRST);
        codes_of_both[1] = aclrtMallocHost(&pinned, 5 << 20);
      }
      refused = allocator::Refused();
      for (const int32_t code : codes_of_both) EXPECT_TRUE(code == 0 || code == 207001) << code;
      EXPECT_EQ(block != nullptr, codes_of_both[0] == 0);
      EXPECT_EQ(pinned != nullptr, codes_of_both[1] == 0);
      EXPECT_EQ(block ? aclrtFree(block) : 0, 0);
      EXPECT_EQ(pinned ? aclrtFreeHost(pinned) : 0, 0);
    }
  }
  aclGetRecentErrMsg();
  EXPECT_EQ(aclrtResetDevice(0), 0);
}

TEST(Shortage, EveryCallReturnsACode) {
  const auto begin = std::chrono::steady_clock::now();
  int points = 0;
  for (const Step& step : Scenario()) {
#ifndef ANYACL_SANITIZE_thread  // it does not support threads in a forked child
    points += SweepInChildren(step);
#endif
    SweepHere(step);
  }
  EXPECT_GE(entries.size(), 60u);
  EXPECT_GE(codes, 100);
  const std::chrono::duration<double> seconds = std::chrono::steady_clock::now() - begin;
  std::printf("%zu entries, %d allocations in children, %lld codes here, %.1f s\n", entries.size(), points,
              static_cast<long long>(codes), seconds.count());
}

}  // namespace
}  // namespace anyacl
