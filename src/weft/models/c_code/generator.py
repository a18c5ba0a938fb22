"""C files of networks: what they share for all kinds of cores, operators of the host, checks."""

import math
from collections.abc import Iterable, Mapping
from importlib import resources

import numpy as np

from weft.ip import identifier, prefix_problems, renamed
from weft.models.c_code.operators import (
    OPERATORS,
    CLayer,
    OperatorCall,
    layer_of,
    layer_problem,
    operator_problem,
)
from weft.models.c_code.tensors import TensorAddresses, is_alias
from weft.models.dead_channels import leave_out_channels
from weft.models.errors import ModelError
from weft.models.exactness import in_mode
from weft.models.ir import Gemm, Graph
from weft.models.program import Program
from weft.models.work import HostWork, RecurrentWork

__all__ = [
    "DATA", "Generator", "HEADER", "LICENCE", "SOURCE", "c_files", "check_prefix", "checked_call",
    "filled_sources", "no_code", "public_name", "require_no_state", "require_one",
]

LICENCE = "/* SPDX-License-Identifier: BSD-2-Clause */\n"
HEADER = """\
/*
 * The network @name@ on a Weft core: @operators@ operators in one call.
 *
 * @name@_run() computes one inference.
 * It calls the driver of the core's IP kit, and is C99 without heap and library, too. It returns
 * WEFT_OK or the error of the driver. `input` has the int8 values of the network's input; the
 * values of its output are written to `output`. They must not overlap. All calls share the static
 * memory, so they must follow each other. The core must have the Config for which the network was
 * compiled.
 *
 * Bus dma: the core writes to `output` and to the static memory, so no cache may hold old copies.
 * core->buffer must have @NAME@_BUFFER_BYTES bytes. Bus stream: core->buffer and core->results must
 * have space for the commands and results of each job; otherwise the error is WEFT_ERR_NO_SPACE.
 */
#ifndef @NAME@_NET_H
#define @NAME@_NET_H

#include "weft.h"

#ifdef __cplusplus
extern "C" {
#endif

enum {
    @NAME@_INPUT_BYTES = @input@,
    @NAME@_OUTPUT_BYTES = @output@,
    @NAME@_CONSTANT_BYTES = @constant@, /* weights, parameters and tables */
#if WEFT_DMA
    @NAME@_BUFFER_BYTES = @buffer@, /* of core->buffer */
    @NAME@_RAM_BYTES = @dma_ram@ /* static memory */
#else
    @NAME@_RAM_BYTES = @ram@ /* static memory */
#endif
};

int @name@_run(weft_core *core, const int8_t *input, int8_t *output);

#ifdef __cplusplus
}
#endif

#endif
"""
DATA = """\
/* Weights, parameters and tables of the network @name@. */
#ifndef @NAME@_NET_DATA_H
#define @NAME@_NET_DATA_H

@includes@

#ifdef __GNUC__
#define NET_ALIGNED __attribute__((aligned(8)))
#else
#define NET_ALIGNED
#endif

@definitions@

#endif
"""
SOURCE = """\
/* The operators of the network @name@, in the order of its file. */
#include "net.h"
#include "net_data.h"

#if WEFT_HASH != @hash@
#error "the network was compiled for another Config than the driver"
#endif

/* Activations, which share memory if they are needed at different times. */
static int8_t arena[@arena@] NET_ALIGNED;
/* A block of rows of A. */
static int8_t rows[@a@] NET_ALIGNED;
#if WEFT_DMA
/* Results of a block, if their place does not have the alignment that the core needs. */
static int8_t results[@results@] NET_ALIGNED;
#else
static int8_t *const results = NULL;
#endif

int @name@_run(weft_core *core, const int8_t *input, int8_t *output)
{
    int error = WEFT_OK;
    (void)core, (void)arena, (void)rows, (void)results;
@body@
    return error;
}
"""


_WITHOUT_ARITHMETIC = _WITH_BYTES = {"net_layer.h", "net_map.h"}  # they include net_bytes.h


def check_prefix(prefix: str) -> None:
    """Raise ModelError if the prefix of a kit's driver is not valid for C code of a network."""
    for problem in prefix_problems(prefix):
        raise ModelError(problem)
    if prefix.split("_")[0] == "net":
        raise ModelError(f"prefix must not start with net, as names of the C code do, not {prefix}")


def public_name(name: str, prefix: str) -> str:
    """Return the start of all public names of a network: ``digits_cnn``, or ``mm_digits_cnn``.

    With a prefix of its own, one network for two cores links in one program.
    """
    return identifier(name) if prefix == "weft" else f"{prefix}_{identifier(name)}"


