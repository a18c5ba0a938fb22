"""The ports of a network core: access to its memory, start and abort of lists, status."""

from functools import reduce
from itertools import pairwise
from operator import or_

from amaranth.hdl import Array, C, Cat, Const, Module, Signal
from amaranth.lib import data, stream, wiring
from amaranth.lib.wiring import In, Out
from amaranth.utils import ceil_log2

from weft.hw.dma.axi import Axi4
from weft.hw.network_core.layouts import VectorAddress
from weft.network_core.descriptors import BANK_BITS, WORD_BITS
from weft.network_core.register_map import REGISTERS, describe

__all__ = ["ListBegin", "NetworkInterface", "NetworkStatus", "StateRegisters", "VectorWrite"]


class VectorWrite(data.StructLayout):
    """A write of a vector to the memory; ``enable`` has one bit a byte."""

    def __init__(self, config):
        super().__init__({
            "address": VectorAddress(config), "data": 8 * config.array.depth,
            "enable": config.array.depth,
        })


class ListBegin(data.StructLayout):
    """The start of a list: ``valid`` for one cycle, with the addresses of list and log."""

    def __init__(self, config):
        super().__init__({"valid": 1, "list": VectorAddress(config), "log": VectorAddress(config)})


class NetworkStatus(data.StructLayout):
    """The state of the core, and of its running or last list.

    ``state`` is a `weft.network_core.report.NetworkState`, ``error`` a
    `weft.network_core.descriptors.ListError`, ``job`` the number of jobs that have ended,
    ``cycles`` the cycles since the start. ``result`` and ``result_bytes`` are the fields of END;
    valid if the state is DONE.
    """

    def __init__(self, config):
        super().__init__({
            "state": 8, "error": 8, "job": 16, "cycles": 32, "result": VectorAddress(config),
            "result_bytes": 16,
        })


class NetworkInterface(wiring.Signature):
    """The ports of a `weft.hw.network_core.core.NetworkCore`, from its user's side; the core flips
    it.

    Parameters
    ----------
    config : NetworkCoreConfig

    Attributes
    ----------
    writes : Out, stream of `VectorWrite`
    reads : Out, stream of `VectorAddress`
        Address of the first vector of a read.
    read_valid : In, 1 bit
        The data of a read; in the order of ``reads``. It cannot wait.
    read_data : In, ``read_vectors`` vectors
        The vector at the address, and the ones after it.
    begin : Out, `ListBegin`
        Ignored while a list runs. After an abort the list waits until the core is ready for it.
    abort : Out, 1 bit
        Pulse: ends the running list.
    base, limit : Out
        The first word of each bank that a list may use, and the first word beyond.
    status : In, `NetworkStatus`
    finished : In, 1 bit
        Pulse: a list has ended; ``status`` is valid.
    program_base : Out, 32 bits; only with a program memory, as all that follow
        Address of its first byte: a multiple of the bytes of a beat.
    program_limit : Out
        The first word of each bank of the program memory that a list may not use.
    program_idle : In, 1 bit
        No list runs, and no transaction is open.
    axi : In, `weft.hw.dma.axi.Axi4`
        The master of the program memory.
    """

    def __init__(self, config):
        vector, word = 8 * config.array.depth, VectorAddress(config)["word"].width
        super().__init__({
            "writes": Out(stream.Signature(VectorWrite(config))),
            "reads": Out(stream.Signature(VectorAddress(config))),
            "read_valid": In(1),
            "read_data": In(data.ArrayLayout(vector, config.read_vectors)),
            "begin": Out(ListBegin(config)),
            "abort": Out(1),
            "base": Out(word),
            "limit": Out(word),
            "status": In(NetworkStatus(config)),
            "finished": In(1),
            **({
                "program_base": Out(32), "program_limit": Out(word), "program_idle": In(1),
                "axi": In(Axi4(data_bytes=config.beat_bytes)),
            } if config.program_words else {}),
        })


class StateRegisters(wiring.Component):
    """The register at ``address``, `weft.network_core.register_map.LATENCY` cycles later.

    Parameters
    ----------
    config : NetworkCoreConfig

    Attributes
    ----------
    address : In, 8 bits
        Number of a register.
    status : In, `weft.hw.network_core.interface.NetworkStatus`
    value : Out, 32 bits
        0 if no such register exists.
    """

    def __init__(self, config):
        self.config = config
        super().__init__({"address": In(8), "status": In(NetworkStatus(config)), "value": Out(32)})

    def elaborate(self, platform):
        m = Module()
        status, result, address = self.status, self.status.result, self.address
        unused = BANK_BITS - len(result.bank)
        values = [
            *(Const(word, 32) for word in describe(self.config)),
            Cat(status.state, status.error, status.job), status.cycles,
            Cat(result.bank, C(0, unused), result.word, C(0, WORD_BITS - len(result.word))),
            status.result_bytes,
        ]
        first_state = REGISTERS.index("net_status")
        # First the word of each group of registers, and the group; then the word of that group.
        bounds, masked = [*range(0, first_state, 16), first_state, len(values)], []
        # Where flip-flops are scarce the value is valid a cycle before LATENCY.
        domain = "comb" if self.config.array.family.serial_epilogue else "sync"
        for n, end in pairwise(bounds):
            word, mine = Signal(32, name=f"word_{n}"), Signal(name=f"is_group_{n}")
            m.d[domain] += [
                word.eq(Array(values[n:end])[(address - n)[: ceil_log2(end - n)]]),
                mine.eq((address < end) & (address >= n if n else 1)),
            ]
            masked.append(word & mine.replicate(32))
        m.d.sync += self.value.eq(reduce(or_, masked))
        return m
