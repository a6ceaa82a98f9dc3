#!/usr/bin/env python3
# SPDX-License-Identifier: Apache-2.0
# Copyright The AnyACL Authors
"""Checks that each room of src/ includes only what it may touch; prints every edge that is not allowed.

A room is a folder of src/; below ops/<family>/ there are five:
  op plan    <x>.cc, and the headers that include something of plan/ or contract/
  op kernel  <x>.cpu.cc, <x>.cpu.h and *-inl.h
  op formula those *-inl.h that include nothing: one text for CPUs and GPUs
  op cuda    <x>.cu and <x>.cuh
  op header  the other headers (Params and references) and the lists <x>.inc
Public headers (acl/, aclnn/, aclnnop/) count as the room "include".
"""
import functools
import re
import sys
from pathlib import Path

# room: what it may include beside itself; a folder, or one file of it.
BACKEND = ["runtime/backend.h", "runtime/submit.h", "runtime/backends.h"]  # interfaces, no state
ALLOWED = {
    "include": [],
    "core": [],
    "contract": ["core"],
    "trace": ["core"],
    "border": ["include", "core", "trace", "runtime/memory.h"],
    "verify": ["core", "contract", "watch", "plan/operator.h", "runtime/backend.h"],
    "watch": ["core", "contract", "plan/layout.h", "runtime/backend.h"],
    "plan": ["core", "trace", "contract", "watch", *BACKEND],
    "abi": ["include", "core", "trace", "border", "contract", "watch", "plan", "ops", *BACKEND,
            "verify/plugin.h", "cpu/parallel.h", "cpu/targets.h"],  # introspection.cc shows the tool around
    "runtime": ["include", "core", "trace", "watch"],
    "hccl": ["include", "core", "watch", "runtime/engine.h", "runtime/stream.h", "runtime/context.h", *BACKEND],
    "cpu": ["core", "ops/kernel_list.inc", "runtime/engine.h", *BACKEND],
    "cuda": ["core", "ops/kernel_list.inc", "runtime/engine.h", "runtime/backend.h"],
    "ops": ["core", "contract", "plan"],
    "op plan": ["core", "contract", "plan", "ops", "op header"],
    "op header": ["core", "runtime/backend.h"],
    "op formula": [],
    "op kernel": ["core", "cpu", "op header", "op formula", *BACKEND],
    "op cuda": ["core", "cuda", "op header", "op formula", "runtime/backend.h"],
}
FOREIGN = {  # headers of others that only these rooms may use
    re.compile(r"hwy/"): ["cpu", "op kernel"],
    re.compile(r"cuda(?!/[a-z_]+\.(h|cuh)$)|cub/|cooperative_groups"): ["cuda", "op cuda"],
}
INCLUDE = re.compile(r'^\s*#\s*include\s*["<]([^">]+)[">]', re.MULTILINE)


# A header of ops/ that includes one of these is part of plans, not of kernels.
PLAN_SIDE = ("plan/", "contract/", "ops/operators.h", "ops/table.h", "ops/dense.h", "ops/pointwise/pass.h")
SRC = Path(sys.argv[1] if len(sys.argv) > 1 else ".") / "src"


def includes_of(path):
    file = SRC / path
    return INCLUDE.findall(file.read_text(encoding="utf-8")) if file.exists() else []


@functools.cache
def room_of(path):
    """The room of a file below src/ or include/."""
    parts = path.split("/")
    if parts[0] in ("acl", "aclnn", "aclnnop") or path in ("hccl/hccl.h", "hccl/hccl_comm.h", "hccl/hccl_types.h"):
        return "include"
    if path.startswith("ops/dense."):
        return "op plan"  # what plans of several families share
    if path == "ops/sums-inl.h":
        return "op kernel"
    if parts[0] != "ops" or len(parts) < 3:
        return parts[0]
    if path.endswith((".cu", ".cuh", ".cu.in")):
        return "op cuda"
    if path.endswith("-inl.h") and not includes_of(path):
        return "op formula"
    if path.endswith(".inc"):
        return "op header"
    if parts[-1].count(".") > 1 or path.endswith("-inl.h"):
        return "op kernel"
    if path.endswith(".cc") or any(
            target.startswith(PLAN_SIDE) or (target.startswith("ops/") and room_of(target) == "op plan")
            for target in includes_of(path)):
        return "op plan"
    return "op header"


def is_allowed(source, target):
    room = room_of(source)
    if room not in ALLOWED:
        return False  # a new room needs a row
    for pattern, rooms in FOREIGN.items():
        if pattern.match(target):
            return room in rooms
    of_others = room_of(target) not in ALLOWED
    return of_others or room_of(target) in (room, *ALLOWED[room]) or target in ALLOWED[room]


def main():
    files = [f for f in sorted(SRC.rglob("*")) if f.suffix in (".h", ".cc", ".cu", ".cuh", ".inc", ".in")]
    paths = [f.relative_to(SRC).as_posix() for f in files]
    edges = [(path, target) for path in paths for target in includes_of(path)]
    wrong = [f"src/{source} ({room_of(source)}) may not include {target}"
             for source, target in edges if not is_allowed(source, target)]
    print("\n".join(wrong) or f"{len(edges)} includes of {len(files)} files are within their rooms")
    return 1 if wrong or not files else 0


if __name__ == "__main__":
    sys.exit(main())
