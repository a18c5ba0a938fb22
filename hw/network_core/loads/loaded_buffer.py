"""The buffers that loads fill: words of B, parameter lines, and tables of ADD."""

from amaranth.hdl import Module, Mux, Signal
from amaranth.lib import data, wiring
from amaranth.lib.wiring import In
from amaranth.utils import ceil_log2

from weft.hw.buffers.bank import Bank
from weft.hw.network_core.interface import BufferRead, TableRead
from weft.network_core.config import ADD_TABLE_BYTES, ADD_TABLE_WORDS

__all__ = ["AddTables", "LoadedBuffer", "LoadedWord"]

_FEW_WORDS = 32  # that are cheaper in LUT RAM than in blocks of twice the words


class LoadedWord(data.StructLayout):
    """A write of a `LoadedBuffer`, or of `weft.hw.network_core.loads.loaded_buffer.AddTables`.

    ``enable`` has one bit for each group of ``read_vectors`` vectors of the word, and ``data`` has
    all its vectors.

    Parameters
    ----------
    config : NetworkCoreConfig
    vectors, words : int
        As of the buffer.
    """

    def __init__(self, config, vectors, words):
        super().__init__({
            "enable": -(-vectors // config.read_vectors),
            "word": ceil_log2(words),
            "data": data.ArrayLayout(8 * config.array.depth, vectors),
        })


class LoadedBuffer(wiring.Component):
    """Memory of words of ``vectors`` vectors, with a bank for each ``read_vectors`` of them.

    A block RAM has a power of two of words: 512 of 36 bits, or 1,024 of 18 bits, in an ECP5. Up to
    32 words beyond a power of two are in LUT RAM, and the blocks keep their width.

    Parameters
    ----------
    config : NetworkCoreConfig
    vectors : int
        Of a word: a multiple of ``read_vectors``.
    words : int

    Attributes
    ----------
    write : In, `LoadedWord`
        A word can be read WRITE cycles later.
    read : In, `weft.hw.network_core.interface.BufferRead` of words of ``vectors`` vectors
    """

    LATENCY = Bank.LATENCY
    WRITE = 2  # a register near the blocks, which can be far from the loader; the bank

    def __init__(self, config, *, vectors, words):
        self.config = config
        self.vectors = vectors
        self.words = words
        super().__init__({
            "write": In(LoadedWord(config, vectors, words)),
            "read": In(BufferRead(
                ceil_log2(words), data.ArrayLayout(8 * config.array.depth, vectors)
            )),
        })

    def elaborate(self, platform):
        m = Module()
        width = 8 * self.config.array.depth * self.config.read_vectors
        write = Signal.like(self.write)
        m.d.sync += write.eq(self.write)
        for group in range(self.vectors // self.config.read_vectors):
            data = write.data.as_value().word_select(group, width)
            m.d.comb += self.read.data.as_value().word_select(group, width).eq(
                self._group(m, group, write.enable[group], write.word, data)
            )
        return m

    def _group(self, m, group, enable, word, data):
        """Add the banks of a group of vectors; return the vectors of the word that is read."""
        most = 1 << (self.words - 1).bit_length() - 1  # words of the next smaller power of two
        few = self.words - most
        if not 0 < few <= _FEW_WORDS < most:
            return self._bank(m, f"bank_{group}", self.words, enable, word, data)
        level = ceil_log2(most)
        writes_few, reads_few = word[level], self.read.address[level]
        first = self._bank(m, f"bank_{group}", most, enable & ~writes_few, word, data)
        last = self._bank(m, f"few_{group}", few, enable & writes_few, word, data, lut_ram=True)
        for n in range(self.LATENCY):
            later = Signal(name=f"reads_few_{group}_{n}", reset_less=True)
            m.d.sync += later.eq(reads_few)
            reads_few = later
        return Mux(reads_few, last, first)

    def _bank(self, m, name, words, enable, word, data, *, lut_ram=False):
        """Add a bank; return its read data."""
        m.submodules[name] = bank = Bank(
            width=len(data), depth=words, target=self.config.array.target, lut_ram=lut_ram
        )
        m.d.comb += [
            bank.write_en.eq(enable),
            bank.write_addr.eq(word),
            bank.write_data.eq(data),
            bank.read_addr.eq(self.read.address),
        ]
        return bank.read_data


class AddTables(wiring.Component):
    """A table of ADD_TABLE_WORDS words of 32 bits for each lane; all lanes have the same words.

    Parameters
    ----------
    config : NetworkCoreConfig

    Attributes
    ----------
    write : In, `weft.hw.network_core.loads.loaded_buffer.LoadedWord`
        A word can be read WRITE cycles later.
    read : In, `weft.hw.network_core.interface.TableRead`
    """

    LATENCY = Bank.LATENCY
    WRITE = 2  # a register near the blocks; the bank

    def __init__(self, config):
        self.config = config
        super().__init__({
            "write": In(LoadedWord(config, config.add_table_vectors, ADD_TABLE_WORDS)),
            "read": In(TableRead(config)),
        })

    def elaborate(self, platform):
        m = Module()
        write = Signal.like(self.write)
        m.d.sync += write.eq(self.write)
        groups = len(write.enable)
        width = 8 * ADD_TABLE_BYTES // groups
        word = write.data.as_value()
        parts = [word.word_select(n, len(word) // groups)[:width] for n in range(groups)]
        for lane in range(self.config.array.lanes):
            address, found = self.read.address[lane], self.read.data[lane]
            for group, part in enumerate(parts):
                bank = Bank(width=width, depth=ADD_TABLE_WORDS, target=self.config.array.target)
                m.submodules[f"lane_{lane}_{group}"] = bank
                m.d.comb += [
                    bank.write_en.eq(write.enable[group]),
                    bank.write_addr.eq(write.word),
                    bank.write_data.eq(part),
                    bank.read_addr.eq(address),
                    found.word_select(group, width).eq(bank.read_data),
                ]
        return m
