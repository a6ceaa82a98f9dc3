// SPDX-License-Identifier: Apache-2.0
// Copyright The AnyACL Authors
//
// Host code in stream order: host functions, which run on the stream's thread; callbacks, which run on a
// thread of the user that asks for them with aclrtProcessReport; and exception callbacks.
#include <cxxabi.h>
#include <pthread.h>
#include <unistd.h>

#include <algorithm>
#include <condition_variable>
#include <deque>
#include <map>
#include <memory>
#include <new>
#include <vector>

#include "acl/acl_rt.h"
#include "core/border.h"
#include "core/locks.h"
#include "core/once.h"
#include "core/undo.h"
#include "runtime/internal.h"

// The record behind the opaque type of the public header.
struct rtExceptionInfo {
  uint32_t task_id;
  uint32_t stream_id;
  uint32_t thread_id;
  uint32_t device_id;
  uint32_t error_code;
};

namespace anyacl::runtime {
namespace {

struct Callback {
  aclrtCallback function = nullptr;
  void* data = nullptr;
  const Stream* stream = nullptr;
  bool blocks = false;
  bool done = false;
  bool dropped = false;
};
using SharedCallback = std::shared_ptr<Callback>;

// All guarded by kReports.
struct Reports {
  std::map<const Stream*, uint64_t> thread_of;             // subscriptions
  std::map<uint64_t, std::deque<SharedCallback>> waiting;  // by thread
  std::condition_variable changed;
};
Reports& All() { return TheOne<Reports>(); }
std::mutex& ReportMutex() { return LockOf(Lock::kReports); }

// Who waits for a change is gone, and so is what was queued.
[[maybe_unused]] const int mends = [] {
  InForkedChild(Lock::kReports, [] {
    new (&All().changed) std::condition_variable;
    for (auto& [thread, queue] : All().waiting) queue.clear();
  });
  return 0;
}();

// With the lock held. A callback that blocks its stream must not wait for a thread that no longer serves
// it; the others may still run if that thread asks once more.
void DropBlocking(const Stream* stream) {
  for (auto& [thread, queue] : All().waiting) {
    for (const SharedCallback& callback : queue) {
      if (callback->stream == stream && callback->blocks) callback->done = callback->dropped = true;
    }
    std::erase_if(queue, [](const SharedCallback& callback) { return callback->dropped; });
  }
  All().changed.notify_all();
}

uint64_t ThisThread() { return static_cast<uint64_t>(pthread_self()); }

// --- launch ---

struct Launched {
  aclrtCallback function;
  void* data;
  Stream* stream;
  bool blocks;
};

int32_t HandOver(Work& work, const Launch&) {
  const Launched& launched = PayloadOf<Launched>(work);
  auto callback = std::make_shared<Callback>();
  callback->function = launched.function;
  callback->data = launched.data;
  callback->stream = launched.stream;
  callback->blocks = launched.blocks;
  std::unique_lock lock(ReportMutex());
  const auto thread = All().thread_of.find(launched.stream);
  if (thread == All().thread_of.end()) return code::kRtNoSubscription;
  if (launched.blocks && thread->second == ThisThread()) {  // nobody else will run it while this thread waits for it
    lock.unlock();
    launched.function(launched.data);
    return 0;
  }
  All().waiting[thread->second].push_back(callback);
  All().changed.notify_all();
  if (!launched.blocks) return 0;
  const Stream& runner = Stream::RunnerOf(*launched.stream);
  All().changed.wait(lock, [&] { return callback->done || runner.Aborting(); });
  if (!callback->done) DropBlocking(launched.stream);
  return callback->dropped ? code::kRtNoSubscription : 0;
}

struct HostFunction {
  aclrtHostFunc function;
  void* arguments;
};

int32_t CallHostFunction(Work& work, const Launch&) {
  const HostFunction& host = PayloadOf<HostFunction>(work);
  host.function(host.arguments);
  return 0;
}

// --- the user's thread ---

// Runs everything that waits for this thread. False when nothing did.
bool RunWaiting(std::unique_lock<std::mutex>* lock) {
  const auto found = All().waiting.find(ThisThread());
  if (found == All().waiting.end()) return false;
  std::deque<SharedCallback>& queue = found->second;
  bool any = false;
  while (!queue.empty()) {
    const SharedCallback callback = queue.front();
    queue.pop_front();
    lock->unlock();
    const Undo ran([&] {  // also when it throws, or ends the thread
      lock->lock();
      callback->done = true;
      All().changed.notify_all();
    });
    callback->function(callback->data);
    any = true;
  }
  return any;
}

Status ProcessReports(const char* function, Deadline deadline) {
  std::unique_lock lock(ReportMutex());
  const auto has_work = [] {
    const auto found = All().waiting.find(ThisThread());
    return found != All().waiting.end() && !found->second.empty();
  };
  if (deadline == kForever) {
    All().changed.wait(lock, has_work);
  } else if (!All().changed.wait_until(lock, deadline, has_work)) {
    return Fail(code::kRtReportTimeout, function, "no callback came for this thread in time");
  }
  RunWaiting(&lock);
  return Status();
}

Status Subscribe(const char* function, uint64_t thread, const Stream* stream) {
  const std::lock_guard lock(ReportMutex());
  const auto [entry, added] = All().thread_of.emplace(stream, thread);
  if (!added) {
    return Fail(code::kRtStreamSubscribed, function, "stream {} is served by thread {} already",
                stream->id(), entry->second);
  }
  return Status();
}

Status Unsubscribe(const char* function, uint64_t thread, const Stream* stream) {
  const std::lock_guard lock(ReportMutex());
  const auto entry = All().thread_of.find(stream);
  if (entry == All().thread_of.end() || entry->second != thread) {
    return Fail(code::kRtNoSubscription, function, "thread {} must be subscribed to stream {}",
                thread, stream->id());
  }
  All().thread_of.erase(entry);
  DropBlocking(stream);
  return Status();
}

// --- exceptions ---

// Guarded by kExceptions.
struct Exceptions {
  aclrtExceptionInfoCallback single = nullptr;  // aclrtSetExceptionInfoCallback
  std::vector<aclrtExceptionInfoCallback> registered;
};
Exceptions& AllExceptions() { return TheOne<Exceptions>(); }
std::mutex& ExceptionMutex() { return LockOf(Lock::kExceptions); }

// Number `index` of those to call: the single one first. Null behind the last.
aclrtExceptionInfoCallback ExceptionCallback(size_t index) {
  const Exceptions& all = AllExceptions();
  const std::lock_guard lock(ExceptionMutex());
  if (all.single && index-- == 0) return all.single;
  return index < all.registered.size() ? all.registered[index] : nullptr;
}

constexpr uint32_t kNoInfo = 0xFFFFFFFFu;

}  // namespace

void ForgetSubscription(Stream* stream) {
  const std::lock_guard lock(ReportMutex());
  All().thread_of.erase(stream);
  DropBlocking(stream);
}

void WakeBlockedCallbacks() {
  const std::lock_guard lock(ReportMutex());
  All().changed.notify_all();
}

void ReportException(int device, int32_t stream_id, uint64_t sequence, int32_t code) {
  aclrtExceptionInfo info{static_cast<uint32_t>(sequence), static_cast<uint32_t>(stream_id),
                          static_cast<uint32_t>(gettid()), static_cast<uint32_t>(device),
                          static_cast<uint32_t>(code)};
  // One by one, because there may be no memory for a copy of the list, and callbacks may make calls.
  for (size_t i = 0; const auto callback = ExceptionCallback(i); ++i) {
    try {
      callback(&info);
    } catch (const __cxxabiv1::__forced_unwind&) {
      throw;
    } catch (...) {  // theirs; the failure is told all the same
    }
  }
}

}  // namespace anyacl::runtime

