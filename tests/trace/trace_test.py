#!/usr/bin/env python3
# SPDX-License-Identifier: Apache-2.0
# Copyright The AnyACL Authors
"""Traces of unmodified programs: shown, drawn and replayed; faults, blocking, needs and explain.

Usage: trace_test.py TOOL FOLDER_OF_PROGRAMS SOURCE_FOLDER [TEST...]
"""
import json
import os
import re
import subprocess
import sys
import tempfile
import unittest
from pathlib import Path

import trace_events

TOOL, PROGRAMS, SOURCE = sys.argv[1], Path(sys.argv[2]), Path(sys.argv[3])
EXAMPLES = sorted(path for path in PROGRAMS.glob("traced_*") if path.name != "traced_client")
CLIENT = PROGRAMS / "traced_client"
MOST_NANOSECONDS = 1000  # that a trace may add to a call


def run(*command, **environment):
    env = {k: v for k, v in os.environ.items() if not k.startswith("ANYACL_")}
    env.update({"ANYACL_BACKEND": "cpu"}, **environment)
    return subprocess.run([str(c) for c in command], env=env, text=True, stdout=subprocess.PIPE, stderr=subprocess.PIPE,
                          timeout=300)


class Case(unittest.TestCase):
    def setUp(self):
        folder = tempfile.TemporaryDirectory()
        self.addCleanup(folder.cleanup)
        self.trace = Path(folder.name) / "trace"

    def client(self, what, status=0, **environment):
        """What a program prints, and what stands on its standard error."""
        result = run(CLIENT, what, **environment)
        self.assertEqual(result.returncode, status, result.stdout + result.stderr)
        return result.stdout, result.stderr

    def traced(self, what, status=0, **environment):
        return self.client(what, status, ANYACL_TRACE=str(self.trace), **environment)

    def tool(self, *args, status=0, **environment):
        result = run(TOOL, *args, **environment)
        self.assertEqual(result.returncode, status, result.stdout + result.stderr)
        return result.stdout if status == 0 or result.stdout else result.stderr

    def show(self):
        return self.tool("trace", "show", self.trace)

    def replay(self, status=0):
        return self.tool("replay", self.trace, status=status)


class Show(Case):
    def test_the_program_does_not_notice(self):
        plain, traced = self.client("add"), self.traced("add")
        self.assertEqual(plain, traced)
        self.assertEqual(traced[1], "")

    def test_calls_with_names_shapes_and_types(self):
        self.traced("add")
        text = self.show()
        self.assertRegex(text, r"aclrtMalloc\(size=4096, policy=0\) = 0, devPtr=mem#1 ")
        self.assertRegex(text, r"aclCreateTensor\(viewDims=\[2, 512\], viewDimsNum=2, dataType=FLOAT, stride=null, offset=0, "
                               r"format=ND, storageDims=\[2, 512\], storageDimsNum=2, tensorData=mem#1\) = tensor#1 ")
        self.assertRegex(text, r"aclnnAddGetWorkspaceSize\(self=tensor#1 FLOAT \[2, 512\] at mem#1, other=tensor#2 FLOAT "
                               r"\[2, 512\] at mem#2, alpha=scalar#1 FLOAT 1, out=tensor#3 FLOAT \[2, 512\] at mem#3\) = 0, "
                               r"workspaceSize=0, executor=executor#1 ")
        self.assertRegex(text, r"aclnnAdd\(workspace=null, workspaceSize=0, executor=executor#1, stream=stream#1\) = 0 ")
        self.assertRegex(text, r"aclrtMemcpyAsync\(dst=mem#2, destMax=4096, src=host#1, count=4096, kind=1, stream=stream#1\)")
        self.assertRegex(text, r"# \d+ calls of 1 threads, 0 failed\n$")

    def test_names_are_the_same_in_every_run(self):
        texts = []
        for _ in range(2):
            self.traced("add")
            texts.append(re.sub(r"^ *[\d.]+|\([\d.]+ us\)|process \d+", "", self.show(), flags=re.MULTILINE))
        self.assertEqual(texts[0], texts[1])

    def test_errors_with_their_sentence(self):
        self.traced("mistakes")
        text = self.show()
        self.assertRegex(text, r"aclnnAddGetWorkspaceSize\(.*\) = 161001 .*\n +error: aclnnAdd: other must not be null")
        self.assertRegex(text, r"aclrtFree\(devPtr=mem#1\+0x4\) = 107000 .*\n +error: aclrtFree: devPtr must be the start of")
        self.assertIn(", 6 failed", text)

    def test_functions_found_by_name(self):
        self.traced("by_name")
        self.assertIn("aclrtGetDeviceCount() = 0, count=1 ", self.show())

    def test_a_trace_is_whole_whenever_the_program_ends(self):
        self.traced("crash", status=-6)
        self.assertIn("aclrtMalloc(size=4096, policy=0) = 0, devPtr=mem#1", self.show())

    def test_a_forked_child_writes_its_own(self):
        self.traced("fork")
        children = list(self.trace.parent.glob("trace.*"))
        self.assertEqual(len(children), 1)
        self.assertIn("aclrtGetDeviceCount", self.tool("trace", "show", children[0]))
        self.assertEqual(self.show().count("aclrtGetDeviceCount"), 1)

    def test_a_file_that_is_no_trace_stays(self):
        self.trace.write_text("precious")
        output, errors = self.traced("add")
        self.assertEqual(output, self.client("add")[0])
        self.assertRegex(errors, r"^anyacl: the trace .* cannot be written: it is something else than a trace\n$")
        self.assertEqual(self.trace.read_text(), "precious")
        self.assertIn("is no trace of AnyACL", self.tool("trace", "show", self.trace, status=2))

    def test_a_damaged_file_is_refused(self):
        self.traced("add")
        bytes_ = self.trace.read_bytes()
        for cut in (10, 5000):
            self.trace.write_bytes(bytes_[:cut])
            self.assertIn(run(TOOL, "trace", "show", self.trace).returncode, (0, 2))
        self.trace.write_bytes(bytes_[:4200] + b"\xff" * 64 + bytes_[4264:])
        self.assertIn("damaged", self.tool("trace", "show", self.trace, status=2))


