# SPDX-License-Identifier: Apache-2.0
# Copyright The AnyACL Authors
"""What the programs of these tests share: a list of them, each run in a process of its own, and comparisons with the CPU.

A program is a function with @program. It is forked from a process that has imported torch and torch_npu and used
nothing yet; with its own environment variables it is a new interpreter. An exception, a crash and a hang are failures.
"""
import argparse
import contextlib
import importlib
import json
import os
import re
import signal
import subprocess
import sys
import tempfile
import time
import traceback
from pathlib import Path

HERE = Path(__file__).resolve().parent
LACKING = re.compile(r"\b(aclnn\w+?|aclop\w+) or \w+ not (?:found|in )")
PROGRAMS = {}


class Program:
    def __init__(self, function, seconds, environment):
        self.function, self.seconds, self.environment = function, seconds, environment
        self.file = Path(function.__code__.co_filename).stem
        self.name = f"{self.file}.{function.__name__}"


def program(seconds=600, **environment):
    """Registers a function. `environment`: variables that are read when torch_npu is imported."""
    def register(function):
        added = Program(function, seconds, environment)
        PROGRAMS[added.name] = added
        return function
    return register


def variants(name, function, cases, **options):
    """One program per case: {suffix: arguments of function}."""
    for suffix, arguments in cases.items():
        def one(arguments=arguments):
            function(*arguments)
        one.__name__ = f"{name}_{suffix}" if suffix else name
        one.__code__ = one.__code__.replace(co_filename=function.__code__.co_filename)
        program(**options)(one)


# --- comparisons ------------------------------------------------------------------------------------------------------
def close(got, wanted, relative=1e-5, absolute=1e-6, what="values"):
    import torch
    torch.testing.assert_close(got.detach().cpu(), wanted.detach().cpu(), rtol=relative, atol=absolute,
                               msg=lambda text: f"{what}: {text}", equal_nan=True)


def to_device(thing, device):
    import torch
    if isinstance(thing, torch.Tensor):
        return thing.to(device)
    if isinstance(thing, (list, tuple)):
        return type(thing)(to_device(part, device) for part in thing)
    return thing


def one_ulp_more(thing):
    import torch
    if isinstance(thing, torch.Tensor):
        return torch.nextafter(thing, torch.full_like(thing, float("inf"))) if thing.is_floating_point() else thing
    if isinstance(thing, (list, tuple)):
        return type(thing)(one_ulp_more(part) for part in thing)
    return thing


def train(make_model, make_batch, loss_of, make_optimizer, device, steps=20, nudge=False, autocast=None, scaler=False,
          clip=None):
    """The losses of some steps. Weights and batches are made on the CPU, from one seed."""
    import torch
    torch.manual_seed(1)
    model = make_model()
    batches = [make_batch() for _ in range(4)]
    if nudge:
        batches = [one_ulp_more(batch) for batch in batches]
    model.to(device).train()
    batches = [to_device(batch, device) for batch in batches]
    optimizer = make_optimizer(model.parameters())
    scale = torch.amp.GradScaler(device) if scaler else None
    losses = []
    for step in range(steps):
        optimizer.zero_grad()
        with torch.autocast(device, dtype=autocast) if autocast else contextlib.nullcontext():
            loss = loss_of(model, batches[step % len(batches)])
        (scale.scale(loss) if scale else loss).backward()
        if clip:
            if scale:
                scale.unscale_(optimizer)
            torch.nn.utils.clip_grad_norm_(model.parameters(), clip)
        if scale:
            scale.step(optimizer)
            scale.update()
        else:
            optimizer.step()
        losses.append(loss.detach())
    losses = [float(loss) for loss in losses]
    assert all(loss == loss and abs(loss) < 1e30 for loss in losses), f"losses on {device}: {losses}"
    return losses


def same_losses(*how, tolerance=1e-4, **options):
    """Losses on npu against those on the CPU; long chains may drift as far as a CPU run whose input is one ulp away."""
    npu, cpu = train(*how, "npu", **options), train(*how, "cpu", **options)
    apart = max(abs(a - b) / abs(b) for a, b in zip(npu, cpu))
    assert min(cpu) < cpu[0], f"the CPU does not learn: {cpu}"
    if apart <= tolerance:
        return
    nudged = train(*how, "cpu", nudge=True, **options)
    drift = max(abs(a - b) / abs(b) for a, b in zip(nudged, cpu))
    assert apart <= 4 * drift, f"losses are {apart:.2e} apart (allowed {max(tolerance, 4 * drift):.2e}):\n{npu}\n{cpu}"


