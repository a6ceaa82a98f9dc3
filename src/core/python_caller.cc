// SPDX-License-Identifier: Apache-2.0
// Copyright The AnyACL Authors
//
// The interpreter is the program's, if it has one: nothing is linked, its functions are looked up by name, and all of them
// belong to its stable interface (but PyFrame_GetBack, which every version since 3.9 has).
#include "core/python_caller.h"

#include <dlfcn.h>

#include <string>
#include <string_view>
#include <utility>

#include "core/once.h"

namespace anyacl {
namespace {

using Object = struct AnyPythonObject;

template <class Function>
Function Find(const char* name) {
  return reinterpret_cast<Function>(dlsym(RTLD_DEFAULT, name));
}

struct Python {
  int (*is_initialized)() = Find<int (*)()>("Py_IsInitialized");
  int (*is_finalizing)() = Find<int (*)()>("Py_IsFinalizing") ? Find<int (*)()>("Py_IsFinalizing")
                                                              : Find<int (*)()>("_Py_IsFinalizing");
  Object* (*this_thread)() = Find<Object* (*)()>("PyGILState_GetThisThreadState");
  int (*take_lock)() = Find<int (*)()>("PyGILState_Ensure");
  void (*return_lock)(int) = Find<void (*)(int)>("PyGILState_Release");
  Object* (*failure)() = Find<Object* (*)()>("PyErr_Occurred");
  void (*clear_failure)() = Find<void (*)()>("PyErr_Clear");
  Object* (*frame)() = Find<Object* (*)()>("PyEval_GetFrame");               // borrowed
  Object* (*back)(Object*) = Find<Object* (*)(Object*)>("PyFrame_GetBack");  // these three are ours
  Object* (*code)(Object*) = Find<Object* (*)(Object*)>("PyFrame_GetCode");
  Object* (*attribute)(Object*, const char*) =
      Find<Object* (*)(Object*, const char*)>("PyObject_GetAttrString");
  int (*line)(Object*) = Find<int (*)(Object*)>("PyFrame_GetLineNumber");
  const char* (*text)(Object*) = Find<const char* (*)(Object*)>("PyUnicode_AsUTF8");
  void (*retain)(Object*) = Find<void (*)(Object*)>("Py_IncRef");
  void (*release)(Object*) = Find<void (*)(Object*)>("Py_DecRef");

  bool complete = is_initialized && is_finalizing && this_thread && take_lock && return_lock &&
                  failure && clear_failure && frame && back && code && attribute && line && text &&
                  retain && release;

  // A thread that Python does not know runs none of it; at the end of the program its lock is not to be had any more.
  bool MayAsk() const { return complete && is_initialized() && !is_finalizing() && this_thread(); }
};

// The interpreter's lock: frameworks release it around their operators.
class HeldInterpreter {
 public:
  explicit HeldInterpreter(const Python& python) : python_(python), state_(python.take_lock()) {}
  ~HeldInterpreter() { python_.return_lock(state_); }
  HeldInterpreter(const HeldInterpreter&) = delete;
  HeldInterpreter& operator=(const HeldInterpreter&) = delete;

 private:
  const Python& python_;
  const int state_;
};

// A reference of ours.
class Owned {
 public:
  Owned(const Python& python, Object* object) : python_(python), object_(object) {}
  ~Owned() { python_.release(object_); }  // which takes null
  Owned(const Owned&) = delete;
  Owned& operator=(const Owned&) = delete;
  Object* get() const { return object_; }
  void Reset(Object* object) {
    python_.release(object_);
    object_ = object;
  }

 private:
  const Python& python_;
  Object* object_;
};

std::string FileOf(const Python& python, Object* frame) {
  const Owned code(python, python.code(frame));
  const Owned name(python, code.get() ? python.attribute(code.get(), "co_filename") : nullptr);
  const char* const text = name.get() ? python.text(name.get()) : nullptr;
  if (python.failure()) python.clear_failure();
  return text ? text : "";
}

bool IsInstalled(std::string_view file) {
  for (const char* part : {"/site-packages/", "/dist-packages/", "/lib/python3", "<frozen "}) {
    if (file.find(part) != std::string_view::npos) return true;
  }
  return file.empty();
}

}  // namespace

bool PythonCaller(std::string* file, int* line) {
  const Python& python = TheOne<Python>();
  if (!python.MayAsk()) return false;
  const HeldInterpreter held(python);
  if (python.failure()) return false;
  Object* const innermost = python.frame();
  if (!innermost) return false;
  python.retain(innermost);
  bool found = false;
  for (Owned frame(python, innermost); frame.get(); frame.Reset(python.back(frame.get()))) {
    std::string here = FileOf(python, frame.get());
    const bool is_the_programs = !IsInstalled(here);
    if (found && !is_the_programs) continue;
    *file = std::move(here);
    *line = python.line(frame.get());
    found = true;
    if (is_the_programs) break;
  }
  return found;
}

}  // namespace anyacl
