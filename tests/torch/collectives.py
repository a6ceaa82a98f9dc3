# SPDX-License-Identifier: Apache-2.0
# Copyright The AnyACL Authors
"""One rank of distributed.py, started by torchrun:  collectives.py all|killed"""
import os
import signal
import sys

import torch
import torch.distributed as dist
import torch_npu  # noqa: F401

RANK = int(os.environ["RANK"])
RANKS = int(os.environ["WORLD_SIZE"])
DTYPES = [torch.float32, torch.float16, torch.bfloat16, torch.float64, torch.int8, torch.int32, torch.int64]
SHAPES = [(0,), (1,), (3, 5), (300, 100)]


def numbers(dtype, shape, rank=RANK):
    return torch.randint(-3, 4, shape, generator=torch.Generator().manual_seed(rank)).to(dtype)


def same(got, wanted, what):
    got = got if isinstance(got, (list, tuple)) else [got]
    wanted = wanted if isinstance(wanted, (list, tuple)) else [wanted]
    for one, other in zip(got, wanted, strict=True):
        assert torch.equal(one.cpu(), other), f"{what}: {one.cpu()} {other}"


def on_both(what, collective, *tensors, results=lambda tensors: tensors):
    """The same call on backend hccl with tensors of the device, and on gloo with the CPU's."""
    def copy(thing, device):
        return [copy(part, device) for part in thing] if isinstance(thing, list) else thing.clone().to(device)
    npu, cpu = ([copy(tensor, device) for tensor in tensors] for device in ("npu", "cpu"))
    collective(*npu, group=None)
    collective(*cpu, group=GLOO)
    for one, other in zip(results(npu), results(cpu), strict=True):
        same(one, other, what)


def reductions():
    for dtype in DTYPES:
        for shape in SHAPES:
            what = f"{dtype} {shape}"
            for op in (dist.ReduceOp.SUM, dist.ReduceOp.MAX, dist.ReduceOp.MIN):
                own = numbers(dtype, shape)
                wanted = torch.stack([numbers(dtype, shape, r).double() for r in range(RANKS)])
                wanted = {dist.ReduceOp.SUM: wanted.sum(0), dist.ReduceOp.MAX: wanted.amax(0), dist.ReduceOp.MIN: wanted.amin(0)}[op]
                got = own.npu()
                dist.all_reduce(got, op)
                same(got, wanted.to(dtype), f"all_reduce {op} {what}")
                got = own.npu()
                dist.reduce(got, RANKS - 1, op)
                if RANK == RANKS - 1:
                    same(got, wanted.to(dtype), f"reduce {op} {what}")
            parts = [numbers(dtype, shape, RANK * RANKS + r) for r in range(RANKS)]
            got = torch.empty(shape, dtype=dtype).npu()
            dist.reduce_scatter(got, [part.npu() for part in parts])
            same(got, sum(numbers(dtype, shape, r * RANKS + RANK) for r in range(RANKS)).to(dtype), f"reduce_scatter {what}")
    average = numbers(torch.float32, (7,)).npu()
    dist.all_reduce(average, dist.ReduceOp.AVG)
    torch.testing.assert_close(average.cpu(), sum(numbers(torch.float32, (7,), r) for r in range(RANKS)) / RANKS)


def movements():
    for dtype in [*DTYPES, torch.uint8, torch.bool]:
        for shape in SHAPES:
            what = f"{dtype} {shape}"
            own = numbers(dtype, shape)
            rooms = [torch.zeros_like(own) for _ in range(RANKS)]
            on_both(f"broadcast {what}", lambda x, group: dist.broadcast(x, RANKS - 1, group=group), own)
            on_both(f"all_gather {what}", lambda to, x, group: dist.all_gather(to, x, group=group), rooms, own)
            if own.numel():
                parts = [numbers(dtype, shape, r) for r in range(RANKS)]
                on_both(f"scatter {what}", lambda to, lists, group: dist.scatter(to, lists if RANK == 0 else None, 0, group=group),
                        torch.zeros_like(own), parts, results=lambda tensors: tensors[:1])
    sizes = [(RANK + 1) * (r + 2) for r in range(RANKS)]
    comes = [(r + 1) * (RANK + 2) for r in range(RANKS)]
    on_both("all_to_all_single", lambda to, x, group: dist.all_to_all_single(to, x, comes, sizes, group=group),
            torch.zeros(sum(comes)), numbers(torch.float32, (sum(sizes),)))
    uneven = [torch.empty(r + 1, 2).npu() for r in range(RANKS)]
    dist.all_gather(uneven, numbers(torch.float32, (RANK + 1, 2)).npu())
    same(uneven, [numbers(torch.float32, (r + 1, 2), r) for r in range(RANKS)], "uneven all_gather")


def one_to_one():
    after, before = (RANK + 1) % RANKS, (RANK - 1) % RANKS
    out, into = numbers(torch.float32, (1000,)).npu(), torch.empty(1000).npu()
    for request in dist.batch_isend_irecv([dist.P2POp(dist.isend, out, after), dist.P2POp(dist.irecv, into, before)]):
        request.wait()
    same(into, numbers(torch.float32, (1000,), before), "batch_isend_irecv")
    if RANK == 0:
        dist.send(out, 1)
        dist.recv(into, 1)
    elif RANK == 1:
        dist.recv(into, 0)
        dist.send(out, 0)
    if RANK < 2:
        same(into, numbers(torch.float32, (1000,), 1 - RANK), "send and recv")


def groups_and_objects():
    for members in ([0, 1], list(range(RANKS))[::-1], [RANKS - 1]):
        group = dist.new_group(sorted(members))
        if RANK in members:
            got = torch.full((3,), RANK + 1.0).npu()
            dist.all_reduce(got, group=group)
            same(got, torch.full((3,), float(sum(r + 1 for r in members))), f"all_reduce of {members}")
    objects = [None] * RANKS
    dist.all_gather_object(objects, {"rank": RANK, "text": "x" * 10 * RANK})
    assert objects == [{"rank": r, "text": "x" * 10 * r} for r in range(RANKS)], objects
    told = [RANK, "of rank", RANK]
    dist.broadcast_object_list(told, 1)
    assert told == [1, "of rank", 1], told
    handle = dist.all_reduce(torch.ones(100000).npu(), async_op=True)
    handle.wait()
    dist.barrier()


def killed():
    value = torch.ones(1000).npu()
    for step in range(10000):
        if RANK == 1 and step == 20:
            os.kill(os.getpid(), signal.SIGKILL)
        dist.all_reduce(value, dist.ReduceOp.MAX)
        torch.npu.synchronize()


torch.npu.set_device(int(os.environ["LOCAL_RANK"]))
dist.init_process_group("hccl")
GLOO = dist.new_group(backend="gloo")
if sys.argv[1] == "killed":
    killed()
reductions()
movements()
one_to_one()
groups_and_objects()
print("all collectives agree\n", end="", flush=True)
dist.destroy_process_group()
