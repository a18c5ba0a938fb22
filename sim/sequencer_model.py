"""The sequencer's rules in every cycle: words by slots, starts, pace, room, rests; as a bench."""

import random

from amaranth.hdl import Value
from amaranth.lib.data import StructLayout

from weft.commands import Region, Status
from weft.geometry import Operand
from weft.hw.control.sequencer import Sequencer
from weft.hw.control.tile_generator import Tile
from weft.sim.amaranth_bench import plain, put, simulate

__all__ = ["DEPTH", "EVERY", "ROWS", "SequencerModel", "random_passes", "tile"]

ROWS, DEPTH = 3, 2
A = Operand(ROWS, DEPTH, 64, 16)
B = Operand(4, DEPTH, 128, 16)
C = Operand(4, 1, 64, 16, 1, 4)
EVERY = (1 << ROWS) - 1
C_FIELDS = ("c", "preload", "broadcast")


def tile(tag=0, *, k=5, last=0, a_page=0, b_page=0, status=0, accumulate=0, hold=0, epilogue=0,
         c=0, preload=0, broadcast=0):
    return {
        "a_page": a_page, "b_page": b_page, "k": k, "rows": ROWS, "cols": 4, "last": last,
        "single_word": int(k <= DEPTH), "tag": tag, "status": status, "failed": int(status != 0),
        "accumulate": accumulate, "hold": hold,
        "epilogue": {"requantize": epilogue & 1, "table": epilogue >> 1},
        "c": c, "preload": preload, "broadcast": broadcast,
    }


