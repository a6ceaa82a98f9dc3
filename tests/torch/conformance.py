#!/usr/bin/env python3
# SPDX-License-Identifier: Apache-2.0
# Copyright The AnyACL Authors
"""PyTorch's own operator database (op_db and the foreach databases) on device npu against the CPU.

    conformance.py [--prefix dist] [--leg 2.7.1] [--ops REGEX] [--dtype f32,f16,bf16,i64,bool]
                   [--direction forward,inplace,gradient] [--sample N] [--jobs N] [--tenth] [--verbose]
                   [--json FILE] [--write]        --write: docs/conformance.md and docs/conformance.svg
                   [--rows FILE...]               no run: what --json wrote in earlier ones, of parts of the database
                   [--gate PERCENT]               status 1 only for wrong results, crashes, hangs, or a smaller share

A case is one operator, dtype and direction; its samples are the database's. What the CPU refuses is no case. Classes:
pass, wrong value, wrong dtype or shape, missing operator, refused (our code and sentence, or the client's after calls of
ours), client's own limit (torch_npu raised before any aclnn call, or made its result of another dtype or shape), crash, hang. Everything but passes and limits is
printed; the last line is "N passed, N failed". With --gate a refusal is no failure as long as enough pass.
"""
import argparse
import collections
import contextlib
import html
import itertools
import json
import multiprocessing
import multiprocessing.connection
import os
import random
import re
import signal
import sys
import tempfile
import time
import zlib
from pathlib import Path

HERE = Path(__file__).resolve().parent
ROOT = HERE.parents[1]
DTYPES = {"f32": "float32", "f16": "float16", "bf16": "bfloat16", "i64": "int64", "bool": "bool"}
DIRECTIONS = ("forward", "inplace", "gradient")
PASS, VALUE, SHAPE, MISSING, REFUSED, LIMIT, CRASH, HANG = (
    "pass", "wrong value", "wrong dtype or shape", "missing operator", "refused", "client's own limit", "crash", "hang")
CLASSES = (PASS, VALUE, SHAPE, MISSING, REFUSED, LIMIT, CRASH, HANG)
WORST_FIRST = (CRASH, HANG, VALUE, SHAPE, MISSING, REFUSED, LIMIT, PASS)
SECONDS = 300  # for one case, on a machine that has much else to do
RELATIVE = {"float16": (4e-3, 2e-3), "bfloat16": (2e-2, 1.6e-2)}  # of the value, of the largest value of the result
USUAL = (5e-5, 1e-5)
DRIFT = 4  # and so many times the error of the CPU itself, where it can be had in wider numbers
HALF_A_PLACE = 2.0 ** -24  # of the weights of gradients, which are about one: where everything cancels, that is left
WIDE = {"float16": ("float32", "float64"), "bfloat16": ("float32", "float64"), "float32": ("float64",)}
# All other operators write into tensors whose shapes the client has chosen.
SIZED_BY_DATA = re.compile("aclnn(Nonzero|NonzeroV2|MaskedSelect|Unique.*|NonMaxSuppression|RepeatInterleave.*)$")
NOT_WRITTEN = {"empty", "empty_like", "new_empty", "empty_strided", "new_empty_strided", "empty_permuted"}

# Database names of what the ordinary programs of models.py, mlp.py call: always in the part of --tenth.
DEMANDED = set("""_softmax_backward_data abs add addcdiv addcmul addmm all allclose amax any arange argmax argmin bernoulli
bincount bitwise_and bitwise_not bitwise_or bmm cat clamp clamp_max clamp_min clone cos cumsum div eq equal erf erfinv exp
exponential eye fill flip floor floor_divide full full_like gather ge gt index_add index_put index_select isfinite isinf
isnan kl_div lerp linalg.vector_norm linspace log log_softmax logsumexp lt masked_fill masked_select matmul max maximum
mean median min mm mul multinomial nan_to_num nansum native_batch_norm native_dropout_backward native_layer_norm ne neg
new_zeros nn.functional.adaptive_avg_pool2d nn.functional.avg_pool2d nn.functional.binary_cross_entropy
nn.functional.binary_cross_entropy_with_logits nn.functional.conv2d nn.functional.conv_transpose2d nn.functional.dropout
nn.functional.elu nn.functional.embedding nn.functional.gelu nn.functional.group_norm nn.functional.hardswish
nn.functional.interpolate nn.functional.kl_div nn.functional.l1_loss nn.functional.layer_norm nn.functional.leaky_relu
nn.functional.max_pool2d nn.functional.mish nn.functional.mse_loss nn.functional.nll_loss nn.functional.pixel_shuffle
nn.functional.prelu nn.functional.relu nn.functional.rms_norm nn.functional.scaled_dot_product_attention
nn.functional.silu nn.functional.smooth_l1_loss nn.functional.softplus nonzero norm normal ones ones_like pow prod randint
randn reciprocal remainder repeat repeat_interleave roll round rsqrt rsub scalar_tensor scatter scatter_add sigmoid sign sin
softmax sort sqrt stack std sub sum tanh topk tril triu uniform unique var where zero_ zeros zeros_like""".split())


