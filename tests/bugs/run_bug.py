#!/usr/bin/env python3
# SPDX-License-Identifier: Apache-2.0
# Copyright The AnyACL Authors
"""Runs a broken program under the tool that its source names, and asserts that the tool finds the mistake.

  // tool: ANYACL_GUARD=1 ...   the environment it runs in; ANYACL_TRACE=FILE: what `anyacl trace show` prints of the file counts, too
  // finds: REGEX               what the report must match, one line each
  // unless: NAME=VALUE         what else in the environment makes it right

Without the mistake (argument "right") nothing may be reported, and without the tool nothing is written at all. Traces and the
verifier write lines about what is right, too: then no line may match.

Usage: run_bug.py PROGRAM SOURCE TOOL
"""
import os
import re
import subprocess
import sys
import tempfile
from pathlib import Path

TIME_LIMIT = 60  # seconds
TALKATIVE = ("ANYACL_TRACE", "ANYACL_VERIFY")


def read(source):
    lines = Path(source).read_text(encoding="utf-8").splitlines()
    tool = next(line.removeprefix("// tool: ") for line in lines if line.startswith("// tool: "))
    finds = [line.removeprefix("// finds: ") for line in lines if line.startswith("// finds: ")]
    unless = [line.removeprefix("// unless: ").split("=", 1) for line in lines if line.startswith("// unless: ")]
    return dict(word.split("=", 1) for word in tool.split()), finds, dict(unless)


def run(program, arguments, environment, tool):
    """The exit status, everything that was reported (in the file of ANYACL_REPORT, on standard error, in a trace), and standard
    output."""
    plain = {name: value for name, value in os.environ.items() if not name.startswith("ANYACL_")}
    with tempfile.TemporaryDirectory() as folder:
        report, trace = Path(folder, "report"), Path(folder, "trace")
        environment = {name: str(trace) if name == "ANYACL_TRACE" else value for name, value in environment.items()}
        done = subprocess.run([program, *arguments], capture_output=True, text=True, timeout=TIME_LIMIT, check=False,
                              env={**plain, "ANYACL_BACKEND": "cpu", **environment, "ANYACL_REPORT": str(report)})
        written = report.read_text(encoding="utf-8") if report.exists() else ""
        if "ANYACL_TRACE" in environment:
            written += subprocess.run([tool, "trace", "show", trace], capture_output=True, text=True, timeout=TIME_LIMIT, check=True).stdout
    return done.returncode, written + done.stderr, done.stdout


def main():
    program, source, command = sys.argv[1:]
    tool, finds, unless = read(source)
    problems = []
    status, report, output = run(program, [], tool, command)
    problems += [f"the report does not match: {pattern}" for pattern in finds if not re.search(pattern, report)]
    if not finds or output or status < 0:
        problems.append(f"exit status {status}, {len(finds)} patterns, standard output {output!r}")
    status, other, output = run(program, ["right"], tool, command)
    speaks = any(re.search(pattern, other) for pattern in finds) if any(name in tool for name in TALKATIVE) else other
    if status != 0 or speaks or output:
        problems.append(f"without the mistake: exit status {status}\n{other}{output}")
    if unless:
        status, other, output = run(program, [], {**tool, **unless}, command)
        if status != 0 or other or output:
            problems.append(f"with {unless}: exit status {status}\n{other}{output}")
    quiet = {name: value for name, value in tool.items() if name == "ANYACL_DEVICES"}
    status, other, output = run(program, ["right"], quiet, command)
    if status != 0 or other or output:
        problems.append(f"without the tool: exit status {status}\n{other}{output}")
    print("\n".join(problems) or "found")
    if problems:
        print("--- the report ---\n" + report)
    return 1 if problems else 0


if __name__ == "__main__":
    sys.exit(main())
