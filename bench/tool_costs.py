#!/usr/bin/env python3
# SPDX-License-Identifier: Apache-2.0
# Copyright The AnyACL Authors
"""What the debugging tools cost: rows of `anyacl bench` and bench/tiny_calls.cpp without a tool and with each, in turns.

    tool_costs.py [--prefix dist] [--rounds 3] [--tools guard,races,trace,verify] [--tiny FILE] [-- OPTIONS OF anyacl bench]

For each row the medians of the rounds and their ratio. `time`: the work of a run; `call`: both functions of an operator. --tiny: the
program, compiled (its first lines say how); then it alone is run.
"""
import argparse
import json
import os
import statistics
import subprocess
import sys
import tempfile
from collections import defaultdict
from pathlib import Path

TOOLS = {"guard": {"ANYACL_GUARD": "1"}, "races": {"ANYACL_RACES": "1"}, "trace": {"ANYACL_TRACE": "trace"},
         "verify": {"ANYACL_VERIFY": "1"}}


def run(command, prefix, folder, variables):
    env = {name: value for name, value in os.environ.items() if not name.startswith("ANYACL_") or name == "ANYACL_THREADS"}
    env.update({"ANYACL_BACKEND": "cpu", "LD_LIBRARY_PATH": str(prefix / "lib64"), "ANYACL_REPORT": str(folder / "report")}, **variables)
    if "ANYACL_TRACE" in variables:
        env["ANYACL_TRACE"] = str(folder / "trace")
    output = subprocess.run([str(word) for word in command], env=env, stdout=subprocess.PIPE, text=True, check=True).stdout
    for file in folder.glob("*"):
        file.unlink()
    return output


def bench_rows(args, folder, variables):
    rows = json.loads(run([args.prefix / "bin/anyacl", "bench", "--json", "-", *args.options], args.prefix, folder, variables))
    for row in rows:
        name = f"{row['op']} {row['case']} {row['dtype']}"
        yield name + ", time", row["time_us"]
        yield name + ", call", row["call_us"]


def tiny_rows(args, folder, variables):
    for line in run([args.tiny.resolve(), "9"], args.prefix, folder, variables).splitlines()[1:]:
        name, microseconds = line.split()[:2]
        yield name + ", both functions", float(microseconds)


def main():
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("--prefix", type=Path, default=Path(__file__).resolve().parents[1] / "dist")
    parser.add_argument("--rounds", type=int, default=3)
    parser.add_argument("--tools", default="guard,races,trace,verify")
    parser.add_argument("--tiny", type=Path)
    parser.add_argument("options", nargs="*", help="of anyacl bench, behind --")
    args = parser.parse_args()
    tools = {"off": {}, **{name: TOOLS[name] for name in args.tools.split(",")}}
    times = defaultdict(lambda: defaultdict(list))
    with tempfile.TemporaryDirectory() as folder:
        for _ in range(args.rounds):
            for tool, variables in tools.items():
                for name, microseconds in (tiny_rows if args.tiny else bench_rows)(args, Path(folder), variables):
                    times[name][tool].append(microseconds)
    print(f"{'microseconds':58} {'off':>10}" + "".join(f" {tool:>10} {'x':>6}" for tool in tools if tool != "off"))
    ratios = defaultdict(list)
    for name, of_tool in times.items():
        medians = {tool: statistics.median(values) for tool, values in of_tool.items()}
        line = f"{name:58} {medians['off']:10.2f}"
        for tool in tools:
            if tool != "off":
                ratios[tool].append(medians[tool] / medians["off"])
                line += f" {medians[tool]:10.2f} {ratios[tool][-1]:6.2f}"
        print(line)
    for tool, values in ratios.items():
        print(f"{tool}: {statistics.geometric_mean(values):.2f} times on average (geometric), {max(values):.2f} at most, "
              f"{sum(value < 2 for value in values)} of {len(values)} below 2")
    return 0


if __name__ == "__main__":
    sys.exit(main())
