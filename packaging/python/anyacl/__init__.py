# SPDX-License-Identifier: Apache-2.0
# Copyright The AnyACL Authors
"""AnyACL inside a Python environment: AscendCL and aclnn operators on any machine.

    import anyacl
    anyacl.activate()      # before torch, torch_npu or another client of the toolkit is imported
    import torch, torch_npu

For programs that cannot be changed, and for shells:  anyacl run -- python train.py
"""
import ctypes
import os
import sys
from pathlib import Path

__all__ = ["activate", "prefix"]
__version__ = "@VERSION@"

_loaded = []


def prefix():
    """The installation in this package: include/, lib64/, set_env.sh and what else a toolkit has."""
    return Path(__file__).resolve().parent / "prefix"


def _prepend(name, folder):
    parts = [part for part in os.environ.get(name, "").split(":") if part and part != str(folder)]
    os.environ[name] = ":".join([str(folder), *parts])


def activate():
    """Makes this process, and those that it starts, use AnyACL for the toolkit's libraries. Returns the prefix.

    The loader of a running process does not look at LD_LIBRARY_PATH any more, so the libraries are opened here, by their
    paths: whoever asks for libascendcl.so later gets the one that is open.
    """
    root = prefix()
    if _loaded:
        return root
    if "torch_npu" in sys.modules:
        raise RuntimeError("anyacl.activate() must be called before torch_npu is imported")
    _prepend("PATH", root / "bin")
    _prepend("LD_LIBRARY_PATH", root / "lib64")
    os.environ.update(ASCEND_HOME_PATH=str(root), ASCEND_TOOLKIT_HOME=str(root), ASCEND_OPP_PATH=str(root / "opp"),
                      ASCEND_AICPU_PATH=str(root), TOOLCHAIN_HOME=str(root / "toolkit"))
    libraries = sorted((root / "lib64").glob("lib*.so"), key=lambda path: (path.name != "libanyacl.so", path.name))
    for library in libraries:
        if library.name != "libanyacl_cuda.so":  # libanyacl.so opens it where there is a GPU
            _loaded.append(ctypes.CDLL(str(library)))
    return root


def main():
    """The console script: the command of the installation."""
    tool = prefix() / "bin/anyacl"
    if not os.access(tool, os.X_OK):  # not every installer keeps the mark
        tool.chmod(0o755)
    os.execv(tool, [str(tool), *sys.argv[1:]])
