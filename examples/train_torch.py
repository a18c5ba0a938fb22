"""Training in PyTorch with the products on a core, forward and backward.

    python examples/train_torch.py                          the golden model, without hardware
    python examples/train_torch.py tcp://10.0.0.5:7001      a board with a bf16 core

A convolution network for digits is trained in BF16 on the core, with weights of float32.
"""

import sys

import numpy as np
import torch

import weft.torch
from weft import Accelerator, Config
from weft.demo import digits_images
from weft.host import GoldenTransport

TRAINING = Config(dtype="bf16", rows=8, cols=8, lanes=4)
STEPS, BATCH = 60, 50


class Network(torch.nn.Module):
    """Two convolutions and a dense layer."""

    def __init__(self):
        super().__init__()
        self.conv1 = torch.nn.Conv2d(1, 8, 3, padding=1)
        self.conv2 = torch.nn.Conv2d(8, 16, 3, stride=2, padding=1)
        self.dense = torch.nn.Linear(256, 10)

    def forward(self, x):
        x = self.conv2(self.conv1(x).relu()).relu()
        return self.dense(x.flatten(1))


def digits():
    """Images [450, 1, 8, 8] of 0 to 1, and their labels; the last 50 are for the test."""
    images, labels = digits_images()
    images = np.asarray(images, np.float32).reshape(-1, 1, 8, 8)
    return torch.tensor(images), torch.tensor(np.asarray(labels, np.int64))


def main(place=None):
    torch.manual_seed(1)
    images, labels = digits()
    order, network = torch.randperm(400), Network()
    with Accelerator(place or GoldenTransport(TRAINING)) as accelerator:
        on_core = torch.compile(
            network, backend="weft", options={"accelerator": accelerator}, fullgraph=True
        )
        optimizer = torch.optim.Adam(network.parameters(), 0.005)
        for step in range(STEPS):
            batch = order[step * BATCH % 400 :][:BATCH]
            optimizer.zero_grad()
            loss = torch.nn.functional.cross_entropy(on_core(images[batch]), labels[batch])
            loss.backward()
            optimizer.step()
            if step % 20 == 0:
                print(f"step {step}: loss {loss.item():.2f}")
        report = weft.torch.report(accelerator)
        print(report)
        with torch.no_grad():
            correct = (on_core(images[400:]).argmax(1) == labels[400:]).float().mean().item()
    print(f"{correct:.0%} of 50 new images are correct")
    return report, loss.item(), correct


if __name__ == "__main__":
    main(*sys.argv[1:])
