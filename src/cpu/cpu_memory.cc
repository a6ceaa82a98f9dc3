// SPDX-License-Identifier: Apache-2.0
// Copyright The AnyACL Authors
//
// Device memory of the CPU: ordinary memory that is counted, so that a program which asks for more
// than the machine has gets an error from the allocation and not a kill when it touches the pages.
#include <fcntl.h>
#include <sys/mman.h>
#include <unistd.h>

#include <algorithm>
#include <atomic>
#include <cstdint>
#include <cstdlib>
#include <cstring>
#include <map>
#include <mutex>
#include <type_traits>

#include "core/env.h"
#include "core/locks.h"
#include "core/once.h"
#include "core/scalar.h"
#include "core/undo.h"
#include "cpu/backend.h"
#include "cpu/machine_memory.h"
#include "cpu/parallel.h"

namespace anyacl::cpu {
namespace {

constexpr size_t kSmallAlignment = 512;
constexpr size_t kHugePage = size_t{2} << 20;
constexpr size_t kReadableTail = 32;
constexpr size_t kAbsurd = size_t{1} << 46;  // keeps the sums below from overflowing

// Pieces of a parallel transfer: large enough to hide the hand-over, small enough to share out
// evenly.
constexpr size_t kPiece = size_t{1} << 20;
constexpr size_t kParallelFrom = 4 * kPiece;

size_t RoundUp(size_t value, size_t multiple) {
  return (value + multiple - 1) / multiple * multiple;
}
size_t Minus(size_t a, size_t b) { return a > b ? a - b : 0; }

const size_t page_size = static_cast<size_t>(sysconf(_SC_PAGESIZE));
size_t PageSize() { return page_size; }

unsigned char* Bytes(void* address) { return static_cast<unsigned char*>(address); }
const unsigned char* Bytes(const void* address) {
  return static_cast<const unsigned char*>(address);
}

// Address space aligned to 2 MiB: maps more than asked for and trims both ends.
void* MapAligned(size_t bytes, int protection, int flags, void* hint) {
  const size_t length = RoundUp(bytes, PageSize());
  void* mapped =
      mmap(hint, length + kHugePage, protection, MAP_PRIVATE | MAP_ANONYMOUS | flags, -1, 0);
  if (mapped == MAP_FAILED) return nullptr;
  const uintptr_t begin = reinterpret_cast<uintptr_t>(mapped);
  const uintptr_t aligned = RoundUp(begin, kHugePage);
  if (aligned > begin) munmap(mapped, aligned - begin);
  const size_t behind = begin + kHugePage - aligned;
  if (behind > 0) munmap(reinterpret_cast<void*>(aligned + length), behind);
  return reinterpret_cast<void*>(aligned);
}

void* MapLarge(size_t bytes) {
  void* address = MapAligned(bytes, PROT_READ | PROT_WRITE, 0, nullptr);
  if (address) madvise(address, bytes, MADV_HUGEPAGE);  // a wish: small pages are only slower
  return address;
}

// Freed large blocks kept for the next allocation of the same size. Fresh pages cost more than most
// kernels that write them, and programs allocate the same workspace again and again.
class FreeBlocks {
 public:
  // Takes the block, or refuses it: the caller unmaps it then.
  bool Keep(void* address, size_t bytes) {
    const size_t most = MaxBytes();
    const std::lock_guard lock(Mutex());
    if (count_ >= kMaxBlocks || bytes > Minus(most, total_)) return false;
    blocks_[count_++] = {address, bytes};
    total_ += bytes;
    return true;
  }

  void* Take(size_t bytes) {
    const std::lock_guard lock(Mutex());
    size_t i = count_;
    while (i > 0 && blocks_[i - 1].bytes != bytes) --i;
    if (i == 0) return nullptr;
    void* const address = blocks_[i - 1].address;
    std::copy(blocks_ + i, blocks_ + count_, blocks_ + i - 1);
    --count_;
    total_ -= bytes;
    return address;
  }

  void Drop() {
    const std::lock_guard lock(Mutex());
    for (size_t i = 0; i < count_; ++i) munmap(blocks_[i].address, blocks_[i].bytes);
    count_ = 0;
    total_ = 0;
  }

  size_t total() const { return total_; }

 private:
  static constexpr size_t kMaxBlocks = 64;
  static size_t MaxBytes() { return std::min(size_t{1} << 30, MachineTotal() / 16); }

  struct Entry {
    void* address;
    size_t bytes;
  };
  static std::mutex& Mutex() { return LockOf(Lock::kFreeBlocks); }

