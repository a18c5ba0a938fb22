"""The report of a network core: layers, totals, JSON, comparison with other cores."""

import json

import pytest

from weft.models.report import NetworkCoreReport, report
from weft.models.report.network_core import LayerWork, _bound


class Record:
    """The measured cycles of a step."""

    def __init__(self, step, cycles):
        self.step, self.cycles = step, cycles


def test_layers(network_core_program):
    found = report(network_core_program)
    assert [(layer.operator, layer.on_weft, bool(layer.jobs)) for layer in found.layers] == [
        ("CONV_2D+ADD", True, True), ("SOFTMAX", False, False), ("CONV_2D", True, True),
        ("RESHAPE", True, False),
    ]
    assert found.cycles == sum(segment.cycles for segment in network_core_program.segments)
    assert found.core_ms == pytest.approx(found.cycles / 100e3)
    assert found.wire_ms == pytest.approx(13.28)
    assert found.utilization == pytest.approx(found.macs / (found.cycles * 48))
    assert [layer.results for layer in found.on_weft] == [288, 288]


def test_the_peaks_of_a_core_with_one_port(micro_program):
    """Its array takes 16 pairs in a cycle, and it loads 4 bytes."""
    found = report(micro_program)
    assert (found.ceilings.peak, found.ceilings.load) == (16, 4)
    assert found.utilization == pytest.approx(found.macs / (found.cycles * 16))
    for layer in found.on_weft:
        assert layer.utilization == pytest.approx(layer.macs / (layer.cycles * 16))


def test_measured_cycles(network_core_program):
    steps = network_core_program.steps
    records = [Record(step, None if n == 1 else 100 + n) for n, step in enumerate(steps)]
    found = report(network_core_program).with_measured(records)
    assert [layer.measured for layer in found.layers] == [100, None, 102, None]


@pytest.mark.parametrize("cycles, compute, drain, wait, bound", [
    (1000, 600, 100, 100, "compute"), (1000, 100, 600, 100, "drain"),
    (1000, 300, 100, 400, "load"), (1000, 300, 100, 100, "latency"),
])
def test_bounds(cycles, compute, drain, wait, bound):
    assert _bound(cycles, LayerWork(compute, drain, wait, 0)) == bound


def test_json(network_core_program, program):
    found = json.loads(json.dumps(report(network_core_program, program).to_json()))
    assert [part["positions"] for part in found["lists"]] == [[[0, 1]], [[3]]]
    assert [layer["work"]["compute"] for layer in found["layers"]] == [432, 432]
    assert found["against"]["config"] == "4x4x4"
    assert json.loads(json.dumps(report(program, network_core_program).to_json()))["against"][
        "batch"
    ] == 1


def test_compares_both_kinds_of_cores(network_core_program, program):
    found = report(network_core_program, program)
    rows = {name: values for name, *values in found.comparison()}
    assert rows["operators on Weft"] == ["4 of 5", "3 of 5"]
    assert rows["bytes sent"][0] == "664" and "energy (estimate)" not in rows
    assert "energy (estimate)" in {
        name: values for name, *values in report(program, program).comparison()
    }
    lines = str(found).splitlines()
    assert any(line.split()[:2] == ["cycles", f"{found.cycles:,}"] for line in lines)
    assert isinstance(found.against, type(report(program))) and isinstance(found, NetworkCoreReport)
