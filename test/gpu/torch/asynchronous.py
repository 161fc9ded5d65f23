"""async_op, many operations under way, two groups at once, and work of the program's own on other streams."""

import contextlib

import torch
import torch.distributed as dist
from common import Failed, device, expect_equal, on_gpu, rank, run, size, synchronize, values


def in_flight():
    tensors = [values(1000 + 17 * k, rank() + k, torch.float32) for k in range(200)]
    works = [dist.all_reduce(tensor, async_op=True) for tensor in tensors]
    for work in works:
        work.wait()
    for k, tensor in enumerate(tensors):
        wanted = sum(values(1000 + 17 * k, r + k, torch.float32) for r in range(size()))
        expect_equal(tensor, wanted, f"all_reduce {k} of 200")
    synchronize()
    if not all(work.is_completed() for work in works):
        raise Failed("an operation is not completed behind its wait")


def mixed():
    """One after another without a wait in between: each uses what the one before has made."""
    tensor = torch.ones(10_000, device=device())
    both = torch.empty(10_000 * size(), device=device())
    for _ in range(10):
        dist.all_reduce(tensor)
        tensor /= size()
        dist.all_gather_into_tensor(both, tensor)
        dist.reduce_scatter_tensor(tensor, both)
        tensor /= size()
        dist.broadcast(tensor, 0)
    expect_equal(tensor, torch.ones(10_000), "ten rounds of four collectives")


def other_stream():
    stream = torch.cuda.Stream() if on_gpu else None
    with torch.cuda.stream(stream) if on_gpu else contextlib.nullcontext():
        tensor = values(1_000_000, rank(), torch.float32)
        for _ in range(3):
            tensor = tensor * 2
        dist.all_reduce(tensor)
        tensor = tensor / 8
    if on_gpu:
        torch.cuda.current_stream().wait_stream(stream)
    wanted = sum(values(1_000_000, r, torch.float32) for r in range(size()))
    expect_equal(tensor, wanted, "all_reduce on a stream of the program's own")


def two_groups():
    other = dist.new_group()
    tensors = [values(50_000, rank() + k, torch.float32) for k in range(40)]
    works = [dist.all_reduce(t, group=other if k % 2 else None, async_op=True) for k, t in enumerate(tensors)]
    for work in works:
        work.wait()
    for k, tensor in enumerate(tensors):
        wanted = sum(values(50_000, r + k, torch.float32) for r in range(size()))
        expect_equal(tensor, wanted, f"operation {k} of two groups in turn")
    dist.destroy_process_group(other)


def body():
    in_flight()
    mixed()
    other_stream()
    two_groups()


if __name__ == "__main__":
    run("asynchronous", body)
