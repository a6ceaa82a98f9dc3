#!/usr/bin/env python3
# SPDX-License-Identifier: Apache-2.0
# Copyright The AnyACL Authors
"""Writes the two C functions of every operator from the public headers.

    entry_points.py --out FILE HEADER...

A header declares phase 1 as NAMEGetWorkspaceSize(..., uint64_t* workspaceSize, aclOpExecutor** executor) and phase 2 as
NAME. The file holds their bodies and the table Entries() of plan/operator.h, sorted by name. The compiler checks
the bodies against the headers, which the file includes.
"""
import argparse
import re
import sys
from pathlib import Path

DECLARATION = re.compile(r"^ACLNN_API\s+aclnnStatus\s+(\w+)\s*\(([^)]*)\)\s*;", re.MULTILINE)
PHASE1 = "GetWorkspaceSize"
RESULTS = ["uint64_t* workspaceSize", "aclOpExecutor** executor"]

KINDS = {  # of a C type, spaces and a leading const of values removed
    "const aclTensor*": "kInput",
    "aclTensor*": "kOutput",
    "const aclTensorList*": "kInputList",
    "aclTensorList*": "kOutputList",
    "const aclScalar*": "kScalar",
    "aclScalar*": "kScalar",
    "const aclScalarList*": "kScalarList",
    "const aclIntArray*": "kIntArray",
    "aclIntArray*": "kIntArray",
    "const aclBoolArray*": "kBoolArray",
    "const aclFloatArray*": "kFloatArray",
    "aclFloatArray*": "kFloatArray",
    "const char*": "kString",
    "char*": "kString",
    "bool": "kBool",
    "float": "kReal",
    "double": "kReal",
}
KINDS.update({t: "kInt" for t in ("int64_t", "int32_t", "int8_t", "int", "uint64_t", "aclDataType")})
TAKE = {"kBool": "flag", "kReal": "real", "kInt": "integer"}

HEAD = """// Written by cmake/entry_points.py from the public headers.
#include "abi/calls.h"
%s

using anyacl::RawArg;
using anyacl::abi::CallArg;
using Kind = anyacl::contract::ArgKind;
using Arg = anyacl::Entry::Arg;

template <class T>
static T* Handle(const RawArg& arg) {
  return static_cast<T*>(const_cast<void*>(arg.handle));
}

"""

TAIL = """static constexpr anyacl::Entry kEntries[] = {
%s};

std::span<const anyacl::Entry> anyacl::Entries() { return kEntries; }
"""


def parameters(text):
    """[(C type, name)] of a parameter list."""
    result = []
    for part in filter(None, (p.strip() for p in text.replace("\n", " ").split(","))):
        found = re.fullmatch(r"(.*?)(\w+)", part, re.DOTALL)
        kind = re.sub(r"\s*\*\s*", "*", " ".join(found.group(1).split()))
        result.append((kind, found.group(2)))
    return result


def plain(c_type):
    """A value's type without const, which a caller does not see."""
    return c_type if c_type.endswith("*") else c_type.removeprefix("const ")


def operators(header):
    """{name: parameters} of the operators that a header declares; stops at what does not fit together."""
    found = dict(DECLARATION.findall(header.read_text(encoding="utf-8")))
    result = {}
    for name, text in found.items():
        if name.endswith(PHASE1):
            args = parameters(text)
            if [f"{t} {n}" for t, n in args[-2:]] != RESULTS:
                sys.exit(f"{header}: {name} must end in {', '.join(RESULTS)}")
            if name.removesuffix(PHASE1) not in found:
                sys.exit(f"{header}: {name} without {name.removesuffix(PHASE1)}")
            for t, n in args[:-2]:
                if plain(t) not in KINDS:
                    sys.exit(f"{header}: {name}: no kind of argument is known for '{t} {n}'")
            result[name.removesuffix(PHASE1)] = args[:-2]
        elif name + PHASE1 not in found and parameters(text)[0] == ("void*", "workspace"):  # others have one phase: src/abi
            sys.exit(f"{header}: {name} without {name}{PHASE1}")
    return result


def bodies(index, name, args):
    kinds = [KINDS[plain(t)] for t, _ in args]
    declared = "".join(f"{t} {n}, " for t, n in args)
    listed = ", ".join(n for _, n in args)
    call = ", ".join(f"static_cast<{plain(t)}>(args[{i}].{TAKE[kind]})" if kind in TAKE else
                     f"Handle<{t.removesuffix('*')}>(args[{i}])" for i, ((t, _), kind) in enumerate(zip(args, kinds)))
    rows = ", ".join(f'{{"{n}", Kind::{kind}}}' for (_, n), kind in zip(args, kinds))
    return f"""static constexpr Arg kArgs{index}[] = {{{rows}}};
aclnnStatus {name}GetWorkspaceSize({declared}uint64_t* workspaceSize, aclOpExecutor** executor) {{
  const CallArg args[] = {{{listed}}};
  return anyacl::abi::GetWorkspaceSize({index}, args, workspaceSize, executor);
}}
aclnnStatus {name}(void* workspace, uint64_t workspaceSize, aclOpExecutor* executor, aclrtStream stream) {{
  return anyacl::abi::Run({index}, workspace, workspaceSize, executor, stream);
}}
static int32_t Phase1Of{index}(const RawArg* args, uint64_t* size, void** executor) {{
  return {name}GetWorkspaceSize({call}, size, reinterpret_cast<aclOpExecutor**>(executor));
}}
static int32_t Phase2Of{index}(void* workspace, uint64_t size, void* executor, void* stream) {{
  return {name}(workspace, size, static_cast<aclOpExecutor*>(executor), stream);
}}
"""


def main():
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("--out", type=Path, required=True)
    parser.add_argument("headers", nargs="+", type=Path)
    args = parser.parse_args()
    rows = sorted((name, header, parameters) for header in args.headers
                  for name, parameters in operators(header).items())
    names = [row[0] for row in rows]
    if len(set(names)) != len(names):
        sys.exit("declared twice: " + " ".join(sorted({n for n in names if names.count(n) > 1})))
    includes = "".join(f'#include "aclnnop/{h}"\n' for h in sorted({row[1].name for row in rows}))
    text = HEAD % includes
    text += "".join(bodies(i, name, parameters) for i, (name, _, parameters) in enumerate(rows))
    text += TAIL % "".join(f'    {{"{name}", "aclnnop/{header.name}", kArgs{i}, Phase1Of{i}, Phase2Of{i}}},\n'
                           for i, (name, header, _) in enumerate(rows))
    if not args.out.exists() or args.out.read_text(encoding="utf-8") != text:
        args.out.parent.mkdir(parents=True, exist_ok=True)
        args.out.write_text(text, encoding="utf-8")


if __name__ == "__main__":
    main()
