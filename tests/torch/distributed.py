# SPDX-License-Identifier: Apache-2.0
# Copyright The AnyACL Authors
"""torch.distributed on backend "hccl", torchrun as launcher: DDP with SyncBatchNorm against a single process, and every
collective against PyTorch's own backend "gloo" in the same processes."""
import os
import subprocess
import sys
import tempfile
import time
from pathlib import Path

from suite import program, variants

HERE = Path(__file__).resolve().parent


def torchrun(ranks, script, *arguments, seconds=200, **environment):
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


variants("ddp", ddp, {str(ranks): (ranks,) for ranks in (1, 2, 4)})
variants("collectives", collectives, {str(ranks): (ranks,) for ranks in (2, 4)})


@program()
def killed_rank():
    """The others end soon, and say who is missing."""
    start = time.monotonic()
    done = torchrun(3, HERE / "collectives.py", "killed", seconds=100)
    assert done.returncode != 0
    assert "rank 1 of 3 is gone" in done.stdout, done.stdout
    assert time.monotonic() - start < 60


@program()
def program_without_python():
    with tempfile.TemporaryDirectory() as folder:
        built = Path(folder) / "sync_batch_norm"
        compiler = Path(os.environ["ASCEND_HOME_PATH"]) / "bin/anyacl-c++"
        subprocess.run([compiler, HERE.parents[1] / "examples/sync_batch_norm.cpp", "-lhccl", "-o", built], check=True)
        done = torchrun(2, built)
    assert done.returncode == 0 and "2 ranks: right" in done.stdout
