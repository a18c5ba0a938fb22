"""Compares the outputs of a network with those of its runtime: integers byte by byte."""

from collections.abc import Mapping
from dataclasses import dataclass

import numpy as np

from weft.models.errors import ModelError
from weft.models.exactness import FLOAT32
from weft.models.loading import NeuralNetwork
from weft.models.program import CompiledNetwork
from weft.models.program_session import dequantized, read_inputs

__all__ = ["ORACLES", "Answer", "Difference", "answers", "compare", "feeds_of", "first_difference"]


# By the name of a check: the runtime, and the files that it runs.
ORACLES = {
    "tflm": ("TFLite Micro", "tflite"), "litert": ("LiteRT", "tflite"),
    "ort": ("onnxruntime", "onnx"),
}


@dataclass(frozen=True)
class Answer:
    """What a runtime computed.

    Attributes
    ----------
    runtime : str
        The runtime, and how it ran if it can run in several ways.
    outputs : list of array
        Inferences joined along the first axis.
    """

    runtime: str
    outputs: list[np.ndarray]


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
        Allowed difference (`weft.models.exactness.Exactness`).
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


def feeds_of(program: CompiledNetwork, x) -> tuple[list[list[np.ndarray]], bool]:
    """Return the inputs of each inference, for a runtime; and whether floats were quantized."""
    values, inferences, is_float = read_inputs(program, x)
    return [
        [np.ascontiguousarray(values[number][i]) for number in program.inputs]
        for i in range(inferences)
    ], is_float


def answers(oracle: str, network: NeuralNetwork, program: CompiledNetwork, x) -> list[Answer]:
    """Return what a runtime computes, in each way that it can run.

    ``x`` is as for a session. onnxruntime runs with its optimizations, and without optimizations:
    its fused operators round in another way than the operators of the file. Raises ModelError if
    the runtime cannot run such files, or is not installed.
    """
    runtime, source = ORACLES[oracle]
    if network.graph.source != source:
        raise ModelError(
            f"{network.name}: {runtime} runs .{source} files, not .{network.graph.source} files"
        )
    feeds, is_float = feeds_of(program, x)
    if oracle == "tflm":
        if any(step.macs and program.tensors[step.inputs[0]].dtype == np.uint8
               for step in program.steps):
            raise ModelError(
                f"{network.name}: TFLite Micro has no products of uint8; check with litert"
            )
        from weft.models.tflite.runtime import tflm

        ways = {runtime: tflm(
            network.data, feeds, network.graph.tensors, len(program.outputs), network.name
        )}
    elif oracle == "litert":
        from weft.models.tflite.runtime import litert

        ways = {runtime: litert(network.data, feeds, network.name)}
    else:
        from weft.models.onnx.agreement import ort

        ways = {
            f"{runtime} {how}": ort(network.data, feeds, optimized=optimized, name=network.name)
            for how, optimized in (
                ("with its optimizations", True), ("without optimizations", False),
            )
        }
    tensors = [program.tensors[number] for number in program.outputs]
    return [Answer(name, _joined(results, tensors, is_float)) for name, results in ways.items()]


def _joined(results, tensors, is_float):
    """The outputs of all inferences; as floats if the inputs are floats, as a session gives them.
    """
    joined = [np.stack(outputs) for outputs in zip(*results, strict=True)]
    joined = [y[0] if len(y) == 1 else y.reshape(-1, *y.shape[2:]) for y in joined]
    if not is_float:
        return joined
    return [dequantized(y, tensor) for y, tensor in zip(joined, tensors, strict=True)]


