// SPDX-License-Identifier: Apache-2.0
// Copyright The AnyACL Authors
//
// Where in the program something was asked for.
#ifndef ANYACL_WATCH_SITE_H_
#define ANYACL_WATCH_SITE_H_

#include <string>

namespace anyacl::watch {

struct Site {
  static constexpr int kMostFrames = 16;
  static constexpr int kShownFrames = 8;

  // Of the call that led here. Cheap from where this thread was lately.
  static Site Here() noexcept;

  // One line for each function outside of this library, innermost first: "    #0 main+0x35 in program+0x1235".
  std::string Lines() const;
  bool operator==(const Site& other) const;
  bool operator<(const Site& other) const;

  int count = 0;
  void* frames[kMostFrames];  // the first `count`
};

}  // namespace anyacl::watch

#endif  // ANYACL_WATCH_SITE_H_
