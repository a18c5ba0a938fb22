"""The proofs: each kind of IP core without its core, and parts alone."""

from collections.abc import Callable
from dataclasses import dataclass
from functools import partial

from verif.formal import master, program
from verif.formal.apb import ApbRules
from verif.formal.axi_lite import AxiLiteBounds, AxiLiteRules
from verif.formal.axi_stream import SinkRules, SourceRules
from verif.formal.bench import FormalBench
from verif.formal.core import CoreRules
from verif.formal.lists import (
    EarlyListRules,
    EarlyStartRules,
    list_bench,
    loader_bench,
)
from verif.formal.network_registers import NetworkRegisterRules
from verif.formal.panels import gate_bench
from verif.formal.register_bus import RegisterBusRules
from verif.formal.registers import RegisterRules
from verif.formal.sdram import sdram_bench
from verif.formal.wishbone import ClassicRules, PipelinedRules
from weft.buses import BUSES
from weft.config import Config
from weft.design import PerKind
from weft.hw.bus.apb import Apb
from weft.hw.bus.axi_lite import AxiLite
from weft.hw.bus.csr_bank import CsrBank
from weft.hw.bus.network_wrapper import NetworkBank
from weft.hw.bus.slaves import SLAVES
from weft.hw.bus.top import BareWrapper
from weft.hw.bus.wishbone import Wishbone
from weft.ip import Ip
from weft.network_core.config import NetworkCoreConfig
from weft.network_core.ip import NetworkIp

__all__ = ["PROOFS", "Proof"]

BYTES = 4  # bytes of a word of both streams
CONFIG = Config(rows=2, cols=4, bytes_in=BYTES, bytes_out=BYTES)
CHIP = NetworkCoreConfig(
    array=Config(rows=1, cols=2, depth=2, lanes=1, requantize="tflite", activation="none"),
    words=16, read_vectors=1,
)
# Cut the contents of long memories: each read may return any word.
MEMORIES = "memory_collect\ndelete t:$mem* r:SIZE>=256 %i\n"
# Cut the DMA engine, which is proven alone: its outputs may have any value.
DMA = "delete c:*dma.*\n"
# Cut the beats that wait for their data: each may belong to any client.
ENTRIES = "delete c:*entries.*\n"
# Cut the rows that were open, and the words that wait: each read may return any word.
ROWS = "memory_collect\ndelete t:$mem*\n"
# Cut all registers of the core's clock, and the memories between the clocks.
CORE_CELLS = "w:core_clk %co1:+[CLK]"
CLOCKS = f"""\
opt_clean
memory_collect
delete t:$mem* r:SIZE>=16 %i
delete {CORE_CELLS} t:$dff %i
select -assert-none t:$*ff* w:{{clock}} %co1:+[CLK] %d
"""
# Rules that the proof of a whole core leaves out. The first ones are proven of its parts. With two
# clocks one more is left out: it needs the result stream of the core, which is cut.
PROVEN_BY_PARTS = "bounded", "wb_bounded", "wb_stall_bounded"
CUT_WITH_TWO_CLOCKS = *PROVEN_BY_PARTS, "m_axis_one_id"
# The rules of an SDRAM that depend on the length of an access.
LONG_ACCESS = tuple(
    f"pins_{rule}" for rule in ("whole", "not_cut", "one_driver", "driven", "mask", "ahead")
)
# The steps of the proof of writes: each assumes the rules that the steps before have proven.
STEPS = {
    "AXI4 writes alone, in order": ("w_order", "aw_order"),
    "AXI4 writes alone, burst by burst": ("w_last", "w_limit", "aw_addr"),
}


@dataclass(frozen=True)
class Proof:
    """A design and the rules to prove of it.

    Attributes
    ----------
    name : str
    bench : callable
        Returns the `FormalBench`.
    cuts : str
        As in `verif.formal.engine.decide`.
    excluded : tuple of str
        Rules that other proofs prove.
    selected : tuple of str
        If not empty, only these rules.
    """

    name: str
    bench: Callable[[], FormalBench]
    cuts: str = ""
    excluded: tuple[str, ...] = ()
    selected: tuple[str, ...] = ()

    def only(self, bench):
        """The names of the rules and covers to decide."""
        return {*self.selected} or {name for _, name in bench.names} - {*self.excluded}


def wishbone(pipelined):
    """The rules of the bus; their limits suit a responder that keeps `RegisterBusRules`."""
    return (PipelinedRules if pipelined else ClassicRules)(limit=8)


# The rules of a register slave, by `weft.buses.Bus.register_slave`.
SLAVE_RULES = {
    "apb": lambda ip: ApbRules(limit=8),
    "axi_lite": lambda ip: AxiLiteRules(), "wishbone": lambda ip: wishbone(ip.pipelined),
}


