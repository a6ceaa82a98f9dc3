# SPDX-License-Identifier: Apache-2.0
# Copyright The AnyACL Authors
"""Rows of bench/peers_cpu.py for the families: each one operator, the tensors it works on, and PyTorch's own words for it."""
import math

import torch
import torch.nn.functional as F

aten = torch.ops.aten
ALL = (torch.float32, torch.bfloat16, torch.int64)
FLOATS = (torch.float32, torch.bfloat16)


class Row:
    """make(dtype) gives the inputs; ours(inputs, outputs) AnyACL's operator and arguments; theirs(inputs, outputs) the results
    of PyTorch, written into the outputs where it can (outputs may be None)."""

    def __init__(self, group, name, text, dtypes, make, ours, theirs):
        self.group, self.name, self.text, self.dtypes = group, name, text, dtypes
        self.make, self.ours, self.theirs = make, ours, theirs


class Case:
    """A row in one dtype, in the words of peers_cpu.py."""

    def __init__(self, row, dtype, copy, empty):
        self.row, self.empty = row, empty
        self.inputs = {str(at): copy(tensor) for at, tensor in enumerate(row.make(dtype))}

    def tensors(self):
        return list(self.inputs.values())

    def results(self, tensors, out=None):
        results = self.row.theirs(tensors, out)
        return list(results) if isinstance(results, (tuple, list)) else [results]

    def outputs(self):
        return [self.empty(t.shape, t.dtype) for t in self.results(self.tensors())]

    def call(self, out):
        return self.row.ours(self.tensors(), out)

    def expected(self):
        return self.results([t.float() if t.is_floating_point() else t for t in self.tensors()])

    def torch(self, out):
        tensors, given = self.tensors(), out if len(out) > 1 else out[0]
        yield lambda: self.results(tensors, given)
        yield lambda: self.results(tensors)

    def onednn(self, peer, out):
        return None


def rand(shape, dtype, low=-2, high=2):
    if dtype.is_floating_point:
        return torch.empty(shape).uniform_(low, high).to(dtype)
    return torch.randint(-1000, 1000, shape, dtype=dtype)


# --- the floor under every model: 20 rows in three sizes --------------------------------------------------------------
SIZES = {"large": (4096, 4096), "cached": (128, 512), "tiny": (4, 16)}
SCALAR = 1


def plain(count):
    return lambda shape: lambda dtype: [rand(shape, dtype) for _ in range(count)]


def beside_row(shape):
    return lambda dtype: [rand(shape, dtype), rand(shape[1:], dtype)]


def beside_column(shape):
    return lambda dtype: [rand(shape, dtype), rand((shape[0], 1), dtype)]


def turned(shape):
    return lambda dtype: [rand(shape, dtype), rand(shape[::-1], dtype).t()]


def beside_places(shape):
    return lambda dtype: [rand(shape, dtype), torch.randint(0, shape[0], (shape[0],))]


def unary(name, function):
    return (name, FLOATS, plain(1), lambda t, out: (f"aclnn{name}", *t, *out), lambda t, out: function(*t, out=out))


