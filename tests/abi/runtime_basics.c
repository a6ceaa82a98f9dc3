/* SPDX-License-Identifier: Apache-2.0
 * Copyright The AnyACL Authors
 *
 * A program in C99: device, stream, memory, copies, events. Returns the line of the first call that fails.
 */
#include <stdio.h>
#include <string.h>

#include "acl/acl.h"

enum { kCount = 1000 };

#define EXPECT(condition)                                                             \
  do {                                                                                \
    if (!(condition)) {                                                               \
      const char* text = aclGetRecentErrMsg();                                        \
      fprintf(stderr, "line %d: %s\n%s\n", __LINE__, #condition, text ? text : "");   \
      return 1;                                                                       \
    }                                                                                 \
  } while (0)
#define CALL(call) EXPECT((call) == ACL_SUCCESS)

static int Devices(void) {
  uint32_t count = 0;
  int32_t device = -1;
  aclrtRunMode mode;
  CALL(aclrtGetDeviceCount(&count));
  EXPECT(count >= 1);
  CALL(aclrtSetDevice(0));
  CALL(aclrtGetDevice(&device));
  EXPECT(device == 0);
  CALL(aclrtGetRunMode(&mode));
  EXPECT(mode == ACL_HOST);
  EXPECT(aclrtGetSocName() != NULL && strlen(aclrtGetSocName()) > 0);
  EXPECT(aclDataTypeSize(ACL_FLOAT16) == 2);
  return 0;
}

static int Copies(aclrtStream stream) {
  int32_t host[kCount];
  int32_t back[kCount];
  void* device = NULL;
  int i;
  for (i = 0; i < kCount; ++i) host[i] = i;
  memset(back, 0, sizeof(back));
  CALL(aclrtMalloc(&device, sizeof(host), ACL_MEM_MALLOC_HUGE_FIRST));
  EXPECT(device != NULL);
  CALL(aclrtMemcpy(device, sizeof(host), host, sizeof(host), ACL_MEMCPY_HOST_TO_DEVICE));
  CALL(aclrtMemcpyAsync(back, sizeof(back), device, sizeof(host), ACL_MEMCPY_DEVICE_TO_HOST, stream));
  CALL(aclrtSynchronizeStream(stream));
  EXPECT(memcmp(host, back, sizeof(host)) == 0);
  CALL(aclrtMemset(device, sizeof(host), 0, sizeof(host)));
  CALL(aclrtMemcpy(back, sizeof(back), device, sizeof(host), ACL_MEMCPY_DEVICE_TO_HOST));
  EXPECT(back[kCount - 1] == 0);
  CALL(aclrtFree(device));
  return 0;
}

static int Events(aclrtStream stream) {
  aclrtEvent begin = NULL;
  aclrtEvent end = NULL;
  float milliseconds = -1;
  CALL(aclrtCreateEvent(&begin));
  CALL(aclrtCreateEvent(&end));
  CALL(aclrtRecordEvent(begin, stream));
  CALL(aclrtRecordEvent(end, stream));
  CALL(aclrtSynchronizeEvent(end));
  CALL(aclrtEventElapsedTime(&milliseconds, begin, end));
  EXPECT(milliseconds >= 0);
  CALL(aclrtDestroyEvent(begin));
  CALL(aclrtDestroyEvent(end));
  return 0;
}

static int Failures(void) {
  const char* text;
  EXPECT(aclrtMalloc(NULL, 16, ACL_MEM_MALLOC_HUGE_FIRST) != ACL_SUCCESS);
  text = aclGetRecentErrMsg();
  EXPECT(text != NULL && strstr(text, "aclrtMalloc") != NULL);
  EXPECT(aclGetRecentErrMsg() == NULL);
  return 0;
}

int main(void) {
  aclrtStream stream = NULL;
  CALL(aclInit(NULL));
  if (Devices() != 0) return 1;
  CALL(aclrtCreateStream(&stream));
  if (Copies(stream) != 0 || Events(stream) != 0 || Failures() != 0) return 1;
  CALL(aclrtDestroyStream(stream));
  CALL(aclrtResetDevice(0));
  CALL(aclFinalize());
  puts("fine");
  return 0;
}
