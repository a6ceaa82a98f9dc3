// SPDX-License-Identifier: Apache-2.0
// Copyright The AnyACL Authors
#include "watch/site.h"

#include <cxxabi.h>
#include <dlfcn.h>
#include <elf.h>
#include <fcntl.h>
#include <fmt/format.h>
#include <sys/mman.h>
#include <sys/stat.h>
#include <unistd.h>
#include <unwind.h>

#include <algorithm>
#include <cstdint>
#include <cstdlib>
#include <memory>
#include <optional>
#include <string_view>

#include "core/thread_value.h"

namespace anyacl::watch {
namespace {

#ifdef __x86_64__
constexpr bool kPlacesAreKnown = true;
#else
constexpr bool kPlacesAreKnown = false;
#endif

// Unwinding takes microseconds, and programs call from the same places again and again. A thread that is in this function
// with the same stack below it, and finds every return address of last time where it was, is where it was last time.
struct Walk {
  const void* stack = nullptr;  // where it began
  Site site;
  const uintptr_t* places[Site::kMostFrames] =
      {};                 // of the return addresses; but of the first frame, which is this function
  bool is_known = false;  // all places

  bool IsAgain(const void* now) const {
    if (stack != now || !is_known) return false;
    for (int i = 1; i < site.count; ++i) {  // outwards: a frame tells where the next one is
      if (*places[i] - 1 != reinterpret_cast<uintptr_t>(site.frames[i])) return false;
    }
    return true;
  }
};

struct Walks {
  static constexpr size_t kCount = 64;
  Walk walks[kCount];

  Walk& At(const void* stack, const void* back) {
    constexpr uint64_t kFactor = 0x9e3779b97f4a7c15;
    const uint64_t sum =
        reinterpret_cast<uintptr_t>(stack) * 31 + reinterpret_cast<uintptr_t>(back);
    return walks[(sum * kFactor >> 32) % kCount];
  }
};

_Unwind_Reason_Code TakeFrame(_Unwind_Context* context, void* pointer) {
  Walk& walk = *static_cast<Walk*>(pointer);
  Site& here = walk.site;
  const uintptr_t address = _Unwind_GetIP(context);
  if (address == 0 || here.count == Site::kMostFrames) return _URC_END_OF_STACK;
  if (here.count > 0) {  // on x86 it is what the call pushed last
    const auto* const place = reinterpret_cast<const uintptr_t*>(_Unwind_GetCFA(context)) - 1;
    walk.places[here.count] = place;
    walk.is_known =
        walk.is_known && static_cast<const void*>(place) >= walk.stack && *place == address;
  }
  here.frames[here.count++] =
      reinterpret_cast<void*>(address - 1);  // of the call, not of what follows it
  return _URC_NO_REASON;
}

// A file in memory, to read the names of functions that no other library can link.
class MappedFile {
 public:
  explicit MappedFile(const char* path) {
    const int file = open(path, O_RDONLY | O_CLOEXEC);
    if (file < 0) return;
    struct stat facts;
    if (fstat(file, &facts) == 0 && facts.st_size > 0) {
      bytes_ = static_cast<size_t>(facts.st_size);
      data_ = mmap(nullptr, bytes_, PROT_READ, MAP_PRIVATE, file, 0);
    }
    close(file);
  }
  ~MappedFile() {
    if (data_ != MAP_FAILED) munmap(data_, bytes_);
  }
  MappedFile(const MappedFile&) = delete;
  MappedFile& operator=(const MappedFile&) = delete;

  // `count` of them at an offset; null when they are not all inside.
  template <class T>
  const T* At(uint64_t offset, uint64_t count = 1) const {
    if (data_ == MAP_FAILED || offset > bytes_ || count > (bytes_ - offset) / sizeof(T))
      return nullptr;
    return reinterpret_cast<const T*>(static_cast<const char*>(data_) + offset);
  }

