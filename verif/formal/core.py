"""The rules at the ports of a core, for a wrapper whose core is left out."""

from amaranth.hdl import Module, Signal

from verif.formal.rules import Rules

__all__ = ["CoreRules"]


class CoreRules(Rules):
    """The wrapper keeps a command word stable; the core keeps its result stream legal.

    Neither holds in the cycle after a cycle of the core's reset.
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
        past_reset, any_reset = self.past(m, self.reset), Signal()
        commands_stable = self.stable(
            m, self.commands_valid, self.commands_ready, self.commands_payload,
        )
        self.check(m, "commands_stay", past_reset | commands_stable)
        tag = self.results_payload_tag
        self.assume(m, past_reset | self.stable(
            m, self.results_valid, self.results_ready, self.results_payload_data,
            self.results_payload_last, self.results_payload_status, tag,
        ))
        result_fire = self.results_valid & self.results_ready
        open_job, job_tag = Signal(), Signal.like(tag)
        with m.If(result_fire):
            m.d.sync += [open_job.eq(~self.results_payload_last), job_tag.eq(tag)]
        with m.If(self.reset):
            m.d.sync += open_job.eq(0)
        self.assume(m, ~(self.results_valid & open_job) | (tag == job_tag))
        m.d.sync += any_reset.eq(any_reset | self.reset)
        self.cover(m, "command", self.commands_valid & self.commands_ready)
        self.cover(m, "result", result_fire)
        self.cover(m, "after_reset", result_fire & any_reset)
        return m
