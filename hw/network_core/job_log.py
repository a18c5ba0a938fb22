"""The log of a list: the cycles of the start and of the end of each job, in the memory."""

from amaranth.hdl import Module, Signal
from amaranth.lib import stream, wiring
from amaranth.lib.wiring import In, Out

from weft.hw.network_core.interface import VectorWrite
from weft.hw.network_core.layouts import VectorAddress, add_vectors, within
from weft.network_core.latencies import lead

__all__ = ["ENTRY_BYTES", "JobLog"]

ENTRY_BYTES = 8  # two counts of 32 bits


class JobLog(wiring.Component):
    """Writes an entry after each job; a job may start before the entry of the last one is written.

    Parameters
    ----------
    config : NetworkCoreConfig

    Attributes
    ----------
    begin : In, 1 bit
        Pulse: the first entry is at ``address``.
    address : In, `VectorAddress`
        Includes the base.
    base, limit : In
        First word that the log may use, and first word beyond. A program memory begins at word 0.
    cycles : In, 32 bits
    start, done : In, 1 bit each
        Pulses: ``cycles`` is the start of a job; its end.
    accepts : Out, 1 bit
        A job may start in the next cycle.
    inside : Out, 1 bit
        The entry of the next job lies within the limits. Valid from the second cycle after
        ``begin`` or ``start``.
    writes : Out, stream of `VectorWrite`
    empty : Out, 1 bit
        All entries of the jobs that have ended are written.
    """

    def __init__(self, config):
        self.config = config
        address = VectorAddress(config)
        word = address["word"].width
        super().__init__({
            "begin": In(1), "address": In(address), "base": In(word), "limit": In(word),
            "cycles": In(32), "start": In(1), "done": In(1),
            "accepts": Out(1), "inside": Out(1),
            "writes": Out(stream.Signature(VectorWrite(config))),
            "empty": Out(1),
        })

    def elaborate(self, platform):
        m = Module()
        config, depth = self.config, self.config.array.depth
        vectors, base = -(-ENTRY_BYTES // depth), None if config.program_words else self.base
        times, entry = (Signal(8 * ENTRY_BYTES, reset_less=True) for _ in range(2))
        ended, left = Signal(), Signal(range(vectors + 1))
        write, pending = self.writes, Signal()
        m.d.comb += [
            pending.eq(left != 0),
            self.empty.eq(~ended & ~pending),
            # The times of the last job must have left their register before a job starts. A job
            # that starts early starts before the last one ends.
            self.accepts.eq(~ended & ~(pending if lead(config.array) else self.done & pending)),
            write.valid.eq(pending),
            write.payload.data.eq(entry),
            write.payload.enable.eq(~0),
        ]
        # The address of the next job's entry, of the running job's, of the entry that is written.
        following, own = Signal(VectorAddress(config)), Signal(VectorAddress(config))
        after = Signal(VectorAddress(config))  # a job later than following
        address = write.payload.address
        m.d.sync += [
            after.eq(add_vectors(m, following, vectors, config.banks, "entry_after")),
            self.inside.eq(within(config, following, vectors, base, self.limit)),
        ]
        with m.If(self.begin):
            m.d.sync += following.eq(self.address)
        with m.If(self.start):
            m.d.sync += [
                times[:32].eq(self.cycles), own.eq(following), following.eq(after),
            ]
        with m.If(self.done):
            m.d.sync += [times[32:].eq(self.cycles), ended.eq(1)]
        with m.If(pending & write.ready):
            m.d.sync += [
                entry.eq(entry >> min(8 * depth, len(entry))), left.eq(left - 1),
                address.eq(add_vectors(m, address, 1, config.banks, "next_vector")),
            ]
        with m.If(ended & ~pending):
            m.d.sync += [entry.eq(times), address.eq(own), ended.eq(0), left.eq(vectors)]
        return m
