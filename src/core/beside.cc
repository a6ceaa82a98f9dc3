// SPDX-License-Identifier: Apache-2.0
// Copyright The AnyACL Authors
#include "core/beside.h"

#include <dlfcn.h>

namespace anyacl {
namespace {

std::string OwnFolder() {
  Dl_info info;
  if (!dladdr(reinterpret_cast<const void*>(&OwnFolder), &info) || !info.dli_fname) return ".";
  const std::string file = info.dli_fname;
  const size_t slash = file.rfind('/');
  return slash == std::string::npos ? "." : file.substr(0, slash);
}

}  // namespace

void* OpenBeside(const char* file, std::string* problem) {
  const std::string folder = OwnFolder();
  for (const char* place : {"/", "/../lib64/"}) {
    const std::string path = folder + place + file;
    if (void* const library = dlopen(path.c_str(), RTLD_NOW | RTLD_LOCAL | RTLD_NODELETE))
      return library;
    if (problem->empty()) *problem = dlerror();  // of the first place, where it belongs
  }
  return nullptr;
}

}  // namespace anyacl
