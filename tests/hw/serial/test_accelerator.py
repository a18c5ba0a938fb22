"""Tests of complete accelerators at their two pins, bit by bit."""

import numpy as np
import pytest
from amaranth.back import rtlil
from amaranth.hdl import ClockDomain
from network_cores import small_network_core

from verif.amaranth_bench import simulate, ticks
from weft.commands import JobFlag
from weft.config import Config
from weft.frames import MAX_PAYLOAD, FrameType
from weft.golden import add_bias, matmul, requantize
from weft.host.link import Frame, FrameDecoder
from weft.hw.serial.accelerator import SerialAccelerator
from weft.network_core.descriptors import ListError, NetworkState
from weft.registers import REGISTERS, decode
from weft.sim.scenario import Scenario

HASH = REGISTERS.index("hash")
CONFIG = Config(
    rows=2, cols=2, depth=1, bytes_in=2, bytes_out=2, lanes=2, a_words=32, b_words=32, jobs=2,
    activation="none",
)
CHIP = small_network_core(
    1, 2, 2, words=64, b_words=4, lines=4, read_vectors=2, requantize="tflite", multiplier="plain"
)
DIVISOR = 4


def exchange(config, *frames, answers, limit):
    """Send frames to an accelerator; returns its ``answers`` first frames."""
    dut = SerialAccelerator(config, divisor=DIVISOR)
    decoder, received = FrameDecoder(), []

    async def transmit(ctx):
        await ticks(ctx, 10)
        for byte in b"".join(frame.encode() for frame in frames):
            for bit in (0, *(byte >> n & 1 for n in range(8)), 1):
                ctx.set(dut.rx, bit)
                await ticks(ctx, DIVISOR)
        while len(received) < answers:
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

    simulate(dut, transmit, background=[listen], limit=limit)
    return received


@pytest.mark.slow
def test_matrix_product_over_the_wires():
    scenario = Scenario(CONFIG)
    a, b = scenario.operands(2, 2, 3)
    columns = [(7, 3 << 29, -8, 0, 1, -128, 127)] * 2
    scenario.multiply(a, b, parameters=columns, flags=JobFlag.REQUANTIZE, tag=0x1234)
    commands = scenario.data
    assert len(commands) <= MAX_PAYLOAD
    registers, ack, results = exchange(
        CONFIG, Frame(FrameType.READ, 7, bytes(2) + len(REGISTERS).to_bytes(2, "little")),
        Frame(FrameType.COMMANDS, 1, commands), answers=3, limit=60_000,
    )
    assert (registers.type, registers.sequence) == (FrameType.REGISTERS, 7)
    assert decode(np.frombuffer(registers.payload, "<u4").tolist()) == CONFIG
    assert ack == Frame(FrameType.ACK, 1)
    sums = add_bias(matmul(a, b.T), np.int32([7, 7]))
    y = requantize(sums, mode="tflite", multiplier=3 << 29, shift=-8, zero_point=1)
    meta = (0x1234).to_bytes(2, "little") + bytes([1, 0])
    assert results == Frame(FrameType.RESULTS, 0, meta + y.tobytes())


@pytest.mark.slow
def test_a_list_over_the_wires():
    registers, ack, done = exchange(
        CHIP, Frame(FrameType.READ, 7, bytes([HASH, 0, 1, 0])), Frame(FrameType.START, 1, bytes(8)),
        answers=3, limit=10_000,
    )
    assert registers == Frame(FrameType.REGISTERS, 7, CHIP.hash.to_bytes(4, "little"))
    assert ack == Frame(FrameType.ACK, 1)
    assert (done.type, done.sequence) == (FrameType.DONE, 1)
    # The memory is zero: there is no list in it.
    assert done.payload[:4] == bytes([NetworkState.ERROR, ListError.OPCODE, 0, 0])
    assert len(done.payload) == 8


@pytest.mark.slow
def test_a_core_for_networks_has_no_combinational_loop():
    """The simulator does not detect one; the export does."""
    text = rtlil.convert(
        SerialAccelerator(CHIP, divisor=DIVISOR), name="top", emit_src=False,
        missing_domain=lambda name: ClockDomain(name),
    )
    assert "module \\top\n" in text
