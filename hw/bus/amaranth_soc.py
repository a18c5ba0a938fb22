"""An IP core as a peripheral of amaranth-soc: its Wishbone signature, and a memory map."""

from amaranth.hdl import Module, ResetInserter
from amaranth.lib import wiring
from amaranth.lib.wiring import In, Out, connect

from weft.hw.bus.bus_wrapper import BusWrapper
from weft.hw.core import Core
from weft.ip import Ip
from weft.registers import SPACE

__all__ = ["WishbonePeripheral"]


class WishbonePeripheral(wiring.Component):
    """An accelerator on a Wishbone bus of amaranth-soc, in the domain ``sync``.

    The bus has 32 bits of data and a select line for each byte. A write that does not select all
    four bytes ends with ``err``, as a wrong address does, and writes no register.
    Cycles are classic and take two clocks or more. ``docs/ip.md`` describes the registers. Add it
    to a decoder with ``decoder.add(peripheral.bus, addr=...)``; the decoder needs the feature
    ``err``.

    Parameters
    ----------
    config : Config
        ``bytes_in`` and ``bytes_out`` must be at least 4.

    Attributes
    ----------
    bus : In, ``amaranth_soc.wishbone.Signature``
        10 address bits (words), 32 data bits, granularity 8, feature ``err``. Its memory map has
        one resource, ``registers``, of 4 KiB.
    irq : Out, 1 bit
        Interrupt; a level.

    Raises
    ------
    ConfigError
        If an IP core can't have this Config.
    ImportError
        If amaranth-soc is not installed.
    """

    def __init__(self, config):
        # Only users of this class need amaranth-soc, so Weft does not install it.
        from amaranth_soc import wishbone
        from amaranth_soc.memory import MemoryMap

        self.ip = Ip(config=config, bus="wishbone")
        super().__init__({
            "bus": In(wishbone.Signature(
                addr_width=10, data_width=32, granularity=8, features={"err"}
            )),
            "irq": Out(1),
        })
        memory_map = MemoryMap(addr_width=12, data_width=8)
        memory_map.add_resource(self, name=("registers",), size=SPACE)
        self.bus.memory_map = memory_map

    def elaborate(self, platform):
        m = Module()
        m.submodules.wrapper = wrapper = BusWrapper(self.ip)
        core = Core(self.ip.array)  # the Config of a product core is the one of its array
        m.submodules.core = ResetInserter(wrapper.core_reset)(core)
        connect(m, wrapper.core, core)
        bus = self.bus
        m.d.comb += [
            wrapper.wb_cyc_i.eq(bus.cyc), wrapper.wb_stb_i.eq(bus.stb), wrapper.wb_we_i.eq(bus.we),
            wrapper.wb_adr_i.eq(bus.adr), wrapper.wb_sel_i.eq(bus.sel),
            wrapper.wb_dat_i.eq(bus.dat_w), bus.dat_r.eq(wrapper.wb_dat_o),
            bus.ack.eq(wrapper.wb_ack_o), bus.err.eq(wrapper.wb_err_o), self.irq.eq(wrapper.irq),
        ]
        return m