# --- outside: find interpreter and prefix -----------------------------------------------------------------------------
def arguments():
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("--prefix", type=Path, default=ROOT / "dist")
    parser.add_argument("--leg", default="2.7.1")
    parser.add_argument("--python", type=Path, help="an interpreter that has torch and torch_npu already")
    parser.add_argument("--ops", default="", help="regular expression for names as op_db has them, searched")
    parser.add_argument("--dtype", default=",".join(DTYPES))
    parser.add_argument("--direction", default=",".join(DIRECTIONS))
    parser.add_argument("--sample", type=int, default=6, help="samples per case, spread over those of the database")
    parser.add_argument("--jobs", type=int, default=os.cpu_count())
    parser.add_argument("--tenth", action="store_true", help="a fixed tenth, and what ordinary programs call")
    parser.add_argument("--verbose", action="store_true", help="passes and the operators they called, too")
    parser.add_argument("--json", type=Path)
    parser.add_argument("--rows", type=Path, nargs="+")
    parser.add_argument("--write", action="store_true")
    parser.add_argument("--gate", type=float, help="least share of passes among what is not the client's own limit")
    return parser.parse_args()


def enter(args):
    """Starts again with the interpreter of the environment."""
    import environment
    import run
    env = run.prefix_environment(args.prefix)
    env.update(ANYACL_LOG="debug", ANYACL_CONFORMANCE="1", ANYACL_THREADS=env.get("ANYACL_THREADS", "1"))
    try:
        python = args.python or environment.make(args.leg)
    except environment.OutOfReach as problem:
        print(f"torch tests skipped: {problem}")
        return environment.SKIPPED
    os.execve(python, [str(python), *sys.argv], env)


# --- inside: the cases ------------------------------------------------------------------------------------------------
def database():
    from torch.testing._internal import common_methods_invocations as methods
    methods.wrapper_set_seed = lambda op, *args, **kwargs: op(*args, **kwargs)  # repeated calls shall differ
    foreach = [info for kind in ("unary", "binary", "pointwise", "reduce", "other")
               for info in getattr(methods, f"foreach_{kind}_op_db")]
    return {name_of(info): info for info in [*methods.op_db, *foreach]}


def name_of(info):
    return info.name + (f".{info.variant_test_name}" if info.variant_test_name else "")


def area_of(name, info):
    kind = type(info).__name__
    for prefix, area in (("_foreach", "foreach"), ("linalg.", "linear algebra"), ("nn.functional.", "networks"),
                         ("fft.", "fft"), ("special.", "special functions"), ("masked.", "masked"),
                         ("signal.", "windows"), ("_refs.", "references")):
        if name.startswith(prefix):
            return area
    return {"UnaryUfuncInfo": "unary", "BinaryUfuncInfo": "binary", "ReductionOpInfo": "reductions",
            "ShapeFuncInfo": "shapes", "SpectralFuncInfo": "fft"}.get(kind, "others")


def inplace_of(info):
    return getattr(info, "inplace_variant", None)


def cases_of(infos, args):
    import torch
    dtypes = [getattr(torch, DTYPES[key]) for key in args.dtype.split(",")]
    cases = []
    for name, info in infos.items():
        if not re.search(args.ops, name):
            continue
        if args.tenth and zlib.crc32(name.encode()) % 10 and info.name not in DEMANDED:
            continue
        forward, backward = info.supported_dtypes("cpu"), info.supported_backward_dtypes("cpu")
        for dtype, direction in itertools.product(dtypes, args.direction.split(",")):
            if dtype not in forward or direction == "inplace" and not inplace_of(info):
                continue
            if direction == "gradient" and not (info.supports_autograd and dtype in backward and dtype.is_floating_point):
                continue
            cases.append((name, str(dtype).split(".")[1], direction))
    return cases


