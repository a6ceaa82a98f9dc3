// SPDX-License-Identifier: Apache-2.0
// Copyright The AnyACL Authors
//
// Opaque handles that can be checked without touching the memory they might point to.
//
// A handle is not an address but a number: kind, generation and slot index. A dead, foreign or made-up
// value fails the comparison of kind and generation, so it gives an error code and never a fault; a
// value is not reused before its slot has been through 2^32 lives. Slots are never unmapped, taken and
// returned with one compare-and-swap each (no lock, no allocation once grown).
#ifndef ANYACL_CORE_HANDLE_TABLE_H_
#define ANYACL_CORE_HANDLE_TABLE_H_

#include <atomic>
#include <cstdint>
#include <cstdlib>
#include <mutex>
#include <new>
#include <type_traits>
#include <utility>

#include "core/locks.h"

namespace anyacl {

// Never 0: a real user-space address has these four top bits clear, so no foreign pointer passes.
enum class HandleKind : uint64_t {
  kTensor = 1,
  kScalar = 2,
  kIntArray = 3,
  kFloatArray = 4,
  kBoolArray = 5,
  kTensorList = 6,
  kScalarList = 7,
  kExecutor = 8,
  kContext = 9,
  kStream = 10,
  kEvent = 11,
  kGraph = 12,
  kDataBuffer = 13,
  kTensorDesc = 14,
  kPhysicalMemory = 15,
};

inline constexpr uint32_t kMostSlots = 1u << 24;  // of one kind

// What the number of a handle says, whether there ever was one or not.
inline HandleKind KindOf(const void* handle) { return static_cast<HandleKind>(reinterpret_cast<uint64_t>(handle) >> 60); }
inline uint32_t SlotOf(const void* handle) { return static_cast<uint32_t>(reinterpret_cast<uint64_t>(handle) >> 4) & (kMostSlots - 1); }

// Told of every handle that is made or destroyed, as long as there is one. What made it may fail yet: then it is destroyed.
struct HandleObserver {
  void (*made)(HandleKind kind, const void* handle) noexcept;
  void (*destroyed)(HandleKind kind, const void* handle) noexcept;
};
inline constinit std::atomic<const HandleObserver*> handle_observer{nullptr};

template <class T, HandleKind kind>
class HandleTable {
 public:
  // Takes a slot, default-constructs a T in it and returns its handle; null when 2^24 are alive.
  // The T's address stays the same for life.
  void* Create(T** object) {
    static_assert(std::is_nothrow_default_constructible_v<T>);  // or the slot would be lost
    uint32_t index = Pop();
    if (index == kNoSlot) index = Grow();
    if (index == kNoSlot) return nullptr;
    Slot& slot = SlotAt(index);
    *object = new (slot.storage) T;  // not T(): that would clear half a KiB of dims first
    slot.pins.store(1, std::memory_order_relaxed);
    const uint32_t generation = slot.generation.load(std::memory_order_relaxed) + 1;
    slot.generation.store(generation, std::memory_order_release);  // odd: alive
    void* const handle = Encode(index, generation);
    if (const HandleObserver* const observer = handle_observer.load(std::memory_order_relaxed)) [[unlikely]]
      observer->made(kind, handle);
    return handle;
  }

  // The live object behind a handle, or null.
  T* Get(const void* handle) const {
    Slot* slot = Find(handle);
    return slot ? Object(*slot) : nullptr;
  }

  // Whether it was ever a handle of this table, or might have been.
  static bool IsKind(const void* handle) {
    const uint64_t value = reinterpret_cast<uint64_t>(handle);
    return KindOf(handle) == kind && (value & 0xf) == 0;
  }

  // The same with a pin: the object stays until it is given to Release, whoever destroys the handle meanwhile.
  T* Pin(const void* handle) {
    Slot* slot = Find(handle);
    if (!slot) return nullptr;
    uint32_t pins = slot->pins.load(std::memory_order_relaxed);
    do {
      if (pins == 0) return nullptr;  // a destroy was faster
    } while (!slot->pins.compare_exchange_weak(pins, pins + 1, std::memory_order_acq_rel));
    T* const object = Object(*slot);
    if (Find(handle) == slot) return object;
    Release(object);  // the pin was of another object, which has taken the slot
    return nullptr;
  }

  // Makes the handle dead; of several concurrent calls exactly one gets the object, and the pin of the owner with
  // it: the object lives on until Release, because queued work may still read it.
  T* Retire(const void* handle) {
    Slot* slot = Find(handle);
    if (!slot) return nullptr;
    uint32_t generation = GenerationOf(handle);
    if (!slot->generation.compare_exchange_strong(generation, generation + 1,
                                                  std::memory_order_acq_rel)) {
      return nullptr;
    }
    if (const HandleObserver* const observer = handle_observer.load(std::memory_order_relaxed)) [[unlikely]]
      observer->destroyed(kind, handle);
    return Object(*slot);
  }

  // Gives up a pin. With the last one the object is destroyed and its slot free again.
  void Release(T* object) {
    Slot* slot = reinterpret_cast<Slot*>(object);
    if (slot->pins.fetch_sub(1, std::memory_order_acq_rel) != 1) return;
    const uint32_t index = slot->index;
    object->~T();
    Push(index);
  }

  bool Destroy(const void* handle) {
    T* object = Retire(handle);
    if (object) Release(object);
    return object != nullptr;
  }

  // A new object that is destroyed at the end of the scope, unless all it needed could be made and Keep was called; empty
  // when too many are alive.
  class Created {
   public:
    explicit Created(HandleTable& table) : table_(table), handle_(table.Create(&object_)) {}
    ~Created() {
      if (handle_) table_.Destroy(handle_);
    }
    Created(const Created&) = delete;
    Created& operator=(const Created&) = delete;

