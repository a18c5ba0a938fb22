"""The record of operators, and its report."""

import json
from dataclasses import asdict

import numpy as np
import pytest

from weft import Accelerator, Config
from weft.commands import Region
from weft.cycles import predict
from weft.geometry import memories
from weft.host import GoldenTransport
from weft.models.errors import ModelError
from weft.models.target import NetworkTarget
from weft.offload import Operator, Products
from weft.offload.products import product_stream
from weft.offload.record import Sent
from weft.offload.report import offload_report

CONFIG = Config(dtype="bf16", rows=2, cols=3, lanes=1)
DOT = Operator("dot_general", "layer 1", ((2, 5, 7, 4),))
FREE = tuple((0, memories(CONFIG)[side].pages) for side in (Region.A, Region.B))
ADD = Operator("add", reason="no product")
WIDE = Operator("dot_general", "layer 2", ((1, 2, 3, 4),), "float64: no")


def recorded():
    p = Products(Accelerator(GoldenTransport(CONFIG)))
    p.record.found([DOT, ADD, WIDE, ADD])
    for _ in range(3):
        p.matmul(DOT, np.ones((2, 5, 7), np.float32), np.ones((2, 7, 4), np.float32))
    return p


def test_calls_and_uses():
    p = recorded()
    tallies = p.record.tallies()
    assert list(tallies) == [DOT, ADD, WIDE]
    assert [(t.uses, t.calls) for t in tallies.values()] == [(1, 3), (2, 0), (1, 0)]
    assert tallies[DOT].streams == {Sent(DOT.products[0], FREE): 3} and tallies[DOT].seconds > 0
    tallies[DOT].streams.clear()  # a copy
    assert p.record.tallies()[DOT].streams
    p.record.clear()
    assert [(t.uses, t.calls) for t in p.record.tallies().values()] == [(1, 0), (2, 0), (1, 0)]


def test_titles():
    assert (DOT.title, ADD.title) == ("dot_general at layer 1", "add")
    assert (DOT.on_weft, ADD.on_weft, DOT.macs, ADD.macs) == (True, False, 280, 0)


def test_cycles_and_bytes_are_those_of_the_core():
    """A driver that measures each product counts the same."""
    p = recorded()
    accelerator = p.accelerator
    before = accelerator.counters()
    p.matmul(DOT, np.ones((2, 5, 7), np.float32), np.ones((2, 7, 4), np.float32))
    after = accelerator.counters()
    spent = {name: after[name] - before[name] for name in after}
    row = offload_report(p.record, CONFIG, "XLA").rows[0]
    assert row.calls == 4 and row.macs == 4 * 280
    assert row.cycles == 4 * spent["busy"]
    assert row.streams.commands == 4 * spent["words_in"] * CONFIG.bytes_in
    assert row.streams.results == 4 * spent["words_out"] * CONFIG.bytes_out
    assert row.utilization == row.macs / (row.cycles * 6)


def test_weights_that_stay_count_once():
    config = Config(rows=4, cols=4, depth=2, lanes=1)
    p = Products(Accelerator(GoldenTransport(config)), "int8")
    rng = np.random.default_rng(1)
    x, w = (rng.normal(size=shape).astype(np.float32) for shape in ((2, 5, 30), (2, 30, 9)))
    weights, before = p.static_columns()(w), p.accelerator.counters()
    for _ in range(3):
        p.matmul(DOT, x, weights)
    p.matmul(DOT, x, w)
    after = p.accelerator.counters()
    row = offload_report(p.record, config, "XLA").rows[0]
    assert row.calls == 4
    assert row.cycles == after["busy"] - before["busy"]
    assert row.streams.commands == (after["words_in"] - before["words_in"]) * config.bytes_in
    # A target with a small buffer gets them with each call; one with a large buffer once.
    small, large = (
        offload_report(p.record, config, "XLA", NetworkTarget(
            "other", Config(rows=2, cols=4, depth=2, lanes=1, b_words=words), None, None
        )).rows[0].streams.commands for words in (64, 2048)
    )
    assert large < small


def test_the_text_says_what_ran_where_and_why():
    report = offload_report(recorded().record, CONFIG, "XLA")
    lines = str(report).splitlines()
    cycles = 3 * predict(CONFIG, product_stream(CONFIG, DOT.products[0]).commands).cycles
    assert lines[0] == (
        "1 of 4 operators on Weft, 3 on XLA (2 add, dot_general); 2x3x1_bf16: 3 calls, 840 MAC,"
        f" {cycles:,} cycles"
    )
    table = [line.split() for line in lines if line.startswith((" dot", " add"))]
    assert table[0][:12] == [
        "dot_general", "layer", "1", "Weft", "2", "x", "(5", "x", "7", "x", "4)", "1"
    ]
    assert table[0][12:15] == ["3", "840", f"{cycles:,}"]
    assert table[1] == ["dot_general", "layer", "2", "XLA", "2", "x", "3", "x", "4", "1", "24"]
    assert len(table) == 2  # the headline alone has operators without a product
    assert lines[-1] == "on XLA: dot_general: float64: no"


def test_times_of_a_board():
    """The board of the test has another array; the products are the same."""
    p = recorded()
    board = NetworkTarget("board", Config(dtype="bf16", rows=4, cols=4, lanes=1), 50.0, 1_000_000)
    report = offload_report(p.record, CONFIG, "XLA", board)
    commands = product_stream(board.config, DOT.products[0]).commands
    cycles = 3 * predict(board.config, commands).cycles
    assert report.cycles == cycles and report.peak == 16
    assert report.core_ms == pytest.approx(cycles / 50e3)
    moved = report.streams
    assert report.wire_ms == pytest.approx(1e3 * 10 * max(moved.sent, moved.received) / 1e6)
    assert "core ms" in str(report) and "wire ms" in str(report)


def test_json():
    report = offload_report(recorded().record, CONFIG, "XLA")
    data = json.loads(json.dumps(report.to_json()))
    assert data["totals"]["macs"] == 840 and data["totals"]["streams"] == asdict(report.streams)
    assert [row["operator"]["on_weft"] for row in data["rows"]] == [True, False, False]
    assert data["rows"][2]["operator"]["reason"] == "float64: no"


def test_an_empty_record():
    p = Products(Accelerator(GoldenTransport(CONFIG)))
    assert "0 of 0 operators on Weft; 2x3x1_bf16: no call is recorded" in str(
        offload_report(p.record, CONFIG, "XLA")
    )


def test_rejects_a_board_of_another_kind():
    record = recorded().record
    with pytest.raises(ModelError, match="target must have a product core, and ulx3s-85f-networks"):
        offload_report(record, CONFIG, "XLA", "ulx3s-85f-networks")
    with pytest.raises(ModelError, match="the core of ulx3s-85f must be of bf16, .*, not int8"):
        offload_report(record, CONFIG, "XLA", "ulx3s-85f")
