"""Several topics one after another in one process group: together.py TOPIC…"""

import importlib
import sys

from common import rank, run, synchronize


def body():
    for topic in sys.argv[1:]:
        importlib.import_module(topic).body()
        synchronize()
        if rank() == 0:
            print(f"PASS {topic}", flush=True)


if __name__ == "__main__":
    run("together", body)