class Timeline(Case):
    def test_the_published_format(self):
        for what in ("threads", "mistakes", "ranks", "crash"):
            self.traced(what, status=-6 if what == "crash" else 0, **({"ANYACL_DEVICES": "2"} if what == "ranks" else {}))
            self.assertEqual(trace_events.problems(self.tool("trace", "json", self.trace)), [], what)
            self.trace.unlink()

    def test_the_rules_find_what_is_wrong(self):
        span = {"ph": "X", "name": "a", "cat": "call", "pid": 1, "tid": 1, "ts": 0, "dur": 10, "args": {}}
        name = {"ph": "M", "name": "thread_name", "pid": 1, "tid": 1, "args": {"name": "main"}}
        counter = {"ph": "C", "name": "memory", "pid": 1, "ts": 0, "args": {"GB/s": 1.5}}
        begin, end = {**span, "ph": "B"}, {"ph": "E", "pid": 1, "tid": 1, "ts": 5}
        del begin["dur"]
        self.assertEqual(trace_events.problems(json.dumps([span, name, counter, {**span, "ts": 2, "dur": 3}, begin, end])), [])
        for wrong in ([{**span, "ph": "Z"}], [{**span, "ts": "0"}], [{**span, "dur": -1}], [{**span, "dur": None}], [{**span, "tid": None}],
                      [{**span, "name": 3}], [span, {**span, "ts": 5}], [begin], [end], [begin, {**end, "ts": -1}],
                      [{**name, "name": "thread"}], [{**name, "args": {}}], [{**counter, "args": {"GB/s": "much"}}], [{**counter, "args": {}}],
                      [{**span, "args": []}], [{**span, "ts": True}], {"events": []}, {"traceEvents": {}}, "text",
                      {"traceEvents": [], "displayTimeUnit": "s"}):
            self.assertTrue(trace_events.problems(json.dumps(wrong)), wrong)
        self.assertTrue(trace_events.problems('[{"ts": NaN}]'))

    def test_threads_have_lines_of_their_own(self):
        self.traced("threads")
        events = json.loads(self.tool("trace", "json", self.trace))["traceEvents"]
        self.assertGreaterEqual(len({e["tid"] for e in events if e["ph"] == "X" and e["pid"] == 1}), 3)  # threads

    def test_streams_kernels_and_bytes(self):
        self.traced("add")
        file = self.trace.parent / "timeline.json"
        self.tool("trace", "json", self.trace, "--out", file)
        events = json.loads(file.read_text())["traceEvents"]
        work = [e for e in events if e["ph"] == "X" and e["cat"] == "work"]
        self.assertIn("aclnnAdd", [e["name"] for e in work])
        self.assertGreaterEqual(max(e["args"]["bytes"] for e in work), 4096)
        self.assertTrue([e for e in events if e["ph"] == "C" and e["args"]["GB/s"] > 0])
        self.assertTrue([e for e in events if e["ph"] == "M" and e["args"]["name"].startswith("stream ")])


