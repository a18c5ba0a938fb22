"""A program that runs: its values, its operators, and the results of a call, on any core."""

import math
import threading
from collections.abc import Callable, Iterable, Mapping
from contextlib import contextmanager
from typing import TYPE_CHECKING, Self

import numpy as np

from weft.hints import visible
from weft.host.transport import TransportClosed
from weft.models.errors import ModelError
from weft.models.execution import InferenceOutcome, KernelRun, RecurrentRun
from weft.models.ir import Tensor

if TYPE_CHECKING:
    from weft.models.program import CompiledNetwork

__all__ = ["ProgramSession", "Records", "dequantized", "joined", "quantized", "read_inputs"]


def read_inputs(program: "CompiledNetwork", x) -> tuple[dict[int, np.ndarray], int, bool]:
    """Return the inputs by tensor, [inferences, ...]; their number; whether floats were quantized.

    ``x`` is as for `weft.models.session.Session`. Raises TypeError or ValueError if it does not
    fit the network.
    """
    names = [program.tensors[number].name for number in program.inputs]
    if isinstance(x, Mapping):
        found = {visible(name): value for name, value in x.items()}  # or as the file has it
        if sorted(map(visible, x)) != sorted(names):
            raise ValueError(f"inputs must be {', '.join(names)}, not {', '.join(map(visible, x))}")
        given = [found[name] for name in names]
    else:
        given = list(x) if isinstance(x, list | tuple) else [x]
    if len(given) != len(names):
        raise ValueError(f"inputs must be {len(names)} ({', '.join(names)}), not {len(given)}")
    values, counts, is_float = {}, set(), False
    for number, array in zip(program.inputs, given, strict=True):
        tensor = program.tensors[number]
        if isinstance(array, np.ma.MaskedArray):
            raise TypeError(f"input {tensor.name} must be an array without a mask: fill it first")
        array = np.asarray(array)
        if array.dtype.kind == "f" and tensor.dtype.kind in "iu" and tensor.quantization:
            array, is_float = quantized(array, tensor, program.source), True
        elif array.dtype == np.float64 and tensor.dtype == np.float32:
            array = array.astype(np.float32)
        if array.dtype != tensor.dtype:
            raise TypeError(f"input {tensor.name} must be {tensor.dtype}, not {array.dtype}")
        count = _inferences(array, tensor)
        counts.add(count)
        values[number] = array.reshape(count, *tensor.shape)
    if len(counts) > 1:
        raise ValueError(f"inputs must have equal batches, not {sorted(counts)}")
    return values, counts.pop() if counts else 1, is_float


def _inferences(array, tensor):
    """Return the number of inferences in the input ``array``."""
    if array.shape == tensor.shape:
        return 1
    batch = tensor.shape[:1] == (1,) and array.shape[1:] == tensor.shape[1:]
    if not batch or not array.ndim or not len(array):
        raise ValueError(
            f"input {tensor.name} must be of shape {tensor.shape}, not {array.shape}"
        )
    return len(array)


def quantized(x: np.ndarray, tensor: Tensor, source: str) -> np.ndarray:
    """Return float values as a quantized tensor: ``round(x / scale) + zero``, saturated.

    ``source`` decides how ties are rounded: away from zero in TFLite, to even in ONNX. Raises
    ValueError for NaN.
    """
    if np.isnan(x).any():
        raise ValueError(f"input {tensor.name} must not have NaN: its type is {tensor.dtype}")
    scale, zero = _parameters(tensor)
    limits = np.iinfo(tensor.dtype)
    with np.errstate(over="ignore"):
        steps = np.clip(x.astype(np.float32) / scale, limits.min - zero, limits.max - zero)
    if source == "onnx":
        rounded = np.rint(steps)
    else:
        whole = np.trunc(steps)
        rounded = whole + np.where(np.abs(steps - whole) >= 0.5, np.sign(steps), 0)
    return (rounded + zero).astype(tensor.dtype)


def dequantized(value: np.ndarray, tensor: Tensor) -> np.ndarray:
    """Return ``scale * (value - zero)`` in float32; the value itself if it is not quantized."""
    if tensor.quantization is None or tensor.dtype.kind not in "iu":
        return value
    scale, zero = _parameters(tensor)
    return (scale * (value.astype(np.float32) - zero)).astype(np.float32)


