#!/usr/bin/env python3
# SPDX-License-Identifier: Apache-2.0
# Copyright The AnyACL Authors
"""ANYACL_VERIFY and `anyacl verify-report`. Usage: verify_test.py PROGRAM TOOL"""
import os
import re
import signal
import subprocess
import sys
import tempfile
import unittest
from pathlib import Path

PROGRAM, TOOL = sys.argv[1:3]
PREFIX = "[ANYACL] verify: "


def run(*args, **environment):
    env = {k: v for k, v in os.environ.items() if not k.startswith("ANYACL_")}
    environment.setdefault("ANYACL_BACKEND", "cpu")
    return subprocess.run([PROGRAM, *args], text=True, capture_output=True, env={**env, **environment}, timeout=300)


class VerifyTest(unittest.TestCase):
    def lines(self, *args, code=0, **environment):
        """What it wrote to standard error; nothing else is there."""
        result = run(*args, **{"ANYACL_VERIFY": "1", **environment})
        self.assertEqual(result.returncode, code, result.stderr[-2000:])
        self.assertEqual(result.stdout, "")
        lines = result.stderr.splitlines()
        for line in lines:
            self.assertTrue(line.startswith(PREFIX), line)
        return [line[len(PREFIX):] for line in lines]

    def test_nobody_asked(self):
        for value in ("", "0"):
            self.assertEqual(run(ANYACL_VERIFY=value).stderr, "")

    def test_right_calls(self):
        lines = self.lines()
        self.assertEqual([x for x in lines if x.startswith("WRONG")], [])
        for op in ("aclnnAdd", "aclnnInplaceMul", "aclnnSum", "aclnnMm", "aclnnForeachExp", "aclnnArgMax"):
            self.assertTrue(any(x.startswith(f"ok {op}; error ") for x in lines), op)
        dense = next(x for x in lines if x.startswith("ok aclnnMm; "))
        self.assertRegex(dense, r"error [\d.e+-]+ ulp at out\[\d+, \d+\]; [\d.e+-]+ of the bound; "
                                r"call self \w+\[3, 5\], mat2 \w+\[5, 4\], out \w+\[3, 4\], cubeMathType=0$")

    def test_summary(self):
        lines = self.lines()
        calls = sum(x.startswith("ok aclnnMm;") for x in lines)
        row = next(x for x in lines if x.startswith("summary aclnnMm: "))
        self.assertRegex(row, rf"^summary aclnnMm: {calls} calls, {calls} ok, 0 wrong; "
                              r"error [\d.e+-]+ ulp, [\d.e+-]+ of the bound$")
        self.assertRegex(lines[-1], r"^summary all: \d+ calls, \d+ ok, 0 wrong, 1 unchecked \(no reference for INT4\), "
                                    r"\d+ with new NaN or infinities$")

    def test_new_nan(self):
        line = next(x for x in self.lines() if " aclnnLog;" in x)
        self.assertRegex(line, r"^ok aclnnLog; .*; new NaN at out\[1\]; call self FLOAT\[3\], out FLOAT\[3\]$")

    def test_no_reference(self):
        self.assertTrue(any(x.startswith("unchecked aclnnWeightQuantBatchMatmulV2; no reference for INT4; call ") for x in self.lines()))

    def test_too_large(self):
        before = self.lines(ANYACL_VERIFY_MOST="200")
        self.assertTrue(any(x.startswith("unchecked aclnnMm; too large;") for x in before))
        halfway = self.lines(ANYACL_VERIFY_MOST="2000")
        self.assertTrue(any(x.startswith("unchecked aclnnMm; too large;") for x in halfway))
        self.assertTrue(any(x.startswith("ok aclnnMm;") for x in halfway))

    def test_mistake(self):
        lines = self.lines("aclnnMm", "77")
        wrong = [x for x in lines if x.startswith("WRONG")]
        self.assertTrue(wrong)
        for line in wrong:
            self.assertTrue(line.startswith("WRONG aclnnMm; "), line)
        self.assertRegex(wrong[0], r"; wrong 1 of 12 elements, out\[2, 3\]: expected [-\d.e]+, got 77, .* ulp off")
        first = next(x for x in lines if x.startswith("summary "))
        self.assertRegex(first, rf"^summary aclnnMm: .* {len(wrong)} wrong")  # mistakes come first

    def test_mistake_in_whole_numbers(self):
        wrong = [x for x in self.lines("aclnnArgMax", "33") if x.startswith("WRONG")]
        self.assertTrue(wrong)
        self.assertRegex(wrong[0], r"^WRONG aclnnArgMax; error \d+ ulp at out.*; inf of the bound; wrong 1 of ")

    def test_mistake_that_is_nan(self):
        wrong = [x for x in self.lines("aclnnMm", "nan") if x.startswith("WRONG")]
        self.assertRegex(wrong[0], r"error inf ulp at out\[2, 3\]; .*got nan.*; new NaN at out\[2, 3\]; call ")

    def test_abort(self):
        lines = self.lines("aclnnSum", "77", code=-signal.SIGABRT, ANYACL_VERIFY="abort")
        self.assertTrue(lines[-1].startswith("WRONG aclnnSum; "), lines[-1])
        self.assertEqual(sum(x.startswith("WRONG") for x in lines), 1)
        self.lines(ANYACL_VERIFY="abort")  # nothing to stop at

    def test_report(self):
        with tempfile.TemporaryDirectory() as folder:
            log = Path(folder) / "log"
            for _ in range(2):  # is appended to
                result = run("aclnnSum", "77", ANYACL_VERIFY="1", ANYACL_REPORT=str(log))
                self.assertEqual((result.stdout, result.stderr), ("", ""))
            calls = sum(" aclnnMm;" in line for line in log.read_text(encoding="utf-8").splitlines())
            made = subprocess.run([TOOL, "verify-report", str(log)], text=True, capture_output=True, timeout=60)
            self.assertEqual((made.returncode, made.stdout), (0, f"{log}.html\n"), made.stderr)
            page = (Path(folder) / "log.html").read_text(encoding="utf-8")
            self.assertNotRegex(page, r"https?:|<script")
            table = page[page.index("<table>"):]
            self.assertRegex(table, r"^<table>.*</tr>\n<tr class=\"wrong\"><td>aclnnSum<td>")  # mistakes first
            self.assertEqual(table.count('class="wrong"'), 1)
            row = re.search(r"<td>aclnnMm<td>(\d+)<td>(\d+)<td>0<td><td><svg(.*?)</svg>", table)
            self.assertEqual((int(row.group(1)), int(row.group(2))), (calls, calls))
            self.assertEqual(sum(map(int, re.findall(r": (\d+) calls</title>", row.group(3)))), calls)

    def test_report_of_something_else(self):
        for file in (__file__, "/nowhere"):
            made = subprocess.run([TOOL, "verify-report", file, "--out", "/dev/null"], text=True, capture_output=True,
                                  timeout=60)
            self.assertEqual(made.returncode, 2)
            self.assertIn(file, made.stderr)


if __name__ == "__main__":
    unittest.main(argv=sys.argv[:1])
