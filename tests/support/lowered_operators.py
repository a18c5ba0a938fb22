"""An operator on a network core, between two layers: one list, with the bytes of its kernel."""

import dataclasses

import numpy as np
from graph_runner import run_graph
from graphs import tensor
from network_core_networks import NetworkBuilder

from weft.models.ir import Host
from weft.models.network_core.compiler import compile_network_core
from weft.models.target import NetworkTarget

__all__ = ["OperatorNetwork", "check_whole"]


class OperatorNetwork(NetworkBuilder):
    """A `NetworkBuilder` with operators of any kernel, and with several inputs.

    Parameters
    ----------
    seed : int
    shape : tuple of int
    dtype : numpy.dtype
    """

    def __init__(self, seed, shape, dtype=np.int8):
        super().__init__(np.random.default_rng(seed), shape, dtype)
        self.inputs = [0]

    def input(self, shape):
        """One more input of the network."""
        self.tensors.append(tensor(shape, self.dtype, zero=self._zero(), name="input"))
        self.inputs.append(len(self.tensors) - 1)
        return self.inputs[-1]

    def constant(self, values, zero=0):
        """A constant."""
        self.tensors.append(tensor(values.shape, values.dtype, zero=zero, data=values))
        return len(self.tensors) - 1

    def operator(self, name, kernel, inputs, shape, /, *, zero=None, **attributes):
        """An operator; ``shape`` is that of its output, or a list of them."""
        shapes = shape if isinstance(shape, list) else [shape]
        numbers = tuple(
            self._output(each, self.zero_of(inputs[0]) if zero is None else zero)
            for each in shapes
        )
        place = len(self.nodes)
        self.nodes.append(Host(
            operator=name, name=f"n{place}", position=(place,), inputs=tuple(inputs),
            outputs=numbers, kernel=kernel, reason="no product", attributes=attributes,
        ))
        return numbers if isinstance(shape, list) else numbers[0]


def check_whole(network, *outputs, config, runner="golden", lists=1):
    """Compile the network, run it, and compare all outputs; return the program.

    With a runner that counts cycles, each operator takes the predicted ones.
    """
    graph = dataclasses.replace(network.graph(*outputs), inputs=tuple(network.inputs))
    program = compile_network_core(graph, NetworkTarget("core", config))
    assert [(step.operators, step.placement.reason) for step in program.host] == []
    assert len(program.segments) == lists
    rng, limits = np.random.default_rng(1), np.iinfo(network.dtype)
    inputs = [
        rng.integers(limits.min, limits.max + 1, graph.tensors[n].shape).astype(network.dtype)
        for n in graph.inputs
    ]
    with program.open(runner) as session:
        found, records = session(inputs, stats=True)
    expected = run_graph(graph, inputs)
    found = found if isinstance(found, list) else [found]
    for value, number in zip(found, graph.outputs, strict=True):
        assert value.dtype == expected[number].dtype
        np.testing.assert_array_equal(value, expected[number])
    if runner != "golden":
        assert [record.cycles for record in records] == [layer.cycles for layer in program.layers]
    return program
