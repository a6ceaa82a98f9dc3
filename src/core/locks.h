// SPDX-License-Identifier: Apache-2.0
// Copyright The AnyACL Authors
//
// Every lock around state of the process. They are all here because of fork: a child has one thread, so what another one
// held locked would stay so for ever. Whoever forks takes them all, in the order of this list; a thread that holds one may
// take those behind it, and nobody holds one while it waits for other threads. (Locks of a stream's engine and of the
// pool of threads are made anew in the child, with everything that they guard.)
#ifndef ANYACL_CORE_LOCKS_H_
#define ANYACL_CORE_LOCKS_H_

#include <mutex>

namespace anyacl {

enum class Lock {
  kProcess,         // counts and configuration of aclInit
  kExceptions,      // callbacks for failures
  kCompileOptions,
  kDevices,         // selection, contexts, peers
  kModels,          // recorded graphs
  kCaptureMembers,  // what captures hold
  kCaptures,        // which captures there are
  kMappings,        // physical memory and where it is mapped
  kPendingFrees,
  kReports,         // callbacks that wait for a thread of the user
  kWaits,           // which stream's thread waits for which stream
  kCommunicators,   // which there are, and addresses where ranks can meet
  kSpareStreams,
  kStreams,         // settings and failures of a stream
  kEvents,
  kExecutors,       // room for addresses
  kMemoryMap,
  kWatch,           // what tools know of memory, streams and handles
  kFreeBlocks,
  kPhysicalFile,
  kPool,            // which pool of threads there is
  kVerify,          // subjects and sums of verified calls
  kOnce,            // what is made at first use; held while it is made, so some stand behind it
  kKernelNames,
  kHandles,         // growing of tables
  kReported,        // what tools have written
  kErrorText,
  kTrace,           // the file of a trace
};
inline constexpr int kLocks = static_cast<int>(Lock::kTrace) + 1;

std::mutex& LockOf(Lock lock);

// Objects come and go; many of a kind share a few locks. Nobody locks two objects of a kind together.
std::mutex& LockOf(Lock lock, const void* object);

// The one of kOnce: what is made may need something else that is made at first use.
std::recursive_mutex& OnceLock();

// Calls `mend` in every forked child, where all locks are held and no other thread is. In the order of the list.
void InForkedChild(Lock lock, void (*mend)());

}  // namespace anyacl

#endif  // ANYACL_CORE_LOCKS_H_
