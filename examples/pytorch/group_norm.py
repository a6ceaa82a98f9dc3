# SPDX-License-Identifier: Apache-2.0
# Copyright The AnyACL Authors
"""Group normalisation and its gradients on device npu, beside the CPU's autograd:  anyacl run -- python group_norm.py"""
import torch
import torch_npu  # noqa: F401, brings the device
from torch.nn import functional as F

torch.manual_seed(1)
inputs = torch.randn(2, 8, 5, 5), torch.rand(8), torch.rand(8)  # x, weight, bias
dy = torch.randn(2, 8, 5, 5)


def group_norm(device):
    x, weight, bias = [tensor.to(device).requires_grad_() for tensor in inputs]
    y = F.group_norm(x, 4, weight, bias)
    y.backward(dy.to(device))
    return [tensor.detach().cpu() for tensor in (y, x.grad, weight.grad, bias.grad)]


for name, npu, cpu in zip(("y", "dx", "dweight", "dbias"), group_norm("npu"), group_norm("cpu")):
    torch.testing.assert_close(npu, cpu, rtol=1e-5, atol=1e-5)
    print(f"{name}: largest difference {(npu - cpu).abs().max().item():.1e}")
