# SPDX-License-Identifier: Apache-2.0
# Copyright The AnyACL Authors
"""Small networks in training: every normalisation, every optimizer, foreach on and off; losses against the CPU's."""
import torch
from torch import nn
from torch.nn import functional as F

from suite import same_losses, variants


class RmsNorm(nn.Module):
    """With the operator of torch_npu on its device, and its formula elsewhere."""
    def __init__(self, width):
        super().__init__()
        self.weight = nn.Parameter(torch.ones(width))

    def forward(self, x):
        if x.device.type == "npu":
            import torch_npu
            return torch_npu.npu_rms_norm(x, self.weight, 1e-6)[0]
        return x * torch.rsqrt(x.square().mean(-1, keepdim=True) + 1e-6) * self.weight


def mlp(norm):
    return nn.Sequential(nn.Linear(16, 32), norm, nn.ELU(), nn.Linear(32, 32), nn.ELU(), nn.Linear(32, 4))


NORMS = {
    "plain": nn.Identity,
    "layer_norm": lambda: nn.LayerNorm(32),
    "rms_norm": lambda: RmsNorm(32),
    "nn_rms_norm": lambda: nn.RMSNorm(32),
    "group_norm": lambda: nn.GroupNorm(4, 32),
}
OPTIMIZERS = {
    "sgd": lambda p: torch.optim.SGD(p, 0.05, foreach=False),
    "sgd_foreach": lambda p: torch.optim.SGD(p, 0.05, momentum=0.9, foreach=True),
    "adamw_foreach": lambda p: torch.optim.AdamW(p, 0.01, foreach=True),
    "adam_amsgrad": lambda p: torch.optim.Adam(p, 0.01, amsgrad=True),
    "adamw": lambda p: torch.optim.AdamW(p, 0.01, foreach=False),
    "adam": lambda p: torch.optim.Adam(p, 0.01),
}


def batch():
    x = torch.randn(8, 16)
    return x, torch.tanh(x[:, :4] + x[:, 4:8])


def loss(model, data):
    return F.mse_loss(model(data[0]), data[1])


def norm_with(norm, optimizer):
    same_losses(lambda: mlp(NORMS[norm]()), batch, loss, OPTIMIZERS[optimizer])


def sum_of_squares(optimizer):
    """No loss operator of its own, as the smallest program has it."""
    same_losses(lambda: mlp(nn.LayerNorm(32)), batch,
                lambda model, data: ((model(data[0]) - data[1]) ** 2).mean(), OPTIMIZERS[optimizer])


variants("mlp", norm_with, {f"{norm}_{optimizer}": (norm, optimizer) for norm in NORMS for optimizer in OPTIMIZERS
                            if norm == "layer_norm" or optimizer in ("sgd", "adamw_foreach")})
variants("sum_of_squares", sum_of_squares, {name: (name,) for name in OPTIMIZERS})
