"""A program that runs: its values, its operators, and the results of a call, on any core."""

import math
import threading
from typing import Self

import numpy as np

from weft.models.errors import ModelError
from weft.models.execution import InferenceOutcome
from weft.models.inputs import dequantized

__all__ = ["ProgramSession", "joined", "output_names"]


class ProgramSession:
    """The base class of sessions. It is also a context manager that closes the session at its end.

    Parameters
    ----------
    program : Program or ChipProgram
    """

    def __init__(self, program):
        self.program = program
        self._lock = threading.Lock()  # calls of threads wait for each other

    def __enter__(self) -> Self:
        return self

    def __exit__(self, *exception) -> None:
        self.close()

    def close(self) -> None:
        """Release the core."""
        raise NotImplementedError

    def _run_step(self, step, run, values, inferences, record=False) -> InferenceOutcome:
        """Run a step with ``run``, and add its outputs to ``values``.

        Raises ModelError with the name of the operator if it fails.
        """
        inputs = [None if n < 0 else self._value(values, n, inferences) for n in step.operands]
        shapes = [self.program.tensors[n].shape for n in step.outputs]
        try:
            outcome = run(inputs, inferences, record)
            sizes = [inferences * math.prod(shape) for shape in shapes]
            found = [value.size for value in outcome.outputs]
            if found != sizes:
                raise ValueError(f"outputs must have {sizes} values, not {found}")
        except ModelError as error:
            if str(error).startswith(f"{self.program.name}:"):
                raise
            raise ModelError(
                f"{self.program.name}: operator {step.position[0]} ({step.operators[0]}"
                f" {step.name}): {error}"
            ) from error
        except (OSError, RuntimeError):
            raise
        except Exception as error:
            raise ModelError(
                f"{self.program.name}: operator {step.position[0]} ({step.operators[0]}"
                f" {step.name}) failed: {error!r}"
            ) from error
        for number, value, shape in zip(step.outputs, outcome.outputs, shapes, strict=True):
            values[number] = value.reshape(inferences, *shape)
        return outcome

    def _value(self, values, number, inferences):
        """Return a tensor as [inferences, ...]."""
        if number in values:
            return values[number]
        tensor = self.program.tensors[number]
        if tensor.data is None:
            raise ModelError(f"{self.program.name}: tensor {number} ({tensor.name}) has no value")
        return np.broadcast_to(tensor.data, (inferences, *tensor.data.shape))

    def _results(self, values, inferences, is_float, *added):
        """Return the outputs of the network; with ``added``, a tuple of them and of these."""
        results = []
        for number in self.program.outputs:
            value = joined(self._value(values, number, inferences))
            tensor = self.program.tensors[number]
            results.append(dequantized(value, tensor) if is_float else value)
        y = results[0] if len(results) == 1 else results
        return (y, *added) if added else y


def joined(value):
    """Return [inferences, ...] as one array: inferences are joined along the first axis."""
    if len(value) == 1:
        return value[0, ...].copy()
    return value.reshape(-1, *value.shape[2:]) if value.ndim > 1 else value


def output_names(step, values):
    """Return the outputs of an operator by their names: ``out3``, ``out3_1`` ..."""
    return {
        f"out{max(step.position)}" + (f"_{index}" if index else ""): value
        for index, value in enumerate(values)
    }
