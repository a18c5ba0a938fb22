"""Accesses to a bank of registers in Amaranth's simulator, one at a time."""

__all__ = ["BankDriver"]


class BankDriver:
    """Sends requests to the port ``bus`` of a component."""

    def __init__(self, dut):
        self.dut = dut

    async def access(self, ctx, address, value=None, mask=15):
        """The word and the error bit of the response."""
        bus = self.dut.bus
        ctx.set(bus.request.valid, 1)
        ctx.set(bus.request.payload, {
            "addr": address // 4, "write": value is not None, "mask": mask, "data": value or 0,
        })
        await ctx.tick().until(bus.request.ready)
        ctx.set(bus.request.valid, 0)
        (response,) = await ctx.tick().sample(bus.response.payload).until(bus.response.valid)
        return response.data, response.error
