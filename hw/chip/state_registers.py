"""The registers of a core for networks: constants that describe it, then its state."""

from amaranth.hdl import Array, C, Cat, Const, Module, Signal
from amaranth.lib import wiring
from amaranth.lib.wiring import In, Out

from weft.chip.addresses import BANK_BITS, WORD_BITS
from weft.chip.registers import REGISTERS, describe
from weft.hw.chip.interface import NetworkStatus

__all__ = ["StateRegisters"]


class StateRegisters(wiring.Component):
    """The register at ``address``, `weft.chip.registers.LATENCY` cycles later.

    Parameters
    ----------
    chip : ChipConfig

    Attributes
    ----------
    address : In, 8 bits
        Number of a register.
    status : In, `weft.hw.chip.interface.NetworkStatus`
    value : Out, 32 bits
        0 if no such register exists.
    """

    def __init__(self, chip):
        self.chip = chip
        super().__init__({"address": In(8), "status": In(NetworkStatus(chip)), "value": Out(32)})

    def elaborate(self, platform):
        m = Module()
        status, result, address = self.status, self.status.result, self.address
        unused = BANK_BITS - len(result.bank)
        values = [
            *(Const(word, 32) for word in describe(self.chip)),
            Cat(status.state, status.error, status.job), status.cycles,
            Cat(result.bank, C(0, unused), result.word, C(0, WORD_BITS - len(result.word))),
            status.result_bytes,
        ]
        first_state = REGISTERS.index("NET_STATUS")
        constant, state = Signal(32), Signal(32)
        is_constant, is_state = Signal(), Signal()
        m.d.sync += [
            constant.eq(Array(values[:first_state])[address]),
            state.eq(Array(values[first_state:])[(address - first_state)[:2]]),
            is_constant.eq(address < first_state),
            is_state.eq((address >= first_state) & (address < len(values))),
            self.value.eq(
                (constant & is_constant.replicate(32)) | (state & is_state.replicate(32))
            ),
        ]
        return m