# --- inside a worker: one case ----------------------------------------------------------------------------------------
class Calls:
    """The aclnn calls of this process, from the debug log that it writes on standard error."""
    def __init__(self):
        self.file = tempfile.TemporaryFile()
        os.dup2(self.file.fileno(), 2)
        nothing = os.open(os.devnull, os.O_WRONLY)
        os.dup2(nothing, 1)

    def take(self):
        self.file.seek(0)
        text = self.file.read().decode(errors="replace")
        self.file.seek(0)
        self.file.truncate()
        return re.findall(r"DEBUG (aclnn\w+): called", text)


class Different(Exception):
    def __init__(self, kind, text):
        super().__init__(text)
        self.kind = kind


def flat(thing):
    from torch.utils._pytree import tree_flatten
    return tree_flatten(thing)[0]


def shaken(tensor, way):
    """Numbers one place up or down, or as they are, by a pattern for each way."""
    import torch
    signs = ((torch.arange(tensor.numel()) + 1) * way % 5 - 2).sign().reshape(tensor.shape)
    return torch.where(signs == 0, tensor, tensor.nextafter(signs.to(tensor.dtype) * torch.inf))


def moved(sample, device, dtype=None, way=0):
    """A copy of a sample there; floating tensors of `dtype` if it is given. Leaves stay leaves, and operators that are told
    where to make a tensor are told there."""
    import torch

    def move(tensor):
        if isinstance(tensor, (str, torch.device)) and str(tensor) == "cpu":
            return torch.device(device)
        if not isinstance(tensor, torch.Tensor):
            return tensor
        copy = tensor.detach().clone().to(device)
        if dtype is not None and copy.is_floating_point():
            copy = copy.to(dtype)
        if way and copy.is_floating_point():
            copy = shaken(copy, way)
        return copy.requires_grad_(tensor.requires_grad)

    from torch.utils._pytree import tree_map
    return tuple(tree_map(move, part) for part in (sample.input, tuple(sample.args), dict(sample.kwargs)))


def stable_sort(x, dim=-1, descending=False, stable=True):
    import torch
    return torch.sort(x, dim=dim, descending=descending, stable=True)


def stable_topk(x, k, dim=-1, largest=True, sorted=True):
    import torch
    if not x.dim():
        return torch.topk(x, k, dim, largest, sorted)
    return tuple(part.narrow(dim, 0, k) for part in stable_sort(x, dim, largest))


def stable_kthvalue(x, k, dim=-1, keepdim=False):
    import torch
    if not x.dim():
        return torch.kthvalue(x, k, dim, keepdim)
    parts = [part.select(dim, k - 1) for part in stable_sort(x, dim)]
    return tuple(part.unsqueeze(dim) if keepdim else part for part in parts)


# Among equal numbers the CPU takes any; AnyACL takes the first, and is compared with what does so, too.
STABLE = {"sort": stable_sort, "topk": stable_topk, "kthvalue": stable_kthvalue,
          "msort": lambda x: stable_sort(x, 0)[0],
          "argsort": lambda x, dim=-1, descending=False, stable=True: stable_sort(x, dim, descending)[1]}


def with_positive_vectors(transposed):
    """Singular vectors have any sign, but the same on both sides: the largest element of a left one becomes positive."""
    def change(result):
        u, s, v = (part.detach().cpu() for part in result)
        largest = u.gather(-2, u.abs().argmax(-2, keepdim=True)) if u.numel() else u.new_ones(*u.shape[:-2], 1, u.shape[-1])
        sign = largest.sgn().conj()[..., :s.shape[-1]]
        kept = s.shape[-1]  # of more vectors than values only the space they span is unique
        v = v[..., :kept, :] * sign.mT.conj() if transposed else v[..., :kept] * sign
        return u[..., :kept] * sign, s, v
    return change


UNIQUE = {"svd": with_positive_vectors(False), "linalg.svd": with_positive_vectors(True),
          "svd_lowrank": with_positive_vectors(False), "pca_lowrank": with_positive_vectors(False)}


