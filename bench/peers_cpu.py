#!/usr/bin/env python3
# SPDX-License-Identifier: Apache-2.0
# Copyright The AnyACL Authors
"""AnyACL beside PyTorch and oneDNN on this machine's CPU, in one process. bench/README.md tells how to read it."""
import argparse
import ctypes
import math
import os
import pathlib
import re
import statistics
import subprocess
import sys
import time
import venv

ROOT = pathlib.Path(__file__).resolve().parent.parent
PEERS = ROOT / "build" / "peers"


def arguments():
    parser = argparse.ArgumentParser(description=__doc__)
    parser.add_argument("--only", default="", help="rows whose operator and shape contain this text")
    parser.add_argument("--group", default="seeds", help="seeds (default), or a regular expression for the groups of "
                        "family_rows.py: floor large, floor cached, floor tiny, norms, training")
    parser.add_argument("--dtypes", default="FLOAT,BF16,FLOAT16,INT64", help="comma list (default: %(default)s)")
    parser.add_argument("--threads", type=int, default=len(os.sched_getaffinity(0)), help="of each library")
    parser.add_argument("--cpu-time", action="store_true", help="processor time of one thread each: for a machine that others use, too")
    parser.add_argument("--samples", type=int, default=9, help="per library and row; their median counts")
    parser.add_argument("--compile", action="store_true", help="torch.compile, too (needs a C++ compiler)")
    parser.add_argument("--dist", type=pathlib.Path, default=ROOT / "dist", help="the installed AnyACL")
    options = parser.parse_args()
    if options.cpu_time:
        options.threads = 1  # threads that spin while they wait would count
    return options


def enter_environment(threads):
    """Installs the peers into build/peers, then starts over with their Python and their best settings."""
    python = PEERS / "bin" / "python"
    if not (PEERS / "ready").exists():
        venv.create(PEERS, with_pip=True, clear=True)
        subprocess.run([python, "-m", "pip", "install", "torch", "numpy", "onednn"], check=True)
        (PEERS / "ready").touch()
    # Memory that is freed is kept and made of huge pages, so that a peer that allocates its results does not pay for
    # fresh pages in every call.
    tunables = "glibc.malloc.mmap_max=0:glibc.malloc.trim_threshold=0x10000000000:glibc.malloc.hugetlb=1"
    os.environ.update(
        ANYACL_PEERS="1", GLIBC_TUNABLES=tunables, LD_LIBRARY_PATH=str(PEERS / "lib"), ANYACL_THREADS=str(threads),
        OMP_NUM_THREADS=str(threads), DPCPP_CPU_NUM_CUS=str(threads), ONEDNN_VERBOSE="none",
        OCL_ICD_FILENAMES=str(PEERS / "lib" / "libintelocl.so"))
    os.execv(python, [python, __file__, *sys.argv[1:]])


options = arguments()
if "ANYACL_PEERS" not in os.environ:
    enter_environment(options.threads)

import torch  # noqa: E402
import torch.nn.functional as F  # noqa: E402

import family_rows  # noqa: E402

aten = torch.ops.aten
POINTER = ctypes.c_void_p
DTYPES = {"FLOAT": torch.float32, "FLOAT16": torch.float16, "BF16": torch.bfloat16, "INT64": torch.int64}
TOLERANCE = {torch.float32: 2e-5, torch.float16: 2e-3, torch.bfloat16: 1.6e-2, torch.int64: 0}  # of the largest value


def int64s(values):
    return (ctypes.c_int64 * len(values))(*values)


class Library:
    """A C library whose functions return 0 or a code: a failed call raises."""

    def __init__(self, path):
        self.library = ctypes.CDLL(str(path))

    def __getattr__(self, name):
        function = getattr(self.library, name)

        def call(*values):
            code = function(*values)
            if code != 0:
                raise RuntimeError(f"{name} returned {code}{self.why()}")

        return call

    def why(self):
        """AnyACL's sentence about the last error of this thread."""
        message = getattr(self.library, "aclGetRecentErrMsg", None) if hasattr(self.library, "aclInit") else None
        if not message:
            return ""
        message.restype = ctypes.c_char_p
        return ": " + (message() or b"").decode()

    def create(self, name, *values):
        """Calls a function whose first argument receives a handle."""
        handle = POINTER()
        getattr(self, name)(ctypes.byref(handle), *values)
        return handle


