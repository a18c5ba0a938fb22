"""A buffer that loads fill: words of B, or parameter lines."""

from amaranth.hdl import Module
from amaranth.lib import data, wiring
from amaranth.lib.wiring import In, Out
from amaranth.utils import ceil_log2

from weft.hw.buffers.bank import Bank

__all__ = ["LoadedBuffer", "LoadedWord"]


class LoadedWord(data.StructLayout):
    """A write of a `LoadedBuffer`.

    ``enable`` has one bit for each group of ``read_vectors`` vectors of the word, and ``data`` has
    all its vectors.

    Parameters
    ----------
    chip : ChipConfig
    vectors, words : int
        As of the buffer.
    """

    def __init__(self, chip, vectors, words):
        super().__init__({
            "enable": vectors // chip.read_vectors,
            "word": ceil_log2(words),
            "data": data.ArrayLayout(8 * chip.core.depth, vectors),
        })


class LoadedBuffer(wiring.Component):
    """Memory of words of ``vectors`` vectors, with a bank for each ``read_vectors`` of them.

    Parameters
    ----------
    chip : ChipConfig
    vectors : int
        Of a word: a multiple of ``read_vectors``.
    words : int

    Attributes
    ----------
    write : In, `LoadedWord`
        A word can be read from the next cycle on.
    read_addr : In, a word address
    read_data : Out, ``vectors`` vectors
        The word, LATENCY cycles later.
    """

    LATENCY = Bank.LATENCY

    def __init__(self, chip, *, vectors, words):
        self.chip = chip
        self.vectors = vectors
        self.words = words
        super().__init__({
            "write": In(LoadedWord(chip, vectors, words)),
            "read_addr": In(ceil_log2(words)),
            "read_data": Out(data.ArrayLayout(8 * chip.core.depth, vectors)),
        })

    def elaborate(self, platform):
        m = Module()
        core = self.chip.core
        width = 8 * core.depth * self.chip.read_vectors
        for group in range(self.vectors // self.chip.read_vectors):
            m.submodules[f"bank_{group}"] = bank = Bank(
                width=width, depth=self.words, target=core.target
            )
            m.d.comb += [
                bank.write_en.eq(self.write.enable[group]),
                bank.write_addr.eq(self.write.word),
                bank.write_data.eq(self.write.data.as_value().word_select(group, width)),
                bank.read_addr.eq(self.read_addr),
                self.read_data.as_value().word_select(group, width).eq(bank.read_data),
            ]
        return m
