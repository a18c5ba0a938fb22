"""The crossing: a core at the far end of its own clock, or of the same one as what surrounds it."""

from amaranth.hdl import Module, Signal
from amaranth.lib import stream, wiring
from amaranth.lib.wiring import In, Out, connect, flipped

from weft.hw.post.sender import Result
from weft.registers import LATENCY

__all__ = ["Core", "Near", "RESET_CYCLES"]

RESET_CYCLES = 16  # of the core's clock, at least


class Core(wiring.Signature):
    """The ports of a `weft.hw.core.Core` as its user has them, and its reset."""

    def __init__(self, config):
        super().__init__({
            "commands": Out(stream.Signature(8 * config.bytes_in)),
            "results": In(stream.Signature(Result(bytes_out=config.bytes_out))),
            "abort": Out(1),
            "address": Out(8),
            "data": In(32),
            "busy": In(1),
            "reset": Out(1),
        })


def members(config):
    """What both kinds of crossing have."""
    return {
        "commands": In(stream.Signature(8 * config.bytes_in)),
        "results": Out(stream.Signature(Result(bytes_out=config.bytes_out))),
        "abort": In(1),
        "asks": In(1), "address": In(8), "told": Out(1), "value": Out(32),
        "busy": Out(1),
        "reset": In(1), "was_reset": Out(1), "holds": In(1),
        "core": Out(Core(config)),
    }


class Waiting(wiring.Component):
    """``done`` in a cycle, ``cycles`` after the first one of ``counts``, and so on."""

    def __init__(self, cycles):
        self.cycles = cycles
        super().__init__({"counts": In(1), "done": Out(1)})

    def elaborate(self, platform):
        m = Module()
        count = Signal(range(self.cycles + 1))
        m.d.comb += self.done.eq(count == self.cycles)
        m.d.sync += count.eq(count + 1)
        with m.If(~self.counts | self.done):
            m.d.sync += count.eq(0)
        return m


class Near(wiring.Component):
    """No crossing at all: the core has the same clock.

    Parameters
    ----------
    config : Config

    Attributes
    ----------
    commands, results, abort
        As of the core.
    asks, address : In, told, value : Out
        In the cycle of ``told`` the core's register at ``address`` is ``value``; ``asks`` and the
        address stay until then.
    busy : Out
        Something is under way in the core, or on its way there.
    reset : In, was_reset : Out
        The core is in reset; it has been so for `RESET_CYCLES` of its clock.
    holds : In
        What is on its way is forgotten.
    core : Out, `Core`
    """

    def __init__(self, config):
        super().__init__(members(config))

    def elaborate(self, platform):
        m = Module()
        core = self.core
        connect(m, flipped(self.commands), flipped(core.commands))
        connect(m, flipped(core.results), flipped(self.results))
        m.submodules.asking = asking = Waiting(LATENCY)
        m.submodules.resetting = resetting = Waiting(RESET_CYCLES)
        m.d.comb += [
            core.abort.eq(self.abort), core.address.eq(self.address), core.reset.eq(self.reset),
            asking.counts.eq(self.asks), self.told.eq(asking.done), self.value.eq(core.data),
            resetting.counts.eq(self.reset), self.was_reset.eq(resetting.done),
            self.busy.eq(core.busy),
        ]
        return m
