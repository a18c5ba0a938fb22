"""The table of ADD, once for each lane."""

from amaranth.hdl import Module, Signal, signed
from amaranth.lib import data, wiring
from amaranth.lib.wiring import In, Out

from weft.hw.buffers.bank import Bank
from weft.hw.network_core.loaded_buffer import LoadedWord
from weft.network_core.config import ADD_TABLE_BYTES, ADD_TABLE_WORDS

__all__ = ["AddTables"]


class AddTables(wiring.Component):
    """A table of ADD_TABLE_WORDS words of 32 bits for each lane; all lanes have the same words.

    Parameters
    ----------
    config : NetworkCoreConfig

    Attributes
    ----------
    write : In, `weft.hw.network_core.loaded_buffer.LoadedWord`
        A word can be read WRITE cycles later.
    read_addr : In, ``lanes`` word addresses
    read_data : Out, ``lanes`` x 32 bits
        The word of each lane, LATENCY cycles later.
    """

    LATENCY = Bank.LATENCY
    WRITE = 2  # a register near the blocks; the bank

    def __init__(self, config):
        self.config = config
        lanes = config.array.lanes
        super().__init__({
            "write": In(LoadedWord(config, config.add_table_vectors, ADD_TABLE_WORDS)),
            "read_addr": In(data.ArrayLayout(range(ADD_TABLE_WORDS), lanes)),
            "read_data": Out(data.ArrayLayout(signed(32), lanes)),
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
            address, found = self.read_addr[lane], self.read_data[lane]
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