FLOOR = [
    ("Add", ALL, plain(2), lambda t, out: ("aclnnAdd", *t, SCALAR, *out), lambda t, out: torch.add(*t, out=out)),
    ("Add row", ALL, beside_row, lambda t, out: ("aclnnAdd", *t, SCALAR, *out), lambda t, out: torch.add(*t, out=out)),
    ("Add column", ALL, beside_column, lambda t, out: ("aclnnAdd", *t, SCALAR, *out), lambda t, out: torch.add(*t, out=out)),
    ("Add transposed", ALL, turned, lambda t, out: ("aclnnAdd", *t, SCALAR, *out), lambda t, out: torch.add(*t, out=out)),
    ("Mul", ALL, plain(2), lambda t, out: ("aclnnMul", *t, *out), lambda t, out: torch.mul(*t, out=out)),
    ("Maximum", ALL, plain(2), lambda t, out: ("aclnnMaximum", *t, *out), lambda t, out: torch.maximum(*t, out=out)),
    ("GtTensor", ALL, plain(2), lambda t, out: ("aclnnGtTensor", *t, *out), lambda t, out: torch.gt(*t, out=out)),
    unary("Exp", torch.exp),
    unary("Sigmoid", torch.sigmoid),
    unary("Tanh", torch.tanh),
    ("Sqrt", FLOATS, lambda shape: lambda dtype: [rand(shape, dtype, 0.1)], lambda t, out: ("aclnnSqrt", *t, *out),
     lambda t, out: torch.sqrt(*t, out=out)),
    ("Relu", FLOATS, plain(1), lambda t, out: ("aclnnRelu", *t, *out), lambda t, out: torch.clamp_min(*t, 0, out=out)),
    ("Copy transposed", ALL, lambda shape: lambda dtype: [rand(shape, dtype).t()],
     lambda t, out: ("aclnnPermute", t[0].t(), [1, 0], *out),
     lambda t, out: t[0].contiguous() if out is None else out.copy_(t[0])),
    ("Cast to FLOAT", (torch.bfloat16, torch.int64), plain(1), lambda t, out: ("aclnnCast", *t, torch.float32, *out),
     lambda t, out: t[0].float() if out is None else out.copy_(t[0])),
    ("Cat", ALL, plain(2), lambda t, out: ("aclnnCat", t, 0, *out), lambda t, out: torch.cat(t, 0, out=out)),
    ("IndexSelect", ALL, beside_places, lambda t, out: ("aclnnIndexSelect", t[0], 0, t[1], *out),
     lambda t, out: torch.index_select(t[0], 0, t[1], out=out)),
    ("ReduceSum rows", ALL, plain(1), lambda t, out: ("aclnnReduceSum", *t, [1], False, t[0].dtype, *out),
     lambda t, out: torch.sum(*t, 1, out=out)),
    ("ReduceSum columns", ALL, plain(1), lambda t, out: ("aclnnReduceSum", *t, [0], False, t[0].dtype, *out),
     lambda t, out: torch.sum(*t, 0, out=out)),
    ("MaxDim", ALL, plain(1), lambda t, out: ("aclnnMaxDim", *t, 1, False, *out),
     lambda t, out: torch.max(*t, 1, **({} if out is None else {"out": tuple(out)}))),
    ("Cumsum", ALL, plain(1), lambda t, out: ("aclnnCumsum", *t, 1, t[0].dtype, *out),
     lambda t, out: torch.cumsum(*t, 1, out=out)),
]


def floor_rows():
    for size, shape in SIZES.items():
        for name, dtypes, make, ours, theirs in FLOOR:
            yield Row(f"floor {size}", name, "x".join(map(str, shape)), dtypes, make(shape), ours, theirs)


# --- norms, soft-max, activations on shapes of transformers and of vision ---------------------------------------------
TOKENS = [(4096, 4096), (16384, 1024)]
PLANES = [(32, 64, 56, 56), (8, 320, 64, 64)]


def layer_norm(shape):
    width = shape[-1:]

    def make(dtype):
        return [rand(shape, dtype), rand(width, dtype, 0.5, 1.5), rand(width, dtype)]

    def backward(dtype):
        dy, (x, weight, bias) = rand(shape, dtype), make(dtype)
        mean = x.float().mean(-1, keepdim=True)
        rstd = (x.float().var(-1, correction=0, keepdim=True) + 1e-5).rsqrt()
        return [dy, x, mean, rstd, weight, bias]

    def back(t, out):
        mean, rstd = (v.to(t[1].dtype) for v in t[2:4])
        return aten.native_layer_norm_backward(t[0], t[1], list(width), mean, rstd, t[4], t[5], [True, True, True])

    yield Row("norms", "LayerNorm", shape, FLOATS, make,
              lambda t, out: ("aclnnLayerNorm", t[0], list(width), t[1], t[2], 1e-5, *out, None, None),
              lambda t, out: F.layer_norm(t[0], width, t[1], t[2], 1e-5))
    yield Row("norms", "LayerNormBackward", shape, FLOATS, backward,
              lambda t, out: ("aclnnLayerNormBackward", t[0], t[1], list(width), *t[2:], [True, True, True], *out), back)


