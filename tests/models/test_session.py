"""Sessions: inputs and outputs, batches, activations, records, failures."""

import dataclasses

import numpy as np
import pytest
from graph_runner import run_graph
from graphs import chain, fully_connected, graph_of, tensor
from products import integers
from rejects import rejects

from weft.config import Config
from weft.host.accelerator import AcceleratorError
from weft.host.emulated import GoldenTransport
from weft.host.transport import TransportClosed, TransportTimeout
from weft.models import kernels
from weft.models.compiler import compile_graph
from weft.models.errors import ModelError
from weft.models.ir import Gemm, Host, Recurrence

SMALL = Config(rows=3, cols=4, depth=2, lanes=2, a_words=128, b_words=256)


@pytest.fixture
def graph():
    return chain(np.random.default_rng(1))


def opened(graph, transport=None):
    program = compile_graph(graph, SMALL)
    return program.open(transport or GoldenTransport(SMALL))


def random(*shape):
    return integers(np.random.default_rng(2), np.int8, *shape)


def test_one_inference(graph):
    x = random(1, 20)
    with opened(graph) as session:
        for _ in range(2):
            np.testing.assert_array_equal(session(x), run_graph(graph, [x])[3])


class Counting(GoldenTransport):
    """Counts the calls of `send`."""

    sends = 0

    def send(self, commands):
        self.sends += 1
        super().send(commands)


def test_a_batch_is_one_stream_for_each_step(graph):
    x = random(5, 20)
    expected = np.concatenate([run_graph(graph, [row[None]])[3] for row in x])
    transport = Counting(SMALL)
    with opened(graph, transport) as session:
        session(x)
        transport.sends = 0
        np.testing.assert_array_equal(session(x), expected)
        assert transport.sends == 3
        _, records = session(x, stats=True)
    assert records[0].stats.macs == 5 * 20 * 30


def test_a_large_batch_is_several_streams(graph, monkeypatch):
    monkeypatch.setattr("weft.models.execution._MAX_BYTES", 3000)
    x = random(7, 20)
    transport = Counting(SMALL)
    with opened(graph, transport) as session:
        whole, records = session(x, stats=True)
        assert transport.sends > 6
        np.testing.assert_array_equal(whole, np.concatenate([session(row[None]) for row in x]))
    assert [record.stats.macs for record in records] == [7 * step.macs for step in (
        record.step for record in records
    )]
    assert all(record.stats.peak == SMALL.peak for record in records)


def test_float_values_use_the_scales_of_the_network(graph):
    # Scales 0.05; zero point of x 3, of y 0. 0.125 / 0.05 = 2.5 is rounded away from zero.
    x = np.full((1, 20), 0.125, np.float32)
    expected = run_graph(graph, [np.full((1, 20), 6, np.int8)])[3]
    with opened(graph) as session:
        y = session(x)
    assert y.dtype == np.float32
    np.testing.assert_array_equal(y, np.float32(0.05) * expected.astype(np.float32))


def test_onnx_rounds_floats_to_even(graph):
    graph = dataclasses.replace(graph, source="onnx")
    expected = run_graph(graph, [np.full((1, 20), 5, np.int8)], mode="tflite")[3]
    with opened(graph) as session:
        y = session(np.full((1, 20), 0.125))
    difference = np.abs(y - np.float32(0.05) * expected)
    assert difference.max() < 0.06  # modes tflite and onnx may differ by one step


@pytest.mark.parametrize("source", ["tflite", "onnx"])
def test_infinity_saturates_and_nan_is_refused(graph, source):
    graph = dataclasses.replace(graph, source=source)
    x = np.full((1, 20), np.inf, np.float32)
    x[0, :9] = -1e38
    q = np.where(x < 0, -128, 127).astype(np.int8)
    with opened(graph) as session:
        y = session(x)
        np.testing.assert_array_equal(y, np.float32(0.05) * session(q).astype(np.float32))
        x[0, 3] = np.nan
        with pytest.raises(ValueError, match="input .* must not have NaN: its type is int8"):
            session(x)


def two_inputs():
    rng = np.random.default_rng(3)
    tensors = [tensor((1, 4), name="left"), tensor((1, 6), name="right")]
    nodes = [
        fully_connected(rng, 0, tensors, 3, position=0),
        fully_connected(rng, 1, tensors, 5, position=1),
    ]
    return graph_of(nodes, tensors, inputs=(0, 1), outputs=(2, 3))


def test_several_inputs_and_outputs():
    graph = two_inputs()
    left, right = random(1, 4), random(1, 6)
    expected = run_graph(graph, [left, right])
    with opened(graph) as session:
        for x in ([left, right], {"right": right, "left": left}):
            y = session(x)
            np.testing.assert_array_equal(y[0], expected[2])
            np.testing.assert_array_equal(y[1], expected[3])


def test_activations_are_named_by_operators(graph):
    x = random(1, 20)
    with opened(graph) as session:
        y, activations = session(x, activations=True)
    expected = run_graph(graph, [x])
    assert sorted(activations) == ["out0", "out1", "out2"]
    for n in range(3):
        np.testing.assert_array_equal(activations[f"out{n}"], expected[n + 1])


def test_watch_sees_each_step_when_it_ends(graph):
    seen = []
    with opened(graph) as session:
        _, records = session(random(1, 20), stats=True, watch=seen.append)
    assert seen == records and all(0 < r.core_seconds <= r.seconds for r in records)


