"""The parameter buffer: reads the parameters of a column in four parts, from few block RAMs."""

from amaranth.hdl import Cat, Module
from amaranth.lib import data, wiring
from amaranth.lib.wiring import In, Out
from amaranth.utils import ceil_log2

from weft.hw.buffers.bank import Bank

__all__ = ["ParameterBuffer"]

_PART = 4  # bytes
_PARTS = 4  # of the parameters of a column


class ParameterBuffer(wiring.Component):
    """The parameters of each column as four parts of 32 bits; two of them can be read in a cycle.

    Parts 0 and 2 are in one memory, parts 1 and 3 in another. It is not
    `weft.hw.buffers.operands.OperandBuffer`, which reads a whole word: it is as wide as the word,
    and a block RAM of few words is nearly empty.

    Parameters
    ----------
    geometry : `weft.geometry.Operand`
        Words of ``edge`` entries of 16 bytes, on a stream of at most 8 bytes.
    write : shape
        ``valid`` and `weft.hw.control.loader.BufferWrite`.
    target : str
        As for `weft.hw.buffers.bank.Bank`.

    Attributes
    ----------
    write : In, shape ``write``
    even_addr : In, ``Cat(part 2, word address)``
    even : Out, ``edge`` x 32 bits
        Part 0 or 2 of each entry, LATENCY cycles after ``even_addr``.
    odd_addr : In, ``Cat(part 3, word address)``
    odd : Out, ``edge`` x 32 bits
        Part 1 or 3 of each entry, LATENCY cycles after ``odd_addr``.
    """

    LATENCY = Bank.LATENCY

    def __init__(self, *, geometry, write, target):
        self.geometry = geometry
        self.target = target
        address, parts = 1 + ceil_log2(geometry.words), data.ArrayLayout(8 * _PART, geometry.edge)
        super().__init__({
            "write": In(write),
            "even_addr": In(address), "even": Out(parts),
            "odd_addr": In(address), "odd": Out(parts),
        })

    def elaborate(self, platform):
        m = Module()
        ports = (self.even_addr, self.even), (self.odd_addr, self.odd)
        width = min(_PART, self.geometry.stream)  # bytes of a bank
        for lane in range(self.geometry.edge):
            for part, (address, values) in enumerate(ports):
                banks = [
                    self._bank(m, lane, part, first, width, address)
                    for first in range(0, _PART, width)
                ]
                m.d.comb += values[lane].eq(Cat(banks))
        return m

    def _bank(self, m, lane, part, first, width, address):
        """Bytes ``first`` to ``first + width - 1`` of parts ``part`` and ``part + 2``."""
        stream, write = self.geometry.stream, self.write.write
        start = _PART * (_PARTS * lane + part) + first  # of part `part` in a word
        segments = [(start + half) // stream for half in (0, 2 * _PART)]
        name = f"bank_{lane}_{part}_{first}"
        m.submodules[name] = bank = Bank(
            width=8 * width, depth=2 * self.geometry.words, target=self.target
        )
        second = write.segment[ceil_log2(2 * _PART // stream)]
        m.d.comb += [
            bank.write_en.eq(self.write.valid & write.segment.matches(*segments)),
            bank.write_addr.eq(Cat(second, write.line)),
            bank.write_data.eq(write.data[8 * (start % stream) :]),
            bank.read_addr.eq(address),
        ]
        return bank.read_data
