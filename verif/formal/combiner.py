"""Rules of the write combiner: its beats are those that a writer assumes."""

from amaranth.hdl import Cat, Module, Mux, Signal

from verif.formal.beats import burst_rules
from verif.formal.rules import Rules

__all__ = ["CombinerRules"]


class CombinerRules(Rules):
    """Beats of whole bursts. It assumes the units of a row one after the other, or a cancel.

    Parameters
    ----------
    sizes : list of int
        Bytes of a unit, of both kinds.
    block, size : int
        Binary logarithms of the beats of a block, and of the bytes of a beat.
    last_byte : int
        Width of ``last_byte`` of a unit.
    slack : int
        Beats that may come after ``room`` fell.
    """

    PINS = {
        "units_valid": 1, "units_unit_addr": 32, "units_unit_last_byte": 8,
        "units_unit_narrow": 1, "units_unit_word": 32, "units_unit_index": 2, "cancel": 1,
        "beats_valid": 1, "beats_beat_last": 1, "beats_beat_addr": 32, "beats_beat_index": 8,
        "beats_beat_no_data": 1, "beats_beat_strb": 4, "beats_beat_data": 32,
    }
    FREE = {"room": 1, "select": 1, "byte": 2}
    RULES = {
        "room": "after the room fell, no more beats come than a writer can take",
        "index": "a beat has the number of the beats of its burst before it",
        "block": "no burst goes beyond the end of its block",
        "block_end": "a burst ends with the last beat of its block",
        "no_data": "an entry without data comes only between bursts",
        "written": "each byte of the results leaves in the next beat, at its address",
        "strobes": "a beat has strobes for the bytes of the results, and for no others",
    }
    COVERS = {
        "several": "a burst of several beats ends", "cancelled": "a burst is cancelled",
        "empty": "a job is cancelled between bursts", "watched": "a byte of the results leaves",
    }

    def __init__(self, *, sizes, block, size, last_byte, slack):
        self.sizes = sizes
        self.block = block
        self.size = size
        self.slack = slack
        super().__init__(units_unit_last_byte=last_byte, beats_beat_index=block)

    def elaborate(self, platform):
        m = Module()
        valid, cancel = self.units_valid, self.cancel
        has_data = valid & ~self.units_unit_last_byte[-1]
        addr, last_byte = self.units_unit_addr, self.units_unit_last_byte
        unit_bytes = Mux(self.units_unit_narrow, self.sizes[-1], self.sizes[0])
        # While a row goes on: the next unit.
        in_row, narrow = Signal(), Signal()
        next_addr, remaining = Signal(32), Signal.like(last_byte)
        with m.If(has_data):
            m.d.sync += [
                in_row.eq(last_byte >= unit_bytes), narrow.eq(self.units_unit_narrow),
                next_addr.eq(addr + unit_bytes), remaining.eq(last_byte - unit_bytes),
            ]
        with m.If(cancel):
            m.d.sync += in_row.eq(0)
        self.assume(m, ~(valid & cancel))
        self.assume(m, ~(valid | cancel) | self.past(m, self.room, "had_room"))
        self.assume(m, ~(valid & in_row) | (
            (addr == next_addr) & (last_byte == remaining) & (self.units_unit_narrow == narrow)
        ))
        self.assume(m, ~has_data | Mux(
            self.units_unit_narrow, addr % self.sizes[-1] == 0, addr % self.sizes[0] == 0
        ))
        in_burst, _, holds = burst_rules(self, m, self.block, self.size, self.slack)
        for name, one in holds.items():
            self.check(m, name, one)
        end = self.beats_valid & self.beats_beat_last
        cancelled = self.past(m, self.past(m, cancel, "cancel_1"), "cancel_2")
        self.cover(m, "several", end & self.beats_beat_index.any())
        self.cover(m, "cancelled", end & cancelled & in_burst & ~self.beats_beat_no_data)
        self.cover(m, "empty", end & self.beats_beat_no_data)
        self._watch(m, has_data, unit_bytes)
        self._strobes(m, has_data, unit_bytes)
        return m

    def _strobes(self, m, has_data, unit_bytes):
        """Add the rule of strobes: the expected ones of the beat that leaves two cycles later."""
        beat_bytes = range(1 << self.size)
        unit, beat = Signal(len(beat_bytes)), Signal(len(beat_bytes))
        used = Cat(
            has_data & (n < unit_bytes) & (n <= self.units_unit_last_byte) for n in beat_bytes
        )
        m.d.sync += [
            unit.eq(used << self.units_unit_addr[: self.size]),
            beat.eq(Mux(self.beats_valid, 0, beat) | unit),
        ]
        self.check(m, "strobes", ~self.beats_valid | (self.beats_beat_strb == beat))

    def _watch(self, m, has_data, unit_bytes):
        """Add the rule of one byte of the results, which free inputs select."""
        address, value = Signal(32), Signal(8)
        selected, pending = Signal(), Signal()
        select = (
            has_data & self.select & ~selected & ~pending & (self.byte < unit_bytes)
            & (self.byte <= self.units_unit_last_byte)
        )
        m.d.sync += selected.eq(select)
        with m.If(select):
            offset = Mux(
                self.units_unit_narrow,
                *((self.units_unit_index % (4 // size)) * size for size in reversed(self.sizes)),
            )
            m.d.sync += [
                address.eq(self.units_unit_addr + self.byte),
                value.eq(self.units_unit_word.word_select((offset + self.byte)[:2], 8)),
            ]
        with m.If(selected):
            m.d.sync += pending.eq(1)
        leaves = pending & self.beats_valid
        with m.If(leaves):
            m.d.sync += pending.eq(0)
        beat_addr = self.beats_beat_addr + (self.beats_beat_index << self.size)
        lane = address[: self.size]
        self.check(m, "written", ~leaves | (
            (beat_addr >> self.size == address >> self.size)
            & self.beats_beat_strb.bit_select(lane, 1)
            & (self.beats_beat_data.word_select(lane, 8) == value)
        ))
        self.cover(m, "watched", leaves & value.any())
