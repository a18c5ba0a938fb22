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

    PINS = {"access_valid": 1, "access_ready": 1, "answer_valid": 1}
    COVERS = {
        "answer": "an access is answered",
    }

    def elaborate(self, platform):
        m = Module()
        busy, late = Signal(), Signal(range(PATIENCE + 1))
        took = self.access_valid & self.access_ready
        self.promised(m, ~self.answer_valid | busy)
        self.promised(m, ~self.access_ready | ~busy | self.answer_valid)
        self.promised(m, self.access_ready | busy)
        self.promised(m, ~(busy & (late == PATIENCE)) | self.answer_valid)
        with m.If(busy):
            m.d.sync += late.eq(late + 1)
        with m.If(took):
            m.d.sync += [busy.eq(1), late.eq(0)]
        with m.Elif(self.answer_valid):
            m.d.sync += busy.eq(0)
        self.happens(m, "answer", self.answer_valid)
        return m