class SequencerModel:
    """A sequencer that is offered passes: all that it does, cycle by cycle.

    Steps and results are noted in the cycle in which they were decided on.
    """

    def __init__(self, slots, room, *, starts=True, rows=ROWS, folded=False):
        self.slots, self.room, self.starts, self.rows = slots, room, starts, rows
        self.folded = folded
        geometries = {Region.A: A, Region.B: B} | ({Region.C: C} if starts else {})
        self.tile = Tile(geometries, StructLayout({"requantize": 1, "table": 1}))
        self.dut = Sequencer(
            geometries=(A, B), tile=self.tile, slots=slots, rows=rows, depth=DEPTH, credits=room,
            folded=folded,
        )
        self.cycles = []  # what is offered and what is seen

    def fields(self, one):
        return one if self.starts else {k: v for k, v in one.items() if k not in C_FIELDS}

    def run(self, passes, *, cycles, releases=None, idle=0.0, gaps=None, voids=None):
        """Up to ``cycles``, all that ``passes`` need and some more.

        ``releases``: cycles of a pulse; None for one 5 cycles behind each drain. By the numbers of
        passes, ``gaps`` has the cycles without any before them, ``voids`` those that they are on
        offer until they become void.
        """
        dut, rng = self.dut, random.Random(cycles)
        gaps, voids = dict(gaps or {}), voids or {}
        ports = {
            name: getattr(dut, name) for name in ("slot", "step", "results", "active", "stalled")
        }
        raw = Value.cast(dut.passes.payload)

        async def bench(ctx):
            number, offered, void, more = 0, 0, False, 2 * self.slots + 8
            for t in range(cycles):
                more -= number == len(passes)
                if not more:
                    break
                slot = ctx.get(dut.slot)
                here = None if number == len(passes) else passes[number]
                if here and not offered:
                    gaps[number] = gaps.get(number, 0) - 1
                    here = None if gaps[number] >= 0 or rng.random() < idle else here
                if here is None:
                    ctx.set(raw, rng.getrandbits(len(raw)))
                else:
                    void = void or (slot == 0 and offered >= voids.get(number, cycles))
                    aborted = {**here[0], "status": int(Status.ABORTED), "failed": 1}
                    here = [aborted] if void else here
                    self.offer(ctx, here, slot, rng)
                    offered += 1
                ctx.set(dut.passes.valid, here is not None)
                release = t - 5 in self.drains if releases is None else t in releases
                ctx.set(dut.release, release)
                values = await ctx.tick().sample(dut.passes.ready, *ports.values())
                taken = here is not None and values[2]
                seen = dict(zip(ports, map(plain, values[3:]), strict=True))
                self.cycles.append({"offer": here, "release": release, "taken": taken, **seen})
                if taken:
                    number, offered, void = number + 1, 0, False
            assert number == len(passes)

        simulate(dut, bench, limit=cycles + 2)
        late = self.cycles[dut.LATENCY :]
        del self.cycles[-dut.LATENCY :]
        for seen, later in zip(self.cycles, late, strict=True):
            seen |= {name: later[name] for name in ("step", "results", "active")}

    def offer(self, ctx, tiles, slot, rng):
        payload = {
            "lead": self.fields(tiles[0]), "present": int(slot < len(tiles)),
            "end": int(slot == len(tiles) - 1),
        }
        absent = tile(rng.randrange(99), a_page=rng.randrange(4), c=rng.randrange(64))
        payload["tile"] = self.fields(tiles[slot] if slot < len(tiles) else absent)
        put(ctx, self.dut.passes.payload, payload)

    def step(self, name):
        """What a field of the step is in each cycle."""
        return [seen["step"][name] for seen in self.cycles]

    @property
    def drains(self):
        return [t for t, drain in enumerate(self.step("drain")) if drain]

    @property
    def stalls(self):
        return [t for t, seen in enumerate(self.cycles) if seen["stalled"]]

    @property
    def steps(self):
        return [(t, seen["step"]) for t, seen in enumerate(self.cycles) if seen["step"]["en"]]

    def rounds(self, lead):
        """The rounds of a pass, each a row of C or a word."""
        if lead["preload"] and not lead["broadcast"]:
            yield from (("row", row) for row in range(self.rows))
        yield from (("word", word) for word in range(-(-lead["k"] // DEPTH)))

    def check(self):
        """Every cycle is as the rules say."""
        slot, kept, room, pace = 0, False, self.room, 0
        turn, stalled, rounds, begun = None, False, None, False
        undrained, flush = False, None  # folded: there are sums, and when they go
        apart = self.slots * self.rows + self.folded
        for t, seen in enumerate(self.cycles):
            tiles = seen["offer"]
            lead = tiles[0] if tiles else tile()
            void = slot == 0 and lead["status"] != 0
            if tiles and rounds is None:
                rounds, begun = list(self.rounds(lead)), False
            if slot == 0:
                # A round is decided on here: the last one, where it gives results, may wait.
                turn, stalled = None, False
                if tiles and not void:
                    gives = len(rounds) == 1 and not lead["hold"]
                    stalled = gives and not room
                    may = not gives or (room and t >= pace)
                    if self.folded and not begun and t < pace:
                        may = stalled = False
                    elif self.folded and not begun and undrained and not lead["accumulate"]:
                        may = stalled = undrained = False
                        flush, pace = t + 1, t + 1 + apart
                    if may:
                        turn, begun, undrained = rounds.pop(0), True, not gives
                        if gives:
                            room, pace = room - 1, t + apart
            ends = turn is not None and not rounds
            taken = void or (ends and slot == self.slots - 1)
            assert (seen["slot"], seen["stalled"], seen["taken"]) == (slot, stalled, taken), t
            self.check_step(t, tiles, turn, ends)
            assert seen["step"].get("flush", 0) == (t == flush), t
            self.check_results(t, tiles, turn, ends, void)
            room += seen["release"]
            if taken:
                rounds, kept = None, kept if void else lead["hold"] == 1
            # It counts on while there is a pass to run, or sums that stay where they are.
            slot = (slot + 1) % self.slots if slot or (tiles and not void) or kept else 0

    def check_step(self, t, tiles, turn, ends):
        seen, step = self.cycles[t], self.cycles[t]["step"]
        slot, last_slot = seen["slot"], seen["slot"] == self.slots - 1
        kind, n = turn or (None, None)
        present = turn is not None and slot < len(tiles)
        lead = tiles[0] if turn else tile()
        gives = ends and not lead["hold"]
        assert step["en"] == seen["active"] == (kind == "word" and present), t
        assert (step["capture"], step["drain"]) == (gives, gives and last_slot), t
        if present or not turn:
            fresh = not lead["accumulate"] and not lead["preload"]
            assert step["clear"] == (turn == ("word", 0) and fresh), t
        if step["en"]:
            pages = tiles[slot]["a_page"], tiles[slot]["b_page"]
            assert (step["a_addr"], step["b_addr"]) == tuple(page * 16 + n for page in pages), t
        if self.starts:
            every = turn == ("word", 0) and lead["preload"] & lead["broadcast"]
            rows = 1 << n if kind == "row" else every * ((1 << self.rows) - 1)
            assert step["preload"] == rows, t
            if present and step["preload"]:
                row = n if kind == "row" else 0
                assert step["c_addr"] == (tiles[slot]["c"] + row) % C.words, t

    def check_results(self, t, tiles, turn, ends, void):
        results, slot = self.cycles[t]["results"], self.cycles[t]["slot"]
        assert results["valid"] == (void or (ends and slot < len(tiles))), t
        if results["valid"]:
            assert (results["tile"], results["slot"]) == (self.fields(tiles[slot]), slot), t
        if results["valid"] and not void:
            assert results["end"] == (slot == len(tiles) - 1), t
            words = -(-tiles[0]["k"] // DEPTH) - 1
            for page in ("a_page", "b_page"):
                assert results[page] == tiles[slot][page] + words // 16, t


def random_passes(slots, seed, count):
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
