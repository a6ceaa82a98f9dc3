#!/usr/bin/env python3
# SPDX-License-Identifier: Apache-2.0
# Copyright The AnyACL Authors
"""Times PyTorch programs on device npu: training steps beside PyTorch's own CPU backend, on the same threads, and what
a call costs the host.

    bench/torch_steps.py [--prefix dist] [--threads N] [--rounds N] [--only REGEX] [--python FILE]

Devices take turns, round by round; the medians count, with the quartiles of the ratio beside them. The host cost is
the processor time in which Python's thread hands a call over: `x.add_(y)` on 16 numbers, and on none, which is the same
call with an empty plan. The environment is that of ./check --torch (tests/torch/environment.py makes it).
"""
import argparse
import os
import re
import statistics
import sys
import time
from pathlib import Path

ROOT = Path(__file__).resolve().parents[1]
TESTS = ROOT / "tests/torch"
BURST = 400  # fewer than the client's queue holds, or the queue would be measured


def arguments():
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("--prefix", type=Path, default=ROOT / "dist")
    parser.add_argument("--threads", type=int, default=len(os.sched_getaffinity(0)))
    parser.add_argument("--rounds", type=int, default=9)
    parser.add_argument("--only", default="")
    parser.add_argument("--python", type=Path, help="an interpreter that has torch and torch_npu already")
    return parser.parse_args()


def enter(args):
    """Starts again with the interpreter of the environment."""
    import environment
    import run
    env = run.prefix_environment(args.prefix)
    env.update(OMP_NUM_THREADS=str(args.threads), ANYACL_THREADS=str(args.threads), ANYACL_TORCH_STEPS="1")
    try:
        python = args.python or environment.make()
    except environment.OutOfReach as problem:
        print(f"skipped: {problem}")
        return environment.SKIPPED
    os.execve(python, [str(python), *sys.argv], env)


def wait(device):
    import torch
    if device == "npu":
        torch.npu.synchronize()


def training_step(make_model, batch, loss_of, make_optimizer, device):
    """A function that trains one step."""
    import torch
    from suite import to_device
    torch.manual_seed(1)
    model, data = make_model(), to_device(batch(), device)
    model.to(device).train()
    optimizer = make_optimizer(model.parameters())

    def step():
        optimizer.zero_grad()
        loss_of(model, data).backward()
        optimizer.step()
        wait(device)
    return step


def steps():
    """Name: what training_step takes but the device."""
    import torch
    import models

    def text():
        words = torch.randint(0, 512, (4, 129))
        return words[:, :-1], words[:, 1:]

    def gpt(by_hand):
        return models.Gpt(by_hand, width=256, heads=8, layers=4, words=512, length=128)

    def pictures():
        return torch.randn(8, 3, 96, 96), torch.randint(0, 10, (8,))

    return {
        "GPT, attention by hand": (lambda: gpt(True), text, models.next_word, models.ADAMW),
        "GPT, scaled_dot_product_attention": (lambda: gpt(False), text, models.next_word, models.ADAMW),
        "ResNet-18": (lambda: models.ResNet18(64), pictures, models.classified, models.SGD),
    }


def milliseconds(function):
    began = time.perf_counter()
    function()
    return 1e3 * (time.perf_counter() - began)


def in_turns(functions, rounds):
    """The times of each, in milliseconds, the functions taking turns."""
    times = {name: [] for name in functions}
    for function in functions.values():
        function()
        function()
    for _ in range(rounds):
        for name, function in functions.items():
            times[name].append(milliseconds(function))
    return times


def burst(elements):
    """A function that gives the microseconds in which one call is handed over."""
    import torch
    x, y = torch.ones(elements).npu(), torch.ones(elements).npu()

    def handed_over():
        torch.npu.synchronize()
        began = time.thread_time()
        for _ in range(BURST):
            x.add_(y)
        return 1e6 * (time.thread_time() - began) / BURST
    return handed_over


def host_cost(rounds):
    ways = {"x.add_(y) of 16 numbers": burst(16), "x.add_(y) of none (empty plan)": burst(0)}
    costs = {name: [] for name in ways}
    for _ in range(10 * rounds):
        for name, way in ways.items():
            costs[name].append(way())
    medians = {name: statistics.median(cost) for name, cost in costs.items()}
    print("\n| host cost of a call | us |\n|---|---|")
    for name, median in medians.items():
        print(f"| {name} | {median:.2f} |")
    ours, empty = medians.values()
    print(f"\nratio {ours / empty:.2f}")


def main():
    args = arguments()
    sys.path.insert(0, str(TESTS))
    if "ANYACL_TORCH_STEPS" not in os.environ:
        return enter(args)
    import torch
    import torch_npu  # noqa: F401
    torch.set_num_threads(args.threads)
    print(f"torch {torch.__version__}, {args.threads} threads, {args.rounds} rounds\n")
    print("| training step | npu ms | cpu ms | npu / cpu | quartiles |\n|---|---|---|---|---|")
    for name, how in steps().items():
        if not re.search(args.only, name):
            continue
        times = in_turns({device: training_step(*how, device) for device in ("npu", "cpu")}, args.rounds)
        ratios = statistics.quantiles([a / b for a, b in zip(times["npu"], times["cpu"])], n=4)
        npu, cpu = (statistics.median(times[device]) for device in ("npu", "cpu"))
        print(f"| {name} | {npu:.1f} | {cpu:.1f} | {ratios[1]:.2f} | {ratios[0]:.2f} to {ratios[2]:.2f} |", flush=True)
    if re.search(args.only, "host cost"):
        host_cost(args.rounds)
    return 0


if __name__ == "__main__":
    sys.exit(main())
