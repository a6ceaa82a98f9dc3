// SPDX-License-Identifier: Apache-2.0
// Copyright The AnyACL Authors
//
// anyacl needs: which functions of the interface a program or library uses, and whether they are here.
#include <dlfcn.h>
#include <elf.h>
#include <fmt/format.h>

#include <cctype>
#include <cstring>
#include <filesystem>
#include <fstream>
#include <iterator>
#include <set>
#include <string>
#include <string_view>
#include <vector>

#include "commands.h"
#include "library.h"

namespace anyacl::tool {
namespace {

namespace fs = std::filesystem;

struct Uses {
  std::set<std::string> linked;     // undefined symbols
  std::set<std::string> named;      // strings that look like functions
  std::set<std::string> libraries;  // of the toolkit
};

bool StartsWith(std::string_view text, std::string_view with) { return text.substr(0, with.size()) == with; }

// The interface's names: a known beginning, then a word with a capital letter.
bool IsFunctionName(std::string_view name) {
  for (const char* family : {"aclnn", "aclrt", "aclop", "aclmdl", "acltdt", "aclprof", "acldump", "aclsys", "aclblas",
                             "acldvpp", "acl", "Acl", "Hccl", "Msprof", "MsProf", "rt"}) {
    if (!StartsWith(name, family)) continue;
    const std::string_view rest = name.substr(std::strlen(family));
    return !rest.empty() && std::isupper(static_cast<unsigned char>(rest[0])) &&
           rest.find_first_not_of("abcdefghijklmnopqrstuvwxyzABCDEFGHIJKLMNOPQRSTUVWXYZ0123456789_") == std::string::npos;
  }
  return false;
}

// Strings are often more than names of functions; these families hardly are.
bool IsLookedUp(std::string_view name) {
  return IsFunctionName(name) && (StartsWith(name, "aclnn") || StartsWith(name, "aclrt") || StartsWith(name, "aclmdl") ||
                                  StartsWith(name, "aclop"));
}

bool IsToolkitLibrary(std::string_view name) {
  for (const char* begin : {"libacl", "libascend", "libopapi", "libhccl", "libhcomm", "libnnopbase", "libge_", "libgraph.so",
                            "libmsprof", "libruntime.so", "libcust_opapi"}) {
    if (StartsWith(name, begin)) return true;
  }
  return false;
}

// A 64-bit ELF file in memory; throws where it points outside of itself.
class Elf {
 public:
  explicit Elf(const std::string& path) : path_(path) {
    std::ifstream file(path, std::ios::binary);
    if (!file || !fs::is_regular_file(path)) throw UserError(fmt::format("{} cannot be read", path));
    bytes_.assign(std::istreambuf_iterator<char>(file), {});
    const bool is_elf = bytes_.size() >= sizeof(Elf64_Ehdr) && std::memcmp(bytes_.data(), ELFMAG, SELFMAG) == 0 &&
                        bytes_[EI_CLASS] == ELFCLASS64;
    if (!is_elf) throw UserError(fmt::format("{} is no 64-bit program or library", path));
    const auto head = At<Elf64_Ehdr>(0);
    for (uint64_t i = 0; i < head.e_shnum; ++i) sections_.push_back(At<Elf64_Shdr>(head.e_shoff + i * head.e_shentsize));
  }

  Uses Find() const {
    Uses uses;
    for (const Elf64_Shdr& section : sections_) {
      if (section.sh_type == SHT_DYNSYM) FindSymbols(section, &uses);
      if (section.sh_type == SHT_DYNAMIC) FindLibraries(section, &uses);
      const bool is_data = section.sh_type == SHT_PROGBITS && (section.sh_flags & SHF_ALLOC) != 0 &&
                           (section.sh_flags & SHF_EXECINSTR) == 0;
      if (is_data) FindNames(Bytes(section.sh_offset, section.sh_size), &uses);
    }
    for (const std::string& symbol : uses.linked) uses.named.erase(symbol);
    return uses;
  }