  Entry blocks_[kMaxBlocks];
  size_t count_ = 0;
  std::atomic<size_t> total_{0};
};

// One anonymous file holds all physical memory, each allocation its own range of offsets: a handle
// per allocation would run into the limit on open files. Offsets are not used twice; the file is
// sparse.
//
// A forked child shares the file, but must not change what its parent has there. So what is mapped becomes the child's own,
// page by page when it writes (until then it may see what the parent writes later), it frees nothing in the file, and
// new memory comes from a file of its own.
class PhysicalFile {
 public:
  PhysicalFile() { InForkedChild(Lock::kPhysicalFile, &PhysicalFile::LeaveParent); }

  bool Allocate(size_t bytes, uint64_t* offset) {
    const std::lock_guard lock(Mutex());
    if (!own_ && !Open()) return false;
    if (ftruncate(own_->fd, static_cast<off_t>(end_ + bytes)) != 0) return false;
    *offset = end_;
    end_ += bytes;
    return true;
  }

  void Free(uint64_t offset, size_t bytes) {
    const std::lock_guard lock(Mutex());
    if (!IsOwn(offset)) return;
    fallocate(own_->fd, FALLOC_FL_PUNCH_HOLE | FALLOC_FL_KEEP_SIZE, static_cast<off_t>(offset),
              static_cast<off_t>(bytes));
  }

  bool Map(void* address, size_t bytes, uint64_t offset) {
    const std::lock_guard lock(Mutex());
    if (!IsOwn(offset)) return Place(address, bytes, offset, MAP_PRIVATE);
    const auto added = shared_.emplace(address, Piece{bytes, offset}).first;
    if (Place(address, bytes, offset, MAP_SHARED)) return true;
    shared_.erase(added);
    return false;
  }

  void Unmap(void* address, size_t bytes) {
    const std::lock_guard lock(Mutex());
    Hide(address, bytes);
    shared_.erase(address);
  }

 private:
  // Of this process, or of the parent it was forked from, and so on.
  struct File {
    int fd;
    uint64_t begin;  // of the offsets in it
    File* older;
  };
  struct Piece {
    size_t bytes;
    uint64_t offset;
  };

  static std::mutex& Mutex() { return LockOf(Lock::kPhysicalFile); }

  bool Open() {
    const int fd = memfd_create("anyacl", MFD_CLOEXEC);
    if (fd < 0) return false;
    Undo unused([fd] { close(fd); });
    own_ = files_ = new File{fd, end_, files_};
    unused.Keep();
    return true;
  }

  bool IsOwn(uint64_t offset) const { return own_ && offset >= own_->begin; }

  bool Place(void* address, size_t bytes, uint64_t offset, int sharing) const {
    const File* file = files_;
    while (offset < file->begin) file = file->older;
    return mmap(address, bytes, PROT_READ | PROT_WRITE, sharing | MAP_FIXED, file->fd,
                static_cast<off_t>(offset)) != MAP_FAILED;
  }

  static void Hide(void* address, size_t bytes) {
    mmap(address, bytes, PROT_NONE, MAP_PRIVATE | MAP_ANONYMOUS | MAP_NORESERVE | MAP_FIXED, -1, 0);
  }

  static void LeaveParent();

