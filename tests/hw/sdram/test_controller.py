"""The SDRAM controller before a chip that refuses whatever its data sheet forbids."""

import random

import pytest
from rejects import rejects
from tiers import tiers

from verif.amaranth_bench import send
from verif.formal.bugs import Bug, sown
from verif.sdram_bench import Phase, SdramBench, short
from verif.sdram_chip import ChipError
from weft.hw.export import to_verilog
from weft.hw.sdram.controller import SdramController
from weft.hw.sdram.scheduler import Access
from weft.network_core.cycles.memory import ACCESS
from weft.network_core.cycles.sdram import SdramRows, SdramTimes
from weft.sdram import SDRAM_CHIPS

BURST = 16


def word(bank, row, column):
    """What a chip holds before it is written."""
    return (bank * 7919 + row * 1031 + column * 13 + 5) & 0xFFFF


class Bench(SdramBench):
    """A bench with the bytes that its memory must have."""

    def __init__(self, chip, *, mhz, data_bytes):
        every = (1 << chip.width) - 1

        def contents(*place):
            return word(*place) * 0x10001 & every

        super().__init__(chip, mhz=mhz, data_bytes=data_bytes, contents=contents)
        words = (
            contents(bank, row, column) for row in range(chip.rows) for bank in range(chip.banks)
            for column in range(chip.columns)
        )
        self.memory = bytearray(
            b"".join(value.to_bytes(chip.word_bytes, "little") for value in words)
        )

    def beat(self, address):
        return int.from_bytes(self.memory[address : address + self.data_bytes], "little")

    def write(self, phase):
        """Write the beats of a phase to the bytes."""
        for address, beats in phase.writes:
            for n, (data, strb) in enumerate(beats):
                for k in range(self.data_bytes):
                    if strb >> k & 1:
                        self.memory[address + n * self.data_bytes + k] = data >> 8 * k & 0xFF

    def check(self, *phases):
        """What the phases have read and answered."""
        for phase in phases:
            assert phase.beats == [
                self.expected(self.beat(address + n * self.data_bytes), last=n == beats - 1)
                for address, beats in phase.reads for n in range(beats)
            ]
            assert phase.responses == [0] * len(phase.writes)
            self.write(phase)

    def bursts(self, rng, blocks, count):
        """Random bursts in some of the blocks of 16 beats."""
        for _ in range(count):
            start = rng.randrange(BURST)
            beats = rng.choice((1, rng.randrange(BURST - start) + 1, BURST - start))
            yield (rng.choice(blocks) * BURST + start) * self.data_bytes, beats


KINDS = {  # name, clock, columns, bytes of a beat, what the chip has not
    "x16, beats of 16": ("IS42S16160G-7", 133, 128, 16),
    "x16, beats of 32": ("W9825G6KH-6", 166, 256, 32),
    "x16, beats of 4": ("MT48LC16M16A2-75", 48, 64, 4),
    "x16, beats of 8, CAS latency 2": ("AS4C32M16SB-7", 100, 64, 8),
    "x32, beats of 16": ("EM638325-7", 110, 64, 16),
    "x32, beats of 8": ("EM638325-7", 133, 32, 8),
    "x32, beats of 64": ("EM638325-7", 140, 256, 64),
    "x32 without DQM, beats of 8": ("EM638325-7", 100, 32, 8, {"masks": False}),
    "x32 without DQM, beats of 32": ("EM638325-7", 133, 128, 32, {"masks": False}),
}
# Neither a new chip nor the largest beat.
FURTHER = "x16, beats of 32", "x32, beats of 8", "x32 without DQM, beats of 32"
BENCHES = {}


def bench(kind, **changes):
    """A bench of a kind; benches are made once, and each run starts with a reset."""
    key = kind, *changes.items()
    if key not in BENCHES:
        name, mhz, columns, data_bytes, *lacks = KINDS[kind]
        for each in lacks:
            changes = each | changes
        chip = short(name, mhz=mhz, columns=columns, **{"rows": 4} | changes)
        BENCHES[key] = Bench, chip, mhz, data_bytes
    made, chip, mhz, data_bytes = BENCHES[key]
    return made(chip, mhz=mhz, data_bytes=data_bytes)


