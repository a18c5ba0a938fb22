"""The rules of AXI4-Stream, for a source and for a sink."""

from amaranth.hdl import Module, Signal

from verif.formal.rules import Rules

__all__ = ["SinkRules", "SourceRules"]


class SourceRules(Rules):
    """The design is a legal AXI4-Stream source.

    Source: ARM IHI 0051, AMBA AXI-Stream Protocol Specification: 2.2.1, 2.7, 2.8.
    """

    PINS = {
        "tvalid": 1, "tready": 1, "tdata": 128, "tlast": 1, "tid": 16, "tuser": 8,
    }
    RULES = {
        "valid_stays": "TVALID, once high, stays high until TREADY",
        "data_stay": "TDATA stays the same until TREADY",
        "last_stays": "TLAST stays the same until TREADY",
        "id_stays": "TID stays the same until TREADY",
        "user_stays": "TUSER stays the same until TREADY",
        "after_reset": "TVALID is low in the cycle after a reset",
        "one_id": "TID is the same for all words of a packet",
    }
    COVERS = {
        "word": "a word is taken", "last": "the last word of a packet is taken",
        "stall": "a word waits", "packet": "a packet of several words is taken",
        "back_to_back": "two words are taken in two cycles",
    }

    def elaborate(self, platform):
        m = Module()
        stall, fire = self.tvalid & ~self.tready, self.tvalid & self.tready
        stalled = self.past(m, stall, "stalled")
        self.check(m, "valid_stays", ~stalled | self.tvalid)
        for rule, value in {
            "data_stay": self.tdata, "last_stays": self.tlast, "id_stays": self.tid,
            "user_stays": self.tuser,
        }.items():
            same = self.past(m, value) == value
            self.check(m, rule, ~(stalled & self.tvalid) | same)
        self.check(m, "after_reset", ~(self.after_reset(m) & self.tvalid))
        open_packet, tid = Signal(), Signal.like(self.tid)
        with m.If(fire):
            m.d.sync += [open_packet.eq(~self.tlast), tid.eq(self.tid)]
        self.check(m, "one_id", ~(self.tvalid & open_packet) | (tid == self.tid))
        self.covers(m, {
            "word": fire, "last": fire & self.tlast, "stall": stall,
            "packet": fire & self.tlast & open_packet, "back_to_back": fire & self.past(m, fire),
        })
        return m


class SinkRules(Rules):
    """The source in front of the design is legal, and a word can enter the design.

    A sink may hold TREADY low for any time. So it has no rule of its own, only the COVERS: what can
    happen.
    """

    PINS = {"tvalid": 1, "tready": 1, "tdata": 128}
    COVERS = {
        "word": "a word is taken", "stall": "a word waits",
        "back_to_back": "two words are taken in two cycles",
    }

    def elaborate(self, platform):
        m = Module()
        self.assume(m, self.stable(m, self.tvalid, self.tready, self.tdata))
        fire = self.tvalid & self.tready
        self.covers(m, {
            "word": fire, "stall": self.tvalid & ~self.tready,
            "back_to_back": fire & self.past(m, fire),
        })
        return m
