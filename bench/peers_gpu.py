#!/usr/bin/env python3
# SPDX-License-Identifier: Apache-2.0
# Copyright The AnyACL Authors
"""AnyACL against PyTorch, torch.compile and Liger-Kernel on one GPU, one row per case.

All columns are timed the same way: calls over rotating buffers (more than the L2 holds), recorded into one
graph; the median of several replays divided by the calls. A replay is put behind another one, so that the GPU never
waits for the host between the two events. So host cost is in no column. The floor is the bytes that must move over the
bandwidth of a 2-read-1-write copy measured in the same run. Results of AnyACL are compared with the formula evaluated
by PyTorch in float32: WRONG means that they are further off than 2e-5 (FLOAT) or 1.6e-2 (BF16) of the largest value,
and the script ends with status 1.

    bench/peers_gpu.py [--prefix dist] [--only rms,gn] [--compile] [--json out.json]
"""
import argparse
import ctypes
import json
import statistics
import sys

import torch

F32, BF16 = torch.float32, torch.bfloat16

# operator, shape, extra, goal in microseconds on an H200 (f32, bf16): docs/performance.md
CASES = [
    ("gn", (2, 3, 4), 1, (2.2, 2.2)),
    ("gn", (1024, 32, 1), 8, (2.3, 2.2)),
    ("gn", (8, 320, 4096), 32, (39.4, 21.2)),
    ("gn", (32, 256, 3136), 32, (86.8, 47.3)),
    ("gn", (64, 128, 16384), 32, (401, 204)),
    ("gn", (1, 512, 262144), 32, (510, 259)),
    ("gn", (4096, 512, 16), 32, (106, 54.7)),
    ("rms", (4096, 4096), None, (53.4, 31.1)),
    ("rms", (16384, 8192), None, (399, 196)),
    ("rms", (16384, 1024), None, (54.2, 30.5)),
    ("rms", (32768, 128), None, (17.1, 11.1)),
    ("rms", (131072, 512), None, (201, 103)),
    ("rms", (8, 131072), None, (7.6, 6.4)),
    ("rms", (2048, 65536), None, (399, 204)),
    ("rms", (1, 4096), None, (2.1, 2.0)),
    ("rms", (2, 16), None, (1.5, 1.5)),
    ("bn", (32, 64, 12544), None, (72.7, 37.5)),
    ("bn", (64, 256, 3136), None, (144, 72.2)),
    ("bn", (256, 64, 12544), None, (576, 288)),
    ("bn", (8, 2048, 49), None, (4.2, 3.1)),
    ("bn", (1, 2, 4), None, (1.2, 1.2)),
    ("elu", (268435456,), False, (752, 376)),
    ("elu", (268435456,), True, (752, 376)),
    ("elu", (67108864,), False, (188, 93.9)),
    ("elu", (67108864,), True, (188, 93.9)),
    ("elu", (1048576,), False, (4.5, 3.1)),
    ("elu", (1048576,), True, (4.7, 3.5)),
    ("elu", (4096,), False, (1.0, 1.0)),
    ("elu", (4096,), True, (1.2, 1.5)),
]

ROTATE_BYTES = 400 << 20  # several times the L2
REPLAYS = 7


