"""`report`: the figures of a program made by hand."""

import json

import numpy as np
import pytest
from graphs import graph_of, lstm, tensor
from network_programs import TARGET, make_program

from weft.cycles import predict
from weft.models.compiler import compile_graph
from weft.models.report import report
from weft.models.report.streams import streams
from weft.models.target import NetworkTarget


def test_layers(program):
    found = report(program)
    conv, depthwise, pool, dense, softmax = found.layers
    work = program.steps[0].work.commands()
    assert conv.cycles == conv.limits.cycles == predict(TARGET.config, work).cycles
    assert conv.utilization == 2880 / (conv.cycles * 64)
    assert (conv.operator, conv.jobs, conv.results) == ("CONV_2D", 1, 160)
    assert depthwise.field == "activation=table"
    assert (pool.on_weft, pool.reason, pool.bound, pool.cycles) == (False, "no product", "", 0)
    assert found.on_weft == (conv, depthwise, dense)
    assert found.cycles == conv.cycles + depthwise.cycles + dense.cycles
    assert found.macs == 4400


def test_times(program):
    conv, *_ = report(program).layers
    assert conv.core_ms == pytest.approx(conv.cycles / 100e3)
    assert conv.wire_ms == pytest.approx(10 * conv.streams.sent / 1e3)  # more than it receives
    assert (conv.bound, conv.core_bound) == ("wire", "load")


def test_without_a_port_the_core_bounds():
    found = report(make_program(NetworkTarget("mine", TARGET.config, 100)))
    assert [layer.bound for layer in found.on_weft] == ["load"] * 3
    assert found.wire_ms is None
    assert found.core_ms == pytest.approx(found.cycles / 100e3)


def test_feature_maps_that_are_needed(program):
    # 1x6x7x2, then 1x5x4x8 twice; the pool has another, as made here, then 8 and 10 and 10.
    assert [layer.maps for layer in report(program).layers] == [84 + 160, 320, 168, 18, 20]


def test_measured_cycles(program, measured):
    found = report(program).with_measured(measured)
    assert [layer.measured for layer in found.layers] == [300, None, None, 170, None]


def test_json(program, other_program):
    found = report(program, other_program)
    data = json.loads(json.dumps(found.to_json()))
    assert data["layers"][0]["limits"]["load"] == found.layers[0].limits.load
    assert data["layers"][0]["products"] == [{"m": 20, "k": 18, "n": 8, "count": 1}]
    assert data["totals"]["cycles"] == found.cycles
    assert data["against"]["target"] == "other"
    assert data["against"]["totals"]["core_ms"] is None
    assert data["against"]["against"] is None


def test_a_recurrent_layer_costs_its_product_at_each_step():
    rng, tensors = np.random.default_rng(5), [tensor((1, 6, 5), name="x")]
    program = compile_graph(graph_of(lstm(rng, 0, tensors, 4), tensors), TARGET)
    layer = report(program).layers[1]
    [work] = program.steps[1].work.products
    assert layer.cycles == layer.limits.cycles == 6 * predict(TARGET.config, work.commands()).cycles
    assert layer.streams == streams(TARGET.config, work.commands()) * 6
    assert (layer.macs, layer.results, layer.jobs) == (6 * 4 * 16, 6 * 16, 6)
