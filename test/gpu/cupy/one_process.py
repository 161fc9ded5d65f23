"""One process with several GPUs: initAll, and communicators made one by one in a group.

    one_process.py N    with our library in LD_PRELOAD
"""

import sys

import cupy
from checks import Ranks, check_all
from cupy.cuda import nccl

size = int(sys.argv[1])
count = cupy.cuda.runtime.getDeviceCount()
gpus = [rank % count for rank in range(size)]
communicators = nccl.NcclCommunicator.initAll(size if size <= count else gpus)
check_all(Ranks(size, [(rank, communicators[rank], gpus[rank]) for rank in range(size)]))
for communicator in communicators:
    communicator.destroy()

# The other order of GPUs.
devices = gpus[::-1]
communicators = nccl.NcclCommunicator.initAll(devices)
for rank, communicator in enumerate(communicators):
    if communicator.device_id() != devices[rank]:
        raise SystemExit(f"FAIL cupy: rank {rank} is on GPU {communicator.device_id()} instead of {devices[rank]}")
check_all(Ranks(size, [(rank, communicators[rank], devices[rank]) for rank in range(size)]))

# One by one, with an id of our own.
identity = nccl.get_unique_id()
made = []
nccl.groupStart()
for rank in range(size):
    with cupy.cuda.Device(gpus[rank]):
        made.append(nccl.NcclCommunicator(size, identity, rank))
nccl.groupEnd()
check_all(Ranks(size, [(rank, made[rank], gpus[rank]) for rank in range(size)]))
print(f"PASS cupy, one process with {size} GPUs; version {nccl.get_version()}")
