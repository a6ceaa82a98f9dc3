# SPDX-License-Identifier: Apache-2.0
# Copyright The AnyACL Authors
"""Programs as people write them, in small: networks in training against the CPU, and what surrounds a training."""
import io
import math
import os
import runpy
import tempfile

import torch
from torch import nn
from torch.nn import functional as F

from suite import close, one_ulp_more, program, same_losses, train, variants

SGD = lambda p: torch.optim.SGD(p, 0.05, momentum=0.9)  # noqa: E731
ADAMW = lambda p: torch.optim.AdamW(p, 3e-3)  # noqa: E731
HALF = 2e-2  # relative, for 16-bit numbers


# --- ResNet-18 --------------------------------------------------------------------------------------------------------
class Basic(nn.Module):
    def __init__(self, ins, outs, stride):
        super().__init__()
        self.conv1 = nn.Conv2d(ins, outs, 3, stride, 1, bias=False)
        self.bn1 = nn.BatchNorm2d(outs)
        self.conv2 = nn.Conv2d(outs, outs, 3, 1, 1, bias=False)
        self.bn2 = nn.BatchNorm2d(outs)
        self.down = None
        if stride != 1 or ins != outs:
            self.down = nn.Sequential(nn.Conv2d(ins, outs, 1, stride, bias=False), nn.BatchNorm2d(outs))

    def forward(self, x):
        y = F.relu(self.bn1(self.conv1(x)), inplace=True)
        y = self.bn2(self.conv2(y))
        return F.relu(y + (self.down(x) if self.down else x), inplace=True)


class ResNet18(nn.Module):
    def __init__(self, width=8, classes=10):
        super().__init__()
        self.stem = nn.Sequential(nn.Conv2d(3, width, 7, 2, 3, bias=False), nn.BatchNorm2d(width), nn.ReLU(inplace=True),
                                  nn.MaxPool2d(3, 2, 1))
        widths = [width, width, 2 * width, 4 * width, 8 * width]
        self.stages = nn.Sequential(*[nn.Sequential(Basic(widths[i], widths[i + 1], 1 if i == 0 else 2),
                                                    Basic(widths[i + 1], widths[i + 1], 1)) for i in range(4)])
        self.pool = nn.AdaptiveAvgPool2d((1, 1))
        self.fc = nn.Linear(8 * width, classes)

    def forward(self, x):
        return self.fc(torch.flatten(self.pool(self.stages(self.stem(x))), 1))


def images():
    return torch.randn(4, 3, 48, 48), torch.randint(0, 10, (4,))


def classified(model, data):
    return F.cross_entropy(model(data[0]), data[1])


def resnet18(optimizer, options):
    same_losses(ResNet18, images, classified, optimizer, **options)


variants("resnet18", resnet18, {
    "sgd": (SGD, {}),
    "adamw": (ADAMW, {}),
    "amp_bf16": (SGD, {"autocast": torch.bfloat16, "tolerance": 5 * HALF, "steps": 6}),
})


@program()
def resnet18_evaluation():
    torch.manual_seed(3)
    model, (x, labels) = ResNet18(), images()
    model(x)  # running statistics
    model.eval()
    with torch.no_grad():
        wanted = model(x)
        got = model.npu()(x.npu())
    close(got, wanted, 1e-4, 1e-5)
    assert torch.equal(got.argmax(1).cpu(), wanted.argmax(1))
    assert (got.argmax(1) == labels.npu()).float().mean().item() == (wanted.argmax(1) == labels).float().mean().item()