# --- running them -----------------------------------------------------------------------------------------------------
def reason(text):
    lacking = sorted(set(LACKING.findall(text)))
    if lacking:
        return "lacks " + " ".join(lacking)
    lines = [line for line in text.strip().splitlines() if line.strip()]
    errors = [line for line in lines if re.match(r"[\w.]*(Error|Exception|Warning|Interrupt)\b", line)]
    return (errors or lines or ["no output"])[-1][:300]


def call(one):
    """In the process of one program."""
    try:
        one.function()
        return 0
    except BaseException:  # noqa: the parent reports it
        traceback.print_exc()
        return 1
    finally:
        sys.stdout.flush()
        sys.stderr.flush()


class Running:
    """A program on its way, its output in a file."""
    def __init__(self, one):
        self.one, self.began, self.output = one, time.monotonic(), tempfile.TemporaryFile()
        if one.environment:
            command = [sys.executable, __file__, one.file, "--one", one.name]
            self.process = subprocess.Popen(command, stdout=self.output, stderr=self.output, start_new_session=True,
                                            env={**os.environ, **one.environment})
            self.pid = self.process.pid
            return
        self.process, self.pid = None, os.fork()
        if self.pid == 0:
            os.setsid()
            os.dup2(self.output.fileno(), 1)
            os.dup2(self.output.fileno(), 2)
            status = call(one)
            if status:
                os._exit(status)
            sys.exit(0)  # through the exit handlers, which are part of the test

    def result(self):
        """None while it runs; then (passed, text)."""
        if self.process:
            status = self.process.poll()
        else:
            pid, raw = os.waitpid(self.pid, os.WNOHANG)
            status = os.waitstatus_to_exitcode(raw) if pid else None
        late = status is None and time.monotonic() - self.began > self.one.seconds
        if late:
            with contextlib.suppress(ProcessLookupError):
                os.killpg(self.pid, signal.SIGKILL)
            if self.process:
                self.process.wait()
            else:
                os.waitpid(self.pid, 0)
        elif status is None:
            return None
        self.output.seek(0)
        text = self.output.read().decode(errors="replace")
        if late:
            return False, f"{text}\nhang: not done after {self.one.seconds} s"
        if status < 0:
            return False, f"{text}\ncrash: {signal.Signals(-status).name}"
        return status == 0, text


def run_all(chosen, jobs, verbose, report):
    waiting, running, failed = list(chosen), [], []
    while waiting or running:
        while waiting and len(running) < jobs:
            running.append(Running(waiting.pop(0)))
        for one in list(running):
            result = one.result()
            if result is None:
                continue
            running.remove(one)
            passed, text = result
            seconds = time.monotonic() - one.began
            if passed:
                print(f"pass  {one.one.name}  ({seconds:.1f} s)", flush=True)
            else:
                failed.append(one.one.name)
                print(f"FAIL  {one.one.name}  ({seconds:.1f} s): {reason(text)}", flush=True)
            if verbose or not passed and not LACKING.search(text):
                print("".join(f"      {line}\n" for line in text.strip().splitlines()[-40:]), flush=True)
            report[one.one.name] = {"passed": passed, "seconds": round(seconds, 1), "reason": "" if passed else reason(text)}
        time.sleep(0.02)
    lacking = sorted({name for row in report.values() for name in re.findall(r"\baclnn\w+", row["reason"])
                      if row["reason"].startswith("lacks ")})
    if lacking:
        print(f"operators that programs lack: {' '.join(lacking)}")
    return failed


def main():
    parser = argparse.ArgumentParser()
    parser.add_argument("files", nargs="*")
    parser.add_argument("--match", default="")
    parser.add_argument("--jobs", type=int, default=2)
    parser.add_argument("--one")
    parser.add_argument("--list", action="store_true")
    parser.add_argument("--verbose", action="store_true")
    parser.add_argument("--json", type=Path)
    args = parser.parse_args()
    sys.modules["suite"] = sys.modules["__main__"]  # the programs register here
    for file in args.files:
        importlib.import_module(file)
    if args.list:
        print("\n".join(PROGRAMS))
        return 0
    import torch
    import torch_npu  # noqa: F401
    import torch._dynamo  # noqa: F401, optimizers import it: here once, instead of a second in every program
    torch.set_num_threads(1)
    if args.one:
        return call(PROGRAMS[args.one])
    report = {}
    chosen = [one for one in PROGRAMS.values() if re.search(args.match, one.name)]
    failed = run_all(chosen, args.jobs, args.verbose, report)
    if args.json:
        args.json.write_text(json.dumps(report, indent=1), encoding="utf-8")
    print(f"{len(chosen) - len(failed)} passed, {len(failed)} failed")
    return 1 if failed or not chosen else 0


if __name__ == "__main__":
    sys.exit(main())
