"""Every call of cupy.cuda.nccl's NcclCommunicator that moves data, on one rank or several ranks of this process."""

import os

import cupy
from cupy.cuda import nccl

count = 10_000


def values(of_rank, kind, length=count):
    return ((cupy.arange(length) * 7 + of_rank * 3) % 5 + 1).astype(kind)


kinds = [
    (cupy.float32, nccl.NCCL_FLOAT32),
    (cupy.float64, nccl.NCCL_FLOAT64),
    (cupy.float16, nccl.NCCL_FLOAT16),
    (cupy.int32, nccl.NCCL_INT32),
    (cupy.int64, nccl.NCCL_INT64),
    (cupy.uint8, nccl.NCCL_UINT8),
]


def expect(got, wanted, what):
    got, wanted = got.get(), wanted.get()
    wrong = (got != wanted).sum()
    if wrong:
        raise SystemExit(f"FAIL cupy: {what}: {wrong} of {got.size} elements are wrong, e.g. {got[got != wanted][0]}")


def check_in_use():
    """The memory of our communicators is mapped; TEST_LIBRARY=theirs tries the tests on NVIDIA's library instead."""
    if os.environ.get("TEST_LIBRARY") == "theirs":
        return
    with open("/proc/self/maps", encoding="utf8") as file:
        if "memfd:ncclrun-segment" not in file.read():
            raise SystemExit("FAIL cupy: no communicator of ours is mapped in this process: cupy used another library")


class Ranks:
    """Those of all `size` ranks that live in this process: [(rank, communicator, device)]."""

    def __init__(self, size, members):
        self.size, self.members = size, members
        devices = [device for _, _, device in members]
        # On one stream a rank would wait for another one that stands behind it there.
        self.shared = len(set(devices)) < len(devices)
        self.streams = {rank: self.stream(device) for rank, _, device in members}

    def stream(self, device):
        with cupy.cuda.Device(device):
            return cupy.cuda.Stream(non_blocking=True) if self.shared else cupy.cuda.Stream.null

    def synchronize(self):
        for _, _, device in self.members:
            with cupy.cuda.Device(device):
                cupy.cuda.Device().synchronize()

    def together(self, call):
        """call(rank, communicator, stream) for each, in a group; then waits."""
        if self.shared:
            self.synchronize()
        nccl.groupStart()
        for rank, communicator, device in self.members:
            with cupy.cuda.Device(device):
                call(rank, communicator, self.streams[rank].ptr)
        nccl.groupEnd()
        self.synchronize()

    def buffers(self, make):
        made = {}
        for rank, _, device in self.members:
            with cupy.cuda.Device(device):
                made[rank] = make(rank)
        return made

    def compare(self, got, wanted, what):
        for rank, _, device in self.members:
            with cupy.cuda.Device(device):
                expect(got[rank], wanted(rank), f"{what}, rank {rank}")


def check_all(ranks):
    size = ranks.size
    for kind, number in kinds:
        send = ranks.buffers(lambda r: values(r, kind))
        total = lambda _: sum(values(r, kind) for r in range(size))
        got = ranks.buffers(lambda r: cupy.zeros(count, kind))

        def call(name, *rest):
            return lambda r, c, s: getattr(c, name)(send[r].data.ptr, got[r].data.ptr, *rest, s)

        ranks.together(call("allReduce", count, number, nccl.NCCL_SUM))
        ranks.compare(got, total, f"allReduce {kind.__name__}")
        ranks.together(call("allReduce", count, number, nccl.NCCL_MAX))
        ranks.compare(got, lambda _: cupy.stack([values(r, kind) for r in range(size)]).max(0), "allReduce, max")
        ranks.together(call("broadcast", count, number, size - 1))
        ranks.compare(got, lambda _: values(size - 1, kind), f"broadcast {kind.__name__}")
        ranks.together(call("reduce", count, number, nccl.NCCL_SUM, 0))
        if 0 in got:
            with cupy.cuda.Device(ranks.members[0][2]):
                expect(got[0], total(0), f"reduce {kind.__name__}")
        got = ranks.buffers(lambda r: cupy.zeros(count * size, kind))
        ranks.together(call("allGather", count, number))
        ranks.compare(got, lambda _: cupy.concatenate([values(r, kind) for r in range(size)]), "allGather")
        send = ranks.buffers(lambda r: values(r, kind, count * size))
        got = ranks.buffers(lambda r: cupy.zeros(count, kind))
        ranks.together(call("reduceScatter", count, number, nccl.NCCL_SUM))
        part = lambda r: sum(values(o, kind, count * size)[r * count : (r + 1) * count] for o in range(size))
        ranks.compare(got, part, f"reduceScatter {kind.__name__}")

        def ring(r, c, s):
            c.send(send[r].data.ptr, count, number, (r + 1) % size, s)
            c.recv(got[r].data.ptr, count, number, (r - 1) % size, s)

        ranks.together(ring)
        ranks.compare(got, lambda r: values((r - 1) % size, kind), f"send and recv {kind.__name__}")
    for rank, communicator, _ in ranks.members:
        seen = communicator.rank_id(), communicator.size()
        if seen != (rank, size):
            raise SystemExit(f"FAIL cupy: rank_id and size are {seen} instead of {(rank, size)}")
        communicator.check_async_error()
    check_in_use()
