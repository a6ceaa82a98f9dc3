#!/usr/bin/env python3
# SPDX-License-Identifier: Apache-2.0
# Copyright The AnyACL Authors
"""Makes the Python environment of these tests from PyPI, below the build folder, and keeps it:

    environment.py [--leg 2.7.1] [--root build/torch]      prints the interpreter

Status 77, with one line that says why, where the machine cannot make it: PyPI out of reach, no room on the disk, a Python
without venv.

torch_npu asks for a build of torch that PyPI does not have, so it is installed with --no-deps. PyPI's torch is a CUDA
build: it needs some of NVIDIA's libraries to be imported at all, but neither a GPU nor the rest of what it asks for
(nvrtc, cusolver, nvtx, triton).
"""
import argparse
import hashlib
import shutil
import subprocess
import sys
from pathlib import Path

ROOT = Path(__file__).resolve().parents[2]
SKIPPED = 77
ROOM = 10 << 30  # bytes: 4.5 GB of files, and what pip downloads and may keep
ATTEMPTS = 2  # pip asks again for a connection, but not for a download that broke off

COMMON = ["numpy==2.2.6", "pyyaml==6.0.2", "expecttest==0.3.0", "filelock==3.18.0", "typing-extensions==4.14.1",
          "sympy==1.14.0", "mpmath==1.3.0", "networkx==3.4.2", "jinja2==3.1.6", "markupsafe==3.0.2", "fsspec==2025.5.1",
          "packaging==25.0"]
LEGS = {  # torch, torch_npu, and what libtorch_cuda.so, libtorch_python.so and libtorch_cpu.so are linked with
    "2.7.1": ["torch==2.7.1", "torch-npu==2.7.1.post11", "nvidia-cuda-runtime-cu12==12.6.77",
              "nvidia-cuda-cupti-cu12==12.6.80", "nvidia-cudnn-cu12==9.5.1.17", "nvidia-cublas-cu12==12.6.4.1",
              "nvidia-cufft-cu12==11.3.0.4", "nvidia-curand-cu12==10.3.7.77", "nvidia-cusparse-cu12==12.5.4.2",
              "nvidia-cusparselt-cu12==0.6.3", "nvidia-nccl-cu12==2.26.2", "nvidia-nvjitlink-cu12==12.6.85",
              "nvidia-cufile-cu12==1.11.1.6"],
    "2.9.0": ["torch==2.9.0", "torch-npu==2.9.0.post9", "nvidia-cuda-runtime-cu12==12.8.90",
              "nvidia-cuda-cupti-cu12==12.8.90", "nvidia-cudnn-cu12==9.10.2.21", "nvidia-cublas-cu12==12.8.4.1",
              "nvidia-cufft-cu12==11.3.3.83", "nvidia-curand-cu12==10.3.9.90", "nvidia-cusparse-cu12==12.5.8.93",
              "nvidia-cusparselt-cu12==0.7.1", "nvidia-nccl-cu12==2.27.5", "nvidia-nvjitlink-cu12==12.8.93",
              "nvidia-cufile-cu12==1.13.1.3", "nvidia-nvshmem-cu12==3.3.20"],
}


class OutOfReach(Exception):
    """The machine cannot make the environment; nothing is wrong with AnyACL."""


def run(command, log):
    with open(log, "a", encoding="utf-8") as out:
        return subprocess.run([str(c) for c in command], stdout=out, stderr=subprocess.STDOUT).returncode


def make(leg="2.7.1", root=ROOT / "build/torch"):
    """The interpreter of the environment, which is made when it is not there yet."""
    packages = COMMON + LEGS[leg]
    folder = Path(root) / leg
    python, stamp, log = folder / "bin/python", folder / "complete", Path(root) / f"{leg}.log"
    wanted = hashlib.sha256("\n".join([sys.version, *packages]).encode()).hexdigest()
    if stamp.exists() and stamp.read_text(encoding="utf-8") == wanted:
        return python
    folder.parent.mkdir(parents=True, exist_ok=True)
    log.unlink(missing_ok=True)
    if shutil.disk_usage(folder.parent).free < ROOM:
        raise OutOfReach(f"{folder} needs {ROOM >> 30} GB of disk while it is made")
    if run([sys.executable, "-m", "venv", "--clear", folder], log):
        raise OutOfReach(f"{sys.executable} cannot make a virtual environment (package python3-venv?), see {log}")
    pip = [python, "-m", "pip", "--disable-pip-version-check", "install", "--no-deps", "--no-compile"]
    if run([*pip, "--retries", "0", "--timeout", "20", COMMON[3]], log):  # a small one first: quick where there is no net
        raise OutOfReach(f"PyPI is out of reach, see {log}")
    print(f"installing torch {leg} and torch_npu below {folder}: about 2.5 GB, once", file=sys.stderr)
    if not any(run([*pip, *packages], log) == 0 for _ in range(ATTEMPTS)):
        raise SystemExit(f"installing failed, see {log}")
    stamp.write_text(wanted, encoding="utf-8")
    return python


def main():
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("--leg", choices=LEGS, default="2.7.1")
    parser.add_argument("--root", type=Path, default=ROOT / "build/torch")
    args = parser.parse_args()
    try:
        print(make(args.leg, args.root))
    except OutOfReach as problem:
        print(f"torch tests skipped: {problem}", file=sys.stderr)
        return SKIPPED
    return 0


if __name__ == "__main__":
    sys.exit(main())