using anyacl::AclBorder;
using anyacl::Status;
using anyacl::Work;
using namespace anyacl::runtime;  // NOLINT: the C functions of this room
namespace code = anyacl::code;

aclError aclrtLaunchHostFunc(aclrtStream stream, aclrtHostFunc fn, void* args) {
  constexpr const char* kName = "aclrtLaunchHostFunc";
  return AclBorder(kName, [&]() -> Status {
    if (!fn) return Fail(code::kAclInvalidParam, kName, "fn must not be null");
    Stream* target = nullptr;
    ANYACL_RETURN_IF_ERROR(ResolveForSubmit(kName, stream, &target));
    const Work work = MakeWork(kName, 0, HostFunction{fn, args}, CallHostFunction);
    target->TellBlurred();
    return target->Submit(work, Where::kOnStreamThread, nullptr);
  });
}

aclError aclrtLaunchCallback(aclrtCallback fn, void* userData, aclrtCallbackBlockType blockType,
                             aclrtStream stream) {
  constexpr const char* kName = "aclrtLaunchCallback";
  return AclBorder(kName, [&]() -> Status {
    if (!fn) return Fail(code::kAclInvalidParam, kName, "fn must not be null");
    const int block = Number(blockType);
    if (block != ACL_CALLBACK_NO_BLOCK && block != ACL_CALLBACK_BLOCK) {
      return Fail(code::kAclInvalidParam, kName, "blockType must be 0 or 1, got {}", block);
    }
    Stream* target = nullptr;
    ANYACL_RETURN_IF_ERROR(ResolveForSubmit(kName, stream, &target));
    {
      const std::lock_guard lock(ReportMutex());
      if (!All().thread_of.contains(target)) {
        return Fail(code::kRtNoSubscription, kName,
                    "a thread must be subscribed to stream {} with aclrtSubscribeReport",
                    target->id());
      }
    }
    const Work work =
        MakeWork(kName, 0, Launched{fn, userData, target, block == ACL_CALLBACK_BLOCK}, HandOver);
    target->TellBlurred();
    return target->Submit(work, Where::kOnStreamThread, nullptr);
  });
}

