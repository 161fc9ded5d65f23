"""A rank of a training job without a framework: NCCL and CUDA's driver through ctypes, as their C interfaces are.

Rank 0 makes the unique id and gives it to the others at MASTER_ADDR and MASTER_PORT, as PyTorch's store does. Each rank
sums its GPU's elements with all others', looks at every element and prints what it has seen.
"""

import ctypes
import os
import socket
import sys
import time

RANK, RANKS = int(os.environ["RANK"]), int(os.environ["WORLD_SIZE"])
LOCAL_RANK = int(os.environ["LOCAL_RANK"])
STORE = (os.environ["MASTER_ADDR"], int(os.environ["MASTER_PORT"]))
COUNT = 300_000  # of floats: several steps of every channel
FLOAT32, SUM = 7, 0
WAIT_SECONDS = 30

cuda = ctypes.CDLL("libcuda.so.1")
nccl = ctypes.CDLL("libnccl.so.2")


class UniqueId(ctypes.Structure):
    _fields_ = [("bytes", ctypes.c_char * 128)]


nccl.ncclCommInitRank.argtypes = [ctypes.c_void_p, ctypes.c_int, UniqueId, ctypes.c_int]
nccl.ncclAllReduce.argtypes = [ctypes.c_void_p] * 2 + [ctypes.c_size_t] + [ctypes.c_int] * 2 + [ctypes.c_void_p] * 2
nccl.ncclCommDestroy.argtypes = [ctypes.c_void_p]
cuda.cuMemAlloc_v2.argtypes = [ctypes.c_void_p, ctypes.c_size_t]
cuda.cuMemcpyAsync.argtypes = [ctypes.c_uint64, ctypes.c_uint64, ctypes.c_size_t, ctypes.c_void_p]
cuda.cuCtxSetCurrent.argtypes = cuda.cuStreamSynchronize.argtypes = [ctypes.c_void_p]


def must(function, *arguments):
    result = function(*arguments)
    if result != 0:
        sys.exit(f"rank {RANK}: {function.__name__} returned {result}")


def exchange(unique_id):
    """The id of rank 0, at every rank."""
    if RANK == 0:
        with socket.create_server(STORE) as server:
            server.settimeout(WAIT_SECONDS)
            for _ in range(RANKS - 1):
                with server.accept()[0] as peer:
                    peer.sendall(bytes(unique_id))
        return
    with connected() as peer, peer.makefile("rb") as stream:
        ctypes.memmove(ctypes.byref(unique_id), stream.read(128), 128)


def connected():
    """Asks until rank 0 listens; the job's own limit ends it."""
    while True:
        try:
            return socket.create_connection(STORE, WAIT_SECONDS)
        except ConnectionRefusedError:
            time.sleep(0.01)


def main():
    context, memory, communicator = ctypes.c_void_p(), ctypes.c_uint64(), ctypes.c_void_p()
    must(cuda.cuInit, 0)
    must(cuda.cuDevicePrimaryCtxRetain, ctypes.byref(context), LOCAL_RANK)
    must(cuda.cuCtxSetCurrent, context)
    must(cuda.cuMemAlloc_v2, ctypes.byref(memory), 4 * COUNT)
    elements = (ctypes.c_float * COUNT)(*[RANK + 1] * COUNT)
    must(cuda.cuMemcpyAsync, memory.value, ctypes.addressof(elements), 4 * COUNT, None)

    unique_id = UniqueId()
    if RANK == 0:
        must(nccl.ncclGetUniqueId, ctypes.byref(unique_id))
    exchange(unique_id)
    must(nccl.ncclCommInitRank, ctypes.byref(communicator), RANKS, unique_id, RANK)
    must(nccl.ncclAllReduce, memory.value, memory.value, COUNT, FLOAT32, SUM, communicator, None)
    must(cuda.cuMemcpyAsync, ctypes.addressof(elements), memory.value, 4 * COUNT, None)
    must(cuda.cuStreamSynchronize, None)
    must(nccl.ncclCommDestroy, communicator)
    expected = RANKS * (RANKS + 1) / 2
    wrong = sum(element != expected for element in elements)
    print(f"rank {RANK} of {RANKS} on {socket.gethostname()}: {wrong} wrong")


main()
