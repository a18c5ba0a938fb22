"""Runs a TFLite model, often of one operator, in TFLite Micro: the kernel ``tflite.model``."""

import math

import numpy as np

from weft.network.errors import ModelError

__all__ = ["model"]

SPARE, ATTEMPTS = 1 << 17, 4  # bytes beside the tensors; attempts, each with four times the memory


def model(inputs, attributes, state):
    """The outputs of a model.

    ``attributes``: ``model`` : bytes, the file; ``memory`` : int, bytes of its tensors; ``label`` :
    str, for messages; ``outputs`` : int, their number.

    ``state`` keeps the interpreter, and with it the variables of the model, from run to run.
    """
    interpreter = state.get("interpreter")
    if interpreter is None:
        interpreter = state["interpreter"] = _interpreter(attributes)
    try:
        for place, value in enumerate(inputs):
            interpreter.set_input(np.ascontiguousarray(value), place)
        interpreter.invoke()
        return [np.array(interpreter.get_output(i)) for i in range(attributes["outputs"])]
    except (RuntimeError, ValueError) as error:
        raise ModelError(f"{attributes['label']}: TFLite Micro reports: {error}") from error


def _interpreter(attributes):
    try:
        from tflite_micro import runtime
    except ImportError as error:
        raise ModelError(
            f"{attributes['label']} needs the package tflite-micro, of the extra networks "
            "(Linux on x86-64 only)"
        ) from error
    size = 2 * attributes["memory"] + SPARE
    for attempt in range(ATTEMPTS):
        try:
            return runtime.Interpreter.from_bytes(
                attributes["model"], arena_size=size * 4**attempt
            )
        except RuntimeError as error:
            last = error
    raise ModelError(f"{attributes['label']}: TFLite Micro refuses it: {last}") from last


def memory(tensors):
    """Bytes of tensors, each rounded up to 16."""
    return sum(-(-math.prod(t.shape) * t.dtype.itemsize // 16) * 16 for t in tensors)