def calls_for(sets, estimate_us):
    calls = max(len(sets), int(min(500, 3000 / max(estimate_us, 1))))
    return -(-calls // len(sets)) * len(sets)


def median_replay(replay, calls):
    """Microseconds per call."""
    times = []
    for i in range(REPLAYS + 2):
        start, end = (torch.cuda.Event(enable_timing=True) for _ in range(2))
        replay()
        start.record()
        replay()
        end.record()
        end.synchronize()
        if i >= 2:
            times.append(start.elapsed_time(end) * 1000 / calls)
    return statistics.median(times)


def time_torch(function, sets, estimate_us):
    """The peers: `function` takes the tensors of one set."""
    side = torch.cuda.Stream()
    with torch.cuda.stream(side):
        for s in sets[:2]:
            function(s)
    torch.cuda.synchronize()
    calls = calls_for(sets, estimate_us)
    graph = torch.cuda.CUDAGraph()
    with torch.cuda.graph(graph):
        for i in range(calls):
            function(sets[i % len(sets)])
    result = median_replay(graph.replay, calls)
    del graph
    torch.cuda.empty_cache()
    return result


# ---- tensors ----

def rand(*shape, dtype=F32, centre=0.0):
    return (torch.rand(*shape, device="cuda", dtype=F32) * 2 - 1 + centre).to(dtype)


def make_set(op, shape, dtype):
    s = {"dy": rand(*shape, dtype=dtype), "x": rand(*shape, dtype=dtype),
         "dx": torch.empty(shape, device="cuda", dtype=dtype)}
    if op == "gn":
        n, c, _ = shape
        s.update(gamma=rand(c, dtype=dtype, centre=1), dgamma=torch.empty(c, device="cuda", dtype=dtype),
                 dbeta=torch.empty(c, device="cuda", dtype=dtype))
    if op == "rms":
        s.update(gamma=rand(shape[1], dtype=dtype, centre=1), rstd=rand(shape[0], 1, centre=1.5),
                 dgamma=torch.empty(shape[1], device="cuda", dtype=F32))
    if op == "bn":
        c = shape[1]
        for name in ("mean", "invstd", "weight", "sum_dy", "sum_dy_xmu"):
            s[name] = rand(c, centre=1)
        s["counter"] = torch.full((1,), float(shape[0] * shape[2]), device="cuda")
        s["count"] = torch.full((1,), shape[0] * shape[2], device="cuda", dtype=torch.int32)
    return s


def add_statistics(s, op, shape, groups):
    if op == "gn":
        n = shape[0]
        s["mean"] = rand(n, groups, dtype=s["x"].dtype)
        s["rstd"] = rand(n, groups, dtype=s["x"].dtype, centre=1.5)


# ---- peers ----

def aten(op, shape, extra):
    a = torch.ops.aten
    if op == "elu":
        return lambda s: a.elu_backward(s["dy"], 1.0, 1.0, 1.0, not extra, s["x"])
    if op == "bn":
        return lambda s: a.batch_norm_backward_elemt(s["dy"], s["x"], s["mean"], s["invstd"], s["weight"],
                                                     s["sum_dy"], s["sum_dy_xmu"], s["count"])
    if op == "gn":
        n, c, hxw = shape
        return lambda s: a.native_group_norm_backward(s["dy"], s["x"], s["mean"], s["rstd"], s["gamma"], n, c,
                                                      hxw, extra, [True, True, True])
    return lambda s: a._fused_rms_norm_backward(s["dy"], s["x"], [shape[1]], s["rstd"], s["gamma"], [True, True])


def formula(op, shape, extra):
    """The mathematics in plain PyTorch, for torch.compile."""
    if op == "bn":
        def bn(dy, x, mean, invstd, weight, sum_dy, sum_dy_xmu, counter):
            v = lambda t: t.view(1, -1, 1)
            slope = sum_dy_xmu / counter * invstd * invstd
            return (((dy.float() - v(sum_dy / counter)) - (x.float() - v(mean)) * v(slope))
                    * v(invstd * weight)).to(x.dtype)
        names = ("dy", "x", "mean", "invstd", "weight", "sum_dy", "sum_dy_xmu", "counter")
        return bn, names
    if op == "gn":
        n, c, hxw = shape
        d = c // extra

        def gn(dy, x, mean, rstd, gamma):
            mean, rstd = mean.float().view(n, extra, 1, 1), rstd.float().view(n, extra, 1, 1)
            dy4 = dy.float().view(n, extra, d, hxw)
            xhat = (x.float().view(n, extra, d, hxw) - mean) * rstd
            g = gamma.float().view(1, extra, d, 1)
            db, ds = dy4.sum(3), (dy4 * xhat).sum(3)
            c1 = (g[..., 0] * db).sum(2).view(n, extra, 1, 1) / (d * hxw)
            c2 = (g[..., 0] * ds).sum(2).view(n, extra, 1, 1) / (d * hxw)
            dx = (rstd * (g * dy4 - c1 - xhat * c2)).to(x.dtype).view(n, c, hxw)
            return dx, ds.sum(0).view(c).to(gamma.dtype), db.sum(0).view(c).to(gamma.dtype)
        return gn, ("dy", "x", "mean", "rstd", "gamma")
    if op == "rms":
        def rms(dy, x, rstd, gamma):
            dyf, u, g = dy.float(), x.float() * rstd, gamma.float()
            m = (dyf * g * u).mean(1, keepdim=True)
            return ((dyf * g - u * m) * rstd).to(x.dtype), (dyf * u).sum(0)
        return rms, ("dy", "x", "rstd", "gamma")
    return None


def compiled(op, shape, extra):
    made = formula(op, shape, extra)
    if made is None:
        return None
    torch._dynamo.reset()
    function = torch.compile(made[0], dynamic=False)
    return lambda s: function(*(s[name] for name in made[1]))


def liger(op, shape, extra):
    """Liger-Kernel's backward, where it can be imported."""
    try:
        if op == "rms":
            from liger_kernel.ops.rms_norm import rms_norm_backward
            return lambda s: rms_norm_backward(s["dy"], s["x"], s["gamma"], s["rstd"].view(-1), 0.0, 0, 1024, 8,
                                               False, None)
        if op == "gn":
            from liger_kernel.ops.group_norm import group_norm_backward
            return lambda s: group_norm_backward(s["dy"], s["x"], s["gamma"], s["gamma"], s["mean"], s["rstd"],
                                                 shape[1], extra)
    except ImportError:
        pass
    return None


# ---- AnyACL through its C API ----

class AnyACL:
    DTYPES = {torch.float32: 0, torch.float16: 1, torch.int32: 3, torch.bfloat16: 27}

    def __init__(self, prefix):
        self.acl = ctypes.CDLL(prefix + "/lib64/libascendcl.so", mode=ctypes.RTLD_GLOBAL)
        self.nn = ctypes.CDLL(prefix + "/lib64/libnnopbase.so", mode=ctypes.RTLD_GLOBAL)
        self.ops = ctypes.CDLL(prefix + "/lib64/libopapi.so", mode=ctypes.RTLD_GLOBAL)
        for create in ("aclCreateTensor", "aclCreateScalar", "aclCreateBoolArray"):
            getattr(self.nn, create).restype = ctypes.c_void_p
        self.check(self.acl.aclInit(None))
        self.check(self.acl.aclrtSetDevice(0))
        self.stream = ctypes.c_void_p()
        self.check(self.acl.aclrtCreateStream(ctypes.byref(self.stream)))

    @staticmethod
    def check(code):
        if code != 0:
            raise RuntimeError(f"AnyACL returned {code}")

    def tensor(self, t):
        dims = (ctypes.c_int64 * t.dim())(*t.shape)
        strides = (ctypes.c_int64 * t.dim())(*t.stride())
        return ctypes.c_void_p(self.nn.aclCreateTensor(
            dims, ctypes.c_uint64(t.dim()), self.DTYPES[t.dtype], strides, ctypes.c_int64(0), 2, dims,
            ctypes.c_uint64(t.dim()), ctypes.c_void_p(t.data_ptr())))

    def scalar(self, value):
        return ctypes.c_void_p(self.nn.aclCreateScalar(ctypes.byref(ctypes.c_float(value)), 0))

    def arguments(self, op, s, shape, extra):
        t = self.tensor
        if op == "elu":
            return "aclnnEluBackward", [t(s["dy"]), self.scalar(1), self.scalar(1), self.scalar(1),
                                        ctypes.c_bool(not extra), t(s["x"]), t(s["dx"])]
        if op == "bn":
            return "aclnnBatchNormElemtBackward", [t(s[k]) for k in ("dy", "x", "mean", "invstd", "weight", "sum_dy",
                                                                     "sum_dy_xmu", "counter", "dx")]
        if op == "gn":
            n, c, hxw = (ctypes.c_int64(v) for v in shape)
            mask = ctypes.c_void_p(self.nn.aclCreateBoolArray((ctypes.c_bool * 3)(True, True, True),
                                                             ctypes.c_uint64(3)))
            return "aclnnGroupNormBackward", [*(t(s[k]) for k in ("dy", "x", "mean", "rstd", "gamma")), n, c, hxw,
                                              ctypes.c_int64(extra), mask,
                                              *(t(s[k]) for k in ("dx", "dgamma", "dbeta"))]
        return "aclnnRmsNormGrad", [t(s[k]) for k in ("dy", "x", "rstd", "gamma", "dx", "dgamma")]

    def prepare(self, op, s, shape, extra):
        """A function that enqueues one call; the executor is made anew for each, as a program would."""
        name, args = self.arguments(op, s, shape, extra)
        plan, run = getattr(self.ops, name + "GetWorkspaceSize"), getattr(self.ops, name)
        size, executor = ctypes.c_uint64(), ctypes.c_void_p()
        self.check(plan(*args, ctypes.byref(size), ctypes.byref(executor)))
        workspace = torch.empty(size.value + 1, device="cuda", dtype=torch.uint8)
        self.check(run(ctypes.c_void_p(workspace.data_ptr()), size, executor, self.stream))

        def call():
            e = ctypes.c_void_p()
            self.check(plan(*args, ctypes.byref(size), ctypes.byref(e)))
            self.check(run(ctypes.c_void_p(workspace.data_ptr()), size, e, self.stream))
        return call

    def time(self, op, sets, shape, extra, estimate_us):
        torch.cuda.synchronize()  # the tensors are made on PyTorch's stream
        calls = [self.prepare(op, s, shape, extra) for s in sets]
        self.check(self.acl.aclrtSynchronizeStream(self.stream))
        count = calls_for(sets, estimate_us)
        graph = ctypes.c_void_p()
        self.check(self.acl.aclmdlRICaptureBegin(self.stream, 1))
        for i in range(count):
            calls[i % len(calls)]()
        self.check(self.acl.aclmdlRICaptureEnd(self.stream, ctypes.byref(graph)))
        start, end, ms = ctypes.c_void_p(), ctypes.c_void_p(), ctypes.c_float()
        self.check(self.acl.aclrtCreateEvent(ctypes.byref(start)))
        self.check(self.acl.aclrtCreateEvent(ctypes.byref(end)))
        times = []
        for i in range(REPLAYS + 2):
            self.check(self.acl.aclmdlRIExecuteAsync(graph, self.stream))
            self.check(self.acl.aclrtRecordEvent(start, self.stream))
            self.check(self.acl.aclmdlRIExecuteAsync(graph, self.stream))
            self.check(self.acl.aclrtRecordEvent(end, self.stream))
            self.check(self.acl.aclrtSynchronizeStream(self.stream))
            self.check(self.acl.aclrtEventElapsedTime(ctypes.byref(ms), start, end))
            if i >= 2:
                times.append(ms.value * 1000 / count)
        self.check(self.acl.aclmdlRIDestroy(graph))
        return statistics.median(times)


def is_right(op, s, shape, extra):
    """Whether the results that lie in the set are those of the formula."""
    if op == "elu":
        expected = (torch.ops.aten.elu_backward(s["dy"].float(), 1.0, 1.0, 1.0, not extra, s["x"].float()),)
    else:
        function, names = formula(op, shape, extra)
        expected = function(*(s[name] for name in names))
        expected = expected if isinstance(expected, tuple) else (expected,)
    for got, want in zip((s[k] for k in ("dx", "dgamma", "dbeta") if k in s), expected):
        limit = 2e-5 if got.dtype == F32 else 1.6e-2
        if not (got.float() - want.float()).abs().max() <= limit * want.float().abs().max():
            return False
    return True


# ---- the table ----

def measured_bandwidth():
    """Bytes per microsecond of a 2-read-1-write kernel."""
    n = 1 << 28
    a, b, c = (torch.ones(n, device="cuda") for _ in range(3))
    us = time_torch(lambda s: torch.add(a, b, out=c), [{}], 700)
    return 3 * 4 * n / us


def attempt(function):
    try:
        return function()
    except Exception as error:  # a peer that cannot do a case leaves its column empty
        print(f"  {type(error).__name__}: {str(error).splitlines()[0][:100]}", file=sys.stderr)
        return None


def main():
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("--prefix", default="dist", help="where AnyACL is installed")
    parser.add_argument("--only", default="", help="operators, separated by commas: gn, rms, bn, elu")
    parser.add_argument("--compile", action="store_true", help="also torch.compile (minutes)")
    parser.add_argument("--no-peers", action="store_true")
    parser.add_argument("--json", help="write the rows there")
    options = parser.parse_args()
    anyacl = attempt(lambda: AnyACL(options.prefix))
    bandwidth = measured_bandwidth()
    print(f"{torch.cuda.get_device_name()}, PyTorch {torch.__version__}, 2R1W {bandwidth / 1e6:.2f} TB/s")
    print(f"{'case':34} {'floor':>7} {'aten':>8} {'compile':>8} {'liger':>8} {'AnyACL':>8} {'goal':>7}")
    rows = []
    only = [o for o in options.only.split(",") if o]
    for op, shape, extra, goals in CASES:
        if only and op not in only:
            continue
        for dtype, goal in zip((F32, BF16), goals):
            bytes_moved = 3 * torch.Size(shape).numel() * dtype.itemsize
            count = min(48, max(2, ROTATE_BYTES * 3 // 2 // bytes_moved + 1))
            sets = [make_set(op, shape, dtype) for _ in range(count)]
            for s in sets:
                add_statistics(s, op, shape, extra)
            row = {"op": op, "shape": shape, "extra": extra, "dtype": str(dtype).split(".")[1],
                   "floor": bytes_moved / bandwidth, "goal": goal}
            peers = {} if options.no_peers else {"aten": aten, "liger": liger}
            if options.compile and not options.no_peers:
                peers["compile"] = compiled
            for name, make in peers.items():
                function = make(op, shape, extra)
                row[name] = function and attempt(lambda: time_torch(function, sets, goal))
            row["anyacl"] = anyacl and attempt(lambda: anyacl.time(op, sets, shape, extra, goal))
            row["right"] = anyacl and attempt(lambda: is_right(op, sets[0], shape, extra))
            rows.append(row)
            label = f"{op} {'x'.join(map(str, shape))} {'' if extra is None else extra} {row['dtype']}"
            cell = lambda v: f"{v:8.1f}" if v else f"{'-':>8}"
            print(f"{label:34} {row['floor']:7.1f} {cell(row.get('aten'))} {cell(row.get('compile'))} "
                  f"{cell(row.get('liger'))} {cell(row['anyacl'])} {goal:7.1f}{'' if row['right'] else ' WRONG'}",
                  flush=True)
            del sets
            torch.cuda.empty_cache()
    if options.json:
        with open(options.json, "w") as file:
            json.dump({"device": torch.cuda.get_device_name(), "bandwidth": bandwidth, "rows": rows}, file, indent=1)
    return 0 if all(row["right"] for row in rows) else 1


if __name__ == "__main__":
    sys.exit(main())