def result_of(info, sample, direction, device, dtype=None, way=0):
    import torch
    op = STABLE.get(info.name, info.op) if device == "cpu" else info.op
    first, args, kwargs = moved(sample, device, dtype, way)
    if direction == "forward":
        with torch.no_grad():
            result = op(first, *args, **kwargs)
            return UNIQUE[info.name](result) if info.name in UNIQUE and len(result[0].shape) > 1 else result
    if direction == "inplace":
        with torch.no_grad():
            inplace_of(info)(first, *args, **kwargs)
        return first
    out = op(first, *args, **kwargs)
    if getattr(sample, "output_process_fn_grad", None):
        out = sample.output_process_fn_grad(out)
    outs = [t for t in flat(out) if isinstance(t, torch.Tensor) and t.requires_grad and t.is_floating_point()]
    leaves = [t for t in flat((first, args, kwargs)) if isinstance(t, torch.Tensor) and t.requires_grad]
    if not outs or not leaves:
        return []
    weights = [((torch.arange(t.numel()) * 7 % 11 - 4.5) / 4).reshape(t.shape).to(t.dtype).to(device) for t in outs]
    return torch.autograd.grad(outs, leaves, weights, allow_unused=True)


def real(tensor):
    import torch
    tensor = tensor.detach().cpu()
    if tensor.is_sparse or tensor.layout != torch.strided:
        tensor = tensor.to_dense()
    if tensor.is_complex():
        tensor = torch.view_as_real(tensor.resolve_conj())
    return tensor.double() if tensor.is_floating_point() else tensor


def off(got, wanted, others, dtype, least):
    """None, or how far. `others` are as right as `wanted`: what they differ by is uncertain, too."""
    import torch
    if not (got.is_floating_point() and wanted.is_floating_point()):
        if torch.equal(got, wanted):
            return None
        return f"{int((got != wanted).sum())} of {got.numel()} numbers differ"
    relative, scaled = RELATIVE.get(dtype, USUAL)
    largest = wanted[wanted.isfinite()].abs().max().item() if wanted.isfinite().any() else 0.0
    drift = least + DRIFT * max((x for other in others for x in (wanted - other).abs().nan_to_num(0.0, 0.0).flatten().tolist()),
                                default=0.0)
    right = torch.zeros_like(got, dtype=torch.bool)
    for aim in (wanted, *others):
        right |= (got == aim) | (got.isnan() & aim.isnan())
        right |= (got - aim).abs() <= relative * aim.abs() + scaled * max(largest, 1e-30) + drift
    if right.all():
        return None
    at = int((~right).flatten().nonzero()[0])
    return (f"{int((~right).sum())} of {got.numel()} numbers are wrong, number {at} is "
            f"{got.flatten()[at].item():.8g}, not {wanted.flatten()[at].item():.8g}")


def compare(got, wanted, others, least):
    """`others`: the same in wider numbers, or of inputs one place away. What is off by `least` is right."""
    import torch
    got, wanted, others = flat(got), flat(wanted), [flat(other) for other in others]
    chosen = []  # results are tensors that the client made: no aclnn function chooses a dtype
    if len(got) != len(wanted):
        raise Different(SHAPE, f"{len(got)} results, not {len(wanted)}")
    for number, (a, b) in enumerate(zip(got, wanted)):
        if not isinstance(b, torch.Tensor):
            same = a == b or a != a and b != b or isinstance(b, float) and abs(a - b) <= 1e-4 * abs(b)
            if not same:
                raise Different(VALUE, f"result {number} is {a}, not {b}")
            continue
        if not isinstance(a, torch.Tensor) or a.shape != b.shape:
            raise Different(SHAPE, f"result {number} is {describe(a)}, not {describe(b)}")
        if a.dtype != b.dtype:
            chosen.append(f"torch_npu gives result {number} as {str(a.dtype)[6:]}, not {str(b.dtype)[6:]}")
            a = a.cpu().to(b.dtype)
        peers = [other[number] for other in others if number < len(other)]
        peers = [real(t.to(b.dtype)) for t in peers if isinstance(t, torch.Tensor) and t.shape == b.shape]
        problem = off(real(a), real(b), peers, str(b.dtype)[6:], least)
        if problem:
            raise Different(VALUE, f"result {number}, {describe(b)}: {problem}")
    if chosen:
        raise Different(LIMIT, chosen[0])


def describe(thing):
    return f"{str(thing.dtype)[6:]}{list(thing.shape)}" if hasattr(thing, "dtype") else type(thing).__name__


def numbers(result):
    import torch
    parts = [real(t).flatten().double() for t in flat(result) if isinstance(t, torch.Tensor)]
    return torch.cat(parts) if parts else torch.zeros(0)


