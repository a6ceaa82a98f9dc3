# SPDX-License-Identifier: Apache-2.0
# Copyright The AnyACL Authors
"""Training on several processes: DistributedDataParallel with SyncBatchNorm on backend "hccl", each rank with a part of the
batch of its own size, beside one process with the whole batch on the CPU. Rank 0 says how far the losses are apart.

    anyacl run -- torchrun --nproc-per-node 4 ddp.py
"""
import os

import torch
import torch.distributed as dist
import torch_npu  # noqa: F401, brings the device and the backend
from torch import nn
from torch.nn.parallel import DistributedDataParallel

STEPS = 20


def samples_of(rank):
    return 4 + 3 * (rank % 2)  # uneven


def make_model():
    torch.manual_seed(1)
    return nn.Sequential(nn.Conv2d(3, 8, 3, padding=1), nn.BatchNorm2d(8), nn.ReLU(), nn.Conv2d(8, 8, 3), nn.BatchNorm2d(8),
                         nn.ELU(), nn.Flatten(), nn.Linear(8 * 6 * 6, 4))


def batches(ranks):
    torch.manual_seed(2)
    size = sum(map(samples_of, range(ranks)))
    x = torch.randn(2, size, 3, 8, 8)
    y = torch.tanh(2 * x.mean(4).flatten(2)[:, :, :4])
    return [(x[step % 2], y[step % 2]) for step in range(STEPS)]


def train(model, device, data, ranks=1, begin=0, end=None):
    """The losses, each over the whole batch, of which this rank has samples begin to end."""
    optimizer = torch.optim.SGD(model.parameters(), 0.02, momentum=0.9)
    losses = []
    for x, y in data:
        whole = y.numel()
        x, y = x[begin:end].to(device), y[begin:end].to(device)
        optimizer.zero_grad()
        # Its share of the loss of the whole batch. DDP divides the sum of the gradients by the number of ranks.
        loss = ((model(x) - y) ** 2).sum() / whole
        (loss * ranks).backward()
        optimizer.step()
        loss = loss.detach()
        if ranks > 1:
            dist.all_reduce(loss)
        losses.append(loss.item())
    return losses


def main():
    device = torch.device("npu", int(os.environ["LOCAL_RANK"]) % torch.npu.device_count())
    torch.npu.set_device(device)
    dist.init_process_group("hccl")
    rank, ranks = dist.get_rank(), dist.get_world_size()
    model = nn.SyncBatchNorm.convert_sync_batchnorm(make_model()).to(device)
    model = DistributedDataParallel(model, device_ids=[device.index])
    begin = sum(map(samples_of, range(rank)))
    losses = train(model, device, batches(ranks), ranks, begin, begin + samples_of(rank))
    dist.barrier()
    dist.destroy_process_group()
    if rank == 0:
        single = train(make_model(), "cpu", batches(ranks))
        apart = max(abs(a - b) / abs(b) for a, b in zip(losses, single))
        print(f"{ranks} ranks: loss {losses[0]:.6f} to {losses[-1]:.6f}, at most {apart:.1e} of it from a single process")
        assert losses[-1] < 0.5 * losses[0], losses
        assert apart <= 1e-5, (losses, single)


if __name__ == "__main__":
    main()
