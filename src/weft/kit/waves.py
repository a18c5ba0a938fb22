"""Timing diagrams of a core's buses, drawn in text."""

from collections.abc import Sequence

from weft.ip import Ip
from weft.network_core.ip import NetworkIp

__all__ = ["draw", "waves"]

_CLOCK = "/-\\_"
_SHAPES = {"0": "____", "1": "----", "x": "::::", ".": "    "}


def waves(ip: Ip | NetworkIp):
    """The diagrams for the bus of a core: for each one a heading, then the drawing."""
    for diagram in ip.protocol.diagrams(ip.options):
        yield f"{diagram.title}:"
        yield f"```\n{draw(diagram.clock, diagram.rows)}\n```"


def draw(clock: str, rows: Sequence[tuple[str, str]]) -> str:
    """A clock and the signals below it; a cycle is four characters wide.

    In ``rows`` a character stands for a cycle: 0 or 1 is a level, x any value, and a letter a
    value. The drawing names the value in its first cycle, and holds it while the letter repeats.
    """
    longest = max(len(name) for name in (clock, *(name for name, _ in rows)))
    cycles = max(len(levels) for _, levels in rows)
    lines = [f"{clock:{longest}}  {_CLOCK * cycles}"]
    for name, levels in rows:
        cells, previous = [], None
        for level in levels:
            if level in _SHAPES:
                cells.append(_SHAPES[level])
            else:
                cells.append("====" if level == previous else f"<{level:=<3}")
            previous = level
        lines.append(f"{name:{longest}}  {''.join(cells)}".rstrip())
    return "\n".join(lines)