def filled_sources(
    header: str, source: str, fixed: Iterable[str], values: Mapping[str, object], prefix: str
) -> dict[str, bytes]:
    """Return all files by name.

    Parameters
    ----------
    header, source : str
        Templates of ``net.h`` and ``net.c``.
    fixed : iterable of str
        Files of `weft.models.c_code.files` that ``net_data.h`` includes.
    values : mapping of str
        For ``@key@`` in templates. ``definitions``, ``load``, ``body`` and ``after`` have names of
        the driver, too.
    prefix : str
        Of the driver.
    """
    names = sorted({*fixed})
    includes = "\n".join(f'#include "{name}"' for name in names)
    values = {"includes": includes, **values}
    if {*names} - _WITHOUT_ARITHMETIC:
        names.append("net_arithmetic.h")
    if {*names} & _WITH_BYTES:
        names.append("net_bytes.h")
    folder = resources.files("weft.models.c_code.files")
    texts = {"net.h": header, "net_data.h": DATA, "net.c": source}
    texts |= {name: folder.joinpath(name).read_text(encoding="utf-8") for name in names}
    return {
        name: (LICENCE + _filled(renamed(text, prefix), values, prefix)).encode()
        for name, text in sorted(texts.items())
    }


def _filled(text, values, prefix):
    for key in (
        "includes", "definitions", "load", "load_text", "reset_text", "reset_declaration", "reset",
        "first", "reset_function", "body", "after",
    ):
        text = text.replace(f"@{key}@", renamed(values.get(key, ""), prefix))
    for key, value in values.items():
        text = text.replace(f"@{key}@", str(value))
    return text


def require_one(program) -> None:
    """Raise ModelError if a network does not have one input and one output."""
    for what, found in (("input", program.inputs), ("output", program.outputs)):
        if len(found) != 1:
            raise ModelError(
                f"{program.name}: C code needs one {what}, the network has {len(found)}"
            )


def no_code(program, step, reason: str) -> ModelError:
    """Return the error of a step without C code."""
    operator = " and ".join(step.operators)
    return ModelError(
        f"{program.name}: operator {step.position[0]} ({operator} {step.name}): no C code: {reason}"
    )


def checked_call(call: str) -> list[str]:
    """Return the lines of a call whose error ends the function."""
    return [f"    error = {call};", "    if (error != WEFT_OK)", "        return error;"]


def require_no_state(program, steps) -> None:
    """Raise ModelError for variables of the host, and for operators with a state."""
    if program.host_states:
        raise ModelError(
            f"{program.name}: variable {program.host_states[0].name}: no C code: C code keeps no"
            " variables outside the memory of a network core; a program file runs them from Python:"
            f" weft run {program.name}.weft --on PORT"
        )
    for step in steps:
        is_recurrent = isinstance(step.work, RecurrentWork)
        is_filter = isinstance(step.work, HostWork) and step.work.kernel.endswith(".svdf")
        if is_recurrent or is_filter:
            raise no_code(
                program, step, "C code has no operators with a state, such as recurrent layers; a"
                f" program file runs them from Python: weft run {program.name}.weft --on PORT"
            )


class Generator:
    """Collects the definitions and the calls of a program.

    Parameters
    ----------
    program : Program or NetworkCoreProgram
    accesses
        As for `TensorAddresses`.
    headers : str
        Files that are always included.
    """

    def __init__(self, program, accesses, *headers: str):
        self._program = program
        self._tensors = TensorAddresses(program, accesses)
        self._texts: list[str] = []
        self._headers = {*headers}
        self._constant_bytes = 0

    def _call(self, number: int, step) -> OperatorCall:
        """Return the call of an operator of the host; ``number`` makes its names unique."""
        tensors = self._program.tensors
        shapes = tensors[step.inputs[0]].shape, tensors[step.outputs[0]].shape
        return OPERATORS[step.work.kernel](number, step.work.attributes, *shapes)

    def _text(self, step, call: OperatorCall, inputs) -> str:
        """Add the definitions of a call; return it with the addresses of its tensors."""
        self._headers.add(call.header)
        self._constant_bytes += call.constant_bytes
        if call.text:
            self._texts.append(call.text)
        names = [self._tensors.of(n) for n in inputs]
        return call.call.format(a=names[0], b=names[-1], y=self._tensors.of(step.outputs[0]))

    def _filled(self, header: str, source: str, prefix: str, **values) -> dict[str, bytes]:
        """Return all files; ``values`` are the ones that only this kind of core has."""
        program, tensors = self._program, self._tensors
        name = public_name(program.name, prefix)
        sizes = {
            what: math.prod(program.tensors[found[0]].shape)
            for what, found in (("input", program.inputs), ("output", program.outputs))
        }
        return filled_sources(header, source, self._headers, {
            "name": name, "NAME": name.upper(), "operators": len(program.operators), **sizes,
            "constant": self._constant_bytes + tensors.constant_bytes,
            "arena": max(tensors.arena, 1),
            "definitions": "\n\n".join([*tensors.texts, *self._texts]), **values,
        }, prefix)


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
