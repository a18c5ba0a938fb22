"""What accesses registers: cocotbext's AXI4-Lite and Wishbone masters, to be used alike."""

import itertools
import random

from cocotb.triggers import Lock, RisingEdge
from cocotbext.axi import AxiLiteBus, AxiLiteMaster, AxiResp
from cocotbext.wishbone.driver import WBOp, WishboneMaster

__all__ = ["AxiRegisters", "WishboneRegisters", "pauses"]

WINDOW = 256  # words of a window


def pauses(seed, odds):
    """Cycles in which a channel pauses, each with ``odds``."""
    rng = random.Random(seed)
    return (rng.random() < odds for _ in itertools.count())


class AxiRegisters:
    """Registers behind AXI4-Lite: reads and writes, each answered with whether it was done."""

    def __init__(self, dut):
        self.master = AxiLiteMaster(
            AxiLiteBus.from_prefix(dut, "s_axil"), dut.aclk, dut.aresetn, reset_active_level=False
        )

    def pause(self, seed, odds):
        """Let all channels pause at random."""
        write, read = self.master.write_if, self.master.read_if
        for n, channel in enumerate((
            write.aw_channel, write.w_channel, write.b_channel, read.ar_channel, read.r_channel
        )):
            channel.set_pause_generator(pauses(seed + n, odds) if odds else None)
            channel.pause = False

    async def write(self, address, value, mask=15):
        """Write the bytes of ``value`` that ``mask`` says, which lie side by side."""
        first = (mask & -mask).bit_length() - 1
        size = mask.bit_count()
        data = value.to_bytes(4, "little")[first : first + size]
        return self._right(await self.master.write(address + first, data))

    async def read(self, address):
        answer = await self.master.read(address, 4)
        return int.from_bytes(answer.data, "little"), self._right(answer)

    async def write_all(self, address, values):
        """Write words to one window, without waiting for answers between; whether all are done."""
        right = True
        for first in range(0, len(values), WINDOW):
            part = values[first : first + WINDOW]
            data = b"".join(value.to_bytes(4, "little") for value in part)
            right &= self._right(await self.master.write(address, data))
        return right

    async def read_all(self, address, count):
        data = b""
        for first in range(0, count, WINDOW):
            answer = await self.master.read(address, 4 * min(count - first, WINDOW))
            assert self._right(answer)
            data += answer.data
        return [int.from_bytes(data[n : n + 4], "little") for n in range(0, 4 * count, 4)]

    @staticmethod
    def _right(answer):
        assert answer.resp in (AxiResp.OKAY, AxiResp.SLVERR), answer
        return answer.resp == AxiResp.OKAY


class WishboneRegisters:
    """Registers behind Wishbone, likewise."""

    NAMES = {
        "cyc": "cyc_i", "stb": "stb_i", "we": "we_i", "adr": "adr_i", "datwr": "dat_i",
        "datrd": "dat_o", "ack": "ack_o", "sel": "sel_i", "err": "err_o",
    }

    def __init__(self, dut, *, pipelined):
        names = self.NAMES | ({"stall": "stall_o"} if pipelined else {})
        self.dut, self.clock = dut, dut.wb_clk_i
        self.make = lambda: WishboneMaster(
            dut, "wb", dut.wb_clk_i, signals_dict=names, timeout=500
        )
        self.forget()
        self.pause(0, 0)

    def forget(self):
        """Whatever was under way."""
        for name in ("cyc", "stb"):
            getattr(self.dut, f"wb_{name}_i").value = 0
        self.master, self.lock = self.make(), Lock()

    def pause(self, seed, odds):
        self.rng, self.odds = random.Random(seed), odds

    async def _one(self, **operation):
        idle = self.rng.randrange(4) if self.odds else 0
        while self.rng.random() < self.odds:
            await RisingEdge(self.clock)
        async with self.lock:
            (answer,) = await self.master.send_cycle([WBOp(idle=idle, **operation)])
        assert answer.ack in (1, 2)
        return answer

    async def write(self, address, value, mask=15):
        return (await self._one(adr=address // 4, dat=value, sel=mask)).ack == 1

    async def read(self, address):
        answer = await self._one(adr=address // 4)
        return int(answer.datrd), answer.ack == 1

    async def write_all(self, address, values):
        return all([await self.write(address, value) for value in values])

    async def read_all(self, address, count):
        found = [await self.read(address) for _ in range(count)]
        assert all(right for _, right in found)
        return [value for value, _ in found]