def rms_norm(shape):
    yield Row("norms", "RmsNorm", shape, FLOATS, lambda dtype: [rand(shape, dtype), rand(shape[-1:], dtype)],
              lambda t, out: ("aclnnRmsNorm", *t, 1e-6, out[0], out[1]),
              lambda t, out: [F.rms_norm(t[0], shape[-1:], t[1], 1e-6),
                              (t[0].float().square().mean(-1, keepdim=True) + 1e-6).rsqrt()] if out is None else
              [F.rms_norm(t[0], shape[-1:], t[1], 1e-6), out[1]])


def group_norm(shape, groups=32):
    n, c, area = shape[0], shape[1], math.prod(shape[2:])
    yield Row("norms", "GroupNorm", shape, FLOATS, lambda dtype: [rand(shape, dtype), rand((c,), dtype), rand((c,), dtype)],
              lambda t, out: ("aclnnGroupNorm", *t, n, c, area, groups, 1e-5, *out),
              lambda t, out: aten.native_group_norm(t[0], t[1], t[2], n, c, area, groups, 1e-5))


def batch_norm(shape):
    c = shape[1]

    def make(dtype):
        return [rand(shape, dtype), *(rand((c,), torch.float32, 0.5, 1.5) for _ in range(4))]

    def backward(dtype):
        x = rand(shape, dtype)
        mean, rstd = x.float().mean((0, 2, 3)), (x.float().var((0, 2, 3), correction=0) + 1e-5).rsqrt()
        return [rand(shape, dtype), x, *(rand((c,), torch.float32, 0.5, 1.5) for _ in range(3)), mean, rstd]

    yield Row("norms", "BatchNorm", shape, FLOATS, make,
              lambda t, out: ("aclnnBatchNorm", *t, True, 0.1, 1e-5, *out),
              lambda t, out: aten.native_batch_norm(*t, True, 0.1, 1e-5))
    yield Row("norms", "BatchNormBackward", shape, FLOATS, backward,
              lambda t, out: ("aclnnBatchNormBackward", *t, True, 1e-5, [True, True, True], *out),
              lambda t, out: aten.native_batch_norm_backward(*t, True, 1e-5, [True, True, True]))


def simple(name, shape, ours, theirs, count=1):
    return Row("norms", name, shape, FLOATS, plain(count)(shape), ours, theirs)


def norm_rows():
    for shape in TOKENS:
        yield from layer_norm(shape)
        yield from rms_norm(shape)
        yield simple("Softmax", shape, lambda t, out: ("aclnnSoftmax", *t, -1, *out),
                     lambda t, out: torch.softmax(*t, -1) if out is None else aten._softmax.out(*t, -1, False, out=out))
        yield simple("SoftmaxBackward", shape, lambda t, out: ("aclnnSoftmaxBackward", *t, -1, *out),
                     lambda t, out: aten._softmax_backward_data(*t, -1, t[0].dtype), 2)
        yield simple("Gelu", shape, lambda t, out: ("aclnnGelu", *t, *out), lambda t, out: F.gelu(*t, approximate="tanh"))
        yield simple("GeluBackward", shape, lambda t, out: ("aclnnGeluBackward", *t, *out),
                     lambda t, out: aten.gelu_backward(*t, approximate="tanh"), 2)
        yield simple("Silu", shape, lambda t, out: ("aclnnSilu", *t, *out), lambda t, out: F.silu(*t))
        yield simple("SiluBackward", shape, lambda t, out: ("aclnnSiluBackward", *t, *out),
                     lambda t, out: aten.silu_backward(*t), 2)
        yield simple("SwiGlu", shape, lambda t, out: ("aclnnSwiGlu", *t, -1, *out),
                     lambda t, out: F.silu(t[0].chunk(2, -1)[0]) * t[0].chunk(2, -1)[1])
    for shape in PLANES:
        yield from group_norm(shape)
        yield from batch_norm(shape)


