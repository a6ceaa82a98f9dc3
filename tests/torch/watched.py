#!/usr/bin/env python3
# SPDX-License-Identifier: Apache-2.0
# Copyright The AnyACL Authors
"""Trainings under the guard, the verifier and the trace, one after the other: nothing is reported, and calls of forward passes
have the line of Python that they come from:

    watched.py [--prefix dist] [--leg 2.7.1] [--python FILE] [--tool guard|verify|trace] [--match REGEX] [--jobs N] [--long]

Without --long a few small ones, else all of mlp.py and models.py. Status 77 where PyPI is out of reach.
"""
import argparse
import os
import re
import subprocess
import sys
import tempfile
from pathlib import Path

import environment

HERE = Path(__file__).resolve().parent
FEW = r"^mlp\.mlp_(layer_norm_adamw_foreach|rms_norm_sgd)$"
MOST_SHOWN = 40
# PyTorch keeps its streams, events and memory to the end.
KEPT = re.compile(r"\[ANYACL\] leaks: .* (aclrtStream|aclrtEvent) (was|were) never destroyed|\[ANYACL\] leaks: .* of memory .* never freed")
VERIFIED = re.compile(r"\[ANYACL\] verify: (ok|unchecked|summary) ")
FORWARD = "    return F.mse_loss(model(data[0]), data[1])"  # of mlp.py


def forward_line():
    lines = (HERE / "mlp.py").read_text(encoding="utf-8").splitlines()
    return lines.index(FORWARD) + 1


def reports(text, is_fine):
    """What is not fine, with the details below it."""
    found, is_open = [], False
    for line in text.splitlines():
        if line.startswith("[ANYACL] "):
            is_open = not is_fine(line)
        if is_open:
            found.append(line)
    return found


def check_guard(report, _):
    return reports(report, KEPT.match)


def check_verify(report, _):
    problems = reports(report, VERIFIED.match)
    ok = re.findall(r"^\[ANYACL\] verify: ok (aclnn\w+); .*; at \S*/mlp\.py:(\d+)$", report, re.MULTILINE)
    if not any(int(line) == forward_line() for _, line in ok):
        problems.append(f"no call that was verified is said to be of mlp.py:{forward_line()}")
    print(f"      {report.count('verify: ok ')} calls right, {report.count('verify: unchecked ')} unchecked, {len(ok)} with a line of mlp.py")
    return problems


def check_trace(report, shown):
    problems = report.splitlines()
    lines = re.findall(r"^ +[\d.]+ +\d+ +(aclnn\w+)GetWorkspaceSize\(.*\n +from \S*/mlp\.py:(\d+)$", shown, re.MULTILINE)
    if not any(int(line) == forward_line() for _, line in lines):
        problems.append(f"no call of the trace is said to be of mlp.py:{forward_line()}")
    print(f"      {shown.count(chr(10))} lines of traces, {len(lines)} calls of operators with a line of mlp.py")
    return problems


TOOLS = {"guard": ({"ANYACL_GUARD": "1"}, check_guard),
         # A second at most goes into one call.
         "verify": ({"ANYACL_VERIFY": "1", "ANYACL_VERIFY_MOST": str(1 << 22)}, check_verify),
         "trace": ({"ANYACL_TRACE": "trace"}, check_trace)}


def show(prefix, folder):
    """All traces as text: every process has its own."""
    texts = []
    for file in sorted(folder.glob("trace*")):
        texts.append(subprocess.run([prefix / "bin/anyacl", "trace", "show", file], stdout=subprocess.PIPE, text=True, check=True).stdout)
    return "".join(texts)


def watch(tool, args, python):
    variables, check = TOOLS[tool]
    with tempfile.TemporaryDirectory() as folder:
        report, trace = Path(folder, "report"), Path(folder, "trace")
        variables = {name: str(trace) if name == "ANYACL_TRACE" else value for name, value in variables.items()}
        command = [sys.executable, HERE / "run.py", "--prefix", args.prefix, "--python", python, "--jobs", str(args.jobs),
                   "--match", args.match or ("" if args.long else FEW), "mlp", "models"]
        print(f"under {tool}:", flush=True)
        done = subprocess.run([str(part) for part in command], env={**os.environ, **variables, "ANYACL_REPORT": str(report)}, check=False)
        text = report.read_text(encoding="utf-8", errors="replace") if report.exists() else ""
        problems = check(text, show(args.prefix, Path(folder)))
    if done.returncode:
        problems.append("a program failed, see above")
    for line in problems[:MOST_SHOWN]:
        print(f"      {line}")
    print(f"{'FAIL' if problems else 'pass'}  {tool}", flush=True)
    return not problems


def main():
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("--prefix", type=Path, default=environment.ROOT / "dist")
    parser.add_argument("--leg", choices=environment.LEGS, default="2.7.1")
    parser.add_argument("--python", type=Path, help="an interpreter that has torch and torch_npu already")
    parser.add_argument("--tool", choices=TOOLS)
    parser.add_argument("--match", default="")
    parser.add_argument("--jobs", type=int, default=2)
    parser.add_argument("--long", action="store_true")
    args = parser.parse_args()
    try:
        python = args.python or environment.make(args.leg)
    except environment.OutOfReach as problem:
        print(f"torch tests skipped: {problem}")
        return environment.SKIPPED
    passed = [watch(tool, args, python) for tool in TOOLS if tool == (args.tool or tool)]
    return 0 if all(passed) else 1


if __name__ == "__main__":
    sys.exit(main())
