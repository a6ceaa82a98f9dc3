#!/usr/bin/env python3
# SPDX-License-Identifier: Apache-2.0
# Copyright The AnyACL Authors
"""Runs PyTorch programs, with the unmodified torch_npu of PyPI, on an installed AnyACL:

    run.py [--prefix dist] [--leg 2.7.1] [--python FILE] [--match REGEX] [--jobs N] [--verbose] [basics mlp models distributed]

The last line is "N passed, N failed". Status 77 where PyPI is out of reach and no environment was made before.
"""
import argparse
import os
import subprocess
import sys
from pathlib import Path

import environment

HERE = Path(__file__).resolve().parent
FILES = ["basics", "mlp", "models", "distributed"]


def prefix_environment(prefix):
    """What set_env.sh of the prefix sets, on top of an environment without other installations."""
    prefix = Path(prefix).resolve()
    if not (prefix / "lib64/libanyacl.so").exists():
        raise SystemExit(f"no AnyACL in {prefix}; ./check installs one into dist/")
    env = {k: v for k, v in os.environ.items() if not k.startswith("ASCEND_") and k != "PYTHONPATH"}
    env.update(ASCEND_HOME_PATH=str(prefix), ASCEND_OPP_PATH=str(prefix / "opp"), ASCEND_TOOLKIT_HOME=str(prefix),
               LD_LIBRARY_PATH=f"{prefix}/lib64", ANYACL_BACKEND="cpu",
               PYTHONPYCACHEPREFIX=str(environment.ROOT / "build/torch/pycache"),
               OMP_NUM_THREADS=os.environ.get("OMP_NUM_THREADS", "1"))
    return env


def main():
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("--prefix", type=Path, default=environment.ROOT / "dist")
    parser.add_argument("--leg", choices=environment.LEGS, default="2.7.1")
    parser.add_argument("--python", type=Path, help="an interpreter that has torch and torch_npu already")
    args, rest = parser.parse_known_args()
    env = prefix_environment(args.prefix)
    try:
        python = args.python or environment.make(args.leg)
    except environment.OutOfReach as problem:
        print(f"torch tests skipped: {problem}")
        return environment.SKIPPED
    if not any(name in rest for name in FILES):
        rest += FILES
    return subprocess.run([str(python), str(HERE / "suite.py"), *rest], env=env).returncode


if __name__ == "__main__":
    sys.exit(main())
