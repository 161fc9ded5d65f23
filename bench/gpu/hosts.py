"""GPUs of two hosts, which one machine plays: our library and NVIDIA's in turns, and the ratios of their times.

    bench/gpu/hosts.py [--ranks 2] [--rounds 2] [--operations NAME,NAME] [SIZE...]

Sizes in bytes; from a checkout or bundle whose bin/ is in the PATH. NVIDIA's library runs twice a round: as it is, and
with four threads of four sockets; ours once more by rings alone where hosts have several GPUs. Of each the best round
counts.
"""

import argparse
import collections
import json
import os
import subprocess
import sys

SIZES = ["8", "1024", "65536", "262144", "1048576", "4194304", "16777216", "268435456"]
PROGRAM = os.path.join(os.path.dirname(os.path.abspath(__file__)), "torch", "hosts.py")
SOCKETS = ["-x", "NCCL_IB_DISABLE=1"]
FOUR = ["-x", "NCCL_NSOCKS_PERTHREAD=4", "-x", "NCCL_SOCKET_NTHREADS=4"]


def variants(ranks):
    """By label: the launcher's words, and its environment."""
    ours = {"ours": (["--engine", "ncclrun"], {})}
    if ranks > 2:
        ours["rings"] = (["--engine", "ncclrun"], {"NCCL_ALGO": "ring"})
    return ours | {"nccl": (SOCKETS, {}), "nccl 4x4": ([*SOCKETS, *FOUR], {})}


def rows_of(label, words, environment, options):
    job = ["ncclrun", "--simulate-hosts", "2", "-n", str(options.ranks), "--tag-output=none", *words]
    program = [sys.executable, PROGRAM, "--operations", options.operations, label, *options.sizes]
    result = subprocess.run([*job, *program], check=True, stdout=subprocess.PIPE, text=True, env=os.environ | environment)
    for line in filter(lambda text: text.startswith("{"), result.stdout.splitlines()):
        row = json.loads(line)
        if not row["right"]:
            sys.exit(f"wrong: {line}")
        yield row


def main():
    parser = argparse.ArgumentParser()
    parser.add_argument("--ranks", type=int, default=2)
    parser.add_argument("--rounds", type=int, default=2)
    parser.add_argument("--operations", default="all_reduce,all_gather,reduce_scatter,sendrecv,alltoall")
    parser.add_argument("sizes", nargs="*", default=SIZES)
    options = parser.parse_args()
    best = collections.defaultdict(dict)
    for _ in range(options.rounds):
        for label, (words, environment) in variants(options.ranks).items():
            for row in rows_of(label, words, environment, options):
                times = best[row["operation"], row["bytes"]]
                times[label] = min(times.get(label, row["us"]), row["us"])
    others = [label for label in variants(options.ranks) if label != "ours"]
    names = {"rings": "our rings'", "nccl": "NCCL's", "nccl 4x4": "NCCL's with 4 × 4 sockets"}
    print("| operation | bytes | ours µs | " + " | ".join(f"÷ {names[label]}" for label in others) + " |")
    print("| --- " + "| ---: " * (len(others) + 2) + "|")
    for (operation, size), times in best.items():
        ratios = " | ".join(f"{times['ours'] / times[label]:.2f}" for label in others)
        print(f"| {operation} | {size} | {times['ours']} | {ratios} |")


main()
