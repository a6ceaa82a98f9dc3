#!/usr/bin/env python3
# SPDX-License-Identifier: Apache-2.0
# Copyright The AnyACL Authors
"""Writes the watched side of every public function that is not one of an operator's two, from the public headers.

    border_calls.py names  --out FILE HEADER...   header for the rooms that have the bodies: their names in objects
    border_calls.py calls  --out FILE HEADER...   the public functions, which pass calls on to the bodies
    border_calls.py replay --out FILE HEADER...   table of anyacl replay

The body of F is untraced_F in objects and F in the sources. F itself is written here: it calls the body, and when
something of trace/switches.h is on, border/watched.h does around it what that asks for.
"""
import argparse
import re
import sys
from pathlib import Path

from declared_names import MACROS, write
from entry_points import PHASE1, operators

DECLARATION = re.compile(r"^(?:%s)\s+([^(;#]*?)\b(\w+)\s*\(([^;]*?)\)\s*;" % "|".join(MACROS), re.MULTILINE)
PARAMETER = re.compile(r"(.*?)(\w+)((?:\s*\[\w*\])*)", re.DOTALL)
STATUS = ("aclError", "aclnnStatus", "HcclResult")

# Names of parameters that point to as many elements as another one says; of each the first that the function has.
COUNTS = {
    "viewDims": ["viewDimsNum"],
    "stride": ["viewDimsNum"],
    "storageDims": ["storageDimsNum"],
    "value": ["size", "dataType"],  # of a data type: the bytes of one element
    "values": ["numValues"],
    "dims": ["numDims"],
    "tensors": ["inputTensorNum"],
    "rankIds": ["rankNum"],
    "devices": ["ndev"],
    "comms": ["ndev"],
    "pid": ["pidNum", "num"],
    "sendRecvInfo": ["itemNum"],
    "dsts": ["numBatches"],
    "destMaxs": ["numBatches"],
    "srcs": ["numBatches"],
    "sizes": ["numBatches"],
    "attrs": ["numAttrs"],
    "attrsIndexes": ["numAttrs"],
    "deviceIdList": ["deviceNums"],
    "memUsageInfo": ["inputNum"],
}
BYTES = {"src": "count", "dst": "count"}  # contents, which a trace holds on request
PITCHES = {"src": "spitch", "dst": "dpitch"}  # of those with a width and a height

CALLS_HEAD = """// Written by cmake/border_calls.py from the public headers.
#include "border/watched.h"
%s
using anyacl::trace::Param;
using anyacl::border::Function;
using anyacl::border::Watched;

"""
REPLAY_HEAD = """// Written by cmake/border_calls.py from the public headers.
#include "replay_calls.h"
%s
namespace anyacl::tool {

const ReplayTable& ReplayCalls() {
  static const ReplayTable table = {
%s  };
  return table;
}

}  // namespace anyacl::tool
"""


class Function:
    def __init__(self, result, name, text):
        self.result = " ".join(result.split()).replace(" *", "*")
        self.name = name
        parts = [" ".join(p.split()) for p in text.split(",")]
        self.declared = [p for p in parts if p not in ("", "void")]
        self.variadic = "..." in self.declared
        self.types, self.names = [], []
        for part in self.declared:
            found = PARAMETER.fullmatch(part)
            if found:
                stars = "*" * found.group(3).count("[")
                self.types.append(found.group(1).strip().replace(" *", "*") + stars)
                self.names.append(found.group(2))

    def index(self, name):
        return self.names.index(name) if name in self.names else -1

    def param(self, i):
        """The row that describes parameter i."""
        name, c_type = self.names[i], self.types[i]
        count, pitch, rows, content = -1, -1, -1, "false"
        if c_type.endswith("*") and not (name == "value" and "Get" in self.name):
            count = next((self.index(c) for c in COUNTS.get(name, []) if self.index(c) >= 0), -1)
        if c_type in ("void*", "const void*") and name in BYTES:
            count, content = self.index(BYTES[name]), "true"
            if count < 0:
                count, pitch, rows = self.index("width"), self.index(PITCHES[name]), self.index("height")
        return f'{{"{name}", "{c_type}", {count}, {pitch}, {rows}, {content}}}'

    def body(self):
        n, names = self.name, ", ".join(self.names)
        params = ", ".join(self.param(i) for i in range(len(self.names)))
        rows = f"static constexpr Param kParamsOf_{n}[] = {{{params}}};\n" if params else ""
        span = f"kParamsOf_{n}" if params else "{}"
        status = "true" if self.result in STATUS else "false"
        waits = "false" if "stream" in self.names else "true"
        keyword = "" if self.result == "void" else "return "
        arguments = f", {names}" if names else ""
        return f"""{rows}static constinit Function kFunction_{n}{{"{n}", "{self.result}", {status}, {waits}, {span}}};
extern "C" decltype({n}) untraced_{n};
{self.result} {n}({", ".join(self.declared)}) {{
  if (anyacl::trace::AllOff()) [[likely]] {keyword}untraced_{n}({names});
  else {keyword}Watched(kFunction_{n}, untraced_{n}{arguments});
}}
"""


def without_comments(text):
    return re.sub(r"//[^\n]*", "", text)


def functions(headers):
    """All but the two functions of operators and those that take any arguments."""
    found = {}
    for header in headers:
        of_operators = set()
        if header.parent.name == "aclnnop":
            of_operators = {n for name in operators(header) for n in (name, name + PHASE1)}
        for result, name, text in DECLARATION.findall(without_comments(header.read_text(encoding="utf-8"))):
            function = Function(result, name, text)
            if name not in of_operators and not function.variadic:
                found[name] = (header, function)
    return [found[name] for name in sorted(found)]


def main():
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("what", choices=["names", "calls", "replay"])
    parser.add_argument("--out", type=Path, required=True)
    parser.add_argument("headers", nargs="+", type=Path)
    args = parser.parse_args()
    found = functions(args.headers)
    includes = "".join(f'#include "{path}"\n' for path in sorted({f"{h.parent.name}/{h.name}" for h, _ in found}))
    if args.what == "names":
        write(args.out, "".join(f"#pragma redefine_extname {f.name} untraced_{f.name}\n" for _, f in found))
    elif args.what == "calls":
        write(args.out, CALLS_HEAD % includes + "\n".join(f.body() for _, f in found))
    else:
        write(args.out, REPLAY_HEAD % (includes, "".join(f'      {{"{f.name}", ReplayOf<&{f.name}>()}},\n'
                                                         for _, f in found)))


if __name__ == "__main__":
    sys.exit(main())
