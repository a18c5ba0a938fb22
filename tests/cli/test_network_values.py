"""`refuse_fallbacks`: products of recurrent layers, too, must not run on the host."""

import dataclasses

import numpy as np
import pytest
from graphs import graph_of, lstm, tensor
from network_core_networks import NetworkBuilder
from network_cores import network_core_config
from rejects import rejects

from weft.cli.network_values import refuse_fallbacks
from weft.config import Config
from weft.models.compiler import compile_graph
from weft.models.errors import ModelError
from weft.models.network_core.compiler import compile_network_core
from weft.models.target import target_of

SIZE = dict(rows=2, cols=2, a_words=64, b_words=64)


@pytest.fixture
def graph():
    tensors = [tensor((1, 3, 4), name="x")]
    return graph_of(lstm(np.random.default_rng(1), 0, tensors, 2), tensors)


def test_a_recurrent_layer_on_the_core_is_allowed(graph):
    refuse_fallbacks(compile_graph(graph, Config(**SIZE)))


@pytest.mark.parametrize("program_words", [0, 2048])
def test_single_products_on_a_core_for_networks_are_allowed(program_words):
    config = network_core_config(2, 4, 4, 2, program_words=program_words)
    builder = NetworkBuilder(np.random.default_rng(1), (1, 4, 4, 3))
    builder.convolution(builder.convolution(0, 4), 4)
    builder.on_host()
    program = compile_network_core(builder.graph(), target_of(config))
    assert program.products
    refuse_fallbacks(program)


def test_a_recurrent_layer_on_the_host_is_refused(graph):
    program = compile_graph(graph, Config(dtype="bf16", c_words=64, **SIZE))
    text = (
        "net: operator 0 (LSTM lstm0) must not run on the host with --fallback refuse: gates; int8"
        " product; dtype=int8 would change this"
    )
    with rejects(ModelError, text):  # the product of the inputs would be refused before
        refuse_fallbacks(dataclasses.replace(program, steps=program.steps[1:]))
