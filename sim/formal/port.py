"""The register port below a bus: whoever is asked there answers, once each, in bounded time."""

from amaranth.hdl import Module, Signal

from weft.sim.formal.rules import Rules

__all__ = ["PATIENCE", "PortRules"]

PATIENCE = 2  # cycles between an access and its answer, at most


class PortRules(Rules):
    """What `weft.hw.bus.register_bus.RegisterBus` promises who asks; answers come early.

    An answer comes in a later cycle than its access, and another access is taken no sooner than
    with the answer. Where nothing is under way, an access is taken at once.
    """

    PINS = {"request_valid": 1, "request_ready": 1, "response_valid": 1}
    COVERS = {
        "answer": "an access is answered",
    }

    def elaborate(self, platform):
        m = Module()
        busy, late = Signal(), Signal(range(PATIENCE + 1))
        took = self.request_valid & self.request_ready
        self.promised(m, ~self.response_valid | busy)
        self.promised(m, ~self.request_ready | ~busy | self.response_valid)
        self.promised(m, self.request_ready | busy)
        self.promised(m, ~(busy & (late == PATIENCE)) | self.response_valid)
        with m.If(busy):
            m.d.sync += late.eq(late + 1)
        with m.If(took):
            m.d.sync += [busy.eq(1), late.eq(0)]
        with m.Elif(self.response_valid):
            m.d.sync += busy.eq(0)
        self.happens(m, "answer", self.response_valid)
        return m