# --- GPT --------------------------------------------------------------------------------------------------------------
class Attention(nn.Module):
    def __init__(self, width, heads, by_hand, dropout):
        super().__init__()
        self.heads, self.by_hand, self.dropout = heads, by_hand, dropout
        self.qkv, self.out = nn.Linear(width, 3 * width), nn.Linear(width, width)

    def forward(self, x):
        batch, length, width = x.shape
        q, k, v = [part.view(batch, length, self.heads, width // self.heads).transpose(1, 2)
                   for part in self.qkv(x).split(width, 2)]
        if self.by_hand:
            scores = q @ k.transpose(-2, -1) / math.sqrt(k.size(-1))
            mask = torch.tril(torch.ones(length, length, device=x.device)) == 0
            scores = F.softmax(scores.masked_fill(mask, float("-inf")), dim=-1)
            y = F.dropout(scores, self.dropout, self.training) @ v
        else:
            y = F.scaled_dot_product_attention(q, k, v, is_causal=True,
                                               dropout_p=self.dropout if self.training else 0.0)
        return self.out(y.transpose(1, 2).reshape(batch, length, width))


class Gpt(nn.Module):
    def __init__(self, by_hand, dropout=0.0, width=32, heads=4, layers=2, words=64, length=16):
        super().__init__()
        self.words, self.places = nn.Embedding(words, width), nn.Embedding(length, width)
        self.drop = nn.Dropout(dropout)
        self.blocks = nn.ModuleList(nn.ModuleList([
            nn.LayerNorm(width), Attention(width, heads, by_hand, dropout), nn.LayerNorm(width),
            nn.Sequential(nn.Linear(width, 4 * width), nn.GELU(), nn.Linear(4 * width, width), nn.Dropout(dropout))])
            for _ in range(layers))
        self.norm, self.head = nn.LayerNorm(width), nn.Linear(width, words, bias=False)
        self.head.weight = self.words.weight

    def forward(self, x):
        y = self.drop(self.words(x) + self.places(torch.arange(x.size(1), device=x.device)))
        for norm1, attention, norm2, feed in self.blocks:
            y = y + attention(norm1(y))
            y = y + feed(norm2(y))
        return self.head(self.norm(y))


def words():
    text = torch.randint(0, 64, (4, 17))
    return text[:, :-1], text[:, 1:]


def next_word(model, data):
    logits = model(data[0])
    return F.cross_entropy(logits.reshape(-1, logits.size(-1)), data[1].reshape(-1))


def gpt(by_hand, options):
    same_losses(lambda: Gpt(by_hand), words, next_word, ADAMW, **options)


BF16 = {"autocast": torch.bfloat16, "tolerance": HALF}
FP16 = {"autocast": torch.float16, "tolerance": HALF, "scaler": True}
variants("gpt", gpt, {
    "by_hand": (True, {}),
    "by_hand_clip": (True, {"clip": 0.5}),
    "by_hand_amp_bf16": (True, BF16),
    "sdpa": (False, {}),
    "sdpa_amp_bf16": (False, BF16),
    "sdpa_amp_fp16_scaler_clip": (False, {**FP16, "clip": 1.0}),
})


@program()
def gpt_dropout_learns():
    """Other masks than the CPU's: the losses only have to fall."""
    losses = train(lambda: Gpt(False, 0.1), words, next_word, ADAMW, "npu", steps=40)
    assert sum(losses[-4:]) < sum(losses[:4]) - 0.5, losses


@program()
def gpt_generates():
    torch.manual_seed(5)
    model = Gpt(True).eval()
    start = torch.randint(0, 64, (1, 4))

    def sample(device):
        text, net = start.to(device), model.to(device)
        with torch.no_grad():
            for _ in range(8):
                logits = net(text)[:, -1]
                best, _ = torch.topk(logits, 5)
                logits[logits < best[:, [-1]]] = -float("inf")
                probabilities = F.softmax(logits, dim=-1)
                assert torch.multinomial(probabilities, 1).shape == (1, 1)
                text = torch.cat([text, probabilities.argmax(-1, keepdim=True)], 1)
        return text.cpu()

    assert torch.equal(sample("npu"), sample("cpu"))


# --- Llama ------------------------------------------------------------------------------------------------------------
def rotate(x, cosine, sine):
    half = x.size(-1) // 2
    return x * cosine + torch.cat([-x[..., half:], x[..., :half]], -1) * sine


class LlamaBlock(nn.Module):
    def __init__(self, width=32, heads=4, groups=2, hidden=64):
        super().__init__()
        self.heads, self.groups, self.size = heads, groups, width // heads
        self.norm1, self.norm2 = nn.RMSNorm(width), nn.RMSNorm(width)
        self.q = nn.Linear(width, width, bias=False)
        self.kv = nn.Linear(width, 2 * groups * self.size, bias=False)
        self.out = nn.Linear(width, width, bias=False)
        self.gate, self.up, self.down = [nn.Linear(*sizes, bias=False)
                                         for sizes in ((width, hidden), (width, hidden), (hidden, width))]

    def forward(self, x, cosine, sine):
        batch, length, width = x.shape
        y = self.norm1(x)
        q = rotate(self.q(y).view(batch, length, self.heads, self.size).transpose(1, 2), cosine, sine)
        k, v = self.kv(y).view(batch, length, 2, self.groups, self.size).unbind(2)
        k = rotate(k.transpose(1, 2), cosine, sine).repeat_interleave(self.heads // self.groups, 1)
        v = v.transpose(1, 2).repeat_interleave(self.heads // self.groups, 1)
        y = F.scaled_dot_product_attention(q, k, v, is_causal=True)
        x = x + self.out(y.transpose(1, 2).reshape(batch, length, width))
        y = self.norm2(x)
        return x + self.down(F.silu(self.gate(y)) * self.up(y))


class Llama(nn.Module):
    def __init__(self, width=32, layers=2, vocabulary=64, size=8):
        super().__init__()
        self.words = nn.Embedding(vocabulary, width)
        self.blocks = nn.ModuleList(LlamaBlock(width) for _ in range(layers))
        self.norm, self.head = nn.RMSNorm(width), nn.Linear(width, vocabulary, bias=False)
        self.register_buffer("frequencies", 10000.0 ** (-torch.arange(0, size, 2) / size), persistent=False)

    def forward(self, x):
        angles = torch.outer(torch.arange(x.size(1), device=x.device).float(), self.frequencies.float())
        angles = torch.cat([angles, angles], -1)
        y = self.words(x)
        cosine, sine = angles.cos().to(y.dtype), angles.sin().to(y.dtype)
        for block in self.blocks:
            y = block(y, cosine, sine)
        return self.head(self.norm(y)).float()


def llama(dtype, optimizer, options):
    same_losses(lambda: Llama().to(dtype), words, next_word, optimizer, **options)


variants("llama", llama, {
    "f32": (torch.float32, ADAMW, {}),
    "bf16": (torch.bfloat16, ADAMW, {"tolerance": HALF}),
    "fp16_sgd": (torch.float16, lambda p: torch.optim.SGD(p, 0.05), {"tolerance": HALF}),
})


# --- diffusion --------------------------------------------------------------------------------------------------------
class Residual(nn.Module):
    def __init__(self, ins, outs, time=32):
        super().__init__()
        self.norm1, self.conv1 = nn.GroupNorm(4, ins), nn.Conv2d(ins, outs, 3, padding=1)
        self.time = nn.Linear(time, outs)
        self.norm2, self.conv2 = nn.GroupNorm(4, outs), nn.Conv2d(outs, outs, 3, padding=1)
        self.skip = nn.Conv2d(ins, outs, 1) if ins != outs else nn.Identity()

    def forward(self, x, t):
        y = self.conv1(F.silu(self.norm1(x))) + self.time(F.silu(t))[:, :, None, None]
        return self.skip(x) + self.conv2(F.silu(self.norm2(y)))


class UNet(nn.Module):
    def __init__(self, width=8):
        super().__init__()
        self.time = nn.Sequential(nn.Linear(16, 32), nn.SiLU(), nn.Linear(32, 32))
        self.first = nn.Conv2d(3, width, 3, padding=1)
        self.down1, self.down2 = Residual(width, width), Residual(width, 2 * width)
        self.shrink = nn.Conv2d(width, width, 3, 2, 1)
        self.norm, self.attention = nn.GroupNorm(4, 2 * width), nn.MultiheadAttention(2 * width, 2, batch_first=True)
        self.grow = nn.ConvTranspose2d(2 * width, width, 4, 2, 1)
        self.up = Residual(2 * width, width)
        self.last = nn.Conv2d(width, 3, 3, padding=1)

    def forward(self, x, t):
        frequencies = torch.exp(-math.log(1e4) * torch.arange(8, device=x.device) / 8)
        angles = t[:, None].float() * frequencies[None]
        t = self.time(torch.cat([angles.sin(), angles.cos()], -1))
        high = self.down1(self.first(x), t)
        low = self.down2(self.shrink(high), t)
        flat = self.norm(low).flatten(2).transpose(1, 2)
        low = low + self.attention(flat, flat, flat, need_weights=False)[0].transpose(1, 2).reshape(low.shape)
        wide = F.interpolate(self.grow(low), scale_factor=2, mode="nearest")
        y = self.up(torch.cat([F.avg_pool2d(wide, 2), high], 1), t)
        return self.last(y)


def noisy():
    return torch.randn(2, 3, 16, 16), torch.randint(0, 1000, (2,)), torch.randn(2, 3, 16, 16)


def denoised(model, data):
    clean, t, noise = data
    keep = torch.cos(t.float() / 1000 * math.pi / 2)[:, None, None, None]
    return F.mse_loss(model(keep * clean + torch.sqrt(1 - keep * keep) * noise, t), noise)


@program()
def diffusion_unet():
    same_losses(UNet, noisy, denoised, ADAMW)


# --- recurrent --------------------------------------------------------------------------------------------------------
class Recurrent(nn.Module):
    def __init__(self, kind, **options):
        super().__init__()
        self.words = nn.Embedding(64, 16, padding_idx=0)
        self.cells = kind(16, 16, batch_first=True, **options)
        self.head = nn.Linear(32 if options.get("bidirectional") else 16, 10)

    def forward(self, x):
        return self.head(self.cells(self.words(x))[0][:, -1])


def sentences():
    return torch.randint(0, 64, (4, 9)), torch.randint(0, 10, (4,))


def recurrent(kind, options):
    same_losses(lambda: Recurrent(kind, **options), sentences, classified, ADAMW)


variants("recurrent", recurrent, {
    "lstm": (nn.LSTM, {}),
    "lstm_two_layers_both_ways": (nn.LSTM, {"num_layers": 2, "bidirectional": True}),
    "gru": (nn.GRU, {}),
})


# --- around a training ------------------------------------------------------------------------------------------------
@program()
def checkpoint():
    """Saved in the middle on npu, loaded on npu and on the CPU, the rest of the losses is the same."""
    torch.manual_seed(1)
    data = [(torch.randn(8, 16), torch.randn(8, 4)) for _ in range(6)]
    fresh = lambda: nn.Sequential(nn.Linear(16, 32), nn.ELU(), nn.Linear(32, 4))  # noqa: E731

    def steps(model, optimizer, batches, device):
        losses = []
        for x, y in batches:
            optimizer.zero_grad()
            loss = F.mse_loss(model(x.to(device)), y.to(device))
            loss.backward()
            optimizer.step()
            losses.append(loss.item())
        return losses

    model = fresh().npu()
    optimizer = torch.optim.AdamW(model.parameters(), 0.01)
    steps(model, optimizer, data[:3], "npu")
    file = io.BytesIO()
    torch.save({"model": model.state_dict(), "optimizer": optimizer.state_dict()}, file)
    wanted = steps(model, optimizer, data[3:], "npu")
    for device in ("npu", "cpu"):
        file.seek(0)
        state = torch.load(file, map_location=device)
        model = fresh().to(device)
        model.load_state_dict(state["model"])
        optimizer = torch.optim.AdamW(model.parameters(), 0.01)
        optimizer.load_state_dict(state["optimizer"])
        got = steps(model, optimizer, data[3:], device)
        assert all(abs(a - b) < 1e-5 * abs(b) for a, b in zip(got, wanted)), (device, got, wanted)
    file.seek(0)
    assert torch.load(file)["model"]["0.weight"].device.type == "npu"


class Squares(torch.utils.data.Dataset):
    def __len__(self):
        return 64

    def __getitem__(self, index):
        return torch.full((5,), float(index)), index * index


@program()
def data_loader():
    torch.ones(1).npu()  # the workers are forked from a process that has used the device
    loader = torch.utils.data.DataLoader(Squares(), batch_size=8, num_workers=2, pin_memory=True)
    for _ in range(2):
        seen = []
        for x, y in loader:
            assert x.is_pinned() and y.is_pinned()
            x, y = x.to("npu", non_blocking=True), y.to("npu", non_blocking=True)
            assert torch.equal(x.cpu()[:, 0].long() ** 2, y.cpu())
            seen += y.cpu().tolist()
        assert seen == [index * index for index in range(64)]


@program()
def graph_capture_and_replay():
    x, weight = torch.arange(12.).view(3, 4), torch.full((4, 2), 0.5)
    still = x.npu()
    device_weight = weight.npu()
    stream = torch.npu.Stream()
    with torch.npu.stream(stream):
        F.relu(still @ device_weight - 3) * 2  # a first run outside
    torch.npu.synchronize()
    graph = torch.npu.NPUGraph()
    with torch.npu.graph(graph):
        y = F.relu(still @ device_weight - 3) * 2
    for factor in (1.0, -1.0, 3.0):
        still.copy_((x * factor).npu())
        graph.replay()
        torch.npu.synchronize()
        close(y, F.relu(x * factor @ weight - 3) * 2)


@program()
def graph_of_a_training_step():
    torch.manual_seed(1)
    model = nn.Linear(4, 1)
    data = torch.randn(8, 4)
    device_model = nn.Linear(4, 1)
    device_model.load_state_dict(model.state_dict())
    device_model.npu()
    optimizer = torch.optim.SGD(device_model.parameters(), 0.1)
    still = data.npu()

    def step():
        optimizer.zero_grad(set_to_none=True)
        loss = device_model(still).pow(2).mean()
        loss.backward()
        optimizer.step()
        return loss

    before = {name: value.clone() for name, value in device_model.state_dict().items()}
    stream = torch.npu.Stream()
    stream.wait_stream(torch.npu.current_stream())
    with torch.npu.stream(stream):
        step()
    torch.npu.current_stream().wait_stream(stream)
    graph = torch.npu.NPUGraph()
    optimizer.zero_grad(set_to_none=True)
    with torch.npu.graph(graph):
        loss = step()
    device_model.load_state_dict(before)
    reference = torch.optim.SGD(model.parameters(), 0.1)
    for _ in range(5):
        graph.replay()
        reference.zero_grad()
        wanted = model(data).pow(2).mean()
        wanted.backward()
        reference.step()
        torch.npu.synchronize()
        close(loss, wanted, 1e-5)


@program()
def autograd_checkpointing():
    from torch.utils.checkpoint import checkpoint as again
    torch.manual_seed(1)
    layer = nn.Sequential(nn.Linear(8, 8), nn.Tanh(), nn.Linear(8, 8))
    x = torch.randn(4, 8)
    gradients = []
    for device in ("cpu", "npu"):
        layer.to(device).zero_grad()
        again(layer, x.to(device).requires_grad_(), use_reentrant=False).square().sum().backward()
        gradients.append([p.grad.cpu().clone() for p in layer.parameters()])
    for a, b in zip(*gradients):
        close(b, a)


# --- utilities --------------------------------------------------------------------------------------------------------
@program()
def printing():
    for tensor in (torch.arange(12).view(3, 4), torch.randn(3, 4), torch.tensor(3.5), torch.tensor([True, False]),
                   torch.tensor([1e-8, 1e8, float("nan"), float("inf")]), torch.empty(0), torch.randn(2000),
                   torch.randn(3).half(), torch.randn(3).bfloat16(), torch.randn(40, 40)):
        shown = repr(tensor.npu())
        assert "device='npu:0'" in shown, shown
        numbers = repr(tensor)[len("tensor("):].split(", dtype")[0].rstrip(")")
        assert shown.replace(" ", "").replace("\n", "").startswith(
            "tensor(" + numbers.replace(" ", "").replace("\n", "")[:40]), f"{shown}\n{tensor!r}"
    f"{torch.tensor(2.5).npu():.3f} {torch.tensor(2).npu().item()}"


def same(function, *tensors):
    """One function of tensors, on both devices."""
    wanted = function(*tensors)
    got = function(*[tensor.npu() for tensor in tensors])
    for a, b in zip(*[result if isinstance(result, (tuple, list)) else (result,) for result in (got, wanted)]):
        assert a.device.type == "npu" and a.dtype == b.dtype and a.shape == b.shape, (a, b)
        close(a, b)


@program()
def indexing():
    x, rows = torch.arange(60.).view(3, 4, 5), torch.tensor([2, 0, 0])
    same(lambda x: x[1], x)
    same(lambda x: x[:, 1:3, ::2], x)
    same(lambda x: x[..., -1, None], x)
    same(lambda x, rows: x[rows], x, rows)
    same(lambda x, rows: x[:, rows, 1], x, rows)
    same(lambda x, rows: x[rows, rows], x, rows)
    same(lambda x: x[x > 20], x)
    same(lambda x: x[:, torch.tensor([True, False, True, False], device=x.device)], x)
    same(lambda x: torch.nonzero(x % 7 == 0), x)
    same(lambda x, rows: x.index_select(0, rows), x, rows)
    same(lambda x, rows: x.gather(0, rows.view(3, 1, 1).expand(3, 4, 5)), x, rows)
    same(lambda x: x.take_along_dim(x.argmax(1, keepdim=True), 1), x)
    same(lambda x: x.masked_select(x > 30), x)

    def assign(x, rows):
        x = x.clone()
        x[0, 1] = 7
        x[:, rows] += 1
        x[x > 50] = -1
        x[1:, ::2, 3] = torch.tensor([[9., 8.], [7., 6.]], device=x.device)
        x.index_fill_(2, rows, 5)
        x.index_add_(0, torch.tensor([0, 2], device=x.device), torch.ones(2, 4, 5, device=x.device))
        x.scatter_(1, rows.view(1, 3, 1).expand(3, 3, 5), 4.0)
        x.masked_fill_(x == 4, -2)
        return x

    same(assign, x, rows)


@program()
def shapes_and_reductions():
    torch.manual_seed(2)
    x = torch.randn(4, 6)
    for function in (lambda x: x.sum(), lambda x: x.mean(0), lambda x: x.max(1), lambda x: x.min(0), lambda x: x.argmax(),
                     lambda x: x.std(1), lambda x: x.var(0, keepdim=True), lambda x: x.norm(), lambda x: x.norm(dim=1),
                     lambda x: x.prod(1), lambda x: x.cumsum(0), lambda x: x.sort(1), lambda x: x.topk(3),
                     lambda x: x.any(), lambda x: (x > -9).all(1), lambda x: torch.cat([x, x], 1),
                     lambda x: torch.stack([x, x]), lambda x: x.t().contiguous(), lambda x: x.repeat(2, 3),
                     lambda x: x.flip(1), lambda x: x.roll(1, 0), lambda x: F.pad(x, (1, 2, 0, 1)), lambda x: x.tril(),
                     lambda x: x.triu(1), lambda x: torch.where(x > 0, x, -x), lambda x: x.clamp(-1, 1),
                     lambda x: x.chunk(2), lambda x: x.unfold(1, 2, 2), lambda x: x.expand(2, 4, 6).reshape(8, 6),
                     lambda x: torch.einsum("ij,kj->ik", x, x), lambda x: x @ x.t(), lambda x: x.softmax(1),
                     lambda x: x.logsumexp(1), lambda x: x.median(), lambda x: x.isnan().any(), lambda x: x.isfinite(),
                     lambda x: torch.unique(x.round()), lambda x: x.unique(return_inverse=True), lambda x: x.diff(),
                     lambda x: x.round().long().bincount(minlength=3) if x.min() >= 0 else x,
                     lambda x: x.abs().sqrt(), lambda x: x.exp().log1p(), lambda x: x.pow(3), lambda x: 2 ** x,
                     lambda x: x.long() // 2, lambda x: x % 0.7, lambda x: x.sin() + x.cos(), lambda x: x.tanh(),
                     lambda x: x.sigmoid(), lambda x: x.erf(), lambda x: torch.atan2(x, x.flip(0))):
        same(function, x)


@program()
def random_numbers():
    torch.manual_seed(7)
    count = 100_000
    uniform = torch.rand(count, device="npu")
    assert 0 <= uniform.min() and uniform.max() < 1 and abs(uniform.mean().item() - 0.5) < 5e-3
    assert abs(uniform.var().item() - 1 / 12) < 2e-3
    normal = torch.randn(count, device="npu")
    assert abs(normal.mean().item()) < 0.02 and abs(normal.std().item() - 1) < 0.02
    within = (normal.abs() < 1).float().mean().item()
    assert abs(within - 0.6827) < 0.01, within
    integers = torch.randint(0, 10, (count,), device="npu")
    counts = torch.bincount(integers.cpu(), minlength=10)
    assert counts.numel() == 10 and (counts - count / 10).abs().max() < 600, counts
    order = torch.randperm(1000, device="npu").cpu()
    assert torch.equal(order.sort()[0], torch.arange(1000)) and not torch.equal(order, torch.arange(1000))
    coins = torch.bernoulli(torch.full((count,), 0.3, device="npu"))
    assert abs(coins.mean().item() - 0.3) < 0.01
    dropped = F.dropout(torch.ones(count, device="npu"), 0.25)
    assert abs((dropped == 0).float().mean().item() - 0.25) < 0.01
    assert torch.allclose(dropped.cpu()[dropped.cpu() != 0], torch.tensor(1 / 0.75))
    chosen = torch.multinomial(torch.tensor([1., 0., 3.], device="npu"), count, replacement=True).cpu()
    shares = torch.bincount(chosen, minlength=3) / count
    assert shares[1] == 0 and abs(shares[2].item() - 0.75) < 0.01, shares
    torch.manual_seed(11)
    first = torch.rand(100, device="npu").cpu()
    state = torch.npu.get_rng_state()
    second = torch.rand(100, device="npu").cpu()
    torch.npu.set_rng_state(state)
    assert torch.equal(torch.rand(100, device="npu").cpu(), second)
    torch.manual_seed(11)
    assert torch.equal(torch.rand(100, device="npu").cpu(), first) and not torch.equal(first, second)


@program()
def dropout_gradient_uses_the_mask():
    x = torch.ones(1000).npu().requires_grad_()
    y = F.dropout(x, 0.5)
    y.sum().backward()
    assert torch.equal(x.grad.cpu(), y.detach().cpu())


@program()
def grad_scaler_skips_infinities():
    weight = torch.ones(4).npu().requires_grad_()
    optimizer = torch.optim.SGD([weight], 1.0)
    scaler = torch.amp.GradScaler("npu", init_scale=2.0 ** 10)
    for factor, moved in ((float("inf"), False), (1.0, True)):
        optimizer.zero_grad()
        before, scale = weight.detach().cpu(), scaler.get_scale()
        scaler.scale((weight * factor).sum()).backward()
        scaler.step(optimizer)
        scaler.update()
        assert torch.equal(weight.detach().cpu(), before) != moved
        assert (scaler.get_scale() == scale) == moved


@program()
def nan_checks():
    x = torch.tensor([1., float("nan"), float("inf"), -2.])
    for function in (torch.isnan, torch.isinf, torch.isfinite, lambda x: torch.nan_to_num(x, 0.0, 9.0, -9.0)):
        same(function, x)
    with torch.autograd.detect_anomaly():
        try:
            y = torch.zeros(2).npu().requires_grad_()
            (torch.sqrt(y) * 0).sum().backward()
        except RuntimeError as problem:
            assert "nan" in str(problem), problem
        else:
            raise AssertionError("a NaN gradient was not found")


@program()
def losses():
    torch.manual_seed(4)
    x, y, labels = torch.randn(5, 7), torch.randn(5, 7), torch.randint(0, 7, (5,))
    weights = torch.rand(7)
    for function in (lambda x, y, labels, w: F.mse_loss(x, y), lambda x, y, labels, w: F.l1_loss(x, y, reduction="sum"),
                     lambda x, y, labels, w: F.smooth_l1_loss(x, y), lambda x, y, labels, w: F.huber_loss(x, y),
                     lambda x, y, labels, w: F.cross_entropy(x, labels, w, label_smoothing=0.1),
                     lambda x, y, labels, w: F.nll_loss(x.log_softmax(1), labels, reduction="none"),
                     lambda x, y, labels, w: F.binary_cross_entropy_with_logits(x, y.sigmoid()),
                     lambda x, y, labels, w: F.binary_cross_entropy(x.sigmoid(), y.sigmoid()),
                     lambda x, y, labels, w: F.kl_div(x.log_softmax(1), y.softmax(1), reduction="batchmean"),
                     lambda x, y, labels, w: F.cosine_similarity(x, y),
                     lambda x, y, labels, w: F.soft_margin_loss(x, y.sign())):
        results = []
        for device in ("cpu", "npu"):
            leaf = x.clone().to(device).requires_grad_()
            loss = function(leaf, y.to(device), labels.to(device), weights.to(device))
            loss.sum().backward()
            results.append((loss.detach(), leaf.grad))
        for a, b in zip(*results):
            close(b, a, 2e-5, 1e-6)


def elu(x):
    return F.elu(x, 0.7)


@program()
def activations():
    torch.manual_seed(4)
    x = torch.randn(5, 8)
    for function in (F.relu, elu, F.silu, F.gelu, lambda x: F.gelu(x, approximate="tanh"), F.leaky_relu, F.softplus,
                     F.hardswish, F.hardsigmoid, F.mish, F.selu, F.logsigmoid, torch.tanh, torch.sigmoid, F.softsign,
                     F.relu6, F.hardtanh, F.tanhshrink, F.glu, lambda x: F.softmax(x, 1), lambda x: F.log_softmax(x, 0),
                     lambda x: F.layer_norm(x, (8,)), lambda x: F.rms_norm(x, (8,)), lambda x: F.normalize(x, dim=1)):
        results = []
        for device in ("cpu", "npu"):
            leaf = x.clone().to(device).requires_grad_()
            y = function(leaf)
            (y * torch.arange(y.numel(), device=device).view(y.shape).float()).sum().backward()
            results.append((y.detach(), leaf.grad))
        for a, b in zip(*results):
            close(b, a, 2e-5, 2e-5)


@program()
def save_to_a_file_and_load_as_numpy():
    with tempfile.TemporaryDirectory() as folder:
        path = os.path.join(folder, "tensors.pt")
        tensors = {"a": torch.arange(6.).view(2, 3).npu()[:, 1:], "b": torch.tensor(3).npu()}
        torch.save(tensors, path)
        loaded = torch.load(path, map_location="cpu")
        for name, tensor in tensors.items():
            assert torch.equal(loaded[name], tensor.cpu())
    assert tensors["a"].cpu().numpy().tolist() == [[1, 2], [4, 5]] and tensors["a"].tolist() == [[1, 2], [4, 5]]
    assert torch.equal(one_ulp_more(torch.tensor([2])), torch.tensor([2]))


# --- the examples -----------------------------------------------------------------------------------------------------
def example(name):
    runpy.run_path(os.path.join(os.path.dirname(__file__), "../../examples/pytorch", name + ".py"))


variants("example", example, {name: (name,) for name in ("elu", "group_norm", "npu_rms_norm")})