    explicit operator bool() const { return handle_ != nullptr; }
    T* operator->() const { return object_; }
    T* get() const { return object_; }
    void* handle() const { return handle_; }
    void* Keep() { return std::exchange(handle_, nullptr); }

   private:
    HandleTable& table_;
    T* object_ = nullptr;
    void* handle_;
  };

  // A pin with a scope; empty when the handle is not alive.
  class Pinned {
   public:
    Pinned() = default;
    Pinned(HandleTable& table, const void* handle) : table_(&table), object_(table.Pin(handle)) {}
    Pinned(Pinned&& other) noexcept : table_(other.table_), object_(other.Detach()) {}
    Pinned& operator=(Pinned&& other) noexcept {
      std::swap(table_, other.table_);
      std::swap(object_, other.object_);
      return *this;
    }
    ~Pinned() {
      if (object_) table_->Release(object_);
    }

    explicit operator bool() const { return object_ != nullptr; }
    T* operator->() const { return object_; }
    T* get() const { return object_; }
    // The pin is the caller's now.
    T* Detach() { return std::exchange(object_, nullptr); }

   private:
    HandleTable* table_ = nullptr;
    T* object_ = nullptr;
  };

  // Calls visit(T&) for every live object. For shutdown paths: not synchronised with destruction.
  template <class Visit>
  void ForEach(Visit&& visit) const {
    const uint32_t size = size_.load(std::memory_order_acquire);
    for (uint32_t i = 0; i < size; ++i) {
      Slot& slot = SlotAt(i);
      if (slot.generation.load(std::memory_order_acquire) & 1) visit(*Object(slot));
    }
  }

 private:
  static constexpr uint32_t kNoSlot = ~uint32_t{0};
  static constexpr int kChunkBits = 8;
  static constexpr uint32_t kChunk = 1u << kChunkBits;

  struct Slot {
    alignas(64) unsigned char storage[sizeof(T)];  // first, so that T* converts back to Slot*
    std::atomic<uint32_t> generation{0};           // odd while alive
    std::atomic<uint32_t> pins{0};                 // of the object's owner and of others
    std::atomic<uint32_t> next_free{kNoSlot};
    uint32_t index = 0;
  };

  static T* Object(Slot& slot) { return std::launder(reinterpret_cast<T*>(slot.storage)); }

  static void* Encode(uint32_t index, uint32_t generation) {
    const uint64_t value = (static_cast<uint64_t>(kind) << 60) |
                           (static_cast<uint64_t>(generation) << 28) |
                           (static_cast<uint64_t>(index) << 4);
    return reinterpret_cast<void*>(value);
  }
  static uint32_t GenerationOf(const void* handle) {
    return static_cast<uint32_t>(reinterpret_cast<uint64_t>(handle) >> 28);
  }

  Slot& SlotAt(uint32_t index) const {
    Slot* chunk = chunks_[index >> kChunkBits].load(std::memory_order_acquire);
    return chunk[index & (kChunk - 1)];
  }

  Slot* Find(const void* handle) const {
    if (!IsKind(handle)) return nullptr;
    const uint32_t index = SlotOf(handle);
    if (index >= size_.load(std::memory_order_acquire)) return nullptr;
    Slot& slot = SlotAt(index);
    const uint32_t generation = GenerationOf(handle);
    const bool alive = slot.generation.load(std::memory_order_acquire) == generation;
    return alive && (generation & 1) ? &slot : nullptr;
  }

  // Free slots form a stack; its head carries a counter against the ABA problem.
  uint32_t Pop() {
    uint64_t head = free_.load(std::memory_order_acquire);
    while (true) {
      const uint32_t index = static_cast<uint32_t>(head);
      if (index == kNoSlot) return kNoSlot;
      const uint64_t next = SlotAt(index).next_free.load(std::memory_order_relaxed);
      const uint64_t bumped = ((head >> 32) + 1) << 32;
      if (free_.compare_exchange_weak(head, bumped | next, std::memory_order_acq_rel)) return index;
    }
  }

  void Push(uint32_t index) {
    uint64_t head = free_.load(std::memory_order_relaxed);
    while (true) {
      SlotAt(index).next_free.store(static_cast<uint32_t>(head), std::memory_order_relaxed);
      const uint64_t bumped = ((head >> 32) + 1) << 32;
      if (free_.compare_exchange_weak(head, bumped | index, std::memory_order_acq_rel)) return;
    }
  }

  uint32_t Grow() {
    const std::lock_guard lock(LockOf(Lock::kHandles));
    const uint32_t size = size_.load(std::memory_order_relaxed);
    if (size >= kMostSlots) return kNoSlot;
    if (!chunks_) chunks_ = NewChunks();  // before the size says that there are some
    if ((size & (kChunk - 1)) == 0) {
      chunks_[size >> kChunkBits].store(new Slot[kChunk], std::memory_order_release);
    }
    SlotAt(size).index = size;
    size_.store(size + 1, std::memory_order_release);
    return size;
  }

  // calloc, because its pages cost nothing before they are used.
  static std::atomic<Slot*>* NewChunks() {
    void* chunks = std::calloc(kMostSlots / kChunk, sizeof(std::atomic<Slot*>));
    if (!chunks) throw std::bad_alloc();
    return static_cast<std::atomic<Slot*>*>(chunks);
  }

  std::atomic<uint64_t> free_{kNoSlot};
  std::atomic<uint32_t> size_{0};
  // Made with the first handle, so that a table itself cannot fail. Never freed: tables live as long as the process.
  std::atomic<Slot*>* chunks_ = nullptr;
};

}  // namespace anyacl

#endif  // ANYACL_CORE_HANDLE_TABLE_H_
