"""The first operator whose output differs from the runtime's: NaN, infinity, missing tensors."""

import numpy as np
import pytest
from graphs import chain

from weft.config import Config
from weft.models import oracles
from weft.models.loading import NeuralNetwork
from weft.models.oracles import first_difference

INF, NAN = np.inf, np.nan


@pytest.mark.parametrize("y, other, line", [
    ([1, NAN, INF], [1, NAN, INF], "none of the outputs of 1 operator differs from LiteRT"),
    ([1, 2, 3], [1, 2.00001, 3], "none of the outputs of 1 operator differs from LiteRT"),
    ([1, 2, 3], [NAN] * 3, "3 of 3 values differ from LiteRT"),
    ([1, NAN, 3], [1, 2, 3], "1 of 3 values differ from LiteRT"),
    ([1, 2, 3], [1, 2, INF], "1 of 3 values differ from LiteRT"),
    ([1, 2, 3], [1, -INF, INF], "2 of 3 values differ from LiteRT"),
    ([1, 2, INF], [1, 2, -INF], "1 of 3 values differ from LiteRT"),
    ([1, 2, 3], None, "none of the outputs of 0 operators differs from LiteRT"),
])
def test_values_that_are_no_numbers(monkeypatch, y, other, line):
    network = NeuralNetwork(chain(np.random.default_rng(1), (4, 3)), b"")
    program = network.compile(Config(rows=2, cols=4, depth=4), activations=True)
    other = None if other is None else np.float32(other)
    monkeypatch.setattr(oracles, "_wanted", lambda *_: [other])
    values = {"out0": np.float32([y])}
    found = first_difference("litert", network, program, None, values)
    assert line in found
