/* SPDX-License-Identifier: Apache-2.0
 * Copyright The AnyACL Authors
 *
 * A library that links one function which there is not, and names another. */
int aclnnOfAnotherDayGetWorkspaceSize(void);
int aclrtMalloc(void**, unsigned long, int);
extern const char* names[];
const char* names[] = {"aclnnAddGetWorkspaceSize", "aclnnOfNoDayGetWorkspaceSize", "aclnn sentence", "aclnn"};

int use(void) { return aclnnOfAnotherDayGetWorkspaceSize() + aclrtMalloc(0, 0, 0); }
