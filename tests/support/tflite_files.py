"""TFLite files of a few operators, and their results in TFLite Micro."""

import numpy as np
import pytest

from tools.tflite_writer import TensorSpec as T
from tools.tflite_writer import tflite_file

__all__ = ["T", "build", "micro", "runner"]


def build(*parts, **options):
    """The file; `tflite_file` explains the parameters."""
    pytest.importorskip("tflite_micro")
    return tflite_file(*parts, **options)


def runner(data, outputs=1):
    """``run(*inputs)``: the outputs of one run in TFLite Micro, with the states of the last."""
    runtime = pytest.importorskip("tflite_micro").runtime
    arena = max(1 << 21, 20 * len(data))
    interpreter = runtime.Interpreter.from_bytes(data, arena_size=arena)

    def run(*inputs):
        for i, value in enumerate(inputs):
            interpreter.set_input(value, i)
        interpreter.invoke()
        return [np.array(interpreter.get_output(i)) for i in range(outputs)]

    return run


def micro(data, inputs, outputs=1):
    """The outputs of one run in TFLite Micro."""
    return runner(data, outputs)(*inputs)