def _parameters(tensor):
    """Return scale and zero point in shapes that broadcast with the tensor."""
    given = tensor.quantization
    scale, zero = given.scale.astype(np.float32), given.zero
    if len(scale) == 1:
        return scale[0], zero[0]
    shape = [1] * len(tensor.shape)
    shape[given.axis] = -1
    return scale.reshape(shape), zero.reshape(shape)


class ProgramSession:
    """The base class of sessions. It is also a context manager that closes the session at its end.

    A session keeps what the network keeps from inference to inference: the values of variables, and
    the states of operators.

    Parameters
    ----------
    program : Program or NetworkCoreProgram
    """

    def __init__(self, program):
        self.program = program
        self._closed = False
        self._lock = threading.Lock()  # calls of threads wait for each other
        self._states = self._initial()  # values of variables, by `State.before`

    def __enter__(self) -> Self:
        return self

    def __exit__(self, *exception) -> None:
        self.close()

    def close(self) -> None:
        """Release the core: each later call raises TransportClosed."""
        self._closed = True

    def reset(self) -> None:
        """Give all variables and states of operators their initial values."""
        with self._lock:
            self._reset()

    def _reset(self):
        self._states = self._initial()
        for run in self._kept():
            run.state = {}

    def _initial(self):
        return {state.before: state.initial for state in self.program.host_states}

    def _all_runs(self) -> Iterable:
        """Return what runs the steps."""
        raise NotImplementedError

    def _kept(self):
        return [run for run in self._all_runs() if isinstance(run, KernelRun | RecurrentRun)]

    @contextmanager
    def _call(self):
        """Hold the session for a call; one that fails changes no variable and no state.

        Only an operator that another runtime computes may have advanced.
        """
        with self._lock:
            if self._closed:  # some programs, and models of cores, need no connection
                raise TransportClosed("the transport is closed")
            states, kept = self._states, [(run, dict(run.state)) for run in self._kept()]
            try:
                yield
            except BaseException:
                self._states = states
                for run, state in kept:
                    run.state = state
                raise

    def _in_turn(
        self, values: dict, inferences: int, together: int, run_part: Callable[[dict, int], None],
    ) -> dict[int, np.ndarray]:
        """Run all inferences, at most ``together`` at once; return the outputs by tensor.

        ``run_part(values, count)`` adds the results of ``count`` inferences to ``values``.
        Inferences of a network with variables follow each other.
        """
        if self.program.states:
            together = 1
        parts = []
        for first in range(0, inferences, together):
            count = min(together, inferences - first)
            part = {n: value[first : first + count] for n, value in values.items()}
            part |= {n: value[None] for n, value in self._states.items()}
            run_part(part, count)
            self._states = {
                state.before: self._value(part, state.after, count)[0, ...].copy()
                for state in self.program.host_states
            }
            parts.append({n: self._value(part, n, count) for n in self.program.outputs})
        if len(parts) == 1:
            return parts[0]
        return {n: np.concatenate([part[n] for part in parts]) for n in self.program.outputs}

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


class Records:
    """The records and the outputs of the steps, over all parts of a call.

    Parameters
    ----------
    parts : int
        How often the steps run.
    watch : callable or None
        Called with the record of a step in the last part.
    keep : bool
        Keep the outputs.

    Attributes
    ----------
    records : list
        Of `StepRecord` or `NetworkCoreRecord`, which can be added.
    """

    def __init__(self, parts: int, watch: Callable | None, *, keep: bool):
        self.records: list = []
        self._left = parts - 1  # parts after this one
        self._watch, self._keep = watch, keep
        self._next = 0
        self._outputs: dict[str, np.ndarray] = {}  # of this part, by name
        self._parts: list[dict[str, np.ndarray]] = []

    def note(self, record, outputs: list) -> None:
        """A step has ended, with these outputs."""
        if self._next == len(self.records):
            self.records.append(record)
        else:
            self.records[self._next] += record
        if self._watch is not None and not self._left:
            self._watch(self.records[self._next])
        self._next += 1
        if self._keep:
            step = record.step
            self._outputs |= {
                f"out{max(step.position)}" + (f"_{index}" if index else ""): value
                for index, value in enumerate(outputs)
            }

    def end_part(self) -> None:
        """All steps have ended."""
        self._parts.append(self._outputs)
        self._outputs, self._next = {}, 0
        self._left -= 1

    def outputs(self) -> dict[str, np.ndarray]:
        """Return the outputs of all operators, ``out3``, ``out3_1`` ..., of all inferences."""
        return {
            name: joined(np.concatenate([part[name] for part in self._parts]))
            for name in self._parts[0]
        }
