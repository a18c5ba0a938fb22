"""FIFOs in a memory bank, one of which commits its bytes; and a register stage of a stream."""

from amaranth.hdl import Cat, Module, Mux, Shape, Signal
from amaranth.lib import stream, wiring
from amaranth.lib.wiring import In, Out
from amaranth.utils import ceil_log2

from weft.hw.buffers.bank import Bank

__all__ = ["CommitFifo", "Fifo", "SkidBuffer", "TAPS", "lfsr_next"]

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


# By width: the two bits whose XNOR is shifted in, for the longest sequence.
TAPS = {2: (0, 1), 3: (1, 2), 4: (2, 3), 5: (2, 4), 6: (4, 5), 7: (5, 6), 9: (4, 8)}


def lfsr_next(addr):
    """The LFSR state after ``addr``. The sequence visits every value except all ones.

    A FIFO may use any order of addresses, because it reads in the order in which it writes.

    Source: P. Alfke, Efficient Shift Registers, LFSR Counters, and Long Pseudo-Random Sequence
    Generators, Xilinx XAPP 052, 1996: the taps.
    """
    low, high = TAPS[len(addr)]
    return Cat(~(addr[low] ^ addr[high]), addr[:-1])


class Fifo(wiring.Component):
    """Words leave in the order of their arrival; one word in and one word out a cycle.

    A word is offered at most :attr:`LATENCY` cycles after it arrived, or after the word before it
    left, whichever is later.

    It is not `amaranth.lib.fifo.SyncFIFOBuffered`: a `Bank` reads in two steps, so that no logic
    follows the block RAM; the pointers are LFSRs, which have no carry; words can be written before
    they may leave; and ``next_valid`` is known a cycle ahead.

    Parameters
    ----------
    shape : shape
        Shape of a word.
    depth : int
        Words of the memory: a power of two whose number of address bits
        `weft.hw.stream.fifo.TAPS` has. The memory holds ``depth - 1`` words.
    target : str
        Target of the Config.
    counted : bool
        Adds ``level``, and counts the offered word and the word behind it among the ``depth - 1``.
        If False, these two words come on top of it.
    checked : bool
        If False, ``i.ready`` is always 1, and the writer must not overfill the FIFO.
    commit : bool
        Adds ``commit``.

    Attributes
    ----------
    i : In, stream of ``shape``
    o : Out, stream of ``shape``
        Its payload comes from a register.
    next_valid : Out, 1 bit
        ``o`` is valid in the next cycle, whether the offered word is taken in this one or not.
    level : Out, ``range(depth)``; with ``counted``
        Number of words in the FIFO, including the offered word.
    commit : In, 1 bit; with ``commit``; valid with ``i.valid``
        This word and all words before it may leave; words behind the last commit stay.
    """

    LATENCY = 1 + Bank.LATENCY

    def __init__(self, shape, *, depth, target, counted=False, checked=True, commit=False):
        self.shape = shape
        self.depth = depth
        self.target = target
        self.counted = counted
        self.checked = checked
        self.commits = commit
        super().__init__({
            "i": In(stream.Signature(shape, always_ready=not checked)),
            "o": Out(stream.Signature(shape)),
            "next_valid": Out(1),
            **({"level": Out(range(depth))} if counted else {}),
            **({"commit": In(1)} if commit else {}),
        })

    def elaborate(self, platform):
        m = Module()
        m.submodules.bank = bank = Bank(
            width=Shape.cast(self.shape).width, depth=self.depth, target=self.target
        )
        write_addr = Signal(ceil_log2(self.depth))
        read_addr = Signal.like(write_addr)
        write, nonempty, advance = Signal(), Signal(), Signal()
        end = self._committed(m, write, write_addr) if self.commits else write_addr
        if self.checked:
            full = self._full(m, write, write_addr, read_addr)
            m.d.comb += self.i.ready.eq(~full)
        m.d.comb += [
            write.eq(self.i.valid & self.i.ready if self.checked else self.i.valid),
            nonempty.eq(end != read_addr),
            advance.eq(~self.o.valid | self.o.ready),
            bank.write_en.eq(write), bank.write_addr.eq(write_addr),
            bank.write_data.eq(self.i.payload),
            bank.read_en.eq(advance), bank.read_addr.eq(read_addr),
            self.o.payload.eq(bank.read_data),
        ]
        with m.If(write):
            m.d.sync += write_addr.eq(lfsr_next(write_addr))
        with m.If(advance & nonempty):
            m.d.sync += read_addr.eq(lfsr_next(read_addr))
        # A read takes the bank two steps: `next_valid` belongs to the first, `o` to the second.
        with m.If(advance):
            m.d.sync += [self.next_valid.eq(nonempty), self.o.valid.eq(self.next_valid)]
        return m

    def _committed(self, m, write, write_addr):
        """The address behind the last word that may leave."""
        end = Signal.like(write_addr)
        with m.If(write & self.commit):
            m.d.sync += end.eq(lfsr_next(write_addr))
        return end

    def _full(self, m, write, write_addr, read_addr):
        """Whether no word may be written."""
        if not self.counted:
            return lfsr_next(write_addr) == read_addr
        take = Signal()
        m.d.comb += take.eq(self.o.valid & self.o.ready)
        with m.If(write != take):
            m.d.sync += self.level.eq(self.level + Mux(write, 1, -1))
        return self.level.all()


class SkidBuffer(wiring.Component):
    """``o`` is ``i`` one cycle later, at one word a cycle.

    ``i.ready`` is a register: a word that arrives in the cycle in which ``o`` stalls is kept in a
    second register. In reset ``i.ready`` is 0. It is not `amaranth.lib.fifo.SyncFIFOBuffered`,
    which needs a memory.

    Parameters
    ----------
    shape : shape
        Shape of a word.

    Attributes
    ----------
    i : In, stream of ``shape``
    o : Out, stream of ``shape``
    """

    LATENCY = 1

    def __init__(self, shape):
        super().__init__({
            "i": In(stream.Signature(shape)), "o": Out(stream.Signature(shape)),
        })

    def elaborate(self, platform):
        m = Module()
        ready = Signal()
        skid_valid = Signal()
        word, skid = (Signal.like(self.i.payload, reset_less=True) for _ in range(2))
        advance = self.o.ready | ~self.o.valid
        i_fire = self.i.valid & ready
        m.d.comb += [self.i.ready.eq(ready), self.o.payload.eq(word)]
        m.d.sync += ready.eq(advance | (~skid_valid & ~i_fire))
        with m.If(advance):
            m.d.sync += skid_valid.eq(0)
            with m.If(skid_valid):
                m.d.sync += [self.o.valid.eq(1), word.eq(skid)]
            with m.Else():
                m.d.sync += [self.o.valid.eq(i_fire), word.eq(self.i.payload)]
        with m.Elif(i_fire):
            m.d.sync += [skid_valid.eq(1), skid.eq(self.i.payload)]
        return m
