# SPDX-License-Identifier: Apache-2.0
# Copyright The AnyACL Authors
"""torch_npu.npu_rms_norm and its gradients, beside the CPU's autograd:  anyacl run -- python npu_rms_norm.py"""
import torch
import torch_npu

torch.manual_seed(1)
x, gamma, dy = torch.randn(6, 32), torch.rand(32), torch.randn(6, 32)


def on_the_device():
    a, g = x.npu().requires_grad_(), gamma.npu().requires_grad_()
    y, rstd = torch_npu.npu_rms_norm(a, g, 1e-6)
    y.backward(dy.npu())
    return [tensor.detach().cpu() for tensor in (y, rstd, a.grad, g.grad)]


def on_the_cpu():
    a, g = x.clone().requires_grad_(), gamma.clone().requires_grad_()
    rstd = torch.rsqrt(a.square().mean(-1, keepdim=True) + 1e-6)
    y = a * rstd * g
    y.backward(dy)
    return [tensor.detach() for tensor in (y, rstd, a.grad, g.grad)]


for name, npu, cpu in zip(("y", "rstd", "dx", "dgamma"), on_the_device(), on_the_cpu()):
    torch.testing.assert_close(npu, cpu, rtol=1e-5, atol=1e-5)
    print(f"{name}: largest difference {(npu - cpu).abs().max().item():.1e}")
