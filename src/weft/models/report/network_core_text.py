"""The report of a network core as text."""

from collections.abc import Iterator

from weft.models.network_core.program import memory_needs
from weft.models.report.network_core import NetworkCoreReport
from weft.models.report.text import columns_text, comparison_rows

__all__ = ["lines"]


def lines(report: NetworkCoreReport) -> Iterator[str]:
    """Yield the lines of the text: placement, layers, memory, link, reasons, comparison."""
    program = report.program
    yield report.placement
    yield (
        f"{'position':>8}  {'operator':<28} {'MAC':>12} {'output':>14} {'panels':>7}"
        f" {'rows':>5} {'jobs':>5} {'B words':>8} {'cycles':>10} {'use':>6}  bound by"
    )
    for layer in report.layers:
        yield _row(layer)
    if len(program.segments) > 1:
        cycles = ", ".join(f"{phases.cycles:,}" for phases in report.phases)
        yield f"lists: {len(program.segments)}, of {cycles} cycles"
    areas = ", ".join(f"{name} {size:,}" for name, size in program.areas.items())
    yield (
        f"memory: {program.memory_used:,} of {program.config.memory_bytes:,} bytes"
        f" ({areas}; {_places(program)})"
    )
    words = sum(layer.words for layer in report.layers)
    kept = "they stay there" if not program.areas["weights"] else "loaded in each inference"
    yield f"weights: {words:,} words of B, which has {program.config.b_words:,}: {kept}"
    sent, received = report.link
    yield f"link: {sent:,} bytes to the core, {received:,} from it"
    yield from report.reasons()
    if report.against is not None:
        heads = "", report.target, report.against.target
        yield from columns_text([heads, *comparison_rows(report)])


def _places(program):
    """Where the areas lie."""
    if not program.config.program_words:
        return "setup and maps share their place"
    _, used = memory_needs(program.areas, program.config)
    return (
        f"all but the maps are in the program memory: {used:,} of"
        f" {program.config.program_bytes:,} bytes"
    )


def _row(layer):
    text = f"{min(layer.position):>8}  {layer.operator:<28}"
    if not layer.on_weft:
        return f"{text} {layer.macs or '':>12} {'host':>14}"
    size = "x".join(map(str, layer.output or ("products",)))
    if not layer.jobs:
        return f"{text} {'':>12} {size:>14}"
    sizes = f"{layer.panels:>7,} {layer.panel_rows:>5} {layer.jobs:>5} {layer.words:>8,}"
    if not layer.output:
        sizes = f"{'':>7} {'':>5} {layer.jobs:>5} {'':>8}"
    return (
        f"{text} {layer.macs:>12,} {size:>14} {sizes} {layer.cycles:>10,}"
        f" {layer.utilization:>6.1%}  {layer.core_bound}"
    ).rstrip()
