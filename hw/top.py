"""The top: the core with flat ports, whose names are the same in every tool."""

from amaranth.hdl import Module
from amaranth.lib import wiring
from amaranth.lib.wiring import In, Out

from weft.hw.core import Core

__all__ = ["FlatTop", "Top"]


class FlatTop(wiring.Component):
    """A core with a separate port for each member of its interface.

    Parameters
    ----------
    core : wiring.Component
    pins : dict of (In or Out, Value)
        For each port the direction, and the member of the core's interface.
    """

    def __init__(self, core, pins):
        self.core = core
        self._pins = pins
        super().__init__({name: flow(len(inner)) for name, (flow, inner) in pins.items()})

    def elaborate(self, platform):
        m = Module()
        m.submodules.core = self.core
        for name, (flow, inner) in self._pins.items():
            outer = getattr(self, name)
            m.d.comb += inner.eq(outer) if flow == In else outer.eq(inner)
        return m


class Top(FlatTop):
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
        core = Core(config, mac=mac)
        commands, results, word = core.commands, core.results, core.results.payload
        super().__init__(core, {
            "cmd_valid": (In, commands.valid),
            "cmd_ready": (Out, commands.ready),
            "cmd_data": (In, commands.payload),
            "res_valid": (Out, results.valid),
            "res_ready": (In, results.ready),
            "res_data": (Out, word.data),
            "res_last": (Out, word.last),
            "res_status": (Out, word.status),
            "res_tag": (Out, word.tag),
            "cmd_abort": (In, core.abort),
            "reg_address": (In, core.reg_address),
            "reg_data": (Out, core.reg_data),
            "activity": (Out, core.activity.as_value()),
        })
