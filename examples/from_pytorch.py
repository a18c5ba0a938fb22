"""From a PyTorch module to a board: export, quantize, report, compile, run.

    python examples/from_pytorch.py                 the golden model, without hardware
    python examples/from_pytorch.py /dev/ttyUSB1    a board
"""

import io
import sys

import numpy as np
import torch

import weft
from weft.models.onnx.quantize import Feeds, prepare, quantize


def main(port=None):
    torch.manual_seed(1)
    module = torch.nn.Sequential(
        torch.nn.Conv2d(1, 8, 3), torch.nn.ReLU(), torch.nn.Flatten(), torch.nn.Linear(288, 10)
    ).eval()  # your module, trained
    samples = np.random.default_rng(1).random((64, 1, 8, 8), np.float32)  # your data

    file = io.BytesIO()
    torch.onnx.export(
        module, torch.from_numpy(samples[:1]), file, input_names=["x"], dynamo=False,
        dynamic_axes={"x": {0: "batch"}},
    )
    model = prepare(file.getvalue(), "net.onnx")
    int8 = quantize(model, "net.onnx", Feeds({"x": samples}, model, "samples"), method="min-max")
    network = weft.load(int8, "net")
    print(network.report("ulx3s-85f"))

    program = network.compile("ulx3s-85f")
    with program.open(port or "golden") as session:
        y = session(samples)
    wanted = module(torch.from_numpy(samples)).detach().numpy()
    print(f"top-1 agrees in {np.mean(y.argmax(1) == wanted.argmax(1)):.1%} of {len(y)} samples")
    return y, wanted


if __name__ == "__main__":
    main(*sys.argv[1:])
