"""Compares the outputs of a network with those of its runtime: integers byte by byte."""

from dataclasses import dataclass

import numpy as np

from weft.network.errors import ModelError
from weft.network.inputs import read_inputs
from weft.network.loading import NeuralNetwork
from weft.network.program import Program, Step

__all__ = ["ORACLES", "Difference", "compare", "expected", "is_float_product", "tolerance"]

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
        Largest difference of two values; NaN if only one of them is NaN.
    allowed : float
        Allowed difference: 0 if all products are of integers, else `tolerance` times the largest
        value.
    """

    name: str
    size: int
    different: int
    largest: float
    allowed: float

    @property
    def is_allowed(self) -> bool:
        """Whether the values are equal, or as close as the products promise."""
        return not self.different or self.largest <= self.allowed


def tolerance(program: Program) -> float:
    """Return the allowed difference of outputs, relative to the largest value.

    Products of integers are exact: 0. Sums of float32 depend on their order: 1e-5. A bf16 core
    rounds its operands to 8 significant bits: 2**-6.
    """
    floats = [step for step in program.steps if is_float_product(program, step)]
    if not floats:
        return 0.0
    return 2.0**-6 if any(step.placement.on_weft for step in floats) else 1e-5


def is_float_product(program: Program, step: Step) -> bool:
    """Return whether a step is a product of float32 values."""
    return step.macs > 0 and program.tensors[step.inputs[0]].dtype.kind == "f"


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

        results = ort(network.data, feeds)
    joined = [np.stack(outputs) for outputs in zip(*results, strict=True)]
    return [y[0] if len(y) == 1 else y.reshape(-1, *y.shape[2:]) for y in joined]


def compare(program: Program, outputs: list, wanted: list) -> list[Difference]:
    """Return how each output differs from the wanted one."""
    found, relative = [], tolerance(program)
    for number, y, other in zip(program.outputs, outputs, wanted, strict=True):
        tensor = program.tensors[number]
        if y.dtype != other.dtype or y.size != other.size:
            raise ModelError(
                f"output {tensor.name} must be {other.dtype} {other.shape}, not {y.dtype} {y.shape}"
            )
        y, other = y.reshape(-1), other.reshape(-1)
        bits = f"u{y.dtype.itemsize}"
        different = np.ascontiguousarray(y).view(bits) != np.ascontiguousarray(other).view(bits)
        y, other = y.astype(np.float64), other.astype(np.float64)
        different &= ~(np.isnan(y) & np.isnan(other))
        with np.errstate(invalid="ignore"):  # the difference of two infinities
            gaps = np.abs(y[different] - other[different])
        allowed = relative * float(np.abs(other[np.isfinite(other)]).max(initial=0.0))
        found.append(Difference(
            tensor.name, y.size, int(different.sum()), float(gaps.max(initial=0.0)), allowed
        ))
    return found
