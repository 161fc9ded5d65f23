"""A rank is killed while the others wait for it: each of them ends by itself, and says that another rank was lost.

    abort.py N    with our library in LD_PRELOAD; starts the ranks itself, since a launcher would end the others too
"""

import os
import signal
import socket
import subprocess
import sys


def be_rank():
    import torch
    import torch.distributed as dist
    from common import begin, check_in_use, device, rank, size

    begin()
    tensor = torch.ones(1000, device=device())
    dist.all_reduce(tensor)
    torch.cuda.synchronize()
    check_in_use()
    print("ready", flush=True)
    if rank() == size() - 1:
        signal.pause()  # never comes to the next one
    while True:  # until the loss is told: by the call, or by torch's watchdog
        dist.all_reduce(tensor)
        torch.cuda.synchronize()


def start(rank, size, port, program=__file__):
    environment = dict(
        os.environ,
        RANK=str(rank),
        LOCAL_RANK=str(rank),
        WORLD_SIZE=str(size),
        LOCAL_WORLD_SIZE=str(size),
        MASTER_ADDR="127.0.0.1",
        MASTER_PORT=str(port),
        TORCH_NCCL_ASYNC_ERROR_HANDLING="1",
        TORCH_NCCL_DUMP_ON_TIMEOUT="0",
    )
    return subprocess.Popen(
        [sys.executable, os.path.abspath(program)],
        env=environment,
        stdin=subprocess.PIPE,
        stdout=subprocess.PIPE,
        stderr=subprocess.PIPE,
        text=True,
    )


def free_port():
    with socket.socket() as free:
        free.bind(("127.0.0.1", 0))
        return free.getsockname()[1]


def main(size):
    port = free_port()
    ranks = [start(rank, size, port) for rank in range(size)]
    complaints = []
    try:
        for number, process in enumerate(ranks):
            line = process.stdout.readline().strip()
            if line != "ready":
                process.kill()
                sys.exit(f"FAIL abort: rank {number} said {line!r} first: {process.stderr.read()[-2000:]}")
        ranks[-1].send_signal(signal.SIGKILL)
        for number, process in enumerate(ranks[:-1]):
            said, complained = process.communicate()  # the runner's limit ends a wait without end
            if process.returncode == 0:
                complaints.append(f"rank {number} ended as if nothing had happened: {said}")
            elif "remote" not in complained.lower():
                complaints.append(f"rank {number} (status {process.returncode}) names no lost rank: {complained[-2000:]}")
    finally:
        for process in ranks:
            process.kill()
    if complaints:
        sys.exit("FAIL abort: " + "\n".join(complaints))
    print("PASS abort")


if __name__ == "__main__":
    if "RANK" in os.environ:
        be_rank()
    else:
        main(int(sys.argv[1]))