def compare(program: CompiledNetwork, outputs: list, wanted: list) -> list[Difference]:
    """Return how each output differs from the wanted one."""
    found, exactness = [], program.exactness
    limits = zip(exactness.absolute, exactness.relative, strict=True)
    for number, y, other, (absolute, relative) in zip(
        program.outputs, outputs, wanted, limits, strict=True
    ):
        tensor = program.tensors[number]
        if y.dtype != other.dtype or y.size != other.size:
            raise ModelError(
                f"output {tensor.name} must be {other.dtype} {other.shape}, not {y.dtype} {y.shape}"
            )
        is_float = y.dtype.kind == "f"
        y, other = y.reshape(-1), other.reshape(-1)
        bits = f"u{y.dtype.itemsize}"
        different = np.ascontiguousarray(y).view(bits) != np.ascontiguousarray(other).view(bits)
        y, other = y.astype(np.float64), other.astype(np.float64)
        different &= ~(np.isnan(y) & np.isnan(other))
        with np.errstate(invalid="ignore"):  # the difference of two infinities
            gaps = np.abs(y[different] - other[different])
        if tensor.dtype.kind != "f" and is_float:  # steps of a quantized output
            absolute *= float(np.max(tensor.quantization.scale))
        largest = float(np.abs(other[np.isfinite(other)]).max(initial=0.0))
        if absolute and is_float:  # steps of two floats, which are rounded
            absolute += largest * 2.0**-23
        found.append(Difference(
            tensor.name, y.size, int(different.sum()), float(gaps.max(initial=0.0)),
            absolute + relative * largest,
        ))
    return found


def first_difference(
    oracle: str, network: NeuralNetwork, program: CompiledNetwork, x,
    activations: Mapping[str, np.ndarray],
) -> str:
    """Return a line for people: the first operator whose output differs from the runtime's.

    Parameters
    ----------
    oracle : str
        As for `weft.models.oracles.answers`. onnxruntime runs without optimizations, as these leave
        out outputs of operators.
    x
        As for a session.
    activations : mapping
        The outputs of operators, by name, as a session returns them.

    Raises
    ------
    ModelError
        If the runtime cannot run the file with the outputs of all operators.
    """
    runtime = ORACLES[oracle][0]
    outputs = [
        (step, number, f"out{max(step.position)}" + f"_{index}" * (index > 0))
        for step in _steps(program) for index, number in enumerate(_outputs(step))
    ]
    found = [entry for entry in outputs if entry[2] in activations]
    wanted = _wanted(oracle, network, program, x, [number for _, number, _ in found])
    compared = 0
    for (step, _, name), other in zip(found, wanted, strict=True):
        y = np.asarray(activations[name])
        if other is None or y.size != other.size:
            continue
        compared += 1
        gaps, allowed = _gaps(y, other), 0.0
        if y.dtype.kind == "f":
            allowed = FLOAT32 * float(np.abs(other[np.isfinite(other)]).max(initial=0))
        different = int((~(gaps <= allowed)).sum())  # NaN is not near
        if different:
            return (
                f"first operator that differs: {min(step.position)} ({'+'.join(step.operators)}"
                f" {step.name}): {different:,} of {y.size:,} values differ from {runtime}, by at"
                f" most {gaps.max():.3g}"
            )
    plural = "s" * (compared != 1)
    return f"none of the outputs of {compared} operator{plural} differs from {runtime}"


def _gaps(y, other):
    """How far values are apart: 0 for equal ones, and for NaN and NaN; NaN for NaN and a number."""
    y, other = (np.asarray(values).ravel().astype(np.float64) for values in (y, other))
    equal = (y == other) | (np.isnan(y) & np.isnan(other))
    with np.errstate(invalid="ignore"):  # the difference of two infinities
        return np.where(equal, 0.0, np.abs(y - other))


def _steps(program):
    """All steps with outputs, in the order of the operators in the file."""
    return sorted((*program.steps, *program.renamed), key=lambda step: max(step.position))


def _outputs(step):
    return getattr(step, "outputs", None) or (step.tensor,)


def _wanted(oracle, network, program, x, numbers):
    """The values of tensors in the runtime, inferences joined; None for one that it lacks."""
    feeds, _ = feeds_of(program, x)
    if oracle == "ort":
        from weft.models.onnx.agreement import ort, with_outputs

        names = {number: network.graph.tensors[number].name for number in numbers}
        data, kept = with_outputs(network.data, names)
        results = ort(data, feeds, optimized=False, name=network.name) if kept else []
    else:
        from weft.models.tflite.runtime import litert, tflm, with_outputs

        data, kept = with_outputs(network.data, numbers)
        if not kept:
            results = []
        elif oracle == "tflm":
            results = tflm(data, feeds, network.graph.tensors, len(kept), network.name)
        else:
            results = litert(data, feeds, network.name)
    joined = {
        number: np.concatenate([np.asarray(outputs[n]).ravel() for outputs in results])
        for n, number in enumerate(kept)
    }
    return [joined.get(number) for number in numbers]
