#!/usr/bin/env python3
# SPDX-License-Identifier: Apache-2.0
# Copyright The AnyACL Authors
"""PyTorch and AnyACL in one process on one GPU, in turn, on the same memory: torch_beside.py FOLDER_OF_LIBANYACL.

Status 77 (skipped) where there is no PyTorch or no GPU.
"""
import ctypes
import os
import sys

os.environ["ANYACL_BACKEND"] = "cuda"
try:
    import torch
except ImportError:
    sys.exit(77)
if not torch.cuda.is_available():
    sys.exit(77)

acl = ctypes.CDLL(os.path.join(sys.argv[1], "libanyacl.so"))
acl.aclGetRecentErrMsg.restype = ctypes.c_char_p
for name in ("aclCreateTensor", "aclCreateScalar"):
    getattr(acl, name).restype = ctypes.c_void_p


def ok(status, what):
    if status != 0:
        sys.exit(f"{what} gave {status}: {acl.aclGetRecentErrMsg()}")


def tensor(t):
    dims = (ctypes.c_int64 * t.dim())(*t.shape)
    strides = (ctypes.c_int64 * t.dim())(*t.stride())
    return ctypes.c_void_p(acl.aclCreateTensor(dims, ctypes.c_uint64(t.dim()), 0, strides, ctypes.c_int64(0), 2, dims,
                                               ctypes.c_uint64(t.dim()), ctypes.c_void_p(t.data_ptr())))


def elu_backward(dy, x, stream):
    one = ctypes.c_float(1)
    scalar = ctypes.c_void_p(acl.aclCreateScalar(ctypes.byref(one), 0))
    dx = torch.empty_like(dy)
    torch.cuda.synchronize()
    size, executor = ctypes.c_uint64(), ctypes.c_void_p()
    ok(acl.aclnnEluBackwardGetWorkspaceSize(tensor(dy), scalar, scalar, scalar, ctypes.c_bool(False), tensor(x), tensor(dx),
                                            ctypes.byref(size), ctypes.byref(executor)), "phase 1")
    ok(acl.aclnnEluBackward(None, size, executor, stream), "phase 2")
    ok(acl.aclrtSynchronizeStream(stream), "synchronise")
    return dx


ok(acl.aclInit(None), "aclInit")
ok(acl.aclrtSetDevice(0), "aclrtSetDevice")
stream = ctypes.c_void_p()
ok(acl.aclrtCreateStream(ctypes.byref(stream)), "aclrtCreateStream")
for turn in range(20):
    x = torch.randn(1000, 333, device="cuda") + turn
    dy = torch.randn_like(x)
    wanted = torch.ops.aten.elu_backward(dy, 1.0, 1.0, 1.0, False, x)
    got = elu_backward(dy, x, stream)
    torch.testing.assert_close(got, wanted, rtol=1e-6, atol=1e-6)
    product = (got @ got.T).sum().item()  # PyTorch goes on with our result
    assert product == product
print("20 turns of PyTorch and AnyACL agree")
