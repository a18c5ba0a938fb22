"""The start of an exploration: the front of its estimates, and where the board's own core lies."""

__all__ = ["show_front"]

BETTER = 5  # designs that beat the board's core in both, at most


def show_front(board, purpose: str | None, workloads, found, rate: float, runs: int) -> None:
    """Print the front of time and LUTs of the candidates ``found``, and the core of ``board``.

    ``rate`` is the one that the candidates reach, and ``runs`` the number of runs in the store.
    """
    from weft.explore.candidates import MARGIN, time_front

    name = f"{board.name} --for {purpose}" if purpose else board.name
    if not found:
        held = f" and holds {', '.join(each.name for each in workloads)}" if purpose else ""
        rule = f" and reaches {rate:,.1f} a second" if rate else ""
        print(f"MISSED  no design fits {board.name}{held}{rule}, by the estimates")
        return
    best = time_front(found, board.config)
    print(
        f"{len(found)} designs with exact cycles fit {board.name} ({board.device.name}) by their"
        f" estimates, in {MARGIN:.0%} of its LUTs; {len(best)} are on the front of time and LUTs;"
        f" the store has {runs} runs"
    )
    _table(board, best, workloads)
    print(_own(board, name, found, best))
    if found[0].area.fmax is None:
        print(
            f"Cycles are exact, LUTs are estimates. Microseconds are at {board.clock:g} MHz, the"
            " clock of the board's core: too few cores were placed to estimate a clock. A larger"
            " hop has fewer registers, and usually a lower clock."
        )
    else:
        print("Cycles are exact, LUTs and clocks are estimates.")


def _own(board, name, found, best):
    """Where the core of the board lies."""
    own = next((each for each in found if each.config == board.config), None)
    if own is None:
        return f"{name} does not fit, or does not hold all networks, or is below the rate"
    time, luts = own.figures.latency, own.figures.area
    mine = f"{name}: {time:,.2f} us, {luts:,} LUTs"
    if own in best:
        return f"{mine}, on the front"
    better = [
        each for each in best if each.figures.latency <= time and each.figures.area <= luts
    ]
    lines = [f"{mine}, behind {len(better)} of the front:"]
    for each in better[:BETTER]:
        other = each.figures
        lines.append(
            f"  {_design(each.config)}: {1 - other.latency / time:.1%} less time,"
            f" {1 - other.area / luts:.1%} fewer LUTs"
        )
    return "\n".join(lines + ["  ..."] * (len(better) > BETTER))


def _design(config):
    """The fields of a design in one line, its array as in its name."""
    from weft.explore.config_fields import fields_of, line_of

    fields = fields_of(config)
    return f"{fields['rows']}x{fields['cols']}x{fields['depth']} {line_of(config)}"


def _table(board, designs, workloads):
    from rich.box import SIMPLE_HEAD
    from rich.console import Console
    from rich.table import Table

    table = Table(box=SIMPLE_HEAD, pad_edge=False)
    resources = [name for name in ("LUT", "FF", "DSP", "RAM") if name in designs[0].area.used]
    names = "design", *(workload.name for workload in workloads), "MHz", "us", *resources, ""
    for name in names:
        table.add_column(name, justify="left" if name in ("design", "") else "right")
    for each in designs:
        table.add_row(
            _design(each.config), *(f"{cost.cycles:,}" for cost in each.costs),
            f"{each.clock:.1f}", f"{each.figures.latency:,.2f}",
            *(f"{each.area.used[name]:,}" for name in resources),
            "the board's" if each.config == board.config else "",
        )
    Console(width=None if Console().is_terminal else 180).print(table)
