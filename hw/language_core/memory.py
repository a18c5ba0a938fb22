"""`MainMemory`: the memory of a language core, in banks of a power of two words."""

from amaranth.hdl import Cat, Module, Mux, Signal
from amaranth.lib import wiring
from amaranth.lib.wiring import In, Out
from amaranth.utils import ceil_log2

from weft.hw.buffers.bank import DualPortBank
from weft.hw.delay import pipeline
from weft.language_core.latencies import PORT_B, READ

__all__ = ["MainMemory", "bank_sizes"]

_STAGES = 1 + PORT_B - READ  # registers of port B


def bank_sizes(words):
    """Sizes of the banks: the bits of ``words``, the largest first, so 3072 is 2048 and 1024."""
    return [1 << n for n in reversed(range(words.bit_length())) if words >> n & 1]


class MainMemory(wiring.Component):
    """``a_data <= memory[a_addr]``, LATENCY cycles later; port B the same, PORT_B cycles later.

    The addresses and the writes have a register: they go to all blocks of the memory. Those of port
    B, which has several users, have one more, so that they may cross the chip twice. A read is
    undefined if its word is written in the same cycle or later, before the read data is valid.

    Parameters
    ----------
    width, words : int
        Bits of a word, a multiple of 8; and number of words.
    target : str
        As in the Config.
    parts : int
        Number of equal parts of a word that ``b_parts`` writes.

    Attributes
    ----------
    a_addr, b_addr : In, word address
    b_write_en : In, 1 bit a byte
    b_write_data : In, ``width`` bits
    b_parts : In, ``parts`` bits; only with ``parts``
        In the cycle after an address and its data: the parts of the word that are written, too.
        They come a cycle later because they go to the enables of all bytes: their user has a
        cycle more to decide.
    a_data, b_data : Out, ``width`` bits
    """

    LATENCY = READ

    def __init__(self, *, width, words, target, parts=0):
        self.parts = parts
        self.width = width
        self.words = words
        self.target = target
        addr = ceil_log2(words)
        super().__init__({
            "a_addr": In(addr), "b_addr": In(addr),
            "b_write_en": In(width // 8), "b_write_data": In(width),
            "a_data": Out(width), "b_data": Out(width),
            **({"b_parts": In(parts)} if parts else {}),
        })

    def elaborate(self, platform):
        m = Module()
        addresses = {
            port: pipeline(m, getattr(self, f"{port}_addr"), stages, f"{port}_address")
            for port, stages in (("a", 1), ("b", _STAGES))
        }
        first_enable, enable = Signal.like(self.b_write_en), Signal.like(self.b_write_en)
        m.d.sync += [first_enable.eq(self.b_write_en), enable.eq(first_enable)]
        if self.parts:
            part = len(enable) // self.parts
            written = Cat(bit.replicate(part) for bit in self.b_parts)
            m.d.sync += enable.eq(first_enable | written)
        data = pipeline(m, self.b_write_data, _STAGES, "b_data")
        first, words = 0, {"a": [], "b": []}
        for n, size in enumerate(bank_sizes(self.words)):
            bank = DualPortBank(width=self.width, depth=size, target=self.target)
            m.submodules[f"bank_{n}"] = bank
            bits = ceil_log2(size)  # ``first`` is a multiple of ``size``
            within = {port: address[bits:] == first >> bits for port, address in addresses.items()}
            m.d.comb += [
                bank.a_addr.eq(addresses["a"]), bank.b_addr.eq(addresses["b"]),
                bank.b_write_en.eq(Mux(within["b"], enable, 0)), bank.b_write_data.eq(data),
            ]
            for port, chosen in within.items():
                later = pipeline(m, chosen, bank.LATENCY, f"{port}_bank_{n}")
                words[port].append((later, getattr(bank, f"{port}_data")))
            first += size
        for port, banks in words.items():
            *others, (_, word) = banks
            for chosen, other in reversed(others):
                word = Mux(chosen, other, word)
            m.d.comb += getattr(self, f"{port}_data").eq(word)
        return m
