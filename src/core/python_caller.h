// SPDX-License-Identifier: Apache-2.0
// Copyright The AnyACL Authors
#ifndef ANYACL_CORE_PYTHON_CALLER_H_
#define ANYACL_CORE_PYTHON_CALLER_H_

#include <string>

namespace anyacl {

// The line of Python from which the calling thread came: of the innermost function that belongs to no installed package
// and not to Python itself; where there is none, of the innermost. False outside of a Python program and in a thread without
// Python code (those that run backward passes, for one). Takes the interpreter's lock for a moment, which frameworks
// release around their operators: the caller holds nothing that a thread with Python code may wait for. Leaves no trace in
// the interpreter. Some 100 ns for a function, and nothing to speak of where there is no Python.
bool PythonCaller(std::string* file, int* line);

}  // namespace anyacl

#endif  // ANYACL_CORE_PYTHON_CALLER_H_
