#!/usr/bin/env python3
# SPDX-License-Identifier: Apache-2.0
# Copyright The AnyACL Authors
"""The anyacl command as its users see it. Usage: tool_test.py TOOL SOURCE_FOLDER"""
import json
import os
import re
import signal
import subprocess
import sys
import tempfile
import time
import unittest
from pathlib import Path
from xml.etree import ElementTree

TOOL, SOURCE = sys.argv[1], Path(sys.argv[2])
BENCH_KEYS = ["op", "case", "dtype", "backend", "kernel", "threads", "time_us", "bytes", "gbps", "roof_gbps", "roof_ratio",
              "plan_us", "call_us"]


def run(*args, **environment):
    return subprocess.run([TOOL, *args], text=True, capture_output=True, env={**os.environ, **environment}, timeout=300)


class ToolTest(unittest.TestCase):
    def good(self, *args, **environment):
        result = run(*args, **environment)
        self.assertEqual(result.returncode, 0, result.stderr)
        self.assertEqual(result.stderr, "")
        return result.stdout

    def refused(self, *args):
        result = run(*args)
        self.assertEqual(result.returncode, 2, result.stdout + result.stderr)
        self.assertEqual(result.stdout, "")
        return result.stderr

    def test_info_lists_every_variable(self):
        text = self.good("info", ANYACL_THREADS="1", ANYACL_DEVICES="3")
        rows = (SOURCE / "src/core/env_list.inc").read_text(encoding="utf-8")
        names = re.findall(r"^ANYACL_ENV\((\w+)", rows, re.MULTILINE)
        self.assertTrue(names)
        for name in names:
            self.assertRegex(text, rf"(?m)^  {name} ")
        self.assertRegex(text, r"(?m)^devices +3 \(cpu\)$")
        self.assertRegex(text, r"(?m)^threads +1$")
        self.assertRegex(text, r"(?m)^  ANYACL_THREADS +1 ")

    def test_info_names_values_without_effect(self):
        self.assertNotIn("Without effect", self.good("info", ANYACL_THREADS="2", ANYACL_DEVICES="1024"))
        text = self.good("info", ANYACL_THREADS="many", ANYACL_DEVICES="5000", ANYACL_SIMD="MMX")
        self.assertRegex(text, r"(?m)^devices +1 \(cpu\)$")
        self.assertIn("  ANYACL_DEVICES must be a number from 1 to 1024, got 5000\n", text)
        self.assertIn("  ANYACL_THREADS must be a number from 1 to 1024, got many\n", text)
        self.assertRegex(text, r"(?m)^  ANYACL_SIMD must be one of .*, got MMX$")

    def test_info_names_the_forced_target(self):
        targets = re.search(r"can run (.*)\)", self.good("info")).group(1).split(", ")
        last = targets[-1]
        self.assertRegex(self.good("info", ANYACL_SIMD=last), rf"(?m)^SIMD +{last} ")

    def test_ops(self):
        self.assertIn("aclnnEluBackward", self.good("ops"))
        self.assertIn("selfOrResult", self.good("ops", "aclnnEluBackward"))
        self.assertEqual(self.good("ops", "elu_backward"), self.good("ops", "EluBackward"))
        self.assertTrue(self.good("ops", "--markdown", "aclnnEluBackward").startswith("# aclnnEluBackward\n"))

    def test_every_operator_that_a_header_declares(self):
        declared = set()
        for header in (SOURCE / "include/aclnnop").glob("*.h"):
            declared.update(re.findall(r"^ACLNN_API aclnnStatus (\w+)GetWorkspaceSize\(",
                                       header.read_text(encoding="utf-8"), re.MULTILINE))
        rows = json.loads(self.good("ops", "--json"))
        self.assertEqual([row["op"] for row in rows], sorted(declared))
        for row in rows:
            self.assertTrue((SOURCE / "include" / row["header"]).exists(), row["header"])
            self.assertTrue(row["kernels"]["cpu"], row["op"])
            self.assertTrue(row["summary"] and row["args"] and row["checks"], row["op"])

    def test_every_name_of_an_operator(self):
        for page in (SOURCE / "docs/operators").glob("*_*.md"):
            text = page.read_text(encoding="utf-8")
            self.assertEqual(self.good("ops", "--markdown", page.stem), text)
            self.assertEqual(self.good("ops", "--markdown", text.split()[1]), text)

    def test_every_example_is_listed(self):
        readme = (SOURCE / "examples/README.md").read_text(encoding="utf-8")
        listed = set(re.findall(r"^\| (\w+)\.cpp \|", readme, re.MULTILINE))
        self.assertEqual(listed, {path.stem for path in (SOURCE / "examples").glob("*.cpp")})
        of_operators = {"batch_norm_elemt_backward", "elu_backward", "group_norm_backward", "rms_norm_grad"}
        self.assertLessEqual(of_operators, listed)
        for stem in of_operators:
            self.assertEqual(json.loads(self.good("ops", stem, "--json"))["kernels"]["cpu"][-1], "reference")

    def test_ops_json(self):
        rows = json.loads(self.good("ops", "--json"))
        self.assertIn("aclnnEluBackward", [row["op"] for row in rows])
        one = json.loads(self.good("ops", "aclnnEluBackward", "--json"))
        self.assertEqual(one["kernels"]["cpu"][-1], "reference")

    def test_markdown_is_the_same_everywhere(self):
        here = self.good("ops", "aclnnEluBackward", "--markdown")
        there = self.good("ops", "aclnnEluBackward", "--markdown", ANYACL_SOC="Ascend910A", ANYACL_THREADS="1",
                          ANYACL_KERNEL="reference")
        self.assertEqual(here, there)

    def test_bench(self):
        with tempfile.TemporaryDirectory() as folder:
            file = Path(folder) / "rows.json"
            picture = Path(folder) / "rows.svg"
            table = self.good("bench", "--op", "aclnnEluBackward", "--case", "4096", "--threads", "1", "--json", str(file),
                              "--svg", str(picture))
            rects = ElementTree.parse(picture).iter("{http://www.w3.org/2000/svg}rect")
            bars = [rect for rect in rects if rect.get("class")]
            self.assertEqual(len(bars), len(json.loads(file.read_text())))
            rows = json.loads(file.read_text(encoding="utf-8"))
        self.assertEqual([row["dtype"] for row in rows], ["FLOAT", "FLOAT16", "BF16"])
        self.assertEqual(len(table.splitlines()), 1 + len(rows))
        for row in rows:
            self.assertEqual(list(row), BENCH_KEYS)
            self.assertEqual((row["case"], row["threads"], row["backend"]), ("4096", 1, "cpu"))
            self.assertEqual(row["bytes"], 3 * 4096 * (4 if row["dtype"] == "FLOAT" else 2))
            for key in ("time_us", "gbps", "roof_gbps", "roof_ratio", "plan_us", "call_us"):
                self.assertGreater(row[key], 0)

    def test_bench_of_every_operator(self):
        for name, case in (("GroupNormBackward", "2x3x4"), ("BatchNormElemtBackward", "1x2x4"), ("RmsNormGrad", "2x16")):
            rows = json.loads(self.good("bench", "--op", f"aclnn{name}", "--case", case, "--threads", "1", "--json", "-"))
            self.assertEqual([(row["case"], row["dtype"]) for row in rows], [(case, t) for t in ("FLOAT", "FLOAT16", "BF16")])
            for row in rows:
                self.assertEqual(list(row), BENCH_KEYS)
                self.assertGreater(row["time_us"], 0)

    def test_bench_of_exp_tells_the_arithmetic(self):
        rows = json.loads(self.good("bench", "--case", "4096 exp", "--dtype", "BF16", "--json", "-"))
        self.assertEqual([list(row) for row in rows], [BENCH_KEYS + ["exp_us"]])

    def test_run(self):
        words = ["-x", "--", "--json", "a b", ""]
        for dashes in (["--"], []):
            text = self.good("run", *dashes, sys.executable, "-c", "import sys; print(sys.argv[1:])", *words)
            self.assertEqual(text, f"{words!r}\n")
        self.assertEqual(run("run", "--", "sh", "-c", "exit 7").returncode, 7)
        text = self.good("run", "--", "sh", "-c", "echo $LD_LIBRARY_PATH:$ASCEND_HOME_PATH",
                         LD_LIBRARY_PATH="/a::/b:/a")
        prefix = os.path.dirname(os.path.dirname(os.path.realpath(TOOL)))
        self.assertEqual(text, f"{prefix}/lib64:/a:/b:/a:{prefix}\n")
        self.assertIn("run needs a program", self.refused("run"))
        self.assertIn("run needs a program", self.refused("run", "--"))
        self.assertIn("no_such_program cannot be run: No such file", self.refused("run", "--", "no_such_program"))

    def ranks(self, count, script, *args, **environment):
        started = time.monotonic()
        done = run("run", "-n", str(count), "--", sys.executable, "-c", "import os, sys, time, signal\n" + script, *args,
                   **environment)
        return done.returncode, done.stdout.splitlines(), done.stderr.splitlines(), time.monotonic() - started

    def test_run_ranks(self):
        code, out, err, _ = self.ranks(3, "e = os.environ\nprint(*(e[n] for n in sys.argv[1:]), end='')", "RANK", "LOCAL_RANK",
                                       "WORLD_SIZE", "LOCAL_WORLD_SIZE", "MASTER_ADDR", "ANYACL_DEVICES", ANYACL_DEVICES="")
        self.assertEqual((code, err), (0, []))
        self.assertEqual(sorted(out), [f"[{rank}] {rank} {rank} 3 3 127.0.0.1 3" for rank in range(3)])
        ports = {line.split()[1] for line in self.ranks(2, "print(os.environ['MASTER_PORT'])")[1]}
        self.assertEqual(len(ports), 1)
        self.assertIn(int(ports.pop()), range(1024, 65536))
        _, out, _, _ = self.ranks(2, "print(os.environ['ANYACL_THREADS'], os.environ['ANYACL_DEVICES'])", ANYACL_THREADS="3",
                                  ANYACL_DEVICES="8")
        self.assertEqual(sorted(out), ["[0] 3 8", "[1] 3 8"])  # the user's count

    def test_run_ranks_tags_every_line(self):
        script = "for i in range(200): print('out', i); print('err', i, file=sys.stderr)"
        code, out, err, _ = self.ranks(2, script)
        self.assertEqual(code, 0)
        for text, name in ((out, "out"), (err, "err")):
            for rank in range(2):
                own = [line for line in text if line.startswith(f"[{rank}] ")]
                self.assertEqual(own, [f"[{rank}] {name} {i}" for i in range(200)])
            self.assertEqual(len(text), 400)

    def test_run_ranks_input(self):
        done = subprocess.run([TOOL, "run", "-n", "2", "cat"], input="for the first\n", capture_output=True, text=True, timeout=60)
        self.assertEqual((done.returncode, done.stdout), (0, "[0] for the first\n"))

    def test_run_ranks_stops_all_when_one_fails(self):
        code, _, err, seconds = self.ranks(3, "os.environ['RANK'] == '1' and sys.exit(5)\ntime.sleep(60)")
        self.assertEqual((code, err), (5, ["anyacl: rank 1 ended with status 5; the others are stopped"]))
        self.assertLess(seconds, 4)
        code, _, err, _ = self.ranks(2, "os.environ['RANK'] == '0' and os.kill(os.getpid(), signal.SIGKILL)\ntime.sleep(60)")
        self.assertEqual((code, err), (137, ["anyacl: rank 0 was ended by signal 9 (Killed); the others are stopped"]))
        # One that does not want to end, nor its child.
        stubborn = "signal.signal(signal.SIGTERM, signal.SIG_IGN)\nos.environ['RANK'] == '1' and sys.exit(3)\nos.fork()\ntime.sleep(60)"
        code, _, _, seconds = self.ranks(2, stubborn)
        self.assertEqual(code, 3)
        self.assertLess(seconds, 15)

    def test_run_ranks_ends_with_the_launcher(self):
        for signal_, status in ((signal.SIGTERM, 143), (signal.SIGINT, 130), (signal.SIGKILL, -9)):
            launcher = subprocess.Popen([TOOL, "run", "-n", "2", "--", "sh", "-c", "echo $$; exec sleep 60"],
                                        stdout=subprocess.PIPE, stderr=subprocess.DEVNULL, text=True)
            ranks = [int(launcher.stdout.readline().split()[1]) for _ in range(2)]
            launcher.send_signal(signal_)
            self.assertEqual(launcher.wait(20), status)
            launcher.stdout.close()
            for rank in ranks:
                for _ in range(200):
                    if not os.path.exists(f"/proc/{rank}") or " Z " in Path(f"/proc/{rank}/stat").read_text(encoding="utf-8"):
                        break
                    time.sleep(0.02)
                else:
                    self.fail(f"a rank outlives signal {signal_}")

    def test_run_ranks_refuses(self):
        self.assertIn("run needs a program", self.refused("run", "-n", "2"))
        for count in ("0", "-1", "x", "5000"):
            self.refused("run", "-n", count, "--", "true")
        code, _, err, _ = self.ranks(1, "")
        self.assertEqual((code, err), (0, []))
        done = run("run", "-n", "2", "--", "no_such_program")
        self.assertEqual(done.returncode, 127)
        self.assertIn("anyacl: no_such_program cannot be run: No such file", done.stderr)

    def test_unknown_names(self):
        for args in (("ops", "aclnnNothing"), ("bench", "--op", "aclnnNothing")):
            self.assertIn("there is no operator aclnnNothing; `anyacl ops` lists them", self.refused(*args))
        self.assertIn("the bench has no rows of aclnnInplaceCopy; known: aclnnEluBackward",
                      self.refused("bench", "--op", "inplace_copy"))
        self.assertIn("known: FLOAT", self.refused("bench", "--op", "aclnnEluBackward", "--dtype", "INT3"))
        self.assertIn("known: 64Mi", self.refused("bench", "--op", "aclnnEluBackward", "--case", "nothing"))
        self.assertIn("known: cpu", self.refused("bench", "--backend", "abacus"))
        self.assertIn("nothing", self.refused("nothing"))
        self.assertIn("--nothing", self.refused("info", "--nothing"))
        self.refused("bench", "--threads", "0")

    def test_unknown_case_lists_those_of_every_operator(self):
        text = self.refused("bench", "--case", "nothing")
        for case in ("64Mi", "1x2x4", "2x3x4", "2x16"):
            self.assertRegex(text, rf"[ ,]{case}[,\n]")

    def test_bench_refuses_a_file_it_cannot_write_before_it_measures(self):
        text = self.refused("bench", "--op", "aclnnEluBackward", "--json", "/nowhere/rows.json")
        self.assertIn("/nowhere/rows.json cannot be written", text)

    def test_output_that_gets_lost_is_a_failure(self):
        for args in (("info",), ("ops",), ("--version",)):
            with open("/dev/full", "w", encoding="utf-8") as full:
                result = subprocess.run([TOOL, *args], stdout=full, stderr=subprocess.PIPE, text=True, timeout=300)
            self.assertEqual((result.returncode, result.stderr), (1, "anyacl: the output cannot be written\n"))

    def test_help_and_version(self):
        for word in ("info", "ops", "bench"):
            self.assertIn(word, self.good("--help"))
        self.assertRegex(self.good("--version"), r"^AnyACL \d+\.\d+\.\d+\n$")


if __name__ == "__main__":
    unittest.main(argv=sys.argv[:1])
