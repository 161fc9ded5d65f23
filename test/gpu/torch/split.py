"""split_group: groups from ncclCommSplit, also of some ranks only, and splits of splits."""

import torch
import torch.distributed as dist
from common import Failed, begin, device, expect_equal, on_gpu, rank, run, size, values


def reduced(group, members, what):
    tensor = values(5000, rank(), torch.float32)
    dist.all_reduce(tensor, group=group)
    expect_equal(tensor, sum(values(5000, r, torch.float32) for r in members), what)


def part_of(parts):
    return next((part for part in parts if rank() in part), None)


def body():
    if not on_gpu:
        return
    dist.barrier(device_ids=[device().index])
    half = (size() + 1) // 2
    for parts in (
        [list(range(half)), list(range(half, size()))],
        [[r] for r in range(size())],
        [list(range(size()))],
        [list(range(half))],
    ):
        parts = [part for part in parts if part]
        group = dist.split_group(split_ranks=parts)
        mine = part_of(parts)
        if (group is None) != (mine is None):
            raise Failed(f"split_group {parts}: rank {rank()} got {group}")
        if group is None:
            continue
        reduced(group, mine, f"all_reduce in the part {mine} of {parts}")
        again = [[i] for i in range(len(mine))]
        inner = dist.split_group(group, again)
        reduced(inner, [rank()], f"all_reduce in a split of the part {mine}")
    reduced(None, range(size()), "all_reduce of all afterwards")


if __name__ == "__main__":
    run("split", body, lambda: begin(bound=True))