# --- AnyACL -----------------------------------------------------------------------------------------------------------
class AnyACL:
    CODES = {torch.float32: 0, torch.float16: 1, torch.int32: 3, torch.int64: 9, torch.bool: 12, torch.bfloat16: 27}

    def __init__(self, prefix):
        self.include = prefix / "include" / "aclnnop"
        self.lib = Library(prefix / "lib64" / "libanyacl.so")
        for creator in ("Tensor", "Scalar", "BoolArray", "IntArray", "TensorList"):
            getattr(self.lib.library, f"aclCreate{creator}").restype = POINTER
        self.lib.aclInit(None)
        self.lib.aclrtSetDevice(0)
        self.stream = self.lib.create("aclrtCreateStream")
        self.types = {}  # operator: the types of its arguments

    def types_of(self, name):
        if not self.types:
            text = " ".join(path.read_text() for path in self.include.glob("*.h"))
            for operator, arguments in re.findall(r"(aclnn\w+)GetWorkspaceSize\(([^;]*)\);", text):
                self.types[operator] = [re.sub(r"const |\w+$", "", one.strip()).strip() for one in arguments.split(",")]
        return self.types[name]

    def empty(self, shape, dtype):
        """A PyTorch tensor in AnyACL's device memory, which is host memory here; all libraries work on such tensors."""
        nbytes = max(1, math.prod(shape) * dtype.itemsize)
        memory = self.lib.create("aclrtMalloc", ctypes.c_size_t(nbytes), 0)
        tensor = torch.frombuffer((ctypes.c_char * nbytes).from_address(memory.value), dtype=dtype).view(shape)
        tensor.fill_(0)
        return tensor

    def free(self, tensor):
        self.lib.aclrtFree(POINTER(tensor.data_ptr()))

    def array(self, creator, type_, values):
        return POINTER(getattr(self.lib.library, creator)((type_ * len(values))(*values), ctypes.c_uint64(len(values))))

    def argument(self, type_, value):
        library = self.lib.library
        numbers = {"bool": ctypes.c_bool, "double": ctypes.c_double, "float": ctypes.c_float, "int8_t": ctypes.c_int8,
                   "int64_t": ctypes.c_int64, "int": ctypes.c_int}
        if value is None:
            return None
        if type_ in numbers:
            return numbers[type_](value)
        if type_ == "char*":
            return ctypes.c_char_p(value.encode())
        if type_ == "aclDataType":
            return ctypes.c_int(self.CODES[value])
        if type_ == "aclScalar*":
            whole = isinstance(value, int)
            number = ctypes.c_int64(value) if whole else ctypes.c_float(value)
            return POINTER(library.aclCreateScalar(ctypes.byref(number), self.CODES[torch.int64 if whole else torch.float32]))
        if type_ == "aclBoolArray*":
            return self.array("aclCreateBoolArray", ctypes.c_bool, value)
        if type_ == "aclIntArray*":
            return self.array("aclCreateIntArray", ctypes.c_int64, value)
        if type_ == "aclTensorList*":
            return self.array("aclCreateTensorList", POINTER, [self.argument("aclTensor*", one) for one in value])
        dims, rank = int64s(value.shape), ctypes.c_uint64(value.dim())
        return POINTER(library.aclCreateTensor(
            dims, rank, self.CODES[value.dtype], int64s(value.stride()), ctypes.c_int64(0), getattr(value, "format", 2), dims, rank,
            POINTER(value.data_ptr())))

    def operator(self, name, *values):
        """The function that runs the operator `count` times, its executor made once."""
        size = ctypes.c_uint64()
        executor = POINTER()
        getattr(self.lib, name + "GetWorkspaceSize")(
            *map(self.argument, self.types_of(name), values), ctypes.byref(size), ctypes.byref(executor))
        self.lib.aclSetAclOpExecutorRepeatable(executor)
        workspace = self.lib.create("aclrtMalloc", size, 0) if size.value else None
        launch = getattr(self.lib.library, name)

        def run(count):
            for _ in range(count):
                if launch(workspace, size, executor, self.stream):
                    raise RuntimeError(f"{name} failed")
            self.lib.aclrtSynchronizeStream(self.stream)

        return run


