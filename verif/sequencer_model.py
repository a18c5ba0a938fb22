"""A cycle-exact model of the sequencer, as a bench that drives and checks it."""

import functools
import random

from amaranth.hdl import Value
from amaranth.lib.data import StructLayout

from verif.amaranth_bench import plain, put, simulate, ticks
from weft.commands import Region, Status
from weft.geometry import Operand
from weft.hw.control.sequencer import Sequencer
from weft.hw.control.tile_generator import Tile

__all__ = ["DEPTH", "EVERY", "ROWS", "SequencerModel", "random_passes", "tile"]

ROWS, DEPTH = 3, 2
A = Operand(ROWS, DEPTH, 64, 16)
B = Operand(4, DEPTH, 128, 16)
C = Operand(4, 1, 64, 16, 1, 4)
EVERY = (1 << ROWS) - 1  # preload of all rows
C_FIELDS = ("c", "preload", "broadcast")


def tile(tag=0, *, k=5, last=0, a_page=0, b_page=0, status=0, accumulate=0, hold=0, epilogue=0,
         c=0, preload=0, broadcast=0):
    """The fields of a tile; bits of ``epilogue``: requantize, table."""
    return {
        "a_page": a_page, "b_page": b_page, "k": k, "rows": ROWS, "cols": 4, "last": last,
        "single_word": int(k <= DEPTH), "tag": tag, "status": status, "failed": int(status != 0),
        "accumulate": accumulate, "hold": hold,
        "epilogue": {"requantize": epilogue & 1, "table": epilogue >> 1},
        "c": c, "preload": preload, "broadcast": broadcast,
    }


@functools.cache
def _sequencer(slots, credits, starts, rows, folded):
    """The sequencer of all models with these parameters: it is elaborated once."""
    geometries = {Region.A: A, Region.B: B} | ({Region.C: C} if starts else {})
    layout = Tile(geometries, StructLayout({"requantize": 1, "table": 1}))
    return Sequencer(
        geometries=(A, B), tile=layout, slots=slots, rows=rows, depth=DEPTH, credits=credits,
        folded=folded,
    )


