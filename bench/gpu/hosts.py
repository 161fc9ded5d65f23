"""GPUs of two hosts, which one machine plays: our library and NVIDIA's in turns, and the ratios of their times.

    bench/gpu/hosts.py [--through calls|torch] [--ranks 2] [--rounds 2] [--operations NAME,NAME] [SIZE...]

Through NCCL's C interface, or through PyTorch, whose calls take longer than many an operation. Sizes in bytes; from a checkout or bundle whose bin/ is in the PATH. NVIDIA's library runs twice a round: as it is, and
with four threads of four sockets; ours once more by rings alone where hosts have several GPUs. Of each the best round
counts. "calls" is the time that the calls took the caller's thread, ours and NVIDIA's library as it is: where it is near
the whole time, that says little of the network.
"""

import argparse
import collections
import json
import os
import subprocess
import sys
import tempfile

SIZES = ["8", "1024", "65536", "262144", "1048576", "4194304", "16777216", "268435456"]
HERE = os.path.dirname(os.path.abspath(__file__))
OURS = os.path.join(HERE, "..", "..", "build", "libnccl.so.2")
SOCKETS = ["-x", "NCCL_IB_DISABLE=1"]
FOUR = ["-x", "NCCL_NSOCKS_PERTHREAD=4", "-x", "NCCL_SOCKET_NTHREADS=4"]


def variants(ranks):
    """By label: the launcher's words, and its environment."""
    ours = {"ours": (["--engine", "ncclrun"], {})}
    if ranks > 2:
        ours["rings"] = (["--engine", "ncclrun"], {"NCCL_ALGO": "ring"})
    return ours | {"nccl": (SOCKETS, {}), "nccl 4x4": ([*SOCKETS, *FOUR], {})}


def library_of(label):
    """The path of the library that a job of that label loads."""
    if not label.startswith("nccl"):
        return OURS
    import nvidia.nccl  # of the package that PyTorch brings

    return os.path.join(nvidia.nccl.__path__[0], "lib", "libnccl.so.2")


def rows_of(label, words, environment, options):
    job = ["ncclrun", "--simulate-hosts", "2", "-n", str(options.ranks), "--tag-output=none", *words]
    program = [sys.executable, os.path.join(HERE, options.through, "hosts.py"), "--operations", options.operations]
    with tempfile.TemporaryDirectory() as directory:
        if options.through == "calls":
            program += [library_of(label), os.path.join(directory, "id")]
        command = [*job, *program, label, *options.sizes]
        result = subprocess.run(command, check=True, stdout=subprocess.PIPE, text=True, env=os.environ | environment)
    for line in filter(lambda text: text.startswith("{"), result.stdout.splitlines()):
        row = json.loads(line)
        if not row["right"]:
            sys.exit(f"wrong: {line}")
        yield row


def main():
    parser = argparse.ArgumentParser()
    parser.add_argument("--through", choices=["calls", "torch"], default="calls")
    parser.add_argument("--ranks", type=int, default=2)
    parser.add_argument("--rounds", type=int, default=2)
    parser.add_argument("--operations", default="all_reduce,all_gather,reduce_scatter,sendrecv,alltoall")
    parser.add_argument("sizes", nargs="*", default=SIZES)
    options = parser.parse_args()
    best, calls = collections.defaultdict(dict), collections.defaultdict(dict)
    for _ in range(options.rounds):
        for label, (words, environment) in variants(options.ranks).items():
            for row in rows_of(label, words, environment, options):
                for times, value in ((best, row["us"]), (calls, row["calls"])):
                    least = times[row["operation"], row["bytes"]]
                    least[label] = min(least.get(label, value), value)
    others = [label for label in variants(options.ranks) if label != "ours"]
    names = {"rings": "our rings'", "nccl": "NCCL's", "nccl 4x4": "NCCL's with 4 × 4 sockets"}
    ratios = " | ".join(f"÷ {names[label]}" for label in others)
    print(f"| operation | bytes | ours µs | {ratios} | calls, ours and NCCL's |")
    print("| --- " + "| ---: " * (len(others) + 3) + "|")
    for (operation, size), times in best.items():
        ratios = " | ".join(f"{times['ours'] / times[label]:.2f}" for label in others)
        of_calls = " and ".join(str(calls[operation, size][label]) for label in ("ours", "nccl"))
        print(f"| {operation} | {size} | {times['ours']} | {ratios} | {of_calls} |")


main()
