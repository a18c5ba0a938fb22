"""The complete core for networks at its two pins, bit by bit."""

from amaranth.back import rtlil
from amaranth.hdl import ClockDomain

from verif.amaranth_bench import simulate, ticks
from weft.chip.config import ChipConfig
from weft.chip.descriptors import ListError
from weft.chip.states import NetworkState
from weft.config import Config
from weft.frames import FrameType
from weft.host.link import Frame, FrameDecoder
from weft.hw.serial.network_accelerator import NetworkAccelerator

CORE = Config(
    rows=1, cols=2, depth=2, lanes=1, requantize="tflite", activation="none", multiplier="plain"
)
CHIP = ChipConfig(core=CORE, words=64, b_words=4, lines=4, read_vectors=2)
DIVISOR = 4


def test_frames_over_the_wires():
    dut = NetworkAccelerator(CHIP, divisor=DIVISOR)
    decoder, received = FrameDecoder(), []

    async def transmit(ctx):
        await ticks(ctx, 10)
        for frame in (
            Frame(FrameType.READ, 7, bytes([2, 0, 1, 0])), Frame(FrameType.START, 1, bytes(8))
        ):
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

    simulate(dut, transmit, background=[listen], limit=10_000)
    registers, ack, done = received
    assert registers == Frame(FrameType.REGISTERS, 7, CHIP.hash.to_bytes(4, "little"))
    assert ack == Frame(FrameType.ACK, 1)
    assert (done.type, done.sequence) == (FrameType.DONE, 1)
    # The memory is zero: there is no list in it.
    assert done.payload[:4] == bytes([NetworkState.ERROR, ListError.OPCODE, 0, 0])
    assert len(done.payload) == 8


def test_has_no_combinational_loop():
    """The simulator does not detect one; the export does."""
    text = rtlil.convert(
        NetworkAccelerator(CHIP, divisor=DIVISOR), name="top", emit_src=False,
        missing_domain=lambda name: ClockDomain(name),
    )
    assert "module \\top\n" in text
