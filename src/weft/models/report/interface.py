"""What the reports of both kinds of core have: facts of the network, text, pictures, page, JSON."""

import io
from collections.abc import Sequence
from dataclasses import dataclass
from typing import TYPE_CHECKING, Any

from weft.models.report.placement import reason_lines

if TYPE_CHECKING:
    from weft.models.report.page import PageParts

__all__ = ["WIDTH", "Ceilings", "Report", "plain_console"]

WIDTH = 200  # columns of a text that is not for a terminal


@dataclass(frozen=True)
class Ceilings:
    """The peak rates of the parts of a core, and the sizes of its operand buffers.

    Attributes
    ----------
    peak : int
        MAC/cycle of the array.
    load : int
        Bytes/cycle of the command stream.
    drain : float
        Requantized results/cycle of full tiles; without an epilogue, sums/cycle.
    a_bytes, b_bytes : int
        Size of the operand buffers.
    """

    peak: int
    load: int
    drain: float
    a_bytes: int
    b_bytes: int


class Report:
    """A whole network on a target; ``str(report)`` is its text.

    Attributes
    ----------
    name : str
        Name of the network.
    target : str
        Name of the board or the Config.
    config : str
        Name of the Config of the array: its size.
    config_hash : int
        Of the core.
    clock : float or None
        MHz.
    placement : str
        The placement line.
    ceilings : Ceilings
    layers : tuple of ProductCoreLayer or NetworkCoreLayer
        All operators, in the order of execution.
    notes : tuple of str
    against : Report or None
        The same network on another target, of any kind, to compare with.
    """

    name: str
    target: str
    config: str
    config_hash: int
    clock: float | None
    placement: str
    ceilings: Ceilings
    layers: tuple
    notes: tuple[str, ...]
    against: "Report | None"

    @property
    def on_weft(self) -> tuple:
        """The layers on the core."""
        raise NotImplementedError

    @property
    def macs(self) -> int:
        """Multiply-accumulate operations."""
        raise NotImplementedError

    @property
    def cycles(self) -> int:
        """Predicted cycles of one inference."""
        raise NotImplementedError

    @property
    def utilization(self) -> float:
        """MACs on the core, divided by its cycles and its peak; in 0..1."""
        raise NotImplementedError

    @property
    def core_ms(self) -> float | None:
        """Predicted time of the core; None without a clock."""
        raise NotImplementedError

    @property
    def wire_ms(self) -> float | None:
        """Time of the bytes on the link; None without a serial port."""
        raise NotImplementedError

    def with_measured(self, records: Sequence) -> "Report":
        """The report with the measured cycles of the records of a session."""
        raise NotImplementedError

    def to_json(self) -> dict[str, Any]:
        """All data as dicts, lists, strings and numbers, for `json.dumps`."""
        raise NotImplementedError

    def show(self, console) -> None:
        """Print the text on a `plain_console`."""
        raise NotImplementedError

    def pictures(self) -> dict[str, str]:
        """SVG elements by name: the pictures that the report has data for."""
        raise NotImplementedError

    def page_parts(self) -> "PageParts":
        """The parts of the page that only the reports of a kind have."""
        raise NotImplementedError

    def totals(self) -> dict[str, str]:
        """The totals by their names; some are the same for both kinds of core."""
        return {
            "Config": self.config, "MAC/cycle": f"{self.ceilings.peak:,}",
            "operators on Weft": self._operators(),
            "cycles": f"{self.cycles:,}", "utilization": f"{self.utilization:.1%}",
            "core ms": _milliseconds(self.core_ms, 3), "wire ms": _milliseconds(self.wire_ms, 1),
        }

    def _operators(self):
        """``4 of 6``: operators on the core, and all of them."""
        every = {place for layer in self.layers for place in layer.position}
        core = {place for layer in self.layers if layer.on_weft for place in layer.position}
        return f"{len(core)} of {len(every)}"

    def comparison(self) -> list[tuple[str, str, str]]:
        """Rows (name, value, value) of the totals that this report and ``against`` have."""
        second = {} if self.against is None else self.against.totals()
        return [(name, text, second[name]) for name, text in self.totals().items()
                if name in second]

    def reasons(self) -> list[str]:
        """A line for each operator that the host computes, wholly or in part, and why."""
        return reason_lines(
            (layer.operator, layer.on_weft, layer.reason, layer.remedy) for layer in self.layers
        )

    def text(self, width: int = WIDTH) -> str:
        """The report as plain text; its tables are at most ``width`` columns wide."""
        console = plain_console(file=io.StringIO(), width=width)
        self.show(console)
        return "\n".join(line.rstrip() for line in console.file.getvalue().splitlines())

    def page(self) -> str:
        """The report as an HTML page."""
        from weft.models.report.page import page

        return page(self)

    def __str__(self) -> str:
        return self.text()


def plain_console(**arguments):
    """A `rich.console.Console` that prints text as it is: names may have brackets and colons."""
    from rich.console import Console

    return Console(highlight=False, markup=False, emoji=False, **arguments)


def _milliseconds(value, digits):
    return "-" if value is None else f"{value:,.{digits}f}"
