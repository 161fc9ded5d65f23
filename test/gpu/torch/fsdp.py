"""fully_shard and FullyShardedDataParallel: the losses and parameters of training in one process."""

import torch
import torch.distributed as dist
from common import device, expect_close, on_gpu, rank, run, size
from model import batch, network, train
from torch.distributed.device_mesh import init_device_mesh
from torch.distributed.fsdp import FullyShardedDataParallel, fully_shard


def compare(losses, wanted, what):
    dist.all_reduce(losses)
    expect_close(losses / size(), wanted, 1e-4, f"losses with {what}")


def second():
    alone = network()
    wanted = train(alone, 0, 1)
    model = network()
    mesh = init_device_mesh(device().type, (size(),))
    for layer in model:
        if isinstance(layer, torch.nn.Linear):
            fully_shard(layer, mesh=mesh)
    fully_shard(model, mesh=mesh)
    compare(train(model, rank(), size()), wanted, "fully_shard")
    for (name, one), two in zip(alone.named_parameters(), model.parameters()):
        expect_close(two.full_tensor(), one, 1e-3, f"{name} with fully_shard")


def first():
    alone = network()
    wanted = train(alone, 0, 1)
    model = FullyShardedDataParallel(network(), device_id=device(), use_orig_params=True)
    compare(train(model, rank(), size()), wanted, "FullyShardedDataParallel")
    with FullyShardedDataParallel.summon_full_params(model):
        for (name, one), two in zip(alone.named_parameters(), model.parameters()):
            expect_close(two, one, 1e-3, f"{name} with FullyShardedDataParallel")


def body():
    if batch % size() != 0:
        return
    torch.backends.cuda.matmul.allow_tf32 = False
    if on_gpu:
        second()
        first()


if __name__ == "__main__":
    run("fsdp", body)
