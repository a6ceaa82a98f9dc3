// SPDX-License-Identifier: Apache-2.0
// Copyright The AnyACL Authors
#include "cuda/cuda_stream.h"

#include <pthread.h>
#include <signal.h>

#include <algorithm>
#include <chrono>
#include <cstring>
#include <map>
#include <new>
#include <system_error>
#include <thread>

#include "core/codes.h"
#include "cuda/backend.h"

namespace anyacl::cuda {
namespace {

using runtime::Deadline;
using runtime::WaitResult;
using runtime::Where;
using Clock = std::chrono::steady_clock;

// --- times ---

// A point both clocks know. Elapsed times are floats in the runtime library: good for differences, not for dates.
struct Epoch {
  std::shared_ptr<NativeEvent> event;
  int64_t nanoseconds = 0;
};

const Epoch& EpochOf(int ordinal) {
  struct Epochs {
    std::mutex mutex;
    std::map<int, Epoch> of;
  };
  static auto* const epochs = new Epochs;
  const std::lock_guard lock(epochs->mutex);
  Epoch& epoch = epochs->of[ordinal];
  if (epoch.event) return epoch;
  const DeviceGuard guard(ordinal);
  const UtilityStream stream(ordinal);
  epoch.event = NativeEvent::Make(ordinal, true);
  if (epoch.event) cudaEventRecord(epoch.event->get(), stream.get());
  cudaStreamSynchronize(stream.get());
  epoch.nanoseconds =
      std::chrono::duration_cast<std::chrono::nanoseconds>(Clock::now().time_since_epoch()).count();
  return epoch;
}

class CudaStamp final : public runtime::Stamp {
 public:
  explicit CudaStamp(std::shared_ptr<NativeEvent> event) : event_(std::move(event)) {}

  int64_t Nanoseconds() const override {
    const Epoch& epoch = EpochOf(event_->ordinal());
    return epoch.nanoseconds + static_cast<int64_t>(Elapsed(*epoch.event, *event_) * 1e6);
  }
  double MillisecondsSince(const runtime::Stamp& start) const override {
    return Elapsed(*static_cast<const CudaStamp&>(start).event_, *event_);
  }

 private:
  static double Elapsed(const NativeEvent& start, const NativeEvent& end) {
    float ms = 0;
    if (cudaEventElapsedTime(&ms, start.get(), end.get()) != cudaSuccess) cudaGetLastError();
    return ms;
  }