# --- training: products, convolutions, attention, losses --------------------------------------------------------------
def product(name, a, b, theirs, text):
    return Row("training", name, text, FLOATS, lambda dtype: [rand(a, dtype), rand(b, dtype)],
               lambda t, out: (f"aclnn{name.split()[0]}", t[0], t[1].mT if "turned" in name else t[1], *out, 0),
               lambda t, out: theirs(t[0], t[1].mT if "turned" in name else t[1], out=out))


def convolution(x, w, stride, padding):
    pair = lambda value: [value, value]  # noqa: E731
    text = f"{'x'.join(map(str, x))} * {'x'.join(map(str, w))} /{stride}"

    def backward(dtype):
        x_, w_ = rand(x, dtype), rand(w, dtype, -0.1, 0.1)
        return [rand(F.conv2d(x_[:1], w_, None, stride, padding).shape[1:], dtype).expand(x[0], -1, -1, -1).contiguous(), x_, w_]

    mask = [True, True, False]
    yield Row("training", "Convolution", text, FLOATS, lambda dtype: [rand(x, dtype), rand(w, dtype, -0.1, 0.1)],
              lambda t, out: ("aclnnConvolution", *map(planes, t), None, pair(stride), pair(padding), [1, 1], False, [0, 0], 1,
                              planes(out[0]), 0),
              lambda t, out: F.conv2d(t[0], t[1], None, stride, padding))
    yield Row("training", "ConvolutionBackward", text, FLOATS, backward,
              lambda t, out: ("aclnnConvolutionBackward", *map(planes, t), None, pair(stride), pair(padding), [1, 1], False,
                              [0, 0], 1, mask, 0, *map(planes, out), None),
              lambda t, out: aten.convolution_backward(*t, None, pair(stride), pair(padding), [1, 1], False, [0, 0], 1,
                                                       mask)[:2])


def planes(tensor):
    """Tells AnyACL that this is NCHW and not just any tensor (ND)."""
    tensor.format = 0
    return tensor


def pooling(shape):
    yield Row("training", "MaxPool2dWithIndices", shape, (torch.float32,), lambda dtype: [rand(shape, dtype)],
              lambda t, out: ("aclnnMaxPool2dWithIndices", planes(t[0]), [3, 3], [2, 2], [1, 1], [1, 1], False, *map(planes, out)),
              lambda t, out: [r.to(torch.int32) if r.dtype == torch.int64 else r
                              for r in aten.max_pool2d_with_indices(*t, [3, 3], [2, 2], [1, 1])])
    yield Row("training", "AvgPool2d", shape, FLOATS, lambda dtype: [rand(shape, dtype)],
              lambda t, out: ("aclnnAvgPool2d", planes(t[0]), [2, 2], [2, 2], [0, 0], False, True, 0, 0, *map(planes, out)),
              lambda t, out: F.avg_pool2d(*t, 2))


def attention(batch, heads, tokens, width):
    shape, statistics = (batch, heads, tokens, width), (batch, heads, tokens, 8)
    how = (width ** -0.5, 1.0, 2 ** 31 - 1, 2 ** 31 - 1, heads, "BNSD", 0, 0)

    def make(dtype):
        return [*(rand(shape, dtype) for _ in range(3)), torch.zeros(statistics), torch.zeros(statistics)]

    def backward(dtype):  # the maximum and the sum of a row are its logarithm of the sum, and 1
        q, k, v = (rand(shape, dtype) for _ in range(3))
        out, logsumexp = aten._scaled_dot_product_flash_attention_for_cpu(q, k, v)
        out, logsumexp = out.contiguous(), logsumexp.contiguous()
        most = logsumexp.unsqueeze(-1).expand(statistics).contiguous()
        return [rand(shape, dtype), q, k, v, out, logsumexp, most, torch.ones(statistics)]

    yield Row("training", "FlashAttentionScore", shape, FLOATS, make,
              lambda t, out: ("aclnnFlashAttentionScore", *t[:3], None, None, None, None, None, *how, *t[3:], None, *out),
              lambda t, out: F.scaled_dot_product_attention(*t[:3]))
    yield Row("training", "FlashAttentionScoreGrad", shape, FLOATS, backward,
              lambda t, out: ("aclnnFlashAttentionScoreGrad", *t[1:4], t[0], None, None, None, None, *t[6:], None, t[4], None, *how,
                              *out, None),
              lambda t, out: aten._scaled_dot_product_flash_attention_for_cpu_backward(*t[:6], 0.0, False))


