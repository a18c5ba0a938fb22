"""Both ports of a bank read the written bytes, and its blocks equal the behavioural model."""

import random

import pytest
from amaranth.back import rtlil
from amaranth.hdl import Module, Mux
from amaranth.lib import wiring

from verif.amaranth_bench import play
from verif.primitives import cosimulate
from weft.hw.buffers.bank import DualPortBank
from weft.hw.delay import pipeline
from weft.hw.fabrics import ecp5, gowin
from weft.hw.primitives import Primitives
from weft.sim.primitives import ECP5_MODELS, GOWIN_MODELS


def test_both_ports_read_the_written_bytes():
    rng = random.Random(1)
    dut = DualPortBank(width=24, depth=4, target="generic")
    memory, script, expected_a, expected_b = [0] * 4, [], {}, {}
    for now in range(60):
        a, b, enable, word = (rng.randrange(n) for n in (4, 4, 8, 1 << 24))
        enable *= rng.randrange(2)
        script.append({"a_addr": a, "b_addr": b, "b_write_en": enable, "b_write_data": word})
        expected_a[now + DualPortBank.LATENCY] = None if a == b and enable else memory[a]
        expected_b[now + DualPortBank.LATENCY] = None if enable else memory[b]
        mask = sum(0xFF << 8 * n for n in range(3) if enable >> n & 1)
        memory[b] = memory[b] & ~mask | word & mask
    found = play(dut, script, "a_data", "b_data", tail=DualPortBank.LATENCY)
    for trace, expected in zip(found, (expected_a, expected_b), strict=True):
        defined = {now: word for now, word in expected.items() if word is not None}
        assert len(defined) > 20
        assert {now: trace[now] for now in defined} == defined


@pytest.mark.parametrize("width, depth", [
    (64, 16), *(
        pytest.param(*shape, marks=pytest.mark.slow if shape[1] < 8192 else pytest.mark.long)
        for shape in ((24, 1024), (24, 2000), (16, 4096), (16, 8192), (8, 16384))
    ),
])
def test_blocks_equal_the_behavioural_model(width, depth):
    dut = DualPortBank(width=width, depth=depth, target="ecp5")
    assert cosimulate(dut, cycles=min(3 * depth, 20_000) + 1000) == "PASS"


@pytest.mark.slow
@pytest.mark.parametrize("depth, line, broken", [
    (1100, "if (CEB && WEB) for", "if (CEB) for"),
    (30, "|| read_addr[n / 9]", "|| read_addr[0]"),
    (30, "a_output_reg : a_read_reg", "a_read_reg : a_read_reg"),
    (30, "b_write_data[n % 18]", "b_write_data[n % 9]"),
])
def test_wrong_block_models_are_detected(depth, line, broken):
    models = ECP5_MODELS.read_text(encoding="utf-8")
    assert models.count(line) == 1
    dut = DualPortBank(width=24, depth=depth, target="ecp5")
    assert cosimulate(dut, cycles=3000, models=models.replace(line, broken)).startswith("FAIL")


def test_a_wrong_number_of_address_bits_is_detected(monkeypatch):
    monkeypatch.setattr(ecp5, "ADDRESS_BITS", 13)
    dut = DualPortBank(width=16, depth=600, target="ecp5")
    assert cosimulate(dut, cycles=3000).startswith("FAIL")


class DefinedOutputs(wiring.Component):
    """A bank whose ``b_data`` is 0 where it is undefined: LATENCY cycles after a write."""

    def __init__(self, *, width, depth):
        self.bank = DualPortBank(width=width, depth=depth, target="gowin")
        super().__init__(self.bank.signature)

    def elaborate(self, platform):
        m = Module()
        m.submodules.bank = bank = self.bank
        wrote = pipeline(m, self.b_write_en.any(), DualPortBank.LATENCY, "wrote")
        m.d.comb += [
            bank.a_addr.eq(self.a_addr), bank.b_addr.eq(self.b_addr),
            bank.b_write_en.eq(self.b_write_en), bank.b_write_data.eq(self.b_write_data),
            self.a_data.eq(bank.a_data), self.b_data.eq(Mux(wrote, 0, bank.b_data)),
        ]
        return m


GOWIN_SHAPES = (32, 64), (24, 1024), (24, 2000), (16, 4096), (16, 8192), (8, 16384)


@pytest.mark.parametrize("width, depth", [
    (16, 600), *(
        pytest.param(*shape, marks=pytest.mark.slow if shape[1] < 8192 else pytest.mark.long)
        for shape in GOWIN_SHAPES
    ),
])
def test_blocks_of_gowin_equal_the_behavioural_model(width, depth):
    dut = DefinedOutputs(width=width, depth=depth)
    models = GOWIN_MODELS.read_text(encoding="utf-8")
    assert cosimulate(dut, cycles=min(3 * depth, 20_000) + 1000, models=models) == "PASS"


@pytest.mark.slow
@pytest.mark.parametrize("line, broken", [
    ("if (WREB)", "if (!WREB)"),
    ("else a_reg <= memory[ADA / BIT_WIDTH_0]", "else a_reg <= memory[ADA]"),
    ("assign DOB = b_reg", "assign DOB = a_reg"),
    ("<= DIB[BIT_WIDTH_0 - 1:0]", "<= DIA[BIT_WIDTH_0 - 1:0]"),
])
def test_wrong_block_models_of_gowin_are_detected(line, broken):
    models = GOWIN_MODELS.read_text(encoding="utf-8")
    assert models.count(line) == 1
    dut = DefinedOutputs(width=16, depth=600)
    assert cosimulate(dut, cycles=3000, models=models.replace(line, broken)).startswith("FAIL")


def test_a_wrong_number_of_address_bits_of_gowin_is_detected(monkeypatch):
    monkeypatch.setattr(gowin, "ADDRESS_BITS", 13)
    models = GOWIN_MODELS.read_text(encoding="utf-8")
    dut = DefinedOutputs(width=16, depth=600)
    assert cosimulate(dut, cycles=3000, models=models).startswith("FAIL")


@pytest.mark.parametrize("depth, blocks", [(512, 4), (2048, 4), (4096, 8), (16384, 32)])
def test_a_block_of_gowin_has_bits_of_one_byte(depth, blocks):
    dut = DualPortBank(width=32, depth=depth, target="gowin")
    text = rtlil.convert(dut, platform=Primitives())
    assert text.count("cell \\DPB ") == blocks
    assert "parameter \\READ_MODE0 1'0\n" in text and "parameter \\READ_MODE1 1'0\n" in text
