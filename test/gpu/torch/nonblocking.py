"""TORCH_NCCL_USE_COMM_NONBLOCKING: calls return while communicators are still being made."""

import os

import moves
import point_to_point
import torch
import torch.distributed as dist
from common import begin, expect_equal, rank, run, size, values


def prepare():
    os.environ["TORCH_NCCL_USE_COMM_NONBLOCKING"] = "1"
    begin(bound=True)


def body():
    for k in range(5):
        tensor = values(100_000, rank() + k, torch.float32)
        dist.all_reduce(tensor)
        expect_equal(tensor, sum(values(100_000, r + k, torch.float32) for r in range(size())), f"all_reduce {k}")
    point_to_point.ring()
    point_to_point.everyone()
    moves.all_to_all()
    group = dist.new_group()
    tensor = values(1000, rank(), torch.float32)
    dist.all_reduce(tensor, group=group)
    expect_equal(tensor, sum(values(1000, r, torch.float32) for r in range(size())), "all_reduce of a second group")


if __name__ == "__main__":
    run("nonblocking", body, prepare)
