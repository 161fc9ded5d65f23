"""A process group that is bound to its GPU: the communicator is made at once, groups by ncclCommSplit."""

import torch
import torch.distributed as dist
from common import begin, expect_equal, rank, run, size, values


def body():
    even = list(range(0, size(), 2))
    odd = list(range(1, size(), 2))
    groups = [(members, dist.new_group(members)) for members in (even, odd, list(range(size()))) if members]
    for members, group in groups:
        if rank() not in members:
            continue
        tensor = values(5000, rank(), torch.float32)
        dist.all_reduce(tensor, group=group)
        expect_equal(tensor, sum(values(5000, r, torch.float32) for r in members), f"all_reduce of ranks {members}")
    tensor = values(5000, rank(), torch.float32)
    dist.all_reduce(tensor)
    expect_equal(tensor, sum(values(5000, r, torch.float32) for r in range(size())), "all_reduce of all afterwards")
    for _, group in groups:
        if group is not dist.GroupMember.NON_GROUP_MEMBER:
            dist.destroy_process_group(group)


if __name__ == "__main__":
    run("eager", body, lambda: begin(bound=True))
