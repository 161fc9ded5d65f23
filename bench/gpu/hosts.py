"""GPUs of two hosts, which one machine plays: our library and NVIDIA's in turns, and the ratios of their times.

    bench/gpu/hosts.py [ROUNDS [SIZE...]]    sizes in bytes; from a checkout or bundle whose bin/ is in the PATH

NVIDIA's library runs twice a round: as it is, and with four threads of four sockets. Of each the best round counts.
"""

import collections
import json
import os
import subprocess
import sys

SIZES = ["8", "1024", "65536", "262144", "1048576", "4194304", "16777216", "268435456"]
PROGRAM = os.path.join(os.path.dirname(os.path.abspath(__file__)), "torch", "hosts.py")
JOB = ["ncclrun", "--simulate-hosts", "2", "-n", "2", "--tag-output=none"]
SOCKETS = ["-x", "NCCL_IB_DISABLE=1"]
FOUR = ["-x", "NCCL_NSOCKS_PERTHREAD=4", "-x", "NCCL_SOCKET_NTHREADS=4"]
VARIANTS = {"ours": ["--engine", "ncclrun"], "nccl": SOCKETS, "nccl 4x4": [*SOCKETS, *FOUR]}


def main():
    rounds = int(sys.argv[1]) if len(sys.argv) > 1 else 2
    sizes = sys.argv[2:] or SIZES
    best = collections.defaultdict(dict)
    for _ in range(rounds):
        for label, options in VARIANTS.items():
            words = [*JOB, *options, sys.executable, PROGRAM, label, *sizes]
            lines = subprocess.run(words, check=True, stdout=subprocess.PIPE, text=True).stdout.splitlines()
            for line in filter(lambda text: text.startswith("{"), lines):
                row = json.loads(line)
                if not row["right"]:
                    sys.exit(f"wrong: {line}")
                times = best[row["operation"], row["bytes"]]
                times[label] = min(times.get(label, row["us"]), row["us"])
    print("| operation | bytes | ours µs | ÷ NCCL's | ÷ NCCL's with 4 × 4 sockets |")
    print("| --- | ---: | ---: | ---: | ---: |")
    for (operation, size), times in best.items():
        ours = times["ours"]
        ratios = f"{ours / times['nccl']:.2f} | {ours / times['nccl 4x4']:.2f}"
        print(f"| {operation} | {size} | {ours} | {ratios} |")


main()
