"""send, recv, their asynchronous forms, and several at a time."""

import torch
import torch.distributed as dist
from common import counts, device, expect_equal, float8, floating, on_gpu, rank, run, size, values, whole

kinds = floating + whole + (float8 if on_gpu else [])


def empty(count, kind):
    return torch.zeros(count, dtype=torch.float32, device=device()).to(kind)


def pairs():
    """Every rank to every other, one pair at a time."""
    for kind in kinds:
        for sender in range(size()):
            for receiver in range(size()):
                if sender == receiver:
                    continue
                if rank() == sender:
                    dist.send(values(1000, sender, kind), receiver)
                if rank() == receiver:
                    got = empty(1000, kind)
                    dist.recv(got, sender)
                    expect_equal(got, values(1000, sender, kind), f"{kind} from {sender} to {receiver}")


def ring():
    if size() == 1:
        return
    following, previous = (rank() + 1) % size(), (rank() - 1) % size()
    for kind in kinds:
        for count in counts:
            got = empty(count, kind)
            operations = [
                dist.P2POp(dist.isend, values(count, rank(), kind), following),
                dist.P2POp(dist.irecv, got, previous),
            ]
            for work in dist.batch_isend_irecv(operations):
                work.wait()
            expect_equal(got, values(count, previous, kind), f"batch_isend_irecv {kind} {count}")


def everyone():
    """A batch to and from all, several messages per pair, which keep their order."""
    got = [[empty(500 + k, torch.float32) for k in range(3)] for _ in range(size())]
    operations = []
    for peer in range(size()):
        for k in range(3 if peer != rank() else 0):
            operations.append(dist.P2POp(dist.isend, values(500 + k, rank() + k, torch.float32), peer))
            operations.append(dist.P2POp(dist.irecv, got[peer][k], peer))
    for work in dist.batch_isend_irecv(operations) if operations else []:
        work.wait()
    for peer in range(size()):
        for k in range(3):
            if peer != rank():
                expect_equal(got[peer][k], values(500 + k, peer + k, torch.float32), f"message {k} from {peer}")


def pipeline():
    """isend and irecv along a chain, many times, large and small in turn."""
    for step in range(20):
        count = 200_000 if step % 2 else 10
        tensor = values(count, step, torch.float32)
        if rank() > 0:
            got = empty(count, torch.float32)
            dist.irecv(got, rank() - 1).wait()
            expect_equal(got, tensor + rank() - 1, f"step {step} of the chain")
            tensor = got + 1
        if rank() < size() - 1:
            dist.isend(tensor, rank() + 1).wait()


def body():
    pairs()
    ring()
    everyone()
    pipeline()


if __name__ == "__main__":
    run("point_to_point", body)
