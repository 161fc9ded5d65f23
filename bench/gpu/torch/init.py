"""How long PyTorch takes to join a process group with a device id, which makes its communicator at once, and for the
first all_reduce: NVIDIA's library and ours in turn, in fresh processes that have a CUDA context already.

    init.py RANKS OURS [ROUNDS]    OURS: the path of our libnccl.so.2
"""

import os
import socket
import statistics
import subprocess
import sys
import time


def be_rank():
    import torch
    import torch.distributed as dist

    rank = int(os.environ["RANK"])
    device = torch.device("cuda", rank)
    torch.cuda.set_device(device)
    tensor = torch.ones(2, device=device)
    torch.cuda.synchronize()
    store = dist.TCPStore(os.environ["MASTER_ADDR"], int(os.environ["MASTER_PORT"]), is_master=rank == 0)
    store.add("ready", 1)
    while int(store.add("ready", 0)) < int(os.environ["WORLD_SIZE"]):
        time.sleep(0.001)
    started = time.perf_counter()
    dist.init_process_group(
        "nccl", store=store, rank=rank, world_size=int(os.environ["WORLD_SIZE"]), device_id=device
    )
    joined = time.perf_counter()
    dist.all_reduce(tensor)
    torch.cuda.synchronize()
    ended = time.perf_counter()
    print(f"{joined - started:.3f} {ended - joined:.3f}", flush=True)
    os._exit(0)


def one(ranks, library):
    """The slowest rank's seconds: joining, first all_reduce."""
    with socket.socket() as probe:
        probe.bind(("127.0.0.1", 0))
        port = probe.getsockname()[1]
    environment = dict(os.environ, MASTER_ADDR="127.0.0.1", MASTER_PORT=str(port), WORLD_SIZE=str(ranks))
    if library:
        environment["LD_PRELOAD"] = library
    processes = [
        subprocess.Popen(
            [sys.executable, __file__], env=dict(environment, RANK=str(rank)), stdout=subprocess.PIPE, text=True
        )
        for rank in range(ranks)
    ]
    said = [process.communicate(timeout=60)[0].split() for process in processes]
    return [max(float(words[i]) for words in said) for i in range(2)]


def main():
    ranks, ours = int(sys.argv[1]), os.path.abspath(sys.argv[2])
    rounds = int(sys.argv[3]) if len(sys.argv) > 3 else 5
    seconds = {"ours": [], "theirs": []}
    for _ in range(rounds):
        for name, library in (("ours", ours), ("theirs", None)):
            seconds[name].append(one(ranks, library))
    median = {name: [statistics.median(times) for times in zip(*all)] for name, all in seconds.items()}
    for i, what in enumerate(("init_process_group with device_id", "first all_reduce")):
        ours, theirs = median["ours"][i], median["theirs"][i]
        print(f"{what}: ours {ours:.3f} s, theirs {theirs:.3f}, ratio {ours / theirs:.2f}")
    print(seconds)


if "RANK" in os.environ:
    be_rank()
else:
    main()
