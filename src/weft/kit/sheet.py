"""The data sheet: what the core is, takes, gives, reaches, and what is in the folder."""

import dataclasses

from weft.cli.info import cycle_counts, result_types
from weft.config import Config
from weft.geometry import operands
from weft.ip import BUSES, Ip
from weft.kit.head import command
from weft.kit.ports import Port, interfaces
from weft.kit.waves import waves
from weft.register_map import fifo_ports, registers

__all__ = ["sheet"]

EDGES = 8, 16, 32, 64, 128, 256  # of cubes whose cycles are told,
LONGEST = 40_000  # of no more cycles than so
NOT_MEASURED = "Not measured; `weft generate --measure DEVICE` places and routes this very core."


def sheet(ip: Ip, ports: list[Port], files: dict[str, str], *, measured: str | None) -> str:
    """The page; ``files`` are the kit's, with what they are for, ``measured`` lines of a table."""
    c = ip.config
    return "\n\n".join([
        f"# {ip.name}",
        f"A matrix-multiply accelerator, C[M, N] = A[M, K] x B[K, N], of {c.rows} x {c.cols}"
        f" processing elements that take {c.depth} operand pair{'s' * (c.depth > 1)} a cycle:"
        f" **{c.peak} MAC/cycle** of {c.dtype}. Behind it: {BUSES[ip.bus]}."
        + " The core has a clock of its own, `core_clk`." * (ip.clocks == 2),
        (f"Made by `{command(ip)}`, and by that again to the byte. Licence: BSD-2-Clause,"
        " [LICENSE](LICENSE)."),
        "## In this folder", _table(("file", "what it is"), [
            (f"[{name}]({name})", text) for name, text in files.items()
        ]),
        "## Numbers", _numbers(c),
        "## Use", _USE[ip.bus].format(header=f"driver/{ip.prefix}.h"),
        "## Ports", *_ports(ports),
        "## Timing", *waves(ip),
        "## Registers",
        (f"{len(registers(ip))} registers and {len(fifo_ports(ip))} FIFO ports in 4 KiB:"
        f" [{ip.name}_regs.md]({ip.name}_regs.md); the same as [HTML](html/index.html),"
        f" [SystemRDL]({ip.name}.rdl), [IP-XACT]({ip.name}_regs.xml) and"
        f" [C](driver/{ip.name}_regs.h)."),
        "## Performance",
        "Cycles of a product, as the cycle model has them (the tests of Weft hold it against the"
        " hardware, cycle for cycle). Cold: from the first load word to the last result word;"
        " resident: operands loaded before (-: they do not fit); steady: the interval of equal"
        " products back to back. Words always offered, results always taken, "
        f"{c.bytes_in} bytes a cycle in, {c.bytes_out} out."
        + _WINDOWED * ip.has_fifo_ports,
        _cycles(c),
        "## Area and clock", measured or NOT_MEASURED,
        "## Parameters", _table(("field", "value", "meaning"), [
            (f"`{f.name}`", str(getattr(c, f.name)), f.metadata["text"])
            for f in dataclasses.fields(c)
        ]),
        "## Integration",
        ("Clock, reset and what to tell place and route: [constraints.md](constraints.md). The"
        " Verilog is one file of Verilog-2005; all of its modules have names that start with"
        f" `{ip.name}`. It lints clean under the -Wall of Verilator 5.006 or newer with"
        " the waivers in"
        f" [{ip.name}.vlt]({ip.name}.vlt), each of which has its reason. A soft reset"
        " (`control.reset`) never breaks the bus's protocol; an access that is refused is"
        " answered by the bus's error, has no effect, and is noted in `irq_status.access_error`."
        " Nothing stalls the register bus without bound."),
    ]) + "\n"


_WINDOWED = (
    " Through the FIFO ports of the register space it is the processor that sets the pace: each"
    " access moves 4 bytes."
)
_USE = {
    "axi": "Registers and FIFO ports are a slave of AXI4-Lite, 4 KiB. A driver writes commands to"
           " `cmd_fifo`, as many words as `cmd_fifo_free` says, and reads results from"
           " `result_fifo`, as many as `result_level` says. [driver]({header}) does it in C.",
    "wishbone": "Registers and FIFO ports are a slave of Wishbone B4, 4 KiB, addressed by words. A"
                " driver writes commands to `cmd_fifo`, as many words as `cmd_fifo_free`"
                " says, and reads results from `result_fifo`, as many as"
                " `result_level` says. [driver]({header}) does it in C.",
    "stream": "Commands come over `s_axis`, results leave over `m_axis`, a packet a job; registers"
              " are a slave of AXI4-Lite, 4 KiB. [driver]({header}) packs and unpacks what a"
              " DMA of your own moves.",
    "dma": "Registers are a slave of AXI4-Lite, 4 KiB; operands and results lie in memory, which"
           " the core reaches as a master of AXI4. A driver writes descriptors: a header of the"
           " core, an address, strides. [driver]({header}) does it in C.",
}


def _table(head, rows) -> str:
    lines = [head, ("---",) * len(head), *rows]
    return "\n".join("| " + " | ".join(row) + " |" for row in lines)


def _numbers(c: Config) -> str:
    a, b = operands(c)
    results = " or ".join(name for name, _ in result_types(c))
    exact = {
        "int8": "sums of int8 products, exact in 32 bits"
                + (f"; finished to 8 bits as `{c.requantize}`" if c.requantize != "none" else ""),
        "bf16": "chains of fused multiply-adds in float32, k ascending, rounded to nearest even",
    }[c.dtype]
    return (
        f"Operands {c.format.a.name}, results {results}: {exact}. K of at most"
        f" {min(a.words, b.words) * c.depth:,} without splitting; buffers of"
        f" {a.words * a.word_bytes:,} bytes for A and {b.words * b.word_bytes:,} for B."
    )


def _ports(ports: list[Port]):
    left = list(ports)
    for interface in interfaces:
        mine = [port for port in left if port.name.startswith(interface.prefix)]
        left = [port for port in left if port not in mine]
        if mine:
            yield f"**{interface.text[:1].upper()}{interface.text[1:]}**"
            yield _table(("port", "bits", "direction", "meaning"), [
                (f"`{p.name}`", str(p.width), "out" if p.out else "in", p.text) for p in mine
            ])


def _cycles(c: Config) -> str:
    rows = []
    for edge in [edge for edge in EDGES if edge**3 <= LONGEST * c.peak]:
        for name, flags in result_types(c):
            cold, resident, steady = cycle_counts(c, edge, edge, edge, flags)
            rows.append((
                f"{edge} x {edge} x {edge}", name, f"{cold:,}",
                "-" if resident is None else f"{resident:,}", f"{steady:,.0f}",
                f"{edge**3 / steady / c.peak:.1%}",
            ))
    return _table(
        ("M x K x N", "results", "cold", "resident", "steady", "utilization"), rows
    )
