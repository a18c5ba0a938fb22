"""Proof: whatever the fields of a job are, no row reads a vector beyond BASE..LIMIT."""

import pytest
from amaranth.hdl import Assume, Module, Mux, Signal
from amaranth.lib import wiring
from amaranth.lib.wiring import In, Out
from network_cores import small_network_core

from verif.formal.induction import prove_by_induction
from weft.hw.network_core.interface import JobPort, MemoryWindow
from weft.hw.network_core.layouts import bank_bias
from weft.hw.network_core.steps import map_reader
from weft.hw.network_core.steps.map_reader import RowAddress, StepOffsets
from weft.hw.network_core.steps.panels import PanelRow
from weft.hw.network_core.steps.step_sequencer import JobStep
from weft.network_core.latencies import is_spread

STEPS = "group_step", "tap_x_step", "tap_y_step"


class AnyJob(wiring.Component):
    """Offsets and the address of a row, with any job, origin and order of steps.

    All banks exist, and base and limit are words of the memory. They change with a job.
    """

    def __init__(self, config):
        self.config = config
        self.offsets, self.row = StepOffsets(config), RowAddress(config)
        super().__init__({
            "job": In(JobPort(config)), "window": In(MemoryWindow.of(config)),
            "step": In(JobStep(config)), "origin": In(PanelRow(config)),
            "violated": Out(1),
        })

    def elaborate(self, platform):
        m = Module()
        m.submodules.offsets, m.submodules.row = self.offsets, self.row
        offsets, row, config = self.offsets, self.row, self.config
        started, start = Signal(), self.job.start
        m.d.sync += started.eq(started | start)
        for name, free, port in (  # free at the start, then constant
            ("job", self.job.fields, offsets.job.fields),
            ("base", self.window.base, offsets.window.base),
            ("limit", self.window.limit, offsets.window.limit),
        ):
            held = Signal.like(port, name=name)
            m.d.comb += port.eq(Mux(start, free, held))
            m.d.sync += held.eq(port)
        m.d.comb += [
            offsets.job.start.eq(start), offsets.step.eq(self.step), row.en.eq(self.step.en),
            row.row.eq(self.origin), row.offset.eq(offsets.offset), row.limits.eq(offsets.limits),
            Assume(~self.step.en | (started & ~start)),
            Assume(self.origin.origin.address.bank < config.banks),
            Assume(offsets.window.base <= offsets.window.limit),
            Assume(offsets.window.limit <= config.words),
            *(Assume(offsets.job.fields[name].bank < config.banks) for name in STEPS),
        ]
        request = row.request
        allowed = (
            (request.address.bank < config.banks)
            & (request.address.word >= offsets.window.base)
            & (request.address.word < offsets.window.limit)
        )
        linked = [self.linked(one) for one in (offsets.offset, offsets.group)]
        # A request of the job before may come in the cycle after its last step.
        started_before = Signal()
        m.d.sync += started_before.eq(start & is_spread(config))
        m.d.comb += self.violated.eq(~start & ~started_before & (
            (request.valid & ~allowed) | (started & ~(linked[0] & linked[1]))
        ))
        return m

    def linked(self, offset):
        """Whether the limits of an offset are the base and the limit minus the offset."""
        banks = self.config.banks
        bank = offset.biased - bank_bias(banks) + offset.bank
        carry = bank >= banks
        word, window = len(offset.word), self.offsets.window
        return (
            (offset.biased >= bank_bias(banks)) & (offset.bank < banks)
            & ((bank == 0) | (bank == banks))
            & ((offset.word + offset.low_word + carry)[:word] == window.base)
            & (
                (offset.high_word - offset.low_word)[: word + 2]
                == (window.limit - window.base)[: word + 2]
            )
        )


@pytest.mark.slow
@pytest.mark.parametrize("config", [
    small_network_core(2, 2, 2), small_network_core(1, 4, 4, read_vectors=4),
    pytest.param(  # its rows read a copy of the offset
        small_network_core(8, 8, 8, words=4096, early=True), marks=pytest.mark.long
    ),
])
def test_no_request_lies_beyond_the_limits(config):
    prove_by_induction(AnyJob(config), "violated", steps=2 + is_spread(config))


@pytest.mark.slow
def test_a_wrong_carry_is_found(monkeypatch):
    monkeypatch.setattr(map_reader, "bank_bias", lambda banks: 0)
    with pytest.raises(AssertionError, match="not proven"):
        prove_by_induction(AnyJob(small_network_core(2, 2, 2)), "violated", steps=1)
