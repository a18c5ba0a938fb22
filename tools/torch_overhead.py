"""Measures what a step of training costs besides the arithmetic of the core, with `weft.torch`.

    python -m tools.torch_overhead

It runs the steps of ``examples/train_torch.py`` in plain PyTorch, and with a core that answers at
once.
"""

import sys

from tools import overhead
from weft import Accelerator
from weft.torch import backend  # before torch: its error says how to install it

__all__ = ["main", "measure"]

ABOUT = """\
A step of the training in `examples/train_torch.py`: the loss of a convolution network, its
gradients, and a step of Adam whose rate is 0, so that each step has the same operands. `plain
PyTorch` computes it in float32 on one thread, operator by operator. `Weft` has its
"""


def measure(batch: int, runs: int = overhead.RUNS) -> dict[str, float]:
    """The times of steps with a batch: see `tools.overhead.measured`."""
    import torch

    torch.set_num_threads(1)  # threads that wait for work take processor time
    torch.manual_seed(1)
    module = overhead.example("torch")
    transport = overhead.Repeating(module.TRAINING)
    accelerator = Accelerator(transport)
    images, labels = (values[:batch] for values in module.digits())
    network = module.Network()
    optimizer = torch.optim.Adam(network.parameters(), 0.0)
    on_core = torch.compile(
        network, backend=backend, options={"accelerator": accelerator}, fullgraph=True
    )

    def run(model):
        def step():
            optimizer.zero_grad()
            torch.nn.functional.cross_entropy(model(images), labels).backward()
            optimizer.step()

        return step

    return overhead.measured(run(network), run(on_core), accelerator, transport, runs)


def main() -> int:
    """Print and record the times; return the exit code."""
    return overhead.recorded("torch", "PyTorch", ABOUT, measure)


if __name__ == "__main__":
    sys.exit(main())
