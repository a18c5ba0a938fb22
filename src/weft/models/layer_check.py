"""Compares a network with its runtime operator by operator: the first one that differs."""

from collections.abc import Mapping

import numpy as np

from weft.models.exactness import FLOAT32
from weft.models.loading import NeuralNetwork
from weft.models.oracles import ORACLES, feeds_of
from weft.models.program import CompiledNetwork

__all__ = ["first_difference"]


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
        from weft.models.onnx.oracle import ort, with_outputs

        names = {number: network.graph.tensors[number].name for number in numbers}
        data, kept = with_outputs(network.data, names)
        results = ort(data, feeds, optimized=False) if kept else []
    else:
        from weft.models.tflite.oracle import litert, tflm, with_outputs

        data, kept = with_outputs(network.data, numbers)
        if not kept:
            results = []
        elif oracle == "tflm":
            results = tflm(data, feeds, network.graph.tensors, len(kept))
        else:
            results = litert(data, feeds)
    joined = {
        number: np.concatenate([np.asarray(outputs[n]).ravel() for outputs in results])
        for n, number in enumerate(kept)
    }
    return [joined.get(number) for number in numbers]
