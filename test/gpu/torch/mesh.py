"""A group per parallel dimension, as tensor, pipeline and data parallelism make them."""

import torch
import torch.distributed as dist
from common import device, expect_equal, rank, run, size, values
from torch.distributed.device_mesh import init_device_mesh


def body():
    rows = 2 if size() % 2 == 0 and size() > 2 else 1
    columns = size() // rows
    mesh = init_device_mesh(device().type, (rows, columns), mesh_dim_names=("data", "tensor"))
    row, column = rank() // columns, rank() % columns
    members = {"data": [r * columns + column for r in range(rows)], "tensor": [row * columns + c for c in range(columns)]}
    for _ in range(3):
        for name, others in members.items():
            group = mesh[name].get_group()
            tensor = values(5000, rank(), torch.float32)
            dist.all_reduce(tensor, group=group)
            expect_equal(tensor, sum(values(5000, r, torch.float32) for r in others), f"all_reduce along {name}")
            both = torch.empty(100 * len(others), device=device())
            dist.all_gather_into_tensor(both, values(100, rank(), torch.float32), group=group)
            expect_equal(both, torch.cat([values(100, r, torch.float32) for r in others]), f"all_gather along {name}")
    # Both dimensions at once, neither waited for before the other begins.
    tensors = {name: values(300_000, rank(), torch.float32) for name in members}
    works = [dist.all_reduce(t, group=mesh[name].get_group(), async_op=True) for name, t in tensors.items()]
    for work in works:
        work.wait()
    for name, others in members.items():
        wanted = sum(values(300_000, r, torch.float32) for r in others)
        expect_equal(tensors[name], wanted, f"all_reduce along {name} beside the other")
    tensor = values(10, rank(), torch.float32)
    dist.all_reduce(tensor)
    expect_equal(tensor, sum(values(10, r, torch.float32) for r in range(size())), "all_reduce of all afterwards")


if __name__ == "__main__":
    run("mesh", body)
