"""Parts of the data sheet that only a product core has."""

from weft.cli.info import cycle_counts, result_types
from weft.config import Config
from weft.geometry import operands
from weft.ip import Ip
from weft.kit.table import table

__all__ = ["KIND", "numbers", "parameters", "performance", "use"]

KIND = "A matrix-multiply accelerator, C[M, N] = A[M, K] x B[K, N]"
EDGES = 8, 16, 32, 64, 128, 256  # M = N = K of the products in the table of cycles
MAX_CYCLES = 40_000  # at peak rate; larger products are left out
_FIFO_PACE = (
    " Through the FIFO ports of the register space the processor is slower than this: each access"
    " moves 4 bytes."
)
_FIFO_USE = (
    "Write commands to the FIFO port `cmd_fifo`, at most `cmd_fifo_free` words at a time. Read"
    " results from the FIFO port `result_fifo`, at most `result_level.words` words at a time. The"
    " driver [{header}]({header}) does this in C."
)


def numbers(ip: Ip) -> str:
    """Operands, results, and the sizes of the buffers."""
    c = ip.array
    a, b = operands(c)
    results = " or ".join(name for name, _ in result_types(c))
    return (
        f"Operands {c.data_type.a.name}, results {results}: {c.data_type.arithmetic(c)}. A job"
        f" computes K up to {min(a.words, b.words) * c.depth:,}; the driver splits larger products."
        f" Buffers: {a.words * a.word_bytes:,} bytes for A, {b.words * b.word_bytes:,} bytes for B."
    )


def use(ip: Ip) -> str:
    """How software uses the core."""
    text = ip.protocol.use + f" {_FIFO_USE}" * ip.has_fifo_ports
    return text.format(header=f"driver/{ip.prefix}.h")


def performance(ip: Ip) -> list[str]:
    """The section with the cycles of products."""
    c = ip.array
    return [
        "## Performance",
        "Clock cycles of a product, from the cycle model, which the tests of Weft compare with the"
        " hardware cycle by cycle.\n\n"
        "* cold: from the first load word accepted to the last result word taken, nothing loaded"
        " before\n"
        "* resident: from the job's first word to the last result word, both operands loaded before"
        " (-: they do not fit the buffers)\n"
        "* steady: the interval between equal products back to back, loads included\n"
        "* utilization: multiply-accumulates of the steady interval, relative to the peak\n\n"
        "The input stream is always valid and the output stream always ready:"
        f" {c.bytes_in} bytes in and {c.bytes_out} bytes out a cycle."
        + _FIFO_PACE * ip.has_fifo_ports,
        _cycles(c),
    ]


def parameters(ip: Ip) -> list[tuple[str, str, str]]:
    """None: the Config has all."""
    return []


def _cycles(c: Config) -> str:
    rows = []
    for edge in [edge for edge in EDGES if edge**3 <= MAX_CYCLES * c.peak]:
        for name, flags in result_types(c):
            cold, resident, steady = cycle_counts(c, edge, edge, edge, flags)
            rows.append((
                f"{edge} x {edge} x {edge}", name, f"{cold:,}",
                "-" if resident is None else f"{resident:,}", f"{steady:,.0f}",
                f"{edge**3 / steady / c.peak:.1%}",
            ))
    return table(
        ("M x K x N", "results", "cold", "resident", "steady", "utilization"), rows
    )
