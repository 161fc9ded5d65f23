"""What moves elements without changing them, also those of 8-bit floats, and what torch builds on it."""

import torch
import torch.distributed as dist
from common import Failed, counts, device, expect_equal, float8, floating, on_gpu, rank, run, size, values, whole

kinds = floating + whole + (float8 if on_gpu else [])


def empty(count, kind):
    return torch.zeros(count, dtype=torch.float32, device=device()).to(kind)


def of_all(count, kind):
    return torch.cat([values(count, r, torch.float32) for r in range(size())]).to(kind)


def broadcast():
    for kind in kinds:
        for root in range(size()):
            tensor = values(1000, rank(), kind)
            dist.broadcast(tensor, root)
            expect_equal(tensor, values(1000, root, kind), f"broadcast {kind} from {root}")


def all_gather():
    for kind in kinds:
        for count in counts:
            both = empty(count * size(), kind)
            dist.all_gather_into_tensor(both, values(count, rank(), kind))
            expect_equal(both, of_all(count, kind), f"all_gather_into_tensor {kind} {count}")
        parts = [empty(1000, kind) for _ in range(size())]
        dist.all_gather(parts, values(1000, rank(), kind))
        for r, part in enumerate(parts):
            expect_equal(part, values(1000, r, kind), f"all_gather {kind}, part {r}")
    if on_gpu:
        lengths = [5 + 3 * r for r in range(size())]
        parts = [empty(length, torch.float32) for length in lengths]
        dist.all_gather(parts, values(lengths[rank()], rank(), torch.float32))
        for r, part in enumerate(parts):
            expect_equal(part, values(lengths[r], r, torch.float32), f"all_gather of unlike lengths, part {r}")
        tensors = [empty(count * size(), torch.float16) for count in counts]
        with dist._coalescing_manager(device=device()):
            for tensor, count in zip(tensors, counts):
                dist.all_gather_into_tensor(tensor, values(count, rank(), torch.float16))
        for tensor, count in zip(tensors, counts):
            expect_equal(tensor, of_all(count, torch.float16), f"all_gather_into_tensor in a coalescing manager {count}")


def all_to_all():
    for kind in kinds:
        for part in (1, 33, 5000):
            send = torch.cat([values(part, rank() + 2 * r, torch.float32) for r in range(size())]).to(kind)
            receive = empty(part * size(), kind)
            dist.all_to_all_single(receive, send)
            wanted = torch.cat([values(part, r + 2 * rank(), torch.float32) for r in range(size())]).to(kind)
            expect_equal(receive, wanted, f"all_to_all_single {kind} {part}")
    # rank a sends a + b + 1 elements to rank b, and 0 to itself
    to = [0 if r == rank() else rank() + r + 1 for r in range(size())]
    send = torch.cat([values(length, rank(), torch.float32) for length in to])
    receive = empty(sum(to), torch.float32)
    dist.all_to_all_single(receive, send, to, to)
    expect_equal(receive, torch.cat([values(n, r, torch.float32) for r, n in enumerate(to)]), "uneven all_to_all_single")
    if on_gpu:
        parts = [empty(100, torch.float32) for _ in range(size())]
        dist.all_to_all(parts, [values(100, rank() + 2 * r, torch.float32) for r in range(size())])
        for r, part in enumerate(parts):
            expect_equal(part, values(100, r + 2 * rank(), torch.float32), f"all_to_all, part {r}")


def gather_scatter():
    for root in range(size()):
        parts = [empty(1000, torch.float32) for _ in range(size())] if rank() == root else None
        dist.gather(values(1000, rank(), torch.float32), parts, root)
        for r, part in enumerate(parts or []):
            expect_equal(part, values(1000, r, torch.float32), f"gather to {root}, part {r}")
        parts = [values(1000, root + r, torch.bfloat16) for r in range(size())] if rank() == root else None
        mine = empty(1000, torch.bfloat16)
        dist.scatter(mine, parts, root)
        expect_equal(mine, values(1000, root + rank(), torch.bfloat16), f"scatter from {root}")


def objects():
    mine = {"rank": rank(), "text": "x" * (10 + 1000 * rank())}
    everyones = [None] * size()
    dist.all_gather_object(everyones, mine)
    if [one["rank"] for one in everyones] != list(range(size())) or everyones[-1]["text"] != "x" * (1000 * size() - 990):
        raise Failed(f"all_gather_object gave {everyones}")
    said = [mine, "two"]
    dist.broadcast_object_list(said, src=size() - 1)
    if said[0]["rank"] != size() - 1:
        raise Failed(f"broadcast_object_list gave {said}")
    lists = [None] * size() if rank() == 0 else None
    dist.gather_object(mine, lists, dst=0)
    if lists is not None and [one["rank"] for one in lists] != list(range(size())):
        raise Failed(f"gather_object gave {lists}")
    dist.barrier(device_ids=[device().index] if on_gpu else None)


def strided():
    """Scalars, views into larger tensors and tensors of no elements."""
    scalar = torch.tensor(float(rank()), device=device())
    dist.all_reduce(scalar)
    expect_equal(scalar, torch.tensor(float(size() * (size() - 1) // 2)), "all_reduce of a scalar")
    matrix = torch.zeros(8, 100, device=device())
    matrix[3] = values(100, rank(), torch.float32)
    dist.broadcast(matrix[3], 0)
    expect_equal(matrix[3], values(100, 0, torch.float32), "broadcast of a row")
    expect_equal(matrix[2], torch.zeros(100), "the row before it")
    nothing = torch.empty(0, device=device())
    dist.all_reduce(nothing)


def body():
    broadcast()
    all_gather()
    all_to_all()
    gather_scatter()
    objects()
    strided()


if __name__ == "__main__":
    run("moves", body)