 private:
  std::string_view Bytes(uint64_t offset, uint64_t size) const {
    if (offset > bytes_.size() || size > bytes_.size() - offset) throw UserError(fmt::format("{} is damaged", path_));
    return std::string_view(bytes_).substr(offset, size);
  }
  template <class T>
  T At(uint64_t offset) const {
    T value;
    std::memcpy(&value, Bytes(offset, sizeof(T)).data(), sizeof(T));
    return value;
  }
  std::string Text(const Elf64_Shdr& table, uint64_t offset) const {
    const Elf64_Shdr& strings = sections_.at(table.sh_link);
    const std::string_view rest = Bytes(strings.sh_offset, strings.sh_size).substr(std::min(offset, strings.sh_size));
    return std::string(rest.substr(0, rest.find('\0')));
  }
  void FindSymbols(const Elf64_Shdr& section, Uses* uses) const {
    for (uint64_t at = 0; at + sizeof(Elf64_Sym) <= section.sh_size; at += sizeof(Elf64_Sym)) {
      const auto symbol = At<Elf64_Sym>(section.sh_offset + at);
      const std::string name = Text(section, symbol.st_name);
      if (symbol.st_shndx == SHN_UNDEF && IsFunctionName(name)) uses->linked.insert(name);
    }
  }
  void FindLibraries(const Elf64_Shdr& section, Uses* uses) const {
    for (uint64_t at = 0; at + sizeof(Elf64_Dyn) <= section.sh_size; at += sizeof(Elf64_Dyn)) {
      const auto entry = At<Elf64_Dyn>(section.sh_offset + at);
      if (entry.d_tag != DT_NEEDED) continue;
      const std::string name = Text(section, entry.d_un.d_val);
      if (IsToolkitLibrary(name)) uses->libraries.insert(name);
    }
  }
  static void FindNames(std::string_view data, Uses* uses) {
    while (!data.empty()) {
      const size_t end = std::min(data.find('\0'), data.size());
      const std::string_view text = data.substr(0, end);
      if (IsLookedUp(text)) uses->named.emplace(text);
      data.remove_prefix(std::min(end + 1, data.size()));
    }
  }

  const std::string path_;
  std::string bytes_;
  std::vector<Elf64_Shdr> sections_;
};

bool HasFunction(const std::string& name) { return dlsym(RTLD_DEFAULT, name.c_str()) != nullptr; }

fs::path LibraryFolder() {
  Dl_info info{};
  dladdr(dlsym(RTLD_DEFAULT, "aclInit"), &info);
  return fs::path(info.dli_fname ? info.dli_fname : "").parent_path();
}

bool HasLibrary(const std::string& name) { return fs::exists(LibraryFolder() / name); }

template <class Has>
size_t Report(const char* what, const std::set<std::string>& names, bool all, Has&& has) {
  size_t missing = 0;
  for (const std::string& name : names) missing += !has(name);
  if (!names.empty()) fmt::print("  {}: {}, {} missing\n", what, names.size(), missing);
  for (const std::string& name : names) {
    if (!has(name)) fmt::print("    missing   {}\n", name);
    else if (all) fmt::print("    provided  {}\n", name);
  }
  return missing;
}

}  // namespace

int Needs(const NeedsOptions& options) {
  size_t missing = 0;
  for (const std::string& file : options.files) {
    const Uses uses = Elf(file).Find();
    fmt::print("{}\n", file);
    if (uses.linked.empty() && uses.named.empty() && uses.libraries.empty()) fmt::print("  uses nothing of the interface\n");
    missing += Report("libraries", uses.libraries, options.all, HasLibrary);
    missing += Report("functions that it links", uses.linked, options.all, HasFunction);
    if (!options.linked) missing += Report("functions that it names in strings", uses.named, options.all, HasFunction);
  }
  fmt::print("{}\n", missing == 0 ? "everything is provided" : fmt::format("{} missing", missing));
  return missing == 0 ? 0 : 1;
}

}  // namespace anyacl::tool