# --- oneDNN, through its C interface ----------------------------------------------------------------------------------
class OneDNN:
    CODES = {torch.float16: 1, torch.bfloat16: 2, torch.float32: 3}
    FORWARD, BACKWARD = 64, 128
    SCALE, RMS = 0x2, 0x20
    ARGUMENTS = dict(src=1, dst=17, mean=49, variance=50, scale=51, diff_src=129, diff_dst=145, diff_scale=255)

    class Argument(ctypes.Structure):
        _fields_ = [("index", ctypes.c_int), ("memory", POINTER)]

    def __init__(self):
        self.lib = Library(PEERS / "lib" / "libdnnl.so.3")
        self.engine = self.lib.create("dnnl_engine_create", 1, ctypes.c_size_t(0))
        self.stream = self.lib.create("dnnl_stream_create", self.engine, 1)

    def describe(self, tensor):
        return self.lib.create("dnnl_memory_desc_create_with_strides", tensor.dim(), int64s(tensor.shape),
                               self.CODES[tensor.dtype], int64s(tensor.stride()))

    def primitive(self, kind, forward, backward, **tensors):
        """forward and backward: what the two descriptions take between the engine and their last arguments."""
        hint = self.lib.create(f"dnnl_{kind}_forward_primitive_desc_create", self.engine, *forward, None)
        backward = self.lib.create(f"dnnl_{kind}_backward_primitive_desc_create", self.engine, *backward, hint, None)
        primitive = self.lib.create("dnnl_primitive_create", backward)
        memories = [self.Argument(self.ARGUMENTS[name], self.lib.create(
            "dnnl_memory_create", self.describe(tensor), self.engine, POINTER(tensor.data_ptr())))
            for name, tensor in tensors.items()]
        array = (self.Argument * len(memories))(*memories)
        execute = self.lib.library.dnnl_primitive_execute

        def run(count):
            for _ in range(count):
                if execute(primitive, self.stream, len(memories), array):
                    raise RuntimeError(f"{kind} failed")
            self.lib.dnnl_stream_wait(self.stream)

        return run


# --- The operators: inputs, AnyACL's call, a formula, what the peers offer --------------------------------------------
# outputs(): fresh tensors for the results. call(): name and arguments of AnyACL's operator. formula(): the results in
# plain PyTorch, of float32 inputs the expected values. torch(): PyTorch's own ways; each returns the results. onednn():
# the function that fills `out`, or None.
class Seed:
    def expected(self):
        return self.formula(*(tensor.float() for tensor in self.inputs.values()))


class Elu(Seed):
    def __init__(self, shape, dtype, from_result=False):
        self.from_result = from_result
        self.inputs = dict(dy=random(shape, dtype), x=random(shape, dtype, -2, 2))

    def outputs(self):
        return [like(self.inputs["x"])]

    def call(self, out):
        return "aclnnEluBackward", self.inputs["dy"], 1.0, 1.0, 1.0, self.from_result, self.inputs["x"], *out

    def formula(self, dy, x):
        return [torch.where(x > 0, dy, dy * (x + 1 if self.from_result else x.exp()))]

    def torch(self, out):
        dy, x = self.inputs.values()
        yield lambda: [aten.elu_backward.grad_input(dy, 1.0, 1.0, 1.0, self.from_result, x, grad_input=out[0])]

    def onednn(self, peer, out):
        d, one, zero = peer.describe(out[0]), ctypes.c_float(1), ctypes.c_float(0)
        algorithm = 0x102 if self.from_result else 0x22
        name = "dst" if self.from_result else "src"
        return peer.primitive("eltwise", (peer.FORWARD, algorithm, d, d, one, zero), (algorithm, d, d, d, one, zero),
                              **{name: self.inputs["x"]}, diff_dst=self.inputs["dy"], diff_src=out[0])