def compare_distributions(produce, first):
    """Two-sample Kolmogorov-Smirnov distance over repeated calls. Numbers of one call may hang together (a channel that is
    dropped as a whole), so what chance allows is measured, by dealing the calls out anew, not only computed."""
    import torch
    shapes = [(t.dtype, t.shape) for t in flat(first["cpu"]) if isinstance(t, torch.Tensor)]
    if shapes != [(t.dtype, t.shape) for t in flat(first["npu"]) if isinstance(t, torch.Tensor)]:
        if not any(0 in shape or len(shape) == 1 for _, shape in shapes):  # sizes may be random, too
            raise Different(SHAPE, f"results are {[describe(t) for t in flat(first['npu'])]}")
    calls = {"cpu": [], "npu": []}
    for device, rows in calls.items():
        while len(rows) < 30 or (len(rows) < 60 and sum(row.numel() for row in rows) < 20000):
            rows.append(numbers(produce(device)).nan_to_num())
    rows = calls["cpu"] + calls["npu"]
    everything = torch.cat(rows).sort()[0]
    if not everything.numel():
        return
    places = everything[torch.linspace(0, everything.numel() - 1, 500).long()].unique()
    below = torch.stack([torch.searchsorted(row.sort()[0], places, right=True) for row in rows]).double()
    counts = torch.tensor([row.numel() for row in rows]).double()

    def distance(order):
        a, b = order[:len(calls["cpu"])], order[len(calls["cpu"]):]
        return (below[a].sum(0) / counts[a].sum() - below[b].sum(0) / counts[b].sum()).abs().max().item()
    if any(sum(row.numel() for row in part) == 0 for part in calls.values()):
        return
    apart = distance(torch.arange(len(rows)))
    dealt = torch.Generator().manual_seed(1)
    allowed = 1.5 * max(distance(torch.randperm(len(rows), generator=dealt)) for _ in range(200))
    if apart > allowed:
        raise Different(VALUE, f"another distribution: distance {apart:.3g}, allowed {allowed:.3g} for {len(rows)} calls")


def is_random(a, b):
    a, b = numbers(a), numbers(b)
    return a.shape != b.shape or not ((a == b) | (a.isnan() & b.isnan())).all().item()


def check_sample(info, sample, direction, dtype, calls):
    """None when the CPU refuses the sample."""
    import torch
    def produce(device):
        calls.on_cpu.value = device == "cpu"
        try:
            return result_of(info, sample, direction, device)
        finally:
            calls.on_cpu.value = False
    try:
        wanted, again = produce("cpu"), produce("cpu")
    except Exception:  # noqa: what the CPU does not take is no case
        return None
    others = []
    with contextlib.suppress(Exception):
        for wider in WIDE.get(dtype, ()):
            others.append(result_of(info, sample, direction, "cpu", getattr(torch, wider)))
        for way in (1, 2, 3) if dtype == "float32" and direction == "gradient" else ():
            others.append(result_of(info, sample, direction, "cpu", way=way))
    torch.npu.synchronize()
    moved(sample, "npu")  # copies are not the operator's calls
    torch.npu.synchronize()
    calls.take()
    got = produce("npu")
    torch.npu.synchronize()
    if info.name in NOT_WRITTEN:
        shapes = [[describe(t) for t in flat(result)] for result in (got, wanted)]
        if shapes[0] != shapes[1]:
            raise Different(SHAPE, f"results are {shapes[0]}, not {shapes[1]}")
    else:
        try:
            compare(got, wanted, others, HALF_A_PLACE if direction == "gradient" else 0.0)
        except Different:
            # Two draws of few numbers may be equal by chance; a dozen are not.
            if not is_random(wanted, again) and not any(is_random(wanted, produce("cpu")) for _ in range(12)):
                raise
            compare_distributions(produce, {"cpu": wanted, "npu": got})
    return True


LACKING = re.compile(r"\b(aclnn\w+?|aclop\w+) or \w+ not (?:found|in )")
SENTENCE = re.compile(r"(?:\((?:EZ|EE|EH)\d+\): )([^\n]+)")
CODE = re.compile(r"error code is (\d{6})|\b(161\d{3}|361\d{3}|561\d{3}|207\d{3}|200001|500\d{3}|507\d{3})\b")


