"""The register of the phase of an SDRAM's clock, before a controller and its chip."""

import random
from types import SimpleNamespace

import pytest
from amaranth.hdl import Module
from amaranth.lib import wiring
from amaranth.lib.wiring import In, Out, connect, flipped

from verif.sdram_bench import Phase, SdramBench, short
from weft.hw.dma.axi import Axi4
from weft.hw.sdram.controller import SdramPins
from weft.hw.sdram.phase import connect_controller
from weft.sdram import SdramPhase

FIRST = SdramPhase(45, 48)
MHZ, BYTES = 100, 8


class Board(wiring.Component):
    """A controller with the register before it, and the ports of the controller."""

    def __init__(self, controller):
        self.controller = controller
        self.config = SimpleNamespace(program_bytes=controller.chip.size)
        super().__init__({
            "axi": In(Axi4(data_bytes=BYTES)), "ar_foreign": In(1), "aw_foreign": In(1),
            "pins": Out(SdramPins(controller.chip)), "step": Out(1), "phase": Out(6),
        })

    def elaborate(self, platform):
        m = Module()
        m.submodules.controller = controller = self.controller
        register = connect_controller(m, self.config, flipped(self.axi), controller, FIRST)
        for name in "ar_foreign", "aw_foreign":
            m.d.comb += getattr(controller, name).eq(getattr(self, name))
        connect(m, controller.pins, flipped(self.pins))
        m.d.comb += [self.step.eq(register.step), self.phase.eq(register.phase)]
        return m


class Bench(SdramBench):
    """A bench of a `Board`, with the address of its register."""

    def __init__(self):
        chip = short(mhz=MHZ, columns=64, rows=4)
        super().__init__(chip, mhz=MHZ, data_bytes=BYTES, contents=lambda *place: 0x5A5A)
        self.register = 1 << SdramPhase.place(chip.size)

    def design(self, controller):
        return Board(controller)

    def of_register(self, phase, *, last=True):
        """The beat of a read of the register."""
        word = SdramPhase(phase, FIRST.steps).word
        return self.expected(word << 32 | word, last=last)

    def move(self, steps):
        """Writes that make as many steps."""
        return [(self.register + 8 * n, [(0x1234, 0xFF)]) for n in range(steps)]


@pytest.fixture(scope="module")
def bench():
    return Bench()


def test_the_phase_is_read_and_moves_on(bench):
    register = bench.register
    reads = [Phase(reads=[(register, 3), (register + 64, 1)]) for _ in range(3)]
    # 45 + 2 = 47 is the last one of 48.
    moves = [Phase(writes=bench.move(2)), Phase(writes=[(register, [(0, 0)] * 4)])]
    bench.run(reads[0], moves[0], reads[1], moves[1], reads[2])
    for phase, each in zip((45, 47, 0), reads, strict=True):
        beats = [bench.of_register(phase, last=last) for last in (False, False, True, True)]
        assert each.beats == beats
    assert [each.responses for each in moves] == [[0, 0], [0]]


@pytest.mark.parametrize("seed", range(3))
def test_bursts_of_the_memory_keep_their_order(bench, seed):
    """Reads of memory and register come back in their order, beside writes of both."""
    rng = random.Random(seed)
    beats = {8 * n: rng.getrandbits(64) for n in range(32)}
    fill = Phase(writes=[(0, [(beats[8 * n], 0xFF) for n in range(16)]),
                         (128, [(beats[8 * n], 0xFF) for n in range(16, 32)])])
    reads, expected = [], []
    for _ in range(12):
        count = rng.randrange(1, 5)
        if rng.random() < 0.4:
            reads.append((bench.register, count))
            # Moved by the writes beside them, at any time.
            expected += [None] * count
        else:
            first = 8 * (16 * rng.randrange(2) + rng.randrange(12))
            reads.append((first, count))
            expected += [bench.expected(beats[first + 8 * n], last=n == count - 1)
                         for n in range(count)]
    writes = [(256 + 128 * n, [(rng.getrandbits(64), 0xFF)] * 3) for n in range(3)]
    mixed = Phase(reads=reads, writes=[*writes[:1], *bench.move(1), *writes[1:], *bench.move(2)])
    after = Phase(reads=[(address, 3) for address, _ in writes] + [(bench.register, 1)])
    bench.run(fill, mixed, after, idle=0.3, stall=0.3, seed=seed)
    phases = {bench.of_register((45 + n) % 48, last=last) for n in range(4)
              for last in (False, True)}
    for found, wanted in zip(mixed.beats, expected, strict=True):
        assert found == wanted if wanted is not None else found in phases
    assert mixed.responses == [0] * 6
    written = [(data, n == 2) for _, beats in writes for n, (data, _) in enumerate(beats)]
    assert after.beats == [
        *(bench.expected(data, last=last) for data, last in written), bench.of_register(0),
    ]


def test_each_step_is_a_pulse_and_sets_the_chip_up_again(bench):
    """Two cycles of a pulse are 20 ns here: an EHXPLLL wants 5 ns of both levels."""
    steps, setups = [], []

    async def master(ctx):
        aw, w, b = bench.dut.axi.aw, bench.dut.axi.w, bench.dut.axi.b
        ctx.set(aw.payload.addr, bench.register)
        ctx.set(w.payload.last, 1)
        ctx.set(b.ready, 1)
        for _ in range(1500):  # the first set-up
            await ctx.tick()
        for _ in range(3):
            ctx.set(aw.valid, 1)
            ctx.set(w.valid, 1)
            answered = False
            while not answered:
                *_, step, taken, data, answered = await ctx.tick().sample(
                    bench.dut.step, aw.ready, w.ready, b.valid
                )
                steps.append(step)
                if taken:
                    ctx.set(aw.valid, 0)
                if data:
                    ctx.set(w.valid, 0)
            for _ in range(60):
                await ctx.tick()
            setups.append(bench.model.commands["LOAD MODE REGISTER"])

    bench.run_master(master)
    assert setups == [2, 3, 4]
    edges = [n for n in range(1, len(steps)) if steps[n] != steps[n - 1]]
    assert len(edges) == 6  # three pulses
    assert all(after - before >= 4 for before, after in zip(edges, edges[1:], strict=False))


def test_a_word_of_a_memory_is_no_phase():
    assert SdramPhase.of_word(FIRST.word) == FIRST
    assert SdramPhase(269, 360).degrees == 269
    for word in 0, 0xFFFFFFFF, FIRST.word ^ 1 << 20, SdramPhase(48, 48).word:
        assert SdramPhase.of_word(word) is None


@pytest.mark.parametrize(("size", "bit"), [(1, 0), (2, 1), (3, 2), (4096, 12), (4097, 13)])
def test_no_address_of_the_memory_is_the_register(size, bit):
    assert SdramPhase.place(size) == bit
    assert not any(address >> bit & 1 for address in range(size))
