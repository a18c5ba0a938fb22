"""What is proven: each kind of IP core with its core cut out, and the parts of it alone."""

from collections.abc import Callable
from dataclasses import dataclass
from functools import partial

from weft.config import Config
from weft.hw.bus.axi_lite import AxiLite
from weft.hw.bus.csr_bank import CsrBank
from weft.hw.bus.top import BareWrapper
from weft.hw.bus.wishbone import Wishbone
from weft.ip import BUSES, Ip
from weft.sim.formal import master
from weft.sim.formal.axi_lite import AxiLiteBounds, AxiLiteRules
from weft.sim.formal.axi_stream import SinkRules, SourceRules
from weft.sim.formal.bench import FormalBench
from weft.sim.formal.core import CoreRules
from weft.sim.formal.port import PortRules
from weft.sim.formal.registers import RegisterRules
from weft.sim.formal.wishbone import ClassicRules, PipelinedRules

__all__ = ["PROOFS", "Proof"]

BYTES = 4  # a word of either stream
CONFIG = Config(rows=2, cols=4, bytes_in=BYTES, bytes_out=BYTES)
# What is read of a long memory may be anything, ever anew.
MEMORIES = "memory_collect\ndelete t:$mem* r:SIZE>=256 %i\n"
# So may what the DMA does, which is proven alone.
DMA = "delete c:*dma.*\n"
# So may what any register of the core's clock holds, and what memories of both clocks do.
FAR = "w:core_clk %co1:+[CLK]"
NEAR = "w:aclk w:wb_clk_i %u %co1:+[CLK]"
CLOCKS = f"""\
opt_clean
memory_collect
delete t:$mem* r:SIZE>=16 %i
delete {FAR} t:$dff %i
select -assert-none t:$*ff* {NEAR} %d
"""
# Rules that are proven of a part; and with two clocks of one, for what comes may be anything.
LEFT = "wb_bounded", "wb_stall_bounded"
FAR_LEFT = *LEFT, "m_axis_one_id"
# Of writes: what is proven when the rules of the steps before are, which then are promised.
STEPS = {
    "AXI4 writes alone, in order": ("w_order", "aw_order"),
    "AXI4 writes alone, burst by burst": ("w_last", "w_few", "aw_addr"),
}


@dataclass(frozen=True)
class Proof:
    """Rules that a design keeps.

    Attributes
    ----------
    name : str
    bench : callable
        Makes it.
    cuts : str
        As of `weft.sim.formal.engine.decide`.
    left : tuple of str
        Rules that are proven of others.
    some : tuple of str
        Where there are: only these.
    """

    name: str
    bench: Callable[[], FormalBench]
    cuts: str = ""
    left: tuple[str, ...] = ()
    some: tuple[str, ...] = ()

    def only(self, bench):
        """The names of what is to be proven."""
        return {*self.some} or {name for _, name in bench.names} - {*self.left}


def wishbone(pipelined):
    """The rules of cycles; their bounds are those of a port that answers soon."""
    return (PipelinedRules if pipelined else ClassicRules)(patience=8)


def whole(ip):
    """The bench of an IP core without its core."""
    rules = {}
    if ip.clocks == 1 and ip.bus != "dma":  # else what the core sees is cut off, or of its clock
        rules["core_"] = CoreRules(commands_payload=8 * BYTES, results_payload_data=8 * BYTES)
    if ip.bus == "wishbone":
        rules["wb_"] = wishbone(ip.pipelined)
    else:
        rules["s_axil_"] = AxiLiteRules()
    if ip.bus == "stream":
        rules |= {"s_axis_": SinkRules(tdata=8 * BYTES), "m_axis_": SourceRules(tdata=8 * BYTES)}
    return FormalBench(BareWrapper(ip), rules)


def tops():
    """Every kind of IP core."""
    for clocks in (1, 2):
        for bus in BUSES:
            for pipelined in (False, True)[:2 if bus == "wishbone" else 1]:
                ip = Ip(config=CONFIG, bus=bus, clocks=clocks, pipelined=pipelined)
                words = [bus, *["pipelined"] * pipelined, *["two clocks"] * (clocks - 1)]
                yield Proof(
                    ", ".join(words), lambda ip=ip: whole(ip),
                    DMA * (bus == "dma") + (MEMORIES, CLOCKS)[clocks - 1],
                    (LEFT, FAR_LEFT)[clocks - 1],
                )


def parts():
    """Parts alone, for what is too much to prove of the whole."""
    yield Proof("AXI4-Lite alone", lambda: FormalBench(
        AxiLite(), {"": AxiLiteBounds(patience=12), "bus_": PortRules()}
    ))
    for pipelined in (False, True):
        yield Proof(
            f"Wishbone alone{', pipelined' if pipelined else ''}",
            lambda pipelined=pipelined: FormalBench(
                Wishbone(pipelined=pipelined), {"": wishbone(pipelined), "bus_": PortRules()}
            ),
        )
    for bus in BUSES:
        ip = Ip(config=CONFIG, bus=bus)
        yield Proof(
            f"registers, {bus}", lambda ip=ip: FormalBench(CsrBank(ip), {"": RegisterRules(ip)})
        )
    yield Proof("AXI4 reads alone", master.reads)
    yield Proof("AXI4 reads alone, in order", master.splits)
    yield Proof("operands walked", partial(master.walks, CONFIG))
    yield Proof("results gathered", master.gathers)
    yield Proof("AXI4 writes alone", master.writes, left=sum(STEPS.values(), ()))
    known = ("b_order",)
    for name, rules in STEPS.items():
        yield Proof(name, partial(master.writes, *known), some=rules)
        known += rules


PROOFS = {proof.name: proof for proof in (*parts(), *tops())}