def cross_entropy(rows, classes):
    def make(dtype):
        return [rand((rows, classes), dtype), torch.randint(0, classes, (rows,)), torch.zeros(1, dtype=dtype), torch.zeros(1)]

    def backward(dtype):
        return [torch.ones((), dtype=dtype), torch.log_softmax(rand((rows, classes), dtype), -1), make(dtype)[1]]

    def forward(t, out):
        logarithms = torch.log_softmax(t[0], -1)
        return [F.nll_loss(logarithms, t[1]).view(1), logarithms]

    def back(t, out):
        total = torch.full((), rows, dtype=t[1].dtype)
        gradient = aten.nll_loss_backward(t[0], t[1], t[2], None, 1, -100, total)
        return aten._log_softmax_backward_data(gradient, t[1], -1, t[1].dtype)

    text = f"{rows}x{classes}"
    yield Row("training", "CrossEntropyLoss", text, FLOATS, make,
              lambda t, out: ("aclnnCrossEntropyLoss", *t[:2], None, "mean", -100, 0.0, 0.0, False, *out, *t[2:]), forward)
    yield Row("training", "CrossEntropyLossGrad", text, FLOATS, backward,
              lambda t, out: ("aclnnCrossEntropyLossGrad", *t, None, None, None, "mean", -100, 0.0, 0.0, *out), back)


def adam(count):
    """Both libraries change numbers of their own, in place; what they give is not compared."""
    numbers = dict(lr=1e-3, beta1=0.9, beta2=0.999, weight_decay=1e-2, eps=1e-8, amsgrad=False, maximize=False)

    def make(dtype):
        moments = [torch.zeros(count, dtype=dtype) for _ in range(4)]
        return [rand((count,), dtype), *moments[:2], rand((count,), dtype), *moments[2:], rand((count,), dtype), torch.ones(1)]

    def theirs(t, out):
        torch._fused_adamw_([t[3]], [t[6]], [t[4]], [t[5]], [], [t[7]], **numbers)
        return torch.zeros(1)

    yield Row("training", "ApplyAdamWV2", f"{count}", (torch.float32,), make,
              lambda t, out: ("aclnnApplyAdamWV2", *t[:3], None, t[6], t[7], *numbers.values()), theirs)


def training_rows():
    for size in (512, 1024, 2048, 4096):
        yield product("Mm", (size, size), (size, size), torch.mm, f"{size}")
    yield product("Mm turned", (1024, 1024), (1024, 1024), torch.mm, "1024")
    yield product("BatchMatMul", (32, 256, 64), (32, 64, 256), torch.bmm, "32x256x64x256")
    yield product("BatchMatMul turned", (32, 256, 64), (32, 256, 64), torch.bmm, "32x256x64x256")
    yield from convolution((8, 3, 224, 224), (64, 3, 7, 7), 2, 3)
    yield from convolution((8, 64, 56, 56), (64, 64, 3, 3), 1, 1)
    yield from convolution((8, 256, 56, 56), (64, 256, 1, 1), 1, 0)
    yield from convolution((8, 512, 7, 7), (512, 512, 3, 3), 1, 1)
    yield from pooling((8, 64, 112, 112))
    for tokens in (128, 1024, 4096):
        yield from attention(1, 8, tokens, 64)
    yield from cross_entropy(4096, 8192)
    yield from adam(16 << 20)


def rows():
    for row in (*floor_rows(), *norm_rows(), *training_rows()):
        if not isinstance(row.text, str):
            row.text = "x".join(map(str, row.text))
        yield row
