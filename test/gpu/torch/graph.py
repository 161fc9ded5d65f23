"""Collectives captured in CUDA graphs and replayed, with ordinary ones in between."""

import torch
import torch.distributed as dist
from common import device, expect_equal, on_gpu, rank, run, size, values


def captured(count, operation):
    """A graph of operation(send, receive), and its two tensors."""
    send = torch.zeros(count * size(), device=device())
    receive = torch.zeros(count * size(), device=device())
    side = torch.cuda.Stream()
    side.wait_stream(torch.cuda.current_stream())
    with torch.cuda.stream(side):
        operation(send, receive)  # what is done once only must not be captured
    torch.cuda.current_stream().wait_stream(side)
    torch.cuda.synchronize()
    graph = torch.cuda.CUDAGraph()
    with torch.cuda.graph(graph):
        operation(send, receive)
    return graph, send, receive


def all_reduce(count):
    def operation(send, receive):
        receive.copy_(send)
        dist.all_reduce(receive)

    graph, send, receive = captured(count, operation)
    length = count * size()
    for replay in range(100):
        send.copy_(values(length, rank() + replay, torch.float32))
        graph.replay()
        if replay % 10 == 0:
            wanted = sum(values(length, r + replay, torch.float32) for r in range(size()))
            expect_equal(receive, wanted, f"replay {replay} of all_reduce of {length}")
        if replay % 7 == 0:
            tensor = values(1000, rank(), torch.float32)
            dist.all_reduce(tensor)
            wanted = sum(values(1000, r, torch.float32) for r in range(size()))
            expect_equal(tensor, wanted, f"all_reduce behind replay {replay}")


def chain(count):
    """Several collectives in one graph; what one makes the next takes."""

    def operation(send, receive):
        part = torch.empty(count, device=device())
        dist.reduce_scatter_tensor(part, send)
        dist.all_gather_into_tensor(receive, part)
        dist.all_reduce(receive)
        receive.div_(size())
        if size() == 1:
            return
        for work in dist.batch_isend_irecv(
            [
                dist.P2POp(dist.isend, receive[:count].clone(), (rank() + 1) % size()),
                dist.P2POp(dist.irecv, receive[:count], (rank() - 1) % size()),
            ]
        ):
            work.wait()

    graph, send, receive = captured(count, operation)
    length = count * size()
    for replay in range(100):
        send.copy_(values(length, rank() + replay, torch.float32))
        graph.replay()
    wanted = sum(values(length, r + 99, torch.float32) for r in range(size()))
    expect_equal(receive, wanted, f"100 replays of a chain of collectives of {length}")


def body():
    if not on_gpu:
        return
    for count in (2, 5000, 1_000_000):
        all_reduce(count)
        chain(count)


if __name__ == "__main__":
    run("graph", body)
