"""Complete accelerators at their USB pins: a product and a list, bit by bit, and the rate."""

import numpy as np
import pytest
from network_cores import small_network_core
from usb_bench import Application, run
from usb_wires import Pins, pins

from verif.usb_host import UsbHost
from weft.commands import JobFlag
from weft.config import Config
from weft.frames import FrameType
from weft.golden import add_bias, matmul, requantize
from weft.host.link import Frame, FrameDecoder
from weft.hw.usb.accelerator import UsbAccelerator
from weft.hw.usb.device import FULL_SPEED_PACKET, UsbPort
from weft.network_core.descriptors import ListError, NetworkState
from weft.registers import REGISTERS, decode
from weft.sim.scenario import Scenario

FAST = 1.0016  # the clock of the ULX3S, made from 25 MHz
CLOCKS = dict(usb=12e6 * FAST, io=48e6 * FAST)
ENDPOINT = 1
HASH = REGISTERS.index("hash")
CONFIG = Config(
    rows=2, cols=2, depth=1, bytes_in=2, bytes_out=2, lanes=2, a_words=32, b_words=32, jobs=2,
    activation="none",
)
NETWORK = small_network_core(
    1, 2, 2, words=64, b_words=4, lines=4, read_vectors=2, requantize="tflite", multiplier="plain"
)


def at_pins(dut, wires, bench, *background, seconds):
    """Run ``bench(ctx, host)`` with a device that has an address and a configuration."""
    async def attached(ctx):
        ctx.set(dut.connect, 1)
        await ctx.delay(2e-6)
        host = UsbHost(Pins(ctx, wires))
        await host.attach()
        await bench(ctx, host)

    run(dut, attached, *background, seconds=seconds, **CLOCKS)


def exchange(config, *frames, answers):
    """Send frames to an accelerator; returns its ``answers`` first frames."""
    wires = pins()
    dut = UsbAccelerator(config, wires, packet=FULL_SPEED_PACKET, serial="left")
    decoder, received = FrameDecoder(), []

    async def bench(ctx, host):
        data = b"".join(frame.encode() for frame in frames)
        for start in range(0, len(data), FULL_SPEED_PACKET):
            await host.out(ENDPOINT, data[start : start + FULL_SPEED_PACKET])
        while len(received) < answers:
            received.extend(decoder.feed(await host.in_(ENDPOINT)))

    at_pins(dut, wires, bench, seconds=2e-3)
    return received


@pytest.mark.long
def test_a_list_over_usb():
    registers, ack, done = exchange(
        NETWORK, Frame(FrameType.READ, 7, bytes([HASH, 0, 1, 0])),
        Frame(FrameType.START, 1, bytes(8)), answers=3,
    )
    assert registers == Frame(FrameType.REGISTERS, 7, NETWORK.hash.to_bytes(4, "little"))
    assert ack == Frame(FrameType.ACK, 1)
    # The memory is zero: there is no list in it.
    assert (done.type, done.sequence) == (FrameType.DONE, 1)
    assert done.payload[:4] == bytes([NetworkState.ERROR, ListError.OPCODE, 0, 0])


@pytest.mark.long
def test_a_matrix_product_over_usb():
    scenario = Scenario(CONFIG)
    a, b = scenario.operands(2, 2, 3)
    columns = [(7, 3 << 29, -8, 0, 1, -128, 127)] * 2
    scenario.multiply(a, b, parameters=columns, flags=JobFlag.REQUANTIZE, tag=0x1234)
    registers, ack, results = exchange(
        CONFIG, Frame(FrameType.READ, 7, bytes(2) + len(REGISTERS).to_bytes(2, "little")),
        Frame(FrameType.COMMANDS, 1, scenario.data), answers=3,
    )
    assert decode(np.frombuffer(registers.payload, "<u4").tolist()) == CONFIG
    assert ack == Frame(FrameType.ACK, 1)
    sums = add_bias(matmul(a, b.T), np.int32([7, 7]))
    y = requantize(sums, mode="tflite", multiplier=3 << 29, shift=-8, zero_point=1)
    meta = (0x1234).to_bytes(2, "little") + bytes([1, 0])
    assert results == Frame(FrameType.RESULTS, 0, meta + y.tobytes())


@pytest.mark.long
def test_the_rate_of_full_speed():
    """Over 1 MB/s in each direction, with tokens and handshakes; the clock is 0.16 % too fast."""
    wires, count = pins(), 8
    dut = UsbPort(wires, packet=FULL_SPEED_PACKET, serial="left")
    application, rates = Application(dut), {}
    data = np.random.default_rng(1).bytes(FULL_SPEED_PACKET * count)

    async def bench(ctx, host):
        application.answers += data
        start = host.wire.time
        for n in range(0, len(data), FULL_SPEED_PACKET):
            await host.out(ENDPOINT, data[n : n + FULL_SPEED_PACKET])
        rates["out"] = len(data) / (host.wire.time - start)
        received, start = b"", host.wire.time
        while len(received) < len(data):
            received += await host.in_(ENDPOINT)
        rates["in"] = len(data) / (host.wire.time - start)
        assert received == data
        await ctx.delay(10e-6)
        assert application.received == data

    at_pins(dut, wires, bench, application.take, application.give, seconds=3e-3)
    assert rates["out"] > 1.0e6 and rates["in"] > 1.0e6
