"""Collectives of PyTorch between hosts, timed: the same program on our library and on NVIDIA's.

Each rank is one process, started by ncclrun; with --simulate-hosts 2 the ranks of one machine are two hosts, which
NVIDIA's library takes for two as well (NCCL_HOSTID). Rank 0 prints a line of JSON for each operation and size: the time
in microseconds, how long of it the calls took the caller's thread, the bus bandwidth in GB/s (as nccl-tests counts it)
and the CPU seconds that all ranks took for each GB that crossed the bus.

    hosts.py [--operations NAME,NAME] [LABEL [SIZE...]]    sizes in bytes
"""

import argparse
import json
import os
import resource
import time

import torch
import torch.distributed as dist

OPERATIONS = "all_reduce,all_gather,reduce_scatter,sendrecv,alltoall"
DEFAULT_SIZES = [8, 1024, 65536, 1 << 20, 16 << 20, 256 << 20]
TOTAL_BYTES = 2 << 30
MOST_TIMES = 1000  # of one operation
WARM_UP = 20


def bus_factor(operation, ranks):
    if operation == "all_reduce":
        return 2 * (ranks - 1) / ranks
    return 1 if operation == "sendrecv" else (ranks - 1) / ranks


def make(operation, size, ranks, rank):
    """The call, and a check of its result, for an operation whose larger buffer has `size` bytes."""
    count = max(size // 4, ranks)
    count -= count % ranks
    whole = torch.full((count,), float(rank + 1), device="cuda")
    part = torch.full((count // ranks,), float(rank + 1), device="cuda")
    total = ranks * (ranks + 1) / 2
    if operation == "all_reduce":
        work = torch.empty_like(whole)
        source = whole.clone()

        def check():
            work.copy_(source)
            dist.all_reduce(work)
            return bool((work == total).all())

        return lambda: dist.all_reduce(whole), check
    if operation == "all_gather":
        out = torch.empty(count, device="cuda")
        call = lambda: dist.all_gather_into_tensor(out, part)
        expected = torch.arange(1, ranks + 1, device="cuda", dtype=torch.float32).repeat_interleave(count // ranks)
        return call, lambda: (call(), bool((out == expected).all()))[1]
    if operation == "reduce_scatter":
        out = torch.empty(count // ranks, device="cuda")
        call = lambda: dist.reduce_scatter_tensor(out, whole)
        return call, lambda: (call(), bool((out == total).all()))[1]
    if operation == "alltoall":
        out = torch.empty_like(whole)
        call = lambda: dist.all_to_all_single(out, whole)
        expected = torch.arange(1, ranks + 1, device="cuda", dtype=torch.float32).repeat_interleave(count // ranks)
        return call, lambda: (call(), bool((out == expected).all()))[1]
    out = torch.empty_like(whole)
    following, previous = (rank + 1) % ranks, (rank - 1) % ranks

    def call():
        pair = [dist.P2POp(dist.isend, whole, following), dist.P2POp(dist.irecv, out, previous)]
        for work in dist.batch_isend_irecv(pair):
            work.wait()

    return call, lambda: (call(), bool((out == float(previous + 1)).all()))[1]


def cpu_seconds():
    used = resource.getrusage(resource.RUSAGE_SELF)
    return used.ru_utime + used.ru_stime


def measure(call, times):
    for _ in range(min(times, WARM_UP)):
        call()
    torch.cuda.synchronize()
    dist.barrier()
    torch.cuda.synchronize()
    cpu, start = cpu_seconds(), time.perf_counter()
    for _ in range(times):
        call()
    calls = time.perf_counter() - start
    torch.cuda.synchronize()
    seconds = time.perf_counter() - start
    figures = torch.tensor([seconds, calls, cpu_seconds() - cpu], device="cuda", dtype=torch.float64)
    dist.all_reduce(figures)
    seconds, calls, used = figures.tolist()
    ranks = dist.get_world_size()
    return seconds / ranks / times, calls / ranks / times, used / times


def main():
    parser = argparse.ArgumentParser()
    parser.add_argument("--operations", default=OPERATIONS)
    parser.add_argument("label", nargs="?", default="ours")
    parser.add_argument("sizes", nargs="*", type=int, default=DEFAULT_SIZES)
    options = parser.parse_args()
    os.environ.setdefault("MASTER_ADDR", "127.0.0.1")
    os.environ.setdefault("MASTER_PORT", "29555")
    torch.cuda.set_device(int(os.environ.get("LOCAL_RANK", "0")) % torch.cuda.device_count())
    dist.init_process_group("nccl", device_id=torch.device("cuda", torch.cuda.current_device()))
    rank, ranks = dist.get_rank(), dist.get_world_size()
    for operation in options.operations.split(","):
        for size in options.sizes:
            call, check = make(operation, size, ranks, rank)
            is_right = check()
            times = max(3, min(MOST_TIMES, TOTAL_BYTES // max(size, 1) // 4))
            seconds, calls, used = measure(call, times)
            bus_bytes = size * bus_factor(operation, ranks)
            if rank == 0:
                line = {"label": options.label, "operation": operation, "bytes": size, "us": round(seconds * 1e6, 1)}
                line |= {"calls": round(calls * 1e6, 1), "right": is_right}
                line |= {"busbw": round(bus_bytes / seconds / 1e9, 3)}
                line |= {"cpuPerGB": round(used / (bus_bytes * ranks / 1e9), 3) if size >= 1 << 20 else None}
                print(json.dumps(line), flush=True)
    dist.destroy_process_group()


main()
