"""All that surrounds a unit of the output section: the memory, the table, the scaler, the job."""

import random

import numpy as np
from side_port import SidePort, hardware_fields

from verif.amaranth_bench import pulse, put, simulate
from weft.latencies import MEMORY_READ
from weft.models.kernels.fixed_point import high_mul, round_shift
from weft.network_core.latencies import scale

__all__ = ["UnitBench"]


class UnitBench:
    """The surroundings of a unit, which keep its stores.

    Parameters
    ----------
    dut : Softmax or Lstm
    image : NetworkCoreImage
    job : ListJob
    address, word : Signal
        Ports of the unit: a word of the ADD table.
    words : array of int
        The ADD table.
    stall : float
        Probability of a cycle in which no read is accepted.

    Attributes
    ----------
    port : SidePort
    errors : int
        Pulses of ``address_error``.
    """

    def __init__(self, dut, image, job, address, word, words, stall=0.0):
        self.dut, self.config, self.image, self.job = dut, dut.config, image, job
        self._address, self._word, self._words = address, word, words
        self.port = SidePort(self.config, self._vectors(), stall=stall)
        self.errors = 0

    def _vectors(self):
        return [int.from_bytes(v.tobytes(), "little") for v in self.image.vectors()]

    async def table(self, ctx):
        pipe = [0] * (MEMORY_READ - 1)
        while True:
            _, _, address = await ctx.tick().sample(self._address)
            pipe.append(int(self._words[address]) if address < len(self._words) else -1)
            ctx.set(self._word, pipe.pop(0))

    async def scaler(self, ctx):
        """Scale, as a scaler does that keeps nothing longer than it must."""
        port, rng, cycles = self.dut.scale, random.Random(4), self.config.array.scale_cycles
        pipe, kept, left = [0] * (scale(self.config.array) - 1), None, 0
        while True:
            _, _, start, *inputs = await ctx.tick().sample(
                port.start, port.acc, port.multiplier, port.shift
            )
            assert not start or not left, "starts must be a slot apart"
            assert not left or inputs == kept, "inputs must be stable in a slot"
            left = max(0, left - 1)
            y = rng.randrange(-(1 << 31), 1 << 31)
            if start:
                kept, left = inputs, cycles - 1
                acc, multiplier, shift = inputs
                if shift >= -31:
                    acc = (acc << max(0, shift)) + (1 << 31) & 0xFFFFFFFF
                    y = int(round_shift(high_mul(acc - (1 << 31), multiplier), max(0, -shift)))
            pipe.append(y)
            put(ctx, port.y, pipe.pop(0))

    async def memory(self, ctx):
        """Execute the writes, and watch for errors."""
        dut, depth = self.dut, self.config.array.depth
        vectors = self.image.vectors()
        while True:
            _, _, write, error = await ctx.tick().sample(dut.write, dut.address_error)
            self.errors += error
            if write.valid:
                number = write.address.word * self.config.banks + write.address.bank
                data = np.frombuffer(write.data.to_bytes(depth, "little"), np.int8)
                bytes_ = [n for n in range(depth) if write.enable >> n & 1]
                assert bytes_, "a write must have bytes"
                vectors[number, bytes_] = data[bytes_]

    async def start(self, ctx, base=0, limit=None):
        put(ctx, self.dut.job.fields, hardware_fields(self.config, self.job, base))
        put(ctx, self.dut.window.base, base)
        put(ctx, self.dut.window.limit, self.config.words if limit is None else limit)
        self.port.vectors = self._vectors()
        await pulse(ctx, self.dut.job.start)
        assert ctx.get(self.dut.busy)

    def run(self, bench):
        async def serve(ctx):
            await self.port.serve(ctx, self.dut)

        simulate(self.dut, bench, background=[serve, self.table, self.scaler, self.memory])
