// SPDX-License-Identifier: Apache-2.0
// Copyright The AnyACL Authors
//
// Graph capture: work put on a stream is recorded and not run, to be replayed as often as one likes.
//
// Other streams join a capture by waiting for an event that one of its streams recorded, and must be joined back
// the same way. Every stream of a capture knows how much of the others its own end has seen.
//
// A call that a capture forbids makes it invalid (docs/decisions/0005): it takes nothing more, and its end fails.
#ifndef ANYACL_RUNTIME_CAPTURE_H_
#define ANYACL_RUNTIME_CAPTURE_H_

#include <list>
#include <map>
#include <memory>
#include <thread>
#include <utility>

#include "core/status.h"
#include "runtime/stream.h"

namespace anyacl::runtime {

enum class CaptureMode { kGlobal = 0, kThreadLocal = 1, kRelaxed = 2 };  // as aclmdlRICaptureMode

// How much of each stream of a capture lies before some point.
using Seen = std::map<const Stream*, uint64_t>;

class GraphCapture {
 public:
  // A point in a capture: what an event is that was recorded there.
  struct Point {
    std::shared_ptr<GraphCapture> capture;
    int number = 0;
    Seen seen;
  };

  // The recorded graph and its replays; what a model handle stands for.
  struct Model {
    std::unique_ptr<Recording> recording;
    std::atomic<bool> captured{true};  // it is being captured still
    int device = 0;
    uint32_t id = 0;
    // The rest is guarded by kModels.
    bool destroyed = false;
    int starting = 0;  // replays that are being put on their streams
    std::list<std::pair<Stream*, uint64_t>> replays;  // that may still run
  };

  static Status Begin(const char* function, Stream* stream, CaptureMode mode);
  static Status End(const char* function, Stream* stream, void** model);
  // Ends the capture of a stream whose life ends, and the life of its model.
  static void Abandon(const Stream& stream) noexcept;
  // In a forked child, which is not captured: there are no captures.
  static void ForgetAll();

  // The capture that records the stream's work now, or null.
  static std::shared_ptr<GraphCapture> Of(const Stream& stream);

  Status Add(Stream* stream, const Work& work, Where where);
  Status Join(const char* function, Stream* stream, const Point& point);

  // The point behind what a stream of an active capture has added; stays null when it is not being captured.
  static Status PointOf(const char* function, Stream* stream, std::shared_ptr<Point>* point);

  // By a function that failed; its name is a literal, and the first one is told.
  void Invalidate(const char* function);
  static void Invalidate(const char* function, const Stream& stream);  // its capture, if any

  bool active() const { return active_.load(std::memory_order_acquire); }
  bool invalid() const { return invalidated_by_.load(std::memory_order_acquire) != nullptr; }
  void* model() const { return model_; }
  int device() const { return origin_->device(); }
  const Context* context() const { return origin_->context(); }

 private:
  friend bool BlocksSynchronousCalls(const GraphCapture& capture);
  struct Member {
    uint64_t added = 0;
    Seen seen;
  };

  Status CheckValid(const char* function) const;
  Status CheckMayEnd(const char* function, const Stream& stream) const;
  Status CheckJoined(const char* function) const;
  Status Close(const char* function, bool keep);
  void Leave();

  Stream* origin_ = nullptr;
  CaptureMode mode_ = CaptureMode::kGlobal;
  std::thread::id thread_;
  Recording* recording_ = nullptr;
  void* model_ = nullptr;
  std::atomic<bool> active_{true};
  std::atomic<const char*> invalidated_by_{nullptr};
  std::map<Stream*, Member> members_;  // guarded by kCaptureMembers, which orders what is added, too
};

// 107027 for a stream that is being captured, which goes on.
Status RequireNotCaptured(const char* function, const Stream& stream);

// What a capture forbids, which makes it invalid; ok, and one load, when nothing is being captured.
Status ForbidWhenCaptured(const char* function, const Stream& stream);      // 107027
Status RequireNoCaptureOn(const char* function, int device);                // 107027
Status RequireMayUseDefault(const char* function, const Context* context);  // 107031
Status RequireMaySynchronize(const char* function);                         // 107030

}  // namespace anyacl::runtime

#endif  // ANYACL_RUNTIME_CAPTURE_H_
