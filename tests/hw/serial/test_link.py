"""Tests of the link at its byte streams: jobs, requests and errors, with the host's frame codec."""

import dataclasses
import functools

import pytest
from linked_core import Host, LinkedCore
from tiers import quick, tiers

from verif.amaranth_bench import checker, pulse, receive, send, simulate, ticks
from weft.commands import JobFlag
from weft.config import Config
from weft.frames import MAX_PAYLOAD, FrameType
from weft.host.link import Frame, FrameDecoder
from weft.hw.serial.frame_receiver import COMMAND_FRAMES, FrameReceiver, Nak
from weft.hw.serial.frame_sender import FrameSender
from weft.registers import REGISTERS, decode, describe
from weft.sim.scenario import A, B, Scenario, result_words

HASH = REGISTERS.index("hash")
CONFIG = Config(
    rows=2, cols=3, depth=2, bytes_in=4, bytes_out=8, a_words=64, b_words=64, jobs=2, lanes=2,
    activation="none",
)
WIDE = Config(rows=2, cols=2, depth=1, a_words=64, b_words=64, activation="none")
BYTE = Config(
    rows=1, cols=2, depth=1, bytes_in=1, bytes_out=1, lanes=1, a_words=64, b_words=64, jobs=2,
    activation="none",
)


linked = functools.cache(LinkedCore)  # elaborated once for all tests of a Config


# The link of a serial port takes several cycles for a byte, so its simulations take longer.
@pytest.fixture(params=[pytest.param(False, marks=pytest.mark.slow), True], ids=["serial", "usb"])
def fast(request):
    """Both kinds of link."""
    return request.param


# Of the long simulations, those of a serial port run in the long tests.
LONG_SERIAL = pytest.mark.parametrize(
    "fast", [pytest.param(False, marks=pytest.mark.long), True], ids=["serial", "usb"]
)


def scenario_of(config, shapes=((1, 1, 1),)):
    """Products of the shapes M, N, K, each with raw sums and with requantized results."""
    scenario = Scenario(config, 1)
    for m, n, k in shapes:
        a, b = scenario.multiply(*scenario.operands(m, n, k))
        scenario.load_parameters(b, [(5, 3 << 29, -8, 0, 1, -128, 127)] * n)
        scenario.job(a, b, flags=JobFlag.REQUANTIZE)
    return scenario


def unfed(tags):
    """Jobs whose operands never come."""
    scenario = Scenario(CONFIG)
    placed = [*map(scenario.place, (A, B), scenario.operands(2, 3, 3))]
    for tag in tags:
        scenario.job(*placed, feed=(A, B), tag=tag)
    return scenario


def words_of(config, frames, tag):
    """The words of one job in ``frames``, for `Scoreboard.check`."""
    words = []
    for frame in frames:
        body = frame.payload
        assert int.from_bytes(body[:2], "little") == tag and len(body) <= 4 + MAX_PAYLOAD
        words += result_words(body[4:], config.bytes_out, tag=tag, status=body[3], last=body[2])
    return words


async def collect(ctx, host, config, scenario, first=0):
    """Check the results of all jobs against golden; the next sequence number of RESULTS."""
    sequence = first
    for scoreboard in scenario.scoreboards:
        frames = []
        while not frames or not frames[-1].payload[2]:
            frames.append(await host.answer(ctx, {FrameType.RESULTS}))
            assert frames[-1].sequence == sequence % 256
            sequence += 1
        scoreboard.check(words_of(config, frames, scoreboard.tag))
    return sequence


def run(config, bench, fast, limit=60_000, **host):
    dut = linked(config, fast)
    host = Host(dut, **host)

    async def body(ctx):
        await bench(ctx, host)

    background = [checker(dut.tx_bytes, "tx_bytes"), host.listen]
    simulate(dut, body, background=background, limit=limit)
    assert host.inbox == []


@pytest.mark.parametrize("case", tiers({
    "4to8-stall": (CONFIG, {"idle": 0.5, "stall": 0.5}),
    "16to16": (WIDE, {}), "1to1": (BYTE, {}),
}, "1to1", long={"16to16"}))
def test_products_through_the_link(case, fast):
    config, rules = case
    scenario = scenario_of(config, [(3, 4, 5), (1, 1, 1)])

    async def bench(ctx, host):
        sent = 0
        for _ in range(2):
            await host.feed(ctx, scenario.data, 112 if rules else MAX_PAYLOAD)
            sent = await collect(ctx, host, config, scenario, sent)

    run(config, bench, fast, **rules)


