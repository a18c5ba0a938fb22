"""The top: the core with flat ports, whose names are the same in every tool."""

from amaranth.hdl import Module
from amaranth.lib import wiring
from amaranth.lib.wiring import In, Out

from weft.hw.core import Core

__all__ = ["Top"]


class Top(wiring.Component):
    """`Core`, with a separate port for each member of its interface.

    Attributes
    ----------
    cmd_valid : In, 1 bit; cmd_ready : Out, 1 bit; cmd_data : In, ``config.bytes_in`` bytes
        The command stream.
    res_valid : Out, 1 bit; res_ready : In, 1 bit; res_data : Out, ``config.bytes_out`` bytes
        The result stream.
    res_last : Out, 1 bit; res_status : Out, 8 bits; res_tag : Out, 16 bits
        Whether this is the last word of its job; status and tag of the job. Valid with
        ``res_valid``; the status with ``res_last``.
    cmd_abort : In, 1 bit
        Pulse: end the active job.
    reg_address : In, 8 bits; reg_data : Out, 32 bits
        Number of a register, and its value; `weft.hw.interface.CoreInterface` has its latency.
    activity : Out, 6 bits
        The bits of `weft.hw.interface.ACTIVITY`, the first one lowest.
    """

    def __init__(self, config, *, mac=None):
        self.core = Core(config, mac=mac)
        super().__init__({
            "cmd_valid": In(1),
            "cmd_ready": Out(1),
            "cmd_data": In(8 * config.bytes_in),
            "res_valid": Out(1),
            "res_ready": In(1),
            "res_data": Out(8 * config.bytes_out),
            "res_last": Out(1),
            "res_status": Out(8),
            "res_tag": Out(16),
            "cmd_abort": In(1),
            "reg_address": In(8),
            "reg_data": Out(32),
            "activity": Out(6),
        })

    def elaborate(self, platform):
        m = Module()
        m.submodules.core = core = self.core
        word = core.results.payload
        m.d.comb += [
            core.commands.valid.eq(self.cmd_valid),
            core.commands.payload.eq(self.cmd_data),
            self.cmd_ready.eq(core.commands.ready),
            self.res_valid.eq(core.results.valid),
            self.res_data.eq(word.data),
            self.res_last.eq(word.last),
            self.res_status.eq(word.status),
            self.res_tag.eq(word.tag),
            core.results.ready.eq(self.res_ready),
            core.abort.eq(self.cmd_abort),
            core.reg_address.eq(self.reg_address),
            self.reg_data.eq(core.reg_data),
            self.activity.eq(core.activity),
        ]
        return m
