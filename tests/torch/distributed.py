# SPDX-License-Identifier: Apache-2.0
# Copyright The AnyACL Authors
"""torch.distributed on backend "hccl", torchrun as launcher: DDP with SyncBatchNorm against a single process, and every
collective against PyTorch's own backend "gloo" in the same processes."""
import os
import re
import socket
import subprocess
import sys
import tempfile
import time
from pathlib import Path

from suite import program, variants

HERE = Path(__file__).resolve().parent


def torchrun(ranks, script, *arguments, seconds=500, **environment):
    env = {**os.environ, "ANYACL_DEVICES": str(ranks), "ANYACL_THREADS": "1", "OMP_NUM_THREADS": "1", **environment}
    command = [sys.executable, "-m", "torch.distributed.run", "--standalone", "--nproc-per-node", str(ranks)]
    command += [*([] if str(script).endswith(".py") else ["--no-python"]), str(script), *arguments]
    done = subprocess.run(command, env=env, stdout=subprocess.PIPE, stderr=subprocess.STDOUT, text=True, timeout=seconds)
    print(done.stdout)
    return done


def ddp(ranks):
    done = torchrun(ranks, HERE.parents[1] / "examples/pytorch/ddp.py")
    assert done.returncode == 0
    assert f"{ranks} ranks: loss " in done.stdout  # it has compared them


def collectives(ranks):
    done = torchrun(ranks, HERE / "collectives.py", "all")
    assert done.returncode == 0
    assert done.stdout.count("all collectives agree") == ranks


variants("ddp", ddp, {str(ranks): (ranks,) for ranks in (1, 2, 4)}, seconds=600)
variants("collectives", collectives, {str(ranks): (ranks,) for ranks in (2, 4)}, seconds=600)


@program()
def killed_rank():
    """The others end soon, and say who is missing."""
    start = time.monotonic()
    done = torchrun(3, HERE / "collectives.py", "killed", seconds=200)
    assert done.returncode != 0
    assert "rank 1 of 3 is gone" in done.stdout, done.stdout
    assert time.monotonic() - start < 120  # the time-outs are of half an hour


@program()
def program_without_python():
    with tempfile.TemporaryDirectory() as folder:
        built = Path(folder) / "sync_batch_norm"
        compiler = Path(os.environ["ASCEND_HOME_PATH"]) / "bin/anyacl-c++"
        subprocess.run([compiler, HERE.parents[1] / "examples/sync_batch_norm.cpp", "-lhccl", "-o", built], check=True)
        done = torchrun(2, built)
    assert done.returncode == 0 and "2 ranks: right" in done.stdout


@program()
def no_symbol_crosses():
    """Neither library finds a symbol in the other's files by accident: PyTorch brings a gloo, a BLAS and a LAPACK of its own."""
    script = ("import torch, torch_npu, torch.distributed as dist; torch.npu.set_device(0); dist.init_process_group('hccl'); "
              "g = dist.new_group(backend='gloo'); dist.all_reduce(torch.ones(4).npu()); dist.all_reduce(torch.ones(4), group=g); "
              "a = torch.eye(3); torch.linalg.qr(a); torch.linalg.qr(a.npu()); torch.npu.synchronize(); dist.destroy_process_group()")
    with socket.socket() as free:
        free.bind(("127.0.0.1", 0))
        port = str(free.getsockname()[1])
    env = {**os.environ, "LD_DEBUG": "bindings", "RANK": "0", "WORLD_SIZE": "1", "MASTER_ADDR": "127.0.0.1", "MASTER_PORT": port}
    bindings = subprocess.Popen([sys.executable, "-c", script], env=env, stderr=subprocess.PIPE, text=True, errors="replace")
    pattern = re.compile(r"binding file (\S+) \[\d+\] to (\S+) \[\d+\]: \w+ symbol `(\w+)'")
    standard = re.compile(r"_ZN?K?S[tabdiso]|_ZT[ISV]|_Z(nw|na|dl|da)")  # of C++, alike in all
    lines, crossing = 0, set()
    for line in bindings.stderr:
        found = pattern.search(line)
        if not found:
            continue
        source, target, symbol = found.groups()
        own_source, own_target = (os.environ["ASCEND_HOME_PATH"] in os.path.realpath(file) for file in (source, target))
        lines += own_source or own_target
        if own_source and not own_target and re.search("torch|nvidia", target) and not standard.match(symbol):
            crossing.add(f"{symbol} of {os.path.basename(target)}")
        if own_target and not own_source and not re.match("acl|Hccl|Msprof|rt[A-Z]", symbol):
            crossing.add(f"{symbol} of ours in {os.path.basename(source)}")
    assert bindings.wait(60) == 0 and lines > 100, lines
    assert not crossing, sorted(crossing)
