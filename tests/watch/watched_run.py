#!/usr/bin/env python3
# SPDX-License-Identifier: Apache-2.0
# Copyright The AnyACL Authors
"""Runs the tests of a build folder under the guard, the verifier and the trace at once, which may find nothing in them:

    watched_run.py build/release [--only REGEX] [--jobs N] [--limit SECONDS] [--keep FOLDER] [--with NAME=VALUE...]

left_out.txt beside this file names the tests that do wrong on purpose, or cannot be watched, and why. A test fails when it fails,
when something is reported, and when its trace cannot be read. --with adds to the environment: ANYACL_RACES=1.
"""
import argparse
import collections
import concurrent.futures
import json
import os
import re
import subprocess
import sys
import tempfile
import threading
import time
from pathlib import Path

HERE = Path(__file__).resolve().parent
TOOLS = {"ANYACL_GUARD": "1", "ANYACL_VERIFY": "1"}
MOST_ELEMENTS = 1 << 20  # that a reference may touch: a fraction of a second at most goes into one call
MOST_READ = 64 << 20  # bytes of a trace: its text takes a lot of memory
MOST_SHOWN = 40  # lines of what one test reported
FINE = re.compile(r"\[ANYACL\] verify: (ok|unchecked|summary) ")
SUMMARY = re.compile(r"\[ANYACL\] verify: summary all: (\d+) calls, (\d+) ok, (\d+) wrong")


def left_out():
    """{test: {case or "*": reason}}"""
    found = collections.defaultdict(dict)
    for line in (HERE / "left_out.txt").read_text(encoding="utf-8").splitlines():
        if line and not line.startswith("#"):
            name, reason = re.split(r"  +", line, maxsplit=1)
            test, _, case = name.partition(":")
            found[test][case or "*"] = reason
    return found


def tests_of(build, only):
    listed = subprocess.run(["ctest", "--test-dir", str(build), "--show-only=json-v1", *(["-R", only] if only else [])],
                            capture_output=True, text=True, check=True)
    for test in json.loads(listed.stdout)["tests"]:
        yield test["name"], {entry["name"]: entry["value"] for entry in test.get("properties", [])}


def reports(text):
    """What the tools say that is not fine, with its details."""
    found, is_open = [], False
    for line in text.splitlines():
        if line.startswith("[ANYACL] "):
            is_open = not FINE.match(line)
        if is_open:
            found.append(line)
    return found


class Run:
    def __init__(self, build, folder, limit, more, cases_left_out):
        self.build, self.folder, self.limit, self.more, self.left_out = build, folder, limit, more, cases_left_out
        self.gpu, self.checked, self.keeps = threading.Lock(), 0, False

    def environment(self, name, report, trace):
        env = {**os.environ, **TOOLS, "ANYACL_REPORT": str(report), "ANYACL_TRACE": str(trace),
               "ANYACL_VERIFY_MOST": str(MOST_ELEMENTS), **self.more}
        if self.left_out.get(name):
            env["GTEST_FILTER"] = "-" + ":".join(self.left_out[name])
        return env

    def trace_problems(self, trace):
        for file in sorted(trace.parent.glob(trace.name + "*")):
            if file.stat().st_size > MOST_READ:
                continue
            shown = subprocess.run([self.build / "bin/anyacl", "trace", "show", file], stdout=subprocess.DEVNULL,
                                   stderr=subprocess.PIPE, text=True, check=False)
            if shown.returncode:
                yield f"{file.name}: {shown.stderr.strip()}"

    def one(self, name, properties):
        """(name, seconds, problems)"""
        report, trace = self.folder / f"{name}.report", self.folder / f"{name}.trace"
        command = ["ctest", "--test-dir", str(self.build), "-R", f"^{re.escape(name)}$", "-FA", ".", "--output-on-failure",
                   "--no-tests=error", "--timeout", str(self.limit)]
        begin = time.monotonic()
        with self.gpu if properties.get("RESOURCE_LOCK") else threading.Lock():
            done = subprocess.run(command, env=self.environment(name, report, trace), text=True, errors="replace", check=False,
                                  stdout=subprocess.PIPE, stderr=subprocess.STDOUT)
        seconds = time.monotonic() - begin
        text = report.read_text(encoding="utf-8", errors="replace") if report.exists() else ""
        problems = reports(text) + list(self.trace_problems(trace))
        if done.returncode:
            problems += done.stdout.strip().splitlines()
        self.checked += sum(int(ok) for _, ok, _ in SUMMARY.findall(text))
        if not self.keeps:
            for file in (report, *self.folder.glob(trace.name + "*")):
                file.unlink(missing_ok=True)
        return name, seconds, problems


def main():
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("build", type=Path)
    parser.add_argument("--only", default="")
    parser.add_argument("--jobs", type=int, default=os.cpu_count())
    parser.add_argument("--limit", type=int, default=1200, help="seconds for one test")
    parser.add_argument("--keep", type=Path, help="leave reports and traces here")
    parser.add_argument("--with", dest="more", action="append", default=[], metavar="NAME=VALUE")
    args = parser.parse_args()
    excluded = left_out()
    tests = list(tests_of(args.build, args.only))
    unknown = set(excluded) - {name for name, _ in tests}
    if unknown and not args.only:
        print(f"left_out.txt names tests that there are not: {', '.join(sorted(unknown))}")
        return 1
    failed = []
    with tempfile.TemporaryDirectory() as folder, concurrent.futures.ThreadPoolExecutor(args.jobs) as pool:
        run = Run(args.build.resolve(), args.keep or Path(folder), args.limit, dict(word.split("=", 1) for word in args.more), excluded)
        run.keeps = args.keep is not None
        run.folder.mkdir(exist_ok=True)
        wanted = [(name, properties) for name, properties in tests if "*" not in excluded.get(name, {})]
        first = [one for one in wanted if "FIXTURES_SETUP" in one[1]]  # ctest would make them anew for each
        for group in (first, [one for one in wanted if one not in first]):
            for done in concurrent.futures.as_completed([pool.submit(run.one, *one) for one in group]):
                name, seconds, problems = done.result()
                print(f"{'FAIL' if problems else 'pass'}  {name}  ({seconds:.1f} s)", flush=True)
                for line in problems[:MOST_SHOWN]:
                    print(f"      {line}", flush=True)
                if problems:
                    failed.append(name)
    for name, cases in excluded.items():
        for case, reason in cases.items():
            print(f"left out  {name}{'' if case == '*' else ':' + case}  {reason}")
    print(f"{run.checked} calls were verified")
    print(f"{len(wanted) - len(failed)} passed, {len(failed)} failed{': ' if failed else ''}{' '.join(sorted(failed))}")
    return 1 if failed or not wanted else 0


if __name__ == "__main__":
    sys.exit(main())
