"""What a writer of bursts is given, and how that leaves it: in order, as it came."""

from amaranth.hdl import Cat, Const, Mux, Signal

from weft.sim.formal.axi import WriteRules
from weft.sim.formal.row import Row, count

__all__ = ["BeatRules"]


def follows(rules, m, block, size, slack):
    """Whether beats are of whole bursts: a burst is under way, its next beat, what is kept."""
    valid, last, index = rules.beats_valid, rules.beats_beat_last, rules.beats_beat_count
    inside, due, since = Signal(), Signal(block), Signal(range(slack + 2))
    m.d.sync += since.eq(Mux(rules.room, 0, since + (valid & (since <= slack))))
    with m.If(valid):
        m.d.sync += [inside.eq(~last), due.eq(index + 1)]
    address = rules.beats_beat_addr
    first = address[size : size + block]
    kept = {
        "room": rules.room | (since < slack),
        "count": index == Mux(inside, due, 0),
        "block": ~address[:size].any() & (~last | (first + index < (1 << block))),
        "goes_on": last | (first + index < (1 << block) - 1),
        "void": ~rules.beats_beat_void | (last & ~inside),
    }
    return inside, due, {name: ~valid | one for name, one in kept.items()}


class BeatRules(WriteRules):
    """Of a writer that is given whole bursts, none of them too long, no more than there is room.

    Parameters
    ----------
    block : int
        Bursts have 1 << block beats at most.
    slack : int
        Beats that may come without room.
    given : tuple of str
        Rules that are promised here, for they are proven without the others.
    """

    PINS = WriteRules.PINS | {
        "beats_valid": 1, "beats_beat_last": 1, "beats_beat_addr": 32, "beats_beat_count": 8,
        "beats_beat_void": 1, "room": 1, "drops": 1,
    }
    RULES = WriteRules.RULES | {
        "b_order": "answers, and what is void, are of bursts that were put, and no more, in order",
        "w_order": "beats leave on W as they were put, in order: which is its burst's last",
        "aw_order": "bursts leave on AW as they were put, in order: their lengths",
        "aw_addr": "addresses leave on AW as they were put, in order",
    }

    def __init__(self, *, data_bytes, block, deep, slack, limit, given=()):
        self.block = block
        self.slack = slack
        self.given = given
        super().__init__(
            data_bytes=data_bytes, beats=1 << block, deep=deep, limit=limit,
            beats_beat_count=block,
        )

    def check(self, m, rule, kept):
        if rule in self.given:
            self.assume(m, kept)
        else:
            super().check(m, rule, kept)

    def elaborate(self, platform):
        m = super().elaborate(platform)
        self._given(m)
        self._orders(m)
        return m

    def _given(self, m):
        self.inside, self.due, kept = follows(self, m, self.block, self.size, self.slack)
        for one in kept.values():
            self.assume(m, one)

    def _orders(self, m):
        """What was put and waits: for an answer, for that or as void, on W, on AW."""
        put = self.beats_valid & ~self.beats_beat_void
        last, index = self.beats_beat_last, self.beats_beat_count
        done, most = self.bvalid & self.bready, self.deep
        opens = Row(m, "opens", most, put=put & last, value=index, takes=done)
        ends = Row(m, "ends", most + 1, put=self.beats_valid & last,
                   value=self.beats_beat_void, takes=done | self.drops)
        words = Row(m, "words", ((most + 1) << self.block) + 1, put=put, value=Cat(last, index),
                    takes=self.wvalid & self.wready)
        starts = Row(m, "starts", most + 1, put=put & last, value=index,
                     takes=self.awvalid & self.awready)
        reals = count(Cat(
            there & ~void for there, void in zip(ends.there, ends.values, strict=True)
        ))
        self.check(m, "b_order", ~ends.full & (reals == opens.many) & (
            ~(self.bready | self.drops) | (ends.there[0] & (ends.values[0] == self.drops))
        ))
        self._words(m, words, opens)
        self.check(m, "aw_order", (starts.many + self.asked.many == opens.many)
                  & (~self.awvalid | (starts.there[0] & (self.awlen == starts.values[0])))
                  & self._same(self.asked, opens, 0) & self._same(starts, opens, self.asked.many))

        places = Row(m, "places", most + 1, put=put & last, value=self.beats_beat_addr,
                     takes=self.awvalid & self.awready)
        self.check(m, "aw_addr", ~self.awvalid | (self.awaddr == places.values[0]))

    def _same(self, row, of, skipped):
        """Whether a row holds what another one does behind so many."""
        behind, right = of.from_(skipped), Const(1)
        for n, value in enumerate(row.values):
            right &= ~row.there[n] | (value == behind.word_select(n, self.block))
        return right

    def _words(self, m, words, opens):
        behind, right, lasts = opens.from_(self.whole.many), Const(1), 0
        due = self.beats_given
        for n, value in enumerate(words.values):
            there, last, index = words.there[n], value[0], value[1:]
            right &= ~there | (
                (index == due) & (~last | (index == behind.word_select(lasts, self.block)))
            )
            due = Mux(there, Mux(last, 0, index + 1), due)
            lasts = lasts + (there & last)
        self.check(m, "w_order", right & ~words.full & (due == Mux(self.inside, self.due, 0))
                  & (lasts + self.whole.many == opens.many) & self._same(self.whole, opens, 0)
                  & (~self.wvalid | (words.there[0] & (self.wlast == words.values[0][0]))))
