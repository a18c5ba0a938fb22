"""Transceivers of the USB host in `verif.usb_host`, for Amaranth's simulator."""

from types import SimpleNamespace

from amaranth.hdl import Signal

__all__ = ["Pins", "Utmi", "pins"]

PACKET = 600  # bytes; no packet of a device is longer


class Utmi:
    """At a UTMI port of the device: a byte every ``pace`` cycles of the clock domain ``usb``."""

    LATE = 40  # cycles until the device must have begun an answer

    def __init__(self, ctx, bus, *, pace=1):
        self.ctx, self.bus, self.pace = ctx, bus, pace

    async def _ticks(self, count):
        for _ in range(count):
            await self.ctx.tick("usb")

    async def send(self, packet):
        ctx, bus = self.ctx, self.bus
        ctx.set(bus.rx_active, 1)
        await self._ticks(2)
        for byte in packet:
            ctx.set(bus.rx_data, byte)
            ctx.set(bus.rx_valid, 1)
            await self._ticks(1)
            ctx.set(bus.rx_valid, 0)
            await self._ticks(self.pace - 1)
        ctx.set(bus.rx_active, 0)
        await self._ticks(4)

    async def receive(self):
        ctx, bus = self.ctx, self.bus
        for _ in range(self.LATE):
            if ctx.get(bus.tx_valid):
                break
            await self._ticks(1)
        else:
            return None
        packet = bytearray()
        while ctx.get(bus.tx_valid):
            await self._ticks(self.pace - 1)
            ctx.set(bus.tx_ready, 1)
            packet.append(ctx.get(bus.tx_data))
            await self._ticks(1)
            ctx.set(bus.tx_ready, 0)
            assert len(packet) <= PACKET, "the packet of the device has no end"
        await self._ticks(3)
        return bytes(packet)

    async def idle(self, seconds):
        """The bus is idle; the clock of the device is 12 MHz."""
        self.ctx.set(self.bus.line_state, 0b01)
        await self._ticks(round(seconds * 12e6))

    async def resume(self):
        """The other state than idle for 20 us, and the end of it."""
        self.ctx.set(self.bus.line_state, 0b10)
        await self._ticks(240)
        await self.idle(4e-6)

    async def reset(self):
        self.ctx.set(self.bus.line_state, 0b00)
        await self._ticks(400)
        await self.idle(4e-6)


def _pin(name, width=1):
    return SimpleNamespace(
        i=Signal(width, name=f"{name}_i"), o=Signal(width, name=f"{name}_o"),
        oe=Signal(name=f"{name}_oe"),
    )


def pins():
    """The pins of full speed, as a device takes them."""
    return SimpleNamespace(**{name: _pin(name) for name in ("d_p", "d_n", "pullup")})


class Pins:
    """At the two wires of full speed: NRZI, bit stuffing, SYNC and EOP (USB 2.0, chapter 7).

    The host samples four times in a bit, and finds the middle of a bit from the last edge.
    """

    BIT = 1 / 12e6
    J, K, SE0 = (1, 0), (0, 1), (0, 0)
    LATE = 18  # bit times

    def __init__(self, ctx, wires):
        self.ctx, self.wires, self.time = ctx, wires, 0.0  # seconds on the bus
        self._drive(self.SE0)

    async def _wait(self, seconds):
        await self.ctx.delay(seconds)
        self.time += seconds

    def _drive(self, state):
        self.ctx.set(self.wires.d_p.i, state[0])
        self.ctx.set(self.wires.d_n.i, state[1])

    def _level(self):
        """What the device drives; None while it does not."""
        ctx, wires = self.ctx, self.wires
        if not ctx.get(wires.d_p.oe):
            return None
        return ctx.get(wires.d_p.o), ctx.get(wires.d_n.o)

    async def send(self, packet):
        state, ones = self.J, 0
        for bit in [0] * 7 + [1] + [byte >> n & 1 for byte in packet for n in range(8)]:
            for level in ([1, 0] if bit and ones == 5 else [bit]):
                if not level:
                    state = self.K if state == self.J else self.J
                self._drive(state)
                await self._wait(self.BIT)
            ones = 0 if ones == 5 else (ones + 1) * bit
        for state in (self.SE0, self.SE0, self.J):
            self._drive(state)
            await self._wait(self.BIT)

    async def receive(self):
        for _ in range(4 * self.LATE):
            if self._level() == self.K:
                break
            await self._wait(self.BIT / 4)
        else:
            return None
        levels, since, before = [], 0, self.K
        while levels[-2:] != [self.SE0, self.SE0]:
            level = self._level()
            assert level is not None, "the device let go of the wires in a packet"
            since = since + 1 if level == before else 0
            before = level
            if since % 4 == 1:
                levels.append(level)
            await self._wait(self.BIT / 4)
        await self._wait(2 * self.BIT)
        assert self._level() is None, "the device drives the wires after its packet"
        return self._decoded([self.J, *levels[:-2]])

    @staticmethod
    def _decoded(levels):
        bits, ones = [], 0
        for before, level in zip(levels, levels[1:], strict=False):
            bit = int(before == level)
            if ones == 6:
                assert not bit, "a zero must follow six ones"
            else:
                bits.append(bit)
            ones = (ones + 1) * bit
        assert bits[:8] == [0] * 7 + [1] and len(bits) % 8 == 0, f"no SYNC, or a part byte: {bits}"
        return bytes(
            sum(bit << n for n, bit in enumerate(bits[start : start + 8]))
            for start in range(8, len(bits), 8)
        )

    async def idle(self, seconds):
        self._drive(self.J)
        await self._wait(seconds)

    async def reset(self):
        """LUNA counts 5 us of a clock of 60 MHz: 25 us of 12 MHz."""
        assert self.ctx.get(self.wires.pullup.o), "the device must pull D+ up"
        await self.idle(2e-6)
        self._drive(self.SE0)
        await self._wait(30e-6)
        await self.idle(4e-6)


