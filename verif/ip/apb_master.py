"""A register master on AMBA APB3, from cocotbext-apb."""

import logging
import random

from cocotb.triggers import Lock, RisingEdge
from cocotbext.apb import Apb3Bus, ApbHost

from verif.ip.masters import RegisterMaster

__all__ = ["ApbRegisters"]


class ApbRegisters(RegisterMaster):
    """Registers behind APB3.

    The bus model gets a bus without PSLVERR, because it raises an exception for each error. It
    returns in the last cycle of a transfer, in which PSLVERR is read.
    """

    PARTIAL_MASKS = ()  # APB3 has no strobes
    OUTPUTS = (("pready", None, ("prdata", "pslverr")),)

    def __init__(self, dut, ip):
        self.dut, self.clock, self.host = dut, dut.pclk, None
        self.clear()
        self.pause(0, 0)

    def clear(self):
        if self.host is not None:
            self.host._run_coroutine_obj.cancel()  # the model has no public way to drop a transfer
        # This drives PSEL and PENABLE to 0.
        self.host, self.lock = ApbHost(Apb3Bus(self.dut, None), self.clock, seednum=1), Lock()
        self.host.log.setLevel(logging.WARNING)

    def pause(self, seed, odds):
        self.rng, self.odds = random.Random(seed), odds

    async def _access(self, transfer, *arguments):
        async with self.lock:
            while self.rng.random() < self.odds:
                await RisingEdge(self.clock)
            answer = await transfer(*arguments)
            return answer, not int(self.dut.pslverr.value)

    async def write(self, address, value, mask=15):
        assert mask == 15, f"mask must be 15 with APB3, not {mask}"
        return (await self._access(self.host.write, address, value))[1]

    async def read(self, address):
        answer, okay = await self._access(self.host.read, address)
        return int.from_bytes(answer, "little"), okay
