# SPDX-License-Identifier: Apache-2.0
# Copyright The AnyACL Authors
"""The device itself: import, properties, streams, events, the allocator, copies, errors."""
import os
import subprocess
import sys

import torch
import torch_npu

from suite import close, program


def raises(kind, part, function, *arguments):
    try:
        function(*arguments)
    except kind as problem:
        assert part in str(problem), f"no '{part}' in: {problem}"
        return str(problem)
    raise AssertionError(f"no {kind.__name__}")


@program()
def import_and_properties():
    assert torch.npu.is_available()
    assert torch.npu.device_count() >= 1
    assert torch.version.cann == "9.0.0", torch.version.cann
    assert torch.npu.get_device_name(0).startswith("Ascend950"), torch.npu.get_device_name(0)
    properties = torch.npu.get_device_properties(0)
    assert properties.total_memory > 0 and properties.cube_core_num > 0, properties
    torch.npu.set_device(0)
    assert torch.npu.current_device() == 0
    torch.npu.utilization(0)
    free, total = torch.npu.mem_get_info()
    assert 0 < free <= total
    assert torch.npu.is_bf16_supported()


@program()
def copies():
    for dtype in (torch.float32, torch.float16, torch.bfloat16, torch.int64, torch.int32, torch.uint8, torch.bool,
                  torch.float64, torch.complex64):
        host = (torch.arange(1, 1001) % 7).to(dtype)
        assert torch.equal(host.npu().cpu(), host), dtype
        back = torch.empty_like(host)
        back.copy_(host.npu())
        assert torch.equal(back, host), dtype
    pinned = torch.arange(4096.).pin_memory()
    assert pinned.is_pinned() and not torch.arange(4.).is_pinned()
    assert not torch.empty(0).is_pinned()
    device = pinned.to("npu", non_blocking=True)
    torch.npu.synchronize()
    assert torch.equal(device.cpu(), pinned)
    assert device.storage().data_ptr() % 512 == 0


@program()
def streams_and_events():
    first, second = torch.npu.Stream(), torch.npu.Stream()
    assert first != second and first.npu_stream != second.npu_stream
    host = torch.arange(1 << 20, dtype=torch.float32).pin_memory()
    with torch.npu.stream(first):
        began = torch.npu.Event(enable_timing=True)
        began.record()
        device = host.to("npu", non_blocking=True)
        ended = torch.npu.Event(enable_timing=True)
        ended.record()
    with torch.npu.stream(second):
        ended.wait()
        device.record_stream(second)
        back = torch.empty_like(host).pin_memory()
        back.copy_(device, non_blocking=True)
    second.synchronize()
    assert torch.equal(back, host)
    ended.synchronize()
    assert began.elapsed_time(ended) >= 0 and ended.query() and first.query()
    torch.npu.current_stream().wait_stream(first)
    torch.npu.synchronize()


@program()
def allocator():
    torch.npu.empty_cache()
    assert torch.npu.memory_allocated() == 0
    block = torch.empty(1 << 20, device="npu")
    allocated = torch.npu.memory_allocated()
    assert allocated >= 4 << 20 and torch.npu.memory_reserved() >= allocated
    assert torch.npu.max_memory_allocated() == allocated
    address = block.data_ptr()
    del block
    assert torch.npu.memory_allocated() == 0
    again = torch.empty(1 << 20, device="npu")
    assert again.data_ptr() == address  # from the cache
    del again
    torch.npu.empty_cache()
    assert torch.npu.memory_reserved() == 0
    torch.npu.reset_peak_memory_stats()
    assert torch.npu.memory_stats()["allocation.all.allocated"] >= 2
    assert "NPU memory" in torch.npu.memory_summary() or torch.npu.memory_summary()


def exhaust():
    for _ in range(2):
        try:
            torch.empty(1 << 44, dtype=torch.uint8, device="npu")
        except torch.OutOfMemoryError as problem:
            assert "out of memory" in str(problem).lower(), problem
        else:
            raise AssertionError("16 TiB were given")
        host = torch.arange(1000)
        assert torch.equal(host.npu().cpu(), host)


program()(exhaust)


@program(PYTORCH_NPU_ALLOC_CONF="expandable_segments:True")
def expandable_segments():
    sizes = [1 << 10, 3 << 20, 50 << 20]
    host = [torch.arange(size, dtype=torch.int64).to(torch.uint8) for size in sizes]
    device = [tensor.npu() for tensor in host]
    for a, b in zip(device, host):
        assert torch.equal(a.cpu(), b)
    del device[1]
    torch.npu.empty_cache()
    assert torch.equal(device[1].cpu(), host[2])
    exhaust()


# --- errors -----------------------------------------------------------------------------------------------------------
def bad_elu():
    numbers = torch.ones(6, dtype=torch.int32).npu()
    return torch.ops.aten.elu_backward(numbers, 1.0, 1.0, 1.0, False, numbers)


def good_elu():
    dy, x = torch.arange(6.), torch.ones(6)
    return torch.ops.aten.elu_backward(dy.npu(), 1.0, 2.0, 1.0, False, x.npu()), 2 * dy


def two_errors_two_sentences():
    for _ in range(3):
        text = raises(RuntimeError, "aclnnEluBackward: ", bad_elu)
        assert text.count("aclnnEluBackward: ") == 1, f"more than one sentence: {text}"
        assert "161002" in text, text
        got, wanted = good_elu()
        close(got, wanted)


program()(two_errors_two_sentences)


@program(TASK_QUEUE_ENABLE="0")
def errors_without_task_queue():
    two_errors_two_sentences()