def ulpi_pins():
    """The pins of a PHY for high speed, without its reset, as a device takes them."""
    return SimpleNamespace(
        data=_pin("data", 8), **{name: _pin(name) for name in ("clk", "dir", "nxt", "stp")}
    )


class Phy:
    """At the ULPI pins: a PHY of high speed with its bus (ULPI 1.1), in the domain ``usb``.

    ``registers`` has what the device wrote; ``chirped`` tells that it sent a chirp.
    """

    J, K, SE0 = 0b01, 0b10, 0b00
    VBUS, ACTIVE = 0b11 << 2, 1 << 4  # of an RXCMD
    LATE = 110  # cycles: 816 bit times, and the latency of the PHY
    CHIRP = 170  # cycles of each chirp of a hub

    def __init__(self, ctx, pins):
        self.ctx, self.pins = ctx, pins
        self.registers, self.chirped = {}, False
        self._sent, self._queue = [], []

    async def serve(self, ctx):
        """The PHY; runs beside the host."""
        pins = self.pins
        while True:
            if self._queue:
                for data, nxt in [(0, 1), *self._queue.pop(0)]:
                    ctx.set(pins.dir.i, 1)
                    ctx.set(pins.data.i, data)
                    ctx.set(pins.nxt.i, nxt)
                    await ctx.tick("usb")
                ctx.set(pins.dir.i, 0)
                ctx.set(pins.nxt.i, 0)
                await ctx.tick("usb")
            _, _, command = await ctx.tick("usb").sample(pins.data.o)
            if command >> 6 == 0b10 and not self._queue:
                await self._write(ctx, command & 0x3F)
            elif command >> 6 == 0b01 and not self._queue:
                await self._transmit(ctx, command & 0xF)

    async def _accepted(self, ctx):
        """The byte and STP of a cycle in which the PHY accepts a byte."""
        ctx.set(self.pins.nxt.i, 1)
        _, _, data, stp = await ctx.tick("usb").sample(self.pins.data.o, self.pins.stp.o)
        return data, stp

    async def _write(self, ctx, address):
        await self._accepted(ctx)
        self.registers[address], _ = await self._accepted(ctx)
        ctx.set(self.pins.nxt.i, 0)
        _, _, stp = await ctx.tick("usb").sample(self.pins.stp.o)
        assert stp, "STP must follow the byte of a register"

    async def _transmit(self, ctx, pid):
        packet = bytearray([pid | (~pid & 0xF) << 4] if pid else [])
        await self._accepted(ctx)
        while True:
            data, stp = await self._accepted(ctx)
            if stp:
                break
            packet.append(data)
        ctx.set(self.pins.nxt.i, 0)
        if pid:
            self._sent.append(bytes(packet))
        else:
            assert set(packet) == {0}, "a chirp K is a stream of zeros"
            self.chirped = True

    async def _ticks(self, count):
        for _ in range(count):
            await self.ctx.tick("usb")

    async def _until(self, done, limit):
        for _ in range(limit):
            if done():
                return True
            await self._ticks(1)
        return False

    async def _line(self, state):
        self._queue.append([(state | self.VBUS, 0)])
        await self._until(lambda: not self._queue, 5000)
        await self._ticks(4)

    async def send(self, packet):
        self._queue.append([
            (self.J | self.VBUS | self.ACTIVE, 0), *((byte, 1) for byte in packet),
            (self.SE0 | self.VBUS, 0),
        ])
        await self._until(lambda: not self._queue, 5000)
        await self._ticks(len(packet) + 8)

    async def receive(self):
        if not await self._until(lambda: self._sent, self.LATE + 600):
            return None
        return self._sent.pop(0)

    async def idle(self, seconds):
        await self._line(self.SE0)
        await self._ticks(round(seconds * 60e6))

    async def reset(self):
        """The handshake of high speed (USB 2.0, 7.1.7.5)."""
        self.chirped = False
        await self._line(self.J)
        await self._ticks(20)
        await self._line(self.SE0)
        assert await self._until(lambda: self.chirped, 5000), "the device must chirp"
        for _ in range(4):
            for state in (self.K, self.J):
                await self._line(state)
                await self._ticks(self.CHIRP)
        await self._line(self.SE0)
        await self._ticks(100)
