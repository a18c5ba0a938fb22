"""A register master on AXI4-Lite, from cocotbext-axi."""

from cocotbext.axi import AxiLiteBus, AxiLiteMaster, AxiResp

from verif.ip.masters import RegisterMaster
from verif.ip.pauses import pauses

__all__ = ["AxiRegisters"]

PORT_WORDS = 256  # words of the address range of a FIFO port


class AxiRegisters(RegisterMaster):
    """Registers behind AXI4-Lite."""

    PARTIAL_MASKS = (1, 8, 12)
    OUTPUTS = (
        ("s_axil_bvalid", "s_axil_bready", ("s_axil_bresp",)),
        ("s_axil_rvalid", "s_axil_rready", ("s_axil_rdata", "s_axil_rresp")),
    )

    def __init__(self, dut, ip):
        self.master = AxiLiteMaster(
            AxiLiteBus.from_prefix(dut, "s_axil"), dut.aclk, dut.aresetn, reset_active_level=False
        )

    def clear(self):
        """Nothing to do: the master watches ``aresetn``."""

    def pause(self, seed, odds):
        write, read = self.master.write_if, self.master.read_if
        for n, channel in enumerate((
            write.aw_channel, write.w_channel, write.b_channel, read.ar_channel, read.r_channel
        )):
            channel.set_pause_generator(pauses(seed + n, odds) if odds else None)
            channel.pause = False

    async def write(self, address, value, mask=15):
        """The bytes that ``mask`` selects must be adjacent."""
        first = (mask & -mask).bit_length() - 1
        size = mask.bit_count()
        data = value.to_bytes(4, "little")[first : first + size]
        return self._is_okay(await self.master.write(address + first, data))

    async def read(self, address):
        response = await self.master.read(address, 4)
        return int.from_bytes(response.data, "little"), self._is_okay(response)

    async def write_all(self, address, values):
        okay = True
        for first in range(0, len(values), PORT_WORDS):
            part = values[first : first + PORT_WORDS]
            data = b"".join(value.to_bytes(4, "little") for value in part)
            okay &= self._is_okay(await self.master.write(address, data))
        return okay

    async def read_all(self, address, count):
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
