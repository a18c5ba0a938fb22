"""A bench of an SDRAM controller: bursts of AXI4 at one side, a model of the chip at the other."""

import random
from collections import deque
from dataclasses import replace

from amaranth.hdl import ResetInserter, Signal, Value

from verif.amaranth_bench import ProtocolError, simulate
from verif.sdram_chip import SdramChipModel
from weft.hw.sdram.controller import SdramController
from weft.sdram import SDRAM_CHIPS, SdramChip

__all__ = ["Phase", "SdramBench", "short"]


def short(name="IS42S16160G-7", *, mhz, columns, rows=16, interval=120, **changes):
    """A chip with few words, whose refreshes come every ``interval`` cycles, for short benches.

    16 refreshes are enough for all of its rows, and it is set up as soon as the controller can.
    """
    chip, refreshes = SDRAM_CHIPS[name], 16
    period = 1000 / mhz
    chip = replace(
        chip, rows=rows, columns=columns, refreshes=refreshes, power_up=8 * interval * period,
        ras_max=16 * interval * period, **changes,
    )
    # As many intervals as `SdramChip.timing` counts; a cycle in ten thousand for rounding.
    return replace(chip, retention=(refreshes + 9) * (interval + 1e-4) * period)


class Phase:
    """Bursts that run at the same time; the next phase starts when all have their responses.

    Parameters
    ----------
    reads : list of tuple
        Address and number of beats of each burst.
    writes : list of tuple
        Address and beats of each burst, each beat its data and its byte enables.
    lasts : list, optional
        WLAST of each beat; by default it is high with the last beat of a burst.
    foreign : set of str
        "ar" and "aw": the addresses of these channels are of other kinds of bursts.

    Attributes
    ----------
    beats : list of int
        What R brought: data, response and last from the lowest bit up.
    responses : list of int
    taken, answered : list of int
        The cycle in which each beat was taken, and each response to a write.
    """

    def __init__(self, reads=(), writes=(), *, lasts=None, foreign=()):
        self.reads, self.writes = list(reads), list(writes)
        self.foreign = foreign
        self.data = [beat for _, beats in self.writes for beat in beats]
        self.lasts = lasts or [
            n == len(beats) - 1 for _, beats in self.writes for n in range(len(beats))
        ]
        self.beats, self.responses = [], []
        self.taken, self.answered = [], []


class SdramBench:
    """Runs phases of bursts on a controller.

    Parameters
    ----------
    chip : `SdramChip`
    mhz : float
    data_bytes : int
    contents : callable, optional
        As of `SdramChipModel`.

    Attributes
    ----------
    dut : `SdramController`
    model : `SdramChipModel`
        Of the last run.
    reset : Signal
        Resets the controller, but not the chip.
    """

    def __init__(self, chip: SdramChip, *, mhz, data_bytes, contents=None):
        self.chip, self.mhz, self.contents = chip, mhz, contents
        self.data_bytes = data_bytes
        self.dut = self.design(
            SdramController(chip, chip.timing(mhz), data_bytes=data_bytes)
        )
        self.reset = Signal()
        self._design = ResetInserter(self.reset)(self.dut)
        self.model = None

    def design(self, controller):
        """What runs: the controller, or what has it and the same ports."""
        return controller

    def run(self, *phases, idle=0.0, stall=0.0, seed=0, limit=100_000):
        """Run phases, one after the other, from a reset on.

        ``idle`` and ``stall`` are the probabilities of pauses of the master in each cycle, before
        it offers something, and before it takes something.

        Raises ChipError, ProtocolError, or TimeoutError after ``limit`` cycles.
        """
        self.model = SdramChipModel(self.chip, mhz=self.mhz, contents=self.contents)

        async def bench(ctx):
            for number, phase in enumerate(phases):
                await self._play(ctx, phase, idle, stall, random.Random(seed + number))

        simulate(self._design, bench, limit=limit)

    def run_master(self, master, limit=10_000):
        """Run a bench that drives the port itself, from a reset on."""
        self.model = SdramChipModel(self.chip, mhz=self.mhz, contents=self.contents)

        async def chip(ctx):
            while True:
                _, _, *outputs = await ctx.tick().sample(*self.model.outputs(self.dut.pins))
                ctx.set(self.dut.pins.dq_i, self.model.edge(*outputs))

        simulate(self._design, master, background=[chip], limit=limit)

    async def _play(self, ctx, phase, idle, stall, rng):
        """Run one phase: one loop for all channels and the chip, because benches are slow."""
        dut, axi = self.dut, self.dut.axi
        size = 8 * self.data_bytes
        queues = {
            axi.ar: deque(address | beats - 1 << 32 for address, beats in phase.reads),
            axi.aw: deque(address | len(beats) - 1 << 32 for address, beats in phase.writes),
            axi.w: deque(
                data | strb << size | last << size + self.data_bytes
                for (data, strb), last in zip(phase.data, phase.lasts, strict=True)
            ),
        }
        beats = sum(beats for _, beats in phase.reads)
        sinks = {axi.r: (phase.beats, beats), axi.b: (phase.responses, len(phase.writes))}
        watched = [*self.model.outputs(dut.pins), *(s.ready for s in queues)]
        for sink in sinks:
            watched += [sink.valid, Value.cast(sink.payload)]
        ctx.set(dut.ar_foreign, "ar" in phase.foreign)
        ctx.set(dut.aw_foreign, "aw" in phase.foreign)
        offered, taking, held = dict.fromkeys(queues, False), {}, dict.fromkeys(sinks)
        while any(queues.values()) or any(len(got) < most for got, most in sinks.values()):
            for source, queue in queues.items():
                if not offered[source] and queue and rng.random() >= idle:
                    offered[source] = True
                    ctx.set(Value.cast(source.payload), queue[0])
                ctx.set(source.valid, offered[source])
            for sink, (got, most) in sinks.items():
                taking[sink] = len(got) < most and rng.random() >= stall
                ctx.set(sink.ready, taking[sink])
            _, _, *values = await ctx.tick().sample(*watched)
            cycle = self.model.cycle
            ctx.set(dut.pins.dq_i, self.model.edge(*values[:-7]))
            for (source, queue), ready in zip(queues.items(), values[-7:-4], strict=True):
                if offered[source] and ready:
                    queue.popleft()
                    offered[source] = False
            for index, (sink, (got, _)) in enumerate(sinks.items()):
                valid, word = values[2 * index - 4 :][:2]
                if held[sink] is not None and (not valid or word != held[sink]):
                    raise ProtocolError("a response must stay until it is taken")
                held[sink] = word if valid and not taking[sink] else None
                if valid and taking[sink]:
                    got.append(word)
                    (phase.taken if sink is axi.r else phase.answered).append(cycle)

    def expected(self, data, *, last, response=0):
        """The beat of R with these values, as `Phase.beats` has it."""
        return data | (response | last << 2) << 8 * self.data_bytes

    def random_beat(self, rng: random.Random):
        """Data and byte enables: all, none, or any of them; of whole words, if DQM is not wired."""
        size = 1 if self.chip.masks else self.chip.word_bytes
        every, steps = (1 << self.data_bytes) - 1, self.data_bytes // size
        chosen = rng.randrange(1 << steps)
        some = sum((1 << size) - 1 << size * n for n in range(steps) if chosen >> n & 1)
        strb = rng.choice((every, every, 0, some))
        return rng.getrandbits(8 * self.data_bytes), strb
