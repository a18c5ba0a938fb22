"""Products of a simulated Weft core from memory, through descriptors."""

import numpy as np
from cocotbext.axi import AxiBus, AxiRam
from weft_packing import FLOATS, A, B, job, load
from weft_pauses import pauses

MEMORY = 1 << 20  # bytes


class DataPath:
    """The memory on the AXI4 master of a core."""

    RAISES_DONE = True  # the driver advances a product by interrupts

    def __init__(self, core):
        self.core = core
        self.memory = AxiRam(
            AxiBus.from_prefix(core.dut, "m_axi"), core.clock, core.reset,
            reset_active_level=False, size=MEMORY, mem=bytearray(MEMORY),
        )

    def pause(self, seed, probability):
        """Pause each channel at random."""
        write, read = self.memory.write_if, self.memory.read_if
        channels = [
            write.aw_channel, write.w_channel, write.b_channel, read.ar_channel, read.r_channel
        ]
        for n, channel in enumerate(channels):
            channel.set_pause_generator(pauses(seed + n, probability))

    def driver_memory(self, size):
        """Memory of the C driver for operands and results: the core's, in bytes."""
        return np.frombuffer(self.memory.mem, np.uint8)

    async def multiply(self, a, b, tag):
        """The product of A[m, k] and B[k, n]. B is in row-major order; the core transposes it."""
        (m, k), n = a.shape, b.shape[1]
        size = a.itemsize
        a_address, b_address, c_address = 0x1003 & -size, 0x8001 & -size, 0x20000
        stride = -(-n // 16) * 64
        self.memory.write(a_address, a.tobytes())
        self.memory.write(b_address, np.ascontiguousarray(b).tobytes())
        self.memory.write(c_address, bytes(m * stride))
        await self._submit(load(A, m, k), a_address, size * k, m, k, 0)
        await self._submit(load(B, n, k), b_address, size * n, n, k, 1)
        await self._submit(job(m, n, k, tag), c_address, stride)
        await self.core.until("last_job", "tag", tag)
        assert await self.core.read("last_job", "status") == 0
        data = np.frombuffer(self.memory.read(c_address, m * stride), np.uint8).reshape(m, stride)
        return np.ascontiguousarray(data[:, : 4 * n]).view("<f4" if FLOATS else "<i4")

    async def reject(self, tag):
        """Send a job with M, K and N of 0, which the core rejects: its tag and status."""
        await self._submit(job(0, 0, 0, tag), 0)
        await self.core.until("last_job", "tag", tag)
        return tag, await self.core.read("last_job", "status")

    async def _submit(self, header, *tail):
        """Submit a descriptor: a header, then up to 8 words."""
        while not await self.core.read("desc_free"):
            pass
        words = [*np.frombuffer(header[:32], "<u4").tolist(), *tail, *[0] * (8 - len(tail))]
        for number, word in enumerate(words):
            await self.core.write(f"descriptor_{number}", word)
        await self.core.write("doorbell", submit=1)
