"""A MAC cell that only this file knows, through Config, hardware, models and driver."""

import dataclasses

import numpy as np
import pytest
from amaranth.hdl import Module, Mux, Signal
from core_replay import replayed_matmul
from rejects import rejects

from weft.config import Config, ConfigError
from weft.cycles import predict
from weft.hw.arith.cells import MACS
from weft.hw.arith.mac import Mac
from weft.mac_cells import MAC_CELLS, MacCell
from weft.registers import decode, describe

SMALL = dict(
    rows=2, cols=3, depth=2, lanes=1, bytes_in=4, bytes_out=4, a_words=64, b_words=64,
    requantize="none",
)


class NibbleMac(Mac):
    """``dot(a, b)`` by the halves of b: two products of a and a nibble, their sum, the total."""

    LATENCY = 3

    def elaborate(self, platform):
        m = Module()
        low = sum(self.a[d] * self.b[d][:4] for d in range(self.depth))
        high = sum(self.a[d] * self.b[d][4:].as_signed() for d in range(self.depth))
        p_low, p_high = Signal(low.shape()), Signal(high.shape())
        term = p_low + (p_high << 4)
        s_term = Signal(term.shape())
        p_en, s_en = Signal(), Signal()
        m.d.sync += [
            p_low.eq(low), p_high.eq(high), p_en.eq(self.en), s_term.eq(term), s_en.eq(p_en),
        ]
        start = self.sum if self.folded else Mux(self.clear, 0, self.sum)
        with m.If(s_en):
            m.d.sync += self.sum.eq(start + s_term)
        if self.folded:
            with m.If(self.shift):
                m.d.sync += self.sum.eq(self.above)
        return m


@pytest.fixture(autouse=True)
def nibble_cell():
    cell = MacCell(name="nibble", multiplier="nibble", latency=NibbleMac.LATENCY)
    MAC_CELLS.register(cell, hardware=NibbleMac)
    yield
    MAC_CELLS.remove("nibble")


@pytest.mark.parametrize("drain", ["overlapped", "folded"])
def test_products_on_the_hardware(drain):
    config = Config(**SMALL, multiplier="nibble", drain=drain)
    rng = np.random.default_rng(1)
    a, b = (rng.integers(-128, 128, shape).astype(np.int8) for shape in ((5, 7), (7, 4)))
    expected = a.astype(np.int64) @ b.astype(np.int64)
    np.testing.assert_array_equal(replayed_matmul(config, a, b), expected)


def test_a_config_names_it():
    config = Config(**SMALL, multiplier="nibble")
    assert (config.mac_cell, config.name) == ("nibble", "2x3x2_nibble")
    assert decode(describe(config)) == config


def test_its_latency_delays_the_results():
    from weft.commands import Job

    job = Job(2, 3, 4, 0, 1, 1, 0, 1, 1)
    cycles = {
        name: predict(Config(**SMALL, multiplier=name), [job]).cycles
        for name in ("plain", "nibble")
    }
    assert cycles["nibble"] == cycles["plain"] + 1


def test_rejects_a_family_without_the_cell():
    with rejects(ConfigError, (
        "multiplier must be one with a MAC cell for dtype 'int8' and target 'ecp5', not 'nibble'"
    )):
        Config(**SMALL, multiplier="nibble", target="ecp5")


@pytest.mark.parametrize("fields, text", [
    ({"latency": 2}, "latency of MAC cell 'other' must equal NibbleMac.LATENCY (3), not 2"),
    ({"slots": 2}, "slots of MAC cell 'other' must equal NibbleMac.SLOTS (1), not 2"),
    ({"corrected": True},
     "corrected of MAC cell 'other' must equal NibbleMac.CORRECTED (False), not True"),
    ({"decoder_latency": 1},
     "decoder_latency of MAC cell 'other' must equal NibbleMac.OPERAND_DECODER.LATENCY (0), not 1"),
    ({"has_tree": True},
     "latency with depth 2 of MAC cell 'other' must equal NibbleMac.latency(2) (3), not 4"),
])
def test_rejects_numbers_that_differ_from_the_class(fields, text):
    cell = MacCell(**{"name": "other", "multiplier": "other", "latency": 3, **fields})
    with rejects(ValueError, text):
        MAC_CELLS.register(cell, hardware=NibbleMac)
    assert "other" not in MAC_CELLS


def test_rejects_a_class_without_a_latency():
    class Endless(Mac):
        """A cell whose latency is not known."""

    cell = MacCell(name="other", multiplier="other", latency=3)
    with rejects(TypeError, "LATENCY of Endless must be an integer, not None"):
        MAC_CELLS.register(cell, hardware=Endless)


@pytest.mark.parametrize("name", list(MACS))
def test_every_cell_can_be_registered_again(name):
    cell = MAC_CELLS[name]
    MAC_CELLS.register(dataclasses.replace(cell, name="again"), hardware=MACS[name])
    MAC_CELLS.remove("again")


NAMES = "name and multiplier of a MAC cell must be lower-case letters, digits and underscores"


@pytest.mark.parametrize("fields, kind, text", [
    ({"name": "Bad name"}, ValueError, f"{NAMES}, not 'Bad name'"),
    ({"multiplier": ""}, ValueError, f"{NAMES}, not ''"),
    ({"latency": 0}, ValueError, "latency of MAC cell 'other' must be 1 or more, not 0"),
    ({"latency": 2.5}, TypeError, "latency of MAC cell 'other' must be an integer, not 2.5"),
    ({"decoder_latency": -1}, ValueError,
     "decoder_latency of MAC cell 'other' must be 0 or more, not -1"),
    ({"slots": True}, TypeError, "slots of MAC cell 'other' must be an integer, not True"),
    ({"pairs": 0}, ValueError, "pairs of MAC cell 'other' must be 1 or more, not 0"),
])
def test_rejects_a_wrong_attribute(fields, kind, text):
    with rejects(kind, text):
        MacCell(**{"name": "other", "multiplier": "other", "latency": 3, **fields})
