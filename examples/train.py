#!/usr/bin/env python3
"""Data-parallel training as torch.distributed programs do it, with nothing but Python.

    npx ncclrun -n 4 examples/train.py --steps 200

ncclrun sets the variables that torchrun sets: RANK, WORLD_SIZE, MASTER_ADDR, MASTER_PORT and the others. So
torch.distributed.init_process_group("gloo") would do here what `Group` does by hand: rank 0 listens at the master's
address, all others connect to it, and the gradients of all ranks are averaged in every step.
"""
import argparse
import os
import random
import socket
import struct
import time


class Group:
    """All ranks of the job, by way of rank 0."""

    def __init__(self):
        self.rank, self.size = int(os.environ["RANK"]), int(os.environ["WORLD_SIZE"])
        address = (os.environ["MASTER_ADDR"], int(os.environ["MASTER_PORT"]))
        if self.rank == 0:
            family = socket.getaddrinfo(*address, type=socket.SOCK_STREAM)[0][0]
            with socket.create_server(("", address[1]), family=family, backlog=self.size) as server:
                self.peers = [server.accept()[0] for _ in range(self.size - 1)]
        else:
            self.peers = [connect(address)]

    def mean(self, values):
        """The mean of all ranks' values, element by element, the same at every rank."""
        form = struct.Struct(f"!{len(values)}d")
        if self.rank == 0:
            rows = [values] + [form.unpack(receive(peer, form.size)) for peer in self.peers]
            values = [sum(column) / self.size for column in zip(*rows)]
        for peer in self.peers:
            peer.sendall(form.pack(*values))
        return list(values) if self.rank == 0 else list(form.unpack(receive(self.peers[0], form.size)))


def connect(address):
    """Rank 0 may start later than we do."""
    while True:
        try:
            return socket.create_connection(address)
        except ConnectionRefusedError:
            time.sleep(0.01)


def receive(peer, size):
    data = b""
    while len(data) < size:
        piece = peer.recv(size - len(data))
        if not piece:
            raise SystemExit("another rank has gone")
        data += piece
    return data


def main():
    arguments = argparse.ArgumentParser()
    arguments.add_argument("--steps", type=int, default=200)
    arguments.add_argument("--lr", type=float, default=0.1)
    options = arguments.parse_args()

    group = Group()
    # Every rank has its own part of the data: points near the line y = 3x - 1.
    data = random.Random(group.rank)
    points = [(x, 3 * x - 1 + data.gauss(0, 0.1)) for x in (data.uniform(-1, 1) for _ in range(100))]

    slope = offset = 0.0
    for step in range(options.steps):
        errors = [(slope * x + offset - y, x) for x, y in points]
        loss = sum(error**2 for error, _ in errors) / len(errors)
        gradient = [2 * sum(error * x for error, x in errors) / len(errors), 2 * sum(error for error, _ in errors) / len(errors)]
        down, across, loss = group.mean([*gradient, loss])
        slope, offset = slope - options.lr * down, offset - options.lr * across
        if group.rank == 0 and (step + 1) % 50 == 0:
            print(f"step {step + 1}: loss {loss:.4f}, y = {slope:.2f}x {offset:+.2f}", flush=True)
    if abs(slope - 3) > 0.1 or abs(offset + 1) > 0.1:
        raise SystemExit(f"rank {group.rank} has not found the line: {slope:.3f}, {offset:.3f}")


main()
