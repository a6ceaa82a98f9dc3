/* SPDX-License-Identifier: Apache-2.0
 * Copyright The AnyACL Authors
 *
 * loader FLAGS LIBRARY...: opens each library and prints, for some names, which file the address is in. All of them
 * must be in libanyacl.so, at one address: a stub of a filter library must never be what runs.
 */
#define _GNU_SOURCE
#include <dlfcn.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

int main(int argc, char** argv) {
  static const char* const names[] = {"aclInit", "aclrtMalloc", "aclCreateTensor", "aclDestroyTensor",
                                      "aclnnEluBackwardGetWorkspaceSize", "aclnnEluBackward"};
  void* first[6] = {0};
  for (int i = 2; i < argc; ++i) {
    void* library = dlopen(argv[i], atoi(argv[1]));
    if (library == NULL) {
      printf("%s\n", dlerror());
      return 1;
    }
    for (int n = 0; n < 6; ++n) {
      Dl_info info;
      void* address = dlsym(library, names[n]);
      if (address == NULL || dladdr(address, &info) == 0) {
        printf("%s: no %s\n", argv[i], names[n]);
        return 1;
      }
      if (strstr(info.dli_fname, "/libanyacl.so") == NULL || (first[n] != NULL && first[n] != address)) {
        printf("%s: %s is in %s at %p, elsewhere at %p\n", argv[i], names[n], info.dli_fname, address, first[n]);
        return 1;
      }
      first[n] = address;
    }
    if (dlsym(library, "anyacl_no_such_name") != NULL) return 1;
    if (i % 2 == 1) dlclose(library);
  }
  return 0;
}
