"""all_reduce, reduce, reduce_scatter and their relatives: every type and operator that torch lets through, exactly."""

import torch
import torch.distributed as dist
from common import counts, device, expect_equal, floating, on_gpu, rank, run, size, values, whole

Op = dist.ReduceOp


def folded(count, kind, op, most=5, first=0, part=None):
    """The reference, in double; `part` elements from `first` on."""
    part = count if part is None else part
    every = torch.stack([values(count, r, kind, most).double() for r in range(size())])[:, first : first + part]
    if op in (Op.SUM, Op.AVG):
        total = every.sum(0)
        return total / size() if op == Op.AVG else total
    if op == Op.PRODUCT:
        return every.prod(0)
    return every.max(0).values if op == Op.MAX else every.min(0).values


def operators(kind):
    ops = [(Op.SUM, 5), (Op.MAX, 5), (Op.MIN, 5), (Op.PRODUCT, 2)]  # a product of 2s stays exact in 8 bits
    if on_gpu and kind.is_floating_point and size() & (size() - 1) == 0:
        ops.append((Op.AVG, 5))  # exact if the number of ranks is a power of two
    return ops


def all_reduce():
    for kind in floating + whole:
        for count in counts:
            for op, most in operators(kind):
                tensor = values(count, rank(), kind, most)
                dist.all_reduce(tensor, op)
                expect_equal(tensor, folded(count, kind, op, most), f"all_reduce {kind} {op} {count}")


def pre_multiplied():
    if not on_gpu:
        return
    for kind in (torch.float32, torch.float64, torch.float16):
        for factor in (2.0, torch.full((1,), 0.5, dtype=kind, device=device())):
            op = dist._make_nccl_premul_sum(factor)
            tensor = values(1000, rank(), kind)
            dist.all_reduce(tensor, op)
            expect_equal(tensor, folded(1000, kind, Op.SUM) * float(factor), f"all_reduce {kind} premul_sum {factor}")


def booleans():
    tensor = torch.arange(64, device=device()) % size() == rank()
    dist.all_reduce(tensor, Op.MAX if not on_gpu else Op.SUM)
    expect_equal(tensor, torch.ones(64, dtype=torch.bool), "all_reduce of booleans")


def reduce():
    for kind in floating + whole:
        for root in range(size()):
            tensor = values(1000, rank(), kind)
            dist.reduce(tensor, root)
            if rank() == root:
                expect_equal(tensor, folded(1000, kind, Op.SUM), f"reduce {kind} to {root}")


def reduce_scatter():
    for kind in floating + whole:
        for count in counts:
            for op, most in operators(kind):
                both = values(count * size(), rank(), kind, most)
                part = torch.empty(count, dtype=kind, device=device())
                dist.reduce_scatter_tensor(part, both, op)
                wanted = folded(count * size(), kind, op, most, rank() * count, count)
                expect_equal(part, wanted, f"reduce_scatter_tensor {kind} {op} {count}")
    both = values(1000 * size(), rank(), torch.float32)
    part = torch.empty(1000, device=device())
    dist.reduce_scatter(part, list(both.chunk(size())))
    expect_equal(part, folded(1000 * size(), torch.float32, Op.SUM, 5, rank() * 1000, 1000), "reduce_scatter of a list")


def uneven():
    """Lists of unlike lengths: torch makes a group of reduces of them."""
    if not on_gpu:
        return
    lengths = [10 + 3 * r for r in range(size())]
    inputs = [values(length, rank(), torch.float32) for length in lengths]
    part = torch.empty(lengths[rank()], device=device())
    dist.reduce_scatter(part, inputs)
    wanted = sum(values(lengths[rank()], r, torch.float32) for r in range(size()))
    expect_equal(part, wanted, "reduce_scatter of unlike lengths")


def coalesced():
    tensors = [values(count, rank(), torch.float32) for count in counts]
    if on_gpu:
        dist.all_reduce_coalesced(tensors)
        for tensor, count in zip(tensors, counts):
            expect_equal(tensor, folded(count, torch.float32, Op.SUM), f"all_reduce_coalesced {count}")
        tensors = [values(count, rank(), torch.bfloat16) for count in counts]
        with dist._coalescing_manager(device=device(), async_ops=True) as manager:
            for tensor in tensors:
                dist.all_reduce(tensor)
        manager.wait()
        for tensor, count in zip(tensors, counts):
            expect_equal(tensor, folded(count, torch.bfloat16, Op.SUM), f"all_reduce in a coalescing manager {count}")
        parts = [torch.empty(count, device=device()) for count in counts]
        with dist._coalescing_manager(device=device()):
            for part, count in zip(parts, counts):
                dist.reduce_scatter_tensor(part, values(count * size(), rank(), torch.float32))
        for part, count in zip(parts, counts):
            wanted = folded(count * size(), torch.float32, Op.SUM, 5, rank() * count, count)
            expect_equal(part, wanted, f"reduce_scatter_tensor in a coalescing manager {count}")


def large():
    count = (64 << 20) // 4 + 3 if on_gpu else 100_003
    tensor = values(count, rank(), torch.float32)
    dist.all_reduce(tensor)
    wanted = sum(values(count, r, torch.float32) for r in range(size()))
    expect_equal(tensor, wanted, f"all_reduce of {count} elements")


def body():
    all_reduce()
    pre_multiplied()
    booleans()
    reduce()
    reduce_scatter()
    uneven()
    coalesced()
    large()


if __name__ == "__main__":
    run("reductions", body)
