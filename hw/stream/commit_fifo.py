"""A FIFO from bytes to words; written bytes become readable only when they are committed."""

from amaranth.hdl import Cat, Module, Signal
from amaranth.lib import stream, wiring
from amaranth.lib.wiring import In, Out

from weft.hw.buffers.bank import Bank

__all__ = ["CommitFifo"]


class CommitFifo(wiring.Component):
    """Stores up to ``depth`` bytes and gives words of ``bytes_out`` bytes.

    ``commit`` makes all bytes written so far readable; ``discard`` removes the bytes that are not
    committed. A byte takes three cycles on its way out; a ``fast`` FIFO gives a byte each cycle.
    The writer must check ``level`` first: a write to a full FIFO overwrites data.

    It is not `weft.hw.stream.fifo.Fifo`, which has no ``discard`` and no change of width.

    Parameters
    ----------
    bytes_out : int
        Bytes in a word: a power of two.
    depth : int
        Capacity in bytes: a power of two.
    target : str
        FPGA family, as in the Config.
    fast : bool

    Attributes
    ----------
    write : In
        Write strobe; 1 bit.
    data : In
        Byte to write; 8 bits, valid with ``write``.
    commit : In
        Pulse: make the bytes written before this cycle readable; 1 bit.
    discard : In
        Remove the bytes that are not committed; 1 bit.
    level : Out
        Number of committed bytes not yet read, delayed by one cycle; 0..``depth``.
    words : Out, stream of ``bytes_out`` bytes
        Committed bytes as words; the first byte is the lowest.
    """

    def __init__(self, *, bytes_out, depth, target, fast=False):
        self.depth = depth
        self.target = target
        self.fast = fast
        super().__init__({
            "write": In(1),
            "data": In(8),
            "commit": In(1),
            "discard": In(1),
            "level": Out(range(depth + 1)),
            "words": Out(stream.Signature(8 * bytes_out)),
        })

    def elaborate(self, platform):
        m = Module()
        m.submodules.memory = memory = Bank(width=8, depth=self.depth, target=self.target)
        write_ptr, commit_ptr, read_ptr = (
            Signal(range(2 * self.depth), name=name)
            for name in ("write_ptr", "commit_ptr", "read_ptr")
        )
        # The byte that the memory reads.
        ahead_ptr = Signal.like(read_ptr) if self.fast else read_ptr
        m.d.comb += [
            memory.read_addr.eq(ahead_ptr), memory.write_addr.eq(write_ptr),
            memory.write_data.eq(self.data), memory.write_en.eq(self.write),
        ]
        m.d.sync += self.level.eq(commit_ptr - read_ptr)
        with m.If(self.write):
            m.d.sync += write_ptr.eq(write_ptr + 1)
        with m.If(self.commit):
            m.d.sync += commit_ptr.eq(write_ptr)
        with m.If(self.discard):
            m.d.sync += write_ptr.eq(commit_ptr)

        if self.fast:
            self._read_ahead(m, memory, commit_ptr, read_ptr, ahead_ptr)
        else:
            self._read(m, memory, commit_ptr, read_ptr)
        return m

    def _read(self, m, memory, commit_ptr, read_ptr):
        """Read a byte every third cycle."""
        word = self.words.payload
        byte_index = Signal(range(len(word) // 8))
        nonempty = Signal()
        m.d.sync += nonempty.eq(commit_ptr != read_ptr)
        with m.If(self.words.ready):
            m.d.sync += self.words.valid.eq(0)
        with m.FSM():
            with m.State("WAIT"):  # nonempty and the memory's output follow read_ptr
                m.next = "CHECK"
            with m.State("CHECK"):
                with m.If(nonempty & ~self.words.valid):
                    m.next = "SHIFT"
            with m.State("SHIFT"):
                m.d.sync += [
                    word.eq(Cat(word, memory.read_data)[8:]), read_ptr.eq(read_ptr + 1),
                    byte_index.eq(byte_index + 1),
                ]
                with m.If(byte_index == len(word) // 8 - 1):
                    m.d.sync += [byte_index.eq(0), self.words.valid.eq(1)]
                m.next = "WAIT"

    def _read_ahead(self, m, memory, commit_ptr, read_ptr, ahead_ptr):
        """Read ahead of ``read_ptr``, so that a byte may leave in each cycle."""
        arriving = Signal(Bank.LATENCY)  # bytes in the pipeline of the memory; bit 0 came last
        word = self.words.payload
        byte_index = Signal(range(len(word) // 8))
        take, available = Signal(), Signal()
        m.d.comb += [
            take.eq(arriving[-1] & (~self.words.valid | self.words.ready)),
            available.eq(commit_ptr != ahead_ptr),
            memory.read_en.eq(take | ~arriving[-1]),
        ]
        with m.If(memory.read_en):
            m.d.sync += [arriving.eq(Cat(available, arriving)), ahead_ptr.eq(ahead_ptr + available)]
        with m.If(self.words.ready):
            m.d.sync += self.words.valid.eq(0)
        with m.If(take):
            m.d.sync += [
                word.eq(Cat(word, memory.read_data)[8:]), read_ptr.eq(read_ptr + 1),
                byte_index.eq(byte_index + 1),
            ]
            with m.If(byte_index == len(word) // 8 - 1):
                m.d.sync += [byte_index.eq(0), self.words.valid.eq(1)]
