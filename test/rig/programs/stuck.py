"""Ranks that meet in a barrier, until rank 1 stays away: it sleeps in a function whose name is to be told."""

import ctypes
import os
import sys
import time


class UniqueId(ctypes.Structure):
    _fields_ = [("bytes", ctypes.c_char * 128)]


def check(result):
    if result != 0:
        sys.exit(f"error {result}")


def read_shard(_password):
    time.sleep(600)


def next_batch(password):
    return read_shard(password)


def train():
    nccl = ctypes.CDLL("libnccl.so.2")
    unique, size, rank = UniqueId(), ctypes.c_int(), ctypes.c_int()
    check(nccl.ncclrunGetJob(ctypes.byref(unique), ctypes.byref(size), ctypes.byref(rank)))
    communicator = ctypes.c_void_p()
    nccl.ncclCommInitRank.argtypes = [ctypes.c_void_p, ctypes.c_int, UniqueId, ctypes.c_int]
    check(nccl.ncclCommInitRank(ctypes.byref(communicator), size, unique, rank))
    for step in range(2):
        if step == 1 and rank.value == 1:
            next_batch(os.environ.get("SECRET", "geheim"))
        check(nccl.ncclrunBarrier(communicator, None))
        check(nccl.ncclrunStreamSynchronize(None))


train()
