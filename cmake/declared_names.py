#!/usr/bin/env python3
# SPDX-License-Identifier: Apache-2.0
# Copyright The AnyACL Authors
"""Lists the functions that the public headers declare, and writes what the linker needs from that list.

    declared_names.py list    HEADER...                            one "header name" line each
    declared_names.py script  --out FILE HEADER...                 version script of libanyacl.so
    declared_names.py exports --out FILE [--strict] LIB HEADER...  what LIB exports; reports declared names it lacks
    declared_names.py stubs   --out FOLDER --exports FILE TABLE    C files of the filter libraries

TABLE has one line per library: its file name, then the headers whose names it offers.
A declaration starts a line with one of MACROS and has its return type and its name on that line.
Files are only rewritten when their content changes, so that nothing behind them is rebuilt in vain.
"""
import argparse
import re
import subprocess
import sys
from pathlib import Path

MACROS = ("ACL_FUNC_VISIBILITY", "ACLNN_API", "ACL_DUMP_API", "MSVP_PROF_API")
ACCESSOR = "anyacl_introspection_v1"  # for our own tool and plug-ins; in no public header
DECLARATION = re.compile(r"^(?:%s)\s+[^(;#]*?\b(\w+)\s*\(" % "|".join(MACROS))
SUSPECT = re.compile(r"^\s*(?:extern\s+(?:\"C\"\s+)?)?(?:%s)\b" % "|".join(MACROS))

STUB_HEAD = """/* Names for the linker. The loader puts libanyacl.so before this library: none of these runs. */
#define STUB(name) __attribute__((visibility("default"))) void name(void) { __builtin_trap(); }
"""


def declared(header):
    """The function names of one header, in its order."""
    names = []
    for number, line in enumerate(header.read_text(encoding="utf-8").splitlines(), 1):
        found = DECLARATION.match(line)
        if found:
            names.append(found.group(1))
        elif SUSPECT.match(line):
            sys.exit(f"{header}:{number}: a declaration must start its line with the macro and have its name on it:\n"
                     f"  {line}")
    return names


def all_declared(headers):
    return sorted({name for header in headers for name in declared(header)})


def write(path, text):
    if not path.exists() or path.read_text(encoding="utf-8") != text:
        path.parent.mkdir(parents=True, exist_ok=True)
        path.write_text(text, encoding="utf-8")


def exported(library):
    """Dynamic symbols that a shared library defines."""
    lines = subprocess.run(["nm", "-D", "--defined-only", "--format=posix", library], check=True, text=True,
                           stdout=subprocess.PIPE).stdout.splitlines()
    return sorted({line.split()[0].split("@")[0] for line in lines})


def main():
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("what", choices=["list", "script", "stubs", "exports"])
    parser.add_argument("--out", type=Path)
    parser.add_argument("--exports", type=Path, help="stubs: only names in this file")
    parser.add_argument("--strict", action="store_true", help="exports: a declared name without a body is an error")
    parser.add_argument("files", nargs="*", type=Path)
    args = parser.parse_intermixed_args()

    if args.what == "list":
        for header in args.files:
            for name in declared(header):
                print(header.name, name)
    elif args.what == "script":
        names = [ACCESSOR] + all_declared(args.files)
        write(args.out, "{\n  global:\n%s  local:\n    *;\n};\n" % "".join(f"    {n};\n" for n in names))
    elif args.what == "stubs":
        real = set(args.exports.read_text(encoding="utf-8").split())
        for line in args.files[0].read_text(encoding="utf-8").splitlines():
            library, *headers = line.split()
            names = [n for n in all_declared(map(Path, headers)) if n in real]
            write(args.out / f"{library}.c", STUB_HEAD + "".join(f"STUB({n})\n" for n in names))
    else:
        library, headers = args.files[0], args.files[1:]
        names = exported(library)
        write(args.out, "".join(f"{n}\n" for n in names))
        missing = sorted(set(all_declared(headers)) - set(names))
        if missing:
            print(f"{len(missing)} functions are declared in include/ and have no body: {' '.join(missing)}")
            return 1 if args.strict else 0
    return 0


if __name__ == "__main__":
    sys.exit(main())