@pytest.mark.slow
@LONG_SERIAL
def test_splits_long_results_into_frames(fast):
    config = Config(rows=2, cols=2, depth=1, a_words=1024, b_words=64, bytes_out=8)
    scenario = Scenario(config)
    scenario.multiply(scenario.random(18, 2), scenario.random(3, 2), tag=0xABCD)

    async def bench(ctx, host):
        await host.feed(ctx, scenario.data)
        words = len(scenario.scoreboards[0].words)
        assert await collect(ctx, host, config, scenario) == -(-words * 8 // MAX_PAYLOAD) > 2

    run(config, bench, fast)


@LONG_SERIAL
def test_reads_registers(fast):
    async def bench(ctx, host):
        words = describe(CONFIG)
        assert await host.read(ctx, 0, len(words)) == words
        assert decode(await host.read(ctx, 0, len(REGISTERS))) == CONFIG
        assert await host.read(ctx, HASH, 1) == [CONFIG.hash]
        assert await host.read(ctx, 200, 2) == [0, 0]
        assert await host.read(ctx, 0, 0) == []

    run(CONFIG, bench, fast)


@LONG_SERIAL
def test_abort_ends_a_job_that_waits_for_operands(fast):
    scenario = unfed([1])

    async def bench(ctx, host):
        await host.feed(ctx, scenario.data)
        await ticks(ctx, 50)
        assert (await host.request(ctx, FrameType.ABORT)).type == FrameType.ABORTED
        frame = await host.answer(ctx, {FrameType.RESULTS})
        assert frame.payload[:4] == bytes([1, 0, 1, 1])
        after = scenario_of(CONFIG)
        await host.feed(ctx, after.data)
        await collect(ctx, host, CONFIG, after, 1)

    run(CONFIG, bench, fast)


def flip(data, index, bits):
    return data[:index] + bytes([data[index] ^ bits]) + data[index + 1 :]


@pytest.mark.parametrize("index", [
    40, pytest.param(4, marks=pytest.mark.slow),
    *(pytest.param(index, marks=pytest.mark.long) for index in (2, 11, -1)),
])
def test_a_damaged_frame_has_no_effect(index, fast):
    scenario = scenario_of(CONFIG)
    commands = scenario.data
    good = Frame(FrameType.COMMANDS, 9, commands[:128]).encode()

    async def bench(ctx, host):
        await host.raw(ctx, flip(good, index % len(good), 1))
        if index == 4:  # the length is larger: the frame takes 8 bytes more
            await host.raw(ctx, bytes(8))
        frame = await host.answer(ctx, {FrameType.ERROR})
        assert frame.payload in (b"CRC ", b"size")
        await host.feed(ctx, commands)
        await collect(ctx, host, CONFIG, scenario)

    run(CONFIG, bench, fast)


@LONG_SERIAL
def test_skips_noise_between_frames(fast):
    scenario = scenario_of(CONFIG)

    async def bench(ctx, host):
        for noise in (b"noise", b"W", b"WWW", b"\0F", b"FW"):
            await host.raw(ctx, noise)
            assert await host.read(ctx, 0, 1) == describe(CONFIG)[:1]
        await host.feed(ctx, scenario.data)
        await collect(ctx, host, CONFIG, scenario)

    run(CONFIG, bench, fast)


INVALID = [
    (7, b"", b"type"), (FrameType.RESULTS, b"1234", b"type"),
    (FrameType.READ, b"123", b"size"), (FrameType.ABORT, b"1", b"size"),
    (FrameType.COMMANDS, bytes(6), b"size"), (FrameType.COMMANDS, bytes(MAX_PAYLOAD + 4), b"size"),
    (FrameType.READ, bytes(260), b"size"),
]


def test_rejects_invalid_frames(fast):
    async def bench(ctx, host):
        for kind, payload, text in INVALID:
            frame = await host.request(ctx, kind, payload)
            assert (frame.type, frame.payload) == (FrameType.ERROR, text), (kind, len(payload))
            assert await host.read(ctx, HASH, 1) == [CONFIG.hash]
            assert await host.read(ctx, REGISTERS.index("words_in"), 1) == [0]

    run(CONFIG, bench, fast)


@LONG_SERIAL
def test_abandons_a_frame_on_rx_error(fast):
    scenario = scenario_of(CONFIG)

    async def bench(ctx, host):
        frame = Frame(FrameType.COMMANDS, 1, bytes(64)).encode()
        for cut in (3, 8, 30, len(frame) - 1):
            await host.raw(ctx, frame[:cut])
            await ticks(ctx, 12)
            await pulse(ctx, host.dut.rx_error)
            assert await host.read(ctx, HASH, 1) == [CONFIG.hash]
        await host.feed(ctx, scenario.data)
        await collect(ctx, host, CONFIG, scenario)

    run(CONFIG, bench, fast)


@pytest.mark.slow
@LONG_SERIAL
def test_acknowledges_a_frame_when_there_is_space_for_another(fast):
    # More jobs than the core can hold, all waiting for operands: the rest waits in the link.
    commands = unfed(range(2 * MAX_PAYLOAD // 32)).data
    assert len(commands) == 2 * MAX_PAYLOAD

    async def bench(ctx, host):
        await host.feed(ctx, commands[:MAX_PAYLOAD])
        late = await host.post(ctx, FrameType.COMMANDS, commands[MAX_PAYLOAD : 2 * MAX_PAYLOAD])
        await ticks(ctx, 1000)
        assert host.inbox == []  # accepted, but there is no space for another frame
        frame = await host.request(ctx, FrameType.COMMANDS, bytes(4))
        assert (frame.type, frame.payload) == (FrameType.ERROR, b"room")
        for tag in range(2 * MAX_PAYLOAD // 32):
            await host.post(ctx, FrameType.ABORT)
            assert (await host.answer(ctx, {FrameType.ABORTED})).sequence == host.sequence
            frame = await host.answer(ctx, {FrameType.RESULTS})
            assert frame.payload[:4] == bytes([tag, 0, 1, 1])
        assert (await host.answer(ctx, {FrameType.ACK})).sequence == late

    run(CONFIG, bench, fast)


@pytest.mark.slow
@LONG_SERIAL
def test_ignores_a_frame_with_an_unexpected_sequence_number(fast):
    scenario = scenario_of(CONFIG)
    commands = scenario.data
    pieces = [commands[n : n + 64] for n in range(0, len(commands), 64)]
    assert len(pieces) > 3

    async def bench(ctx, host):
        accepted = 0
        for piece in pieces:
            # Repeated, ahead, the first, the last before the wrap: an ACK and no effect.
            for number in (accepted, accepted + 2, 1 - (accepted == 0), 255):
                await host.raw(ctx, Frame(FrameType.COMMANDS, number, bytes(4)).encode())
                assert await host.answer(ctx, {FrameType.ACK}) == Frame(FrameType.ACK, accepted)
            accepted += 1
            await host.raw(ctx, Frame(FrameType.COMMANDS, accepted, piece).encode())
            assert await host.answer(ctx, {FrameType.ACK}) == Frame(FrameType.ACK, accepted)
        await collect(ctx, host, CONFIG, scenario)

    run(CONFIG, bench, fast)


@LONG_SERIAL
def test_sequence_numbers_wrap(fast):
    dut, acks = FrameReceiver(bytes_in=4, target="generic", fast=fast), []

    async def host(ctx):
        ctx.set(dut.ack.ready, 1)
        for number in (*range(1, 256), 0, 1):
            data = Frame(FrameType.COMMANDS, number).encode()
            await send(ctx, dut.bytes, data, idle=0, seed=number)
        await ticks(ctx, 40)

    async def listen(ctx):
        while True:
            _, _, valid, number = await ctx.tick().sample(dut.ack.valid, dut.ack.payload)
            acks.extend([number] * valid)

    simulate(dut, host, background=[listen], limit=100_000)
    assert acks == [*range(1, 256), 0, 1]


@pytest.mark.parametrize("number", [3, 4])  # expected, and not
def test_a_frame_that_finds_no_space_changes_nothing(number, fast):
    frames = dataclasses.replace(COMMAND_FRAMES, max_payload=64)
    dut = FrameReceiver(bytes_in=4, target="generic", frames=frames, fast=fast)
    stored = [bytes(range(64)), bytes(range(64, 128))]
    words = []

    async def host(ctx):
        for sequence, payload in enumerate(stored, 1):
            await send(ctx, dut.bytes, Frame(FrameType.COMMANDS, sequence, payload).encode())
        late = Frame(FrameType.COMMANDS, number, bytes(range(128, 192))).encode()
        await send(ctx, dut.bytes, late)
        while not ctx.get(dut.request.valid):
            await ctx.tick()
        assert ctx.get(dut.request.payload.nak) == Nak.FULL
        ctx.set(dut.commands.ready, 1)
        while len(words) < 32:
            _, _, valid, word = await ctx.tick().sample(dut.commands.valid, dut.commands.payload)
            words.extend([word] * valid)

    simulate(dut, host, limit=20_000)
    assert b"".join(word.to_bytes(4, "little") for word in words) == b"".join(stored)


@LONG_SERIAL
def test_a_request_that_comes_while_the_previous_one_waits_is_dropped(fast):
    dut = FrameReceiver(bytes_in=4, target="generic", fast=fast)
    found = []

    def read(sequence, operands):
        return Frame(FrameType.READ, sequence, operands).encode()

    async def host(ctx):
        request = dut.request
        for first in (1, 4):
            await send(ctx, dut.bytes, read(first, b"\x01\x02\x03\x04"))
            while not ctx.get(request.valid):
                await ctx.tick()
            late = read(first + 1, b"\x05\x06\x07\x08")
            await send(ctx, dut.bytes, late[:-6])
            # The previous request is taken while the last bytes of the payload come.
            found.append((ctx.get(request.payload.sequence), ctx.get(request.payload.operands)))
            await pulse(ctx, request.ready)
            await send(ctx, dut.bytes, late[-6:])
            await ticks(ctx, 40)
            assert not ctx.get(request.valid)
            await send(ctx, dut.bytes, read(first + 2, b"\x09\x0a\x0b\x0c"))
            await ticks(ctx, 40)
            found.append((ctx.get(request.payload.sequence), ctx.get(request.payload.operands)))
            await pulse(ctx, request.ready)

    simulate(dut, host, limit=20_000)
    assert found == [(1, 0x04030201), (3, 0x0C0B0A09), (4, 0x04030201), (6, 0x0C0B0A09)]


def test_a_fast_receiver_takes_a_byte_of_a_payload_in_each_cycle():
    dut = FrameReceiver(bytes_in=4, target="generic", fast=True)
    frames, cycles = 4, []
    payload = bytes(range(MAX_PAYLOAD))

    async def host(ctx):
        ctx.set(dut.ack.ready, 1)
        ctx.set(dut.commands.ready, 1)
        for number in range(1, frames + 1):
            before = len(cycles)
            await send(ctx, dut.bytes, Frame(FrameType.COMMANDS, number, payload).encode())
            assert len(cycles) - before <= MAX_PAYLOAD + 80

    async def count(ctx):
        while True:
            await ctx.tick()
            cycles.append(None)

    words = []

    async def take(ctx):
        while True:
            _, _, valid, word = await ctx.tick().sample(dut.commands.valid, dut.commands.payload)
            words.extend([word] * valid)

    async def settle(ctx):
        while len(words) < frames * MAX_PAYLOAD // 4:
            await ctx.tick()

    simulate(dut, host, settle, background=[count, take], limit=4 * (MAX_PAYLOAD + 100) + 600)
    assert b"".join(word.to_bytes(4, "little") for word in words) == payload * frames


@pytest.mark.parametrize(("idle", "stall"), quick(1, [(0.5, 0.3), (0, 0)]))
@pytest.mark.parametrize(("fast", "holds_header"), [(True, True), (True, False), (False, False)])
def test_a_sender_gives_the_frames_of_the_host(fast, holds_header, idle, stall):
    """Payloads around the bytes that a fast sender sends one by one; zlib has the CRC.

    A header changes as soon as it was taken.
    """
    dut, found = FrameSender(fast=fast, holds_header=holds_header), []
    sizes = [*range(9), 100]
    expected = [
        Frame(FrameType.DATA, n, bytes(range(n, n + size))) for n, size in enumerate(sizes)
    ]

    async def headers(ctx):
        await send(ctx, dut.frame, [
            {"type": frame.type, "sequence": frame.sequence, "length": len(frame.payload)}
            for frame in expected
        ])

    async def payloads(ctx):
        data = b"".join(frame.payload for frame in expected)
        await send(ctx, dut.payload, data, idle=idle, seed=3)

    async def host(ctx):
        size = sum(len(frame.encode()) for frame in expected)
        data = await receive(ctx, dut.bytes, size, stall=stall, seed=4)
        found.extend(FrameDecoder().feed(bytes(data)))

    simulate(dut, headers, payloads, host, background=[checker(dut.bytes, "bytes")])
    assert found == expected


def test_a_fast_sender_gives_a_byte_of_a_payload_in_each_cycle():
    dut, size = FrameSender(fast=True), 500

    async def bench(ctx):
        ctx.set(dut.bytes.ready, 1)
        ctx.set(dut.payload.valid, 1)
        await send(ctx, dut.frame, [{"type": FrameType.DATA, "sequence": 1, "length": size}])
        cycles = 0
        while not ctx.get(dut.done):
            await ctx.tick()
            cycles += 1
        assert size < cycles < size + 100

    simulate(dut, bench)
