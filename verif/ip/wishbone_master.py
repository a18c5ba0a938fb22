"""Register masters on Wishbone: one from cocotbext-wishbone, and a faster one."""

import random

from cocotb.triggers import Lock, RisingEdge
from cocotbext.wishbone.driver import WBOp, WishboneMaster

from verif.ip.masters import RegisterMaster

__all__ = ["WishboneRegisters"]


class WishboneRegisters(RegisterMaster):
    """Registers behind Wishbone."""

    PARTIAL_MASKS = tuple(range(15))
    OUTPUTS = (("wb_ack_o", None, ("wb_dat_o",)), ("wb_err_o", None, ("wb_dat_o",)))
    NAMES = {
        "cyc": "cyc_i", "stb": "stb_i", "we": "we_i", "adr": "adr_i", "datwr": "dat_i",
        "datrd": "dat_o", "ack": "ack_o", "sel": "sel_i", "err": "err_o",
    }

    def __init__(self, dut, ip):
        names = self.NAMES | ({"stall": "stall_o"} if ip.pipelined else {})
        self.dut, self.clock, self.pipelined = dut, dut.wb_clk_i, ip.pipelined
        self.make = lambda: WishboneMaster(
            dut, "wb", dut.wb_clk_i, signals_dict=names, timeout=500
        )
        self.clear()
        self.pause(0, 0)

    def clear(self):
        for name in ("cyc", "stb"):
            getattr(self.dut, f"wb_{name}_i").value = 0
        self.master, self.lock = self.make(), Lock()

    def back_to_back(self):
        return Strobes(self.dut, pipelined=self.pipelined)

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


class Strobes:
    """A Wishbone master that makes accesses back to back, all of a call in one cycle."""

    def __init__(self, dut, *, pipelined):
        self.dut, self.pipelined = dut, pipelined

    def pause(self, seed, odds):
        assert not odds, "this master never pauses"

    async def run(self, operations):
        """Make accesses (address, value to write or None); returns the words of the answers."""
        dut, words, sent = self.dut, [], 0
        dut.wb_cyc_i.value = dut.wb_stb_i.value = 1
        dut.wb_sel_i.value = 15
        while len(words) < len(operations):
            if sent < len(operations):
                address, value = operations[sent]
                dut.wb_adr_i.value = address // 4
                dut.wb_we_i.value = int(value is not None)
                dut.wb_dat_i.value = value or 0
            else:
                dut.wb_stb_i.value = 0
            await RisingEdge(dut.wb_clk_i)
            ack = int(dut.wb_ack_o.value)
            assert not int(dut.wb_err_o.value)
            if ack:
                words.append(int(dut.wb_dat_o.value))
            sent += not int(dut.wb_stall_o.value) if self.pipelined else ack
        dut.wb_cyc_i.value = dut.wb_stb_i.value = 0
        return words

    async def write(self, address, value):
        await self.run([(address, value)])
        return True

    async def read(self, address):
        return (await self.run([(address, None)]))[0], True

    async def write_all(self, address, values):
        await self.run([(address, value) for value in values])
        return True

    async def read_all(self, address, count):
        return await self.run([(address, None)] * count)
