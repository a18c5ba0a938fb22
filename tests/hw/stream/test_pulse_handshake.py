"""Tests of the handshake between two clock domains: one acknowledge for each request."""

import pytest

from weft.hw.bus.crossing import PulseHandshake


@pytest.mark.parametrize("w, r", [
    (1.0e-6, 1.0e-6), (1.0e-6, 0.73e-6), (1.0e-6, 4.1e-6), (3.7e-6, 1.0e-6)
])
def test_each_request_arrives_once(two_clocks, w, r):
    dut, arrived, counts = PulseHandshake(src="w", dst="r"), [], []

    async def source(ctx):
        for _ in range(10):
            ctx.set(dut.src_req, 1)
            while not (await ctx.tick("w").sample(dut.src_ack))[-1]:
                pass
            ctx.set(dut.src_req, 0)
            counts.append(len(arrived))
            for _ in range(len(counts) % 3):
                await ctx.tick("w")
        assert counts == list(range(1, 11))

    async def destination(ctx):
        while len(arrived) < 10:
            ctx.set(dut.dst_ack, 0)
            while not (await ctx.tick("r").sample(dut.dst_req))[-1]:
                pass
            for _ in range(len(arrived) % 4):
                await ctx.tick("r")
            ctx.set(dut.dst_ack, 1)
            arrived.append(1)
            _, _, req = await ctx.tick("r").sample(dut.dst_req)
            assert req, "the request must stay until the acknowledge"

    two_clocks(dut, {"w": w, "r": r}, source, destination)