@pytest.mark.parametrize("pauses", tiers(
    {"no pauses": (0, 0), "slow master": (0.8, 0), "slow reads": (0, 0.9), "both": (0.4, 0.5)},
    "both", long={"slow master", "slow reads"},
))
@pytest.mark.parametrize("kind", tiers(
    {kind: kind for kind in KINDS}, "x16, beats of 16", long=FURTHER
))
def test_random_bursts(kind, pauses):
    """Reads and writes at the same time, of other blocks; the next phase reads what was written."""
    one, rng = bench(kind, interval=130), random.Random(f"{kind} {pauses}")
    idle, stall = pauses
    blocks = range(one.chip.size // (BURST * one.data_bytes))
    phases = []
    for _ in range(3):
        mine = set(rng.sample(blocks, len(blocks) // 2))
        others = [block for block in blocks if block not in mine]
        phases.append(Phase(one.bursts(rng, others, 8), [
            (address, [one.random_beat(rng) for _ in range(beats)])
            for address, beats in one.bursts(rng, [*mine], 6)
        ]))
    phases.append(Phase([(block * BURST * one.data_bytes, BURST) for block in blocks[:24]]))
    one.run(*phases, idle=idle, stall=stall)
    one.check(*phases)
    assert one.model.commands["REFRESH"] >= one.model.cycle // 130 - 9  # that are due


@pytest.mark.parametrize("kind", tiers(
    {kind: kind for kind in KINDS if "beats of 64" not in kind}, "x16, beats of 4", long=FURTHER
))
def test_every_start_and_length(kind):
    one = bench(kind)
    block = BURST * one.data_bytes
    rng = random.Random(3)
    reads, writes = [], []
    for start in range(BURST):
        for beats in range(1, BURST + 1 - start):
            address = rng.randrange(one.chip.size // block // 2) * 2 * block
            reads.append((address + start * one.data_bytes, beats))
            if beats in (1, 2, BURST - start):
                writes.append((address + block + start * one.data_bytes, [
                    one.random_beat(rng) for _ in range(beats)
                ]))
    phases = Phase(reads, writes), Phase([(n * block, BURST) for n in range(8)])
    one.run(*phases)
    one.check(*phases)


def test_refused_bursts_are_answered_and_change_nothing():
    one = bench("x16, beats of 4")
    size, beat = one.chip.size, one.data_bytes
    bad = [
        (size, 1), (1 << 31, 2), (size - beat, 2),  # outside; the last one crosses 16 beats
        (beat // 2, 1), (1, 3),  # within a beat
        (15 * beat, 2), (8 * beat, 9), (0, 17), (0, 256), (16 * beat, 16 + 128),
    ]
    every = (1 << beat) - 1
    foreign = Phase([(0, 2)], [(0, [(1, every)] * 2)], foreign={"ar", "aw"})
    reads = [burst for one_bad in bad for burst in (one_bad, (64, 3))]
    mixed = Phase(reads, [(address, [(99, every)] * beats) for address, beats in bad])
    after = Phase([(n * BURST * beat, BURST) for n in range(size // beat // BURST)])
    one.run(foreign, mixed, after)
    assert [found >> 8 * beat for found in foreign.beats] == [2, 2 | 4]
    assert foreign.responses == [2] and mixed.responses == [2] * len(bad)
    wanted = []
    for _, beats in bad:
        wanted += [(2, n == beats - 1, None) for n in range(beats)]
        wanted += [(0, n == 2, one.beat(64 + n * beat)) for n in range(3)]
    mask = (1 << 8 * beat) - 1
    found = [(b >> 8 * beat & 3, bool(b >> 8 * beat + 2), b & mask) for b in mixed.beats]
    assert [
        (resp, last, data if resp == 0 else None) for resp, last, data in found
    ] == wanted
    one.check(after)


@pytest.mark.parametrize("lasts", [
    (1, 0, 0, 1), (0, 0, 0, 0), pytest.param((0, 1, 1, 1), marks=pytest.mark.slow)
])
def test_a_write_with_a_wrong_last_gets_an_error(lasts):
    one = bench("x16, beats of 4")
    beats = [(n + 7, 15) for n in range(4)]
    wrong = Phase([], [(64, beats)], lasts=[*lasts])
    right = Phase([], [(128, beats)])
    after = Phase([(64, 4), (128, 4)])
    one.run(wrong, right, after)
    assert (wrong.responses, right.responses) == ([2], [0])
    one.write(wrong), one.write(right)
    one.check(after)


def test_a_read_that_nobody_takes_delays_no_refresh():
    """The chip would refuse; the words that were read meanwhile are kept."""
    one = bench("x16, beats of 16", interval=130)
    phase = Phase([(n * 256, BURST) for n in range(3)])
    one.run(phase, stall=0.985, seed=2)
    one.check(phase)
    assert max(y - x for x, y in zip(phase.taken, phase.taken[1:], strict=False)) > 200
    assert one.model.commands["REFRESH"] >= one.model.cycle // 130 - 9


def test_reads_go_on_while_the_data_of_a_write_are_late():
    one = bench("x16, beats of 4")
    axi, beats = one.dut.axi, []

    async def master(ctx):
        await send(ctx, axi.aw, [{"addr": 0, "len": 1}])
        await send(ctx, axi.w, [{"data": 5, "strb": 15, "last": 0}])
        await send(ctx, axi.ar, [{"addr": 64, "len": 3}])
        ctx.set(axi.r.ready, 1)
        while len(beats) < 4:
            _, _, valid, data = await ctx.tick().sample(axi.r.valid, axi.r.payload.data)
            beats.extend([data] * valid)
        await send(ctx, axi.w, [{"data": 6, "strb": 15, "last": 1}])
        await ctx.tick().until(axi.b.valid)

    one.run_master(master)
    assert beats == [one.beat(64 + 4 * n) for n in range(4)]


def test_a_reset_sets_the_chip_up_again():
    """With open rows: the model is the same chip before and after."""
    one = bench("x16, beats of 4")
    axi = one.dut.axi

    async def read(ctx):
        ctx.set(axi.r.ready, 1)
        await send(ctx, axi.ar, [{"addr": 64, "len": 15}])
        await ctx.tick().until(axi.r.valid & axi.r.payload.last)
        return one.model.commands["LOAD MODE REGISTER"]

    async def master(ctx):
        first = await read(ctx)
        ctx.set(one.reset, 1)
        await ctx.tick()
        ctx.set(one.reset, 0)
        assert (first, await read(ctx)) == (1, 2)

    one.run_master(master)


@pytest.mark.parametrize("kind", tiers(
    {kind: kind for kind in KINDS}, "x32, beats of 16", long=FURTHER
))
def test_rate_of_a_stream(kind):
    """Words follow each other but for the batches of refreshes, which take exactly their gap.

    If a beat has two words, a row may be on its way to open when a batch starts: one cycle more.
    """
    one = bench(kind, rows=64)
    timing, words = one.dut.timing, one.data_bytes // one.chip.word_bytes
    period = timing.postponed * timing.refresh
    block = BURST * one.data_bytes
    count = 2 * period // (BURST * words) + 1
    phase = Phase([(n * block % one.chip.size, BURST) for n in range(count)])
    one.run(phase)
    waits = [y - x - words for x, y in zip(phase.taken, phase.taken[1:], strict=False)]
    gaps = [n for n, wait in enumerate(waits) if wait]
    more = {0, 1} if words == 2 else {0}
    assert {waits[n] - timing.gap for n in gaps} <= more and len(gaps) == 2
    assert (gaps[1] - gaps[0]) * words + timing.gap == pytest.approx(period, abs=words)
    assert timing.efficiency == pytest.approx(1 - timing.gap / period)


@pytest.mark.parametrize("kind", tiers({kind: kind for kind in KINDS}, "x16, beats of 4"))
def test_latency_of_a_read(kind):
    """Of a closed bank, an open row, another row of the bank; between two batches of refreshes."""
    one = bench(kind, interval=500)
    timing, row = one.dut.timing, one.chip.row_bytes * one.chip.banks
    phases = [Phase([(address, 1)]) for address in (0, one.data_bytes, row)]
    settle = Phase([(one.chip.row_bytes, 1)])  # of another bank: the first read waits for set-up
    one.run(settle, *phases)
    starts = [phase.taken[0] + 1 for phase in (settle, *phases)]
    times = [phase.taken[0] - start for phase, start in zip(phases, starts, strict=False)]
    activate = max(timing.rcd, 2) - 1
    assert times == [
        one.dut.latency + activate, one.dut.latency, one.dut.latency + activate + timing.rp
    ]


@pytest.mark.parametrize("kind", tiers(
    {kind: kind for kind in ("x32, beats of 8", "x16, beats of 8, CAS latency 2")},
    "x32, beats of 8",
))
def test_the_cycle_model_knows_the_rows(kind):
    """One burst after the other, anywhere, without a refresh between them."""
    one, rng = bench(kind, interval=1200), random.Random(kind)
    reads = list(one.bursts(rng, range(one.chip.size // (BURST * one.data_bytes)), 24))
    phases = [Phase([read]) for read in reads]
    one.run(*phases)
    assert one.model.commands["REFRESH"] == 8  # of the set-up
    rows = SdramRows.of(one.chip, KINDS[kind][1], one.data_bytes)
    model, latency = SdramTimes(rows), one.dut.latency
    # The first address waits for the set-up, and its row is closed.
    start = phases[0].taken[0] - latency - rows.rcd + 1
    for phase, (address, beats) in zip(phases, reads, strict=True):
        first = model.start(start, address // one.data_bytes, beats) + latency - ACCESS
        assert phase.taken == [first + n * rows.words for n in range(beats)]
        start = phase.taken[-1] + 1


@pytest.mark.slow
def test_a_stream_of_writes():
    """A word each cycle within a row; the next row opens when its first beat is at the port."""
    one = bench("x16, beats of 16", interval=500)
    beats = [(n << 100 | n, 0xFFFF) for n in range(BURST)]
    phase, after = Phase([], [(n * 256, beats) for n in range(6)]), Phase([(1280, BURST)])
    one.run(phase, after)
    one.check(phase, after)
    waits = [y - x - 128 for x, y in zip(phase.answered[1:], phase.answered[2:], strict=False)]
    assert max(waits) < 10 and one.model.commands["WRITE"] == 6 * BURST


# Two faults of public controllers. The row that is compared has fewer bits than the chip's; and a
# request is a read or a write if the next one is.
MUTANTS = {
    "9 bits of the row": ("(banks.read.data == request.row)",
                          "(banks.read.data[:9] == request.row[:9])"),
    "the direction of the next request": ("now.write.eq(request.write)",
                                          "now.write.eq(self.request.write)"),
}


@pytest.mark.parametrize("name", MUTANTS)
def test_faults_of_public_controllers_are_refused(name):
    old, new = MUTANTS[name]
    bug = Bug(name, "", "", "weft.hw.sdram.scheduler", old, new)
    chip = short("IS42S16160G-7", mhz=100, columns=32, rows=1024, interval=130)
    # Two rows whose numbers differ in bit 9, and another one, which closes them.
    low, high, other = (chip.row_bytes * chip.banks * row for row in (1, 513, 2))

    def phases():
        writes = [(row, [(row + n, 15) for n in range(4)]) for row in (high, low, other)]
        return *(Phase([], [write]) for write in writes), Phase([(low, 4)], [(other, [(0, 15)])])

    right = phases()
    SdramBench(chip, mhz=100, data_bytes=4).run(*right, limit=5000)
    assert [beat & 0xFFFFFFFF for beat in right[-1].beats] == [low + n for n in range(4)]
    with sown(bug), pytest.raises(ChipError, match="read, and was not written|row 1 "):
        SdramBench(chip, mhz=100, data_bytes=4).run(*phases(), limit=5000)


def test_a_chip_without_dqm_writes_whole_words_alone():
    """A beat with a part of a word is refused, and only its whole words are written."""
    one = bench("x32 without DQM, beats of 8")
    beats = [(1 << 63 | n, strb) for n, strb in enumerate((0xFF, 0xF0, 0x0F, 0, 0x1F, 0xF7, 0xFE))]
    writes = [(8 * n, [beat]) for n, beat in enumerate(beats)]
    phases = Phase([], writes), Phase([], [(64, [beats[0], beats[4], beats[0]])]), Phase([(0, 16)])
    one.run(*phases)
    assert phases[0].responses == [0, 0, 0, 0, 2, 2, 2] and phases[1].responses == [2]
    written = [
        (8 * n, data, 0xF * (strb & 15 == 15) | 0xF0 * (strb >> 4 == 15))
        for n, (data, strb) in enumerate([*beats, (0, 0), beats[0], beats[4], beats[0]])
    ]
    one.write(Phase([], [(address, [(data, strb)]) for address, data, strb in written]))
    assert phases[2].beats == [
        one.expected(one.beat(8 * n), last=n == 15) for n in range(16)
    ]
    assert one.model.commands["WRITE"] == sum(
        (strb & 15 == 15) + (strb >> 4 == 15) for _, _, strb in written
    )


def written_in_part():
    """The beats that a chip without DQM has after two whole ones, and a half of the first one."""
    chip = short("EM638325-7", mhz=100, columns=32, rows=4, masks=False)
    whole = Phase([], [(0, [(7 << 32 | 5, 0xFF)] * 2)])
    read = Phase([(0, 2)])
    SdramBench(chip, mhz=100, data_bytes=8).run(
        whole, Phase([], [(0, [(9, 0x0F)])]), read, limit=5000
    )
    return [beat & (1 << 64) - 1 for beat in read.beats]


@pytest.mark.parametrize(("old", "new", "text"), [
    ("else SINGLE_WRITES", "else 0", "WRITE of column 0x1, which is no multiple of 2"),
    ("self.command.eq(Command.WRITE), self.ba", "self.ba", "column 1 is read, and was not written"),
    ("(self.a[:low] + 1)[:low]", "self.a[:low]", "column 1 is read, and was not written"),
])
def test_faults_without_dqm_are_refused(old, new, text):
    with sown(Bug(old, "", "", "weft.hw.sdram.scheduler", old, new)):
        with pytest.raises(ChipError, match=text):
            written_in_part()


def test_a_word_that_is_left_out_stays():
    assert written_in_part() == [7 << 32 | 9, 7 << 32 | 5]
    old = "Mux(writes.skip, Command.NOP, command)"
    with sown(Bug(old, "", "", "weft.hw.sdram.controller", old, "command")):
        assert written_in_part() == [9, 7 << 32 | 5]


@pytest.mark.parametrize("data_bytes", [2, 128, 24])
def test_rejects_a_beat(data_bytes):
    text = f"data_bytes must be a power of two in 4..64 for IS42S16160G-7, not {data_bytes}"
    with rejects(ValueError, text):
        Access(SDRAM_CHIPS["IS42S16160G-7"], data_bytes=data_bytes)


def test_verilog():
    chip = SDRAM_CHIPS["EM638325-7"]
    text = to_verilog(SdramController(chip, chip.timing(100), data_bytes=16), name="sdram")
    assert "output pins__dq_oe;" in text and "input [31:0] pins__dq_i;" in text
