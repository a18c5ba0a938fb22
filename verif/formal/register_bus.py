"""The rules that a slave may assume of the responder on its register bus."""

from amaranth.hdl import Module, Signal

from verif.formal.rules import Rules

__all__ = ["LIMIT", "RegisterBusRules"]

LIMIT = 2  # cycles between a request and its response, at most


class RegisterBusRules(Rules):
    """The responder keeps the contract of `weft.hw.bus.register_bank.RegisterBus`; it answers soon.

    A response comes in a later cycle than its request, and within `LIMIT` cycles. The next request
    is accepted with the response at the earliest. If no request is pending, it is accepted at once.
    """

    PINS = {"request_valid": 1, "request_ready": 1, "response_valid": 1}
    COVERS = {
        "answer": "an access is answered",
    }

    def elaborate(self, platform):
        m = Module()
        pending, waited = Signal(), Signal(range(LIMIT + 1))
        request_fire = self.request_valid & self.request_ready
        self.assume(m, ~self.response_valid | pending)
        self.assume(m, ~self.request_ready | ~pending | self.response_valid)
        self.assume(m, self.request_ready | pending)
        self.assume(m, ~(pending & (waited == LIMIT)) | self.response_valid)
        with m.If(pending):
            m.d.sync += waited.eq(waited + 1)
        with m.If(request_fire):
            m.d.sync += [pending.eq(1), waited.eq(0)]
        with m.Elif(self.response_valid):
            m.d.sync += pending.eq(0)
        self.cover(m, "answer", self.response_valid)
        return m