class Replay(Case):
    def test_every_example(self):
        self.assertGreaterEqual(len(EXAMPLES), 5)
        for program in EXAMPLES:
            with self.subTest(program.name):
                result = run(program, ANYACL_TRACE=str(self.trace))
                self.assertEqual(result.returncode, 0, result.stderr)
                self.assertRegex(self.replay(), r"^replayed \d+ calls of \d+ threads: every status is that of the trace\n$")

    def test_mistakes_are_made_again(self):
        self.traced("mistakes")
        self.assertIn("every status is that of the trace", self.replay())

    def test_threads(self):
        self.traced("threads")
        self.assertIn("of 3 threads: every status is that of the trace", self.replay())

    def test_ranks_of_one_process(self):
        self.traced("ranks", ANYACL_DEVICES="2")
        self.assertIn("every status is that of the trace", self.replay())

    def test_exact_with_data(self):
        self.traced("add", ANYACL_TRACE_DATA="1")
        self.assertIn("1 of 1 results read back have the same bytes", self.replay())

    def test_other_data_is_noticed(self):
        self.traced("add", ANYACL_TRACE_DATA="1")
        data = self.trace.read_bytes()
        number = bytes.fromhex("00003c42")  # 47.0, one of the numbers, to become 48.0
        self.assertIn(number, data)
        self.trace.write_bytes(data.replace(number, bytes.fromhex("00004042")))
        self.assertIn("0 of 1 results read back have the same bytes", self.replay(status=1))

    def test_another_status_is_noticed(self):
        self.traced("mistakes")
        data = self.trace.read_bytes()
        code = (161001).to_bytes(8, "little")
        self.assertIn(code, data)
        self.trace.write_bytes(data.replace(code, (161002).to_bytes(8, "little")))
        text = self.replay(status=1)
        self.assertIn("aclnnAddGetWorkspaceSize: 161001 now, 161002 in the trace", text)
        self.assertIn("1 statuses differ from the trace", text)

    def test_a_wait_without_end_is_given_up(self):
        self.assertIn("synchronize 0\n", self.traced("wait_for_the_host")[0])
        result = run(TOOL, "replay", self.trace, "--timeout", "1")
        self.assertEqual((result.returncode, result.stdout), (1, ""), result.stderr)
        self.assertRegex(result.stderr, r"^anyacl: the replay is given up after \d+ of \d+ calls: for 1 seconds none has returned, "
                                        r"and these wait: aclrtSynchronizeStream\n$")

    def test_faults_come_again(self):
        self.traced("add", ANYACL_FAIL="aclrtMalloc:3,aclrtSynchronizeStream:1")
        self.assertIn("every status is that of the trace", self.replay())


class Faults(Case):
    def test_the_third_call_fails_with_its_code(self):
        output, errors = self.client("add", ANYACL_FAIL="aclrtMalloc:3")
        self.assertEqual(errors, "")
        self.assertEqual(re.findall(r"malloc (\d+)", output), ["0", "0", "207001"])

    def test_a_code_of_ones_own(self):
        output, _ = self.client("add", ANYACL_FAIL="aclrtCreateStream:1:507899,aclnnAddGetWorkspaceSize:1:561003")
        self.assertIn("stream 507899\n", output)
        self.assertIn("phase1 561003\n", output)

    def test_both_phases_and_patterns(self):
        self.assertIn("phase1 561000\n", self.client("add", ANYACL_FAIL="aclnnAddGetWorkspaceSize:1")[0])
        self.assertIn("phase2 361001\n", self.client("add", ANYACL_FAIL="aclnnAdd:1")[0])
        self.assertEqual(re.findall(r"malloc (\d+)", self.client("add", ANYACL_FAIL="aclrtMal*:2")[0]), ["0", "207001", "0"])

    def test_work_fails_on_its_stream(self):
        output, _ = self.client("add", ANYACL_FAIL="aclnnAdd:1:async")
        self.assertIn("phase2 0\nsynchronize 507015\n", output)

    def test_a_point_that_cannot_be_read(self):
        output, errors = self.client("add", ANYACL_FAIL="aclrtMalloc,aclrtMalloc:0,aclrtMalloc:1:x,aclrtMalloc:2")
        self.assertEqual(re.findall(r"malloc (\d+)", output), ["0", "207001", "0"])
        self.assertEqual(errors.count("anyacl: ANYACL_FAIL: a point is NAME:N"), 3)

    def test_the_trace_has_them(self):
        self.traced("add", ANYACL_FAIL="aclrtMalloc:3")
        self.assertIn("error: aclrtMalloc: ANYACL_FAIL makes this call fail", self.show())


