"""`refuse_fallbacks`: products of recurrent layers, too, must not run on the host."""

import dataclasses

import numpy as np
import pytest
from graphs import graph_of, lstm, tensor
from rejects import rejects

from weft.cli.network_fallback import refuse_fallbacks
from weft.config import Config
from weft.models.compiler import compile_graph
from weft.models.errors import ModelError

SIZE = dict(rows=2, cols=2, a_words=64, b_words=64)


@pytest.fixture
def graph():
    tensors = [tensor((1, 3, 4), name="x")]
    return graph_of(lstm(np.random.default_rng(1), 0, tensors, 2), tensors)


def test_a_recurrent_layer_on_the_core_is_allowed(graph):
    refuse_fallbacks(compile_graph(graph, Config(**SIZE)))


def test_a_recurrent_layer_on_the_host_is_refused(graph):
    program = compile_graph(graph, Config(dtype="bf16", c_words=64, **SIZE))
    text = (
        "net: operator 0 (LSTM lstm0) must not run on the host with --fallback refuse: gates; int8"
        " product; dtype=int8 would change this"
    )
    with rejects(ModelError, text):  # the product of the inputs would be refused before
        refuse_fallbacks(dataclasses.replace(program, steps=program.steps[1:]))
