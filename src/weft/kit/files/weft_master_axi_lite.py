"""Register accesses to a simulated Weft core over AXI4-Lite."""

from cocotbext.axi import AxiLiteBus, AxiLiteMaster
from weft_pauses import pauses


class RegisterMaster:
    """A master on the core's register slave."""

    def __init__(self, dut, clock, reset):
        bus = AxiLiteBus.from_prefix(dut, "s_axil")
        self.master = AxiLiteMaster(bus, clock, reset, reset_active_level=False)

    def pause(self, seed, probability):
        """Pause each channel at random."""
        write, read = self.master.write_if, self.master.read_if
        channels = [
            write.aw_channel, write.w_channel, write.b_channel, read.ar_channel, read.r_channel
        ]
        for n, channel in enumerate(channels):
            channel.set_pause_generator(pauses(seed + n, probability))

    async def access(self, address, value=None):
        """Read a word, or write ``value``: the word read (or None), and whether no error came."""
        if value is None:
            answer = await self.master.read(address, 4)
            return int.from_bytes(answer.data, "little"), answer.resp == 0
        answer = await self.master.write(address, value.to_bytes(4, "little"))
        return None, answer.resp == 0
