# SPDX-License-Identifier: Apache-2.0
# Copyright The AnyACL Authors
"""The rules of the Trace Event Format, which Perfetto and chrome://tracing read, as its description states them
(https://docs.google.com/document/d/1CvAClvFfyA5R-PhYUmn5OOQtYMH4h6I0nSsKchNAySU)."""
import json
import math

# What an event of each phase must have besides ph; all but metadata need a time.
NEEDS = {
    "B": ("name", "pid", "tid"), "E": ("pid", "tid"), "X": ("name", "pid", "tid", "dur"), "i": ("name", "pid", "tid"), "I": ("name", "pid", "tid"),
    "C": ("name", "pid", "args"), "M": ("name", "pid", "args"),
    **{phase: ("name", "pid", "tid", "id") for phase in "bnestfSTpFNODv"},
}
METADATA = {"process_name": ("name", str), "process_labels": ("labels", str), "process_sort_index": ("sort_index", int),
            "thread_name": ("name", str), "thread_sort_index": ("sort_index", int)}
ROUNDING = 0.0015  # microseconds: times are nanoseconds, and no piece is shorter than one


def is_number(value):
    return isinstance(value, (int, float)) and not isinstance(value, bool) and math.isfinite(value)


def is_whole(value):
    return isinstance(value, int) and not isinstance(value, bool)


TYPES = {"name": lambda v: isinstance(v, str), "cat": lambda v: isinstance(v, str), "args": lambda v: isinstance(v, dict), "pid": is_whole,
         "tid": is_whole, "ts": is_number, "dur": lambda v: is_number(v) and v >= 0, "id": lambda v: isinstance(v, (str, int))}


def of_one(event):
    if not isinstance(event, dict) or event.get("ph") not in NEEDS:
        return f"no event, or of no known phase: {event}"
    phase = event["ph"]
    for field in NEEDS[phase] + (() if phase == "M" else ("ts",)):
        if field not in event:
            return f"{field} is missing: {event}"
    for field, is_right in TYPES.items():
        if field in event and not is_right(event[field]):
            return f"{field} is not what it must be: {event}"
    if phase == "C" and not (event["args"] and all(is_number(value) for value in event["args"].values())):
        return f"a counter has numbers: {event}"
    if phase == "M":
        key, kind = METADATA.get(event["name"], (None, None))
        if key is None or not isinstance(event["args"].get(key), kind):
            return f"no known metadata: {event}"
    return None


def of_begins_and_ends(events):
    """Every end has a begin of its thread before it, and the other way round."""
    found, open_ = [], {}
    for event in events:
        stack = open_.setdefault((event["pid"], event.get("tid")), [])
        if event["ph"] == "B":
            stack.append(event)
        elif event["ph"] == "E":
            if not stack or stack.pop()["ts"] > event["ts"]:
                found.append(f"an end without its begin: {event}")
    return found + [f"a begin without its end: {event}" for stack in open_.values() for event in stack]


def of_spans(events):
    """Complete events of one thread lie inside of each other or apart."""
    found, threads = [], {}
    for event in events:
        if event["ph"] == "X":
            threads.setdefault((event["pid"], event["tid"]), []).append(event)
    for spans in threads.values():
        stack = []
        for event in sorted(spans, key=lambda e: (e["ts"], -e["dur"])):
            while stack and stack[-1]["ts"] + stack[-1]["dur"] <= event["ts"] + ROUNDING:
                stack.pop()
            if stack and event["ts"] + event["dur"] > stack[-1]["ts"] + stack[-1]["dur"] + ROUNDING:
                found.append(f"overlaps {stack[-1]}: {event}")
            stack.append(event)
    return found


def problems(text):
    """What is wrong with a timeline; an empty list for one that keeps to the format."""
    def refuse(word):
        raise ValueError(f"{word} is no number of JSON")
    try:
        whole = json.loads(text, parse_constant=refuse)
    except ValueError as problem:
        return [str(problem)]
    events = whole.get("traceEvents") if isinstance(whole, dict) else whole
    if not isinstance(events, list):
        return ["neither a list of events nor an object with one"]
    if isinstance(whole, dict) and whole.get("displayTimeUnit", "ms") not in ("ms", "ns"):
        return ["displayTimeUnit is ms or ns"]
    found = [problem for problem in map(of_one, events) if problem]
    return found or of_begins_and_ends(events) + of_spans(events)
