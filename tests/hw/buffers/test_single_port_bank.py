"""A bank with one port reads the written bytes, and its blocks equal the behavioural model."""

import random

import pytest
from amaranth.hdl import Cat, Const, Module, Mux, Signal
from amaranth.lib import wiring
from amaranth.lib.wiring import In

from verif.amaranth_bench import play
from verif.primitives import cosimulate
from weft.hw.buffers.bank import SinglePortBank
from weft.sim.primitives import ICE40_MODELS


def test_it_reads_the_written_bytes():
    rng = random.Random(1)
    dut = SinglePortBank(width=24, depth=4, target="generic")
    memory, script, expected = [0] * 4, [], {}
    for now in range(80):
        addr, enable, word = (rng.randrange(n) for n in (4, 8, 1 << 24))
        enable *= rng.randrange(2)
        script.append({"addr": addr, "write_en": enable, "write_data": word})
        if not enable:
            expected[now + SinglePortBank.LATENCY] = memory[addr]
        mask = sum(0xFF << 8 * n for n in range(3) if enable >> n & 1)
        memory[addr] = memory[addr] & ~mask | word & mask
    (found,) = play(dut, script, "read_data", tail=SinglePortBank.LATENCY)
    assert len(expected) > 20
    assert {now: found[now] for now in expected} == expected


class DefinedBank(wiring.Component):
    """A bank whose ``read_data`` is 0 after a write, where it is undefined.

    It uses 16 words of the bank, which differ in their lowest and highest address bits.
    """

    def __init__(self, **options):
        self.bank = SinglePortBank(**options)
        super().__init__({**self.bank.signature.members, "addr": In(4)})

    def elaborate(self, platform):
        m = Module()
        m.submodules.bank = bank = self.bank
        wrote = Signal()
        m.d.sync += wrote.eq(self.write_en.any())
        m.d.comb += [
            bank.addr.eq(Cat(self.addr[:2], Const(0, len(bank.addr) - 4), self.addr[2:])),
            bank.write_en.eq(self.write_en),
            bank.write_data.eq(self.write_data), self.read_data.eq(Mux(wrote, 0, bank.read_data)),
        ]
        return m


def outcome(width, depth, models):
    dut = DefinedBank(width=width, depth=depth, target="ice40up")
    return cosimulate(dut, cycles=4000, models=models)


@pytest.mark.parametrize("width, depth", [(64, 16), (24, 16), (8, 1024), (32, 1 << 15)])
def test_blocks_equal_the_behavioural_model(width, depth):
    assert outcome(width, depth, ICE40_MODELS.read_text(encoding="utf-8")) == "PASS"


@pytest.mark.parametrize("line, broken", [
    ("WREN && MASKWREN[n]", "WREN"), ("words[ADDRESS][4 * n", "words[ADDRESS[0]][4 * n"),
    ("WREN ? 16'bx : words[ADDRESS]", "words[ADDRESS ^ 1]"), ("if (CHIPSELECT)", "if (1)"),
])
def test_wrong_block_models_are_detected(line, broken):
    models = ICE40_MODELS.read_text(encoding="utf-8")
    assert models.count(line) == 1
    assert outcome(24, 1 << 16, models.replace(line, broken)).startswith("FAIL")
