"""Transceivers of the USB host in `usb_host`, for Amaranth's simulator."""

__all__ = ["Utmi"]

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
