"""Accesses to a bank of registers in Amaranth's simulator, one at a time."""

from verif.amaranth_bench import pulse
from weft.register_map import fifo_ports, registers
from weft.registers import CORE_SPACE, SPACE

__all__ = ["BankDriver", "check_accesses", "core_registers"]

WRITTEN = 64  # starts nothing in CONTROL, and is the length of a transfer in MEMORY_WRITE


class BankDriver:
    """Sends requests to the port ``bus`` of a component."""

    def __init__(self, dut):
        self.dut = dut

    async def access(self, ctx, address, value=None, mask=15, aligned=1):
        """The word and the error bit of the response."""
        bus = self.dut.bus
        ctx.set(bus.request.valid, 1)
        ctx.set(bus.request.payload, {
            "addr": address // 4, "aligned": aligned, "write": value is not None, "mask": mask,
            "data": value or 0,
        })
        await ctx.tick().until(bus.request.ready)
        ctx.set(bus.request.valid, 0)
        (response,) = await ctx.tick().sample(bus.response.payload).until(bus.response.valid)
        return response.data, response.error


def core_registers(dut):
    """A core that answers reads of its registers with their numbers plus 1000."""
    async def run(ctx):
        while True:
            _, _, req, address = await ctx.tick().sample(dut.reg_req, dut.reg_address)
            if req:
                ctx.set(dut.reg_data, address + 1000)
                await pulse(ctx, dut.reg_ack)

    return run


async def check_accesses(ctx, driver, ip):
    """Reads and writes end in an error where the register map of ``ip`` does not allow them.

    The accesses are to all registers, to both ends of FIFO ports, and to their neighbours.
    """
    allowed = {r.address: r.access for r in registers(ip)}
    ends = {*allowed}
    for port in fifo_ports(ip):
        allowed |= dict.fromkeys(range(port.address, port.address + port.size, 4), port.access)
        ends |= {port.address, port.address + port.size}
    for address in sorted({a for k in ends for a in (k - 4, k, k + 4) if 0 <= a < SPACE}):
        access = allowed.get(address, "")
        value, error = await driver.access(ctx, address)
        assert error == (access not in ("ro", "rw")), hex(address)
        assert not error or value == 0
        if access and address < CORE_SPACE:
            assert value == address // 4 + 1000
        _, error = await driver.access(ctx, address, WRITTEN)
        assert error == (access not in ("wo", "rw")), hex(address)
        for mask in (0, 7, 14):
            assert (await driver.access(ctx, address, 0, mask))[1]
        for value in (None, 0):
            assert await driver.access(ctx, address, value, aligned=0) == (0, 1)
