"""Writes the C files of a network: its arrays, and one function that runs it."""

import numpy as np

from weft.models.c_code.generator import (
    HEADER,
    SOURCE,
    Generator,
    check_prefix,
    checked_call,
    no_code,
    require_no_state,
    require_one,
)
from weft.models.c_code.operators import (
    CLayer,
    OperatorCall,
    layer_of,
    layer_problem,
    operator_problem,
)
from weft.models.c_code.tensors import is_alias
from weft.models.dead_channels import leave_out_channels
from weft.models.errors import ModelError
from weft.models.exactness import in_mode
from weft.models.ir import Gemm, Graph
from weft.models.program import Program
from weft.models.work import HostWork

__all__ = ["c_files"]


def c_files(graph: Graph, program: Program, prefix: str = "weft") -> dict[str, bytes]:
    """Return the C files of a network, by name.

    Parameters
    ----------
    graph : Graph
    program : Program
        The graph, compiled.
    prefix : str
        Prefix of the kit's driver.

    Raises
    ------
    ModelError
        If there is no C code for an operator, or the prefix is not valid.
    """
    check_prefix(prefix)
    if program.left_out is not None:  # the program lacks channels of the graph
        graph, _ = leave_out_channels(in_mode(graph, program.mode), program.mode)
    return _ProductGenerator(graph, program).files(prefix)


class _ProductGenerator(Generator):
    """Collects the definitions and calls of all steps."""

    def __init__(self, graph, program):
        self._graph, self._program = graph, program
        self._config = program.target.array
        self._writers = {node.outputs[0]: node for node in graph.nodes}
        self._check()
        super().__init__(program, [(step.inputs, step.outputs) for step in program.steps])
        self._layers: list[CLayer] = []

    def _check(self):
        """Raise ModelError for the first thing without C code."""
        program, tensors = self._program, self._program.tensors
        require_no_state(program, program.steps)
        require_one(program)
        if program.outputs[0] not in self._writers:
            raise ModelError(f"{program.name}: no operator computes the output: no C code")
        for step in program.steps:
            if reason := self._problem(step):
                raise no_code(program, step, reason)
        if (dtype := tensors[program.inputs[0]].dtype) != np.int8:
            raise ModelError(f"{program.name}: the input must be int8 for C code, not {dtype}")

    def _problem(self, step):
        tensors = self._program.tensors
        if isinstance(step.work, HostWork):
            reason = operator_problem(step, tensors)
        else:
            reason = layer_problem(step, self._gemm(step), self._config)
        if reason:
            return reason
        numbers = step.inputs if isinstance(step.work, HostWork) else (step.work.x,)
        for number in (*numbers, *step.outputs):
            if tensors[number].dtype != np.int8:
                return f"tensors must be int8, not {tensors[number].dtype}"
        return ""

    def _gemm(self, step) -> Gemm:
        node = self._writers[step.outputs[0]]
        if not isinstance(node, Gemm):  # a table operator, which is fused into the product
            node = self._writers[node.inputs[0]]
        return node

    def files(self, prefix):
        """Return the files."""
        lines = []
        for number, step in enumerate(self._program.steps):
            if is_alias(step, self._program.outputs):
                continue
            on_host = isinstance(step.work, HostWork)
            call = self._call(number, step) if on_host else self._layer(number, step)
            text = self._text(step, call, step.inputs if on_host else [step.work.x])
            lines.append(f"    /* {' and '.join(step.operators)} */")
            lines += [f"    {text};"] if on_host else checked_call(text)
        layers, arena = self._layers, max(self._tensors.arena, 1)
        a = max((layer.a_bytes for layer in layers), default=0) or 1
        results = max((layer.result_bytes for layer in layers), default=1)
        return self._filled(
            HEADER, SOURCE, prefix, a=a, results=results, ram=arena + a,
            buffer=max((layer.buffer_bytes for layer in layers), default=0),
            dma_ram=arena + a + results, hash=f"0x{self._config.hash:08x}u",
            body="\n".join(lines),
        )

    def _layer(self, number, step):
        """Return the call of a product on the core."""
        layer = layer_of(
            number, step, self._gemm(step), self._program.tensors, self._config, self._program.mode
        )
        self._layers.append(layer)
        return OperatorCall(
            "net_layer.h", f"net_compute(core, &layer{number}, {{a}}, {{y}}, rows, results)",
            layer.text, layer.constant_bytes,
        )
