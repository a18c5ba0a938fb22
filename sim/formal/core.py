"""The core that a wrapper has none of: what it keeps, and what it is owed, at the same pins."""

from amaranth.hdl import Module, Signal

from weft.sim.formal.rules import Rules

__all__ = ["CoreRules"]


class CoreRules(Rules):
    """What a core promises of its results, and what it is promised of its commands.

    Neither is anything in the cycle after one of its reset.
    """

    PINS = {
        "commands_valid": 1, "commands_ready": 1, "commands_payload": 128,
        "results_valid": 1, "results_ready": 1, "results_payload_data": 128,
        "results_payload_last": 1, "results_payload_status": 8, "results_payload_tag": 16,
        "reset": 1,
    }
    RULES = {
        "commands_stay": "a command word, once offered, stays the same until the core takes it",
    }
    COVERS = {
        "command": "a command word is taken", "result": "a result word is taken",
        "after_reset": "a result word is taken after a reset of the core",
    }

    def elaborate(self, platform):
        m = Module()
        was_reset, anew = self.past(m, self.reset), Signal()
        commands = self.stays(
            m, self.commands_valid, self.commands_ready, self.commands_payload,
        )
        self.must(m, "commands_stay", was_reset | commands)
        tag = self.results_payload_tag
        self.promised(m, was_reset | self.stays(
            m, self.results_valid, self.results_ready, self.results_payload_data,
            self.results_payload_last, self.results_payload_status, tag,
        ))
        took = self.results_valid & self.results_ready
        begun, first = Signal(), Signal.like(tag)
        with m.If(took):
            m.d.sync += [begun.eq(~self.results_payload_last), first.eq(tag)]
        with m.If(self.reset):
            m.d.sync += begun.eq(0)
        self.promised(m, ~(self.results_valid & begun) | (tag == first))
        m.d.sync += anew.eq(anew | self.reset)
        self.happens(m, "command", self.commands_valid & self.commands_ready)
        self.happens(m, "result", took)
        self.happens(m, "after_reset", took & anew)
        return m