@pytest.mark.parametrize("x, error, message", [
    (np.zeros((1, 21), np.int8), ValueError, r"input x must be of shape \(1, 20\), not \(1, 21\)"),
    (np.zeros((0, 20), np.int8), ValueError, r"input x must be of shape \(1, 20\), not \(0, 20\)"),
    (np.zeros((1, 20), np.uint8), TypeError, "input x must be int8, not uint8"),
    (np.ma.array(np.zeros((1, 20), np.int8), mask=[[True] * 20]), TypeError,
     "input x must be an array without a mask"),
    ([], ValueError, r"inputs must be 1 \(x\), not 0"),
    ({"y": 1}, ValueError, "inputs must be x, not y"),
])
def test_rejects_wrong_inputs(graph, x, error, message):
    with opened(graph) as session, pytest.raises(error, match=message):
        session(x)


def test_rejects_different_batches():
    with opened(two_inputs()) as session:
        with pytest.raises(ValueError, match=r"inputs must have equal batches, not \[1, 2\]"):
            session([random(1, 4), random(2, 6)])


def test_rejects_a_core_of_another_config(graph):
    with pytest.raises(AcceleratorError, match="the core's rows must be 3, not 8"):
        opened(graph, GoldenTransport(Config()))


class Unreliable(GoldenTransport):
    """Loses the next results when told."""

    lose = None

    def receive(self, timeout):
        packet = super().receive(timeout)
        if self.lose:
            error, self.lose = self.lose, None
            raise error
        return packet


@pytest.mark.parametrize("error", [TransportTimeout("lost"), KeyboardInterrupt()])
def test_works_again_after_a_failure(graph, error):
    transport, x = Unreliable(SMALL), random(1, 20)
    with opened(graph, transport) as session:
        session(x)
        transport.lose = error
        with pytest.raises(type(error)):
            session(x)
        # The weights are lost: all pages are overwritten.
        for memory in transport._core.memory.values():
            memory[...] = 0
        np.testing.assert_array_equal(session(x), run_graph(graph, [x])[3])


def counting(monkeypatch):
    def count(inputs, attributes, state):
        state["n"] = state.get("n", 0) + 1
        return [inputs[0] + np.int8(state["n"])]

    monkeypatch.setitem(kernels.KERNELS, "count", count)
    monkeypatch.setattr(kernels, "STATEFUL", kernels.STATEFUL | {"count"})
    tensors = [tensor((1, 3)), tensor((1, 3))]
    node = Host(
        operator="COUNT", name="c", position=(0,), inputs=(0,), outputs=(1,), kernel="count",
        attributes={}, reason="it has a state",
    )
    return graph_of([node], tensors)


def test_a_state_lasts_for_a_session(monkeypatch):
    graph, x = counting(monkeypatch), np.zeros((1, 3), np.int8)
    for _ in range(2):
        with opened(graph) as session:
            assert session(x)[0, 0] == 1
            assert session(np.repeat(x, 2, 0))[:, 0].tolist() == [2, 3]
            session.reset()
            assert session(x)[0, 0] == 1


def fail(inputs, attributes):
    raise IndexError("no")


@pytest.mark.parametrize("function, message", [
    (fail, "IndexError"),
    (lambda inputs, attributes: [inputs[0][:, :2]], r"outputs must have \[3\] values, not \[2\]"),
])
def test_names_an_operator_of_the_host_that_fails(monkeypatch, function, message):
    monkeypatch.setitem(kernels.KERNELS, "count", function)
    tensors = [tensor((1, 3)), tensor((1, 3))]
    node = Host(
        operator="COUNT", name="c", position=(0,), inputs=(0,), outputs=(1,), kernel="count",
        attributes={}, reason="",
    )
    graph = graph_of([node], tensors)
    with opened(graph) as session:
        with pytest.raises(ModelError, match=rf"net: operator 0 \(COUNT c\) failed: .*{message}"):
            session(np.zeros((1, 3), np.int8))


@pytest.mark.parametrize("has_state", [False, True])
def test_inferences_of_a_recurrent_layer(monkeypatch, has_state):
    """Without a state, the inferences are the rows of one product; with one, they follow."""
    def double(inputs, attributes, state, mode):
        x = inputs[0] + np.int8(state.get("n", 0))
        state["n"] = has_state
        for _ in range(2):
            x = (yield 0, x).astype(np.int8)
        return [x]

    monkeypatch.setitem(kernels.RECURRENT, "double", double)
    if has_state:
        monkeypatch.setattr(kernels, "STATEFUL", kernels.STATEFUL | {"double"})
    tensors = [tensor((1, 3)), tensor((1, 3)), tensor((1, 3), np.int32)]
    common = dict(operator="DOUBLE", position=(0,), inputs=(0,))
    gemm = Gemm(**common, name="p", outputs=(2,), x=0, weights=2 * np.eye(3, dtype=np.int8)[None])
    node = Recurrence(
        **common, name="d", outputs=(1,), kernel="double", attributes={}, products=(gemm,),
        steps=2, reason="",
    )
    transport, x = Counting(SMALL), np.array([[1, 2, 3], [4, 5, 6]], np.int8)
    with opened(graph_of([node], tensors), transport) as session:
        session(x[:1])
        transport.sends = 0
        y = session(x)
        assert transport.sends == (4 if has_state else 2)
    np.testing.assert_array_equal(y, 4 * (x + has_state))


def test_a_closed_session_runs_nothing(graph):
    """Nor a network without a product, which needs no connection."""
    tensors = [tensor((1, 6)), tensor((1, 6))]
    host = Host(
        operator="r", name="r", position=(0,), inputs=(0,), outputs=(1,), kernel="reshape",
        attributes={"shape": (1, 6)}, reason="",
    )
    for network, x in ((graph, random(1, 20)), (graph_of([host], tensors), random(1, 6))):
        session = opened(network)
        session(x)
        session.close()
        with rejects(TransportClosed, "the transport is closed"):
            session(x)
