"""The places of tensors in the C code of a network: arguments, one static array, constants."""

import textwrap
from collections.abc import Iterable, Mapping, Sequence
from dataclasses import dataclass

import numpy as np

from weft.models.work import HostWork

__all__ = [
    "Interval", "TensorAddresses", "array", "is_alias", "numbers", "places",
    "program", "struct",
]


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


_ALIGNMENT = 8


@dataclass(frozen=True)
class Interval:
    """The memory that a tensor needs.

    Attributes
    ----------
    size : int
        Bytes.
    first, last : int
        Steps that write it first and read it last, both included.
    """

    size: int
    first: int
    last: int


def places(intervals: Mapping[int, Interval]) -> tuple[dict[int, int], int]:
    """Return the offset of each tensor, a multiple of 8, and the bytes of the whole array.

    The largest tensor is placed first, each at the lowest offset that is free while it is needed.
    """
    offsets: dict[int, int] = {}
    order = sorted(intervals, key=lambda number: (-intervals[number].size, number))
    for number in order:
        given = intervals[number]
        taken = sorted(
            (offsets[other], offsets[other] + _padded(intervals[other].size))
            for other in offsets
            if intervals[other].first <= given.last and given.first <= intervals[other].last
        )
        offset = 0
        for start, end in taken:
            if start - offset >= _padded(given.size):
                break
            offset = max(offset, end)
        offsets[number] = offset
    total = max((offset + _padded(intervals[n].size) for n, offset in offsets.items()), default=0)
    return offsets, total


def _padded(size):
    return -(-size // _ALIGNMENT) * _ALIGNMENT


_LEAST = -(1 << 31)


def numbers(values) -> str:
    """Integers in decimal, with commas; -2**31 as an expression, since C has no such literal."""
    texts = (str(value) for value in np.ravel(values).tolist())
    return ", ".join("(-2147483647 - 1)" if text == str(_LEAST) else text for text in texts)


def array(kind: str, name: str, values) -> str:
    """The definition of a constant array, aligned to words where the compiler can do it."""
    return _definition(f"static const {kind} {name}[] NET_ALIGNED", numbers(values))


def program(name: str, size: int, alignment: int, values) -> str:
    """The definition of a program memory: ``size`` bytes, of which the first ones are ``values``.

    The macro NET_PROGRAM stands before it.
    """
    return "\n".join([
        "#ifdef __GNUC__", f"__attribute__((aligned({alignment})))", "#endif",
        _definition(f"NET_PROGRAM int8_t {name}[{size}]", numbers(values)),
    ])


def struct(kind: str, name: str, *fields) -> str:
    """The definition of a constant struct, or of an array of structs if ``name`` ends in ``[]``.

    A field is text, a number, or numbers.
    """
    texts = [field if isinstance(field, str) else numbers(field) for field in fields]
    return _definition(f"static const {kind} {name}", ", ".join(texts))


def _definition(head, body):
    lines = textwrap.wrap(body, 96, break_long_words=False, break_on_hyphens=False)
    return "\n".join([f"{head} = {{", *(f"    {line}" for line in lines), "};"])
