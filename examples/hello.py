#!/usr/bin/env python3
"""Every rank says who it is.

    npx ncclrun -n 4 examples/hello.py
"""
import os
import platform

rank, size = int(os.environ["RANK"]), int(os.environ["WORLD_SIZE"])
local, here = int(os.environ["LOCAL_RANK"]), int(os.environ["LOCAL_WORLD_SIZE"])
print(f"hello from rank {rank} of {size}, number {local} of {here} on {platform.node()}")