@program(ASCEND_LAUNCH_BLOCKING="1")
def errors_when_blocking():
    two_errors_two_sentences()


@program()
def an_error_after_out_of_memory():
    exhaust()
    two_errors_two_sentences()


@program(TASK_QUEUE_ENABLE="2")
def queue_of_both_phases():
    for _ in range(50):
        got, wanted = good_elu()
        close(got, wanted)


@program()
def errors_a_user_makes():
    """Each ends as a Python exception; where it reached an operator, with the operator's own sentence."""
    def ones(*shape, dtype=torch.float32):
        return torch.ones(shape, dtype=dtype).npu()
    f = torch.nn.functional
    mistakes = [  # dtype, shape, device, memory
        ("aclnnMatmul: mat2 must be FLOAT, FLOAT16 or BF16", lambda: ones(3, 4) @ ones(4, 5, dtype=torch.int32)),
        ("aclnnSoftmax: self must be FLOAT", lambda: torch.softmax(ones(3, dtype=torch.int32), 0)),
        ("aclnnBitwiseAndTensor: self must be", lambda: ones(3) & ones(3)),
        ("aclnnMatmul: mat2 must have as many rows as the first operand has columns, got [3, 4] and [6, 5]",
         lambda: f.linear(ones(3, 4), ones(5, 6))),
        ("aclnnCat: tensors must have the same shape but on the axis, got [3, 4] and [3, 5]",
         lambda: torch.cat([ones(3, 4), ones(3, 5)])),
        ("aclnnTopk: k must be 0 to the size of the axis, 3, got 5", lambda: torch.topk(ones(3), 5)),
        ("aclnnSwiGlu: x must have an even size along dim, got shape [3, 5]", lambda: torch_npu.npu_swiglu(ones(3, 5))),
        ("aclnnRmsNorm: gamma must be the trailing dims of x, got [16] and x [2, 1, 32]",
         lambda: torch_npu.npu_rms_norm(ones(2, 1, 32), ones(16))),
        ("aclrtSetDevice: device must be in [0, 1), got 7", lambda: torch.ones(3).to("npu:7")),
        ("same device", lambda: ones(3) + torch.ones(3)),
        ("out of memory", lambda: torch.empty(1 << 50, device="npu")),
    ]
    for sentence, mistake in mistakes:
        raises(RuntimeError, sentence, mistake)
        close(ones(2) + 1, torch.full((2,), 2.0))  # and the next call works


@program()
def missing_operator_is_named():
    raises(RuntimeError, "aclnnNpuFormatCast", torch_npu.npu_format_cast, torch.ones(32, 32).npu(), 29)


@program()
def sharing_between_processes_is_refused():
    tensor = torch.arange(8.).npu()
    text = raises(RuntimeError, "aclrtIpcMem", lambda: tensor.untyped_storage()._share_npu_())
    assert "200001" in text, text


@program()
def profiler_says_so():
    """It has nothing to record with, and must not look as if it had."""
    code = ("import torch, torch_npu\n"
            "tensor = torch.ones(4).npu()\n"
            "with torch_npu.profiler.profile() as p:\n"
            "    tensor.cpu()\n"
            "print('went on')\n")
    done = subprocess.run([sys.executable, "-c", code], text=True, stdout=subprocess.PIPE, stderr=subprocess.STDOUT,
                          cwd=os.environ.get("TMPDIR", "/tmp"))
    print(done.stdout)
    assert done.returncode == 0 or "Error" in done.stdout
    assert "failed" in done.stdout.lower() or "not supported" in done.stdout, done.stdout


@program()
def determinism_switch():
    torch.use_deterministic_algorithms(True)
    got, wanted = good_elu()
    close(got, wanted)
    torch.use_deterministic_algorithms(False)


@program()
def threads():
    import threading
    problems = []

    def work(number):
        try:
            torch.npu.set_device(0)
            with torch.npu.stream(torch.npu.Stream()):
                for turn in range(20):
                    host = torch.full((1000,), float(number * 100 + turn))
                    assert torch.equal(host.npu().cpu(), host)
        except Exception as problem:  # noqa: told by the main thread
            problems.append(problem)

    workers = [threading.Thread(target=work, args=(number,)) for number in range(4)]
    for worker in workers:
        worker.start()
    for worker in workers:
        worker.join()
    assert not problems, problems


@program(ANYACL_DEVICES="2")
def two_devices():
    assert torch.npu.device_count() == 2
    host = torch.arange(1000.)
    a = host.to("npu:0")
    b = a.to("npu:1")
    assert b.device.index == 1 and torch.equal(b.cpu(), host)
    torch.npu.set_device(1)
    assert torch.empty(4, device="npu").device.index == 1


@program()
def exit_with_work_under_way():
    """Leaves streams, events, pinned memory and tensors behind; the exit must be clean."""
    stream = torch.npu.Stream()
    with torch.npu.stream(stream):
        pinned = torch.arange(1 << 22, dtype=torch.float32).pin_memory()
        globals()["kept"] = [pinned, pinned.to("npu", non_blocking=True), stream, torch.npu.Event()]
        globals()["kept"][3].record()


@program()
def swapped_memory():
    """Memory of the host that the device computes in."""
    tensor = torch_npu.empty_with_swapped_memory([4, 4], dtype=torch.float32, device="npu")
    tensor.copy_(torch.arange(16.0).view(4, 4).npu())
    torch.npu.synchronize()
    assert torch.equal(tensor.cpu(), torch.arange(16.0).view(4, 4))