class Blocking(Case):
    def test_a_failure_is_that_of_the_call(self):
        output, _ = self.client("add", ANYACL_FAIL="aclnnAdd:1:async", ANYACL_BLOCKING="1")
        self.assertIn("phase2 361001\nsynchronize 0\n", output)

    def test_work_is_done_when_the_call_returns(self):
        self.traced("add", ANYACL_BLOCKING="1")
        events = json.loads(self.tool("trace", "json", self.trace))["traceEvents"]
        call, = [e for e in events if e["name"] == "aclnnAdd" and e["pid"] == 1]
        work, = [e for e in events if e["name"] == "aclnnAdd" and e["pid"] == 2]
        self.assertLessEqual(work["ts"] + work["dur"], call["ts"] + call["dur"] + 1)

    def test_nothing_else_changes(self):
        self.assertEqual(self.client("add"), self.client("add", ANYACL_BLOCKING="1"))


class Needs(Case):
    def test_what_is_missing(self):
        text = self.tool("needs", PROGRAMS / "libtraced_unknown.so", status=1)
        self.assertRegex(text, r"functions that it links: 2, 1 missing\n    missing   aclnnOfAnotherDayGetWorkspaceSize\n")
        self.assertRegex(text, r"names in strings: 2, 1 missing\n    missing   aclnnOfNoDayGetWorkspaceSize\n")
        self.assertIn("2 missing\n", text)
        text = self.tool("needs", "--linked", "--all", PROGRAMS / "libtraced_unknown.so", status=1)
        self.assertIn("    provided  aclrtMalloc\n", text)
        self.assertNotIn("OfNoDay", text)

    def test_what_is_here(self):
        text = self.tool("needs", *EXAMPLES, CLIENT)
        self.assertTrue(text.endswith("everything is provided\n"), text)
        self.assertIn("functions that it links: ", text)

    def test_other_files(self):
        self.assertIn("is no 64-bit program", self.tool("needs", __file__, status=2))
        self.assertIn("cannot be read", self.tool("needs", "/nowhere/at/all", status=2))


class Explain(Case):
    def test_every_code_of_the_headers(self):
        codes = set()
        for header in (SOURCE / "include").rglob("*.h"):
            text = header.read_text(encoding="utf-8")
            codes.update(re.findall(r"\bACL_ERROR_\w+ =? ?(\d+)U?;?$", text, re.MULTILINE))
            codes.update(re.findall(r"\bACLNN_ERR_\w+ (\d+)", text))
            codes.update(re.findall(r"\bHCCL_E_\w+ = (\d+)", text))
        self.assertGreater(len(codes), 250)
        text = self.tool("explain", *sorted(codes))
        for code in codes:
            self.assertRegex(text, rf"(?m)^{code} \w+: .+$")

    def test_what_the_library_returns_has_advice(self):
        text = (SOURCE / "src/core/codes.h").read_text(encoding="utf-8")
        codes = re.findall(r"= (\d{6});", text)
        advice = re.findall(r"  Means:  .+\n  Causes: .+\n  Try:    .+\n", self.tool("explain", *codes))
        self.assertEqual(len(advice), len(codes))

    def test_names_and_unknown_codes(self):
        self.assertEqual(self.tool("explain", "161002"), self.tool("explain", "ACLNN_ERR_PARAM_INVALID"))
        self.assertIn("there is no status code 7777", self.tool("explain", "7777", status=2))
        self.assertIn("explain needs a status code", self.tool("explain", status=2))

    def test_last(self):
        self.traced("mistakes")
        text = self.tool("explain", "--last", self.trace)
        self.assertRegex(text, r"^aclDestroyTensor returned \d+: aclDestroyTensor: .+\n")
        self.assertEqual(text, self.tool("explain", "--last", ANYACL_TRACE=str(self.trace)))
        self.traced("add")
        self.assertEqual(self.tool("explain", "--last", self.trace), "no call of the trace failed\n")


class Python(Case):
    def test_the_line_of_the_caller(self):
        script = self.trace.parent / "script.py"
        script.write_text("import ctypes, sys\n"
                          "library = ctypes.PyDLL(sys.argv[1])  # which keeps the interpreter's lock\n"
                          "def count():\n"
                          "    library.aclrtGetDeviceCount(ctypes.byref(ctypes.c_uint32()))\n"
                          "count()\n")
        library = Path(TOOL).parent.parent / "lib64/libanyacl.so"
        result = run(sys.executable, script, library, ANYACL_TRACE=str(self.trace))
        self.assertEqual(result.returncode, 0, result.stderr)
        self.assertRegex(self.show(), r"aclrtGetDeviceCount\(\) = 0.*\n +from .*/script\.py:4\n")


class Cost(Case):
    def test_of_a_call(self):
        plain = float(self.client("cost")[0])
        traced = float(self.traced("cost")[0])
        print(f"a call takes {plain} ns, traced {traced} ns")
        self.assertLess(traced - plain, MOST_NANOSECONDS)


if __name__ == "__main__":
    unittest.main(argv=sys.argv[:1] + sys.argv[4:])