class SequencerModel:
    """Drives a `Sequencer` with passes, records every cycle, and checks it against the rules.

    Steps and results are recorded in the cycle of the decision, not ``LATENCY`` cycles later.

    Parameters
    ----------
    slots, rows : int
        As of `Sequencer`.
    room : int
        Passes that the result buffer holds.
    starts : bool
        Whether the core has a C buffer.
    folded : bool

    Attributes
    ----------
    cycles : list of dict
        For each cycle the inputs and the outputs of the sequencer.
    """

    def __init__(self, slots, room, *, starts=True, rows=ROWS, folded=False):
        self.slots, self.room, self.starts, self.rows = slots, room, starts, rows
        self.folded = folded
        self.dut = _sequencer(slots, room, starts, rows, folded)
        self.cycles = []

    def fields(self, one):
        """The fields of a tile that the core has."""
        return one if self.starts else {k: v for k, v in one.items() if k not in C_FIELDS}

    def run(
        self, passes, *, cycles, releases=None, idle=0.0, gaps=None, aborts=None, at_once=False
    ):
        """Run ``passes`` to their end, in at most ``cycles`` cycles.

        The first pass follows the flush after the reset, if the array is folded.

        Parameters
        ----------
        releases : collection of int, optional
            Cycles in which ``release`` is high; if absent, 5 cycles after each drain.
        idle : float
            Probability that a pass becomes valid a cycle later.
        gaps : dict, optional
            For a pass, by its number: cycles without a valid pass before it.
        aborts : dict, optional
            For a pass, by its number: cycles after which its tiles become aborted.
        at_once : bool
            The first pass is valid in the first cycle after the reset.
        """
        dut, rng = self.dut, random.Random(cycles)
        gaps, aborts = dict(gaps or {}), aborts or {}
        ports = {
            name: getattr(dut, name) for name in ("slot", "step", "results", "active", "stalled")
        }
        raw = Value.cast(dut.passes.payload)

        async def bench(ctx):
            number, valid_cycles, aborted, tail = 0, 0, False, 2 * self.slots + 8
            if self.folded and not at_once:
                await ticks(ctx, self.rows + 1)
            for t in range(cycles):
                tail -= number == len(passes)
                if not tail:
                    break
                slot = ctx.get(dut.slot)
                tiles = None if number == len(passes) else passes[number]
                if tiles and not valid_cycles:
                    gaps[number] = gaps.get(number, 0) - 1
                    tiles = None if gaps[number] >= 0 or rng.random() < idle else tiles
                if tiles is None:
                    ctx.set(raw, rng.getrandbits(len(raw)))
                else:
                    aborted |= slot == 0 and valid_cycles >= aborts.get(number, cycles)
                    if aborted:
                        tiles = [{**tiles[0], "status": int(Status.ABORTED), "failed": 1}]
                    self.drive(ctx, tiles, slot, rng)
                    valid_cycles += 1
                ctx.set(dut.passes.valid, tiles is not None)
                release = t - 5 in self.drains if releases is None else t in releases
                ctx.set(dut.release, release)
                values = await ctx.tick().sample(dut.passes.ready, *ports.values())
                fire = tiles is not None and values[2]
                outputs = dict(zip(ports, map(plain, values[3:]), strict=True))
                self.cycles.append({"tiles": tiles, "release": release, "fire": fire, **outputs})
                if fire:
                    number, valid_cycles, aborted = number + 1, 0, False
            assert number == len(passes)

        simulate(dut, bench, limit=cycles + self.rows + 3)
        later = self.cycles[dut.LATENCY :]
        del self.cycles[-dut.LATENCY :]
        for decision, output in zip(self.cycles, later, strict=True):
            decision |= {name: output[name] for name in ("step", "results", "active")}

    def drive(self, ctx, tiles, slot, rng):
        """Set the payload of a pass; a slot without a tile has random fields."""
        payload = {
            "lead": self.fields(tiles[0]), "present": int(slot < len(tiles)),
            "end": int(slot == len(tiles) - 1),
        }
        absent = tile(rng.randrange(99), a_page=rng.randrange(4), c=rng.randrange(64))
        payload["tile"] = self.fields(tiles[slot] if slot < len(tiles) else absent)
        put(ctx, self.dut.passes.payload, payload)

    def step(self, name):
        """A field of the step, in each cycle."""
        return [cycle["step"][name] for cycle in self.cycles]

    @property
    def drains(self):
        """Cycles of drains."""
        return [t for t, drain in enumerate(self.step("drain")) if drain]

    @property
    def stalls(self):
        """Cycles in which the sequencer stalls."""
        return [t for t, cycle in enumerate(self.cycles) if cycle["stalled"]]

    @property
    def steps(self):
        """Cycles and fields of active steps."""
        return [(t, cycle["step"]) for t, cycle in enumerate(self.cycles) if cycle["step"]["en"]]

    def rounds(self, lead):
        """The rounds of a pass: rows of C, then words of K."""
        if lead["preload"] and not lead["broadcast"]:
            yield from (("row", row) for row in range(self.rows))
        yield from (("word", word) for word in range(-(-lead["k"] // DEPTH)))

    def check(self):
        """Check every cycle against the rules."""
        # kept: the last pass held its sums. next_drain: the first cycle of the next drain.
        slot, kept, room, next_drain = 0, False, self.room, 0
        current, stalled, rounds, started = None, False, None, False
        holds_sums, flush = False, None  # folded: the array holds sums; the cycle of a flush
        interval = self.slots * self.rows + self.folded  # of drains
        for t, cycle in enumerate(self.cycles):
            tiles = cycle["tiles"]
            lead = tiles[0] if tiles else tile()
            failed = slot == 0 and lead["status"] != 0
            if tiles and rounds is None:
                rounds, started = list(self.rounds(lead)), False
            if slot == 0:
                # The decision on a round. The last round of a pass with results may wait.
                current, stalled = None, False
                if tiles and not failed:
                    drains = len(rounds) == 1 and not lead["hold"]
                    stalled = drains and not room
                    go = not drains or (room and t >= next_drain)
                    if self.folded and not started and t < next_drain:
                        go = stalled = False
                    elif self.folded and not started and holds_sums and not lead["accumulate"]:
                        go = stalled = holds_sums = False
                        flush, next_drain = t + 1, t + 1 + interval
                    if go:
                        current, started, holds_sums = rounds.pop(0), True, not drains
                        if drains:
                            room, next_drain = room - 1, t + interval
            last_round = current is not None and not rounds
            fire = failed or (last_round and slot == self.slots - 1)
            assert (cycle["slot"], cycle["stalled"], cycle["fire"]) == (slot, stalled, fire), t
            self.check_step(t, tiles, current, last_round)
            assert cycle["step"].get("flush", 0) == (t == flush), t
            self.check_results(t, tiles, last_round, failed)
            room += cycle["release"]
            if fire:
                rounds, kept = None, kept if failed else lead["hold"] == 1
            # The slot counts while a pass runs, or while the array holds sums.
            slot = (slot + 1) % self.slots if slot or (tiles and not failed) or kept else 0

    def check_step(self, t, tiles, current, last_round):
        """Check the step of a cycle; ``current`` is its round, if any."""
        cycle, step = self.cycles[t], self.cycles[t]["step"]
        slot, last_slot = cycle["slot"], cycle["slot"] == self.slots - 1
        kind, n = current or (None, None)
        present = current is not None and slot < len(tiles)
        lead = tiles[0] if current else tile()
        drains = last_round and not lead["hold"]
        assert step["en"] == cycle["active"] == (kind == "word" and present), t
        assert (step["capture"], step["drain"]) == (drains, drains and last_slot), t
        if present or not current:
            from_zero = not lead["accumulate"] and not lead["preload"]
            assert step["clear"] == (current == ("word", 0) and from_zero), t
        if step["en"]:
            pages = tiles[slot]["a_page"], tiles[slot]["b_page"]
            assert (step["a_addr"], step["b_addr"]) == tuple(page * 16 + n for page in pages), t
        if self.starts:
            all_rows = current == ("word", 0) and lead["preload"] & lead["broadcast"]
            rows = 1 << n if kind == "row" else all_rows * ((1 << self.rows) - 1)
            assert step["preload"] == rows, t
            if present and step["preload"]:
                row = n if kind == "row" else 0
                assert step["c_addr"] == (tiles[slot]["c"] + row) % C.words, t

    def check_results(self, t, tiles, last_round, failed):
        """Check the announced tile of a cycle."""
        results, slot = self.cycles[t]["results"], self.cycles[t]["slot"]
        assert results["valid"] == (failed or (last_round and slot < len(tiles))), t
        if results["valid"]:
            assert (results["tile"], results["slot"]) == (self.fields(tiles[slot]), slot), t
        if results["valid"] and not failed:
            assert results["end"] == (slot == len(tiles) - 1), t
            words = -(-tiles[0]["k"] // DEPTH) - 1
            for page in ("a_page", "b_page"):
                assert results[page] == tiles[slot][page] + words // 16, t


def random_passes(slots, seed, count):
    """``count`` random passes, each a list of tiles."""
    rng = random.Random(seed)
    for n in range(count):
        k = rng.choice([1, 2, 3, rng.randint(1, 40)])
        preload = rng.randrange(2)
        accumulate = 0 if preload else rng.randrange(2)
        hold, status = rng.random() < 0.3, rng.choice([0, 0, 0, 1, 2])
        size = 1 if status else rng.randint(1, slots)
        common = {
            "k": k, "accumulate": accumulate, "hold": int(hold), "preload": preload,
            "broadcast": rng.randrange(2), "status": status, "epilogue": rng.randrange(4),
        }
        yield [
            tile(n, a_page=rng.randrange(2), b_page=rng.randrange(6), c=rng.randrange(C.words),
                 last=int(x == size - 1), **common)
            for x in range(size)
        ]
