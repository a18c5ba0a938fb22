"""Parts of the data sheet of a product core.

`weft.kit.network_sections` has the same names for a network core; `weft.kit.sheet` chooses.
"""

from weft.cli.info import cycle_counts, result_types
from weft.config import Config
from weft.geometry import operands
from weft.ip import Ip
from weft.kit.folder import table

__all__ = ["KIND", "numbers", "parameters", "performance", "use"]

KIND = "A matrix-multiply accelerator, C[M, N] = A[M, K] x B[K, N]"
SIZES = 8, 16, 32, 64, 128, 256  # M = N = K of the products in the table of cycles
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
    config = ip.array
    a, b = operands(config)
    results = " or ".join(name for name, _ in result_types(config))
    arithmetic, k = config.data_type.arithmetic(config), min(a.words, b.words) * config.depth
    return (
        f"Operands {config.data_type.a.name}, results {results}: {arithmetic}. A job"
        f" computes K up to {k:,}; the driver splits larger products."
        f" Buffers: {a.words * a.word_bytes:,} bytes for A, {b.words * b.word_bytes:,} bytes for B."
    )


def use(ip: Ip) -> str:
    """How software uses the core."""
    text = ip.protocol.use + f" {_FIFO_USE}" * ip.has_fifo_ports
    return text.format(header=f"driver/{ip.prefix}.h")


def performance(ip: Ip) -> list[str]:
    """The section with the cycles of products."""
    config = ip.array
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
        f" {config.bytes_in} bytes in and {config.bytes_out} bytes out a cycle."
        + _FIFO_PACE * ip.has_fifo_ports,
        _cycles(config),
    ]


def parameters(ip: Ip) -> list[tuple[str, str, str]]:
    """Return no rows: the sheet has the fields of the Config without them."""
    return []


def _cycles(config: Config) -> str:
    rows = []
    for size in [size for size in SIZES if size**3 <= MAX_CYCLES * config.peak]:
        for name, flags in result_types(config):
            cold, resident, steady = cycle_counts(config, size, size, size, flags)
            rows.append((
                f"{size} x {size} x {size}", name, f"{cold:,}",
                "-" if resident is None else f"{resident:,}", f"{steady:,.0f}",
                f"{size**3 / steady / config.peak:.1%}",
            ))
    return table(
        ("M x K x N", "results", "cold", "resident", "steady", "utilization"), rows
    )