aclError aclrtSubscribeReport(uint64_t threadId, aclrtStream stream) {
  constexpr const char* kName = "aclrtSubscribeReport";
  return AclBorder(kName, [&]() -> Status {
    Stream* target = nullptr;
    ANYACL_RETURN_IF_ERROR(ResolveStream(kName, stream, &target));
    return Subscribe(kName, threadId, target);
  });
}

aclError aclrtProcessReport(int32_t timeout) {
  constexpr const char* kName = "aclrtProcessReport";
  return AclBorder(kName, [&]() -> Status {
    ANYACL_RETURN_IF_ERROR(RequireTimeout(kName, timeout));
    return ProcessReports(kName, DeadlineIn(timeout));
  });
}

aclError aclrtUnSubscribeReport(uint64_t threadId, aclrtStream stream) {
  constexpr const char* kName = "aclrtUnSubscribeReport";
  return AclBorder(kName, [&]() -> Status {
    Stream* target = nullptr;
    ANYACL_RETURN_IF_ERROR(ResolveStream(kName, stream, &target));
    return Unsubscribe(kName, threadId, target);
  });
}

aclError aclrtSetExceptionInfoCallback(aclrtExceptionInfoCallback callback) {
  const std::lock_guard lock(ExceptionMutex());
  AllExceptions().single = callback;
  return ACL_SUCCESS;
}

aclError aclrtExceptionInfoCallbackRegister(aclrtExceptionInfoCallback callback) {
  constexpr const char* kName = "aclrtExceptionInfoCallbackRegister";
  return AclBorder(kName, [&]() -> Status {
    if (!callback) return Fail(code::kRtParamInvalid, kName, "callback must not be null");
    const std::lock_guard lock(ExceptionMutex());
    AllExceptions().registered.push_back(callback);
    return Status();
  });
}

aclError aclrtExceptionInfoCallbackUnregister(aclrtExceptionInfoCallback callback) {
  constexpr const char* kName = "aclrtExceptionInfoCallbackUnregister";
  return AclBorder(kName, [&]() -> Status {
    if (!callback) return Fail(code::kRtParamInvalid, kName, "callback must not be null");
    const std::lock_guard lock(ExceptionMutex());
    std::erase(AllExceptions().registered, callback);
    return Status();
  });
}

uint32_t aclrtGetTaskIdFromExceptionInfo(const aclrtExceptionInfo* info) {
  return info ? info->task_id : kNoInfo;
}
uint32_t aclrtGetStreamIdFromExceptionInfo(const aclrtExceptionInfo* info) {
  return info ? info->stream_id : kNoInfo;
}
uint32_t aclrtGetThreadIdFromExceptionInfo(const aclrtExceptionInfo* info) {
  return info ? info->thread_id : kNoInfo;
}
uint32_t aclrtGetDeviceIdFromExceptionInfo(const aclrtExceptionInfo* info) {
  return info ? info->device_id : kNoInfo;
}
uint32_t aclrtGetErrorCodeFromExceptionInfo(const aclrtExceptionInfo* info) {
  return info ? info->error_code : kNoInfo;
}