  File* files_ = nullptr;  // never freed
  File* own_ = nullptr;
  uint64_t end_ = 0;
  std::map<void*, Piece> shared_;  // what is mapped of our own file
};

// Calls piece(begin, end) for ranges that cover [0, count), in parallel when there is enough to do.
template <class Piece>
void InPieces(size_t count, size_t unit, Piece&& piece) {
  if (count * unit < kParallelFrom) return piece(size_t{0}, count);
  const size_t per_piece = std::max(kPiece / unit, size_t{1});
  const size_t pieces = (count + per_piece - 1) / per_piece;
  ParallelFor(static_cast<int64_t>(pieces), [&](int64_t i) {
    const size_t begin = static_cast<size_t>(i) * per_piece;
    piece(begin, std::min(count, begin + per_piece));
  });
}

void CopyContiguous(unsigned char* to, const unsigned char* from, size_t bytes) {
  const uintptr_t a = reinterpret_cast<uintptr_t>(to);
  const uintptr_t b = reinterpret_cast<uintptr_t>(from);
  const bool overlap = a < b + bytes && b < a + bytes;
  if (overlap) {
    std::memmove(to, from, bytes);
    return;
  }
  InPieces(bytes, 1,
           [&](size_t begin, size_t end) { std::memcpy(to + begin, from + begin, end - begin); });
}

template <class T>
T Combine(ReduceOp op, T a, T b) {
  if constexpr (std::is_integral_v<T>) {
    using Wide = std::make_unsigned_t<decltype(a + b)>;  // wraps instead of overflowing
    if (op == ReduceOp::kSum) return static_cast<T>(static_cast<Wide>(a) + static_cast<Wide>(b));
  } else {
    if (op == ReduceOp::kSum) return a + b;
    if (a != a) return a;  // NaN wins
    if (b != b) return b;
  }
  return op == ReduceOp::kMax ? std::max(a, b) : std::min(a, b);
}

// Elements may start at any address: the caller promises bytes, not alignment.
template <class Stored, class Computed>
void ReduceAs(void* to, const void* from, size_t elements, ReduceOp op) {
  InPieces(elements, sizeof(Stored), [&](size_t begin, size_t end) {
    for (size_t i = begin; i < end; ++i) {
      Stored a;
      Stored b;
      std::memcpy(&a, Bytes(to) + i * sizeof(Stored), sizeof(Stored));
      std::memcpy(&b, Bytes(from) + i * sizeof(Stored), sizeof(Stored));
      a = static_cast<Stored>(Combine(op, static_cast<Computed>(a), static_cast<Computed>(b)));
      std::memcpy(Bytes(to) + i * sizeof(Stored), &a, sizeof(Stored));
    }
  });
}

using ReduceFunction = void (*)(void* to, const void* from, size_t elements, ReduceOp op);

ReduceFunction FindReduce(DType dtype) {
  switch (dtype) {
    case DType::kF32:
      return ReduceAs<float, float>;
    case DType::kF64:
      return ReduceAs<double, double>;
    case DType::kF16:
      return ReduceAs<Half, float>;
    case DType::kBF16:
      return ReduceAs<BFloat16, float>;
    case DType::kI8:
      return ReduceAs<int8_t, int8_t>;
    case DType::kU8:
      return ReduceAs<uint8_t, uint8_t>;
    case DType::kI16:
      return ReduceAs<int16_t, int16_t>;
    case DType::kU16:
      return ReduceAs<uint16_t, uint16_t>;
    case DType::kI32:
      return ReduceAs<int32_t, int32_t>;
    case DType::kU32:
      return ReduceAs<uint32_t, uint32_t>;
    case DType::kI64:
      return ReduceAs<int64_t, int64_t>;
    case DType::kU64:
      return ReduceAs<uint64_t, uint64_t>;
    default:
      return nullptr;
  }
}

class CpuMemory final : public DeviceMemory {
 public:
  void* Allocate(size_t bytes, int /*device*/) override {
    if (bytes > kAbsurd) return nullptr;
    const size_t usable = UsableSize(bytes);
    const bool large = IsLarge(bytes);
    if (large) {
      if (void* spare = spares_.Take(usable)) {
        live_ += usable;
        return spare;
      }
    }
    if (!Book(usable, large)) return nullptr;
    void* address = large ? MapLarge(usable) : std::aligned_alloc(kSmallAlignment, usable);
    if (!address) live_ -= usable;
    return address;
  }

  void Free(void* address, size_t bytes, int /*device*/) override {
    const size_t usable = UsableSize(bytes);
    live_ -= usable;
    if (!IsLarge(bytes)) {
      std::free(address);
    } else if (!spares_.Keep(address, usable)) {
      munmap(address, usable);
    }
  }

  size_t UsableSize(size_t bytes) const override {
    return RoundUp(bytes + kReadableTail, IsLarge(bytes) ? PageSize() : kSmallAlignment);
  }

  void* AllocateHost(size_t bytes) override { return Allocate(bytes, 0); }
  void FreeHost(void* address, size_t bytes) override { Free(address, bytes, 0); }

  // All devices are the same machine: each shows its share, so that a program which fills every
  // device to some fraction does not ask for more than there is.
  MemoryInfo Info(int /*device*/) const override {
    const int devices = env::GetInt(env::Var::ANYACL_DEVICES, 1);
    const size_t share = static_cast<size_t>(devices);
    const size_t free = std::min(FreeBytes(live_) + spares_.total(), Minus(MachineTotal(), live_));
    return {MachineTotal() / share, free / share};
  }

  bool RegisterHost(void*, size_t) override { return true; }
  void UnregisterHost(void*) override {}
  bool HostCanAccess() const override { return true; }

