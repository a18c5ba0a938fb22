"""The link at its bytes: jobs, questions and damage, with the host's own codec at the other end."""

import numpy as np
import pytest
from amaranth.hdl import Module
from amaranth.lib import stream, wiring
from amaranth.lib.wiring import In, Out, connect, flipped
from tiers import tiers

from weft.commands import JobFlag
from weft.config import Config
from weft.frames import FRAME, FrameType
from weft.host.link import Frame, FrameDecoder
from weft.hw.core import Core
from weft.hw.serial.frame_receiver import FrameReceiver
from weft.hw.serial.link import Link
from weft.registers import REGISTERS, decode, describe
from weft.sim.amaranth_bench import checker, send, simulate, ticks
from weft.sim.scenario import Scenario

CONFIG = Config(
    rows=2, cols=3, depth=2, bytes_in=4, bytes_out=8, a_words=64, b_words=64, jobs=2, lanes=2,
    activation="none",
)
WIDE = Config(rows=2, cols=2, depth=1, a_words=64, b_words=64, activation="none")
BYTE = Config(
    rows=1, cols=2, depth=1, bytes_in=1, bytes_out=1, lanes=1, a_words=64, b_words=64, jobs=2,
    activation="none",
)


class Linked(wiring.Component):
    """A core behind its link."""

    def __init__(self, config):
        self.config = config
        super().__init__({
            "host": In(stream.Signature(8)), "answers": Out(stream.Signature(8)), "broken": In(1),
        })

    def elaborate(self, platform):
        m = Module()
        c = self.config
        m.submodules.core = core = Core(c)
        m.submodules.link = link = Link(
            bytes_in=c.bytes_in, bytes_out=c.bytes_out, target=c.target
        )
        connect(m, flipped(self.host), link.host)
        connect(m, link.answers, flipped(self.answers))
        connect(m, link.commands, core.commands)
        connect(m, core.results, link.results)
        m.d.comb += [
            link.broken.eq(self.broken), core.address.eq(link.address), link.data.eq(core.data),
            core.abort.eq(link.abort),
        ]
        return m


class Host:
    """Sends frames and keeps what comes back, as a host would: one thing at a time."""

    def __init__(self, dut, *, idle=0, stall=0):
        self.dut, self.idle, self.stall = dut, idle, stall
        self.came, self.sequence, self.kept = [], 0, 0

    async def listen(self, ctx):
        decoder, rng = FrameDecoder(), np.random.default_rng(7)
        answers = self.dut.answers
        while True:
            ctx.set(answers.ready, ready := int(rng.random() >= self.stall))
            _, _, valid, byte = await ctx.tick().sample(answers.valid, answers.payload)
            if valid and ready:
                self.came += decoder.feed(bytes([byte]))

    async def post(self, ctx, kind, payload=b""):
        """Frames of commands are numbered by themselves."""
        if kind == FrameType.COMMANDS:
            number = self.kept = (self.kept + 1) % 256
        else:
            number = self.sequence = (self.sequence + 1) % 256
        await self.raw(ctx, Frame(kind, number, payload).encode())
        return number

    async def raw(self, ctx, data):
        await send(ctx, self.dut.host, data, idle=self.idle, seed=len(data))

    async def answer(self, ctx, kinds):
        """The next frame of such a kind; it leaves the others."""
        while True:
            for n, frame in enumerate(self.came):
                assert isinstance(frame, Frame), frame
                if frame.type in kinds:
                    return self.came.pop(n)
            await ctx.tick()

    async def ask(self, ctx, kind, payload=b""):
        """A question and its answer, or the refusal."""
        number = await self.post(ctx, kind, payload)
        frame = await self.answer(ctx, {
            FrameType.TAKEN, FrameType.REGISTERS, FrameType.ABORTED, FrameType.ERROR,
        })
        assert frame.sequence == number
        if kind == FrameType.COMMANDS and frame.type == FrameType.ERROR:
            self.kept -= 1
        return frame

    async def read(self, ctx, address, count):
        question = address.to_bytes(2, "little") + count.to_bytes(2, "little")
        frame = await self.ask(ctx, FrameType.READ, question)
        assert frame.type == FrameType.REGISTERS and len(frame.payload) == 4 * count
        return np.frombuffer(frame.payload, "<u4").tolist()

    async def feed(self, ctx, commands, size=FRAME):
        for start in range(0, len(commands), size):
            frame = await self.ask(ctx, FrameType.COMMANDS, commands[start : start + size])
            assert frame.type == FrameType.TAKEN


