"""``weft explore --for``: the front of cores for networks, and where the board's core lies."""

from weft.cli.progress import progress

__all__ = ["show_front"]


def show_front(board, purpose: str, workloads) -> int:
    """Print the front of time and LUTs by the estimates, and the core of ``board`` beside it.

    Returns exit code 1 if no core fits.
    """
    from weft.explore.candidates import MARGIN
    from weft.explore.estimate import Estimator
    from weft.explore.network_front import distinct_front, network_candidates
    from weft.explore.recorded import fitted

    estimator = Estimator(board.device, workloads, fitted(board.config), clock=board.clock)
    with progress() as show, show.task("estimating designs") as advance:
        found = network_candidates(estimator, board.config, advance=advance)
    if not found:
        print(f"MISSED  no core for networks of the space fits {board.name} and holds"
              f" {', '.join(workload.name for workload in workloads)}")
        return 1
    best = distinct_front(found, board.config)
    print(
        f"{len(found)} cores with exact cycles fit {board.name} ({board.device.name}) by their"
        f" estimates, in {MARGIN:.0%} of its LUTs; {len(best)} are on the front:"
    )
    _table(board, best, workloads)
    print(_place(board, purpose, found, best))
    print(
        f"Cycles are exact, LUTs are estimates. Microseconds are at {board.clock:g} MHz, the clock"
        " of the board's core: no clock is estimated, and none of these cores was placed. A larger"
        " hop has fewer registers, and usually a lower clock."
    )
    return 0


def _place(board, purpose, found, best):
    """Where the core of the board lies."""
    own = next((each.figures for each in found if each.config == board.config), None)
    if own is None:
        return f"{board.name} --for {purpose} does not fit, or does not hold all networks"
    mine = f"{board.name} --for {purpose}: {own.latency:,.2f} us, {own.area:,} LUTs"
    if board.config in [each.config for each in best]:
        return f"{mine}, on the front"
    better = [each for each in best if each.figures.dominates(own)]
    lines = [f"{mine}, behind {len(better)} of the front:"]
    for each in better:
        other = each.figures
        lines.append(
            f"  {fields(each.config)}: {1 - other.latency / own.latency:.1%} less time,"
            f" {1 - other.area / own.area:.1%} fewer LUTs"
        )
    return "\n".join(lines)


def fields(chip) -> str:
    """The options of ``weft estimate`` that give the core, except the ones of its array."""
    core = chip.core
    named = {
        "lanes": core.lanes, "hop": core.hop, "dsp_cols": core.dsp_cols,
        "scale_cycles": core.scale_cycles, "words": chip.words, "b_words": chip.b_words,
        "lines": chip.lines, "read_vectors": chip.read_vectors,
    }
    options = " ".join(f"{name}={value}" for name, value in named.items())
    return f"{core.rows}x{core.cols}x{core.depth} {options}"


def _table(board, designs, workloads):
    from rich.box import SIMPLE_HEAD
    from rich.console import Console
    from rich.table import Table

    table = Table(box=SIMPLE_HEAD, pad_edge=False)
    resources = "LUT", "FF", "DSP", "RAM"
    for name in ("core", *(workload.name for workload in workloads), "us", *resources, ""):
        table.add_column(name, justify="left" if name in ("core", "") else "right")
    for each in designs:
        used = each.area.used
        table.add_row(
            fields(each.config), *(f"{cost.cycles:,}" for cost in each.costs),
            f"{each.figures.latency:,.2f}",
            *(f"{used[name]:,}" for name in resources),
            "the board's" if each.config == board.config else "",
        )
    Console(width=None if Console().is_terminal else 180).print(table)
