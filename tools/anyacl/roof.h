// SPDX-License-Identifier: Apache-2.0
// Copyright The AnyACL Authors
//
// The roof: how fast this machine moves the bytes of a case when nothing is computed. Reads and
// writes the tensors of the case itself, so sizes, pages and the mix of reads and writes are those
// of the case.
#ifndef ANYACL_TOOLS_ROOF_H_
#define ANYACL_TOOLS_ROOF_H_

#include <cstddef>
#include <string>
#include <vector>

#include "runtime/backend.h"

namespace anyacl::tool {

// Memory that the case reads or writes once; whole 64-byte lines of it may be touched.
struct Stretch {
  unsigned char* data;
  size_t bytes;
};

// One way to move them. Which is best depends on size and machine, so several are tried.
struct RoofWay {
  enum class Ahead { kNot, kKept, kOnce };
  bool streaming;     // non-temporal stores
  Ahead ahead;        // ask for lines before they are read: to keep them, or to read them once
  size_t task_bytes;  // of each array; 0: one task on the calling thread
};

class Roof {
 public:
  // `writes` are overwritten. Arrays far shorter than the longest are left out; a longer one counts
  // as several.
  Roof(std::vector<Stretch> reads, std::vector<Stretch> writes);

  size_t bytes() const;  // that one pass moves
  std::vector<RoofWay> Ways() const;
  void Pass(const RoofWay& way) const;
  MovePass DevicePass() const;  // the same for a backend that moves the bytes itself

 private:
  std::vector<unsigned char*> reads_;
  std::vector<unsigned char*> writes_;
  size_t length_ = 0;  // of each array
};

}  // namespace anyacl::tool

#endif  // ANYACL_TOOLS_ROOF_H_
