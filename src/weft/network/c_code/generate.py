"""Writes the C files of a network: its arrays, and one function that runs it."""

import numpy as np

from weft.c_names import identifier
from weft.network.c_code.layers import CLayer, layer_of, layer_problem
from weft.network.c_code.operators import OPERATORS, OperatorCall, operator_problem
from weft.network.c_code.sources import check_prefix, filled_sources
from weft.network.c_code.templates import HEADER, SOURCE
from weft.network.c_code.tensors import TensorAddresses, is_alias
from weft.network.errors import ModelError
from weft.network.ir import Gemm, Graph
from weft.network.program import Program
from weft.network.work import HostWork

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
    return _Generator(graph, program).files(prefix)


class _Generator:
    """Collects the definitions and calls of all steps."""

    def __init__(self, graph, program):
        self._graph, self._program = graph, program
        self._config = program.target.config
        self._writers = {node.outputs[0]: node for node in graph.nodes}
        self._check()
        self._tensors = TensorAddresses(
            program, [(step.inputs, step.outputs) for step in program.steps]
        )
        self._texts: list[str] = []
        self._headers: set[str] = set()
        self._constant_bytes = 0
        self._layers: list[CLayer] = []

    def _check(self):
        """Raise ModelError for the first thing without C code."""
        program, tensors = self._program, self._program.tensors
        for what, numbers in (("input", program.inputs), ("output", program.outputs)):
            if len(numbers) != 1:
                raise ModelError(
                    f"{program.name}: C code needs one {what}, the network has {len(numbers)}"
                )
        if program.outputs[0] not in self._writers:
            raise ModelError(f"{program.name}: no operator computes the output: no C code")
        for step in program.steps:
            if reason := self._problem(step):
                operator = " and ".join(step.operators)
                raise ModelError(
                    f"{program.name}: operator {step.position[0]} ({operator} {step.name}): no C"
                    f" code: {reason}"
                )
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
            call = self._call(number, step)
            numbers = step.inputs if isinstance(step.work, HostWork) else [step.work.x]
            names = [self._tensors.of(n) for n in numbers]
            text = call.call.format(
                a=names[0], b=names[-1], y=self._tensors.of(step.outputs[0])
            )
            lines.append(f"    /* {' and '.join(step.operators)} */")
            if isinstance(step.work, HostWork):
                lines.append(f"    {text};")
            else:
                lines.append(f"    error = {text};")
                lines += ["    if (error != WEFT_OK)", "        return error;"]
        return self._written(prefix, lines, max(self._tensors.arena, 1))

    def _call(self, number, step):
        """Add the definitions of a step; return its call."""
        tensors = self._program.tensors
        if isinstance(step.work, HostWork):
            shapes = tensors[step.inputs[0]].shape, tensors[step.outputs[0]].shape
            call = OPERATORS[step.work.kernel](number, step.work.attributes, *shapes)
        else:
            layer = layer_of(
                number, step, self._gemm(step), tensors, self._config, self._program.mode
            )
            self._layers.append(layer)
            call = OperatorCall(
                "net_layer.h", f"net_compute(core, &layer{number}, {{a}}, {{y}}, rows, results)",
                layer.text, layer.constant_bytes,
            )
        self._headers.add(call.header)
        self._constant_bytes += call.constant_bytes
        if call.text:
            self._texts.append(call.text)
        return call

    def _written(self, prefix, lines, arena):
        program, layers = self._program, self._layers
        name = identifier(program.name)
        a = max((layer.a_bytes for layer in layers), default=0) or 1
        results = max((layer.result_bytes for layer in layers), default=1)
        input_size, output_size = (
            int(np.prod(program.tensors[numbers[0]].shape))
            for numbers in (program.inputs, program.outputs)
        )
        values = {
            "name": name, "NAME": name.upper(), "operators": len(program.operators),
            "input": input_size, "output": output_size,
            "constant": self._constant_bytes + self._tensors.constant_bytes,
            "buffer": max((layer.buffer_bytes for layer in layers), default=0),
            "ram": arena + a, "dma_ram": arena + a + results, "arena": arena, "a": a,
            "results": results, "hash": f"0x{self._config.hash:08x}u",
            "definitions": "\n\n".join([*self._tensors.texts, *self._texts]),
            "body": "\n".join(lines),
        }
        return filled_sources(HEADER, SOURCE, self._headers, values, prefix)
