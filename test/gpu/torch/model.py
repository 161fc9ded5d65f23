"""A small network, and its training in one process: what parallel training is compared with."""

import torch
from common import device

width, batch, steps = 256, 64, 5


def network():
    torch.manual_seed(3)
    layers = [torch.nn.Linear(width, 2 * width), torch.nn.GELU(), torch.nn.Linear(2 * width, width), torch.nn.GELU()]
    return torch.nn.Sequential(*layers, torch.nn.Linear(width, 10)).to(device())


def data():
    generator = torch.Generator().manual_seed(5)
    inputs = torch.randn(steps, batch, width, generator=generator)
    targets = torch.randint(0, 10, (steps, batch), generator=generator)
    return inputs.to(device()), targets.to(device())


def optimizer_of(model):
    return torch.optim.SGD(model.parameters(), lr=0.1, momentum=0.9)


def train(model, part, parts):
    """Losses of the steps, each over this part of the batch."""
    optimizer = optimizer_of(model)
    inputs, targets = data()
    share = batch // parts
    losses = []
    for step in range(steps):
        mine = slice(part * share, (part + 1) * share)
        optimizer.zero_grad()
        loss = torch.nn.functional.cross_entropy(model(inputs[step, mine]), targets[step, mine])
        loss.backward()
        optimizer.step()
        losses.append(loss.detach())
    return torch.stack(losses)
