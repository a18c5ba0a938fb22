"""Pages of weights: no two that are in use at once overlap."""

import dataclasses

import numpy as np
import pytest
from graphs import chain, fully_connected, graph_of, lstm, tensor

from weft.config import Config
from weft.models.compiler import compile_graph

CONFIG = Config(rows=3, cols=4, depth=2, lanes=2, a_words=128, b_words=256)


def pages_of(step):
    """The pages of B that a step uses."""
    work = step.work
    if work.b_pages is None:
        return set(range(work.free[0], sum(work.free)))
    _, _, k, n = work.shape()
    size = -(-n // 4) * -(-k // 32)
    return {page + i for page in work.b_pages for i in range(size)}


@pytest.mark.parametrize("seed", range(6))
def test_weights_in_use_do_not_overlap(seed):
    rng = np.random.default_rng(seed)
    sizes = rng.integers(1, 70, 9).tolist()
    for words in (32, 128, 256, 1024):
        config = dataclasses.replace(CONFIG, b_words=words)
        steps = compile_graph(chain(rng, sizes), config).steps
        resident = [pages_of(step) for step in steps if step.weights == "resident"]
        assert len(set().union(*resident)) == sum(map(len, resident))
        before = set()
        for place, step in enumerate(steps):
            used = pages_of(step)
            assert used <= set(range(words // 16))
            if step.weights != "resident":
                assert not used & set().union(*resident)
            if step.weights == "early":
                assert steps[place - 1].work.early == place and not used & before
            before = used


def test_the_most_bytes_stay():
    # 8 pages; the layers need 1, 7 and 3 of them, and have 192, 560 and 528 bytes of weights and
    # parameters. A page must remain for weights that do not stay.
    config = dataclasses.replace(CONFIG, b_words=128)
    program = compile_graph(chain(np.random.default_rng(1), (30, 4, 28, 12)), config)
    packed = [step.work.packed for step in program.steps]
    assert [len(part.b) + len(part.parameters) for part in packed] == [192, 560, 528]
    assert [step.weights for step in program.steps] == ["resident", "streamed", "resident"]


def test_more_pages_never_cost_more_bytes():
    costs = []
    for words in (64, 256, 1024, 4096):
        config = dataclasses.replace(CONFIG, b_words=words)
        program = compile_graph(chain(np.random.default_rng(2), (60, 40, 50, 30)), config)
        costs.append(program.estimate.bytes_in)
    assert costs == sorted(costs, reverse=True)


@pytest.mark.parametrize("time, weights", [
    (1, ["streamed", "streamed", "streamed", "resident"]),
    (9, ["streamed", "streamed", "resident", "streamed"]),
])
def test_weights_that_are_sent_at_each_step_in_time_stay_first(time, weights):
    """4 pages: the recurrent layer has 2, and the last layer 3; both together do not fit."""
    rng, tensors = np.random.default_rng(4), [tensor((1, time, 6), name="x")]
    nodes = [fully_connected(rng, 0, tensors, 8)]
    nodes += lstm(rng, 1, tensors, 2, position=1)
    nodes.append(fully_connected(rng, len(tensors) - 1, tensors, 12, position=2))
    config = dataclasses.replace(CONFIG, b_words=64)
    program = compile_graph(graph_of(nodes, tensors), config)
    assert [step.weights for step in program.steps] == weights
    assert program.steps[2].resident_bytes == (0 if time == 1 else 2 * 16 * 8)
    assert all(step.weights != "early" for step in program.steps[2:])
