"""The crossing: a core at the far end of its own clock, or of the same one as what surrounds it."""

from amaranth.hdl import Cat, DomainRenamer, Module, ResetInserter, Signal
from amaranth.lib import stream, wiring
from amaranth.lib.cdc import FFSynchronizer
from amaranth.lib.wiring import In, Out, connect, flipped

from weft.hw.output.stream_packer import Result
from weft.hw.stream.async_fifo import AsyncFifo
from weft.hw.stream.pulse_handshake import PulseHandshake
from weft.registers import LATENCY

__all__ = ["RESET_CYCLES", "AsyncCrossing", "CoreInterface", "SyncCrossing"]

RESET_CYCLES = 16  # of the core's clock, at least


class CoreInterface(wiring.Signature):
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
        "core": Out(CoreInterface(config)),
    }


class Waiting(wiring.Component):
    """``done`` in the cycle that is ``cycles`` after the first one of ``counts``; then again."""

    def __init__(self, cycles):
        self.cycles = cycles
        super().__init__({"counts": In(1), "done": Out(1)})

    def elaborate(self, platform):
        m = Module()
        count = Signal(range(self.cycles))
        m.d.sync += [
            count.eq(count + 1), self.done.eq(self.counts & ~self.done & (count == self.cycles - 1))
        ]
        with m.If(~self.counts | self.done):
            m.d.sync += count.eq(0)
        return m


class SyncCrossing(wiring.Component):
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
    core : Out, `CoreInterface`
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


class AsyncCrossing(wiring.Component):
    """The core has a clock of its own, without any relation to the bus's.

    Streams cross in queues; a register is asked for, and an abort given, by an order that is
    answered. Domains are ``sync``, ``core``, and ``far``: the core's clock, reset with ``sync``.

    Parameters
    ----------
    config : Config

    Attributes
    ----------
    All those of `SyncCrossing`.
    """

    WORDS = 16  # of a queue

    def __init__(self, config):
        self.config = config
        super().__init__(members(config))

    def elaborate(self, platform):
        m = Module()
        core = self.core
        commands = AsyncFifo(
            self.commands.payload.shape(), depth=self.WORDS, write_domain="sync", read_domain="core"
        )
        results = AsyncFifo(
            self.results.payload.shape(), depth=self.WORDS, write_domain="core", read_domain="sync"
        )
        near_reset = ResetInserter({"sync": self.holds})
        m.submodules.commands, m.submodules.results = near_reset(commands), near_reset(results)
        connect(m, flipped(self.commands), commands.i)
        connect(m, commands.o, flipped(core.commands))
        connect(m, flipped(core.results), results.i)
        connect(m, results.o, flipped(self.results))
        self._reset(m)
        self._orders(m)

        # It is under way in the queue, and a little longer, until it is seen to be so in the core.
        f_busy = Signal()
        busy = Signal()
        m.submodules.busy = FFSynchronizer(f_busy, busy)
        m.d.far += f_busy.eq(core.busy | commands.o.valid | commands.next_valid)
        lately = Signal(3)
        m.d.sync += lately.eq(Cat(commands.nonempty, lately))
        m.d.comb += self.busy.eq(busy | commands.nonempty | lately.any())
        return m

    def _reset(self, m):
        f_reset = Signal(init=1)
        f_done = Signal()
        m.submodules.reset = FFSynchronizer(self.reset, f_reset, o_domain="far", init=1)
        m.submodules.was_reset = FFSynchronizer(f_done, self.was_reset)
        resetting = Waiting(RESET_CYCLES)
        m.submodules.resetting = DomainRenamer("far")(resetting)
        m.d.comb += [self.core.reset.eq(f_reset), resetting.counts.eq(f_reset)]
        m.d.far += f_done.eq(f_reset & (f_done | resetting.done))

    def _orders(self, m):
        m.submodules.asking = asking = PulseHandshake(src="sync", dst="far")
        m.submodules.abort = abort = PulseHandshake(src="sync", dst="far")
        waiting = Waiting(LATENCY)
        m.submodules.waiting = DomainRenamer("far")(waiting)
        value = Signal(32)  # stays until it is fetched
        aborting = Signal()
        m.d.sync += aborting.eq(self.abort | (aborting & ~abort.src_ack))
        with m.If(waiting.done):
            m.d.far += value.eq(self.core.data)
        m.d.comb += [
            asking.src_req.eq(self.asks), self.core.address.eq(self.address),
            waiting.counts.eq(asking.dst_req), asking.dst_ack.eq(waiting.done),
            self.told.eq(asking.src_ack), self.value.eq(value),
            abort.src_req.eq(aborting), abort.dst_ack.eq(1), self.core.abort.eq(abort.dst_req),
        ]
