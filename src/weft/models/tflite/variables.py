"""Variables of a file: each becomes a state of the graph, and its operators only name tensors.

Source: TFLite Micro, ``var_handle.cc``, ``read_variable.cc``, ``assign_variable.cc``,
``call_once.cc``, ``micro_resource_variable.cc``.
"""

import dataclasses
import math

import numpy as np

from weft.models.errors import ModelError
from weft.models.ir import Host, State, Tensor
from weft.models.tflite.context import Fallback
from weft.models.tflite.reader import read

__all__ = ["VARIABLES", "Variables"]

_CALL, _HANDLE, _READ, _ASSIGN = "CALL_ONCE", "VAR_HANDLE", "READ_VARIABLE", "ASSIGN_VARIABLE"
VARIABLES = frozenset({_CALL, _HANDLE, _READ, _ASSIGN})


@dataclasses.dataclass
class _Variable:
    """A variable while the operators of the file follow each other.

    Attributes
    ----------
    name : str
    before : int
        Tensor of its value when an inference starts.
    current : int
        Tensor of its value now.
    position : tuple of int
        As of `State`.
    """

    name: str
    before: int
    current: int
    position: tuple[int, ...]
    is_written: bool = False

    def assign(self, value: int, place: int) -> None:
        """The operator at a place in the file gives it the value of a tensor."""
        self.position = (*self.position, place) if self.is_written else (place,)
        self.current, self.is_written = value, True


class Variables:
    """The variables of a file during its import.

    Parameters
    ----------
    graph : Context

    Attributes
    ----------
    called : set of int
        Subgraphs that CALL_ONCE runs.

    Raises
    ------
    Fallback
        If operators do more than reading and assigning variables: a runtime must have the whole
        file. `nodes` raises it, too.
    """

    def __init__(self, graph):
        self._graph, file = graph, graph.file
        self._keys = _handles(file)
        self._initial: dict[tuple, np.ndarray] = {}  # that CALL_ONCE assigns
        self._found: dict[tuple, _Variable] = {}
        self.called: set[int] = set()
        # By variable, the first tensor that is assigned to it.
        self._assigned: dict[tuple, int] = {}
        handles = {i for i, kind in enumerate(file.kinds) if kind in ("RESOURCE", "VARIANT")}
        others = {*file.inputs, *file.outputs}
        for operator in file.operators:
            if operator.name == _ASSIGN and len(operator.inputs) == 2:
                key = self._keys.get(operator.inputs[0])
                self._assigned.setdefault(key, operator.inputs[1])
            if operator.name not in VARIABLES:
                others.update((*operator.inputs, *operator.outputs))
        if handles & others:
            raise Fallback("other operators use the variables")

    @property
    def before(self) -> set[int]:
        """The tensors that have values when an inference starts."""
        return {found.before for found in self._found.values()}

    def states(self) -> tuple[State, ...]:
        """Return the states; all operators must have become nodes."""
        return tuple(
            State(name=found.name, initial=self._first_value(key, found), before=found.before,
                  after=found.current, position=found.position)
            for key, found in self._found.items()
        )

    def nodes(self, operator) -> list[Host]:
        """Return the nodes of an operator of a variable, in the order of the file."""
        if operator.name == _CALL:
            self._call(operator)
        elif operator.name == _READ:
            return [self._read(operator)]
        elif operator.name == _ASSIGN:
            self._assign(operator)
        return []

    def _call(self, operator):
        """Take the constants that a subgraph assigns before the first inference."""
        self._graph.counts(operator, 0, 0, outputs=0)
        if self._found:
            raise Fallback("CALL_ONCE follows other operators of its variables")
        number, file = operator.options("CallOnceOptions").InitSubgraphIndex(), self._graph.file
        part = read(file.data, f"{file.name}: subgraph {number}", number)
        keys = _handles(part)
        for each in part.operators:
            if each.name == _HANDLE:
                continue
            key = keys.get(each.inputs[0]) if each.name == _ASSIGN and each.inputs else None
            value = part.tensors[each.inputs[-1]].data if key else None
            if value is None or len(each.inputs) != 2 or part.inputs or part.outputs:
                raise Fallback("CALL_ONCE does more than assigning constants")
            self._initial[key] = value
        self.called.add(number)

    def _read(self, operator):
        self._graph.counts(operator, 1, 1)
        y = self._graph.output(operator)
        found = self._variable(operator, y)
        return Host(
            operator=operator.name, name=y.name, position=(operator.position,),
            inputs=(found.current,), outputs=operator.outputs, kernel="read_variable",
            attributes={"assigned": self._keys[operator.inputs[0]] in self._initial},
            reason="the host keeps the variable",
        )

    def _assign(self, operator):
        self._graph.counts(operator, 2, 2, outputs=0)
        number = operator.inputs[1]
        if number in self._graph.file.sparse:
            raise Fallback("a constant has a sparse encoding")
        self._variable(operator, self._graph.input(operator, 1)).assign(number, operator.position)

    def _variable(self, operator, value):
        """The variable of an operator that gives it, or gets from it, a tensor like ``value``."""
        key = self._keys.get(operator.inputs[0])
        if key is None:
            raise operator.error("input 0 must be the output of a VAR_HANDLE")
        if key not in self._assigned and key not in self._initial:
            raise operator.error(
                "no operator writes the variable, as the converter lost its value; convert the"
                " network from a concrete function alone:"
                " TFLiteConverter.from_concrete_functions([function])"
            )
        if key not in self._found:
            name = "/".join(part for part in key if part) or "variable"
            number = self._graph.add(dataclasses.replace(value, name=name, data=None))
            self._found[key] = _Variable(name, number, number, (operator.position,))
        kept = self._tensor(self._found[key].before)
        if (kept.shape, kept.dtype) != (value.shape, value.dtype):
            raise Fallback("a variable has values of different shapes or types")
        return self._found[key]

    def _tensor(self, number) -> Tensor:
        file = self._graph.file
        return self._graph.added[number - len(file.tensors)]

    def _first_value(self, key, found):
        """The value that a variable has before the first inference.

        Without CALL_ONCE, TFLite Micro sets all bytes to the zero point of the first tensor that is
        assigned.
        """
        kept, value = self._tensor(found.before), self._initial.get(key)
        if value is not None:
            if (value.shape, value.dtype) != (kept.shape, kept.dtype):
                raise Fallback("a variable has values of different shapes or types")
            return value
        given = self._graph.file.tensors[self._assigned[key]].quantization
        zero = 0 if given is None else int(given.zero[0])
        size = math.prod(kept.shape) * kept.dtype.itemsize
        return np.full(size, zero & 255, np.uint8).view(kept.dtype).reshape(kept.shape)


def _handles(file):
    """By the tensor of a handle: container and name of its variable."""
    keys = {}
    for operator in file.operators:
        if operator.name == _HANDLE:
            if len(operator.outputs) != 1:
                raise ModelError(f"{operator.label}: outputs must be 1, not {operator.outputs}")
            options = operator.options("VarHandleOptions")
            raw = options.Container(), options.SharedName()
            keys[operator.outputs[0]] = tuple(
                (text or b"").decode("utf-8", "backslashreplace") for text in raw
            )
    return keys