def data_rules(ip):
    """The rules of the ports that only a product core has."""
    rules = {}
    # With two clocks or a DMA engine, the ports of the core are cut.
    if ip.clocks == 1 and not ip.has_dma:
        rules["core_"] = CoreRules(commands_payload=8 * BYTES, results_payload_data=8 * BYTES)
    if ip.has_streams:
        rules |= {"s_axis_": SinkRules(tdata=8 * BYTES), "m_axis_": SourceRules(tdata=8 * BYTES)}
    return rules


DATA_RULES = PerKind(product=data_rules, network=lambda ip: {})


def whole(ip):
    """The bench of an IP core without its core."""
    slave = ip.protocol.register_slave
    rules = {SLAVES[slave].prefix: SLAVE_RULES[slave](ip)}
    return FormalBench(BareWrapper(ip), rules | DATA_RULES.of(ip)(ip))


def modes(bus):
    """The values of ``pipelined`` that a bus allows."""
    return (False, True)[: 1 + ("pipelined" in BUSES[bus].options)]


def tops():
    """Every kind of IP core."""
    for clocks in (1, 2):
        for name, bus in BUSES.items():
            for pipelined in modes(name):
                ip = Ip(config=CONFIG, bus=name, clocks=clocks, pipelined=pipelined)
                words = [name, *ip.options, *["two clocks"] * (clocks - 1)]
                yield Proof(
                    ", ".join(words), lambda ip=ip: whole(ip),
                    DMA * ip.has_dma + (MEMORIES, CLOCKS.format(clock=bus.clock))[clocks - 1],
                    (PROVEN_BY_PARTS, CUT_WITH_TWO_CLOCKS)[clocks - 1],
                )
    for name in ("axi", "wishbone", "apb"):
        for pipelined in modes(name):
            ip = NetworkIp(config=CHIP, bus=name, pipelined=pipelined)
            yield Proof(
                ", ".join([name, *ip.options, "networks"]), lambda ip=ip: whole(ip), MEMORIES,
                PROVEN_BY_PARTS,
            )


def parts():
    """Parts alone, for rules that are too expensive to prove of a whole core."""
    yield Proof("AXI4-Lite alone", lambda: FormalBench(
        AxiLite(), {"": AxiLiteBounds(limit=12), "bus_": RegisterBusRules()}
    ))
    for pipelined in (False, True):
        yield Proof(
            f"Wishbone alone{', pipelined' if pipelined else ''}",
            lambda pipelined=pipelined: FormalBench(
                Wishbone(pipelined=pipelined), {"": wishbone(pipelined), "bus_": RegisterBusRules()}
            ),
        )
    yield Proof("APB alone", lambda: FormalBench(
        Apb(), {"": ApbRules(limit=8), "bus_": RegisterBusRules()}
    ))
    for bus in BUSES:
        ip = Ip(config=CONFIG, bus=bus)
        yield Proof(
            f"registers, {bus}", lambda ip=ip: FormalBench(CsrBank(ip), {"": RegisterRules(ip)})
        )
    ip = NetworkIp(config=CHIP, bus="axi")
    yield Proof("registers, networks", lambda: FormalBench(
        NetworkBank(ip), {"": NetworkRegisterRules(ip)}
    ))
    yield Proof("AXI4 reads alone", master.reader_bench)
    yield Proof("AXI4 reads alone, in order", master.order_bench)
    yield Proof("address generator alone", partial(master.address_bench, CONFIG))
    yield Proof("write combiner alone", master.combiner_bench)
    yield Proof("AXI4 writes alone", master.writer_bench, excluded=sum(STEPS.values(), ()))
    known = ("b_order",)
    for name, rules in STEPS.items():
        yield Proof(name, partial(master.writer_bench, *known), selected=rules)
        known += rules
    yield Proof("program memory, reads", program.program_reads_bench, ENTRIES)
    yield Proof(
        "program memory, stores", program.program_stores_bench, excluded=("aw_burst", "writes"),
    )
    yield Proof("SDRAM controller", partial(sdram_bench, 2), ROWS)
    yield Proof("SDRAM controller, 8 words", partial(sdram_bench, 8), ROWS, selected=LONG_ACCESS)
    yield Proof("SDRAM controller, no DQM", partial(sdram_bench, 2, masks=False), ROWS)
    yield Proof("list execution alone", list_bench)
    yield Proof("list execution alone, jobs start early", partial(list_bench, EarlyListRules))
    yield Proof("list execution alone, option early", partial(list_bench, EarlyStartRules))
    yield Proof("panel gate alone", gate_bench)
    yield Proof("list loader alone", loader_bench)


PROOFS = {proof.name: proof for proof in (*parts(), *tops())}
