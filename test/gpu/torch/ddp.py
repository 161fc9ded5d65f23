"""DistributedDataParallel: the losses and parameters of training in one process."""

import torch
import torch.distributed as dist
from common import device, expect_close, expect_equal, on_gpu, rank, run, size
from model import batch, network, train
from torch.nn.parallel import DistributedDataParallel


def trained(**options):
    alone = network()
    wanted = train(alone, 0, 1)
    parallel = DistributedDataParallel(network(), device_ids=[device().index] if on_gpu else None, **options)
    losses = train(parallel, rank(), size())
    dist.all_reduce(losses)
    expect_close(losses / size(), wanted, 1e-4, f"losses with DDP {options}")
    for (name, one), two in zip(alone.named_parameters(), parallel.module.parameters()):
        expect_close(two, one, 1e-3, f"{name} with DDP {options}")
        everyones = two.detach().clone()
        dist.broadcast(everyones, 0)
        expect_equal(two, everyones, f"{name} with DDP {options}, compared with rank 0's")


def body():
    if batch % size() != 0:
        return
    torch.backends.cuda.matmul.allow_tf32 = False
    trained()
    trained(bucket_cap_mb=0.1)
    trained(gradient_as_bucket_view=True, static_graph=True)


if __name__ == "__main__":
    run("ddp", body)