def program_of(config, seed=1):
    """Jobs of sums and, where the core finishes them, of bytes."""
    rng = np.random.default_rng(seed)
    scenario = Scenario(config)
    for tag, (m, n, k) in enumerate([(3, 4, 5), (1, 1, 1)]):
        a, b = (rng.integers(-128, 128, (lines, k)).astype(np.int8) for lines in (m, n))
        scenario.multiply(a, b, tag=tag)
        scenario.load_parameters([(5, 3 << 29, -8, 0, 1, -128, 127)] * n)
        scenario.job(a, b, flags=JobFlag.REQUANTIZE, tag=1000 + tag)
    return scenario


def words_of(config, frames, tag):
    """The words of a job in ``frames``, as `weft.sim.scenario.ExpectedResults` takes them."""
    words = []
    for frame in frames:
        body = frame.payload
        assert int.from_bytes(body[:2], "little") == tag and len(body) <= 4 + FRAME
        data = [body[n : n + config.bytes_out] for n in range(4, len(body), config.bytes_out)]
        words += [
            {"data": int.from_bytes(word, "little"), "last": 0, "status": 0, "tag": tag}
            for word in data
        ]
        words[-1].update(last=body[2], status=body[3])
    return words


async def collect(ctx, host, config, scenario, first=0):
    """Results of all jobs, against golden; the sequence numbers count on."""
    sequence = first
    for answer in scenario.expected_results:
        frames = []
        while not frames or not frames[-1].payload[2]:
            frames.append(await host.answer(ctx, {FrameType.RESULTS}))
            assert frames[-1].sequence == sequence % 256
            sequence += 1
        answer.check(words_of(config, frames, answer.tag))
    return sequence


def commands_of(config, scenario):
    return b"".join(word.to_bytes(config.bytes_in, "little") for word in scenario.words)


def run(config, bench, limit=400_000, **host):
    dut = Linked(config)
    host = Host(dut, **host)

    async def body(ctx):
        await bench(ctx, host)

    riders = [checker(dut.answers, "answers"), host.listen]
    simulate(dut, body, background=riders, limit=limit)
    assert host.came == []


@pytest.mark.parametrize("case", tiers({
    "4to8": (CONFIG, {}), "4to8-stall": (CONFIG, {"idle": 0.5, "stall": 0.5}),
    "16to16": (WIDE, {}), "1to1": (BYTE, {}),
}, "4to8-stall"))
def test_products_through_the_link(case):
    config, rules = case
    scenario = program_of(config)

    async def bench(ctx, host):
        sent = 0
        for _ in range(2):
            await host.feed(ctx, commands_of(config, scenario), 112 if rules else FRAME)
            sent = await collect(ctx, host, config, scenario, sent)

    run(config, bench, **rules)


