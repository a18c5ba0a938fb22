"""Tests of the complete accelerator at its two pins, bit by bit."""

import numpy as np

from verif.amaranth_bench import simulate, ticks
from weft.commands import JobFlag
from weft.config import Config
from weft.frames import MAX_PAYLOAD, FrameType
from weft.golden import add_bias, matmul, requantize
from weft.host.link import Frame, FrameDecoder
from weft.hw.serial.accelerator import SerialAccelerator
from weft.registers import REGISTERS, decode
from weft.sim.scenario import Scenario

CONFIG = Config(
    rows=2, cols=2, depth=1, bytes_in=2, bytes_out=2, lanes=2, a_words=32, b_words=32, jobs=2,
    activation="none",
)
DIVISOR = 4


def test_matrix_product_over_the_wires():
    dut = SerialAccelerator(CONFIG, divisor=DIVISOR)
    scenario = Scenario(CONFIG)
    a, b = scenario.operands(2, 2, 3)
    columns = [(7, 3 << 29, -8, 0, 1, -128, 127)] * 2
    scenario.multiply(a, b, parameters=columns, flags=JobFlag.REQUANTIZE, tag=0x1234)
    commands = scenario.data
    assert len(commands) <= MAX_PAYLOAD
    decoder, received = FrameDecoder(), []

    async def transmit(ctx):
        read_args = bytes(2) + len(REGISTERS).to_bytes(2, "little")
        await ticks(ctx, 10)
        for frame in (Frame(FrameType.READ, 7, read_args), Frame(FrameType.COMMANDS, 1, commands)):
            for byte in frame.encode():
                for bit in (0, *(byte >> n & 1 for n in range(8)), 1):
                    ctx.set(dut.rx, bit)
                    await ticks(ctx, DIVISOR)
        while len(received) < 3:
            await ctx.tick()

    async def listen(ctx):
        while True:
            while (await ctx.tick().sample(dut.tx))[-1]:
                pass
            await ticks(ctx, DIVISOR // 2 - 1)
            bits = []
            for _ in range(9):
                await ticks(ctx, DIVISOR - 1)
                bits.append((await ctx.tick().sample(dut.tx))[-1])
            assert bits[8] == 1, "a stop bit must be high"
            received.extend(decoder.feed(bytes([sum(bit << n for n, bit in enumerate(bits[:8]))])))

    simulate(dut, transmit, background=[listen], limit=60_000)
    registers, ack, results = received
    assert (registers.type, registers.sequence) == (FrameType.REGISTERS, 7)
    assert decode(np.frombuffer(registers.payload, "<u4").tolist()) == CONFIG
    assert ack == Frame(FrameType.ACK, 1)
    sums = add_bias(matmul(a, b.T), np.int32([7, 7]))
    y = requantize(sums, mode="tflite", multiplier=3 << 29, shift=-8, zero_point=1)
    meta = (0x1234).to_bytes(2, "little") + bytes([1, 0])
    assert results == Frame(FrameType.RESULTS, 0, meta + y.tobytes())
