"""A bench of a USB device in Amaranth's simulator: clocks, a watchdog, and an application."""

import random

from amaranth.hdl import ClockDomain, Module
from amaranth.sim import Simulator
from luna.gateware.interface.utmi import UTMIInterface
from usb_wires import Utmi

from verif.amaranth_engine import Engine
from verif.usb_host import UsbHost
from weft.hw.usb.device import FULL_SPEED_PACKET, UsbPort

__all__ = ["Application", "UtmiPort", "run"]


def run(dut, bench, *background, seconds, usb=12e6, sync=15e6, io=None):
    """Run ``bench`` beside benches in the ``background``; TimeoutError after simulated seconds."""
    m = Module()
    m.domains.usb = ClockDomain()
    m.domains.sync = ClockDomain()
    if io:
        m.domains.usb_io = ClockDomain()
    m.submodules.dut = dut
    simulator = Simulator(m, engine=Engine)
    simulator.add_clock(1 / usb, domain="usb")
    simulator.add_clock(1 / sync, domain="sync")
    if io:
        simulator.add_clock(1 / io, domain="usb_io")

    async def watchdog(ctx):
        await ctx.delay(seconds)
        raise TimeoutError(f"the simulation exceeded {seconds:g} s of its own time")

    simulator.add_testbench(watchdog, background=True)
    for each in background:
        simulator.add_testbench(each, background=True)
    simulator.add_testbench(bench)
    simulator.run()


class Application:
    """What stands behind a port: takes the bytes from the host, and sends ``answers``.

    ``stall`` is the probability of a cycle in which it takes no byte, ``idle`` that of a pause
    after a byte that it sends. While ``stopped``, it takes none.
    """

    def __init__(self, port, *, stall=0.0, idle=0.0, seed=1):
        self.port, self.answers, self.stall, self.idle = port, bytearray(), stall, idle
        self.received, self.stopped, self.seed = bytearray(), False, seed

    async def take(self, ctx):
        rng, bytes_ = random.Random(self.seed), self.port.rx_bytes
        while True:
            if self.stopped:
                await ctx.delay(1e-6)
                continue
            if not ctx.get(bytes_.valid):  # a simulator is slow while a bench sees every cycle
                await ctx.posedge(bytes_.valid)
            ready = rng.random() >= self.stall
            ctx.set(bytes_.ready, ready)
            _, _, valid, byte = await ctx.tick().sample(bytes_.valid, bytes_.payload)
            ctx.set(bytes_.ready, 0)
            if valid and ready:
                self.received.append(byte)

    async def give(self, ctx):
        rng, bytes_ = random.Random(self.seed + 1), self.port.tx_bytes
        while True:
            if not self.answers or rng.random() < self.idle:
                await ctx.delay(1e-6)
                continue
            ctx.set(bytes_.valid, 1)
            ctx.set(bytes_.payload, self.answers.pop(0))
            await ctx.tick().until(bytes_.ready)
            ctx.set(bytes_.valid, 0)


class UtmiPort:
    """A `UsbPort` at a UTMI bus, with its application and a host."""

    def __init__(self, **application):
        self.bus = UTMIInterface()
        self.port = UsbPort(self.bus, packet=FULL_SPEED_PACKET, serial="left board")
        self.application = Application(self.port, **application)

    def run(self, bench, *, pace=1, seconds=1e-3):
        """Run ``await bench(ctx, host)`` with a device that is not enumerated yet."""
        async def connected(ctx):
            ctx.set(self.port.connect, 1)
            await bench(ctx, UsbHost(Utmi(ctx, self.bus, pace=pace)))

        run(self.port, connected, self.application.take, self.application.give, seconds=seconds)