  std::shared_ptr<NativeEvent> event_;
};

// 0 (highest) to 7 onto the range of the GPU, where lower numbers come first.
int NativePriority(uint32_t priority) {
  int least = 0;
  int greatest = 0;
  cudaDeviceGetStreamPriorityRange(&least, &greatest);
  return greatest + static_cast<int>(priority) * (least - greatest) / 7;
}

int32_t RunGuarded(Work& work, const Launch& launch) noexcept {
  try {
    return work.run(work, launch);
  } catch (const std::bad_alloc&) {
    return code::kAclBadAlloc;
  } catch (...) {
    return code::kAclInternal;
  }
}

}  // namespace

thread_local const CudaStream* CudaStream::served_here = nullptr;

Status CudaStream::Open(int device, uint32_t priority) {
  if (Forked()) return Status(code::kRtDriver, "CUDA does not work in a child of fork");
  const int ordinal = OrdinalOf(device);
  const std::lock_guard lock(mutex_);
  if (native_ && ordinal == ordinal_ && priority == priority_) return Status();
  if (native_) {
    const DeviceGuard guard(ordinal_);
    const bool idle = cudaStreamQuery(native_) == cudaSuccess;
    if (idle && counters_) PutCounters(ordinal_, counters_);  // else they are lost
    AddMark(false);
    cudaStreamDestroy(native_);  // what is on it still runs
    native_ = nullptr;
    counters_ = nullptr;
  }
  const DeviceGuard guard(ordinal);
  const cudaError_t error =
      cudaStreamCreateWithPriority(&native_, cudaStreamNonBlocking, NativePriority(priority));
  ordinal_ = ordinal;
  priority_ = priority;
  if (error == cudaSuccess) counters_ = TakeCounters(ordinal);
  return ToStatus("cudaStreamCreateWithPriority", error);
}

uint64_t CudaStream::Count(const char* label) {
  const uint64_t number = submitted_.load(std::memory_order_relaxed) + 1;
  labels_[number % kLabels] = label;
  submitted_.store(number, std::memory_order_release);
  return number;
}

// The runtime sends what is captured another way, but another thread may have begun a capture since it looked.
Status CudaStream::RefuseCaptured(const char* label) const {
  if (!captured_) [[likely]]
    return Status();
  return Status(code::kRtCaptureInvalidated,
                std::string(label) + ": another thread is capturing the stream");
}

Status CudaStream::Submit(const Work& work, Where where, uint64_t* sequence) {
  if (where == Where::kOnStreamThread) return SubmitHost(work, sequence);
  Work copy = work;  // run may change it
  std::unique_lock lock(mutex_);
  ANYACL_RETURN_IF_ERROR(RefuseCaptured(work.label));
  const DeviceGuard guard(ordinal_);
  const int32_t code = RunGuarded(copy, Launch{native_, ordinal_, counters_});
  const cudaError_t error = cudaGetLastError();
  const uint64_t number = Count(work.label);
  lock.unlock();
  // What the work needs was copied when it was launched.
  if (copy.release) copy.release(copy);
  if (sequence) *sequence = number;
  if (code != 0 || error != cudaSuccess) [[unlikely]]
    LaunchFailed(copy.label, code, error, number);
  return Status();
}

void CudaStream::LaunchFailed(const char* label, int32_t code, cudaError_t error, uint64_t number) {
  if (IsSticky(error)) return Lost(error);
  const std::string detail = error == cudaSuccess ? "" : "the launch failed with " + TextOf(error);
  stream_.WorkFailed(label, error == cudaSuccess ? code : CodeOf(error), number, detail);
}

Status CudaStream::Capture(const Work& work) {
  Work copy = work;
  std::unique_lock lock(mutex_);
  const DeviceGuard guard(ordinal_);
  const int32_t code = RunGuarded(copy, Launch{native_, ordinal_});
  const cudaError_t error = cudaGetLastError();
  lock.unlock();
  if (code == 0 && error == cudaSuccess) {
    if (copy.release) copy.release(copy);
    return Status();
  }
  return Status(code ? code : CodeOf(error),
                std::string(work.label) + " cannot be captured: " + TextOf(error));
}

void CudaStream::SetCaptured(bool captured) {
  const std::lock_guard lock(mutex_);
  const DeviceGuard guard(ordinal_);
  if (captured && !captured_) AddMark(false);
  captured_ = captured;
}

// --- how far it is ---

bool CudaStream::AddMark(bool timed) {
  const uint64_t last = submitted_.load(std::memory_order_relaxed);
  if (captured_ || !native_) return false;
  std::shared_ptr<NativeEvent> event = NativeEvent::Make(ordinal_, timed);
  if (!event || cudaEventRecord(event->get(), native_) != cudaSuccess) return false;
  marks_.push_back({last, std::move(event)});
  return true;
}

// Takes in what has been done: marks in order, then, when there is none left, the stream as a whole.
cudaError_t CudaStream::Advance() {
  const DeviceGuard guard(ordinal_);
  while (!marks_.empty()) {
    const cudaError_t error = cudaEventQuery(marks_.front().event->get());
    if (error != cudaSuccess) {
      cudaGetLastError();
      return error;
    }
    completed_.store(std::max(completed_.load(), marks_.front().sequence),
                     std::memory_order_release);
    marks_.pop_front();
  }
  const uint64_t last = submitted_.load(std::memory_order_relaxed);
  if (completed_.load(std::memory_order_relaxed) == last || captured_ || !native_) {
    return cudaSuccess;
  }
  const cudaError_t error = cudaStreamQuery(native_);
  if (error == cudaSuccess) completed_.store(last, std::memory_order_release);
  cudaGetLastError();
  return error;
}

bool CudaStream::Reached(uint64_t sequence) {
  if (completed_.load(std::memory_order_acquire) >= sequence) return true;
  if (Forked()) return true;
  cudaError_t error;
  {
    const std::lock_guard lock(mutex_);
    error = Advance();
  }
  if (error != cudaSuccess && error != cudaErrorNotReady) Lost(error);
  return completed_.load(std::memory_order_acquire) >= sequence;
}

void CudaStream::Mark() {
  const std::lock_guard lock(mutex_);
  const uint64_t last = submitted_.load(std::memory_order_relaxed);
  if (completed_.load(std::memory_order_relaxed) == last) return;
  if (!marks_.empty() && marks_.back().sequence == last) return;
  const DeviceGuard guard(ordinal_);
  AddMark(false);
}

// The first event behind that work; made when there is none. Null when nothing is left to wait for.
std::shared_ptr<NativeEvent> CudaStream::EventFor(uint64_t sequence) {
  if (completed_.load(std::memory_order_relaxed) >= sequence) return nullptr;
  const auto behind = [&] {
    return std::find_if(marks_.begin(), marks_.end(),
                        [&](const MarkAt& mark) { return mark.sequence >= sequence; });
  };
  auto found = behind();
  if (found == marks_.end()) {
    const DeviceGuard guard(ordinal_);
    if (!AddMark(false)) return nullptr;
    found = behind();
  }
  return found == marks_.end() ? nullptr : found->event;
}

WaitResult CudaStream::WaitFor(uint64_t sequence, Deadline deadline, StreamEngine* waiter) {
  if (Reached(sequence)) return WaitResult::kReached;
  std::shared_ptr<NativeEvent> event;
  {
    const std::lock_guard lock(mutex_);
    event = EventFor(sequence);
  }
  if (!event) return WaitResult::kReached;
  if (deadline == runtime::kForever && !waiter) {
    const DeviceGuard guard(event->ordinal());
    const cudaError_t error = cudaEventSynchronize(event->get());
    if (error != cudaSuccess) Lost(error);
    Reached(sequence);
    return WaitResult::kReached;
  }
  constexpr std::chrono::microseconds kPause{20};
  while (!Reached(sequence)) {
    if (waiter && waiter->Aborting()) return WaitResult::kAborted;
    if (Clock::now() >= deadline) return WaitResult::kTimedOut;
    std::this_thread::sleep_for(kPause);
  }
  return WaitResult::kReached;
}

// With the lock held: the labels of work that is not known to be done, latest first.
std::string CudaStream::Unfinished() const {
  std::string names;
  const uint64_t last = submitted_.load(std::memory_order_relaxed);
  const uint64_t done = completed_.load(std::memory_order_relaxed);
  for (uint64_t n = last; n > done && n + kLabels > last; --n) {
    const char* const label = labels_[n % kLabels];
    if (!label || names.find(label) != std::string::npos) continue;
    names += (names.empty() ? "" : ", ") + std::string(label);
  }
  return names;
}

// The GPU stopped at an error that no later call survives. Nobody can tell which work it was, so all that were
// under way are named, and all count as done: nothing more will come.
void CudaStream::Lost(cudaError_t error) {
  std::string names;
  const char* label = "";
  uint64_t last;
  {
    const std::lock_guard lock(mutex_);
    last = submitted_.load(std::memory_order_relaxed);
    names = Unfinished();
    label = labels_[last % kLabels] ? labels_[last % kLabels] : "work";
    completed_.store(last, std::memory_order_release);
    marks_.clear();
    if (lost_ && names.empty()) return;
    lost_ = true;
  }
  cudaGetLastError();
  stream_.WorkFailed(label, CodeOf(error) ? CodeOf(error) : code::kRtDriver, last,
                     "the GPU reported " + TextOf(error) + "; under way were " +
                         (names.empty() ? "none of this stream" : names));
}

// --- points and waits ---

Status CudaStream::Record(const char* label, std::shared_ptr<runtime::Stamp>* stamp,
                          uint64_t* sequence) {
  const std::lock_guard lock(mutex_);
  EpochOf(ordinal_);
  const DeviceGuard guard(ordinal_);
  *sequence = Count(label);
  if (!AddMark(true)) {
    return ToStatus("cudaEventRecord", cudaGetLastError());
  }
  *stamp = std::make_shared<CudaStamp>(marks_.back().event);
  return Status();
}

bool CudaStream::Follow(StreamEngine& other, uint64_t sequence, uint64_t* number) {
  auto& target = static_cast<CudaStream&>(other);
  std::shared_ptr<NativeEvent> event;
  {
    const std::lock_guard lock(target.mutex_);
    event = target.EventFor(sequence);
  }
  const std::lock_guard lock(mutex_);
  const DeviceGuard guard(ordinal_);
  if (event && cudaStreamWaitEvent(native_, event->get(), 0) != cudaSuccess) {
    cudaGetLastError();
    return false;
  }
  *number = Count("aclrtStreamWaitEvent");
  return true;
}

// --- host code ---

// With the lock held. Signals of the host program are not for our threads.
Status CudaStream::PrepareHostThread() {
  if (!TheDriver().wait_value32) {
    return Status(code::kRtNotSupported, "the driver is too old for host code on a stream");
  }
  if (!gate_) gate_ = HostWord::Make(tickets_);
  if (!gate_) return Status(code::kRtOutOfMemory, "there is no pinned memory for host code");
  if (has_host_thread_) return Status();
  sigset_t all, before;
  sigfillset(&all);
  pthread_sigmask(SIG_SETMASK, &all, &before);
  try {
    std::thread([this] { ServeHost(); }).detach();
    has_host_thread_ = true;
  } catch (const std::system_error&) {
  }
  pthread_sigmask(SIG_SETMASK, &before, nullptr);
  return has_host_thread_ ? Status()
                          : Status(code::kRtNoStreamResource, "no thread can be started");
}

Status CudaStream::WaitForRoom(const char* label) {
  std::unique_lock lock(host_mutex_);
  const auto has_room = [this] { return host_jobs_.size() < kMaxHostJobs; };
  if (!has_room() && OnOwnThread()) {
    return Status(code::kRtNoStreamResource,
                  std::string(label) + ": the stream is full and its host function adds to it");
  }
  host_room_.wait(lock, has_room);
  return Status();
}

Status CudaStream::SubmitHost(const Work& work, uint64_t* sequence) {
  ANYACL_RETURN_IF_ERROR(WaitForRoom(work.label));
  const std::lock_guard lock(mutex_);
  ANYACL_RETURN_IF_ERROR(RefuseCaptured(work.label));
  const DeviceGuard guard(ordinal_);
  if (Status status = PrepareHostThread(); !status.ok()) {
    return Status(status.code(), std::string(work.label) + ": " + status.message());
  }
  HostJob job{work, 0, tickets_ + 1, NativeEvent::Make(ordinal_, false)};
  if (!job.before || cudaEventRecord(job.before->get(), native_) != cudaSuccess) {
    return ToStatus(work.label, cudaGetLastError());
  }
  gate_->SetAtExit(job.ticket);
  if (TheDriver().wait_value32(native_, reinterpret_cast<CUdeviceptr>(gate_->device_address()),
                               job.ticket, CU_STREAM_WAIT_VALUE_GEQ) != CUDA_SUCCESS) {
    return Status(code::kRtDriver,
                  std::string(work.label) + ": the stream cannot wait for the host");
  }
  ++tickets_;
  job.number = Count(work.label);
  if (sequence) *sequence = job.number;
  {
    const std::lock_guard host_lock(host_mutex_);
    host_jobs_.push_back(std::move(job));
  }
  host_work_.notify_one();
  return Status();
}

void CudaStream::ServeHost() {
  served_here = this;
  pthread_setname_np(pthread_self(), "anyacl-host");
  std::unique_lock lock(host_mutex_);
  while (true) {
    host_work_.wait(lock, [this] { return !host_jobs_.empty(); });
    HostJob& job = host_jobs_.front();  // stays there: a deque does not move it when more come
    lock.unlock();
    RunJob(&job);
    lock.lock();
    host_jobs_.pop_front();
    host_room_.notify_all();
    if (closing_ && host_jobs_.empty()) {
      closing_ = false;
      lock.unlock();
      stream_.Ended();
      lock.lock();
    }
  }
}

void CudaStream::RunJob(HostJob* job) {
  const DeviceGuard guard(job->before->ordinal());
  const cudaError_t error = cudaEventSynchronize(job->before->get());
  cudaGetLastError();
  const auto aborted = [&] { return job->number <= aborted_.load(std::memory_order_acquire); };
  const bool skip = error != cudaSuccess || aborted();
  const int32_t code = skip ? 0 : RunGuarded(job->work, Launch{nullptr, job->before->ordinal()});
  if (job->work.release) job->work.release(job->work);
  if (code != 0 && !aborted()) stream_.WorkFailed(job->work.label, code, job->number, {});
  gate_->Set(job->ticket);
}

// --- the end ---

// Host code is dropped; what the GPU has been given cannot be called back.
uint64_t CudaStream::DropQueued() {
  const std::lock_guard lock(mutex_);
  const uint64_t last = submitted_.load(std::memory_order_relaxed);
  aborted_.store(last, std::memory_order_release);
  const uint64_t done = completed_.load(std::memory_order_relaxed);
  return done == last ? last : done + 1;
}

void CudaStream::Close() {
  {
    const std::lock_guard lock(host_mutex_);
    closing_ = !host_jobs_.empty();
    if (closing_) return;
  }
  stream_.Ended();
}

void CudaStream::ForgetQueue() {
  new (&mutex_) std::mutex;
  new (&host_mutex_) std::mutex;
  new (&host_work_) std::condition_variable;
  new (&host_room_) std::condition_variable;
  has_host_thread_ = false;
  completed_.store(submitted_.load(), std::memory_order_release);
}

runtime::StreamEngine* CudaBackend::NewEngine(runtime::StreamHooks& stream) const {
  return new CudaStream(stream);
}

}  // namespace anyacl::cuda
