"""Register masters with one interface: AXI4-Lite and Wishbone models of cocotbext."""

import itertools
import random

from cocotb.triggers import Lock, RisingEdge
from cocotbext.axi import AxiLiteBus, AxiLiteMaster, AxiResp
from cocotbext.wishbone.driver import WBOp, WishboneMaster

__all__ = ["AxiRegisters", "WishboneRegisters", "pauses"]

PORT_WORDS = 256  # words of the address range of a FIFO port


def pauses(seed, odds):
    """An endless sequence of bools, each True with probability ``odds``."""
    rng = random.Random(seed)
    return (rng.random() < odds for _ in itertools.count())


class AxiRegisters:
    """Registers behind AXI4-Lite. Each access returns True, or False for an error response."""

    def __init__(self, dut):
        self.master = AxiLiteMaster(
            AxiLiteBus.from_prefix(dut, "s_axil"), dut.aclk, dut.aresetn, reset_active_level=False
        )

    def pause(self, seed, odds):
        """Pause each channel at random."""
        write, read = self.master.write_if, self.master.read_if
        for n, channel in enumerate((
            write.aw_channel, write.w_channel, write.b_channel, read.ar_channel, read.r_channel
        )):
            channel.set_pause_generator(pauses(seed + n, odds) if odds else None)
            channel.pause = False

    async def write(self, address, value, mask=15):
        """Write the bytes of ``value`` that ``mask`` selects; they must be adjacent."""
        first = (mask & -mask).bit_length() - 1
        size = mask.bit_count()
        data = value.to_bytes(4, "little")[first : first + size]
        return self._is_okay(await self.master.write(address + first, data))

    async def read(self, address):
        """The word, and whether the response was OKAY."""
        response = await self.master.read(address, 4)
        return int.from_bytes(response.data, "little"), self._is_okay(response)

    async def write_all(self, address, values):
        """Write words to a FIFO port as bursts of accesses; True if all succeed."""
        okay = True
        for first in range(0, len(values), PORT_WORDS):
            part = values[first : first + PORT_WORDS]
            data = b"".join(value.to_bytes(4, "little") for value in part)
            okay &= self._is_okay(await self.master.write(address, data))
        return okay

    async def read_all(self, address, count):
        """Read ``count`` words from a FIFO port; all accesses must succeed."""
        data = b""
        for first in range(0, count, PORT_WORDS):
            response = await self.master.read(address, 4 * min(count - first, PORT_WORDS))
            assert self._is_okay(response)
            data += response.data
        return [int.from_bytes(data[n : n + 4], "little") for n in range(0, 4 * count, 4)]

    @staticmethod
    def _is_okay(response):
        assert response.resp in (AxiResp.OKAY, AxiResp.SLVERR), response
        return response.resp == AxiResp.OKAY


class WishboneRegisters:
    """Registers behind Wishbone, with the methods of `AxiRegisters`."""

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
        self.clear()
        self.pause(0, 0)

    def clear(self):
        """Drop all accesses in progress."""
        for name in ("cyc", "stb"):
            getattr(self.dut, f"wb_{name}_i").value = 0
        self.master, self.lock = self.make(), Lock()

    def pause(self, seed, odds):
        self.rng, self.odds = random.Random(seed), odds

    async def _access(self, **operation):
        idle = self.rng.randrange(4) if self.odds else 0
        while self.rng.random() < self.odds:
            await RisingEdge(self.clock)
        async with self.lock:
            (answer,) = await self.master.send_cycle([WBOp(idle=idle, **operation)])
        assert answer.ack in (1, 2)
        return answer

    async def write(self, address, value, mask=15):
        return (await self._access(adr=address // 4, dat=value, sel=mask)).ack == 1

    async def read(self, address):
        answer = await self._access(adr=address // 4)
        return int(answer.datrd), answer.ack == 1

    async def write_all(self, address, values):
        return all([await self.write(address, value) for value in values])

    async def read_all(self, address, count):
        answers = [await self.read(address) for _ in range(count)]
        assert all(okay for _, okay in answers)
        return [value for value, _ in answers]
