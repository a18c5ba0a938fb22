"""The core as a peripheral of an amaranth-soc design: python examples/amaranth_soc.py

The design has a Wishbone decoder of amaranth-soc with the core at one of its addresses. Amaranth's
simulator runs it, and the Python driver computes a product over its bus. It needs a checkout of
amaranth-soc (https://github.com/amaranth-lang/amaranth-soc) in PYTHONPATH, because PyPI has no
release.
"""

import numpy as np
from amaranth.hdl import Module
from amaranth.lib import wiring
from amaranth.lib.wiring import In, connect, flipped
from amaranth.sim import Simulator
from amaranth_soc import wishbone

from weft import Accelerator, Config
from weft.host.mmio import MmioTransport
from weft.hw.bus.amaranth_soc import WishbonePeripheral

__all__ = ["BASE", "SimulatedBus", "Soc", "main"]

BASE = 0x4000_0000  # address of the core
BUS = {"addr_width": 30, "data_width": 32, "granularity": 8, "features": {"err"}}


class Soc(wiring.Component):
    """A decoder with the core behind it. Add your memory and peripherals to the decoder.

    Attributes
    ----------
    bus : In, ``amaranth_soc.wishbone.Signature``
        For the bus master: a processor, or here the simulation.
    """

    def __init__(self, config):
        self.decoder = wishbone.Decoder(**BUS)
        self.weft = WishbonePeripheral(config)
        self.decoder.add(self.weft.bus, name="weft", addr=BASE)
        super().__init__({"bus": In(wishbone.Signature(**BUS))})

    def elaborate(self, platform):
        m = Module()
        m.submodules.decoder = self.decoder
        m.submodules.weft = self.weft
        connect(m, flipped(self.bus), self.decoder.bus)
        return m


class SimulatedBus:
    """Reads and writes the registers of the core in Amaranth's simulator, for `MmioTransport`."""

    LIMIT = 1000  # clock cycles of an access

    def __init__(self, soc):
        self._bus = soc.bus
        self._access = self._word = None
        self._simulator = Simulator(soc)
        self._simulator.add_clock(1e-8)
        self._simulator.add_testbench(self._master)

    def read(self, address):
        """The register at a byte address of the core."""
        return self._run(address, None)

    def write(self, address, value):
        """Write a register."""
        self._run(address, value)

    def close(self):
        """Do nothing: the simulation stands still between two accesses."""

    def _run(self, address, value):
        self._access = address, value
        while self._access:
            self._simulator.advance()
        return self._word

    async def _master(self, ctx):
        bus = self._bus
        while True:
            if not self._access:
                await ctx.tick()
                continue
            address, value = self._access
            ctx.set(bus.adr, (BASE + address) // 4)
            ctx.set(bus.sel, 0b1111)
            ctx.set(bus.we, value is not None)
            ctx.set(bus.dat_w, value or 0)
            ctx.set(bus.cyc, 1)
            ctx.set(bus.stb, 1)
            for _ in range(self.LIMIT):
                _, _, ack, err, word = await ctx.tick().sample(bus.ack, bus.err, bus.dat_r)
                if ack or err:
                    break
            else:
                raise TimeoutError(f"no answer from {address:#x} in {self.LIMIT} cycles")
            if err:
                raise RuntimeError(f"the access to {address:#x} ended in a bus error")
            ctx.set(bus.cyc, 0)
            ctx.set(bus.stb, 0)
            await ctx.tick()
            self._access, self._word = None, word


def main():
    """Compute one product; 0 if it equals NumPy's."""
    config = Config(rows=2, cols=2, bytes_in=4, bytes_out=4, a_words=64, b_words=64,
                    requantize="none")
    a = np.arange(-16, 16, dtype=np.int8).reshape(4, 8)
    b = np.arange(24, dtype=np.int8).reshape(8, 3)
    with Accelerator(MmioTransport(SimulatedBus(Soc(config)))) as accelerator:
        c = accelerator.matmul(a, b)
    assert np.array_equal(c, a.astype(int) @ b)
    print("a product over the bus of the SoC equals NumPy's")
    return 0


if __name__ == "__main__":
    main()