@pytest.mark.slow
def test_results_longer_than_a_frame_come_in_several():
    config = Config(rows=2, cols=2, depth=1, a_words=1024, b_words=64, bytes_out=8)
    rng = np.random.default_rng(1)
    scenario = Scenario(config)
    a, b = (rng.integers(-128, 128, (lines, 2)).astype(np.int8) for lines in (40, 7))
    scenario.multiply(a, b, tag=0xABCD)

    async def bench(ctx, host):
        await host.feed(ctx, commands_of(config, scenario))
        words = len(scenario.expected_results[0].words)
        assert await collect(ctx, host, config, scenario) == -(-words * 8 // FRAME) > 2

    run(config, bench)


def test_registers_say_which_core_it_is():
    async def bench(ctx, host):
        words = describe(CONFIG)
        assert await host.read(ctx, 0, len(words)) == words
        assert decode(await host.read(ctx, 0, len(REGISTERS))) == CONFIG
        assert await host.read(ctx, 2, 1) == [CONFIG.hash]
        assert await host.read(ctx, 200, 2) == [0, 0]
        assert await host.read(ctx, 0, 0) == []

    run(CONFIG, bench)


def test_an_abort_ends_a_job_never_fed():
    scenario = Scenario(CONFIG)
    a, b = np.ones((2, 3), np.int8), np.ones((3, 3), np.int8)
    scenario.job(a, b, tag=1, flags=JobFlag.FEED_A | JobFlag.FEED_B)

    async def bench(ctx, host):
        await host.feed(ctx, commands_of(CONFIG, scenario))
        await ticks(ctx, 50)
        assert (await host.ask(ctx, FrameType.ABORT)).type == FrameType.ABORTED
        frame = await host.answer(ctx, {FrameType.RESULTS})
        assert frame.payload[:4] == bytes([1, 0, 1, 1])
        after = program_of(CONFIG)
        await host.feed(ctx, commands_of(CONFIG, after))
        await collect(ctx, host, CONFIG, after, 1)

    run(CONFIG, bench)


def damaged(data, place, bits):
    return data[:place] + bytes([data[place] ^ bits]) + data[place + 1 :]


@pytest.mark.parametrize("place", [
    2, 40, *(pytest.param(place, marks=pytest.mark.slow) for place in (3, 4, 8, 11, -5, -1)),
])
def test_a_damaged_frame_has_no_effect(place):
    scenario = program_of(CONFIG)
    commands = commands_of(CONFIG, scenario)
    good = Frame(FrameType.COMMANDS, 9, commands[:128]).encode()

    async def bench(ctx, host):
        await host.raw(ctx, damaged(good, place % len(good), 1))
        if place == 4:  # of another length: it takes what follows for its own
            await host.raw(ctx, bytes(8))
        frame = await host.answer(ctx, {FrameType.ERROR})
        assert frame.payload in (b"CRC ", b"size")
        await host.feed(ctx, commands)
        await collect(ctx, host, CONFIG, scenario)

    run(CONFIG, bench)


def test_noise_between_frames_is_passed_over():
    scenario = program_of(CONFIG)

    async def bench(ctx, host):
        for noise in (b"noise", b"W", b"WWW", b"\0F", b"FW"):
            await host.raw(ctx, noise)
            assert await host.read(ctx, 0, 1) == describe(CONFIG)[:1]
        await host.feed(ctx, commands_of(CONFIG, scenario))
        await collect(ctx, host, CONFIG, scenario)

    run(CONFIG, bench)


@pytest.mark.parametrize(("kind", "payload", "text"), [
    (7, b"", b"type"), (FrameType.RESULTS, b"1234", b"type"),
    (FrameType.READ, b"123", b"size"), (FrameType.ABORT, b"1", b"size"),
    (FrameType.COMMANDS, bytes(6), b"size"), (FrameType.COMMANDS, bytes(FRAME + 4), b"size"),
    (FrameType.READ, bytes(260), b"size"),
])
def test_refuses_what_is_no_frame_for_a_core(kind, payload, text):
    async def bench(ctx, host):
        frame = await host.ask(ctx, kind, payload)
        assert (frame.type, frame.payload) == (FrameType.ERROR, text)
        assert await host.read(ctx, 2, 1) == [CONFIG.hash]
        assert await host.read(ctx, REGISTERS.index("words_in"), 1) == [0]

    run(CONFIG, bench)


def test_a_frame_that_lost_a_byte_is_given_up():
    scenario = program_of(CONFIG)

    async def bench(ctx, host):
        frame = Frame(FrameType.COMMANDS, 1, bytes(64)).encode()
        for cut in (3, 8, 30, len(frame) - 1):
            await host.raw(ctx, frame[:cut])
            await ticks(ctx, 12)
            ctx.set(host.dut.broken, 1)
            await ctx.tick()
            ctx.set(host.dut.broken, 0)
            assert await host.read(ctx, 2, 1) == [CONFIG.hash]
        await host.feed(ctx, commands_of(CONFIG, scenario))
        await collect(ctx, host, CONFIG, scenario)

    run(CONFIG, bench)


def test_takes_frames_only_where_there_is_room():
    # Jobs that are never fed, more than the core has room for: the rest waits in the link.
    scenario = Scenario(CONFIG)
    a, b = np.ones((2, 3), np.int8), np.ones((3, 3), np.int8)
    for tag in range(2 * FRAME // 32):
        scenario.job(a, b, tag=tag, flags=JobFlag.FEED_A | JobFlag.FEED_B)
    commands = commands_of(CONFIG, scenario)
    assert len(commands) == 2 * FRAME

    async def bench(ctx, host):
        await host.feed(ctx, commands[:FRAME])
        late = await host.post(ctx, FrameType.COMMANDS, commands[FRAME : 2 * FRAME])
        await ticks(ctx, 4000)
        assert host.came == []  # it is kept, but there is no room for another
        frame = await host.ask(ctx, FrameType.COMMANDS, bytes(4))
        assert (frame.type, frame.payload) == (FrameType.ERROR, b"room")
        for tag in range(2 * FRAME // 32):
            await host.post(ctx, FrameType.ABORT)
            assert (await host.answer(ctx, {FrameType.ABORTED})).sequence == host.sequence
            frame = await host.answer(ctx, {FrameType.RESULTS})
            assert frame.payload[:4] == bytes([tag, 0, 1, 1])
        assert (await host.answer(ctx, {FrameType.TAKEN})).sequence == late

    run(CONFIG, bench)


def test_a_frame_that_is_no_successor_is_not_kept_and_told_what_was():
    scenario = program_of(CONFIG)
    commands = commands_of(CONFIG, scenario)
    pieces = [commands[n : n + 128] for n in range(0, len(commands), 128)]
    assert len(pieces) > 3

    async def bench(ctx, host):
        kept = 0
        for piece in pieces:
            # Again, ahead, the first again, one that goes round: none has an effect, each is told.
            for number in (kept, kept + 2, 1 - (kept == 0), 255):
                await host.raw(ctx, Frame(FrameType.COMMANDS, number, bytes(32)).encode())
                assert await host.answer(ctx, {FrameType.TAKEN}) == Frame(FrameType.TAKEN, kept)
            kept += 1
            await host.raw(ctx, Frame(FrameType.COMMANDS, kept, piece).encode())
            assert await host.answer(ctx, {FrameType.TAKEN}) == Frame(FrameType.TAKEN, kept)
        await collect(ctx, host, CONFIG, scenario)

    run(CONFIG, bench)


def test_numbers_of_frames_go_round():
    dut, came = FrameReceiver(bytes_in=4, target="generic"), []

    async def host(ctx):
        ctx.set(dut.taken.ready, 1)
        for number in (*range(1, 256), 0, 1):
            data = Frame(FrameType.COMMANDS, number).encode()
            await send(ctx, dut.bytes, data, idle=0, seed=number)
        await ticks(ctx, 40)

    async def listen(ctx):
        while True:
            _, _, valid, number = await ctx.tick().sample(dut.taken.valid, dut.taken.payload)
            came.extend([number] * valid)

    simulate(dut, host, background=[listen], limit=100_000)
    assert came == [*range(1, 256), 0, 1]
