"""One of two ranks aborts its process group while its operation waits for the other, which calls nothing: both end by
themselves, in order, and soon.

    abort_group.py    with our library in LD_PRELOAD; starts the ranks itself
"""

import os
import sys
import threading
import time

from abort import free_port, start

LIMIT = 5  # seconds, from the abort to the end of both


def be_rank():
    import torch
    import torch.distributed as dist
    from common import begin, check_in_use, device, rank

    begin()
    tensor = torch.ones(1000, device=device())
    dist.all_reduce(tensor)
    model = torch.nn.parallel.DistributedDataParallel(torch.nn.Linear(10, 10).to(device()))
    model(torch.ones(10, 10, device=device())).sum().backward()
    torch.cuda.synchronize()
    check_in_use()
    print("ready", flush=True)
    sys.stdin.readline()  # both are
    if rank() == 0:
        dist.all_reduce(tensor)
        group = dist.distributed_c10d._get_default_group()
        thread = threading.Thread(target=group._get_backend(device()).abort)
        thread.start()
        tensor.cpu()  # waits for the operation
        thread.join()
    print("done", flush=True)


def main():
    port = free_port()
    ranks = [start(rank, 2, port, __file__) for rank in range(2)]
    complaints = []
    try:
        for number, process in enumerate(ranks):
            line = process.stdout.readline().strip()
            if line != "ready":
                process.kill()
                sys.exit(f"FAIL abort_group: rank {number} said {line!r} first: {process.stderr.read()[-2000:]}")
        began = time.monotonic()
        for process in ranks:
            process.stdin.write("go\n")
            process.stdin.flush()
        for number, process in enumerate(ranks):
            said, complained = process.communicate()  # the runner's limit ends a wait without end
            if process.returncode != 0 or said.strip() != "done":
                complaints.append(f"rank {number} (status {process.returncode}) said {said!r}: {complained[-2000:]}")
        took = time.monotonic() - began
        if took > LIMIT:
            complaints.append(f"both ended after {took:.1f} s; {LIMIT} s are allowed")
    finally:
        for process in ranks:
            process.kill()
    if complaints:
        sys.exit("FAIL abort_group: " + "\n".join(complaints))
    print(f"PASS abort_group: {took:.1f} s")


if __name__ == "__main__":
    if "RANK" in os.environ:
        be_rank()
    else:
        main()