class BatchNorm(Seed):
    """The sums are those of dy and x, so that batch norm backward, which computes them again, has the same result."""

    def __init__(self, shape, dtype):
        dy, x = random(shape, dtype), random(shape, dtype, -1, 3)
        channels, self.count = shape[1], math.prod(shape) // shape[1]
        over = [0, *range(2, len(shape))]
        self.per_channel = (1, channels, *[1] * (len(shape) - 2))
        mean = x.float().mean(over)
        centred = x.float() - mean.view(self.per_channel)
        vectors = dict(mean=mean, invstd=((centred * centred).mean(over) + 1e-5).rsqrt(),
                       weight=torch.rand(channels) + 0.5, sum_dy=dy.float().sum(over),
                       sum_dy_xmu=(dy.float() * centred).sum(over))
        self.inputs = dict(dy=dy, x=x, **{name: copy(vector) for name, vector in vectors.items()})
        self.counter = copy(torch.tensor([self.count], dtype=torch.int32))

    def outputs(self):
        return [like(self.inputs["x"])]

    def call(self, out):
        return "aclnnBatchNormElemtBackward", *self.inputs.values(), self.counter, *out

    def formula(self, dy, x, *vectors):
        mean, invstd, weight, sum_dy, sum_dy_xmu = (v.view(self.per_channel) for v in vectors)
        slope = sum_dy_xmu / self.count * invstd * invstd
        return [(((dy - sum_dy / self.count) - (x - mean) * slope) * (invstd * weight)).to(x.dtype)]

    def torch(self, out):  # batch_norm_backward_elemt exists for CUDA alone
        dy, x, mean, invstd, weight, sum_dy, sum_dy_xmu = self.inputs.values()
        mask = [True, False, False]
        yield lambda: list(aten.native_batch_norm_backward(dy, x, weight, None, None, mean, invstd, True, 1e-5, mask))[:1]

        def two_passes():  # dx = a * dy + b * x + c with a, b, c per channel
            a = invstd * weight
            b = -a * sum_dy_xmu / self.count * invstd * invstd
            c = -a * sum_dy / self.count - b * mean
            a, b, c = (v.to(x.dtype).view(self.per_channel) for v in (a, b, c))
            torch.addcmul(c, dy, a, out=out[0])
            return [out[0].addcmul_(x, b)]

        yield two_passes

    def onednn(self, peer, out):
        d, flags, eps = peer.describe(out[0]), peer.SCALE, ctypes.c_float(1e-5)
        self.variance, self.diff_scale = self.inputs["invstd"] ** -2 - 1e-5, like(self.inputs["weight"])
        return peer.primitive("batch_normalization", (peer.FORWARD, d, d, eps, flags),
                              (peer.BACKWARD, d, d, d, eps, flags), src=self.inputs["x"], mean=self.inputs["mean"],
                              variance=self.variance, scale=self.inputs["weight"], diff_dst=self.inputs["dy"],
                              diff_src=out[0], diff_scale=self.diff_scale)


