"""Collectives between hosts through NCCL's C interface, timed: what the library and the network take, without PyTorch.

Each rank is one process, started by ncclrun, as torch/hosts.py; rank 0 prints the same lines of JSON.

    hosts.py [--operations NAME,NAME] LIBRARY FILE LABEL [SIZE...]    sizes in bytes, of the larger of a rank's buffers

LIBRARY is the libnccl.so.2 to load, FILE a path that does not exist yet, by which the ranks get their unique id. The
time is that of the fastest of several batches of calls, each from the first call until the stream is empty.
"""

import argparse
import array
import ctypes
import json
import os
import time

OPERATIONS = "all_reduce,all_gather,reduce_scatter,sendrecv,alltoall"
DEFAULT_SIZES = [8, 1024, 16384, 65536, 1 << 20]
FLOAT, SUM = 7, 0  # ncclFloat32, ncclSum
CALLS, BATCHES = 50, 20
TOTAL_BYTES = 1 << 30  # of an operation


class UniqueId(ctypes.Structure):
    _fields_ = [("internal", ctypes.c_char * 128)]


def must(function, *arguments):
    status = function(*arguments)
    if status != 0:
        raise SystemExit(f"{function.__name__} returned {status}")


class Gpu:
    """The GPU of this rank, by the driver's own interface, with a stream."""

    def __init__(self, index):
        self.driver = ctypes.CDLL("libcuda.so.1")
        device, context = ctypes.c_int(), ctypes.c_void_p()
        self.stream = ctypes.c_void_p()
        must(self.driver.cuInit, 0)
        must(self.driver.cuDeviceGet, ctypes.byref(device), index)
        must(self.driver.cuDevicePrimaryCtxRetain, ctypes.byref(context), device)
        must(self.driver.cuCtxSetCurrent, context)
        must(self.driver.cuStreamCreate, ctypes.byref(self.stream), 1)

    def buffer(self, count, value):
        """Memory of `count` floats of this value."""
        pointer = ctypes.c_uint64()
        data = array.array("f", [value]) * count
        address, _ = data.buffer_info()
        must(self.driver.cuMemAlloc_v2, ctypes.byref(pointer), ctypes.c_size_t(4 * count))
        self.copy(pointer.value, address, 4 * count)
        return ctypes.c_void_p(pointer.value)

    def free(self, pointer):
        must(self.driver.cuMemFree_v2, ctypes.c_uint64(pointer.value))

    def read(self, pointer, count):
        data = array.array("f", bytes(4 * count))
        address, _ = data.buffer_info()
        self.copy(address, pointer.value, 4 * count)
        return data

    def copy(self, to, source, size):
        addresses = ctypes.c_uint64(to), ctypes.c_uint64(source)
        must(self.driver.cuMemcpyAsync, *addresses, ctypes.c_size_t(size), self.stream)
        self.wait()

    def wait(self):
        must(self.driver.cuStreamSynchronize, self.stream)