  Status Copy(const RowCopy& copy, const Launch&) override {
    const bool contiguous =
        copy.height == 1 || (copy.to_pitch == copy.width && copy.from_pitch == copy.width);
    if (contiguous) {
      CopyContiguous(Bytes(copy.to), Bytes(copy.from), copy.width * copy.height);
      return Status();
    }
    InPieces(copy.height, copy.width, [&](size_t begin, size_t end) {
      for (size_t row = begin; row < end; ++row) {
        std::memmove(Bytes(copy.to) + row * copy.to_pitch, Bytes(copy.from) + row * copy.from_pitch,
                     copy.width);
      }
    });
    return Status();
  }

  Status Fill(void* to, int unit, uint32_t pattern, size_t count, const Launch&) override {
    InPieces(count, static_cast<size_t>(unit), [&](size_t begin, size_t end) {
      if (unit == 1) {
        std::memset(Bytes(to) + begin, static_cast<int>(pattern & 0xff), end - begin);
      } else {
        std::fill(static_cast<uint32_t*>(to) + begin, static_cast<uint32_t*>(to) + end, pattern);
      }
    });
    return Status();
  }

  Status Reduce(void* to, const void* from, size_t elements, DType dtype, ReduceOp op,
                const Launch&) override {
    FindReduce(dtype)(to, from, elements, op);
    return Status();
  }
  bool CanReduce(DType dtype) const override { return FindReduce(dtype) != nullptr; }

  bool WriteValue(uint64_t*, uint64_t, const Launch&) override { return false; }
  bool WaitValue(uint64_t*, uint64_t, uint32_t, const Launch&) override { return false; }

  size_t Granularity() const override { return kHugePage; }

  void* ReserveRange(size_t bytes, void* hint) override {
    if (bytes > kAbsurd) return nullptr;
    return MapAligned(bytes, PROT_NONE, MAP_NORESERVE, hint);
  }
  void ReleaseRange(void* range, size_t bytes) override { munmap(range, bytes); }

  bool AllocatePhysical(size_t bytes, int /*device*/, uint64_t* id) override {
    if (bytes > kAbsurd || !Book(bytes, true)) return false;
    Undo refused([&] { live_ -= bytes; });
    if (!physical_.Allocate(bytes, id)) return false;
    refused.Keep();
    return true;
  }
  void FreePhysical(uint64_t id, size_t bytes, int /*device*/) override {
    physical_.Free(id, bytes);
    live_ -= bytes;
  }

  bool Map(void* address, size_t bytes, uint64_t id, size_t offset) override {
    if (!physical_.Map(address, bytes, id + offset)) return false;
    madvise(address, bytes, MADV_HUGEPAGE);
    return true;
  }
  void Unmap(void* address, size_t bytes) override {
    physical_.Unmap(address, bytes);
  }

  PhysicalFile& physical() { return physical_; }

 private:
  static bool IsLarge(size_t bytes) { return bytes >= kHugePage; }

  // What the kernel could still give. It counts a page when it is touched, we count it when it is
  // allocated; `live - resident` is the least that was allocated and not yet touched.
  static size_t FreeBytes(size_t live) {
    const MachineMemory machine = ReadMachineMemory();
    return std::min(Minus(machine.available, Minus(live, machine.resident)),
                    Minus(machine.total, live));
  }

  // Counts the bytes as allocated if the machine can give them. Asks the kernel for large blocks
  // only: small ones are too many to ask each time.
  bool Book(size_t bytes, bool ask_kernel) {
    const size_t total = MachineTotal();
    const size_t before = live_.fetch_add(bytes);
    Undo refused([&] { live_ -= bytes; });
    if (before + bytes > total) return false;
    if (ask_kernel && bytes > FreeBytes(before)) {
      spares_.Drop();
      if (bytes > FreeBytes(before)) return false;
    }
    refused.Keep();
    return true;
  }

  std::atomic<size_t> live_{0};
  FreeBlocks spares_;
  PhysicalFile physical_;
};

void PhysicalFile::LeaveParent() {
  PhysicalFile& file = TheOne<CpuMemory>().physical();
  for (const auto& [address, piece] : file.shared_) {
    if (!file.Place(address, piece.bytes, piece.offset, MAP_PRIVATE)) Hide(address, piece.bytes);
  }
  file.shared_.clear();
  file.own_ = nullptr;
}

}  // namespace

DeviceMemory& CpuBackend::memory() const {
  return TheOne<CpuMemory>();
}

}  // namespace anyacl::cpu
