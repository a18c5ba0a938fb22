"""What a gather of results is given, and that its beats are those that a writer is promised."""

from amaranth.hdl import Cat, Module, Mux, Signal

from weft.sim.formal.beats import follows
from weft.sim.formal.rules import Rules

__all__ = ["GatherRules"]


class GatherRules(Rules):
    """Beats of whole bursts, where what is due of a row comes unit by unit, or is cut off.

    Parameters
    ----------
    sizes : list of int
        Bytes of a unit, of both kinds.
    block, size : int
        Binary logarithms, of beats to a block, and of a beat's bytes.
    most : int
        Bits of the number of bytes that are due.
    slack : int
        Beats that may come after there was no more room.
    """

    PINS = {
        "units_valid": 1, "units_unit_addr": 32, "units_unit_most": 8, "units_unit_narrow": 1,
        "units_unit_word": 32, "units_unit_part": 2, "cut": 1, "beats_valid": 1,
        "beats_beat_last": 1, "beats_beat_addr": 32, "beats_beat_count": 8, "beats_beat_void": 1,
        "beats_beat_strb": 4, "beats_beat_data": 32,
    }
    FREE = {"room": 1, "pick": 1, "byte": 2}
    RULES = {
        "room": "no more beats come after there was no more room than a writer takes",
        "count": "a beat says how many of its burst came before it",
        "block": "no burst ends behind its block",
        "goes_on": "none that goes on has come to its block's end",
        "void": "what is void is within no burst",
        "written": "each byte that is due leaves in the next beat, at its address",
        "strobes": "a beat has strobes for the bytes that are due, and for no others",
    }
    COVERS = {
        "several": "a burst of several beats ends", "cut_off": "a burst is cut off",
        "voids": "a job is cut off between bursts", "watched": "a byte that was due leaves",
    }

    def __init__(self, *, sizes, block, size, most, slack):
        self.sizes = sizes
        self.block = block
        self.size = size
        self.slack = slack
        super().__init__(units_unit_most=most, beats_beat_count=block)

    def elaborate(self, platform):
        m = Module()
        valid, cut = self.units_valid, self.cut
        due = valid & ~self.units_unit_most[-1]
        addr, most = self.units_unit_addr, self.units_unit_most
        step = Mux(self.units_unit_narrow, self.sizes[-1], self.sizes[0])
        # Of a row that goes on: what comes next.
        open_, kind = Signal(), Signal()
        place, left = Signal(32), Signal.like(most)
        with m.If(due):
            m.d.sync += [
                open_.eq(most >= step), kind.eq(self.units_unit_narrow),
                place.eq(addr + step), left.eq(most - step),
            ]
        with m.If(cut):
            m.d.sync += open_.eq(0)
        self.assume(m, ~(valid & cut))
        self.assume(m, ~(valid | cut) | self.past(m, self.room, "had_room"))
        self.assume(m, ~(valid & open_) | (
            (addr == place) & (most == left) & (self.units_unit_narrow == kind)
        ))
        self.assume(m, ~due | Mux(
            self.units_unit_narrow, addr % self.sizes[-1] == 0, addr % self.sizes[0] == 0
        ))
        inside, _, kept = follows(self, m, self.block, self.size, self.slack)
        for name, one in kept.items():
            self.check(m, name, one)
        ends = self.beats_valid & self.beats_beat_last
        was_cut = self.past(m, self.past(m, cut, "was_cut"), "cut_before")
        self.cover(m, "several", ends & self.beats_beat_count.any())
        self.cover(m, "cut_off", ends & was_cut & inside & ~self.beats_beat_void)
        self.cover(m, "voids", ends & self.beats_beat_void)
        self._watch(m, due, step)
        self._strobes(m, due, step)
        return m

    def _strobes(self, m, due, step):
        """Bytes that are due, of the beat that leaves two cycles on."""
        bytes_ = range(1 << self.size)
        unit, beat = Signal(len(bytes_)), Signal(len(bytes_))
        those = Cat(due & (n < step) & (n <= self.units_unit_most) for n in bytes_)
        m.d.sync += [
            unit.eq(those << self.units_unit_addr[: self.size]),
            beat.eq(Mux(self.beats_valid, 0, beat) | unit),
        ]
        self.check(m, "strobes", ~self.beats_valid | (self.beats_beat_strb == beat))

    def _watch(self, m, due, step):
        """A byte, as is picked, that is due."""
        address, value = Signal(32), Signal(8)
        soon, waits = Signal(), Signal()
        most = self.units_unit_most
        picks = due & self.pick & ~soon & ~waits & (self.byte < step) & (self.byte <= most)
        m.d.sync += soon.eq(picks)
        with m.If(picks):
            at = Mux(
                self.units_unit_narrow,
                *((self.units_unit_part % (4 // size)) * size for size in reversed(self.sizes)),
            )
            m.d.sync += [
                address.eq(self.units_unit_addr + self.byte),
                value.eq(self.units_unit_word.word_select((at + self.byte)[:2], 8)),
            ]
        with m.If(soon):
            m.d.sync += waits.eq(1)
        leaves = waits & self.beats_valid
        with m.If(leaves):
            m.d.sync += waits.eq(0)
        here = self.beats_beat_addr + (self.beats_beat_count << self.size)
        lane = address[: self.size]
        self.check(m, "written", ~leaves | (
            (here >> self.size == address >> self.size)
            & self.beats_beat_strb.bit_select(lane, 1)
            & (self.beats_beat_data.word_select(lane, 8) == value)
        ))
        self.cover(m, "watched", leaves & value.any())
