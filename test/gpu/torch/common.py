"""What every torch test begins with: a process group of all ranks, and proof that our library is the one in use.

TEST_DEVICE=cpu runs the same tests with gloo, to try the tests themselves where there is no GPU; TEST_LIBRARY=theirs
runs them on the library that torch brings.
"""

import ctypes
import os
import sys
import traceback
import zlib

import torch
import torch.distributed as dist

on_gpu = os.environ.get("TEST_DEVICE", "cuda") == "cuda"
on_ours = on_gpu and os.environ.get("TEST_LIBRARY", "ours") == "ours"


class Failed(Exception):
    """A sentence that says what is wrong."""


def rank():
    return dist.get_rank()


def size():
    return dist.get_world_size()


def device():
    if not on_gpu:
        return torch.device("cpu")
    return torch.device("cuda", int(os.environ["LOCAL_RANK"]) % torch.cuda.device_count())


def read_launcher():
    """mpirun sets names of its own; a port for the store follows from its job."""
    ours = {"RANK": "RANK", "WORLD_SIZE": "SIZE", "LOCAL_RANK": "LOCAL_RANK", "LOCAL_WORLD_SIZE": "LOCAL_SIZE"}
    for name, theirs in ours.items():
        value = os.environ.get("OMPI_COMM_WORLD_" + theirs)
        if value is not None:
            os.environ.setdefault(name, value)
    if "RANK" not in os.environ:
        raise Failed("no launcher: start it by ncclrun, torchrun or mpirun")
    job = os.environ.get("PMIX_NAMESPACE", str(os.getppid()))
    os.environ.setdefault("MASTER_ADDR", "127.0.0.1")
    os.environ.setdefault("MASTER_PORT", str(20000 + zlib.crc32(job.encode()) % 12000))


class Symbol(ctypes.Structure):
    _fields_ = [
        ("file", ctypes.c_char_p),
        ("base", ctypes.c_void_p),
        ("name", ctypes.c_char_p),
        ("address", ctypes.c_void_p),
    ]


def library_of(function):
    """The file in which the process finds a function by its name, as torch's own libraries do."""
    everything = ctypes.CDLL(None)
    try:
        address = ctypes.cast(getattr(everything, function), ctypes.c_void_p)
    except AttributeError:
        return None
    found = Symbol()
    everything.dladdr.argtypes = [ctypes.c_void_p, ctypes.POINTER(Symbol)]
    if everything.dladdr(address, ctypes.byref(found)) == 0:
        return None
    return os.path.realpath(found.file.decode())


def check_library():
    """Before the first collective: the names lead to our library."""
    if not on_ours:
        return
    for function in ("ncclAllReduce", "ncclCommInitRankConfig", "ncclrunVersion"):
        where = library_of(function)
        if where is None:
            raise Failed(f"{function} is nowhere in this process: our library is not preloaded")
        home = os.environ.get("NCCLRUN_HOME")
        if home and where != os.path.realpath(os.path.join(home, "build/libnccl.so.2")):
            raise Failed(f"{function} is that of {where}, not of {home}/build/libnccl.so.2")
    version = torch.cuda.nccl.version()
    if tuple(version[:2]) < (2, 28):
        raise Failed(f"torch.cuda.nccl.version() is {version}")


def check_in_use():
    """Behind a collective: the memory of our communicators is mapped, and nobody else's library has been called."""
    if not on_ours:
        return
    with open("/proc/self/maps", encoding="utf8") as file:
        maps = file.read()
    if "memfd:ncclrun-segment" not in maps:
        raise Failed("no communicator of ours is mapped in this process: torch used another library")


def begin(bound=False):
    """bound: to this rank's GPU, so that the communicator is made at once and groups are splits of it."""
    read_launcher()
    if on_gpu:
        torch.cuda.set_device(device())
    check_library()
    options = {"device_id": device()} if bound and on_gpu else {}
    dist.init_process_group("nccl" if on_gpu else "gloo", **options)


def agree(sentence):
    """All ranks fail if one has: else the others wait for it."""
    sentences = [None] * size()
    dist.all_gather_object(sentences, sentence)
    for number, one in enumerate(sentences):
        if one is not None:
            raise Failed(f"rank {number}: {one}")


def run(name, body, prepare=begin):
    """Runs body() on all ranks and ends the process: rank 0 prints PASS, or every rank that knows says what failed."""
    try:
        prepare()
        body()
        synchronize()
        check_in_use()
        agree(None)
        first = rank() == 0
        dist.destroy_process_group()
        if first:
            print(f"PASS {name}", flush=True)
    except Failed as failure:
        print(f"FAIL {name}: {failure}", file=sys.stderr, flush=True)
        os._exit(1)
    except Exception:
        print(f"FAIL {name}: rank {os.environ.get('RANK')}: {traceback.format_exc()}", file=sys.stderr, flush=True)
        os._exit(1)


def synchronize():
    if on_gpu:
        torch.cuda.synchronize()


floating = [torch.float32, torch.float64, torch.float16, torch.bfloat16]
whole = [torch.uint8, torch.int8, torch.int32, torch.int64]
float8 = [torch.float8_e4m3fn, torch.float8_e5m2]
counts = [1, 7, 1024, 100_003]


def values(count, of_rank, kind, most=5):
    """Small whole numbers from 1 to `most`, exact in every type; each rank and place has its own."""
    place = torch.arange(count, device=device())
    return ((place * 7 + of_rank * 3) % most + 1).to(torch.float32).to(kind)


def expect_equal(got, wanted, what):
    got, wanted = got.detach().cpu(), wanted.detach().cpu()
    if got.shape != wanted.shape:
        raise Failed(f"{what}: shape {tuple(got.shape)} instead of {tuple(wanted.shape)}")
    got, wanted = got.to(torch.float64).flatten(), wanted.to(torch.float64).flatten()
    wrong = (got != wanted).nonzero().flatten()
    if wrong.numel() > 0:
        first = int(wrong[0])
        raise Failed(
            f"{what}: {wrong.numel()} of {got.numel()} elements are wrong at rank {rank()}; "
            f"[{first}] is {float(got[first])} instead of {float(wanted[first])}"
        )


def expect_close(got, wanted, tolerance, what):
    got, wanted = got.detach().double().cpu(), wanted.detach().double().cpu()
    apart = float((got - wanted).abs().max() / wanted.abs().max().clamp(min=1e-30))
    if not apart <= tolerance:
        raise Failed(f"{what}: {apart:g} apart at rank {rank()}, more than {tolerance:g}")