def classify(problem, called):
    text = str(problem)
    if isinstance(problem, Different):
        if problem.kind == SHAPE and not any(map(SIZED_BY_DATA.match, called)):
            return LIMIT, f"the client made it so: {text}"
        return problem.kind, text
    lacking = sorted(set(LACKING.findall(text)))
    if lacking:
        return MISSING, " ".join(lacking)
    sentence, code = SENTENCE.search(text), CODE.search(text)
    first_line = f"{type(problem).__name__}: {(text.strip().splitlines() or [''])[0][:200]}"
    if sentence:
        return REFUSED, f"{(code.group(1) or code.group(2)) if code else 'no code'} {sentence.group(1)[:240]}"
    if called and called[-1] not in ("aclnnInplaceCopy", "aclnnCast"):
        return REFUSED, f"by the client, after {called[-1]}: {first_line}"
    if called:
        return REFUSED, f"by the client, after copies: {first_line}"
    return LIMIT, first_line


def spread(things, count):
    if len(things) <= count:
        return things
    return [things[round(i * (len(things) - 1) / (count - 1))] for i in range(count)] if count > 1 else things[:1]


def check_case(infos, case, count, calls):
    import numpy
    import torch
    name, dtype, direction = case
    info = infos[name]
    for seed in (torch.manual_seed, random.seed, numpy.random.seed):  # the same samples in every run
        seed(zlib.crc32(name.encode()))
    try:
        made = info.sample_inputs("cpu", getattr(torch, dtype), requires_grad=direction == "gradient")
        samples = spread(list(itertools.islice(made, 400)), count)
    except Exception:  # noqa: the database's own limits
        return None
    found, tried, used = [], 0, set()
    for sample in samples:
        if direction == "inplace" and getattr(sample, "broadcasts_input", False):
            continue
        try:
            if check_sample(info, sample, direction, dtype, calls) is None:
                continue
            used.update(calls.take())
        except Exception as problem:  # noqa: it is what we look for
            called = calls.take()
            used.update(called)
            kind, text = classify(problem, called)
            found.append((kind, text))
        tried += 1
    if not tried:
        return None
    if not found:
        return {"class": PASS, "reason": "", "calls": sorted(used), "samples": tried, "failed": 0}
    kind, text = min(found, key=lambda one: WORST_FIRST.index(one[0]))
    return {"class": kind, "reason": text, "calls": sorted(used), "samples": tried, "failed": len(found)}


def is_usable():
    """After an asynchronous failure the client's queue is dead, and everything would look wrong."""
    import torch
    try:
        torch.npu.synchronize()
        numbers = torch.arange(5.0)
        return torch.equal(numbers.npu().cpu(), numbers)
    except Exception:  # noqa
        return False


def work(connection, infos, count, on_cpu):
    import torch
    import warnings
    warnings.simplefilter("ignore")
    signal.signal(signal.SIGINT, signal.SIG_DFL)
    torch.set_num_threads(1)
    calls = Calls()
    calls.on_cpu = on_cpu
    torch.npu.set_device(0)
    torch.ones(1).npu()
    while True:
        case = connection.recv()
        if case is None:
            os._exit(0)
        result = check_case(infos, case, count, calls)
        alive = result is None or result["class"] == PASS or is_usable()
        connection.send((result, alive))
        if not alive:
            os._exit(0)


# --- the pool ---------------------------------------------------------------------------------------------------------
class Worker:
    def __init__(self, infos, count):
        self.connection, theirs = multiprocessing.Pipe()
        self.on_cpu = multiprocessing.Value("b", False)  # a crash there is PyTorch's own: mvlgamma_ of integers in 2.9.0
        self.process = multiprocessing.get_context("fork").Process(target=work,
                                                                   args=(theirs, infos, count, self.on_cpu))
        self.process.start()
        theirs.close()
        self.case, self.began = None, 0.0

    def give(self, case):
        self.case, self.began = case, time.monotonic()
        self.connection.send(case)

    def end(self):
        self.process.kill()
        self.process.join()
        self.connection.close()


def run_cases(infos, cases, args, tell):
    """Calls tell(case, result) for each, as they come."""
    waiting = collections.deque(cases)
    workers = [Worker(infos, args.sample) for _ in range(min(args.jobs, len(cases)))]
    for worker in workers:
        worker.give(waiting.popleft())
    while workers:
        multiprocessing.connection.wait([w.connection for w in workers], timeout=1)
        for at, worker in reversed(list(enumerate(workers))):
            alive, late = True, time.monotonic() - worker.began > SECONDS
            if worker.connection.poll():
                try:
                    result, alive = worker.connection.recv()
                except (EOFError, ConnectionResetError):
                    worker.process.join()
                    code = worker.process.exitcode
                    name = signal.Signals(-code).name if code < 0 else f"status {code}"
                    result, alive = {"class": CRASH, "reason": name, "calls": [], "samples": 0, "failed": 1}, False
                    result = None if worker.on_cpu.value else result
            elif late:
                result, alive = {"class": HANG, "reason": f"not done after {SECONDS} s", "calls": [], "samples": 0,
                                 "failed": 1}, False
            else:
                continue
            if result:
                tell(worker.case, result)
            if not alive:
                worker.end()
                if waiting:
                    worker = workers[at] = Worker(infos, args.sample)
            if waiting:
                worker.give(waiting.popleft())
            else:
                worker.end()
                workers.pop(at)