class GroupNorm(Seed):
    def __init__(self, shape, dtype, groups):
        dy, x = random(shape, dtype), random(shape, dtype, -1, 3)
        self.sizes = (shape[0], shape[1], math.prod(shape[2:]), groups)
        rows = x.float().view(shape[0], groups, -1)
        mean = rows.mean(-1)
        self.variance = copy(rows.var(-1, correction=0))
        self.inputs = dict(dy=dy, x=x, mean=copy(mean.to(dtype)), rstd=copy((self.variance + 1e-5).rsqrt().to(dtype)),
                           gamma=random((shape[1],), dtype, 0.5, 1.5))

    def outputs(self):
        return [like(self.inputs["x"]), like(self.inputs["gamma"]), like(self.inputs["gamma"])]

    def call(self, out):
        return "aclnnGroupNormBackward", *self.inputs.values(), *self.sizes, [True, True, True], *out

    def formula(self, dy, x, mean, rstd, gamma):
        n, c, hw, g = self.sizes
        dy, x = dy.view(n, g, -1, hw), x.view(n, g, -1, hw)
        mean, rstd, gamma = mean.view(n, g, 1, 1), rstd.view(n, g, 1, 1), gamma.view(1, g, -1, 1)
        xhat = (x - mean) * rstd
        sum_dy, sum_dy_xhat = dy.sum(3, keepdim=True), (dy * xhat).sum(3, keepdim=True)
        first = (sum_dy * gamma).sum(2, keepdim=True) / (c // g * hw)
        second = (sum_dy_xhat * gamma).sum(2, keepdim=True) / (c // g * hw)
        dx = (dy * gamma - first - xhat * second) * rstd
        return [dx.view(self.inputs["x"].shape), sum_dy_xhat.sum(0).view(-1), sum_dy.sum(0).view(-1)]

    def torch(self, out):
        yield lambda: list(aten.native_group_norm_backward(*self.inputs.values(), *self.sizes, [True, True, True]))

    def onednn(self, peer, out):
        return None  # its only group norm backward is the reference code, some hundred times slower


class RmsNorm(Seed):
    def __init__(self, shape, dtype):
        dy, x = random(shape, dtype), random(shape, dtype, -1, 3)
        rstd = ((x.float() ** 2).mean(-1) + 1e-6).rsqrt()
        self.inputs = dict(dy=dy, x=x, rstd=copy(rstd), gamma=random(shape[-1:], dtype, 0.5, 1.5))

    def outputs(self):
        return [like(self.inputs["x"]), like(self.inputs["gamma"], torch.float32)]

    def call(self, out):
        return "aclnnRmsNormGrad", *self.inputs.values(), *out

    def formula(self, dy, x, rstd, gamma):
        rstd = rstd.view(-1, 1)
        xhat = x * rstd
        along = (dy * gamma * xhat).mean(-1, keepdim=True)
        return [((dy * gamma - xhat * along) * rstd).to(x.dtype), (dy * xhat).sum(0)]

    def torch(self, out):
        dy, x, rstd, gamma = self.inputs.values()
        if torch._C._dispatch_has_kernel_for_dispatch_key("aten::_fused_rms_norm_backward", "CPU"):
            shape, column = [x.shape[-1]], rstd.view(-1, 1)
            yield lambda: list(aten._fused_rms_norm_backward(dy, x, shape, column, gamma, [True, True]))
        leaves = [x.detach().requires_grad_(), gamma.detach().requires_grad_()]
        y = F.rms_norm(leaves[0], [x.shape[-1]], leaves[1], 1e-6)
        yield lambda: list(torch.autograd.grad(y, leaves, dy, retain_graph=True))
        yield lambda: self.formula(dy, x, rstd, gamma)

    def onednn(self, peer, out):
        dy, x, rstd, gamma = self.inputs.values()
        self.variance, self.scale = rstd ** -2 - 1e-6, gamma.float()
        d, stat, eps, flags = peer.describe(x), peer.describe(rstd), ctypes.c_float(1e-6), peer.SCALE | peer.RMS
        return peer.primitive("layer_normalization", (peer.FORWARD, d, d, stat, eps, flags),
                              (peer.BACKWARD, d, d, d, stat, eps, flags), src=x, variance=self.variance, scale=self.scale,
                              diff_dst=dy, diff_src=out[0], diff_scale=out[1])


ROWS = [  # operator, shape, its class, further arguments
    ("EluBackward", (67108864,), Elu),
    ("EluBackward result", (67108864,), Elu, True),
    ("EluBackward", (1048576,), Elu),
    ("EluBackward result", (1048576,), Elu, True),
    ("EluBackward", (4096,), Elu),
    ("BatchNormElemtBackward", (64, 256, 56, 56), BatchNorm),
    ("BatchNormElemtBackward", (32, 64, 112, 112), BatchNorm),
    ("BatchNormElemtBackward", (8, 2048, 7, 7), BatchNorm),
    ("BatchNormElemtBackward", (1, 2, 4), BatchNorm),
    ("GroupNormBackward G32", (8, 320, 64, 64), GroupNorm, 32),
    ("GroupNormBackward G32", (32, 256, 56, 56), GroupNorm, 32),
    ("GroupNormBackward G32", (1, 512, 512, 512), GroupNorm, 32),
    ("GroupNormBackward G8", (1024, 32, 1), GroupNorm, 8),
    ("GroupNormBackward G1", (2, 3, 4), GroupNorm, 1),
    ("RmsNormGrad", (4096, 4096), RmsNorm),
    ("RmsNormGrad", (2048, 8192), RmsNorm),
    ("RmsNormGrad", (16384, 1024), RmsNorm),
    ("RmsNormGrad", (32768, 128), RmsNorm),
    ("RmsNormGrad", (8, 131072), RmsNorm),
    ("RmsNormGrad", (2, 16), RmsNorm),
]

# --- Tensors of one row, freed together -------------------------------------------------------------------------------
pool = []


def empty(shape, dtype):
    pool.append(anyacl.empty(shape, dtype))
    return pool[-1]


def random(shape, dtype, low=-1, high=1):
    return empty(shape, dtype).uniform_(low, high)


def like(tensor, dtype=None):
    return empty(tensor.shape, dtype or tensor.dtype)


def copy(tensor):
    """Views of transposed matrices stay such."""
    if tensor.dim() == 2 and tensor.stride(0) < tensor.stride(1):
        return copy(tensor.t()).t()
    return empty(tensor.shape, tensor.dtype).copy_(tensor)


# --- Measuring --------------------------------------------------------------------------------------------------------
def seconds(run, count):
    """Time per call. Threads of the library before are given time to fall asleep, those of this one to wake up."""
    clock = time.process_time if options.cpu_time else time.perf_counter
    time.sleep(0.003)
    run(1)
    start = clock()
    run(count)
    return (clock() - start) / count


def repeat(function):
    def run(count):
        for _ in range(count):
            function()

    return run


def error(results, expected):
    """The largest error of all results, as a part of the largest value."""
    pairs = [(r.double().reshape(-1), e.double().reshape(-1)) for r, e in zip(results, expected)]
    return max(((r - e).abs().max() / e.abs().max().clamp_min(1e-30)).item() for r, e in pairs)


def measure_row(operator):
    """{library: (seconds, error)}; the fastest of a library's ways stands for it."""
    ours, theirs, dnn = operator.outputs(), operator.outputs(), operator.outputs()
    expected = operator.expected()
    ways = {"AnyACL": [(anyacl.operator(*operator.call(ours)), lambda: ours)], "PyTorch": [], "oneDNN": []}
    candidates = list(operator.torch(theirs))
    if options.compile and isinstance(operator, Seed):
        candidates.append(lambda f=torch.compile(operator.formula, dynamic=False): f(*operator.inputs.values()))
    for candidate in candidates:
        ways["PyTorch"].append((repeat(candidate), candidate))
    try:
        run = operator.onednn(onednn, dnn) if onednn else None
        if run:
            ways["oneDNN"].append((run, lambda: dnn))
    except RuntimeError:
        pass  # not for this type
    chosen = {}
    for library, runs in ways.items():
        for run, results in runs:
            try:
                first = min(seconds(run, 1) for _ in range(2))
            except (RuntimeError, NotImplementedError):
                continue  # PyTorch lacks the operator for this type
            if library not in chosen or first < chosen[library][0]:
                chosen[library] = (first, run, error(results(), expected))
    samples = {library: [] for library in chosen}
    for _ in range(options.samples):
        for library, (first, run, _) in chosen.items():
            samples[library].append(seconds(run, max(1, int(0.004 / first))))
    return {library: (statistics.median(times), chosen[library][2]) for library, times in samples.items()}


def chosen_rows():
    """(group, operator, shape, dtype, what makes the case)"""
    dtypes = [DTYPES[name] for name in options.dtypes.split(",")]
    for name, shape, kind, *more in ROWS if options.group == "seeds" else ():
        for dtype in (one for one in dtypes if one.is_floating_point):
            yield "seeds", name, "x".join(map(str, shape)), dtype, lambda: kind(shape, dtype, *more)
    for row in family_rows.rows() if options.group != "seeds" else ():
        for dtype in dtypes if re.search(options.group, row.group) else ():
            if dtype in row.dtypes:
                yield row.group, row.name, row.text, dtype, lambda: family_rows.Case(row, dtype, copy, empty)


def main():
    torch.manual_seed(1)
    torch.set_num_threads(options.threads)
    print(f"PyTorch {torch.__version__}, oneDNN {'of package onednn' if onednn else 'not usable here'}, "
          f"{options.threads} threads each{', processor time' if options.cpu_time else ''}, median of {options.samples} samples\n")
    print("| operator | shape | dtype | AnyACL us | PyTorch us | oneDNN us | best peer / AnyACL | |")
    print("|---|---|---|---:|---:|---:|---:|---|")
    ratios, wrong = {}, 0
    names = {dtype: name for name, dtype in DTYPES.items()}
    for group, name, text, dtype, make in chosen_rows():
        if options.only not in f"{name} {text}":
            continue
        row = measure_row(make())
        while pool:
            anyacl.free(pool.pop())
        off = {library: e for library, (_, e) in row.items() if not e <= TOLERANCE[dtype]}
        cells = [f"{row[library][0] * 1e6:.1f}{'*' if library in off else ''}" if library in row else "-"
                 for library in ("AnyACL", "PyTorch", "oneDNN")]
        peers = [time for library, (time, _) in row.items() if library != "AnyACL"]
        ratio = min(peers) / row["AnyACL"][0] if peers else math.inf
        verdict = "WRONG" if "AnyACL" in off else "ok" if ratio >= 1 else "behind"
        verdict += "".join(f", {library} off by {e:.1%}" for library, e in off.items())
        ratios.setdefault(group, []).append(ratio)
        wrong += "AnyACL" in off
        print("|", " | ".join([name, text, names[dtype], *cells, f"{ratio:.2f}", verdict]), "|", flush=True)
    print("\n* results further from the formula in float32 than the tolerance.")
    for group, found in ratios.items():
        mean = math.exp(statistics.fmean(map(math.log, found)))
        print(f"{group}: {len(found)} rows, geometric mean of the ratios {mean:.2f}, {sum(r < 1 for r in found)} behind")
    print(f"wrong: {wrong}")
    return 1 if wrong else 0


anyacl = AnyACL(options.dist)
try:
    onednn = OneDNN()
except (OSError, RuntimeError):
    onednn = None
sys.exit(main())
