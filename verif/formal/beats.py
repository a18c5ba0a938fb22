"""Rules of a writer of bursts: beats leave it in the order, and with the lengths, they came in."""

from amaranth.hdl import Cat, Const, Module, Mux, Signal

from verif.formal.axi import WriteRules
from verif.formal.row import Row, count

__all__ = ["BeatRules", "burst_rules"]


def burst_rules(rules, m, block, size, slack):
    """Rules of beats that form whole bursts.

    Parameters
    ----------
    rules : Rules
        With the pins of the beats.
    block, size : int
        Binary logarithms of the beats of a block, and of the bytes of a beat.
    slack : int
        Beats that may come after ``room`` fell.

    Returns
    -------
    Whether a burst is in progress; the index of its next beat; and by rule whether it holds.
    """
    valid, last, index = rules.beats_valid, rules.beats_beat_last, rules.beats_beat_index
    in_burst, next_index, no_room_beats = Signal(), Signal(block), Signal(range(slack + 2))
    m.d.sync += no_room_beats.eq(
        Mux(rules.room, 0, no_room_beats + (valid & (no_room_beats <= slack)))
    )
    with m.If(valid):
        m.d.sync += [in_burst.eq(~last), next_index.eq(index + 1)]
    address = rules.beats_beat_addr
    first = address[size : size + block]
    holds = {
        "room": rules.room | (no_room_beats < slack),
        "index": index == Mux(in_burst, next_index, 0),
        "block": ~address[:size].any() & (~last | (first + index < (1 << block))),
        "block_end": last | (first + index < (1 << block) - 1),
        "no_data": ~rules.beats_beat_no_data | (last & ~in_burst),
    }
    return in_burst, next_index, {name: ~valid | one for name, one in holds.items()}


class BeatRules(WriteRules):
    """Rules of a writer. It assumes whole bursts within blocks, and no beats without room.

    Parameters
    ----------
    data_bytes, max_bursts, limit : int
        As of `WriteRules`.
    block : int
        Bursts have at most ``1 << block`` beats.
    slack : int
        Beats that may come after ``room`` fell.
    given : tuple of str
        Rules that this proof assumes, because another one has proven them.
    """

    PINS = WriteRules.PINS | {
        "beats_valid": 1, "beats_beat_last": 1, "beats_beat_addr": 32, "beats_beat_index": 8,
        "beats_beat_no_data": 1, "room": 1, "drop": 1,
    }
    RULES = WriteRules.RULES | {
        "b_order": "responses, and entries without data, belong to the bursts put, in their order",
        "w_order": "beats leave on W in the order in which they were put, with the same last",
        "aw_order": "bursts leave on AW in the order in which they were put, with their lengths",
        "aw_addr": "addresses leave on AW in the order in which they were put",
    }

    def __init__(self, *, data_bytes, block, max_bursts, slack, limit, given=()):
        self.block = block
        self.slack = slack
        self.given = given
        super().__init__(
            data_bytes=data_bytes, beats=1 << block, max_bursts=max_bursts, limit=limit,
            beats_beat_index=block,
        )

    def check(self, m, rule, holds):
        if rule in self.given:
            self.assume(m, holds)
        else:
            super().check(m, rule, holds)

    def elaborate(self, platform):
        m = Module()
        addressed, complete, w_beats = self._write_rules(m)
        in_burst, next_index, holds = burst_rules(self, m, self.block, self.size, self.slack)
        for one in holds.values():
            self.assume(m, one)
        put_index = Mux(in_burst, next_index, 0)
        self._order_rules(m, addressed, complete, w_beats, put_index)
        return m

    def _order_rules(self, m, addressed, complete, w_beats, put_index):
        """Add the rules of order.

        Each row holds the entries that wait for one event: a response; a response or a drop;
        leaving on W; leaving on AW.
        """
        put = self.beats_valid & ~self.beats_beat_no_data
        last, index = self.beats_beat_last, self.beats_beat_index
        b_fire, most = self.bvalid & self.bready, self.max_bursts
        bursts = Row(m, "bursts", most, put=put & last, value=index, take=b_fire)
        ends = Row(m, "ends", most + 1, put=self.beats_valid & last,
                   value=self.beats_beat_no_data, take=b_fire | self.drop)
        words = Row(m, "words", ((most + 1) << self.block) + 1, put=put, value=Cat(last, index),
                    take=self.wvalid & self.wready)
        aw_fire = self.awvalid & self.awready
        lengths = Row(m, "lengths", most + 1, put=put & last, value=index, take=aw_fire)
        with_data = count(Cat(
            valid & ~no_data for valid, no_data in zip(ends.valid, ends.values, strict=True)
        ))
        self.check(m, "b_order", ~ends.full & (with_data == bursts.level) & (
            ~(self.bready | self.drop) | (ends.valid[0] & (ends.values[0] == self.drop))
        ))
        self._word_rule(m, words, bursts, complete, w_beats, put_index)
        self.check(m, "aw_order", (lengths.level + addressed.level == bursts.level)
                  & (~self.awvalid | (lengths.valid[0] & (self.awlen == lengths.values[0])))
                  & self._same(addressed, bursts, 0)
                  & self._same(lengths, bursts, addressed.level))

        addresses = Row(m, "addresses", most + 1, put=put & last, value=self.beats_beat_addr,
                        take=aw_fire)
        self.check(m, "aw_addr", ~self.awvalid | (self.awaddr == addresses.values[0]))

    def _same(self, row, other, number):
        """Whether a row holds the entries of another one without its first ``number``."""
        entries, same = other.skip(number), Const(1)
        for n, value in enumerate(row.values):
            same &= ~row.valid[n] | (value == entries.word_select(n, self.block))
        return same

    def _word_rule(self, m, words, bursts, complete, w_beats, put_index):
        """Add the rule of the order on W."""
        lengths, holds, lasts = bursts.skip(complete.level), Const(1), 0
        next_index = w_beats
        for n, value in enumerate(words.values):
            valid, last, index = words.valid[n], value[0], value[1:]
            holds &= ~valid | (
                (index == next_index)
                & (~last | (index == lengths.word_select(lasts, self.block)))
            )
            next_index = Mux(valid, Mux(last, 0, index + 1), next_index)
            lasts = lasts + (valid & last)
        self.check(m, "w_order", holds & ~words.full & (next_index == put_index)
                  & (lasts + complete.level == bursts.level) & self._same(complete, bursts, 0)
                  & (~self.wvalid | (words.valid[0] & (self.wlast == words.values[0][0]))))
