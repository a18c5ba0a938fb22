"""The registers of a network core: constants that describe it, then its state."""

from functools import reduce
from itertools import pairwise
from operator import or_

from amaranth.hdl import Array, C, Cat, Const, Module, Signal
from amaranth.lib import wiring
from amaranth.lib.wiring import In, Out
from amaranth.utils import ceil_log2

from weft.hw.network_core.interface import NetworkStatus
from weft.network_core.descriptors import BANK_BITS, WORD_BITS
from weft.network_core.register_map import REGISTERS, describe

__all__ = ["StateRegisters"]


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
