"""The program memory of a network core: reads and stores of vectors become AXI4 bursts."""

from amaranth.hdl import Cat, Module, Mux, Signal
from amaranth.lib import data, stream, wiring
from amaranth.lib.wiring import In, Out, connect, flipped

from weft.hw.dma.axi import Axi4
from weft.hw.network_core.interface import VectorWrite
from weft.hw.network_core.layouts import VectorAddress
from weft.hw.network_core.program_reads import ProgramReads
from weft.hw.network_core.program_stores import ProgramStores

__all__ = ["TIMEOUT", "ProgramMemory"]

TIMEOUT = 1 << 16  # cycles in which an open transaction must move


class ProgramMemory(wiring.Component):
    """A memory with the read ports of a `weft.hw.network_core.arbiters.ReadArbiter`, behind AXI4.

    Vector ``number`` has the bytes from ``base + number * depth`` on. The clients compare addresses
    with their limit before they ask. A client gets its vectors in the order of its reads. A beat
    has ``read_vectors`` vectors: a read whose vector is not the first one of a beat gets this
    vector only, and the others are undefined.

    While ``halt`` is 1, no read is accepted. Transactions that are open then are completed, and
    their data and errors are dropped; reads are accepted again when all of them have ended.

    Parameters
    ----------
    config : NetworkCoreConfig
        With a program memory.
    timeout : int
        Cycles; a power of two.

    Attributes
    ----------
    reads_0, reads_1 : In, stream of `VectorAddress`
        The first client has priority.
    valid_0, valid_1 : Out, 1 bit each
        ``data`` are the vectors of the client's next read. It cannot wait.
    data : Out, ``read_vectors`` vectors
    read_error : Out, 1 bit, valid with ``valid_0`` and ``valid_1``
        The beat of ``data`` had the response SLVERR or DECERR.
    writes : In, stream of `VectorWrite`
    written : Out, 1 bit
        All accepted writes have their responses, and none is offered.
    base : In, 32 bits
        Address of vector 0: a multiple of the bytes of a beat. Stable while a list runs.
    halt : In, 1 bit
        No list runs.
    stored, store_error : Out, 1 bit each
        Pulse: a write has the response OKAY; SLVERR or DECERR.
    timed_out : Out, 1 bit
        Pulse: no channel has moved for ``timeout`` cycles, and a transaction is open.
    idle : Out, 1 bit
        No transaction is open, and none follows while ``halt`` is 1.
    axi : Out, `Axi4`
    """

    def __init__(self, config, *, timeout=TIMEOUT):
        self.config = config
        self.timeout = timeout
        address = stream.Signature(VectorAddress(config))
        super().__init__({
            "reads_0": In(address), "reads_1": In(address), "valid_0": Out(1), "valid_1": Out(1),
            "data": Out(data.ArrayLayout(8 * config.array.depth, config.read_vectors)),
            "read_error": Out(1),
            "writes": In(stream.Signature(VectorWrite(config))), "written": Out(1),
            "base": In(32), "halt": In(1),
            "stored": Out(1), "store_error": Out(1), "timed_out": Out(1), "idle": Out(1),
            "axi": Out(Axi4(data_bytes=config.beat_bytes)),
        })

    def elaborate(self, platform):
        m = Module()
        m.submodules.reads = reads = ProgramReads(self.config)
        m.submodules.stores = stores = ProgramStores(self.config)
        for n in range(2):
            connect(m, flipped(getattr(self, f"reads_{n}")), getattr(reads, f"reads_{n}"))
            m.d.comb += getattr(self, f"valid_{n}").eq(getattr(reads, f"valid_{n}"))
        connect(m, flipped(self.writes), stores.writes)
        for name, block in (("ar", reads), ("r", reads), ("aw", stores), ("w", stores),
                            ("b", stores)):
            connect(m, getattr(block, name), flipped(getattr(self.axi, name)))
        m.d.comb += [
            self.data.eq(reads.data), self.read_error.eq(reads.read_error),
            self.written.eq(stores.idle & ~self.writes.valid),
            reads.base.eq(self.base), stores.base.eq(self.base),
            reads.halt.eq(self.halt), stores.halt.eq(self.halt),
        ]
        idle = reads.idle & stores.idle
        m.d.comb += self.idle.eq(idle & self.halt)
        m.d.sync += [self.stored.eq(stores.stored), self.store_error.eq(stores.error)]
        self._watch(m, idle)
        return m

    def _watch(self, m, idle):
        """Count the cycles without a transfer while a transaction is open."""
        waited, axi = Signal(range(self.timeout)), self.axi
        moved = Cat(
            channel.valid & channel.ready for channel in (axi.aw, axi.w, axi.b, axi.ar, axi.r)
        ).any()
        m.d.sync += [
            waited.eq(Mux(idle | moved, 0, waited + 1)), self.timed_out.eq(waited.all()),
        ]
