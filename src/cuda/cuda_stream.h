// SPDX-License-Identifier: Apache-2.0
// Copyright The AnyACL Authors
//
// A stream on a GPU. Device work is launched at once on the native stream. How far it is, is known from marks: native
// events behind some of the numbers. Host code runs on a thread of the stream: the native stream waits for a word that
// this thread counts up. (cudaLaunchHostFunc would run the host code of all streams on one thread, where one that
// blocks stops the others, and forbids it every call of CUDA.)
#ifndef ANYACL_CUDA_CUDA_STREAM_H_
#define ANYACL_CUDA_CUDA_STREAM_H_

#include <atomic>
#include <condition_variable>
#include <deque>
#include <memory>
#include <mutex>
#include <string>

#include "cuda/device.h"
#include "runtime/engine.h"

namespace anyacl::cuda {

class CudaStream final : public runtime::StreamEngine {
 public:
  explicit CudaStream(runtime::StreamHooks& stream) : stream_(stream) {}

  Status Open(int device, uint32_t priority) override;
  Status Submit(const Work& work, runtime::Where where, uint64_t* sequence) override;
  Status Record(const char* label, std::shared_ptr<runtime::Stamp>* stamp,
                uint64_t* sequence) override;
  bool Follow(StreamEngine& other, uint64_t sequence, uint64_t* number) override;
  uint64_t Submitted() const override { return submitted_.load(std::memory_order_acquire); }
  bool Reached(uint64_t sequence) override;
  void Mark() override;
  runtime::WaitResult WaitFor(uint64_t sequence, runtime::Deadline deadline,
                              StreamEngine* waiter) override;
  bool OnOwnThread() const override { return served_here == this; }
  void WakeWaiters() override {
  }  // waits for a GPU cannot be woken; those with a limit look again and again
  uint64_t DropQueued() override;
  bool Aborting() override { return !Reached(aborted_.load(std::memory_order_acquire)); }
  void Close() override;
  void ForgetQueue() override;

  // --- for recordings ---

  cudaStream_t native() const { return native_; }
  int ordinal() const { return ordinal_; }
  // While it is captured the native stream must not be asked anything; a mark tells of the work before.
  void SetCaptured(bool captured);
  // Launches without a number, into the capture.
  Status Capture(const Work& work);

 private:
  struct MarkAt {
    uint64_t sequence;
    std::shared_ptr<NativeEvent> event;
  };
  struct HostJob {
    Work work;
    uint64_t number;
    uint32_t ticket;
    std::shared_ptr<NativeEvent> before;
  };
  static constexpr uint64_t kLabels = 16;
  static constexpr size_t kMaxHostJobs = 256;

  // With the lock held.
  Status RefuseCaptured(const char* label) const;
  uint64_t Count(const char* label);
  bool AddMark(bool timed);
  cudaError_t Advance();
  std::shared_ptr<NativeEvent> EventFor(uint64_t sequence);
  Status PrepareHostThread();
  std::string Unfinished() const;

  Status SubmitHost(const Work& work, uint64_t* sequence);
  Status WaitForRoom(const char* label);
  void LaunchFailed(const char* label, int32_t code, cudaError_t error, uint64_t number);
  void Lost(cudaError_t error);
  void ServeHost();
  void RunJob(HostJob* job);

  static thread_local const CudaStream* served_here;

  runtime::StreamHooks& stream_;
  std::mutex mutex_;
  cudaStream_t native_ = nullptr;
  unsigned* counters_ = nullptr;  // Launch::counters
  int ordinal_ = 0;
  uint32_t priority_ = 0;
  bool captured_ = false;
  bool lost_ = false;
  std::atomic<uint64_t> submitted_{0};
  std::atomic<uint64_t> completed_{0};
  std::atomic<uint64_t> aborted_{0};
  std::deque<MarkAt> marks_;
  const char* labels_[kLabels] = {};  // of the last numbers, for messages

  // The driver blocks when the queue of a native stream is full, and mutex_ is held then. So the thread that
  // empties such a queue, because the native stream waits for it, has a lock of its own.
  std::mutex host_mutex_;
  std::condition_variable host_work_;  // for the thread: a job
  std::condition_variable host_room_;  // for submitters: one less
  std::deque<HostJob> host_jobs_;
  bool closing_ = false;

  // Under mutex_ again.
  bool has_host_thread_ = false;
  HostWord* gate_ = nullptr;  // the word that the native stream waits for
  uint32_t tickets_ = 0;
};

}  // namespace anyacl::cuda

#endif  // ANYACL_CUDA_CUDA_STREAM_H_
