# SPDX-License-Identifier: Apache-2.0
# Copyright The AnyACL Authors
"""ELU and its gradient on device npu, beside the CPU's autograd:  anyacl run -- python elu.py"""
import torch
import torch_npu  # noqa: F401, brings the device
from torch.nn import functional as F

torch.manual_seed(1)
x = torch.randn(4, 6)
dy = torch.randn(4, 6)


def elu(device):
    leaf = x.to(device).requires_grad_()
    y = F.elu(leaf, alpha=0.7)
    y.backward(dy.to(device))
    return y.detach().cpu(), leaf.grad.cpu()


for name, npu, cpu in zip(("y", "dx"), elu("npu"), elu("cpu")):
    torch.testing.assert_close(npu, cpu)
    print(f"{name}: largest difference {(npu - cpu).abs().max().item():.1e}")
