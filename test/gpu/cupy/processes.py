"""A process per GPU, started by ncclrun or mpirun with our library in LD_PRELOAD; rank 0 hands out the id."""

import os
import zlib
from multiprocessing.connection import Client, Listener

import cupy
from checks import Ranks, check_all
from cupy.cuda import nccl


def setting(*names):
    return next(os.environ[name] for name in names if name in os.environ)


rank = int(setting("RANK", "OMPI_COMM_WORLD_RANK"))
size = int(setting("WORLD_SIZE", "OMPI_COMM_WORLD_SIZE"))
local = int(setting("LOCAL_RANK", "OMPI_COMM_WORLD_LOCAL_RANK"))
job = os.environ.get("PMIX_NAMESPACE", str(os.getppid()))
port = int(os.environ.get("MASTER_PORT", 20000 + zlib.crc32(job.encode()) % 12000))
gpu = local % cupy.cuda.runtime.getDeviceCount()
cupy.cuda.Device(gpu).use()


def hand_out():
    if rank == 0:
        identity = nccl.get_unique_id()
        with Listener(("127.0.0.1", port), backlog=size) as listener:
            for _ in range(size - 1):
                with listener.accept() as connection:
                    connection.send(identity)
        return identity
    while True:
        try:
            with Client(("127.0.0.1", port)) as connection:
                return connection.recv()
        except ConnectionRefusedError:
            pass  # rank 0 does not listen yet


communicator = nccl.NcclCommunicator(size, hand_out(), rank)
if communicator.device_id() != gpu:
    raise SystemExit(f"FAIL cupy: rank {rank} is on GPU {communicator.device_id()} instead of {gpu}")
check_all(Ranks(size, [(rank, communicator, gpu)]))
communicator.destroy()
if rank == 0:
    print(f"PASS cupy, {size} processes; version {nccl.get_version()}")