 private:
  void* data_ = MAP_FAILED;
  size_t bytes_ = 0;
};

struct Function {
  std::string name;
  uint64_t offset;
};

std::string Plain(const char* name) {
  int status = 0;
  const std::unique_ptr<char, void (*)(void*)> plain(
      abi::__cxa_demangle(name, nullptr, nullptr, &status), std::free);
  return status == 0 && plain ? plain.get() : name;
}

// The function at an address of the file's own numbering.
std::optional<Function> FindInFile(const MappedFile& file, uint64_t address) {
  const auto* const header = file.At<Elf64_Ehdr>(0);
  if (!header || header->e_shentsize != sizeof(Elf64_Shdr)) return std::nullopt;
  const auto* const sections = file.At<Elf64_Shdr>(header->e_shoff, header->e_shnum);
  if (!sections) return std::nullopt;
  for (int i = 0; i < header->e_shnum; ++i) {
    const Elf64_Shdr& section = sections[i];
    if (section.sh_type != SHT_SYMTAB || section.sh_link >= header->e_shnum) continue;
    const uint64_t count = section.sh_size / sizeof(Elf64_Sym);
    const auto* const symbols = file.At<Elf64_Sym>(section.sh_offset, count);
    const Elf64_Shdr& names = sections[section.sh_link];
    for (uint64_t s = 0; symbols && s < count; ++s) {
      const Elf64_Sym& symbol = symbols[s];
      if (ELF64_ST_TYPE(symbol.st_info) != STT_FUNC || address < symbol.st_value) continue;
      if (address - symbol.st_value >= symbol.st_size || symbol.st_name >= names.sh_size) continue;
      const auto* const name =
          file.At<char>(names.sh_offset + symbol.st_name, names.sh_size - symbol.st_name);
      if (name) return Function{Plain(name), address - symbol.st_value};
    }
  }
  return std::nullopt;
}

bool HasOwnAddresses(const MappedFile& file) {  // a program that is not position independent
  const auto* const header = file.At<Elf64_Ehdr>(0);
  return header && header->e_type == ET_EXEC;
}

struct Frame {
  std::string module;
  uint64_t offset = 0;  // in the module's own numbering
  std::optional<Function> function;

  bool ours() const {
    // Names of templates begin with what they return.
    return module.starts_with("libanyacl") ||
           (function && function->name.find("anyacl::") < function->name.find('('));
  }
};

Frame FrameAt(void* address) {
  Dl_info info{};
  if (dladdr(address, &info) == 0 || !info.dli_fname)
    return {"?", reinterpret_cast<uintptr_t>(address), std::nullopt};
  Frame frame;
  const std::string_view path = info.dli_fname;
  frame.module = path.substr(path.rfind('/') + 1);
  const MappedFile file(info.dli_fname);
  const auto base = HasOwnAddresses(file) ? 0 : reinterpret_cast<uintptr_t>(info.dli_fbase);
  frame.offset = reinterpret_cast<uintptr_t>(address) - base;
  frame.function = FindInFile(file, frame.offset);
  if (!frame.function && info.dli_sname) {
    frame.function = Function{
        Plain(info.dli_sname),
        static_cast<uint64_t>(static_cast<char*>(address) - static_cast<char*>(info.dli_saddr))};
  }
  return frame;
}

}  // namespace

[[gnu::noinline]] Site Site::Here() noexcept {
  const void* const stack = __builtin_frame_address(0);
  Walks* const walks = ThreadValue<Walks>();
  Walk fresh;
  Walk& walk = walks ? walks->At(stack, __builtin_return_address(0)) : fresh;
  if (!walk.IsAgain(stack)) {
    walk.stack = stack;
    walk.site.count = 0;
    walk.is_known = kPlacesAreKnown;
    _Unwind_Backtrace(TakeFrame, &walk);
  }
  return walk.site;
}

std::string Site::Lines() const {
  std::string lines;
  int shown = 0;
  for (int i = 0; i < count && shown < kShownFrames; ++i) {
    const Frame frame = FrameAt(frames[i]);
    if (shown == 0 && frame.ours()) continue;
    const std::string function =
        frame.function ? fmt::format("{}+{:#x} in ", frame.function->name, frame.function->offset)
                       : "";
    lines += fmt::format("    #{} {}{}+{:#x}\n", shown++, function, frame.module, frame.offset);
    if (frame.function && frame.function->name == "main") break;
  }
  return lines;
}

bool Site::operator==(const Site& other) const {
  return std::equal(frames, frames + count, other.frames, other.frames + other.count);
}
bool Site::operator<(const Site& other) const {
  return std::lexicographical_compare(frames, frames + count, other.frames,
                                      other.frames + other.count);
}

}  // namespace anyacl::watch
