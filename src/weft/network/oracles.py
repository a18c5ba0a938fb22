"""Compares the outputs of a network with its runtime's outputs, byte by byte."""

from dataclasses import dataclass

import numpy as np

from weft.network.errors import ModelError
from weft.network.inputs import read_inputs
from weft.network.loading import NeuralNetwork
from weft.network.program import Program

__all__ = ["ORACLES", "Difference", "compare", "expected"]

# By the name of a check: the runtime, and the files that it runs.
ORACLES = {
    "tflm": ("TFLite Micro", "tflite"), "litert": ("LiteRT", "tflite"),
    "ort": ("onnxruntime", "onnx"),
}


@dataclass(frozen=True)
class Difference:
    """The difference between an output and the runtime's output.

    Attributes
    ----------
    name : str
        Name of the output.
    size : int
        Number of values.
    different : int
        Number of values with other bits.
    largest : float
        Largest difference of two values.
    """

    name: str
    size: int
    different: int
    largest: float


def expected(oracle: str, network: NeuralNetwork, program: Program, x) -> list[np.ndarray]:
    """Return the outputs of a runtime, inferences joined along the first axis.

    ``x`` is as for a session. Raises ModelError if the runtime cannot run such files, or is not
    installed.
    """
    runtime, source = ORACLES[oracle]
    if network.graph.source != source:
        raise ModelError(
            f"{network.name}: {runtime} runs .{source} files, not .{network.graph.source} files"
        )
    values, inferences, _ = read_inputs(program, x)
    feeds = [
        [np.ascontiguousarray(values[number][i]) for number in program.inputs]
        for i in range(inferences)
    ]
    if oracle == "tflm":
        if any(step.macs and program.tensors[step.inputs[0]].dtype == np.uint8
               for step in program.steps):
            raise ModelError(
                f"{network.name}: TFLite Micro has no products of uint8; check with litert"
            )
        from weft.network.tflite.oracle import tflm

        results = tflm(network.data, feeds, network.graph.tensors, len(program.outputs))
    elif oracle == "litert":
        from weft.network.tflite.oracle import litert

        results = litert(network.data, feeds)
    else:
        from weft.network.onnx.oracle import ort

        names = [program.tensors[number].name for number in program.inputs]
        results = ort(network.data, names, feeds)
    joined = [np.stack(outputs) for outputs in zip(*results, strict=True)]
    return [y[0] if len(y) == 1 else y.reshape(-1, *y.shape[2:]) for y in joined]


def compare(program: Program, outputs: list, wanted: list) -> list[Difference]:
    """Return how each output differs from the wanted one."""
    found = []
    for number, y, other in zip(program.outputs, outputs, wanted, strict=True):
        tensor = program.tensors[number]
        if y.dtype != other.dtype or y.size != other.size:
            raise ModelError(
                f"output {tensor.name} must be {other.dtype} {other.shape}, not {y.dtype} {y.shape}"
            )
        y, other = y.reshape(-1), other.reshape(-1)
        bits = f"u{y.dtype.itemsize}"
        different = np.ascontiguousarray(y).view(bits) != np.ascontiguousarray(other).view(bits)
        gaps = np.abs(y[different].astype(np.float64) - other[different].astype(np.float64))
        found.append(Difference(
            tensor.name, y.size, int(different.sum()), float(gaps.max(initial=0.0))
        ))
    return found