# --- the page ---------------------------------------------------------------------------------------------------------
COLOURS = {PASS: "#3fa34d", VALUE: "#d62728", SHAPE: "#9467bd", MISSING: "#ff9f1c", REFUSED: "#f4d35e", LIMIT: "#b0b7bf",
           CRASH: "#111111", HANG: "#1f3b70"}


def picture(rows):
    """Operators by area (columns) and dtype (rows of five squares), coloured by the worst class of the directions."""
    areas = collections.defaultdict(lambda: collections.defaultdict(dict))
    for row in rows:
        cell = areas[row["area"]][row["name"]]
        cell.setdefault(row["dtype"], []).append(row["class"])
    side, wide, left = 7, 120, 150
    parts, top = [], 34
    for area in sorted(areas, key=lambda a: -len(areas[a])):
        names = sorted(areas[area])
        parts.append(f'<text x="8" y="{top + 22}" font-weight="bold">{html.escape(area)}</text>'
                     f'<text x="8" y="{top + 35}" fill="#666">{len(names)} operators</text>')
        for start in range(0, len(names), wide):
            for line, dtype in enumerate(DTYPES.values()):
                parts.append(f'<text x="{left - 4}" y="{top + line * side + 6}" text-anchor="end" font-size="6" '
                             f'fill="#666">{dtype}</text>')
                for column, name in enumerate(names[start:start + wide]):
                    kinds = areas[area][name].get(dtype)
                    if not kinds:
                        continue
                    kind = min(kinds, key=WORST_FIRST.index)
                    parts.append(f'<rect x="{left + column * side}" y="{top + line * side}" width="6" height="6" '
                                 f'fill="{COLOURS[kind]}"><title>{html.escape(name)} {dtype}: {html.escape(kind)}</title></rect>')
            top += len(DTYPES) * side + 8
        top += 6
    legend = "".join(f'<rect x="{8 + 125 * i}" y="8" width="10" height="10" fill="{COLOURS[kind]}"/>'
                     f'<text x="{22 + 125 * i}" y="17">{html.escape(kind)}</text>' for i, kind in enumerate(CLASSES))
    width = left + wide * side + 8
    return (f'<svg xmlns="http://www.w3.org/2000/svg" viewBox="0 0 {width} {top}" width="{width}" height="{top}" '
            f'font-family="sans-serif" font-size="11"><rect width="100%" height="100%" fill="white"/>{legend}'
            + "\n".join(parts) + "</svg>\n")


def counted(rows):
    return collections.Counter(row["class"] for row in rows)


def share(count):
    ours = sum(count.values()) - count[LIMIT]
    return f"{100 * count[PASS] / ours:.1f} %" if ours else "-"


def table(head, rows, by):
    groups = collections.defaultdict(list)
    for row in rows:
        groups[by(row)].append(row)
    lines = [f"| {head} | cases | {' | '.join(CLASSES)} | pass of those that are not the client's limit |",
             "|---" * (len(CLASSES) + 3) + "|"]
    for name, group in [*sorted(groups.items()), ("**all**", rows)]:
        count = counted(group)
        lines.append(f"| {name} | {len(group)} | {' | '.join(str(count[kind]) for kind in CLASSES)} | {share(count)} |")
    return "\n".join(lines)


def without_calls(rows):
    return sum(row["class"] == PASS and set(row["calls"]) <= {"aclnnInplaceCopy", "aclnnCast"} for row in rows)


