"""The rules of AXI4-Stream, for a source and for what a sink's surroundings keep."""

from amaranth.hdl import Module, Signal

from weft.sim.formal.rules import Rules

__all__ = ["SinkRules", "SourceRules"]


class SourceRules(Rules):
    """What leaves by AXI4-Stream.

    Source: ARM IHI 0051, AMBA AXI-Stream Protocol Specification: 2.2.1, 2.7, 2.8.
    """

    PINS = {
        "tvalid": 1, "tready": 1, "tdata": 128, "tlast": 1, "tid": 16, "tuser": 8,
    }
    RULES = {
        "valid_stays": "TVALID, once high, stays so until TREADY",
        "data_stay": "TDATA stay the same meanwhile",
        "last_stays": "TLAST stays the same meanwhile",
        "id_stays": "TID stays the same meanwhile",
        "user_stays": "TUSER stays the same meanwhile",
        "after_reset": "TVALID is low in the cycle after one of reset",
        "one_id": "TID is the same for all words of a packet",
    }
    COVERS = {
        "word": "a word is taken", "last": "the last word of a packet is taken",
        "waits": "a word waits", "packet": "a packet of several words is taken",
        "back_to_back": "two words are taken in two cycles",
    }

    def elaborate(self, platform):
        m = Module()
        waits, took = self.tvalid & ~self.tready, self.tvalid & self.tready
        waited = self.past(m, waits, "waited")
        self.must(m, "valid_stays", ~waited | self.tvalid)
        for rule, value in {
            "data_stay": self.tdata, "last_stays": self.tlast, "id_stays": self.tid,
            "user_stays": self.tuser,
        }.items():
            same = self.past(m, value) == value
            self.must(m, rule, ~(waited & self.tvalid) | same)
        self.must(m, "after_reset", ~(self.fresh(m) & self.tvalid))
        open_, tid = Signal(), Signal.like(self.tid)
        with m.If(took):
            m.d.sync += [open_.eq(~self.tlast), tid.eq(self.tid)]
        self.must(m, "one_id", ~(self.tvalid & open_) | (tid == self.tid))
        for cover, seen in {
            "word": took, "last": took & self.tlast, "waits": waits,
            "packet": took & self.tlast & open_, "back_to_back": took & self.past(m, took),
        }.items():
            self.happens(m, cover, seen)
        return m


class SinkRules(Rules):
    """What comes in by AXI4-Stream: its source keeps the rules, and a word may get in.

    A sink may hold TREADY low as long as it likes; rules there are for whoever drives TVALID.
    """

    PINS = {"tvalid": 1, "tready": 1, "tdata": 128}
    COVERS = {
        "word": "a word is taken", "waits": "a word waits",
        "back_to_back": "two words are taken in two cycles",
    }

    def elaborate(self, platform):
        m = Module()
        self.promised(m, self.stays(m, self.tvalid, self.tready, self.tdata))
        took = self.tvalid & self.tready
        for cover, seen in {
            "word": took, "waits": self.tvalid & ~self.tready,
            "back_to_back": took & self.past(m, took),
        }.items():
            self.happens(m, cover, seen)
        return m
