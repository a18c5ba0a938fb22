"""The places of tensors in the C code of a network: arguments, one static array, constants."""

from collections.abc import Iterable, Sequence

import numpy as np

from weft.models.c_code.arrays import array
from weft.models.c_code.memory import Interval, places
from weft.models.work import HostWork

__all__ = ["TensorAddresses", "is_alias"]


def is_alias(step, outputs: tuple[int, ...]) -> bool:
    """Return whether a step is a reshape that needs no copy: it does not write to ``outputs``."""
    work = getattr(step, "work", None)
    return isinstance(work, HostWork) and work.kernel == "reshape" and (
        step.outputs[0] not in outputs
    )


class TensorAddresses:
    """The address of each tensor, as C.

    Parameters
    ----------
    program : Program or NetworkCoreProgram
    accesses : sequence of (tensors that are read, tensors that are written)
        In the order of execution.

    Attributes
    ----------
    arena : int
        Bytes of the static array.
    texts : list of str
        Definitions of the constants that `of` has named.
    constant_bytes : int
        Bytes of these constants.
    """

    def __init__(self, program, accesses: Sequence[tuple[Iterable[int], Iterable[int]]]):
        self._program = program
        self._aliases: dict[int, int] = {}
        for step in program.steps:
            if is_alias(step, program.outputs):
                self._aliases[step.outputs[0]] = self._root(step.inputs[0])
        self._offsets, self.arena = places(self._intervals(accesses))
        self._constants: dict[int, str] = {}
        self.texts: list[str] = []
        self.constant_bytes = 0

    def of(self, tensor: int) -> str:
        """Return the address of a tensor."""
        tensor, program = self._root(tensor), self._program
        if tensor in program.inputs:
            return "input"
        if tensor in program.outputs:
            return "output"
        if tensor in self._offsets:
            return f"arena + {self._offsets[tensor]}"
        if tensor not in self._constants:
            self._constants[tensor] = f"tensor{tensor}"
            data = program.tensors[tensor].data
            self.texts.append(array("int8_t", self._constants[tensor], data))
            self.constant_bytes += data.nbytes
        return self._constants[tensor]

    def _root(self, tensor):
        return self._aliases.get(tensor, tensor)

    def _intervals(self, accesses):
        """Return when each tensor in the static array is needed."""
        program = self._program
        intervals: dict[int, Interval] = {}
        for number, (read, written) in enumerate(accesses):
            for tensor in map(self._root, read):
                if tensor in intervals:
                    known = intervals[tensor]
                    intervals[tensor] = Interval(known.size, known.first, number)
            for tensor in written:
                if tensor not in self._aliases and tensor not in program.outputs:
                    size = int(np.prod(program.tensors[tensor].shape))
                    intervals[tensor] = Interval(size, number, number)
        return intervals