def page(rows, args):
    import torch
    import torch_npu
    lines = ["# PyTorch's operator database on AnyACL", "",
             f"Made by `tests/torch/conformance.py --write`: torch {torch.__version__}, torch_npu {torch_npu.__version__}, CPU "
             f"backend, up to {args.sample} samples per case. A case is one operator, dtype and direction (forward, in place, "
             "gradient); the device is npu, the reference the CPU. 16-bit results may also agree with the CPU's FLOAT. Random "
             "operators are compared by distribution; where equal numbers compete for places, the first wins on both sides.", "",
             "![operators by area and dtype](conformance.svg)", "", table("area", rows, lambda row: row["area"]), "",
             table("dtype", rows, lambda row: row["dtype"]), "", table("direction", rows, lambda row: row["direction"]), "",
             f"{without_calls(rows)} of the passes called no aclnn function but copies: views, and what torch_npu computes on the "
             "CPU by itself.", "",
             "`client's own limit`: torch_npu raised before it called any aclnn function (the debug log had none), or made the "
             "tensor for the result of another dtype or shape than PyTorch's own, so nothing below it can change "
             "the answer.", ""]
    for kind in WORST_FIRST[:-1]:
        groups = collections.defaultdict(list)
        for row in rows:
            if row["class"] == kind:
                groups[row["name"], re.sub(r"0x[0-9a-f]+", "0x..", row["reason"])].append(row)
        if not groups:
            continue
        lines += [f"## {kind[0].upper()}{kind[1:]}", "", "| operator | dtypes | directions | reason |", "|---|---|---|---|"]
        for (name, why), group in sorted(groups.items()):
            listed = [", ".join(sorted({row[key] for row in group})) for key in ("dtype", "direction")]
            why = why.replace("|", "\\|").replace("<", "&lt;").replace("\n", " ")
            lines.append(f"| {name} | {listed[0]} | {listed[1]} | {why} |")
        lines.append("")
    return "\n".join(line.rstrip() for line in lines).encode("ascii", "replace").decode()


def saved_rows(files):
    """Of several rows for a case the last one counts."""
    rows = [row for file in files for row in json.loads(file.read_text(encoding="utf-8"))]
    return list({(row["name"], row["dtype"], row["direction"]): row for row in rows}.values())


def run_database(args):
    """Runs the cases, printing what does not pass."""
    infos = database()
    cases = cases_of(infos, args)
    if not cases:
        raise SystemExit(f"no case has a name that '{args.ops}' matches")
    rows = []

    def tell(case, result):
        row = {"name": case[0], "dtype": case[1], "direction": case[2], "area": area_of(case[0], infos[case[0]]), **result}
        rows.append(row)
        if args.verbose or result["class"] not in (PASS, LIMIT):
            of = f" ({result['failed']} of {result['samples']} samples)" if result["failed"] and result["samples"] else ""
            print(f"{result['class']}: {case[0]} {case[1]} {case[2]}{of}: {result['reason'] or ' '.join(result['calls'])}",
                  flush=True)

    run_cases(infos, cases, args, tell)
    return rows


def main():
    args = arguments()
    if "ANYACL_CONFORMANCE" not in os.environ:
        return enter(args)
    import warnings
    warnings.simplefilter("ignore")
    import torch  # noqa: F401
    import torch_npu  # noqa: F401
    began = time.monotonic()
    rows = saved_rows(args.rows) if args.rows else run_database(args)
    rows.sort(key=lambda row: (row["name"], list(DTYPES.values()).index(row["dtype"]), row["direction"]))
    if args.json:
        args.json.write_text(json.dumps(rows, indent=0), encoding="utf-8")
    if args.write:
        (ROOT / "docs/conformance.md").write_text(page(rows, args), encoding="ascii")
        (ROOT / "docs/conformance.svg").write_text(picture(rows), encoding="ascii")
    count = counted(rows)
    lacking = sorted({name for row in rows if row["class"] == MISSING for name in row["reason"].split()})
    if lacking:
        print(f"missing operators ({len(lacking)}): {' '.join(lacking)}")
    print(", ".join(f"{count[kind]} {kind}" for kind in CLASSES if count[kind]) + f"; {share(count)} of what is not the "
          f"client's own limit; {time.monotonic() - began:.0f} s")
    not_passed = len(rows) - count[PASS] - count[LIMIT]
    too_few = args.gate is not None and 100 * count[PASS] < args.gate * (len(rows) - count[LIMIT])
    if too_few:
        print(f"fewer than {args.gate} % pass")
    failed = not_passed if args.gate is None or too_few else sum(count[kind] for kind in (VALUE, SHAPE, CRASH, HANG))
    print(f"{count[PASS]} passed, {failed} failed")
    return 1 if failed else 0

if __name__ == "__main__":
    sys.exit(main())