class Communicator:
    def __init__(self, library, file, gpu):
        self.nccl, self.gpu = ctypes.CDLL(library), gpu
        self.rank, self.ranks = int(os.environ["RANK"]), int(os.environ["WORLD_SIZE"])
        self.handle = ctypes.c_void_p()
        must(self.nccl.ncclCommInitRank, ctypes.byref(self.handle), self.ranks, self.unique_id(file), self.rank)

    def unique_id(self, file):
        found = UniqueId()
        if self.rank == 0:
            must(self.nccl.ncclGetUniqueId, ctypes.byref(found))
            with open(f"{file}.new", "wb") as out:
                out.write(bytes(bytearray(found)))
            os.rename(f"{file}.new", file)
            return found
        while not os.path.exists(file):
            time.sleep(0.01)
        with open(file, "rb") as source:
            ctypes.memmove(ctypes.byref(found), source.read(128), 128)
        return found

    def call(self, operation, source, out, count):
        """The call, for buffers of which the larger has `count` floats."""
        nccl, handle, stream = self.nccl, self.handle, self.gpu.stream
        whole, part = ctypes.c_size_t(count), ctypes.c_size_t(count // self.ranks)
        if operation == "all_reduce":
            return lambda: nccl.ncclAllReduce(source, out, whole, FLOAT, SUM, handle, stream)
        if operation == "all_gather":
            return lambda: nccl.ncclAllGather(source, out, part, FLOAT, handle, stream)
        if operation == "reduce_scatter":
            return lambda: nccl.ncclReduceScatter(source, out, part, FLOAT, SUM, handle, stream)
        if operation == "sendrecv":
            following, previous = (self.rank + 1) % self.ranks, (self.rank - 1) % self.ranks
            return lambda: self.exchange([(source, following)], [(out, previous)], whole)
        at = [4 * peer * (count // self.ranks) for peer in range(self.ranks)]
        sends = [(ctypes.c_void_p(source.value + offset), peer) for peer, offset in enumerate(at)]
        receives = [(ctypes.c_void_p(out.value + offset), peer) for peer, offset in enumerate(at)]
        return lambda: self.exchange(sends, receives, part)

    def exchange(self, sends, receives, count):
        nccl, handle, stream = self.nccl, self.handle, self.gpu.stream
        nccl.ncclGroupStart()
        for buffer, peer in sends:
            nccl.ncclSend(buffer, count, FLOAT, peer, handle, stream)
        for buffer, peer in receives:
            nccl.ncclRecv(buffer, count, FLOAT, peer, handle, stream)
        return nccl.ncclGroupEnd()

    def expected(self, operation, count):
        """What the result has to be, where each rank's buffers were full of its number plus one."""
        part = count // self.ranks
        everyone = [value for rank in range(self.ranks) for value in [rank + 1.0] * part]
        if operation in ("all_gather", "alltoall"):
            return array.array("f", everyone)
        if operation == "sendrecv":
            return array.array("f", [(self.rank - 1) % self.ranks + 1.0]) * count
        total = self.ranks * (self.ranks + 1) / 2
        return array.array("f", [total]) * (part if operation == "reduce_scatter" else count)


def measure(communicator, call, calls):
    """Microseconds of a call, and how long of it the call took this thread: of the fastest batch."""
    meet = communicator.call("all_reduce", *[communicator.word] * 2, communicator.ranks)
    best = (float("inf"), float("inf"))
    for _ in range(BATCHES):
        must(meet)
        communicator.gpu.wait()
        start = time.perf_counter()
        for _ in range(calls):
            call()
        called = time.perf_counter() - start
        communicator.gpu.wait()
        best = min(best, (time.perf_counter() - start, called))
    return tuple(1e6 * seconds / calls for seconds in best)


def main():
    parser = argparse.ArgumentParser()
    parser.add_argument("--operations", default=OPERATIONS)
    parser.add_argument("library")
    parser.add_argument("file")
    parser.add_argument("label")
    parser.add_argument("sizes", nargs="*", type=int, default=DEFAULT_SIZES)
    options = parser.parse_args()
    gpu = Gpu(int(os.environ.get("LOCAL_RANK", "0")))
    communicator = Communicator(options.library, options.file, gpu)
    communicator.word = gpu.buffer(communicator.ranks, 1.0)
    for operation in options.operations.split(","):
        for size in options.sizes:
            count = max(size // 4 // communicator.ranks, 1) * communicator.ranks
            source, out = gpu.buffer(count, communicator.rank + 1.0), gpu.buffer(count, 0.0)
            call = communicator.call(operation, source, out, count)
            must(call)
            gpu.wait()
            expected = communicator.expected(operation, count)
            is_right = gpu.read(out, len(expected)) == expected
            calls = max(2, min(CALLS, TOTAL_BYTES // BATCHES // (4 * count)))
            microseconds, called = measure(communicator, call, calls)
            gpu.free(source)
            gpu.free(out)
            if communicator.rank == 0:
                line = {"label": options.label, "operation": operation, "bytes": size, "us": round(microseconds, 1)}
                print(json.dumps(line | {"calls": round(called, 1), "right": is_right}), flush=True)
    must(communicator.nccl.ncclCommDestroy, communicator.handle)


main()
